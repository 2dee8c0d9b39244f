"""Size a router of a file, or of a network function on a host."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from routecast.errors import FileProblem, FitProblem, Problem, RoutecastError
from routecast.evaluate.solve import Solve, capacity_pps, lossless_pps
from routecast.evaluate.sweep import even_flows, past_the_transient
from routecast.evaluate.trial import Trial
from routecast.function.estimate import estimate
from routecast.function.model import NetworkFunction
from routecast.hardware.model import Hardware
from routecast.load.offered import OfferedLoad
from routecast.power.operating.targets import Target as Bound
from routecast.progress import Progress
from routecast.quantity.toml_file import fields_at
from routecast.router.estimated import estimated_router
from routecast.router.files import build_router, router_table
from routecast.router.model import RouterModel
from routecast.router.performance import at_frequency
from routecast.router.variants import vary
from routecast.size._answer import Count, Sizing, Target, looked_at

__all__ = ["RouterOf", "at_clock", "clocks_of", "confirmed", "router_of_document", "router_of_function", "size_router"]

RouterOf = Callable[[int], tuple[RouterModel, OfferedLoad | None]]
"""Returns a router with so many cores, and the load that its file suggests."""

_MOST_SIMULATED = 8
_ENOUGH = 1.0 - 1e-9
_LOST = 1e-9


def router_of_document(document: Mapping[str, Any], target: Target, *, subject: str, folder: Path | None) -> RouterOf:
    """Return the routers of a file with other numbers of cores.

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


def router_of_function(
    function: NetworkFunction, hardware: Hardware, target: Target, *, direction: str | None = None
) -> RouterOf:
    """Return the routers of a function on numbers of cores of a host, by its elementary operations."""

    def router(count: int) -> tuple[RouterModel, OfferedLoad | None]:
        whole = estimate(function, hardware, direction=direction, frame_bytes=target.frames, cores=count)
        sizes = target.frames.share_by_bytes
        by_size = (
            {
                size: estimate(function, hardware, direction=direction, frame_bytes=size, cores=count).packet_cycles
                for size in sizes
            }
            if len(sizes) > 1
            else {}
        )
        return estimated_router(whole, hardware, by_size=by_size), None

    return router


def clocks_of(model: RouterModel) -> tuple[str, tuple[float, ...]]:
    """Return the pool that has P-states, and their clocks in Hz, in ascending order; no clock where none has."""
    for pool in model.pools:
        if pool.power is not None and pool.power.performance:
            return pool.name, tuple(sorted(state.frequency_hz for state in pool.power.performance))
    return "", ()


def at_clock(router_of: RouterOf, pool: str, frequency_hz: float) -> RouterOf:
    """Return the routers with the units of a pool at another of its clocks."""

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
    on_progress: Progress = lambda done, total, now: None,
) -> Sizing:
    """Return the least of some counts of cores that meets a target, by the closed form and then by the simulator.

    The description is taken as exact, so no probability is known. The closed form finds the first count that carries
    the target, and the simulator confirms it, loss and latency; where it does not, the next one is tried.

    Parameters
    ----------
    router_of : callable
    target : Target
        Its probability is not looked at.
    counts : sequence of int
    name : str
        Of the router.
    bounds : sequence of Bound
        On the latency.
    notes : sequence of str
        What the reader must know of the description.
    on_progress : callable

    Raises
    ------
    routecast.errors.RoutecastError
        No count makes a router.
    """
    wanted = sorted(set(counts))
    if not wanted:
        raise FitProblem(name, "give at least one number of cores to choose from, each 1 or more")
    skipped: list[str] = []

    def solved(part: Sequence[int]) -> list[Count]:
        made = []
        for done, count in enumerate(part):
            on_progress(done, len(part), f"{count} cores")
            try:
                made.append(_solved(router_of, count, target, bounds))
            except RoutecastError as problem:
                skipped.append(f"{count} cores: {problem}")
        return made

    def is_enough(count: Count) -> bool:
        return count.rate_pps >= target.forwarded_pps * _ENOUGH

    counted = looked_at(wanted, solved, is_enough)
    if not counted:
        raise RoutecastError(f"no count of cores makes a router; the first says: {skipped[0]}")
    able = [count for count in counted if is_enough(count)]
    least, further = confirmed(able, lambda count: router_of(count.cores), target, bounds, on_progress=on_progress)
    if skipped:
        further = [*further, f"{len(skipped)} counts make no router; the first says: {skipped[0]}"]
    if least is not None:
        counted = tuple(least if count.cores == least.cores else count for count in counted)
    return Sizing(
        series=name,
        target=target,
        counts=counted,
        least=least,
        facts=(),
        next=(),
        warnings=(*notes, *further),
        bounds=tuple(bounds),
    )


def confirmed(
    able: Sequence[Count],
    router_of: Callable[[Count], tuple[RouterModel, OfferedLoad | None]],
    target: Target,
    bounds: Sequence[Bound],
    *,
    on_progress: Progress = lambda done, total, now: None,
) -> tuple[Count | None, list[str]]:
    """Return the first of some numbers of cores that the simulator confirms, and the trials before it."""
    from routecast.evaluate.simulate import Simulate

    notes: list[str] = []
    for tried, count in enumerate(able[:_MOST_SIMULATED]):
        on_progress(tried, min(len(able), _MOST_SIMULATED), f"simulating {count.cores} cores")
        model, default = router_of(count)
        try:
            trial = past_the_transient(Simulate(model), _load(model, default, count.cores, target), None)
        except RoutecastError as problem:
            notes.append(f"{count.cores} cores are not simulated: {problem}")
            return count, notes
        missed = [
            f"{bound.quantity} is {bound.format_value(bound.value(trial))}" for bound in bounds if not bound.met(trial)
        ]
        if trial.loss_ratio > target.loss_ratio + _LOST:
            missed.insert(0, f"{trial.loss_ratio:.3g} of the frames are lost")
        if not missed:
            notes.append(f"the simulator confirms {count.cores} cores: {_seen(trial, bounds)}")
            return replace(count, latency_s=_bounded(trial, bounds)), notes
        notes.append(f"{count.cores} cores carry the rate, but simulated {' and '.join(missed)}")
    if len(able) > _MOST_SIMULATED:
        notes.append(f"only the first {_MOST_SIMULATED} counts that carry the rate were simulated")
    return None, notes


def _seen(trial: Trial, bounds: Sequence[Bound]) -> str:
    parts = [
        f"loss {trial.loss_ratio:.3g}",
        *(f"{each.quantity} {each.format_value(each.value(trial))}" for each in bounds),
    ]
    return ", ".join(parts)


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
        latency_s=_bounded(trial, bounds),
        power_w=trial.power.mean_w if trial.power else math.nan,
    )


def _bounded(trial: Trial, bounds: Sequence[Bound]) -> float:
    """Return the latency of the first bound; NaN where there is no bound or the latency is unknown."""
    return next((bound.value(trial) for bound in bounds if bound.quantity != "loss"), math.nan)


def _load(model: RouterModel, default: OfferedLoad | None, count: int, target: Target) -> OfferedLoad:
    ports = len(model.ports)
    base = default or OfferedLoad(rate_pps=1.0)
    flows = even_flows(count, ports)
    return OfferedLoad(rate_pps=target.rate_pps, frames=target.frames, flows=flows, arrivals=base.arrivals)
