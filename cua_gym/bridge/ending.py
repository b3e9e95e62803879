"""The tools that every bridge has: how an attempt stands, and how it is ended.

No answer here tells a score: an agent is judged after it has gone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

from pydantic import Field

from cua_gym import actions as a
from cua_gym.bridge.session import Call
from cua_gym.bridge.tools import Reply, budget, fault

__all__ = ["TOOLS", "instructions"]


def submit(
    call: Call,
    answer: Annotated[
        str | None, Field(description="Only where the task asks for an answer.")
    ] = None,
) -> Reply:
    """Say that the task is done. It ends the attempt; nothing can be done afterwards."""
    return _ended(call, a.Submit(answer))


def give_up(call: Call, reason: str) -> Reply:
    """Say that the task cannot be done, and why. It ends the attempt."""
    return _ended(call, a.GiveUp(reason))


def status(call: Call) -> Reply:
    """The task, the steps and seconds that are left, and which tools the task allows."""
    step = call.use(lambda machine: {}, acts=False)
    episode = call.episode
    facts = {
        "instruction": episode.variation.instruction,
        **budget(step),
        "tools": episode.actions.tools,
        "person_has_the_machine": episode.turns.held,
    }
    return Reply(
        f"{facts['instruction']}\n\n{facts['steps_left']} steps and "
        f"{facts['seconds_left']} s left; tools: {facts['tools']}",
        facts,
    )


TOOLS: Sequence[Callable[..., Reply]] = (submit, give_up, status)


def instructions(call_it: str, task: str) -> str:
    """What an MCP client is told of a bridge before its first call."""
    return (
        f"{call_it} of a whole computer, for one task:\n\n{task}\n\n"
        "When it is done call `submit`; when it cannot be done call `give_up`. "
        "`status` says how many steps and seconds are left."
    )


def _ended(call: Call, action: a.Action) -> Reply:
    step = call.act(action)
    wrong = fault(step)
    if wrong is not None:
        return Reply(wrong, error=True)
    return Reply("the attempt is over; its tools no longer work", {"over": True})
