"""The check: every clause is a line of the report, and a broken one never hides another."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from cua_gym.errors import MachineLost
from cua_gym.image.check import Result, check_image, table
from cua_gym.image.clause import Broken, Clause, Subject, equals, holds, nothing
from cua_gym.image.clauses import clauses_for
from cua_gym.image.store import Image, ImageStore
from cua_gym.machine.base import Completed, Frame, Machine, Rgb


class _Scripted:
    """A machine whose commands are answered by a function and whose picture is given."""

    def __init__(self, answer: Callable[[str], Completed], shade: int, size: tuple[int, int]):
        self._answer = answer
        self.size = size
        self._rgb = np.full((size[1], size[0], 3), shade, np.uint8)

    @property
    def screen(self) -> _Scripted:
        return self

    @property
    def shell(self) -> _Scripted:
        return self

    def grab(self, out: Rgb | None = None) -> Frame:
        return Frame(self._rgb.copy(), (0, 0), 0.0, 1)

    def run(self, command: str | Sequence[str], **_: Mapping[str, object]) -> Completed:
        return self._answer(str(command))


def _subject(image: Image, answer: Callable[[str], Completed]) -> Subject:
    return Subject(image, cast(Machine, _Scripted(answer, 0, (64, 48))))


def _says(text: str, exit: int = 0) -> Callable[[str], Completed]:  # noqa: A002  Completed's own word
    return lambda command: Completed(exit, text.encode(), b"")


def test_clauses_are_named_once_and_say_what_they_want(store: ImageStore) -> None:
    """The id is what people look for in a report."""
    image = store.ensure("tiny")
    clauses = clauses_for(image)
    assert len({clause.id for clause in clauses}) == len(clauses)
    assert all(clause.says for clause in clauses)
    wanted = {
        "one-file", "subformat", "virtual-size", "mbr", "free-space", "bios-boot", "x11",
        "no-swap", "virtio-disk", "virtio-net", "sshd", "guest-agent", "no-passwords",
        "updater-off/apt-daily.timer", "screensaver-off", "keyring-off", "still",
    }  # fmt: skip
    assert wanted <= {clause.id for clause in clauses}


def test_a_windows_image_is_not_asked_for_systemd(store: ImageStore) -> None:
    """The clauses of the disk and the screen are for all; the rest is per guest."""
    image = store.ensure("tiny")
    windows = replace(image, manifest=replace(image.manifest, guest_os="windows-11"))
    ids = {clause.id for clause in clauses_for(windows)}
    assert "systemd" not in ids
    assert {"one-file", "still"} <= ids


def test_short_clauses(store: ImageStore) -> None:
    """Exact output, a test of it, and no output at all."""
    image = store.ensure("tiny")
    exact = equals("a", "a", "x", "yes")
    assert exact.look(_subject(image, _says("yes\n"))) == "yes"
    with pytest.raises(Broken, match="no"):
        exact.look(_subject(image, _says("no")))
    tested = holds("b", "b", "x", lambda seen: seen == "3")
    assert tested.look(_subject(image, _says("3"))) == "3"
    with pytest.raises(Broken, match="4"):
        tested.look(_subject(image, _says("4")))
    absent = nothing("c", "c", "x")
    assert absent.look(_subject(image, _says(""))) == "none"
    with pytest.raises(Broken, match="found"):
        absent.look(_subject(image, _says("found")))


def test_a_failing_command_breaks_its_clause(store: ImageStore) -> None:
    """A command that is not there is not an answer."""
    clause = equals("a", "a", "xyz", "")
    with pytest.raises(Broken, match="`xyz` ended with 127: not found"):
        clause.look(_subject(store.ensure("tiny"), _says("not found", 127)))


def test_the_disk_clauses_look_at_the_real_file(store: ImageStore) -> None:
    """On a toy disk: one file and the right subformat, but not 60 GiB and no boot sector."""
    image = store.ensure("tiny")
    image.control_key.chmod(0o644)
    verdicts = {}
    for clause in clauses_for(image)[:6]:
        try:
            clause.look(_subject(image, _says("")))
            verdicts[clause.id] = True
        except Broken:
            verdicts[clause.id] = False
    assert verdicts == {
        "one-file": True, "subformat": True, "virtual-size": False, "mbr": False,
        "same-disk": True, "manifest": False,
    }  # fmt: skip


def _boots(shades: list[int], ids: list[str]) -> Callable[[tuple[int, int]], object]:
    count = iter(range(100))
    lock = threading.Lock()

    @contextmanager
    def boot(mode: tuple[int, int]) -> Iterator[Machine]:
        with lock:
            number = min(next(count), len(shades) - 1)

        def answer(command: str) -> Completed:
            return Completed(0, ids[number].encode() if "machine-id" in command else b"", b"")

        yield cast(Machine, _Scripted(answer, shades[number], mode))

    return boot


def _run(image: Image, shades: list[int], ids: list[str], monkeypatch: pytest.MonkeyPatch,
         clauses: list[Clause]) -> dict[str, Result]:  # fmt: skip
    monkeypatch.setattr("cua_gym.image.check.clauses_for", lambda image: clauses)
    boot = cast(Callable[[tuple[int, int]], AbstractContextManager[Machine]], _boots(shades, ids))
    return {result.id: result for result in check_image(image, boot)}


def test_three_boots_are_compared(store: ImageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal first frames and different identities; a difference in either is found."""
    image = store.ensure("tiny")
    good = _run(image, [1, 1, 1], ["a", "b", "c"], monkeypatch, [])
    assert good["first-frame"].passed
    assert good["fresh-machine-id"].passed
    bad = _run(image, [1, 2, 1], ["a", "a", "c"], monkeypatch, [])
    assert not bad["first-frame"].passed
    assert not bad["fresh-machine-id"].passed


def test_a_broken_clause_is_a_line_and_the_others_go_on(
    store: ImageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All faults of an image in one report."""

    def broken(subject: Subject) -> str:
        raise Broken("swap on /dev/vda2")

    clauses = [
        Clause("no-swap", "no swap", broken),
        Clause("fine", "it is fine", lambda subject: "yes"),
    ]
    results = _run(store.ensure("tiny"), [1, 1, 1], ["a", "b", "c"], monkeypatch, clauses)
    text = table(list(results.values()))
    assert "FAIL  no-swap           no swap: swap on /dev/vda2" in text
    assert "pass  fine" in text
    assert "3 of 4 clauses hold" in text


def test_a_lost_machine_is_an_error_not_a_verdict(
    store: ImageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An image is not blamed for a host that killed QEMU."""

    def lost(subject: Subject) -> str:
        raise MachineLost("killed")

    with pytest.raises(MachineLost):
        _run(store.ensure("tiny"), [1], ["a"], monkeypatch, [Clause("a", "a", lost)])
