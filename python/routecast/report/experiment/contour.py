"""Lines of equal height of a function of two coordinates, by marching squares."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

__all__ = ["contour_lines"]

Point = tuple[float, float]
Segment = tuple[Point, Point]


def contour_lines(
    x: Sequence[float], y: Sequence[float], heights: Sequence[Sequence[float]], level: float
) -> list[list[Point]]:
    """Return the lines on which heights, linear between the points of a grid, are at a level.

    Parameters
    ----------
    x : sequence of float, shape (m,)
    y : sequence of float, shape (n,)
    heights : sequence of sequences, shape (n, m)
    level : float

    Examples
    --------
    >>> contour_lines([0.0, 1.0], [0.0, 1.0], [[0.0, 1.0], [0.0, 1.0]], 0.25)
    [[(0.25, 0.0), (0.25, 1.0)]]
    """
    segments = []
    for row, column in product(range(len(y) - 1), range(len(x) - 1)):
        corners = [
            (x[column], y[row], heights[row][column]),
            (x[column + 1], y[row], heights[row][column + 1]),
            (x[column + 1], y[row + 1], heights[row + 1][column + 1]),
            (x[column], y[row + 1], heights[row + 1][column]),
        ]
        segments += _in_cell(corners, level)
    return _joined(segments)


def _in_cell(corners: Sequence[tuple[float, float, float]], level: float) -> list[Segment]:
    crossings: list[Point] = []
    for one, other in zip(corners, [*corners[1:], corners[0]], strict=True):
        # A corner at the level counts as above it, so that each line enters and leaves a cell.
        if (one[2] >= level) is not (other[2] >= level):
            # From the same end for both cells that share the edge: the points are then the same to the last bit.
            first, last = sorted((one, other))
            share = (level - first[2]) / (last[2] - first[2])
            crossings.append(
                (first[0] + share * (last[0] - first[0]), first[1] + share * (last[1] - first[1]))
            )
    if len(crossings) < 4:
        return [(crossings[0], crossings[1])] if crossings else []
    # A saddle within the cell: its middle says which corners belong together.
    middle = sum(corner[2] for corner in corners) / 4.0
    a, b, c, d = crossings
    if (middle >= level) is (corners[0][2] >= level):
        return [(a, b), (c, d)]
    return [(d, a), (b, c)]


def _joined(segments: Sequence[Segment]) -> list[list[Point]]:
    """Join segments that share an end into lines."""
    ends: dict[Point, list[int]] = {}
    for number, segment in enumerate(segments):
        for point in segment:
            ends.setdefault(point, []).append(number)
    used = [False] * len(segments)
    lines = []
    # Lines with loose ends first; what is left then is closed.
    starts = [number for number, segment in enumerate(segments) if any(len(ends[at]) == 1 for at in segment)]
    for number in [*starts, *range(len(segments))]:
        if used[number]:
            continue
        used[number] = True
        first, last = segments[number]
        if len(ends[first]) != 1 and len(ends[last]) == 1:
            first, last = last, first
        line = [first, last]
        while True:
            onward = next((one for one in ends[line[-1]] if not used[one]), None)
            if onward is None:
                break
            used[onward] = True
            a, b = segments[onward]
            line.append(b if a == line[-1] else a)
        lines.append(line)
    return lines
