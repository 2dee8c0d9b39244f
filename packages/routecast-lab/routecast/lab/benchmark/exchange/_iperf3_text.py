"""The text that iperf3 prints for people: the last lines of a test, ``sender`` and ``receiver``.

The client has both lines, the server that of its own side alone. The datagrams of a receiver are the highest sequence
number. The bytes are rounded to three digits, so the size of the datagrams is known from ``--verbose`` alone ("1448
byte blocks").

A test of TCP counts bytes of its stream: the bit rates of the payload are facts of its trial, and rates of frames and
loss are not known. With ``--bidir`` each line names the role of its side (``TX-C``, ``RX-C``; ``TX-S``, ``RX-S`` at the
server), and each direction is a trial. Bits count in thousands, bytes in 1,024 (esnet/iperf, ``src/units.c``).
"""

from __future__ import annotations

import math
import re
from typing import Final

from routecast.errors import FileProblem, Problem
from routecast.lab.benchmark.exchange._document import MAX_NUMBER
from routecast.lab.benchmark.exchange._iperf3 import HEADERS_BYTES
from routecast.lab.benchmark.exchange._record import NAN, Record, measured
from routecast.quantity import format_bps

_HEAD: Final = re.compile(r"^\[ *ID\](?:\[Role\])? +Interval +Transfer", re.MULTILINE)
_LINE: Final = re.compile(
    r"^\[ *(?P<id>\d+|SUM)\] +(?P<start>\d+\.\d+)-(?P<end>\d+\.\d+) +sec .*?"
    r"(?P<lost>-?\d+)/(?P<total>\d+) \([^)]*\) +(?P<side>sender|receiver)\s*$",
    re.MULTILINE,
)
_TCP: Final = re.compile(
    r"^\[ *(?P<id>\d+|SUM)\](?:\[(?P<role>[TR]X-[CS])\])? +(?P<start>\d+\.\d+)-(?P<end>\d+\.\d+) +sec +"
    r"[\d.]+ [KMGT]?Bytes +(?P<rate>[\d.]+) (?P<prefix>[KMGT]?)(?P<unit>bits|Bytes)/sec +(?:(?P<resent>\d+) +)?"
    r"(?P<side>sender|receiver)\s*$",
    re.MULTILINE,
)
_PREFIXES: Final = "KMGT"
_BLOCKS: Final = re.compile(r"\b(\d{1,6}) byte blocks")
_TESTS: Final = re.compile(r"^(?=(?:Connecting to host|Accepted connection from|Server listening on) )", re.MULTILINE)
_REMEDY: Final = "write its JSON with iperf3 --json --logfile FILE"


def is_iperf3_text(text: str) -> bool:
    """Whether a text is what iperf3 prints for people."""
    return bool(_HEAD.search(text[:10_000]))


def read_iperf3_text(text: str, name: str) -> tuple[Record, ...]:
    """Read a trial for each test, of the sums of its streams; of a TCP test that ran both ways a trial each way.

    Raises FileProblem: no test has a summary, or a UDP test ran both ways or with ``--omit``.
    """
    records: list[Record] = []
    for part in _TESTS.split(text):
        record = _record(part, name)
        records += [record] if record is not None else _tcp_records(part)
    if not records:
        raise FileProblem(name, [Problem("", f"has no last lines of sender or receiver: {_REMEDY}")])
    return tuple(records)


