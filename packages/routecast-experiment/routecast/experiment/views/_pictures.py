"""The pictures of a response, each with a caption, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape

from routecast.evaluate.views import over_time_figure
from routecast.experiment.analysis.outcome import Analysis, Mean, Means, Screening
from routecast.experiment.answer import RunOverTime
from routecast.experiment.model import Experiment, Factor, Results
from routecast.experiment.runs import wire_positions
from routecast.experiment.views._surface import fixed_levels, surface_figure
from routecast.experiment.views._words import (
    Scale,
    axis_of,
    capitalised,
    describe_level,
    describe_row,
    display_label,
    is_sample,
    shortened,
)
from routecast.quantity.schema import field, value
from routecast.show.drawing import columns_for, draw, draw_panels, heading_rows, panel_px
from routecast.show.figures import Axis, Figure, Line, Mark, Points, palette
from routecast.show.ticks import few_ticks, linear_ends

_STEPS = 41
_PANEL_PX = 230


def _panel(name: str, title: str, x: Axis, y: Axis, *marks: Mark) -> Figure:
    return Figure(name=name, title=title, caption="", x=x, y=y, marks=marks, height_px=_PANEL_PX)


def _axis_over(title: str, values: Iterable[float]) -> Axis:
    """Return an axis with few ticks that covers all values."""
    values = tuple(values)
    low, high = linear_ends(min(values), max(values))
    return Axis(title=title, ticks=few_ticks(low, high), low=low, high=high)


def _factor_title(factor: Factor) -> str:
    return f"{factor.letter}: {factor.name}"


def profile_panels(experiment: Experiment, analysis: Analysis, scale: Scale) -> tuple[Figure, ...]:
    """Return a figure along each quantity of a response surface, with the others fixed, and its confidence band."""
    surface = analysis.surface
    if surface is None:
        return ()
    fixed = fixed_levels(analysis)
    columns = {factor.letter: number for number, factor in enumerate(experiment.factors)}
    width = panel_px(columns_for(len(surface.letters)))
    profiles: list[tuple[Factor, list[float], list[float], list[tuple[float, float]]]] = []
    for number, letter in enumerate(surface.letters):
        tried = [row[columns[letter]] for row in experiment.design.coded]
        low, high = min(-1.0, *tried), max(1.0, *tried)
        coded = [low + (high - low) * step / (_STEPS - 1) for step in range(_STEPS)]
        points = [(*fixed[:number], level, *fixed[number + 1 :]) for level in coded]
        values = [scale.untransformed(surface.at(point)) for point in points]
        intervals = [scale.ends(*(surface.interval(point) or (None, None))) for point in points]
        ends = [interval for interval in intervals if interval is not None]
        profiles.append((experiment.factors[columns[letter]], coded, values, ends if len(ends) == len(values) else []))
    extent = [value for _, _, values, _ in profiles for value in values]
    extent += [end for _, _, _, ends in profiles for pair in ends for end in pair]
    y = _axis_over(scale.axis, extent)
    return tuple(
        _panel(
            f"profile-{factor.letter}",
            _factor_title(factor),
            replace(axis_of(factor, [-1.0, 0.0, 1.0], width), title="", low=coded[0], high=coded[-1]),
            y,
            Line(
                name=factor.name,
                x=tuple(coded),
                y=tuple(values),
                low=tuple(low for low, _ in ends),
                high=tuple(high for _, high in ends),
                colour=STRONG_COLOUR,
                legend=False,
            ),
        )
        for factor, coded, values, ends in profiles
    )


_MAX_PAIRS = 6
_MAX_LINES = 6


def main_effect_panels(experiment: Experiment, analysis: Analysis, scale: Scale) -> tuple[Figure, ...]:
    """Return a figure of means for each factor, all on one scale, the largest effect first."""
    chosen = _means_by_share(experiment, analysis, factors=1)
    if not chosen:
        return ()
    factors = {factor.letter: factor for factor in experiment.factors}
    y = _axis_of_means(chosen, scale)
    width = panel_px(columns_for(len(chosen)))
    mean = scale.untransformed(analysis.mean) if analysis.mean is not None else float("nan")
    panels = []
    for means in chosen:
        factor = factors[means.letters[0]]
        coded = [point.coded[0] for point in means.points]
        x = replace(axis_of(factor, coded, width), title="")
        ends = (x.low or 0.0, x.high or 0.0)
        overall = Line(name="mean of all", x=ends, y=(mean, mean), colour=NOISE_COLOUR, dashed=True, legend=False)
        trace = _trace(factor.name, means.points, coded, scale, palette(1)[0], legend=False)
        panels.append(_panel(f"main-{factor.letter}", _factor_title(factor), x, y, overall, *trace))
    return tuple(panels)


def _comparable_means(experiment: Experiment, analysis: Analysis) -> Sequence[Means]:
    """Return the means at the levels, of predictions instead of answers if runs are missing.

    A level may lack exactly the runs with high answers. Predictions exist for every combination of levels that
    answered, so they compare the levels over the same combinations. Pairs whose interaction is not in the model keep
    the means of the answers, because predictions would be parallel whatever the answers are.
    """
    predicted = [(cell.coded, cell.predicted) for cell in analysis.cells if cell.predicted is not None]
    if not analysis.missing or not predicted:
        return analysis.means
    columns = {factor.letter: number for number, factor in enumerate(experiment.factors)}
    modelled = {effect.letters for effect in analysis.effects}

    def predicted_mean(means: Means, point: Mean) -> Mean:
        values = [
            value
            for coded, value in predicted
            if all(
                abs(coded[columns[letter]] - level) < 1e-6
                for letter, level in zip(means.letters, point.coded, strict=True)
            )
        ]
        shift = sum(values) / len(values) - point.value
        low, high = (None if end is None else end + shift for end in (point.low, point.high))
        return replace(point, value=point.value + shift, low=low, high=high)

    return [
        means
        if len(means.letters) > 1 and means.letters not in modelled
        else replace(means, points=tuple(predicted_mean(means, point) for point in means.points))
        for means in analysis.means
    ]


def interaction_panels(experiment: Experiment, analysis: Analysis, scale: Scale) -> tuple[Figure, ...]:
    """Return a figure for each pair of factors, the strongest first, with a line for each level of the second."""
    chosen = _means_by_share(experiment, analysis, factors=2)[:_MAX_PAIRS]
    if not chosen:
        return ()
    factors = {factor.letter: factor for factor in experiment.factors}
    y = _axis_of_means(chosen, scale)
    letters = max(
        len(_line_name(factors[means.letters[1]], point.coded[1])) for means in chosen for point in means.points
    )
    width = panel_px(columns_for(len(chosen), letters=letters))
    return tuple(
        _interaction(factors[means.letters[0]], factors[means.letters[1]], means, scale, y, width) for means in chosen
    )


def _interaction(first: Factor, second: Factor, means: Means, scale: Scale, y: Axis, width: int) -> Figure:
    levels = sorted({point.coded[1] for point in means.points})
    if len(levels) > _MAX_LINES:
        levels = [levels[0], levels[len(levels) // 2], levels[-1]]
    marks: list[Mark] = []
    for level, colour in zip(levels, palette(len(levels)), strict=True):
        points = [point for point in means.points if point.coded[1] == level]
        coded = [point.coded[0] for point in points]
        marks += _trace(_line_name(second, level), points, coded, scale, colour, legend=True)
    return _panel(
        f"interaction-{first.letter}{second.letter}",
        f"{first.letter}{second.letter}: {first.name} x {second.name}",
        axis_of(first, [point.coded[0] for point in means.points], width),
        y,
        *marks,
    )


def _line_name(factor: Factor, coded: float) -> str:
    return describe_level(factor, display_label(factor, coded))


def _trace(
    name: str, points: Sequence[Mean], coded: Sequence[float], scale: Scale, colour: str, *, legend: bool
) -> tuple[Mark, ...]:
    """Return a line through means, and points with intervals if all means have them."""
    y = tuple(scale.untransformed(point.value) for point in points)
    intervals = [scale.ends(point.low, point.high) for point in points]
    ends = [interval for interval in intervals if interval is not None]
    ends = ends if len(ends) == len(points) else []
    return (
        Line(name=name, x=tuple(coded), y=y, colour=colour, legend=legend),
        Points(
            name=name,
            x=tuple(coded),
            y=y,
            low=tuple(low for low, _ in ends),
            high=tuple(high for _, high in ends),
            colour=colour,
            labels=tuple(
                f"{', '.join(point.labels)}: {scale.format_analysed(point.value)}, mean of {point.count} runs"
                for point in points
            ),
            legend=False,
        ),
    )


def _axis_of_means(chosen: Sequence[Means], scale: Scale) -> Axis:
    points = [point for means in chosen for point in means.points]
    values = [scale.untransformed(point.value) for point in points]
    return _axis_over(scale.axis, [*values, *(end for p in points for end in scale.ends(p.low, p.high) or ())])


def _means_by_share(experiment: Experiment, analysis: Analysis, factors: int) -> list[Means]:
    """Return the means over one or two factors, the largest share first, means without an effect last."""
    shares: dict[tuple[str, ...], float] = {}
    for effect in analysis.effects:
        shares[effect.letters] = shares.get(effect.letters, 0.0) + (effect.share_ratio or 0.0)
    chosen = [means for means in _comparable_means(experiment, analysis) if len(means.letters) == factors]
    return sorted(chosen, key=lambda means: -shares.get(means.letters, -1.0))


STRONG_COLOUR, WEAK_COLOUR, NOISE_COLOUR = "#3f6fb5", "#9db9e0", "#9aa1ab"
_RED, _ORANGE = "#c8524a", "#d6812f"
_WIDTH_PX, _ROW_PX, _BAR_PX = 760, 26, 16
_MAX_BARS = 14
_LETTER_PX = 6.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A bar with a text beside it, and perhaps a longer, paler bar behind it; lengths are ratios."""

    label: str
    ratio: float
    behind_ratio: float = 0.0
    colour: str = STRONG_COLOUR
    text: str


