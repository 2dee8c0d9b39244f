"""Factors: from what a file says about levels to coded levels, and from a coded level to new values by path."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_args

from routecast.errors import ModelProblem, Problem, RoutecastError
from routecast.experiment.model import Factor, Level, Plain
from routecast.experiment.quantities import Amount, amount_of, between, coded_levels
from routecast.quantity.toml_file import shown

if TYPE_CHECKING:
    from pydantic import BaseModel

    from routecast.experiment.file.document import FactorTable

__all__ = ["coded_of", "factor_of", "level_at", "lowest_of", "settled"]

_SHORT = 40
_SAME = 1e-9
_FURTHEST = 100.0
"""Coded levels beyond it are mistakes: a point stands fifty times as far away as the levels are apart."""


def factor_of(letter: str, table: FactorTable, place: str, fields: type[BaseModel] | None) -> Factor:
    """Return the factor of a table of the file.

    Parameters
    ----------
    letter : str
    table : FactorTable
    place : str
        Of the table, for messages: ``"factor[0]"``.
    fields : pydantic model or None
        What the varied file may say; decides where only whole numbers make sense.

    Raises
    ------
    routecast.errors.ModelProblem
        No levels can be made of it; all faults with their places.
    """
    problems = _contradictions(table, place)
    if problems:
        raise ModelProblem("factor", problems)
    paths = tuple(dict.fromkeys(([table.path] if table.path else []) + list(table.paths)))
    values = table.between or table.levels
    levels: list[tuple[str, Mapping[str, Plain]]] = []
    key = "between" if table.between else "levels"
    for number, value in enumerate(values):
        try:
            levels.append(_level(value, paths))
        except ValueError as wrong:
            problems.append(Problem(f"{place}.{key}[{number}]", str(wrong)))
    problems += _repeated(levels, f"{place}.{key}") if not problems else []
    if problems:
        raise ModelProblem("factor", problems)
    amounts = _amounts(levels)
    has_labels = any(isinstance(value, dict) and "label" in value for value in values)
    is_quantity = amounts is not None and not has_labels if table.quantity is None else table.quantity
    if table.between or table.log:
        is_quantity = True
    if not is_quantity or amounts is None:
        if is_quantity:
            what = (
                f"{shown(values[0])} … {shown(values[-1])}: are no quantities of one kind: nothing is between"
            )
            raise ModelProblem("factor", [Problem(f"{place}.{key}", what)])
        step = 2.0 / (len(levels) - 1)
        coded = [min(-1.0 + step * number, 1.0) for number in range(len(levels))]
    else:
        levels, amounts = _in_order(levels, amounts)
        if table.log and any(one.number <= 0.0 for one in amounts):
            raise ModelProblem("factor", [Problem(f"{place}.log", "needs levels > 0: logarithms are taken")])
        coded = coded_levels(amounts, is_log=table.log)
    return Factor(
        letter=letter,
        name=table.name,
        levels=tuple(
            Level(coded=at, label=label, overrides=overrides)
            for at, (label, overrides) in zip(coded, levels, strict=True)
        ),
        is_quantity=is_quantity,
        is_log=is_quantity and table.log,
        is_whole=is_quantity and _is_whole(levels, fields),
    )


def level_at(factor: Factor, coded: float) -> Level:
    """Return the level at a coded value: one of the factor's, or of a quantity what lies between or beyond them.

    Raises
    ------
    routecast.errors.RoutecastError
        The factor is no quantity and has no such level.
    """
    for level in factor.levels:
        if abs(level.coded - coded) < _SAME:
            return level
    if not factor.is_quantity:
        known = ", ".join(f'{one.coded:g} ("{one.label}")' for one in factor.levels)
        raise RoutecastError(f'factor "{factor.name}" has no level at {coded:g}: there are {known}')
    low, high = factor.levels[0].overrides, factor.levels[-1].overrides
    overrides: dict[str, Plain] = {}
    at = coded
    for path, value in low.items():
        first, last = amount_of(value), amount_of(high[path])
        assert first is not None  # a factor of quantities has them at every path
        assert last is not None
        overrides[path], at = between(first, last, coded, is_log=factor.is_log, is_whole=factor.is_whole)
    return Level(coded=at, label=_label(next(iter(overrides.values()))), overrides=overrides)


def settled(factor: Factor, coded: float) -> float:
    """Return the coded level that is tried in truth where ``coded`` is wanted: whole numbers are rounded to."""
    return level_at(factor, coded).coded if factor.is_whole else coded


def lowest_of(factor: Factor, coded: float) -> float:
    """Return the number that a quantity has at a coded level, in whatever unit; the lowest of several paths."""
    amounts = [amount_of(value) for value in level_at(factor, coded).overrides.values()]
    return min(one.number for one in amounts if one is not None)


def coded_of(factor: Factor, value: object) -> float:
    """Return the coded level of a value as a file says it: a level's label or value, or any value of a quantity.

    Raises
    ------
    ValueError
        The factor has no such level.
    """
    for level in factor.levels:
        if value == level.label or all(value == one for one in level.overrides.values()):
            return level.coded
    amount = amount_of(value)
    first, last = (amount_of(next(iter(factor.levels[at].overrides.values()))) for at in (0, -1))
    if factor.is_quantity and amount and first and last and amount.dimension == first.dimension:
        number, low, high = amount.in_unit(first.unit), first.number, last.in_unit(first.unit)
        if factor.is_log and number > 0.0:
            number, low, high = math.log(number), math.log(low), math.log(high)
        coded = 2.0 * (number - low) / (high - low) - 1.0
        if abs(coded) <= _FURTHEST and not (factor.is_log and amount.number <= 0.0):
            return coded
        ends = f"{factor.levels[0].label} and {factor.levels[-1].label}"
        raise ValueError(f"got {shown(value)}: lies too far from the levels {ends}")
    known = ", ".join(f'"{level.label}"' for level in factor.levels)
    raise ValueError(f"got {shown(value)}: levels are {known}")


def _contradictions(table: FactorTable, place: str) -> list[Problem]:
    problems = []
    if table.levels and table.between:
        problems.append(Problem(place, "has levels and between: give one of them"))
    elif table.between and len(table.between) != 2:
        problems.append(
            Problem(f"{place}.between", f"has {len(table.between)} values: give the least and the greatest")
        )
    elif not table.between and len(table.levels) < 2:
        count = "no level" if not table.levels else "one level"
        problems.append(Problem(f"{place}.levels", f"has {count}: nothing varies, give two or more"))
    if table.between and not (table.path or table.paths):
        problems.append(Problem(f"{place}.path", "is missing: say where the value stands"))
    return problems


def _level(value: Any, paths: tuple[str, ...]) -> tuple[str, Mapping[str, Plain]]:
    """Return label and overrides of a level as the file says it."""
    if _has_time(value):
        raise ValueError(
            f"got {_label(value)}: holds a date or a time of day, which nothing here is: write a text"
        )
    if (
        isinstance(value, dict)
        and ("set" in value or "value" in value)
        and value.keys() <= {"label", "set", "value"}
    ):
        inner = dict(value.get("set", {})) if isinstance(value.get("set", {}), dict) else None
        if inner is None:
            raise ValueError("set is no table: write set = { path = value }")
        if "value" in value:
            if not paths:
                raise ValueError("has a value but the factor has no path: write set = { path = value }")
            inner = {**dict.fromkeys(paths, value["value"]), **inner}
        label = value.get("label", "")
        if not isinstance(label, str):
            raise ValueError(f"label is {shown(label)}: write a text")
        return label or _label(value.get("value", inner)), inner
    if not paths:
        if not isinstance(value, dict) or not value:
            raise ValueError(
                f"got {shown(value)}: the factor has no path, so write {{ label = …, set = {{ path = value }} }}"
            )
        return _label(value), value
    return _label(value), dict.fromkeys(paths, value)


def _has_time(value: object) -> bool:
    """Return whether a value holds one of TOML's dates and times, which neither files nor summaries take."""
    if isinstance(value, dict):
        return any(map(_has_time, value.values()))
    if isinstance(value, list):
        return any(map(_has_time, value))
    return isinstance(value, datetime.date | datetime.time)


