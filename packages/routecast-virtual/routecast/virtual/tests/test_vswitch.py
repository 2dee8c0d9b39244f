"""vSwitches that poll: what a hop costs, and what published tables say of machines and containers behind them."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files

import pytest

pytest.importorskip("routecast._core", reason="the extension is not built")

from routecast.evaluate import lossless_pps
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve
from routecast.load import FlowSet, FrameMix, OfferedLoad
from routecast.router import Route, RouterModel, ServiceCost
from routecast.virtual import Assembly, Machine, Server, Technology, virtual_router
from routecast.virtual.catalogue import technology

FLOWS = FlowSet.crafted(128)
IMIX_594 = FrameMix.imix(594)


def load(frames: FrameMix) -> OfferedLoad:
    return OfferedLoad(rate_pps=1e6, frames=frames, flows=FLOWS)


def chain(length: int, technology: Technology, *, link_bps: float = 25e9) -> RouterModel:
    """Lay frames of port 0 through machines one after the other, and those of port 1 back."""
    server = Server(name="host", cores=length + 1, technology=technology, switch_cores=(0,))
    machines = [Machine(name=f"nf {number}", server="host", vcpu_cores=((number + 1,),)) for number in range(length)]
    assembly = Assembly((server,))
    for port, way in enumerate((machines, machines[::-1])):
        to = assembly.to_port(
            way[-1], interface=1 - port, route=Route(to=(f"port {1 - port}",)), label=f"out of {port}"
        )
        for number in reversed(range(length)):
            assert to is not None
            work = assembly.function(way[number], "forward", Route(to=(to,)), label=f"forward {port}")
            if number:
                to = assembly.to_machine(
                    way[number - 1], interface=1 - port, receiver=way[number], receiver_interface=port, to=work
                )
        entry = assembly.from_wire(way[0], interface=port, wire=f"port {port}", to=work)
        assembly.port(f"port {port}", link_bps, entry=entry)
    return assembly.model(f"chain of {length}")


def visits(model: RouterModel, port: int) -> list[float]:
    """Work of the vSwitch's core at each of its visits on the way of a frame of 64 bytes."""
    at, result = model.port(f"port {port}").entry, []
    names = {task.name for task in model.tasks}
    while at in names:
        task = model.task(at)
        if task.thread == "host vswitch on core 0":
            result.append(task.service.mean_s(64))
        at = task.route.to[0]
    return result


@pytest.mark.parametrize("name", ["dpdk-vhost-user", "memif"])
@pytest.mark.parametrize("length", [1, 2, 5])
def test_a_hop_through_the_vswitch_costs_one_more_visit_of_its_core(name: str, length: int) -> None:
    item = technology(name)
    hop_s = sum(part.mean_s(64) for part in (item.send, item.switch, item.receive))
    shorter, longer = chain(length, item), chain(length + 1, item)
    for port in (0, 1):
        assert len(visits(shorter, port)) == length + 1
        assert len(visits(longer, port)) == length + 2
        assert sum(visits(longer, port)) - sum(visits(shorter, port)) == pytest.approx(hop_s)


def test_a_frame_between_cards_visits_the_vswitch_once_into_the_machine_and_once_out() -> None:
    item = technology("dpdk-vhost-user")
    server = Server(name="host", cores=2, technology=item, switch_cores=(0,))
    model = virtual_router(server, Machine(name="vm", server="host", vcpu_cores=((1,),)), link_bps=10e9)
    into, out = model.task("port 0 to vm").service, model.task("vm send 0").service
    assert into.mean_s(64) == pytest.approx(sum(c.mean_s(64) for c in (item.nic_receive, item.switch, item.receive)))
    assert out.mean_s(64) == pytest.approx(sum(c.mean_s(64) for c in (item.send, item.switch, item.nic_send)))


def test_two_cores_of_a_vswitch_take_an_interface_each() -> None:
    item = replace(
        technology("dpdk-vhost-user"), functions={"forward": ServiceCost()}
    )  # the machine costs nothing, so that the vSwitch limits
    machine = Machine(name="vm", server="host", vcpu_cores=((3,),))
    rates = []
    for cores in ((0,), (0, 1)):
        server = Server(name="host", cores=4, technology=item, switch_cores=cores)
        model = virtual_router(server, machine, interfaces=2, link_bps=100e9)
        rates.append(lossless_pps(model, load(FrameMix.fixed(64))))
    assert rates[1] == pytest.approx(2 * rates[0])


def test_the_bottleneck_of_a_long_chain_is_the_vswitch() -> None:
    trial = Solve(chain(6, technology("memif"))).trial(
        OfferedLoad(rate_pps=5e6, frames=FrameMix.fixed(64), flows=FLOWS), 1.0
    )
    assert trial.bottleneck is not None
    assert "vswitch on core 0" in str(trial.bottleneck)


