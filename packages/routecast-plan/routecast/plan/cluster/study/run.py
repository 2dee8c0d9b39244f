"""Runs a study of a cluster: designs for varied budgets and samplings, savings over the trace, comparisons."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from routecast.load.series import DAY_S, TrafficSeries
from routecast.plan.cluster._dispatch import Dispatcher
from routecast.plan.cluster.answer import KWH_J, ClusterAnswer, goal_designs, savings_of
from routecast.plan.cluster.answer import answer as cluster_answer
from routecast.plan.cluster.model import ClusterProblem, Design, InfeasiblePlan
from routecast.plan.cluster.reading import ClusterCase, cluster_case
from routecast.plan.cluster.saving import Saving, fewest_joules, online, schedule_power_w
from routecast.plan.cluster.study.document import ClusterStudy, DesignStatement
from routecast.plan.series.reading import read_series
from routecast.plan.series.shapes import mean_day
from routecast.quantity import format_span
from routecast.quantity.schema import field, value
from routecast.study.arithmetic import RepeatedCalculation, calculated
from routecast.study.engine import StudyRun
from routecast.study.result import Criterion, Statement, StudyResult, criteria_of

__all__ = ["ClusterResult", "FleetSaving", "answer"]


@value
class SamplingRun:
    """A fleet that was designed for a sampling interval of the day, run at another interval."""

    designed_s: float = field("Sampling interval of the design, s")
    run_s: float = field("Sampling interval of the run, s")
    fleet: tuple[int, ...]
    kwh_per_day: float
    power_w: tuple[float, ...] = field("Power of each step of the run, W")
    missed_ratio: float = field(
        "Share of the traffic above the fleet's capacity, as a coarse sampling hides peaks", default=0.0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSaving:
    """Savings over the trace for the fleet of a design, in the order of ``savings_of``."""

    design: Design
    savings: tuple[Saving, ...]

    @property
    def offline(self) -> Saving:
        """Off-line, each step."""
        return self.savings[1]

    @property
    def online(self) -> Saving:
        """On-line, by the rules of the file."""
        return self.savings[3]

    @property
    def energy_ratio(self) -> float:
        """Energy on-line relative to off-line, minus 1."""
        return self.online.schedule.energy_j / self.offline.schedule.energy_j - 1.0

    @property
    def switchings_ratio(self) -> float:
        """Switchings on-line relative to off-line; 0 if off-line has none."""
        most = self.offline.schedule.switchings
        return self.online.schedule.switchings / most if most else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Payback:
    """Savings over the trace for a given payback."""

    payback_s: float
    online: Saving
    offline: Saving


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterResult(StudyResult[ClusterStudy]):
    """The result of a study of a cluster."""

    answer: ClusterAnswer
    fine_day: TrafficSeries
    frontier: tuple[Design, ...]
    sampling_runs: tuple[SamplingRun, ...]
    fleets: tuple[FleetSaving, ...]
    paybacks: tuple[Payback, ...]
    statements: tuple[Statement, ...] = ()
    calculated: tuple[RepeatedCalculation, ...] = ()

    def sampling_run(self, designed_s: float, run_s: float) -> SamplingRun:
        """Return the run at interval ``run_s`` of the fleet designed for interval ``designed_s``."""
        return next(sample for sample in self.sampling_runs if (sample.designed_s, sample.run_s) == (designed_s, run_s))

    def design_named(self, name: str) -> Design:
        """Return the design of a name, with or without its budget."""
        return next(
            design for design in self.answer.designs if design.name == name or design.name.startswith(f"{name},")
        )

    @property
    def goal_designs(self) -> tuple[Design, ...]:
        """Designs of the goal program with a budget, by rising price."""
        designs = [
            design
            for design in self.answer.designs
            if design.name.startswith("Design-V") and "no limit" not in design.name
        ]
        return tuple(sorted(designs, key=lambda design: (design.price, -design.energy_j)))

    @property
    def trace_days(self) -> float:
        """Days of the trace."""
        trace = self.answer.case.trace
        return trace.duration_s / 86_400.0 if trace else 0.0

    def _findings(self) -> dict[str, object]:
        return {
            "plan": self.answer.to_json(),
            "frontier": [
                {
                    "price": design.price,
                    "kwh_per_day": self.answer.kwh_per_day(design.energy_j),
                    "gap_ratio": design.gap_ratio,
                }
                for design in self.frontier
            ],
            "mismatch": [
                {
                    "designed_s": sample.designed_s,
                    "run_s": sample.run_s,
                    "fleet": sample.fleet,
                    "kwh_per_day": sample.kwh_per_day,
                    "missed_ratio": sample.missed_ratio,
                }
                for sample in self.sampling_runs
            ],
            "saving": [
                {
                    "design": fleet.design.name,
                    "fleet": fleet.design.fleet,
                    "energy_ratio": fleet.energy_ratio,
                    "switchings_ratio": fleet.switchings_ratio,
                    "algorithms": [self._saving(saving) for saving in fleet.savings],
                }
                for fleet in self.fleets
            ],
            "payback": [
                {
                    "payback_s": payback.payback_s,
                    "online": self._saving(payback.online),
                    "offline": self._saving(payback.offline),
                }
                for payback in self.paybacks
            ],
            "statements": self.statements,
            **({"arithmetic": self.calculated} if self.calculated else {}),
        }

    def _saving(self, saving: Saving) -> dict[str, Any]:
        days = max(self.trace_days, 1e-9)
        return {
            "name": saving.name,
            "kwh_per_day": saving.schedule.energy_j / KWH_J / days,
            "switchings_per_day": saving.schedule.switchings / days,
            "missed_ratio": saving.missed_ratio,
        }


def statements(result: ClusterResult) -> tuple[Statement, ...]:
    """Return the statements of the source with the study's values; none if one of the designs does not exist."""
    if not result.goal_designs or not set(SIMPLE_DESIGNS) <= {design.name for design in result.answer.others}:
        return ()
    counterparts = _Counterparts(result)
    return tuple(
        Statement(says=statement.says, where=statement.place, stated=statement.stated, here=here)
        for statement in result.study.statement
        if (here := getattr(counterparts, statement.of)(statement))
    )


