"""iperf3 ``--json`` and ``--json-stream`` of UDP tests (esnet/iperf, ``src/iperf_api.c``, versions 3.1 to 3.21).

What a file holds depends on who wrote it:

==================  ===========================  ==============================================================
writer              counts of the sender         counts of the receiver
==================  ===========================  ==============================================================
client              known                        known (the server sends its own at the end)
server, receives    not known                    known
server, sends (-R)  known                        not known: its zeros are no counts
==================  ===========================  ==============================================================

Its numbers:

- ``blksize`` is the UDP payload; headers and FCS are added here (S1).
- ``end.sum`` mixes sender and receiver: bytes are those sent. Its packets are those that the receiver numbered (3.1),
  or since 3.2 those of the sender where the writer knows them. ``sum_sent`` and ``sum_received`` (since 3.11) separate
  them. ``sum_received.packets`` is the highest sequence number, so it counts datagrams lost on the way as well;
  ``sum_received.bytes`` over the payload are the datagrams that arrived.
- Datagrams lost after the last that arrived are in no count of the receiver; only the sender's has them.
- ``--bidir`` writes two keys ``sum`` from 3.7 to 3.10, of which a reader of JSON keeps one: the streams count.
- With ``--omit`` each side starts to count at a moment of its own, so frames that one side counts the other does not;
  the lost datagrams may include those of the omitted part (issue 1489). Rates count then, not sums.
- Known defects: ``-nan`` (issues 364, 613, 826), sums that differ from those of the streams (754, 1784).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from routecast.lab.benchmark.exchange._document import Document, Node
from routecast.lab.benchmark.exchange._record import NAN, Record, measured, unknown_loss

HEADERS_BYTES = {4: 14 + 20 + 8 + 4, 6: 14 + 40 + 8 + 4}
"""Ethernet, IP, UDP and FCS around a datagram's payload."""

MAX_PLAIN_FRAME_BYTES = 1518
"""Greatest frame of a link without jumbo frames."""

_FULL_RATE_RATIO = 0.98
"""Share of the intended datagrams from which those that the receiver numbered count as all."""

_EVENTS = ("start", "end", "error", "server_output_json", "server_output_text")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counts:
    """Datagrams of one direction; NaN where the file has no count."""

    sent: float
    numbered: float  # highest sequence numbers that arrived
    lost: float
    arrived: float
    sent_s: float
    received_s: float
    knows_sender: bool
    knows_receiver: bool


def is_iperf3(root: Node) -> bool:
    """Whether the document is one of iperf3."""
    version = root.at("start.version").value
    return (isinstance(version, str) and version.startswith("iperf")) or (
        "error" in root and "start" in root and "intervals" in root
    )


def join_values(values: Sequence[object]) -> list[object] | None:
    """Return a document for each test of a file with several JSON values; None if they are not of iperf3.

    ``--json-stream`` writes one event a line, ``--json-stream-full-output`` the document after them; a server and
    ``--logfile`` append test to test.
    """
    results: list[object] = []
    events: dict[str, object] | None = None
    for value in values:
        if not isinstance(value, dict):
            return None
        name = value.get("event")
        if isinstance(name, str) and "data" in value:
            if name == "start" or events is None:
                events = {"intervals": []}
                results.append(events)
            if name in _EVENTS:
                events[name] = value["data"]
            elif name == "interval":
                intervals = events["intervals"]
                assert isinstance(intervals, list)
                intervals.append(value["data"])
        elif events is not None and value.get("start") == events.get("start"):
            results[-1], events = value, None
        elif "start" in value:
            results.append(value)
            events = None
        else:
            return None
    return results


