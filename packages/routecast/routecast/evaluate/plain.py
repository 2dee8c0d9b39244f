"""Frozen dataclasses as plain JSON data."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, overload

__all__ = ["fields_of", "plain"]


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]


@overload
def plain(value: Mapping[str, object]) -> dict[str, object]: ...
@overload
def plain(value: object) -> object: ...
def plain(value: object) -> object:
    """Turn dataclasses, mappings and sequences into dicts and lists; NaN and infinities become None.

    A dataclass with a method ``plain_entries`` has the entries that it returns instead of its fields.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        chosen = getattr(value, "plain_entries", None)
        return plain(chosen() if chosen is not None else fields_of(value))
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def fields_of(value: _Dataclass) -> dict[str, object]:
    """Return the fields of a dataclass by name, as they are.

    Examples
    --------
    >>> from routecast.study.result import Criterion
    >>> fields_of(Criterion(name="error", bound=0.1, reached=0.05))
    {'name': 'error', 'bound': 0.1, 'reached': 0.05}
    """
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
