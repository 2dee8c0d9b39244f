"""Tables of files that are no values of the model themselves."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

__all__ = ["FileModel"]


class FileModel(BaseModel):
    """A table in a file: nothing unknown, nothing changed after reading."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)
