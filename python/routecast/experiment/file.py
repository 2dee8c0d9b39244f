"""The file ``*.experiment.toml``: its tables, and the experiment that it describes.

The file names factors in a router (or test bed) file, the combinations of their levels that are tried, and the
responses that are read from each trial. Quantities are texts with units; unknown keys are errors. All faults of a file
are reported at once, each with its place.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import ConfigDict, Field

from routecast.errors import FileProblem, ModelProblem, Problem
from routecast.evaluate.protocol import EvaluatorKind
from routecast.experiment._factors import coded_of, label_for, level_at, lowest_number, rounded
from routecast.experiment.answer import (
    document_of_testbed,
    missing_entries,
    reading_problem,
    response_problem,
    table_of_testbed,
    unknown_options,
)
from routecast.experiment.designs import (
    SIZES,
    Fraction,
    central_composite,
    design_problem,
    full,
    latin_hypercube,
    letters_of,
    multilevel,
    plackett_burman,
    snap_to_levels,
    sobol,
    standard_fraction,
)
from routecast.experiment.model import Design, DesignKind, Experiment, Factor, Level, Plain, Response
from routecast.quantity.amount import Amount, amount_of, coded_levels
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.fields import Duration
from routecast.quantity.file_model import FileTable
from routecast.quantity.toml_file import fields_at, parse_toml, shown, validated

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = [
    "DesignTable",
    "ExperimentFile",
    "ExperimentTable",
    "FactorTable",
    "ResponseTable",
    "experiment_of",
    "experiment_schema",
    "factor_of",
    "parse_experiment",
    "read_experiment",
]

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Words = Annotated[str, Field(min_length=1, max_length=80)]
Seed = Annotated[int, Field(ge=0, lt=2**63, strict=True)]
LabelledOverrides = tuple[str, Mapping[str, Plain]]


class _NamedTable(FileTable):
    """A table that also accepts the names of its fields as keys."""

    model_config = ConfigDict(populate_by_name=True)


class FactorTable(_NamedTable):
    """``[[factor]]``: a quantity or a part that the experiment varies."""

    name: Words = Field(description="Name in tables and figures.")
    path: str | None = Field(
        default=None, description="Path of the value in the router or test bed file: pool[cpu].frequency."
    )
    paths: tuple[str, ...] = Field(default=(), description="Several places that get the same value.")
    levels: tuple[Any, ...] = Field(
        default=(), description="Values as the file would say them; or tables { label = …, set = { path = value, … } }."
    )
    between: tuple[Any, ...] = Field(
        default=(), description="Instead of levels: the least and the greatest value of a quantity."
    )
    log: bool = Field(default=False, description="Whether steps are ratios: halfway is the geometric mean.")
    quantity: bool | None = Field(
        default=None, description="Whether values between levels make sense; seen from the levels if not given."
    )


class DesignTable(_NamedTable):
    """``[design]``: the combinations of levels that are tried."""

    kind: Literal[DesignKind, "plackett_burman"] = Field(default="full", description="Kind of the design.")
    replications: Annotated[int, Field(ge=1, le=100_000, strict=True)] = Field(
        default=1, description="Runs of each combination, with a seed each."
    )
    common_random_numbers: bool = Field(
        default=False,
        description="Whether all combinations of a replication have the same seed: differences vary less, and the "
        "errors of a replication hang together.",
    )
    generators: tuple[str, ...] = Field(default=(), description='fractional, central_composite: ["D=AB", …].')
    resolution: Annotated[int, Field(ge=3, le=12, strict=True)] | None = Field(
        default=None, description="fractional, instead of generators: the resolution that the fraction must reach."
    )
    runs: Annotated[int, Field(ge=2, le=65_536, strict=True)] | None = Field(
        default=None, description="fractional, instead of generators: in how many combinations."
    )
    shape: Literal["rotatable", "face_centred", "inscribed"] = Field(
        default="rotatable", description="central_composite: where the axial points stand."
    )
    centre_points: Annotated[int, Field(ge=0, le=1000, strict=True)] = Field(
        default=5, description="central_composite: how often the centre is tried."
    )
    points: Any = Field(
        default=None,
        description="latin_hypercube, sobol: how many points. listed: the points, each a table factor = level.",
    )
    spread: Literal["random", "even"] = Field(
        default="random", description="latin_hypercube: even moves the points until they fill the space better."
    )


class ResponseTable(_NamedTable):
    """``[[response]]``: a number that is read from each trial."""

    name: Words = Field(description="Name in tables and figures.")
    of: str = Field(
        description="Path of the value in a trial: l2_bps, latency.p99_s, resource[cpu].utilisation_ratio; or "
        "capacity_pps, lossless_pps."
    )
    transform: Literal["none", "log", "reciprocal"] = Field(
        default="none", description="Transform of the value before the analysis."
    )
    read_at: Duration | None = Field(
        default=None,
        description="forwarded_pps, l1_bps and l2_bps of simulations and on the wire: what one look at this time would "
        "have said, the mean since the start.",
    )


class ExperimentTable(_NamedTable):
    """An experiment without its router document."""

    name: Name = Field(description="Name of the experiment and of its folder of results.")
    title: str = Field(default="", description="Title of the report.")
    question: str = Field(default="", description="Question that the experiment answers.")
    evaluator: EvaluatorKind = Field(default="solve", description="Evaluator of the runs.")
    duration: Duration = Field(default=0.1, validate_default=False, description="Length of each trial.")
    seed: Seed = Field(default=1, description="Seed of all randomness.")
    steady: bool = Field(
        default=False, description="Whether the transient is cut off by MSER-5 and each run is tested for drift."
    )
    overrides: dict[str, Any] = Field(
        default={}, alias="set", description="Values that differ from the router file in every run: path = value."
    )
    design: DesignTable = DesignTable()
    factor: tuple[FactorTable, ...] = Field(min_length=1, description="Varied factors.")
    response: tuple[ResponseTable, ...] = Field(min_length=1, description="Values that are read from each trial.")


class ExperimentFile(ExperimentTable):
    """An ``*.experiment.toml`` file."""

    router: str | dict[str, Any] | None = Field(
        default=None, description="The router: a *.router.toml beside this file, or what one says."
    )
    testbed: str | dict[str, Any] | None = Field(
        default=None,
        description='Test bed for the evaluator measure: "namespaces", a *.testbed.toml beside this file, or tables.',
    )
    load: dict[str, Any] | None = Field(default=None, description="Offered load on a test bed, as in a router file.")


MOST_RUNS = 1_000_000
"""More runs are likely a mistake."""

_SETTINGS = {
    "generators": {"fractional", "central_composite"},
    "resolution": {"fractional", "central_composite"},
    "runs": {"fractional"},
    "shape": {"central_composite"},
    "centre_points": {"central_composite"},
    "points": {"latin_hypercube", "sobol", "listed"},
    "spread": {"latin_hypercube"},
}
"""Kinds of design that each key of the table belongs to."""


def design_of(table: DesignTable, factors: Sequence[Factor], *, seed: int) -> Design:
    """Return the design of a table.

    Raises ModelProblem: the design cannot be made of these factors; places as in the table.
    """
    problems = [
        Problem(key, f'is not for kind "{table.kind}": it belongs to {" and ".join(sorted(kinds))}')
        for key, kinds in _SETTINGS.items()
        if key in table.model_fields_set and table.kind not in kinds
    ]
    problems += _factor_problems(table, factors)
    if problems:
        raise ModelProblem("design", problems)
    generators: tuple[str, ...] = ()
    if table.kind in {"full", "multilevel"}:
        _check_size(math.prod(len(factor.levels) for factor in factors) * table.replications)
        rows = multilevel([tuple(level.coded for level in factor.levels) for factor in factors])
    elif table.kind == "fractional":
        fraction = _fraction(table, factors)
        rows, generators = fraction.coded, fraction.generators
    elif table.kind == "central_composite":
        if table.generators or table.resolution is not None:
            fraction = _fraction(table, factors)
            corners, generators = fraction.coded, fraction.generators
        else:
            _check_size(2 ** len(factors) * table.replications)
            corners = full(len(factors))
        rows = central_composite(corners, shape=table.shape, centre_points=table.centre_points)
        if problems := _nonpositive_axial_points(rows, factors):
            raise ModelProblem("design", problems)
    elif table.kind == "plackett_burman":
        rows = plackett_burman(len(factors))
    elif table.kind == "listed":
        rows = _listed_points(table.points, factors)
    else:
        points = _point_count(table.points, table.replications)
        if table.kind == "sobol":
            rows = sobol(len(factors), points, seed=seed)
        else:
            rows = latin_hypercube(len(factors), points, seed=seed, spread=table.spread)
        rows = snap_to_levels(rows, factors)
    _check_size(len(rows) * table.replications)
    if any(factor.is_whole for factor in factors):
        rows = tuple(tuple(rounded(factor, at) for factor, at in zip(factors, row, strict=True)) for row in rows)
    # No regular fraction: interactions are confounded in part with main effects, as among listed points.
    kind: DesignKind = "listed" if table.kind == "plackett_burman" else table.kind
    return Design(kind=kind, coded=rows, replications=table.replications, generators=generators)


def _point_count(points: object, replications: int) -> int:
    if points is None:
        raise design_problem("points", "is missing: say how many, points = 100")
    if isinstance(points, bool) or not isinstance(points, int) or not 2 <= points * replications <= MOST_RUNS:
        what = f"got {shown(points)}: a whole number of points, from 2 to {MOST_RUNS:,} with all replications"
        raise design_problem("points", what)
    return points


def _check_size(runs: int) -> None:
    if runs > MOST_RUNS:
        what = f"makes {runs:,} runs, at most {MOST_RUNS:,} are run: take a fraction, or a sample of points"
        raise design_problem("kind", what)


def _factor_problems(table: DesignTable, factors: Sequence[Factor]) -> list[Problem]:
    problems = []
    if table.kind in {"full", "fractional", "plackett_burman"}:
        problems += [
            Problem(
                "kind",
                f'"{factor.name}" has {len(factor.levels)} levels, a {table.kind.replace("_", "-")} design two of each '
                'factor: take kind "multilevel"',
            )
            for factor in factors
            if len(factor.levels) != 2
        ]
    if table.kind == "plackett_burman" and len(factors) >= SIZES[-1]:
        what = f"{len(factors)} factors: at most {SIZES[-1] - 1} are screened so; take kind latin_hypercube"
        problems.append(Problem("kind", what))
    if table.kind == "central_composite":
        problems += [
            Problem("kind", f'"{factor.name}" is no quantity, so there is no centre: take kind "multilevel"')
            for factor in factors
            if not factor.is_quantity
        ]
        if len(factors) < 2:
            problems.append(Problem("kind", "a central composite design has two factors or more"))
    return problems


def _fraction(table: DesignTable, factors: Sequence[Factor]) -> Fraction:
    letters = [factor.letter for factor in factors]
    if table.generators:
        if table.resolution or table.runs:
            raise design_problem("generators", "generators decide resolution and runs: leave those out")
        return Fraction.of(letters, table.generators)
    if not table.resolution and not table.runs:
        what = 'is missing: give generators = ["D=AB"], or resolution = 4, or runs = 8'
        raise design_problem("generators", what)
    return standard_fraction(letters, runs=table.runs, resolution=table.resolution)


def _nonpositive_axial_points(rows: Sequence[Sequence[float]], factors: Sequence[Factor]) -> list[Problem]:
    """Return a problem for each axial point at which a positive quantity would not be positive."""
    problems = []
    for number, factor in enumerate(factors):
        least = min(lowest_number(factor, level.coded) for level in factor.levels)
        for coded in (min(row[number] for row in rows), max(row[number] for row in rows)):
            value = lowest_number(factor, coded)
            if value < 0.0 <= least or value <= 0.0 < least:
                label = level_at(factor, coded).label
                what = (
                    f'"{factor.name}" would be {label} at an axial point: take shape "inscribed" or "face_centred", '
                    "log = true, or levels that are further from 0"
                )
                problems.append(Problem("shape", what))
    return problems


def _listed_points(points: object, factors: Sequence[Factor]) -> tuple[tuple[float, ...], ...]:
    if not isinstance(points, list) or not points:
        raise design_problem("points", "is missing: list the points, each a table: [{ factor = level, … }, …]")
    problems: list[Problem] = []
    columns = {factor.name: number for number, factor in enumerate(factors)}
    columns |= {factor.letter: number for number, factor in enumerate(factors)}
    rows = []
    for number, point in enumerate(points):
        place = f"points[{number}]"
        if not isinstance(point, dict):
            problems.append(Problem(place, "is no table: write { factor = level, … }"))
            continue
        row: dict[int, float] = {}
        for name, value in point.items():
            if name not in columns:
                what = f"is no factor: {did_you_mean(name, [factor.name for factor in factors])}"
                problems.append(Problem(f"{place}.{name}", what))
                continue
            try:
                row[columns[name]] = coded_of(factors[columns[name]], value)
            except ValueError as problem:
                problems.append(Problem(f"{place}.{name}", str(problem)))
        missing = [factor.name for at, factor in enumerate(factors) if at not in row and factor.name not in point]
        if missing and not any(problem.place.startswith(place) for problem in problems):
            problems.append(Problem(place, f"lacks {', '.join(missing)}"))
        rows.append(tuple(row.get(at, 0.0) for at in range(len(factors))))
    if problems:
        raise ModelProblem("design", problems)
    return tuple(rows)


def factor_of(letter: str, table: FactorTable, place: str, fields: type[BaseModel] | None) -> Factor:
    """Return the factor of a table of the file.

    ``place``: of the table, for messages: ``"factor[0]"``; ``fields``: model of the varied file, which decides where
    only whole numbers make sense. Raises ModelProblem: no levels can be made of it; all faults with their places.
    """
    problems = _factor_table_problems(table, place)
    if problems:
        raise ModelProblem("factor", problems)
    paths = tuple(dict.fromkeys(([table.path] if table.path else []) + list(table.paths)))
    values = table.between or table.levels
    levels: list[LabelledOverrides] = []
    key = "between" if table.between else "levels"
    for number, value in enumerate(values):
        try:
            levels.append(_level(value, paths))
        except ValueError as problem:
            problems.append(Problem(f"{place}.{key}[{number}]", str(problem)))
    problems += _repeated(levels, f"{place}.{key}") if not problems else []
    if problems:
        raise ModelProblem("factor", problems)
    amounts = _amounts(levels)
    has_labels = any(isinstance(value, dict) and "label" in value for value in values)
    is_quantity = amounts is not None and not has_labels if table.quantity is None else table.quantity
    if table.between or table.log:
        is_quantity = True
    if not is_quantity:
        step = 2.0 / (len(levels) - 1)
        coded = [min(-1.0 + step * number, 1.0) for number in range(len(levels))]
    elif amounts is None:
        what = f"{shown(values[0])} … {shown(values[-1])}: are no quantities of one kind: nothing is between"
        raise ModelProblem("factor", [Problem(f"{place}.{key}", what)])
    else:
        levels, amounts = _in_order(levels, amounts)
        if table.log and any(amount.number <= 0.0 for amount in amounts):
            raise ModelProblem("factor", [Problem(f"{place}.log", "needs levels > 0: logarithms are taken")])
        coded = coded_levels(amounts, is_log=table.log)
    return Factor(
        letter=letter,
        name=table.name,
        levels=tuple(
            Level(coded=at, label=label, overrides=overrides)
            for at, (label, overrides) in zip(coded, levels, strict=True)
        ),
        is_quantity=is_quantity,
        is_log=is_quantity and table.log,
        is_whole=is_quantity and _is_whole(levels, fields),
    )


def _factor_table_problems(table: FactorTable, place: str) -> list[Problem]:
    problems = []
    if table.levels and table.between:
        problems.append(Problem(place, "has levels and between: give one of them"))
    elif table.between and len(table.between) != 2:
        problems.append(
            Problem(f"{place}.between", f"has {len(table.between)} values: give the least and the greatest")
        )
    elif not table.between and len(table.levels) < 2:
        count = "no level" if not table.levels else "one level"
        problems.append(Problem(f"{place}.levels", f"has {count}: nothing varies, give two or more"))
    if table.between and not (table.path or table.paths):
        problems.append(Problem(f"{place}.path", "is missing: say where the value stands"))
    return problems


def _level(value: Any, paths: tuple[str, ...]) -> LabelledOverrides:
    """Return label and overrides of a level of the file."""
    if _has_time(value):
        raise ValueError(f"got {label_for(value)}: holds a date or a time of day, which nothing here is: write a text")
    if isinstance(value, dict) and ("set" in value or "value" in value) and value.keys() <= {"label", "set", "value"}:
        inner = dict(value.get("set", {})) if isinstance(value.get("set", {}), dict) else None
        if inner is None:
            raise ValueError("set is no table: write set = { path = value }")
        if "value" in value:
            if not paths:
                raise ValueError("has a value but the factor has no path: write set = { path = value }")
            inner = {**dict.fromkeys(paths, value["value"]), **inner}
        label = value.get("label", "")
        if not isinstance(label, str):
            raise ValueError(f"label is {shown(label)}: write a text")
        return label or label_for(value.get("value", inner)), inner
    if not paths:
        if not isinstance(value, dict) or not value:
            raise ValueError(
                f"got {shown(value)}: the factor has no path, so write {{ label = …, set = {{ path = value }} }}"
            )
        return label_for(value), value
    return label_for(value), dict.fromkeys(paths, value)


def _has_time(value: object) -> bool:
    """Return whether a value holds one of TOML's dates and times, which neither files nor summaries can hold."""
    if isinstance(value, dict):
        return any(map(_has_time, value.values()))
    if isinstance(value, list):
        return any(map(_has_time, value))
    return isinstance(value, datetime.date | datetime.time)


