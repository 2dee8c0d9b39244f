"""The report of an experiment: a page, the tables that the page and the terminal share, and its folder of figures."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from routecast import __version__
from routecast.experiment.analysis.outcome import Analysis, Cell, Effect, LevelEffect, Missing, Screening
from routecast.experiment.answer import Course, course_of
from routecast.experiment.designs import fraction_of
from routecast.experiment.model import Answer, Experiment, Factor, Response, Results, Run
from routecast.experiment.runs import levels_of_row
from routecast.experiment.views._pictures import Picture, Pictures, course_picture, pictures_of
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
from routecast.show.page import Block, Drawing, Folded, Listing, Notice, Page, Prose, Section, Tile, Tiles, render_page
from routecast.show.tables import Column, Table, percent

__all__ = [
    "MOST_ROWS",
    "alias_lines",
    "analysis_lines",
    "design_table",
    "experiment_page",
    "experiment_sections",
    "missing_tables",
    "terminal_effects",
    "write_experiment",
]

MOST_ROWS = 64
"""Combinations that the terminal lists."""
MOST_EFFECTS = 12
MOST_NAMED = 5
MOST_ALIASES = 4


def design_table(experiment: Experiment) -> Table:
    """Return the table of the combinations that are tried."""
    design = experiment.design
    replicated = f", {design.replications} runs of each" if design.replications > 1 else ""

    def level(number: int) -> Column:
        factor = experiment.factors[number]
        return Column.text(f"{factor.letter}: {factor.name}", lambda row: levels_of_row(experiment, row)[number].label)

    return Table.of(
        range(min(len(design.coded), MOST_ROWS)),
        Column("Row", "", "d", lambda row: row + 1),
        *map(level, range(len(experiment.factors))),
        name="design",
        title=f"{capitalised(design.kind.replace('_', ' '))}: {len(design.coded):,} combinations{replicated}",
    )


def alias_lines(experiment: Experiment) -> list[str]:
    """Return the confounded effects of a fraction; empty for other designs."""
    fraction = fraction_of(experiment.design, experiment.factors)
    if fraction is None:
        return []
    lines = [f"Resolution {fraction.resolution}, defining relation {' = '.join(('I', *fraction.defining_relation))}."]
    chains = [" = ".join(chain) for chain in fraction.alias_chains() if len(chain) > 1]
    return lines + ([f"Cannot be separated: {'; '.join(chains)}."] if chains else [])


def terminal_effects(results: Results, analysis: Analysis) -> Table:
    """Return the largest effects in Jain's notation; those that stand out from the noise are strong."""
    scale = scale_of(results, analysis.response)
    effects = analysis.effects[:MOST_EFFECTS]
    left_out = len(analysis.effects) - len(effects)

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
        what = "what the model leaves" if analysis.s_e is None else "noise, and what the model leaves"
        rows.append(("e", what, analysis.error_share_ratio, None, ""))
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
        caption=f"{left_out} smaller effects are in the report." if left_out else "",
        strong=lambda row: row[0] in strong,
    )


def _interval_title(analysis: Analysis) -> str:
    return f"{100.0 * analysis.confidence:.3g} % interval"


def analysis_lines(results: Results, analysis: Analysis) -> list[str]:
    """Return the effects on one response in sentences, and remarks on them."""
    scale = scale_of(results, analysis.response)
    sentences = [describe_answer(results, analysis, scale), describe_surface(results.experiment, analysis, scale)]
    lines = dict.fromkeys([*sentences, *_remarks(results.experiment, analysis)])
    return [line.replace("**", "") for line in lines if line]


def _remarks(experiment: Experiment, analysis: Analysis) -> list[str]:
    """Return remarks on the noise, on confounded effects, and on what to do next."""
    confounded = [effect for effect in analysis.effects if effect.aliases]
    sums = [f"q_{effect.name} = {_alias_sum(effect)}" for effect in confounded[:MOST_NAMED]]
    more = "; …" if len(confounded) > MOST_NAMED else ""
    lines = [f"These runs cannot tell apart: {'; '.join(sums)}{more}."] if sums else []
    lines += [f"Noise: {analysis.noise}."] if analysis.noise else []
    lines += _first_lines(analysis.not_told_apart) if analysis.missing else _confounded(experiment, analysis)
    if analysis.residuals is not None:
        lines += [f"Doubt: {check.verdict}." for check in analysis.residuals.checks if check.is_doubtful]
    lines += [f"Note: {note}." for note in analysis.notes]
    return lines + [f"Next: {advice}." for advice in analysis.advice]


