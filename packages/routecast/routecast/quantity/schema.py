"""Dataclasses whose fields are declared once, with their key in files, unit, range, meaning and default.

::

    @value
    class Activation:
        budget_frames: FrameCount = field("Most frames of a poll, frames", default=64)

The declaration provides the reader, which reports every fault with its place; the JSON Schema; the texts of messages;
and the check of values that code constructs (:func:`field_faults`). The key in a file lacks the suffix of the unit
(``budget``), because the value there includes its unit; ``key`` gives another key. Two fields with the same key are
read from the same text. In code a value is a frozen dataclass, whose constructor checks nothing.
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
_NO_DEFAULT = dataclasses.MISSING
_SECTION = re.compile(r"\n\n[A-Z]\w+\n-{3,}\n")


class Range(NamedTuple):
    """The range of a number, from ``minimum`` to ``maximum``, in ``unit``."""

    minimum: float = -math.inf
    maximum: float = math.inf
    is_open: bool = False
    """Whether ``minimum`` itself is excluded."""
    is_whole: bool = False
    unit: str = ""

    def problem(self, actual: object) -> str:
        """Describe a value that is outside the range."""
        from routecast.quantity.toml_file import format_value

        if self.is_whole and (isinstance(actual, bool) or not isinstance(actual, int)):
            return f"got {format_value(actual)}: must be a whole number"
        is_number = self.unit and isinstance(actual, int | float) and math.isfinite(self.maximum)
        return f"got {format_value(actual)}{f' {self.unit}' if is_number else ''}: allowed is {self}"

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        if math.isfinite(self.minimum) and math.isfinite(self.maximum):
            between = "more than {:.15g} and at most {:.15g}" if self.is_open else "{:.15g} to {:.15g}"
            return between.format(self.minimum, self.maximum) + unit
        number = f"a {'whole' if self.is_whole else 'finite'} number"
        if math.isfinite(self.minimum):
            return f"{number} {'>' if self.is_open else '>='} {self.minimum:.15g}"
        return f"at most {self.maximum:.15g}{unit}" if math.isfinite(self.maximum) else number


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

    ``only_where`` maps another field to the choices under which this field may differ from its default. ``within`` is
    the range of a number, in the unit of the field's name. Further ``limits`` are pydantic's: ``ge``, ``gt`` and ``le``
    of a number, ``max_length`` of a list. They narrow the range of the type. The default is always allowed.
    """
    if within is not None:
        limits = {"ge": within[0], "le": within[1]} | limits
    metadata: dict[str, Any] = {"description": meaning, **limits} | ({"alias": key} if key else {})
    if only_where:
        metadata["only_where"] = only_where
    if bounds := _LIMITS & limits.keys():
        text_range = Range(*_interval([{name: limits[name] for name in bounds}]))
        metadata["json_schema_extra"] = lambda schema: _describe_range(schema, meaning, text_range)
    if default_factory is not None:
        return dataclasses.field(default_factory=default_factory, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def _describe_range(schema: dict[str, Any], meaning: str, text_range: Range) -> None:
    """Write the range of a quantity into its description; JSON Schema has no keyword for the range of a text."""
    texts = [option for option in (schema, *schema.get("anyOf", ())) if option.get("type") == "string"]
    for text in texts:
        for name in _LIMITS & text.keys():
            del text[name]
    if texts:
        schema["description"] = f"{meaning}; {text_range}"


def _write_conditions(schema: dict[str, Any], declared: type) -> None:
    """Write the conditions of ``only_where`` fields into the JSON Schema of a type."""
    fields = {entry.name: entry for entry in dataclasses.fields(declared)}
    conditions = []
    for entry in fields.values():
        for other, choices in entry.metadata.get("only_where", {}).items():
            chosen: dict[str, Any] = {"properties": {_file_key(fields[other]): {"enum": [*choices]}}}
            if fields[other].default not in choices:
                chosen["required"] = [_file_key(fields[other])]
            conditions.append(
                {"if": {"not": chosen}, "then": {"properties": {_file_key(entry): _default_schema(entry.default)}}}
            )
    if conditions:
        schema["allOf"] = conditions


def _default_schema(default: Any) -> dict[str, Any]:
    """Return the JSON Schema that allows only the default; a number with a unit is a text."""
    if default == ():
        return {"maxItems": 0}
    return {"pattern": r"^\s*0+(\.0*)?\s*\D*$"} if default == 0.0 else {"const": default}


_LIMITS = {"ge", "gt", "le"}


def _interval(limits: Iterable[Mapping[str, float]]) -> tuple[float, float, bool]:
    """Return the smallest and the largest value that all limits allow, and whether the smallest is excluded."""
    minimum, maximum, is_open = -math.inf, math.inf, False
    for bounds in limits:
        for name in ("ge", "gt"):
            if bounds.get(name, -math.inf) >= minimum and name in bounds:
                minimum, is_open = bounds[name], name == "gt"
        maximum = min(maximum, bounds.get("le", math.inf))
    return minimum, maximum, is_open


def range_of(annotation: Any, limits: Mapping[str, Any] | None = None) -> Range | None:
    """Return the range of a number by its type and its field's limits; None for other types."""
    notes = [{} if limits is None else limits]
    unit = ""
    while get_origin(annotation) in {Annotated, Union, UnionType}:
        annotation, *others = (part for part in get_args(annotation) if part is not type(None))
        notes += [note.limits for note in others if hasattr(note, "limits")]
        unit = next((note.unit for note in others if getattr(note, "unit", "")), unit)
    if annotation not in {int, float} or not any(_LIMITS & note.keys() for note in notes):
        return None
    return Range(*_interval(notes), is_whole=annotation is int, unit=unit)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field, dataclasses.field))
