"""The simulating evaluator from Python: conservation, physics, traces, refusals, stopping, energy."""

from __future__ import annotations

import dataclasses
import pickle
import signal
import subprocess
import sys
import textwrap
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

pytest.importorskip("routecast._core", reason="the extension is not built")

from routecast.errors import ModelProblem, TransientProblem
from routecast.evaluate.simulate import FrameFate, Simulate, Trace
from routecast.load import Arrivals, FlowSet, FrameMix, OfferedLoad
from routecast.router import (
    Activation,
    Contention,
    Need,
    Policy,
    Port,
    PowerDraw,
    ResourcePool,
    RouterModel,
    ServiceCost,
    TaskUnit,
    multicore,
    station,
)
from routecast.router.station import FAST_LINK_BPS

MICROSECOND = ServiceCost(per_packet_s=1e-6)
EXPONENTIAL = ServiceCost(per_packet_s=1e-6, variation="exponential")
POISSON = Arrivals.poisson()
# A fluctuation would not reproduce on the next run: examples are drawn the same way every time.
PHYSICS = settings(derandomize=True)
# Integer picoseconds (S3): a rounding per station on the way.
PICOSECONDS = 2e-11

RANDOM_ARRIVALS = [POISSON, Arrivals.on_off(burst_frames=16.0, peak_ratio=4.0)]
ARRIVALS = st.sampled_from([Arrivals.cbr(), *RANDOM_ARRIVALS])
MIXES = st.sampled_from([FrameMix.fixed(64), FrameMix.fixed(1518), FrameMix.imix(), FrameMix.genome("aaafg")])
SERVICES = st.builds(
    ServiceCost,
    per_packet_s=st.floats(0.1e-6, 3e-6),
    per_byte_s=st.sampled_from([0.0, 0.4e-9, 2e-9]),
    variation=st.sampled_from(["deterministic", "exponential"]),
)
ROUTERS = st.builds(
    multicore,
    st.integers(1, 4),
    SERVICES,
    queue_frames=st.sampled_from([1, 8, 64]),
    link_bps=st.sampled_from([1e9, 10e9]),
    tx_ring_frames=st.sampled_from([1, 64]),
    distribution=st.sampled_from(["rss", "round_robin", "per_flow"]),
    contention=st.sampled_from([Contention(), Contention(sigma=0.1, kappa=0.02)]),
    activation=st.sampled_from(
        [
            Activation(),
            Activation(kind="polling"),
            Activation(kind="interrupt", budget_frames=8, interrupt_cost_s=2e-6, moderation_s=10e-6),
        ]
    ),
    batch_frames=st.sampled_from([1, 4]),
    nic_cap_pps=st.sampled_from([None, 2e6]),
    bus_bytes_per_s=st.sampled_from([None, 1e9]),
)
RATES = st.floats(0.05e6, 12e6)
FLOW_SETS = st.integers(1, 20).flatmap(lambda count: st.sampled_from([FlowSet.crafted(count), FlowSet.random(count)]))
LOADS = st.builds(OfferedLoad, rate_pps=RATES, frames=MIXES, flows=FLOW_SETS, arrivals=ARRIVALS)


def small(model: RouterModel, load: OfferedLoad, frames: int = 400, **settings: Any) -> Trace:
    return Simulate(model, **settings).trace(load, frames / load.rate_pps)


def queue_of_one(rate_pps: float, arrivals: Arrivals = POISSON) -> OfferedLoad:
    return OfferedLoad(rate_pps=rate_pps, flows=FlowSet.crafted(1), arrivals=arrivals)


def comparable_trace(trace: Trace) -> tuple[Any, ...]:
    """Return all that a trace says; as plain data, in which what is not known (NaN) equals itself."""
    return trace.trial.to_json(), trace.messages, trace.fates


def by_number(trace: Trace) -> dict[int, FrameFate]:
    return {fate.number: fate for fate in trace.fates}


