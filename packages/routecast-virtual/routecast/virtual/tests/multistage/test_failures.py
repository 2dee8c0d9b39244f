"""Elements that fail, come back, and are switched off by plan: what is lost, where frames go meanwhile."""

import math
from dataclasses import replace

import pytest

from routecast.errors import ModelProblem
from routecast.load.flows import Flow
from routecast.router import Route, multicore
from routecast.router.events import Outage, Reroute
from routecast.router.model import ServiceCost
from routecast.virtual import Machine, Server
from routecast.virtual.multistage import Absence, elements, events_of, failover, multistage_router, switched


@pytest.fixture(scope="module")
def model(kvm):
    return multistage_router(
        [Server(name="server 1", cores=4, technology=kvm), Server(name="server 2", cores=4, technology=kvm)],
        [Machine(name="lb 1", server="server 1"), Machine(name="lb 2", server="server 2")],
        [Machine(name=f"br {n}", server=f"server {1 + n % 2}") for n in (1, 2, 10)],
    )


@pytest.fixture(scope="module")
def parts(model, passing):
    def of(events, at_s, ingress=0):
        """Return the part of a port's frames that each router gets at an instant."""
        routes = {event.task: event.route for event in events if isinstance(event, Reroute) and event.at_s <= at_s}
        seen = passing.passes(model, Flow(rss_hash=3, ingress=ingress, egress=1), routes)
        return {n: seen[f"br {n} forward"] for n in (1, 2, 10)}

    return of


THIRDS = pytest.approx({1: 1 / 3, 2: 1 / 3, 10: 1 / 3})


def down(events):
    return {event.task for event in events if isinstance(event, Outage)}


def test_elements_are_the_machines_and_names_that_start_alike_are_two(model):
    assert set(elements(model)) == {"lb 1", "lb 2", "br 1", "br 2", "br 10"}
    assert not [task for task in down(failover(model, "br 1", at_s=1, detection_s=0.1)) if "br 10 " in task[:6]]


def test_all_threads_of_an_element_are_down_and_nothing_else(model):
    events = failover(model, "br 10", at_s=0.25, until_s=0.75, detection_s=0.01)
    threads = {task.thread: task.name for task in model.tasks if task.thread.startswith("br 10 ")}
    assert {task.name for task in model.tasks if task.thread in threads} == down(events)
    assert {(event.from_s, event.until_s) for event in events if isinstance(event, Outage)} == {(0.25, 0.75)}


def test_until_the_failure_is_detected_its_share_goes_on_to_it_then_the_others_share_it(model, parts):
    events = failover(model, "br 2", at_s=1.0, until_s=2.0, detection_s=0.25)
    for ingress in (0, 1):
        assert parts(events, 1.2, ingress) == THIRDS
        assert parts(events, 1.25, ingress) == parts(events, 2.2, ingress) == {1: 0.5, 2: 0, 10: 0.5}
        assert parts(events, 2.25, ingress) == THIRDS


def test_two_that_are_away_at_once_are_both_avoided(model, parts):
    events = events_of(
        model,
        [
            Absence(element="br 1", down_s=1.0, up_s=4.0, avoided_s=1.0, used_s=4.0),
            Absence(element="br 2", down_s=2.0, up_s=3.0, avoided_s=2.0, used_s=3.0),
        ],
    )
    assert parts(events, 2.5) == {1: 0, 2: 0, 10: 1}
    assert parts(events, 3.5) == {1: 0, 2: 0.5, 10: 0.5}
    assert parts(events, 4.0) == THIRDS


def test_when_all_routers_are_away_frames_go_on_to_them_and_are_lost(model, parts):
    away = [Absence(element=f"br {n}", down_s=1, up_s=20, avoided_s=1 + n, used_s=20) for n in (1, 2, 10)]
    events = events_of(model, away)
    assert parts(events, 3.5) == {1: 0, 2: 0, 10: 1}
    assert sum(parts(events, 11.0).values()) == pytest.approx(1.0)
    assert {event.task for event in events if isinstance(event, Reroute)} == {"lb 1 balance", "lb 2 balance"}


def test_a_balancer_that_fails_takes_its_ports_with_it_and_nobody_can_help(model):
    events = failover(model, "lb 2", at_s=0.5, detection_s=0.1)
    assert not [event for event in events if isinstance(event, Reroute)]
    assert {"lb 2 balance", "lb 2 return", "lb 2 receive 0", "lb 2 receive 1"} <= down(events)


def test_an_element_that_is_switched_off_gets_nothing_any_more_before_it_goes(model, parts):
    events = switched(model, "br 1", off_s=1.0, on_s=3.0, drain_s=0.5)
    assert parts(events, 1.0)[1] == 0
    assert {(event.from_s, event.until_s) for event in events if isinstance(event, Outage)} == {(1.5, 3.0)}
    assert parts(events, 3.0) == THIRDS
    for_good = switched(model, "br 1", off_s=1.0)
    assert {item.until_s for item in for_good if isinstance(item, Outage)} == {math.inf}
    assert parts(for_good, 1e9)[1] == 0


def test_events_are_in_order_of_time(model):
    events = failover(model, "br 2", at_s=1.0, until_s=2.0, detection_s=0.25)
    instants = [event.from_s if isinstance(event, Outage) else event.at_s for event in events]
    assert instants == sorted(instants)


def test_a_card_that_spreads_by_a_table_keeps_its_other_entries(kvm):
    router = multicore(4, ServiceCost(per_packet_s=1e-6))
    table = tuple(n * 7 % 4 for n in range(128))
    route = Route(kind="rss", to=router.tasks[0].route.to, indirection=table)
    router = replace(router, tasks=(replace(router.tasks[0], route=route), *router.tasks[1:]))
    (outage, reroute) = failover(router, "core 2", at_s=0.0, detection_s=0.0)
    assert outage.task == "core 2"
    kept = reroute.route
    assert kept.to == ("core 0", "core 1", "core 3")
    for before, after in zip(table, kept.indirection, strict=True):
        assert before == 2 or kept.to[after] == f"core {before}"
    share = [kept.indirection.count(n) for n in range(3)]
    assert sum(share) == 128
    assert min(share) >= 32


def test_faults_of_events_are_reported_all_at_once(model):
    with pytest.raises(ModelProblem) as caught:
        events_of(
            model,
            [
                Absence(element="br 3", down_s=1, up_s=2, avoided_s=1, used_s=2),
                Absence(element="br 1", down_s=2, up_s=1, avoided_s=2, used_s=1),
                Absence(element="br 2", down_s=-1, up_s=1, avoided_s=2, used_s=1),
                Absence(element="br 2", down_s=0.5, up_s=9, avoided_s=2, used_s=9),
                Absence(element="lb 1", down_s=1, up_s=3, avoided_s=1, used_s=2),
            ],
        )
    text = str(caught.value)
    assert len(caught.value.problems) == 5
    assert '"br 3" is no element of the router: did you mean "br' in text
    assert "give a later time" in text
    assert "while it is down" in text
    assert "from the start of the trial" in text
    assert "a time to detect it" in text
