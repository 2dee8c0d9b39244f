"""Published latencies over the load (``data/latency``), as routers of sources."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby
from typing import Final, Literal

from routecast.calibration.latency import LatencyRow, Statistic
from routecast.evaluate.points import RateKind

__all__ = ["SOURCES", "PublishedLatency", "published_latencies", "published_rows"]

SOURCES: Final = ("csit1701", "packetmill2021", "tinynf2020", "vppxc2020")
_FROM_US: Final = 1e-6
_NOISE: Final = {"p50": "noise_p50_ratio", "mean": "noise_p50_ratio", "p99": "noise_p99_ratio"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedLatency:
    """One statistic of one router over the load, loads ascending.

    ``frame_s``: time of a frame on one core; ``rate_kind``: that of the rate that loads are shares of.
    """

    source: str
    router: str
    statistic: Statistic
    frame_s: float
    rate_kind: RateKind
    rows: tuple[LatencyRow, ...]


def published_latencies(
    kind: Literal["body", "tail"], sources: Sequence[str] = SOURCES
) -> tuple[PublishedLatency, ...]:
    """Return the published medians and means (``body``: a mean where a source has no median), or p95 and p99."""
    wanted: tuple[Statistic, ...] = ("p50", "mean") if kind == "body" else ("p95", "p99")
    return tuple(_measured(wanted, sources, is_first=kind == "body"))


def _measured(wanted: tuple[Statistic, ...], sources: Sequence[str], *, is_first: bool) -> Iterator[PublishedLatency]:
    for source in sources:
        rows = published_rows(source)
        stated = [statistic for statistic in wanted if f"latency_{statistic}_us" in rows[0]]
        for statistic in stated[:1] if is_first else stated:
            for router, of_router in groupby(rows, _router):
                whole = list(of_router)
                yield PublishedLatency(
                    source=source,
                    router=router,
                    statistic=statistic,
                    frame_s=float(whole[0].get("frame_s") or 1.0 / float(whole[0]["capacity_pps"])),
                    rate_kind="overload" if whole[0].get("capacity_kind") == "overload" else "no_loss",
                    rows=tuple(sorted((_row(row, statistic) for row in whole), key=lambda row: row.load_ratio)),
                )


def _router(row: Mapping[str, str]) -> str:
    return " ".join(row[name] for name in ("series", "cores", "frame_bytes", "direction", "rate_pps") if name in row)


def _row(row: Mapping[str, str], statistic: Statistic) -> LatencyRow:
    noise = row.get(_NOISE.get(statistic, ""), "")
    return LatencyRow(
        load_ratio=float(row["latency_load_ratio"]),
        latency_s=float(row[f"latency_{statistic}_us"]) * _FROM_US,
        noise_ratio=float(noise) if noise else None,
    )


def published_rows(source: str) -> list[dict[str, str]]:
    """Return the rows of a source as its table has them: text by column."""
    table = files("routecast.replications") / "data" / "latency" / f"{source}.csv"
    lines = table.read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))
