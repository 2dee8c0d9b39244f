"""Trials on a real test bed of namespaces: exact counts, physics, and what a broken device looks like."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from routecast.errors import EnvironmentProblem
from routecast.evaluate.trial import Trial
from routecast.lab.testbed import Measure, open_testbed
from routecast.lab.testbed.dut_host import run_command
from routecast.lab.testbed.tester import open_tester
from routecast.load.arrivals import Arrivals
from routecast.load.flows import Flow, FlowSet
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad, RateStep
from routecast.load.trace import RecordedFrames

pytestmark = pytest.mark.wire
needs_two_cores = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="needs a core for the device beside the generator's"
)

ONE = FlowSet(name="1 flow", flows=(Flow(rss_hash=0),))
BOTH = FlowSet(name="2 flows", flows=(Flow(rss_hash=0), Flow(rss_hash=1, ingress=1, egress=0)))

Opened = Callable[..., AbstractContextManager[Measure]]
Undisturbed = Callable[..., Any]


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    @contextmanager
    def open_bed(device: str = "linux", file: str = "", **values: Any) -> Iterator[Measure]:
        path = tmp_path / "bed.testbed.toml"
        name = f"w{os.getpid() % 100_000}-{time.monotonic_ns() % 10_000}"
        path.write_text(f'name = "{name}"\nkind = "namespaces"\n{file}\n')
        with open_testbed(path, device=device, **values) as evaluator:
            yield evaluator

    return open_bed


def load(rate_pps: float = 20e3, size: int = 64, flows: FlowSet = ONE) -> OfferedLoad:
    return OfferedLoad(rate_pps=rate_pps, frames=FrameMix.fixed(size), flows=flows)


def conserved(trial: Trial) -> bool:
    return trial.offered_frames == (trial.forwarded_frames or 0) + (trial.dropped_frames or 0)


def conserving(evaluator: Measure, offered: OfferedLoad, duration_s: float) -> Trial:
    """Return a trial after checking that it conserves frames."""
    trial = evaluator.trial(offered, duration_s)
    assert conserved(trial)
    return trial


def forwarded_all(trial: Trial) -> None:
    assert trial.forwarded_frames == trial.offered_frames == round(trial.intended_pps * trial.duration_s)


def attached(evaluator: Measure, **settings: Any) -> Any:
    """Attach a program with deliberate faults to the device's receiving port."""
    from routecast.lab import _lab

    site = evaluator.bed.site
    program = _lab.attach_xdp(json.dumps({"program": "fault", "interface": "d0", "netns": site.netns_path, **settings}))
    evaluator.bed.bind_threads()
    return program


@pytest.mark.parametrize("size", [64, 512, 1518])
def test_what_linux_forwards_is_what_the_kernel_counted(opened: Opened, size: int, undisturbed: Undisturbed) -> None:
    def run() -> Trial:
        before = evaluator.bed.device.counters()
        trial = evaluator.trial(load(size=size), 0.2)
        after = evaluator.bed.device.counters()
        assert conserved(trial)
        # A trial sends learning frames besides.
        assert after["ip_forwarded"] - before["ip_forwarded"] >= (trial.forwarded_frames or 0)
        assert trial.l2_bps == pytest.approx(trial.forwarded_pps * size * 8)  # S2
        return trial

    def judge(trial: Trial) -> None:
        assert trial.is_valid
        assert trial.offered_frames == trial.forwarded_frames == 4_000
        assert trial.offered_pps == pytest.approx(20e3, rel=1e-3)

    with opened(retries=0) as evaluator:
        undisturbed(run, judge)


def test_a_dropped_frame_in_every_thousand_is_found_to_the_frame(opened: Opened, undisturbed: Undisturbed) -> None:
    def run() -> Trial:
        with opened(retries=0) as evaluator, attached(evaluator, drop_every=1_000):
            trial = evaluator.trial(load(rate_pps=50e3), 0.4)
        assert conserved(trial)
        return trial

    def judge(trial: Trial) -> None:
        assert (trial.offered_frames, trial.dropped_frames) == (20_000, 20)

    undisturbed(run, judge)


def test_corrupted_frames_are_counted_and_are_no_received_ones(opened: Opened, undisturbed: Undisturbed) -> None:
    def run() -> Trial:
        with opened(retries=0) as evaluator, attached(evaluator, corrupt_every=100):
            trial = evaluator.trial(load(), 0.2)
        assert conserved(trial)
        assert (trial.corrupted_frames or 0) <= min(trial.dropped_frames or 0, 40)
        return trial

    def judge(trial: Trial) -> None:
        assert trial.corrupted_frames == trial.dropped_frames == 40
        assert any("changed content" in note for note in trial.notes)

    undisturbed(run, judge)


