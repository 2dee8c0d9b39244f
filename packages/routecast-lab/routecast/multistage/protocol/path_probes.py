"""Own frames on all paths, and what they say of members that forward on some paths only."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from routecast.multistage.protocol.actions import Action, Audit, Event, ProbePaths
from routecast.multistage.protocol.neighbours import NeighbourTable
from routecast.multistage.protocol.verdicts import Verdicts
from routecast.multistage.protocol.watch import BalancerView

if TYPE_CHECKING:
    from routecast.multistage._membership import Membership

__all__ = ["PathProbes"]

_FIRST_ROUTE_PATH = 32
_MAX_PATHS = 64


class PathProbes:
    """The rounds of own frames on all paths.

    A path is a network and a version of IP, and each of the first routes. ``probed``: the destination on each path in
    the round that is under way.
    """

    def __init__(
        self,
        routes: tuple[tuple[str, str], ...],
        membership: Membership,
        neighbours: NeighbourTable,
        verdicts: Verdicts,
    ) -> None:
        self._routes, self._membership = routes, membership
        self._neighbours, self._verdicts = neighbours, verdicts
        self.probed: tuple[str, ...] = ()

    def destinations(self) -> tuple[str, ...]:
        """Return the destination of own frames on each path; empty where no neighbour is known."""
        count = len(self._neighbours.networks.names)
        paths = [""] * min(_FIRST_ROUTE_PATH + len(self._routes), _MAX_PATHS)
        for address, entry in self._neighbours.entries.items():
            place = 2 * entry.segment + (":" in address)
            if entry.segment < min(count, _FIRST_ROUTE_PATH // 2) and not paths[place]:
                paths[place] = address
        for number, (network, via) in enumerate(self._routes[: _MAX_PATHS - _FIRST_ROUTE_PATH]):
            if via in self._neighbours.entries:
                first = ipaddress.ip_network(network)
                paths[_FIRST_ROUTE_PATH + number] = str(first[min(1, first.num_addresses - 1)])
        return tuple(paths)

    def name_of(self, path: int) -> str:
        """Return the name of a path for people."""
        if path >= _FIRST_ROUTE_PATH:
            return f"to {self._routes[path - _FIRST_ROUTE_PATH][0]}"
        return f"to {self._neighbours.networks.names[path // 2]} (IPv{6 if path % 2 else 4})"

    def judge(self, views: Mapping[str, BalancerView]) -> Iterator[Action]:
        """Judge the round of own frames on all paths that ends now, and begin the next."""
        returned = self._returned(views)
        is_new = False
        for name, came in returned.items():
            watch = self._verdicts.members[name]
            was_out, watch.path_is_out = watch.path_is_out, watch.is_silent or watch.is_dead
            if was_out or watch.path_is_out:  # also the round in which it came back: it may have missed all frames
                watch.path_missed = []
                continue
            others = [
                any(other[path] for other_name, other in returned.items() if other_name != name)
                for path in range(len(came))
            ]
            lacks = watch.judge_paths(came, others, tuple(map(bool, self.probed)))
            if lacks != watch.lacks:
                is_new |= bool(lacks - watch.lacks)
                watch.lacks = lacks
                names = ", ".join(map(self.name_of, sorted(lacks)))
                yield Event(name, "partly dead" if lacks else "whole again", names and f"nothing comes back {names}")
                yield from self._verdicts.hand_over(name, self._membership.members[name].number)
        if is_new:
            yield Audit()
        self.probed = self.destinations()
        numbers = tuple(member.number for member in self._membership.members.values())
        if any(self.probed):
            # Only the active one: the switch knows the neighbours' MAC addresses behind it.
            yield ProbePaths(self._membership.active, numbers, self.probed)

    def _returned(self, views: Mapping[str, BalancerView]) -> dict[str, list[bool]]:
        """Return by member and path whether its frame came back since the last round."""
        returned: dict[str, list[bool]] = {}
        for name, member in self._membership.members.items():
            watch = self._verdicts.members[name]
            came = [False] * len(self.probed)
            counts = {
                b: view.members[member.number].paths for b, view in views.items() if member.number in view.members
            }
            for balancer, counted in counts.items():
                if balancer not in watch.path_counts:  # what it counted before it is back is no sign of now
                    continue
                before = watch.path_counts[balancer]
                for path in range(min(len(came), len(counted))):
                    # A count that fell to 0 began anew.
                    came[path] |= counted[path] > 0 and counted[path] != (before[path] if path < len(before) else 0)
            watch.path_counts = counts
            returned[name] = came
        return returned
