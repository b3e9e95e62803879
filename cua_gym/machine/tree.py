"""Removing a folder that a guest or an agent filled, however deep it is.

`shutil.rmtree` recurses, or keeps a handle open per level, and a path has a longest length; a
program that makes a folder in a folder in a folder knows no such limits.
"""

from __future__ import annotations

import secrets
from pathlib import Path

__all__ = ["remove_tree"]


def remove_tree(folder: Path) -> None:
    """Remove a folder and all below it; links are removed, not followed.

    Folders below are first moved to the top, so no path grows and nothing recurses.

    Raises:
        OSError: it is absent, or something below is another account's.
    """
    prefix = f".{secrets.token_hex(8)}-"  # a name that nothing below has
    moved = 0
    waiting = [folder]
    while waiting:
        at = waiting.pop()
        for entry in list(at.iterdir()):
            if entry.is_symlink() or not entry.is_dir():
                entry.unlink()
                continue
            entry.chmod(0o700)
            moved += 1
            waiting.append(entry.rename(folder / f"{prefix}{moved}"))
        if at != folder:
            at.rmdir()
    folder.rmdir()
