"""Paths and the routes of all flows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from routecast.noc.topology import Topology, links

__all__ = ["Hops", "Path", "PathsByRule", "Routes", "hop_flow", "hops", "link_loads"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """One way of the flow between two routers.

    Attributes
    ----------
    source, target
        Routers.
    links
        Numbers of its links (:func:`routecast.noc.topology.links`) in order.
    layers
        The virtual-channel class used on each link; as long as ``links``. Classes let routings be free of deadlock that
        are not with one (O1TURN: XY in class 0, YX in class 1).
    share
        Part of the flow that takes it, 0..1; the paths of a flow sum to 1.
    """

    source: int
    target: int
    links: tuple[int, ...]
    layers: tuple[int, ...]
    share: float


class PathsByRule(Sequence[Path]):
    """Paths that follow from a rule, so that sums over all of them need no list of them."""

    __slots__ = ()

    @property
    @abstractmethod
    def layer_count(self) -> int:
        """Virtual-channel classes that the paths use."""

    @abstractmethod
    def link_loads(self, demand: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what :func:`link_loads` says of them."""

    @abstractmethod
    def dependencies(self) -> Iterator[tuple[int, int]]:
        """Yield pairs of channels ``link * classes + class``: a packet may hold the first and ask for the second."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class Routes:
    """The paths of all flows under one routing policy on one topology (one plane).

    On large grids a look at one of the paths can make all of them; loads and checks for deadlock need none where the
    paths follow from a rule.
    """

    policy: str
    topology: Topology
    paths: tuple[Path, ...] | PathsByRule

    @property
    def layer_count(self) -> int:
        """Virtual-channel classes that the paths use."""
        if isinstance(self.paths, PathsByRule):
            return self.paths.layer_count
        return 1 + max((layer for path in self.paths for layer in path.layers), default=0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hops:
    """All hops of all paths as flat arrays, path after path, for sums without a loop.

    Attributes
    ----------
    path, link, layer
        Shape (hops,): number of the path in :attr:`Routes.paths`, the link, its virtual-channel class.
    source, target, share
        Shape (paths,): what :class:`Path` says.
    """

    path: NDArray[np.intp]
    link: NDArray[np.intp]
    layer: NDArray[np.intp]
    source: NDArray[np.intp]
    target: NDArray[np.intp]
    share: NDArray[np.float64]


# Routes do not change, and one set of routes meets many demands.
_KNOWN: WeakKeyDictionary[Routes, Hops] = WeakKeyDictionary()


def hops(routes: Routes) -> Hops:
    """Return all hops of the routes; made once for each Routes."""
    known = _KNOWN.get(routes)
    if known is None:
        paths = routes.paths
        count, lengths = len(paths), [len(path.links) for path in paths]
        total = sum(lengths)

        def flat(values: Iterable[tuple[int, ...]]) -> NDArray[np.intp]:
            return np.fromiter(chain.from_iterable(values), dtype=np.intp, count=total)

        known = Hops(
            path=np.repeat(np.arange(count), lengths),
            link=flat(path.links for path in paths),
            layer=flat(path.layers for path in paths),
            source=np.fromiter((path.source for path in paths), dtype=np.intp, count=count),
            target=np.fromiter((path.target for path in paths), dtype=np.intp, count=count),
            share=np.fromiter((path.share for path in paths), dtype=np.float64, count=count),
        )
        _KNOWN[routes] = known
    return known


def link_loads(routes: Routes, demand: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the load of every link, in capacities, for a demand of shape (routers, routers).

    The largest entry is the bottleneck load of the thesis' definition 2. A path that comes over a link twice loads it
    twice.
    """
    if isinstance(routes.paths, PathsByRule):
        return routes.paths.link_loads(demand)
    flat = hops(routes)
    carried = flat.share * demand[flat.source, flat.target]
    loads = np.bincount(flat.link, weights=carried[flat.path], minlength=len(links(routes.topology)))
    return loads.astype(np.float64, copy=False)


def hop_flow(routes: Routes, demand: NDArray[np.float64]) -> float:
    """Return the sum over flows of rate times hops, the numerator of eq. 6.1; equal to the sum of all link loads."""
    return float(link_loads(routes, demand).sum())
