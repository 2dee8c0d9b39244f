"""Costs set so that stated values are met: one number for each, by bisection on what the simulator forwards.

A rate at a load, and a peak over loads, fall as a cost grows, but for jumps where a queue or a slice changes its
rhythm; so the bracket is halved until it is narrow, and what is left between stated and found is in the table. Where
several values calibrate, each is set in the order of the file, and the round is repeated: one may move another.
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
from typing import Any, ClassVar

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
from routecast.router.files import build_router
from routecast.router.model import RouterModel
from routecast.router.variants import vary
from routecast.study.curves.document import (
    Calibrates,
    Curve,
    CurveRun,
    CurveStudy,
    FigureTable,
    LeftOut,
    StatedRate,
    Traffic,
)

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
"""How often every cost is set where several calibrate."""

HALVINGS = 9
CLOSE = 2e-3
"""Relative error of the forwarded rate at which a bracket is narrow enough."""

BETWEEN = 16
"""Values between two that are simulated; their rates are read off a straight line."""


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
    """A simulated point; rates in frames per second over all ports."""

    offered_pps: float
    forwarded_pps: float
    half_width_pps: float = field(
        "Half-width of the 95 % interval of the forwarded rate; NaN where unknown", default=math.nan
    )
    solved_pps: float = field("The closed form's forwarded rate", default=math.nan)
    busy_cores: Mapping[str, float] = field(
        "Mean cores that each thread (task units without one: themselves) keeps busy", default_factory=dict
    )
    drops_pps: Mapping[str, float] = field("Loss by place", default_factory=dict)
    passes: tuple[float, ...] = field("Forwarded over offered of each flow; empty where it is not needed", default=())

    @property
    def busiest(self) -> tuple[str, float]:
        """The busiest thread and the cores that it keeps busy."""
        return max(self.busy_cores.items(), key=itemgetter(1), default=("", math.nan))


def point(
    document: Mapping[str, Any], subject: str, folder: Path, load: OfferedLoad, run: CurveRun, *, by_flow: bool = False
) -> SimulatedPoint:
    """Simulate and solve a router document at a load.

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


def packed_point(*args: Any, **options: Any) -> Row:
    """Simulate a point by :func:`point` and pack it for the ledger."""
    return {"point": json.dumps(asdict(point(*args, **options)))}


def unpacked(text: str) -> SimulatedPoint:
    """Return a point of the ledger."""
    row = json.loads(text)
    return SimulatedPoint(**{**row, "passes": tuple(row["passes"])})


