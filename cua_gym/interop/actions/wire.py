"""How a foreign action is read: a strict shape, and an `ActionError` for whatever does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict, TypeAdapter
from pydantic import ValidationError as Invalid

from cua_gym import actions as a
from cua_gym.errors import ActionError

__all__ = ["Number", "Pair", "Seconds", "Whole", "Wire", "impossible", "named", "read"]

T = TypeVar("T")


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


# No screen is larger; a bound keeps absurd numbers out of arithmetic and messages.
Whole = Annotated[int, BeforeValidator(_whole), Field(ge=-1_000_000, le=1_000_000)]
Pair = Annotated[tuple[Whole, Whole], Strict(False)]  # a list too, as JSON has it
Number = Annotated[float, Field(allow_inf_nan=False)]
Seconds = Annotated[float, Field(allow_inf_nan=False, ge=0, le=60)]


class Wire(BaseModel):
    """A foreign shape. A field that it does not have is refused: to drop it would be to lie."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def named(given: object, tag: str, what: str) -> dict[str, Any]:
    """``given``, a mapping whose field ``tag`` is text, as a dict.

    Raises:
        ActionError: it is not.
    """
    if not isinstance(given, Mapping):
        raise ActionError(f"{what}: an action is a dict, not a {type(given).__name__}")
    if not isinstance(given.get(tag), str):
        raise ActionError(f"{what}: an action needs its {tag}, which is text")
    return dict(given)


def read(shape: TypeAdapter[T], given: object, what: str) -> T:
    """``given`` as ``shape``.

    Args:
        what: whose format it is, for messages.

    Raises:
        ActionError: names the field, what is allowed and what was seen.
    """
    try:
        return shape.validate_python(given)
    except Invalid as error:
        first = error.errors(include_url=False, include_context=False)[0]
        # Names of fields and places in lists; pydantic's own names of types help nobody.
        parts = map(str, first["loc"])
        place = ".".join(part for part in parts if part.isidentifier() or part.isdecimal())
        seen = first["input"]
        # Only what is short for certain: an int of many digits cannot even be printed.
        plain = isinstance(seen, str | float | bool | None) or (
            isinstance(seen, int) and seen.bit_length() < 64
        )
        got = f"; got {seen!r:.60}" if plain else ""
        raise ActionError(f"{what}: {place or 'the action'}: {first['msg']}{got}") from None


def impossible(what: str, action: a.Action, why: str = "") -> ActionError:
    """The error for an action of ours that ``what`` cannot say."""
    return ActionError(f"{what} cannot say {action!r:.120}{f': {why}' if why else ''}")