def _repeated(levels: list[LabelledOverrides], place: str) -> list[Problem]:
    problems = []
    for number, (label, overrides) in enumerate(levels):
        before = levels[:number]
        if any(overrides == other for _, other in before):
            problems.append(Problem(f"{place}[{number}]", f'"{label}" comes twice: levels differ from each other'))
        elif any(label == other for other, _ in before):
            problems.append(Problem(f"{place}[{number}]", f'"{label}" is the label of two levels: give them others'))
    return problems


def _amounts(levels: list[LabelledOverrides]) -> list[Amount] | None:
    """Return the quantity of each level if each sets the same paths to quantities of one kind, else None.

    The paths of a level may have different values if there are two levels: each path goes from its first value to its
    last. With more levels the position of a level would be ambiguous.
    """
    paths = levels[0][1].keys()
    if any(overrides.keys() != paths for _, overrides in levels):
        return None
    rows: list[list[Amount]] = []
    for _, overrides in levels:
        amounts = [amount for value in overrides.values() if (amount := amount_of(value)) is not None]
        if not amounts or len(amounts) < len(overrides):
            return None
        rows.append(amounts)
    dimensions = [amount.dimension for amount in rows[0]]
    if any([amount.dimension for amount in row] != dimensions for row in rows):
        return None
    differ = any(
        amount.dimension != row[0].dimension or amount.in_unit(row[0].unit) != row[0].in_unit(row[0].unit)
        for row in rows
        for amount in row
    )
    return None if differ and len(rows) != 2 else [row[0] for row in rows]


