"""TRex ``ndr`` JSON (cisco-system-traffic-generator/trex-core, v3.08, ``examples/stl/ndr_bench.py``).

Loss is opackets − ipackets, read while frames are still on their way, and 0 where it is negative. ``tx_pps`` and
``rx_pps`` are smoothed rates at that instant, so the loss counts here, not the ratio of the rates.
"""

from __future__ import annotations

import math

from routecast.benchmark.exchange._document import Document, Node
from routecast.benchmark.exchange._record import Record, measured
from routecast.evaluate.trial import Delay

_STANDARD_SHARE = 0.01
_RATES_DIFFER = 0.01


def is_trex(root: Node) -> bool:
    """Whether the document is one of TRex's ``ndr``."""
    results = root.get("results")
    return ("rate_tx_bps" in results and "rate_p" in results) or "OPT TX Rate [bps]" in root


def read_trex(document: Document) -> tuple[Record, ...]:
    """Read the trial at the rate at which the search ended.

    Raises FileProblem: the document is the form for people, or lacks a value of a trial.
    """
    root = document.root
    if "OPT TX Rate [bps]" in root:
        root.problem("is the rounded form for people: write the other one, with `-o json`")
        document.check()
    results, config = root.get("results"), root.need("config")
    sent_pps = results.need("tx_pps").finite(least=0.0)
    received_pps = results.need("rx_pps").finite(least=0.0)
    loss = results.need("drop_rate_percentage").finite() / 100.0
    document.check()
    if sent_pps <= 0.0:
        results.get("tx_pps").problem("got 0: nothing was sent")
        document.check()
    notes = [*document.notes, *_notes(results, sent_pps, received_pps, loss)]
    frame_bytes = _frame_bytes(results, sent_pps)
    if math.isfinite(frame_bytes):
        notes.append(f"frame size {frame_bytes:g} B follows from results.tx_bps and tx_pps: TRex does not state it")
    duration_s = config.get("iteration_duration").number(least=0.0) / 2.0  # TRex writes twice the time that it waited
    goal_loss = config.get("pdr").number(least=0.0, most=100.0) / 100.0
    counted_loss = min(max(loss, 0.0), 1.0)
    trial = measured(
        intended_pps=_intended_pps(results, sent_pps),
        offered_pps=sent_pps,
        forwarded_pps=sent_pps * (1.0 - counted_loss),
        loss_ratio=counted_loss,
        frame_bytes=frame_bytes,
        duration_s=duration_s,
        latency=_latency(results.get("latency")),
        invalid=_invalid(results, config, loss),
        notes=tuple(notes),
    )
    ports = config.get("ports")
    used = len(list(ports.items())) if ports else 0
    document.check()
    return (
        Record(
            source="TRex ndr",
            title=results.get("title").text(),
            goal="ndr" if goal_loss == 0.0 else "pdr",
            bound="lower",
            goal_loss_ratio=goal_loss,
            frame_bytes=frame_bytes,
            ports=(used if config.get("bi_dir").flag() else (used + 1) // 2) or None,
            tester="TRex",
            trial=trial,
            facts={
                key: results.get(key).value
                for key in ("rate_p", "max_rate_bps", "cpu_util", "bw_per_core", "tx_util", "total_iterations")
                if isinstance(results.get(key).value, int | float)
            },
        ),
    )


def _notes(results: Node, sent_pps: float, received_pps: float, loss: float) -> list[str]:
    notes = []
    if loss < 0.0:
        notes.append(
            f"results.drop_rate_percentage is {100.0 * loss:g}: more frames came than were sent; loss is taken as 0"
        )
    elif loss == 0.0 and received_pps > sent_pps * (1.0 + _RATES_DIFFER):
        notes.append(
            f"results.rx_pps {received_pps:,.0f} exceeds tx_pps {sent_pps:,.0f}: TRex sets negative loss to 0, so this "
            "0 may hide one"
        )
    elif abs((1.0 - received_pps / sent_pps) - loss) > _RATES_DIFFER:
        notes.append(
            f"results.rx_pps over tx_pps is a loss of {1.0 - received_pps / sent_pps:.2%}, drop_rate_percentage says "
            f"{loss:.2%}: the count is taken"
        )
    notes.append("counters were read while frames were on their way (TRex reads them before it stops)")
    return notes


def _invalid(results: Node, config: Node, loss: float) -> tuple[str, ...]:
    invalid = []
    if loss > 1.0:
        invalid.append(f"results.drop_rate_percentage is {100.0 * loss:g}: more than all frames cannot be lost")
    full, allowed = results.get("queue_full_percentage").number(), config.get("q_full_resolution").number()
    if full > allowed:
        invalid.append(f"the tester's queues were full for {full:g} % of the frames, allowed are {allowed:g} %")
    if results.get("valid_latency").value is False:
        invalid.append("latency exceeded the limit that the search was given")
    return tuple(invalid)


def _intended_pps(results: Node, sent_pps: float) -> float:
    """Return ``rate_p`` per cent of the greatest rate, in frames of the size that was sent."""
    rate_bps, most_bps = results.get("tx_bps").number(), results.get("max_rate_bps").number()
    share, per_port_bps = results.get("rate_p").number() / 100.0, results.get("rate_tx_bps").number()
    if not (rate_bps > 0.0 and most_bps > 0.0 and per_port_bps > 0.0 and share > 0.0):
        return sent_pps
    return sent_pps * share * most_bps / per_port_bps


def _frame_bytes(results: Node, sent_pps: float) -> float:
    frame_bytes = results.get("tx_bps").number(least=0.0) / (8.0 * sent_pps)
    if not frame_bytes > 0.0:
        return math.nan
    nearest = round(frame_bytes)
    return float(nearest) if abs(frame_bytes - nearest) <= _STANDARD_SHARE * frame_bytes else round(frame_bytes, 1)


def _latency(groups: Node) -> Delay | None:
    """Merge the groups' latencies (in microseconds), whose histograms have the lower edges of their classes as keys."""
    if not groups.value:
        return None
    counts: dict[float, float] = {}
    least, most, weighted_us, weight = math.inf, -math.inf, 0.0, 0.0
    for _, group in groups.entries():
        histogram = group.get("histogram")
        frames = 0.0
        for edge, node in histogram.entries() if histogram.value else ():
            frames += node.number(least=0.0)
            counts[float(edge)] = counts.get(float(edge), 0.0) + node.number(least=0.0)
        least = min(least, group.get("total_min").finite(least=0.0))
        most = max(most, group.get("total_max").finite(least=0.0))
        weighted_us += group.get("average").finite(least=0.0) * (frames or 1.0)
        weight += frames or 1.0
    if not weight:
        return None
    method = "TRex latency streams, software time stamps"
    if counts:
        method += f"; percentiles are upper edges of a histogram of one digit, {sum(counts.values()):,.0f} frames"
    p50_s, p90_s, p99_s, p999_s = (min(_percentile_us(counts, ratio), most) * 1e-6 for ratio in (0.5, 0.9, 0.99, 0.999))
    return Delay(
        mean_s=weighted_us / weight * 1e-6,
        min_s=least * 1e-6,
        p50_s=p50_s,
        p90_s=p90_s,
        p99_s=p99_s,
        p999_s=p999_s,
        max_s=most * 1e-6,
        method=method,
    )


def _percentile_us(counts: dict[float, float], ratio: float) -> float:
    total, passed = sum(counts.values()), 0.0
    for edge in sorted(counts):
        passed += counts[edge]
        if passed >= ratio * total > 0.0:
            return edge + (10.0 ** math.floor(math.log10(edge)) if edge >= 10.0 else 10.0)
    return math.nan
