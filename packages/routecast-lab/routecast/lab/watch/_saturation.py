"""At which load a core that polls will saturate: from full polls that follow full polls, at any load.

A packet alone costs several times what one in a full batch costs, so neither the busy share nor the cost of ordinary
polls says it. The time from the end of one full poll to the end of the next holds all that overload holds: the polls of
the outgoing side, softirqs in between, empty polls. So with n packets of a full poll

    saturation = share of the core * n / (time of such a cycle, less the watch's own)

A first poll after waking is 5 to 9 % too dear, a second 1.3 to 5 %; third and later ones are level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["FULL_PACKETS", "NORMAL_95", "RECORD", "WIDEST", "FullPolls", "Saturation", "saturation", "too_wide"]

FULL_PACKETS: Final = 64
"""Packets of a full poll; mirrors ``FULL`` of ``crates/tester/bpf/watch.bpf.c``."""

RECORD: Final = np.dtype(
    [
        ("at_ns", "<u8"),
        ("poller", "<u8"),
        ("lasts_ns", "<u4"),
        ("idle_ns", "<u4"),
        ("place", "<u2"),
        ("before", "<u2"),
        ("packets", "<u2"),
        ("is_end", "<u2"),
    ]
)
"""Mirrors ``struct poll_record`` of ``crates/tester/bpf/watch.bpf.c``."""

_FEWEST: Final = 10
_ENOUGH_THIRD: Final = 20
_SECOND_COLDER: Final = 0.03
_SECOND_SPREAD: Final = 0.015
_MODEL_SPREAD: Final = 0.15
"""Spread of ln(estimate / truth) beyond sampling, and what a second full poll costs more than a third: chosen in sight
of veth interfaces of one virtual machine, whose rate in overload itself moves by a tenth within seconds."""
_TRIMMED: Final = 0.1
_CHUNKS: Final = 12
WIDEST: Final = 2.0
NORMAL_95: Final = 1.96


@dataclass(frozen=True, slots=True, kw_only=True)
class FullPolls:
    """Times of full polls that followed a full one, s: second in their run, and third or later."""

    second_s: tuple[float, ...]
    later_s: tuple[float, ...]

    @classmethod
    def of(cls, records: NDArray[np.void]) -> FullPolls:
        """Read them from records of the kernel, of dtype :data:`RECORD`."""
        is_warm = (records["is_end"] == 0) & (records["before"] >= FULL_PACKETS) & (records["packets"] >= FULL_PACKETS)
        seconds = records["lasts_ns"] * 1e-9
        second, later = is_warm & (records["place"] == 1), is_warm & (records["place"] >= 2)
        return cls(second_s=tuple(seconds[second].tolist()), later_s=tuple(seconds[later].tolist()))

    def __len__(self) -> int:
        return len(self.second_s) + len(self.later_s)

    def __add__(self, other: FullPolls) -> FullPolls:
        return FullPolls(second_s=self.second_s + other.second_s, later_s=self.later_s + other.later_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Saturation:
    """The load at which a core saturates, frames/s, with its 95 % interval; NaN with a ``reason`` if it is not known.

    ``cycle_s``: time of a full poll among full ones, without the watch's own; ``polls``: of how many; ``share_ratio``:
    share of the core that is to be had; ``whole_core_pps``: with all of it.
    """

    pps: float = math.nan
    low_pps: float = math.nan
    high_pps: float = math.nan
    cycle_s: float = math.nan
    polls: int = 0
    share_ratio: float = math.nan
    source: Literal["passive", "probe"] = "passive"
    reason: str = ""

    @property
    def interval_pps(self) -> tuple[float, float]:
        """Lower and upper end of the 95 % interval."""
        return self.low_pps, self.high_pps

    @property
    def whole_core_pps(self) -> float:
        """The same with all of the core."""
        return FULL_PACKETS / self.cycle_s


def saturation(
    full: FullPolls,
    *,
    own_s: float,
    calls: float,
    share_ratio: float,
    share_spread: float = 0.0,
    source: Literal["passive", "probe"] = "passive",
) -> Saturation:
    """Return the load at which a core saturates.

    Parameters
    ----------
    full : FullPolls
    own_s : float
        Time of one call of the watch's programs.
    calls : float
        Calls in a full poll.
    share_ratio : float
        Share of the core that is to be had, 0..1.
    share_spread : float
        How uncertain that is: a standard deviation of its logarithm.
    source : {"passive", "probe"}

    Returns
    -------
    Saturation
        Without a rate where fewer than ten such polls were seen, or the interval is wider than a factor of 2.
    """
    if len(full) < _FEWEST:
        seen = f"{len(full)} full poll{'' if len(full) == 1 else 's'} followed a full one"
        advice = "look longer, or let packets gather for a second (--probe)"
        if source == "probe":
            advice = "packets came too slowly: probe at a higher load"
        return Saturation(polls=len(full), source=source, reason=f"{seen}, and {_FEWEST} are needed: {advice}")
    if len(full.later_s) >= _ENOUGH_THIRD:
        cycles, colder, spread = full.later_s, 0.0, 0.0
    else:
        cycles, colder, spread = full.second_s + full.later_s, _SECOND_COLDER, _SECOND_SPREAD
    cycle_s = _trimmed_mean(cycles) / (1.0 + colder) - own_s * calls
    pps = share_ratio * FULL_PACKETS / cycle_s
    error = math.hypot(_sampling_spread(cycles), spread, _MODEL_SPREAD, share_spread)
    low, high = pps * math.exp(-NORMAL_95 * error), pps * math.exp(NORMAL_95 * error)
    if high > WIDEST * low:
        return Saturation(
            cycle_s=cycle_s, polls=len(cycles), share_ratio=share_ratio, source=source, reason=too_wide(low, high)
        )
    return Saturation(
        pps=pps, low_pps=low, high_pps=high, cycle_s=cycle_s, polls=len(cycles), share_ratio=share_ratio, source=source
    )


def too_wide(low_pps: float, high_pps: float) -> str:
    """Return why an interval is no answer, and what would narrow it."""
    return (
        f"between {low_pps:,.0f} and {high_pps:,.0f} frames/s, wider than a factor of {WIDEST:g}: look longer, or give "
        "the core to the router alone"
    )


def _trimmed_mean(values: Sequence[float]) -> float:
    """Return the mean without a tenth at each end: stalls of the machine are no cost of packets."""
    ordered = sorted(values)
    cut = int(len(ordered) * _TRIMMED)
    return fmean(ordered[cut : len(ordered) - cut] or ordered)


def _sampling_spread(cycles: Sequence[float]) -> float:
    """Return the relative standard error of the mean, from means of successive cycles, which resemble each other.

    Cycles beyond those that the mean leaves out count as the last ones that it does not.
    """
    ordered = sorted(cycles)
    cut = int(len(ordered) * _TRIMMED)
    kept = np.clip(cycles, ordered[cut], ordered[len(ordered) - cut - 1])
    size = max(1, len(cycles) // _CHUNKS)
    means = [fmean(kept[at : at + size]) for at in range(0, len(cycles) - size + 1, size)]
    return stdev(means) / math.sqrt(len(means)) / fmean(cycles) if len(means) > 2 else 0.05
