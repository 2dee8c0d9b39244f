"""The report of a study of a cluster: designs, budgets, sampling, switching, and Li (2012) beside them."""

from __future__ import annotations

from routecast.plan.cluster.answer import KWH_J
from routecast.plan.cluster.model import Design, Schedule
from routecast.plan.cluster.study.run import ClusterResult, FleetSaving
from routecast.plan.cluster.views import (
    CHOSEN,
    COLOURS,
    EXACT,
    GREY,
    designs_table,
    machines,
    machines_figure,
    plan_table,
    power_figure,
    savings_table,
    stairs,
    trace_traffic,
)
from routecast.quantity import format_duration
from routecast.show.figures import Axis, Figure, Line, Mark, Points, palette
from routecast.show.page import Folded, Listing, Page, Prose, Section, Tile, Tiles
from routecast.show.tables import Column, Table, percent, signed_percent
from routecast.study.arithmetic import arithmetic_section, arithmetic_table
from routecast.study.result import TerminalSummary, statements_section, statements_table

__all__ = ["page", "terminal_summary"]


# The tables of a study of a cluster, for the terminal and for the report alike.


def mismatch_table(result: ClusterResult) -> Table:
    """Return the daily energy of each sampling's design at each sampling."""
    steps = sorted({one.run_s for one in result.sampled})

    def kwh(run_s: float) -> Column:
        def per_day(designed_s: float) -> float:
            return result.of_sampling(designed_s, run_s).kwh_per_day

        return Column(f"{run_s / 60:g} min", "kWh/day", ".3f", per_day, group="run at")

    return Table.of(
        steps,
        Column.text("Designed for", lambda step: f"{step / 60:g} min"),
        Column.text(
            "Machines",
            lambda step: machines(result.answer.case.problem, result.of_sampling(step, step).fleet),
            wide=True,
        ),
        *map(kwh, steps),
        Column("Missed", "%", percent, lambda step: max(result.of_sampling(step, run).missed_ratio for run in steps)),
        name="mismatch",
        title="Designs for one sampling of the day, run at another",
        caption="kWh a day. Traffic that is beyond the fleet, because a coarse sampling hides the highest load, is not "
        "carried: the last column is the most of it.",
    )


def fleets_table(result: ClusterResult) -> Table:
    """Return how on-line saving compares with off-line saving, fleet by fleet."""
    days = result.trace_days

    def fewest_energy(one: FleetSaving) -> float:
        return _fewest(one).energy_j / one.offline.schedule.energy_j - 1.0

    def fewest_switchings(one: FleetSaving) -> float | None:
        most = one.offline.schedule.switchings
        return _fewest(one).switchings / most if most else None

    return Table.of(
        result.fleets,
        Column.text("Fleet", "design.name"),
        Column("Energy", "kWh/day", ".3f", lambda one: one.offline.schedule.energy_j / KWH_J / days, group="off-line"),
        Column("Switched", "a day", ".0f", lambda one: one.offline.schedule.switchings / days, group="off-line"),
        Column("Energy", "%", signed_percent, "energy_ratio", group="worth"),
        Column("Switched", "%", _whole, "switchings_ratio", group="worth"),
        Column("Energy", "%", signed_percent, fewest_energy, group="fewest"),
        Column("Switched", "%", _whole, fewest_switchings, group="fewest"),
        name="fleets",
        title=f"On-line against off-line saving, {days:.0f} days",
        caption="Off-line takes each step's cheapest machines. Worth switches once it pays back, fewest is Li's "
        "differential algorithm; both know the present load and carry every step.",
        strong=lambda one: one.design.fleet == result.answer.design.fleet,
    )


def _fewest(one: FleetSaving) -> Schedule:
    return next(saving for saving in one.savings if "fewest" in saving.name).schedule


def _whole(ratio: float) -> str:
    return f"{100.0 * ratio:.0f}"


def terminal_summary(result: ClusterResult) -> TerminalSummary:
    """Return what a terminal shows of a study of a cluster."""
    return TerminalSummary.of(
        designs_table(result.answer),
        mismatch_table(result),
        fleets_table(result),
        statements_table(result.statements, caption=result.study.source),
        arithmetic_table(result.calculated),
        notes=result.answer.notes,
    )


# The figures of a study of a cluster: figs. 8.2 to 8.6 of Li 2012 on its own traffic, and what switching costs.


HOURS = tuple(float(hour) for hour in range(0, 25, 3))


