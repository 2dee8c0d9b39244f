"""Counters and states of a router of many machines for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from routecast.lab.testbed.exposition import metrics_text

_COUNTERS = {
    "sent_frames": "Frames sent to a back-end router.",
    "sent_octets": "Octets sent to a back-end router.",
    "returned_frames": "Frames that a back-end router returned.",
    "returned_octets": "Octets that a back-end router returned.",
    "over_the_cap": "Frames dropped above the emulated capacity.",
    "deaths": "Number of verdicts that it is dead.",
    "revivals": "Number of returns after such verdicts.",
}


def metrics(status: Mapping[str, Any]) -> str:
    """Return a status in the text format 0.0.4 of Prometheus."""
    return metrics_text(_families(status))


def _families(status: Mapping[str, Any]) -> Iterator[Metric]:
    name, elements = status["name"], [*status["routers"], *status["balancers"]]
    for key, meaning in _COUNTERS.items():
        counts = _counter(key, meaning, "element")
        for router in status["routers"]:
            counts.add_metric([name, router["name"]], router[key])
        yield counts
    up = _gauge("up", "Whether an element takes frames.", "element", "state")
    for element in elements:
        up.add_metric([name, element["name"], element["state"]], element["state"] in ("active", "draining"))
    yield up
    dropped = _counter(
        "dropped_frames", "Frames that a load balancer did not forward, by port.", "element", "port", "reason"
    )
    for balancer in status["balancers"]:
        for port, of_port in balancer["dropped_by_port"].items():
            for reason, count in of_port.items():
                dropped.add_metric([name, balancer["name"], port, reason], count)
    yield dropped
    seen = _gauge("seen_timestamp_seconds", "When an element gave the last sign, seconds since 1970.", "element")
    for element in elements:
        seen.add_metric([name, element["name"]], round(element["seen_unix_s"], 3))
    yield seen
    claims = _counter("claims_dropped", "Neighbours' claims to addresses that were not believed.", "network", "reason")
    for network, of_network in status["claims_dropped"].items():
        for reason, count in of_network.items():
            claims.add_metric([name, network, reason], count)
    yield claims
    epoch = _gauge("epoch", "Epoch of the table that is in force.")
    epoch.add_metric([name], status["epoch"])
    yield epoch


def _counter(name: str, meaning: str, *labels: str) -> CounterMetricFamily:
    return CounterMetricFamily(f"routecast_multistage_{name}", meaning, labels=["router", *labels])


def _gauge(name: str, meaning: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"routecast_multistage_{name}", meaning, labels=["router", *labels])
