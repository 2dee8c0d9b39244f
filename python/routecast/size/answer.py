"""The answer to a question of size."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from routecast.calibration.facts import OpenFact
from routecast.calibration.next_points import NextPoint
from routecast.evaluate.plain import pick, plain
from routecast.power.operating.targets import Target as Bound
from routecast.size.target import Target

__all__ = ["Count", "FactAnswer", "Sizing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """So many cores: how probably they meet the target, and their rate with its 95 % interval, frames per second.

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
        """The question, and what both answers would make of the interval and of the number of cores."""
        counts = (
            f"{answer}: {'no count is certain' if few is None else cores(few)}"
            for answer, few in self.least_cores.items()
        )
        return f"{self.fact.text}. Least cores with {'; '.join(counts)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """The least count of cores for a target, every count that was looked at, and what to know or measure next.

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
            said = (
                f"No number of cores from {self.counts[0].cores} to {self.counts[-1].cores} forwards {what} with a "
                f"probability of {sure}: at most {_chance(best):.2g}, with {cores(best.cores)}"
            )
            return f"{said}; measure {self._where} first" if self.next else said
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
        """What the reader must know before relying on the answer."""
        said = list(self.warnings)
        outside = (self.least or self.counts[-1]).outside
        what = {
            "cores": "more than twice the most cores that were measured",
            "frames": f"frames of {self.target.frames.name} were never measured",
            "link": "no link is stated (link_bps), so none limits",
            "host": "nothing was measured on this host",
        }
        if outside:
            said.append(f"outside the measurements: {'; '.join(what[each] for each in outside)}")
        falls = _fall(self.counts)
        if falls is not None:
            few, more = falls
            said.append(
                f"the lower bound falls from {few.low_pps / 1e6:.4g} Mpps with {cores(few.cores)} to "
                f"{more.low_pps / 1e6:.4g} with {more.cores}: more cores are not surely faster"
            )
        return tuple(said)

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
    """Say what limits."""
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
    """Return the count with the greatest lower bound, and the last one, if that one's is clearly less."""
    known = [count for count in counts if math.isfinite(count.low_pps)]
    if not known:
        return None
    top, last = max(known, key=lambda count: count.low_pps), known[-1]
    return (top, last) if last.low_pps < 0.95 * top.low_pps else None
