"""Two results of the same kind beside each other: differences, and which of them are only noise.

::

    document A ─┐  tables by key, rows by what names them    ┌─ settings that differ
                ├─ quantity by quantity ─► its interval? ────┼─ differs · noise · no interval
    document B ─┘                                            └─ only in A, only in B

A document is what ``--json`` prints. A quantity that has a 95 % interval in A or B differs beyond noise where the
interval of the difference does not contain 0. That interval is

    L = d − √((b − b_low)² + (a_high − a)²),   U = d + √((b_high − b)² + (a − a_low)²),   d = b − a

(G. Y. Zou, A. Donner: Construction of confidence limits about effect measures: a general approach. Statistics in
Medicine 27(10), 2008, eq. 2 for a difference). The formula takes A and B as independent, and a value without an
interval as exact. Predictions of one calibration share its error and are not independent: a :class:`Pairing` knows the
interval of their difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, stdev
from typing import Any, Literal, NamedTuple, Protocol

from routecast.evaluate.plain import plain
from routecast.quantity import format_pps

__all__ = [
    "Comparison",
    "Difference",
    "PairedInterval",
    "Pairing",
    "RowPair",
    "ValueWithInterval",
    "Verdict",
    "compare_documents",
]

Verdict = Literal["differs", "noise", "no interval", "interval", "setting"]
"""``interval``: the values are equal, their intervals are not."""
Scalar = bool | int | float | str

_SAME_RATIO = 1e-9
"""Sums in another order differ by this share at most."""

_PROSE_FIELDS = frozenset(
    {
        "advertised",
        "alternatives",
        "answer",
        "command",
        "formula",
        "hdr_base64",
        "here",
        "meaning",
        "messages",
        "method",
        "next",
        "next_points",
        "notes",
        "question",
        "reason",
        "remarks",
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
_RUN_FIELDS = frozenset(
    {
        "calibrations",
        "conditions",
        "elapsed_s",
        "resumed_trials",
        "resumed",
        "schema",
        "compliance",
        "file",
        "out",
        "attempts",
    }
)
_DERIVED_FIELDS = frozenset(
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
"""Fields that an analysis of variance derives from effects and means, which are compared themselves."""

_RESTATED_FIELDS = frozenset({"interval_pps", "intervals_pps"})
"""Rates of the counts of a sizing under the answers to an open fact, which are no setting; the counts are compared."""

_IGNORED_FIELDS = _PROSE_FIELDS | _RUN_FIELDS | _DERIVED_FIELDS | _RESTATED_FIELDS

_SETTING_TABLES = frozenset(
    {
        "design",
        "device",
        "facts",
        "factors",
        "made",
        "profile",
        "profile_name",
        "setup",
        "target",
        "tester",
        "varied",
        "versions",
    }
)
"""Tables that hold settings instead of results."""

_SETTING_FIELDS = frozenset(
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
"""Settings outside these tables."""

_NAMING_FIELDS = (
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
"""Fields that name a row, in order of preference."""

_INTERVAL_TARGETS = ("predicted", "solved", "simulated", "rate", "throughput", "forwarded", "mean", "value")
"""Values that ends such as ``low_pps`` and ``high_pps`` may belong to, in order of preference."""

_PROPORTIONAL_FIELDS = ("l1_bps", "l2_bps", "per_port_pps")
"""Fields in proportion to the rate of the same table, with the same relative interval."""

_PROBABILITY = "probability"
"""The field of a sizing that sums up draws of a calibration, and so has no interval of its own."""

_NORMAL_95 = 1.959963984540054


class RowPair(NamedTuple):
    """A row of A and a row of B that meet, and a quantity of both."""

    a: Mapping[str, Any]
    b: Mapping[str, Any]
    quantity: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedInterval:
    """The 95 % intervals of B − A and of B/A − 1 for values that are not independent."""

    low: float
    high: float
    ratio_low: float
    ratio_high: float


class Pairing(Protocol):
    """Knows how values of A and B depend on each other."""

    remark: str
    """A sentence on what the values share; empty where there is nothing to say."""

    def intervals(self, pairs: Sequence[RowPair]) -> Sequence[PairedInterval | None]:
        """Return the interval of the difference for each pair; None where A and B are independent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueWithInterval:
    """A value with its 95 % interval; the ends are NaN for a text and where the interval is unknown."""

    value: Scalar
    low: float = math.nan
    high: float = math.nan

    @property
    def has_interval(self) -> bool:
        """Whether the value is a number with an interval."""
        return math.isfinite(self.low) and math.isfinite(self.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A quantity that differs: its location, its two values, and the difference B − A.

    ``low`` to ``high`` is the 95 % interval of ``difference``, all three in the unit of the quantity, NaN where
    unknown. ``paired`` is that interval where A and B share a calibration; None where they are independent.
    """

    place: str
    quantity: str
    a: ValueWithInterval
    b: ValueWithInterval
    difference: float
    low: float
    high: float
    verdict: Verdict
    paired: PairedInterval | None = None

    @property
    def difference_ratio(self) -> float:
        """The difference over the size of A; NaN where A is 0 or a text."""
        if isinstance(self.a.value, str) or not self.a.value:
            return math.nan
        return self.difference / abs(self.a.value)

    @property
    def ratio_interval(self) -> tuple[float, float]:
        """The 95 % interval of :attr:`difference_ratio`; NaN where unknown."""
        if self.paired is not None:
            return self.paired.ratio_low, self.paired.ratio_high
        if isinstance(self.a.value, str) or not self.a.value:
            return math.nan, math.nan
        return self.low / abs(self.a.value), self.high / abs(self.a.value)

    def with_pairing(self, paired: PairedInterval) -> Difference:
        """Return the difference of two values that share a calibration."""
        verdict: Verdict = "noise" if paired.low <= 0.0 <= paired.high else "differs"
        return replace(self, low=paired.low, high=paired.high, verdict=verdict, paired=paired)

    def to_json(self) -> dict[str, object]:
        """Return plain data; NaN becomes null."""
        document = plain(replace(self, paired=None))
        assert isinstance(document, dict)
        low, high = self.ratio_interval
        ratios = {"difference_ratio": self.difference_ratio, "ratio_low": low, "ratio_high": high}
        return {**document, **{name: plain(ratio) for name, ratio in ratios.items()}, "paired": self.paired is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All differences between A and B, in the order of the documents; ``same`` counts the equal quantities.

    ``remark``: what the predictions of A and B share; empty where there is nothing to say. ``answers``: what two
    sizings answer, a sentence for each series; ``answer_cores``: the numbers of cores in them.
    """

    kind: str
    a: str
    b: str
    differences: tuple[Difference, ...]
    same: int
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    remark: str = ""
    answers: tuple[str, ...] = ()
    answer_cores: frozenset[int] = frozenset()

    def of(self, *verdicts: Verdict) -> tuple[Difference, ...]:
        """Return the differences with these verdicts, in the order of the verdicts."""
        return tuple(
            difference for verdict in verdicts for difference in self.differences if difference.verdict == verdict
        )

    def to_json(self) -> dict[str, object]:
        """Return plain data."""
        return {
            "kind": self.kind,
            "a": self.a,
            "b": self.b,
            "pairing": self.remark,
            "same": self.same,
            "differences": [difference.to_json() for difference in self.differences],
            "only_a": list(self.only_a),
            "only_b": list(self.only_b),
        }


def compare_documents(
    kind: str, a: Mapping[str, Any], b: Mapping[str, Any], *, names: tuple[str, str], pairing: Pairing | None = None
) -> Comparison:
    """Compare two documents of the same kind, quantity by quantity.

    ``kind``: kind of both documents, such as ``"study"``; ``a`` and ``b``: plain data, as ``--json`` prints it;
    ``names``: the names of A and B; ``pairing``: what their values share, None: all are independent.

    Examples
    --------
    >>> a = {"forwarded_pps": 100.0, "interval": {"forwarded_pps": [98.0, 102.0]}}
    >>> b = {"forwarded_pps": 103.0, "interval": {"forwarded_pps": [100.0, 106.0]}}
    >>> compare_documents("trial", a, b, names=("a", "b")).differences[0].verdict
    'noise'
    """
    walk = _DocumentWalk()
    walk.tables(a, b, place="", is_setting=False)
    if pairing is not None:
        pairs = list(walk.pairs.items())
        for (index, _), paired in zip(pairs, pairing.intervals([pair for _, pair in pairs]), strict=True):
            if paired is not None:
                walk.differences[index] = walk.differences[index].with_pairing(paired)
    sizings = list(_paired_sizings(a, b)) if kind == "sizing" else []
    return Comparison(
        kind=kind,
        a=names[0],
        b=names[1],
        differences=tuple(walk.differences),
        same=walk.same,
        only_a=tuple(walk.only_a),
        only_b=tuple(walk.only_b),
        remark=pairing.remark if pairing is not None else "",
        answers=tuple(_sizing_sentence(*pair, has_name=len(sizings) > 1) for pair in sizings),
        answer_cores=frozenset(
            least["cores"] for pair in sizings for part in pair if isinstance(least := part.get("least"), Mapping)
        ),
    )


def _paired_sizings(
    a: Mapping[str, Any], b: Mapping[str, Any]
) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Yield the sizings of A and B of the same series; two single ones belong together."""
    ours, others = ([part for part in document["series"] if "target" in part] for document in (a, b))
    if len(ours) == len(others) == 1:
        yield ours[0], others[0]
        return
    by_name = {part.get("series", ""): part for part in others}
    yield from ((part, by_name[part.get("series", "")]) for part in ours if part.get("series", "") in by_name)


def _sizing_sentence(a: Mapping[str, Any], b: Mapping[str, Any], *, has_name: bool) -> str:
    """Return what two sizings answer: "7 instead of 4 cores for 6 Mpps of 64 B"."""
    counts = [_cores_words(part) for part in (b, a)]
    targets = [_target_words(part["target"]) for part in (b, a)]
    lead = f"{b['series']}: " if has_name and b.get("series") else ""
    if targets[0] != targets[1] and counts[0] == counts[1]:
        return f"{lead}{counts[0]} for {targets[0]} as for {targets[1]}."
    if targets[0] != targets[1]:
        return f"{lead}{counts[0]} for {targets[0]} instead of {_inner(counts[1])} for {targets[1]}."
    if counts[0] == counts[1]:
        return f"{lead}{counts[0]} for {targets[0]} in both."
    return f"{lead}{counts[0]} instead of {_inner(counts[1])} for {targets[0]}."


def _inner(words: str) -> str:
    return words[:1].lower() + words[1:]


def _cores_words(sizing: Mapping[str, Any]) -> str:
    least = sizing.get("least")
    if not isinstance(least, Mapping):
        confidence = sizing["target"].get("confidence_ratio")
        return f"No number of cores with a probability of {confidence:g}" if confidence else "No number of cores"
    return f"{least['cores']} core{'' if least['cores'] == 1 else 's'}"


def _target_words(target: Mapping[str, Any]) -> str:
    return f"{format_pps(target['rate_pps'])} of {target.get('frames', 'frames')}"


@dataclass(slots=True)
class _DocumentWalk:
    differences: list[Difference] = field(default_factory=list)
    same: int = 0
    only_a: list[str] = field(default_factory=list)
    only_b: list[str] = field(default_factory=list)
    pairs: dict[int, RowPair] = field(default_factory=dict)
    """The rows of A and B of each difference that a pairing may know: two intervals, or two probabilities."""

    def tables(
        self,
        a: Mapping[str, Any],
        b: Mapping[str, Any],
        *,
        place: str,
        is_setting: bool,
        rows: tuple[Mapping[str, Any], Mapping[str, Any]] | None = None,
    ) -> None:
        """Compare two tables, key by key; ``rows`` are the two with the fields that name them."""
        intervals = _intervals(a), _intervals(b)
        ends = intervals[0].ends | intervals[1].ends
        for key in (*a, *(key for key in b if key not in a)):
            if (
                key in _IGNORED_FIELDS
                or key in ends
                or (key == "trials" and not isinstance(a.get(key, b.get(key)), list))
            ):
                continue
            entry_a, entry_b = a.get(key), b.get(key)
            holds_settings = is_setting or key in _SETTING_TABLES
            if _is_empty(entry_a) or _is_empty(entry_b):
                self._one_side(_joined(place, key), entry_a, entry_b)
            elif (means := (_repetition_mean(entry_a), _repetition_mean(entry_b))) != (
                None,
                None,
            ) and None not in means:
                self._estimates(place, key, *means, is_setting=holds_settings)  # type: ignore[arg-type]
            elif isinstance(entry_a, Mapping) and isinstance(entry_b, Mapping):
                below = intervals[0].below(key, entry_a), intervals[1].below(key, entry_b)
                self.tables(*below, place=_joined(place, key), is_setting=holds_settings)
            elif isinstance(entry_a, list) and isinstance(entry_b, list):
                self._lists(entry_a, entry_b, place=_joined(place, key), is_setting=holds_settings)
            elif isinstance(entry_a, Scalar) and isinstance(entry_b, Scalar):
                estimates = intervals[0].estimate(key, entry_a), intervals[1].estimate(key, entry_b)
                count = len(self.differences)
                self._estimates(place, key, *estimates, is_setting=holds_settings or key in _SETTING_FIELDS)
                is_known = key == _PROBABILITY or all(side.has_interval for side in estimates)
                if len(self.differences) > count and is_known:
                    self.pairs[count] = RowPair(*(rows or (a, b)), key)
            else:  # a table in A and a number in B, or the reverse: they have nothing in common
                self._one_side(_joined(place, key), entry_a, entry_b)

    def _lists(self, a: list[Any], b: list[Any], *, place: str, is_setting: bool) -> None:
        if all(isinstance(row, Mapping) for row in (*a, *b)):
            self._rows([_row(row) for row in a], [_row(row) for row in b], place=place, is_setting=is_setting)
            return
        if a == b:
            self.same += 1
            return
        if all(isinstance(entry, str) or (is_setting and isinstance(entry, Scalar)) for entry in (*a, *b)):
            texts = (", ".join(map(str, entries)) for entries in (a, b))
            self._estimates("", place, *(ValueWithInterval(value=text) for text in texts), is_setting=is_setting)
            return
        pairs = list(zip(a, b, strict=False))
        for number, (entry_a, entry_b) in enumerate(pairs, start=1):
            entry_place = f"{place}[{number}]"
            if _is_empty(entry_a) or _is_empty(entry_b):
                self._one_side(entry_place, entry_a, entry_b)
            elif isinstance(entry_a, Mapping) and isinstance(entry_b, Mapping):
                self.tables(entry_a, entry_b, place=entry_place, is_setting=is_setting)
            elif isinstance(entry_a, list) and isinstance(entry_b, list):
                self._lists(entry_a, entry_b, place=entry_place, is_setting=is_setting)
            elif isinstance(entry_a, Scalar) and isinstance(entry_b, Scalar):
                self._estimates(
                    "",
                    entry_place,
                    ValueWithInterval(value=entry_a),
                    ValueWithInterval(value=entry_b),
                    is_setting=is_setting,
                )
            else:
                self._one_side(entry_place, entry_a, entry_b)
        for entries, only in ((a, self.only_a), (b, self.only_b)):
            if len(entries) > len(pairs):
                only.append(f"{place}[{len(pairs) + 1}] to [{len(entries)}]")

    def _rows(self, a: list[Mapping[str, Any]], b: list[Mapping[str, Any]], *, place: str, is_setting: bool) -> None:
        """Compare rows with the same naming fields; a value common to all rows of a side is reported once."""
        names = _names(a, b)
        common_fields = [
            name
            for name in _NAMING_FIELDS
            if name not in names
            and name not in _PROSE_FIELDS
            and _constant(a, name) is not None is not _constant(b, name)
        ]
        for name in common_fields:
            values = _constant(a, name), _constant(b, name)
            if values[0] != values[1] and len(a) + len(b) > 2:
                self._estimates(place, name, *(ValueWithInterval(value=value) for value in values), is_setting=True)  # type: ignore[arg-type]
        skipped = {*names, *(common_fields if len(a) + len(b) > 2 else ())}
        by_label = dict(_labelled(a, names)), dict(_labelled(b, names))
        for label, row in by_label[0].items():
            row_place = f"{place}[{label}]" if label else place
            if label in by_label[1]:
                compared = ({k: v for k, v in side.items() if k not in skipped} for side in (row, by_label[1][label]))
                self.tables(*compared, place=row_place, is_setting=is_setting, rows=(row, by_label[1][label]))
            else:
                self.only_a.append(row_place)
        self.only_b += [f"{place}[{label}]" if label else place for label in by_label[1] if label not in by_label[0]]

    def _one_side(self, place: str, a: object, b: object) -> None:
        if not _is_empty(a):
            self.only_a.append(place)
        if not _is_empty(b):
            self.only_b.append(place)

    def _estimates(
        self, place: str, quantity: str, a: ValueWithInterval, b: ValueWithInterval, *, is_setting: bool
    ) -> None:
        is_interval = not is_setting and _is_same(a.value, b.value) and not _has_same_interval(a, b)
        if _is_same(a.value, b.value) and not is_interval:
            self.same += 1
            return
        difference = low = high = math.nan
        verdict: Verdict = "setting" if is_setting else "no interval"
        if isinstance(a.value, str | bool) or isinstance(b.value, str | bool):
            verdict = "setting" if is_setting else "differs"
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
    """Return the 95 % interval of B − A; a value outside its own interval has no margin on that side."""
    assert not isinstance(a.value, str)
    assert not isinstance(b.value, str)
    margins = [
        (max(side.value - side.low, 0.0), max(side.high - side.value, 0.0)) if side.has_interval else (0.0, 0.0)  # type: ignore[operator]
        for side in (a, b)
    ]
    (a_down, a_up), (b_down, b_up) = margins
    difference = b.value - a.value
    return difference - math.hypot(b_down, a_up), difference + math.hypot(b_up, a_down)


@dataclass(frozen=True, slots=True)
class _Intervals:
    """The intervals of a table by field, with dotted names for tables below; ``ends``: fields that hold the ends."""

    by_field: Mapping[str, tuple[float, float]]
    ends: frozenset[str]

    def estimate(self, key: str, value: Scalar) -> ValueWithInterval:
        low, high = self.by_field.get(key, (math.nan, math.nan))
        return ValueWithInterval(value=value, low=low, high=high)

    def below(self, key: str, table: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a table below this table, with the intervals that this table holds for it."""
        inner_ends = {
            name.removeprefix(f"{key}."): ends for name, ends in self.by_field.items() if name.startswith(f"{key}.")
        }
        return {**table, "interval": inner_ends} if inner_ends else table


def _intervals(table: Mapping[str, Any]) -> _Intervals:
    """Return the intervals in a table, recognised by the field names that routecast's documents use."""
    by_field: dict[str, tuple[float, float]] = {}
    ends: set[str] = set()
    stated = table.get("interval")
    if isinstance(stated, Mapping):
        ends.add("interval")
        by_field |= {name: (pair[0], pair[1]) for name, pair in stated.items() if _is_pair(pair)}
    for key, entry in table.items():
        for low, high in (("low", "high"), ("lower", "upper")):
            unit = key.removeprefix(low)
            if key == low or (key.startswith(f"{low}_") and f"{high}{unit}" in table):
                names = [f"{name}{unit}" for name in _INTERVAL_TARGETS]
                _add_interval(by_field, ends, table, (key, f"{high}{unit}"), names)
            elif key.endswith(f"_{low}"):
                stem = key.removesuffix(f"_{low}")
                _add_interval(by_field, ends, table, (key, f"{stem}_{high}"), (stem, f"{stem}_ratio"))
        if key.startswith("half_width") and _is_number(entry):
            unit = key.removeprefix("half_width")
            ends.add(key)
            target = next((f"{name}{unit}" for name in reversed(_INTERVAL_TARGETS) if f"{name}{unit}" in table), "")
            if _is_number(table.get(target)):
                by_field[target] = table[target] - entry, table[target] + entry
    for rate in ("forwarded_pps", "throughput_pps"):
        if rate in by_field and _is_number(table.get(rate)) and table[rate] > 0.0:
            low, high = (end / table[rate] for end in by_field[rate])
            by_field = {
                name: (low * table[name], high * table[name])
                for name in _PROPORTIONAL_FIELDS
                if _is_number(table.get(name))
            } | by_field
    offered_pps, loss_ratio = table.get("offered_pps"), table.get("loss_ratio")
    if (
        "forwarded_pps" in by_field
        and "loss_ratio" not in by_field
        and _is_number(loss_ratio)
        and _is_number(offered_pps)
        and offered_pps > 0.0  # type: ignore[operator]
    ):
        # The loss ratio is what the forwarded rate leaves of the offered load, which is exact.
        least, most = (1.0 - end / offered_pps for end in reversed(by_field["forwarded_pps"]))  # type: ignore[operator]
        by_field["loss_ratio"] = min(max(least, 0.0), loss_ratio), max(min(most, 1.0), loss_ratio)  # type: ignore[type-var,assignment]
    error, value = table.get("standard_error"), table.get("value")
    if "value" not in by_field and _is_number(error) and _is_number(value):
        by_field["value"] = value - _NORMAL_95 * error, value + _NORMAL_95 * error  # type: ignore[operator]
    return _Intervals(by_field, frozenset(ends))


def _add_interval(
    by_field: dict[str, tuple[float, float]],
    ends: set[str],
    table: Mapping[str, Any],
    pair: tuple[str, str],
    names: Sequence[str],
) -> None:
    """Add the interval between the fields ``pair`` to the first field of ``names`` that the table has."""
    own = [name for name in names if name in table]
    target = next((name for name in own if table[name] is not None), own[0] if own else None)
    if target is None or pair[1] not in table:
        return
    low, high = table[pair[0]], table[pair[1]]
    if _is_number(low) and _is_number(high):
        by_field.setdefault(target, (low, high))
    if not isinstance(low, Mapping | list):
        ends.update(pair)


def _repetition_mean(entry: object) -> ValueWithInterval | None:
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

    half_width = float(stdtrit(len(values) - 1, 0.975)) * stdev(values) / math.sqrt(len(values))
    return ValueWithInterval(value=mean, low=mean - half_width, high=mean + half_width)


def _row(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row with its naming fields (settings of a point, load of a trial) as its own fields."""
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
    for name in _NAMING_FIELDS:
        if not all(isinstance(row.get(name), Scalar) for row in (*a, *b)):
            continue
        more_counts = _distinct(a, [*names, name]), _distinct(b, [*names, name])
        if more_counts > counts and (more_counts[0] > counts[0] or more_counts[1] > counts[1]):
            names.append(name)
            counts = more_counts
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
