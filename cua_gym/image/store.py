"""The image store: built images in the user's cache, looked up, built once, published whole.

An image is a folder ``images/<name>-<recipe hash>/`` that appears by one rename. Builds happen in
``images/.build-*`` folders, each locked by its builder for as long as it lives, so that whoever
comes next can tell a dead build from a running one.
"""

from __future__ import annotations

import builtins
import difflib
import json
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cua_gym.cache import cache_root
from cua_gym.errors import ImageError
from cua_gym.image import build as building
from cua_gym.image.disk import sha256_of
from cua_gym.image.manifest import Manifest
from cua_gym.image.recipe import Recipe, bundled_images, find_recipe, recipe_names
from cua_gym.image.workshop import grave, locked, remove_tree, sweep, workshop

__all__ = ["Image", "ImageStore"]

STALE_VARIABLE = "CUA_GYM_STALE_IMAGE"

Builder = Callable[[Recipe, Path, Path, Callable[[str], None]], Path]
Stamp = list[int]


@dataclass(frozen=True, slots=True)
class Image:
    """A complete image.

    Attributes:
        name: the recipe's name, such as ``debian-12``.
        folder: holds the manifest, the disks and the control key.
        manifest: what is known about it.
    """

    name: str
    folder: Path
    manifest: Manifest

    @property
    def vmdk(self) -> Path:
        """The image itself: one monolithicSparse file."""
        return self.folder / "disk.vmdk"

    @property
    def qcow2(self) -> Path:
        """What overlays stand on: a VMDK in a backing chain blocks saving a machine."""
        return self.folder / f"disk-{self.manifest.disk_sha256[:12]}.qcow2"

    @property
    def control_key(self) -> Path:
        """Private half of the key that opens the control account; never in the guest."""
        return self.folder / "control_key"

    @property
    def is_complete(self) -> bool:
        """Whether all its files are there."""
        return all(path.is_file() for path in (self.vmdk, self.qcow2, self.control_key))

    def verify(self) -> None:
        """Check that the disks are still those that were built.

        The hash is taken only when a file's size, times or inode differ from those at its last
        verification: `qemu-img check` calls a swapped base sound, while all overlays on it are
        silently wrong.

        Raises:
            ImageError: a disk has changed.
        """
        for path, recorded in (
            (self.qcow2, self.manifest.qcow2_sha256),
            (self.vmdk, self.manifest.disk_sha256),
        ):
            if self._stamps().get(path.name) == _stamp(path):
                continue
            found = sha256_of(path)
            if found != recorded:
                raise ImageError(
                    f"{path} has changed since it was built: its SHA-256 is {found[:12]}, the "
                    f"manifest says {recorded[:12]}. Overlays and states made on it are wrong. "
                    f"Run `cua-gym image rm {self.name}` and `make image IMAGE={self.name}`"
                )
            self._record_stamp(path)

    def users(self) -> list[int]:
        """Processes that have one of the disks open, as far as this user may see."""
        inodes = {(s.st_dev, s.st_ino) for s in (self.vmdk.stat(), self.qcow2.stat())}
        return sorted(_holders(inodes))

    def _stamps(self) -> dict[str, Stamp]:
        try:
            stamps: dict[str, Stamp] = json.loads((self.folder / ".verified").read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return stamps

    def _record_stamp(self, path: Path) -> None:
        text = json.dumps({**self._stamps(), path.name: _stamp(path)})
        try:
            _write_atomically(self.folder / ".verified", text)
        except OSError:
            pass  # A cache that is shared read-only: the next verification takes the hash again.


class ImageStore:
    """Images by name.

    Args:
        root: the cache; by default `cache_root`.
        search: folders of recipes, first match wins; by default those that come with cua_gym.
        builder: makes an image in a folder; tests put a quick one here.
    """

    def __init__(
        self,
        root: Path | None = None,
        *,
        search: Sequence[Path] | None = None,
        builder: Builder = building.build,
    ) -> None:
        self._images = (root or cache_root()) / "images"
        self._search = tuple(search) if search is not None else (bundled_images(),)
        self._builder = builder

    @property
    def root(self) -> Path:
        """The folder that holds the images."""
        return self._images

    @property
    def search(self) -> tuple[Path, ...]:
        """The folders in which recipes are looked up."""
        return self._search

    def get(self, name: str) -> Image:
        """The image built from the current recipe called ``name``.

        With ``CUA_GYM_STALE_IMAGE=1`` in the environment an older build does, with a warning;
        that is for working on a recipe while others use the image.

        Raises:
            ImageError: no such recipe, not built, or its disk has changed.
        """
        recipe = find_recipe(name, self._search)
        image = self._load(self._folder(recipe))
        if image is None:
            older = [image for image in self.list() if image.name == name]
            if not (older and os.environ.get(STALE_VARIABLE) == "1"):
                built = f"{len(older)} from older recipes are" if older else "none is"
                raise ImageError(
                    f"image {name!r} of the current recipe ({recipe.hash[:12]}) is not in "
                    f"{self._images}, where {built}; run `make image IMAGE={name}`"
                )
            image = older[0]
            warnings.warn(
                f"using image {image.folder.name}, built from an older recipe ({STALE_VARIABLE}=1)",
                stacklevel=2,
            )
        image.verify()
        return image

    def list(self) -> builtins.list[Image]:
        """All complete images, newest first."""
        found = [self._load(path.parent) for path in self._images.glob("[!.]*/manifest.json")]
        images = [image for image in found if image is not None]
        return sorted(images, key=lambda image: image.manifest.created, reverse=True)

    def is_current(self, image: Image) -> bool:
        """Whether the recipe of today would build this very image."""
        try:
            return find_recipe(image.name, self._search).hash == image.manifest.recipe_hash
        except ImageError:
            return False

    def find(self, name: str) -> builtins.list[Image]:
        """Images by recipe name, or by folder name for one build; newest first.

        Raises:
            ImageError: there is none; near names are suggested.
        """
        images = self.list()
        found = [image for image in images if name in (image.name, image.folder.name)]
        if not found:
            names = sorted({word for image in images for word in (image.name, image.folder.name)})
            near = difflib.get_close_matches(name, names, n=3, cutoff=0.4)
            hint = f"did you mean {' or '.join(near)}?" if near else "see `cua-gym image list`."
            raise ImageError(f"no image {name!r} in {self._images}; {hint}")
        return found

    def remove(self, image: Image) -> None:
        """Delete an image.

        Raises:
            ImageError: a machine runs on it.
        """
        users = image.users()
        if users:
            raise ImageError(
                f"image {image.folder.name} is in use by process {', '.join(map(str, users))}; "
                "end those machines first"
            )
        # Renamed first: no moment at which others see half of it.
        doomed = grave(self._images, image.folder.name)
        image.folder.rename(doomed)
        remove_tree(doomed)

    def ensure(self, name: str, progress: Callable[[str], None] = lambda message: None) -> Image:
        """The image called ``name``, built first if need be.

        Two processes may ask at once: one builds, the other waits for it.

        Raises:
            ImageError: it cannot be built here.
        """
        recipe = find_recipe(name, self._search)
        folder = self._folder(recipe)
        image = self._load(folder)
        if image is None:
            self._images.mkdir(parents=True, exist_ok=True)
            with locked(
                self._images / f".lock-{folder.name}",
                lambda: progress(f"another process is building {name}; waiting for it"),
            ):
                image = self._load(folder) or self._build(recipe, folder, progress)
        image.verify()
        return image

    def _build(self, recipe: Recipe, folder: Path, progress: Callable[[str], None]) -> Image:
        with workshop(self._images, recipe.name) as work:
            log = self._images / f"build-{folder.name}.log"
            log.write_text("", encoding="utf-8")
            made = self._builder(recipe, work, log, progress)
            image = Image(recipe.name, made, Manifest.read(made / "manifest.json"))
            if not image.is_complete:
                raise ImageError(f"the build of {recipe.name!r} left no complete image in {made}")
            if folder.exists():
                remove_tree(folder)
            made.rename(folder)
        image = Image(recipe.name, folder, image.manifest)
        # Just written, by us, from contents that the manifest's hashes were taken of.
        for disk in (image.vmdk, image.qcow2):
            image._record_stamp(disk)
        return image

    def sweep(self) -> builtins.list[str]:
        """Remove what dead builds left; returns the names of the removed folders."""
        return sweep(self._images)

    def _folder(self, recipe: Recipe) -> Path:
        return self._images / f"{recipe.name}-{recipe.hash[:12]}"

    def _load(self, folder: Path) -> Image | None:
        if not (folder / "manifest.json").is_file():
            return None
        manifest = Manifest.read(folder / "manifest.json")
        image = Image(manifest.name, folder, manifest)
        return image if image.is_complete else None

    def names(self) -> builtins.list[str]:
        """Names of all recipes that can be built."""
        return recipe_names(self._search)


def _stamp(path: Path) -> Stamp:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _holders(inodes: set[tuple[int, int]]) -> set[int]:
    """Processes with a descriptor open on one of these (device, inode) pairs."""
    holders = set()
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            status = link.stat()
        except OSError:
            continue  # closed meanwhile, or another user's
        if (status.st_dev, status.st_ino) in inodes:
            holders.add(int(link.parts[2]))
    return holders - {os.getpid()}


def _write_atomically(path: Path, text: str) -> None:
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
