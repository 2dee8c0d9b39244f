"""The report of a study of a cluster: designs, budgets, sampling, switching, and the thesis beside them."""

from __future__ import annotations

from routecast.quantity import format_duration
from routecast.report.cluster.figures import machines_figure, power_figure
from routecast.report.cluster.tables import (
    EXACT,
    designs_table,
    machines,
    plan_table,
    savings_table,
    trace_traffic,
)
from routecast.report.page import Block, Folded, Listing, Page, Prose, Section, Tile, Tiles
from routecast.study.cluster.plots import (
    energy_figure,
    frontier_figure,
    mismatch_figure,
    price_figure,
    switching_figure,
    traffic_figure,
)
from routecast.study.cluster.result import ClusterResult, FleetSaving
from routecast.study.cluster.tabulate import STATED_IN, fleets_table, mismatch_table
from routecast.study.stated import statements_table

__all__ = ["cluster_page"]


def cluster_page(result: ClusterResult) -> Page:
    """Return the page of a study of a cluster."""
    study, found, made = result.study, result.answer, result.made
    design = found.design
    sections = [_designs(result), _plan(result), _sampling(result)]
    if result.fleets:
        sections.append(_switching(result))
    if result.statements:
        sections.append(
            Section(
                anchor="thesis",
                title="The thesis beside it",
                lead="What it says of its own trace, and the same quantities on this traffic.",
                blocks=(statements_table(result.statements, caption=STATED_IN),),
            )
        )
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
    return Page(
        title=study.title,
        question=study.question,
        answer=answer,
        sections=tuple(sections),
        made=made.rows(
            ("Traffic", "; ".join((found.case.day.source, *found.case.day.notes))),
            ("Criteria", "; ".join(one.told for one in result.criteria) or "none"),
        ),
        source=study.source,
    )


def _chosen(result: ClusterResult) -> FleetSaving:
    return next(one for one in result.fleets if one.design.fleet == result.answer.design.fleet)


def _designs(result: ClusterResult) -> Section:
    found = result.answer
    loose = result.goal_designs[-1]
    worst = max(found.designs, key=lambda one: one.energy_j)
    tiles = (
        Tile(
            value=f"{found.kwh_per_day(found.bound.energy_j):.2f} kWh",
            meaning="a day: the bound that no fleet beats",
            beside=f"{worst.name} needs {100.0 * found.above_bound_ratio(worst):+.1f} %",
        ),
        Tile(
            value=f"{100.0 * found.above_bound_ratio(loose):+.2f} %",
            meaning=f"above it: {loose.name}",
            beside=f"{loose.price:,.10g} {found.case.currency} spent",
        ),
        Tile(
            value="0" if found.design.gap_ratio < EXACT else f"{100.0 * found.design.gap_ratio:.2g} %",
            meaning="proven distance to the best fleet of the budget",
            beside=found.design.name,
        ),
    )
    blocks: list[Block] = [
        Tiles(tiles),
        traffic_figure(result),
        power_figure(found),
        energy_figure(result),
        price_figure(result),
        frontier_figure(result),
        designs_table(found),
    ]
    if found.notes:
        blocks.append(Listing(title="Left out", entries=found.notes))
    return Section(
        anchor="designs",
        title="Which machines to buy",
        lead="A mix of machines follows the load in finer steps than machines of one kind, so less capacity idles.",
        blocks=tuple(blocks),
    )


def _plan(result: ClusterResult) -> Section:
    found = result.answer
    return Section(
        anchor="plan",
        title="Which of them are on when",
        lead=f"The machines of {found.design.name} over the typical day.",
        blocks=(
            machines_figure(found),
            Folded(summary="Every step", table=plan_table(found)),
        ),
    )


def _sampling(result: ClusterResult) -> Section:
    return Section(
        anchor="sampling",
        title="Designed for one sampling, run at another",
        lead="The same typical day, seen in coarse and in fine steps.",
        blocks=(mismatch_figure(result), mismatch_table(result)),
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
    blocks: list[Block] = [Prose((prose,))]
    if result.paybacks:
        blocks.append(switching_figure(result))
    blocks += [
        fleets_table(result),
        savings_table(
            found.trace_savings,
            days,
            name="trace",
            title=f"{found.design.name} over {days:.0f} days in steps of {step_s / 60.0:g} min",
            traffic=trace_traffic(found),
        ),
    ]
    return Section(
        anchor="switching",
        title="Switching them on and off",
        lead="Few switchings cost little energy, if they are the right ones.",
        blocks=tuple(blocks),
    )
