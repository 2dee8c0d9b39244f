"""A calibrated router with latency rows, simulated: it is as late as the curve of its rows, and forwards as before."""

from __future__ import annotations

import math
import re
import tomllib
from datetime import date
from typing import Any

import numpy as np
import pytest

from routecast.calibration import fit, router_file_of, validate
from routecast.calibration.latency import Bursts, MeasuredLatency, bursts_of, measured_latency
from routecast.evaluate.point_table import parse_points
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve
from routecast.load.arrivals import Arrivals
from routecast.load.flows import FlowSet
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad
from routecast.router import ServiceCost, multicore
from routecast.router.files import build_router
from routecast.router.model import Activation, RouterModel

HEAD = "cores,frame_bytes,throughput_mpps,rate_kind,latency_load_ratio,latency_p50_us,latency_arrivals\n"
TWO = HEAD + "1,64,5.1,overload,0.1,12,cbr\n2,64,10.0,overload,,,\n4,64,19.4,overload,0.9,31,cbr\n"
FULL = TWO + "4,64,19.4,overload,1.2,410,cbr\n"
LATE_ROW_ALONE = HEAD + "1,64,5.1,overload,,,\n4,64,19.4,overload,0.5,22,cbr\n"


def saved(text: str) -> tuple[dict[str, Any], str]:
    router = router_file_of(validate(parse_points(text)), source="test", today=date(2026, 1, 1))
    return tomllib.loads(router.text), router.text


def curve_of(text: str) -> MeasuredLatency:
    points = parse_points(text)
    measured = measured_latency(fit(points), points, points[0], "p50")
    assert measured is not None
    return measured


def load_of(rate_pps: float, cores: int, arrivals: Arrivals | None = None) -> OfferedLoad:
    flows = FlowSet.crafted(2 * cores, ports=2)
    given = {} if arrivals is None else {"arrivals": arrivals}
    return OfferedLoad(rate_pps=rate_pps, frames=FrameMix.fixed(64), flows=flows, **given)


def median_s(router: RouterModel, load: OfferedLoad, frames: float = 60_000) -> float:
    trial = Simulate(router, seed=1, steady_state=False).trial(load, frames / load.rate_pps)
    assert trial.latency is not None
    return trial.latency.p50_s


@pytest.mark.parametrize("text", [TWO, FULL, LATE_ROW_ALONE])
def test_a_saved_router_is_as_late_as_the_curve_of_its_rows(text: str) -> None:
    document, measured = saved(text)[0], curve_of(text)
    document.pop("load")
    for cores in (1, 4):
        router, _ = build_router(document | {"cores": cores})
        capacity_pps = float(np.median(measured.capacities_pps([cores])))
        for ratio in (0.3, 0.5, 0.7):
            expected_s = measured.at_rate(ratio * capacity_pps, cores).latency_s
            # The target; the greatest distance seen was 6 %, with four cores that slow each other down.
            assert median_s(router, load_of(ratio * capacity_pps, cores)) == pytest.approx(expected_s, rel=0.15)


def test_the_rates_of_a_saved_router_are_those_of_its_rows() -> None:
    document, _ = saved(FULL)
    document.pop("load")
    assert document["activation"] == {"kind": "polling"}
    for cores, rate_mpps in ((1, 5.1), (2, 10.0), (4, 19.4)):
        router, _ = build_router(document | {"cores": cores})
        load = load_of(2e6 * rate_mpps, cores)
        assert Solve(model=router).trial(load, 1.0).forwarded_pps == pytest.approx(rate_mpps * 1e6, rel=0.02)
        simulated = Simulate(router, seed=1, steady_state=False).trial(load, 0.02)
        assert simulated.forwarded_pps == pytest.approx(rate_mpps * 1e6, rel=0.02)
        assert simulated.latency is not None
        if cores == 4:
            # The row in overload: its full ring, within the noise of a fit to three rows.
            assert simulated.latency.p50_s == pytest.approx(410e-6, rel=0.25)


