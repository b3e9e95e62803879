"""``cua-gym image``: build, list, check, remove and export the disks that machines start from."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from cua_gym.image.export import (
    FORMATS,
    TARGETS,
    choose_format,
    default_output,
    export_disk,
    export_image,
)
from cua_gym.image.recipe import bundled_images
from cua_gym.image.store import Image, ImageStore

__all__ = ["image"]

_SUITE = click.option(
    "--suite",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    multiple=True,
    help="A folder with an images/ folder of your own recipes; searched first.",
)
_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")


@click.group()
def image() -> None:
    """Build, list, check, remove and export images.

    \b
    Examples:
      cua-gym image build debian-12
      cua-gym image list
      cua-gym image check debian-12
      cua-gym image export debian-12 --for esxi --output debian-12.vmdk
    """


@image.command()
@click.argument("name", default="debian-12")
@_SUITE
@_JSON
def build(name: str, suite: tuple[Path, ...], as_json: bool) -> None:
    """Build the image NAME, unless its current recipe is built already.

    \b
    Example:
      cua-gym image build debian-12
    """
    built = _store(suite).ensure(name, _progress())
    if as_json:
        click.echo(json.dumps(_facts(built, current=True)))
    else:
        click.echo(f"image: {built.folder}")


@image.command(name="list")
@_SUITE
@_JSON
def list_images(suite: tuple[Path, ...], as_json: bool) -> None:
    """List built images and the recipes that could be built.

    \b
    Example:
      cua-gym image list --json
    """
    store = _store(suite)
    images = [(built, store.is_current(built)) for built in store.list()]
    current = {built.name for built, is_current in images if is_current}
    unbuilt = [name for name in store.names() if name not in current]
    if as_json:
        facts = [_facts(built, current=is_current) for built, is_current in images]
        click.echo(json.dumps({"images": facts, "unbuilt": unbuilt}))
        return
    for built, is_current in images:
        size = (built.vmdk.stat().st_size + built.qcow2.stat().st_size) / 2**30
        state = "current" if is_current else "older recipe"
        click.echo(f"{built.folder.name:40} {state:13} {size:5.1f} GiB  {built.manifest.created}")
    for name in unbuilt:
        click.echo(f"{name:40} {'not built':13}            make image IMAGE={name}")


@image.command()
@click.argument("name", default="debian-12")
@click.option("--boots", type=click.IntRange(min=1), default=3, show_default=True)
@_SUITE
@_JSON
def check(name: str, boots: int, suite: tuple[Path, ...], as_json: bool) -> None:
    """Boot the image NAME and report, clause by clause, whether it keeps to the standard.

    Exits with 1 when a clause does not hold.

    \b
    Example:
      cua-gym image check debian-12 --boots 1
    """
    from cua_gym.image.check import check_image, cold_boots, table

    built = _store(suite).find(name)[0]
    progress = _progress()
    results = check_image(built, cold_boots(built, progress), boots=boots, progress=progress)
    passed = all(result.passed for result in results)
    if as_json:
        report = {"image": built.folder.name, "passed": passed}
        click.echo(json.dumps({**report, "clauses": [asdict(result) for result in results]}))
    else:
        click.echo(table(results))
    raise SystemExit(0 if passed else 1)


@image.command()
@click.argument("name")
@click.option("--all", "every", is_flag=True, help="Also builds of older recipes.")
@click.option("--older", is_flag=True, help="Only builds of older recipes.")
@_SUITE
def rm(name: str, every: bool, older: bool, suite: tuple[Path, ...]) -> None:
    """Remove the image NAME, a recipe's name or one build's folder name.

    \b
    Examples:
      cua-gym image rm debian-12 --older
      cua-gym image rm debian-12-10085b2b4919
    """
    store = _store(suite)
    found = store.find(name)
    if older:
        found = [built for built in found if not store.is_current(built)]
    elif not every:
        found = found[:1]
    for built in found:
        store.remove(built)
        click.echo(f"removed {built.folder}")


@image.command()
@click.argument("source")
@click.option("--format", "wanted", type=click.Choice(list(FORMATS)), help="Default: qcow2.")
@click.option("--for", "target", type=click.Choice(TARGETS), help="Hypervisor that will run it.")
@click.option(
    "--output", type=click.Path(path_type=Path), help="File to make. Default: NAME in this folder."
)
@_SUITE
@_JSON
def export(
    source: str,
    wanted: str | None,
    target: str | None,
    output: Path | None,
    suite: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Export SOURCE, an image's name or any disk file, for a hypervisor.

    A split VMDK is joined: name its descriptor file.

    \b
    Examples:
      cua-gym image export debian-12 --format qcow2
      cua-gym image export debian-12 --for esxi --output debian-12.vmdk
      cua-gym image export disk-split.vmdk --format vmdk --output one.vmdk
    """
    form = choose_format(wanted, target)
    output = output or default_output(source, form)
    if "/" in source or Path(source).is_file():
        made = export_disk(Path(source), output, form=form, progress=_progress())
    else:
        built = _store(suite).find(source)[0]
        made = export_image(built, output, form=form, progress=_progress())
    if as_json:
        click.echo(json.dumps({**asdict(made), "path": str(made.path)}))
    else:
        click.echo(f"{made.path}: {made.says}, {made.file_bytes / 2**30:.2f} GiB")
        click.echo(f"runs on: {', '.join(made.targets)}")


def _store(suite: tuple[Path, ...]) -> ImageStore:
    return ImageStore(search=[*(folder / "images" for folder in suite), bundled_images()])


def _progress() -> Callable[[str], None]:
    start = time.monotonic()
    return lambda message: click.echo(f"{time.monotonic() - start:5.0f} s  {message}", err=True)


def _facts(built: Image, *, current: bool) -> dict[str, Any]:
    return {
        "name": built.name,
        "folder": str(built.folder),
        "current": current,
        "created": built.manifest.created,
        "recipe_hash": built.manifest.recipe_hash,
        "disk_sha256": built.manifest.disk_sha256,
        "vmdk": str(built.vmdk),
        "qcow2": str(built.qcow2),
    }
