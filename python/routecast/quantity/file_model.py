"""Tables of files that become values of a model later."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

__all__ = ["FileModel", "FileTable"]


class FileModel(BaseModel):
    """A table in a file: nothing unknown, nothing changed after reading."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class FileTable(FileModel):
    """A table in a file whose texts may stand between spaces."""

    model_config = ConfigDict(str_strip_whitespace=True)
