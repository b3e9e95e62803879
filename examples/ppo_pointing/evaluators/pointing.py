"""What point_at.py wrote down."""

from __future__ import annotations

from cua_gym.grading.check import Item, Verdict, check


@check
def share_hit(item: Item, *, at_least: int) -> Verdict:
    """The share of the targets that were hit; of ``at_least`` that many, so few do not suffice."""
    lines = item.text().splitlines()
    hits = lines.count("hit")
    of = max(len(lines), at_least)
    return Verdict(hits / of, "targets hit", seen=hits, wanted=of)
