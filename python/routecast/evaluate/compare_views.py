"""Views of a comparison of two results: tables, the answer in one sentence, and the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from routecast.evaluate.result_folder import versions
from routecast.quantity import (
    format_bps,
    format_bytes,
    format_duration,
    format_energy,
    format_frequency,
    format_power,
    format_pps,
    format_ratio,
)
from routecast.show.page import Page, Section
from routecast.show.tables import Column, Table

if TYPE_CHECKING:
    from routecast.evaluate.compare import Comparison, Difference, ValueWithInterval

__all__ = ["comparison_answer", "comparison_page", "comparison_tables"]

_UNITS: dict[str, Callable[[float], str]] = {
    "_pps": format_pps,
    "_bps": format_bps,
    "_bytes": format_bytes,
    "_ratio": format_ratio,
    "_hz": format_frequency,
    "_per_s": lambda value: f"{value:.4g}/s",
    "_s": format_duration,
    "_w": format_power,
    "_j": format_energy,
}
_MAX_ROWS = 40
_MAX_NAMES = 6
_MAX_TEXT = 40
_MEANING = (
    "Differs: the 95 % interval of B − A does not contain 0, or the texts differ. Noise: it contains 0. "
    "No interval: neither side has an interval. Interval: the values are equal, their intervals are not. "
    "The comparison takes A and B as independent."
)


def comparison_tables(
    comparison: Comparison, *, has_all: bool = False, has_intervals: bool = True
) -> tuple[Table, ...]:
    """Return the tables of different settings, of differences, and of quantities of only A or B, without empty tables.

    ``has_all``: whether long tables have all rows; ``has_intervals``: whether values have their intervals beside them.
    """
    most_rows = None if has_all else _MAX_ROWS
    tables = (
        _settings_table(comparison.of("setting"), most_rows),
        _results_table(
            comparison.of("differs", "no interval", "noise", "interval"), most_rows, has_intervals=has_intervals
        ),
        _one_side_table(comparison.only_a, comparison.a, most_rows),
        _one_side_table(comparison.only_b, comparison.b, most_rows),
    )
    return tuple(table for table in tables if table.rows)


def comparison_answer(comparison: Comparison) -> str:
    """Return the number of quantities that differ, and of those that differ beyond noise."""
    counts = {
        verdict: len(comparison.of(verdict)) for verdict in ("differs", "noise", "no interval", "interval", "setting")
    }
    differing = sum(counts.values()) - counts["setting"]
    if not any(counts.values()) and not comparison.only_a and not comparison.only_b:
        return f"No difference: all {comparison.same} quantities are the same."
    parts = [f"{counts['differs']} beyond noise"]
    parts += [f"{counts['no interval']} without an interval"] if counts["no interval"] else []
    parts += [f"{counts['noise']} only noise"]
    parts += [f"{counts['interval']} only in the interval"] if counts["interval"] else []
    settings = f" Settings that differ: {counts['setting']}." if counts["setting"] else ""
    return f"{comparison.same} quantities are the same, {differing} differ: {', '.join(parts)}.{settings}"


def comparison_page(comparison: Comparison, *, command: str) -> Page:
    """Return the page of a comparison, with every row."""
    tables = comparison_tables(comparison, has_all=True)
    return Page(
        title=f"{comparison.a} and {comparison.b}",
        question=f"What differs between {comparison.a} (A) and {comparison.b} (B)?",
        answer=comparison_answer(comparison),
        sections=(
            Section.of("compared", "A beside B", _MEANING, *tables),
            *((Section.of("none", "Nothing differs", ""),) if not tables else ()),
        ),
        provenance=(("Command", f"`{command}`"), *versions().items()),
    )


def _settings_table(differences: Sequence[Difference], most_rows: int | None) -> Table:
    return Table.of(
        differences[:most_rows],
        Column.text("Setting", _quantity_name),
        Column("A", getter=lambda difference: _estimate_text(difference, difference.a)),
        Column("B", getter=lambda difference: _estimate_text(difference, difference.b)),
        Column("B − A", getter=_percent),
        name="settings",
        title="Settings",
        caption=_hidden_rows(differences, most_rows),
    )


def _results_table(differences: Sequence[Difference], most_rows: int | None, *, has_intervals: bool) -> Table:
    return Table.of(
        differences[:most_rows],
        Column.text("Quantity", _quantity_name),
        Column("A", getter=lambda difference: _estimate_text(difference, difference.a, has_interval=has_intervals)),
        Column("B", getter=lambda difference: _estimate_text(difference, difference.b, has_interval=has_intervals)),
        Column("B − A", getter=lambda difference: _percent(difference, has_interval=has_intervals)),
        Column.text("Verdict", "verdict"),
        name="differences",
        title="Results",
        caption=_hidden_rows(differences, most_rows),
        strong=lambda difference: difference.verdict == "differs",
    )


def _hidden_rows(rows: Sequence[object], most_rows: int | None) -> str:
    left = len(rows) - len(rows[:most_rows])
    return f"{left} more rows: --all prints them, --json has them too." if left else ""


def _one_side_table(names: Sequence[str], side: str, most_rows: int | None) -> Table:
    lines = _grouped_locations(names)
    return Table.of(
        lines[:most_rows],
        Column.text(f"Only in {side}", lambda name: name),
        name=f"only-{side}",
        caption=_hidden_rows(lines, most_rows),
    )


def _grouped_locations(names: Sequence[str]) -> list[str]:
    """Return a line for each location: quantities of one table share a line, and so do rows of one list."""
    places: dict[tuple[str, str], list[str]] = {}
    for name in names:
        if name.endswith("]"):
            place, _, row = name.removesuffix("]").rpartition("[")
            places.setdefault((place, "[]"), []).append(f"[{row}]")
        else:
            place, _, last = name.rpartition(".")
            places.setdefault((place, "." if place else ""), []).append(last)
    return [
        f"{place}: {_abbreviated(quantities)}" if place else ", ".join(quantities)
        for (place, _), quantities in places.items()
    ]


def _abbreviated(names: Sequence[str]) -> str:
    more = len(names) - _MAX_NAMES
    return ", ".join(names[:_MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


def _quantity_name(difference: Difference) -> str:
    return f"{difference.place}.{difference.quantity}" if difference.place else difference.quantity


def _unit_format(name: str) -> Callable[[float], str] | None:
    """Return the formatter of the unit at the end of a name; for a list that of its entries."""
    quantity = name.partition("[")[0] if name.endswith("]") else name
    return next((form for suffix, form in _UNITS.items() if quantity.endswith(suffix)), None)


def _estimate_text(difference: Difference, estimate: ValueWithInterval, *, has_interval: bool = False) -> str:
    if isinstance(estimate.value, bool):
        return "yes" if estimate.value else "no"
    if isinstance(estimate.value, str):
        return estimate.value if len(estimate.value) <= _MAX_TEXT else f"{estimate.value[: _MAX_TEXT - 1]}…"
    format_value = _unit_format(difference.quantity) or _unit_format(difference.place) or _plain
    if not has_interval or not estimate.has_interval:
        return format_value(estimate.value)
    texts = [format_value(number).partition(" ") for number in (estimate.value, estimate.low, estimate.high)]
    if len({unit for _, _, unit in texts}) == 1:
        value, low, high = (number for number, _, _ in texts)
        return f"{value} [{low}, {high}] {texts[0][2]}".rstrip()
    value, low, high = ("".join(parts) for parts in texts)
    return f"{value} [{low}, {high}]"


def _plain(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.4g}"


def _percent(difference: Difference, *, has_interval: bool = False) -> str:
    """Return the difference in percent of A, with its interval if known."""
    ratio = difference.difference_ratio
    if math.isnan(ratio):
        return "–"
    if not math.isfinite(100.0 * ratio):
        return "more than 1e306 times" if ratio > 0.0 else "less than −1e306 times"
    text = f"{100.0 * ratio:+.3g} %".replace("-", "−")
    if not has_interval or math.isnan(difference.low):
        return text
    size = difference.difference / ratio if ratio else abs(float(difference.a.value))
    ends = (f"{100.0 * end / size:+.3g}".replace("-", "−") for end in (difference.low, difference.high))
    return f"{text} [{', '.join(ends)}]"
