"""What makes a task's answer drift: the live web, and words or code that mean "now"."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

__all__ = ["drifting_code", "drifting_text"]

_ADDRESS = re.compile(
    r"\b(?:https?|ftp|wss?)://(?P<url>[^\s/:\"'<>)\]]+)"
    # Without a scheme: not behind @ (mail) or / (a path), and no longer name (org.gnome.Shell).
    r"|(?<![@\w./:-])(?P<bare>www(?:\.[\w-]+)+|(?:[\w-]+\.)+(?:com|org|net|edu|gov)(?!\.?[\w-])"
    r"|(?:[\w-]+\.)+(?:io|ai|dev|info|eu|uk|de|fr|nl|jp|cn|ch|it|es)(?=/))",
    re.IGNORECASE,
)
_INSIDE = re.compile(
    r"localhost|127\.\d+\.\d+\.\d+|\[::1\]?|[\w.-]+\.(?:test|example|invalid|localhost|internal)"
    r"|(?:www\.)?example\.(?:com|org|net)|[\w.-]+\.example\.(?:com|org|net)|10\.0\.2\.\d+",
    re.IGNORECASE,
)
_NOW = re.compile(
    r"\b(?:today(?:'s)?|tomorrow|yesterday|tonight|(?:right|as of|until) now|latest|most recent"
    r"|current (?:date|time|year|quarter|month|week|weekend|day|hour)"
    r"|(?:this|next|last|past|coming) (?:week|month|quarter|year|weekend|morning|afternoon|evening"
    r"|night)|(?:hours?|days?|weeks?|months?|years?) ago)\b",
    re.IGNORECASE,
)
_FREE = re.compile(
    r"random\.(?!Random\b)\w+|numpy\.random\.[a-z]\w*(?<!default_rng)|secrets\.\w+|platform\.\w+"
    r"|time\.(?:time|monotonic|perf_counter|process_time|localtime|gmtime|strftime|ctime)(?:_ns)?"
    r"|datetime\.(?:datetime|date)\.(?:now|today|utcnow)|uuid\.(?:uuid[14]|getnode)"
    r"|os\.(?:environb?|get\w+|urandom|uname|cpu_count)|socket\.gethostname|hash|id"
)
"""What no seed decides, by its full name; ``hash`` and ``id`` differ from process to process."""
_ORDERED = ("list", "tuple", "enumerate", "iter", "choice", "choices", "sample", "join")
"""What is called with a set and makes something of its order."""


def drifting_text(text: str, date_pinned: bool) -> Iterator[str]:
    """Faults of a text that the agent or the setup is given."""
    for match in _ADDRESS.finditer(text):
        address = match[0].rstrip(".,;")
        if not _INSIDE.fullmatch((match["url"] or match["bare"]).rstrip(".,;")):
            yield (
                f"{address!r} is on the live web, which changes; serve a copy inside the machine "
                "(localhost or a .test name)"
            )
    if not date_pinned:
        for match in _NOW.finditer(text):
            yield f"{match[0]!r} depends on the date; write the date, or set pinned_date"


def drifting_code(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Faults of ``vary.py`` or ``answers.py``, with their lines: values that no seed decides."""
    imported = dict(_imports(tree))
    for node in ast.walk(tree):
        name = _full_name(node, imported) or _called(node)
        if isinstance(node, ast.expr) and _FREE.fullmatch(name):
            yield node.lineno, f"{name} differs from run to run; use the rng that vary is given"
        for thing in _in_order(node):
            if isinstance(thing, ast.Set | ast.SetComp) or _called(thing) in ("set", "frozenset"):
                yield thing.lineno, "the order of a set differs from run to run; use sorted(...)"


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Each name that an import binds, and its full name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.split(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (top, top)


def _full_name(node: ast.AST, imported: Mapping[str, str]) -> str:
    """``datetime.date.today`` for ``d.today`` after ``from datetime import date as d``; else ""."""
    if isinstance(node, ast.Name):
        return imported.get(node.id, "")
    if isinstance(node, ast.Attribute) and (owner := _full_name(node.value, imported)):
        return f"{owner}.{node.attr}"
    return ""


def _called(node: ast.AST) -> str:
    """The function's name in a call of a plain name; else ""."""
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def _in_order(node: ast.AST) -> Iterator[ast.expr]:
    """What is taken item by item."""
    if isinstance(node, ast.For | ast.comprehension):
        yield node.iter
    elif isinstance(node, ast.Call):
        name = getattr(node.func, "attr", None) or getattr(node.func, "id", None)
        if name in _ORDERED:
            yield from node.args
