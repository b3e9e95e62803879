"""How much of the asked files is there."""

from __future__ import annotations

from cua_gym.grading.check import Item, Verdict, check


@check
def unpacked(item: Item, *, root: str, expected: dict[str, str]) -> Verdict:
    """The share of the expected files, by path below ``root``, that have their texts.

    It refuses them in another place, and does not look at other files.
    """
    files = item.files()
    right = [k for k, text in expected.items() if files.get(f"{root}/{k}") == text.encode()]
    message = f"{len(right)} of {len(expected)} files"
    return Verdict(len(right) / len(expected), message, seen=sorted(files), wanted=sorted(expected))
