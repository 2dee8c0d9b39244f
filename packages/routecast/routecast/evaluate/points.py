"""Measured points: the conditions of a router and its greatest forwarding rate.

A point is one maximum throughput measured under overload. A table of points is CSV or Parquet with one row per point
and the columns of :data:`COLUMNS`, in the units that their heads or cells name; rows with ``calibrate = true``
calibrate a router, the others are predicted.
"""

from __future__ import annotations

import csv
import io
import math
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as plain_field
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeVar

from routecast.errors import FileProblem, ModelProblem, Problem, QuantityProblem
from routecast.load.frames import FrameMix
from routecast.load.offered import WIRE_OVERHEAD_BYTES, line_rate_pps
from routecast.quantity import (
    format_bps,
    format_pps,
    parse_bit_rate_bps,
    parse_rate,
    parse_rate_pps,
    parse_ratio,
    parse_size_bytes,
)
from routecast.quantity.bounded_file import MAX_FILE_BYTES, read_parquet
from routecast.quantity.schema import field, value
from routecast.quantity.table_file import csv_cells, is_spreadsheet, read_sheet, read_table_text, rename_heads

__all__ = [
    "ASKED_BELOW",
    "COLUMNS",
    "Layout",
    "Point",
    "PointColumn",
    "PointTable",
    "RateKind",
    "Unit",
    "calibrating",
    "describe_rates",
    "is_head",
    "of_series",
    "parse_cells",
    "parse_points",
    "points_text",
    "read_cells",
    "read_points",
    "read_router_points",
    "read_table",
]


_HASH_ENTRIES = 128


@value
class Layout:
    """Layout of a frame's work over the cores: known from the configuration, before any measurement.

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
    * Receive queues that are dealt to the cores in turn: the fullest of k cores has ``ceil(q/k)`` of q queues and
      limits, so k cores do what ``q/ceil(q/k)`` would, a sawtooth over the cores.
    * A queue that several cores put frames into or take them from may let them collapse (the law of a lock).
    """

    polls_ports: bool = field("Whether cores poll receive queues that are dealt out over all of them", default=False)
    # Share of the work on each frame that at most ``narrow_cores`` cores can do, 0 to 1.
    narrow_share_ratio: float = 0.0
    narrow_cores: int = 1
    transmits_by_modulo: bool = field(
        "Whether the driver picks transmit rings by the remainder of the hash", default=False
    )
    queues: int | None = field(
        "Receive queues, with equal shares of the frames, that are dealt to the cores in turn; None: as many as cores",
        default=None,
    )
    # Whether frames pass a queue that several cores put them into or take them from, under a lock; None: not known.
    shared_queue: bool | None = None

    def further_queues(self, cores: int, ports: int) -> float:
        """Return the number of queues that a core polls beyond its first.

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
        >>> [round(Layout(queues=16).useful_ratio(cores), 2) for cores in (4, 6, 8, 15, 16)]
        [1.0, 0.89, 1.0, 0.53, 1.0]
        """
        crowding = max(cores / self.narrow_cores, 1.0)
        useful_ratio = 1.0 / (self.narrow_share_ratio * crowding + 1.0 - self.narrow_share_ratio)
        return useful_ratio * dealt_ratio(self.queues, cores)


def dealt_ratio(queues: int | None, cores: int) -> float:
    """Share of the time of cores that is useful when the core with the most of the dealt queues limits."""
    return 1.0 if queues is None else queues / (cores * math.ceil(queues / cores))


class Unit(NamedTuple):
    """The unit of plain numbers in a column: its number of base units, and the layer of bits (S1)."""

    factor: float = 1.0
    # "": no bits; "l1": with gap and preamble; "l2": without; "l3": without the header and FCS of Ethernet, too;
    # "bits": not stated, read as "l1".
    layer: Literal["", "bits", "l1", "l2", "l3"] = ""


_PREFIXES: Final = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_FRAME_RATES: Final = {
    **{f"{prefix}{unit}": Unit(factor) for unit in ("pps", "fps") for prefix, factor in _PREFIXES.items()},
    "frames/s": Unit(),
    "packets/s": Unit(),
}
_BIT_RATES: Final = {
    f"{prefix}{unit}": Unit(bits * factor, "bits")
    for unit, bits in (("bps", 1.0), ("bit/s", 1.0), ("bytes/s", 8.0))
    for prefix, factor in _PREFIXES.items()
}
_LAYERED: Final = {
    **{f"l1_{unit}": Unit(size.factor, "l1") for unit, size in _BIT_RATES.items()},
    **{f"l2_{unit}": Unit(size.factor, "l2") for unit, size in _BIT_RATES.items()},
    **{f"l3_{unit}": Unit(size.factor, "l3") for unit, size in _BIT_RATES.items()},
}
_RATES: Final = {**_FRAME_RATES, **_BIT_RATES, **_LAYERED}
_ETHERNET_BYTES: Final = 18.0
"""Header and FCS of Ethernet, which a rate at layer 3 leaves out (RFC 5136 sec. 4.1: IP-layer bits)."""
_LAYERS: Final[tuple[Literal["l1", "l2", "l3"], ...]] = ("l1", "l2", "l3")
_LAYER_FIRST: Final = re.compile(r"(l[123])_(.+?)_([^_]+)$")
_LAYER_LAST: Final = re.compile(r"(.+?)_([^_]+)_(l[123])$")
_BYTES: Final = {"bytes": Unit(), "b": Unit()}


RateKind = Literal["", "overload", "no_loss"]
"""Kind of a rate: forwarded at the maximum offered load (RFC 2285), or without loss (RFC 1242); empty: not stated."""

