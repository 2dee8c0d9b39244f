"""Designs against published tables: order, confounding, resolution, axial points, one point in each stratum."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import ModelProblem
from routecast.experiment.designs import (
    STANDARD_FRACTIONS,
    Fraction,
    central_composite,
    full,
    latin_hypercube,
    letters_of,
    multilevel,
    plackett_burman,
    rotatable_alpha,
    sobol,
    standard_fraction,
)

Rows = tuple[tuple[float, ...], ...]


def column(rows: Rows, word: int | tuple[int, ...]) -> list[float]:
    """Return the product of some columns, run by run."""
    numbers = (word,) if isinstance(word, int) else word
    results = []
    for row in rows:
        value = 1.0
        for number in numbers:
            value *= row[number]
        results.append(value)
    return results


def numbers_of(word: str, letters: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(letters.index(letter) for letter in word)


def test_a_full_design_is_in_standard_order() -> None:
    # Box, Hunter and Hunter 1978, table 10.1: the first factor alternates every run, the last one once.
    signs = ["".join("+" if level > 0 else "-" for level in row) for row in full(3)]
    assert signs == ["---", "+--", "-+-", "++-", "--+", "+-+", "-++", "+++"]


@given(st.integers(1, 7))
def test_all_columns_of_a_full_design_are_orthogonal(factors: int) -> None:
    rows = full(factors)
    for item, other in combinations(range(factors), 2):
        assert sum(column(rows, (item, other))) == 0.0
    assert all(sum(column(rows, number)) == 0.0 for number in range(factors))


def test_a_multilevel_design_has_every_combination_once() -> None:
    levels = [(-1.0, 1.0), (-1.0, 0.0, 1.0), (-1.0, -0.5, 0.5, 1.0)]
    rows = multilevel(levels)
    assert len(rows) == 24
    assert set(rows) == set(product(*levels))


def test_jains_2_7_4_confounds_what_his_table_says() -> None:
    # Jain 1991, ch. 19: D=AB, E=AC, F=BC, G=ABC; a resolution III design, in eight runs.
    letters = letters_of(7)
    fraction = Fraction.of(letters, ["D=AB", "E=AC", "F=BC", "G=ABC"])
    assert fraction.runs == 8
    assert fraction.resolution == 3
    assert len(fraction.defining_relation) == 15
    # The seven words of three letters are the lines of the Fano plane.
    assert {word for word in fraction.defining_relation if len(word) == 3} == {
        "ABD", "ACE", "AFG", "BCF", "BEG", "CDG", "DEF",
    }  # fmt: skip
    assert set(fraction.aliases("A")) >= {"BD", "CE", "FG"}


def test_jains_2_4_1_with_d_abc_confounds_pairs_of_interactions() -> None:
    # Jain 1991, ch. 19: I = ABCD; A=BCD, B=ACD, C=ABD, AB=CD, AC=BD, BC=AD, ABC=D.
    fraction = Fraction.of("ABCD", ["D=ABC"])
    assert fraction.defining_relation == ("ABCD",)
    assert {word: fraction.aliases(word) for word in ("A", "B", "C", "AB", "AC", "BC", "ABC")} == {
        "A": ("BCD",), "B": ("ACD",), "C": ("ABD",), "AB": ("CD",), "AC": ("BD",), "BC": ("AD",), "ABC": ("D",),
    }  # fmt: skip
    assert fraction.resolution == 4


def test_jains_2_4_1_with_d_ab_confounds_main_effects_with_interactions() -> None:
    # Jain 1991, ch. 19: I = ABD; A=BD, B=AD, C=ABCD, D=AB, AC=BCD, BC=ACD, CD=ABC.
    fraction = Fraction.of("ABCD", ["D=AB"])
    assert {word: fraction.aliases(word) for word in ("A", "B", "C", "D", "AC", "BC", "CD")} == {
        "A": ("BD",), "B": ("AD",), "C": ("ABCD",), "D": ("AB",), "AC": ("BCD",), "BC": ("ACD",), "CD": ("ABC",),
    }  # fmt: skip
    assert fraction.resolution == 3


def test_montgomerys_2_6_2_has_the_alias_chains_of_his_table() -> None:
    # Montgomery, Design and Analysis of Experiments, 8th ed., table 8.8: E=ABC, F=BCD, I = ABCE = BCDF = ADEF.
    fraction = Fraction.of("ABCDEF", ["E=ABC", "F=BCD"])
    assert set(fraction.defining_relation) == {"ABCE", "BCDF", "ADEF"}
    chains = {frozenset(chain) for chain in fraction.alias_chains() if len(chain) > 1}
    assert chains == {
        frozenset(chain.split("=")) for chain in ("AB=CE", "AC=BE", "AD=EF", "AE=BC=DF", "AF=DE", "BD=CF", "BF=CD")
    }


@pytest.mark.parametrize(("factors", "fewer"), STANDARD_FRACTIONS)
def test_standard_fractions_have_the_resolution_that_is_tabulated(factors: int, fewer: int) -> None:
    resolution, generators = STANDARD_FRACTIONS[factors, fewer]
    fraction = Fraction.of(letters_of(factors), generators.split())
    assert fraction.resolution == resolution
    assert len(set(fraction.coded)) == 2 ** (factors - fewer)


@pytest.mark.parametrize(("factors", "fewer"), [key for key in STANDARD_FRACTIONS if key[0] <= 7])
def test_no_fraction_of_that_size_has_less_aberration_than_the_standard_one(factors: int, fewer: int) -> None:
    """Try every choice of generators: Fries and Hunter's minimum aberration, Technometrics 22, 1980."""
    base = factors - fewer
    words = [mask for mask in range(1, 1 << base) if mask.bit_count() > 1]

    def pattern(generators: tuple[int, ...]) -> list[int]:
        group = [0]
        for number, mask in enumerate(generators):
            group += [other ^ mask ^ (1 << (base + number)) for other in group]
        return [sum(mask.bit_count() == size for mask in group[1:]) for size in range(1, factors + 1)]

    standard = Fraction.of(letters_of(factors), STANDARD_FRACTIONS[factors, fewer][1].split())
    tabulated = [sum(mask.bit_count() == size for mask, _ in standard.defining) for size in range(1, factors + 1)]
    assert tabulated == min(pattern(chosen) for chosen in combinations(words, fewer))


