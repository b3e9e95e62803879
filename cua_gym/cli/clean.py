"""`cua-gym clean`: remove what can be made again, and what dead processes left."""

from __future__ import annotations

import click

__all__ = ["clean"]


@click.command()
@click.option(
    "--all", "everything", is_flag=True, help="Built images and the attempts of `task check` too."
)
def clean(everything: bool) -> None:
    """Remove saved states and leftovers of dead processes.

    What a running machine uses stays, and so do recorded runs: they are yours.
    """
    from cua_gym.cache import cache_root
    from cua_gym.errors import ImageError
    from cua_gym.gates.attempts import AttemptStore
    from cua_gym.image.store import ImageStore
    from cua_gym.machine.qemu.reaper import reap
    from cua_gym.machine.qemu.states import StateStore
    from cua_gym.machine.x11.states import FileStates

    for pid in reap():
        click.echo(f"ended the orphaned machine of process {pid}")
    images = ImageStore()
    for name in images.sweep():
        click.echo(f"removed the dead build {name}")
    if (cache_root() / "states").is_dir():
        states = StateStore(cache_root() / "states", 0)
        for folder, info, size, _ in states.list():
            gone = states.remove(folder)
            click.echo(f"{'removed' if gone else 'in use:'} state {info.key}, {size >> 20} MiB")
    for folder in FileStates(cache_root() / "light", "").clear():
        click.echo(f"removed the saved files {folder.name}")
    if everything:
        if (attempts := cache_root() / "gates").is_dir():
            AttemptStore(attempts, limit_bytes=0)
            click.echo("removed the attempts of task check")
        for image in images.list():
            try:
                images.remove(image)
            except ImageError as error:
                click.echo(str(error), err=True)
            else:
                click.echo(f"removed image {image.folder.name}")
