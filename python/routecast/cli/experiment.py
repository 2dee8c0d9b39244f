"""``routecast experiment``: designed experiments."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from routecast.cli.console import data, make_out_folder, print_json, print_table, progress_bar, remark
from routecast.report.tables import Column, Table, percent

if TYPE_CHECKING:
    from routecast.experiment.analysis import Analysis, Effect
    from routecast.experiment.model import Experiment, Results
    from routecast.experiment.sweep import Shard
    from routecast.report.experiment.scale import Scale

__all__ = ["experiment"]


_WHERE = "Where it runs"


def experiment(
    file: Annotated[Path, typer.Argument(metavar="FILE.experiment.toml", help="The experiment.", dir_okay=False)],
    *,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Folder of the results; ./NAME if not given.", file_okay=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON document.")] = False,
    executor: Annotated[
        str,
        typer.Option(
            "--executor",
            metavar="auto|threads|processes|dask://HOST:PORT",
            help="Where runs are computed; the results are the same.",
            rich_help_panel=_WHERE,
        ),
    ] = "auto",
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=1, help="How many; as there are cores if not given.", rich_help_panel=_WHERE),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(
            "--shard",
            metavar="I/N",
            help="Run only this part of N, for arrays of jobs: 1/8, 2/8, …; all with the same --out.",
            rich_help_panel=_WHERE,
        ),
    ] = None,
    join: Annotated[
        bool,
        typer.Option("--join", help="Run nothing; analyse what the shards left.", rich_help_panel=_WHERE),
    ] = False,
    design_only: Annotated[
        bool, typer.Option("--design-only", help="Print which runs there would be, and run nothing.")
    ] = False,
) -> None:
    """Run a designed experiment: effects of factors, their share of the variation, what is certain and what is not.

    An experiment that was killed goes on where it stopped when it is started again with the same folder.
    """
    from routecast.errors import QuantityProblem
    from routecast.evaluate.result_folder import check_folder
    from routecast.experiment.answer.entries import only_trials_know
    from routecast.experiment.file.reading import read_experiment
    from routecast.experiment.sweep import Shard

    part = Shard.parse(shard) if shard else None
    if part and join:
        raise QuantityProblem(str(part), "--shard runs a part, --join puts the parts together: give one of them")
    asked = read_experiment(file)
    if design_only:
        _print_plan(asked, as_json=as_json)
        return
    for of in only_trials_know(asked):
        remark(f"{of}: whether the wire has this entry only its trials can tell")
    folder = out or Path(asked.name)
    check_folder(folder, "experiment", asked.name)
    if not join:
        make_out_folder(folder)
    results = _results(asked, folder, executor=executor, workers=workers, shard=part, join=join)
    if part:
        remark(f"Shard {part} is done: {len(results.runs)} runs in {folder}; --join puts the parts together")
        return
    command = f"routecast experiment {file}" + (f" --out {out}" if out else "")
    _analyse(results, folder, command=command, as_json=as_json)


def _results(
    asked: Experiment,
    folder: Path,
    *,
    executor: str,
    workers: int | None,
    shard: Shard | None,
    join: bool,
) -> Results:
    from routecast.experiment.run import join_experiment, run_experiment

    if join:
        return join_experiment(asked, folder)
    try:
        with progress_bar(f"experiment {asked.name}") as progress:
            return run_experiment(asked, folder, executor=executor, workers=workers, shard=shard, progress=progress)
    except KeyboardInterrupt:
        remark(f"What is finished is in {folder}; the same command goes on from there.")
        raise


def _analyse(results: Results, folder: Path, *, command: str, as_json: bool) -> None:
    from routecast.errors import RoutecastError
    from routecast.experiment.analysis import analyse
    from routecast.experiment.summary import summary_json, write_table
    from routecast.quantity.whole_file import write_whole
    from routecast.report.experiment import write_experiment

    write_table(results, folder / "results.parquet")
    failed = sum(bool(answer.problem) for answer in results.answers)
    if not any(answer.values for answer in results.answers):
        first = next(answer.problem for answer in results.answers)
        raise RoutecastError(f"none of the {failed} runs has an answer; the first says: {first}")
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
        remark(f"{results.resumed} runs were there already")
    if failed:
        lack = "have no answer" if not any(one.problem and one.values for one in results.answers) else "lack answers"
        remark(f"{failed} of {len(results.answers)} runs {lack}; the others are analysed without them")
    remark(f"Report: {folder / 'report.html'}")


def _print(results: Results, analyses: dict[str, Analysis]) -> None:
    console = data()
    console.print(results.experiment.title or results.experiment.name, style="bold", markup=False)
    if results.experiment.question:
        console.print(results.experiment.question, markup=False)
    console.print()
    for analysis in analyses.values():
        print_analysis(console, results, analysis)
    print_missing(console, results)


def _print_plan(asked: Experiment, *, as_json: bool) -> None:
    from routecast.experiment.runs import levels_of_row
    from routecast.experiment.summary import design_json

    if as_json:
        rows = [
            {
                "row": row,
                "coded": list(coded),
                "levels": [level.label for level in levels_of_row(asked, row)],
            }
            for row, coded in enumerate(asked.design.coded)
        ]
        print_json({"experiment": asked.name, "design": design_json(asked), "combinations": rows})
        return
    print_design(data(), asked)
    if told := most_shown(len(asked.design.coded)):
        remark(told)


# An experiment on a terminal: its plan, the effects of each response, what they mean in plain words.


MOST_ROWS = 64
MOST_EFFECTS = 12
MOST_NAMED = 5
MOST_ALIASES = 4


def most_shown(count: int) -> str:
    """Say that not everything is shown; empty where it is."""
    return f"{count - MOST_ROWS:,} more rows: --json has them all" if count > MOST_ROWS else ""


def print_design(console: Console, experiment: Experiment) -> None:
    """Print which combinations of levels are tried, and what a fraction confounds."""
    from routecast.experiment.runs import levels_of_row

    design = experiment.design
    factors = experiment.factors
    rows: list[tuple[str | int, ...]] = [
        (row + 1, *(level.label for level in levels_of_row(experiment, row)))
        for row in range(min(len(design.coded), MOST_ROWS))
    ]
    replicated = f", {design.replications} runs of each" if design.replications > 1 else ""
    print_table(
        console,
        Table(
            name="design",
            title=f"{_words(design.kind)}: {len(design.coded):,} combinations{replicated}",
            caption="",
            columns=(
                Column(title="Row", form="d"),
                *(Column(title=f"{one.letter}: {one.name}", align="left") for one in factors),
            ),
            rows=tuple(rows),
        ),
    )
    _print_aliases(console, experiment)


def _print_aliases(console: Console, experiment: Experiment) -> None:
    from routecast.experiment.designs.fractional import fraction_of

    fraction = fraction_of(experiment.design, experiment.factors)
    if fraction is None:
        return
    relation = " = ".join(("I", *fraction.defining_relation))
    console.print(f"Resolution {fraction.resolution}, defining relation {relation}.", markup=False)
    chains = [" = ".join(chain) for chain in fraction.alias_chains() if len(chain) > 1]
    if chains:
        console.print(f"Cannot be told apart: {'; '.join(chains)}.", markup=False)
    console.print()


def print_analysis(console: Console, results: Results, analysis: Analysis) -> None:
    """Print the effects on one response: how large, what share of the variation, how certain, what it means."""
    from routecast.report.experiment.scale import scale_of
    from routecast.report.experiment.words import answer_said, surface_said

    scale = scale_of(results, analysis.response)
    print_table(console, _effects(analysis, scale))
    said = [answer_said(results, analysis, scale), surface_said(results.experiment, analysis, scale)]
    for line in dict.fromkeys([*said, *_remarks(results.experiment, analysis)]):
        if line:
            console.print(line.replace("**", ""), markup=False)
    console.print()


def _effects(analysis: Analysis, scale: Scale) -> Table:
    """Return the effects in Jain's notation; those told from noise are strong."""
    effects = analysis.effects[:MOST_EFFECTS]
    left_out = len(analysis.effects) - len(effects)

    def interval(low: float | None, high: float | None) -> str:
        if low is None or high is None:
            return ""
        return f"{scale.analysed(low):.4g} to {scale.analysed(high):.4g}".replace("-", "−")

    rows: list[tuple[str | float | None, ...]] = []
    if analysis.mean is not None:
        mean = scale.analysed(analysis.mean)
        rows.append(("q_0", "mean", None, mean, interval(analysis.mean_low, analysis.mean_high)))
    rows += [
        (
            f"q_{one.name}",
            one.label,
            one.share_ratio,
            None if one.value is None else scale.analysed(one.value),
            interval(one.low, one.high),
        )
        for one in effects
    ]
    if analysis.error_df:
        what = "what the model leaves" if analysis.s_e is None else "noise, and what the model leaves"
        rows.append(("e", what, analysis.error_share_ratio, None, ""))
    first = 0 if analysis.mean is None else 1
    return Table(
        name="effects",
        title=f"Effects on {scale.analysed_axis}",
        caption=f"{left_out} smaller effects are in the report." if left_out else "",
        columns=(
            Column(title="", align="left"),
            Column(title="Effect of", align="left"),
            Column(title="Explains", unit="%", form=percent),
            Column(title="Effect", unit=scale.unit if analysis.transform == "none" else ""),
            Column(
                title=f"{100.0 * analysis.confidence:.3g} % interval",
                align="left",
                wide=not any(row[-1] for row in rows),
            ),
        ),
        rows=tuple(rows),
        strong=frozenset(number for number, one in enumerate(effects, start=first) if one.is_significant is True),
    )


