"""The text that iperf3 prints for people: the last lines of UDP tests, ``sender`` and ``receiver``.

The client has both lines, the server that of the receiver alone, whose datagrams are the highest sequence number. The
bytes are rounded to three digits, so the size of the datagrams is known from ``--verbose`` alone ("1448 byte blocks").
"""

from __future__ import annotations

import math
import re
from typing import Final

from routecast.errors import FileProblem, Problem
from routecast.lab.benchmark.exchange._document import MAX_NUMBER
from routecast.lab.benchmark.exchange._iperf3 import HEADERS_BYTES
from routecast.lab.benchmark.exchange._record import NAN, Record, measured

_HEAD: Final = re.compile(r"^\[ *ID\](?:\[Role\])? +Interval +Transfer", re.MULTILINE)
_LINE: Final = re.compile(
    r"^\[ *(?P<id>\d+|SUM)\] +(?P<start>\d+\.\d+)-(?P<end>\d+\.\d+) +sec .*?"
    r"(?P<lost>-?\d+)/(?P<total>\d+) \([^)]*\) +(?P<side>sender|receiver)\s*$",
    re.MULTILINE,
)
_TCP: Final = re.compile(r"^\[ *(?:\d+|SUM)\] .*/sec +(?:\d+ +)?(?:sender|receiver)\s*$", re.MULTILINE)
_BLOCKS: Final = re.compile(r"\b(\d{1,6}) byte blocks")
_TESTS: Final = re.compile(r"^(?=(?:Connecting to host|Accepted connection from|Server listening on) )", re.MULTILINE)
_REMEDY: Final = "write its JSON with iperf3 --json --logfile FILE"


def is_iperf3_text(text: str) -> bool:
    """Whether a text is what iperf3 prints for people."""
    return bool(_HEAD.search(text[:10_000]))


def read_iperf3_text(text: str, name: str) -> tuple[Record, ...]:
    """Read a trial for each UDP test, of the sums of its streams.

    Raises FileProblem: no test has a summary that tells what was lost, or a test ran both ways or with ``--omit``.
    """
    records = [record for part in _TESTS.split(text) if (record := _record(part, name)) is not None]
    if not records:
        what = "has a test of TCP, which counts no frames: run iperf3 -u -b RATE, and" if _TCP.search(text) else ""
        message = f"{what or 'has no lines of sender or receiver with lost datagrams:'} {_REMEDY}"
        raise FileProblem(name, [Problem("", message)])
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


def _totals(lines: list[re.Match[str]]) -> tuple[int, int, float] | None:
    """Return the datagrams, those lost, and the seconds of the lines of one side."""
    if not lines:
        return None
    seconds = math.fsum(float(line["end"]) - float(line["start"]) for line in lines) / len(lines)
    return sum(int(line["total"]) for line in lines), sum(int(line["lost"]) for line in lines), seconds