def effect_bars(analysis: Analysis, *, rest: str = "errors (noise)") -> tuple[Bar, ...]:
    """Return a bar of the share of the variation for each effect, and a last bar ``rest``; none if nothing varies."""
    rows = [
        (effect.label, effect.share_ratio, WEAK_COLOUR if effect.is_significant is False else STRONG_COLOUR)
        for effect in analysis.effects
        if effect.share_ratio is not None
    ]
    if not rows:
        return ()
    rows, others = rows[:_MAX_BARS], rows[_MAX_BARS:]
    if others:
        rows.append((f"{len(others)} more", sum(share for _, share, _ in others), WEAK_COLOUR))
    if analysis.error_share_ratio is not None and analysis.error_df > 0:
        rows.append((rest, analysis.error_share_ratio, NOISE_COLOUR))
    bars, so_far = [], 0.0
    for number, (label, share, colour) in enumerate(rows):
        so_far += share
        text = f"{100.0 * share:.1f} %"
        if analysis.is_balanced and number and share > 0.0005:
            text += f" ({100.0 * so_far:.1f} % so far)"
        bars.append(Bar(label=label, ratio=share, colour=colour, text=text))
    return tuple(bars)


def screening_bars(screening: Screening) -> tuple[Bar, ...]:
    """Return a bar of each factor's share of the variance alone, and behind it of its share with interactions."""
    bars = []
    for factor in screening.factors[:_MAX_BARS]:
        if factor.first_order_ratio is None:
            return ()
        alone = max(factor.first_order_ratio, 0.0)
        total = max(factor.total_ratio or 0.0, alone)
        text = f"{100.0 * total:.1f} %"
        if total - alone > 0.001:
            text += f" ({100.0 * alone:.1f} % by itself)"
        bars.append(Bar(label=factor.name, ratio=alone, behind_ratio=total, text=text))
    return tuple(bars)


