"""Kinds of values that files of networks on chip hold: loads, lengths of packets, names of routings."""

from __future__ import annotations

import math
import re
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, Field, WithJsonSchema

from routecast.errors import QuantityProblem
from routecast.quantity.fields import Parsed

__all__ = [
    "AllocationName",
    "Lengths",
    "Loads",
    "Policy",
    "Simulated",
    "SimulatedOnes",
    "parse_lengths",
    "parse_loads",
]

_RANGE = re.compile(r"\s*(\d+)\s*-\s*(\d+)\s*")
_MOST_FLITS = 10_000

Policy = Literal["xy", "yx", "o1turn", "2p_es", "2p_rs", "4p_es", "romm", "valiant", "adaptive"]
Simulated = Literal[
    "xy",
    "yx",
    "o1turn",
    "2p_es",
    "2p_rs",
    "4p_es",
    "romm",
    "valiant",
    "adaptive",
    "west_first",
    "north_last",
    "negative_first",
    "odd_even",
]
AllocationName = Literal["balance", "mini", "four_phase", "search"]


def parse_loads(value: object) -> tuple[float, ...]:
    """Read one load or several: ``0.5``, ``[0.2, 0.5]`` or ``"0.2, 0.5"``.

    Raises
    ------
    QuantityProblem
        It is none of these, or a load is not above 0.
    """
    if isinstance(value, str):
        entries: list[object] = [_number(part) for part in value.split(",")]
    else:
        entries = list(value) if isinstance(value, list | tuple) else [value]
    loads = []
    for entry in entries:
        is_number = isinstance(entry, int | float) and not isinstance(entry, bool)
        if not (is_number and 0.0 < float(str(entry)) < math.inf):
            raise QuantityProblem(str(value), f"got {entry!r}: a load is a number above 0, such as 0.5")
        loads.append(float(str(entry)))
    if not loads:
        raise QuantityProblem(str(value), "there is no load: give one above 0")
    return tuple(loads)


def _number(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text.strip()


def parse_lengths(value: object) -> tuple[int, ...]:
    """Read the lengths of packets, in flits, all equally likely: ``8``, ``"5-10"`` or ``[1, 5]``.

    Raises
    ------
    QuantityProblem
        It is none of these, or a length is no whole number from 1.
    """
    entries: list[object] = list(value) if isinstance(value, list | tuple) else [value]
    if isinstance(value, str):
        match = _RANGE.fullmatch(value)
        entries = [*range(int(match[1]), min(int(match[2]), _MOST_FLITS + 1) + 1)] if match else [value]
    lengths = [one for one in entries if isinstance(one, int) and not isinstance(one, bool)]
    if not entries or len(lengths) < len(entries) or not all(1 <= one <= _MOST_FLITS for one in lengths):
        what = 'lengths are whole flits from 1: 8, "5-10" (each as likely), or [1, 5]'
        raise QuantityProblem(str(value), f"got {value!r}: {what}")
    return tuple(lengths)


def _one_or_more(value: object) -> object:
    return (value,) if isinstance(value, str) else value


_ONE_OR_MORE = {
    "anyOf": [
        {"type": "number", "exclusiveMinimum": 0},
        {"type": "array", "items": {"type": "number", "exclusiveMinimum": 0}, "minItems": 1},
    ]
}
Loads = Annotated[tuple[float, ...], Parsed(parse_loads), WithJsonSchema(_ONE_OR_MORE)]
Lengths = Annotated[
    tuple[int, ...],
    Parsed(parse_lengths),
    WithJsonSchema(
        {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "array", "items": {"type": "integer"}}]}
    ),
]
SimulatedOnes = Annotated[
    tuple[Simulated, ...],
    BeforeValidator(_one_or_more),
    Field(min_length=1),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": list(get_args(Simulated))},
                {"type": "array", "items": {"enum": list(get_args(Simulated))}, "minItems": 1},
            ]
        }
    ),
]
