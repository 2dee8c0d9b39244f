"""Values whose fields are declared once, with key in files, unit, range, meaning and default.

::

    @value
    class Activation:
        budget_frames: FrameCount = field("Most frames of a poll, frames", default=64)

The reader, which reports every fault with its place, the JSON Schema, the texts of messages and the check of values
that code makes (:func:`field_faults`) follow from the declaration. The key in a file lacks the suffix of the unit
(``budget``), because the value there has its unit; ``key`` names another key. Two fields of one key are read from the
same text. In code a value is a frozen dataclass, and nothing is checked when it is made.
"""

from __future__ import annotations

import dataclasses
import math
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache, partial
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from routecast.errors import ModelProblem, Problem
from routecast.quantity.did_you_mean import did_you_mean

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = [
    "Given",
    "Kinds",
    "KnownKey",
    "OrBase",
    "Range",
    "adapter",
    "extended",
    "faults_in",
    "field",
    "field_faults",
    "file_fields",
    "is_faulty",
    "key_of",
    "keys_of",
    "merged",
    "range_of",
    "schema_of",
    "value",
    "without_file_fields",
]

_SUFFIX = re.compile(r"_(?:bytes_per_s|bps|pps|frames|hz|cycles|(?<!cycles_)ratio|bytes|w|j|v|s)(?=[.\[]|$)")
_T = TypeVar("_T")
_MISSING = dataclasses.MISSING
_SECTION = re.compile(r"\n\n[A-Z]\w+\n-{3,}\n")


class Range(NamedTuple):
    """The numbers that a field may have: from ``least`` to ``most``, in ``unit``."""

    least: float = -math.inf
    most: float = math.inf
    is_open: bool = False
    """Whether ``least`` itself is not allowed."""
    is_whole: bool = False
    unit: str = ""

    def problem(self, got: object) -> str:
        """Describe a value that is outside the range."""
        from routecast.quantity.toml_file import shown

        if self.is_whole and (isinstance(got, bool) or not isinstance(got, int)):
            return f"got {shown(got)}: must be a whole number"
        is_number = self.unit and isinstance(got, int | float) and math.isfinite(self.most)
        return f"got {shown(got)}{f' {self.unit}' if is_number else ''}: allowed is {self}"

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        if math.isfinite(self.least) and math.isfinite(self.most):
            between = "more than {:.15g} and at most {:.15g}" if self.is_open else "{:.15g} to {:.15g}"
            return between.format(self.least, self.most) + unit
        number = f"a {'whole' if self.is_whole else 'finite'} number"
        if math.isfinite(self.least):
            return f"{number} {'>' if self.is_open else '>='} {self.least:.15g}"
        return f"at most {self.most:.15g}{unit}" if math.isfinite(self.most) else number


