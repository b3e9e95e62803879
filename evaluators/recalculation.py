"""LibreOffice as a calculator: what a workbook's formulas come to, or the workbook as another kind.

It runs without a window in a sandbox of its own within the grader's: no network, no files but its
program's and the one workbook, macros off, links never followed, bounded time and memory. When it
fails, it is given a workbook of ours: only if that goes well, the first one is to blame.
"""

from __future__ import annotations

import functools
import resource
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Literal

import openpyxl

from cua_gym.grading.check import Fails, GradingError

from .packages import once

CPU_S = 15
"""Five times what starting it and a common workbook take."""
WALL_S = 40.0
MEMORY_MB = 2048
RESTART = 81
"""LibreOffice's exit status after it made a new profile; it wants to be started again."""

Kind = Literal["xlsx", "ods"]

_FILTERS = {"xlsx": "xlsx:Calc MS Excel 2007 XML", "ods": "ods:calc8"}
"""By name: which one an ending means depends on what else of LibreOffice is installed."""
_SETTINGS = {
    # Never trust what a file says that it comes to: always compute.
    "/org.openoffice.Office.Calc/Formula/Load": {"OOXMLRecalcMode": "0", "ODFRecalcMode": "0"},
    "/org.openoffice.Office.Calc/Content/Update": {"Link": "2"},
    "/org.openoffice.Office.Common/Security/Scripting": {
        "MacroSecurityLevel": "3",
        "DisableMacrosExecution": "true",
        "BlockUntrustedRefererLinks": "true",
    },
    "/org.openoffice.Office.Common/Misc": {"UseOpenCL": "false"},
}


def recalculated(data: bytes, kind: Kind) -> bytes:
    """The same workbook with every formula computed.

    Raises:
        Fails: this workbook makes LibreOffice fail, or compute for too long.
        GradingError: LibreOffice is not there or does not work here.
    """
    return _KEPT[kind, kind](data)


def as_xlsx(data: bytes) -> bytes:
    """An ods workbook as LibreOffice saves it as xlsx, with its formats, charts and filters.

    Raises:
        As `recalculated`.
    """
    return _KEPT["ods", "xlsx"](data)


def _converted(data: bytes, source: Kind, target: Kind) -> bytes:
    result, what = _run(data, source, target)
    if result is not None:
        return result
    if not _works(_program()):
        raise GradingError(f"LibreOffice does not work here, even with a workbook of ours: {what}")
    raise Fails(f"LibreOffice cannot compute this workbook: {what}")


_WAYS: tuple[tuple[Kind, Kind], ...] = (("xlsx", "xlsx"), ("ods", "ods"), ("ods", "xlsx"))
_KEPT = {
    (source, target): once(functools.partial(_converted, source=source, target=target))
    for source, target in _WAYS
}


@functools.cache
def _works(program: Path) -> bool:
    """Whether LibreOffice takes a workbook of ours; told once, for it costs seconds."""
    with tempfile.TemporaryFile() as file:
        openpyxl.Workbook().save(file)
        file.seek(0)
        return _run(file.read(), "xlsx", "xlsx")[0] is not None


def _run(data: bytes, source: Kind, target: Kind) -> tuple[bytes | None, str]:
    """What LibreOffice made of it, or None and what went wrong."""
    program = _program()
    with tempfile.TemporaryDirectory(prefix="cua-gym-calc-") as name:
        job = Path(name)
        (job / f"in.{source}").write_bytes(data)
        (job / "profile/user").mkdir(parents=True)
        (job / "profile/user/registrymodifications.xcu").write_text(_profile())
        command = [*_sandbox(job, program), *_convert(source, target)]
        result = job / "out" / f"in.{target}"
        said = ""
        for _ in range(2):
            try:
                done = subprocess.run(
                    command,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=WALL_S,
                    check=False,
                    preexec_fn=_limit,
                )
            except subprocess.TimeoutExpired:
                return None, f"it ran over {WALL_S:g} s"
            said = f"exit status {done.returncode}: {done.stderr.decode(errors='replace')[-300:]}"
            if done.returncode == 0 and result.is_file():
                return result.read_bytes(), ""
            if done.returncode != RESTART:
                break
        return None, said.strip()


def _program() -> Path:
    found = shutil.which("soffice")
    if found is None:
        raise GradingError(
            "this workbook's formulas have no stored values, and computing them takes "
            "LibreOffice; install the package libreoffice-calc-nogui"
        )
    if shutil.which("bwrap") is None:
        raise GradingError("computing a workbook takes bwrap; install the package bubblewrap")
    return Path(found).resolve().with_name("soffice.bin")


def _sandbox(job: Path, program: Path) -> list[str]:
    """The command that runs LibreOffice where no file of the host but its own can be read.

    A formula can name any file, and a path can be put together in it. The suites of an installed
    package, with their hidden files, lie among Python's; /proc leads to the whole host.
    """
    command = ["bwrap", "--unshare-user", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    command += ["--unshare-pid", "--die-with-parent", "--new-session", "--clearenv"]
    for folder in ("/usr/lib", "/usr/share", "/etc/libreoffice", "/etc/fonts"):
        command += ["--ro-bind-try", folder, folder]
    command += ["--symlink", "usr/lib", "/lib", "--ro-bind-try", "/usr/lib64", "/lib64"]
    command += ["--tmpfs", "/usr/lib/python3", "--dev", "/dev", "--tmpfs", "/tmp"]
    if not program.is_relative_to("/usr/lib"):
        command += ["--ro-bind", str(program.parents[1]), str(program.parents[1])]
    command += ["--bind", str(job), "/job", "--chdir", "/job", "--setenv", "HOME", "/job"]
    # Without /proc the loader cannot tell where the program lies.
    command += ["--setenv", "LD_LIBRARY_PATH", str(program.parent)]
    return [*command, "--setenv", "LC_ALL", "C.UTF-8", str(program)]


def _convert(source: Kind, target: Kind) -> list[str]:
    options = ["--headless", "--norestore", "--nologo", "--nodefault", "--nolockcheck"]
    options.append("-env:UserInstallation=file:///job/profile")
    return [*options, "--convert-to", _FILTERS[target], "--outdir", "/job/out", f"/job/in.{source}"]


def _profile() -> str:
    items = "".join(
        f'<item oor:path="{path}"><prop oor:name="{name}" oor:op="fuse">'
        f"<value>{value}</value></prop></item>"
        for path, values in _SETTINGS.items()
        for name, value in values.items()
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?><oor:items '
        f'xmlns:oor="http://openoffice.org/2001/registry">{items}</oor:items>'
    )


def _limit() -> None:
    for kind, value in (
        (resource.RLIMIT_CPU, CPU_S),
        (resource.RLIMIT_AS, MEMORY_MB * 1024 * 1024),
        (resource.RLIMIT_FSIZE, 256 * 1024 * 1024),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        soft = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (soft, soft))