def bars_svg(bars: Sequence[Bar], *, title: str, caption: str = "", has_heading: bool = False) -> str:
    """Return bars as an SVG document in the reader's light or dark colours."""
    letters = min(max(len(bar.label) for bar in bars), 38)
    left = int(_LETTER_PX * letters) + 14
    longest = max(1e-9, *(max(bar.ratio, bar.behind_ratio) for bar in bars))
    # Each text follows its bar, so the longest bar leaves room for the longest text.
    room = _WIDTH_PX - left - 20 - int(_LETTER_PX * max(len(bar.text) for bar in bars))
    parts, top = heading_rows(title, caption, _WIDTH_PX) if has_heading else ([], 4)
    for bar in bars:
        middle = top + _ROW_PX // 2
        width = max(room * bar.ratio / longest, 1.0)
        behind = room * bar.behind_ratio / longest
        parts.append(
            f'<text x="{left - 8}" y="{middle + 4}" text-anchor="end">{escape(shortened(bar.label, 38))}'
            f"<title>{escape(bar.label)}</title></text>"
        )
        parts += [
            f'<rect x="{left}" y="{middle - _BAR_PX // 2}" width="{wide:.1f}" height="{_BAR_PX}" rx="2"'
            f' fill="{colour}"/>'
            for wide, colour in ((behind, WEAK_COLOUR), (width, bar.colour))
            if wide > 0.0
        ]
        parts.append(f'<text x="{left + max(width, behind) + 8:.1f}" y="{middle + 4}">{escape(bar.text)}</text>')
        top += _ROW_PX
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH_PX} {top + 4}" role="img"'
            f' aria-label="{escape(title)}" font-family="system-ui, sans-serif" font-size="12">',
            "<style>text{fill:#3a3f47}@media(prefers-color-scheme:dark){text{fill:#c3c8d0}}</style>",
            *parts,
            "</svg>",
            "",
        ]
    )


