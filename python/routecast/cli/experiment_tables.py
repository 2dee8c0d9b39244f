"""An experiment on a terminal: its plan, the effects of each response, what they mean in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from routecast.cli.tables import print_table
from routecast.report.tables import Column, Table, percent

if TYPE_CHECKING:
    from routecast.experiment.analysis import Analysis
    from routecast.experiment.model import Experiment, Results

__all__ = ["most_shown", "print_analysis", "print_design", "print_missing"]

MOST_ROWS = 64
MOST_EFFECTS = 24
MOST_NAMED = 5


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
    from routecast.experiment.designs.making import fraction_of

    fraction = fraction_of(experiment.design, experiment.factors)
    if fraction is None:
        return
    relation = " = ".join(("I", *fraction.defining_relation))
    console.print(f"Resolution {fraction.resolution}, defining relation {relation}.", markup=False)
    chains = [" = ".join(chain) for chain in fraction.alias_chains() if len(chain) > 1]
    if chains:
        console.print(f"Cannot be told apart: {'; '.join(chains)}.", markup=False)
    console.print()


def print_analysis(console: Console, analysis: Analysis) -> None:
    """Print the effects on one response: how large, what share of the variation, how certain, what it means."""
    effects = analysis.effects[:MOST_EFFECTS]
    has_aliases = any(effect.aliases for effect in effects)
    transform = "" if analysis.transform == "none" else f" ({analysis.transform})"
    rows: list[tuple[str | float | None, ...]] = [
        ("q_0", "mean", analysis.mean, None, _interval(analysis.mean_low, analysis.mean_high))
    ]
    rows += [
        (
            f"q_{effect.name}",
            effect.label,
            effect.value,
            effect.share_ratio,
            _interval(effect.low, effect.high),
        )
        for effect in effects
    ]
    if analysis.error_df:
        rows.append(("e", "noise", None, analysis.error_share_ratio, ""))
    strong = frozenset(number for number, effect in enumerate(effects, start=1) if effect.is_significant)
    left_out = len(analysis.effects) - len(effects)
    print_table(
        console,
        Table(
            name="effects",
            title=f"{analysis.response}{transform}",
            caption=f"{left_out} smaller effects are left out." if left_out else "",
            columns=(
                Column(title="Effect", align="left"),
                Column(title="Of", align="left"),
                Column(title="Value"),
                Column(title="Explains", unit="%", form=percent),
                Column(title=f"{analysis.confidence:.0%} interval", align="left"),
            ),
            rows=tuple(rows),
            strong=strong,
        ),
    )
    for line in _sentences(analysis, has_aliases=has_aliases):
        console.print(line, markup=False)
    console.print()


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{low:.4g} to {high:.4g}"


def _sentences(analysis: Analysis, *, has_aliases: bool) -> list[str]:
    lines = [effect.verdict for effect in analysis.effects[:MOST_NAMED] if effect.verdict]
    if has_aliases:
        lines += [
            f"q_{effect.name} stands for {' '.join((effect.name, *effect.aliases))} together."
            for effect in analysis.effects[:MOST_NAMED]
            if effect.aliases
        ]
    lines += [f"Noise: {analysis.noise}"] if analysis.noise else []
    lines += _first(analysis.not_told_apart)
    lines += [f"Note: {one}" for one in analysis.notes]
    lines += [f"Next: {one}" for one in analysis.advice]
    return list(dict.fromkeys(lines))


def _first(lines: Sequence[str]) -> list[str]:
    shown = list(lines[:MOST_NAMED])
    return shown + ([f"… and {len(lines) - len(shown)} more."] if len(lines) > len(shown) else [])


def print_missing(console: Console, results: Results) -> None:
    """Print which runs have no answer, or are not steady, and why."""
    from routecast.experiment.runs import levels_of_row

    for title, key in (("Runs without an answer", "problem"), ("Runs that are not steady", "unsteady")):
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
