"""The command line: one file per command, loaded when it is asked for.

Exit codes of every command: 0 all well, 1 it worked and the answer is bad news (something scored
lower, a check failed), 2 a usage or task error, 3 something of ours failed, 130 interrupted.
"""

from __future__ import annotations

import difflib
import importlib
from typing import Any, cast

import click

from cua_gym.errors import CuaGymError, ImageError, TaskError

__all__ = ["main"]

_COMMANDS = {
    "run": "Let agents attempt tasks, and grade what they did.",
    "serve": "Serve an episode to agents outside, over MCP.",
    "view": "Show a running episode in the browser; take it over.",
    "bridge": "The stdio end of a served episode, for MCP clients.",
    "task": "List, show, begin and check tasks.",
    "image": "Build, check and export the disks that machines start from.",
    "grade": "Grade recorded runs again, from their evidence alone.",
    "doctor": "Say what this machine can do, and what to do about what it cannot.",
    "clean": "Remove saved states and leftovers of dead processes.",
}


class _AuthorsFault(click.ClickException):
    """A task or image error: what was asked for cannot be done."""

    exit_code = 2


class _OurFault(click.ClickException):
    """A machine or grading error."""

    exit_code = 3


class _Commands(click.Group):
    """Loads a command's module when the command is used; help needs none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"cua_gym.cli.{cmd_name}")
        return cast(click.Command, getattr(module, cmd_name))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in _COMMANDS:
            near = difflib.get_close_matches(args[0], _COMMANDS, n=2)
            hint = f"did you mean {' or '.join(near)}?" if near else f"try {', '.join(_COMMANDS)}"
            raise click.UsageError(f"no command is called {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except CuaGymError as error:
            authors = isinstance(error, TaskError | ImageError)
            raise (_AuthorsFault if authors else _OurFault)(str(error)) from error
        except KeyboardInterrupt:
            # click would exit with 1, which means something else here.
            click.echo("interrupted", err=True)
            ctx.exit(130)


@click.group(cls=_Commands)
@click.version_option(package_name="cua-gym", prog_name="cua-gym")
def main() -> None:
    """Whole computers as environments: run tasks on them, record, and grade."""
