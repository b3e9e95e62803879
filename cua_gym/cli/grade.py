"""`cua-gym grade`: grade recorded runs again, from their evidence alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cua_gym.cli.progress import printable
from cua_gym.cli.run import exit_code, show_row

if TYPE_CHECKING:
    from cua_gym.record.layout import RunFolder
    from cua_gym.run.differences import Difference
    from cua_gym.run.regrade import Regraded

__all__ = ["grade"]


@click.command()
@click.argument(
    "runs",
    metavar="RUN...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@click.option("--save", is_flag=True, help="Write each new outcome beside the old one.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
@click.pass_context
def grade(ctx: click.Context, runs: Sequence[Path], save: bool, as_json: bool) -> None:
    """Grade recorded runs again, from their evidence alone.

    RUN is the folder of one attempt, of a run, or of many runs. Each outcome is compared with the
    recorded one, checkpoint by checkpoint. No machine is needed, and nothing is changed without
    --save; with it, the new outcome lies beside the old one as result-2.json, result-3.json, ...

    Exit codes: as of `cua-gym run`.
    """
    from cua_gym.run.regrade import regrade

    done = []
    for attempt in regrade(_attempts(runs), save=save):
        done.append(attempt)
        if not as_json:
            click.echo(_show(attempt))
    if as_json:
        told = {"outcomes": [attempt.to_dict() for attempt in done], "summary": _counts(done)}
        click.echo(json.dumps(told))
    else:
        click.echo(_summary(done))
    ctx.exit(exit_code([attempt.row for attempt in done]))


def _attempts(runs: Sequence[Path]) -> list[RunFolder]:
    """Every attempt of the folders, once."""
    from cua_gym.record.layout import attempts

    found = {}
    for run in runs:
        here = {folder.path.resolve(): folder for folder in attempts(run)}
        if not here:
            raise click.BadParameter(f"no attempt was recorded in {run}", param_hint="'RUN...'")
        found.update(here)
    return list(found.values())


def _show(attempt: Regraded) -> str:
    row = attempt.row
    if not attempt.changed:
        lines = [show_row(row)]
        if attempt.before is None:
            lines.append("    no outcome was recorded that it could be compared with")
    else:
        lines = [
            f"{row.task}  {row.agent}  seed {row.seed}  {attempt.before} -> {row.outcome}",
            *(f"    {line}" for one in attempt.differences for line in _difference(one)),
            *(f"    why: {reason}" for reason in attempt.reasons),
        ]
    if attempt.saved is not None:
        lines.append(f"    saved: {attempt.saved.name}")
    return printable("\n".join([*lines, f"    {row.folder}"]))


def _difference(one: Difference) -> Iterator[str]:
    before, after = one.before, one.after
    if before is None and after is not None:
        yield f"{one.id}: new, {after.value:g} (weight {after.weight:g}): {after.message}"
    elif after is None and before is not None:
        yield f"{one.id}: gone, was {before.value:g} (weight {before.weight:g}): {before.message}"
    elif before is not None and after is not None:
        yield f"{one.id}: {before.value:g} -> {after.value:g}"
        if one.kind == "verdict":
            yield f"    was: {before.message}"
            yield f"    now: {after.message}"
        if before.weight != after.weight:
            yield f"    weight {before.weight:g} -> {after.weight:g}"
        if before.required != after.required:
            yield f"    {'no longer ' if before.required else ''}required for success"


def _counts(done: Sequence[Regraded]) -> dict[str, int]:
    return {
        "attempts": len(done),
        "changed": sum(attempt.changed for attempt in done),
        "unscored": sum(attempt.row.outcome.kind == "unscored" for attempt in done),
        "saved": sum(attempt.saved is not None for attempt in done),
    }


def _summary(done: Sequence[Regraded]) -> str:
    counts = _counts(done)
    told = [
        _count(counts["attempts"], "attempt"),
        f"{_count(counts['changed'], 'verdict')} changed",
        f"{counts['unscored']} unscored",
        *([f"{_count(counts['saved'], 'new outcome')} saved"] if counts["saved"] else []),
    ]
    return ", ".join(told)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
