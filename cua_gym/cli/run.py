"""`cua-gym run`: let agents attempt tasks, and grade what they did."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from cua_gym.cli.answer import Answer, answering
from cua_gym.cli.options import backend_option, runs_option, suite_option
from cua_gym.cli.progress import Progress, printable

if TYPE_CHECKING:
    from cua_gym.run.local import AgentChoice, Plan
    from cua_gym.run.row import Row
    from cua_gym.task import Task

__all__ = ["exit_code", "new_run", "run", "show_row"]

INTERRUPTED = 130


@click.command(
    epilog="""\b
Examples:
  cua-gym run tidy-folder
  cua-gym run tidy-folder pack-reports --agent oracle --agent null --seed 1 --seed 2
  cua-gym run tidy-folder --agent anthropic --view
  cua-gym run tidy-folder --agent "command: my-cli --mcp-config {mcp_config} {instruction_file}\""""
)
@click.argument("tasks", nargs=-1, required=True, metavar="TASK...")
@click.option(
    "--agent",
    "agents",
    multiple=True,
    default=("oracle",),
    show_default=True,
    metavar="AGENT",
    help="oracle, null, give-up, random, anthropic, openai, human, module:Class, or "
    "'command: PROGRAM {mcp_config} {instruction_file}'; may be repeated.",
)
@click.option(
    "--seed",
    "seeds",
    type=click.IntRange(min=0),
    multiple=True,
    default=(0,),
    show_default=True,
    help="Chooses the task's variation; may be repeated.",
)
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Attempts of each task, agent and seed.",
)
@backend_option
@runs_option
@suite_option
@click.option("--view", is_flag=True, help="Print a link to look on, and to take over.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
@click.pass_context
def run(
    ctx: click.Context,
    tasks: tuple[str, ...],
    agents: tuple[str, ...],
    seeds: tuple[int, ...],
    repeat: int,
    backend: Literal["qemu", "x11"] | None,
    runs: Path,
    folder: Path | None,
    view: bool,
    as_json: bool,
) -> None:
    """Let agents attempt tasks, and grade what they did.

    TASK is a task's name or its folder. One whose gates were not all passed, as it is now, is
    told of; so does the field "gates" of each outcome: passed, partly, missing, stale
    or failed.

    Exit codes: 0 all scored and passed, 1 something scored lower, 2 a usage or task error,
    3 something unscored.
    """
    from cua_gym.run.local import Plan
    from cua_gym.task import Suite, find_task

    progress = Progress()
    with answering() as answer:
        suite = None if folder is None else Suite(folder)
        plan = Plan(
            tasks=[find_task(name, suite).on(backend) for name in tasks],
            agents=_agents(agents),
            runs=runs,
            run=new_run(runs),
            seeds=seeds,
            repeats=repeat,
            phase=progress.phase,
            step=progress.step,
            view=view,
        )
        marks = _marks(plan.tasks)
        rows: list[Row] = []
        code = _make(plan, rows, None if as_json else answer)
        if as_json:
            outcomes = [row.to_dict() | {"gates": marks[row.task]} for row in rows]
            answer.line(json.dumps({"outcomes": outcomes}))
        else:
            if len(plan) > 1:
                answer.line(_summary(rows, len(plan)))
            only = rows[0].folder if len(rows) == 1 else None
            answer.line(f"run: {(only or runs / plan.run).resolve()}")
    ctx.exit(code)


def _marks(tasks: Sequence[Task]) -> dict[str, str]:
    """Whether each task has passed its gates; where it has not, that is told."""
    from cua_gym.gates.record import standing

    marks: dict[str, str] = {}
    for task in tasks:
        stands = standing(task)
        marks[task.name] = stands.kind
        if stands.kind != "passed":
            click.echo(
                f"{task.name}: its scores do not count yet: {stands.message}; "
                f"cua-gym task check {task.name}",
                err=True,
            )
    return marks


def new_run(runs: Path) -> str:
    """Name of a new run below ``runs``, for the command line."""
    from cua_gym.record import layout

    try:
        return layout.new_run(runs, datetime.now(UTC))
    except OSError as error:
        raise click.BadParameter(str(error), param_hint="'--runs'") from error


def _make(plan: Plan, rows: list[Row], answer: Answer | None) -> int:
    """Fill ``rows`` as attempts end; the exit code."""
    from cua_gym.errors import OutOfSpace
    from cua_gym.run.local import run_local

    try:
        for row in run_local(plan):
            rows.append(row)
            if answer is not None:
                answer.line(show_row(row))
    except OutOfSpace as error:
        left = len(plan) - len(rows)
        click.echo(f"stopped, {left} attempts not made: {error}", err=True)
        return 3
    except KeyboardInterrupt:
        click.echo(f"interrupted, {len(plan) - len(rows)} attempts not finished", err=True)
        return INTERRUPTED
    return exit_code(rows)


def _agents(names: Sequence[str]) -> list[AgentChoice]:
    from cua_gym.agent.load import load_agent
    from cua_gym.run.local import AgentChoice

    if "" not in sys.path:
        sys.path.insert(0, "")  # module:Class may lie in the folder one stands in
    try:
        return [AgentChoice(name, load_agent(name)) for name in names]
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--agent'") from error


def exit_code(rows: Sequence[Row]) -> int:
    """0 all scored and passed, 1 something scored lower, 3 something unscored."""
    if any(row.outcome.kind == "unscored" for row in rows):
        return 3
    return 0 if all(row.outcome.success for row in rows) else 1


def show_row(row: Row) -> str:
    """A row as one line, and one more for each checkpoint that did not pass."""
    lines = [f"{row.task}  {row.agent}  seed {row.seed}  {row.outcome}"]
    lines += [
        f"    {point.id}: {point.message}"
        for point in row.outcome.checkpoints
        if point.passed != (point.weight > 0)
    ]
    lines += [f"    not kept: {loss}" for loss in row.losses]
    return printable("\n".join(lines))


def _summary(rows: Sequence[Row], planned: int) -> str:
    """How many, and the mean over what was scored; unscored ones are told, never counted."""
    scores = [row.outcome.score for row in rows if row.outcome.score is not None]
    mean = f", mean score {sum(scores) / len(scores):.3f}" if scores else ""
    unscored = len(rows) - len(scores)
    return f"{len(scores)} scored{mean}; {unscored} unscored; {planned - len(rows)} not made"
