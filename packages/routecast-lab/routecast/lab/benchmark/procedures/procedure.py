"""A procedure of RFC 2544 as one object, and the values, columns and texts that all procedures share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, stdev
from typing import Any, Literal, Protocol, TypeVar

from routecast.lab.benchmark.stage import Stage
from routecast.lab.benchmark.streams import Stream
from routecast.lab.benchmark.values import BenchmarkResult, Deviation, NotRun, Profile
from routecast.quantity import format_duration
from routecast.quantity.schema import field, value
from routecast.show.figures import Figure
from routecast.show.page import Block
from routecast.show.tables import Cell, Column, Table, scaled

__all__ = [
    "LOSS",
    "LOSS_TRIAL",
    "WORST_TRIAL",
    "LeftOut",
    "Procedure",
    "Spread",
    "as_sentence",
    "describe_repeats",
    "deviation",
    "frames_per_second",
    "percent_of",
    "plural",
    "rate_column",
    "span",
    "stream_suffix",
    "time_column",
    "time_text",
    "without_unknown",
]


class LeftOut(Exception):
    """A procedure cannot be run here; the text is the reason for the report."""


def _none(*_: Any) -> tuple[Any, ...]:
    return ()


@value
class Procedure:
    """A procedure of RFC 2544 sec. 26, or of the document that replaces its section."""

    name: str = field("Name of its module, of its table in a profile and of its result, and in commands.")
    title: str = field("Title in headings.")
    section: str = field('Section of RFC 2544: ``"26.1"``.')
    documents: str = field("Documents that define the procedure and its report.")
    settings: type[Any] = field("Type of its table in a profile.")
    result: type[Any] = field(
        "Type of its result: a dataclass with ``rows`` and the statements of the standard. A row has a stream, "
        'frame_bytes, an outcome (``"found"``, ``"undetermined"`` or another word) and the reason of a missing figure.'
    )
    run: Callable[[Stage, float], tuple[Any, ...]] = field(
        "``run(stage, throughput_pps)`` runs a stage and returns its rows; the throughput is NaN if it needs none. "
        "Raises :class:`LeftOut` if nothing can be run."
    )
    trials: Callable[[Profile], tuple[int, float]] = field(
        "``trials(profile)`` returns the expected number of trials of a stage, and their seconds of traffic."
    )
    deviations: Callable[[Profile], Iterable[Deviation]] = field(
        "``deviations(profile)`` yields every difference of the profile's values from the standard."
    )
    columns: Callable[[Any], Sequence[Column[Any] | bool]] = field(
        "``columns(result)`` returns the columns of its table beside the common ones; ``False`` is no column."
    )
    lead: str = field("Meaning of its result, for readers who do not know the RFC.")
    stated: Callable[[Sequence[Any], Profile, Sequence[Stream], str], Mapping[str, Any]] = field(
        "``stated(rows, profile, streams, medium)`` returns the fields of the result beside its rows.",
        default=lambda rows, profile, streams, medium: {},
    )
    left_out: Callable[[Sequence[Any], Mapping[str, str]], Sequence[NotRun]] = field(
        "``left_out(rows, reasons)`` lists parts that were not run; ``reasons`` has the device's reason for a part.",
        default=_none,
    )
    statements: Callable[[Profile, Sequence[Stream]], Sequence[str]] = field(
        "``statements(profile, streams)`` returns the report's sentences on the method of the procedure.", default=_none
    )
    outcomes: Mapping[str, str] = field(
        "Texts of outcomes in its table, by default the outcome itself.", default_factory=dict
    )
    row_name: Callable[[Any], str] = field(
        "``row_name(row)`` names a row without a figure.", default=lambda row: f"{row.frame_bytes:g} B"
    )
    caption: Callable[[Any], str] = field("``caption(result)`` describes the table.", default=lambda result: "")
    explained: str = field("Further sentences on the table for a page.", default="")
    answers: Callable[[Any], Sequence[str]] = field(
        "``answers(result)`` returns its results in complete sentences.", default=_none
    )
    opening: Callable[[Any, BenchmarkResult], Iterable[Block]] = field(
        "``opening(result, benchmark)`` returns the blocks of a page before figures and table.", default=_none
    )
    figures: Callable[[Any, BenchmarkResult], Iterable[Figure]] = field(
        "``figures(result, benchmark)`` returns the figures of a page.", default=_none
    )
    closing: Callable[[Any, BenchmarkResult], Iterable[Block]] = field(
        "``closing(result, benchmark)`` returns the blocks of a page after the table.", default=_none
    )
    rests_on_throughput: bool = field("Whether it runs at the throughput, after the search.", default=True)
    counts_frames: bool = field("Whether it counts frames during a change, which a closed form cannot.", default=True)
    smallest_only: bool = field("Whether it is run with the smallest frame only.", default=False)
    with_bursts: bool = field(
        "Whether it is run with streams of repeated bursts as well (sec. 21: least time between bursts without loss).",
        default=False,
    )

    @property
    def words(self) -> str:
        """The name in words."""
        return self.name.replace("_", " ")

    def table(self, result: Any, *, several: bool = True) -> Table:
        """Return the table of a result without empty wide columns; with ``several`` streams it always names them."""
        words = {"found": "", "undetermined": "not determined", **self.outcomes}
        table = Table.of(
            result.rows,
            Column.text("Stream", lambda row: row.stream, wide=not several),
            Column("Frame", "B", ".6g", lambda row: row.frame_bytes),
            *self.columns(result),
            Column.text("", lambda row: words.get(row.outcome, row.outcome), wide=True),
            name=self.name.replace("_", "-"),
            title=f"{self.title} ({self.documents})",
            caption=self.caption(result),
        )
        return without_unknown(table)

    def reasons(self, rows: Sequence[Any]) -> tuple[str, ...]:
        """Return the reason of each row without a figure."""
        suffix = stream_suffix(rows)
        return tuple(dict.fromkeys(f"{self.row_name(row)}{suffix(row)}: {row.reason}." for row in rows if row.reason))


def stream_suffix(rows: Sequence[Any]) -> Callable[[Any], str]:
    """Return the function that names the stream of a row after a comma, if the rows have several streams."""
    several = len({row.stream for row in rows}) > 1
    return lambda row: f", {row.stream}" if several else ""


def without_unknown(table: Table) -> Table:
    """Return the table without its wide columns that have no known value."""
    numbers = [
        number
        for number, column in enumerate(table.columns)
        if not column.wide or any(_is_known(row[number]) for row in table.rows)
    ]
    columns = tuple(table.columns[number] for number in numbers)
    return replace(table, columns=columns, rows=tuple(tuple(row[number] for number in numbers) for row in table.rows))


def _is_known(cell: Cell) -> bool:
    return cell not in (None, "") and not (isinstance(cell, float) and math.isnan(cell))


_Row = TypeVar("_Row")


def rate_column(title: str, getter: Callable[[_Row], Cell], **more: Any) -> Column[_Row]:
    """Return a column of rates in frames/s, written in full as RFC 2544 asks."""
    return Column(title, "frames/s", frames_per_second, getter, **more)


def time_column(title: str, getter: Callable[[_Row], Cell], **more: Any) -> Column[_Row]:
    """Return a column of times, each with its unit."""
    return Column(title, "", time_text, getter, **more)


class _LossRow(Protocol):
    @property
    def loss_ratio(self) -> float: ...
    @property
    def worst_trial(self) -> str: ...


LOSS: Column[_LossRow] = Column("Loss", "%", scaled(100.0, ".4g"), lambda row: row.loss_ratio)
LOSS_TRIAL: Column[_LossRow] = Column.text("Loss of", lambda row: row.worst_trial, wide=True)

WORST_TRIAL: Any = field(
    "The trial whose loss is shown, the worst, where several trials at this rate differ in loss.", default=""
)


@value
class Spread:
    """Mean, extremes and standard deviation of a repeated figure, and its raw values in order.

    The unit is that of the field which holds the spread. ``sd`` is NaN for fewer than two values.
    """

    values: tuple[float, ...]
    mean: float
    least: float
    most: float
    sd: float

    @classmethod
    def of(cls, values: tuple[float, ...]) -> Spread:
        """Summarise values; without any, all numbers are NaN."""
        if not values:
            return cls(values=(), mean=math.nan, least=math.nan, most=math.nan, sd=math.nan)
        sd = stdev(values) if len(values) > 1 else math.nan
        return cls(values=values, mean=fmean(values), least=min(values), most=max(values), sd=sd)

    @property
    def repeats(self) -> int:
        """Number of values."""
        return len(self.values)


def deviation(
    section: str, requirement: Literal["MUST", "SHOULD"], wanted: str, done: str, *, document: str = "RFC 2544"
) -> Deviation:
    """Return a deviation from RFC 2544, or from a document that replaces one of its sections."""
    return Deviation(document=document, section=section, requirement=requirement, wanted=wanted, done=done)


def span(seconds: float) -> str:
    """Write a time, 0 as "none"."""
    return format_duration(seconds) if seconds > 0.0 else "none"


def as_sentence(text: str) -> str:
    """Write a text as a sentence."""
    return f"{text[:1].upper()}{text[1:]}" + ("" if text.endswith((".", "!", "?")) else ".")


def describe_repeats(spreads: Iterable[Spread]) -> str:
    """Describe the least number of repetitions among some results."""
    fewest = min((spread.repeats for spread in spreads), default=0)
    return f"average of {fewest} repetitions" if fewest != 1 else "one repetition"


def frames_per_second(rate_pps: float) -> str:
    """Write a rate in frames a second, as RFC 2544 asks.

    Examples
    --------
    >>> frames_per_second(14_880_952.4)
    '14,880,952'
    """
    if not math.isfinite(rate_pps):
        return "–"
    return f"{rate_pps:,.0f}" if rate_pps >= 100.0 else f"{rate_pps:.4g}"


class _ResolvedRow(Protocol):
    @property
    def resolution_s(self) -> float: ...


_Resolved = TypeVar("_Resolved", bound=_ResolvedRow)


def resolved_column(title: str, value_s: Callable[[_Resolved], float], **more: Any) -> Column[_Resolved]:
    """Return a column of times, of which those below the resolution of the measurement are "not resolved"."""
    return Column.text(title, lambda row: resolved_text(value_s(row), row.resolution_s), **more)


def resolved_text(value_s: float, resolution_s: float) -> str:
    """Write a time that cannot be negative; ``resolution_s``: what the measurement resolves, NaN if unknown.

    Examples
    --------
    >>> resolved_text(-22e-3, 25e-3), resolved_text(-22e-3, math.nan), resolved_text(30e-3, 25e-3)
    ('not resolved, < 25 ms', 'not resolved', '30 ms')
    """
    if value_s < resolution_s:
        return f"not resolved, < {time_text(resolution_s)}"
    return "not resolved" if value_s < 0.0 else time_text(value_s)


def time_text(value_s: float) -> str:
    """Write a time, which may be negative.

    Examples
    --------
    >>> time_text(-2.5e-6)
    '−2.5 µs'
    """
    if not math.isfinite(value_s):
        return "–"
    return ("−" if value_s < 0.0 else "") + format_duration(abs(value_s)).replace(" us", " µs")


def percent_of(ratio: float) -> str:
    """Write a ratio in percent.

    Examples
    --------
    >>> percent_of(0.0821), percent_of(1.0), percent_of(0.00123)
    ('8.2 %', '100 %', '0.123 %')
    """
    if not math.isfinite(ratio):
        return "–"
    text = f"{100.0 * ratio:.3g}" if ratio < 0.01 else f"{100.0 * ratio:.1f}".removesuffix(".0")
    return f"{text} %"


def plural(count: int, noun: str) -> str:
    """Write a count with its noun.

    Examples
    --------
    >>> plural(1, "trial"), plural(1200, "trial")
    ('1 trial', '1,200 trials')
    """
    return f"{count:,} {noun}{'s' if count != 1 else ''}"
