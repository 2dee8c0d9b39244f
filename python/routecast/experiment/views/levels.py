"""What the levels of a design are called, and the axis of a factor."""

from __future__ import annotations

import re
from collections.abc import Sequence

from routecast.errors import RoutecastError
from routecast.experiment.factors import level_at
from routecast.experiment.model import Experiment, Factor
from routecast.show.figures import Axis

__all__ = ["axis_of", "label_of", "level_said", "run_said", "shortened"]

_LETTER_PX = 6.6
_SAME = 1e-9
_BESIDE_PX = 78
"""What a figure needs left and right of its axis (``report/drawing.py``)."""


def label_of(factor: Factor, coded: float) -> str:
    """Return what a level is called; of a quantity also between and beyond the levels of the file."""
    for level in factor.levels:
        if abs(level.coded - coded) < _SAME:
            return level.label
    try:
        label = level_at(factor, coded).label
    except RoutecastError:
        return f"{coded:+.3g}"
    return re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.4g}", label)


def run_said(experiment: Experiment, row: int) -> str:
    """Write the levels of a row of the design: ``"packet size 78 B, queue manager full"``."""
    coded = experiment.design.coded[row]
    return ", ".join(
        level_said(factor, label_of(factor, at)) for factor, at in zip(experiment.factors, coded, strict=True)
    )


def level_said(factor: Factor, label: str) -> str:
    """Write a level with its factor's name, which the label may hold already: ``"no queue manager"``."""
    return label if factor.name.lower() in label.lower() else f"{factor.name} {label}"


def axis_of(factor: Factor, coded: Sequence[float], width_px: int) -> Axis:
    """Return the axis of a factor over coded levels, with the levels' labels as far as they have room."""
    ticks = sorted({round(at, 9) for at in coded})
    low, high = min(ticks, default=-1.0), max(ticks, default=1.0)
    room = (width_px - _BESIDE_PX) / 1.3
    most = max(int(room / 46.0), 2)
    if len(ticks) > most:
        ticks = (
            [low + (high - low) * number / 2.0 for number in range(3)]
            if factor.is_quantity
            else [*ticks[:-1][:: len(ticks) // most + 1], high]
        )
    letters = max(int(room / max(len(ticks) - 1, 1) / _LETTER_PX) - 2, 4)
    labels = [label_of(factor, at) for at in ticks]
    if factor.is_quantity and len(ticks) > 2 and any(len(label) > letters for label in labels):
        ticks, labels, letters = [low, high], [label_of(factor, low), label_of(factor, high)], 16
    margin = 0.18 * (high - low or 2.0)
    px = (width_px - _BESIDE_PX) / (high - low + 2.0 * margin)
    shown = _apart([(px * at, at, shortened(label, letters)) for at, label in zip(ticks, labels, strict=True)])
    return Axis(
        title=factor.name,
        ticks=tuple(at for _, at, _ in shown),
        labels=tuple(label for _, _, label in shown),
        low=low - margin,
        high=high + margin,
    )


def _apart(ticks: Sequence[tuple[float, float, str]]) -> list[tuple[float, float, str]]:
    """Leave out ticks whose labels would run into others, as of levels that are not evenly spaced; the ends stay."""
    kept = list(ticks[:1])
    for tick in ticks[1:-1]:
        if all(_gap_px(*pair) >= _LETTER_PX for pair in ((kept[-1], tick), (tick, ticks[-1]))):
            kept.append(tick)
    return [*kept, *ticks[1:][-1:]]


def _gap_px(left: tuple[float, float, str], right: tuple[float, float, str]) -> float:
    return right[0] - left[0] - _LETTER_PX * (len(left[2]) + len(right[2])) / 2.0


def shortened(text: str, letters: int) -> str:
    """Cut a text that is too long.

    Examples
    --------
    >>> shortened("without queue manager", 12)
    'without que…'
    """
    return text if len(text) <= letters else text[: max(letters - 1, 1)].rstrip() + "…"