_KIND_OF_STEM: Final[Mapping[str, RateKind]] = {
    **dict.fromkeys(("forwarding_rate", "maximum_forwarding_rate", "max_forwarding_rate", "mrr"), "overload"),
    **dict.fromkeys(("lossless", "lossless_rate", "lossless_throughput", "no_loss_rate", "ndr"), "no_loss"),
}
"""Stems of heads of rates that name their kind; FD.io CSIT calls them MRR and NDR."""
_KIND_OF_WORD: Final[Mapping[str, RateKind]] = {
    **_KIND_OF_STEM,
    **dict.fromkeys(("overload", "rfc2285", "rfc_2285"), "overload"),
    **dict.fromkeys(("no_loss", "throughput", "rfc1242", "rfc_1242", "rfc2544", "rfc_2544"), "no_loss"),
    "": "",
}
_RATE_STEMS: Final = ("rate", "rates", "measured_rate", "frame_rate", "packet_rate", "durchsatz")
_REMARK_HEADS: Final = frozenset(
    {"remark", "remarks", "comment", "comments", "note", "notes", "description", "date", "bemerkung", "kommentar"}
)
"""Heads of columns that no answer uses, whatever their cells hold."""
_IGNORED: Final = "ignored"
"""The column of cells that are not read."""
_UNUSED_RATE: Final = "unused_rate"
"""The column of lossless rates beside one of forwarding rates."""


class PointColumn(NamedTuple):
    """A column of a table of points.

    Its head is its key in :data:`COLUMNS`, a stem alone, or a stem and a unit: ``throughput_mpps``,
    ``Throughput (Mpps)``. Bare numbers have that unit, without it the one of the key; cells may name their own. Where
    numbers below a stem alone are too small for the unit of the key (:data:`ASKED_BELOW`), the reader asks.
    """

    meaning: str
    stems: tuple[str, ...] = ()
    units: Mapping[str, Unit] = MappingProxyType({})


COLUMNS: Final[Mapping[str, PointColumn]] = {
    "cores": PointColumn(
        "cores that process frames, a whole number from 1 to 4096",
        ("kerne", "cpus", "cpu", "core_count", "n_cores", "num_cores", "number_of_cores"),
    ),
    "frame_bytes": PointColumn(
        "frame size with its FCS, 64 or more, or a mix such as IMIX; without this column 64 B",
        ("frame", "frames", "frame_size", "frame_sizes"),
        _BYTES,
    ),
    "throughput_pps": PointColumn(
        'measured maximum throughput over all ports, > 0, in frames/s or with a unit such as "1.9 Mpps" or '
        '"12 Gbit/s" (with 20 bytes of gap and preamble per frame, S1); empty: to be predicted; as forwarding_rate or '
        "lossless the head also names the kind of the rate (rate_kind)",
        ("throughput", *_RATE_STEMS, *_KIND_OF_STEM),
        _RATES,
    ),
    "rate_kind": PointColumn(
        "overload (forwarding rate at the maximum offered load, RFC 2285 sec. 3.6.2) or no_loss (throughput, RFC "
        "1242); empty: as the head of the rates says"
    ),
    "disturbed": PointColumn(
        "yes, or the reasons, where other work disturbed the measurement; no or empty: nothing is known to have"
    ),
    "flows": PointColumn(
        "flows crafted to fall on the cores in turn, a whole number >= 1; empty: enough for every core"
    ),
    "link_bps": PointColumn(
        'rate of one port in one direction, > 0, in bit/s or with a unit such as "10 Gbit/s"; empty: no link limits',
        ("link",),
        _BIT_RATES,
    ),
    "ports": PointColumn("number of ports, a whole number >= 1; empty: 2"),
    "nic_cap_pps": PointColumn(
        "frames per second that the network cards take in together, > 0; empty: no known limit",
        ("nic_cap",),
        _FRAME_RATES,
    ),
    "shared_queue": PointColumn("yes or no: whether several cores use one queue under a lock; empty: not known"),
    "queues": PointColumn(
        "receive queues that are dealt to the cores in turn, a whole number >= 1; empty: not known, or one a core"
    ),
    "transmit_ring": PointColumn("modulo (the driver picks hash % rings) or own (each core has its own); empty: own"),
    "series": PointColumn("name of the machine and function that the point belongs to; empty: one series"),
    "calibrate": PointColumn("true or false; empty: false; without this column all rows with a rate calibrate"),
    "repeat": PointColumn("number of the repetition, not used: rows with equal conditions are repetitions"),
    "standard_error_ratio": PointColumn(
        "standard error of the rate over the rate, more than 0 and less than 1; empty: not known",
        ("standard_error",),
        {"%": Unit(0.01), "percent": Unit(0.01)},
    ),
    "encapsulation_bytes": PointColumn(
        "bytes that a tunnel or tag adds to each frame on the link; empty: 0", ("encapsulation",), _BYTES
    ),
    "source": PointColumn("source of the row; not used"),
    "reported_l1_bps": PointColumn(
        "throughput by another model, bit/s with gap and preamble, or with a unit; not used; empty: not known",
        ("reported",),
        _RATES,
    ),
}
"""Columns of a table of points and what their cells may hold; ``cores`` and ``throughput_pps`` are required."""

_SPELLINGS: Final[Mapping[str, tuple[str, Unit]]] = {
    **{name: (name, Unit()) for name in COLUMNS},
    **{
        stem: (name, column.units.get(name.removeprefix(f"{column.stems[0]}_"), Unit()))
        for name, column in COLUMNS.items()
        for stem in column.stems
    },
    **{
        f"{stem}_{suffix}": (name, unit)
        for name, column in COLUMNS.items()
        for stem in column.stems
        for suffix, unit in column.units.items()
    },
    **{
        f"{stem}_{layer}": ("throughput_pps", Unit(1.0, layer))
        for stem in COLUMNS["throughput_pps"].stems
        for layer in _LAYERS
    },
}
"""Column and unit of its bare numbers, by head in lower case with ``_`` for spaces and brackets."""
_HEAD_OF_KIND: Final[Mapping[str, str]] = {"overload": "forwarding_rate_pps", "no_loss": "lossless_pps"}
_SUGGESTED_HEADS: Final = [
    head
    for head, (name, _) in _SPELLINGS.items()
    if (name != "reported_l1_bps" or head == name)
    and (not head.startswith((*_KIND_OF_STEM, *_RATE_STEMS)) or head in _HEAD_OF_KIND.values())
    and head not in COLUMNS["cores"].stems
]