@pytest.mark.parametrize("name", ["dpdk-vhost-user", "memif"])
def test_the_simulator_forwards_what_the_closed_form_says(name: str) -> None:
    model = chain(2, technology(name))
    limit = lossless_pps(model, load(FrameMix.fixed(64)))
    below = replace(load(FrameMix.fixed(64)), rate_pps=0.99 * limit)
    beyond = replace(below, rate_pps=1.25 * limit)
    simulate = Simulate(model, seed=1, steady_state=False)
    assert simulate.trial(below, 0.02).loss_ratio == 0.0
    # What a frame that is dropped in the chain has cost the vSwitch's core is lost, so less than the limit leaves.
    assert 0.05 < simulate.trial(beyond, 0.04).loss_ratio < 0.5


# github.com/cncf/cnf-testbed, comparison/baseline_nf_performance-csit/results/2t1c_novlan: csc_1c*n_ndr, and imix.
# Containers in the chain: no-drop rate in frames/s. Those of 1 and 4 containers calibrated the technique.
CNF_64 = {2: 3_923_688, 6: 1_525_878, 8: 1_162_574, 10: 944_590}
CNF_IMIX = {2: 2_557_562, 6: 911_130, 8: 687_344}


@pytest.mark.parametrize(("length", "measured_pps"), CNF_64.items())
def test_chains_of_containers_forward_what_was_measured(length: int, measured_pps: float) -> None:
    model = chain(length, technology("memif"))
    assert lossless_pps(model, load(FrameMix.fixed(64))) == pytest.approx(measured_pps, rel=0.02)


@pytest.mark.parametrize(("length", "measured_pps"), CNF_IMIX.items())
def test_chains_of_containers_forward_mixed_frames_as_measured(length: int, measured_pps: float) -> None:
    model = chain(length, technology("memif"))
    assert lossless_pps(model, load(IMIX_594)) == pytest.approx(measured_pps, rel=0.06)


CALIBRATED = {
    ("10ge2p1x520-eth-l2xcbase-eth-2vhost-1vm", "1", "64"),
    ("10ge2p1x520-eth-l2xcbase-eth-2vhost-1vm", "1", "1518"),
    ("10ge2p1x520-eth-l2bdbasemaclrn-eth-2vhost-1vm", "4", "64"),
}
MIXES = {"64": FrameMix.fixed(64), "1518": FrameMix.fixed(1518), "IMIX": FrameMix.imix()}


def csit_errors() -> Iterator[tuple[str, str, float, bool]]:
    """Yield cores, frames, relative error and whether the line limits, for each point that calibrated nothing.

    A suite's pass from card to card is known from its rate without a machine, 64 bytes on one core: what it takes
    beyond the technique's is switching.
    """
    text = (files("routecast") / "data" / "measured" / "csit1701.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
    plain = {
        row["series"]: float(row["throughput_pps"]) for row in rows if (row["cores"], row["frame_bytes"]) == ("1", "64")
    }
    item = technology("dpdk-vhost-user")
    machine = Machine(name="vm", server="host", vcpus=2, vcpu_cores=((2,), (3,)))
    for row in rows:
        suite = row["series"].removesuffix("-eth-2vhost-1vm")
        key = (row["series"], row["cores"], row["frame_bytes"])
        if suite == row["series"] or suite not in plain or key in CALIBRATED:
            continue
        cards_s = item.nic_receive.mean_s(64) + item.nic_send.mean_s(64)
        switching = ServiceCost(per_packet_s=1.0 / plain[suite] - cards_s)
        frames = MIXES[row["frame_bytes"]]
        server = Server(
            name="host",
            cores=4,
            technology=replace(item, switch=switching),
            switch_cores=(0,) if row["cores"] == "1" else (0, 1),  # two rings of the machine feed two cores at most
        )
        wire_bytes = frames.mean_bytes + 20
        tunnel = wire_bytes / (wire_bytes + float(row["encapsulation_bytes"]))
        link_bps = float(row["link_bps"]) * tunnel
        model = virtual_router(server, machine, interfaces=2, link_bps=link_bps)
        predicted = lossless_pps(model, load(frames))
        line_pps = 2 * link_bps / 8 / wire_bytes
        error = predicted / float(row["throughput_pps"]) - 1.0
        yield row["cores"], row["frame_bytes"], error, predicted > 0.999 * line_pps


def test_machines_behind_vpp_forward_what_csit_measured() -> None:
    errors = list(csit_errors())
    assert len(errors) == 60
    assert statistics.median(abs(error) for *_, error, _ in errors) <= 0.05
    own = [abs(error) for *_, error, line in errors if not line]
    assert len(own) == 48
    assert statistics.median(own) <= 0.08
    one_core = [abs(error) for cores, _, error, _ in errors if cores == "1"]
    assert statistics.median(one_core) <= 0.04
    assert max(abs(error) for *_, error, _ in errors) <= 0.30