@PHYSICS
@given(ROUTERS, LOADS, st.integers(0, 2**64 - 1))
def test_every_frame_is_forwarded_dropped_or_in_flight(model: RouterModel, load: OfferedLoad, seed: int) -> None:
    trace = small(model, load, seed=seed)
    trial = trace.trial
    # S12.
    assert trial.offered_frames is not None
    assert trial.forwarded_frames is not None
    assert trial.dropped_frames is not None
    assert trial.in_flight_frames is not None
    counted = trial.forwarded_frames + trial.dropped_frames + trial.in_flight_frames
    assert trial.offered_frames == counted
    assert trial.in_flight_frames >= 0
    # The fates tell the same story, frame by frame.
    assert sum(not fate.dropped_at for fate in trace.fates) == trial.forwarded_frames
    assert sum(bool(fate.dropped_at) for fate in trace.fates) == trial.dropped_frames
    assert all(fate.end_s >= fate.arrival_s for fate in trace.fates)


@PHYSICS
@given(ROUTERS, LOADS)
def test_no_resource_is_busier_than_always_and_no_link_carries_more_than_its_rate(
    model: RouterModel, load: OfferedLoad
) -> None:
    simulator = Simulate(model, steady_state=False)
    trial = simulator.trial(load, 2000 / load.rate_pps)
    assert 0.0 <= trial.loss_ratio <= 1.0
    for resource in trial.resources:
        assert 0.0 <= resource.utilisation_ratio <= 1.0
    # S1, both ports; a frame that ends in the measured part may have begun before it, and so may a ring of them.
    at_most_bits = sum(port.link_bps for port in model.ports) * trial.measured_s
    ring_bits = sum(8 * 1538 * (port.tx_ring_frames + 1) for port in model.ports)
    assert trial.l1_bps * trial.measured_s <= at_most_bits + ring_bits
    assert trial.l2_bps <= trial.l1_bps


@PHYSICS
@given(st.floats(0.1, 0.8), st.floats(1.05, 1.5), st.sampled_from([MICROSECOND, EXPONENTIAL]))
@pytest.mark.slow
def test_a_frame_never_waits_less_when_frames_come_faster(
    load_ratio: float, faster: float, service: ServiceCost
) -> None:
    # Same seed, same draws: every gap shrinks by the same factor, so each wait grows (Lindley), not just the mean.
    router = station(service)
    slow, fast = (
        by_number(small(router, queue_of_one(rate * 1e6), seed=3)) for rate in (load_ratio, load_ratio * faster)
    )
    both = slow.keys() & fast.keys()
    assert len(both) > 300
    for number in both:
        waits = [of[number].end_s - of[number].arrival_s for of in (slow, fast)]
        assert waits[1] >= waits[0] - PICOSECONDS


@PHYSICS
@given(st.floats(0.2, 1.5), st.sampled_from([2.0, 10.0]), st.sampled_from(RANDOM_ARRIVALS))
@pytest.mark.slow
def test_a_router_that_is_slower_in_every_part_does_the_same_more_slowly(
    load_ratio: float, factor: float, arrivals: Arrivals
) -> None:
    # Equal gaps make frames come at the very instant at which others leave, where a rounded picosecond decides.
    def at(scale: float) -> Trace:
        model = multicore(2, ServiceCost(per_packet_s=1e-6 * scale), queue_frames=16, link_bps=10e9 / scale)
        load = OfferedLoad(rate_pps=2e6 * load_ratio / scale, flows=FlowSet.crafted(2), arrivals=arrivals)
        return small(model, load, frames=1000)

    item, slower = at(1.0), at(factor)
    assert [fate.dropped_at for fate in item.fates] == [fate.dropped_at for fate in slower.fates]
    for fast, slow in zip(item.fates, slower.fates, strict=True):
        # Rounding to picoseconds adds up over a busy period of some hundred frames.
        assert slow.end_s == pytest.approx(fast.end_s * factor, abs=1e-9 * factor)


@PHYSICS
@given(ROUTERS, LOADS, st.integers(0, 2**32))
@pytest.mark.slow
def test_one_seed_gives_one_trace(model: RouterModel, load: OfferedLoad, seed: int) -> None:
    assert comparable_trace(small(model, load, seed=seed)) == comparable_trace(small(model, load, seed=seed))


