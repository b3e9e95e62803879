"""Does an image keep to the standard? Boots it and goes through `cua_gym.image.clauses`.

Cold boots, each with a cache of its own, so that no saved state hides what a boot does.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from cua_gym.errors import MachineError
from cua_gym.image.clause import Broken, Clause, Subject
from cua_gym.image.clauses import clauses_for
from cua_gym.image.store import Image
from cua_gym.image.workshop import workshop
from cua_gym.machine.base import Machine, MachineSpec

__all__ = ["Boot", "Result", "check_image", "cold_boots", "table"]

TELL_S = 5.0

Boot = Callable[[tuple[int, int]], AbstractContextManager[Machine]]
"""Cold boots a machine of the image with a screen of (width, height)."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one clause: what it says, whether it holds, and what was seen."""

    id: str
    says: str
    passed: bool
    seen: str


@dataclass(frozen=True, slots=True)
class _First:
    """What is compared between boots."""

    frame: str
    machine_id: str


def check_image(
    image: Image,
    boot: Boot,
    *,
    boots: int = 3,
    progress: Callable[[str], None] = lambda message: None,
) -> list[Result]:
    """Boot an image ``boots`` times in its default mode and once in each other, and check it.

    Raises:
        MachineError: it does not boot; a clause that fails is a result, not an error.
    """
    default, *others = image.manifest.screen_modes
    results: list[Result] = []
    firsts: list[_First] = []
    for number in range(1, boots + 1):
        progress(f"boot {number} of {boots}")
        with boot(default) as machine:
            subject = Subject(image, machine)
            firsts.append(_first(subject))
            if number == 1:
                results += _go_through(subject, progress)
    results += _between_boots(firsts)
    for mode in others:
        progress(f"boot with {mode[0]}x{mode[1]}")
        results.append(_mode(image, boot, mode))
    return results


def _first(subject: Subject) -> _First:
    rgb = subject.machine.screen.grab().rgb
    done = subject.machine.shell.run("cat /etc/machine-id 2>/dev/null || true", user="root")
    return _First(hashlib.sha256(rgb.tobytes()).hexdigest(), done.text.strip())


def _go_through(subject: Subject, progress: Callable[[str], None]) -> list[Result]:
    results = []
    for clause in clauses_for(subject.image):
        start = time.monotonic()
        results.append(_judge(clause, subject))
        if time.monotonic() - start > TELL_S:
            progress(f"looked at {clause.id}")
    return results


def _judge(clause: Clause, subject: Subject) -> Result:
    try:
        seen = clause.look(subject)
    except Broken as broken:
        return Result(clause.id, clause.says, False, str(broken))
    return Result(clause.id, clause.says, True, seen)


def _between_boots(firsts: Sequence[_First]) -> list[Result]:
    frames = {first.frame for first in firsts}
    ids = {first.machine_id for first in firsts}
    count = len(firsts)
    return [
        Result(
            "first-frame",
            f"the first frame is the same over {count} boot(s)",
            len(frames) == 1,
            " ".join(sorted(frame[:12] for frame in frames)),
        ),
        Result(
            "fresh-machine-id",
            "each boot of the image is a computer of its own",
            len(ids) == count,
            " ".join(sorted(one[:8] for one in ids)),
        ),
    ]


def _mode(image: Image, boot: Boot, mode: tuple[int, int]) -> Result:
    name = f"{mode[0]}x{mode[1]}"
    clause = next(clause for clause in clauses_for(image) if clause.id == "screen-size")
    try:
        with boot(mode) as machine:
            judged = _judge(clause, Subject(image, machine))
    except MachineError as error:
        return Result(f"mode/{name}", f"a {name} screen on request", False, str(error))
    return Result(f"mode/{name}", f"a {name} screen on request", judged.passed, judged.seen)


def cold_boots(image: Image, progress: Callable[[str], None]) -> Boot:
    """A `Boot` that makes virtual machines, each from power-on.

    Their saved states live and die with them, in a folder that the next build sweeps if this
    process is killed.
    """
    from cua_gym.machine.qemu.machine import QemuMachine

    @contextlib.contextmanager
    def boot(mode: tuple[int, int]) -> Iterator[Machine]:
        wants = image.manifest.hypervisor
        spec = MachineSpec(
            image=image.name,
            cpus=wants.cpus,
            memory_mb=wants.memory_mb,
            screen=mode,
            user=image.manifest.accounts.desktop["name"],
        )
        with (
            workshop(image.folder.parent, "check") as cache,
            QemuMachine.start(spec, image=image, cache=cache, progress=progress) as machine,
        ):
            yield machine

    return boot


def table(results: Sequence[Result]) -> str:
    """The report as text: a line per clause, failures with what was seen."""
    width = max(len(result.id) for result in results)
    lines = []
    for result in results:
        seen = " ".join(result.seen.split())
        lines.append(f"{'pass' if result.passed else 'FAIL'}  {result.id:<{width}}  {result.says}")
        if not result.passed or len(seen) <= 60:
            lines[-1] += f": {seen[:200]}"
    failed = sum(not result.passed for result in results)
    lines.append(f"{len(results) - failed} of {len(results)} clauses hold")
    return "\n".join(lines)
