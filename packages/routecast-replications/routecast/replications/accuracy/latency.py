"""The accuracy of latencies over the load: published rows predicted from a few others of the same router.

Each source (:data:`routecast.replications.latency.tables.SOURCES`) is predicted with a prior that has not seen it, and
is scored beside simpler rules on the same rows (:func:`routecast.replications.latency.scores.scored`).

``routecast board --latency`` prints it. The scores of the last accepted version are kept in
``data/latency/recorded.json``; a test asserts that they do not get worse.
``python -m routecast.replications.accuracy.latency --record`` rewrites them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Literal

from routecast.evaluate.plain import plain
from routecast.progress import Progress
from routecast.quantity.whole_file import write_whole
from routecast.replications.accuracy.board import COVERAGE_RANGE, Weakness
from routecast.replications.latency.scores import QUESTIONS, Question, Score, scored
from routecast.replications.latency.tables import PublishedLatency, published_latencies

__all__ = ["LatencyBoard", "LatencyBoardResult", "run_latency_board"]

Kind = Literal["body", "tail"]
_KINDS: Final[Mapping[Kind, str]] = {"body": "p50 or mean", "tail": "p95, p99"}
_OURS: Final = "ours"
_MANY: Final = 90
"""Rows of which intervals that hold 95 % hold all by chance in a case of a hundred: 0.95^90."""
_RECORDED: Final = Path(str(files("routecast.replications") / "data" / "latency" / "recorded.json"))


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyBoardResult:
    """The score of a question on one source; ``kind``: its medians or means (``body``), or p95 and p99 (``tail``)."""

    kind: Kind
    question: Question
    score: Score

    @property
    def source(self) -> str:
        """Name of the source."""
        return self.score.source

    @property
    def statistic(self) -> str:
        """The statistics that are predicted."""
        return _KINDS[self.kind]

    @property
    def key(self) -> str:
        """What is predicted from what, as the record names it."""
        return f"{self.kind}: {self.question}"

    @property
    def recorded_values(self) -> dict[str, float]:
        """The values that must not grow."""
        return {"median_abs_error_ratio": self.score.errors[_OURS], "interval_score": self.score.winkler}

    @property
    def weaknesses(self) -> tuple[Weakness, ...]:
        """A coverage of 95 % intervals that is out of range, and a simpler rule with a smaller median error."""
        criteria = []
        least, most = COVERAGE_RANGE
        if self.score.held_95 < least or (self.score.held_95 > most and self.score.predictions >= _MANY):
            required = least if self.score.held_95 < least else most
            criteria.append(("coverage", self.score.held_95, required, "required"))
        rivals = {name: error for name, error in self.score.errors.items() if name != _OURS}
        best = min(rivals, key=lambda name: rivals[name])
        if self.score.errors[_OURS] > rivals[best]:
            criteria.append(("median error", self.score.errors[_OURS], rivals[best], best))
        return tuple(
            Weakness(
                pack=f"{self.source}, {self.statistic}: {self.question}",
                points=self.score.predictions,
                criterion=criterion,
                value=value,
                reference=reference,
                reference_name=name,
                is_ratio=True,
                repeats_to_ratio=None,
                is_stated=False,
            )
            for criterion, value, reference, name in criteria
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "statistic": self.statistic,
            "given_load_ratios": list(self.question.given),
            "predicted_load_ratios": [self.question.low, self.question.high],
            "predictions": self.score.predictions,
            "median_abs_error_ratio": self.score.errors[_OURS],
            "baselines": {name: error for name, error in self.score.errors.items() if name != _OURS},
            "coverage_95_ratio": self.score.held_95,
            "coverage_80_ratio": self.score.held_80,
            "interval_score": self.score.winkler,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyBoard:
    """The scores of all sources, and the recorded ones for comparison, by source and question."""

    results: tuple[LatencyBoardResult, ...]
    recorded: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)

    @property
    def sources(self) -> dict[str, tuple[LatencyBoardResult, ...]]:
        """The results by source."""
        names = dict.fromkeys(result.source for result in self.results)
        return {name: tuple(result for result in self.results if result.source == name) for name in names}

    @property
    def weaknesses(self) -> tuple[Weakness, ...]:
        """The weaknesses of all sources."""
        return tuple(weakness for results in self.sources.values() for row in results for weakness in row.weaknesses)

    def worse(self, tolerance_ratio: float = 0.05) -> dict[str, dict[str, tuple[float, float]]]:
        """Return the values that exceed the recorded ones by more than the tolerance: (now, recorded).

        The outer keys name the source, the statistics and the question; the inner ones the value.
        """
        increases: dict[str, dict[str, tuple[float, float]]] = {}
        for result in self.results:
            before = self.recorded.get(result.source, {}).get(result.key, {})
            for key, now in result.recorded_values.items():
                if key in before and now > before[key] * (1.0 + tolerance_ratio) + 1e-4:
                    increases.setdefault(f"{result.source}, {result.key}", {})[key] = (now, before[key])
        return increases

    def to_json(self) -> dict[str, Any]:
        """Return plain data for ``routecast board --latency --json``."""
        return {
            "sources": {name: [result.to_json() for result in results] for name, results in self.sources.items()},
            "weaknesses": plain(self.weaknesses),
            "worse": {
                name: {key: {"now": now, "recorded": before} for key, (now, before) in keys.items()}
                for name, keys in self.worse().items()
            },
        }


def run_latency_board(on_progress: Progress | None = None, *, sources: Sequence[str] | None = None) -> LatencyBoard:
    """Score every question on every source that can answer it.

    Parameters
    ----------
    on_progress : callable or None
    sources : sequence of str or None
        None: all.
    """
    latencies: dict[Kind, tuple[PublishedLatency, ...]] = {
        kind: tuple(row for row in published_latencies(kind) if sources is None or row.source in sources)
        for kind in _KINDS
    }
    wanted = [(kind, question) for kind in _KINDS for question in QUESTIONS]
    results: list[LatencyBoardResult] = []
    for done, (kind, question) in enumerate(wanted):
        if on_progress is not None:
            on_progress(done, len(wanted), f"{_KINDS[kind]}: {question}")
        results += (
            LatencyBoardResult(kind=kind, question=question, score=score) for score in scored(latencies[kind], question)
        )
    if on_progress is not None:
        on_progress(len(wanted), len(wanted), "")
    recorded = json.loads(_RECORDED.read_text(encoding="utf-8")) if _RECORDED.exists() else {}
    return LatencyBoard(results=tuple(results), recorded=recorded)


def _record(board: LatencyBoard) -> None:
    document = {
        name: {
            result.key: {key: round(value, 6) for key, value in result.recorded_values.items()} for result in results
        }
        for name, results in board.sources.items()
    }
    write_whole(_RECORDED, json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    import sys

    judged = run_latency_board()
    if "--record" in sys.argv[1:]:
        _record(judged)
    else:
        print(json.dumps(judged.to_json(), indent=2))
