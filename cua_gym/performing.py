"""Does one action on a machine and waits until the screen has settled.

Responsible for which part of the machine an action is for, and for what counts as settled after it.
Limits, the record and what an action means for the episode are the episode's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from cua_gym import actions as a
from cua_gym.clock import Clock
from cua_gym.errors import ActionError, MachineError, MachineTimeout
from cua_gym.machine.base import Machine, Rgb
from cua_gym.machine.hands import Hands
from cua_gym.machine.settle import Settle, Settled, settle
from cua_gym.spaces import ActionSpace
from cua_gym.turns import Stop

__all__ = ["POINTER_QUIET_S", "Performer"]

POINTER_QUIET_S = 0.025
"""A bare pointer move repaints once; nothing else is waited for."""

PROBE_S = 10.0
"""An emulated guest under load answers in a second or two."""

PROBES = 2
"""A loaded host can keep a guest from answering once."""

SHELL_TEXT_LIMIT = 64 * 1024


class Performer:
    """Performs on one machine what its space of actions allows.

    Args:
        rule: what counts as settled after an action.
        out: where the frames of actions go, as for `Screen.grab`.
    """

    def __init__(
        self,
        machine: Machine,
        space: ActionSpace,
        rule: Settle,
        clock: Clock,
        out: Rgb | None = None,
    ) -> None:
        self._machine = machine
        self._space = space
        self._rule = rule
        self._at_once = Settle(0.0, rule.quiet_s, rule.max_s)
        self._clock = clock
        self._out = out

    @functools.cached_property
    def _hands(self) -> Hands:
        # A restored machine can be seen before it can be driven; who only looks need not wait.
        return Hands(self._machine.input, self._machine.screen, self._clock)

    def release(self) -> None:
        """Let go of every key and button."""
        self._hands.release()

    def do(
        self, action: a.Action, seconds: float, stop: Stop | None, frame: int | None
    ) -> tuple[Settled, dict[str, Any]]:
        """Do an action within ``seconds``; what settled, and more for ``info``.

        An impossible action does nothing and is told as ``action_error``; so is one that was meant
        for ``frame``, a serial, when the screen has changed since.
        """
        screen = self._machine.screen
        extra: dict[str, Any] = {}
        serial = screen.serial
        rule = self._rule
        try:
            refusal = self._space.refusal(action)
            if refusal is not None:
                raise ActionError(refusal)
            if frame is not None and frame != serial:
                raise ActionError(f"frame {frame} is stale, the screen is at {serial} now: look")
            match action:
                case a.Submit() | a.GiveUp():
                    rule = self._at_once
                case a.Wait(wanted):
                    rule = self._at_once
                    if self._wait(min(wanted, seconds), stop):
                        extra["stopped"] = True
                case a.Shell(command, timeout_s):
                    extra["shell"] = self._shell(command, min(timeout_s, seconds or 0.1))
                case _:
                    if isinstance(action, a.Move):
                        quiet_s = min(POINTER_QUIET_S, rule.quiet_s)
                        rule = Settle(rule.first_s, quiet_s, rule.max_s)
                    self._hands.perform(action)
        except ActionError as error:
            extra["action_error"] = str(error)
            rule = self._at_once
        except MachineError as error:
            extra["action_error"] = self._excuse(error)
            rule = self._at_once
        return settle(screen, serial, rule, self._clock, self._out), extra

    def use(
        self, work: Callable[[Machine], Mapping[str, Any]], rule: Settle | None
    ) -> tuple[Settled | None, dict[str, Any]]:
        """Do what no action can say; an ActionError or OSError of it is told likewise.

        Args:
            rule: how to wait for the screen; None does not.
        """
        screen = self._machine.screen
        serial = screen.serial
        try:
            extra = dict(work(self._machine))
        except ActionError as error:
            return None, {"action_error": str(error)}
        except OSError as error:
            return None, {"action_error": f"{type(error).__name__}: {error}"}
        except MachineError as error:
            return None, {"action_error": self._excuse(error)}
        return (settle(screen, serial, rule, self._clock) if rule else None), extra

    def _excuse(self, error: MachineError) -> str:
        """What to tell the agent of a fault that its own account may have caused.

        It can stop its X server, its file server or every program that would answer. As long as
        the machine is well and root's side of the guest answers, that is no fault of the machine,
        and no way out of a verdict.

        Raises:
            MachineError: the machine itself is not well.
        """
        for _ in range(PROBES):
            self._machine.check()
            try:
                done = self._machine.shell.run(["true"], user="root", timeout_s=PROBE_S)
            except MachineTimeout:
                continue
            except MachineError:
                raise error from None
            if done.timed_out:
                continue
            if done.exit != 0:
                raise error
            return f"{type(error).__name__}: {error}"
        raise error

    def _wait(self, seconds: float, stop: Stop | None) -> bool:
        if stop is not None:
            return stop.wait(seconds)
        self._clock.sleep(seconds)
        return False

    def _shell(self, command: str, timeout_s: float) -> dict[str, Any]:
        done = self._machine.shell.run(command, timeout_s=timeout_s)
        return {
            "exit": done.exit,
            "stdout": _clipped(done.stdout),
            "stderr": _clipped(done.stderr),
            "timed_out": done.timed_out,
        }


def _clipped(data: bytes) -> str:
    text = data[:SHELL_TEXT_LIMIT].decode("utf-8", "replace")
    left = len(data) - SHELL_TEXT_LIMIT
    return text if left <= 0 else f"{text}\n[{left} more bytes; redirect to a file to see them]"
