"""Best of n: play to a step once, fork there, let each copy go on in its own way, take the best.

    python examples/best_of_n.py --n 4 --at 2

The policy is a stand-in for a model: it knows what to type, and its fingers slip now and then, each
time elsewhere. What came before the fork is paid for once.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import cua_gym
from cua_gym import Action, DesktopEnv, Key, Submit, Type, Wait

TASK = "write-many-scripts"

Policy = Callable[[str, Sequence[Action], Any, random.Random], Action]
"""Instruction, what was done so far, observation, and what to draw from: the next action."""


@dataclass(frozen=True, slots=True)
class Branch:
    """One continuation and what it came to; the score is None if it could not be graded."""

    score: float | None
    actions: list[Action]
    record: Path


def best_of_n(
    env: DesktopEnv,
    policy: Policy,
    *,
    n: int,
    at: int,
    seed: int = 0,
    tell: Callable[[str], None] = lambda _: None,
) -> list[Branch]:
    """The branches of one attempt, best first.

    Args:
        env: of a machine that can be forked.
        at: the step to fork at.
        seed: of the task's variation and of the policy.
        tell: told how far it is.
    """
    observation, info = env.reset(seed=seed)
    instruction, done = info["instruction"], list[Action]()
    rng = random.Random(seed)
    while len(done) < at:
        done.append(policy(instruction, done, observation, rng))
        observation, _, terminated, truncated, info = env.step(done[-1])
        tell(f"step {len(done)}: {done[-1]}")
        if terminated or truncated:
            cause = info.get("error", "it ended by itself; fork before")
            raise RuntimeError(f"the attempt was over at step {len(done)}: {cause}")

    def go_on(number: int, child: DesktopEnv) -> Branch:
        actions, seen, over = list(done), observation, False
        own = random.Random(f"{seed} {number}")
        try:
            while not over:
                actions.append(policy(instruction, actions, seen, own))
                seen, _, terminated, truncated, info = child.step(actions[-1])
                over = terminated or truncated
            score = info["outcome"]["score"]
            tell(f"branch {number}: {score} after {len(actions)} steps")
            return Branch(score, actions, child.episode.folder.path)
        finally:
            child.close()

    tell(f"forking into {n}")
    children = env.fork(n)
    with ThreadPoolExecutor(n) as pool:
        branches = list(pool.map(go_on, range(n), children))
    return sorted(branches, key=lambda b: -1.0 if b.score is None else b.score, reverse=True)


def typist(
    instruction: str, done: Sequence[Action], _: Any, rng: random.Random, slip: float = 0.3
) -> Action:
    """Types the note line by line and saves it; some lines have two characters swapped."""
    lines = instruction.split("\n\n")[1].split("\n")
    if len(done) < len(lines):
        line = lines[len(done)]
        if rng.random() < slip:
            i = rng.randrange(len(line) - 1)
            line = line[:i] + line[i + 1] + line[i] + line[i + 2 :]
        return Type(line + "\n" * (len(done) < len(lines) - 1))
    file = re.findall(r"Save it as (\S+)\.", instruction)[0]
    # An emulated desktop's dialogs take their time to open and to close.
    saving = [Key("ctrl+s"), Wait(3), Key("ctrl+a"), Type(file), Wait(3), Key("enter"), Wait(3)]
    return [*saving, Submit()][len(done) - len(lines)]


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=4, help="branches (4)")
    parser.add_argument("--at", type=int, default=2, help="the step to fork at (2)")
    parser.add_argument("--seed", type=int, default=0, help="of task and policy (0)")
    parser.add_argument("--slip", type=float, default=0.3, help="chance of a slip in a line (0.3)")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="of the records (runs)")
    args = parser.parse_args()

    def tell(text: str) -> None:
        print(text, file=sys.stderr)

    env = cua_gym.make(TASK, runs=args.runs, agent="typist", progress=tell)
    try:
        policy = partial(typist, slip=args.slip)
        branches = best_of_n(env, policy, n=args.n, at=args.at, seed=args.seed, tell=tell)
    finally:
        env.close()
    print("score  steps  record")
    for branch in branches:
        score = "  -  " if branch.score is None else f"{branch.score:5.2f}"
        print(f"{score}  {len(branch.actions):5}  {branch.record}")


if __name__ == "__main__":
    main()
