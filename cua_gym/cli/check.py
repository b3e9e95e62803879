"""`cua-gym task check`: put tasks through the gates that they must pass before they count."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cua_gym.cli.answer import Answer, answering
from cua_gym.cli.options import suite_option
from cua_gym.cli.progress import printable
from cua_gym.gates.names import GATES, SEEDS

if TYPE_CHECKING:
    from cua_gym.gates.check import Checked, Subject
    from cua_gym.gates.record import Judgement
    from cua_gym.task import Suite

__all__ = ["check"]


@click.command(
    epilog="""\b
Examples:
  cua-gym task check tidy-folder
  cua-gym task check ./tasks/mine --gate no-op --gate oracle --seeds 1
  cua-gym task check --all --json > gates.json"""
)
@click.argument("tasks", nargs=-1, metavar="[TASK...]")
@click.option("--all", "every", is_flag=True, help="Every task of the suite.")
@suite_option
@click.option(
    "--gate",
    "gates",
    type=click.Choice(GATES),
    multiple=True,
    help="Only this gate; may be repeated.",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=SEEDS,
    show_default=True,
    help="How many variations of each task, from seed 0 on.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=None,
    show_default="one a core, as far as memory goes",
    help="Machines at once.",
)
@click.option("--again", is_flag=True, help="Make the attempts anew, although they are there.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
@click.pass_context
def check(
    ctx: click.Context,
    tasks: tuple[str, ...],
    every: bool,
    folder: Path | None,
    gates: tuple[str, ...],
    seeds: int,
    jobs: int | None,
    again: bool,
    as_json: bool,
) -> None:
    """Put tasks through the gates that they must pass before their scores count.

    TASK is a task's name or its folder. What needs a machine is made once and kept in the cache,
    so a changed grader is judged without one, and a check that was stopped goes on where it was.
    The verdicts are written to gates.json in the task's folder.

    Exit codes: 0 all passed, 1 a gate failed, 2 a usage error, 3 something could not be judged.
    """
    from cua_gym.cache import cache_root
    from cua_gym.gates.attempts import AttemptStore
    from cua_gym.gates.check import Terms, check_all
    from cua_gym.gates.play import Player
    from cua_gym.gates.record import record
    from cua_gym.machine.admission import need_room, room_for
    from cua_gym.machine.base import MachineSpec
    from cua_gym.machine.start import machine_mb

    def tell(text: str) -> None:
        click.echo(printable(text), err=True)

    with answering() as answer:
        subjects = _subjects(tasks, every, folder)
        usual_mb = machine_mb(MachineSpec())  # what a task wants is known once lint has read it
        if jobs is None:
            jobs = min(os.cpu_count() or 1, max(1, room_for(usual_mb)))
        else:
            need_room([usual_mb] * jobs)
        player = Player(AttemptStore(cache_root() / "gates"), jobs, tell)
        terms = Terms(gates or GATES, seeds, again=again)
        checked = []
        for done in check_all(subjects, player, terms, jobs=jobs, tell=tell):
            checked.append(done)
            words = ", ".join(f"{g} {_word(done.gates[g])}" for g in GATES if g in done.gates)
            tell(f"[{len(checked)}/{len(subjects)}] {done.name}: {words}")
            if done.task is not None:
                date = datetime.datetime.now(datetime.UTC).date().isoformat()
                record(done.task, done.content, done.gates, date)
        if as_json:
            answer.line(json.dumps({"tasks": [_plain(done) for done in checked]}))
        else:
            _table(answer, checked, [gate for gate in GATES if gate in terms.gates])
    ctx.exit(_code(checked))


def _subjects(names: Sequence[str], every: bool, folder: Path | None) -> list[Subject]:
    from cua_gym.gates.check import Subject
    from cua_gym.task import Suite, bundled_suite, find_task

    if bool(names) == every:
        raise click.UsageError("name the tasks, or use --all")
    suite = bundled_suite() if folder is None else Suite(folder)
    names = suite.names() if every else names
    for name in names:
        if not _exists(name, suite):
            find_task(name, suite)  # says which there are
    return [Subject(Path(name).resolve().name, partial(find_task, name, suite)) for name in names]


def _exists(name: str, suite: Suite) -> bool:
    """Whether there is such a task; what is wrong with it is the gate ``lint``'s business."""
    return (Path(name) / "task.toml").is_file() or name in suite.names()


def _plain(done: Checked) -> dict[str, Any]:
    verdicts = {
        gate: {"passed": judged.passed, "detail": judged.detail}
        for gate, judged in done.gates.items()
    }
    return {
        "name": done.name,
        "gates": {gate: verdicts[gate] for gate in GATES if gate in verdicts},
    }


def _table(answer: Answer, checked: Sequence[Checked], gates: Sequence[str]) -> None:
    """Task by gate, then what the gates that did not pass have to say."""
    width = max([len(done.name) for done in checked] + [4])
    answer.line("  ".join([f"{'task':<{width}}", *gates]))
    for done in checked:
        cells = [f"{_word(done.gates[gate]):<{len(gate)}}" for gate in gates]
        answer.line("  ".join([f"{done.name:<{width}}", *cells]).rstrip())
    for done in checked:
        for gate in gates:
            judged = done.gates[gate]
            if judged.passed is False or judged.fault:
                answer.line(f"\n{done.name}: {gate} {_SAID[judged.passed]}")
                answer.line(
                    "\n".join(f"    {line}" for line in printable(judged.detail).splitlines())
                )


_SAID = {True: "passed", False: "failed", None: "could not be judged"}


def _word(judged: Judgement) -> str:
    if judged.passed is None:
        return "?" if judged.fault else "-"
    return "ok" if judged.passed else "FAIL"


def _code(checked: Sequence[Checked]) -> int:
    """3 something could not be judged, else 1 a gate failed, else 0."""
    judgements = [judged for done in checked for judged in done.gates.values()]
    if any(judged.fault for judged in judgements):
        return 3
    return 0 if all(judged.passed for judged in judgements) else 1