def _confounded(experiment: Experiment, analysis: Analysis) -> list[str]:
    """Return the effects that the design confounds; for a fraction its defining relation."""
    fraction = fraction_of(experiment.design, experiment.factors)
    if fraction is None:
        return _first_lines(analysis.not_told_apart)
    words = fraction.defining_relation
    more = " = …" if len(words) > MOST_ALIASES else ""
    return [f"A fraction of resolution {fraction.resolution}: I = {' = '.join(words[:MOST_ALIASES])}{more}."]


def _alias_sum(effect: Effect) -> str:
    """Return an effect with its aliases; of many aliases only the shortest, which are likely the largest."""
    more = ["…"] if len(effect.aliases) > MOST_ALIASES else []
    return " ".join((effect.name, *effect.aliases[:MOST_ALIASES], *more))


def _first_lines(lines: Sequence[str]) -> list[str]:
    more = [f"… and {len(lines) - MOST_NAMED} more."] if len(lines) > MOST_NAMED else []
    return [*lines[:MOST_NAMED], *more]


def missing_tables(results: Results) -> Iterator[Table]:
    """Yield a table of the runs without an answer and one of the runs that are not steady, with the reasons."""
    lack = any(answer.problem and answer.values for answer in results.answers)
    without = "Runs that lack answers" if lack else "Runs without an answer"

    def levels(row: int) -> str:
        return ", ".join(level.label for level in levels_of_row(results.experiment, row))

    for title, key in ((without, "problem"), ("Runs that are not steady", "unsteady")):
        pairs = zip(results.runs, results.answers, strict=True)
        lacking = [(run, getattr(answer, key)) for run, answer in pairs if getattr(answer, key)]
        if not lacking:
            continue
        more = len(lacking) - MOST_NAMED
        yield Table.of(
            lacking[:MOST_NAMED],
            Column("Row", "", "d", lambda row: row[0].row + 1),
            Column("Run", "", "d", lambda row: row[0].replication + 1),
            Column.text("Levels", lambda row: levels(row[0].row)),
            Column.text("Why", lambda row: " ".join(str(row[1]).split())),
            name=key,
            title=f"{title}: {len(lacking)} of {len(results.runs)}",
            caption=f"{more} more: results.parquet has them all." if more > 0 else "",
        )


_MOST_ROWS = 1000
"""Rows that a table of the page lists."""


def factors_table(experiment: Experiment) -> Table:
    """Return the factors with their levels."""
    separator = " … " if is_sample(experiment) else ", "

    def levels(factor: Factor) -> str:
        return separator.join(level.label for level in factor.levels) + (" (steps are ratios)" if factor.is_log else "")

    return Table.of(
        experiment.factors,
        Column.text("", "letter"),
        Column.text("Factor", "name"),
        Column.text("Levels", levels, wrap=True),
        name="factors",
        title="What varied",
        caption="Letters stand for the factors in the tables; −1 and +1 for the first and the last level.",
    )


def effects_table(analysis: Analysis, scale: Scale) -> Table:
    """Return the effects with their shares, the largest first; those that stand out from the noise are strong."""
    step, unit, rounding = _amounts(analysis, scale)
    has_value = any(effect.value is not None for effect in analysis.effects)
    has_interval = has_value and any(effect.low is not None for effect in analysis.effects)

    def amount(title: str, key: str, form: str, group: str = "") -> Column:
        def cell(effect: Effect) -> float | None:
            value: float | None = getattr(effect, key)
            return None if value is None else 0.0 if abs(value) < rounding else value / step

        return Column(title, unit, form, cell, group=group)

    what = "An effect is what going from the middle to the high level adds; from low to high is twice that. "
    what = what if has_value else ""
    q0 = f"q0 (mean) = {scale.text(analysis.mean)}. " if analysis.mean is not None else ""
    if scale.transform == "log":
        q0 += "Effects are on the logarithm: exp of one is the factor by which it multiplies. "
    elif scale.transform == "reciprocal":
        q0 += "Effects are on the reciprocal. "
    shaded = " Shaded rows are significant." if any(effect.is_significant for effect in analysis.effects) else ""
    return Table.of(
        analysis.effects,
        Column.text("", "name"),
        Column.text("Effect of", "label", wrap=True),
        Column("Share", "%", percent, "share_ratio"),
        has_value and amount("Effect", "value", "+.4g"),
        has_interval and amount("from", "low", "+.3g", _interval_title(analysis)),
        has_interval and amount("to", "high", "+.3g", _interval_title(analysis)),
        any(effect.aliases for effect in analysis.effects)
        and Column.text("Aliased with", lambda effect: ", ".join(effect.aliases), wrap=True),
        Column.text("Verdict", "verdict", wrap=True),
        name="effects",
        title=f"Effects on {scale.name}",
        caption=f"{q0}{what}Share: how much of the variation it explains.{shaded}",
        strong=lambda effect: effect.is_significant is True,
    )


