"""Half a repair, and the right repair of the wrong cause."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cua_gym.gates.mutant import Mutant, breaks, keeps
from cua_gym.grading.items import Evidence


def mutants(params: Mapping[str, Any], start: Evidence, solved: Evidence) -> Iterator[Mutant]:
    """What looks like a repair, and is none."""
    answer = f"{params['cause']} {params['home']}/{params['wrong']}"
    yield keeps("a newline after the answer", answer=f"{answer}\n")
    yield breaks("the kind alone", answer=params["cause"])
    yield breaks("the file without its kind", answer=f"{params['home']}/{params['wrong']}")
    yield breaks("the unit that complains", answer=f"port {params['home']}/etc/{params['front']}")
    yield breaks("the cause named and left", answer_now=start["answer_now"])
    yield breaks("prices written by hand", answer_later=start["answer_later"])
    yield breaks(
        "an older delivery",
        answer_now=solved["answer_now"].bytes().replace(b'"price": ', b'"price": 1'),
    )
    yield breaks(
        "a unit of the user's own", units=solved["units"].bytes().replace(b"/etc/", b"/run/")
    )
