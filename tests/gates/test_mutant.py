"""Mutants: how authors write them, and the evidence folders that they become."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cua_gym.errors import GradingError, TaskError
from cua_gym.gates.mutant import (
    Change,
    Mutant,
    breaks,
    exempt,
    exemptions,
    keeps,
    task_mutants,
    unmatched,
    write,
)
from cua_gym.grading.items import Evidence, Fails

from .conftest import Make, Printed


def laid(mutant: Mutant, base: Evidence, folder: Path) -> Evidence:
    """The mutant's evidence, read as a grader reads it."""
    write(mutant, base.folder, folder)
    return Evidence(folder)


def changed(make: Make, folder: Path, **changes: Change) -> Evidence:
    """A file, a glob and a command, changed."""
    base = make(
        "solved",
        note=b"kept",
        box={"/home/user/a.csv": b"a", "/home/user/d/c.csv": b"c"},
        said=Printed(b"5\n"),
        answer="42",
    )
    return laid(breaks("one", **changes), base, folder / "mutant")


def test_content(make: Make, tmp_path: Path) -> None:
    """Bytes and text are a file's new content, with a hash that fits."""
    found = changed(make, tmp_path, note=b"new", said="6\n")
    assert found["note"].bytes() == b"new"
    assert found["said"].text() == "6\n"
    assert found["box"].files() == {"/home/user/a.csv": b"a", "/home/user/d/c.csv": b"c"}


def test_links(make: Make, tmp_path: Path) -> None:
    """What did not change is the base's own file, and what changed leaves the base alone."""
    found = changed(make, tmp_path, note=b"new")
    base = Evidence(tmp_path / "solved")
    assert found["said"].path().samefile(base["said"].path())
    assert base["note"].bytes() == b"kept"


def test_absent(make: Make, tmp_path: Path) -> None:
    """None is an absent file or glob, and of a command its failure."""
    found = changed(make, tmp_path, note=None, box=None, said=None)
    assert found["note"].state == found["box"].state == "absent"
    assert found["box"].entries == ()
    with pytest.raises(Fails, match="exited with 1"):
        found["said"].text()


def test_entries(make: Make, tmp_path: Path) -> None:
    """A dict changes the named entries of a glob alone, in the order that a collector has."""
    found = changed(
        make, tmp_path, box={"/home/user/a.csv": None, "/home/user/d/b.csv": b"b", "/home/x": b"x"}
    )
    assert list(found["box"].files().items()) == [
        ("/home/user/d/b.csv", b"b"),
        ("/home/user/d/c.csv", b"c"),
        ("/home/x", b"x"),
    ]


def test_last_entry(make: Make, tmp_path: Path) -> None:
    """A glob that loses all entries is absent."""
    box = {"/home/user/a.csv": None, "/home/user/d/c.csv": None}
    assert changed(make, tmp_path, box=box)["box"].state == "absent"


def test_item(make: Make, tmp_path: Path) -> None:
    """An item of another attempt is taken over whole: its state, exit status and files."""
    start = make(
        "start", note=None, box={"/home/user/z.csv": b"z"}, said=Printed(b"no\n", 3), answer=None
    )
    found = changed(make, tmp_path, note=start["note"], box=start["box"], said=start["said"])
    assert found["note"].state == "absent"
    assert found["box"].files() == {"/home/user/z.csv": b"z"}
    assert found["said"].exit == 3


@pytest.mark.parametrize("answer", ["43", None])
def test_answer(make: Make, tmp_path: Path, answer: str | None) -> None:
    """Another answer is what the submission says too; None is a submission without one."""
    found = changed(make, tmp_path, answer=answer)
    assert json.loads(found["submission"].bytes())["answer"] == answer
    assert found["answer"].present is (answer is not None)
    if answer is not None:
        assert found["answer"].text() == answer


def test_absent_answer(make: Make, tmp_path: Path) -> None:
    """An answer can be given where the oracle gave none."""
    base = make("solved", answer=None)
    found = laid(breaks("claims", answer="done"), base, tmp_path / "mutant")
    assert found["answer"].text() == "done"


