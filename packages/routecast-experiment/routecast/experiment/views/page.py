"""The report of an experiment: its page, its tables on the page and the terminal, and its folder of figures."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeVar

from routecast.experiment.analysis.outcome import Analysis, Cell, Effect, LevelEffect, MarkedRun, Screening
from routecast.experiment.answer import RunOverTime, rerun_over_time
from routecast.experiment.designs import fraction_of
from routecast.experiment.model import Answer, Experiment, Factor, Response, Results, Run
from routecast.experiment.runs import levels_of_row
from routecast.experiment.views._pictures import Picture, Pictures, over_time_picture, pictures_of
from routecast.experiment.views._words import (
    Scale,
    capitalised,
    describe_answer,
    describe_confounding,
    describe_design,
    describe_surface,
    display_label,
    format_percent,
    headline,
    is_sample,
    scale_of,
)
from routecast.quantity import format_duration
from routecast.quantity.whole_file import write_whole
from routecast.show.page import Block, Drawing, Folded, Listing, Notice, Page, Prose, Section, Tile, Tiles, render_page
from routecast.show.tables import Column, Table, percent
from routecast.version import VERSION

__all__ = [
    "MAX_ROWS",
    "alias_lines",
    "analysis_lines",
    "design_table",
    "experiment_page",
    "experiment_sections",
    "missing_tables",
    "terminal_effects",
    "write_experiment",
]

MAX_ROWS = 64
"""Number of combinations that the terminal lists."""
MAX_EFFECTS = 12
MAX_NAMED = 5
MAX_ALIASES = 4

_Row = TypeVar("_Row")


def design_table(experiment: Experiment) -> Table:
    """Return the table of the combinations of levels."""
    design = experiment.design
    replicated = f", {design.replications} runs of each" if design.replications > 1 else ""

    def level(number: int) -> Column[int]:
        factor = experiment.factors[number]
        return Column.text(f"{factor.letter}: {factor.name}", lambda row: levels_of_row(experiment, row)[number].label)

    return Table.of(
        range(min(len(design.coded), MAX_ROWS)),
        Column("Row", "", "d", lambda row: row + 1),
        *map(level, range(len(experiment.factors))),
        name="design",
        title=f"{capitalised(design.kind.replace('_', ' '))}: {len(design.coded):,} combinations{replicated}",
    )


def alias_lines(experiment: Experiment) -> list[str]:
    """Return lines on the resolution and the confounded effects of a fraction; empty for other designs."""
    fraction = fraction_of(experiment.design, experiment.factors)
    if fraction is None:
        return []
    lines = [f"Resolution {fraction.resolution}, defining relation {' = '.join(('I', *fraction.defining_relation))}."]
    chains = [" = ".join(chain) for chain in fraction.alias_chains() if len(chain) > 1]
    return lines + ([f"Cannot be separated: {'; '.join(chains)}."] if chains else [])


def terminal_effects(results: Results, analysis: Analysis) -> Table:
    """Return the table of the largest effects in Jain's notation; significant effects are strong."""
    scale = scale_of(results, analysis.response)
    effects = analysis.effects[:MAX_EFFECTS]
    omitted = len(analysis.effects) - len(effects)

    def interval(low: float | None, high: float | None) -> str:
        if low is None or high is None:
            return ""
        return f"{scale.analysed(low):.4g} to {scale.analysed(high):.4g}".replace("-", "−")

    def amount(value: float | None) -> float | None:
        return None if value is None else scale.analysed(value)

    rows: list[tuple[str, str, float | None, float | None, str]] = [
        (f"q_{effect.name}", effect.label, effect.share_ratio, amount(effect.value), interval(effect.low, effect.high))
        for effect in effects
    ]
    if analysis.mean is not None:
        rows.insert(0, ("q_0", "mean", None, amount(analysis.mean), interval(analysis.mean_low, analysis.mean_high)))
    if analysis.error_df:
        source = "lack of fit" if analysis.s_e is None else "noise and lack of fit"
        rows.append(("e", source, analysis.error_share_ratio, None, ""))
    strong = {f"q_{effect.name}" for effect in effects if effect.is_significant is True}
    return Table.of(
        rows,
        Column.text("", lambda row: row[0]),
        Column.text("Effect of", lambda row: row[1]),
        Column("Explains", "%", percent, lambda row: row[2]),
        Column("Effect", scale.unit if analysis.transform == "none" else "", getter=lambda row: row[3]),
        Column.text(_interval_title(analysis), lambda row: row[4], wide=not any(row[4] for row in rows)),
        name="effects",
        title=f"Effects on {scale.analysed_axis}",
        caption=f"{omitted} smaller effects are in the report." if omitted else "",
        strong=lambda row: row[0] in strong,
    )


