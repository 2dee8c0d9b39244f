"""Which pictures a response gets, and how to read each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from routecast.experiment.analysis.outcome import Analysis
from routecast.experiment.answer.replay import Course
from routecast.experiment.model import Results
from routecast.report.drawing import draw
from routecast.report.experiment.half_normal import half_normal_figure
from routecast.report.experiment.levels import run_said
from routecast.report.experiment.means import interaction_panels, main_effect_panels
from routecast.report.experiment.profiles import profile_panels
from routecast.report.experiment.residuals import MOST_POINTS, residual_panels
from routecast.report.experiment.samples import sample_panels
from routecast.report.experiment.scale import Scale
from routecast.report.experiment.shares import bars_svg, effect_bars, screening_bars
from routecast.report.experiment.surface import surface_figure
from routecast.report.experiment.words import is_sample
from routecast.report.figures import Figure
from routecast.report.over_time import over_time_figure
from routecast.report.panels import columns_for, draw_panels

__all__ = ["Picture", "Pictures", "course_picture", "pictures_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One picture of a report.

    Parameters
    ----------
    name : str
        Stem of its file.
    title, caption : str
        The caption says how to read it.
    is_finding : bool
        Whether it shows what was found, or whether to trust it.
    drawn : callable
        Returns the SVG; ``has_heading`` writes title and caption into it.
    """

    name: str
    title: str
    caption: str
    is_finding: bool
    drawn: Callable[..., str]

    def svg(self, *, has_heading: bool = False) -> str:
        """Return the picture as SVG text."""
        return self.drawn(has_heading=has_heading)


Pictures = Mapping[str, tuple[Picture, ...]]
"""Pictures by name of the response."""


def pictures_of(results: Results, analysis: Analysis, scale: Scale) -> tuple[Picture, ...]:
    """Return the pictures of one response, in the order of a reader's questions."""
    if analysis.mean is None or analysis.sst == 0.0:
        return ()
    found = []
    is_drawn = is_sample(results.experiment)
    is_curved = analysis.surface is not None and results.experiment.design.kind == "central_composite"
    for picture in (
        _shared(results, analysis, scale),
        *(_profiled(results, analysis, scale) if is_curved else ()),
        *(() if is_drawn or is_curved else _compared(results, analysis, scale)),
        _sampled(results, analysis, scale),
        _mapped(results, analysis, scale),
        _outstanding(analysis, scale),
        _left_over(results, analysis, scale),
    ):
        if picture is not None:
            found.append(picture)
    return tuple(found)


def _left_over(results: Results, analysis: Analysis, scale: Scale) -> Picture | None:
    if results.experiment.evaluator == "solve":
        caption = (
            "A formula answers without noise: what is left over is what the effects lack. Points along the first dashed"
            " line are well predicted; a curve in the second picture asks for more levels, or another transform."
        )
    else:
        caption = (
            "Good: points along the first dashed line, and elsewhere a cloud without shape. A funnel means that errors"
            " grow with the response, a curve that the model lacks a term, a slope over the run order that something"
            " drifted, a bent line of normal scores that the intervals are rough."
        )
    figures = residual_panels(results, analysis, scale)
    return _panels("residuals", "What is left over", caption, figures, is_finding=False)


def _shared(results: Results, analysis: Analysis, scale: Scale) -> Picture | None:
    title = f"What explains the variation of {scale.name}"
    if analysis.screening is not None and is_sample(results.experiment):
        bars = screening_bars(analysis.screening)
        caption = "Dark: what a factor explains alone; pale: what it has a part in, together with others."
    else:
        is_exact = results.experiment.evaluator == "solve"
        bars = effect_bars(analysis, rest="not explained" if is_exact else "errors (noise)")
        caption = "Long bars matter."
        if any(one.is_significant is False for one in analysis.effects):
            caption += " Pale: not told from noise."
    if not bars:
        return None
    return Picture(
        name="shares",
        title=title,
        caption=caption,
        is_finding=True,
        drawn=partial(bars_svg, bars, title=title, caption=caption),
    )


