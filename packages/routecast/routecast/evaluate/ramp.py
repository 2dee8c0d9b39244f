"""A load whose rate rises during one trial, and the rate at which the router starts to lose frames.

A ramp finds in one trial a rate for which a search needs ten. It holds each rate for a short time only, during which a
queue may take in the excess, so a separate trial at the resulting rate decides.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

from routecast.errors import QuantityProblem
from routecast.evaluate.trial import Trial
from routecast.load.offered import OfferedLoad, RateStep
from routecast.quantity import parse_duration_s, parse_rate_pps
from routecast.quantity.schema import field, value

__all__ = ["Ramp", "RampResult", "RampStep"]

_PATTERN = re.compile(r"(?P<low>.+?)\.\.(?P<high>.+?)\s+over\s+(?P<time>.+)")
_STEPS = 100
_RUNGS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Ramp:
    """A rate in frames/s that changes from one value to another in equal steps over a time in seconds."""

    from_pps: float
    to_pps: float
    duration_s: float

    @classmethod
    def parse(cls, text: str) -> Ramp:
        """Read ``"1 Mpps..5 Mpps over 60 s"``.

        Raises QuantityProblem: the text has another form, a rate or the time cannot be read, or the second rate is not
        greater than the first.
        """
        match = _PATTERN.fullmatch(text.strip())
        if match is None:
            raise QuantityProblem(text, f'cannot read the ramp "{text}": write "1 Mpps..5 Mpps over 60 s"')
        low, high = parse_rate_pps(match["low"]), parse_rate_pps(match["high"])
        if not high > low:
            raise QuantityProblem(text, f'the ramp "{text}" does not rise: the second rate must be the greater one')
        return cls(from_pps=low, to_pps=high, duration_s=parse_duration_s(match["time"]))

    def of(self, load: OfferedLoad) -> OfferedLoad:
        """Return the load with its rate replaced by this ramp."""
        steps = tuple(
            RateStep(at_s=number * self.duration_s / _STEPS, rate_pps=self.from_pps + number * self._step_pps)
            for number in range(1, _STEPS)
        )
        return replace(load, rate_pps=self.from_pps, steps=steps)

    def rate_at(self, time_s: float) -> float:
        """Return the intended rate at an instant, in frames/s."""
        number = min(max(math.floor(time_s / self.duration_s * _STEPS), 0), _STEPS - 1)
        return self.from_pps + number * self._step_pps

    @property
    def _step_pps(self) -> float:
        return (self.to_pps - self.from_pps) / (_STEPS - 1)


@value
class RampStep:
    """A part of a ramp: mean rates from ``from_s`` until ``until_s``."""

    from_s: float
    until_s: float
    intended_pps: float
    offered_pps: float
    forwarded_pps: float
    dropped_pps: float

    @property
    def loss_ratio(self) -> float:
        """Dropped over offered frames."""
        return self.dropped_pps / self.offered_pps if self.offered_pps > 0.0 else math.nan


@value
class RampResult:
    """The result of a trial with a ramp."""

    rungs: tuple[RampStep, ...]
    lossless_pps: float = field("Intended rate of the last moment before the first loss; NaN with loss from the start")
    first_loss_pps: float = field("Intended rate of the first moment with loss; NaN without loss")
    most_forwarded_pps: float = field("Greatest mean forwarding rate of a part")

    @classmethod
    def of(cls, trial: Trial, ramp: Ramp) -> RampResult:
        """Return the result of a trial that offered this ramp and kept its rates over time."""
        moments = trial.over_time
        part_s = trial.duration_s / len(moments) if moments else math.nan
        first_lossy = next((at for at, moment in enumerate(moments) if moment.dropped_pps > 0.0), None)
        lossless_pps = math.nan
        if moments and first_lossy != 0:
            last = len(moments) if first_lossy is None else first_lossy
            lossless_pps = ramp.rate_at(moments[last - 1].time_s)
        size = math.ceil(len(moments) / _RUNGS)
        rungs = []
        for first in range(0, len(moments), max(size, 1)):
            part = moments[first : first + size]
            mean = {
                name: math.fsum(getattr(moment, name) for moment in part) / len(part)
                for name in ("offered_pps", "forwarded_pps", "dropped_pps")
            }
            until_s = part[-1].time_s + part_s
            middle_s = 0.5 * (part[0].time_s + until_s)
            rungs.append(RampStep(from_s=part[0].time_s, until_s=until_s, intended_pps=ramp.rate_at(middle_s), **mean))
        return cls(
            rungs=tuple(rungs),
            lossless_pps=lossless_pps,
            first_loss_pps=math.nan if first_lossy is None else ramp.rate_at(moments[first_lossy].time_s),
            most_forwarded_pps=max((rung.forwarded_pps for rung in rungs), default=math.nan),
        )