def read_iperf3(document: Document) -> tuple[Record, ...]:
    """Read the trial of a UDP test, or the two trials of a bidirectional one.

    Raises FileProblem: the test ended with an error before its sums, used TCP or SCTP, or lacks a value of a trial.
    """
    root = document.root
    error = root.get("error").text() if root.get("error") else ""
    end = root.get("end")
    has_sums = any("sum" in name for name, _ in end.entries()) if isinstance(end.value, dict) else False
    if error and not has_sums:
        root.get("error").problem(f"iperf3 stopped with {error!r}: there is no result")
    document.check()
    start = root.need("start.test_start")
    protocol = start.need("protocol").text()
    if protocol and protocol.upper() != "UDP":
        message = f"got {protocol!r}: a stream of bytes has no count of frames, and loses none; run iperf3 --udp"
        start.get("protocol").problem(message)
    if not end.value:
        end.problem("is missing or empty: the test did not end")
    document.check()
    directions = [direction for direction in DIRECTIONS if direction.sum in end]
    if len(directions) == 1 and all(
        any(stream.get("sender").value is flag for stream in _streams(end)) for flag in (True, False)
    ):
        directions = list(DIRECTIONS)
    records = [_record(document, direction, len(directions) > 1, error) for direction in directions]
    if not records:
        root.need("end.sum")
    document.check()
    return tuple(record for record in records if record)


def _record(document: Document, direction: _Direction, is_bidirectional: bool, error: str) -> Record | None:
    root = document.root
    start, end = root.at("start.test_start"), root.get("end")
    payload_bytes = start.need("blksize").finite(least=1.0)
    frame_bytes = payload_bytes + HEADERS_BYTES[6 if ":" in _remote_host(root) else 4]
    notes = list(document.notes)
    if frame_bytes > MAX_PLAIN_FRAME_BYTES:
        notes.append(
            f"start.test_start.blksize: {payload_bytes:g} bytes make frames of {frame_bytes:g}, which only links with "
            "jumbo frames carry unfragmented"
        )
    counts = _counts(root, direction, is_bidirectional, payload_bytes, notes)
    streams = start.get("num_streams").count() or 1
    target_bps = start.get("target_bitrate").number(least=0.0)
    jitter_s = 1e-3 * _sum(end, direction.received, direction.sum).get("jitter_ms").number(least=0.0)
    if counts is None or math.isnan(counts.lost) or math.isnan(counts.sent_s) or document.problems:
        return None
    if counts.sent_s <= 0.0 or (counts.knows_sender and not counts.sent > 0.0):
        end.get(direction.sum).problem("no datagram was sent: there is no trial")
        return None
    if error:
        counts = replace(counts, knows_receiver=counts.knows_receiver and counts.arrived > 0.0)
    invalid = [f"iperf3 stopped with {error!r}"] if error else []
    target_pps = target_bps * streams / (8.0 * payload_bytes) if target_bps > 0.0 else NAN
    rates = _rates(root, direction, counts, start.get("omit").number(least=0.0) > 0.0, target_pps, notes, invalid)
    if root.get("warning"):
        notes.append(f"warning: {root.get('warning').text()}")
    trial = measured(
        intended_pps=target_pps if target_pps > 0.0 else rates.offered_pps,
        offered_pps=rates.offered_pps,
        forwarded_pps=rates.forwarded_pps,
        loss_ratio=rates.loss_ratio,
        frame_bytes=frame_bytes,
        duration_s=counts.sent_s,
        offered_frames=rates.offered_frames,
        forwarded_frames=rates.forwarded_frames,
        reordered_frames=_reordered(end) if not is_bidirectional and counts.knows_receiver else None,
        invalid=tuple(invalid),
        notes=tuple(notes),
    )
    if math.isnan(rates.loss_ratio):
        trial = unknown_loss(trial)
    return Record(
        source=f"iperf3 {root.at('start.version').text().removeprefix('iperf ')}".strip(),
        title=" ".join(filter(None, ("UDP test", direction.name))),
        goal="run",
        frame_bytes=frame_bytes,
        ports=1,
        flows=streams,
        tester=root.at("start.version").text(),
        trial=trial,
        facts={"jitter_rfc3550_s": jitter_s} if math.isfinite(jitter_s) and counts.knows_receiver else {},
    )


