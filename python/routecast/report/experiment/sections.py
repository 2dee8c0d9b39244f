"""The sections of an experiment: what was asked, what was found for each response, whether to trust it, every run."""

from __future__ import annotations

from collections.abc import Mapping

from routecast.experiment.analysis.outcome import Analysis
from routecast.experiment.answer.replay import Course
from routecast.experiment.model import Response, Results
from routecast.quantity import format_duration
from routecast.report.experiment.pictures import Picture, Pictures, course_picture, pictures_of
from routecast.report.experiment.scale import Scale, scale_of
from routecast.report.experiment.tables import (
    anova_table,
    cells_table,
    effects_table,
    factors_table,
    level_effects_table,
    missing_table,
    runs_table,
    screening_table,
)
from routecast.report.experiment.words import (
    answer_said,
    design_said,
    is_sample,
    percent_said,
    shared_said,
    surface_said,
)
from routecast.report.page import Block, Drawing, Folded, Listing, Notice, Prose, Section, Tile, Tiles

__all__ = ["experiment_sections"]

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

    Parameters
    ----------
    results : Results
    analyses : mapping of str to Analysis
        By name of the response.
    course : Course or None
        One run over time (:func:`routecast.experiment.answer.replay.course_of`).
    prefix : str
        Of the sections' anchors and titles, for pages with several experiments.
    pictures : mapping of str to tuple of Picture, optional
        By name of the response, where :func:`~routecast.report.experiment.pictures.pictures_of` has made them already.
    """
    scales = {name: scale_of(results, name) for name in analyses}
    if pictures is None:
        pictures = {name: pictures_of(results, analysis, scales[name]) for name, analysis in analyses.items()}
    lead = f"{prefix}: " if prefix else ""
    anchor = _anchor(prefix) + "-" if prefix else ""
    found = [
        _response(results, analysis, scales[name], pictures[name], anchor=anchor, lead=lead, number=number)
        for number, (name, analysis) in enumerate(analyses.items())
    ]
    trust = [
        _trust(results, analysis, scales[name], pictures[name], anchor=anchor, lead=lead, number=number)
        for number, (name, analysis) in enumerate(analyses.items())
    ]
    return (
        _asked(results, analyses, anchor=anchor, lead=lead),
        *(section for pair in zip(found, trust, strict=True) for section in pair),
        Section(
            anchor=f"{anchor}runs",
            title=f"{lead}Every run",
            blocks=(
                *((_drawing(course_picture(results, course)),) if course else ()),
                Folded(
                    summary=f"All {len(results.runs):,} runs with what they answered",
                    table=runs_table(results, scales),
                ),
            ),
        ),
    )


def _anchor(text: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in text.lower())


def _asked(results: Results, analyses: Mapping[str, Analysis], *, anchor: str, lead: str) -> Section:
    experiment = results.experiment
    answered = sum(1 for one in results.answers if one.values)
    unsteady = sum(1 for one in results.answers if one.unsteady)
    tiles = [
        Tile(value=f"{len(experiment.design.coded):,}", meaning="combinations of levels"),
        Tile(
            value=f"{answered:,}",
            meaning="runs with an answer",
            beside=f"of {len(results.runs):,}" if answered < len(results.runs) else "all of them",
        ),
    ]
    if experiment.is_steadied:
        tiles.append(
            Tile(
                value=f"{answered - unsteady:,}",
                meaning="of them steady",
                beside="transient cut off, tested for drift",
            )
        )
    who = f"{_ANSWERS[experiment.evaluator]} answered each"
    if experiment.evaluator != "solve":
        who += f", {format_duration(experiment.duration_s)} long"
    read = ", ".join(f"{one.name} ({_path_said(one)})" for one in experiment.responses)
    blocks: list[Block] = [
        *_missing_notices(results, analyses),
        Tiles(tuple(tiles)),
        Prose((f"{design_said(experiment)}", f"{who[:1].upper()}{who[1:]}. Read from it: {read}.")),
        factors_table(experiment),
    ]
    return Section(
        anchor=f"{anchor}asked",
        title=f"{lead}What was asked",
        lead=experiment.question,
        blocks=tuple(blocks),
    )


def _path_said(one: Response) -> str:
    said = f"`{one.of}`"
    if one.read_at_s is not None:
        said += f" as one look at {format_duration(one.read_at_s)} had shown it"
    if one.transform != "none":
        said += f", its {'logarithm' if one.transform == 'log' else 'reciprocal'} is analysed"
    return said


def _missing_notices(results: Results, analyses: Mapping[str, Analysis]) -> list[Block]:
    """Return what the analysis has to do without, and what to do about it."""
    blocks: list[Block] = []
    failed = sum(1 for one in results.answers if one.problem)
    first = next((one for one in analyses.values() if one.missing), None)
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
    drifting = next((one for one in analyses.values() if one.unsteady), None)
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
            missing_table(
                results.experiment, drifting.unsteady, title="Runs that are not steady", caption=""
            ),
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
    blocks += [_drawing(one) for one in pictures if one.is_finding]
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
    said = answer_said(results, analysis, scale)
    flat = surface_said(experiment, analysis, scale)
    return Section(
        anchor=f"{anchor}found-{number}",
        title=f"{lead}{name}: what was found",
        lead=f"{said} {flat}".strip(),
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
    doubtful = [
        check for check in (analysis.residuals.checks if analysis.residuals else ()) if check.is_doubtful
    ]
    blocks: list[Block] = [
        Notice(
            mood="fair", title=f"Doubtful: {check.name}", text=f"{_sentence(check.verdict)} ({check.method})"
        )
        for check in doubtful
    ]
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
    blocks.append(Prose(tuple(paragraphs)))
    blocks += [_drawing(one) for one in pictures if not one.is_finding]
    checks = tuple(
        f"{check.name}: {check.verdict}"
        + (f" ({check.method}, p = {check.p_value:.2g})" if check.p_value is not None else "")
        for check in (analysis.residuals.checks if analysis.residuals else ())
        if not check.is_doubtful
    )
    if checks:
        blocks.append(Listing(title="What the analysis assumes", entries=checks))
    fit = analysis.surface.lack_of_fit if analysis.surface else None
    notes = [*analysis.notes, *((f"fit of the surface: {fit.verdict}",) if fit else ())]
    if notes:
        blocks.append(Listing(title="Know before you use the numbers", entries=tuple(map(_sentence, notes))))
    if analysis.advice:
        blocks.append(Listing(title="What to do next", entries=tuple(map(_sentence, analysis.advice))))
    if analysis.anova and analysis.sst > 0.0:
        blocks.append(Folded(summary="The analysis of variance in full", table=anova_table(analysis, scale)))
    return Section(
        anchor=f"{anchor}trust-{number}",
        title=f"{lead}{scale.name[:1].upper()}{scale.name[1:]}: can it be trusted?",
        lead=_trust_said(analysis, len(doubtful)),
        blocks=tuple(blocks),
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
