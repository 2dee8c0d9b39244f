"""Simulating fabrics flit by flit: one load, many loads, and where a fabric saturates."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import islice

from routecast.errors import ModelProblem, Problem
from routecast.noc.simulate.fabric import Fabric
from routecast.noc.simulate.outcome import simulated
from routecast.noc.simulate.result import Simulated
from routecast.noc.simulate.run import Run
from routecast.noc.simulate.scenario import scenario_texts

__all__ = ["Progress", "simulate", "simulate_all", "sweep"]

# Characters of scenarios that are simulated at once: paths of a large mesh come to tens of millions for each load, and
# some hundred scenarios keep all cores busy.
_AT_ONCE = 200_000_000

Progress = Callable[[float], object]
"""Called about every 50 ms with the finished share, 0..1; an exception in it ends the simulation."""


def simulate(fabric: Fabric, run: Run | None = None, *, progress: Progress | None = None) -> Simulated:
    """Simulate a fabric at its load: planes times replications, on all cores.

    A load over saturation is simulated and said to be one: :attr:`Simulated.is_saturated`, with latencies of None.

    Parameters
    ----------
    fabric
        See :func:`routecast.noc.simulate.fabric.single` and :func:`~routecast.noc.simulate.fabric.allocated`.
    run
        Seed, replications and phases.
    progress
        Told the finished share.

    Raises
    ------
    ModelProblem
        The routing can deadlock (with the cycle), needs more virtual channels than there are, or leaves out a flow.

    Examples
    --------
    Packets of 4 flits that hardly meet need 4 cycles a router, the cycle of the first channel, and one for each flit.
    Between two of 2 x 2 routers they pass 7/3 in the mean: 4 * 7/3 + 1 + 4 = 14.3.

    >>> from routecast.noc.routing.policies import routes
    >>> from routecast.noc.simulate import Packets, RouterDesign, single
    >>> from routecast.noc.topology import Topology, TopologyKind
    >>> from routecast.noc.traffic.patterns import uniform
    >>> mesh = Topology(kind=TopologyKind.MESH, columns=2, rows=2)
    >>> traffic = uniform(mesh).scaled(0.002)
    >>> packets = Packets(flits=(4,))
    >>> fabric = single(mesh, traffic, routes("xy", mesh), design=RouterDesign.booksim(), packets=packets)
    >>> answer = simulate(fabric, Run(replications=4, measure_cycles=100_000))
    >>> round(answer.packet_latency_cycles.value)
    14
    """
    return simulate_all([fabric], run, progress=progress)[0]


def sweep(
    fabric: Fabric, factors: Sequence[float], run: Run | None = None, *, progress: Progress | None = None
) -> tuple[Simulated, ...]:
    """Simulate a fabric at several loads at once; clocks stay as they are.

    Parameters
    ----------
    fabric
        What is loaded with ``factor`` times its traffic.
    factors
        One for each result, 0 or more.
    run, progress
        As :func:`simulate`. All loads have the same random streams, so that curves are smooth.

    Raises
    ------
    ModelProblem
        As :func:`simulate`.
    """
    return simulate_all([fabric.scaled(factor) for factor in factors], run, names=factors, progress=progress)


def simulate_all(
    fabrics: Sequence[Fabric],
    run: Run | None = None,
    *,
    names: Sequence[float] | None = None,
    progress: Progress | None = None,
) -> tuple[Simulated, ...]:
    """Simulate any fabrics at once: all their planes and replications share the cores.

    Parameters
    ----------
    fabrics
        Such as one at several loads, each with its own clocks.
    run, progress
        As :func:`simulate`.
    names
        What :attr:`Simulated.load` says of each; 1 if not given.

    Raises
    ------
    ModelProblem
        As :func:`simulate`.
    """
    run = run or Run()
    named = [1.0] * len(fabrics) if names is None else names
    total = sum(len(fabric.planes) for fabric in fabrics) * run.replications
    results: list[Simulated] = []
    waiting: list[tuple[Fabric, float, list[str]]] = []
    done = 0
    for number, (fabric, load) in enumerate(zip(fabrics, named, strict=True), start=1):
        waiting.append((fabric, load, scenario_texts(fabric, run)))
        if number < len(fabrics) and sum(len(text) for _, _, texts in waiting for text in texts) < _AT_ONCE:
            continue
        count = sum(len(texts) for _, _, texts in waiting)
        answers = iter(
            _answers([text for _, _, texts in waiting for text in texts], progress, done, count, total)
        )
        for one, name, texts in waiting:
            outcomes = [json.loads(answer) for answer in islice(answers, len(texts))]
            results.append(simulated(one, run, outcomes, load=name))
        waiting.clear()
        done += count
    return tuple(results)


def _answers(texts: list[str], progress: Progress | None, done: int, count: int, total: int) -> list[str]:
    from routecast import _core  # the compiled part is loaded where it is used

    tell = None if progress is None else lambda share: progress((done + share * count) / total)
    try:
        return _core.noc_simulate(texts, progress=tell)
    except _core.NocError as error:
        raise ModelProblem("network on chip", [Problem("", error.args[1])]) from None