def value(declared: type[_T]) -> type[_T]:
    """Make a frozen dataclass that can be read from a table of a file."""
    config = {
        "extra": "forbid",
        "arbitrary_types_allowed": True,
        "alias_generator": key_of,
        "json_schema_extra": _write_conditions,
    }
    declared.__pydantic_config__ = config  # type: ignore[attr-defined]  # where pydantic looks for it
    return dataclasses.dataclass(frozen=True, slots=True, kw_only=True)(declared)


def key_of(name: str) -> str:
    """Return a field's name, or a path of names, as files write it, without the suffixes of units.

    Examples
    --------
    >>> key_of("budget_frames"), key_of("name"), key_of("task[2].service.per_byte_s")
    ('budget', 'name', 'task[2].service.per_byte')
    """
    return _SUFFIX.sub("", name)


def _file_key(entry: dataclasses.Field[Any]) -> str:
    return cast("str", entry.metadata.get("alias", key_of(entry.name)))


class KnownKey(NamedTuple):
    """A key that a table of a file may have: its meaning, the type of its value, and the range of a number."""

    meaning: str
    annotation: Any
    range: Range | None = None


def keys_of(declared: Any) -> dict[str, KnownKey]:
    """Return the keys that a table of this type has in files."""
    types = get_type_hints(declared, include_extras=True)
    return {
        _file_key(entry): KnownKey(
            entry.metadata.get("description", ""), types[entry.name], range_of(types[entry.name], entry.metadata)
        )
        for entry in dataclasses.fields(declared)
    }


class _Check(NamedTuple):
    """A check of a value against its declaration: a test, and a function that appends the faults."""

    is_valid: Callable[[Any], bool]
    report: Callable[[Any, str, list[Problem]], None]


def field_faults(instance: Any, path: str = "") -> list[Problem]:
    """Return the faults of a value, including its parts, against the declarations of the fields.

    Numbers must be finite and in range, choices known, lists not too long, and fields with ``only_where`` must have
    their defaults under the other choices. A path has the names of fields (``service.per_byte_s``); lists of values
    have their names in files (``task[2]``).
    """
    faults: list[Problem] = []
    if not _passes(_has_valid_fields, instance):
        _report_fields(instance, path, faults)
    return faults


