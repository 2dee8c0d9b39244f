"""Two results of the same kind beside each other: differences, and which of them are only noise.

::

    document A ─┐  tables by key, rows by what names them    ┌─ settings that differ
                ├─ quantity by quantity ─► its interval? ────┼─ differs · noise · no interval
    document B ─┘                                            └─ only in A, only in B

A document is what ``--json`` prints. A quantity that has a 95 % interval in A or B differs beyond noise where the
interval of the difference leaves out 0. That interval is

    L = d − √((b − b_low)² + (a_high − a)²),   U = d + √((b_high − b)² + (a − a_low)²),   d = b − a

(G. Y. Zou, A. Donner: Construction of confidence limits about effect measures: a general approach. Statistics in
Medicine 27(10), 2008, eq. 2 for a difference): A and B are taken as independent, and a value without an interval as
exact. Two results that share a calibration share its error, so that a difference between them may be real and yet
called noise; the other way round is as rare as 95 % say.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any, Literal

from routecast.evaluate.plain import plain

__all__ = ["Comparison", "Difference", "ValueWithInterval", "Verdict", "compare_documents"]

Verdict = Literal["differs", "noise", "no interval", "interval", "setting"]
"""``interval``: the value is the same, the interval around it is not."""
Scalar = bool | int | float | str

_SAME_RATIO = 1e-9
"""Sums in another order differ by this much at most."""

_PROSE = frozenset(
    {
        "advertised",
        "alternatives",
        "command",
        "formula",
        "hdr_base64",
        "here",
        "meaning",
        "messages",
        "method",
        "next_points",
        "notes",
        "question",
        "reason",
        "says",
        "shows",
        "source",
        "started_utc",
        "statement",
        "statements",
        "title",
        "verdict",
        "why",
    }
)
_OF_THE_RUN = frozenset({"elapsed_s", "resumed_trials", "resumed", "schema", "compliance", "file", "out", "attempts"})
_DERIVED = frozenset(
    {
        "adjusted_r2_ratio",
        "aliases",
        "anova",
        "coded",
        "confidence",
        "df",
        "error_df",
        "f",
        "labels",
        "letters",
        "ms",
        "p_value",
        "predicted_r2_ratio",
        "residuals",
        "s_e",
        "screening",
        "ss",
        "ss0",
        "sse",
        "sst",
        "ssy",
        "standard_error",
        "surface",
    }
)
"""What an analysis of variance derives from the same runs: the effects and means say it."""

_LEFT_OUT = _PROSE | _OF_THE_RUN | _DERIVED

_SETTINGS = frozenset(
    {"design", "device", "facts", "factors", "made", "profile", "profile_name", "setup", "tester", "varied", "versions"}
)
"""Tables of what was set, not what was answered."""

_SET = frozenset(
    {
        "cores",
        "duration_s",
        "evaluator",
        "experiment",
        "frame_bytes",
        "intended_pps",
        "link_bps",
        "ports",
        "seed",
        "study",
    }
)
"""The same outside such tables."""

_NAMES = (
    "point",
    "name",
    "series",
    "case",
    "experiment",
    "fact",
    "what",
    "stream",
    "goal",
    "curve",
    "routing",
    "allocation",
    "design",
    "router",
    "device",
    "component",
    "says",
    "title",
    "label",
    "cores",
    "frame_bytes",
    "flows",
    "ports",
    "link_bps",
    "rate_ratio",
    "frequency_hz",
    "load",
    "intended_pps",
    "offered_pps",
    "time_s",
    "number",
    "row",
    "replication",
    "evaluator",
    "where",
    "arrivals",
    "stated",
    "kind",
)
"""Fields that name a row, those first that say most."""

_OF_INTERVAL = ("predicted", "solved", "throughput", "forwarded", "mean", "value")
"""Whose interval ``low_pps`` and ``high_pps`` are, the first that is there."""

_FOLLOW = ("l1_bps", "l2_bps", "per_port_pps")
"""What is in proportion to the rate of the same table, and known as well."""

_NORMAL_95 = 1.959963984540054


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueWithInterval:
    """A value with its 95 % interval; the ends are NaN where it has none, or is a text."""

    value: Scalar
    low: float = math.nan
    high: float = math.nan

    @property
    def has_interval(self) -> bool:
        """Whether the value is a number with an interval."""
        return math.isfinite(self.low) and math.isfinite(self.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A quantity that differs: its location, its two values, and the difference of B from A.

    ``low`` to ``high`` is the 95 % interval of ``difference``, all three in the unit of the quantity, NaN where
    unknown.
    """

    place: str
    quantity: str
    a: ValueWithInterval
    b: ValueWithInterval
    difference: float
    low: float
    high: float
    verdict: Verdict

    @property
    def difference_ratio(self) -> float:
        """The difference over the size of A; NaN where A is 0 or a text."""
        if isinstance(self.a.value, str) or not self.a.value:
            return math.nan
        return self.difference / abs(self.a.value)

    def to_json(self) -> dict[str, object]:
        """Return plain data; NaN becomes null."""
        document = plain(self)
        assert isinstance(document, dict)
        return {**document, "difference_ratio": plain(self.difference_ratio)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All differences between A and B, in the order of the documents; ``same`` counts the equal quantities."""

    kind: str
    a: str
    b: str
    differences: tuple[Difference, ...]
    same: int
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]

    def of(self, *verdicts: Verdict) -> tuple[Difference, ...]:
        """Return the differences with these verdicts, in the order of the verdicts."""
        return tuple(each for verdict in verdicts for each in self.differences if each.verdict == verdict)

    def to_json(self) -> dict[str, object]:
        """Return plain data."""
        return {
            "kind": self.kind,
            "a": self.a,
            "b": self.b,
            "same": self.same,
            "differences": [each.to_json() for each in self.differences],
            "only_a": list(self.only_a),
            "only_b": list(self.only_b),
        }


def compare_documents(kind: str, a: Mapping[str, Any], b: Mapping[str, Any], *, names: tuple[str, str]) -> Comparison:
    """Compare two documents of the same kind, quantity by quantity.

    ``kind``: such as ``"study"``; ``a`` and ``b``: plain data, as ``--json`` prints it; ``names``: what A and B are
    called.

    Examples
    --------
    >>> a = {"forwarded_pps": 100.0, "interval": {"forwarded_pps": [98.0, 102.0]}}
    >>> b = {"forwarded_pps": 103.0, "interval": {"forwarded_pps": [100.0, 106.0]}}
    >>> compare_documents("trial", a, b, names=("a", "b")).differences[0].verdict
    'noise'
    """
    walk = _Walk()
    walk.tables(a, b, place="", is_set=False)
    return Comparison(
        kind=kind,
        a=names[0],
        b=names[1],
        differences=tuple(walk.differences),
        same=walk.same,
        only_a=tuple(walk.only_a),
        only_b=tuple(walk.only_b),
    )


@dataclass(slots=True)
class _Walk:
    differences: list[Difference] = field(default_factory=list)
    same: int = 0
    only_a: list[str] = field(default_factory=list)
    only_b: list[str] = field(default_factory=list)

    def tables(self, a: Mapping[str, Any], b: Mapping[str, Any], *, place: str, is_set: bool) -> None:
        """Compare two tables, key by key."""
        intervals = _intervals(a), _intervals(b)
        ends = intervals[0].ends | intervals[1].ends
        for key in (*a, *(key for key in b if key not in a)):
            if key in _LEFT_OUT or key in ends or (key == "trials" and not isinstance(a.get(key, b.get(key)), list)):
                continue
            of_a, of_b = a.get(key), b.get(key)
            sets = is_set or key in _SETTINGS
            if _is_empty(of_a) or _is_empty(of_b):
                self._one_side(_joined(place, key), of_a, of_b)
            elif (repeats := (_repeats(of_a), _repeats(of_b))) != (None, None) and None not in repeats:
                self._estimates(place, key, *repeats, is_set=sets)  # type: ignore[arg-type]
            elif isinstance(of_a, Mapping) and isinstance(of_b, Mapping):
                below = intervals[0].below(key, of_a), intervals[1].below(key, of_b)
                self.tables(*below, place=_joined(place, key), is_set=sets)
            elif isinstance(of_a, list) and isinstance(of_b, list):
                self._lists(of_a, of_b, place=_joined(place, key), is_set=sets)
            elif isinstance(of_a, Scalar) and isinstance(of_b, Scalar):
                estimates = intervals[0].estimate(key, of_a), intervals[1].estimate(key, of_b)
                self._estimates(place, key, *estimates, is_set=sets or key in _SET)
            else:  # a table here, a number there: they have nothing in common
                self._one_side(_joined(place, key), of_a, of_b)

    def _lists(self, a: list[Any], b: list[Any], *, place: str, is_set: bool) -> None:
        if all(isinstance(row, Mapping) for row in (*a, *b)):
            self._rows([_row(row) for row in a], [_row(row) for row in b], place=place, is_set=is_set)
            return
        if a == b:
            self.same += 1
            return
        if all(isinstance(entry, str) or (is_set and isinstance(entry, Scalar)) for entry in (*a, *b)):
            texts = (", ".join(map(str, entries)) for entries in (a, b))
            self._estimates("", place, *(ValueWithInterval(value=text) for text in texts), is_set=is_set)
            return
        pairs = list(zip(a, b, strict=False))
        for number, (of_a, of_b) in enumerate(pairs, start=1):
            here = f"{place}[{number}]"
            if _is_empty(of_a) or _is_empty(of_b):
                self._one_side(here, of_a, of_b)
            elif isinstance(of_a, Mapping) and isinstance(of_b, Mapping):
                self.tables(of_a, of_b, place=here, is_set=is_set)
            elif isinstance(of_a, list) and isinstance(of_b, list):
                self._lists(of_a, of_b, place=here, is_set=is_set)
            elif isinstance(of_a, Scalar) and isinstance(of_b, Scalar):
                self._estimates("", here, ValueWithInterval(value=of_a), ValueWithInterval(value=of_b), is_set=is_set)
            else:
                self._one_side(here, of_a, of_b)
        for entries, only in ((a, self.only_a), (b, self.only_b)):
            if len(entries) > len(pairs):
                only.append(f"{place}[{len(pairs) + 1}] to [{len(entries)}]")

    def _rows(self, a: list[Mapping[str, Any]], b: list[Mapping[str, Any]], *, place: str, is_set: bool) -> None:
        """Compare rows with the same naming fields; a value common to all rows of a side is reported once."""
        names = _names(a, b)
        once = [
            name
            for name in _NAMES
            if name not in names and name not in _PROSE and _constant(a, name) is not None is not _constant(b, name)
        ]
        for name in once:
            values = _constant(a, name), _constant(b, name)
            if values[0] != values[1] and len(a) + len(b) > 2:
                self._estimates(place, name, *(ValueWithInterval(value=value) for value in values), is_set=True)  # type: ignore[arg-type]
        skipped = {*names, *(once if len(a) + len(b) > 2 else ())}
        by_label = dict(_labelled(a, names)), dict(_labelled(b, names))
        for label, row in by_label[0].items():
            here = f"{place}[{label}]" if label else place
            if label in by_label[1]:
                kept = ({k: v for k, v in each.items() if k not in skipped} for each in (row, by_label[1][label]))
                self.tables(*kept, place=here, is_set=is_set)
            else:
                self.only_a.append(here)
        self.only_b += [f"{place}[{label}]" if label else place for label in by_label[1] if label not in by_label[0]]

    def _one_side(self, place: str, a: object, b: object) -> None:
        if not _is_empty(a):
            self.only_a.append(place)
        if not _is_empty(b):
            self.only_b.append(place)

    def _estimates(
        self, place: str, quantity: str, a: ValueWithInterval, b: ValueWithInterval, *, is_set: bool
    ) -> None:
        is_interval = not is_set and _is_same(a.value, b.value) and not _has_same_interval(a, b)
        if _is_same(a.value, b.value) and not is_interval:
            self.same += 1
            return
        difference = low = high = math.nan
        verdict: Verdict = "setting" if is_set else "no interval"
        if isinstance(a.value, str | bool) or isinstance(b.value, str | bool):
            verdict = "setting" if is_set else "differs"
        else:
            difference = b.value - a.value
            if a.has_interval or b.has_interval:
                low, high = _difference_interval(a, b)
                verdict = "interval" if is_interval else "noise" if low <= 0.0 <= high else "differs"
        self.differences.append(
            Difference(
                place=place, quantity=quantity, a=a, b=b, difference=difference, low=low, high=high, verdict=verdict
            )
        )


def _difference_interval(a: ValueWithInterval, b: ValueWithInterval) -> tuple[float, float]:
    """Return the 95 % interval of B − A; a value outside its own interval has no room on that side."""
    assert not isinstance(a.value, str)
    assert not isinstance(b.value, str)
    room = [
        (max(each.value - each.low, 0.0), max(each.high - each.value, 0.0))  # type: ignore[operator]
        if each.has_interval
        else (0.0, 0.0)
        for each in (a, b)
    ]
    (a_down, a_up), (b_down, b_up) = room
    difference = b.value - a.value
    return difference - math.hypot(b_down, a_up), difference + math.hypot(b_up, a_down)


@dataclass(frozen=True, slots=True)
class _Intervals:
    """The intervals of a table: of its own fields, and by dotted names of those below; ``ends`` are fields too."""

    of: Mapping[str, tuple[float, float]]
    ends: frozenset[str]

    def estimate(self, key: str, value: Scalar) -> ValueWithInterval:
        low, high = self.of.get(key, (math.nan, math.nan))
        return ValueWithInterval(value=value, low=low, high=high)

    def below(self, key: str, table: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a table below, with the intervals of this level."""
        here = {name.removeprefix(f"{key}."): ends for name, ends in self.of.items() if name.startswith(f"{key}.")}
        return {**table, "interval": here} if here else table


def _intervals(table: Mapping[str, Any]) -> _Intervals:
    """Return the intervals in a table, by the names of their fields in routecast's documents."""
    of: dict[str, tuple[float, float]] = {}
    ends: set[str] = set()
    stated = table.get("interval")
    if isinstance(stated, Mapping):
        ends.add("interval")
        of |= {name: (pair[0], pair[1]) for name, pair in stated.items() if _is_pair(pair)}
    for key, entry in table.items():
        for low, high in (("low", "high"), ("lower", "upper")):
            unit = key.removeprefix(low)
            if key == low or (key.startswith(f"{low}_") and f"{high}{unit}" in table):
                names = [f"{name}{unit}" for name in _OF_INTERVAL]
                _enter(of, ends, table, (key, f"{high}{unit}"), names)
            elif key.endswith(f"_{low}"):
                stem = key.removesuffix(f"_{low}")
                _enter(of, ends, table, (key, f"{stem}_{high}"), (stem, f"{stem}_ratio"))
        if key.startswith("half_width") and _is_number(entry):
            unit = key.removeprefix("half_width")
            ends.add(key)
            target = next((f"{name}{unit}" for name in reversed(_OF_INTERVAL) if f"{name}{unit}" in table), "")
            if _is_number(table.get(target)):
                of[target] = table[target] - entry, table[target] + entry
    for rate in ("forwarded_pps", "throughput_pps"):
        if rate in of and _is_number(table.get(rate)) and table[rate] > 0.0:
            low, high = (end / table[rate] for end in of[rate])
            of = {name: (low * table[name], high * table[name]) for name in _FOLLOW if _is_number(table.get(name))} | of
    error, value = table.get("standard_error"), table.get("value")
    if "value" not in of and _is_number(error) and _is_number(value):
        of["value"] = value - _NORMAL_95 * error, value + _NORMAL_95 * error  # type: ignore[operator]
    return _Intervals(of, frozenset(ends))


def _enter(
    of: dict[str, tuple[float, float]],
    ends: set[str],
    table: Mapping[str, Any],
    pair: tuple[str, str],
    names: Sequence[str],
) -> None:
    """Add the interval between two fields for the first of some fields that exists."""
    target = next((name for name in names if name in table), None)
    if target is None or pair[1] not in table:
        return
    low, high = table[pair[0]], table[pair[1]]
    if _is_number(low) and _is_number(high):
        of.setdefault(target, (low, high))
    if not isinstance(low, Mapping | list):
        ends.update(pair)


def _repeats(entry: object) -> ValueWithInterval | None:
    """Return the mean of repetitions with Student's 95 % interval; None for other values."""
    if not isinstance(entry, Mapping) or not {"values", "mean", "least", "most"} <= set(entry):
        return None
    values = [value for value in entry["values"] if _is_number(value)] if isinstance(entry["values"], list) else []
    if not values:
        return None
    mean = fmean(values)
    if len(values) == 1:
        return ValueWithInterval(value=mean)
    from scipy.special import stdtrit  # scipy is loaded where it is used

    half = float(stdtrit(len(values) - 1, 0.975)) * stdev(values) / math.sqrt(len(values))
    return ValueWithInterval(value=mean, low=mean - half, high=mean + half)


def _row(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row with its naming fields at the top: the settings of a point, the load of a trial."""
    settings, trial = row.get("settings"), row.get("trial")
    if isinstance(settings, Mapping):
        return {
            **{key: entry for key, entry in row.items() if key != "settings"},
            **settings,
            "point": _point_name(settings),
        }
    if isinstance(trial, Mapping):
        return {**row, **{key: trial[key] for key in ("intended_pps",) if key in trial}}
    return row


def _point_name(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={entry}" for key, entry in settings.items())


def _names(a: Sequence[Mapping[str, Any]], b: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the fewest fields, by preference, that distinguish the rows of each side."""
    names: list[str] = []
    counts = 1, 1
    for name in _NAMES:
        if not all(isinstance(row.get(name), Scalar) for row in (*a, *b)):
            continue
        more = _distinct(a, [*names, name]), _distinct(b, [*names, name])
        if more > counts and (more[0] > counts[0] or more[1] > counts[1]):
            names.append(name)
            counts = more
        if counts == (len(a), len(b)):
            break
    return names


def _distinct(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> int:
    return len({tuple(row[name] for name in names) for row in rows})


def _constant(rows: Sequence[Mapping[str, Any]], name: str) -> Scalar | None:
    """Return the common value of a field in all rows; None if it differs or is missing."""
    values = {row.get(name) if isinstance(row.get(name), Scalar) else None for row in rows}
    return next(iter(values)) if len(values) == 1 else None


def _labelled(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield rows with their names; rows with equal names are numbered."""
    counts: dict[str, int] = {}
    for row in rows:
        label = ", ".join(row[name] if name == "point" else f"{name}={_short(row[name])}" for name in names)
        counts[label] = counts.get(label, 0) + 1
        yield label if counts[label] == 1 else f"{label}#{counts[label]}".lstrip(", "), row


def _short(entry: Scalar) -> str:
    return f"{entry:.6g}" if isinstance(entry, float) else str(entry)


def _joined(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key


def _is_empty(entry: object) -> bool:
    return entry is None or entry in ("", [], {}) or (isinstance(entry, float) and not math.isfinite(entry))


def _is_number(entry: object) -> bool:
    return isinstance(entry, int | float) and not isinstance(entry, bool) and math.isfinite(entry)


def _is_pair(entry: object) -> bool:
    return isinstance(entry, list | tuple) and len(entry) == 2 and all(map(_is_number, entry))


def _has_same_interval(a: ValueWithInterval, b: ValueWithInterval) -> bool:
    if isinstance(a.value, str) or not (a.has_interval and b.has_interval):
        return isinstance(a.value, str) or a.has_interval == b.has_interval
    near = _SAME_RATIO * abs(a.value)
    ends = ((a.low, b.low), (a.high, b.high))
    return all(math.isclose(*pair, rel_tol=_SAME_RATIO, abs_tol=near) for pair in ends)


def _is_same(a: Scalar, b: Scalar) -> bool:
    if isinstance(a, str | bool) or isinstance(b, str | bool):
        return a == b
    return math.isclose(a, b, rel_tol=_SAME_RATIO, abs_tol=0.0)
