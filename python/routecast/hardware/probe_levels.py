"""From access times over working sets of growing size to the sizes and costs of the memory's levels.

::

    cycles                          ┌────── DRAM        cycles(W) = c0 + d2·m1(W) + d3·m2(W) + d4·m3(W)
                     ┌──────────────┘ L3
           ┌─────────┘ L2                               ml(W) = 1 − min(1, Cl / W): share not found within capacity Cl
    ───────┘ L1
           C1        C2             C3         W

Random lines of a working set of W bytes are found within a capacity C with probability min(1, C/W). L1 and L2 belong to
the core, so C1 and C2 are what the system says. The last level is shared, and a virtual machine or a busy host gets a
part of it: C3 is fitted, with the system's figure as its bound, to the times of batched lines, because that is how
operations ask for them. The steps d are least-squares and not negative
(Lawson & Hanson's NNLS), so a level never costs less than the one before. Costs stand on top of L1's, which is 0 by
definition: the operations' cycles were taken with their data in L1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from routecast.errors import FitProblem
from routecast.hardware.model import LevelName, MemoryLevel
from routecast.hardware.probe_repeats import typical

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

__all__ = ["LevelFit", "fit_levels"]

_FLOOR_CYCLES = 2.0
"""Added to a cost before a relative error is taken: below it, the clock's resolution and loop overhead speak."""

