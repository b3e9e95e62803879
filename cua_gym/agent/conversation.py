"""What the model agents share: a conversation whose answers become actions, and their fate.

A `ModelAgent` tells a model the task, shows it the screen, and hands out the actions that its tool
calls stand for, one at a time; what became of them is told when the whole answer has been done. How
a provider writes requests and answers is its own module's business (`anthropic`, `openai`).

Model, key and endpoint come from the environment and go nowhere else. What an answer leads to:

======================================================  ==========================================
the model's answer                                      fate
======================================================  ==========================================
calls tools                                             done in order; the first that fails ends it
text alone, the turn ended                              `Submit` of the text
a refusal, or filtered by the provider                  `GiveUp` with the reason: scored
malformed input, unknown key or tool, off the screen    told as the call's error, three times in a
                                                        row; then `AgentError`
only looks (a screenshot, the pointer's place)          a `Wait` of 0 s, which is a step
cut off, or empty                                       asked again twice; then `AgentError`
slow, unreachable, refused by the endpoint (401, 404),  `AgentError` with the provider's words,
overloaded after two retries, no JSON, wrong types      without key or endpoint
not there when the attempt's own time is over           a `Wait` of 0 s: the attempt ends at its
                                                        limit and is graded, if the model had
                                                        answered before; else `AgentError`
======================================================  ==========================================

`AgentError` makes an attempt ``unscored`` with reason ``agent``. What the machine itself refused
(``info["action_error"]``) is told as the call's error; shell output comes back clipped.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import re
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import ValidationError

from cua_gym import actions as a
from cua_gym.agent.base import TaskInfo, Usage
from cua_gym.agent.sight import Box, Sight
from cua_gym.errors import ActionError, AgentError

__all__ = ["RETRIES", "TIMEOUT_S", "Answer", "Call", "ModelAgent", "Result", "sdk"]

TIMEOUT_S = 120.0
"""What the providers' own clients wait for one request."""

RETRIES = 2
"""How often the providers' own clients try again, when that may help."""

ACT_S = 300.0
"""The most that one `act` waits for a model, however slowly its answers trickle in."""

MOST_ERRORS = 3
MOST_BROKEN = 2

MOST_TOLD = 20
"""Answers, and pictures, in one conversation; then a new one begins with a report of the old.

A prompt that grew with the attempt would cost its square, and a provider refuses big pictures when
they are more than 20. Old turns are not thinned out instead: newer models refuse their own earlier
reasoning once anything before it has changed.
"""

MOST_REPORT = 20_000
"""Characters of such a report; the oldest lines go first."""

MOST_SHELL = 8_000
"""Characters of a command's output that a model is told, from both ends."""

