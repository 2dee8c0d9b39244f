"""From the ``[design]`` table of a file and its factors to the combinations that are tried."""

from __future__ import annotations

from collections.abc import Sequence

from routecast.errors import ModelProblem, Problem
from routecast.experiment.designs.composite import central_composite
from routecast.experiment.designs.fractional import Fraction
from routecast.experiment.designs.full import full, multilevel
from routecast.experiment.designs.samples import latin_hypercube, on_levels, sobol
from routecast.experiment.designs.screening import SIZES, plackett_burman
from routecast.experiment.designs.standard import standard_fraction
from routecast.experiment.factors import coded_of, level_at, lowest_of, settled
from routecast.experiment.file.document import DesignTable
from routecast.experiment.model import Design, DesignKind, Factor
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.toml_file import shown

__all__ = ["MOST_RUNS", "design_of"]

MOST_RUNS = 1_000_000
"""More are a mistake sooner than a wish."""

_SETTINGS = {
    "generators": {"fractional", "central_composite"},
    "resolution": {"fractional", "central_composite"},
    "runs": {"fractional"},
    "shape": {"central_composite"},
    "centre_points": {"central_composite"},
    "points": {"latin_hypercube", "sobol", "listed"},
    "spread": {"latin_hypercube"},
}
"""Which kinds of design a key of the table is for."""


def design_of(table: DesignTable, factors: Sequence[Factor], *, seed: int) -> Design:
    """Return the design that a table asks for.

    Raises
    ------
    routecast.errors.ModelProblem
        The design cannot be made of these factors; places as in the table.
    """
    problems = [
        Problem(key, f'is not for kind "{table.kind}": it belongs to {" and ".join(sorted(kinds))}')
        for key, kinds in _SETTINGS.items()
        if key in table.model_fields_set and table.kind not in kinds
    ]
    problems += _wrong_factors(table, factors)
    if problems:
        raise ModelProblem("design", problems)
    generators: tuple[str, ...] = ()
    if table.kind in {"full", "multilevel"}:
        count = 1
        for factor in factors:
            count *= len(factor.levels)
        _limit(count * table.replications)
        levels = [tuple(level.coded for level in factor.levels) for factor in factors]
        rows = full(len(factors)) if table.kind == "full" else multilevel(levels)
    elif table.kind == "fractional":
        fraction = _fraction(table, factors)
        rows, generators = fraction.coded, fraction.generators
    elif table.kind == "central_composite":
        has_fraction = bool(table.generators) or table.resolution is not None
        if not has_fraction:
            _limit(2 ** len(factors) * table.replications)
        corners = _fraction(table, factors) if has_fraction else None
        generators = corners.generators if corners else ()
        rows = central_composite(
            corners.coded if corners else full(len(factors)),
            shape=table.shape,
            centre_points=table.centre_points,
        )
        beyond = _impossible(rows, factors)
        if beyond:
            raise ModelProblem("design", beyond)
    elif table.kind == "plackett_burman":
        rows = plackett_burman(len(factors))
    elif table.kind == "listed":
        rows = _listed(table.points, factors)
    else:
        points = _count(table.points, table.replications)
        if table.kind == "sobol":
            rows = sobol(len(factors), points, seed=seed)
        else:
            rows = latin_hypercube(len(factors), points, seed=seed, spread=table.spread)
        rows = on_levels(rows, factors)
    _limit(len(rows) * table.replications)
    if any(factor.is_whole for factor in factors):
        rows = tuple(
            tuple(settled(factor, at) for factor, at in zip(factors, row, strict=True)) for row in rows
        )
    # No regular fraction: interactions are confounded in part with main effects, as among points that somebody lists.
    kind: DesignKind = "listed" if table.kind == "plackett_burman" else table.kind
    return Design(kind=kind, coded=rows, replications=table.replications, generators=generators)


def _count(points: object, replications: int) -> int:
    if points is None:
        raise ModelProblem("design", [Problem("points", "is missing: say how many, points = 100")])
    if isinstance(points, bool) or not isinstance(points, int) or not 2 <= points * replications <= MOST_RUNS:
        what = f"got {shown(points)}: a whole number of points, from 2 to {MOST_RUNS:,} with all replications"
        raise ModelProblem("design", [Problem("points", what)])
    return points


def _limit(runs: int) -> None:
    if runs > MOST_RUNS:
        what = f"makes {runs:,} runs, at most {MOST_RUNS:,} are run: take a fraction, or a sample of points"
        raise ModelProblem("design", [Problem("kind", what)])


def _wrong_factors(table: DesignTable, factors: Sequence[Factor]) -> list[Problem]:
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
            what = "generators decide resolution and runs: leave those out"
            raise ModelProblem("design", [Problem("generators", what)])
        return Fraction.of(letters, table.generators)
    if not table.resolution and not table.runs:
        what = 'is missing: give generators = ["D=AB"], or resolution = 4, or runs = 8'
        raise ModelProblem("design", [Problem("generators", what)])
    return standard_fraction(letters, runs=table.runs, resolution=table.resolution)


def _impossible(rows: Sequence[Sequence[float]], factors: Sequence[Factor]) -> list[Problem]:
    """Tell of axial points beyond the levels where a quantity that is positive would be none any more."""
    problems = []
    for number, factor in enumerate(factors):
        least = min(lowest_of(factor, level.coded) for level in factor.levels)
        for coded in (min(row[number] for row in rows), max(row[number] for row in rows)):
            value = lowest_of(factor, coded)
            if value < 0.0 <= least or value <= 0.0 < least:
                label = level_at(factor, coded).label
                what = (
                    f'"{factor.name}" would be {label} at an axial point: take shape "inscribed" or "face_centred", '
                    "log = true, or levels that are further from 0"
                )
                problems.append(Problem("shape", what))
    return problems


def _listed(points: object, factors: Sequence[Factor]) -> tuple[tuple[float, ...], ...]:
    if not isinstance(points, list) or not points:
        what = "is missing: list the points, each a table: [{ factor = level, … }, …]"
        raise ModelProblem("design", [Problem("points", what)])
    problems: list[Problem] = []
    names = {factor.name: number for number, factor in enumerate(factors)}
    names |= {factor.letter: number for number, factor in enumerate(factors)}
    rows = []
    for number, point in enumerate(points):
        place = f"points[{number}]"
        if not isinstance(point, dict):
            problems.append(Problem(place, "is no table: write { factor = level, … }"))
            continue
        row: dict[int, float] = {}
        for name, value in point.items():
            if name not in names:
                what = f"is no factor: {did_you_mean(name, [factor.name for factor in factors])}"
                problems.append(Problem(f"{place}.{name}", what))
                continue
            try:
                row[names[name]] = coded_of(factors[names[name]], value)
            except ValueError as wrong:
                problems.append(Problem(f"{place}.{name}", str(wrong)))
        missing = [
            factor.name for at, factor in enumerate(factors) if at not in row and factor.name not in point
        ]
        if missing and not any(one.place.startswith(place) for one in problems):
            problems.append(Problem(place, f"says nothing of {', '.join(missing)}"))
        rows.append(tuple(row.get(at, 0.0) for at in range(len(factors))))
    if problems:
        raise ModelProblem("design", problems)
    return tuple(rows)
