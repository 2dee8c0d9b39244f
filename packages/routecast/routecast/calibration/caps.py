"""Caps that nobody stated: rates that a link, a card, a bus or the tester limited, found in the table itself.

A rate at a cap says only that the cores forward at least as much; as a rate of the cores it would bend every law. Three
signs show a cap, since a router whose cores limit shows none of them:

* **equal bit rates** with gap and preamble (S1) at the top of the table, on several numbers of cores: more cores do not
  help, and frames of every size fill the same link;
* **equal frame rates** at the top of the table, over several numbers of cores and several frame sizes: a card or the
  tester passes so many frames, whatever their size;
* **a rate at a line rate** of Ethernet, of one port or of two: 1, 2.5, 5, 10, 25, 40, 50, 100, 200, 400 Gbit/s.

Links and cards that a table states do not hide a lower limit: rows of one stated link, all below it, show a cap by the
same signs, for instance of a bus.

::

    bit/s   ─ cap ─ ─ ─ ─x─ ─x─ ─ ─x─   rows at the cap: the cores' rate is at least this
                      x
                  x                     rows below: the cores' rate
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from routecast.evaluate.points import Point
from routecast.load.offered import WIRE_OVERHEAD_BYTES
from routecast.quantity import format_bps, format_pps
from routecast.quantity.schema import field, value

__all__ = ["LINE_RATES_BPS", "Cap", "Caps", "find_caps"]

LINE_RATES_BPS = tuple(gigabits * 1e9 for gigabits in (0.1, 1.0, 2.5, 5.0, 10.0, 25.0, 40.0, 50.0, 100.0, 200.0, 400.0))
"""Line rates of Ethernet ports (IEEE 802.3), bit/s."""

_BELOW_LINE_RATE, _ABOVE_LINE_RATE = 0.003, 0.0005
"""Relative difference from a line rate that clocks and rounded figures explain; no link carries more than its clock."""
_ABOVE_BY_ROUNDING = 0.004
"""Excess of equal rates over a line rate, from which another limit than that line made them equal."""
_MIN_EQUAL_RATIO, _MAX_EQUAL_RATIO = 0.015, 0.05
"""Least and greatest relative spread of equal rates; between them, twice the repeatability of the table."""
_TAGS_BYTES = (0.0, 4.0, 8.0)
"""Bytes that no head names and each frame has on the link: none, a VLAN tag (IEEE 802.1Q), two of them (802.1ad)."""
_MIN_CORE_COUNTS = 2
_MIN_FLAT_COUNTS = 3
"""Numbers of cores with one bit rate for one frame size, from which it is a cap if the rates of other frames grow."""
_FLAT_RATIO = 1.5
_MIN_FRAME_SIZES = 2
_MIN_SINGLE_COUNT_SIZES = 3
"""Frame sizes of equal bit rates on one number of cores, from which no cost per byte of the cores explains them."""
_MAX_PORTS = 2
_SHORTFALL_RATIO, _ROUND_SHORTFALL_RATIO = 0.03, 0.1
"""Shortfall from linear scaling with the cores, from which a single row at a line rate is at a cap."""
_ROUND_TOLERANCE = 1e-6
_MAX_NAMED_ROWS = 4


@value
class Cap:
    """A limit that the rows of a table show and do not state."""

    kind: Literal["bits", "frames", "ports"] = field(
        "``bits``: a link or a bus; ``frames``: a card or the tester; ``ports``: one port of a stated link"
    )
    rate: float = field("bit/s on the wire of all ports together, with gap and preamble, or frames/s")
    rows: tuple[Point, ...] = field("Rows at the cap")
    ports: int | None = field("Ports of Ethernet whose line rate it is; None: of no number of ports", default=None)
    tag_bytes: float = field("Bytes of each frame on the wire that the frame size of the table leaves out", default=0.0)
    stated: float | None = field(
        "``link_bps`` or ``nic_cap_pps`` of the rows, below which the cap is; None: they state none", default=None
    )

    def link_bps(self, point: Point) -> float:
        """Return the rate of one port of a point's router for the frames as the table counts them, of a cap in bits."""
        wire_bytes = point.frame_bytes + WIRE_OVERHEAD_BYTES
        return self.rate / point.ports * wire_bytes / (wire_bytes + self.tag_bytes)

    def is_of(self, link_bps: float, ports: int) -> bool:
        """Whether the rate of a port is that of this cap, with frames of some size."""
        shortest = 1.0 / (1.0 + self.tag_bytes / (64.0 + WIRE_OVERHEAD_BYTES))
        share = link_bps * ports / self.rate
        return self.tag_bytes > 0.0 and shortest - _ROUND_TOLERANCE <= share <= 1.0

    @property
    def text(self) -> str:
        """The cap in words, with the question that it leaves open."""
        count = f"{len(self.rows)} row{'s' if len(self.rows) > 1 else ''}"
        cells = ", ".join(dict.fromkeys(_row_name(row) for row in self.rows[:_MAX_NAMED_ROWS]))
        more = ", …" if len(self.rows) > _MAX_NAMED_ROWS else ""
        if self.stated is not None:
            return self._text_below_stated(self.stated, f"{count} ({cells}{more})")
        if self.kind == "frames":
            return (
                f"{count} ({cells}{more}) have {format_pps(self.rate)}, whatever the frame size: a card or the tester "
                f"limits them, and the cores forward at least as much. State nic_cap_pps if it is the card"
            )
        wire = f"{format_bps(self.rate)} on the wire"
        state = "State link_bps and ports"
        if self.tag_bytes:
            wire += f" with {self.tag_bytes:g} B more in each frame, as VLAN tags have"
            state = "State link_bps, ports and encapsulation_bytes"
        if self.kind == "ports":
            return (
                f"{count} ({cells}{more}) have the line rate of one port of {format_bps(self.rate)}, and no row has "
                "more: the traffic is taken to use one port. How many ports took part? State ports"
            )
        if self.ports is None:
            return (
                f"{count} ({cells}{more}) fill {wire}, whatever the frames: a link or a bus limits them, and the cores "
                f"forward at least as much. {state}"
            )
        port = format_bps(self.rate / self.ports)
        ports = "one port" if self.ports == 1 else f"{self.ports} ports"
        return (
            f"{count} ({cells}{more}) fill {wire}, the line rate of {ports} of {port}: the links limit them, and the "
            f"cores forward at least as much. How many ports took part? {state}"
        )

    def _text_below_stated(self, stated: float, rows: str) -> str:
        """Return the cap in words, if it is below the links or cards that its rows state."""
        if self.kind == "frames":
            return (
                f"{rows} have {format_pps(self.rate)}, whatever the frame size, less than the stated nic_cap_pps of "
                f"{format_pps(stated)}: something else limits them, and the cores forward at least as much"
            )
        line = f" (the line rate of {format_bps(self.rate / self.ports)} Ethernet)" if self.ports else ""
        return (
            f"{rows} fill {format_bps(self.rate)} on the wire{line}, whatever the frames, less than the stated links "
            f"of {format_bps(stated)}: a bus, another link or the tester limits them, and the cores forward at "
            "least as much"
        )


