"""``[[arithmetic]]``: calculations of a source, done again with all of their terms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from routecast.errors import Problem, RoutecastError
from routecast.hardware.formula import Formula
from routecast.quantity.fields import Number
from routecast.show.page import Section
from routecast.show.tables import Column, Table
from routecast.study.document import Quoted, Ratio, problems_at

__all__ = [
    "Arithmetic",
    "RepeatedCalculation",
    "arithmetic_problems",
    "arithmetic_section",
    "arithmetic_table",
    "calculated",
]

Title = Annotated[str, Field(min_length=1)]


class Arithmetic(Quoted):
    """``[[arithmetic]]``: a calculation of the source, done again."""

    says: Title = Field(description="Statement of the source.")
    stated: Number = Field(description="The number that it states.")
    formula: Title = Field(description='The calculation: "10e9 / (8 * (64 + 20))".')
    unit: str = Field(default="", description="Unit of both.")
    within: Ratio = Field(default=0.02, description="Relative deviation that counts as rounding.")
    why: str = Field(default="", description="Terms of the formula, and the reason of a difference.")


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedCalculation:
    """A calculation of the source, its value when done again, and whether the two agree."""

    arithmetic: Arithmetic
    value: float
    agrees: bool

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {
            "says": self.arithmetic.says,
            "where": self.arithmetic.place,
            "stated": self.arithmetic.stated,
            "recomputed": self.value,
            "unit": self.arithmetic.unit,
            "agrees": self.agrees,
            "why": self.arithmetic.why,
        }


def arithmetic_problems(calculations: Sequence[Arithmetic]) -> Iterator[Problem]:
    """Yield the problems of the quotations and formulas of calculations."""
    for number, calculation in enumerate(calculations):
        yield from calculation.quotation_problems(f"arithmetic[{number}]")
        try:
            Formula(calculation.formula, frozenset()).evaluate({})
        except RoutecastError as problem:
            yield from problems_at(f"arithmetic[{number}].formula", problem)


def calculated(calculations: Sequence[Arithmetic]) -> tuple[RepeatedCalculation, ...]:
    """Do the calculations of a source again."""
    values = (Formula(calculation.formula, frozenset()).evaluate({}) for calculation in calculations)
    return tuple(
        RepeatedCalculation(arithmetic=stated, value=value, agrees=abs(stated.stated - value) <= stated.within * value)
        for stated, value in zip(calculations, values, strict=True)
    )


def arithmetic_table(rows: Sequence[RepeatedCalculation]) -> Table:
    """Return the calculations done again, beside the numbers that the source states."""

    def number(value: float) -> str:
        return f"{value:,.0f}" if abs(value) >= 1000.0 else f"{value:.4g}"

    return Table.of(
        rows,
        Column.text("Says", lambda row: row.arithmetic.says, wrap=True),
        Column("Stated", "", number, lambda row: row.arithmetic.stated),
        Column("Recomputed", "", number, lambda row: row.value),
        Column.text("Unit", lambda row: row.arithmetic.unit),
        Column.text("Agrees", lambda row: "yes" if row.agrees else "NO"),
        Column.text("Why", lambda row: row.arithmetic.why, wrap=True, wide=True),
        Column.text("Formula", lambda row: row.arithmetic.formula, wide=True),
        Column.text("Where", lambda row: row.arithmetic.place, wrap=True, wide=True),
        name="arithmetic",
        title="Calculations, done again",
        caption="The number that the source states, and its calculation with all terms.",
    )


def arithmetic_section(rows: Sequence[RepeatedCalculation]) -> Section:
    """Return the section of the calculations; it has no blocks without calculations."""
    return Section.of(
        "arithmetic",
        "Calculations, done again",
        "Numbers of the source that differ from their calculation, and why.",
        bool(rows) and arithmetic_table(rows),
    )
