"""From an empty screen to a desktop at rest: the image's session without its service manager."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable

from cua_gym.errors import MachineTimeout
from cua_gym.machine.x11.sandbox import Sandbox
from cua_gym.machine.x11.screen import X11Screen

__all__ = ["begin_session", "wait_until_ready"]

READY_S = 120.0
LOOK_S = 0.02
REST_S = 0.1

# What the service manager of a whole computer does: the bus, the session, and it again if it ends.
_SESSION = """
dbus-daemon --session --nofork --nopidfile --nosyslog --address="$DBUS_SESSION_BUS_ADDRESS" &
while :; do
    /usr/lib/cua-gym/desktop-session
    sleep 1
done
"""
DESKTOP_SESSION = "/usr/lib/cua-gym/desktop-session"
# What xfce4-session starts, but one after the other. Programs that came before the settings drew
# their text with other hinting, in one desktop of eight.
_ALL_AT_ONCE = """
xfsettingsd --disable-wm-check --no-daemon --replace &
tries=0
until xprop -root RESOURCE_MANAGER | grep -q Xft || [ $tries = 500 ]; do
    sleep 0.01
    tries=$((tries + 1))
done
xfwm4 &
xfdesktop &
xfce4-panel &
Thunar --daemon &
wait
"""
# Chromium's own sandbox needs namespaces, which nobody gets here; this one is around it.
_CHROMIUM = 'export CHROMIUM_FLAGS="$CHROMIUM_FLAGS --no-sandbox"\n'
_CHROMIUM_POLICY = '{"CommandLineFlagSecurityWarningsEnabled": false}\n'


def begin_session(sandbox: Sandbox, user: str, uid: int) -> None:
    """Make a fresh file system a computer of its own, and start the account's session."""
    sandbox.ask(
        "setup",
        folders=[(f"/run/user/{uid}", user, 0o700), ("/tmp/.ICE-unix", "root", 0o1777)],
        files=[
            ("/etc/machine-id", "root", 0o444, f"{uuid.uuid4().hex}\n"),
            ("/etc/chromium.d/light-desktop", "root", 0o644, _CHROMIUM),
            ("/etc/chromium/policies/managed/light-desktop.json", "root", 0o644, _CHROMIUM_POLICY),
        ],
        edits=[(DESKTOP_SESSION, "exec xfce4-session", _ALL_AT_ONCE)],
    )
    null = os.open(os.devnull, os.O_RDWR)
    try:
        sandbox.ask(
            "start", [null] * 3, user=user, argv=["sh", "-c", _SESSION], session=True, terminal=None
        )
    finally:
        os.close(null)


def wait_until_ready(sandbox: Sandbox, screen: X11Screen, shown: Callable[[], set[str]]) -> None:
    """Wait for the window manager, the desktop and the panel, and until the screen stands still.

    Args:
        shown: types of the windows that are shown, as the window manager lists them.

    Raises:
        MachineTimeout: they do not come; says which.
        MachineLost: the desktop ended meanwhile.
    """
    end = time.monotonic() + READY_S
    while lacking := {"DESKTOP", "DOCK"} - shown():
        sandbox.check()
        if time.monotonic() > end:
            raise MachineTimeout(f"no {' and no '.join(sorted(lacking))} after {READY_S:g} s")
        screen.wait_change(screen.serial, LOOK_S)
    # On a busy host a program may be kept from painting for long; then it is ready to run.
    rested = time.monotonic()
    while time.monotonic() - rested < REST_S:
        if screen.wait_change(screen.serial, LOOK_S) or sandbox.busy():
            rested = time.monotonic()
        if rested > end:
            raise MachineTimeout(f"the desktop never came to rest in {READY_S:g} s")
