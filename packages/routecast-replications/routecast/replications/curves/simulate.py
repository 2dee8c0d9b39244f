"""Simulate the points of curves, and calibrate a cost on a stated rate by bisection of the simulated rate.

The rate at a load and the peak over loads fall as a cost grows, except for jumps where a queue or a slice changes its
rhythm. So the bracket is halved until it is narrow, and the table shows the remaining difference. Several costs are set
in the order of the file, in two rounds, because a cost may change the rate that another is calibrated on.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

from routecast.errors import FitProblem
from routecast.evaluate.ledger import Row
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve
from routecast.evaluate.trial import Trial
from routecast.load.arrivals import Arrivals
from routecast.load.flows import Flow, FlowSet
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad
from routecast.quantity import format_duration, format_pps
from routecast.quantity.comparison import ComparedRow
from routecast.quantity.schema import field, value
from routecast.replications.curves.document import (
    Calibrates,
    Curve,
    CurveRun,
    CurveStudy,
    FigureTable,
    LeftOut,
    StatedRate,
    Traffic,
)
from routecast.router.files import build_router
from routecast.router.model import RouterModel
from routecast.router.variants import vary

__all__ = [
    "ROUNDS",
    "Calibrated",
    "LeftOutRate",
    "Setting",
    "SimulatedPoint",
    "calibrate",
    "calibrating",
    "document_of",
    "leave_out",
    "left_out_count",
    "load_of",
    "packed_point",
    "read_at",
    "unpacked",
]


Setting = Mapping[str, Mapping[str, object]]
"""Calibrated values by path, for each router document."""

HASHES = 128
"""Entries of an indirection table: flows with hashes 0 to 127 are spread evenly."""

ROUNDS = 2
"""Rounds in which every cost is set, if there are several."""

MAX_HALVINGS = 9
RATE_TOLERANCE_RATIO = 2e-3
"""Relative error of the forwarded rate at which the bisection ends."""

INTERPOLATED = 16
"""Costs from a simulated cost to the next; their rates are read off a straight line."""


def document_of(study: CurveStudy, curve: Curve, setting: Setting) -> dict[str, Any]:
    """Return the router document of a curve, with the calibrated values in it.

    Raises RoutecastError: a path leads nowhere.
    """
    overrides = {**setting.get(curve.router, {}), **curve.set}
    return vary(study.router[curve.router], overrides, subject=f'router "{curve.router}", curve "{curve.name}"')


def load_of(figure: FigureTable, curve: Curve, offered_pps: float) -> OfferedLoad:
    """Return the load of a point."""
    traffic = curve.traffic or figure.traffic
    return OfferedLoad(
        rate_pps=offered_pps,
        frames=FrameMix.fixed(traffic.frame),
        flows=_flows(traffic),
        arrivals=Arrivals.poisson() if traffic.arrivals == "poisson" else Arrivals.cbr(),
    )


def _flows(traffic: Traffic) -> FlowSet:
    shares = traffic.shares or (1.0,) * traffic.flows
    ports = len(traffic.ingress)
    flows = tuple(
        Flow(
            rss_hash=number // ports % HASHES,
            ingress=traffic.ingress[number % ports],
            egress=traffic.egress[number % len(traffic.egress)],
            weight=share,
        )
        for number, share in enumerate(shares)
    )
    return FlowSet(name=f"{len(flows)} flow{'s' if len(flows) != 1 else ''}", flows=flows)


@value
class SimulatedPoint:
    """A simulated point of a curve; rates are in frames per second over all ports."""

    offered_pps: float
    forwarded_pps: float
    half_width_pps: float = field(
        "Half-width of the 95 % interval of the forwarded rate; NaN where unknown", default=math.nan
    )
    solved_pps: float = field("The closed form's forwarded rate; NaN where it was not asked for", default=math.nan)
    busy_cores: Mapping[str, float] = field(
        "Mean cores that each thread keeps busy; a task unit without a thread counts by itself", default_factory=dict
    )
    drops_pps: Mapping[str, float] = field("Loss by place", default_factory=dict)
    passes: tuple[float, ...] = field(
        "Forwarded over offered of each flow; empty where no flow was counted", default=()
    )

    @property
    def busiest(self) -> tuple[str, float]:
        """The busiest thread and the cores that it keeps busy."""
        return max(self.busy_cores.items(), key=itemgetter(1), default=("", math.nan))


def simulate_point(
    document: Mapping[str, Any],
    subject: str,
    folder: Path,
    load: OfferedLoad,
    run: CurveRun,
    *,
    by_flow: bool = False,
    solves: bool = True,
) -> SimulatedPoint:
    """Simulate a router document at a load, and, where ``solves``, solve it in closed form.

    Raises RoutecastError: the router cannot be built, or refuses the load.
    """
    model = build_router(document, subject=subject, folder=folder)[0]
    trial = Simulate(
        model=model, seed=run.seed, replications=run.replications, steady_state=False, per_flow=by_flow
    ).trial(load, run.duration)
    low, high = trial.interval.get("forwarded_pps", (math.nan, math.nan))
    return SimulatedPoint(
        offered_pps=trial.offered_pps,
        forwarded_pps=trial.forwarded_pps,
        half_width_pps=(high - low) / 2.0,
        solved_pps=Solve(model).trial(load, run.duration).forwarded_pps if solves else math.nan,
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


def packed_point(*args: Any, **options: Any) -> Row:
    """Simulate a point by :func:`simulate_point`, and pack it for the ledger."""
    return {"point": json.dumps(asdict(simulate_point(*args, **options)))}


def unpacked(text: str) -> SimulatedPoint:
    """Return a point of the ledger."""
    row = json.loads(text)
    return SimulatedPoint(**{**row, "passes": tuple(row["passes"])})


Simulation = Callable[[FigureTable, Curve, Sequence[float], Setting], list[SimulatedPoint]]
"""Returns simulated points of a curve, with calibrated values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """A calibrated cost in seconds, its paths, and the stated and simulated rate."""

    figure: str
    curve: str
    paths: tuple[str, ...]
    value_s: float
    stated_pps: float
    simulated_pps: float
    where: str

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {
            "figure": self.figure,
            "curve": self.curve,
            "paths": self.paths,
            "value_s": self.value_s,
            "stated_pps": self.stated_pps,
            "found_pps": self.simulated_pps,
            "where": self.where,
        }


