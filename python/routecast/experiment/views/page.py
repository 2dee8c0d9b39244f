"""The page of an experiment.

An experiment on a terminal: its plan, the effects of each response, what they mean in plain words.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from routecast import __version__
from routecast.experiment._runs import levels_of_row
from routecast.experiment.analysis.outcome import Analysis, Effect, Missing, Screening
from routecast.experiment.answer import Course, course_of
from routecast.experiment.designs import fraction_of
from routecast.experiment.model import Experiment, Response, Results
from routecast.experiment.views._pictures import Picture, Pictures, course_picture, pictures_of
from routecast.experiment.views._words import (
    Scale,
    answer_said,
    design_said,
    headline,
    is_sample,
    label_of,
    percent_said,
    scale_of,
    shared_said,
    surface_said,
)
from routecast.quantity import format_duration
from routecast.show.page import Block, Drawing, Folded, Listing, Notice, Page, Prose, Section, Tile, Tiles, render_page
from routecast.show.tables import Cell, Column, Table, percent

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
MOST_EFFECTS = 12
MOST_NAMED = 5
MOST_ALIASES = 4


def design_table(experiment: Experiment) -> Table:
    """Return which combinations of levels are tried."""
    design = experiment.design
    replicated = f", {design.replications} runs of each" if design.replications > 1 else ""
    kind = design.kind.replace("_", " ")

    def level(number: int) -> Column:
        factor = experiment.factors[number]
        return Column.text(f"{factor.letter}: {factor.name}", lambda row: levels_of_row(experiment, row)[number].label)

    return Table.of(
        range(min(len(design.coded), MOST_ROWS)),
        Column("Row", "", "d", lambda row: row + 1),
        *map(level, range(len(experiment.factors))),
        name="design",
        title=f"{kind[:1].upper()}{kind[1:]}: {len(design.coded):,} combinations{replicated}",
    )


def alias_lines(experiment: Experiment) -> list[str]:
    """Return what a fraction confounds; nothing of other designs."""
    fraction = fraction_of(experiment.design, experiment.factors)
    if fraction is None:
        return []
    lines = [f"Resolution {fraction.resolution}, defining relation {' = '.join(('I', *fraction.defining_relation))}."]
    chains = [" = ".join(chain) for chain in fraction.alias_chains() if len(chain) > 1]
    return lines + ([f"Cannot be told apart: {'; '.join(chains)}."] if chains else [])


def terminal_effects(results: Results, analysis: Analysis) -> Table:
    """Return the largest effects in Jain's notation; those told from noise are strong."""
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
        Column.text(
            f"{100.0 * analysis.confidence:.3g} % interval", lambda row: row[4], wide=not any(row[4] for row in rows)
        ),
        name="effects",
        title=f"Effects on {scale.analysed_axis}",
        caption=f"{left_out} smaller effects are in the report." if left_out else "",
        strong=lambda row: row[0] in strong,
    )


def analysis_lines(results: Results, analysis: Analysis) -> list[str]:
    """Return in words what the effects on one response mean, and what must be known beside them."""
    scale = scale_of(results, analysis.response)
    sentences = [answer_said(results, analysis, scale), surface_said(results.experiment, analysis, scale)]
    lines = dict.fromkeys([*sentences, *_remarks(results.experiment, analysis)])
    return [line.replace("**", "") for line in lines if line]


def _remarks(experiment: Experiment, analysis: Analysis) -> list[str]:
    """Return what must be known beside the effects: the noise, what is confounded, what to do next."""
    confounded = [effect for effect in analysis.effects if effect.aliases]
    together = [f"q_{alias.name} = {_summed(alias)}" for alias in confounded[:MOST_NAMED]]
    more = "; …" if len(confounded) > MOST_NAMED else ""
    lines = [f"These runs cannot tell apart: {'; '.join(together)}{more}."] if together else []
    lines += [f"Noise: {analysis.noise}."] if analysis.noise else []
    lines += _first(analysis.not_told_apart) if analysis.missing else _confounded(experiment, analysis)
    if analysis.residuals is not None:
        lines += [f"Doubt: {check.verdict}." for check in analysis.residuals.checks if check.is_doubtful]
    lines += [f"Note: {note}." for note in analysis.notes]
    return lines + [f"Next: {advice}." for advice in analysis.advice]


def _confounded(experiment: Experiment, analysis: Analysis) -> list[str]:
    """Return what the design itself confounds: of a fraction its defining relation says it all."""
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


