"""Formulas of costs over the parameters of an operation, such as ``"5 * ceil(b / 8)"``.

Formulas come from files and therefore allow only arithmetic: numbers, names, ``+ - * / // % **``, comparisons, ``X if
CONDITION else Y`` and the functions of :data:`FUNCTIONS`. All numbers are floats, so that powers take constant time.
The value is a cost, a count or a size, so it is finite and not negative.
"""

from __future__ import annotations

import ast
import math
import operator
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import InitVar, dataclass
from functools import lru_cache
from typing import Any

from routecast.errors import ModelProblem, Problem

__all__ = ["FUNCTIONS", "MAX_FORMULA_CHARACTERS", "Formula"]

MAX_FORMULA_CHARACTERS = 1000
_MAX_DEPTH = 40
_SHOWN_CHARACTERS = 60


def _pow2ceil(number: float) -> float:
    if not number <= 2.0**1000:
        raise OverflowError
    return 1.0 if number <= 1.0 else 2.0 ** math.ceil(math.log2(number))


FUNCTIONS: Mapping[str, Callable[..., float]] = {
    "ceil": lambda number: float(math.ceil(number)),
    "floor": lambda number: float(math.floor(number)),
    "min": lambda first, *others: min(first, *others, math.inf),
    "max": lambda first, *others: max(first, *others, -math.inf),
    "log2": math.log2,
    "pow2ceil": _pow2ceil,
}
"""Functions that a formula may call; ``pow2ceil(x)`` is the smallest power of two >= max(x, 1)."""

_OPERATORS: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_STRUCTURE = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.And, ast.Or, ast.Compare, ast.IfExp)
_ALLOWED = "a formula has numbers, names, + - * / // % **, comparisons, X if CONDITION else Y, and " + ", ".join(
    FUNCTIONS
)


@dataclass(frozen=True, slots=True)
class Formula:
    """Arithmetic over named values, checked when it is constructed.

    Parameters
    ----------
    text : str
        At most :data:`MAX_FORMULA_CHARACTERS` characters. A name before parentheses is a function, so ``max`` may also
        be a variable.
    variables : frozenset of str, optional
        The names that the formula may use; not stored. None: any name.

    Raises
    ------
    routecast.errors.ModelProblem
        The text is no formula, or it uses a name that is not in ``variables``.

    Examples
    --------
    >>> Formula("5 * ceil(b / 8)").evaluate({"b": 20})
    15.0
    >>> sorted(Formula("max(es, 8) * max").names)
    ['es', 'max']
    """

    text: str
    variables: InitVar[frozenset[str] | None] = None

    def __post_init__(self, variables: frozenset[str] | None) -> None:
        """Refuse a text that is no formula over the variables."""
        names = self.names
        unknown = sorted(names - variables) if variables is not None else []
        if unknown and variables is not None:
            known = ", ".join(f'"{name}"' for name in sorted(variables)) or "none"
            names_text = ", ".join(f'"{name[:_SHOWN_CHARACTERS]}"' for name in unknown[:5])
            raise _problem(self.text, f"names {names_text}: the variables here are {known}")

    @classmethod
    def constant(cls, number: float) -> Formula:
        """Return the formula that is always ``number``."""
        return cls(repr(float(number)))

    @property
    def names(self) -> frozenset[str]:
        """The variables of the formula."""
        return _parsed(self.text)[1]

    def evaluate(self, values: Mapping[str, float]) -> float:
        """Return the value of the formula; other names in ``values`` are ignored.

        Raises
        ------
        routecast.errors.ModelProblem
            A variable has no value, or the result is not a finite number of at least 0.
        """
        from simpleeval import InvalidExpression, SimpleEval

        tree, names = _parsed(self.text)
        missing = sorted(names - values.keys())
        if missing:
            given = ", ".join(sorted(values)) or "nothing"
            raise _problem(self.text, f"needs a value of {', '.join(missing)}; given is {given}")
        inputs = {name: float(values[name]) for name in names}
        evaluator = SimpleEval(operators=dict(_OPERATORS), functions=dict(FUNCTIONS), names=inputs)
        with_values = f" with {', '.join(f'{name} = {inputs[name]:g}' for name in sorted(inputs))}" if inputs else ""
        try:
            result = evaluator.eval(self.text, previously_parsed=tree)
        except ZeroDivisionError:
            raise _problem(self.text, f"divides by zero{with_values}") from None
        except OverflowError:
            raise _problem(self.text, f"is too large a number{with_values}") from None
        except (ArithmeticError, ValueError, TypeError, InvalidExpression):
            raise _problem(self.text, f"has no value{with_values}") from None
        if isinstance(result, complex) or not math.isfinite(result):
            raise _problem(self.text, f"is {result:g}{with_values}: give a finite number")
        if result < 0.0:
            raise _problem(self.text, f"is {result:g}{with_values}: a cost or size is not negative")
        return float(result)

    def substituted(self, values: Mapping[str, float]) -> Formula:
        """Return the formula with numbers for some of its variables.

        Examples
        --------
        >>> Formula("c0 + c1*N").substituted({"c0": 12.5, "c1": 3.0})
        Formula(text='12.5 + 3.0*N')
        """
        text = self.text
        for name, number in values.items():
            shown = repr(float(number)) if number >= 0.0 else f"({float(number)!r})"
            text = re.sub(rf"(?<![\w.]){re.escape(name)}(?!\w|\s*\()", shown, text)
        return Formula(text)


@lru_cache(maxsize=4096)
def _parsed(text: str) -> tuple[ast.expr, frozenset[str]]:
    """Return the syntax tree of a formula, with all numbers as floats, and its variables."""
    if not isinstance(text, str):
        raise _problem(repr(text), f"is no text; {_ALLOWED}")
    if len(text) > MAX_FORMULA_CHARACTERS:
        raise _problem(text, f"has {len(text)} characters: a formula has at most {MAX_FORMULA_CHARACTERS}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError, Warning):
        raise _problem(text, f"is no formula; {_ALLOWED}") from None
    names: set[str] = set()
    _check(tree.body, text, names, _MAX_DEPTH)
    return tree.body, frozenset(names)


def _check(node: ast.AST, text: str, names: set[str], depth: int) -> None:
    if depth == 0:
        raise _problem(text, f"is nested deeper than {_MAX_DEPTH}")
    children = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            raise _problem(text, f"holds {str(node.value)[:_SHOWN_CHARACTERS]!r}, which is no number")
        try:
            node.value = float(node.value)
        except OverflowError:
            raise _problem(text, "holds a number that is too large") from None
    elif isinstance(node, ast.Name):
        names.add(node.id)
        children = []
    elif isinstance(node, ast.Call):
        if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS:
            called = ast.unparse(node.func)[:_SHOWN_CHARACTERS]
            raise _problem(text, f"calls {called!r}: there are {', '.join(FUNCTIONS)}")
        _check_arguments(node, node.func.id, text)
        children = list(node.args)
    elif not isinstance(node, _STRUCTURE) and type(node) not in _OPERATORS:
        raise _problem(text, f"has a {type(node).__name__.lower()}; {_ALLOWED}")
    for child in children:
        _check(child, text, names, depth - 1)


def _check_arguments(call: ast.Call, function: str, text: str) -> None:
    several = function in {"min", "max"}
    starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    if call.keywords or starred or not (len(call.args) >= 2 if several else len(call.args) == 1):
        raise _problem(text, f"gives {function} the wrong arguments: it takes {'two or more' if several else 'one'}")


def _problem(text: str, message: str) -> ModelProblem:
    shown = text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"
    return ModelProblem(f'formula "{shown}"', [Problem("", message)])