def _interval_title(analysis: Analysis) -> str:
    return f"{100.0 * analysis.confidence:.3g} % interval"


def analysis_lines(results: Results, analysis: Analysis) -> list[str]:
    """Return sentences on the effects on a response, and remarks on the analysis."""
    scale = scale_of(results, analysis.response)
    sentences = [describe_answer(results, analysis, scale), describe_surface(results.experiment, analysis, scale)]
    lines = dict.fromkeys([*sentences, *_remarks(results.experiment, analysis)])
    return [line.replace("**", "") for line in lines if line]


def _remarks(experiment: Experiment, analysis: Analysis) -> list[str]:
    """Return remarks on the noise, on confounded effects, and on the next steps."""
    confounded = [effect for effect in analysis.effects if effect.aliases]
    sums = [f"q_{effect.name} = {_alias_sum(effect)}" for effect in confounded[:MAX_NAMED]]
    more = "; …" if len(confounded) > MAX_NAMED else ""
    lines = [f"These runs cannot separate: {'; '.join(sums)}{more}."] if sums else []
    lines += [f"Noise: {analysis.noise}."] if analysis.noise else []
    lines += _first_lines(analysis.not_told_apart) if analysis.missing else _describe_fraction(experiment, analysis)
    if analysis.residuals is not None:
        lines += [f"Doubtful: {check.verdict}." for check in analysis.residuals.checks if check.is_doubtful]
    lines += [f"Note: {note}." for note in analysis.notes]
    return lines + [f"Next: {advice}." for advice in analysis.advice]


def _describe_fraction(experiment: Experiment, analysis: Analysis) -> list[str]:
    """Return the effects that the design confounds, or the defining relation of a fraction."""
    fraction = fraction_of(experiment.design, experiment.factors)
    if fraction is None:
        return _first_lines(analysis.not_told_apart)
    words = fraction.defining_relation
    more = " = …" if len(words) > MAX_ALIASES else ""
    return [f"A fraction of resolution {fraction.resolution}: I = {' = '.join(words[:MAX_ALIASES])}{more}."]


def _alias_sum(effect: Effect) -> str:
    """Return an effect with its aliases, of many only the shortest, which are likely the largest."""
    more = ["…"] if len(effect.aliases) > MAX_ALIASES else []
    return " ".join((effect.name, *effect.aliases[:MAX_ALIASES], *more))


def _first_lines(lines: Sequence[str]) -> list[str]:
    more = [f"… and {len(lines) - MAX_NAMED} more."] if len(lines) > MAX_NAMED else []
    return [*lines[:MAX_NAMED], *more]


def missing_tables(results: Results) -> Iterator[Table]:
    """Yield a table of the runs without an answer and a table of the runs that are not steady, with the reasons."""
    is_partial = any(answer.problem and answer.values for answer in results.answers)
    failed_title = "Runs that lack some answers" if is_partial else "Runs without an answer"

    def levels(row: int) -> str:
        return ", ".join(level.label for level in levels_of_row(results.experiment, row))

    for title, key in ((failed_title, "problem"), ("Runs that are not steady", "unsteady")):
        pairs = zip(results.runs, results.answers, strict=True)
        rows = [(run, getattr(answer, key)) for run, answer in pairs if getattr(answer, key)]
        if not rows:
            continue
        more = len(rows) - MAX_NAMED
        yield Table.of(
            rows[:MAX_NAMED],
            Column("Row", "", "d", lambda row: row[0].row + 1),
            Column("Run", "", "d", lambda row: row[0].replication + 1),
            Column.text("Levels", lambda row: levels(row[0].row)),
            Column.text("Why", lambda row: " ".join(str(row[1]).split())),
            name=key,
            title=f"{title}: {len(rows)} of {len(results.runs)}",
            caption=f"{more} more: results.parquet has all." if more > 0 else "",
        )


