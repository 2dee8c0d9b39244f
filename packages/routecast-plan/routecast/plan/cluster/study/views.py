"""The report of a study of a cluster: designs, budgets, sampling, switching, and the statements of Li (2012)."""

from __future__ import annotations

from typing import Any

from routecast.plan.cluster._views import (
    COLOUR_OF_DESIGN,
    GOAL_COLOUR,
    HOUR_TICKS,
    MAX_ROUNDING_RATIO,
    describe_machines,
    designs_table,
    machines_figure,
    plan_table,
    power_figure,
    savings_table,
    step_line,
    trace_traffic,
)
from routecast.plan.cluster.answer import KWH_J
from routecast.plan.cluster.model import Design, Schedule
from routecast.plan.cluster.saving import Saving
from routecast.plan.cluster.study.run import ClusterResult, FleetSaving
from routecast.quantity import format_duration, format_ratio
from routecast.show.figures import GREY, Axis, Figure, Line, Mark, Points, palette
from routecast.show.page import Folded, Listing, Page, Prose, Section, Tile, Tiles
from routecast.show.tables import Column, Table, percent, signed_percent
from routecast.study.arithmetic import arithmetic_section, arithmetic_table
from routecast.study.result import TerminalSummary, statements_section, statements_table

__all__ = ["page", "terminal_summary"]


def mismatch_table(result: ClusterResult) -> Table:
    """Return the table of the daily energy of each sampling's design, run at each sampling."""
    steps = sorted({sample.run_s for sample in result.sampling_runs})

    def kwh(run_s: float) -> Column[float]:
        def per_day(designed_s: float) -> float:
            return result.sampling_run(designed_s, run_s).kwh_per_day

        return Column(f"{run_s / 60:g} min", "kWh/day", ".3f", per_day, group="run at")

    return Table.of(
        steps,
        Column.text("Designed for", lambda step: f"{step / 60:g} min"),
        Column.text(
            "Machines",
            lambda step: describe_machines(result.answer.case.problem, result.sampling_run(step, step).fleet),
            wide=True,
        ),
        *map(kwh, steps),
        Column("Missed", "%", percent, lambda step: max(result.sampling_run(step, run).missed_ratio for run in steps)),
        name="mismatch",
        title="Designs for one sampling of the day, run at another",
        caption="A coarse sampling hides the highest load. The last column is the greatest share of traffic above the "
        "capacity of the fleet, which is not carried.",
    )


def fleets_table(result: ClusterResult) -> Table:
    """Return the table that compares on-line with off-line saving for each fleet."""
    days = result.trace_days

    def fewest_energy(fleet: FleetSaving) -> float:
        return _fewest(fleet).energy_j / fleet.offline.schedule.energy_j - 1.0

    def fewest_switchings(fleet: FleetSaving) -> float | None:
        most = fleet.offline.schedule.switchings
        return _fewest(fleet).switchings / most if most else None

    return Table.of(
        result.fleets,
        Column.text("Fleet", lambda fleet: fleet.design.name),
        Column(
            "Energy", "kWh/day", ".3f", lambda fleet: fleet.offline.schedule.energy_j / KWH_J / days, group="off-line"
        ),
        Column("Switched", "a day", ".0f", lambda fleet: fleet.offline.schedule.switchings / days, group="off-line"),
        Column("Energy", "%", signed_percent, lambda fleet: fleet.energy_ratio, group="worth"),
        Column("Switched", "%", _whole_percent, lambda fleet: fleet.switchings_ratio, group="worth"),
        Column("Energy", "%", signed_percent, fewest_energy, group="fewest"),
        Column("Switched", "%", _whole_percent, fewest_switchings, group="fewest"),
        name="fleets",
        title=f"On-line against off-line saving, {days:.0f} days",
        caption="Off-line uses the machines of least power in each step. Worth switches once it pays back, fewest is "
        "Li's differential algorithm. Both know the present load and carry every step.",
        strong=lambda fleet: fleet.design.fleet == result.answer.design.fleet,
    )


