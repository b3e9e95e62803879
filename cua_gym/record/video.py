"""The recording: one frame per step at its real time, in a file that survives a kill.

H.264 in fragmented MP4: each fragment holds one frame and is flushed at once, so after a
`kill -9` all frames but the last one or two play (a plain MP4 is lost without its index).
4:2:0 chroma and even sizes are what browsers play; x264 refuses odd sizes.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import numpy.typing as npt

__all__ = ["Video"]

_LAST_FRAME_MS = 1000
_BT709, _LIMITED_RANGE = 1, 1


class Video:
    """Writes one recording; not for two threads at once."""

    def __init__(self, path: Path, size: tuple[int, int]) -> None:
        """Open ``path`` for pictures of ``size`` (width, height) in pixels."""
        self._container = av.open(
            str(path),
            "w",
            format="mp4",
            options={
                "movflags": "frag_every_frame+empty_moov+default_base_moof",
                "flush_packets": "1",
            },
        )
        self._stream: Any = self._container.add_stream("libx264")
        self._width, self._height = ((n + 1) // 2 * 2 for n in size)
        stream = self._stream
        stream.width, stream.height, stream.pix_fmt = self._width, self._height, "yuv420p"
        stream.time_base = Fraction(1, 1000)
        context = stream.codec_context
        context.time_base = Fraction(1, 1000)
        context.thread_count = 1  # the guest needs the other cores
        context.options = {"preset": "ultrafast", "tune": "zerolatency", "crf": "26"}
        context.color_range, context.colorspace = _LIMITED_RANGE, _BT709
        self._last_ms = -1

    def add(self, rgb: npt.NDArray[np.uint8], time_ms: int) -> None:
        """Append a picture shown from ``time_ms`` after the first until the next one.

        A picture of another size is cropped or padded with black at the right and bottom.

        Raises:
            OSError: the file cannot be written.
        """
        frame = av.VideoFrame.from_ndarray(self._fitted(rgb), format="rgb24")
        frame = frame.reformat(format="yuv420p", dst_colorspace="ITU709", dst_color_range="MPEG")
        # Two steps within one millisecond still are two frames.
        self._last_ms = max(time_ms, self._last_ms + 1)
        frame.pts, frame.time_base = self._last_ms, Fraction(1, 1000)
        self._mux(frame)

    def close(self) -> None:
        """Finish the file; the last picture stays for a second."""
        self._mux(None)
        self._container.close()

    def _mux(self, frame: Any) -> None:
        for packet in self._stream.encode(frame):
            # Players take each frame's length from the next one's time; only the last uses this.
            packet.duration = _LAST_FRAME_MS
            self._container.mux(packet)

    def _fitted(self, rgb: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        if rgb.shape == (self._height, self._width, 3):
            return rgb
        fitted = np.zeros((self._height, self._width, 3), np.uint8)
        rows, columns = min(rgb.shape[0], self._height), min(rgb.shape[1], self._width)
        fitted[:rows, :columns] = rgb[:rows, :columns]
        return fitted