def test_another_seed_gives_another_trace() -> None:
    load = queue_of_one(0.5e6)
    assert small(station(MICROSECOND), load, seed=1).fates != small(station(MICROSECOND), load, seed=2).fates


@PHYSICS
@given(ROUTERS, LOADS, st.integers(0, 2**32))
@pytest.mark.slow
def test_recursion_and_events_give_every_frame_the_same_fate(model: RouterModel, load: OfferedLoad, seed: int) -> None:
    mixed, events = (small(model, load, seed=seed, path=path) for path in ("auto", "events"))
    assert mixed.fates == events.fates
    assert mixed.trial.in_flight_frames == events.trial.in_flight_frames


def test_a_trial_too_short_for_its_transient_says_what_would_do_and_that_does() -> None:
    simulator, load = Simulate(station(MICROSECOND)), queue_of_one(0.5e6)
    with pytest.raises(TransientProblem) as caught:
        simulator.trial(load, 20e-6)
    problem = caught.value
    assert problem.duration_s == 20e-6
    assert problem.needed_s > problem.duration_s
    assert "too short" in str(problem)
    assert simulator.trial(load, problem.needed_s).forwarded_frames


def test_a_queue_that_grows_all_the_time_is_refused_and_can_be_had_on_demand() -> None:
    # Twice the load that the core carries and a million places: the mean latency rises to the end.
    router, load = station(MICROSECOND), queue_of_one(2e6)
    with pytest.raises(TransientProblem, match="still moving"):
        Simulate(router).trial(load, 0.01)
    trial = Simulate(router, steady_state=False).trial(load, 0.01)
    assert any("not steady-state" in note for note in trial.notes)


def test_errors_cross_processes() -> None:
    with pytest.raises(TransientProblem) as short:
        Simulate(station(MICROSECOND)).trial(queue_of_one(0.5e6), 20e-6)
    with pytest.raises(ModelProblem) as wrong:
        Simulate(station(MICROSECOND), replications=0).trial(queue_of_one(0.5e6), 1.0)
    for error in (short.value, wrong.value):
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error)
        assert (copy.args, str(copy)) == (error.args, str(error))


def test_every_bad_setting_is_reported_at_once() -> None:
    simulator = Simulate(
        station(MICROSECOND), seed=-1, replications=0, max_replications=0, target_relative_half_width=1.0
    )
    with pytest.raises(ModelProblem) as caught:
        simulator.trial(queue_of_one(0.5e6), float("nan"))
    places = {problem.place for problem in caught.value.problems}
    assert places == {"duration_s", "seed", "replications", "max_replications", "target_relative_half_width"}


@pytest.mark.parametrize("duration_s", [0.0, -1.0, float("inf"), 1e7])
def test_a_duration_is_finite_and_positive(duration_s: float) -> None:
    with pytest.raises(ModelProblem, match="duration_s"):
        Simulate(station(MICROSECOND)).trial(queue_of_one(1.0), duration_s)


def test_more_frames_than_can_be_simulated_are_refused_before_the_start() -> None:
    with pytest.raises(ModelProblem, match="at most"):
        Simulate(station(MICROSECOND)).trial(queue_of_one(1e9), 1000.0)


def test_a_path_that_a_model_cannot_take_is_refused_with_the_reason() -> None:
    router = multicore(2, MICROSECOND, contention=Contention(sigma=0.1))
    with pytest.raises(ModelProblem, match="slow each other down"):
        Simulate(router, path="recursion").trial(queue_of_one(0.5e6), 0.01)


def test_a_frame_is_requested_replied_and_released_in_this_order() -> None:
    # By events: recursion needs no messages.
    trace = small(station(MICROSECOND), queue_of_one(0.1e6, Arrivals.cbr()), frames=5, path="events")
    # Meyer et al. 2014, sec. IV-C.3, with a frame every 10 us and 1 us of work for each.
    assert [message.kind for message in trace.messages] == ["REQ", "REP", "REL"] * 5
    for request, reply, release in zip(*[iter(trace.messages)] * 3, strict=True):
        assert request.at_s == reply.at_s
        assert release.at_s - reply.at_s == pytest.approx(1e-6, abs=PICOSECONDS)
        assert request.unit is None
        assert reply.unit == release.unit == 0
        assert {message.task for message in (request, reply, release)} == {"station"}
        assert {message.pool for message in (request, reply, release)} == {"server"}


