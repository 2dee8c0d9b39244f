"""Outcomes of the compiled simulator (``crates/noc/src/outcome.rs``) as results with intervals, in node cycles."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from routecast.noc.simulate.busiest import busiest
from routecast.noc.simulate.estimate import Estimate, estimate
from routecast.noc.simulate.fabric import Fabric, SimulatedPlane
from routecast.noc.simulate.overload import signs_of_overload
from routecast.noc.simulate.result import Latency, PlaneResult, Simulated
from routecast.noc.simulate.run import Run
from routecast.noc.simulate.scenario import packets_a_cycle, plane_packets

__all__ = ["simulated"]

Outcome = dict[str, Any]

_ROUNDING = 1e-9
_PACKET, _NETWORK, _FLIT = "packet_latency", "network_latency", "flit_latency"


def simulated(fabric: Fabric, run: Run, outcomes: Sequence[Outcome], *, load: float) -> Simulated:
    """Return the result of one load.

    Parameters
    ----------
    fabric, run
        What was simulated.
    outcomes
        As many as :func:`routecast.noc.simulate.scenario.scenario_texts` gives, in that order.
    load
        What the load is called.
    """
    count = len(fabric.planes)
    by_replication = [outcomes[first : first + count] for first in range(0, len(outcomes), count)]
    planes = tuple(
        _plane(fabric, plane, run, [row[number] for row in by_replication])
        for number, plane in enumerate(fabric.planes)
    )
    whole = not any(plane.is_saturated for plane in planes)
    nodes = fabric.topology.node_count
    # Flits of a wider plane in those of the first one.
    narrow = [fabric.packets.mean_flits / plane_packets(fabric, plane).mean_flits for plane in fabric.planes]

    def over_planes(value: Callable[[Outcome, SimulatedPlane, float], float]) -> list[float]:
        """Sum of a value over the planes, by replication; the last argument turns counts into rates of flits."""
        return [
            math.fsum(
                value(outcome, plane, factor / _node_cycles(run, plane))
                for outcome, plane, factor in zip(row, fabric.planes, narrow, strict=True)
            )
            for row in by_replication
        ]

    accepted = over_planes(lambda outcome, _, rate: sum(outcome["accepted_flits"]) * rate / nodes)
    power = over_planes(lambda outcome, plane, _: _power(outcome, plane, run))
    return Simulated(
        load=load,
        demand_flits_node_cycle=fabric.offered_flits_node_cycle,
        offered_flits_node_cycle=estimate(
            over_planes(lambda outcome, _, rate: sum(outcome["offered_flits"]) * rate / nodes)
        ),
        accepted_flits_node_cycle=estimate(accepted),
        packet_latency_cycles=_mean_over_planes(fabric, run, by_replication, _PACKET) if whole else None,
        network_latency_cycles=_mean_over_planes(fabric, run, by_replication, _NETWORK) if whole else None,
        flit_latency_cycles=_mean_over_planes(fabric, run, by_replication, _FLIT) if whole else None,
        power=estimate(power),
        energy_per_flit=estimate(
            [
                one / flits / nodes if flits > 0 else math.nan
                for one, flits in zip(power, accepted, strict=True)
            ]
        ),
        planes=planes,
        replications=run.replications,
        node_hz=fabric.node_hz,
    )


def _plane(fabric: Fabric, plane: SimulatedPlane, run: Run, outcomes: Sequence[Outcome]) -> PlaneResult:
    overload = signs_of_overload(
        outcomes,
        nodes=fabric.topology.node_count,
        packet_flits=plane_packets(fabric, plane).mean_flits,
    )
    channel = busiest(fabric, plane)
    if overload and channel.load > 1:
        overload = (f"{channel.name} is offered {channel.load:.3g} times what it carries", *overload)
    most = float(packets_a_cycle(fabric, plane).max(initial=0.0))
    if most > 1 + _ROUNDING:
        overload = (f"a node would have to make {most:.3g} packets in a cycle and makes one", *overload)
    cycles, nodes = _node_cycles(run, plane), fabric.topology.node_count
    links = np.array([outcome["link_flits"] for outcome in outcomes], dtype=np.float64) / cycles
    routers = np.array([outcome["router_flits"] for outcome in outcomes], dtype=np.float64) / cycles
    per_node = cycles * nodes

    def latency(name: str) -> Latency | None:
        return None if overload else _latency(outcomes, name, plane.alpha)

    return PlaneResult(
        alpha=plane.alpha,
        width=plane.width,
        packet_latency=latency(_PACKET),
        network_latency=latency(_NETWORK),
        flit_latency=latency(_FLIT),
        mean_routers=estimate([outcome["mean_routers"] for outcome in outcomes if outcome[_PACKET]["count"]]),
        offered_flits_node_cycle=estimate([sum(outcome["offered_flits"]) / per_node for outcome in outcomes]),
        accepted_flits_node_cycle=estimate(
            [sum(outcome["accepted_flits"]) / per_node for outcome in outcomes]
        ),
        link_loads=links.mean(axis=0),
        link_half_widths=np.array([estimate(column).half_width for column in links.T.tolist()]),
        router_loads=routers.mean(axis=0),
        power=estimate([_power(outcome, plane, run) for outcome in outcomes]),
        overload=overload,
    )


def _node_cycles(run: Run, plane: SimulatedPlane) -> float:
    """Length of the measurement in cycles of the nodes."""
    return run.measure_cycles * plane.alpha


def _power(outcome: Outcome, plane: SimulatedPlane, run: Run) -> float:
    hop_flow = sum(outcome["link_flits"]) * plane.width / _node_cycles(run, plane)
    return float(hop_flow / plane.alpha**2)


def _latency(outcomes: Sequence[Outcome], name: str, alpha: float) -> Latency | None:
    seen = [outcome[name] for outcome in outcomes if outcome[name]["count"]]
    if not seen:
        return None

    def of(part: str) -> Estimate:
        return estimate([one[part] for one in seen]).scaled(alpha)

    mean = of("mean")
    if len(outcomes) == 1 and name == _PACKET:
        mean = Estimate(value=mean.value, half_width=_batch_half_width(outcomes[0]) * alpha)
    return Latency(
        mean_cycles=mean,
        p50_cycles=of("p50"),
        p95_cycles=of("p95"),
        p99_cycles=of("p99"),
        max_cycles=max(one["max"] for one in seen) * alpha,
    )


def _batch_half_width(outcome: Outcome) -> float:
    return estimate(outcome["batch_latency"]).half_width


def _mean_over_planes(
    fabric: Fabric, run: Run, by_replication: Sequence[Sequence[Outcome]], name: str
) -> Estimate | None:
    """Mean over the packets (or flits) of all planes, each plane weighing as many as it carries in a node cycle."""
    means = []
    shares: list[float] = []
    for row in by_replication:
        rates = [
            outcome[name]["count"] / _node_cycles(run, plane)
            for outcome, plane in zip(row, fabric.planes, strict=True)
        ]
        if not any(rates):
            continue
        shares = [rate / math.fsum(rates) for rate in rates]
        means.append(
            math.fsum(
                share * outcome[name]["mean"] * plane.alpha
                for share, outcome, plane in zip(shares, row, fabric.planes, strict=True)
                if share
            )
        )
    if not means:
        return None
    mean = estimate(means)
    if len(by_replication) == 1 and name == _PACKET:
        # Planes are independent: variances of their batch means add.
        parts = [
            share * plane.alpha * _batch_half_width(outcome)
            for share, plane, outcome in zip(shares, fabric.planes, by_replication[0], strict=True)
            if share
        ]
        mean = Estimate(value=mean.value, half_width=math.hypot(*parts))
    return mean
