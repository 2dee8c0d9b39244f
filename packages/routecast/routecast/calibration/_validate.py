"""Validation of a calibration by its predictions of held-out points.

Rows with ``calibrate = true`` calibrate the router of their series; the other measured rows are held out. Rows without
a measured rate are predicted. The summary counts only held-out rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from routecast.calibration._fit import FittedRouter
from routecast.calibration.eq5 import fit_eq5
from routecast.calibration.recipe import Recipe, conditions_of
from routecast.calibration.score import Prediction
from routecast.errors import FitProblem
from routecast.evaluate.plain import plain
from routecast.evaluate.points import Point
from routecast.quantity.comparison import held_out, summarise

if TYPE_CHECKING:
    from routecast.calibration.facts import OpenFact
    from routecast.calibration.latency import LatencyPrediction
    from routecast.calibration.router_file import RouterFile

__all__ = ["ROUTERS", "Series", "Validation", "router_file_of", "validate"]


_Fit = Callable[[Sequence[Point], str, int, float | None], "_Fitted"]


class _Fitted(Protocol):
    def predict(self, points: Sequence[Point]) -> tuple[Prediction, ...]: ...


ROUTERS: dict[str, _Fit] = {
    "multicore": lambda points, series, seed, noise: _recipe(points, seed, noise).fitted(series),
    "eq5": lambda points, series, seed, noise: fit_eq5(points, series=series),
}
"""Fits by the name of the router: routecast's own, and eq. 5 of Meyer et al. 2014 for comparison."""


def _recipe(points: Sequence[Point], seed: int, noise_ratio: float | None) -> Recipe:
    return Recipe(points=tuple(points), seed=seed, noise_ratio=noise_ratio)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One series: its calibrated router and the errors at the held-out points.

    ``recipe``: what recomputes the router; None for eq. 5.
    """

    name: str
    fitted: _Fitted
    summary: dict[str, float]
    recipe: Recipe | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain data: parameters with standard errors and units, the law, the summary."""
        data: dict[str, Any] = {"name": self.name, "summary": plain(self.summary)}
        if isinstance(self.fitted, FittedRouter):
            data |= plain(
                {
                    "warnings": self.fitted.warnings,
                    "noise_ratio": self.fitted.noise_ratio,
                    "law": self.fitted.law,
                    "law_weights": self.fitted.law_weights,
                    "effective_parameters": self.fitted.effective_parameters,
                }
            )
            data["parameters"] = {
                name: plain(
                    {
                        "value": parameter.value,
                        "standard_error": parameter.standard_error,
                        "unit": parameter.unit,
                        "meaning": parameter.meaning,
                    }
                )
                for name, parameter in self.fitted.parameters.items()
            }
        return data


