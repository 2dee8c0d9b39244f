"""Function files: what is wrong in them is said, with its place, all at once."""

from __future__ import annotations

import contextlib
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import FileProblem, RoutecastError
from routecast.function.catalogue import function_names, function_schema, parse_function, read_function

HEAD = """
name = "own"
[[table]]
name = "mac"
entries = 1000
entry = "12 B"
[[direction]]
name = "forward"
"""


def step(operation: str, values: str, more: str = "") -> str:
    return f'[[direction.step]]\noperation = "{operation}"\nwith = {{ {values} }}\n{more}\n'


def problems_of(text: str) -> dict[str, str]:
    with pytest.raises(FileProblem) as raised:
        parse_function(text, subject="own.function.toml")
    return {problem.place: problem.message for problem in raised.value.problems}


def test_a_function_of_ones_own_is_read(tmp_path: Path) -> None:
    path = tmp_path / "own.function.toml"
    path.write_text(HEAD + step("ht_lookup", 'N = 1, HE = "mac_entry_bytes", max = "mac_entries"', 'table = "mac"'))
    function = read_function(path)
    assert function.tables[0].entries == 1000
    assert function.directions[0].steps[0].parameters["max"].evaluate({"mac_entries": 1000.0}) == 1000.0


@pytest.mark.parametrize(
    ("steps", "place", "words"),
    [
        (step("ht_lokup", "N = 1"), "direction[0].step[0].operation", 'did you mean "ht_lookup"?'),
        (step("parse", ""), "direction[0].step[0].with.b", "is missing"),
        (step("parse", "b = 6, c = 6"), "direction[0].step[0].with.c", "is no parameter of parse"),
        (step("parse", 'b = "mac_entry"'), "direction[0].step[0].with.b", "mac_entry"),
        (step("parse", 'b = "1 / 0"'), "direction[0].step[0].with.b", "divides by zero"),
        (step("parse", 'b = "frame - 100"'), "direction[0].step[0].with.b", "not negative"),
        (step("parse", 'b = "frame +"'), "direction[0].step[0].with.b", "is no formula"),
        (step("parse", "b = true"), "direction[0].step[0].with.b", "number or a formula"),
        (step("parse", "b = nan"), "direction[0].step[0].with.b", "nan"),
        (step("parse", "b = 0"), "direction[0].step[0].with.b", "1 to 65535 B is allowed"),
        (step("io_mem", "hdr = 65, data = 0"), "direction[0].step[0].with.hdr", "longer than the frame"),
        (step("ht_lookup", "N = 1, HE = 8, max = 9, p = 2"), "direction[0].step[0].with.p", "0 to 1"),
        (step("parse", "b = 6", 'table = "mak"'), "direction[0].step[0].table", 'did you mean "mac"?'),
        (step("parse", "b = 6", "times = 0"), "direction[0].step[0].times", "a finite number > 0"),
        (step("parse", "b = 6", "often = 2"), "direction[0].step[0].often", "times"),
        ("", "direction[0].step", "has at least one [[direction.step]]"),
        ('growth = "-65 B"\n' + step("parse", "b = 6"), "direction[0].growth", "removes more than"),
        ('smallest_frame = "60 B"\n' + step("parse", "b = 6"), "direction[0].smallest_frame", "64"),
    ],
)
def test_a_wrong_function_is_refused_with_the_place(steps: str, place: str, words: str) -> None:
    problems = problems_of(HEAD + steps)
    assert place in problems
    assert words in problems[place]


def test_the_frame_that_leaves_may_hold_a_longer_header() -> None:
    text = HEAD + 'growth = "28 B"\n' + step("mem_io", "hdr = 70, data = 0")
    assert parse_function(text).directions[0].frame_growth_bytes == 28


def test_every_fault_is_reported_at_once_whether_of_shape_or_of_sense() -> None:
    problems = problems_of(
        HEAD + step("ht_lokup", "") + step("parse", "b = 6", "often = 2") + step("sum", "") + "[[direction]]\n"
    )
    assert set(problems) == {
        "direction[0].step[0].operation",
        "direction[0].step[1].often",
        "direction[0].step[2].with.b",
        "direction[1].name",
    }


def test_a_file_without_directions_has_no_operations() -> None:
    assert "at least one" in problems_of('name = "own"')["direction"]


def test_a_table_must_not_hide_what_formulas_know() -> None:
    text = 'name = "own"\n[[table]]\nname = "frame"\nentries = 0\nentry = "0 B"\n'
    assert set(problems_of(text)) >= {"table[0].entries", "table[0].entry"}
    text = text.replace("entries = 0", "entries = 1").replace('"0 B"', '"1 B"')
    assert 'neither "frame"' in problems_of(text)["table[0].name"]


def test_flows_come_from_a_table_that_is_there() -> None:
    text = 'flows_of = "mak"\n' + HEAD + step("parse", "b = 6")
    assert 'did you mean "mac"' in problems_of(text)["flows_of"]


def test_an_unknown_function_suggests_the_nearest() -> None:
    with pytest.raises(FileProblem, match='did you mean "l2_switch"'):
        read_function("l2_swich")


def test_a_file_that_is_no_toml_or_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileProblem, match="is no TOML"):
        parse_function("name = ")
    with pytest.raises(FileProblem, match="cannot be read"):
        read_function(tmp_path / "nowhere.function.toml")


def test_the_schema_allows_what_ships() -> None:
    schema = function_schema()
    operations = schema["$defs"]["Step"]["properties"]["operation"]["enum"]
    for name in function_names():
        for direction in read_function(name).directions:
            assert {step.operation for step in direction.steps} <= set(operations)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_on_purpose(text: str) -> None:
    try:
        tomllib.loads(text)
    except (ValueError, RecursionError):
        with pytest.raises(FileProblem):
            parse_function(text)
        return
    with pytest.raises(RoutecastError):
        parse_function(text)  # no text this short is a function


@given(st.text(max_size=60) | st.floats() | st.integers() | st.booleans() | st.lists(st.integers(), max_size=2))
def test_any_value_of_a_parameter_is_read_or_refused_on_purpose(value: object) -> None:
    from pydantic import ValidationError

    from routecast.function.model import Step
    from routecast.quantity.schema import adapter

    try:
        step = adapter(Step).validate_python({"operation": "parse", "with": {"b": value}})
    except ValidationError:
        return
    with contextlib.suppress(RoutecastError):
        assert step.parameters["b"].evaluate({"frame": 64.0, "payload": 46.0}) >= 0.0