_MAX_PAGE_ROWS = 1000
"""Number of rows that a table of the page lists."""


def factors_table(experiment: Experiment) -> Table:
    """Return the table of the factors with their levels."""
    separator = " … " if is_sample(experiment) else ", "

    def levels(factor: Factor) -> str:
        return separator.join(level.label for level in factor.levels) + (" (steps are ratios)" if factor.is_log else "")

    return Table.of(
        experiment.factors,
        Column.text("", lambda row: row.letter),
        Column.text("Factor", lambda row: row.name),
        Column.text("Levels", levels, wrap=True),
        name="factors",
        title="Factors",
        caption="Tables name the factors by their letters, and the first and the last level −1 and +1.",
    )


def effects_table(analysis: Analysis, scale: Scale) -> Table:
    """Return the table of the effects with their shares, the largest first; significant effects are strong."""
    step, unit, rounding = _effect_unit(analysis, scale)
    has_value = any(effect.value is not None for effect in analysis.effects)
    has_interval = has_value and any(effect.low is not None for effect in analysis.effects)

    def amount(title: str, of: Callable[[Effect], float | None], form: str, group: str = "") -> Column[Effect]:
        def cell(effect: Effect) -> float | None:
            value = of(effect)
            return None if value is None else 0.0 if abs(value) < rounding else value / step

        return Column(title, unit, form, cell, group=group)

    meaning = "An effect is the change from the middle to the high level; from low to high the change is twice that. "
    meaning = meaning if has_value else ""
    q0 = f"q0 (mean) = {scale.format_analysed(analysis.mean)}. " if analysis.mean is not None else ""
    if scale.transform == "log":
        q0 += "Effects are on the logarithm: exp(effect) is the factor that multiplies the response. "
    elif scale.transform == "reciprocal":
        q0 += "Effects are on the reciprocal. "
    shaded = " Shaded rows are significant." if any(effect.is_significant for effect in analysis.effects) else ""
    return Table.of(
        analysis.effects,
        Column.text("", lambda effect: effect.name),
        Column.text("Effect of", lambda effect: effect.label, wrap=True),
        Column("Share", "%", percent, lambda effect: effect.share_ratio),
        has_value and amount("Effect", lambda effect: effect.value, "+.4g"),
        has_interval and amount("from", lambda effect: effect.low, "+.3g", _interval_title(analysis)),
        has_interval and amount("to", lambda effect: effect.high, "+.3g", _interval_title(analysis)),
        any(effect.aliases for effect in analysis.effects)
        and Column.text("Aliased with", lambda effect: ", ".join(effect.aliases), wrap=True),
        Column.text("Verdict", lambda effect: effect.verdict, wrap=True),
        name="effects",
        title=f"Effects on {scale.name}",
        caption=f"{q0}{meaning}Share: the part of the variation that the effect explains.{shaded}",
        strong=lambda effect: effect.is_significant is True,
    )


def level_effects_table(analysis: Analysis, scale: Scale) -> Table | None:
    """Return the table of the effects of levels, for factors with more than two levels; None without such a factor."""
    step, unit, _ = _effect_unit(analysis, scale)
    rows = [(effect, level) for effect in analysis.effects if len(effect.letters) == 1 for level in effect.levels]
    if not rows:
        return None

    def amount(title: str, of: Callable[[LevelEffect], float | None], form: str) -> Column[tuple[Effect, LevelEffect]]:
        def cell(row: tuple[Effect, LevelEffect]) -> float | None:
            value = of(row[1])
            return None if value is None else value / step

        return Column(title, unit, form, cell)

    return Table.of(
        rows,
        Column.text("", lambda row: row[0].name),
        Column.text("Factor", lambda row: row[0].label),
        Column.text("Level", lambda row: row[1].label),
        amount("Effect", lambda level: level.value, "+.4g"),
        amount("from", lambda level: level.low, "+.3g"),
        amount("to", lambda level: level.high, "+.3g"),
        name="levels",
        title="Effect of each level",
    )


