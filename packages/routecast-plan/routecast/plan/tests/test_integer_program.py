"""Integer programs whose coefficients differ by as much as a solver's tolerances do."""

from __future__ import annotations

import math

import pytest

from routecast.plan._integer_program import IntegerProgram, UnfaithfulSolver


@pytest.mark.parametrize("switch", [1e4, 1e6, 1e7])
def test_an_amount_that_needs_its_switch_is_feasible_however_large_the_switch_row(switch: float) -> None:
    # 3 (a + b) = 7 with a behind one switch or b behind the other: either alone carries it, at 7/3 and its switch.
    program = IntegerProgram(mip_rel_gap=0.0)
    amounts = [program.add_column(switch, cost=cost, is_integer=False) for cost in (3.5, 1.0)]
    switches = [program.add_column(cost=cost) for cost in (0.0, 5.0)]
    for amount, is_on in zip(amounts, switches, strict=True):
        program.add_row({amount: 1.0, is_on: -switch}, -math.inf, 0.0)
    program.add_row(dict.fromkeys(amounts, 3.0), 7.0, 7.0)
    program.add_row(dict.fromkeys(switches, 1.0), 0.0, 1.0)
    program.add_row(dict.fromkeys(amounts, 1.0), 0.0, 14.0)
    solution = program.solve(10.0)
    assert solution is not None
    assert solution.values == pytest.approx([0.0, 7.0 / 3.0, 0.0, 1.0], abs=1e-6)


def test_no_amount_flows_while_its_switch_is_off() -> None:
    # At 5e-7 a switch is whole to a tolerance of 1e-6: half a unit behind 1e6 would flow for nothing.
    program = IntegerProgram(mip_rel_gap=0.0)
    amounts = [program.add_column(1e6, cost=cost, is_integer=False) for cost in (3.5, 2.0, 1.0)]
    switches = [program.add_column(cost=cost) for cost in (1.0, 5.0, 1.0)]
    for amount, is_on in zip(amounts, switches, strict=True):
        program.add_row({amount: 1.0, is_on: -1e6}, -math.inf, 0.0)
    program.add_row(dict(zip(amounts, (1.0, 2.0, 2.0), strict=True)), 1.0, math.inf)
    program.add_row(dict.fromkeys(switches[:2], 1.0), 0.0, 1.0)
    solution = program.solve(10.0)
    assert solution is not None
    assert solution.values[2] == pytest.approx(0.5, abs=1e-6)
    assert solution.values[5] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("per_unit", [1e-8, 1e-9, 1e-10, 1e-11])
def test_a_coefficient_counts_however_small(per_unit: float) -> None:
    # So many units that their row reaches 1 need the switch; a solver that drops the coefficient leaves it off.
    units = 1.0 / per_unit
    program = IntegerProgram()
    is_on = program.add_column(cost=1.0)
    amount = program.add_column(2.0 * units, is_integer=False)
    program.add_row({amount: per_unit, is_on: -1.0}, -math.inf, 0.0)
    program.add_row({amount: 1.0 / units}, 1.0, math.inf)
    solution = program.solve(10.0)
    assert solution is not None
    assert solution.values[is_on] == pytest.approx(1.0)


def test_a_coefficient_that_the_solver_would_drop_is_an_error() -> None:
    program = IntegerProgram()
    is_on = program.add_column(cost=1.0)
    amount = program.add_column(1e15, is_integer=False)
    program.add_row({amount: 1e-14, is_on: -1.0}, -math.inf, 0.0)
    program.add_row({amount: 1e-3}, 1e11, math.inf)
    with pytest.raises(UnfaithfulSolver, match="changes the integer program"):
        program.solve(10.0)


@pytest.mark.parametrize("nothing", [0.0, 1e-15])
def test_what_no_solution_can_notice_is_left_out(nothing: float) -> None:
    program = IntegerProgram()
    columns = [program.add_column(cost=cost) for cost in (1.0, 2.0)]
    program.add_row({columns[0]: nothing, columns[1]: 1.0}, 1.0, 1.0)
    solution = program.solve(10.0)
    assert solution is not None
    assert solution.values == pytest.approx([0.0, 1.0])


def test_an_option_that_the_solver_does_not_know_is_an_error() -> None:
    program = IntegerProgram(no_such_option=1.0)
    program.add_column(cost=1.0)
    with pytest.raises(UnfaithfulSolver, match="no_such_option"):
        program.solve(10.0)
