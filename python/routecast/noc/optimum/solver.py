"""HiGHS as the programs of the optimum run it: silent, on one thread, ended by Ctrl-C or at a time."""

from __future__ import annotations

import math
import threading
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


class _Solving:
    """A thread that solves a model once, and can be told to stop.

    HiGHS offers threads of its own. Their locks are one for the whole process, and a Ctrl-C that strikes while one is
    taken leaves it taken: the next search would wait for ever. Here flags tell how far it is, and the only lock that is
    waited for is a bell: if its ring is lost to a Ctrl-C, the flag is seen a moment later.
    """

    def __init__(self, solver: highspy.Highs) -> None:
        self._solver = solver
        self._deciding = threading.Lock()
        self._begun = self._stopped = self._over = False
        self._bell = threading.Lock()
        self._bell.acquire()

    def _heard(self, event: highspy.highs.HighsCallbackEvent) -> None:
        event.interrupt(self._stopped)  # HiGHS remembers an earlier stop

    def _solve(self) -> None:
        with self._deciding:
            if self._stopped:
                return
            self._begun = True
        calls = (self._solver.cbSimplexInterrupt, self._solver.cbIpmInterrupt)
        for call in calls:
            call.subscribe(self._heard)
        try:
            self._solver.run()
        finally:
            for call in calls:
                call.unsubscribe(self._heard)
            self._over = True
            self._bell.release()

    def start(self) -> None:
        """Begin."""
        threading.Thread(target=self._solve, daemon=True).start()

    def ended(self, patience_s: float) -> bool:
        """Wait a while; return whether it is over."""
        if not self._over:
            self._bell.acquire(timeout=patience_s)
        return self._over

    def stop(self) -> None:
        """Return when nothing solves any more, whatever was under way."""
        with self._deciding:
            self._stopped = True
        while self._begun and not self.ended(_PATIENCE_S):
            pass


def run(solver: highspy.Highs, *, until: float = math.inf) -> bool:
    """Solve its model in a thread; return whether it came to an end before ``until`` (:func:`time.monotonic`).

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C; the solver is stopped first.
    """
    # It looks at its own limit, on the clock of all its runs, in places where it does not let itself be stopped.
    solver.setOptionValue("time_limit", solver.getRunTime() + max(0.0, until - time.monotonic()))
    solving = _Solving(solver)
    is_done, patience_s = False, _PATIENCE_S / 50
    try:
        solving.start()
        # Longer each time, so that quick programs are not waited for and slow ones not asked often.
        while not (is_done := solving.ended(patience_s)) and time.monotonic() < until:
            patience_s = min(1.2 * patience_s, _PATIENCE_S)
    finally:
        solving.stop()
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
