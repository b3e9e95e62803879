"""Task folders: every fault is found before anything boots, with file, line and remedy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from cua_gym.errors import TaskError
from cua_gym.machine.base import MachineSpec
from cua_gym.task import Suite, bundled_suite, find_task, load_task, new_task
from tests.task.conftest import ROOT, edit


def test_a_new_task_is_whole(folder: Path):
    """It loads, varies by seed and asks for what it grades."""
    task = load_task(folder)
    one, two = task.variation(1), task.variation(2)
    assert one.params != two.params
    assert one.params["word"] in one.instruction
    assert [c.id for c in task.checkpoints] == ["word-saved"]
    with pytest.raises(TaskError, match="exists"):
        new_task(folder.parent, "word-task")
    with pytest.raises(TaskError, match="no task name"):
        new_task(folder.parent, "../x")


POINT = '\n[[checkpoint]]\nid = "{}"\nweight = {}\ncheck = "{}"\nevidence = "{}"\n'


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("task.toml", "level = 1", "level = 1\nlevels = 1", r"task.toml:\d+: unknown key 'levels'"),
        ("task.toml", "level = 1", "level = 4", r"task.toml:\d+: level: .* 4"),
        ("task.toml", "level = 1", 'level = "1"', r"task.toml:\d+: level"),
        ("task.toml", 'area = "editor"', "", "'area' is missing"),
        ("task.toml", "[limits]", "[limits", "no valid TOML"),
        ("task.toml", 'name = "word-task"', 'name = "other"', r"toml:1: name 'other' must be"),
        ("task.toml", "word {word}", "word {wort}", r"unknown placeholder \{wort\}"),
        ("task.toml", 'window = "Mousepad"', "", "go together"),
        ("task.toml", 'window = "Mousepad"', 'window = "["', "no regular expression"),
        ("task.toml", 'open = ["mousepad"]', "", "exactly one of"),
        ("task.toml", 'name = "word"', 'name = "answer"', "taken by every episode"),
        ("task.toml", 'file = "/home', 'file = "home', "file: "),
        ("task.toml", 'file = "/home', 'live = 1\nfile = "/home', "live"),
        ("hidden/checkpoints.toml", "[[checkpoint]]", "[[checkpoints]]", "unknown key"),
        ("hidden/checkpoints.toml", "weight = 1.0", "weight = 0.9", "sum to 0.9"),
        ("hidden/checkpoints.toml", "weight = 1.0", "weight = nan", "weight"),
        ("hidden/checkpoints.toml", '"text.equals"', '"text.equal"', "text has equals"),
        ("hidden/checkpoints.toml", '"text.equals"', '"texts.equals"', "there is text"),
        ("hidden/checkpoints.toml", '"text.equals"', '"os.system"', "no evaluators module"),
        ("hidden/checkpoints.toml", "expected =", "expect =", "unknown args expect"),
        ("hidden/checkpoints.toml", '"{params.word}"', '"{params.wort}"', "unknown placeholder"),
        ("hidden/checkpoints.toml", '"{params.word}"', "5", "expected is 5: .*valid string"),
        (
            "hidden/checkpoints.toml",
            '"{params.word}"',
            '"{params.word}", variants = "colour"',
            "variants is 'colour': ",
        ),
        ("hidden/checkpoints.toml", '"{params.word}"', '"{answer.x}"', "unknown placeholder"),
        ("hidden/checkpoints.toml", 'evidence = "word"', 'evidence = "w"', "no evidence 'w'"),
        ("hidden/checkpoints.toml", 'evidence = "word"', 'evidence = ["word"]', "must be one name"),
        ("task.toml", "level = 1", 'level = 1\npinned_date = "2025-02-31"', "no day 2025-02-31"),
        ("task.toml", 'area = "editor"', 'area = "  "', r"toml:\d+: area: "),
        ("task.toml", 'open = ["mousepad"]', 'open = [" "]', "begins with a program's name"),
        ("task.toml", 'open = ["mousepad"]\nwindow = "Mousepad"', 'run = ""', r"\.run: "),
        ("task.toml", 'file = "/home/user/Documents/word.txt"', 'command = " "', r"\.command: "),
        ("task.toml", "[limits]", '[machine]\nimage = "../etc"\n\n[limits]', r"machine\.image: "),
        (
            "task.toml",
            "[limits]",
            '[machine]\nnetwork = ["http://a.example/"]\n\n[limits]',
            r"'http://a\.example/' is no host",
        ),
        ("task.toml", "[limits]", "[machine]\nnetwork = []\n\n[limits]", r"'network' is \"none\""),
        ("hidden/checkpoints.toml", "args = {", 'args = { case = "lower",', "'exact' or 'fold'"),
        ("hidden/checkpoints.toml", "args = {", 'args = { encoding = "utf9",', "unknown encoding"),
        (
            "hidden/checkpoints.toml",
            'text.equals"\nevidence = "word"\nargs = { expected = "{params.word}" }',
            'text.matches"\nevidence = "word"\nargs = { pattern = "(" }',
            r"toml:7: text\.matches: pattern is '\(', which raised error",
        ),
        (
            "hidden/checkpoints.toml",
            'text.equals"\nevidence = "word"\nargs = { expected = "{params.word}" }',
            'numbers_dates.number"\nevidence = "word"\nargs = { expected = 5, absolute = inf }',
            "absolute is inf: .*finite",
        ),
        (
            "hidden/checkpoints.toml",
            'text.equals"\nevidence = "word"\nargs = { expected = "{params.word}" }',
            'data.csv_rows"\nevidence = "word"\nargs = { expected = [], delimiter = ", " }',
            "delimiter is ', ', which raised TypeError",
        ),
        ("vary.py", "return", "return 1 #", "returned int, not a dict"),
        ("vary.py", '"word":', '"word": {1}, "w":', "plain JSON"),
        ("vary.py", '"word":', '"word": (1,), "w":', "lists, not tuples"),
        ("vary.py", "rng.choice(", "rng.choice(1, ", r"vary\(\) raised TypeError"),
        ("vary.py", "import random\n", "import random, no_such_module\n", "ModuleNotFoundError"),
        ("vary.py", "rng.choice(", "random.choice(", r"vary.py:\d+: .*use the rng"),
    ],
)
def test_each_fault_is_named(folder: Path, file: str, old: str, new: str, message: str):
    """Unknown keys, wrong values, names that lead nowhere."""
    edit(folder / file, old, new)
    with pytest.raises(TaskError, match=message):
        load_task(folder)


def test_a_byte_order_mark_is_no_fault(folder: Path):
    """Editors of other systems put one there."""
    for name in ("task.toml", "hidden/checkpoints.toml"):
        path = folder / name
        path.write_text(path.read_text(), "utf-8-sig")
    assert load_task(folder).name == "word-task"


def test_the_line_is_that_of_the_fault(folder: Path):
    """In the right table of several."""
    path = folder / "task.toml"
    path.write_text(path.read_text() + '\n[[evidence]]\nname = "x"\nfile = "/x"\nbogus = 1\n')
    with pytest.raises(TaskError, match=rf"task\.toml:{len(path.read_text().splitlines())}: "):
        load_task(folder)


def test_all_faults_come_at_once(folder: Path):
    """An author mends them in one go."""
    edit(folder / "task.toml", "level = 1", "level = 9\nx = 1\ny = 2")
    with pytest.raises(TaskError) as caught:
        load_task(folder)
    assert len(str(caught.value).splitlines()) == 3


@pytest.mark.parametrize(
    ("value", "network"),
    [
        ('"none"', "none"),
        ('"open"', "open"),
        ('["a.example", "*.b.example:81"]', ("a.example", "*.b.example:81")),
    ],
)
def test_a_network_is_asked_for_by_the_task(folder: Path, value: str, network: object):
    """It stands in the machine's spec, which can be hashed and written down."""
    edit(folder / "task.toml", "[limits]", f"[machine]\nnetwork = {value}\n\n[limits]")
    spec = load_task(folder).spec
    assert spec.network == network
    assert hash(spec) != hash(spec.offline) or spec == spec.offline
    assert MachineSpec.of(json.loads(json.dumps(asdict(spec)))) == spec


