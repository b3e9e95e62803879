"""The store: an image is there whole or not at all, is built once, and never changes unseen."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cua_gym.cache import cache_root
from cua_gym.errors import ImageError
from cua_gym.image import build as building
from cua_gym.image.manifest import Manifest
from cua_gym.image.recipe import Recipe
from cua_gym.image.store import ImageStore

from .conftest import make_image


def test_cache_root_follows_xdg() -> None:
    """XDG_CACHE_HOME moves everything."""
    assert cache_root({"XDG_CACHE_HOME": "/big"}) == Path("/big/cua-gym")
    assert cache_root({}) == Path.home() / ".cache/cua-gym"


def test_get_names_the_remedy_when_nothing_is_built(store: ImageStore) -> None:
    """The message is the command to run."""
    with pytest.raises(ImageError, match="make image IMAGE=tiny"):
        store.get("tiny")


def test_ensure_builds_once(store: ImageStore) -> None:
    """The second call builds nothing; get and list find it."""
    messages: list[str] = []
    built = store.ensure("tiny", messages.append)
    assert messages == ["making a toy"]
    assert store.ensure("tiny", messages.append) == built
    assert messages == ["making a toy"]
    assert store.get("tiny") == built
    assert store.list() == [built]
    assert store.is_current(built)
    recipe_hash = built.manifest.recipe_hash
    assert built.folder == store.root / f"tiny-{recipe_hash[:12]}"
    assert built.vmdk.name == "disk.vmdk"
    assert built.qcow2.name == f"disk-{built.manifest.disk_sha256[:12]}.qcow2"
    assert not list(store.root.glob(".build-*")), "the workshop is gone"


def test_a_changed_recipe_is_another_image(store: ImageStore, images: Path) -> None:
    """The old build stays, is not current, and is not handed out."""
    old = store.ensure("tiny")
    (images / "tiny/overlay/etc/tiny").write_text("new\n", encoding="utf-8")
    with pytest.raises(ImageError, match="1 from older recipes"):
        store.get("tiny")
    assert not store.is_current(old)
    new = store.ensure("tiny")
    assert new.folder != old.folder
    assert len(store.find("tiny")) == 2


def test_a_stale_image_is_handed_out_only_when_asked_for(
    store: ImageStore, images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a warning, for work on a recipe while others use the image."""
    old = store.ensure("tiny")
    (images / "tiny/overlay/etc/tiny").write_text("new\n", encoding="utf-8")
    monkeypatch.setenv("CUA_GYM_STALE_IMAGE", "1")
    with pytest.warns(UserWarning, match="older recipe"):
        assert store.get("tiny") == old


def test_a_failed_build_leaves_nothing(tmp_path: Path, images: Path) -> None:
    """Neither an image nor a workshop; the next build works."""

    def fail(recipe: Recipe, work: Path, log: Path, progress: Callable[[str], None]) -> Path:
        (work / "half").write_text("half", encoding="ascii")
        raise ImageError("no such package")

    broken = ImageStore(tmp_path / "cache", search=[images], builder=fail)
    with pytest.raises(ImageError, match="no such package"):
        broken.ensure("tiny")
    assert broken.list() == []
    assert not list(broken.root.glob(".build-*"))
    ImageStore(tmp_path / "cache", search=[images], builder=make_image).ensure("tiny")


def test_an_incomplete_image_is_not_seen_and_is_replaced(store: ImageStore) -> None:
    """A folder without its disk is no image."""
    built = store.ensure("tiny")
    built.qcow2.unlink()
    assert store.list() == []
    assert store.ensure("tiny").is_complete


def test_a_changed_base_is_refused_with_the_cause(store: ImageStore) -> None:
    """qemu-img would call it sound while all overlays on it are wrong."""
    built = store.ensure("tiny")
    built.qcow2.chmod(0o644)
    with built.qcow2.open("r+b") as file:
        file.seek(4096)
        file.write(b"changed")
    with pytest.raises(ImageError, match=r"has changed since it was built.*Overlays") as error:
        store.get("tiny")
    assert str(built.qcow2) in str(error.value)


