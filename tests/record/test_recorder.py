"""Recording an episode."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from cua_gym.record.layout import RunFolder
from cua_gym.record.recorder import Recorder
from cua_gym.record.replay import Replay
from cua_gym.record.video import Video
from tests.record.pictures import counted, plain

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A new attempt."""
    return RunFolder.create(tmp_path, "run", "some-task", "caller")


def record(folder: RunFolder, steps: int, size: tuple[int, int] = (64, 48)) -> None:
    """An episode of ``steps`` steps, every picture different."""
    with Recorder(folder, size) as recorder:
        recorder.start({"task": "some-task"}, counted(0, size))
        for step in range(1, steps + 1):
            last = step == steps
            recorder.step(step, {"type": "wait"}, counted(step, size), {"a": 1}, last, False)


def decoded(video: Path) -> list[tuple[float, np.ndarray]]:
    """Time in seconds and pixels of every frame of a video."""
    with av.open(str(video)) as container:
        return [(f.time, f.to_ndarray(format="rgb24")) for f in container.decode(video=0)]


def test_everything_is_there(folder: RunFolder) -> None:
    """Lines, pictures and video frames are steps + 1, and pictures are exact."""
    record(folder, 5)
    replay = Replay(folder)
    steps = list(replay.steps())
    assert [s.index for s in steps] == list(range(6))
    assert [s.action for s in steps] == [None] + [{"type": "wait"}] * 5
    assert [s.terminated for s in steps] == [False] * 5 + [True]
    assert len(list(folder.frames.iterdir())) == 6
    for step in steps:
        np.testing.assert_array_equal(step.pixels(), counted(step.index).rgb)
    assert len(decoded(folder.video)) == 6
    assert replay.episode == {"task": "some-task"}
    assert replay.result is None
    assert replay.changed_frames() == []


def test_changed_pictures_are_found(folder: RunFolder) -> None:
    """A picture edited or removed later is named."""
    record(folder, 3)
    folder.frame(1).write_bytes(folder.frame(2).read_bytes())
    folder.frame(3).unlink()
    assert Replay(folder).changed_frames() == ["frames/0001.png", "frames/0003.png"]


def test_the_line_is_written_at_once(folder: RunFolder) -> None:
    """A step is in the file when `step` returns, with what a reader needs."""
    with Recorder(folder, (64, 48)) as recorder:
        recorder.start({}, plain((1, 2, 3)), {"settled": True})
        recorder.step(
            1, {"type": "wait"}, plain((1, 2, 3), serial=7), {"settle_s": 0.1}, False, True
        )
        line = json.loads(folder.traj.read_text().splitlines()[1])
    assert line["step"] == 1
    assert line["time"].endswith("Z")
    assert line["elapsed_s"] >= 0
    assert line["info"] == {"settle_s": 0.1}
    assert (line["terminated"], line["truncated"]) == (False, True)
    assert line["frame"]["file"] == "frames/0001.png"
    assert line["frame"]["serial"] == 7
    assert line["frame"]["cursor"] == [1, 2]
    assert line["frame"]["age_s"] >= 0


def test_caller_may_change_its_array(folder: RunFolder) -> None:
    """What the caller does to its picture after `step` does not reach the record."""
    frame = plain((10, 20, 30))
    with Recorder(folder, (64, 48)) as recorder:
        recorder.start({}, frame)
        frame.rgb[:] = 0
    with Image.open(folder.frame(0)) as image:
        assert image.getpixel((0, 0)) == (10, 20, 30)


def test_an_unchanged_picture_is_stored_once(folder: RunFolder) -> None:
    """Equal pictures in a row share one file, and each still is a frame of the video."""
    with Recorder(folder, (64, 48)) as recorder:
        recorder.start({}, plain((9, 9, 9)))
        recorder.step(1, {}, plain((9, 9, 9)), {}, False, False)
        recorder.step(2, {}, plain((8, 8, 8)), {}, False, False)
        recorder.step(3, {}, plain((9, 9, 9)), {}, False, False)
    inodes = [folder.frame(n).stat().st_ino for n in range(4)]
    assert inodes[0] == inodes[1]
    assert len(set(inodes)) == 3
    assert len(decoded(folder.video)) == 4


