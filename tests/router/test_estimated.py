"""Routers made of estimates: closed form and simulation carry what the estimate says."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve
from routecast.function.catalogue import read_function
from routecast.function.estimate import Estimate, estimate
from routecast.hardware.catalogue import read_hardware
from routecast.hardware.model import Hardware, Nic
from routecast.load.flows import FlowSet
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad
from routecast.router.estimated import cost_by_size, estimated_router

HARDWARE = read_hardware("xeon-e5-2690v2")
CAPPED = replace(HARDWARE, nics=(Nic(name="card", ports=4, link_bps=10e9, cap_pps=5e6),))
LINKLESS = replace(HARDWARE, nics=())


def overload(estimate: Estimate, ports: int = 2) -> OfferedLoad:
    flows = FlowSet.crafted(4 * math.lcm(estimate.cores, 4), ports=ports)
    return OfferedLoad(rate_pps=1.3 * estimate.pps, frames=estimate.frames, flows=flows)


@pytest.mark.parametrize(
    ("name", "hardware", "cores", "frame_bytes", "binds"),
    [
        ("learning_switch", HARDWARE, 1, 64, "core"),
        ("learning_switch", HARDWARE, 2, 64, "core"),
        ("ipv6_router", HARDWARE, 4, 64, "memory"),
        ("bng", HARDWARE, 4, 300, "link"),
        ("bng", LINKLESS, 6, 78, "memory"),
        ("mpls_switch", CAPPED, 1, 64, "nic"),
    ],
)
def test_solve_and_simulate_carry_what_the_estimate_says(
    name: str, hardware: Hardware, cores: int, frame_bytes: int, binds: str
) -> None:
    result = estimate(read_function(name), hardware, frame_bytes=frame_bytes, cores=cores)
    assert result.bottleneck.resource == binds
    model = estimated_router(result, hardware)
    load = overload(result, ports=len(model.ports))
    solved = Solve(model=model).trial(load, 1.0)
    assert solved.forwarded_pps == pytest.approx(result.pps, rel=1e-6)
    # Queues of 512 frames fill and drain in well under a hundredth of the simulated time.
    simulated = Simulate(model, seed=1).trial(load, 600_000 / result.pps)
    assert simulated.forwarded_pps == pytest.approx(result.pps, rel=0.01)


def test_a_frame_alone_is_as_late_as_its_cycles_and_its_accesses() -> None:
    result = estimate(read_function("l2_switch"), LINKLESS)
    model = estimated_router(result, LINKLESS)
    load = OfferedLoad(rate_pps=1e4, frames=result.frames, flows=FlowSet.crafted(1, ports=2))
    trial = Simulate(model, seed=1).trial(load, 0.05)
    memory = LINKLESS.memory
    assert memory is not None
    assert trial.latency is not None
    assert trial.latency.p50_s == pytest.approx(result.packet_s + result.dram_accesses * memory.access_s, rel=0.02)


def test_a_mix_costs_a_part_per_byte_and_keeps_its_mean() -> None:
    mix = FrameMix.imix()
    function = read_function("bng")
    result = estimate(function, HARDWARE, direction="access", frame_bytes=mix)
    by_size = {
        size: estimate(function, HARDWARE, direction="access", frame_bytes=size).packet_cycles
        for size in mix.share_by_bytes
    }
    per_packet, per_byte = cost_by_size(result, by_size)
    assert per_byte == pytest.approx(7 / 2)  # the GRE checksum: 7 cycles for 2 bytes (sec. 2.2, point 5)
    assert per_packet + per_byte * mix.mean_bytes == pytest.approx(result.packet_cycles)
    solved = Solve(model=estimated_router(result, LINKLESS, by_size=by_size)).trial(overload(result), 1.0)
    assert solved.forwarded_pps == pytest.approx(result.core_pps, rel=1e-6)
