"""Results that every kind of study has: criteria, statements and provenance, with their tables and pages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any, Generic, Self, TypeVar

from routecast.evaluate.plain import fields_of, plain
from routecast.quantity import format_duration
from routecast.quantity.comparison import ComparedRow
from routecast.show.figures import Points
from routecast.show.page import Page, Section
from routecast.show.tables import Column, Table
from routecast.study.document import StudyDocument
from routecast.study.prior_knowledge import NOT_SAID, KnownGroup

__all__ = [
    "NOT_MEASURED",
    "READ_OFF",
    "Criterion",
    "Measured",
    "Provenance",
    "RepeatedRow",
    "Statement",
    "StudyResult",
    "TerminalSummary",
    "criteria_of",
    "format_percent",
    "measured_points",
    "prior_knowledge_table",
    "statements_section",
    "statements_table",
]

Document = TypeVar("Document", bound=StudyDocument)
Conditions_co = TypeVar("Conditions_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The values of a repeated measurement, with median, extremes and relative standard deviation."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median; NaN where no trial was valid."""
        return median(self.values) if self.values else math.nan

    @property
    def least(self) -> float:
        """The least value."""
        return min(self.values, default=math.nan)

    @property
    def most(self) -> float:
        """The largest value."""
        return max(self.values, default=math.nan)

    @property
    def spread_ratio(self) -> float:
        """Standard deviation relative to the mean; NaN for fewer than two values."""
        if len(self.values) < 2 or fmean(self.values) <= 0.0:
            return math.nan
        return stdev(self.values) / fmean(self.values)


NOT_MEASURED = Measured(values=())


def measured_points(
    rows: Iterable[Any], x: Callable[[Any], float], scale: float, *, of: str = "repeats", **style: Any
) -> Points:
    """Return the medians of repeated measurements, attribute ``of`` of each row, with bars to the extremes."""
    measured = attrgetter(of)
    ends = ("median", "least", "most")
    y, low, high = (lambda row, end=end: scale * getattr(measured(row), end) for end in ends)
    return Points.of(rows, x, y, low=low, high=high, **style)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedRow(ComparedRow[Conditions_co]):
    """A row whose measured value is the median of repeated measurements."""

    repeats: Measured = NOT_MEASURED

    def measured_as(self, repeats: Measured) -> Self:
        """Return the row with its repeated measurements."""
        return replace(self, repeats=repeats, measured=repeats.median)


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """A bound of the study on one of its errors, and the error that it reached."""

    name: str
    bound: float
    reached: float

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {**fields_of(self), "met": self.is_met}

    @property
    def is_met(self) -> bool:
        """Whether the error is within the bound; NaN is not."""
        return self.reached <= self.bound

    @property
    def verdict(self) -> str:
        """The criterion in a line."""
        mark = "met" if self.is_met else "MISSED"
        return f"{self.name} {self.reached:.3g}, allowed {self.bound:.3g}: {mark}"


READ_OFF = "Stated values are in the words of the source; values read off a figure are marked under “Where”."
"""Caption of tables of stated values."""