def test_a_device_that_forwards_nothing_is_a_result_that_says_where_frames_stopped(
    opened: Opened, undisturbed: Undisturbed
) -> None:
    def run() -> Trial:
        trial = evaluator.trial(load(), 0.1)
        assert (trial.forwarded_frames, trial.loss_ratio) == (0, 1.0)
        (note,) = [note for note in trial.notes if "came back" in note]
        assert f"0 of {trial.offered_frames:,} frames came back: check" in note
        assert "d0 received " in note
        return trial

    def judge(trial: Trial) -> None:
        assert trial.invalid == ()
        assert trial.offered_frames == 2_000
        assert any("d0 received 2,0" in note for note in trial.notes)

    with opened(retries=0) as evaluator:
        evaluator.bed.site.run("sysctl", "-qw", "net.ipv4.ip_forward=0")
        undisturbed(run, judge)


def test_a_device_that_sends_frames_back_is_reported(opened: Opened, undisturbed: Undisturbed) -> None:
    def run() -> Trial:
        with opened(retries=0) as evaluator, attached(evaluator, reflect=True):
            trial = evaluator.trial(load(), 0.1)
        assert conserved(trial)
        assert trial.forwarded_frames == 0
        return trial

    def judge(trial: Trial) -> None:
        assert any("loops" in note for note in trial.notes)

    undisturbed(run, judge)


def test_a_delay_is_never_measured_shorter_than_it_is(opened: Opened, undisturbed: Undisturbed) -> None:
    def judge(trial: Trial) -> None:
        assert trial.latency is not None
        assert trial.delay_variation is not None

    with opened(retries=0) as evaluator, attached(evaluator, delay_ns=100_000):
        trial = undisturbed(lambda: conserving(evaluator, load(rate_pps=3e3), 0.2), judge)
    assert trial.latency.min_s >= 100e-6
    assert trial.delay_variation.max_s == pytest.approx(trial.latency.max_s - trial.latency.min_s)


def test_a_bridge_carries_frames_for_the_far_port(opened: Opened, undisturbed: Undisturbed) -> None:
    with opened("bridge", retries=0) as evaluator:
        undisturbed(lambda: conserving(evaluator, load(), 0.2), forwarded_all)


def test_both_directions_and_many_networks_and_ipv6_are_forwarded(opened: Opened, undisturbed: Undisturbed) -> None:
    with opened(retries=0) as evaluator:
        for view, size in ((evaluator, 64), (evaluator.over_networks(256), 64), (evaluator.with_ip(6), 84)):
            both = load(flows=BOTH, size=size)
            trial = undisturbed(lambda view=view, both=both: conserving(view, both, 0.2), forwarded_all)
            assert any("forwarded on the generator's core" in note for note in trial.notes)
        networks = evaluator.bed.site.run("cat", "/proc/net/route").count("\n") - 1
    assert networks >= 2 * 256


def test_a_recording_is_sent_with_its_sizes_and_flows_to_the_frame_and_the_byte(
    opened: Opened, undisturbed: Undisturbed
) -> None:
    sizes, frames = (64, 1518, 570, 64, 128), 4_000
    recorded = RecordedFrames.of(
        [(number + number % 3 / 4) * 20e-6 for number in range(frames)],
        [sizes[number % 5] for number in range(frames)],
        [number % 7 % 2 for number in range(frames)],
    )
    flows = FlowSet(name="2 flows", flows=(Flow(rss_hash=0), Flow(rss_hash=1)))
    recording = OfferedLoad(rate_pps=1.0, flows=flows, arrivals=Arrivals.recorded(recorded))

    def judge(trial: Trial) -> None:
        assert trial.offered_frames == trial.forwarded_frames == frames
        assert trial.l2_bps * trial.duration_s == pytest.approx(8 * int(recorded.frame_bytes.sum()))

    with opened(retries=0) as evaluator:
        undisturbed(lambda: conserving(evaluator, recording, frames / recorded.rate_pps), judge)


