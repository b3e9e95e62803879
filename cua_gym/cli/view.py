"""`cua-gym view`: a running episode in the browser."""

from __future__ import annotations

import os
import sys

import click

__all__ = ["view"]


@click.command(
    epilog="""\b
Examples:
  cua-gym view --episode 'http://127.0.0.1:8000/view#TOKEN'
  CUA_GYM_TOKEN=... cua-gym view --episode http://127.0.0.1:8000

`cua-gym serve` prints the link. Without a graphical display it is printed again, with what to do to
open it in a browser elsewhere."""
)
@click.option(
    "--episode",
    "link",
    required=True,
    metavar="LINK",
    help="As `cua-gym serve` prints it. The token stands behind #, or in CUA_GYM_TOKEN.",
)
def view(link: str) -> None:
    """Show a running episode in the browser, where a person can take it over.

    Exit codes: 0 opened or told how to, 2 a wrong link or token, 3 nothing answers.
    """
    import webbrowser

    from cua_gym.bridge.stdio import split_link

    try:
        origin, token = split_link(link)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--episode'") from error
    _knock(origin, token)
    whole = f"{origin}/view#{token}"
    if _has_display() and webbrowser.open(whole):
        click.echo(f"opened {origin}/view")
        return
    port = origin.rpartition(":")[2]
    click.echo(whole)
    click.echo(
        "No browser can be opened here. Open the link in one on this machine, or on yours after\n"
        f"  ssh -N -L {port}:127.0.0.1:{port} THIS_MACHINE\n"
        "with the same port at both ends. Who has the link can watch and take over.",
        err=True,
    )


def _knock(origin: str, token: str) -> None:
    import httpx2

    from cua_gym.bridge.stdio import Unreachable

    headers = {"Authorization": f"Bearer {token}"}
    try:
        answer = httpx2.get(f"{origin}/view/state", headers=headers, timeout=10, trust_env=False)
    except httpx2.InvalidURL as error:
        raise click.BadParameter(str(error), param_hint="'--episode'") from error
    except httpx2.HTTPError as error:
        raise Unreachable(f"no episode is served at {origin} ({error}); it may be over") from error
    if answer.status_code == 401:
        raise click.BadParameter(
            f"{origin} does not know this token; it belongs to another episode, or to a bridge",
            param_hint="'--episode'",
        )
    if answer.status_code != 200:
        raise Unreachable(f"{origin} answers {answer.status_code}; that is no live view")


def _has_display() -> bool:
    if sys.platform in ("darwin", "win32"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
