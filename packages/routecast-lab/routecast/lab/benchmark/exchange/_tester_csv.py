"""CSV of other testers: MoonGen's counters and siitperf's results.

MoonGen (libmoon ``lua/stats.lua``): a row for each counter and second, ``PacketRate`` in Mpps; the last row of one
has the mean of the test and its totals, whose bytes count the FCS.

siitperf (lencsegabor/siitperf, ``scripts/``): ``Rate`` and ``rate`` are frames per second of each direction, ``Dir`` is
``b`` (both), ``f`` or ``r``; ``Size`` is that of the IPv6 frames, IPv4 frames have 20 B less. Latencies are
milliseconds: TL the median, WCL and PDV the 99.9th percentile.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from routecast.errors import FileProblem, Problem
from routecast.evaluate.trial import Delay
from routecast.lab.benchmark.exchange._document import MAX_NUMBER
from routecast.lab.benchmark.exchange._record import NAN, Record, measured, unknown_loss
from routecast.quantity.table_file import csv_cells

_MOONGEN = ("device", "direction", "packetrate", "totalpackets", "totalbytes")
_SIITPERF = ("no", "size", "dir", "n", "m", "duration")
_DIRECTIONS = {"b": 2, "f": 1, "r": 1}

Row = Mapping[str, str]


def _heads(text: str) -> list[str]:
    line = text.lstrip("\ufeff").split("\n", 1)[0][:2000]
    return [cell.strip().strip('"').lower() for cell in line.split(",")]


def is_moongen_csv(text: str) -> bool:
    """Whether a text is the counters of MoonGen."""
    return set(_MOONGEN) <= set(_heads(text))


def is_siitperf(text: str) -> bool:
    """Whether a text is results of siitperf's scripts."""
    return tuple(_heads(text)[: len(_SIITPERF)]) == _SIITPERF


class _Rows:
    """Rows of a table by the names of its heads, with its faults."""

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self.problems: list[Problem] = []
        table = [row for row in csv_cells(text, name=name, comments=False) if any(cell.strip() for cell in row)]
        self.heads = [cell.strip() for cell in table[0]]
        self.rows: list[tuple[int, Row]] = []
        for number, cells in enumerate(table[1:], start=2):
            if len(cells) == len(self.heads):
                self.rows.append((number, dict(zip(self.heads, map(str.strip, cells), strict=True))))
            elif [cell.strip() for cell in cells] != self.heads:
                message = f"has {len(cells)} cells, the header names {len(self.heads)} columns: is the file cut off?"
                self.problems.append(Problem(f"row {number}", message))

    def number(self, row: tuple[int, Row], head: str, *, least: float = 0.0, wants: str = "a number") -> float:
        """Return the number in a cell; another text is a fault."""
        text = row[1].get(head, "")
        try:
            value = float(text)
        except ValueError:
            value = NAN
        if not least <= value <= MAX_NUMBER:
            message = f"got {text[:40]!r}: wants {wants} from {least:g}"
            self.problems.append(Problem(f"row {row[0]}, column {head}", message))
            return NAN
        return value

    def check(self) -> None:
        if not self.rows and not self.problems:
            self.problems.append(Problem("", "has no row of results"))
        if self.problems:
            raise FileProblem(self.name, self.problems[:20])


def read_moongen_csv(text: str, name: str) -> tuple[Record, ...]:
    """Read the trial that MoonGen's counters are.

    Raises FileProblem: nothing was sent, or a cell is no number.
    """
    table = _Rows(text, name)
    table.check()
    spelled = {head.lower(): head for head in table.heads}
    last: dict[tuple[str, str], tuple[int, Row]] = {}
    for row in table.rows:
        last[row[1][spelled["device"]], row[1][spelled["direction"]].upper()] = row

    def total(direction: str, head: str) -> float:
        rows = [row for (_, way), row in last.items() if way == direction]
        return math.fsum(table.number(row, spelled[head]) for row in rows) if rows else NAN

    sent, received = (total(direction, "totalpackets") for direction in ("TX", "RX"))
    offered_pps, received_pps = (1e6 * total(direction, "packetrate") for direction in ("TX", "RX"))
    sent_bytes = total("TX", "totalbytes")
    if not table.problems and sent == 0.0:
        table.problems.append(Problem("column TotalPackets", "nothing was sent"))
    if not table.problems and math.isnan(sent) and math.isnan(received):
        table.problems.append(Problem("column Direction", "has neither TX nor RX"))
    table.check()
    notes = []
    frame_bytes = round(sent_bytes / sent, 1) if sent > 0.0 else NAN
    if math.isfinite(frame_bytes) and not frame_bytes.is_integer():
        notes.append(f"{frame_bytes:g} B is the mean of the frames; their mix is not in the file: --frame states it")
    is_known = math.isfinite(sent) and math.isfinite(received)
    if not is_known:
        side = "received" if math.isnan(received) else "sent"
        notes.append(f"the file has no counter of the frames {side}: the loss is not known")
    invalid = [f"{received:,.0f} frames were received of {sent:,.0f} sent (negative loss)"] if received > sent else []
    loss_ratio = max(1.0 - received / sent, 0.0) if is_known else NAN
    trial = measured(
        intended_pps=offered_pps,
        offered_pps=offered_pps,
        forwarded_pps=offered_pps * (1.0 - loss_ratio) if is_known else received_pps,
        loss_ratio=loss_ratio,
        frame_bytes=frame_bytes,
        offered_frames=None if math.isnan(sent) else round(sent),
        forwarded_frames=None if math.isnan(received) else round(received),
        invalid=tuple(invalid),
        notes=tuple(notes),
    )
    return (
        Record(
            source="MoonGen counters",
            frame_bytes=frame_bytes,
            ports=sum(way == "TX" for _, way in last) or None,
            tester="MoonGen",
            trial=trial if is_known else unknown_loss(trial),
        ),
    )


