"""The popularity of flows: uniform, or following Zipf's law, where a few flows carry most packets."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Literal

from routecast.errors import ModelProblem, Problem, QuantityProblem
from routecast.quantity.schema import field, value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

__all__ = ["Popularity"]

_POPULARITY_TEXT = re.compile(
    r"(?:(?P<flows>\d[\d_,]*(?:\.\d+)?)\s*(?P<prefix>[kMG]?)(?:\s*flows?)?)?"
    r"\s*,?\s*(?:(?P<kind>uniform|zipf)(?:\s+(?P<exponent>\d*\.?\d+))?)?",
    re.IGNORECASE | re.ASCII,
)
_PREFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
_MAX_FLOWS = 1e12
_MAX_EXPONENT = 10.0
_SINGLE_RANKS = 256
_BINS_PER_DECADE = 40


@value
class Popularity:
    """The distribution of packets over the flows.

    Raises
    ------
    routecast.errors.ModelProblem
        A value is out of range.
    """

    # ``uniform``: all flows have the same probability. ``zipf``: that of flow i (1, 2, …) is proportional to
    # ``i**-exponent``.
    kind: Literal["uniform", "zipf"] = "uniform"
    flows: int | None = field("Number of flows; None: as many as the looked-up table has entries", default=None)
    exponent: float = field(
        "Exponent of Zipf's law, 0 to 10; 0 is uniform. Packets per destination of an access network have about 1.",
        default=1.0,
    )

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        problems = []
        if self.kind not in ("uniform", "zipf"):
            problems.append(Problem("kind", f'got "{self.kind}": allowed are "uniform" and "zipf"'))
        if self.flows is not None and not (isinstance(self.flows, int) and 1 <= self.flows <= _MAX_FLOWS):
            problems.append(Problem("flows", f"got {self.flows!r}: a whole number from 1 to {_MAX_FLOWS:.0e}"))
        if not (math.isfinite(self.exponent) and 0.0 <= self.exponent <= _MAX_EXPONENT):
            message = f"got {self.exponent!r}: Zipf's exponent is from 0 to {_MAX_EXPONENT:g}"
            problems.append(Problem("exponent", message))
        if problems:
            raise ModelProblem("popularity", problems)

    @classmethod
    def parse(cls, text: str) -> Popularity:
        """Read a number of flows, a law, or both.

        Raises
        ------
        routecast.errors.QuantityProblem
            The text is neither a number of flows nor a law.

        Examples
        --------
        >>> Popularity.parse("10 flows")
        Popularity(kind='uniform', flows=10, exponent=1.0)
        >>> Popularity.parse("100k zipf 0.9")
        Popularity(kind='zipf', flows=100000, exponent=0.9)
        """
        shown = text[:60] if isinstance(text, str) else repr(text)[:60]
        message = f'got "{shown}": write a number of flows, a law, or both: "10 flows", "uniform", "100k zipf 0.9"'
        match = _POPULARITY_TEXT.fullmatch(text.strip()) if isinstance(text, str) and len(text) <= 200 else None
        if match is None or not (match["flows"] or match["kind"]):
            raise QuantityProblem(str(text), message)
        kind = (match["kind"] or "uniform").lower()
        if match["exponent"] and kind == "uniform":
            raise QuantityProblem(text, f'got "{shown}": an exponent belongs to zipf')
        flows: int | None = None
        if match["flows"]:
            number = float(match["flows"].replace("_", "").replace(",", ""))
            number *= _PREFIXES[match["prefix"].lower()]
            if not 1.0 <= number <= _MAX_FLOWS or abs(number - round(number)) > 1e-6:
                message = f'got "{shown}": give a whole number of flows from 1 to {_MAX_FLOWS:.0e}'
                raise QuantityProblem(text, message)
            flows = round(number)
        try:
            law: Literal["uniform", "zipf"] = "zipf" if kind == "zipf" else "uniform"
            return cls(kind=law, flows=flows, exponent=float(match["exponent"] or 1.0))
        except ModelProblem as problem:
            raise QuantityProblem(text, f'got "{shown}": {problem.problems[0]}') from None

    def bins(self, keys: int) -> tuple[Numbers, Numbers]:
        """Return bins of keys with nearly equal probability: the number of keys, and the probability of each key.

        ``counts @ probabilities`` is 1. For Zipf's law, each of the first ranks has its own bin. The other bins are
        narrow on a logarithmic scale, and the integral of ``x**-exponent`` (midpoint rule) gives their probabilities.
        Sixteen million keys therefore take no more time than a thousand.
        """
        import numpy as np

        if self.kind == "uniform" or self.exponent == 0.0 or keys == 1:
            return np.array([float(keys)]), np.array([1.0 / keys])
        single = min(keys, _SINGLE_RANKS)
        ranks = np.arange(1.0, single + 1.0)
        counts, weights = np.ones(single), ranks**-self.exponent
        if keys > single:
            bins = max(1, math.ceil(_BINS_PER_DECADE * math.log10(keys / single)))
            edges = np.unique(np.rint(np.geomspace(single + 1.0, keys + 1.0, bins + 1)))
            counts = np.concatenate([counts, np.diff(edges)])
            weights = np.concatenate([weights, self._integral(edges[:-1] - 0.5, edges[1:] - 0.5) / np.diff(edges)])
        return counts, weights / (counts @ weights)

    def _integral(self, low: Numbers, high: Numbers) -> Numbers:
        """Integrate ``x**-exponent``, without the cancellation in the antiderivative near an exponent of 1."""
        import numpy as np

        power = 1.0 - self.exponent
        width = np.log(high / low)
        return low**power * width * (np.expm1(power * width) / (power * width) if power else 1.0)

    def __str__(self) -> str:
        law = "uniform" if self.kind == "uniform" else f"zipf {self.exponent:.12g}"
        return law if self.flows is None else f"{self.flows} flow{'s' if self.flows > 1 else ''}, {law}"
