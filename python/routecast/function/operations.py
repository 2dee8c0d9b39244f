"""Elementary operations: the vocabulary in which network functions are written (Baldi & Sapio 2018, Table 1).

An operation has a meaning and parameters here, and a cost on each host in the host's hardware file
(:class:`routecast.hardware.model.OperationCost`). Adding one is adding an entry to :data:`OPERATIONS`.

Examples
--------
>>> OPERATIONS["ht_lookup"].parameters["HE"].unit
'B'
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from routecast.errors import Problem
from routecast.hardware.formula import Formula
from routecast.hardware.model import Access, Hardware, OperationCost
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import field, value

__all__ = ["ASSUMED", "OPERATIONS", "Parameter", "assumption_notes", "cost_on", "mapping_problems"]


ASSUMED = {
    "instructions": OperationCost(
        operation="instructions",
        cycles=Formula("n"),
        # The next place to look at follows from the last one, as in a tree.
        accesses=(Access(of="table", lines=Formula("lines"), pattern="dependent"),),
        source="assumption: one instruction per cycle, the most of a single-issue engine; superscalar cores do more",
    )
}
"""By operation."""


def cost_on(hardware: Hardware, operation: str) -> OperationCost | None:
    """Return the cost of an operation on a host, from its file or else assumed; None if unknown."""
    return hardware.operations.get(operation) or ASSUMED.get(operation)


def assumption_notes(hardware: Hardware, operations: set[str]) -> list[str]:
    """Return notes on the assumed costs.

    Examples
    --------
    >>> from routecast.hardware.catalogue import read_hardware
    >>> assumption_notes(read_hardware("xeon-e5-2690v2"), {"instructions", "parse"})
    ['xeon-e5-2690v2 gives no cost of instructions: one cycle for each is assumed']
    """
    assumed = sorted(name for name in operations if name not in hardware.operations and name in ASSUMED)
    return [f"{hardware.name} gives no cost of {name}: one cycle for each is assumed" for name in assumed]


_LONGEST_FRAME_BYTES = 65_535.0
_MOST_ENTRIES = 2.0**40


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of an operation: ``least <= value <= most`` in ``unit`` ("" for a number).

    A function that leaves it out gets ``default``; None: it is required.
    """

    name: str
    meaning: str
    unit: str = ""
    least: float = 0.0
    most: float = math.inf
    default: float | None = None


@value
class Operation:
    """One elementary operation."""

    name: str
    meaning: str
    parameters: Mapping[str, Parameter] = field("Parameters in the order of the paper")
    row: int | None = field("Number in Table 1 of Baldi & Sapio 2018; None: not there", default=None)
    source: str = field("Source of the definition", default="Baldi & Sapio 2018, sec. 2.1")

    @property
    def required(self) -> tuple[str, ...]:
        """Parameters that a function must give."""
        return tuple(name for name, parameter in self.parameters.items() if parameter.default is None)


def _bytes(name: str, meaning: str, *, least: float = 0.0, most: float = _LONGEST_FRAME_BYTES) -> Parameter:
    return Parameter(name=name, meaning=meaning, unit="B", least=least, most=most)


_HEADER = _bytes("hdr", "bytes that belong into the fastest cache: the headers that are worked on")
_DATA = _bytes("data", "the other bytes of the frame, which may stay in a slower cache or in memory")
_ENTRIES = Parameter(name="max", meaning="entries of the table, at most", least=1.0, most=_MOST_ENTRIES)
_ROUTES = Parameter(
    name="max", meaning="routes in the table, at most", least=1.0, most=_MOST_ENTRIES, default=16_777_216.0
)
_ENTRY = _bytes("es", "size of an entry", least=1.0, most=1_048_576.0)
_HASHED = _bytes("HE", "size of an entry of the hash table, key included", least=1.0, most=1_048_576.0)
_COMPONENTS = Parameter(name="N", meaning="components of the key, each of one register", least=1.0, most=64.0)
_COLLISION = Parameter(
    name="p", meaning="probability that the first place looked at holds another key", most=1.0, default=0.0
)
_BURST = Parameter(name="burst", meaning="frames that cross the ring together", least=1.0, most=4096.0)


def _field(verb: str) -> Parameter:
    return _bytes("b", f"bytes that are {verb}", least=1.0)


def _operation(name: str, meaning: str, *parameters: Parameter, row: int | None = None, source: str = "") -> Operation:
    return Operation(
        name=name,
        meaning=meaning,
        parameters=MappingProxyType({parameter.name: parameter for parameter in parameters}),
        row=row,
        source=source or "Baldi & Sapio 2018, sec. 2.1",
    )


