"""Tables and sentences of the answers for a network on chip: power, the optimum, the simulation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter

from routecast.noc.answer.optimum import OptimumAnswer, OptimumRow
from routecast.noc.answer.power import EQUAL_PARTS, PowerAnswer
from routecast.noc.answer.simulate import NocComparison, SimulationAnswer, SimulationRow
from routecast.noc.file import NocCase, policy_name
from routecast.noc.simulate._result import Latency, MeanEstimate
from routecast.quantity import format_duration
from routecast.show.tables import Column, Table, percent, signed_percent

UNBOUNDED = "unbounded (saturated)"
"""Latency of a load over saturation."""


def with_interval(value: MeanEstimate | None, form: str = ".2f") -> str:
    """Write a mean with the half-width of its 95 % interval.

    Examples
    --------
    >>> with_interval(MeanEstimate(value=43.71, half_width=0.12))
    '43.71 ± 0.12'
    """
    if value is None:
        return UNBOUNDED
    text = format(value.value, form)
    return text if value.half_width != value.half_width else f"{text} ± {format(value.half_width, form)}"


def simulation_table(answer: SimulationAnswer) -> Table:
    """Return latency, throughput, link loads and power of every simulated load."""
    has_routings = len(answer.keys) > 1
    has_percentiles = all(len(row.simulated.planes) == 1 for row in answer.rows)
    count = answer.table.replications
    sample = f"{count} replications" if count > 1 else "the batches of one replication"
    has_alpha = any(alpha != 1.0 for row in answer.rows for alpha in row.alphas)

    def percentile(title: str, of: Callable[[Latency], MeanEstimate]) -> Column[SimulationRow]:
        return Column(title, "", ".0f", lambda row: _percentile(row, of))

    return Table.of(
        answer.rows,
        has_routings and Column.text("Routing", lambda row: row.name),
        Column("Load", "", ".3g", lambda row: row.load),
        has_alpha and Column("Alpha", getter=lambda row: _joined(row.alphas, ".3f")),
        Column("Latency", getter=lambda row: with_interval(_latency(row))),
        has_percentiles and percentile("p95", lambda summary: summary.p95_cycles),
        has_percentiles and percentile("p99", lambda summary: summary.p99_cycles),
        Column("Accepted", "", ".4f", lambda row: row.simulated.accepted_flits_node_cycle.value),
        Column("Busiest", "", ".3f", lambda row: row.largest_link_load),
        Column("Power", "", ".4g", lambda row: row.simulated.power.value),
        Column("Above flow", "%", signed_percent, lambda row: row.of_flow_power_ratio),
        name="simulation",
        title="Flit by flit" + ("" if has_routings else f": {answer.rows[0].name}"),
        caption=(
            f"Latency with {answer.arrivals}, in cycles of the nodes, from the creation of a packet to the arrival of "
            f"its last flit; 95 % intervals of {sample}. Accepted: flits per node and cycle. Busiest: part of its "
            "cycles in which the busiest link carries a flit. Above flow: excess over the power of the flow level at "
            "these clocks."
        ),
    )


def _latency(row: SimulationRow) -> MeanEstimate | None:
    return None if row.simulated.is_saturated else row.simulated.packet_latency_cycles


def _percentile(row: SimulationRow, of: Callable[[Latency], MeanEstimate]) -> float | None:
    percentiles = row.simulated.packet_percentiles
    if percentiles is None or row.simulated.is_saturated:
        return None
    return of(percentiles).value


def simulation_headline(answer: SimulationAnswer) -> tuple[str, ...]:
    """Return the load from which the latency of each routing is unbounded."""
    first = f"{answer.case.name}: {grid_name(answer.case)}."
    return (first, *(latency_line(answer, key) for key in answer.keys))


def latency_line(answer: SimulationAnswer, key: str) -> str:
    """Return the latency of a routing at the highest load that it carries, and the load from which it is unbounded."""
    limit, last = answer.saturated_from(key), answer.carried(key)
    if last is None:
        return f"{policy_name(key)} is saturated at every simulated load: latency is unbounded."
    if limit is None:
        return (
            f"{last.name} carries load {last.load:g}: {with_interval(_latency(last))} cycles on average "
            f"with {answer.arrivals}."
        )
    return (
        f"{last.name} carries load {last.load:g} ({with_interval(_latency(last))} cycles with "
        f"{answer.arrivals}) and is saturated at "
        f"{limit:g}: latency is unbounded there."
    )


def comparison_headline(answer: NocComparison) -> tuple[str, ...]:
    """Return the recommended routing or allocation with its power, and its latency if it was simulated."""
    best, lines = answer.best, power_headline(answer.power)
    if best is None or answer.simulation is None:
        return lines
    if answer.is_best_simulated:
        last = answer.simulation.carried(best.key)
        alphas = " / ".join(f"{alpha:.4g}" for alpha in last.alphas) if last is not None else ""
        clocks = f"That is at alpha {alphas}, with power {last.simulated.power.value:.4g}." if last else ""
        return (*lines, f"{latency_line(answer.simulation, best.key)} {clocks}".strip())
    return (*lines, f"The latency of {best.name} is unknown: it could not be simulated (see the notes).")


_MAX_NAMED_LINKS = 6


def gap_percent(ratio: float) -> str:
    """Write a proven gap as percent; a gap within the rounding of the linear programs is 0.

    Examples
    --------
    >>> gap_percent(0.0098), gap_percent(1e-12)
    ('0.98', '0')
    """
    return f"{100.0 * ratio:.2g}" if ratio > 1e-9 else "0"


def grid_name(case: NocCase) -> str:
    """Write the traffic and the grid of the file.

    Examples
    --------
    ``"hot spot traffic on a mesh of 5 x 5, 2 planes"``
    """
    grid = case.topology
    kind = str(grid.kind).replace("_", " ")
    concentration = f", {grid.concentration} nodes at each router" if grid.concentration > 1 else ""
    planes = f", {len(case.widths)} planes" if case.has_planes else ""
    traffic = case.traffic.name.replace("_", " ")
    traffic += "" if traffic.endswith("flows") else " traffic"
    return f"{traffic} on a {kind} of {grid.columns} × {grid.rows}{concentration}{planes}"


def load_meaning(case: NocCase) -> str:
    """Return one sentence that defines load 1."""
    return {
        "compared": "At load 1 the worst link of the worst compared routing is full (eq. 6.7).",
        "xy": "At load 1 the worst link under XY on one plane is full (eq. 7.13).",
        "none": "At load 1 the rates are those of the file, in flits per node and cycle.",
    }[case.normalised_by]


def _joined(values: Sequence[float], form: str) -> str:
    return " / ".join(format(value, form) for value in values) or "–"


def power_table(answer: PowerAnswer) -> Table:
    """Return power by load and routing: bottleneck, expansion, hop flow, and the ratios to NoDVFS and XY."""
    least = {
        load: min((row.power for row in answer.at(load) if row.power is not None), default=0.0)
        for load in answer.case.loads
    }
    # At each load: routings, equal parts, allocations.
    rows = sorted(
        (*answer.rows, *answer.equal_parts), key=lambda row: (row.load, row.is_allocation, row.key != EQUAL_PARTS)
    )
    planes = (
        " Bottleneck and alpha are given for each plane. Equal parts: every flow is split over all planes (eq. 7.5); "
        "no allocation splits flows."
        if answer.case.has_planes
        else ""
    )
    dash = " A dash: a link is over capacity at full clock." if any(row.power is None for row in answer.rows) else ""
    return Table.of(
        rows,
        len(answer.case.loads) > 1 and Column("Load", "", ".3g", lambda row: row.load),
        Column.text("Routing", lambda row: row.name),
        Column("Bottleneck", getter=lambda row: _joined(row.bottlenecks, ".3f")),
        Column("Alpha", getter=lambda row: _joined(row.alphas, ".3f")),
        Column("Hop flow", "", ".3f", lambda row: row.hop_flow),
        Column("Power", "", ".4g", lambda row: row.power),
        Column("of NoDVFS", "%", percent, lambda row: row.of_no_dvfs_ratio),
        Column("of XY, DVFS", "%", percent, lambda row: row.of_xy_ratio),
        name="power",
        title="Power by routing",
        caption=(
            f"{load_meaning(answer.case)} Power in links that are always busy at full voltage.{planes}{dash} "
            "Shaded rows need the least power at their load."
        ),
        strong=lambda row: (
            row.key != EQUAL_PARTS and row.power is not None and row.power <= least[row.load] * (1.0 + 1e-9)
        ),
    )


def watts_table(answer: PowerAnswer) -> Table | None:
    """Return the routers' power by the file's table of router power; None where the file has no table."""
    table = answer.case.table
    if table is None or all(row.watts is None for row in answer.rows):
        return None
    rows = [row for row in (*answer.rows, *answer.equal_parts) if row.watts is not None]
    rows.sort(key=lambda row: row.load)  # a stable sort: the file's order at each load
    has_idle = any(row.idle_w is not None for row in rows)
    is_bounded = any(row.watts is not None and row.watts[0] != row.watts[1] for row in rows)
    return Table.of(
        rows,
        Column("Load", "", ".3g", lambda row: row.load),
        Column.text("Routing", lambda row: row.name),
        is_bounded and Column("Least", "W", ".4g", lambda row: row.watts and row.watts[0]),
        Column("Greatest" if is_bounded else "Power", "W", ".4g", lambda row: row.watts and row.watts[1]),
        has_idle and Column("Idle", "W", ".4g", lambda row: row.idle_w),
        name="watts",
        title=f"All routers together: {table.name}",
        caption=(
            "Sum over routers of eq. 7.14 at the clock of their plane."
            + (" The table states no idle power: power lies between the two columns." if is_bounded else "")
            + (" A plane without traffic sleeps." if answer.case.power.asleep < 1.0 else "")
            + (" Idle: the part that routers draw without a flit." if has_idle else "")
            + "".join(f" {line}" for line in crossover_lines(answer))
        ),
    )


def crossover_lines(answer: PowerAnswer) -> tuple[str, ...]:
    """Return the load from which each allocation draws less power than XY with scaling on one plane, in watts.

    At low load a second plane draws its idle power and saves little (Li 2012, sec. 7.5). Where only bounds of the power
    are known, an allocation draws less if its upper bound is below XY's lower bound.
    """
    one_plane = {row.load: row.watts for row in answer.of("xy") if row.watts is not None}
    if len(one_plane) < 2:
        return ()
    lines = []
    for key in answer.keys:
        rows = [row for row in answer.of(key) if row.is_allocation and row.watts is not None and row.load in one_plane]
        cheaper = [row.load for row in rows if row.watts is not None and row.watts[1] < one_plane[row.load][0]]
        first = min(
            (load for load in cheaper if all(row.load in cheaper for row in rows if row.load >= load)), default=None
        )
        if not rows:
            continue
        loads = "at no load"
        if first is not None:
            loads = "at every load" if first == min(row.load for row in rows) else f"from load {first:g} on"
        lines.append(f"{rows[0].name} {loads}")
    return (f"Less power than XY on one plane: {', '.join(lines)}.",) if lines else ()


def power_headline(answer: PowerAnswer) -> tuple[str, ...]:
    """Return the answer in a few lines: the routing of least power at the highest load that any routing carries."""
    best = answer.recommended
    lines = [f"{answer.case.name}: {grid_name(answer.case)}."]
    lines += [
        f"At load {load:g} no routing carries the traffic: latency is unbounded."
        for load in reversed(answer.case.loads)
        if best is None or load > best.load
    ]
    if best is not None:
        sentence = f"At load {best.load:g} {best.name} needs the least power: {best.power:.4g}"
        if best.of_no_dvfs_ratio is not None:
            sentence += f", {percent(best.of_no_dvfs_ratio)} % of NoDVFS, {1.0 / best.of_no_dvfs_ratio:.2f} times less"
        lines.append(sentence + ".")
    return tuple(lines)


def optima_table(answer: OptimumAnswer) -> Table:
    """Return the optimum by load: expansion of each plane, power, proven bound and gap, work."""
    return Table.of(
        answer.rows,
        Column("Load", "", ".3g", lambda row: row.load),
        Column("Alpha", getter=lambda row: _joined([plane.alpha for plane in row.optimum.planes], ".4f")),
        Column("Power", "", ".6g", lambda row: row.optimum.power),
        Column("Bound", "", ".6g", lambda row: row.optimum.lower_bound),
        Column("Gap", "%", gap_percent, lambda row: row.optimum.gap),
        Column("Programs", "", "d", lambda row: row.optimum.programs),
        Column("Time", getter=lambda row: format_duration(row.seconds)),
        name="optimum",
        title="The optimum",
        caption=f"Flows split over {_path_set(answer)} paths"
        + (" and all planes" if answer.case.has_planes else "")
        + ". The bound is proven by linear programming duality: no routing needs less.",
    )


def _path_set(answer: OptimumAnswer) -> str:
    return "any" if answer.case.optimum.paths == "any" else "shortest"


def distance_table(answer: OptimumAnswer, row: OptimumRow) -> Table:
    """Return the distance of every routing and allocation from the bound at a load, in rising order."""
    # Powers that differ by rounding alone are equal and keep their order.
    powers = sorted(
        answer.power.at(row.load), key=lambda row: float("inf") if row.power is None else float(f"{row.power:.9g}")
    )
    no_dvfs = powers[0].no_dvfs_power
    alphas = _joined([plane.alpha for plane in row.optimum.planes], ".3f")
    whole_flow_rows = [("bound of whole flows", "", row.whole_flow_bound)] if answer.case.has_planes else []
    return Table.of(
        [
            (f"optimum, {_path_set(answer)} paths", alphas, row.optimum.power),
            *whole_flow_rows,
            *((power.name, _joined(power.alphas, ".3f"), power.power) for power in powers),
        ],
        Column.text("Routing", itemgetter(0)),
        Column("Alpha", getter=itemgetter(1)),
        Column("Power", "", ".4g", itemgetter(2)),
        Column(
            "of NoDVFS", "%", percent, lambda entry: entry[2] / no_dvfs if no_dvfs and entry[2] is not None else None
        ),
        Column("Above bound", "%", signed_percent, lambda entry: answer.above_bound_ratio(entry[2], row)),
        name="beside",
        title=f"Distance to the optimum at load {row.load:g}",
        caption="No allocation is below the bound of whole flows, because it does not split flows."
        if answer.case.has_planes
        else "",
        strong={0},
    )


def optimum_lines(answer: OptimumAnswer, row: OptimumRow) -> tuple[str, ...]:
    """Return which links limit the optimum, plane by plane."""
    lines = []
    name = answer.case.topology.link_name
    for number, plane in enumerate(row.optimum.planes):
        prefix = f"Plane {number + 1}: " if answer.case.has_planes else ""
        links = row.bottlenecks(number)
        if not links:
            lines.append(
                (f"{prefix}no" if prefix else "No") + f" link is full at the slowest clock (alpha {plane.alpha:.4g})."
            )
            continue
        names = ", ".join(name(link) for link in links[:_MAX_NAMED_LINKS])
        rest = f" and {len(links) - _MAX_NAMED_LINKS} more" if len(links) > _MAX_NAMED_LINKS else ""
        sentence = f"{prefix}full at alpha {plane.alpha:.4g}: {names}{rest}."
        lines.append(sentence[:1].upper() + sentence[1:])
    return tuple(lines)
