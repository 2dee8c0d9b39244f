"""The types of contention laws: parameters with priors, and the growth of the speed with the number of cores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["Law", "Shape"]

_MIN_LOG, _MAX_LOG = -60.0, 40.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A parameter of a law, with its range in router files and its prior for calibration.

    The prior is normal with ``mean`` and ``sd``. ``scale`` says what it describes: ``log`` the logarithm of the value,
    ``linear`` the value itself, ``share`` ``ln(value/(1 - value))``, which keeps the value between 0 and 1. With
    ``in_frames_per_s`` calibration treats the parameter as a packet rate; ``growth`` and router files divide it by the
    rate of a single core. ``minimum`` and ``maximum`` are the range in router files.
    """

    name: str
    mean: float
    sd: float
    scale: Literal["log", "linear", "share"] = "log"
    in_frames_per_s: bool = False
    unit: str = "1"
    meaning: str = ""
    minimum: float = 0.0
    maximum: float = 1e6

    def value(self, raw: Floats) -> Floats:
        """Return the physical value of a value on the prior's scale."""
        import numpy as np  # heavy

        if self.scale == "linear":
            return raw
        exponential: Floats = np.exp(np.clip(raw, _MIN_LOG, _MAX_LOG))
        return exponential if self.scale == "log" else exponential / (1.0 + exponential)


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