def missing_tables(results: Results) -> Iterator[Table]:
    """Yield which runs have no answer, and which are not steady, with the reasons."""
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


def factors_table(experiment: Experiment) -> Table:
    """Return what was varied, and between what."""
    return Table.of(
        experiment.factors,
        Column.text("", "letter"),
        Column.text("Factor", "name"),
        Column.text(
            "Levels",
            lambda factor: (
                (" … " if experiment.design.kind in {"latin_hypercube", "sobol"} else ", ").join(
                    level.label for level in factor.levels
                )
                + (" (steps are ratios)" if factor.is_log else "")
            ),
            wrap=True,
        ),
        name="factors",
        title="What varied",
        caption="Letters stand for the factors in the tables; −1 and +1 for the first and the last level.",
    )


def effects_table(analysis: Analysis, scale: Scale) -> Table:
    """Return the effects with their shares, the largest first; those told from noise are strong."""
    has_aliases = any(effect.aliases for effect in analysis.effects)
    has_value = any(effect.value is not None for effect in analysis.effects)
    has_interval = any(effect.low is not None for effect in analysis.effects)
    step, unit, nothing = _amounts(analysis, scale)
    level = f"{100.0 * analysis.confidence:.3g} %"
    rows: list[tuple[Cell, ...]] = []
    for effect in analysis.effects:
        numbers = [
            None if value is None else 0.0 if abs(value) < nothing else value / step
            for value in (effect.value, effect.low, effect.high)
        ]
        rows.append(
            (
                effect.name,
                effect.label,
                effect.share_ratio,
                *(numbers[: 3 if has_interval else 1] if has_value else ()),
                *((", ".join(effect.aliases),) if has_aliases else ()),
                effect.verdict,
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
            + (" Shaded rows are told from noise." if any(effect.is_significant for effect in analysis.effects) else "")
        ),
        columns=(
            Column.text(""),
            Column.text("Effect of", wrap=True),
            Column("Share", "%", percent),
            *((Column("Effect", unit, "+.4g"),) if has_value else ()),
            *(
                (
                    Column("from", unit, "+.3g", group=f"{level} interval"),
                    Column("to", unit, "+.3g", group=f"{level} interval"),
                )
                if has_interval
                else ()
            ),
            *((Column.text("Cannot be told from", wrap=True),) if has_aliases else ()),
            Column.text("Verdict", wrap=True),
        ),
        rows=tuple(rows),
        strong=frozenset(number for number, effect in enumerate(analysis.effects) if effect.is_significant is True),
    )


def level_effects_table(analysis: Analysis, scale: Scale) -> Table | None:
    """Return how far each level of the factors with more than two lies from the mean; None without such factors."""
    step, unit, _ = _amounts(analysis, scale)
    rows = [
        (effect.name, effect.label, level.label, *(
            None if value is None else value / step for value in (level.value, level.low, level.high)
        ))
        for effect in analysis.effects if len(effect.letters) == 1
        for level in effect.levels
    ]  # fmt: skip
    if not rows:
        return None
    return Table(
        name="levels",
        title="Effect of each level",
        caption="",
        columns=(
            Column.text(""),
            Column.text("Factor"),
            Column.text("Level"),
            Column("Effect", unit, "+.4g"),
            Column("from", unit, "+.3g"),
            Column("to", unit, "+.3g"),
        ),
        rows=tuple(rows),
    )


def _amounts(analysis: Analysis, scale: Scale) -> tuple[float, str, float]:
    """Return what to divide effects by, their unit, and below what they are nothing but rounding."""
    values = [effect.value for effect in analysis.effects if effect.value is not None]
    values += [level.value for effect in analysis.effects for level in effect.levels]
    greatest = max((abs(value) for value in values), default=0.0)
    return (*scale.for_amounts(values), 1e-9 * greatest)