@value
class Caps:
    """The caps of a series, and its points with them."""

    points: tuple[Point, ...]
    caps: tuple[Cap, ...] = ()
    # Receive queues that the rates show to be dealt to the cores (routecast.calibration.dealing); None: none are shown.
    queues: int | None = None

    def applied(self, point: Point) -> Point:
        """Return a point of the same router with the caps and queues where it states none."""
        return _with_caps(with_queues(point, self.queues), self.caps)

    @property
    def texts(self) -> tuple[str, ...]:
        """Sentences on what was found."""
        dealt = () if self.queues is None else (_queues_text(self.queues),)
        return (*(cap.text for cap in self.caps), *dealt)


def with_queues(point: Point, queues: int | None) -> Point:
    """Return a point whose receive queues are dealt to the cores, unless it states them or has crafted flows."""
    if queues is None or point.layout.queues is not None or point.flows is not None:
        return point
    return replace(point, layout=replace(point.layout, queues=queues))


def _queues_text(queues: int) -> str:
    return (
        f"the rates rise in the steps of {queues} receive queues that are dealt to the cores in turn: the fullest core "
        "limits. Give each core a queue, or state queues"
    )


def find_caps(points: Sequence[Point], *, noise_ratio: float) -> Caps:
    """Find the caps of the measured points of one series; points that state their links and cards keep them.

    ``noise_ratio``: repeatability of a rate, one standard deviation.
    """
    equal_ratio = min(max(2.0 * noise_ratio, _MIN_EQUAL_RATIO), _MAX_EQUAL_RATIO)
    caps: list[Cap] = []
    free = [point for point in points if point.flows is None and math.isfinite(point.throughput_pps)]
    if bits := _bits_cap([point for point in free if point.link_bps is None], equal_ratio):
        caps.append(bits)
    at_bits = set(map(id, bits.rows)) if bits else set()
    frames = [point for point in free if point.nic_cap_pps is None and id(point) not in at_bits]
    if cap := _frames_cap(frames, equal_ratio):
        caps.append(cap)
    caps += _one_port_caps([point for point in free if point.link_bps is not None], equal_ratio)
    caps += _caps_below_stated(free, caps, equal_ratio)
    return Caps(points=tuple(_with_caps(point, caps) for point in points), caps=tuple(caps))


