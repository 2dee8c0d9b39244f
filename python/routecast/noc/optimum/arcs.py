"""Which links the traffic to each router may use, and how long its shortest way over them is at given link prices.

An arc is a pair (destination router, link): the traffic to that router on that link. All traffic to one router is one
commodity, which is as exact as one commodity for each pair and has that many times fewer arcs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from routecast.noc.optimum.model import PathSet
from routecast.noc.topology import Direction, Topology, link_numbers, links

__all__ = ["Arcs", "Floats", "Grid", "Ints", "allowed_arcs", "distances", "grid_of", "shortest_hops", "tight_arcs"]

Arcs: TypeAlias = NDArray[np.bool_]
"""Shape (routers, links): whether traffic to router t may use link l."""

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grid:
    """The links of a topology as arrays.

    Attributes
    ----------
    source, target
        Shape (links,): the routers at the ends of each link.
    leaving
        Shape (directions, routers): the link that leaves a router in a direction; the number of links where none does.
    ahead
        Shape (directions, routers): the router that it leads to; the router itself where none does.
    arriving
        Shape (directions, routers): the link that arrives at a router in a direction; the number of links where none
        does.
    """

    source: Ints
    target: Ints
    leaving: Ints
    ahead: Ints
    arriving: Ints


@lru_cache(maxsize=16)
def grid_of(topology: Topology) -> Grid:
    """Return the arrays of a topology."""
    every, numbers = links(topology), link_numbers(topology)
    leaving = np.full((len(Direction), topology.router_count), len(every), dtype=np.int64)
    arriving = leaving.copy()
    ahead = np.tile(np.arange(topology.router_count), (len(Direction), 1))
    for place, direction in enumerate(Direction):
        for router in range(topology.router_count):
            number = numbers.get((router, direction))
            if number is not None:
                leaving[place, router] = number
                ahead[place, router] = every[number].target
                arriving[place, every[number].target] = number
    return Grid(
        source=np.array([link.source for link in every], dtype=np.int64),
        target=np.array([link.target for link in every], dtype=np.int64),
        leaving=leaving,
        ahead=ahead,
        arriving=arriving,
    )


@lru_cache(maxsize=16)
def shortest_hops(topology: Topology) -> Floats:
    """Return the least number of links between routers, shape (routers, routers)."""
    numbers = np.arange(topology.router_count)
    x, y = numbers % topology.columns, numbers // topology.columns
    away_x, away_y = np.abs(x[:, None] - x[None, :]), np.abs(y[:, None] - y[None, :])
    if topology.is_torus:
        away_x = np.minimum(away_x, topology.columns - away_x)
        away_y = np.minimum(away_y, topology.rows - away_y)
    return np.asarray(away_x + away_y, dtype=np.float64)


def allowed_arcs(topology: Topology, demand: Floats, paths: PathSet) -> Arcs:
    """Return the arcs that flows may use, shape (routers, links): none to a router that nothing is sent to.

    Parameters
    ----------
    demand : array of shape (routers, routers)
        With zeros on the diagonal.
    """
    grid = grid_of(topology)
    if paths is PathSet.MINIMAL:
        hops = shortest_hops(topology)
        allowed: Arcs = hops.T[:, grid.target] < hops.T[:, grid.source]
    else:
        # Traffic that has arrived does not leave again.
        allowed = np.not_equal(grid.source[None, :], np.arange(topology.router_count)[:, None])
    is_sent_to: Arcs = np.any(demand > 0.0, axis=0)
    return np.logical_and(allowed, is_sent_to[:, None])


def distances(topology: Topology, lengths: Floats, arcs: Arcs) -> Floats:
    """Return the length of the shortest way from each router to each, shape (routers, routers); inf where none is.

    Parameters
    ----------
    lengths : array of shape (links,)
        Not negative.
    arcs : array of shape (routers, links)
        What traffic to a router may use.
    """
    grid = grid_of(topology)
    routers = topology.router_count
    # A link that is not there is endlessly long.
    length = np.full((lengths.size + 1, routers), np.inf)
    np.copyto(length[:-1], lengths[:, None], where=arcs.T)
    first = length[grid.leaving]
    way = np.full((routers, routers), np.inf)
    np.fill_diagonal(way, 0.0)
    while True:
        shorter = np.minimum((first + way[grid.ahead]).min(axis=0), way)
        if np.array_equal(shorter, way):
            return way
        way = shorter


def tight_arcs(topology: Topology, lengths: Floats, arcs: Arcs, way: Floats, slack: float) -> Arcs:
    """Return those of the arcs that lie on a shortest way, up to ``slack``; ``way`` is :func:`distances`."""
    grid = grid_of(topology)
    with np.errstate(invalid="ignore"):
        beyond = lengths[None, :] + way[grid.target, :].T - way[grid.source, :].T
    return np.asarray(arcs & (beyond <= slack), dtype=np.bool_)
