"""Which pictures a response gets, and how to read each.

Main effects and interactions: the mean response at each level, and at each pair of levels.

A response surface along each of its quantities, the others held: slopes and bends at a glance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape

from routecast.evaluate.views import over_time_figure
from routecast.experiment._runs import wire_order
from routecast.experiment.analysis.outcome import Analysis, Means, Residuals, Screening
from routecast.experiment.answer import Course
from routecast.experiment.model import Experiment, Factor, Results
from routecast.experiment.views._surface import held_at, surface_figure
from routecast.experiment.views._words import Scale, axis_of, is_sample, label_of, level_said, run_said, shortened
from routecast.quantity.schema import field, value
from routecast.show.drawing import columns_for, draw, draw_panels, heading_rows, panel_px
from routecast.show.figures import Axis, Figure, Line, Mark, Points, palette
from routecast.show.ticks import few_ticks, linear_ends

_STEPS = 41
_COLOUR = "#3f6fb5"


def profile_panels(experiment: Experiment, analysis: Analysis, scale: Scale) -> tuple[Figure, ...]:
    """Return a small figure for each quantity of a response surface, with the band of its interval."""
    surface = analysis.surface
    if surface is None:
        return ()
    held = held_at(analysis)
    columns = {factor.letter: number for number, factor in enumerate(experiment.factors)}
    width = panel_px(columns_for(len(surface.letters)))
    traces: list[tuple[str, list[float], list[float], list[tuple[float, float]]]] = []
    for number, letter in enumerate(surface.letters):
        tried = [row[columns[letter]] for row in experiment.design.coded]
        low, high = min(-1.0, *tried), max(1.0, *tried)
        coded = [low + (high - low) * step / (_STEPS - 1) for step in range(_STEPS)]
        values, ends = [], []
        for at in coded:
            place = (*held[:number], at, *held[number + 1 :])
            values.append(scale.back(surface.at(place)))
            interval = surface.interval(place)
            end = scale.ends(*interval) if interval is not None else None
            if end is not None:
                ends.append(end)
        traces.append((letter, coded, values, ends))
    every = [value for _, _, values, _ in traces for value in values]
    every += [end for _, _, _, ends in traces for pair in ends for end in pair]
    low, high = linear_ends(min(every), max(every))
    y = Axis(title=scale.axis, ticks=few_ticks(low, high), low=low, high=high)
    panels = []
    for letter, coded, values, ends in traces:
        factor = experiment.factors[columns[letter]]
        x = axis_of(factor, [-1.0, 0.0, 1.0], width)
        is_known = len(ends) == len(values)
        panels.append(
            Figure(
                name=f"profile-{letter}",
                title=f"{letter}: {factor.name}",
                caption="",
                x=Axis(title="", ticks=x.ticks, labels=x.labels, low=coded[0], high=coded[-1]),
                y=y,
                marks=(
                    Line(
                        name=factor.name,
                        x=tuple(coded),
                        y=tuple(values),
                        low=tuple(end[0] for end in ends) if is_known else (),
                        high=tuple(end[1] for end in ends) if is_known else (),
                        colour=_COLOUR,
                        legend=False,
                    ),
                ),
                height_px=230,
            )
        )
    return tuple(panels)


_MOST_PAIRS = 6
_MOST_LINES = 6
_MEAN = "#9aa1ab"


def main_effect_panels(experiment: Experiment, analysis: Analysis, scale: Scale) -> tuple[Figure, ...]:
    """Return one small figure for each factor, all on one scale, those that explain most first."""
    by_letter = {means.letters[0]: means for means in _fair(experiment, analysis) if len(means.letters) == 1}
    order = _by_share(analysis, [(letter,) for letter in by_letter])
    factors = {factor.letter: factor for factor in experiment.factors}
    chosen = [by_letter[letters[0]] for letters in order]
    if not chosen:
        return ()
    y = _axis(chosen, scale)
    width = panel_px(columns_for(len(chosen)))
    mean = scale.back(analysis.mean) if analysis.mean is not None else float("nan")
    return tuple(_main_effect(factors[means.letters[0]], means, scale, y, mean, width) for means in chosen)


def _fair(experiment: Experiment, analysis: Analysis) -> Sequence[Means]:
    """Return the means, of predictions where runs are missing: a level may lack the runs that answer high.

    Predictions are there for every combination of levels that answered, so each level is compared in the same company.
    Pairs whose interaction is not in the model keep their means: predictions of it would be parallel whatever was seen.
    """
    predicted = {cell.coded: cell.predicted for cell in analysis.cells}
    if not analysis.missing or all(value is None for value in predicted.values()):
        return analysis.means
    columns = {factor.letter: number for number, factor in enumerate(experiment.factors)}
    modelled = {effect.letters for effect in analysis.effects}
    means_ = []
    for means in analysis.means:
        if len(means.letters) > 1 and means.letters not in modelled:
            means_.append(means)
            continue
        at = [columns[letter] for letter in means.letters]
        points = []
        for point in means.points:
            mine = [
                value
                for coded, value in predicted.items()
                if value is not None
                and all(abs(coded[column] - code) < 1e-6 for column, code in zip(at, point.coded, strict=True))
            ]
            shift = sum(mine) / len(mine) - point.value
            low, high = (None if end is None else end + shift for end in (point.low, point.high))
            points.append(replace(point, value=point.value + shift, low=low, high=high))
        means_.append(replace(means, points=tuple(points)))
    return means_


def _main_effect(factor: Factor, means: Means, scale: Scale, y: Axis, mean: float, width: int) -> Figure:
    coded = [point.coded[0] for point in means.points]
    x = axis_of(factor, coded, width)
    return Figure(
        name=f"main-{factor.letter}",
        title=f"{factor.letter}: {factor.name}",
        caption="",
        x=_untitled(x),
        y=y,
        marks=(
            Line(
                name="mean of all",
                x=(x.low or 0.0, x.high or 0.0),
                y=(mean, mean),
                colour=_MEAN,
                dashed=True,
                legend=False,
            ),
            *_trace(factor.name, means, coded, scale, palette(1)[0], legend=False),
        ),
        height_px=230,
    )


def interaction_panels(experiment: Experiment, analysis: Analysis, scale: Scale) -> tuple[Figure, ...]:
    """Return one small figure for each pair of factors, a line for each level of the second; the strongest first."""
    pairs = {tuple(means.letters): means for means in _fair(experiment, analysis) if len(means.letters) == 2}
    factors = {factor.letter: factor for factor in experiment.factors}
    chosen = [pairs[letters] for letters in _by_share(analysis, list(pairs))[:_MOST_PAIRS]]
    if not chosen:
        return ()
    y = _axis(chosen, scale)
    letters = max(
        len(_line_name(factors[means.letters[1]], point.coded[1])) for means in chosen for point in means.points
    )
    width = panel_px(columns_for(len(chosen), letters=letters))
    return tuple(
        _interaction(factors[means.letters[0]], factors[means.letters[1]], means, scale, y, width) for means in chosen
    )


def _interaction(first: Factor, second: Factor, means: Means, scale: Scale, y: Axis, width: int) -> Figure:
    x = axis_of(first, [point.coded[0] for point in means.points], width)
    levels = sorted({point.coded[1] for point in means.points})
    if len(levels) > _MOST_LINES:
        levels = [levels[0], levels[len(levels) // 2], levels[-1]]
    marks: list[Mark] = []
    for level, colour in zip(levels, palette(len(levels)), strict=True):
        mine = tuple(point for point in means.points if point.coded[1] == level)
        line = Means(letters=means.letters, points=mine)
        name = _line_name(second, level)
        marks += _trace(name, line, [point.coded[0] for point in mine], scale, colour, legend=True)
    return Figure(
        name=f"interaction-{first.letter}{second.letter}",
        title=f"{first.letter}{second.letter}: {first.name} x {second.name}",
        caption="",
        x=x,
        y=y,
        marks=tuple(marks),
        height_px=230,
    )


def _line_name(factor: Factor, coded: float) -> str:
    return level_said(factor, label_of(factor, coded))


def _trace(
    name: str, means: Means, coded: Sequence[float], scale: Scale, colour: str, *, legend: bool
) -> tuple[Mark, ...]:
    y = tuple(scale.back(point.value) for point in means.points)
    ends = [scale.ends(point.low, point.high) for point in means.points]
    known = [end for end in ends if end is not None]
    is_known = len(known) == len(ends)
    return (
        Line(name=name, x=tuple(coded), y=y, colour=colour, legend=legend),
        Points(
            name=name,
            x=tuple(coded),
            y=y,
            low=tuple(end[0] for end in known) if is_known else (),
            high=tuple(end[1] for end in known) if is_known else (),
            colour=colour,
            labels=tuple(
                f"{', '.join(point.labels)}: {scale.text(point.value)}, mean of {point.count} runs"
                for point in means.points
            ),
            legend=False,
        ),
    )


def _axis(chosen: Sequence[Means], scale: Scale) -> Axis:
    values = [scale.back(point.value) for means in chosen for point in means.points]
    for means in chosen:
        for point in means.points:
            values += scale.ends(point.low, point.high) or ()
    low, high = linear_ends(min(values), max(values))
    return Axis(title=scale.axis, ticks=few_ticks(low, high), low=low, high=high)


def _untitled(axis: Axis) -> Axis:
    return Axis(title="", ticks=axis.ticks, labels=axis.labels, low=axis.low, high=axis.high)


def _by_share(analysis: Analysis, groups: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return groups of letters by the share of their effect, those without one last."""
    shares: dict[tuple[str, ...], float] = {}
    for effect in analysis.effects:
        shares[effect.letters] = shares.get(effect.letters, 0.0) + (effect.share_ratio or 0.0)
    return sorted(groups, key=lambda letters: -shares.get(tuple(letters), -1.0))


