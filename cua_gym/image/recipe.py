"""Recipes: what an image is made from, before anything is built.

A recipe is a folder with ``recipe.toml``, ``overlay/`` (files for the guest's root) and
``hooks/*.sh`` (run inside the guest's root). It may name layers, folders of the same shape under
a ``shared/`` folder beside it, or under the one that comes with cua_gym. Building is left to
`cua_gym.image.build`.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from cua_gym.errors import ImageError

__all__ = ["Recipe", "RecipeSpec", "bundled_images", "find_recipe", "load_recipe", "recipe_names"]

# Raised when the build code changes what it makes from an unchanged recipe.
BUILD_FORMAT = 1

_NAME = r"^[a-z0-9][a-z0-9.-]*$"
_IGNORED = {"__pycache__", ".DS_Store"}
# In a merged-/usr guest these are links; a file put "into" them would replace the link.
_LINKED_FOLDERS = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"}


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PackageGroup(_Section):
    """Packages that come together, and why."""

    reason: str = Field(min_length=1)
    names: tuple[str, ...] = Field(min_length=1)


class DiskSection(_Section):
    virtual_gib: int = Field(ge=4, le=2048)
    minimum_free_gib: int = Field(ge=1)


class ScreenSection(_Section):
    modes: tuple[tuple[int, int], ...] = Field(min_length=1)


class DesktopAccount(_Section):
    name: str
    uid: int = Field(ge=1000, lt=60000)
    home: str = Field(pattern=r"^/")


class ControlAccount(_Section):
    name: str


class AccountsSection(_Section):
    desktop: DesktopAccount
    control: ControlAccount


class HypervisorSection(_Section):
    machine: str
    memory_mb: int = Field(ge=256)
    cpus: int = Field(ge=1)
    devices: tuple[str, ...]

    @field_validator("machine")
    @classmethod
    def _versioned(cls, machine: str) -> str:
        if not machine.rpartition("-")[2].replace(".", "").isdigit():
            raise ValueError(
                f"{machine!r} has no version; a saved state loads only in the machine type that "
                "made it, so name one such as 'pc-q35-7.2'"
            )
        return machine


class BootSection(_Section):
    cmdline: str = ""


class UnpackSection(_Section):
    exclude: tuple[str, ...] = ()
    include: tuple[str, ...] = ()


class RecipeSpec(_Section):
    """The contents of ``recipe.toml``."""

    name: str = Field(pattern=_NAME)
    title: str
    guest_os: str
    builder: Literal["mmdebstrap"]
    suite: str
    components: tuple[str, ...] = ("main",)
    layout: str = "us"
    layers: tuple[str, ...] = ()
    disk: DiskSection
    screen: ScreenSection
    accounts: AccountsSection
    hypervisor: HypervisorSection
    boot: BootSection = BootSection()
    unpack: UnpackSection = UnpackSection()
    packages: tuple[PackageGroup, ...] = Field(min_length=1)

    @property
    def package_names(self) -> list[str]:
        """All packages, in the order of the recipe."""
        return [name for group in self.packages for name in group.names]


@dataclass(frozen=True, slots=True)
class Recipe:
    """A loaded recipe.

    Attributes:
        spec: what ``recipe.toml`` says.
        folder: the recipe's folder.
        layers: folders whose overlay and hooks apply, in order; the recipe's own is last.
        guestd: folder with the guest daemon's files, when there is one.
        hash: SHA-256 over everything that decides what the image becomes.
    """

    spec: RecipeSpec
    folder: Path
    layers: tuple[Path, ...]
    guestd: Path | None
    hash: str

    @property
    def name(self) -> str:
        return self.spec.name

    def overlay_files(self) -> dict[str, Path]:
        """Guest path without leading slash -> source file; later layers win."""
        files: dict[str, Path] = {}
        for layer in self.layers:
            root = layer / "overlay"
            files.update({str(path.relative_to(root)): path for path in _files(root)})
        for path in _files(self.guestd) if self.guestd else ():
            unit = path.suffix == ".service"
            files[f"{'etc/systemd/system' if unit else 'usr/lib/cua-gym'}/{path.name}"] = path
        return files

    def hooks(self) -> list[Path]:
        """Hook scripts of all layers, in the order of their names: 10-, 20-, ... across layers."""
        found = [
            path
            for layer in self.layers
            for path in _files(layer / "hooks")
            if path.suffix == ".sh"
        ]
        return sorted(found, key=lambda path: path.name)


def bundled_images() -> Path:
    """The recipes that come with cua_gym: the repository's, or the copy in an installed wheel."""
    package = Path(__file__).resolve().parent.parent
    checkout = package.parent / "images"
    return checkout if checkout.is_dir() else package / "suite" / "images"


