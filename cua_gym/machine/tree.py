"""Removing a folder that a guest or an agent filled, however deep it is.

`shutil.rmtree` recurses, or keeps a handle open per level, and a path has a longest length; a
program that makes a folder in a folder in a folder knows no such limits.
"""

from __future__ import annotations

import os
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
        with os.scandir(at) as listing:
            entries = list(listing)
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)
                continue
            os.chmod(entry.path, 0o700)
            moved += 1
            waiting.append(folder / f"{prefix}{moved}")
            os.rename(entry.path, waiting[-1])
        if at != folder:
            at.rmdir()
    folder.rmdir()
