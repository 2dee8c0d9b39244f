"""From what a file says about the levels of a factor to coded levels."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_args

from routecast.errors import ModelProblem, Problem
from routecast.experiment.factors import label_for
from routecast.experiment.file.document import FactorTable
from routecast.experiment.model import Factor, Level, Plain
from routecast.experiment.quantities import Amount, amount_of, coded_levels
from routecast.quantity.toml_file import shown

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["factor_of"]


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
            f"got {label_for(value)}: holds a date or a time of day, which nothing here is: write a text"
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
        return label or label_for(value.get("value", inner)), inner
    if not paths:
        if not isinstance(value, dict) or not value:
            raise ValueError(
                f"got {shown(value)}: the factor has no path, so write {{ label = …, set = {{ path = value }} }}"
            )
        return label_for(value), value
    return label_for(value), dict.fromkeys(paths, value)


def _has_time(value: object) -> bool:
    """Return whether a value holds one of TOML's dates and times, which neither files nor summaries take."""
    if isinstance(value, dict):
        return any(map(_has_time, value.values()))
    if isinstance(value, list):
        return any(map(_has_time, value))
    return isinstance(value, datetime.date | datetime.time)


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