def field(
    meaning: str,
    *,
    default: Any = dataclasses.MISSING,
    key: str = "",
    default_factory: Callable[[], Any] | None = None,
    only_where: Mapping[str, Collection[str]] | None = None,
    within: tuple[float, float] | None = None,
    **limits: float,
) -> Any:
    """Declare a field: its meaning with the unit at the end, its default, and its key in files if that differs.

    ``only_where`` names another field and the choices of it under which this field may differ from its default.
    ``within`` is the range of a number, in the unit of the field's name. Further ``limits`` are pydantic's: ``ge``,
    ``gt`` and ``le`` of a number, ``max_length`` of a list. They narrow the range of the type. The
    default is always allowed.
    """
    if within is not None:
        limits = {"ge": within[0], "le": within[1]} | limits
    metadata: dict[str, Any] = {"description": meaning, **limits} | ({"alias": key} if key else {})
    if only_where:
        metadata["only_where"] = only_where
    if bounds := _NUMBERS & limits.keys():
        of_text = Range(*_interval([{name: limits[name] for name in bounds}]))
        metadata["json_schema_extra"] = lambda schema: _describe_range(schema, meaning, of_text)
    if default_factory is not None:
        return dataclasses.field(default_factory=default_factory, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def _describe_range(schema: dict[str, Any], meaning: str, of_text: Range) -> None:
    """Write the range of a number that files give as a text into its description: JSON Schema has no word for it."""
    texts = [each for each in (schema, *schema.get("anyOf", ())) if each.get("type") == "string"]
    for text in texts:
        for name in _NUMBERS & text.keys():
            del text[name]
    if texts:
        schema["description"] = f"{meaning}; {of_text}"


def _write_conditions(schema: dict[str, Any], declared: type) -> None:
    """Write into the JSON Schema of a value which of its keys differ from their defaults under some choices only."""
    fields = {entry.name: entry for entry in dataclasses.fields(declared)}
    conditions = []
    for entry in fields.values():
        for other, choices in entry.metadata.get("only_where", {}).items():
            chosen: dict[str, Any] = {"properties": {_file_key(fields[other]): {"enum": [*choices]}}}
            if fields[other].default not in choices:
                chosen["required"] = [_file_key(fields[other])]
            conditions.append({"if": {"not": chosen}, "then": {"properties": {_file_key(entry): _only(entry.default)}}})
    if conditions:
        schema["allOf"] = conditions


def _only(default: Any) -> dict[str, Any]:
    """Return the JSON Schema of what a file may say of a default; a number with a unit is a text."""
    if default == ():
        return {"maxItems": 0}
    return {"pattern": r"^\s*0+(\.0*)?\s*\D*$"} if default == 0.0 else {"const": default}


_NUMBERS = {"ge", "gt", "le"}


def _interval(limits: Iterable[Mapping[str, float]]) -> tuple[float, float, bool]:
    """Return the least and the greatest value that several limits allow, and whether the least is excluded."""
    least, most, is_open = -math.inf, math.inf, False
    for each in limits:
        for name in ("ge", "gt"):
            if each.get(name, -math.inf) >= least and name in each:
                least, is_open = each[name], name == "gt"
        most = min(most, each.get("le", math.inf))
    return least, most, is_open


def range_of(annotation: Any, limits: Mapping[str, Any] | None = None) -> Range | None:
    """Return the range of a number by its type and its field's limits; None for other types."""
    notes = [{} if limits is None else limits]
    unit = ""
    while get_origin(annotation) in {Annotated, Union, UnionType}:
        annotation, *others = (part for part in get_args(annotation) if part is not type(None))
        notes += [note.limits for note in others if hasattr(note, "limits")]
        unit = next((note.unit for note in others if getattr(note, "unit", "")), unit)
    if annotation not in {int, float} or not any(_NUMBERS & each.keys() for each in notes):
        return None
    return Range(*_interval(notes), is_whole=annotation is int, unit=unit)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field, dataclasses.field))
def value(declared: type[_T]) -> type[_T]:
    """Make a frozen dataclass that files can give, key by key."""
    config = {
        "extra": "forbid",
        "arbitrary_types_allowed": True,
        "alias_generator": key_of,
        "json_schema_extra": _write_conditions,
    }
    declared.__pydantic_config__ = config  # type: ignore[attr-defined]  # where pydantic looks for it
    return dataclasses.dataclass(frozen=True, slots=True, kw_only=True)(declared)


def key_of(name: str) -> str:
    """Return the key of a field's name, or of a path, in files: without the suffixes of units.

    Examples
    --------
    >>> key_of("budget_frames"), key_of("name"), key_of("task[2].service.per_byte_s")
    ('budget', 'name', 'task[2].service.per_byte')
    """
    return _SUFFIX.sub("", name)


def _file_key(entry: dataclasses.Field[Any]) -> str:
    return cast("str", entry.metadata.get("alias", key_of(entry.name)))


class KnownKey(NamedTuple):
    """A key that a table of a file may have: what it means, the type of its value, and the range of a number."""

    meaning: str
    annotation: Any
    range: Range | None = None


def keys_of(declared: Any) -> dict[str, KnownKey]:
    """Return the keys of a value in files."""
    types = get_type_hints(declared, include_extras=True)
    return {
        _file_key(entry): KnownKey(
            entry.metadata.get("description", ""), types[entry.name], range_of(types[entry.name], entry.metadata)
        )
        for entry in dataclasses.fields(declared)
    }


