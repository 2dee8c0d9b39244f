"""What a router counts, for Prometheus (text format 0.0.4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["metrics"]

_COUNTERS = {
    "sent_frames": "Frames sent to a back-end router.",
    "sent_octets": "Octets sent to a back-end router.",
    "returned_frames": "Frames that a back-end router returned.",
    "returned_octets": "Octets that a back-end router returned.",
    "over_the_cap": "Frames dropped by the emulated capacity.",
    "deaths": "Times that it was found dead.",
    "revivals": "Times that it came back.",
}


def metrics(status: Mapping[str, Any]) -> str:
    """Return a status as the text that Prometheus reads."""
    return "\n".join(_lines(status)) + "\n"


def _lines(status: Mapping[str, Any]) -> Iterator[str]:
    of = f'router="{status["name"]}"'
    for key, meaning in _COUNTERS.items():
        yield f"# HELP routecast_multistage_{key}_total {meaning}"
        yield f"# TYPE routecast_multistage_{key}_total counter"
        for one in status["routers"]:
            yield f'routecast_multistage_{key}_total{{{of},element="{one["name"]}"}} {one[key]}'
    yield "# HELP routecast_multistage_up Whether an element takes frames."
    yield "# TYPE routecast_multistage_up gauge"
    for one in [*status["routers"], *status["balancers"]]:
        up = int(one["state"] in ("active", "draining"))
        yield f'routecast_multistage_up{{{of},element="{one["name"]}",state="{one["state"]}"}} {up}'
    yield "# HELP routecast_multistage_dropped_frames_total Frames that a load balancer did not forward, by port."
    yield "# TYPE routecast_multistage_dropped_frames_total counter"
    for one in status["balancers"]:
        for port, dropped in one["dropped_by_port"].items():
            labels = f'{of},element="{one["name"]}",port="{port}"'
            for reason, count in dropped.items():
                yield f'routecast_multistage_dropped_frames_total{{{labels},reason="{reason}"}} {count}'
    yield "# HELP routecast_multistage_epoch Of the table that is in force."
    yield "# TYPE routecast_multistage_epoch gauge"
    yield f"routecast_multistage_epoch{{{of}}} {status['epoch']}"
