"""Refine a host's costs of operations with a few measured network functions (Baldi & Sapio 2018, sec. 6).

The estimate of a packet's cycles is a sum, ``Σ_o c_o + Σ_l s_l + call`` over operations ``o`` and levels ``l`` of the
memory. Measured functions correct it by factors that are close to 1::

    cycles = h_c·Σ_o f_o·c_o + h_s·Σ_l g_l·s_l + call

with a factor ``f_o`` for each operation and ``g_l`` for each level, shared by all functions of the host, and two
factors ``h_c``, ``h_s`` for each function, the differences between its code and the sum of its operations. The
logarithms of the factors have normal priors around 0, and measurements are log-normal around the sum, so that the
posterior mode is a small least-squares problem. If several functions show that an operation is slower than probed, its
factor changes, and so do the estimates of unmeasured functions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from routecast.errors import FitProblem, ModelProblem, Problem
from routecast.function.case import Case
from routecast.function.catalogue import FUNCTIONS, read_function
from routecast.function.estimate import Estimate, estimate
from routecast.hardware.catalogue import write_hardware
from routecast.hardware.model import Hardware, LevelName, MeasuredFunction, Refinement
from routecast.load.popularity import Popularity

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Contribution", "Refined", "check_refinable", "refine", "refine_file", "unrefined"]

MIN_OPERATION_SD: Final = 0.05
"""Smallest prior standard deviation of an operation's log factor, whatever the residual of its formula."""

LEVEL_SD: Final = 0.15
"""Prior standard deviation of a level's log factor: functions overlap memory accesses with work, the probe does not."""

