"""bench-trafficgen's ``binary-search.json`` (perftool-incubator/bench-trafficgen, ``trafficgen/binary-search.py``).

A trial is one entry, with the statistics of each port under ``"0"``, ``"1"``; the receiving port has the loss, without
the packets that the tester did not send. Latencies are round trips in microseconds.
"""

from __future__ import annotations

import math

from routecast.evaluate.trial import Delay
from routecast.lab.benchmark.exchange._document import Document, Node
from routecast.lab.benchmark.exchange._record import Record, measured

_RATE_TOLERANCE_RATIO = 0.05
"""The tool's own default for the deviation of the offered from the intended rate."""


def is_trafficgen(root: Node) -> bool:
    """Whether the document is one of bench-trafficgen."""
    trials = root.get("trials").value
    if not isinstance(trials, list) or "log" not in root:
        return False
    return not trials or (isinstance(trials[0], dict) and "stats" in trials[0] and "rate_unit" in trials[0])


def read_trafficgen(document: Document) -> tuple[Record, ...]:
    """Read every trial of the search; the last that passed is its result.

    Raises FileProblem: there is no trial, trials count connections (ASTF), or a value of a trial is missing.
    """
    trials = list(document.root.need("trials").items())
    if not trials:
        document.root.get("trials").problem("is empty: the search stopped before its first trial")
    document.check()
    passing = [number for number, node in enumerate(trials) if node.get("result").value == "pass"]
    records = [
        record
        for number, node in enumerate(trials)
        if (record := _record(document, node, is_result=number in passing[-1:])) is not None
    ]
    document.check()
    return tuple(records)


def _record(document: Document, node: Node, *, is_result: bool) -> Record | None:
    params, stats = node.get("trial_params"), node.need("stats")
    if params.get("traffic_generator").value == "trex-astf" or "astf" in stats:
        params.get("traffic_generator").problem(
            "got trex-astf: its trials count connections, and routecast reads frames only"
        )
        return None
    faults_before = len(document.problems)
    verdict = node.need("result").text()
    ports = [stats.get(key) for key in "01234567" if key in stats]
    if not ports:
        stats.problem('has no port ("0", "1", …)')
    sent_pps = sum(port.need("tx_pps").finite(least=0.0) for port in ports)
    received_pps = sum(port.need("rx_pps").finite(least=0.0) for port in ports)
    sent_by_port = [port.need("tx_packets").count() or 0 for port in ports]
    sent, received = sum(sent_by_port), sum(port.need("rx_packets").count() or 0 for port in ports)
    intended_pps = sum(port.get("tx_pps_target").number(least=0.0, default=0.0) for port in ports)
    if len(document.problems) > faults_before:
        return None
    notes, invalid = list(document.notes), _invalid_reasons(verdict, stats, sent, received)
    frame_bytes = params.get("frame_size").number()
    frame_bytes = frame_bytes if frame_bytes >= 64.0 else math.nan
    if math.isnan(frame_bytes) and sent_pps > 0.0:
        l1_bps = sum(port.get("tx_l1_bps").number(default=0.0) for port in ports)
        if l1_bps > 0.0:
            frame_bytes = round(l1_bps / (8.0 * sent_pps) - 20.0, 1)
            notes.append(
                f"frame size {frame_bytes:g} B follows from tx_l1_bps and tx_pps: the trial sent a profile of traffic"
            )
    if sent_pps < (1.0 - _RATE_TOLERANCE_RATIO) * intended_pps:
        invalid.append(f"the tester sent {sent_pps:,.0f} pps of the intended {intended_pps:,.0f}")
    trial = measured(
        intended_pps=intended_pps or sent_pps,
        offered_pps=sent_pps,
        forwarded_pps=min(received_pps, sent_pps),
        loss_ratio=1.0 - min(received, sent) / sent if sent else math.nan,
        frame_bytes=frame_bytes,
        duration_s=stats.at("global.runtime").number(least=0.0, default=params.get("runtime").number(least=0.0)),
        offered_frames=sent,
        forwarded_frames=min(received, sent),
        latency=_latency(ports),
        invalid=tuple(invalid),
        notes=tuple(notes),
    )
    goal_loss_ratio = params.get("max_loss_pct").number(least=0.0, most=100.0) / 100.0
    return Record(
        source="bench-trafficgen",
        title=f"trial {node.get('trial').text('?')}",
        goal=("ndr" if goal_loss_ratio == 0.0 else "pdr") if is_result else "search",
        bound="lower" if is_result else "",
        goal_loss_ratio=goal_loss_ratio,
        frame_bytes=frame_bytes,
        ports=sum(map(bool, sent_by_port)) or None,
        flows=params.get("num_flows").count(),
        tester=params.get("traffic_generator").text("bench-trafficgen"),
        trial=trial,
        facts={
            "result": verdict,
            "rate": node.get("rate").number(),
            "rate_unit": node.get("rate_unit").text(),
            "mode": params.get("trial_mode").text(),
        },
    )


def _invalid_reasons(verdict: str, stats: Node, sent: int, received: int) -> list[str]:
    flags = ("timeout", "early_exit", "force_quit")
    reasons = {
        f"{received:,} frames arrived of {sent:,} sent: negative loss": received > sent,
        "nothing was sent": not sent,
        **{f"the tester ended with {flag}": stats.at(f"global.{flag}").value is True for flag in flags},
        f"the tool calls its result {verdict!r}": verdict not in ("pass", "fail"),
    }
    return [reason for reason, applies in reasons.items() if applies]


def _latency(ports: list[Node]) -> Delay | None:
    frames, weighted_us, max_us, min_us = 0.0, 0.0, 0.0, math.inf
    for port in ports:
        port_frames, average_us, port_min_us, port_max_us = (
            port.get(f"rx_latency_{name}").number(least=0.0, default=0.0)
            for name in ("packets", "average", "minimum", "maximum")
        )
        if port_frames > 0.0 and average_us > 0.0:
            frames += port_frames
            weighted_us += port_frames * average_us
            max_us, min_us = max(max_us, port_max_us), min(min_us, port_min_us or math.inf)
    if not frames:
        return None
    return Delay(
        mean_s=weighted_us / frames * 1e-6,
        min_s=min_us * 1e-6 if math.isfinite(min_us) else math.nan,
        max_s=max_us * 1e-6,
        method=f"{frames:,.0f} latency frames, round trip as bench-trafficgen reports it",
    )
