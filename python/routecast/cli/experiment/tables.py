"""An experiment on a terminal: its plan, the effects of each response, what they mean in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from routecast.cli.tables import print_table
from routecast.report.tables import Column, Table, percent

if TYPE_CHECKING:
    from routecast.experiment.analysis import Analysis, Effect
    from routecast.experiment.model import Experiment, Results
    from routecast.report.experiment.scale import Scale

__all__ = ["most_shown", "print_analysis", "print_design", "print_missing"]

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
