"""Fields of files that hold formulas and costs of memory."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from routecast import quantity
from routecast.errors import ModelProblem, QuantityProblem
from routecast.hardware.formula import Formula
from routecast.quantity.fields import parsed_by, text_schema
from routecast.quantity.toml_file import shown

__all__ = ["Cycles", "FormulaText", "LineCost"]


_WANTED = 'a number or a formula is wanted, such as 12 or "5 * ceil(b/8)"'


def _formula(value: Any) -> Formula:
    if isinstance(value, Formula):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = repr(value)
    try:
        if not isinstance(value, str):
            raise ModelProblem(shown(value), [])
        formula = Formula(value)
        if not formula.names:
            formula.evaluate({})
    except ModelProblem as problem:
        faults = "; ".join(str(one) for one in problem.problems) or _WANTED
        message = f"got {shown(value)}: {faults}"
        raise PydanticCustomError("value", "{message}", {"message": message}) from None
    return formula


def _line_cost(text: str) -> tuple[float, float]:
    parts = text.split(" + ") if isinstance(text, str) else [text]
    if len(parts) > 2:
        what = f'got {shown(text)}: one cost in cycles, one as a time, or both: "3 cycles + 60 ns"'
        raise QuantityProblem(shown(text), what)
    costs = [quantity.parse_cost(part) for part in parts]
    return sum(cost[0] for cost in costs), sum(cost[1] for cost in costs)


FormulaText = Annotated[
    Formula,
    BeforeValidator(_formula),
    WithJsonSchema(
        {
            "type": ["number", "string"],
            "description": "A number, or arithmetic over parameters",
            "examples": [6, "5 * ceil(b/8)"],
        }
    ),
]
LineCost = Annotated[
    tuple[float, float],
    parsed_by(_line_cost),
    text_schema("cycles, s, or both", "12 cycles", "80 ns", "3 cycles + 60 ns"),
]
Cycles = Annotated[float, parsed_by(quantity.parse_cycles), text_schema("cycles, >= 0", "120 cycles")]
