"""Archives: exactly these members, of this kind, and nothing that reaches out."""

from __future__ import annotations

import bz2
import gzip
import io
import stat
import tarfile
import zipfile
from collections.abc import Callable

import pytest

from .conftest import Judge
from .hostile_files import damaged, encrypted, zipped

FILES: dict[str, bytes | str] = {"a.txt": "one", "d/ü.txt": b"two"}


def tar(
    files: dict[str, bytes | str] = FILES,
    mode: str = "w",
    change: Callable[[tarfile.TarInfo], object] = lambda info: None,
) -> bytes:
    """A tar with these files, the last one's header changed."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode=mode) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            packed = content.encode() if isinstance(content, str) else content
            info.size = len(packed)
            if name == list(files)[-1]:
                change(info)
            archive.addfile(info, io.BytesIO(packed))
    return data.getvalue()


ALL = {
    "zip": zipped(FILES),
    "tar": tar(),
    "tar.gz": tar(mode="w:gz"),
    "tar.bz2": tar(mode="w:bz2"),
    "tar.xz": tar(mode="w:xz"),
}


@pytest.mark.parametrize("kind", ALL)
def test_members_are_exactly_these(judge: Judge, kind: str):
    """In every kind; one changed, missing, further or moved file is a difference."""
    assert judge("archives.contents", ALL[kind], expected=FILES).passed
    for other in (
        {"a.txt": "one"},
        {**FILES, "b": "x"},
        {**FILES, "a.txt": "One"},
        {"a.txt": "one", "ü.txt": "two"},
    ):
        assert not judge("archives.contents", ALL[kind], expected=other).passed


@pytest.mark.parametrize("kind", ALL)
def test_the_kind_is_the_content(judge: Judge, kind: str):
    """Exactly one kind holds for each archive."""
    assert [k for k in ALL if judge("archives.format", ALL[kind], kind=k).passed] == [kind]


def test_a_root_folder_is_part_of_the_path(judge: Judge):
    """``./`` in front is none, another folder is."""
    packed = tar({"./top/a": "1", "./top/d/b": "2"})
    wanted = {"a": "1", "d/b": "2"}
    assert judge("archives.contents", packed, expected=wanted, root="top").passed
    assert not judge("archives.contents", packed, expected=wanted).passed
    assert not judge("archives.contents", packed, expected=wanted, root="to").passed
    beside = tar({"top/a": "1", "top/d/b": "2", "c": "3"})
    assert not judge("archives.contents", beside, expected=wanted, root="top").passed
    free = {"root": "top", "further": "allowed"}
    assert judge("archives.contents", beside, expected=wanted, **free).passed


def test_what_must_not_be_in_it(judge: Judge):
    """By whole path; an archive without files or a broken one lacks nothing to be proud of."""
    for packed in ALL.values():
        assert judge("archives.lacks", packed, patterns=["*.log", "txt", "d/*/x"]).passed
        assert not judge("archives.lacks", packed, patterns=["*.log", "d/*"]).passed
        assert not judge("archives.lacks", packed, patterns=["d"]).passed
    for empty in (zipped({}), tar({}), b"", None):
        assert not judge("archives.lacks", empty, patterns=["*.log"]).passed
    folder = tar({"a": "", "build": ""}, change=lambda i: setattr(i, "type", tarfile.DIRTYPE))
    assert not judge("archives.lacks", folder, patterns=["build"]).passed


def test_of_a_tar_the_last_of_a_name_counts_and_a_zip_has_one(judge: Judge):
    """As tar unpacks it; zip programs differ, so a zip is refused."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for content in (b"old", b"new"):
            info = tarfile.TarInfo("a")
            info.size = 3
            archive.addfile(info, io.BytesIO(content))
    assert judge("archives.contents", data.getvalue(), expected={"a": "new"}).passed
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as packed:
        packed.writestr("a", "new")
        with pytest.warns(UserWarning, match="Duplicate"):
            packed.writestr("a", "new")
    assert not judge("archives.contents", data.getvalue(), expected={"a": "new"}).passed


def link(name: str, target: str) -> bytes:
    """A zip with a symbolic link."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        info = zipfile.ZipInfo(name)
        info.create_system = 3
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, target)
    return data.getvalue()


def to_passwd(info: tarfile.TarInfo) -> None:
    """Make it a link to a file of the host, without content of its own."""
    info.type, info.linkname, info.size = tarfile.SYMTYPE, "/etc/passwd", 0


def hard_link(info: tarfile.TarInfo) -> None:
    """Make it another name of the first member."""
    info.type, info.linkname, info.size = tarfile.LNKTYPE, "a", 0


def claims(size: int) -> Callable[[tarfile.TarInfo], None]:
    """A header that says more than there is."""

    def change(info: tarfile.TarInfo) -> None:
        info.pax_headers = {"GNU.sparse.major": "0", "GNU.sparse.size": str(size)}

    return change


HOSTILE = {
    "empty": b"",
    "text": b"a.txt\n",
    "7z": b"7z\xbc\xaf\x27\x1c" + bytes(300),
    "cut zip": ALL["zip"][:-10],
    "cut gz": ALL["tar.gz"][:-10],
    "cut tar": tar({"a": b"1" * 5000})[:2000],
    "no tar within": gzip.compress(b"one"),
    "no tar in bz2": bz2.compress(b"one" * 200),
    "encrypted": encrypted(ALL["zip"]),
    "zip link": link("a", "/etc/passwd"),
    "tar link": tar({"x": "", "a": ""}, change=to_passwd),
    "hard link": tar({"a": "1", "b": ""}, change=hard_link),
    "device": tar({"a": ""}, change=lambda info: setattr(info, "type", tarfile.CHRTYPE)),
    "above": zipped({"a": "1", "../b": "2"}),
    "absolute": tar({"a": "1", "/etc/cron.d/b": "2"}),
    "zip bomb": zipped({"a": bytes(150_000_000)}),
    "gz bomb": gzip.compress(bytes(150_000_000), 1),
    "many": zipped({f"{n}": "" for n in range(10_001)}),
    "within another": zipped({"inner.zip": ALL["zip"]}),
    "a bomb by its header": tar({"a": "1"}, "w:gz", claims(1 << 50)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_archives_are_a_plain_fail(judge: Judge, name: str):
    """No hang, nothing outside, never the grader's fault; links are refused even when unneeded."""
    data = HOSTILE[name]
    assert not judge("archives.contents", data, expected={"a": "1"}, further="allowed").passed
    if name in ("zip link", "tar link", "hard link", "device", "above", "absolute"):
        assert not judge("archives.lacks", data, patterns=["zzz"]).passed


def test_damage_is_never_the_graders_fault(judge: Judge):
    """Copies with a few bytes changed give a verdict each."""
    for good in ALL.values():
        for data in damaged(good):
            judge("archives.contents", data, expected=FILES)
