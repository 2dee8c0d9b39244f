"""Conversions between the coded levels of factors, the values that they set, and their labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from routecast.errors import RoutecastError
from routecast.experiment.model import Factor, FileValue, Level
from routecast.quantity.amount import amount_of, between, whole_between
from routecast.quantity.toml_file import format_value

__all__ = ["coded_of", "label_for", "label_of", "level_at", "lowest_number", "rounded"]


_MAX_LABEL_LETTERS = 40
_CODED_TOLERANCE = 1e-9
_MAX_CODED = 100.0
"""Coded levels beyond this are mistakes: the point is fifty times as far away as the levels are from each other."""


def level_at(factor: Factor, coded: float) -> Level:
    """Return the level at a coded value: a level of the factor, or a value between or beyond the levels of a quantity.

    Raises RoutecastError: the factor is not a quantity and has no such level.
    """
    for level in factor.levels:
        if abs(level.coded - coded) < _CODED_TOLERANCE:
            return level
    if not factor.is_quantity:
        levels = ", ".join(f'{level.coded:g} ("{level.label}")' for level in factor.levels)
        raise RoutecastError(f'factor "{factor.name}" has no level at {coded:g}: there are {levels}')
    low, high = factor.levels[0].overrides, factor.levels[-1].overrides
    ends = tuple((path, value, high[path]) for path, value in low.items())
    return _level_between(ends, float(coded), is_log=factor.is_log, is_whole=factor.is_whole)


@lru_cache(maxsize=65536)
def _level_between(
    ends: tuple[tuple[str, FileValue, FileValue], ...], coded: float, *, is_log: bool, is_whole: bool
) -> Level:
    """Return a level of a quantity; ``ends``: each path with its lowest and highest value."""
    overrides: dict[str, FileValue] = {}
    coded_level = coded
    for path, low, high in ends:
        first, last = amount_of(low), amount_of(high)
        assert first is not None  # every path of a quantity has amounts
        assert last is not None
        overrides[path], coded_level = between(first, last, coded, is_log=is_log, is_whole=is_whole)
    return Level(coded=coded_level, label=label_for(next(iter(overrides.values()))), overrides=overrides)


def rounded(factor: Factor, coded_levels: Sequence[float]) -> list[float]:
    """Return the coded levels; for a quantity of whole numbers those of the nearest whole numbers."""
    if not factor.is_whole:
        return list(coded_levels)
    # A value has the coded level of its last path, as in :func:`level_at`.
    first, last = (amount_of(list(factor.levels[end].overrides.values())[-1]) for end in (0, -1))
    assert first is not None  # every path of a quantity has amounts
    assert last is not None
    if first.number == last.in_unit(first.unit):
        return [level_at(factor, coded).coded for coded in coded_levels]
    nearest, levels = whole_between(first, last, is_log=factor.is_log), [level.coded for level in factor.levels]

    def level_of(coded: float) -> float:
        for level in levels:
            if abs(level - coded) < _CODED_TOLERANCE:
                return level
        return nearest(coded)[1]

    return list(map(level_of, coded_levels))


def lowest_number(factor: Factor, coded: float) -> float:
    """Return the number of a quantity at a coded level, in the unit of the file; of several paths the lowest."""
    amounts = [amount_of(value) for value in level_at(factor, coded).overrides.values()]
    return min(amount.number for amount in amounts if amount is not None)


def coded_of(factor: Factor, value: object) -> float:
    """Return the coded level of a value in a file: the label or value of a level, or any value of a quantity.

    Raises ValueError: the factor has no such level.
    """
    for level in factor.levels:
        if value == level.label or all(value == override for override in level.overrides.values()):
            return level.coded
    amount = amount_of(value)
    first, last = (amount_of(next(iter(factor.levels[end].overrides.values()))) for end in (0, -1))
    if factor.is_quantity and amount and first and last and amount.dimension == first.dimension:
        number, low, high = amount.in_unit(first.unit), first.number, last.in_unit(first.unit)
        if factor.is_log and number > 0.0:
            number, low, high = math.log(number), math.log(low), math.log(high)
        coded = 2.0 * (number - low) / (high - low) - 1.0
        if abs(coded) <= _MAX_CODED and not (factor.is_log and amount.number <= 0.0):
            return coded
        ends = f"{factor.levels[0].label} and {factor.levels[-1].label}"
        raise ValueError(f"got {format_value(value)}: it is too far from the levels {ends}")
    levels = ", ".join(f'"{level.label}"' for level in factor.levels)
    raise ValueError(f"got {format_value(value)}: levels are {levels}")


def label_of(factor: Factor, coded: float) -> str:
    """Return the label of a level, or of a value between levels."""
    for level in factor.levels:
        if abs(level.coded - coded) < _CODED_TOLERANCE:
            return level.label
    if factor.is_quantity and all(level.overrides for level in factor.levels):
        return level_at(factor, coded).label
    return f"{coded:+.3g}"


def label_for(value: object) -> str:
    """Return the label of a value whose level has no label in the file."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        text = ", ".join(f"{key} = {label_for(entry)}" for key, entry in value.items())
    elif isinstance(value, list | tuple):
        text = ", ".join(label_for(entry) for entry in value)
    elif isinstance(value, float):
        text = f"{value:.6g}"
    else:
        amount = amount_of(value)
        text = f"{amount.number:.6g} {amount.unit}" if amount and amount.unit else str(value)
    return text if len(text) <= _MAX_LABEL_LETTERS else text[: _MAX_LABEL_LETTERS - 1] + "…"
