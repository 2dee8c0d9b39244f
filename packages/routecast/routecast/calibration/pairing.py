"""Differences between predictions of one calibration, draw by draw.

Two predictions of one calibration share its error: where a core is faster than the point prediction says, it is faster
in both. Their difference is therefore known better than that of independent predictions. ::

    draw 1   A ──●──────     B ────●────      B/A − 1
    draw 2   A ────●────     B ──────●──      B/A − 1      2.5 % to 97.5 % of these: the interval
    …                                         …

A prediction is of one measurement. Two measurements have each their own noise, unless they are the same prediction. The
probability of a sizing is the mean of the probabilities of the drawn routers, whose difference is taken draw by draw. A
document holds its calibration as a recipe (:mod:`routecast.calibration.recipe`), which is fitted again; a fit that does
not give the intervals of the document (another machine or version) is not used.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from routecast.calibration.fitted import FittedRouter
from routecast.calibration.recipe import Recipe, point_of
from routecast.errors import RoutecastError
from routecast.evaluate.compare import PairedInterval, RowPair
from routecast.evaluate.points import Point
from routecast.load.frames import FrameMix

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["DrawPairing"]

_TOLERANCE_RATIO = 1e-6
"""Relative difference of an interval from that of the fit, within which the fit is that of the document."""
_CHANCE_TOLERANCE = 1e-3
"""Difference of a probability from that of the fit, within which it is that of the fit; draws depend on the points."""
_MAX_POINTS = 200
"""Conditions that are drawn together: the cost grows with their cube."""
_TAILS = (0.025, 0.975)
_PROBABILITY = "probability"
_RATES = ("predicted_pps", "solved_pps", "simulated_pps", "rate_pps")
_CLOCK_SLACK_RATIO = 1.01
"""Greatest measured rate over line rate, where a study cuts its intervals."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A predicted row of a document: its conditions, its prediction with the 95 % interval, frames/s.

    ``probability``: that one measurement reaches ``goal_pps``; NaN where the row has none.
    """

    point: Point
    predicted_pps: float
    low_pps: float
    high_pps: float
    probability: float = math.nan
    goal_pps: float = math.nan

    @property
    def has_probability(self) -> bool:
        """Whether the row has a probability, and the document says of which rate."""
        return math.isfinite(self.probability) and math.isfinite(self.goal_pps)


class DrawPairing:
    """The differences between predictions of two documents; ``remark`` says what calibrated the two."""

    def __init__(self, a: Mapping[str, Any], b: Mapping[str, Any], *, names: tuple[str, str] = ("A", "B")) -> None:
        # Rows are known by their identity, so the documents have to stay.
        self._documents = a, b
        self._calibrations = {id(row): calibration for document in (a, b) for row, calibration in _predicted(document)}
        self._goals_pps = {id(row): goal_pps for document in (a, b) for row, goal_pps in _with_goals(document)}
        self._fitted: dict[str, FittedRouter | None] = {}
        self.remark = _remark(a, b, names)

    def intervals(self, pairs: Sequence[RowPair]) -> list[PairedInterval | None]:
        """Return the interval of the difference of each pair of rows; None where the two are independent."""
        paired: list[PairedInterval | None] = [None] * len(pairs)
        shared: dict[tuple[str, str], list[tuple[int, _Row, _Row]]] = {}
        recipes: dict[str, Mapping[str, Any]] = {}
        for index, pair in enumerate(pairs):
            own, other = (self._calibrations.get(id(row), {}) for row in (pair.a, pair.b))
            digest = own.get("digest")
            row_a, row_b = (
                _row(row, calibration.get("conditions"), self._goals_pps.get(id(row), math.nan))
                for row, calibration in ((pair.a, own), (pair.b, other))
            )
            if pair.quantity not in {_rate_of(pair.a), _PROBABILITY} or not digest or digest != other.get("digest"):
                continue
            if row_a is None or row_b is None:
                continue
            if pair.quantity == _PROBABILITY and not (row_a.has_probability and row_b.has_probability):
                continue
            recipes[str(digest)] = own
            kind = _PROBABILITY if pair.quantity == _PROBABILITY else "rate"
            shared.setdefault((str(digest), kind), []).append((index, row_a, row_b))
        for (digest, kind), known in shared.items():
            router = self._router(recipes[digest])
            if router is None:
                continue
            step = _MAX_POINTS // 2
            for start in range(0, len(known), step):
                part = known[start : start + step]
                drawn = self._drawn(router, [(a, b) for _, a, b in part], of_chances=kind == _PROBABILITY)
                for (index, _, _), interval in zip(part, drawn, strict=True):
                    paired[index] = interval
            if kind != _PROBABILITY and all(paired[index] is None for index, _, _ in known):
                self.remark = (
                    "pairing not known: calibrated again, the points give other intervals than the results have, so "
                    "they are compared as independent"
                )
        return paired

    def _router(self, calibration: Mapping[str, Any]) -> FittedRouter | None:
        """Return the router of a calibration; None if this machine and version fit another one."""
        digest = str(calibration["digest"])
        if digest not in self._fitted:
            self._fitted[digest] = None
            try:
                recipe = Recipe.of_json(calibration)
                if recipe.digest == digest:
                    self._fitted[digest] = recipe.fitted()
                else:
                    self.remark = (
                        "pairing not known: another version of routecast calibrated the results, so they are compared "
                        "as independent"
                    )
            except RoutecastError as problem:
                self.remark = (
                    f"pairing not known: the calibration cannot be repeated ({problem}), so the results are compared "
                    "as independent"
                )
        return self._fitted[digest]

    @staticmethod
    def _drawn(
        router: FittedRouter, pairs: Sequence[tuple[_Row, _Row]], *, of_chances: bool
    ) -> list[PairedInterval | None]:
        rows = [row for pair in pairs for row in pair]
        points = {_key(row.point): row.point for row in rows}
        column = {key: index for index, key in enumerate(points)}
        predictions = dict(zip(points, router.predict(list(points.values())), strict=True))
        chances = (
            router.chance_draws([row.point for row in rows], [row.goal_pps for row in rows]) if of_chances else None
        )
        draws_pps = router.joint_rates_pps(list(points.values())) if chances is None else np.empty((0, len(points)))
        intervals: list[PairedInterval | None] = []
        for number, pair in enumerate(pairs):
            drawn = []
            for row in pair:
                key = _key(row.point)
                prediction = predictions[key]
                # A study's rate is that of an evaluator; its interval is the law's, moved with it.
                shift = row.predicted_pps / prediction.predicted
                ends = prediction.low_pps * shift, prediction.high_pps * shift
                cut_pps = _CLOCK_SLACK_RATIO * row.point.line_rate_pps
                if not _is_near(row.low_pps, ends[0]) or not (
                    _is_near(row.high_pps, ends[1]) or _is_near(row.high_pps, min(ends[1], cut_pps))
                ):
                    break
                drawn.append(np.minimum(draws_pps[:, column[key]] * shift, cut_pps))
            if len(drawn) < len(pair):
                intervals.append(None)
            elif chances is None:
                intervals.append(_interval(*pair, *drawn))
            elif not all(_is_of_fit(router, row) for row in pair):
                intervals.append(None)
            else:
                intervals.append(_chance_interval(*pair, chances[:, 2 * number + 1] - chances[:, 2 * number]))
        return intervals


def _interval(a: _Row, b: _Row, drawn_a: Floats, drawn_b: Floats) -> PairedInterval:
    """Return the 95 % intervals of B − A and of B/A − 1, with the difference of the point predictions inside."""
    difference, ratio = b.predicted_pps - a.predicted_pps, b.predicted_pps / a.predicted_pps - 1.0
    low, high = map(float, np.quantile(drawn_b - drawn_a, _TAILS))
    ratio_low, ratio_high = (float(end) - 1.0 for end in np.quantile(drawn_b / drawn_a, _TAILS))
    return PairedInterval(
        low=min(low, difference),
        high=max(high, difference),
        ratio_low=min(ratio_low, ratio),
        ratio_high=max(ratio_high, ratio),
    )


def _chance_interval(a: _Row, b: _Row, drawn: Floats) -> PairedInterval:
    """Return the 95 % intervals of the difference of two probabilities, and of that over A."""
    difference = b.probability - a.probability
    low, high = map(float, np.quantile(drawn, _TAILS))
    low, high = min(low, difference), max(high, difference)
    scale = 1.0 / a.probability if a.probability > 0.0 else math.nan
    return PairedInterval(low=low, high=high, ratio_low=low * scale, ratio_high=high * scale)


def _is_of_fit(router: FittedRouter, row: _Row) -> bool:
    """Return whether a probability is that of the calibration alone, and not that of rows which measured its cores."""
    (chance,) = router.chances([row.point], row.goal_pps)
    return math.isclose(row.probability, chance, rel_tol=0.0, abs_tol=_CHANCE_TOLERANCE)


def _is_near(stated: float, fitted: float) -> bool:
    return math.isclose(stated, fitted, rel_tol=_TOLERANCE_RATIO)


def _key(point: Point) -> tuple[object, ...]:
    return replace(point, series="").conditions


def _remark(a: Mapping[str, Any], b: Mapping[str, Any], names: tuple[str, str]) -> str:
    """Return what the predictions of two documents share, in words; empty where one has none."""
    calibrations = [[calibration for _, calibration in _predicted(document)] for document in (a, b)]
    if not all(calibrations):
        return ""
    silent = [name for name, own in zip(names, calibrations, strict=True) if not any(own)]
    if silent:
        verb = "do" if len(silent) > 1 else "does"
        return (
            f"pairing not known: {' and '.join(silent)} {verb} not say what calibrated the predictions, so they are "
            "compared as independent"
        )
    digests = [{calibration.get("digest") for calibration in own if calibration} for own in calibrations]
    if not digests[0] & digests[1]:
        return "the predictions are of different calibrations, so they are compared as independent"
    if digests[0] != digests[1]:
        return "predictions of one calibration are compared draw by draw, those of different ones as independent"
    return "the predictions are of one calibration, and are compared draw by draw"


def _predicted(
    entry: object, calibrations: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Yield the predicted rows in a document, each with its calibration, which is empty where it is not said.

    ``calibrations``: those around the entry, by series.
    """
    if isinstance(entry, Mapping):
        own = entry.get("calibrations")
        if isinstance(own, list):
            calibrations = {str(each.get("series", "")): each for each in own if isinstance(each, Mapping)}
        if _rate_of(entry) is not None:
            yield entry, calibrations.get(str(entry.get("series", "")), calibrations.get("", {}))
        for key, part in entry.items():
            if key != "calibrations":
                yield from _predicted(part, calibrations)
    elif isinstance(entry, list):
        for part in entry:
            yield from _predicted(part, calibrations)