def two_classes(policy: Policy) -> RouterModel:
    """One core for an urgent and a patient task unit, each fed by a port of its own."""

    def task(name: str, priority: int) -> TaskUnit:
        cost = ServiceCost(per_packet_s=3e-6 if name == "patient" else 1e-6)
        return TaskUnit(name=name, needs=(Need(pool="cpu"),), service=cost, priority=priority)

    return RouterModel(
        name="urgent and patient",
        ports=tuple(
            Port(name=f"port {i}", link_bps=FAST_LINK_BPS, entry=name) for i, name in enumerate(("urgent", "patient"))
        ),
        tasks=(task("urgent", 1), task("patient", 0)),
        pools=(ResourcePool(name="cpu", policy=policy),),
    )


def test_an_urgent_task_unit_revokes_the_core_and_the_other_goes_on_later() -> None:
    load = OfferedLoad(rate_pps=0.3e6, flows=FlowSet.crafted(2), arrivals=POISSON)
    trace = small(two_classes(Policy(kind="preemptive")), load)
    revoked = [message for message in trace.messages if message.kind == "REV"]
    assert revoked
    assert {message.task for message in revoked} == {"patient"}
    # No frame of either is lost by it.
    assert trace.trial.dropped_frames == 0
    assert not any(message.kind == "REV" for message in small(two_classes(Policy(kind="priority")), load).messages)


def test_messages_stop_at_their_limit_and_frames_do_not() -> None:
    simulator = Simulate(station(MICROSECOND), path="events")
    trace = simulator.trace(queue_of_one(0.5e6), 1e-3, message_limit=10)
    assert len(trace.messages) == 10
    assert len(trace.fates) > 400


def test_energy_is_power_times_time_in_each_state() -> None:
    model = multicore(2, MICROSECOND, power=PowerDraw(active_w=10.0, idle_w=2.0), link_bps=FAST_LINK_BPS)
    load = OfferedLoad(rate_pps=1e6, flows=FlowSet.crafted(2))
    energy = Simulate(model).trial(load, 0.1).energy_j["cpu"]
    # S11: 1 Mpps of 1 us keep one of two cores at work on average.
    assert energy == pytest.approx({"active": 10.0 * 0.1, "idle": 2.0 * 0.1}, rel=1e-3)


def test_a_core_that_polls_is_active_all_the_time() -> None:
    model = multicore(
        2,
        MICROSECOND,
        power=PowerDraw(active_w=10.0, idle_w=2.0),
        activation=Activation(kind="polling"),
        link_bps=FAST_LINK_BPS,
    )
    load = OfferedLoad(rate_pps=0.2e6, flows=FlowSet.crafted(2))
    assert Simulate(model).trial(load, 0.1).energy_j["cpu"] == pytest.approx({"active": 2.0, "idle": 0.0})


def test_the_histogram_reads_in_another_implementation_of_hdr() -> None:
    histogram = pytest.importorskip("hdrh.histogram", reason="PyPI hdrhistogram is not installed")
    trial = Simulate(station(EXPONENTIAL)).trial(queue_of_one(0.5e6), 0.5)
    assert trial.latency is not None
    decoded = histogram.HdrHistogram.decode(trial.latency.hdr_base64)
    # Nanoseconds or a finer unit: the ratio of percentiles does not depend on it. Three digits are kept.
    ratio = decoded.get_value_at_percentile(99.0) / decoded.get_value_at_percentile(50.0)
    assert ratio == pytest.approx(trial.latency.p99_s / trial.latency.p50_s, rel=0.01)
    assert f"{decoded.get_total_count():,}" in trial.latency.method


