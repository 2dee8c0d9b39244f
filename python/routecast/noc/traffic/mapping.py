"""A good place for every task: the least sum of rate times hops that a local search finds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from routecast.noc.topology import Topology

__all__ = ["best_mapping", "rate_hops"]

# A gain by rounding alone is none.
_ROUNDING = 1e-12


def rate_hops(rates: NDArray[np.float64], topology: Topology, tiles: tuple[int, ...]) -> float:
    """Return the sum over flows of rate times shortest hops, in the unit of the rates (the numerator of eq. 6.1)."""
    hops = _hops(topology)[np.ix_(tiles, tiles)]
    return float((rates * hops).sum())


def best_mapping(
    rates: NDArray[np.float64], topology: Topology, *, seed: int = 1, starts: int = 300
) -> tuple[int, ...]:
    """Return a node for every task so that rate times hops is small.

    A quadratic assignment problem. From each of ``starts`` random places, the exchange of two nodes (with a task on
    each, or a task and nothing) that gains most is made until none gains. That proves no optimum; on the graphs that
    ship, hundreds of starts agree on the least value. Time is starts times steps times nodes cubed.

    Parameters
    ----------
    rates : ndarray, shape (tasks, tasks)
    topology : Topology
        With at least as many nodes as tasks.
    seed : int
        Of the starts; the same seed gives the same mapping.
    starts : int
    """
    tasks, nodes = len(rates), topology.node_count
    flow = np.zeros((nodes, nodes))
    # Distances are symmetric, so only what two tasks exchange in both directions matters.
    flow[:tasks, :tasks] = (rates + rates.T) / 2
    np.fill_diagonal(flow, 0.0)
    hops = _hops(topology)
    random = np.random.default_rng(seed)
    found = [_descended(flow, hops, random.permutation(nodes)) for _ in range(starts)]
    best = min(found, key=lambda tiles: (_cost(flow, hops, tiles), tuple(tiles[:tasks])))
    return tuple(int(tile) for tile in best[:tasks])


def _descended(
    flow: NDArray[np.float64], hops: NDArray[np.float64], tiles: NDArray[np.int64]
) -> NDArray[np.int64]:
    tiles = tiles.copy()
    tolerance = _ROUNDING * max(1.0, float(flow.sum()))
    while True:
        gains = _change(flow, hops[np.ix_(tiles, tiles)])
        a, b = np.unravel_index(int(np.argmin(gains)), gains.shape)
        if gains[a, b] >= -tolerance:
            return tiles
        tiles[[a, b]] = tiles[[b, a]]


def _change(flow: NDArray[np.float64], hops: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what every exchange of two places changes in the cost; ``hops`` is between the present places.

    With F and D symmetric and zero on their diagonals: 2 sum_k (F_ak - F_bk)(D_bk - D_ak) over k other than a and b.
    """
    product = flow @ hops
    own = product.diagonal()
    change: NDArray[np.float64] = 2 * (product + product.T - own[:, None] - own[None, :] + 2 * flow * hops)
    return change


def _cost(flow: NDArray[np.float64], hops: NDArray[np.float64], tiles: NDArray[np.int64]) -> float:
    # Rounded so that equal costs summed in another order tie, and the smaller mapping is taken.
    return round(float((flow * hops[np.ix_(tiles, tiles)]).sum()), 9)


def _hops(topology: Topology) -> NDArray[np.float64]:
    nodes = range(topology.node_count)
    return np.array(
        [[topology.distance(topology.router_of(a), topology.router_of(b)) for b in nodes] for a in nodes],
        dtype=np.float64,
    )
