"""`cua-gym run`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cua_gym.cli import main
from cua_gym.cli.progress import printable
from cua_gym.machine import start
from cua_gym.task import Suite

AGENTS = "tests.run.agents"


def run(*words: str) -> Result:
    """`cua-gym run type-word` and ``words``."""
    return CliRunner().invoke(main, ["run", "type-word", *words])


@pytest.mark.usefixtures("suite")
class TestExitCodes:
    """Each kind of result has a code of its own."""

    @pytest.mark.parametrize(
        ("agent", "code", "outcome", "score"),
        [
            (f"{AGENTS}:Worker", 0, "scored", 1.0),
            ("null", 1, "scored", 0.0),
            ("give-up", 1, "scored", 0.0),
            (f"{AGENTS}:HalfWorker", 1, "scored", 0.5),
            (f"{AGENTS}:Crasher", 3, "unscored", None),
        ],
    )
    def test_one_attempt(self, agent: str, code: int, outcome: str, score: float | None) -> None:
        """0 passed, 1 scored lower, 3 unscored; the answer on standard output is one object."""
        result = run("--agent", agent, "--json")
        assert result.exit_code == code, result.output
        (row,) = json.loads(result.stdout)["outcomes"]
        assert row["task"] == "type-word"
        assert row["agent"] == agent
        assert row["seed"] == 0
        assert (row["outcome"], row["score"]) == (outcome, score)
        assert row["success"] is (code == 0)
        assert (row["reason"], row["phase"]) == (("agent", "act") if code == 3 else (None, None))
        assert (Path(row["folder"]) / "result.json").exists()

    def test_unscored_wins_over_low(self) -> None:
        """3 wins over 1, which wins over 0."""
        both = ["--agent", "null", "--agent", f"{AGENTS}:Crasher"]
        assert run(*both).exit_code == 3
        assert run("--agent", "null", "--agent", f"{AGENTS}:Worker").exit_code == 1

    def test_interrupt(self) -> None:
        """Ctrl-C has a code of its own, and what was done before is told."""
        result = run("--agent", f"{AGENTS}:Worker", "--agent", f"{AGENTS}:Interrupted", "--json")
        assert result.exit_code == 130
        assert [row["score"] for row in json.loads(result.stdout)["outcomes"]] == [1.0]
        assert "interrupted, 1 attempts not finished" in result.stderr


@pytest.mark.usefixtures("suite")
class TestOutput:
    """What a person and a program read."""

    def test_last_line_is_the_attempt(self) -> None:
        """With one attempt, the last line names its folder, which holds the record."""
        result = run("--agent", f"{AGENTS}:Worker")
        last = result.stdout.splitlines()[-1]
        assert last.startswith("run: /")
        assert (Path(last.removeprefix("run: ")) / "recording.mp4").exists()
        assert "scored 1.0 (success)" in result.stdout

    def test_last_line_is_the_run(self) -> None:
        """With several, it names the folder of them all, after how many there were."""
        result = run("--agent", "null", "--agent", f"{AGENTS}:Crasher", "--seed", "7")
        *_, summary, last = result.stdout.splitlines()
        assert summary == "1 scored, mean score 0.000; 1 unscored; 0 not made"
        folder = Path(last.removeprefix("run: "))
        assert {p.name for p in folder.joinpath("type-word").iterdir()} == {
            "null", "tests.run.agents-Crasher",
        }  # fmt: skip

    def test_an_agent_that_prints(self) -> None:
        """What an agent prints goes to standard error, not into the answer."""
        result = run("--agent", f"{AGENTS}:Printer", "--json")
        assert json.loads(result.stdout)["outcomes"][0]["score"] == 1.0
        assert "thinking ..." in result.stderr

    def test_progress_has_no_control_characters(self) -> None:
        """Progress is plain lines, so it reads well in a file."""
        result = run("--agent", "null", "--repeat", "2", "--json")
        assert "[2/2] type-word: agent null, seed 0" in result.stderr
        assert printable(result.stderr) == result.stderr

    def test_gates_that_were_not_passed(self) -> None:
        """A task that has not passed its gates is told of, once, and in each outcome."""
        result = run("--agent", "null", "--repeat", "2", "--json")
        outcomes = json.loads(result.stdout)["outcomes"]
        assert [row["gates"] for row in outcomes] == ["missing", "missing"]
        assert result.stderr.count("type-word: its scores do not count yet") == 1

    def test_a_failed_checkpoint_says_why(self) -> None:
        """Below a low score stands what did not hold."""
        assert "word-saved:" in run("--agent", "null").stdout


class TestUsage:
    """Mistakes on the command line."""

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["run"], "Missing argument"),
            (["run", "type-word", "--agent", "orcale"], "did you mean oracle"),
            (["run", "type-word", "--agent", "nowhere:X"], "No module named 'nowhere'"),
            (["run", "type-word", "--agent", ".x:Y"], "relative import"),
            (["run", "type-word", "--agent", "this_raises:X"], "RuntimeError: at import"),
            (["run", "type-word", "--runs", "/proc/nope"], "/proc"),
            (["run", "type-word", "--seed", "-1"], "not in the range"),
            (["run", "type-word", "--repeat", "0"], "not in the range"),
            (["run", "typo-word"], "did you mean type-word"),
            (["run", "type-word", "--sed", "1"], "No such option"),
            (["rnu"], "did you mean run"),
            (["frobnicate"], "try run, serve"),
        ],
    )
    def test_code_2_and_a_hint(self, suite: Suite, words: list[str], message: str) -> None:
        """Exit code 2, the reason on standard error, nothing on standard output, no run folder."""
        Path("this_raises.py").write_text('raise RuntimeError("at import")')
        result = CliRunner().invoke(main, words)
        assert result.exit_code == 2
        assert message in result.stderr
        assert result.stdout == ""
        assert not Path("runs").exists()
        assert suite

    def test_a_bad_task_among_good_ones(self, suite: Suite) -> None:
        """No attempt is made when one of the tasks is unknown."""
        result = CliRunner().invoke(main, ["run", "type-word", "nope", "--agent", "null"])
        assert result.exit_code == 2
        assert not Path("runs").exists()
        assert suite


@pytest.mark.usefixtures("suite")
def test_a_fault_of_ours_is_not_a_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every attempt failing for want of a machine exits 3, and no score is given."""

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr(start, "start_machine", broken)
    monkeypatch.setattr("cua_gym.machine.fake.FakeMachine.grab", broken)
    result = run("--agent", "null", "--repeat", "2", "--json")
    assert result.exit_code == 3
    rows = json.loads(result.stdout)["outcomes"]
    assert [(r["outcome"], r["score"], r["reason"]) for r in rows] == [
        ("unscored", None, "machine")
    ] * 2
