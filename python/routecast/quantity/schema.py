"""Values whose fields are declared once: key in files, unit, range, meaning and default stand at the field.

::

    @value
    class Activation:
        budget_frames: FrameCount = field("Most frames of a poll, frames", default=64)

Reading with every fault at its place, JSON Schema and the texts of messages follow from it. A file says a field without
the suffix of its unit (``budget``), for there the value has the unit; ``key`` names another one. Two fields of one key
are read from the same text. In code a value is a frozen dataclass, and nothing is checked when it is made.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
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

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = [
    "Given",
    "Kinds",
    "KnownKey",
    "OrBase",
    "adapter",
    "extended",
    "field",
    "file_fields",
    "key_of",
    "keys_of",
    "merged",
    "schema_of",
    "value",
    "without_file_fields",
]

_SUFFIX = re.compile(r"_(?:bytes_per_s|bps|pps|frames|hz|cycles|(?<!cycles_)ratio|bytes|w|j|v|s)(?=[.\[]|$)")
_T = TypeVar("_T")
_MISSING = dataclasses.MISSING
_SECTION = re.compile(r"\n\n[A-Z]\w+\n-{3,}\n")


def field(
    meaning: str,
    *,
    default: Any = dataclasses.MISSING,
    key: str = "",
    default_factory: Callable[[], Any] | None = None,
    **limits: float,
) -> Any:
    """Declare a field: what it means, its unit at the end; its default; its key in files where that is another.

    ``limits`` are pydantic's ``ge`` and ``le``: the least and the greatest number that a file may say.
    """
    metadata = {"description": meaning, **limits} | ({"alias": key} if key else {})
    if default_factory is not None:
        return dataclasses.field(default_factory=default_factory, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field, dataclasses.field))
def value(declared: type[_T]) -> type[_T]:
    """Make a frozen dataclass that files can say, key by key."""
    config = {"extra": "forbid", "arbitrary_types_allowed": True, "alias_generator": key_of}
    declared.__pydantic_config__ = config  # type: ignore[attr-defined]  # where pydantic looks for it
    return dataclasses.dataclass(frozen=True, slots=True, kw_only=True)(declared)


def key_of(name: str) -> str:
    """Return how files write the name of a field, or a place: without the units that names end in.

    Examples
    --------
    >>> key_of("budget_frames"), key_of("name"), key_of("task[2].service.per_byte_s")
    ('budget', 'name', 'task[2].service.per_byte')
    """
    return _SUFFIX.sub("", name)


class KnownKey(NamedTuple):
    """A key that a table of a file may have: what it means, the type of its value, and the least and the most of it."""

    meaning: str
    annotation: Any
    range: tuple[float, float] | None = None


def keys_of(declared: Any) -> dict[str, KnownKey]:
    """Return the keys that a file may give a value."""
    types = get_type_hints(declared, include_extras=True)
    return {
        entry.metadata.get("alias", key_of(entry.name)): KnownKey(
            entry.metadata.get("description", ""), types[entry.name], _range_of(entry.metadata)
        )
        for entry in dataclasses.fields(declared)
    }


def _range_of(metadata: Mapping[str, Any]) -> tuple[float, float] | None:
    return (metadata["ge"], metadata["le"]) if {"ge", "le"} <= metadata.keys() else None


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


def file_fields(one: Any) -> dict[str, Any]:
    """Return what a file says of a value, key by key, as plain data.

    Left out is what says nothing: None, what is infinite or not a number, empty texts, lists and tables. Two fields of
    one key hold the parts of a sum, of which those that are not 0 are joined: "3 cycles + 60 ns".
    """
    types = get_type_hints(type(one), include_extras=True)
    document: dict[str, Any] = {}
    for declared in dataclasses.fields(one):
        key, part = declared.metadata.get("alias", key_of(declared.name)), getattr(one, declared.name)
        if part is None or (isinstance(part, float) and not math.isfinite(part)):
            continue
        text = _said(part, types[declared.name])
        may_be_left_out = declared.default is not _MISSING or declared.default_factory is not _MISSING
        if (may_be_left_out and text in ("", [], {})) or (part == 0 and _is_a_part(one, key)):
            continue
        document[key] = f"{document[key]} + {text}" if key in document else text
    return document


def _is_a_part(one: Any, key: str) -> bool:
    return [part.metadata.get("alias", key_of(part.name)) for part in dataclasses.fields(one)].count(key) > 1


def _said(one: Any, annotation: Any) -> Any:
    write = next((note.write for note in getattr(annotation, "__metadata__", ()) if hasattr(note, "write")), None)
    if write is not None:
        return write(one)
    if get_origin(annotation) is Annotated:
        return _said(one, get_args(annotation)[0])
    inner = [part for part in get_args(annotation) if part is not type(None)]
    if inner and get_origin(annotation) in {Union, UnionType}:
        return _said(one, inner[0])
    if isinstance(one, Mapping):
        return {key: _said(each, inner[-1]) for key, each in one.items()}
    if isinstance(one, tuple):
        return [_said(each, inner[0]) for each in one]
    return file_fields(one) if dataclasses.is_dataclass(one) else one


_NAMED: list[tuple[Any, str]] = []
"""Values that files say by a name."""


class Kinds:
    """Beside the type of a field: a table whose key ``kind`` says which value it is, or the name of a known one.

    ``otherwise`` is what is said of anything else.
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

    def write(self, one: Any) -> Any:
        """Return what a file says of such a value: its name, or its table."""
        name = next((name for name, each in self.known.items() if each == one), None)
        if name is not None:
            return name
        kind = next((kind for kind, declared in self.kinds.items() if isinstance(one, declared)), None)
        if kind is None:
            raise ModelProblem("value", [Problem("", f"a {type(one).__name__} has no file")])
        return {"kind": kind, **file_fields(one)}


def adapter(declared: Any) -> TypeAdapter[Any]:
    """Return what reads values of a type from plain data."""
    return _adapter(declared)


@lru_cache
def _adapter(declared: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(declared)


def schema_of(declared: Any) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of what a file may say; defaults are written by their keys, as in files."""
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
    """Beside the type of a field: what a table says of such a value, by the names of fields, not what it leaves out.

    ``of`` is the value where that is not the type of the field, and ``needs`` the only fields that must be given, where
    a base may have the others.
    """

    def __init__(self, of: type | None = None, needs: Collection[str] | None = None) -> None:
        self.of = of if of is None or needs is None else _partial(of, needs)

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        read = handler(source) if self.of is None else handler.generate_schema(self.of)
        return core_schema.no_info_wrap_validator_function(lambda said, read: _given(read(said), said), read)


class OrBase:
    """Beside :class:`Given` a value with a ``base``: a text in the place of a table is short for that base."""

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
    keys = {entry.name: entry.metadata.get("alias", key_of(entry.name)) for entry in dataclasses.fields(made)}
    return {name: getattr(made, name) for name, key in keys.items() if not isinstance(table, dict) or key in table}


def merged(base: _T, changes: Mapping[str, Any]) -> _T:
    """Return a value with what a table gives (:class:`Given`) in the place of its own, parts of parts likewise.

    What the table gives besides, such as where values come from, is left out.
    """
    changed: dict[str, Any] = {}
    for name in changes.keys() & {entry.name for entry in dataclasses.fields(cast("Any", base))}:
        before, after = getattr(base, name), changes[name]
        changed[name] = merged(before, after) if dataclasses.is_dataclass(before) and isinstance(after, dict) else after
    return cast("_T", dataclasses.replace(cast("Any", base), **changed))
