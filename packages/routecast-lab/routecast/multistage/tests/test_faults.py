"""Faults of one direction and of a share of the frames: they lose what they say, and nothing when they are over."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from routecast.errors import QuantityProblem
from routecast.multistage.appliance import Appliance
from routecast.multistage.tests.multistage_hosts import Hosts, states, wait_for

pytestmark = pytest.mark.wire


def sent_by(router: Appliance) -> dict[str, int]:
    return {row["name"]: row["sent_frames"] for row in router.status()["routers"]}


@pytest.mark.parametrize("direction", ["in", "out", "both"])
@pytest.mark.parametrize("element", ["br1", "lb0"])
def test_a_share_of_the_frames_is_lost(router: Appliance, hosts: Hosts, element: str, direction: str) -> None:
    # A load balancer that loses many of its calls is replaced by the other one.
    ratio = 0.3 if element == "br1" else 0.05
    expected = ratio if direction != "both" else 1.0 - (1.0 - ratio) ** 2
    router.fail(element, "hang", direction=direction, loss_ratio=ratio)
    before = sent_by(router)
    result = hosts.send(0.5)
    sent = {name: count - before[name] for name, count in sent_by(router).items()}
    share = sent["br1"] / sum(sent.values()) if element == "br1" else 1.0
    if element == "lb0" and direction != "in":
        # A frame leaves the load balancer twice: for the back-end router, and for the host.
        expected = 1.0 - (1.0 - ratio) ** (2 if direction == "out" else 4)
    elif element == "lb0":
        expected = 1.0 - (1.0 - ratio) ** 2  # it reaches it twice, too
    lost = result["lost_frames"] / result["sent_frames"]
    assert lost == pytest.approx(share * expected, abs=0.03)
    router.restore(element)
    wait_for(lambda: set(states(router).values()) == {"active"})
    wait_for(lambda: hosts.send(0.2)["lost_frames"] == 0)
    assert [row["fault"] for row in (*router.status()["routers"], *router.status()["balancers"])] == [""] * 5


def test_one_that_hears_and_does_not_answer_dies_as_any_other(router: Appliance, hosts: Hosts) -> None:
    router.fail("br1", "hang", direction="out")
    wait_for(lambda: states(router)["br1"] == "dead", within_s=10.0)
    assert hosts.send(0.2)["lost_frames"] == 0
    router.restore("br1")
    wait_for(lambda: states(router)["br1"] == "active")
    assert hosts.send(0.2)["lost_frames"] == 0


def test_a_fault_outlives_the_process(text: str) -> None:
    with Appliance(text) as first:
        first.fail("br1", "hang", direction="out", loss_ratio=0.5)
        first.leave()
        with Appliance(text) as second:
            assert {row["name"]: row["fault"] for row in second.status()["routers"]}["br1"] == "loss"
            second.restore("br1")
            assert {row["name"]: row["fault"] for row in second.status()["routers"]}["br1"] == ""


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda router: router.fail("br1", "link", direction="in"), "needs the kind hang"),
        (lambda router: router.fail("br1", "hang", loss_ratio=0.0), "above 0 and up to 1"),
        (lambda router: router.fail("br1", "hang", loss_ratio=float("nan")), "above 0 and up to 1"),
        (lambda router: router.fail("br1", "hang", direction="down"), "one of in, out, both"),
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(
    router: Appliance, ask: Callable[[Appliance], object], message: str
) -> None:
    with pytest.raises(QuantityProblem, match=message):
        ask(router)
    assert {row["fault"] for row in router.status()["routers"]} == {""}
