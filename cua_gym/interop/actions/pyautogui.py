"""Source text that calls pyautogui, OSWorld's other action space: as our actions, and back.

The text is parsed by `ast` and read, never executed. It may hold statements of two kinds only:
``import pyautogui`` / ``import time``, and calls of the functions in `calls.PARAMETERS` on
``pyautogui`` (``time`` for ``sleep``) whose arguments are literals.
"""

from __future__ import annotations

import ast
from typing import Any

from cua_gym import actions as a
from cua_gym.errors import ActionError
from cua_gym.interop.actions.calls import PARAMETERS, WORDS, Call, actions_of, calls_for
from cua_gym.interop.actions.scale import Point, Scale
from cua_gym.syntax import syntax_tree

__all__ = ["from_pyautogui", "to_pyautogui"]

_NAME = "pyautogui"
_MODULES = {"pyautogui", "time"}
_KNOWN = (*(f"pyautogui.{name}" for name in PARAMETERS), "time.sleep")


def from_pyautogui(code: str, *, cursor: Point, scale: Scale | None = None) -> tuple[a.Action, ...]:
    """The actions that a piece of source asks for, in order.

    Args:
        code: statements, or one of the words ``WAIT``, ``FAIL``, ``DONE`` alone.
        cursor: where the pointer is before the first, native pixels.
        scale: the picture's size and the screen's, where they differ.

    Returns:
        None (`ONLY_LOOK`) for imports alone and for ``moveTo()``.

    Raises:
        ActionError: not Python, or anything but a literal call of a known function: it names what
            was found and its line. Then nothing of the text is returned.
    """
    if not isinstance(code, str) or len(code) > a.MAX_TEXT:
        raise ActionError(f"{_NAME} source is text of at most {a.MAX_TEXT} characters")
    if (word := code.strip()) in WORDS:
        return (WORDS[word],)
    try:
        statements = syntax_tree(code).body
        calls = [_call(s) for s in statements if not _is_import(s)]
    except SyntaxError as error:
        raise ActionError(f"not Python, line {error.lineno or 1}: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        # NUL bytes, lone surrogates, numbers of thousands of digits; brackets of great depth.
        said = str(error) or type(error).__name__
        raise ActionError(f"not Python that can be read: {said:.200}") from None
    if not statements:
        raise ActionError(f"{_NAME} source without a statement does nothing")
    return actions_of(calls, cursor, scale)


def _is_import(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Import) and all(
        name.name in _MODULES and name.asname is None for name in statement.names
    )


def _call(statement: ast.stmt) -> Call:
    match statement:
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(module), name), args, keywords)):
            if f"{module}.{name}" not in _KNOWN:
                raise _refused(statement, f"known are {', '.join(_KNOWN)}")
            return name, _arguments(name, args, keywords)
        case _:
            raise _refused(statement, "only calls such as pyautogui.click(10, 20) are read")


def _arguments(name: str, args: list[ast.expr], keywords: list[ast.keyword]) -> dict[str, Any]:
    values = [_literal(arg) for arg in args]
    parameters = PARAMETERS[name]
    if name == "hotkey":
        # Its positional arguments are the keys, or one list of them.
        values = [values[0] if len(values) == 1 and isinstance(values[0], list) else values]
    if len(values) > len(parameters):
        raise ActionError(f"pyautogui.{name} takes at most {len(parameters)} arguments")
    found = dict(zip(parameters, values, strict=False))
    for keyword in keywords:
        if keyword.arg is None or keyword.arg in found:
            raise _refused(keyword.value, f"pyautogui.{name} takes each argument once, by name")
        found[keyword.arg] = _literal(keyword.value)
    return found


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        raise _refused(node, "only numbers, strings and lists of them are read") from None


def _refused(node: ast.stmt | ast.expr, why: str) -> ActionError:
    found = ast.unparse(node).partition("\n")[0]
    return ActionError(f"line {node.lineno}: found {found[:80]!r}; {why}")


def to_pyautogui(action: a.Action, *, scale: Scale | None = None) -> str:
    """Source that does ``action`` with pyautogui, a line a call.

    What it says comes back by `from_pyautogui` as it was, key names in canonical form, except that
    a drag is preceded by the move to where it starts, and that a click with modifiers, a drag with
    stops and a diagonal scroll come back in parts.

    Raises:
        ActionError: pyautogui has no way to do it: text or a key that it has no key for, `Shell`,
            an answer or a reason.
    """
    for word in ("DONE", "FAIL"):
        if action == WORDS[word]:
            return word
    return "\n".join(_written(*call) for call in calls_for(action, scale, _NAME))


def _written(name: str, arguments: Any) -> str:
    values = [f"{key}={value!r}" for key, value in arguments.items()]
    if name == "hotkey":
        values = [repr(key) for key in arguments["keys"]]
    elif len(arguments) == 1 and name not in ("mouseDown", "mouseUp"):
        values = [repr(value) for value in arguments.values()]
    return f"{'time' if name == 'sleep' else 'pyautogui'}.{name}({', '.join(values)})"
