"""Ranges, choices and the kinds that take a field hold in files, in JSON Schema and for values that code makes."""

from __future__ import annotations

from typing import Literal

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from routecast.errors import Problem
from routecast.quantity.fields import Count, Ratio, Span
from routecast.quantity.schema import adapter, faults_in, field, field_faults, is_faulty, schema_of, value
from routecast.router.files import router_schema
from routecast.virtual.catalogue import technology_schema

KINDS = ("plain", "sliced", "timed")


@value
class Turn:
    """How units are granted."""

    kind: Literal["plain", "sliced", "timed"] = field("Order of turns", default="plain")
    slices: Count = field("Slices", default=1, ge=1, le=8, only_where={"kind": ("sliced",)})
    pause_s: Span = field("Pause, s", default=0.0, le=10.0, only_where={"kind": ("sliced", "timed")})
    order: tuple[Count, ...] = field("Order", default=(), max_length=3, only_where={"kind": ("timed",)})


@value
class Plan:
    """Two turns."""

    first: Turn = field("First turn", default=Turn())
    then: tuple[Turn, ...] = field("Turns after it", default=())


def is_read(table: dict[str, object]) -> bool:
    try:
        return not field_faults(adapter(Turn).validate_python(table))
    except ValidationError:
        return False


tables = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.sampled_from((*KINDS, "other")),
        "slices": st.integers(-1, 10),
        "pause": st.sampled_from(("0 s", "0.0 ms", "2 ms")),
        "order": st.lists(st.integers(-1, 3), max_size=4),
    },
)


@given(tables)
def test_the_json_schema_takes_the_tables_that_are_read(table: dict[str, object]) -> None:
    by_schema = jsonschema.Draft202012Validator(schema_of(Turn)).is_valid(table)
    assert by_schema == is_read(table), table


@given(tables)
def test_the_schema_of_a_part_holds_in_the_whole(table: dict[str, object]) -> None:
    schema = jsonschema.Draft202012Validator(schema_of(Plan))
    assert schema.is_valid({"first": table, "then": [{}, table]}) == is_read(table)


def test_faults_stand_at_their_fields() -> None:
    plan = Plan(first=Turn(slices=9), then=(Turn(), Turn(kind="timed", pause_s=-1.0, order=(1, 2, 3, 4))))
    faults = field_faults(plan, "plan")
    assert [fault.place for fault in faults] == [
        "plan.first.slices",
        "plan.first.slices",
        "plan.then[1].pause_s",
        "plan.then[1].order",
    ]
    assert "1 to 8" in faults[0].message
    assert "only sliced does" in faults[1].message
    assert "at most 3" in faults[3].message


def test_a_field_may_have_its_default_under_every_kind() -> None:
    assert field_faults(Turn(kind="timed", slices=1, pause_s=0.0, order=())) == []
    assert field_faults(Turn(slices=True)) != []


@pytest.mark.parametrize("made", [Turn(kind="other"), Turn(pause_s=float("nan")), Turn(order=[1]), Turn(slices="2")])  # type: ignore[arg-type]
def test_a_value_of_the_wrong_type_is_a_fault_and_no_crash(made: Turn) -> None:
    assert len(field_faults(made)) >= 1


def test_values_that_share_parts_are_judged_each() -> None:
    shared = Turn(kind="sliced", slices=3)
    wrong = Turn(kind="sliced", slices=12)
    plans = [Plan(first=shared), Plan(first=shared), Plan(first=wrong), Plan(first=wrong), Plan(first=shared)]
    assert [fault.place for fault in faults_in("plan", plans)] == ["plan[2].first.slices", "plan[3].first.slices"]
    assert faults_in("plan", [None, Plan()])[0].place == "plan[0]"


def test_a_fault_inside_of_a_part_makes_the_part_faulty() -> None:
    faults = [Problem("task[2].service", "is wrong")]
    assert is_faulty(faults, "task[2]", "port[0]")
    assert is_faulty(faults, "task")
    assert not is_faulty(faults, "task[1]", "task[2].service.per_byte", "task[2].serv")


def test_a_table_that_changes_a_base_may_leave_the_kind_to_it() -> None:
    technology = {"name": "t", "reference": "a host", "base": "kvm-vhost-2012", "policy": {"quantum": "1 ms"}}
    assert jsonschema.Draft202012Validator(technology_schema()).is_valid(technology)


@pytest.mark.parametrize(
    ("part", "table", "is_right"),
    [
        ("Policy", {"kind": "fair", "quantum": "1 ms"}, True),
        ("Policy", {"kind": "priority", "quantum": "1 ms"}, False),
        ("Policy", {"quantum": "1 ms"}, False),
        ("Route", {"kind": "random", "to": ["a", "b"], "weights": [1, 2]}, True),
        ("Route", {"kind": "rss", "to": ["a", "b"], "weights": [1, 2]}, False),
        ("Activation", {"kind": "interrupt", "linger": "50 us"}, True),
        ("Activation", {"kind": "thread", "linger": "50 us"}, False),
    ],
)
def test_the_schema_of_routers_knows_which_kind_takes_a_key(
    part: str, table: dict[str, object], is_right: bool
) -> None:
    schema = router_schema()
    only = {"$schema": schema["$schema"], "$ref": f"#/$defs/{part}", "$defs": schema["$defs"]}
    assert jsonschema.Draft202012Validator(only).is_valid(table) == is_right


@value
class Shares:
    within: Ratio = field("a deviation", default=0.05)


@pytest.mark.parametrize(
    ("written", "ratio"), [("5 %", 0.05), ("0.1%", 0.001), ("100 %", 1.0), ("0%", 0.0), ("99.9 %", 0.999), (0.25, 0.25)]
)
def test_a_share_of_a_file_is_a_number_or_a_text_in_percent(written: object, ratio: float) -> None:
    assert adapter(Shares).validate_python({"within": written}).within == ratio
    jsonschema.validate({"within": written}, schema_of(Shares))


@pytest.mark.parametrize("written", ["150 %", "-1 %", "five %", "0.05", "%", True, 5])
def test_a_share_of_a_file_out_of_range_or_without_its_sign_is_refused(written: object) -> None:
    with pytest.raises(ValidationError):
        adapter(Shares).validate_python({"within": written})
