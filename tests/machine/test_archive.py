"""Unpacking archives that a guest may have forged."""

from __future__ import annotations

import io
import json
import os
import tarfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cua_gym.errors import MachineError, OutOfSpace
from cua_gym.machine.archive import LINKS_NAME, pack, unpack
from cua_gym.machine.tree import remove_tree


def _entry(
    name: str, data: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = "", size: int = -1
) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = link
    info.size = len(data) if size < 0 else size
    return info, data


def _tar(*entries: tuple[tarfile.TarInfo, bytes], form: int = tarfile.GNU_FORMAT) -> io.BytesIO:
    out = io.BytesIO()
    for info, data in entries:
        out.write(info.tobuf(form, "utf-8", "surrogateescape"))
        out.write(data + bytes(-len(data) % 512))
    out.write(bytes(10240))
    out.seek(0)
    return out


def _records(target: Path) -> dict[str, str]:
    return {
        record["name"]: record["kind"] for record in json.loads((target / LINKS_NAME).read_text())
    }


def _files(target: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(target)): path.read_bytes()
        for path in target.rglob("*")
        if path.is_file() and path.name != LINKS_NAME
    }


def test_link_is_inert(tmp_path: Path) -> None:
    """A link is written down with where it points, and never made."""
    stream = _tar(_entry("leak", kind=tarfile.SYMTYPE, link="/etc/passwd"), _entry("ok", b"x"))
    unpack(stream, tmp_path / "t", limit_bytes=100)
    assert json.loads((tmp_path / "t" / LINKS_NAME).read_text()) == [
        {"name": "leak", "kind": "link", "target": "/etc/passwd"}
    ]
    assert not (tmp_path / "t" / "leak").is_symlink()
    assert _files(tmp_path / "t") == {"ok": b"x"}


def test_write_through_a_link(tmp_path: Path) -> None:
    """A link and then a file below it: nothing outside the target, and nothing below the link."""
    outside = tmp_path / "outside"
    outside.mkdir()
    stream = _tar(
        _entry("x", kind=tarfile.SYMTYPE, link=str(outside)),
        _entry("x/cron.d/p", b"evil"),
        _entry("x", b"evil"),
    )
    unpack(stream, tmp_path / "t", limit_bytes=100)
    assert list(outside.iterdir()) == []
    assert _files(tmp_path / "t") == {}
    assert set(_records(tmp_path / "t")) == {"x", "x/cron.d/p"}


@pytest.mark.parametrize(
    "name",
    ["/etc/evil", "../evil", "a/../../evil", "..", "/", "a/..", ".links.json", ".links.json/x", ""],
)
def test_names_that_lead_out(tmp_path: Path, name: str) -> None:
    """Absolute names, parents and the record's own name are refused, each written down."""
    unpack(_tar(_entry(name, b"x"), _entry("ok", b"y")), tmp_path / "t", limit_bytes=100)
    assert _files(tmp_path / "t") == {"ok": b"y"}
    assert _records(tmp_path / "t") == {name: "refused"}
    assert [path.name for path in tmp_path.iterdir()] == ["t"]


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        (tarfile.LNKTYPE, "hardlink"),
        (tarfile.CHRTYPE, "special"),
        (tarfile.BLKTYPE, "special"),
        (tarfile.FIFOTYPE, "special"),
    ],
)
def test_other_kinds(tmp_path: Path, kind: bytes, word: str) -> None:
    """Hard links, devices and pipes are written down and never made."""
    unpack(_tar(_entry("n", kind=kind, link="/etc/passwd")), tmp_path / "t", limit_bytes=100)
    assert _records(tmp_path / "t") == {"n": word}
    assert [path.name for path in (tmp_path / "t").iterdir()] == [LINKS_NAME]


def test_a_place_taken_twice(tmp_path: Path) -> None:
    """The first of two entries with one name stays; a file is no folder and the other way round."""
    stream = _tar(
        _entry("a", b"1"),
        _entry("a", b"2"),
        _entry("a/below", b"3"),
        _entry("d/x", b"4"),
        _entry("d", b"5"),
    )
    unpack(stream, tmp_path / "t", limit_bytes=100)
    assert _files(tmp_path / "t") == {"a": b"1", "d/x": b"4"}
    assert _records(tmp_path / "t") == {"a": "refused", "a/below": "refused", "d": "refused"}


