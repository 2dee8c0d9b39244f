"""Targets of an operating point: upper bounds on the loss ratio and on the latency's mean and percentiles."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Final

from routecast.errors import QuantityProblem
from routecast.evaluate.trial import Trial
from routecast.quantity import format_duration, format_ratio, parse_duration_s
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import field, value

__all__ = ["NO_LOSS", "QUANTITIES", "Target", "parse_targets"]

QUANTITIES: Final = ("loss", "mean", "p50", "p90", "p99", "p999", "max")
"""Quantities that targets bound: the loss ratio, and the mean and percentiles of the latency (S9)."""

_TARGET = re.compile(r"\s*(?P<name>[A-Za-z][\w.]*)\s*(?P<sign><=|<|=|==|>=|>)\s*(?P<value>.*?)\s*")
_RATIO = re.compile(r"(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)\s*(?P<percent>%?)")


@value
class Target:
    """An upper bound on a quantity of a trial.

    Examples
    --------
    >>> (target,) = parse_targets(["p99 < 100 us"])
    >>> target.quantity, target.limit, str(target)
    ('p99', 0.0001, 'p99 < 100 us')
    """

    quantity: str = field("One of QUANTITIES")
    limit: float = field("Seconds for latencies, a ratio 0..1 for loss")
    or_equal: bool = field("Whether a value equal to the limit meets the target (``<=``, ``=``)", default=False)

    def value(self, trial: Trial) -> float:
        """Return the quantity of a trial; NaN if its evaluator does not know it or no frame arrived.

        Loss is the greatest that is possible as far as is known, :attr:`Trial.known_loss_ratio`.
        """
        if self.quantity == "loss":
            return trial.known_loss_ratio
        if trial.latency is None:
            return math.nan
        seconds: float = getattr(trial.latency, f"{self.quantity}_s")
        return seconds

    def is_met_by(self, value: float) -> bool:
        """Whether a value meets the target; NaN never does."""
        return value <= self.limit if self.or_equal else value < self.limit

    def met(self, trial: Trial) -> bool:
        """Whether a trial meets the target."""
        return self.is_met_by(self.value(trial))

    def excess(self, value: float) -> float:
        """Return the excess of a value over the limit, relative to the limit: 0 within it, infinite for NaN.

        Where no loss is allowed, the excess is the loss ratio.
        """
        if self.is_met_by(value):
            return 0.0
        if math.isnan(value):
            return math.inf
        return (value - self.limit) / self.limit if self.limit > 0.0 else value

    def format_value(self, value: float) -> str:
        """Return a value of the quantity with its unit."""
        if math.isnan(value):
            return "unknown"
        return format_ratio(value) if self.quantity == "loss" else format_duration(value)

    def __str__(self) -> str:
        sign = "=" if self.or_equal and self.limit == 0.0 else "<=" if self.or_equal else "<"
        return f"{self.quantity} {sign} {'0' if self.limit == 0.0 else self.format_value(self.limit)}"


NO_LOSS: Final = Target(quantity="loss", limit=0.0, or_equal=True)
"""Default target on loss: a router that drops enough frames meets any target on latency."""


def parse_targets(texts: Iterable[str]) -> tuple[Target, ...]:
    """Parse targets such as ``"p99 < 100 us"``, ``"mean < 20 us"``, ``"loss < 0.01 %"``, ``"loss = 0"``.

    A text may hold several, separated by commas or ``and``.

    Raises
    ------
    routecast.errors.QuantityProblem
        A text is no target, or one quantity is bounded twice.

    Examples
    --------
    >>> [str(target) for target in parse_targets(["p99 < 0.1 ms and loss <= 0.01 %", "mean < 20 us"])]
    ['p99 < 100 us', 'loss <= 0.01 %', 'mean < 20 us']
    """
    targets: list[Target] = []
    for text in texts:
        for part in re.split(r",|\band\b", text):
            target = _parse_target(part)
            if any(bound.quantity == target.quantity for bound in targets):
                raise QuantityProblem(text, f'"{text}": {target.quantity} has two targets: keep the tighter one')
            targets.append(target)
    return tuple(targets)


def _parse_target(text: str) -> Target:
    match = _TARGET.fullmatch(text)
    if not match:
        raise QuantityProblem(
            text, f'"{text.strip()}" is no target: write a quantity, < and a value, such as "p99 < 100 us"'
        )
    name, sign, value = match["name"].lower(), match["sign"], match["value"]
    name = name.removeprefix("latency.").replace("p99.9", "p999")
    if name not in QUANTITIES:
        hint = did_you_mean(name, QUANTITIES)
        raise QuantityProblem(text, f'"{text.strip()}": "{match["name"]}" is no quantity of a target; {hint}')
    if sign in {">", ">="}:
        raise QuantityProblem(text, f'"{text.strip()}": targets are upper bounds; write < or <=')
    limit = _parse_ratio(text, value) if name == "loss" else parse_duration_s(value)
    if sign in {"=", "=="} and limit != 0.0:
        raise QuantityProblem(text, f'"{text.strip()}": targets are upper bounds; write < or <= (= only for 0)')
    if sign == "<" and limit == 0.0:
        raise QuantityProblem(text, f'"{text.strip()}": nothing is below 0; write "{name} = 0"')
    return Target(quantity=name, limit=limit, or_equal=sign != "<")


def _parse_ratio(text: str, value: str) -> float:
    match = _RATIO.fullmatch(value)
    ratio = float(match["number"]) / (100.0 if match["percent"] else 1.0) if match else math.nan
    if not 0.0 <= ratio <= 1.0:
        raise QuantityProblem(text, f'"{text.strip()}": a loss must be a share such as "0.01 %", or 0')
    return ratio
