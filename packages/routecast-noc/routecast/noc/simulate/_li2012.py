"""Table 6.1 of Li (2012): power with and without DVFS at the flit level, hot-spot traffic, XY routing.

N. Li, "Energy Saving and Virtualization Technologies in Switching" (PhD thesis, Politecnico di Torino, 2012), sec. 6.6:
a mesh of 5 x 5, VOQs of 50 flits, greedy maximum weight matching, packets of 5 to 10 flits, Bernoulli; 5 runs.

At load 1 the bottleneck link is full: 0.154 flits per node and cycle, or 4.81 of 31.25 Mflit/s. Li (2012) states 5.2
Mflit/s, which counts only the flits to the centre on that link, 10 nodes times 0.6. With the flits to other nodes, that
rate would load the link 1.08 times.
"""

from __future__ import annotations

import math

from routecast.noc.patterns import hot_spot
from routecast.noc.routing.policies import routes
from routecast.noc.scaling import Scaling
from routecast.noc.simulate._design import Packets, RouterDesign, SimulationPhases
from routecast.noc.simulate._fabric import single
from routecast.noc.simulate._result import MeanEstimate
from routecast.noc.simulate._simulator import simulate_all
from routecast.noc.topology import Topology, TopologyKind
from routecast.noc.traffic import normalised
from routecast.progress import ShareProgress
from routecast.quantity.schema import field, value

_ALPHA_MAX = 3.0
_SHARE = 0.6


@value
class PrintedRow:
    """A row as Li (2012) prints it: load, power without and with DVFS, their ratio, and alpha squared."""

    load: float
    without_dvfs: float
    with_dvfs: float
    ratio: float
    theory: float


TABLE_6_1 = (
    PrintedRow(load=1.0, without_dvfs=1.00, with_dvfs=1.00, ratio=1.00, theory=1.00),
    PrintedRow(load=0.8, without_dvfs=0.806, with_dvfs=0.513, ratio=1.57, theory=1.56),
    PrintedRow(load=0.6, without_dvfs=0.602, with_dvfs=0.215, ratio=2.86, theory=2.78),
    PrintedRow(load=0.4, without_dvfs=0.412, with_dvfs=0.0643, ratio=6.40, theory=6.25),
    PrintedRow(load=0.2, without_dvfs=0.201, with_dvfs=0.0223, ratio=9.02, theory=9.00),
)
"""Table 6.1 as printed (sec. 6.6)."""


@value
class DvfsRow:
    """A row of the table, simulated; powers are relative to that at load 1."""

    load: float = field("Load of the bottleneck link at full clock")
    alpha: float = field("min(1/load, 3)")
    without_dvfs: MeanEstimate = field("Power at full clock")
    with_dvfs: MeanEstimate = field("Power at 1/alpha of it")
    ratio: MeanEstimate = field("Power without DVFS over power with it")
    theory: float = field("Alpha squared")
    printed: PrintedRow = field("The printed row")


def table_6_1(run: SimulationPhases | None = None, *, on_progress: ShareProgress | None = None) -> tuple[DvfsRow, ...]:
    """Simulate Table 6.1.

    With DVFS the bottleneck link is always busy down to a load of 1/3: its queues grow slowly, a little less is carried
    than offered, and latency is unbounded. Power hardly changes. ``run``: 5 replications by default, as in Li (2012).
    """
    # Power is measured while the sources send, so that nothing is drained.
    run = run or SimulationPhases(replications=5, warmup_cycles=10_000, measure_cycles=40_000, drain_cycles=0)
    topology = Topology(kind=TopologyKind.MESH, columns=5, rows=5)
    xy = routes("xy", topology)
    design, packets, scaling = RouterDesign.li2012(), Packets.between(5, 10), Scaling(alpha_max=_ALPHA_MAX)
    fabrics = []
    for row in TABLE_6_1:
        traffic = normalised(hot_spot(topology, share=_SHARE), [xy], row.load)
        full = single(topology, traffic, xy, design=design, packets=packets)
        fabrics += [full, full.slowed(scaling)]
    powers = [simulated.power for simulated in simulate_all(fabrics, run, on_progress=on_progress)]
    power_at_load_1 = powers[0].value
    rows = []
    for number, printed in enumerate(TABLE_6_1):
        full_clock, slowed = powers[2 * number], powers[2 * number + 1]
        alpha = fabrics[2 * number + 1].planes[0].alpha
        rows.append(
            DvfsRow(
                load=printed.load,
                alpha=alpha,
                without_dvfs=full_clock.scaled(1 / power_at_load_1),
                with_dvfs=slowed.scaled(1 / power_at_load_1),
                ratio=_ratio(full_clock, slowed),
                theory=alpha**2,
                printed=printed,
            )
        )
    return tuple(rows)


def _ratio(above: MeanEstimate, below: MeanEstimate) -> MeanEstimate:
    """Return a ratio of two independent estimates; its interval holds for small errors."""
    ratio = above.value / below.value
    relative = math.hypot(above.half_width / above.value, below.half_width / below.value)
    return MeanEstimate(value=ratio, half_width=ratio * relative)
