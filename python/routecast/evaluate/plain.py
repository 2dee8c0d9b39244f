"""Frozen dataclasses as plain JSON data."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

__all__ = ["plain"]


def plain(value: object) -> object:
    """Turn dataclasses, mappings and sequences into dicts and lists; NaN and infinities become None."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