def anova_table(analysis: Analysis, scale: Scale) -> Table:
    """Return the table of the analysis of variance, as textbooks print it."""
    square = scale.step**2 if scale.transform == "none" else 1.0
    unit = f"({scale.unit})²" if scale.transform == "none" and scale.unit else ""
    return Table.of(
        analysis.anova,
        Column.text("Component", "component"),
        Column("Degrees of freedom", "", "d", "df"),
        Column("Sum of squares", unit, ".5g", lambda row: _cleared(row.ss, analysis.sst) / square),
        Column("Share", "%", percent, lambda row: row.ss / analysis.sst if analysis.sst > 0.0 else None),
        Column(
            "Mean square", unit, ".5g", lambda row: None if row.ms is None else _cleared(row.ms, analysis.sst) / square
        ),
        Column("F", "", ".4g", "f"),
        Column("p", "", ".3g", "p_value"),
        name="anova",
        title=f"Analysis of variance of {scale.name}",
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
            *(Column.text(factor.name) for factor in experiment.factors),
            Column("Answered", scale.unit),
            Column("Predicted", scale.unit),
            *((Column("from", scale.unit, group=level), Column("to", scale.unit, group=level)) if has_interval else ()),
            *((Column("Runs", "", "d"),) if is_repeated else ()),
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
        remark = answer.problem or (f"not steady: {answer.unsteady}" if answer.unsteady else answer.bottleneck)
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
            Column("Run", "", "d"),
            *(Column.text(factor.name) for factor in experiment.factors),
            Column("Replication", "", "d"),
            *(Column(scale.name, scale.unit) for scale in scales.values()),
            Column.text("What limited it, or why it has no answer", wrap=True),
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
            Column("Run", "", "d"),
            *(Column.text(factor.name) for factor in experiment.factors),
            Column.text("Why", wrap=True),
        ),
        rows=tuple(
            (
                run.run + 1,
                *(
                    label_of(factor, at)
                    for factor, at in zip(experiment.factors, experiment.design.coded[run.row], strict=True)
                ),
                run.why,
            )
            for run in missing[:_MOST_ROWS]
        ),
    )


def screening_table(screening: Screening) -> Table:
    """Return the factors of a sample by how much they matter."""
    has_shares = any(factor.first_order_ratio is not None for factor in screening.factors)
    shares = (Column("Alone", "%", percent), Column("With interactions", "%", percent)) if has_shares else ()
    return Table(
        name="screening",
        title="Which factors matter",
        caption=_ended(
            "Alone: the share of the variance that the factor explains by itself; with interactions: the share that it"
            f" has a part in. Direction: −1 to +1, the sign says which way. {screening.method}"
        ),
        columns=(Column("Rank", "", "d"), Column.text("Factor"), *shares, Column("Direction", "", "+.2f")),
        rows=tuple(
            (
                factor.rank,
                factor.name,
                *((factor.first_order_ratio, factor.total_ratio) if has_shares else ()),
                factor.srrc,
            )
            for factor in screening.factors
        ),
    )


