"""Integer programs, built column by column and row by row and solved by HiGHS."""

from __future__ import annotations

from collections.abc import Mapping

import highspy
import numpy as np

from routecast.errors import RoutecastError
from routecast.quantity.schema import field, value

TOLERANCE = 1e-9
"""Tolerance of the solver for rows and for whole columns. At its default of 1e-6 it calls programs infeasible that have
a solution, where a column switches a row on with a coefficient of 1e7."""
_LEAST_COEFFICIENT = 1e-12
"""The least ``small_matrix_value`` that HiGHS allows: it drops smaller coefficients, by default those below 1e-9."""


class Undecided(Exception):
    """The solver reached its time limit; ``values`` are the columns of the best solution so far, None without one."""

    def __init__(self, values: list[float] | None = None) -> None:
        super().__init__(values)
        self.values = values


class UnfaithfulSolver(RoutecastError):
    """The solver took a program only with a warning, so it would solve another one; ``step`` names what warned."""

    def __init__(self, step: str) -> None:
        super().__init__(step)
        self.step = step

    def __str__(self) -> str:
        return (
            f"HiGHS changes the integer program that it is to solve ({self.step}), so its answer would not be that of"
            " the plan: this is a defect of routecast, please report it"
        )


@value
class Solution:
    """A solution of an integer program."""

    values: list[float] = field("Values of the columns")
    bound: float = field("Lower bound on the cost of any solution")


class IntegerProgram:
    """Minimises the cost of columns, each from 0 to its upper limit, under rows; ``options`` are options of HiGHS."""

    def __init__(self, **options: float) -> None:
        self.upper: list[float] = []
        self._cost: list[float] = []
        self._continuous: list[int] = []
        self._rows: list[tuple[Mapping[int, float], float, float]] = []
        self._options = options

    def add_column(self, upper: float = 1.0, *, cost: float = 0.0, is_integer: bool = True) -> int:
        """Add a column; return its number."""
        if not is_integer:
            self._continuous.append(len(self.upper))
        self.upper.append(upper)
        self._cost.append(cost)
        return len(self.upper) - 1

    def add_row(self, entries: Mapping[int, float], low: float, high: float) -> None:
        """Require ``low <= sum of coefficient * column <= high``; ``entries`` holds the coefficient of each column."""
        self._rows.append((entries, low, high))

    def solve(self, seconds: float) -> Solution | None:
        """Return the solution, None if the program is infeasible; raise Undecided after ``seconds``."""
        if any(low > 0.0 and not entries for entries, low, _ in self._rows):
            return None
        model = highspy.Highs()  # type: ignore[no-untyped-call]  # highspy types all but its constructor
        model.silent()
        options: dict[str, float] = {
            "threads": 1,
            "time_limit": max(seconds, 0.05),
            "mip_feasibility_tolerance": TOLERANCE,
            "small_matrix_value": _LEAST_COEFFICIENT,
        }
        for name, option in {**options, **self._options}.items():
            _raise_on_warning(model.setOptionValue(name, option), f"option {name} = {option:g}")
        rows = [self._perceptible(entries) for entries, _, _ in self._rows]
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(self.upper), len(self._rows)
        lp.col_cost_ = np.array(self._cost)
        lp.col_lower_ = np.zeros(lp.num_col_)
        lp.col_upper_ = np.array(self.upper)
        lp.row_lower_ = np.array([low for _, low, _ in self._rows])
        lp.row_upper_ = np.array([high for _, _, high in self._rows])
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.num_col_, lp.a_matrix_.num_row_ = lp.num_col_, lp.num_row_
        lp.a_matrix_.start_ = np.cumsum([0, *(len(entries) for entries in rows)])
        lp.a_matrix_.index_ = np.array([column for entries in rows for column in entries], dtype=np.int32)
        lp.a_matrix_.value_ = np.array([entry for entries in rows for entry in entries.values()])
        kinds = [highspy.HighsVarType.kInteger] * lp.num_col_
        for column in self._continuous:
            kinds[column] = highspy.HighsVarType.kContinuous
        lp.integrality_ = kinds
        _raise_on_warning(model.passModel(lp), "a coefficient")
        model.run()
        status, solution = model.getModelStatus(), model.getSolution()
        if status == highspy.HighsModelStatus.kInfeasible:
            return None
        values = list(solution.col_value) if solution.value_valid else None
        if status != highspy.HighsModelStatus.kOptimal or values is None:
            raise Undecided(values)
        return Solution(values=values, bound=float(model.getInfo().mip_dual_bound))

    def _perceptible(self, entries: Mapping[int, float]) -> Mapping[int, float]:
        """Return a row's entries without those that together cannot move it by more than the tolerance."""
        # HiGHS warns of a zero as of any coefficient that it drops.
        tiny = {column: entry for column, entry in entries.items() if abs(entry) <= _LEAST_COEFFICIENT}
        if sum(abs(entry) * self.upper[column] for column, entry in tiny.items() if entry) > TOLERANCE:
            return {column: entry for column, entry in entries.items() if entry}
        return {column: entry for column, entry in entries.items() if column not in tiny}


def _raise_on_warning(status: highspy.HighsStatus, step: str) -> None:
    if status != highspy.HighsStatus.kOk:
        raise UnfaithfulSolver(step)