def _effect_unit(analysis: Analysis, scale: Scale) -> tuple[float, str, float]:
    """Return the divisor of effects, their unit, and the size below which an effect is only rounding."""
    values = [effect.value for effect in analysis.effects if effect.value is not None]
    values += [level.value for effect in analysis.effects for level in effect.levels]
    return (*scale.difference_unit(values), 1e-9 * max(map(abs, values), default=0.0))


def anova_table(analysis: Analysis, scale: Scale) -> Table:
    """Return the table of the analysis of variance in the layout of textbooks."""
    square = scale.step**2 if scale.transform == "none" else 1.0
    unit = f"({scale.unit})²" if scale.transform == "none" and scale.unit else ""

    def without_rounding(value: float | None) -> float | None:
        return None if value is None else 0.0 if value < 1e-14 * analysis.sst else value / square

    return Table.of(
        analysis.anova,
        Column.text("Component", lambda row: row.component),
        Column("Degrees of freedom", "", "d", lambda row: row.df),
        Column("Sum of squares", unit, ".5g", lambda row: without_rounding(row.ss)),
        Column("Share", "%", percent, lambda row: row.ss / analysis.sst if analysis.sst > 0.0 else None),
        Column("Mean square", unit, ".5g", lambda row: without_rounding(row.ms)),
        Column("F", "", ".4g", lambda row: row.f),
        Column("p", "", ".3g", lambda row: row.p_value),
        name="anova",
        title=f"Analysis of variance of {scale.name}",
    )


def _level_columns(experiment: Experiment, coded: Callable[[_Row], Sequence[float]]) -> list[Column[_Row]]:
    """Return a column of levels for each factor; ``coded`` returns the coded levels of a row."""

    def column(number: int, factor: Factor) -> Column[_Row]:
        return Column.text(factor.name, lambda row: display_label(factor, coded(row)[number]))

    return [column(number, factor) for number, factor in enumerate(experiment.factors)]


def _describe_cut(count: int) -> str:
    return f"The first {_MAX_PAGE_ROWS:,} of {count:,}." if count > _MAX_PAGE_ROWS else ""


def cells_table(experiment: Experiment, analysis: Analysis, scale: Scale) -> Table:
    """Return the table of the combinations, each with the mean answer of its runs and the model's prediction."""
    has_interval = any(cell.low is not None for cell in analysis.cells)

    def end(title: str, number: int) -> Column[Cell]:
        def value(cell: Cell) -> float | None:
            ends = scale.ends(cell.low, cell.high)
            return None if ends is None else ends[number]

        return Column(title, scale.unit, getter=value, group=_interval_title(analysis))

    def coded(cell: Cell) -> Sequence[float]:
        return cell.coded

    return Table.of(
        analysis.cells[:_MAX_PAGE_ROWS],
        *_level_columns(experiment, coded),
        Column(
            "Answered", scale.unit, getter=lambda cell: None if cell.mean is None else scale.untransformed(cell.mean)
        ),
        Column(
            "Fitted",
            scale.unit,
            getter=lambda cell: None if cell.predicted is None else scale.untransformed(cell.predicted),
        ),
        has_interval and end("from", 0),
        has_interval and end("to", 1),
        any(len(cell.values) > 1 for cell in analysis.cells) and Column("Runs", "", "d", lambda cell: len(cell.values)),
        name="cells",
        title=f"{capitalised(scale.name)} of each combination",
        caption=f"{_describe_cut(len(analysis.cells))} Fitted: sum of the effects. –: no run answered.".lstrip(),
    )


