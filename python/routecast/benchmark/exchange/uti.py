"""CSIT UTI JSON, model 1.5.1 (FDio/csit, ``resources/model_schema/test_case.schema.yaml``): read.

What its numbers are: rates are the sum of both directions; frames that the tester did not send count as lost. A search
gives its last bounds, each the load of a full-length trial: at the lower one the loss was within the goal (0 for NDR,
0.5 % for PDR), at the upper one it was not. MRR gives what came back at the greatest load, one value a trial. Latencies
are whole microseconds at 0, 10, 50 and 90 % of the PDR's lower bound, by direction.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Literal

from routecast.benchmark.exchange.document import Document, Node
from routecast.benchmark.exchange.hdr import delay_of_hdr
from routecast.benchmark.exchange.record import NAN, Record, measured
from routecast.evaluate.trial import Delay

__all__ = ["ENVELOPE", "LOADS", "MODEL", "PDR_LOSS_RATIO", "is_uti", "read_uti"]

MODEL = "1.5.1"
PDR_LOSS_RATIO = 0.005
LOADS = {"pdr_0": 0.0, "pdr_10": 0.1, "pdr_50": 0.5, "pdr_90": 0.9}
LEAST_LATENCY_PPS = 9000.0
"""Per direction: latency at 0 % is measured at this rate, and never below it."""

SOAK_LOSS_RATIO = 1e-7

ENVELOPE = (
    *("duration", "start_time", "end_time", "hosts", "tags", "telemetry", "message", "passed"),
    *("test_documentation", "test_id", "test_name_long", "test_name_short", "test_type"),
    *("dut_type", "dut_version", "tg_type", "tg_version"),
)
"""Everything around the result; kept, so that what was read is written again as it was."""

_TYPES = ("mrr", "ndrpdr", "soak", "reconf")
_FRAME = re.compile(r"(?:^|[-.])(\d{2,5})b(?=[-.]|$)", re.IGNORECASE)
_IMIX = re.compile(r"(?:^|[-.])imix(?=[-.]|$)", re.IGNORECASE)
_CORES = re.compile(r"(?:^|[-.])(?:\d+t)?(\d+)c(?=[-.]|$)", re.IGNORECASE)
_IMIX_V4_1_BYTES = (28 * 64 + 16 * 570 + 4 * 1518) / 48
"""CSIT's IMIX_v4_1: 28 frames of 64 B, 16 of 570 B and 4 of 1518 B (its methodology)."""


def is_uti(root: Node) -> bool:
    """Whether the document is a test case of CSIT's unified test interface."""
    return "test_id" in root and "result" in root and "version" in root


def read_uti(document: Document) -> tuple[Record, ...]:
    """Read the trials that a test case stands for.

    Raises
    ------
    routecast.errors.FileProblem
        The test failed, its result is of a kind that forwards no frames, or it lacks what its model wants.
    """
    root = document.root
    version = root.need("version").text()
    if version.split(".")[0] != MODEL.split(".", maxsplit=1)[0]:
        root.get("version").problem(f"got {version!r}: routecast reads model 1.x, and writes {MODEL}")
    elif version != MODEL:
        document.notes.append(f"version {version}: read as model {MODEL}")
    kind = root.need("result.type").text()
    document.check()
    if root.get("passed").value is False and kind not in _TYPES:
        root.get("message").problem(f"the test failed: {root.get('message').text()[:300]}")
    elif kind not in _TYPES:
        known = ", ".join(_TYPES)
        root.at("result.type").problem(f"got {kind!r}: routecast reads {known}; others forward no frames")
    document.check()
    result = root.get("result")
    records = tuple(
        _mrr(document, result)
        if kind == "mrr"
        else _search(document, result)
        if kind == "ndrpdr"
        else _soak(document, result)
        if kind == "soak"
        else _reconf(document, result)
    )
    document.check()
    return records


def _mrr(document: Document, result: Node) -> Iterator[Record]:
    rate = result.need("receive_rate.rate")
    _in_frames(rate)
    for number, node in enumerate(rate.need("values").items(), start=1):
        received_pps = node.finite(least=0.0)
        yield _record(
            document,
            goal="mrr",
            offered_pps=NAN,
            forwarded_pps=received_pps,
            note="the offered load, the greatest of the links, is not in the file, so the loss is unknown",
            facts={"trial": number},
        )


def _search(document: Document, result: Node) -> Iterator[Record]:
    goals: tuple[tuple[Literal["ndr", "pdr"], float], ...] = (("ndr", 0.0), ("pdr", PDR_LOSS_RATIO))
    for goal, loss_ratio in goals:
        yield from _bounds(document, result.need(goal), goal, loss_ratio)
    pdr_pps = result.at("pdr.lower.rate.value").number(least=0.0)
    for way in ("forward", "reverse"):
        latency = result.get(f"latency_{way}")
        for name, share in LOADS.items() if latency.value else ():
            node = latency.need(name)
            if node.value:
                yield _latency(document, node, way, name, share * pdr_pps)