def half_normal_figure(analysis: Analysis, scale: Scale) -> Figure | None:
    """Return the half-normal plot of effects with Lenth's margins; None if there are no margins.

    An effect's score is the half-normal quantile of (i - 1/2)/m, i its rank among m (Daniel 1959, *Technometrics* 1,
    311-341). If all effects were noise, they would lie on the line through 0 with slope 1 over the pseudo standard
    error.
    """
    margins = analysis.lenth
    if margins is None:
        return None
    from scipy.special import ndtri

    step, unit = scale.difference_unit(effect.value for effect in analysis.effects if effect.value is not None)
    sized = sorted(
        ((abs(effect.value / step), effect) for effect in analysis.effects if effect.value is not None),
        key=lambda pair: pair[0],
    )
    scores = [float(ndtri(0.5 + 0.5 * (rank - 0.5) / len(sized))) for rank in range(1, len(sized) + 1)]
    margin, simultaneous, pse = margins.margin / step, margins.simultaneous_margin / step, margins.pse / step
    largest = max([size for size, _ in sized] + [margin])
    is_off_axis = simultaneous > 1.6 * largest
    _, right = linear_ends(0.0, max(1.25 * largest, largest if is_off_axis else simultaneous))
    _, top = linear_ends(0.0, scores[-1])
    ends = (0.0, min(right, pse * top)), (0.0, min(right / pse, top) if pse else top)
    marks: list[Mark] = [
        Line(name="if all were noise", x=ends[0], y=ends[1], colour=NOISE_COLOUR, dashed=True),
        Line(name="margin (one effect)", x=(margin, margin), y=(0.0, top), colour=_ORANGE, dashed=True),
    ]
    if not is_off_axis:
        x_ends = (simultaneous, simultaneous)
        marks.append(Line(name="margin (among all)", x=x_ends, y=(0.0, top), colour=_RED, dashed=True))
    for name, stands_out, colour in (("stands out", True, STRONG_COLOUR), ("does not", False, WEAK_COLOUR)):
        points = [
            (size, score, effect.label if stands_out else effect.name)
            for (size, effect), score in zip(sized, scores, strict=True)
            if (size > margin) is stands_out
        ]
        if points:
            x, y, labels = zip(*points, strict=True)
            marks.append(Points(name=name, x=x, y=y, colour=colour, labels=labels, is_labelled=True))
    axis_unit = f"[{unit}]" if scale.transform == "none" else f"on {scale.analysed_axis}"
    return Figure(
        name="half-normal",
        title="Which effects stand out",
        caption="",
        x=Axis(title=f"size of the effect {axis_unit}", low=0.0, high=right),
        y=Axis(title="half-normal score", ticks=few_ticks(0.0, top), low=0.0, high=top),
        marks=tuple(marks),
        height_px=330,
    )