@given(st.sampled_from(sorted(STANDARD_FRACTIONS)), st.data())
def test_aliases_have_equal_columns_in_the_runs(size: tuple[int, int], data: st.DataObject) -> None:
    letters = letters_of(size[0])
    fraction = Fraction.of(letters, STANDARD_FRACTIONS[size][1].split())
    rows = fraction.coded
    effect = "".join(sorted(data.draw(st.sets(st.sampled_from(letters), min_size=1, max_size=3)), key=letters.index))
    mine = column(rows, numbers_of(effect, letters))
    for alias in fraction.aliases(effect)[:8]:
        sign = -1.0 if alias.startswith("-") else 1.0
        word = alias.lstrip("-")
        other = [1.0] * len(rows) if word == "I" else column(rows, numbers_of(word, letters))
        assert mine == [sign * value for value in other]


def test_a_generator_with_a_sign_takes_the_other_half() -> None:
    fraction = Fraction.of("ABC", ["C=-AB"])
    assert fraction.defining_relation == ("-ABC",)
    assert fraction.aliases("A") == ("-BC",)
    assert set(fraction.coded) | set(Fraction.of("ABC", ["C=AB"]).coded) == set(full(3))


@pytest.mark.parametrize(
    ("generators", "says"),
    [
        (["D=AX"], '"X" is no factor'),
        (["D=AAB"], "occurs twice"),
        (["D"], "is not a generator"),
        (["AB=CD"], "is not one factor"),
        (["D=A"], "the same column"),
        (["D=AB", "D=AC"], "has a generator already"),
        (["D=AB", "C=ABD"], "has a generator itself"),
        (["C=AB", "D=AB"], "confound C and D with each other"),
    ],
)
def test_a_generator_that_is_none_is_reported(generators: list[str], says: str) -> None:
    with pytest.raises(ModelProblem, match=says):
        Fraction.of("ABCD", generators)


def test_all_wrong_generators_are_reported_at_once() -> None:
    with pytest.raises(ModelProblem) as caught:
        Fraction.of("ABCDE", ["D=AX", "E=B"])
    assert [problem.place for problem in caught.value.problems] == ["generators[0]", "generators[1]"]


@pytest.mark.parametrize(
    ("runs", "first"), [(12, "++-+++---+-"), (20, "++--++++-+-+----++-"), (24, "+++++-+-++--++--+-+----")]
)
def test_screening_designs_are_those_of_plackett_and_burman(runs: int, first: str) -> None:
    # Plackett and Burman, Biometrika 33(4), 1946: first rows of their designs for 12, 20 and 24 runs.
    rows = plackett_burman(runs - 1)
    assert "".join("+" if level > 0 else "-" for level in rows[0]) == first
    assert rows[-1] == (-1.0,) * (runs - 1)


@given(st.integers(2, 47))
def test_main_effects_of_a_screening_design_are_orthogonal(factors: int) -> None:
    rows = plackett_burman(factors)
    assert len(rows) % 4 == 0
    assert all(sum(column(rows, number)) == 0.0 for number in range(factors))
    assert all(sum(column(rows, pair)) == 0.0 for pair in combinations(range(factors), 2))


