"""The probe of this host, whose measurements become a :class:`Hardware` with ``stalls = "added"``.

::

    _core.probe_host ─► outcome ─┬─ fit_levels       sizes and costs of L1, L2, L3, DRAM
                                 ├─ fit_operations   formulas of the operations over their parameters
                                 ├─ noise_of         was the host quiet?
                                 └─ probe_facts      processor, kernel, network cards
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from routecast.errors import FitProblem
from routecast.hardware.formula import Formula
from routecast.hardware.model import Access, CallCost, Cpu, Hardware, LevelName, MemoryLevel, OperationCost
from routecast.hardware.probe_facts import cpu_name, host_facts, native, network_cards, packages
from routecast.progress import ShareProgress
from routecast.quantity.quantile import quantile
from routecast.quantity.schema import field, value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

__all__ = [
    "CostShape",
    "Probed",
    "Sample",
    "fit_levels",
    "fit_operation",
    "fit_operations",
    "hardware_of",
    "noise_of",
    "probe",
    "shapes",
]


def typical(repeats: Sequence[float]) -> float:
    """Return the lower quartile of repeated measurements.

    Interrupts, neighbours and other processes only add time, so the lower quartile is closer to the undisturbed cost
    than the mean or the median, and unlike the minimum it does not depend on a single repeat.
    """
    return quantile(repeats, 0.25)


def scatter_ratio(repeats: Sequence[float]) -> float:
    """Return (median − minimum) / median, which is 0 if half of the repeats were undisturbed; NaN of fewer than three.

    Examples
    --------
    >>> scatter_ratio([8.0, 10.0, 10.0, 99.0, 10.0])
    0.2
    """
    middle = quantile(repeats, 0.5)
    return (middle - min(repeats)) / middle if len(repeats) >= 3 and middle > 0.0 else math.nan


@value
class NoiseLimits:
    """Upper limits of the noise of a quiet host."""

    # (median − minimum) / median of a measurement's repeats, at the upper quartile over all measurements.
    scatter_ratio: float = 0.10
    # Share of the time in which the hypervisor ran other machines (``steal`` of ``/proc/stat``).
    steal_ratio: float = 0.01
    interruptions_per_s: float = field("Involuntary context switches of the probe's thread", default=20.0)
    clock_ratio: float = field("(maximum − minimum) / median of the core's clock", default=0.03)


NOISE_LIMITS = NoiseLimits()

_L1_CYCLES = 2.0
"""A line that costs at most this much more than a line in L1 was found in L1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """The disturbances of a probe; ``reasons`` is empty for a quiet host."""

    scatter_ratio: float
    steal_ratio: float
    interruptions: int
    clock_ratio: float
    reasons: tuple[str, ...] = ()

    @property
    def is_quiet(self) -> bool:
        """Whether no noise limit was exceeded."""
        return not self.reasons

    @property
    def verdict(self) -> str:
        """``"quiet"``, or ``"noisy: …"`` with the reasons."""
        return "quiet" if self.is_quiet else "noisy: " + "; ".join(self.reasons)


def noise_of(outcome: Mapping[str, Any], duration_s: float, limits: NoiseLimits = NOISE_LIMITS) -> Noise:
    """Judge the outcome of a probe that took ``duration_s`` seconds."""
    scatters = [ratio for repeats in _repeats(outcome) if math.isfinite(ratio := scatter_ratio(repeats))]
    scatter = quantile(scatters, 0.75) if scatters else math.nan
    steal = float(outcome.get("steal_ratio") or 0.0)
    interruptions = int(outcome.get("interruptions") or 0)
    clocks = [float(value) for value in outcome["clock"]["core_hz"]]
    clock = (max(clocks) - min(clocks)) / quantile(clocks, 0.5)
    reasons = []
    if scatter > limits.scatter_ratio:
        reasons.append(
            f"repeats scatter: for a quarter of the measurements the minimum is {scatter:.0%} below the median "
            f"(quiet: up to {limits.scatter_ratio:.0%})"
        )
    if steal > limits.steal_ratio:
        reasons.append(f"the hypervisor took {steal:.1%} of the time (quiet: up to {limits.steal_ratio:.0%})")
    if duration_s > 0.0 and interruptions > limits.interruptions_per_s * duration_s:
        reasons.append(
            f"other processes interrupted the probe {interruptions} times in {duration_s:.0f} s "
            f"(quiet: up to {limits.interruptions_per_s:.0f} a second)"
        )
    if clock > limits.clock_ratio:
        reasons.append(f"the clock varied by {clock:.0%} (quiet: up to {limits.clock_ratio:.0%})")
    return Noise(
        scatter_ratio=scatter, steal_ratio=steal, interruptions=interruptions, clock_ratio=clock, reasons=tuple(reasons)
    )


