"""The answer to a question of size.

The least count that is enough, without looking at each of thousands.

What a router is sized for: a rate of some frames, the loss that is allowed, and how sure it has to be.
"""

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
from routecast.load.frames import FrameMix
from routecast.load.offered import WIRE_OVERHEAD_BYTES, IntendedRate
from routecast.power.operating.targets import Target as Bound
from routecast.quantity.schema import field, value


@value
class Target:
    """A rate over all ports that is offered and, but for the allowed loss, has to be forwarded."""

    rate_pps: float = field("Frames per second")
    frames: FrameMix = field("Their sizes, FCS included", default_factory=lambda: FrameMix.fixed(64))
    confidence_ratio: float = field("Probability with which the target is to be met, more than 0, less than 1")
    loss_ratio: float = field("Share of the frames that may be lost, 0 or more, less than 1", default=0.0)

    @classmethod
    def parse(cls, rate: str, frames: str = "", *, confidence_ratio: float = 0.95, loss_ratio: float = 0.0) -> Target:
        """Read a target; bits per second are those of the links, with gap and preamble (S1).

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
            raise QuantityProblem(f"{loss_ratio}", f"got a loss of {loss_ratio}: 0 or more and less than 1")
        if not 0.0 < confidence_ratio < 1.0:
            raise QuantityProblem(
                f"{confidence_ratio}", f"got a probability of {confidence_ratio}: more than 0 and less than 1"
            )
        return cls(rate_pps=rate_pps, frames=mix, confidence_ratio=confidence_ratio, loss_ratio=loss_ratio)

    @property
    def rate_bps(self) -> float:
        """The same on the links, with gap and preamble."""
        return self.rate_pps * 8.0 * (self.frames.mean_bytes + WIRE_OVERHEAD_BYTES)

    @property
    def forwarded_pps(self) -> float:
        """Frames per second to forward."""
        return self.rate_pps * (1.0 - self.loss_ratio)


_FEW = 128
"""So many counts are all looked at."""


def looked_at(
    wanted: Sequence[int], evaluate: Callable[[Sequence[int]], Sequence[Count]], is_enough: Callable[[Count], bool]
) -> tuple[Count, ...]:
    """Return what was found of some ascending counts: of all if they are few.

    Of many, ever fewer the more cores; then, again so, of those between the first that is enough and the one before.
    """
    counts: dict[int, Count] = {}
    rest = list(wanted)
    while rest:
        part = rest if len(rest) <= _FEW else [rest[number - 1] for number in sparse_counts(len(rest))]
        seen = evaluate(part)
        counts |= {count.cores: count for count in seen}
        enough = next((count.cores for count in seen if is_enough(count)), None)
        if part is rest or enough is None:
            break
        before = max((cores for cores in part if cores < enough), default=0)
        rest = [cores for cores in rest if before < cores < enough]
    return tuple(counts[cores] for cores in sorted(counts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """A number of cores: its probability to meet the target, and its rate with the 95 % interval, frames per second.

    A router that is described, not measured, has no probability (None) and no interval (NaN). ``outside`` names what
    takes the prediction beyond the measurements: cores, frames, link. ``latency_s`` is what the first bound is on, at
    the target; ``power_w`` is at the target too; NaN where they are not known.
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
    """A fact that the points leave open, and the least cores with each answer; None: no count is certain."""

    fact: OpenFact
    least_cores: Mapping[str, int | None]

    @property
    def text(self) -> str:
        """The question, with the interval and the number of cores for both answers."""
        counts = (
            f"{answer}: {'no count is certain' if few is None else cores(few)}"
            for answer, few in self.least_cores.items()
        )
        return f"{self.fact.text}. Least cores with {'; '.join(counts)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """The least number of cores for a target, all numbers that were examined, open facts and next measurements.

    ``least`` is None where no count is certain enough.
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
        """How much more than the target the least count is predicted to forward; None without one."""
        return None if self.least is None else self.least.rate_pps / self.target.forwarded_pps - 1.0

    @property
    def answer(self) -> str:
        """The answer in words."""
        wanted = self.target
        what = f"{wanted.rate_bps / 1e9:.4g} Gbit/s of {wanted.frames.name} ({wanted.rate_pps / 1e6:.4g} Mpps)"
        if wanted.loss_ratio:
            what += f" with a loss of at most {wanted.loss_ratio:.4g}"
        what += "".join(f", {bound}" for bound in self.bounds)
        if all(count.probability is None for count in self.counts):
            return self._without_probability(what)
        sure = f"{wanted.confidence_ratio:.4g}"
        if self.least is None:
            best = max(self.counts, key=_chance)
            if _chance(best) >= wanted.confidence_ratio:
                return f"No number of cores from {self.counts[0].cores} to {self.counts[-1].cores} is known for {what}"
            sentences = (
                f"No number of cores from {self.counts[0].cores} to {self.counts[-1].cores} forwards {what} with a "
                f"probability of {sure}: at most {_chance(best):.2g}, with {cores(best.cores)}"
            )
            return f"{sentences}; measure {self._where} first" if self.next else sentences
        least = self.least
        return (
            f"{cores(least.cores)} for {what} with a probability of {sure} or more ({_chance(least):.3g}): there "
            f"{least.rate_pps / 1e6:.4g} Mpps, {_interval((least.low_pps, least.high_pps))} with 95 %, headroom "
            f"{self.headroom_ratio:.1%}; {limits(least.limit)}"
        )

    def _without_probability(self, what: str) -> str:
        least = self.least
        if least is None:
            most_pps = max(count.rate_pps for count in self.counts)
            best = next(count for count in self.counts if count.rate_pps >= most_pps * (1.0 - 1e-6))
            return (
                f"No number of cores from {self.counts[0].cores} to {self.counts[-1].cores} is known for {what}: at "
                f"most {most_pps / 1e6:.4g} Mpps, with {cores(best.cores)}; {limits(best.limit)}"
            )
        return (
            f"{cores(least.cores)} for {what}: there {least.rate_pps / 1e6:.4g} Mpps, headroom "
            f"{self.headroom_ratio:.1%}; {limits(least.limit)}. How probable that is is not known: the router is "
            "described, not measured"
        )

    @property
    def _where(self) -> str:
        point = self.next[0].point
        frames = point.frame_mix.name if point.frame_mix else f"{point.frame_bytes:g} B"
        return f"{cores(point.cores)} with frames of {frames}"

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks that limit the answer."""
        lines = list(self.warnings)
        outside = (self.least or self.counts[-1]).outside
        what = {
            "cores": "more than twice the most cores that were measured",
            "frames": f"frames of {self.target.frames.name} were never measured",
            "link": "no link is stated (link_bps), so none limits",
            "host": "nothing was measured on this host",
        }
        if outside:
            lines.append(f"outside the measurements: {'; '.join(what[each] for each in outside)}")
        falls = _fall(self.counts)
        if falls is not None:
            few, more = falls
            lines.append(
                f"the lower bound falls from {few.low_pps / 1e6:.4g} Mpps with {cores(few.cores)} to "
                f"{more.low_pps / 1e6:.4g} with {more.cores}: more cores are not surely faster"
            )
        return tuple(lines)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        wanted = self.target
        return {
            "series": self.series,
            "target": {**pick(wanted, "*", "-frames", "rate_bps", "forwarded_pps"), "frames": wanted.frames.name},
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


def _chance(count: Count) -> float:
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


def _interval(ends_pps: tuple[float, float]) -> str:
    return f"{ends_pps[0] / 1e6:.4g} to {ends_pps[1] / 1e6:.4g} Mpps"


def _fall(counts: tuple[Count, ...]) -> tuple[Count, Count] | None:
    """Return the count with the greatest lower bound, and the last count, if its bound is clearly lower."""
    known = [count for count in counts if math.isfinite(count.low_pps)]
    if not known:
        return None
    top, last = max(known, key=lambda count: count.low_pps), known[-1]
    return (top, last) if last.low_pps < 0.95 * top.low_pps else None