def test_planted_links(tmp_path: Path) -> None:
    """A target that holds something, or is a link, is refused before anything is written."""
    outside = tmp_path / "outside"
    outside.mkdir()
    planted = tmp_path / "planted"
    planted.mkdir()
    (planted / "x").symlink_to(outside)
    (tmp_path / "link").symlink_to(outside)
    for target in (planted, tmp_path / "link"):
        with pytest.raises(FileExistsError):
            unpack(_tar(_entry("x/p", b"evil")), target, limit_bytes=100)
    assert list(outside.iterdir()) == []


def test_link_planted_while_unpacking(tmp_path: Path) -> None:
    """A link that appears in the target meanwhile is not followed either."""
    outside = tmp_path / "outside"
    outside.mkdir()
    target = tmp_path / "t"
    entries = [_entry(f"pad{i}", bytes(9000)) for i in range(5)]
    stream = _tar(*entries, _entry("x/p", b"evil"), _entry("y", b"evil"))

    class Planting:
        def read(self, size: int) -> bytes:
            if target.exists() and not (target / "x").is_symlink():
                (target / "x").symlink_to(outside)
                (target / "y").symlink_to(outside / "y")
            return stream.read(min(size, 1000))

    unpack(Planting(), target, limit_bytes=100_000)
    assert list(outside.iterdir()) == []
    assert _records(target) == {"x/p": "refused", "y": "refused"}


def test_more_than_allowed(tmp_path: Path) -> None:
    """Too many bytes or entries, announced or sent, end in `OutOfSpace` and leave no folder."""
    target = tmp_path / "t"
    with pytest.raises(OutOfSpace, match="100 bytes"):
        unpack(_tar(_entry("a", bytes(60)), _entry("b", bytes(60))), target, limit_bytes=100)
    with pytest.raises(OutOfSpace, match="1099511627776"):
        unpack(_tar(_entry("sparse", size=1 << 40)), target, limit_bytes=1 << 30)
    with pytest.raises(OutOfSpace, match="3 entries"):
        unpack(_tar(*(_entry(str(i)) for i in range(4))), target, limit_bytes=100, max_entries=3)
    with pytest.raises(OutOfSpace, match="longer"):
        unpack(
            _tar(_entry("d", bytes(1 << 20), tarfile.DIRTYPE), _entry("e", bytes(1 << 20))),
            target,
            limit_bytes=100,
            max_entries=3,
        )
    assert not target.exists()


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE])
def test_header_bomb(tmp_path: Path, kind: bytes) -> None:
    """A "long name" of gigabytes is refused before it is read into memory."""
    with pytest.raises(MachineError, match="extension of 8000000000 bytes"):
        unpack(_tar(_entry("x", kind=kind, size=8_000_000_000)), tmp_path / "t", limit_bytes=100)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("kept", [0, 100, 512, 700, 1536, 1600, 2048, 2600, 3072])
def test_cut_archive(tmp_path: Path, kept: int) -> None:
    """A stream that ends early is an error, never a folder that looks whole."""
    whole = _tar(_entry("a", bytes(1000)), _entry("b", bytes(1000))).getvalue()
    with pytest.raises(MachineError):
        unpack(io.BytesIO(whole[:kept]), tmp_path / "t", limit_bytes=10_000)
    assert not (tmp_path / "t").exists()


def test_damaged_header(tmp_path: Path) -> None:
    """A damaged header in the middle is not taken for the end."""
    whole = bytearray(_tar(_entry("a", b"1"), _entry("b", b"2")).getvalue())
    whole[1024] ^= 255
    with pytest.raises(MachineError):
        unpack(io.BytesIO(whole), tmp_path / "t", limit_bytes=100)
    assert not (tmp_path / "t").exists()


def test_modes_are_tame(tmp_path: Path) -> None:
    """Set-uid bits are dropped, the owner can always read, executability is kept."""
    suid, _ = _entry("suid", b"x")
    suid.mode = 0o6777
    hidden, _ = _entry("hidden", b"x")
    hidden.mode = 0
    unpack(_tar((suid, b"x"), (hidden, b"x")), tmp_path / "t", limit_bytes=100)
    assert (tmp_path / "t" / "suid").stat().st_mode & 0o7777 == 0o755 & ~_umask()
    assert (tmp_path / "t" / "hidden").stat().st_mode & 0o7777 == 0o600


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