def _bits_cap(points: Sequence[Point], equal_ratio: float) -> Cap | None:
    """Return the cap in bit/s of the rows with the greatest bit rates, if they show one."""
    if not points:
        return None
    if cap := max(
        filter(None, (_line_rate_cap(points, equal_ratio, tag_bytes) for tag_bytes in _TAGS_BYTES)),
        key=lambda cap: sum(_is_at(_l1_bps(row, cap.tag_bytes) / cap.rate) for row in cap.rows),
        default=None,
    ):
        return cap
    top_bps = max(map(_l1_bps, points))
    rows = tuple(point for point in points if _l1_bps(point) >= top_bps * (1.0 - 2.0 * equal_ratio))
    grows = any(point.throughput_pps > max(row.throughput_pps for row in rows) for point in points)
    if not _is_equal_over(rows) and not (grows and _is_flat(rows, _MIN_FLAT_COUNTS)):
        return None
    middle_bps = math.exp(sum(math.log(_l1_bps(point)) for point in rows) / len(rows))
    return Cap(kind="bits", rate=middle_bps, rows=rows)


def _line_rate_cap(points: Sequence[Point], equal_ratio: float, tag_bytes: float) -> Cap | None:
    """Return the cap at a line rate of the rows with the greatest bit rates, with so many bytes more in each frame."""

    def share(point: Point) -> float:
        return _l1_bps(point, tag_bytes) / rate_bps

    for rate_bps, ports in _line_rates_near(max(_l1_bps(point, tag_bytes) for point in points), equal_ratio):
        rows = tuple(point for point in points if abs(share(point) - 1.0) <= equal_ratio)
        exact = [point for point in rows if _is_at(share(point))]
        if tag_bytes:
            # Tags that nobody states are claimed only for what equals a line rate, whatever the frames or cores.
            if _is_equal_over(exact) or _is_flat(exact):
                return Cap(kind="bits", rate=rate_bps, rows=rows, ports=ports, tag_bytes=tag_bytes)
        elif _is_equal_over(rows) or _is_flat(rows) or any(not _is_of_the_cores(row, points) for row in exact):
            middle = math.exp(sum(math.log(share(point)) for point in rows) / len(rows))
            if middle > 1.0 + _ABOVE_BY_ROUNDING:
                return Cap(kind="bits", rate=middle * rate_bps, rows=rows)
            return Cap(kind="bits", rate=rate_bps, rows=rows, ports=ports)
    return None


def _is_flat(rows: Sequence[Point], min_counts: int = _MIN_CORE_COUNTS) -> bool:
    """Whether equal rates are on numbers of cores so far apart that those of the cores would differ."""
    counts = {row.working_cores for row in rows}
    return len(counts) >= min_counts and max(counts) >= _FLAT_RATIO * min(counts)


def _is_of_the_cores(row: Point, points: Sequence[Point]) -> bool:
    """Whether the rate of a row follows from that of fewer cores with the same frames, so that no cap is needed.

    A round figure in bit/s is often a line rate by chance, so that it has to fall further short.
    """
    is_round = abs(_l1_bps(row) / float(f"{_l1_bps(row):.2g}") - 1.0) < _ROUND_TOLERANCE
    shortfall = _ROUND_SHORTFALL_RATIO if is_round else _SHORTFALL_RATIO
    fewer = [p for p in points if p.working_cores < row.working_cores and p.frame_bytes == row.frame_bytes]
    if not fewer:
        return False
    nearest = max(fewer, key=lambda point: point.working_cores)
    linear_pps = nearest.throughput_pps * row.working_cores / nearest.working_cores
    return row.throughput_pps >= (1.0 - shortfall) * linear_pps


def _is_at(share: float) -> bool:
    """Whether a share of a line rate is that rate."""
    return -_BELOW_LINE_RATE <= share - 1.0 <= _ABOVE_LINE_RATE


def _one_port_caps(points: Sequence[Point], equal_ratio: float) -> Iterator[Cap]:
    """Yield the cap of each stated link whose rate in one direction some rows have and no row exceeds."""
    for link_bps in dict.fromkeys(point.link_bps for point in points):
        own = [point for point in points if point.link_bps == link_bps and point.busy_ports > 1]
        shares = [point.throughput_pps / (point.line_rate_pps / point.busy_ports) for point in own]
        rows = tuple(point for point, share in zip(own, shares, strict=True) if abs(share - 1.0) <= equal_ratio)
        is_shown = any(map(_is_at, shares)) or _is_equal_over(rows)
        if is_shown and max(shares) <= 1.0 + equal_ratio:
            yield Cap(kind="ports", rate=float(link_bps or math.nan), rows=rows, ports=1)


