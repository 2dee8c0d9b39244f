"""What the tables of a benchmark share: columns, reasons beneath, columns left out where nothing is known."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from routecast.report.benchmark.texts import frames_per_second
from routecast.report.tables import Cell, Column, Table

__all__ = ["FRAME", "STATE", "STREAM", "Row", "known", "rate_column", "reasons", "same", "sentences"]


class Row(Protocol):
    """What every row of a procedure has."""

    @property
    def stream(self) -> str:
        """Name of the stream."""
        ...

    @property
    def frame_bytes(self) -> int:
        """Frame size, FCS included."""
        ...

    @property
    def reason(self) -> str:
        """Why there is no figure; empty where there is one."""
        ...


STREAM = Column(title="Stream", align="left")
FRAME = Column(title="Frame", unit="B", form="d")
STATE = Column(title="", align="left")


def rate_column(title: str, group: str = "") -> Column:
    """Return a column of rates in frames/s, written in full as RFC 2544 wants them."""
    return Column(title=title, unit="frames/s", form=frames_per_second, group=group)


def reasons(rows: Sequence[Row]) -> tuple[str, ...]:
    """Say for each row without a figure why there is none."""
    several = len({row.stream for row in rows}) > 1
    named = (
        f"{row.frame_bytes} B{f', {row.stream}' if several else ''}: {row.reason}."
        for row in rows
        if row.reason
    )
    return tuple(dict.fromkeys(named))


def sentences(*parts: str) -> str:
    """Join what there is of some sentences."""
    return " ".join(part for part in parts if part)


def known(table: Table) -> Table:
    """Leave out the columns in which nothing is known."""
    kept = [
        number for number in range(len(table.columns)) if any(_is_known(row[number]) for row in table.rows)
    ]
    if not table.rows or len(kept) == len(table.columns):
        return table
    return replace(
        table,
        columns=tuple(table.columns[number] for number in kept),
        rows=tuple(tuple(row[number] for number in kept) for row in table.rows),
    )


def _is_known(cell: Cell) -> bool:
    return cell not in (None, "") and not (isinstance(cell, float) and math.isnan(cell))


def same(values: Iterable[float]) -> float | None:
    """Return the value that all have; None if they differ."""
    found = set(values)
    return found.pop() if len(found) == 1 else None
