"""Making a restored guest a computer of its own: its clock, entropy and name, then its shell."""

from __future__ import annotations

import secrets
import threading
import time
import uuid
from concurrent.futures import Future

from cua_gym.errors import MachineTimeout
from cua_gym.machine.guest_ops import Ops
from cua_gym.machine.ssh import SshShell

__all__ = ["HELLO_S", "greet"]

# Twenty machines restored at once on two busy cores took 13 s to greet.
HELLO_S = 60.0
NETWORK_S = 60.0
_JOIN = """networkctl reconfigure $(ls /sys/class/net | grep -vx lo)
until [[ -n $(ip -4 route show default) ]] && grep -q ^nameserver /etc/resolv.conf
do sleep 0.1; done"""
"""Ask for an address anew, until there is a way out and somebody to ask for names."""


def greet(ops: Ops, shell: SshShell, *, joins_network: bool = False) -> Future[None]:
    """Do it in a thread of its own, and begin to connect the shell; an error waits in the future.

    An emulated guest takes longer to answer than to show its picture.

    Args:
        joins_network: it was saved without a network that it has now.
    """
    greeting: Future[None] = Future()

    def run() -> None:
        try:
            ops.call(
                "hello",
                timeout_s=HELLO_S,
                time_ns=time.time_ns(),
                entropy_hex=secrets.token_hex(32),
                machine_id=uuid.uuid4().hex,
            )
            shell.warm()
            if joins_network:
                _join(shell)
        except Exception as error:  # whoever needs the result gets it
            greeting.set_exception(error)
        else:
            greeting.set_result(None)

    threading.Thread(target=run, name="cua-gym-greeting", daemon=True).start()
    return greeting


def _join(shell: SshShell) -> None:
    done = shell.run(_JOIN, user="root", timeout_s=NETWORK_S)
    if done.timed_out or done.exit:
        raise MachineTimeout(f"the guest has no network after {NETWORK_S:g} s: {done.text}")
