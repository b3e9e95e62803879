"""`cua-gym task`: list, show, begin and check tasks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cua_gym.cli.answer import answering
from cua_gym.cli.check import check
from cua_gym.cli.options import suite_option

if TYPE_CHECKING:
    from cua_gym.task import Suite, Task

__all__ = ["task"]


@click.group()
def task() -> None:
    """List, show, begin and check tasks."""


task.add_command(check)


@task.command(name="list")
@suite_option
@click.option("--stats", is_flag=True, help="How the tasks are distributed, instead.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def list_(folder: Path | None, stats: bool, as_json: bool) -> None:
    """List the tasks of a suite."""
    with answering() as answer:
        tasks = _suite(folder).tasks()
        if stats:
            answer.line(_distribution(tasks, as_json))
            return
        if as_json:
            answer.line(json.dumps({"tasks": [_brief(t) for t in tasks]}))
            return
        width = max((len(t.name) for t in tasks), default=0)
        for one in tasks:
            answer.line(f"{one.name:<{width}}  {one.area:<12} {one.tool_policy:<6} {one.title}")


def _distribution(tasks: Sequence[Task], as_json: bool) -> str:
    """Counts, and for a person bars."""
    from cua_gym.gates.record import standing
    from cua_gym.task.statistics import distribution

    sides = distribution(tasks)
    sides["gates"] = dict(sorted(Counter(standing(task).kind for task in tasks).items()))
    if as_json:
        return json.dumps({"tasks": len(tasks), **sides})
    width = max(len(value) for counts in sides.values() for value in counts)
    lines = [f"{len(tasks)} tasks"]
    for side, counts in sides.items():
        lines += ["", side.replace("_", " ")]
        lines += [f"  {value:<{width}}  {n:>3}  {'#' * n}".rstrip() for value, n in counts.items()]
    return "\n".join(lines)


@task.command()
@click.argument("name", metavar="TASK")
@suite_option
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def show(name: str, folder: Path | None, seed: int, as_json: bool) -> None:
    """Show what the agent is told, and how it is graded, for one seed.

    TASK is a task's name or its folder. Two other processes must make the same of the seed.
    """
    from cua_gym.task import find_task
    from cua_gym.task.elsewhere import try_elsewhere

    with answering() as answer:
        one = find_task(name, _suite(folder))
        variation = one.variation(seed)
        try_elsewhere(one, sorted({0, 1, 2, seed}))
        told = {
            **_brief(one),
            "title": one.title,
            "level": one.level,
            "measures": one.measures,
            "limits": {"steps": one.limits.steps, "seconds": one.limits.seconds},
            "seed": seed,
            "params": dict(variation.params),
            "instruction": variation.instruction,
            "checkpoints": [{"id": c.id, "weight": c.weight} for c in one.checkpoints],
            "folder": str(one.folder),
        }
        if as_json:
            answer.line(json.dumps(told))
            return
        answer.line(f"{one.name}: {one.title}\n\n{variation.instruction}\n")
        for key in ("area", "tool_policy", "backend", "level", "measures", "limits", "params"):
            answer.line(f"{key:<12} {told[key]}")
        for point in one.checkpoints:
            answer.line(f"{'checkpoint':<12} {point.weight:+.2f} {point.id}")
        answer.line(f"{'folder':<12} {one.folder}")


@task.command()
@click.argument("name")
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("tasks"),
    show_default=True,
    help="Folder that gets the new task's folder.",
)
def new(name: str, into: Path) -> None:
    """Begin a task: a small whole one that validates and whose oracle solves it."""
    from cua_gym.task import new_task

    path = new_task(into, name)
    click.echo(f"wrote {path}; edit it, then: cua-gym run ./{path} --agent oracle")


def _suite(folder: Path | None) -> Suite:
    from cua_gym.task import Suite, bundled_suite

    return bundled_suite() if folder is None else Suite(folder)


def _brief(one: Task) -> dict[str, Any]:
    return {
        "name": one.name,
        "area": one.area,
        "tool_policy": one.tool_policy,
        "backend": one.backend,
    }
