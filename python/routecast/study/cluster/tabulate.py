"""The tables of a study of a cluster, for the terminal and for the report alike."""

from __future__ import annotations

from routecast.report.cluster.tables import designs_table, machines
from routecast.report.tables import Cell, Column, Table, percent, signed_percent
from routecast.study.cluster.result import ClusterResult
from routecast.study.shown import Shown
from routecast.study.stated import statements_table

__all__ = ["STATED_IN", "fleets_table", "mismatch_table", "shown"]

STATED_IN = "N. Li 2012, ch. 8; its trace is of another network and is not published."


def mismatch_table(result: ClusterResult) -> Table:
    """Return the daily energy of each sampling's design at each sampling."""
    steps = sorted({one.run_s for one in result.sampled})
    rows: list[tuple[Cell, ...]] = []
    for designed in steps:
        fleet = result.of_sampling(designed, designed).fleet
        missed = max(result.of_sampling(designed, run).missed_ratio for run in steps)
        rows.append(
            (
                f"{designed / 60:g} min",
                machines(result.answer.case.problem, fleet),
                *(result.of_sampling(designed, run).kwh_per_day for run in steps),
                missed,
            )
        )
    return Table(
        name="mismatch",
        title="Designs for one sampling of the day, run at another",
        caption=(
            "kWh a day. Traffic that is beyond the fleet, because a coarse sampling hides the highest load, is not "
            "carried: the last column is the most of it."
        ),
        columns=(
            Column(title="Designed for", align="left"),
            Column(title="Machines", align="left", wide=True),
            *(Column(title=f"{step / 60:g} min", unit="kWh/day", form=".3f", group="run at") for step in steps),
            Column(title="Missed", unit="%", form=percent),
        ),
        rows=tuple(rows),
    )


def fleets_table(result: ClusterResult) -> Table:
    """Return how on-line saving compares with off-line saving, fleet by fleet."""
    days = result.trace_days
    rows = []
    for one in result.fleets:
        fewest = next(saving for saving in one.savings if "fewest" in saving.name)
        off = one.offline.schedule
        rows.append(
            (
                one.design.name,
                off.energy_j / 3.6e6 / days,
                off.switchings / days,
                one.energy_ratio,
                one.switchings_ratio,
                fewest.schedule.energy_j / off.energy_j - 1.0,
                fewest.schedule.switchings / off.switchings if off.switchings else None,
            )
        )
    return Table(
        name="fleets",
        title=f"On-line against off-line saving, {days:.0f} days",
        caption=(
            "Off-line takes each step's cheapest machines. Worth switches once it pays back, fewest is the thesis' "
            "differential algorithm; both know the present load and carry every step."
        ),
        columns=(
            Column(title="Fleet", align="left"),
            Column(title="Energy", unit="kWh/day", form=".3f", group="off-line"),
            Column(title="Switched", unit="a day", form=".0f", group="off-line"),
            Column(title="Energy", unit="%", form=signed_percent, group="worth"),
            Column(title="Switched", unit="%", form=_whole, group="worth"),
            Column(title="Energy", unit="%", form=signed_percent, group="fewest"),
            Column(title="Switched", unit="%", form=_whole, group="fewest"),
        ),
        rows=tuple(rows),
        strong=frozenset(
            number for number, one in enumerate(result.fleets) if one.design.fleet == result.answer.design.fleet
        ),
    )


def _whole(ratio: float) -> str:
    return f"{100.0 * ratio:.0f}"


def shown(result: ClusterResult) -> Shown:
    """Return what a terminal shows of a study of a cluster."""
    tables = [designs_table(result.answer), mismatch_table(result)]
    tables += [fleets_table(result)] if result.fleets else []
    tables += [statements_table(result.statements, caption=STATED_IN)] if result.statements else []
    return Shown(tables=tuple(tables), notes=result.answer.notes)
