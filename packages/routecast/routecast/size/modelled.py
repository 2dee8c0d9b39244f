"""Sizing of a router from a file, or from a network function on a host."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routecast.calibration.counts import Count, cores, evaluated_counts
from routecast.errors import FileProblem, FitProblem, ModelProblem, Problem, RoutecastError, TransientProblem
from routecast.evaluate.solve import Solve, capacity_pps, lossless_pps
from routecast.evaluate.sweep import SIMULATED_S, Prepare, even_flows, ordinary, trial_past_transient
from routecast.evaluate.targets import Target as Bound
from routecast.evaluate.trial import NO_LOSS_RATIO, Trial
from routecast.function.estimate import estimate
from routecast.function.model import NetworkFunction
from routecast.hardware.model import Hardware
from routecast.load.offered import OfferedLoad
from routecast.progress import Progress
from routecast.quantity.toml_file import fields_at
from routecast.router.estimated import estimated_router
from routecast.router.files import build_router, router_table
from routecast.router.model import RouterModel
from routecast.router.performance import at_frequency
from routecast.router.variants import vary
from routecast.size._answer import LatencyAnswer, Sizing, Target

if TYPE_CHECKING:
    from routecast.evaluate.simulate import Simulate
    from routecast.evaluate.simulate.precision import Progress as PreciseProgress

__all__ = ["RouterOf", "at_clock", "clocks_of", "router_of_document", "router_of_function", "size_router"]

RouterOf = Callable[[int], tuple[RouterModel, OfferedLoad | None]]
"""Returns the router with a number of cores, and the load of its file."""

_MAX_SIMULATED = 8
_SAME_SIZE = 0.01
_RATE_TOLERANCE_RATIO = 1.0 - 1e-9
_LOSS_TOLERANCE_RATIO = 1e-12
_FINEST_LOSS_RATIO = 1e-10
_LOOK_S = 3.0
"""Longest look for rare losses, s of work for a number of cores."""


def router_of_document(document: Mapping[str, Any], target: Target, *, subject: str, folder: Path | None) -> RouterOf:
    """Return a function that gives the router of a file with other numbers of cores.

    Raises
    ------
    routecast.errors.FileProblem
        The router has no number of cores.
    """
    if "cores" not in fields_at(router_table(document, subject), ()):
        builder = f"builder {document['builder']!r}" if "builder" in document else "task units"
        message = f"a router of {builder} has no number of cores: `routecast sweep` varies its other fields"
        raise FileProblem(subject, [Problem("cores", message)])

    def router(count: int) -> tuple[RouterModel, OfferedLoad | None]:
        varied = vary(document, {"cores": count}, subject=subject)
        return build_router(varied, subject=subject, folder=folder, frames=target.frames)

    return router


def router_of_function(function: NetworkFunction, hardware: Hardware, target: Target) -> RouterOf:
    """Return a function that gives the router of a network function on a number of cores of a host."""

    def router(count: int) -> tuple[RouterModel, OfferedLoad | None]:
        mix_estimate = estimate(function, hardware, frame_bytes=target.frames, cores=count)
        sizes = [] if target.frames.is_fixed else list(target.frames.share_by_bytes)
        cycles = {size: estimate(function, hardware, frame_bytes=size, cores=count).packet_cycles for size in sizes}
        return estimated_router(mix_estimate, hardware, by_size=cycles), None

    return router


def clocks_of(model: RouterModel) -> tuple[str, tuple[float, ...]]:
    """Return the pool with P-states, and their clocks in Hz in ascending order; empty without P-states."""
    for pool in model.pools:
        if pool.power is not None and pool.power.performance:
            return pool.name, tuple(sorted(state.frequency_hz for state in pool.power.performance))
    return "", ()


def at_clock(router_of: RouterOf, pool: str, frequency_hz: float) -> RouterOf:
    """Return a function that gives the routers with the units of a pool at another clock."""

    def router(count: int) -> tuple[RouterModel, OfferedLoad | None]:
        model, load = router_of(count)
        return at_frequency(model, frequency_hz, pool=pool), load

    return router


def size_router(
    router_of: RouterOf,
    target: Target,
    *,
    counts: Sequence[int],
    name: str = "",
    bounds: Sequence[Bound] = (),
    notes: Sequence[str] = (),
    prepare: Prepare = ordinary,
    on_progress: Progress = lambda done, total, now: None,
) -> Sizing:
    """Return the least number of cores that meets a target, by the closed form and then by the simulator.

    The description counts as exact, so the answer has no probability. The closed form finds the first count that the
    target does not overload, and the simulator checks its loss and latency. If they miss, the next count is tried. A
    count that cannot be simulated is the answer only if the closed form knows that it loses no more than the target
    allows.

    Parameters
    ----------
    router_of : callable
    target : Target
        Its probability is ignored.
    counts : sequence of int
    name : str
        Name of the router.
    bounds : sequence of Bound
        Bounds on the latency.
    notes : sequence of str
        Remarks on the description, for the reader.
    prepare : callable
        Makes the simulator of a trial, as of :func:`routecast.evaluate.sweep.sweep`.
    on_progress : callable

    Raises
    ------
    routecast.errors.RoutecastError
        No number of cores makes a valid router.
    """
    allowed = sorted(set(counts))
    if not allowed:
        raise FitProblem(name, "give at least one number of cores to choose from, each 1 or more")
    skipped: list[str] = []

    def solved(part: Sequence[int]) -> list[Count]:
        counts_of_part, problems = _solved_counts(router_of, part, target, bounds, on_progress)
        skipped.extend(problems)
        return counts_of_part

    def is_enough(count: Count) -> bool:
        return count.rate_pps >= target.forwarded_pps * _RATE_TOLERANCE_RATIO

    evaluated = evaluated_counts(allowed, solved, is_enough)
    if not evaluated:
        raise RoutecastError(f"no number of cores makes a valid router; the first error: {skipped[0]}")
    sufficient = [count for count in evaluated if is_enough(count)]
    least, trial_notes = _confirmed(
        sufficient, lambda count: router_of(count.cores), target, bounds, prepare=prepare, on_progress=on_progress
    )
    if skipped:
        trial_notes = [*trial_notes, f"{len(skipped)} counts make no valid router; the first error: {skipped[0]}"]
    if least is not None:
        evaluated = tuple(least if count.cores == least.cores else count for count in evaluated)
    return Sizing(
        series=name,
        target=target,
        counts=evaluated,
        least=least,
        facts=(),
        next=(),
        warnings=(*notes, *trial_notes),
        bounds=tuple(bounds),
        latency=_latency_answer(router_of, least, target, bounds),
    )


def _solved_counts(
    router_of: RouterOf, counts: Sequence[int], target: Target, bounds: Sequence[Bound], on_progress: Progress
) -> tuple[list[Count], list[str]]:
    """Return the counts that make a valid router, by the closed form, and the problems of the others."""
    solved_counts, problems = [], []
    for done, count in enumerate(counts):
        on_progress(done, len(counts), f"{count} cores")
        try:
            solved_counts.append(_solved(router_of, count, target, bounds))
        except RoutecastError as problem:
            problems.append(f"{count} cores: {problem}")
    return solved_counts, problems


def _latency_answer(router_of: RouterOf, least: Count | None, target: Target, bounds: Sequence[Bound]) -> LatencyAnswer:
    if not bounds:
        return LatencyAnswer(reason="no bound on the latency was given")
    if least is None:
        return LatencyAnswer(reason="no number of cores is known to meet the bound")
    if math.isnan(least.latency_s):
        return LatencyAnswer(reason="not simulated", is_open=True)
    model, default = router_of(least.cores)
    return LatencyAnswer(value_s=least.latency_s, arrivals=_load(model, default, least.cores, target).arrivals.text)


def _confirmed(
    sufficient: Sequence[Count],
    router_of: Callable[[Count], tuple[RouterModel, OfferedLoad | None]],
    target: Target,
    bounds: Sequence[Bound],
    *,
    prepare: Prepare = ordinary,
    on_progress: Progress = lambda done, total, now: None,
) -> tuple[Count | None, list[str]]:
    """Return the first number of cores that the simulator confirms, and notes on the simulated trials."""
    from routecast.evaluate.simulate import Simulate

    notes: list[str] = []
    for done, count in enumerate(sufficient[:_MAX_SIMULATED]):
        on_progress(done, min(len(sufficient), _MAX_SIMULATED), f"simulating {count.cores} cores")
        model, default = router_of(count)
        is_known = count.known_loss_ratio <= target.loss_ratio and not 0.0 < target.loss_ratio < NO_LOSS_RATIO
        try:
            load = _load(model, default, count.cores, target)
            prepared = prepare(Simulate(model), load, SIMULATED_S)
            trial = trial_past_transient(prepared, load, None)
            is_told = (is_known and target.loss_ratio > 0.0) or not _is_drawn(trial, prepared, load)
        except RoutecastError as problem:
            known = "the closed form knows of no more loss" if is_known else "their loss is not known"
            notes.append(f"{cores(count.cores)} not simulated, {known}: {problem}")
            return (replace(count, latency_s=math.nan) if is_known else None), notes
        missed = [
            f"{bound.quantity} is {bound.format_value(bound.value(trial))}" for bound in bounds if not bound.met(trial)
        ]
        loss = _Loss.of_trial(trial)
        if loss.ratio <= target.loss_ratio + _LOSS_TOLERANCE_RATIO and not missed and not is_told:
            loss = _looked_at(loss, prepared, load, target.loss_ratio, on_progress)
        if loss.ratio > target.loss_ratio + _LOSS_TOLERANCE_RATIO or loss.most_ratio > target.loss_ratio:
            missed.insert(0, f"{loss.text} of the frames are lost")
        if not missed:
            answer = replace(count, latency_s=_bounded_latency_s(trial, bounds), known_loss_ratio=loss.ratio)
            values = _simulated_values(loss, trial, bounds)
            if bounds:
                values += f" with {_load(model, default, count.cores, target).arrivals.text}"
            if is_told or loss.most_ratio <= target.loss_ratio:
                notes.append(f"the simulator confirms {cores(count.cores)}: {values}")
                return answer, notes
            notes.append(f"the simulator does not refute {cores(count.cores)}: {values}")
            return replace(answer, frames_simulated=loss.frames), notes
        notes.append(f"{cores(count.cores)} can carry the rate, but simulated {' and '.join(missed)}")
    if len(sufficient) > _MAX_SIMULATED:
        notes.append(f"only the first {_MAX_SIMULATED} counts that carry the rate were simulated")
    return None, notes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loss:
    """The loss of simulated frames, with the upper end of its 95 % interval where there is one, else NaN."""

    ratio: float
    frames: int
    most_ratio: float = math.nan

    @classmethod
    def of_trial(cls, trial: Trial) -> _Loss:
        return cls(ratio=trial.loss_ratio, frames=round(trial.offered_pps * trial.duration_s))

    @property
    def text(self) -> str:
        if self.ratio <= 0.0 or not self.most_ratio > self.ratio:
            return f"{self.ratio:.3g}"
        return f"{self.ratio:.3g} (95 %: up to {self.most_ratio:.3g})"


def _is_drawn(trial: Trial, simulate: Simulate, load: OfferedLoad) -> bool:
    """Return whether another seed gives another trial: then a short one tells no rare losses."""
    try:
        other = replace(simulate, seed=simulate.seed + 1).trial(load, trial.duration_s)
    except TransientProblem:  # its transient is another one
        return True
    return any(
        getattr(trial, name) != getattr(other, name)
        for name in ("offered_pps", "forwarded_pps", "loss_ratio", "latency")
    )


def _looked_at(
    loss: _Loss, simulate: Simulate, load: OfferedLoad, allowed_ratio: float, on_progress: Progress
) -> _Loss:
    """Return the loss of many more frames, where the first ones kept the target: a short trial tells no rare losses.

    It ends when the interval of the loss is half as wide as the loss that is allowed, or after some seconds.
    """
    from routecast.evaluate.simulate.precision import Precision, simulate_precisely

    if load.steps or load.arrivals.trace is not None:
        return loss
    wanted = Precision(figure="loss", half_width=max(0.5 * allowed_ratio, _FINEST_LOSS_RATIO), is_relative=False)

    def tell(progress: PreciseProgress) -> None:
        on_progress(progress.batches, progress.batches + 1, f"rare losses: {progress.batches} batches")

    try:
        precise = simulate_precisely(simulate, load, (wanted,), at_most_s=_LOOK_S, on_progress=tell)
    except RoutecastError:
        return loss
    estimate = precise.of("loss")
    most_ratio = estimate.value + estimate.half_width if estimate.value > 0.0 else math.nan
    return _Loss(ratio=estimate.value, frames=precise.offered_frames, most_ratio=most_ratio)


def _simulated_values(loss: _Loss, trial: Trial, bounds: Sequence[Bound]) -> str:
    values = (f"{bound.quantity} {bound.format_value(bound.value(trial))}" for bound in bounds)
    of_frames = f"none of {loss.frames:,} frames is lost" if loss.ratio <= 0.0 else f"loss {loss.text}"
    return ", ".join((of_frames, *values))


def _solved(router_of: RouterOf, count: int, target: Target, bounds: Sequence[Bound]) -> Count:
    model, default = router_of(count)
    load = _load(model, default, count, target)
    trial = Solve(model=model).trial(load, 1.0)
    rate_pps = capacity_pps(model, load) if target.loss_ratio else lossless_pps(model, load)
    return Count(
        cores=count,
        probability=None,
        rate_pps=rate_pps,
        low_pps=math.nan,
        high_pps=math.nan,
        limit=trial.bottleneck.name,
        outside=(),
        latency_s=_bounded_latency_s(trial, bounds),
        power_w=trial.power.mean_w if trial.power else math.nan,
        known_loss_ratio=trial.known_loss_ratio,
    )


def _bounded_latency_s(trial: Trial, bounds: Sequence[Bound]) -> float:
    """Return the latency of the first bound; NaN without a bound or if the latency is unknown."""
    return next((bound.value(trial) for bound in bounds if bound.quantity != "loss"), math.nan)


def _load(model: RouterModel, default: OfferedLoad | None, count: int, target: Target) -> OfferedLoad:
    base = default or OfferedLoad(rate_pps=1.0)
    if base.arrivals.trace is not None:
        mean_bytes, wanted_bytes = base.frames.mean_bytes, target.frames.mean_bytes
        if abs(mean_bytes - wanted_bytes) > _SAME_SIZE * mean_bytes:
            message = (
                f"the target is in frames of {wanted_bytes:.4g} B, and those of the trace have {mean_bytes:.4g} B on "
                f'average: give --frames "{round(mean_bytes)} B"; sizes and flows are the trace\'s'
            )
            raise ModelProblem("offered load", [Problem("frames", message)])
        return base.at(target.rate_pps)
    flows = even_flows(count, len(model.ports))
    return OfferedLoad(rate_pps=target.rate_pps, frames=target.frames, flows=flows, arrivals=base.arrivals)