SKIPPED = "Not executed: an earlier computer action in this turn failed."


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call of an answer.

    Attributes:
        id: the provider's.
        said: the call in the model's own words, for the report.
        make: gives the actions that it stands for, in native pixels, or raises `ActionError`;
            called when its turn comes, since a click may mean where the pointer is by then.
        look: what it wants to see: the screen, the pointer's place, or a part of the screen.
        raw: whatever else the provider needs for the result.
    """

    id: str
    said: str
    make: Callable[[], tuple[a.Action, ...]]
    look: Literal["screen", "cursor"] | Box | None = None
    raw: Any = None


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a call; ``picture`` is a PNG file in base64, if it wanted to see one."""

    call: Call
    text: str
    failed: bool = False
    picture: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model said; without refusal, calls and text it was cut off or empty."""

    calls: tuple[Call, ...] = ()
    text: str = ""
    refusal: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0


class ModelAgent(ABC):
    """One attempt's conversation with a model; a provider's module fills in how it is written.

    Attributes:
        task: what is to be done.
        sight: how the model sees the screen.
        sees: whether it sees it at all: not in a task of the shell alone.
        model: the model's name.
        cursor: the pointer's place, native pixels.
    """

    task: TaskInfo
    sight: Sight
    sees: bool
    model: str | None = None
    cursor: tuple[int, int]

    def __init__(self) -> None:
        self._calls: deque[Call] = deque()  # of the last answer; the first is the one being done
        self._queue: deque[a.Action] = deque()  # what is left of that one
        self._results: list[Result] = []
        self._acting = False
        self._errors = 0
        self._told = MOST_TOLD  # the first conversation begins as every later one
        self._report: list[str] = []
        self._picture: str | None = None
        self._usage = Usage()

    # what a provider's module says

    @abstractmethod
    def fits(self, width: int, height: int) -> bool:
        """Whether the provider shows its models a picture of this size as it is."""

    @abstractmethod
    def begin(self, text: str, picture: str | None) -> None:
        """Begin a conversation, forgetting an earlier one."""

    @abstractmethod
    def tell(self, results: Sequence[Result], picture: str | None) -> None:
        """Add the results of the last answer, and the screen as it is now."""

    @abstractmethod
    async def post(self) -> str:
        """Ask the model; the body of its answer.

        Raises:
            AgentError: with the provider's message.
        """

    @abstractmethod
    def read(self, body: str) -> Answer:
        """Understand an answer; keep it in the conversation if it is whole.

        Raises:
            ValueError: it is none; pydantic's `ValidationError` is one too.
        """

    # Agent

    @property
    def usage(self) -> Usage:
        """What was spent so far."""
        return replace(self._usage, model=self.model)

    def start(self, task: TaskInfo) -> None:
        """Keep the task; nothing is asked yet."""
        self.task = task
        self.sight = Sight(task.action_space.screen, self.fits)
        self.sees = task.action_space.tools != "shell"

    def act(self, observation: Mapping[str, Any], info: Mapping[str, Any]) -> a.Action:
        """The model's next action.

        Raises:
            AgentError: as the module says.
        """
        x, y = observation["cursor"]
        self.cursor = int(x), int(y)
        self._screen, self._info = observation["screenshot"], info
        self._picture = None
        limit = time.monotonic() + min(ACT_S, info["seconds_left"])
        if self._acting:
            self._acting = False
            self._done(info)
        while not self._queue:
            if self._calls:
                self._take_up()
            else:
                self._ask(limit, info["seconds_left"] < ACT_S)
        # After a last `Wait`, submission or surrender there is no call whose result matters.
        self._acting = bool(self._calls)
        return self._queue.popleft()

    # from call to action

    def _take_up(self) -> None:
        """The next call: its actions into the queue, or its result if there are none."""
        call = self._calls[0]
        try:
            actions = call.make()
            for action in actions:
                if (refusal := self.task.action_space.refusal(action)) is not None:
                    raise ActionError(refusal)
            if not actions:
                self._finish("OK")
        except ActionError as error:
            self._errors += 1
            if self._errors > MOST_ERRORS:
                raise AgentError(
                    f"{self._errors} malformed calls in a row; the last: {call.said:.200}: {error}"
                ) from None
            self._fail(str(error))
            return
        if actions:
            self._errors = 0
            self._queue.extend(actions)

    def _done(self, info: Mapping[str, Any]) -> None:
        """Note what became of the action that was handed out."""
        if "action_error" in info:
            self._queue.clear()
            self._fail(str(info["action_error"]))
        elif not self._queue:
            try:
                self._finish(_shell_text(info["shell"]) if "shell" in info else "OK")
            except ActionError as error:
                self._fail(str(error))

    def _finish(self, text: str) -> None:
        call, picture = self._calls[0], None
        if call.look == "cursor":
            text = "X={}, Y={}".format(*self.sight.scale.to_model(self.cursor))
        elif call.look is not None:
            picture = self._seen(None if call.look == "screen" else call.look)
        self._add(Result(self._calls.popleft(), text, picture=picture))

    def _fail(self, text: str) -> None:
        self._add(Result(self._calls.popleft(), text, failed=True))
        while self._calls:
            self._add(Result(self._calls.popleft(), SKIPPED, failed=True))

    def _add(self, result: Result) -> None:
        self._results.append(result)
        self._report.append(f"You called {result.call.said}: {result.text}")

    def _seen(self, box: Box | None = None) -> str | None:
        if not self.sees:
            return None
        if box is not None:
            return self.sight.picture(self._screen, box)
        if self._picture is None:
            self._picture = self.sight.picture(self._screen)
        return self._picture

    # from answer to call

    def _ask(self, limit: float, attempts_own: bool) -> None:
        """Get the next answer's calls, or the action that ends the attempt."""
        self._tell()
        for _ in range(1 + MOST_BROKEN):
            try:
                answer = self._answered(limit)
            except TimeoutError:
                if attempts_own and self._usage.calls:
                    self._queue.append(a.Wait(0.0))
                    return
                raise AgentError(f"the model gave no answer in {ACT_S:.0f} s or less") from None
            if answer.text:
                self._report.append(f"You said: {answer.text}")
            if answer.refusal is not None:
                self._queue.append(a.GiveUp(_plain(f"the model refused: {answer.refusal}")))
            elif answer.calls:
                self._calls.extend(answer.calls)
                if all(call.look is not None for call in answer.calls):
                    self._calls[0] = _as_step(answer.calls[0])
            elif answer.text.strip():
                self._queue.append(a.Submit(_plain(answer.text)))
            else:
                continue
            return
        raise AgentError(f"{1 + MOST_BROKEN} answers in a row broke off or were empty")

    def _tell(self) -> None:
        if self._told >= MOST_TOLD:
            self._told = 1
            self.begin(self._introduction(), self._seen())
        elif self._results:
            self._told += max(1, sum(result.picture is not None for result in self._results))
            self.tell(self._results, self._seen())
        self._results = []

    def _answered(self, limit: float) -> Answer:
        began = time.monotonic()
        try:
            answer = self.read(_within(limit - began, self.post))
        except AgentError as error:
            raise AgentError(_public(str(error))) from None
        except ValidationError as error:
            wrong = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in wrong["loc"]) or "all of it"
            raise AgentError(f"the answer is none of a model: {where}: {wrong['msg']}") from None
        except ValueError as error:
            raise AgentError(_public(f"the answer is none of a model: {error}")) from None
        finally:
            spent = time.monotonic() - began
            self._usage = replace(self._usage, model_s=self._usage.model_s + spent)
        self._usage = replace(
            self._usage,
            calls=self._usage.calls + 1,
            input_tokens=self._usage.input_tokens + answer.input_tokens,
            output_tokens=self._usage.output_tokens + answer.output_tokens,
        )
        return answer

    def _introduction(self) -> str:
        width, height = self.sight.size
        screen = f"You see its screen as {width}x{height} pixels. " if self.sees else ""
        text = (
            f"{self.task.instruction.strip()}\n\n"
            "You work alone, on a whole computer that is only for this; nobody answers questions. "
            f"{screen}You have {self._info['steps_left']} actions and "
            f"{self._info['seconds_left']:.0f} seconds left. When the task is done, call submit, "
            "with the answer if the task asks for one. If it cannot be done, call give_up and say "
            "why."
        )
        lines: list[str] = []
        room = MOST_REPORT
        for line in reversed(self._report):
            room -= len(line)
            if room < 0:
                lines.append("[what came before is left out]")
                break
            lines.append(line)
        report = "\n".join(reversed(lines))
        return f"{text}\n\nWhat happened so far:\n{report}" if report else text


