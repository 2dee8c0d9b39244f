"""Files that people write: TOML, checked by pydantic models, every fault at once and each with its place."""

from __future__ import annotations

import re
import tomllib
import types
import typing
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from routecast.errors import FileProblem, Problem
from routecast.quantity.did_you_mean import did_you_mean

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic.fields import FieldInfo

__all__ = ["fields_at", "names_own_keys", "parse_toml", "place_of", "shown", "validated"]

_SHOWN_CHARACTERS = 60
_LONGEST_BITS = 4096

_IN_TOML = {
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "must be a table: { key = value, … }"),
    **dict.fromkeys(("list_type", "tuple_type"), "must be a list: [value, …]"),
    "string_type": 'must be a text: "…"',
    **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "must be a whole number"),
}
"""What pydantic says in Python's words, by the kind of its fault."""

_Model = TypeVar("_Model", bound="BaseModel")


def parse_toml(text: str, subject: str) -> dict[str, Any]:
    """Return what a TOML text says; ``subject`` is what messages call it.

    Raises
    ------
    routecast.errors.FileProblem
        The text is no TOML.
    """
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as problem:
        message = str(problem) if isinstance(problem, ValueError) else "is nested too deeply"
        raise FileProblem(subject, [Problem("", f"is no TOML: {message}")]) from problem


def validated(model: type[_Model], data: Mapping[str, Any], subject: str) -> _Model:
    """Return the model that the data of a file makes.

    Raises
    ------
    routecast.errors.FileProblem
        The data is not as the model says; all faults with their places.
    """
    from pydantic import ValidationError

    try:
        return model.model_validate(data)
    except ValidationError as problem:
        raise FileProblem(subject, _problems(problem, model)) from problem
    except RecursionError as problem:
        raise FileProblem(subject, [Problem("", "is nested too deeply")]) from problem


def place_of(location: Sequence[int | str]) -> str:
    """Write a place in a file.

    Examples
    --------
    >>> place_of(("task", 2, "service", "per_byte"))
    'task[2].service.per_byte'
    """
    place = ""
    for step in location:
        place += f"[{step}]" if isinstance(step, int) else f"{'.' if place else ''}{step}"
    return place


def shown(value: object) -> str:
    """Write a wrong value for a message as a file would, not longer than a line.

    Examples
    --------
    >>> shown("two"), shown(True), shown({"count": 2})
    ('"two"', 'true', 'a table')
    """
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list | tuple) and not _is_short(value):  # all of a file may be in it
        return f"a list of {len(value)}"
    if isinstance(value, str):
        text = f'"{value}"'
    elif isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, int) and value.bit_length() > _LONGEST_BITS:  # which Python does not write
        text = f"a number of {value.bit_length()} bits"
    else:
        text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"


def _is_short(values: Sequence[object]) -> bool:
    if len(values) > _SHOWN_CHARACTERS:
        return False
    return all(
        isinstance(one, str | float) or (isinstance(one, int) and one.bit_length() <= _LONGEST_BITS) for one in values
    )


def _problems(error: ValidationError, model: type[BaseModel]) -> list[Problem]:
    problems = []
    faults = error.errors(include_url=False, include_context=True)
    for fault in faults:
        location, kind = fault["loc"], fault["type"]
        if kind == "too_short" and any(one["loc"][: len(location)] == location and one is not fault for one in faults):
            continue  # pydantic counts only the entries that are right
        if kind == "extra_forbidden":
            known = fields_at(model, location[:-1])
            message = f"is no key that is known here: {did_you_mean(str(location[-1]), known)}"
        elif kind == "missing":
            field = fields_at(model, location[:-1]).get(str(location[-1]))
            message = f"is missing: {(field.description if field else None) or 'give it'}"
        elif kind == "literal_error":
            expected = re.findall(r"'([^']*)'", str(fault.get("ctx", {}).get("expected", "")))
            message = f"got {shown(fault['input'])}: {did_you_mean(str(fault['input']), expected)}"
        elif kind in {"quantity", "value"}:
            message = fault["msg"]
        elif kind == "value_error":  # of a whole table: what it says is enough
            message = str(fault["ctx"]["error"])
        elif kind in {"list_type", "tuple_type"} and isinstance(fault["input"], dict):
            last = location[-1] if location else ""
            message = f"is one table, but a list is wanted: write [[{last}]] for [{last}], or [{{ … }}] in a line"
        else:
            said = _IN_TOML.get(kind) or f"{fault['msg'][:1].lower()}{fault['msg'][1:]}"
            message = f"got {shown(fault['input'])}: {said}"
        problems.append(Problem(place_of(location), message))
    return problems


def fields_at(model: type[BaseModel], location: Sequence[int | str]) -> dict[str, FieldInfo]:
    """Return the keys, as files write them, that the table at a place may have; none where no table stands."""
    here: object = model
    for step in location:
        here = _inside(here, step)
    owner = _model_in(here)
    return {field.alias or name: field for name, field in owner.model_fields.items()} if owner else {}


def names_own_keys(model: type[BaseModel], location: Sequence[int | str]) -> bool:
    """Return whether the keys of the table at a place are, or may be, names that its writer chooses."""
    here: object = model
    for step in location:
        here = _inside(here, step)
    owner = _model_in(here)
    if owner is not None and owner.model_config.get("extra") == "allow":
        return True
    return dict in {typing.get_origin(one) for one in (here, *typing.get_args(here))}


def _inside(annotation: object, step: int | str) -> object:
    """Return the annotation of what stands at a key or index of a value of ``annotation``."""
    model = _model_in(annotation) if isinstance(step, str) else None
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated and any(getattr(one, "tag", None) == step for one in arguments[1:]):
        return arguments[0]  # pydantic names the member of a tagged union in the path
    if origin in {typing.Union, types.UnionType, typing.Annotated}:
        inner = (_inside(argument, step) for argument in arguments if argument is not type(None))
        return next((one for one in inner if one is not None), None)
    if origin in {list, tuple} and isinstance(step, int):
        return arguments[0]
    if origin is dict and isinstance(step, str):
        return arguments[1]
    if model is None:
        return None
    return next((f.annotation for name, f in model.model_fields.items() if step in (name, f.alias)), None)


def _model_in(annotation: object) -> type[BaseModel] | None:
    from pydantic import BaseModel

    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if typing.get_origin(annotation) in {typing.Union, types.UnionType, typing.Annotated}:
        found = (_model_in(argument) for argument in typing.get_args(annotation))
        return next((one for one in found if one is not None), None)
    return None