def calibrating(study: CurveStudy) -> list[tuple[FigureTable, Curve, StatedRate]]:
    """Return the stated rates that calibrate, in the order of the file."""
    return [
        (figure, figure.named(stated.curve), stated)
        for figure in study.figure
        for stated in figure.stated
        if stated.calibrates
    ]


def calibrate(
    study: CurveStudy, simulate: Simulation, on_progress: Callable[[str], None]
) -> tuple[tuple[Calibrated, ...], dict[str, dict[str, object]]]:
    """Set the costs that stated rates calibrate.

    Raises FitProblem: no cost of the range meets the stated rate.
    """
    setting: dict[str, dict[str, object]] = {name: {} for name in study.router}
    calibrators = calibrating(study)
    calibrated: dict[int, Calibrated] = {}
    for _ in range(ROUNDS if len(calibrators) > 1 else 1):
        for number, (figure, curve, stated) in enumerate(calibrators):
            on_progress(f"{figure.name}, {curve.name}: {format_pps(stated.value)}")
            calibrated[number] = _calibrated(study, setting, figure, curve, stated, simulate)
    return tuple(calibrated[number] for number in range(len(calibrators))), setting


def _calibrated(
    study: CurveStudy,
    setting: dict[str, dict[str, object]],
    figure: FigureTable,
    curve: Curve,
    stated: StatedRate,
    simulate: Simulation,
) -> Calibrated:
    costs = stated.calibrates
    assert costs is not None
    names = costs.routers or tuple(study.router)

    def forwarded(value_s: float) -> float:
        for name in names:
            setting[name] |= dict.fromkeys(costs.set, f"{value_s!r} s")
        return _rate(simulate, figure, curve, stated, setting)

    low, high = costs.between
    max_pps, min_pps = forwarded(low), forwarded(high)
    if not min_pps <= stated.value <= max_pps:
        message = (
            f"{figure.name}, {curve.name}: {' and '.join(costs.set)} between {format_duration(low)} and "
            f"{format_duration(high)} gives {format_pps(min_pps)} to {format_pps(max_pps)}, not the stated "
            f"{format_pps(stated.value)}: widen `between`"
        )
        raise FitProblem(figure.name, message)
    middle, rate = low, max_pps
    for _ in range(MAX_HALVINGS):
        middle = math.sqrt(low * high)
        rate = forwarded(middle)
        if abs(rate / stated.value - 1.0) <= RATE_TOLERANCE_RATIO:
            break
        low, high = (middle, high) if rate > stated.value else (low, middle)
    return Calibrated(
        figure=figure.name,
        curve=curve.name,
        paths=costs.set,
        value_s=middle,
        stated_pps=stated.value,
        simulated_pps=rate,
        where=stated.place,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutRate(ComparedRow[StatedRate]):
    """A stated rate that is left out, the cost that the other rates set, and the rate that follows from this cost."""

    figure: str
    paths: tuple[str, ...]
    value_s: float
    is_at_end: bool
    others: int

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {
            "figure": self.figure,
            "curve": self.conditions.curve,
            "at": self.conditions.at,
            "where": self.conditions.place,
            "paths": self.paths,
            "value_s": self.value_s,
            "is_at_end": self.is_at_end,
            "others": self.others,
            "stated_pps": self.stated,
            "found_pps": self.predicted,
            "error_ratio": self.error_ratio,
        }


def left_out_count(study: CurveStudy) -> int:
    """Return the number of costs that :func:`leave_out` tries and reports."""
    if study.left_out is None:
        return 0
    calibrated = [stated.calibrates for _, _, stated in calibrating(study) if stated.calibrates]
    return study.left_out.values * sum(len(_rates_of(study, cost)) >= MIN_LEFT_OUT for cost in calibrated)


MIN_LEFT_OUT = 2
"""Rates of a cost from which each can be left out."""


def _rates_of(study: CurveStudy, calibrated: Calibrates) -> list[tuple[FigureTable, Curve, StatedRate]]:
    """Return the stated rates that a calibrated cost reaches."""
    names = calibrated.routers or tuple(study.router)
    return [
        (figure, curve, stated)
        for figure in study.figure
        for stated in figure.stated
        if stated.side == "about" and (curve := figure.named(stated.curve)).router in names
    ]


def leave_out(
    study: CurveStudy,
    setting: Mapping[str, Mapping[str, object]],
    simulate: Simulation,
    on_progress: Callable[[str], None],
) -> tuple[LeftOutRate, ...]:
    """Simulate each stated rate that a calibrated cost reaches, with the cost that all other such rates set.

    The cost minimises the sum of the squared relative errors. Stated bounds set no cost, since they have no error where
    they hold. Other costs keep the values of ``setting`` and of the routers' documents.
    """
    left_out = []
    for _, _, calibrator in calibrating(study):
        calibrated = calibrator.calibrates
        assert calibrated is not None
        names = calibrated.routers or tuple(study.router)
        rates = _rates_of(study, calibrated)

        def setting_at(
            value_s: float, calibrated: Calibrates = calibrated, names: Sequence[str] = names
        ) -> dict[str, dict[str, object]]:
            new = {name: dict(values) for name, values in setting.items()}
            for name in names:
                new[name] |= dict.fromkeys(calibrated.set, f"{value_s!r} s")
            return new

        if len(rates) < MIN_LEFT_OUT:
            continue
        costs = _geometric_steps(*calibrated.between, study.left_out.values if study.left_out else LeftOut().values)
        rates_by_cost = []
        for value_s in costs:
            on_progress(f"left out: {format_duration(float(f'{value_s:.3g}'))}")
            rates_by_cost.append([_rate(simulate, *rate, setting_at(value_s)) for rate in rates])
        for number, (figure, curve, stated) in enumerate(rates):
            others = [other for other in range(len(rates)) if other != number]
            value_s = _least_squares_cost(
                costs, [[row[other] / rates[other][2].value - 1.0 for other in others] for row in rates_by_cost]
            )
            left_out.append(
                LeftOutRate(
                    figure=figure.name,
                    conditions=stated,
                    stated=stated.value,
                    paths=calibrated.set,
                    value_s=value_s,
                    is_at_end=value_s in (costs[0], costs[-1]),
                    others=len(others),
                    predicted=_rate(simulate, figure, curve, stated, setting_at(value_s)),
                )
            )
    return tuple(left_out)


def _rate(simulate: Simulation, figure: FigureTable, curve: Curve, stated: StatedRate, setting: Setting) -> float:
    """Return the simulated rate beside a stated rate, with calibrated values."""
    return read_at(simulate(figure, curve, loads_at(figure, stated), setting), stated.at)


def _geometric_steps(low: float, high: float, count: int) -> list[float]:
    """Return values from low to high in equal ratios."""
    return [low, *(low * (high / low) ** (step / (count - 1)) for step in range(1, count - 1)), high]


def _least_squares_cost(costs: Sequence[float], errors: Sequence[Sequence[float]]) -> float:
    """Return the cost with the least sum of squared errors; between the costs the errors are straight lines."""
    sums = [(costs[0], sum(error**2 for error in errors[0]))]
    for (low, first), (high, second) in pairwise(zip(costs, errors, strict=True)):
        for step in range(1, INTERPOLATED + 1):
            part = step / INTERPOLATED
            value_s = high if step == INTERPOLATED else low * (high / low) ** part
            sums.append((value_s, sum((a + part * (b - a)) ** 2 for a, b in zip(first, second, strict=True))))
    return min(sums, key=lambda pair: pair[1])[0]


def loads_at(figure: FigureTable, stated: StatedRate) -> Sequence[float]:
    """Return the offered loads at which a stated rate is read."""
    if stated.at == "peak":
        return figure.offered_pps
    return (figure.offered_pps[-1],) if stated.at == "highest" else (float(stated.at),)


def read_at(points: Sequence[SimulatedPoint], at: str | float) -> float:
    """Return the forwarded rate of a curve at its peak, at its highest load, or at the point nearest to a load."""
    if at == "peak":
        return max(point.forwarded_pps for point in points)
    if at == "highest":
        return points[-1].forwarded_pps
    return min(points, key=lambda point: abs(point.offered_pps - float(at))).forwarded_pps
