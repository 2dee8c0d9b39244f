"""The ways of frames through a multistage router: which threads, links and hubs see them how often."""

import re
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.load.flows import Flow, FlowSet
from routecast.virtual import Machine, Server
from routecast.virtual.catalogue import technologies, technology
from routecast.virtual.multistage import Interconnect, multistage_router
from routecast.virtual.tests.multistage.li2012_scenarios import FIGURE_3_12, figure_3_14, figure_4_5, table_3_2


def machines(kind, where):
    return [Machine(name=f"{kind} {n}", server=f"server {at}") for n, at in enumerate(where, 1)]


def servers(kind, *numbers, cores=4):
    return [Server(name=f"server {number}", cores=cores, technology=kind) for number in numbers]


def threads(model):
    return {task.thread for task in model.tasks if task.thread}


def test_one_balancer_and_one_router_under_kvm_are_five_threads(kvm):
    """Li 2012, sec. 4.5.3: a vcpu and two vhost-net threads of the LB, a vcpu and a vhost-net thread of the BR."""
    for scenario in figure_4_5(kvm).values():
        assert len(threads(scenario.model())) == 5


@pytest.mark.parametrize(("balancers", "routers"), [(1, 1), (2, 2), (1, 5), (3, 2)])
def test_each_balancer_adds_three_threads_and_each_router_two(kvm, balancers, routers):
    model = multistage_router(
        servers(kvm, 1), machines("lb", [1] * balancers), machines("br", [1] * routers), ports_per_balancer=3
    )
    assert len(threads(model)) == 3 * balancers + 2 * routers
    assert len(model.ports) == 3 * balancers


def test_a_machine_with_one_backend_thread_has_two_threads(kvm):
    model = multistage_router(
        servers(replace(kvm, backend_threads="machine"), 1), machines("lb", [1]), machines("br", [1])
    )
    assert len(threads(model)) == 4


