"""A response surface as a map: contour lines over the two quantities that affect the response most."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from routecast.experiment.analysis.outcome import Analysis, Surface
from routecast.experiment.model import Experiment, Factor
from routecast.experiment.views._words import Scale, axis_of, display_label, is_sample
from routecast.show.figures import Axis, Figure, Line, Mark, Points, palette
from routecast.show.ticks import nice_step

Point = tuple[float, float]
Edge = tuple[int, int, bool]
"""Row and column of the start of an edge of the grid, and whether the edge runs along x."""
Crossing = tuple[Edge, Point]


def contour_lines(
    x: Sequence[float], y: Sequence[float], heights: Sequence[Sequence[float]], level: float
) -> list[list[Point]]:
    """Return the contour lines at a level of heights that are linear between the points of a grid.

    Examples
    --------
    >>> contour_lines([0.0, 1.0], [0.0, 1.0], [[0.0, 1.0], [0.0, 1.0]], 0.25)
    [[(0.25, 0.0), (0.25, 1.0)]]
    """

    def crossing(row: int, column: int, *, along: bool) -> Crossing | None:
        end = (row, column + 1) if along else (row + 1, column)
        first, last = heights[row][column], heights[end[0]][end[1]]
        # A point at the level counts as above it, so that each line enters and leaves a cell.
        if (first >= level) is (last >= level):
            return None
        share = (level - first) / (last - first)
        point = (x[column] + share * (x[end[1]] - x[column]), y[row] + share * (y[end[0]] - y[row]))
        return (row, column, along), point

    segments = []
    for row, column in product(range(len(y) - 1), range(len(x) - 1)):
        cell_crossings = (
            crossing(row, column, along=True),
            crossing(row, column + 1, along=False),
            crossing(row + 1, column, along=True),
            crossing(row, column, along=False),
        )
        crossings = [candidate for candidate in cell_crossings if candidate is not None]
        if len(crossings) == 2:
            segments.append((crossings[0], crossings[1]))
        elif crossings:
            # The cell has a saddle, and the height in its middle decides which corners are joined.
            corners = [heights[row + v][column + u] for v, u in product((0, 1), repeat=2)]
            a, b, c, d = crossings
            is_joined = (sum(corners) / 4.0 >= level) is (corners[0] >= level)
            segments += [(a, b), (c, d)] if is_joined else [(d, a), (b, c)]
    return _join_segments(segments)


def _join_segments(segments: Sequence[tuple[Crossing, Crossing]]) -> list[list[Point]]:
    """Return the lines of segments that meet on edges; at most two segments meet on an edge."""
    ends: dict[Edge, list[int]] = {}
    for number, segment in enumerate(segments):
        for edge, _ in segment:
            ends.setdefault(edge, []).append(number)
    used = [False] * len(segments)
    # Open lines first; the remaining lines are closed.
    loose = [n for n, segment in enumerate(segments) if any(len(ends[edge]) == 1 for edge, _ in segment)]
    lines = []
    for number in [*loose, *range(len(segments))]:
        if used[number]:
            continue
        used[number] = True
        first, last = segments[number]
        if len(ends[first[0]]) != 1 and len(ends[last[0]]) == 1:
            first, last = last, first
        line = [first[1], last[1]]
        while (following := next((end for end in ends[last[0]] if not used[end]), None)) is not None:
            used[following] = True
            a, b = segments[following]
            last = b if a[0] == last[0] else a
            line.append(last[1])
        lines.append(line)
    return lines


_GRID = 73
_MAX_RUNS = 200
_WIDTH_PX = 760
_RUN_COLOUR, _STATIONARY_COLOUR = "#7a7f87", "#c8524a"
_STATIONARY_KINDS = {
    "maximum": "highest point",
    "minimum": "lowest point",
    "saddle": "saddle (up in one direction, down in another)",
    "ridge": "middle of a ridge",
}


def surface_figure(experiment: Experiment, analysis: Analysis, scale: Scale) -> Figure | None:
    """Return the map of a response surface; None unless there is a surface over two or more quantities."""
    surface = analysis.surface
    if surface is None or len(surface.letters) < 2:
        return None
    first, second = _most_influential_pair(surface)
    factors = {factor.letter: factor for factor in experiment.factors}
    across, along = factors[surface.letters[first]], factors[surface.letters[second]]
    columns = {factor.letter: number for number, factor in enumerate(experiment.factors)}
    runs = [(row[columns[across.letter]], row[columns[along.letter]]) for row in experiment.design.coded]
    stationary = surface.stationary
    fixed = fixed_levels(analysis)

    def height(u: float, v: float) -> float:
        coded = list(fixed)
        coded[first], coded[second] = u, v
        return scale.untransformed(surface.at(tuple(coded)))

    x, y = _steps([run[0] for run in runs]), _steps([run[1] for run in runs])
    heights = [[height(u, v) for u in x] for v in y]
    points = tuple(dict.fromkeys(runs))
    marks: list[Mark] = []
    if len(points) <= _MAX_RUNS:
        marks.append(
            Points(
                name="runs",
                x=tuple(point[0] for point in points),
                y=tuple(point[1] for point in points),
                colour=_RUN_COLOUR,
                filled=False,
                size_px=6,
            )
        )
    marks += _contour_marks(x, y, heights, scale)
    caption = "Circles are runs. " if len(points) <= _MAX_RUNS else ""
    caption += _describe_fixed(surface, factors, fixed, (first, second))
    if stationary is not None:
        if stationary.is_inside:
            marks.append(
                Points(
                    name=f"{_STATIONARY_KINDS[stationary.kind]}: {scale.format_analysed(stationary.response)}",
                    x=(stationary.coded[first],),
                    y=(stationary.coded[second],),
                    colour=_STATIONARY_COLOUR,
                    symbol="diamond",
                    size_px=11,
                )
            )
        elif not is_sample(experiment):
            kind = _STATIONARY_KINDS[stationary.kind]
            caption += f" The {kind} of the fitted surface lies outside the tried range, so it has no meaning."
    vertical = axis_of(along, [-1.0, 0.0, 1.0], 330)
    return Figure(
        name="surface",
        title=f"{scale.name[:1].upper()}{scale.name[1:]} over {across.name} and {along.name}",
        caption=caption.strip(),
        x=_with_margin(axis_of(across, [-1.0, 0.0, 1.0], _WIDTH_PX), x),
        y=_with_margin(Axis(title=along.name, ticks=vertical.ticks, labels=vertical.labels), y),
        marks=tuple(marks),
        height_px=470,
    )


def _most_influential_pair(surface: Surface) -> tuple[int, int]:
    """Return the two quantities over which the surface varies most, in their order."""
    influence = [0.0] * len(surface.letters)
    for term in surface.terms:
        for number, power in enumerate(term.powers):
            if power:
                influence[number] += abs(term.value)
    ranked = sorted(range(len(influence)), key=lambda number: -influence[number])
    first, second = sorted(ranked[:2])
    return first, second


def _steps(coded: Sequence[float]) -> list[float]:
    low, high = min(-1.0, *coded), max(1.0, *coded)
    return [low + (high - low) * number / (_GRID - 1) for number in range(_GRID)]


def _with_margin(axis: Axis, steps: Sequence[float]) -> Axis:
    margin = 0.04 * (steps[-1] - steps[0])
    return Axis(title=axis.title, ticks=axis.ticks, labels=axis.labels, low=steps[0] - margin, high=steps[-1] + margin)


def _contour_marks(
    x: Sequence[float], y: Sequence[float], heights: Sequence[Sequence[float]], scale: Scale
) -> list[Mark]:
    low, high = min(map(min, heights)), max(map(max, heights))
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        return []
    step = nice_step(high - low)
    levels = [step * number for number in range(int(low // step) + 1, int(high // step) + 1)]
    marks: list[Mark] = []
    for level, colour in zip(levels, palette(len(levels)), strict=True):
        lines = contour_lines(x, y, heights, level)
        for line in lines:
            marks.append(
                Line(
                    name=scale.format_shown(level),
                    x=tuple(point[0] for point in line),
                    y=tuple(point[1] for point in line),
                    colour=colour,
                    legend=False,
                )
            )
        if lines:
            longest = max(lines, key=len)
            middle = longest[len(longest) // 2]
            marks.append(
                Points(
                    name=scale.format_shown(level),
                    x=(middle[0],),
                    y=(middle[1],),
                    colour=colour,
                    size_px=3,
                    labels=(f"{level:.6g}",),
                    is_labelled=True,
                    legend=False,
                )
            )
    return marks


def _describe_fixed(
    surface: Surface, factors: dict[str, Factor], fixed: Sequence[float], drawn: tuple[int, int]
) -> str:
    others = [
        f"{factors[letter].name} {display_label(factors[letter], coded)}"
        for number, (letter, coded) in enumerate(zip(surface.letters, fixed, strict=True))
        if number not in drawn
    ]
    return f"With {', '.join(others)}." if others else ""


def fixed_levels(analysis: Analysis) -> list[float]:
    """Return the coded levels of fixed quantities: the stationary point if in the tried range, else the middle."""
    surface = analysis.surface
    if surface is None:
        return []
    stationary = surface.stationary
    if stationary is not None and stationary.is_inside:
        return list(stationary.coded)
    return [0.0] * len(surface.letters)
