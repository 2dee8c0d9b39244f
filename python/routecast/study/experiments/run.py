"""Running a study of designed experiments: calibrate, run every experiment, put what was stated beside it, report.

Every answer is on disk at once, so that a killed study goes on where it stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from routecast.experiment.analysis import analyse
from routecast.experiment.answer import answer
from routecast.experiment.executor import chosen_executor, open_executor
from routecast.experiment.file.reading import experiment_of
from routecast.experiment.model import Results
from routecast.experiment.runs import runs_of
from routecast.experiment.sweep import sweep
from routecast.router.variants import vary
from routecast.study.experiments.calibrated import Setting, calibrate
from routecast.study.experiments.chapters import experiments_page
from routecast.study.experiments.document import ExperimentsStudy, Fact, StudyExperiment
from routecast.study.experiments.facts import found
from routecast.study.experiments.judged import calculated, criteria, facts_found, judged
from routecast.study.experiments.over_time import followed
from routecast.study.experiments.result import ExperimentsResult
from routecast.study.folder import begin, write_results

__all__ = ["run_experiments_study"]

Progress = Callable[[int, int, str], None]


def run_experiments_study(
    study: ExperimentsStudy,
    out: Path,
    *,
    folder: Path,
    progress: Progress | None = None,
    command: str = "",
    workers: int | None = None,
) -> ExperimentsResult:
    """Run a study of designed experiments and write its summary, figures and report to ``out``.

    Parameters
    ----------
    study : ExperimentsStudy
    out : Path
        Made if missing.
    folder : Path
        Where files that router documents name are looked for.
    progress : callable, optional
        Told what is done, of how much, and what comes next.
    workers : int, optional
        As many as there are cores if not given. The answer does not depend on it.

    Raises
    ------
    routecast.errors.RoutecastError
        A router cannot be built, or no values meet the facts that calibrate.
    """
    making = begin(study.name, out, command)
    tell = progress or (lambda done, total, what: None)
    work = len(study.experiment) + 2
    desk = _Desk(study, out, folder, workers)
    set_values, setting = calibrate(study, desk.ask, lambda what: tell(0, work, what))
    results = {}
    for number, experiment in enumerate(study.experiment):
        tell(1 + number, work, experiment.title or experiment.name)
        results[experiment.name] = desk.run(experiment, setting)
    analyses = {
        name: {response.name: analyse(one, response.name) for response in one.experiment.responses}
        for name, one in results.items()
    }
    facts = facts_found(study, results)
    courses = tuple(followed(study, one, setting, folder) for one in study.over_time)
    result = ExperimentsResult(
        study=study,
        out=out,
        calibrated=set_values,
        results=results,
        analyses=analyses,
        courses=courses,
        facts=facts,
        judged=judged(study, results),
        calculated=calculated(study),
        criteria=criteria(facts),
        made=making.made(seed=study.experiment[0].seed, trials=desk.trials, resumed=desk.resumed),
    )
    tell(work - 1, work, "report")
    write_results(out, experiments_page(result), result.to_json())
    return result


class _Desk:
    """Where experiments are run: answers that are in the study's folder are not asked for again."""

    def __init__(self, study: ExperimentsStudy, out: Path, folder: Path, workers: int | None) -> None:
        self._study = study
        self._out = out
        self._folder = folder
        self._workers = workers
        self.trials = 0
        self.resumed = 0

    def ask(self, facts: Sequence[Fact], setting: Setting) -> list[float]:
        """Return the values of facts with calibrated values in the router documents."""
        wanted = {fact.experiment for fact in facts}
        results = {
            experiment.name: self.run(experiment, setting)
            for experiment in self._study.experiment
            if experiment.name in wanted
        }
        return [found(fact, results[fact.experiment]) for fact in facts]

    def run(self, table: StudyExperiment, setting: Setting) -> Results:
        """Return the results of an experiment."""
        subject = f'experiment "{table.name}"'
        document = vary(self._study.router[table.router], setting[table.router], subject=subject)
        experiment = experiment_of(table, document, subject=subject, folder=self._folder)
        runs = runs_of(experiment)
        started = time.monotonic()
        spec = chosen_executor(experiment.evaluator, len(runs))
        with open_executor(spec, self._workers) as executor:
            answers = sweep(runs, answer, executor=executor, out=self._out)
        self.trials += len(runs)
        return Results(experiment=experiment, runs=runs, answers=answers, elapsed_s=time.monotonic() - started)
