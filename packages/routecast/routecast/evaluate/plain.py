"""Frozen dataclasses as plain JSON data."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from operator import attrgetter
from typing import Any

__all__ = ["pick", "plain"]


def plain(value: object) -> object:
    """Turn dataclasses, mappings and sequences into dicts and lists; NaN and infinities become None.

    A dataclass with ``SUMMARY``, a tuple of keys for :func:`pick`, has these keys instead of its fields.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return pick(value, *getattr(value, "SUMMARY", ("*",)))
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def pick(value: object, *keys: str) -> dict[str, object]:
    """Return attributes of an object as plain data, in the order of the keys.

    ``*keys``: ``"rate_pps"`` takes an attribute; ``"met=is_met"`` renames it; ``"case=case.name"`` takes it from a
    part; ``"*"`` takes every field of a dataclass and ``"*estimate"`` those of a part; ``"-curve"`` removes a key.

    Examples
    --------
    >>> pick(3 + 4j, "real", "y=imag")
    {'real': 3.0, 'y': 4.0}
    """
    picked: dict[str, object] = {}
    for key in keys:
        if key.startswith("*"):
            part: Any = attrgetter(key[1:])(value) if key[1:] else value
            picked |= {
                part_field.name: plain(getattr(part, part_field.name)) for part_field in dataclasses.fields(part)
            }
        elif key.startswith("-"):
            del picked[key[1:]]
        else:
            name, _, path = key.partition("=")
            picked[name] = plain(attrgetter(path or name)(value))
    return picked