def _in_order(levels: list[LabelledOverrides], amounts: list[Amount]) -> tuple[list[LabelledOverrides], list[Amount]]:
    """Keep the order of levels that rise or fall throughout; put others into rising order."""
    unit = amounts[0].unit
    numbers = [amount.in_unit(unit) for amount in amounts]
    if numbers in (sorted(numbers), sorted(numbers, reverse=True)):
        return levels, amounts
    order = sorted(range(len(levels)), key=numbers.__getitem__)
    return [levels[number] for number in order], [amounts[number] for number in order]


def _is_whole(levels: list[LabelledOverrides], fields: type[BaseModel] | None) -> bool:
    """Return whether a path leads to a field of whole numbers; for an unknown field, whether the levels are whole."""
    from routecast.load.frames import FrameMix
    from routecast.router.variants import field_of

    for path in levels[0][1]:
        field = field_of(fields, path) if fields is not None else None
        if field is None:
            if all(isinstance(overrides[path], int) for _, overrides in levels):
                return True
        elif {int, FrameMix} & _kinds(field.annotation):
            return True
    return False


def _kinds(annotation: object) -> set[object]:
    """Return the types that a field may have, without their wrappers."""
    inner = get_args(annotation)
    if not inner:
        return {annotation}
    return {kind for argument in inner for kind in _kinds(argument) if isinstance(kind, type)}


