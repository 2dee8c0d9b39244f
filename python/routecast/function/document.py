"""What stands in a ``*.function.toml``: tables and directions with their steps, as pydantic models."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field

from routecast.errors import QuantityProblem
from routecast.hardware.fields import FormulaText
from routecast.quantity import parse_frame_bytes
from routecast.quantity.fields import Count, FileModel, Number, parsed_by, text_schema

__all__ = ["DirectionTable", "FunctionFile", "StepTable", "TableTable"]

_BYTES = re.compile(r"([+-]?\d{1,9})\s*(?:B|bytes?)")


def _whole_bytes(text: str) -> int:
    match = _BYTES.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise QuantityProblem(str(text), f'got {text!r}: whole bytes are wanted, such as "12 B"')
    return int(match[1])


def _entry_bytes(text: str) -> int:
    size = _whole_bytes(text)
    if size < 1:
        raise QuantityProblem(text, f'got "{text}": an entry has at least 1 B')
    return size


FrameBytes = Annotated[int, parsed_by(parse_frame_bytes), text_schema("B", "64 B")]
SignedBytes = Annotated[int, parsed_by(_whole_bytes), text_schema("B, may be negative", "28 B", "-28 B")]
EntryBytes = Annotated[int, parsed_by(_entry_bytes), text_schema("B, >= 1", "12 B")]


class TableTable(FileModel):
    """A table that the function looks things up in."""

    name: str = Field(description="Formulas know it as NAME_entries and NAME_entry_bytes.")
    entries: Count = Field(ge=1, description="Entries, at most.")
    entry: EntryBytes = Field(description="Size of an entry, key included.")
    held: EntryBytes | None = Field(
        default=None, description="Size of an entry as the real function holds it, where that is more."
    )


class StepTable(FileModel):
    """One elementary operation."""

    operation: str = Field(description="Name of an elementary operation.")
    with_: dict[str, FormulaText] = Field(
        default_factory=dict,
        alias="with",
        description="Parameters of the operation: numbers, or formulas over frame, payload (frame - 18), NAME_entries "
        "and NAME_entry_bytes of the tables.",
    )
    table: str = Field(default="", description="Name of the table that it works on.")
    times: Number = Field(
        default=1.0, gt=0.0, description="How often it is done per packet; 0.1 is for one packet in ten."
    )
    why: str = Field(default="", description="What the step is for.")
    only: Literal["", "model", "real"] = Field(
        default="",
        description="real: done by the function that runs, left out by models in the manner of Baldi & Sapio 2018; "
        "model: in those models, done otherwise by the function that runs; not given: in both.",
    )


class DirectionTable(FileModel):
    """What is done to packets of one direction."""

    name: str = Field(description="forward, or what tells the directions apart: access, core.")
    share: Number = Field(
        default=1.0, gt=0.0, description="Share of the packets, relative to the other directions."
    )
    smallest_frame: FrameBytes = Field(
        default=64, description="Smallest frame that holds all headers, FCS included."
    )
    growth: SignedBytes = Field(default=0, description="Bytes that a frame is longer when it leaves.")
    step: list[StepTable] = Field(default_factory=list, description="The elementary operations, in order.")


class FunctionFile(FileModel):
    """A network function: what is done to the vast majority of packets."""

    name: str = Field(description="Short name; letters, digits and _.")
    title: str = Field(default="", description="What it is, in a line.")
    source: str = Field(default="", description="Where the steps are from.")
    flows_of: str = Field(
        default="",
        description="Table whose entries are the flows, where the traffic does not say how many there are; "
        "not given: every table is asked for all its entries alike.",
    )
    runs_as: str = Field(
        default="", description="Name of the real function that does the same, if there is one."
    )
    table: list[TableTable] = Field(default_factory=list, description="Tables.")
    direction: list[DirectionTable] = Field(default_factory=list, description="Directions; a router has one.")
