"""The closed-form evaluator: what a router forwards, drops and delays at a load, in milliseconds.

Rates are fluid: frames split over the task graph by the flows' hashes and the routes, every resource carries
what it can (paper 000, eq. 1, generalised to visit counts, shared pools and contention), the rest is dropped
where it waits. Routers of threads have a fixed point of their own, see
:mod:`routecast.evaluate.solve.throughput`. Latency and loss from fluctuation come from queueing theory where the model
is such a queue, see :mod:`routecast.evaluate.solve.delay`; where no result applies the trial says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from routecast.errors import ModelProblem, Problem
from routecast.evaluate.energy import energy_of, power_notes, power_of
from routecast.evaluate.solve.bottleneck import resources_of
from routecast.evaluate.solve.delay import delays
from routecast.evaluate.solve.fluid import Fluid
from routecast.evaluate.solve.machine import has_threads, machine_of
from routecast.evaluate.solve.rates import rates_of
from routecast.evaluate.solve.states import activity_of, states_of
from routecast.evaluate.solve.throughput import lossless_of
from routecast.evaluate.trial import Trial
from routecast.load.offered import WIRE_OVERHEAD_BYTES, OfferedLoad
from routecast.router.check_load import check_load
from routecast.router.model import RouterModel

__all__ = ["Solve", "capacity_pps", "lossless_pps"]


@dataclass(frozen=True, slots=True)
class Solve:
    """Evaluator ``"solve"`` for a router model.

    Examples
    --------
    >>> from routecast.load import FlowSet, OfferedLoad
    >>> from routecast.router import ServiceCost, multicore
    >>> router = multicore(2, ServiceCost(per_packet_s=1e-6))
    >>> trial = Solve(model=router).trial(OfferedLoad(rate_pps=3e6, flows=FlowSet.crafted(2)), 1.0)
    >>> round(trial.forwarded_pps), trial.bottleneck.name
    (2000000, 'cpu')
    """

    model: RouterModel

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        """Answer for the steady state under ``load``; the duration only scales the energy.

        Raises
        ------
        routecast.errors.ModelProblem
            A flow names a port that the router does not have, or the load changes its rate.
        """
        check_load(self.model, load)
        _check_steady(load)
        fluid = rates_of(self.model, load)
        answer = delays(fluid)
        fluid = _as_served(fluid, answer.work_pps)
        offered_pps = float(fluid.offered.sum())
        dropped_pps = sum(answer.drops_pps.values())
        forwarded_pps = max(offered_pps - dropped_pps, 0.0)
        resources, bottleneck = resources_of(fluid, forwarded_pps=forwarded_pps)
        mean_bytes = answer.forwarded_bytes
        states, assumed = states_of(fluid, answer)
        energy_j = energy_of(states, duration_s)
        l2_bps = 8.0 * mean_bytes * forwarded_pps
        notes = [*fluid.notes, *answer.notes, *assumed, *power_notes(self.model)]
        intended_pps = fluid.intended_pps
        if offered_pps < intended_pps * (1.0 - 1e-9):
            notes.insert(0, "the intended load exceeds line rate; the offered load is what the links carry")
        return Trial(
            evaluator="solve",
            duration_s=duration_s,
            intended_pps=intended_pps,
            offered_pps=offered_pps,
            forwarded_pps=forwarded_pps,
            loss_ratio=dropped_pps / offered_pps,
            l1_bps=8.0 * (mean_bytes + WIRE_OVERHEAD_BYTES) * forwarded_pps,
            l2_bps=l2_bps,
            bottleneck=bottleneck,
            resources=resources,
            drops_pps=answer.drops_pps,
            latency=answer.latency,
            waiting=answer.waiting,
            energy_j=energy_j,
            power=power_of(
                self.model, energy_j, duration_s=duration_s, forwarded_pps=forwarded_pps, l2_bps=l2_bps
            ),
            activity=activity_of(fluid, answer),
            queue_frames=answer.queue_frames,
            notes=tuple(dict.fromkeys(notes)),
        )


def capacity_pps(model: RouterModel, load: OfferedLoad) -> float:
    """Return the greatest forwarding rate: what leaves when every port that the flows use takes in its line rate.

    This is the "maximum throughput" of paper 000, measured under overload; with flows spread unevenly it is
    more than the rate without loss, :func:`lossless_pps`. Frames of all sizes are taken to be lost alike; behind a
    busy link with mixed sizes a trial forwards less, see :mod:`routecast.evaluate.solve.crowding`. Threads that forward
    less in overload than without loss (livelock) count with the rate without loss.

    Parameters
    ----------
    model : RouterModel
    load : OfferedLoad
        Frames, flows and arrivals; its rate is not used.
    """
    check_load(model, load)
    fluid = rates_of(model, load, overload=True)
    forwarded_pps = float(fluid.offered.sum()) - sum(fluid.drops_pps().values())
    if fluid.steady is not None:
        return max(forwarded_pps, lossless_of(fluid.steady.machine).rate_pps)
    return forwarded_pps


def lossless_pps(model: RouterModel, load: OfferedLoad) -> float:
    """Return the greatest intended rate that overloads no resource: RFC 1242 throughput, fluctuation apart."""
    check_load(model, load)
    if has_threads(model):
        return lossless_of(machine_of(model, load)).rate_pps
    resources, _ = resources_of(rates_of(model, load))
    return min((resource.capacity_pps for resource in resources), default=float("inf"))


def _check_steady(load: OfferedLoad) -> None:
    if load.steps:
        message = "there are no transients in closed form; use simulate for a load that changes its rate"
        raise ModelProblem("offered load", [Problem("steps", message)])
    if load.arrivals.kind == "bursts":
        message = "repeated bursts have no closed form; use simulate"
        raise ModelProblem("offered load", [Problem("arrivals", message)])


def _as_served(fluid: Fluid, work_pps: Mapping[str, float]) -> Fluid:
    """Return the fluid state with the units' work cut by the losses that queueing theory adds."""
    count = len(fluid.graph.tasks)
    before = fluid.rates[:count].sum(axis=1) * fluid.admitted_ratio[:count]
    work = np.array([work_pps[task.name] for task in fluid.graph.tasks])
    ratio = np.minimum(np.divide(work, before, out=np.ones(count), where=before > 0.0), 1.0)
    busy = {name: units * ratio for name, units in fluid.busy_units.items()}
    polling = np.array([task.activation.kind == "polling" for task in fluid.graph.tasks])
    active = {name: np.where(polling, units, units * ratio) for name, units in fluid.active_units.items()}
    return replace(fluid, busy_units=busy, active_units=active)