SUFFIX = ".experiment.toml"
_MOST_FACTORS = 49


def read_experiment(path: str | Path) -> Experiment:
    """Read an experiment from a ``*.experiment.toml`` file.

    Raises
    ------
    routecast.errors.FileProblem
        The file cannot be read, is not TOML, or has faults; all faults with their places.
    """
    path = Path(path)
    return parse_experiment(read_text(path, kind="experiment"), subject=str(path), folder=path.parent)


def parse_experiment(text: str, *, subject: str = "experiment", folder: Path | None = None) -> Experiment:
    """Read an experiment from the text of its file; ``folder`` holds the files that it names.

    Raises
    ------
    routecast.errors.FileProblem
        As :func:`read_experiment`.
    """
    table = validated(ExperimentFile, parse_toml(text, subject), subject)
    document, beside = _load_document(table, subject, folder or Path())
    return experiment_of(table, document, subject=subject, folder=beside)


def experiment_of(
    table: ExperimentTable, document: Mapping[str, Any], *, subject: str, folder: Path | None = None
) -> Experiment:
    """Return the experiment of a table on a router (or test bed) file.

    ``document``: content of the router file, or of the test bed file with a table ``load`` of the offered load;
    ``subject``: name of the experiment's file in messages; ``folder``: of the files that the document names. Raises
    FileProblem: the table has faults; all of them with their places.
    """
    from routecast.router.files import router_table
    from routecast.router.variants import vary

    problems: list[Problem] = []
    fields = table_of_testbed(document) if table.evaluator == "measure" else router_table(document, subject)
    kind = "test bed file" if table.evaluator == "measure" else "router file"
    try:
        document = vary(document, table.overrides, subject=kind, table=fields)
    except ModelProblem as error:
        problems += [Problem(f"set.{problem.place}", problem.message) for problem in error.problems]
    factors: list[Factor] = []
    for number, (letter, factor_table) in enumerate(zip(letters_of(_MOST_FACTORS), table.factor, strict=False)):
        place = f"factor[{number}]"
        try:
            factor = factor_of(letter, factor_table, place, fields)
        except ModelProblem as error:
            problems += error.problems
            continue
        factors.append(factor)
        problems += _path_problems(factor, document, fields, place, kind)
    problems += _table_problems(table, factors)
    problems += _load_problems(document, factors) if not problems else []
    design = None
    if len(factors) == len(table.factor):
        try:
            design = design_of(table.design, factors, seed=table.seed)
        except ModelProblem as error:
            problems += [Problem(f"design.{problem.place}", problem.message) for problem in error.problems]
    if problems or design is None:
        raise FileProblem(subject, problems)
    experiment = Experiment(
        name=table.name,
        title=table.title,
        question=table.question,
        document=document,
        evaluator=table.evaluator,
        duration_s=table.duration,
        seed=table.seed,
        is_steadied=table.steady,
        has_common_seeds=table.design.common_random_numbers,
        factors=tuple(factors),
        design=design,
        responses=tuple(
            Response(name=response.name, of=response.of, transform=response.transform, read_at_s=response.read_at)
            for response in table.response
        ),
        folder=str(folder or ""),
    )
    if missing := missing_entries(experiment):
        raise FileProblem(subject, missing)
    return experiment


