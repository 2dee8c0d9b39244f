"""What is a multistage router and what cannot be one, in code and in files: every fault at once, with its place."""

from dataclasses import replace
from pathlib import Path

import pytest

import routecast
from routecast.errors import FileProblem, ModelProblem
from routecast.router.files import build_router, parse_router, read_router, read_router_and_load
from routecast.virtual import Machine, Server
from routecast.virtual.catalogue import technology
from routecast.virtual.multistage import Control, Interconnect, multistage_router
from routecast.virtual.tests.multistage.li2012_scenarios import figure_3_14, figure_4_5, router_document, table_3_2

EXAMPLES = Path(routecast.__file__).parents[3] / "examples"


def problems(servers, balancers, routers, **kinds):
    with pytest.raises(ModelProblem) as caught:
        multistage_router(servers, balancers, routers, **kinds)
    return {problem.place: problem.message for problem in caught.value.problems}


def test_a_balancer_without_routers_is_an_error(kvm):
    server = Server(name="server 1", cores=2, technology=kvm)
    result = problems([server], [Machine(name="lb 1", server="server 1")], [])
    assert result == {"router": "there is no back-end router: a multistage router needs at least one"}


def test_a_local_balancer_without_a_router_beside_it_is_an_error_and_is_named(kvm):
    servers = [Server(name=f"server {n}", cores=2, technology=kvm) for n in (1, 2)]
    balancers = [Machine(name=f"lb {n}", server=f"server {n}") for n in (1, 2)]
    result = problems(servers, balancers, [Machine(name="br 1", server="server 1")], balancing="local")
    assert set(result) == {"balancer[1]"}
    assert '"lb 2" balances locally, but no router is on "server 2"' in result["balancer[1]"]


def test_every_fault_is_reported_at_once_and_numbered_by_stage(kvm, physical):
    servers = [
        Server(name="server 1", cores=2, technology=kvm, interrupt_cores=(2,)),
        Server(name="bare", cores=2, technology=physical, speed_ratio=0.0),
    ]
    result = problems(
        servers,
        [Machine(name="lb 1", server="server 1", vcpu_cores=((0, 5),)), Machine(name="lb 2", server="sever 1")],
        [Machine(name="lb 1", server="bare"), Machine(name="br 2", server="server 1", vcpus=0)],
        interconnect=Interconnect(kind="shared_hub", links=0, link_bps=-1.0, switch_bps=1e9, tag_s=1e-6),
        balancing="round robin",
        ports_per_balancer=0,
        link_bps=float("inf"),
        control=Control(rate_pps=0.0, message_s=1e-6),
    )
    assert set(result) == {
        "server[0].interrupt_cores",
        "server[1].speed_ratio",
        "balancer[0].vcpu_cores[0]",
        "balancer[1].server",
        "router[0].name",
        "router[1].vcpus",
        "interconnect.kind",
        "interconnect.links",
        "interconnect.link_bps",
        "interconnect.switch_bps",
        "interconnect.tag_s",
        "balancing",
        "ports_per_balancer",
        "link_bps",
        "control.rate_pps",
    }
    assert 'did you mean "server 1"?' in result["balancer[1].server"]
    assert result["router[0].name"] == '"lb 1" is already the name of balancer[0]'
    assert 'did you mean "round_robin"?' in result["balancing"]
    assert "no virtual switch that could flood" in result["interconnect.kind"]


def test_control_messages_that_would_fill_the_cores_are_an_error(kvm):
    server = Server(name="server 1", cores=2, technology=kvm)
    result = problems(
        [server],
        [Machine(name="lb 1", server="server 1")],
        [Machine(name="br 1", server="server 1")],
        control=Control(rate_pps=1e3, message_s=1e-3),
    )
    assert '1 of each core of "server 1"' in result["control.rate_pps"]


def test_a_technology_without_a_balancer_cannot_balance(kvm):
    bare = replace(kvm, functions={"forward": kvm.functions["forward"]})
    result = problems(
        [Server(name="server 1", cores=2, technology=bare)],
        [Machine(name="lb 1", server="server 1")],
        [Machine(name="br 1", server="server 1")],
    )
    assert set(result) == {"balancer[0].functions"}


def test_a_file_says_the_router_that_li_2012_measured():
    """The examples are scenario B.1 with its elements pinned, and bind case A of fig. 4.5, word for word."""
    model, load = read_router_and_load(EXAMPLES / "multistage_kvm.router.toml")
    scenario = figure_4_5(technology("kvm-vhost-2012"))["2 cores, bind A"]
    assert model.tasks == scenario.model().tasks
    assert load is not None
    assert load.rate_pps == 200e3
    example = read_router(EXAMPLES / "multistage.router.toml")
    mapped = table_3_2(technology("vmware-esxi-4.0"))["B.1"].model()
    assert [task.name for task in example.tasks] == [task.name for task in mapped.tasks]
    assert [task.route for task in example.tasks] == [task.route for task in mapped.tasks]


def test_a_file_mixes_physical_and_virtual_elements_with_control_messages():
    model = read_router(EXAMPLES / "multistage_mixed.router.toml")
    assert {task.thread for task in model.tasks if task.thread.startswith("br 1")} == {"br 1 vcpu 0", "br 1 backend 0"}
    assert not [task for task in model.tasks if task.thread.startswith("lb 1")]
    assert all(model.pool(server).interruptions for server in ("front", "server 1", "server 2"))


def test_faults_of_a_file_have_its_places():
    text = """
        builder = "multistage"
        technology = "kvm-vhost-212"
        balancing = "local"
        ports_per_balancer = 1000

        [[server]]
        name = "server 1"
        cores = 2

        [[balancer]]
        name = "lb 1"
        vcpu_cores = [[4]]

        [[balancer]]
        name = "lb 1"

        [interconnect]
        tag = "1 us"

        [control]
        rate = "10 pps"
        message = "1 s"
    """
    with pytest.raises(FileProblem) as caught:
        parse_router(text)
    result = {problem.place: problem.message for problem in caught.value.problems}
    assert result["balancer[1].name"] == '"lb 1" is already the name of balancer[0]'
    assert set(result) == {
        "technology",
        "balancer[0].vcpu_cores[0]",
        "balancer[1].name",
        "router",
        "interconnect.tag",
        "ports_per_balancer",
    }
    with pytest.raises(FileProblem) as caught:
        parse_router(text.replace("= 1000", "= 10000").replace('message = "1 s"', 'message = "0 s"'))
    assert {problem.place for problem in caught.value.problems} == {"ports_per_balancer", "control.message"}


def test_every_scenario_of_li_2012_can_be_written_as_a_file_and_read_again():
    vmware, kvm = technology("vmware-esxi-4.0"), technology("kvm-vhost-2012")
    cases = [("vmware-esxi-4.0", entry) for entry in (*table_3_2(vmware).values(), *figure_3_14(vmware).values())]
    cases += [("kvm-vhost-2012", item) for item in figure_4_5(kvm).values()]
    for name, scenario in cases:
        document = router_document(scenario, name)
        assert build_router(document, subject=f"{scenario.name}.router.toml")[0] == scenario.model()