def level_effects_table(analysis: Analysis, scale: Scale) -> Table | None:
    """Return the distance of each level from the mean, for factors with more than two levels; None without any."""
    step, unit, _ = _amounts(analysis, scale)
    rows = [(effect, level) for effect in analysis.effects if len(effect.letters) == 1 for level in effect.levels]
    if not rows:
        return None

    def amount(title: str, key: str, form: str) -> Column:
        def cell(row: tuple[Effect, LevelEffect]) -> float | None:
            value: float | None = getattr(row[1], key)
            return None if value is None else value / step

        return Column(title, unit, form, cell)

    return Table.of(
        rows,
        Column.text("", lambda row: row[0].name),
        Column.text("Factor", lambda row: row[0].label),
        Column.text("Level", lambda row: row[1].label),
        amount("Effect", "value", "+.4g"),
        amount("from", "low", "+.3g"),
        amount("to", "high", "+.3g"),
        name="levels",
        title="Effect of each level",
    )


def _amounts(analysis: Analysis, scale: Scale) -> tuple[float, str, float]:
    """Return the divisor of effects, their unit, and the size below which an effect is only rounding."""
    values = [effect.value for effect in analysis.effects if effect.value is not None]
    values += [level.value for effect in analysis.effects for level in effect.levels]
    return (*scale.for_amounts(values), 1e-9 * max(map(abs, values), default=0.0))


def anova_table(analysis: Analysis, scale: Scale) -> Table:
    """Return the table of the analysis of variance, in the layout of textbooks."""
    square = scale.step**2 if scale.transform == "none" else 1.0
    unit = f"({scale.unit})²" if scale.transform == "none" and scale.unit else ""

    def without_rounding(value: float | None) -> float | None:
        return None if value is None else 0.0 if value < 1e-14 * analysis.sst else value / square

    return Table.of(
        analysis.anova,
        Column.text("Component", "component"),
        Column("Degrees of freedom", "", "d", "df"),
        Column("Sum of squares", unit, ".5g", lambda row: without_rounding(row.ss)),
        Column("Share", "%", percent, lambda row: row.ss / analysis.sst if analysis.sst > 0.0 else None),
        Column("Mean square", unit, ".5g", lambda row: without_rounding(row.ms)),
        Column("F", "", ".4g", "f"),
        Column("p", "", ".3g", "p_value"),
        name="anova",
        title=f"Analysis of variance of {scale.name}",
    )


def _level_columns(experiment: Experiment, coded: Callable[[Any], Sequence[float]]) -> list[Column]:
    """Return a column of levels for each factor; ``coded`` returns the coded levels of a row."""

    def column(number: int, factor: Factor) -> Column:
        return Column.text(factor.name, lambda row: display_label(factor, coded(row)[number]))

    return [column(number, factor) for number, factor in enumerate(experiment.factors)]


def _cut(count: int) -> str:
    return f"The first {_MOST_ROWS:,} of {count:,}." if count > _MOST_ROWS else ""


