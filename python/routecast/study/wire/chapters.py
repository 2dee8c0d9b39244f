"""The report of a wire study: what was asked of which machine, what was predicted, and how wrong it is."""

from __future__ import annotations

import math

from routecast.quantity import format_duration, format_pps
from routecast.report.page import Page, Prose, Section, Tile, Tiles
from routecast.report.tables import Cell, Column, Table
from routecast.study.wire.plots import latency_figure, loss_figure, throughput_figure
from routecast.study.wire.result import WireResult
from routecast.study.wire.tabulate import error_table, latency_table, loss_table, series_table

__all__ = ["wire_page"]


def wire_page(result: WireResult) -> Page:
    """Return the page of a wire study."""
    study, made = result.study, result.made
    calibrating = sum(row.calibrates for each in result.series for row in each.rows)
    answer = (
        f"Calibrated from **{calibrating} measured rates**, routecast predicts the other {len(result.held_out)} within "
        f"**{_percent(result.throughput_error_ratio)}** (median); the measurement itself repeats within "
        f"{_percent(result.repeatability_ratio)}."
    )
    return Page(
        title=study.title,
        question=study.question,
        answer=answer,
        sections=tuple(
            section
            for section in (
                _overview(result),
                _rates(result),
                _loss(result),
                _latency(result),
                _facts(result),
            )
            if section.blocks
        ),
        made=made.rows(
            (
                "Trials",
                f"{made.trials}, {result.invalid_trials} invalid, {made.resumed_trials} kept from an interrupted run",
            ),
            ("Length of a trial", format_duration(study.testbed.duration)),
            ("Simulated time", format_duration(study.evaluate.duration)),
            ("Seed", str(made.seed)),
        ),
    )


def _overview(result: WireResult) -> Section:
    tiles = [
        Tile(
            value=_percent(result.throughput_error_ratio),
            meaning="median error of held-out forwarding rates",
            beside=f"repeats scatter by {_percent(result.repeatability_ratio)}",
        ),
        Tile(
            value=_percent(result.coverage_ratio, 0),
            meaning="of the held-out rates inside their 95 % interval",
        ),
    ]
    if result.loss:
        tiles.append(Tile(value=f"{100 * result.loss_error:.2f} points", meaning="mean error of the loss"))
    if result.latency:
        tiles.append(
            Tile(
                value=_percent(result.latency_error_ratio, 0),
                meaning="median error of held-out median latencies",
                beside=f"p99 within a factor of {result.p99_factor:.1f}",
            )
        )
    return Section(
        anchor="answer",
        title="How well a few points predict the rest",
        lead="Every point was predicted before it was compared; the ones that calibrate are left out of the errors.",
        blocks=(Tiles(tuple(tiles)), error_table(result)),
    )


def _rates(result: WireResult) -> Section:
    laws = tuple(
        f"**{each.series.name}**: a frame keeps the core busy for {format_duration(each.law.base_s)}"
        + (
            f", and {format_duration(each.law.per_work_s)} for each unit of {each.series.factor}"
            if each.law.per_work_s
            else ""
        )
        + f"; that is {format_pps(each.law.rate_pps(min(each.series.values)))} at best."
        for each in result.series
    )
    blocks = [block for each in result.series for block in (throughput_figure(each), series_table(each))]
    return Section(
        anchor="rates",
        title="Forwarding rate in overload",
        lead="A core forwards the inverse of the time that a frame takes it; that time grows linearly with known work.",
        blocks=(Prose(laws), *blocks),
    )


def _loss(result: WireResult) -> Section:
    blocks = [block for curve in result.loss for block in (loss_figure(curve), loss_table(curve))]
    return Section(
        anchor="loss",
        title="Loss against offered load",
        lead="Below its capacity a router loses what stalls overflow; above it, 1 − C/λ.",
        blocks=tuple(blocks),
    )


def _latency(result: WireResult) -> Section:
    blocks = [block for curve in result.latency for block in (latency_figure(curve), latency_table(curve))]
    lines = []
    for curve in result.latency:
        found = curve.wakeup
        if found is None:
            continue
        stalls = (
            f"interruptions of {format_duration(found.interruptions.duration.average_s)} on average take "
            f"{_percent(found.interrupted_ratio, 1)} of the core"
            if found.interruptions
            else "no interruptions were needed"
        )
        median_s = found.wakeup.quantile_s(0.5)
        line = f"**{curve.series.device}**: its thread wakes up within {format_duration(median_s)} (median); {stalls}."
        if line not in lines:
            lines.append(line)
    return Section(
        anchor="latency",
        title="Latency against load",
        lead="Frames wait for the wake-up across cores, then for the backlog of the wake-up and of each interruption.",
        blocks=(Prose(tuple(lines)), *blocks) if lines else tuple(blocks),
    )


def _facts(result: WireResult) -> Section:
    rows: list[tuple[Cell, ...]] = []
    for device, facts in result.facts.items():
        rows += [(device, name, value) for name, value in _flat(facts)]
    table = Table(
        name="facts",
        title="Devices under test and tester",
        caption="As they were when they were measured.",
        columns=(
            Column(title="Device", align="left"),
            Column(title="What", align="left"),
            Column(title="Value", align="left"),
        ),
        rows=tuple(rows),
    )
    return Section(anchor="facts", title="What was measured", lead="", blocks=(table,) if rows else ())


def _flat(value: object, name: str = "") -> list[tuple[str, str]]:
    if isinstance(value, dict):
        return [pair for key, entry in value.items() for pair in _flat(entry, f"{name}.{key}" if name else str(key))]
    if isinstance(value, list | tuple):
        return [(name, "; ".join(str(entry) for entry in value))] if value else []
    return [(name, str(value))] if value not in (None, "") else []


def _percent(ratio: float, digits: int = 2) -> str:
    return "–" if math.isnan(ratio) else f"{100.0 * ratio:.{digits}f} %"
