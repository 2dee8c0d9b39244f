"""The file ``*.experiment.toml``: its tables, and the experiment that it describes.

The file names factors in a router or test bed file, the combinations of their levels, and the responses that are read
from each trial. Quantities are texts with units, and unknown keys are errors. All faults of a file are reported at
once, each with its place.
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
    PLACKETT_BURMAN_SIZES,
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
from routecast.experiment.model import Design, DesignKind, Experiment, Factor, FileValue, Level, Response
from routecast.quantity.amount import Amount, amount_of, coded_levels
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.fields import Duration
from routecast.quantity.file_model import FileTable
from routecast.quantity.toml_file import fields_at, format_value, parse_toml, validated

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
LabelledOverrides = tuple[str, Mapping[str, FileValue]]


class _NamedTable(FileTable):
    """A table that also accepts the names of its fields as keys."""

    model_config = ConfigDict(populate_by_name=True)


class FactorTable(_NamedTable):
    """``[[factor]]``: a quantity or a part that the experiment varies."""

    name: Words = Field(description="Name in tables and figures.")
    path: str | None = Field(
        default=None, description="Path of the value in the router or test bed file: pool[cpu].frequency."
    )
    paths: tuple[str, ...] = Field(default=(), description="Paths of several values that are set alike.")
    levels: tuple[Any, ...] = Field(
        default=(), description="Values in the form of the file, or tables { label = …, set = { path = value, … } }."
    )
    between: tuple[Any, ...] = Field(
        default=(), description="Instead of levels: the lowest and the highest value of a quantity."
    )
    log: bool = Field(default=False, description="Whether steps are ratios, with the geometric mean halfway.")
    quantity: bool | None = Field(
        default=None, description="Whether the factor may have values between its levels; by default the levels decide."
    )


class DesignTable(_NamedTable):
    """``[design]``: the combinations of levels that are tried."""

    kind: Literal[DesignKind, "plackett_burman"] = Field(default="full", description="Kind of the design.")
    replications: Annotated[int, Field(ge=1, le=100_000, strict=True)] = Field(
        default=1, description="Runs of each combination, each with its own seed."
    )
    common_random_numbers: bool = Field(
        default=False,
        description="Whether all combinations of a replication have the same seed: their differences vary less, and "
        "their errors are correlated.",
    )
    generators: tuple[str, ...] = Field(default=(), description='fractional, central_composite: ["D=AB", …].')
    resolution: Annotated[int, Field(ge=3, le=12, strict=True)] | None = Field(
        default=None, description="fractional, instead of generators: lowest resolution of the fraction."
    )
    runs: Annotated[int, Field(ge=2, le=65_536, strict=True)] | None = Field(
        default=None, description="fractional, instead of generators: number of combinations."
    )
    shape: Literal["rotatable", "face_centred", "inscribed"] = Field(
        default="rotatable", description="central_composite: position of the axial points."
    )
    centre_points: Annotated[int, Field(ge=0, le=1000, strict=True)] = Field(
        default=5, description="central_composite: number of runs at the centre."
    )
    points: Any = Field(
        default=None,
        description="latin_hypercube, sobol: number of points. listed: the points, each a table factor = level.",
    )
    spread: Literal["random", "even"] = Field(
        default="random", description="latin_hypercube: even moves the points so that they fill the space better."
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
        description="Instant of a reading, only for forwarded_pps, l1_bps and l2_bps of simulate and measure: the "
        "response is the mean from the start of the trial until then.",
    )


class ExperimentTable(_NamedTable):
    """An experiment without its router document."""

    name: Name = Field(description="Name of the experiment and of the folder of its results.")
    title: str = Field(default="", description="Title of the report.")
    question: str = Field(default="", description="Question that the experiment answers.")
    evaluator: EvaluatorKind = Field(default="solve", description="Evaluator of the runs.")
    duration: Duration = Field(default=0.1, validate_default=False, description="Duration of each trial.")
    seed: Seed = Field(default=1, description="Seed of all random numbers.")
    steady: bool = Field(
        default=False, description="Whether MSER-5 cuts off the transient and each run is tested for drift."
    )
    overrides: dict[str, Any] = Field(
        default={}, alias="set", description="Changes to the router file in all runs: path = value."
    )
    design: DesignTable = DesignTable()
    factor: tuple[FactorTable, ...] = Field(min_length=1, description="Factors that the experiment varies.")
    response: tuple[ResponseTable, ...] = Field(min_length=1, description="Values that are read from each trial.")


class ExperimentFile(ExperimentTable):
    """An ``*.experiment.toml`` file."""

    router: str | dict[str, Any] | None = Field(
        default=None, description="The router: a *.router.toml beside this file, or its content as a table."
    )
    testbed: str | dict[str, Any] | None = Field(
        default=None,
        description='Test bed for the evaluator measure: "namespaces", a *.testbed.toml beside this file, or a table.',
    )
    load: dict[str, Any] | None = Field(default=None, description="Offered load on a test bed, as in a router file.")


MAX_RUNS = 1_000_000
"""More runs are likely a mistake."""

_KINDS_OF_KEY = {
    "generators": {"fractional", "central_composite"},
    "resolution": {"fractional", "central_composite"},
    "runs": {"fractional"},
    "shape": {"central_composite"},
    "centre_points": {"central_composite"},
    "points": {"latin_hypercube", "sobol", "listed"},
    "spread": {"latin_hypercube"},
}
"""The kinds of design that permit a key of the table."""


def design_of(table: DesignTable, factors: Sequence[Factor], *, seed: int) -> Design:
    """Return the design of a table.

    Raises ModelProblem: these factors permit no such design; all faults with their keys in the table.
    """
    problems = [
        Problem(key, f'is not for kind "{table.kind}", only for {" and ".join(sorted(kinds))}')
        for key, kinds in _KINDS_OF_KEY.items()
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
        columns = (rounded(factor, column) for factor, column in zip(factors, zip(*rows, strict=True), strict=True))
        rows = tuple(zip(*columns, strict=True))
    # A Plackett-Burman design confounds parts of interactions with main effects, as listed points do.
    kind: DesignKind = "listed" if table.kind == "plackett_burman" else table.kind
    return Design(kind=kind, coded=rows, replications=table.replications, generators=generators)


def _point_count(points: object, replications: int) -> int:
    if points is None:
        raise design_problem("points", "is missing: give the number of points, such as points = 100")
    if isinstance(points, bool) or not isinstance(points, int) or not 2 <= points * replications <= MAX_RUNS:
        message = f"got {format_value(points)}: write a whole number, with all replications from 2 to {MAX_RUNS:,}"
        raise design_problem("points", message)
    return points


def _check_size(runs: int) -> None:
    if runs > MAX_RUNS:
        message = f"makes {runs:,} runs, more than {MAX_RUNS:,}: take a fraction, or a sample of points"
        raise design_problem("kind", message)


def _factor_problems(table: DesignTable, factors: Sequence[Factor]) -> list[Problem]:
    problems = []
    if table.kind in {"full", "fractional", "plackett_burman"}:
        problems += [
            Problem(
                "kind",
                f'"{factor.name}" has {len(factor.levels)} levels, and a {table.kind.replace("_", "-")} design has two '
                'levels of each factor: take kind "multilevel"',
            )
            for factor in factors
            if len(factor.levels) != 2
        ]
    if table.kind == "plackett_burman" and len(factors) >= PLACKETT_BURMAN_SIZES[-1]:
        message = f"has at most {PLACKETT_BURMAN_SIZES[-1] - 1} factors, got {len(factors)}: take kind latin_hypercube"
        problems.append(Problem("kind", message))
    if table.kind == "central_composite":
        problems += [
            Problem("kind", f'"{factor.name}" is not a quantity and has no centre: take kind "multilevel"')
            for factor in factors
            if not factor.is_quantity
        ]
        if len(factors) < 2:
            problems.append(Problem("kind", "a central composite design has two or more factors"))
    return problems


def _fraction(table: DesignTable, factors: Sequence[Factor]) -> Fraction:
    letters = [factor.letter for factor in factors]
    if table.generators:
        if table.resolution or table.runs:
            raise design_problem("generators", "they decide resolution and runs: leave those keys out")
        return Fraction.of(letters, table.generators)
    if not table.resolution and not table.runs:
        message = 'is missing: give generators = ["D=AB"], or resolution = 4, or runs = 8'
        raise design_problem("generators", message)
    return standard_fraction(letters, runs=table.runs, resolution=table.resolution)


def _nonpositive_axial_points(rows: Sequence[Sequence[float]], factors: Sequence[Factor]) -> list[Problem]:
    """Return a problem for each axial point at which a positive quantity would not be positive."""
    problems = []
    for number, factor in enumerate(factors):
        lowest = min(lowest_number(factor, level.coded) for level in factor.levels)
        for coded in (min(row[number] for row in rows), max(row[number] for row in rows)):
            value = lowest_number(factor, coded)
            if value < 0.0 <= lowest or value <= 0.0 < lowest:
                label = level_at(factor, coded).label
                message = (
                    f'"{factor.name}" would be {label} at an axial point: take shape "inscribed" or "face_centred", '
                    "log = true, or levels further from 0"
                )
                problems.append(Problem("shape", message))
    return problems


def _listed_points(points: object, factors: Sequence[Factor]) -> tuple[tuple[float, ...], ...]:
    if not isinstance(points, list) or not points:
        raise design_problem("points", "is missing: list the points as tables, [{ factor = level, … }, …]")
    problems: list[Problem] = []
    columns = {factor.name: number for number, factor in enumerate(factors)}
    columns |= {factor.letter: number for number, factor in enumerate(factors)}
    rows = []
    for number, point in enumerate(points):
        place = f"points[{number}]"
        if not isinstance(point, dict):
            problems.append(Problem(place, "is not a table: write { factor = level, … }"))
            continue
        row: dict[int, float] = {}
        for name, value in point.items():
            if name not in columns:
                message = f"is not a factor: {did_you_mean(name, [factor.name for factor in factors])}"
                problems.append(Problem(f"{place}.{name}", message))
                continue
            try:
                row[columns[name]] = coded_of(factors[columns[name]], value)
            except ValueError as problem:
                problems.append(Problem(f"{place}.{name}", str(problem)))
        missing = [
            factor.name for column, factor in enumerate(factors) if column not in row and factor.name not in point
        ]
        if missing and not any(problem.place.startswith(place) for problem in problems):
            problems.append(Problem(place, f"lacks {', '.join(missing)}"))
        rows.append(tuple(row.get(column, 0.0) for column in range(len(factors))))
    if problems:
        raise ModelProblem("design", problems)
    return tuple(rows)


_KEYS_OF_LEVEL = dict.fromkeys(("label", "set", "value")).keys()


def factor_of(letter: str, table: FactorTable, place: str, fields: type[BaseModel] | None) -> Factor:
    """Return the factor of a table of the file.

    ``place``: place of the table, for messages: ``"factor[0]"``; ``fields``: model of the varied file, which tells
    which values are whole numbers. Raises ModelProblem: the table has faults; all of them with their places.
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
            levels.append(_parse_level(value, paths))
        except ValueError as problem:
            problems.append(Problem(f"{place}.{key}[{number}]", str(problem)))
    problems += _repeated_levels(levels, f"{place}.{key}") if not problems else []
    if problems:
        raise ModelProblem("factor", problems)
    amounts = _amounts_of_levels(levels)
    has_labels = any(isinstance(value, dict) and "label" in value for value in values)
    is_quantity = amounts is not None and not has_labels if table.quantity is None else table.quantity
    if table.between or table.log:
        is_quantity = True
    if not is_quantity:
        step = 2.0 / (len(levels) - 1)
        coded = [min(-1.0 + step * number, 1.0) for number in range(len(levels))]
    elif amounts is None:
        ends = f"{format_value(values[0])} … {format_value(values[-1])}"
        message = f"{ends}: are not of one kind, so no value lies between them"
        raise ModelProblem("factor", [Problem(f"{place}.{key}", message)])
    else:
        levels, amounts = _in_order(levels, amounts)
        if table.log and any(amount.number <= 0.0 for amount in amounts):
            raise ModelProblem("factor", [Problem(f"{place}.log", "needs levels above 0, because it takes logarithms")])
        coded = coded_levels(amounts, is_log=table.log)
    return Factor(
        letter=letter,
        name=table.name,
        levels=tuple(
            Level(coded=coded_level, label=label, overrides=overrides)
            for coded_level, (label, overrides) in zip(coded, levels, strict=True)
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
            Problem(f"{place}.between", f"has {len(table.between)} values: give the lowest and the highest")
        )
    elif not table.between and len(table.levels) < 2:
        count = "one level" if table.levels else "no level"
        problems.append(Problem(f"{place}.levels", f"has {count}: give two or more"))
    if table.between and not (table.path or table.paths):
        problems.append(Problem(f"{place}.path", "is missing: write the path of the value"))
    return problems


def _parse_level(value: Any, paths: tuple[str, ...]) -> LabelledOverrides:
    """Return the label and the overrides of a level of the file."""
    if _has_date_or_time(value):
        raise ValueError(f"got {label_for(value)}: no value is a date or a time of day: write a text")
    if isinstance(value, dict) and ("set" in value or "value" in value) and value.keys() <= _KEYS_OF_LEVEL:
        overrides = value.get("set", {})
        if not isinstance(overrides, dict):
            raise ValueError("set is not a table: write set = { path = value }")
        if "value" in value:
            if not paths:
                raise ValueError("has a value but the factor has no path: write set = { path = value }")
            overrides = {**dict.fromkeys(paths, value["value"]), **overrides}
        label = value.get("label", "")
        if not isinstance(label, str):
            raise ValueError(f"label is {format_value(label)}: write a text")
        return label or label_for(value.get("value", overrides)), overrides
    if not paths:
        if isinstance(value, dict) and isinstance(value.get("set"), dict):
            unknown = next(key for key in value if key not in _KEYS_OF_LEVEL)
            raise ValueError(f'"{unknown}" is no key that is known here: {did_you_mean(unknown, _KEYS_OF_LEVEL)}')
        if not isinstance(value, dict) or not value:
            raise ValueError(
                f"got {format_value(value)}: the factor has no path, so write {{ label = …, set = {{ path = value }} }}"
            )
        return label_for(value), value
    return label_for(value), dict.fromkeys(paths, value)


def _has_date_or_time(value: object) -> bool:
    """Return whether a value holds one of TOML's dates and times, which no field of a router or test bed takes."""
    if isinstance(value, dict):
        return any(map(_has_date_or_time, value.values()))
    if isinstance(value, list):
        return any(map(_has_date_or_time, value))
    return isinstance(value, datetime.date | datetime.time)


def _repeated_levels(levels: list[LabelledOverrides], place: str) -> list[Problem]:
    problems = []
    for number, (label, overrides) in enumerate(levels):
        earlier = levels[:number]
        if any(overrides == earlier_overrides for _, earlier_overrides in earlier):
            problems.append(Problem(f"{place}[{number}]", f'"{label}" occurs twice: give each level once'))
        elif any(label == earlier_label for earlier_label, _ in earlier):
            message = f'"{label}" is the label of two levels: give each its own label'
            problems.append(Problem(f"{place}[{number}]", message))
    return problems


def _amounts_of_levels(levels: list[LabelledOverrides]) -> list[Amount] | None:
    """Return the quantity of each level; None unless all levels set the same paths to quantities of one kind.

    With two levels the paths of a level may have different values: each path goes from its first value to its last.
    With more levels the position of a level would be ambiguous.
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
    paths_differ = any(
        amount.dimension != row[0].dimension or amount.in_unit(row[0].unit) != row[0].in_unit(row[0].unit)
        for row in rows
        for amount in row
    )
    return None if paths_differ and len(rows) != 2 else [row[0] for row in rows]


def _in_order(levels: list[LabelledOverrides], amounts: list[Amount]) -> tuple[list[LabelledOverrides], list[Amount]]:
    """Return the levels and their quantities, sorted unless they rise or fall throughout."""
    unit = amounts[0].unit
    numbers = [amount.in_unit(unit) for amount in amounts]
    if numbers in (sorted(numbers), sorted(numbers, reverse=True)):
        return levels, amounts
    order = sorted(range(len(levels)), key=numbers.__getitem__)
    return [levels[number] for number in order], [amounts[number] for number in order]


def _is_whole(levels: list[LabelledOverrides], fields: type[BaseModel] | None) -> bool:
    """Return whether a path leads to a field of whole numbers, or to an unknown field and all its levels are whole."""
    from routecast.load.frames import FrameMix
    from routecast.router.variants import field_of

    for path in levels[0][1]:
        field = field_of(fields, path) if fields is not None else None
        if field is None:
            if all(isinstance(overrides[path], int) for _, overrides in levels):
                return True
        elif {int, FrameMix} & _types_in(field.annotation):
            return True
    return False


def _types_in(annotation: object) -> set[object]:
    """Return the types in an annotation, without their wrappers."""
    inner = get_args(annotation)
    if not inner:
        return {annotation}
    return {kind for argument in inner for kind in _types_in(argument) if isinstance(kind, type)}


_MAX_FACTORS = 49


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
    document, document_folder = _load_document(table, subject, folder or Path())
    return experiment_of(table, document, subject=subject, folder=document_folder)


def experiment_of(
    table: ExperimentTable, document: Mapping[str, Any], *, subject: str, folder: Path | None = None
) -> Experiment:
    """Return the experiment of a table on a router (or test bed) file.

    ``document``: content of the router file, or of the test bed file with a table ``load`` of the offered load;
    ``subject``: name of the experiment's file in messages; ``folder``: folder of the files that the document names.
    Raises FileProblem: the table has faults; all of them with their places.
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
    for number, (letter, factor_table) in enumerate(zip(letters_of(_MAX_FACTORS), table.factor, strict=False)):
        place = f"factor[{number}]"
        try:
            factor = factor_of(letter, factor_table, place, fields)
        except ModelProblem as error:
            problems += error.problems
            continue
        factors.append(factor)
        problems += _path_problems(factor, document, fields, place, kind, factor_table)
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
        "description": "Factors in a router or test bed file, the combinations of their levels, and the responses.",
    }