def test_a_file_says_whether_its_latency_was_measured() -> None:
    assert "Latency: the median follows the curve of the rows at 10%, 90%" in saved(TWO)[1]
    assert "no row is in overload" in saved(TWO)[1]
    assert "no row is in overload" not in saved(FULL)[1]
    without, text = saved("cores,throughput_mpps\n1,5.1\n4,19.4\n")
    assert "Latency: not measured" in text
    assert not {"activation", "batch", "path", "queue"} & set(without)


def test_rows_of_poisson_arrivals_make_a_poisson_load() -> None:
    document, text = saved(FULL.replace("cbr", "poisson"))
    assert document["load"]["arrivals"] == {"kind": "poisson"}
    measured = curve_of(FULL.replace("cbr", "poisson"))
    router, _ = build_router({key: entry for key, entry in document.items() if key != "load"})
    load = load_of(0.5 * 19.4e6, 4, Arrivals.poisson())
    assert median_s(router, load) == pytest.approx(measured.at_rate(0.5 * 19.4e6, 4).latency_s, rel=0.15), text


@pytest.mark.parametrize(("ratio", "batch"), [(0.3, 64), (0.7, 64), (0.5, 1024), (0.05, 64), (0.9, 256)])
def test_bursts_take_what_a_simulation_of_them_takes(ratio: float, batch: int) -> None:
    frame_s, path_s = 0.2e-6, 5e-6
    bursts = Bursts(per_batch_s=1.6e-6, batch_frames=batch, path_s=path_s, queue_frames=4096, worst_ratio=0.0)
    own_s = frame_s - bursts.per_batch_s / batch
    service = ServiceCost(per_packet_s=own_s, per_batch_s=bursts.per_batch_s)
    router = multicore(
        1, service, link_bps=1e15, activation=Activation(kind="polling"), batch_frames=batch, path_s=path_s
    )
    assert median_s(router, load_of(ratio / frame_s, 1)) == pytest.approx(bursts.latency_s(ratio, frame_s), rel=0.06)


def test_a_path_delays_frames_and_nothing_else() -> None:
    service = ServiceCost(per_packet_s=1e-6)
    near, far = (multicore(2, service, link_bps=100e9, **given) for given in ({}, {"path_s": 30e-6}))
    load = load_of(1e6, 2)
    for evaluator in (lambda model: Solve(model=model), lambda model: Simulate(model, seed=1, steady_state=False)):
        first, second = (evaluator(model).trial(load, 0.05) for model in (near, far))
        assert first.latency is not None
        assert second.latency is not None
        assert second.latency.mean_s - first.latency.mean_s == pytest.approx(30e-6, rel=1e-3)
        assert second.forwarded_pps == pytest.approx(first.forwarded_pps, rel=1e-3)
        assert first.loss_ratio == second.loss_ratio == 0.0


def test_the_law_of_bursts_is_nearest_where_it_is_asked() -> None:
    measured = curve_of(TWO)
    bursts = bursts_of(measured)
    assert bursts.worst_ratio < 0.05
    assert math.isclose(bursts.latency_s(0.5, 1 / 5.1e6), measured.at_load(0.5).latency_s, rel_tol=0.06)
    little = bursts_of(measured, most_ratio=0.01)
    assert little.per_batch_s <= 0.01 * little.batch_frames / 5.1e6 * 1.01


@pytest.mark.parametrize("batch", [32, 200])
def test_a_batch_that_is_stated_is_that_of_the_saved_router(batch: int) -> None:
    lines = FULL.splitlines()
    text = "\n".join([lines[0] + ",latency_batch_frames", lines[1] + f",{batch}", *(line + "," for line in lines[2:])])
    document, comments = saved(text + "\n")
    assert document["batch"] == f"{batch} frames"
    distance = re.search(rf"# The batch of {batch} frames is the table's; .* is (\S+) % or less from", comments)
    assert distance is not None
    document.pop("load")
    router, _ = build_router(document)
    measured = curve_of(FULL)
    stated_ratio = float(distance[1]) / 100.0
    for load_ratio in (0.3, 0.5, 0.7):
        rate_pps = load_ratio * 19.4e6
        late_s = median_s(router, load_of(rate_pps, 4, Arrivals.cbr()))
        assert late_s == pytest.approx(measured.at_rate(rate_pps, 4).latency_s, rel=stated_ratio + 0.06)
