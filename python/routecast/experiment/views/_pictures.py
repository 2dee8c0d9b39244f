"""The pictures of a response: their choice, their drawing, and a caption for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape

from routecast.evaluate.views import over_time_figure
from routecast.experiment.analysis.outcome import Analysis, Mean, Means, Screening
from routecast.experiment.answer import Course
from routecast.experiment.model import Experiment, Factor, Results
from routecast.experiment.runs import wire_positions
from routecast.experiment.views._surface import held_at, surface_figure
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
    """Return an axis with few ticks that has room for all the values."""
    values = tuple(values)
    low, high = linear_ends(min(values), max(values))
    return Axis(title=title, ticks=few_ticks(low, high), low=low, high=high)


def _factor_title(factor: Factor) -> str:
    return f"{factor.letter}: {factor.name}"


def profile_panels(experiment: Experiment, analysis: Analysis, scale: Scale) -> tuple[Figure, ...]:
    """Return a small figure along each quantity of a response surface, the others fixed, with its confidence band."""
    surface = analysis.surface
    if surface is None:
        return ()
    held = held_at(analysis)
    columns = {factor.letter: number for number, factor in enumerate(experiment.factors)}
    width = panel_px(columns_for(len(surface.letters)))
    profiles: list[tuple[Factor, list[float], list[float], list[tuple[float, float]]]] = []
    for number, letter in enumerate(surface.letters):
        tried = [row[columns[letter]] for row in experiment.design.coded]
        low, high = min(-1.0, *tried), max(1.0, *tried)
        coded = [low + (high - low) * step / (_STEPS - 1) for step in range(_STEPS)]
        points = [(*held[:number], at, *held[number + 1 :]) for at in coded]
        values = [scale.back(surface.at(point)) for point in points]
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
                colour=STRONG,
                legend=False,
            ),
        )
        for factor, coded, values, ends in profiles
    )


_MOST_PAIRS = 6
_MOST_LINES = 6


def main_effect_panels(experiment: Experiment, analysis: Analysis, scale: Scale) -> tuple[Figure, ...]:
    """Return one small figure of means for each factor, all on one scale, the largest effect first."""
    by_letters: dict[tuple[str, ...], Means] = {
        means.letters: means for means in _comparable_means(experiment, analysis) if len(means.letters) == 1
    }
    chosen = [by_letters[letters] for letters in _by_share(analysis, list(by_letters))]
    if not chosen:
        return ()
    factors = {factor.letter: factor for factor in experiment.factors}
    y = _axis_of_means(chosen, scale)
    width = panel_px(columns_for(len(chosen)))
    mean = scale.back(analysis.mean) if analysis.mean is not None else float("nan")
    panels = []
    for means in chosen:
        factor = factors[means.letters[0]]
        coded = [point.coded[0] for point in means.points]
        x = replace(axis_of(factor, coded, width), title="")
        ends = (x.low or 0.0, x.high or 0.0)
        overall = Line(name="mean of all", x=ends, y=(mean, mean), colour=NOISE, dashed=True, legend=False)
        trace = _trace(factor.name, means.points, coded, scale, palette(1)[0], legend=False)
        panels.append(_panel(f"main-{factor.letter}", _factor_title(factor), x, y, overall, *trace))
    return tuple(panels)


def _comparable_means(experiment: Experiment, analysis: Analysis) -> Sequence[Means]:
    """Return the means at the levels; where runs are missing, those of predictions.

    A level may lack exactly the runs with high answers. Predictions exist for every combination of levels that
    answered, so they compare the levels over the same combinations. Pairs whose interaction is not in the model keep
    their means: its predictions would be parallel for any results of the runs.
    """
    predicted = [(cell.coded, cell.predicted) for cell in analysis.cells if cell.predicted is not None]
    if not analysis.missing or not predicted:
        return analysis.means
    columns = {factor.letter: number for number, factor in enumerate(experiment.factors)}
    modelled = {effect.letters for effect in analysis.effects}

    def moved(means: Means, point: Mean) -> Mean:
        values = [
            value
            for coded, value in predicted
            if all(
                abs(coded[columns[letter]] - at) < 1e-6 for letter, at in zip(means.letters, point.coded, strict=True)
            )
        ]
        shift = sum(values) / len(values) - point.value
        low, high = (None if end is None else end + shift for end in (point.low, point.high))
        return replace(point, value=point.value + shift, low=low, high=high)

    return [
        means
        if len(means.letters) > 1 and means.letters not in modelled
        else replace(means, points=tuple(moved(means, point) for point in means.points))
        for means in analysis.means
    ]


def interaction_panels(experiment: Experiment, analysis: Analysis, scale: Scale) -> tuple[Figure, ...]:
    """Return one small figure for each pair of factors, a line for each level of the second; the strongest first."""
    pairs: dict[tuple[str, ...], Means] = {
        means.letters: means for means in _comparable_means(experiment, analysis) if len(means.letters) == 2
    }
    chosen = [pairs[letters] for letters in _by_share(analysis, list(pairs))[:_MOST_PAIRS]]
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
    if len(levels) > _MOST_LINES:
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
    """Return the line through some means, and their points with intervals where all have them."""
    y = tuple(scale.back(point.value) for point in points)
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
                f"{', '.join(point.labels)}: {scale.text(point.value)}, mean of {point.count} runs" for point in points
            ),
            legend=False,
        ),
    )


def _axis_of_means(chosen: Sequence[Means], scale: Scale) -> Axis:
    points = [point for means in chosen for point in means.points]
    values = [scale.back(point.value) for point in points]
    return _axis_over(scale.axis, [*values, *(end for p in points for end in scale.ends(p.low, p.high) or ())])


def _by_share(analysis: Analysis, groups: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Sort groups of letters by the share of their effect, those without an effect last."""
    shares: dict[tuple[str, ...], float] = {}
    for effect in analysis.effects:
        shares[effect.letters] = shares.get(effect.letters, 0.0) + (effect.share_ratio or 0.0)
    return sorted(groups, key=lambda letters: -shares.get(letters, -1.0))


