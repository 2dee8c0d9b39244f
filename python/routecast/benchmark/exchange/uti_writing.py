"""CSIT UTI JSON, model 1.5.1: written.

A test case is all records of one title and frame size. With both bounds of an NDR and a PDR it becomes an ``ndrpdr``
result; otherwise what came back, one rate a trial, becomes ``mrr``, which is what a list of trials at a load is. The
limit of a tester is no upper bound, so it is an ``mrr`` as well, which says so.
Invalid trials are left out; a test that has none but invalid ones is a failed one, as the model wants it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from statistics import fmean, pstdev

from routecast.benchmark.exchange.record import LIMITS, NO_THROUGHPUT, Record
from routecast.benchmark.exchange.uti import LOADS, MODEL
from routecast.errors import FileProblem, Problem
from routecast.evaluate.trial import Delay

__all__ = ["uti_documents"]

Json = dict[str, object]

_UNKNOWN = "unknown"


def uti_documents(
    records: Sequence[Record], *, name: str = "records", now: datetime | None = None
) -> dict[str, Json]:
    """Return one document a test case, by a name that may be a file's stem.

    Parameters
    ----------
    records : sequence of Record
    name : str
        Of the source, for messages.
    now : datetime or None
        Time of the export, which stands for start and end where the records do not bring them.

    Raises
    ------
    routecast.errors.FileProblem
        No record gives a rate that the model knows.
    """
    at = (now or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")
    cases: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        size = "" if math.isnan(record.frame_bytes) else f"{record.frame_bytes:g}b"
        cases.setdefault((record.title, size), []).append(record)
    documents: dict[str, Json] = {}
    for (title, size), case in cases.items():
        document = _document(title, size, case, at)
        if document is None:
            place = f"{title or 'trials'} {size}".strip()
            raise FileProblem(
                name,
                [
                    Problem(
                        place,
                        "has no trial that measures the rate of received frames: UTI has no place for it",
                    )
                ],
            )
        documents[_slug(str(document["test_id"]), documents)] = document
    return documents


def _slug(text: str, taken: Mapping[str, object]) -> str:
    stem = re.sub(r"[^a-z0-9.-]+", "-", text.lower()).strip("-.")[-120:] or "test"
    number, slug = 2, stem
    while slug in taken:
        slug, number = f"{stem}-{number}", number + 1
    return slug


def _document(title: str, size: str, case: Sequence[Record], at: str) -> Json | None:
    result, passed = _result(case), any(record.trial.is_valid for record in case)
    if result is None:
        return None
    first = case[0]
    kept = first.facts.get("uti")
    envelope: Json = dict(kept) if isinstance(kept, Mapping) else {}
    long_name = "-".join(
        filter(None, (size, f"{first.cores}c" if first.cores else "", _words(title) or "trials"))
    )
    device, tester = _name_and_version(first.device), _name_and_version(first.tester)
    limits = dict.fromkeys(str(r.facts.get("limit")) for r in case)
    durations = [record.trial.duration_s for record in case if math.isfinite(record.trial.duration_s)]
    default: Json = {
        "duration": sum(durations),
        "dut_type": device[0],
        "dut_version": device[1],
        "end_time": at,
        "hosts": [_UNKNOWN],
        "telemetry": [],
        "message": "" if passed else "; ".join(dict.fromkeys(why for r in case for why in r.trial.invalid)),
        "passed": passed,
        "start_time": at,
        "tags": ["routecast"],
        "test_documentation": " ".join(
            (
                f"Converted by routecast from {first.source or 'its own trials'}.",
                *(f"Note: {LIMITS[limit]}." for limit in limits if limit in LIMITS),
            )
        ),
        "test_id": f"routecast.{long_name}",
        "test_name_long": long_name,
        "test_name_short": _words(title) or "trials",
        "test_type": result["type"],
        "tg_type": tester[0],
        "tg_version": tester[1],
    }
    return {**default, **envelope, "result": result, "version": MODEL}


def _name_and_version(text: str) -> tuple[str, str]:
    name, _, version = text.strip().partition(" ")
    return (name.lower() or _UNKNOWN, version.strip() or _UNKNOWN)


def _words(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def _result(case: Sequence[Record]) -> Json | None:
    bounds = {(r.goal, r.bound): r for r in case if r.bound and math.isfinite(r.trial.intended_pps)}
    if {("ndr", "lower"), ("ndr", "upper"), ("pdr", "lower"), ("pdr", "upper")} <= set(bounds):
        result: Json = {"type": "ndrpdr"}
        for goal in ("ndr", "pdr"):
            result[goal] = {end: _rate(bounds[goal, end]) for end in ("lower", "upper")}
        for way in ("forward", "reverse"):
            latency = _latency(case, way)
            if latency:
                result[f"latency_{way}"] = latency
        return result
    if {("soak", "lower"), ("soak", "upper")} <= set(bounds):
        return {
            "type": "soak",
            "critical_rate": {end: _rate(bounds["soak", end]) for end in ("lower", "upper")},
        }
    for record in case:
        if record.goal == "reconf":
            packets = {"value": record.facts.get("lost_frames", 0), "unit": "packets"}
            time = {"value": record.facts.get("interrupted_s", 0), "unit": "s"}
            return {
                "type": "reconf",
                "aggregate_rate": _rate(record),
                "loss": {"packet": packets, "time": time},
            }
    rates = list(_received(case))
    if not rates:
        return None
    values: Json = {"values": rates, "avg": fmean(rates), "stdev": pstdev(rates), "unit": "pps"}
    return {"type": "mrr", "receive_rate": {"rate": values}}


def _received(case: Sequence[Record]) -> Iterator[float]:
    """Rates that came back: at the goal of a search where there is one, else of every valid trial of a search."""
    measuring = [r for r in case if r.goal not in NO_THROUGHPUT]
    found = [r for r in measuring if r.goal != "search"] or measuring
    valid = [r for r in found if r.trial.is_valid] or found
    yield from (r.trial.forwarded_pps for r in valid if math.isfinite(r.trial.forwarded_pps))


def _rate(record: Record) -> Json:
    rate: Json = {"rate": {"value": record.trial.intended_pps, "unit": "pps"}}
    bandwidth = record.facts.get("bandwidth_bps")
    if bandwidth is None and math.isfinite(record.frame_bytes):
        bandwidth = record.trial.intended_pps * 8.0 * (record.frame_bytes + 20.0)  # S2: CSIT counts layer 1
    if bandwidth is not None:
        rate["bandwidth"] = {"value": bandwidth, "unit": "bps"}
    return rate


def _latency(case: Sequence[Record], way: str) -> Json | None:
    by_load = {
        str(r.facts.get("load")): r.trial.latency
        for r in case
        if r.goal == "latency" and r.facts.get("way") == way and r.trial.latency
    }
    if set(by_load) != set(LOADS):
        return None
    return {name: _microseconds(delay) for name in LOADS if (delay := by_load[name])}


def _microseconds(delay: Delay) -> Json:
    return {
        "min": _whole(delay.min_s),
        "avg": _whole(delay.mean_s),
        "max": max(_whole(delay.max_s), 1),
        "hdrh": delay.hdr_base64,
        "unit": "us",
    }


def _whole(time_s: float) -> int:
    return round(time_s * 1e6) if math.isfinite(time_s) else 0