class _Check(NamedTuple):
    """The test of a value against its declaration, and the report of its faults."""

    is_right: Callable[[Any], bool]
    report: Callable[[Any, str, list[Problem]], None]


def field_faults(made: Any, path: str = "") -> list[Problem]:
    """Return the fields of a value, and of the values in it, that are not as they are declared.

    Numbers are finite and in their range, choices are known, lists are not too long, and a field that only some kinds
    take has its default under the others. A path has the names of fields (``service.per_byte_s``); lists of values are
    called as in files (``task[2]``).
    """
    faults: list[Problem] = []
    if not _holds(_is_sound, made):
        _report_fields(made, path, faults)
    return faults


def faults_in(path: str, values: Iterable[Any]) -> list[Problem]:
    """Return :func:`field_faults` of several values of a list; parts that neighbours share are checked once."""
    faults: list[Problem] = []
    sound = None
    for index, made in enumerate(values):
        if _holds(partial(_is_sound, like=sound if type(sound) is type(made) else None), made):
            sound = made
        else:
            _report_fields(made, f"{path}[{index}]", faults)
    return faults


def is_faulty(faults: Iterable[Problem], *paths: str) -> bool:
    """Return whether one of the faults is at or below one of the paths."""
    return any(
        fault.place == path or fault.place.startswith((f"{path}.", f"{path}[")) for fault in faults for path in paths
    )


def _holds(is_right: Callable[[Any], bool], got: Any) -> bool:
    try:
        return is_right(got)
    except (TypeError, AttributeError):  # it has not the type that it should have
        return False


def _is_sound(made: Any, like: Any = None) -> bool:
    """Return whether the fields of a value are right; those that are identical to ``like``'s are."""
    checks, only_where = _checks(made.__class__)
    for name, _, is_right, _ in checks:
        got = getattr(made, name)
        if (like is None or got is not getattr(like, name)) and not is_right(got):
            return False
    return all(not _is_given_in_vain(made, *each) for each in only_where)


def _report_fields(made: Any, path: str, faults: list[Problem]) -> None:
    if not hasattr(made, "__dataclass_fields__"):
        faults.append(Problem(path, f"is of type {type(made).__name__}"))
        return
    checks, only_where = _checks(made.__class__)
    for name, step, is_right, report in checks:
        got = getattr(made, name)
        if not _holds(is_right, got):
            report(got, f"{path}.{step}" if path else step, faults)
    for name, default, other, choices in only_where:
        if _is_given_in_vain(made, name, default, other, choices):
            message = f"is given, but {other} {getattr(made, other)} does not use it: only {_either(choices)} does"
            faults.append(Problem(f"{path}.{name}" if path else name, message))


def _is_given_in_vain(made: Any, name: str, default: Any, other: str, choices: Collection[str]) -> bool:
    given = getattr(made, name)
    return given is not default and getattr(made, other) not in choices and given != default


_FieldCheck = tuple[str, str, Callable[[Any], bool], Callable[[Any, str, list[Problem]], None]]
_OnlyWhere = tuple[str, Any, str, Collection[str]]


@lru_cache
def _checks(declared: Any) -> tuple[tuple[_FieldCheck, ...], tuple[_OnlyWhere, ...]]:
    """Return the checks of the fields that can be wrong: name, last step of the path, test, report; and ``only_where``.

    Of a field with ``only_where`` name and default, and the other field with the choices under which it may be given.
    """
    types = get_type_hints(declared, include_extras=True)
    checks = []
    for entry in dataclasses.fields(declared):
        annotation = types[entry.name]
        check = _check_of(annotation, entry.metadata)
        if check is not None:
            is_right = check.is_right if entry.default is _MISSING else _or_same(check.is_right, entry.default)
            is_list = dataclasses.is_dataclass(next(iter(get_args(annotation)), None))
            step = entry.metadata.get("alias", entry.name) if is_list else entry.name
            checks.append((entry.name, step, is_right, check.report))
    only_where = (
        (entry.name, entry.default, other, choices)
        for entry in dataclasses.fields(declared)
        for other, choices in entry.metadata.get("only_where", {}).items()
    )
    return tuple(checks), tuple(only_where)