def runs_table(results: Results, scales: Mapping[str, Scale]) -> Table:
    """Return the table of all runs with their answers, and the bottleneck or the reason why an answer is missing."""
    experiment = results.experiment
    rows = [
        (number, run, answer)
        for number, (run, answer) in enumerate(zip(results.runs, results.answers, strict=True), start=1)
    ]

    def response(name: str, scale: Scale) -> Column[tuple[int, Run, Answer]]:
        def value(row: tuple[int, Run, Answer]) -> float | None:
            base = row[2].values.get(name)
            return None if base is None else base / scale.step

        return Column(scale.name, scale.unit, getter=value)

    def coded(row: tuple[int, Run, Answer]) -> Sequence[float]:
        return experiment.design.coded[row[1].row]

    def remark(row: tuple[int, Run, Answer]) -> str:
        answer = row[2]
        return answer.problem or (f"not steady: {answer.unsteady}" if answer.unsteady else answer.bottleneck)

    return Table.of(
        rows[:_MAX_PAGE_ROWS],
        Column("Run", "", "d", lambda row: row[0]),
        *_level_columns(experiment, coded),
        Column("Replication", "", "d", lambda row: row[1].replication + 1),
        *(response(name, scale) for name, scale in scales.items()),
        Column.text("Bottleneck, or why it has no answer", remark, wrap=True),
        name="runs",
        title="Every run",
        caption=_describe_cut(len(results.runs)),
    )


def missing_table(experiment: Experiment, missing: Sequence[MarkedRun], *, title: str, caption: str) -> Table:
    """Return the table of runs that are missing or not steady, with the reasons."""

    def coded(run: MarkedRun) -> Sequence[float]:
        return experiment.design.coded[run.row]

    return Table.of(
        missing[:_MAX_PAGE_ROWS],
        Column("Run", "", "d", lambda run: run.run + 1),
        *_level_columns(experiment, coded),
        Column.text("Why", lambda run: run.why, wrap=True),
        name="missing",
        title=title,
        caption=caption,
    )


def screening_table(screening: Screening) -> Table:
    """Return the table of the factors of a sample by importance."""
    has_shares = any(factor.first_order_ratio is not None for factor in screening.factors)
    return Table.of(
        screening.factors,
        Column("Rank", "", "d", lambda row: row.rank),
        Column.text("Factor", lambda row: row.name),
        has_shares and Column("Alone", "%", percent, lambda row: row.first_order_ratio),
        has_shares and Column("With interactions", "%", percent, lambda row: row.total_ratio),
        Column("Direction", "", "+.2f", lambda row: row.srrc),
        name="screening",
        title="Which factors matter",
        caption="Alone: the share of the variance that the factor explains by itself. With interactions: the share "
        "including its interactions. Direction: −1 to +1, positive if the response rises with the factor. "
        f"{capitalised(screening.method)}.",
    )


_EVALUATORS = {
    "solve": "a closed form",
    "simulate": "a simulation of every packet",
    "measure": "a real router on the wire",
}
_MAX_UNFOLDED_ROWS = 40
"""Number of rows above which a table is folded."""


def experiment_sections(
    results: Results,
    analyses: Mapping[str, Analysis],
    *,
    over_time: RunOverTime | None = None,
    prefix: str = "",
    pictures: Pictures | None = None,
) -> tuple[Section, ...]:
    """Return the sections of a page on an experiment.

    ``analyses``: analyses by name of the response; ``over_time``: a run over time
    (:func:`routecast.experiment.answer.rerun_over_time`); ``prefix``: prefix of anchors and titles, for pages with
    several experiments; ``pictures``: pictures by name of the response, drawn here if not given.
    """
    scales = {name: scale_of(results, name) for name in analyses}
    if pictures is None:
        pictures = {name: pictures_of(results, analysis, scales[name]) for name, analysis in analyses.items()}
    sections = [
        _question_section(results, analyses),
        *(
            section
            for number, (name, analysis) in enumerate(analyses.items())
            for section in (
                _findings_section(results, analysis, scales[name], pictures[name], number),
                _trust_section(results, analysis, scales[name], pictures[name], number),
            )
        ),
        Section.of(
            "runs",
            "Every run",
            "",
            over_time is not None and _drawing(over_time_picture(results, over_time)),
            Folded(summary=f"All {len(results.runs):,} runs with their answers", table=runs_table(results, scales)),
        ),
    ]
    if not prefix:
        return tuple(sections)
    anchor = "".join(letter if letter.isalnum() else "-" for letter in prefix.lower())
    return tuple(
        replace(section, anchor=f"{anchor}-{section.anchor}", title=f"{prefix}: {section.title}")
        for section in sections
    )


