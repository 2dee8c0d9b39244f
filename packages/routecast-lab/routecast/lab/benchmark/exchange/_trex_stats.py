"""TRex ``get_stats()`` as JSON (cisco-system-traffic-generator/trex-core, v3.x): stateless (STL) and stateful (ASTF).

Ports are keys ``"0"``, ``"1"``, …, beside ``total``, ``global``, and in STL ``flow_stats`` and ``latency``, in ASTF
``traffic``. Counts run since the last ``clear_stats()``; rates (``tx_pps``, ``rx_pps``) are those of the moment, 0 once
the traffic has stopped. Bytes count the FCS. Delays are microseconds.
"""

from __future__ import annotations

import math

from routecast.lab.benchmark.exchange._document import Document, Node
from routecast.lab.benchmark.exchange._record import NAN, Record, measured, unknown_loss
from routecast.lab.benchmark.exchange._trex import latency_of_groups

_ASTF_RATES = ("m_tx_pps_r", "m_rx_pps_r")


def is_trex_stats(root: Node) -> bool:
    """Whether the document is what TRex's ``get_stats()`` returns."""
    traffic = root.get("traffic")
    is_astf = "client" in traffic and "server" in traffic
    return ("opackets" in root.get("total") and "global" in root) or is_astf


def read_trex_stats(document: Document) -> tuple[Record, ...]:
    """Read the trial that the counts of all ports are.

    Raises FileProblem: nothing was sent, or a count is missing.
    """
    root = document.root
    if "opackets" not in root.get("total"):
        return (_traffic_record(document),)
    total, overall = root.get("total"), root.get("global")
    sent = total.need("opackets").finite(least=0.0)
    received = total.need("ipackets").finite(least=0.0)
    sent_bytes = total.get("obytes").number(least=0.0)
    document.check()
    if sent <= 0.0:
        total.get("opackets").problem("got 0: nothing was sent")
    tx_pps = _first_number(total.get("tx_pps"), overall.get("tx_pps"))
    notes = list(document.notes)
    is_running = tx_pps > 0.0
    if is_running:
        notes.append("the traffic was running: frames on their way count as lost")
    else:
        notes.append("the traffic had stopped, so the file has counts and no rates: the rates are not known")
        tx_pps = NAN
    frame_bytes = round(sent_bytes / sent, 1) if sent > 0.0 and sent_bytes > 0.0 else NAN
    if math.isfinite(frame_bytes) and not frame_bytes.is_integer():
        notes.append(f"{frame_bytes:g} B is the mean of the frames; their mix is not in the file: --frame states it")
    groups = _latency_groups(document)
    trial = measured(
        intended_pps=tx_pps,
        offered_pps=tx_pps,
        forwarded_pps=tx_pps * min(received / sent, 1.0) if sent > 0.0 else NAN,
        loss_ratio=max(1.0 - received / sent, 0.0) if sent > 0.0 else NAN,
        frame_bytes=frame_bytes,
        offered_frames=round(sent),
        forwarded_frames=round(received),
        latency=latency_of_groups(groups),
        invalid=_invalid(total, overall, sent, received),
        notes=tuple(notes),
    )
    sending = [name for name, node in root.entries() if name.isdigit() and node.get("opackets").number() > 0.0]
    document.check()
    is_astf = "client" in root.get("traffic")
    record = Record(
        source="TRex ASTF stats" if is_astf else "TRex stats",
        frame_bytes=frame_bytes,
        ports=len(sending) or None,
        tester="TRex",
        trial=trial,
        facts=_flow_facts(root.get("flow_stats")) | (_traffic_facts(root.get("traffic")) if is_astf else {}),
    )
    document.check()
    return (record,)


def _first_number(*nodes: Node) -> float:
    return next((value for node in nodes if math.isfinite(value := node.number(least=0.0))), NAN)


def _invalid(total: Node, overall: Node, sent: float, received: float) -> tuple[str, ...]:
    full = overall.get("queue_full").number(least=0.0)
    reasons = {
        f"{received:,.0f} frames were received of {sent:,.0f} sent (negative loss)": received > sent,
        f"the tester's queues were full {full:,.0f} times": full > 0.0,
        f"{total.get('oerrors').number(least=0.0):,.0f} frames could not be sent": total.get("oerrors").number() > 0.0,
    }
    return tuple(reason for reason, applies in reasons.items() if applies)


def _latency_groups(document: Document) -> Node:
    """Return the latencies of all streams that measure them, by stream."""
    latency = document.root.get("latency")
    groups: dict[str, object] = {}
    for name, node in latency.entries() if isinstance(latency.value, dict) else ():
        group = node.get("latency")
        # A stream that received nothing has no time, or the text "N/A".
        if name.isdigit() and isinstance(group.get("average").value, int | float) and group.get("total_max").value:
            groups[name] = group.value
    return Node(document, groups or None, "latency")


def _flow_facts(flows: Node) -> dict[str, object]:
    """Return the loss of each stream that TRex counts."""
    losses: dict[str, float] = {}
    for name, node in flows.entries() if isinstance(flows.value, dict) else ():
        sent, received = (node.at(f"{key}.total").number(least=0.0) for key in ("tx_pkts", "rx_pkts"))
        if name.isdigit() and sent > 0.0 and math.isfinite(received):
            losses[name] = 1.0 - received / sent
    return {"stream_loss_ratios": losses} if losses else {}


def _traffic_facts(traffic: Node) -> dict[str, object]:
    keys = ("m_active_flows", "m_est_flows", "tcps_sndrexmitpack", "tcps_drops", "udps_keepdrops")
    return {
        f"{side}_{key}": value
        for side in ("client", "server")
        for key in keys
        if math.isfinite(value := traffic.get(side).get(key).number())
    }


def _traffic_record(document: Document) -> Record:
    """Return the record of ``get_traffic_stats()`` of ASTF, which has rates of both ends and no counts of ports."""
    traffic = document.root.get("traffic")
    sent_pps, received_pps = (
        sum(traffic.get(side).need(key).finite(least=0.0) for side in ("client", "server")) for key in _ASTF_RATES
    )
    document.check()
    if sent_pps <= 0.0:
        traffic.get("client").get("m_tx_pps_r").problem("got 0: nothing was being sent")
    facts = _traffic_facts(traffic)
    document.check()
    note = "the file has rates of the moment and no counts of ports: the loss is not known"
    trial = measured(
        intended_pps=sent_pps,
        offered_pps=sent_pps,
        forwarded_pps=min(received_pps, sent_pps),
        loss_ratio=NAN,
        notes=(*document.notes, note),
    )
    return Record(source="TRex ASTF stats", tester="TRex", ports=2, trial=unknown_loss(trial), facts=facts)
