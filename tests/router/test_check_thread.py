"""Threads that contradict themselves are refused; sound ones go from files to models."""

from __future__ import annotations

from dataclasses import replace

import pytest

from routecast.errors import ModelProblem
from routecast.router import Activation, Need, Policy, Port, RandomTime, ResourcePool, Route, RouterModel, TaskUnit
from routecast.router.files import parse_router

THREAD = Activation(kind="thread")
RX = TaskUnit(
    name="rx", needs=(Need(pool="cpu"),), activation=THREAD, thread="vhost", holds_back=True, route=Route(to=("tx",))
)
TX = replace(RX, name="tx", route=Route(to=("p",)))
LINUX = ResourcePool(name="cpu", units=2, policy=Policy(kind="linux", quantum_s=3e-3))
PORT = Port(name="p", link_bps=1e9, entry="rx")


def model(rx=RX, tx=TX, pool=LINUX):
    return RouterModel(name="r", ports=(PORT,), tasks=(rx, tx), pools=(pool,))


def faults(*, rx=None, tx=None, pool=None):
    changed = (replace(RX, **(rx or {})), replace(TX, **(tx or {})), replace(LINUX, **(pool or {})))
    with pytest.raises(ModelProblem) as caught:
        model(*changed)
    return {problem.place: problem.message for problem in caught.value.problems}


def test_a_sound_thread_is_accepted_and_may_spin():
    assert model().task("rx").thread == "vhost"
    poll = {"activation": Activation(kind="polling"), "batch_frames": 32}
    # Both poll on one thread: it holds one of two units, and a second thread the other.
    alone = replace(RX, **poll), replace(TX, **poll)
    assert model(*alone, replace(LINUX, units=1, policy=Policy())).pools[0].units == 1
    assert model(*alone, replace(LINUX, units=1)).pools[0].policy.kind == "linux"


@pytest.mark.parametrize(
    ("change", "place", "says"),
    [
        ({"priority": 1}, "task[1].priority", 'both are thread "vhost"'),
        ({"weight": 2.0}, "task[1].weight", "differs"),
        ({"pin": (0,)}, "task[1].pin", "differs"),
        ({"needs": (Need(pool="cpu", units=2),)}, "task[1].needs", "differs"),
        ({"activation": Activation(kind="polling")}, "task[1].activation.kind", "differs"),
        ({"activation": Activation(kind="interrupt")}, "task[1].activation.kind", "thread or polling"),
        ({"thread": "", "activation": Activation()}, "task[1].activation.kind", "wait for room"),
        ({"parallel": 2}, "task[1].parallel", "one frame at a time"),
        ({"request": "frame"}, "task[1].request", "requests its units itself"),
        ({"batch_frames": 2}, "task[1].batch_frames", "budget_frames"),
        ({"route": Route()}, "task[1].holds_back", "always room"),
        (
            {"route": Route(kind="round_robin", to=("p", "p"))},
            "task[1].route.kind",
            "must know where the next frame goes",
        ),
    ],
)
def test_a_thread_that_contradicts_itself_is_refused(change, place, says):
    assert says in faults(tx=change)[place]


def test_linux_needs_a_quantum_and_knows_no_priority_below_fair():
    assert "time slice" in faults(pool={"policy": Policy(kind="linux")})["pool[0].policy.quantum_s"]
    below = {"priority": -1}
    assert "fair share" in faults(rx=below, tx=below)["task[0].priority"]
    fifo = Policy(wakeup_granularity_s=1e-3)
    assert "only linux" in faults(pool={"policy": fifo})["pool[0].policy.wakeup_granularity_s"]


def test_only_those_that_sleep_can_be_woken_late():

    late = Activation(kind="thread", wakeup=RandomTime(mean_s=3e-6))
    assert model(replace(RX, activation=late)).task("rx").activation.wakeup is not None
    spin = {"activation": Activation(kind="polling", wakeup=RandomTime(mean_s=3e-6))}
    assert "only interrupt or thread does" in faults(rx=spin, tx=spin)["task[0].activation.wakeup"]


def test_files_say_all_that_models_do():
    text = """
    [[port]]
    name = "p"
    link = "1 Gbit/s"
    entry = "rx"

    [[pool]]
    name = "cpu"
    units = 2
    policy = { kind = "linux", quantum = "3 ms", wakeup_granularity = "1 ms" }

    [[task]]
    name = "rx"
    needs = [{ pool = "cpu" }]
    activation = { kind = "thread", budget = "32 frames", interrupt_cost = "2 us", wakeup = { mean = "5 us" } }
    thread = "vhost"
    holds_back = true
    route = { to = ["p"] }
    """
    router, _ = parse_router(text)
    assert router.pool("cpu").policy == Policy(kind="linux", quantum_s=3e-3, wakeup_granularity_s=1e-3)
    task = router.task("rx")
    assert (task.thread, task.holds_back, task.activation.kind) == ("vhost", True, "thread")
    assert task.activation.interrupt_cost_s == pytest.approx(2e-6)
    assert task.activation.wakeup is not None
    assert task.activation.wakeup.mean_s == pytest.approx(5e-6)