def faults_in(path: str, values: Iterable[Any]) -> list[Problem]:
    """Return the :func:`field_faults` of the values of a list; parts that neighbours share are checked once."""
    faults: list[Problem] = []
    last_valid = None
    for index, instance in enumerate(values):
        if _passes(
            partial(_has_valid_fields, like=last_valid if type(last_valid) is type(instance) else None), instance
        ):
            last_valid = instance
        else:
            _report_fields(instance, f"{path}[{index}]", faults)
    return faults


def is_faulty(faults: Iterable[Problem], *paths: str) -> bool:
    """Return whether one of the faults is at or below one of the paths."""
    return any(
        fault.place == path or fault.place.startswith((f"{path}.", f"{path}[")) for fault in faults for path in paths
    )


def _passes(is_valid: Callable[[Any], bool], actual: Any) -> bool:
    try:
        return is_valid(actual)
    except (TypeError, AttributeError):  # the value has another type than declared
        return False


def _has_valid_fields(instance: Any, like: Any = None) -> bool:
    """Return whether all fields are valid; fields that the valid value ``like`` shares are not tested again."""
    checks, only_where = _checks(instance.__class__)
    for name, _, is_valid, _ in checks:
        actual = getattr(instance, name)
        if (like is None or actual is not getattr(like, name)) and not is_valid(actual):
            return False
    return all(not _has_no_effect(instance, *condition) for condition in only_where)


def _report_fields(instance: Any, path: str, faults: list[Problem]) -> None:
    if not hasattr(instance, "__dataclass_fields__"):
        faults.append(Problem(path, f"is of type {type(instance).__name__}"))
        return
    checks, only_where = _checks(instance.__class__)
    for name, step, is_valid, report in checks:
        actual = getattr(instance, name)
        if not _passes(is_valid, actual):
            report(actual, f"{path}.{step}" if path else step, faults)
    for name, default, other, choices in only_where:
        if _has_no_effect(instance, name, default, other, choices):
            message = (
                f"is given, but {other} {getattr(instance, other)} does not use it: only {_alternatives(choices)} does"
            )
            faults.append(Problem(f"{path}.{name}" if path else name, message))


def _has_no_effect(instance: Any, name: str, default: Any, other: str, choices: Collection[str]) -> bool:
    given = getattr(instance, name)
    return given is not default and getattr(instance, other) not in choices and given != default


_FieldCheck = tuple[str, str, Callable[[Any], bool], Callable[[Any, str, list[Problem]], None]]
_OnlyWhere = tuple[str, Any, str, Collection[str]]


@lru_cache
def _checks(declared: Any) -> tuple[tuple[_FieldCheck, ...], tuple[_OnlyWhere, ...]]:
    """Return the checks of a type's fields, and its conditions.

    A check is the field's name, the last step of its path, the test and the report. A condition, from ``only_where``,
    is the field's name and default, and the other field with the choices under which the first may differ.
    """
    types = get_type_hints(declared, include_extras=True)
    checks = []
    for entry in dataclasses.fields(declared):
        annotation = types[entry.name]
        check = _check_of(annotation, entry.metadata)
        if check is not None:
            is_valid = check.is_valid if entry.default is _NO_DEFAULT else _or_equal(check.is_valid, entry.default)
            is_list = dataclasses.is_dataclass(next(iter(get_args(annotation)), None))
            step = entry.metadata.get("alias", entry.name) if is_list else entry.name
            checks.append((entry.name, step, is_valid, check.report))
    only_where = (
        (entry.name, entry.default, other, choices)
        for entry in dataclasses.fields(declared)
        for other, choices in entry.metadata.get("only_where", {}).items()
    )
    return tuple(checks), tuple(only_where)