@pytest.mark.parametrize(
    "changes",
    [{"nope": b""}, {"box": b"no dict"}, {"note": {"/home/user/note.txt": b""}}],
    ids=["unknown", "bytes-for-a-glob", "dict-for-a-file"],
)
def test_wrong_change(make: Make, tmp_path: Path, changes: dict[str, Change]) -> None:
    """A change that the evidence cannot take is an error that names mutant and evidence."""
    with pytest.raises(GradingError, match=rf"mutant 'one'.*{next(iter(changes))}"):
        changed(make, tmp_path, **changes)


def test_nonsense() -> None:
    """A mutant without a name or a change, or with a change of no known kind, is refused."""
    with pytest.raises(TaskError, match="needs a name"):
        breaks(" ", note=b"")
    with pytest.raises(TaskError, match="changes nothing"):
        keeps("same")
    with pytest.raises(TaskError, match="note becomes 5"):
        breaks("number", note=5)  # type: ignore[arg-type]
    with pytest.raises(TaskError, match="box becomes"):
        breaks("text in a dict", box={"/a": "text"})  # type: ignore[dict-item]


def authored(folder: Path, source: str) -> Path:
    """A task folder with such a hidden/mutants.py."""
    (folder / "task/hidden").mkdir(parents=True)
    head = "from cua_gym.gates.mutant import breaks, keeps\n"
    (folder / "task/hidden/mutants.py").write_text(head + source)
    return folder / "task"


def test_task_mutants(make: Make, tmp_path: Path) -> None:
    """A task's own mutants see the seed's values and both attempts."""
    task = authored(
        tmp_path,
        "def mutants(params, start, solved):\n"
        "    yield breaks(params['word'], note=start['note'])\n"
        "    yield keeps('louder', note=solved['note'].bytes().upper())\n",
    )
    start, solved = make("start", note=b"old"), make("solved", note=b"new")
    first, second = task_mutants(task, {"word": "hello"}, start, solved)
    assert (first.name, first.keeps, second.name, second.keeps) == ("hello", False, "louder", True)
    assert laid(first, solved, tmp_path / "1")["note"].bytes() == b"old"
    assert laid(second, solved, tmp_path / "2")["note"].bytes() == b"NEW"


def test_no_file(make: Make, tmp_path: Path) -> None:
    """A task without the file has no mutants of its own and no exemptions."""
    start, solved = make("start", note=b""), make("solved", note=b"")
    assert not list(task_mutants(tmp_path, {}, start, solved))
    assert exemptions(tmp_path) == {}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("    raise ValueError('oh')\n", "raised ValueError: oh"),
        ("    yield b'x'\n", "use breaks\\(\\) and keeps\\(\\)"),
        ("    yield breaks('x', note=b'')\n    yield keeps('x', note=b'')\n", "called 'x'"),
        ("    yield breaks('x', nope=b'')\n", "'x' changes nope; the evidence is answer, note"),
        ("    yield breaks('x')\n", "changes nothing"),
    ],
)
def test_authors_faults(make: Make, tmp_path: Path, source: str, message: str) -> None:
    """Whatever is wrong with the file is told as a fault of the task, with its path."""
    task = authored(tmp_path, f"def mutants(params, start, solved):\n{source}")
    start, solved = make("start", note=b""), make("solved", note=b"")
    with pytest.raises(TaskError, match=f"mutants.py.*{message}"):
        list(task_mutants(task, {}, start, solved))


def test_exemptions(tmp_path: Path) -> None:
    """Patterns are matched as file names are, and one that excuses nothing is found."""
    patterns = exemptions(authored(tmp_path, "EXEMPT = {'newlines:*': 'why', 'x:y': 'why'}\n"))
    assert exempt("newlines:script", patterns) == "newlines:*"
    assert exempt("final-newline:script", patterns) is None
    assert unmatched(["newlines:script", "absent:script"], patterns) == ["x:y"]


@pytest.mark.parametrize("value", ["['x']", "{'x': ''}", "{'x': 3}"])
def test_exemptions_without_reason(tmp_path: Path, value: str) -> None:
    """An exemption without a reason is a fault of the task."""
    with pytest.raises(TaskError, match="to the reason"):
        exemptions(authored(tmp_path, f"EXEMPT = {value}\n"))
