"""Refining a host's costs of operations with a few measured network functions (Baldi & Sapio 2018, sec. 6).

The estimate of a packet's cycles is a sum, ``Σ_o c_o + Σ_l s_l + call`` over operations ``o`` and levels ``l`` of the
memory. Measured functions correct it by factors that are close to 1::

    cycles = h_c·Σ_o f_o·c_o + h_s·Σ_l g_l·s_l + call

with a factor ``f_o`` for each operation and ``g_l`` for each level, shared by all functions of the host, and two
factors ``h_c``, ``h_s`` for each function: what its code does differently from its operations on their own. The
logarithms of the factors have normal priors around 0, measurements are log-normal around the sum: the posterior mode
is a small least-squares problem. Where functions agree that an operation is slower than probed, its factor moves, and
with it the estimate of every function that was never measured.
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

LEAST_OPERATION_SD: Final = 0.05
"""Prior standard deviation of an operation's log factor where its formula fits better than that."""

LEVEL_SD: Final = 0.15
"""Of a level's: the costs of lines were measured on their own, functions overlap them with work."""

FUNCTION_CYCLES_SD: Final = 0.15
FUNCTION_STALLS_SD: Final = 0.25
LEAST_MEASUREMENT_SD: Final = 0.02
"""No measurement on a shared machine repeats better than that in the long run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """The terms of an unrefined estimate, in core cycles per packet."""

    function: str
    operations: Mapping[str, float]
    levels: Mapping[str, float]
    fixed: float

    @property
    def cycles(self) -> float:
        """The whole estimate."""
        return sum(self.operations.values()) + sum(self.levels.values()) + self.fixed


@dataclass(frozen=True, slots=True, kw_only=True)
class Refined:
    """A host with its corrected costs, and the errors at the measurements before and after.

    ``before_ratio`` and ``after_ratio`` are signed relative errors of the estimates, in the order of the measurements.
    """

    hardware: Hardware
    before_ratio: tuple[float, ...]
    after_ratio: tuple[float, ...]

    def __str__(self) -> str:
        """Return a sentence with the number of measurements and the largest error before and after."""
        before, after = (max(map(abs, errors), default=math.nan) for errors in (self.before_ratio, self.after_ratio))
        count = f"{len(self.after_ratio)} measurement" + ("s" if len(self.after_ratio) > 1 else "")
        return f"{count}; the largest error of an estimate was {before:.1%}, and is {after:.1%} now"

    def to_json(self) -> dict[str, object]:
        """Return the errors as plain data."""
        return {"before_ratio": list(self.before_ratio), "after_ratio": list(self.after_ratio)}


def unrefined(hardware: Hardware) -> Hardware:
    """Return the host as it was probed, without corrections from measured functions."""
    plain = {name: replace(cost, factor=1.0) for name, cost in hardware.operations.items()}
    return replace(hardware, operations=plain, refinement=Refinement())


def refine(hardware: Hardware, measured: Sequence[MeasuredFunction]) -> Refined:
    """Correct a host's costs by measured functions, also by those of earlier refinements.

    ``hardware``: with ``stalls = "added"``: a probed host. Raises FitProblem: there is no measurement, one is not a
    number of cycles > 0, or the host lacks the costs of stalls.
    """
    everything = (*hardware.refinement.measured, *measured)
    if not everything:
        raise FitProblem(hardware.name, "no measured function: run one on this host first")
    if hardware.stalls != "added":
        what = "its file does not say what a line of memory costs; probe the host: routecast hardware probe"
        raise FitProblem(hardware.name, what)
    for function in everything:
        if not (math.isfinite(function.cycles) and function.cycles > 0.0):
            raise FitProblem(function.function, f"got {function.cycles} cycles per packet: a finite number > 0")
    plain = unrefined(hardware)
    parts = [_contribution(plain, function) for function in everything]
    fit = _Fit(plain, parts)
    theta = fit.mode([function.cycles for function in everything], [function.spread_ratio for function in everything])
    factors = dict(zip(fit.names, (math.exp(value) for value in theta), strict=True))
    operations = {
        name: replace(cost, factor=factors.get(("operation", name), 1.0)) for name, cost in plain.operations.items()
    }
    refinement = Refinement(
        measured=everything,
        levels={cast("LevelName", name): value for (kind, name), value in factors.items() if kind == "level"},
        functions={
            name: (value, factors["function stalls", name])
            for (kind, name), value in factors.items()
            if kind == "function cycles"
        },
    )
    refined = replace(plain, operations=operations, refinement=refinement)
    return Refined(hardware=refined, before_ratio=_errors(plain, everything), after_ratio=_errors(refined, everything))


def check_refinable(case: Case) -> None:
    """Refuse a case whose runs cannot correct the hardware file.

    Raises ModelProblem: all reasons at once.
    """
    problems = []
    if case.hardware.stalls != "added":
        what = f"{case.hardware.name} does not say what a line of memory costs: name the file of a probed host"
        problems.append(Problem("--on", what))
    if case.rate is not None:
        problems.append(Problem("--load", "a refinement needs the capacity: remove the rate"))
    if case.cores != 1:
        problems.append(Problem("--cores", f"got {case.cores}: a refinement needs one core"))
    if not all(frames.is_fixed for frames in case.frames):
        problems.append(Problem("--frame", "a refinement needs frames of one size"))
    if case.function.name not in FUNCTIONS.names():
        problems.append(Problem("NAME", f"{case.function.name} does not ship: only functions that ship refine a host"))
    if problems:
        raise ModelProblem("--refine", problems)


def refine_file(hardware: Hardware, measured: Sequence[MeasuredFunction], path: Path) -> Refined:
    """Correct the hardware by measured functions, as :func:`refine`, and write its file."""
    refined = refine(hardware, measured)
    write_hardware(refined.hardware, path)
    return refined


class _Fit:
    """The factors of a set of contributions, and the mode of their posterior."""

    def __init__(self, hardware: Hardware, parts: Sequence[Contribution]) -> None:
        self._parts = parts
        prior_sd: dict[tuple[str, str], float] = {}
        for part in parts:
            for name in part.operations:
                residual = hardware.operations[name].residual_ratio
                known = residual if math.isfinite(residual) else 0.0
                prior_sd["operation", name] = max(known, LEAST_OPERATION_SD)
            for name in part.levels:
                prior_sd["level", name] = LEVEL_SD
            prior_sd["function cycles", part.function] = FUNCTION_CYCLES_SD
            prior_sd["function stalls", part.function] = FUNCTION_STALLS_SD
        self.names = tuple(prior_sd)
        self._prior_sd = tuple(prior_sd.values())
        self._place = {name: number for number, name in enumerate(self.names)}

    def mode(self, cycles: Sequence[float], spread: Sequence[float]) -> Sequence[float]:
        import numpy as np
        from scipy.optimize import least_squares

        seen = np.log(np.asarray(cycles))
        sd = np.maximum(np.asarray(spread), LEAST_MEASUREMENT_SD)
        prior_sd = np.asarray(self._prior_sd)

        def residuals(theta: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.concatenate([(np.log(self._cycles(theta)) - seen) / sd, theta / prior_sd])

        solution = least_squares(residuals, np.zeros(len(self.names)))
        return [float(value) for value in solution.x]

    def _cycles(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        import numpy as np

        def factor(kind: str, name: str) -> float:
            return math.exp(theta[self._place[kind, name]])

        return np.asarray(
            [
                factor("function cycles", part.function)
                * sum(factor("operation", name) * value for name, value in part.operations.items())
                + factor("function stalls", part.function)
                * sum(factor("level", name) * value for name, value in part.levels.items())
                + part.fixed
                for part in self._parts
            ]
        )


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
        what = f"a measurement is of one direction; say which: {', '.join(sorted(directions))}"
        raise FitProblem(function.function, what)
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


def _errors(hardware: Hardware, measured: Sequence[MeasuredFunction]) -> tuple[float, ...]:
    return tuple(_estimate(hardware, function).packet_cycles / function.cycles - 1.0 for function in measured)
