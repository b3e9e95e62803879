"""Names of files as JSON can carry them.

A relative path starts at the home folder. A name whose bytes are no UTF-8 travels as
``base64:...``, in listings and as a path.
"""

from __future__ import annotations

import base64
import binascii
import posixpath

from cua_gym.errors import ActionError
from cua_gym.machine.base import Machine

__all__ = ["absolute", "from_base64", "told_name"]

_ODD = "base64:"


def absolute(path: str, machine: Machine) -> str:
    """The path as the machine's shell takes it; odd bytes are surrogate escapes.

    Raises:
        ActionError: it holds a NUL, or what stands behind ``base64:`` is none.
    """
    if path.startswith(_ODD):
        path = from_base64(path.removeprefix(_ODD)).decode("utf-8", "surrogateescape")
    if "\0" in path:
        raise ActionError(f"a path cannot hold a NUL character: {path[:200]!r}")
    home = f"/home/{machine.spec.user}"
    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    return posixpath.normpath(posixpath.join(home, path))


def told_name(name: str) -> str:
    """A name with surrogate escapes, for the agent."""
    raw = name.encode("utf-8", "surrogateescape")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return _ODD + base64.b64encode(raw).decode("ascii")


def from_base64(text: str) -> bytes:
    """The bytes.

    Raises:
        ActionError: it is no base64.
    """
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ActionError(f"this is no base64: {error}") from error