def test_a_blank_instruction_is_refused(folder: Path):
    """As it is written, and as a seed fills it."""
    path = folder / "task.toml"
    edit(path, "A text editor is open. Write the word {word} and save it as", "{word}")
    edit(path, " /home/user/Documents/word.txt.\n", "\n")
    edit(folder / "vary.py", "return {", 'return {"word": " "} if rng.random() < 2 else {')
    with pytest.raises(TaskError, match=r"toml:\d+: it is blank for seed 0"):
        load_task(folder)
    edit(path, '"""\n{word}', '"""\n ')
    with pytest.raises(TaskError, match=r"toml:\d+: instruction: "):
        load_task(folder)


def test_no_checkpoints_are_refused(folder: Path):
    """Nor none of the file (B145)."""
    (folder / "hidden/checkpoints.toml").write_text("checkpoint = []\n")
    with pytest.raises(TaskError, match="no checkpoints"):
        load_task(folder)
    (folder / "hidden/checkpoints.toml").unlink()
    with pytest.raises(TaskError, match="is missing"):
        load_task(folder)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (POINT.format("word-saved", -0.5, "files.exists", "word"), "'word-saved' is there twice"),
        (POINT.format("again", 0, "files.exists", "word"), "weight of 0"),
        (
            POINT.format("again", -0.5, "text.equals", "word")
            + 'args = { expected = "{params.word}" }\n',
            "asks the same as 'word-saved'",
        ),
        (
            POINT.format("again", -0.5, "text.equals", "word")
            + 'args = { variants = [], case = "exact", expected = "{params.word}" }\n',
            "asks the same as 'word-saved'",
        ),
    ],
)
def test_a_checkpoint_twice_is_refused(folder: Path, more: str, message: str):
    """By its name or by its question, defaults spelled out or not (B149)."""
    path = folder / "hidden/checkpoints.toml"
    path.write_text(path.read_text() + more)
    with pytest.raises(TaskError, match=message):
        load_task(folder)


