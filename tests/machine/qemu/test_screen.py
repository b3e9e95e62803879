"""The kept picture."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cua_gym.errors import MachineLost
from cua_gym.machine.qemu.screen import LiveScreen


def pixels(width: int, height: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 4), np.uint8)


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 30), st.integers(0, 30), st.integers(1, 20), st.integers(1, 20),
            st.booleans(),
        ),
        max_size=8,
    )
)  # fmt: skip
def test_any_updates_give_the_picture_that_they_paint(
    updates: list[tuple[int, int, int, int, bool]],
) -> None:
    """Rectangles at any place, some beyond the edge, and grabs between them."""
    screen = LiveScreen((40, 30))
    wanted = np.zeros((30, 40, 3), np.uint8)
    for seed, (x, y, width, height, grab) in enumerate(updates):
        part = pixels(width, height, seed)
        grown = max(wanted.shape[0], y + height), max(wanted.shape[1], x + width)
        larger = np.zeros((*grown, 3), np.uint8)
        larger[: wanted.shape[0], : wanted.shape[1]] = wanted
        wanted = larger
        wanted[y : y + height, x : x + width] = part[..., 2::-1]
        padded = np.zeros((height, width + 3, 4), np.uint8)
        padded[:, :width] = part
        screen.part(x, y, width, height, (width + 3) * 4, padded.tobytes()[: -3 * 4])
        if grab:
            screen.grab()
    assert np.array_equal(wanted, screen.grab().rgb)
    assert screen.size == (wanted.shape[1], wanted.shape[0])


def test_a_repaint_of_the_same_colours_is_no_change() -> None:
    """Noise in the fourth byte does not raise the serial."""
    screen = LiveScreen((8, 4))
    data = pixels(8, 4, 1)
    screen.whole(8, 4, 32, data.tobytes())
    serial = screen.serial
    data[..., 3] ^= 255
    screen.part(0, 0, 8, 4, 32, data.tobytes())
    assert screen.serial == serial
    data[2, 3, 1] ^= 1
    screen.part(0, 0, 8, 4, 32, data.tobytes())
    assert screen.serial == serial + 1


def test_a_smaller_whole_picture_shrinks_the_screen() -> None:
    """After a change of mode the old pixels are gone."""
    screen = LiveScreen((8, 4))
    screen.whole(8, 4, 32, pixels(8, 4, 1).tobytes())
    screen.whole(4, 2, 16, bytes(32))
    assert screen.grab().rgb.shape == (2, 4, 3)
    assert not screen.grab().rgb.any()


def test_a_black_first_picture_counts_as_one() -> None:
    """The first whole picture raises the serial though it equals the empty buffer."""
    screen = LiveScreen((4, 2))
    screen.start(lambda: None)
    assert not screen.wait_whole((4, 2), 0.0)
    screen.whole(4, 2, 16, bytes(32))
    assert screen.serial == 1
    assert screen.wait_whole((4, 2), 0.0)


def test_waiters_learn_of_the_end_at_once() -> None:
    """`wait_change` raises when the machine goes away meanwhile."""
    screen = LiveScreen((4, 2))
    screen.start(lambda: None)
    timer = threading.Timer(0.05, lambda: screen.fail(MachineLost("gone")))
    timer.start()
    with pytest.raises(MachineLost, match="gone"):
        screen.wait_change(0, 30.0)
    timer.join()


def test_waiting_nudges_only_while_it_waits() -> None:
    """The nudge is used by waits that must wait, and may itself bring the change."""
    screen = LiveScreen((4, 2))
    nudges = []

    def nudge() -> None:
        nudges.append(screen.serial)
        if len(nudges) == 3:
            screen.whole(4, 2, 16, bytes(31) + b"\0")

    screen.start(nudge)
    assert screen.wait_change(0, 30.0)
    assert len(nudges) == 3
    assert screen.wait_change(0, 30.0)
    assert len(nudges) == 3
