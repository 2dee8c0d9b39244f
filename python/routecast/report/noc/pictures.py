"""Answers for a network on chip as figures and maps."""

from __future__ import annotations

from routecast.noc.answer.optimum import OptimumAnswer, OptimumRow
from routecast.noc.answer.power import PowerAnswer
from routecast.noc.answer.simulate import SimulationAnswer
from routecast.noc.case import NocCase
from routecast.report.figures import Figure
from routecast.report.noc.figures import LatencyCurve, PowerCurve, latency_figure, power_figure
from routecast.report.noc.link_map import LinkMap, MapPanel
from routecast.report.noc.simulation_tables import simulation_headline
from routecast.report.noc.tables import grid_name, power_headline

__all__ = [
    "latency_by_load",
    "optimum_map",
    "power_by_load",
    "power_curves",
    "power_map",
    "simulation_map",
]

KEEP_RIGHT = "The two links of a pair of routers run side by side, traffic keeping right."


def power_curves(answer: PowerAnswer, optimum: OptimumAnswer | None = None) -> tuple[PowerCurve, ...]:
    """Return the power of every routing and allocation over the load, NoDVFS at the highest load being 1."""
    full = answer.at_full_load
    curves = [
        PowerCurve(
            key=key,
            name=answer.of(key)[0].name,
            loads=tuple(row.load for row in answer.of(key) if row.power is not None),
            powers=tuple(row.power / full for row in answer.of(key) if row.power is not None),
        )
        for key in answer.keys
    ]
    if optimum is not None:
        curves.append(
            PowerCurve(
                key="optimum",
                name="optimum",
                loads=tuple(row.load for row in optimum.rows),
                powers=tuple(row.optimum.power / full for row in optimum.rows),
            )
        )
    return tuple(curve for curve in curves if curve.loads)


def power_by_load(answer: PowerAnswer, optimum: OptimumAnswer | None = None) -> Figure:
    """Return power against load of everything that was asked."""
    return power_figure(
        power_curves(answer, optimum),
        title=f"Power against load: {answer.case.name}",
        caption=power_headline(answer)[-1],
    )


def power_map(answer: PowerAnswer, load: float, *, only: tuple[str, ...] = ()) -> LinkMap:
    """Return the link loads of the routings at a load, or the planes of the allocations where there are several."""
    rows = [row for row in answer.at(load) if row.key in only] if only else []
    if not rows:
        rows = [row for row in answer.at(load) if row.key != "no_dvfs"]
        allocations = [row for row in rows if row.is_allocation]
        rows = allocations or rows
    panels = tuple(
        MapPanel(
            title=row.name + (f", plane {number + 1}" if row.is_allocation else ""),
            loads=tuple(float(one) for one in loads),
            note=f"largest {max(loads, default=0.0):.3f}"
            + (f", alpha {row.alphas[number]:.3f}" if row.alphas else ", over capacity"),
        )
        for row in rows
        for number, loads in enumerate(row.link_loads)
    )
    planes = len(rows[0].planes) if rows and rows[0].is_allocation else None
    return _map(answer.case, panels, load, across=planes)


def optimum_map(answer: OptimumAnswer, row: OptimumRow) -> LinkMap:
    """Return the link loads of the optimum at a load, beside those of XY on one plane."""
    xy = next((one for one in answer.power.at(row.load) if one.key == "xy"), None)
    panels = [
        MapPanel(
            title="optimum" + (f", plane {number + 1}" if answer.case.has_planes else ""),
            loads=tuple(float(one) for one in row.relative_loads(number)),
            note=f"alpha {plane.alpha:.3f}, power {plane.power:.4g}",
        )
        for number, plane in enumerate(row.optimum.planes)
    ]
    if xy is not None and not answer.case.has_planes:
        panels.append(
            MapPanel(
                title="XY",
                loads=tuple(float(one) for one in xy.link_loads[0]),
                note=f"alpha {xy.alphas[0]:.3f}, power {xy.power:.4g}" if xy.alphas else "over capacity",
            )
        )
    return _map(answer.case, tuple(panels), row.load, name="optimum_map")


def latency_by_load(answer: SimulationAnswer) -> Figure:
    """Return latency against load of every simulated routing; of a single one its 99th percentile too."""
    curves = []
    for key in answer.keys:
        bounded = [
            (row, row.simulated.packet_latency_cycles)
            for row in answer.of(key)
            if not row.simulated.is_saturated and row.simulated.packet_latency_cycles is not None
        ]
        name = answer.of(key)[0].name
        curves.append(
            LatencyCurve(
                key=key,
                name=f"{name}, mean",
                loads=tuple(row.load for row, _ in bounded),
                cycles=tuple(mean.value for _, mean in bounded),
                low=tuple(mean.low for _, mean in bounded),
                high=tuple(mean.high for _, mean in bounded),
                saturated_from=answer.saturated_from(key),
            )
        )
        tails = [
            (row.load, found.p99_cycles.value)
            for row, _ in bounded
            if (found := row.simulated.packet_percentiles) is not None
        ]
        if len(answer.keys) == 1 and tails:
            curves.append(
                LatencyCurve(
                    key="p99",
                    name=f"{name}, 99th percentile",
                    loads=tuple(load for load, _ in tails),
                    cycles=tuple(cycles for _, cycles in tails),
                    is_dashed=True,
                )
            )
    unit = "flits per node and cycle" if answer.case.normalised_by == "none" else "normalised"
    return latency_figure(
        curves,
        title=f"Latency against load: {answer.case.name}",
        caption=" ".join(simulation_headline(answer)[1:]),
        x_title=f"load ({unit})",
    )


def simulation_map(answer: SimulationAnswer) -> LinkMap:
    """Return how busy every link was in its own cycles at the highest simulated load."""
    load = max(row.load for row in answer.rows)
    panels = tuple(
        MapPanel(
            title=row.name + (f", plane {number + 1}" if len(row.simulated.planes) > 1 else ""),
            loads=tuple(float(one) for one in plane.busy_ratios),
            note=f"alpha {plane.alpha:.3f}" + (", saturated" if plane.is_saturated else ""),
        )
        for row in answer.rows
        if row.load == load
        for number, plane in enumerate(row.simulated.planes)
    )
    return _map(answer.case, panels, load, name="simulation_map")


def _map(
    case: NocCase,
    panels: tuple[MapPanel, ...],
    load: float,
    *,
    name: str = "links",
    across: int | None = None,
) -> LinkMap:
    return LinkMap(
        name=name,
        title=f"Load of the links at load {load:g}: {case.name}",
        caption=f"{grid_name(case)[:1].upper()}{grid_name(case)[1:]}. {KEEP_RIGHT}",
        topology=case.topology,
        panels=panels,
        across=across,
    )
