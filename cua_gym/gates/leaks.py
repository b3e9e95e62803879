"""Leaks: nothing hidden is in what a task gives, nor anywhere in its start state.

The start state's memory and disk lie in the cache as files, so whatever the guest holds, deleted,
cached or never shown, is searched without a machine.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from cua_gym.gates.given import given_texts
from cua_gym.gates.record import Judgement
from cua_gym.gates.secrets import Secret, secrets
from cua_gym.gates.texts import texts_of
from cua_gym.machine.qemu.states import Lease
from cua_gym.task import Variation

__all__ = ["leaks", "search"]

_PIECE = 1 << 16
_OVERLAP = 256
"""No secret is longer, so one that lies across two pieces is whole in the first."""


def leaks(
    variation: Variation, start: Path, state: Path | None, others: Mapping[Path, set[str]]
) -> Judgement:
    """No hidden value, no part of a hidden file and none of the oracle is there for an agent.

    Args:
        start: evidence of doing nothing.
        state: folder of the start state; None on a computer that keeps none.
        others: other saved states, each with what is hidden about it: what is in one of them
            without being hidden there, such as a word of the system's own, proves nothing.
    """
    faults = list(_given_away(variation))
    found = secrets(variation, start)
    told = f"{len(found.secrets)} hidden values and chunks"
    if state is not None:
        hits = search(state, found.secrets)
        for other, hidden in others.items() if hits else ():
            open_there = [secret for secret in hits if secret.shown not in hidden]
            hits -= search(other, open_there)
        faults += _found(hits)
        told += " are neither given nor in the start state"
    else:
        told += "; this kind of computer keeps no state that could be searched"
    if found.short:
        told += f"; too short or too common to tell: {', '.join(found.short)}"
    return Judgement.of(faults, told, [variation.seed])


def _found(hits: Collection[Secret]) -> Iterator[str]:
    for name in sorted({secret.name for secret in hits}):
        shown = sorted(secret.shown for secret in hits if secret.name == name)
        yield (
            f"{name}: {', '.join(map(repr, shown[:3]))} "
            "is in the memory or on the disk of the start state"
        )


def _given_away(variation: Variation) -> Iterator[str]:
    """Hidden files that stand whole in what the task gives."""
    task = variation.task
    given = {f"the input {name}": [data, *_encoded(texts_of(data))]
             for name, data in variation.inputs.items()}  # fmt: skip
    given["the instruction or the setup"] = list(_encoded(given_texts(variation)))
    for path in sorted(task.hidden.rglob("*")):
        data = path.read_bytes().strip() if path.is_file() else b""
        if len(data) < Secret.SHORTEST:
            continue
        place = next((p for p, datas in given.items() if any(data in d for d in datas)), None)
        if place is not None:
            yield f"hidden/{path.relative_to(task.hidden).as_posix()} stands whole in {place}"


def _encoded(texts: Iterator[str]) -> Iterator[bytes]:
    return (text.encode("utf-8", "surrogateescape") for text in texts)


def search(state: Path, wanted: Sequence[Secret]) -> set[Secret]:
    """Which of these stand in a saved state's files, as UTF-8 or UTF-16.

    Raises:
        FileNotFoundError: there is no such state.
    """
    needles = {needle: secret for secret in wanted for needle in secret.needles}
    if not needles:
        return set()
    with tempfile.NamedTemporaryFile(prefix="cua-gym-needles-") as patterns:
        patterns.write(b"\n".join(needles) + b"\n")
        patterns.flush()
        with Lease.open(state) as lease, _grep(patterns.name) as grep:
            assert grep.stdin is not None
            for fd in (lease.memory, lease.device, *lease.deltas):
                for piece in _pieces(fd):
                    grep.stdin.write(piece)
            out, err = grep.communicate()
    if grep.returncode not in (0, 1):
        raise OSError(f"grep failed: {err.decode(errors='replace').strip()[-300:]}")
    return {needles[line] for line in out.split(b"\n") if line in needles}


def _grep(patterns: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["grep", "--text", "--only-matching", "--fixed-strings", "--file", patterns],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"LC_ALL": "C", "PATH": os.environ.get("PATH", os.defpath)},
    )


def _pieces(fd: int) -> Iterator[bytes]:
    """What a sparse file holds, in short lines: of the memory's zeros grep would make one."""
    position, end = 0, os.fstat(fd).st_size
    empty = bytes(_PIECE + _OVERLAP)
    while position < end:
        try:
            start = os.lseek(fd, position, os.SEEK_DATA)
        except OSError:  # ENXIO: nothing but a hole is left
            return
        position = os.lseek(fd, start, os.SEEK_HOLE)
        for offset in range(start, position, _PIECE):
            data = os.pread(fd, min(_PIECE + _OVERLAP, position - offset), offset)
            if data != empty[: len(data)]:
                yield data
                yield b"\n"
