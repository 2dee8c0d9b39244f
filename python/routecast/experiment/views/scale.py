"""How a response is written: its unit with one prefix for all its values, and back from a transform."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

from routecast.experiment.model import Results
from routecast.quantity.format import prefixed
from routecast.quantity.schema import field, value

__all__ = ["Scale", "scale_of", "unit_of"]

_LARGEST = 700.0
"""Beyond this a logarithm stands for no number that a computer has: a surface may be asked far from all runs."""
_UNITS = {"bps": "bit/s", "pps": "pps", "s": "s", "w": "W", "j": "J", "hz": "Hz", "bytes": "B"}


def unit_of(path: str) -> str:
    """Return the unit of a path in a trial, by the end of its name.

    Examples
    --------
    >>> unit_of("l2_bps"), unit_of("latency.p99_s"), unit_of("resource[cpu].utilisation_ratio"), unit_of("attempts")
    ('bit/s', 's', '%', '')
    """
    end = path.rsplit(".", 1)[-1].split("[", 1)[0].rsplit("_", 1)[-1]
    return "%" if end == "ratio" else _UNITS.get(end, "")


@value
class Scale:
    """Turns analysed numbers into what a reader sees."""

    name: str = field("Of the response")
    unit: str = field("With its prefix; may be empty")
    step: float = field("Base units in one of it")
    base_unit: str = field("Without its prefix; empty where it takes none", default="")
    transform: Literal["none", "log", "reciprocal"] = field("What the analysis has done to the values", default="none")

    @property
    def axis(self) -> str:
        """Title of an axis of the response itself."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name

    @property
    def analysed_axis(self) -> str:
        """Title of an axis of what was analysed."""
        if self.transform == "log":
            return f"ln {self.name}"
        return f"1 / {self.name}" if self.transform == "reciprocal" else self.axis

    def shown(self, base: float) -> float:
        """Return a value of the response in the shown unit."""
        return base / self.step

    def back(self, analysed: float) -> float:
        """Return the value of the response, in the shown unit, that an analysed number stands for."""
        if self.transform == "log":
            return math.exp(min(analysed, _LARGEST)) / self.step
        if self.transform == "reciprocal":
            return 1.0 / analysed / self.step if analysed else float("nan")
        return analysed / self.step

    def ends(self, low: float | None, high: float | None) -> tuple[float, float] | None:
        """Return an interval of analysed numbers as one of the response, the lower end first."""
        if low is None or high is None:
            return None
        first, last = sorted((self.back(low), self.back(high)))
        return first, last

    def analysed(self, analysed: float) -> float:
        """Return an analysed number, or a difference of two, in the unit of :attr:`analysed_axis`."""
        return analysed / self.step if self.transform == "none" else analysed

    def text(self, analysed: float) -> str:
        """Write the value of the response that an analysed number stands for."""
        return self.written(self.back(analysed))

    def written(self, shown: float) -> str:
        """Write a value of the response that is given in the shown unit."""
        return f"{shown:.4g} {self.unit}".rstrip().replace("-", "−")

    def amount(self, analysed: float, sign: str = "") -> str:
        """Write a difference of analysed numbers, with a prefix of its own: 464 Mbit/s beside a mean in Gbit/s."""
        if self.transform != "none":
            return f"{analysed:{sign}.3g} on {self.analysed_axis}".replace("-", "−")
        step, unit = self.for_amounts((analysed,))
        if unit == "%":
            unit = "percentage points"  # 20 % above 50 % would be 60 %
        return f"{analysed / step:{sign}.3g} {unit}".rstrip().replace("-", "−")

    def for_amounts(self, analysed: Iterable[float]) -> tuple[float, str]:
        """Return what to divide differences of analysed numbers by, and their unit."""
        if self.transform != "none":
            return 1.0, ""
        return prefixed(analysed, self.base_unit) if self.base_unit else (self.step, self.unit)


def scale_of(results: Results, response: str) -> Scale:
    """Return how a response of an experiment is written."""
    one = next(one for one in results.experiment.responses if one.name == response)
    unit = unit_of(one.of)
    if unit == "%":
        return Scale(name=response, unit="%", step=0.01, transform=one.transform)
    if unit == "B":
        return Scale(name=response, unit="B", step=1.0, transform=one.transform)
    step, shown = prefixed(results.values(response), unit)
    return Scale(name=response, unit=shown, step=step, base_unit=unit, transform=one.transform)
