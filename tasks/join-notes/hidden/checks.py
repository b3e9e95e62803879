"""The notes in a file, whatever stands between them."""

from __future__ import annotations

from cua_gym.grading.check import Item, Verdict, check, verdict


@check
def in_order(item: Item, *, notes: list[str]) -> Verdict:
    """Every note stands in the file with all its lines, once, and in this order.

    Other lines may stand between them; newlines may be CR LF. It refuses a note that is missing,
    cut, there twice, or in another place.
    """
    text = item.text("utf-8-sig").replace("\r\n", "\n")
    lines = f"\n{text}\n"
    places = [lines.find(f"\n{note}\n") for note in notes]
    twice = [note for note in notes if lines.count(f"\n{note}\n") > 1]
    found = [note.split("\n")[0] for note, place in zip(notes, places, strict=True) if place >= 0]
    same = -1 not in places and places == sorted(places) and not twice
    message = f"notes found: {found}; there twice: {len(twice)}"
    return verdict(same, message, seen=text, wanted="\n...\n".join(notes))
