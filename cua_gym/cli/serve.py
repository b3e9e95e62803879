"""`cua-gym serve`: one episode, for agents outside."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal

import click

from cua_gym.cli.answer import answering
from cua_gym.cli.options import backend_option, runs_option, suite_option
from cua_gym.cli.progress import Progress

if TYPE_CHECKING:
    from cua_gym.bridge.serve import Served
    from cua_gym.episode import Episode

__all__ = ["serve"]


@click.command(
    epilog="""\b
Examples:
  cua-gym serve tidy-folder
  cua-gym serve tidy-folder --seed 7 --http 127.0.0.1:8000
  cua-gym serve tidy-folder --json > served.jsonl &"""
)
@click.argument("task")
@click.option(
    "--http",
    default="127.0.0.1:0",
    show_default=True,
    metavar="HOST:PORT",
    help="Where to listen, on this machine only; port 0 takes a free one.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Chooses the task's variation.",
)
@click.option("--agent", default="outside", show_default=True, help="Its name in the record.")
@backend_option
@runs_option
@suite_option
@click.option(
    "--json", "as_json", is_flag=True, help="Two lines of JSON: when it is ready, and the outcome."
)
@click.pass_context
def serve(
    ctx: click.Context,
    task: str,
    http: str,
    seed: int,
    agent: str,
    backend: Literal["qemu", "x11"] | None,
    runs: Path,
    folder: Path | None,
    as_json: bool,
) -> None:
    """Prepare an episode of TASK and serve it to MCP clients until it is submitted and graded.

    It prints what an MCP client's configuration needs, and a link to look on.

    Exit codes: as of `cua-gym run`; 130 interrupted.
    """
    from cua_gym.bridge.serve import Served, bound
    from cua_gym.cli.run import exit_code, new_run, show_row
    from cua_gym.episode import Episode
    from cua_gym.grading.outcome import Outcome
    from cua_gym.record.layout import RunFolder
    from cua_gym.run.row import Row
    from cua_gym.task import Suite, find_task

    port = _loopback_port(http)
    progress = Progress()
    with answering() as answer:
        found = find_task(task, None if folder is None else Suite(folder)).on(backend)
        variation = found.variation(seed)
        try:
            at = bound(port)
        except OSError as error:
            raise click.BadParameter(str(error.strerror), param_hint="'--http'") from error
        place = RunFolder.create(runs, new_run(runs), variation.task.name, agent)
        episode = Episode(variation, place, agent=agent)
        served = Served(episode, at=at, until_left=True)
        code = None
        try:
            with _ending_tidily():
                progress.phase(f"{variation.task.name}, seed {seed}")
                episode.prepare(progress.phase)
                with served:
                    ready = _ready_json(served, episode) if as_json else _ready(served, episode)
                    answer.line(ready)
                    _wait(served, episode, progress)
                    progress.phase("grading")
                    outcome = served.judged()
                    episode.close()
        except (KeyboardInterrupt, click.ClickException) as error:
            # Told to stop, or nobody reads what is printed.
            if episode.outcome is None:
                why = error.message if isinstance(error, click.ClickException) else "told to stop"
                episode.fail(Outcome.unscored("stopped", episode.phase, f"the server ended: {why}"))
            if isinstance(error, click.ClickException):
                raise
            code = 130
            assert episode.outcome is not None
            outcome = episode.outcome
        finally:
            served.close()
            episode.close()
        losses = tuple(f"{loss.what}: {loss.message}" for loss in episode.losses)
        row = Row(variation.task.name, agent, seed, outcome, place.path, losses)
        answer.line(json.dumps(row.to_dict()) if as_json else show_row(row))
        if not as_json:
            answer.line(f"run: {place.path.resolve()}")
    ctx.exit(exit_code([row]) if code is None else code)


def _loopback_port(http: str) -> int:
    host, colon, port = http.rpartition(":")
    if (colon and host not in ("127.0.0.1", "localhost")) or not port.isdecimal():
        raise click.BadParameter(
            f"{http!r} is no address like 127.0.0.1:8000; only this machine is served (to reach it "
            "from elsewhere forward the port, as ssh -L does)",
            param_hint="'--http'",
        )
    if int(port) > 65535:
        raise click.BadParameter(f"there is no port {port}", param_hint="'--http'")
    return int(port)


@contextmanager
def _ending_tidily() -> Iterator[None]:
    """SIGTERM and SIGHUP are as Ctrl-C: the outcome is written, the machine given back."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {s: signal.signal(s, interrupt) for s in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(served: Served, episode: Episode, progress: Progress) -> None:
    told = 0
    while not served.wait(1.0):
        if episode.steps != told:
            told = episode.steps
            progress.phase(f"  step {told}/{episode.max_steps}")


def _ready_json(served: Served, episode: Episode) -> str:
    def end(bridge: Any) -> dict[str, str] | None:
        if bridge not in served.bridges:
            return None
        return {"url": served.url(bridge), "token": served.session.token(bridge)}

    return json.dumps(
        {
            "desktop": end("desktop"),
            "shell": end("shell"),
            "view": served.view_link,
            "folder": str(episode.folder.path.resolve()),
        }
    )


def _ready(served: Served, episode: Episode) -> str:
    from cua_gym.bridge.serve import configuration, stdio_configuration

    http = json.dumps(configuration(served), indent=2)
    stdio = json.dumps(stdio_configuration(served), indent=2)
    return (
        f"{episode.variation.instruction}\n\n"
        f"an MCP client that speaks HTTP takes this:\n{http}\n\n"
        f"one that starts programs takes this:\n{stdio}\n\n"
        f"to look on, and to take over: {served.view_link}\n"
        f"recorded in: {episode.folder.path.resolve()}\n"
        f"waiting for submit or give_up; {episode.max_steps} steps, {episode.max_seconds:g} s"
    )
