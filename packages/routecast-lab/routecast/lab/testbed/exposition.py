"""Pages of metrics in the text format of Prometheus, as its client writes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from routecast.lab.testbed.metrics_server import SliceRates

__all__ = ["measurement_text", "metrics_text"]


def metrics_text(families: Iterable[Metric]) -> str:
    """Write families of metrics in the text format 0.0.4 of Prometheus."""
    return generate_latest(_Families(families)).decode()


def measurement_text(sums: Mapping[str, int], last: SliceRates | None) -> str:
    """Write the metrics of a measurement: ``sums`` of frames by name since its start, and its last slice."""
    return metrics_text(_families(sums, last))


def _families(sums: Mapping[str, int], last: SliceRates | None) -> Iterator[Metric]:
    for name, count in sums.items():
        meaning = f"Frames {name} since the start of the measurement."
        yield CounterMetricFamily(f"routecast_measure_{name}_frames", meaning, value=count)
    if last is None:
        return
    for name, meaning, rate in (
        ("offered_pps", "Frames sent per second in the last slice.", last.offered_pps),
        ("forwarded_pps", "Frames received per second in the last slice.", last.forwarded_pps),
        ("loss_ratio", "Lost frames of the last slice over its sent frames.", last.loss_ratio),
    ):
        yield GaugeMetricFamily(f"routecast_measure_{name}", meaning, value=rate)
    if (latency := last.counts.latency) is not None:
        seconds = GaugeMetricFamily(
            "routecast_measure_latency_seconds", "Latency in the last slice, by quantile.", labels=["quantile"]
        )
        for quantile, value_s in (("0.5", latency.p50_s), ("0.99", latency.p99_s), ("0.999", latency.p999_s)):
            seconds.add_metric([quantile], value_s)
        yield seconds


class _Families(Collector):
    """Families of metrics that are written once, without those of the process."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        """Return the families."""
        return self._families