def _either(choices: Collection[str]) -> str:
    *others, last = choices
    return f"{', '.join(others)} or {last}" if others else last


def _or_same(is_right: Callable[[Any], bool], allowed: Any) -> Callable[[Any], bool]:
    return lambda got: got is allowed or is_right(got) or (type(got) is type(allowed) and got == allowed)


def _check_of(annotation: Any, limits: Mapping[str, Any]) -> _Check | None:
    """Return the check of a value by its type and its field's limits; None where every value is right."""
    inner = annotation
    while get_origin(inner) is Annotated:
        inner = get_args(inner)[0]
    origin, arguments = get_origin(inner), get_args(inner)
    if origin in {Union, UnionType}:
        kinds = [argument for argument in arguments if argument is not type(None)]
        check = _check_of(kinds[0], limits) if len(kinds) == 1 else None
        return check and check._replace(is_right=_or_same(check.is_right, None))
    if origin is Literal:
        return _Check(frozenset(arguments).__contains__, partial(_report_choice, arguments))
    if inner in {int, float}:
        allowed = range_of(annotation, limits) or Range(is_whole=inner is int)
        return _Check(
            _number_test(allowed), lambda got, path, faults: faults.append(Problem(path, allowed.problem(got)))
        )
    if dataclasses.is_dataclass(inner):
        return _Check(_is_sound, _report_fields)
    if origin is tuple:
        return _entries_check(_check_of(arguments[0], {}), limits.get("max_length", sys.maxsize))
    if origin is not None and issubclass(origin, Mapping):
        return _values_check(_check_of(arguments[1], {}))
    return None


def _report_choice(choices: Collection[str], got: Any, path: str, faults: list[Problem]) -> None:
    faults.append(Problem(path, f'got "{got}": {did_you_mean(str(got), choices)}'))


def _number_test(allowed: Range) -> Callable[[Any], bool]:
    least = math.nextafter(allowed.least, math.inf) if allowed.is_open else max(allowed.least, -sys.float_info.max)
    most = min(allowed.most, sys.float_info.max)
    if allowed.is_whole:
        return lambda got: type(got) is int and least <= got <= most
    return lambda got: least <= got <= most


def _entries_check(check: _Check | None, most: int) -> _Check:
    def is_right(got: Any) -> bool:
        return type(got) is tuple and len(got) <= most and (check is None or all(map(check.is_right, got)))

    def report(got: Any, path: str, faults: list[Problem]) -> None:
        if not isinstance(got, tuple):
            faults.append(Problem(path, f"is a {type(got).__name__}: give a tuple"))
            return
        if len(got) > most:
            faults.append(Problem(path, f"has {len(got)} entries: at most {most}"))
        for index, entry in enumerate(got):
            if check is not None and not _holds(check.is_right, entry):
                check.report(entry, f"{path}[{index}]", faults)

    return _Check(is_right, report)


def _values_check(check: _Check | None) -> _Check | None:
    if check is None:
        return None

    def report(got: Any, path: str, faults: list[Problem]) -> None:
        for key, each in got.items():
            if not _holds(check.is_right, each):
                check.report(each, f"{path}.{key}", faults)

    return _Check(lambda got: all(map(check.is_right, got.values())), report)


def extended(declared: type, fields: Iterable[tuple[str, Any, Any]]) -> type:
    """Return a value's type with further fields: ``(name, type, field)`` each."""
    config = {"__pydantic_config__": declared.__pydantic_config__, "__doc__": declared.__doc__}  # type: ignore[attr-defined]
    return dataclasses.make_dataclass(
        declared.__name__, fields, bases=(declared,), frozen=True, slots=True, kw_only=True, namespace=config
    )


def without_file_fields(made: Any, declared: type[_T]) -> _T:
    """Return a value without the fields that only its file has."""
    return declared(
        **{entry.name: getattr(made, entry.name) for entry in dataclasses.fields(declared)}  # type: ignore[arg-type]
    )