def traffic_figure(result: ClusterResult) -> Figure:
    """Return the typical day in the plan's steps and in the finest ones (fig. 8.2)."""
    case, fine = result.answer.case, result.fine_day
    marks: list[Mark] = []
    for series, name, colour in (
        (fine, f"{fine.step_s / 60.0:g} min", "#d6812f"),
        (case.day, f"{case.day.step_s / 60.0:g} min", CHOSEN),
    ):
        x, y = stairs([rate / 1e9 for rate in series.l2_bps], series.step_s)
        marks.append(Line(name=name, x=x, y=y, colour=colour))
    low, high = min(case.day.l2_bps), max(case.day.l2_bps)
    return Figure(
        name="traffic",
        title="The typical day",
        caption=(
            f"Mean over the days at each time of day, the highest step of the plan scaled to {high / 1e9:g} Gbit/s; "
            f"the lowest is {100.0 * low / high:.0f} % of it."
        ),
        x=Axis(title="hour of the day", ticks=HOURS, low=0.0, high=24.0),
        y=Axis(title="traffic (Gbit/s)", low=0.0),
        marks=tuple(marks),
    )


def _ordered(result: ClusterResult) -> list[Design]:
    """Return Designs I to IV, then the goal program's by budget."""
    found = result.answer
    some = sorted((one for one in found.others if one.name in COLOURS), key=lambda one: one.name)
    return [*some, *result.goal_designs]


def _short(design: Design) -> str:
    """Return a name that fits below a tick."""
    return design.name.removeprefix("Design-").replace(", ", " ")