ASKED_BELOW: Final[Mapping[str, float]] = {"throughput_pps": 1e5, "link_bps": 1e8, "nic_cap_pps": 1e5}
"""Least credible value of a bare number: a rate per core in frames/s, bit/s of a link, frames/s of the cards.

A smaller one is more likely in Mpps or Gbit/s: the reader asks where the head names no unit, and remarks where it does.
"""
_ASKED_ABOVE: Final[Mapping[str, float]] = {"throughput_pps": 2e8, "link_bps": math.inf, "nic_cap_pps": math.inf}
"""Greatest credible value: no core forwards a frame in 15 cycles, so the rate is more likely in bit/s."""
_POSSIBLE: Final[Mapping[str, tuple[float, float]]] = {
    "throughput_pps": (1e5, 4e7),
    "link_bps": (1e8, 1e12),
    "nic_cap_pps": (1e6, 1e10),
}
"""Values in whose range a unit must bring a number before the reader names the unit in its question."""
_POSSIBLE_UNITS: Final[Mapping[str, tuple[str, ...]]] = {
    "throughput_pps": ("mpps", "kpps", "gbps", "mbps", "bps"),
    "link_bps": ("gbps", "mbps", "kbps", "tbps"),
    "nic_cap_pps": ("mpps", "kpps"),
}

_USED: Final = [name for name in COLUMNS if name != "reported_l1_bps"]
_REQUIRED: Final = ("cores", "throughput_pps")
_REQUIRED_FOR_ROUTER: Final = ("flows", "frame_bytes", "throughput_pps")
_RATE_COLUMNS: Final = ("throughput_pps", "reported_l1_bps")
_YES: Final = frozenset({"true", "yes", "1"})
_NO: Final = frozenset({"", "false", "no", "0"})
_RINGS: Final = frozenset({"modulo", "own"})
_BETWEEN_WORDS: Final = re.compile(r"[\s\-_()\[\],]+")
_BYTES_PER_SECOND: Final = re.compile(r"(?<![A-Za-z])([kKMGT]?)(?:B|[Bb]ytes?)(?:/s|ps|/sec)(?![A-Za-z])")
_COMMA_IN_NUMBER: Final = re.compile(r"\d,\d")
_THOUSANDS: Final = re.compile(r"[1-9]\d{0,2}(?:,\d{3}){2,}(?:\.\d+)?(?![\d,])")
_CORES: Final = re.compile(r"\s*(?:physical )?(?:cores?|cpus?|threads?)$", re.IGNORECASE)
_MAX_CORES, _MAX_FLOWS, _MAX_PORTS, _MAX_QUEUES = 4096, 10**9, 1024, 65_536
_SMALLEST_FRAME_BYTES, _LONGEST_FRAME_BYTES = 64.0, 65_535.0
_MAX_CELLS = 2_000_000
_MEASURING_SLACK = 1.01
"""A measured rate may exceed a nominal limit by 1 %: clocks of links and testers differ, rates are rounded."""
_MAX_PPS = 1e10
"""Greatest credible rate of one core: a frame in less than a cycle of any processor means a wrong unit."""

_T = TypeVar("_T")


@value
class Point:
    """One measured maximum throughput and the conditions of its measurement."""

    cores: int = field("Cores that process frames, >= 1")
    frame_bytes: float = field("Frame size with FCS (S1), >= 64; for a mix its mean")
    # NaN where a model is to predict it.
    throughput_pps: float = field("Most frames per second forwarded, over all ports, under overload")
    # Flows that are crafted to fall on the cores in turn, odd flows in one direction and even flows in the other
    # (Meyer et al. 2014, sec. VI-A); None: enough flows to saturate every core.
    flows: int | None = None
    link_bps: float | None = field("Rate of one port in one direction; None: links do not limit", default=None)
    ports: int = field("Number of ports that offer load", default=2)
    nic_cap_pps: float | None = field("Frames per second that the NICs together can take in, where known", default=None)
    series: str = field("Machine and function: points of one series share their parameters", default="")
    calibrate: bool = field("Whether the point may be used to calibrate", default=False)
    standard_error_ratio: float | None = field(
        "Standard error of the measured rate over the rate, where it is known", default=None
    )
    rate_kind: RateKind = field("Whether it was forwarded in overload or without loss; empty: not stated", default="")
    disturbed: str = field('What disturbed the measurement, or "yes"; empty: nothing is known to have', default="")
    reported_pps: float = field("Throughput by another model, frames/s; NaN without one", default=math.nan)
    frame_mix: FrameMix | None = field("The mix whose mean is ``frame_bytes``", default=None)
    layout: Layout = field("Layout of the work over the cores, where known", default_factory=Layout)

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


@value
class PointTable:
    """The points of a table, and remarks on the assumptions where the table states nothing."""

    points: tuple[Point, ...]
    remarks: tuple[str, ...] = ()


