"""Adaptive routing at the flit level: every hop chooses among the links that a turn model allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routecast.noc.routing.deadlock import shortest_cycle
from routecast.noc.routing.turns import choices
from routecast.noc.topology import Topology, links

__all__ = ["AdaptiveRouting"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AdaptiveRouting:
    """What a packet may choose: the link with the most free buffers ahead is taken.

    Attributes
    ----------
    policy
        Name of the turn model.
    topology
        Routers and links.
    choices
        ``choices[arrival][target]`` are the links allowed to a packet for router ``target`` that came over link
        ``arrival``; packets of a router's own nodes come over ``link count + router``. None where it has arrived, or
        where no packet comes this way.
    """

    policy: str
    topology: Topology
    choices: Sequence[Sequence[Sequence[int]]]

    @classmethod
    def turn_model(cls, policy: str, topology: Topology) -> AdaptiveRouting:
        """Return what a turn model allows: ``west_first``, ``north_last``, ``negative_first`` or ``odd_even``.

        Raises
        ------
        RoutecastError
            An unknown turn model, or a torus.
        """
        return cls(policy=policy, topology=topology, choices=choices(policy, topology))

    @property
    def layer_count(self) -> int:
        """Virtual-channel classes: turn models need one."""
        return 1

    def channel_cycle(self) -> tuple[tuple[int, int], ...] | None:
        """Return a shortest cycle of the channel dependency graph as (link, class), or None: it cannot deadlock.

        A link depends on another where a packet that holds the one may wait for the other (W. Dally and C. Seitz,
        "Deadlock-free message routing in multiprocessor interconnection networks", IEEE Trans. Comput. 36(5), 1987).
        Only what packets can reach from where they are made counts.
        """
        cycle = shortest_cycle(self._dependencies())
        return None if cycle is None else tuple((link, 0) for link in cycle)

    def _dependencies(self) -> list[tuple[int, int]]:
        count = len(links(self.topology))
        allowed = _padded(self.choices)
        from_nodes, from_links = allowed[count:], allowed[:count]
        reached = np.zeros((count, self.topology.router_count), dtype=bool)
        _, targets, _ = np.nonzero(from_nodes >= 0)
        reached[from_nodes[from_nodes >= 0], targets] = True
        while True:
            arrivals, targets, slots = np.nonzero((from_links >= 0) & reached[:, :, None])
            onward = from_links[arrivals, targets, slots]
            if bool(reached[onward, targets].all()):
                break
            reached[onward, targets] = True
        pairs = np.unique(arrivals * count + onward)
        return list(zip((pairs // count).tolist(), (pairs % count).tolist(), strict=True))


def _padded(choices: Sequence[Sequence[Sequence[int]]]) -> NDArray[np.int64]:
    """Return the choices as an array of shape (arrivals, targets, most choices), with -1 where there is none."""
    most = max((len(allowed) for row in choices for allowed in row), default=0)
    return np.array(
        [[[*allowed, *(-1,) * (most - len(allowed))] for allowed in row] for row in choices], dtype=np.int64
    ).reshape(len(choices), -1, most)
