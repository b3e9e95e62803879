"""JSON, CSV and INI by their own rules."""

from __future__ import annotations

import pytest

from .conftest import Judge


@pytest.mark.parametrize("seen", ['{"a": 0}', '{"a": 0.0}', '{"b": 1, "a": 0}'])
def test_a_json_value_is_found_at_its_path(judge: Judge, seen: str):
    """Order and spelling of a number are free."""
    assert judge("data.json_value", seen, path=["a"], expected=0).passed


@pytest.mark.parametrize(
    "seen",
    ['{"a": "0"}', '{"a": false}', '{"a": null}', '{"a": NaN}', '{"a": ""}', '{}', '[0]', "",
     '{"a": 0, "a": 0}', '{"a": [0]}', "{'a': 0}", "[" * 100_000],
)  # fmt: skip
def test_another_type_is_another_value(judge: Judge, seen: str):
    """Null, false, empty and NaN are not 0; a hostile nesting is a plain fail (B137)."""
    assert not judge("data.json_value", seen, path=["a"], expected=0).passed


def test_a_decimal_comma_is_read_by_the_declared_locale(judge: Judge):
    """1,5 is 1.5 and never 15 (B143)."""
    german = {"delimiter": ";", "decimal": ","}
    assert judge("data.csv_rows", "1,5;2,0\n", expected=[[1.5, 2]], **german).passed
    assert not judge("data.csv_rows", "1,5;2,0\n", expected=[[15, 20]], **german).passed
    assert not judge("data.csv_rows", "1,5;2,0\n", expected=[[1.5, 2]], delimiter=";").passed


def test_rows_are_all_rows(judge: Judge):
    """A row too many, too few or elsewhere is a difference; order only where declared."""
    assert judge("data.csv_rows", "a,b\n1,\n", expected=[["a", "b"], [1, ""]]).passed
    assert not judge("data.csv_rows", "a,b\n1,\n", expected=[["a", "b"], [1, 0]]).passed
    assert not judge("data.csv_rows", "a,b\n", expected=[["a", "b"], [1, ""]]).passed
    assert judge("data.csv_rows", "b\na\n", expected=[["a"], ["b"]], order=False).passed
    assert not judge("data.csv_rows", "a\na\n", expected=[["a"], ["b"]], order=False).passed


def test_a_cell_is_found_by_row_and_header(judge: Judge):
    """Row 1 is the header."""
    table = "name,sum\nx,5\n"
    assert judge("data.csv_cell", table, row=2, column="sum", expected=5).passed
    assert not judge("data.csv_cell", table, row=3, column="sum", expected=5).passed
    assert not judge("data.csv_cell", table, row=2, column="total", expected=5).passed


@pytest.mark.parametrize("seen", ['a,"b', "x" * 2_000_000, "\0"])
def test_broken_csv_is_a_plain_fail(judge: Judge, seen: str):
    """Unclosed quotes and huge cells end the check, not the grading."""
    assert not judge("data.csv_rows", seen, expected=[["a", "b"]]).passed


def test_an_ini_value_is_that_of_its_section(judge: Judge):
    """Names are exact; a key twice is refused."""
    text = "[One]\nKey=v\n[Two]\nKey=w\n"
    assert judge("data.ini_value", text, section="Two", key="Key", expected="w").passed
    assert not judge("data.ini_value", text, section="Two", key="key", expected="w").passed
    assert not judge("data.ini_value", "[T]\na=1\na=1", section="T", key="a", expected="1").passed


def test_what_a_program_leaves_out_is_what_the_task_says(judge: Judge):
    """Only a missing key is the default; another value or shape is not."""
    rule = {"path": ["bookmark_bar", "show"], "expected": False, "default": False}
    assert judge("data.json_value", "{}", **rule).passed
    assert judge("data.json_value", '{"bookmark_bar": {}}', **rule).passed
    for other in ('{"bookmark_bar": {"show": true}}', '{"bookmark_bar": []}', "", None, "[]"):
        assert not judge("data.json_value", other, **rule).passed
    assert not judge("data.json_value", "{}", path=["a"], expected=1, default=0).passed


def test_toml_has_types_and_dates(judge: Judge):
    """A date is its ISO text; a number in quotes is text."""
    text = 'port = 8080\n[owner]\nborn = 2025-10-21\nnames = ["a", "b"]\n'
    assert judge("data.toml_value", text, path=["port"], expected=8080).passed
    assert judge("data.toml_value", text, path=["owner", "born"], expected="2025-10-21").passed
    assert judge("data.toml_value", text, path=["owner", "names", 1], expected="b").passed
    for other in ('port = "8080"', "port = 8081", "port = nan", "port = 8080\nport = 8080", ""):
        assert not judge("data.toml_value", other, path=["port"], expected=8080).passed


