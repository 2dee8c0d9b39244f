"""Receive queues dealt to the cores make a sawtooth over the cores, which the rates show."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

import routecast as rc
from routecast.calibration import FittedRouter, fit
from routecast.calibration.router_file import router_file
from routecast.evaluate.point_table import parse_points
from routecast.evaluate.points import Layout, Point
from routecast.replications.accuracy.packs import read_packs, table_points

CORE_PPS = 1e6


def dealt_pps(cores: int, queues: int) -> float:
    """Rate of the fullest core, times the shares of all: queues/ceil(queues/cores) cores' worth."""
    return CORE_PPS * queues / math.ceil(queues / cores)


def table(queues: int, counts: tuple[int, ...]) -> list[Point]:
    """Rates with errors of up to half a percent, of alternating sign."""
    return [
        Point(cores=k, frame_bytes=64.0, throughput_pps=dealt_pps(k, queues) * (1.0 + 0.005 * (-1) ** index))
        for index, k in enumerate(counts)
    ]


def fitted(queues: int, counts: tuple[int, ...]) -> FittedRouter:
    return fit(table(queues, counts))


@pytest.mark.parametrize(
    ("queues", "counts"),
    [
        (16, (1, 3, 6, 12, 16)),
        (16, (1, 4, 5, 7, 10, 15)),
        (24, (1, 5, 9, 10, 12)),
        (32, (2, 4, 6, 13, 16, 20)),
        (48, (1, 6, 9, 13, 15, 16)),
    ],
)
def test_queues_are_found_and_predict_the_counts_between(queues: int, counts: tuple[int, ...]) -> None:
    router = fitted(queues, counts)
    assert router.caps.queues == queues
    assert any(f"{queues} receive queues" in warning for warning in router.warnings)
    others = [k for k in range(2, max(counts)) if k not in counts]
    predicted = router.predict([Point(cores=k, frame_bytes=64.0, throughput_pps=math.nan) for k in others])
    for prediction in predicted:
        truth_pps = dealt_pps(prediction.point.cores, queues)
        assert prediction.throughput_pps == pytest.approx(truth_pps, rel=0.03)
        assert prediction.low_pps <= truth_pps <= prediction.high_pps


@pytest.mark.parametrize("counts", [(1, 2, 4, 8, 16), (1, 3, 6, 12), (1, 2, 3, 4, 5, 6)])
@pytest.mark.parametrize("contention", [0.0, 0.03, 0.2])
def test_a_smooth_curve_has_no_dealt_queues(counts: tuple[int, ...], contention: float) -> None:
    points = [
        Point(
            cores=k, frame_bytes=64.0, throughput_pps=CORE_PPS * k / (1.0 + contention * (k - 1)) * (1 + 0.005 * sign)
        )
        for k, sign in zip(counts, (1, -1, 1, -1, 1, -1), strict=False)
    ]
    assert fit(points).caps.queues is None


def test_a_plateau_is_no_dealing() -> None:
    points = [Point(cores=k, frame_bytes=64.0, throughput_pps=CORE_PPS * min(k, 4)) for k in (1, 2, 4, 6, 8)]
    assert fit(points).caps.queues is None


def test_stated_queues_hold() -> None:
    text = "cores,frame_bytes,throughput_pps,queues\n1,64,1e6,16\n4,64,4e6,16\n"
    points = parse_points(text)
    assert [point.layout for point in points] == [Layout(queues=16)] * 2
    asked = [replace(points[0], cores=k, throughput_pps=math.nan) for k in (8, 15, 16)]
    eight, fifteen, sixteen = (prediction.throughput_pps for prediction in fit(points).predict(asked))
    assert fifteen == pytest.approx(eight, rel=0.05)  # two queues for the fullest core
    assert sixteen == pytest.approx(2 * fifteen, rel=0.1)


def test_a_router_of_the_calibration_forwards_what_it_predicts() -> None:
    counts = (1, 3, 6, 12, 16)
    rates = [point.throughput_pps for point in table(16, counts)]
    router = rc.calibrate({"cores": counts, "throughput_pps": rates, "frame_bytes": [64] * len(counts)}).router(15)
    forwarded_pps = rc.solve(router, "40 Mpps", flows=15).forwarded_pps
    assert forwarded_pps == pytest.approx(dealt_pps(15, 16), rel=0.03)


def test_a_router_file_has_the_rate_of_the_fullest_core_and_says_so(tmp_path: Path) -> None:
    points = table(16, (1, 3, 6, 12, 16))
    file = router_file(fit(points), points, source="saw.csv", today=date(2026, 1, 1))
    assert "16 receive queues" in file.text
    assert "5 calibrating points" in file.text
    assert "several layouts" not in file.text
    path = tmp_path / "saw.router.toml"
    path.write_text(file.text)
    for cores, most_pps in ((8, 8e6), (15, 8e6), (16, 16e6)):
        assert rc.solve(rc.read(path).varied(cores=cores), "40 Mpps", flows=cores).forwarded_pps == pytest.approx(
            most_pps, rel=0.03
        )


@pytest.mark.slow
def test_no_shipped_table_shows_dealt_queues() -> None:
    """None of their sources says that it dealt more queues than cores; every third series keeps the test short."""
    tables = {pack.file: pack for pack in read_packs() if pack.kind == "multicore"}
    for pack in tables.values():
        points = table_points(pack)
        for name in list(dict.fromkeys(point.series for point in points))[::3]:
            series = [point for point in points if point.series == name]
            if len({point.working_cores for point in series}) >= 4:
                assert fit(series, noise_ratio=pack.noise_ratio).caps.queues is None, (pack.file, name)