def cells_table(experiment: Experiment, analysis: Analysis, scale: Scale) -> Table:
    """Return each combination with the mean answer of its runs and the model's prediction."""
    has_interval = any(cell.low is not None for cell in analysis.cells)

    def end(title: str, number: int) -> Column:
        def value(cell: Cell) -> float | None:
            ends = scale.ends(cell.low, cell.high)
            return None if ends is None else ends[number]

        return Column(title, scale.unit, getter=value, group=_interval_title(analysis))

    return Table.of(
        analysis.cells[:_MOST_ROWS],
        *_level_columns(experiment, lambda cell: cell.coded),
        Column("Answered", scale.unit, getter=lambda cell: None if cell.mean is None else scale.back(cell.mean)),
        Column(
            "Predicted", scale.unit, getter=lambda cell: None if cell.predicted is None else scale.back(cell.predicted)
        ),
        has_interval and end("from", 0),
        has_interval and end("to", 1),
        any(len(cell.values) > 1 for cell in analysis.cells) and Column("Runs", "", "d", lambda cell: len(cell.values)),
        name="cells",
        title=f"{capitalised(scale.name)} of each combination",
        caption=f"{_cut(len(analysis.cells))} Predicted: what the effects add up to. A dash: no run answered.".lstrip(),
    )


def runs_table(results: Results, scales: Mapping[str, Scale]) -> Table:
    """Return every run with its answers, and its limit or the reason why it has no answer."""
    experiment = results.experiment
    rows = [
        (number, run, answer)
        for number, (run, answer) in enumerate(zip(results.runs, results.answers, strict=True), start=1)
    ]

    def response(name: str, scale: Scale) -> Column:
        def value(row: tuple[int, Run, Answer]) -> float | None:
            base = row[2].values.get(name)
            return None if base is None else scale.shown(base)

        return Column(scale.name, scale.unit, getter=value)

    def remark(row: tuple[int, Run, Answer]) -> str:
        answer = row[2]
        return answer.problem or (f"not steady: {answer.unsteady}" if answer.unsteady else answer.bottleneck)

    return Table.of(
        rows[:_MOST_ROWS],
        Column("Run", "", "d", lambda row: row[0]),
        *_level_columns(experiment, lambda row: experiment.design.coded[row[1].row]),
        Column("Replication", "", "d", lambda row: row[1].replication + 1),
        *(response(name, scale) for name, scale in scales.items()),
        Column.text("What limited it, or why it has no answer", remark, wrap=True),
        name="runs",
        title="Every run",
        caption=_cut(len(results.runs)),
    )


def missing_table(experiment: Experiment, missing: Sequence[Missing], *, title: str, caption: str) -> Table:
    """Return runs that are missing or not steady, with the reasons."""
    return Table.of(
        missing[:_MOST_ROWS],
        Column("Run", "", "d", lambda run: run.run + 1),
        *_level_columns(experiment, lambda run: experiment.design.coded[run.row]),
        Column.text("Why", "why", wrap=True),
        name="missing",
        title=title,
        caption=caption,
    )


def screening_table(screening: Screening) -> Table:
    """Return the factors of a sample by importance."""
    has_shares = any(factor.first_order_ratio is not None for factor in screening.factors)
    return Table.of(
        screening.factors,
        Column("Rank", "", "d", "rank"),
        Column.text("Factor", "name"),
        has_shares and Column("Alone", "%", percent, "first_order_ratio"),
        has_shares and Column("With interactions", "%", percent, "total_ratio"),
        Column("Direction", "", "+.2f", "srrc"),
        name="screening",
        title="Which factors matter",
        caption="Alone: the share of the variance that the factor explains by itself; with interactions: the share "
        f"that it has a part in. Direction: −1 to +1, the sign says which way. {screening.method.strip().rstrip('.')}.",
    )


_EVALUATORS = {
    "solve": "a closed form",
    "simulate": "a simulation of every packet",
    "measure": "a real router on the wire",
}
_LONG = 40
"""Tables with more rows are folded."""


