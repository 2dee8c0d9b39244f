"""What ``simulate`` is told of failures: elements, times, and what cannot be."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from in_process import completed

import routecast
from routecast.cli.simulate import FailureOptions
from routecast.errors import ModelProblem, QuantityProblem
from routecast.router.events import Event, Outage, Reroute
from routecast.router.files import read_router
from routecast.virtual.failure_options import absences_of
from routecast.virtual.multistage.failures import TAKEOVER_S, events_of, failed, tasks_of, with_takeovers

ROUTER = Path(routecast.__file__).parents[3] / "examples" / "multistage.router.toml"


def failure_events(
    duration_s: float = 1.0,
    *,
    fail: tuple[str, ...] = (),
    switch_off: tuple[str, ...] = (),
    at: tuple[str, ...] = (),
    until: tuple[str, ...] = (),
    detect: str | None = None,
    drain: str = "10 ms",
    replaced: tuple[str, ...] = (),
) -> tuple[Event, ...]:
    options = FailureOptions(
        fail=list(fail), switch_off=list(switch_off), at=list(at), until=list(until), detect=detect, drain=drain
    )
    if not options.are_any():
        return ()
    absences = absences_of(options, duration_s, known=("lb 1", "br 1"), replaced=replaced)
    return events_of(with_takeovers(read_router(ROUTER)), absences)


def times(events: tuple[Event, ...], element: str) -> set[tuple[float, float]]:
    return {
        (event.from_s, event.until_s)
        for event in events
        if isinstance(event, Outage) and event.task.startswith(f"{element} ")
    }


def test_without_failures_there_are_no_events() -> None:
    assert failure_events() == ()


def test_one_time_holds_for_all_elements_and_several_are_taken_in_order() -> None:
    events = failure_events(fail=("br 1", "br 2"), at=("200 ms",), until=("0.5 s",), detect="10 ms")
    assert times(events, "br 1") == times(events, "br 2") == {(0.2, 0.5)}
    events = failure_events(
        fail=("br 1",), switch_off=("br 2",), at=("100 ms", "600 ms"), until=("0.5 s", "never"), detect="1 ms"
    )
    assert times(events, "br 1") == {(0.1, 0.5)}
    assert times(events, "br 2") == {(0.6 + 0.01, math.inf)}
    rerouted = sorted({item.at_s for item in events if isinstance(item, Reroute)})
    assert rerouted == pytest.approx([0.101, 0.501, 0.6])


def test_nobody_notices_a_failure_without_a_time_to_detect_it() -> None:
    events = failure_events(fail=("br 1",), at=("100 ms",))
    assert {type(event) for event in events} == {Outage}


@pytest.mark.parametrize(("detect", "at_s"), [(None, 0.1 + TAKEOVER_S), ("50 ms", 0.15)])
def test_a_balancer_is_replaced_after_the_time_of_a_takeover_or_the_stated_one(detect: str | None, at_s: float) -> None:
    events = failure_events(fail=("lb 1", "br 1"), at=("100 ms",), detect=detect, replaced=("lb 1", "lb 2"))
    takeover = [event for event in events if isinstance(event, Reroute) and event.task == "port 0 segment"]
    assert [event.at_s for event in takeover] == pytest.approx([at_s])
    assert any(isinstance(event, Reroute) and event.task == "lb 2 balance behind interrupts" for event in events) == (
        detect is not None
    )


def test_simulate_lives_on_when_one_of_two_balancers_dies() -> None:
    done = completed("simulate", ROUTER, "--duration", "500 ms", "--fail", "lb 1", "--at", "100 ms", "--json")
    trial = json.loads(done.stdout)
    # Both directions pass both load balancers: 100 kpps for 5.5 intervals of 40 ms.
    assert trial["dropped_frames"] == pytest.approx(100e3 * 0.22, abs=40)
    assert trial["offered_frames"] == sum(trial[f"{what}_frames"] for what in ("forwarded", "dropped", "in_flight"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fail": ("br 1",)}, "say when: --at TIME"),
        ({"at": ("1 ms",)}, "--at is given, but nothing fails"),
        ({"detect": "1 ms"}, "--detect is given, but nothing fails"),
        ({"fail": ("br 1",), "at": ("1 s",)}, "the trial ends at 1 s"),
        ({"fail": ("br 1",), "at": ("1 ms", "2 ms")}, "--at is given 2 times for 1 elements"),
        ({"fail": ("br 1",), "at": ("soon",)}, "soon"),
        ({"fail": ("",), "at": ("1 ms",)}, '--fail is empty: name an element; known are "lb 1", "br 1"'),
        ({"switch_off": ("br 1", " "), "at": ("1 ms",)}, "--switch-off is empty"),
        (
            {"switch_off": ("br 1",), "at": ("20 ms",), "drain": "1 h"},
            '^"br 1" drains for 1 h from 20 ms on, but the trial ends at 1 s: give a shorter --drain',
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(QuantityProblem, match=message):
        failure_events(**options)  # type: ignore[arg-type]  # each case gives some of them


def test_an_element_that_is_not_there_is_refused_with_the_nearest() -> None:
    with pytest.raises(ModelProblem, match='did you mean "br 1"'):
        failure_events(fail=("br1",), at=("1 ms",), until=("1 us",))


@pytest.mark.parametrize("nameless", ["", " "])
def test_an_element_without_a_name_is_not_the_whole_router(nameless: str) -> None:
    router = read_router(ROUTER)
    assert tasks_of(router, nameless) == ()
    with pytest.raises(ModelProblem, match='element: is empty: known are "lb 1"'):
        events_of(router, (failed(nameless, at_s=0.1, detection_s=0.1),))


def test_what_the_others_learn_after_the_end_of_the_trial_does_not_happen() -> None:
    back_later = failure_events(fail=("br 1",), at=("100 ms",), until=("5 s",), detect="10 ms")
    noticed = sorted({entry.at_s for entry in back_later if isinstance(entry, Reroute)})
    assert noticed == pytest.approx([0.11])
    never_noticed = failure_events(fail=("br 1",), at=("100 ms",), until=("200 ms",), detect="2 s")
    assert {type(item) for item in never_noticed} == {Outage}
