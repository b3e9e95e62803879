"""From power-on to a desktop at rest."""

from __future__ import annotations

import time
from collections.abc import Callable

from cua_gym.clock import SystemClock
from cua_gym.errors import MachineError, MachineTimeout
from cua_gym.machine.base import Machine
from cua_gym.machine.channel import ControlChannel
from cua_gym.machine.guest_agent import GuestAgent
from cua_gym.machine.qemu.engine import Engine
from cua_gym.machine.settle import Settle, settle

__all__ = ["wait_until_ready"]

BOOT_S = 420.0
ASK_S = 10.0
# A booted guest's daemon starts within seconds of its guest agent, also on a busy host.
DAEMON_S = 60.0
AGAIN_S = 0.5
TELL_EVERY_S = 10.0
STILL = Settle(first_s=2.0, quiet_s=2.0, max_s=60.0)


def wait_until_ready(
    machine: Machine,
    engine: Engine,
    channel: ControlChannel,
    agent: GuestAgent,
    progress: Callable[[str], None],
) -> None:
    """Wait until the guest says that its desktop is ready and its screen stands still.

    Raises:
        MachineTimeout: it does not; says what the guest waits for.
        MachineLost: the guest ended meanwhile.
        MachineError: the guest is up, and has no daemon on its control port.
    """
    up_since: float | None = None
    start = told = time.monotonic()
    waiting_for = "its daemon"
    while True:
        engine.check()
        now = time.monotonic()
        if now - told > TELL_EVERY_S:
            progress(f"still booting after {now - start:.0f} s, waiting for {waiting_for}")
            told = now
        if now - start > BOOT_S:
            raise MachineTimeout(
                f"the guest was not ready after {BOOT_S:g} s; it still waits for {waiting_for}"
            )
        try:
            answer = channel.ops.call("ready", timeout_s=ASK_S)
        except MachineTimeout:
            # The daemon is not up yet, or X is too busy to be asked.
            if not channel.greeted and _answers(agent):
                up_since = up_since or time.monotonic()
                if time.monotonic() - up_since > DAEMON_S:
                    raise MachineError(
                        "the guest has booted, for its guest agent answers, but nothing has on its "
                        f"port org.cua_gym.control for {DAEMON_S:g} s: is cua-guestd in this "
                        "image, and does it run?"
                    ) from None
            continue
        except MachineError as error:
            waiting_for = f"an answer ({error})"
            answer = {}
        if answer.get("ready") is True:
            break
        waiting_for = str(answer.get("waiting_for", waiting_for))[:200]
        time.sleep(AGAIN_S)  # the guest measures its load over such a time
    width, height = machine.screen.size
    machine.input.pointer(width // 2, height // 2)
    # What the first command of a session reads and starts is then in memory for all clones.
    machine.shell.run("true", timeout_s=120.0)
    rest = settle(machine.screen, machine.screen.serial, STILL, SystemClock())
    if not rest.settled:
        raise MachineTimeout(
            f"the desktop never stood still for {STILL.quiet_s:g} s after its boot"
        )
    progress(f"the desktop stood still {time.monotonic() - start:.0f} s after power-on")


def _answers(agent: GuestAgent) -> bool:
    try:
        agent.ping()
    except MachineTimeout:
        return False
    return True
