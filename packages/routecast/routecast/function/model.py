"""The model of a network function: the elementary operations that most packets need.

Operations that fewer than 1 % of the packets need are omitted (Baldi & Sapio 2018, sec. 2). Each direction of a
function (a BNG has two) is a sequence of steps. The parameters of steps are formulas over ``frame`` (bytes, FCS
included), ``payload`` (``frame − 18``) and the tables of the function (the number of entries of ``fib`` is
``fib_entries``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from routecast.errors import QuantityProblem
from routecast.hardware.model import FormulaText
from routecast.quantity import parse_frame_bytes
from routecast.quantity.fields import Count, Number, Parsed, Percentage
from routecast.quantity.schema import field, value

__all__ = ["Direction", "NetworkFunction", "Quantity", "Stated", "Step", "TableSize"]

Quantity = Literal["cycles", "dram_accesses", "core", "memory", "machine"]
"""The quantity of a statement: a cost of a packet, or the rate that cores, memory or the machine allow."""

_BYTES = re.compile(r"([+-]?\d{1,9})\s*(?:B|bytes?)")


def _signed_bytes(text: str) -> int:
    match = _BYTES.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise QuantityProblem(str(text), f'got {text!r}: give whole bytes, such as "12 B"')
    return int(match[1])


def _entry_bytes(text: str) -> int:
    size = _signed_bytes(text)
    if size < 1:
        raise QuantityProblem(text, f'got "{text}": an entry has at least 1 B')
    return size


FrameBytes = Annotated[int, Parsed(parse_frame_bytes, "B", "64 B")]
SignedBytes = Annotated[int, Parsed(_signed_bytes, "B, may be negative", "28 B", "-28 B")]
EntryBytes = Annotated[int, Parsed(_entry_bytes, "B, >= 1", "12 B")]


@value
class TableSize:
    """A lookup table of the function."""

    name: str = field("Name; formulas use NAME_entries and NAME_entry_bytes")
    entries: Count = field("Maximum number of entries", ge=1)
    entry_bytes: EntryBytes = field("Size of an entry, key included")
    held_bytes: EntryBytes | None = field(
        "Size of an entry in the real function, in whole words, if that is larger", default=None
    )


@value
class Step:
    """One elementary operation."""

    operation: str = field("Name of an elementary operation")
    parameters: Mapping[str, FormulaText] = field(
        "Parameters of the operation: numbers, or formulas over frame, payload (frame - 18), NAME_entries and "
        "NAME_entry_bytes of the tables",
        key="with",
        default_factory=dict,
    )
    table: str = field("Name of the table that the operation uses", default="")
    times: Number = field("Executions per packet; 0.1 is one packet in ten", default=1.0, gt=0.0)
    why: str = field("Purpose of the step", default="")
    only: Literal["", "model", "real"] = field(
        "real: only the function that runs has this step, not the models of Baldi & Sapio 2018; "
        "model: only those models have it; not given: both have it",
        default="",
    )


@value
class Direction:
    """The operations on packets of one direction."""

    name: str = field("forward, or the name of one of several directions: access, core")
    share: Number = field("Share of the packets, relative to the other directions", default=1.0, gt=0.0)
    smallest_frame_bytes: FrameBytes = field("Smallest frame that holds all headers, FCS included", default=64)
    frame_growth_bytes: SignedBytes = field(
        "Bytes that the function adds to a frame; negative if it removes bytes", default=0, key="growth"
    )
    steps: tuple[Step, ...] = field("The elementary operations, in order", default=(), key="step")


@value
class Stated:
    """A statement of a source about the function on a host."""

    quantity: Quantity = field(
        "cycles or dram_accesses of a packet; core, memory: rate that the cores or the memory allow; "
        "machine: rate that the whole machine forwards"
    )
    value: Number = field("The number, as the source writes it", gt=0.0)
    unit: Literal["cycles", "accesses", "Mpps", "Gbit/s"] = field(
        "Unit of the number; Gbit/s are on the wire, gap and preamble included"
    )
    on: str = field("Name of the host of the statement")
    section: str = field('Section of the source: "sec. 3.1.1"')
    quote: str = field("Words of the source that contain the number")
    direction: str = field("Direction of the function; not given: all directions together", default="")
    frame_bytes: FrameBytes = field("Size of the frames, FCS included", default=64)
    cores: Count = field("Cores that process frames", default=1, ge=1)
    remote_ratio: Annotated[float, Percentage()] = field(
        "Share of packets in the other socket's L3", default=0.0, ge=0.0, le=1.0
    )
    measured: bool = field("Whether the source measured the value; otherwise the source estimated it", default=False)
    why: str = field("Why the estimate here differs", default="")
    unknown: str = field("Why there is no estimate here; not given if there is an estimate", default="")


@value
class NetworkFunction:
    """A network function: tables, and the elementary operations of each direction."""

    name: str = field("Short name; letters, digits and _")
    title: str = field("Description in one line", default="")
    source: str = field("Source of the steps", default="")
    flows_of: str = field(
        "Table whose entries are the flows if the traffic gives no number of flows; "
        "not given: frames look up all entries of each table equally often",
        default="",
    )
    runs_as: str = field("Name of the real function that does the same, if it exists", default="")
    chosen_in_sight: str = field(
        "Parameters that were chosen with knowledge of a stated value. Such a function describes that value, so it is "
        "shown with this remark and excluded from predictions for other hosts",
        default="",
    )
    tables: tuple[TableSize, ...] = field("Tables", default=(), key="table")
    directions: tuple[Direction, ...] = field("Directions; a router has one", default=(), key="direction")
    stated: tuple[Stated, ...] = field(
        "Statements of the source; compared with the estimate, never part of it", default=()
    )

    @property
    def label(self) -> str:
        """The title, or the name if there is no title."""
        return self.title or self.name
