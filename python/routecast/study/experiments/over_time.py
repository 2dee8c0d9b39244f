"""Throughput over time of a router of the study: from when on it is steady, and what a look had said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from routecast.errors import ModelProblem, Problem
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.steadiness import Reading, Steadiness, reading, steadiness_of
from routecast.evaluate.trial import Moment
from routecast.report.figures import Figure
from routecast.report.over_time import over_time_figure, readings_table
from routecast.report.tables import Table
from routecast.router.files import build_router
from routecast.router.variants import vary
from routecast.study.experiments.calibrated import Setting
from routecast.study.experiments.document import ExperimentsStudy, OverTime

__all__ = ["Followed", "followed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """How a trial went: rates over time, the verdict on them, and what looks at some instants had said."""

    over_time: OverTime
    moments: tuple[Moment, ...]
    verdict: Steadiness
    readings: tuple[Reading, ...]

    def blocks(self) -> tuple[Figure, Table]:
        """Return the figure and the table of the readings."""
        one = self.over_time
        figure = over_time_figure(
            self.moments, one.duration, self.verdict, self.readings, title=one.title, name=one.name
        )
        return figure, readings_table(self.readings, self.verdict)


def followed(study: ExperimentsStudy, one: OverTime, setting: Setting, folder: Path) -> Followed:
    """Simulate a router of the study and look at its throughput over time.

    Raises
    ------
    routecast.errors.RoutecastError
        The router cannot be built, or its file has no load.
    """
    subject = f'over_time "{one.name}"'
    document = vary(study.router[one.router], {**setting.get(one.router, {}), **one.set}, subject=subject)
    model, load = build_router(document, subject=subject, folder=folder)
    if load is None:
        raise ModelProblem(subject, [Problem("load", "is missing in the router document")])
    trial = Simulate(model, over_time=True, steady_state=False).trial(load, one.duration)
    moments = _merged(trial.over_time, one.parts)
    return Followed(
        over_time=one,
        moments=moments,
        verdict=steadiness_of(trial),
        readings=tuple(_read(trial.over_time, moments, one.duration, at_s) for at_s in one.read_at),
    )


def _read(fine: Sequence[Moment], drawn: Sequence[Moment], duration_s: float, at_s: float) -> Reading:
    """Read at an instant: the mean until then from all there is, the rate then as the figure draws it."""
    rates = [moment.forwarded_pps for moment in fine]
    then = next(
        (moment for moment in reversed(drawn) if moment.time_s < at_s * (1.0 - 1e-12)),
        drawn[0],
    )
    return replace(reading(rates, duration_s / len(rates), at_s), now=then.forwarded_pps)


def _merged(moments: Sequence[Moment], parts: int) -> tuple[Moment, ...]:
    """Return rates over fewer, longer parts: single frames would hide how the rate goes."""
    step = -(-len(moments) // parts)
    groups = [moments[at : at + step] for at in range(0, len(moments), step)]
    return tuple(
        Moment(
            time_s=group[0].time_s,
            offered_pps=fmean(one.offered_pps for one in group),
            forwarded_pps=fmean(one.forwarded_pps for one in group),
            dropped_pps=fmean(one.dropped_pps for one in group),
        )
        for group in groups
    )