def _load_document(table: ExperimentFile, subject: str, folder: Path) -> tuple[dict[str, Any], Path]:
    """Return the content of the router or test bed file, and the folder of the files that it names."""
    from routecast.router.load_table import read_load

    needed, unused = ("testbed", "router") if table.evaluator == "measure" else ("router", "testbed")
    source = getattr(table, needed)
    problems = []
    if source is None:
        problems.append(Problem(needed, f'is missing: the evaluator "{table.evaluator}" needs it'))
    if getattr(table, unused) is not None:
        needs = "needs a test bed" if unused == "router" else "needs a router"
        problems.append(Problem(unused, f'is not for the evaluator "{table.evaluator}", which {needs}'))
    if table.load is not None and table.evaluator != "measure":
        problems.append(Problem("load", 'belongs in the router file; to change it write [set] "load.rate" = "1 Mpps"'))
    if table.evaluator == "measure" and table.load is None:
        problems.append(Problem("load", "is missing: give the rate and the frames that the tester offers"))
    if problems:
        raise FileProblem(subject, problems)
    if table.evaluator == "measure":
        assert table.load is not None
        try:
            read_load(table.load, ports=2, folder=folder)
        except FileProblem as error:
            problems = [Problem(f"load.{problem.place}", problem.message) for problem in error.problems]
            raise FileProblem(subject, problems) from error
        return document_of_testbed(source, table.load, folder), folder
    if isinstance(source, dict):
        return source, folder
    path = folder / source
    try:
        exists = path.is_file()
    except (OSError, ValueError):  # the text is not a possible file name
        exists = False
    if not exists:
        names = [path.name for path in sorted(folder.glob("*.router.toml"))]
        message = f"there is no file {format_value(source)} beside the experiment: {did_you_mean(source, names)}"
        raise FileProblem(subject, [Problem("router", message)])
    return parse_toml(read_text(path, kind="router file"), str(path)), path.parent


