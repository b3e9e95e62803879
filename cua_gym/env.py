"""`DesktopEnv`: Gymnasium's face of an episode."""

from __future__ import annotations

import copy
import datetime
import math
import operator
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, Self

import gymnasium as gym
import numpy as np

from cua_gym.actions import Action
from cua_gym.episode import Episode
from cua_gym.errors import GradingError, MachineError
from cua_gym.foresight import Foresight, draw
from cua_gym.grading.outcome import Outcome
from cua_gym.machine.base import Machine, Rgb, fitted, read_only
from cua_gym.machine.pool import WarmPool
from cua_gym.machine.settle import Settle
from cua_gym.machine.start import start_machine
from cua_gym.record.layout import RunFolder, run_name
from cua_gym.spaces import ActionSpace, observation_space
from cua_gym.steps import Moment, Step
from cua_gym.task import Task, find_task

__all__ = ["DesktopEnv", "make"]

Observation = dict[str, Any]


class DesktopEnv(gym.Env[Observation, Action]):
    """A whole computer with a task on it.

    The observation is ``{"screenshot": (height, width, 3) uint8 RGB, "cursor": (x, y) int64}`` in
    pixels of the native screen, origin top left; arrays are fresh each time. Strings travel in
    ``info``: ``instruction``, ``steps_left``, ``seconds_left``, ``frame_serial``,
    ``frame_age_s``, ``settled``, ``settle_s``, ``action_error`` (the action was impossible and
    nothing happened), ``shell`` (output of a `Shell` action), ``error`` (the machine was lost),
    ``screen`` (width and height, where the guest has another resolution than the task says: the
    screenshot is then cut, or black is added, at the right and bottom).

    ``terminated`` follows `Submit` and `GiveUp`; ``truncated`` a limit or a lost machine. On that
    last step the episode is graded: ``info["outcome"]`` has the outcome and the reward is its
    score. An *unscored* outcome pays 0.0 and has ``info["error"]``: leave such episodes out of a
    training batch, they say nothing about the agent. ``info["losses"]`` is there if something of
    the attempt could not be kept (the disk became full, say); the outcome stands.

    A machine is allocated in `reset`, never in ``__init__``. ``seed`` chooses the task's
    variation; a reset without a seed draws one.

    Args:
        task: a bundled task's name, a task folder, or a loaded `Task`.
        backend: ``"qemu"`` for a whole computer, ``"x11"`` for a light desktop, which a task must
            allow; None is what the task says, a whole computer.
        render_mode: ``"rgb_array"`` or None.
        reward: ``"final"`` pays the score at the end; ``"progress"`` pays the change of the score
            after every step (it freezes and grades each time, about a second, and lets go of keys
            and buttons that are down; ``info["progress_error"]`` if it could not be graded).
        runs: folder of the recorded runs.
        run: name of this run below ``runs``; the date and time when None.
        agent: the agent's name in the record.
        settle: what counts as a settled screen; None is what the kind of computer says.
        max_steps: instead of the task's own limit.
        max_seconds: instead of the task's own limit.
        keep_final_state: save the machine after grading, to be opened later
            (`cua_gym.record.replay.Replay.final_state`).
        film_every: pictures and a video are recorded of each so many-th episode, from the first;
            0 is of none. Lines, evidence and outcome are recorded of all.
        copy: each screenshot is the caller's own; False hands out the one that is recorded, which
            cannot be written to.
        progress: told what takes more than a second.
        warm: 1 has the next machine made ready while this one is used; or a pool that several
            environments share. It is kept for a reset without a seed, or with the same one again.

    Attributes:
        out: where the screenshots of steps go from the next reset on, each over the one before, for
            a vector that has a place for them; None is memory of their own. Nobody else writes
            there until the episode is over.

    Raises:
        TaskError: the task is unknown, invalid or not for that backend; nothing was started.
        ValueError, TypeError: an option cannot be what it is.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 - as gym.Env has it

    def __init__(
        self,
        task: str | Path | Task,
        *,
        backend: Literal["qemu", "x11"] | None = None,
        render_mode: Literal["rgb_array"] | None = None,
        reward: Literal["final", "progress"] = "final",
        runs: str | Path = "runs",
        run: str | None = None,
        agent: str = "caller",
        settle: Settle | None = None,
        max_steps: int | None = None,
        max_seconds: float | None = None,
        keep_final_state: bool = False,
        film_every: int = 1,
        copy: bool = True,
        progress: Callable[[str], None] = lambda _: None,
        warm: int | WarmPool = 0,
        start: Callable[..., Machine] = start_machine,
    ) -> None:
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"render_mode is 'rgb_array' or None, not {render_mode!r}")
        if reward not in ("final", "progress"):
            raise ValueError(f"reward is 'final' or 'progress', not {reward!r}")
        if max_steps is not None and operator.index(max_steps) < 1:
            raise ValueError(f"max_steps is at least 1, not {max_steps!r}")
        if max_seconds is not None and not 0 < max_seconds < math.inf:
            raise ValueError(f"max_seconds is a time above 0, not {max_seconds!r}")
        if operator.index(film_every) < 0:
            raise ValueError(f"film_every is a number from 0 on, not {film_every!r}")
        if backend not in (None, "qemu", "x11"):
            raise ValueError(f"backend is 'qemu' or 'x11', not {backend!r}")
        self.task = (task if isinstance(task, Task) else find_task(task)).on(backend)
        self.render_mode = render_mode
        self.observation_space = observation_space(self.task.spec.screen)
        self.action_space = ActionSpace(self.task.spec.screen, self.task.tool_policy)
        self._reward_kind = reward
        self._runs = Path(runs)
        self._run = run
        self._agent = agent
        self._options: dict[str, Any] = {
            "rule": settle,
            "max_steps": max_steps,
            "max_seconds": max_seconds,
            "keep_final_state": keep_final_state,
        }
        self._copy = copy
        self.out: Rgb | None = None
        self._film_every = film_every
        self._episodes = 0
        self._start = start
        self._foresight: Foresight | None = None
        if warm:
            pool = warm if isinstance(warm, WarmPool) else WarmPool(warm, start=start)
            self._foresight = Foresight(self.task, pool.place())
        self._progress = progress
        self._episode: Episode | None = None
        self._frame: Rgb | None = None
        self._score = 0.0

    @property
    def episode(self) -> Episode:
        """The current episode.

        Raises:
            RuntimeError: before the first reset.
        """
        if self._episode is None:
            raise RuntimeError("no episode yet; call reset() first")
        return self._episode

    @property
    def machine(self) -> Machine:
        """The running machine, for white-box use: it bypasses the record."""
        return self.episode.machine

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start a new episode on a machine in the task's start state.

        Args:
            seed: chooses the task's variation; None draws one.
            options: ``{"variation": n}`` sets the variation without reseeding the generator.

        Raises:
            ValueError, TypeError: an unknown option, or a seed or variation that is no whole number
                from 0; nothing was changed.
            MachineError, ImageError, TaskError: the episode could not be prepared; `evaluate`
                then returns the `unscored` outcome.
        """
        if unknown := set(options or {}) - {"variation"}:
            raise ValueError(f"unknown reset options {sorted(unknown)}; there is 'variation'")
        if seed is not None:
            seed = operator.index(seed)  # Gymnasium takes no integer of numpy's
        named = (options or {}).get("variation", seed)
        if named is not None and operator.index(named) < 0:
            raise ValueError(f"a variation is a number from 0 on, not {named}")
        super().reset(seed=seed)
        number = draw(self.np_random) if named is None else operator.index(named)
        self._end_episode()
        if self._run is None:
            self._run = run_name(datetime.datetime.now(datetime.UTC))
        folder = RunFolder.create(self._runs, self._run, self.task.name, self._agent)
        ahead = self._foresight
        episode = Episode(
            ahead.variation(number) if ahead else self.task.variation(number),
            folder,
            agent=self._agent,
            film=self._film_every > 0 and self._episodes % self._film_every == 0,
            start=ahead.place if ahead else self._start,
            out=self.out,
            **self._options,
        )
        self._episode = episode
        step = episode.prepare(self._progress)
        self._episodes += 1
        self._score = self._progressed(step.info) or 0.0
        if ahead:
            ahead.look_ahead(named, self.np_random)
        return self._observe(step), step.info

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Do one action and look; see the class for what comes back."""
        episode = self.episode
        step = episode.act(action)
        reward = 0.0
        truncated = step.truncated
        info = step.info
        if not (step.terminated or truncated):
            try:
                score = self._progressed(info)
            except MachineError:
                truncated = True  # the evaluation below meets the same fault and names it
            else:
                if score is not None:
                    reward, self._score = score - self._score, score
        if step.terminated or truncated:
            outcome = self._ended(info)
            if outcome.kind == "unscored":
                truncated = True
            else:
                reward = _score(outcome) - self._score
        return self._observe(step), reward, step.terminated, truncated, info

    def save(self) -> Moment:
        """This moment of the episode, to come back to by `restore` (for a search in a tree).

        It takes some hundred megabytes of the cache; `machine.discard(moment.state)` frees them.

        Raises:
            RuntimeError: there is no episode, or it has ended (`EpisodeOver`).
            MachineError: the machine could not be saved.
        """
        return self.episode.save()

    def restore(self, moment: Moment) -> tuple[Observation, dict[str, Any]]:
        """Go back to a moment of this episode; what its machine shows then, and info.

        Steps and time left are as they were. The record goes on, and says that it went back. A
        state that is gone or a lost machine ends the episode, with ``info["error"]`` and
        ``info["outcome"]``, as in `step`.

        Raises:
            RuntimeError: there is no episode, or it has ended (`EpisodeOver`).
            ValueError: the moment is another episode's.
        """
        step = self.episode.restore(moment)
        try:
            over = step.truncated
            self._score = 0.0 if over else self._progressed(step.info) or 0.0
        except MachineError:
            over = True
        if over:
            self._ended(step.info)
        return self._observe(step), step.info

    def fork(self, n: int) -> list[Self]:
        """``n`` environments that go on from this moment, each on a machine of its own.

        Each is in an episode of its own, whose record begins with the steps done so far. They and
        this one know nothing of each other; close each.

        Raises:
            RuntimeError: there is no episode, or it has ended (`EpisodeOver`).
            ValueError, TypeError: ``n`` is no number from 1 on.
            MachineError: the machine could not be saved, or a copy did not start; then none stays.
        """
        children = []
        for episode in self.episode.fork(n):
            child = copy.copy(self)
            # A generator of its own: resets of one would decide about those of the others.
            child.np_random = copy.deepcopy(self.np_random)
            child.action_space = copy.deepcopy(self.action_space)
            child._episode = episode
            child._foresight = None  # its place is this one's
            child._copy, child.out = True, None
            children.append(child)
        return children

    def evaluate(self) -> Outcome:
        """Freeze, collect and grade now; afterwards only `reset` is valid."""
        outcome = self.episode.evaluate()
        self.episode.close()
        return outcome

    def render(self) -> Rgb | None:
        """The last screenshot, ``(height, width, 3)`` uint8, when asked for at the start."""
        if self.render_mode is None or self._frame is None:
            return None
        return self._frame.copy()

    def close(self) -> None:
        """End the machine, the one made ready, and the record; idempotent."""
        self._end_episode()
        if self._foresight is not None:
            self._foresight.forget(wait=True)

    def _end_episode(self) -> None:
        if self._episode is not None:
            self._episode.close()

    def _progressed(self, info: dict[str, Any]) -> float | None:
        """The score of now, where steps are paid for it; None if it cannot be told."""
        if self._reward_kind == "progress":
            try:
                return _score(self.episode.peek())
            except GradingError as error:
                # Half-written files are normal in the middle of an episode; the end decides.
                info["progress_error"] = str(error)
        return None

    def _ended(self, info: dict[str, Any]) -> Outcome:
        """Grade the episode that is over, give its machine back, and tell in ``info``."""
        episode = self.episode
        outcome = episode.evaluate()
        info["outcome"] = outcome.to_dict()
        if outcome.kind == "unscored":
            info.setdefault("error", outcome.cause)
        episode.close()
        if episode.losses:
            info["losses"] = [asdict(loss) for loss in episode.losses]
        return outcome

    def _observe(self, step: Step) -> Observation:
        size = self.task.spec.screen
        self._frame = rgb = fitted(step.frame.rgb, size)
        if rgb is not step.frame.rgb:
            step.info["screen"] = step.frame.rgb.shape[1::-1]
        cursor = np.minimum(step.frame.cursor, np.array(size) - 1, dtype=np.int64)
        return {"screenshot": rgb.copy() if self._copy else read_only(rgb), "cursor": cursor}


def make(task: str | Path | Task, **options: Any) -> DesktopEnv:
    """A `DesktopEnv` with no wrapper between you and it; see there for the options."""
    return DesktopEnv(task, **options)


def _score(outcome: Outcome) -> float:
    if outcome.score is None:
        raise GradingError(outcome.cause or "unscored")
    return outcome.score
