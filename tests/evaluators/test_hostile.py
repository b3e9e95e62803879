"""A whole grading of the worst that an agent can leave: every zero is deserved and given."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cua_gym.grading.checkpoints import Checkpoint, Rubric
from cua_gym.grading.grade import Limits, grade
from cua_gym.grading.items import MANIFEST, VERSION
from cua_gym.grading.probes import Probe

from .conftest import ROOT


@dataclass(frozen=True)
class Asked:
    """What a task asks, as the grader takes it."""

    probes: tuple[Probe, ...]
    rubric: Rubric


def endless_view(folder: Path) -> bytes:
    """A database whose table is a view without end."""
    path = folder / "made.db"
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE VIEW t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) "
            "SELECT i FROM n"
        )
    connection.close()
    return path.read_bytes()


def huge_png() -> bytes:
    """Four gigabytes of black in some kilobytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        crc = zlib.crc32(kind + data).to_bytes(4, "big")
        return len(data).to_bytes(4, "big") + kind + data + crc

    size = (1 << 15).to_bytes(4, "big") * 2
    pixels = zlib.compress(bytes(1 << 22), 9)
    head = chunk(b"IHDR", size + b"\x08\x06\0\0\0")
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def deep(depth: int = 995) -> str:
    """As deep as a parser takes, and then shown in the result."""
    return "[" * depth + "]" * depth


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
CASES: list[tuple[str, Any, dict[str, Any]]] = [
    ("text.equals", "a" + "\u0301\u0323" * 500_000, {"expected": "a", "form": "NFC"}),
    ("text.matches", "a" * 60, {"pattern": "(a|a)*b"}),
    ("text.states", "1,1" * 2_000_000, {"facts": [["1"]]}),
    ("text.equals", "\ud800".encode("utf-8", "surrogatepass"), {"expected": ""}),
    ("numbers_dates.number", "9" * 3_000_000, {"expected": 9}),
    ("numbers_dates.date", "1st of " * 1_000_000, {"expected": "2025-10-21"}),
    ("data.json_value", deep(), {"expected": 1}),
    ("data.json_value", "[" * 8_000_000, {"expected": 1}),
    ("data.json_value", '{"a": "\\ud800"}', {"path": ["a"], "expected": 1}),
    ("data.json_value", "[" + "{}," * 4_000_000 + "{}]", {"expected": 1}),
    ("data.toml_value", "a." * 400_000 + "b = 1", {"path": ["a"], "expected": 1}),
    ("data.ini_value", "[s]\na" + " " * 900_000 + "b", {"section": "s", "key": "a",
                                                        "expected": ""}),
    ("data.xml_value", f'<!DOCTYPE a [<!ENTITY l0 "x">{LAUGHS}]><a>&l9;</a>', {"path": ".",
                                                                            "expected": "x"}),
    ("data.xml_value", "<a>" * 4_000_000, {"path": ".", "expected": "x"}),
    ("data.csv_rows", "a\n" * 4_000_000, {"expected": [["a"]]}),
    ("images.size", huge_png(), {"width": 1 << 15, "height": 1 << 15}),
    ("images.size", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", {"width": 9,
                                                                           "height": 9}),
    ("browser.bookmark", '{"roots": {"bookmark_bar": ' + deep() + "}}", {"url": "http://a.test/"}),
    ("processes_services.unit", "Id=a\n" * 1_000_000, {"name": "a", "expected": {}}),
    ("processes_services.running", "1 u S " + " " * 1_000_000, {"command": "x"}),
    ("desktop.setting", "[" * 2_000_000, {"expected": "x", "form": "gvariant"}),
    ("sqlite.rows", endless_view, {"query": "SELECT i FROM t", "expected": [[1]]}),
]  # fmt: skip


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One grading of all of them, in the grader's own process with its own limits."""
    folder = tmp_path_factory.mktemp("evidence")
    manifest, points = [], []
    contents = [("submission", "file", json.dumps({"kind": "submit"}))]
    for number, (check, content, _) in enumerate(CASES):
        data = content(tmp_path_factory.mktemp("made")) if callable(content) else content
        kind = {"sqlite.rows": "glob"}.get(check, "file")
        contents.append((f"e{number}", kind, data))
    for name, kind, content in contents:
        data = content.encode() if isinstance(content, str) else content
        (folder / name).write_bytes(data)
        entry = {"guest": f"/{name}", "kind": "file", "size": len(data), "stored": name,
                 "sha256": hashlib.sha256(data).hexdigest()}  # fmt: skip
        source = f"/{name}*" if kind == "glob" else f"/{name}"
        manifest.append({"name": name, "kind": kind, "source": source, "state": "present",
                         "note": "", "exit": None, "entries": [entry]})  # fmt: skip
    (folder / MANIFEST).write_text(json.dumps({"version": VERSION, "items": manifest}))
    for number, (check, _, arguments) in enumerate(CASES):
        weight, evidence = 1 / len(CASES), (f"e{number}",)
        points.append(Checkpoint(f"c{number}", weight, True, check, evidence, args=arguments))
    hidden = tmp_path_factory.mktemp("hidden")
    rubric = Rubric(True, tuple(points), hidden, ROOT / "evaluators", {}, {})
    outcome = grade(folder, Asked((), rubric), Limits())
    assert outcome.kind == "scored", outcome
    assert json.dumps(outcome.to_dict()).isascii()
    return {point.id: point for point in outcome.checkpoints}


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(CASES)))
def test_every_zero_is_given(results: dict[str, Any], number: int):
    """None is `unscored`, and none took what the others need."""
    found = results[f"c{number}"]
    assert (found.value, bool(found.message)) == (0.0, True)
