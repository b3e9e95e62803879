"""A command's answer: standard output is for it alone, and it is known when it did not arrive."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO

import click

__all__ = ["Answer", "answering"]


class _AnswerLost(click.ClickException):
    exit_code = 3


class Answer:
    """Where the answer goes, line by line."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def line(self, text: str) -> None:
        """One line, at once.

        Raises:
            click.ClickException: it cannot be written: the reader is gone, the disk full.
        """
        try:
            click.echo(text, file=self._stream)
        except OSError as error:
            raise _AnswerLost(f"the answer cannot be written: {error}; stopped here") from error


@contextlib.contextmanager
def answering() -> Iterator[Answer]:
    """Whatever else is printed meanwhile goes to standard error, by child processes too.

    Agents and the files of a task's author print as they like.
    """
    out = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        if not _is_standard(out):
            yield Answer(out)
            return
        out.flush()
        kept = os.dup(1)
        os.dup2(2, 1)
        stream = os.fdopen(kept, "w", encoding=out.encoding, errors=out.errors)
        try:
            yield Answer(stream)
        finally:
            os.dup2(kept, 1)
            with contextlib.suppress(OSError):  # told by the line that failed
                stream.close()


def _is_standard(stream: Any) -> bool:
    """Whether it is the process's own standard output, and standard error is open too."""
    try:
        os.fstat(2)
        return bool(stream.fileno() == 1)
    except (OSError, ValueError, AttributeError):
        return False
