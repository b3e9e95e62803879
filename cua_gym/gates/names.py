"""The gates by name, in the order in which they are shown."""

from __future__ import annotations

__all__ = ["GATES", "SEEDS"]

GATES = ("lint", "consistency", "no-op", "give-up", "random", "oracle", "mutants", "leaks")
SEEDS = 5
"""On how many seeds an oracle has to succeed."""