_SIZES_TRIED = 160
_BADLY_RATIO = 0.10
_ASSUMED = {"L1": 32768.0, "L2": 1048576.0}
_LEVELS: tuple[LevelName, ...] = ("L1", "L2", "L3", "DRAM")
_PATTERNS = {"dependent": "latency", "batched": "batched", "streamed": "streamed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelFit:
    """The fitted levels.

    Parameters
    ----------
    levels : tuple of MemoryLevel
        L1, L2, L3, DRAM; L3 is missing where the host has none.
    residual_ratio : mapping of str to float
        Root mean square of the relative residuals, by pattern.
    l1_cycles : mapping of str to float
        The cost in L1 that all costs stand on top of, by pattern.
    notes : tuple of str
        What a reader must know.
    """

    levels: tuple[MemoryLevel, ...]
    residual_ratio: Mapping[str, float]
    l1_cycles: Mapping[str, float]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Curve:
    pattern: str
    working_set_bytes: Numbers
    cycles: Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class _Steps:
    """Steps of one curve at given capacities, and the squared relative residuals."""

    steps: Numbers = field(repr=False)
    squares: float
    points: int


def fit_levels(outcome: Mapping[str, Any], frequency_hz: float) -> LevelFit:
    """Fit sizes and costs of the levels.

    Parameters
    ----------
    outcome : mapping
        What the probe measured: ``caches``, ``latency``, ``batched``, ``streamed``.
    frequency_hz : float
        Clock of the core; L3 and DRAM, which do not run with it, are told in seconds.

    Raises
    ------
    routecast.errors.FitProblem
        A curve has too few points.
    """
    curves = [_curve(pattern, outcome.get(name, ())) for pattern, name in _PATTERNS.items()]
    notes: list[str] = []
    sizes, l3_bytes = _sizes(outcome.get("caches", ()), notes)
    inner = [sizes["L1"], sizes["L2"]]
    batched = next(curve for curve in curves if curve.pattern == "batched")
    fitted_l3 = _l3_bytes(batched, inner, l3_bytes) if l3_bytes > inner[-1] else 0.0
    capacities = [*inner, fitted_l3] if fitted_l3 else inner
    names: list[LevelName] = [name for name in _LEVELS if name != "L3" or fitted_l3]
    if fitted_l3 and fitted_l3 < 0.9 * l3_bytes:
        notes.append(
            f"one core's data finds {_mebi(fitted_l3)} of the L3's {_mebi(l3_bytes)}: the rest goes to others"
        )
    fits = {curve.pattern: _steps(curve, capacities) for curve in curves}
    residuals = {pattern: math.sqrt(fit.squares / fit.points) for pattern, fit in fits.items()}
    for pattern, residual in residuals.items():
        if residual > _BADLY_RATIO:
            notes.append(
                f"{pattern} access times lie {residual:.0%} off the fitted levels (root mean square)"
            )
    notes.extend(_page_notes(outcome.get("latency", ()), frequency_hz))
    costs = {pattern: _costs(fit.steps) for pattern, fit in fits.items()}
    levels = tuple(
        _level(name, size, {p: cost[number] for p, cost in costs.items()}, frequency_hz)
        for number, (name, size) in enumerate(zip(names, [*capacities, math.inf], strict=True))
    )
    return LevelFit(
        levels=levels,
        residual_ratio=residuals,
        l1_cycles={pattern: float(fit.steps[0]) for pattern, fit in fits.items()},
        notes=tuple(notes),
    )


def _level(
    name: LevelName, size_bytes: float, cycles: Mapping[str, float], frequency_hz: float
) -> MemoryLevel:
    if name in ("L1", "L2"):
        return MemoryLevel(
            name=name,
            size_bytes=size_bytes,
            dependent_cycles=cycles["dependent"],
            batched_cycles=cycles["batched"],
            streamed_cycles=cycles["streamed"],
        )
    return MemoryLevel(
        name=name,
        size_bytes=size_bytes,
        dependent_s=cycles["dependent"] / frequency_hz,
        batched_s=cycles["batched"] / frequency_hz,
        streamed_s=cycles["streamed"] / frequency_hz,
    )


def _costs(steps: Numbers) -> list[float]:
    """Return the levels' costs on top of L1's: sums of the steps after the first."""
    total, costs = 0.0, [0.0]
    for step in steps[1:]:
        total += float(step)
        costs.append(total)
    return costs


def _sizes(caches: Sequence[Mapping[str, Any]], notes: list[str]) -> tuple[dict[str, float], float]:
    """Return what the system says of L1 and L2, and of L3 (0 without one)."""
    there = {str(cache["level"]): float(cache["size_bytes"]) for cache in caches}
    sizes = {"L1": there.get("L1d", there.get("L1", 0.0)), "L2": there.get("L2", 0.0)}
    for name, size in sizes.items():
        if not size:
            sizes[name] = _ASSUMED[name]
            notes.append(f"the system does not tell the size of {name}: taken for {_mebi(_ASSUMED[name])}")
    return sizes, there.get("L3", 0.0)


def _curve(pattern: str, points: Sequence[Mapping[str, Any]]) -> _Curve:
    """Return the points of huge pages, or those that there are; each with its typical cycles."""
    import numpy as np

    kinds = {str(point.get("pages", "huge")) for point in points}
    kind = "huge" if "huge" in kinds else "normal"
    chosen = [point for point in points if point.get("pages", kind) == kind]
    if len(chosen) < len(_LEVELS):
        what = f"{len(chosen)} points of {pattern} access times: at least {len(_LEVELS)} are needed"
        raise FitProblem("memory", what)
    return _Curve(
        pattern=pattern,
        working_set_bytes=np.array([float(point["bytes"]) for point in chosen]),
        cycles=np.array([typical(point["cycles"]) for point in chosen]),
    )


def _steps(curve: _Curve, capacities: Sequence[float]) -> _Steps:
    import numpy as np
    from scipy.optimize import nnls

    missed = [1.0 - np.minimum(1.0, size / curve.working_set_bytes) for size in capacities]
    columns = np.column_stack([np.ones_like(curve.cycles), *missed])
    weights = 1.0 / (curve.cycles + _FLOOR_CYCLES)
    steps, distance = nnls(columns * weights[:, None], curve.cycles * weights)
    return _Steps(steps=steps, squares=float(distance) ** 2, points=len(curve.cycles))


def _l3_bytes(curve: _Curve, inner: Sequence[float], most_bytes: float) -> float:
    """Return the size of L3 at which the curve is fitted best."""
    import numpy as np

    tried = np.geomspace(inner[-1] * 1.05, most_bytes, _SIZES_TRIED)

    return float(min(tried, key=lambda size: _steps(curve, [*inner, size]).squares))


def _page_notes(points: Sequence[Mapping[str, Any]], frequency_hz: float) -> list[str]:
    """Return what normal pages cost: the greatest working set that was chased over both kinds of pages."""
    by_kind: dict[str, dict[int, float]] = {"huge": {}, "normal": {}}
    for point in points:
        by_kind.setdefault(str(point.get("pages", "huge")), {})[int(point["bytes"])] = typical(
            point["cycles"]
        )
    if not by_kind["huge"]:
        return ["no huge pages: access times hold page walks, and so do the levels' costs"]
    both = by_kind["huge"].keys() & by_kind["normal"].keys()
    if not both:
        return []
    most = max(both)
    huge, normal = by_kind["huge"][most], by_kind["normal"][most]
    more_ns = 1e9 * (normal - huge) / frequency_hz
    return [
        f"a dependent access to {_mebi(most)} takes {more_ns:+.0f} ns ({normal / huge - 1.0:+.0%}) over pages "
        "of 4 KiB: the levels hold for huge pages"
    ]


def _mebi(size_bytes: float) -> str:
    return f"{size_bytes / 1048576.0:.3g} MiB"
