"""`DesktopVectorEnv`: many computers, one call.

Each slot has a `DesktopEnv` and a thread of its own. The work is done in the machines' processes
and in copies of pictures, which let other threads run, so nothing is pickled and nobody forks.
"""

from __future__ import annotations

import datetime
import operator
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any, TypeVar

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from cua_gym.actions import Action
from cua_gym.env import DesktopEnv, Observation
from cua_gym.errors import MachineError
from cua_gym.forked import finalizer
from cua_gym.machine.admission import need_room
from cua_gym.machine.base import Rgb, read_only
from cua_gym.machine.pool import WarmPool, cores
from cua_gym.machine.start import machine_mb, start_machine
from cua_gym.record.layout import run_name
from cua_gym.spaces import ActionSpace
from cua_gym.task import Task

__all__ = ["DesktopVectorEnv"]

T = TypeVar("T")
Result = tuple[Observation, float, bool, bool, dict[str, Any]]


class DesktopVectorEnv(gym.vector.VectorEnv[Observation, Sequence[Action], npt.NDArray[Any]]):
    """Many whole computers, stepped together.

    Observations are those of `DesktopEnv`, stacked: ``{"screenshot": (n, height, width, 3) uint8,
    "cursor": (n, 2) int64}``. Actions are a sequence of n actions. Rewards are float64; infos have
    an array and a mask for each key, as Gymnasium's vectors do, and dictionaries (``outcome``,
    ``shell``) whole.

    A fault stays in its slot: a machine that was lost truncates that slot, with
    ``info["error"][i]``, and comes back at the slot's next reset. So does one that cannot be
    reset: its picture is black, and its next step is truncated.

    Args:
        num_envs: how many.
        task: one task for all, or one for each slot; all of one screen size.
        autoreset_mode: ``Disabled`` (whoever steps resets what has ended, by
            ``reset(options={"reset_mask": bool array})``), ``NextStep``, or ``SameStep`` (then
            ``info["final_obs"]`` and ``info["final_info"]`` are those of the end).
        copy: fresh arrays each time; False reuses one batch, which the next call overwrites and
            nobody else writes to. A step then copies only what has changed in each picture.
        run: name of the run that all are recorded in; the date and time when None.
        warm: machines made ready for the next resets, beyond the ``num_envs`` in use and as far as
            memory goes; each slot has one at most. None is one for each slot, but not more than
            there are cores; 0 is none.
        options: as for `DesktopEnv`.

    Raises:
        TaskError: a task is unknown or invalid; nothing was started.
        OutOfMemory: the host's memory does not hold so many machines; nothing was started.
        ValueError, TypeError: an option cannot be what it is.
    """

    def __init__(
        self,
        num_envs: int,
        task: str | Path | Task | Sequence[str | Path | Task],
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.DISABLED,
        copy: bool = True,
        run: str | None = None,
        warm: int | None = None,
        **options: Any,
    ) -> None:
        tasks = [task] * num_envs if isinstance(task, str | Path | Task) else list(task)
        if num_envs < 1 or len(tasks) != num_envs:
            raise ValueError(f"{len(tasks)} tasks for {num_envs} environments")
        run = run or run_name(datetime.datetime.now(datetime.UTC))
        size = min(num_envs, cores()) if warm is None else warm
        self._pool = WarmPool(size, start=options.get("start", start_machine)) if size else None
        options |= {"run": run, "warm": self._pool or 0, "copy": False}
        envs = [DesktopEnv(one, **options) for one in tasks]
        if len(screens := {env.task.spec.screen for env in envs}) > 1:
            raise ValueError(f"the tasks have screens of several sizes: {sorted(screens)}")
        need_room([machine_mb(env.task.spec) for env in envs])
        self.num_envs = num_envs
        self.envs = envs
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**DesktopEnv.metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = envs[0].render_mode
        policies = {env.task.tool_policy for env in envs}
        self.single_observation_space = envs[0].observation_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.single_action_space = ActionSpace(
            screens.pop(), policies.pop() if len(policies) == 1 else "both"
        )
        self.action_space = gym.spaces.Tuple([env.action_space for env in envs])
        self._newest = self._empty()
        self._copy = copy
        self._slots = [_Slot(env, _row(self._newest, i)) for i, env in enumerate(envs)]
        # For whoever forgets to close: machines end with this object.
        finalizer(self, _forget, self._pool, self._slots)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Observation, dict[str, Any]]:
        """Start new episodes, all at once.

        Args:
            seed: of slot 0, the next one of slot 1, and so on; or one for each slot, None to have
                it drawn. It chooses the task's variation.
            options: ``"reset_mask"``, a bool array: reset only these slots, the others' pictures
                stay; the rest as for `DesktopEnv.reset`.

        Raises:
            TaskError, ImageError: a setup does not work, an image is not built.
            ValueError, TypeError: an option, a mask or a seed that cannot be; nothing was reset.
        """
        options = dict(options or {})
        chosen = self._chosen(options.pop("reset_mask", None))
        if seed is None or isinstance(seed, int | np.integer):
            seeds = [None if seed is None else int(seed) + i for i in range(self.num_envs)]
        else:
            seeds = [None if one is None else operator.index(one) for one in seed]
        if len(seeds) != self.num_envs:
            raise ValueError(f"{len(seeds)} seeds for {self.num_envs} environments")
        if any(one is not None and one < 0 for one in seeds):
            raise ValueError(f"seeds are numbers from 0 on, not {seeds}")
        batch = self._batch()

        def reset(i: int, slot: _Slot) -> dict[str, Any] | None:
            info = slot.reset(seeds[i], options) if i in chosen else None
            slot.put(_row(batch, i))
            return info

        infos = self._each(reset)
        return self._shown(batch), self._merged(
            {i: info for i, info in infos.items() if info is not None}
        )

    def step(
        self, actions: Sequence[Action]
    ) -> tuple[
        Observation,
        npt.NDArray[np.float64],
        npt.NDArray[np.bool_],
        npt.NDArray[np.bool_],
        dict[str, Any],
    ]:
        """Do one action in each slot, and look.

        Raises:
            ValueError: not one action for each slot.
            RuntimeError: a slot was never reset or, without autoreset, not since its episode's
                end; nothing was done in any.
        """
        if len(actions) != self.num_envs:
            raise ValueError(f"{len(actions)} actions for {self.num_envs} environments")
        autoreset = self.autoreset_mode is not AutoresetMode.DISABLED
        over = [i for i, s in enumerate(self._slots) if s.over and not (autoreset and s.begun)]
        if over:
            raise RuntimeError(
                f"the slots {over} are in no episode; reset them: "
                "reset(options={'reset_mask': terminations | truncations})"
            )
        batch = self._batch()

        def step(i: int, slot: _Slot) -> tuple[float, bool, bool, dict[str, Any]]:
            result = slot.step(actions[i], self.autoreset_mode)
            slot.put(_row(batch, i))
            return result

        results = self._each(step)
        return (
            self._shown(batch),
            np.array([r[0] for r in results.values()], np.float64),
            np.array([r[1] for r in results.values()], np.bool_),
            np.array([r[2] for r in results.values()], np.bool_),
            self._merged({i: r[3] for i, r in results.items()}),
        )

    def render(self) -> tuple[Rgb, ...] | None:
        """The last screenshot of each slot, when asked for at the start."""
        frames = [frame for env in self.envs if (frame := env.render()) is not None]
        return tuple(frames) if len(frames) == self.num_envs else None

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of each `DesktopEnv`, or get an attribute of each; all at once."""

        def called(i: int, slot: _Slot) -> Any:
            attribute = getattr(slot.env, name)
            return attribute(*args, **kwargs) if callable(attribute) else attribute

        return tuple(self._each(called).values())

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """An attribute of each `DesktopEnv`."""
        return tuple(getattr(env, name) for env in self.envs)

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of each: one value for all, or a list or tuple with one for each."""
        if not isinstance(values, list | tuple):
            values = [values] * self.num_envs
        if len(values) != self.num_envs:
            raise ValueError(f"{len(values)} values for {self.num_envs} environments")
        for env, value in zip(self.envs, values, strict=True):
            setattr(env, name, value)

    def close_extras(self, **_: Any) -> None:
        """End all machines and records, also those of a step under way."""
        self.closed = True
        for slot in self._slots:
            slot.refuse()
        if self._pool is not None:
            self._pool.close()
        closing = [threading.Thread(target=env.close) for env in self.envs]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join()
        for slot in self._slots:
            slot.stop()

    def _chosen(self, mask: Any) -> list[int]:
        if mask is None:
            return list(range(self.num_envs))
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            raise TypeError(f"reset_mask is a numpy array of bool, not {mask!r}")
        if mask.shape != (self.num_envs,) or not mask.any():
            raise ValueError(f"reset_mask has {self.num_envs} values, one of them true: {mask}")
        return [int(i) for i in np.flatnonzero(mask)]

    def _each(self, work: Callable[[int, _Slot], T]) -> dict[int, T]:
        """Do it in the slots' threads; when all are done, the first one's error."""
        if self.closed:
            raise _closed()
        under_way = {i: slot.submit(work, i, slot) for i, slot in enumerate(self._slots)}
        wait(under_way.values())  # woken once, by the last of them
        results: dict[int, T] = {}
        failure: BaseException | None = None
        for i, future in under_way.items():
            try:
                results[i] = future.result()
            except Exception as error:  # the others are let finish; then it is raised
                error.add_note(f"in slot {i} of {self!r}")
                failure = failure or error
        if failure is not None:
            raise failure
        return results

    def _batch(self) -> Observation:
        return self._empty() if self._copy else self._newest

    def _shown(self, batch: Observation) -> Observation:
        return batch if self._copy else {name: read_only(value) for name, value in batch.items()}

    def _empty(self) -> Observation:
        return {
            name: np.zeros(space.shape, space.dtype)
            for name, space in self.observation_space.spaces.items()  # type: ignore[attr-defined]
        }

    def _merged(self, infos: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
        """As Gymnasium's vectors do: an array for each key, and a mask ``_key`` of who has it."""
        merged: dict[str, Any] = {}
        for key in dict.fromkeys(key for info in infos.values() for key in info):
            values = {i: info[key] for i, info in infos.items() if key in info}
            mask = np.zeros(self.num_envs, np.bool_)
            mask[list(values)] = True
            if key == "final_info":
                merged[key] = self._merged(values)
            else:
                kinds = {type(value) for value in values.values()}
                dtype = kinds.pop() if kinds in ({int}, {float}, {bool}) else object
                merged[key] = np.zeros(self.num_envs, dtype)
                if dtype is object:
                    merged[key].fill(None)
                for i, value in values.items():
                    merged[key][i] = value
            merged[f"_{key}"] = mask
        return merged


def _forget(pool: WarmPool | None, slots: Sequence[_Slot]) -> None:
    for slot in slots:
        slot.stop()
    if pool is not None:
        pool.close()


def _row(batch: Observation, i: int) -> Observation:
    return {name: value[i] for name, value in batch.items()}


Work = queue.SimpleQueue[Callable[[], None] | None]


def _serve(work: Work, env: DesktopEnv) -> None:
    """A slot's thread. It knows nothing of the vector, which may be forgotten meanwhile."""
    while (job := work.get()) is not None:
        job()
        del job  # it knows the vector
    env.close()  # also what a reset made that was under way when all the rest was closed


def _closed() -> gym.error.ClosedEnvironmentError:
    return gym.error.ClosedEnvironmentError("this vector is closed; make another one")


class _Slot:
    """One environment, the thread that works on it, and how far its episode is.

    Args:
        newest: arrays that hold its newest observation from now on.

    Attributes:
        begun: whether it was ever reset.
        lost: why the last reset did not give it a machine.
    """

    def __init__(self, env: DesktopEnv, newest: Observation) -> None:
        self.env = env
        self.begun = False
        self._newest = newest
        self.lost: str | None = None
        self._over = True
        self._refuses = False
        self._lock = threading.Lock()
        self._work: Work = queue.SimpleQueue()
        # A daemon: a program that ends by an error does not wait for a step of minutes.
        threading.Thread(target=_serve, args=(self._work, env), name="slot", daemon=True).start()

    @property
    def over(self) -> bool:
        """Whether its episode has ended, also by somebody else's doing, or has not begun."""
        return self._over or (self.lost is None and self.env.episode.done)

    def submit(self, work: Callable[..., T], *arguments: Any) -> Future[T]:
        """Have it done in the slot's thread, after what was submitted before."""
        future: Future[T] = Future()

        def do() -> None:
            try:
                future.set_result(work(*arguments))
            except BaseException as error:
                future.set_exception(error)

        with self._lock:
            if self._refuses:
                raise _closed()
            self._work.put(do)
        return future

    def refuse(self) -> None:
        """Take no more work, and begin no episode."""
        with self._lock:
            self._refuses = True

    def stop(self) -> None:
        """Close the environment and end the thread, after what was submitted before. Idempotent."""
        self.refuse()
        self._work.put(None)

    def reset(self, seed: int | None, options: dict[str, Any]) -> dict[str, Any]:
        """A new episode; info."""
        if self._refuses:
            raise _closed()
        self._over = True
        # A new array for each episode: nothing is known of what is in it.
        self.env.out = self._newest["screenshot"][:]
        try:
            observation, info = self.env.reset(seed=seed, options=options)
        except (MachineError, OSError) as error:
            self.lost = f"{type(error).__name__}: {error}"
            for value in self._newest.values():
                value[:] = 0
            info = {"error": self.lost}
        else:
            self.lost = None
            _copy(observation, self._newest)
        self.begun, self._over = True, False
        return info

    def step(self, action: Action, mode: AutoresetMode) -> tuple[float, bool, bool, dict[str, Any]]:
        """Reward, terminated, truncated, info; with the resets of the mode."""
        if self.over:
            return 0.0, False, False, self.reset(None, {})
        if self.lost is not None:
            reward, terminated, truncated = 0.0, False, True
            info: dict[str, Any] = {"error": self.lost}
        else:
            observation, reward, terminated, truncated, info = self.env.step(action)
            _copy(observation, self._newest)
        self._over = terminated or truncated
        if self._over and mode is AutoresetMode.SAME_STEP and not self._refuses:
            ended = {name: value.copy() for name, value in self._newest.items()}
            final = {"final_obs": ended, "final_info": info}
            info = self.reset(None, {}) | final
        return reward, terminated, truncated, info

    def put(self, into: Observation) -> None:
        """Copy its newest observation into these arrays, unless they are its own."""
        _copy(self._newest, into)


def _copy(source: Observation, target: Observation) -> None:
    for name, value in target.items():
        if not np.may_share_memory(source[name], value):
            value[:] = source[name]