_ALL = (
    _operation("io_mem", "take a frame from the network card's buffer into (cache) memory", _HEADER, _DATA, row=1),
    _operation("mem_io", "hand a frame from (cache) memory to the network card's buffer", _HEADER, _DATA, row=1),
    _operation("parse", "load a field of the frame into registers", _field("loaded"), row=2),
    _operation("deparse", "store fields back into the frame", _field("stored"), row=2),
    _operation("increase", "increase a field that was parsed", _field("increased"), row=3),
    _operation("decrease", "decrease a field that was parsed", _field("decreased"), row=3),
    _operation("sum", "add two operands", _field("added"), row=4),
    _operation("checksum", "compute the IP checksum", _field("summed up"), row=5),
    _operation(
        "inc_checksum",
        "update an IP checksum for bytes that changed",
        _field("changed"),
        row=5,
        source="Baldi & Sapio 2018, sec. 2.1; RFC 1624",
    ),
    _operation("array_access", "read an entry of an array by its index", _ENTRY, _ENTRIES, row=6),
    _operation("ht_lookup", "look a key up in a hash table", _COMPONENTS, _HASHED, _ENTRIES, _COLLISION, row=7),
    _operation(
        "lpm_lookup",
        "find the entry with the longest matching prefix (DIR-24-8)",
        Parameter(name="b", meaning="bytes of the prefix that matches, on average", unit="B", least=1.0, most=16.0),
        _ENTRY,
        _ROUTES,
        row=8,
        source="Baldi & Sapio 2018, sec. 2.1; Gupta, Lin & McKeown 1998",
    ),
    _operation(
        "ct_insertion",
        "insert an entry into a hash table, or renew the time stamp of the one that is there",
        _COMPONENTS,
        _HASHED,
        _ENTRIES,
        _COLLISION,
        row=9,
    ),
    _operation(
        "check",
        "compare a parsed field with what it must be, and mark the frames where it is not",
        _field("compared"),
        source="routecast; RFC 1812, sec. 5.2.2",
    ),
    _operation(
        "assemble",
        "put parsed fields together into a header, before it is stored",
        _field("put together"),
        source="routecast",
    ),
    _operation("crc_hash", "hash bytes of a key with CRC-32C", _field("hashed"), source="RFC 3720, app. B.4 (CRC-32C)"),
    _operation(
        "toeplitz_hash",
        "hash bytes of a key as receive side scaling does",
        _field("hashed"),
        source="Microsoft NDIS, RSS hashing functions",
    ),
    _operation(
        "aes_gcm",
        "encrypt or decrypt bytes with AES-128-GCM and make or check their tag",
        _field("encrypted"),
        source="NIST SP 800-38D; RFC 4106",
    ),
    _operation(
        "acl_lookup",
        "find the first rule that matches: tuple-space search, one masked hash lookup per tuple",
        Parameter(name="rules", meaning="rules in all", least=1.0, most=_MOST_ENTRIES),
        Parameter(name="tuples", meaning="different combinations of prefix lengths", least=1.0, most=4096.0),
        _HASHED,
        source="Srinivasan, Suri & Varghese 1999",
    ),
    _operation(
        "counter_update",
        "read, change and write back an entry of an array",
        _ENTRY,
        _ENTRIES,
        source="routecast; per-flow counters and token buckets, RFC 2697",
    ),
    _operation(
        "prepend",
        "write a header ahead of the frame",
        _field("written ahead"),
        source="routecast; DPDK rte_pktmbuf_prepend and a copy",
    ),
    _operation(
        "strip",
        "take a header off the front of the frame",
        _field("taken off"),
        source="routecast; DPDK rte_pktmbuf_adj",
    ),
    _operation(
        "enqueue", "put a frame into a ring to another core", _BURST, source="routecast; DPDK rte_ring, bulk mode"
    ),
    _operation(
        "dequeue", "take a frame from a ring of another core", _BURST, source="routecast; DPDK rte_ring, bulk mode"
    ),
    _operation(
        "instructions",
        "execute instructions that were counted, where no other operation says what is done",
        Parameter(name="n", meaning="instructions, as `routecast workload` counts them", most=1e9),
        Parameter(
            name="lines", meaning="lines of the table that are touched one after the other", most=1e6, default=0.0
        ),
        source="routecast; Wolf & Franklin 2000, Ramaswamy & Wolf 2003",
    ),
)

OPERATIONS: Mapping[str, Operation] = MappingProxyType({operation.name: operation for operation in _ALL})
"""Every elementary operation by its name."""


def mapping_problems(hardware: Hardware) -> list[Problem]:
    """Return the faults in the costs of operations, with places as in the hardware file."""
    problems = []
    for name, cost in hardware.operations.items():
        if name not in OPERATIONS:
            what = f"is no elementary operation, so nothing uses it; {did_you_mean(name, OPERATIONS)}"
            problems.append(Problem(f"operation.{name}", what))
            continue
        known = OPERATIONS[name].parameters
        for place, side in ((name, cost), (f"{name}.remote", cost.remote)):
            if side is None:
                continue
            formulas = [side.cycles, *(access.lines for access in side.accesses)]
            formulas += [access.table_lines for access in side.accesses if access.table_lines is not None]
            for other in sorted(frozenset().union(*(formula.names for formula in formulas)) - known.keys()):
                what = f'names "{other}", which {name} has not; {did_you_mean(other, known)}'
                problems.append(Problem(f"operation.{place}", what))
    return problems
