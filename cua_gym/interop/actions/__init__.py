"""Other people's actions as ours, and ours as theirs; one module a format.

``from_*`` gives a tuple: one foreign action may be several of ours, and `ONLY_LOOK`, the empty
tuple, means that nothing is done and the screen is looked at. Such a tuple is one intention: see
that all of it is allowed (`cua_gym.spaces.ActionSpace.refusal`) before doing the first, or a key
that it holds for a click off the screen stays down. ``to_*`` gives a tuple too, of their actions,
or raises where they cannot say it.

Foreign coordinates are pixels of the picture that the model sees (`Scale`); a ``cursor`` is in
native pixels, like everything of ours. Nothing of a foreign action is ever executed, and whatever
is wrong with one is an `ActionError`. Performing actions, and taking pictures, is left to others.
"""

from __future__ import annotations

from cua_gym.actions import Action
from cua_gym.interop.actions.anthropic import from_anthropic, to_anthropic
from cua_gym.interop.actions.computer_13 import from_computer_13, to_computer_13
from cua_gym.interop.actions.openai import PIXELS_PER_NOTCH, from_openai, to_openai
from cua_gym.interop.actions.pyautogui import from_pyautogui, to_pyautogui
from cua_gym.interop.actions.scale import Scale

__all__ = [
    "ONLY_LOOK",
    "PIXELS_PER_NOTCH",
    "Scale",
    "from_anthropic",
    "from_computer_13",
    "from_openai",
    "from_pyautogui",
    "to_anthropic",
    "to_computer_13",
    "to_openai",
    "to_pyautogui",
]

ONLY_LOOK: tuple[Action, ...] = ()
"""What a foreign action that only wants to see (``screenshot``, ``zoom``, ...) becomes."""
