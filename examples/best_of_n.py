"""Best of n: play to a step once, fork there, let each copy go on in its own way, take the best.

    python examples/best_of_n.py --n 4 --at 1

The policy is a stand-in for a model: it looks at the log, and then overlooks now and then that the
request must have been answered. What came before the fork is paid for once.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import cua_gym
from cua_gym import Action, DesktopEnv, Key, Shell, Submit, Type

TASK = "slowest-request"

Turn = tuple[Action, Mapping[str, Any]]
"""An action and the info after it."""
Policy = Callable[[str, Sequence[Turn], Any, random.Random], Action]
"""Instruction, turns so far, the newest observation, and what to draw from: the next action."""


@dataclass(frozen=True, slots=True)
class Branch:
    """One continuation and what it came to; the score is None if it could not be graded."""

    score: float | None
    turns: list[Turn]
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
    instruction, turns = info["instruction"], list[Turn]()
    rng = random.Random(seed)
    while len(turns) < at:
        action = policy(instruction, turns, observation, rng)
        observation, _, terminated, truncated, info = env.step(action)
        turns.append((action, info))
        tell(f"step {len(turns)}: {action}")
        if terminated or truncated:
            cause = info.get("error", "it ended by itself; fork before")
            raise RuntimeError(f"the attempt was over at step {len(turns)}: {cause}")

    def go_on(number: int, child: DesktopEnv) -> Branch:
        own, seen, over = list(turns), observation, False
        draws = random.Random(f"{seed} {number}")
        try:
            while not over:
                action = policy(instruction, own, seen, draws)
                seen, _, terminated, truncated, info = child.step(action)
                own.append((action, info))
                over = terminated or truncated
            score = info["outcome"]["score"]
            tell(f"branch {number}: {score} after {len(own)} steps")
            return Branch(score, own, child.episode.folder.path)
        finally:
            child.close()

    tell(f"forking into {n}")
    children = env.fork(n)
    with ThreadPoolExecutor(n) as pool:
        branches = list(pool.map(go_on, range(n), children))
    return sorted(branches, key=lambda b: -1.0 if b.score is None else b.score, reverse=True)


def hasty_reader(
    _: str, turns: Sequence[Turn], __: Any, rng: random.Random, haste: float = 0.6
) -> Action:
    """Looks for the slowest requests, and reports one of them."""
    look = (
        "cd ~/server; awk '{print $6 + 0, $5, $4}' access.log | sort -n | tail -n 2; cat report.txt"
    )
    if not turns:
        return Shell(look)
    answered, failed, *report = turns[0][1]["shell"]["stdout"].splitlines()
    duration, request, _ = (failed if rng.random() < haste else answered).split()
    text = "".join(f"{line}\n" for line in report).replace("ID", request).replace("MS", duration)
    rest: list[Action] = [
        Key("ctrl+a"),
        Type(text),
        Key("ctrl+s"),
        Shell("until grep 'Duration: [0-9]' ~/server/report.txt; do sleep 0.3; done"),
        Submit(),
    ]
    return rest[len(turns) - 1]


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=4, help="branches (4)")
    parser.add_argument("--at", type=int, default=1, help="the step to fork at (1)")
    parser.add_argument("--seed", type=int, default=0, help="of task and policy (0)")
    parser.add_argument("--haste", type=float, default=0.6, help="chance to overlook it (0.6)")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="of the records (runs)")
    args = parser.parse_args()

    def tell(text: str) -> None:
        print(text, file=sys.stderr)

    env = cua_gym.make(TASK, runs=args.runs, agent="hasty-reader", progress=tell)
    try:
        policy = partial(hasty_reader, haste=args.haste)
        branches = best_of_n(env, policy, n=args.n, at=args.at, seed=args.seed, tell=tell)
    finally:
        env.close()
    print("score  steps  record")
    for branch in branches:
        score = "  -  " if branch.score is None else f"{branch.score:5.2f}"
        print(f"{score}  {len(branch.turns):5}  {branch.record}")


if __name__ == "__main__":
    main()
