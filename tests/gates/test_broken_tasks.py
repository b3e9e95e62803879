"""Ten ways in which tasks are wrong: each is caught by the gate that names the fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from cua_gym.gates.attempts import AttemptStore
from cua_gym.gates.check import Checked, Subject, Terms, check_all
from cua_gym.gates.names import GATES
from cua_gym.gates.play import Player

from .sound import SOUND, Edit, load, make_task, rule


def checked(tmp_path: Path, edit: Edit, terms: Terms) -> Checked:
    """What the gates say of the sound task with an edit."""
    make_task(tmp_path, edit)
    player = Player(AttemptStore(tmp_path / "attempts"), 2, lambda _: None)
    (done,) = check_all([Subject("note-the-sum", lambda: load(tmp_path))], player, terms)
    return done


@pytest.mark.parametrize("seeds", [2])
def test_a_sound_task_passes_every_gate(tmp_path: Path, seeds: int) -> None:
    """Green on all gates, each judged."""
    done = checked(tmp_path, SOUND, Terms(GATES, seeds))
    assert {g: j.detail for g, j in done.gates.items() if not j.passed} == {}
    assert set(done.gates) == set(GATES)
    assert done.gates["oracle"].steps == 3


BROKEN = {
    "prefix match": (
        rule("text.startswith(expected)"),
        {"mutants": "appended"},
    ),
    "accepts the untouched input": (
        Edit(
            replace={
                "hidden/checkpoints.toml": (
                    ("weight = 1.0", "weight = 0.5"),
                    (
                        "[discovered]",
                        '[[checkpoint]]\nid = "prices-there"\nweight = 0.5\n'
                        'check = "files.exists"\nevidence = "prices"\n\n[discovered]',
                    ),
                )
            }
        ),
        {"no-op": "prices-there", "mutants": "although it is worth nothing"},
    ),
    "hidden literal": (
        Edit(
            replace={
                "hidden/checkpoints.toml": (('"{answer.sum}"', '"{answer.sum} Zloty"'),),
                "oracle.py": ((":.2f}", ":.2f} Zloty"),),
            }
        ),
        {"consistency": "Zloty"},
    ),
    "oracle that needs luck": (
        Edit(
            replace={
                "oracle.py": (
                    ("from collections", "import itertools\nfrom collections"),
                    ("def solve", "TURNS = itertools.count()\n\n\ndef solve"),
                    ('Key("ctrl+s")', 'Key("ctrl+a" if next(TURNS) else "ctrl+s")'),
                )
            }
        ),
        {"oracle": "on attempt 2"},
    ),
    "reference copied into inputs": (
        Edit(
            add={
                "hidden/reference.txt": "What the note should look like: a number.\n",
                "inputs/readme.txt": "What the note should look like: a number.\n",
            }
        ),
        {"leaks": "hidden/reference.txt"},
    ),
    "NaN equals 0": (
        rule("not abs(float(text or 0) - float(expected)) > 0.005"),
        {"mutants": "nan"},
    ),
    "an extra field": (
        Edit(
            replace={
                "task.toml": (
                    ("Type their sum", 'Type a JSON object with the key "sum" and their sum'),
                ),
                "oracle.py": ((
                    '''yield Type(f"{sum(params['cents']) / 100:.2f}")''',
                    '''yield Type('{"sum": %.2f, "auditor": 1}' % (sum(params["cents"]) / 100))''',
                ),),
                "hidden/answers.py": ((
                    '''f"{sum(params['cents']) / 100:.2f}"''', "sum(params['cents']) / 100"
                ),),
                "hidden/checkpoints.toml": (
                    ("text.equals", "data.json_value"),
                    (
                        '{ expected = "{answer.sum}", whitespace = "trim" }',
                        '{ expected = { sum = "{answer.sum}", auditor = 1 } }',
                    ),
                ),
            }
        ),
        {"consistency": "auditor"},
    ),
    "accepts a half-done job": (
        Edit(
            replace={
                "task.toml": (("Type their sum,", "Type {item}, a new line and their sum,"),),
                "oracle.py": ((":.2f}", ":.2f}\\n{params['item']}"),),
                **(rule("expected in text.split()").replace or {}),
            },
            add=rule("expected in text.split()").add,
        ),
        {"mutants": "half"},
    ),
    "time-dependent": (
        rule("text == expected and datetime.date.today().year > 2000"),
        {"lint": "hidden/checks.py:15: datetime.date.today differs from run to run"},
    ),
    "reads the agent's claim": (
        Edit(
            replace={
                "task.toml": (("Change nothing else.", 'Then submit "done".'),),
                "oracle.py": (('("ctrl+s")', '("ctrl+s")\n    return "done"'),),
                "hidden/checkpoints.toml": (
                    ('evidence = "note"\nargs = { expected = "{answer.sum}", whitespace = "trim" }',
                     'evidence = "answer"\nargs = { expected = "done" }'),
                    ('[discovered]\n"answer.sum" = "by adding the prices"', ""),
                ),
            }
        ),
        {"lint": "pays for the answer 'done'"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_is_caught(tmp_path: Path, name: str) -> None:
    """The gate that names the fault fails and says so; no other gate does."""
    edit, caught = BROKEN[name]
    gates = [gate for gate in GATES if gate != "random"]
    done = checked(tmp_path, edit, Terms(gates, seeds=1))
    failed = {gate: judged.detail for gate, judged in done.gates.items() if judged.passed is False}
    assert failed.keys() == caught.keys(), failed
    for gate, words in caught.items():
        assert words in failed[gate]
    assert not any(judged.fault for judged in done.gates.values())
