"""Running a study of a cluster: design, vary budget and sampling, switch over the trace, compare, report."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from routecast.load.series import DAY_S, TrafficSeries
from routecast.load.series.reading import read_series
from routecast.load.series.shapes import mean_day
from routecast.plan.cluster.answer import KWH_J, ClusterAnswer, answer, goal_designs, savings_of
from routecast.plan.cluster.infeasible import InfeasiblePlan
from routecast.plan.cluster.model import ClusterProblem, Design
from routecast.plan.cluster.reading import ClusterCase, cluster_case
from routecast.plan.cluster.saving.offline import fewest_joules
from routecast.plan.cluster.saving.online import online
from routecast.plan.cluster.saving.switching import schedule_power_w
from routecast.plan.cluster.step.dispatch import Dispatcher
from routecast.study.cluster.chapters import cluster_page
from routecast.study.cluster.document import ClusterStudy
from routecast.study.cluster.result import ClusterResult, FleetSaving, Payback, Sampled
from routecast.study.cluster.statements import statements
from routecast.study.folder import begin, write_results
from routecast.study.result import Criterion

__all__ = ["run_cluster_study"]

Progress = Callable[[int, int, str], None]


def run_cluster_study(
    study: ClusterStudy,
    out: Path,
    *,
    folder: Path | None = None,
    progress: Progress | None = None,
    command: str = "",
) -> ClusterResult:
    """Run a study of a cluster and write its summary, figures and report to ``out``.

    Parameters
    ----------
    study : ClusterStudy
    out : Path
        Made if missing.
    folder : Path, optional
        Where the series is looked for, if it is a file.
    progress : callable, optional
        Told what is done, of how much, and what comes next.

    Raises
    ------
    routecast.errors.RoutecastError
        The series cannot be read, or no fleet carries it.
    """
    making = begin(study.name, out, command)
    out.mkdir(parents=True, exist_ok=True)
    tell = progress or (lambda done, total, what: None)
    case = cluster_case(study, subject=study.name, folder=folder)
    work = 4 + len(study.sweep.budgets) + len(study.mismatch.steps) + len(study.sweep.payback)
    tell(0, work, "designs")
    found = answer(case)
    done = 1
    frontier: list[Design] = []
    for budget in study.sweep.budgets:
        tell(done, work, f"the best fleet for {budget:g} {case.currency}")
        with suppress(InfeasiblePlan):  # the curve begins at the first budget that buys the peak
            frontier += goal_designs(case, [float(budget)])
        done += 1
    tell(done, work, "sampling")
    fine, sampled = _mismatch(study, case)
    done += len(study.mismatch.steps)
    tell(done, work, "saving over the trace")
    fleets = _fleets(case, found)
    paybacks: list[Payback] = []
    for payback_s in study.sweep.payback if case.trace is not None else ():
        tell(done, work, f"a payback of {payback_s:g} s")
        paybacks.append(_payback(case, found, payback_s))
        done += 1
    result = ClusterResult(
        study=study,
        out=out,
        answer=found,
        fine_day=fine,
        frontier=tuple(frontier),
        sampled=sampled,
        fleets=fleets,
        paybacks=tuple(paybacks),
        statements=(),
        criteria=(),
        made=making.made(),
    )
    result = replace(result, statements=statements(result), criteria=_criteria(result))
    tell(work, work, "report")
    write_results(out, cluster_page(result), result.to_json())
    return result


def _mismatch(study: ClusterStudy, case: ClusterCase) -> tuple[TrafficSeries, tuple[Sampled, ...]]:
    """Design for each sampling of the same mean day, and run each fleet at each sampling."""
    series = read_series(
        study.traffic.series,
        column=study.traffic.column,
        time_column=study.traffic.time_column,
        unit=study.traffic.unit,
        gaps=study.traffic.gaps,
    )
    base = mean_day(series, study.traffic.step)
    factor = 1.0 if study.traffic.peak is None else study.traffic.peak / base.peak_bps
    steps = sorted(step for step in study.mismatch.steps if step >= series.step_s)
    days = {}
    for step in steps:
        day = mean_day(series, step)
        days[step] = replace(day, l2_bps=tuple(rate * factor for rate in day.l2_bps))
    sampled = []
    for designed in steps:
        problem = _of_day(case.problem, days[designed])
        fleet = goal_designs(replace(case, problem=problem), [case.problem.budget])[0].fleet
        for run in steps:
            sampled.append(_run(_of_day(case.problem, days[run]), designed, fleet))
    return days[steps[0]], tuple(sampled)


def _of_day(problem: ClusterProblem, day: TrafficSeries) -> ClusterProblem:
    return replace(problem, traffic_bps=day.l2_bps, step_s=day.step_s)


def _run(problem: ClusterProblem, designed_s: float, fleet: tuple[int, ...]) -> Sampled:
    carried_bps = Dispatcher(problem).carried_bps(fleet)
    carried = replace(problem, traffic_bps=tuple(min(load, carried_bps) for load in problem.traffic_bps))
    found = Dispatcher(carried).schedule(fleet)
    return Sampled(
        designed_s=designed_s,
        run_s=problem.step_s,
        fleet=fleet,
        kwh_per_day=found.energy_j / KWH_J * DAY_S / problem.duration_s,
        power_w=tuple(schedule_power_w(carried, found.on).tolist()),
        missed_ratio=1.0 - math.fsum(carried.traffic_bps) / math.fsum(problem.traffic_bps),
    )


def _fleets(case: ClusterCase, found: ClusterAnswer) -> tuple[FleetSaving, ...]:
    if case.trace is None:
        return ()
    traced = replace(case.problem, traffic_bps=case.trace.l2_bps, step_s=case.trace.step_s)
    different: dict[tuple[int, ...], Design] = {}
    for design in found.designs:
        different.setdefault(design.fleet, design)
    return tuple(
        FleetSaving(design=design, savings=savings_of(case, traced, fleet, repeats=False))
        for fleet, design in different.items()
    )


def _payback(case: ClusterCase, found: ClusterAnswer, payback_s: float) -> Payback:
    assert case.trace is not None
    traced = replace(case.problem, traffic_bps=case.trace.l2_bps, step_s=case.trace.step_s)
    rules = replace(case.rules, rule="worth", payback_s=payback_s, tolerance_ratio=0.0)
    return Payback(
        payback_s=payback_s,
        online=online(traced, found.design.fleet, rules),
        offline=fewest_joules(traced, found.design.fleet, payback_s=payback_s, min_on_s=rules.min_on_s),
    )


def _criteria(result: ClusterResult) -> tuple[Criterion, ...]:
    bounds, found = result.study.criteria, result.answer
    loosest = result.goal_designs[-1]
    reached = (
        ("goal program above the bound", bounds.above_bound, found.above_bound_ratio(loosest)),
        ("goal program above Designs I to IV at their prices", bounds.above_others, _above_others(result)),
        (
            "on-line above off-line, energy",
            bounds.online_energy,
            max((one.energy_ratio for one in _goal_fleets(result)), default=math.nan),
        ),
        (
            "on-line relative to off-line, switchings",
            bounds.online_switchings,
            max((one.switchings_ratio for one in _goal_fleets(result)), default=math.nan),
        ),
    )
    return tuple(
        Criterion(name=name, bound=bound, reached=value) for name, bound, value in reached if bound is not None
    )


def _goal_fleets(result: ClusterResult) -> list[FleetSaving]:
    """Return the savings of the goal program's fleets from the plan's budget on."""
    least = result.answer.design.price
    return [one for one in result.fleets if one.design.name.startswith("Design-V") and one.design.price >= least]


def _above_others(result: ClusterResult) -> float:
    """Return by how much, at most, the goal program needs more than a design at that design's own price."""
    worst = 0.0
    for other in result.answer.others:
        if not other.name.startswith("Design-V"):
            ours = goal_designs(result.answer.case, [other.price])[0]
            worst = max(worst, ours.energy_j / other.energy_j - 1.0)
    return worst