def read_siitperf(text: str, name: str) -> tuple[Record, ...]:
    """Read throughputs, frame loss, latencies or delay variations of siitperf.

    Raises FileProblem: a cell is no number, or the columns are those of no result.
    """
    table = _Rows(text, name)
    table.check()
    heads = set(table.heads)
    reader: Callable[[_Rows, tuple[int, Row], int], Iterator[Record]]
    if "rate" in heads:
        reader = _throughputs
    elif heads & {"Fwd-TL", "Rev-TL", "Fwd-PDV", "Rev-PDV"}:
        reader = _delays
    elif any(head.isdigit() for head in table.heads):
        reader = _losses
    else:
        message = "has no column of a result: rate, Fwd-TL, Fwd-PDV, or rates as numbers"
        raise FileProblem(name, [Problem("row 1", message)])
    records: list[Record] = []
    for row in table.rows:
        ways = _DIRECTIONS.get(row[1]["Dir"])
        if ways is None:
            message = f"got {row[1]['Dir'][:20]!r}: allowed are b, f, r"
            table.problems.append(Problem(f"row {row[0]}, column Dir", message))
        else:
            records += reader(table, row, ways)
    table.check()
    return tuple(records)


def _siitperf_record(
    table: _Rows, row: tuple[int, Row], ways: int, *, goal: str, rates_pps: tuple[float, float], note: str = "",
    frames: tuple[int, int] | None = None, latency: Delay | None = None, facts: Mapping[str, object] | None = None,
) -> Record:  # fmt: skip
    frame_bytes = table.number(row, "Size", least=64.0)
    offered_pps, forwarded_pps = rates_pps
    size_note = "the size is that of IPv6 frames; IPv4 frames have 20 B less" if frame_bytes >= 84.0 else ""
    trial = measured(
        intended_pps=offered_pps,
        offered_pps=offered_pps,
        forwarded_pps=forwarded_pps,
        frame_bytes=frame_bytes,
        duration_s=table.number(row, "Duration"),
        offered_frames=frames[0] if frames else None,
        forwarded_frames=frames[1] if frames else None,
        latency=latency,
        invalid=("more frames were received than sent (negative loss)",) if forwarded_pps > offered_pps else (),
        notes=tuple(filter(None, (size_note, note))),
    )
    return Record(
        source="siitperf",
        goal=goal,
        bound="lower" if goal == "ndr" else "",
        goal_loss_ratio=0.0 if goal == "ndr" else NAN,
        frame_bytes=frame_bytes,
        ports=ways,
        tester="siitperf",
        trial=trial,
        facts=dict(facts or {}),
    )


def _throughputs(table: _Rows, row: tuple[int, Row], ways: int) -> Iterator[Record]:
    rate_pps = ways * table.number(row, "rate")
    note = f"the search ended within {row[1].get('Error', '')[:20]} frames/s of each direction"
    yield _siitperf_record(table, row, ways, goal="ndr", rates_pps=(rate_pps, rate_pps), note=note)


def _losses(table: _Rows, row: tuple[int, Row], ways: int) -> Iterator[Record]:
    duration_s = table.number(row, "Duration", least=1.0)
    for head in table.heads:
        if head.isdigit() and 0 < len(head) <= 15 and not math.isnan(duration_s):
            offered_pps = ways * float(head)
            received = table.number(row, head)
            if offered_pps > 0.0 and math.isfinite(received):
                rates_pps = offered_pps, received / duration_s
                frames = round(offered_pps * duration_s), round(received)
                yield _siitperf_record(table, row, ways, goal="run", rates_pps=rates_pps, frames=frames)


def _delays(table: _Rows, row: tuple[int, Row], ways: int) -> Iterator[Record]:
    offered_pps = ways * table.number(row, "Rate")
    for way in ("Fwd", "Rev"):
        is_latency = f"{way}-TL" in table.heads
        if not is_latency and f"{way}-PDV" not in table.heads:
            continue
        median_s = 1e-3 * table.number(row, f"{way}-TL") if is_latency else NAN
        tail_s = 1e-3 * table.number(row, f"{way}-WCL" if is_latency else f"{way}-PDV")
        delay = Delay(mean_s=NAN, p50_s=median_s, p999_s=tail_s, method="siitperf")
        record = _siitperf_record(
            table,
            row,
            ways,
            goal="latency",
            rates_pps=(offered_pps, NAN),
            latency=delay if is_latency else None,
            note="the loss at this rate is not in the file",
            facts={"way": "forward" if way == "Fwd" else "reverse"},
        )
        yield record if is_latency else replace(record, trial=replace(record.trial, delay_variation=delay))