def test_no_picture_of_the_episode_before(tmp_path: Path) -> None:
    """The first picture of a second episode is its own, in file and video."""
    for name, colour in (("one", (200, 30, 30)), ("two", (30, 30, 200))):
        folder = RunFolder.create(tmp_path, "run", name, "caller")
        with Recorder(folder, (64, 48)) as recorder:
            recorder.start({}, plain(colour))
        (_, pixels), *rest = decoded(folder.video)
        assert not rest
        np.testing.assert_allclose(pixels.mean(axis=(0, 1)), colour, atol=6)
        np.testing.assert_array_equal(next(Replay(folder).steps()).pixels()[0, 0], colour)


def test_video_times_are_real(folder: RunFolder) -> None:
    """A frame of the video stands at its step's time, and the last one is shown for a second."""
    moments = iter([100.0, 100.0, 100.0, 100.5, 100.5004, 103.0])
    with Recorder(folder, (64, 48), clock=lambda: next(moments)) as recorder:
        recorder.start({}, counted(0))
        for step in (1, 2, 3):
            recorder.step(step, {}, counted(step), {}, False, False)
    times = [time for time, _ in decoded(folder.video)]
    assert times == pytest.approx([0, 0.5, 0.501, 3.0])
    with av.open(str(folder.video)) as container:
        assert container.duration == pytest.approx(4_000_000, abs=50_000)


@pytest.mark.parametrize("size", [(64, 48), (65, 47)])
def test_browsers_can_play_it(folder: RunFolder, size: tuple[int, int]) -> None:
    """H.264 with 4:2:0 chroma and even sizes, as ffprobe sees it too."""
    record(folder, 2, size)
    with av.open(str(folder.video)) as container:
        stream = container.streams.video[0]
        assert stream.codec_context.name == "h264"
        assert stream.codec_context.pix_fmt == "yuv420p"
        assert (stream.width % 2, stream.height % 2) == (0, 0)
    ffprobe = shutil.which("ffprobe")
    if ffprobe:
        command = [ffprobe, "-v", "error", "-show_entries", "stream=pix_fmt,nb_read_frames"]
        command += ["-count_frames", "-of", "csv=p=0", str(folder.video)]
        shown = subprocess.run(command, capture_output=True, text=True, check=True)
        assert shown.stderr == ""
        assert shown.stdout.strip() == "yuv420p,3"


def test_a_guest_may_change_its_resolution(folder: RunFolder) -> None:
    """A picture of another size is kept whole; the video goes on in its own size."""
    with Recorder(folder, (64, 48)) as recorder:
        recorder.start({}, counted(0))
        recorder.step(1, {}, counted(1, (32, 80)), {}, False, False)
        recorder.step(2, {}, counted(2), {}, False, False)
    sizes = [s.pixels().shape for s in Replay(folder).steps()]
    assert sizes == [(48, 64, 3), (80, 32, 3), (48, 64, 3)]
    assert len(decoded(folder.video)) == 3


def test_misuse_is_told(folder: RunFolder) -> None:
    """A step before start or after finish is refused, and finish may be called twice."""
    recorder = Recorder(folder, (64, 48))
    with pytest.raises(RuntimeError, match="start first"):
        recorder.step(1, {}, counted(1), {}, False, False)
    recorder.start({}, counted(0))
    recorder.log("hello")
    recorder.finish()
    recorder.finish()
    with pytest.raises(RuntimeError, match="not after finish"):
        recorder.step(1, {}, counted(1), {}, False, False)
    assert folder.log.read_text().endswith("Z hello\n")


def test_a_refused_step_does_not_leak_a_slot(folder: RunFolder) -> None:
    """Steps that cannot be written as JSON fail each time and never block the recorder."""
    with Recorder(folder, (64, 48)) as recorder:
        recorder.start({}, counted(0))
        for _ in range(20):
            with pytest.raises(TypeError):
                recorder.step(1, {}, counted(1), {"rgb": counted(1).rgb}, False, False)
        recorder.step(1, {}, counted(1), {}, False, False)
    assert [s.index for s in Replay(folder).steps()] == [0, 1]


