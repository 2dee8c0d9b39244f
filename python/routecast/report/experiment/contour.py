"""Lines of equal height of a function of two coordinates, by marching squares."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

__all__ = ["contour_lines"]

Point = tuple[float, float]
Edge = tuple[int, int, bool]
"""Row and column of where an edge of the grid begins, and whether it runs along x."""
Crossing = tuple[Edge, Point]


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

    def crossing(row: int, column: int, *, along: bool) -> Crossing | None:
        end = (row, column + 1) if along else (row + 1, column)
        first, last = heights[row][column], heights[end[0]][end[1]]
        # A point at the level counts as above it, so that each line enters and leaves a cell.
        if (first >= level) is (last >= level):
            return None
        share = (level - first) / (last - first)
        place = (
            x[column] + share * (x[end[1]] - x[column]),
            y[row] + share * (y[end[0]] - y[row]),
        )
        return (row, column, along), place

    segments = []
    for row, column in product(range(len(y) - 1), range(len(x) - 1)):
        around = (
            crossing(row, column, along=True),
            crossing(row, column + 1, along=False),
            crossing(row + 1, column, along=True),
            crossing(row, column, along=False),
        )
        found = [one for one in around if one is not None]
        if len(found) == 2:
            segments.append((found[0], found[1]))
        elif found:
            # A saddle within the cell: its middle says which corners belong together.
            corners = [heights[row + v][column + u] for v, u in product((0, 1), repeat=2)]
            a, b, c, d = found
            is_joined = (sum(corners) / 4.0 >= level) is (corners[0] >= level)
            segments += [(a, b), (c, d)] if is_joined else [(d, a), (b, c)]
    return _joined(segments)


def _joined(segments: Sequence[tuple[Crossing, Crossing]]) -> list[list[Point]]:
    """Join segments that meet on an edge into lines; two at most do."""
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
        while (onward := next((one for one in ends[last[0]] if not used[one]), None)) is not None:
            used[onward] = True
            a, b = segments[onward]
            last = b if a[0] == last[0] else a
            line.append(last[1])
        lines.append(line)
    return lines
