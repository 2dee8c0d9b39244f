"""Targets and answers of sizing: a rate of frames with an allowed loss and a probability, and the counts of cores."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from routecast.calibration.facts import OpenFact
from routecast.calibration.fitted import sparse_counts
from routecast.calibration.next_points import NextPoint
from routecast.errors import QuantityProblem
from routecast.evaluate.plain import pick, plain
from routecast.evaluate.points import Point
from routecast.load.frames import FrameMix
from routecast.load.offered import WIRE_OVERHEAD_BYTES, IntendedRate
from routecast.power.operating.targets import Target as Bound
from routecast.quantity.schema import field, value


@value
class Target:
    """A rate that is offered over all ports, and that a router must forward except for the allowed loss."""

    rate_pps: float = field("Frames per second")
    frames: FrameMix = field("Frame sizes, FCS included", default_factory=lambda: FrameMix.fixed(64))
    confidence_ratio: float = field(
        "Probability with which the router must meet the target, more than 0 and less than 1"
    )
    loss_ratio: float = field("Share of the frames that may be lost, 0 or more, less than 1", default=0.0)

    @classmethod
    def parse(cls, rate: str, frames: str = "", *, confidence_ratio: float = 0.95, loss_ratio: float = 0.0) -> Target:
        """Read a target; a rate in bit/s includes gap and preamble (S1).

        Raises RoutecastError: the rate is neither in frames nor in bits per second, the frames are unknown, or a share
        is out of range.

        Examples
        --------
        >>> round(Target.parse("10 Gbit/s", "64 B").rate_pps)
        14880952
        """
        mix = FrameMix.parse(frames) if frames else FrameMix.fixed(64)
        rate_pps = IntendedRate.parse(rate).pps(mix)
        if not 0.0 <= loss_ratio < 1.0:
            raise QuantityProblem(f"{loss_ratio}", f"got a loss of {loss_ratio}: give 0 or more and less than 1")
        if not 0.0 < confidence_ratio < 1.0:
            raise QuantityProblem(
                f"{confidence_ratio}", f"got a probability of {confidence_ratio}: give more than 0 and less than 1"
            )
        return cls(rate_pps=rate_pps, frames=mix, confidence_ratio=confidence_ratio, loss_ratio=loss_ratio)

    @property
    def rate_bps(self) -> float:
        """The rate on the links, including gap and preamble."""
        return self.rate_pps * 8.0 * (self.frames.mean_bytes + WIRE_OVERHEAD_BYTES)

    @property
    def forwarded_pps(self) -> float:
        """Frames per second to forward."""
        return self.rate_pps * (1.0 - self.loss_ratio)


_MAX_EVALUATED = 128
"""Up to this number, all counts are evaluated."""


def evaluated_counts(
    candidates: Sequence[int], evaluate: Callable[[Sequence[int]], Sequence[Count]], is_enough: Callable[[Count], bool]
) -> tuple[Count, ...]:
    """Evaluate ascending counts of cores, all of them if they are at most 128.

    Of more counts, evaluate a sample that is sparser for larger counts, then, in the same way, the counts between the
    first sufficient count and the previous one.
    """
    counts: dict[int, Count] = {}
    remaining = list(candidates)
    while remaining:
        selected = remaining
        if len(remaining) > _MAX_EVALUATED:
            selected = [remaining[number - 1] for number in sparse_counts(len(remaining))]
        evaluated = evaluate(selected)
        counts |= {count.cores: count for count in evaluated}
        first_enough = next((count.cores for count in evaluated if is_enough(count)), None)
        if selected is remaining or first_enough is None:
            break
        last_insufficient = max((cores for cores in selected if cores < first_enough), default=0)
        remaining = [cores for cores in remaining if last_insufficient < cores < first_enough]
    return tuple(counts[cores] for cores in sorted(counts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """A number of cores, with its probability to meet the target, and its rate with the 95 % interval in frames/s.

    A router that is described but not measured has no probability (None) and no interval (NaN). ``outside`` names the
    conditions beyond the measurements: cores, frames, link, host. ``latency_s`` is the quantity of the first bound and
    ``power_w`` the power, both at the target, and NaN if unknown.
    """

    cores: int
    probability: float | None
    rate_pps: float
    low_pps: float
    high_pps: float
    limit: str
    outside: tuple[str, ...]
    latency_s: float = math.nan
    power_w: float = math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class FactAnswer:
    """A fact that the points leave open, and the least number of cores for each answer; None: no count is certain."""

    fact: OpenFact
    least_cores: Mapping[str, int | None]

    @property
    def text(self) -> str:
        """The question, with the interval and the number of cores for both answers."""
        counts = (
            f"{answer}: {'no count is certain' if count is None else cores(count)}"
            for answer, count in self.least_cores.items()
        )
        return f"{self.fact.text}. Least cores with {'; '.join(counts)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """The least number of cores for a target, all evaluated counts, open facts and next measurements.

    ``least`` is None if no count is certain enough.
    """

    series: str
    target: Target
    counts: tuple[Count, ...]
    least: Count | None
    facts: tuple[FactAnswer, ...]
    next: tuple[NextPoint, ...]
    warnings: tuple[str, ...]
    bounds: tuple[Bound, ...] = ()

    def __repr__(self) -> str:
        return f"Sizing({self.answer})"

    @property
    def headroom_ratio(self) -> float | None:
        """Predicted excess over the target of the least count, relative to the target; None without such a count."""
        return None if self.least is None else self.least.rate_pps / self.target.forwarded_pps - 1.0

    @property
    def answer(self) -> str:
        """The answer in words."""
        target = self.target
        goal = f"{target.rate_bps / 1e9:.4g} Gbit/s of {target.frames.name} ({target.rate_pps / 1e6:.4g} Mpps)"
        if target.loss_ratio:
            goal += f" with a loss of at most {target.loss_ratio:.4g}"
        goal += "".join(f", {bound}" for bound in self.bounds)
        if all(count.probability is None for count in self.counts):
            return self._without_probability(goal)
        ratio = f"{target.confidence_ratio:.4g}"
        if self.least is None:
            best = max(self.counts, key=_probability)
            if _probability(best) >= target.confidence_ratio:
                return f"No number of cores from {self.counts[0].cores} to {self.counts[-1].cores} is known for {goal}"
            sentences = (
                f"No number of cores from {self.counts[0].cores} to {self.counts[-1].cores} forwards {goal} with a "
                f"probability of {ratio}: at most {_probability(best):.2g}, with {cores(best.cores)}"
            )
            return f"{sentences}; measure {describe_point(self.next[0].point)} first" if self.next else sentences
        least = self.least
        return (
            f"{cores(least.cores)} for {goal} with a probability of {ratio} or more ({_probability(least):.3g}): there "
            f"{least.rate_pps / 1e6:.4g} Mpps, {least.low_pps / 1e6:.4g} to {least.high_pps / 1e6:.4g} Mpps with 95 %, "
            f"headroom {self.headroom_ratio:.1%}; {limits(least.limit)}"
        )

    def _without_probability(self, goal: str) -> str:
        least = self.least
        if least is None:
            most_pps = max(count.rate_pps for count in self.counts)
            best = next(count for count in self.counts if count.rate_pps >= most_pps * (1.0 - 1e-6))
            return (
                f"No number of cores from {self.counts[0].cores} to {self.counts[-1].cores} is known for {goal}: at "
                f"most {most_pps / 1e6:.4g} Mpps, with {cores(best.cores)}; {limits(best.limit)}"
            )
        return (
            f"{cores(least.cores)} for {goal}: there {least.rate_pps / 1e6:.4g} Mpps, headroom "
            f"{self.headroom_ratio:.1%}; {limits(least.limit)}. The probability is unknown, because the router is "
            "described, not measured"
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks that limit the answer."""
        lines = list(self.warnings)
        outside = (self.least or self.counts[-1]).outside
        meanings = {
            "cores": "more than twice the most cores that were measured",
            "frames": f"frames of {self.target.frames.name} were never measured",
            "link": "no link is stated (link_bps), so none limits",
            "host": "nothing was measured on this host",
        }
        if outside:
            lines.append(f"outside the measurements: {'; '.join(meanings[name] for name in outside)}")
        if falling_bound := _falling_bound(self.counts):
            fewer, more = falling_bound
            lines.append(
                f"the lower bound falls from {fewer.low_pps / 1e6:.4g} Mpps with {cores(fewer.cores)} to "
                f"{more.low_pps / 1e6:.4g} with {more.cores}: more cores are not certainly faster"
            )
        return tuple(lines)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        target = self.target
        return {
            "series": self.series,
            "target": {**pick(target, "*", "-frames", "rate_bps", "forwarded_pps"), "frames": target.frames.name},
            "answer": self.answer,
            "least": plain(self.least),
            "headroom_ratio": self.headroom_ratio,
            "counts": plain(self.counts),
            "facts": plain(self.facts),
            "next": plain([point.to_json() for point in self.next]),
            "remarks": list(self.remarks),
        }


def cores(count: int) -> str:
    """Write a number of cores."""
    return f"{count} core{'s' if count != 1 else ''}"


def describe_point(point: Point) -> str:
    """Write the number of cores and the frames of a measurement."""
    frames = point.frame_mix.name if point.frame_mix else f"{point.frame_bytes:g} B"
    return f"{cores(point.cores)} with frames of {frames}"


def _probability(count: Count) -> float:
    return -1.0 if count.probability is None else count.probability


def limits(limit: str) -> str:
    """Return the name of the limit."""
    words = {
        "cpu": "the cores limit",
        "link": "the links limit",
        "nic": "the cards limit",
        "shared": "something that the cores share limits",
        "link and cpu": "links limit some flows, cores the others",
    }
    return words.get(limit, f"{limit} limits")


def _falling_bound(counts: tuple[Count, ...]) -> tuple[Count, Count] | None:
    """Return the count with the greatest lower bound, and the last count, if its bound is at least 5 % lower."""
    bounded = [count for count in counts if math.isfinite(count.low_pps)]
    if not bounded:
        return None
    top, last = max(bounded, key=lambda count: count.low_pps), bounded[-1]
    return (top, last) if last.low_pps < 0.95 * top.low_pps else None
