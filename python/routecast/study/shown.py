"""What a terminal shows of a study that has run."""

from __future__ import annotations

from dataclasses import dataclass

from routecast.report.tables import Table

__all__ = ["Shown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A study's answer on a terminal: a line, tables, a line; notes go where progress goes."""

    tables: tuple[Table, ...]
    lead: str = ""
    closing: str = ""
    notes: tuple[str, ...] = ()
