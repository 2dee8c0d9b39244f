"""The accuracy board: routecast and naive baselines on public measurements that calibration has not seen.

The routers of a source are predicted with priors that were learnt without it.

``routecast board`` prints it. The errors of the last accepted version are kept in ``data/packs/recorded.json``; a test
asserts that they do not get worse. ``python -m routecast.calibrate.board`` prints the board as JSON, and

* with ``--record`` it rewrites the recorded errors,
* with ``--learn`` it learns the priors anew, of all sources and without each (:mod:`routecast.calibrate.priors`),
* with ``--without KEY,KEY`` it tells neither routecast nor the baselines these facts about the machines
  (:mod:`routecast.calibrate.packs` names them; ``testbed``: series are fitted apart).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from routecast.calibrate.baselines import BASELINES, predict_baselines
from routecast.calibrate.chain import fit_chain, linear_chain, read_chain_points
from routecast.calibrate.discrepancy import is_capped
from routecast.calibrate.fit import fit
from routecast.calibrate.forward import POLL_SHAPE
from routecast.calibrate.packs import DATA, Pack, read_packs, split, table_points
from routecast.calibrate.priors import read_priors, write_priors
from routecast.calibrate.score import Intervals, Judged, summarise
from routecast.calibrate.testbed import shared_poll

__all__ = ["RECORDED", "Board", "Group", "PackResult", "Scored", "run_board"]

RECORDED = DATA / "packs" / "recorded.json"
_KEYS = ("mean_abs_error_ratio", "median_abs_error_ratio", "p90_abs_error_ratio", "max_abs_error_ratio")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """One held-out point: our prediction and the baselines' beside the measured rate (frames or bytes per second).

    ``is_at_line_rate`` says that a link or a card sets the measured rate.
    """

    series: str
    conditions: str
    judged: Judged
    baselines: Mapping[str, Judged]
    calibrating_points: int
    is_at_line_rate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Held-out points that are judged together."""

    name: str
    scored: tuple[Scored, ...]

    @property
    def summary(self) -> dict[str, float]:
        """Our errors, and what our intervals are worth (:func:`routecast.calibrate.score.summarise`)."""
        return summarise([each.judged for each in self.scored])

    @property
    def baselines(self) -> dict[str, dict[str, float]]:
        """The same of each baseline that predicts every point."""
        return {
            name: summarise([each.baselines[name] for each in self.scored])
            for name in BASELINES
            if self.scored and all(name in each.baselines for each in self.scored)
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
class PackResult:
    """A pack with its held-out points scored."""

    pack: Pack
    scored: tuple[Scored, ...]

    @property
    def name(self) -> str:
        """Name of the pack."""
        return self.pack.name

    @property
    def group(self) -> Group:
        """All held-out points."""
        return Group(name=self.name, scored=self.scored)

    @property
    def held_out(self) -> int:
        """Number of held-out points."""
        return len(self.scored)

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
            "series": len({each.series for each in self.scored}),
            "most_calibrating_points": max(each.calibrating_points for each in self.scored),
            "targets": {key: {"limit": limit, "kept": kept} for key, (limit, kept) in self.targets.items()},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """Every pack, and how it compares with what was recorded."""

    packs: tuple[PackResult, ...]
    recorded: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def held_out(self) -> int:
        """Number of held-out points of all packs."""
        return sum(each.held_out for each in self.packs)

    @property
    def groups(self) -> tuple[Group, ...]:
        """The points of each source, of all routers and of all, each without those at line rate; and those."""
        by_source: dict[str, list[Scored]] = {}
        routers: list[Scored] = []
        for each in self.packs:
            free = [scored for scored in each.scored if not scored.is_at_line_rate]
            by_source.setdefault(each.pack.file.removesuffix(".csv"), []).extend(free)
            if each.pack.kind == "multicore":
                routers += free
        everywhere = [scored for each in self.packs for scored in each.scored]
        named = {
            **by_source,
            "all routers": routers,
            "all": [scored for scored in everywhere if not scored.is_at_line_rate],
            "at line rate": [scored for scored in everywhere if scored.is_at_line_rate],
        }
        return tuple(Group(name=name, scored=tuple(scored)) for name, scored in named.items() if scored)

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
            "groups": [each.to_json() for each in self.groups],
            "recorded": {name: dict(values) for name, values in self.recorded.items()},
            "worse": {
                name: {key: {"now": now, "recorded": before} for key, (now, before) in keys.items()}
                for name, keys in self.worse().items()
            },
        }


def run_board(
    progress: Callable[[int, int, str], None] | None = None,
    *,
    packs: Sequence[Pack] | None = None,
    seed: int = 0,
) -> Board:
    """Run every pack.

    Parameters
    ----------
    progress : callable or None
        Told ``(packs done, packs in all, title)``.
    packs : sequence of Pack or None
        None: the shipped ones.
    seed : int
    """
    chosen = read_packs() if packs is None else tuple(packs)
    results = []
    for done, pack in enumerate(chosen):
        if progress is not None:
            progress(done, len(chosen), pack.title)
        scored = _score_chains(pack, seed) if pack.kind == "chain" else _score_routers(pack, seed)
        results.append(PackResult(pack=pack, scored=tuple(scored)))
    if progress is not None:
        progress(len(chosen), len(chosen), "")
    recorded = json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() else {}
    return Board(packs=tuple(results), recorded=recorded)


def _score_routers(pack: Pack, seed: int) -> list[Scored]:
    rows = split(pack, table_points(pack))
    poll, priors = POLL_SHAPE, read_priors(without=pack.file)
    if pack.testbed:
        series = [points for points, _ in rows.values()]
        poll = shared_poll(series, noise_ratio=pack.noise_ratio, priors=priors)
    scored = []
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
        naive = predict_baselines(calibrating, held_out)
        for index, made in enumerate(fitted.predict(held_out)):
            point = made.point
            flows = "" if point.flows is None else f", {point.flows} flow{'s' if point.flows > 1 else ''}"
            frames = point.frame_mix.name if point.frame_mix else f"{point.frame_bytes:g} B"
            scored.append(
                Scored(
                    series=name,
                    conditions=f"{point.cores} core{'s' if point.cores > 1 else ''}{flows}, {frames}",
                    judged=made.judged,
                    baselines={
                        key: _judged(point.throughput_pps, values[index]) for key, values in naive.items()
                    },
                    calibrating_points=len({each.conditions for each in calibrating}),
                    is_at_line_rate=is_capped(point),
                )
            )
    return scored


def _score_chains(pack: Pack, seed: int) -> list[Scored]:
    scored = []
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
            scored.append(
                Scored(
                    series=name,
                    conditions="quotas " + ", ".join(f"{quota:g}" for quota in made.point.quotas),
                    judged=made.judged,
                    baselines={"linear": _judged(made.point.throughput_byte_per_s, linear)},
                    calibrating_points=len(calibrating),
                )
            )
    return scored


def _judged(measured: float, made: tuple[float, Intervals]) -> Judged:
    return Judged(measured=measured, predicted=made[0], intervals=made[1])


def _record(board: Board) -> None:
    text = json.dumps(
        {each.name: {key: round(each.group.summary[key], 6) for key in _KEYS} for each in board.packs},
        indent=2,
    )
    RECORDED.write_text(text + "\n", encoding="utf-8")


def _without(keys: Sequence[str]) -> list[Pack]:
    """Packs that are not told these facts about their machines (``testbed`` is one of them)."""
    return [
        replace(
            pack,
            testbed=pack.testbed and "testbed" not in keys,
            known=tuple(
                {key: value for key, value in each.items() if key not in keys} for each in pack.known
            ),
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
