"""The accuracy board: routecast and naive baselines on public measurements that calibration has not seen.

The routers of a source are predicted with priors that were learnt without it.

``routecast board`` prints it. The errors of the last accepted version are kept in ``data/packs/recorded.json``; a test
asserts that they do not get worse. ``python -m routecast.calibration.board`` prints the board as JSON, and

* with ``--record`` it rewrites the recorded errors,
* with ``--learn`` it learns the priors anew, of all sources and without each (:mod:`routecast.calibration.priors`),
* with ``--without KEY,KEY`` it tells neither routecast nor the baselines these facts about the machines
  (:mod:`routecast.calibration.packs` names them; ``testbed``: series are fitted apart).
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median, stdev
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from routecast.calibration._baselines import BASELINES, bootstrap, predict_baselines
from routecast.calibration._discrepancy import is_capped
from routecast.calibration._fit import FittedRouter, fit, law_evidence
from routecast.calibration._posterior import Posterior, sample_posterior, weighted_quantiles
from routecast.calibration.forward import POLL_SHAPE
from routecast.calibration.packs import DATA, Pack, read_packs, split, table_points
from routecast.calibration.priors import Priors, read_priors, write_priors
from routecast.calibration.score import intervals
from routecast.contention import LAWS, Shape
from routecast.errors import FitProblem
from routecast.evaluate.points import Point
from routecast.progress import Progress
from routecast.quantity.comparison import ComparedRow, Intervals, summarise

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = [
    "Board",
    "ChainPoint",
    "Group",
    "calibrated_series",
    "fit_chain",
    "read_chain_points",
    "run_board",
    "shared_poll",
]


_GRID = tuple(float(cost) for cost in np.linspace(-0.1, 0.2, 16))
_FIXED_SD = 1e-6
_FINEST_SD = 0.005


def shared_poll(
    series: Sequence[Sequence[Point]], *, noise_ratio: float | None = None, priors: Priors | None = None
) -> Shape:
    """Return the cost of polling that the calibration points of all series support, as a prior for each.

    The series of one test bed are fitted with one cost of polling a further queue.

    How much a frame costs more on a core that polls several ports (:mod:`routecast.evaluate.points`) is a property of
    the poll loop, not of the function under test. A single series cannot tell it from contention: two cores that pass
    2.0 times the rate of one may poll cheaply, or gain 5 % by polling less and lose them to each other. Many series
    can. The cost is therefore estimated from the calibration points of all series of a test bed together by its
    marginal likelihood (empirical Bayes, Robbins 1956; Carlin and Louis 2000, ch. 3)::

        p(cost | points) ∝ N(cost; prior) · Π_series Σ_laws w_law Z_law(series | cost)

    and its mean and standard deviation make the prior with which each series is then fitted by itself.

    Where no series has points with different numbers of queues, it is the usual prior.
    """
    polling = [
        points
        for points in series
        if len({each.layout.further_queues(each.working_cores, each.ports) for each in points}) > 1
    ]
    if not polling:
        return POLL_SHAPE
    cost = np.array(_GRID)
    fixed = [replace(POLL_SHAPE, mean=each, sd=_FIXED_SD) for each in _GRID]
    score = -0.5 * ((cost - POLL_SHAPE.mean) / POLL_SHAPE.sd) ** 2
    for points in polling:
        by_law = [
            math.log(weight) + law_evidence(LAWS[law], points, polls=fixed, noise_ratio=noise_ratio)
            for law, weight in (priors or read_priors()).laws.items()
        ]
        score = score + np.logaddexp.reduce(by_law, axis=0)
    weight = np.exp(score - score.max())
    mean = float(np.average(cost, weights=weight))
    sd = math.sqrt(float(np.average((cost - mean) ** 2, weights=weight)))
    return replace(POLL_SHAPE, mean=mean, sd=max(sd, _FINEST_SD))


_DRAWS = 1000
_NOISE_COPIES = 8
_LEAST_SHARE = 1e-3
_RATE_SD = 3.0
_LOSS, _LOSS_SD = math.log(0.02), 0.7
_CEILING_FACTOR, _CEILING_SD = math.log(3.0), 1.1
_SHARPNESS, _SHARPNESS_SD = 2.5, 0.5
_NOISE_RATIO = 0.02
_LEAST_NOISE = 0.01
_STRUCTURE_SD = 0.01
"""What a chain strays from the law where no point was measured, as for cores
(:mod:`routecast.calibration._discrepancy`); chosen in sight of the shipped chains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainPoint:
    """Measured throughput of a chain, and the share of a core that each function may use.

    A chain of network functions under CPU quotas.

    ::

        in ─► function 1 ─► function 2 ─► … ─► out        each may use the share q_i of a core

    A function with quota q gets the core for q of every period and loses the share q0 to being stopped and started
    again (caches refilled, batches cut short), so it passes ``r·(q - q0)`` bytes a second; q0 is common to the
    functions of a machine. The slowest function limits the chain, and near a tie the random order of stops costs a
    little more: ``X = (Σ x_i^-p + C^-p)^(-1/p)`` with the ceiling C of what feeds the chain.

    The posterior is sampled as for a router (:mod:`routecast.calibration._posterior`). Priors: each r is free; q0 about
    2 % of a core (a stop of 1-4 ms in a period of 100 ms, the default of Linux's CFS bandwidth control), a factor of 2
    either way; C about three times what one core passes, a factor of 3 either way; p about 12.

    ``standard_error_ratio`` is that of the throughput where it was repeated; 0: unknown.
    """

    series: str
    quotas: tuple[float, ...]
    throughput_byte_per_s: float
    standard_error_ratio: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedChain:
    """A calibrated chain: the posterior of ``ln r_1 … ln r_n, ln q0, ln C, ln p``."""

    functions: int
    posterior: Posterior
    noise_ratio: float
    seed: int

    def predict(self, points: Sequence[ChainPoint]) -> tuple[ComparedRow[ChainPoint], ...]:
        """Predict one measurement of the throughput at each point's quotas, with the point's repeatability."""
        samples = _log_throughput(self.posterior.samples[1:], np.array([point.quotas for point in points]))
        weights = np.ones(len(samples))
        (median,) = weighted_quantiles(samples, weights, (0.5,))
        noisy = np.repeat(samples, _NOISE_COPIES, axis=0)
        repeats_to = np.array([point.standard_error_ratio or self.noise_ratio for point in points])
        noisy = noisy + np.hypot(repeats_to, _STRUCTURE_SD) * np.random.default_rng(self.seed + 1).standard_normal(
            noisy.shape
        )
        spread = intervals(noisy, np.ones(len(noisy)))
        return tuple(
            ComparedRow(
                conditions=point,
                measured=point.throughput_byte_per_s,
                predicted=math.exp(median[i]),
                intervals=spread[i],
            )
            for i, point in enumerate(points)
        )


