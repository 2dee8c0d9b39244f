"""The elementary operations of network functions (Baldi & Sapio 2018, Table 1).

This module defines the meaning and the parameters of the operations; the hardware file of a host gives their costs
(:class:`routecast.hardware.model.OperationCost`). A new operation needs an entry in :data:`OPERATIONS`.

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
        # Each access depends on the previous access, as in a tree.
        accesses=(Access(of="table", lines=Formula("lines"), pattern="dependent"),),
        source="assumption: one instruction per cycle, as in a single-issue engine; superscalar cores execute more",
    )
}
"""Costs that are assumed for hosts without a measured cost, by operation."""


def cost_on(hardware: Hardware, operation: str) -> OperationCost | None:
    """Return the cost of an operation on a host, from its file or else the assumed cost; None if unknown."""
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


_MAX_FRAME_BYTES = 65_535.0
_MAX_ENTRIES = 2.0**40


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of an operation, with ``least <= value <= most`` in ``unit`` ("" for a number).

    ``default`` is the value if a function gives none; with None the parameter is required.
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
    row: int | None = field("Row in Table 1 of Baldi & Sapio 2018; None: not in the table", default=None)
    source: str = field("Source of the definition", default="Baldi & Sapio 2018, sec. 2.1")

    @property
    def required(self) -> tuple[str, ...]:
        """Parameters that a function must give."""
        return tuple(name for name, parameter in self.parameters.items() if parameter.default is None)


def _bytes(name: str, meaning: str, *, least: float = 0.0, most: float = _MAX_FRAME_BYTES) -> Parameter:
    return Parameter(name=name, meaning=meaning, unit="B", least=least, most=most)


_HEADER = _bytes("hdr", "bytes for the fastest cache: the headers that are processed")
_DATA = _bytes("data", "other bytes of the frame, which may stay in a slower cache or in memory")
_ENTRIES = Parameter(name="max", meaning="maximum number of entries of the table", least=1.0, most=_MAX_ENTRIES)
_ROUTES = Parameter(
    name="max", meaning="maximum number of routes in the table", least=1.0, most=_MAX_ENTRIES, default=16_777_216.0
)
_ENTRY = _bytes("es", "size of an entry", least=1.0, most=1_048_576.0)
_HASHED = _bytes("HE", "size of an entry of the hash table, key included", least=1.0, most=1_048_576.0)
_COMPONENTS = Parameter(name="N", meaning="components of the key, each in one register", least=1.0, most=64.0)
_COLLISION = Parameter(
    name="p", meaning="probability that the first probed slot has another key", most=1.0, default=0.0
)
_BURST = Parameter(name="burst", meaning="frames that cross the ring together", least=1.0, most=4096.0)


def _field_bytes(verb: str) -> Parameter:
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
    _operation("parse", "load a field of the frame into registers", _field_bytes("loaded"), row=2),
    _operation("deparse", "store fields back into the frame", _field_bytes("stored"), row=2),
    _operation("increase", "increase a field that was parsed", _field_bytes("increased"), row=3),
    _operation("decrease", "decrease a field that was parsed", _field_bytes("decreased"), row=3),
    _operation("sum", "add two operands", _field_bytes("added"), row=4),
    _operation("checksum", "compute the IP checksum", _field_bytes("summed up"), row=5),
    _operation(
        "inc_checksum",
        "update an IP checksum for bytes that changed",
        _field_bytes("changed"),
        row=5,
        source="Baldi & Sapio 2018, sec. 2.1; RFC 1624",
    ),
    _operation("array_access", "read an entry of an array by its index", _ENTRY, _ENTRIES, row=6),
    _operation("ht_lookup", "look up a key in a hash table", _COMPONENTS, _HASHED, _ENTRIES, _COLLISION, row=7),
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
        "insert an entry into a hash table, or renew the time stamp of an existing entry",
        _COMPONENTS,
        _HASHED,
        _ENTRIES,
        _COLLISION,
        row=9,
    ),
    _operation(
        "check",
        "compare a parsed field with its valid value, and mark frames with another value",
        _field_bytes("compared"),
        source="routecast; RFC 1812, sec. 5.2.2",
    ),
    _operation(
        "assemble",
        "combine parsed fields into a header before it is stored",
        _field_bytes("combined"),
        source="routecast",
    ),
    _operation(
        "crc_hash", "hash bytes of a key with CRC-32C", _field_bytes("hashed"), source="RFC 3720, app. B.4 (CRC-32C)"
    ),
    _operation(
        "toeplitz_hash",
        "compute the hash of receive side scaling over bytes of a key",
        _field_bytes("hashed"),
        source="Microsoft NDIS, RSS hashing functions",
    ),
    _operation(
        "aes_gcm",
        "encrypt or decrypt bytes with AES-128-GCM, and create or check their tag",
        _field_bytes("encrypted"),
        source="NIST SP 800-38D; RFC 4106",
    ),
    _operation(
        "acl_lookup",
        "find the first matching rule by tuple-space search, with one masked hash lookup per tuple",
        Parameter(name="rules", meaning="total number of rules", least=1.0, most=_MAX_ENTRIES),
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
        "write a header in front of the frame",
        _field_bytes("written in front"),
        source="routecast; DPDK rte_pktmbuf_prepend and a copy",
    ),
    _operation(
        "strip",
        "remove a header from the front of the frame",
        _field_bytes("removed"),
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
        "execute a counted number of instructions that no other operation describes",
        Parameter(name="n", meaning="instructions, as `routecast workload` counts them", most=1e9),
        Parameter(name="lines", meaning="lines of the table that are touched in sequence", most=1e6, default=0.0),
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
            message = f"is no elementary operation, so nothing uses it; {did_you_mean(name, OPERATIONS)}"
            problems.append(Problem(f"operation.{name}", message))
            continue
        parameters = OPERATIONS[name].parameters
        for place, mapping in ((name, cost), (f"{name}.remote", cost.remote)):
            if mapping is None:
                continue
            formulas = [mapping.cycles, *(access.lines for access in mapping.accesses)]
            formulas += [access.table_lines for access in mapping.accesses if access.table_lines is not None]
            for unknown in sorted(frozenset().union(*(formula.names for formula in formulas)) - parameters.keys()):
                message = f'names "{unknown}", which is no parameter of {name}; {did_you_mean(unknown, parameters)}'
                problems.append(Problem(f"operation.{place}", message))
    return problems
