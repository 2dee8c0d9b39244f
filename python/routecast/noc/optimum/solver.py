"""HiGHS as the programs of the optimum run it: silent, on one thread, ended by Ctrl-C or at a time."""

from __future__ import annotations

import math
import time

import highspy

from routecast.errors import RoutecastError

__all__ = ["run", "silent_solver", "solution"]

_PATIENCE_S = 0.05


def silent_solver() -> highspy.Highs:
    """Return a solver without a model."""
    solver = highspy.Highs()  # type: ignore[no-untyped-call]  # highspy types all but its constructor
    solver.silent()
    for option, value in (
        ("threads", 1),
        ("primal_feasibility_tolerance", 1e-9),
        ("dual_feasibility_tolerance", 1e-9),
    ):
        solver.setOptionValue(option, value)
    return solver


def run(solver: highspy.Highs, *, until: float = math.inf) -> bool:
    """Solve its model in a thread; return whether it came to an end before ``until`` (:func:`time.monotonic`).

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C; the solver is stopped first.
    """
    # It looks at its own limit, on the clock of all its runs, in places where it does not let itself be stopped.
    solver.setOptionValue("time_limit", solver.getRunTime() + max(0.0, until - time.monotonic()))
    solver.HandleUserInterrupt = True
    solver.startSolve()
    is_done, patience_s = False, _PATIENCE_S / 50
    try:
        # Longer each time, so that quick programs are not waited for and slow ones not asked often.
        while not (is_done := bool(solver.wait(patience_s)[0])) and time.monotonic() < until:
            patience_s = min(1.2 * patience_s, _PATIENCE_S)
    finally:
        if not is_done:
            solver.cancelSolve()  # type: ignore[no-untyped-call]  # of highspy
            while not solver.wait(_PATIENCE_S)[0]:
                pass
        solver.HandleUserInterrupt = False
        solver.setOptionValue("time_limit", highspy.kHighsInf)
    return is_done and solver.getModelStatus() != highspy.HighsModelStatus.kTimeLimit


def solution(solver: highspy.Highs) -> highspy.HighsSolution:
    """Return what it found.

    Raises
    ------
    RoutecastError
        No values, or no prices.
    """
    found = solver.getSolution()
    if not found.value_valid or not found.dual_valid:
        status = solver.modelStatusToString(solver.getModelStatus())
        msg = f"HiGHS ends without flows ({status}); this is a fault of the program, please report it"
        raise RoutecastError(msg)
    return found
