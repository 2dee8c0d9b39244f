"""Read a study of one of the kinds, by name or from a file.

A kind of study is a package of this room or of a wing. Its ``document`` declares the file, ``answer`` of
its ``run`` turns a run into a result, and its ``views`` have ``page`` and ``terminal_summary`` of a result. One module
may hold all of them. They are imported when a study of the kind is read or run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from routecast.errors import FileProblem
from routecast.quantity.bounded_file import read_text
from routecast.quantity.catalogue import Catalogue
from routecast.quantity.schema import schema_of
from routecast.quantity.toml_file import parse_toml, validated
from routecast.study.document import StudyDocument, StudyFile
from routecast.study.prior_knowledge import prior_knowledge_problems
from routecast.study.titles import with_filled_titles
from routecast.wings import extra_of, not_installed, wings

__all__ = [
    "KINDS",
    "StudyFile",
    "find_study",
    "kind_of",
    "part_of_kind",
    "read_study",
    "shipped_studies",
    "study_schema",
    "study_schema_names",
]

SUFFIX = ".study.toml"

# A line for each kind.
KINDS: Mapping[str, str] = {
    "tables": "Study",
}  # fmt: skip
"""The document class of each kind of this package; a file without ``kind`` has the first kind."""

DEFAULT = next(iter(KINDS))


@cache
def _packages() -> Mapping[str, tuple[str, str]]:
    """Return the package and the document class of each kind."""
    packages = {kind: (f"routecast.study.{kind}", document) for kind, document in KINDS.items()}
    for wing in wings():
        for kind, target in wing.studies.items():
            package, _, document = target.partition(":")
            packages[kind] = (f"{wing.package}.{package}", document)
    return packages


_STUDIES = Catalogue(kind="study", folder="studies", suffix=SUFFIX, parse=parse_toml)


def shipped_studies() -> dict[str, Path]:
    """Return the studies that come with the package, by name."""
    return _STUDIES.files()


def find_study(name_or_file: str) -> Path:
    """Return the path of a user's study, or of a shipped study by its name.

    Raises FileProblem: there is no such file or name; the message suggests the nearest name.
    """
    path = Path(name_or_file)
    return path if path.is_file() else _STUDIES.find(name_or_file)


def part_of_kind(kind: str, part: str) -> ModuleType:
    """Return the module that holds a part of a kind of study: ``document``, ``run`` or ``views``."""
    package = import_module(_packages()[kind][0])
    return import_module(f"{package.__name__}.{part}") if hasattr(package, "__path__") else package


def kind_of(study: StudyDocument) -> str:
    """Return the kind of a study by the module of its document."""
    module = type(study).__module__
    return next(kind for kind, (package, _) in _packages().items() if module in {package, f"{package}.document"})


def _document_of(kind: str) -> type[StudyDocument]:
    document: type[StudyDocument] = getattr(part_of_kind(kind, "document"), _packages()[kind][1])
    return document


def read_study(path: Path) -> StudyFile[Any]:
    """Read a study, and report all faults of its file at once.

    Raises
    ------
    routecast.errors.FileProblem
        The file is not TOML, or not a study.
    routecast.errors.EnvironmentProblem
        The kind of study is of a package that is not installed.
    """
    written = with_filled_titles(parse_toml(read_text(path, kind="study"), str(path)))
    kind = written.get("kind")
    is_known = isinstance(kind, str) and kind in _packages()
    if isinstance(kind, str) and not is_known and (extra := extra_of("studies", kind)):
        raise not_installed(f"{path}: a study of the kind {kind}", extra)
    study = validated(_document_of(str(kind) if is_known else DEFAULT), written, str(path))
    problems = [*study.problems(path.parent), *prior_knowledge_problems(study.groups(), study.prior_knowledge)]
    if problems:
        raise FileProblem(str(path), problems)
    return StudyFile(study=study, path=path)


def study_schema(name: str = "study") -> dict[str, Any]:
    """Return the JSON Schema of a study file of a kind; ``name`` is ``"noc_study"`` for ``NocStudy``."""
    schema = schema_of(_document_of(study_schema_names()[name]))
    fields = schema["properties"]
    names = list(fields)
    # A file begins with its kind, before the fields that all kinds have.
    keys = list(dict.fromkeys(("prior_knowledge", *names[: names.index("prior_knowledge")], "kind", *names)))
    schema["properties"] = {key: fields[key] for key in keys if key in fields}
    schema["required"].sort(key=keys.index)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def study_schema_names() -> dict[str, str]:
    """Return the kinds of studies by the names of their schemas."""
    return {re.sub(r"(?<!^)(?=[A-Z])", "_", document).lower(): kind for kind, (_, document) in _packages().items()}
