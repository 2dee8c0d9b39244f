"""Measured points: the conditions of a router and its greatest forwarding rate.

A point is one maximum throughput measured under overload. :mod:`routecast.evaluate.point_table` reads and writes tables
of points.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from routecast.errors import QuantityProblem
from routecast.load.frames import FrameMix
from routecast.load.offered import line_rate_pps
from routecast.quantity.schema import field, value

__all__ = [
    "LATENCY_STATISTICS",
    "Layout",
    "Point",
    "PointLatency",
    "PointTable",
    "RateKind",
    "calibrating",
    "describe_rates",
    "of_series",
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


RateKind = Literal["", "overload", "no_loss"]
"""Kind of a rate: forwarded at the maximum offered load (RFC 2285), or without loss (RFC 1242); empty: not stated."""


LATENCY_STATISTICS: Final = ("min", "mean", "p50", "p95", "p99", "max")
"""Statistics of a measured latency, in no decreasing order but for the mean."""


@value
class PointLatency:
    """The latency that was measured at a load, below the maximum throughput or in overload."""

    load_pps: float = field("Offered frames per second over all ports; NaN if a ratio is given", default=math.nan)
    load_ratio: float = field("Offered rate over the row's throughput; NaN if a rate is given", default=math.nan)
    load_of: RateKind = field("Kind of the rate that the ratio is of; empty: the row's", default="")
    arrivals: str = field("cbr, poisson, on_off or trace; empty: not stated", default="")
    min_s: float = math.nan
    mean_s: float = math.nan
    p50_s: float = math.nan
    p95_s: float = math.nan
    p99_s: float = math.nan
    max_s: float = math.nan
    samples: int | None = field("Frames that were timed; None: not stated", default=None)
    devices: int = field("Devices in series that the latency is of, 1 or more", default=1)
    tester_s: float = field("The tester's own delay, which the latencies contain, 0 or more, s", default=0.0)
    resolution_s: float = field("Step in which the tester counts time, 0 or more; 0: not stated, s", default=0.0)
    ring_frames: int | None = field("Frames that wait for one core at most; None: not stated", default=None)
    batch_frames: int | None = field("Frames that a core takes in one poll at most; None: not stated", default=None)

    def of(self, statistic: str) -> float:
        """Return one of :data:`LATENCY_STATISTICS` in seconds; NaN if it was not measured."""
        seconds: float = getattr(self, f"{statistic}_s")
        return seconds


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
    latency: PointLatency | None = field("Latency measured at a load, where it was", default=None)

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


def describe_rates(points: Sequence[Point]) -> tuple[str, ...]:
    r"""Return sentences on the kind of the measured rates, where it is stated, and on disturbed measurements.

    Examples
    --------
    >>> from routecast.evaluate.point_table import parse_points
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
        cells = ", ".join(names[:MOST_LISTED]) + (", …" if len(names) > MOST_LISTED else "")
        verb = "was" if len(disturbed) == 1 else "were"
        reasons = list(dict.fromkeys(row.disturbed for row in disturbed if row.disturbed != DISTURBED))
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
DISTURBED: Final = "yes"
MOST_LISTED = 6
