"""Faults of one direction and of some percent: frames that arrive at an interface, at a router, at a load balancer."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from routecast.lab import _lab
from routecast.lab._lab import FrameLoss, MemberGate
from routecast.lab.testbed.dut_host import run_command
from routecast.lab.testbed.netns import FOLDER
from routecast.multistage.tests.small_router import (
    INSIDE_MAC,
    MEMBER,
    MEMBER_MAC,
    NEIGHBOUR_MAC,
    NEIGHBOURS,
    PORT_MAC,
    PROBE,
    SmallRouter,
    frame,
    packet,
    wait_for,
)

pytestmark = pytest.mark.wire
COUNT = 2000
RATIO = 0.3
SPREAD = 5 * (COUNT * RATIO * (1 - RATIO)) ** 0.5
"""Five standard deviations of a binomial count."""
PROBE_FRAME = frame(MEMBER_MAC, INSIDE_MAC, packet(PROBE, NEIGHBOURS[0], path=1))
ORDINARY_FRAME = frame(PORT_MAC, NEIGHBOUR_MAC, packet("198.51.100.1", NEIGHBOURS[0]))


@pytest.fixture
def router() -> Iterator[SmallRouter]:
    router = SmallRouter(f"rc-loss-{os.getpid()}")
    yield router
    router.close()


@pytest.fixture
def pins(tmp_path: Path) -> Iterator[str]:
    """A folder in a BPF file system for the pins of one program."""
    mount = tmp_path / "bpf"
    mount.mkdir()
    run_command(["mount", "-t", "bpf", "bpf", str(mount)])
    try:
        yield str(mount / "p1")
    finally:
        run_command(["umount", str(mount)])


def returned(router: SmallRouter) -> int:
    return router.plane.paths()[MEMBER][1]


def send_and_count(router: SmallRouter) -> int:
    """Send frames on a path, and return how many came back; a last one on another path says that all are through."""
    before, last = returned(router), router.plane.paths()[MEMBER][2]
    router.send("i0", PROBE_FRAME, COUNT)
    end = frame(MEMBER_MAC, INSIDE_MAC, packet(PROBE, NEIGHBOURS[0], path=2))

    def is_through() -> bool:
        router.send("i0", end)
        return router.plane.paths()[MEMBER][2] > last

    wait_for(is_through)
    return returned(router) - before


def test_an_interface_loses_a_share_of_what_arrives_and_nothing_of_the_other_direction(router: SmallRouter) -> None:
    # b0 receives what the load balancer sends.
    loss = FrameLoss("b0", str(FOLDER / router.member))
    assert send_and_count(router) == COUNT
    assert loss.dropped() == 0
    loss.set(RATIO)
    assert abs(COUNT - send_and_count(router) - COUNT * RATIO) < SPREAD
    loss.set(1.0)
    dropped = loss.dropped()
    router.send("i0", PROBE_FRAME, 10)
    wait_for(lambda: loss.dropped() >= dropped + 10)
    # What b0 sends still leaves: a frame of the router's own kernel side, to the load balancer's inside interface.
    sent = router.port()["out_frames"]
    router.send("b0", frame(NEIGHBOUR_MAC, MEMBER_MAC, packet("198.51.100.1", NEIGHBOURS[0])), 10, netns=router.member)
    wait_for(lambda: router.port()["out_frames"] == sent + 10)
    loss.close()
    assert send_and_count(router) == COUNT


def test_a_pinned_loss_outlives_its_object_is_opened_again_and_is_removed(router: SmallRouter, pins: str) -> None:
    netns = str(FOLDER / router.member)
    loss = FrameLoss("b0", netns, pins)
    loss.set(1.0)
    loss.close()
    router.send("i0", PROBE_FRAME, 10)
    loss = FrameLoss("b0", netns, pins)
    wait_for(lambda: loss.dropped() == 10)
    assert returned(router) == 0
    FrameLoss.remove(pins)
    assert not Path(pins).exists()
    assert send_and_count(router) == COUNT
    FrameLoss.remove(pins)
    # The interface is free again at once.
    FrameLoss("b0", netns, pins).close()
    FrameLoss.remove(pins)


def test_a_gate_loses_a_share_of_what_reaches_its_router(router: SmallRouter) -> None:
    gate = MemberGate("b0", str(FOLDER / router.member))
    gate.set(cap_pps=0.0, queue_frames=0, hangs=False, forwards=False)
    assert send_and_count(router) == COUNT
    gate.set(cap_pps=0.0, queue_frames=0, hangs=False, forwards=False, loss=RATIO)
    lost = COUNT - send_and_count(router)
    assert abs(lost - COUNT * RATIO) < SPREAD
    assert 0 <= json.loads(gate.counters())["lost"] - lost < 100  # those that say that all are through are lost too


def test_a_load_balancer_loses_a_share_of_what_arrives_outside_and_inside(router: SmallRouter) -> None:
    router.plane.set_loss(RATIO)
    router.plane.set_role("works")  # a role leaves the loss as it is
    assert abs(COUNT - send_and_count(router) - COUNT * RATIO) < SPREAD
    router.send("p0", ORDINARY_FRAME, COUNT)
    came = router.port()["in_frames"]
    assert abs(COUNT - came - COUNT * RATIO) < SPREAD
    router.plane.set_loss(0.0)
    router.send("p0", ORDINARY_FRAME, COUNT)
    wait_for(lambda: router.port()["in_frames"] == came + COUNT)
    assert send_and_count(router) == COUNT


@pytest.mark.parametrize("ratio", [-0.1, 1.1, float("nan")])
def test_a_ratio_beyond_its_range_is_refused(router: SmallRouter, ratio: float) -> None:
    loss = FrameLoss("b0", str(FOLDER / router.member))
    for change in (loss.set, router.plane.set_loss):
        with pytest.raises(_lab.TesterError, match="0 to 1"):
            change(ratio)
