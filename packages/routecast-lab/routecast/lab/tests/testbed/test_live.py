"""A trial while it runs: a line a second, and a page for Prometheus."""

from __future__ import annotations

import urllib.error
import urllib.request
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from testbed_fakes import FakeBed, FakeSnapshotReader, FakeTester

from routecast.errors import EnvironmentProblem
from routecast.lab.testbed._counts import Slice
from routecast.lab.testbed.measure import Measure
from routecast.lab.testbed.metrics_server import MetricsServer, RunningMeasurement
from routecast.load import OfferedLoad


@pytest.fixture(autouse=True)
def fake_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("routecast.lab.testbed.measure.SnapshotReader", FakeSnapshotReader)


def lossy(outcome: dict[str, Any]) -> None:
    sent = outcome["streams"][0]["sent_frames"]
    outcome["streams"][0].update(received_frames=sent - 10, lost_frames=10)


def read(port: int, path: str = "/metrics") -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60.0) as page:
        return str(page.read().decode())


def test_each_slice_is_reported_as_it_ends_and_the_sums_are_the_trials() -> None:
    measurement, rates = RunningMeasurement(), []

    def add(part: Slice) -> None:
        rates.append(measurement.add(part))

    with Measure(FakeBed(), slice_s=0.1, on_slice=add, tester=FakeTester(lossy)) as evaluator:
        trial = evaluator.trial(OfferedLoad(rate_pps=1e5), 0.5)
    assert [round(second.end_s, 3) for second in rates] == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert rates[0].loss_ratio == pytest.approx(1e-3)
    assert rates[0].describe().startswith("100 ms: 100 kpps offered, 99.9 kpps forwarded, 0.1 % lost, latency p50")
    assert not measurement.is_repetition
    families = {family.name: family for family in text_string_to_metric_families(measurement.exposition())}
    kinds = dict.fromkeys(("sent_frames", "received_frames", "lost_frames"), "counter")
    kinds |= dict.fromkeys(("offered_pps", "forwarded_pps", "loss_ratio", "latency_seconds"), "gauge")
    assert {name.removeprefix("routecast_measure_"): family.type for name, family in families.items()} == kinds
    values = {name: [sample.value for sample in family.samples] for name, family in families.items()}
    assert values["routecast_measure_sent_frames"] == [trial.offered_frames]
    assert values["routecast_measure_lost_frames"] == [trial.dropped_frames]
    assert values["routecast_measure_offered_pps"] == [rates[-1].offered_pps]
    latency = families["routecast_measure_latency_seconds"].samples
    assert [sample.labels for sample in latency] == [{"quantile": name} for name in ("0.5", "0.99", "0.999")]


def test_a_trial_that_is_run_again_is_reported() -> None:
    tester = FakeTester(lambda outcome: outcome.update(stopped=True))
    measurement, repetitions = RunningMeasurement(), []

    def add(part: Slice) -> None:
        measurement.add(part)
        repetitions.append(measurement.is_repetition)

    with Measure(FakeBed(), slice_s=0.1, retries=1, on_slice=add, tester=tester) as evaluator:
        evaluator.trial(OfferedLoad(rate_pps=1e5), 0.2)
    assert repetitions == [False, False, True, False]


def test_a_page_is_served_while_it_is_open_and_a_port_in_use_is_reported() -> None:
    measurement = RunningMeasurement()
    server = MetricsServer(0, measurement.exposition)
    try:
        assert "routecast_measure_sent_frames_total 0" in read(server.port)
        with pytest.raises(urllib.error.HTTPError):
            read(server.port, "/other")
        with pytest.raises(EnvironmentProblem, match=f"port {server.port}"):
            MetricsServer(server.port, measurement.exposition)
    finally:
        server.close()
    with pytest.raises(OSError, match="refused"):
        read(server.port)