def _fewest(fleet: FleetSaving) -> Schedule:
    return next(saving for saving in fleet.savings if "fewest" in saving.name).schedule


def _whole_percent(ratio: float) -> str:
    return f"{100.0 * ratio:.0f}"


def terminal_summary(result: ClusterResult) -> TerminalSummary:
    """Return the tables for the terminal."""
    return TerminalSummary.of(
        designs_table(result.answer),
        mismatch_table(result),
        fleets_table(result),
        statements_table(result.statements, caption=result.study.source),
        arithmetic_table(result.calculated),
        notes=result.answer.notes,
    )


def traffic_figure(result: ClusterResult) -> Figure:
    """Return the figure of the typical day, in the steps of the plan and in the finest steps (fig. 8.2)."""
    case, fine = result.answer.case, result.fine_day
    marks: list[Mark] = []
    for series, name, colour in (
        (fine, f"{fine.step_s / 60.0:g} min", "#d6812f"),
        (case.day, f"{case.day.step_s / 60.0:g} min", GOAL_COLOUR),
    ):
        x, y = step_line([rate / 1e9 for rate in series.l2_bps], series.step_s)
        marks.append(Line(name=name, x=x, y=y, colour=colour))
    low, high = min(case.day.l2_bps), max(case.day.l2_bps)
    return Figure(
        name="traffic",
        title="The typical day",
        caption=(
            f"Mean over the days at each time of day. The highest step of the plan is scaled to {high / 1e9:g} Gbit/s; "
            f"the lowest is {100.0 * low / high:.0f} % of it."
        ),
        x=Axis(title="hour of the day", ticks=HOUR_TICKS, low=0.0, high=24.0),
        y=Axis(title="traffic (Gbit/s)", low=0.0),
        marks=tuple(marks),
    )


def _designs_in_order(result: ClusterResult) -> list[Design]:
    """Return Designs I to IV, then the designs of the goal program by budget."""
    answer = result.answer
    simple = sorted(
        (design for design in answer.others if design.name in COLOUR_OF_DESIGN), key=lambda design: design.name
    )
    return [*simple, *result.goal_designs]


def _short_name(design: Design) -> str:
    """Return a short name of a design, for a tick."""
    return design.name.removeprefix("Design-").replace(", ", " ")


def _stems(designs: list[Design], values: list[float], base: float) -> list[Mark]:
    """Return a vertical line from ``base`` to the value of each design, with a point at the value."""
    marks: list[Mark] = []
    for position, (design, value) in enumerate(zip(designs, values, strict=True), start=1):
        colour = COLOUR_OF_DESIGN.get(design.name, GOAL_COLOUR)
        ends = (float(position), float(position))
        marks.append(Line(name=design.name, x=ends, y=(base, value), colour=colour, legend=False))
        marks.append(
            Points(
                name=f"{design.name} value",
                x=(float(position),),
                y=(value,),
                colour=colour,
                size_px=11,
                labels=(f"{design.name}\n{value:,.4g}",),
                legend=False,
            )
        )
    return marks


def _names_axis(designs: list[Design]) -> Axis:
    return Axis(
        title="design (V: goal program, with its budget)",
        ticks=tuple(float(position) for position in range(1, len(designs) + 1)),
        labels=tuple(_short_name(design) for design in designs),
        low=0.4,
        high=len(designs) + 0.6,
    )


