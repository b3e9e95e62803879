"""The agents on models: whole attempts against each wire, and the fate of bad answers."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from cua_gym.agent import conversation
from cua_gym.agent.load import load_agent
from cua_gym.errors import AgentError
from cua_gym.record.layout import RunFolder
from cua_gym.record.replay import Replay
from cua_gym.run.row import Row
from cua_gym.task import Task
from tests.agent.conftest import KEY, MODEL, Serve
from tests.agent.wires import Anthropic, Wire
from tests.run.test_local import plan, rows_of


@pytest.fixture
def attempt(wire: Wire, toy_task: Task, tmp_path: Path) -> Callable[[], Row]:
    """Makes one attempt at the toy task."""

    def run() -> Row:
        (row,) = rows_of(plan(toy_task, tmp_path / "runs", type(wire).make))
        return row

    return run


def work(task: Task) -> tuple[Any, Any]:
    """What does the toy task."""
    word = task.variation(0).params["word"]
    return ("type", {"text": word}), ("key", {"combo": "ctrl+s"})


def actions(row: Row) -> list[dict[str, Any]]:
    """The recorded actions."""
    assert row.folder is not None
    return [step.action for step in Replay(RunFolder(row.folder)).steps() if step.action]


def failed(row: Row) -> str:
    """The cause of an attempt that is the agent's fault."""
    assert (row.outcome.kind, row.outcome.reason) == ("unscored", "agent"), row.outcome
    assert row.outcome.cause is not None
    assert row.outcome.cause.startswith("AgentError: ")
    assert row.folder is not None
    for path in row.folder.rglob("*"):
        if path.is_file():
            assert KEY.encode() not in path.read_bytes(), path
    return row.outcome.cause


def test_it_does_a_task(
    wire: Wire, serve: Serve, toy_task: Task, attempt: Callable[[], Row]
) -> None:
    """Instruction and picture go out, calls come back, their results go out: scored 1.0."""
    server = serve(wire.does(*work(toy_task)), wire.does(("submit", {})))
    row = attempt()
    assert (row.outcome.score, row.outcome.success) == (1.0, True)
    assert [action["type"] for action in actions(row)] == ["type", "key", "submit"]
    first, second = server.asked
    assert first.path == wire.path
    assert first.body["model"] == MODEL
    assert toy_task.variation(0).instruction.strip() in wire.first_text(first.body)
    (picture,) = wire.pictures(first.body)
    assert Image.open(io.BytesIO(base64.b64decode(picture))).size == (640, 480)
    assert {"submit", "give_up"} <= wire.tools(first.body)
    assert not wire.tools(first.body) & {"bash", "shell"}
    assert len(wire.pictures(second.body)) == 2
    assert wire.pictures(second.body)[1] != picture
    assert not any(wrong for wrong, _ in wire.results(second.body))
    assert first.body.get("store") in (None, False)


def test_nothing_of_the_environment_is_kept(
    wire: Wire, serve: Serve, toy_task: Task, attempt: Callable[[], Row]
) -> None:
    """Key and endpoint are in no file of the run, the key in no body; the model is recorded."""
    server = serve(wire.does(*work(toy_task)), wire.does(("submit", {})))
    folder = attempt().folder
    assert folder is not None
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 5
    for secret in (KEY, server.url, server.url.removeprefix("http://")):
        assert not [path for path in files if secret.encode() in path.read_bytes()]
    assert json.loads((folder / "result.json").read_text())["usage"]["model"] == MODEL
    for asked in server.asked:
        assert KEY not in json.dumps(asked.body)
        assert KEY in str(asked.headers)


def test_what_is_spent(wire: Wire, serve: Serve, toy_task: Task, tmp_path: Path) -> None:
    """Every answer counts, cached input included."""
    serve(wire.breaks_off(), wire.does(*work(toy_task)), wire.does(("submit", {})))
    made = []

    def make() -> Any:
        made.append(type(wire).make())
        return made[0]

    rows_of(plan(toy_task, tmp_path / "runs", make))
    usage = made[0].usage
    input_tokens, output_tokens = wire.tokens
    assert usage.model
    assert usage.calls == 3
    assert (usage.input_tokens, usage.output_tokens) == (3 * input_tokens, 3 * output_tokens)
    assert usage.model_s > 0


# answers that are no calls


