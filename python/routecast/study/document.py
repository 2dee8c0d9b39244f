"""What documents of all kinds of studies share: quantities of their fields, and where a study's file stands."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from routecast.errors import FileProblem, ModelProblem, Problem, QuantityProblem, RoutecastError
from routecast.quantity import parse_frame_bytes
from routecast.quantity.file_model import FileModel

__all__ = ["Count", "FrameSize", "Name", "Ratio", "StudyDocument", "StudyFile", "problems_at"]


def _frame_bytes(text: Any) -> int:
    try:
        return parse_frame_bytes(text)  # it says itself that it wants a text
    except QuantityProblem as problem:
        raise PydanticCustomError("quantity", "{message}", {"message": problem.message}) from None


FrameSize = Annotated[
    int,
    BeforeValidator(_frame_bytes),
    WithJsonSchema({"type": "string", "description": "Text with a unit: B, FCS included", "examples": ["64 B"]}),
]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Count = Annotated[int, Field(ge=1, le=100_000, strict=True)]
Ratio = Annotated[float, Field(gt=0.0, lt=1e6, allow_inf_nan=False)]


class StudyDocument(FileModel):
    """A whole ``*.study.toml`` of some kind; each kind declares these fields where its file has them."""

    if TYPE_CHECKING:
        name: str
        title: str
        question: str

    def problems(self, folder: Path) -> list[Problem]:
        """Return what the document says against itself, or against the files beside it in ``folder``."""
        del folder
        return []


Document = TypeVar("Document", bound=StudyDocument)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyFile(Generic[Document]):
    """A study and its file; what the study names is looked up in the file's folder."""

    study: Document
    path: Path

    @property
    def folder(self) -> Path:
        """Folder of the file."""
        return self.path.parent


def problems_at(place: str, error: RoutecastError) -> list[Problem]:
    """Return the problems of an error, each with its full place."""
    if not isinstance(error, FileProblem | ModelProblem):
        return [Problem(place, str(error))]
    return [Problem(f"{place}.{one.place}" if one.place else place, one.message) for one in error.problems]