def read_table(path: Path | str, *, rename: Mapping[str, str] = MappingProxyType({})) -> PointTable:
    """Read a table of measured points.

    Parameters
    ----------
    path : Path or str
        Parquet (``.parquet``), a spreadsheet (``.xlsx``, ``.ods``, with ``#Sheet`` where it has several), or CSV in
        UTF-8 or UTF-16 (:mod:`routecast.quantity.table_file`), where lines that start with ``#`` are skipped. The heads
        are those of :data:`COLUMNS`, in any order. A row without a rate has the throughput NaN and does not calibrate.
    rename : mapping of str to str
        Names of :data:`COLUMNS` for heads of the file that are called otherwise.

    Raises
    ------
    routecast.errors.FileProblem
        With every fault of the file and its place, e.g. ``row 7, column cores``. Row 1 is the header.
    """
    notes: list[str] = []
    table = _table(read_cells(Path(path), rename, on_note=notes.append), str(path), None)
    return PointTable(points=table.points, remarks=(*notes, *table.remarks))


def is_head(cells: Sequence[str]) -> bool:
    """Whether cells may be the heads of a table of points."""
    columns = {_SPELLINGS[head][0] for cell in cells if (head := _plain(cell)) in _SPELLINGS}
    return set(_REQUIRED) <= columns


def read_points(path: Path | str) -> tuple[Point, ...]:
    """Read the points of :func:`read_table`.

    Raises
    ------
    routecast.errors.FileProblem
        As :func:`read_table`.
    """
    return read_table(path).points


def calibrating(points: Sequence[Point]) -> list[Point]:
    """Return the points that are marked to calibrate; if none is marked, all points that have a rate."""
    return [point for point in points if point.calibrate] or [p for p in points if math.isfinite(p.throughput_pps)]


def of_series(points: Sequence[Point], name: str | None) -> tuple[Point, ...]:
    """Return the points of a series; all points if ``name`` is None.

    Raises
    ------
    routecast.errors.QuantityProblem
        No point belongs to the series.
    """
    from routecast.quantity.did_you_mean import did_you_mean  # only for messages

    names = dict.fromkeys(point.series for point in points)
    if name is not None and name not in names:
        raise QuantityProblem(name, f'"{name[:60]}" is no series of the table: {did_you_mean(name, names)}')
    return tuple(point for point in points if name is None or point.series == name)


def read_router_points(path: Path | str, *, cores: int, link_bps: float, ports: int, series: str) -> tuple[Point, ...]:
    """Read points of one known router; each row names its flows, and columns that the router fixes may be missing.

    Every row has a rate, and no two rows have equal conditions. No row needs to calibrate, because another file may
    hold the calibrating points.

    Raises FileProblem: as :func:`read_points`, and where a row contradicts the router, has no rate or has frames of
    several sizes.
    """
    router = Point(
        cores=cores, frame_bytes=64.0, throughput_pps=math.nan, link_bps=link_bps, ports=ports, series=series
    )
    return _table(read_cells(Path(path)), str(path), router).points


def parse_points(text: str, *, name: str = "points", router: Point | None = None) -> tuple[Point, ...]:
    r"""Read measured points from CSV text; like :func:`read_points`, or for a ``router`` :func:`read_router_points`.

    Examples
    --------
    >>> points = parse_points("cores,throughput,calibrate\n1,1.7 Mpps,true\n2,3.3 Mpps,false\n4,,\n")
    >>> [(point.cores, point.throughput_pps, point.calibrate) for point in points]
    [(1, 1700000.0, True), (2, 3300000.0, False), (4, nan, False)]
    """
    return _table(csv_cells(text, name=name), name, router).points


def parse_cells(cells: Iterable[Sequence[str]], *, name: str = "points") -> PointTable:
    """Read measured points from the cells of a table as text, the heads first; like :func:`read_table`."""
    return _table(cells, name, None)


def describe_rates(points: Sequence[Point]) -> tuple[str, ...]:
    r"""Return sentences on the kind of the measured rates, where it is stated, and on disturbed measurements.

    Examples
    --------
    >>> describe_rates(parse_points("cores,forwarding_rate_pps,disturbed\n1,1.7e6,no\n2,3.3e6,yes\n"))[0]
    'the rates are forwarding rates at the maximum offered load (RFC 2285)'
    """
    rows = [point for point in points if not math.isnan(point.throughput_pps)]
    by_kind = {kind: [row for row in rows if row.rate_kind == kind] for kind in _NAMED_KINDS}
    stated = [kind for kind, of_kind in by_kind.items() if of_kind]
    sentences = []
    if len(stated) > 1:
        counts = " and ".join(f"{len(of_kind)} {_NAMED_KINDS[kind]}" for kind, of_kind in by_kind.items())
        sentences.append(f"the table mixes {counts}, which differ by what queues lose: which are meant? Keep one kind")
    elif stated:
        unstated = len(rows) - len(by_kind[stated[0]])
        others = f"; {unstated} of {len(rows)} rows do not say what theirs are" if unstated else ""
        sentences.append(f"the rates are {_NAMED_KINDS[stated[0]]}{others}")
    if disturbed := [row for row in rows if row.disturbed]:
        names = list(dict.fromkeys(f"{row.working_cores} x {row.frame_bytes:g} B" for row in disturbed))
        cells = ", ".join(names[:_MOST_LISTED]) + (", …" if len(names) > _MOST_LISTED else "")
        verb = "was" if len(disturbed) == 1 else "were"
        reasons = list(dict.fromkeys(row.disturbed for row in disturbed if row.disturbed != _DISTURBED))
        why = f": {'; '.join(reasons[:2])}" if reasons else ""
        sentences.append(
            f"{len(disturbed)} of {len(rows)} rows {verb} disturbed (cores x frames: {cells}){why}; their rates may be "
            "too low: measure them again"
        )
    return tuple(sentences)


_NAMED_KINDS: Final[Mapping[RateKind, str]] = {
    "overload": "forwarding rates at the maximum offered load (RFC 2285)",
    "no_loss": "throughputs without loss (RFC 1242)",
}
_DISTURBED: Final = "yes"