Simulation = Callable[[FigureTable, Curve, Sequence[float], Setting], list[SimulatedPoint]]
"""Simulates points of a curve with calibrated values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """A calibrated cost: paths, seconds, and the stated rate that it was set by, with the simulated one."""

    SUMMARY: ClassVar = ("figure", "curve", "paths", "value_s", "stated_pps", "found_pps=simulated_pps", "where")

    figure: str
    curve: str
    paths: tuple[str, ...]
    value_s: float
    stated_pps: float
    simulated_pps: float
    where: str


def calibrating(study: CurveStudy) -> list[tuple[FigureTable, Curve, StatedRate]]:
    """Return the stated values that calibrate, in the order of the file."""
    return [
        (figure, figure.named(stated.curve), stated)
        for figure in study.figure
        for stated in figure.stated
        if stated.calibrates
    ]


def calibrate(
    study: CurveStudy, simulate: Simulation, on_progress: Callable[[str], None]
) -> tuple[tuple[Calibrated, ...], dict[str, dict[str, object]]]:
    """Set the costs that stated values calibrate.

    Raises FitProblem: no value of the range meets the stated rate.
    """
    setting: dict[str, dict[str, object]] = {name: {} for name in study.router}
    wanted = calibrating(study)
    calibrated: dict[int, Calibrated] = {}
    for _ in range(ROUNDS if len(wanted) > 1 else 1):
        for number, (figure, curve, stated) in enumerate(wanted):
            on_progress(f"{figure.name}, {curve.name}: {format_pps(stated.value)}")
            calibrated[number] = _set(study, setting, figure, curve, stated, simulate)
    return tuple(calibrated[number] for number in range(len(wanted))), setting


def _set(
    study: CurveStudy,
    setting: dict[str, dict[str, object]],
    figure: FigureTable,
    curve: Curve,
    stated: StatedRate,
    simulate: Simulation,
) -> Calibrated:
    how = stated.calibrates
    assert how is not None
    names = how.routers or tuple(study.router)

    def forwarded(value_s: float) -> float:
        for name in names:
            setting[name] |= dict.fromkeys(how.set, f"{value_s!r} s")
        return _rate(simulate, figure, curve, stated, setting)

    low, high = how.between
    most, least = forwarded(low), forwarded(high)
    if not least <= stated.value <= most:
        message = (
            f"{figure.name}, {curve.name}: {' and '.join(how.set)} between {format_duration(low)} and "
            f"{format_duration(high)} gives {format_pps(least)} to {format_pps(most)}, not the stated "
            f"{format_pps(stated.value)}: widen `between`"
        )
        raise FitProblem(figure.name, message)
    middle, rate = low, most
    for _ in range(HALVINGS):
        middle = math.sqrt(low * high)
        rate = forwarded(middle)
        if abs(rate / stated.value - 1.0) <= CLOSE:
            break
        low, high = (middle, high) if rate > stated.value else (low, middle)
    return Calibrated(
        figure=figure.name,
        curve=curve.name,
        paths=how.set,
        value_s=middle,
        stated_pps=stated.value,
        simulated_pps=rate,
        where=stated.place,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutRate(ComparedRow[StatedRate]):
    """A stated rate that was left out: the cost that the other rates set, and the rate that it predicts."""

    SUMMARY: ClassVar = (
        *("figure", "curve=conditions.curve", "at=conditions.at", "where=conditions.place", "paths", "value_s"),
        *("is_at_end", "others", "stated_pps=stated", "predicted_pps=predicted", "error_ratio"),
    )

    figure: str
    paths: tuple[str, ...]
    value_s: float
    is_at_end: bool
    others: int


def leave_out(
    study: CurveStudy,
    setting: Mapping[str, Mapping[str, object]],
    simulate: Simulation,
    on_progress: Callable[[str], None],
) -> tuple[LeftOutRate, ...]:
    """Predict each stated rate that a calibrated cost reaches, with the cost that all other such rates set.

    The cost is that of the least sum of squared relative misses. Bounds set no cost: where they hold, they miss by
    nothing. Other costs stay as ``setting`` and the routers' documents have them.
    """
    left_out = []
    for _, _, calibrator in calibrating(study):
        how = calibrator.calibrates
        assert how is not None
        names = how.routers or tuple(study.router)
        rates = [
            (figure, curve, stated)
            for figure in study.figure
            for stated in figure.stated
            if stated.side == "about" and (curve := figure.named(stated.curve)).router in names
        ]

        def at(value_s: float, how: Calibrates = how, names: Sequence[str] = names) -> dict[str, dict[str, object]]:
            new = {name: dict(values) for name, values in setting.items()}
            for name in names:
                new[name] |= dict.fromkeys(how.set, f"{value_s!r} s")
            return new

        if len(rates) < 2:
            continue
        costs = _spread(*how.between, study.left_out.values if study.left_out else LeftOut().values)
        tried = []
        for value_s in costs:
            on_progress(f"left out: {format_duration(float(f'{value_s:.3g}'))}")
            tried.append([_rate(simulate, *rate, at(value_s)) for rate in rates])
        for number, (figure, curve, stated) in enumerate(rates):
            others = [other for other in range(len(rates)) if other != number]
            value_s = _least(costs, [[row[other] / rates[other][2].value - 1.0 for other in others] for row in tried])
            left_out.append(
                LeftOutRate(
                    figure=figure.name,
                    conditions=stated,
                    stated=stated.value,
                    paths=how.set,
                    value_s=value_s,
                    is_at_end=value_s in (costs[0], costs[-1]),
                    others=len(others),
                    predicted=_rate(simulate, figure, curve, stated, at(value_s)),
                )
            )
    return tuple(left_out)


def _rate(simulate: Simulation, figure: FigureTable, curve: Curve, stated: StatedRate, setting: Setting) -> float:
    """Return the simulated value of a stated rate with calibrated values."""
    return read_at(simulate(figure, curve, loads_at(figure, stated), setting), stated.at)


def _spread(low: float, high: float, count: int) -> list[float]:
    """Return values from low to high in equal ratios."""
    return [low, *(low * (high / low) ** (step / (count - 1)) for step in range(1, count - 1)), high]


def _least(costs: Sequence[float], misses: Sequence[Sequence[float]]) -> float:
    """Return the cost of the least sum of squares of misses, which are straight lines between the costs."""
    between = [(costs[0], sum(miss**2 for miss in misses[0]))]
    for (low, first), (high, second) in pairwise(zip(costs, misses, strict=True)):
        for step in range(1, BETWEEN + 1):
            part = step / BETWEEN
            value_s = high if step == BETWEEN else low * (high / low) ** part
            between.append((value_s, sum((a + part * (b - a)) ** 2 for a, b in zip(first, second, strict=True))))
    return min(between, key=lambda pair: pair[1])[0]


def loads_at(figure: FigureTable, stated: StatedRate) -> Sequence[float]:
    """Return the offered loads that a stated value is read from."""
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
