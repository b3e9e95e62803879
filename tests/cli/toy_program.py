"""`cua-gym` with the toy suite as the bundled one: toy_program.py SUITE WORD...

TOY_TOOLS in the environment is the task's tool policy instead of its own.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import cua_gym.task
from cua_gym.cli import main
from cua_gym.task import Task
from tests.run.toy import make_suite, on_toy_computer

if __name__ == "__main__":
    suite = make_suite(Path(sys.argv[1]))

    def find(name: object, _: object = None) -> Task:
        task = on_toy_computer(suite.task(str(name)))
        return replace(task, tool_policy=os.environ.get("TOY_TOOLS", task.tool_policy))

    cua_gym.task.find_task = find
    main(sys.argv[2:], prog_name="cua-gym")
