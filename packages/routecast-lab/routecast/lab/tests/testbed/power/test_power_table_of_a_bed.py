"""The power benchmark's table on a bed that stands in: what is sent for each line, and what is metered when."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from power_fakes import FakeMeter
from testbed_fakes import FakeBed, FakeSnapshotReader, FakeTester

from routecast.errors import CriterionFailed, EnvironmentProblem, FileProblem, ModelProblem
from routecast.lab.power.table import PowerTable, PowerTableSettings
from routecast.lab.power.wire import intervals_s, search_profile, wire_power_table
from routecast.lab.testbed.checks import Limits
from routecast.lab.testbed.measure import Measure
from routecast.lab.testbed.meters import PowerReading
from routecast.lab.testbed.timed import TimedMeasure
from routecast.load.flows import FlowSet
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad

IDLE_W, FRAME_J, CAPACITY_PPS = 80.0, 20e-6, 2e6
LOAD = OfferedLoad(rate_pps=1.0, frames=FrameMix.imix(), flows=FlowSet.crafted(2, ports=2))


@pytest.fixture(autouse=True)
def both_ports_receive(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = itertools.count(1)

    def bend(links: dict[str, Any]) -> None:
        links["rcfake0"]["rx_frames"] = next(reads) * 10**9

    monkeypatch.setattr(FakeSnapshotReader, "bend", staticmethod(bend))
    monkeypatch.setattr("routecast.lab.testbed.measure.SnapshotReader", FakeSnapshotReader)


class Router(FakeTester):
    """A tester before a router that forwards at most ``capacity_pps`` and loses the rest."""

    def __init__(self, capacity_pps: float = CAPACITY_PPS, change: Callable[[dict[str, Any]], None] | None = None):
        super().__init__(*([change] if change else []))
        self.capacity_pps = capacity_pps

    def trial(self, request: str, on_progress: Callable[[float], object] | None = None) -> str:
        offered_pps = math.fsum(stream["rate_pps"] for stream in json.loads(request)["streams"])
        self.loss_ratio = max(0.0, 1.0 - self.capacity_pps / offered_pps)
        return super().trial(request, on_progress)


class Wattmeter(FakeMeter):
    """Draws idle watts, and joules for each frame that the router has forwarded since the meter was started."""

    def __init__(self, router: Router) -> None:
        super().__init__(())
        self.router = router
        self.seen = 0

    def start(self) -> None:
        super().start()
        self.seen = len(self.router.counted)

    def stop(self) -> PowerReading:
        sent = self.router.counted[self.seen :]
        offered_pps = math.fsum(stream["rate_pps"] for request in sent for stream in request["streams"])
        self.spans = ((0.0, 1e9, IDLE_W + FRAME_J * min(offered_pps, self.router.capacity_pps)),)
        return super().stop()


def table_of(router: Router, meter: FakeMeter | None, **settings: Any) -> PowerTable:
    measure = Measure(
        FakeBed(),  # type: ignore[arg-type]  # as much of a bed as Measure needs
        tester=router,
        limits=Limits(steal_ratio=1.0),
        retries=1,
        meter=meter,
    )
    with measure:
        return wire_power_table(measure, LOAD, settings=PowerTableSettings(**settings))


def rate_of(request: Mapping[str, Any]) -> float:
    return math.fsum(stream["rate_pps"] for stream in request["streams"])


@pytest.mark.slow
def test_every_line_has_the_watts_of_its_load_and_idle_is_the_meter_alone() -> None:
    router = Router()
    table = table_of(router, Wattmeter(router), base_w=42.0)
    base, idle, plus, typical, loaded = table.rows
    width = search_profile().throughput.base.width
    # A search that tolerates no loss ends at most one width below what the router forwards.
    assert CAPACITY_PPS * (1.0 - width) <= table.throughput_pps <= CAPACITY_PPS
    assert (base.power_w, base.not_measured) == (42.0, "")
    assert "given by the user" in base.state
    assert (idle.power_w, idle.intended_pps, idle.forwarded_pps) == (IDLE_W, 0.0, 0.0)
    assert plus.intended_pps == 2.0  # a frame a second on both ports
    assert plus.power_w == pytest.approx(IDLE_W + 2 * FRAME_J)
    assert typical.power_w == pytest.approx(IDLE_W + FRAME_J * 0.3 * table.throughput_pps)
    assert loaded.power_w == pytest.approx(IDLE_W + FRAME_J * table.throughput_pps)
    assert loaded.packet_j * loaded.forwarded_pps == pytest.approx(loaded.power_w)
    assert (table.scope, table.source, table.evaluator) == ("wall", "fake", "measure")
    # The last requests are the lines: both ports send, and full load comes last.
    assert [rate_of(request) for request in router.counted[-3:]] == pytest.approx(
        [2.0, 0.3 * table.throughput_pps, table.throughput_pps]
    )
    assert all(sorted(stream["port"] for stream in request["streams"]) == [0, 1] for request in router.counted)


@pytest.mark.slow
def test_the_search_is_not_metered_and_the_table_says_how_it_was_done() -> None:
    router = Router()
    meter = Wattmeter(router)
    table = table_of(router, meter)
    assert meter.calls == 4 * ["start", "stop"]  # idle, idle+, typical, loaded
    assert len(router.counted) > 3 + 5
    text = "\n".join(table.notes)
    for words in (
        "loss tolerance 0 %",
        "profile quick",
        "width 2 %",
        "idle: no frame was sent",
        "meter fake, scope wall, a sample each 100 ms",
        "the watts include both",
    ):
        assert words in text
    assert math.isnan(table.rows[0].power_w)
    assert table.rows[0].not_measured
    assert table.facts["power"] == {"meter": "fake", "scope": "wall"}


@pytest.mark.slow
def test_each_line_is_stabilised_at_its_own_load_where_that_has_a_frame_to_send() -> None:
    router = Router()
    table = table_of(router, Wattmeter(router), stabilise_s=0.1)
    full_pps = table.throughput_pps
    lines = [(rate_of(request), request["duration_s"]) for request in router.counted[-5:]]
    # Half a tenth of a frame is due at idle+ while it is stabilised, so nothing is sent then.
    expected = [(2.0, 1.0), *((share * full_pps, length) for share in (0.3, 1.0) for length in (0.1, 1.0))]
    assert lines == [pytest.approx(line) for line in expected]
    assert (table.stabilise_s, table.measure_s) == (0.1, 1.0)


@pytest.mark.slow
def test_a_stabilising_trial_is_not_metered_nor_tried_again() -> None:
    def held_up(outcome: dict[str, Any]) -> None:
        # Only trials of a tenth of a second; those of the search have two.
        outcome["stopped"] = outcome["streams"][0]["last_sent_s"] < 0.15

    router = Router(change=held_up)
    meter = Wattmeter(router)
    table_of(router, meter, stabilise_s=0.1)
    assert [request["duration_s"] for request in router.counted[-4:]] == [0.1, 1.0, 0.1, 1.0]
    assert meter.calls == 4 * ["start", "stop"]


@pytest.mark.slow
def test_a_rate_that_passes_short_trials_alone_is_lowered_until_it_passes_a_line() -> None:
    class Buffered(Router):
        """Forwards everything for less than half a second, then 5 % less than in short trials."""

        def trial(self, request: str, on_progress: Callable[[float], object] | None = None) -> str:
            is_long = json.loads(request)["duration_s"] > 0.5
            self.capacity_pps = (0.95 if is_long else 1.0) * CAPACITY_PPS
            return super().trial(request, on_progress)

    router = Buffered()
    table = table_of(router, Wattmeter(router))
    width = search_profile().throughput.base.width
    # The second step down is of two widths.
    assert 0.95 * (1.0 - 2.0 * width) * CAPACITY_PPS <= table.throughput_pps <= 0.95 * CAPACITY_PPS
    assert table.rows[-1].loss_ratio == 0.0
    assert any("lost nothing" in note for note in table.notes)


@pytest.mark.slow
def test_a_router_as_fast_as_the_wires_is_not_reported_to_limit_them() -> None:
    router = Router(capacity_pps=1e12)
    table = table_of(router, Wattmeter(router))
    frame_bits = 8 * (FrameMix.imix().mean_bytes + 20)
    width = search_profile().throughput.base.width
    assert table.throughput_pps == pytest.approx((1.0 - width) * 2 * 10e9 / frame_bits)
    assert "the links, not the router, limit the throughput" in table.notes


@pytest.mark.slow
def test_a_meter_that_tells_nothing_ends_the_table_with_its_reason() -> None:
    with pytest.raises(EnvironmentProblem, match="it slept"):
        table_of(Router(), FakeMeter((), notes=("it slept",)))
    with pytest.raises(EnvironmentProblem, match="gone"):
        table_of(Router(), FakeMeter((), refusal="gone"))
    with pytest.raises(EnvironmentProblem, match="no meter was read"):
        table_of(Router(), None)


@pytest.mark.slow
def test_a_line_whose_trials_stay_invalid_is_no_line() -> None:
    def stopped(outcome: dict[str, Any]) -> None:
        # Only idle+ has so few frames.
        outcome["stopped"] = outcome["streams"][0]["sent_frames"] < 10

    router = Router(change=stopped)
    with pytest.raises(CriterionFailed, match="stopped before its end"):
        table_of(router, Wattmeter(router))


@pytest.mark.slow
def test_a_router_that_loses_at_every_rate_has_no_table() -> None:
    # Slow routers have a rate without loss, too, however far below the medium's.
    router = Router(capacity_pps=1e-3)
    with pytest.raises(ModelProblem, match="no rate without loss"):
        table_of(router, Wattmeter(router))


def test_lines_too_short_for_a_frame_a_second_and_devices_without_a_load_are_refused() -> None:
    with pytest.raises(ModelProblem, match="one frame a second"):
        table_of(Router(), FakeMeter(()), measure_s=0.5)
    timed = TimedMeasure(FakeBed(), meter=FakeMeter(()))  # type: ignore[arg-type]  # as above
    with pytest.raises(FileProblem, match="makes its frames itself"):
        wire_power_table(timed, LOAD, settings=PowerTableSettings())


def test_lengths_follow_the_meter_and_never_fall_below_a_frame_a_second() -> None:
    assert intervals_s(2.0) == (6.0, 20.0)
    for sample_s in (1e-3, 0.1, math.inf):
        stabilise_s, measure_s = intervals_s(sample_s)
        assert measure_s >= 1.0
        assert 0.0 < stabilise_s < measure_s
