"""What a task says beyond its checkpoints: gates between them, scope, discoveries, the start."""

from __future__ import annotations

from pathlib import Path

import pytest

from cua_gym.errors import TaskError
from cua_gym.task import load_task
from tests.task.conftest import edit

HIDDEN = "hidden/checkpoints.toml"
SECOND = """
[[checkpoint]]
id = "second"
weight = 0.5
check = "files.exists"
evidence = "word"
after = ["word-saved"]
"""


@pytest.fixture
def two(folder: Path) -> Path:
    """A task whose second checkpoint counts only after the first."""
    edit(folder / HIDDEN, "weight = 1.0", "weight = 0.5")
    with (folder / HIDDEN).open("a") as file:
        file.write(SECOND)
    return folder


def append(path: Path, text: str) -> None:
    """Add text at the end."""
    path.write_text(path.read_text() + text)


def test_a_gate_is_kept(two: Path):
    """For the rubric."""
    assert [c.after for c in load_task(two).checkpoints] == [(), ("word-saved",)]


@pytest.mark.parametrize(
    ("after", "message"),
    [
        ('["word-save"]', r"toml:\d+: no checkpoint 'word-save'; there is word-saved, second"),
        ('["second"]', "'second' waits for itself"),
        ('"word-saved"', r"toml:\d+: checkpoint.after: "),
        ('["harm"]', "'harm' is negative"),
    ],
)
def test_a_gate_that_leads_nowhere(two: Path, after: str, message: str):
    """Unknown, itself, no list, or one that is bad news."""
    edit(two / HIDDEN, 'after = ["word-saved"]', f"after = {after}")
    append(
        two / HIDDEN,
        '\n[[checkpoint]]\nid = "harm"\nweight = -0.1\ncheck = "files.absent"\nevidence = "word"\n',
    )
    with pytest.raises(TaskError, match=message):
        load_task(two)


def test_gates_in_a_circle(two: Path):
    """However long it is, and whoever waits for it besides."""
    edit(two / HIDDEN, "weight = 0.5", 'weight = 0.5\nafter = ["third"]')
    edit(two / HIDDEN, 'weight = 0.5\ncheck = "files', 'weight = 0.3\ncheck = "files')
    append(
        two / HIDDEN,
        SECOND.replace("second", "third")
        .replace("0.5", "0.2")
        .replace("exists", "same_bytes")
        .replace('["word-saved"]', '["second"]\nargs = { expected = "" }'),
    )
    with pytest.raises(TaskError) as caught:
        load_task(two)
    assert str(caught.value).count("waits for itself") == 3


def test_only_a_negative_checkpoint_is_negated(two: Path):
    """What was never there would be worth something: the check of it does not hold either."""
    append(two / HIDDEN, "negate = true\n")
    with pytest.raises(TaskError, match=r"toml:\d+: what is not there would count as right"):
        load_task(two)


def test_a_scope_makes_probes_and_a_checkpoint(folder: Path):
    """Listings of the start and the end, and what is damage between them."""
    append(folder / HIDDEN, '\n[scope]\nchanges = ["Documents/{params.word}", "Notes/**"]\n')
    task = load_task(folder)
    point = task.checkpoints[-1]
    assert (point.id, point.weight, point.check) == ("collateral", -0.5, "files.only_changed")
    assert (point.evidence, point.listed, point.negate) == (
        ("scope_start", "scope_end"), True, True,
    )  # fmt: skip
    assert not point.required
    trees = [p for p in task.variation(0).probes if p.kind == "tree"]
    assert [(p.name, p.source, p.at, p.user) for p in trees] == [
        ("scope_start", "/home/user", "start", "root"),
        ("scope_end", "/home/user", "end", "root"),
    ]
    assert all(p.timeout_s > 120 for p in trees)  # the command's own two minutes


def test_a_scope_may_be_elsewhere_and_come_from_the_answers(folder: Path):
    """One placeholder that stands for the list."""
    (folder / "hidden/answers.py").write_text(
        'def answers(params, inputs):\n    return {"free": ["a/**", params["word"]]}\n'
    )
    append(folder / HIDDEN, '\n[scope]\ntree = "/srv"\nchanges = "{answer.free}"\nweight = -0.2\n')
    task = load_task(folder)
    assert task.checkpoints[-1].weight == -0.2
    assert {p.source for p in task.declared_probes if p.kind == "tree"} == {"/srv"}


