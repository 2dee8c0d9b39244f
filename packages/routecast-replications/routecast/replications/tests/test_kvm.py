"""What Li (2012) says of KVM (ch. 4) beside the simulator with the technique that ships: values, orders, limits."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import routecast
from routecast.evaluate import Simulate
from routecast.evaluate.trial import Trial
from routecast.replications.curves.document import CurveStudy
from routecast.replications.curves.simulate import document_of, load_of
from routecast.router.files import build_router
from routecast.study.reading import read_study

pytestmark = pytest.mark.slow


DURATION_S = 0.3
FOLDER = Path(routecast.__file__).parent / "replications" / "data" / "studies"


@cache
def study() -> CurveStudy:
    file = read_study(FOLDER / "kvm_tuning.study.toml")
    assert isinstance(file.study, CurveStudy)
    return file.study


@cache
def trial(figure_name: str, curve_name: str, offered_kpps: int) -> Trial:
    figure = next(item for item in study().figure if item.name == figure_name)
    curve = next(entry for entry in figure.curve if entry.name == curve_name)
    model = build_router(document_of(study(), curve, {}), subject=curve_name, folder=FOLDER)[0]
    return Simulate(model=model, seed=1, steady_state=False).trial(
        load_of(figure, curve, offered_kpps * 1e3), DURATION_S
    )


def kpps(figure: str, curve: str, offered_kpps: int) -> float:
    return trial(figure, curve, offered_kpps).forwarded_pps / 1e3


@pytest.mark.parametrize("offered", [1000, 1200, 1400])
def test_a_router_bound_to_four_cores_forwards_900_kpps_whatever_is_offered(offered: int) -> None:
    assert kpps("single", "4 cores, bind", offered) == pytest.approx(900, rel=0.05)


def test_the_vhost_thread_is_the_bottleneck_while_other_cores_idle() -> None:
    busy = {item.name: item.busy_ratio for item in trial("single", "4 cores, bind", 1200).activity or ()}
    assert busy["vm send 0"] + busy["vm receive 0"] == pytest.approx(1.0, abs=0.01)
    assert sum(busy.values()) < 3.0  # of four cores


def test_two_free_cores_collapse_below_one_and_two_bound_ones_do_not() -> None:
    item, free, bound = (kpps("single", name, 1200) for name in ("1 core", "2 cores, no bind", "2 cores, bind"))
    assert free < item < bound
    assert kpps("single", "2 cores, no bind", 700) > 600  # it is a collapse: less load, more forwarded


def test_what_collapses_two_free_cores_is_that_threads_move() -> None:
    figure = next(item for item in study().figure if item.name == "single")
    curve = next(entry for entry in figure.curve if entry.name == "2 cores, no bind")
    document = document_of(study(), curve, {"single": {"technology.migration_cost": "0 s"}})
    model = build_router(document, subject="free", folder=FOLDER)[0]
    moved_for_nothing = Simulate(model=model, seed=1, steady_state=False).trial(
        load_of(figure, curve, 1.2e6), DURATION_S
    )
    assert moved_for_nothing.forwarded_pps / 1e3 > 2.0 * kpps("single", "1 core", 1200)


@pytest.mark.parametrize("switch", ["macvtap", "bridge"])
@pytest.mark.parametrize("offered", [300, 600, 1000])
def test_equal_priorities_are_best_and_the_vcpu_above_the_vhost_is_worst(switch: str, offered: int) -> None:
    equal, vhost, vcpu = (
        kpps("priorities", f"{who}, {switch}", offered) for who in ("equal", "vhost above", "vcpu above")
    )
    assert equal > vhost > vcpu


@pytest.mark.parametrize("who", ["equal", "vhost above", "vcpu above"])
def test_macvtap_forwards_more_than_a_bridge(who: str) -> None:
    assert kpps("priorities", f"{who}, macvtap", 600) > kpps("priorities", f"{who}, bridge", 600)


def test_two_parallel_routers_forward_what_one_cannot_and_three_bound_ones_reach_1200_kpps() -> None:
    assert kpps("parallel", "2 routers", 1100) > 1100 * 0.92
    assert kpps("parallel", "3 routers, bind", 1400) == pytest.approx(1200, rel=0.08)


@pytest.mark.slow
def test_bindings_of_a_multistage_router_trade_the_peak_for_stability() -> None:
    assert kpps("multistage", "2 cores, no bind", 200) == pytest.approx(140, rel=0.12)
    assert kpps("multistage", "2 cores, bind A", 240) == pytest.approx(240, rel=0.12)
    assert kpps("multistage", "2 cores, bind B", 200) == pytest.approx(180, rel=0.12)
    free, bound_a, bound_b = (
        kpps("multistage", name, 1000) for name in ("2 cores, no bind", "2 cores, bind A", "2 cores, bind B")
    )
    assert bound_a < free < bound_b


def test_the_vcpu_that_runs_click_limits_a_multistage_router_on_four_bound_cores() -> None:
    busy = {item.name: item.busy_ratio for item in trial("multistage", "4 cores, bind", 600).activity or ()}
    assert busy["lb balance"] + busy["lb return"] == pytest.approx(1.0, abs=0.01)


def test_the_collapse_of_two_free_cores_hangs_on_equal_flows_in_lock_step() -> None:
    figure = next(entry for entry in study().figure if entry.name == "single")
    patterns = next(item for item in figure.patterns if item.curve == "2 cores, no bind")
    assert "lock-step" in patterns.says
    results = {}
    for pattern in patterns.pattern:
        traffic = figure.traffic.model_copy(update=pattern.model_dump(exclude={"name"}))
        curve = figure.named(patterns.curve).model_copy(update={"traffic": traffic})
        model = build_router(document_of(study(), curve, {}), subject=pattern.name, folder=FOLDER)[0]
        load = load_of(figure, curve, patterns.at)
        results[pattern.name] = Simulate(model=model, seed=1, steady_state=False).trial(load, DURATION_S).forwarded_pps
    in_step = {name for name, rate in results.items() if rate < 100e3}
    assert in_step == {"2 equal flows", "4 equal flows", "64 equal flows, as in the figure"}
    assert min(rate for name, rate in results.items() if name not in in_step) > kpps("single", "1 core", 1200) * 1e3