def energy_figure(result: ClusterResult) -> Figure:
    """Return the figure of the daily energy of each design above the bound (fig. 8.4)."""
    answer, designs = result.answer, _designs_in_order(result)
    bound = answer.kwh_per_day(answer.bound.energy_j)
    kwh = [answer.kwh_per_day(design.energy_j) for design in designs]
    ends = (0.4, len(designs) + 0.6)
    loosest = designs[-1]
    return Figure(
        name="energy",
        title="Energy of the designs",
        caption=(
            f"Stems: energy above the bound of {bound:.2f} kWh, which no fleet can beat. "
            f"{loosest.name} is {100.0 * answer.above_bound_ratio(loosest):.2f} % above it, "
            f"{designs[kwh.index(max(kwh))].name} {100.0 * (max(kwh) / bound - 1.0):.1f} %."
        ),
        x=_names_axis(designs),
        y=Axis(title="energy (kWh/day)", low=0.5 * (bound // 0.5)),
        marks=(Line(name="bound", x=ends, y=(bound, bound), colour=GREY, dashed=True), *_stems(designs, kwh, bound)),
    )


def price_figure(result: ClusterResult) -> Figure:
    """Return the figure of the price of each design (fig. 8.5)."""
    designs = _designs_in_order(result)
    prices = [design.price for design in designs]
    least = designs[prices.index(min(prices))]
    return Figure(
        name="price",
        title="Price of the designs",
        caption=(
            f"{least.name} is the cheapest; {designs[-1].name} costs {prices[-1] / min(prices):.2f} times as much. The "
            "goal program spends no more of the budget than the least energy needs."
        ),
        x=_names_axis(designs),
        y=Axis(title=f"price ({result.answer.case.currency})", low=0.0),
        marks=tuple(_stems(designs, prices, 0.0)),
    )


def frontier_figure(result: ClusterResult) -> Figure:
    """Return the figure of energy over price: the goal program for each budget, and the simple designs."""
    answer = result.answer
    bound = answer.kwh_per_day(answer.bound.energy_j)
    curve = sorted(
        {(design.price, answer.kwh_per_day(design.energy_j)) for design in (*result.frontier, *result.goal_designs)}
    )
    corners: list[tuple[float, float]] = []
    for price, kwh in curve:
        if corners:
            corners.append((price, corners[-1][1]))
        if not corners or kwh <= corners[-1][1]:
            corners.append((price, kwh))
    last = max([price for price, _ in corners] + [float(budget) for budget in result.study.sweep.budgets])
    corners.append((last, corners[-1][1]))
    first = corners[0][0] - 0.1 * (last - corners[0][0])
    marks: list[Mark] = [
        Line(name="bound", x=(first, last), y=(bound, bound), colour=GREY, dashed=True),
        Line(
            name="goal program, any budget",
            x=tuple(price for price, _ in corners),
            y=tuple(kwh for _, kwh in corners),
            colour=GOAL_COLOUR,
        ),
    ]
    marks += [
        Points(
            name=name,
            x=(result.design_named(name).price,),
            y=(answer.kwh_per_day(result.design_named(name).energy_j),),
            colour=colour,
            size_px=11,
        )
        for name, colour in COLOUR_OF_DESIGN.items()
        if any(design.name == name for design in answer.others)
    ]
    return Figure(
        name="frontier",
        title="Energy over price",
        caption=(
            "Least daily energy for each budget. Designs I to IV lie on or above the line: at their price the goal "
            "program needs no more energy."
        ),
        x=Axis(title=f"price ({answer.case.currency})", low=first, high=last),
        y=Axis(title="energy (kWh/day)", low=0.5 * (bound // 0.5)),
        marks=tuple(marks),
    )


def _stated_mismatch(result: ClusterResult) -> str:
    """Return the source's statement on the mismatch as a sentence; "" if it has none."""
    statements = [statement for statement in result.study.statement if statement.of == "mismatch"]
    return "".join(
        f" The source states {statement.stated} with its own trace ({statement.section})." for statement in statements
    )


def mismatch_figure(result: ClusterResult) -> Figure:
    """Return the figure of the power of a coarse design, run at the coarse and the fine sampling (fig. 8.6)."""
    steps = sorted({sample.run_s for sample in result.sampling_runs})
    fine, coarse = steps[0], steps[-1]
    marks: list[Mark] = []
    pairs = ((coarse, fine, "#d6812f"), (coarse, coarse, GOAL_COLOUR))
    for designed, run, colour in pairs:
        sample = result.sampling_run(designed, run)
        x, y = step_line(sample.power_w, run)
        marks.append(Line(name=f"Design-{designed / 60:g}/Sampling-{run / 60:g}", x=x, y=y, colour=colour))
    own_run, fine_run = result.sampling_run(coarse, coarse), result.sampling_run(coarse, fine)
    low = min(min(result.sampling_run(designed, run).power_w) for designed, run, _ in pairs)
    return Figure(
        name="mismatch",
        title="A design run at another sampling",
        caption=(
            f"Designed and run at {coarse / 60:g} min the cluster needs {own_run.kwh_per_day:.2f} kWh a day, run at "
            f"{fine / 60:g} min {fine_run.kwh_per_day:.2f} kWh; designed for {fine / 60:g} min as well, "
            f"{result.sampling_run(fine, fine).kwh_per_day:.2f} kWh.{_stated_mismatch(result)}"
        ),
        x=Axis(title="hour of the day", ticks=HOUR_TICKS, low=0.0, high=24.0),
        y=Axis(title="power (W)", low=50.0 * (0.95 * low // 50.0)),
        marks=tuple(marks),
    )


def switching_figure(result: ClusterResult) -> Figure:
    """Return the figure of energy over switchings for the plan's fleet, on-line and off-line."""
    days = result.trace_days
    chosen = _plan_saving(result)

    def axes(*savings: Saving) -> dict[str, Any]:
        schedules = [saving.schedule for saving in savings]
        return {
            "x": tuple(schedule.switchings / days for schedule in schedules),
            "y": tuple(schedule.energy_j / KWH_J / days for schedule in schedules),
        }

    marks: list[Mark] = []
    for name, savings, colour in (
        ("whole trace known", [payback.offline for payback in result.paybacks], GREY),
        ("on-line, worth", [payback.online for payback in result.paybacks], GOAL_COLOUR),
    ):
        labels = tuple(f"{name}\npayback {payback.payback_s:g} s" for payback in result.paybacks)
        marks += [
            Line(name=name, **axes(*savings), colour=colour, dashed=colour == GREY),
            Points(name=f"{name}, paybacks", **axes(*savings), colour=colour, size_px=6, labels=labels, legend=False),
        ]
    fewest = next(saving for saving in chosen.savings if "fewest" in saving.name)
    marks += [
        Points(name="off-line, each step", **axes(chosen.offline), colour="#4aa36a", symbol="square", size_px=12),
        Points(name="on-line, fewest (Li 2012)", **axes(fewest), colour="#d6812f", symbol="diamond", size_px=12),
        Points(name="on-line, tuned", **axes(chosen.online), colour=GOAL_COLOUR, filled=False, size_px=16),
    ]
    least = chosen.offline.schedule.energy_j / KWH_J / days
    ends = (0.0, 1.02 * chosen.offline.schedule.switchings / days)
    marks.append(
        Line(name="off-line + 3 %", x=ends, y=(1.03 * least, 1.03 * least), colour=palette(7)[-2], dashed=True)
    )
    return Figure(
        name="switching",
        title=f"Energy against switchings: {chosen.design.name}",
        caption=(
            f"Over {days:.0f} days; the payback rises from right to left. Tuned "
            f"to spend {100.0 * result.answer.case.rules.tolerance_ratio:.1f} % more energy than off-line, it needs "
            f"{100.0 * chosen.energy_ratio:.1f} % more with {100.0 * chosen.switchings_ratio:.0f} % of its switchings."
        ),
        x=Axis(title="machines switched on or off, a day", low=0.0),
        y=Axis(title="energy (kWh/day)", low=0.2 * (0.99 * least // 0.2)),
        marks=tuple(marks),
    )


def page(result: ClusterResult) -> Page:
    """Return the page of a study of a cluster."""
    plan = result.answer
    design = plan.design
    saved = 1.0 - design.energy_j / plan.always_on_j
    answer = (
        f"**{describe_machines(plan.case.problem, design.fleet)}** for {design.price:,.10g} {plan.case.currency} need "
        f"**{plan.kwh_per_day(design.energy_j):.2f} kWh a day**, {100.0 * plan.above_bound_ratio(design):.2f} % more "
        f"than the bound on any fleet, and {100.0 * saved:.0f} % less than always on."
    )
    if result.fleets:
        chosen = _plan_saving(result)
        answer += (
            f" Switched on-line over {result.trace_days:.0f} days, they need {100.0 * chosen.energy_ratio:.1f} % more "
            f"than off-line with {100.0 * chosen.switchings_ratio:.0f} % of its switchings."
        )
    return result.page(
        answer,
        (
            _designs(result),
            _plan(result),
            _sampling(result),
            bool(result.fleets) and _switching(result),
            statements_section(
                result.statements,
                "Statements of the source on its own trace, and the same quantities for this traffic.",
                caption=result.study.source,
            ),
            arithmetic_section(result.calculated),
        ),
        ("Traffic", "; ".join((plan.case.day.source, *plan.case.day.notes))),
        result.criteria_row,
    )


def _plan_saving(result: ClusterResult) -> FleetSaving:
    return next(fleet for fleet in result.fleets if fleet.design.fleet == result.answer.design.fleet)


def _designs(result: ClusterResult) -> Section:
    answer = result.answer
    loosest = result.goal_designs[-1]
    worst = max(answer.designs, key=lambda design: design.energy_j)
    tiles = (
        Tile(
            f"{answer.kwh_per_day(answer.bound.energy_j):.2f} kWh",
            "a day: the bound on any fleet",
            f"{worst.name} needs {100.0 * answer.above_bound_ratio(worst):+.1f} %",
        ),
        Tile(
            f"{100.0 * answer.above_bound_ratio(loosest):+.2f} %",
            f"above the bound: {loosest.name}",
            f"{loosest.price:,.10g} {answer.case.currency} spent",
        ),
        Tile(
            "0" if answer.design.gap_ratio < MAX_ROUNDING_RATIO else format_ratio(answer.design.gap_ratio, 2),
            "proven distance to the best fleet within the budget",
            answer.design.name,
        ),
    )
    return Section.of(
        "designs",
        "Which machines to buy",
        "A mix of machines follows the load in finer steps than machines of one type, so less capacity is idle.",
        Tiles(tiles),
        traffic_figure(result),
        power_figure(answer),
        energy_figure(result),
        price_figure(result),
        frontier_figure(result),
        designs_table(answer),
        bool(answer.notes) and Listing(title="Left out", entries=answer.notes),
    )


def _plan(result: ClusterResult) -> Section:
    answer = result.answer
    return Section.of(
        "plan",
        "Which machines are on in each step",
        f"The machines of {answer.design.name} over the typical day.",
        machines_figure(answer),
        Folded(summary="Every step", table=plan_table(answer)),
    )


def _sampling(result: ClusterResult) -> Section:
    return Section.of(
        "sampling",
        "Designed for a sampling, run at another",
        "The same typical day in coarse and in fine steps.",
        mismatch_figure(result),
        mismatch_table(result),
    )


def _switching(result: ClusterResult) -> Section:
    answer, days = result.answer, result.trace_days
    rules = answer.case.rules
    prose = (
        "Off-line, each step uses the machines of least power, and exchanges machines for a few watts. On-line, the "
        "algorithm switches a machine when the cost of keeping it exceeds the cost of switching (the work function "
        "algorithm of Borodin, Linial & Saks). A switching must save the energy that the machine draws at full load in "
        f"{format_duration(rules.payback_s)}."
        + (
            f" This time is then tuned so that energy is {100.0 * rules.tolerance_ratio:.1f} % above off-line, boots "
            "not counted; the number of switchings is the result."
            if rules.tolerance_ratio
            else ""
        )
    )
    step_s = answer.case.trace.step_s if answer.case.trace else 0.0
    return Section.of(
        "switching",
        "Switching machines on and off",
        "A good algorithm switches rarely and needs little more energy.",
        Prose((prose,)),
        bool(result.paybacks) and switching_figure(result),
        fleets_table(result),
        savings_table(
            answer.trace_savings,
            days,
            name="trace",
            title=f"{answer.design.name} over {days:.0f} days in steps of {step_s / 60.0:g} min",
            traffic=trace_traffic(answer),
        ),
    )
