"""What is known of a test bed before it measures: layouts, shared costs, machines, and priors learnt elsewhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from routecast.calibration._fit import evidence_by_scales, fit, shared_poll
from routecast.calibration.forward import POLL_SHAPE
from routecast.calibration.priors import read_priors
from routecast.contention import LAWS
from routecast.evaluate.points import Layout, Point
from routecast.replications.accuracy.learning import learn
from routecast.replications.accuracy.packs import read_packs, table_points

POLLING = Layout(polls_ports=True)


def poller(cores: int, *, service_s: float = 100e-9, sigma: float = 0.0, poll: float = 0.06) -> Point:
    layout = POLLING
    cost = (1.0 + poll * layout.further_queues(cores, 2)) * (1.0 + sigma * (cores - 1))
    return Point(cores=cores, frame_bytes=64.0, throughput_pps=cores / (service_s * cost), layout=layout)


def test_a_second_core_can_add_more_than_the_first_where_it_takes_a_port_over() -> None:
    calibrating = [poller(cores) for cores in (1, 4)]
    poll = replace(POLL_SHAPE, mean=0.06, sd=0.005)
    (prediction,) = fit(calibrating, poll=poll).predict([poller(2)])
    assert prediction.throughput_pps > 2.0 * calibrating[0].throughput_pps
    assert abs(prediction.error_ratio) < 0.02


@pytest.mark.slow
def test_many_series_tell_the_cost_of_polling_that_one_confuses_with_contention() -> None:
    series = [
        [poller(cores, service_s=100e-9 + 10e-9 * index, sigma=sigma) for cores in (1, 2, 4)]
        for index, sigma in enumerate((0.0, 0.01, 0.02, 0.0, 0.05, 0.01))
    ]
    poll = shared_poll(series, noise_ratio=0.01)
    assert abs(poll.mean - 0.06) < 3.0 * poll.sd
    assert poll.sd < 0.5 * POLL_SHAPE.sd


def test_series_that_do_not_poll_leave_the_cost_at_its_prior() -> None:
    points = [replace(poller(cores), layout=Layout()) for cores in (1, 2)]
    assert shared_poll([points]) == POLL_SHAPE


def test_work_that_two_cores_can_do_holds_back_the_others() -> None:
    layout = Layout(narrow_share_ratio=0.5, narrow_cores=2)
    useful = [cores * layout.useful_ratio(cores) for cores in (1, 2, 4, 1000)]
    # Half of the work on two cores: never more than 4 cores' worth.
    assert useful == pytest.approx([1.0, 2.0, 8.0 / 3.0, 4.0], rel=0.01)


def test_everything_known_of_a_machine_has_a_reason_and_a_series_that_it_is_about() -> None:
    for pack in read_packs():
        for each in pack.known:
            assert len(each["reason"]) > 20
            assert set(each) - {"series", "reason"}


def test_longer_frames_meet_the_bus_of_a_card_earlier() -> None:
    pack = next(pack for pack in read_packs() if pack.name == "csit1701-cores-inside")
    caps = {p.frame_bytes: p.nic_cap_pps for p in table_points(pack) if "x520" in p.series}
    assert caps[64.0] == pytest.approx(23.8e6)
    # 14 bytes more at 4 GB/s are 3.5 ns more.
    assert caps[78.0] == pytest.approx(1.0 / (1.0 / 23.8e6 + 3.5e-9))


@pytest.mark.slow
def test_priors_learnt_from_a_source_favour_the_law_that_made_it() -> None:
    series = [
        [Point(cores=k, frame_bytes=64.0, throughput_pps=speed * k / (1.0 + 0.15 * (k - 1))) for k in (1, 2, 4, 8)]
        for speed in (1e5, 2e5, 3e5, 4e5)
    ]
    learnt = learn([[evidence_by_scales(points, list(LAWS.values())) for points in series]], list(LAWS))
    assert learnt.laws["serial"] > learnt.laws["power"]
    assert sum(learnt.laws.values()) == pytest.approx(len(LAWS))


@pytest.mark.slow
def test_the_prior_of_the_noise_is_learnt_from_repetitions() -> None:
    random = np.random.default_rng(1)
    series = [
        [
            Point(cores=k, frame_bytes=64.0, throughput_pps=1e6 * k * float(np.exp(0.03 * random.normal())))
            for k in (1, 2, 4)
            for _ in range(6)
        ]
        for _ in range(12)
    ]
    scales = learn([[evidence_by_scales(points, list(LAWS.values())) for points in series]], list(LAWS)).scales
    assert np.exp(scales.noise_mean) == pytest.approx(0.03, rel=0.3)
    assert scales.noise_sd < 0.6


def test_a_stated_noise_says_nothing_of_that_of_other_machines() -> None:
    points = [Point(cores=k, frame_bytes=64.0, throughput_pps=1e6 * k) for k in (1, 2, 4)]
    evidence = evidence_by_scales(points, list(LAWS.values())[:1], noise_ratio=0.02)
    assert np.ptp(evidence, axis=1) == pytest.approx(0.0)


def test_every_source_of_routers_on_the_board_has_priors_learnt_without_it() -> None:
    sources = {pack.file for pack in read_packs() if pack.kind == "multicore"}
    for source in sources:
        assert read_priors(without=source) != read_priors()
        assert set(read_priors(without=source).laws) == set(LAWS)
