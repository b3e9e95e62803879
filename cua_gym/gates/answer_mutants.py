"""Mutants of what the agent said: its answer, and how it ended.

Claims of success over untouched work are worth nothing, and neither is a right answer where work
was asked for too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cua_gym.gates import formats
from cua_gym.gates.mutant import Change, Mutant, breaks, keeps, worthless
from cua_gym.gates.variants import altered, spread
from cua_gym.grading.checkpoints import Checkpoint
from cua_gym.grading.items import Evidence

__all__ = ["CLAIMS", "SAID", "answer_mutants"]

CLAIMS = {
    "done": "done",
    "success": "success",
    "sentence": "Task completed successfully.",
    "yes": "yes",
    "number": "1.0",
    "json": '{"status": "success", "score": 1.0}',
}
"""What an agent says that hopes to be believed, by a word for the mutant's name."""
SAID = ("answer", "submission")
_ENDS = ("submit", "limit", "give_up")


def answer_mutants(
    untouched: Mapping[str, Change], solved: Evidence, positive: Sequence[Checkpoint]
) -> Iterator[Mutant]:
    """Mutants of answer and submission.

    Args:
        untouched: all else that the oracle changed, as it was.
        solved: evidence of the oracle.
        positive: the task's checkpoints of positive weight.
    """
    names = {name for point in positive for name in point.evidence}
    item = solved["answer"]
    answer = item.bytes().decode("utf-8", "replace") if item.present else None
    for word, claim in CLAIMS.items():
        if answer is None or claim.strip(".") != answer.strip().strip("."):
            yield worthless(f"claimed:untouched:{word}", answer=claim, **untouched)
            if "answer" in names:
                yield breaks(f"claimed:solved:{word}", answer=claim)
    if "answer" in names and answer is not None:
        if untouched and names - {*SAID}:
            yield breaks("answered:untouched", **untouched)
        yield breaks("absent:answer", answer=None)
        for how, wrong in _wrong_answers(answer):
            yield breaks(f"altered:answer:{how}", answer=wrong)
        if not answer.endswith("\n"):
            yield keeps("final-newline:answer", answer=f"{answer}\n")
    told: dict[str, Any] = json.loads(solved["submission"].bytes())
    if "submission" in names:
        for kind in _ENDS:
            if kind != told["kind"]:
                yield breaks(f"ended:{kind}", submission=_ended(told, kind))
    elif "answer" not in names and told["kind"] == "submit":
        yield keeps("ended:limit", submission=_ended(told, "limit"), answer=None)


def _ended(told: Mapping[str, Any], kind: str) -> bytes:
    reason = {"limit": "steps", "give_up": "it cannot be done"}.get(kind)
    return json.dumps({**told, "kind": kind, "answer": None, "reason": reason}, indent=1).encode()


def _wrong_answers(answer: str) -> Iterator[tuple[str, bytes | str]]:
    if "\n" not in answer.strip() and not answer.strip().startswith(("{", "[")):
        yield from altered(answer)
        return
    broken, _ = formats.variants("answer.txt", None, answer.encode())
    for variant in spread(broken):
        yield f"{variant.what}-{variant.where}", variant.make()