def _bounds(document: Document, node: Node, goal: str, loss_ratio: float) -> Iterator[Record]:
    for bound in ("lower", "upper"):
        rate = node.need(f"{bound}.rate")
        _in_frames(rate)
        rate_pps = rate.need("value").finite(least=0.0)
        exact = bound == "lower" and loss_ratio == 0.0
        within = "at most" if bound == "lower" else "more than"
        yield _record(
            document,
            goal=goal,
            bound=bound,
            goal_loss_ratio=loss_ratio,
            offered_pps=rate_pps,
            forwarded_pps=rate_pps if exact else NAN,
            note=""
            if exact
            else f"the loss ratio at this load was {within} {loss_ratio:g}, the file does not say which",
            facts=_bandwidth(node.get(bound)),
        )


def _soak(document: Document, result: Node) -> Iterator[Record]:
    yield from _bounds(document, result.need("critical_rate"), "soak", SOAK_LOSS_RATIO)


def _reconf(document: Document, result: Node) -> Iterator[Record]:
    rate = result.need("aggregate_rate.rate")
    _in_frames(rate)
    offered_pps = rate.need("value").finite(least=0.0)
    lost = result.need("loss.packet.value").finite(least=0.0)
    interrupted_s = result.need("loss.time.value").finite(least=0.0)
    yield _record(
        document,
        goal="reconf",
        offered_pps=offered_pps,
        forwarded_pps=NAN,
        note=f"{lost:,.0f} frames lost while the router was reconfigured, {interrupted_s:g} s at this rate",
        facts={
            "lost_frames": lost,
            "interrupted_s": interrupted_s,
            **_bandwidth(result.get("aggregate_rate")),
        },
    )


def _latency(document: Document, node: Node, way: str, name: str, offered_pps: float) -> Record:
    ports = 2 if document.root.at("result.latency_reverse").value else 1
    unit = node.need("unit").text()
    if unit and unit != "us":
        node.get("unit").problem(f"got {unit!r}: wants us")
    average_us = node.need("avg").finite(least=0.0)
    least_us, most_us = node.need("min").finite(least=0.0), node.need("max").finite(least=0.0)
    text = node.need("hdrh").text()
    decoded = delay_of_hdr(text, unit_s=1e-6)
    delay = Delay(
        mean_s=average_us * 1e-6,
        min_s=least_us * 1e-6,
        p50_s=decoded.p50_s if decoded else NAN,
        p90_s=decoded.p90_s if decoded else NAN,
        p99_s=decoded.p99_s if decoded else NAN,
        p999_s=decoded.p999_s if decoded else NAN,
        max_s=most_us * 1e-6,
        method=f"{decoded.method}, in us" if decoded else "of the tester, in us",
        hdr_base64=text,
    )
    return _record(
        document,
        goal="latency",
        offered_pps=max(offered_pps, ports * LEAST_LATENCY_PPS),
        forwarded_pps=NAN,
        latency=delay,
        note=""
        if decoded or not text
        else f"result.latency_{way}.{name}.hdrh: is no HDR histogram, left as it is",
        facts={"way": way, "load": name},
    )


def _in_frames(rate: Node) -> None:
    unit = rate.need("unit").text()
    if unit and unit != "pps":
        rate.get("unit").problem(
            f"got {unit!r}: only frames per second are read, not connections or requests"
        )


def _bandwidth(node: Node) -> dict[str, object]:
    value = node.at("bandwidth.value").number(least=0.0)
    return {"bandwidth_bps": value} if math.isfinite(value) else {}


def _record(
    document: Document,
    *,
    goal: str,
    offered_pps: float,
    forwarded_pps: float,
    bound: str = "",
    goal_loss_ratio: float = NAN,
    latency: Delay | None = None,
    note: str = "",
    facts: dict[str, object] | None = None,
) -> Record:
    root = document.root
    name = root.get("test_name_long").text() or root.need("test_id").text()
    frame_bytes = _frame_bytes(name)
    cores = _CORES.search(name)
    invalid = (
        () if root.get("passed").flag(True) else (f"the test failed: {root.get('message').text()[:300]}",)
    )
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
        bound="lower" if bound == "lower" else "upper" if bound == "upper" else "",
        goal_loss_ratio=goal_loss_ratio,
        frame_bytes=frame_bytes,
        cores=int(cores[1]) if cores else None,
        device=f"{root.get('dut_type').text()} {root.get('dut_version').text()}".strip(),
        tester=f"{root.get('tg_type').text()} {root.get('tg_version').text()}".strip(),
        trial=trial,
        facts={**(facts or {}), "uti": {key: root.get(key).value for key in ENVELOPE if key in root}},
    )


def _frame_bytes(name: str) -> float:
    size = _FRAME.search(name)
    if size:
        return float(size[1])
    return _IMIX_V4_1_BYTES if _IMIX.search(name) else NAN
