"""Numbers of a benchmark as texts: rates in full, times with their prefix."""

from __future__ import annotations

import math

from routecast.benchmark.result import BenchmarkResult, Stream
from routecast.quantity import format_bps, format_duration

__all__ = ["frames_per_second", "links", "percent_of", "plural", "stream_of", "time"]


def frames_per_second(rate_pps: float) -> str:
    """Write a rate as RFC 2544 wants it, in frames a second.

    Examples
    --------
    >>> frames_per_second(14_880_952.4)
    '14,880,952'
    """
    if not math.isfinite(rate_pps):
        return "–"
    return f"{rate_pps:,.0f}" if rate_pps >= 100.0 else f"{rate_pps:.4g}"


def time(value_s: float) -> str:
    """Write a time, which may be negative.

    Examples
    --------
    >>> time(-2.5e-6)
    '−2.5 µs'
    """
    if not math.isfinite(value_s):
        return "–"
    return ("−" if value_s < 0.0 else "") + format_duration(abs(value_s)).replace(" us", " µs")


def percent_of(ratio: float) -> str:
    """Write a ratio in percent.

    Examples
    --------
    >>> percent_of(0.0821), percent_of(1.0), percent_of(0.00123)
    ('8.2 %', '100 %', '0.123 %')
    """
    if not math.isfinite(ratio):
        return "–"
    text = f"{100.0 * ratio:.3g}" if ratio < 0.01 else f"{100.0 * ratio:.1f}".removesuffix(".0")
    return f"{text} %"


def plural(count: int, noun: str) -> str:
    """Write a count with its noun.

    Examples
    --------
    >>> plural(1, "trial"), plural(1200, "trial")
    ('1 trial', '1,200 trials')
    """
    return f"{count:,} {noun}{'s' if count != 1 else ''}"


def stream_of(result: BenchmarkResult, name: str) -> Stream | None:
    """Return the stream that a row names."""
    return next((stream for stream in result.setup.streams if stream.name == name), None)


def links(result: BenchmarkResult) -> str:
    """Write the rates of the links."""
    rates = list(dict.fromkeys(format_bps(rate) for rate in result.setup.link_bps if math.isfinite(rate)))
    return ", ".join(rates) or "of no known rate"
