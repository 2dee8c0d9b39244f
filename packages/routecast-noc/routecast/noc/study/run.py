"""The run of a study of networks on chip: power by matrix, load and policy, the optimum, the simulation.

Every finished matrix of a case is written at once, so that a killed study resumes where it stopped.
"""

from __future__ import annotations

import json
import math
from dataclasses import astuple, dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from statistics import fmean
from typing import Any

from routecast.evaluate.executor import answer_of, process_pool
from routecast.evaluate.ledger import Columns, Row
from routecast.noc._views.link_map import LinkMap
from routecast.noc._views.pictures import optimum_map, power_map
from routecast.noc.answer.optimum import optimum_answer
from routecast.noc.answer.power import power_answer
from routecast.noc.file import NocCase, noc_case, policy_name
from routecast.noc.planes.whole_flows import whole_flow_bound
from routecast.noc.simulate._design import SimulationPhases
from routecast.noc.simulate._li2012 import DvfsRow, table_6_1
from routecast.noc.study.document import FOUR_PHASE, SEARCH, Case, CurveStatement, NocStudy, OwnCriterion, StatedPower
from routecast.quantity.bounded_file import read_bytes
from routecast.quantity.comparison import ComparedRow
from routecast.study.engine import StudyRun, StudyTask
from routecast.study.result import Criterion, Statement, StudyResult, criteria_of
from routecast.version import VERSION

__all__ = [
    "BOUND",
    "NO_DVFS",
    "WHOLE_FLOWS",
    "CaseResult",
    "NocResult",
    "PowerPoint",
    "answer",
    "closed_ratio",
    "compared",
    "criteria",
    "curve_name",
    "own_comparisons",
    "points_of_matrix",
]


NO_DVFS = "no_dvfs"
"""XY routing on one plane at full voltage: power grows in proportion to the load."""

BOUND = "optimum"
"""The proven lower bound: no splitting over paths and planes needs less."""

WHOLE_FLOWS = "whole_flows"
"""The lower bound of unsplit flows, over any planes and paths."""

REFERENCE_NAMES = {NO_DVFS: "NoDVFS", WHOLE_FLOWS: "bound, whole", BOUND: "bound, split"}
PRINTED_ALLOCATIONS = ("balance", "mini", "four_phase")
"""The allocations that Li (2012) prints for two planes."""


