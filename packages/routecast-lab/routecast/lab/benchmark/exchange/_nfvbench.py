"""NFVbench results (opnfv/nfvbench, ``--json``): NDR and PDR searches with their steps, and runs at one rate.

Rates under ``ndr`` and ``pdr`` are intended rates of both directions together; ``rate_pps`` is cut to a whole number.
``drop_pct`` is a *count* of frames, ``drop_percentage`` a percentage. Delays are one way, in microseconds. Frame sizes
count the FCS and are keys of a mapping, ``"64"`` or ``"IMIX"``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal

from routecast.evaluate.trial import Delay
from routecast.lab.benchmark._hdr import delay_of_hdr
from routecast.lab.benchmark.exchange._document import Document, Node
from routecast.lab.benchmark.exchange._record import Record, measured
from routecast.load.frames import FrameMix

IMIX = FrameMix.imix(594)
"""NFVbench's IMIX, 7:4:1 of 64, 594 and 1518 B (``nfvbench/traffic_gen/traffic_utils.py``)."""

Goal = Literal["ndr", "pdr"]


def is_nfvbench(root: Node) -> bool:
    """Whether the document is one of NFVbench."""
    return "nfvbench_version" in root or bool(root.at("benchmarks.network.service_chain").value)


def read_nfvbench(document: Document) -> tuple[Record, ...]:
    """Read every result of every chain and frame size.

    Raises FileProblem: the run ended with an error, or lacks a value of a trial.
    """
    root = document.root
    if root.get("error_message"):
        root.get("error_message").problem("the run ended with this error: there is no result")
    document.check()
    records = [
        record
        for name, chain in root.need("benchmarks.network.service_chain").entries()
        for record in _chain_records(document, name, chain.need("result"))
    ]
    if not records and not document.problems:
        root.at("benchmarks.network.service_chain").problem("has no result")
    document.check()
    return tuple(records)


def _chain_records(document: Document, name: str, chain: Node) -> Iterator[Record]:
    for size, node in chain.need("result").entries():
        if size == "warning":
            document.notes.append(f"warning: {node.text()}")
            continue
        record_of = partial(_record, document, name, chain, size)
        for goal in ("ndr", "pdr"):
            if goal in node:
                yield _goal_record(record_of, document, goal, node.get(goal))
        yield from _step_records(record_of, node.at("iteration_stats.ndr_pdr"))
        if "run_config" in node:
            yield _run_record(record_of, node)


def _goal_record(record_of: Callable[..., Record], document: Document, goal: Goal, node: Node) -> Record:
    intended_pps = node.need("rate_pps").finite(least=0.0)
    overall = node.need("stats.overall")
    offered_pps = node.at("stats.total_tx_rate").number(least=0.0, default=0.0) or intended_pps
    return record_of(
        goal=goal,
        rates_pps=(intended_pps, offered_pps),
        counts=(overall.get("tx_pkts").count(), overall.get("rx_pkts").count()),
        loss_ratio=overall.need("drop_percentage").finite() / 100.0,
        goal_loss_ratio=document.root.at(f"config.measurement.{goal.upper()}").number(least=0.0, most=100.0) / 100.0,
        latency=_delay(overall),
        invalid=f"the search found no rate that meets the {goal.upper()}" if intended_pps == 0.0 else "",
        facts={"load_percent_per_direction": node.get("load_percent_per_direction").number()},
    )


def _step_records(record_of: Callable[..., Record], steps: Node) -> Iterator[Record]:
    for step in steps.items() if steps else ():
        offered_pps = step.need("total_tx_pps").finite(least=0.0)
        yield record_of(
            goal="search",
            rates_pps=(step.get("tx_pps").number(least=0.0), offered_pps),
            counts=(step.get("tx_pkts").count(), step.get("rx_pkts").count()),
            loss_ratio=step.need("drop_percentage").finite() / 100.0,
            invalid=f"warning: {step.get('warning').text()}" if step.get("warning") else "",
        )