SIMPLE_DESIGNS = ("Design-I", "Design-II", "Design-III", "Design-IV")


class _Counterparts:
    """The study's values to compare statements with, a method for each quantity; "" where it has no value."""

    def __init__(self, result: ClusterResult) -> None:
        answer = result.answer
        self.result = result
        self.kwh = {name: answer.kwh_per_day(result.design_named(name).energy_j) for name in SIMPLE_DESIGNS}
        self.bound = answer.kwh_per_day(answer.bound.energy_j)
        self.tightest, self.loosest = result.goal_designs[0], result.goal_designs[-1]
        self.tightest_kwh = answer.kwh_per_day(self.tightest.energy_j)
        self.loosest_kwh = answer.kwh_per_day(self.loosest.energy_j)
        self.prices = [result.design_named(name).price for name in SIMPLE_DESIGNS]

    def above_bound(self, statement: DesignStatement) -> str:
        kwh = self.kwh[str(statement.design)]
        most = ", the most" if kwh >= max(*self.kwh.values(), self.tightest_kwh) else ""
        return f"{kwh - self.bound:.2f} kWh{most}"

    def below(self, statement: DesignStatement) -> str:
        return f"{self.kwh[str(statement.than)] - self.kwh[str(statement.design)]:.2f} kWh"

    def tightest_like(self, _: DesignStatement) -> str:
        return f"{self.tightest_kwh:.2f} against {self.kwh['Design-I']:.2f} and {self.kwh['Design-III']:.2f} kWh"

    def loosest_saves(self, statement: DesignStatement) -> str:
        if statement.than:
            return f"{100 * (1 - self.loosest_kwh / self.kwh[statement.than]):.1f} %"
        least, most = min(self.kwh.values()), max(self.kwh.values())
        return f"{format_span(*(f'{kwh - self.loosest_kwh:.2f}' for kwh in (least, most)))} kWh"

    def plan_saves(self, statement: DesignStatement) -> str:
        chosen = self.result.answer.kwh_per_day(self.result.answer.design.energy_j)
        return f"{100 * (1 - chosen / self.kwh[str(statement.than)]):.1f} %"

    def cheapest(self, statement: DesignStatement) -> str:
        return "yes" if self.result.design_named(str(statement.design)).price <= min(self.prices) else "no"

    def loosest_price(self, _: DesignStatement) -> str:
        price = self.loosest.price
        return f"{format_span(*(f'{price / other:.2f}' for other in (max(self.prices), min(self.prices))))} times"

    def peak_saving(self, _: DesignStatement) -> str:
        answer = self.result.answer
        day = f"{100 * (1 - answer.design.energy_j / answer.always_on_j):.0f} % over the mean day"
        return day + (f", {100 * _trace_saving(self.result):.0f} % over the trace" if answer.trace_savings else "")

    def mismatch(self, _: DesignStatement) -> str:
        steps = sorted({sample.run_s for sample in self.result.sampling_runs})
        if len(steps) < 2:
            return ""
        fine, coarse = steps[0], steps[-1]
        run = self.result.sampling_run(coarse, fine)
        change_kwh = run.kwh_per_day - self.result.sampling_run(coarse, coarse).kwh_per_day
        above_fine_kwh = run.kwh_per_day - self.result.sampling_run(fine, fine).kwh_per_day
        text = (
            f"{coarse / 60:g} min run at {fine / 60:g} min: {change_kwh:+.2f} kWh; "
            f"{above_fine_kwh:+.2f} kWh against a design for {fine / 60:g} min"
        )
        return text.replace("-", "−")