FUNCTION_CYCLES_SD: Final = 0.15
FUNCTION_STALLS_SD: Final = 0.25
MIN_MEASUREMENT_SD: Final = 0.02
"""Smallest relative standard deviation of a measurement, because other load on a shared machine varies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """The terms of the estimate of a function on a probed host, in core cycles per packet."""

    function: str
    operations: Mapping[str, float]
    levels: Mapping[str, float]
    fixed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Refined:
    """A host with its corrected costs, and the errors at the measurements before and after.

    ``before_ratio`` and ``after_ratio`` are signed relative errors of the estimates, in the order of the measurements.
    """

    hardware: Hardware
    before_ratio: tuple[float, ...]
    after_ratio: tuple[float, ...]

    def __str__(self) -> str:
        before, after = (max(map(abs, errors), default=math.nan) for errors in (self.before_ratio, self.after_ratio))
        count = f"{len(self.after_ratio)} measurement" + ("s" if len(self.after_ratio) > 1 else "")
        return f"{count}; the largest error of an estimate was {before:.1%}, and is {after:.1%} now"

    def to_json(self) -> dict[str, object]:
        """Return the errors as plain data."""
        return {"before_ratio": list(self.before_ratio), "after_ratio": list(self.after_ratio)}


def unrefined(hardware: Hardware) -> Hardware:
    """Return the host as it was probed, without corrections from measured functions."""
    operations = {name: replace(cost, factor=1.0) for name, cost in hardware.operations.items()}
    return replace(hardware, operations=operations, refinement=Refinement())


def refine(hardware: Hardware, measured: Sequence[MeasuredFunction]) -> Refined:
    """Correct a host's costs by measured functions, and by those of earlier refinements.

    ``hardware``: a probed host, with ``stalls = "added"``. Raises FitProblem: there is no measurement, the cycles of
    one are not finite and > 0, or the host lacks the costs of stalls.
    """
    all_measured = (*hardware.refinement.measured, *measured)
    if not all_measured:
        raise FitProblem(hardware.name, "no measured function: run one on this host first")
    if hardware.stalls != "added":
        raise FitProblem(
            hardware.name,
            "its file does not state the cost of a line of memory; probe the host: routecast hardware probe",
        )
    for function in all_measured:
        if not (math.isfinite(function.cycles) and function.cycles > 0.0):
            raise FitProblem(function.function, f"got {function.cycles} cycles per packet: give a finite number > 0")
    probed = unrefined(hardware)
    factors = _factors(probed, all_measured)
    operations = {
        name: replace(cost, factor=factors.get(("operation", name), 1.0)) for name, cost in probed.operations.items()
    }
    refinement = Refinement(
        measured=all_measured,
        levels={cast("LevelName", name): value for (kind, name), value in factors.items() if kind == "level"},
        functions={
            name: (value, factors["function stalls", name])
            for (kind, name), value in factors.items()
            if kind == "function cycles"
        },
    )
    refined = replace(probed, operations=operations, refinement=refinement)
    before, after = (
        tuple(_estimate(host, function).packet_cycles / function.cycles - 1.0 for function in all_measured)
        for host in (probed, refined)
    )
    return Refined(hardware=refined, before_ratio=before, after_ratio=after)


def check_refinable(case: Case) -> None:
    """Refuse a case whose runs cannot correct the hardware file.

    Raises ModelProblem: all reasons at once.
    """
    problems = []
    if case.hardware.stalls != "added":
        message = f"{case.hardware.name} does not state the cost of a line of memory: name the file of a probed host"
        problems.append(Problem("--on", message))
    if case.rate is not None:
        problems.append(Problem("--load", "a refinement needs the capacity: remove the rate"))
    if case.cores != 1:
        problems.append(Problem("--cores", f"got {case.cores}: a refinement needs one core"))
    if not all(frames.is_fixed for frames in case.frames):
        problems.append(Problem("--frame", "a refinement needs frames of one size"))
    if case.function.name not in FUNCTIONS.names():
        problems.append(Problem("NAME", f"{case.function.name} is not shipped: only shipped functions refine a host"))
    if problems:
        raise ModelProblem("--refine", problems)


def refine_file(hardware: Hardware, measured: Sequence[MeasuredFunction], path: Path) -> Refined:
    """Correct the hardware by measured functions, as :func:`refine`, and write its file."""
    refined = refine(hardware, measured)
    write_hardware(refined.hardware, path)
    return refined


def _factors(hardware: Hardware, measured: Sequence[MeasuredFunction]) -> dict[tuple[str, str], float]:
    """Return the factors at the mode of their posterior, by kind and name."""
    import numpy as np
    from scipy.optimize import least_squares

    parts = [_contribution(hardware, function) for function in measured]
    prior_sd: dict[tuple[str, str], float] = {}
    for part in parts:
        for name in part.operations:
            residual = hardware.operations[name].residual_ratio
            prior_sd["operation", name] = max(residual if math.isfinite(residual) else 0.0, MIN_OPERATION_SD)
        prior_sd |= {("level", name): LEVEL_SD for name in part.levels}
        prior_sd["function cycles", part.function] = FUNCTION_CYCLES_SD
        prior_sd["function stalls", part.function] = FUNCTION_STALLS_SD
    log_measured = np.log([function.cycles for function in measured])
    sd = np.maximum([function.spread_ratio for function in measured], MIN_MEASUREMENT_SD)
    log_factor_sd = np.array(list(prior_sd.values()))

    def factors(theta: NDArray[np.float64]) -> dict[tuple[str, str], float]:
        return dict(zip(prior_sd, map(math.exp, theta), strict=True))

    def cycles(part: Contribution, factor: Mapping[tuple[str, str], float]) -> float:
        operations = sum(factor["operation", name] * value for name, value in part.operations.items())
        stalls = sum(factor["level", name] * value for name, value in part.levels.items())
        function = part.function
        return (
            factor["function cycles", function] * operations + factor["function stalls", function] * stalls + part.fixed
        )

    def residuals(theta: NDArray[np.float64]) -> NDArray[np.float64]:
        factor = factors(theta)
        errors = (np.log([cycles(part, factor) for part in parts]) - log_measured) / sd
        return np.concatenate([errors, theta / log_factor_sd])

    return factors(least_squares(residuals, np.zeros(len(prior_sd))).x)


def _estimate(hardware: Hardware, function: MeasuredFunction) -> Estimate:
    return estimate(
        read_function(function.function),
        hardware,
        direction=function.direction or None,
        frame_bytes=function.frame_bytes,
        popularity=Popularity.parse(function.traffic),
        tables=function.tables,
    )


def _contribution(hardware: Hardware, function: MeasuredFunction) -> Contribution:
    estimated = _estimate(hardware, function)
    directions = {step.direction for step in estimated.operations}
    if len(directions) > 1:
        choices = ", ".join(sorted(directions))
        raise FitProblem(function.function, f"a measurement has one direction: name it ({choices})")
    operations: dict[str, float] = {}
    levels: dict[str, float] = {}
    for step in estimated.operations:
        operations[step.operation] = operations.get(step.operation, 0.0) + step.cycles
        for level, cycles in step.stall_cycles_by_level.items():
            levels[level] = levels.get(level, 0.0) + cycles
    fixed = estimated.packet_cycles - sum(operations.values()) - sum(levels.values())
    return Contribution(
        function=f"{function.function}/{directions.pop()}", operations=operations, levels=levels, fixed=fixed
    )
