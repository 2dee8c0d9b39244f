"""The longest burst without loss: TST009 binary search with loss verification (RFC 9004 sec. 6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from routecast.benchmark.stage import Counts
from routecast.quantity.schema import value

__all__ = ["Burst", "longest_burst"]


@value
class Burst:
    """Longest burst without loss in frames, all ports; 0 if even the shortest lost.

    ``outcome`` is ``"limit"`` where the longest that may be sent had none.
    """

    frames: int
    outcome: Literal["found", "limit"]
    trials: int


def longest_burst(
    send: Callable[[int, str], Counts],
    *,
    most_frames: int,
    width_ratio: float,
    verify_losses: int,
    verify_below: float,
    hint_frames: int = 0,
) -> Burst:
    """Search for the longest burst of which nothing is lost.

    Parameters
    ----------
    send : callable
        ``send(frames, purpose)`` sends a burst and counts it.
    most_frames : int
        Upper limit: the burst's longest send time at the maximum rate.
    width_ratio : float
        Least step, over the burst; at least one frame.
    verify_losses, verify_below : int, float
        Loss verification, see :mod:`routecast.benchmark.search.verify`.
    hint_frames : int
        A burst near which the result is expected, tried first; 0 for none.
    """
    trials = 0

    def holds(frames: int) -> bool:
        nonlocal trials
        for attempt in range(1 + verify_losses):
            trials += 1
            purpose = f"burst of {frames:,}" + (", verification" if attempt else "")
            counts = send(frames, purpose)
            if counts.lost == 0:
                return True
            if counts.loss_ratio > verify_below:
                return False
        return False

    lower, upper = 0, most_frames + 1
    # From a hint outwards in growing steps; without one, halving from the limit.
    if 0 < hint_frames <= most_frames:
        lower, upper = _around(holds, hint_frames, most_frames, width_ratio)
    elif holds(most_frames):
        return Burst(frames=most_frames, outcome="limit", trials=trials)
    else:
        upper = most_frames
    while upper - lower > max(round(width_ratio * upper), 1):
        # Bursts differ by orders of magnitude, so the middle is the geometric one.
        middle = max(round((max(lower, 1) * upper) ** 0.5), lower + 1)
        if middle >= upper:
            break
        if holds(middle):
            lower = middle
        else:
            upper = middle
    return Burst(frames=lower, outcome="limit" if lower == most_frames else "found", trials=trials)


def _around(holds: Callable[[int], bool], hint: int, most: int, width_ratio: float) -> tuple[int, int]:
    """Return a burst that holds and one that does not, next to the hint if it was a good one."""
    step = 1.0 + 2.0 * width_ratio
    if holds(hint):
        lower, upper = hint, most + 1
        while lower < most:
            there = min(max(round(lower * step), lower + 1), most)
            if not holds(there):
                return lower, there
            lower, step = there, step * step
        return lower, upper
    upper = hint
    while upper > 1:
        there = min(max(round(upper / step), 1), upper - 1)
        if holds(there):
            return there, upper
        upper, step = there, step * step
    return 0, upper
