"""Plans a cluster file: the best fleet and its schedule, other designs, and the savings of switching algorithms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from routecast.errors import ModelProblem
from routecast.evaluate.plain import plain
from routecast.load.series import DAY_S
from routecast.plan.cluster._dispatch import schedule
from routecast.plan.cluster.design import design_i, design_ii, design_iii, design_iv, goal_program, optimal_bound
from routecast.plan.cluster.model import ClusterProblem, Design, InfeasiblePlan, Schedule
from routecast.plan.cluster.reading import ClusterCase
from routecast.plan.cluster.saving import Saving, always_on, each_step, fewest_joules, online
from routecast.progress import Progress
from routecast.quantity import format_ratio
from routecast.quantity.schema import field, value

__all__ = ["KWH_J", "ClusterAnswer", "answer", "goal_designs", "savings_of", "simple_designs"]

KWH_J = 3.6e6


@value
class ClusterAnswer:
    """The plan for a cluster."""

    case: ClusterCase
    bound: Schedule = field(
        "Machines of least power in each step, without a budget: no design needs less energy ((8.10)-(8.11))"
    )
    design: Design = field("Design of least energy within the budget (goal program)")
    others: tuple[Design, ...] = field("Designs I to IV, and the goal program at further budgets")
    always_on_j: float = field("Energy of the design's machines over the horizon if they are always on, J")
    day_savings: tuple[Saving, ...] = field("Savings of the algorithms over the day of the plan", default=())
    trace_savings: tuple[Saving, ...] = field(
        "Savings of the algorithms over the whole trace; empty without a trace", default=()
    )
    mean_j: float | None = field(
        "Energy of the design on the mean day if the plan is for a quantile, J; else None", default=None
    )
    notes: tuple[str, ...] = field("Remarks on the search and on parts that were left out", default=())

    @property
    def designs(self) -> tuple[Design, ...]:
        """All designs by falling energy."""
        return tuple(sorted((*self.others, self.design), key=lambda design: -design.energy_j))

    def kwh_per_day(self, energy_j: float) -> float:
        """Convert an energy over the horizon of the plan, J, to kWh a day."""
        return energy_j / KWH_J / self.case.days

    def above_bound_ratio(self, design: Design) -> float:
        """Return the part by which the energy of a design exceeds the bound."""
        return design.energy_j / self.bound.energy_j - 1.0

    def to_json(self) -> dict[str, Any]:
        """Return plain data; energies in joules over the horizon and in kWh a day."""
        case = self.case
        trace_days = case.trace.duration_s / DAY_S if case.trace else 0.0
        document = {
            "name": case.name,
            "traffic": {
                "source": case.day.source,
                "step_s": case.day.step_s,
                "start": None if case.day.start is None else case.day.start.isoformat(),
                "l2_bps": case.problem.traffic_bps,
                "notes": case.day.notes,
            },
            "groups": case.problem.groups,
            "sources": case.sources,
            "budget": case.problem.budget,
            "currency": case.currency,
            "spare": case.problem.spare,
            "bound": {"energy_j": self.bound.energy_j, "kwh_per_day": self.kwh_per_day(self.bound.energy_j)},
            "design": self._design_json(self.design, with_schedule=True),
            "others": [self._design_json(design) for design in self.others],
            "always_on_kwh_per_day": self.kwh_per_day(self.always_on_j),
            "mean_day_kwh": None if self.mean_j is None else self.mean_j / KWH_J,
            "day_savings": [_saving_json(saving, case.days) for saving in self.day_savings],
            "trace": None
            if case.trace is None
            else {"days": trace_days, "step_s": case.trace.step_s, "notes": case.trace.notes},
            "trace_savings": [_saving_json(saving, trace_days) for saving in self.trace_savings],
            "notes": self.notes,
        }
        result = plain(document)
        assert isinstance(result, dict)
        return result

    def _design_json(self, design: Design, *, with_schedule: bool = False) -> dict[str, Any]:
        names = [group.name for group in self.case.problem.groups]
        return {
            "name": design.name,
            "fleet": dict(zip(names, design.fleet, strict=True)),
            "price": design.price,
            "energy_j": design.energy_j,
            "kwh_per_day": self.kwh_per_day(design.energy_j),
            "above_bound_ratio": self.above_bound_ratio(design),
            "gap_ratio": design.gap_ratio,
            "seconds": design.seconds,
            **({"on": design.schedule.on} if with_schedule else {}),
        }


def _saving_json(saving: Saving, days: float) -> dict[str, Any]:
    return {
        "name": saving.name,
        "kwh_per_day": saving.schedule.energy_j / KWH_J / days,
        "boots": saving.schedule.boots,
        "switchings": saving.schedule.switchings,
        "missed_steps": saving.missed_steps,
        "missed_ratio": saving.missed_ratio,
        "note": saving.note,
    }


def answer(case: ClusterCase, *, on_progress: Progress | None = None, keeps_interrupted: bool = False) -> ClusterAnswer:
    """Plan a cluster.

    Parameters
    ----------
    case : ClusterCase
    on_progress : callable, optional
        Called with the steps done, their number, and a text about the next one.
    keeps_interrupted : bool
        On a KeyboardInterrupt, continue with the best fleet so far and leave out further budgets.

    Raises
    ------
    InfeasiblePlan
        The budget buys no fleet that carries the peak, or the available machines do not carry it.
    routecast.errors.ModelProblem
        A figure is out of range.
    """
    report = on_progress or (lambda done, total, what: None)
    problem = case.problem
    other_budgets = sorted({*case.budgets, *([] if problem.budget is None else [float("inf")])} - {problem.budget})
    total = len(other_budgets) + 3
    report(0, total, "the best fleet")
    design = goal_designs(
        case,
        [problem.budget],
        on_gap=lambda gap: report(0, total, f"the best fleet, within {format_ratio(gap, 2)}"),
        keeps_interrupted=keeps_interrupted,
    )[0]
    notes = [case.day.read_as] if case.day.read_as else []
    if design.is_interrupted:
        notes.append(
            "the search was interrupted: the fleet is the best so far, within "
            f"{format_ratio(design.gap_ratio, 2)} of the optimum"
            + ("; further budgets are left out" if other_budgets else "")
        )
        other_budgets = []
    designs = simple_designs(problem, notes)
    for number, budget in enumerate(other_budgets, start=1):
        report(number, total, f"the best fleet for {_describe_budget(budget, case.currency)}")
        try:
            designs += goal_designs(case, [None if budget == float("inf") else budget])
        except InfeasiblePlan as error:
            notes.append(f"{_describe_budget(budget, case.currency)}: {error}")
    report(total - 2, total, "saving over the day")
    day_savings: tuple[Saving, ...] = ()
    trace_savings: tuple[Saving, ...] = ()
    try:
        day_savings = savings_of(case, problem, design.fleet, repeats=case.repeats)
        if case.trace is not None:
            report(total - 1, total, "saving over the whole trace")
            traced = replace(problem, traffic_bps=case.trace.l2_bps, step_s=case.trace.step_s)
            trace_savings = savings_of(case, traced, design.fleet, repeats=False)
    except (InfeasiblePlan, ModelProblem) as error:
        notes.append(f"saving algorithms left out: {error}")
    report(total, total, "")
    return ClusterAnswer(
        case=case,
        bound=optimal_bound(problem),
        design=design,
        others=tuple(designs),
        always_on_j=always_on(problem, design.fleet).schedule.energy_j,
        day_savings=day_savings,
        trace_savings=trace_savings,
        mean_j=_mean_day_j(case, design),
        notes=tuple(notes),
    )


def _mean_day_j(case: ClusterCase, design: Design) -> float | None:
    """Return the energy of a design over the mean day; None without one."""
    if case.mean is None:
        return None
    mean = replace(case.problem, traffic_bps=case.mean.l2_bps)
    return schedule(mean, design.fleet).energy_j


def goal_designs(
    case: ClusterCase,
    budgets: list[float | None],
    *,
    on_gap: Callable[[float], None] | None = None,
    keeps_interrupted: bool = False,
) -> list[Design]:
    """Return the design of the goal program (Design-V) for each budget; None is no limit.

    ``on_gap`` is called with the proven distance to the optimum during the search.
    """
    report = None if on_gap is None else (lambda state: on_gap(state.gap_ratio))
    designs = []
    for budget in budgets:
        design = goal_program(
            replace(case.problem, budget=budget),
            gap=case.gap_ratio,
            seconds=case.seconds,
            on_progress=report,
            keeps_interrupted=keeps_interrupted,
        )
        name = f"Design-V, {_describe_budget(float('inf') if budget is None else budget, case.currency)}"
        designs.append(replace(design, name=name))
    return designs


def simple_designs(problem: ClusterProblem, notes: list[str]) -> list[Design]:
    """Return Designs I to IV without a budget, as in Li (2012); add a note for each that does not exist."""
    free = replace(problem, budget=None)
    designs = []
    for make in (design_i, design_ii, design_iii, design_iv):
        try:
            designs.append(make(free))
        except InfeasiblePlan as error:
            notes.append(f"{make.__name__}: {error}")
    return designs


def savings_of(
    case: ClusterCase, problem: ClusterProblem, fleet: tuple[int, ...], *, repeats: bool
) -> tuple[Saving, ...]:
    """Return the savings of the algorithms: always on, off-line for each step and for the whole trace, then on-line."""
    rules = case.rules
    other_rule = replace(rules, rule="fewest" if rules.rule == "worth" else "worth")
    past_load = replace(rules, knows="past", headroom_ratio=rules.headroom_ratio or 0.1)
    online_rules = [rules, other_rule, *([past_load] if rules.knows == "present" else [])]
    return (
        always_on(problem, fleet),
        each_step(problem, fleet, min_on_s=rules.min_on_s, repeats=repeats),
        fewest_joules(problem, fleet, payback_s=rules.payback_s, min_on_s=rules.min_on_s, repeats=repeats),
        *(online(problem, fleet, variant, repeats=repeats) for variant in online_rules),
    )


def _describe_budget(budget: float, currency: str) -> str:
    return "no limit" if budget == float("inf") else f"{budget:,.10g} {currency}"
