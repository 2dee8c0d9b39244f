"""The normalised load against the definition of eqs. 6.7 and 7.13, on paths written by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import RoutecastError
from routecast.noc.routing.model import Path, Routes, link_loads
from routecast.noc.topology import Direction, Topology, TopologyKind, link_numbers
from routecast.noc.traffic import Traffic, bottleneck, normalised

MESH = Topology(kind=TopologyKind.MESH, columns=2, rows=2)
NUMBERS = link_numbers(MESH)
EAST, SOUTH = NUMBERS[0, Direction.EAST], NUMBERS[0, Direction.SOUTH]
X_FIRST = (EAST, NUMBERS[1, Direction.SOUTH])
Y_FIRST = (SOUTH, NUMBERS[2, Direction.EAST])


def routes(policy: str, corner: dict[tuple[int, ...], float]) -> Routes:
    """Return routes for 0 -> 1 (straight) and 0 -> 3 (over the given ways with their shares)."""
    straight = Path(source=0, target=1, links=(EAST,), layers=(0,), share=1.0)
    turns = [Path(source=0, target=3, links=way, layers=(0, 0), share=share) for way, share in corner.items()]
    return Routes(policy=policy, topology=MESH, paths=(straight, *turns))


XY = routes("xy", {X_FIRST: 1.0})
HALVES = routes("2p_es", {X_FIRST: 0.5, Y_FIRST: 0.5})


def traffic(to_east: float, to_corner: float) -> Traffic:
    demand = np.zeros((4, 4))
    demand[0, 1], demand[0, 3] = to_east, to_corner
    return Traffic(name="by hand", demand=demand)


positive = st.floats(min_value=1e-3, max_value=1e3)


@given(to_east=positive, to_corner=positive, load=st.floats(min_value=0, max_value=1))
def test_the_most_loaded_link_over_all_routings_gets_the_load(to_east: float, to_corner: float, load: float) -> None:
    scaled = normalised(traffic(to_east, to_corner), [HALVES, XY], load)
    demand = scaled.between_routers(MESH)
    # XY puts both flows on the link to the east, halves only one and a half of them: XY is the worst.
    assert link_loads(XY, demand).max() == pytest.approx(load)
    assert link_loads(HALVES, demand).max() <= link_loads(XY, demand).max() + 1e-12
    assert bottleneck(scaled, [HALVES]) == pytest.approx(load * (to_east + to_corner / 2) / (to_east + to_corner))


def test_proportions_stay() -> None:
    scaled = normalised(traffic(2.0, 1.0), [XY], 0.6).demand
    assert scaled[0, 1] == pytest.approx(0.4)
    assert scaled[0, 3] == pytest.approx(0.2)


def test_traffic_between_no_two_routers_cannot_be_scaled() -> None:
    alone = Traffic(name="alone", demand=np.eye(4))
    with pytest.raises(RoutecastError, match='traffic "alone" loads no link under xy, 2p_es'):
        normalised(alone, [XY, HALVES], 0.5)


def test_a_load_above_one_needs_may_overload() -> None:
    with pytest.raises(RoutecastError, match=r"1\.2 is over capacity"):
        normalised(traffic(1, 1), [XY], 1.2)
    meant = normalised(traffic(1, 1), [XY], 1.2, may_overload=True)
    assert bottleneck(meant, [XY]) == pytest.approx(1.2)


@pytest.mark.parametrize("load", [-0.1, float("nan"), float("inf")])
def test_an_invalid_load_is_refused(load: float) -> None:
    with pytest.raises(RoutecastError, match="it is 0 or more"):
        normalised(traffic(1, 1), [XY], load, may_overload=True)
