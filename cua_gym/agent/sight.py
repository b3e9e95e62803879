"""What a model sees of a screen: how large a picture, of which part, and whose pixels it means."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from PIL import Image

from cua_gym import actions as a
from cua_gym.errors import ActionError
from cua_gym.interop.actions import Scale
from cua_gym.machine.base import Rgb
from cua_gym.record.png import PngEncoder

__all__ = ["Box", "Sight"]

Box = tuple[int, int, int, int]
"""Part of the picture, in its pixels: x0, y0, x1, y1, ends excluded."""


class Sight:
    """One screen as one provider's models see it.

    A picture that the provider would make smaller is made smaller here, so that the model's pixels
    are known and its coordinates can be scaled back.

    Args:
        screen: (width, height) in pixels.
        fits: whether the provider shows its models a picture of (width, height) as it is.

    Attributes:
        size: of the picture; the largest of the screen's shape that fits.
        scale: between the picture's pixels and the screen's.
    """

    def __init__(self, screen: tuple[int, int], fits: Callable[[int, int], bool]) -> None:
        self.size = _largest(screen, fits)
        self.scale = Scale(self.size, screen)
        self._png = PngEncoder()

    def picture(self, rgb: Rgb, box: Box | None = None) -> str:
        """A PNG file in base64.

        Args:
            rgb: ``(height, width, 3)`` uint8, the whole screen.
            box: only this part, as large as it fits into ``size``.

        Raises:
            ActionError: the box is off the picture, or empty.
        """
        size = self.size
        if box is not None:
            x0, y0, x1, y1 = box
            if not (0 <= x0 < x1 <= size[0] and 0 <= y0 < y1 <= size[1]):
                raise ActionError(f"{box} is no box within the {size[0]}x{size[1]} picture")
            (left, top), (right, bottom) = (
                self.scale.to_native((x0, y0)), self.scale.to_native((x1 - 1, y1 - 1))
            )  # fmt: skip
            rgb = rgb[top : bottom + 1, left : right + 1]
            height, width = rgb.shape[:2]
            factor = min(size[0] / width, size[1] / height)
            size = max(1, round(width * factor)), max(1, round(height * factor))
        if (rgb.shape[1], rgb.shape[0]) != size:
            rgb = np.asarray(Image.fromarray(rgb).resize(size, Image.Resampling.LANCZOS))
        return base64.b64encode(self._png.encode(rgb)).decode()

    def to_native(self, action: a.Action) -> a.Action:
        """An action in pixels of the picture as one in pixels of the screen.

        Raises:
            ActionError: it is off the picture.
        """
        if isinstance(action, a.Move | a.Click | a.Scroll):
            x, y = self.scale.to_native((action.x, action.y))
            return replace(action, x=x, y=y)
        if isinstance(action, a.Drag):
            return replace(action, path=tuple(map(self.scale.to_native, action.path)))
        return action


def _largest(screen: tuple[int, int], fits: Callable[[int, int], bool]) -> tuple[int, int]:
    if fits(*screen):
        return screen
    longest = max(screen)

    def size(edge: int) -> tuple[int, int]:
        return max(1, round(screen[0] * edge / longest)), max(1, round(screen[1] * edge / longest))

    low, high = 1, longest
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(*size(middle)) else (low, middle)
    return size(low)
