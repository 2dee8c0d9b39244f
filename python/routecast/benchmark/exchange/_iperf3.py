"""iperf3 ``--json`` and ``--json-stream`` of UDP tests (esnet/iperf, ``src/iperf_api.c``, versions 3.1 to 3.19).

Its numbers:

- ``blksize`` is the UDP payload; headers and FCS are added here (S1).
- ``end.sum`` mixes sender and receiver: bytes are those sent, packets those that the receiver counts. ``sum_sent`` and
  ``sum_received`` (since 3.11) separate them. ``sum_received.packets`` is the highest sequence number, so it counts
  datagrams lost on the way as well; ``sum_received.bytes`` over the payload are the datagrams that arrived.
- No count of the receiver has the datagrams lost at the end of a test; only ``sum_sent`` less ``sum_received`` has.
- Known defects: ``-nan`` (issues 364, 613, 826), sums that differ from those of the streams (754, 1784), more lost than
  sent with ``--omit`` (1489).
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

from routecast.benchmark.exchange._document import Document, Node
from routecast.benchmark.exchange._record import Record, measured

HEADERS_BYTES = {4: 14 + 20 + 8 + 4, 6: 14 + 40 + 8 + 4}
"""Ethernet, IP, UDP and FCS around a datagram's payload."""

LONGEST_PLAIN_BYTES = 1518


@dataclass(frozen=True, slots=True)
class _Way:
    """Names of the sums of one direction."""

    name: str
    sum: str
    sent: str
    received: str


WAYS = (
    _Way("", "sum", "sum_sent", "sum_received"),
    _Way("reverse", "sum_bidir_reverse", "sum_sent_bidir_reverse", "sum_received_bidir_reverse"),
)


def is_iperf3(root: Node) -> bool:
    """Whether the document is one of iperf3."""
    version = root.at("start.version").value
    return (isinstance(version, str) and version.startswith("iperf")) or (
        "error" in root and "start" in root and "intervals" in root
    )


