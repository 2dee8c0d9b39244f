"""A load that grows in one trial."""

from __future__ import annotations

import math

import pytest

from routecast.errors import QuantityProblem
from routecast.evaluate.ramp import Ramp, RampResult
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.views import describe_ramp, ramp_table
from routecast.load import Arrivals, FlowSet, OfferedLoad
from routecast.router import ServiceCost, multicore


@pytest.mark.parametrize("text", ["1 Mpps", "1 Mpps..5 Mpps", "5 Mpps..1 Mpps over 1 s", "1..x over 1 s", ""])
def test_what_is_no_ramp_is_refused_with_the_form_that_is(text: str) -> None:
    with pytest.raises(QuantityProblem):
        Ramp.parse(text)


def test_a_ramp_begins_and_ends_at_its_rates() -> None:
    ramp = Ramp.parse("1 Mpps..5 Mpps over 60 s")
    load = ramp.of(OfferedLoad(rate_pps=1.0))
    assert (load.rate_pps, load.steps[-1].rate_pps) == (1e6, pytest.approx(5e6))
    assert load.mean_pps(60.0) == pytest.approx(3e6, rel=1e-3)
    assert ramp.rate_at(59.9) == pytest.approx(5e6)


def test_the_first_loss_is_found_where_the_core_is_full() -> None:
    """One core at 1 us a frame fills its queue from 1 Mpps on; a rise of 10 Mpps/s brings 64 frames more by then."""
    router = multicore(1, ServiceCost(per_packet_s=1e-6), queue_frames=64, link_bps=100e9)
    ramp = Ramp.parse("0.5 Mpps..1.5 Mpps over 100 ms")
    load = ramp.of(OfferedLoad(rate_pps=1.0, flows=FlowSet.crafted(1), arrivals=Arrivals.cbr()))
    trial = Simulate(router, over_time=True, steady_state=False).trial(load, ramp.duration_s)
    climb = RampResult.of(trial, ramp)
    assert climb.lossless_pps == pytest.approx(1e6 + math.sqrt(2.0 * 64 * 1e7), rel=0.01)
    assert climb.lossless_pps <= climb.first_loss_pps
    assert climb.most_forwarded_pps == pytest.approx(1e6, rel=0.02)
    assert [rung.dropped_pps > 0.0 for rung in climb.rungs] == sorted(rung.dropped_pps > 0.0 for rung in climb.rungs)
    assert "no loss up to" in describe_ramp(climb)
    assert len(ramp_table(climb).rows) == len(climb.rungs) == 20


def test_a_ramp_without_loss_says_that_it_ended() -> None:
    router = multicore(1, ServiceCost(per_packet_s=1e-7), link_bps=100e9)
    ramp = Ramp.parse("100 kpps..200 kpps over 20 ms")
    load = ramp.of(OfferedLoad(rate_pps=1.0))
    climb = RampResult.of(Simulate(router, over_time=True, steady_state=False).trial(load, ramp.duration_s), ramp)
    assert climb.lossless_pps == pytest.approx(2e5)
    assert math.isnan(climb.first_loss_pps)
    assert "the end of the ramp" in describe_ramp(climb)
