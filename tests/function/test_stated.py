"""What the source states of a function: in its words, and beside the estimate of the same case."""

from __future__ import annotations

import json
import math

import pytest
from in_process import completed
from quotations import numbers, papers, plain

from routecast.errors import FileProblem
from routecast.function.catalogue import function_names, parse_function, read_function
from routecast.function.chain import read_chain
from routecast.function.model import Stated
from routecast.function.stated import ComparedStatement, compared_statements
from routecast.hardware.catalogue import read_hardware

PAPER_HOST = "xeon-e5-2690v2"
PAPER_GIGA = 1024e6
STATED = [(name, entry) for name in function_names() for entry in read_function(name).stated]
IDS = [f"{name}-{item.quantity}-{item.value:g}" for name, item in STATED]


def beside(name: str, value: float, giga: float = PAPER_GIGA) -> ComparedStatement:
    rows = compared_statements(read_chain(name), read_hardware(PAPER_HOST), giga=giga)
    return next(row for row in rows if row.stated.value == value)


@pytest.mark.parametrize(("name", "stated"), STATED, ids=IDS)
def test_each_stated_number_stands_in_its_quotation(name: str, stated: Stated) -> None:
    assert stated.value in numbers(stated.quote)


@pytest.mark.parametrize(("name", "stated"), STATED, ids=IDS)
def test_quotations_are_the_words_of_the_paper(name: str, stated: Stated) -> None:
    assert any(plain(stated.quote) in text for text in papers())


@pytest.mark.parametrize("name", ["l2_switch", "learning_switch", "mpls_switch", "bng", "microflow_switch"])
def test_where_ours_differs_by_more_than_a_percent_the_file_says_why(name: str) -> None:
    rows = compared_statements(read_function(name), read_hardware(PAPER_HOST))
    assert rows
    assert not [
        row.stated.quote
        for row in rows
        if not abs(row.error_ratio) < 0.01 and not (row.stated.why or row.stated.unknown)
    ]


def test_17_47_mpps_are_211_cycles_at_the_papers_gigahertz() -> None:
    # Sec. 4.1.3; 3.6 * 1024 MHz / 211.
    assert beside("l2_switch", 17.47).ours == pytest.approx(3686.4 / 211.0)
    assert beside("l2_switch", 17.47).error_ratio == pytest.approx(0.0, abs=1e-3)


def test_23_74_mpps_of_memory_are_25_51_of_the_link_here() -> None:
    result = beside("bng", 23.74)
    # 20 Gbit/s of 78-byte frames with gap and preamble, 98 bytes each.
    assert result.ours == pytest.approx(20e9 / (8 * 98) / 1e6)


def test_gigabits_are_counted_on_the_wire() -> None:
    row = beside("l2_switch", 11.36)
    assert row.ours == pytest.approx(beside("l2_switch", 17.31).ours * 8 * 84 / 1024)


def test_another_host_has_nothing_stated() -> None:
    assert not compared_statements(read_function("l2_switch"), read_hardware("xeon-e5-2699v4"))


def test_one_direction_shows_what_is_stated_of_it() -> None:
    function, hardware = read_function("bng"), read_hardware(PAPER_HOST)
    rows = compared_statements(function, hardware, directions=["access"])
    assert {row.stated.direction for row in rows} == {"access"}
    assert rows == compared_statements(read_chain("bng/access"), hardware)


def test_several_functions_in_a_row_have_nothing_stated() -> None:
    assert not read_chain("l2_switch,mpls_switch").stated


def test_the_command_prints_what_is_stated_beside_the_estimate() -> None:
    shown = completed("function", "l2_switch", "--on", PAPER_HOST).stdout
    assert "What the source states" in shown
    assert "17.47" in shown
    assert "sec. 4.1.3" in shown
    whole = json.loads(completed("function", "bng", "--on", PAPER_HOST, "--json").stdout)
    row = next(item for item in whole["stated"] if item["stated"] == 23.74)
    assert row["ours"] == pytest.approx(25.51, abs=0.01)
    assert row["section"] == "sec. 4.2"
    assert "only 23.74 Mpps" in row["quote"]


WIRE = """
name = "wire"
[[direction]]
name = "forward"
[[direction.step]]
operation = "io_mem"
with = { hdr = 14, data = "frame - 14" }
[[stated]]
quantity = "core"
value = 5
on = "xeon-e5-2690v2"
section = "sec. 1"
quote = "drops to 5 Mpps"
"""


def test_what_is_not_known_has_no_value_of_ours() -> None:
    function = parse_function(WIRE + 'unit = "Mpps"\nunknown = "the miss is not modelled"')
    (row,) = compared_statements(function, read_hardware(PAPER_HOST))
    assert math.isnan(row.ours)
    assert row.to_json()["ours"] is None


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ('unit = "cycles"', "stated[0].unit"),
        ('unit = "Mpps"\ndirection = "back"', "stated[0].direction"),
        ('unit = "Mpps"\nwhose = "ours"', "stated[0].whose"),
    ],
)
def test_a_statement_that_contradicts_itself_is_refused(more: str, place: str) -> None:
    with pytest.raises(FileProblem) as caught:
        parse_function(WIRE + more)
    assert place in [problem.place for problem in caught.value.problems]
