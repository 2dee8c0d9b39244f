"""Turn models for adaptive routing hop by hop on meshes: what a packet may do next so that no cycle can close.

C. Glass and L. Ni, "The turn model for adaptive routing", ISCA 1992 (west-first, north-last, negative-first) and
G.-M. Chiu, "The odd-even turn model for adaptive routing", IEEE Trans. Parallel and Distributed Systems 11(7), 2000.
All of them here take shortest paths only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from routecast.errors import RoutecastError
from routecast.noc.topology import Direction, Topology, link_numbers, links
from routecast.quantity.did_you_mean import did_you_mean

__all__ = ["TURN_MODELS", "Choices", "choices"]

Choices = tuple[tuple[tuple[int, ...], ...], ...]
"""``[arrival][target]``: the links that a packet may take; arrivals are links, then the routers whose nodes inject."""

_E, _W, _S, _N = Direction.EAST, Direction.WEST, Direction.SOUTH, Direction.NORTH


def _west_first(came: Direction, goes: Direction, _column: int) -> bool:
    return goes is not _W or came is _W


def _north_last(came: Direction, goes: Direction, _column: int) -> bool:
    return came is not _N or goes is _N


def _negative_first(came: Direction, goes: Direction, _column: int) -> bool:
    # Negative is where the coordinate falls: west, and north as rows are counted from the top.
    return goes in (_E, _S) or came in (_W, _N)


def _odd_even(came: Direction, goes: Direction, column: int) -> bool:
    if column % 2:
        return not (goes is _W and came in (_N, _S))
    return not (came is _E and goes in (_N, _S))


_MAY_TURN: dict[str, Callable[[Direction, Direction, int], bool]] = {
    "west_first": _west_first,
    "north_last": _north_last,
    "negative_first": _negative_first,
    "odd_even": _odd_even,
}

TURN_MODELS = tuple(_MAY_TURN)
"""Names of all turn models."""


@lru_cache(maxsize=16)
def choices(model: str, topology: Topology) -> Choices:
    """Return the links that each packet may take next, shortest ways only, without dead ends.

    Parameters
    ----------
    model
        ``west_first``: nothing turns to the west. ``north_last``: nothing turns that goes north. ``negative_first``:
        nothing that goes east or south turns west or north. ``odd_even``: in even columns (0, 2, …) nothing that goes
        east turns, in odd ones nothing turns to the west.
    topology
        A mesh or concentrated mesh.

    Returns
    -------
    Choices
        Shape (links + routers, routers): a packet that came over link ``l`` is in row ``l``, one from a node of router
        ``r`` in row ``links + r``. Only links from which the target can still be reached; none at the target itself
        and for packets that never come over that link.

    Raises
    ------
    RoutecastError
        An unknown model, or a torus.
    """
    may_turn = _MAY_TURN.get(model)
    if may_turn is None:
        msg = f"unknown turn model {model!r}: {did_you_mean(model, TURN_MODELS)}"
        raise RoutecastError(msg)
    if topology.is_torus:
        msg = (
            f"turn model {model} on a torus: a ring is a cycle without a turn, so forbidden turns do not keep packets "
            "from deadlock; take a mesh, or a routing with classes for rings (xy, o1turn, romm, or layered paths)"
        )
        raise RoutecastError(msg)
    every, routers = links(topology), range(topology.router_count)
    arrivals = [(link.target, link.direction) for link in every] + [(router, None) for router in routers]
    rows: list[list[tuple[int, ...]]] = [[()] * topology.router_count for _ in arrivals]
    for target in routers:
        _to_one_target(topology, target, may_turn, rows)
    return tuple(tuple(row) for row in rows)


def _to_one_target(
    topology: Topology,
    target: int,
    may_turn: Callable[[Direction, Direction, int], bool],
    rows: list[list[tuple[int, ...]]],
) -> None:
    """Fill in the column of one target: backwards what leads to it, then forwards what packets meet."""
    every, numbers = links(topology), link_numbers(topology)
    arriving = {(link.target, link.direction): number for number, link in enumerate(every)}
    by_distance = sorted(range(topology.router_count), key=lambda router: topology.distance(router, target))
    ahead = {
        router: [(way, numbers[router, way]) for way in topology.productive(router, target)] for router in by_distance
    }
    # Links over which the target is reached, as one of a shortest path.
    leads: set[int] = set()

    def allowed(came: Direction | None, router: int) -> tuple[int, ...]:
        column = router % topology.columns
        return tuple(
            link for way, link in ahead[router] if link in leads and (came is None or may_turn(came, way, column))
        )

    for router in by_distance[1:]:
        for way, link in ahead[router]:
            following = every[link].target
            if following == target or allowed(way, following):
                leads.add(link)
    met: set[int] = set()
    for router in reversed(by_distance[1:]):
        rows[len(every) + router][target] = chosen = allowed(None, router)
        met.update(chosen)
        for came in Direction:
            arrived = arriving.get((router, came))
            if arrived in met:
                rows[arrived][target] = chosen = allowed(came, router)
                met.update(chosen)
