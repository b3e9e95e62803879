"""The tools of the shell bridge for files: every byte, every name, at any size."""

from __future__ import annotations

import base64
import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from cua_gym.bridge import uploads
from cua_gym.bridge.files import EDIT_BYTES, READ_BYTES
from cua_gym.bridge.uploads import Uploads
from cua_gym.errors import ActionError, MachineLost, OutOfSpace
from tests.bridge.clients import facts_of, lines_of, refusal_of, text_of, toy_of
from tests.bridge.conftest import Pair

MIB = 1 << 20


def home(pair: Pair) -> Path:
    """The agent's home folder on this machine."""
    return toy_of(pair.served).shell.host_path("/home/user")


def b64(data: bytes) -> str:
    """For an argument."""
    return base64.b64encode(data).decode()


def sha(data: bytes) -> str:
    """The sum of a file."""
    return hashlib.sha256(data).hexdigest()


def read_all(pair: Pair, path: str, limit: int = READ_BYTES) -> bytes:
    """A file as an agent reads it that goes on at ``next`` until it is ``size``."""
    data = b""
    while True:
        answer = facts_of(pair.shell.call("read_file", path=path, offset=len(data), limit=limit))
        part = answer.get("text")
        data += base64.b64decode(answer["text_base64"]) if part is None else part.encode()
        assert answer["next"] == len(data)
        if len(data) == answer["size"]:
            return data
        assert part or "text_base64" in answer


def download(pair: Pair, path: str, length: int) -> bytes:
    """A file as an agent downloads it."""
    data = b""
    while True:
        answer = facts_of(pair.shell.call("download", path=path, offset=len(data), length=length))
        data += base64.b64decode(answer["data_base64"])
        if answer["next"] >= answer["size"]:
            return data


def test_text_is_written_and_read(quick: Pair) -> None:
    """Folders are made, a relative path starts at the home folder, an older file is replaced."""
    for text in ("héllo\n", "", "\r\n\ttab 你 🙂"):
        answer = facts_of(quick.shell.call("write_file", path="a/b/c.txt", content=text))
        assert (answer["bytes"], answer["sha256"]) == (len(text.encode()), sha(text.encode()))
        read = facts_of(quick.shell.call("read_file", path="~/a/b/../b/c.txt"))
        assert read["text"] == text
        assert (home(quick) / "a/b/c.txt").read_bytes() == text.encode()


def test_bytes_are_written_and_read(quick: Pair) -> None:
    """What is no text goes as base64 both ways."""
    data = bytes(range(256))
    facts_of(
        quick.shell.call("write_file", path="b", content=b64(data), encoding="base64",
                         executable=True)
    )  # fmt: skip
    assert (
        base64.b64decode(facts_of(quick.shell.call("read_file", path="b"))["text_base64"]) == data
    )
    assert facts_of(quick.shell.call("stat", path="b"))["mode"] == "0755"


@pytest.mark.parametrize("limit", [4, 5, 6, 7, 1000])
def test_a_file_is_read_in_parts_of_any_size(quick: Pair, limit: int) -> None:
    """Every part brings a reader on, and none cuts a character in two."""
    data = "a你🙂é".encode() * 20 + b"\xff\xe4\xbd"
    (home(quick) / "parts").write_bytes(data)
    assert read_all(quick, "parts", limit) == data


@pytest.mark.parametrize("data", [b"\0" * 200_000, b'"\\' * 100_000, b"\x01" * 100_001])
def test_what_json_makes_long_stays_below_what_a_client_takes(quick: Pair, data: bytes) -> None:
    """Control characters take six bytes each, and an answer has them twice."""
    (home(quick) / "long").write_bytes(data)
    assert len(quick.shell.call("read_file", path="long").model_dump_json()) < MIB
    assert read_all(quick, "long") == data


