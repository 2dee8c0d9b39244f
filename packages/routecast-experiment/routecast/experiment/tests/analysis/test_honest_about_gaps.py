"""What an analysis says when runs are missing, nothing varies, or there is no noise to measure by."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from statistics import stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t

from routecast.errors import RoutecastError
from routecast.experiment.analysis import (
    Analysis,
    analyse,
    contrast_of_effects,
    contrast_of_levels,
    interval_of_further_runs,
)
from routecast.experiment.model import Results

Order = Callable[[int], list[tuple[float, ...]]]
Make = Callable[..., Results]
INVALID = "core 9 does not exist"


def true(a: float, b: float, c: float) -> float:
    return 100 + 20 * a - 7 * b + 3 * c + 5 * a * b


def test_a_missing_run_is_named_with_its_levels_and_its_reason(results_of: Make, standard_order: Order) -> None:
    answers: list[list[float | str]] = [[true(*row)] for row in standard_order(3)]
    answers[5] = [INVALID]
    result = analyse(results_of(standard_order(3), answers, evaluator="solve"), "y")
    (missing,) = result.missing
    assert (missing.run, missing.row, missing.replication) == (5, 5, 0)
    assert missing.labels == ("A at 1", "B at -1", "C at 1")
    assert missing.why == INVALID
    assert INVALID in result.notes[0]
    assert result.cells[5].mean is None
    assert result.cells[5].predicted == pytest.approx(true(1, -1, 1))


def test_with_a_missing_run_the_highest_interaction_is_taken_as_zero_with_a_note(
    results_of: Make, standard_order: Order
) -> None:
    # The truth has no three-factor interaction, so seven runs find all its effects.
    answers: list[list[float | str]] = [[true(*row)] for row in standard_order(3)]
    answers[2] = [INVALID]
    result = analyse(results_of(standard_order(3), answers, evaluator="solve"), "y")
    effects = {effect.name: effect.value for effect in result.effects}
    assert effects == pytest.approx({"A": 20, "B": -7, "C": 3, "AB": 5, "AC": 0, "BC": 0}, abs=1e-9)
    (sentence,) = result.not_told_apart
    assert sentence.startswith("ABC ")
    assert "taken as zero" in sentence
    assert "do not add up to 100 %" in result.notes[-1]


def test_fewer_runs_than_effects_say_which_effects_are_mixed(results_of: Make, standard_order: Order) -> None:
    # Four of eight corners, those with C = AB: a half fraction in disguise.
    answers: list[list[float | str]] = [
        [true(*row)] if row[2] == row[0] * row[1] else [INVALID] for row in standard_order(3)
    ]
    result = analyse(results_of(standard_order(3), answers), "y")
    assert result.effect("C").aliases == ("+AB",)
    assert result.effect("C").value == pytest.approx(3 + 5)
    assert result.effect("A").aliases == ("+BC",)
    assert result.not_told_apart[0] == "the estimate of the mean is that of the mean + ABC"
    assert "the estimate of C is that of C + AB" in result.not_told_apart


def test_a_factor_that_failed_at_one_level_cannot_be_separated_from_the_mean(
    results_of: Make, standard_order: Order
) -> None:
    answers: list[list[float | str]] = [[true(*row)] if row[1] < 0 else [INVALID] for row in standard_order(3)]
    result = analyse(results_of(standard_order(3), answers), "y")
    assert any(
        sentence.startswith("B (factor B) cannot be distinguished from the mean: it has one level")
        for sentence in result.not_told_apart
    )
    assert any("replace the levels at which runs failed" in sentence for sentence in result.advice)
    assert not any("another part of the full design" in sentence for sentence in result.advice)
    assert result.mean == pytest.approx(100 + 7)


def test_a_constant_response_has_no_shares(results_of: Make, standard_order: Order) -> None:
    result = analyse(results_of(standard_order(2), [[4.2, 4.2]] * 4), "y")
    assert result.sst == 0
    assert all(effect.share_ratio is None and effect.value == 0 for effect in result.effects)
    assert result.error_share_ratio is None
    assert result.r2_ratio is None
    assert result.screening is None
    assert result.notes[0].startswith("every run has the same answer")


def test_rounding_in_the_last_digit_is_not_a_variation(results_of: Make, standard_order: Order) -> None:
    third = 1e9 / 3
    result = analyse(results_of(standard_order(1), [[third], [math.nextafter(third, 1e9)]]), "y")
    assert result.sst == 0
    assert result.effects[0].verdict == "nothing varies"


def test_a_formula_run_once_has_no_intervals_and_says_why(results_of: Make, standard_order: Order) -> None:
    result = analyse(results_of(standard_order(3), [[true(*row)] for row in standard_order(3)], evaluator="solve"), "y")
    assert result.s_e is None
    assert result.lenth is None
    assert all((effect.low, effect.p_value, effect.is_significant) == (None, None, None) for effect in result.effects)
    assert "exact" in result.noise
    assert interval_of_further_runs(result, 0) is None
    assert contrast_of_effects(result, {"A": 1, "B": 1}).low is None


def test_identical_replications_have_no_noise_either(results_of: Make, standard_order: Order) -> None:
    result = analyse(results_of(standard_order(2), [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [7.0, 7.0]]), "y")
    assert (result.error_df, result.sse, result.s_e) == (4, 0.0, None)
    assert all(effect.low is None for effect in result.effects)
    assert result.noise == "none, because repeated runs have the same answer; intervals have no meaning"


def test_an_answer_that_is_not_a_number_or_has_no_logarithm_is_missing(results_of: Make, standard_order: Order) -> None:
    answers = [[math.nan], [2.0], [math.inf], [0.0]]
    result = analyse(results_of(standard_order(2), answers, transform="log"), "y")
    assert [missing.why for missing in result.missing] == [
        "the answer is not a number",
        "the answer is not a number",
        "the answer is 0: it has no logarithm",
    ]
    assert result.count == 1
    assert result.mean == pytest.approx(math.log(2))


def test_without_any_answer_there_is_an_analysis_that_says_so(results_of: Make, standard_order: Order) -> None:
    result = analyse(results_of(standard_order(2), [[INVALID]] * 4), "y")
    assert result.mean is None
    assert len(result.missing) == 4
    assert result.notes == ("no run has an answer",)


def test_unsteady_runs_are_analysed_and_named(results_of: Make, standard_order: Order) -> None:
    result = analyse(results_of(standard_order(2), [[1.0], [2.0], [3.0], [5.0]], unsteady=[2]), "y")
    assert result.count == 4
    assert [(item.run, item.why) for item in result.unsteady] == [(2, "it drifts")]
    assert "not steady" in result.notes[0]


def test_an_analysis_is_json_without_infinities(results_of: Make, standard_order: Order) -> None:
    result = analyse(results_of(standard_order(2), [[1.0, 2.0], [2.0, 5.0], [3.0, math.nan], [5.0, 4.0]]), "y")
    text = json.dumps(result.to_json(), allow_nan=False)
    assert json.loads(text)["effects"][0]["share_ratio"] == pytest.approx(result.effects[0].share_ratio)


def test_bad_questions_are_refused_with_what_is_allowed(results_of: Make, standard_order: Order) -> None:
    results = results_of(standard_order(2), [[1.0], [2.0], [3.0], [5.0]])
    with pytest.raises(RoutecastError, match='no response "z"'):
        analyse(results, "z")
    with pytest.raises(RoutecastError, match="got confidence 95: it lies between 0 and 1"):
        analyse(results, "y", confidence=95)
    with pytest.raises(RoutecastError, match="at least 1"):
        analyse(results, "y", order=0)
    with pytest.raises(RoutecastError, match='no effect "Q": there are B, A, AB'):
        contrast_of_effects(analyse(results, "y"), {"Q": 1})
    with pytest.raises(RoutecastError, match='A has no level "B at 1": there are A at -1, A at 1'):
        contrast_of_levels(analyse(results, "y"), "A", {"B at 1": 1})


def test_the_mean_of_many_further_runs_is_as_sure_as_the_predicted_mean(
    results_of: Make, standard_order: Order
) -> None:
    result = analyse(results_of(standard_order(2), [[15, 18, 12], [45, 48, 51], [25, 28, 19], [75, 75, 81]]), "y")
    item, many = interval_of_further_runs(result, 0, 1), interval_of_further_runs(result, 0, 10**9)
    assert item is not None
    assert many is not None
    assert many == pytest.approx((result.cells[0].low, result.cells[0].high))
    # Jain, sec. 18.5: s = s_e sqrt(1/n_eff + 1/m), n_eff = 12/(1 + 3), m = 1; t(0.975; 8) = 2.306.
    assert item[1] - item[0] == pytest.approx(2 * 2.306 * 3.5707 * (4 / 12 + 1) ** 0.5, rel=1e-3)


def all_numbers_are_finite(value: object) -> bool:
    if isinstance(value, dict):
        return all(all_numbers_are_finite(entry) for entry in value.values())
    if isinstance(value, list):
        return all(all_numbers_are_finite(entry) for entry in value)
    return not isinstance(value, float) or math.isfinite(value)


@given(
    data=st.lists(
        st.lists(
            st.one_of(st.just(INVALID), st.just(math.nan), st.floats(-1e6, 1e6), st.just(3.0)), min_size=1, max_size=2
        ),
        min_size=8,
        max_size=8,
    ),
    evaluator=st.sampled_from(["solve", "measure"]),
)
def test_whatever_runs_are_missing_the_analysis_never_fails_and_shares_stay_in_bounds(
    results_of: Make, standard_order: Order, data: list[list[float | str]], evaluator: str
) -> None:
    result: Analysis = analyse(results_of(standard_order(3), data, evaluator=evaluator), "y")
    assert all_numbers_are_finite(result.to_json())
    for effect in result.effects:
        assert effect.share_ratio is None or -1e-9 <= effect.share_ratio <= 1 + 1e-9
    if result.is_balanced and result.sst > 0:
        whole = sum(effect.share_ratio or 0 for effect in result.effects) + (result.error_share_ratio or 0)
        assert whole == pytest.approx(1)


def test_a_large_effect_with_an_interaction_of_two_in_its_chain_asks_for_more_runs(
    results_of: Make, standard_order: Order
) -> None:
    rows = [(a, b, a * b) for a, b in standard_order(2)]
    result = analyse(results_of(rows, [[true(*row)] for row in rows], kind="fractional"), "y")
    assert any(sentence.startswith("A explains much, but its cause may be BC") for sentence in result.advice)
    assert any("at least twice" in sentence for sentence in result.advice)
    exact = analyse(results_of(rows, [[true(*row)] for row in rows], kind="fractional", evaluator="solve"), "y")
    assert not any("at least twice" in sentence for sentence in exact.advice)


def test_what_a_formula_leaves_over_is_no_noise(results_of: Make) -> None:
    rows = [(a, b) for b in (-1.0, 0.0, 1.0) for a in (-1.0, 0.0, 1.0)]
    answers = [[10 + 2 * a + b + a * b] for a, b in rows]
    result = analyse(results_of(rows, answers, kind="multilevel", evaluator="solve"), "y")
    assert result.error_df == 4
    assert result.sse == pytest.approx(4)
    assert result.s_e is None
    assert all(level.low is None for effect in result.effects for level in effect.levels)
    assert all(effect.is_significant is None for effect in result.effects)
    assert "the remaining 11.8% of the variation comes from all interactions" in result.noise


def test_with_common_random_numbers_the_mean_is_as_sure_as_whole_replications(
    results_of: Make, standard_order: Order
) -> None:
    # Each replication is lifted as a whole: effects do not feel it, the mean does.
    lifts = [0.0, 3.0, -1.0, 2.0]
    answers = [[10 + 2 * a + lift + 0.01 * n * b for n, lift in enumerate(lifts)] for a, b in standard_order(2)]
    plain = results_of(standard_order(2), answers, evaluator="simulate")
    common = replace(plain, experiment=replace(plain.experiment, has_common_seeds=True))
    result = analyse(common, "y")
    assert result.mean_low is not None
    assert result.mean_high is not None
    half = t.ppf(0.975, 3) * stdev(lifts) / 2
    assert (result.mean_high - result.mean_low) / 2 == pytest.approx(half, rel=1e-6)
    assert any("share their random numbers" in note for note in result.notes)
    apart = analyse(plain, "y")
    assert apart.mean_high is not None
    assert apart.mean_high < result.mean_high


DESIGNS: dict[str, list[tuple[float, ...]]] = {
    "multilevel": [(a, b) for b in (-1.0, -0.2, 1.0) for a in (-1.0, 0.0, 1.0)],
    "central_composite": [
        (-1, -1), (1, -1), (-1, 1), (1, 1), (-1.4, 0), (1.4, 0), (0, -1.4), (0, 1.4), (0, 0), (0, 0),
    ],
    "listed": [(-1, -1), (1, -1), (-1, 1), (0, 0), (0, 0), (1, 1), (1, 0.5)],
    "sobol": [(-1 + (5 * n % 19) / 9, -1 + n / 9) for n in range(19)],
    "fractional": [(-1, -1, 1), (1, -1, -1), (-1, 1, -1), (1, 1, 1)],
}  # fmt: skip


@given(
    kind=st.sampled_from(sorted(DESIGNS)),
    quantities=st.booleans(),
    evaluator=st.sampled_from(["solve", "simulate", "measure"]),
    transform=st.sampled_from(["none", "log", "reciprocal"]),
    order=st.sampled_from([None, 1, 2]),
    data=st.data(),
)
def test_every_kind_of_design_is_analysed_whatever_is_missing(
    results_of: Make,
    kind: str,
    quantities: bool,
    evaluator: str,
    transform: str,
    order: int | None,
    data: st.DataObject,
) -> None:
    rows = DESIGNS[kind]
    value = st.one_of(st.just(INVALID), st.just(math.nan), st.floats(-1e3, 1e3), st.sampled_from([0.0, 2.0, 3.0]))
    answers = data.draw(st.lists(st.lists(value, min_size=1, max_size=2), min_size=len(rows), max_size=len(rows)))
    results = results_of(rows, answers, kind=kind, quantities=quantities, evaluator=evaluator, transform=transform)
    result = analyse(results, "y", order=order)
    assert all_numbers_are_finite(result.to_json())
    assert result.count + len(result.missing) == len(results.runs)
    assert result.error_df == max(result.count - 1, 0) - sum(effect.df for effect in result.effects)
    assert result.error_share_ratio is None or -1e-9 <= result.error_share_ratio <= 1 + 1e-6


def test_an_effect_that_is_known_in_part_has_a_share_and_no_value(results_of: Make) -> None:
    # Of the six combinations one never answered: the interaction has one degree of freedom of its two.
    rows = [(a, b) for b in (-1.0, 1.0) for a in (-1.0, 0.0, 1.0)]
    answers: list[list[float | str]] = [
        [INVALID] if (a, b) == (0, 1) else [a + 5 * b, a + 5 * b + 0.1] for a, b in rows
    ]
    result = analyse(results_of(rows, answers, kind="multilevel"), "y")
    part = result.effect("AB")
    assert (part.df, part.value, part.levels) == (1, None, ())
    assert any(
        sentence.startswith("AB (factor A x factor B) is estimated only in part") for sentence in result.not_told_apart
    )


@pytest.mark.parametrize("lost", [-1.0, 0.0, 0.5, 1.0])
def test_without_a_level_at_which_every_run_failed_effects_are_those_of_a_design_without_it(
    results_of: Make, lost: float
) -> None:
    levels = (-1.0, 0.0, 0.5, 1.0)
    rows = [(a, b) for b in (-1.0, 1.0) for a in levels]
    answers: list[list[float | str]] = [[10 + a**2 + 3 * b - 2 * a * b, 10.5 + a - b] for a, b in rows]
    failed = [[INVALID] * 2 if a == lost else given for (a, _), given in zip(rows, answers, strict=True)]
    result = analyse(results_of(rows, failed, kind="multilevel"), "y")
    kept = [number for number, (a, _) in enumerate(rows) if a != lost]
    alone = analyse(
        results_of([rows[number] for number in kept], [answers[number] for number in kept], kind="multilevel"), "y"
    )
    assert result.mean == pytest.approx(alone.mean)
    assert result.is_balanced
    assert not result.not_told_apart
    for effect in alone.effects:
        same = result.effect(effect.name)
        assert same.df == effect.df
        assert same.ss == pytest.approx(effect.ss)
        assert [level.value for level in same.levels] == pytest.approx([level.value for level in effect.levels])
    assert [cell.predicted is None for cell in result.cells] == [a == lost for a, _ in rows]
    assert any(note.startswith("no run with factor A at A at") for note in result.notes)


def test_a_factor_of_many_levels_that_answered_at_one_cannot_be_separated_from_the_mean(results_of: Make) -> None:
    rows = [(a, b) for b in (-1.0, 1.0) for a in (-1.0, 0.0, 1.0)]
    answers: list[list[float | str]] = [[INVALID] if a else [7 + b] for a, b in rows]
    result = analyse(results_of(rows, answers, kind="multilevel"), "y")
    assert result.mean == pytest.approx(7)
    assert result.effect("B").value == pytest.approx(1)
    assert any(item.startswith("A (factor A) cannot be distinguished from the mean") for item in result.not_told_apart)


def test_whether_errors_are_normal_is_judged_alike_at_every_scale(results_of: Make) -> None:
    rows = [(a, b) for b in (-1.0, 1.0) for a in (-1.0, 1.0)]
    noise = [[0.3, 1.1], [2.0, 1.4], [0.2, 0.9], [1.0, 3.0]]
    statistics = []
    for scale in (1.0, 2.0**-500):
        answers = [[item * scale for item in pair] for pair in noise]
        result = analyse(results_of(rows, answers, kind="multilevel", evaluator="simulate"), "y")
        statistics += [check.statistic for check in result.residuals.checks if check.name == "normal errors"]
    # Shapiro and Wilk 1965: W does not change with the scale of the sample.
    assert statistics == [pytest.approx(statistics[0])] * 2
