"""Chains of network functions under CPU quotas, against CN-UPB/nfv-t-cp's measurements (Apache-2.0)."""

from __future__ import annotations

from statistics import median

import pytest

from routecast.replications.accuracy._chain import ChainPoint, fit_chain, read_chain_points
from routecast.replications.accuracy.packs import MEASURED, read_packs

PACK = next(pack for pack in read_packs() if pack.name == "nfvtcp-six")
POINTS = read_chain_points(MEASURED / PACK.file)
SERIES = sorted({point.series for point in POINTS})


def settings(points: list[ChainPoint]) -> set[tuple[float, ...]]:
    """The six settings that calibrate: each function alone at the least quota, all at the least, middle, largest."""
    least = min(min(point.quotas) for point in points)
    largest = max(max(point.quotas) for point in points)
    alone = {tuple(least if i == function else largest for i in range(3)) for function in range(3)}
    return alone | {(least,) * 3, (0.32,) * 3, (largest,) * 3}


@pytest.mark.parametrize("series", SERIES)
@pytest.mark.slow
def test_six_settings_of_the_quotas_tell_the_others_of_every_order_within_six_percent(series: str) -> None:
    points = [point for point in POINTS if point.series == series]
    calibrating = [point for point in points if point.quotas in settings(points)]
    others = [point for point in points if point not in calibrating]
    assert len(calibrating) == 6
    assert len(others) in (21, 58)  # 27 or 64 settings in all
    result = fit_chain(calibrating, noise_ratio=PACK.noise_ratio).predict(others)
    errors = [abs(item.error_ratio) for item in result]
    assert median(errors) <= 0.06