def _alternatives(choices: Collection[str]) -> str:
    *others, last = choices
    return f"{', '.join(others)} or {last}" if others else last


def _or_equal(is_valid: Callable[[Any], bool], allowed: Any) -> Callable[[Any], bool]:
    return lambda actual: actual is allowed or is_valid(actual) or (type(actual) is type(allowed) and actual == allowed)


def _check_of(annotation: Any, limits: Mapping[str, Any]) -> _Check | None:
    """Return the check of a value by its type and its field's limits; None if every value is valid."""
    inner = annotation
    while get_origin(inner) is Annotated:
        inner = get_args(inner)[0]
    origin, arguments = get_origin(inner), get_args(inner)
    if origin in {Union, UnionType}:
        kinds = [argument for argument in arguments if argument is not type(None)]
        check = _check_of(kinds[0], limits) if len(kinds) == 1 else None
        return check and check._replace(is_valid=_or_equal(check.is_valid, None))
    if origin is Literal:
        return _Check(frozenset(arguments).__contains__, partial(_report_choice, arguments))
    if inner in {int, float}:
        allowed = range_of(annotation, limits) or Range(is_whole=inner is int)
        return _Check(
            _number_test(allowed), lambda actual, path, faults: faults.append(Problem(path, allowed.problem(actual)))
        )
    if dataclasses.is_dataclass(inner):
        return _Check(_has_valid_fields, _report_fields)
    if origin is tuple:
        return _entries_check(_check_of(arguments[0], {}), limits.get("max_length", sys.maxsize))
    if origin is not None and issubclass(origin, Mapping):
        return _values_check(_check_of(arguments[1], {}))
    return None


def _report_choice(choices: Collection[str], actual: Any, path: str, faults: list[Problem]) -> None:
    faults.append(Problem(path, f'got "{actual}": {did_you_mean(str(actual), choices)}'))


def _number_test(allowed: Range) -> Callable[[Any], bool]:
    minimum = (
        math.nextafter(allowed.minimum, math.inf) if allowed.is_open else max(allowed.minimum, -sys.float_info.max)
    )
    maximum = min(allowed.maximum, sys.float_info.max)
    if allowed.is_whole:
        return lambda actual: type(actual) is int and minimum <= actual <= maximum
    return lambda actual: minimum <= actual <= maximum


def _entries_check(check: _Check | None, maximum: int) -> _Check:
    def is_valid(actual: Any) -> bool:
        return type(actual) is tuple and len(actual) <= maximum and (check is None or all(map(check.is_valid, actual)))

    def report(actual: Any, path: str, faults: list[Problem]) -> None:
        if not isinstance(actual, tuple):
            faults.append(Problem(path, f"is a {type(actual).__name__}: give a tuple"))
            return
        if len(actual) > maximum:
            faults.append(Problem(path, f"has {len(actual)} entries: at most {maximum}"))
        for index, entry in enumerate(actual):
            if check is not None and not _passes(check.is_valid, entry):
                check.report(entry, f"{path}[{index}]", faults)

    return _Check(is_valid, report)


def _values_check(check: _Check | None) -> _Check | None:
    if check is None:
        return None

    def report(actual: Any, path: str, faults: list[Problem]) -> None:
        for key, entry in actual.items():
            if not _passes(check.is_valid, entry):
                check.report(entry, f"{path}.{key}", faults)

    return _Check(lambda actual: all(map(check.is_valid, actual.values())), report)


def extended(declared: type, fields: Iterable[tuple[str, Any, Any]]) -> type:
    """Return a subclass of a type with further fields, each a ``(name, type, field)``."""
    config = {"__pydantic_config__": declared.__pydantic_config__, "__doc__": declared.__doc__}  # type: ignore[attr-defined]
    return dataclasses.make_dataclass(
        declared.__name__, fields, bases=(declared,), frozen=True, slots=True, kw_only=True, namespace=config
    )


