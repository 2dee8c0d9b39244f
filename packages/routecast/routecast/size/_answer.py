"""Targets and answers of sizing: a rate of frames with an allowed loss and a probability, and the counts of cores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from routecast.calibration.counts import SAME_CHANCE, Count, cores
from routecast.calibration.forecast import FactAnswer
from routecast.calibration.next_points import NextPoint
from routecast.calibration.recipe import Recipe, conditions_of
from routecast.errors import QuantityProblem
from routecast.evaluate.plain import fields_of, plain
from routecast.evaluate.points import Point
from routecast.evaluate.targets import Target as Bound
from routecast.load.frames import FrameMix
from routecast.load.offered import WIRE_OVERHEAD_BYTES, IntendedRate
from routecast.quantity import format_duration, format_ratio
from routecast.quantity.schema import field, value

if TYPE_CHECKING:
    import polars


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


_BEST_CHANCE = 0.5
"""Probability from which the best count is named first, although it is less than wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyAnswer:
    """What is known of the latency at the target, with the least number of cores.

    ``value_s`` is the quantity of the first bound under ``arrivals``; if it is NaN, ``reason`` says why. ``is_open``:
    nothing is known of the bound, so that the count is that of the rate alone. ``service_s`` is the time that a busy
    core takes for a frame, which is not the latency: waiting, links and devices come on top.
    """

    value_s: float = math.nan
    arrivals: str = ""
    reason: str = ""
    service_s: float = math.nan
    is_open: bool = False
    low_s: float = math.nan
    high_s: float = math.nan
    """95 % interval, where the latency is predicted from measured ones."""
    load_ratio: float = math.nan
    """Share of the capacity at which it is predicted."""
    refuted: tuple[Bound, ...] = ()
    """Bounds below the service time, which no frame can pass in less than: they cannot be met."""

    @classmethod
    def not_measured(
        cls,
        service_s: float,
        bounds: Sequence[Bound] = (),
        *,
        least_s: float = math.nan,
        is_fixed: bool = True,
        has_rows: bool = False,
        is_disturbed: bool = False,
    ) -> LatencyAnswer:
        """Return what a table of throughputs says of the latency: nothing but the service time, its lower bound.

        ``least_s``: the least credible service time; ``is_fixed``: whether all frames have one size, so that the
        quantiles of the latency are no less than it, too; ``has_rows``: whether the table has latencies, of other
        quantities; ``is_disturbed``: whether it has those of the bounds, of disturbed measurements.
        """
        refuted = tuple(
            bound for bound in bounds if bound.limit < least_s and (is_fixed or bound.quantity in {"mean", "max"})
        )
        if refuted:
            reason = f"cannot be {' and '.join(map(str, refuted))}: the service time of a frame is longer"
            return cls(reason=reason, service_s=service_s, is_open=True, refuted=refuted)
        if is_disturbed:
            reason = "disturbed and not calibrated: something disturbed every row that has it"
            return cls(reason=reason, service_s=service_s, is_open=True)
        why = "the table has it for other quantities only" if has_rows else "the table has throughputs only"
        return cls(reason=f"not measured: {why}", service_s=service_s, is_open=True)

    def to_json(self) -> dict[str, Any]:
        """Return plain data; an unknown latency is null."""
        return {
            "latency_s": plain(self.value_s),
            "latency_low_s": plain(self.low_s),
            "latency_high_s": plain(self.high_s),
            "latency_load_ratio": plain(self.load_ratio),
            "latency_arrivals": self.arrivals or None,
            "latency_reason": self.reason or None,
            "service_s": plain(self.service_s),
        }


def _unknown_loss(count: Count) -> str:
    """Say what simulated frames show of a loss that neither they nor the closed form tell."""
    if not count.frames_simulated:
        return ""
    if count.known_loss_ratio > 0.0:
        lost = format_ratio(count.known_loss_ratio)
        return f"; of {count.frames_simulated:.2g} simulated frames {lost} are lost, too few for an interval"
    return f"; of {count.frames_simulated:.2g} simulated frames none is lost, and how rare losses are is not known"


def _busy(cores_count: int) -> str:
    return f"with {cores_count} busy cores" if cores_count > 1 else "with one core"


