"""The simulator's model of a router of many machines: who gets which flow, what it forwards, what a death costs."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from in_process import completed

from routecast.errors import FileProblem, ModelProblem, QuantityProblem
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.trial import Trial
from routecast.load.flows import Flow, FlowSet
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad
from routecast.multistage._model import FlowChoices, deaths_of, failures_of, model_of, models_of, takeover_of, udp_flows
from routecast.multistage.prediction import predicted_takeover
from routecast.multistage.reading import MultistageFile, parse_multistage
from routecast.multistage.tests.multistage_hosts import EXAMPLE
from routecast.router.events import Event
from routecast.virtual.multistage import TAKEOVER_S

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


def test_a_takeover_takes_as_long_in_the_simulated_multistage_router_as_in_the_real_one() -> None:
    assert pytest.approx(predicted_takeover(rate_pps=1.0).detection_s) == TAKEOVER_S


def router_file(path: Path, *, per_packet_us: float, per_byte_ns: float) -> Path:
    """Write the file of a router of one core and return its path."""
    cost = f'per_packet = "{per_packet_us} us", per_byte = "{per_byte_ns} ns/B"'
    path.write_text(f'builder = "multicore"\ncores = 1\nlink = "10 Gbit/s"\nservice = {{ {cost} }}\n')
    return path


@pytest.mark.parametrize("frame_bytes", [64, 1518])
def test_a_back_end_router_with_a_router_file_forwards_what_its_core_can(tmp_path: Path, frame_bytes: int) -> None:
    """By hand: a core carries 1 / (20 us + 10 ns * bytes) frames a second, and each router min(capacity, its share)."""
    path = router_file(tmp_path / "calibrated.router.toml", per_packet_us=20.0, per_byte_ns=10.0)
    file = parse_multistage(EXAMPLE)
    models = models_of(file, [str(path)], folder=tmp_path, frames=FrameMix.fixed(frame_bytes))
    result = failures_of(file, choices(file), rate_pps=150e3, models=models)
    capacity_pps = 1.0 / (20e-6 + 10e-9 * frame_bytes)
    forwarded = [min(choices(file).share(item.name) * 150e3, capacity_pps) for item in file.router]
    assert [row["capacity_pps"] for row in result["routers"]] == pytest.approx([capacity_pps] * 3)
    assert [row["forwarded_pps"] for row in result["routers"]] == pytest.approx(forwarded, rel=1e-3)
    assert result["forwarded_pps"] == pytest.approx(sum(forwarded), rel=1e-3)
    assert forwarded[2] == capacity_pps  # it has half of the flows


def test_a_file_of_the_command_line_comes_before_that_of_the_file_and_both_before_the_cap(tmp_path: Path) -> None:
    for name, cost_us in (("a", 10.0), ("b", 20.0), ("c", 40.0)):
        router_file(tmp_path / f"{name}.router.toml", per_packet_us=cost_us, per_byte_ns=0.0)
    text = EXAMPLE.replace('name = "br0"', 'name = "br0"\ncap = "1 kpps"\nmodel = "a.router.toml"')
    text = text.replace('name = "br1"', 'name = "br1"\ncap = "1 kpps"')
    path = tmp_path / "mine.multistage.toml"
    path.write_text(text)

    def capacities(*options: str) -> list[tuple[str | None, float | None]]:
        done = completed("multistage", "predict", path, "--load", "4 kpps", "--json", *options)
        rows = json.loads(done.stdout)["routers"]
        return [(row["source"] and Path(row["source"]).name[:1], row["capacity_pps"]) for row in rows]

    assert capacities() == [("a", pytest.approx(100e3)), ("c", 1e3), (None, None)]
    b, c = (str(tmp_path / f"{name}.router.toml") for name in "bc")
    assert capacities("--router", f"br0={b}", "--router", c) == [
        ("b", pytest.approx(50e3)),
        ("c", pytest.approx(25e3)),
        ("c", pytest.approx(25e3)),
    ]
    shown = completed("multistage", "predict", path, "--load", "4 kpps", "--router", c, "--frame", "1518 B").stdout
    assert "frames of 1518 B" in shown
    assert "c.router.toml" in shown


def test_a_router_file_of_no_router_or_two_of_one_are_refused(tmp_path: Path) -> None:
    path = router_file(tmp_path / "a.router.toml", per_packet_us=1.0, per_byte_ns=0.0)
    file = parse_multistage(EXAMPLE)

    def models(*options: str) -> object:
        return models_of(file, options, folder=tmp_path, frames=FrameMix.fixed(64))

    with pytest.raises(QuantityProblem, match="there is no 'br9'; there are: br0, br1, br2"):
        models(f"br9={path}")
    with pytest.raises(QuantityProblem, match=r"br0 have .* already"):
        models(f"br0={path}", f"br0={path}")
    with pytest.raises(FileProblem, match="cannot be read"):
        models("br0=nosuch.router.toml")
