"""What is mutated at all, what is said, and what does not apply."""

from __future__ import annotations

from cua_gym.gates.generic import DO_NOT_APPLY

from .conftest import ROOT, Judge, Make, Printed, Records, point


def test_only_what_earns(make: Make, judged: Judge) -> None:
    """Evidence that only negative checkpoints name is left alone."""
    start, solved = make("start", note=None, log=b"a"), make("solved", note=b"x", log=b"a")
    found = judged(
        start,
        solved,
        point("text.equals", "note", expected="x"),
        point("files.same_bytes", "log", weight=-0.5, negate=True, expected=b"a"),
    )
    assert not found.offenders
    assert not [m for m in found.mutants if "log" in m.changes]


def test_untouched_evidence(make: Make, judged: Judge) -> None:
    """What a positive checkpoint looks at and nobody changed may still not be missing."""
    start, solved = make("start", note=None, log=b"a"), make("solved", note=b"x", log=b"a")
    points = (
        point("text.equals", "note", expected="x", weight=0.5),
        point("files.same_bytes", "log", weight=0.5, expected=b"a"),
    )
    found = judged(start, solved, *points)
    # Half of the score is there untouched, and so with any claim.
    assert {n.rpartition(":")[0] for n in found.offenders} == {"claimed:untouched"}
    assert [n for n in found.names if ":log" in n] == ["absent:log", "emptied:log"]


def test_gone(make: Make, judged: Judge) -> None:
    """Of what had to go, being there again is the opposite, and so is an empty one."""
    start, solved = make("start", note=b"x"), make("solved", note=None)
    found = judged(start, solved, point("files.absent", "note"))
    assert not found.offenders
    assert [n for n in found.names if ":note" in n] == ["reverted:note", "emptied:note"]


def test_several(make: Make, judged: Judge) -> None:
    """A check of several evidences looks at each of them."""
    start = make("start", old=b"x\n", new=None)
    solved = make("solved", old=None, new=b"x\n")
    found = judged(start, solved, point("files.moved", "old", "new", expected=b"x\n"))
    assert not found.offenders
    assert {"reverted:old", "reverted:new", "altered:new:line-1:appended"} <= set(found.names)


def test_accepts_anything(make: Make, judged: Judge) -> None:
    """A check that passes whatever is there lets everything pass but an absence."""
    start, solved = make("start", note=b"old"), make("solved", note=b"new")
    found = judged(start, solved, point("files.exists", "note"))
    assert {"reverted:note", "emptied:note", "altered:note:line-1:cut"} <= set(found.offenders)
    assert "absent:note" not in found.offenders


def test_windows(make: Make, judged: Judge) -> None:
    """A window's list is reverted, missing or empty; where none is wanted, empty is right."""
    record = (
        '[{"title": "A", "app": "a", "active": true, "minimized": false, '
        '"x": 0, "y": 0, "width": 9, "height": 9}]'
    )
    there, none = Records("windows", record.encode()), Records("windows", b"[]")
    found = judged(
        make("a", open=none), make("b", open=there), point("desktop.window", "open", title="A")
    )
    assert not found.offenders
    names = [n for n in found.names if ":open" in n]
    assert names == ["reverted:open", "absent:open", "emptied:open"]
    other = Records("windows", record.replace('"A"', '"B"').encode())
    closed = judged(
        make("c", open=there), make("d", open=other), point("desktop.no_window", "open", title="A")
    )
    assert not closed.offenders
    assert "emptied:open" not in closed.names


def test_failing_command(make: Make, judged: Judge) -> None:
    """A command's status belongs to what was found untouched."""
    start = make("start", said=Printed(b"", 1))
    solved = make("solved", said=Printed(b"42\n"))
    found = judged(start, solved, point("numbers_dates.number", "said", expected=42))
    assert not found.offenders


def test_claims(make: Make, judged: Judge) -> None:
    """Nothing that an agent claims is worth anything over untouched work."""
    start, solved = make("start", note=None), make("solved", note=b"x")
    found = judged(start, solved, point("text.equals", "note", expected="x"))
    assert {"claimed:untouched:done", "claimed:untouched:json"} <= set(found.names)
    source = (
        "@check\n"
        "def believes(item: Item) -> Verdict:\n"
        "    '''The agent says so.'''\n"
        "    return verdict('done' in item.text())\n"
    )
    said = make("said", note=b"x", answer="It is done.")
    work = point("text.equals", "note", expected="x", weight=0.7)
    naive = judged(start, said, work, point("checks.believes", "answer", weight=0.3), source=source)
    assert "claimed:untouched:done" in naive.offenders  # part of the score is too much


