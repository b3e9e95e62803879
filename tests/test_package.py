"""The package's face: its names, its id in Gymnasium, and what importing it does not import."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import cua_gym

ROOT = Path(__file__).parents[1]
HEAVY = "set(sys.modules) & {'av', 'gymnasium', 'numpy', 'paramiko', 'PIL', 'twisted', 'vncdotool'}"


def python(script: str, *words: str, **environment: str) -> str:
    """What a new process prints, warnings being errors."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, *words],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_name_is_there() -> None:
    """All of `__all__` can be had and is listed; what is not in it is an `AttributeError`."""
    assert set(cua_gym.__all__) <= set(dir(cua_gym))
    for name in cua_gym.__all__:
        getattr(cua_gym, name)
    with pytest.raises(AttributeError, match="no attribute 'mkae'"):
        cua_gym.mkae  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("imports", ["import cua_gym, gymnasium", "import gymnasium, cua_gym"])
def test_the_id_is_registered(imports: str) -> None:
    """In whichever order the two are imported, and it names the env."""
    script = f"{imports}\nprint(gymnasium.spec('cua_gym/Desktop-v0').entry_point)"
    assert python(script) == "cua_gym.env:DesktopEnv\n"


def test_help_and_completion_import_nothing_heavy() -> None:
    """A person who asks for help, or presses Tab, does not wait for numpy."""
    script = f"""
import sys
from cua_gym.cli import main
for name in ("run", "task", "image", "grade", "doctor", "clean", None):
    main([*filter(None, [name]), "--help"], "cua-gym", standalone_mode=False)
try:
    main([], "cua-gym", complete_var="COMPLETE")
finally:
    print("heavy:", {HEAVY} or "none")
"""
    said = python(script, COMPLETE="bash_complete", COMP_WORDS="cua-gym ta", COMP_CWORD="1")
    assert said.endswith("plain,task\nheavy: none\n")
