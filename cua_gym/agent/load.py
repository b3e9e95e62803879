"""From a name on the command line to a way of making agents."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable
from functools import partial
from typing import cast

from cua_gym.agent.base import Agent

__all__ = ["BUILT_IN", "PREFIX", "load_agent"]

PREFIX = "command:"
"""Before the command line of a harness; see `cua_gym.agent.command`."""

BUILT_IN = {
    "oracle": "cua_gym.agent.oracle:OracleAgent",
    "null": "cua_gym.agent.scripted:NullAgent",
    "give-up": "cua_gym.agent.scripted:GiveUpAgent",
    "random": "cua_gym.agent.scripted:RandomAgent",
    "anthropic": "cua_gym.agent.anthropic:AnthropicAgent",
    "openai": "cua_gym.agent.openai:openai_agent",
    "human": "cua_gym.agent.human:HumanAgent",
}


def load_agent(name: str) -> Callable[[], Agent]:
    """What makes the agent called ``name``: of `BUILT_IN`, ``command: ...``, or ``module:Class``.

    The class is called without arguments, once for each attempt.

    Raises:
        ValueError: no such agent; says what is wrong and lists near names.
    """
    if name.startswith(PREFIX):
        from cua_gym.agent.command import CommandAgent

        template = name.removeprefix(PREFIX)
        CommandAgent(template)  # what is wrong with it is said before anything is started
        return partial(CommandAgent, template)
    target = BUILT_IN.get(name, name)
    module_name, colon, attribute = target.partition(":")
    if not colon:
        near = difflib.get_close_matches(name, BUILT_IN, n=2)
        hint = f"did you mean {' or '.join(near)}?" if near else "use module:Class for your own"
        raise ValueError(f"no agent is called {name!r}; there are {', '.join(BUILT_IN)}; {hint}")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"agent {name!r}: {error}; run from the folder that holds it, or install it"
        ) from error
    except (Exception, SystemExit) as error:  # somebody else's module may raise anything
        raise ValueError(f"agent {name!r}: {type(error).__name__}: {error}") from error
    made = getattr(module, attribute, None)
    if not callable(made):
        raise ValueError(  # noqa: TRY004 - a name that a person typed
            f"agent {name!r}: {module_name} has no class {attribute!r}"
        )
    return cast("Callable[[], Agent]", made)
