"""The folder as it must be."""

from __future__ import annotations

from cua_gym.grading.check import Item, Verdict, check, verdict


@check
def whole_folder(item: Item, *, moved: str, new: str, other: str, topic: str) -> Verdict:
    """Exactly four files with their contents. Refuses copies, further files and edits."""
    wanted = {
        f"/home/user/Project/Archive/{moved}": f"Minutes of the meeting about {topic}.\n",
        "/home/user/Project/Archive/kept.txt": "Already here.\n",
        f"/home/user/Project/{new}": f"A first draft about {topic}.\n",
        f"/home/user/Project/{other}": f"Figures for {topic}.\n",
    }
    seen = item.files()
    others = [e.guest for e in item.entries if e.kind not in ("file", "dir")]
    same = not others and seen == {name: text.encode() for name, text in wanted.items()}
    return verdict(
        same, "all files below Project", seen=sorted([*seen, *others]), wanted=sorted(wanted)
    )
