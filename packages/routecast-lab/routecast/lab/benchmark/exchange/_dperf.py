"""Logs of dperf (baidu/dperf): names and numbers of each second, with commas between thousands.

``pktTx`` and ``pktRx`` are the frames of one side. Its log does not have what the router dropped: the other side
answers what it gets, with as many frames as its protocol needs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from statistics import fmean

from routecast.errors import FileProblem, Problem
from routecast.lab.benchmark.exchange._document import MAX_NUMBER
from routecast.lab.benchmark.exchange._record import Record, measured, unknown_loss

_HEAD = re.compile(r"^seconds\s+\d+\s+cpuUsage\s", re.MULTILINE)
_ENTRY = re.compile(r"(?<!\S)([A-Za-z][A-Za-z0-9]*)[ \t]+(\d{1,3}(?:,\d{3}){0,6}|\d{1,19})(?=\s)")
_OWN_LOSSES = ("dropTx", "oerrors", "imissed", "ierrors")
_FACTS = ("tcpDrop", "udpDrop", "synRt", "finRt", "ackRt", "pushRt", "skErr", "httpErr")


def is_dperf(text: str) -> bool:
    """Whether a text is a log of dperf."""
    return bool(_HEAD.search(text)) and "pktTx" in text


def read_dperf(text: str, name: str) -> tuple[Record, ...]:
    """Read the trial of a log: the seconds between its first and its last that sent.

    Raises FileProblem: nothing was sent.
    """
    starts = [match.start() for match in _HEAD.finditer(text)]
    blocks = [_numbers(text[start:end]) for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    whole = Counter(frozenset(block) for block in blocks).most_common(1)[0][0]
    seconds = [block for block in blocks if set(block) >= whole]
    sending = [second for second in seconds if second.get("pktTx", 0.0) > 0.0 and "pktRx" in second]
    if not sending:
        raise FileProblem(name, [Problem("pktTx", "no second has frames that were sent and received")])
    steady = sending[1:-1] or sending
    lost = {key: sum(second.get(key, 0.0) for second in sending) for key in _OWN_LOSSES}
    facts = {key: total for key in _FACTS if (total := sum(second.get(key, 0.0) for second in sending))}
    offered_pps, received_pps = (fmean(second[key] for second in steady) for key in ("pktTx", "pktRx"))
    notes = [
        "the log of one side has what it sent and what came back to it: the loss, and the frames of both directions "
        "together, are not known",
        "the log does not state the frame size: --frame states it",
    ]
    if len(seconds) < len(blocks):
        notes.append(f"{len(blocks) - len(seconds)} of {len(blocks)} seconds are not whole, and are left out")
    trial = measured(
        intended_pps=offered_pps,
        offered_pps=offered_pps,
        forwarded_pps=received_pps,
        duration_s=float(len(steady)),
        invalid=tuple(f"the tester lost {total:,.0f} frames itself ({key})" for key, total in lost.items() if total),
        notes=tuple(notes),
    )
    return (Record(source="dperf", tester="dperf", ports=1, trial=unknown_loss(trial), facts=dict(facts)),)


def _numbers(block: str) -> Mapping[str, float]:
    """Return the numbers of a second by name; the first counts, as a line after the block may repeat a name."""
    numbers: dict[str, float] = {}
    for key, digits in _ENTRY.findall(block[:10_000]):
        value = float(digits.replace(",", ""))
        if value <= MAX_NUMBER:
            numbers.setdefault(key, value)
    return numbers