def _question_section(results: Results, analyses: Mapping[str, Analysis]) -> Section:
    experiment = results.experiment
    answered = sum(1 for answer in results.answers if answer.values)
    unsteady = sum(1 for answer in results.answers if answer.unsteady)
    missing = f"of {len(results.runs):,}" if answered < len(results.runs) else "all of them"
    tiles = [
        Tile(f"{len(experiment.design.coded):,}", "combinations of levels"),
        Tile(f"{answered:,}", "runs with an answer", missing),
    ]
    if experiment.is_steadied:
        tiles.append(Tile(f"{answered - unsteady:,}", "of them steady", "without transient, tested for drift"))
    trials = f"{_EVALUATORS[experiment.evaluator]} answered each combination"
    if experiment.evaluator != "solve":
        trials += f" in trials of {format_duration(experiment.duration_s)}"
    responses = ", ".join(f"{response.name} ({_describe_path(response)})" for response in experiment.responses)
    return Section.of(
        "asked",
        "The experiment",
        experiment.question,
        *_missing_notices(results, analyses),
        Tiles(tuple(tiles)),
        Prose((describe_design(experiment), f"{capitalised(trials)}. Responses: {responses}.")),
        factors_table(experiment),
    )


def _describe_path(response: Response) -> str:
    text = f"`{response.of}`"
    if response.read_at_s is not None:
        text += f", the mean until {format_duration(response.read_at_s)}"
    if response.transform != "none":
        text += f", analysed as its {'logarithm' if response.transform == 'log' else 'reciprocal'}"
    return text


def _missing_notices(results: Results, analyses: Mapping[str, Analysis]) -> list[Block]:
    """Return notices and tables of runs that are missing or not steady, with advice."""
    blocks: list[Block] = []
    total = len(results.runs)

    def notice(runs: Sequence[MarkedRun], state: str, mood: Literal["fair", "bad"], text: str) -> Notice:
        verb = "is" if len(runs) == 1 else "are"
        return Notice(mood=mood, title=f"{len(runs)} of {total} runs {verb} {state}", text=text)

    if missing := next((analysis.missing for analysis in analyses.values() if analysis.missing), ()):
        failed = sum(1 for answer in results.answers if answer.problem)
        text = "There is nothing to analyse."
        if len(missing) < total:
            text = (
                "They have no answer, and the analysis leaves them out. It estimates all effects together, and cannot"
                " separate some of them."
            )
        text += " Correct the problems below and run again: finished runs are kept."
        caption = f"{failed} failed." if failed else "Their answers cannot be analysed."
        blocks += [
            notice(missing, "missing", "bad" if 2 * len(missing) > total else "fair", text),
            missing_table(results.experiment, missing, title="Missing runs", caption=caption),
        ]
    if unsteady := next((analysis.unsteady for analysis in analyses.values() if analysis.unsteady), ()):
        text = (
            "Their throughput was still changing at their end, so their answers depend on the duration. The analysis"
            " includes them. Give the runs more time (`duration` in the file). The test calls one in twenty steady runs"
            " unsteady by chance."
        )
        blocks += [
            notice(unsteady, "not steady", "fair", text),
            missing_table(results.experiment, unsteady, title="Runs that are not steady", caption=""),
        ]
    return blocks