def file_fields(made: Any) -> dict[str, Any]:
    """Return the keys and values of a value in a file, as plain data.

    Left out are None, numbers that are not finite, and empty texts, lists and tables. Two fields of one key are parts
    of a sum, whose parts other than 0 are joined: "3 cycles + 60 ns".
    """
    types = get_type_hints(type(made), include_extras=True)
    document: dict[str, Any] = {}
    for declared in dataclasses.fields(made):
        key, part = _file_key(declared), getattr(made, declared.name)
        if part is None or (isinstance(part, float) and not math.isfinite(part)):
            continue
        text = _written(part, types[declared.name])
        may_be_left_out = declared.default is not _MISSING or declared.default_factory is not _MISSING
        if (may_be_left_out and text in ("", [], {})) or (part == 0 and _is_a_part(made, key)):
            continue
        document[key] = f"{document[key]} + {text}" if key in document else text
    return document


def _is_a_part(made: Any, key: str) -> bool:
    return [_file_key(part) for part in dataclasses.fields(made)].count(key) > 1


def _written(made: Any, annotation: Any) -> Any:
    write = next((note.write for note in getattr(annotation, "__metadata__", ()) if hasattr(note, "write")), None)
    if write is not None:
        return write(made)
    if get_origin(annotation) is Annotated:
        return _written(made, get_args(annotation)[0])
    inner = [part for part in get_args(annotation) if part is not type(None)]
    if inner and get_origin(annotation) in {Union, UnionType}:
        return _written(made, inner[0])
    if isinstance(made, Mapping):
        return {key: _written(each, inner[-1]) for key, each in made.items()}
    if isinstance(made, tuple):
        return [_written(each, inner[0]) for each in made]
    return file_fields(made) if dataclasses.is_dataclass(made) else made


_NAMED: list[tuple[Any, str]] = []
"""Values that files say by a name."""


class Kinds:
    """Annotation of a field whose value is a table with a key ``kind``, or the name of a known value.

    ``otherwise`` is the message for anything else.
    """

    def __init__(self, kinds: Mapping[str, type], otherwise: str, *, known: Mapping[str, Any] | None = None) -> None:
        self.kinds, self.otherwise, self.known = kinds, otherwise, known or {}
        _NAMED.extend((kind, name) for name, kind in self.known.items())

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        def read(kind: str, declared: type) -> Any:
            table = extended(declared, [("kind", Literal[kind], field("Which kind"))])
            return core_schema.no_info_after_validator_function(
                lambda made: without_file_fields(made, declared), handler.generate_schema(table)
            )

        names = {name: core_schema.literal_schema([name]) for name in self.known}
        return core_schema.no_info_after_validator_function(
            lambda made: self.known[made] if isinstance(made, str) else made,
            core_schema.tagged_union_schema(
                names | {kind: read(kind, declared) for kind, declared in self.kinds.items()},
                self._kind,
                custom_error_type="value",
                custom_error_message=self.otherwise,
            ),
        )

    def _kind(self, table: Any) -> str | None:
        kind = table.get("kind") if isinstance(table, dict) else table
        is_there = isinstance(kind, str) and kind in (self.kinds if isinstance(table, dict) else self.known)
        return kind if is_there else None

    def write(self, made: Any) -> Any:
        """Return the name of a value in files, or its table."""
        name = next((name for name, each in self.known.items() if each == made), None)
        if name is not None:
            return name
        kind = next((kind for kind, declared in self.kinds.items() if isinstance(made, declared)), None)
        if kind is None:
            raise ModelProblem("value", [Problem("", f"a {type(made).__name__} has no file")])
        return {"kind": kind, **file_fields(made)}


def adapter(declared: Any) -> TypeAdapter[Any]:
    """Return the reader of values of a type from plain data."""
    return _adapter(declared)