def test_a_swapped_base_of_equal_size_and_time_is_refused(store: ImageStore) -> None:
    """Putting the old times back does not help: the inode is another."""
    built = store.ensure("tiny")
    status = built.qcow2.stat()
    copy = built.folder / "copy"
    copy.write_bytes(built.qcow2.read_bytes()[:-4] + b"swap")
    copy.replace(built.qcow2)
    os.utime(built.qcow2, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(ImageError, match="has changed"):
        store.get("tiny")


def test_a_copied_cache_is_verified_once(store: ImageStore, tmp_path: Path, images: Path) -> None:
    """Copies have other inodes: the hash is taken once, and then remembered."""
    built = store.ensure("tiny")
    shutil.copytree(store.root.parent, tmp_path / "copy")
    copied = ImageStore(tmp_path / "copy", search=[images]).get("tiny")
    stamps = json.loads((copied.folder / ".verified").read_text())
    assert stamps[built.qcow2.name][3] == copied.qcow2.stat().st_ino


def test_two_builders_make_one_image(tmp_path: Path, images: Path) -> None:
    """One builds, the other waits and says so."""
    begun, go_on = threading.Event(), threading.Event()
    builds: list[Path] = []

    def slow(recipe: Recipe, work: Path, log: Path, progress: Callable[[str], None]) -> Path:
        builds.append(work)
        begun.set()
        assert go_on.wait(30)
        return make_image(recipe, work, log, progress)

    def waiting(message: str) -> None:
        if "waiting" in message:
            go_on.set()

    store = ImageStore(tmp_path / "cache", search=[images], builder=slow)
    first = threading.Thread(target=store.ensure, args=("tiny",))
    first.start()
    assert begun.wait(30)
    second = store.ensure("tiny", waiting)
    first.join(30)
    assert len(builds) == 1
    assert store.get("tiny") == second


_KILLED_BUILD = """
import sys
from pathlib import Path
from cua_gym.image.contain import Runner
from cua_gym.image.store import ImageStore

def build(recipe, work, log, progress):
    (work / "tree").mkdir()
    (work / "tree" / "half").write_text("half")
    script = f"mount -t tmpfs none {work}/tree; echo > {work}/../pid; sleep 600 & wait"
    Runner(log, progress).run(["sh", "-c", script])

ImageStore(Path(sys.argv[1]), search=[Path(sys.argv[2])], builder=build).ensure("tiny")
"""


def test_a_killed_build_is_cleaned_up_and_a_live_one_is_not(
    tmp_path: Path, images: Path, store: ImageStore
) -> None:
    """kill -9 ends all that the build had started and mounted; the next build removes the rest."""
    command = [sys.executable, "-c", _KILLED_BUILD, str(tmp_path / "cache"), str(images)]
    victim = subprocess.Popen(command)
    _wait(lambda: (store.root / "pid").exists())
    _wait(lambda: len(_below(victim.pid)) >= 2)
    works = list(store.root.glob(".build-*"))
    assert len(works) == 1
    assert store.sweep() == [], "its builder lives"
    children = _below(victim.pid)
    assert len(children) >= 2
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    _wait(lambda: not any(_alive(pid) for pid in children))
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8")
    assert str(works[0]) not in mounts
    store.ensure("tiny")
    assert not list(store.root.glob(".build-*"))


def test_an_image_in_use_is_not_removed(store: ImageStore) -> None:
    """A process that has the disk open is named."""
    built = store.ensure("tiny")
    with built.qcow2.open("rb") as disk:
        holder = subprocess.Popen(["sleep", "600"], stdin=disk)
    try:
        with pytest.raises(ImageError, match=str(holder.pid)):
            store.remove(built)
    finally:
        holder.kill()
        holder.wait()
    store.remove(built)
    assert store.list() == []


def test_find_suggests_near_names(store: ImageStore) -> None:
    """By recipe name or by one build's name."""
    built = store.ensure("tiny")
    assert store.find(built.folder.name) == [built]
    with pytest.raises(ImageError, match="did you mean tiny"):
        store.find("tinny")


def test_too_little_space_is_found_before_the_build(
    tmp_path: Path, images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message has both numbers and where the space is missing."""
    monkeypatch.setattr(building, "NEEDED_BYTES", 2**60)
    monkeypatch.setattr(building, "missing_host_tools", dict)
    store = ImageStore(tmp_path / "cache", search=[images])
    with pytest.raises(ImageError, match=r"needs \d+ GiB at .*, [\d.]+ GiB are free"):
        store.ensure("tiny")


def test_missing_tools_are_named_with_the_command(
    tmp_path: Path, images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host without mmdebstrap is told what to install."""
    monkeypatch.setattr(building, "missing_host_tools", lambda: {"mmdebstrap": "mmdebstrap"})
    store = ImageStore(tmp_path / "cache", search=[images])
    with pytest.raises(ImageError, match="apt-get install --no-install-recommends mmdebstrap"):
        store.ensure("tiny")


def test_a_broken_manifest_says_what_to_do(tmp_path: Path) -> None:
    """Not a traceback of the JSON reader."""
    (tmp_path / "manifest.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ImageError, match="build again"):
        Manifest.read(tmp_path / "manifest.json")


def _wait(condition: Callable[[], bool], timeout_s: float = 30.0) -> None:
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def _below(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # it has just ended
            for child in task.read_text().split():
                found += [int(child), *_below(int(child))]
    return found


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
