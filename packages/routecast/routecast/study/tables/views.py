"""The report of a study of tables: measurements, the model's rates with errors, the law, forecasts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from html import escape
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from routecast.calibration.views import LIMITS
from routecast.load.offered import WIRE_OVERHEAD_BYTES
from routecast.quantity import format_bps, format_duration, format_pps
from routecast.show.figures import GREY, Axis, Figure, Line, Mark, Points, palette
from routecast.show.page import Block, Drawing, Page, Prose, Section, Tile, Tiles
from routecast.show.tables import Column, Table, percent, signed_percent
from routecast.study.result import TerminalSummary, format_percent, statements_section, statements_table
from routecast.study.tables.document import StudyRouter
from routecast.study.tables.run import LineSetting, LinksFilled, TableRow, TablesResult

if TYPE_CHECKING:
    from routecast.calibration.fitted import Parameter

__all__ = [
    "calibration_table",
    "error_table",
    "forecast_table",
    "links_table",
    "page",
    "parameter_table",
    "terminal_summary",
    "throughput_figure",
]


_LIMITED_BY = {"shared": "bus or memory that the cores share", "link and cpu": "links and the cores"}

_Row = TypeVar("_Row")


def _flows(getter: Callable[[_Row], int | str | None]) -> Column[_Row]:
    return Column("Flows", "", "d", getter)


def _frame(getter: Callable[[_Row], float]) -> Column[_Row]:
    return Column("Frame", "B", "d", getter)


def limited_by(limit: str) -> str:
    """Return the bottleneck for a sentence, "limited by the …".

    Examples
    --------
    >>> limited_by("cpu"), limited_by("link and cpu")
    ('cores', 'links and the cores')
    """
    return _LIMITED_BY.get(limit, LIMITS.get(limit, limit))


_CONDITIONS: dict[str, tuple[Column[TableRow], Callable[[LineSetting], str]]] = {
    "cores": (Column("Cores", "", "d", lambda row: row.point.cores), lambda point: _count(point.cores, "core")),
    "link_bps": (
        Column("Link", "Gbit/s", ".4g", lambda row: row.setting.link_bps / 1e9),
        lambda point: f"links of {format_bps(point.link_bps)}",
    ),
    "ports": (Column("Ports", "", "d", lambda row: row.point.ports), lambda point: _count(point.ports, "port")),
    "nic_cap_pps": (
        Column("NIC cap", "Mpps", ".4g", lambda row: row.point.nic_cap_pps and row.point.nic_cap_pps / 1e6),
        lambda point: (
            f"cards that take in {format_pps(point.nic_cap_pps)}" if point.nic_cap_pps else "cards without a cap"
        ),
    ),
    "flows": (
        _flows(lambda row: "every core" if row.point.flows is None else row.point.flows),
        lambda point: "flows for every core" if point.flows is None else _count(point.flows, "flow"),
    ),
}
"""Conditions by name: the column of a table, and a setting's value in words."""


def _varying(settings: Iterable[LineSetting]) -> list[str]:
    """Return the conditions that vary over the settings, or the flows if no condition varies."""
    settings = list(settings)
    varying = [name for name in _CONDITIONS if len({getattr(setting, name) for setting in settings}) > 1]
    return varying or ["flows"]


def _describe_setting(setting: LineSetting, names: Iterable[str]) -> str:
    return ", ".join(_CONDITIONS[name][1](setting) for name in names)


def _count(count: int | None, noun: str) -> str:
    return f"{count} {noun}{'s' if count != 1 else ''}"


def _frames(row: TableRow) -> str:
    """Return the frames for a sentence, "forwards 1 Mpps of …"."""
    return row.frames if row.is_mix else f"{row.point.frame_bytes}-byte frames"


def _other_than_measured(setting: LineSetting, router: StudyRouter) -> list[str]:
    """Describe the ports and caps of a setting that differ from the measured router's."""
    ports = [_describe_setting(setting, ["ports"])] if setting.ports != router.ports else []
    return [*ports, *([_describe_setting(setting, ["nic_cap_pps"])] if setting.nic_cap_pps else [])]


def _gbps(row: TableRow, rate_pps: float) -> float:
    return rate_pps * row.l1_bits / 1e9


def calibration_table(result: TablesResult) -> Table:
    """Return the points that calibrate."""
    return Table.of(
        result.calibrating,
        _flows(lambda point: point.flows),
        _frame(lambda point: int(point.frame_bytes)),
        Column(
            "Measured",
            "Gbit/s",
            ".4f",
            lambda point: point.throughput_pps * 8.0 * (point.frame_bytes + WIRE_OVERHEAD_BYTES) / 1e9,
        ),
        Column("Measured", "Mpps", ".4f", lambda point: point.throughput_pps / 1e6),
        name="calibration",
        title="Points that calibrate",
        caption="All that the calibration sees.",
    )


