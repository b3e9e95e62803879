"""A Gymnasium vector as Stable-Baselines3's `VecEnv`."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium.vector import AutoresetMode
from stable_baselines3.common.vec_env import VecEnv


class Sb3VecEnv(VecEnv):
    """Any vector whose observations are one array and that resets in the same step.

    Args:
        envs: with ``AutoresetMode.SAME_STEP``, which is what Stable-Baselines3 expects.
    """

    def __init__(self, envs: gym.vector.VectorEnv) -> None:
        if envs.metadata["autoreset_mode"] != AutoresetMode.SAME_STEP:
            raise ValueError("Stable-Baselines3 wants autoreset_mode='SameStep'")
        self.envs = envs
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)

    def reset(self) -> Any:
        observations, _ = self.envs.reset(seed=self._seeds[0])
        self._reset_seeds()
        return observations

    def step_async(self, actions: Any) -> None:
        self._actions = actions

    def step_wait(self) -> Any:
        observations, rewards, terminated, truncated, more = self.envs.step(self._actions)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i, info in enumerate(infos):
            if truncated[i]:
                info |= {"TimeLimit.truncated": True, "terminal_observation": more["final_obs"][i]}
        return observations, rewards, terminated | truncated, infos

    def close(self) -> None:
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self.envs, attr_name)] * len(self._get_indices(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError("the slots share their settings")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        raise NotImplementedError("the slots are stepped together")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * len(self._get_indices(indices))
