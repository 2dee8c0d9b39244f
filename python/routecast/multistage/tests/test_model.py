"""The simulator's model of a router of many machines: who gets which flow, what it forwards, what a death costs."""

from __future__ import annotations

import math

import pytest

from routecast.errors import ModelProblem
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.trial import Trial
from routecast.load.flows import Flow, FlowSet
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad
from routecast.multistage._model import FlowChoices, deaths_of, failures_of, model_of, takeover_of, udp_flows
from routecast.multistage.reading import MultistageFile, parse_multistage
from routecast.multistage.tests.multistage_hosts import EXAMPLE
from routecast.router.events import Event

FLOWS = 2048


def file_of(routers: int, *, cap: str = "10 kpps", more: str = "") -> MultistageFile:
    head, _, _ = EXAMPLE.partition("[[router]]")
    tables = "".join(f'[[router]]\nname = "br{n}"\ncap = "{cap}"\n' for n in range(routers))
    return parse_multistage(head + tables + more)


def trial(file: MultistageFile, flows: FlowChoices, rate_pps: float, events: tuple[Event, ...] = ()) -> Trial:
    flow_set = FlowSet(name="flows", flows=tuple(Flow(rss_hash=0, ingress=0, egress=1) for _ in flows.choices))
    load = OfferedLoad(rate_pps=rate_pps, frames=FrameMix.fixed(64), flows=flow_set)
    return Simulate(model_of(file, flows), events=events, steady_state=False).trial(load, 1.0)


def choices(file: MultistageFile) -> FlowChoices:
    return FlowChoices.of(file, udp_flows(file, FLOWS))


def test_flows_are_shared_by_weight() -> None:
    file = parse_multistage(EXAMPLE)
    flows = choices(file)
    shares = [flows.share(item.name) for item in file.router]
    assert sum(shares) == pytest.approx(1.0)
    assert shares == pytest.approx([0.25, 0.25, 0.5], abs=4 * (0.25 / FLOWS) ** 0.5)


def test_frames_in_turn_are_shared_by_weight_whatever_their_flow() -> None:
    file = parse_multistage(f'scheme = "round_robin"\n{EXAMPLE}')
    for count in (1, FLOWS):
        turns = FlowChoices.of(file, udp_flows(file, count))
        assert [turns.share(item.name) for item in file.router] == pytest.approx([0.25, 0.25, 0.5], abs=0.01)


def test_the_router_of_a_network_gets_all_its_frames_and_its_failure_is_not_known() -> None:
    local = EXAMPLE.replace('host_ipv4 = "198.18.', 'local = "br1"\nhost_ipv4 = "198.18.').replace(
        'host_ipv4 = "198.19.', 'local = "br2"\nhost_ipv4 = "198.19.'
    )
    file = parse_multistage(f'scheme = "local_only"\n{local}')
    flows = choices(file)
    assert [flows.share(item.name) for item in file.router] == [0.0, 1.0, 0.0]
    assert set(flows.chosen(["br1"])) == {"br0", "br2"}
    failures = {row["element"]: row for row in failures_of(file, flows, rate_pps=1e3)["failures"]}
    assert all(math.isnan(failures[name]["lost_frames"]) for name in ("br0", "br1", "br2"))


def test_who_is_dead_loses_its_flows_and_nobody_else_does() -> None:
    flows = choices(file_of(8))
    before, after = flows.chosen(), flows.chosen(["br3"])
    assert "br3" in before
    assert "br3" not in after
    assert all(old == new for old, new in zip(before, after, strict=True) if old != "br3")


@pytest.mark.parametrize("routers", [1, 2, 4, 8])
def test_in_overload_each_forwards_its_cap_and_fills_its_queue(routers: int) -> None:
    file = file_of(routers)
    result = trial(file, choices(file), 1.5 * routers * 10e3)
    assert result.offered_frames is not None
    assert result.dropped_frames is not None
    accepted = result.offered_frames - result.dropped_frames
    queues = sum(item.queue for item in file.router)
    assert accepted == pytest.approx(routers * 10e3 + queues, rel=2e-3)


def test_a_death_costs_the_flows_of_the_dead_what_is_predicted_and_others_nothing() -> None:
    file = file_of(4)
    # Flows take turns: several whole turns within the time to detect, so that each share is what it is in the mean;
    # and the two that are left carry it all.
    flows = FlowChoices.of(file, udp_flows(file, 128))
    dead = deaths_of(model_of(file, flows), file, flows, ["br1", "br2"], rate_pps=12e3, at_s=0.3, back_s=0.7)
    result = trial(file, flows, 12e3, dead.events)
    assert result.dropped_frames == pytest.approx(dead.lost_frames, rel=0.03)
    assert all(flow.loss_ratio == 0.0 for flow in result.flows if flows.choices[flow.number][0] not in ("br1", "br2"))
    assert dead.predicted["br1"].detection_s == pytest.approx(0.05 + 64.5 / (flows.share("br1") * 12e3))


def test_back_end_routers_without_flows_stay_in_the_model() -> None:
    file = file_of(8)
    flows = FlowChoices.of(file, udp_flows(file, 3))
    victim = flows.chosen()[0]
    dead = deaths_of(model_of(file, flows), file, flows, [victim], rate_pps=3e3, at_s=0.3)
    result = trial(file, flows, 3e3, dead.events)
    assert result.dropped_frames == pytest.approx(dead.lost_frames, rel=0.03)


def test_a_takeover_costs_everything_for_a_while() -> None:
    file = file_of(2)
    flows = choices(file)
    dead = takeover_of(file, rate_pps=10e3, at_s=0.3)
    result = trial(file, flows, 10e3, dead.events)
    assert result.dropped_frames == pytest.approx(dead.lost_frames, abs=20)


def test_failures_are_not_known_where_theory_does_not_reach() -> None:
    file = file_of(2)
    item = failures_of(file, FlowChoices.of(file, udp_flows(file, 1)), rate_pps=1e3)
    assert [row["away_s"] != row["away_s"] for row in item["failures"]] == [True, True, False]
    uncapped = parse_multistage(EXAMPLE)
    assert failures_of(uncapped, choices(uncapped), rate_pps=1e3)["forwarded_pps"] is None


def test_what_cannot_be_predicted_is_refused() -> None:
    file = file_of(2)
    flows = choices(file)
    model = model_of(file, flows)
    for victims, message in ((["br7"], "is no back-end router"), (["br0", "br1"], "have all flows")):
        with pytest.raises(ModelProblem, match=message):
            deaths_of(model, file, flows, victims, rate_pps=1e3, at_s=0.1)
    uncapped = parse_multistage(EXAMPLE)
    with pytest.raises(ModelProblem, match=r"router\[0\].cap: is missing"):
        model_of(uncapped, choices(uncapped))
    with pytest.raises(ModelProblem, match="round_robin"):
        model_of(parse_multistage('scheme = "round_robin"\n' + EXAMPLE), flows)
    single = parse_multistage(EXAMPLE.replace('[[balancer]]        # stands by\nname = "lb1"\n', ""))
    with pytest.raises(ModelProblem, match="none can take over"):
        takeover_of(single, rate_pps=1e3, at_s=0.1)
