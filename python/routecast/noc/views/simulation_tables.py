"""The tables of a flit-level simulation of a network on chip."""

from __future__ import annotations

from routecast.noc.answer.compare import Comparison
from routecast.noc.answer.simulate import SimulationAnswer, SimulationRow
from routecast.noc.case import policy_name
from routecast.noc.simulate.result import Estimate
from routecast.noc.views.tables import grid_name, power_headline
from routecast.show.tables import Column, Table, signed_percent

__all__ = ["comparison_headline", "latency_line", "simulation_headline", "simulation_table", "with_interval"]

UNBOUNDED = "unbounded (saturated)"
"""Latency of a load over saturation."""


def with_interval(value: Estimate | None, form: str = ".2f") -> str:
    """Write a mean with the half-width of its 95 % interval.

    Examples
    --------
    >>> with_interval(Estimate(value=43.71, half_width=0.12))
    '43.71 ± 0.12'
    """
    if value is None:
        return UNBOUNDED
    text = format(value.value, form)
    return text if value.half_width != value.half_width else f"{text} ± {format(value.half_width, form)}"


def simulation_table(answer: SimulationAnswer) -> Table:
    """Return latency, throughput, link loads and power of every simulated load."""
    several = len(answer.keys) > 1
    percentiles = (95, 99) if all(len(row.simulated.planes) == 1 for row in answer.rows) else ()
    count = answer.table.replications
    sample = f"{count} replications" if count > 1 else "the batches of one replication"
    has_alpha = any(alpha != 1.0 for row in answer.rows for alpha in row.alphas)
    return Table(
        name="simulation",
        title="Flit by flit" + ("" if several else f": {answer.rows[0].name}"),
        caption=(
            "Latency in cycles of the nodes, from the making of a packet until its last flit has arrived; 95 % "
            f"intervals of {sample}. Accepted: flits per node and cycle. Busiest: part of its cycles in which the "
            "busiest link carries a flit. Power beside the flow level's at these clocks."
        ),
        columns=(
            *((Column.text("Routing"),) if several else ()),
            Column("Load", "", ".3g"),
            *((Column("Alpha"),) if has_alpha else ()),
            Column("Latency"),
            *(Column(f"p{percentile}", "", ".0f") for percentile in percentiles),
            Column("Accepted", "", ".4f"),
            Column("Busiest", "", ".3f"),
            Column("Power", "", ".4g"),
            Column("of flow", "%", signed_percent),
        ),
        rows=tuple(
            (
                *((row.name,) if several else ()),
                row.load,
                *((" / ".join(f"{alpha:.3f}" for alpha in row.alphas),) if has_alpha else ()),
                with_interval(_latency(row)),
                *(_percentile(row, f"p{percentile}_cycles") for percentile in percentiles),
                row.simulated.accepted_flits_node_cycle.value,
                row.largest_link_load,
                row.simulated.power.value,
                row.of_flow_power_ratio,
            )
            for row in answer.rows
        ),
    )


def _latency(row: SimulationRow) -> Estimate | None:
    return None if row.simulated.is_saturated else row.simulated.packet_latency_cycles


def _percentile(row: SimulationRow, name: str) -> float | None:
    found = row.simulated.packet_percentiles
    if found is None or row.simulated.is_saturated:
        return None
    value: Estimate = getattr(found, name)
    return value.value


def simulation_headline(answer: SimulationAnswer) -> tuple[str, ...]:
    """Return for every routing from which load on its latency is unbounded."""
    first = f"{answer.case.name}: {grid_name(answer.case)}."
    return (first, *(latency_line(answer, key) for key in answer.keys))


def latency_line(answer: SimulationAnswer, key: str) -> str:
    """Return the latency of a routing at the highest load that it carries, and from which load on it is unbounded."""
    limit, last = answer.saturated_from(key), answer.carried(key)
    if last is None:
        return f"{policy_name(key)} is saturated at every load that was simulated: latency is unbounded."
    if limit is None:
        return f"{last.name} carries load {last.load:g}: {with_interval(_latency(last))} cycles on average."
    return (
        f"{last.name} carries load {last.load:g} ({with_interval(_latency(last))} cycles) and is saturated at "
        f"{limit:g}: latency is unbounded there."
    )


def comparison_headline(answer: Comparison) -> tuple[str, ...]:
    """Return what is recommended and what is known of it, of nothing else: power, then latency if it was simulated."""
    best, lines = answer.best, power_headline(answer.power)
    if best is None or answer.simulation is None:
        return lines
    if answer.is_best_simulated:
        last = answer.simulation.carried(best.key)
        alphas = " / ".join(f"{alpha:.4g}" for alpha in last.alphas) if last is not None else ""
        clocks = f"That is at alpha {alphas}, with power {last.simulated.power.value:.4g}." if last else ""
        return (*lines, f"{latency_line(answer.simulation, best.key)} {clocks}".strip())
    return (*lines, f"The latency of {best.name} is unknown: it could not be simulated, as a note says.")