def criteria_of(*bounds: tuple[str, float | None, float]) -> tuple[Criterion, ...]:
    """Return the criteria of (name, bound, reached), without those whose bound is None."""
    return tuple(
        Criterion(name=name, bound=bound, reached=reached) for name, bound, reached in bounds if bound is not None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A statement of the source, and the result of the study on the same subject."""

    says: str
    where: str
    stated: str
    here: str


def statements_section(
    statements: Sequence[Statement], lead: str, *, anchor: str = "stated", of: str = "source", caption: str
) -> Section | None:
    """Return the section of a source's statements; None without statements."""
    if not statements:
        return None
    return Section.of(anchor, f"The {of} beside it", lead, statements_table(statements, caption=caption))


def statements_table(statements: Sequence[Statement], *, caption: str) -> Table:
    """Return the source's statements beside the results; ``caption`` names the source."""
    return Table.of(
        statements,
        Column.text("Statement", lambda row: row.says, wrap=True),
        Column.text("Where", lambda row: row.where, wrap=True, wide=True),
        Column.text("Stated", lambda row: row.stated, wrap=True),
        Column.text("Here", lambda row: row.here, wrap=True),
        name="statements",
        title="Statements of the source, and results here",
        caption=caption,
    )


def prior_knowledge_table(rows: Sequence[KnownGroup]) -> Table:
    """Return the role of each group of compared values in the making of the model."""
    not_said = (
        " Not said: the study file has no [[prior_knowledge]] of it."
        if any(row.role == NOT_SAID for row in rows)
        else ""
    )
    return Table.of(
        rows,
        Column.text("Compared", lambda row: row.of, wrap=True),
        Column.text("Values", lambda row: row.values, wrap=True),
        Column.text("Role", lambda row: row.role),
        Column.text("Why", lambda row: row.because, wrap=True),
        name="prior_knowledge",
        title="What the model knew",
        caption="Calibrated on: parameters were fitted to these values. Chosen in sight of: a parameter or a mechanism "
        "was chosen when they were known, so agreement is a description. Predicted: no part of the model depends on "
        f"them.{not_said}",
    )


def _prior_knowledge_section(rows: Sequence[KnownGroup]) -> Section | bool:
    return bool(rows) and Section.of(
        "prior_knowledge",
        "What the model knew",
        "How much an agreement proves depends on what the model knew.",
        prior_knowledge_table(rows),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Command, versions, seed and trials of a run; an interrupted run left ``resumed_trials`` of its ``trials``."""

    versions: Mapping[str, str]
    seed: int
    command: str
    trials: int
    resumed_trials: int
    elapsed_s: float

    def trials_row(self, invalid: int) -> tuple[str, str]:
        """Return the row of the page's foot that counts the trials and the invalid trials among them."""
        return "Trials", f"{self.trials}, {invalid} invalid, {self.resumed_trials} kept from an interrupted run"

    def rows(self, *between: tuple[str, str]) -> tuple[tuple[str, str], ...]:
        """Return the rows of the page's foot; ``between`` are rows that the kind of study adds."""
        return (
            ("Command", f"`{self.command}`"),
            *between,
            ("Took", format_duration(float(f"{self.elapsed_s:.2g}"))),
            ("Versions", ", ".join(f"{name} {number}" for name, number in self.versions.items())),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalSummary:
    """A study's answer on a terminal: a lead, tables and a closing line; notes are printed with the progress."""

    tables: tuple[Table, ...]
    lead: str = ""
    closing: str = ""
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, *tables: Table | bool | None, lead: str = "", closing: str = "", notes: tuple[str, ...] = ()
    ) -> TerminalSummary:
        """Return a summary of the tables that have rows."""
        filled = tuple(table for table in tables if isinstance(table, Table) and table.rows)
        return cls(tables=filled, lead=lead, closing=closing, notes=notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyResult(Generic[Document]):
    """The results of a study; a kind adds its fields, and returns from ``_findings`` what its summary has of them."""

    study: Document
    out: Path
    criteria: tuple[Criterion, ...] = ()
    provenance: Provenance
    notes: tuple[str, ...] | None = None

    def _findings(self) -> Mapping[str, object]:
        """Return the entries of the summary between title and criteria."""
        return {}

    def known(self) -> tuple[KnownGroup, ...]:
        """Return the role of each group of values that the study compares."""
        return self.study.known()

    def to_json(self) -> dict[str, Any]:
        """Return plain data for ``summary.json`` and ``--json``; NaN becomes null."""
        document = {
            "study": self.study.name,
            "title": self.study.title,
            **self._findings(),
            "criteria": self.criteria,
            "prior_knowledge": self.known(),
            **({} if self.notes is None else {"notes": self.notes}),
            "made": self.provenance,
        }
        return {key: plain(value) for key, value in document.items()}

    @property
    def criteria_row(self) -> tuple[str, str]:
        """The row of the page's foot that judges the criteria."""
        return "Criteria", "; ".join(criterion.verdict for criterion in self.criteria) or "none"

    @property
    def criteria_met(self) -> str:
        """Sentence on the number of met criteria; empty without criteria."""
        met = sum(criterion.is_met for criterion in self.criteria)
        return f"{met} of {len(self.criteria)} criteria met" if self.criteria else ""

    def page(
        self,
        answer: str,
        sections: Iterable[Section | bool | None],
        *foot_rows: tuple[str, str],
        terms: tuple[tuple[str, str], ...] = (),
        source: str | None = None,
    ) -> Page:
        """Return the page of the study.

        ``answer``: to the study's question; ``sections``: of the page, which leaves out those without blocks;
        ``*foot_rows``: rows of the foot that the kind of study adds; ``terms``: rows below them; ``source``: by default
        that of the document.
        """
        sections = (*sections, _prior_knowledge_section(self.known()))
        return Page(
            title=self.study.title,
            question=self.study.question,
            answer=answer,
            sections=tuple(section for section in sections if isinstance(section, Section) and section.blocks),
            provenance=(*self.provenance.rows(*foot_rows), *terms),
            source=getattr(self.study, "source", "") if source is None else source,
        )


def format_percent(ratio: float, digits: int = 2) -> str:
    """Write a ratio in percent; a dash where it is unknown.

    Examples
    --------
    >>> format_percent(0.00534)
    '0.53 %'
    """
    return "–" if math.isnan(ratio) else f"{100.0 * ratio:.{digits}f} %"
