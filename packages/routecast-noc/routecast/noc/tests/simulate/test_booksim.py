"""Routecast's routers against BookSim2, the reference simulator of the field.

``booksim_uniform.csv`` holds the curves; its header names the commit and the configuration, which is that of
:meth:`RouterDesign.booksim` on a mesh of 8 x 8 with X first and traffic to all nodes, the sender included.
"""

from __future__ import annotations

import csv
from functools import lru_cache
from pathlib import Path
from statistics import fmean

import pytest

from routecast.noc.patterns import uniform
from routecast.noc.routing.policies import routes
from routecast.noc.simulate import (
    Fabric,
    Packets,
    RouterDesign,
    SimulationPhases,
    overload_throughput,
    saturation,
    single,
    sweep,
)
from routecast.noc.topology import Topology, TopologyKind

CURVES = Path(__file__).with_name("booksim_uniform.csv")
PACKETS = {"8": Packets(flits=(8,)), "5-10": Packets.between(5, 10)}
CASES = pytest.mark.parametrize(("size", "channels"), [("8", 1), ("8", 4), ("5-10", 1), ("5-10", 4)])


@lru_cache
def rows() -> tuple[dict[str, str], ...]:
    lines = CURVES.read_text(encoding="utf-8").splitlines()
    return tuple(csv.DictReader(line for line in lines if not line.startswith("#")))


def rows_of(size: str, channels: int, mode: str) -> list[dict[str, str]]:
    return [
        row
        for row in rows()
        if (row["packet_size"], row["vcs"], row["mode"], row["unstable"]) == (size, str(channels), mode, "0")
    ]


def saturation_of(size: str, channels: int) -> float:
    """Return what BookSim2 accepts of offered loads far over saturation."""
    return fmean(float(row["accepted_flits_node_cycle"]) for row in rows_of(size, channels, "throughput"))


def fabric(size: str, channels: int) -> Fabric:
    """Return the reference network in which every node sends 1 flit in a cycle."""
    topology = Topology(kind=TopologyKind.MESH, columns=8, rows=8)
    return single(
        topology,
        uniform(topology, to_itself=True),
        routes("xy", topology),
        design=RouterDesign.booksim(channels),
        packets=PACKETS[size],
    )


@CASES
@pytest.mark.slow
def test_mean_latencies_are_within_5_percent_of_booksim_below_80_percent_of_saturation(
    size: str, channels: int
) -> None:
    below = [
        row
        for row in rows_of(size, channels, "latency")
        if float(row["offered_flits_node_cycle"]) <= 0.8 * saturation_of(size, channels)
    ]
    # The lowest and the three highest loads: between them the curve is flat.
    chosen = [below[0], *below[-3:]]
    run = SimulationPhases(replications=3, warmup_cycles=3_000, measure_cycles=12_000)
    loads = [float(row["offered_flits_node_cycle"]) for row in chosen]
    for row, ours in zip(chosen, sweep(fabric(size, channels), loads, run), strict=True):
        assert not ours.is_saturated
        assert ours.packet_latency_cycles is not None
        assert ours.network_latency_cycles is not None
        assert ours.flit_latency_cycles is not None
        assert ours.packet_latency_cycles.value == pytest.approx(float(row["plat"]), rel=0.05)
        assert ours.network_latency_cycles.value == pytest.approx(float(row["nlat"]), rel=0.05)
        assert ours.flit_latency_cycles.value == pytest.approx(float(row["flat"]), rel=0.05)
        assert ours.planes[0].mean_routers.value == pytest.approx(float(row["hops"]), rel=0.02)


@CASES
def test_saturation_throughput_is_within_5_percent_of_booksim(size: str, channels: int) -> None:
    run = SimulationPhases(replications=2, warmup_cycles=4_000, measure_cycles=5_000)
    ours = overload_throughput(fabric(size, channels), run)
    assert ours.value == pytest.approx(saturation_of(size, channels), rel=0.05)


@pytest.mark.slow
def test_the_saturation_that_bisection_finds_is_where_booksim_turns_unstable() -> None:
    loads = [float(row["offered_flits_node_cycle"]) for row in rows_of("8", 1, "latency")]
    aborted = min(
        float(row["offered_flits_node_cycle"])
        for row in rows()
        if (row["packet_size"], row["vcs"], row["unstable"]) == ("8", "1", "1")
    )
    result = saturation(
        fabric("8", 1), SimulationPhases(replications=2, warmup_cycles=3_000, measure_cycles=6_000), tolerance=0.05
    )
    assert 0.95 * max(loads) < result.flits_node_cycle < aborted
