"""The parts of a simulation: the routers, the packets, their injection, and the phases."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from routecast.errors import ModelProblem, Problem
from routecast.noc.routing.deadlock import choices, shortest_cycle
from routecast.noc.topology import Topology, links
from routecast.quantity.schema import field, value

__all__ = [
    "AdaptiveRouting",
    "Allocator",
    "Bernoulli",
    "Injection",
    "OnOff",
    "Packets",
    "RouterDesign",
    "SimulationPhases",
]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AdaptiveRouting:
    """Adaptive routing hop by hop: of the allowed links, a packet takes the one with the most free buffers ahead.

    ``policy``: the turn model; ``choices``: ``choices[arrival][target]`` are the links allowed to a packet for router
    ``target`` that came over link ``arrival``, or from a node of router ``arrival - number of links``; empty where a
    packet has arrived and where no packet can be.
    """

    policy: str
    topology: Topology
    choices: Sequence[Sequence[Sequence[int]]]

    @classmethod
    def turn_model(cls, policy: str, topology: Topology) -> AdaptiveRouting:
        """Return the routing of a turn model: ``west_first``, ``north_last``, ``negative_first`` or ``odd_even``.

        Raises RoutecastError: an unknown turn model, or a torus.
        """
        return cls(policy=policy, topology=topology, choices=choices(policy, topology))

    @property
    def layer_count(self) -> int:
        """Virtual-channel classes: turn models need one."""
        return 1

    def channel_cycle(self) -> tuple[tuple[int, int], ...] | None:
        """Return a shortest cycle of the channel dependency graph as (link, class), or None: it cannot deadlock.

        A link depends on another where a packet that holds the first may wait for the second (W. Dally and C. Seitz,
        "Deadlock-free message routing in multiprocessor interconnection networks", IEEE Trans. Comput. 36(5), 1987).
        Only links that packets can reach from their sources count.
        """
        cycle = shortest_cycle(self._dependencies())
        return None if cycle is None else tuple((link, 0) for link in cycle)

    def _dependencies(self) -> list[tuple[int, int]]:
        count = len(links(self.topology))
        allowed = _padded(self.choices)
        from_nodes, from_links = allowed[count:], allowed[:count]
        reached = np.zeros((count, self.topology.router_count), dtype=bool)
        _, targets, _ = np.nonzero(from_nodes >= 0)
        reached[from_nodes[from_nodes >= 0], targets] = True
        while True:
            arrivals, targets, slots = np.nonzero((from_links >= 0) & reached[:, :, None])
            onward = from_links[arrivals, targets, slots]
            if bool(reached[onward, targets].all()):
                break
            reached[onward, targets] = True
        pairs = np.unique(arrivals * count + onward)
        return list(zip((pairs // count).tolist(), (pairs % count).tolist(), strict=True))


def _padded(choices: Sequence[Sequence[Sequence[int]]]) -> NDArray[np.int64]:
    """Return the choices as an array of shape (arrivals, targets, most choices), padded with -1."""
    max_choices = max((len(allowed) for row in choices for allowed in row), default=0)
    return np.array(
        [[[*allowed, *(-1,) * (max_choices - len(allowed))] for allowed in row] for row in choices], dtype=np.int64
    ).reshape(len(choices), -1, max_choices)


# Limits of the compiled simulator (crates/noc/src/check.rs).
_MAX_BUFFERED_FLITS = 32_767
_MAX_FLITS = 65_535
_MAX_CYCLES = 4096


def _check_ranges(subject: str, ranges: Iterable[tuple[str, int | None, int, int]]) -> None:
    problems = [
        Problem(name, f"got {value}: a whole number from {low} to {high}")
        for name, value, low, high in ranges
        if value is not None and not low <= value <= high
    ]
    if problems:
        raise ModelProblem(subject, problems)


class Allocator(StrEnum):
    """How a router matches its inputs with its outputs."""

    ROUND_ROBIN = "round_robin"
    ISLIP = "islip"
    GREEDY_WEIGHT = "greedy_weight"


@value
class RouterDesign:
    """An input-queued wormhole router with credits, and its channels of one flit per cycle.

    Raises ModelProblem: a value out of range; all of them are named.
    """

    virtual_channels: int | None = field(
        "FIFOs of an input, each with its own credits; None: one queue for each output and class of the routing "
        "(virtual output queues, VOQ)",
        default=1,
    )
    buffer_flits: int = field("Flits that each virtual channel, or each virtual output queue, holds", default=8)
    allocator: Allocator = field("Matching of inputs with outputs", default=Allocator.ISLIP)
    iterations: int = field("Rounds of iSLIP in a cycle", default=1)
    routing_cycles: int = field("Time of route computation of a head flit; 0 is look-ahead routing", default=0)
    vc_allocation_cycles: int = field("Time to allocate a virtual channel to a head flit", default=1)
    switch_allocation_cycles: int = field("Time to allocate the switch to a flit", default=1)
    traversal_cycles: int = field("Time through the switch", default=1)
    credit_cycles: int = field("Time of a credit to the upstream router", default=1)
    link_cycles: int = field("Time on the wire between two routers", default=1)
    node_link_cycles: int = field("Time on the wire between a node and its router, each way", default=1)
    ejection_channels: int = field(
        "Channels of one flit per cycle from a router to each of its nodes; a packet takes any of them. With one,"
        " a hot spot takes one flit per cycle however many links lead there",
        default=1,
    )

    def __post_init__(self) -> None:
        ranges = (
            ("virtual_channels", self.virtual_channels, 1, 64),
            ("buffer_flits", self.buffer_flits, 1, _MAX_BUFFERED_FLITS),
            ("iterations", self.iterations, 1, 64),
            ("routing_cycles", self.routing_cycles, 0, _MAX_CYCLES),
            ("vc_allocation_cycles", self.vc_allocation_cycles, 0, _MAX_CYCLES),
            ("switch_allocation_cycles", self.switch_allocation_cycles, 1, _MAX_CYCLES),
            ("traversal_cycles", self.traversal_cycles, 0, _MAX_CYCLES),
            ("credit_cycles", self.credit_cycles, 0, _MAX_CYCLES),
            ("link_cycles", self.link_cycles, 0, _MAX_CYCLES),
            ("node_link_cycles", self.node_link_cycles, 0, _MAX_CYCLES),
            ("ejection_channels", self.ejection_channels, 1, 60),
        )
        _check_ranges("router of the network on chip", ranges)

    @classmethod
    def booksim(cls, virtual_channels: int = 1) -> RouterDesign:
        """Return the BookSim2 configuration (commit 28f4329) that the tests compare with.

        ``num_vcs`` 1 or 4, ``vc_buf_size`` 8, ``routing_delay`` 0 (look-ahead), ``vc_alloc_delay`` 1,
        ``sw_alloc_delay`` 1, ``st_final_delay`` 1, ``credit_delay`` 1, channels of 1 cycle between routers and to
        nodes, ``vc_allocator`` and ``sw_allocator`` iSLIP with one iteration, no speculation and no speed-up,
        ``wait_for_tail_credit`` 0.
        """
        return cls(virtual_channels=virtual_channels)

    @classmethod
    def li2012(cls) -> RouterDesign:
        """Return the router of Li's sec. 6.6: VOQs of 50 flits of 32 bits, greedy maximum weight matching.

        Li (2012) does not state the pipeline: here a matched flit is at the next router a slot later. The node at the
        hot spot must take more than a flit in a slot: at Li's load 1 every node offers 5.2 Mflit/s of 31.25 (1 Gbit/s),
        of which 24 nodes send 0.6 to the centre, 2.4 links' worth. So a node has as many channels as its router links.
        """
        return cls(
            virtual_channels=None,
            buffer_flits=50,
            allocator=Allocator.GREEDY_WEIGHT,
            vc_allocation_cycles=0,
            traversal_cycles=0,
            link_cycles=0,
            node_link_cycles=0,
            ejection_channels=4,
        )

    def scenario(self) -> dict[str, Any]:
        """Return the router of ``crates/noc/src/scenario.rs``."""
        queueing: dict[str, Any] = {"kind": "virtual_output_queues"}
        if self.virtual_channels is not None:
            queueing = {"kind": "virtual_channels", "count": self.virtual_channels}
        allocator: dict[str, Any] = {"kind": str(self.allocator)}
        if self.allocator is Allocator.ISLIP:
            allocator["iterations"] = self.iterations
        cycles = ("routing", "vc_allocation", "switch_allocation", "traversal", "credit")
        return {
            "queueing": queueing,
            "buffer_flits": self.buffer_flits,
            "allocator": allocator,
            **{f"{stage}_cycles": getattr(self, f"{stage}_cycles") for stage in cycles},
        }


@value
class Packets:
    """Lengths of packets in flits of the first plane, and their weights.

    Raises ModelProblem: no length, a length below 1, or weights that do not fit.
    """

    flits: tuple[int, ...] = field("Lengths")
    weights: tuple[float, ...] = field("A positive number for each length; empty: all equally likely", default=())

    def __post_init__(self) -> None:
        problems = []
        if not self.flits:
            problems.append(Problem("packet_flits", "got none: give at least one length"))
        wrong = [length for length in self.flits if not 1 <= length <= _MAX_FLITS]
        if wrong:
            problems.append(Problem("packet_flits", f"got {wrong}: lengths are from 1 to {_MAX_FLITS} flits"))
        if self.weights and len(self.weights) != len(self.flits):
            problems.append(Problem("weights", f"got {len(self.weights)} for {len(self.flits)} lengths: one for each"))
        if any(not (math.isfinite(weight) and weight > 0) for weight in self.weights):
            problems.append(Problem("weights", f"got {self.weights}: each is above 0"))
        if problems:
            raise ModelProblem("packets of the network on chip", problems)

    @classmethod
    def between(cls, least: int, most: int) -> Packets:
        """Return packets of every length from ``least`` to ``most``, equally likely (Li 2012, sec. 6.6: 5 to 10)."""
        return cls(flits=tuple(range(least, most + 1)))

    @property
    def shares(self) -> tuple[float, ...]:
        """Part of each length among the packets; they sum to 1."""
        weights = self.weights or (1.0,) * len(self.flits)
        total = math.fsum(weights)
        return tuple(weight / total for weight in weights)

    @property
    def mean_flits(self) -> float:
        """Mean length of a packet."""
        return math.fsum(share * length for share, length in zip(self.shares, self.flits, strict=True))

    def in_wider_flits(self, width: float) -> Packets:
        """Return the same packets in flits that are ``width`` times as wide; the last flit may be partly empty."""
        # A rounding error makes no further flit.
        lengths = tuple(max(1, math.ceil(length / width - 1e-9)) for length in self.flits)
        return Packets(flits=lengths, weights=self.weights)


@value
class Bernoulli:
    """A node creates a packet in each of its cycles with the same probability."""

    @property
    def on_share(self) -> float:
        """Part of the time in which a node is on: 1."""
        return 1.0

    @property
    def text(self) -> str:
        """The process in words, for the reader of a latency."""
        return "Bernoulli arrivals"

    def scenario(self) -> dict[str, Any]:
        """Return the injection of ``crates/noc/src/scenario.rs``."""
        return {"kind": "bernoulli"}


@value
class OnOff:
    """Bursts: Bernoulli at a higher rate while a node is on; on and off periods last geometrically.

    Raises ModelProblem: a length below one cycle.
    """

    on_cycles: float = field("Mean length of an on period, cycles of the nodes")
    off_cycles: float = field("Mean length of an off period, cycles of the nodes")

    def __post_init__(self) -> None:
        problems = [
            Problem(name, f"got {value}: at least 1 cycle")
            for name, value in (("on_cycles", self.on_cycles), ("off_cycles", self.off_cycles))
            if not (math.isfinite(value) and value >= 1)
        ]
        if problems:
            raise ModelProblem("injection of the network on chip", problems)

    @property
    def on_share(self) -> float:
        """Part of the time in which a node is on."""
        return self.on_cycles / (self.on_cycles + self.off_cycles)

    @property
    def text(self) -> str:
        """The process in words, for the reader of a latency."""
        return f"bursts of {self.on_cycles:g} cycles in the mean, {self.off_cycles:g} cycles apart"

    def scenario(self) -> dict[str, Any]:
        """Return the injection of ``crates/noc/src/scenario.rs``."""
        return {"kind": "on_off", "on_cycles": self.on_cycles, "off_cycles": self.off_cycles}


Injection = Bernoulli | OnOff


_MAX_PHASE_CYCLES = 10**9


@value
class SimulationPhases:
    """Phases of a simulation in cycles of each plane's own clock, so that slow and fast planes settle alike.

    Raises ModelProblem: a value out of range; all of them are named.
    """

    seed: int = field("Seed of all random streams", default=1)
    replications: int = field(
        "Independent runs with different random streams; their spread gives the intervals", default=5
    )
    warmup_cycles: int = field("Cycles before the measurement", default=10_000)
    measure_cycles: int = field("Cycles of the measurement", default=20_000)
    drain_cycles: int = field(
        "Maximum number of further cycles in which the measured packets arrive; sources continue", default=100_000
    )
    batches: int = field(
        "Parts of the measurement, whose means give the interval of latency if there is one replication", default=20
    )

    def __post_init__(self) -> None:
        ranges = (
            ("seed", self.seed, 0, 2**63 - 1),
            ("replications", self.replications, 1, 10_000),
            ("warmup_cycles", self.warmup_cycles, 0, _MAX_PHASE_CYCLES),
            ("measure_cycles", self.measure_cycles, 1, _MAX_PHASE_CYCLES),
            ("drain_cycles", self.drain_cycles, 0, _MAX_PHASE_CYCLES),
            ("batches", self.batches, 1, 10_000),
        )
        _check_ranges("simulation of the network on chip", ranges)

    def scenario(self, replication: int) -> dict[str, Any]:
        """Return the run of ``crates/noc/src/scenario.rs``."""
        return {
            "replication": replication,
            **{
                name: getattr(self, name)
                for name in ("seed", "warmup_cycles", "measure_cycles", "drain_cycles", "batches")
            },
        }
