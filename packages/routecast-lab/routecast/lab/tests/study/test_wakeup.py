"""Wake-up and interruptions are found again from simulated latencies of a router of known truth."""

from __future__ import annotations

import pytest

from routecast.errors import FitProblem
from routecast.lab.study.wakeup import QUANTILES, LatencyPoint, fit_wakeup, simulated_quantiles_s
from routecast.load import OfferedLoad
from routecast.router import Interruptions, RandomTime, RouterModel, softirq

SERVICE_S = 4.5e-6
WAKEUP = RandomTime(mean_s=20e-6, variation="gamma", scv=0.15)
INTERRUPTIONS = Interruptions(rate_hz=100.0, duration=RandomTime(mean_s=300e-6, variation="exponential"))


def router(service_s: float, wakeup: RandomTime | None, interruptions: Interruptions | None) -> RouterModel:
    return softirq(per_packet_s=service_s, wakeup=wakeup, interruptions=interruptions, link_bps=100e9)


def point(ratio: float, interruptions: Interruptions | None, seed: int = 11) -> LatencyPoint:
    stretch = interruptions.stretch if interruptions else 1.0
    completion_s = SERVICE_S * stretch
    load = OfferedLoad(rate_pps=ratio / completion_s)
    truth = router(SERVICE_S, WAKEUP, interruptions)
    return LatencyPoint(
        load=load,
        completion_s=completion_s,
        quantiles_s=simulated_quantiles_s(truth, load, 2.0, seed),
        make_router=router,
    )


@pytest.mark.slow
def test_wakeup_and_interruptions_are_found_again() -> None:
    result = fit_wakeup([point(0.1, INTERRUPTIONS), point(0.7, INTERRUPTIONS)])
    assert result.wakeup.quantile_s(0.5) == pytest.approx(20e-6, rel=0.1)
    assert result.interruptions is not None
    # Three percentiles at two loads tell how long and how frequent interruptions are to a factor of two or three.
    assert 100e-6 < result.interruptions.duration.average_s < 900e-6
    assert 0.01 < result.interrupted_ratio < 0.09
    simulated = simulated_quantiles_s(
        router(SERVICE_S, result.wakeup, result.interruptions), point(0.9, INTERRUPTIONS).load, 2.0, 5
    )
    held_out = point(0.9, INTERRUPTIONS).quantiles_s
    assert simulated[100] == pytest.approx(held_out[100], rel=0.2)
    assert 0.5 < simulated[198] / held_out[198] < 2.0


@pytest.mark.slow
def test_a_quiet_core_gets_next_to_no_interruptions() -> None:
    result = fit_wakeup([point(0.1, None), point(0.7, None)])
    assert result.interrupted_ratio < 0.02
    assert result.misfit_ratio < 0.15


def test_latency_without_gaps_between_frames_cannot_calibrate() -> None:
    with pytest.raises(FitProblem, match=r"frames are .* us apart at the smallest load.*lower load"):
        fit_wakeup([point(0.9, None)], series="here")


def test_no_point_no_wakeup() -> None:
    with pytest.raises(FitProblem, match="no latency to calibrate with"):
        fit_wakeup([])


def test_quantiles_span_the_whole_distribution() -> None:
    assert QUANTILES[0] == 0.0
    assert QUANTILES[-1] == 1.0
    assert QUANTILES[100] == 0.5
    assert QUANTILES[198] == 0.99