@lru_cache
def _adapter(declared: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(declared)


def schema_of(declared: Any) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a value in files; defaults are written by their keys."""
    from pydantic import TypeAdapter
    from pydantic.json_schema import GenerateJsonSchema

    class Keys(GenerateJsonSchema):
        def default_schema(self, schema: Any) -> dict[str, Any]:
            made = super().default_schema(schema)
            default = made.get("default")
            if isinstance(default, float) and not math.isfinite(default):  # no limit, or not known: JSON has no word
                del made["default"]
            return made

        def encode_default(self, dft: Any) -> Any:
            name = next((name for unit_type, name in _NAMED if unit_type is dft), None)
            if name is not None:
                return name
            if dataclasses.is_dataclass(dft):
                return TypeAdapter(type(dft)).dump_python(dft, by_alias=True, mode="json")
            return super().encode_default(dft)

    schema = TypeAdapter(declared).json_schema(schema_generator=Keys)
    for table in (schema, *schema.get("$defs", {}).values()):
        if "description" in table:
            table["description"] = _SECTION.split(table["description"])[0].strip()
    return schema


class Given:
    """Annotation of a field that holds only the values that a table gives, by the names of fields.

    ``of`` is the type of the value where it is not the field's, and ``needs`` are the fields that must be given where a
    base may have the others.
    """

    def __init__(self, of: type | None = None, needs: Collection[str] | None = None) -> None:
        self.of = of if of is None or needs is None else _partial(of, needs)

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        read = handler(source) if self.of is None else handler.generate_schema(self.of)
        if self.of is None and any("only_where" in entry.metadata for entry in dataclasses.fields(source)):
            read = handler.generate_schema(_changes(source))
        return core_schema.no_info_wrap_validator_function(lambda table, read: _given(read(table), table), read)


class OrBase:
    """Annotation beside :class:`Given`: a text in place of a table is the table's ``base``."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        from pydantic_core import core_schema

        table = handler(source)
        either = core_schema.union_schema([core_schema.str_schema(), table])
        return core_schema.no_info_before_validator_function(self._table, table, json_schema_input_schema=either)

    @staticmethod
    def _table(table: Any) -> Any:
        from pydantic_core import PydanticCustomError

        from routecast.quantity.toml_file import shown

        if isinstance(table, str):
            return {"base": table}
        if isinstance(table, dict):
            return table
        message = f'got {shown(table)}: give a name or a file in quotes, or a table {{ base = "…", … }}'
        raise PydanticCustomError("value", "{message}", {"message": message})


@lru_cache
def _changes(declared: type) -> type:
    """Return the type of a table that changes a base, whose ``kind`` decides which keys have an effect."""
    config = {name: entry for name, entry in declared.__pydantic_config__.items() if name != "json_schema_extra"}  # type: ignore[attr-defined]
    made = extended(declared, ())
    made.__name__ = made.__qualname__ = f"{declared.__name__}Changes"
    made.__pydantic_config__ = config  # type: ignore[attr-defined]
    return made


def _partial(declared: type, needs: Collection[str]) -> type:
    types = get_type_hints(declared, include_extras=True)
    left_out = [
        (entry.name, types[entry.name], dataclasses.field(default=None, metadata=entry.metadata))
        for entry in dataclasses.fields(declared)
        if entry.name not in needs and entry.default is entry.default_factory is dataclasses.MISSING
    ]
    return extended(declared, left_out)


def _given(made: Any, table: Any) -> dict[str, Any]:
    """Return the fields of a value that a table gives, by their names."""
    keys = {entry.name: _file_key(entry) for entry in dataclasses.fields(made)}
    return {name: getattr(made, name) for name, key in keys.items() if not isinstance(table, dict) or key in table}


def merged(base: _T, changes: Mapping[str, Any]) -> _T:
    """Return a value with the values of a table (:class:`Given`) in place of its own, also inside its parts.

    Other keys of the table, such as the sources of values, are left out.
    """
    changed: dict[str, Any] = {}
    for name in changes.keys() & {entry.name for entry in dataclasses.fields(cast("Any", base))}:
        before, after = getattr(base, name), changes[name]
        changed[name] = merged(before, after) if dataclasses.is_dataclass(before) and isinstance(after, dict) else after
    return cast("_T", dataclasses.replace(cast("Any", base), **changed))