def comparison_table(result: TablesResult) -> Table:
    """Return every measured point with the rates and errors of each model."""

    def error(title: str, rate: Callable[[TableRow], float], **more: Any) -> Column[TableRow] | bool:
        """Return the column of a model's errors; False for a model without values."""
        is_known = any(math.isfinite(rate(row)) for row in result.comparisons)
        return is_known and Column(title, "error, %", signed_percent, lambda row: row.error_ratio_of(rate(row)), **more)

    routecast, others = "routecast", "others"
    return Table.of(
        result.comparisons,
        _flows(lambda row: row.point.flows),
        _frame(lambda row: row.point.frame_bytes),
        Column("Measured", "Gbit/s", ".4f", lambda row: _gbps(row, row.measured)),
        # "Predicted" is a role in the table of what the model knew; calibrated points and points in sight have others.
        Column("Model", "Gbit/s", ".4f", lambda row: _gbps(row, row.predicted), group=routecast),
        Column("95 % interval", "Gbit/s", getter=lambda row: _interval(row, _gbps), group=routecast),
        Column("Error", "%", signed_percent, lambda row: row.error_ratio, group=routecast),
        error("Simulated", lambda row: row.simulated_pps, group=routecast, wide=True),
        error("Eqs. 5–7", lambda row: row.baseline_pps, group=others),
        error(_capitalised(result.study.measurements.reported), lambda row: row.stated, group=others),
        Column.text("Limit", lambda row: LIMITS.get(row.limit, row.limit)),
        name="comparison",
        title="Measured and modelled",
        caption="Shaded rows calibrate; the others were held out.",
        strong=lambda row: row.calibrates,
    )


def _mpps(_: TableRow, rate_pps: float) -> float:
    return rate_pps / 1e6


def _interval(row: TableRow, shown: Callable[[TableRow, float], float]) -> str:
    return f"{shown(row, row.low):.2f}–{shown(row, row.high):.2f}"


def _capitalised(name: str) -> str:
    return name[:1].upper() + name[1:]


def error_table(result: TablesResult) -> Table:
    """Return the errors of every model over the held-out points, and over all points."""
    names = {
        "solve": "routecast, closed form",
        "simulate": "routecast, simulation",
        "baseline": "eqs. 5–7, our reproduction",
        "reported": result.study.measurements.reported,
    }
    held_out, all_points = result.errors(), result.errors_everywhere()
    return Table.of(
        [(key, name) for (key, name) in names.items() if held_out[key].points],
        Column.text("Model", lambda row: row[1]),
        Column("Mean", "held out", percent, lambda row: held_out[row[0]].mean_abs_error_ratio),
        Column("Median", "held out", percent, lambda row: held_out[row[0]].median_abs_error_ratio),
        Column("Largest", "held out", percent, lambda row: held_out[row[0]].max_abs_error_ratio),
        Column("Mean", "all", percent, lambda row: all_points[row[0]].mean_abs_error_ratio),
        Column("Largest", "all", percent, lambda row: all_points[row[0]].max_abs_error_ratio),
        name="errors",
        title="Absolute errors",
        caption=f"In percent. {len(result.held_out)} of {len(result.comparisons)} points were held out; "
        f"all models calibrate from the same {len(result.calibrating)}.",
        strong=frozenset({0}),
    )


def hypothesis_table(result: TablesResult) -> Table:
    """Return the laws of contention in the average of the model, with their weights."""
    return Table.of(
        result.hypotheses,
        Column.text("Law", lambda row: row.law.name),
        Column.text("k busy cores: c(k), or their joint speed g(k) = k/c(k)", lambda row: row.law.formula),
        Column("Weight", "%", lambda ratio: f"{100.0 * ratio:.0f}", lambda row: row.weight),
        name="hypotheses",
        title="How cores slow each other down",
        caption="A few points do not show which law holds, so the better a law explains them, the greater its weight.",
    )


def parameter_table(result: TablesResult) -> Table:
    """Return the calibrated parameters, with seconds as nanoseconds."""

    def scale(parameter: Parameter) -> float:
        return 1e9 if parameter.unit in {"s", "s/B"} else 1.0

    def interval(parameter: Parameter) -> str | None:
        low, high = parameter.low * scale(parameter), parameter.high * scale(parameter)
        return f"{low:.3g}–{high:.3g}" if math.isfinite(low) and math.isfinite(high) else None

    def unit(parameter: Parameter) -> str:
        return f"n{parameter.unit}" if scale(parameter) > 1.0 else "" if parameter.unit == "1" else parameter.unit

    return Table.of(
        result.parameters,
        Column.text("Parameter", lambda row: row.name),
        Column("Value", "", ".4g", lambda row: row.value * scale(row)),
        Column("95 % interval", getter=interval),
        Column.text("Unit", unit),
        Column.text("Meaning", lambda row: row.meaning),
        name="parameters",
        title="Calibrated parameters",
        caption="With 95 % intervals where the points determine them.",
    )