def read_cells(
    path: Path, rename: Mapping[str, str] = MappingProxyType({}), *, on_note: Callable[[str], None] = lambda text: None
) -> list[list[str]]:
    """Return the cells of a file as text, the heads first, renamed.

    ``on_note``: called with what is assumed about the file. Raises FileProblem: the file cannot be read as a table, or
    lacks a head that is to be renamed.
    """
    kind = "file of points"
    if is_spreadsheet(path):
        cells = read_sheet(path, kind=kind, is_head=lambda heads: is_head([rename.get(head, head) for head in heads]))
    elif path.suffix.lower() != ".parquet":
        cells = csv_cells(read_table_text(path, kind=kind, on_note=on_note), name=str(path))
    else:
        frame = read_parquet(path, kind=kind, max_file_bytes=MAX_FILE_BYTES)
        if frame.height * frame.width > _MAX_CELLS:
            message = f"has more than {_MAX_CELLS:,} cells: no {kind}; name another file, or cut this one"
            raise FileProblem(str(path), [Problem("", message)])
        rows = [["" if cell is None else str(cell) for cell in row] for row in frame.iter_rows()]
        cells = [list(frame.columns), *rows]
    return rename_heads(cells, rename, name=str(path))


def _table(table: Iterable[Sequence[str]], name: str, router: Point | None) -> PointTable:
    rows = [(number, cells) for number, cells in enumerate(table, start=1) if any(cell.strip() for cell in cells)]
    if not rows:
        raise FileProblem(name, [Problem("", f"is empty: the first row names columns, {', '.join(COLUMNS)}")])
    heads, problems = _read_header([cell.strip() for cell in rows[0][1]], router, [cells for _, cells in rows[1:]])
    if problems:
        raise FileProblem(name, problems)
    reader = _RowReader(heads=heads, router=router, problems=problems)
    points = [(number, point) for number, cells in rows[1:] if (point := reader.point(number, cells)) is not None]
    problems += reader.questions()
    problems += _table_problems(points, complete=not problems, of_router=router is not None)
    if problems:
        raise FileProblem(name, problems)
    return PointTable(points=tuple(point for _, point in points), remarks=tuple(reader.remarks()))


_CELL_OF_COLUMN: Final[Mapping[str, Callable[[Point], object]]] = {
    "cores": lambda point: point.cores,
    "frame_bytes": lambda point: point.frame_mix.name if point.frame_mix else point.frame_bytes,
    "throughput_pps": lambda point: "" if math.isnan(point.throughput_pps) else point.throughput_pps,
    "flows": lambda point: point.flows,
    "link_bps": lambda point: point.link_bps,
    "ports": lambda point: point.ports,
    "nic_cap_pps": lambda point: point.nic_cap_pps,
    "series": lambda point: point.series,
    "calibrate": lambda point: str(point.calibrate).lower(),
    "standard_error_ratio": lambda point: point.standard_error_ratio,
    "rate_kind": lambda point: point.rate_kind,
    "disturbed": lambda point: point.disturbed,
}


def points_text(points: Sequence[Point], *, always: Sequence[str] = ()) -> str:
    """Return the text of a file that reads back as these points; a quantity without any value has no column.

    The head of the rates names their kind if all have the same. The columns ``always`` are there without values, too.
    """
    columns = {
        name: cell
        for name, cell in _CELL_OF_COLUMN.items()
        if name in always or any(cell(point) not in {None, ""} for point in points)
    }
    kinds = {point.rate_kind for point in points}
    head = _HEAD_OF_KIND.get(kinds.pop()) if len(kinds) == 1 else None
    if head:
        columns.pop("rate_kind")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head if head and name == "throughput_pps" else name for name in columns)
    writer.writerows([cell(point) for cell in columns.values()] for point in points)
    return text.getvalue()


_NEEDS_FRAMES: Final = "no column names the frame size: add frame_bytes (64 or more, or IMIX), or give frames/s"
_NEEDS_RATES: Final = "a study compares every row with its rate: give it, or leave the row out"


_ASKS_BITS: Final = (
    "names a unit only: write throughput_{unit} for measured rates, or link_{unit} for the rate of a port"
)
_BYTE_RATE: Final = re.compile(r"(?:^|_)[kmgt]?b/s(?:ec)?$")
_ASKS_BYTES: Final = "may be bits or bytes per second: write bit/s or bytes/s with its prefix, as in throughput_mbit/s"


class _Head(NamedTuple):
    """The head of a column: its spelling in the table, its key in :data:`COLUMNS`, the unit of its bare numbers."""

    spelled: str
    column: str
    unit: Unit
    names_unit: bool


class _Doubtful(NamedTuple):
    """A bare number that is hardly in the unit that it is read in."""

    row: int
    text: str
    value: float
    cores: int
    frame_bytes: float


