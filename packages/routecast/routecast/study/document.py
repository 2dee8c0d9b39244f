"""Parts that the documents of all kinds of studies share: types of fields, quotations of sources, a study's file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, Protocol, TypeVar

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from routecast.errors import FileProblem, ModelProblem, Problem, QuantityProblem, RoutecastError
from routecast.quantity import parse_frame_bytes
from routecast.quantity.file_model import FileModel
from routecast.study.prior_knowledge import Group, Knowledge, KnownGroup, roles_of

__all__ = [
    "Count",
    "FrameSize",
    "Name",
    "Quoted",
    "Ratio",
    "Seed",
    "SourceStatement",
    "StudyDocument",
    "StudyFile",
    "missing_files",
    "missing_testbed_problems",
    "problems_at",
    "repeated_name_problems",
]


def _frame_bytes(text: Any) -> int:
    try:
        return parse_frame_bytes(text)  # it reports a value that is no text
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
Seed = Annotated[int, Field(ge=0, lt=2**63, strict=True)]


class Quoted(FileModel):
    """A value that a source states: its words with their section, or the figure that shows it."""

    section: str = Field(default="", description='Section, footnote or table of the source: "sec. 6.5".')
    quote: str = Field(default="", description="The source's words, which contain the number.")
    read_as: str = Field(
        default="",
        description='Formula of the value from numbers of the quotation: "1 / 4.2"; empty: the value is such a number.',
    )
    words: dict[str, float] = Field(default={}, description='Words of the quotation that are numbers: "half" = 0.5.')
    read_off: str = Field(default="", description="Figure from which the value is read, where no words state it.")
    where: str = Field(default="", description="Remark, or the place in the source if no section is given.")

    @property
    def place(self) -> str:
        """Place of the value in the source, as tables show it: section, quotation and remark, or the figure."""
        quote = f"“{self.quote}”" if self.quote else ""
        parts = (f"read off {self.read_off}" if self.read_off else self.section, quote, self.where)
        return "; ".join(part for part in (": ".join(part for part in parts[:2] if part), parts[2]) if part)

    def quotation_problems(self, place: str) -> Iterator[Problem]:
        """Yield the contradictions between the fields of the quotation."""
        if self.read_off and (self.quote or self.read_as or self.words):
            yield Problem(f"{place}.read_off", "is for a value that no words state: leave the quotation out")
        if self.quote and not self.section:
            yield Problem(f"{place}.section", "is missing: name the section that the quotation stands in")
        if (self.read_as or self.words) and not self.quote:
            yield Problem(f"{place}.quote", "is missing: read_as and words explain a quotation")
        for word in self.words:
            if word not in self.quote:
                yield Problem(f"{place}.words.{word}", "is no part of the quotation")


class SourceStatement(Quoted):
    """A statement of a source in words; a kind of study adds the quantity that it compares with the statement."""

    says: str = Field(description="Subject of the statement, which opens a row of the table.")
    stated: str = Field(min_length=1, description='Statement of the source, in short: "almost 40 %", "yes".')

    def quotation_problems(self, place: str) -> Iterator[Problem]:
        """Yield the problems of the quotation; a missing quotation is a problem too."""
        yield from super().quotation_problems(place)
        if not self.quote:
            yield Problem(f"{place}.quote", "is missing: quote the source's words")


class StudyDocument(FileModel):
    """A ``*.study.toml``, with the fields and checks of all kinds of studies."""

    prior_knowledge: tuple[Knowledge, ...] = Field(
        default=(), description="Whether the model was made in knowledge of the compared values."
    )
    name: Name = Field(description="Name of the study and of its folder of results.")
    title: str = Field(description="Title of the report.")
    question: str = Field(default="", description="Question that the study answers.")

    def groups(self) -> Sequence[Group]:
        """Return the groups of values that the study compares with its predictions, in the order of its tables."""
        return ()

    def known(self) -> tuple[KnownGroup, ...]:
        """Return the role of each group: calibrated on, chosen in sight of, or predicted."""
        return roles_of(self.groups(), self.prior_knowledge)

    def problems(self, folder: Path) -> list[Problem]:
        """Return the contradictions within the document, and between it and the files in its ``folder``."""
        del folder
        return []


Document = TypeVar("Document", bound=StudyDocument)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyFile(Generic[Document]):
    """A study and its file, whose folder has the other files that the study names."""

    study: Document
    path: Path

    @property
    def folder(self) -> Path:
        """Folder of the file."""
        return self.path.parent


class _Named(Protocol):
    @property
    def name(self) -> str: ...


def repeated_name_problems(place: str, tables: Iterable[_Named], use: str = "") -> Iterator[Problem]:
    """Yield a problem for each table with the name of an earlier table; ``use`` states the use of the name."""
    seen: set[str] = set()
    for number, table in enumerate(tables):
        if table.name in seen:
            yield Problem(f"{place}[{number}].name", f"{table.name!r} is taken{use and f': {use}'}")
        seen.add(table.name)


def missing_files(folder: Path, files: Mapping[str, str]) -> Iterator[Problem]:
    """Yield a problem for each file, by the key that names it, that the study's folder lacks."""
    for place, name in files.items():
        if not (folder / name).is_file():
            yield Problem(place, f"there is no file {name!r}, looked up from the study's folder")


def missing_testbed_problems(place: str, folder: Path, name: str) -> Iterator[Problem]:
    """Yield a problem if the study's folder lacks the test bed's file, and it is not ``"namespaces"``."""
    if name != "namespaces" and not (folder / name).is_file():
        yield Problem(place, f'there is no file {name!r} beside the study: name one, or "namespaces"')


def problems_at(place: str, error: RoutecastError) -> list[Problem]:
    """Return the problems of an error, each with its place in the whole file."""
    if not isinstance(error, FileProblem | ModelProblem):
        return [Problem(place, str(error))]
    return [
        Problem(f"{place}.{problem.place}" if problem.place else place, problem.message) for problem in error.problems
    ]
