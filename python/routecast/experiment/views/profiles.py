"""A response surface along each of its quantities, the others held: slopes and bends at a glance."""

from __future__ import annotations

from routecast.experiment.analysis.outcome import Analysis
from routecast.experiment.model import Experiment
from routecast.experiment.views.levels import axis_of
from routecast.experiment.views.scale import Scale
from routecast.show.figures import Axis, Figure, Line
from routecast.show.panels import columns_for, panel_px
from routecast.show.ticks import few_ticks, linear_ends

__all__ = ["held_at", "profile_panels"]

_STEPS = 41
_COLOUR = "#3f6fb5"


def held_at(analysis: Analysis) -> list[float]:
    """Return where quantities are held while another moves: at the flat point if it was tried, else in the middle."""
    surface = analysis.surface
    if surface is None:
        return []
    flat = surface.stationary
    return list(flat.coded) if flat is not None and flat.is_inside else [0.0] * len(surface.letters)


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