def curve_name(curve: str) -> str:
    """Return the name of a curve in tables and figures.

    Examples
    --------
    >>> curve_name("no_dvfs"), curve_name("four_phase")
    ('NoDVFS', '2P-4PHASE')
    """
    if curve in REFERENCE_NAMES:
        return REFERENCE_NAMES[curve]
    return f"2P-{policy_name(curve)}" if curve in PRINTED_ALLOCATIONS else policy_name(curve)


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerPoint:
    """Power of one policy for one matrix at one load.

    ``curve``: the policy: a routing, an allocation, :data:`NO_DVFS` or :data:`BOUND`; ``matrix``: number of the traffic
    matrix; ``load``: normalised load (eq. 6.7 or 7.13); ``relative_power``: power relative to :data:`NO_DVFS` at load 1
    of the same matrix; ``alphas``: expansion factor of each plane; ``gap``: of the bound: distance of the best known
    flow above it, relative to that flow.
    """

    curve: str
    matrix: int
    load: float
    relative_power: float
    alphas: tuple[float, ...]
    gap: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerComparison(ComparedRow[StatedPower]):
    """A stated power and the computed power; all relative to no scaling at load 1."""

    case: str

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {
            "case": self.case,
            "curve": self.conditions.curve,
            "load": self.conditions.load,
            "where": self.conditions.place,
            "stated_relative_power": self.stated,
            "at_most": self.conditions.at_most,
            "relative_power": self.predicted,
            "error_ratio": self.error_ratio,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnComparison(ComparedRow[OwnCriterion]):
    """A criterion of the study that no source states, and the computed power."""

    case: str

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {
            "case": self.case,
            "curve": self.conditions.curve,
            "load": self.conditions.load,
            "why": self.conditions.why,
            "at_most_relative_power": self.stated,
            "relative_power": self.predicted,
            "error_ratio": self.error_ratio,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """One traffic pattern: every curve over the loads."""

    case: Case
    points: tuple[PowerPoint, ...]
    maps: tuple[LinkMap, ...] = ()

    @property
    def loads(self) -> tuple[float, ...]:
        """Normalised loads, rising."""
        return tuple(sorted(set(self.case.traffic.load)))

    @property
    def curves(self) -> tuple[str, ...]:
        """Names of the curves, in the order of the study."""
        return tuple(dict.fromkeys(point.curve for point in self.points))

    def at(self, curve: str, load: float) -> tuple[PowerPoint, ...]:
        """Return a curve's points of all matrices at a load."""
        return tuple(point for point in self.points if point.curve == curve and abs(point.load - load) < 1e-9)

    def mean(self, curve: str, load: float) -> float:
        """Return the mean of a curve's relative power over the matrices; NaN unless it carries all of them."""
        points = self.at(curve, load)
        if len(points) < self.case.matrices:
            return math.nan
        return fmean(point.relative_power for point in points)

    def whole_flow_bound(self, load: float) -> float:
        """Return the mean over the matrices of the larger of the two lower bounds for whole flows.

        NaN where there is none.
        """
        bounds = [self.at(curve, load) for curve in (BOUND, WHOLE_FLOWS) if curve in self.curves]
        if not bounds or any(len(points) < self.case.matrices for points in bounds):
            return math.nan
        return fmean(max(point.relative_power for point in points) for points in zip(*bounds, strict=True))

    def factor(self, curve: str, load: float) -> float:
        """Return the ratio of the mean power without scaling to the mean power of a curve at a load."""
        return self.mean(NO_DVFS, load) / self.mean(curve, load)

    def worst_gap(self, load: float) -> float:
        """Return the largest proven gap of the optimum at a load; NaN where there is none."""
        return max((point.gap for point in self.at(BOUND, load)), default=math.nan)


@dataclass(frozen=True, slots=True, kw_only=True)
class NocResult(StudyResult[NocStudy]):
    """The results of a study of a network on chip."""

    cases: tuple[CaseResult, ...]
    dvfs_rows: tuple[DvfsRow, ...]
    compared: tuple[PowerComparison, ...]
    own: tuple[OwnComparison, ...] = ()
    statements: tuple[Statement, ...] = ()

    def _findings(self) -> dict[str, object]:
        cases = [
            {
                "name": case.case.name,
                "curves": [
                    {
                        "curve": curve,
                        "loads": case.loads,
                        "relative_power": [case.mean(curve, load) for load in case.loads],
                    }
                    for curve in case.curves
                ],
                "gap_ratio": [case.worst_gap(load) for load in case.loads],
            }
            for case in self.cases
        ]
        return {
            "cases": cases,
            "flit_level": self.dvfs_rows,
            "stated": self.compared,
            "own": self.own,
            "statements": self.statements,
        }


ROUNDING = 1e-9


def compared(cases: tuple[CaseResult, ...]) -> tuple[PowerComparison, ...]:
    """Return every stated power of every case beside the computed power."""
    return tuple(PowerComparison(**_comparison_fields(case, stated)) for case in cases for stated in case.case.stated)


def own_comparisons(cases: tuple[CaseResult, ...]) -> tuple[OwnComparison, ...]:
    """Return every criterion of the study that no source states, beside the computed power."""
    return tuple(OwnComparison(**_comparison_fields(case, own)) for case in cases for own in case.case.own)


def _comparison_fields(case: CaseResult, bound: StatedPower | OwnCriterion) -> dict[str, Any]:
    predicted = case.mean(bound.curve, bound.load)
    return {"case": case.case.name, "conditions": bound, "stated": bound.relative_power, "predicted": predicted}


def closed_ratio(result: CaseResult, load: float) -> float:
    """Return the share of the distance from 2P-4PHASE to the lower bound that routecast's allocation closes.

    The bound is the larger of the bounds for split and for whole flows. The share is 1 also where there is no distance,
    below 0 where routecast's allocation needs more power, and NaN where one of the three powers is missing.
    """
    four_phase, search = result.mean(FOUR_PHASE, load), result.mean(SEARCH, load)
    bound = result.whole_flow_bound(load)
    if four_phase <= bound * (1 + ROUNDING) and not math.isnan(search):
        return float(search <= four_phase * (1 + ROUNDING))
    return (four_phase - search) / (four_phase - bound)


def criteria(result: NocResult) -> tuple[Criterion, ...]:
    """Return the criteria of the study and the values that the results reach."""
    bounds = result.study.criteria
    limits: list[tuple[str, float | None, float]] = []
    for pair in result.compared:
        error = pair.error_ratio if pair.conditions.at_most else abs(pair.error_ratio)
        limits.append((f"{pair.case}, {curve_name(pair.conditions.curve)}", pair.conditions.within, error))
    for own in result.own:
        name = f"{own.case}, {curve_name(own.conditions.curve)}, a criterion of the study"
        limits.append((name, own.conditions.within, own.error_ratio))
    if result.dvfs_rows:
        worst = max(abs(row.ratio.value / row.theory - 1.0) for row in result.dvfs_rows)
        limits.append(("flit level against alpha squared", bounds.flit_ratio, worst))
    gaps = [case.worst_gap(load) for case in result.cases if case.case.has_optimum for load in case.loads]
    # A load without an optimum misses the criterion.
    worst = max(gaps, default=math.nan) if all(map(math.isfinite, gaps)) else math.nan
    limits.append(("gap of the optimum", bounds.gap, worst))
    if bounds.closed is not None:
        limits += [
            (
                f"{case.case.name}, remaining share of the distance from 2P-4PHASE to the bound",
                1.0 - bounds.closed,
                1.0 - closed_ratio(case, max(case.loads)),
            )
            for case in result.cases
            if {SEARCH, FOUR_PHASE, BOUND} <= set(case.curves)
        ]
    return criteria_of(*limits)


def points_of_matrix(case: Case, matrix: int, folder: Path) -> list[PowerPoint]:
    """Return the points of every curve at every load for one matrix of a case.

    A curve has no point at a load that overloads one of its links, nor where its allocation fails.

    Raises RoutecastError: the case contradicts itself, or its traffic does not fit its grid.
    """
    noc = _case_of_matrix(case, matrix, folder)
    answer = power_answer(noc)
    # Power without scaling is proportional to the load: this is its value at load 1, even if XY cannot carry it.
    unscaled = answer.rows[0].no_dvfs_power / answer.rows[0].load or 1.0
    points = [
        PowerPoint(curve=row.key, matrix=matrix, load=row.load, relative_power=row.power / unscaled, alphas=row.alphas)
        for row in answer.rows
        if row.power is not None
    ]
    if noc.has_planes:
        points += [_whole_flow_point(noc, matrix, load, unscaled) for load in noc.loads]
    if case.has_optimum:
        points += [
            PowerPoint(
                curve=BOUND,
                matrix=matrix,
                load=row.load,
                relative_power=row.optimum.lower_bound / unscaled,
                alphas=tuple(plane.alpha for plane in row.optimum.planes),
                gap=row.optimum.gap,
            )
            for row in optimum_answer(noc, power=answer, skips_overload=True).rows
        ]
    return points


def _whole_flow_point(noc: NocCase, matrix: int, load: float, unscaled: float) -> PowerPoint:
    power = whole_flow_bound(noc.topology, noc.demand(load), noc.scalings, widths=noc.widths)
    return PowerPoint(curve=WHOLE_FLOWS, matrix=matrix, load=load, relative_power=power / unscaled, alphas=())


def link_maps(case: Case, folder: Path) -> tuple[LinkMap, ...]:
    """Return the maps that a case asks for: its first matrix at the highest load."""
    curves = tuple(curve for curve in case.maps if curve != BOUND)
    if not case.maps:
        return ()
    load = max(case.traffic.load)
    mapped_case = case.model_copy(
        update={
            "traffic": case.traffic.model_copy(update={"load": (load,)}),
            "planes": case.planes
            and case.planes.model_copy(
                update={"allocations": tuple(name for name in case.planes.allocations if name in curves)}
            ),
        }
    )
    answer = power_answer(_case_of_matrix(mapped_case, 0, folder))
    maps = [power_map(answer, load, keys=curves)] if curves else []
    if BOUND in case.maps:
        optimum = optimum_answer(answer.case, power=answer, skips_overload=True)
        maps += [optimum_map(optimum, row) for row in optimum.rows]
    return tuple(maps)


def _case_of_matrix(case: Case, matrix: int, folder: Path) -> NocCase:
    """Return the case with the seeds of one of its matrices."""
    traffic, routing = case.traffic, case.routing
    if traffic.pattern == "normal":
        first_seed = 1 if traffic.seed is None else traffic.seed
        traffic = traffic.model_copy(update={"seed": first_seed + matrix})
    routing = routing.model_copy(update={"seed": routing.seed + matrix})
    changed = case.model_copy(update={"traffic": traffic, "routing": routing})
    return noc_case(changed, subject=case.name, folder=folder)


def statements(result: NocResult) -> tuple[Statement, ...]:
    """Return the statements of the source about each case, beside the results at the highest load."""
    return tuple(
        Statement(
            says=f"{case.case.name}: {statement.says}",
            where=statement.place,
            stated=statement.stated,
            here=_reported_quantity(statement, case, max(case.loads)),
        )
        for case in result.cases
        for statement in case.case.statement
    )


def _reported_quantity(statement: CurveStatement, result: CaseResult, load: float) -> str:
    """Return the result for the quantity of a statement."""
    if statement.of == "least":
        least = min(result.mean(curve, load) for curve in result.curves if curve != NO_DVFS)
        return f"least power {least:.3f} of no scaling"
    if statement.of == "factor":
        factors = [result.factor(curve, load) for curve in (statement.curve, statement.than) if curve]
        return " against ".join(f"{factor:.2f}" for factor in factors)
    power, other = result.mean(statement.curve, load), result.mean(statement.than, load)
    ratio = power / other
    if math.isnan(ratio):
        return "not known"
    if statement.of == "points":
        return f"{100 * (other - power):.1f} points of NoDVFS, a ratio of {100 * (1 - ratio):.1f} %".replace("-", "−")
    if statement.of == "times":
        return f"{ratio:.3f} times"
    percent = f"{100 * (1 - ratio):.1f} %" if statement.of == "less" else f"{100 * (ratio - 1):+.1f} %"
    return percent.replace("-", "−")


COLUMNS: Columns = {"task": "text", "case": "text", "matrix": "whole", "points": "text"}


def answer(run: StudyRun[NocStudy], *, workers: int | None = None) -> NocResult:
    """Compute the power of every matrix, load and policy, the optimum, and the flit-level results.

    Raises RoutecastError: a pattern does not fit its topology, or a traffic cannot be carried.
    """
    study, folder = run.study, run.folder
    matrices = [(number, matrix) for number, case in enumerate(study.case) for matrix in range(case.matrices)]
    mapped = [number for number, case in enumerate(study.case) if case.maps]
    run.work = len(matrices) + len(mapped) + bool(study.flits) + 1
    with run.ledger(COLUMNS) as ledger, process_pool(workers) as submit:
        map_futures = {number: submit(partial(link_maps, study.case[number], folder)) for number in mapped}
        answers = run.complete(
            ledger,
            [_task(study.case[number], matrix, folder) for number, matrix in matrices],
            submit=submit,
            flush_each=True,
        )
        maps = {number: answer_of(future) for number, future in map_futures.items()}
    run.done += len(mapped)
    points = {key: _points_of_text(str(row["points"])) for key, row in zip(matrices, answers, strict=True)}
    cases = tuple(
        CaseResult(
            case=case,
            points=tuple(point for matrix in range(case.matrices) for point in points[number, matrix]),
            maps=maps.get(number, ()),
        )
        for number, case in enumerate(study.case)
    )
    rows: tuple[DvfsRow, ...] = ()
    if study.flits:
        run.report_step("flit by flit")
        flits = SimulationPhases(replications=study.flits.replications, seed=study.flits.seed, drain_cycles=0)
        # With a progress callback the simulator checks for Ctrl-C.
        rows = table_6_1(flits, on_progress=lambda share: run.report_step(f"flit by flit, {share:.0%}"))
        run.done += 1
    result = NocResult(
        study=study,
        out=run.out,
        cases=cases,
        dvfs_rows=rows,
        compared=compared(cases),
        own=own_comparisons(cases),
        provenance=run.provenance(),
    )
    return replace(result, statements=statements(result), criteria=criteria(result))


def _key(case: Case, matrix: int, folder: Path) -> str:
    """Return a hash of all inputs of the points of a matrix."""
    traffic = case.traffic
    names = [name for name in (traffic.matrix, traffic.task_graph) if name is not None]
    files = [read_bytes(folder / name, kind="traffic") for name in names if (folder / name).is_file()]
    inputs = {
        "version": VERSION,
        "case": case.model_dump(
            mode="json",
            exclude={"name", "title", "source", "stated", "own", "statement", "maps", "matrices", "simulation"},
        ),
        "files": [sha256(content).hexdigest() for content in files],
        "matrix": matrix,
    }
    return sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:32]


def _task(case: Case, matrix: int, folder: Path) -> StudyTask:
    return StudyTask(
        key=_key(case, matrix, folder),
        title=f"{case.name}, matrix {matrix + 1} of {case.matrices}",
        call=partial(_ledger_row, case, matrix, folder),
        cells={"case": case.name, "matrix": matrix},
    )


def _ledger_row(case: Case, matrix: int, folder: Path) -> Row:
    """Return the points of a matrix as rows of the ledger."""
    points = points_of_matrix(case, matrix, folder)
    return {"points": json.dumps([astuple(point) for point in points])}


def _points_of_text(text: str) -> list[PowerPoint]:
    return [
        PowerPoint(curve=curve, matrix=matrix, load=load, relative_power=power, alphas=tuple(alphas), gap=gap)
        for curve, matrix, load, power, alphas, gap in json.loads(text)
    ]
