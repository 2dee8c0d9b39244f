"""Lists of packets as Wireshark and ``tshark -T fields`` write them: times, lengths and addresses as a table."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC

from routecast.errors import FileProblem, Problem
from routecast.load.trace import RecordedFrames
from routecast.quantity.table_file import csv_cells

__all__ = ["columns_of", "is_packet_list", "packet_list"]

_TIME = re.compile(
    r"(?:_ws\.col\.)?time|(?:frame\.)?time_(?:epoch|relative|s|ms|us|ns)|timestamp(?:_(?:s|ms|us|ns))?", re.IGNORECASE
)
_SCALE_S = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_LENGTH = re.compile(r"(?:_ws\.col\.|frame\.)?len(?:gth)?|frame\.cap_len|bytes|size", re.IGNORECASE)
_WITH_FCS = re.compile(r"frames?|frame_size|frame_bytes", re.IGNORECASE)
_ADDRESS = re.compile(
    r"(?:_ws\.col\.(?:def_)?)?(?:src|source|dst|destination|protocol)(?:[ _.]?(?:ip|addr|address|port))?"
    r"|(?:ip|ipv6|udp|tcp)\.(?:src|dst|srcport|dstport|proto|nxt)|s?d?port|flow(?:_id)?",
    re.IGNORECASE,
)
_FCS_BYTES, _MIN_BYTES, _MAX_BYTES = 4, 64, 65_535
_MAX_PROBLEMS = 20


def is_packet_list(text: str) -> bool:
    """Whether a text has a head with a time and a length of each packet."""
    head = next((line for line in text[:10_000].splitlines() if line.strip()), "")
    try:
        rows = csv_cells(head.lstrip("\ufeff"), name="")
    except FileProblem:
        return False
    names = [name.strip() for name in rows[0]] if rows else []
    return any(map(_TIME.fullmatch, names)) and any(_LENGTH.fullmatch(n) or _WITH_FCS.fullmatch(n) for n in names)


def packet_list(path: str, text: str) -> RecordedFrames:
    """Read the frames of a list of packets; packets with the same addresses, ports and protocol are a flow.

    Raises FileProblem: a row has no time, or a length that no frame has.
    """
    rows = [row for row in csv_cells(text.lstrip("\ufeff"), name=path) if any(cell.strip() for cell in row)]
    names = [name.strip() for name in rows[0]]
    time_at = next(index for index, name in enumerate(names) if _TIME.fullmatch(name))
    with_fcs = next((index for index, name in enumerate(names) if _WITH_FCS.fullmatch(name)), None)
    length_at = with_fcs if with_fcs is not None else next(i for i, name in enumerate(names) if _LENGTH.fullmatch(name))
    address_at = [index for index, name in enumerate(names) if _ADDRESS.fullmatch(name)]
    scale_s = next((scale for unit, scale in _SCALE_S.items() if names[time_at].lower().endswith(f"_{unit}")), 1.0)
    numbers: dict[tuple[str, ...], int] = {}

    def read(row: Sequence[str]) -> tuple[float, int, int]:
        if len(row) != len(names):
            raise ValueError(f"has {len(row)} fields, the head {len(names)}")
        time_s = _time_s(row[time_at].strip()) * scale_s
        if not math.isfinite(time_s):
            raise ValueError(f"has the time {time_s}: instants are finite")
        length = int(row[length_at])
        size = length if with_fcs is not None else max(length + _FCS_BYTES, _MIN_BYTES)
        if length < 1 or not _MIN_BYTES <= size <= _MAX_BYTES:
            raise ValueError(f"has a length of {length} B: frames have 64 to 65535 bytes with FCS")
        return time_s, size, numbers.setdefault(tuple(row[index] for index in address_at), len(numbers))

    numbered = ((f"row {number}", row) for number, row in enumerate(rows[1:], start=2))
    times_s, sizes_bytes, flows = columns_of(numbered, read, path=path)
    if not times_s:
        raise FileProblem(path, [Problem("", "has no packets")])
    return RecordedFrames.of(
        times_s, sizes_bytes, flows, notes=_notes(names, length_at, with_fcs, address_at, len(numbers))
    )


def columns_of(
    rows: Iterable[tuple[str, Sequence[str]]], read: Callable[[Sequence[str]], tuple[float, int, int]], *, path: str
) -> tuple[list[float], list[int], list[int]]:
    """Return the times in s, the sizes in bytes and the flows of rows with their places.

    ``read`` reads a row and raises ValueError where it is wrong. Raises FileProblem: rows are wrong; up to twenty are
    listed.
    """
    times_s: list[float] = []
    sizes_bytes: list[int] = []
    flows: list[int] = []
    problems: list[Problem] = []
    for place, row in rows:
        try:
            time_s, size_bytes, flow = read(row)
        except (ValueError, OverflowError) as problem:
            problems.append(Problem(place, str(problem)[:200]))
            if len(problems) == _MAX_PROBLEMS:
                break
            continue
        times_s.append(time_s)
        sizes_bytes.append(size_bytes)
        flows.append(flow)
    if problems:
        raise FileProblem(path, problems)
    return times_s, sizes_bytes, flows


def _time_s(text: str) -> float:
    from routecast.load.series.times import parse_time

    try:
        return float(text)
    except ValueError:
        time = parse_time(text)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def _notes(
    names: Sequence[str], length_at: int, with_fcs: int | None, address_at: Sequence[int], flow_count: int
) -> list[str]:
    notes = []
    if with_fcs is None:
        notes.append(f'"{names[length_at]}" is taken for the length without FCS: 4 B are added, to 64 B at least')
    if address_at:
        listed = ", ".join(f'"{names[index]}"' for index in address_at)
        notes.append(f"flows are told by {listed}: {flow_count:,}; a capture has what a card hashes")
    else:
        notes.append("the list names no addresses: all packets are one flow")
    return notes