STRONG, QUIET, NOISE = "#3f6fb5", "#9db9e0", "#9aa1ab"
_WIDTH_PX, _ROW_PX, _BAR_PX = 760, 26, 16
_MOST = 14
_LETTER_PX = 6.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A bar: its length, a paler one behind it that may be longer, and what is written beside it."""

    label: str
    ratio: float
    behind_ratio: float = 0.0
    colour: str = STRONG
    said: str


def effect_bars(analysis: Analysis, *, rest: str = "errors (noise)") -> tuple[Bar, ...]:
    """Return the shares of the variation by effect; none where nothing varies."""
    rows = [
        (effect.label, effect.share_ratio, QUIET if effect.is_significant is False else STRONG)
        for effect in analysis.effects
        if effect.share_ratio is not None
    ]
    if not rows:
        return ()
    shown, more = rows[:_MOST], rows[_MOST:]
    if more:
        shown.append((f"{len(more)} more", sum(share for _, share, _ in more), QUIET))
    if analysis.error_share_ratio is not None and analysis.error_df > 0:
        shown.append((rest, analysis.error_share_ratio, NOISE))
    bars, so_far = [], 0.0
    for number, (label, share, colour) in enumerate(shown):
        so_far += share
        text = f"{100.0 * share:.1f} %"
        if analysis.is_balanced and number and share > 0.0005:
            text += f" ({100.0 * so_far:.1f} % so far)"
        bars.append(Bar(label=label, ratio=share, colour=colour, said=text))
    return tuple(bars)


def screening_bars(screening: Screening) -> tuple[Bar, ...]:
    """Return each factor's share of the variance alone, and behind it the share that it has a part in."""
    bars = []
    for factor in screening.factors[:_MOST]:
        if factor.first_order_ratio is None:
            return ()
        alone = max(factor.first_order_ratio, 0.0)
        total = max(factor.total_ratio or 0.0, alone)
        text = f"{100.0 * total:.1f} %"
        if total - alone > 0.001:
            text += f" ({100.0 * alone:.1f} % by itself)"
        bars.append(Bar(label=factor.name, ratio=alone, behind_ratio=total, said=text))
    return tuple(bars)


