"""Routes over an intermediate router: ROMM, Valiant, and Li's four paths with an even split."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from routecast.noc.routing.dimension_order import Walk, classes_of_rings, walks
from routecast.noc.routing.model import Path
from routecast.noc.topology import Topology

__all__ = ["drawn_middles", "four_paths", "romm", "valiant"]

# Above this number of walks (some hundred bytes each) intermediate routers are drawn instead of all taken.
_MOST_WALKS = 300_000


def romm(topology: Topology, seed: int) -> list[Path]:
    """Return two-phase ROMM (Nesson and Johnsson 1995): over any router of the minimal rectangle, all equally likely.

    Both phases go by XY, the first in the lower virtual-channel classes, the second in the upper ones. Shares are exact
    expectations; equal paths are one. Only where that makes more than 300 000 walks, each flow draws its intermediate
    routers, as many as fit (16 x 16: 4), without repetition. On a torus the rectangle lies the shorter way; where both
    ways round are equal, it holds the whole ring.
    """
    return _over_intermediates(topology, seed, is_minimal=True)


def valiant(topology: Topology, seed: int) -> list[Path]:
    """Return Valiant's routing (1982): over any router at all, source and target included; else as :func:`romm`."""
    return _over_intermediates(topology, seed, is_minimal=False)


def four_paths(topology: Topology, seed: int) -> list[Path]:
    """Return Li's 4P-ES (sec. 6.4.1): XY, YX, and two paths over a random router, a quarter of the flow each.

    "A random intermediate node is chosen internally in the rectangle" is read as: neither in a row nor in a column of
    source or target; so Li's statement on transpose traffic holds, which it does not with the rim allowed. A
    rectangle without such routers gives any of its routers. The two paths over it go XY then YX, and YX then XY: they
    load the links as XY then XY and YX then YX would, with fewer turns.

    Phases go up through three orders, each in its own virtual-channel classes: XY, YX, XY.
    """
    routers, classes = topology.router_count, classes_of_rings(topology)
    drawn = drawn_middles(topology, seed).tolist()
    xy, yx, last_xy = (True, 0), (False, classes), (True, 2 * classes)
    paths = []
    for source in range(routers):
        for target in range(routers):
            if source == target:
                continue
            allowed = _rectangle(topology, source, target, has_rim=False) or _rectangle(topology, source, target)
            middle = allowed[int(drawn[source][target] * len(allowed))]
            for over, first, second in (
                (target, xy, yx),
                (target, yx, last_xy),
                (middle, xy, yx),
                (middle, yx, last_xy),
            ):
                found = _through(topology, source, over, target, first=first, second=second)
                paths += [
                    Path(source=source, target=target, links=walk.links, layers=walk.layers, share=0.25 / len(found))
                    for walk in found
                ]
    return paths


def drawn_middles(topology: Topology, seed: int) -> NDArray[np.float64]:
    """Return which of the routers allowed is the one between in :func:`four_paths`, 0..1, shape (routers, routers)."""
    return np.random.default_rng([seed, 1]).random((topology.router_count, topology.router_count))


def _over_intermediates(topology: Topology, seed: int, *, is_minimal: bool) -> list[Path]:
    routers, upper = topology.router_count, classes_of_rings(topology)
    flows = [(source, target) for source in range(routers) for target in range(routers) if source != target]
    middles = {flow: _rectangle(topology, *flow) if is_minimal else range(routers) for flow in flows}
    if sum(len(one) for one in middles.values()) > _MOST_WALKS:
        draw = np.random.default_rng([seed, 2])
        most = max(1, _MOST_WALKS // len(flows))
        for flow, allowed in middles.items():
            if len(allowed) > most:
                middles[flow] = draw.choice(np.array(allowed), size=most, replace=False).tolist()
    paths = []
    for (source, target), allowed in middles.items():
        shares: dict[tuple[tuple[int, ...], tuple[int, ...]], float] = {}
        for middle in allowed:
            found = _through(topology, source, middle, target, first=(True, 0), second=(True, upper))
            for walk in found:
                key = (walk.links, walk.layers)
                shares[key] = shares.get(key, 0.0) + 1 / (len(found) * len(allowed))
        paths += [
            Path(source=source, target=target, links=chosen, layers=layers, share=share)
            for (chosen, layers), share in shares.items()
        ]
    return paths


def _through(
    topology: Topology, source: int, middle: int, target: int, *, first: tuple[bool, int], second: tuple[bool, int]
) -> list[Walk]:
    """Return the walks over ``middle``; each phase says whether it goes along x first, and its lowest class."""
    return [
        Walk(
            links=to.links + on.links,
            layers=(*[layer + first[1] for layer in to.layers], *[layer + second[1] for layer in on.layers]),
            end=target,
        )
        for to in walks(topology, source, middle, x_first=first[0])
        for on in walks(topology, middle, target, x_first=second[0])
    ]


def _rectangle(topology: Topology, source: int, target: int, *, has_rim: bool = True) -> list[int]:
    """Return the routers that lie on any shortest path; without rim only those in no row or column of the two ends."""
    along_x, along_y = topology.offsets(source, target)
    (ax, ay), (bx, by) = topology.position(source), topology.position(target)
    columns = _span(ax, along_x, topology.columns)
    rows = _span(ay, along_y, topology.rows)
    if not has_rim:
        columns, rows = columns - {ax, bx}, rows - {ay, by}
    return [topology.router_at(column, row) for row in sorted(rows) for column in sorted(columns)]


def _span(start: int, ways: tuple[int, ...], size: int) -> set[int]:
    """Return the coordinates that the shortest ways come through."""
    return {(start + step) % size for way in ways for step in range(min(way, 0), max(way, 0) + 1)}