def _remote_host(root: Node) -> str:
    for connection in root.at("start.connected").items() if root.at("start.connected") else ():
        return connection.get("remote_host").text()
    return root.at("start.connecting_to.host").text()


def _streams(end: Node) -> Iterator[Node]:
    for stream in end.get("streams").items() if end.get("streams") else ():
        yield stream.get("udp")


def _sum(end: Node, *names: str) -> Node:
    """Return the first of the sums that the file has."""
    return next((end.get(name) for name in names if name in end), end.get(names[-1]))


def _writer(root: Node) -> str:
    """Return ``"client"``, ``"server"``, or nothing where the file does not say who wrote it."""
    start = root.get("start")
    if "accepted_connection" in start:
        return "server"
    if "connecting_to" in start:
        return "client"
    flags = [stream.get("sender").value for stream in _streams(root.get("end"))]
    is_sender = next((flag for flag in (*flags, root.at("end.sum.sender").value) if isinstance(flag, bool)), None)
    if is_sender is not None:
        return "client" if is_sender != start.at("test_start.reverse").flag() else "server"
    return ""


def _counts(
    root: Node, direction: _Direction, is_bidirectional: bool, payload_bytes: float, notes: list[str]
) -> _Counts | None:
    """Return the counts of a direction, with notes on corrected ones; None where the sums are missing."""
    document, end, writer = root.document, root.get("end"), _writer(root)
    is_to_client = direction.name == "reverse" if is_bidirectional else root.at("start.test_start.reverse").flag()
    is_sent_by_writer = (writer == "server") == is_to_client
    if is_bidirectional and DIRECTIONS[1].sum not in end:
        return _stream_counts(end, writer, is_sent_by_writer, payload_bytes, notes)
    total = end.get(direction.sum)
    sent_sum, received_sum = _sum(end, direction.sent, direction.sum), _sum(end, direction.received, direction.sum)
    lost = _lost(total, notes)
    times_s = {
        side: node.need("seconds").finite(least=0.0) for side, node in (("sent", sent_sum), ("got", received_sum))
    }
    sent_bytes = sent_sum.get("bytes").number(least=0.0)
    knows_sender = writer != "server" or is_sent_by_writer
    has_received = any(received_sum.get(key).value not in (None, 0) for key in ("bytes", "packets"))
    knows_receiver = writer == "client" or not is_sent_by_writer or (not writer and has_received)
    packets = sent_sum.need("packets").finite(least=0.0) if knows_sender else 0.0
    counts = _Counts(
        sent=packets,
        numbered=received_sum.need("packets").finite(least=0.0) if knows_receiver else 0.0,
        lost=lost,
        arrived=NAN,
        sent_s=times_s["sent"],
        received_s=times_s["got"],
        knows_sender=knows_sender,
        knows_receiver=knows_receiver,
    )
    if document.problems:
        return None
    if direction.sent in end and direction.received in end:
        arrived = received_sum.get("bytes").number(least=0.0) / payload_bytes
        return _checked_counts(end, direction, replace(counts, arrived=arrived), is_bidirectional, notes)
    by_bytes = sent_bytes / payload_bytes
    if counts.knows_sender and by_bytes > packets:  # 3.1: bytes of the sender, packets of the receiver
        return replace(counts, sent=float(round(by_bytes)), arrived=packets - lost, knows_receiver=True)
    if counts.knows_receiver:
        notes.append(
            f"only end.{direction.sum} is present (iperf3 before 3.11): it lacks the datagrams lost after the last one "
            "that arrived"
        )
    return replace(counts, arrived=(packets if knows_sender else counts.numbered) - lost)


def _lost(total: Node, notes: list[str]) -> float:
    lost = total.need("lost_packets").finite()
    if lost < 0.0:
        notes.append(f"{total.place}.lost_packets is {lost:g}: datagrams that came late or twice; read as 0")
    return max(lost, 0.0) if math.isfinite(lost) else lost


