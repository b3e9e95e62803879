"""`cua-gym bridge`: the stdio end of a running episode's bridge."""

from __future__ import annotations

import click

__all__ = ["bridge"]


@click.command(
    epilog="""\b
Examples:
  CUA_GYM_TOKEN=... cua-gym bridge desktop --episode http://127.0.0.1:8000
  CUA_GYM_TOKEN=... cua-gym bridge shell --episode http://127.0.0.1:8000

`cua-gym serve` prints both, ready to be pasted into an MCP client's configuration."""
)
@click.argument("which", type=click.Choice(["desktop", "shell"]))
@click.option(
    "--episode",
    "link",
    required=True,
    metavar="URL",
    help="Where `cua-gym serve` serves it. The token stands in CUA_GYM_TOKEN, or behind #.",
)
def bridge(which: str, link: str) -> None:
    """An MCP server on standard input and output, for clients that speak only stdio.

    It ends when its client does. Exit codes: 0 the client went, 2 a wrong link, 3 nothing answers.
    """
    from cua_gym.bridge.stdio import serve_stdio, split_link

    try:
        origin, token = split_link(link)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--episode'") from error
    serve_stdio(f"{origin}/{which}", token)