def experiment_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of experiment files, with units and meanings as descriptions."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **ExperimentFile.model_json_schema(by_alias=True),
        "title": "routecast experiment file",
        "description": "Factors in a router or test bed file, the combinations that are tried, what is read.",
    }


def _load_document(table: ExperimentFile, subject: str, folder: Path) -> tuple[dict[str, Any], Path]:
    """Return the content of the router or test bed file, and the folder of the files that it names."""
    from routecast.router.load_table import read_load

    wanted, other = ("testbed", "router") if table.evaluator == "measure" else ("router", "testbed")
    source = getattr(table, wanted)
    problems = []
    if source is None:
        problems.append(Problem(wanted, f'is missing: the evaluator "{table.evaluator}" needs it'))
    if getattr(table, other) is not None:
        needs = "needs a test bed" if other == "router" else "needs a router"
        problems.append(Problem(other, f'is not for the evaluator "{table.evaluator}", which {needs}'))
    if table.load is not None and table.evaluator != "measure":
        what = 'stands in the router file; to change it write [set] "load.rate" = "1 Mpps"'
        problems.append(Problem("load", what))
    if table.evaluator == "measure" and table.load is None:
        problems.append(Problem("load", "is missing: say what the tester offers, rate and frames"))
    if problems:
        raise FileProblem(subject, problems)
    if table.evaluator == "measure":
        assert table.load is not None
        try:
            read_load(table.load, ports=2, folder=folder)
        except FileProblem as error:
            placed = [Problem(f"load.{problem.place}", problem.message) for problem in error.problems]
            raise FileProblem(subject, placed) from error
        return document_of_testbed(source, table.load, folder), folder
    if isinstance(source, dict):
        return source, folder
    path = folder / source
    try:
        exists = path.is_file()
    except (OSError, ValueError):  # no name that a file could have
        exists = False
    if not exists:
        known = [path.name for path in sorted(folder.glob("*.router.toml"))]
        what = f"there is no file {shown(source)} beside the experiment: {did_you_mean(source, known)}"
        raise FileProblem(subject, [Problem("router", what)])
    return parse_toml(read_text(path, kind="router file"), str(path)), path.parent


