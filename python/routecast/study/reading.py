"""From a name or a file to a study of one of the kinds: what the file says, and where it stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from routecast.errors import FileProblem, Problem, RoutecastError
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.shipped import shipped_files
from routecast.quantity.toml_file import parse_toml, validated
from routecast.study.cluster.document import ClusterStudy
from routecast.study.curves.contradictions import contradictions as curve_contradictions
from routecast.study.curves.document import CurveStudy
from routecast.study.document import Study
from routecast.study.experiments.contradictions import contradictions as experiment_contradictions
from routecast.study.experiments.document import ExperimentsStudy
from routecast.study.functions.document import FunctionStudy
from routecast.study.kinds import (
    AnyStudyFile,
    ClusterStudyFile,
    CurveStudyFile,
    ExperimentsStudyFile,
    FunctionStudyFile,
    NapiStudyFile,
    NocStudyFile,
    StudyFile,
    WireStudyFile,
)
from routecast.study.napi.document import NapiStudy
from routecast.study.noc.contradictions import contradictions
from routecast.study.noc.document import NocStudy
from routecast.study.wire.document import WireStudy

__all__ = [
    "ClusterStudyFile",
    "CurveStudyFile",
    "ExperimentsStudyFile",
    "FunctionStudyFile",
    "NapiStudyFile",
    "NocStudyFile",
    "StudyFile",
    "WireStudyFile",
    "find_study",
    "read_study",
    "shipped_studies",
    "study_schema",
]

SUFFIX = ".study.toml"


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


def read_study(path: Path) -> AnyStudyFile:
    """Read a study; every fault of the file is reported at once.

    Raises
    ------
    routecast.errors.FileProblem
        The file is not TOML, or not a study.
    """
    document = parse_toml(read_text(path, kind="study"), str(path))
    if document.get("kind") == "wire":
        wire = validated(WireStudy, document, str(path))
        _refuse(path, _wire_contradictions(wire, path.parent))
        return WireStudyFile(study=wire, path=path)
    if document.get("kind") == "functions":
        functions = validated(FunctionStudy, document, str(path))
        _refuse(path, _function_contradictions(functions))
        return FunctionStudyFile(study=functions, path=path)
    if document.get("kind") == "napi":
        napi = validated(NapiStudy, document, str(path))
        _refuse(path, _napi_contradictions(napi, path.parent))
        return NapiStudyFile(study=napi, path=path)
    if document.get("kind") == "cluster":
        return ClusterStudyFile(study=validated(ClusterStudy, document, str(path)), path=path)
    if document.get("kind") == "noc":
        noc = validated(NocStudy, document, str(path))
        _refuse(path, contradictions(noc, path.parent))
        return NocStudyFile(study=noc, path=path)
    if document.get("kind") == "curves":
        curves = validated(CurveStudy, document, str(path))
        _refuse(path, curve_contradictions(curves, path.parent))
        return CurveStudyFile(study=curves, path=path)
    if document.get("kind") == "experiments":
        experiments = validated(ExperimentsStudy, document, str(path))
        _refuse(path, experiment_contradictions(experiments, path.parent))
        return ExperimentsStudyFile(study=experiments, path=path)
    study = validated(Study, document, str(path))
    _refuse(path, _contradictions(study, path.parent))
    return StudyFile(study=study, path=path)


def _refuse(path: Path, problems: list[Problem]) -> None:
    if problems:
        raise FileProblem(str(path), problems)


StudyKind = Literal["tables", "wire", "functions", "napi", "cluster", "noc", "curves", "experiments"]


def study_schema(kind: StudyKind = "tables") -> dict[str, Any]:
    """Return the JSON Schema of a study file of a kind."""
    models: dict[StudyKind, type[BaseModel]] = {
        "tables": Study,
        "wire": WireStudy,
        "functions": FunctionStudy,
        "napi": NapiStudy,
        "cluster": ClusterStudy,
        "noc": NocStudy,
        "curves": CurveStudy,
        "experiments": ExperimentsStudy,
    }
    model = models[kind]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **model.model_json_schema(by_alias=True),
    }


def _contradictions(study: Study, folder: Path) -> list[Problem]:
    from routecast.calibrate.priors import sources  # NumPy

    problems = []
    for key, name in (
        ("calibrate", study.measurements.calibrate),
        ("validate", study.measurements.validate_with),
    ):
        if not (folder / name).is_file():
            problems.append(Problem(f"measurements.{key}", f"there is no file {name!r} beside the study"))
    left_out = study.measurements.left_out
    if left_out and left_out not in sources():
        problems.append(Problem("measurements.left_out", did_you_mean(left_out, sources())))
    seen: set[str] = set()
    for number, scenario in enumerate(study.scenario):
        if scenario.name in seen:
            problems.append(Problem(f"scenario[{number}].name", f"{scenario.name!r} is taken: names its files"))
        seen.add(scenario.name)
    return problems


def _function_contradictions(study: FunctionStudy) -> list[Problem]:
    from routecast.function.catalogue import read_function
    from routecast.load.popularity import Popularity

    problems = []
    for number, series in enumerate(study.series):
        place = f"series[{number}]"
        try:
            function = read_function(series.function)
        except FileProblem as problem:
            problems.append(Problem(f"{place}.function", str(problem)))
            continue
        if not function.runs_as:
            what = f"{series.function!r} is only a model: name a function that also runs on this host"
            problems.append(Problem(f"{place}.function", what))
        known = [direction.name for direction in function.directions]
        if series.direction not in known and (series.direction or len(known) > 1):
            what = f"got {series.direction!r}: {did_you_mean(series.direction, known)}"
            problems.append(Problem(f"{place}.direction", what))
        names = {table.name for table in function.tables}
        for size, tables in series.tables.items():
            for table in sorted(set(tables) - names):
                what = f"{series.function!r} has no such table; {did_you_mean(table, names)}"
                problems.append(Problem(f"{place}.tables.{size}.{table}", what))
        for index, point in enumerate(series.refine):
            for name, got, known_ones in (
                ("size", point.size, series.tables),
                ("traffic", point.traffic, series.traffic),
            ):
                if got not in known_ones:
                    what = f"got {got!r}: {did_you_mean(got, known_ones)}"
                    problems.append(Problem(f"{place}.refine[{index}].{name}", what))
        for text in series.traffic:
            try:
                Popularity.parse(text)
            except RoutecastError as problem:
                problems.append(Problem(f"{place}.traffic", str(problem)))
    return problems


def _napi_contradictions(study: NapiStudy, folder: Path) -> list[Problem]:
    problems = []
    tables = [(f"idle[{number}].file", curve.file) for number, curve in enumerate(study.idle)]
    if study.clock and study.clock.samples:
        tables.append(("clock.samples", study.clock.samples))
    for place, name in tables:
        if not (folder / name).is_file():
            problems.append(Problem(place, f"there is no file {name!r}, looked up from the study's folder"))
    names = [curve.name for curve in study.idle]
    for number, name in enumerate(names):
        if name in names[:number]:
            problems.append(Problem(f"idle[{number}].name", f"{name!r} is taken: names its figures"))
    if study.form and study.form.saturation >= study.form.maximum:
        problems.append(Problem("form.saturation", "is not below the maximum: it is the rate without idle time"))
    if study.clock and not study.form:
        problems.append(Problem("clock", "needs [form]: the clock scales the costs of that router"))
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
