"""The one door to a computer: a spec and a start state in, a running machine out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cua_gym.machine.base import Machine, MachineSpec, State

__all__ = ["Prepare", "machine_mb", "start_machine"]

Prepare = Callable[[Machine], Mapping[str, bytes] | None]
"""Brings a ready machine into its start state; may return files to be kept with it, by name."""


def start_machine(
    spec: MachineSpec,
    *,
    key: str | None = None,
    prepare: Prepare | None = None,
    state: State | None = None,
    recipes: Sequence[Path] = (),
    progress: Callable[[str], None] = lambda _: None,
) -> Machine:
    """A running machine in the start state ``key``.

    The first time, ``prepare`` runs on a machine in its image's ready state and the result is
    saved under ``key``; afterwards it is restored and ``prepare`` is not called. A light desktop
    (``x11``) cannot save its programs: ``prepare`` runs each time.

    Args:
        key: names the start state among all of this image and spec; None is the ready state.
        prepare: brings a ready machine into the start state. What it raises is passed on, and
            nothing is saved. Files that it returns lie with the state on the host; a machine of a
            kind that keeps states has them in the folder `Machine.kept`.
        state: begin in this saved moment instead.
        recipes: folders of image recipes, such as a suite's ``images/``; searched before those
            that come with cua_gym.
        progress: told what takes more than a second.

    Raises:
        ImageError: the image is not built.
        StateMismatch: ``state`` does not fit or is no longer there.
        OutOfMemory: the host's memory does not hold one more; nothing was started.
        MachineError: it could not be started.
    """
    if spec.backend == "fake":
        from cua_gym.machine.fake import FakeMachine

        fake = FakeMachine(spec)
        try:
            if state is not None:
                fake.restore(state)
            elif prepare is not None:
                prepare(fake)
        except BaseException:
            fake.close()
            raise
        return fake
    # A kind of computer brings its own imports; users of one need not load the others.
    from cua_gym.cache import cache_root
    from cua_gym.image.recipe import bundled_images
    from cua_gym.image.store import ImageStore

    image = ImageStore(search=(*recipes, bundled_images())).get(spec.image)
    if spec.backend == "x11":
        from cua_gym.image.rootfs import root_filesystem
        from cua_gym.machine.x11.machine import X11Machine

        return X11Machine.start(
            spec,
            prepare=prepare,
            state=state,
            image=image,
            root=root_filesystem(image, progress),
            states=cache_root() / "light",
        )
    from cua_gym.machine.qemu.machine import QemuMachine

    return QemuMachine.start(
        spec, key=key, prepare=prepare, state=state, image=image, progress=progress
    )


def machine_mb(spec: MachineSpec) -> int:
    """What a machine of this spec takes of the host's memory at work, in MB.

    It keeps that much for itself when it starts (`cua_gym.machine.admission.take_room`).
    """
    if spec.backend == "fake":
        from cua_gym.machine.fake import FAKE_MB

        return FAKE_MB
    if spec.backend == "x11":
        from cua_gym.machine.x11.machine import LIGHT_MB

        return LIGHT_MB
    from cua_gym.machine.qemu.process import working_mb

    return working_mb(spec.memory_mb)