def _findings_section(
    results: Results, analysis: Analysis, scale: Scale, pictures: tuple[Picture, ...], number: int
) -> Section:
    experiment = results.experiment
    blocks: list[Block] = []
    if confounding := describe_confounding(experiment, analysis):
        blocks.append(Notice(mood="fair", title="Some effects share one estimate", text=confounding))
    blocks += [_drawing(picture) for picture in pictures if picture.is_finding]
    if analysis.screening is not None and is_sample(experiment):
        blocks.append(screening_table(analysis.screening))
    if analysis.effects and analysis.sst > 0.0:
        effects = effects_table(analysis, scale)
        is_short = len(effects.rows) <= _MAX_UNFOLDED_ROWS and not is_sample(experiment)
        blocks.append(effects if is_short else Folded(summary="All effects", table=effects))
    levels = level_effects_table(analysis, scale)
    if levels is not None:
        blocks.append(Folded(summary="Distance of each level from the mean", table=levels))
    if analysis.not_told_apart:
        usual = (
            "Of effects that share one estimate, the one with fewer factors is usually the cause; more runs would tell."
        )
        blocks.append(
            Listing(title="Effects that these runs cannot separate", entries=(*analysis.not_told_apart, usual))
        )
    if analysis.cells:
        cells = cells_table(experiment, analysis, scale)
        summary = f"Answers of all {len(analysis.cells):,} combinations"
        blocks.append(cells if len(cells.rows) <= _MAX_UNFOLDED_ROWS else Folded(summary=summary, table=cells))
    sentences = describe_answer(results, analysis, scale), describe_surface(experiment, analysis, scale)
    return Section(
        anchor=f"found-{number}",
        title=f"{capitalised(scale.name)}: findings",
        lead=" ".join(sentences).strip(),
        blocks=tuple(blocks),
    )


def _drawing(picture: Picture) -> Drawing:
    return Drawing(svg=picture.svg(), title=picture.title, caption=picture.caption)


def _trust_section(
    results: Results, analysis: Analysis, scale: Scale, pictures: tuple[Picture, ...], number: int
) -> Section:
    checks = analysis.residuals.checks if analysis.residuals else ()
    doubtful = [check for check in checks if check.is_doubtful]
    paragraphs = [f"Noise: {analysis.noise}."] if analysis.noise else []
    if analysis.s_e is not None and analysis.error_df > 0:
        share = analysis.error_share_ratio
        unexplained = (
            f"; the effects leave {format_percent(share)} of the variation unexplained" if share is not None else ""
        )
        statement = (
            "The formula is exact, and the effects miss its answers by"
            if results.experiment.evaluator == "solve"
            else "Runs of one combination differ by"
        )
        paragraphs.append(f"{statement} {scale.format_difference(analysis.s_e)} (standard deviation){unexplained}.")
    if analysis.lenth is not None:
        margin = scale.format_difference(analysis.lenth.margin)
        simultaneous_margin = scale.format_difference(analysis.lenth.simultaneous_margin)
        paragraphs.append(
            f"Without repeated runs, an effect stands out if it is larger than {margin} (Lenth's margin); among so many"
            f" effects, if it is larger than {simultaneous_margin}."
        )
    passed = tuple(
        f"{check.name}: {check.verdict}"
        + (f" ({check.method}, p = {check.p_value:.2g})" if check.p_value is not None else "")
        for check in checks
        if not check.is_doubtful
    )
    fit = analysis.surface.lack_of_fit if analysis.surface else None
    notes = [*analysis.notes, *((f"fit of the surface: {fit.verdict}",) if fit else ())]
    return Section.of(
        f"trust-{number}",
        f"{capitalised(scale.name)}: checks of the analysis",
        _describe_trust(analysis, is_doubtful=bool(doubtful)),
        *[
            Notice(mood="fair", title=f"Doubtful: {check.name}", text=f"{_sentence(check.verdict)} ({check.method})")
            for check in doubtful
        ],
        Prose(tuple(paragraphs)),
        *[_drawing(picture) for picture in pictures if not picture.is_finding],
        bool(passed) and Listing(title="Assumptions that hold", entries=passed),
        bool(notes) and Listing(title="Notes on the numbers", entries=tuple(map(_sentence, notes))),
        bool(analysis.advice) and Listing(title="Next steps", entries=tuple(map(_sentence, analysis.advice))),
        bool(analysis.anova and analysis.sst > 0.0)
        and Folded(summary="Analysis of variance", table=anova_table(analysis, scale)),
    )


def _sentence(text: str) -> str:
    return capitalised(text) + ("" if text.endswith((".", "!", "?")) else ".")