def test_a_file_is_uploaded_in_chunks(quick: Pair) -> None:
    """It appears with the last chunk, whole; a chunk that is sent again replaces itself."""
    data = os.urandom(300_000)
    for offset in (0, 100_000, 100_000):  # the answer to the second was lost
        chunk = b64(data[offset : offset + 100_000])
        answer = facts_of(
            quick.shell.call("upload", path="up", data_base64=chunk, offset=offset, last=False)
        )
        assert answer["next"] == offset + 100_000
    assert not (home(quick) / "up").exists()
    answer = facts_of(
        quick.shell.call("upload", path="~/up", data_base64=b64(data[200_000:]), offset=200_000,
                         sha256=sha(data))
    )  # fmt: skip
    assert (answer["bytes"], answer["sha256"]) == (300_000, sha(data))
    assert (home(quick) / "up").read_bytes() == data
    assert download(quick, "up", 70_001) == data


def test_two_uploads_at_once(quick: Pair) -> None:
    """Chunks of different files do not meet."""
    for path, chunk in (("one", b"1"), ("two", b"2")):
        facts_of(quick.shell.call("upload", path=path, data_base64=b64(chunk), last=False))
    for path, chunk in (("one", b"1"), ("two", b"2")):
        facts_of(quick.shell.call("upload", path=path, data_base64=b64(chunk), offset=1))
    assert (home(quick) / "one").read_bytes() == b"11"
    assert (home(quick) / "two").read_bytes() == b"22"


def test_a_missing_chunk_is_told(quick: Pair) -> None:
    """It says where the next one starts, and what came before is kept."""
    facts_of(quick.shell.call("upload", path="gap", data_base64=b64(b"abc"), last=False))
    why = refusal_of(quick.shell.call("upload", path="gap", data_base64=b64(b"x"), offset=4))
    assert "starts at 3, not at 4" in why
    facts_of(quick.shell.call("upload", path="gap", data_base64=b64(b"d"), offset=3))
    assert (home(quick) / "gap").read_bytes() == b"abcd"


def test_a_wrong_sum_puts_nothing(quick: Pair) -> None:
    """It says what arrived, and the file can be sent again."""
    why = refusal_of(
        quick.shell.call("upload", path="sum", data_base64=b64(b"abc"), sha256=sha(b"abd"))
    )
    assert sha(b"abc") in why
    assert not (home(quick) / "sum").exists()
    facts_of(quick.shell.call("upload", path="sum", data_base64=b64(b"abc"), sha256=sha(b"abc")))


def test_an_empty_file(quick: Pair) -> None:
    """Up and down."""
    facts_of(quick.shell.call("upload", path="empty", data_base64=""))
    assert download(quick, "empty", 1) == b""
    assert facts_of(quick.shell.call("stat", path="empty"))["size"] == 0


def test_names_that_are_no_text(quick: Pair) -> None:
    """They are listed beside the others, and are paths as they are listed."""
    folder = home(quick) / "odd"
    folder.mkdir()
    raw = os.fsencode(folder) + b"/\xff\n"
    Path(os.fsdecode(raw)).write_bytes(b"odd")
    (folder / "ok 你").write_bytes(b"")
    entries = facts_of(quick.shell.call("list_dir", path="odd"))["entries"]
    odd = "base64:" + b64(b"\xff\n")
    assert {entry["name"] for entry in entries} == {odd, "ok 你"}
    path = "base64:" + b64(b"odd/\xff\n")
    assert text_of(quick.shell.call("read_file", path=path)) == "odd"
    assert facts_of(quick.shell.call("stat", path=path))["name"] == odd


def test_links_and_folders(quick: Pair) -> None:
    """A link is told as one, its file is read; a folder is no file."""
    (home(quick) / "target").write_text("there")
    (home(quick) / "link").symlink_to("target")
    (home(quick) / "loose").symlink_to("nowhere")
    assert facts_of(quick.shell.call("stat", path="link"))["kind"] == "link"
    assert facts_of(quick.shell.call("stat", path="loose"))["kind"] == "link"
    assert text_of(quick.shell.call("read_file", path="link")) == "there"
    assert facts_of(quick.shell.call("stat", path="."))["kind"] == "dir"
    assert "FileNotFoundError" in refusal_of(quick.shell.call("read_file", path="loose"))
    assert "IsADirectory" in refusal_of(quick.shell.call("read_file", path="."))
    assert "NotADirectory" in refusal_of(quick.shell.call("list_dir", path="target"))
    assert "NotADirectory" in refusal_of(
        quick.shell.call("write_file", path="target/x", content="")
    )