def fit_chain(points: Sequence[ChainPoint], *, noise_ratio: float | None = None, seed: int = 0) -> FittedChain:
    """Fit a chain to a few measured points.

    Raises FitProblem: no points, or points of chains of different lengths.
    """
    if not points or len({len(point.quotas) for point in points}) != 1:
        raise FitProblem(points[0].series if points else "", "give points of one chain, at least one")
    repeats_to = _NOISE_RATIO if noise_ratio is None else noise_ratio
    quotas = np.array([point.quotas for point in points])
    measured = np.log([point.throughput_byte_per_s for point in points])
    n = quotas.shape[1]
    rate = float(np.max(measured - np.log(quotas.min(axis=1))))
    return FittedChain(
        functions=n,
        posterior=sample_posterior(
            lambda theta: _log_throughput(theta, quotas),
            measured,
            np.array(
                [
                    max(point.standard_error_ratio, _LEAST_NOISE) if point.standard_error_ratio else repeats_to
                    for point in points
                ]
            ),
            np.array([*[rate] * n, _LOSS, rate + _CEILING_FACTOR, _SHARPNESS]),
            np.array([*[_RATE_SD] * n, _LOSS_SD, _CEILING_SD, _SHARPNESS_SD]),
            draws=_DRAWS,
            seed=seed,
        ),
        noise_ratio=repeats_to,
        seed=seed,
    )