def without_file_fields(instance: Any, declared: type[_T]) -> _T:
    """Return the part of a value that ``declared`` has, without the fields that only its file has."""
    return declared(
        **{entry.name: getattr(instance, entry.name) for entry in dataclasses.fields(declared)}  # type: ignore[arg-type]
    )


def file_fields(instance: Any) -> dict[str, Any]:
    """Return a value as the table of a file, in plain data.

    The table omits None, numbers that are not finite, and empty texts, lists and tables. Two fields with the same key
    are terms of a sum, and the terms other than 0 are joined: "3 cycles + 60 ns".
    """
    types = get_type_hints(type(instance), include_extras=True)
    document: dict[str, Any] = {}
    for declared in dataclasses.fields(instance):
        key, part = _file_key(declared), getattr(instance, declared.name)
        if part is None or (isinstance(part, float) and not math.isfinite(part)):
            continue
        text = _file_value(part, types[declared.name])
        may_be_left_out = declared.default is not _NO_DEFAULT or declared.default_factory is not _NO_DEFAULT
        if (may_be_left_out and text in ("", [], {})) or (part == 0 and _shares_key(instance, key)):
            continue
        document[key] = f"{document[key]} + {text}" if key in document else text
    return document


def _shares_key(instance: Any, key: str) -> bool:
    return [_file_key(part) for part in dataclasses.fields(instance)].count(key) > 1


def _file_value(instance: Any, annotation: Any) -> Any:
    write = next((note.write for note in getattr(annotation, "__metadata__", ()) if hasattr(note, "write")), None)
    if write is not None:
        return write(instance)
    if get_origin(annotation) is Annotated:
        return _file_value(instance, get_args(annotation)[0])
    inner = [part for part in get_args(annotation) if part is not type(None)]
    if inner and get_origin(annotation) in {Union, UnionType}:
        return _file_value(instance, inner[0])
    if isinstance(instance, Mapping):
        return {key: _file_value(entry, inner[-1]) for key, entry in instance.items()}
    if isinstance(instance, tuple):
        return [_file_value(entry, inner[0]) for entry in instance]
    return file_fields(instance) if dataclasses.is_dataclass(instance) else instance


_NAMED_VALUES: list[tuple[Any, str]] = []
"""Values that files give by name, with their names."""


class Kinds:
    """Annotation of a field whose value is a table with a key ``kind``, or the name of a known value.

    ``refusal`` is the message for anything else.
    """

    def __init__(self, kinds: Mapping[str, type], refusal: str, *, known: Mapping[str, Any] | None = None) -> None:
        self.kinds, self.refusal, self.known = kinds, refusal, known or {}
        _NAMED_VALUES.extend((kind, name) for name, kind in self.known.items())

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        def read(kind: str, declared: type) -> Any:
            table = extended(declared, [("kind", Literal[kind], field("Which kind"))])
            return core_schema.no_info_after_validator_function(
                lambda instance: without_file_fields(instance, declared), handler.generate_schema(table)
            )

        names = {name: core_schema.literal_schema([name]) for name in self.known}
        return core_schema.no_info_after_validator_function(
            lambda instance: self.known[instance] if isinstance(instance, str) else instance,
            core_schema.tagged_union_schema(
                names | {kind: read(kind, declared) for kind, declared in self.kinds.items()},
                self._tag,
                custom_error_type="value",
                custom_error_message=self.refusal,
            ),
        )

    def _tag(self, table: Any) -> str | None:
        kind = table.get("kind") if isinstance(table, dict) else table
        allowed = self.kinds if isinstance(table, dict) else self.known
        return kind if isinstance(kind, str) and kind in allowed else None

    def write(self, instance: Any) -> Any:
        """Return the name of a value in files, or its table."""
        name = next((name for name, known_value in self.known.items() if known_value == instance), None)
        if name is not None:
            return name
        kind = next((kind for kind, declared in self.kinds.items() if isinstance(instance, declared)), None)
        if kind is None:
            raise ModelProblem("value", [Problem("", f"a {type(instance).__name__} has no file")])
        return {"kind": kind, **file_fields(instance)}