def _with_goals(entry: object, goal_pps: float = math.nan) -> Iterator[tuple[Mapping[str, Any], float]]:
    """Yield the tables in a document that have a probability, with the rate to reach, frames/s."""
    if isinstance(entry, Mapping):
        target = entry.get("target")
        if isinstance(target, Mapping) and _is_rate(target.get("forwarded_pps")):
            goal_pps = float(target["forwarded_pps"])
        if _PROBABILITY in entry:
            yield entry, goal_pps
    for part in entry.values() if isinstance(entry, Mapping) else entry if isinstance(entry, list) else ():
        yield from _with_goals(part, goal_pps)


def _rate_of(row: Mapping[str, Any]) -> str | None:
    """Return the name of a row's predicted rate; None for what is no prediction with an interval."""
    if "cores" not in row or not _is_rate(row.get("low_pps")) or not _is_rate(row.get("high_pps")):
        return None
    return next((name for name in _RATES if _is_rate(row.get(name))), None)


def _row(row: Mapping[str, Any], stated: object, goal_pps: float) -> _Row | None:
    """Return a predicted row; None without an interval, or where its conditions are not known.

    ``stated``: the conditions of all rows of the document but the number of cores, if it states them; ``goal_pps``: the
    rate of its probability.
    """
    rate = _rate_of(row)
    if rate is None:
        return None
    conditions = row.get("conditions", stated)
    try:
        if isinstance(conditions, Mapping):
            point = point_of({**conditions, "cores": row["cores"]})
        else:
            point = point_of({key: row.get(key) for key in _CONDITIONS})
            mix = FrameMix.parse(row["frames"]) if "frames" in row else FrameMix.fixed(int(row["frame_bytes"]))
            if not mix.is_fixed:
                point = replace(point, frame_mix=mix, frame_bytes=mix.mean_bytes)
    except (KeyError, TypeError, ValueError, RoutecastError):
        return None
    probability = row.get(_PROBABILITY)
    chance = float(probability) if isinstance(probability, int | float) else math.nan
    return _Row(point, float(row[rate]), float(row["low_pps"]), float(row["high_pps"]), chance, goal_pps)


_CONDITIONS = ("cores", "frame_bytes", "flows", "link_bps", "ports", "nic_cap_pps")


def _is_rate(entry: object) -> bool:
    return isinstance(entry, int | float) and not isinstance(entry, bool) and math.isfinite(entry) and entry > 0.0
