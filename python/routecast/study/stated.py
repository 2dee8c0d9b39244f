"""What a source says in words, beside what is found: for studies whose source states more than numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from routecast.report.tables import Column, Table

__all__ = ["Statement", "statements_table"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A statement of the thesis and what is found here."""

    says: str
    where: str
    thesis: str
    here: str


def statements_table(statements: Sequence[Statement], *, caption: str) -> Table:
    """Return what the thesis says beside what is found; ``caption`` names its chapters."""
    return Table(
        name="statements",
        title="What the thesis says, and what is found here",
        caption=caption,
        columns=(
            Column(title="Statement", align="left", wrap=True),
            Column(title="Where", align="left", wide=True),
            Column(title="Thesis", align="left", wrap=True),
            Column(title="Here", align="left", wrap=True),
        ),
        rows=tuple((one.says, one.where, one.thesis, one.here) for one in statements),
    )
