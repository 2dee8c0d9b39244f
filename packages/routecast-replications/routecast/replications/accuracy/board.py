"""The accuracy board: predictions of routecast and of naive baselines at public measurements not used in calibration.

The routers of a source are predicted with priors learnt without that source.

``routecast board`` prints it. The errors of the last accepted version are kept in ``data/packs/recorded.json``; a test
asserts that they do not get worse. ``python -m routecast.replications.accuracy.board`` prints the board as JSON, and

* with ``--record`` it rewrites the recorded errors,
* with ``--learn`` it learns the priors anew, from all sources and without each
  (:mod:`routecast.replications.accuracy.learning`), with ``--hazards`` those of unseen ceilings alone,
* with ``--without KEY,KEY`` it withholds these facts about the machines from routecast and from the baselines
  (:mod:`routecast.replications.accuracy.packs` names them; ``testbed``: series are fitted apart).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median, stdev
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from routecast.calibration import FittedRouter, fit, is_capped, shared_poll
from routecast.calibration.forward import POLL_SHAPE
from routecast.calibration.priors import read_priors
from routecast.evaluate.plain import plain
from routecast.evaluate.points import Point
from routecast.progress import Progress
from routecast.quantity.comparison import ComparedRow, Intervals, summarise
from routecast.quantity.whole_file import write_whole
from routecast.replications.accuracy._baselines import BASELINES, predict_baselines
from routecast.replications.accuracy._chain import fit_chain, linear_chain, read_chain_points
from routecast.replications.accuracy.learning import write_hazards, write_priors
from routecast.replications.accuracy.packs import MEASURED, PACKS, Pack, read_packs, split, table_points

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["COVERAGE_RANGE", "Board", "Group", "Weakness", "calibrated_series", "run_board"]


COVERAGE_RANGE = (0.92, 0.99)
"""Share of the points of a pack inside 95 % intervals: below the range intervals are too narrow, above too wide."""
RECORDED = PACKS / "recorded.json"
_RECORDED_KEYS = ("mean_abs_error_ratio", "median_abs_error_ratio", "p90_abs_error_ratio", "max_abs_error_ratio")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutRow(ComparedRow[str]):
    """One held-out point of a series, frames or bytes per second, with the predictions of the baselines.

    ``is_at_line_rate`` is true if a link or a card limits the measured rate.
    """

    series: str
    baselines: Mapping[str, ComparedRow[str]]
    calibrating_points: int
    is_at_line_rate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A group of held-out points."""

    name: str
    rows: tuple[HeldOutRow, ...]

    @property
    def summary(self) -> dict[str, float]:
        """Errors of routecast, and the quality of its intervals (:func:`routecast.quantity.comparison.summarise`)."""
        return summarise(self.rows)

    @property
    def baselines(self) -> dict[str, dict[str, float]]:
        """Errors and quality of intervals of each baseline that predicts every point."""
        return {
            name: summarise([row.baselines[name] for row in self.rows])
            for name in BASELINES
            if self.rows and all(name in row.baselines for row in self.rows)
        }

    def best_baseline(self, key: str = "median_abs_error_ratio") -> tuple[str, float]:
        """Return the baseline with the smallest value of a summary, and that value."""
        values = {name: summary[key] for name, summary in self.baselines.items()}
        best = min(values, key=lambda name: values[name])
        return best, values[best]

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {"name": self.name, **self.summary, "baselines": self.baselines}


