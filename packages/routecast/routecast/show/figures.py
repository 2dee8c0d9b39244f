"""The content of a figure, independent of its drawing.

A :class:`Figure` has two axes and a tuple of marks: lines with bands, points with error bars, and stacks. ``Line.of``
and ``Points.of`` take the coordinates from rows, as :meth:`routecast.show.tables.Table.of` takes cells. Colours come
from a :func:`palette`, so that a series has the same colour in a whole report.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Literal, Self

__all__ = ["CURVE_COLOURS", "GREY", "Axis", "Figure", "Line", "Mark", "Points", "Stack", "palette"]

ORDERED = ("#3f6fb5", "#2b95a6", "#4aa36a", "#b39a2f", "#d6812f", "#c8524a", "#9b4f8e")
GREY = "#7a7f87"
"""Colour of references, such as bounds and diagonals."""
CURVE_COLOURS = ("#3f6fb5", "#d6812f", "#4aa36a", "#b0508f", "#c8524a", "#2b95a6", "#b39a2f", "#9b8ec4")
"""Colours of curves beside grey references."""
CATEGORIES = ("#3f6fb5", "#d6812f", "#4aa36a", "#b0508f", GREY, "#2b95a6", "#b39a2f")

Getter = Callable[[Any], float]


def palette(count: int, *, ordered: bool = True) -> tuple[str, ...]:
    """Return ``count`` colours that are visible on light and dark backgrounds.

    ``ordered`` colours run from cold to warm, for ordered categories (numbers of flows, loads); other colours differ as
    much as possible.

    Examples
    --------
    >>> palette(2)
    ('#3f6fb5', '#9b4f8e')
    """
    source = ORDERED if ordered else CATEGORIES
    if not ordered or count <= 1:
        return tuple(source[i % len(source)] for i in range(count))
    last = len(source) - 1
    return tuple(_between(source, i * last / (count - 1)) for i in range(count))


def _between(colours: Sequence[str], position: float) -> str:
    low = min(int(position), len(colours) - 2)
    share = position - low
    ends = [[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in (colours[low], colours[low + 1])]
    mixed = [round(a + share * (b - a)) for a, b in zip(*ends, strict=True)]
    return "#" + "".join(f"{part:02x}" for part in mixed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis: its title with the unit, its scale, and the labelled ticks (empty: chosen by the renderer).

    ``labels`` replace the numbers at the ticks.
    """

    title: str
    scale: Literal["linear", "log"] = "linear"
    ticks: tuple[float, ...] = ()
    labels: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None


class _MarkOfRows:
    __slots__ = ()

    @classmethod
    def of(cls, rows: Iterable[Any], x: Getter, y: Getter, /, **fields: Any) -> Self:
        """Return a mark of rows; ``x``, ``y`` and optionally ``low``, ``high`` and ``labels`` are functions of a row.

        Examples
        --------
        >>> Points.of([1 + 2j, 3j], lambda row: row.real, lambda row: row.imag, name="z").y
        (2.0, 3.0)
        """
        rows = tuple(rows)
        getters = {"x": x, "y": y} | {name: fields.pop(name) for name in ("low", "high", "labels") if name in fields}
        coordinates: dict[str, Any] = {name: tuple(map(getter, rows)) for name, getter in getters.items()}
        return cls(**coordinates, **fields)

    @classmethod
    def of_pairs(cls, pairs: Iterable[tuple[float, float]], /, **fields: Any) -> Self:
        """Return the mark of points (x, y)."""
        return cls.of(pairs, itemgetter(0), itemgetter(1), **fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line(_MarkOfRows):
    """A line, with a band between ``low`` and ``high`` if intervals are known (otherwise both are empty)."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    colour: str = ORDERED[0]
    dashed: bool = False
    legend: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Points(_MarkOfRows):
    """Points: ``filled`` if measured, hollow if computed, with error bars if ``low`` and ``high`` are given.

    A mark whose only point is NaN explains a symbol in the legend. ``labels`` appear at the pointer; ``is_labelled``
    also writes them beside the points of an SVG where they fit.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    colour: str = ORDERED[0]
    filled: bool = True
    symbol: Literal["circle", "square", "diamond", "cross"] = "circle"
    size_px: int = 8
    labels: tuple[str, ...] = ()
    is_labelled: bool = False
    legend: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack(_MarkOfRows):
    """A layer of a stack (joules by state, drops by place); layers are stacked in the order of the marks."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    colour: str = ORDERED[0]


Mark = Line | Points | Stack


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure; ``name`` is the stem of its file name, ``caption`` describes its content."""

    name: str
    title: str
    caption: str
    x: Axis
    y: Axis
    marks: tuple[Mark, ...]
    height_px: int = 420

    @property
    def is_one_point(self) -> bool:
        """Whether all marks together have at most one value of x."""
        shown = {x for mark in self.marks for x, y in zip(mark.x, mark.y, strict=True) if math.isfinite(x + y)}
        return len(shown) < 2
