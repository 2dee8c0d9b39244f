"""Views of a sweep: table, figure, CSV and page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from routecast.evaluate.result_folder import versions
from routecast.evaluate.views import arrivals_note
from routecast.load.frames import FrameMix
from routecast.load.offered import IntendedRate
from routecast.quantity import format_duration, format_pps, format_ratio
from routecast.quantity.amount import amount_of
from routecast.quantity.format import prefixed
from routecast.show.figures import Axis, Figure, Line, Mark, Points, palette
from routecast.show.page import Listing, Page, Section
from routecast.show.tables import Cell, Column, Table, csv_of

if TYPE_CHECKING:
    from routecast.evaluate.sweep import Sweep, SweepAxis, SweepPoint
    from routecast.evaluate.trial import Bottleneck, Trial

__all__ = ["sweep_csv", "sweep_figure", "sweep_notes", "sweep_page", "sweep_table"]

_NOT_KNOWN = "not known"
_MAX_CURVES = 12
_MAX_NOTES = 8
_SAME = 1e-3

Rate = Callable[["SweepPoint"], float]


def sweep_table(sweep: Sweep, *, has_reasons: bool = False) -> Table:
    """Return the table of all combinations: settings, rates and the limit, with ``has_reasons`` also its reason."""
    names = [axis.key for axis in sweep.varied]
    counts_flows = "cores" in names and "flows" not in names

    simulated = tuple(_trial_columns(sweep, lambda point: point.simulated, "simulated")) if sweep.is_simulated else ()
    return Table.of(
        sweep.points,
        *(Column(name, getter=partial(_setting, name)) for name in names),
        counts_flows and Column("flows", getter=lambda point: str(point.flows)),
        *(_solved_columns(sweep) if sweep.is_solved else ()),
        *simulated,
        sweep.is_solved and Column.text("What limits", lambda point: _limits(point.bottleneck)),
        has_reasons
        and sweep.is_solved
        and Column.text("Because", lambda point: point.bottleneck.reason if point.bottleneck else None, wrap=True),
        sweep.is_simulated
        and Column.text(
            "What limits",
            lambda point: _limits(point.simulated.bottleneck if point.simulated else None),
            unit="simulated",
        ),
        name="sweep",
        title=f"{sweep.router}: {', '.join(names)}",
        caption=arrivals_note(_assumed_arrivals(sweep)),
    )


def _assumed_arrivals(sweep: Sweep) -> Iterator[str]:
    """Yield the arrivals of each trial whose latency the table shows."""
    for point in sweep.points if sweep.has_load else ():
        yield from (
            trial.arrivals for trial in (point.trial, point.simulated) if trial and isinstance(_latency(trial), float)
        )


def _solved_columns(sweep: Sweep) -> Iterator[Column[SweepPoint]]:
    return _trial_columns(sweep, lambda point: point.trial) if sweep.has_load else _rate_columns()


def _rate_columns() -> Iterator[Column[SweepPoint]]:
    yield Column("Without loss", "", getter=_without_loss)
    yield Column("Overloads nothing", "", format_pps, lambda point: _known(point.overloads_nothing_pps))
    yield Column("At most", "", format_pps, lambda point: _known(point.maximum_pps))


def _trial_columns(
    sweep: Sweep, get: Callable[[SweepPoint], Trial | None], of: str = ""
) -> Iterator[Column[SweepPoint]]:
    """Yield the columns of a trial; without a load only the forwarding rate has a meaning."""
    yield Column("Forwarded", of, format_pps, lambda point: _known(_forwarded(get(point))))
    if sweep.has_load:
        yield Column("Loss", of, format_ratio, lambda point: _loss(get(point)))
        yield Column("Latency", of, format_duration, lambda point: _latency(get(point)))


def _setting(name: str, point: SweepPoint) -> str:
    return str(point.settings[name])


def _known(number: float) -> Cell:
    return number if math.isfinite(number) else _NOT_KNOWN


def _forwarded(trial: Trial | None) -> float:
    return trial.forwarded_pps if trial is not None else math.nan


def _loss(trial: Trial | None) -> Cell:
    return _known(trial.loss_ratio) if trial is not None else _NOT_KNOWN


def _latency(trial: Trial | None) -> Cell:
    return _known(trial.latency.mean_s) if trial is not None and trial.latency is not None else _NOT_KNOWN


def _without_loss(point: SweepPoint) -> str:
    """Return the rate without loss; one above which the loss is not known is a least one."""
    if not math.isfinite(point.lossless_pps):
        return _NOT_KNOWN
    return f"{'>= ' if point.lossless_is_at_least else ''}{format_pps(point.lossless_pps)}"


def _limits(bottleneck: Bottleneck | None) -> str:
    return bottleneck.name if bottleneck is not None else _NOT_KNOWN


def sweep_notes(sweep: Sweep) -> tuple[str, ...]:
    """Return the notes on a sweep: on all points, on unknown values with the reason, on ranges of validity."""
    problems = [f"{_settings_text(point)}: {point.problem}" for point in sweep.points if point.problem]
    differ = [
        f"{_settings_text(point)}: solve says that {solved.name} limits, simulate that {simulated.name} does"
        for point in sweep.points
        if point.simulated
        and (solved := point.bottleneck)
        and solved.differs_from(simulated := point.simulated.bottleneck)
    ]
    validity = list(dict.fromkeys(note for point in sweep.points for note in point.notes))
    return (*sweep.notes, *_abbreviated(problems), *_abbreviated(differ), *_abbreviated(validity))


def _settings_text(point: SweepPoint) -> str:
    return ", ".join(f"{key} = {entry}" for key, entry in point.settings.items())


def _abbreviated(notes: Sequence[str]) -> list[str]:
    hidden = len(notes) - _MAX_NOTES
    return [*notes[:_MAX_NOTES], *([f"{hidden} more such notes: --json has them all"] if hidden > 0 else [])]


def sweep_csv(sweep: Sweep) -> str:
    """Return the sweep as CSV in base units; unknown values are empty."""
    rows = []
    for row in sweep.rows():
        settings = row.pop("settings")
        assert isinstance(settings, dict)
        simulated = {"simulated": row.pop("simulated")} if "simulated" in row else {}
        del row["notes"]
        rows.append({**settings, **row, **simulated})
    return csv_of(rows)


def sweep_figure(sweep: Sweep) -> Figure:
    """Return the rates over the first key with numeric values, with a curve for each combination of the other keys.

    Where no key has numeric values, the values of the first key stand side by side.
    """
    x_key = next((axis for axis in sweep.varied if _numeric_values(axis)), sweep.varied[0])
    numbers, unit = _numeric_values(x_key) or (tuple(map(float, range(1, len(x_key.values) + 1))), "")
    x_of = dict(zip(map(repr, x_key.values), numbers, strict=True))
    curves: dict[str, list[SweepPoint]] = {}
    for point in sweep.points:
        others = ", ".join(f"{key} {entry}" for key, entry in point.settings.items() if key != x_key.key)
        curves.setdefault(others, []).append(point)
    rate_of: Rate = (
        (lambda point: _forwarded(point.trial)) if sweep.has_load else (lambda point: point.overloads_nothing_pps)
    )
    drawn_points = [point for curve in list(curves.values())[:_MAX_CURVES] for point in curve]
    has_maximum = not sweep.has_load and any(
        point.maximum_pps > point.overloads_nothing_pps * (1.0 + _SAME) for point in drawn_points
    )
    rates = [rate_of(point) for point in drawn_points] + [point.maximum_pps for point in drawn_points if has_maximum]
    rates += [_forwarded(point.simulated) for point in drawn_points]
    scale, rate_unit = prefixed(rates, "pps")
    marks: list[Mark] = []
    first = "forwarded" if sweep.has_load else "overloads nothing"
    has_lossless = (
        sweep.is_solved
        and not sweep.has_load
        and any(not point.lossless_pps >= point.overloads_nothing_pps * (1.0 - _SAME) for point in drawn_points)
    )
    colours = palette(min(len(curves), _MAX_CURVES), ordered=len(curves) > 2)
    for (name, points), colour in zip(curves.items(), colours, strict=False):
        curve = sorted(points, key=lambda point: x_of[repr(point.settings[x_key.key])])

        def coordinates(get: Rate, curve: Sequence[SweepPoint] = curve) -> tuple[tuple[float, ...], tuple[float, ...]]:
            pairs = [(x_of[repr(point.settings[x_key.key])], get(point) / scale) for point in curve]
            known = [pair for pair in pairs if math.isfinite(pair[1])]
            return tuple(x for x, _ in known), tuple(y for _, y in known)

        x, y = coordinates(rate_of)
        if sweep.is_solved:
            marks.append(Line(name=name or first, x=x, y=y, colour=colour))
        if has_lossless:
            x, y = coordinates(lambda point: point.lossless_pps)
            if x:
                label = f"{name}, without loss".lstrip(", ")
                marks.append(Points(name=label, x=x, y=y, colour=colour, legend=not name))
        if has_maximum:
            x, y = coordinates(lambda point: point.maximum_pps)
            marks.append(
                Line(name=f"{name}, at most".lstrip(", "), x=x, y=y, colour=colour, dashed=True, legend=not name)
            )
        x, y = coordinates(lambda point: _forwarded(point.simulated))
        if x:
            label = f"{name}, simulated".lstrip(", ")
            marks.append(Points(name=label, x=x, y=y, colour=colour, filled=False, legend=not name))
    is_counted = _numeric_values(x_key) is not None
    title = f"{x_key.key} [{unit}]" if unit else x_key.key
    return Figure(
        name="sweep",
        title=f"Rate over {x_key.key}",
        caption=" ".join(_caption(sweep, first, len(curves), has_maximum=has_maximum, has_lossless=has_lossless)),
        x=Axis(title=title)
        if is_counted and len(numbers) > _MAX_CURVES
        else Axis(title=title, ticks=numbers, labels=() if is_counted else tuple(map(str, x_key.values))),
        y=Axis(title=f"rate [{rate_unit}]", low=0.0),
        marks=tuple(marks),
    )


def _caption(sweep: Sweep, first: str, curves: int, *, has_maximum: bool, has_lossless: bool) -> list[str]:
    sentences = [f"Lines: {first}, by closed form."] if sweep.is_solved else []
    if has_lossless:
        sentences.append("Points: no loss is known up to there; above, queues may overflow by chance.")
    if has_maximum:
        sentences.append("Dashed: the most that is forwarded, with loss.")
    if sweep.is_simulated:
        sentences.append(
            "Hollow points: simulated" + ("." if sweep.has_load else ", with line rate offered to every port.")
        )
    if curves > _MAX_CURVES:
        sentences.append(f"The first {_MAX_CURVES} of {curves} curves; the table has all.")
    return sentences


def _numeric_values(varied: SweepAxis) -> tuple[tuple[float, ...], str] | None:
    """Return the values as numbers of one unit; None if a value is not a number or has another dimension."""
    if varied.key == "frame":
        mixes = [FrameMix.parse(str(entry)) for entry in varied.values]
        return (tuple(mix.mean_bytes for mix in mixes), "B") if all(mix.is_fixed for mix in mixes) else None
    if varied.key == "load":
        rates = [IntendedRate.parse(str(entry)) for entry in varied.values]
        if len({rate.unit for rate in rates}) > 1:
            return None
        amounts_of_load = [rate.amount for rate in rates]
        scale, unit = prefixed(amounts_of_load, "pps" if rates[0].unit == "frames/s" else "bit/s")
        return tuple(amount / scale for amount in amounts_of_load), unit
    amounts = [amount_of(entry) for entry in varied.values]
    known = [
        amount for amount in amounts if amount is not None and amount.dimension == (amounts[0] or amount).dimension
    ]
    return (
        (tuple(amount.in_unit(known[0].unit) for amount in known), known[0].unit)
        if len(known) == len(amounts)
        else None
    )


def sweep_page(sweep: Sweep, *, command: str) -> Page:
    """Return the page of a sweep: the figure, the table with the reasons, and the notes."""
    keys = " and ".join(axis.key for axis in sweep.varied)
    lowest, highest = _ends(sweep)
    notes = sweep_notes(sweep)
    return Page(
        title=f"Sweep: {sweep.router}",
        question=f"How does the rate depend on {keys}, and what limits?",
        answer=f"{_NOT_KNOWN.capitalize()}."
        if math.isnan(highest)
        else f"From {format_pps(lowest)} to {format_pps(highest)}{_of_rates(sweep)}.",
        sections=(
            Section.of(
                "rates",
                "Rates",
                _describe_limits(sweep),
                sweep_figure(sweep),
                sweep_table(sweep, has_reasons=True),
                bool(notes) and Listing(title="Notes", entries=notes),
            ),
        ),
        provenance=(("Command", f"`{command}`"), *versions().items()),
    )


def _of_rates(sweep: Sweep) -> str:
    """Return what the rates of :func:`_ends` are."""
    if not sweep.is_solved:
        return " forwarded, simulated" + ("" if sweep.has_load else " with line rate offered to every port")
    return "" if sweep.has_load else " overload nothing"


def _ends(sweep: Sweep) -> tuple[float, float]:
    if sweep.is_solved:
        rates = [_forwarded(point.trial) if sweep.has_load else point.overloads_nothing_pps for point in sweep.points]
    else:
        rates = [_forwarded(point.simulated) for point in sweep.points]
    known = [rate for rate in rates if math.isfinite(rate)]
    return (min(known), max(known)) if known else (math.nan, math.nan)


def _describe_limits(sweep: Sweep) -> str:
    """Return a sentence on the number of points that each resource limits."""
    limits = [
        point.bottleneck if sweep.is_solved else point.simulated.bottleneck if point.simulated else None
        for point in sweep.points
    ]
    names = [_limits(limit) for limit in limits]
    counts = sorted(((names.count(name), name) for name in dict.fromkeys(names)), key=lambda pair: -pair[0])
    return f"What limits, of {len(names)} points: {', '.join(f'{name} {count}' for count, name in counts[:5])}."
