"""Options that several commands take."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["backend_option", "runs_option", "suite_option"]

runs_option = click.option(
    "--runs",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Folder of the recorded runs.",
)

suite_option = click.option(
    "--suite",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with tasks/, evaluators/ and images/; by default the bundled one.",
)

backend_option = click.option(
    "--backend",
    type=click.Choice(["qemu", "x11"]),
    help="Kind of computer: a whole one (qemu, the default), or a light desktop (x11), which a "
    "task must allow.",
)
