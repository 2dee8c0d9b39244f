"""Pydantic models of tables in files, which the reader converts into values of a model."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

__all__ = ["FileModel", "FileTable"]


class FileModel(BaseModel):
    """A table in a file; unknown keys are faults, and the values are frozen."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class FileTable(FileModel):
    """A table in a file whose texts lose leading and trailing spaces."""

    model_config = ConfigDict(str_strip_whitespace=True)
