"""Consistency: whatever a checkpoint wants, an agent can know, or is declared to be found out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from cua_gym.gates.attempts import Attempt
from cua_gym.gates.given import Shown, found_at_start, given_texts
from cua_gym.gates.phrases import Said, row
from cua_gym.gates.record import Judgement
from cua_gym.gates.wanted import Wanted, wanted
from cua_gym.task import Task, Variation

__all__ = ["consistency"]

TELLING = 4
"""A value of fewer characters may stand somewhere by chance; that tells nothing."""


@dataclass(frozen=True, slots=True)
class _Missing:
    """A wanted value that stands nowhere."""

    checkpoint: str
    place: str
    value: str
    sources: tuple[str, ...]


def consistency(task: Task, attempts: Mapping[int, tuple[Attempt, Attempt]]) -> Judgement:
    """Every literal that a positive checkpoint wants stands somewhere, or is listed.

    Args:
        attempts: of the agents ``null`` and ``oracle``, by seed.
    """
    missing: dict[tuple[str, str], tuple[_Missing, list[int]]] = {}
    needed: set[str] = set()
    idle: set[str] = set(task.discovered)
    looked_at = 0
    for seed, (start, solved) in attempts.items():
        variation = task.variation(seed)
        known = _Known(variation, start.evidence, solved)
        for want in wanted(variation):
            looked_at += 1
            for fault in known.missing(want):
                listed = {*fault.sources, fault.checkpoint} & set(task.discovered)
                needed |= listed
                if not listed:
                    key = fault.checkpoint, fault.place
                    missing.setdefault(key, (fault, []))[1].append(seed)
            if _tells_nothing(want):
                idle -= {*want.sources, want.checkpoint}
        # A tempting mistake need not be known, but it may be explained.
        for want in wanted(variation, tempting=True):
            if _tells_nothing(want) or any(known.missing(want)):
                idle -= {*want.sources, want.checkpoint}
    faults = [_said(fault, seeds) for fault, seeds in missing.values()]
    faults += [
        f"[discovered] lists {name!r}, but whatever is wanted there is given; remove it"
        for name in sorted(idle - needed)
    ]
    well = f"{looked_at // max(1, len(attempts))} wanted values, each given or listed"
    return Judgement.of(faults, well, list(attempts))


class _Known:
    """What can be known of one variation."""

    def __init__(self, variation: Variation, start: Path, solved: Attempt) -> None:
        self._inputs = set(variation.inputs.values())
        self._given = Said([*given_texts(variation), *found_at_start(start)])
        self._shown = Shown(solved)

    def missing(self, want: Wanted) -> Iterator[_Missing]:
        """What of it cannot be known."""
        if any(map(self._has, want.either)):
            return
        parts = [part for part in want.parts if len(want.parts) > 1 and not self._has(part[0])]
        if parts:
            for text, source in parts:
                yield _Missing(want.checkpoint, want.place, text, (source,) if source else ())
        elif len(want.parts) < 2:
            value = want.either[0]
            shown = f"{len(value)} bytes" if isinstance(value, bytes) else str(value)
            yield _Missing(want.checkpoint, want.place, shown, want.sources)

    def _has(self, value: str | int | float | bytes) -> bool:
        if isinstance(value, bytes):
            return value in self._inputs or self._has_text(value)
        return self._given.has(value) or self._shown.has(value)

    def _has_text(self, data: bytes) -> bool:
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return False
        return self._given.has(text)


def _tells_nothing(want: Wanted) -> bool:
    """Whether its being given proves nothing: it is put together of several, or very short."""
    texts = [str(v) for v in want.either if not isinstance(v, bytes)]
    arranged = len(want.parts) > 1 or (bool(want.sources) and not want.place.isidentifier())
    return arranged or any(
        "\n" in text.strip() or len(row(text).replace(" ", "")) < TELLING for text in texts
    )


def _said(fault: _Missing, seeds: list[int]) -> str:
    where = ", ".join(fault.sources) or fault.checkpoint
    value = fault.value if len(fault.value) <= 200 else f"{fault.value[:200]}..."
    return (
        f"checkpoint {fault.checkpoint}: {fault.place} wants {value!r} "
        f"(seed {', '.join(map(str, seeds))}), which stands neither in the instruction nor in the "
        "inputs, the setup or the start state, and which the oracle was not shown; say it, or list "
        f'"{where}" under [discovered] in hidden/checkpoints.toml and how one finds it'
    )
