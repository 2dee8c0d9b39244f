"""The counts of a trial: sums of the tester's outcomes over streams and slices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from routecast.evaluate.trial import Delay

_TOTALS = (
    *("intended_frames", "sent_frames", "received_frames", "lost_frames"),
    *("duplicated_frames", "reordered_frames", "corrupted_frames", "received_bytes"),
)
_QUANTILES = {"p50_s": 0.5, "p90_s": 0.9, "p99_s": 0.99, "p999_s": 0.999}


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """One part of a trial, sent by one request ``from_s`` seconds after the start of the trial."""

    outcome: Mapping[str, Any]
    from_s: float
    duration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialCounts:
    """Sums over streams and slices; times are seconds from the start of the trial, NaN without lost frames."""

    intended_frames: int
    sent_frames: int
    received_frames: int
    lost_frames: int
    duplicated_frames: int
    reordered_frames: int
    corrupted_frames: int
    foreign_frames: int
    received_bytes: int
    first_loss_s: float
    last_loss_s: float
    longest_gap_s: float
    longest_gap_at_s: float
    latency: Delay | None
    delay_variation: Delay | None


def slice_windows_s(slices: Sequence[Slice]) -> list[tuple[float, float]]:
    """Return begin and end of each slice on the monotonic clock."""
    begins = [float(part.outcome["clock"]["monotonic_s"]) for part in slices]
    return [(begin_s, begin_s + part.duration_s) for begin_s, part in zip(begins, slices, strict=True)]


def trial_counts(slices: Sequence[Slice]) -> TrialCounts:
    """Add up the outcomes of a trial."""
    streams = [(part, stream) for part in slices for stream in part.outcome["streams"]]

    def total(name: str) -> int:
        return sum(int(stream[name]) for _, stream in streams)

    def instants(name: str) -> list[float]:
        return [part.from_s + float(stream[name]) for part, stream in streams if stream.get(name) is not None]

    gaps = [
        (float(stream["longest_gap_s"]), part.from_s + float(stream["longest_gap_at_s"])) for part, stream in streams
    ]
    gap_s, gap_at_s = max(gaps, default=(math.nan, math.nan))
    latency = _delay([stream["latency"] for _, stream in streams if stream.get("latency")])
    return TrialCounts(
        **{name: total(name) for name in _TOTALS},
        foreign_frames=sum(int(part.outcome["foreign_frames"]) for part in slices),
        first_loss_s=min(instants("first_loss_s"), default=math.nan),
        last_loss_s=max(instants("last_loss_s"), default=math.nan),
        longest_gap_s=gap_s,
        longest_gap_at_s=gap_at_s,
        latency=latency,
        delay_variation=_delay_variation(latency),
    )


def _delay(parts: Sequence[Mapping[str, Any]]) -> Delay | None:
    """Return the delay of all frames, with the quantiles of the merged histograms."""
    parts = [part for part in parts if part["count"]]
    if not parts:
        return None
    frames = sum(int(part["count"]) for part in parts)
    if len(parts) == 1:
        hdr = str(parts[0].get("hdr_base64", ""))
        quantiles = {name: float(parts[0][name]) for name in _QUANTILES}
    else:
        from routecast import _core

        hdr = _core.hdr_merged([str(part["hdr_base64"]) for part in parts])
        quantiles = dict(zip(_QUANTILES, _core.hdr_quantiles_s(hdr, list(_QUANTILES.values())), strict=True))
    method = f"HDR histogram of {frames:,} frames, from the stamp before the wire to the receiver"
    return Delay(
        mean_s=math.fsum(float(part["mean_s"]) * int(part["count"]) for part in parts) / frames,
        min_s=min(float(part["min_s"]) for part in parts),
        max_s=max(float(part["max_s"]) for part in parts),
        method=f"{method} (RFC 1242 sec. 3.8)",
        hdr_base64=hdr,
        **quantiles,
    )


def _delay_variation(latency: Delay | None) -> Delay | None:
    """Return the packet delay variation of RFC 5481 sec. 4.2: the delay's distribution minus its minimum."""
    if latency is None:
        return None
    min_s = latency.min_s
    return Delay(
        mean_s=latency.mean_s - min_s,
        min_s=0.0,
        # A quantile is the middle of a bucket, which may lie below the exact minimum.
        **{name: max(getattr(latency, name) - min_s, 0.0) for name in _QUANTILES},
        max_s=latency.max_s - min_s,
        method="latency minus its minimum (RFC 5481 sec. 4.2)",
    )