def _stream_counts(
    end: Node, writer: str, is_sent_by_writer: bool, payload_bytes: float, notes: list[str]
) -> _Counts | None:
    """Return the counts of the streams of one direction, where the sums of both have one name."""
    streams = [stream for stream in _streams(end) if stream.get("sender").flag() == is_sent_by_writer]
    if not streams:
        end.get("streams").problem("has no stream of one of the directions")
        return None
    packets = math.fsum(stream.need("packets").finite(least=0.0) for stream in streams)
    lost = math.fsum(_lost(stream, notes) for stream in streams)
    seconds = streams[0].need("seconds").finite(least=0.0)
    notes.append(
        "end.sum stands for both directions (iperf3 3.7 to 3.10): the streams count, which lack the datagrams lost "
        "after the last one that arrived"
    )
    return _Counts(
        sent=packets,
        numbered=packets,
        lost=lost,
        arrived=packets - lost,
        sent_s=seconds,
        received_s=seconds,
        knows_sender=writer != "server" or is_sent_by_writer,
        knows_receiver=writer == "client" or not is_sent_by_writer,
    )


def _checked_counts(
    end: Node, direction: _Direction, counts: _Counts, is_bidirectional: bool, notes: list[str]
) -> _Counts:
    """Return the counts of separate sums, corrected by those of the streams and the bytes."""
    sent, lost, numbered, arrived = counts.sent, counts.lost, counts.numbered, counts.arrived
    streams = list(_streams(end))
    if streams and not is_bidirectional and counts.knows_sender:
        sent_by_streams = sum(stream.get("packets").number() for stream in streams)
        if math.isfinite(sent_by_streams) and sent_by_streams != sent:
            notes.append(
                f"end.{direction.sent}.packets is {sent:,.0f}, the sum of its streams {sent_by_streams:,.0f}: the "
                "larger number counts"
            )
            sent = max(sent, sent_by_streams)
    if not counts.knows_receiver:
        return replace(counts, sent=sent)
    if not arrived > 0.0:
        arrived = numbered - lost
    if round(arrived) != round(numbered - lost):
        notes.append(
            f"end.{direction.received}: {numbered:,.0f} packets less {lost:,.0f} lost are {numbered - lost:,.0f}, "
            f"but its bytes are {arrived:,.0f} datagrams: the bytes count"
        )
    if counts.knows_sender and sent > numbered:
        notes.append(
            f"end.{direction.received}.packets: {sent - numbered:,.0f} of the datagrams sent came after the last that "
            "arrived; they count as lost here, not in iperf3's lost_percent"
        )
    return replace(counts, sent=sent, arrived=arrived)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rates:
    """Rates of a trial; NaN and None where they are not known."""

    offered_pps: float
    forwarded_pps: float
    loss_ratio: float
    offered_frames: int | None = None
    forwarded_frames: int | None = None


def _rates(
    root: Node,
    direction: _Direction,
    counts: _Counts,
    omits: bool,
    target_pps: float,
    notes: list[str],
    invalid: list[str],
) -> _Rates:
    """Return the rates of a trial, and add a sentence on each that is not known."""
    if not counts.knows_receiver:
        notes.append(
            "the sender wrote this file, and the receiver's counts are not in it: the loss is not known; take the "
            "file of the other side, the client's where the server sends"
        )
        return _Rates(
            offered_pps=counts.sent / counts.sent_s,
            forwarded_pps=NAN,
            loss_ratio=NAN,
            offered_frames=round(counts.sent),
        )
    if not counts.knows_sender:
        return _receiver_rates(counts, target_pps, notes, invalid)
    if omits:
        return _omit_rates(root, direction, counts, notes)
    invalid += [
        f"{count:,.0f} datagrams {fate} of {counts.sent:,.0f} sent: the counts contradict each other"
        for fate, count in (("arrived", counts.arrived), ("lost", counts.lost))
        if count > counts.sent
    ]
    arrived = min(max(counts.arrived, 0.0), counts.sent)
    return _Rates(
        offered_pps=counts.sent / counts.sent_s,
        forwarded_pps=arrived / counts.sent_s,
        loss_ratio=1.0 - arrived / counts.sent,
        offered_frames=round(counts.sent),
        forwarded_frames=round(arrived),
    )