@pytest.mark.parametrize(
    ("scope", "message"),
    [
        ("", "'scope.changes' is missing"),
        ("changes = 5", r"toml:\d+: 'changes' is a list of patterns"),
        ('changes = "Notes/**"', "'changes' is a list of patterns"),
        ('changes = ["a", " "]', "'changes' is a list of patterns"),
        ('changes = ["{params.wort}"]', r"toml:\d+: unknown placeholder \{params.wort\}"),
        ('changes = "{params.word}"', "may_change is .*valid list"),
        ("changes = []\nweight = 0.5", r"toml:\d+: scope.weight: .*less than 0"),
        ("changes = []\nweight = 0", "less than 0"),
        ('changes = []\ntree = "home"', "scope.tree"),
        ('changes = []\ntree = "/home/{word}"', "scope.tree"),
        ('changes = []\nnoise = ["x"]', "unknown key 'scope.noise'"),
    ],
)
def test_a_scope_that_makes_no_sense(folder: Path, scope: str, message: str):
    """With its line."""
    append(folder / HIDDEN, f"\n[scope]\n{scope}\n")
    with pytest.raises(TaskError, match=message):
        load_task(folder)


def test_the_names_of_a_scope_are_taken(folder: Path):
    """Its checkpoint's and its evidence's."""
    append(folder / HIDDEN, "\n[scope]\nchanges = []\n")
    edit(folder / HIDDEN, "word-saved", "collateral")
    with pytest.raises(TaskError, match="'collateral' is there twice"):
        load_task(folder)
    edit(folder / "task.toml", 'name = "word"', 'name = "scope_end"')
    with pytest.raises(TaskError, match="'scope_end' is taken"):
        load_task(folder)


def test_a_suite_without_the_check_of_a_scope(folder: Path):
    """Says so."""
    own = folder.parent.parent / "evaluators"
    bundled = own.resolve()
    own.unlink()
    own.mkdir()
    for name in ("text", "bounds"):
        (own / f"{name}.py").write_bytes((bundled / f"{name}.py").read_bytes())
    append(folder / HIDDEN, "\n[scope]\nchanges = []\n")
    with pytest.raises(TaskError, match="no evaluators module 'files'"):
        load_task(folder)


def test_what_is_discovered_is_kept(folder: Path):
    """By placeholder or checkpoint."""
    (folder / "hidden/key.txt").write_text("x")
    append(
        folder / HIDDEN,
        '\n[discovered]\n"params.word" = "read it"\nword-saved = "see it"\n'
        '"hidden.key.txt" = "in the picture"\n',
    )
    assert load_task(folder).discovered == {
        "params.word": "read it",
        "word-saved": "see it",
        "hidden.key.txt": "in the picture",
    }


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('"params.wort" = "x"', r"toml:\d+: 'params.wort' is no checkpoint.*mean params.word"),
        ('"answer.total" = "x"', "'answer.total' is no checkpoint"),
        ('"hidden.none" = "x"', "'hidden.none'"),
        ('"input.x" = "x"', "'input.x'"),
        ('word-save = "x"', "did you mean word-saved"),
        ('"params.word" = " "', "discovered.params.word: "),
        ('"params.word" = 5', "discovered.params.word: "),
        ('params.word = "x"', 'stands in quotes: "params.word"'),
    ],
)
def test_a_discovery_of_nothing(folder: Path, line: str, message: str):
    """Names that stand for nothing, and reasons that are none."""
    append(folder / HIDDEN, f"\n[discovered]\n{line}\n")
    with pytest.raises(TaskError, match=message):
        load_task(folder)


@pytest.mark.parametrize("kind", ['file = "/a"', 'glob = "/a/*"', 'tree = "/a"', 'command = "ls"'])
def test_evidence_of_the_start(folder: Path, kind: str):
    """Of each kind that is no claim of a running program."""
    append(folder / "task.toml", f'\n[[evidence]]\nname = "before"\nat = "start"\n{kind}\n')
    probe = load_task(folder).variation(0).probes[-1]
    assert (probe.name, probe.at) == ("before", "start")
    assert probe.timeout_s == (180 if probe.kind == "tree" else 30)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('at = "start"\nwindows = true', "at the start there is evidence of file, glob, tree"),
        ('at = "middle"\nfile = "/a"', r"toml:\d+: evidence.at"),
        ('tree = "a"', "evidence.tree"),
        ('tree = "/a"\nfile = "/a"', "exactly one of file, glob, tree"),
    ],
)
def test_evidence_that_cannot_be_taken(folder: Path, lines: str, message: str):
    """With its line."""
    append(folder / "task.toml", f'\n[[evidence]]\nname = "before"\n{lines}\n')
    with pytest.raises(TaskError, match=message):
        load_task(folder)


def test_mutants_are_python_and_part_of_the_task(folder: Path):
    """Read, not run."""
    before = load_task(folder).hash
    (folder / "hidden/mutants.py").write_text("raise SystemExit\n")
    assert load_task(folder).hash != before
    (folder / "hidden/mutants.py").write_text("def mutants(:\n")
    with pytest.raises(TaskError, match="is no Python"):
        load_task(folder)


def test_what_the_gates_found_is_no_part_of_the_task(folder: Path):
    """Else recording it would make it stale."""
    before = load_task(folder).hash
    (folder / "gates.json").write_text("{}")
    assert load_task(folder).hash == before
    (folder / "hidden/gates.json").write_text("{}")
    assert load_task(folder).hash != before