STRONG, QUIET, NOISE = "#3f6fb5", "#9db9e0", "#9aa1ab"
_RED, _ORANGE = "#c8524a", "#d6812f"
_WIDTH_PX, _ROW_PX, _BAR_PX = 760, 26, 16
_MOST = 14
_LETTER_PX = 6.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A bar: its length, the length of a paler bar behind it, and the text beside it."""

    label: str
    ratio: float
    behind_ratio: float = 0.0
    colour: str = STRONG
    text: str


def effect_bars(analysis: Analysis, *, rest: str = "errors (noise)") -> tuple[Bar, ...]:
    """Return the shares of the variation by effect; none where nothing varies."""
    rows = [
        (effect.label, effect.share_ratio, QUIET if effect.is_significant is False else STRONG)
        for effect in analysis.effects
        if effect.share_ratio is not None
    ]
    if not rows:
        return ()
    rows, more = rows[:_MOST], rows[_MOST:]
    if more:
        rows.append((f"{len(more)} more", sum(share for _, share, _ in more), QUIET))
    if analysis.error_share_ratio is not None and analysis.error_df > 0:
        rows.append((rest, analysis.error_share_ratio, NOISE))
    bars, so_far = [], 0.0
    for number, (label, share, colour) in enumerate(rows):
        so_far += share
        text = f"{100.0 * share:.1f} %"
        if analysis.is_balanced and number and share > 0.0005:
            text += f" ({100.0 * so_far:.1f} % so far)"
        bars.append(Bar(label=label, ratio=share, colour=colour, text=text))
    return tuple(bars)


def screening_bars(screening: Screening) -> tuple[Bar, ...]:
    """Return each factor's share of the variance alone, and behind it its share with interactions."""
    bars = []
    for factor in screening.factors[:_MOST]:
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
    """Return bars as an SVG document that follows the reader's light or dark setting."""
    letters = min(max(len(bar.label) for bar in bars), 38)
    left = int(_LETTER_PX * letters) + 14
    longest = max(1e-9, *(max(bar.ratio, bar.behind_ratio) for bar in bars))
    # A text stands behind its bar: the longest bar leaves room for the longest text.
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
            for wide, colour in ((behind, QUIET), (width, bar.colour))
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
    """Return the half-normal plot of effects with Lenth's margins; None without margins.

    An effect's score is the half-normal quantile of (i - 1/2)/m, i its rank among m (Daniel 1959, *Technometrics* 1,
    311-341). If all effects were noise, they would lie on the line through 0 with slope 1 over the pseudo standard
    error.
    """
    margins = analysis.lenth
    if margins is None:
        return None
    from scipy.special import ndtri

    step, unit = scale.for_amounts(effect.value for effect in analysis.effects if effect.value is not None)
    sized = sorted(
        ((abs(effect.value / step), effect) for effect in analysis.effects if effect.value is not None),
        key=lambda pair: pair[0],
    )
    scores = [float(ndtri(0.5 + 0.5 * (rank - 0.5) / len(sized))) for rank in range(1, len(sized) + 1)]
    margin, simultaneous, pse = margins.margin / step, margins.simultaneous_margin / step, margins.pse / step
    greatest = max([size for size, _ in sized] + [margin])
    is_far = simultaneous > 1.6 * greatest
    _, right = linear_ends(0.0, max(1.25 * greatest, greatest if is_far else simultaneous))
    _, top = linear_ends(0.0, scores[-1])
    ends = (0.0, min(right, pse * top)), (0.0, min(right / pse, top) if pse else top)
    marks: list[Mark] = [
        Line(name="if all were noise", x=ends[0], y=ends[1], colour=NOISE, dashed=True),
        Line(name="margin (one effect)", x=(margin, margin), y=(0.0, top), colour=_ORANGE, dashed=True),
    ]
    if not is_far:
        both = (simultaneous, simultaneous)
        marks.append(Line(name="margin (among all)", x=both, y=(0.0, top), colour=_RED, dashed=True))
    for name, is_out, colour in (("stands out", True, STRONG), ("does not", False, QUIET)):
        points = [
            (size, score, effect.label if is_out else effect.name)
            for (size, effect), score in zip(sized, scores, strict=True)
            if (size > margin) is is_out
        ]
        if points:
            x, y, labels = zip(*points, strict=True)
            marks.append(Points(name=name, x=x, y=y, colour=colour, labels=labels, is_labelled=True))
    of = f"[{unit}]" if scale.transform == "none" else f"on {scale.analysed_axis}"
    return Figure(
        name="half-normal",
        title="Which effects stand out",
        caption="",
        x=Axis(title=f"size of the effect {of}", low=0.0, high=right),
        y=Axis(title="half-normal score", ticks=few_ticks(0.0, top), low=0.0, high=top),
        marks=tuple(marks),
        height_px=330,
    )


