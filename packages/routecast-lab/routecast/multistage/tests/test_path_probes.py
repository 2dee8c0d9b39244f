"""A load balancer's own frames to neighbours test each route of a back-end router, and end at the load balancer."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from routecast.multistage.tests.small_router import (
    INSIDE_MAC,
    MEMBER,
    MEMBER_MAC,
    NEIGHBOUR_MAC,
    NEIGHBOURS,
    OTHER_PROBE,
    OTHER_PROBE6,
    PORT_MAC,
    PROBE,
    PROBE6,
    SmallRouter,
    frame,
    packet,
    wait_for,
)

pytestmark = pytest.mark.wire
SETTLES_S = 0.1
"""Longer than a frame through two pairs of interfaces takes; after it, nothing more is counted."""


@pytest.fixture
def router() -> Iterator[SmallRouter]:
    router = SmallRouter(f"rc-path-{os.getpid()}")
    yield router
    router.close()


def send_on_path(router: SmallRouter, path: int, *, of: int, count: int) -> None:
    body = packet((PROBE, PROBE6)[of], NEIGHBOURS[of], path=path)
    router.send("i0", frame(MEMBER_MAC, INSIDE_MAC, body), count)


@pytest.mark.parametrize("role", ["works", "stands_by"])
def test_frames_on_paths_are_counted_by_path_and_do_not_leave(router: SmallRouter, role: str) -> None:
    router.plane.set_role(role)
    expected = [0] * 64
    for path, of, count in ((0, 0, 3), (5, 0, 2), (63, 1, 4), (5, 1, 1), (64 + 7, 0, 1), (0x12340 + 9, 1, 1)):
        send_on_path(router, path, of=of, count=count)
        expected[path % 64] += count
    wait_for(lambda: router.plane.paths()[MEMBER] == expected)
    assert router.member_status()["probes_returned"] == sum(expected)
    assert router.port()["out_frames"] == 0
    router.plane.set_member(MEMBER, None)
    assert router.plane.paths() == {}
    router.plane.set_member(MEMBER, list(MEMBER_MAC))
    assert router.plane.paths() == {MEMBER: [0] * 64}


def test_a_path_without_its_route_is_silent_and_the_other_one_is_not(router: SmallRouter) -> None:
    router.ip(router.member, "route del 198.18.1.0/24 dev b0")
    send_on_path(router, 1, of=0, count=5)
    send_on_path(router, 2, of=1, count=5)
    wait_for(lambda: router.plane.paths()[MEMBER][2] == 5)
    assert router.plane.paths()[MEMBER][1] == 0


def test_frames_of_others_leave_as_before(router: SmallRouter) -> None:
    """The control: the same frames from another source reach the neighbour."""
    for source, to in (("198.51.100.1", NEIGHBOURS[0]), ("2001:db8:99::1", NEIGHBOURS[1])):
        router.send("i0", frame(MEMBER_MAC, INSIDE_MAC, packet(source, to, path=3)), 2)
    wait_for(lambda: router.port()["out_frames"] == 4)
    assert router.member_status()["returned_frames"] == 4
    assert router.plane.paths()[MEMBER] == [0] * 64


@pytest.mark.parametrize(("of", "source"), [(0, PROBE), (0, OTHER_PROBE), (1, PROBE6), (1, OTHER_PROBE6)])
def test_a_neighbour_cannot_forge_such_a_frame(router: SmallRouter, of: int, source: str) -> None:
    router.send("p0", frame(PORT_MAC, NEIGHBOUR_MAC, packet(source, NEIGHBOURS[of], path=3)), 4)
    wait_for(lambda: router.port()["reasons"]["malformed"] == 4)
    time.sleep(SETTLES_S)
    assert router.member_status()["sent_frames"] == 0
    assert router.plane.paths()[MEMBER] == [0] * 64
    honest = ("198.51.100.1", "2001:db8:99::1")[of]
    router.send("p0", frame(PORT_MAC, NEIGHBOUR_MAC, packet(honest, NEIGHBOURS[of])), 4)
    wait_for(lambda: router.member_status()["sent_frames"] == 4)


def test_frames_of_the_other_load_balancer_end_without_a_count(router: SmallRouter) -> None:
    for source, to in ((OTHER_PROBE, NEIGHBOURS[0]), (OTHER_PROBE6, NEIGHBOURS[1])):
        router.send("i0", frame(MEMBER_MAC, INSIDE_MAC, packet(source, to)), 3)
    send_on_path(router, 8, of=0, count=1)
    wait_for(lambda: router.plane.paths()[MEMBER][8] == 1)
    time.sleep(SETTLES_S)
    assert sum(router.plane.paths()[MEMBER]) == 1
    assert router.port()["out_frames"] == 0
