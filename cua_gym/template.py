"""``{name}`` placeholders in a task's texts: one small language for all of its files.

A name is letters, digits and ``_ . - /``. ``{{`` and ``}}`` are braces. Nothing is evaluated:
a placeholder is looked up, or it is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["TemplateError", "fill", "fill_text", "names"]

_TOKEN = re.compile(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_./-]*)\}|[{}]")


class TemplateError(ValueError):
    """A placeholder that cannot be filled; the message says which and what to write."""


def fill(value: Any, values: Mapping[str, Any]) -> Any:
    """Fill the placeholders in all strings of ``value``, also in lists, and dicts with their keys.

    A string that is one placeholder and nothing else becomes the value itself, its type kept:
    ``"{params.total}"`` -> ``41.5``.

    Raises:
        TemplateError: an unknown name, a stray brace, or a value that text cannot hold.
    """
    if isinstance(value, str):
        match = _TOKEN.fullmatch(value)
        if match is not None and match[1] is not None:
            return _lookup(match[1], values)
        return fill_text(value, values)
    if isinstance(value, list):
        return [fill(item, values) for item in value]
    if isinstance(value, dict):
        filled = {fill_text(key, values): fill(item, values) for key, item in value.items()}
        if len(filled) < len(value):
            raise TemplateError(f"two of the keys {', '.join(value)} are the same once filled")
        return filled
    return value


def fill_text(text: str, values: Mapping[str, Any]) -> str:
    """Fill the placeholders of a text; only text and whole or decimal numbers may stand in it.

    Raises:
        TemplateError: as for `fill`.
    """

    def replace(match: re.Match[str]) -> str:
        token, name = match[0], match[1]
        if name is None:
            if token in ("{{", "}}"):
                return token[0]
            raise TemplateError(f"a lone {token!r} in {text!r:.80}; write {token * 2} for a brace")
        value = _lookup(name, values)
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise TemplateError(
                f"{{{name}}} is {value!r:.80}; inside text only text and numbers fit"
            )
        return str(value)

    return _TOKEN.sub(replace, text)


def names(value: Any) -> Iterator[str]:
    """Every placeholder name in the strings of ``value``."""
    if isinstance(value, str):
        yield from (m[1] for m in _TOKEN.finditer(value) if m[1] is not None)
    elif isinstance(value, list):
        for item in value:
            yield from names(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from names(key)
            yield from names(item)


def _lookup(name: str, values: Mapping[str, Any]) -> Any:
    if name not in values:
        known = ", ".join(sorted(values)) or "none"
        raise TemplateError(
            f"unknown placeholder {{{name}}}; known: {known} (write {{{{ for a brace)"
        )
    return values[name]