def test_answer(make: Make, judged: Judge) -> None:
    """A wrong answer that looks right is wrong; white space at its end is none."""
    start, solved = make("start", note=None), make("solved", note=None, answer="Oct 21")
    found = judged(start, solved, point("answer.equals", "answer", expected="Oct 21"))
    assert not found.offenders
    assert {
        "absent:answer",
        "altered:answer:digit",
        "altered:answer:appended",
        "claimed:solved:yes",
        "final-newline:answer",
    } <= set(found.names)
    assert "answered:untouched" not in found.names  # there is nothing else to do
    assert "ended:limit" not in found.names


def test_answer_and_work(make: Make, judged: Judge) -> None:
    """Where work is asked for too, the right answer over untouched work is not enough."""
    start, solved = make("start", note=None), make("solved", note=b"x", answer="42")
    answer = point("answer.equals", "answer", expected="42", weight=0.5)
    note = point("text.equals", "note", expected="x", weight=0.5)
    found = judged(start, solved, answer, note)
    assert not found.offenders
    assert "answered:untouched" in found.names


def test_long_answers(make: Make, judged: Judge) -> None:
    """An answer of lines or of JSON is altered in its parts."""
    lines, data = make("a", answer="one\ntwo\n"), make("b", answer='{"total": 4, "unit": "kg"}')
    start = make("start")
    found = judged(start, lines, point("text.lines", "answer", expected=["one", "two"]))
    assert not found.offenders
    assert "altered:answer:altered-line-2:cut" in found.names
    expected = {"total": 4, "unit": "kg"}
    other = judged(start, data, point("data.json_value", "answer", expected=expected))
    assert not other.offenders
    assert "altered:answer:altered-total:digit" in other.names


def test_limit(make: Make, judged: Judge) -> None:
    """Who ran out of steps with the work done did the work, unless submitting is part of it."""
    start, solved = make("start", note=None), make("solved", note=b"x")
    work = point("text.equals", "note", expected="x", weight=0.5)
    found = judged(start, solved, work, point("files.exists", "note", weight=0.5))
    assert not found.offenders
    assert "ended:limit" in found.names
    source = (
        "import json\n"
        "@check\n"
        "def submitted(item: Item) -> Verdict:\n"
        "    '''It was submitted.'''\n"
        "    return verdict(json.loads(item.text())['kind'] == 'submit')\n"
    )
    said = point("checks.submitted", "submission", weight=0.5)
    other = judged(start, solved, work, said, source=source)
    assert not [m for m in other.mutants if m.name == "ended:limit" and m.keeps]


def test_infeasible(make: Make, judged: Judge) -> None:
    """Where giving up is right, ending in any other way is wrong."""
    start, solved = make("start"), make("solved", kind="give_up")
    found = judged(start, solved, point("answer.gave_up", "submission"))
    assert not found.offenders
    assert {"ended:submit", "ended:limit", "claimed:untouched:done"} <= set(found.names)


def test_names_are_unique(make: Make, judged: Judge) -> None:
    """Two places whose names are cut to the same get two names."""
    long = "x" * 80
    box = {f"/home/user/{long}{n}{long}.txt": b"a\n" for n in range(3)}
    start, solved = make("start", box={}), make("solved", box=box)
    expected = {path.rpartition("/")[2]: "a\n" for path in box}
    tree = {"root": "/home/user", "expected": expected}
    found = judged(start, solved, point("files.tree_equals", "box", **tree))
    assert not found.offenders
    assert len(set(found.names)) == len(found.names)


def test_table(make: Make) -> None:
    """Every check that is excused from some mutants is a bundled one."""
    modules = {path.stem for path in (ROOT / "evaluators").glob("*.py")}
    for check, patterns, reason in DO_NOT_APPLY:
        assert patterns
        assert reason
        module, _, name = check.partition(".")
        assert module == "*" or module in modules
        if name != "*" and module != "*":
            assert f"def {name}(" in (ROOT / "evaluators" / f"{module}.py").read_text()


def test_start(make: Make, judged: Judge) -> None:
    """What was taken before anybody acted is nothing that an agent can change."""
    taken = Records("tree", b"d\t755\tuser\tuser\t1\t\0\0\0", "", at="start")
    start, solved = make("start", was=taken, note=None), make("solved", was=taken, note=b"x")
    source = (
        "@check\n"
        "def both(evidence: Evidence) -> Verdict:\n"
        "    '''The note, and what was.'''\n"
        "    was, note = evidence.values()\n"
        "    return verdict(was.present and note.present and note.text().strip() == 'x')\n"
    )
    found = judged(start, solved, point("checks.both", "was", "note"), source=source)
    assert not found.offenders
    assert not [m for m in found.mutants if "was" in m.changes]
