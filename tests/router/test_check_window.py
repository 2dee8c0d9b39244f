"""Windows whose frames may keep their units or wait for each other are refused; valid windows are accepted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from routecast.errors import FileProblem, ModelProblem
from routecast.evaluate.simulate import Simulate
from routecast.load import OfferedLoad
from routecast.router import (
    Activation,
    Contention,
    Need,
    Policy,
    Port,
    ResourcePool,
    Route,
    RouterModel,
    ServiceCost,
    TaskUnit,
)
from routecast.router.events import Reroute
from routecast.router.files import parse_router
from routecast.router.window import windows_of

PORT = Port(name="p", link_bps=1e9, entry="enter")
ENTER = TaskUnit(name="enter", needs=(Need(pool="threads", until="last"),), request="frame", route=Route(to=("work",)))
WORK = TaskUnit(
    name="work",
    needs=(Need(pool="engine"),),
    request="frame",
    service=ServiceCost(per_packet_s=1e-6),
    route=Route(to=("last",)),
)
LAST = replace(WORK, name="last", route=Route(to=("p",)))
THREADS = ResourcePool(name="threads", units=4)
ENGINE = ResourcePool(name="engine")


def model(*more, enter=None, work=None, last=None, threads=None, pools=()):
    return RouterModel(
        name="r",
        ports=(PORT,),
        tasks=(replace(ENTER, **(enter or {})), replace(WORK, **(work or {})), replace(LAST, **(last or {})), *more),
        pools=(replace(THREADS, **(threads or {})), ENGINE, *pools),
    )


def faults(*more, **changes):
    with pytest.raises(ModelProblem) as caught:
        model(*more, **changes)
    return {problem.place: problem.message for problem in caught.value.problems}


def test_a_sound_window_is_accepted_and_known_by_what_is_inside():
    (window,) = windows_of(model())
    assert (window.pool, window.units, window.enter, window.until) == ("threads", 1, "enter", "last")
    assert window.inside == ("work", "last")
    assert window.leak == ()


@pytest.mark.parametrize(
    ("enter", "place", "says"),
    [
        ({"needs": (Need(pool="threads", until="lst"),)}, "task[0].needs[0].until", 'did you mean "last"'),
        ({"needs": (Need(pool="threads", until="p"),)}, "task[0].needs[0].until", "is a port"),
        ({"needs": (Need(pool="threads", until="enter"),)}, "task[0].needs[0].until", "task unit itself"),
        ({"request": "task"}, "task[0].request", "give frame"),
        ({"pin": (1,)}, "task[0].pin", "all alike"),
        ({"needs": (Need(pool="threads", until="last"), Need(pool="engine"))}, "task[0].needs", "must be the only one"),
        ({"needs": (Need(pool="threads", units=5, until="last"),)}, "task[0].needs[0].units", "needs 5 units"),
        ({"route": Route(kind="rss", to=("work", "p"))}, "task[0].needs[0].until", "enter → p"),
    ],
)
def test_a_window_that_cannot_be_is_refused_with_its_place(enter, place, says):
    assert says in faults(enter=enter)[place]


@pytest.mark.parametrize(
    ("threads", "place"),
    [
        ({"policy": Policy(kind="priority")}, "policy.kind"),
        ({"unit_speed_ratio": (1.0, 1.0, 1.0, 2.0)}, "unit_speed_ratio"),
        ({"switch_cost_s": 1e-6}, "switch_cost_s"),
        ({"migration_cost_s": 1e-6}, "migration_cost_s"),
        ({"contention": Contention(sigma=0.1)}, "contention"),
    ],
)
def test_units_that_are_carried_on_do_no_work_that_could_be_slowed(threads, place):
    assert 'frames of "enter" hold' in faults(threads=threads)[f"pool[0].{place}"]


def test_every_way_leads_to_the_end_of_the_window():
    fork = Route(kind="round_robin", to=("last", "p"))
    assert "enter → work → p" in faults(work={"route": fork})["task[0].needs[0].until"]
    side = replace(WORK, name="side", route=Route())
    split = {"route": Route(kind="round_robin", to=("last", "side"))}
    assert "enter → work → side" in faults(side, work=split)["task[0].needs[0].until"]


def test_the_end_of_a_window_is_further_on():
    before = replace(WORK, name="before", route=Route(to=("enter",)))
    with pytest.raises(ModelProblem, match="not downstream"):
        RouterModel(
            name="r",
            ports=(replace(PORT, entry="before"),),
            tasks=(before, replace(ENTER, needs=(Need(pool="threads", until="before"),)), WORK, LAST),
            pools=(THREADS, ENGINE),
        )


def test_a_window_shares_its_pool_only_with_windows():
    again = replace(ENTER, name="again", needs=(Need(pool="threads", until="end"),), route=Route(to=("end",)))
    end = replace(LAST, name="end")
    # One engine's threads for two blocks, one after the other.
    assert len(windows_of(model(again, end, last={"route": Route(to=("again",))}))) == 2
    greedy = {"needs": (Need(pool="threads"),)}
    assert '"work" needs them to serve' in faults(work=greedy)["pool[0]"]


def test_frames_with_units_in_hand_do_not_wait_for_the_same_pool_again():
    inner = replace(ENTER, name="work", needs=(Need(pool="threads", until="last"),), route=Route(to=("last",)))
    with pytest.raises(ModelProblem, match="wait forever"):
        RouterModel(
            name="r",
            ports=(PORT,),
            tasks=(replace(ENTER, route=Route(to=("work",))), inner, LAST),
            pools=(THREADS, ENGINE),
        )


def nested(first: str, second: str, tail: tuple[TaskUnit, ...] = (), onward: str = "p"):
    return (
        TaskUnit(
            name=f"{first}1",
            needs=(Need(pool=first, until=f"{first}{second}"),),
            request="frame",
            route=Route(to=(f"{second}2",)),
        ),
        TaskUnit(
            name=f"{second}2",
            needs=(Need(pool=second, until=f"{first}{second}"),),
            request="frame",
            route=Route(to=(f"{first}{second}",)),
        ),
        TaskUnit(name=f"{first}{second}", route=Route(to=(onward,))),
        *tail,
    )


def test_windows_within_windows_ask_in_one_order():
    pools = (ResourcePool(name="a", units=2), ResourcePool(name="b", units=2))
    item = nested("a", "b")
    router = RouterModel(name="r", ports=(replace(PORT, entry="a1"),), tasks=item, pools=pools)
    assert {window.enter: window.inside for window in windows_of(router)} == {"a1": ("b2", "ab"), "b2": ("ab",)}
    both = nested("a", "b", nested("b", "a"), onward="b1")
    with pytest.raises(ModelProblem) as caught:
        RouterModel(name="r", ports=(replace(PORT, entry="a1"),), tasks=both, pools=pools)
    (problem,) = caught.value.problems
    assert 'frames that hold units of "a" wait at "b2" for units of "b"' in problem.message
    assert 'frames that hold units of "b" wait at "a2" for units of "a"' in problem.message


def test_holding_back_with_units_in_hand_waits_for_what_the_next_queue_waits_for():
    thread = {"activation": Activation(kind="thread"), "request": "task", "holds_back": True}
    again = replace(ENTER, name="again", needs=(Need(pool="threads", until="end"),), route=Route(to=("end",)))
    problems = faults(again, replace(LAST, name="end"), last={"route": Route(to=("again",)), **thread})
    assert 'wait at "again" for units of "threads"' in problems["task[0].needs[0].until"]


def test_no_copies_go_where_frames_take_units_along():
    first = TaskUnit(name="hub", route=Route(to=("work",), copies=("enter",)))
    with pytest.raises(ModelProblem) as caught:
        RouterModel(
            name="r",
            ports=(replace(PORT, entry="hub"), replace(PORT, name="q")),
            tasks=(first, ENTER, WORK, LAST),
            pools=(THREADS, ENGINE),
        )
    assert [problem.place for problem in caught.value.problems] == ["task[0].route.copies[0]"]


def test_no_route_of_a_trial_leads_out_of_a_window():
    astray = Reroute(task="work", at_s=1e-3, route=Route(to=("p",)))
    with pytest.raises(ModelProblem, match="enter → work → p"):
        Simulate(model(), events=(astray,)).trial(OfferedLoad(rate_pps=1e5), 1e-2)


FILE = """
[[port]]
name = "p"
link = "1 Gbit/s"
entry = "enter"
[[pool]]
name = "threads"
units = 8
[[pool]]
name = "engine"
[[task]]
name = "enter"
needs = [{ pool = "threads", until = "last" }]
request = "frame"
route = { to = ["last"] }
[[task]]
name = "last"
needs = [{ pool = "engine" }]
service = { per_packet = "1 us" }
route = { to = ["p"] }
"""


def test_a_file_says_how_far_frames_carry_their_units():
    router, _ = parse_router(FILE)
    assert router.task("enter").needs == (Need(pool="threads", until="last"),)
    assert router.task("last").needs == (Need(pool="engine"),)
    with pytest.raises(FileProblem, match='did you mean "last"'):
        parse_router(FILE.replace('until = "last"', 'until = "lats"'))