def _describe_trust(analysis: Analysis, *, is_doubtful: bool) -> str:
    if analysis.mean is None:
        return "No run has an answer."
    if analysis.sst == 0.0:
        return "The response does not vary."
    parts = []
    if analysis.r2_ratio is not None and analysis.error_df > 0:
        parts.append(f"The effects together explain {format_percent(analysis.r2_ratio)} of the variation.")
    if is_doubtful:
        parts.append("An assumption of the analysis is doubtful: take the intervals as rough.")
    elif analysis.residuals is not None and analysis.residuals.checks and analysis.error_df > 0:
        parts.append("The residuals contradict no assumption of the analysis.")
    if analysis.missing or analysis.unsteady:
        parts.append("Some runs are missing or not steady; see above.")
    return " ".join(parts)


def experiment_page(
    results: Results,
    analyses: Mapping[str, Analysis],
    *,
    over_time: RunOverTime | None = None,
    command: str = "",
    pictures: Pictures | None = None,
) -> Page:
    """Return the page: the question, the factors, the findings, checks of the analysis, and the provenance.

    The arguments are those of :func:`experiment_sections`; ``command``: command line for the foot of the page.
    """
    experiment = results.experiment
    answers = [headline(results, analysis, scale_of(results, name)) for name, analysis in analyses.items()]
    return Page(
        title=experiment.title or f"Experiment {experiment.name}",
        question=experiment.question
        or f"How do {', '.join(factor.name for factor in experiment.factors)} affect {', '.join(analyses)}?",
        answer=" ".join(answers),
        sections=experiment_sections(results, analyses, over_time=over_time, pictures=pictures),
        provenance=_provenance(results, command),
        source="Notation and method: R. Jain, The Art of Computer Systems Performance Analysis, Wiley 1991, part IV.",
    )


def _provenance(results: Results, command: str) -> tuple[tuple[str, str], ...]:
    experiment = results.experiment
    resumed = f", {results.resumed:,} of them kept from an earlier start" if results.resumed else ""
    rows = [
        ("Command", f"`{command}`" if command else ""),
        ("Experiment", experiment.name),
        ("Evaluator", experiment.evaluator),
        ("Trial", format_duration(experiment.duration_s) if experiment.evaluator != "solve" else ""),
        ("Design", f"{experiment.design.kind.replace('_', ' ')}, {len(experiment.design.coded):,} combinations"),
        ("Generators", ", ".join(experiment.design.generators)),
        ("Replications", str(experiment.design.replications)),
        ("Seed", str(experiment.seed)),
        ("Runs", f"{len(results.runs):,}{resumed}"),
        ("Took", format_duration(float(f"{results.elapsed_s:.2g}")) if results.elapsed_s else ""),
        ("Versions", f"routecast {VERSION}, Python {platform.python_version()}"),
    ]
    return tuple((name, value) for name, value in rows if value)


def write_experiment(results: Results, analyses: Mapping[str, Analysis], out: Path, *, command: str = "") -> None:
    """Write ``report.html`` and ``figures/*.svg`` to a folder, which is made if missing.

    If the runs are tested for steadiness, one of them is simulated again to show its rates over time.

    Parameters
    ----------
    results : Results
    analyses : mapping of str to Analysis
        Analyses by name of the response.
    out : Path
        The folder.
    command : str
        Command line for the foot of the page.
    """
    (out / "figures").mkdir(parents=True, exist_ok=True)

    def write(picture: Picture, prefix: str = "") -> None:
        path = out / "figures" / f"{prefix}{picture.name}.svg"
        write_whole(path, picture.svg(has_heading=True))

    pictures = {name: pictures_of(results, analysis, scale_of(results, name)) for name, analysis in analyses.items()}
    for name in analyses:
        stem = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower()
        for picture in pictures[name]:
            write(picture, f"{stem}-")
    over_time = rerun_over_time(results)
    if over_time is not None:
        write(over_time_picture(results, over_time))
    page = experiment_page(results, analyses, over_time=over_time, command=command, pictures=pictures)
    write_whole(out / "report.html", render_page(page))