def _read_header(
    header: Sequence[str], router: Point | None, rows: Sequence[Sequence[str]]
) -> tuple[tuple[_Head, ...], list[Problem]]:
    heads: list[_Head] = []
    problems: list[Problem] = []
    unread: list[tuple[int, str]] = []
    for index, spelled in enumerate(header):
        plain = _plain(spelled)
        column, unit = _SPELLINGS.get(plain, ("", Unit()))
        earlier = next((head.spelled for head in heads if head.column == column), None)
        if not column:
            unread.append((index, spelled))
            heads.append(_Head(spelled, _IGNORED, Unit(), names_unit=True))
            continue
        names_unit = _names_unit(plain, column)
        rival = next((head for head in heads if column == head.column == "throughput_pps"), None)
        if rival is not None and _kind_of_head(rival.spelled) != _kind_of_head(spelled):
            # Both kinds of rate: a model predicts what is forwarded in overload, which is no less.
            keeps_rival = _kind_of_head(spelled) == "no_loss"
            if not keeps_rival:
                heads[heads.index(rival)] = rival._replace(column=_UNUSED_RATE)
            heads.append(_Head(spelled, _UNUSED_RATE if keeps_rival else column, unit, names_unit))
            continue
        if earlier == spelled:
            problems.append(Problem(f"row 1, column {spelled}", "is given twice: keep one"))
        elif earlier is not None:
            problems.append(Problem("row 1", f"columns {earlier} and {spelled} mean the same: keep one"))
        heads.append(_Head(spelled, column, unit, names_unit))
    columns = {head.column for head in heads}
    required = _REQUIRED if router is None else _REQUIRED_FOR_ROUTER
    missing = [column for column in required if column not in columns]
    for index, spelled in unread:
        cells = [row[index].strip() for row in rows if index < len(row)]
        is_remark = _plain(spelled) in _REMARK_HEADS or not any(cells)
        if is_remark or (not missing and _is_prose(cells) and not _is_like_known(spelled)):
            continue
        hint = _unknown_head(spelled, missing)
        is_listed = any(hint == problem.message for problem in problems)
        shown_name = spelled[:60] or f"(number {index + 1}, without a name)"
        problems.append(Problem(f"row 1, column {shown_name}", "unknown too" if is_listed else hint))
    problems += [Problem("row 1", f"column {column} is missing: {COLUMNS[column].meaning}") for column in missing]
    if router is None and "frame_bytes" not in columns:
        problems += [
            Problem(f"row 1, column {head.spelled}", f"is in bit/s, but {_NEEDS_FRAMES}")
            for head in heads
            if head.unit.layer and head.column in _RATE_COLUMNS
        ]
    return tuple(heads), problems


def _names_unit(plain: str, column: str) -> bool:
    """Whether a head of a column names the unit of bare numbers; a layer of bits is none."""
    stem, _, last = plain.rpartition("_")
    return (stem if last in _LAYERS and column in _RATE_COLUMNS else plain) not in COLUMNS[column].stems


def _is_prose(cells: Sequence[str]) -> bool:
    """Whether cells hold words: neither amounts nor yes and no, which could decide an answer."""
    words = [cell for cell in cells if cell]
    return not any(_STARTS_AMOUNT.match(cell) for cell in words) and not all(
        cell.lower() in _YES | _NO for cell in words
    )


_STARTS_AMOUNT: Final = re.compile(r"[+-]?[.,]?\d")


def _is_like_known(spelled: str) -> bool:
    from routecast.quantity.did_you_mean import did_you_mean

    return did_you_mean(_plain(spelled), _SUGGESTED_HEADS).startswith("did you mean")


def _unknown_head(spelled: str, missing: Sequence[str]) -> str:
    """Return what to do about a head that no column has, with the likely name where there is one."""
    from routecast.quantity.did_you_mean import did_you_mean  # only for messages

    plain = _plain(spelled)
    # A stem that names the kind of the rate is a claim: it is suggested for what begins like it alone.
    heads_alike = [head for head in _SUGGESTED_HEADS if head[:4] == plain[:4] or not head.startswith((*_KIND_OF_STEM,))]
    bits = plain.removeprefix("throughput_") if plain.rpartition("_")[0] in {"", "throughput"} else ""
    if bits in _BIT_RATES:
        return _ASKS_BITS.format(unit=bits)
    if _BYTE_RATE.search(plain):
        return _ASKS_BYTES
    nearest = did_you_mean(plain, heads_alike)
    likely = nearest.removeprefix('did you mean "').removesuffix('"?') if nearest.startswith("did you mean") else ""
    if not likely:  # of heads that differ in the unit alone, five are of one column
        of_unit = [name for name in _USED if any(plain.endswith(f"_{unit}") for unit in COLUMNS[name].units)]
        nearest = did_you_mean(plain, of_unit or _USED)
        unit = max((unit for unit in _RATES if plain.endswith(f"_{unit}")), key=len, default="")
        if unit and "throughput_pps" in missing:
            likely = f"throughput_{unit}"
        elif missing and not of_unit:
            likely = missing[0] if len(missing) == 1 else ""
    renamed = shlex.quote(f"{spelled[:60]}={likely or 'NAME'}")
    return f"unknown: {nearest}{' Name' if nearest.endswith('?') else '; name'} it with --rename {renamed}"


_BASE_UNIT: Final = {"throughput_pps": "frames/s", "link_bps": "bit/s", "nic_cap_pps": "frames/s"}
_MOST_LISTED = 6


def _plain(spelled: str) -> str:
    """Return a head in lower case, with ``_`` for spaces and brackets; a layer stands before the unit.

    A frame rate is its own stem: ``Mpps`` is ``throughput_mpps``. A capital B is a byte.

    Examples
    --------
    >>> _plain("L2 throughput (Gbps)"), _plain("Throughput Gbit/s L1"), _plain("Mpps"), _plain("link MB/s")
    ('throughput_l2_gbps', 'throughput_l1_gbit/s', 'throughput_mpps', 'link_mbytes/s')
    """
    with_bytes = _BYTES_PER_SECOND.sub(r"\1bytes/s", spelled[:100].replace("_", " "))
    plain = _BETWEEN_WORDS.sub("_", with_bytes.lower()).strip("_")
    if plain in _FRAME_RATES:
        return f"throughput_{plain}"
    layer, _, stem = plain.partition("_")
    if layer in _LAYERS and stem in COLUMNS["throughput_pps"].stems:
        return f"{stem}_{layer}"
    if match := _LAYER_FIRST.match(plain):
        return f"{match[2]}_{match[1]}_{match[3]}"
    if match := _LAYER_LAST.match(plain):
        return f"{match[1]}_{match[3]}_{match[2]}"
    return plain


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
        [*parts]
        if len(parts) <= _MOST_LISTED
        else [*parts[: _MOST_LISTED - 1], f"{len(parts) - _MOST_LISTED + 1} more"]
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
    low, high = _POSSIBLE[column]

    def is_possible(entry: _Doubtful, unit: Unit) -> bool:
        amount = entry.value * unit.factor / entry.cores
        if unit.layer and column == "throughput_pps":
            amount /= 8.0 * (entry.frame_bytes + WIRE_OVERHEAD_BYTES)
        return low <= amount <= high

    units = COLUMNS[column].units
    return [
        name
        for name in _POSSIBLE_UNITS[column]
        if (has_frames or column != "throughput_pps" or not units[name].layer)
        and all(is_possible(entry, units[name]) for entry in entries)
    ]


