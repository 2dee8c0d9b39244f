"""Running a study of a network on chip: matrices, loads, policies, the optimum, the flits; compare, report.

Every finished matrix of a case is on disk at once, so that a killed study goes on where it stopped.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path

from routecast import __version__
from routecast.evaluate.ledger import Columns, Ledger
from routecast.experiment.executor import finished, shared_out
from routecast.noc.simulate.run import Run
from routecast.noc.simulate.thesis import DvfsRow, table_6_1
from routecast.quantity.bounded_file import read_bytes
from routecast.report.noc.link_map import LinkMap
from routecast.study.folder import begin, write_results
from routecast.study.noc.chapters import noc_page
from routecast.study.noc.document import Case, NocStudy
from routecast.study.noc.judged import compared, criteria
from routecast.study.noc.point import Point
from routecast.study.noc.points import link_maps, points_of_matrix
from routecast.study.noc.result import CaseResult, NocResult
from routecast.study.noc.statements import statements

__all__ = ["run_noc_study"]

Progress = Callable[[int, int, str], None]

Found = str | tuple[LinkMap, ...]
"""The points of a matrix as they stand in the ledger, or the maps of a case."""

MAPS = -1
"""Stands for the number of a matrix where a case's maps are drawn."""

COLUMNS: Columns = {"task": "text", "case": "text", "matrix": "whole", "points": "text"}


def run_noc_study(
    study: NocStudy,
    out: Path,
    *,
    folder: Path,
    progress: Progress | None = None,
    command: str = "",
    workers: int | None = None,
) -> NocResult:
    """Run a study of a network on chip and write its summary, figures and report to ``out``.

    Parameters
    ----------
    study : NocStudy
    out : Path
        Made if missing.
    folder : Path
        Where files that the study names are looked for.
    progress : callable, optional
        Told what is done, of how much, and what comes next.
    workers : int, optional
        Processes; as many as there are cores if not given. The answer does not depend on it.

    Raises
    ------
    routecast.errors.RoutecastError
        A pattern does not fit its topology, or a traffic cannot be carried.
    """
    making = begin(study.name, out, command)
    tell = progress or (lambda done, total, what: None)
    tasks = [(number, matrix) for number, case in enumerate(study.case) for matrix in range(case.matrices)]
    drawn = [number for number, case in enumerate(study.case) if case.maps]
    work = len(tasks) + len(drawn) + bool(study.flits) + 1
    keys = {(number, matrix): _key(study.case[number], matrix, folder) for number, matrix in tasks}
    with Ledger(out, COLUMNS) as ledger:
        resumed = sum(key in ledger.rows for key in keys.values())
        tell(resumed, work, "power")
        calls: dict[tuple[int, int], Callable[[], Found]] = {
            task: partial(_matrix, study.case[task[0]], task[1], folder)
            for task in tasks
            if keys[task] not in ledger.rows
        }
        calls |= {(number, MAPS): partial(link_maps, study.case[number], folder) for number in drawn}
        maps: dict[int, tuple[LinkMap, ...]] = {}
        with shared_out(calls, workers) as futures:
            for count, future in enumerate(finished(futures), start=resumed + 1):
                number, matrix = futures[future]
                case = study.case[number]
                found = future.result()
                if isinstance(found, str):
                    ledger.add(
                        {
                            "task": keys[number, matrix],
                            "case": case.name,
                            "matrix": matrix,
                            "points": found,
                        }
                    )
                    ledger.flush()
                    tell(count, work, f"{case.name}, matrix {matrix + 1} of {case.matrices}")
                else:
                    maps[number] = found
                    tell(count, work, f"{case.name}, maps")
        points = {task: _unpacked(str(ledger.rows[key]["points"])) for task, key in keys.items()}
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
        before = len(tasks) + len(drawn)
        tell(before, work, "flit by flit")
        run = Run(replications=study.flits.replications, seed=study.flits.seed, drain_cycles=0)
        # Told of progress, the simulator lets Ctrl-C in.
        rows = table_6_1(run, progress=lambda share: tell(before, work, f"flit by flit, {share:.0%}"))
    result = NocResult(
        study=study,
        out=out,
        cases=cases,
        dvfs_rows=rows,
        compared=compared(study, cases),
        statements=(),
        criteria=(),
        made=making.made(trials=len(tasks), resumed=resumed),
    )
    result = replace(result, statements=statements(result), criteria=criteria(result))
    tell(work, work, "report")
    write_results(out, noc_page(result), result.to_json())
    return result


def _key(case: Case, matrix: int, folder: Path) -> str:
    """Return a hash of everything that decides a matrix' points."""
    traffic = case.traffic
    names = [name for name in (traffic.matrix, traffic.task_graph) if name is not None]
    files = [read_bytes(folder / name, kind="traffic") for name in names if (folder / name).is_file()]
    decides = {
        "version": __version__,
        "case": case.model_dump(
            mode="json", exclude={"name", "title", "source", "stated", "maps", "matrices", "simulation"}
        ),
        "files": [sha256(content).hexdigest() for content in files],
        "matrix": matrix,
    }
    return sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:32]


def _matrix(case: Case, matrix: int, folder: Path) -> str:
    """Return the points of a matrix as they stand in the ledger."""
    points = points_of_matrix(case, matrix, folder)
    return json.dumps(
        [[point.curve, point.matrix, point.load, point.relative_power, point.alphas, point.gap] for point in points]
    )


def _unpacked(text: str) -> list[Point]:
    return [
        Point(curve=curve, matrix=matrix, load=load, relative_power=power, alphas=tuple(alphas), gap=gap)
        for curve, matrix, load, power, alphas, gap in json.loads(text)
    ]
