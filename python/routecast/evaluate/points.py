"""Measured points: what a router was asked to do, and the most it forwarded.

A point is one maximum throughput measured under overload. A file of points is CSV with one row per point and the
columns of :data:`COLUMNS`; rows with ``calibrate = true`` calibrate a router, the others are predicted.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

from routecast.errors import FileProblem, ModelProblem, Problem, QuantityProblem
from routecast.load.frames import FrameMix
from routecast.load.offered import WIRE_OVERHEAD_BYTES, line_rate_pps
from routecast.quantity.bounded_file import read_text
from routecast.quantity.schema import field, value

__all__ = [
    "COLUMNS",
    "Layout",
    "Point",
    "of_series",
    "parse_points",
    "points_text",
    "read_points",
    "read_router_points",
]


_HASH_ENTRIES = 128


@value
class Layout:
    """How a frame's work is laid out over the cores: known from the configuration, before anything is measured.

    * A core that polls the queues of several ports finds fewer frames in each and works in smaller batches: the cost
      of a frame grows by a share ``p`` with each further queue, ``1 + p·(queues - 1)``. One core polls every port; as
      many cores as ports poll one each, and more cores get receive queues of their own. The second core can therefore
      add more than the first.
    * A part of the work that few cores can do, such as serving the one queue of a virtual machine's interface. If that
      is a share ``s`` of the work on each frame and ``m`` cores can do it, the busiest core has ``s/min(k, m) +
      (1-s)/k`` of the work, so k cores do what ``1/(s/min(k, m) + (1-s)/k)`` would.
    * Transmit rings that a driver picks by ``hash % rings`` while the card picks receive rings by seven bits of the
      hash: ``1 - gcd(k, 128)/k`` of the frames leave by the ring of another core, whose lock costs a share of a
      frame's time.
    * A queue that several cores put frames into or take them from may let them collapse (the law of a lock).
    """

    polls_ports: bool = field("Whether cores poll receive queues that are dealt out over all of them", default=False)
    # Share of the work on each frame that at most ``narrow_cores`` cores can do, 0 to 1.
    narrow_share_ratio: float = 0.0
    narrow_cores: int = 1
    transmits_by_modulo: bool = field(
        "Whether the driver picks transmit rings by the remainder of the hash", default=False
    )
    # Whether frames pass a queue that several cores put them into or take them from, under a lock; None: not known.
    shared_queue: bool | None = None

    def further_queues(self, cores: int, ports: int) -> float:
        """Queues that a core polls beside its first.

        Examples
        --------
        >>> layout = Layout(polls_ports=True)
        >>> [layout.further_queues(cores, 2) for cores in (1, 2, 4)]
        [1.0, 0.0, 0.0]
        """
        return max(ports / cores, 1.0) - 1.0 if self.polls_ports else 0.0

    def foreign_ratio(self, cores: int) -> float:
        """Share of the frames that leave by the ring of another core.

        Examples
        --------
        >>> layout = Layout(transmits_by_modulo=True)
        >>> [round(layout.foreign_ratio(cores), 2) for cores in (1, 4, 3, 5, 12)]
        [0.0, 0.0, 0.67, 0.8, 0.67]
        """
        return 1.0 - math.gcd(cores, _HASH_ENTRIES) / cores if self.transmits_by_modulo else 0.0

    def useful_ratio(self, cores: int) -> float:
        """Share of the cores' time that is useful when the busiest of them limits.

        Examples
        --------
        >>> Layout(narrow_share_ratio=0.5, narrow_cores=2).useful_ratio(4)
        0.6666666666666666
        """
        crowding = max(cores / self.narrow_cores, 1.0)
        return 1.0 / (self.narrow_share_ratio * crowding + 1.0 - self.narrow_share_ratio)


COLUMNS: Final[Mapping[str, str]] = {
    "cores": "cores that process frames, a whole number from 1 to 4096",
    "frame_bytes": "frame size with its FCS, 64 or more, or a mix such as IMIX",
    "throughput_pps": "measured maximum throughput in frames per second over all ports, > 0",
    "throughput_l1_bps": "the same in bit/s, 20 bytes of gap and preamble a frame included (S1)",
    "flows": "flows crafted to fall on the cores in turn, a whole number >= 1; empty: enough for every core",
    "link_bps": "rate of one port in one direction, bit/s; empty: no link limits",
    "ports": "number of ports, a whole number >= 1; empty: 2",
    "nic_cap_pps": "frames per second that the network cards take in together; empty: no known limit",
    "shared_queue": "yes or no: whether several cores use one queue under a lock; empty: not known",
    "transmit_ring": "modulo (the driver picks hash % rings) or own (each core has its own); empty: own",
    "series": "name of the machine and function that the point belongs to; empty: one series",
    "calibrate": "true or false; empty: false; without this column all rows calibrate",
    "repeat": "number of the repetition; rows of one set of conditions are repetitions, with or without it; not used",
    "standard_error_ratio": "standard error of the rate over the rate, more than 0 and less than 1; empty: not known",
    "encapsulation_bytes": "bytes that a tunnel or tag adds to each frame on the link; empty: 0",
    "source": "where the row is from; not used",
    "reported_l1_bps": "what another model says of the point, bit/s with gap and preamble; not used; empty: nothing",
}
"""Columns of a file of points and what their cells may hold; cores, frame_bytes and a throughput must be there."""

_RATES: Final = ("throughput_pps", "throughput_l1_bps")
_REQUIRED: Final = ("cores", "frame_bytes")
_REQUIRED_OF_A_ROUTER: Final = ("flows", "frame_bytes")
_TRUE: Final = frozenset({"true", "yes", "1"})
_FALSE: Final = frozenset({"", "false", "no", "0"})
_RINGS: Final = frozenset({"modulo", "own"})
_MOST_CORES, _MOST_FLOWS, _MOST_PORTS = 4096, 10**9, 1024
_LONGEST_FRAME_BYTES = 65_535.0
_MEASURING_SLACK = 1.01
"""A measured rate may exceed a nominal limit by 1 %: clocks of links and testers differ, rates are rounded."""

_T = TypeVar("_T")


@value
class Point:
    """One measured maximum throughput and the conditions that it was measured under."""

    cores: int = field("Cores that process frames, >= 1")
    frame_bytes: float = field("Frame size with FCS (S1), >= 64; for a mix its mean")
    # NaN where it is only to be predicted.
    throughput_pps: float = field("Most frames per second forwarded, over all ports, under overload")
    # Flows, crafted to fall on the cores in turn, odd ones one way and even ones the other (Meyer 2014, sec. VI-A);
    # None: so many that every core is saturated.
    flows: int | None = None
    link_bps: float | None = field("Rate of one port in one direction; None: links do not limit", default=None)
    ports: int = field("How many ports offer load", default=2)
    nic_cap_pps: float | None = field("Frames per second that the NICs together can take in, where known", default=None)
    series: str = field("Which machine and function: points of one series share their parameters", default="")
    calibrate: bool = field("Whether the point may be used to calibrate", default=False)
    standard_error_ratio: float | None = field(
        "Standard error of the measured rate over the rate, where it is known", default=None
    )
    reported_pps: float = field(
        "What another model says that the router forwards; NaN where none says anything", default=math.nan
    )
    frame_mix: FrameMix | None = field("The mix whose mean is ``frame_bytes``", default=None)
    layout: Layout = field("How the work is laid out over the cores, where that is known", default_factory=Layout)

    @property
    def working_cores(self) -> int:
        """Cores that have a flow to serve."""
        return self.cores if self.flows is None else min(self.cores, self.flows)

    @property
    def busy_ports(self) -> int:
        """Ports that have a flow to offer."""
        return self.ports if self.flows is None else min(self.ports, self.flows)

    @property
    def line_rate_pps(self) -> float:
        """Frames per second that all ports together can offer (S1); infinite where no link is given."""
        if self.link_bps is None:
            return math.inf
        return self.busy_ports * line_rate_pps(self.link_bps, self.frame_bytes)

    @property
    def conditions(self) -> tuple[object, ...]:
        """Everything but the rates: two points with equal conditions are repetitions."""
        return (
            self.series,
            self.cores,
            self.frame_bytes,
            self.flows,
            self.link_bps,
            self.ports,
            self.nic_cap_pps,
            self.frame_mix,
            self.layout,
        )


def read_points(path: Path | str) -> tuple[Point, ...]:
    """Read a CSV file of measured points.

    Parameters
    ----------
    path : Path or str
        UTF-8 text; the header names :data:`COLUMNS` in any order. Lines that start with ``#`` are skipped.

    Raises
    ------
    routecast.errors.FileProblem
        With every fault of the file and its place, e.g. ``row 7, column cores``. Row 1 is the header.
    """
    text = read_text(Path(path), kind="file of points")
    return parse_points(text, name=str(path))


def of_series(points: Sequence[Point], name: str | None) -> tuple[Point, ...]:
    """Return the points of a series; all if none is named.

    Raises
    ------
    routecast.errors.QuantityProblem
        No point belongs to it.
    """
    from routecast.quantity.did_you_mean import did_you_mean  # only for messages

    names = dict.fromkeys(point.series for point in points)
    if name is not None and name not in names:
        raise QuantityProblem(name, f'"{name[:60]}" is no series of the table: {did_you_mean(name, names)}')
    return tuple(point for point in points if name is None or point.series == name)


def read_router_points(path: Path | str, *, cores: int, link_bps: float, ports: int, series: str) -> tuple[Point, ...]:
    """Read points of one known router, which name their flows; what the router fixes need not stand there.

    All rows differ in their conditions, and none needs to calibrate: another file may hold those that do.

    Raises
    ------
    routecast.errors.FileProblem
        As :func:`read_points`, and where a row contradicts the router or has frames of several sizes.
    """
    text = read_text(Path(path), kind="file of points").removeprefix("\ufeff")
    return parse_points(
        text,
        name=str(path),
        router=Point(
            cores=cores, frame_bytes=64.0, throughput_pps=math.nan, link_bps=link_bps, ports=ports, series=series
        ),
    )


def parse_points(text: str, *, name: str = "points", router: Point | None = None) -> tuple[Point, ...]:
    r"""Read measured points from CSV text; like :func:`read_points`, or for a ``router`` :func:`read_router_points`.

    Examples
    --------
    >>> points = parse_points("cores,frame_bytes,throughput_pps,calibrate\n1,64,1.7e6,true\n2,64,3.3e6,false\n")
    >>> [(point.cores, point.calibrate) for point in points]
    [(1, True), (2, False)]
    """
    lines = [line for line in io.StringIO(text, newline="") if not line.lstrip().startswith("#")]
    try:
        table = list(csv.reader(lines, skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise FileProblem(name, [Problem("", f"is not CSV: {error}")]) from None
    rows = [(number, cells) for number, cells in enumerate(table, start=1) if any(cell.strip() for cell in cells)]
    if not rows:
        wanted = ", ".join(COLUMNS)
        raise FileProblem(name, [Problem("", f"is empty: the first row names columns, {wanted}")])
    header = [cell.strip() for cell in rows[0][1]]
    problems = _header_problems(header, _REQUIRED if router is None else _REQUIRED_OF_A_ROUTER)
    if problems:
        raise FileProblem(name, problems)
    points: list[tuple[int, Point]] = []
    for number, cells in rows[1:]:
        point = _read_row(number, header, cells, router, problems)
        if point is not None:
            points.append((number, point))
    problems += _set_problems(points, complete=not problems, of_router=router is not None)
    if problems:
        raise FileProblem(name, problems)
    return tuple(point for _, point in points)


_WRITTEN: Final[Mapping[str, Callable[[Point], object]]] = {
    "cores": lambda one: one.cores,
    "frame_bytes": lambda one: one.frame_mix.name if one.frame_mix else one.frame_bytes,
    "throughput_pps": lambda one: one.throughput_pps,
    "flows": lambda one: one.flows,
    "link_bps": lambda one: one.link_bps,
    "ports": lambda one: one.ports,
    "nic_cap_pps": lambda one: one.nic_cap_pps,
    "series": lambda one: one.series,
    "calibrate": lambda one: str(one.calibrate).lower(),
}


def points_text(points: Sequence[Point]) -> str:
    """Return the text of a file of points, which reads back as the same; what none of them says has no column."""
    columns = {name: cell for name, cell in _WRITTEN.items() if any(cell(one) not in {None, ""} for one in points)}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([cell(one) for cell in columns.values()] for one in points)
    return text.getvalue()


def _header_problems(header: Sequence[str], required: Sequence[str]) -> list[Problem]:
    from routecast.quantity.did_you_mean import did_you_mean  # only for messages

    problems = []
    for index, column in enumerate(header):
        if column not in COLUMNS:
            shown = column[:60] or f"(number {index + 1}, without a name)"
            problems.append(Problem(f"row 1, column {shown}", f"unknown: {did_you_mean(column, COLUMNS)}"))
        elif column in header[:index]:
            problems.append(Problem(f"row 1, column {column}", "stands there twice: keep one"))
    problems += [
        Problem("row 1", f"column {column} is missing: {COLUMNS[column]}")
        for column in required
        if column not in header
    ]
    rates = [column for column in _RATES if column in header]
    if not rates:
        problems.append(Problem("row 1", f"column {_RATES[0]} is missing: {COLUMNS[_RATES[0]]} (or {_RATES[1]})"))
    elif len(rates) > 1:
        problems.append(Problem("row 1", f"columns {_RATES[0]} and {_RATES[1]} say the same: keep one"))
    return problems


def _read_row(
    number: int, header: Sequence[str], cells: Sequence[str], router: Point | None, problems: list[Problem]
) -> Point | None:
    before = len(problems)
    if len(cells) != len(header):
        problems.append(Problem(f"row {number}", f"has {len(cells)} cells, the header names {len(header)} columns"))
        return None
    row = {column: cell.strip() for column, cell in zip(header, cells, strict=True)}
    required = {*(_REQUIRED if router is None else _REQUIRED_OF_A_ROUTER), *_RATES} & set(header)
    known = router or Point(cores=1, frame_bytes=64.0, throughput_pps=math.nan)

    def cell(column: str, read: Callable[[str], _T], default: _T) -> _T:
        text = row.get(column, "")
        try:
            if not text:
                if column in required:
                    raise ValueError
                return default
            return read(text)
        except (ValueError, OverflowError):
            got = f'got "{text[:60]}"' if text else "is empty"
            problems.append(Problem(f"row {number}, column {column}", f"{got}: {COLUMNS[column]}"))
        return default

    none: tuple[float, FrameMix | None] = (64.0, None)
    frame_bytes, frame_mix = cell("frame_bytes", _frames, none)
    wire_bytes = frame_bytes + WIRE_OVERHEAD_BYTES
    frame_bits = 8.0 * wire_bytes
    link_bps = cell("link_bps", _positive, known.link_bps)
    l1_bps = cell("throughput_l1_bps", _positive, math.nan)
    point = Point(
        cores=cell("cores", _whole(_MOST_CORES), known.cores),
        frame_bytes=frame_bytes,
        throughput_pps=cell("throughput_pps", _positive, l1_bps / frame_bits),
        flows=cell("flows", _whole(_MOST_FLOWS), None),
        link_bps=link_bps and link_bps * wire_bytes / (wire_bytes + cell("encapsulation_bytes", _not_negative, 0.0)),
        ports=cell("ports", _whole(_MOST_PORTS), known.ports),
        nic_cap_pps=cell("nic_cap_pps", _positive, None),
        series=row.get("series", known.series),
        calibrate=cell("calibrate", _truth, "calibrate" not in header),
        standard_error_ratio=cell("standard_error_ratio", _ratio, None),
        reported_pps=cell("reported_l1_bps", _positive, math.nan) / frame_bits,
        frame_mix=frame_mix,
        layout=Layout(
            shared_queue=cell("shared_queue", _truth, None),
            transmits_by_modulo=cell("transmit_ring", _ring, "own") == "modulo",
        ),
    )
    if len(problems) > before:
        return None
    problems += _contradictions(number, point)
    if router is not None:
        problems += _contradicts_router(number, point, router)
    return point if len(problems) == before else None


def _contradictions(number: int, point: Point) -> list[Problem]:
    place = f"row {number}, column throughput_pps"
    problems = []
    if point.throughput_pps > _MEASURING_SLACK * point.line_rate_pps:
        problems.append(
            Problem(
                place,
                f"got {point.throughput_pps:g}, but the links carry at most {point.line_rate_pps:.6g} frames/s of "
                f"{point.frame_bytes:g} B: correct the rate, link_bps, ports or flows",
            )
        )
    if point.nic_cap_pps is not None and point.throughput_pps > _MEASURING_SLACK * point.nic_cap_pps:
        problems.append(
            Problem(place, f"got {point.throughput_pps:g}, which is more than nic_cap_pps = {point.nic_cap_pps:g}")
        )
    return problems


def _contradicts_router(number: int, point: Point, router: Point) -> list[Problem]:
    problems = [
        Problem(f"row {number}, column {column}", f"got {value:g}, but the router has {known:g}: keep one of them")
        for column in ("cores", "link_bps", "ports")
        if (value := getattr(point, column)) != (known := getattr(router, column))
    ]
    if point.frame_mix is not None or not point.frame_bytes.is_integer():
        problems.append(
            Problem(f"row {number}, column frame_bytes", "a study's frames are of one size: a whole number >= 64")
        )
    return problems


def _set_problems(points: Sequence[tuple[int, Point]], *, complete: bool, of_router: bool) -> list[Problem]:
    problems = []
    seen: dict[tuple[object, ...], int] = {}
    for number, point in points:
        if of_router and seen.setdefault(point.conditions, number) != number:
            problems.append(Problem(f"row {number}", f"repeats row {seen[point.conditions]}: a study has a point once"))
    if not complete:
        return problems
    if not points:
        return [*problems, Problem("", "has no row of data: give at least one measured point")]
    if of_router:
        return problems
    calibrated = {point.series for _, point in points if point.calibrate}
    without = [name for name in dict.fromkeys(point.series for _, point in points) if name not in calibrated]
    for name in without:
        of = f"series {name[:60]!r}" if name else "column calibrate"
        problems.append(Problem(of, "no row calibrates: set calibrate = true on at least one row of each series"))
    return problems


def _positive(text: str) -> float:
    value = float(text)
    if not (math.isfinite(value) and value > 0.0):
        raise ValueError(text)
    return value


def _not_negative(text: str) -> float:
    return float(text) and _positive(text)


def _ratio(text: str) -> float:
    value = _positive(text)
    if value >= 1.0:
        raise ValueError(text)
    return value


def _whole(most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        value = float(text)
        if not (1.0 <= value <= most and value == int(value)):
            raise ValueError(text)
        return int(value)

    return read


def _truth(text: str) -> bool:
    word = text.lower()
    if word not in _TRUE | _FALSE:
        raise ValueError(text)
    return word in _TRUE


def _ring(text: str) -> str:
    if text not in _RINGS:
        raise ValueError(text)
    return text


def _frames(text: str) -> tuple[float, FrameMix | None]:
    try:
        value = float(text)
    except ValueError:
        try:
            mix = FrameMix.parse(text)
        except (QuantityProblem, ModelProblem) as problem:
            raise ValueError(text) from problem
        return mix.mean_bytes, None if mix.is_fixed else mix
    if not 64.0 <= value <= _LONGEST_FRAME_BYTES:
        raise ValueError(text)
    return value, None
