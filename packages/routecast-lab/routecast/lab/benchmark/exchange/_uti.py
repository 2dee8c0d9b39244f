"""CSIT UTI JSON, model 1.5.1 (FDio/csit, ``resources/model_schema/test_case.schema.yaml``): read and written.

Rates are the sum of both directions; frames that the tester did not send count as lost. A search gives its last bounds,
each the load of a full-length trial: the loss at the lower one is within the goal (0 for NDR, 0.5 % for PDR), the loss
at the upper one is not. MRR gives the forwarded rate at the greatest load, one value a trial. Latencies are whole
microseconds at 0, 10, 50 and 90 % of the PDR's lower bound, by direction.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from statistics import fmean, pstdev

from routecast.errors import FileProblem, Problem
from routecast.evaluate.trial import Delay
from routecast.lab.benchmark._hdr import delay_of_hdr
from routecast.lab.benchmark.exchange._document import Document, Node
from routecast.lab.benchmark.exchange._record import LIMITS, NAN, NO_THROUGHPUT, Bound, Record, measured
from routecast.load.frames import FrameMix

MODEL = "1.5.1"
PDR_LOSS_RATIO = 0.005
LATENCY_LOAD_RATIOS = {"pdr_0": 0.0, "pdr_10": 0.1, "pdr_50": 0.5, "pdr_90": 0.9}
"""Loads at which latency is measured, over the PDR's lower bound."""

_LATENCY_STEP_S = 1e-6
"""The model has latencies in whole microseconds."""

MIN_LATENCY_PPS = 9000.0
"""Least rate per direction at which latency is measured; the load "0 %" has this rate."""

SOAK_LOSS_RATIO = 1e-7

ENVELOPE = (
    *("duration", "start_time", "end_time", "hosts", "tags", "telemetry", "message", "passed"),
    *("test_documentation", "test_id", "test_name_long", "test_name_short", "test_type"),
    *("dut_type", "dut_version", "tg_type", "tg_version"),
)
"""Keys around the result, which a record keeps so that its export writes them again."""

_FRAME_SIZE = re.compile(r"(?:^|[-.])(\d{2,5})b(?=[-.]|$)", re.IGNORECASE)
_IMIX = re.compile(r"(?:^|[-.])imix(?=[-.]|$)", re.IGNORECASE)
_CORES = re.compile(r"(?:^|[-.])(?:\d+t)?(\d+)c(?=[-.]|$)", re.IGNORECASE)
_NIC = re.compile(r"(?:^|[-.])(\d+)ge(\d+)p(\d+)([a-z][a-z0-9]*)(?=[-.]|$)", re.IGNORECASE)
_SIZE_OR_CORES = re.compile(r"(?:^|(?<=[-.]))(?:\d{2,5}b|imix|(?:\d+t)?\d+c)(?:-|$)", re.IGNORECASE)
_IMIX_MIX = FrameMix.imix()
_IMIX_V4_1_BYTES = _IMIX_MIX.mean_bytes
"""CSIT's IMIX_v4_1: 28 frames of 64 B, 16 of 570 B and 4 of 1518 B (its methodology), 7:4:1."""

_UNKNOWN = "unknown"
_LIMIT_TAG = "limit:"
"""Opens the tag that names the limit of a rate: a rate of the model is a number and cannot be "at least"."""

Json = dict[str, object]


def is_uti(root: Node) -> bool:
    """Whether the document is a test case of CSIT's unified test interface."""
    return "test_id" in root and "result" in root and "version" in root


