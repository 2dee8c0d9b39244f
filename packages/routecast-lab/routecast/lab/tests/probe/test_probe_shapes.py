"""Coefficients that are known are found again, with a residual that says how well."""

from __future__ import annotations

import math

import pytest
from probe_sample import HT_LOOKUP, KnownOperation, sample

from routecast.errors import FitProblem
from routecast.function.operations import ASSUMED, OPERATIONS
from routecast.hardware.formula import Formula
from routecast.lab.probe import CostShape, Sample, fit_operation, fit_operations, shapes


def test_known_coefficients_are_found() -> None:
    costs, _ = fit_operations(sample(scatter=0.0)["operations"])
    cost = costs["ht_lookup"]
    for parameters in ({"N": 1, "HE": 24, "p": 0, "max": 9}, {"N": 8, "HE": 64, "p": 0, "max": 9}):  # not measured
        assert cost.cycles.evaluate(parameters) == pytest.approx(HT_LOOKUP.cycles(parameters), rel=1e-3)
    assert cost.residual_ratio < 1e-3
    assert cost.samples == len(HT_LOOKUP.grid)
    assert math.isclose(cost.factor, 1.0)


def test_the_fullest_of_tables_that_are_alike_counts() -> None:
    shape = CostShape(operation="ht_lookup", terms=(Formula("1"),), at_greatest="p")
    samples = [
        Sample(parameters={"N": n, "p": p}, cycles=cycles)
        for n, p, cycles in ((1, 0.0, 5.0), (1, 0.1, 20.0), (2, 0.2, 20.0), (2, 0.0, 7.0))
    ]
    cost = fit_operation(shape, samples)
    assert cost.cycles.evaluate({}) == pytest.approx(20.0)
    assert cost.samples == 2


def test_one_sample_far_off_does_not_bend_the_formula() -> None:
    shape = CostShape(operation="deparse", terms=(Formula("1"), Formula("b")))
    samples = [Sample(parameters={"b": b}, cycles=2.0 + 0.5 * b) for b in range(1, 12)]
    samples[4] = Sample(parameters={"b": 5}, cycles=40.0)
    cost = fit_operation(shape, samples)
    assert cost.cycles.evaluate({"b": 20}) == pytest.approx(12.0, rel=0.1)
    assert cost.residual_ratio > 0.2  # told all the same: (4.5 − 40) / 40 of one of eleven


def test_a_parameter_may_be_another_in_use_than_in_the_samples() -> None:
    shape = CostShape(operation="ht_lookup", terms=(Formula("1"), Formula("p")), in_use={"p": "max(p, 0.1)"})
    samples = [Sample(parameters={"p": p}, cycles=10.0 + 50.0 * p) for p in (0.0, 0.1, 0.2)]
    cost = fit_operation(shape, samples)
    assert cost.cycles.evaluate({"p": 0.0}) == pytest.approx(15.0, rel=1e-3)
    assert cost.cycles.evaluate({"p": 0.2}) == pytest.approx(20.0, rel=1e-3)
    assert cost.residual_ratio < 1e-3


def test_the_residual_is_the_scatter_of_the_samples() -> None:
    shape = CostShape(operation="parse", terms=(Formula("1"),))
    cost = fit_operation(shape, [Sample(parameters={}, cycles=cycles) for cycles in (9.5, 10.5)])
    # min over c of (c/m − 1)² + (c/n − 1)²: c = Σ 1/m / Σ 1/m²
    best = (1 / 9.5 + 1 / 10.5) / (1 / 9.5**2 + 1 / 10.5**2)
    expected = math.sqrt(((best / 9.5 - 1) ** 2 + (best / 10.5 - 1) ** 2) / 2)
    assert cost.cycles.evaluate({}) == pytest.approx(best, rel=1e-3)
    assert cost.residual_ratio == pytest.approx(expected, rel=1e-2)


def test_small_costs_weigh_as_much_as_large_ones() -> None:
    # An absolute fit of a constant would lie near the mean, 505; a relative one near the small values.
    shape = CostShape(operation="parse", terms=(Formula("1"),))
    cost = fit_operation(shape, [Sample(parameters={}, cycles=cycles) for cycles in (10.0, 1000.0)])
    assert cost.cycles.evaluate({}) < 20.0


def test_no_coefficient_is_negative() -> None:
    falling = KnownOperation(
        name="checksum", cycles=lambda p: 100.0 - p["b"], grid=tuple({"b": b} for b in (8, 20, 40))
    )
    costs, _ = fit_operations(sample(operations=(falling,))["operations"])
    assert "-" not in costs["checksum"].cycles.text


def test_a_shape_that_does_not_fit_is_reported() -> None:
    odd = KnownOperation(
        name="mem_io", cycles=lambda p: 5.0 + p["data"], grid=tuple({"hdr": 64, "data": d} for d in (0, 50, 99))
    )
    _, notes = fit_operations(sample(operations=(odd,))["operations"])
    assert any("mem_io: its formula misses" in note for note in notes)


def test_an_operation_that_was_not_measured_is_reported() -> None:
    _, notes = fit_operations(sample()["operations"])
    assert "operation aes_gcm was not measured" in notes


def test_samples_must_be_numbers_of_cycles() -> None:
    for cycles in (-1.0, math.nan, math.inf):
        with pytest.raises(FitProblem, match="parse"):
            fit_operation(CostShape(operation="parse", terms=(Formula("1"),)), [Sample(parameters={}, cycles=cycles)])
    with pytest.raises(FitProblem, match="parse"):
        fit_operation(CostShape(operation="parse", terms=(Formula("1"),)), [])


def test_what_costs_next_to_nothing_is_no_misfit() -> None:
    shape = CostShape(operation="strip", terms=(Formula("1"),))
    cost = fit_operation(shape, [Sample(parameters={}, cycles=cycles) for cycles in (0.0, 0.02, 0.04)])
    assert cost.residual_ratio < 0.05  # a part of a cycle, although one sample is all of it off


def test_every_operation_has_a_shape_over_its_own_parameters() -> None:
    # What is assumed where a host says nothing is not timed: any program is made of instructions.
    assert shapes().keys() == OPERATIONS.keys() - ASSUMED.keys()
    for name, shape in shapes().items():
        allowed = OPERATIONS[name].parameters.keys()
        for term in shape.terms:
            assert term.names <= allowed, f"{name}: {term.text}"
        for access in shape.accesses:
            assert access.lines.names <= allowed, f"{name}: {access.lines.text}"
            assert access.table_lines is None or access.table_lines.names <= allowed
            assert (access.of == "table") == (access.table_lines is not None), name
