"""Run a study of curves: calibrate, simulate every curve, compare with the statements of the source.

Every simulated point goes to disk at once, so that an interrupted study continues where it stopped.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import islice, pairwise
from statistics import fmean
from typing import Any

from routecast.evaluate.executor import Submit, process_pool
from routecast.evaluate.ledger import Columns, Ledger
from routecast.quantity import format_pps
from routecast.quantity.comparison import ComparedRow
from routecast.replications.curves.document import (
    Curve,
    CurveStudy,
    FigureTable,
    Limited,
    Ordered,
    Passing,
    Patterns,
    ShapeTable,
    StatedRate,
)
from routecast.replications.curves.simulate import (
    ROUNDS,
    Calibrated,
    LeftOutRate,
    Setting,
    SimulatedPoint,
    calibrate,
    calibrating,
    document_of,
    leave_out,
    left_out_count,
    load_of,
    packed_point,
    read_at,
    unpacked,
)
from routecast.router.variants import vary
from routecast.study.engine import StudyRun, StudyTask
from routecast.study.result import Criterion, Statement, StudyResult, criteria_of
from routecast.version import VERSION

__all__ = ["CurveResult", "FigureResult", "answer"]

COLUMNS: Columns = {"task": "text", "figure": "text", "curve": "text", "offered_pps": "number", "point": "text"}

SIDES = {"about": "", "at_least": "at least ", "at_most": "at most "}

SAME_LOAD = 1e-6
"""Relative difference up to which two loads are the same."""

BUSY_RATIO = 0.95
"""A thread that keeps this share of a core busy counts as the bottleneck."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRate(ComparedRow[StatedRate]):
    """A stated rate of a figure and the simulated one, frames per second."""

    figure: str

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {
            "figure": self.figure,
            "curve": self.conditions.curve,
            "at": self.conditions.at,
            "side": self.conditions.side,
            "where": self.conditions.place,
            "calibrates": self.calibrates,
            "stated_pps": self.stated,
            "found_pps": self.predicted,
            "error_ratio": self.error_ratio,
        }

    @property
    def missed_by(self) -> float:
        """Absolute relative error; 0 where a stated bound holds."""
        if self.conditions.side == "at_least":
            return max(-self.error_ratio, 0.0)
        return max(self.error_ratio, 0.0) if self.conditions.side == "at_most" else abs(self.error_ratio)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedShares:
    """The share of each flow that passes, as stated and as simulated."""

    figure: str
    passing: Passing
    ratios: tuple[float, ...]

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {
            "figure": self.figure,
            "curve": self.passing.curve,
            "at": self.passing.at,
            "stated": self.passing.ratios,
            "found": self.ratios,
            "where": self.passing.place,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternRates:
    """The forwarded rates of a curve under other patterns of flows."""

    figure: str
    patterns: Patterns
    forwarded_pps: tuple[float, ...]

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {
            "figure": self.figure,
            "curve": self.patterns.curve,
            "at": self.patterns.at,
            "says": self.patterns.says,
            "forwarded": self.by_name,
        }

    @property
    def by_name(self) -> list[dict[str, object]]:
        """Forwarded rate of each pattern with its name, for the summary."""
        return [
            {"flows": pattern.name, "forwarded_pps": rate}
            for pattern, rate in zip(self.patterns.pattern, self.forwarded_pps, strict=True)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureResult:
    """A figure with the simulated points of its curves, by name."""

    figure: FigureTable
    curves: Mapping[str, tuple[SimulatedPoint, ...]]

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {"name": self.figure.name, "title": self.figure.title, "curves": self.named_curves}

    @property
    def named_curves(self) -> list[dict[str, object]]:
        """Curves with their names, for the summary."""
        return [{"name": name, "points": points} for name, points in self.curves.items()]

    def peak_pps(self, curve: str) -> float:
        """Greatest forwarded rate of a curve."""
        return max((point.forwarded_pps for point in self.curves[curve]), default=math.nan)


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveResult(StudyResult[CurveStudy]):
    """The results of a study of curves."""

    calibrated: tuple[Calibrated, ...]
    figures: tuple[FigureResult, ...]
    compared: tuple[ComparedRate, ...]
    passed: tuple[PassedShares, ...]
    turned: Mapping[str, Any]
    left_out: tuple[LeftOutRate, ...] = ()
    patterns: tuple[PatternRates, ...] = ()
    statements: tuple[Statement, ...] = ()

    def _findings(self) -> dict[str, object]:
        return {
            "calibrated": self.calibrated,
            "figures": self.figures,
            "stated": self.compared,
            **({"left_out": self.left_out} if self.left_out else {}),
            **({"patterns": self.patterns} if self.patterns else {}),
            "passing": self.passed,
            "statements": self.statements,
        }


def compared(figures: Sequence[FigureResult]) -> tuple[ComparedRate, ...]:
    """Return every stated rate beside the simulated one."""
    return tuple(
        ComparedRate(
            figure=figure.figure.name,
            conditions=stated,
            stated=stated.value,
            predicted=read_at(figure.curves[stated.curve], stated.at),
            calibrates=stated.is_calibrating,
        )
        for figure in figures
        for stated in figure.figure.stated
    )


def statements(figures: Sequence[FigureResult]) -> tuple[tuple[Statement, bool], ...]:
    """Return every statement in words beside the simulated behaviour, and whether it holds."""
    return tuple(
        judge(result, stated)
        for result in figures
        for judge, kind in ((_judged_order, "ordered"), (_judged_shape, "shape"), (_judged_bottleneck, "limited"))
        for stated in getattr(result.figure, kind)
    )


def criteria(
    study: CurveStudy,
    rates: Sequence[ComparedRate],
    judged: Sequence[tuple[Statement, bool]],
    passed: Sequence[PassedShares],
) -> tuple[Criterion, ...]:
    """Return the study's bounds with the errors; a statement in words has error 0 if it holds, else 1."""
    bounds: list[tuple[str, float | None, float]] = [
        (
            f"{rate.figure}, {rate.conditions.curve}: {SIDES[rate.conditions.side]}{format_pps(rate.stated)}",
            rate.conditions.within,
            rate.missed_by,
        )
        for rate in rates
    ]
    bounds += [(statement.says, 0.5, 0.0 if holds else 1.0) for statement, holds in judged]
    if passed:
        errors = [
            abs(ratio - stated)
            for passing in passed
            for ratio, stated in zip(passing.ratios, passing.passing.ratios, strict=True)
        ]
        bounds.append(("mean error of the shares that pass", study.criteria.passing_error, fmean(errors)))
    return criteria_of(*bounds)


def order_by_load(ordered: Ordered, curves: Sequence[Sequence[SimulatedPoint]]) -> list[tuple[float, bool]]:
    """Return each load in range, and whether the curves are in the stated order there."""
    min_pps = (ordered.least or 0.0) * (1.0 - SAME_LOAD)
    max_pps = (math.inf if ordered.most is None else ordered.most) * (1.0 + SAME_LOAD)
    lead_pps, tie_ratio = ordered.by or 0.0, 1.0 - ordered.tie
    return [
        (
            points[0].offered_pps,
            all(a.forwarded_pps >= (b.forwarded_pps + lead_pps) * tie_ratio for a, b in pairwise(points)),
        )
        for points in zip(*curves, strict=True)
        if min_pps <= points[0].offered_pps <= max_pps
    ]


def _judged_order(result: FigureResult, ordered: Ordered) -> tuple[Statement, bool]:
    orders = order_by_load(ordered, [result.curves[name] for name in ordered.curves])
    violations_pps = [load for load, is_ordered in orders if not is_ordered]
    if not orders:
        here = "the figure has no load in the range"
    elif violations_pps:
        here = f"not at {', '.join(format_pps(load) for load in violations_pps)} of {len(orders)} loads"
    else:
        here = f"at all {len(orders)} loads" if len(orders) > 1 else "holds"
    rates = ", ".join(
        f"{name} {format_pps(read_at(result.curves[name], orders[-1][0]))}" for name in ordered.curves if orders
    )
    stated = " > ".join(ordered.curves) + (f" by {format_pps(ordered.by)}" if ordered.by else "")
    return _statement(result, ordered, stated, f"{here}; last: {rates}"), bool(orders) and not violations_pps


def _judged_shape(result: FigureResult, shape: ShapeTable) -> tuple[Statement, bool]:
    points = result.curves[shape.curve]
    peak = max(points, key=lambda point: point.forwarded_pps)
    beyond_pps = [point.forwarded_pps for point in points if point.offered_pps >= peak.offered_pps]
    lowest, last = (rate / peak.forwarded_pps - 1.0 for rate in (min(beyond_pps), beyond_pps[-1]))
    is_flat = shape.kind == "flat"
    stated = f"at {'most' if is_flat else 'least'} {shape.by:.0%} below"
    here = f"{last:+.0%} of its peak at the highest load, least {lowest:+.0%}"
    return _statement(result, shape, stated, here), -lowest <= shape.by if is_flat else -last >= shape.by


def _judged_bottleneck(result: FigureResult, limited: Limited) -> tuple[Statement, bool]:
    point = result.curves[limited.curve][-1]
    name, cores = point.busiest
    here = f"{name} busy {cores:.0%} of a core"
    if name != limited.thread:
        here += f", {limited.thread} {point.busy_cores.get(limited.thread, math.nan):.0%}"
    return _statement(result, limited, limited.thread, here), name == limited.thread and cores >= BUSY_RATIO


def _statement(result: FigureResult, quoted: Ordered | ShapeTable | Limited, stated: str, here: str) -> Statement:
    where = f"{result.figure.name}{': ' + quoted.place if quoted.place else ''}"
    return Statement(says=quoted.says, where=where, stated=stated, here=here)


def answer(run: StudyRun[CurveStudy], *, workers: int | None = None) -> CurveResult:
    """Calibrate, simulate every curve, and compare with the statements of the source.

    Raises RoutecastError: a router cannot be built, or no cost meets a stated value that calibrates.
    """
    study = run.study
    costs = len(calibrating(study))
    rounds = costs * (ROUNDS if costs > 1 else 1)
    costs_left_out = left_out_count(study)
    run.work = rounds + costs_left_out + 1
    for figure in study.figure:
        run.work += len(figure.curve) * len(figure.offered) + len(figure.passing)
        run.work += sum(len(patterns.pattern) for patterns in figure.patterns)
    with run.ledger(COLUMNS) as ledger, process_pool(workers) as submit:
        simulations = _Simulations(run, ledger, submit)
        calibrated, setting = calibrate(study, simulations.of_curve, simulations.on_calibrating)
        run.done = rounds
        run.report_step("curves")
        figures = simulations.figures(setting)
        passed = simulations.passed(setting)
        patterns = simulations.patterned(setting)
        omitted = leave_out(study, setting, simulations.only_simulated, run.step) if study.left_out else ()
    judged, rates = statements(figures), compared(figures)
    return CurveResult(
        study=study,
        out=run.out,
        calibrated=calibrated,
        figures=figures,
        compared=rates,
        passed=passed,
        turned=vary(study.router[first := next(iter(study.router))], setting.get(first, {})),
        left_out=omitted,
        patterns=patterns,
        statements=tuple(statement for statement, _ in judged),
        criteria=criteria(study, rates, judged, passed),
        provenance=run.provenance(seed=study.run.seed),
    )


class _Simulations:
    """Simulates the points that the ledger lacks, in several processes."""

    def __init__(self, run: StudyRun[CurveStudy], ledger: Ledger, submit: Submit) -> None:
        self._run = run
        self._study = run.study
        self._ledger = ledger
        self._submit = submit
        self._rounds = 0

    def on_calibrating(self, rate: str) -> None:
        """Report the next stated rate that calibrates."""
        self._run.done = self._rounds
        self._run.report_step(f"calibrate: {rate}")
        self._rounds += 1

    def of_curve(
        self, figure: FigureTable, curve: Curve, offered: Sequence[float], setting: Setting
    ) -> list[SimulatedPoint]:
        """Return the points of a curve at some loads, as parts of a step."""
        return self._points([self._task(figure, curve, load, setting) for load in offered], counts=False)

    def only_simulated(
        self, figure: FigureTable, curve: Curve, offered: Sequence[float], setting: Setting
    ) -> list[SimulatedPoint]:
        """Return the points of a curve at some loads without the rates of the closed form, as parts of a step."""
        tasks = [self._task(figure, curve, load, setting, solves=False) for load in offered]
        return self._points(tasks, counts=False)

    def figures(self, setting: Setting) -> tuple[FigureResult, ...]:
        """Return all points of all figures."""
        figures = self._study.figure
        points = [(figure, curve, load) for figure in figures for curve in figure.curve for load in figure.offered_pps]
        answers = iter(self._points([self._task(*point, setting) for point in points]))
        return tuple(
            FigureResult(
                figure=figure,
                curves={curve.name: tuple(islice(answers, len(figure.offered))) for curve in figure.curve},
            )
            for figure in figures
        )

    def passed(self, setting: Setting) -> tuple[PassedShares, ...]:
        """Return the share of each flow that passes, for each stated set of shares."""
        stated = [(figure, passing) for figure in self._study.figure for passing in figure.passing]
        tasks = [
            self._task(figure, figure.named(passing.curve), passing.at, setting, by_flow=True, solves=False)
            for figure, passing in stated
        ]
        return tuple(
            PassedShares(figure=figure.name, passing=passing, ratios=point.passes)
            for (figure, passing), point in zip(stated, self._points(tasks), strict=True)
        )

    def patterned(self, setting: Setting) -> tuple[PatternRates, ...]:
        """Return the forwarded rates of curves under other patterns of flows."""
        patterned_figures = [(figure, patterns) for figure in self._study.figure for patterns in figure.patterns]
        tasks = []
        for figure, patterns in patterned_figures:
            curve = figure.named(patterns.curve)
            for pattern in patterns.pattern:
                flows = pattern.model_dump(exclude={"name"})
                traffic = (curve.traffic or figure.traffic).model_copy(update=flows)
                offered = curve.model_copy(update={"traffic": traffic})
                tasks.append(self._task(figure, offered, patterns.at, setting, solves=False))
        answers = iter(self._points(tasks))
        return tuple(
            PatternRates(
                figure=figure.name,
                patterns=patterns,
                forwarded_pps=tuple(point.forwarded_pps for point in islice(answers, len(patterns.pattern))),
            )
            for figure, patterns in patterned_figures
        )

    def _points(self, tasks: list[StudyTask], *, counts: bool = True) -> list[SimulatedPoint]:
        rows = self._run.complete(self._ledger, tasks, submit=self._submit, counts=counts)
        return [unpacked(str(row["point"])) for row in rows]

    def _task(
        self,
        figure: FigureTable,
        curve: Curve,
        offered_pps: float,
        setting: Setting,
        *,
        by_flow: bool = False,
        solves: bool = True,
    ) -> StudyTask:
        document = document_of(self._study, curve, setting)
        traffic = (curve.traffic or figure.traffic).model_dump(mode="json")
        conditions = {
            "version": VERSION,
            "run": self._study.run.model_dump(mode="json"),
            "document": document,
            "traffic": traffic,
            "offered_pps": offered_pps,
            "by_flow": by_flow,
            "solves": solves,
        }
        key = sha256(json.dumps(conditions, sort_keys=True).encode()).hexdigest()[:32]
        subject = f'router "{curve.router}", curve "{curve.name}"'
        call = partial(
            packed_point,
            document,
            subject,
            self._run.folder,
            load_of(figure, curve, offered_pps),
            self._study.run,
            by_flow=by_flow,
            solves=solves,
        )
        return StudyTask(
            key=key,
            title=f"{figure.name}, {curve.name}",
            call=call,
            cells={"figure": figure.name, "curve": curve.name, "offered_pps": offered_pps},
        )
