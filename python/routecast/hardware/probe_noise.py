"""Was the host quiet enough while it was probed? Repeats, steal time, interruptions and clock decide."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from routecast.hardware.probe_repeats import scatter_ratio
from routecast.quantity.quantile import quantile

__all__ = ["NOISE_LIMITS", "Noise", "NoiseLimits", "noise_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseLimits:
    """Up to here a host is quiet.

    Parameters
    ----------
    scatter_ratio : float
        (median − minimum) / median of a measurement's repeats, at the upper quartile over all measurements.
    steal_ratio : float
        Share of the time that the hypervisor ran something else (``steal`` of ``/proc/stat``).
    interruptions_per_s : float
        Involuntary context switches of the probe's thread.
    clock_ratio : float
        (greatest − least) / median of the core's clock.
    """

    scatter_ratio: float = 0.10
    steal_ratio: float = 0.01
    interruptions_per_s: float = 20.0
    clock_ratio: float = 0.03


NOISE_LIMITS = NoiseLimits()

_NOTHING_CYCLES = 2.0
"""A line that costs no more on top of one in L1 was found there, or nearly so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """What disturbed the probe; ``reasons`` is empty for a quiet host."""

    scatter_ratio: float
    steal_ratio: float
    interruptions: int
    clock_ratio: float
    reasons: tuple[str, ...] = ()

    @property
    def is_quiet(self) -> bool:
        """Whether nothing speaks against the results."""
        return not self.reasons

    @property
    def verdict(self) -> str:
        """``"quiet"``, or ``"noisy: …"`` with the reasons."""
        return "quiet" if self.is_quiet else "noisy: " + "; ".join(self.reasons)


def noise_of(outcome: Mapping[str, Any], duration_s: float, limits: NoiseLimits = NOISE_LIMITS) -> Noise:
    """Judge the outcome of a probe that took ``duration_s`` seconds."""
    scatters = [ratio for repeats in _repeats(outcome) if math.isfinite(ratio := scatter_ratio(repeats))]
    scatter = quantile(scatters, 0.75) if scatters else math.nan
    steal = float(outcome.get("steal_ratio") or 0.0)
    interruptions = int(outcome.get("interruptions") or 0)
    clocks = [float(value) for value in outcome["clock"]["core_hz"]]
    clock = (max(clocks) - min(clocks)) / quantile(clocks, 0.5)
    reasons = []
    if scatter > limits.scatter_ratio:
        reasons.append(
            f"repeats scatter: a quarter of the measurements has its median {scatter:.0%} above its least value "
            f"(quiet: up to {limits.scatter_ratio:.0%})"
        )
    if steal > limits.steal_ratio:
        reasons.append(f"the hypervisor took {steal:.1%} of the time (quiet: up to {limits.steal_ratio:.0%})")
    if duration_s > 0.0 and interruptions > limits.interruptions_per_s * duration_s:
        reasons.append(
            f"other processes interrupted the probe {interruptions} times in {duration_s:.0f} s "
            f"(quiet: up to {limits.interruptions_per_s:.0f} a second)"
        )
    if clock > limits.clock_ratio:
        reasons.append(f"the clock varied by {clock:.0%} (quiet: up to {limits.clock_ratio:.0%})")
    return Noise(
        scatter_ratio=scatter,
        steal_ratio=steal,
        interruptions=interruptions,
        clock_ratio=clock,
        reasons=tuple(reasons),
    )


def _repeats(outcome: Mapping[str, Any]) -> Iterator[list[float]]:
    """Yield the repeats of every point but the clock's; of what stands on top of L1, only what is more than nothing."""
    for name in ("latency", "batched", "streamed", "operations"):
        for point in outcome.get(name, ()):
            repeats = list(point["cycles"])
            if name in ("latency", "operations") or quantile(repeats, 0.5) > _NOTHING_CYCLES:
                yield repeats
    for point in outcome.get("bandwidth", ()):
        yield [1.0 / rate for rate in point["bytes_per_s"] if rate > 0.0]