def _path_problems(
    factor: Factor, document: Mapping[str, Any], fields: type[BaseModel], place: str, kind: str
) -> list[Problem]:
    """Set each level of a factor in the document; return a problem for each unknown path, with the nearest names."""
    from routecast.router.variants import vary

    problems: dict[str, Problem] = {}
    for level in factor.levels:
        try:
            varied = vary(document, level.overrides, subject=kind, table=fields)
            options = unknown_options(varied) if "dut" in fields_at(fields, ()) else ()
            faults: Sequence[Problem] = [option for option in options if option.place in level.overrides]
        except ModelProblem as error:
            faults = error.problems
        for fault in faults:
            problems.setdefault(fault.place, Problem(f"{place}.path", f"{shown(fault.place)}: {fault.message}"))
    return list(problems.values())


def _table_problems(table: ExperimentTable, factors: Sequence[Factor]) -> list[Problem]:
    problems = []
    if len(table.factor) > _MOST_FACTORS:
        problems.append(Problem("factor", f"has {len(table.factor)} entries: at most {_MOST_FACTORS} have letters"))
    for key, entries in (("factor", table.factor), ("response", table.response)):
        names = [entry.name for entry in entries]
        problems += [
            Problem(f"{key}[{number}].name", f"{shown(name)} is taken")
            for number, name in enumerate(names)
            if name in names[:number]
        ]
    factor_names = {factor.name for factor in factors}
    clashes = []
    for number, response in enumerate(table.response):
        place = f"response[{number}]"
        if problem := response_problem(response.of, table.evaluator):
            problems.append(Problem(f"{place}.of", problem))
        if problem := reading_problem(response.of, table.evaluator, response.read_at, table.duration):
            problems.append(Problem(f"{place}.read_at", problem))
        if response.name in factor_names:
            what = f"{shown(response.name)} is the name of a factor: give it another"
            clashes.append(Problem(f"{place}.name", what))
    owners: dict[str, str] = {}
    for factor in factors:
        for path in dict.fromkeys(path for level in factor.levels for path in level.overrides):
            hidden = [owner for owner in owners if owner == path or owner.startswith(f"{path}.")]
            if hidden:
                what = f'{shown(hidden[0])} is varied by "{owners[hidden[0]]}" already, which would do nothing'
                problems.append(Problem(f'factor "{factor.name}"', what))
            owners[path] = factor.name
    if table.steady and table.evaluator == "solve":
        problems.append(Problem("steady", "solve answers for the steady state: leave it out"))
    problems += clashes
    if table.design.common_random_numbers and table.evaluator != "simulate":
        what = f"{table.evaluator} draws no random numbers that runs could share: leave it out"
        problems.append(Problem("design.common_random_numbers", what))
    return problems


def _load_problems(document: Mapping[str, Any], factors: Sequence[Factor]) -> list[Problem]:
    if "load" in document:
        return []
    if any(path.split(".")[0] == "load" for factor in factors for path in factor.levels[0].overrides):
        return []
    what = 'is missing: the router file suggests no load, give one: [set] "load.rate" = "1 Mpps"'
    return [Problem("set", what)]