_NAMES = st.binary(min_size=1, max_size=60).filter(
    lambda name: b"/" not in name and b"\0" not in name and name not in (b".", b"..")
)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.dictionaries(_NAMES, st.binary(max_size=2000), max_size=6))
def test_any_folder_there_and_back(
    tmp_path_factory: pytest.TempPathFactory, files: dict[bytes, bytes]
) -> None:
    """What `pack` sends, `unpack` restores, whatever the names' bytes."""
    folder = tmp_path_factory.mktemp("pack")
    source = folder / "source"
    source.mkdir()
    for name, data in files.items():
        (source / os.fsdecode(name)).write_bytes(data)
    stream = io.BytesIO()
    pack(source, stream)
    stream.seek(0)
    unpack(stream, folder / "t", limit_bytes=100_000)
    found = {os.fsencode(path.name): path.read_bytes() for path in (folder / "t").iterdir()}
    assert {name: data for name, data in found.items() if name != LINKS_NAME.encode()} == {
        name: data for name, data in files.items() if name != LINKS_NAME.encode()
    }


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_damage_stays_inside(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Whatever bytes arrive, the result is a folder or a typed error; nothing appears beside it."""
    folder = tmp_path_factory.mktemp("damage")
    whole = bytearray(
        _tar(
            _entry("a/b", b"1" * 600),
            _entry("l", kind=tarfile.SYMTYPE, link="/etc"),
            _entry("n" * 150, b"2"),
        ).getvalue()[:5120]
    )
    for at, value in data.draw(
        st.lists(st.tuples(st.integers(0, len(whole) - 1), st.integers(0, 255)), max_size=8)
    ):
        whole[at] = value
    try:
        unpack(io.BytesIO(whole), folder / "t", limit_bytes=5000)
    except (MachineError, OutOfSpace):
        assert list(folder.iterdir()) == []
    else:
        assert [path.name for path in folder.iterdir()] == ["t"]
        assert not any(path.is_symlink() for path in folder.rglob("*"))


def test_a_deep_tree_is_refused_and_cleaned_up(tmp_path: Path) -> None:
    """Folders deeper than anyone's work are written down; the depth breaks no clean-up."""
    deep = [_entry("/".join(["d"] * depth), kind=tarfile.DIRTYPE) for depth in (99, 100, 101, 1500)]
    unpack(_tar(*deep, _entry("ok", b"x")), tmp_path / "t", limit_bytes=100)
    assert _records(tmp_path / "t") == {info.name: "refused" for info, _ in deep[2:]}
    assert (tmp_path / "t" / "/".join(["d"] * 100)).is_dir()
    with pytest.raises(OutOfSpace):
        unpack(_tar(*deep, _entry("big", bytes(200))), tmp_path / "u", limit_bytes=100)
    assert not (tmp_path / "u").exists()


def test_pack_of_a_deep_folder(tmp_path: Path) -> None:
    """Packing does not recurse; a socket, which no archive can hold, is left out."""
    deep = tmp_path / "source" / "/".join(["d"] * 1050)
    at = os.open(tmp_path, os.O_RDONLY)
    for name in ["source", *["d"] * 1050]:
        os.mkdir(name, dir_fd=at)
        below = os.open(name, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    (deep / "x").write_bytes(b"x")
    stream = io.BytesIO()
    pack(tmp_path / "source", stream)
    stream.seek(0)
    with tarfile.open(fileobj=stream) as archive:
        assert archive.getnames()[-1] == "d/" * 1050 + "x"
    remove_tree(tmp_path / "source")


def _extended(**headers: str) -> bytes:
    info = tarfile.TarInfo("a")
    info.pax_headers = headers
    return info.tobuf(tarfile.PAX_FORMAT) + bytes(1024)


@pytest.mark.parametrize(
    "raw",
    [
        _extended(mtime="nan"),
        _extended(mtime="inf"),
        _extended(mtime="1e30"),
        _extended(path="a\0b"),
        _extended(path="a\0/b"),
        b"".join(tarfile.TarInfo.create_pax_global_header({"a": "b"}) for _ in range(2000)),
    ],
    ids=["nan", "inf", "huge", "nul", "nul-folder", "chain"],
)
def test_headers_that_no_tar_writes(tmp_path: Path, raw: bytes) -> None:
    """A forged header is a broken archive, typed, and nothing half unpacked stays."""
    good = _tar(_entry("ok", b"x")).getvalue()[:1024]
    with pytest.raises(MachineError, match="broken"):
        unpack(io.BytesIO(good + raw), tmp_path / "t", limit_bytes=100_000)
    assert list(tmp_path.iterdir()) == []