def adapter(declared: Any) -> TypeAdapter[Any]:
    """Return the cached pydantic adapter of a type, which reads its values from plain data."""
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
            instance = super().default_schema(schema)
            default = instance.get("default")
            if isinstance(default, float) and not math.isfinite(
                default
            ):  # no limit, or not known: JSON cannot express it
                del instance["default"]
            return instance

        def encode_default(self, dft: Any) -> Any:
            name = next((name for named_value, name in _NAMED_VALUES if named_value is dft), None)
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
    """Annotation of a field that holds only the values that a table gives, by the names of the fields.

    ``of`` is the type whose fields the table has, by default the field's own type. ``needs`` are the fields that the
    table must give; a base may supply the others.
    """

    def __init__(self, of: type | None = None, needs: Collection[str] | None = None) -> None:
        self.of = of if of is None or needs is None else _with_optional_fields(of, needs)

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        read = handler(source) if self.of is None else handler.generate_schema(self.of)
        if self.of is None and any("only_where" in entry.metadata for entry in dataclasses.fields(source)):
            read = handler.generate_schema(_changes_type(source))
        return core_schema.no_info_wrap_validator_function(lambda table, read: _given_fields(read(table), table), read)


class OrBase:
    """Annotation after :class:`Given` that also accepts a text, as a table with only the key ``base``."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        from pydantic_core import core_schema

        table = handler(source)
        either = core_schema.union_schema([core_schema.str_schema(), table])
        return core_schema.no_info_before_validator_function(self._table, table, json_schema_input_schema=either)

    @staticmethod
    def _table(table: Any) -> Any:
        from pydantic_core import PydanticCustomError

        from routecast.quantity.toml_file import format_value

        if isinstance(table, str):
            return {"base": table}
        if isinstance(table, dict):
            return table
        message = f'got {format_value(table)}: give a name or a file in quotes, or a table {{ base = "…", … }}'
        raise PydanticCustomError("value", "{message}", {"message": message})


@lru_cache
def _changes_type(declared: type) -> type:
    """Return the type of a table that changes a base; its schema has no ``only_where``, which depends on the base."""
    config = {name: entry for name, entry in declared.__pydantic_config__.items() if name != "json_schema_extra"}  # type: ignore[attr-defined]
    instance = extended(declared, ())
    instance.__name__ = instance.__qualname__ = f"{declared.__name__}Changes"
    instance.__pydantic_config__ = config  # type: ignore[attr-defined]
    return instance


def _with_optional_fields(declared: type, needs: Collection[str]) -> type:
    types = get_type_hints(declared, include_extras=True)
    left_out = [
        (entry.name, types[entry.name], dataclasses.field(default=None, metadata=entry.metadata))
        for entry in dataclasses.fields(declared)
        if entry.name not in needs and entry.default is entry.default_factory is dataclasses.MISSING
    ]
    return extended(declared, left_out)


def _given_fields(instance: Any, table: Any) -> dict[str, Any]:
    """Return the fields of a value whose keys the table has, by their names."""
    keys = {entry.name: _file_key(entry) for entry in dataclasses.fields(instance)}
    return {name: getattr(instance, name) for name, key in keys.items() if not isinstance(table, dict) or key in table}


def merged(base: _T, changes: Mapping[str, Any]) -> _T:
    """Return a value with the values of a table (:class:`Given`) in place of its own, including those of its parts.

    Other keys of the table, such as the sources of values, are ignored.
    """
    changed: dict[str, Any] = {}
    for name in changes.keys() & {entry.name for entry in dataclasses.fields(cast("Any", base))}:
        before, after = getattr(base, name), changes[name]
        changed[name] = merged(before, after) if dataclasses.is_dataclass(before) and isinstance(after, dict) else after
    return cast("_T", dataclasses.replace(cast("Any", base), **changed))
