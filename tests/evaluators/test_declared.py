"""Checks as a task declares them: arguments as TOML has them, faults found when it is loaded."""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path

import pytest

from cua_gym.grading.check import argument_faults
from cua_gym.grading.library import CheckLibrary
from cua_gym.task.checkpoints import value_faults

from .conftest import ROOT

GOOD = """
"answer.equals" = { expected = 42, variants = ["forty-two"], case = "fold" }
"answer.gave_up" = {}
"answer.gave_up_since" = { facts = [["2025-01-17", "17 January"]], forbidden = ["restored"] }
"browser.bookmark" = { url = "http://a.test/", name = "A", folder = ["other", "Work"] }
"browser.bookmarks" = { expected = [["A", "http://a.test/"], ["Work", [["B", "http://b.test/"]]]] }
"browser.downloaded" = { url = "http://a.test/f", path = "/home/user/Downloads/f" }
"browser.not_visited" = { url = ".*" }
"browser.tabs" = { expected = ["http://a.test/"], order = false, active = "http://a.test/" }
"browser.visited" = { url = "http://a.test/", visits = 2 }
"data.csv_cell" = { row = 2, column = "sum", expected = 5, delimiter = ";", decimal = "," }
"data.csv_rows" = { expected = [["a", 1.5], ["b", 2]], quote = "'", encoding = "latin-1" }
"data.ini_value" = { section = "", key = "a", expected = "1" }
"data.json_value" = { path = ["a", 0], expected = { b = true }, default = false }
"data.toml_value" = { path = ["a"], expected = [1, 2], absolute = 0.5 }
"data.xml_value" = { path = "p[@name='a']/v", attribute = "x", expected = 3 }
"desktop.default_app" = { mime = "text/plain", expected = "mousepad.desktop" }
"desktop.no_window" = { title = ".*" }
"desktop.setting" = { form = "gvariant", expected = [["xkb", "us"]] }
"desktop.window" = { title = "a", app = "b", box = [0, 0, 10, 10], tolerance = 3, active = true }
"files.absent" = {}
"files.entry" = { path = "a", kind = "link", target = "b", mode = "0644" }
"files.exists" = {}
"files.only_changed" = { may_change = ["Notes/**"], noise = [] }
"images.exif" = { expected = { Artist = "A", Orientation = 1 }, absent = ["GPSInfo"] }
"images.size" = { width = 1, height = 1, file_format = "PNG" }
"numbers_dates.date" = { expected = "2025-10-21", order = "dmy", year_optional = true }
"numbers_dates.number" = { expected = 5, unit = "$", unit_variants = ["USD"], grouping = "," }
"processes_services.listening" = { port = 80, addresses = ["*"], protocol = "udp", process = "a" }
"processes_services.not_listening" = { port = 80 }
"processes_services.not_running" = { command = "/usr/bin/.*" }
"processes_services.running" = { command = "/usr/bin/a", user = "user", count = 1 }
"processes_services.unit" = { name = "a.service", expected = { ActiveState = "active" } }
"processes_services.units" = { expected = { "a.service" = { ActiveState = "active" } } }
"screen.colour" = { box = [0, 0, 9, 9], colour = "#ff0000", tolerance = 3, share = 0.5 }
"sqlite.rows" = { query = "SELECT a FROM t WHERE b = ?", values = ["x"], expected = [[1]] }
"text.equals" = { expected = "a", variants = ["b"], newline = "exact", form = "NFKC" }
"text.lines" = { expected = ["a"], order = false, blank = "ignore" }
"text.matches" = { pattern = "a+" }
"text.states" = { facts = [["a", "b"]], forbidden = ["c"] }
"""
BYTES = {
    "files.moved": {"expected": b"x"},
    "files.same_bytes": {"expected": b"x"},
    "files.tree_equals": {"root": "/a", "expected": {"b": b"x", "c": "y"}},
    "images.region": {"reference": b"x", "box": [0, 0, 1, 1], "max_difference": 1, "unlike": b"y"},
    "screen.shows": {"template": b"x", "tolerance": 4},
}
"""Arguments that placeholders such as ``{hidden.FILE}`` become."""
DECLARED = {**tomllib.loads(GOOD), **BYTES}


@pytest.fixture
def library(tmp_path: Path) -> CheckLibrary:
    """The bundled checks."""
    return CheckLibrary(ROOT / "evaluators", tmp_path)


@pytest.mark.parametrize("name", DECLARED)
def test_arguments_are_taken_as_toml_has_them(library: CheckLibrary, name: str):
    """No fault, by name or by value."""
    check = library.find(name)
    arguments = DECLARED[name]
    assert argument_faults(check, check.subject, set(arguments)) == []
    assert list(value_faults(check, arguments)) == []


def test_every_check_of_these_subjects_is_declared_here():
    """A new check comes with an example."""
    for subject in sorted({name.partition(".")[0] for name in DECLARED}):
        module = importlib.import_module(f"evaluators.{subject}")
        checks = {n for n, v in vars(module).items() if getattr(v, "is_check", False)}
        assert {f"{subject}.{n}" for n in checks} <= DECLARED.keys()


@pytest.mark.parametrize(
    ("name", "argument", "value"),
    [
        ("browser.bookmark", "folder", ["Work"]),
        ("browser.not_visited", "url", "("),
        ("browser.tabs", "expected", "http://a.test/"),
        ("data.csv_rows", "delimiter", ";;"),
        ("data.csv_rows", "encoding", "latin-99"),
        ("data.xml_value", "path", "p[@"),
        ("desktop.setting", "form", "dconf"),
        ("desktop.window", "box", [0, 0, 1.5, 1]),
        ("files.entry", "mode", "rw-"),
        ("files.entry", "kind", "folder"),
        ("files.only_changed", "may_change", "Notes/**"),
        ("processes_services.listening", "port", "80"),
        ("processes_services.running", "command", "*"),
        ("processes_services.unit", "expected", {"NRestarts": 0}),
        ("processes_services.units", "expected", {"a.service": "active"}),
        ("screen.colour", "colour", "red"),
        ("sqlite.rows", "query", "DELETE FROM t"),
        ("sqlite.rows", "expected", [1]),
        ("text.states", "facts", ["a"]),
    ],
)
def test_a_fault_in_them_is_found(library: CheckLibrary, name: str, argument: str, value: object):
    """Before anything boots, and before an agent could be blamed."""
    assert list(value_faults(library.find(name), {argument: value}))
