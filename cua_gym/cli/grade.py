"""`cua-gym grade`: grade recorded runs again, from their evidence alone."""

from __future__ import annotations

import json
from pathlib import Path

import click

from cua_gym.cli.run import exit_code, show_row

__all__ = ["grade"]


@click.command()
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--save", is_flag=True, help="Put the new outcomes into each result.json.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
@click.pass_context
def grade(ctx: click.Context, run: Path, save: bool, as_json: bool) -> None:
    """Grade recorded runs again, from their evidence alone.

    RUN is the folder of one attempt, of a run, or of many runs. No machine is needed, and nothing
    is changed without --save.

    Exit codes: as of `cua-gym run`.
    """
    from cua_gym.record.layout import attempts
    from cua_gym.run.regrade import regrade

    rows = []
    for folder in attempts(run):
        row = regrade(folder, save=save, note=lambda text: click.echo(text, err=True))
        rows.append(row)
        if not as_json:
            click.echo(f"{show_row(row)}\n    {folder.path}")
    if not rows:
        raise click.BadParameter(f"no attempt was recorded in {run}", param_hint="'RUN'")
    if as_json:
        click.echo(json.dumps({"outcomes": [row.to_dict() for row in rows]}))
    ctx.exit(exit_code(rows))
