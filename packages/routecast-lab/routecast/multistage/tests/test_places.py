"""Interfaces find their place among a load balancer's ports, whatever numbers the kernel gave them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest

from routecast.lab._lab import LoadBalancer
from routecast.lab.testbed.netns import FOLDER
from routecast.multistage._wiring import ip

NETNS = f"rc-places-{os.getpid()}"
SAME_PLACE = 256


@pytest.fixture
def numbers() -> Iterator[list[int]]:
    """A namespace with an interface i0 and interfaces whose numbers have the same place."""
    numbers = [300 + n * SAME_PLACE for n in range(5)]
    ip(None, [f"netns add {NETNS}"])
    try:
        lines = ["link add i0 type veth peer name p0"]
        lines += [f"link add e{number} index {number} type veth peer name p{number}" for number in numbers]
        ip(NETNS, lines)
        yield numbers
    finally:
        ip(None, [f"netns del {NETNS}"])


def configuration(numbers: list[int]) -> str:
    detector = {"silence_s": 0.05, "alone_s": 0.2, "unanswered": 64, "probes": 3, "returns": 3, "hold_s": 0.1}
    return json.dumps(
        {
            "netns": str(FOLDER / NETNS),
            "scheme": "flow_hash",
            "detector": detector | {"verdicts_per_s": 8},
            "outside": [
                {"interface": f"e{number}", "mac": [2, 0, 0, 0, 0, place]} for place, number in enumerate(numbers)
            ],
            "inside": "i0",
            "inside_mac": [2, 0, 0, 0, 1, 0],
            "inside_mtu": 1500,
            "probe": [[100, 127, 255, 101], [100, 127, 255, 1]],
        }
    )


@pytest.mark.wire
def test_a_few_may_share_a_place_and_more_are_refused(numbers: list[int]) -> None:
    plane = LoadBalancer(configuration(numbers[:4]))
    assert [*json.loads(plane.status())["ports"]] == sorted(f"e{number}" for number in numbers[:4])
    del plane
    with pytest.raises(Exception, match=r"e1324.*4 other interfaces have the same place"):
        LoadBalancer(configuration(numbers))