@dataclass(frozen=True, kw_only=True)
class Validation:
    """Every row with its prediction, every series with its parameters, and the summary over held-out rows."""

    rows: tuple[Prediction, ...]
    series: tuple[Series, ...]
    noise_ratio: float | None = None
    latencies: tuple[LatencyPrediction, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """The assumed repeatability, and warnings about the calibrations, by series."""
        notes = []
        for name, fitted, points in self._fitted_routers():
            repeatability = f"one measurement is taken to repeat within {fitted.noise_ratio:.1%}"
            prefix = f"{name}: " if name and len(self.series) > 1 else ""
            notes += [
                f"{prefix}{note}"
                for note in (repeatability, *fitted.warnings, *fitted.humps(points), *fitted.remarks(points))
            ]
        return tuple(notes)

    @cached_property
    def facts(self) -> tuple[OpenFact, ...]:
        """The open facts of each series' router, and their effect on the interval with the most cores."""
        from routecast.calibration.facts import open_facts

        return tuple(
            fact
            for _, fitted, points in self._fitted_routers()
            for fact in open_facts(fitted, points, noise_ratio=self.noise_ratio)
        )

    def _fitted_routers(self) -> Iterator[tuple[str, FittedRouter, list[Point]]]:
        """Yield the name, the router and the points of each series, without those of eq. 5."""
        for series in self.series:
            if isinstance(series.fitted, FittedRouter):
                yield series.name, series.fitted, [row.point for row in self.rows if row.point.series == series.name]

    @property
    def summary(self) -> dict[str, float]:
        """Errors over the held-out rows; NaN where there are none. ``held_out`` is their number."""
        return summarise(held_out(self.rows))

    @property
    def latency_summaries(self) -> dict[str, dict[str, float]]:
        """Errors of the held-out latencies by statistic, of those that are predicted."""
        judged = [row for row in held_out(self.latencies) if row.intervals]
        statistics = dict.fromkeys(row.statistic for row in judged)
        return {name: summarise([row for row in judged if row.statistic == name]) for name in statistics}

    def to_json(self) -> dict[str, Any]:
        """Return plain data in the shape of ``routecast validate --json``; NaN becomes null."""
        return {
            "series": [series.to_json() for series in self.series],
            "rows": [{**plain(row.plain_entries()), "conditions": conditions_of(row.point)} for row in self.rows],
            "calibrations": [series.recipe.to_json(series.name) for series in self.series if series.recipe],
            "notes": list(self.notes),
            "facts": plain(self.facts),
            "summary": plain(self.summary),
            "latencies": [plain(row.plain_entries()) for row in self.latencies],
            "latency_summaries": plain(self.latency_summaries),
        }


def validate(
    points: Sequence[Point], *, router: str = "multicore", seed: int = 0, noise_ratio: float | None = None
) -> Validation:
    """Calibrate each series from its ``calibrate`` points and predict all its points.

    Rows with latencies are predicted, too (:func:`routecast.calibration.latency.judged_latencies`), not by eq. 5. A
    point with a latency and no rate is no row of the rates.

    Parameters
    ----------
    points : sequence of Point
    router : {"multicore", "eq5"}
    seed : int
    noise_ratio : float or None
        Repeatability of one measurement, one standard deviation; None: from repetitions and published values.

    Raises
    ------
    FitProblem
        The router is unknown, or a series has too few points to calibrate.
    """
    if router not in ROUTERS:
        from routecast.quantity.did_you_mean import did_you_mean  # only for messages

        raise FitProblem("", f'unknown router "{router[:60]}": {did_you_mean(router, ROUTERS)}')
    timed = [point for point in points if point.latency is not None]
    points = [point for point in points if point.latency is None or math.isfinite(point.throughput_pps)]
    rows: dict[int, Prediction] = {}
    series = []
    latencies: list[LatencyPrediction] = []
    for name in dict.fromkeys(point.series for point in points):
        members = [index for index, point in enumerate(points) if point.series == name]
        calibrating = [points[index] for index in members if points[index].calibrate]
        if not calibrating:
            raise FitProblem(name, "no point calibrates: set calibrate = true on at least one of its rows")
        fitted = ROUTERS[router](calibrating, name, seed, noise_ratio)
        for index, prediction in zip(members, fitted.predict([points[index] for index in members]), strict=True):
            rows[index] = prediction
        rows_of_latency = [point for point in timed if point.series == name]
        if isinstance(fitted, FittedRouter) and rows_of_latency:
            from routecast.calibration.latency import judged_latencies  # only where there are some

            latencies += judged_latencies(fitted, rows_of_latency)
        recipe = _recipe(calibrating, seed, noise_ratio) if isinstance(fitted, FittedRouter) else None
        summary = summarise(held_out(rows[index] for index in members))
        series.append(Series(name=name, fitted=fitted, summary=summary, recipe=recipe))
    return Validation(
        rows=tuple(rows[index] for index in range(len(points))),
        series=tuple(series),
        noise_ratio=noise_ratio,
        latencies=tuple(latencies),
    )


def router_file_of(validation: Validation, *, source: str, today: date) -> RouterFile:
    """Write the calibrated router of the only series as a router file.

    Raises FitProblem: there are several series, or the calibrated model is not routecast's own router.
    """
    from routecast.calibration.router_file import router_file  # the closed form

    if len(validation.series) != 1:
        names = ", ".join(f'"{series.name}"' for series in validation.series)
        raise FitProblem("", f"a router file holds one series, but the table has {names}: choose one (--series)")
    (series,) = validation.series
    if not isinstance(series.fitted, FittedRouter):
        raise FitProblem(series.name, 'eq. 5 has no router file: calibrate the router "multicore"')
    timed = [row.conditions for row in validation.latencies if not math.isfinite(row.conditions.throughput_pps)]
    points = [*(row.point for row in validation.rows), *dict.fromkeys(timed)]
    return router_file(series.fitted, points, source=source, today=today)
