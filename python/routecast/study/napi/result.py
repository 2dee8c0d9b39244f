"""What a study of activation found, as values."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from routecast.evaluate.plain import plain
from routecast.study.napi.clock import ClockResult
from routecast.study.napi.document import NapiStudy
from routecast.study.napi.form import FormCurve, FormResult
from routecast.study.napi.idle import IdleResult
from routecast.study.result import Criterion, Made

__all__ = ["NapiResult", "judged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NapiResult:
    """All that a study of activation found."""

    study: NapiStudy
    out: Path
    idle: tuple[IdleResult, ...]
    form: FormResult | None
    clock: ClockResult | None
    criteria: tuple[Criterion, ...]
    made: Made

    def to_json(self) -> dict[str, Any]:
        """Return plain data for ``summary.json`` and ``--json``; NaN becomes null."""
        document = {
            "study": self.study.name,
            "title": self.study.title,
            "idle": [_idle(each) for each in self.idle],
            "form": _form(self.form) if self.form else None,
            "clock": _parts(self.clock) if self.clock else None,
            "criteria": [one.to_json() for one in self.criteria],
            "made": self.made,
        }
        return _dict(document)


def judged(study: NapiStudy, idle: tuple[IdleResult, ...], form: FormResult | None) -> tuple[Criterion, ...]:
    """Return the study's bounds with what was reached."""
    bounds, found = study.criteria, []
    for each in idle:
        reached = (
            ("simulated idle share", bounds.idle_rmse, each.rmse),
            ("idle share of points left out", bounds.left_out_rmse, each.left_out_rmse),
        )
        found += [
            Criterion(name=f"{each.curve.name}: root mean square error, {name}", bound=bound, reached=value)
            for name, bound, value in reached
            if bound is not None
        ]
        if bounds.maximum_error is not None and not math.isnan(each.maximum_error_ratio):
            found.append(
                Criterion(
                    name=f"{each.curve.name}: relative error of the maximum rate",
                    bound=bounds.maximum_error,
                    reached=abs(each.maximum_error_ratio),
                )
            )
    if form and bounds.saturated_idle is not None:
        found.append(
            Criterion(
                name="idle share just above the rate of saturation",
                bound=bounds.saturated_idle,
                reached=form.best.at_saturation.idle_ratio,
            )
        )
    return tuple(found)


def _idle(each: IdleResult) -> dict[str, Any]:
    return {
        "name": each.curve.name,
        "title": each.curve.title,
        **_parts(each),
        "rmse": each.rmse,
        "closed_form_rmse": each.closed_form_rmse,
        "left_out_rmse": each.left_out_rmse,
        "from_half_rmse": each.from_half_rmse,
        "maximum_pps": each.fitted.costs.maximum_pps,
        "maximum_error_ratio": _known(each.maximum_error_ratio),
    }


def _form(form: FormResult) -> dict[str, Any]:
    def summary(curve: FormCurve) -> dict[str, Any]:
        return {
            **_dict(curve),
            "maximum_pps": curve.maximum_pps,
            "never_idle_pps": curve.never_idle_pps,
            "form_rmse": curve.form_rmse(form.part.maximum),
        }

    return {
        **_parts(form),
        "curves": [summary(curve) for curve in form.curves],
        "range": [summary(curve) for curve in form.range],
        "polynomial_rmse": form.of_polynomial.rmse_ratio,
    }


def _parts(value: IdleResult | FormResult | ClockResult) -> dict[str, Any]:
    """Return the fields of a result as plain data, but for what the study file says already."""
    names = (each.name for each in fields(value) if each.name not in {"curve", "part"})
    return {name: plain(getattr(value, name)) for name in names}


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _dict(value: object) -> dict[str, Any]:
    result = plain(value)
    assert isinstance(result, dict)
    return result
