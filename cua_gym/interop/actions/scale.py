"""Pixels of the picture that a model sees and pixels of the screen that it stands for."""

from __future__ import annotations

from dataclasses import dataclass

from cua_gym.errors import ActionError

__all__ = ["Point", "Scale", "to_model", "to_native"]

Point = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Scale:
    """A picture of ``model`` (width, height) pixels that shows a screen of ``native`` pixels.

    Each axis is mapped on its own, first pixel to first and last to last, those between in
    proportion and rounded to the nearest (a half goes up)::

        native = round(x * (native_width - 1) / (model_width - 1))

    So the corners and edges of one are those of the other, where hot corners, panels and scroll
    bars are; no pixel of the picture lies off the screen; and each hit is within the block of
    screen pixels that the picture's pixel was made of, give or take the rounding. Where the
    screen is the larger, ``to_model(to_native(p)) == p``.
    """

    model: Point
    native: Point

    def __post_init__(self) -> None:
        if min(*self.model, *self.native) < 1:
            raise ValueError(f"a picture and a screen have at least one pixel, not {self}")

    def to_native(self, point: Point) -> Point:
        """The screen pixel for a pixel of the picture.

        Raises:
            ActionError: ``point`` is off the picture.
        """
        return _mapped(point, self.model, self.native, "picture that you see")

    def to_model(self, point: Point) -> Point:
        """The picture's pixel for a pixel of the screen.

        Raises:
            ActionError: ``point`` is off the screen.
        """
        return _mapped(point, self.native, self.model, "screen")


def to_native(point: Point, scale: Scale | None) -> Point:
    """As `Scale.to_native`; without a scale the model sees the screen as it is."""
    return scale.to_native(point) if scale else point


def to_model(point: Point, scale: Scale | None) -> Point:
    """As `Scale.to_model`; without a scale the model sees the screen as it is."""
    return scale.to_model(point) if scale else point


def _mapped(point: Point, source: Point, target: Point, what: str) -> Point:
    if not all(0 <= value < size for value, size in zip(point, source, strict=True)):
        raise ActionError(f"{point} is off the {what}, {source[0]}x{source[1]} pixels")
    x, y = (
        # Whole numbers throughout: floats would round some halves down.
        (2 * value * (new - 1) + (old - 1)) // max(2 * (old - 1), 1)
        for value, old, new in zip(point, source, target, strict=True)
    )
    return x, y
