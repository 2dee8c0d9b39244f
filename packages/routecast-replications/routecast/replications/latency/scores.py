"""How well a curve predicts latencies at loads that it was not given, each source without its own part of the prior."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Final

import numpy as np

from routecast.calibration.latency import Curve, LatencyPrior, LatencyRow, fit_curve, prior_of
from routecast.replications.latency.tables import PublishedLatency

__all__ = ["QUESTIONS", "Question", "Score", "Tally", "scored"]

_NEAR: Final = 0.13
"""A row stands for a load that lies within this share of the capacity."""
_SAME: Final = 0.02
_PROBABILITIES: Final = (0.025, 0.1, 0.5, 0.9, 0.975)


@dataclass(frozen=True, slots=True)
class Question:
    """Rows near ``given`` are known; those with loads of ``low`` to ``high`` are predicted."""

    given: tuple[float, ...]
    low: float
    high: float

    def __str__(self) -> str:
        loads = ", ".join(f"{100.0 * load:g}" for load in self.given)
        return f"{loads} % -> {100.0 * self.low:g}-{100.0 * self.high:g} %"


QUESTIONS: Final = (
    Question((0.1,), 0.3, 0.7),
    Question((0.1, 0.5), 0.7, 0.94),
    Question((0.1, 1.0), 0.3, 0.7),
    Question((0.1, 1.0), 0.7, 0.94),
    Question((0.1, 0.5, 1.0), 0.3, 0.7),
    Question((0.1, 0.5, 1.0), 0.7, 0.94),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What predictions of one source came to.

    ``errors``: medians of absolute errors, by predictor, relative. ``held_95`` and ``held_80``: shares of the rows
    inside the intervals. ``winkler``: mean score of the 95 % intervals of the logarithm (width, and 40 times what lies
    outside).
    """

    source: str
    predictions: int
    errors: Mapping[str, float]
    held_95: float
    held_80: float
    winkler: float


class Tally:
    """Predictions of one source beside what was measured, as they come."""

    def __init__(self) -> None:
        self._errors: dict[str, list[float]] = {}
        self._held: dict[float, list[bool]] = {0.95: [], 0.8: []}
        self._winkler: list[float] = []

    def add(self, curve: Curve, row: LatencyRow, rivals: Mapping[str, float]) -> None:
        """Add a measured row, which the curve has not seen, and what rivals say of it, as logarithms."""
        low, low_80, middle, high_80, high = np.log(curve.quantiles_s(row.load_ratio, _PROBABILITIES)).tolist()
        truth = math.log(row.latency_s)
        for name, log in {"ours": middle, **rivals}.items():
            self._errors.setdefault(name, []).append(abs(math.exp(log - truth) - 1.0))
        self._held[0.95].append(low <= truth <= high)
        self._held[0.8].append(low_80 <= truth <= high_80)
        self._winkler.append(high - low + 40.0 * (max(low - truth, 0.0) + max(truth - high, 0.0)))

    def score(self, source: str) -> Score | None:
        """Return what the predictions came to; None without any."""
        if not self._winkler:
            return None
        return Score(
            source=source,
            predictions=len(self._winkler),
            errors={name: median(values) for name, values in self._errors.items()},
            held_95=fmean(self._held[0.95]),
            held_80=fmean(self._held[0.8]),
            winkler=fmean(self._winkler),
        )


def scored(
    latencies: Sequence[PublishedLatency],
    question: Question,
    *,
    prior: Callable[[PublishedLatency], LatencyPrior] = lambda latency: prior_of(
        latency.statistic, latency.source, rate_kind=latency.rate_kind
    ),
) -> Iterator[Score]:
    """Yield the score of each source in which some router has the rows that a question gives and asks for."""
    for source in dict.fromkeys(latency.source for latency in latencies):
        tally = Tally()
        for latency in latencies:
            known, wanted = _split(latency, question) if latency.source == source else ((), ())
            if not known or not wanted:
                continue
            curve = fit_curve(known, prior(latency), frame_s=latency.frame_s)
            for row in wanted:
                tally.add(curve, row, _rivals(known, row.load_ratio))
        if (score := tally.score(source)) is not None:
            yield score


def _split(latency: PublishedLatency, question: Question) -> tuple[tuple[LatencyRow, ...], tuple[LatencyRow, ...]]:
    known: list[LatencyRow] = []
    for load in question.given:
        nearest = min(latency.rows, key=lambda row: abs(row.load_ratio - load))
        if abs(nearest.load_ratio - load) > _NEAR or nearest in known:
            return (), ()
        known.append(nearest)
    loads = [row.load_ratio for row in known]
    wanted = tuple(
        row
        for row in latency.rows
        if question.low <= row.load_ratio <= question.high and all(abs(row.load_ratio - load) > _SAME for load in loads)
    )
    return tuple(known), wanted


def _rivals(known: Sequence[LatencyRow], load_ratio: float) -> dict[str, float]:
    """Return what simpler rules say, as logarithms."""
    loads = np.array([row.load_ratio for row in known])
    logs = np.log([row.latency_s for row in known])
    nearest = float(logs[np.abs(loads - load_ratio).argmin()])
    rivals = {"nearest row": nearest, "log-linear": nearest}
    if len(known) > 1:
        rivals["log-linear"] = float(np.interp(load_ratio, loads, logs))
    full = np.minimum(loads, 0.99)
    rivals["M/M/1"] = float(logs[0] + math.log((1.0 - full[0]) / (1.0 - min(load_ratio, 0.99))))
    if len(known) > 1:
        terms = full / (1.0 - full)
        level, slope = np.polynomial.polynomial.polyfit(terms, np.exp(logs), 1)
        at = min(load_ratio, 0.99)
        rivals["offset + queue"] = math.log(max(level + slope * at / (1.0 - at), 1e-9))
    else:
        rivals["offset + queue"] = nearest
    return rivals