def _path_problems(
    factor: Factor, document: Mapping[str, Any], fields: type[BaseModel], place: str, kind: str, table: FactorTable
) -> list[Problem]:
    """Return a problem for each path of a factor that the document does not know, with the nearest names."""
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
            where = _place_of_path(table, fault.place)
            message = f"{format_value(fault.place)}: {fault.message}"
            problems.setdefault(fault.place, Problem(f"{place}.{where}", message))
    return list(problems.values())


def _place_of_path(table: FactorTable, path: str) -> str:
    """Return the key of a factor's table that holds a path of the varied file."""
    if path == table.path:
        return "path"
    if path in table.paths:
        return f"paths[{table.paths.index(path)}]"
    for number, level in enumerate(table.levels):
        if isinstance(level, dict) and path in (changes := level.get("set", level)):
            return f"levels[{number}]{'.set' if changes is not level else ''}"
    return "path"


def _table_problems(table: ExperimentTable, factors: Sequence[Factor]) -> list[Problem]:
    problems = []
    if len(table.factor) > _MAX_FACTORS:
        problems.append(Problem("factor", f"has {len(table.factor)} entries: there are letters for {_MAX_FACTORS}"))
    for key, entries in (("factor", table.factor), ("response", table.response)):
        names = [entry.name for entry in entries]
        problems += [
            Problem(f"{key}[{number}].name", f"{format_value(name)} is taken already")
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
            message = f"{format_value(response.name)} is the name of a factor: give the response another name"
            clashes.append(Problem(f"{place}.name", message))
    owners: dict[str, str] = {}
    for factor in factors:
        for path in dict.fromkeys(path for level in factor.levels for path in level.overrides):
            hidden = [owner for owner in owners if owner == path or owner.startswith(f"{path}.")]
            if hidden:
                message = f'overrides {format_value(hidden[0])}, which "{owners[hidden[0]]}" varies already'
                problems.append(Problem(f'factor "{factor.name}"', message))
            owners[path] = factor.name
    if table.steady and table.evaluator == "solve":
        problems.append(Problem("steady", "solve answers for the steady state: leave this key out"))
    problems += clashes
    if table.design.common_random_numbers and table.evaluator != "simulate":
        message = f"{table.evaluator} draws no random numbers that runs could share: leave this key out"
        problems.append(Problem("design.common_random_numbers", message))
    return problems


def _load_problems(document: Mapping[str, Any], factors: Sequence[Factor]) -> list[Problem]:
    if "load" in document:
        return []
    if any(path.split(".")[0] == "load" for factor in factors for path in factor.levels[0].overrides):
        return []
    return [Problem("set", 'lacks a load, and the router file has none: write [set] "load.rate" = "1 Mpps"')]
