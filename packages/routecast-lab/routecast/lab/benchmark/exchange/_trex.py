"""TRex ``ndr`` JSON (cisco-system-traffic-generator/trex-core, v3.08, ``examples/stl/ndr_bench.py``).

Loss is opackets − ipackets, read while frames are still on their way, and 0 where it is negative. ``tx_pps`` and
``rx_pps`` are smoothed rates at that instant, so the loss counts here, not the ratio of the rates.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping

from routecast.evaluate.trial import Delay
from routecast.lab.benchmark.exchange._document import Document, Node
from routecast.lab.benchmark.exchange._record import Record, measured

_SIZE_TOLERANCE_RATIO = 0.01
_RATE_TOLERANCE_RATIO = 0.01
"""Deviation below which a frame size counts as whole, and a loss counts as that of the rates."""


def is_trex(root: Node) -> bool:
    """Whether the document is one of TRex's ``ndr``."""
    results = root.get("results")
    return ("rate_tx_bps" in results and "rate_p" in results) or "OPT TX Rate [bps]" in root


def read_trex(document: Document) -> tuple[Record, ...]:
    """Read the trial at the rate at which the search ended.

    Raises FileProblem: the document is the output for people, or lacks a value of a trial.
    """
    root = document.root
    if "OPT TX Rate [bps]" in root:
        root.problem("is the rounded output for people: run ndr with `-o json`")
        document.check()
    results, config = root.get("results"), root.need("config")
    sent_pps = results.need("tx_pps").finite(least=0.0)
    received_pps = results.need("rx_pps").finite(least=0.0)
    loss_ratio = results.need("drop_rate_percentage").finite() / 100.0
    document.check()
    if sent_pps <= 0.0:
        results.get("tx_pps").problem("got 0: nothing was sent")
        document.check()
    notes = [*document.notes, *_notes(sent_pps, received_pps, loss_ratio)]
    frame_bytes = _frame_bytes(results, sent_pps)
    if math.isfinite(frame_bytes):
        notes.append(f"frame size {frame_bytes:g} B follows from results.tx_bps and tx_pps: TRex does not state it")
    duration_s = config.get("iteration_duration").number(least=0.0) / 2.0  # TRex writes twice its waiting time
    goal_loss_ratio = config.get("pdr").number(least=0.0, most=100.0) / 100.0
    counted_loss_ratio = min(max(loss_ratio, 0.0), 1.0)
    trial = measured(
        intended_pps=_intended_pps(results, sent_pps),
        offered_pps=sent_pps,
        forwarded_pps=sent_pps * (1.0 - counted_loss_ratio),
        loss_ratio=counted_loss_ratio,
        frame_bytes=frame_bytes,
        duration_s=duration_s,
        latency=latency_of_groups(results.get("latency")),
        invalid=_invalid_reasons(results, config, loss_ratio),
        notes=tuple(notes),
    )
    ports = config.get("ports")
    port_count = len(list(ports.items())) if ports else 0
    document.check()
    return (
        Record(
            source="TRex ndr",
            title=results.get("title").text(),
            goal="ndr" if goal_loss_ratio == 0.0 else "pdr",
            bound="lower",
            goal_loss_ratio=goal_loss_ratio,
            frame_bytes=frame_bytes,
            ports=(port_count if config.get("bi_dir").flag() else (port_count + 1) // 2) or None,
            tester="TRex",
            trial=trial,
            facts={
                key: results.get(key).value
                for key in ("rate_p", "max_rate_bps", "cpu_util", "bw_per_core", "tx_util", "total_iterations")
                if isinstance(results.get(key).value, int | float)
            },
        ),
    )


def _notes(sent_pps: float, received_pps: float, loss_ratio: float) -> list[str]:
    notes = []
    rates_loss_ratio = 1.0 - received_pps / sent_pps
    if loss_ratio < 0.0:
        notes.append(
            f"results.drop_rate_percentage is {100.0 * loss_ratio:g}: more frames came than were sent; loss "
            "is taken as 0"
        )
    elif loss_ratio == 0.0 and received_pps > sent_pps * (1.0 + _RATE_TOLERANCE_RATIO):
        notes.append(
            f"results.rx_pps {received_pps:,.0f} exceeds tx_pps {sent_pps:,.0f}: TRex writes a negative loss as 0, and "
            "this 0 may be one"
        )
    elif abs(rates_loss_ratio - loss_ratio) > _RATE_TOLERANCE_RATIO:
        notes.append(
            f"results.rx_pps over tx_pps is a loss of {rates_loss_ratio:.2%}, drop_rate_percentage is "
            f"{loss_ratio:.2%}: the latter counts"
        )
    notes.append("counters were read while frames were on their way (TRex reads them before it stops)")
    return notes


def _invalid_reasons(results: Node, config: Node, loss_ratio: float) -> tuple[str, ...]:
    full, allowed = results.get("queue_full_percentage").number(), config.get("q_full_resolution").number()
    reasons = {
        f"results.drop_rate_percentage is {100.0 * loss_ratio:g}: more than all frames cannot be lost": loss_ratio
        > 1.0,
        f"the tester's queues were full for {full:g} % of the frames, allowed are {allowed:g} %": full > allowed,
        "latency exceeded the limit of the search": results.get("valid_latency").value is False,
    }
    return tuple(reason for reason, applies in reasons.items() if applies)


def _intended_pps(results: Node, sent_pps: float) -> float:
    """Return ``rate_p`` per cent of the greatest rate, in frames of the size that was sent."""
    rate_bps, max_bps, port_bps, percent = (
        results.get(key).number() for key in ("tx_bps", "max_rate_bps", "rate_tx_bps", "rate_p")
    )
    if not (rate_bps > 0.0 and max_bps > 0.0 and port_bps > 0.0 and percent > 0.0):
        return sent_pps
    return sent_pps * percent / 100.0 * max_bps / port_bps


def _frame_bytes(results: Node, sent_pps: float) -> float:
    frame_bytes = results.get("tx_bps").number(least=0.0) / (8.0 * sent_pps)
    if not frame_bytes > 0.0:
        return math.nan
    nearest = round(frame_bytes)
    return (
        float(nearest) if abs(frame_bytes - nearest) <= _SIZE_TOLERANCE_RATIO * frame_bytes else round(frame_bytes, 1)
    )


def latency_of_groups(groups: Node) -> Delay | None:
    """Merge the groups' latencies (in microseconds), whose histograms have the lower edges of their classes as keys."""
    if not groups.value:
        return None
    frames_by_edge_us: defaultdict[float, float] = defaultdict(float)
    min_us, max_us, weighted_us, weight = math.inf, 0.0, 0.0, 0.0
    for _, group in groups.entries():
        histogram = group.get("histogram")
        group_frames = 0.0
        for edge_us, node in histogram.entries() if histogram.value else ():
            frames = node.number(least=0.0)
            frames_by_edge_us[float(edge_us)] += frames
            group_frames += frames
        min_us = min(min_us, group.get("total_min").finite(least=0.0))
        max_us = max(max_us, group.get("total_max").finite(least=0.0))
        weighted_us += group.get("average").finite(least=0.0) * (group_frames or 1.0)
        weight += group_frames or 1.0
    if not weight:
        return None
    method = "TRex latency streams, software time stamps"
    if frames_by_edge_us:
        method += (
            f"; percentiles are upper edges of a histogram of one digit, {sum(frames_by_edge_us.values()):,.0f} frames"
        )
    p50_s, p90_s, p99_s, p999_s = (
        min(_percentile_us(frames_by_edge_us, ratio), max_us) * 1e-6 for ratio in (0.5, 0.9, 0.99, 0.999)
    )
    return Delay(
        mean_s=weighted_us / weight * 1e-6,
        min_s=min_us * 1e-6,
        p50_s=p50_s,
        p90_s=p90_s,
        p99_s=p99_s,
        p999_s=p999_s,
        max_s=max_us * 1e-6,
        method=method,
    )


def _percentile_us(frames_by_edge_us: Mapping[float, float], ratio: float) -> float:
    """Return the upper edge of the class that holds the percentile; NaN without frames."""
    total, passed = sum(frames_by_edge_us.values()), 0.0
    for edge_us in sorted(frames_by_edge_us):
        passed += frames_by_edge_us[edge_us]
        if passed >= ratio * total > 0.0:
            return edge_us + (10.0 ** math.floor(math.log10(edge_us)) if edge_us >= 10.0 else 10.0)
    return math.nan
