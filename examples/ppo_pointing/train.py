"""Learn to click on a button from its picture: PPO on light desktops, in minutes.

    pip install -e ".[rl]"          # a CPU build of torch is enough
    python examples/ppo_pointing/train.py

Prints a line an update, writes the learning curve as numbers (curve.csv) and as a picture
(curve.svg), and compares with clicks at random, before, and with the policy's best guess, after.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from pointing import TASK, Pointing
from sb3 import Sb3VecEnv
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback

from cua_gym import DesktopVectorEnv


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--desktops", type=int, default=4, help="at once (4)")
    parser.add_argument("--minutes", type=float, default=8.0, help="of training (8)")
    parser.add_argument("--seed", type=int, default=0, help="of places and policy (0)")
    parser.add_argument("--backend", choices=["x11", "qemu"], default="x11", help="(x11)")
    parser.add_argument("--out", type=Path, default=Path(), help="folder of the curve (.)")
    parser.add_argument("--runs", type=Path, help="keep the attempts' records there")
    args = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        desktops = DesktopVectorEnv(
            args.desktops,
            TASK,
            backend=args.backend,
            autoreset_mode="SameStep",
            max_steps=2000,
            runs=args.runs or scratch,
            film_every=1 if args.runs else 0,
            agent="ppo",
        )
        envs = Pointing(desktops)
        try:
            train(envs, args.minutes, args.seed, args.out)
        finally:
            envs.close()


def train(envs: Pointing, minutes: float, seed: int, out: Path) -> None:
    """Random clicks, training, the learned policy."""
    vector = Sb3VecEnv(envs)
    model = PPO(
        "MlpPolicy",
        vector,
        n_steps=64,
        batch_size=128,
        learning_rate=1e-3,
        gamma=0.5,
        policy_kwargs={"net_arch": [256, 256]},
        seed=seed,
        device="cpu",
    )
    envs.action_space.seed(seed)
    print("random  ", play(vector, lambda _: envs.action_space.sample()), flush=True)
    curve = Curve(minutes)
    model.learn(1 << 62, callback=curve)
    curve.save(out)
    print("learned ", play(vector, lambda seen: model.predict(seen, deterministic=True)[0]))
    print("attempts as graded:", [score and round(score, 2) for score in envs.scores])


def play(vector: Sb3VecEnv, choose: Callable[[Any], Any], steps: int = 100) -> str:
    """How a way of clicking does, in words."""
    seen = vector.reset()
    hits = clicks = targets = 0.0
    for _ in range(steps):
        seen, rewards, dones, _ = vector.step(choose(seen))
        hits, targets, clicks = hits + rewards.sum(), targets + dones.sum(), clicks + len(dones)
    return f"{hits / targets:.1%} of {targets:.0f} targets hit; {hits / clicks:.1%} of the clicks"


class Curve(BaseCallback):
    """Counts what each rollout brought, and stops when the time is over."""

    def __init__(self, minutes: float) -> None:
        super().__init__()
        self._seconds = 60 * minutes
        self._counts = np.zeros(3)
        self._rows: list[tuple[float, ...]] = []

    def _on_training_start(self) -> None:
        self._began = time.monotonic()

    def _on_step(self) -> bool:
        rewards, dones = self.locals["rewards"], self.locals["dones"]
        self._counts += rewards.sum(), dones.sum(), len(dones)
        return time.monotonic() - self._began < self._seconds

    def _on_rollout_end(self) -> None:
        hits, targets, clicks = self._counts
        self._counts[:] = 0
        seconds = time.monotonic() - self._began
        self._rows.append((seconds, self.num_timesteps, hits / targets, hits / clicks))
        print(
            f"{seconds:5.0f} s  {self.num_timesteps:6} clicks  {hits / targets:6.1%} of the targets"
            f" hit  {hits / clicks:6.1%} of the clicks",
            flush=True,
        )

    def save(self, out: Path) -> None:
        """The curve as numbers and as a picture."""
        with (out / "curve.csv").open("w", newline="") as file:
            csv.writer(file).writerows(
                [("seconds", "clicks", "targets_hit", "clicks_that_hit"), *self._rows]
            )
        seconds, _, targets, clicks = np.array(self._rows).T
        figure = Figure(figsize=(7, 3.5), layout="constrained")
        axes = figure.add_subplot(xlabel="minutes", ylabel="share", ylim=(0, 1))
        axes.plot(seconds / 60, targets, label="targets hit, of three clicks each")
        axes.plot(seconds / 60, clicks, label="clicks that hit")
        axes.legend(loc="lower right")
        axes.grid(alpha=0.3)
        figure.savefig(out / "curve.svg")


if __name__ == "__main__":
    main()
