"""Reading of TOML files with pydantic models; all faults are reported together, each with its place."""

from __future__ import annotations

import dataclasses
import json
import re
import tomllib
import types
import typing
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from routecast.errors import FileProblem, Problem
from routecast.quantity.did_you_mean import did_you_mean

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic.fields import FieldInfo

    from routecast.quantity.schema import KnownKey, Range

__all__ = ["fields_at", "format_value", "names_own_keys", "parse_toml", "place_of", "toml_string", "validated"]

_SHOWN_CHARACTERS = 60
_MAX_WRITTEN_BITS = 4096

_TOML_MESSAGES = {
    **dict.fromkeys(
        ("dict_type", "mapping_type", "model_type", "model_attributes_type", "dataclass_type"),
        "must be a table: { key = value, … }",
    ),
    **dict.fromkeys(("list_type", "tuple_type"), "must be a list: [value, …]"),
    "string_type": 'must be a text: "…"',
    **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
}
"""Messages in the terms of TOML for faults that pydantic reports in the terms of Python, by kind of fault."""

_OUT_OF_RANGE = {
    "greater_than": ("gt", ">"),
    "greater_than_equal": ("ge", ">="),
    "less_than": ("lt", "<"),
    "less_than_equal": ("le", "<="),
}
"""By kind of fault, pydantic's name of the limit and its sign."""
_UNION_MEMBER = re.compile(r"[\[(]|^(?:str|int|float|bool|constrained-\w+|[A-Z]\w+)$")
_Model = TypeVar("_Model")


def parse_toml(text: str, subject: str) -> dict[str, Any]:
    """Return the data of a TOML text; ``subject`` is its name in messages.

    Raises FileProblem: the text is not TOML.
    """
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as problem:
        message = str(problem) if isinstance(problem, ValueError) else "is nested too deeply"
        raise FileProblem(subject, [Problem("", f"is no TOML: {message}")]) from problem


def toml_string(text: str) -> str:
    r"""Return a text as a TOML string: a JSON string with DEL escaped and lone surrogates replaced.

    Examples
    --------
    >>> print(toml_string('a "b"\x7f'))
    "a \"b\"\u007f"
    """
    text = text.encode("utf-8", "replace").decode()
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def validated(model: type[_Model], data: Mapping[str, Any], subject: str) -> _Model:
    """Read the data of a file as a value of type ``model``.

    Raises FileProblem, with all faults and their places, if the data does not match the type.
    """
    from pydantic import ValidationError

    from routecast.quantity.schema import adapter

    try:
        return cast("_Model", adapter(model).validate_python(data))
    except ValidationError as problem:
        raise FileProblem(subject, _problems(problem, model, data)) from problem
    except RecursionError as problem:
        raise FileProblem(subject, [Problem("", "is nested too deeply")]) from problem


def place_of(location: Sequence[int | str]) -> str:
    """Write the path of a place in a file.

    Examples
    --------
    >>> place_of(("task", 2, "service", "per_byte"))
    'task[2].service.per_byte'
    """
    place = ""
    for step in location:
        place += f"[{step}]" if isinstance(step, int) else f"{'.' if place else ''}{step}"
    return place


def format_value(value: object) -> str:
    """Write a wrong value for a message, in the notation of a file and shortened to one line.

    Examples
    --------
    >>> format_value("two"), format_value(True), format_value({"count": 2})
    ('"two"', 'true', 'a table')
    """
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list | tuple) and not _is_short(value):  # such a list may hold the whole file
        return f"a list of {len(value)}"
    if isinstance(value, str):
        text = f'"{value}"'
    elif isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, int) and value.bit_length() > _MAX_WRITTEN_BITS:  # Python refuses to print it
        text = f"a number of {value.bit_length()} bits"
    else:
        text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"


