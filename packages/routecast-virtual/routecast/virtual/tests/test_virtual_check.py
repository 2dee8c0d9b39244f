"""What contradicts itself in servers and machines is told in full, with its place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from routecast.errors import ModelProblem
from routecast.router.model import ServiceCost
from routecast.virtual import Machine, Server, Technology, virtual_router
from routecast.virtual.check import machine_problems
from routecast.virtual.machines import MAX_PRIORITY
from routecast.virtual.parallel import parallel_router

COST = ServiceCost(per_packet_s=1e-6)
KVM = Technology(name="kvm", receive=COST, send=COST, functions={"forward": COST})
VSWITCH = replace(KVM, name="vswitch", backend="polling", backend_threads="server", guest="polling")
HOST = Server(name="host", cores=4, technology=KVM)
VM = Machine(name="vm", server="host")


def problems_of(servers, machines, **arguments) -> dict[str, str]:
    return dict(machine_problems(servers, machines, **arguments))


def test_valid_values_are_not_reported() -> None:
    assert not machine_problems((HOST,), (replace(VM, vcpu_cores=((0, 3),), backend_cores=((),)),))


@pytest.mark.parametrize(
    ("machine", "place", "says"),
    [
        (replace(VM, vcpu_cores=((4,),)), "machine[0].vcpu_cores[0]", 'core 4 does not exist: "host" has cores 0 to 3'),
        (replace(VM, backend_cores=((0,), (-1,))), "machine[0].backend_cores[1]", "core -1 does not exist"),
        (replace(VM, vcpu_cores=((1, 1),)), "machine[0].vcpu_cores[0]", "twice"),
        (replace(VM, vcpu_cores=((0,), (1,))), "machine[0].vcpu_cores", "2 entries for 1 vcpu"),
        (replace(VM, vcpus=0), "machine[0].vcpus", "got 0"),
        (replace(VM, vcpu_priority=100), "machine[0].vcpu_priority", "allowed is 0 to 99"),
        (replace(VM, backend_priority=-1), "machine[0].backend_priority", "got -1"),
        (replace(VM, weight=0.0), "machine[0].weight", "a finite number > 0"),
        (replace(VM, server="hots"), "machine[0].server", 'did you mean "host"'),
        (replace(VM, name=" "), "machine[0].name", "is empty"),
        (replace(VM, functions={"foward": COST}), "machine[0].functions.foward", 'did you mean "forward"'),
        (
            replace(VM, functions={"forward": ServiceCost(per_packet_cycles=100.0)}),
            "machine[0].functions.forward.per_packet_cycles",
            "servers state no frequency",
        ),
    ],
)
def test_each_fault_of_a_machine_has_its_place(machine: Machine, place: str, says: str) -> None:
    problems = problems_of((HOST,), (machine,))
    assert list(problems) == [place]
    assert says in problems[place]


@pytest.mark.parametrize(
    ("server", "place", "says"),
    [
        (replace(HOST, cores=0), "server[0].cores", "1 to 512"),
        (replace(HOST, speed_ratio=float("nan")), "server[0].speed_ratio", "allowed is 1e-06 to 1000000"),
        (replace(HOST, interrupt_cores=(0, 9)), "server[0].interrupt_cores", "core 9 does not exist"),
        (replace(HOST, switch_cores=(0,)), "server[0].switch_cores", "no vSwitch that polls"),
        (
            replace(HOST, technology=replace(KVM, smp_factor=0.5)),
            "server[0].technology.smp_factor",
            "allowed is 1 to 1000000",
        ),
        (replace(HOST, technology=replace(KVM, nic_send=COST)), "server[0].technology.nic_send", "add it to send"),
        (
            replace(HOST, technology=replace(KVM, backend="none", switch=COST)),
            "server[0].technology.switch",
            "add it to guest_driver",
        ),
        (
            replace(HOST, technology=replace(KVM, queue_frames=0)),
            "server[0].technology.queue_frames",
            "allowed is 1 to 2147483647 frames",
        ),
        (
            replace(HOST, technology=replace(KVM, send=ServiceCost(per_byte_s=-1.0))),
            "server[0].technology.send.per_byte_s",
            "allowed is 0 to 10 s/B",
        ),
    ],
)
def test_each_fault_of_a_server_has_its_place(server: Server, place: str, says: str) -> None:
    problems = problems_of((server,), (VM,))
    assert list(problems) == [place]
    assert says in problems[place]


def test_names_are_distinguished() -> None:
    assert set(problems_of((HOST, HOST), (VM, VM))) == {"server[1].name", "machine[1].name"}


def test_there_must_be_a_server_and_a_machine() -> None:
    assert set(problems_of((), ())) == {"server", "machine"}


def test_machines_must_be_able_to_do_what_they_are_for() -> None:
    problems = problems_of((HOST,), (VM,), functions={"vm": ("balance",)})
    assert problems["machine[0].functions"] == 'no cost of "balance" is given, here or in technology "kvm"'


def test_a_polling_backend_has_cores_of_the_server_and_none_of_its_own() -> None:
    host = replace(HOST, technology=VSWITCH, switch_cores=(0, 1))
    problems = problems_of((host,), (replace(VM, backend_cores=((3,),)),))
    assert "switch_cores of the server" in problems["machine[0].backend_cores"]
    assert not problems_of(
        (replace(HOST, technology=replace(KVM, backend="softirq")),), (replace(VM, backend_cores=((3,),)),)
    )
    without = replace(HOST, technology=replace(KVM, backend="none"))
    assert (
        "has no backend" in problems_of((without,), (replace(VM, backend_cores=((3,),)),))["machine[0].backend_cores"]
    )
    assert not problems_of((host,), (replace(VM, vcpu_cores=((0,),)),))  # they share the core, as under Linux


def test_a_backend_of_threads_cannot_have_one_for_the_whole_server() -> None:
    of_server = replace(HOST, technology=replace(KVM, backend="thread", backend_threads="server"))
    place = "server[0].technology.backend_threads"
    assert '"interface" or "machine"' in problems_of((of_server,), (VM,))[place]
    for threads in ("interface", "machine"):
        allowed = replace(of_server, technology=replace(of_server.technology, backend_threads=threads))
        assert not problems_of((allowed,), (VM,))


def test_all_faults_come_at_once() -> None:
    wrong = Machine(name="vm", server="host", vcpu_cores=((7,),), vcpu_priority=MAX_PRIORITY + 1, weight=-1.0)
    assert len(machine_problems((replace(HOST, interrupt_cores=(8,)),), (wrong,))) == 4
    with pytest.raises(ModelProblem) as caught:
        virtual_router(HOST, wrong, ports=0, interfaces=0)
    assert len(caught.value.problems) == 5
    with pytest.raises(ModelProblem) as caught:
        parallel_router(HOST, (VM, wrong), balancing="fair")  # type: ignore[arg-type]  # that is the fault
    assert {place for place, _ in caught.value.problems} >= {"balancing", "machine[1].name"}


def test_more_pinned_threads_than_cores_share_them() -> None:
    host = replace(HOST, cores=1)
    machines = [Machine(name=f"vm {n}", server="host", vcpu_cores=((0,),), backend_cores=((0,),)) for n in range(5)]
    model = parallel_router(host, machines)
    assert {task.thread for task in model.tasks if task.thread} == {
        *(f"vm {n} vcpu 0" for n in range(5)),
        *(f"vm {n} backend 0" for n in range(5)),
    }
    assert all(task.pin == (0,) for task in model.tasks)