def _label(value: object) -> str:
    """Return what figures call a level that has no label of its own."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        text = ", ".join(f"{key} = {_label(one)}" for key, one in value.items())
    elif isinstance(value, list | tuple):
        text = ", ".join(_label(one) for one in value)
    elif isinstance(value, float):
        text = f"{value:.6g}"
    else:
        amount = amount_of(value)
        text = f"{amount.number:.6g} {amount.unit}" if amount and amount.unit else str(value)
    return text if len(text) <= _SHORT else text[: _SHORT - 1] + "…"


def _repeated(levels: list[tuple[str, Mapping[str, Plain]]], place: str) -> list[Problem]:
    problems = []
    for number, (label, overrides) in enumerate(levels):
        before = levels[:number]
        if any(overrides == other for _, other in before):
            problems.append(
                Problem(f"{place}[{number}]", f'"{label}" comes twice: levels differ from each other')
            )
        elif any(label == other for other, _ in before):
            problems.append(
                Problem(f"{place}[{number}]", f'"{label}" is the label of two levels: give them others')
            )
    return problems


def _amounts(levels: list[tuple[str, Mapping[str, Plain]]]) -> list[Amount] | None:
    """Return the quantity of each level where each sets the same paths to quantities of one kind, else None.

    Several paths of one level have the same value, or their own, each going from its first to its last: then levels in
    between cannot be placed by one of them, and there must be two.
    """
    first = levels[0][1]
    if any(overrides.keys() != first.keys() for _, overrides in levels):
        return None
    found: list[list[Amount]] = []
    for _, overrides in levels:
        amounts = [amount_of(value) for value in overrides.values()]
        known = [one for one in amounts if one is not None]
        if not known or len(known) < len(amounts):
            return None
        found.append(known)
    if any(one.dimension != at.dimension for row in found for one, at in zip(row, found[0], strict=True)):
        return None
    if any(
        len({one.in_unit(row[0].unit) if one.dimension == row[0].dimension else None for one in row}) > 1
        for row in found
    ):
        return [row[0] for row in found] if len(found) == 2 else None
    return [row[0] for row in found]


def _in_order(
    levels: list[tuple[str, Mapping[str, Plain]]], amounts: list[Amount]
) -> tuple[list[tuple[str, Mapping[str, Plain]]], list[Amount]]:
    """Keep levels that rise or fall throughout as the file has them; put others into rising order."""
    unit = amounts[0].unit
    numbers = [one.in_unit(unit) for one in amounts]
    if numbers in (sorted(numbers), sorted(numbers, reverse=True)):
        return levels, amounts
    order = sorted(range(len(levels)), key=numbers.__getitem__)
    return [levels[number] for number in order], [amounts[number] for number in order]


def _is_whole(levels: list[tuple[str, Mapping[str, Plain]]], fields: type[BaseModel] | None) -> bool:
    """Return whether a path leads to a field of whole numbers; where no field is known, whether the levels are such."""
    from routecast.load.frames import FrameMix
    from routecast.router.variants import field_of

    for path in levels[0][1]:
        field = field_of(fields, path) if fields is not None else None
        if field is None:
            if all(isinstance(overrides[path], int) for _, overrides in levels):
                return True
        elif {int, FrameMix} & _kinds(field.annotation):
            return True
    return False


def _kinds(annotation: object) -> set[object]:
    """Return the types that a field may have, its wrappings taken off."""
    inner = get_args(annotation)
    return (
        {annotation}
        if not inner
        else {kind for one in inner for kind in _kinds(one) if isinstance(kind, type)}
    )