def test_an_xml_value_is_that_of_the_one_element(judge: Judge):
    """Order of attributes, white space and quotes are free; a second such element is refused."""
    text = "<c v='1'><p name='a' value='x'/><p value='12.50' name='b'> t </p></c>"
    rule = {"path": "p[@name='b']", "attribute": "value", "expected": 12.5}
    assert judge("data.xml_value", text, **rule).passed
    assert judge("data.xml_value", text, path="p[@name='b']", expected="t").passed
    for other in (
        text.replace("12.50", ""),
        text.replace("12.50", "12.51"),
        text.replace("'a'", "'b'"),
        text.replace("value='12.50'", ""),
        "<c/>",
        text[:-1],
        None,
    ):
        assert not judge("data.xml_value", other, **rule).passed


_BOMB = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))


@pytest.mark.parametrize(
    "seen",
    [
        f'<!DOCTYPE a [<!ENTITY l0 "x">{_BOMB}]><a>&l9;</a>',
        '<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/hostname">]><a>&e;</a>',
        '<!DOCTYPE a SYSTEM "http://127.0.0.1:1/x"><a>1</a>',
        '<?xml version="1.0" encoding="nonsense"?><a>1</a>',
        "<a>" * 50_000,
        "<a>" * 50_000 + "</a>" * 50_000,
        b"\xff\xfe\x00\x01",
        "",
    ],
)
def test_hostile_xml_is_a_plain_fail(judge: Judge, seen: str | bytes):
    """No entity is expanded, nothing outside is read, no depth ends the grading."""
    assert not judge("data.xml_value", seen, path=".", expected="1").passed


@pytest.mark.parametrize(
    ("check", "seen", "wanted"),
    [
        ("data.ini_value", "[s]\na" + " " * 100_000 + "b", {"section": "s", "key": "a"}),
        ("data.ini_value", "[s]\n" + "=\n" * 100_000, {"section": "s", "key": "a"}),
        ("data.toml_value", "a." * 20_000 + "b = 1", {"path": ["x"]}),
        ("data.toml_value", "a = " + "[" * 100_000, {"path": ["x"]}),
    ],
)
@pytest.mark.usefixtures("hurried")
def test_a_parser_that_a_file_makes_try_for_ever_is_a_plain_fail(judge: Judge, check, seen, wanted):
    """Its author gets 0 and no `unscored`."""
    assert not judge(check, seen, expected="1", **wanted).passed


@pytest.mark.parametrize(
    "check", ["json_value", "toml_value", "ini_value", "xml_value", "csv_rows"]
)
@pytest.mark.parametrize("seen", [b"\x00\xff" * 50, b"\x00" * 100, b"[\x00\x00]", b"=", b"[", b"a"])
def test_random_bytes_are_a_plain_fail(judge: Judge, check: str, seen: bytes):
    """Whatever the parser."""
    wanted = {
        "ini_value": {"section": "s", "key": "k", "expected": "1"},
        "xml_value": {"path": ".", "expected": "1"},
        "csv_rows": {"expected": [["1"]]},
    }
    assert not judge(f"data.{check}", seen, **wanted.get(check, {"expected": 1})).passed


@pytest.mark.parametrize("depth", [900, 990, 1000, 5000])
def test_a_deep_value_can_be_shown_or_is_refused(judge: Judge, depth: int):
    """As deep as the parser goes, the result's text must go too."""
    found = judge("data.json_value", "[" * depth + "]" * depth, expected=1)
    assert not found.passed
    assert repr(found.seen)


def test_csv_in_a_declared_dialect(judge: Judge):
    """Delimiter, quote, marks and encoding, as the task's locale writes them."""
    rows = [["Größe", "Summe"], ["a;b", 1234.5]]
    dialect = {"delimiter": ";", "quote": "'", "decimal": ",", "grouping": "."}
    text = "Größe;Summe\r\n'a;b';1.234,50\r\n"
    latin = {"encoding": "latin-1", **dialect}
    assert judge("data.csv_rows", text, expected=rows, **dialect).passed
    assert judge("data.csv_rows", text.encode("latin-1"), expected=rows, **latin).passed
    assert not judge("data.csv_rows", text.encode("latin-1"), expected=rows, **dialect).passed
    assert not judge(
        "data.csv_rows", text.replace("1.234", "1234."), expected=rows, **dialect
    ).passed
    assert not judge("data.csv_rows", text.replace("'", '"'), expected=rows, **dialect).passed


def test_ini_keys_before_any_section(judge: Judge):
    """Some programs write none at all."""
    assert judge("data.ini_value", "Web=x\n[s]\nWeb=y", section="", key="Web", expected="x").passed
    assert not judge("data.ini_value", "[s]\nWeb=x", section="", key="Web", expected="x").passed