def _kind_of_head(spelled: str) -> RateKind:
    plain = _plain(spelled)
    return next((kind for stem, kind in _KIND_OF_STEM.items() if plain == stem or plain.startswith(f"{stem}_")), "")


@dataclass(slots=True, kw_only=True)
class _RowReader:
    """Reads the rows of a table one by one; ``problems`` collects their faults."""

    heads: tuple[_Head, ...]
    router: Point | None
    problems: list[Problem]
    has_plain_bits: bool = False
    doubtful: dict[_Head, list[_Doubtful]] = plain_field(default_factory=dict)

    def remarks(self) -> Iterable[str]:
        """Return notes on the assumptions."""
        if ignored := [head.spelled[:60] for head in self.heads if head.column == _IGNORED and head.spelled]:
            yield (
                f"Column{'s' if len(ignored) > 1 else ''} {_listed(ignored)} {'are' if len(ignored) > 1 else 'is'} not "
                "used: no column of points has that name"
            )
        by_column = {head.column: head.spelled for head in self.heads}
        if _UNUSED_RATE in by_column:
            yield f"The rates are those of {by_column['throughput_pps']}; {by_column[_UNUSED_RATE]} is not used"
        if "frame_bytes" not in {head.column for head in self.heads}:
            yield "No column names the frame size: frames of 64 B are assumed (frame_bytes says otherwise)"
        if self.has_plain_bits:
            yield (
                "Throughput in bit/s is read with 20 B of gap and preamble a frame (throughput_l1_gbps says so, "
                "throughput_l2_gbps is without, throughput_l3_gbps counts IP packets)"
            )
        for head, entries in self.doubtful.items():
            if head.names_unit:
                if entries[0].value > _ASKED_ABOVE[head.column] * entries[0].cores:
                    least_ns = 1e9 / _ASKED_ABOVE[head.column]
                    yield (
                        f"{_rows_text(entry.row for entry in entries).capitalize()}, column {head.spelled}: "
                        f"{_values_text(head.column, entries)}, a frame in less than {least_ns:g} ns: no core does "
                        "that; look for a wrong unit"
                    )
                    continue
                least = _least_text(head.column) + (" a core" if head.column == "throughput_pps" else "")
                unit = f"{COLUMNS[head.column].stems[0]}_{_POSSIBLE_UNITS[head.column][0]}"
                yield (
                    f"{_rows_text(entry.row for entry in entries).capitalize()}, column {head.spelled}: "
                    f"{_values_text(head.column, entries)}, less than {least}: right only if the numbers are "
                    f"{_BASE_UNIT[head.column]} (else name their unit, as in {unit})"
                )

    def questions(self) -> Iterable[Problem]:
        """Return the questions about bare numbers whose head names no unit, one for all rows of a column."""
        has_frames = self.router is not None or "frame_bytes" in {head.column for head in self.heads}
        for head, entries in self.doubtful.items():
            if head.names_unit:
                continue
            stem = _plain(head.spelled)
            units = _possible_units(head.column, entries, has_frames=has_frames)
            heads = [f"{stem}_{unit}" for unit in units if not head.unit.layer or unit in _BIT_RATES]
            base_unit = "bps" if head.unit.layer else head.column.rpartition("_")[2]
            base = f"{stem}_{base_unit} if they are {'bit/s' if head.unit.layer else _BASE_UNIT[head.column]}"
            remedy = f"write the head as {' or '.join(heads)}, or as {base}; or give each cell its unit"
            yield Problem(
                f"{_rows_text(entry.row for entry in entries)}, column {head.spelled}",
                f"which unit? The head names none, {_texts(entries)} would be "
                f"{_values_text('link_bps' if head.unit.layer else head.column, entries)}: "
                + (remedy if heads else f"give each cell its unit, or write the head as {base}"),
            )

    def _doubt(self, row: Mapping[str, tuple[_Head, str]], number: int, point: Point) -> bool:
        """Note bare numbers that are hardly in the unit that they are read in; return whether to ask about one."""
        must_ask = False
        for column, amount in (
            ("throughput_pps", point.throughput_pps),
            ("link_bps", point.link_bps),
            ("nic_cap_pps", point.nic_cap_pps),
        ):
            head, text = row.get(column, (None, ""))
            if head is None or amount is None or not _is_number(text):
                continue
            cores = point.working_cores if column == "throughput_pps" else 1
            has_prefix = head.names_unit and head.unit.factor != 1.0
            is_small = not has_prefix and amount < ASKED_BELOW[column] * cores
            if is_small or amount > _ASKED_ABOVE[column] * cores:
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
        known = self.router or Point(cores=1, frame_bytes=_SMALLEST_FRAME_BYTES, throughput_pps=math.nan)
        required = ("cores", "frame_bytes") if self.router is None else _REQUIRED_FOR_ROUTER

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
        frame_bytes, frame_mix = cell("frame_bytes", _frames, default_frames)
        wire_bytes = frame_bytes + WIRE_OVERHEAD_BYTES

        def rate_pps(column: str) -> float:
            amount, layer = cell(column, _rate, (math.nan, ""))
            if not layer:
                return amount
            if "frame_bytes" not in row:
                add(column, f'got "{row[column][1][:60]}", but {_NEEDS_FRAMES}')
            self.has_plain_bits |= layer == "bits" and column == "throughput_pps"
            counted_bytes = {"l2": frame_bytes, "l3": frame_bytes - _ETHERNET_BYTES}.get(layer, wire_bytes)
            return amount / (8.0 * counted_bytes)

        link_bps = cell("link_bps", _bit_rate, known.link_bps)
        throughput_pps = rate_pps("throughput_pps")
        has_rate = not math.isnan(throughput_pps)
        point = Point(
            cores=cell("cores", _whole_number(_MAX_CORES), known.cores),
            frame_bytes=frame_bytes,
            throughput_pps=throughput_pps,
            flows=cell("flows", _whole_number(_MAX_FLOWS), None),
            link_bps=link_bps
            and link_bps * wire_bytes / (wire_bytes + cell("encapsulation_bytes", _not_negative_bytes, 0.0)),
            ports=cell("ports", _whole_number(_MAX_PORTS), known.ports),
            nic_cap_pps=cell("nic_cap_pps", _frame_rate, None),
            series=row["series"][1] if "series" in row else known.series,
            calibrate=cell("calibrate", _yes_or_no, "calibrate" not in row and has_rate),
            standard_error_ratio=cell("standard_error_ratio", _ratio, None),
            rate_kind=cell("rate_kind", _rate_kind, _kind_of_head(row["throughput_pps"][0].spelled)),
            disturbed=_disturbance(row["disturbed"][1] if "disturbed" in row else ""),
            reported_pps=rate_pps("reported_l1_bps"),
            frame_mix=frame_mix,
            layout=Layout(
                shared_queue=cell("shared_queue", _yes_or_no, None),
                transmits_by_modulo=cell("transmit_ring", _ring, "own") == "modulo",
                queues=cell("queues", _whole_number(_MAX_QUEUES), None),
            ),
        )
        if len(problems) > before or self._doubt(row, number, point):
            return None
        if point.calibrate and not has_rate:
            add("calibrate", f"is true, but the row has no rate: give {row['throughput_pps'][0].spelled}, or set false")
        for message in _contradictions(point):
            add("throughput_pps", message)
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


