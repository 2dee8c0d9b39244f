"""The load of each engine, stage by stage, beside other mappings'."""

from __future__ import annotations

import math

from routecast.plan.mapping.answer import MappingAnswer
from routecast.plan.mapping.loads import engine_loads
from routecast.quantity import format_pps
from routecast.show.figures import Axis, Figure, Mark, Points, Stack, palette

__all__ = ["engines_figure"]

_SYMBOLS = ("circle", "square", "diamond", "cross")


def engines_figure(answer: MappingAnswer) -> Figure:
    """Return how busy each engine is at the bound of the best mapping, with others at the same rate."""
    mapping, pps = answer.best.mapping, answer.best.predicted_pps
    count = mapping.problem.processor.engines.count
    engines = tuple(float(number) for number in range(count))
    loads = engine_loads(mapping, pps)
    stages = list(dict.fromkeys(load.stage for load in loads))
    colours = palette(max(len(stages), 2), ordered=False)
    marks: list[Mark] = []
    for stage, colour in zip(stages, colours, strict=False):
        busy = {load.engine: 100.0 * load.busy_ratio for load in loads if load.stage == stage}
        marks.append(Stack(name=stage, x=engines, y=tuple(busy.get(int(one), 0.0) for one in engines), colour=colour))
    for number, other in enumerate(one for one in answer.others if not one.trouble):
        whole = dict.fromkeys(range(count), 0.0)
        for load in engine_loads(other.mapping, pps):
            whole[load.engine] += 100.0 * load.busy_ratio
        marks.append(
            Points(
                name=other.mapping.name,
                x=engines,
                y=tuple(whole[int(one)] or math.nan for one in engines),
                filled=False,
                symbol=_SYMBOLS[number % len(_SYMBOLS)],  # type: ignore[arg-type]  # one of the symbols, by number
            )
        )
    return Figure(
        name="engines",
        title=f"Load by engine: {mapping.problem.name}",
        caption=f"At {format_pps(pps)}. Above 100 % a mapping cannot carry that rate.",
        x=Axis(title="engine", ticks=engines, labels=tuple(str(int(one)) for one in engines)),
        y=Axis(title="busy, %", low=0.0),
        marks=tuple(marks),
    )