def _trace_saving(result: ClusterResult) -> float:
    always, online = result.answer.trace_savings[0], result.answer.trace_savings[3]
    return 1.0 - online.schedule.energy_j / always.schedule.energy_j


def answer(run: StudyRun[ClusterStudy]) -> ClusterResult:
    """Run the study: designs, budgets, samplings, and savings over the trace.

    Raises RoutecastError if the series cannot be read, or no fleet carries it.
    """
    study = run.study
    case = cluster_case(study, subject=study.name, folder=run.folder)
    run.work = 4 + len(study.sweep.budgets) + len(study.mismatch.steps) + len(study.sweep.payback)
    run.step("designs")
    plan = cluster_answer(case)
    frontier: list[Design] = []
    for budget in study.sweep.budgets:
        run.step(f"the best fleet for {budget:g} {case.currency}")
        with suppress(InfeasiblePlan):  # the curve begins at the least budget that buys a fleet
            frontier += goal_designs(case, [float(budget)])
    run.step("sampling")
    finest_day, sampling_runs = _sampling_runs(study, case)
    run.done += len(study.mismatch.steps)
    run.step("saving over the trace")
    fleets = _fleet_savings(case, plan)
    paybacks: list[Payback] = []
    for payback_s in study.sweep.payback if case.trace is not None else ():
        run.step(f"a payback of {payback_s:g} s")
        paybacks.append(_payback(case, plan, payback_s))
    result = ClusterResult(
        study=study,
        out=run.out,
        answer=plan,
        fine_day=finest_day,
        frontier=tuple(frontier),
        sampling_runs=sampling_runs,
        fleets=fleets,
        paybacks=tuple(paybacks),
        calculated=calculated(study.arithmetic),
        provenance=run.provenance(),
    )
    return replace(result, statements=statements(result), criteria=_criteria(result))


def _sampling_runs(study: ClusterStudy, case: ClusterCase) -> tuple[TrafficSeries, tuple[SamplingRun, ...]]:
    """Return the finest day, and each fleet designed for a sampling interval of the mean day, run at each interval."""
    series = read_series(
        study.traffic.series,
        column=study.traffic.column,
        time_column=study.traffic.time_column,
        unit=study.traffic.unit,
        gaps=study.traffic.gaps,
    )
    plan_day = mean_day(series, study.traffic.step)
    factor = 1.0 if study.traffic.peak is None else study.traffic.peak / plan_day.peak_bps
    steps = sorted(step for step in study.mismatch.steps if step >= series.step_s)
    days = {}
    for step in steps:
        day = mean_day(series, step)
        days[step] = replace(day, l2_bps=tuple(rate * factor for rate in day.l2_bps))
    sampling_runs = []
    for designed in steps:
        problem = _with_day(case.problem, days[designed])
        fleet = goal_designs(replace(case, problem=problem), [case.problem.budget])[0].fleet
        for run in steps:
            sampling_runs.append(_run(_with_day(case.problem, days[run]), designed, fleet))
    return days[steps[0]], tuple(sampling_runs)