@dataclass(frozen=True, slots=True, kw_only=True)
class Weakness:
    """A criterion that the board misses on a pack, or for which the best single law has a better value.

    ``reference`` is the end of the required range or the value of the single law, and ``reference_name`` is "required"
    or the law. ``repeats_to_ratio`` is the spread of repeated measurements, measured or stated by the pack
    (``is_stated``).
    """

    pack: str
    points: int
    criterion: str
    value: float
    reference: float
    reference_name: str
    is_ratio: bool
    repeats_to_ratio: float | None
    is_stated: bool

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {
            "pack": self.pack,
            "points": self.points,
            "what": self.criterion,
            "ours": self.value,
            "instead": self.reference,
            "by": self.reference_name,
            "is_ratio": self.is_ratio,
            "repeats_to_ratio": self.repeats_to_ratio,
            "is_stated": self.is_stated,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PackResult:
    """A pack with predictions at its held-out points."""

    pack: Pack
    rows: tuple[HeldOutRow, ...]

    @property
    def name(self) -> str:
        """Name of the pack."""
        return self.pack.name

    @property
    def group(self) -> Group:
        """All held-out points."""
        return Group(name=self.name, rows=self.rows)

    @property
    def held_out(self) -> int:
        """Number of held-out points."""
        return len(self.rows)

    @property
    def repeats_to_ratio(self) -> tuple[float | None, bool]:
        """Standard deviation of a repeated measurement over its mean (None: unknown), and whether it is stated."""
        if self.pack.kind == "chain":
            errors = [
                point.standard_error_ratio
                for point in read_chain_points(MEASURED / self.pack.file)
                if self.pack.uses(point.series) and point.standard_error_ratio
            ]
            return (median(errors), False) if errors else (self.pack.noise_ratio, True)
        logs: dict[tuple[object, ...], list[float]] = {}
        for point in table_points(self.pack):
            logs.setdefault((point.series, *point.conditions), []).append(math.log(point.throughput_pps))
        spreads = [stdev(values) for values in logs.values() if len(values) > 1]
        return (median(spreads), False) if spreads else (self.pack.noise_ratio, True)

    @property
    def weaknesses(self) -> tuple[Weakness, ...]:
        """Criteria whose coverage of 95 % intervals is out of range, or for which a single law is better."""
        group = self.group
        summary = group.summary
        coverage = summary["coverage_95_ratio"]
        min_coverage, max_coverage = COVERAGE_RANGE
        criteria = []
        if not min_coverage <= coverage <= max_coverage:
            required = min_coverage if coverage < min_coverage else max_coverage
            criteria.append(("coverage", coverage, required, "required", True))
        for key, name in (("median_abs_error_ratio", "median error"), ("interval_score", "score")):
            law, reference = group.best_baseline(key)
            if summary[key] > reference:
                criteria.append((name, summary[key], reference, law, key.endswith("_ratio")))
        repeats_to_ratio, is_stated = self.repeats_to_ratio
        return tuple(
            Weakness(
                pack=self.name,
                points=self.held_out,
                criterion=criterion,
                value=value,
                reference=reference,
                reference_name=reference_name,
                is_ratio=is_ratio,
                repeats_to_ratio=repeats_to_ratio,
                is_stated=is_stated,
            )
            for criterion, value, reference, reference_name, is_ratio in criteria
        )

    @property
    def targets(self) -> dict[str, tuple[float, bool]]:
        """Targets of the pack, and whether they are met. ``half_of_best_baseline`` refers to medians."""
        summary, limits = self.group.summary, {}
        for key, limit in (self.pack.target or {}).items():
            if key == "half_of_best_baseline":
                half = 0.5 * self.group.best_baseline()[1]
                limits[key] = (half, summary["median_abs_error_ratio"] <= half)
            else:
                limits[key] = (limit, summary[key] <= limit)
        return limits

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            **self.group.to_json(),
            "title": self.pack.title,
            "citation": self.pack.citation,
            "licence": self.pack.licence,
            "series": len({row.series for row in self.rows}),
            "most_calibrating_points": max(row.calibrating_points for row in self.rows),
            "targets": {key: {"limit": limit, "kept": kept} for key, (limit, kept) in self.targets.items()},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """The results of all packs, and the recorded errors for comparison."""

    packs: tuple[PackResult, ...]
    recorded: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def weaknesses(self) -> tuple[Weakness, ...]:
        """The weaknesses of all packs."""
        return tuple(weakness for pack in self.packs for weakness in pack.weaknesses)

    @property
    def held_out(self) -> int:
        """Number of held-out points of all packs."""
        return sum(pack.held_out for pack in self.packs)

    @property
    def groups(self) -> tuple[Group, ...]:
        """Points below line rate by source, of all routers and of all packs, and points at line rate."""
        by_source: dict[str, list[HeldOutRow]] = {}
        routers: list[HeldOutRow] = []
        for pack in self.packs:
            below_line_rate = [row for row in pack.rows if not row.is_at_line_rate]
            by_source.setdefault(pack.pack.file.removesuffix(".csv"), []).extend(below_line_rate)
            if pack.pack.kind == "multicore":
                routers += below_line_rate
        all_rows = [row for pack in self.packs for row in pack.rows]
        rows_by_group = {
            **by_source,
            "all routers": routers,
            "all": [row for row in all_rows if not row.is_at_line_rate],
            "at line rate": [row for row in all_rows if row.is_at_line_rate],
        }
        return tuple(Group(name=name, rows=tuple(rows)) for name, rows in rows_by_group.items() if rows)

    def worse(self, tolerance_ratio: float = 0.05) -> dict[str, dict[str, tuple[float, float]]]:
        """Return the errors that exceed the recorded ones by more than the tolerance: (now, recorded) by pack, key."""
        increases: dict[str, dict[str, tuple[float, float]]] = {}
        for pack in self.packs:
            before, now = self.recorded.get(pack.name, {}), pack.group.summary
            for key in _RECORDED_KEYS:
                if key in before and now[key] > before[key] * (1.0 + tolerance_ratio) + 1e-4:
                    increases.setdefault(pack.name, {})[key] = (now[key], before[key])
        return increases

    def to_json(self) -> dict[str, Any]:
        """Return plain data for ``routecast board --json``."""
        return {
            "packs": [pack.to_json() for pack in self.packs],
            "held_out": self.held_out,
            "weaknesses": plain(self.weaknesses),
            "groups": [group.to_json() for group in self.groups],
            "recorded": {name: dict(values) for name, values in self.recorded.items()},
            "worse": {
                name: {key: {"now": now, "recorded": before} for key, (now, before) in keys.items()}
                for name, keys in self.worse().items()
            },
        }


def run_board(on_progress: Progress | None = None, *, packs: Sequence[Pack] | None = None, seed: int = 0) -> Board:
    """Run every pack.

    Parameters
    ----------
    on_progress : callable or None
    packs : sequence of Pack or None
        None: the shipped packs.
    seed : int
    """
    chosen = read_packs() if packs is None else tuple(packs)
    results = []
    for done, pack in enumerate(chosen):
        if on_progress is not None:
            on_progress(done, len(chosen), pack.title)
        rows = _chain_rows(pack, seed) if pack.kind == "chain" else _router_rows(pack, seed)
        results.append(PackResult(pack=pack, rows=tuple(rows)))
    if on_progress is not None:
        on_progress(len(chosen), len(chosen), "")
    recorded = json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() else {}
    return Board(packs=tuple(results), recorded=recorded)


def calibrated_series(pack: Pack, seed: int = 0) -> Iterator[tuple[FittedRouter, list[Point], list[Point]]]:
    """Yield each series' router, with priors learnt without its source, and its calibrating and held-out points."""
    rows = split(pack, table_points(pack))
    poll, priors = POLL_SHAPE, read_priors(without=pack.file)
    if pack.testbed:
        series = [points for points, _ in rows.values()]
        poll = shared_poll(series, noise_ratio=pack.noise_ratio, priors=priors)
    for name, (calibrating, held_out) in rows.items():
        fitted = fit(
            calibrating,
            series=name,
            laws=pack.laws(name),
            seed=seed,
            noise_ratio=pack.noise_ratio,
            poll=poll,
            priors=priors,
        )
        yield fitted, calibrating, held_out


def _router_rows(pack: Pack, seed: int) -> Iterator[HeldOutRow]:
    for fitted, calibrating, held_out in calibrated_series(pack, seed):
        naive = predict_baselines(calibrating, held_out)
        for index, prediction in enumerate(fitted.predict(held_out)):
            point = prediction.point
            flows = "" if point.flows is None else f", {point.flows} flow{'s' if point.flows > 1 else ''}"
            frames = point.frame_mix.name if point.frame_mix else f"{point.frame_bytes:g} B"
            yield _row(
                prediction,
                {name: values[index] for name, values in naive.items()},
                f"{point.cores} core{'s' if point.cores > 1 else ''}{flows}, {frames}",
                series=fitted.series,
                calibrating_points=len({calibrating_point.conditions for calibrating_point in calibrating}),
                is_at_line_rate=is_capped(point),
            )


def _chain_rows(pack: Pack, seed: int) -> Iterator[HeldOutRow]:
    points = [point for point in read_chain_points(MEASURED / pack.file) if pack.uses(point.series)]
    for name in dict.fromkeys(point.series for point in points):
        members = [point for point in points if point.series == name]
        max_quota = max(max(point.quotas) for point in members)
        selected = [
            tuple(max_quota if q == "largest" else q for q in selector["quotas"]) for selector in pack.calibrate
        ]
        calibrating = [point for point in members if point.quotas in selected]
        held_out = [point for point in members if point.quotas not in selected]
        fitted = fit_chain(calibrating, noise_ratio=pack.noise_ratio, seed=seed)
        naive = linear_chain(calibrating, held_out)
        for prediction, linear in zip(fitted.predict(held_out), naive, strict=True):
            yield _row(
                prediction,
                {"linear": linear},
                "quotas " + ", ".join(f"{quota:g}" for quota in prediction.conditions.quotas),
                series=name,
                calibrating_points=len(calibrating),
            )


def _row(
    prediction: ComparedRow[Any], baselines: Mapping[str, tuple[float, Intervals]], conditions: str, **more: Any
) -> HeldOutRow:
    """Return the row of a prediction and the baselines at one point; ``more``: the other fields of the row."""
    return HeldOutRow(
        conditions=conditions,
        measured=prediction.measured,
        predicted=prediction.predicted,
        intervals=prediction.intervals,
        baselines={
            name: ComparedRow(conditions=conditions, measured=prediction.measured, predicted=value, intervals=ends)
            for name, (value, ends) in baselines.items()
        },
        **more,
    )


def _record(board: Board) -> None:
    text = json.dumps(
        {pack.name: {key: round(pack.group.summary[key], 6) for key in _RECORDED_KEYS} for pack in board.packs},
        indent=2,
    )
    write_whole(RECORDED, text + "\n")


def packs_without_facts(keys: Sequence[str]) -> list[Pack]:
    """Return the packs without the facts of these keys about their machines (``testbed`` is a key)."""
    return [
        replace(
            pack,
            testbed=pack.testbed and "testbed" not in keys,
            known=tuple({key: value for key, value in facts.items() if key not in keys} for facts in pack.known),
        )
        for pack in read_packs()
    ]


def _main(arguments: Sequence[str]) -> None:
    if "--record" in arguments:
        _record(run_board())
    elif "--learn" in arguments:
        write_priors()
    elif "--hazards" in arguments:
        write_hazards()
    elif "--without" in arguments:
        keys = arguments[arguments.index("--without") + 1].split(",")
        print(json.dumps(run_board(packs=packs_without_facts(keys)).to_json(), indent=2))
    else:
        print(json.dumps(run_board().to_json(), indent=2))


if __name__ == "__main__":
    import sys

    _main(sys.argv[1:])