@pytest.mark.parametrize("name", technologies())
@pytest.mark.parametrize("joined", ["cable", "switch"])
@pytest.mark.parametrize("balancing", ["round_robin", "flow_hash", "local"])
def test_each_frame_is_balanced_forwarded_and_returned_once_on_every_technology(name, joined, balancing, passing):
    model = multistage_router(
        servers(technology(name), 1, 2),
        machines("lb", [1, 2]),
        machines("br", [1, 1, 2]),
        interconnect=Interconnect(joined=joined, switch_bps=1e9 if joined == "switch" else None),
        balancing=balancing,
        ports_per_balancer=2,
    )
    for number in range(16):
        flow = Flow(rss_hash=number * 37 % 128, ingress=number % 4, egress=number // 4)
        seen = passing.passes(model, flow)
        by_stage = Counter()
        for item, times in seen.items():
            by_stage[item.split()[-1]] += times
        assert by_stage["balance"] == by_stage["return"] == pytest.approx(1.0)
        assert by_stage["forward"] == pytest.approx(1.0)
        assert seen[f"lb {flow.ingress // 2 + 1} balance"] == 1.0
        assert seen[f"lb {flow.egress // 2 + 1} return"] == pytest.approx(1.0)
        assert seen[f"port {flow.egress}"] == pytest.approx(1.0)


def test_a_frame_visits_each_vhost_thread_of_its_balancer_twice_and_its_vcpu_thread_too(kvm, passing):
    model = multistage_router(servers(kvm, 1), machines("lb", [1]), machines("br", [1]), ports_per_balancer=2)
    assert passing.per_thread(model, Flow(rss_hash=0, ingress=0, egress=1)) == {
        "lb 1 backend 0": 2.0,  # in from the wire, out to the wire
        "lb 1 vcpu 0": 2.0,  # balance, return
        "lb 1 backend 1": 2.0,  # to the router, back from it
        "br 1 backend 0": 2.0,
        "br 1 vcpu 0": 1.0,
    }


def test_round_robin_gives_each_router_an_equal_part(kvm, passing):
    model = multistage_router(servers(kvm, 1, 2), machines("lb", [1]), machines("br", [1, 2, 2]))
    seen = passing.passes(model, Flow(rss_hash=5, ingress=0, egress=0))
    assert [seen[f"br {n} forward"] for n in (1, 2, 3)] == pytest.approx([1 / 3] * 3)


def test_by_flow_hash_all_frames_of_a_flow_see_one_router_and_many_flows_all(kvm, passing):
    model = multistage_router(servers(kvm, 1), machines("lb", [1, 1]), machines("br", [1, 1, 1]), balancing="flow_hash")
    used = Counter()
    for flow in FlowSet.random(600, seed=3, ports=2).flows:
        seen = passing.passes(model, flow)
        mine = [n for n in (1, 2, 3) if seen[f"br {n} forward"]]
        assert [seen[f"br {n} forward"] for n in mine] == [1.0]
        used[mine[0]] += 1
    assert min(used.values()) > 600 / 3 * 0.8


def test_local_balancers_keep_to_their_own_server_at_the_cost_of_their_simpler_work(kvm, passing):
    model = multistage_router(servers(kvm, 1, 2), machines("lb", [1, 2]), machines("br", [1, 2]), balancing="local")
    seen = passing.passes(model, Flow(rss_hash=0, ingress=1, egress=1))
    assert seen["br 2 forward"] == 1.0
    assert seen["br 1 forward"] == 0.0
    assert not [
        pool for pool in passing.per_pool(model, Flow(rss_hash=0, ingress=1, egress=1)) if " to " in pool and seen[pool]
    ]
    assert model.task("lb 1 balance").service.per_packet_s == pytest.approx(8e-9)


def test_links_between_servers_carry_what_a_count_by_hand_of_table_3_2_gives(kvm, passing):
    """Frames over each link for one frame into each port of a router of two ports, both leaving by the other.

    Round robin sends half of each balancer's frames to each router, and each router sends them to the other balancer.
    B: half of lb 1's frames go over to br 2, and the half that br 1 has goes over to lb 2. C: everything goes over and
    comes back. D.1: lb 2's frames come over and lb 1's leave by it. D.2: half of all goes over to br 2 and back.
    """
    there, back = "server 1 to server 2", "server 2 to server 1"
    by_hand = {
        "A.1": {},
        "A.2": {},
        "B.1": {there: 1.0, back: 1.0},
        "B.2": {there: 1.0, back: 1.0},
        "C.1": {there: 2.0, back: 2.0},
        "C.2": {f"{way} link {n}": 1.0 for way in (there, back) for n in (0, 1)},
        "D.1": {there: 1.0, back: 1.0},
        "D.2": {there: 1.0, back: 1.0},
    }
    for name, scenario in table_3_2(kvm).items():
        model = scenario.model()
        carried = Counter()
        for port in range(scenario.ports):
            flow = Flow(rss_hash=port, ingress=port, egress=(port + 1) % scenario.ports)
            for pool, times in passing.per_pool(model, flow).items():
                if pool not in {"server 1", "server 2"}:
                    carried[pool] += times
        assert {pool: times for pool, times in carried.items() if times} == pytest.approx(by_hand[name]), name


def test_a_frame_holds_a_link_for_its_length_and_that_of_its_tag(kvm):
    """S1: 20 bytes besides the frame; IEEE 802.1Q: 4 bytes more."""
    for kind, extra in (("switch", 20), ("hub", 20), ("vlan", 24)):
        model = multistage_router(
            servers(kvm, 1, 2),
            machines("lb", [1]),
            machines("br", [2]),
            interconnect=Interconnect(kind=kind, link_bps=1e9),
        )
        wire = model.task("server 1 to server 2 (lb 1 to br 1)").service
        assert wire.mean_s(64) == pytest.approx(8 * (64 + extra) / 1e9)


def test_a_hub_for_all_gives_each_frame_to_all_elements_but_its_sender(kvm, passing):
    """Li 2012, sec. 3.2: "broadcasting the packets to every port except the receiving one"."""
    for balancers, routers in ((1, 1), (1, 2), (2, 3)):
        model = multistage_router(
            servers(kvm, 1),
            machines("lb", [1] * balancers),
            machines("br", [1] * routers),
            interconnect=Interconnect(kind="shared_hub"),
        )
        got = passing.copies(model, Flow(rss_hash=0, ingress=0, egress=0))
        backends = sum(times for name, times in got.items() if " receive " in name)
        guests = sum(times for name, times in got.items() if name.endswith(" filter"))
        others = balancers + routers - 1
        # The frame crosses the hub twice, and one of the others is whom it is for.
        assert backends == guests == pytest.approx(2 * (others - 1))


def test_copies_stop_at_the_backend_that_filters_and_cross_cables_but_not_a_physical_switch(kvm, passing):
    elements = (machines("lb", [1]), machines("br", [1, 2]))
    flow = Flow(rss_hash=0, ingress=0, egress=0)

    def flooded(**kinds):
        model = multistage_router(servers(kvm, 1, 2), *elements, interconnect=Interconnect(kind="shared_hub", **kinds))
        return passing.copies(model, flow)

    cable, switch = flooded(filtered_by="backend"), flooded(joined="switch", filtered_by="guest")
    assert not [name for name in cable if name.endswith(" filter")]
    # Half of the frames go to br 1 beside the balancer: on the way there and back they flood the cable to br 2.
    assert cable["server 1 to server 2 (copies)"] == cable["server 1 to server 2 copies softirq"] == 1.0
    # br 1 hears the other half, as lb 1 sends it to br 2 and gets it back.
    assert cable["br 2 receive 0"] == cable["br 1 receive 0"] == 1.0
    assert switch["server 1 to switch (copies)"] == 1.0
    assert switch["br 2 receive 0"] == 0.0
    assert switch["br 1 filter"] == 1.0


def test_the_ways_out_of_an_interface_share_its_ring(kvm):
    model = multistage_router(servers(kvm, 1), machines("lb", [1, 1]), machines("br", [1] * 5))
    rings = [task.queue_frames for task in model.tasks if task.name.startswith("lb 1 send 1")]
    assert len(rings) == 5
    assert kvm.guest_ring_frames - 5 < sum(rings) <= kvm.guest_ring_frames


def test_elements_may_be_physical_and_virtual_and_servers_of_several_speeds(kvm, physical, passing):
    model = multistage_router(
        [
            Server(name="server 1", cores=2, technology=physical),
            Server(name="server 2", cores=4, technology=kvm, speed_ratio=0.5),
        ],
        machines("lb", [1]),
        machines("br", [1, 2]),
    )
    assert threads(model) == {"br 2 backend 0", "br 2 vcpu 0"}
    assert model.pool("server 2").unit_speed_ratio == (0.5,) * 4
    assert model.ports[0].entry == "lb 1 balance"
    seen = passing.passes(model, Flow(rss_hash=0, ingress=0, egress=0))
    assert seen["server 1 to server 2 (lb 1 to br 2)"] == seen["br 2 receive 0"] == 0.5
    assert seen["br 1 forward"] == seen["br 2 forward"] == 0.5


def test_affinities_of_li_2012_pin_all_threads_of_a_machine_to_its_cores(kvm):
    """Fig. 3.12: nine configurations on two cores."""
    assert len(FIGURE_3_12) == 9
    for name, affinity in FIGURE_3_12.items():
        assert len(affinity.cores) == int(name[0])
        assert {core for machine in affinity.cores for cores in machine for core in cores} <= {0, 1}
    free = figure_3_14(kvm)["2S-2L2R-1v2p"].model()
    bound = figure_3_14(kvm)["2S-2L2R-1v1p"].model()
    assert {task.pin for task in free.tasks if task.thread} == {(0, 1)}
    for task in bound.tasks:
        if task.thread:
            assert task.pin == ((0,) if task.thread.startswith("lb") else (1,))


def test_bindings_of_fig_4_5_put_each_thread_where_li_2012_says(kvm):
    cases = figure_4_5(kvm)
    pins = {name: {task.thread: task.pin for task in cases[name].model().tasks if task.thread} for name in cases}
    assert pins["2 cores, bind A"] == {
        "lb 1 vcpu 0": (0,),
        "br 1 vcpu 0": (0,),
        "lb 1 backend 0": (1,),
        "lb 1 backend 1": (1,),
        "br 1 backend 0": (1,),
    }
    assert pins["2 cores, bind B"] == {
        "lb 1 backend 0": (0,),
        "lb 1 backend 1": (0,),
        "br 1 vcpu 0": (0,),
        "lb 1 vcpu 0": (1,),
        "br 1 backend 0": (1,),
    }
    assert set(pins["4 cores"].values()) == {()}


@given(
    balancers=st.lists(st.integers(1, 3), min_size=1, max_size=4),
    routers=st.lists(st.integers(1, 3), min_size=1, max_size=4),
    links=st.integers(1, 3),
    joined=st.sampled_from(["cable", "switch"]),
    kind=st.sampled_from(["switch", "vlan", "hub", "shared_hub"]),
)
def test_wherever_elements_are_links_carry_the_pairs_that_are_on_different_servers(
    kvm, passing, balancers, routers, links, joined, kind
):
    """Of a frame from balancer i to balancer j each router has 1/k: count the pairs that two servers separate."""
    model = multistage_router(
        servers(kvm, 1, 2, 3),
        machines("lb", balancers),
        machines("br", routers),
        interconnect=Interconnect(kind=kind, joined=joined, links=links),
    )
    for i, first in enumerate(balancers):
        for j, second in enumerate(balancers):
            carried = Counter()
            for pool, times in passing.per_pool(model, Flow(rss_hash=0, ingress=i, egress=j)).items():
                if not pool.startswith("server") or " to " in pool:
                    carried[re.sub(r" link \d+", "", pool)] += times
            by_hand = Counter()
            for router in routers:
                for source, target in ((first, router), (router, second)):
                    if source != target and joined == "cable":
                        by_hand[f"server {source} to server {target}"] += 1 / len(routers)
                    elif source != target:
                        by_hand[f"server {source} to switch"] += 1 / len(routers)
                        by_hand[f"switch to server {target}"] += 1 / len(routers)
            assert {pool: times for pool, times in carried.items() if times} == pytest.approx(dict(by_hand))


def test_a_card_whose_frames_are_for_several_machines_has_one_ring_and_one_rate_of_interrupts(kvm):
    moderated = replace(kvm, nic_moderation_s=60e-6)
    model = multistage_router(servers(moderated, 1, 2), machines("lb", [1]), machines("br", [2, 2, 2, 1]))
    queues = [task for task in model.tasks if task.name.startswith("server 1 to server 2 to br ")]
    assert len(queues) == 3
    assert kvm.nic_ring_frames - 3 < sum(task.queue_frames for task in queues) <= kvm.nic_ring_frames
    assert sum(1 / task.activation.moderation_s for task in queues) == pytest.approx(1 / 60e-6)
    outer = model.task("port 0 to lb 1 softirq")
    assert (outer.queue_frames, outer.activation.moderation_s) == (kvm.nic_ring_frames, 60e-6)


def test_outer_ports_take_interrupt_cores_before_links_between_servers(kvm):
    hosts = [replace(server, interrupt_cores=(2, 3, 0)) for server in servers(kvm, 1, 2)]
    model = multistage_router(hosts, machines("lb", [1]), machines("br", [2]), ports_per_balancer=2)
    cores = {task.name: task.pin for task in model.tasks if task.name.endswith(" softirq")}
    assert cores == {
        "port 0 to lb 1 softirq": (2,),
        "port 1 to lb 1 softirq": (3,),
        "server 2 to server 1 to lb 1 softirq": (0,),
        "server 1 to server 2 to br 1 softirq": (2,),
    }
