"""The figure of ``routecast power fit``: samples beside the model."""

from __future__ import annotations

import math
from collections.abc import Sequence

from routecast.power.fits import DeviceFit, Fitted
from routecast.power.load_fit import ErrorSummary
from routecast.power.model import OperatingPoint
from routecast.report.figures import Axis, Figure, Line, Points, palette

__all__ = ["fit_figure"]

GREY = "#7a7f87"
_DRAWN_DEVICES = 7
_STEPS = 100


def fit_figure(model: str, fits: Sequence[DeviceFit]) -> Figure:
    """Return samples and model: watts over load, or for ports and routers modelled over measured watts.

    Filled points are those that the model rests on, open ones those that it was not shown.
    """
    shown = list(fits[:_DRAWN_DEVICES])
    is_over_load = model not in {"port", "router"}
    marks = _over_load(shown) if is_over_load else _over_measured(shown)
    what = "Lines are the model, points the samples." if is_over_load else "Each point is one sample."
    more = f" The first {len(shown)} of {len(fits)} devices." if len(fits) > len(shown) else ""
    samples = [sample for one in shown for sample in one.samples]
    low, high = _span(samples)
    return Figure(
        name="power",
        title=_title(model, fits),
        caption=f"{what}{more}",
        x=Axis(title="load (%)", low=0.0, high=100.0)
        if is_over_load
        else Axis(title="measured power (W)", low=low, high=high),
        y=Axis(title="power (W)") if is_over_load else Axis(title="modelled power (W)", low=low, high=high),
        marks=(*marks, *_key(samples)),
    )


def _title(model: str, fits: Sequence[DeviceFit]) -> str:
    devices = fits[0].device if len(fits) == 1 else f"{len(fits)} devices"
    errors = ErrorSummary.of([error for one in fits for error in one.error_ratio])
    told = f", median error {100.0 * errors.median_ratio:.2f} % on samples left out" if errors.count else ""
    return f"{devices}: model {model}{told}"


def _over_load(fits: Sequence[DeviceFit]) -> list[Line | Points]:
    loads = tuple(step / _STEPS for step in range(_STEPS + 1))
    marks: list[Line | Points] = []
    for one, colour in zip(fits, palette(len(fits), ordered=False), strict=True):
        watts = tuple(one.model.power_w(OperatingPoint(load_ratio=load)) for load in loads)
        marks.append(Line(name=one.device, x=tuple(100.0 * load for load in loads), y=watts, colour=colour))
        for is_fitted in (True, False):
            samples = [sample for sample in one.samples if sample.is_fitted is is_fitted]
            marks.append(
                Points(
                    name=f"{one.device}, {_word(is_fitted)}",
                    x=tuple(100.0 * sample.place for sample in samples),
                    y=tuple(sample.measured_w for sample in samples),
                    colour=colour,
                    filled=is_fitted,
                    legend=False,
                )
            )
    return marks


def _over_measured(fits: Sequence[DeviceFit]) -> list[Line | Points]:
    span = _span([sample for one in fits for sample in one.samples])
    marks: list[Line | Points] = [Line(name="equal", x=span, y=span, colour=GREY, dashed=True)]
    for one, colour in zip(fits, palette(len(fits), ordered=False), strict=True):
        # The colour stands in the legend once, whichever samples the device has.
        marks.append(Points(name=one.device, x=(math.nan,), y=(math.nan,), colour=colour, symbol="square"))
        for is_fitted in (True, False):
            samples = [sample for sample in one.samples if sample.is_fitted is is_fitted]
            marks.append(
                Points(
                    name=f"{one.device}, {_word(is_fitted)}",
                    x=tuple(sample.measured_w for sample in samples),
                    y=tuple(sample.modelled_w for sample in samples),
                    colour=colour,
                    filled=is_fitted,
                    size_px=5,
                    legend=False,
                )
            )
    return marks


def _span(samples: Sequence[Fitted]) -> tuple[float, float]:
    """Return round ends for two axes that show the same watts."""
    watts = [watts for each in samples for watts in (each.measured_w, each.modelled_w)]
    step = 10.0 ** math.floor(math.log10(max(max(watts) - min(watts), 1e-3)))
    return step * math.floor(min(watts) / step), step * math.ceil(max(watts) / step + 1e-9)


def _key(samples: Sequence[Fitted]) -> list[Points]:
    """Say what filled and open points are, where there are both."""
    if len({sample.is_fitted for sample in samples}) < 2:
        return []
    return [
        Points(name=f"sample {_word(kind)}", x=(math.nan,), y=(math.nan,), colour=GREY, filled=kind)
        for kind in (True, False)
    ]


def _word(is_fitted: bool) -> str:
    return "fitted" if is_fitted else "left out"
