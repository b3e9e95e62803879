"""What can be known of a variation: what is told and given, and what the oracle was shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cua_gym import template
from cua_gym.gates.attempts import Attempt
from cua_gym.gates.phrases import Said
from cua_gym.gates.texts import texts_of
from cua_gym.grading.items import Evidence
from cua_gym.record.layout import RunFolder
from cua_gym.record.replay import Replay
from cua_gym.task import Variation

__all__ = ["Shown", "found_at_start", "given_texts", "told"]

_OUTPUTS = ("stdout", "stderr")


def given_texts(variation: Variation) -> Iterator[str]:
    """The instruction, the inputs and the setup's own texts."""
    yield variation.instruction
    for name, data in variation.inputs.items():
        yield name
        yield from texts_of(data)
    yield from told(variation)


def told(variation: Variation) -> Iterator[str]:
    """What the setup writes, runs and opens."""
    for step in variation.task.setup:
        file = step.file
        texts = [step.run, step.until, *(step.open or ())]
        texts += [file.to, file.content] if file else []
        yield from (template.fill_text(text, variation.params) for text in texts if text)


def found_at_start(evidence: Path) -> Iterator[str]:
    """What is in the start state, as far as it is collected: names and contents."""
    for name, item in Evidence(evidence).items():
        if name in ("answer", "submission"):
            continue
        for entry in item.entries:
            yield entry.guest
            if entry.stored is not None:
                yield from texts_of(item.stored(entry).read_bytes())


class Shown:
    """What the oracle was shown before it wrote the same itself: output of commands, titles."""

    def __init__(self, attempt: Attempt) -> None:
        self._seen = [(step, Said([text])) for step, text in attempt.seen()]
        self._written: list[tuple[int, Said]] = []
        for step in Replay(RunFolder(attempt.folder)).steps():
            outputs = step.info.get("shell") or {}
            text = "\n".join(str(outputs.get(stream) or "") for stream in _OUTPUTS)
            if text.strip():
                self._seen.append((step.index, Said([text])))
            words = [
                v for k, v in (step.action or {}).items() if k != "type" and isinstance(v, str)
            ]
            if words:
                self._written.append((step.index, Said(words)))

    def has(self, value: str | int | float) -> bool:
        """Whether it was shown, and not written before or by the command that shows it."""
        shown = min((step for step, said in self._seen if said.has(value)), default=None)
        if shown is None:
            return False
        return all(step > shown for step, said in self._written if said.has(value))
