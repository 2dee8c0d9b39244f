"""Running a study of a network on chip: matrices, loads, policies, the optimum, the flits; compare, report.

Every finished matrix of a case is on disk at once, so that a killed study goes on where it stopped.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path

from routecast import __version__
from routecast.evaluate.ledger import Columns, Ledger
from routecast.noc.simulate.run import Run
from routecast.noc.simulate.thesis import DvfsRow, table_6_1
from routecast.study.folder import check_folder, versions, write_results
from routecast.study.noc.chapters import noc_page
from routecast.study.noc.document import Case, NocStudy
from routecast.study.noc.judged import compared, criteria
from routecast.study.noc.point import Point
from routecast.study.noc.points import link_maps, points_of_matrix
from routecast.study.noc.result import CaseResult, NocResult
from routecast.study.noc.statements import statements
from routecast.study.result import Made

__all__ = ["run_noc_study"]

Progress = Callable[[int, int, str], None]

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
    started = time.monotonic()
    check_folder(out, study.name)
    tell = progress or (lambda done, total, what: None)
    tasks = [(number, matrix) for number, case in enumerate(study.case) for matrix in range(case.matrices)]
    work = len(tasks) + bool(study.flits) + 1
    keys = {task: _key(study.case[task[0]], task[1]) for task in tasks}
    with Ledger(out, COLUMNS) as ledger:
        resumed = sum(key in ledger.rows for key in keys.values())
        missing = [task for task in tasks if keys[task] not in ledger.rows]
        tell(resumed, work, "power")
        # Spawned processes: a fork would copy the threads' locks of the optimiser.
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            futures = {
                pool.submit(points_of_matrix, study.case[number], matrix, folder): (number, matrix)
                for number, matrix in missing
            }
            try:
                for count, future in enumerate(as_completed(futures), start=resumed + 1):
                    number, matrix = futures[future]
                    case = study.case[number]
                    ledger.add(
                        {
                            "task": keys[number, matrix],
                            "case": case.name,
                            "matrix": matrix,
                            "points": json.dumps([_packed(point) for point in future.result()]),
                        }
                    )
                    tell(count, work, f"{case.name}, matrix {matrix + 1} of {case.matrices}")
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        found = {task: _unpacked(str(ledger.rows[key]["points"])) for task, key in keys.items()}
    cases = tuple(
        CaseResult(
            case=case,
            points=tuple(point for matrix in range(case.matrices) for point in found[number, matrix]),
            maps=link_maps(case, folder),
        )
        for number, case in enumerate(study.case)
    )
    rows: tuple[DvfsRow, ...] = ()
    if study.flits:
        tell(len(tasks), work, "flit by flit")
        run = Run(replications=study.flits.replications, seed=study.flits.seed, drain_cycles=0)
        rows = table_6_1(run)
    result = NocResult(
        study=study,
        out=out,
        cases=cases,
        dvfs_rows=rows,
        compared=compared(study, cases),
        statements=(),
        criteria=(),
        made=Made(
            versions=versions(),
            seed=0,
            command=command or f"routecast study {study.name}",
            trials=len(tasks),
            resumed_trials=resumed,
            elapsed_s=0.0,
        ),
    )
    result = replace(result, statements=statements(result), criteria=criteria(result))
    result = replace(result, made=replace(result.made, elapsed_s=time.monotonic() - started))
    tell(work, work, "report")
    write_results(out, noc_page(result), result.to_json())
    return result


def _key(case: Case, matrix: int) -> str:
    """Return a hash of everything that decides a matrix' points."""
    decides = {
        "version": __version__,
        "case": case.model_dump(
            mode="json", exclude={"name", "title", "source", "stated", "maps", "matrices"}
        ),
        "matrix": matrix,
    }
    return sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:32]


def _packed(point: Point) -> list[object]:
    return [point.curve, point.matrix, point.load, point.relative_power, list(point.alphas), point.gap]


def _unpacked(text: str) -> list[Point]:
    return [
        Point(curve=curve, matrix=matrix, load=load, relative_power=power, alphas=tuple(alphas), gap=gap)
        for curve, matrix, load, power, alphas, gap in json.loads(text)
    ]
