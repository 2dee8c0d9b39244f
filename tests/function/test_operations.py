"""The registry of elementary operations against Table 1 of Baldi & Sapio 2018."""

from __future__ import annotations

from routecast.function.catalogue import function_names, read_function
from routecast.function.operations import OPERATIONS

# Baldi & Sapio 2018, Table 1: row, operations, parameters. lpm_lookup's `max` is ours, and need not be given.
TABLE_1 = (
    (1, ("io_mem", "mem_io"), ("hdr", "data")),
    (2, ("parse", "deparse"), ("b",)),
    (3, ("increase", "decrease"), ("b",)),
    (4, ("sum",), ("b",)),
    (5, ("checksum", "inc_checksum"), ("b",)),
    (6, ("array_access",), ("es", "max")),
    (7, ("ht_lookup",), ("N", "HE", "max", "p")),
    (8, ("lpm_lookup",), ("b", "es")),
    (9, ("ct_insertion",), ("N", "HE", "max", "p")),
)


def test_the_registry_has_every_operation_of_table_1_with_its_parameters() -> None:
    for row, names, parameters in TABLE_1:
        for name in names:
            operation = OPERATIONS[name]
            assert operation.row == row
            assert tuple(operation.parameters)[: len(parameters)] == parameters
            assert set(operation.required) <= set(parameters)


def test_rows_beyond_table_1_are_none() -> None:
    named = {name for _, names, _ in TABLE_1 for name in names}
    assert {name for name, item in OPERATIONS.items() if item.row is not None} == named


def test_every_operation_says_what_it_does_and_where_it_is_from() -> None:
    for name, operation in OPERATIONS.items():
        assert operation.name == name
        assert operation.meaning
        assert operation.source
        assert all(parameter.meaning for parameter in operation.parameters.values())
        assert all(parameter.least < parameter.most for parameter in operation.parameters.values())


def test_every_shipped_function_says_where_it_is_from_and_why_each_step_is_there() -> None:
    for name in function_names():
        function = read_function(name)
        assert function.name == name
        assert function.title
        assert function.source
        assert all(step.why for direction in function.directions for step in direction.steps)