def _receiver_rates(counts: _Counts, target_pps: float, notes: list[str], invalid: list[str]) -> _Rates:
    """Return the rates of a receiver's file: of the sender it has only the sequence numbers that arrived."""
    what = "the receiving server wrote this file, and the sender's count is not in it"
    duration_s = counts.received_s or counts.sent_s
    arrived = max(min(counts.arrived, counts.numbered), 0.0)
    if counts.lost > counts.numbered > 0.0:
        invalid.append(f"{counts.lost:,.0f} datagrams lost of {counts.numbered:,.0f}: the counts contradict each other")
    is_part = counts.numbered < _FULL_RATE_RATIO * target_pps * duration_s
    if not counts.numbered > 0.0 or is_part:
        least = f", and at least {counts.lost:,.0f} of {counts.numbered:,.0f}" if counts.lost else ""
        came = "no datagram arrived" if not counts.numbered > 0.0 else "fewer came than the rate that was asked for"
        notes.append(f"{what}; {came}: the loss is not known{least}; take the client's file")
        return _Rates(
            offered_pps=NAN, forwarded_pps=arrived / duration_s, loss_ratio=NAN, forwarded_frames=round(arrived)
        )
    notes.append(f"{what}: datagrams lost after the last one that arrived are not counted; the client's file has them")
    return _Rates(
        offered_pps=counts.numbered / duration_s,
        forwarded_pps=arrived / duration_s,
        loss_ratio=1.0 - arrived / counts.numbered,
        offered_frames=round(counts.numbered),
        forwarded_frames=round(arrived),
    )


def _omit_rates(root: Node, direction: _Direction, counts: _Counts, notes: list[str]) -> _Rates:
    """Return the rates after ``--omit``, where each side starts to count at its own moment."""
    offered_pps = counts.sent / counts.sent_s
    forwarded_pps = max(counts.arrived, 0.0) / (counts.received_s or counts.sent_s)
    receivers = root.at("server_output_json.intervals"), root.get("intervals")
    ratio = next((ratio for node in receivers if (ratio := _loss_of_intervals(node, direction)) is not None), None)
    text = "start.test_start.omit: sender and receiver start to count at different moments, so no frames are counted"
    if ratio is not None:
        notes.append(f"{text}; the loss is that of the receiver's intervals")
    elif counts.lost == 0.0 and counts.numbered > 0.0:
        ratio = 0.0
        notes.append(f"{text}; the receiver missed no sequence number")
    elif forwarded_pps <= offered_pps:
        ratio = 1.0 - forwarded_pps / offered_pps
        notes.append(f"{text}; the loss follows from the two rates")
    else:
        ratio = NAN
        notes.append(f"{text}; more arrived than was sent, so the loss is not known")
    if not math.isnan(ratio):
        forwarded_pps = offered_pps * (1.0 - ratio)
    return _Rates(offered_pps=offered_pps, forwarded_pps=forwarded_pps, loss_ratio=ratio)


def _loss_of_intervals(intervals: Node, direction: _Direction) -> float | None:
    """Return the loss in the intervals of a receiver that are not omitted; None where a sender wrote them."""
    lost = packets = 0.0
    for interval in intervals.items() if intervals else ():
        total = interval.get(direction.sum)
        if "lost_packets" not in total:
            return None
        if not total.get("omitted").flag():
            lost += total.get("lost_packets").number(default=0.0)
            packets += total.get("packets").number(least=0.0, default=0.0)
    return min(max(lost / packets, 0.0), 1.0) if packets > 0.0 else None


def _reordered(end: Node) -> int | None:
    counts = [count for stream in _streams(end) if (count := stream.get("out_of_order").count()) is not None]
    return sum(counts) if counts else None