def _columns(designs: list[Design], values: list[float], base: float) -> list[Mark]:
    """Draw a column for each design from ``base``, with its value as a point."""
    marks: list[Mark] = []
    for place, (design, value) in enumerate(zip(designs, values, strict=True), start=1):
        colour = COLOURS.get(design.name, CHOSEN)
        ends = (float(place), float(place))
        marks.append(Line(name=design.name, x=ends, y=(base, value), colour=colour, legend=False))
        marks.append(
            Points(
                name=f"{design.name} value",
                x=(float(place),),
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
        ticks=tuple(float(place) for place in range(1, len(designs) + 1)),
        labels=tuple(_short(design) for design in designs),
        low=0.4,
        high=len(designs) + 0.6,
    )


def energy_figure(result: ClusterResult) -> Figure:
    """Return the daily energy of each design above the bound (fig. 8.4)."""
    found, designs = result.answer, _ordered(result)
    bound = found.kwh_per_day(found.bound.energy_j)
    kwh = [found.kwh_per_day(design.energy_j) for design in designs]
    ends = (0.4, len(designs) + 0.6)
    loose = designs[-1]
    return Figure(
        name="energy",
        title="Energy of the designs",
        caption=(
            f"Stems are what a design needs more than the bound of {bound:.2f} kWh, which no fleet beats. "
            f"{loose.name} is {100.0 * found.above_bound_ratio(loose):.2f} % above it, "
            f"{designs[kwh.index(max(kwh))].name} {100.0 * (max(kwh) / bound - 1.0):.1f} %."
        ),
        x=_names_axis(designs),
        y=Axis(title="energy (kWh/day)", low=0.5 * (bound // 0.5)),
        marks=(Line(name="bound", x=ends, y=(bound, bound), colour=GREY, dashed=True), *_columns(designs, kwh, bound)),
    )


def price_figure(result: ClusterResult) -> Figure:
    """Return the price of each design (fig. 8.5)."""
    designs = _ordered(result)
    prices = [design.price for design in designs]
    least = designs[prices.index(min(prices))]
    return Figure(
        name="price",
        title="Price of the designs",
        caption=(
            f"{least.name} is the cheapest; {designs[-1].name} costs {prices[-1] / min(prices):.2f} times as much. A "
            "budget that is not needed for the least energy is not spent."
        ),
        x=_names_axis(designs),
        y=Axis(title=f"price ({result.answer.case.currency})", low=0.0),
        marks=tuple(_columns(designs, prices, 0.0)),
    )


def frontier_figure(result: ClusterResult) -> Figure:
    """Return energy over price: the goal program's best for each budget, and the other designs."""
    found = result.answer
    bound = found.kwh_per_day(found.bound.energy_j)
    curve = sorted({(one.price, found.kwh_per_day(one.energy_j)) for one in (*result.frontier, *result.goal_designs)})
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
            colour=CHOSEN,
        ),
    ]
    marks += [
        Points(
            name=name,
            x=(result.named(name).price,),
            y=(found.kwh_per_day(result.named(name).energy_j),),
            colour=colour,
            size_px=11,
        )
        for name, colour in COLOURS.items()
        if any(one.name == name for one in found.others)
    ]
    return Figure(
        name="frontier",
        title="What energy costs",
        caption=(
            "Least daily energy that a budget buys. Designs I to IV lie on the line or above it: at their price the "
            "goal program needs no more."
        ),
        x=Axis(title=f"price ({found.case.currency})", low=first, high=last),
        y=Axis(title="energy (kWh/day)", low=0.5 * (bound // 0.5)),
        marks=tuple(marks),
    )


def _stated_mismatch(result: ClusterResult) -> str:
    """Return what the source states of the mismatch, as a sentence; "" where it is not among the statements."""
    said = [one for one in result.study.statement if one.of == "mismatch"]
    return "".join(f" The source states {one.stated} with its own trace ({one.section})." for one in said)


def mismatch_figure(result: ClusterResult) -> Figure:
    """Return the power of a coarse design run at the coarse and at the fine sampling (fig. 8.6)."""
    steps = sorted({one.run_s for one in result.sampled})
    fine, coarse = steps[0], steps[-1]
    marks: list[Mark] = []
    pairs = ((coarse, fine, "#d6812f"), (coarse, coarse, CHOSEN))
    for designed, run, colour in pairs:
        one = result.of_sampling(designed, run)
        x, y = stairs(one.power_w, run)
        marks.append(Line(name=f"Design-{designed / 60:g}/Sampling-{run / 60:g}", x=x, y=y, colour=colour))
    own, other = result.of_sampling(coarse, coarse), result.of_sampling(coarse, fine)
    low = min(min(result.of_sampling(designed, run).power_w) for designed, run, _ in pairs)
    return Figure(
        name="mismatch",
        title="A design and another sampling",
        caption=(
            f"Designed and run at {coarse / 60:g} min the cluster needs {own.kwh_per_day:.2f} kWh a day, run at "
            f"{fine / 60:g} min {other.kwh_per_day:.2f} kWh; designed for {fine / 60:g} min as well, "
            f"{result.of_sampling(fine, fine).kwh_per_day:.2f} kWh.{_stated_mismatch(result)}"
        ),
        x=Axis(title="hour of the day", ticks=HOURS, low=0.0, high=24.0),
        y=Axis(title="power (W)", low=50.0 * (0.95 * low // 50.0)),
        marks=tuple(marks),
    )


def switching_figure(result: ClusterResult) -> Figure:
    """Return energy over switchings for one fleet: what patience costs on-line, and with the trace known."""
    days = result.trace_days
    chosen = next(one for one in result.fleets if one.design.fleet == result.answer.design.fleet)
    marks: list[Mark] = []
    for name, pick, colour in (("whole trace known", "offline", GREY), ("on-line, worth", "online", CHOSEN)):
        found = [getattr(one, pick) for one in result.paybacks]
        points = [(one.schedule.switchings / days, one.schedule.energy_j / KWH_J / days) for one in found]
        marks.append(
            Line(
                name=name,
                x=tuple(x for x, _ in points),
                y=tuple(y for _, y in points),
                colour=colour,
                dashed=pick == "offline",
            )
        )
        marks.append(
            Points(
                name=f"{name}, paybacks",
                x=tuple(x for x, _ in points),
                y=tuple(y for _, y in points),
                colour=colour,
                size_px=6,
                labels=tuple(f"{name}\npayback {one.payback_s:g} s" for one in result.paybacks),
                legend=False,
            )
        )
    fewest = next(one for one in chosen.savings if "fewest" in one.name)
    for name, saving, colour, symbol in (
        ("off-line, each step", chosen.offline, "#4aa36a", "square"),
        ("on-line, fewest (Li 2012)", fewest, "#d6812f", "diamond"),
    ):
        marks.append(
            Points(
                name=name,
                x=(saving.schedule.switchings / days,),
                y=(saving.schedule.energy_j / KWH_J / days,),
                colour=colour,
                symbol="square" if symbol == "square" else "diamond",
                size_px=12,
            )
        )
    marks.append(
        Points(
            name="on-line, tuned",
            x=(chosen.online.schedule.switchings / days,),
            y=(chosen.online.schedule.energy_j / KWH_J / days,),
            colour=CHOSEN,
            filled=False,
            size_px=16,
        )
    )
    least = chosen.offline.schedule.energy_j / KWH_J / days
    ends = (0.0, 1.02 * chosen.offline.schedule.switchings / days)
    marks.append(
        Line(name="off-line + 3 %", x=ends, y=(1.03 * least, 1.03 * least), colour=palette(7)[-2], dashed=True)
    )
    return Figure(
        name="switching",
        title=f"Energy against switchings: {chosen.design.name}",
        caption=(
            f"Over {days:.0f} days; from right to left a switching must be worth more and more time. Tuned "
            f"to spend {100.0 * result.answer.case.rules.tolerance_ratio:.1f} % more energy than off-line, it needs "
            f"{100.0 * chosen.energy_ratio:.1f} % more with {100.0 * chosen.switchings_ratio:.0f} % of its switchings."
        ),
        x=Axis(title="machines switched on or off, a day", low=0.0),
        y=Axis(title="energy (kWh/day)", low=0.2 * (0.99 * least // 0.2)),
        marks=tuple(marks),
    )


def page(result: ClusterResult) -> Page:
    """Return the page of a study of a cluster."""
    found = result.answer
    design = found.design
    saved = 1.0 - design.energy_j / found.always_on_j
    answer = (
        f"**{machines(found.case.problem, design.fleet)}** for {design.price:,.10g} {found.case.currency} need "
        f"**{found.kwh_per_day(design.energy_j):.2f} kWh a day**, {100.0 * found.above_bound_ratio(design):.2f} % more "
        f"than any fleet must, and {100.0 * saved:.0f} % less than if they stayed on."
    )
    if result.fleets:
        chosen = _chosen(result)
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
                "What it says of its own trace, and the same quantities on this traffic.",
                caption=result.study.source,
            ),
            arithmetic_section(result.calculated),
        ),
        ("Traffic", "; ".join((found.case.day.source, *found.case.day.notes))),
        result.criteria_row,
    )


def _chosen(result: ClusterResult) -> FleetSaving:
    return next(one for one in result.fleets if one.design.fleet == result.answer.design.fleet)


def _designs(result: ClusterResult) -> Section:
    found = result.answer
    loose = result.goal_designs[-1]
    worst = max(found.designs, key=lambda one: one.energy_j)
    tiles = (
        Tile(
            f"{found.kwh_per_day(found.bound.energy_j):.2f} kWh",
            "a day: the bound that no fleet beats",
            f"{worst.name} needs {100.0 * found.above_bound_ratio(worst):+.1f} %",
        ),
        Tile(
            f"{100.0 * found.above_bound_ratio(loose):+.2f} %",
            f"above it: {loose.name}",
            f"{loose.price:,.10g} {found.case.currency} spent",
        ),
        Tile(
            "0" if found.design.gap_ratio < EXACT else f"{100.0 * found.design.gap_ratio:.2g} %",
            "proven distance to the best fleet of the budget",
            found.design.name,
        ),
    )
    return Section.of(
        "designs",
        "Which machines to buy",
        "A mix of machines follows the load in finer steps than machines of one kind, so less capacity idles.",
        Tiles(tiles),
        traffic_figure(result),
        power_figure(found),
        energy_figure(result),
        price_figure(result),
        frontier_figure(result),
        designs_table(found),
        bool(found.notes) and Listing(title="Left out", entries=found.notes),
    )


def _plan(result: ClusterResult) -> Section:
    found = result.answer
    return Section.of(
        "plan",
        "Which of them are on when",
        f"The machines of {found.design.name} over the typical day.",
        machines_figure(found),
        Folded(summary="Every step", table=plan_table(found)),
    )


def _sampling(result: ClusterResult) -> Section:
    return Section.of(
        "sampling",
        "Designed for one sampling, run at another",
        "The same typical day, seen in coarse and in fine steps.",
        mismatch_figure(result),
        mismatch_table(result),
    )


def _switching(result: ClusterResult) -> Section:
    found, days = result.answer, result.trace_days
    rules = found.case.rules
    prose = (
        "Off-line, each step takes the machines that draw the least, and exchanges machines for a few watts. On-line, "
        "a machine is switched once keeping it has cost more than switching it (the work function algorithm of "
        f"Borodin, Linial & Saks). A switching must save what the machine draws in {format_duration(rules.payback_s)}"
        + (
            f", a time that is then tuned to spend {100.0 * rules.tolerance_ratio:.1f} % more energy than off-line, "
            "boots apart: how much more is set, how few switchings that leaves is found."
            if rules.tolerance_ratio
            else "."
        )
    )
    step_s = found.case.trace.step_s if found.case.trace else 0.0
    return Section.of(
        "switching",
        "Switching them on and off",
        "Few switchings cost little energy, if they are the right ones.",
        Prose((prose,)),
        bool(result.paybacks) and switching_figure(result),
        fleets_table(result),
        savings_table(
            found.trace_savings,
            days,
            name="trace",
            title=f"{found.design.name} over {days:.0f} days in steps of {step_s / 60.0:g} min",
            traffic=trace_traffic(found),
        ),
    )