def read_uti(document: Document) -> tuple[Record, ...]:
    """Read the trials of a test case.

    Raises FileProblem: the test failed, its kind of result forwards no frames, or a value of its model is missing.
    """
    root = document.root
    version = root.need("version").text()
    if version.split(".")[0] != MODEL.split(".", maxsplit=1)[0]:
        root.get("version").problem(f"got {version!r}: routecast reads model 1.x, and writes {MODEL}")
    elif version != MODEL:
        document.notes.append(f"version {version}: read as model {MODEL}")
    kind = root.need("result.type").text()
    document.check()
    if kind not in _READERS and root.get("passed").value is False:
        root.get("message").problem(f"the test failed: {root.get('message').text()[:300]}")
    elif kind not in _READERS:
        message = f"got {kind!r}: routecast reads {', '.join(_READERS)}; other results forward no frames"
        root.at("result.type").problem(message)
    document.check()
    records = tuple(_READERS[kind](document, root.get("result")))
    document.check()
    return records


def _mrr_records(document: Document, result: Node) -> Iterator[Record]:
    rate = result.need("receive_rate.rate")
    _check_unit(rate)
    for number, node in enumerate(rate.need("values").items(), start=1):
        received_pps = node.finite(least=0.0)
        yield _record(
            document,
            goal="mrr",
            offered_pps=NAN,
            forwarded_pps=received_pps,
            note="the file does not state the offered load, the greatest of the links, so the loss is unknown",
            facts={"trial": number},
        )


def _search_records(document: Document, result: Node) -> Iterator[Record]:
    for goal, loss_ratio in (("ndr", 0.0), ("pdr", PDR_LOSS_RATIO)):
        yield from _bound_records(document, result.need(goal), goal, loss_ratio)
    pdr_pps = result.at("pdr.lower.rate.value").number(least=0.0)
    for direction in ("forward", "reverse"):
        latency = result.get(f"latency_{direction}")
        for load, load_ratio in LATENCY_LOAD_RATIOS.items() if latency.value else ():
            node = latency.need(load)
            if node.value:
                yield _latency_record(document, node, direction, load, load_ratio * pdr_pps)


def _bound_records(document: Document, node: Node, goal: str, loss_ratio: float) -> Iterator[Record]:
    bounds: dict[Bound, str] = {"lower": "at most", "upper": "more than"}
    for bound, relation in bounds.items():
        rate = node.need(f"{bound}.rate")
        _check_unit(rate)
        rate_pps = rate.need("value").finite(least=0.0)
        has_no_loss = bound == "lower" and loss_ratio == 0.0
        note = f"the loss ratio at this load was {relation} {loss_ratio:g}, and the file does not state it"
        yield _record(
            document,
            goal=goal,
            bound=bound,
            goal_loss_ratio=loss_ratio,
            offered_pps=rate_pps,
            forwarded_pps=rate_pps if has_no_loss else NAN,
            note="" if has_no_loss else note,
            facts=_bandwidth_fact(node.get(bound)),
        )


def _soak_records(document: Document, result: Node) -> Iterator[Record]:
    return _bound_records(document, result.need("critical_rate"), "soak", SOAK_LOSS_RATIO)


def _reconf_records(document: Document, result: Node) -> Iterator[Record]:
    rate = result.need("aggregate_rate.rate")
    _check_unit(rate)
    offered_pps = rate.need("value").finite(least=0.0)
    lost = result.need("loss.packet.value").finite(least=0.0)
    interrupted_s = result.need("loss.time.value").finite(least=0.0)
    yield _record(
        document,
        goal="reconf",
        offered_pps=offered_pps,
        forwarded_pps=NAN,
        note=f"{lost:,.0f} frames lost while the router was reconfigured, {interrupted_s:g} s at this rate",
        facts={"lost_frames": lost, "interrupted_s": interrupted_s, **_bandwidth_fact(result.get("aggregate_rate"))},
    )


_READERS = {"mrr": _mrr_records, "ndrpdr": _search_records, "soak": _soak_records, "reconf": _reconf_records}
"""Reads the records of a result, by its type."""


