"""How fairly flows are served: what went in and what came out, flow by flow, as one figure.

Every index is a function of arrays with an entry for each flow, in any unit of rate. ``passed`` is the share of a flow
that came out again; a router that serves nobody better than the others passes the same share of each, or gives each its
max-min share: which of the two is fair is for the reader to say, so both are here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from routecast.errors import ModelProblem, Problem
from routecast.quantity.schema import field, value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Rates = NDArray[np.float64]

__all__ = ["Fairness", "jain_index", "max_min_share", "min_max_ratio", "passed_shares", "spread_points"]

_SLACK = 1e-9


@value
class Fairness:
    """How fairly the flows of a trial were served."""

    passed: tuple[float, ...] = field("Share of each flow that came out, 0 to 1: the percentages of Li's Table 3.1")
    # Jain's index of the shares passed: 1 where all are alike, ``1/n`` where one flow passes and the others starve.
    jain: float
    min_max: float = field("Least share passed over the largest, 0 to 1")
    max_min: float = field("Least fraction of its max-min share that a flow got: 1 where what came out is max-min fair")
    # Root mean square deviation of the shares passed from the share of all frames that passed, percentage points.
    spread_points: float

    @classmethod
    def of(cls, offered: Sequence[float] | Rates, forwarded: Sequence[float] | Rates) -> Fairness:
        """Weigh what came out of each flow against what went in.

        Parameters
        ----------
        offered, forwarded : array_like, shape (flows,)
            In one unit, such as frames per second.

        Raises
        ------
        routecast.errors.ModelProblem
            A flow offers nothing, more came out than went in, or the arrays do not match.

        Examples
        --------
        >>> fair = Fairness.of([300.0, 700.0], [150.0, 350.0])
        >>> fair.jain, fair.min_max, fair.spread_points
        (1.0, 1.0, 0.0)
        """
        into, out = _checked(offered, forwarded)
        passed = out / into
        share = max_min_share(into, float(out.sum()))
        served = share > 0.0
        return cls(
            passed=tuple(float(each) for each in passed),
            jain=jain_index(passed),
            min_max=min_max_ratio(passed),
            max_min=float(min(1.0, (out[served] / share[served]).min())) if served.any() else 1.0,
            spread_points=spread_points(into, out),
        )


def passed_shares(offered: ArrayLike, forwarded: ArrayLike) -> Rates:
    """Return the share of each flow that came out, shape (flows,).

    Raises
    ------
    routecast.errors.ModelProblem
        As for :meth:`Fairness.of`.
    """
    into, out = _checked(offered, forwarded)
    return out / into


def jain_index(shares: ArrayLike) -> float:
    """Return ``(Σ x)² / (n Σ x²)``, from ``1/n`` (one has all) to 1 (all have the same); 1 where nobody has any.

    Jain, Chiu and Hawe, "A quantitative measure of fairness and discrimination for resource allocation in shared
    computer systems", DEC-TR-301, 1984, eq. 2. It does not change with the unit, nor with the number of flows.

    Raises
    ------
    routecast.errors.ModelProblem
        There is no share, or one is negative or no number.
    """
    x = _numbers("shares", shares)
    largest = x.max()
    if largest == 0.0:
        return 1.0
    x = x / largest
    return float(x.sum() ** 2 / (x.size * (x @ x)))


def min_max_ratio(shares: ArrayLike) -> float:
    """Return the least share over the largest, 0 to 1; 1 where nobody has any.

    Raises
    ------
    routecast.errors.ModelProblem
        As for :func:`jain_index`.
    """
    x = _numbers("shares", shares)
    return float(x.min() / x.max()) if x.max() > 0.0 else 1.0


def max_min_share(offered: ArrayLike, capacity: float) -> Rates:
    """Divide a capacity so that no flow can get more but from one that has no more than it (max-min fairness).

    Bertsekas and Gallager, "Data Networks", 2nd ed. 1992, sec. 6.5.2, for one link: all are filled alike, and who has
    what he offered leaves the rest to the others.

    Parameters
    ----------
    offered : array_like, shape (flows,)
    capacity : float
        In the same unit.

    Returns
    -------
    ndarray, shape (flows,)
        At most what each offers; their sum is the capacity, or all that is offered where that is less.

    Raises
    ------
    routecast.errors.ModelProblem
        A rate or the capacity is negative or no number.

    Examples
    --------
    >>> max_min_share([100.0, 300.0, 800.0], 600.0).tolist()
    [100.0, 250.0, 250.0]
    """
    import numpy as np

    wanted = _numbers("offered", offered)
    left = float(_numbers("capacity", [capacity])[0])
    share = np.zeros_like(wanted)
    order = np.argsort(wanted, kind="stable")
    for place, flow in enumerate(order):
        share[flow] = min(wanted[flow], left / (wanted.size - place))
        left -= share[flow]
    return share


def spread_points(offered: ArrayLike, forwarded: ArrayLike) -> float:
    """Return how far the shares passed are from that of all frames together, root mean square, percentage points.

    0 where every flow loses in proportion to what it offers, as from one queue that all share.

    Raises
    ------
    routecast.errors.ModelProblem
        As for :meth:`Fairness.of`.
    """
    import numpy as np

    into, out = _checked(offered, forwarded)
    return float(100.0 * np.sqrt(np.mean((out / into - out.sum() / into.sum()) ** 2)))


def _checked(offered: ArrayLike, forwarded: ArrayLike) -> tuple[Rates, Rates]:
    into, out = _numbers("offered", offered), _numbers("forwarded", forwarded)
    if into.shape != out.shape:
        what = f"{into.size} flows went in and {out.size} came out: give both for each flow"
        raise ModelProblem("fairness", [Problem("forwarded", what)])
    problems = []
    for flow, (went_in, came_out) in enumerate(zip(into.tolist(), out.tolist(), strict=True)):
        if went_in == 0.0:
            problems.append(Problem(f"offered[{flow}]", "got 0: a flow that offers nothing has no share"))
        elif came_out > went_in * (1.0 + _SLACK):
            problems.append(Problem(f"forwarded[{flow}]", f"got {came_out:g} of {went_in:g}: more than went in"))
    if problems:
        raise ModelProblem("fairness", problems)
    return into, out


def _numbers(name: str, given: ArrayLike) -> Rates:
    import numpy as np

    numbers = np.asarray(given, dtype=np.float64)
    if numbers.ndim != 1 or numbers.size == 0:
        raise ModelProblem(
            "fairness", [Problem(name, f"got shape {numbers.shape}: a list with an entry for each flow")]
        )
    wrong = np.flatnonzero(~(np.isfinite(numbers) & (numbers >= 0.0)))
    if wrong.size:
        at = int(wrong[0])
        raise ModelProblem("fairness", [Problem(f"{name}[{at}]", f"got {numbers[at]}: a number >= 0")])
    return numbers