def recipe_names(search: Sequence[Path]) -> list[str]:
    """Names of all recipes in these folders."""
    return sorted({path.parent.name for folder in search for path in folder.glob("*/recipe.toml")})


def find_recipe(name: str, search: Sequence[Path]) -> Recipe:
    """Load the recipe called ``name`` from the first of the folders that has it.

    Raises:
        ImageError: there is none (near names are suggested), or it is not valid.
    """
    for folder in search:
        if (folder / name / "recipe.toml").is_file():
            return load_recipe(folder / name)
    names = recipe_names(search)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.4) or names
    known = f"did you mean {' or '.join(near)}?" if near else "there are no recipes there."
    raise ImageError(
        f"no recipe is called {name!r} in {', '.join(map(str, search)) or 'no folder'}; {known}"
    )


def load_recipe(folder: Path) -> Recipe:
    """Read and check one recipe folder.

    Raises:
        ImageError: with file, field and value.
    """
    file = folder / "recipe.toml"
    try:
        spec = RecipeSpec.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise ImageError(f"cannot read {file}: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise ImageError(f"{file} is not valid TOML: {error}") from error
    except ValidationError as error:
        lines = [
            f"  {'.'.join(map(str, item['loc']))}: {item['msg']} (found {item['input']!r})"
            for item in error.errors()
        ]
        raise ImageError(f"{file} is not a valid recipe:\n" + "\n".join(lines)) from error
    if spec.name != folder.name:
        raise ImageError(f"{file}: name is {spec.name!r} but the folder is {folder.name!r}")
    # A recipe of a user's own needs only what differs.
    shared = (folder.parent / "shared", bundled_images() / "shared")

    def find(name: str) -> Path | None:
        return next((path for root in shared if (path := root / name).is_dir()), None)

    layers = []
    for name in spec.layers:
        layer = find(name)
        if layer is None:
            raise ImageError(f"{file}: layer {name!r} is not a folder under {shared[0]}")
        layers.append(layer)
    recipe = Recipe(spec, folder, (*layers, folder), find("guestd"), "")
    overlay, hooks = recipe.overlay_files(), recipe.hooks()
    _check(overlay, hooks)
    return Recipe(spec, folder, recipe.layers, recipe.guestd, _hash(folder, overlay, hooks))


def _files(root: Path) -> Iterator[Path]:
    """Regular files below ``root``, sorted, without editors' and interpreters' leavings.

    Every reset walks the recipe: `os.scandir` takes a fifth of the time of `Path.rglob`.
    """
    if not root.is_dir():
        return
    with os.scandir(root) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        if entry.name in _IGNORED or entry.name.endswith(("~", ".swp", ".pyc")):
            continue
        path = root / entry.name
        if entry.is_symlink():
            raise ImageError(f"{path} is a link; make links in a hook, wheels cannot hold them")
        if entry.is_dir():
            yield from _files(path)
        elif entry.is_file():
            yield path


def _check(overlay: dict[str, Path], hooks: list[Path]) -> None:
    for target, source in overlay.items():
        if target.partition("/")[0] in _LINKED_FOLDERS:
            raise ImageError(f"{source}: put it under overlay/usr/; /{target} goes through a link")
    names = [hook.name for hook in hooks]
    double = sorted({name for name in names if names.count(name) > 1})
    if double:
        raise ImageError(f"two hooks are called {', '.join(double)}; their order is by name")


def _hash(folder: Path, overlay: dict[str, Path], hooks: list[Path]) -> str:
    """Every file that reaches the image, under the name by which it does."""
    digest = hashlib.sha256(f"format {BUILD_FORMAT}\n".encode())
    entries = {"recipe.toml": folder / "recipe.toml"}
    entries |= {f"overlay/{target}": source for target, source in overlay.items()}
    entries |= {f"hooks/{hook.name}": hook for hook in hooks}
    for name in sorted(entries):
        content = entries[name].read_bytes()
        digest.update(f"{os.fsdecode(name)}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()
