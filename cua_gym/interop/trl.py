"""Tasks as environments of TRL: ``GRPOTrainer(environment_factory=DesktopTools)``.

TRL makes its environments without arguments, shows the model every public method but ``reset`` and
``get_reward`` as a tool, described by its docstring, and gives it what a tool raises as an error.
So this is a facade and no `gymnasium.Env`. It imports nothing of TRL.

Source: TRL 1.16, "Agent Training" in its documentation of GRPO.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from PIL import Image

from cua_gym import actions as a
from cua_gym.env import DesktopEnv
from cua_gym.errors import ActionError, MachineError
from cua_gym.grading.outcome import Outcome
from cua_gym.task import Task

__all__ = ["DesktopTools", "ShellTools"]

Content = list[dict[str, Any]]


class DesktopTools:
    """A desktop for one rollout after the other; tools for screen, mouse and keyboard.

    Args:
        task: as for `DesktopEnv`, where the data set has no column ``task``. Bind it by
            `functools.partial`.
        options: as for `DesktopEnv`.

    Attributes:
        outcome: of the rollout that `get_reward` was last asked about, for other reward functions.
    """

    def __init__(self, task: str | Path | Task | None = None, **options: Any) -> None:
        self.outcome: Outcome | None = None
        self._default = task
        self._options = {"agent": "trl", **options}
        self._task: str | Path | Task | None = None
        self._env: DesktopEnv | None = None
        self._picture: Image.Image | None = None

    def reset(self, task: str | None = None, seed: int | None = None, **row: Any) -> str:
        """Begin a rollout; the instruction, which TRL adds to the prompt.

        Rollouts of one group should begin alike, so let the data set's rows have a ``seed``. When
        no machine can be had the rollout is unscored, and its tools say that it is over.

        Args:
            task: a bundled task's name, or a task folder.
            seed: chooses the task's variation; None draws one.
            row: other columns are ignored.

        Raises:
            TaskError: the task is unknown, invalid, or its setup does not work.
            ImageError: its image is not built.
        """
        wanted = self._default if task is None else task
        if wanted is None:
            raise ValueError("no task: give the data set a column 'task', or bind one by partial")
        if self._env is None or wanted != self._task:
            if self._env is not None:
                self._env.close()
            self._env, self._task = DesktopEnv(wanted, **self._options), wanted
        self.outcome = self._picture = None
        try:
            observation, _ = self._env.reset(seed=seed)
        except MachineError:
            pass  # the outcome says what happened, and asks for no reward
        else:
            self._picture = Image.fromarray(observation["screenshot"])
        return self._env.episode.variation.instruction

    def get_reward(self) -> float | None:
        """The score, from 0 to 1; what was not submitted is graded as it stands.

        None when it could not be scored: such a rollout says nothing about the model, and TRL
        leaves it out of its group.
        """
        if self._env is None:
            raise RuntimeError("no rollout yet; call reset() first")
        self.outcome = self._env.evaluate()
        return self.outcome.score

    def screenshot(self) -> Content:
        """Look at the screen. The pointer is drawn in it.

        Returns:
            The picture.
        """
        return self._look(a.Wait(0))

    def click(
        self,
        x: int,
        y: int,
        button: Literal["left", "middle", "right"] = "left",
        count: int = 1,
    ) -> Content:
        """Click at a point of the screen.

        Args:
            x: Pixels from the left edge.
            y: Pixels from the top edge.
            button: The mouse button.
            count: 2 for a double click, 3 for a triple one.

        Returns:
            The screen afterwards.
        """
        return self._look(a.Click(x, y, button, count))

    def move(self, x: int, y: int) -> Content:
        """Put the pointer on a point of the screen, without a click.

        Args:
            x: Pixels from the left edge.
            y: Pixels from the top edge.

        Returns:
            The screen afterwards.
        """
        return self._look(a.Move(x, y))

    def drag(self, x: int, y: int, to_x: int, to_y: int) -> Content:
        """Press the left button at one point and let it go at another.

        Args:
            x: Where to begin, in pixels from the left edge.
            y: Where to begin, in pixels from the top edge.
            to_x: Where to end, in pixels from the left edge.
            to_y: Where to end, in pixels from the top edge.

        Returns:
            The screen afterwards.
        """
        return self._look(a.Drag(((x, y), (to_x, to_y))))

    def scroll(self, x: int, y: int, down: int = 0, right: int = 0) -> Content:
        """Turn the mouse wheel over a point of the screen.

        Args:
            x: Pixels from the left edge.
            y: Pixels from the top edge.
            down: Notches down; below 0 is up.
            right: Notches to the right; below 0 is to the left.

        Returns:
            The screen afterwards.
        """
        return self._look(a.Scroll(x, y, right, down))

    def type_text(self, text: str) -> Content:
        """Type text where the keyboard's focus is.

        Args:
            text: Any characters; a line break is Enter, a tab is Tab.

        Returns:
            The screen afterwards.
        """
        return self._look(a.Type(text))

    def press(self, keys: str) -> Content:
        """Press a key, or several at once.

        Args:
            keys: Names joined by plus signs, such as "enter", "f5" or "ctrl+shift+s".

        Returns:
            The screen afterwards.
        """
        return self._look(a.Key(keys))

    def wait(self, seconds: float = 1.0) -> Content:
        """Let time pass.

        Args:
            seconds: How long, up to 60.

        Returns:
            The screen afterwards.
        """
        return self._look(a.Wait(seconds))

    def submit(self, answer: str | None = None) -> str:
        """Say that the task is done. Nothing can be done afterwards.

        Args:
            answer: Only if the task asks for one.

        Returns:
            That it was taken.
        """
        self._do(a.Submit(answer))
        return "Submitted."

    def give_up(self, reason: str) -> str:
        """Say that the task cannot be done. Nothing can be done afterwards.

        Args:
            reason: Why it cannot be done.

        Returns:
            That it was taken.
        """
        self._do(a.GiveUp(reason))
        return "Given up."

    def _look(self, action: a.Action) -> Content:
        info = self._do(action)
        said = (
            "The time to act is over." if "limit" in info else f"{info['steps_left']} steps left."
        )
        return [{"type": "image", "image": self._picture}, {"type": "text", "text": said}]

    def _do(self, action: a.Action) -> dict[str, Any]:
        """Do it; info.

        Raises:
            ActionError: it is impossible here, and was not done.
            RuntimeError: the rollout is over, or its machine was lost.
        """
        if self._env is None:
            raise RuntimeError("no rollout yet; call reset() first")
        observation, _, _, _, info = self._env.step(action)
        self._picture = Image.fromarray(observation["screenshot"])
        if "error" in info:
            raise RuntimeError("the computer is gone; this task is over")
        if "action_error" in info:
            raise ActionError(info["action_error"])
        return info


class ShellTools(DesktopTools):
    """The same with a shell, for tasks whose tool policy allows one."""

    def run(self, command: str, timeout_s: float = 30.0) -> str:
        """Run a command with bash, in a new shell that starts in the home folder.

        Args:
            command: What to run.
            timeout_s: Seconds after which it is ended, up to 600.

        Returns:
            What it printed, and its exit status if that is not 0.
        """
        shell = self._do(a.Shell(command, timeout_s))["shell"]
        ended = "\n[ended: it took too long]" if shell["timed_out"] else f"\n[exit {shell['exit']}]"
        return f"{shell['stdout']}{shell['stderr']}{ended if shell['exit'] else ''}"