def forecast_table(result: TablesResult, scenario: str) -> Table:
    """Return the predictions of a scenario where every core has a flow of its own or the flows are random.

    The rows include the point that the page names, :meth:`TablesResult.representative`.
    """
    points = [
        row for row in result.scenarios[scenario] if row.point.flows is None or row.point.flows >= row.point.cores
    ]
    points = points or list(result.scenarios[scenario])
    varying = _varying(row.setting for row in result.scenarios[scenario])
    shown = [name for name in _CONDITIONS if name in varying or name == "flows"]
    has_mix = any(row.is_mix for row in points)
    caption = "Flows crafted to fall on a core each, or random where there are more flows than cores."
    fixed = (
        []
        if "ports" in varying or "nic_cap_pps" in varying
        else _other_than_measured(points[0].setting, result.study.router)
    )
    return Table.of(
        points,
        *(_CONDITIONS[name][0] for name in shown),
        Column.text("Frames", lambda row: row.frames) if has_mix else _frame(lambda row: row.point.frame_bytes),
        Column("Predicted", "Mpps", ".2f", lambda row: row.predicted / 1e6),
        Column("95 % interval", "Mpps", getter=lambda row: _interval(row, _mpps)),
        Column("Predicted", "Gbit/s", ".2f", lambda row: _gbps(row, row.predicted)),
        any(math.isfinite(row.simulated_pps) for row in points)
        and Column("Simulated", "Mpps", ".2f", lambda row: row.simulated_pps / 1e6),
        any(math.isfinite(row.baseline_pps) for row in points)
        and Column("Eqs. 5–7", "Mpps", ".2f", lambda row: row.baseline_pps / 1e6),
        Column.text("Limit", lambda row: LIMITS.get(row.limit, row.limit)),
        name=scenario,
        title=_scenario_title(result, scenario),
        caption=" ".join([f"With {' and '.join(fixed)}."] * bool(fixed) + [caption]),
    )


def links_table(result: TablesResult, scenario: str) -> Table | None:
    """Return the numbers of flows that fill the links at each frame size; None if the source states none."""
    rows = [row for row in result.links_filled if row.scenario == scenario]
    if not rows:
        return None
    first = rows[0]
    has_baseline = any(math.isfinite(row.stated_baseline_l1_bps) for row in rows)

    def numbers(title: str, of: Callable[[LinksFilled], Sequence[int]]) -> Column[LinksFilled]:
        return Column.text(title, lambda row: ", ".join(map(str, of(row))) or f"none up to {row.most_flows}")

    def gbps(title: str, l1_bps: Callable[[LinksFilled], float], flows: int) -> Column[LinksFilled]:
        return Column(title, f"Gbit/s, {flows} flows", ".2f", lambda row: l1_bps(row) / 1e9)

    return Table.of(
        rows,
        Column.text("Frames", lambda row: row.frames),
        Column.text("Stated", lambda row: f"from {row.stated_flows} on"),
        numbers("Model", lambda row: row.predicted_flows),
        has_baseline and numbers("Eqs. 5–7", lambda row: row.baseline_flows),
        gbps("Model", lambda row: row.fewer_predicted_l1_bps, first.fewer_flows),
        has_baseline and gbps("Eqs. 5–7", lambda row: row.fewer_baseline_l1_bps, first.fewer_flows),
        gbps("Model", lambda row: row.stated_predicted_l1_bps, first.stated_flows),
        has_baseline and gbps("Eqs. 5–7", lambda row: row.stated_baseline_l1_bps, first.stated_flows),
        name=f"{scenario}-links",
        title=f"Flows that fill the links of {format_bps(first.links_l1_bps)} together",
        caption="Crafted flows, each on its own core. Links count as full at 99 % of their rates, the accuracy "
        "of testers. The statement names no frame size. Flows offer equal shares and enter by the ports in "
        "turn, so an odd number loads the ports unequally.",
    )


def terminal_summary(result: TablesResult) -> TerminalSummary:
    """Return the summary of a study for a terminal."""
    forecasts = [
        (_is_forecast(result, rows) and forecast_table(result, name), links_table(result, name))
        for name, rows in result.scenarios.items()
    ]
    inside = sum(row.is_covered for row in result.held_out)
    return TerminalSummary.of(
        parameter_table(result),
        comparison_table(result),
        error_table(result),
        *chain.from_iterable(forecasts),
        statements_table(result.statements, caption=result.study.source),
        lead=result.law,
        closing=f"{inside} of {len(result.held_out)} held-out points lie inside their 95 % interval.",
        notes=result.notes,
    )


