"""The half-normal plot (Daniel 1959): which effects stand out where no run is repeated, with Lenth's margins."""

from __future__ import annotations

from routecast.experiment.analysis.outcome import Analysis
from routecast.report.experiment.scale import Scale
from routecast.report.experiment.shares import NOISE, QUIET, STRONG
from routecast.report.figures import Axis, Figure, Line, Mark, Points
from routecast.report.ticks import few_ticks, linear_ends

__all__ = ["half_normal_figure"]


def half_normal_figure(analysis: Analysis, scale: Scale) -> Figure | None:
    """Return sizes of effects over what noise alone would spread them to; None without Lenth's margins.

    An effect's score is the half-normal quantile of (i - 1/2)/m, i its rank among m (Daniel 1959, *Technometrics* 1,
    311-341). Were all of them noise, they would lie on the line through 0 whose slope is 1 over the pseudo standard
    error.
    """
    margins = analysis.lenth
    if margins is None:
        return None
    from scipy.special import ndtri

    step, unit = scale.for_amounts(one.value for one in analysis.effects if one.value is not None)
    sized = sorted(
        ((abs(one.value / step), one) for one in analysis.effects if one.value is not None),
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
        marks.append(
            Line(name="margin (among all)", x=(sure, sure), y=(0.0, top), colour="#c8524a", dashed=True)
        )
    for name, is_out, colour in (("stands out", True, STRONG), ("does not", False, QUIET)):
        mine = [
            (size, score, one)
            for (size, one), score in zip(sized, scores, strict=True)
            if (size > margin) is is_out
        ]
        if mine:
            marks.append(
                Points(
                    name=name,
                    x=tuple(size for size, _, _ in mine),
                    y=tuple(score for _, score, _ in mine),
                    colour=colour,
                    labels=tuple(one.label if is_out else one.name for _, _, one in mine),
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
