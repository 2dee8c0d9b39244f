"""Reading ``*.experiment.toml``: every fault of the file and of its factors at once, each with its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routecast.errors import FileProblem, ModelProblem, Problem
from routecast.experiment.answer.entries import missing_entries
from routecast.experiment.answer.responses import reading_problem, response_problem
from routecast.experiment.answer.testbeds import bed_document, bed_table, unknown_options
from routecast.experiment.designs.words import letters_of
from routecast.experiment.file.design import design_of
from routecast.experiment.file.document import ExperimentFile, ExperimentTable
from routecast.experiment.file.factors import factor_of
from routecast.experiment.model import Experiment, Factor, Response
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.toml_file import parse_toml, shown, validated

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["experiment_of", "experiment_schema", "parse_experiment", "read_experiment"]

SUFFIX = ".experiment.toml"
_MOST_FACTORS = 49


def read_experiment(path: str | Path) -> Experiment:
    """Read an experiment from a ``*.experiment.toml`` file.

    Raises
    ------
    routecast.errors.FileProblem
        The file cannot be read, is no TOML, or says something wrong; all faults with their places.
    """
    path = Path(path)
    return parse_experiment(read_text(path, kind="experiment"), subject=str(path), folder=path.parent)


def parse_experiment(text: str, *, subject: str = "experiment", folder: Path | None = None) -> Experiment:
    """Read an experiment from the text of its file; files that it names are looked for in ``folder``.

    Raises
    ------
    routecast.errors.FileProblem
        As :func:`read_experiment`.
    """
    table = validated(ExperimentFile, parse_toml(text, subject), subject)
    document, beside = _document(table, subject, folder or Path())
    return experiment_of(table, document, subject=subject, folder=beside)


def experiment_of(
    table: ExperimentTable, document: Mapping[str, Any], *, subject: str, folder: Path | None = None
) -> Experiment:
    """Return the experiment that a table makes of a router (or test bed) file.

    Parameters
    ----------
    table : ExperimentTable
    document : mapping
        What the router file says, or the test bed file, with a table ``load`` of the offered load.
    subject : str
        What messages call the file of the experiment.
    folder : Path, optional
        Where files that the document names are looked for.

    Raises
    ------
    routecast.errors.FileProblem
        Something in the table is wrong; all faults with their places.
    """
    from routecast.router.files import router_table
    from routecast.router.variants import vary

    problems: list[Problem] = []
    fields = bed_table(document) if table.evaluator == "measure" else router_table(document, subject)
    kind = "test bed file" if table.evaluator == "measure" else "router file"
    try:
        document = vary(document, table.overrides, subject=kind, table=fields)
    except ModelProblem as wrong:
        problems += [Problem(f"set.{one.place}", one.message) for one in wrong.problems]
    factors: list[Factor] = []
    for number, (letter, one) in enumerate(zip(letters_of(_MOST_FACTORS), table.factor, strict=False)):
        place = f"factor[{number}]"
        try:
            factor = factor_of(letter, one, place, fields)
        except ModelProblem as wrong:
            problems += wrong.problems
            continue
        factors.append(factor)
        problems += _wrong_paths(factor, document, fields, place, kind)
    problems += _contradictions(table, factors)
    problems += _no_load(document, factors, problems)
    design = None
    if len(factors) == len(table.factor):
        try:
            design = design_of(table.design, factors, seed=table.seed)
        except ModelProblem as wrong:
            problems += [Problem(f"design.{one.place}", one.message) for one in wrong.problems]
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
            Response(name=one.name, of=one.of, transform=one.transform, read_at_s=one.read_at)
            for one in table.response
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


def _document(table: ExperimentFile, subject: str, folder: Path) -> tuple[dict[str, Any], Path]:
    """Return what the router or test bed file says, and the folder that its own files are looked for in."""
    from routecast.router.files import read_load

    wanted, other = ("testbed", "router") if table.evaluator == "measure" else ("router", "testbed")
    problems = []
    if getattr(table, wanted) is None:
        what = f'is missing: the evaluator "{table.evaluator}" needs it'
        problems.append(Problem(wanted, what))
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
    source = getattr(table, wanted)
    if table.evaluator == "measure":
        assert table.load is not None
        try:
            read_load(table.load, ports=2, folder=folder)
        except FileProblem as wrong:
            placed = [Problem(f"load.{one.place}", one.message) for one in wrong.problems]
            raise FileProblem(subject, placed) from wrong
        return bed_document(source, table.load, folder), folder
    if isinstance(source, dict):
        return source, folder
    path = folder / source
    try:
        is_there = path.is_file()
    except (OSError, ValueError):  # no name that a file could have
        is_there = False
    if not is_there:
        known = [one.name for one in sorted(folder.glob("*.router.toml"))]
        what = f"there is no file {shown(source)} beside the experiment: {did_you_mean(source, known)}"
        raise FileProblem(subject, [Problem("router", what)])
    return parse_toml(read_text(path, kind="router file"), str(path)), path.parent


def _wrong_paths(
    factor: Factor, document: Mapping[str, Any], fields: type[BaseModel], place: str, kind: str
) -> list[Problem]:
    """Try each level of a factor on the document: paths that lead nowhere, with the nearest names."""
    from routecast.router.variants import vary

    found: dict[str, Problem] = {}
    for level in factor.levels:
        problems: Sequence[Problem] = ()
        try:
            varied = vary(document, level.overrides, subject=kind, table=fields)
            if "dut" in fields.model_fields:
                problems = [one for one in unknown_options(varied) if one.place in level.overrides]
        except ModelProblem as wrong:
            problems = wrong.problems
        for one in problems:
            found.setdefault(one.place, Problem(f"{place}.path", f"{shown(one.place)}: {one.message}"))
    return list(found.values())


def _contradictions(table: ExperimentTable, factors: Sequence[Factor]) -> list[Problem]:
    problems = []
    if len(table.factor) > _MOST_FACTORS:
        problems.append(
            Problem("factor", f"has {len(table.factor)} entries: at most {_MOST_FACTORS} have letters")
        )
    for key, entries in (("factor", table.factor), ("response", table.response)):
        names = [one.name for one in entries]
        problems += [
            Problem(f"{key}[{number}].name", f"{shown(name)} is taken")
            for number, name in enumerate(names)
            if name in names[:number]
        ]
    for number, one in enumerate(table.response):
        wrong = response_problem(one.of, table.evaluator)
        if wrong:
            problems.append(Problem(f"response[{number}].of", wrong))
        wrong = reading_problem(one.of, table.evaluator, one.read_at, table.duration)
        if wrong:
            problems.append(Problem(f"response[{number}].read_at", wrong))
    owners: dict[str, str] = {}
    for factor in factors:
        for path in dict.fromkeys(path for level in factor.levels for path in level.overrides):
            hidden = [one for one in owners if one == path or one.startswith(f"{path}.")]
            if hidden:
                what = (
                    f'{shown(hidden[0])} is varied by "{owners[hidden[0]]}" already, which would do nothing'
                )
                problems.append(Problem(f'factor "{factor.name}"', what))
            owners[path] = factor.name
    if table.steady and table.evaluator == "solve":
        problems.append(Problem("steady", "solve answers for the steady state: leave it out"))
    factor_names = {factor.name for factor in factors}
    problems += [
        Problem(f"response[{number}].name", f"{shown(one.name)} is the name of a factor: give it another")
        for number, one in enumerate(table.response)
        if one.name in factor_names
    ]
    if table.design.common_random_numbers and table.evaluator != "simulate":
        what = f"{table.evaluator} draws no random numbers that runs could share: leave it out"
        problems.append(Problem("design.common_random_numbers", what))
    return problems


def _no_load(
    document: Mapping[str, Any], factors: Sequence[Factor], problems: Sequence[Problem]
) -> list[Problem]:
    if "load" in document or problems:
        return []
    if any(path.split(".")[0] == "load" for factor in factors for path in factor.levels[0].overrides):
        return []
    what = 'is missing: the router file suggests no load, give one: [set] "load.rate" = "1 Mpps"'
    return [Problem("set", what)]