Unit = Literal["pps", "l1_bps"]
_Symbol = Literal["circle", "square", "diamond"]
_SYMBOLS: tuple[_Symbol, ...] = ("circle", "square", "diamond")

_UNITS = {"pps": ("Mpps", 1e-6), "l1_bps": ("Gbit/s", 1e-9)}
_PARTS = {"pps": "a", "l1_bps": "b"}


def throughput_figure(result: TablesResult, scenario: str, *, unit: Unit) -> Figure:
    """Return maximum throughput over frame size: a line with its 95 % band for each setting, and measured points."""
    rows = result.scenarios[scenario]
    settings = sorted({row.setting for row in rows}, key=_sort_key)
    varying = _varying(settings)
    sizes = sorted({row.point.frame_bytes for row in rows if not row.is_mix})
    measured = _measured_rows(result, rows)
    shown, _ = _UNITS[unit]

    def frame_bytes(row: TableRow) -> float:
        return float(row.point.frame_bytes)

    def in_unit(rate: str) -> Callable[[TableRow], float]:
        return lambda row: _scaled(row, getattr(row, rate), unit)

    def marks_of(setting: LineSetting, colour: str) -> Iterator[Mark]:
        points = sorted((row for row in rows if row.setting == setting), key=lambda row: row.point.frame_bytes)
        name = _describe_setting(setting, varying)
        line = result.curves[scenario].get(setting, ())
        # Random flows have no band of their own: it is that of crafted flows on as many cores.
        ends = {} if setting.is_random else {"low": in_unit("low"), "high": in_unit("high")}
        dashed = setting.is_random
        yield Line.of(line, frame_bytes, in_unit("predicted"), name=name, colour=colour, dashed=dashed, **ends)

        def mark(
            title: str, rows: list[TableRow], rate: str, label: Callable[[TableRow], str] | None = None, **style: Any
        ) -> Points:
            y = in_unit(rate)
            if label is not None:
                style["labels"] = lambda row: f"{label(row)}\n{y(row):.4g} {shown}"
            return Points.of(rows, frame_bytes, y, name=title, colour=colour, legend=False, **style)

        # Mixes lie on no line, so they are drawn at their mean sizes.
        mixes = [row for row in points if row.is_mix]
        yield mark("mix, at its mean size", mixes, "predicted", lambda row: f"{name} of {row.frames}", symbol="diamond")
        yield mark(
            f"{name}, simulated",
            [row for row in points if math.isfinite(row.simulated_pps) and math.isfinite(row.solved_pps)],
            "simulated_pps",
            lambda row: f"simulated\n{name} of {row.frames}",
            filled=False,
            symbol="cross",
        )
        measured_here = [row for row in measured if row.setting == setting]
        yield mark(
            "measured",
            measured_here,
            "measured",
            lambda row: f"measured{' (calibrates)' if row.calibrates else ''}\n{_point_name(row)}",
        )
        # A ring around the calibrating points, as in Meyer et al. 2014, fig. 8(b).
        yield mark("calibrates", [row for row in measured_here if row.calibrates], "measured", filled=False, size_px=16)

    coloured = zip(settings, palette(len(settings)), strict=True)
    marks = [mark for setting, colour in coloured for mark in marks_of(setting, colour) if mark.x]
    return Figure(
        name=f"{scenario}{_PARTS[unit]}",
        title=f"{_scenario_title(result, scenario)}: maximum throughput in {shown}",
        caption=_caption(rows, unit, has_measured=bool(measured)),
        x=_frame_axis(sizes, [row.point.frame_bytes for row in rows]),
        y=Axis(title=f"maximum throughput [{shown}]"),
        marks=(*marks, *_legend(marks)),
    )


def _scenario_title(result: TablesResult, name: str) -> str:
    return next(scenario.title for scenario in result.study.scenario if scenario.name == name)