@pytest.mark.parametrize("text", ["vlan:10", "vlan:100.10", "vxlan:42", "gre", "vlan:10+vxlan:42"])
@pytest.mark.parametrize("device", ["xdp", "bridge"])
def test_frames_with_tags_and_tunnels_are_forwarded_and_counted_to_the_frame_and_the_byte(
    opened: Opened, device: str, text: str, undisturbed: Undisturbed
) -> None:
    def judge(trial: Trial) -> None:
        forwarded_all(trial)
        assert trial.l2_bps == pytest.approx(trial.forwarded_pps * trial_bytes * 8)  # S2

    with opened(device, encapsulation=text, retries=0) as evaluator:
        for view, trial_bytes in ((evaluator, 128), (evaluator.with_ip(6), 1518)):
            offered = load(size=trial_bytes, flows=BOTH)
            undisturbed(lambda view=view, offered=offered: conserving(view, offered, 0.1), judge)
        assert evaluator.facts()["bed"]["encapsulation"] == text  # type: ignore[index]  # facts are plain data


def test_the_kernels_router_forwards_tagged_frames_or_says_what_the_kernel_lacks(
    opened: Opened, undisturbed: Undisturbed
) -> None:
    commands = "ip link add a type veth peer name b && ip link add link a name a.1 type vlan id 1"
    if subprocess.run(["unshare", "-n", "sh", "-c", commands], capture_output=True, check=False).returncode == 0:
        with opened(encapsulation="vlan:10", retries=0) as evaluator:
            undisturbed(lambda: conserving(evaluator, load(size=128), 0.2), forwarded_all)
    else:
        with (
            pytest.raises(EnvironmentProblem, match=r"needs VLAN sub-interfaces, .*8021q.*such as xdp, bridge"),
            opened(encapsulation="vlan:10"),
        ):
            pass
    assert not [name for name in os.listdir("/run/netns") if name.startswith(f"rc-w{os.getpid() % 100_000}-")]


def test_a_port_that_goes_down_during_a_trial_makes_it_invalid(opened: Opened) -> None:
    with opened(retries=0) as evaluator:
        port = evaluator.bed.ports[1]

        def pull() -> None:
            time.sleep(0.3)
            run_command(["ip", "-n", port.netns or "", "link", "set", port.interface, "down"])

        thread = threading.Thread(target=pull)
        thread.start()
        try:
            trial = evaluator.trial(load(rate_pps=5e3), 1.0)
        finally:
            thread.join()
    assert any("the link is down" in reason for reason in trial.invalid)
    assert conserved(trial)


@needs_two_cores
def test_overload_fills_the_core_of_a_slowed_router_and_the_ring_loses_the_rest(
    opened: Opened, undisturbed: Undisturbed
) -> None:
    def judge(trial: Trial) -> None:
        assert trial.loss_ratio > 0.5
        (core,) = (resource for resource in trial.resources if resource.kind == "pool")
        assert core.name == f"core {evaluator.bed.placement.dut}"
        assert core.utilisation_ratio > 0.9
        assert trial.bottleneck.name == core.name
        assert trial.drops_pps["d0_rx_dropped"] * trial.duration_s == pytest.approx(trial.dropped_frames, abs=1)

    with opened(options={"slowdown": 20_000}, retries=0) as evaluator:  # about 50 us a frame: 20 kpps
        undisturbed(lambda: conserving(evaluator, load(rate_pps=200e3), 0.3), judge)


def test_no_port_offers_more_than_the_wire_that_the_tester_keeps(opened: Opened, undisturbed: Undisturbed) -> None:
    def judge(trial: Trial) -> None:
        assert trial.offered_pps <= 10e6 / (84 * 8) * 1.001  # RFC 2544 sec. 20: 14,880 frames/s

    with opened(file='wire = "10 Mbit/s"', retries=0) as evaluator:
        trial = undisturbed(lambda: conserving(evaluator, load(rate_pps=50e3), 0.2), judge)
    assert trial.intended_pps == 50e3
    assert any("line rate" in note for note in trial.notes)