def _profiled(results: Results, analysis: Analysis, scale: Scale) -> tuple[Picture | None, ...]:
    flat = analysis.surface.stationary if analysis.surface else None
    where = "at the flat point of the surface" if flat is not None and flat.is_inside else "in the middle"
    return (
        _panels(
            "profiles",
            f"{scale.name[:1].upper()}{scale.name[1:]} along each quantity",
            f"By the fitted surface, the other quantities held {where}. Band: interval of the mean.",
            profile_panels(results.experiment, analysis, scale),
        ),
    )


def _compared(results: Results, analysis: Analysis, scale: Scale) -> tuple[Picture | None, ...]:
    main = main_effect_panels(results.experiment, analysis, scale)
    pairs = interaction_panels(results.experiment, analysis, scale)
    return (
        _panels(
            "main-effects",
            f"{scale.name[:1].upper()}{scale.name[1:]} at each level",
            "Steep lines matter; a flat one does nothing. Dashed: the mean of all runs."
            + (" Bars: intervals of the means." if analysis.s_e is not None else "")
            + (" Where runs are missing, predictions stand in for them." if analysis.missing else "")
            + _averages(scale)
            + _from_where(main),
            main,
        ),
        _panels(
            "interactions",
            "Pairs of factors",
            "Parallel lines: each factor does the same whatever the other. Lines that part or cross: it depends."
            + _from_where(pairs),
            pairs,
        ),
    )


def _from_where(figures: tuple[Figure, ...]) -> str:
    is_cut = any(one.y.low is not None and one.y.low > 0.0 for one in figures)
    return " The axis does not begin at 0." if is_cut else ""


def _averages(scale: Scale) -> str:
    return {
        "none": "",
        "log": " Means are geometric, because logarithms are analysed.",
        "reciprocal": " Means are harmonic, because reciprocals are analysed.",
    }[scale.transform]


def _panels(
    name: str, title: str, caption: str, figures: tuple[Figure, ...], *, is_finding: bool = True
) -> Picture | None:
    if not figures:
        return None
    legends = [len(mark.name) for one in figures for mark in one.marks if getattr(mark, "legend", True)]
    columns = columns_for(len(figures), letters=max(legends, default=0))
    return Picture(
        name=name,
        title=title,
        caption=caption,
        is_finding=is_finding,
        drawn=partial(draw_panels, figures, columns=columns, title=title, caption=caption),
    )


def _sampled(results: Results, analysis: Analysis, scale: Scale) -> Picture | None:
    if not is_sample(results.experiment):
        return None
    count = f" {MOST_POINTS:,} runs at most are shown." if analysis.count > MOST_POINTS else ""
    return _panels(
        "samples",
        f"{scale.name[:1].upper()}{scale.name[1:]} over each factor",
        f"A dot is a run; the line is their mean. Where it climbs or falls, the factor matters.{count}",
        sample_panels(results, analysis, scale),
    )


def _mapped(results: Results, analysis: Analysis, scale: Scale) -> Picture | None:
    figure = surface_figure(results.experiment, analysis, scale)
    if figure is None:
        return None
    how = f"A smooth surface fitted to all runs: along a line it is level; numbers say how high{_in(scale)}."
    caption = f"{how} {figure.caption}".strip()
    return Picture(
        name="surface",
        title=figure.title,
        caption=caption,
        is_finding=True,
        drawn=partial(draw, replace(figure, caption=caption)),
    )


def _in(scale: Scale) -> str:
    return f", in {scale.unit}" if scale.unit else ""


def _outstanding(analysis: Analysis, scale: Scale) -> Picture | None:
    figure = half_normal_figure(analysis, scale)
    if figure is None:
        return None
    caption = (
        "No run was repeated, so effects are judged against each other: noise alone would put all of them along the"
        " dashed line through 0. What lies far to its right, beyond the margins, is more than noise."
    )
    return Picture(
        name="half-normal",
        title=figure.title,
        caption=caption,
        is_finding=True,
        drawn=partial(draw, replace(figure, caption=caption)),
    )


def course_picture(results: Results, course: Course) -> Picture:
    """Return the picture of one run over time, with the verdict on it."""
    trial = course.trial
    levels = run_said(results.experiment, results.runs[course.run].row)
    title = f"Throughput over time of run {course.run + 1} ({levels})"
    figure = over_time_figure(trial.over_time, trial.duration_s, course.verdict, title=title)
    return Picture(
        name="over-time",
        title=title,
        caption=figure.caption,
        is_finding=False,
        drawn=partial(draw, figure),
    )