def error_figure(result: TablesResult) -> Figure:
    """Return the relative error of each model at every measured point, in the order of the table."""
    rows = result.comparisons
    everywhere = result.errors_everywhere()
    models = [("routecast", "predicted")]
    models += [("eqs. 5 to 7", "baseline_pps")] * bool(everywhere["baseline"].points)
    models += [(result.study.measurements.reported, "stated")] * bool(everywhere["reported"].points)

    def mark(model: tuple[str, str], colour: str, symbol: _Symbol) -> Points:
        name, rate = model

        def error_percent(row: TableRow) -> float:
            return 100.0 * row.error_ratio_of(getattr(row, rate))

        return Points(
            name=name,
            x=tuple(float(number) for number in range(1, len(rows) + 1)),
            y=tuple(map(error_percent, rows)),
            colour=colour,
            filled=rate == "predicted",
            symbol=symbol,
            labels=tuple(f"{name}\n{_point_name(row)}\n{error_percent(row):+.2f} %" for row in rows),
        )

    marks = tuple(map(mark, models, palette(len(models), ordered=False), _SYMBOLS))
    errors = [error for mark in marks for error in mark.y if math.isfinite(error)]
    worst = max(result.held_out or rows, key=lambda row: abs(row.error_ratio))
    return Figure(
        name="errors",
        title="Error at every measured point",
        caption="Points in the order of the table below, calibrating ones included. The largest error of routecast is "
        f"at {_point_name(worst)}.",
        x=_groups_axis(rows),
        y=Axis(title="error [%]", low=math.floor(min(errors) - 0.3), high=math.ceil(max(errors) + 0.3)),
        marks=marks,
        height_px=340,
    )


def _groups_axis(rows: tuple[TableRow, ...]) -> Axis:
    """Return an axis that names the groups of rows with the same number of flows."""
    positions: dict[int | None, list[int]] = {}
    for position, row in enumerate(rows, start=1):
        positions.setdefault(row.point.flows, []).append(position)
    return Axis(
        title="measured points by number of flows, frame size growing within each",
        ticks=tuple(sum(group) / len(group) for group in positions.values()),
        labels=tuple(_count(flows, "flow") for flows in positions),
        low=0.0,
        high=len(rows) + 1.0,
    )


def _point_name(row: TableRow) -> str:
    return f"{_count(row.point.flows, 'flow')} of {row.point.frame_bytes} B"


def _measured_rows(result: TablesResult, rows: tuple[TableRow, ...]) -> list[TableRow]:
    """Return the measurements of the scenario's router."""
    routers = {row.setting._replace(flows=None) for row in rows}
    return [row for row in result.comparisons if row.setting._replace(flows=None) in routers]


def _sort_key(setting: LineSetting) -> tuple[float, ...]:
    """Return the sort key of a setting; no cap and flows for every core come last."""
    return (
        setting.cores,
        setting.link_bps,
        setting.ports,
        setting.nic_cap_pps or math.inf,
        math.inf if setting.flows is None else setting.flows,
    )


def _frame_axis(sizes: list[float], everywhere: list[float]) -> Axis:
    return Axis(
        title="frame size [B], FCS included",
        scale="log",
        ticks=tuple(float(size) for size in sizes),
        low=min(everywhere) / 1.12,
        high=max(everywhere) * 1.12,
    )


def _scaled(row: TableRow, rate_pps: float, unit: Unit) -> float:
    factor = _UNITS[unit][1]
    return rate_pps * factor * (row.l1_bits if unit == "l1_bps" else 1.0)


def _legend(marks: list[Mark]) -> list[Mark]:
    """Return the marks that explain the used symbols in the legend."""
    symbols = {mark.name: mark for mark in marks if isinstance(mark, Points) and mark.x}
    explained: dict[str, Mark] = {}
    for mark in symbols.values():
        name = "simulated" if mark.symbol == "cross" else mark.name
        explained[name] = replace(mark, name=name, x=(math.nan,), y=(math.nan,), labels=(), colour=GREY, legend=True)
    return [explained[name] for name in sorted(explained)]


def _caption(rows: tuple[TableRow, ...], unit: Unit, *, has_measured: bool) -> str:
    marks = "Lines are the closed form with its 95 % band (random flows dashed), crosses the packet-level simulation"
    marks += ", filled points measurements; rings mark those that calibrate." if has_measured else "."
    if unit == "pps":
        smallest = min(rows, key=lambda row: row.point.frame_bytes).frames
        return f"At {smallest}, {_gain_sentence([row for row in rows if row.frames == smallest])}. {marks}"
    if all(row.limit == "cpu" for row in rows):
        return f"The cores are the bottleneck everywhere. {marks}"
    if any("link" in row.limit for row in rows):
        return f"Where a line bends, a link is full. {marks}"
    return marks


