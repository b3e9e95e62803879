"""Python source as a syntax tree, from any thread."""

from __future__ import annotations

import ast
import threading

__all__ = ["syntax_tree"]

_one_at_a_time = threading.Lock()


def syntax_tree(source: str | bytes, name: str = "<unknown>") -> ast.Module:
    """`ast.parse`, safe where several threads parse.

    CPython 3.11 and 3.12 count the depth of a tree in the making once for all threads: where a
    collection of garbage lets another one in, it fails with "AST constructor recursion depth
    mismatch" (https://github.com/pytest-dev/pytest/issues/10763).

    Args:
        name: of the file, for messages.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: as `ast.parse`.
    """
    with _one_at_a_time:
        return ast.parse(source, name)
