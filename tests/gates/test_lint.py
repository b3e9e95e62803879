"""What is wrong with a task that loads."""

from __future__ import annotations

from pathlib import Path

import pytest

from cua_gym.gates.lint import lint

from .sound import SOUND, Edit, make_task, rule


def faults(tmp_path: Path, edit: Edit) -> str:
    """The faults, or nothing."""
    judged = lint(make_task(tmp_path, edit))
    return "" if judged.passed else judged.detail


def oracle(line: str) -> Edit:
    """The oracle with a first line."""
    return Edit(
        replace={"oracle.py": (('    yield Key("', f'    {line}\n    yield Key("'),)},
    )


def command(text: str, kind: str = "evidence") -> Edit:
    """One more command."""
    table = f"[[{kind}]]\n" + ('name = "said"\ncommand' if kind == "evidence" else "run")
    first = '[[evidence]]\nname = "note"'
    return Edit(replace={"task.toml": ((first, f"{table} = '''{text}'''\n\n{first}"),)})


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (rule("len({*text.split()}) == hash(expected)"), "hidden/checks.py:15: hash"),
        (oracle("import random; yield Type(random.choice('ab'))"), "oracle.py:14: random.choice"),
        (oracle("import datetime; print(datetime.date.today())"), "datetime.date.today"),
        (oracle("yield Type('https://www.weather.com/')"), "live web"),
        (Edit(add={"hidden/mutants.py": "import time\nX = time.time()\n"}), "hidden/mutants.py:2"),
        (command("date +%F"), "evidence said asks for the date of today"),
        (command("test -e x && echo $(date)"), "asks for the date"),
        (command("echo `date +%s` > ~/x", "setup"), "setup step 2 asks for the date"),
        (Edit(replace={"task.toml": (("steps = 3", "steps = 8"),)}), "leaves no room"),
    ],
)  # fmt: skip
def test_faults(tmp_path: Path, edit: Edit, words: str) -> None:
    """What drifts from run to run and from day to day; limits that only the shortest way keeps."""
    assert words in faults(tmp_path, edit)


@pytest.mark.parametrize(
    "edit",
    [
        SOUND,
        oracle("import time; print(time.monotonic())"),
        oracle("yield Type('http://shop.test/ and http://localhost:8000')"),
        command("date -d '2024-02-01' +%A"),
        command("date --reference=/etc/passwd +%F"),
        command("update; mydate=3; ls /var/date"),
        command("touch -d 2024-01-01 ~/x && cat updates", "setup"),
    ],
)
def test_no_fault(tmp_path: Path, edit: Edit) -> None:
    """Waiting by the clock, pages within the machine, dates that stand still."""
    assert faults(tmp_path, edit) == ""


ANSWERED = (
    'evidence = "note"\nargs = { expected = "{answer.sum}", whitespace = "trim" }',
    'evidence = "answer"\nargs = { expected = "{answer.sum}" }',
)


@pytest.mark.parametrize(
    ("instruction", "checkpoints", "words"),
    [
        ((), (ANSWERED,), "only its answer is looked at"),
        ((("Type their sum", "Tell their sum"), ("save it as /home/user/note.txt with Ctrl+S",
          "submit it")), (ANSWERED,), ""),
        ((), (('evidence = "note"', 'evidence = "submission"'),), "how the attempt ended"),
        ((), (("{answer.sum}", "Done."), ('"note"', '"answer"'), ("\"answer.sum\" = ", "# ")),
         "pays for the answer 'done'"),
    ],
)  # fmt: skip
def test_claims(
    tmp_path: Path,
    instruction: tuple[tuple[str, str], ...],
    checkpoints: tuple[tuple[str, str], ...],
    words: str,
) -> None:
    """Work that is graded by what the agent says of it; a question may be."""
    edit = Edit(replace={"task.toml": instruction, "hidden/checkpoints.toml": checkpoints})
    said = faults(tmp_path, edit)
    assert words in said
    assert bool(words) == bool(said)
