"""One point of a curve: what is forwarded at an offered load, where the rest is lost, which thread is busiest."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve
from routecast.evaluate.trial import Trial
from routecast.load.offered import OfferedLoad
from routecast.router.model import RouterModel
from routecast.study.curves.document import CurveRun
from routecast.study.curves.routers import model_of

__all__ = ["Point", "packed", "point", "unpacked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A simulated point; rates in frames per second over all ports.

    Parameters
    ----------
    offered_pps, forwarded_pps : float
    half_width_pps : float
        Half-width of the 95 % interval of the forwarded rate; NaN where unknown.
    solved_pps : float
        The closed form's forwarded rate.
    busy_cores : mapping of str to float
        Mean cores that each thread (task units without one: themselves) keeps busy.
    drops_pps : mapping of str to float
        Loss by place.
    passes : tuple of float
        Forwarded over offered of each flow; empty where nobody asks.
    """

    offered_pps: float
    forwarded_pps: float
    half_width_pps: float = math.nan
    solved_pps: float = math.nan
    busy_cores: Mapping[str, float] = field(default_factory=dict)
    drops_pps: Mapping[str, float] = field(default_factory=dict)
    passes: tuple[float, ...] = ()

    @property
    def busiest(self) -> tuple[str, float]:
        """The busiest thread and the cores that it keeps busy."""
        if not self.busy_cores:
            return "", math.nan
        name = max(self.busy_cores, key=lambda one: self.busy_cores[one])
        return name, self.busy_cores[name]


def point(
    document: Mapping[str, Any],
    subject: str,
    folder: Path,
    load: OfferedLoad,
    run: CurveRun,
    *,
    by_flow: bool = False,
) -> Point:
    """Simulate and solve a router document at a load.

    Raises
    ------
    routecast.errors.RoutecastError
        The router cannot be built, or refuses the load.
    """
    model = model_of(document, subject, folder)
    trial = Simulate(
        model=model, seed=run.seed, replications=run.replications, steady_state=False, per_flow=by_flow
    ).trial(load, run.duration)
    low, high = trial.interval.get("forwarded_pps", (math.nan, math.nan))
    return Point(
        offered_pps=trial.offered_pps,
        forwarded_pps=trial.forwarded_pps,
        half_width_pps=(high - low) / 2.0,
        solved_pps=Solve(model).trial(load, run.duration).forwarded_pps,
        busy_cores=_busy_cores(model, trial),
        drops_pps=dict(trial.drops_pps),
        passes=tuple(1.0 - flow.loss_ratio for flow in trial.flows) if by_flow else (),
    )


def _busy_cores(model: RouterModel, trial: Trial) -> dict[str, float]:
    units = {pool.name: pool.units for pool in model.pools}
    busy: dict[str, float] = defaultdict(float)
    for activity in trial.activity:
        task = model.task(activity.name)
        if task.needs and task.needs[0].pool in units:
            may_hold = min(len(task.pin) or units[task.needs[0].pool], task.parallel)
            busy[task.thread or task.name] += activity.busy_ratio * may_hold
    return dict(busy)


def packed(found: Point) -> str:
    """Return a point as it stands in the ledger."""
    return json.dumps(asdict(found))


def unpacked(text: str) -> Point:
    """Return the point that stands in the ledger."""
    row = json.loads(text)
    return Point(**{**row, "passes": tuple(row["passes"])})