def _run_record(record_of: Callable[..., Record], node: Node) -> Record:
    total = node.need("run_config.direction-total")
    rates_pps = total.need("orig.rate_pps").finite(least=0.0), total.need("tx.rate_pps").finite(least=0.0)
    overall = node.need("stats.overall")
    loss_ratio = overall.need("drop_rate_percent").number() / 100.0
    if math.isnan(loss_ratio):
        overall.get("drop_rate_percent").problem("is not a number: nothing was sent")
    warning = node.at("run_config.warning")
    return record_of(
        goal="run",
        rates_pps=rates_pps,
        counts=(overall.at("tx.total_pkts").count(), overall.at("rx.total_pkts").count()),
        loss_ratio=loss_ratio,
        latency=_delay(overall.get("rx"), hdr=overall.get("hdrh")),
        invalid=f"warning: {warning.text()}" if warning else "",
    )


def _record(
    document: Document,
    name: str,
    chain: Node,
    size: str,
    *,
    goal: str,
    rates_pps: tuple[float, float],
    counts: tuple[int | None, int | None],
    loss_ratio: float,
    goal_loss_ratio: float = math.nan,
    latency: Delay | None = None,
    invalid: str = "",
    facts: dict[str, object] | None = None,
) -> Record:
    """Return a record of rates (intended, offered), counts of frames (sent, received) and the file's loss ratio."""
    root, (intended_pps, offered_pps), (sent, received) = document.root, rates_pps, counts
    notes = list(document.notes)
    if sent is not None and received is not None and received > sent:
        notes.append(f"{received:,} frames were received of {sent:,} sent; loss is taken as 0")
        received = sent
    if loss_ratio < 0.0:
        notes.append(f"drop_percentage is {100.0 * loss_ratio:g}: more frames came than were sent; loss is taken as 0")
    loss_ratio = min(max(loss_ratio, 0.0), 1.0)
    trial = measured(
        intended_pps=intended_pps,
        offered_pps=offered_pps,
        forwarded_pps=offered_pps * (1.0 - loss_ratio),
        loss_ratio=loss_ratio,
        frame_bytes=_frame_bytes(size),
        duration_s=root.at("config.duration_sec").number(least=0.0),
        offered_frames=sent,
        forwarded_frames=received,
        latency=latency,
        invalid=(invalid,) if invalid else (),
        notes=tuple(notes),
    )
    return Record(
        source=f"NFVbench {root.get('nfvbench_version').text()}".strip(),
        title=name,
        goal=goal,
        bound="lower" if goal in ("ndr", "pdr") else "",
        goal_loss_ratio=goal_loss_ratio,
        frame_bytes=_frame_bytes(size),
        ports=2 if chain.get("bidirectional").flag() else 1,
        flows=chain.get("flow_count").count(),
        device=root.at("openstack_spec.vswitch").text(),
        tester=root.at("config.tg-name").text("TRex"),
        trial=trial,
        facts={"frame_size": size, **({"mix": IMIX.name} if size.upper() == "IMIX" else {}), **(facts or {})},
    )


def _frame_bytes(size: str) -> float:
    try:
        return float(size)
    except ValueError:
        return IMIX.mean_bytes if size.upper() == "IMIX" else math.nan


def _delay(node: Node, *, hdr: Node | None = None) -> Delay | None:
    text = (hdr or node.get("hdrh")).text()
    if text and (decoded := delay_of_hdr(text, unit_s=1e-6)):
        return decoded
    average_us = node.get("avg_delay_usec").number(least=0.0, default=0.0)
    if not average_us:
        return None
    percentiles = node.get("lat_percentile")
    entries = percentiles.entries() if percentiles.value else ()
    percentile_us = {float(percent): entry.number() for percent, entry in entries}
    return Delay(
        mean_s=average_us * 1e-6,
        min_s=node.get("min_delay_usec").number(least=0.0) * 1e-6,
        p50_s=percentile_us.get(50.0, math.nan) * 1e-6,
        p90_s=percentile_us.get(90.0, math.nan) * 1e-6,
        p99_s=percentile_us.get(99.0, math.nan) * 1e-6,
        p999_s=percentile_us.get(99.9, math.nan) * 1e-6,
        max_s=node.get("max_delay_usec").number(least=0.0) * 1e-6,
        method="NFVbench latency streams",
    )