def test_the_smallest_standard_fraction_of_a_resolution_is_taken() -> None:
    # Box, Hunter and Hunter 1978, table 12.15: seven factors at resolution IV need 16 runs, at VII 64.
    assert [standard_fraction(letters_of(7), resolution=at).runs for at in (3, 4, 7)] == [8, 16, 64]
    assert standard_fraction(letters_of(8), runs=64).resolution == 5
    with pytest.raises(ModelProblem, match="resolution 4 in 16 runs"):
        standard_fraction(letters_of(7), resolution=5, runs=8)


def test_axial_points_stand_where_the_handbook_says() -> None:
    # NIST/SEMATECH e-Handbook, table 3.23 (sec. 5.3.3.6.1): alpha for 2^2, 2^3, 2^4, 2^(5-1), 2^5, 2^(6-1), 2^6.
    alphas = [rotatable_alpha(2**power) for power in (2, 3, 4, 4, 5, 5, 6)]
    assert alphas == pytest.approx([1.414, 1.682, 2.000, 2.000, 2.378, 2.378, 2.828], abs=5e-4)


def test_the_rotatable_design_of_three_factors_is_the_handbooks() -> None:
    # NIST/SEMATECH e-Handbook, sec. 5.3.3.6.3: 8 corners, 6 axial points at 1.682, 6 centre points.
    rows = central_composite(full(3), centre_points=6)
    assert len(rows) == 20
    assert rows[:8] == full(3)
    assert sorted(sum(abs(level) for level in row) for row in rows[8:14]) == pytest.approx([1.682] * 6, abs=5e-4)
    assert rows[14:] == ((0.0, 0.0, 0.0),) * 6


@given(st.integers(2, 5))
def test_a_rotatable_design_has_the_moments_of_a_rotatable_design(factors: int) -> None:
    """Box and Hunter 1957: the fourth moment of a factor is three times the mixed one of two factors."""
    rows = central_composite(full(factors), centre_points=3)
    fourth = sum(row[0] ** 4 for row in rows)
    mixed = sum(row[0] ** 2 * row[1] ** 2 for row in rows)
    assert fourth == pytest.approx(3.0 * mixed)


def test_other_shapes_stay_within_the_levels() -> None:
    for shape in ("face_centred", "inscribed"):
        rows = central_composite(full(3), shape=shape, centre_points=1)
        assert max(abs(level) for row in rows for level in row) == 1.0
    inscribed = central_composite(full(2), shape="inscribed", centre_points=0)
    assert inscribed[0] == pytest.approx((-0.7071, -0.7071), abs=1e-4)
    assert central_composite(full(2), shape="face_centred", centre_points=0)[4] == (-1.0, 0.0)


@given(st.integers(1, 6), st.integers(2, 40), st.integers(0, 2**40), st.sampled_from(["random", "even"]))
@pytest.mark.slow
def test_a_latin_hypercube_has_one_point_in_each_stratum_of_each_factor(
    factors: int, points: int, seed: int, spread: str
) -> None:
    rows = latin_hypercube(factors, points, seed=seed, spread="even" if spread == "even" else "random")
    for number in range(factors):
        strata = sorted(int((row[number] + 1.0) / 2.0 * points) for row in rows)
        assert strata == list(range(points))


def test_an_even_latin_hypercube_fills_the_space_better() -> None:
    from scipy.stats import qmc

    def discrepancy(spread: str) -> float:
        rows = latin_hypercube(4, 30, seed=3, spread="even" if spread == "even" else "random")
        return float(qmc.discrepancy([[(level + 1.0) / 2.0 for level in row] for row in rows], method="CD"))

    assert discrepancy("even") < 0.9 * discrepancy("random")


@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 2**40))
def test_sobol_points_are_balanced_in_halves(factors: int, power: int, seed: int) -> None:
    """A (t, m, s)-net in base 2 has as many points in the lower half of a factor as in the upper one."""
    rows = sobol(factors, 2**power, seed=seed)
    for number in range(factors):
        assert sum(row[number] < 0.0 for row in rows) == 2 ** (power - 1)


def test_samples_depend_on_the_seed_alone() -> None:
    assert latin_hypercube(3, 10, seed=5) == latin_hypercube(3, 10, seed=5)
    assert latin_hypercube(3, 10, seed=5) != latin_hypercube(3, 10, seed=6)
    assert sobol(3, 16, seed=5) == sobol(3, 16, seed=5)


def test_an_unbalanced_sobol_sequence_is_refused() -> None:
    with pytest.raises(ModelProblem, match="take 64 or 128"):
        sobol(2, 100, seed=1)


def test_letters_leave_out_the_identity() -> None:
    assert "".join(letters_of(26)) == "ABCDEFGHJKLMNOPQRSTUVWXYZa"
    assert len(set(letters_of(50))) == 50
    assert "I" not in letters_of(50)
