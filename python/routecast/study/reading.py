"""From a name or a file to a study of one of the kinds.

A kind of study is a package of this room: ``document`` has its document, ``run`` the function ``answer`` from a run
to a result, ``views`` the functions ``page`` and ``terminal_summary`` of a result. A kind may also be one module that
has them all. Either is imported when a study of the kind is read, or run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from routecast.errors import FileProblem, Problem
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import schema_of
from routecast.quantity.shipped import shipped_files
from routecast.quantity.toml_file import parse_toml, validated
from routecast.study.document import StudyDocument, StudyFile
from routecast.study.knew import knew_problems

__all__ = ["KINDS", "StudyFile", "find_study", "part_of_kind", "read_study", "shipped_studies", "study_schema"]

SUFFIX = ".study.toml"

KINDS: Mapping[str, str] = {
    "tables": "Study",
    "wire": "WireStudy",
    "multistage": "MultistageStudy",
    "functions": "FunctionStudy",
    "napi": "NapiStudy",
    "cluster": "ClusterStudy",
    "noc": "NocStudy",
    "curves": "CurveStudy",
    "experiments": "ExperimentsStudy",
}
"""The class of each kind's document; a file without ``kind`` is the first."""

DEFAULT = next(iter(KINDS))


def shipped_studies() -> dict[str, Path]:
    """Return the studies that come with the package, by name."""
    return shipped_files("studies", SUFFIX)


def find_study(name_or_file: str) -> Path:
    """Return the file of a shipped study or a user's own.

    Raises
    ------
    routecast.errors.FileProblem
        There is neither; the nearest shipped name is suggested.
    """
    path = Path(name_or_file)
    if path.is_file():
        return path
    shipped = shipped_studies()
    if name_or_file in shipped:
        return shipped[name_or_file]
    message = f"is neither a file nor a study that comes with routecast; {did_you_mean(name_or_file, shipped)}"
    raise FileProblem(name_or_file, [Problem("", message)])


def part_of_kind(kind: str, part: str) -> ModuleType:
    """Return the module with a part of a kind of study: ``document``, ``run`` or ``views``."""
    package = import_module(f"routecast.study.{kind}")
    return import_module(f"{package.__name__}.{part}") if hasattr(package, "__path__") else package


def _document_of(kind: str) -> type[StudyDocument]:
    document: type[StudyDocument] = getattr(part_of_kind(kind, "document"), KINDS[kind])
    return document


def read_study(path: Path) -> StudyFile[Any]:
    """Read a study; every fault of the file is reported at once.

    Raises
    ------
    routecast.errors.FileProblem
        The file is not TOML, or not a study.
    """
    written = parse_toml(read_text(path, kind="study"), str(path))
    kind = written.get("kind")
    known = isinstance(kind, str) and kind in KINDS and kind != DEFAULT
    study = validated(_document_of(str(kind) if known else DEFAULT), written, str(path))
    problems = [*study.problems(path.parent), *knew_problems(study.groups(), study.knew)]
    if problems:
        raise FileProblem(str(path), problems)
    return StudyFile(study=study, path=path)


def study_schema(name: str = "study") -> dict[str, Any]:
    """Return the JSON Schema of a study file of a kind; ``name`` is ``"noc_study"`` for ``NocStudy``."""
    kinds = {re.sub(r"(?<!^)(?=[A-Z])", "_", document).lower(): kind for kind, document in KINDS.items()}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema_of(_document_of(kinds[name]))}
