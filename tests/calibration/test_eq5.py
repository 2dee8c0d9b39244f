"""Meyer et al. 2014's own model, against the paper's own numbers."""

from __future__ import annotations

from statistics import fmean

import pytest

from routecast.calibration.eq5 import fit_eq5
from routecast.errors import FitProblem
from routecast.evaluate.points import Point

Tables = tuple[list[Point], list[Point]]


def test_table_1a_gives_table_1b(tables: Tables) -> None:
    eq5 = fit_eq5(tables[0])
    assert eq5.a == pytest.approx(0.011392, abs=5e-7)
    assert eq5.a0 == pytest.approx(0.002708, abs=1e-6)
    assert eq5.b == pytest.approx(0.227037, abs=1e-6)
    assert eq5.b0 == pytest.approx(0.063321, abs=1e-6)


def test_the_mean_error_over_table_2_is_that_of_the_paper(tables: Tables) -> None:
    # Recomputed from Table II: mean of the absolute errors 1.44 %, largest 3.57 % (with the paper's simulated rates).
    calibrating, held_out = tables
    errors = [abs(each.error_ratio) for each in fit_eq5(calibrating).predict([*calibrating, *held_out])]
    assert fmean(errors) == pytest.approx(0.0140, abs=5e-4)
    assert max(errors) == pytest.approx(0.0375, abs=5e-4)


@pytest.mark.parametrize(("flows", "frame_bytes"), [(1, 1024), (1, 1518), (3, 512)])
def test_links_limit_where_the_paper_says(flows: int, frame_bytes: int, tables: Tables) -> None:
    calibrating, held_out = tables
    point = next(p for p in held_out if (p.flows, p.frame_bytes) == (flows, frame_bytes))
    (prediction,) = fit_eq5(calibrating).predict([point])
    assert prediction.limit == ("link" if flows == 1 else "link and cpu")
    assert abs(prediction.error_ratio) < 0.011


def test_the_service_time_is_eq_7(tables: Tables) -> None:
    eq5 = fit_eq5(tables[0])
    gbps = (eq5.a * 2 + eq5.a0) * 256 + (eq5.b * 2 + eq5.b0)
    assert eq5.service_s(2, 256) == pytest.approx(2 * (256 + 20) * 8 / (gbps * 1e9), rel=1e-12)


def test_the_router_takes_eq_7_for_each_frame_on_each_core(tables: Tables) -> None:
    eq5 = fit_eq5(tables[0])
    router = eq5.router_model(4, 64, flows=2)
    service = router.task("core 3").service
    assert service.mean_s(64) == pytest.approx(eq5.service_s(2, 64))


def test_too_few_or_too_similar_points_are_refused(tables: Tables) -> None:
    calibrating, _ = tables
    with pytest.raises(FitProblem, match="4 parameters"):
        fit_eq5(calibrating[:3])
    same_size = [point for point in [*calibrating, *tables[1]] if point.frame_bytes == 64]
    with pytest.raises(FitProblem, match="do not determine"):
        fit_eq5(same_size)
