"""What recomputes a calibration to the bit: its points, its priors, its seed, and the version that ran.

A result keeps the recipe of its calibration instead of thousands of draws. Two results are of one calibration where the
digests of their recipes are equal.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

from routecast.calibration._fit import fit
from routecast.calibration.fitted import FittedRouter
from routecast.calibration.priors import read_priors
from routecast.errors import QuantityProblem
from routecast.evaluate.plain import plain
from routecast.evaluate.points import Layout, Point
from routecast.load.frames import FrameMix
from routecast.quantity.schema import field, value
from routecast.version import VERSION

__all__ = ["Recipe", "conditions_of", "point_of"]

_NO_CONDITIONS = frozenset({"series", "calibrate", "reported_pps", "frame_mix", "layout", "latency"})
"""Fields of a point that do not change a calibration, or that are written in another form."""
_DEFAULTS = {
    entry.name: entry.default for entry in dataclasses.fields(Point) if entry.default is not dataclasses.MISSING
}
_LAYOUT_FIELDS = tuple(entry.name for entry in dataclasses.fields(Layout))


@value
class Recipe:
    """The arguments of a calibration, :func:`routecast.calibration.fit`, whose laws are the default ones."""

    points: tuple[Point, ...] = field("Calibrating points, in the order of the fit")
    noise_ratio: float | None = field("Repeatability of one measurement, if it is stated", default=None)
    left_out: str = field("Table of the accuracy board that the priors are learnt without", default="")
    seed: int = 0

    def fitted(self, series: str = "") -> FittedRouter:
        """Return the calibrated router.

        Raises FitProblem: the points do not determine it.
        """
        priors = read_priors(without=self.left_out)
        return fit(self.points, series=series, seed=self.seed, noise_ratio=self.noise_ratio, priors=priors)

    @property
    def digest(self) -> str:
        """Hash of the points, the priors, the noise, the seed and the version of routecast."""
        parts = (VERSION, repr(read_priors(without=self.left_out)), self._arguments())
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]

    def to_json(self, series: str = "") -> dict[str, Any]:
        """Return plain data, from which :meth:`of_json` makes the recipe again."""
        return {"series": series, "digest": self.digest, **self._arguments()}

    @classmethod
    def of_json(cls, document: Mapping[str, Any]) -> Self:
        """Return the recipe of plain data.

        Raises QuantityProblem: the data is no recipe.
        """
        try:
            return cls(
                points=tuple(map(point_of, document["points"])),
                noise_ratio=document["noise_ratio"],
                left_out=document["left_out"],
                seed=document["seed"],
            )
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise QuantityProblem("calibrations", f"is no calibration: {problem}") from problem

    def _arguments(self) -> dict[str, Any]:
        return {
            "points": [
                {**conditions_of(point), "throughput_pps": point.throughput_pps, **_standard_error(point)}
                for point in self.points
            ],
            "noise_ratio": self.noise_ratio,
            "left_out": self.left_out,
            "seed": self.seed,
        }


def conditions_of(point: Point) -> dict[str, Any]:
    """Return the conditions of a point as plain data, without those that have their default values."""
    names = (entry.name for entry in dataclasses.fields(Point) if entry.name not in _NO_CONDITIONS)
    conditions = {
        name: getattr(point, name)
        for name in names
        if name not in {"throughput_pps", "standard_error_ratio"}
        and (name not in _DEFAULTS or getattr(point, name) != _DEFAULTS[name])
    }
    if point.frame_mix is not None:
        conditions["frame_mix"] = plain(point.frame_mix)
    if point.layout != Layout():
        conditions["layout"] = {
            name: getattr(point.layout, name)
            for name in _LAYOUT_FIELDS
            if getattr(point.layout, name) != getattr(Layout(), name)
        }
    return conditions


def point_of(conditions: Mapping[str, Any]) -> Point:
    """Return the point of plain data; without a rate it is one to predict.

    Raises KeyError, TypeError, ValueError or RoutecastError: the data is no point.
    """
    names = {entry.name for entry in dataclasses.fields(Point)} - _NO_CONDITIONS
    known = {name: entry for name, entry in conditions.items() if name in names and entry is not None}
    point = Point(**{"throughput_pps": math.nan, **known})
    if mix := conditions.get("frame_mix"):
        mix = FrameMix(**{**mix, "sequence_bytes": tuple(mix["sequence_bytes"])})
        point = replace(point, frame_mix=mix, frame_bytes=mix.mean_bytes)
    if layout := conditions.get("layout"):
        point = replace(point, layout=Layout(**{name: layout[name] for name in _LAYOUT_FIELDS if name in layout}))
    return point


def _standard_error(point: Point) -> dict[str, float]:
    return {} if point.standard_error_ratio is None else {"standard_error_ratio": point.standard_error_ratio}
