"""The figure of a workload: misses over the size of the cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from routecast.quantity import format_binary_bytes
from routecast.report.figures import Axis, Figure, Line, palette

if TYPE_CHECKING:
    from routecast.testbed.workload.answer import Characterisation, Misses

__all__ = ["miss_figure"]

_LABELLED_EVERY = 2


def miss_figure(answer: Characterisation) -> Figure:
    """Return the curve of misses per packet: all data, data without packets, instructions."""
    curves: tuple[tuple[str, Callable[[Misses], float]], ...] = (
        ("Data", lambda one: one.data),
        ("Data without packets", lambda one: one.other_data),
        ("Instructions", lambda one: one.instructions),
    )
    sizes = tuple(float(one.cache_bytes) for one in answer.misses)
    ticks = sizes[::_LABELLED_EVERY]
    kernel = answer.case.kernel
    return Figure(
        name=f"workload-{kernel.name}",
        title=f"{kernel.name}: misses per packet by size of the cache",
        caption="Fully associative caches of 64 B lines that replace the least recently used one.",
        x=Axis(title="Cache", scale="log", ticks=ticks, labels=tuple(format_binary_bytes(size) for size in ticks)),
        y=Axis(title="Misses per packet", low=0.0),
        marks=tuple(
            Line(name=name, x=sizes, y=tuple(of(one) for one in answer.misses), colour=colour)
            for (name, of), colour in zip(curves, palette(len(curves), ordered=False), strict=True)
        ),
    )