def test_a_long_folder_is_listed_in_parts(quick: Pair) -> None:
    """However many and however named, an answer stays below what a client takes."""
    folder = home(quick) / "many"
    folder.mkdir()
    names = {f"{n:04}" + ("\x01" * 245 if n % 2 else "") for n in range(1500)}
    for name in names:
        (folder / name).touch()
    seen: list[str] = []
    while True:
        answer = quick.shell.call("list_dir", path="many", start=len(seen))
        assert len(answer.model_dump_json()) < MIB
        facts = facts_of(answer)
        seen += [entry["name"] for entry in facts["entries"]]
        assert facts["next"] == len(seen)
        if len(seen) == facts["count"]:
            break
        assert f"start={len(seen)}" in text_of(answer)
    assert len(seen) == 1500
    assert set(seen) == names


def test_text_in_a_file_is_replaced(quick: Pair) -> None:
    """Exactly what was given, and the file keeps its rights."""
    facts_of(quick.shell.call("write_file", path="e", content="a.b a*b\r\n", executable=True))
    assert facts_of(quick.shell.call("edit_file", path="e", old=".b", new="你"))["replaced"] == 1
    assert (home(quick) / "e").read_bytes() == "a你 a*b\r\n".encode()
    assert facts_of(quick.shell.call("stat", path="e"))["mode"] == "0755"
    assert "2 times" in refusal_of(quick.shell.call("edit_file", path="e", old="a", new=""))
    edited = quick.shell.call("edit_file", path="e", old="a", new="", replace_all=True)
    assert facts_of(edited)["replaced"] == 2
    assert (home(quick) / "e").read_bytes() == "你 *b\r\n".encode()


@pytest.mark.parametrize(
    ("content", "old", "new", "why"),
    [
        (b"abc", "x", "y", "not in the file"),
        (b"abc", "", "y", "old: "),
        (b"\xffabc", "abc", "y", "no UTF-8"),
        (b"x" * (EDIT_BYTES + 1), "x", "y", f"{EDIT_BYTES} bytes"),
        (b"x" * 100_000, "x", "y" * 100_000, "it would have more than"),
    ],
)
def test_what_cannot_be_edited_stays(
    quick: Pair, content: bytes, old: str, new: str, why: str
) -> None:
    """Told why, nothing changed; a small answer never makes a file that fills the memory."""
    (home(quick) / "f").write_bytes(content)
    answer = quick.shell.call("edit_file", path="f", old=old, new=new, replace_all=True)
    assert why in refusal_of(answer)
    assert (home(quick) / "f").read_bytes() == content


def test_a_file_that_changes_while_it_is_downloaded(quick: Pair) -> None:
    """The download comes to an end, whether the file grows or shrinks."""
    path = home(quick) / "log"
    path.write_bytes(b"x" * 1000)
    facts_of(quick.shell.call("download", path="log", length=600))
    path.write_bytes(b"y" * 700)
    second = facts_of(quick.shell.call("download", path="log", offset=600))
    assert (second["next"], second["size"]) == (700, 700)
    path.write_bytes(b"")
    third = facts_of(quick.shell.call("download", path="log", offset=650))
    assert (third["data_base64"], third["next"], third["size"]) == ("", 650, 650)