def experiment_sections(
    results: Results,
    analyses: Mapping[str, Analysis],
    *,
    course: Course | None = None,
    prefix: str = "",
    pictures: Pictures | None = None,
) -> tuple[Section, ...]:
    """Return the parts of a page about an experiment.

    ``analyses``: by name of the response; ``course``: one run over time
    (:func:`routecast.experiment.answer.course_of`); ``prefix``: of the sections' anchors and titles, for pages with
    several experiments; ``pictures``: by name of the response, drawn here if not given.
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
            course is not None and _drawing(course_picture(results, course)),
            Folded(
                summary=f"All {len(results.runs):,} runs with what they answered", table=runs_table(results, scales)
            ),
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
        tiles.append(Tile(f"{answered - unsteady:,}", "of them steady", "transient cut off, tested for drift"))
    trials = f"{_EVALUATORS[experiment.evaluator]} answered each"
    if experiment.evaluator != "solve":
        trials += f", {format_duration(experiment.duration_s)} long"
    responses = ", ".join(f"{response.name} ({_describe_path(response)})" for response in experiment.responses)
    return Section.of(
        "asked",
        "What was asked",
        experiment.question,
        *_missing_notices(results, analyses),
        Tiles(tuple(tiles)),
        Prose((describe_design(experiment), f"{capitalised(trials)}. Read from it: {responses}.")),
        factors_table(experiment),
    )


def _describe_path(response: Response) -> str:
    text = f"`{response.of}`"
    if response.read_at_s is not None:
        text += f" as one look at {format_duration(response.read_at_s)} had shown it"
    if response.transform != "none":
        text += f", its {'logarithm' if response.transform == 'log' else 'reciprocal'} is analysed"
    return text


def _missing_notices(results: Results, analyses: Mapping[str, Analysis]) -> list[Block]:
    """Return notices of runs that are missing or not steady, with advice."""
    blocks: list[Block] = []
    total = len(results.runs)

    def notice(runs: Sequence[Missing], state: str, mood: Literal["fair", "bad"], text: str) -> Notice:
        verb = "is" if len(runs) == 1 else "are"
        return Notice(mood=mood, title=f"{len(runs)} of {total} runs {verb} {state}", text=text)

    if missing := next((analysis.missing for analysis in analyses.values() if analysis.missing), ()):
        failed = sum(1 for answer in results.answers if answer.problem)
        text = "There is nothing to analyse."
        if len(missing) < total:
            text = (
                "They have no answer; the rest was analysed without them. Effects are then estimated together, and some"
                " may not be told apart."
            )
        text += " Correct the problems below and run again: finished runs are kept."
        caption = f"{failed} failed." if failed else "Their answers cannot be analysed."
        blocks += [
            notice(missing, "missing", "bad" if 2 * len(missing) > total else "fair", text),
            missing_table(results.experiment, missing, title="Missing runs", caption=caption),
        ]
    if unsteady := next((analysis.unsteady for analysis in analyses.values() if analysis.unsteady), ()):
        text = (
            "Their throughput was still changing when they ended, so what was read from them depends on when"
            " it was read. They are analysed all the same. Give the runs more time (`duration` in the file)."
            " Of runs that are steady, one in twenty is called unsteady by chance."
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
        blocks.append(Notice(mood="fair", title="Some effects share their numbers", text=confounding))
    blocks += [_drawing(picture) for picture in pictures if picture.is_finding]
    if analysis.screening is not None and is_sample(experiment):
        blocks.append(screening_table(analysis.screening))
    if analysis.effects and analysis.sst > 0.0:
        effects = effects_table(analysis, scale)
        is_short = len(effects.rows) <= _LONG and not is_sample(experiment)
        blocks.append(effects if is_short else Folded(summary="All effects", table=effects))
    levels = level_effects_table(analysis, scale)
    if levels is not None:
        blocks.append(Folded(summary="How far each level lies from the mean", table=levels))
    if analysis.not_told_apart:
        usual = "Where effects share a number, the one with fewer factors is usually the cause; more runs settle it."
        blocks.append(Listing(title="What these runs cannot tell apart", entries=(*analysis.not_told_apart, usual)))
    if analysis.cells:
        cells = cells_table(experiment, analysis, scale)
        summary = f"The answers of all {len(analysis.cells):,} combinations"
        blocks.append(cells if len(cells.rows) <= _LONG else Folded(summary=summary, table=cells))
    sentences = describe_answer(results, analysis, scale), describe_surface(experiment, analysis, scale)
    return Section(
        anchor=f"found-{number}",
        title=f"{capitalised(scale.name)}: what was found",
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
        explained = f"; the effects leave {format_percent(share)} unexplained" if share is not None else ""
        what = (
            "The formula is exact; the effects miss what it answers by"
            if results.experiment.evaluator == "solve"
            else "One run like another differs by"
        )
        paragraphs.append(f"{what} {scale.amount(analysis.s_e)} (standard deviation){explained}.")
    if analysis.lenth is not None:
        paragraphs.append(
            f"Without repeated runs, an effect counts as outstanding beyond {scale.amount(analysis.lenth.margin)}"
            f" (Lenth's margin), and beyond {scale.amount(analysis.lenth.simultaneous_margin)} also with so many"
            " effects looked at."
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
        f"{capitalised(scale.name)}: can it be trusted?",
        _describe_trust(analysis, is_doubtful=bool(doubtful)),
        *[
            Notice(mood="fair", title=f"Doubtful: {check.name}", text=f"{_sentence(check.verdict)} ({check.method})")
            for check in doubtful
        ],
        Prose(tuple(paragraphs)),
        *[_drawing(picture) for picture in pictures if not picture.is_finding],
        bool(passed) and Listing(title="What the analysis assumes", entries=passed),
        bool(notes) and Listing(title="Know before you use the numbers", entries=tuple(map(_sentence, notes))),
        bool(analysis.advice) and Listing(title="What to do next", entries=tuple(map(_sentence, analysis.advice))),
        bool(analysis.anova and analysis.sst > 0.0)
        and Folded(summary="The analysis of variance in full", table=anova_table(analysis, scale)),
    )


def _sentence(text: str) -> str:
    return capitalised(text) + ("" if text.endswith((".", "!", "?")) else ".")


def _describe_trust(analysis: Analysis, *, is_doubtful: bool) -> str:
    if analysis.mean is None:
        return "There is nothing to judge."
    if analysis.sst == 0.0:
        return "There is no variation to explain."
    parts = []
    if analysis.r2_ratio is not None and analysis.error_df > 0:
        parts.append(f"The effects together explain {format_percent(analysis.r2_ratio)} of the variation.")
    if is_doubtful:
        parts.append("Something speaks against what the analysis assumes: read the intervals as rough.")
    elif analysis.residuals is not None and analysis.residuals.checks and analysis.error_df > 0:
        parts.append("Nothing speaks against what the analysis assumes.")
    if analysis.missing or analysis.unsteady:
        parts.append("Some runs are missing or not steady; see above.")
    return " ".join(parts)


def experiment_page(
    results: Results,
    analyses: Mapping[str, Analysis],
    *,
    course: Course | None = None,
    command: str = "",
    pictures: Pictures | None = None,
) -> Page:
    """Return the page: the question, what varied, the findings, whether to trust them, how the page was made.

    Arguments as of :func:`experiment_sections`; ``command`` is the command line for the foot of the page.
    """
    experiment = results.experiment
    answers = [headline(results, analysis, scale_of(results, name)) for name, analysis in analyses.items()]
    return Page(
        title=experiment.title or f"Experiment {experiment.name}",
        question=experiment.question
        or f"What do {', '.join(factor.name for factor in experiment.factors)} do to {', '.join(analyses)}?",
        answer=" ".join(answers),
        sections=experiment_sections(results, analyses, course=course, pictures=pictures),
        made=_provenance(results, command),
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
        ("Versions", f"routecast {__version__}, Python {platform.python_version()}"),
    ]
    return tuple((name, value) for name, value in rows if value)


def write_experiment(results: Results, analyses: Mapping[str, Analysis], out: Path, *, command: str = "") -> None:
    """Write ``report.html`` and ``figures/*.svg`` to a folder, which is made if missing.

    If the runs are tested for steadiness, one of them is simulated again to show its course over time.

    Parameters
    ----------
    results : Results
    analyses : mapping of str to Analysis
        By name of the response.
    out : Path
    command : str
        The command line, for the foot of the page.
    """
    (out / "figures").mkdir(parents=True, exist_ok=True)

    def write(picture: Picture, prefix: str = "") -> None:
        path = out / "figures" / f"{prefix}{picture.name}.svg"
        path.write_text(picture.svg(has_heading=True), encoding="utf-8")

    pictures = {name: pictures_of(results, analysis, scale_of(results, name)) for name, analysis in analyses.items()}
    for name in analyses:
        stem = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower()
        for picture in pictures[name]:
            write(picture, f"{stem}-")
    course = course_of(results)
    if course is not None:
        write(course_picture(results, course))
    page = experiment_page(results, analyses, course=course, command=command, pictures=pictures)
    (out / "report.html").write_text(render_page(page), encoding="utf-8")