def _latency_record(document: Document, node: Node, direction: str, load: str, offered_pps: float) -> Record:
    ports = 2 if document.root.at("result.latency_reverse").value else 1
    unit = node.need("unit").text()
    if unit and unit != "us":
        node.get("unit").problem(f"got {unit!r}: it must be us")
    mean_s, min_s, max_s = (1e-6 * node.need(key).finite(least=0.0) for key in ("avg", "min", "max"))
    text = node.need("hdrh").text()
    histogram = delay_of_hdr(text, unit_s=1e-6)
    latency = replace(
        histogram or Delay(mean_s=NAN),
        mean_s=mean_s,
        min_s=min_s,
        max_s=max_s,
        method=f"{histogram.method}, in us" if histogram else "of the tester, in us",
        hdr_base64=text,
    )
    note = f"result.latency_{direction}.{load}.hdrh: is no HDR histogram, and is kept as it is"
    return _record(
        document,
        goal="latency",
        offered_pps=max(offered_pps, ports * MIN_LATENCY_PPS),
        forwarded_pps=NAN,
        latency=latency,
        note=note if text and not histogram else "",
        facts={"way": direction, "load": load, "latency_resolution_s": _LATENCY_STEP_S},
    )


def _check_unit(rate: Node) -> None:
    unit = rate.need("unit").text()
    if unit and unit != "pps":
        rate.get("unit").problem(f"got {unit!r}: routecast reads frames per second, not connections or requests")


def _bandwidth_fact(node: Node) -> dict[str, object]:
    value = node.at("bandwidth.value").number(least=0.0)
    return {"bandwidth_bps": value} if math.isfinite(value) else {}


def _record(
    document: Document,
    *,
    goal: str,
    offered_pps: float,
    forwarded_pps: float,
    bound: Bound = "",
    goal_loss_ratio: float = NAN,
    latency: Delay | None = None,
    note: str = "",
    facts: dict[str, object] | None = None,
) -> Record:
    root = document.root
    name = root.get("test_name_long").text() or root.need("test_id").text()
    frame_bytes = _frame_bytes(name)
    frame_bytes = _frame_bytes(root.get("test_id").text()) if math.isnan(frame_bytes) else frame_bytes
    test_id = root.need("test_id").text()
    cores = _CORES.search(name) or _CORES.search(test_id)
    nic = _NIC.search(test_id) or _NIC.search(name)
    invalid = () if root.get("passed").flag(True) else (f"the test failed: {root.get('message').text()[:300]}",)
    trial = measured(
        intended_pps=offered_pps,
        offered_pps=offered_pps,
        forwarded_pps=forwarded_pps,
        loss_ratio=0.0 if goal == "ndr" and bound == "lower" else NAN,
        frame_bytes=frame_bytes,
        latency=latency,
        invalid=invalid,
        notes=(*document.notes, *([note] if note else [])),
    )
    return Record(
        source=f"CSIT UTI {root.get('version').text()}",
        title=root.need("test_id").text(),
        goal=goal,
        bound=bound,
        goal_loss_ratio=goal_loss_ratio,
        frame_bytes=frame_bytes,
        cores=int(cores[1]) if cores else None,
        link_bps=float(nic[1]) * 1e9 if nic else NAN,
        device=f"{root.get('dut_type').text()} {root.get('dut_version').text()}".strip(),
        tester=f"{root.get('tg_type').text()} {root.get('tg_version').text()}".strip(),
        trial=trial,
        facts={
            **(facts or {}),
            **_limit_fact(root),
            **_series_facts(root, name, frame_bytes),
            "uti": {key: root.get(key).value for key in ENVELOPE if key in root},
        },
    )


def _series_facts(root: Node, name: str, frame_bytes: float) -> dict[str, object]:
    """Return the test without its cores and frame size, its card, and its mix of frame sizes."""
    test_id = root.get("test_id").text()
    nic = _NIC.search(test_id) or _NIC.search(name)
    series = _SIZE_OR_CORES.sub("", test_id).rstrip("-.")
    facts: dict[str, object] = {"series": series} if series and series != test_id else {}
    if nic:
        facts["nic"] = nic[4]
    if frame_bytes == _IMIX_V4_1_BYTES:
        facts["mix"] = _IMIX_MIX.name
    return facts