def _repeats(outcome: Mapping[str, Any]) -> Iterator[list[float]]:
    """Yield the repeats of every point except the clock; differences to L1 only if they are above the noise."""
    for name in ("latency", "batched", "streamed", "operations"):
        for point in outcome.get(name, ()):
            repeats = list(point["cycles"])
            if name in ("latency", "operations") or quantile(repeats, 0.5) > _L1_CYCLES:
                yield repeats
    for point in outcome.get("bandwidth", ()):
        yield [1.0 / rate for rate in point["bytes_per_s"] if rate > 0.0]


MAX_RESIDUAL_RATIO = 0.10
"""Fits with a larger residual (root mean square) are reported in the notes."""

_SIGNIFICANT_DIGITS = 4
_OUTLIER_RATIO = 0.10
_REWEIGHTINGS = 12
_MIN_CYCLES = 1.0
"""Errors of operations that cost less are relative to this value, because a fraction of a cycle is no misfit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostShape:
    """The form of an operation's cost: the terms of its cycles, and the lines that it touches.

    ``data/hardware/shapes.toml`` gives the terms of the cycles of each operation, and the lines of memory that it
    touches (the tables of ``crates/probe``). The probe measures samples. The coefficients minimise the squares of the
    *relative* errors and are not negative (Lawson & Hanson's NNLS)::

        cycles(N, HE, …) = c0 + c1·N + c2·ceil(HE/8),      min Σ w ((fit − measured) / max(measured, 1))²,  c ≥ 0

    Single samples may be outliers, for example if arrays happen to be a multiple of 4 KiB apart. Errors e above 10 %
    therefore get the weight w = 10 % / |e| (Huber 1964) in the fit; the reported residual includes them in full.

    Of samples that differ only in the parameter ``at_greatest``, the fit uses the sample with the greatest value of it;
    with "" it uses all samples. ``in_use`` has texts that replace parameters in the fitted formula.
    """

    operation: str
    terms: tuple[Formula, ...]
    accesses: tuple[Access, ...] = ()
    at_greatest: str = ""
    in_use: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Cycles of one execution with given parameters."""

    parameters: Mapping[str, float]
    cycles: float


@cache
def shapes() -> Mapping[str, CostShape]:
    """Return the shipped shapes of costs, by operation."""
    path = files("routecast.lab") / "data" / "hardware" / "shapes.toml"
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    return {name: _shape(name, entry) for name, entry in document["operation"].items()}


def _shape(name: str, entry: Mapping[str, Any]) -> CostShape:
    return CostShape(
        operation=name,
        terms=tuple(Formula(text) for text in entry["terms"]),
        accesses=tuple(
            Access(
                of=access["of"],
                lines=Formula(access["lines"]),
                table_lines=Formula(access["table_lines"]) if "table_lines" in access else None,
                pattern=access.get("pattern", "batched"),
            )
            for access in entry.get("access", ())
        ),
        at_greatest=entry.get("at_greatest", ""),
        in_use=entry.get("in_use", {}),
    )


def fit_operations(points: Sequence[Mapping[str, Any]]) -> tuple[dict[str, OperationCost], tuple[str, ...]]:
    """Fit the costs of all measured operations; return them by name, with notes on problems of the fits.

    ``points`` are the ``operations`` of the probe's outcome: operation, parameters, cycles (repeats), level.
    """
    by_operation: dict[str, list[Sample]] = {}
    for point in points:
        if point.get("level", "L1") == "L1":
            sample = Sample(parameters=dict(point["parameters"]), cycles=typical(point["cycles"]))
            by_operation.setdefault(str(point["operation"]), []).append(sample)
    all_shapes = shapes()
    costs: dict[str, OperationCost] = {}
    notes = []
    for name, samples in by_operation.items():
        shape = all_shapes.get(name)
        if shape is None:
            notes.append(f"operation {name} was measured but has no shape: its cycles are assumed to be constant")
            shape = CostShape(operation=name, terms=(Formula("1"),))
        cost = fit_operation(shape, samples)
        costs[name] = cost
        if cost.residual_ratio > MAX_RESIDUAL_RATIO:
            notes.append(f"operation {name}: its formula misses the samples by {cost.residual_ratio:.0%}")
    notes.extend(f"operation {name} was not measured" for name in all_shapes if name not in costs)
    return costs, tuple(notes)


def fit_operation(shape: CostShape, samples: Sequence[Sample]) -> OperationCost:
    """Fit the cost of one operation.

    Raises FitProblem: there are no samples, or a sample is not a number >= 0.
    """
    import numpy as np
    from scipy.optimize import nnls

    if not samples or not all(math.isfinite(sample.cycles) and sample.cycles >= 0.0 for sample in samples):
        raise FitProblem(
            shape.operation, "its samples must be numbers of cycles >= 0, and it needs at least one sample"
        )
    samples = _at_greatest(samples, shape.at_greatest)
    columns = np.array([[term.evaluate(sample.parameters) for term in shape.terms] for sample in samples])
    measured = np.array([sample.cycles for sample in samples])
    scale = np.maximum(measured, _MIN_CYCLES)
    weights = np.ones_like(measured)
    for _ in range(_REWEIGHTINGS):
        rows = weights / scale
        solution, _ = nnls(columns * rows[:, None], measured * rows)
        errors = np.abs(columns @ solution - measured) / scale
        weights = np.sqrt(np.minimum(1.0, _OUTLIER_RATIO / np.maximum(errors, _OUTLIER_RATIO)))
    coefficients = [_rounded(float(value)) for value in solution]
    relative = (columns @ np.array(coefficients) - measured) / scale
    return OperationCost(
        operation=shape.operation,
        cycles=Formula(_text(coefficients, [_in_use(term, shape.in_use) for term in shape.terms])),
        accesses=shape.accesses,
        residual_ratio=float(np.sqrt(np.mean(relative**2))),
        samples=len(samples),
        source="probe",
    )


def _at_greatest(samples: Sequence[Sample], name: str) -> Sequence[Sample]:
    """Return, of samples that agree in all other parameters, those with the greatest value of a parameter."""
    if not name:
        return samples
    greatest: dict[frozenset[tuple[str, float]], Sample] = {}
    for sample in samples:
        others = frozenset(item for item in sample.parameters.items() if item[0] != name)
        greatest_sample = greatest.get(others)
        if greatest_sample is None or sample.parameters[name] > greatest_sample.parameters[name]:
            greatest[others] = sample
    return list(greatest.values())


def _rounded(value: float) -> float:
    """Return a coefficient rounded as in the file, so that the residual belongs to the written formula."""
    return float(f"{value:.{_SIGNIFICANT_DIGITS}g}")


def _text(coefficients: Sequence[float], terms: Sequence[Formula]) -> str:
    """Write the formula, without terms whose coefficient is 0."""
    parts = [
        f"{coefficient:.{_SIGNIFICANT_DIGITS}g}"
        if term.text == "1"
        else f"{coefficient:.{_SIGNIFICANT_DIGITS}g} * {_factor(term)}"
        for coefficient, term in zip(coefficients, terms, strict=True)
        if coefficient > 0.0
    ]
    return " + ".join(parts) or "0"


def _in_use(term: Formula, in_use: Mapping[str, str]) -> Formula:
    """Return a term with some parameters replaced by formulas."""
    text = term.text
    for name, replacement in in_use.items():
        text = replacement.join(re.split(rf"\b{re.escape(name)}\b", text))
    return Formula(text)


def _factor(term: Formula) -> str:
    is_whole = term.text.isidentifier() or _is_single_call(term.text)
    return term.text if is_whole else f"({term.text})"


def _is_single_call(text: str) -> bool:
    """Whether the text is a single function call, such as ``ceil(HE/8)``."""
    name, opened, inside = text.partition("(")
    if not opened or not name.isidentifier() or not inside.endswith(")"):
        return False
    depth = 1
    for position, letter in enumerate(inside, 1):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0:
            return position == len(inside)
    return False


_FLOOR_CYCLES = 2.0
"""Added to a cost in relative errors, because loop overhead and clock resolution dominate smaller costs."""

_CANDIDATE_SIZES = 160
_ASSUMED_BYTES = {"L1": 32768.0, "L2": 1048576.0}
_LEVELS: tuple[LevelName, ...] = ("L1", "L2", "L3", "DRAM")
_PATTERNS = {"dependent": "latency", "batched": "batched", "streamed": "streamed"}


@value
class LevelFit:
    """The sizes and costs of the memory levels, fitted to access times over working sets of growing size.

    ::

        cycles                          ┌────── DRAM        cycles(W) = c0 + d2·m1(W) + d3·m2(W) + d4·m3(W)
                         ┌──────────────┘ L3
               ┌─────────┘ L2                               ml(W) = 1 − min(1, Cl / W): share beyond capacity Cl
        ───────┘ L1
               C1        C2             C3         W

    Random lines of a working set of W bytes are within a capacity C with probability min(1, C/W). L1 and L2 belong to
    the core, so C1 and C2 are the reported sizes. The last level is shared, and a virtual machine or a busy host gets a
    part of it. Therefore C3 is fitted, with the reported size as its upper bound, to the times of batched lines, the
    access pattern of most operations. The steps d minimise the squared errors and are not negative (Lawson & Hanson's
    NNLS), so a level never costs less than the previous level. All costs are relative to L1, whose cost is 0 by
    definition, because the cycles of the operations were measured with their data in L1.
    """

    levels: tuple[MemoryLevel, ...] = field("L1, L2, L3, DRAM; without L3 if the host has none")
    residual_ratio: Mapping[str, float] = field("Root mean square of the relative residuals, by pattern")
    l1_cycles: Mapping[str, float] = field("Cost of a line in L1, to which all costs are relative, by pattern")
    notes: tuple[str, ...] = field("Notes for the reader", default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Curve:
    pattern: str
    working_set_bytes: Numbers
    cycles: Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class _Steps:
    """Steps of a curve at given capacities, and the sum of the squared relative residuals."""

    steps: Numbers = dataclasses.field(repr=False)
    squares: float
    points: int


def fit_levels(outcome: Mapping[str, Any], frequency_hz: float) -> LevelFit:
    """Fit the sizes and costs of the levels.

    The fit uses ``caches``, ``latency``, ``batched`` and ``streamed`` of the probe's outcome. ``frequency_hz`` is the
    clock of the core; the costs of L3 and DRAM, which have other clocks, are in seconds. Raises FitProblem: a curve has
    too few points.
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
        notes.append(f"one core's data finds {_mebi(fitted_l3)} of the L3's {_mebi(l3_bytes)}: the rest goes to others")
    fits = {curve.pattern: _steps(curve, capacities) for curve in curves}
    residuals = {pattern: math.sqrt(fit.squares / fit.points) for pattern, fit in fits.items()}
    for pattern, residual in residuals.items():
        if residual > MAX_RESIDUAL_RATIO:
            notes.append(f"{pattern} access times differ by {residual:.0%} from the fitted levels (root mean square)")
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


def _level(name: LevelName, size_bytes: float, cycles: Mapping[str, float], frequency_hz: float) -> MemoryLevel:
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
    """Return the costs of the levels relative to L1: cumulative sums of the steps after the first."""
    total, costs = 0.0, [0.0]
    for step in steps[1:]:
        total += float(step)
        costs.append(total)
    return costs


def _sizes(caches: Sequence[Mapping[str, Any]], notes: list[str]) -> tuple[dict[str, float], float]:
    """Return the sizes of L1 and L2, and of L3 (0 without L3), as the system reports them."""
    sizes_by_name = {str(cache["level"]): float(cache["size_bytes"]) for cache in caches}
    sizes = {"L1": sizes_by_name.get("L1d", sizes_by_name.get("L1", 0.0)), "L2": sizes_by_name.get("L2", 0.0)}
    for name, size in sizes.items():
        if not size:
            sizes[name] = _ASSUMED_BYTES[name]
            notes.append(f"the system does not report the size of {name}: {_mebi(_ASSUMED_BYTES[name])} is assumed")
    return sizes, sizes_by_name.get("L3", 0.0)


def _curve(pattern: str, points: Sequence[Mapping[str, Any]]) -> _Curve:
    """Return the points with huge pages, or else with normal pages, with their typical cycles."""
    import numpy as np

    kinds = {str(point.get("pages", "huge")) for point in points}
    kind = "huge" if "huge" in kinds else "normal"
    chosen = [point for point in points if point.get("pages", kind) == kind]
    if len(chosen) < len(_LEVELS):
        message = f"{len(chosen)} points of {pattern} access times: at least {len(_LEVELS)} are needed"
        raise FitProblem("memory", message)
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


def _l3_bytes(curve: _Curve, inner: Sequence[float], max_bytes: float) -> float:
    """Return the size of L3 with the best fit of the curve."""
    import numpy as np

    candidates = np.geomspace(inner[-1] * 1.05, max_bytes, _CANDIDATE_SIZES)
    return float(min(candidates, key=lambda size: _steps(curve, [*inner, size]).squares))


def _page_notes(points: Sequence[Mapping[str, Any]], frequency_hz: float) -> list[str]:
    """Return a note on the cost of normal pages, at the largest working set measured with both kinds of pages."""
    by_kind: dict[str, dict[int, float]] = {"huge": {}, "normal": {}}
    for point in points:
        by_kind.setdefault(str(point.get("pages", "huge")), {})[int(point["bytes"])] = typical(point["cycles"])
    if not by_kind["huge"]:
        return ["no huge pages: access times and the costs of the levels include page walks"]
    common = by_kind["huge"].keys() & by_kind["normal"].keys()
    if not common:
        return []
    largest = max(common)
    huge, normal = by_kind["huge"][largest], by_kind["normal"][largest]
    more_ns = 1e9 * (normal - huge) / frequency_hz
    return [
        f"a dependent access to {_mebi(largest)} takes {more_ns:+.0f} ns ({normal / huge - 1.0:+.0%}) over pages "
        "of 4 KiB: the levels apply to huge pages"
    ]


def _mebi(size_bytes: float) -> str:
    return f"{size_bytes / 1048576.0:.3g} MiB"


_MAX_MEMORY_BYTES = 1 << 30
_MEMORY_SHARE = 0.25


@value
class Probed:
    """A probed host."""

    hardware: Hardware
    noise: Noise
    fit: LevelFit
    outcome: Mapping[str, Any] = field("Measurements as the core returned them")
    duration_s: float


def probe(
    *, quick: bool = False, cpu: int | None = None, seed: int = 1, on_progress: ShareProgress | None = None
) -> Probed:
    """Measure this host.

    ``quick`` uses fewer working sets and repeats, and takes seconds instead of nearly a minute. ``cpu`` is the
    processor to measure; with None the compiled core chooses it. ``seed`` determines the random lines and permutations.
    Raises EnvironmentProblem: the host refuses memory or the processor; ModelProblem: the processor does not exist.
    """
    request = {
        "quick": quick,
        "cpu": cpu,
        "most_memory_bytes": max_memory_bytes(),
        "seed": seed,
        "parts": ["clock", "memory", "operations"],
    }
    start = time.monotonic()
    outcome = native("probe_host", request, on_progress)
    return hardware_of(outcome, duration_s=time.monotonic() - start, cpu=cpu, quick=quick)


def max_memory_bytes() -> int:
    """Return the memory limit of the probe: a quarter of the free memory, at most 1 GiB."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(_MAX_MEMORY_BYTES, int(free * _MEMORY_SHARE))


def hardware_of(
    outcome: Mapping[str, Any], *, duration_s: float = 0.0, cpu: int | None = None, quick: bool = False
) -> Probed:
    """Return the hardware of a host from the outcome of a probe.

    Raises FitProblem: the outcome lacks measurements that a fit needs.
    """
    clocks = [float(value) for value in outcome["clock"]["core_hz"]]
    if not clocks or min(clocks) <= 0.0:
        raise FitProblem("clock", "the core's clock was not measured: it must be a number > 0")
    frequency_hz = _cycles_hz(outcome["clock"], clocks)
    noise = noise_of(outcome, duration_s)
    fit = fit_levels(outcome, frequency_hz)
    operations, operation_notes = fit_operations(outcome.get("operations", ()))
    cards, card_notes = network_cards()
    sockets, cores = packages()
    name = cpu_name()
    probed_at = datetime.now(UTC)
    cpu = int(outcome.get("cpu", cpu or 0))
    facts = {
        **host_facts(cpu),
        "probed_cpu": cpu,
        "probed_at": probed_at.isoformat(timespec="seconds"),
        "probe": "quick" if quick else "full",
        "probe_s": round(duration_s, 1),
        "clock_counter": str(outcome["clock"].get("counter", "")),
        "tsc_hz": float(outcome["clock"]["tsc_hz"]),
        "noise": noise.verdict,
        "steal_ratio": noise.steal_ratio,
        "interruptions": noise.interruptions,
        "scatter_ratio": round(noise.scatter_ratio, 4),
        "l1_dependent_cycles": round(fit.l1_cycles["dependent"], 2),
        **{f"{pattern}_residual_ratio": round(value, 4) for pattern, value in fit.residual_ratio.items()},
        **_bandwidths(outcome),
    }
    hardware = Hardware(
        name="host",
        title=f"{name}, probed {probed_at:%Y-%m-%d}",
        cpu=Cpu(name=name, sockets=sockets, cores_per_socket=cores, frequency_hz=frequency_hz),
        levels=fit.levels,
        operations=operations,
        stalls="added",
        call=_call(outcome.get("call") or {}),
        nics=cards,
        memory_bytes=float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")),
        source="routecast hardware probe",
        notes=(
            *(() if noise.is_quiet else (noise.verdict,)),
            *fit.notes,
            *operation_notes,
            *card_notes,
            *(str(note) for note in outcome.get("notes", ())),
        ),
        facts=facts,
    )
    return Probed(hardware=hardware, noise=noise, fit=fit, outcome=outcome, duration_s=duration_s)


def _cycles_hz(clock: Mapping[str, Any], core_hz: list[float]) -> float:
    """Return the clock that the probe used to convert ticks to cycles, from the first half of the repeats.

    Another clock would scale all times in seconds by the ratio of the clocks.
    """
    first_half = core_hz[: (len(core_hz) + 1) // 2]
    return float(clock.get("cycles_hz") or quantile(first_half, 0.5))


def _call(call: Mapping[str, Any]) -> CallCost:
    per_batch, per_packet = call.get("per_batch_cycles", ()), call.get("per_packet_cycles", ())
    return CallCost(
        per_batch_cycles=typical(per_batch) if per_batch else 0.0,
        per_packet_cycles=typical(per_packet) if per_packet else 0.0,
    )


def _bandwidths(outcome: Mapping[str, Any]) -> dict[str, float]:
    """Return the bytes/s of the largest buffer that was read, written and copied."""
    largest: dict[str, Mapping[str, Any]] = {}
    for point in outcome.get("bandwidth", ()):
        kind = str(point["kind"])
        if kind not in largest or point["bytes"] > largest[kind]["bytes"]:
            largest[kind] = point
    return {f"{kind}_bytes_per_s": quantile(point["bytes_per_s"], 0.5) for kind, point in largest.items()}