def _caps_below_stated(points: Sequence[Point], caps: Sequence[Cap], equal_ratio: float) -> Iterator[Cap]:
    """Yield the cap that the rows of a stated link show, or of a stated card, which none of them reaches."""
    below = 1.0 - 2.0 * equal_ratio
    at_ports = {cap.rate for cap in caps if cap.kind == "ports"}
    at_cap: set[int] = set()
    for link_bps, ports in dict.fromkeys((point.link_bps, point.ports) for point in points):
        own = [point for point in points if (point.link_bps, point.ports) == (link_bps, ports)]
        if link_bps is None or link_bps in at_ports:
            continue
        if any(point.throughput_pps > below * point.line_rate_pps for point in own):
            continue
        cap = _bits_cap(own, equal_ratio)
        # A row at the line rate of another link is one by chance, where the link is stated.
        if cap is not None and (_is_equal_over(cap.rows) or _is_flat(cap.rows)):
            at_cap |= set(map(id, cap.rows))
            yield replace(cap, stated=link_bps)
    for cap_pps in dict.fromkeys(point.nic_cap_pps for point in points):
        own = [point for point in points if point.nic_cap_pps == cap_pps and id(point) not in at_cap]
        if cap_pps is None or any(point.throughput_pps > below * cap_pps for point in own):
            continue
        if cap := _frames_cap(own, equal_ratio):
            yield replace(cap, stated=cap_pps)


def _with_caps(point: Point, caps: Sequence[Cap]) -> Point:
    if point.flows is not None:
        return point
    for cap in caps:
        if cap.kind == "bits" and (point.link_bps == cap.stated or cap.is_of(point.link_bps or 0.0, point.ports)):
            point = replace(point, link_bps=cap.link_bps(point))
        elif cap.kind == "frames" and point.nic_cap_pps == cap.stated:
            point = replace(point, nic_cap_pps=cap.rate)
        elif cap.kind == "ports" and point.link_bps == cap.rate:
            point = replace(point, ports=1)
    return point


def _is_equal_over(rows: Sequence[Point]) -> bool:
    """Whether equal bit rates cannot be those of the cores: over frame sizes and cores, or over many sizes."""
    sizes = {row.frame_bytes for row in rows}
    counts = {row.working_cores for row in rows}
    if len(counts) < _MIN_CORE_COUNTS:
        return len(sizes) >= _MIN_SINGLE_COUNT_SIZES
    return len(sizes) >= _MIN_FRAME_SIZES


def _frames_cap(points: Sequence[Point], equal_ratio: float) -> Cap | None:
    """Return the cap in frames/s of the rows with the greatest frame rates, if they show one."""
    if not points:
        return None
    top_pps = max(point.throughput_pps for point in points)
    rows = tuple(point for point in points if point.throughput_pps >= top_pps * (1.0 - 2.0 * equal_ratio))
    sizes, counts = {row.frame_bytes for row in rows}, {row.working_cores for row in rows}
    if len(sizes) < _MIN_FRAME_SIZES or len(counts) < _MIN_CORE_COUNTS:
        return None
    middle_pps = math.exp(sum(math.log(point.throughput_pps) for point in rows) / len(rows))
    return Cap(kind="frames", rate=middle_pps, rows=rows)


def _line_rates_near(rate_bps: float, tolerance: float) -> Iterator[tuple[float, int]]:
    """Yield the line rates of one or several ports near a rate, the nearest first, and the number of ports."""
    rates = {ports * line_bps: ports for ports in range(_MAX_PORTS, 0, -1) for line_bps in LINE_RATES_BPS}
    near = [line_bps for line_bps in rates if abs(rate_bps / line_bps - 1.0) <= tolerance]
    yield from ((line_bps, rates[line_bps]) for line_bps in sorted(near, key=lambda bps: abs(rate_bps / bps - 1.0)))


def _l1_bps(point: Point, tag_bytes: float = 0.0) -> float:
    return point.throughput_pps * 8.0 * (point.frame_bytes + tag_bytes + WIRE_OVERHEAD_BYTES)


def _row_name(point: Point) -> str:
    return f"{point.working_cores} core{'s' if point.working_cores > 1 else ''} at {point.frame_bytes:g} B"
