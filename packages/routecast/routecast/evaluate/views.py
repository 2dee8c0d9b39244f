"""Views of a trial: tables and figures of loads, bottleneck, resources, energy, a ramp, and rates over time.

The verdict on a rate over time replaces reading a plot by eye (Heller 2006, sec. 5.1).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, groupby
from typing import TYPE_CHECKING

from routecast.evaluate.ramp import RampResult
from routecast.evaluate.trial import Delay, Resource, Trial, TrialPower
from routecast.quantity import format_bps, format_duration, format_energy, format_power, format_pps, format_ratio
from routecast.quantity.format import prefixed
from routecast.show.figures import Axis, Figure, Line, Mark, Points
from routecast.show.tables import Cell, Column, Table, signed_percent
from routecast.show.ticks import linear_ends

if TYPE_CHECKING:
    from routecast.evaluate.simulate import Message
    from routecast.evaluate.steadiness import InstantReading, Steadiness
    from routecast.evaluate.trial import Moment

__all__ = [
    "arrivals_note",
    "describe_ramp",
    "describe_verdict",
    "messages_table",
    "over_time_figure",
    "ramp_table",
    "readings_table",
    "resources_table",
    "trial_tables",
]

_WIDE_RATIO = 0.05
"""An interval wider than this share of the mean hides drifts that matter."""
_RATE_COLOUR, _OFFERED_COLOUR, _STEADY_COLOUR, _TRANSIENT_COLOUR, _READING_COLOUR = (
    "#9db9e0",
    "#4aa36a",
    "#c8524a",
    "#7a7f87",
    "#7b52ab",
)
"""The rate is pale, because the lines and points of the verdict and the readings stand in front of it."""
_ROUNDING = 1e-9
_MAX_PLACES = 4
_NOTABLE_LOSS = 1e-4
_MIN_FOLDED = 8
"""Least number of resources of one kind that share a row."""


def describe_verdict(verdict: Steadiness) -> str:
    """Return the verdict on a frame rate in one sentence."""
    if not verdict.is_steady:
        return f"Not steady: {verdict.reason}."
    since = "from the start" if verdict.from_s == 0.0 else f"from {format_duration(verdict.from_s)} on"
    half = (verdict.high - verdict.low) / 2.0
    if not verdict.mean:
        return f"Steady {since}: {format_pps(verdict.mean)}; no drift."
    sentence = f"Steady {since}: {format_pps(verdict.mean)} (95 %: ± {format_ratio(half / verdict.mean)}); no drift"
    return (
        f"{sentence}, as far as so wide an interval shows: give it more time."
        if half > _WIDE_RATIO * verdict.mean
        else f"{sentence}."
    )


def over_time_figure(
    moments: Sequence[Moment],
    duration_s: float,
    verdict: Steadiness | None = None,
    readings: Sequence[InstantReading] = (),
    *,
    title: str = "Throughput over time",
    name: str = "over-time",
) -> Figure:
    """Return the figure of rates over time, the end of the transient, the steady mean, and readings.

    Without a verdict (where events change the router) the figure has only the rates.
    """
    part_s = duration_s / len(moments)
    forwarded = [moment.forwarded_pps for moment in moments]
    so_far = [total / (number + 1) for number, total in enumerate(accumulate(forwarded))]
    rate, rate_unit = prefixed([*forwarded, *(moment.offered_pps for moment in moments)], "pps")
    time, time_unit = prefixed([duration_s], "s")
    times = tuple((moment.time_s + part_s / 2.0) / time for moment in moments)
    ends = tuple((moment.time_s + part_s) / time for moment in moments)
    drawn = [value / rate for value in (*forwarded, *so_far)]
    marks: list[Mark] = []
    offered = [moment.offered_pps / rate for moment in moments]
    # A load with random gaps would hide the forwarding rate, so the figure shows only its mean.
    level = sum(offered) / len(offered)
    if level <= 1.3 * max(drawn):
        drawn.append(level)
        marks.append(
            Line(name="offered, mean", x=(times[0], times[-1]), y=(level, level), colour=_OFFERED_COLOUR, dashed=True)
        )
    low, high = linear_ends(min(drawn), max(drawn))
    marks.append(Line(name="forwarded", x=times, y=tuple(value / rate for value in forwarded), colour=_RATE_COLOUR))
    if verdict is not None:
        marks.append(
            Line(
                name="mean since the start",
                x=ends,
                y=tuple(value / rate for value in so_far),
                colour=_READING_COLOUR,
                dashed=True,
            )
        )
        marks += _verdict_marks(verdict, rate, time, low, high)
    marks += [
        Points(
            name=f"read at {format_duration(reading.at_s)}",
            x=(reading.at_s / time,),
            y=(reading.so_far / rate,),
            colour=_READING_COLOUR,
            symbol="diamond",
            size_px=10,
            labels=(f"{format_pps(reading.so_far)} since the start; {format_pps(reading.now)} then",),
        )
        for reading in readings
    ]
    caption = f"Rates of {len(moments):,} parts of {format_duration(part_s)} each."
    if verdict is not None:
        caption += f" {describe_verdict(verdict)} The mean since the start still carries what came before."
    return Figure(
        name=name,
        title=title,
        caption=caption,
        x=Axis(title=f"time [{time_unit}]", low=0.0, high=duration_s / time),
        y=Axis(title=f"rate [{rate_unit}]", low=low, high=high),
        marks=tuple(marks),
        height_px=360,
    )


def _verdict_marks(verdict: Steadiness, rate: float, time: float, low: float, high: float) -> list[Mark]:
    if not math.isfinite(verdict.from_s):
        return []
    start, end = verdict.from_s / time, verdict.duration_s / time
    marks: list[Mark] = []
    if start > 0.0:
        marks.append(
            Line(name="end of the transient", x=(start, start), y=(low, high), colour=_TRANSIENT_COLOUR, dashed=True)
        )
    mean = verdict.mean / rate
    is_known = math.isfinite(verdict.low)
    return [
        *marks,
        Line(
            name="steady mean" + (", 95 % interval" if is_known else " (drifts)"),
            x=(start, end),
            y=(mean, mean),
            low=(verdict.low / rate,) * 2 if is_known else (),
            high=(verdict.high / rate,) * 2 if is_known else (),
            colour=_STEADY_COLOUR,
        ),
    ]


def readings_table(readings: Sequence[InstantReading], verdict: Steadiness) -> Table:
    """Return the table of readings at given instants, beside the steady mean."""
    return Table.of(
        readings,
        Column("Read at", "", format_duration, lambda row: row.at_s),
        Column("Frames until then", "", ",.0f", lambda row: row.counted),
        Column("Mean since the start", "", format_pps, lambda row: row.so_far),
        Column("Rate then", "", format_pps, lambda row: row.now),
        Column("Steady mean", "", format_pps, lambda _: verdict.mean if verdict.is_steady else None),
        Column(
            "Difference",
            "%",
            signed_percent,
            lambda row: row.so_far / verdict.mean - 1.0 if verdict.is_steady and verdict.mean else None,
        ),
        name="readings",
        title="Readings during the trial",
        caption="Difference: mean since the start, against the mean after the transient.",
    )


def ramp_table(climb: RampResult) -> Table:
    """Return the table of the parts of a ramp; those that lose frames are strong."""
    return Table.of(
        climb.rungs,
        Column("From", "", format_duration, lambda rung: rung.from_s),
        Column("Intended", "", format_pps, lambda rung: rung.intended_pps),
        Column("Offered", "", format_pps, lambda rung: rung.offered_pps),
        Column("Forwarded", "", format_pps, lambda rung: rung.forwarded_pps),
        Column("Loss", "", format_ratio, lambda rung: None if math.isnan(rung.loss_ratio) else rung.loss_ratio),
        name="ramp",
        title="Ramp",
        caption="Means over equal parts of the trial. Lost frames count when they were due.",
        strong=lambda rung: rung.dropped_pps > 0.0,
    )


def describe_ramp(climb: RampResult) -> str:
    """Return a sentence on the greatest rate without loss."""
    greatest = f"at most {format_pps(climb.most_forwarded_pps)} were forwarded"
    if not climb.rungs:
        return "Ramp: the tester did not count over time, so nothing is known of single rates."
    if math.isnan(climb.first_loss_pps):
        return f"Ramp: no loss up to {format_pps(climb.lossless_pps)}, the end of the ramp; {greatest}."
    if math.isnan(climb.lossless_pps):
        return f"Ramp: loss from the start, at {format_pps(climb.first_loss_pps)}; {greatest}."
    first = format_pps(climb.first_loss_pps)
    return (
        f"Ramp: no loss up to {format_pps(climb.lossless_pps)}, the first at {first}; {greatest}. "
        "Each rate was offered for a moment only: a trial at that rate decides."
    )


def trial_tables(trial: Trial) -> tuple[Table, ...]:
    """Return the tables of rates, latency and loss, of resources, and of energy, as far as known."""
    tables = (_rates(trial), resources_table(trial), _energy(trial))
    return tuple(table for table in tables if table.rows)


def _rates(trial: Trial) -> Table:
    rows = [
        ("intended load", format_pps(trial.intended_pps)),
        ("offered load", format_pps(trial.offered_pps)),
        ("forwarded", f"{format_pps(trial.forwarded_pps)}{_interval(trial, 'forwarded_pps')}"),
        ("", f"{format_bps(trial.l1_bps)} on the wire, {format_bps(trial.l2_bps)} of frames"),
        ("loss", _loss(trial)),
        *_delay("latency", trial.latency),
        *_delay("waiting", trial.waiting),
        *_assumed_arrivals(trial),
    ]
    if trial.power is not None:
        rows.append(("power", _power(trial.power)))
    if trial.offered_frames is not None:
        counts = (
            f"{trial.offered_frames:,} offered = {trial.forwarded_frames or 0:,} forwarded + "
            f"{trial.dropped_frames or 0:,} dropped + {trial.in_flight_frames or 0:,} in flight"
        )
        rows.append(("frames", counts))
    for name in ("duplicated", "reordered", "corrupted"):
        if count := getattr(trial, f"{name}_frames"):
            rows.append((name, f"{count:,}"))
    return Table.of_facts(rows, name="trial", title=f"{trial.evaluator}, {format_duration(trial.duration_s)}")


def _interval(trial: Trial, field: str) -> str:
    if field not in trial.interval:
        return ""
    low, high = trial.interval[field]
    # The bounds of a closed form are those of its error, no confidence interval.
    of = "" if trial.evaluator == "solve" else "95 %: "
    return f" ({of}{format_pps(low)} to {format_pps(high)})"


def _loss(trial: Trial) -> str:
    if not math.isnan(trial.loss_ratio):
        low, high = trial.interval.get("loss_ratio", (math.nan, math.nan))
        between = f" ({format_ratio(low)} to {format_ratio(high)})" if high - low > _NOTABLE_LOSS else ""
        return f"{format_ratio(trial.loss_ratio)}{between}{_drops(trial)}"
    return "not known" + (f"; overload alone{_drops(trial)}" if trial.drops_pps else "")


def _drops(trial: Trial) -> str:
    largest = sorted(trial.drops_pps.items(), key=lambda entry: -entry[1])[:_MAX_PLACES]
    places = [f"{place} {format_pps(rate)}" for place, rate in largest if rate > 0.0]
    return f": {', '.join(places)}" if places else ""


def _delay(name: str, delay: Delay | None) -> Iterator[tuple[str, str]]:
    if delay is None:
        return
    points = (("mean", delay.mean_s), ("p50", delay.p50_s), ("p99", delay.p99_s), ("max", delay.max_s))
    known = [f"{label} {format_duration(value)}" for label, value in points if math.isfinite(value)]
    if known:
        yield name, ", ".join(known) + (f" ({delay.method})" if delay.method else "")


def _assumed_arrivals(trial: Trial) -> Iterator[tuple[str, str]]:
    """Yield the arrivals below the times of a trial, which are those of these arrivals."""
    if trial.arrivals and any(list(_delay("", delay)) for delay in (trial.latency, trial.waiting)):
        yield "", f"with {trial.arrivals}"


def arrivals_note(arrivals: Iterable[str]) -> str:
    """Return the sentence below a table of latencies: the arrivals that they assume; empty where none is known.

    Examples
    --------
    >>> arrivals_note(["Poisson arrivals", "Poisson arrivals"])
    'Latency: with Poisson arrivals.'
    >>> arrivals_note(["evenly spaced arrivals", "Poisson arrivals"])
    'Latency: with evenly spaced arrivals or Poisson arrivals, those of the row.'
    """
    known = list(dict.fromkeys(text for text in arrivals if text))
    return f"Latency: with {' or '.join(known)}{', those of the row' * (len(known) > 1)}." if known else ""


def _power(power: TrialPower) -> str:
    energies = [
        f"{format_energy(energy_j)}/{unit}"
        for energy_j, unit in ((power.packet_j, "packet"), (power.bit_j, "bit"))
        if math.isfinite(energy_j)
    ]
    return f"{', '.join((format_power(power.mean_w), *energies))} ({power.scope}; {power.source})"


def resources_table(trial: Trial) -> Table:
    """Return the table of the resources, their utilisation and margin; the bottleneck is strong.

    Eight or more successive resources of one kind share a row, with the least and the greatest value of each column.
    """
    folded = [
        list(alike) for _, alike in groupby(trial.resources, key=lambda resource: re.sub(r"\d+", "#", resource.name))
    ]
    rows = [
        part
        for alike in folded
        for part in ([alike] if len(alike) >= _MIN_FOLDED else [[resource] for resource in alike])
    ]

    def span(form: Callable[[float], str], of: Callable[[Resource], float | None]) -> Callable[[list[Resource]], Cell]:
        def cell(alike: list[Resource]) -> Cell:
            values = [value for resource in alike if (value := of(resource)) is not None and not math.isnan(value)]
            if not values or form(min(values)) == form(max(values)):
                return values[0] if values else None
            return f"{form(min(values))} to {form(max(values))}"

        return cell

    return Table.of(
        rows,
        Column.text("Resource", _resource_names),
        Column("Busy", "", format_ratio, span(format_ratio, lambda resource: resource.utilisation_ratio)),
        Column("Could carry", "", format_pps, span(format_pps, lambda resource: resource.capacity_pps)),
        Column(
            "Left",
            "",
            format_ratio,
            span(format_ratio, lambda resource: _spare_ratio(resource.capacity_pps, trial.forwarded_pps)),
        ),
        name="resources",
        title="Resources",
        caption="Left: how much more of this load a resource could carry than the router forwards.",
        strong=lambda alike: trial.bottleneck.name in {resource.name for resource in alike},
    )


def _resource_names(alike: Sequence[Resource]) -> str:
    if len(alike) == 1:
        return alike[0].name
    first, *_, last = sorted((resource.name for resource in alike), key=lambda name: (len(name), name))
    return f"{first} … {last} ({len(alike)})"


def _spare_ratio(capacity_pps: float, forwarded_pps: float) -> float | None:
    """Return the margin of the router over its forwarded rate; rounding errors count as 0."""
    if not forwarded_pps:
        return None
    left = capacity_pps / forwarded_pps - 1.0
    return 0.0 if abs(left) < _ROUNDING else left


def _energy(trial: Trial) -> Table:
    entries = [(pool, *entry) for pool, states in trial.energy_j.items() for entry in states.items()]
    return Table.of(
        entries,
        Column.text("Pool", lambda entry: entry[0]),
        Column.text("State", lambda entry: entry[1]),
        Column("Energy", "J", getter=lambda entry: entry[2]),
        Column("Mean power", "", format_power, lambda entry: entry[2] / trial.duration_s),
        name="energy",
        title="Energy",
    )


def messages_table(messages: Sequence[Message]) -> Table:
    """Return the table of the messages between task units and resource managers, in the order of sending."""
    return Table.of(
        messages,
        Column("Time", "", format_duration, lambda row: row.at_s),
        Column.text("Message", lambda row: row.kind),
        Column.text("Task unit", lambda row: row.task),
        Column.text("Pool", lambda row: row.pool),
        Column("Unit", "", "d", lambda row: row.unit),
        name="messages",
        title="Messages",
        caption="REQ asks for units, REP grants them, REL releases them, REV revokes them (S4).",
    )
