"""Linux on the machine itself: what the XDP paper measured on one to six cores, and what a namespace adds."""

from __future__ import annotations

import csv
from importlib.resources import files

import pytest

from routecast.evaluate import lossless_pps
from routecast.load import FlowSet, FrameMix, OfferedLoad
from routecast.virtual import Machine, Server, virtual_router
from routecast.virtual.catalogue import technology

# Flows that 1 to 6 cores share evenly.
LOAD = OfferedLoad(rate_pps=1e6, frames=FrameMix.fixed(64), flows=FlowSet.crafted(60))


def forwarded(name: str, cores: int) -> float:
    server = Server(name="host", cores=6, technology=technology(name))
    machine = Machine(name="router", server="host", vcpus=cores, vcpu_cores=tuple((core,) for core in range(cores)))
    return lossless_pps(virtual_router(server, machine, link_bps=100e9), LOAD)


def measured() -> dict[int, float]:
    text = (files("routecast") / "data" / "measured" / "xdp2018.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    series = "linux_xdp_forward/linux_single_route"
    return {int(row["cores"]): float(row["throughput_pps"]) for row in rows if row["series"] == series}


def test_linux_forwards_what_was_measured_on_one_to_six_cores() -> None:
    paper = measured()
    assert set(paper) == {1, 2, 3, 4, 5, 6}
    for cores, rate_pps in paper.items():
        assert forwarded("physical-linux", cores) == pytest.approx(rate_pps, rel=1e-3)


def test_a_namespace_adds_two_crossings_of_veth() -> None:
    item = technology("container")
    crossings_s = item.receive.mean_s(64) + item.send.mean_s(64)
    assert 1 / forwarded("container", 1) - 1 / forwarded("physical-linux", 1) == pytest.approx(crossings_s)