def _with_day(problem: ClusterProblem, day: TrafficSeries) -> ClusterProblem:
    return replace(problem, traffic_bps=day.l2_bps, step_s=day.step_s)


def _run(problem: ClusterProblem, designed_s: float, fleet: tuple[int, ...]) -> SamplingRun:
    carried_bps = Dispatcher(problem).carried_bps(fleet)
    carried = replace(problem, traffic_bps=tuple(min(load, carried_bps) for load in problem.traffic_bps))
    schedule = Dispatcher(carried).schedule(fleet)
    return SamplingRun(
        designed_s=designed_s,
        run_s=problem.step_s,
        fleet=fleet,
        kwh_per_day=schedule.energy_j / KWH_J * DAY_S / problem.duration_s,
        power_w=tuple(schedule_power_w(carried, schedule.on).tolist()),
        missed_ratio=1.0 - math.fsum(carried.traffic_bps) / math.fsum(problem.traffic_bps),
    )


def _fleet_savings(case: ClusterCase, answer: ClusterAnswer) -> tuple[FleetSaving, ...]:
    if case.trace is None:
        return ()
    traced = replace(case.problem, traffic_bps=case.trace.l2_bps, step_s=case.trace.step_s)
    design_of_fleet: dict[tuple[int, ...], Design] = {}
    for design in answer.designs:
        design_of_fleet.setdefault(design.fleet, design)
    return tuple(
        FleetSaving(design=design, savings=savings_of(case, traced, fleet, repeats=False))
        for fleet, design in design_of_fleet.items()
    )


def _payback(case: ClusterCase, answer: ClusterAnswer, payback_s: float) -> Payback:
    assert case.trace is not None
    traced = replace(case.problem, traffic_bps=case.trace.l2_bps, step_s=case.trace.step_s)
    rules = replace(case.rules, rule="worth", payback_s=payback_s, tolerance_ratio=0.0)
    return Payback(
        payback_s=payback_s,
        online=online(traced, answer.design.fleet, rules),
        offline=fewest_joules(traced, answer.design.fleet, payback_s=payback_s, min_on_s=rules.min_on_s),
    )


def _criteria(result: ClusterResult) -> tuple[Criterion, ...]:
    bounds, answer = result.study.criteria, result.answer
    loosest = result.goal_designs[-1]
    return criteria_of(
        ("goal program above the bound", bounds.above_bound, answer.above_bound_ratio(loosest)),
        ("goal program above Designs I to IV at their prices", bounds.above_others, _above_others(result)),
        (
            "on-line above off-line, energy",
            bounds.online_energy,
            max((fleet.energy_ratio for fleet in _goal_fleets(result)), default=math.nan),
        ),
        (
            "on-line relative to off-line, switchings",
            bounds.online_switchings,
            max((fleet.switchings_ratio for fleet in _goal_fleets(result)), default=math.nan),
        ),
    )


def _goal_fleets(result: ClusterResult) -> list[FleetSaving]:
    """Return the savings of the goal program's fleets that cost at least as much as the plan."""
    least = result.answer.design.price
    return [
        fleet for fleet in result.fleets if fleet.design.name.startswith("Design-V") and fleet.design.price >= least
    ]


def _above_others(result: ClusterResult) -> float:
    """Return the greatest part by which the goal program exceeds a simple design at the price of that design."""
    worst = 0.0
    for other in result.answer.others:
        if not other.name.startswith("Design-V"):
            goal_design = goal_designs(result.answer.case, [other.price])[0]
            worst = max(worst, goal_design.energy_j / other.energy_j - 1.0)
    return worst
