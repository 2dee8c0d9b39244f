"""iperf3 ``--json`` and ``--json-stream`` of UDP tests (esnet/iperf, ``src/iperf_api.c``, versions 3.1 to 3.19).

Its numbers:

- ``blksize`` is the UDP payload; headers and FCS are added here (S1).
- ``end.sum`` mixes sender and receiver: bytes are those sent, packets those that the receiver counts. ``sum_sent`` and
  ``sum_received`` (since 3.11) separate them. ``sum_received.packets`` is the highest sequence number, so it counts
  datagrams lost on the direction as well; ``sum_received.bytes`` over the payload are the datagrams that arrived.
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

MAX_PLAIN_FRAME_BYTES = 1518
"""Greatest frame of a link without jumbo frames."""


@dataclass(frozen=True, slots=True)
class _Direction:
    """Names of the sums of one direction."""

    name: str
    sum: str
    sent: str
    received: str


DIRECTIONS = (
    _Direction("", "sum", "sum_sent", "sum_received"),
    _Direction("reverse", "sum_bidir_reverse", "sum_sent_bidir_reverse", "sum_received_bidir_reverse"),
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
        start.get("protocol").problem(f"got {protocol!r}: only UDP tests count lost datagrams; run iperf3 --udp")
    if not root.get("end").value:
        root.get("end").problem("is missing or empty: the test did not end")
    document.check()
    records = [_record(document, direction) for direction in DIRECTIONS if direction.sum in root.get("end")]
    if not records:
        root.need("end.sum")
    document.check()
    return tuple(record for record in records if record)


def _record(document: Document, direction: _Direction) -> Record | None:
    root = document.root
    start, end = root.at("start.test_start"), root.get("end")
    payload_bytes = start.need("blksize").finite(least=1.0)
    version = 6 if ":" in _remote_host(root) else 4
    frame_bytes = payload_bytes + HEADERS_BYTES[version]
    notes = list(document.notes)
    if frame_bytes > MAX_PLAIN_FRAME_BYTES:
        notes.append(
            f"start.test_start.blksize: {payload_bytes:g} bytes make frames of {frame_bytes:g}, which only links with "
            "jumbo frames carry unfragmented"
        )
    sent, lost, arrived = _datagram_counts(end, direction, payload_bytes, notes)
    sent_sum = end.get(direction.sent if direction.sent in end else direction.sum)
    received_sum = end.get(direction.received if direction.received in end else direction.sum)
    duration_s = sent_sum.need("seconds").finite(least=0.0)
    if math.isnan(sent + lost + arrived) or math.isnan(duration_s) or document.problems:
        return None
    if sent <= 0.0 or duration_s <= 0.0:
        end.get(direction.sum).problem("no datagram was sent: there is no trial")
        return None
    invalid = [
        f"{count:,.0f} datagrams {fate} of {sent:,.0f} sent: the counts contradict each other"
        for fate, count in (("arrived", arrived), ("lost", lost))
        if count > sent
    ]
    if root.get("warning"):
        notes.append(f"warning: {root.get('warning').text()}")
    target_bps = start.get("target_bitrate").number(least=0.0)
    streams = start.get("num_streams").count() or 1
    intended_pps = target_bps * streams / (8.0 * payload_bytes) if target_bps > 0.0 else sent / duration_s
    jitter_s = 1e-3 * received_sum.get("jitter_ms").number(least=0.0)
    arrived = min(arrived, sent)
    trial = measured(
        intended_pps=intended_pps,
        offered_pps=sent / duration_s,
        forwarded_pps=arrived / duration_s,
        loss_ratio=1.0 - arrived / sent,
        frame_bytes=frame_bytes,
        duration_s=duration_s,
        offered_frames=round(sent),
        forwarded_frames=round(arrived),
        reordered_frames=_reordered(end) if not direction.name else None,
        invalid=tuple(invalid),
        notes=tuple(notes),
    )
    return Record(
        source=f"iperf3 {root.at('start.version').text().removeprefix('iperf ')}".strip(),
        title=" ".join(filter(None, ("UDP test", direction.name))),
        goal="run",
        frame_bytes=frame_bytes,
        ports=1,
        flows=streams,
        tester=root.at("start.version").text(),
        trial=trial,
        facts={"jitter_rfc3550_s": jitter_s} if math.isfinite(jitter_s) else {},
    )


def _remote_host(root: Node) -> str:
    for connection in root.at("start.connected").items() if root.at("start.connected") else ():
        return connection.get("remote_host").text()
    return root.at("start.connecting_to.host").text()


def _datagram_counts(
    end: Node, direction: _Direction, payload_bytes: float, notes: list[str]
) -> tuple[float, float, float]:
    """Return the datagrams sent, lost and arrived, and add notes on corrected counts."""
    total = end.get(direction.sum)
    lost = total.need("lost_packets").finite(least=0.0)
    if direction.sent not in end or direction.received not in end:
        sent = total.need("packets").finite(least=0.0)
        notes.append(
            f"only end.{direction.sum} is present (iperf3 before 3.11): it lacks the datagrams lost after the last one "
            "that arrived"
        )
        return sent, lost, sent - lost
    sent = end.get(direction.sent).need("packets").finite(least=0.0)
    streams = list(end.get("streams").items()) if end.get("streams") else []
    if streams and not direction.name and DIRECTIONS[1].sum not in end:
        sent_by_streams = sum(stream.at("udp.packets").number() for stream in streams)
        if math.isfinite(sent_by_streams) and sent_by_streams != sent:
            notes.append(
                f"end.{direction.sent}.packets is {sent:,.0f}, the sum of its streams {sent_by_streams:,.0f}: the "
                "larger number counts"
            )
            sent = max(sent, sent_by_streams)
    if math.isnan(sent) or math.isnan(lost):
        return sent, lost, math.nan
    received = end.get(direction.received)
    numbered = received.get("packets").number(least=0.0)
    arrived = received.get("bytes").number(least=0.0) / payload_bytes
    if not arrived > 0.0:
        arrived = (numbered if math.isfinite(numbered) else sent) - lost
    if math.isfinite(numbered) and round(arrived) != round(numbered - lost):
        notes.append(
            f"end.{direction.received}: {numbered:,.0f} packets less {lost:,.0f} lost are {numbered - lost:,.0f}, "
            f"but its bytes are {arrived:,.0f} datagrams: the bytes count"
        )
    if sent > numbered:
        notes.append(
            f"end.{direction.received}.packets: {sent - numbered:,.0f} of the datagrams sent came after the last that "
            "arrived; they count as lost here, not in iperf3's lost_percent"
        )
    return sent, lost, arrived


def _reordered(end: Node) -> int | None:
    streams = end.get("streams").items() if end.get("streams") else ()
    counts = [count for node in streams if (count := node.at("udp.out_of_order").count()) is not None]
    return sum(counts) if counts else None