def _is_short(values: Sequence[object]) -> bool:
    if len(values) > _SHOWN_CHARACTERS:
        return False
    return all(
        isinstance(value, str | float) or (isinstance(value, int) and value.bit_length() <= _MAX_WRITTEN_BITS)
        for value in values
    )


def _problems(error: ValidationError, model: type, data: Mapping[str, Any]) -> list[Problem]:
    problems = []
    listed: set[str] = set()
    faults = error.errors(include_url=False, include_context=True)
    for fault in faults:
        location, kind = fault["loc"], fault["type"]
        if kind == "too_short" and any(
            other["loc"][: len(location)] == location and other is not fault for other in faults
        ):
            continue  # pydantic counts only the valid entries
        if kind in {"extra_forbidden", "unexpected_keyword_argument"}:
            known = fields_at(model, location[:-1])
            hint = did_you_mean(str(location[-1]), known)
            # List the known keys only once.
            message = "is no key that is known here" + (" either" if hint in listed else f": {hint}")
            listed |= {hint} if hint.startswith("known") else set()
        elif kind == "missing":
            key = fields_at(model, location[:-1]).get(str(location[-1]))
            message = f"is missing: {key.meaning if key and key.meaning else 'give it'}"
        elif kind == "literal_error":
            expected = re.findall(r"'([^']*)'", str(fault.get("ctx", {}).get("expected", "")))
            message = f"got {format_value(fault['input'])}: {did_you_mean(str(fault['input']), expected)}"
        elif kind in {"quantity", "value"}:
            message = fault["msg"]
        elif kind in _OUT_OF_RANGE:
            allowed = _range_at(model, location)
            message = allowed.problem(fault["input"]) if allowed else _out_of_range(fault, model)
        elif kind == "too_long":
            message = f"has {len(fault['input'])} entries: at most {fault['ctx']['max_length']}"
        elif kind == "too_short":
            message = f"has {len(fault['input']) or 'no'} entries: give at least {fault['ctx']['min_length']}"
        elif kind == "string_too_long":
            message = f"has {len(fault['input'])} characters: at most {fault['ctx']['max_length']}"
        elif kind == "value_error":  # a check of a whole table, whose message is complete
            message = str(fault["ctx"]["error"])
        elif kind in {"list_type", "tuple_type"} and isinstance(fault["input"], dict):
            last = location[-1] if location else ""
            message = f"is one table, but the key is a list: write [[{last}]] for [{last}], or [{{ … }}] in a line"
        else:
            text = _TOML_MESSAGES.get(kind) or f"{fault['msg'][:1].lower()}{fault['msg'][1:]}"
            message = f"got {format_value(fault['input'])}: {text}"
        problems.append(Problem(place_of(_in_file(location, data)), message))
    return list(dict.fromkeys(problems))  # two fields may be read from one key


def _out_of_range(fault: Mapping[str, Any], model: type) -> str:
    """Describe a number that is outside the range of a pydantic field; all limits of the field are named."""
    location = fault["loc"]
    fields = getattr(_table_in(_annotation_at(model, location[:-1])), "model_fields", {})
    field = next((field for name, field in fields.items() if location[-1] in (name, field.alias)), None)
    known = fields_at(model, location[:-1]).get(str(location[-1]))
    notes = [*(field.metadata if field else ()), *_notes_of(known.annotation if known else None)]
    limits = [
        f"{sign} {limit:.15g}"
        for name, sign in _OUT_OF_RANGE.values()
        for limit in [next((getattr(note, name) for note in notes if hasattr(note, name)), None)]
        if limit is not None
    ]
    name, sign = _OUT_OF_RANGE[fault["type"]]
    allowed = " and ".join(limits or [f"{sign} {fault['ctx'][name]:.15g}"])
    return f"got {format_value(fault['input'])}: allowed is a number {allowed}"


def _notes_of(annotation: object) -> list[object]:
    """Return the limits that pydantic keeps in the members of an annotation."""
    notes: list[object] = [annotation, *getattr(annotation, "metadata", ())]
    for member in typing.get_args(annotation):
        notes += _notes_of(member)
    return notes


