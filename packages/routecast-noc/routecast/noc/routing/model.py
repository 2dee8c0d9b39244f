"""Paths and the routes of all flows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import overload
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from routecast.noc.topology import Topology, links
from routecast.quantity.schema import field, value

__all__ = ["Hops", "LazyPaths", "Path", "Routes", "hop_flow", "hops", "link_loads"]


@value
class Path:
    """A path of the flow between two routers."""

    source: int = field("Router that it begins at")
    target: int = field("Router that it ends at")
    links: tuple[int, ...] = field("Numbers of its links in order")
    layers: tuple[int, ...] = field(
        "Virtual-channel class on each link; as long as ``links``. Classes free a routing from deadlock that a single "
        "class does not (O1TURN: XY in class 0, YX in class 1)"
    )
    share: float = field("Part of the flow on this path, 0..1; the shares of a flow sum to 1")


class LazyPaths(Sequence[Path]):
    """Paths that are listed only when one of them is read; link loads need no list."""

    __slots__ = ("_paths",)

    def __init__(self) -> None:
        self._paths: tuple[Path, ...] | None = None

    @abstractmethod
    def _list(self) -> Iterable[Path]: ...

    @abstractmethod
    def link_loads(self, demand: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the load of every link for a demand of shape (routers, routers), in capacities."""

    @property
    def layer_count(self) -> int:
        """Virtual-channel classes that the paths use."""
        return _layer_count(self)

    def _listed(self) -> tuple[Path, ...]:
        if self._paths is None:
            self._paths = tuple(self._list())
        return self._paths

    @overload
    def __getitem__(self, index: int) -> Path: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Path]: ...
    def __getitem__(self, index: int | slice) -> Path | Sequence[Path]:
        return self._listed()[index]

    def __len__(self) -> int:
        return len(self._listed())

    def __iter__(self) -> Iterator[Path]:
        return iter(self._listed())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class Routes:
    """The paths of all flows under a routing policy on one plane.

    Reading one of the paths may list all of them, which takes long on large grids; link loads on a mesh need no list.
    """

    policy: str
    topology: Topology
    paths: tuple[Path, ...] | LazyPaths

    @property
    def layer_count(self) -> int:
        """Virtual-channel classes that the paths use."""
        return self.paths.layer_count if isinstance(self.paths, LazyPaths) else _layer_count(self.paths)


def _layer_count(paths: Iterable[Path]) -> int:
    return 1 + max((layer for path in paths for layer in path.layers), default=0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hops:
    """All hops of all paths as flat arrays, path after path.

    ``path``, ``link`` and ``layer``: shape (hops,): number of the path in :attr:`Routes.paths`, the link, its
    virtual-channel class; ``source``, ``target`` and ``share``: shape (paths,): as in :class:`Path`.
    """

    path: NDArray[np.intp]
    link: NDArray[np.intp]
    layer: NDArray[np.intp]
    source: NDArray[np.intp]
    target: NDArray[np.intp]
    share: NDArray[np.float64]


# Routes do not change, and the same routes serve many demands.
_HOPS_OF_ROUTES: WeakKeyDictionary[Routes, Hops] = WeakKeyDictionary()


def hops(routes: Routes) -> Hops:
    """Return all hops of the routes, cached by Routes."""
    cached = _HOPS_OF_ROUTES.get(routes)
    if cached is None:
        paths = routes.paths
        count, lengths = len(paths), [len(path.links) for path in paths]
        total = sum(lengths)

        def flat(values: Iterable[tuple[int, ...]]) -> NDArray[np.intp]:
            return np.fromiter(chain.from_iterable(values), dtype=np.intp, count=total)

        cached = Hops(
            path=np.repeat(np.arange(count), lengths),
            link=flat(path.links for path in paths),
            layer=flat(path.layers for path in paths),
            source=np.fromiter((path.source for path in paths), dtype=np.intp, count=count),
            target=np.fromiter((path.target for path in paths), dtype=np.intp, count=count),
            share=np.fromiter((path.share for path in paths), dtype=np.float64, count=count),
        )
        _HOPS_OF_ROUTES[routes] = cached
    return cached


def link_loads(routes: Routes, demand: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the load of every link, in capacities, for a demand of shape (routers, routers).

    The largest entry is the bottleneck load of Li's definition 2. A path that crosses a link twice loads it twice.
    """
    if isinstance(routes.paths, LazyPaths):
        return routes.paths.link_loads(demand)
    flat = hops(routes)
    carried = flat.share * demand[flat.source, flat.target]
    loads = np.bincount(flat.link, weights=carried[flat.path], minlength=len(links(routes.topology)))
    return loads.astype(np.float64, copy=False)


def hop_flow(routes: Routes, demand: NDArray[np.float64]) -> float:
    """Return the sum over flows of rate times hops, the numerator of eq. 6.1; equal to the sum of all link loads."""
    return float(link_loads(routes, demand).sum())
