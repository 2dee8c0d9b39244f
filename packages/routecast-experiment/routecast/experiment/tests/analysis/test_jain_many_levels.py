"""Designs with more than two levels in R. Jain, The Art of Computer Systems Performance Analysis (Wiley, 1991)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from routecast.experiment.analysis import Analysis, analyse, contrast_of_levels
from routecast.experiment.model import Results

Make = Callable[..., Results]


def level_effects(analysis: Analysis, name: str) -> list[float]:
    return [level.value for level in analysis.effect(name).levels]


def rows_of(analysis: Analysis) -> dict[str, tuple[int, float]]:
    return {row.component: (row.df, row.ss) for row in analysis.anova}


def test_the_code_size_comparison_of_three_processors_has_jains_effects_and_table(results_of: Make) -> None:
    # Example 20.1 to 20.5: bytes of code by five programmers on the processors R, V and Z.
    sizes = [[144, 120, 176, 288, 144], [101, 144, 211, 288, 72], [130, 180, 141, 374, 302]]
    result = analyse(results_of([(-1,), (0,), (1,)], sizes, kind="multilevel"), "y", confidence=0.9)
    assert result.mean == pytest.approx(187.7, abs=0.05)
    assert level_effects(result, "A") == pytest.approx([-13.3, -24.5, 37.7], abs=0.05)
    assert 100 * (result.effect("A").share_ratio or 0) == pytest.approx(10.4, abs=0.05)
    assert 100 * (result.error_share_ratio or 0) == pytest.approx(89.6, abs=0.05)
    assert rows_of(result)["A"][0] == 2
    assert rows_of(result)["errors"][0] == 12
    assert result.effect("A").is_significant is False


def test_the_cache_comparison_without_replications_has_jains_effects_and_table(results_of: Make) -> None:
    # Examples 21.1 to 21.4, tables 21.2 to 21.5: milliseconds of five workloads with two, one and no cache. (Example
    # 21.2 prints 2368.00 for the SSE of table 21.5, 236.80; its own errors give the latter.)
    times = {
        "ASM": [54, 55, 106],
        "TECO": [60, 60, 123],
        "SIEVE": [43, 43, 120],
        "DHRYSTONE": [49, 52, 111],
        "SORT": [49, 50, 108],
    }
    rows, answers = [], []
    for number, workload in enumerate(times.values()):
        for cache, value in zip((-1, 0, 1), workload, strict=True):
            rows.append((cache, -1 + number / 2))
            answers.append([value])
    result = analyse(results_of(rows, answers, kind="multilevel"), "y")
    assert result.mean == pytest.approx(72.2)
    assert level_effects(result, "A") == pytest.approx([-21.2, -20.2, 41.4], abs=0.05)
    assert level_effects(result, "B")[:2] == pytest.approx([-0.5, 8.8], abs=0.05)
    assert (result.ssy, result.ss0, result.sst) == pytest.approx((91595.00, 78192.59, 13402.41), abs=0.05)
    table = rows_of(result)
    assert table["A"] == (2, pytest.approx(12857.20, abs=0.05))
    assert table["B"] == (4, pytest.approx(308.40, abs=0.05))
    assert table["errors"] == (8, pytest.approx(236.80, abs=0.05))
    shares = [100 * (result.effect(name).share_ratio or 0) for name in "AB"]
    assert shares == pytest.approx([95.9, 2.3], abs=0.05)
    ratios = {row.component: row.f for row in result.anova}
    assert ratios["A"] == pytest.approx(217.2, abs=0.05)
    assert ratios["B"] == pytest.approx(2.6, abs=0.05)
    assert "all interactions" in result.noise
    # Table 21.6: the variance of an effect of a = 3 caches over b = 5 workloads is s_e^2 (a - 1)/(ab);
    # t(0.975; 8) = 2.306.
    two_caches = result.effect("A").levels[0]
    assert two_caches.high is not None
    assert two_caches.high - two_caches.value == pytest.approx(2.306 * (29.60 * 2 / 15) ** 0.5, rel=1e-3)
    # Table 21.3: the first row of errors.
    residuals = result.residuals
    assert residuals is not None
    assert residuals.residuals[:3] == pytest.approx([3.5, 3.5, -7.1], abs=0.05)
    # Example 21.1: one cache is 1 ms from two; the variance of a contrast is s_e^2 sum(h^2)/b (table 21.6).
    difference = contrast_of_levels(result, "A", {"A at -1": -1, "A at 0": 1})
    assert difference.value == pytest.approx(1.0)
    assert difference.standard_error == pytest.approx((29.60 * 2 / 5) ** 0.5, rel=1e-3)
    assert difference.is_significant is False
    # Table 21.8: 90 % intervals of the differences between alternatives.
    nine_of_ten = analyse(results_of(rows, answers, kind="multilevel"), "y", confidence=0.9)
    for first, second, low, high in (("-1", "0", -7.4, 5.4), ("-1", "1", -69.0, -56.2), ("0", "1", -68.0, -55.2)):
        apart = contrast_of_levels(nine_of_ten, "A", {f"A at {first}": 1, f"A at {second}": -1})
        assert (apart.low, apart.high) == pytest.approx((low, high), abs=0.05)


def test_the_code_size_study_with_replications_has_jains_effects_and_interactions(results_of: Make) -> None:
    # Tables 22.2 to 22.4: log10 of the code size of workloads I to M on processors W to Z, three times each.
    sizes = {
        "I": ([3.8455, 3.8191, 3.8634], [4.0807, 4.0717, 4.1164], [4.4633, 4.4321, 4.4779], [3.9958, 3.9641, 4.0015]),
        "J": ([3.5061, 3.4598, 3.5469], [3.7095, 3.7507, 3.6635], [3.9523, 3.9066, 3.9857], [3.6184, 3.6291, 3.6091]),
        "K": ([3.6727, 3.6933, 3.6498], [3.9735, 3.9510, 3.9984], [4.2953, 4.2866, 4.3247], [3.8506, 3.8440, 3.8246]),
        "L": ([3.7082, 3.7410, 3.6761], [3.7492, 3.7743, 3.7127], [4.3491, 4.3636, 4.3313], [3.7288, 3.7585, 3.6959]),
        "M": ([3.8330, 3.8056, 3.8578], [4.0879, 4.0790, 4.1131], [4.4558, 4.4289, 4.4851], [3.9914, 3.9688, 4.0100]),
    }  # fmt: skip
    rows, answers = [], []
    for number, row in enumerate(sizes.values()):
        for processor, values in enumerate(row):
            rows.append((-1 + 2 * processor / 3, -1 + number / 2))
            answers.append(values)
    result = analyse(results_of(rows, answers, kind="multilevel"), "y")
    assert result.mean == pytest.approx(3.9423, abs=5e-5)
    assert level_effects(result, "A") == pytest.approx([-0.2304, -0.0202, 0.3603, -0.1096], abs=1e-4)
    assert level_effects(result, "B") == pytest.approx([0.1520, -0.2475, 0.0047, -0.0599, 0.1507], abs=1e-4)
    # Table 22.4, by processor: the interactions with the workloads I to M.
    interactions = level_effects(result, "AB")
    assert interactions[:5] == pytest.approx([-0.0212, 0.0399, -0.0447, 0.0564, -0.0305], abs=1e-4)
    assert interactions[10:15] == pytest.approx([0.0032, -0.1069, -0.0051, 0.1054, 0.0033], abs=1e-4)
    assert rows_of(result)["AB"][0] == 12
    assert result.error_df == 40


def test_a_long_sweep_of_one_factor_has_a_mean_at_each_of_its_levels(results_of: Make) -> None:
    rows = [(-1 + size / 10, mode) for mode in (-1.0, 1.0) for size in range(21)]
    result = analyse(results_of(rows, [[100 * a + 10 * b] for a, b in rows], kind="multilevel"), "y")
    means = {means.letters: means.points for means in result.means}
    assert len(means["A",]) == 21
    assert [point.value for point in means["B",]] == pytest.approx([-10, 10])
    assert len(means["A", "B"]) == 42
