"""Formulas: arithmetic and nothing else, whatever text a file holds."""

from __future__ import annotations

import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import ModelProblem
from routecast.hardware.formula import FUNCTIONS, MAX_FORMULA_CHARACTERS, Formula


@pytest.mark.parametrize(
    ("text", "values", "result"),
    [
        # Baldi & Sapio 2018, sec. 2.2, worked by hand for the L2 switch of sec. 3.1.1.
        ("31 + 5*ceil(hdr/64)", {"hdr": 30}, 36),
        ("ceil((4*N + 106 + 5*ceil(HE/8) + 5*ceil(HE/32)) * (1 + p))", {"N": 1, "HE": 12, "p": 0}, 125),
        ("7*ceil(b/2) + 8", {"b": 20}, 78),
        ("(1 + ceil(es/8)) * (1 if b <= 3 else 2)", {"es": 19, "b": 4}, 8),
        ("max(max, 3) + min(max, 3)", {"max": 2}, 5),
        ("pow2ceil(0) + pow2ceil(17) + pow2ceil(32) + log2(8) + floor(2.9)", {}, 1 + 32 + 32 + 3 + 2),
        ("7 // 2 + 7 % 4 + 2**10", {}, 3 + 3 + 1024),
        (" 1.5e1\n", {}, 15),
    ],
)
def test_a_formula_has_the_value_of_its_arithmetic(text: str, values: dict[str, float], result: float) -> None:
    formula = Formula(text)
    assert formula.evaluate(values) == result
    assert formula.names == values.keys()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "5 *",
        "b; b",
        "b = 3",
        "(b := 3)",
        "b.real",
        "b.__class__.__mro__",
        "(1).__class__",
        "b[0]",
        "[b]",
        "{b}",
        "'b' * 10**9",
        "f'{b}'",
        "lambda: b",
        "[x for x in b]",
        "__import__('os')",
        "__import__('os').system('true')",
        "open('/etc/passwd')",
        "ceil",
        "ceil(b, b)",
        "max(b)",
        "min(*b)",
        "ceil(number=b)",
        "ceil(b)(b)",
        "True",
        "None",
        "1j",
        "b if b else",
        "b < 3 < ",
        "b is 3",
        "b in 3",
        "not b",
        "b @ b",
        "b << 3",
        "1 2",
        "1if b else 2",
        "\0",
        "9" * 400,
        "-" * 500 + "1",
        "(" * 300 + "1" + ")" * 300,
        "+".join(["1"] * 400),
        "1" * (MAX_FORMULA_CHARACTERS + 1),
    ],
)
def test_what_is_no_arithmetic_is_refused_as_it_is_made(text: str) -> None:
    if text == "ceil":  # a variable may have any name
        assert Formula(text).names == {"ceil"}
        return
    with pytest.raises(ModelProblem) as caught:
        Formula(text)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("text", "values", "words"),
    [
        ("b / (N - 1)", {"b": 8, "N": 1}, "divides by zero with N = 1, b = 8"),
        ("b % 0", {"b": 8}, "divides by zero"),
        ("0 ** -1", {}, "divides by zero"),
        ("b + c0", {"b": 8}, "needs a value of c0; given is b"),
        ("b - 9", {"b": 8}, "is -1 with b = 8: a cost or size is not negative"),
        ("2 ** 5000", {}, "too large"),
        ("9 ** 9 ** 9 ** 9 ** 9", {}, "too large"),
        ("(((10 ** 300) ** 10) ** 10) ** 10", {}, "too large"),
        ("1e999", {}, "inf"),
        ("b * 10", {"b": math.inf}, "inf"),
        ("b * 10", {"b": math.nan}, "nan"),
        ("ceil(b)", {"b": math.inf}, "too large"),
        ("pow2ceil(b)", {"b": 1e308}, "too large"),
        ("log2(b)", {"b": 0}, "has no value with b = 0"),
        ("(0 - b) ** 0.5", {"b": 2}, "finite number"),
    ],
)
def test_a_value_that_is_no_cost_is_reported_with_the_variables(
    text: str, values: dict[str, float], words: str
) -> None:
    with pytest.raises(ModelProblem) as caught:
        Formula(text).evaluate(values)
    assert words in str(caught.value)


def test_a_name_that_is_no_variable_is_refused_as_the_formula_is_made() -> None:
    known = frozenset({"b", "N"})
    assert Formula("b + N", known).names == known
    with pytest.raises(ModelProblem, match=r'names "HE", "x": the variables here are "N", "b"'):
        Formula("b + x + HE", known)


def test_coefficients_take_the_places_of_their_names_only() -> None:
    formula = Formula("c1 + c1*c10 + max(c1, 2)*max + 1e1").substituted({"c1": -2.0, "max": 3.0})
    assert formula.names == {"c10"}
    assert formula.evaluate({"c10": -5.0}) == -2 + 10 + 2 * 3 + 10


@given(value=st.floats(0.0, allow_nan=False, allow_infinity=False))
def test_a_constant_is_itself(value: float) -> None:
    assert Formula.constant(value).evaluate({}) == value


def test_formulas_are_values() -> None:
    formula = Formula("5*b")
    assert pickle.loads(pickle.dumps(formula)) == formula
    assert len({formula, Formula("5*b")}) == 1


PIECES = [
    *FUNCTIONS,
    *"()+-*/%<>=!,. \t\n0123456789",
    *(
        "**",
        "//",
        " if ",
        " else ",
        " and ",
        " or ",
        " not ",
        "b",
        "max",
        "N",
        "p",
        "1e308",
        "9e99",
        "__class__",
        "'",
        "[",
    ),
]
TEXTS = st.text(max_size=80) | st.lists(st.sampled_from(PIECES), max_size=40).map("".join)
VALUES = st.fixed_dictionaries(dict.fromkeys(("b", "max", "N", "p"), st.floats(allow_nan=True)))


@given(text=TEXTS, values=VALUES)
def test_any_text_is_a_formula_or_a_problem_and_any_value_finite(text: str, values: dict[str, float]) -> None:
    try:
        result = Formula(text).evaluate(values)
    except ModelProblem:
        return
    assert math.isfinite(result)
    assert result >= 0.0


EXPRESSIONS = st.recursive(
    st.sampled_from(["b", "N", "max", "2", "9e99", "0.5"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "//", "%", "**"]), inner).map(
            lambda parts: f"({''.join(parts)})"
        ),
        st.tuples(st.sampled_from(["ceil", "floor", "log2", "pow2ceil"]), inner).map(
            lambda parts: f"{parts[0]}({parts[1]})"
        ),
        st.tuples(inner, inner, inner).map(lambda parts: f"({parts[0]} if {parts[1]} < {parts[2]} else max)"),
    ),
    max_leaves=12,
)


@given(text=EXPRESSIONS, values=VALUES)
def test_no_arithmetic_ends_in_another_error(text: str, values: dict[str, float]) -> None:
    try:
        result = Formula(text).evaluate(values)
    except ModelProblem:
        return
    assert math.isfinite(result)
