"""A response surface as a map: lines of equal response over the two quantities that matter most."""

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
"""Row and column of where an edge of the grid begins, and whether it runs along x."""
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
        place = (x[column] + share * (x[end[1]] - x[column]), y[row] + share * (y[end[0]] - y[row]))
        return (row, column, along), place

    segments = []
    for row, column in product(range(len(y) - 1), range(len(x) - 1)):
        around = (
            crossing(row, column, along=True),
            crossing(row, column + 1, along=False),
            crossing(row + 1, column, along=True),
            crossing(row, column, along=False),
        )
        crossings = [crossing for crossing in around if crossing is not None]
        if len(crossings) == 2:
            segments.append((crossings[0], crossings[1]))
        elif crossings:
            # A saddle within the cell: its middle says which corners belong together.
            corners = [heights[row + v][column + u] for v, u in product((0, 1), repeat=2)]
            a, b, c, d = crossings
            is_joined = (sum(corners) / 4.0 >= level) is (corners[0] >= level)
            segments += [(a, b), (c, d)] if is_joined else [(d, a), (b, c)]
    return _joined(segments)


def _joined(segments: Sequence[tuple[Crossing, Crossing]]) -> list[list[Point]]:
    """Join segments that meet on an edge into lines; at most two segments meet on an edge."""
    ends: dict[Edge, list[int]] = {}
    for number, segment in enumerate(segments):
        for edge, _ in segment:
            ends.setdefault(edge, []).append(number)
    used = [False] * len(segments)
    # Lines with loose ends first; what is left then is closed.
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
        while (onward := next((end for end in ends[last[0]] if not used[end]), None)) is not None:
            used[onward] = True
            a, b = segments[onward]
            last = b if a[0] == last[0] else a
            line.append(last[1])
        lines.append(line)
    return lines


_GRID = 73
_MOST_RUNS = 200
_WIDTH_PX = 760
_RUN, _FLAT = "#7a7f87", "#c8524a"
_KINDS = {
    "maximum": "highest point",
    "minimum": "lowest point",
    "saddle": "saddle (up one way, down the other)",
    "ridge": "middle of a ridge",
}


def surface_figure(experiment: Experiment, analysis: Analysis, scale: Scale) -> Figure | None:
    """Return the map of a response surface; None without a surface over at least two quantities."""
    surface = analysis.surface
    if surface is None or len(surface.letters) < 2:
        return None
    first, second = _two(surface)
    factors = {factor.letter: factor for factor in experiment.factors}
    across, along = factors[surface.letters[first]], factors[surface.letters[second]]
    columns = {factor.letter: number for number, factor in enumerate(experiment.factors)}
    runs = [(row[columns[across.letter]], row[columns[along.letter]]) for row in experiment.design.coded]
    flat = surface.stationary
    others = held_at(analysis)

    def height(u: float, v: float) -> float:
        at = list(others)
        at[first], at[second] = u, v
        return scale.back(surface.at(tuple(at)))

    x, y = _steps([run[0] for run in runs]), _steps([run[1] for run in runs])
    heights = [[height(u, v) for u in x] for v in y]
    places = tuple(dict.fromkeys(runs))
    marks: list[Mark] = []
    if len(places) <= _MOST_RUNS:
        marks.append(
            Points(
                name="runs",
                x=tuple(place[0] for place in places),
                y=tuple(place[1] for place in places),
                colour=_RUN,
                filled=False,
                size_px=6,
            )
        )
    marks += _lines(x, y, heights, scale)
    caption = "Circles are runs. " if len(places) <= _MOST_RUNS else ""
    caption += _fixed(surface, factors, others, (first, second))
    if flat is not None:
        place = (flat.coded[first], flat.coded[second])
        if flat.is_inside:
            marks.append(
                Points(
                    name=f"{_KINDS[flat.kind]}: {scale.text(flat.response)}",
                    x=(place[0],),
                    y=(place[1],),
                    colour=_FLAT,
                    symbol="diamond",
                    size_px=11,
                )
            )
        elif not is_sample(experiment):
            caption += (
                f" The {_KINDS[flat.kind]} of the fitted surface lies outside the tried range, so it has no meaning."
            )
    tall = axis_of(along, [-1.0, 0.0, 1.0], 330)
    return Figure(
        name="surface",
        title=f"{scale.name[:1].upper()}{scale.name[1:]} over {across.name} and {along.name}",
        caption=caption.strip(),
        x=_shown(axis_of(across, [-1.0, 0.0, 1.0], _WIDTH_PX), x),
        y=_shown(Axis(title=along.name, ticks=tall.ticks, labels=tall.labels), y),
        marks=tuple(marks),
        height_px=470,
    )


def _two(surface: Surface) -> tuple[int, int]:
    """Return the two quantities over which the surface varies most, in their order."""
    weight = [0.0] * len(surface.letters)
    for term in surface.terms:
        for number, power in enumerate(term.powers):
            if power:
                weight[number] += abs(term.value)
    ranked = sorted(range(len(weight)), key=lambda number: -weight[number])
    first, second = sorted(ranked[:2])
    return first, second


def _steps(coded: Sequence[float]) -> list[float]:
    low, high = min(-1.0, *coded), max(1.0, *coded)
    return [low + (high - low) * number / (_GRID - 1) for number in range(_GRID)]


def _shown(axis: Axis, steps: Sequence[float]) -> Axis:
    margin = 0.04 * (steps[-1] - steps[0])
    return Axis(title=axis.title, ticks=axis.ticks, labels=axis.labels, low=steps[0] - margin, high=steps[-1] + margin)


def _lines(x: Sequence[float], y: Sequence[float], heights: Sequence[Sequence[float]], scale: Scale) -> list[Mark]:
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
                    name=scale.written(level),
                    x=tuple(at[0] for at in line),
                    y=tuple(at[1] for at in line),
                    colour=colour,
                    legend=False,
                )
            )
        if lines:
            longest = max(lines, key=len)
            at = longest[len(longest) // 2]
            marks.append(
                Points(
                    name=scale.written(level),
                    x=(at[0],),
                    y=(at[1],),
                    colour=colour,
                    size_px=3,
                    labels=(f"{level:.6g}",),
                    is_labelled=True,
                    legend=False,
                )
            )
    return marks


def _fixed(surface: Surface, factors: dict[str, Factor], others: Sequence[float], chosen: tuple[int, int]) -> str:
    rest = [
        f"{factors[letter].name} {display_label(factors[letter], at)}"
        for number, (letter, at) in enumerate(zip(surface.letters, others, strict=True))
        if number not in chosen
    ]
    return f"With {', '.join(rest)}." if rest else ""


def held_at(analysis: Analysis) -> list[float]:
    """Return the fixed levels of the other quantities: the flat point if it is in the tried range, else the middle."""
    surface = analysis.surface
    if surface is None:
        return []
    flat = surface.stationary
    return list(flat.coded) if flat is not None and flat.is_inside else [0.0] * len(surface.letters)