def _gain_sentence(rows: list[TableRow]) -> str:
    """Return a sentence on the gain from the fewest to the most cores, with its reason: c(k) or the bottleneck."""
    varying = _varying(row.setting for row in rows)
    if not {"cores", "flows"}.issuperset(varying):
        best = max(rows, key=lambda row: row.predicted)
        return f"{format_pps(best.predicted)} is the most, with {_describe_setting(best.setting, varying)}"
    by_cores = sorted(rows, key=lambda row: (row.point.flows or row.point.cores, row.point.cores))
    crafted = [row for row in by_cores if not row.setting.is_random] or by_cores
    low, high = crafted[0], crafted[-1]
    k = high.point.working_cores
    why = f", limited by the {limited_by(high.limit)}"
    if high.limit == "cpu":
        why = (
            f"; with {k} busy, a frame takes a core c({k}) = {high.contention_ratio:.4g} times as long" if k > 1 else ""
        )
    if low.point.working_cores == k:
        return f"{_count(k, 'core')} forward{'' if k > 1 else 's'} {format_pps(high.predicted)}{why}"
    gain = high.predicted / low.predicted
    if low.point.working_cores == 1:
        return f"{k} cores forward {gain:.2f} times what 1 does{why}"
    return f"throughput grows {gain:.2f} times from {low.point.working_cores} to {k} cores{why}"


WIDTH_PX = 760
ROW_PX = 46
MAX_CORES_DRAWN = 8


def router_picture(router: StudyRouter) -> str:
    """Return the picture of a router as SVG text, in the colours of the page or a light default."""
    cores = min(router.cores, MAX_CORES_DRAWN)
    height = max(cores * ROW_PX + 78, 220)
    middle = height / 2 + 8
    link = escape(format_bps(router.link))
    parts = [
        _box(10, middle - 32, 118, 64, "tester", f"{link} a link"),
        _box(632, middle - 32, 118, 64, "tester", "receives"),
        f'<rect class="router" x="188" y="26" width="384" height="{height - 40}" rx="10"/>',
        f'<text class="name" x="380" y="17" text-anchor="middle">router · {router.cores} cores</text>',
        _box(208, middle - 30, 84, 60, "NIC", "hash of flow"),
        _arrow(128, middle, 208, middle),
    ]
    top = middle - (cores - 1) * ROW_PX / 2
    for core in range(cores):
        at = top + core * ROW_PX
        parts += [
            _curve(292, middle, 342, at),
            _queue(344, at),
            _arrow(406, at, 432, at),
            f'<rect class="core" x="432" y="{at - 15:.0f}" width="76" height="30" rx="5"/>',
            f'<text x="470" y="{at + 4:.0f}" text-anchor="middle">core {core}</text>',
            _curve(508, at, 560, middle),
        ]
    parts += [
        f'<text class="soft" x="375" y="{top - 24:.0f}" text-anchor="middle">{router.queue} frames each</text>',
        _arrow(560, middle, 632, middle),
    ]
    style = (
        "<style>.rp text{font:13px system-ui,'Liberation Sans',sans-serif;fill:var(--ink,#24282e)}"
        ".rp .name{font-weight:600}.rp .soft{font-size:11.5px;fill:var(--soft,#666c76)}"
        ".rp rect{fill:var(--card,#fff);stroke:var(--soft,#8a909a)}.rp .router{fill:var(--mark,#f3efe4);stroke:none}"
        ".rp .core{fill:#3f6fb533;stroke:#3f6fb5}.rp path{fill:none;stroke:var(--soft,#8a909a);stroke-width:1.3}"
        ".rp .tip{fill:var(--soft,#8a909a);stroke:none}</style>"
    )
    label = f"Flows enter by a link; the NIC gives each to one of {router.cores} cores by its hash."
    return (
        f'<svg class="rp" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH_PX} {height:.0f}" role="img" '
        f'aria-label="{label}">{style}{"".join(parts)}</svg>'
    )


def _box(x: float, y: float, width: float, height: float, name: str, note: str) -> str:
    middle = x + width / 2
    return (
        f'<rect x="{x}" y="{y:.0f}" width="{width}" height="{height}" rx="6"/>'
        f'<text class="name" x="{middle}" y="{y + height / 2 - 3:.0f}" text-anchor="middle">{name}</text>'
        f'<text class="soft" x="{middle}" y="{y + height / 2 + 14:.0f}" text-anchor="middle">{note}</text>'
    )


def _queue(x: float, y: float) -> str:
    slots = "".join(f'<path d="M{x + 16 + 11 * i:.0f} {y - 11:.0f}v22"/>' for i in range(4))
    return f'<path d="M{x} {y - 11:.0f}h60v22h-60"/>{slots}'


def _tip(x: float, y: float) -> str:
    return f'<path class="tip" d="M{x} {y:.1f}l-8 -4v8Z"/>'