@pytest.mark.parametrize("trial", range(3))
def test_killed_at_a_random_moment(tmp_path: Path, trial: int) -> None:
    """After SIGKILL every acknowledged step is there, pictures are whole and the video plays."""
    folder = RunFolder.create(tmp_path, "run", "endless", "caller")
    command = [sys.executable, "-m", "tests.record.episode_process", str(folder.path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        enough = random.Random(trial).randrange(20, 120)
        acknowledged = 0
        for line in process.stdout:
            acknowledged = int(line)
            if acknowledged >= enough:
                process.send_signal(signal.SIGKILL)
                break
        rest = [int(line) for line in process.stdout.read().split()]
    steps = list(Replay(folder).steps())
    last = rest[-1] if rest else acknowledged
    assert len(steps) >= last + 1
    assert [s.index for s in steps] == list(range(len(steps)))
    pictures = [s for s in steps if s.frame.exists()]
    assert len(pictures) >= len(steps) - 8
    for step in pictures:
        np.testing.assert_array_equal(step.pixels(), counted(step.index).rgb)
    assert len(decoded(folder.video)) >= len(pictures) - 3


def test_killed_right_after_the_start(tmp_path: Path) -> None:
    """A run that never made a step has its first line, and a video that plays."""
    folder = RunFolder.create(tmp_path, "run", "endless", "caller")
    command = [sys.executable, "-m", "tests.record.episode_process", str(folder.path), "0"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "0\n"
        process.send_signal(signal.SIGKILL)
    ((time, pixels),) = decoded(folder.video)
    assert time == pytest.approx(0, abs=1)
    assert np.abs(pixels.astype(int) - counted(0).rgb).mean() < 5
    assert [step.index for step in Replay(folder).steps()] == [0]


def test_the_video_is_whole_at_every_moment(folder: RunFolder) -> None:
    """What was added plays, and is as long as it was shown, while the file is still written."""
    video = Video(folder.video, (64, 48))
    moments = [0, 40, 41, 5000, 60_000, 60_033]
    for number, moment in enumerate(moments, 1):
        video.add(counted(number).rgb, moment)
        assert [time for time, _ in decoded(folder.video)] == [m / 1000 for m in moments[:number]]
        with av.open(str(folder.video)) as container:
            assert container.duration == pytest.approx((moment + 1000) * 1000, abs=1000)
        if shutil.which("ffprobe"):
            shown = subprocess.run(
                ["ffprobe", "-v", "warning", "-count_frames", str(folder.video)],
                capture_output=True,
                check=True,
            )
            assert shown.stderr == b""
    assert [p.name for p in folder.path.glob(".recording*")] == []
    video.close()
    video.close()


@pytest.mark.slow
def test_memory_is_flat(folder: RunFolder) -> None:
    """Five hundred different full-size pictures take no more memory than fifty."""
    size = (1280, 800)

    def resident_mb() -> float:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    with Recorder(folder, size) as recorder:
        recorder.start({}, counted(0, size))
        after_50 = 0.0
        for step in range(1, 501):
            recorder.step(step, {}, counted(step, size), {}, False, False)
            if step == 50:
                after_50 = resident_mb()
        assert resident_mb() - after_50 < 15
    assert len(list(Replay(folder).steps())) == 501


FULL_DISK = """
import sys, time
from pathlib import Path
from cua_gym.errors import OutOfSpace
from cua_gym.record.layout import RunFolder
from cua_gym.record.recorder import Recorder
from cua_gym.record.replay import Replay
from cua_gym.record.video import Video
from tests.record.pictures import counted
import numpy as np
folder = RunFolder.create(Path(sys.argv[1]), "run", "task", "caller")
noise = np.random.default_rng(0)
recorder = Recorder(folder, (64, 48))
recorder.start({}, counted(0))
step = 0
try:
    for step in range(1, 2000):
        frame = counted(step)
        frame.rgb[:] = noise.integers(0, 256, frame.rgb.shape)
        recorder.step(step, {}, frame, {}, False, False)
except OutOfSpace as error:
    print("step:", error)
try:
    recorder.finish()
except OutOfSpace as error:
    print("finish:", error)
print("lines", len(list(Replay(folder).steps())) >= step)
"""


def test_full_disk(tmp_path: Path) -> None:
    """A full disk is OutOfSpace, soon, and what was acknowledged still reads back."""
    mount = f"mount -t tmpfs -o size=2m none {tmp_path} && exec {sys.executable} - {tmp_path}"
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", mount]
    probe = [*command[:-2], "-c", f"mount -t tmpfs none {tmp_path}"]
    if subprocess.run(probe, capture_output=True, check=False).returncode != 0:
        pytest.skip("no user namespaces here, so no small disk to fill")
    done = subprocess.run(
        command, input=FULL_DISK, capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "step: no room for" in done.stdout
    assert "bytes free" in done.stdout
    assert "lines True" in done.stdout
