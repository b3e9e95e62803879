"""What each provider has of its own: requests, batches, ways to stop short; our functions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cua_gym.actions import (
    ACTIONS,
    Click,
    GiveUp,
    Move,
    Submit,
    Type,
    Wait,
    action_from_dict,
)
from cua_gym.agent.tools import function_tool, offered, tool_name
from cua_gym.errors import ActionError, AgentError
from cua_gym.spaces import ActionSpace, ToolPolicy
from tests.agent.conftest import Desk, Serve
from tests.agent.wires import CLICK, DONE, Anthropic, Chat, Responses, image

# Anthropic's members


def anthropic_use(name: str, **given: Any) -> tuple[str, Any]:
    """A call of a member of the computer toolset."""
    return "raw", {"name": name, "toolset_name": "computer", "input": given}


def test_each_look_of_a_batch_is_of_its_moment(serve: Serve) -> None:
    """Screenshot, zoom and pointer in the middle of a batch show what was there by then."""
    wire = Anthropic()
    server = serve(
        wire.does(
            anthropic_use("mouse_move", coordinate=[728, 409]),
            anthropic_use("cursor_position"),
            anthropic_use("screenshot"),
            anthropic_use("left_click"),
            anthropic_use("zoom", region=[0, 0, 364, 205]),
        ),
        wire.does(DONE),
    )
    desk = Desk(wire.make(), screen=(1920, 1080))
    move = desk.act()
    assert isinstance(move, Move)
    desk.cursor = (move.x, move.y)
    desk.screen[:] = 50
    assert desk.act() == Click(move.x, move.y)
    desk.screen[:] = 100
    desk.screen[:270, :481] = 200
    assert desk.act() == Submit("42")
    moved, pointer, shot, clicked, zoomed = server.asked[1].body["messages"][-1]["content"]
    assert all(block["toolset_name"] == "computer" for block in (moved, pointer, shot, zoomed))
    assert moved["content"] == clicked["content"] == [{"type": "text", "text": "OK"}]
    assert pointer["content"][0]["text"] == "X=728, Y=409"
    first, second = (image(b["content"][0]["source"]["data"]) for b in (shot, zoomed))
    assert first.size == (1456, 819)
    assert first.getpixel((700, 400)) == (50, 50, 50)
    assert second.size[0] in range(1440, 1457)
    assert second.getpixel((5, 5)) == second.getpixel((1400, 800)) == (200, 200, 200)


@pytest.mark.parametrize("region", [None, "all", [1, 2, 3], [10, 10, 5, 5], [0, 0, 9999, 9]])
def test_a_zoom_of_nothing(serve: Serve, region: Any) -> None:
    """A box that is none is told."""
    wire = Anthropic()
    server = serve(wire.does(anthropic_use("zoom", region=region), DONE), wire.does(DONE))
    desk = Desk(wire.make())
    while desk.act() == Wait(0.0):
        pass
    assert wire.results(server.asked[1].body)[0][0]


def test_anthropics_requests(serve: Serve) -> None:
    """Tools as the reference has them; the answer goes back whole, signed reasoning included."""
    wire = Anthropic()
    answer = wire.does(CLICK)
    server = serve(answer, wire.does(DONE))
    desk = Desk(wire.make())
    desk.act()
    desk.act()
    first, second = (asked.body for asked in server.asked)
    assert first["tools"][:2] == [
        {"type": "computer_toolset_20260801"},
        {"type": "bash_20250124", "name": "bash"},
    ]
    assert first["tools"][2].keys() == {"name", "description", "input_schema"}
    assert "anthropic-beta" not in server.asked[0].headers
    assert second["messages"][0] == first["messages"][0]
    assert second["messages"][1] == {"role": "assistant", "content": answer["content"]}
    result, picture = second["messages"][2]["content"]
    assert result["tool_use_id"] == answer["content"][1]["id"]
    assert picture["type"] == "image"


@pytest.mark.parametrize("stop", ["pause_turn", "model_context_window_exceeded"])
def test_other_ways_to_stop_short(serve: Serve, stop: str) -> None:
    """They are no end of a turn."""
    wire = Anthropic()
    serve(wire.says("Well,") | {"stop_reason": stop}, wire.does(DONE))
    assert Desk(wire.make()).act() == Submit("42")


def test_bash_is_not_restarted(serve: Serve) -> None:
    """There is no session to restart; that is told."""
    wire = Anthropic()
    server = serve(wire.does(("raw", {"name": "bash", "input": {"restart": True}})),
                   wire.does(DONE))  # fmt: skip
    Desk(wire.make()).act()
    assert "each runs in a new shell" in wire.results(server.asked[1].body)[0][1]


# OpenAI's


def test_safety_checks_are_acknowledged(serve: Serve) -> None:
    """Nobody is there to be asked, and nothing can be harmed: the call is done and acknowledged."""
    wire = Responses()
    checks = [{"id": "sc_1", "code": "malicious_instructions", "message": "Look out."}]
    call = wire.computer_call([{"type": "click", "button": "left", "x": 1, "y": 2}],
                              pending_safety_checks=checks)  # fmt: skip
    server = serve(wire.does() | {"output": [call]}, wire.does(DONE))
    desk = Desk(wire.make())
    assert desk.act() == Click(1, 2)
    desk.act()
    output = server.asked[1].body["input"][-1]
    assert output["acknowledged_safety_checks"] == checks
    assert output["output"]["type"] == "computer_screenshot"


def test_a_batch_that_fails_in_the_middle(serve: Serve) -> None:
    """The rest of a computer call is not done, and a picture and the reason come back."""
    wire = Responses()
    server = serve(wire.does(CLICK, ("type", {"text": "☃"}), CLICK), wire.does(DONE))
    desk = Desk(wire.make())
    assert [desk.act(), desk.act()] == [Click(10, 20), Type("☃")]
    assert desk.act(action_error="no snow") == Submit("42")
    output, note = server.asked[1].body["input"][-2:]
    assert output["type"] == "computer_call_output"
    assert note["role"] == "user"
    assert note["content"][0]["text"].endswith("failed: no snow")


def test_the_single_action_of_before(serve: Serve) -> None:
    """A computer call with one action instead of a batch is understood."""
    wire = Responses()
    call = wire.computer_call([], action={"type": "click", "button": "wheel", "x": 1, "y": 2})
    serve(wire.does() | {"output": [call]})
    assert Desk(wire.make()).act() == Click(1, 2, "middle")


def test_openais_requests(serve: Serve) -> None:
    """Nothing is stored there; all of an answer goes back, encrypted reasoning included."""
    wire = Responses()
    answer = wire.does(CLICK)
    server = serve(answer, wire.does(DONE))
    desk = Desk(wire.make())
    desk.act()
    desk.act()
    first, second = (asked.body for asked in server.asked)
    assert first["store"] is False
    assert first["include"] == ["reasoning.encrypted_content"]
    assert "previous_response_id" not in first
    assert first["tools"][0] == {"type": "computer"}
    assert first["tools"][1]["name"] == "shell"
    assert second["input"][1:3] == answer["output"]


@pytest.mark.parametrize("kind", [Responses, Chat])
def test_filtered_content_is_a_refusal(serve: Serve, kind: Any) -> None:
    """What the provider takes away, the model has not said."""
    filtered = kind().says("I would")
    if kind is Chat:
        filtered["choices"][0]["finish_reason"] = "content_filter"
    else:
        reason = {"reason": "content_filter"}
        filtered |= {"status": "incomplete", "incomplete_details": reason}
    serve(filtered)
    action = Desk(kind.make()).act()
    assert isinstance(action, GiveUp)
    assert action.reason.startswith("the model refused: ")


def test_a_failed_response(serve: Serve) -> None:
    """A response that failed says why."""
    wire = Responses()
    fault = {"code": "server_error", "message": "The model is on fire."}
    serve(wire.does() | {"status": "failed", "error": fault})
    with pytest.raises(AgentError, match="on fire"):
        Desk(wire.make()).act()


def test_arguments_that_are_no_json_do_not_go_back(serve: Serve) -> None:
    """A server that parses the history would refuse what its own model wrote."""
    wire = Chat()
    server = serve(wire.malformed(), wire.does(DONE))
    Desk(wire.make()).act()
    (call,) = server.asked[1].body["messages"][1]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {}


# our actions as functions


@pytest.mark.parametrize("tools", ["gui", "shell", "both"])
def test_what_is_offered_is_what_is_allowed(tools: ToolPolicy) -> None:
    """The functions are those actions that the policy's space contains."""
    space = ActionSpace((100, 100), tools)
    values = {"x": 1, "y": 1, "path": [[0, 0], [1, 1]], "text": "a", "combo": "a", "key": "a",
              "command": "true"}  # fmt: skip
    for kind in ACTIONS:
        tool = function_tool(kind)
        assert tool["name"] == tool_name(kind)
        needed = {name: values[name] for name in tool["parameters"]["required"]}
        action = action_from_dict({"type": tool["name"], **needed})
        assert type(action) is kind
        assert (kind in offered(tools)) == space.contains(action)
        with pytest.raises(ActionError):
            action_from_dict({"type": tool["name"], **needed, "more": 1})


def test_a_functions_schema() -> None:
    """Fields, kinds, choices and what must be given."""
    assert function_tool(Click) == {
        "name": "click",
        "description": "Press and release button count times at (x, y), with modifiers held.",
        "parameters": {
            "type": "object",
            "properties": {
                "x": {"type": "integer"},
                "y": {"type": "integer"},
                "button": {"type": "string", "enum": ["left", "middle", "right"]},
                "count": {"type": "integer"},
                "modifiers": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["x", "y"],
            "additionalProperties": False,
        },
    }