def _record(text: str, name: str) -> Record | None:
    lines = list(_LINE.finditer(text))
    if not lines:
        return None
    if "(omitted)" in text or "][TX-" in text or "][RX-" in text:
        message = f"ran both ways or omitted its start, which the text does not keep apart: {_REMEDY}"
        raise FileProblem(name, [Problem("", message)])
    sums = [line for line in lines if line["id"] == "SUM"]
    sides = {side: [line for line in sums or lines if line["side"] == side] for side in ("sender", "receiver")}
    sent, received = (_totals(sides[side]) for side in ("sender", "receiver"))
    if received is None:
        return None
    total, lost, seconds = received
    notes = []
    if sent is None:
        notes.append("a server wrote it: datagrams lost after the last that arrived are not counted")
    offered, _, sent_s = sent or received
    arrived = total - lost
    if min(seconds, sent_s) <= 0.0 or offered <= 0 or offered > MAX_NUMBER:
        raise FileProblem(name, [Problem("", f"has a test without a duration or datagrams: {_REMEDY}")])
    block = _BLOCKS.search(text)
    headers = HEADERS_BYTES[6 if re.search(r"local [0-9a-f]*:[0-9a-f:]+ port", text) else 4]
    frame_bytes = float(max(int(block[1]) + headers, 64)) if block else NAN
    if not block:
        notes.append("the text does not state the size of the datagrams: --frame states it")
    loss_ratio = max(1.0 - arrived / offered, 0.0)
    trial = measured(
        intended_pps=NAN,
        offered_pps=offered / sent_s,
        forwarded_pps=offered / sent_s * (1.0 - loss_ratio),
        loss_ratio=loss_ratio,
        frame_bytes=frame_bytes,
        duration_s=sent_s,
        offered_frames=offered,
        forwarded_frames=arrived,
        invalid=(f"{arrived:,} datagrams arrived of {offered:,} sent (negative loss)",) if arrived > offered else (),
        notes=tuple(notes),
    )
    return Record(
        source="iperf3 text",
        tester="iperf3",
        ports=1,
        flows=len({line["id"] for line in lines if line["id"] != "SUM"}) or None,
        frame_bytes=frame_bytes,
        trial=trial,
    )


def _tcp_records(text: str) -> list[Record]:
    """Return the trials of a TCP test: one, or with ``--bidir`` one each way."""
    lines = list(_TCP.finditer(text))
    records = []
    for title, roles in (("TCP test", {None, "TX-C", "RX-S"}), ("TCP test reverse", {"RX-C", "TX-S"})):
        of_way = [line for line in lines if line["role"] in roles]
        if of_way:
            records.append(_tcp_record(text, of_way, title))
    return records


def _tcp_record(text: str, lines: list[re.Match[str]], title: str) -> Record:
    sums = [line for line in lines if line["id"] == "SUM"] or lines
    rates_bps, seconds = {}, []
    for side in ("sender", "receiver"):
        of_side = [line for line in sums if line["side"] == side]
        rate_bps = math.fsum(_bps(line) for line in of_side)
        # A side whose bytes the writer does not know has a line of zeros, or none.
        if rate_bps > 0.0:
            rates_bps[side] = rate_bps
            seconds += [float(line["end"]) - float(line["start"]) for line in of_side]
    facts: dict[str, object] = {f"{side}_payload_bps": rate_bps for side, rate_bps in rates_bps.items()}
    resent = [int(line["resent"]) for line in sums if line["side"] == "sender" and line["resent"] is not None]
    if resent:
        facts["retransmissions"] = sum(resent)
    notes = ["TCP counts the bytes of a stream: rates of frames and loss are not known; run iperf3 -u -b RATE for them"]
    if rates_bps:
        of = " and ".join(f"{format_bps(rate_bps)} at the {side}" for side, rate_bps in rates_bps.items())
        notes.insert(0, f"payload of TCP: {of}")
    missing = [side for side in ("sender", "receiver") if side not in rates_bps]
    if missing:
        notes.append(f"the writer does not know the bytes of the {' and of the '.join(missing)}")
    stopped = re.search(r"^iperf3: (?:error|interrupt) - .*$", text, re.MULTILINE)
    trial = measured(
        intended_pps=NAN,
        offered_pps=NAN,
        forwarded_pps=NAN,
        duration_s=max(seconds, default=NAN),
        invalid=(stopped[0],) if stopped else (),
        notes=tuple(notes),
    )
    return Record(
        source="iperf3 text",
        title=title,
        tester="iperf3",
        ports=1,
        flows=len({line["id"] for line in lines if line["id"] != "SUM"}) or None,
        trial=trial,
        facts=facts,
    )


def _bps(line: re.Match[str]) -> float:
    """Return the rate of a line, bits/s."""
    steps = _PREFIXES.index(line["prefix"]) + 1 if line["prefix"] else 0
    return float(line["rate"]) * (8.0 * 1024.0**steps if line["unit"] == "Bytes" else 1000.0**steps)


def _totals(lines: list[re.Match[str]]) -> tuple[int, int, float] | None:
    """Return the datagrams, those lost, and the seconds of the lines of one side."""
    if not lines:
        return None
    seconds = math.fsum(float(line["end"]) - float(line["start"]) for line in lines) / len(lines)
    return sum(int(line["total"]) for line in lines), sum(int(line["lost"]) for line in lines), seconds