@pytest.mark.parametrize(
    ("tool", "arguments", "why"),
    [
        ("read_file", {"path": "nosuch"}, "FileNotFoundError"),
        ("read_file", {"path": ""}, "IsADirectory"),
        ("read_file", {"path": "a\0b"}, "NUL"),
        ("read_file", {"path": "base64:AA=="}, "NUL"),
        ("read_file", {"path": "base64:é"}, "no base64"),
        ("read_file", {"path": "x" * 5000}, "too long"),
        ("read_file", {"path": "link", "offset": 10**30}, "offset: "),
        ("read_file", {"path": "link", "offset": -1}, "offset: "),
        ("read_file", {"path": "link", "limit": 3}, "limit: "),
        ("read_file", {"path": "link", "limit": 10**9}, "limit: "),
        ("download", {"path": "nosuch"}, "FileNotFoundError"),
        ("download", {"path": "link", "length": 0}, "length: "),
        ("stat", {"path": "nosuch"}, "FileNotFoundError"),
        ("stat", {"path": 3}, "path: "),
        ("list_dir", {"path": "nosuch"}, "FileNotFoundError"),
        ("list_dir", {"start": -1}, "start: "),
        ("upload", {"path": "u", "data_base64": "é"}, "no base64"),
        ("upload", {"path": "u", "data_base64": "QQ"}, "no base64"),
        ("upload", {"path": "u", "data_base64": "QQ==", "offset": 10**30}, "starts at 0"),
        ("upload", {"path": "u", "data_base64": "QQ==", "last": 7}, "last: "),
        ("upload", {"path": ".", "data_base64": "QQ=="}, "Error"),
        ("write_file", {"path": "w", "content": "é", "encoding": "base64"}, "no base64"),
        ("write_file", {"path": "w", "content": "x", "encoding": "latin-1"}, "encoding: "),
        ("write_file", {"path": ".", "content": "x"}, "Error"),
        ("edit_file", {"path": "nosuch", "old": "a", "new": "b"}, "FileNotFoundError"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_told(
    quick: Pair, tool: str, arguments: dict[str, Any], why: str
) -> None:
    """A wrong argument or a file's own error is an answer; the session goes on."""
    assert why in refusal_of(quick.shell.call(tool, **arguments))
    assert quick.served.session.episode.outcome is None


@pytest.mark.parametrize(
    ("error", "why"),
    [(PermissionError(13, "Permission denied", "/etc/shadow"), "Permission denied"),
     (OutOfSpace("no room"), "no room"), (MachineLost("the file server has gone"), "has gone")],
)  # fmt: skip
@pytest.mark.parametrize("tool", ["read_file", "download", "edit_file"])
def test_what_the_account_may_not_or_has_broken_is_no_fault_of_ours(
    quick: Pair, monkeypatch: pytest.MonkeyPatch, error: Exception, why: str, tool: str
) -> None:
    """Its rights, its full disk and its own file server are its own."""

    def refused(*words: Any, **more: Any) -> bytes:
        raise error

    (home(quick) / "own").write_text("abc")
    monkeypatch.setattr(toy_of(quick.served).shell, "read", refused, raising=False)
    more = {"old": "a", "new": "b"} if tool == "edit_file" else {}
    assert why in refusal_of(quick.shell.call(tool, path="own", **more))
    assert quick.served.session.episode.outcome is None


def test_content_is_recorded_by_its_sum(quick: Pair) -> None:
    """A long file stands in the record by length and sum, and what was read by its size."""
    text = "long " * 10_000
    facts_of(quick.shell.call("write_file", path="r", content=text))
    line = lines_of(quick.served)[-1]
    assert line["call"]["arguments"]["content"]["sha256"] == sha(text.encode())
    assert line["info"]["file"] == {"bytes": 50_000}
    facts_of(quick.shell.call("read_file", path="r"))
    line = lines_of(quick.served)[-1]
    assert line["info"]["file"] == {"next": 50_000, "size": 50_000}


def test_uploads_are_limited_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """What all chunks under way take is bounded, and given back at the end."""
    monkeypatch.setattr("cua_gym.bridge.uploads.LIMIT_BYTES", 10)
    uploads = Uploads()
    uploads.add("a", 0, b"123456")
    with pytest.raises(ActionError, match="limited to 10 bytes"):
        uploads.add("b", 0, b"12345")
    uploads.add("a", 2, b"")  # sent again, shorter
    uploads.add("b", 0, b"12345")
    assert uploads.take("a") == b"12"
    uploads.close()
    assert uploads.add("b", 0, b"1") == 1
    uploads.close()


def test_uploads_under_way_are_few(quick: Pair) -> None:
    """Each is an open file of ours: one too many is refused, and ending one makes room."""
    names = [f"half-{n}" for n in range(uploads.LIMIT_FILES + 1)]
    for name in names[:-1]:
        facts_of(quick.shell.call("upload", path=name, data_base64="YQ==", last=False))
    assert "under way" in refusal_of(
        quick.shell.call("upload", path=names[-1], data_base64="YQ==", last=False)
    )
    for name in names[:-1]:
        facts_of(quick.shell.call("upload", path=name, data_base64="Yg==", offset=1))
    assert (home(quick) / names[0]).read_bytes() == b"ab"