@contextmanager
def on_one_core() -> Iterator[None]:
    """Let this thread, and what it starts, use one core only, as `taskset -c 0` does."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.parametrize("receive", ["auto", "af_packet"])
def test_on_one_core_every_frame_is_forwarded_before_the_next_one_is_made(opened: Opened, receive: str) -> None:
    def open_with_receiver(configuration: Mapping[str, Any]) -> Any:
        ports = [{**port, "receive": receive} for port in configuration["ports"]]
        return open_tester({**configuration, "ports": ports})

    # More frames than the device's ring (256) or the receiver's (12,800) can keep until the generator is done.
    with on_one_core(), opened(tester=open_with_receiver) as evaluator:
        trial = evaluator.trial(load(rate_pps=50e3), 0.4)
        (worker, is_first), *_ = evaluator.bed.generator_core_workers().items()
    assert conserved(trial)
    assert worker == "device"
    assert any("generator and device share core" in note for note in trial.notes)
    assert not any("had no room" in reason for reason in trial.invalid)
    # However busy the machine is: what holds the device up on that core holds the generator up as well.
    assert trial.dropped_frames == 0 if is_first else (trial.dropped_frames == 0 or not trial.is_valid)


def test_on_one_core_what_it_cannot_both_make_and_forward_is_no_result(opened: Opened) -> None:
    # The load is ten times what any machine can make and forward on a core.
    with on_one_core(), opened(options={"slowdown": 20_000}, retries=0) as evaluator:  # about 50 us a frame
        trial = evaluator.trial(load(rate_pps=200e3), 0.2)
        reset = evaluator.reset_trial(load(rate_pps=5e3), 0.2, kind="process", at_s=0.1)
    assert conserved(trial)
    assert any("generator and device share core" in reason for reason in trial.invalid)
    assert any("the reset had to wait for the generator" in reason for reason in reset.invalid)


def test_without_priority_a_loss_on_one_core_is_no_result(opened: Opened) -> None:
    with on_one_core(), opened(file="priority = 0", retries=0) as evaluator:
        trial = evaluator.trial(load(rate_pps=200e3), 0.3)
    assert conserved(trial)
    assert trial.dropped_frames == 0 or any("the device went first" in reason for reason in trial.invalid)


def test_a_receiver_on_the_generators_core_takes_its_turns(opened: Opened) -> None:
    core = min(os.sched_getaffinity(0))
    with opened(file=f"[cores]\ntester = {core}\nreceiver = {core}") as evaluator:
        trial = evaluator.trial(load(rate_pps=50e3), 0.3)
        is_first = evaluator.bed.generator_core_workers()["receiver"]
    assert conserved(trial)
    assert any("generator and receiver share core" in note for note in trial.notes)
    # What the device's own core loses is not lost at the port where it sends.
    assert trial.drops_pps.get("d1_tx_dropped", 0.0) == 0.0 or not (is_first and trial.is_valid)


@needs_two_cores
@pytest.mark.parametrize("kind", ["process", "link"])
def test_a_reset_loses_frames_and_the_router_comes_back(opened: Opened, kind: str, undisturbed: Undisturbed) -> None:
    def run() -> Trial:
        # The kernel takes the links down one after the other and waits each time until no core uses them: 0.4 s beside
        # a busy poller. The trial leaves time for that.
        trial = evaluator.reset_trial(load(), 2.0, kind=kind, at_s=0.5)
        assert conserved(trial)
        assert not any("the link is" in reason or "the link went" in reason for reason in trial.invalid)  # on purpose
        # A reset looks like a stall and gets the same note, so the notes are no evidence here.
        return replace(trial, notes=())

    def judge(trial: Trial) -> None:
        # A stall of the machine may lose frames before. The thread that resets and the tester wait for their turns each
        # by itself, so the instant is not known better than that.
        assert trial.last_loss_s >= 0.25

    with opened(retries=0) as evaluator:
        undisturbed(run, judge)
        undisturbed(lambda: conserving(evaluator, load(), 0.1), forwarded_all)


def test_the_facts_of_a_run_are_plain_data_with_everything_that_ran(opened: Opened) -> None:
    with opened() as evaluator:
        facts = json.loads(json.dumps(evaluator.facts()))
    assert facts["device"]["name"] == "linux"
    assert facts["bed"]["device_threads"][0]["scheduler"] == "FIFO"
    assert facts["tester"]["ports"][0]["name"] == "gen"


@pytest.mark.parametrize(
    "values",
    [
        {"arrivals": Arrivals.poisson()},
        {"arrivals": Arrivals.on_off(burst_frames=64, peak_ratio=8.0)},
        {"frames": FrameMix.imix()},
        {"flows": FlowSet(name="3000 flows", flows=tuple(Flow(rss_hash=i % 128) for i in range(3_000)))},
        {"steps": (RateStep(at_s=0.2, rate_pps=5e3),)},
    ],
    ids=["poisson", "bursts", "imix", "3000 flows", "steps"],
)
def test_every_kind_of_load_is_sent_and_counted(
    opened: Opened, values: dict[str, Any], undisturbed: Undisturbed
) -> None:
    offered = OfferedLoad(**{"rate_pps": 20e3, "flows": ONE, **values})

    def judge(trial: Trial) -> None:
        assert trial.is_valid
        assert (trial.forwarded_frames or 0) > 0
        if "arrivals" not in values:
            assert trial.offered_pps == pytest.approx(trial.intended_pps, rel=2e-3)

    with opened(retries=0) as evaluator:
        undisturbed(lambda: conserving(evaluator, offered, 0.4), judge)
