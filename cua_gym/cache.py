"""Where everything lies that can be made again: images, states, notes on machines that run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

__all__ = ["cache_root"]


def cache_root(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder: ``$XDG_CACHE_HOME/cua-gym``, else ``~/.cache/cua-gym``."""
    base = environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "cua-gym"