def test_a_missing_input_is_named(folder: Path):
    """With those that there are."""
    step = '[[setup]]\nfile = { to = "/home/user/a", from = "a.txt" }\n\n[[setup]]'
    edit(folder / "task.toml", "[[setup]]", step)
    with pytest.raises(TaskError, match=r"no input 'a.txt'.*there is none"):
        load_task(folder)
    (folder / "inputs" / "a.txt").write_bytes(b"x")
    assert load_task(folder).variation(0).inputs == {"a.txt": b"x"}


def test_a_vary_that_uses_the_clock_is_caught_by_its_result(folder: Path):
    """Two results for one seed."""
    edit(
        folder / "vary.py",
        "import random\n",
        "import itertools\nimport random\n_N = itertools.count()\n",
    )
    edit(folder / "vary.py", '"word":', '"n": next(_N), "word":')
    with pytest.raises(TaskError, match="two different results"):
        load_task(folder)


def test_the_hash_is_that_of_the_bytes(folder: Path):
    """Any edit changes it; Python's caches do not."""
    before = load_task(folder).hash
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "x.pyc").write_bytes(b"x")
    assert load_task(folder).hash == before
    edit(folder / "oracle.py", "Type, save", "Type and save")
    assert load_task(folder).hash != before


def test_an_edited_file_is_read_anew(folder: Path):
    """Even in the same second, with the same length."""
    assert len(load_task(folder).variation(0).params["word"]) == 8
    edit(folder / "vary.py", "range(8)", "range(6)")
    assert len(load_task(folder).variation(0).params["word"]) == 6


def test_required_is_all_positive_unless_marked(folder: Path):
    """Then only the marked ones."""
    path = folder / "hidden/checkpoints.toml"
    edit(path, "weight = 1.0", "weight = 0.5")
    path.write_text(path.read_text() + POINT.format("there", 0.5, "files.exists", "word"))
    assert [c.required for c in load_task(folder).checkpoints] == [True, True]
    edit(path, "weight = 0.5", "weight = 0.5\nrequired = true")
    assert [c.required for c in load_task(folder).checkpoints] == [True, False]


def test_an_unknown_task_suggests_near_ones(folder: Path):
    """By name and by path."""
    suite = Suite(folder.parents[1])
    with pytest.raises(TaskError, match="did you mean word-task"):
        suite.task("wordtask")
    with pytest.raises(TaskError, match=r"task\.toml does not exist"):
        find_task(folder.parent / "none")
    assert find_task(folder).name == "word-task"


@pytest.fixture(scope="module")
def elsewhere() -> list[dict[str, str]]:
    """What two other processes, unlike in hash seed and time zone, make of each bundled task."""
    script = (
        "import hashlib, json, sys, traceback; from cua_gym.task import find_task\n"
        "def told(name):\n"
        "    try: v = find_task(name).variation(7)\n"
        "    except Exception: return traceback.format_exc()\n"
        "    return repr((v.params, v.answers, v.instruction,"
        " {k: hashlib.sha256(d).hexdigest() for k, d in v.inputs.items()}))\n"
        "json.dump({name: told(name) for name in sys.argv[1:]}, sys.stdout)"
    )
    return [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", script, *bundled_suite().names()],
                env={**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "PYTHONPATH": str(ROOT)},
                stdout=subprocess.PIPE,
                check=True,
            ).stdout
        )
        for seed, zone in (("1", "UTC"), ("2", "Asia/Tokyo"))
    ]


@pytest.mark.parametrize("name", bundled_suite().names())
def test_a_bundled_task_is_valid_and_the_same_everywhere(
    name: str, elsewhere: list[dict[str, str]]
):
    """Another process with another hash seed gives the same variation."""
    one, two = (told[name] for told in elsewhere)
    assert "Traceback" not in one, one
    assert one == two


def test_bundled_tasks_differ_from_seed_to_seed():
    """Twenty seeds, and hardly two alike."""
    for task in bundled_suite().tasks():
        told = {repr(task.variation(seed).params) for seed in range(20)}
        assert len(told) >= 4, task.name
