"""Contention laws: parameters with their priors, and the growth of the speed with working cores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["Law", "Shape"]

_LEAST_LOG, _MOST_LOG = -60.0, 40.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One parameter of a law: its range in files, and for calibration the prior of ``ln value``.

    ``mean`` and ``sd`` are the prior's. ``scale`` names another quantity: ``linear`` of the value itself, ``share`` of
    ``ln(value/(1 - value))``, so that the value stays between 0 and 1. A shape ``in_frames_per_s`` is a packet rate to
    calibration; the law's ``growth``, and a router file, have it divided by the rate of a single core.

    ``least`` and ``most`` are the range in a router file.
    """

    name: str
    mean: float
    sd: float
    scale: Literal["log", "linear", "share"] = "log"
    in_frames_per_s: bool = False
    unit: str = "1"
    meaning: str = ""
    least: float = 0.0
    most: float = 1e6

    def value(self, raw: Floats) -> Floats:
        """Return the physical value of a value on the prior's scale."""
        import numpy as np  # heavy

        if self.scale == "linear":
            return raw
        grown: Floats = np.exp(np.clip(raw, _LEAST_LOG, _MOST_LOG))
        return grown if self.scale == "log" else grown / (1.0 + grown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """A contention law; ``growth(k, values)`` is g(k), vectorised over parameter sets in the leading axis.

    A law that ``collapses`` may fall to a fraction within a few cores.
    """

    name: str
    formula: str
    shapes: tuple[Shape, ...]
    growth: Callable[[Floats, Floats], Floats]
    collapses: bool = False