def linear_chain(calibrating: Sequence[ChainPoint], points: Sequence[ChainPoint]) -> list[tuple[float, Intervals]]:
    """Predict naively: each function's rate is proportional to its quota, the slowest limits.

    A function's rate per quota is the largest that any calibration point shows it to pass.
    """

    def predict(rates: Floats, at: Sequence[ChainPoint]) -> Floats:
        quotas, wanted = (np.array([point.quotas for point in each]) for each in (calibrating, at))
        per_quota = (rates[:, :, None] / quotas).max(axis=1)
        least: Floats = (per_quota[:, None] * wanted).min(axis=2)
        return least

    measured = [point.throughput_byte_per_s for point in calibrating]
    return bootstrap(predict, measured, calibrating, points, parameters=len(calibrating[0].quotas))


def read_chain_points(path: Path) -> tuple[ChainPoint, ...]:
    """Read a shipped table of chains: columns ``series``, ``quota1`` …, ``throughput_byte_per_s``."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return tuple(
        ChainPoint(
            series=row["series"],
            quotas=tuple(float(value) for name, value in row.items() if name.startswith("quota")),
            throughput_byte_per_s=float(row["throughput_byte_per_s"]),
            standard_error_ratio=float(row.get("standard_error_ratio") or 0.0),
        )
        for row in csv.DictReader(lines)
    )


def _log_throughput(theta: Floats, quotas: Floats) -> Floats:
    n = quotas.shape[1]
    rate, lost = theta[:, None, :n], np.exp(theta[:, n])[:, None, None]
    ceiling, sharp = theta[:, None, n + 1 : n + 2], np.exp(theta[:, n + 2])[:, None]
    share = np.maximum(quotas[None] - lost, _LEAST_SHARE)
    parts = np.concatenate([rate + np.log(share), np.broadcast_to(ceiling, (len(theta), len(quotas), 1))], axis=2)
    least = parts.min(axis=2)
    excess = np.exp(-sharp[:, :, None] * (parts - least[:, :, None])).sum(axis=2)
    total: Floats = least - np.log(excess) / sharp
    return total


_COVERAGE = (0.92, 0.99)
"""What 95 % intervals of a pack should hold: fewer are too narrow, more too wide."""
RECORDED = DATA / "packs" / "recorded.json"
_KEYS = ("mean_abs_error_ratio", "median_abs_error_ratio", "p90_abs_error_ratio", "max_abs_error_ratio")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutRow(ComparedRow[str]):
    """One held-out point of a series, frames or bytes per second, with each baseline's row of it.

    ``is_at_line_rate`` says that a link or a card sets the measured rate.
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
        """Our errors, and the quality of our intervals (:func:`routecast.quantity.comparison.summarise`)."""
        return summarise(self.rows)

    @property
    def baselines(self) -> dict[str, dict[str, float]]:
        """The same of each baseline that predicts every point."""
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
    """A criterion at which the board misses its goal on a pack, or loses to the best single law.

    ``repeats_to_ratio`` is the spread of repeated measurements, or what the pack states of it (``is_stated``).
    """

    pack: str
    points: int
    what: str
    ours: float
    instead: float
    by: str
    is_ratio: bool
    repeats_to_ratio: float | None
    is_stated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PackResult:
    """A pack with its held-out points scored."""

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
                for point in read_chain_points(DATA / "measured" / self.pack.file)
                if self.pack.wants(point.series) and point.standard_error_ratio
            ]
            return (median(errors), False) if errors else (self.pack.noise_ratio, True)
        logs: dict[tuple[object, ...], list[float]] = {}
        for point in table_points(self.pack):
            logs.setdefault((point.series, *point.conditions), []).append(math.log(point.throughput_pps))
        spreads = [stdev(each) for each in logs.values() if len(each) > 1]
        return (median(spreads), False) if spreads else (self.pack.noise_ratio, True)

    @property
    def weaknesses(self) -> tuple[Weakness, ...]:
        """Where the 95 % intervals hold too few or too many points, or a single law is better."""
        summary, weak = self.group.summary, []
        ratio, is_stated = self.repeats_to_ratio
        held = summary["coverage_95_ratio"]
        least, most = _COVERAGE
        if not least <= held <= most:
            weak.append(("coverage", held, least if held < least else most, "wanted", True))
        for key, what, is_ratio in (
            ("median_abs_error_ratio", "median error", True),
            ("interval_score", "score", False),
        ):
            by, value = self.group.best_baseline(key)
            if summary[key] > value:
                weak.append((what, summary[key], value, by, is_ratio))
        return tuple(
            Weakness(
                pack=self.name,
                points=self.held_out,
                what=what,
                ours=ours,
                instead=value,
                by=by,
                is_ratio=unit,
                repeats_to_ratio=ratio,
                is_stated=is_stated,
            )
            for what, ours, value, by, unit in weak
        )

    @property
    def targets(self) -> dict[str, tuple[float, bool]]:
        """Limits that the pack was set, and whether they are kept. ``half_of_best_baseline`` is on medians."""
        summary, kept = self.group.summary, {}
        for key, limit in (self.pack.target or {}).items():
            if key == "half_of_best_baseline":
                half = 0.5 * self.group.best_baseline()[1]
                kept[key] = (half, summary["median_abs_error_ratio"] <= half)
            else:
                kept[key] = (limit, summary[key] <= limit)
        return kept

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
    """Every pack, with its comparison to the record."""

    packs: tuple[PackResult, ...]
    recorded: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def weaknesses(self) -> tuple[Weakness, ...]:
        """Those of every pack."""
        return tuple(weakness for each in self.packs for weakness in each.weaknesses)

    @property
    def held_out(self) -> int:
        """Number of held-out points of all packs."""
        return sum(each.held_out for each in self.packs)

    @property
    def groups(self) -> tuple[Group, ...]:
        """The points of each source, of all routers and of all, each without those at line rate; and those."""
        by_source: dict[str, list[HeldOutRow]] = {}
        routers: list[HeldOutRow] = []
        for each in self.packs:
            free = [row for row in each.rows if not row.is_at_line_rate]
            by_source.setdefault(each.pack.file.removesuffix(".csv"), []).extend(free)
            if each.pack.kind == "multicore":
                routers += free
        everywhere = [row for each in self.packs for row in each.rows]
        named = {
            **by_source,
            "all routers": routers,
            "all": [row for row in everywhere if not row.is_at_line_rate],
            "at line rate": [row for row in everywhere if row.is_at_line_rate],
        }
        return tuple(Group(name=name, rows=tuple(rows)) for name, rows in named.items() if rows)

    def worse(self, tolerance_ratio: float = 0.05) -> dict[str, dict[str, tuple[float, float]]]:
        """Errors that grew by more than ``tolerance_ratio`` of the recorded ones: pack to key to (now, recorded)."""
        grown: dict[str, dict[str, tuple[float, float]]] = {}
        for each in self.packs:
            before, now = self.recorded.get(each.name, {}), each.group.summary
            for key in _KEYS:
                if key in before and now[key] > before[key] * (1.0 + tolerance_ratio) + 1e-4:
                    grown.setdefault(each.name, {})[key] = (now[key], before[key])
        return grown

    def to_json(self) -> dict[str, Any]:
        """Return plain data for ``routecast board --json``."""
        return {
            "packs": [each.to_json() for each in self.packs],
            "held_out": self.held_out,
            "weaknesses": [asdict(each) for each in self.weaknesses],
            "groups": [each.to_json() for each in self.groups],
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
        Called with ``(packs done, packs in all, title)``.
    packs : sequence of Pack or None
        None: the shipped ones.
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
    """Yield the router of each series, calibrated without its source, with calibrating and held-out points."""
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
        for index, made in enumerate(fitted.predict(held_out)):
            point = made.point
            flows = "" if point.flows is None else f", {point.flows} flow{'s' if point.flows > 1 else ''}"
            frames = point.frame_mix.name if point.frame_mix else f"{point.frame_bytes:g} B"
            yield _row(
                made,
                {name: values[index] for name, values in naive.items()},
                f"{point.cores} core{'s' if point.cores > 1 else ''}{flows}, {frames}",
                series=fitted.series,
                calibrating_points=len({each.conditions for each in calibrating}),
                is_at_line_rate=is_capped(point),
            )


def _chain_rows(pack: Pack, seed: int) -> Iterator[HeldOutRow]:
    points = [point for point in read_chain_points(DATA / "measured" / pack.file) if pack.wants(point.series)]
    for name in dict.fromkeys(point.series for point in points):
        members = [point for point in points if point.series == name]
        most = max(max(point.quotas) for point in members)
        wanted = [tuple(most if q == "largest" else q for q in each["quotas"]) for each in pack.calibrate]
        calibrating = [point for point in members if point.quotas in wanted]
        held_out = [point for point in members if point.quotas not in wanted]
        fitted = fit_chain(calibrating, noise_ratio=pack.noise_ratio, seed=seed)
        naive = linear_chain(calibrating, held_out)
        for made, linear in zip(fitted.predict(held_out), naive, strict=True):
            yield _row(
                made,
                {"linear": linear},
                "quotas " + ", ".join(f"{quota:g}" for quota in made.conditions.quotas),
                series=name,
                calibrating_points=len(calibrating),
            )


def _row(
    made: ComparedRow[Any], baselines: Mapping[str, tuple[float, Intervals]], conditions: str, **more: Any
) -> HeldOutRow:
    """Return a prediction and the baselines' beside the same measured value; ``more``: the row's other fields."""
    return HeldOutRow(
        conditions=conditions,
        measured=made.measured,
        predicted=made.predicted,
        intervals=made.intervals,
        baselines={
            name: ComparedRow(conditions=conditions, measured=made.measured, predicted=value, intervals=ends)
            for name, (value, ends) in baselines.items()
        },
        **more,
    )


def _record(board: Board) -> None:
    text = json.dumps(
        {each.name: {key: round(each.group.summary[key], 6) for key in _KEYS} for each in board.packs}, indent=2
    )
    RECORDED.write_text(text + "\n", encoding="utf-8")


def _without(keys: Sequence[str]) -> list[Pack]:
    """Packs without these facts about their machines (``testbed`` is one of them)."""
    return [
        replace(
            pack,
            testbed=pack.testbed and "testbed" not in keys,
            known=tuple({key: value for key, value in each.items() if key not in keys} for each in pack.known),
        )
        for pack in read_packs()
    ]


def _main(arguments: Sequence[str]) -> None:
    if "--record" in arguments:
        _record(run_board())
    elif "--learn" in arguments:
        write_priors()
    elif "--without" in arguments:
        keys = arguments[arguments.index("--without") + 1].split(",")
        print(json.dumps(run_board(packs=_without(keys)).to_json(), indent=2))
    else:
        print(json.dumps(run_board().to_json(), indent=2))


if __name__ == "__main__":
    import sys

    _main(sys.argv[1:])
