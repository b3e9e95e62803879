"""The recording: one frame per step at its real time, in a file that survives a kill.

H.264 in fragmented MP4, one fragment per frame, each appended by a single write as soon as its
frame is encoded. So the file appears with its first frame in it and is whole at every moment: all
frames that were added play, whatever ends this process (a plain MP4 is lost without its index).
4:2:0 chroma and even sizes are what browsers play; x264 refuses odd sizes.

Encoding and the file's head are libav's. The fragments are made here, because libav's muxer holds
each frame back until the next one tells how long it was shown: the last frame, and with it a run's
only one, would be lost by a kill. Here a frame is shown for a second until the next one corrects
that in place.

Source: ISO/IEC 14496-12 (moof, traf, trun) and 14496-15 (samples of H.264).
"""

from __future__ import annotations

import io
import os
import re
import struct
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import numpy.typing as npt

from cua_gym.machine.base import Rgb, fitted
from cua_gym.record.bands import BAND

__all__ = ["Video"]

_LAST_FRAME_MS = 1000
_NEAR = 4  # rows above and below that a row's colours may be mixed with
_BT709, _LIMITED_RANGE = 1, 1

_START_CODE = re.compile(rb"\x00\x00\x00?\x01")
_BASE_IS_MOOF, _TRUN_FIELDS = 0x020000, 0x000701  # data offset; duration, size and flags
_KEYFRAME, _DEPENDENT = 0x02000000, 0x01010000
_DURATION_FROM_END = 12  # of a moof: the duration is followed by size and flags


class Video:
    """Writes one recording; not for two threads at once."""

    def __init__(self, path: Path, size: tuple[int, int]) -> None:
        """Prepare to write ``path`` with pictures of ``size`` (width, height) in pixels."""
        self._path = path
        self._fd = -1
        self._length = 0
        self._count = 0
        self._last_ms = -1
        self._duration_at = 0
        self._picture: Any = None
        self._head = io.BytesIO()
        self._container = av.open(
            self._head,
            "w",
            format="mp4",
            options={
                "movflags": "empty_moov+default_base_moof+frag_custom",
                "video_track_timescale": "1000",
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
        # zerolatency: every picture gives its packet at once, and no frame waits for a later one.
        context.options = {"preset": "ultrafast", "tune": "zerolatency", "crf": "26"}
        context.color_range, context.colorspace = _LIMITED_RANGE, _BT709
        self._container.start_encoding()

    def add(self, rgb: Rgb, time_ms: int, changed: Iterable[int] | None = None) -> None:
        """Append a picture shown from ``time_ms`` after the first until the next one.

        When this returns the picture can be played. One of another size is cropped or padded with
        black at the right and bottom.

        Args:
            changed: first rows of the bands (`bands.changed_bands`) in which this picture differs
                from the one before, whose colours need not be made again; None is all of them.

        Raises:
            OSError: the file cannot be written; it ends with the frame before.
        """
        if self._picture is None or changed is None:
            self._picture = _colours(fitted(rgb, (self._width, self._height)))
        elif below := [top for top in changed if top < self._height]:
            whole = fitted(rgb, (self._width, self._height))
            for top in below:
                self._paint(whole, top)
        frame = self._picture
        # Two steps within one millisecond still are two frames.
        time_ms = max(time_ms, self._last_ms + 1)
        frame.pts, frame.time_base = time_ms, Fraction(1, 1000)
        (packet,) = self._stream.encode(frame)
        self._append(_sample(bytes(packet)), time_ms, packet.is_keyframe)

    def close(self) -> None:
        """Give the encoder and the file back; idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        self._container.close()

    def _append(self, sample: bytes, time_ms: int, key: bool) -> None:
        self._count += 1
        moof = _moof(self._count, time_ms, len(sample), _KEYFRAME if key else _DEPENDENT)
        fragment = moof + _box(b"mdat", sample)
        if self._fd < 0:
            fragment = self._head.getvalue() + fragment
            # Whole or absent, as the pictures are.
            part = self._path.with_name(".recording.part")
            self._fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
            self._write(fragment)
            part.replace(self._path)
        else:
            shown = struct.pack(">I", time_ms - self._last_ms)
            os.pwrite(self._fd, shown, self._duration_at)
            self._write(fragment)
        self._duration_at = self._length - len(sample) - 8 - _DURATION_FROM_END
        self._last_ms = time_ms

    def _write(self, data: bytes) -> None:
        try:
            written = 0
            while written < len(data):  # a nearly full disk takes a part first
                written += os.pwrite(self._fd, data[written:], self._length + written)
        except OSError:
            os.ftruncate(self._fd, self._length)
            raise
        self._length += len(data)

    def _paint(self, rgb: Rgb, top: int) -> None:
        # The colours of neighbouring rows are mixed: they change too, and need their neighbours.
        first, last = max(top - _NEAR, 0), min(top + BAND + _NEAR, self._height)
        above = max(first - _NEAR, 0)
        part = _colours(rgb[above : last + _NEAR])
        for source, target in zip(part.planes, self._picture.planes, strict=True):
            scale = self._height // target.height
            rows = slice((first - above) // scale, (last - above) // scale)
            _pixels(target)[first // scale : last // scale] = _pixels(source)[rows]


def _colours(rgb: Rgb) -> Any:
    picture = av.VideoFrame.from_ndarray(rgb, format="rgb24")
    return picture.reformat(format="yuv420p", dst_colorspace="ITU709", dst_color_range="MPEG")


def _pixels(plane: Any) -> npt.NDArray[np.uint8]:
    return np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)[:, : plane.width]


def _box(kind: bytes, *contents: bytes) -> bytes:
    body = b"".join(contents)
    return struct.pack(">I4s", 8 + len(body), kind) + body


def _moof(number: int, time_ms: int, size: int, flags: int) -> bytes:
    """The head of a fragment of one frame, whose data box follows at once."""

    def moof(offset: int) -> bytes:
        run = struct.pack(">IIiIII", _TRUN_FIELDS, 1, offset, _LAST_FRAME_MS, size, flags)
        track = _box(
            b"traf",
            _box(b"tfhd", struct.pack(">II", _BASE_IS_MOOF, 1)),
            _box(b"tfdt", struct.pack(">IQ", 1 << 24, time_ms)),
            _box(b"trun", run),
        )
        return _box(b"moof", _box(b"mfhd", struct.pack(">II", 0, number)), track)

    return moof(len(moof(0)) + 8)


def _sample(packet: bytes) -> bytes:
    """An access unit with lengths, as MP4 has it, instead of start codes, as x264 gives it."""
    units = _START_CODE.split(packet)[1:]
    return b"".join(struct.pack(">I", len(unit)) + unit for unit in units)