def _in_file(location: Sequence[int | str], data: object) -> list[int | str]:
    """Leave out the members of unions, which pydantic writes into a path and a file does not have."""
    steps: list[int | str] = []
    for step in location:
        if isinstance(data, Mapping):
            is_there, data = step in data, data.get(step)
        elif isinstance(data, list | tuple) and isinstance(step, int):
            is_there, data = True, data[step] if step < len(data) else None
        else:
            is_there = False
        if is_there or not _UNION_MEMBER.search(str(step)):
            steps.append(step)
    return steps


def fields_at(model: type, location: Sequence[int | str]) -> dict[str, KnownKey]:
    """Return the keys that the table at a place of a file may have; empty if the place has no table."""
    return _keys_in(_annotation_at(model, location))


def _range_at(model: type, location: Sequence[int | str]) -> Range | None:
    from routecast.quantity.schema import range_of

    if not location or isinstance(location[-1], int):
        return range_of(_annotation_at(model, location))
    known = fields_at(model, location[:-1]).get(location[-1])
    return known.range if known is not None else None


def names_own_keys(model: type, location: Sequence[int | str]) -> bool:
    """Return whether the writer of a file may choose the keys of the table at a place."""
    annotation = _table_type(_annotation_at(model, location))
    owner = _table_in(annotation)
    if owner is not None and getattr(owner, "model_config", {}).get("extra") == "allow":
        return True
    return not {dict, Mapping}.isdisjoint(
        typing.get_origin(_table_type(argument)) for argument in (annotation, *typing.get_args(annotation))
    )


def _annotation_at(model: type, location: Sequence[int | str]) -> object:
    annotation: object = model
    for step in location:
        annotation = _inside(annotation, step)
    return annotation


def _inside(annotation: object, step: int | str) -> object:
    """Return the annotation of the value at a key or index of a value of ``annotation``."""
    annotation = _table_type(annotation)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated and any(getattr(argument, "tag", None) == step for argument in arguments[1:]):
        return arguments[0]  # pydantic names the member of a tagged union in the path
    for note in arguments[1:] if origin is typing.Annotated else ():
        if step in getattr(note, "kinds", {}):
            return note.kinds[step]
    if origin in {typing.Union, types.UnionType, typing.Annotated}:
        members = (_inside(argument, step) for argument in arguments if argument is not type(None))
        return next((member for member in members if member is not None), None)
    if origin in {list, tuple} and isinstance(step, int):
        return arguments[0]
    if origin in {dict, Mapping} and isinstance(step, str):
        return arguments[1]
    known = _keys_in(annotation).get(str(step))
    return known.annotation if known else None


def _keys_in(annotation: object) -> dict[str, KnownKey]:
    """Return the keys of the table that an annotation is or contains."""
    from routecast.quantity.schema import KnownKey, keys_of

    table = _table_in(annotation)
    if table is None:
        return {}
    if dataclasses.is_dataclass(table):
        return keys_of(table)
    fields: dict[str, FieldInfo] = table.model_fields
    return {field.alias or name: KnownKey(field.description or "", field.annotation) for name, field in fields.items()}


def _table_type(annotation: object) -> object:
    """Return the table type that :class:`~routecast.quantity.schema.Given` names, or else the annotation itself."""
    from routecast.quantity.schema import Given

    notes = typing.get_args(annotation)
    return next((note.of for note in notes if isinstance(note, Given) and note.of is not None), annotation)


def _table_in(annotation: object) -> Any:
    annotation = _table_type(annotation)
    if dataclasses.is_dataclass(annotation) or hasattr(annotation, "model_fields"):
        return annotation
    if typing.get_origin(annotation) in {typing.Union, types.UnionType, typing.Annotated}:
        tables = (_table_in(argument) for argument in typing.get_args(annotation))
        return next((table for table in tables if table is not None), None)
    return None