def _remarks(experiment: Experiment, analysis: Analysis) -> list[str]:
    """Return what must be known beside the effects: the noise, what is confounded, what to do next."""
    confounded = [one for one in analysis.effects if one.aliases]
    together = [f"q_{one.name} = {_summed(one)}" for one in confounded[:MOST_NAMED]]
    more = "; …" if len(confounded) > MOST_NAMED else ""
    lines = [f"These runs cannot tell apart: {'; '.join(together)}{more}."] if together else []
    lines += [f"Noise: {analysis.noise}."] if analysis.noise else []
    lines += _first(analysis.not_told_apart) if analysis.missing else _confounded(experiment, analysis)
    if analysis.residuals is not None:
        lines += [f"Doubt: {one.verdict}." for one in analysis.residuals.checks if one.is_doubtful]
    lines += [f"Note: {one}." for one in analysis.notes]
    return lines + [f"Next: {one}." for one in analysis.advice]


def _confounded(experiment: Experiment, analysis: Analysis) -> list[str]:
    """Return what the design itself confounds: of a fraction its defining relation says it all."""
    from routecast.experiment.designs.fractional import fraction_of

    fraction = fraction_of(experiment.design, experiment.factors)
    if fraction is None:
        return _first(analysis.not_told_apart)
    words = fraction.defining_relation
    more = " = …" if len(words) > MOST_ALIASES else ""
    return [f"A fraction of resolution {fraction.resolution}: I = {' = '.join(words[:MOST_ALIASES])}{more}."]