def _as_step(call: Call) -> Call:
    """A look as an action: what only looks must come to an end too."""
    return replace(call, make=lambda: (*call.make(), a.Wait(0.0)))


def sdk(name: str) -> Any:
    """A provider's package, which only its agent needs.

    Raises:
        AgentError: it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise AgentError(f"the package {name} is missing: pip install cua-gym[models]") from error


def _within(seconds: float, ask: Callable[[], Awaitable[str]]) -> str:
    """The answer, or TimeoutError; a connection that is given up is closed."""

    async def bounded() -> str:
        async with asyncio.timeout(max(0.0, seconds)):
            return await ask()

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(bounded())
    with ThreadPoolExecutor(1) as beside:  # a notebook's cell runs in a loop already
        return beside.submit(asyncio.run, bounded()).result()


def _shell_text(shell: Mapping[str, Any]) -> str:
    text = f"{shell['stdout']}{shell['stderr']}".strip("\n")
    if len(text) > MOST_SHELL:
        half = MOST_SHELL // 2
        text = f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"
    if shell["timed_out"]:
        return f"{text}\n[its time ran out and it was killed]"
    return f"{text}\n[exit status {shell['exit']}]" if shell["exit"] or not text else text


def _plain(text: str) -> str:
    """Text that an action can carry."""
    return text.strip()[: a.MAX_TEXT]


def _public(text: str) -> str:
    """A message without what the environment says of keys and endpoints."""
    for name, value in os.environ.items():
        if name.startswith(("ANTHROPIC_", "OPENAI_")) and len(value) > 3:
            text = text.replace(value, f"[{name}]")
    text = re.sub(r"\bsk-[\w*.-]+", "[key]", text)
    return text if len(text) <= 1000 else f"{text[:1000]} ..."