def join_stream(text: str) -> str | None:
    """Return the document of ``--json-stream``, which writes one event a line; None if the text is another format."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines or not lines[0].replace(" ", "").startswith('{"event":'):
        return None
    parts: dict[str, object] = {"intervals": []}
    for line in lines:
        try:
            event = json.loads(line)
        except json.JSONDecodeError:
            return None if len(lines) == 1 else json.dumps(parts)[:-1]  # cut off: the parser reports it
        if isinstance(event, dict) and event.get("event") in ("start", "end", "error"):
            parts[str(event["event"])] = event.get("data")
    return json.dumps(parts)


def read_iperf3(document: Document) -> tuple[Record, ...]:
    """Read the trial of a UDP test, or the two trials of a bidirectional one.

    Raises FileProblem: the test ended with an error, used TCP, or lacks a value of a trial.
    """
    root = document.root
    if root.get("error"):
        root.get("error").problem(f"iperf3 stopped with {root.get('error').text()!r}: there is no result")
    document.check()
    start = root.need("start.test_start")
    protocol = start.need("protocol").text()
    if protocol and protocol != "UDP":
        start.get("protocol").problem(f"got {protocol!r}: only UDP tests say what was lost; run iperf3 --udp")
    if not root.get("end").value:
        root.get("end").problem("is missing or empty: the test did not end")
    document.check()
    records = tuple(record for way in WAYS if way.sum in root.get("end") if (record := _way(document, way)) is not None)
    if not records:
        root.need("end.sum")
    document.check()
    return records


def _way(document: Document, way: _Way) -> Record | None:
    root = document.root
    start, end = root.at("start.test_start"), root.get("end")
    payload_bytes = start.need("blksize").finite(least=1.0)
    version = 6 if ":" in _host(root) else 4
    frame_bytes = payload_bytes + HEADERS_BYTES[version]
    notes = list(document.notes)
    if frame_bytes > LONGEST_PLAIN_BYTES:
        notes.append(
            f"start.test_start.blksize: {payload_bytes:g} bytes make frames of {frame_bytes:g}, which only links with "
            "jumbo frames carry whole"
        )
    sent, lost, arrived, notes_of_counts = _counts(end, way, payload_bytes)
    notes += notes_of_counts
    duration_s = (end.get(way.sent) if way.sent in end else end.get(way.sum)).need("seconds").finite(least=0.0)
    if math.isnan(sent + lost + arrived) or math.isnan(duration_s) or document.problems:
        return None
    if sent <= 0.0 or duration_s <= 0.0:
        end.get(way.sum).problem("nothing was sent: there is no trial")
        return None
    invalid = []
    if arrived > sent:
        invalid.append(f"{arrived:,.0f} datagrams arrived of {sent:,.0f} sent: the counts contradict each other")
    if lost > sent:
        invalid.append(f"{lost:,.0f} datagrams lost of {sent:,.0f} sent: the counts contradict each other")
    if root.get("warning"):
        notes.append(f"warning: {root.get('warning').text()}")
    target_bps = start.get("target_bitrate").number(least=0.0)
    streams = start.get("num_streams").count() or 1
    intended_pps = target_bps * streams / (8.0 * payload_bytes) if target_bps > 0.0 else math.nan
    jitter_s = 1e-3 * end.get(way.received if way.received in end else way.sum).get("jitter_ms").number(least=0.0)
    arrived = min(arrived, sent)
    trial = measured(
        intended_pps=intended_pps if math.isfinite(intended_pps) else sent / duration_s,
        offered_pps=sent / duration_s,
        forwarded_pps=arrived / duration_s,
        loss_ratio=1.0 - arrived / sent,
        frame_bytes=frame_bytes,
        duration_s=duration_s,
        offered_frames=round(sent),
        forwarded_frames=round(arrived),
        reordered_frames=_reordered(end) if not way.name else None,
        invalid=tuple(invalid),
        notes=tuple(notes),
    )
    return Record(
        source=f"iperf3 {root.at('start.version').text().removeprefix('iperf ')}".strip(),
        title=" ".join(filter(None, ("UDP test", way.name))),
        goal="run",
        frame_bytes=frame_bytes,
        ports=1,
        flows=streams,
        tester=root.at("start.version").text(),
        trial=trial,
        facts={"jitter_rfc3550_s": jitter_s} if math.isfinite(jitter_s) else {},
    )


def _host(root: Node) -> str:
    for connection in root.at("start.connected").items() if root.at("start.connected") else ():
        return connection.get("remote_host").text()
    return root.at("start.connecting_to.host").text()


def _counts(end: Node, way: _Way, payload_bytes: float) -> tuple[float, float, float, list[str]]:
    """Return the datagrams sent, lost and arrived, and notes on corrected counts."""
    notes: list[str] = []
    total = end.get(way.sum)
    lost = total.need("lost_packets").finite(least=0.0)
    if way.sent not in end or way.received not in end:
        sent = total.need("packets").finite(least=0.0)
        notes.append(
            f"end.{way.sum} alone is there (iperf3 before 3.11): it does not see what was lost after the last datagram"
        )
        return sent, lost, sent - lost, notes
    sent = end.get(way.sent).need("packets").finite(least=0.0)
    streams = [node.get("udp") for node in end.get("streams").items()] if end.get("streams") else []
    if way.name == "" and len(streams) > 0 and WAYS[1].sum not in end:
        added = sum(node.get("packets").number() for node in streams)
        if math.isfinite(added) and added != sent:
            notes.append(
                f"end.{way.sent}.packets is {sent:,.0f}, its streams sum up to {added:,.0f}: the larger counts"
            )
            sent = max(sent, added)
    if math.isnan(sent) or math.isnan(lost):
        return sent, lost, math.nan, notes
    received = end.get(way.received)
    counted = received.get("packets").number(least=0.0)
    arrived = received.get("bytes").number(least=0.0) / payload_bytes
    if not arrived > 0.0:
        arrived = counted - lost if math.isfinite(counted) else sent - lost
    if math.isfinite(counted) and round(arrived) != round(counted - lost):
        notes.append(
            f"end.{way.received}: {counted:,.0f} packets less {lost:,.0f} lost are {counted - lost:,.0f}, but its "
            f"bytes are {arrived:,.0f} datagrams: the bytes count"
        )
    unseen = sent - counted
    if math.isfinite(unseen) and unseen > 0.0:
        notes.append(
            f"end.{way.received}.packets: {unseen:,.0f} of the datagrams sent came after the last that arrived; "
            "they count as lost here, not in iperf3's lost_percent"
        )
    return sent, lost, arrived, notes


def _reordered(end: Node) -> int | None:
    if not end.get("streams"):
        return None
    counts = [node.at("udp.out_of_order").count() for node in end.get("streams").items()]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
