"""`python -m cua_gym.cli` is `cua-gym`."""

from __future__ import annotations

from cua_gym.cli import main

if __name__ == "__main__":
    main(prog_name="cua-gym")
