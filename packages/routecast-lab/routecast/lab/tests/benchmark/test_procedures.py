"""The six procedures on router models give what queueing theory and arithmetic say."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

pytest.importorskip("routecast._core", reason="the extension is not built")

from benchmark_fakes import LINE_PPS, LINK_BPS, Fluid, profile_with

from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import lossless_pps
from routecast.evaluate.trial import Delay
from routecast.lab.benchmark import BenchmarkResult, ModelRig, PlainRig, Profile, Stream, plan_of, run_benchmark
from routecast.lab.benchmark.procedures import PROCEDURES
from routecast.lab.benchmark.procedures.procedure import Spread
from routecast.lab.benchmark.procedures.reset import ResetResult, ResetRow
from routecast.lab.benchmark.tables import benchmark_tables
from routecast.load import FlowSet, OfferedLoad
from routecast.router import RouterModel, ServiceCost, multicore
from routecast.router.model import Interruptions, RandomTime

CAPACITY_PPS = 1e6
QUEUE = 256
SLOW_LINK_BPS = 1e9
SLOW_LINE_PPS = SLOW_LINK_BPS / (8 * 84)
SHORT = {"attempts": 1}


def one_core(service: ServiceCost | None = None, *, queue: int = QUEUE) -> RouterModel:
    """A core that serves a frame in 1 us: a D/D/1/K queue for even arrivals."""
    return multicore(
        1, service or ServiceCost(per_packet_s=1 / CAPACITY_PPS), queue_frames=queue, link_bps=SLOW_LINK_BPS
    )


def benchmark(
    model: RouterModel,
    *procedures: str,
    profile: Profile | None = None,
    solve: bool = False,
    outages_s: dict[str, float] | None = None,
    streams: tuple[Stream, ...] = (),
    frames: tuple[int, ...] = (),
) -> BenchmarkResult:
    rig = ModelRig(model=model, with_="solve" if solve else "simulate", outages_s=outages_s or {})
    plan = plan_of(profile or profile_with(), procedures=procedures, streams=streams, frame_bytes=frames)
    return run_benchmark(plan, rig)


@pytest.mark.parametrize("solve", [True, False])
@pytest.mark.slow
def test_throughput_is_the_capacity(solve: bool) -> None:
    result = benchmark(one_core(), "throughput", solve=solve)
    assert result.throughput is not None
    lossless, pdr = result.throughput.rows
    # A queue of 256 frames hides at most 256 / 0.5 s of overload from a trial of half a second.
    hidden = 0.0 if solve else 2 * (QUEUE + 1) / CAPACITY_PPS
    for row in (lossless, pdr):
        capacity = CAPACITY_PPS * (1.0 + hidden) / (1.0 - row.loss_ratio)
        assert row.lower_pps <= capacity * (1.0 + 1e-6)
        assert row.upper_pps >= CAPACITY_PPS
        assert row.upper_pps - row.lower_pps <= row.resolution_ratio * row.upper_pps
        assert row.theoretical_pps == pytest.approx(SLOW_LINE_PPS)
    assert "frames/s of 64 bytes" in result.throughput.advertised[0]


def test_a_router_faster_than_its_links_has_line_rate_at_every_size() -> None:
    fast = multicore(1, ServiceCost(per_packet_s=1e-7), link_bps=SLOW_LINK_BPS)
    result = benchmark(fast, "throughput", "back_to_back", frames=(64, 512, 1518))
    assert result.throughput is not None
    assert result.back_to_back is not None
    for row in result.throughput.rows:
        # RFC 2544 appendix B's arithmetic: preamble and gap are 20 bytes.
        assert row.throughput_pps == pytest.approx(SLOW_LINK_BPS / (8 * (row.frame_bytes + 20)))
        assert row.outcome == "maximum"
    # RFC 9004 sec. 5.2: only sizes whose throughput is below the theoretical maximum.
    assert {row.outcome for row in result.back_to_back.rows} == {"skipped"}


def interrupted_core(ring_frames: int) -> RouterModel:
    """A core that stops for 40 us ten thousand times a second, before the ring of a link as fast as the core."""
    stops = Interruptions(rate_hz=1e4, duration=RandomTime(mean_s=40e-6, variation="exponential"))
    service = ServiceCost(per_packet_s=0.4e-6)
    model = multicore(1, service, queue_frames=16, link_bps=SLOW_LINK_BPS, interruptions=stops)
    return replace(model, ports=tuple(replace(port, tx_ring_frames=ring_frames) for port in model.ports))


def test_the_throughput_by_closed_form_is_the_greatest_of_which_no_loss_is_known() -> None:
    model = interrupted_core(64)
    result = benchmark(model, "throughput", "frame_loss", solve=True)
    assert result.throughput is not None
    assert result.frame_loss is not None
    row = result.throughput.rows[0]
    load = OfferedLoad(rate_pps=row.upper_pps, flows=FlowSet.crafted(2, ports=2))
    # Nothing is overloaded at three quarters of the rate, and a queue of 16 overflows in a stop of 40 us.
    most_pps = lossless_pps(model, load)
    assert Simulate(model, seed=1).trial(load.at(0.75 * most_pps), 0.1).loss_ratio > 0.05
    if math.isfinite(row.throughput_pps):
        assert Simulate(model, seed=1).trial(load.at(row.throughput_pps), 0.1).loss_ratio <= 1e-3
        assert row.throughput_pps < 0.75 * most_pps
    for point in result.frame_loss.rows:
        lost = Simulate(model, seed=1, steady_state=False).trial(load.at(point.intended_pps), 0.1).loss_ratio
        assert point.outcome == ("found" if math.isfinite(point.loss_ratio) else "undetermined")
        assert math.isnan(point.loss_ratio) or point.loss_ratio == pytest.approx(lost, abs=0.02)


@pytest.mark.parametrize("solve", [True, False])
def test_frame_loss_is_one_less_capacity_over_rate(solve: bool) -> None:
    result = benchmark(one_core(), "frame_loss", solve=solve)
    assert result.frame_loss is not None
    rows = result.frame_loss.rows
    assert [round(row.rate_ratio, 9) for row in rows] == [1.0, 0.9, 0.8, 0.7, 0.6, 0.5]
    for row in rows:
        loss = max(1.0 - CAPACITY_PPS / row.intended_pps, 0.0)
        # The queue fills once: 256 frames of at least 250,000.
        assert row.loss_ratio == pytest.approx(loss, abs=2e-3)
    # Down to two successive trials without loss, no further (sec. 26.3).
    assert [row.loss_ratio == 0.0 for row in rows] == [False, False, False, False, True, True]


@pytest.mark.slow
def test_the_longest_burst_fills_the_queue_while_it_drains() -> None:
    profile = profile_with(back_to_back={"width": 0.001, "repeats": 2})
    result = benchmark(one_core(), "back_to_back", profile=profile)
    assert result.back_to_back is not None
    assert result.throughput is not None
    (row,) = result.back_to_back.rows
    # B frames come in B/line seconds, in which B·C/line leave: B (1 - C/line) = K, and one is in service.
    expected = (QUEUE + 1) / (1.0 - CAPACITY_PPS / SLOW_LINE_PPS)
    assert row.burst_frames.mean == pytest.approx(expected, abs=4)
    assert row.burst_frames.repeats == 2
    # RFC 9004 sec. 6.4 corrects to the queue's own time: K frames at line rate.
    throughput = result.throughput.rows[0].throughput_pps
    assert row.implied_buffer_s == pytest.approx(row.burst_frames.mean / SLOW_LINE_PPS)
    assert row.corrected_buffer_s == pytest.approx(row.implied_buffer_s * (1.0 - throughput / SLOW_LINE_PPS), rel=1e-9)
    assert row.corrected_buffer_s == pytest.approx(QUEUE / SLOW_LINE_PPS, rel=0.03)


def test_a_burst_that_no_limit_ends_is_at_its_limit() -> None:
    profile = profile_with(back_to_back={"longest": 1e-4}, throughput={"verify_losses": 0})
    result = benchmark(one_core(), "back_to_back", profile=profile)
    assert result.back_to_back is not None
    (row,) = result.back_to_back.rows
    assert row.outcome == "limit"
    assert row.burst_frames.mean == pytest.approx(1e-4 * SLOW_LINE_PPS, abs=1)


@pytest.mark.slow
def test_a_full_queue_recovers_at_once_when_the_rate_is_cut_to_half() -> None:
    """Tail drop loses nothing once less arrives than leaves: the last loss is one gap of losses before the cut."""
    result = benchmark(one_core(), "recovery")
    assert result.recovery is not None
    (row,) = result.recovery.rows
    assert row.overload_pps == pytest.approx(1.1 * row.throughput_pps)
    assert row.recovery_pps == pytest.approx(0.5 * row.overload_pps)
    between_losses_s = 1.0 / (row.overload_pps - CAPACITY_PPS)
    assert -2.0 * between_losses_s <= row.recovery_s.mean <= 1.0 / row.recovery_pps
    # What 110 % loses, after the queue has filled.
    profile = profile_with()
    overload_frames = row.overload_pps * profile.recovery.overload_duration
    lost = overload_frames * (1.0 - CAPACITY_PPS / row.overload_pps) - QUEUE
    whole = overload_frames + row.recovery_pps * profile.recovery.recovery_duration
    assert row.overload_loss_ratio == pytest.approx(lost / whole, rel=0.02)


def test_a_router_that_goes_on_losing_recovers_later() -> None:
    """A fake whose last loss comes 30 ms after the cut: B − A, which sec. 26.5 has the wrong way round."""

    class Slow(Fluid):
        def trial(self, load, duration_s):  # type: ignore[no-untyped-def]  # a stand-in
            trial = Fluid.trial(self, load, duration_s)
            if not load.steps:
                return trial
            return replace(trial, last_loss_s=load.steps[0].at_s + 30e-3)

    plan = plan_of(profile_with(), procedures=["recovery"])
    result = run_benchmark(plan, PlainRig(evaluator=Slow(2e6), link=LINK_BPS))
    assert result.recovery is not None
    assert result.recovery.rows[0].recovery_s.mean == pytest.approx(30e-3)


@pytest.mark.parametrize(("last_loss_s", "shown"), [(-22e-3, "not resolved, < 22 ms"), (30e-3, "30 ms")])
def test_a_recovery_before_the_cut_is_not_resolved(last_loss_s: float, shown: str) -> None:
    """No router recovers before the overload ends: losses of the overload are as far apart as the last and the cut."""

    class Seldom(Fluid):
        def trial(self, load, duration_s):  # type: ignore[no-untyped-def]  # a stand-in
            trial = Fluid.trial(self, load, duration_s)
            return replace(trial, last_loss_s=load.steps[0].at_s + last_loss_s) if load.steps else trial

    result = run_benchmark(
        plan_of(profile_with(), procedures=["recovery"]), PlainRig(evaluator=Seldom(2e6), link=LINK_BPS)
    )
    assert result.recovery is not None
    (row,) = result.recovery.rows
    (table,) = (table for table in benchmark_tables(result) if "recovery" in table.name.lower())
    cells = dict(zip((column.title for column in table.columns), table.rows[0], strict=True))
    assert cells["Recovery"] == cells["Least"] == shown
    assert not any("−" in str(cell) for cell in table.rows[0])
    # The file keeps what was measured.
    assert row.recovery_s.mean == pytest.approx(last_loss_s)
    assert row.resolution_s == pytest.approx(max(-last_loss_s, row.resolution_s))


def test_a_reset_that_loses_no_frame_is_shorter_than_a_frame_and_not_of_length_zero() -> None:
    row = ResetRow(
        stream="IPv4",
        kind="process",
        section="4.2.2",
        frame_bytes=64,
        rate_pps=50e3,
        l2_bps=64 * 8 * 50e3,
        lost_frames=Spread.of((0.0, 0.0)),
        reset_s=Spread.of((0.0, 0.0)),
        resolution_s=1.0 / 50e3,
    )
    table = PROCEDURES["reset"].columns(ResetResult(rows=(row,)))
    texts = [column.getter(row) for column in table if column.title == "Time"]  # type: ignore[operator]  # a function
    assert texts == ["not resolved, < 20 µs"]


def test_a_router_at_line_rate_has_no_overload_to_recover_from() -> None:
    result = benchmark(multicore(1, ServiceCost(per_packet_s=1e-7), link_bps=SLOW_LINK_BPS), "recovery")
    assert result.recovery is not None
    (row,) = result.recovery.rows
    assert row.overload_pps == pytest.approx(SLOW_LINE_PPS)  # the lesser of 110 % and the medium's maximum
    assert row.outcome == "no overload"


def test_latency_of_even_arrivals_at_an_exponential_server_is_that_of_d_m_1() -> None:
    """D/M/1: the wait is sigma/(mu (1 − sigma)) with sigma = exp(−(1 − sigma)/rho) (Kleinrock 1975, sec. 6.4)."""
    service = ServiceCost(per_packet_s=1e-6, variation="exponential")
    rho = 0.6
    profile = profile_with(latency={"rates": (1.0,), "repeats": 5, "duration": 0.5})
    # The link in carries 0.6 of the capacity, so that its line rate is the throughput; the link out never makes wait.
    model = multicore(1, service, queue_frames=4096)
    ports = (replace(model.ports[0], link_bps=rho * 1e6 * 8 * 84), replace(model.ports[1], link_bps=1e15))
    model = replace(model, ports=ports)
    result = benchmark(model, "latency", profile=profile)
    assert result.latency is not None
    (row,) = result.latency.rows
    assert row.rate_pps == pytest.approx(rho * 1e6)
    sigma = 0.5
    for _ in range(100):
        sigma = math.exp(-(1.0 - sigma) / rho)
    expected_s = 1e-6 / (1.0 - sigma)
    # 1.5 million frames: the standard error is below 0.2 %.
    assert row.latency_s.mean == pytest.approx(expected_s, rel=0.01)
    assert row.latency_s.repeats == 5
    assert row.latency_s.sd > 0.0  # repetitions are independent
    assert row.min_s <= row.typical_s <= row.worst_s <= row.max_s
    assert 0.0 < row.pdv_s <= row.worst_s - row.min_s


@pytest.mark.parametrize("solve", [True, False])
@pytest.mark.slow
def test_latency_of_an_undisturbed_frame_is_its_service(solve: bool) -> None:
    result = benchmark(one_core(), "latency", solve=solve)
    assert result.latency is not None
    for row in result.latency.rows:
        assert row.latency_s.mean == pytest.approx(1e-6, rel=1e-3)
    assert "RFC 1242" in result.latency.definition


@pytest.mark.slow
def test_a_reset_takes_its_outage_and_loses_what_was_inside() -> None:
    """The stated 250 ms, plus the frames in service: D/D/1 below capacity holds one at most."""
    profile = profile_with(reset={"rate": 1.0, "repeats": 2})
    result = benchmark(one_core(), "reset", profile=profile, outages_s={"process": 0.25, "system": 1.0})
    assert result.reset is not None
    process, system = result.reset.rows
    assert (process.kind, process.section, system.kind) == ("process", "4.2.2", "system")
    for row, outage_s in ((process, 0.25), (system, 1.0)):
        assert row.reset_s.repeats == 2
        # The rate of the outage is counted in 0.3 s of whole frames: 1 s of it is known to a few frames.
        assert row.lost_frames.mean == pytest.approx(outage_s * row.rate_pps, abs=8)
        assert row.reset_s.mean == pytest.approx(outage_s, abs=8 / row.rate_pps)
        assert f"{row.kind} reset: {1e3 * outage_s:,.0f}" in row.statement.replace(".00", "")
    left_out = {item.section for item in result.not_run}
    assert {"RFC 6201 sec. 4.1.1", "RFC 6201 sec. 4.1.2", "RFC 6201 sec. 4.3"} <= left_out


@pytest.mark.slow
def test_a_router_that_does_not_come_back_has_no_reset_time() -> None:
    profile = profile_with(reset={"after": 1.0, "rate": 0.5})
    outages = {"process": 0.999}
    result = benchmark(one_core(), "reset", profile=profile, outages_s=outages)
    assert result.reset is not None
    (row,) = result.reset.rows
    assert row.outcome == "undetermined"
    assert "had not come back" in row.reason


def test_closed_forms_leave_out_what_they_cannot_answer() -> None:
    result = benchmark(one_core(), solve=True)
    assert result.procedures == ("throughput", "latency", "frame_loss")
    reasons = {item.what.split(",")[0]: item.reason for item in result.not_run}
    for name in ("back to back", "recovery", "reset"):
        assert "use simulate" in reasons[name]


@pytest.mark.slow
def test_both_ways_share_one_core_evenly() -> None:
    both = Stream(name="both ways", bidirectional=True)
    result = benchmark(one_core(), "throughput", streams=(both,))
    assert result.throughput is not None
    row = result.throughput.rows[0]
    assert row.throughput_pps == pytest.approx(CAPACITY_PPS, rel=0.03)
    assert row.per_port_pps == pytest.approx(CAPACITY_PPS / 2, rel=0.03)
    assert row.theoretical_pps == pytest.approx(2 * SLOW_LINE_PPS)


@pytest.mark.slow
def test_many_networks_are_as_many_flows() -> None:
    many = Stream(name="256 networks", networks=256)
    four = multicore(4, ServiceCost(per_packet_s=4 / CAPACITY_PPS), link_bps=SLOW_LINK_BPS)
    result = benchmark(four, "throughput", streams=(many,))
    item = benchmark(four, "throughput")
    assert result.throughput is not None
    assert item.throughput is not None
    # One pair of addresses hits one core of four; 256 networks hit all, none with more than 1.5 times its share.
    single = item.throughput.rows[0].throughput_pps
    assert single == pytest.approx(CAPACITY_PPS / 4, rel=0.03)
    assert 4 / 1.5 * single <= result.throughput.rows[0].throughput_pps <= 4.1 * single


@pytest.mark.slow
def test_bursts_need_a_queue_as_long_as_they_are() -> None:
    """RFC 2544 sec. 21: a burst of 64 at line rate needs room for 64 (1 − C/line) frames at once."""
    burst = Stream(name="bursts of 64", burst_frames=64)
    room = 64 * (1.0 - CAPACITY_PPS / SLOW_LINE_PPS)
    enough = benchmark(one_core(queue=math.ceil(room) + 1), "throughput", streams=(burst,))
    less = benchmark(one_core(queue=math.floor(room / 2)), "throughput", streams=(burst,))
    assert enough.throughput is not None
    assert less.throughput is not None
    assert enough.throughput.rows[0].throughput_pps == pytest.approx(CAPACITY_PPS, rel=0.03)
    assert less.throughput.rows[0].outcome == "below"


@pytest.mark.slow
def test_what_a_model_cannot_answer_is_listed_as_not_run() -> None:
    streams = (Stream(name="IPv4"), Stream(name="IPv6", protocol="IPv6"), Stream(name="f", modifier="25 filters"))
    result = benchmark(one_core(), "throughput", streams=streams)
    assert result.throughput is not None
    assert {row.stream for row in result.throughput.rows} == {"IPv4"}
    assert {"stream IPv6", "stream f"} <= {item.what for item in result.not_run}


def test_loss_is_counted_by_frames_not_rates() -> None:
    """A single lost frame of a million is a loss (RFC 2544 sec. 26.1)."""
    evaluator = Fluid(LINE_PPS - 6)  # in 0.2 s, one of three million
    plan = plan_of(profile_with(throughput={"verify_losses": 0}), procedures=["throughput"])
    result = run_benchmark(plan, PlainRig(evaluator=evaluator, link=LINK_BPS))
    assert result.throughput is not None
    assert result.throughput.rows[0].outcome == "found"


@pytest.mark.slow
def test_results_are_json() -> None:
    import json

    result = benchmark(one_core(), outages_s={"process": 0.1})
    text = json.dumps(result.to_json(), allow_nan=False)
    document = json.loads(text)
    assert document["schema"] == "routecast-benchmark/1"
    assert document["trials"] == len(result.trials)
    assert set(result.procedures) == {"throughput", "latency", "frame_loss", "back_to_back", "recovery", "reset"}


def test_percentiles_are_medians_over_the_repetitions() -> None:
    class Drifting(Fluid):
        def trial(self, load, duration_s):  # type: ignore[no-untyped-def]  # a stand-in
            trial = Fluid.trial(self, load, duration_s)
            n = len(self.trials)
            delay = Delay(mean_s=n * 1e-6, min_s=0.0, p50_s=n * 2e-6, p99_s=n * 3e-6, p999_s=n * 5e-6, max_s=1.0)
            return replace(trial, latency=delay)

    plan = plan_of(profile_with(latency={"rates": (1.0,), "repeats": 5}), procedures=["latency"])
    result = run_benchmark(plan, PlainRig(evaluator=Drifting(2e6), link=LINK_BPS))
    assert result.latency is not None
    (row,) = result.latency.rows
    first = row.latency_s.values[0] / 1e-6
    # RFC 8219 sec. 7.2: median of the repetitions' medians and 99.9th percentiles; RFC 2544: mean of the means.
    assert row.latency_s.mean == pytest.approx((first + 2) * 1e-6)
    assert row.typical_s == pytest.approx((first + 2) * 2e-6)
    assert row.worst_s == pytest.approx((first + 2) * 5e-6)
    assert row.pdv_s == pytest.approx((first + 2) * 5e-6)