def _limit_fact(root: Node) -> dict[str, object]:
    """Return the limit of the rates, from the tag that routecast writes into an export of its own benchmarks."""
    tags = root.get("tags").value
    texts = [str(tag) for tag in tags] if isinstance(tags, list) else []
    limit = next((limit for limit in LIMITS if f"{_LIMIT_TAG}{limit}" in texts), "")
    return {"limit": limit} if limit else {}


def _frame_bytes(name: str) -> float:
    size = _FRAME_SIZE.search(name)
    if size:
        return float(size[1])
    return _IMIX_V4_1_BYTES if _IMIX.search(name) else NAN


def uti_documents(records: Sequence[Record], *, name: str = "records", now: datetime | None = None) -> dict[str, Json]:
    """Return a document for each test case, by a name that may be a file's stem.

    A test case is all records of one title and frame size. With both bounds of an NDR and a PDR it becomes an
    ``ndrpdr`` result, otherwise an ``mrr`` result with the forwarded rate of each trial. The limit of a tester is no
    upper bound, so its result is an ``mrr``, with a tag. Invalid trials are left out; a test without a valid trial
    failed, as the model wants it.

    ``name``: source, for messages; ``now``: time of the export, and the start and end of records without any. Raises
    FileProblem: no record has a rate of the model.
    """
    exported_at = (now or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")
    cases: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        # CSIT names IMIX_v4_1 alone; the title names other mixes, whose mean may have a fraction.
        is_imix = math.isclose(record.frame_bytes, _IMIX_V4_1_BYTES, rel_tol=1e-6)
        size = "imix" if is_imix else f"{record.frame_bytes:g}b" if record.frame_bytes.is_integer() else ""
        cases.setdefault((record.title, size), []).append(record)
    documents: dict[str, Json] = {}
    for (title, size), case in cases.items():
        document = _document(title, size, case, exported_at)
        if document is None:
            place = f"{title or 'trials'} {size}".strip()
            raise FileProblem(
                name, [Problem(place, "has no trial that measures the rate of received frames, which UTI needs")]
            )
        documents[_slug(str(document["test_id"]), documents)] = document
    return documents


def _slug(text: str, taken: Mapping[str, object]) -> str:
    stem = re.sub(r"[^a-z0-9.-]+", "-", text.lower()).strip("-.")[-120:] or "test"
    number, slug = 2, stem
    while slug in taken:
        slug, number = f"{stem}-{number}", number + 1
    return slug


def _document(title: str, size: str, case: Sequence[Record], exported_at: str) -> Json | None:
    result, passed = _result(case), any(record.trial.is_valid for record in case)
    if result is None:
        return None
    first = case[0]
    envelope = first.facts.get("uti")
    short_name = _identifier(title) or "trials"
    long_name = "-".join(filter(None, (size, f"{first.cores}c" if first.cores else "", short_name)))
    (dut_type, dut_version), (tg_type, tg_version) = map(_name_and_version, (first.device, first.tester))
    limits = [limit for limit in dict.fromkeys(str(record.facts.get("limit")) for record in case) if limit in LIMITS]
    durations = [record.trial.duration_s for record in case if math.isfinite(record.trial.duration_s)]
    default: Json = {
        "duration": sum(durations),
        "dut_type": dut_type,
        "dut_version": dut_version,
        "end_time": exported_at,
        "hosts": [_UNKNOWN],
        "telemetry": [],
        "message": ""
        if passed
        else "; ".join(dict.fromkeys(chain.from_iterable(record.trial.invalid for record in case))),
        "passed": passed,
        "start_time": exported_at,
        "tags": ["routecast", *(f"{_LIMIT_TAG}{limit}" for limit in limits)],
        "test_documentation": " ".join(
            [f"Converted by routecast from {first.source or 'its own trials'}."]
            + [f"Note: {LIMITS[limit]}." for limit in limits]
        ),
        "test_id": f"routecast.{long_name}",
        "test_name_long": long_name,
        "test_name_short": short_name,
        "test_type": result["type"],
        "tg_type": tg_type,
        "tg_version": tg_version,
    }
    return {**default, **(envelope if isinstance(envelope, Mapping) else {}), "result": result, "version": MODEL}


def _name_and_version(text: str) -> tuple[str, str]:
    name, _, version = text.strip().partition(" ")
    return (name.lower() or _UNKNOWN, version.strip() or _UNKNOWN)


def _identifier(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def _result(case: Sequence[Record]) -> Json | None:
    bounds = {
        (record.goal, record.bound): record
        for record in case
        if record.bound and math.isfinite(record.trial.intended_pps)
    }
    if {("ndr", "lower"), ("ndr", "upper"), ("pdr", "lower"), ("pdr", "upper")} <= set(bounds):
        latencies = {f"latency_{direction}": _latencies(case, direction) for direction in ("forward", "reverse")}
        return {
            "type": "ndrpdr",
            **{goal: {end: _rate(bounds[goal, end]) for end in ("lower", "upper")} for goal in ("ndr", "pdr")},
            **{name: latency for name, latency in latencies.items() if latency},
        }
    if {("soak", "lower"), ("soak", "upper")} <= set(bounds):
        return {"type": "soak", "critical_rate": {end: _rate(bounds["soak", end]) for end in ("lower", "upper")}}
    for record in case:
        if record.goal == "reconf":
            packets = {"value": record.facts.get("lost_frames", 0), "unit": "packets"}
            time = {"value": record.facts.get("interrupted_s", 0), "unit": "s"}
            return {"type": "reconf", "aggregate_rate": _rate(record), "loss": {"packet": packets, "time": time}}
    rates = list(_received_pps(case))
    if not rates:
        return None
    values: Json = {"values": rates, "avg": fmean(rates), "stdev": pstdev(rates), "unit": "pps"}
    return {"type": "mrr", "receive_rate": {"rate": values}}


def _received_pps(case: Sequence[Record]) -> Iterator[float]:
    """Yield forwarded rates: those at the goal of a search if there are any, else those of its valid trials."""
    throughput_records = [record for record in case if record.goal not in NO_THROUGHPUT]
    records = [record for record in throughput_records if record.goal != "search"] or throughput_records
    trials = [record.trial for record in records if record.trial.is_valid] or [record.trial for record in records]
    return (trial.forwarded_pps for trial in trials if math.isfinite(trial.forwarded_pps))


def _rate(record: Record) -> Json:
    rate: Json = {"rate": {"value": record.trial.intended_pps, "unit": "pps"}}
    bandwidth = record.facts.get("bandwidth_bps")
    if bandwidth is None and math.isfinite(record.frame_bytes):
        bandwidth = record.trial.intended_pps * 8.0 * (record.frame_bytes + 20.0)  # S2: CSIT counts layer 1
    if bandwidth is not None:
        rate["bandwidth"] = {"value": bandwidth, "unit": "bps"}
    return rate


def _latencies(case: Sequence[Record], direction: str) -> Json | None:
    by_load = {
        str(record.facts.get("load")): record.trial.latency
        for record in case
        if record.goal == "latency" and record.facts.get("way") == direction and record.trial.latency
    }
    if set(by_load) != set(LATENCY_LOAD_RATIOS):
        return None
    return {
        name: {
            "min": _microseconds(delay.min_s),
            "avg": _microseconds(delay.mean_s),
            "max": max(_microseconds(delay.max_s), 1),
            "hdrh": delay.hdr_base64,
            "unit": "us",
        }
        for name in LATENCY_LOAD_RATIOS
        if (delay := by_load[name])
    }


def _microseconds(time_s: float) -> int:
    return round(time_s * 1e6) if math.isfinite(time_s) else 0