MAX_POINTS = 1000
"""Number of drawn points; more points would not show more."""
MAX_DESCRIBED = 200
"""Number of points whose labels have the levels; with more points a label is only the number of the run."""
_ROUNDING = 1e-12
"""Share of the variation below which it is only rounding."""


def residual_panels(results: Results, analysis: Analysis, scale: Scale) -> tuple[Figure, ...]:
    """Return figures of answers over predictions, and of residuals over prediction, run order and normal score.

    Empty if all residuals are zero: a model with as many effects as runs meets each run exactly.
    """
    fit_residuals = analysis.residuals
    if fit_residuals is None or analysis.error_df < 1 or (analysis.error_share_ratio or 0.0) < _ROUNDING:
        return ()
    drawn = drawn_indices(len(fit_residuals.residuals))
    step, unit = scale.difference_unit(fit_residuals.residuals)
    residuals = [fit_residuals.residuals[number] / step for number in drawn]
    predicted = [scale.analysed(fit_residuals.predicted[number]) for number in drawn]
    observed = [scale.analysed(fit_residuals.observed[number]) for number in drawn]
    scores = [fit_residuals.normal_scores[number] for number in drawn]
    labels = [_run_label(results, fit_residuals.runs[number], is_long=len(drawn) <= MAX_DESCRIBED) for number in drawn]
    answered = _axis_over(f"answered{_unit(scale, scale.unit)}", [*predicted, *observed])
    y = _axis_over(f"residual{_unit(scale, unit)}", residuals)
    over_prediction = f"predicted {scale.analysed_axis}"
    ends = (answered.low or 0.0, answered.high or 0.0)
    panels = [
        _cloud(
            "answered",
            "Answered against predicted",
            over_prediction,
            predicted,
            observed,
            answered,
            labels,
            (ends, ends),
        ),
        _cloud("over-prediction", "Residual over prediction", over_prediction, predicted, residuals, y, labels),
    ]
    evaluator = results.experiment.evaluator
    if evaluator == "solve":
        return tuple(panels)  # the residuals of a formula have neither order nor chance
    count = len(results.runs)
    order = wire_positions(results.experiment.seed, count) if evaluator == "measure" else range(count)
    runs = [float(order[fit_residuals.runs[number]] + 1) for number in drawn]
    spread = (sum(value * value for value in residuals) / len(residuals)) ** 0.5
    ends = (min(scores), max(scores))
    line = (ends, (spread * ends[0], spread * ends[1]))
    title = "order" if evaluator == "measure" else "run"
    return (
        *panels,
        _cloud("over-order", "Residual over run order", title, runs, residuals, y, labels),
        _cloud("over-scores", "Residual over normal score", "normal score", scores, residuals, y, labels, line),
    )


