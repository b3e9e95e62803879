"""``root_owners.py FOLDER FIRST``: count the owners of all below FOLDER from FIRST on.

A program of its own, since only a contained root may do it (`cua_gym.image.rootfs`). Set-id bits
go; a folder that everybody may write to gets its sticky bit, which debugfs does not restore.
"""

from __future__ import annotations

import os
import stat
import sys

__all__ = ["shift"]


def shift(path: str, first: int) -> None:
    """Give one entry its owner and mode."""
    status = os.lstat(path)
    os.lchown(path, status.st_uid + first, status.st_gid + first)
    if stat.S_ISLNK(status.st_mode):
        return
    mode = stat.S_IMODE(status.st_mode) & 0o777
    if stat.S_ISDIR(status.st_mode) and mode & stat.S_IWOTH:
        mode |= stat.S_ISVTX
    os.chmod(path, mode)  # noqa: PTH101 - run without the package, on 40,000 files


def main() -> None:
    """All of it, the folder itself last."""
    folder, first = sys.argv[1], int(sys.argv[2])
    for where, folders, files in os.walk(folder):
        for name in (*folders, *files):
            shift(f"{where}/{name}", first)
    shift(folder, first)


if __name__ == "__main__":
    main()
