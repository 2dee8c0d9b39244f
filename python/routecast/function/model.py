"""A network function as data: the elementary operations that it does for the vast majority of packets.

Baldi & Sapio 2018, sec. 2: operations that fewer than 1 % of the packets need are left out. Each direction of a
function (a BNG has two) is a sequence of steps; values of their parameters are formulas over ``frame`` (bytes, FCS
included), ``payload`` (``frame − 18``) and the function's tables (``fib.entries``, written ``fib_entries``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from routecast.hardware.formula import Formula

__all__ = ["Direction", "NetworkFunction", "Quantity", "Stated", "Step", "TableSize"]

Quantity = Literal["cycles", "dram_accesses", "core", "memory", "machine"]
"""What a source states: cost of a packet, or the rate that cores, memory or the machine allow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSize:
    """A table of a function: at most ``entries`` of ``entry_bytes`` bytes.

    ``held_bytes`` is the entry as the function's real twin holds it, in whole words, where that is more.
    """

    name: str
    entries: int
    entry_bytes: int
    held_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One elementary operation with its parameters; ``times`` it is done per packet (a fraction: for some packets).

    ``table`` names the table that it reads, so that a change of the table's size reaches it. ``only``: ``"real"`` is
    what the real twin must do besides (is this the right protocol at all?), which a model in the manner of Baldi &
    Sapio 2018 leaves out; ``"model"`` is what that model has and the real twin does otherwise; "" is in both.
    """

    operation: str
    parameters: Mapping[str, Formula]
    table: str = ""
    times: float = 1.0
    why: str = ""
    only: Literal["", "model", "real"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    """What is done to packets of one direction; ``share`` of the traffic goes there."""

    name: str
    steps: tuple[Step, ...]
    smallest_frame_bytes: int = 64
    frame_growth_bytes: int = 0
    share: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """What a source states of a function on the host ``on``, in its own words.

    ``value`` has the unit ``unit``: cycles, accesses, Mpps, or Gbit/s on the wire. It holds for frames of
    ``frame_bytes`` in one direction ("": all together), for ``cores`` cores and a share ``remote_ratio`` of frames in
    the other socket's cache. ``measured`` tells a measurement from the source's own estimate. ``why`` says why ours
    differs. ``unknown`` says why there is no estimate of ours; "" where there is one.
    """

    quantity: Quantity
    value: float
    unit: str
    on: str
    section: str
    quote: str
    direction: str = ""
    frame_bytes: int = 64
    cores: int = 1
    remote_ratio: float = 0.0
    measured: bool = False
    why: str = ""
    unknown: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkFunction:
    """A network function: tables and directions.

    ``runs_as`` names its real twin in ``crates/probe``, if any. ``flows_of`` names the table whose entries are the
    flows where the traffic does not say how many there are; "": each table is asked for all its entries alike.
    ``chosen_in_sight`` says what was chosen with a stated value known: such a function describes that value.
    """

    name: str
    title: str
    directions: tuple[Direction, ...]
    tables: tuple[TableSize, ...] = ()
    runs_as: str = ""
    flows_of: str = ""
    source: str = ""
    stated: tuple[Stated, ...] = ()
    chosen_in_sight: str = ""

    @property
    def label(self) -> str:
        """Title for people, or the name where there is none."""
        return self.title or self.name
