"""Views of a comparison of two results: sentences, tables, a figure of the differences, and the page."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from routecast.quantity.format import without_exponent
from routecast.show.figures import GREY, Axis, Figure, Line, Points, palette
from routecast.show.page import Page, Prose, Section
from routecast.show.tables import Column, Table

if TYPE_CHECKING:
    from routecast.evaluate.compare import Comparison, Difference, ValueWithInterval

__all__ = [
    "comparison_answer",
    "comparison_figure",
    "comparison_json",
    "comparison_page",
    "comparison_sentences",
    "comparison_tables",
    "dependence_sentence",
]

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
_SURPLUS_ENTRIES = re.compile(r"\[(\d+)\] to \[(\d+)\]$")
"""Entries of a list that is longer on one side."""
_ANSWERING_SENTENCES = 2
_MAX_SENTENCES = 8
_MAX_SENTENCES_OF_PLACE = 4
_SPREAD = 1.03
"""Ratio of the places of neighbouring series at one frame size in the figure."""
_MEANING = (
    "Differs: the 95 % interval of B − A does not contain 0, or the texts differ. Noise: it contains 0. "
    "No interval: neither side has an interval. Interval: the values are equal, their intervals are not."
)
_INDEPENDENT = "The comparison takes A and B as independent."

_MAIN_QUANTITIES = (
    "predicted_pps",
    "solved_pps",
    "simulated_pps",
    "rate_pps",
    "throughput_pps",
    "forwarded_pps",
    "lossless_pps",
    "maximum_pps",
)
"""The rate that a row is about, in order of preference."""

_NAMES: Mapping[str, str] = {
    "predicted_pps": "predicted rate",
    "solved_pps": "rate by the closed form",
    "simulated_pps": "rate by the simulator",
    "baseline_pps": "rate by the baseline's law",
    "baseline_simulated_pps": "rate by the baseline's law, simulated",
    "rate_pps": "rate",
    "measured_pps": "measured rate",
    "reported_pps": "rate by the reported model",
    "forwarded_pps": "forwarded rate",
    "offered_pps": "offered rate",
    "intended_pps": "intended rate",
    "goal_pps": "rate to reach",
    "per_port_pps": "rate per port",
    "repeats_pps": "repeated rates",
    "throughput_pps": "throughput",
    "l1_bps": "bit rate on the wire",
    "l2_bps": "bit rate of the frames",
    "link_bps": "link",
    "nic_cap_pps": "cap of the cards",
    "frame_bytes": "frame size",
    "contention_ratio": "slowdown by busy cores",
    "loss_ratio": "loss",
    "error_ratio": "error",
    "coverage_ratio": "share inside the intervals",
    "covered": "inside its interval",
    "met": "criterion met",
    "mean_s": "mean",
    "all_points": "all points",
    "held_out": "held-out points",
    "rows": "",
    "points": "",
    "scenarios": "",
    "counts": "",
    "series": "",
    "least": "least cores",
    "least_cores": "least cores by the answer",
    "no": '"no"',
    "yes": '"yes"',
    "fact": "",
    "headroom_ratio": "headroom above the target",
    "service_s": "service time",
    "limit": "what limits",
    "outside": "beyond what was measured in",
    "differences": "",
    "made": "run",
}
"""Names of quantities and of tables; an empty one stands for a table whose rows name themselves."""

_COUNTED = {"cores": "core", "flows": "flow", "ports": "port", "rules": "rule", "replication": "replication"}
"""Fields that count things, with the name of one of them."""
_SILENT_SETTINGS = frozenset({"seed", "study", "experiment", "series", "evaluator", "name"})
"""Settings that no sentence begins with."""
_ANSWERED_SETTINGS = frozenset({"rate_pps", "rate_bps", "forwarded_pps", "confidence_ratio", "cores"})
"""Settings of the sentence on two sizings."""
_REPEATED_ROWS = frozenset({"least", "best"})
"""Tables that repeat a row of a list of the same document."""
_SETTING_TABLES = frozenset({"target", "setup", "profile"})
"""Tables of settings whose values are those of the tables beside them."""
_WITHOUT_LABEL = (
    "name",
    "series",
    "case",
    "point",
    "title",
    "label",
    "what",
    "says",
    "curve",
    "goal",
    "fact",
    "device",
)
"""Fields whose value names a row without the name of the field."""


def comparison_sentences(comparison: Comparison) -> tuple[str, ...]:
    """Return the answer in sentences: for each part of the results, what its main rates do where settings differ."""
    main = list(_main_differences(comparison))
    groups: dict[str, list[Difference]] = {}
    for difference in main:
        groups.setdefault(_parts(difference.place)[0], []).append(difference)
    sentences: list[str] = list(comparison.answers)
    for place, differences in groups.items():
        lead = _settings_phrase(comparison, place)
        where = _place_words(place) if len(groups) > 1 else ""
        lead = ", ".join(text for text in (where, lead) if text)
        ordered = sorted(differences, key=_row_order)
        if comparison.answer_cores:  # the rates that decide the answers; the others are in the table
            ordered = [row for row in ordered if _number_of(row, "cores") in comparison.answer_cores] or ordered
        ordered = ordered[:_MAX_SENTENCES_OF_PLACE]
        sentences += [
            f"{lead}: {_sentence(difference)}." if lead else f"{_sentence(difference)}." for difference in ordered
        ]
    left = len(main) - len(sentences[:_MAX_SENTENCES]) + len(comparison.answers)
    more = (f"{left} more rate{'s differ' if left > 1 else ' differs'}: see the results.",) if left > 0 else ()
    return tuple(sentences[:_MAX_SENTENCES]) + more


def comparison_json(comparison: Comparison) -> dict[str, object]:
    """Return plain data: the sentences, and every difference with its name."""
    document = comparison.to_json()
    named = [{"name": _quantity_name(entry), **entry.to_json()} for entry in comparison.differences]
    return {"sentences": list(comparison_sentences(comparison)), **document, "differences": named}


def comparison_figure(comparison: Comparison) -> Figure | None:
    """Return the differences of the main rates with their 95 % intervals; None where no difference has one.

    They stand over frame size or number of cores where the rows have several, else beside each other.
    """
    judged = [
        difference
        for difference in _main_differences(comparison)
        if math.isfinite(difference.difference_ratio) and math.isfinite(difference.ratio_interval[0])
    ]
    if not judged:
        return None
    axis_field = next((name for name in ("frame_bytes", "cores") if _has_several(judged, name)), None)
    series: dict[str, list[Difference]] = {}
    for difference in judged:
        series.setdefault(_series_name(difference, axis_field), []).append(difference)
    if axis_field is None:
        names = [_quantity_name(difference) for difference in judged]
        x = Axis(
            title="",
            ticks=tuple(map(float, range(1, len(names) + 1))),
            labels=tuple(names),
            low=0.5,
            high=len(names) + 0.5,
        )
        place_of = {id(difference): float(number) for number, difference in enumerate(judged, start=1)}
        series = {"B − A": judged}
    else:
        values = sorted({_number_of(difference, axis_field) for difference in judged})
        title = "frame size [B], FCS included" if axis_field == "frame_bytes" else "cores"
        x = Axis(title=title, scale="log" if axis_field == "frame_bytes" else "linear", ticks=tuple(values))
        place_of = {id(difference): _number_of(difference, axis_field) for difference in judged}
    for number, differences in enumerate(series.values()):
        # Intervals at the same place would hide each other.
        offset = number - (len(series) - 1) / 2
        for difference in differences:
            own = place_of[id(difference)]
            place_of[id(difference)] = own * _SPREAD**offset if x.scale == "log" else own + 0.05 * offset
    places = sorted(set(place_of.values()))
    marks = [
        Points.of(
            differences,
            lambda difference: place_of[id(difference)],
            lambda difference: 100.0 * difference.difference_ratio,
            low=lambda difference: 100.0 * difference.ratio_interval[0],
            high=lambda difference: 100.0 * difference.ratio_interval[1],
            labels=lambda difference: f"{_quantity_name(difference)}\n{_sentence(difference)}",
            name=name,
            colour=colour,
        )
        for (name, differences), colour in zip(series.items(), palette(len(series)), strict=True)
    ]
    zero = Line(name="no difference", x=(places[0], places[-1]), y=(0.0, 0.0), colour=GREY, dashed=True)
    return Figure(
        name="differences",
        title=f"{comparison.b} beside {comparison.a}",
        caption="Difference B − A of the rates in percent of A, with its 95 % interval. An interval that leaves out 0 "
        f"is beyond noise. {_dependence(comparison)}",
        x=x,
        y=Axis(title="difference [% of A]"),
        marks=(zero, *marks),
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
    tables, figure = comparison_tables(comparison, has_all=True), comparison_figure(comparison)
    sentences = comparison_sentences(comparison)
    answer = " ".join((*sentences[:_ANSWERING_SENTENCES], comparison_answer(comparison)))
    # The caption of the figure says already how the predictions are compared.
    meaning = f"{_MEANING} {_dependence(comparison)}" if figure is None else _MEANING
    rest = sentences[_ANSWERING_SENTENCES:]
    sections = (
        Section.of("differences", "The differences, and what of them is noise", "", bool(rest) and Prose(rest), figure),
        Section.of("compared", "A beside B", meaning, *tables),
    )
    return Page(
        title=f"{comparison.a} and {comparison.b}",
        question=f"What differs between {comparison.a} (A) and {comparison.b} (B)?",
        answer=answer,
        sections=tuple(section for section in sections if section.blocks),
        provenance=(("Command", f"`{command}`"), *versions().items()),
    )


def _settings_table(differences: Sequence[Difference], most_rows: int | None) -> Table:
    return Table.of(
        differences[:most_rows],
        Column.text("Setting", _quantity_name, wrap=True),
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
        Column.text("Quantity", _quantity_name, wrap=True),
        Column("A", getter=lambda difference: _estimate_text(difference, difference.a, has_interval=has_intervals)),
        Column("B", getter=lambda difference: _estimate_text(difference, difference.b, has_interval=has_intervals)),
        Column("B − A", getter=lambda difference: _percent(difference, has_interval=has_intervals)),
        Column.text("Verdict", lambda difference: difference.verdict),
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
    places: dict[str, list[str]] = {}
    for name in names:
        if entries := _SURPLUS_ENTRIES.search(name):
            first, last = entries.groups()
            numbers = f"entry {first}" if first == last else f"entries {first} to {last}"
            places.setdefault(_place_words(name[: entries.start()]), []).append(numbers)
        elif name.endswith("]"):
            place, label = _parts(name)
            places.setdefault(_place_words(place), []).append(_label_words(label))
        else:
            place, _, last = name.rpartition(".")
            places.setdefault(_place_words(place), []).append(_name_of(last))
    return [f"{place}: {_abbreviated(own)}" if place else _abbreviated(own) for place, own in places.items()]


def _abbreviated(names: Sequence[str]) -> str:
    more = len(names) - _MAX_NAMES
    return ", ".join(names[:_MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


def _quantity_name(difference: Difference) -> str:
    """Return what a difference is of, in words: the part of the results, the row, the quantity."""
    return _place_words(f"{difference.place}.{difference.quantity}" if difference.place else difference.quantity)


def _name_of(key: str) -> str:
    """Return the name of a quantity or a table.

    Examples
    --------
    >>> _name_of("forwarded_pps"), _name_of("mean_abs_error_ratio"), _name_of("lossless_pps")
    ('forwarded rate', 'mean abs error', 'lossless rate')
    """
    if key in _NAMES:
        return _NAMES[key]
    suffix = next((suffix for suffix in _UNITS if key.endswith(suffix) and key != suffix[1:]), "")
    name = key.removesuffix(suffix).replace("_", " ")
    return f"{name} rate" if suffix == "_pps" else name


def _parts(place: str) -> tuple[str, str]:
    """Return a place without the label of its last row, and that label: ``rows`` and ``cores=2``."""
    if not place.endswith("]"):
        return place, ""
    depth = 0
    for position in range(len(place) - 1, -1, -1):
        depth += {"]": 1, "[": -1}.get(place[position], 0)
        if depth == 0:
            return place[:position], place[position + 1 : -1]
    return place, ""


@dataclass(slots=True)
class _Step:
    key: str
    label: str


def _steps(place: str) -> Iterator[_Step]:
    """Yield the tables of a place with the labels of their rows; dots and brackets within a label stay in it."""
    key, label, depth = "", "", 0
    for letter in place:
        depth -= letter == "]"
        if letter == "." and depth == 0:
            yield _Step(key, label)
            key, label = "", ""
        elif depth > 0 or (letter == "]" and depth > 0):
            label += letter
        elif letter not in "[]":
            key += letter
        depth += letter == "["
    if place:
        yield _Step(key, label)


def _place_words(place: str) -> str:
    words = []
    for step in _steps(place):
        words += [_name_of(step.key), _label_words(step.label)]
    if words[-2:] == ["cores", ""] and "least cores" in words:
        words = words[:-2]
    return ", ".join(word for word in words if word)


def _label_fields(label: str) -> dict[str, str]:
    """Return the fields of a label ``frame_bytes=64, flows=7``; a part without ``=`` belongs to the one before."""
    fields: dict[str, str] = {}
    last = ""
    for part in label.split(", ") if label else ():
        name, equals, entry = part.partition("=")
        if equals or not last:
            last = name if equals else ""
            fields[last] = entry if equals else part
        else:
            fields[last] += f", {part}"
    return fields


def _label_words(label: str) -> str:
    if label.isdigit():
        return f"entry {label}"
    return ", ".join(_labelled_value(name, entry) for name, entry in _label_fields(label).items())


def _labelled_value(name: str, entry: str) -> str:
    """Return the value of a field that names a row.

    Examples
    --------
    >>> _labelled_value("frame_bytes", "64"), _labelled_value("cores", "1"), _labelled_value("link_bps", "5e+10")
    ('64 B', '1 core', 'link 50 Gbit/s')
    """
    if not name or name in _WITHOUT_LABEL:
        return entry
    try:
        number = float(entry)
    except ValueError:
        return f"{_name_of(name)} {entry}"
    if name in _COUNTED:
        return _count_words(number, name)
    if name == "frame_bytes":
        return format_bytes(number)
    format_value = _unit_format(name)
    return f"{_name_of(name)} {format_value(number) if format_value else entry}"


def _count_words(number: float, name: str) -> str:
    return f"{number:g} {_COUNTED[name]}{'' if number == 1.0 else 's'}"


def _main_differences(comparison: Comparison) -> Iterator[Difference]:
    """Yield the difference of the main rate of each row, in the order of the documents."""
    by_place: dict[str, Difference] = {}
    for difference in comparison.differences:
        is_repeated = difference.place.rpartition(".")[2] in _REPEATED_ROWS
        if difference.quantity not in _MAIN_QUANTITIES or difference.verdict in {"setting", "interval"} or is_repeated:
            continue
        other = by_place.get(difference.place)
        ranks = [_MAIN_QUANTITIES.index(entry.quantity) for entry in (difference, *((other,) if other else ()))]
        if other is None or ranks[0] < ranks[1]:
            by_place[difference.place] = difference
    yield from by_place.values()


def _settings_phrase(comparison: Comparison, place: str) -> str:
    """Return the settings of a part of the results that differ: "6 instead of 8 cores", or "B instead of A"."""
    phrases = [
        _setting_words(difference)
        for difference in comparison.of("setting")
        if difference.quantity not in _SILENT_SETTINGS
        and not difference.place.startswith(("made", "varied"))
        and not (isinstance(difference.a.value, str) and _unit_format(difference.quantity))
        and _holds_at(difference.place, place)
        and not (comparison.answers and difference.quantity in _ANSWERED_SETTINGS)
    ]
    return ", ".join(dict.fromkeys(phrases)) or "B instead of A"


def _holds_at(setting_place: str, place: str) -> bool:
    """Whether a setting of one table holds for the rows of another."""
    above, _, last = setting_place.rpartition(".")
    if last in _SETTING_TABLES:
        setting_place = above
    return not setting_place or setting_place == place or place.startswith((f"{setting_place}.", f"{setting_place}["))


def _setting_words(difference: Difference) -> str:
    a, b = (side.value for side in (difference.a, difference.b))
    name = difference.quantity
    if name in _COUNTED and not isinstance(a, str) and not isinstance(b, str):
        return f"{b:g} instead of {_count_words(float(a), name)}"
    return f"{_name_of(name.rpartition('.')[2])} {_both_values(difference)}"


def _sentence(difference: Difference) -> str:
    """Return a difference in words: "8.51 instead of 10.70 Mpps at 64 B, -20.4 %, 95 % -27.6 to -8.0"."""
    label = _label_fields(_parts(difference.place)[1])
    conditions = [_labelled_value(name, entry) for name, entry in label.items()]
    at = f" at {' and '.join(filter(None, (', '.join(conditions[:-1]), conditions[-1])))}" if conditions else ""
    words = f"{_both_values(difference)}{at}"
    ratio, (low, high) = difference.difference_ratio, difference.ratio_interval
    if not math.isfinite(100.0 * ratio):
        return words
    words += f", {100.0 * ratio:+.1f} %"
    if math.isnan(low):
        return f"{words}, without an interval"
    words += f", 95 % {100.0 * low:+.1f} to {100.0 * high:+.1f}"
    return words if difference.verdict == "differs" else f"{words}: only noise"


def _both_values(difference: Difference) -> str:
    """Return both values with one unit and the same decimals, "8.51 instead of 10.70 Mpps"."""
    values = [side.value for side in (difference.b, difference.a)]
    texts = [_estimate_text(difference, side) for side in (difference.b, difference.a)]
    if any(isinstance(entry, str | bool) for entry in values):
        return f"{texts[0]} instead of {texts[1]}"
    b, a = (float(entry) for entry in values if not isinstance(entry, str))
    number, _, unit = texts[max((0, 1), key=lambda index: abs((b, a)[index]))].partition(" ")
    largest, least = max(abs(a), abs(b)), min(abs(a), abs(b))
    try:
        exponent = math.log10(largest / abs(float(number)))
    except (ValueError, ZeroDivisionError):
        return f"{texts[0]} instead of {texts[1]}"
    if least <= 0.0 or abs(exponent - round(exponent)) > 0.01 or largest / least > 1e3:
        return f"{texts[0]} instead of {texts[1]}"
    scale = 10.0 ** round(exponent)
    is_whole = all(math.isclose(entry / scale, round(entry / scale), rel_tol=1e-9) for entry in (a, b))
    decimals = 0 if is_whole else max(0, 2 - math.floor(math.log10(least / scale)))
    return f"{b / scale:.{decimals}f} instead of {a / scale:.{decimals}f} {unit}".rstrip()


def dependence_sentence(comparison: Comparison) -> str:
    """Return how A and B depend on each other; empty where no prediction differs."""
    return _sentence_of(comparison.remark) if comparison.remark and any(_main_differences(comparison)) else ""


def _dependence(comparison: Comparison) -> str:
    return _sentence_of(comparison.remark) if comparison.remark else _INDEPENDENT


def _sentence_of(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _row_order(difference: Difference) -> tuple[float, float, float]:
    """Order rows for sentences: the smallest frames, then the most cores, then the most flows."""
    numbers = (_number_of(difference, name) for name in ("frame_bytes", "cores", "flows"))
    frame_bytes, cores, flows = (0.0 if math.isnan(number) else number for number in numbers)
    return frame_bytes, -cores, -flows


def _number_of(difference: Difference, name: str) -> float:
    try:
        return float(_label_fields(_parts(difference.place)[1])[name])
    except (KeyError, ValueError):
        return math.nan


def _has_several(differences: Sequence[Difference], name: str) -> bool:
    numbers = {_number_of(difference, name) for difference in differences}
    return len(numbers) > 1 and not any(map(math.isnan, numbers))


def _series_name(difference: Difference, axis_field: str | None) -> str:
    place, label = _parts(difference.place)
    fields = {name: entry for name, entry in _label_fields(label).items() if name != axis_field}
    words = [_place_words(place), *(_labelled_value(name, entry) for name, entry in fields.items())]
    return ", ".join(word for word in words if word) or "B − A"


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
    text = f"{without_exponent(100.0 * ratio, 3, signed=True)} %".replace("-", "−")
    if not has_interval or math.isnan(difference.low):
        return text
    ends = (without_exponent(100.0 * end, 3, signed=True).replace("-", "−") for end in difference.ratio_interval)
    return f"{text} [{', '.join(ends)}]"
