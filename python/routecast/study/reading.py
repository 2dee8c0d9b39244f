"""From a name or a file to a :class:`StudyFile`: what the file says, and where it stands."""

from __future__ import annotations

import tomllib
import typing
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from routecast.errors import FileProblem, Problem
from routecast.router.did_you_mean import did_you_mean
from routecast.study.document import Study
from routecast.study.wire.document import WireStudy

__all__ = ["StudyFile", "WireStudyFile", "find_study", "read_study", "shipped_studies", "study_schema"]

SUFFIX = ".study.toml"
LARGEST_FILE_BYTES = 4_000_000

_Document = TypeVar("_Document", Study, WireStudy)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyFile:
    """A study and the folder that its tables are looked up in."""

    study: Study
    path: Path

    @property
    def folder(self) -> Path:
        """Folder of the file."""
        return self.path.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class WireStudyFile:
    """A study of ``kind = "wire"`` and the folder that its test bed is looked up in."""

    study: WireStudy
    path: Path

    @property
    def folder(self) -> Path:
        """Folder of the file."""
        return self.path.parent


def shipped_studies() -> dict[str, Path]:
    """Return the studies that come with the package, by name."""
    room = Path(str(files("routecast"))) / "data" / "studies"
    return {path.name.removesuffix(SUFFIX): path for path in sorted(room.glob(f"*{SUFFIX}"))}


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
    message = (
        f"is neither a file nor a study that comes with routecast; {did_you_mean(name_or_file, shipped)}"
    )
    raise FileProblem(name_or_file, [Problem("", message)])


def read_study(path: Path) -> StudyFile | WireStudyFile:
    """Read a study; every fault of the file is reported at once.

    Raises
    ------
    routecast.errors.FileProblem
        The file is not TOML, or not a study.
    """
    try:
        if path.stat().st_size > LARGEST_FILE_BYTES:
            message = f"has {path.stat().st_size:,} bytes: a study has at most {LARGEST_FILE_BYTES:,}"
            raise FileProblem(str(path), [Problem("", message)])
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise FileProblem(str(path), [Problem(f"byte {error.start}", "is not UTF-8 text")]) from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise FileProblem(str(path), [Problem("", f"is not TOML: {error}")]) from None
    if document.get("kind") == "wire":
        wire = _validated(WireStudy, document, path)
        _refuse(path, _wire_contradictions(wire, path.parent))
        return WireStudyFile(study=wire, path=path)
    study = _validated(Study, document, path)
    _refuse(path, _contradictions(study, path.parent))
    return StudyFile(study=study, path=path)


def _validated(kind: type[_Document], document: dict[str, Any], path: Path) -> _Document:
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        raise FileProblem(str(path), _problems(error, kind)) from None


def _refuse(path: Path, problems: list[Problem]) -> None:
    if problems:
        raise FileProblem(str(path), problems)


def study_schema(kind: Literal["tables", "wire"] = "tables") -> dict[str, Any]:
    """Return the JSON Schema of a study file: of tables that were measured, or of a router on the wire."""
    model: type[BaseModel] = WireStudy if kind == "wire" else Study
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **model.model_json_schema(by_alias=True),
    }


def _contradictions(study: Study, folder: Path) -> list[Problem]:
    problems = []
    for key, name in (
        ("calibrate", study.measurements.calibrate),
        ("validate", study.measurements.validate_with),
    ):
        if not (folder / name).is_file():
            problems.append(Problem(f"measurements.{key}", f"there is no file {name!r} beside the study"))
    seen: set[str] = set()
    for number, scenario in enumerate(study.scenario):
        if scenario.name in seen:
            problems.append(
                Problem(f"scenario[{number}].name", f"{scenario.name!r} is taken: names its files")
            )
        seen.add(scenario.name)
    return problems


def _wire_contradictions(study: WireStudy, folder: Path) -> list[Problem]:
    problems = []
    if study.testbed.file != "namespaces" and not (folder / study.testbed.file).is_file():
        what = f'there is no file {study.testbed.file!r} beside the study: name one, or "namespaces"'
        problems.append(Problem("testbed.file", what))
    names: set[str] = set()
    for number, series in enumerate(study.throughput):
        place = f"throughput[{number}]"
        if series.name in names:
            problems.append(Problem(f"{place}.name", f"{series.name!r} is taken: names its figures"))
        names.add(series.name)
        strange = [value for value in series.calibrate if value not in series.values]
        if strange:
            what = f"{strange[0]:g} is not among the values: {', '.join(f'{value:g}' for value in series.values)}"
            problems.append(Problem(f"{place}.calibrate", what))
        if series.law == "linear" and len(set(series.calibrate)) < 2:
            what = 'one value gives no slope: name two, or set law = "constant"'
            problems.append(Problem(f"{place}.calibrate", what))
    loaded = [(f"loss[{number}]", loss.series) for number, loss in enumerate(study.loss)]
    loaded += [(f"latency[{number}]", latency.series) for number, latency in enumerate(study.latency)]
    for place, name in loaded:
        if name not in names:
            what = f"{name!r} is no [[throughput]]; {did_you_mean(name, sorted(names))}"
            problems.append(Problem(f"{place}.series", what))
    for number, latency in enumerate(study.latency):
        for ratio in latency.calibrate:
            if ratio not in latency.loads:
                what = f"{ratio:g} is not among the loads: {', '.join(f'{load:g}' for load in latency.loads)}"
                problems.append(Problem(f"latency[{number}].calibrate", what))
    return problems


def _problems(error: ValidationError, document: type[BaseModel]) -> list[Problem]:
    problems = []
    faults = error.errors(include_url=False)
    for fault in faults:
        location, kind = fault["loc"], fault["type"]
        if kind == "too_short" and any(
            f["loc"][: len(location)] == location and f is not fault for f in faults
        ):
            continue  # pydantic counts only the entries that are right
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")
        if kind == "extra_forbidden":
            known = _keys_at(document, location[:-1])
            problems.append(Problem(place, f"unknown key; {did_you_mean(str(location[-1]), known)}"))
        elif kind == "missing":
            problems.append(Problem(place, "is missing"))
        elif kind == "quantity":
            problems.append(Problem(place, fault["msg"]))
        else:
            problems.append(Problem(place, f"got {fault['input']!r:.80}: {fault['msg']}"))
    return problems


def _keys_at(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """Return the keys known in the table at a place of a file of that model."""
    for part in location:
        if isinstance(part, str):
            field = next(f for name, f in model.model_fields.items() if part in (name, f.alias))
            model = _model_in(field.annotation)
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_in(annotation: Any) -> type[BaseModel]:
    """Return the model in ``X``, ``tuple[X, ...]`` or ``X | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in typing.get_args(annotation):
        if argument is not Ellipsis and argument is not type(None):
            return _model_in(argument)
    raise TypeError(annotation)