_NO_LATENCY = LatencyAnswer(reason="no bound on the latency was given")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """The least number of cores for a target, all evaluated counts, open facts and next measurements.

    ``least`` is None if no count is certain enough. ``recipe``: what recomputes the calibration; None without one.
    ``conditions``: those of all counts but the number of cores. ``contradiction``: rows that cannot both be right, so
    that there is no answer; ``cap``: links or cards that carry less than the target with any number of cores.
    """

    series: str
    target: Target
    counts: tuple[Count, ...]
    least: Count | None
    facts: tuple[FactAnswer, ...]
    next: tuple[NextPoint, ...]
    warnings: tuple[str, ...]
    bounds: tuple[Bound, ...] = ()
    latency: LatencyAnswer = _NO_LATENCY
    recipe: Recipe | None = None
    conditions: Point | None = None
    contradiction: str = ""
    cap: str = ""

    def __repr__(self) -> str:
        return f"Sizing({self.answer})"

    @property
    def headroom_ratio(self) -> float | None:
        """Predicted excess over the target of the least count, relative to the target; None without such a count."""
        return None if self.least is None else round(self.least.rate_pps / self.target.forwarded_pps - 1.0, 9) + 0.0

    @property
    def has_open_bound(self) -> bool:
        """Whether a bound on the latency was given of which nothing is known, so that the counts hold for the rate."""
        return bool(self.bounds) and self.latency.is_open

    @property
    def answer(self) -> str:
        """The answer in words: the count for the rate, and what is known of a bound on the latency."""
        return self._rate_answer + self._latency_words

    @property
    def _latency_words(self) -> str:
        """What is known of a bound of which the counts do not tell, and the service time, named as that."""
        if not self.has_open_bound:
            return self._predicted_latency
        if self.latency.refuted and self.least is not None:
            refuted = " and ".join(map(str, self.latency.refuted))
            return (
                f"; latency: {refuted} cannot be met, because {_busy(self.least.cores)} a core takes "
                f"{format_duration(self.latency.service_s)} for a frame, and none passes in less"
            )
        bounds = " and ".join(map(str, self.bounds))
        words = f"; latency: {self.latency.reason.partition(':')[0]}, so {bounds} is neither confirmed nor refuted"
        if self.least is None or math.isnan(self.latency.service_s):
            return words
        service = f"service time of a frame: {format_duration(self.latency.service_s)} {_busy(self.least.cores)}"
        return f"{words} ({service}, not the latency)"

    @property
    def _predicted_latency(self) -> str:
        """The latency with the least count, where it is predicted from measured ones."""
        latency = self.latency
        if self.least is None or not math.isfinite(latency.low_s):
            return ""
        return (
            f"; {self.bounds[0].quantity} there {format_duration(latency.value_s)}, {format_duration(latency.low_s)} "
            f"to {format_duration(latency.high_s)} with 95 %, at {latency.load_ratio:.0%} of the capacity"
        )

    @property
    def _rate_answer(self) -> str:
        target = self.target
        goal = f"{target.rate_bps / 1e9:.4g} Gbit/s of {target.frames.name} ({target.rate_pps / 1e6:.4g} Mpps)"
        if target.loss_ratio:
            goal += f" with a loss of at most {target.loss_ratio:.4g}"
        if self.bounds and not self.has_open_bound:
            goal += "".join(f", {bound}" for bound in self.bounds)
            goal += f" with {self.latency.arrivals}" if self.latency.arrivals else ""
        if self.contradiction:
            return f"No number of cores is known for {goal}, because rows of the table contradict: {self.contradiction}"
        if self.cap:
            return f"{self._no_count} forwards {goal}: {self.cap}"
        if all(count.probability is None for count in self.counts):
            return self._without_probability(goal)
        ratio = f"{target.confidence_ratio:.4g}"
        if self.least is None:
            best = max(self.counts, key=lambda count: count.chance)
            if best.chance >= target.confidence_ratio:
                return f"{self._no_count} is known for {goal}"
            if best.chance >= _BEST_CHANCE:
                return (
                    f"{cores(best.cores)} for {goal} with a probability of {best.chances_text}; {ratio} needs a "
                    f"measurement at {cores(best.cores)}"
                )
            sentences = f"{self._no_count} forwards {goal} with a probability of {ratio}: "
            if best.chance < SAME_CHANCE:
                fastest = max(self.counts, key=lambda count: count.rate_pps)
                sentences += f"at most {fastest.rate_pps / 1e6:.4g} Mpps, with {cores(fastest.cores)}"
            else:
                sentences += f"at most {best.chances_text}, with {cores(best.cores)}"
            return (
                f"{sentences}; measure {describe_point(self.next[0].point)} first"
                if self.next and self.next[0].narrows
                else sentences
            )
        least = self.least
        return (
            f"{cores(least.cores)} for {goal} with a probability of {ratio} or more ({least.chances_text}): there "
            f"{least.rate_pps / 1e6:.4g} Mpps, {least.low_pps / 1e6:.4g} to {least.high_pps / 1e6:.4g} Mpps with 95 %, "
            f"headroom {self.headroom_ratio:.1%}; {limits(least.limit)}"
        )

    @property
    def _no_count(self) -> str:
        first, last = self.counts[0].cores, self.counts[-1].cores
        if first == last:
            return f"No number of cores ({first} is the only one to choose from)"
        return f"No number of cores from {first} to {last}"

    def _without_probability(self, goal: str) -> str:
        least, target = self.least, self.target
        if least is None:
            most_pps = max(count.rate_pps for count in self.counts)
            best = next(count for count in self.counts if count.rate_pps >= most_pps * (1.0 - 1e-6))
            if most_pps >= target.forwarded_pps:
                return (
                    f"{self._no_count} is known for {goal}: {cores(best.cores)} carry up to {most_pps / 1e6:.4g} Mpps "
                    "without overload, but that the target is met is not confirmed"
                )
            return (
                f"{self._no_count} is known for {goal}: at "
                f"most {most_pps / 1e6:.4g} Mpps, with {cores(best.cores)}; {limits(best.limit)}"
            )
        return (
            f"{cores(least.cores)} for {goal}: there {least.rate_pps / 1e6:.4g} Mpps "
            f"{'can be forwarded' if target.loss_ratio else 'overload nothing'}, headroom "
            f"{self.headroom_ratio:.1%}; {limits(least.limit)}{_unknown_loss(least)}. The probability is unknown, "
            "because the router is described, not measured"
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

    def _calibrations(self) -> list[dict[str, Any]]:
        if self.recipe is None or self.conditions is None:
            return []
        return [{**self.recipe.to_json(), "conditions": conditions_of(self.conditions)}]

    def to_polars(self) -> polars.DataFrame:
        """Return a row for each evaluated number of cores: its probability and rate, and whether it is the answer."""
        import polars as pl

        rows: list[dict[str, object]] = []
        for count in self.counts:
            row = plain(fields_of(count))
            is_least = self.least is not None and count.cores == self.least.cores
            rows.append({**row, "outside": "; ".join(count.outside), "is_least": is_least})
        return pl.DataFrame(rows, infer_schema_length=None)

    def _repr_html_(self) -> str:
        from routecast.show.tables import Column, Table, scaled, table_html  # only where a notebook shows an answer

        mpps = scaled(1e-6, ".4g")

        def is_least(count: Count) -> bool:
            return self.least is not None and count.cores == self.least.cores

        table = Table.of(
            self.counts,
            Column("Cores", getter=lambda row: row.cores),
            Column("Probability", form=".3g", getter=lambda row: row.probability),
            Column("Rate", "Mpps", mpps, lambda row: row.rate_pps),
            Column("95 % from", "Mpps", mpps, lambda row: row.low_pps),
            Column("to", "Mpps", mpps, lambda row: row.high_pps),
            Column.text("Limit", lambda count: limits(count.limit)),
            name="size",
            strong=is_least,
        )
        remarks = "".join(f"<li>{escape(remark)}</li>" for remark in self.remarks)
        captioned = table_html(table).replace("<table>", f"<table>\n<caption>{escape(self.answer)}</caption>", 1)
        return captioned + (f"\n<ul>{remarks}</ul>" if remarks else "")

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        target = self.target
        return {
            "series": self.series,
            "target": plain(
                {
                    "rate_pps": target.rate_pps,
                    "confidence_ratio": target.confidence_ratio,
                    "loss_ratio": target.loss_ratio,
                    "rate_bps": target.rate_bps,
                    "forwarded_pps": target.forwarded_pps,
                    "frames": target.frames.name,
                }
            ),
            "answer": self.answer,
            "least": plain(self.least),
            "headroom_ratio": self.headroom_ratio,
            **self.latency.to_json(),
            "counts": plain(self.counts),
            "calibrations": self._calibrations(),
            "contradiction": self.contradiction or None,
            "cap": self.cap or None,
            "facts": plain(self.facts),
            "next": plain([point.to_json() for point in self.next]),
            "remarks": list(self.remarks),
        }


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
