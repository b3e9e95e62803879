"""Finding agents by name."""

from __future__ import annotations

import pytest

from cua_gym.agent.load import BUILT_IN, load_agent
from tests.run.agents import Worker


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_built_in_agent_is_there(name: str) -> None:
    """Each name on the list makes an agent."""
    agent = load_agent(name)()
    assert callable(agent.start)
    assert callable(agent.act)


def test_ones_own_agent() -> None:
    """module:Class is that class."""
    assert load_agent("tests.run.agents:Worker") is Worker


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("orcale", "did you mean oracle"),
        ("mine", "use module:Class"),
        ("nowhere:Agent", "No module named 'nowhere'"),
        ("tests.run.agents:Wroker", "has no class 'Wroker'"),
        ("json:", "has no class ''"),
    ],
)
def test_a_wrong_name_is_explained(name: str, message: str) -> None:
    """A name that leads nowhere says why, and what is near."""
    with pytest.raises(ValueError, match=message):
        load_agent(name)
