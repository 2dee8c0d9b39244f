"""Rows of a table of points: their points, their faults, and numbers that are hardly in the unit they are read in."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as plain_field
from itertools import pairwise
from typing import Final, NamedTuple, TypeVar

from routecast.errors import Problem, QuantityProblem
from routecast.evaluate._point_cells import (
    SMALLEST_FRAME_BYTES,
    is_number,
    read_arrivals,
    read_bit_rate,
    read_delay,
    read_disturbance,
    read_encapsulation_bytes,
    read_frame_rate,
    read_frames,
    read_latency,
    read_load_ratio,
    read_rate,
    read_rate_kind,
    read_ratio,
    read_ring,
    read_yes_or_no,
    whole_number,
)
from routecast.evaluate._point_columns import (
    ASKED_ABOVE,
    ASKED_BELOW,
    BASE_UNIT,
    BIT_RATES,
    COLUMNS,
    POSSIBLE,
    POSSIBLE_UNITS,
    REQUIRED_FOR_ROUTER,
    Unit,
)
from routecast.evaluate._point_heads import IGNORED, NEEDS_FRAMES, UNUSED_RATE, Head, kind_of_head, plain_head
from routecast.evaluate.points import LATENCY_STATISTICS, MOST_LISTED, Layout, Point, PointLatency
from routecast.load.frames import FrameMix
from routecast.load.offered import WIRE_OVERHEAD_BYTES
from routecast.quantity import format_bps, format_duration, format_pps

_ETHERNET_BYTES: Final = 18.0
"""Header and FCS of Ethernet, which a rate at layer 3 leaves out (RFC 5136 sec. 4.1: IP-layer bits)."""
_COMMA_IN_NUMBER: Final = re.compile(r"\d,\d")
_THOUSANDS: Final = re.compile(r"[1-9]\d{0,2}(?:,\d{3}){2,}(?:\.\d+)?(?![\d,])")
_CORES: Final = re.compile(r"\s*(?:physical )?(?:cores?|cpus?|threads?)$", re.IGNORECASE)
_MAX_CORES, _MAX_FLOWS, _MAX_PORTS, _MAX_QUEUES = 4096, 10**9, 1024, 65_536
_MAX_SAMPLES = 10**12
_MAX_DEVICES = 1000
_MAX_RING = 1 << 24
_LONGEST_LATENCY_S = 10.0
_LEAST_LOAD_PPS = 10.0
_MEASURING_SLACK = 1.01
"""A measured rate may exceed a nominal limit by 1 %: clocks of links and testers differ, rates are rounded."""
_MAX_PPS = 1e10
"""Greatest credible rate of one core: a frame in less than a cycle of any processor means a wrong unit."""
_T = TypeVar("_T")
_NEEDS_RATES: Final = "a study compares every row with its rate: give it, or leave the row out"


class _Doubtful(NamedTuple):
    """A bare number that is hardly in the unit that it is read in."""

    row: int
    text: str
    value: float
    cores: int
    frame_bytes: float


def _rows_text(rows: Iterable[int]) -> str:
    """Return the numbers of rows in words, with neighbours as a range."""
    runs: list[list[int]] = []
    for row in rows:
        if runs and row == runs[-1][-1] + 1:
            runs[-1].append(row)
        else:
            runs.append([row])
    parts = [text for run in runs for text in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else [str(n) for n in run])]
    return f"row{'s' if len(parts) > 1 or len(runs[0]) > 1 else ''} {_listed(parts)}"


def _listed(parts: Sequence[str]) -> str:
    """Return parts as a list in words, the last of many as a number."""
    shown = (
        [*parts] if len(parts) <= MOST_LISTED else [*parts[: MOST_LISTED - 1], f"{len(parts) - MOST_LISTED + 1} more"]
    )
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else shown[0]


def _texts(entries: Sequence[_Doubtful]) -> str:
    return _listed([*dict.fromkeys(entry.text[:20] for entry in entries)])


def _values_text(column: str, entries: Sequence[_Doubtful]) -> str:
    """Return the values of bare numbers as they are read, a rate per core."""
    values = sorted(entry.value / (entry.cores if column == "throughput_pps" else 1) for entry in entries)
    write = format_bps if column == "link_bps" else format_pps
    ends = list(dict.fromkeys(write(value) for value in (values[0], values[-1])))
    return " to ".join(ends) + (" a core" if column == "throughput_pps" else "")


def _least_text(column: str) -> str:
    return format_bps(ASKED_BELOW[column]) if column == "link_bps" else format_pps(ASKED_BELOW[column])


def _possible_units(column: str, entries: Sequence[_Doubtful], *, has_frames: bool) -> list[str]:
    """Return the units in which all of the numbers are credible: a question names no unit that is far off."""
    low, high = POSSIBLE[column]

    def is_possible(entry: _Doubtful, unit: Unit) -> bool:
        amount = entry.value * unit.factor / entry.cores
        if unit.layer and column == "throughput_pps":
            amount /= 8.0 * (entry.frame_bytes + WIRE_OVERHEAD_BYTES)
        return low <= amount <= high

    units = COLUMNS[column].units
    return [
        name
        for name in POSSIBLE_UNITS[column]
        if (has_frames or column != "throughput_pps" or not units[name].layer)
        and all(is_possible(entry, units[name]) for entry in entries)
    ]


@dataclass(slots=True, kw_only=True)
class RowReader:
    """Reads the rows of a table one by one; ``problems`` collects their faults."""

    heads: tuple[Head, ...]
    router: Point | None
    problems: list[Problem]
    has_plain_bits: bool = False
    doubtful: dict[Head, list[_Doubtful]] = plain_field(default_factory=dict)

    def remarks(self) -> Iterable[str]:
        """Return notes on the assumptions."""
        if ignored := [head.spelled[:60] for head in self.heads if head.column == IGNORED and head.spelled]:
            yield (
                f"Column{'s' if len(ignored) > 1 else ''} {_listed(ignored)} {'are' if len(ignored) > 1 else 'is'} not "
                "used: no column of points has that name"
            )
        by_column = {head.column: head.spelled for head in self.heads}
        if UNUSED_RATE in by_column:
            yield f"The rates are those of {by_column['throughput_pps']}; {by_column[UNUSED_RATE]} is not used"
        if "frame_bytes" not in {head.column for head in self.heads}:
            yield "No column names the frame size: frames of 64 B are assumed (frame_bytes says otherwise)"
        if self.has_plain_bits:
            yield (
                "Throughput in bit/s is read with 20 B of gap and preamble a frame (throughput_l1_gbps says so, "
                "throughput_l2_gbps is without, throughput_l3_gbps counts IP packets)"
            )
        for head, entries in self.doubtful.items():
            if head.names_unit:
                if entries[0].value > ASKED_ABOVE[head.column] * entries[0].cores:
                    least_ns = 1e9 / ASKED_ABOVE[head.column]
                    yield (
                        f"{_rows_text(entry.row for entry in entries).capitalize()}, column {head.spelled}: "
                        f"{_values_text(head.column, entries)}, a frame in less than {least_ns:g} ns: no core does "
                        "that; look for a wrong unit"
                    )
                    continue
                least = _least_text(head.column) + (" a core" if head.column == "throughput_pps" else "")
                unit = f"{COLUMNS[head.column].stems[0]}_{POSSIBLE_UNITS[head.column][0]}"
                yield (
                    f"{_rows_text(entry.row for entry in entries).capitalize()}, column {head.spelled}: "
                    f"{_values_text(head.column, entries)}, less than {least}: right only if the numbers are "
                    f"{BASE_UNIT[head.column]} (else name their unit, as in {unit})"
                )

    def questions(self) -> Iterable[Problem]:
        """Return the questions about bare numbers whose head names no unit, one for all rows of a column."""
        has_frames = self.router is not None or "frame_bytes" in {head.column for head in self.heads}
        for head, entries in self.doubtful.items():
            if head.names_unit:
                continue
            stem = plain_head(head.spelled)
            units = _possible_units(head.column, entries, has_frames=has_frames)
            heads = [f"{stem}_{unit}" for unit in units if not head.unit.layer or unit in BIT_RATES]
            base_unit = "bps" if head.unit.layer else head.column.rpartition("_")[2]
            base = f"{stem}_{base_unit} if they are {'bit/s' if head.unit.layer else BASE_UNIT[head.column]}"
            remedy = f"write the head as {' or '.join(heads)}, or as {base}; or give each cell its unit"
            yield Problem(
                f"{_rows_text(entry.row for entry in entries)}, column {head.spelled}",
                f"which unit? The head names none, {_texts(entries)} would be "
                f"{_values_text('link_bps' if head.unit.layer else head.column, entries)}: "
                + (remedy if heads else f"give each cell its unit, or write the head as {base}"),
            )

    def _doubt(self, row: Mapping[str, tuple[Head, str]], number: int, point: Point) -> bool:
        """Note bare numbers that are hardly in the unit that they are read in; return whether to ask about one."""
        must_ask = False
        for column, amount in (
            ("throughput_pps", point.throughput_pps),
            ("link_bps", point.link_bps),
            ("nic_cap_pps", point.nic_cap_pps),
        ):
            head, text = row.get(column, (None, ""))
            if head is None or amount is None or not is_number(text):
                continue
            cores = point.working_cores if column == "throughput_pps" else 1
            has_prefix = head.names_unit and head.unit.factor != 1.0
            is_small = not has_prefix and amount < ASKED_BELOW[column] * cores
            if is_small or amount > ASKED_ABOVE[column] * cores:
                raw = float(text) if head.unit.layer and not head.names_unit else amount
                entry = _Doubtful(number, text, raw, cores, point.frame_bytes)
                self.doubtful.setdefault(head, []).append(entry)
                must_ask |= not head.names_unit
        return must_ask

    def point(self, number: int, cells: Sequence[str]) -> Point | None:
        """Return the point of a row; None where it has faults."""
        problems, heads = self.problems, self.heads
        before = len(problems)
        if len(cells) != len(heads):
            hint = '; is a number split by a decimal comma? Write "1.9"' if len(cells) > len(heads) else ""
            message = f"has {len(cells)} cells, the header names {len(heads)} columns{hint}"
            problems.append(Problem(f"row {number}", message))
            return None
        row = {head.column: (head, cell.strip()) for head, cell in zip(heads, cells, strict=True)}
        known = self.router or Point(cores=1, frame_bytes=SMALLEST_FRAME_BYTES, throughput_pps=math.nan)
        required = ("cores", "frame_bytes") if self.router is None else REQUIRED_FOR_ROUTER

        def add(column: str, message: str) -> None:
            spelled = row[column][0].spelled if column in row else column
            problems.append(Problem(f"row {number}, column {spelled}", message))

        def cell(column: str, read: Callable[[str, Unit], _T], default: _T) -> _T:
            head, text = row.get(column, (None, ""))
            if head is None:
                return default
            if not text:
                if column in required:
                    is_rate = column == "throughput_pps"
                    add(column, f"is empty: {_NEEDS_RATES if is_rate else COLUMNS[column].meaning}")
                return default
            if _THOUSANDS.match(text):  # two groups of three are no decimals
                text = text.replace(",", "")
            if column == "cores":
                text = _CORES.sub("", text)
            try:
                if _COMMA_IN_NUMBER.search(text) and "x" not in text.lower():
                    add(column, f'got "{text[:60]}": write numbers with a decimal point and no commas, "1.9" or "1900"')
                    return default
                return read(text, head.unit)
            except QuantityProblem as problem:
                add(column, str(problem))
            except (ValueError, OverflowError):
                add(column, f'got "{text[:60]}": {COLUMNS[column].meaning}')
            return default

        default_frames: tuple[float, FrameMix | None] = (known.frame_bytes, None)
        frame_bytes, frame_mix = cell("frame_bytes", read_frames, default_frames)
        wire_bytes = frame_bytes + WIRE_OVERHEAD_BYTES

        def rate_pps(column: str) -> float:
            amount, layer = cell(column, read_rate, (math.nan, ""))
            if not layer:
                return amount
            if "frame_bytes" not in row:
                add(column, f'got "{row[column][1][:60]}", but {NEEDS_FRAMES}')
            self.has_plain_bits |= layer == "bits" and column == "throughput_pps"
            counted_bytes = {"l2": frame_bytes, "l3": frame_bytes - _ETHERNET_BYTES}.get(layer, wire_bytes)
            return amount / (8.0 * counted_bytes)

        latency = PointLatency(
            load_pps=cell("latency_load_pps", read_frame_rate, math.nan),
            load_ratio=cell("latency_load_ratio", read_load_ratio, math.nan),
            load_of=cell("latency_load_of", read_rate_kind, ""),
            arrivals=cell("latency_arrivals", read_arrivals, ""),
            samples=cell("latency_samples", whole_number(_MAX_SAMPLES), None),
            devices=cell("latency_devices", whole_number(_MAX_DEVICES), 1),
            tester_s=cell("latency_tester_us", read_delay, 0.0),
            resolution_s=cell("latency_resolution_us", read_delay, 0.0),
            ring_frames=cell("latency_ring_frames", whole_number(_MAX_RING), None),
            batch_frames=cell("latency_batch_frames", whole_number(_MAX_RING), None),
            **{f"{name}_s": cell(f"latency_{name}_us", read_latency, math.nan) for name in LATENCY_STATISTICS},
        )
        is_timed = any(math.isfinite(latency.of(name)) for name in LATENCY_STATISTICS)
        link_bps = cell("link_bps", read_bit_rate, known.link_bps)
        throughput_pps = rate_pps("throughput_pps")
        has_rate = not math.isnan(throughput_pps)
        point = Point(
            cores=cell("cores", whole_number(_MAX_CORES), known.cores),
            frame_bytes=frame_bytes,
            throughput_pps=throughput_pps,
            flows=cell("flows", whole_number(_MAX_FLOWS), None),
            link_bps=link_bps
            and link_bps * wire_bytes / (wire_bytes + cell("encapsulation_bytes", read_encapsulation_bytes, 0.0)),
            ports=cell("ports", whole_number(_MAX_PORTS), known.ports),
            nic_cap_pps=cell("nic_cap_pps", read_frame_rate, None),
            series=row["series"][1] if "series" in row else known.series,
            calibrate=cell("calibrate", read_yes_or_no, "calibrate" not in row and has_rate),
            standard_error_ratio=cell("standard_error_ratio", read_ratio, None),
            rate_kind=cell("rate_kind", read_rate_kind, kind_of_head(row["throughput_pps"][0].spelled)),
            disturbed=read_disturbance(row["disturbed"][1] if "disturbed" in row else ""),
            reported_pps=rate_pps("reported_l1_bps"),
            frame_mix=frame_mix,
            layout=Layout(
                shared_queue=cell("shared_queue", read_yes_or_no, None),
                transmits_by_modulo=cell("transmit_ring", read_ring, "own") == "modulo",
                queues=cell("queues", whole_number(_MAX_QUEUES), None),
            ),
            latency=latency if is_timed else None,
        )
        if len(problems) > before or self._doubt(row, number, point):
            return None
        if point.calibrate and not has_rate:
            add("calibrate", f"is true, but the row has no rate: give {row['throughput_pps'][0].spelled}, or set false")
        for message in _contradictions(point):
            add("throughput_pps", message)
        for column, message in _latency_faults(latency, point):
            add(column, message)
        if self.router is not None:
            for column, message in _contradicts_router(point, self.router):
                add(column, message)
        return point if len(problems) == before else None


def _contradictions(point: Point) -> Iterable[str]:
    if point.throughput_pps > _MEASURING_SLACK * point.line_rate_pps:
        yield (
            f"got {point.throughput_pps:g} frames/s, but the links carry at most {point.line_rate_pps:.6g} frames/s of "
            f"{point.frame_bytes:g} B, each at {format_bps(point.link_bps or math.inf)}: correct the rate or link_bps "
            "(their units, too), ports or flows"
        )
    if point.throughput_pps > _MAX_PPS * point.working_cores:
        yield (
            f"got {point.throughput_pps:g} frames/s, but no core forwards {_MAX_PPS:g} frames/s, one in less than a "
            "cycle: correct the rate or its unit"
        )
    if point.nic_cap_pps is not None and point.throughput_pps > _MEASURING_SLACK * point.nic_cap_pps:
        yield f"got {point.throughput_pps:g} frames/s, which is more than nic_cap_pps = {point.nic_cap_pps:g}"


def _latency_faults(latency: PointLatency, point: Point) -> Iterable[tuple[str, str]]:
    """Yield what is wrong with the latency of a row, by column."""
    timed = [(name, latency.of(name)) for name in LATENCY_STATISTICS if math.isfinite(latency.of(name))]
    has_rate, has_ratio = math.isfinite(latency.load_pps), math.isfinite(latency.load_ratio)
    if not timed:
        if has_rate or has_ratio:
            column = "latency_load_pps" if has_rate else "latency_load_ratio"
            yield column, "is a load without a latency: give one, such as latency_p50_us, or leave the load empty"
        return
    first = f"latency_{timed[0][0]}_us"
    if not has_rate and not has_ratio:
        yield first, "has no load: give latency_load_pps, or latency_load_ratio as a share of the row's rate"
    if latency.load_pps < _LEAST_LOAD_PPS:
        yield (
            "latency_load_pps",
            f"got {latency.load_pps:g} frames/s, less than any tester offers: name the unit, as in latency_rate_mpps",
        )
    if latency.load_pps > _MEASURING_SLACK * point.line_rate_pps:
        yield (
            "latency_load_pps",
            f"got {latency.load_pps:g} frames/s, but the links carry at most {point.line_rate_pps:.6g} frames/s: "
            "correct the load, its unit or link_bps",
        )
    if has_rate and has_ratio:
        yield "latency_load_ratio", "and latency_load_pps both say at which load: keep one"
    if has_ratio and math.isnan(point.throughput_pps):
        yield "latency_load_ratio", "is a share of a rate that the row has not: give the rate, or latency_load_pps"
    if not has_rate and latency.load_of and point.rate_kind and latency.load_of != point.rate_kind:
        yield "latency_load_of", f"got {latency.load_of}, but the row's rate is {point.rate_kind}: one of them is wrong"
    of_no_loss = (latency.load_of or point.rate_kind) == "no_loss"
    load_pps = latency.load_ratio * point.throughput_pps if has_ratio else latency.load_pps
    if of_no_loss and has_ratio and load_pps > _MEASURING_SLACK * point.throughput_pps:
        yield (
            "latency_load_ratio",
            f"got {latency.load_ratio:g} of a rate without loss, so frames were lost: it was measured in overload "
            "(latency_load_pps says the rate)",
        )
    ordered = [(name, seconds) for name, seconds in timed if name != "mean"]
    for (name, seconds), (other, more_s) in pairwise(ordered):
        if more_s < seconds:
            yield (
                f"latency_{other}_us",
                f"got {format_duration(more_s)}, less than the {name} of {format_duration(seconds)}: look for swapped "
                "columns or another unit",
            )
    least_s, most_s = latency.min_s, latency.max_s
    if latency.mean_s < least_s or latency.mean_s > most_s:
        yield "latency_mean_us", f"got {format_duration(latency.mean_s)}, which is not between min and max"
    of_tester = [(name, seconds) for name, seconds in timed if seconds <= latency.tester_s]
    if of_tester:
        name, seconds = of_tester[0]
        yield (
            "latency_tester_us",
            f"got {format_duration(latency.tester_s)}, no less than the {name} of {format_duration(seconds)}, which "
            "contains it: one of them has another unit, or the latencies are already without it (then leave it empty)",
        )
    longest = max(seconds for _, seconds in timed)
    if longest > _LONGEST_LATENCY_S:
        yield first, f"got up to {format_duration(longest)}: no router keeps a frame that long; look for another unit"


def _contradicts_router(point: Point, router: Point) -> Iterable[tuple[str, str]]:
    for column in ("cores", "link_bps", "ports"):
        if (value := getattr(point, column)) != (known := getattr(router, column)):
            yield column, f"got {value:g}, but the router has {known:g}: keep one of them"
    if point.frame_mix is not None or not point.frame_bytes.is_integer():
        yield "frame_bytes", "a study's frames are of one size: a whole number >= 64"