def _contradicts_router(point: Point, router: Point) -> Iterable[tuple[str, str]]:
    for column in ("cores", "link_bps", "ports"):
        if (value := getattr(point, column)) != (known := getattr(router, column)):
            yield column, f"got {value:g}, but the router has {known:g}: keep one of them"
    if point.frame_mix is not None or not point.frame_bytes.is_integer():
        yield "frame_bytes", "a study's frames are of one size: a whole number >= 64"


def _table_problems(points: Sequence[tuple[int, Point]], *, complete: bool, of_router: bool) -> list[Problem]:
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
    rated = {point.series for _, point in points if not math.isnan(point.throughput_pps)}
    for name in dict.fromkeys(point.series for _, point in points):
        if name in calibrated:
            continue
        column, remedy = "calibrate", "set calibrate = true on at least one row of each series"
        if name not in rated:
            column, remedy = "throughput", "give the measured rate of at least one row of each series"
        location = f"series {name[:60]!r}" if name else f"column {column}"
        problems.append(Problem(location, f"no row calibrates: {remedy}"))
    return problems


def _amount(text: str, unit: Unit, with_unit: Callable[[str], float]) -> float:
    """Read a number > 0 in the unit of its column, or with its own unit."""
    try:
        amount = float(text)
    except ValueError:
        return with_unit(text)
    amount *= unit.factor
    if not (math.isfinite(amount) and amount > 0.0):
        raise ValueError(text)
    return amount


def _frame_rate(text: str, unit: Unit) -> float:
    return _amount(text, unit, parse_rate_pps)


def _bit_rate(text: str, unit: Unit) -> float:
    return _amount(text, unit, parse_bit_rate_bps)


def _rate(text: str, unit: Unit) -> tuple[float, str]:
    """Read a rate and the layer of its bits; the layer of a frame rate is empty."""
    if _is_number(text):
        return _frame_rate(text, unit), unit.layer
    rate_pps, rate_bps = parse_rate(text)
    return (rate_pps, "") if rate_pps is not None else (rate_bps or math.nan, unit.layer or "bits")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _not_negative_bytes(text: str, unit: Unit) -> float:
    return 0.0 if _is_number(text) and float(text) == 0.0 else _amount(text, unit, parse_size_bytes)


def _ratio(text: str, unit: Unit) -> float:
    ratio = _amount(text, unit, parse_ratio)
    if ratio >= 1.0:
        raise ValueError(text)
    return ratio


def _whole_number(max_value: int) -> Callable[[str, Unit], int]:
    def read(text: str, unit: Unit) -> int:
        value = float(text)
        if not (1.0 <= value <= max_value and value == int(value)):
            raise ValueError(text)
        return int(value)

    return read


def _yes_or_no(text: str, unit: Unit) -> bool:
    word = text.lower()
    if word not in _YES | _NO:
        raise ValueError(text)
    return word in _YES


def _rate_kind(text: str, unit: Unit) -> RateKind:
    try:
        return _KIND_OF_WORD[_BETWEEN_WORDS.sub("_", text.lower()).strip("_")]
    except KeyError:
        raise ValueError(text) from None


def _disturbance(text: str) -> str:
    word = text.lower()
    return "" if word in _NO else _DISTURBED if word in _YES else text


def _ring(text: str, unit: Unit) -> str:
    if text not in _RINGS:
        raise ValueError(text)
    return text


def _frames(text: str, unit: Unit) -> tuple[float, FrameMix | None]:
    try:
        value = float(text)
    except ValueError:
        try:
            mix = FrameMix.parse(text)
        except ModelProblem as problem:
            raise ValueError(text) from problem
        return mix.mean_bytes, None if mix.is_fixed else mix
    if not _SMALLEST_FRAME_BYTES <= value <= _LONGEST_FRAME_BYTES:
        raise ValueError(text)
    return value, None
