"""What looks came to, as a page for Prometheus (text format 0.0.4)."""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from routecast.errors import QuantityProblem
from routecast.lab.testbed.metrics_server import MetricsServer
from routecast.lab.watch._rounds import LookRound, Rounds

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

__all__ = ["METRICS", "LatestRound", "parse_endpoint", "serve"]

METRICS: Final[Mapping[str, str]] = {
    "routecast_watch_rate_packets_per_second": "Packets polled a second in the last look.",
    "routecast_watch_busy_ratio": "Share of the last look in which the poller had a core.",
    "routecast_watch_saturation_packets_per_second": "Load at saturation: of the last look, else of those before.",
    "routecast_watch_saturation_low_packets_per_second": "Lower end of its 95 % interval.",
    "routecast_watch_saturation_high_packets_per_second": "Upper end of its 95 % interval.",
    "routecast_watch_headroom_ratio": "Load at saturation over the rate of the last look, less 1.",
    "routecast_watch_daily_peak_packets_per_second": "Load at the daily peak.",
    "routecast_watch_loss_at_peak_probability": "Probability that the daily peak is above the load at saturation.",
    "routecast_watch_alarm": "Whether an alarm is firing.",
    "routecast_watch_look_age_seconds": "Time since the end of the last look that did not fail.",
    "routecast_watch_looks_total": "Looks that did not fail.",
    "routecast_watch_failed_looks_total": "Looks that failed.",
    "routecast_watch_lost_packets_total": "Packets lost during looks, by place; between looks nothing is counted.",
}
"""What the page has, with its meaning; ``_total`` are counters. What is not known is left out."""

_ENDPOINT: Final = re.compile(r"(?:(?P<address>\[[0-9A-Fa-f:.]+\]|[^:\s\[\]]+):)?(?P<port>\d{1,5})")


def parse_endpoint(text: str) -> tuple[str, int]:
    """Read ``PORT`` or ``ADDRESS:PORT``; the address is 127.0.0.1 without.

    Raises QuantityProblem: the text is neither.

    Examples
    --------
    >>> parse_endpoint("9464"), parse_endpoint("[::1]:9464")
    (('127.0.0.1', 9464), ('::1', 9464))
    """
    match = _ENDPOINT.fullmatch(text.strip())
    if match is None or int(match["port"]) > 65_535:
        raise QuantityProblem(
            text, f'--prometheus "{text[:60]}" is no port: write one up to 65535, such as 9464, or 127.0.0.1:9464'
        )
    return (match["address"] or "127.0.0.1").strip("[]"), int(match["port"])


class LatestRound:
    """The last round of looks; another thread may read its page."""

    def __init__(self, rounds: Rounds, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._lock, self._clock_s = threading.Lock(), clock_s
        memory = rounds.memory
        self._labels = {"interface": memory.interface, "netns": memory.netns or ""}
        self._rounds = rounds
        self._round: LookRound | None = None
        self._end_s = math.nan
        self._counts: tuple[int, int, dict[str, int]] = (0, 0, {})

    def update(self, latest: LookRound) -> None:
        """Take over a round."""
        with self._lock:
            self._counts = (self._rounds.looks, self._rounds.failed_looks, dict(self._rounds.lost))
            if latest.watched is not None:
                self._round, self._end_s = latest, self._clock_s()

    def page(self) -> str:
        """Return the page."""
        from routecast.lab.testbed.exposition import metrics_text  # loads prometheus_client

        with self._lock:
            return metrics_text(list(self._families()))

    def _families(self) -> Iterator[Metric]:
        from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

        for name, samples in self._samples().items():
            kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            further = [key for key in ("place", "alarm") if any(key in labels for labels, _ in samples)]
            family = kind(name, METRICS[name], labels=[*self._labels, *further])
            for labels, value in samples:
                if math.isfinite(value):
                    family.add_metric([*self._labels.values(), *(labels[key] for key in further)], value)
            if family.samples:
                yield family

    def _samples(self) -> dict[str, list[tuple[dict[str, str], float]]]:
        looks, failed, lost = self._counts
        values: dict[str, float] = {"looks_total": looks, "failed_looks_total": failed}
        latest = self._round
        alarms: list[tuple[dict[str, str], float]] = []
        if latest is not None and latest.watched is not None:
            watched, saturation = latest.watched, latest.saturation
            values |= {
                "rate_packets_per_second": watched.rate_pps,
                "busy_ratio": watched.busy_ratio,
                "saturation_packets_per_second": saturation.pps,
                "saturation_low_packets_per_second": saturation.low_pps,
                "saturation_high_packets_per_second": saturation.high_pps,
                "headroom_ratio": saturation.pps / watched.rate_pps - 1.0 if watched.rate_pps else math.nan,
                "daily_peak_packets_per_second": latest.peak.pps,
                "loss_at_peak_probability": latest.loss_at_peak.ratio,
                "look_age_seconds": self._clock_s() - self._end_s,
            }
            alarms = [
                ({"alarm": str(now.alarm)}, float(now.is_firing))
                for now in latest.alarms
                if now.is_firing or now.verdict.state == "fine"
            ]
        samples: dict[str, list[tuple[dict[str, str], float]]] = {
            f"routecast_watch_{name}": [({}, value)] for name, value in values.items()
        }
        samples["routecast_watch_alarm"] = alarms
        samples["routecast_watch_lost_packets_total"] = [({"place": place}, count) for place, count in lost.items()]
        return samples


def serve(text: str, latest: LatestRound) -> MetricsServer:
    """Serve the page at ``/metrics`` of ``PORT`` or ``ADDRESS:PORT`` until it is closed.

    Raises QuantityProblem: the text is neither; EnvironmentProblem: the port is in use, or the address is not ours.
    """
    address, port = parse_endpoint(text)
    return MetricsServer(port, latest.page, address=address)
