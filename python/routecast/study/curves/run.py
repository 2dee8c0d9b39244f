"""Running a study of curves: calibrate, simulate every curve, put what was stated beside it, report.

Every simulated point is on disk at once, so that a killed study goes on where it stopped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from routecast import __version__
from routecast.evaluate.ledger import Columns, Ledger
from routecast.experiment.executor import Submit, crew, finished
from routecast.study.curves.calibrated import ROUNDS, calibrate, calibrating
from routecast.study.curves.chapters import curves_page
from routecast.study.curves.document import Curve, CurveStudy, Figure
from routecast.study.curves.judged import compared, criteria, statements
from routecast.study.curves.point import Point, packed, point, unpacked
from routecast.study.curves.result import CurveResult, FigureResult, Passed
from routecast.study.curves.routers import Setting, document_of, load_of
from routecast.study.folder import begin, write_results

__all__ = ["run_curve_study"]

Progress = Callable[[int, int, str], None]

COLUMNS: Columns = {
    "task": "text",
    "figure": "text",
    "curve": "text",
    "offered_pps": "number",
    "point": "text",
}


def run_curve_study(
    study: CurveStudy,
    out: Path,
    *,
    folder: Path,
    progress: Progress | None = None,
    command: str = "",
    workers: int | None = None,
) -> CurveResult:
    """Run a study of curves and write its summary, figures and report to ``out``.

    Parameters
    ----------
    study : CurveStudy
    out : Path
        Made if missing.
    folder : Path
        Where files that router documents name are looked for.
    progress : callable, optional
        Told what is done, of how much, and what comes next.
    workers : int, optional
        Processes; as many as there are cores if not given. The answer does not depend on it.

    Raises
    ------
    routecast.errors.RoutecastError
        A router cannot be built, or no cost meets a stated value that calibrates.
    """
    making = begin(study.name, out, command)
    tell = progress or (lambda done, total, what: None)
    rounds = len(calibrating(study)) * (ROUNDS if len(calibrating(study)) > 1 else 1)
    with Ledger(out, COLUMNS) as ledger, crew(workers) as submit:
        desk = _Desk(study, folder, ledger, submit)
        work = rounds + sum(len(figure.curve) * len(figure.offered) for figure in study.figure) + 1
        done = 0

        def calibrates(what: str) -> None:
            nonlocal done
            tell(done, work, f"calibrate: {what}")
            done += 1

        set_costs, setting = calibrate(study, desk.ask, calibrates)
        tell(rounds, work, "curves")
        figures = desk.figures(setting, lambda count, what: tell(rounds + count, work, what))
        passed = desk.passed(setting)
    told = statements(figures)
    rates = compared(figures)
    result = CurveResult(
        study=study,
        out=out,
        calibrated=set_costs,
        figures=figures,
        compared=rates,
        passed=passed,
        statements=tuple(statement for statement, _ in told),
        criteria=criteria(study, rates, told, passed),
        made=making.made(seed=study.run.seed, trials=desk.trials, resumed=desk.resumed),
    )
    tell(work - 1, work, "report")
    write_results(out, curves_page(result), result.to_json())
    return result


class _Desk:
    """Where points are asked for: from the ledger if they are there, else simulated, several at a time."""

    def __init__(self, study: CurveStudy, folder: Path, ledger: Ledger, submit: Submit) -> None:
        self._study = study
        self._folder = folder
        self._ledger = ledger
        self._submit = submit
        self.trials = 0
        self.resumed = 0

    def ask(self, figure: Figure, curve: Curve, offered: Sequence[float], setting: Setting) -> list[Point]:
        """Return points of a curve; used by the calibration."""
        wanted = {number: self._task(figure, curve, load, setting) for number, load in enumerate(offered)}
        found = self._points(wanted)
        return [found[number] for number in wanted]

    def figures(self, setting: Setting, tell: Callable[[int, str], None]) -> tuple[FigureResult, ...]:
        """Return all points of all figures."""
        wanted = {
            (f, c, o): self._task(figure, curve, load, setting)
            for f, figure in enumerate(self._study.figure)
            for c, curve in enumerate(figure.curve)
            for o, load in enumerate(figure.offered)
        }
        found = self._points(wanted, tell)
        return tuple(
            FigureResult(
                figure=figure,
                curves={
                    curve.name: tuple(found[f, c, o] for o in range(len(figure.offered)))
                    for c, curve in enumerate(figure.curve)
                },
            )
            for f, figure in enumerate(self._study.figure)
        )

    def passed(self, setting: Setting) -> tuple[Passed, ...]:
        """Return what each flow passes where that is stated."""
        stated = [(figure, passing) for figure in self._study.figure for passing in figure.passing]
        wanted = {
            number: self._task(
                figure,
                next(curve for curve in figure.curve if curve.name == passing.curve),
                passing.at,
                setting,
                by_flow=True,
            )
            for number, (figure, passing) in enumerate(stated)
        }
        found = self._points(wanted)
        return tuple(
            Passed(figure=figure.name, passing=passing, found=found[number].passes)
            for number, (figure, passing) in enumerate(stated)
        )

    def _task(
        self, figure: Figure, curve: Curve, offered_pps: float, setting: Setting, *, by_flow: bool = False
    ) -> _Task:
        document = document_of(self._study, curve, setting)
        traffic = (curve.traffic or figure.traffic).model_dump(mode="json")
        decides = {
            "version": __version__,
            "run": self._study.run.model_dump(mode="json"),
            "document": document,
            "traffic": traffic,
            "offered_pps": offered_pps,
            "by_flow": by_flow,
        }
        key = sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:32]
        subject = f'router "{curve.router}", curve "{curve.name}"'
        call = partial(
            point,
            document,
            subject,
            self._folder,
            load_of(figure, curve, offered_pps),
            self._study.run,
            by_flow=by_flow,
        )
        return key, call, {"figure": figure.name, "curve": curve.name, "offered_pps": offered_pps}

    def _points(
        self, wanted: dict[Any, _Task], tell: Callable[[int, str], None] = lambda count, what: None
    ) -> dict[Any, Point]:
        rows = self._ledger.rows
        missing = {key: call for key, call, _ in wanted.values() if key not in rows}
        about = {key: labels for key, _, labels in wanted.values()}
        count = len(wanted) - len(missing)
        self.resumed += count
        self.trials += len(wanted)
        futures = {self._submit(call): key for key, call in missing.items()}
        for future in finished(futures):
            key = futures[future]
            self._ledger.add({"task": key, **about[key], "point": packed(future.result())})
            count += 1
            tell(count, f"{about[key]['figure']}, {about[key]['curve']}")
        return {place: unpacked(str(rows[key]["point"])) for place, (key, _, _) in wanted.items()}


_Task = tuple[str, Callable[[], Point], dict[str, str | float]]
"""The key of a point, how it is found, and the columns that say what it is."""