MOST_POINTS = 1000
"""A cloud of more points shows no more."""
MOST_DESCRIBED = 200
"""Up to so many points each has a label with its levels; beyond, the label is the number of the run."""
_ROUNDING = 1e-12
"""A smaller share of the variation is rounding."""


def residual_panels(results: Results, analysis: Analysis, scale: Scale) -> tuple[Figure, ...]:
    """Return answered over predicted, and the residuals over prediction, run order and normal scores.

    Empty where all residuals are zero: a model with as many effects as runs meets each run exactly.
    """
    left = analysis.residuals
    if left is None or analysis.error_df < 1 or (analysis.error_share_ratio or 0.0) < _ROUNDING:
        return ()
    kept = thinned(len(left.residuals))
    step, unit = scale.for_amounts(left.residuals)
    residuals = [left.residuals[number] / step for number in kept]
    predicted = [scale.analysed(left.predicted[number]) for number in kept]
    observed = [scale.analysed(left.observed[number]) for number in kept]
    scores = [left.normal_scores[number] for number in kept]
    labels = [_run_label(results, left.runs[number], is_long=len(kept) <= MOST_DESCRIBED) for number in kept]
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
        return tuple(panels)  # what a formula leaves over has neither order nor chance
    count = len(results.runs)
    order = wire_positions(results.experiment.seed, count) if evaluator == "measure" else range(count)
    runs = [float(order[left.runs[number]] + 1) for number in kept]
    spread = (sum(value * value for value in residuals) / len(residuals)) ** 0.5
    ends = (min(scores), max(scores))
    line = (ends, (spread * ends[0], spread * ends[1]))
    title = "order" if evaluator == "measure" else "run"
    return (
        *panels,
        _cloud("over-order", "Residual over run order", title, runs, residuals, y, labels),
        _cloud("over-scores", "Residual over normal score", "normal score", scores, residuals, y, labels, line),
    )