def test_replications_are_added_until_the_mean_is_sure_enough() -> None:
    load = queue_of_one(0.8e6)
    simulator = Simulate(station(EXPONENTIAL), target_relative_half_width=0.05)
    trial = simulator.trial(load, 0.05)
    assert trial.latency is not None
    low, high = trial.interval["latency.mean_s"]
    assert (high - low) / 2.0 <= 0.05 * trial.latency.mean_s
    # M/M/1: 1 us / (1 - 0.8).
    assert low <= 5e-6 <= high
    assert trial.offered_frames is not None
    assert trial.offered_frames < 64 * 0.05 * 0.8e6


def test_replications_end_at_their_limit() -> None:
    simulator = Simulate(station(EXPONENTIAL), target_relative_half_width=1e-6, max_replications=5)
    trial = simulator.trial(queue_of_one(0.8e6), 0.01)
    assert any(note.startswith("5 independent replications") for note in trial.notes)


def test_replications_differ_and_do_not_depend_on_how_many_there_are() -> None:
    simulator, load = Simulate(station(EXPONENTIAL), replications=4), queue_of_one(0.5e6)
    four = simulator.trial(load, 0.02)
    assert four.to_json() == simulator.trial(load, 0.02).to_json()
    item = dataclasses.replace(simulator, replications=1).trial(load, 0.02)
    assert four.offered_frames is not None
    assert item.offered_frames is not None
    # Poisson counts of 10,000: four equal ones would mean equal streams.
    assert four.offered_frames != 4 * item.offered_frames


def test_progress_is_reported_and_grows() -> None:
    shares: list[float] = []

    class Enough(Exception):
        pass

    def listen(share: float) -> None:
        shares.append(share)
        if len(shares) == 3:
            raise Enough

    # Longer than any three calls: the exception in the third ends it, and reaches the caller.
    with pytest.raises(Enough):
        Simulate(station(MICROSECOND), on_progress=listen).trial(queue_of_one(0.5e6), 1000.0)
    assert len(shares) == 3
    assert shares == sorted(shares)
    assert all(0.0 <= share <= 1.0 for share in shares)


def test_ctrl_c_ends_a_long_simulation() -> None:
    program = textwrap.dedent(
        """
        from routecast.evaluate.simulate import Simulate
        from routecast.load import Arrivals, OfferedLoad
        from routecast.router import ServiceCost, station

        def listen(share):
            print("runs", flush=True)

        load = OfferedLoad(rate_pps=0.5e6, arrivals=Arrivals.poisson())
        router = station(ServiceCost(per_packet_s=1e-6))
        try:
            Simulate(router, on_progress=listen, replications=4).trial(load, 50_000.0)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        """
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "runs\n"
            process.send_signal(signal.SIGINT)
            # A hang is a failure; how long it takes is not judged. 10^11 frames would take the better part of an hour.
            out, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0
    assert out.splitlines()[-1] == "interrupted"


@PHYSICS
@given(st.floats(0.1, 0.9), st.sampled_from([MICROSECOND, EXPONENTIAL]), ARRIVALS)
def test_queue_length_is_rate_times_wait(load_ratio: float, service: ServiceCost, arrivals: Arrivals) -> None:
    load = queue_of_one(load_ratio * 1e6, arrivals)
    trial = Simulate(station(service), steady_state=False).trial(load, 0.02)
    assert trial.waiting is not None
    assume(trial.waiting.mean_s > 1e-8)
    # Little's law; 2 %: frames that wait at the ends of the measured part count on one side only.
    assert trial.queue_frames["station"] == pytest.approx(trial.forwarded_pps * trial.waiting.mean_s, rel=0.02)


def test_paths_agree_on_a_queue_that_grows_to_the_end() -> None:
    # 1 Mpps more than the core serves: 10,000 frames wait at the end of 10 ms, half of that on average. A trial that is
    # all transient is reported from its beginning.
    load = queue_of_one(2e6, Arrivals.cbr())
    for path in ("recursion", "events"):
        trial = Simulate(station(MICROSECOND), path=path, steady_state=False).trial(load, 0.01)
        assert trial.latency is not None
        assert trial.queue_frames["station"] == pytest.approx(5000, rel=0.02)