def bars_svg(bars: Sequence[Bar], *, title: str, caption: str = "", has_heading: bool = False) -> str:
    """Return bars as an SVG document that follows the reader's light or dark setting."""
    letters = min(max(len(bar.label) for bar in bars), 38)
    left = int(_LETTER_PX * letters) + 14
    longest = max(1e-9, *(max(bar.ratio, bar.behind_ratio) for bar in bars))
    # A text stands behind its bar: the longest bar leaves room for the longest text.
    room = _WIDTH_PX - left - 20 - int(_LETTER_PX * max(len(bar.said) for bar in bars))
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
        parts.append(f'<text x="{left + max(width, behind) + 8:.1f}" y="{middle + 4}">{escape(bar.said)}</text>')
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
    """Return sizes of effects over what noise alone would spread them to; None without Lenth's margins.

    The half-normal plot (Daniel 1959): which effects stand out where no run is repeated, with Lenth's margins.

    An effect's score is the half-normal quantile of (i - 1/2)/m, i its rank among m (Daniel 1959, *Technometrics* 1,
    311-341). Were all of them noise, they would lie on the line through 0 whose slope is 1 over the pseudo standard
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
    count = len(sized)
    scores = [float(ndtri(0.5 + 0.5 * (rank - 0.5) / count)) for rank in range(1, count + 1)]
    margin, sure, pse = margins.margin / step, margins.simultaneous_margin / step, margins.pse / step
    greatest = max([size for size, _ in sized] + [margin])
    is_far = sure > 1.6 * greatest
    _, right = linear_ends(0.0, max(1.25 * greatest, greatest if is_far else sure))
    _, top = linear_ends(0.0, scores[-1])
    marks: list[Mark] = [
        Line(
            name="if all were noise",
            x=(0.0, min(right, pse * top)),
            y=(0.0, min(right / pse, top) if pse else top),
            colour=NOISE,
            dashed=True,
        ),
        Line(name="margin (one effect)", x=(margin, margin), y=(0.0, top), colour="#d6812f", dashed=True),
    ]
    if not is_far:
        marks.append(Line(name="margin (among all)", x=(sure, sure), y=(0.0, top), colour="#c8524a", dashed=True))
    for name, is_out, colour in (("stands out", True, STRONG), ("does not", False, QUIET)):
        mine = [
            (size, score, label)
            for (size, label), score in zip(sized, scores, strict=True)
            if (size > margin) is is_out
        ]
        if mine:
            marks.append(
                Points(
                    name=name,
                    x=tuple(size for size, _, _ in mine),
                    y=tuple(score for _, score, _ in mine),
                    colour=colour,
                    labels=tuple(label.label if is_out else label.name for _, _, label in mine),
                    is_labelled=True,
                )
            )
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
MOST_TOLD = 200
"""Up to so many points each tells its levels; of more it says only which run it is."""
_NOTHING = 1e-12
"""A smaller share of the variation is rounding."""
_POINT, _LINE = "#3f6fb5", "#9aa1ab"


def residual_panels(results: Results, analysis: Analysis, scale: Scale) -> tuple[Figure, ...]:
    """Return predicted against answered, and residuals over prediction, run order and normal scores.

    Empty where nothing is left over: a model with as many effects as runs meets each run exactly.
    """
    left = analysis.residuals
    if left is None or analysis.error_df < 1 or (analysis.error_share_ratio or 0.0) < _NOTHING:
        return ()
    kept = thinned(len(left.residuals))
    step, unit = scale.for_amounts(left.residuals)
    residuals = [left.residuals[residual] / step for residual in kept]
    predicted = [scale.analysed(left.predicted[residual]) for residual in kept]
    observed = [scale.analysed(left.observed[residual]) for residual in kept]
    order = _order(results)
    runs = [float(order[left.runs[residual]]) for residual in kept]
    labels = [_said(results.experiment, results, left, residual, is_long=len(kept) <= MOST_TOLD) for residual in kept]
    low, high = linear_ends(min(residuals), max(residuals))
    y = Axis(title=f"residual{_unit(scale, unit)}", ticks=few_ticks(low, high), low=low, high=high)
    spread = (sum(value * value for value in residuals) / len(residuals)) ** 0.5
    scores = [left.normal_scores[residual] for residual in kept]
    ends = linear_ends(min([*predicted, *observed]), max([*predicted, *observed]))
    axis = scale.analysed_axis
    against = _cloud(
        "answered",
        "Answered against predicted",
        f"predicted {axis}",
        (predicted, observed),
        Axis(title=f"answered{_unit(scale, scale.unit)}", ticks=few_ticks(*ends), low=ends[0], high=ends[1]),
        labels,
        line=(ends, ends),
    )
    over = _cloud("over-prediction", "Residual over prediction", f"predicted {axis}", (predicted, residuals), y, labels)
    if results.experiment.evaluator == "solve":
        return against, over  # what a formula leaves over has neither order nor chance
    title = "order" if results.experiment.evaluator == "measure" else "run"
    return (
        against,
        over,
        _cloud("over-order", "Residual over run order", title, (runs, residuals), y, labels),
        _cloud(
            "over-scores",
            "Residual over normal score",
            "normal score",
            (scores, residuals),
            y,
            labels,
            line=((min(scores), max(scores)), (spread * min(scores), spread * max(scores))),
        ),
    )


def _order(results: Results) -> list[int]:
    """Return when each run was made, from 1 on: on the wire in random order."""
    count = len(results.runs)
    if results.experiment.evaluator != "measure":
        return list(range(1, count + 1))
    made = [0] * count
    for when, run in enumerate(wire_order(results.experiment.seed, count), start=1):
        made[run] = when
    return made


def thinned(count: int) -> range:
    """Return which of so many points a picture shows: all, or evenly chosen ones."""
    return range(0, count, -(-count // MOST_POINTS) if count > MOST_POINTS else 1)


def _cloud(
    name: str,
    title: str,
    x_title: str,
    places: tuple[Sequence[float], Sequence[float]],
    axis: Axis,
    labels: Sequence[str],
    line: tuple[tuple[float, float], tuple[float, float]] | None = None,
) -> Figure:
    """Return points with the dashed line along which they should lie: zero, where none is given."""
    x, y = places
    x_ends = linear_ends(min([*x, *line[0]]), max([*x, *line[0]])) if line else linear_ends(min(x), max(x))
    guide = line or (x_ends, (0.0, 0.0))
    return Figure(
        name=f"residuals-{name}",
        title=title,
        caption="",
        x=Axis(title=x_title, ticks=few_ticks(*x_ends), low=x_ends[0], high=x_ends[1]),
        y=axis,
        marks=(
            Line(name="as it should be", x=guide[0], y=guide[1], colour=_LINE, dashed=True, legend=False),
            Points(
                name="runs",
                x=tuple(x),
                y=tuple(y),
                colour=_POINT,
                filled=False,
                size_px=6 if len(x) <= MOST_TOLD else 3,
                labels=tuple(labels),
                legend=False,
            ),
        ),
        height_px=230,
    )


def _said(experiment: Experiment, results: Results, left: Residuals, place: int, *, is_long: bool) -> str:
    run = f"run {left.runs[place] + 1}"
    return f"{run}: {run_said(experiment, results.runs[left.runs[place]].row)}" if is_long else run


def _unit(scale: Scale, unit: str) -> str:
    if scale.transform == "none":
        return f" [{unit}]" if unit else ""
    return f" of {scale.analysed_axis}"


_PARTS = 10
_FEWEST = 3
_DOT, _TREND = "#9db9e0", "#c8524a"


def sample_panels(results: Results, analysis: Analysis, scale: Scale) -> tuple[Figure, ...]:
    """Return a small scatter for each factor, the most important first, with the mean along it."""
    experiment = results.experiment
    left = analysis.residuals
    if left is None or not left.runs:
        return ()
    rows = [results.runs[run].row for run in left.runs]
    values = [scale.back(value) for value in left.observed]
    kept = thinned(len(values))
    labels = [
        f"run {left.runs[sample] + 1}: "
        + (f"{run_said(experiment, rows[sample])}: " if len(kept) <= MOST_TOLD else "")
        + scale.written(values[sample])
        for sample in kept
    ]
    low, high = linear_ends(min(values), max(values))
    y = Axis(title=scale.axis, ticks=few_ticks(low, high), low=low, high=high)
    panels = []
    for column, factor in _in_order(experiment.factors, analysis):
        coded = [experiment.design.coded[row][column] for row in rows]
        trend = _means_along(coded, values)
        ticks = [level.coded for level in factor.levels]
        x = axis_of(
            factor, [*ticks, 0.0] if factor.is_quantity else ticks, panel_px(columns_for(len(experiment.factors)))
        )
        panels.append(
            Figure(
                name=f"sample-{factor.letter}",
                title=f"{factor.letter}: {factor.name}",
                caption="",
                x=Axis(title="", ticks=x.ticks, labels=x.labels, low=x.low, high=x.high),
                y=y,
                marks=(
                    Points(
                        name="runs",
                        x=tuple(coded[sample] for sample in kept),
                        y=tuple(values[sample] for sample in kept),
                        colour=_DOT,
                        size_px=4 if len(kept) <= MOST_TOLD else 3,
                        labels=tuple(labels),
                        legend=False,
                    ),
                    Line(
                        name="mean",
                        x=tuple(at for at, _ in trend),
                        y=tuple(value for _, value in trend),
                        colour=_TREND,
                        legend=False,
                    ),
                    # Points stand before lines: the mean would drown among the runs.
                    Points(
                        name="mean",
                        x=tuple(at for at, _ in trend),
                        y=tuple(value for _, value in trend),
                        colour=_TREND,
                        size_px=7,
                        labels=tuple(f"mean about here: {scale.written(value)}" for _, value in trend),
                        legend=False,
                    ),
                ),
                height_px=230,
            )
        )
    return tuple(panels)


def _in_order(factors: Sequence[Factor], analysis: Analysis) -> list[tuple[int, Factor]]:
    ranks = {factor.letter: factor.rank for factor in analysis.screening.factors} if analysis.screening else {}
    numbered = list(enumerate(factors))
    return sorted(numbered, key=lambda pair: ranks.get(pair[1].letter, len(factors)))


def _means_along(coded: Sequence[float], values: Sequence[float]) -> list[tuple[float, float]]:
    """Return the mean position and the mean value of runs in equal parts of the range of a factor."""
    low, high = min(coded), max(coded)
    parts: list[list[tuple[float, float]]] = [[] for _ in range(_PARTS)]
    for at, seen in zip(coded, values, strict=True):
        share = (at - low) / (high - low) if high > low else 0.0
        parts[min(int(_PARTS * share), _PARTS - 1)].append((at, seen))
    return [
        (sum(at for at, _ in part) / len(part), sum(value for _, value in part) / len(part))
        for part in parts
        if len(part) >= _FEWEST
    ]


@value
class Picture:
    """One picture of a report."""

    name: str = field("Stem of its file")
    title: str = field("What it shows")
    caption: str = field("How to read it")
    is_finding: bool = field("Whether it shows what was found, or whether to trust it")
    drawn: Callable[..., str] = field("Returns the SVG; ``has_heading`` writes title and caption into it")

    def svg(self, *, has_heading: bool = False) -> str:
        """Return the picture as SVG text."""
        return self.drawn(has_heading=has_heading)


Pictures = Mapping[str, tuple[Picture, ...]]
"""Pictures by name of the response."""


def pictures_of(results: Results, analysis: Analysis, scale: Scale) -> tuple[Picture, ...]:
    """Return the pictures of one response, in the order of a reader's questions."""
    if analysis.mean is None or analysis.sst == 0.0:
        return ()
    pictures = []
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
            pictures.append(picture)
    return tuple(pictures)


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
        if any(effect.is_significant is False for effect in analysis.effects):
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
    is_cut = any(figure.y.low is not None and figure.y.low > 0.0 for figure in figures)
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
    legends = [len(mark.name) for figure in figures for mark in figure.marks if getattr(mark, "legend", True)]
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
    return Picture(name="over-time", title=title, caption=figure.caption, is_finding=False, drawn=partial(draw, figure))