def thinned(count: int) -> range:
    """Return the indices of the drawn points: all, or evenly spaced ones of many."""
    return range(0, count, -(-count // MOST_POINTS) if count > MOST_POINTS else 1)


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
    """Return points with the dashed line along which they should lie: zero by default."""
    x_axis = _axis_over(x_title, [*x, *(line[0] if line else ())])
    guide = line or ((x_axis.low or 0.0, x_axis.high or 0.0), (0.0, 0.0))
    points = Points(
        name="runs",
        x=tuple(x),
        y=tuple(y),
        colour=STRONG,
        filled=False,
        size_px=6 if len(x) <= MOST_DESCRIBED else 3,
        labels=tuple(labels),
        legend=False,
    )
    ideal = Line(name="as it should be", x=guide[0], y=guide[1], colour=NOISE, dashed=True, legend=False)
    return _panel(f"residuals-{name}", title, x_axis, y_axis, ideal, points)


def _run_label(results: Results, run: int, *, is_long: bool) -> str:
    levels = f": {describe_row(results.experiment, results.runs[run].row)}" if is_long else ""
    return f"run {run + 1}{levels}"


def _unit(scale: Scale, unit: str) -> str:
    if scale.transform == "none":
        return f" [{unit}]" if unit else ""
    return f" of {scale.analysed_axis}"


_PARTS = 10
_FEWEST = 3


def sample_panels(results: Results, analysis: Analysis, scale: Scale) -> tuple[Figure, ...]:
    """Return a small scatter for each factor, the most important first, with the mean along it."""
    experiment, left = results.experiment, analysis.residuals
    if left is None or not left.runs:
        return ()
    rows = [results.runs[run].row for run in left.runs]
    values = [scale.back(value) for value in left.observed]
    kept = thinned(len(values))
    is_long = len(kept) <= MOST_DESCRIBED
    labels = tuple(
        f"{_run_label(results, left.runs[number], is_long=is_long)}: {scale.written(values[number])}" for number in kept
    )
    y = _axis_over(scale.axis, values)
    width = panel_px(columns_for(len(experiment.factors)))
    panels = []
    for column, factor in _by_rank(experiment.factors, analysis):
        coded = [experiment.design.coded[row][column] for row in rows]
        ticks = [level.coded for level in factor.levels]
        trend = _means_along(coded, values)
        along, means = tuple(at for at, _ in trend), tuple(mean for _, mean in trend)
        dots = Points(
            name="runs",
            x=tuple(coded[number] for number in kept),
            y=tuple(values[number] for number in kept),
            colour=QUIET,
            size_px=4 if is_long else 3,
            labels=labels,
            legend=False,
        )
        # Points stand before lines: the line of means would drown among the runs.
        mean_labels = tuple(f"mean about here: {scale.written(mean)}" for mean in means)
        mean_points = Points(name="mean", x=along, y=means, colour=_RED, size_px=7, labels=mean_labels, legend=False)
        panels.append(
            _panel(
                f"sample-{factor.letter}",
                _factor_title(factor),
                replace(axis_of(factor, [*ticks, 0.0] if factor.is_quantity else ticks, width), title=""),
                y,
                dots,
                Line(name="mean", x=along, y=means, colour=_RED, legend=False),
                mean_points,
            )
        )
    return tuple(panels)


def _by_rank(factors: Sequence[Factor], analysis: Analysis) -> list[tuple[int, Factor]]:
    ranks = {factor.letter: factor.rank for factor in analysis.screening.factors} if analysis.screening else {}
    return sorted(enumerate(factors), key=lambda pair: ranks.get(pair[1].letter, len(factors)))


def _means_along(coded: Sequence[float], values: Sequence[float]) -> list[tuple[float, float]]:
    """Return the mean position and the mean value of the runs in equal parts of a factor's range."""
    low, high = min(coded), max(coded)
    parts: list[list[tuple[float, float]]] = [[] for _ in range(_PARTS)]
    for at, response in zip(coded, values, strict=True):
        share = (at - low) / (high - low) if high > low else 0.0
        parts[min(int(_PARTS * share), _PARTS - 1)].append((at, response))
    return [
        (sum(at for at, _ in part) / len(part), sum(response for _, response in part) / len(part))
        for part in parts
        if len(part) >= _FEWEST
    ]


@value
class Picture:
    """One picture of a report."""

    name: str = field("Stem of its file")
    title: str = field("Title of the picture")
    caption: str = field("Caption: how to read the picture")
    is_finding: bool = field("Whether it shows a finding, or helps to judge the analysis", default=True)
    draw: Callable[..., str] = field("Returns the SVG; ``has_heading`` writes title and caption into it")

    def svg(self, *, has_heading: bool = False) -> str:
        """Return the picture as SVG text."""
        return self.draw(has_heading=has_heading)


Pictures = Mapping[str, tuple[Picture, ...]]
"""Pictures by name of the response."""


def pictures_of(results: Results, analysis: Analysis, scale: Scale) -> tuple[Picture, ...]:
    """Return the pictures of one response, in the order of a reader's questions."""
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
    return _panels_picture("residuals", "What is left over", caption, figures, is_finding=False)


def _shares_picture(experiment: Experiment, analysis: Analysis, scale: Scale) -> Picture | None:
    if analysis.screening is not None and is_sample(experiment):
        bars = screening_bars(analysis.screening)
        caption = "Dark: what a factor explains alone; pale: what it has a part in, together with others."
    else:
        bars = effect_bars(analysis, rest="not explained" if experiment.evaluator == "solve" else "errors (noise)")
        caption = "Long bars matter."
        if any(effect.is_significant is False for effect in analysis.effects):
            caption += " Pale: not significant."
    if not bars:
        return None
    title = f"What explains the variation of {scale.name}"
    drawing = partial(bars_svg, bars, title=title, caption=caption)
    return Picture(name="shares", title=title, caption=caption, draw=drawing)


def _profiles_picture(experiment: Experiment, analysis: Analysis, scale: Scale) -> Picture | None:
    flat = analysis.surface.stationary if analysis.surface else None
    where = "at the flat point of the surface" if flat is not None and flat.is_inside else "in the middle"
    return _panels_picture(
        "profiles",
        f"{capitalised(scale.name)} along each quantity",
        f"By the fitted surface, the other quantities held {where}. Band: interval of the mean.",
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
            "Steep lines matter; a flat one does nothing. Dashed: the mean of all runs."
            + (" Bars: intervals of the means." if analysis.s_e is not None else "")
            + (" Where runs are missing, predictions stand in for them." if analysis.missing else "")
            + averages[scale.transform]
            + _cut_axis_remark(main),
            main,
        ),
        _panels_picture(
            "interactions",
            "Pairs of factors",
            "Parallel lines: each factor does the same whatever the other. Lines that part or cross: it depends."
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
    count = f" {MOST_POINTS:,} runs at most are shown." if analysis.count > MOST_POINTS else ""
    return _panels_picture(
        "samples",
        f"{capitalised(scale.name)} over each factor",
        f"A dot is a run; the line is their mean. Where it climbs or falls, the factor matters.{count}",
        sample_panels(results, analysis, scale),
    )


def _surface_picture(experiment: Experiment, analysis: Analysis, scale: Scale) -> Picture | None:
    figure = surface_figure(experiment, analysis, scale)
    if figure is None:
        return None
    unit = f", in {scale.unit}" if scale.unit else ""
    how = f"A smooth surface fitted to all runs: along a line it is level; numbers say how high{unit}."
    return _figure_picture(figure, f"{how} {figure.caption}".strip())


def _half_normal_picture(analysis: Analysis, scale: Scale) -> Picture | None:
    figure = half_normal_figure(analysis, scale)
    if figure is None:
        return None
    return _figure_picture(
        figure,
        "No run was repeated, so effects are judged against each other: noise alone would put all of them along the"
        " dashed line through 0. What lies far to its right, beyond the margins, is more than noise.",
    )


def course_picture(results: Results, course: Course) -> Picture:
    """Return the picture of one run over time, with the verdict on its steadiness."""
    trial = course.trial
    levels = describe_row(results.experiment, results.runs[course.run].row)
    title = f"Throughput over time of run {course.run + 1} ({levels})"
    figure = over_time_figure(trial.over_time, trial.duration_s, course.verdict, title=title)
    drawing = partial(draw, figure)
    return Picture(name="over-time", title=title, caption=figure.caption, is_finding=False, draw=drawing)
