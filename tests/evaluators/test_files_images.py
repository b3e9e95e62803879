"""Files, pictures, windows and answers."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from PIL import Image

from .conftest import Judge


def picture(
    colour: tuple[int, int, int], size: tuple[int, int] = (40, 30), kind: str = "PNG"
) -> bytes:
    """A plain picture."""
    data = io.BytesIO()
    Image.new("RGB", size, colour).save(data, kind)
    return data.getvalue()


def test_there_and_not_there(judge: Judge):
    """Each is the other's opposite."""
    assert judge("files.exists", "x").passed
    assert not judge("files.exists", None).passed
    assert judge("files.absent", None).passed
    assert not judge("files.absent", "x").passed


def test_a_tree_is_all_of_it(judge: Judge):
    """Further, missing and changed files are differences."""
    wanted = {"root": "/home/user", "expected": {"a": "1", "d/b": b"2"}}
    assert judge(
        "files.tree_equals", {"/home/user/a": b"1", "/home/user/d/b": b"2"}, **wanted
    ).passed
    for other in (
        {"/home/user/a": b"1"},
        {"/home/user/a": b"1", "/home/user/d/b": b"3"},
        {"/home/user/a": b"1", "/home/user/d/b": b"2", "/home/user/c": b""},
        {"/home/user/a": b"1", "/home/user/b": b"2"},
    ):
        assert not judge("files.tree_equals", other, **wanted).passed


def test_a_pictures_format_is_its_content(judge: Judge):
    """A JPEG called png is a JPEG."""
    wanted = {"width": 40, "height": 30, "file_format": "png"}
    assert judge("images.size", picture((1, 2, 3)), **wanted).passed
    assert not judge("images.size", picture((1, 2, 3), kind="JPEG"), **wanted).passed
    assert not judge("images.size", picture((1, 2, 3), (41, 30)), **wanted).passed
    assert not judge("images.size", picture((1, 2, 3))[:60], **wanted).passed


def test_an_untouched_picture_cannot_pass(judge: Judge):
    """A tolerance so wide that the start would pass is not enough."""
    start, goal = picture((100, 100, 100)), picture((110, 110, 110))
    rule = {"reference": goal, "box": [0, 0, 40, 30], "max_difference": 20, "unlike": start}
    assert judge("images.region", goal, **rule).passed
    assert not judge("images.region", start, **rule).passed
    assert not judge("images.region", picture((110, 110, 110), (30, 40)), **rule).passed


@pytest.mark.parametrize("data", [b"", b"\x89PNG", np.zeros(100, np.uint8).tobytes()])
def test_broken_pictures_are_a_plain_fail(judge: Judge, data: bytes):
    """Never the grader's fault."""
    assert not judge("images.size", data, width=1, height=1).passed


def test_windows_are_found_by_whole_title(judge: Judge):
    """A part of a title, another program and a minimized window do not count."""
    windows = json.dumps([{"title": "note.txt - Editor", "app": "Editor", "minimized": True}])
    assert not judge("desktop.window", windows, title=r"note\.txt - Editor").passed
    assert judge("desktop.window", windows, title=r"note\.txt - Editor", shown=False).passed
    assert not judge("desktop.window", windows, title="note", shown=False).passed
    assert not judge("desktop.no_window", windows, title=".*Editor").passed


def test_an_answer_is_all_of_the_answer(judge: Judge):
    """No sentence around it, and none is not an empty one."""
    assert judge("answer.equals", " 42\n", expected=42).passed
    for other in ("the answer is 42", "", "42.0", None):
        assert not judge("answer.equals", other, expected=42).passed


def test_giving_up_is_read_from_the_submission(judge: Judge):
    """Its text is the agent's, its kind is ours."""
    assert judge("answer.gave_up", '{"kind": "give_up"}').passed
    assert not judge("answer.gave_up", '{"kind": "submit", "answer": "give_up"}').passed
