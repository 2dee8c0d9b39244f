"""The tables of an experiment: factors, effects, variance, combinations, runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from routecast.experiment.analysis.outcome import Analysis, Missing
from routecast.experiment.analysis.outcome.screening import Screening
from routecast.experiment.model import Experiment, Results
from routecast.report.experiment.levels import label_of
from routecast.report.experiment.scale import Scale
from routecast.report.tables import Cell, Column, Table, percent

__all__ = [
    "anova_table",
    "cells_table",
    "effects_table",
    "factors_table",
    "level_effects_table",
    "missing_table",
    "runs_table",
    "screening_table",
]

_MOST_ROWS = 1000


def factors_table(experiment: Experiment) -> Table:
    """Return what was varied, and between what."""
    return Table(
        name="factors",
        title="What varied",
        caption="Letters stand for the factors in the tables; −1 and +1 for the first and the last level.",
        columns=(
            Column(title="", align="left"),
            Column(title="Factor", align="left"),
            Column(title="Levels", align="left", wrap=True),
        ),
        rows=tuple(
            (
                factor.letter,
                factor.name,
                (" … " if experiment.design.kind in {"latin_hypercube", "sobol"} else ", ").join(
                    level.label for level in factor.levels
                )
                + (" (steps are ratios)" if factor.is_log else ""),
            )
            for factor in experiment.factors
        ),
    )


def effects_table(analysis: Analysis, scale: Scale) -> Table:
    """Return the effects with their shares, the largest first; those told from noise are strong."""
    has_aliases = any(one.aliases for one in analysis.effects)
    has_value = any(one.value is not None for one in analysis.effects)
    has_interval = any(one.low is not None for one in analysis.effects)
    step, unit, nothing = _amounts(analysis, scale)
    level = f"{100.0 * analysis.confidence:.3g} %"
    rows: list[tuple[Cell, ...]] = []
    for one in analysis.effects:
        numbers = [
            None if value is None else 0.0 if abs(value) < nothing else value / step
            for value in (one.value, one.low, one.high)
        ]
        rows.append(
            (
                one.name,
                one.label,
                one.share_ratio,
                *(numbers[: 3 if has_interval else 1] if has_value else ()),
                *((", ".join(one.aliases),) if has_aliases else ()),
                one.verdict,
            )
        )
    what = "An effect is what going from the middle to the high level adds; from low to high is twice that. "
    what = what if has_value else ""
    q0 = f"q0 (mean) = {scale.text(analysis.mean)}. " if analysis.mean is not None else ""
    if scale.transform == "log":
        q0 += "Effects are on the logarithm: exp of one is the factor by which it multiplies. "
    elif scale.transform == "reciprocal":
        q0 += "Effects are on the reciprocal. "
    return Table(
        name="effects",
        title=f"Effects on {scale.name}",
        caption=(
            f"{q0}{what}Share: how much of the variation it explains."
            + (
                " Shaded rows are told from noise."
                if any(one.is_significant for one in analysis.effects)
                else ""
            )
        ),
        columns=(
            Column(title="", align="left"),
            Column(title="Effect of", align="left", wrap=True),
            Column(title="Share", unit="%", form=percent),
            *((Column(title="Effect", unit=unit, form="+.4g"),) if has_value else ()),
            *(
                (
                    Column(title="from", unit=unit, form="+.3g", group=f"{level} interval"),
                    Column(title="to", unit=unit, form="+.3g", group=f"{level} interval"),
                )
                if has_interval
                else ()
            ),
            *((Column(title="Cannot be told from", align="left", wrap=True),) if has_aliases else ()),
            Column(title="Verdict", align="left", wrap=True),
        ),
        rows=tuple(rows),
        strong=frozenset(number for number, one in enumerate(analysis.effects) if one.is_significant is True),
    )


def level_effects_table(analysis: Analysis, scale: Scale) -> Table | None:
    """Return how far each level of the factors with more than two lies from the mean; None without such factors."""
    step, unit, _ = _amounts(analysis, scale)
    rows = [
        (one.name, one.label, level.label, *(
            None if value is None else value / step for value in (level.value, level.low, level.high)
        ))
        for one in analysis.effects if len(one.letters) == 1
        for level in one.levels
    ]  # fmt: skip
    if not rows:
        return None
    return Table(
        name="levels",
        title="Effect of each level",
        caption="",
        columns=(
            Column(title="", align="left"),
            Column(title="Factor", align="left"),
            Column(title="Level", align="left"),
            Column(title="Effect", unit=unit, form="+.4g"),
            Column(title="from", unit=unit, form="+.3g"),
            Column(title="to", unit=unit, form="+.3g"),
        ),
        rows=tuple(rows),
    )


def _amounts(analysis: Analysis, scale: Scale) -> tuple[float, str, float]:
    """Return what to divide effects by, their unit, and below what they are nothing but rounding."""
    values = [one.value for one in analysis.effects if one.value is not None]
    values += [level.value for one in analysis.effects for level in one.levels]
    greatest = max((abs(value) for value in values), default=0.0)
    return (*scale.for_amounts(values), 1e-9 * greatest)


def anova_table(analysis: Analysis, scale: Scale) -> Table:
    """Return the table of the analysis of variance, as textbooks print it."""
    square = scale.step**2 if scale.transform == "none" else 1.0
    unit = f"({scale.unit})²" if scale.transform == "none" and scale.unit else ""
    return Table(
        name="anova",
        title=f"Analysis of variance of {scale.name}",
        caption="",
        columns=(
            Column(title="Component", align="left"),
            Column(title="Degrees of freedom", form="d"),
            Column(title="Sum of squares", unit=unit, form=".5g"),
            Column(title="Share", unit="%", form=percent),
            Column(title="Mean square", unit=unit, form=".5g"),
            Column(title="F", form=".4g"),
            Column(title="p", form=".3g"),
        ),
        rows=tuple(
            (
                row.component,
                row.df,
                _cleared(row.ss, analysis.sst) / square,
                row.ss / analysis.sst if analysis.sst > 0.0 else None,
                None if row.ms is None else _cleared(row.ms, analysis.sst) / square,
                row.f,
                row.p_value,
            )
            for row in analysis.anova
        ),
    )


def _cleared(value: float, total: float) -> float:
    """Return a sum of squares; 0 where it is nothing but rounding."""
    return 0.0 if value < 1e-14 * total else value


def _ended(text: str) -> str:
    return text.strip().rstrip(".") + "."


def cells_table(experiment: Experiment, analysis: Analysis, scale: Scale) -> Table:
    """Return each combination with what its runs answered, and what the analysis makes of it."""
    has_interval = any(cell.low is not None for cell in analysis.cells)
    is_repeated = any(len(cell.values) > 1 for cell in analysis.cells)
    rows: list[tuple[Cell, ...]] = []
    for cell in analysis.cells[:_MOST_ROWS]:
        ends = scale.ends(cell.low, cell.high)
        rows.append(
            (
                *(label_of(factor, at) for factor, at in zip(experiment.factors, cell.coded, strict=True)),
                None if cell.mean is None else scale.back(cell.mean),
                None if cell.predicted is None else scale.back(cell.predicted),
                *((ends or (None, None)) if has_interval else ()),
                *((len(cell.values),) if is_repeated else ()),
            )
        )
    level = f"{100.0 * analysis.confidence:.3g} % interval"
    cut = f"The first {_MOST_ROWS:,} of {len(analysis.cells):,}. " if len(analysis.cells) > _MOST_ROWS else ""
    return Table(
        name="cells",
        title=f"{scale.name[:1].upper()}{scale.name[1:]} of each combination",
        caption=f"{cut}Predicted: what the effects add up to. A dash: no run answered.",
        columns=(
            *(Column(title=factor.name, align="left") for factor in experiment.factors),
            Column(title="Answered", unit=scale.unit),
            Column(title="Predicted", unit=scale.unit),
            *(
                (
                    Column(title="from", unit=scale.unit, group=level),
                    Column(title="to", unit=scale.unit, group=level),
                )
                if has_interval
                else ()
            ),
            *((Column(title="Runs", form="d"),) if is_repeated else ()),
        ),
        rows=tuple(rows),
    )


def runs_table(results: Results, scales: Mapping[str, Scale]) -> Table:
    """Return every run with its answers, what limited it, and why it has none."""
    experiment = results.experiment
    rows: list[tuple[Cell, ...]] = []
    for number, (run, answer) in enumerate(zip(results.runs, results.answers, strict=True)):
        if number >= _MOST_ROWS:
            break
        coded = experiment.design.coded[run.row]
        values = [answer.values.get(name) for name in scales]
        remark = answer.problem or (
            f"not steady: {answer.unsteady}" if answer.unsteady else answer.bottleneck
        )
        rows.append(
            (
                number + 1,
                *(label_of(factor, at) for factor, at in zip(experiment.factors, coded, strict=True)),
                run.replication + 1,
                *(
                    None if value is None else scale.shown(value)
                    for value, scale in zip(values, scales.values(), strict=True)
                ),
                remark,
            )
        )
    cut = f"The first {_MOST_ROWS:,} of {len(results.runs):,}." if len(results.runs) > _MOST_ROWS else ""
    return Table(
        name="runs",
        title="Every run",
        caption=cut,
        columns=(
            Column(title="Run", form="d"),
            *(Column(title=factor.name, align="left") for factor in experiment.factors),
            Column(title="Replication", form="d"),
            *(Column(title=scale.name, unit=scale.unit) for scale in scales.values()),
            Column(title="What limited it, or why it has no answer", align="left", wrap=True),
        ),
        rows=tuple(rows),
    )


def missing_table(experiment: Experiment, missing: Sequence[Missing], *, title: str, caption: str) -> Table:
    """Return runs that are missing or doubtful, with the reason of each."""
    return Table(
        name="missing",
        title=title,
        caption=caption,
        columns=(
            Column(title="Run", form="d"),
            *(Column(title=factor.name, align="left") for factor in experiment.factors),
            Column(title="Why", align="left", wrap=True),
        ),
        rows=tuple(
            (
                one.run + 1,
                *(
                    label_of(factor, at)
                    for factor, at in zip(experiment.factors, experiment.design.coded[one.row], strict=True)
                ),
                one.why,
            )
            for one in missing[:_MOST_ROWS]
        ),
    )


def screening_table(screening: Screening) -> Table:
    """Return the factors of a sample by how much they matter."""
    has_shares = any(one.first_order_ratio is not None for one in screening.factors)
    shares = (
        (
            Column(title="Alone", unit="%", form=percent),
            Column(title="With interactions", unit="%", form=percent),
        )
        if has_shares
        else ()
    )
    return Table(
        name="screening",
        title="Which factors matter",
        caption=_ended(
            "Alone: the share of the variance that the factor explains by itself; with interactions: the share that it"
            f" has a part in. Direction: −1 to +1, the sign says which way. {screening.method}"
        ),
        columns=(
            Column(title="Rank", form="d"),
            Column(title="Factor", align="left"),
            *shares,
            Column(title="Direction", form="+.2f"),
        ),
        rows=tuple(
            (
                one.rank,
                one.name,
                *((one.first_order_ratio, one.total_ratio) if has_shares else ()),
                one.srrc,
            )
            for one in screening.factors
        ),
    )