def test_words_are_a_submission(wire: Wire, serve: Serve, attempt: Callable[[], Row]) -> None:
    """Text alone ends the attempt as its answer."""
    serve(wire.says("It says 42.\n"))
    row = attempt()
    assert row.outcome.kind == "scored"
    assert actions(row) == [{"type": "submit", "answer": "It says 42."}]


def test_a_refusal_is_scored(wire: Wire, serve: Serve, attempt: Callable[[], Row]) -> None:
    """A model that refuses gives up, with its reason."""
    serve(wire.refuses("I will not type that."))
    row = attempt()
    assert row.outcome.score == 0.0
    assert actions(row) == [
        {"type": "give_up", "reason": "the model refused: I will not type that."}
    ]


def test_giving_up(wire: Wire, serve: Serve, attempt: Callable[[], Row]) -> None:
    """So does one that says that it cannot."""
    serve(wire.does(("give_up", {"reason": "no keyboard"})))
    assert actions(attempt()) == [{"type": "give_up", "reason": "no keyboard"}]


@pytest.mark.parametrize("broken", ["breaks_off", "empty"])
def test_three_broken_answers_are_the_agents_fault(
    wire: Wire, serve: Serve, attempt: Callable[[], Row], broken: str
) -> None:
    """A model that never finishes a sentence has no score."""
    server = serve(getattr(wire, broken)())
    assert "3 answers in a row broke off or were empty" in failed(attempt())
    assert len(server.asked) == 3


# calls that cannot be done


def test_four_bad_calls_are_the_agents_fault(
    wire: Wire, serve: Serve, attempt: Callable[[], Row]
) -> None:
    """Three in a row are told; the next ends the attempt without a score."""
    server = serve(wire.malformed())
    assert "4 malformed calls in a row" in failed(attempt())
    assert len(server.asked) == 4


def test_what_follows_a_bad_call_is_not_done(
    wire: Wire, serve: Serve, toy_task: Task, attempt: Callable[[], Row]
) -> None:
    """Calls after the first that fails are told that they were not executed; those before were."""
    word, save = work(toy_task)
    server = serve(
        wire.does(word, ("teleport", {}), ("submit", {})), wire.does(save, ("submit", {}))
    )
    row = attempt()
    assert row.outcome.score == 1.0
    assert [action["type"] for action in actions(row)] == ["type", "key", "submit"]
    told = wire.results(server.asked[1].body)
    assert [wrong for wrong, _ in told] == [False, True, True]
    assert told[2][1] == conversation.SKIPPED


# faults


def test_a_fault_has_no_score(wire: Wire, serve: Serve, attempt: Callable[[], Row]) -> None:
    """A refused key is told without the key, in the outcome and in every file."""
    serve((401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}))
    assert "Incorrect API key provided" in failed(attempt())


def test_nobody_listens(
    wire: Wire, environment: pytest.MonkeyPatch, attempt: Callable[[], Row]
) -> None:
    """A refused connection is told as such, after the client's own retries."""
    for provider, path in (("ANTHROPIC", ""), ("OPENAI", "/v1")):
        environment.setenv(f"{provider}_BASE_URL", f"http://127.0.0.1:9{path}")
    assert "Connection error" in failed(attempt())


def test_without_the_package(
    wire: Wire, environment: pytest.MonkeyPatch, attempt: Callable[[], Row]
) -> None:
    """The error says what to install."""
    package = "anthropic" if isinstance(wire, Anthropic) else "openai"
    environment.setitem(__import__("sys").modules, package, None)
    assert "pip install cua-gym[models]" in failed(attempt())


@pytest.mark.parametrize(
    ("api", "kind"),
    [("", "ResponsesAgent"), ("responses", "ResponsesAgent"), ("chat", "ChatAgent")],
)
def test_which_openai(environment: pytest.MonkeyPatch, api: str, kind: str) -> None:
    """One variable says which API is spoken."""
    environment.setenv("CUA_GYM_OPENAI_API", api)
    assert type(load_agent("openai")()).__name__ == kind


def test_which_openai_is_wrong(environment: pytest.MonkeyPatch) -> None:
    """A wrong one is explained."""
    environment.setenv("CUA_GYM_OPENAI_API", "completions")
    with pytest.raises(AgentError, match="responses or chat, not 'completions'"):
        load_agent("openai")()
