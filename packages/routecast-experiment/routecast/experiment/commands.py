"""The command ``routecast experiment``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import data, make_out_folder, print_json, print_table, progress_bar, remark
from routecast.cli.options import AsJson, grouped

if TYPE_CHECKING:
    from routecast.experiment.analysis import Analysis
    from routecast.experiment.model import Experiment, Results
    from routecast.experiment.sweep import Shard

__all__ = ["experiment"]


_EXECUTION = "Where it runs"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionOptions:
    """Where the runs are executed, and which of them."""

    executor: Annotated[
        str,
        typer.Option(
            "--executor",
            metavar="auto|threads|processes|dask://HOST:PORT",
            help="Executor of the runs; it does not change the results.",
            rich_help_panel=_EXECUTION,
        ),
    ] = "auto"
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            min=1,
            help="Number of threads or processes; all cores if not given.",
            rich_help_panel=_EXECUTION,
        ),
    ] = None
    shard: Annotated[
        str | None,
        typer.Option(
            "--shard",
            metavar="I/N",
            help="Run only part I of N, for job arrays: 1/8, 2/8, …; all parts need the same --out.",
            rich_help_panel=_EXECUTION,
        ),
    ] = None
    join: Annotated[
        bool, typer.Option("--join", help="Run nothing; analyse the answers of the shards.", rich_help_panel=_EXECUTION)
    ] = False

    def part(self) -> Shard | None:
        """Return the part to run, None for all; raise QuantityProblem if it is no part, or is given with ``--join``."""
        from routecast.errors import QuantityProblem
        from routecast.experiment.sweep import Shard

        part = Shard.parse(self.shard) if self.shard else None
        if part and self.join:
            raise QuantityProblem(str(part), "--shard runs a part, --join joins all parts: give only one of them")
        return part


@grouped
def experiment(
    file: Annotated[Path, typer.Argument(metavar="FILE.experiment.toml", help="The experiment.", dir_okay=False)],
    *,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Folder of the results; ./NAME if not given.", file_okay=False),
    ] = None,
    as_json: AsJson = False,
    execution: ExecutionOptions,
    design_only: Annotated[
        bool, typer.Option("--design-only", help="Print the combinations of levels, and run nothing.")
    ] = False,
) -> None:
    """Run a designed experiment and report the effect of each factor, its share of the variation, and its uncertainty.

    A killed experiment continues where it stopped if it is started again with the same folder.
    """
    from routecast.evaluate.result_folder import check_folder
    from routecast.experiment.answer import unchecked_responses
    from routecast.experiment.file import read_experiment

    part = execution.part()
    definition = read_experiment(file)
    if design_only:
        _print_plan(definition, as_json=as_json)
        return
    for path in unchecked_responses(definition):
        remark(f"{path}: only a trial shows whether the wire has this entry")
    folder = out or Path(definition.name)
    check_folder(folder, "experiment", definition.name)
    if not execution.join:
        make_out_folder(folder)
    results = _results(definition, folder, execution, part)
    if part:
        remark(f"Shard {part} is done: {len(results.runs)} runs in {folder}; --join joins the shards")
        return
    command = f"routecast experiment {file}" + (f" --out {out}" if out else "")
    _analyse(results, folder, command=command, as_json=as_json)


def _results(definition: Experiment, folder: Path, execution: ExecutionOptions, part: Shard | None) -> Results:
    from routecast.experiment.run import join_experiment, run_experiment

    if execution.join:
        return join_experiment(definition, folder)
    try:
        with progress_bar(f"experiment {definition.name}") as progress:
            return run_experiment(
                definition,
                folder,
                executor=execution.executor,
                workers=execution.workers,
                shard=part,
                on_progress=progress,
            )
    except KeyboardInterrupt:
        remark(f"Finished runs are in {folder}; the same command continues from there.")
        raise


def _analyse(results: Results, folder: Path, *, command: str, as_json: bool) -> None:
    from routecast.errors import RoutecastError
    from routecast.experiment.analysis import analyse
    from routecast.experiment.run import summary_json, write_table
    from routecast.experiment.views import write_experiment
    from routecast.quantity.whole_file import write_whole

    write_table(results, folder / "results.parquet")
    failed = sum(bool(answer.problem) for answer in results.answers)
    if not any(answer.values for answer in results.answers):
        first = next(answer.problem for answer in results.answers)
        raise RoutecastError(f"none of the {failed} runs has an answer; the problem of the first: {first}")
    with progress_bar("analysis"):
        analyses = {response.name: analyse(results, response.name) for response in results.experiment.responses}
        summary = summary_json(results, analyses, command=command)
        write_experiment(results, analyses, folder, command=command)
        write_whole(folder / "summary.json", json.dumps(summary, indent=2, ensure_ascii=False) + "\n")
    if as_json:
        print_json(summary)
    else:
        _print(results, analyses)
    if results.resumed:
        remark(f"{results.resumed} runs were answered before")
    if failed:
        is_partial = any(answer.problem and answer.values for answer in results.answers)
        lack = "lack some answers" if is_partial else "have no answer"
        remark(f"{failed} of {len(results.answers)} runs {lack}; the analysis leaves them out")
    remark(f"Report: {folder / 'report.html'}")


def _print(results: Results, analyses: dict[str, Analysis]) -> None:
    from routecast.experiment.views.page import analysis_lines, missing_tables, terminal_effects

    console = data()
    console.print(results.experiment.title or results.experiment.name, style="bold", markup=False)
    if results.experiment.question:
        console.print(results.experiment.question, markup=False)
    console.print()
    for analysis in analyses.values():
        print_table(console, terminal_effects(results, analysis))
        for line in analysis_lines(results, analysis):
            console.print(line, markup=False)
        console.print()
    for table in missing_tables(results):
        print_table(console, table)


def _print_plan(definition: Experiment, *, as_json: bool) -> None:
    from routecast.experiment.run import design_json
    from routecast.experiment.runs import levels_of_row
    from routecast.experiment.views.page import MAX_ROWS, alias_lines, design_table

    if as_json:
        rows = [
            {"row": row, "coded": list(coded), "levels": [level.label for level in levels_of_row(definition, row)]}
            for row, coded in enumerate(definition.design.coded)
        ]
        print_json({"experiment": definition.name, "design": design_json(definition), "combinations": rows})
        return
    console = data()
    print_table(console, design_table(definition))
    if aliases := alias_lines(definition):
        console.print("\n".join(aliases), markup=False, end="\n\n")
    if (count := len(definition.design.coded)) > MAX_ROWS:
        remark(f"{count - MAX_ROWS:,} more rows: --json prints all")