def _summed(effect: Effect) -> str:
    """Return what an effect stands for: itself and its aliases, of many only the shortest, which are likely largest."""
    shown = effect.aliases[:MOST_ALIASES]
    return " ".join((effect.name, *shown, *(["…"] if len(effect.aliases) > len(shown) else [])))


def _first(lines: Sequence[str]) -> list[str]:
    shown = list(lines[:MOST_NAMED])
    return shown + ([f"… and {len(lines) - len(shown)} more."] if len(lines) > len(shown) else [])


def print_missing(console: Console, results: Results) -> None:
    """Print which runs have no answer, or are not steady, and why."""
    from routecast.experiment.runs import levels_of_row

    lack = any(answer.problem and answer.values for answer in results.answers)
    without = "Runs that lack answers" if lack else "Runs without an answer"
    for title, key in ((without, "problem"), ("Runs that are not steady", "unsteady")):
        told = [
            (run, getattr(answer, key))
            for run, answer in zip(results.runs, results.answers, strict=True)
            if getattr(answer, key)
        ]
        if not told:
            continue
        rows = tuple(
            (
                run.row + 1,
                run.replication + 1,
                ", ".join(level.label for level in levels_of_row(results.experiment, run.row)),
                " ".join(str(why).split()),
            )
            for run, why in told[:MOST_NAMED]
        )
        more = len(told) - len(rows)
        print_table(
            console,
            Table(
                name=key,
                title=f"{title}: {len(told)} of {len(results.runs)}",
                caption=f"{more} more: results.parquet has them all." if more else "",
                columns=(
                    Column(title="Row", form="d"),
                    Column(title="Run", form="d"),
                    Column(title="Levels", align="left"),
                    Column(title="Why", align="left"),
                ),
                rows=rows,
            ),
        )


def _words(kind: str) -> str:
    words = kind.replace("_", " ")
    return words[:1].upper() + words[1:]