def _arrow(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path d="M{x1} {y1:.1f}L{x2 - 6} {y2:.1f}"/>{_tip(x2, y2)}'


def _curve(x1: float, y1: float, x2: float, y2: float) -> str:
    bend = (x1 + x2) / 2
    return f'<path d="M{x1} {y1:.1f}C{bend} {y1:.1f} {bend} {y2:.1f} {x2} {y2:.1f}"/>'


def page(result: TablesResult) -> Page:
    """Return the page of a study."""
    study, errors, provenance = result.study, result.errors(), result.provenance
    resumed = f", {provenance.resumed_trials} of them kept from an interrupted run" if provenance.resumed_trials else ""
    summary = errors["solve" if errors["solve"].points else "simulate"]
    answer = f"Calibrated from **{_calibrating_points(result)}**, "
    if summary.points:
        answer += (
            f"the model is within **{format_percent(summary.mean_abs_error_ratio)}** of {summary.points} others on "
            f"average and within {format_percent(summary.max_abs_error_ratio)} at worst."
        )
    else:
        answer += "with no other point to judge the calibration."
    forecasts = (
        _scenario_section(result, name) for name, rows in result.scenarios.items() if _is_forecast(result, rows)
    )
    sections = (
        _live_section(result),
        _measured_section(result),
        _model_section(result),
        _law_section(result),
        *forecasts,
        statements_section(result.statements, "Statements of the source in words.", caption=study.source),
        bool(result.next_points) and _next_section(result),
    )
    return result.page(
        f"{answer} {_forecast_sentence(result)}".strip(),
        sections,
        ("Evaluators", " and ".join(study.evaluate.evaluators)),
        ("Trials", f"{provenance.trials}{resumed}"),
        ("Simulated time", f"{format_duration(study.evaluate.duration)} of overload per trial"),
        ("Seed", str(provenance.seed)),
        terms=(
            (
                "Terms",
                "throughput in bit/s counts the 20 bytes that each frame occupies on the wire beside its own (S1, S2)",
            ),
        ),
    )


def _live_section(result: TablesResult) -> Section:
    from routecast.calibration.priors import read_priors
    from routecast.explore.views import live_of_points

    live, _ = live_of_points(result.measured, priors=read_priors(without=result.study.measurements.left_out))
    return Section(anchor="explore", title="", blocks=(live,), is_listed=False)


def _with_unbreakable_hyphens(name: str) -> str:
    """Write a name like ns-3 without a break in the line."""
    return name.replace("-", "\u2011")


def _calibrating_points(result: TablesResult) -> str:
    return _count(len(result.calibrating), "measured point")


def _is_forecast(result: TablesResult, points: tuple[TableRow, ...]) -> bool:
    """Return whether points are of another router than the measured one, or have mixes of frame sizes."""
    router = result.study.router
    measured = LineSetting(cores=router.cores, flows=None, link_bps=router.link, ports=router.ports, nic_cap_pps=None)
    return any(point.is_mix or point.setting._replace(flows=None) != measured for point in points)


def _forecast_sentence(result: TablesResult) -> str:
    for name, points in result.scenarios.items():
        if _is_forecast(result, points):
            best = result.representative(name)
            load = f", {best.point.working_cores} of them busy," if best.point.working_cores < best.point.cores else ""
            if best.setting.is_random:
                load = f", {best.point.flows} random flows"
            others = _other_than_measured(best.setting, result.study.router)
            more = "".join(f", {other}" for other in others) + "," * bool(others)
            cores, link = _count(best.point.cores, "core"), format_bps(best.setting.link_bps)
            return (
                f"With {cores}{load} and links of {link}{more} it would forward "
                f"**{format_pps(best.predicted)}** of {_frames(best)} (95 % interval {_range(best)}), "
                f"limited by the {limited_by(best.limit)}."
            )
    return ""


def _range(row: TableRow) -> str:
    return f"{row.low / 1e6:.2f} to {row.high / 1e6:.2f} Mpps"


def _measured_section(result: TablesResult) -> Section:
    study = result.study
    prose = tuple(text for text in (study.router.description, study.load.description) if text)
    return Section.of(
        "measured",
        "What was measured",
        f"The maximum throughput of one router at {len(result.comparisons)} combinations of flows and frame size; "
        f"{_calibrating_points(result)} calibrate{'s' if len(result.calibrating) == 1 else ''} the model.",
        Drawing(
            svg=router_picture(study.router),
            caption=(
                "One direction. The hash gives all frames of a flow to one core. Each core has its own queue, and "
                "loses the frames that do not fit into it."
            ),
        ),
        Prose(prose),
        calibration_table(result),
        bool(result.notes) and Prose(tuple(f"{note[0].upper()}{note[1:]}." for note in result.notes)),
    )


def _model_section(result: TablesResult) -> Section:
    errors, everywhere = result.errors(), result.errors_everywhere()
    main = errors["solve"] if errors["solve"].points else errors["simulate"]
    inside = sum(row.is_covered for row in result.held_out)
    tiles = [
        Tile(
            format_percent(main.mean_abs_error_ratio),
            "mean absolute error, held-out points",
            f"median {format_percent(main.median_abs_error_ratio)}",
        ),
        Tile(
            format_percent(main.max_abs_error_ratio),
            "largest error, held-out points",
            f"{result.study.measurements.reported}: {format_percent(errors['reported'].max_abs_error_ratio)}"
            if errors["reported"].points
            else "",
        ),
        Tile(f"{inside} of {len(result.held_out)}", "held-out points inside their 95 % interval"),
    ]
    if everywhere["reported"].points:
        tiles.insert(
            1,
            Tile(
                format_percent(errors["reported"].mean_abs_error_ratio),
                f"mean absolute error of {_with_unbreakable_hyphens(result.study.measurements.reported)}",
                f"over all points {format_percent(everywhere['reported'].mean_abs_error_ratio)}",
            ),
        )
    blocks: list[Block] = [Tiles(tuple(tiles))]
    for name, points in result.scenarios.items():
        if not _is_forecast(result, points):
            blocks += [throughput_figure(result, name, unit="pps"), throughput_figure(result, name, unit="l1_bps")]
    blocks += [error_figure(result), error_table(result), comparison_table(result)]
    return Section.of("model", "What the model gives, and how wrong it is", _agreement_sentence(result), *blocks)


def _agreement_sentence(result: TablesResult) -> str:
    pairs = [
        abs(row.simulated_pps / row.solved_pps - 1.0)
        for row in result.comparisons
        if math.isfinite(row.simulated_pps) and math.isfinite(row.solved_pps)
    ]
    inside = f"{format_percent(result.coverage_ratio, 0)} of the held-out measurements lie inside their 95 % intervals."
    if not pairs:
        return inside
    return f"{inside} The closed form and the packet-level simulation differ by at most {format_percent(max(pairs))}."


def _law_section(result: TablesResult) -> Section:
    prose = (
        "S is the frame size in bytes, k the number of busy cores. A frame costs a core the constant time T_c and the "
        "time T_d for each of its bytes. c(k) is the factor on that time while other cores work too, since they share "
        "caches, memory and locks. A core forwards at most the inverse of that time. The least of three rates limits "
        "the router: the rate of the cores, of a flow's share of its link, and of the link."
    )
    return Section.of(
        "why",
        "Why: the law behind the model",
        f"Each frame keeps a core busy for `{result.law}`.",
        Prose((prose,)),
        parameter_table(result),
        len(result.hypotheses) > 1 and hypothesis_table(result),
    )


def _scenario_section(result: TablesResult, name: str) -> Section:
    title = _scenario_title(result, name)
    has_sizes = bool(result.curves[name])
    return Section.of(
        name,
        f"Forecast: {title[:1].lower()}{title[1:]}",
        _forecast_lead(result, name),
        has_sizes and throughput_figure(result, name, unit="pps"),
        has_sizes and throughput_figure(result, name, unit="l1_bps"),
        forecast_table(result, name),
        links_table(result, name),
    )


def _forecast_lead(result: TablesResult, name: str) -> str:
    row = result.representative(name)
    flows = f" under {row.point.flows} random flows" if row.setting.is_random else ""
    varying = set(_varying(row.setting for row in result.scenarios[name])) - {"cores", "flows"}
    others = [_describe_setting(row.setting, [condition]) for condition in _CONDITIONS if condition in varying]
    others += [text for text in _other_than_measured(row.setting, result.study.router) if text not in others]
    if others:
        flows += f" with {', '.join(others)}"
    text = (
        f"{_count(row.point.working_cores, 'busy core')}{flows} "
        f"forward{'s' if row.point.working_cores == 1 else ''} {format_pps(row.predicted)} of "
        f"{_frames(row)} (95 % interval {_range(row)})"
    )
    line_bps = 0.999 * row.point.busy_ports * row.setting.link_bps
    line = result.curves[name].get(row.setting, ())
    filling = [at_size.point.frame_bytes for at_size in line if at_size.predicted * at_size.l1_bits >= line_bps]
    if filling:
        return f"{text}; from about {filling[0]} bytes on, the links are the bottleneck."
    text += f", limited by the {limited_by(row.limit)}"
    same_setting = sorted(
        (point for point in result.scenarios[name] if point.setting == row.setting),
        key=lambda point: point.point.frame_bytes,
    )
    other = next((point for point in same_setting if point.limit != row.limit and not point.is_mix), None)
    if len(same_setting) == 1 and row.is_mix:
        return f"{text}."
    if other is None:
        return f"{text} at every frame size."
    return f"{text}, from {other.point.frame_bytes} bytes on by the {limited_by(other.limit)}."


def _next_section(result: TablesResult) -> Section:
    return Section.of(
        "next",
        "What to measure next",
        "These measurements would narrow the intervals most, in this order.",
        Prose(tuple(f"{i}. {text}" for i, text in enumerate(result.next_points, start=1))),
    )
