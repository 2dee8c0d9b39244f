"""``routecast function NAME --simulate``: latency and loss of the estimated router."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from routecast.cli.console import progress_bar
from routecast.errors import TransientProblem

if TYPE_CHECKING:
    from routecast.cli.function.case import Case
    from routecast.evaluate.trial import Trial
    from routecast.function.estimate import Estimate

__all__ = ["simulated"]

_LOAD_RATIO = 0.8
_SIMULATED_S = 0.02


def simulated(case: Case, found: Estimate, load_pps: float | None, duration_s: float | None, seed: int) -> Trial:
    """Return a trial of the router that the estimate makes, at ``load_pps`` or 80 % of its throughput."""
    from routecast.evaluate.simulate import Simulate
    from routecast.load.flows import FlowSet
    from routecast.load.frames import FrameMix
    from routecast.load.offered import OfferedLoad
    from routecast.router.estimated import estimated_router

    sizes = found.frames.share_by_bytes
    by_size = (
        {size: case.estimate(found.direction, FrameMix.fixed(size), found.remote_ratio).packet_cycles for size in sizes}
        if len(sizes) > 1
        else {}
    )
    model = estimated_router(found, case.hardware, by_size=by_size)
    ports = len(model.ports)
    offered = OfferedLoad(
        rate_pps=load_pps or _LOAD_RATIO * found.pps,
        frames=found.frames,
        flows=FlowSet.crafted(math.lcm(found.cores, ports), ports=ports),
    )
    with progress_bar(f"simulating {found.function}") as report:
        simulator = Simulate(model, seed=seed, on_progress=lambda share: report(round(100.0 * share), 100, ""))
        try:
            return simulator.trial(offered, duration_s or _SIMULATED_S)
        except TransientProblem as problem:
            if duration_s is not None:
                raise
            return simulator.trial(offered, 1.5 * problem.needed_s)