_ANSWERS = {
    "solve": "a closed form",
    "simulate": "a simulation of every packet",
    "measure": "a real router on the wire",
}
_LONG = 40


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
    several experiments; ``pictures``: by name of the response, where
    :func:`~routecast.experiment.views._pictures.pictures_of` has made them already.
    """
    scales = {name: scale_of(results, name) for name in analyses}
    if pictures is None:
        pictures = {name: pictures_of(results, analysis, scales[name]) for name, analysis in analyses.items()}
    lead = f"{prefix}: " if prefix else ""
    anchor = _anchor(prefix) + "-" if prefix else ""
    sections = [
        _response(results, analysis, scales[name], pictures[name], anchor=anchor, lead=lead, number=number)
        for number, (name, analysis) in enumerate(analyses.items())
    ]
    trust = [
        _trust(results, analysis, scales[name], pictures[name], anchor=anchor, lead=lead, number=number)
        for number, (name, analysis) in enumerate(analyses.items())
    ]
    return (
        _asked(results, analyses, anchor=anchor, lead=lead),
        *(section for pair in zip(sections, trust, strict=True) for section in pair),
        Section.of(
            f"{anchor}runs",
            f"{lead}Every run",
            "",
            course is not None and _drawing(course_picture(results, course)),
            Folded(
                summary=f"All {len(results.runs):,} runs with what they answered", table=runs_table(results, scales)
            ),
        ),
    )


def _anchor(text: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in text.lower())


def _asked(results: Results, analyses: Mapping[str, Analysis], *, anchor: str, lead: str) -> Section:
    experiment = results.experiment
    answered = sum(1 for answer in results.answers if answer.values)
    unsteady = sum(1 for answer in results.answers if answer.unsteady)
    tiles = [
        Tile(f"{len(experiment.design.coded):,}", "combinations of levels"),
        Tile(
            f"{answered:,}",
            "runs with an answer",
            f"of {len(results.runs):,}" if answered < len(results.runs) else "all of them",
        ),
    ]
    if experiment.is_steadied:
        tiles.append(Tile(f"{answered - unsteady:,}", "of them steady", "transient cut off, tested for drift"))
    who = f"{_ANSWERS[experiment.evaluator]} answered each"
    if experiment.evaluator != "solve":
        who += f", {format_duration(experiment.duration_s)} long"
    read = ", ".join(f"{response.name} ({_path_said(response)})" for response in experiment.responses)
    return Section.of(
        f"{anchor}asked",
        f"{lead}What was asked",
        experiment.question,
        *_missing_notices(results, analyses),
        Tiles(tuple(tiles)),
        Prose((f"{design_said(experiment)}", f"{who[:1].upper()}{who[1:]}. Read from it: {read}.")),
        factors_table(experiment),
    )


def _path_said(response: Response) -> str:
    text = f"`{response.of}`"
    if response.read_at_s is not None:
        text += f" as one look at {format_duration(response.read_at_s)} had shown it"
    if response.transform != "none":
        text += f", its {'logarithm' if response.transform == 'log' else 'reciprocal'} is analysed"
    return text


def _missing_notices(results: Results, analyses: Mapping[str, Analysis]) -> list[Block]:
    """Return what the analysis has to do without, and what to do about it."""
    blocks: list[Block] = []
    failed = sum(1 for answer in results.answers if answer.problem)
    first = next((analyse for analyse in analyses.values() if analyse.missing), None)
    if first is not None:
        count = len(first.missing)
        text = "There is nothing to analyse."
        if count < len(results.runs):
            text = (
                "They have no answer; the rest was analysed without them. Effects are then estimated together, and some"
                " may not be told apart."
            )
        blocks += [
            Notice(
                mood="bad" if 2 * count > len(results.runs) else "fair",
                title=f"{count} of {len(results.runs)} runs {'is' if count == 1 else 'are'} missing",
                text=f"{text} Mend what is said below and run again: runs that are there are kept.",
            ),
            missing_table(
                results.experiment,
                first.missing,
                title="Missing runs",
                caption=f"{failed} failed." if failed else "Their answers cannot be analysed.",
            ),
        ]
    drifting = next((analyse for analyse in analyses.values() if analyse.unsteady), None)
    if drifting is not None:
        count = len(drifting.unsteady)
        blocks += [
            Notice(
                mood="fair",
                title=f"{count} of {len(results.runs)} runs {'is' if count == 1 else 'are'} not steady",
                text=(
                    "Their throughput was still changing when they ended, so what was read from them depends on when"
                    " it was read. They are analysed all the same. Give the runs more time (`duration` in the file)."
                    " Of runs that are steady, one in twenty is called unsteady by chance."
                ),
            ),
            missing_table(results.experiment, drifting.unsteady, title="Runs that are not steady", caption=""),
        ]
    return blocks


def _response(
    results: Results,
    analysis: Analysis,
    scale: Scale,
    pictures: tuple[Picture, ...],
    *,
    anchor: str,
    lead: str,
    number: int,
) -> Section:
    experiment = results.experiment
    blocks: list[Block] = []
    shared = shared_said(experiment, analysis)
    if shared:
        blocks.append(Notice(mood="fair", title="Some effects share their numbers", text=shared))
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
        blocks.append(_aliases(analysis))
    if analysis.cells:
        table = cells_table(experiment, analysis, scale)
        blocks.append(
            table
            if len(table.rows) <= _LONG
            else Folded(summary=f"The answers of all {len(analysis.cells):,} combinations", table=table)
        )
    name = f"{scale.name[:1].upper()}{scale.name[1:]}"
    sentence = answer_said(results, analysis, scale)
    flat = surface_said(experiment, analysis, scale)
    return Section(
        anchor=f"{anchor}found-{number}",
        title=f"{lead}{name}: what was found",
        lead=f"{sentence} {flat}".strip(),
        blocks=tuple(blocks),
    )


def _drawing(picture: Picture) -> Drawing:
    return Drawing(svg=picture.svg(), title=picture.title, caption=picture.caption)


def _aliases(analysis: Analysis) -> Listing:
    return Listing(
        title="What these runs cannot tell apart",
        entries=(
            *analysis.not_told_apart,
            "Where effects share a number, the one with fewer factors is usually the cause; more runs settle it.",
        ),
    )


def _trust(
    results: Results,
    analysis: Analysis,
    scale: Scale,
    pictures: tuple[Picture, ...],
    *,
    anchor: str,
    lead: str,
    number: int,
) -> Section:
    doubtful = [check for check in (analysis.residuals.checks if analysis.residuals else ()) if check.is_doubtful]
    paragraphs = [f"Noise: {analysis.noise}."] if analysis.noise else []
    if analysis.s_e is not None and analysis.error_df > 0:
        spread = scale.amount(analysis.s_e)
        share = analysis.error_share_ratio
        explained = f"; the effects leave {percent_said(share)} unexplained" if share is not None else ""
        what = (
            "The formula is exact; the effects miss what it answers by"
            if results.experiment.evaluator == "solve"
            else "One run like another differs by"
        )
        paragraphs.append(f"{what} {spread} (standard deviation){explained}.")
    if analysis.lenth is not None:
        paragraphs.append(
            f"Without repeated runs, an effect counts as outstanding beyond {scale.amount(analysis.lenth.margin)}"
            f" (Lenth's margin), and beyond {scale.amount(analysis.lenth.simultaneous_margin)} also with so many"
            " effects looked at."
        )
    checks = tuple(
        f"{check.name}: {check.verdict}"
        + (f" ({check.method}, p = {check.p_value:.2g})" if check.p_value is not None else "")
        for check in (analysis.residuals.checks if analysis.residuals else ())
        if not check.is_doubtful
    )
    fit = analysis.surface.lack_of_fit if analysis.surface else None
    notes = [*analysis.notes, *((f"fit of the surface: {fit.verdict}",) if fit else ())]
    return Section.of(
        f"{anchor}trust-{number}",
        f"{lead}{scale.name[:1].upper()}{scale.name[1:]}: can it be trusted?",
        _trust_said(analysis, len(doubtful)),
        *[
            Notice(mood="fair", title=f"Doubtful: {check.name}", text=f"{_sentence(check.verdict)} ({check.method})")
            for check in doubtful
        ],
        Prose(tuple(paragraphs)),
        *[_drawing(picture) for picture in pictures if not picture.is_finding],
        bool(checks) and Listing(title="What the analysis assumes", entries=checks),
        bool(notes) and Listing(title="Know before you use the numbers", entries=tuple(map(_sentence, notes))),
        bool(analysis.advice) and Listing(title="What to do next", entries=tuple(map(_sentence, analysis.advice))),
        bool(analysis.anova and analysis.sst > 0.0)
        and Folded(summary="The analysis of variance in full", table=anova_table(analysis, scale)),
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}" + ("" if text.endswith((".", "!", "?")) else ".")


def _trust_said(analysis: Analysis, doubtful: int) -> str:
    if analysis.mean is None:
        return "There is nothing to judge."
    if analysis.sst == 0.0:
        return "There is no variation to explain."
    parts = []
    if analysis.r2_ratio is not None and analysis.error_df > 0:
        parts.append(f"The effects together explain {percent_said(analysis.r2_ratio)} of the variation.")
    if doubtful:
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
    """Return the page: what was asked, what varied, what was found, whether to trust it, how it was made.

    ``pictures`` are those of each response, where they are there already.
    """
    experiment = results.experiment
    answers = [headline(results, analysis, scale_of(results, name)) for name, analysis in analyses.items()]
    return Page(
        title=experiment.title or f"Experiment {experiment.name}",
        question=experiment.question
        or f"What do {', '.join(factor.name for factor in experiment.factors)} do to {', '.join(analyses)}?",
        answer=" ".join(answers),
        sections=experiment_sections(results, analyses, course=course, pictures=pictures),
        made=_made(results, command),
        source=("Notation and method: R. Jain, The Art of Computer Systems Performance Analysis, Wiley 1991, part IV."),
    )


def _made(results: Results, command: str) -> tuple[tuple[str, str], ...]:
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

    An experiment whose runs are tested for steadiness has one of them simulated once more, to show its course.

    Parameters
    ----------
    results : Results
    analyses : mapping of str to Analysis
        By name of the response.
    out : Path
    command : str
        What was typed, for the foot of the page.
    """
    (out / "figures").mkdir(parents=True, exist_ok=True)
    pictures = {name: pictures_of(results, analysis, scale_of(results, name)) for name, analysis in analyses.items()}
    for name in analyses:
        stem = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower()
        for picture in pictures[name]:
            file = out / "figures" / f"{stem}-{picture.name}.svg"
            file.write_text(picture.svg(has_heading=True), encoding="utf-8")
    course = course_of(results)
    if course is not None:
        picture = course_picture(results, course)
        (out / "figures" / f"{picture.name}.svg").write_text(picture.svg(has_heading=True), encoding="utf-8")
    page = experiment_page(results, analyses, course=course, command=command, pictures=pictures)
    (out / "report.html").write_text(render_page(page), encoding="utf-8")
