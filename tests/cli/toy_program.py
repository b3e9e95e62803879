"""`cua-gym` with the toy suite as the bundled one: toy_program.py SUITE WORD..."""

from __future__ import annotations

import sys
from pathlib import Path

import cua_gym.task
from cua_gym.cli import main
from tests.run.toy import make_suite, on_toy_computer

if __name__ == "__main__":
    suite = make_suite(Path(sys.argv[1]))
    cua_gym.task.find_task = lambda name, _=None: on_toy_computer(suite.task(str(name)))
    main(sys.argv[2:], prog_name="cua-gym")
