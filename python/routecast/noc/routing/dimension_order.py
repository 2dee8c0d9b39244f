"""Routes that turn at most once: XY, YX, and both of them in equal or random parts."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from routecast.noc.routing.model import Path
from routecast.noc.topology import Direction, Topology, link_numbers
from routecast.quantity.schema import value

__all__ = ["Walk", "classes_of_rings", "o1turn", "parts_of_xy", "random_split", "walks", "xy", "yx"]


@value
class Walk:
    """A way between two routers: its links in order, the virtual-channel class on each, and where it ends."""

    links: tuple[int, ...]
    layers: tuple[int, ...]
    end: int


def classes_of_rings(topology: Topology) -> int:
    """Return the virtual-channel classes that one dimension-ordered routing needs: 2 on rings, 1 without."""
    return 2 if topology.is_torus else 1


@lru_cache(maxsize=16)
def _legs(topology: Topology, along_x: bool) -> tuple[tuple[tuple[Walk, ...], ...], ...]:
    """Return the straight shortest walks ``[router][coordinate]``; two where both ways round a ring are shortest.

    A leg along a ring stays in one virtual-channel class: forward in class 1 if it comes over the link that closes the
    ring (the dateline) and in class 0 otherwise; backward the other way about. So each class of each direction lacks a
    link of the ring, the closing one or one opposite to it, which no shortest walk over the closing link reaches.
    Rising by a class at the dateline (Dally and Seitz 1987) frees rings too, but nearly all packets then wait in class
    0: datelines should balance the load of the classes (Dally and Towles 2004, sec. 14.2.3).
    """
    numbers = link_numbers(topology)
    forward, backward = (Direction.EAST, Direction.WEST) if along_x else (Direction.SOUTH, Direction.NORTH)

    def walk(router: int, way: int) -> Walk:
        direction = forward if way > 0 else backward
        chosen, is_closing = [], False
        for _ in range(abs(way)):
            chosen.append(numbers[router, direction])
            following = topology.neighbour(router, direction)
            assert following is not None  # offsets stay on the grid
            is_closing |= (following > router) != (way > 0)
            router = following
        layer = int(is_closing == (way > 0)) if topology.is_torus else 0
        return Walk(links=tuple(chosen), layers=(layer,) * len(chosen), end=router)

    table = []
    for router in range(topology.router_count):
        x, y = topology.position(router)
        targets = (
            [topology.router_at(other, y) for other in range(topology.columns)]
            if along_x
            else [topology.router_at(x, other) for other in range(topology.rows)]
        )
        table.append(
            tuple(
                tuple(walk(router, way) for way in topology.offsets(router, target)[0 if along_x else 1])
                for target in targets
            )
        )
    return tuple(table)


def walks(topology: Topology, source: int, target: int, *, x_first: bool) -> list[Walk]:
    """Return the dimension-ordered shortest walks: one, or 2 or 4 where both ways round a ring are shortest."""
    x, y = topology.position(target)
    first_to, then_to = (x, y) if x_first else (y, x)
    then = _legs(topology, not x_first)
    return [
        Walk(links=first.links + second.links, layers=first.layers + second.layers, end=target)
        for first in _legs(topology, x_first)[source][first_to]
        for second in then[first.end][then_to]
    ]


def _paths(topology: Topology, source: int, target: int, *, x_first: bool, share: float, base: int) -> list[Path]:
    """Return the walks as paths of together ``share`` in the classes from ``base`` on."""
    found = walks(topology, source, target, x_first=x_first)
    each = share / len(found)
    return [
        Path(
            source=source,
            target=target,
            links=walk.links,
            layers=tuple([layer + base for layer in walk.layers]) if base else walk.layers,
            share=each,
        )
        for walk in found
    ]


def _one_order(topology: Topology, *, x_first: bool) -> list[Path]:
    routers = range(topology.router_count)
    return [
        path
        for source in routers
        for target in routers
        if source != target
        for path in _paths(topology, source, target, x_first=x_first, share=1.0, base=0)
    ]


def xy(topology: Topology) -> list[Path]:
    """Return XY routing: along x to the column of the target, then along y.

    On a torus each dimension is crossed the shorter way; where both are equal, half of the flow takes each.
    """
    return _one_order(topology, x_first=True)


def yx(topology: Topology) -> list[Path]:
    """Return YX routing: along y to the row of the target, then along x; see :func:`xy`."""
    return _one_order(topology, x_first=False)


def _both_orders(topology: Topology, part_of_xy: NDArray[np.float64]) -> list[Path]:
    """Return XY in the lower classes with its part of every flow, shape (routers, routers), and YX in the upper ones.

    The two orders together have cycles in one class (all four turns of a square occur); apart they have none.
    """
    upper = classes_of_rings(topology)
    chosen = []
    for source, parts in enumerate(part_of_xy.tolist()):
        for target, part in enumerate(parts):
            if source == target:
                continue
            chosen += _paths(topology, source, target, x_first=True, share=part, base=0)
            chosen += _paths(topology, source, target, x_first=False, share=1.0 - part, base=upper)
    return chosen


def o1turn(topology: Topology) -> list[Path]:
    """Return O1TURN (Seo et al. 2005), which is also Li's 2P-ES (sec. 6.4.1): XY and YX carry one half each.

    Flows along a row or column have one path, in both classes with a half each.
    """
    return _both_orders(topology, np.full((topology.router_count, topology.router_count), 0.5))


def random_split(topology: Topology, seed: int) -> list[Path]:
    """Return Li's 2P-RS (sec. 6.4.1): XY carries a part of each flow that is uniform in 0..1, YX the rest."""
    return _both_orders(topology, parts_of_xy(topology, seed))


def parts_of_xy(topology: Topology, seed: int) -> NDArray[np.float64]:
    """Return the part of every flow that goes by XY in :func:`random_split`, shape (routers, routers)."""
    return np.random.default_rng([seed, 0]).random((topology.router_count, topology.router_count))