def drawn_indices(count: int) -> range:
    """Return the indices of the drawn points: all points, or evenly spaced points of many."""
    return range(0, count, -(-count // MAX_POINTS) if count > MAX_POINTS else 1)


def _cloud(
    name: str,
    title: str,
    x_title: str,
    x: Sequence[float],
    y: Sequence[float],
    y_axis: Axis,
    labels: Sequence[str],
    line: tuple[tuple[float, float], tuple[float, float]] | None = None,
) -> Figure:
    """Return points with the dashed line on which they should lie, by default at zero."""
    x_axis = _axis_over(x_title, [*x, *(line[0] if line else ())])
    guide = line or ((x_axis.low or 0.0, x_axis.high or 0.0), (0.0, 0.0))
    points = Points(
        name="runs",
        x=tuple(x),
        y=tuple(y),
        colour=STRONG_COLOUR,
        filled=False,
        size_px=6 if len(x) <= MAX_DESCRIBED else 3,
        labels=tuple(labels),
        legend=False,
    )
    ideal = Line(name="ideal", x=guide[0], y=guide[1], colour=NOISE_COLOUR, dashed=True, legend=False)
    return _panel(f"residuals-{name}", title, x_axis, y_axis, ideal, points)


def _run_label(results: Results, run: int, *, is_long: bool) -> str:
    levels = f": {describe_row(results.experiment, results.runs[run].row)}" if is_long else ""
    return f"run {run + 1}{levels}"


def _unit(scale: Scale, unit: str) -> str:
    if scale.transform == "none":
        return f" [{unit}]" if unit else ""
    return f" of {scale.analysed_axis}"


_TREND_PARTS = 10
_MIN_RUNS_PER_PART = 3


def sample_panels(results: Results, analysis: Analysis, scale: Scale) -> tuple[Figure, ...]:
    """Return a scatter plot for each factor, the most important first, with the mean response along the factor."""
    experiment, fit_residuals = results.experiment, analysis.residuals
    if fit_residuals is None or not fit_residuals.runs:
        return ()
    rows = [results.runs[run].row for run in fit_residuals.runs]
    values = [scale.untransformed(value) for value in fit_residuals.observed]
    drawn = drawn_indices(len(values))
    is_long = len(drawn) <= MAX_DESCRIBED
    labels = tuple(
        f"{_run_label(results, fit_residuals.runs[number], is_long=is_long)}: {scale.format_shown(values[number])}"
        for number in drawn
    )
    y = _axis_over(scale.axis, values)
    width = panel_px(columns_for(len(experiment.factors)))
    panels = []
    for column, factor in _by_rank(experiment.factors, analysis):
        coded = [experiment.design.coded[row][column] for row in rows]
        ticks = [level.coded for level in factor.levels]
        trend = _means_along(coded, values)
        positions, means = tuple(position for position, _ in trend), tuple(mean for _, mean in trend)
        dots = Points(
            name="runs",
            x=tuple(coded[number] for number in drawn),
            y=tuple(values[number] for number in drawn),
            colour=WEAK_COLOUR,
            size_px=4 if is_long else 3,
            labels=labels,
            legend=False,
        )
        # Points are drawn over lines, so the means have points too: the runs would hide their line.
        mean_labels = tuple(f"mean of runs near here: {scale.format_shown(mean)}" for mean in means)
        mean_points = Points(
            name="mean", x=positions, y=means, colour=_RED, size_px=7, labels=mean_labels, legend=False
        )
        panels.append(
            _panel(
                f"sample-{factor.letter}",
                _factor_title(factor),
                replace(axis_of(factor, [*ticks, 0.0] if factor.is_quantity else ticks, width), title=""),
                y,
                dots,
                Line(name="mean", x=positions, y=means, colour=_RED, legend=False),
                mean_points,
            )
        )
    return tuple(panels)


def _by_rank(factors: Sequence[Factor], analysis: Analysis) -> list[tuple[int, Factor]]:
    ranks = {factor.letter: factor.rank for factor in analysis.screening.factors} if analysis.screening else {}
    return sorted(enumerate(factors), key=lambda pair: ranks.get(pair[1].letter, len(factors)))


def _means_along(coded: Sequence[float], values: Sequence[float]) -> list[tuple[float, float]]:
    """Return the mean position and the mean value of the runs in each of equal parts of a factor's range."""
    low, high = min(coded), max(coded)
    parts: list[list[tuple[float, float]]] = [[] for _ in range(_TREND_PARTS)]
    for position, response in zip(coded, values, strict=True):
        share = (position - low) / (high - low) if high > low else 0.0
        parts[min(int(_TREND_PARTS * share), _TREND_PARTS - 1)].append((position, response))
    return [
        (sum(position for position, _ in part) / len(part), sum(response for _, response in part) / len(part))
        for part in parts
        if len(part) >= _MIN_RUNS_PER_PART
    ]


@value
class Picture:
    """A picture of a report."""

    name: str = field("Stem of its file")
    title: str = field("Title of the picture")
    caption: str = field("Caption: how to read the picture")
    is_finding: bool = field("Whether it shows a finding; otherwise it helps to judge the analysis", default=True)
    draw: Callable[..., str] = field("Returns the SVG text, with title and caption if ``has_heading`` is true")

    def svg(self, *, has_heading: bool = False) -> str:
        """Return the picture as SVG text."""
        return self.draw(has_heading=has_heading)


Pictures = Mapping[str, tuple[Picture, ...]]
"""Pictures by name of the response."""


def pictures_of(results: Results, analysis: Analysis, scale: Scale) -> tuple[Picture, ...]:
    """Return the pictures of a response in the order in which a report shows them."""
    if analysis.mean is None or analysis.sst == 0.0:
        return ()
    experiment = results.experiment
    is_curved = analysis.surface is not None and experiment.design.kind == "central_composite"
    pictures = (
        _shares_picture(experiment, analysis, scale),
        _profiles_picture(experiment, analysis, scale) if is_curved else None,
        *(() if is_sample(experiment) or is_curved else _means_pictures(experiment, analysis, scale)),
        _sample_picture(results, analysis, scale),
        _surface_picture(experiment, analysis, scale),
        _half_normal_picture(analysis, scale),
        _residuals_picture(results, analysis, scale),
    )
    return tuple(picture for picture in pictures if picture is not None)


def _residuals_picture(results: Results, analysis: Analysis, scale: Scale) -> Picture | None:
    if results.experiment.evaluator == "solve":
        caption = (
            "A formula has no noise, so residuals show what the effects do not explain. Points near the first dashed"
            " line are well predicted. A curve in the second picture calls for more levels or another transform."
        )
    else:
        caption = (
            "Good: points near the first dashed line, and elsewhere a cloud without shape. A funnel means that errors"
            " grow with the response. A curve means that the model lacks a term. A slope over the run order means that"
            " something drifted. A bent line of normal scores means that the intervals are rough."
        )
    figures = residual_panels(results, analysis, scale)
    return _panels_picture("residuals", "Residuals", caption, figures, is_finding=False)


def _shares_picture(experiment: Experiment, analysis: Analysis, scale: Scale) -> Picture | None:
    if analysis.screening is not None and is_sample(experiment):
        bars = screening_bars(analysis.screening)
        caption = "Dark: the share that a factor explains alone. Pale: its share with interactions."
    else:
        bars = effect_bars(analysis, rest="not explained" if experiment.evaluator == "solve" else "errors (noise)")
        caption = "The longer the bar, the more the effect matters."
        if any(effect.is_significant is False for effect in analysis.effects):
            caption += " Pale: not significant."
    if not bars:
        return None
    title = f"What explains the variation of {scale.name}"
    drawing = partial(bars_svg, bars, title=title, caption=caption)
    return Picture(name="shares", title=title, caption=caption, draw=drawing)


def _profiles_picture(experiment: Experiment, analysis: Analysis, scale: Scale) -> Picture | None:
    stationary = analysis.surface.stationary if analysis.surface else None
    is_inside = stationary is not None and stationary.is_inside
    position = "at the stationary point of the surface" if is_inside else "in the middle"
    return _panels_picture(
        "profiles",
        f"{capitalised(scale.name)} along each quantity",
        f"The fitted surface, with the other quantities fixed {position}. Band: interval of the mean.",
        profile_panels(experiment, analysis, scale),
    )


def _means_pictures(experiment: Experiment, analysis: Analysis, scale: Scale) -> tuple[Picture | None, ...]:
    main = main_effect_panels(experiment, analysis, scale)
    pairs = interaction_panels(experiment, analysis, scale)
    averages = {
        "none": "",
        "log": " Means are geometric, because logarithms are analysed.",
        "reciprocal": " Means are harmonic, because reciprocals are analysed.",
    }
    return (
        _panels_picture(
            "main-effects",
            f"{capitalised(scale.name)} at each level",
            "A steep line shows a large effect, a flat line none. Dashed: the mean of all runs."
            + (" Bars: intervals of the means." if analysis.s_e is not None else "")
            + (" Where runs are missing, predictions stand in for them." if analysis.missing else "")
            + averages[scale.transform]
            + _cut_axis_remark(main),
            main,
        ),
        _panels_picture(
            "interactions",
            "Pairs of factors",
            "Parallel lines: the effect of a factor does not depend on the other; diverging or crossing lines: it does."
            + _cut_axis_remark(pairs),
            pairs,
        ),
    )


def _cut_axis_remark(figures: tuple[Figure, ...]) -> str:
    is_cut = any(figure.y.low is not None and figure.y.low > 0.0 for figure in figures)
    return " The axis does not begin at 0." if is_cut else ""


def _panels_picture(
    name: str, title: str, caption: str, figures: tuple[Figure, ...], *, is_finding: bool = True
) -> Picture | None:
    if not figures:
        return None
    legends = [len(mark.name) for figure in figures for mark in figure.marks if getattr(mark, "legend", True)]
    columns = columns_for(len(figures), letters=max(legends, default=0))
    drawing = partial(draw_panels, figures, columns=columns, title=title, caption=caption)
    return Picture(name=name, title=title, caption=caption, is_finding=is_finding, draw=drawing)


def _figure_picture(figure: Figure, caption: str) -> Picture:
    drawing = partial(draw, replace(figure, caption=caption))
    return Picture(name=figure.name, title=figure.title, caption=caption, draw=drawing)


def _sample_picture(results: Results, analysis: Analysis, scale: Scale) -> Picture | None:
    if not is_sample(results.experiment):
        return None
    count = f" At most {MAX_POINTS:,} runs are shown." if analysis.count > MAX_POINTS else ""
    return _panels_picture(
        "samples",
        f"{capitalised(scale.name)} over each factor",
        f"Dots are runs, the line is their mean. Where the line rises or falls, the factor matters.{count}",
        sample_panels(results, analysis, scale),
    )


def _surface_picture(experiment: Experiment, analysis: Analysis, scale: Scale) -> Picture | None:
    figure = surface_figure(experiment, analysis, scale)
    if figure is None:
        return None
    unit = f", in {scale.unit}" if scale.unit else ""
    explanation = f"A smooth surface fitted to all runs. Lines join equal responses; numbers give the response{unit}."
    return _figure_picture(figure, f"{explanation} {figure.caption}".strip())


def _half_normal_picture(analysis: Analysis, scale: Scale) -> Picture | None:
    figure = half_normal_figure(analysis, scale)
    if figure is None:
        return None
    return _figure_picture(
        figure,
        "No run was repeated, so effects are compared with each other: noise alone would put all of them on the dashed"
        " line through 0. Effects far to the right, beyond the margins, are more than noise.",
    )


def over_time_picture(results: Results, run: RunOverTime) -> Picture:
    """Return the picture of a run over time, with the verdict on its steadiness."""
    levels = describe_row(results.experiment, results.runs[run.run].row)
    title = f"Throughput over time of run {run.run + 1} ({levels})"
    figure = over_time_figure(run.trial.over_time, run.trial.duration_s, run.verdict, title=title)
    drawing = partial(draw, figure)
    return Picture(name="over-time", title=title, caption=figure.caption, is_finding=False, draw=drawing)
