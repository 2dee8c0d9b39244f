"""Conditions on looks that somebody wants to hear of: ``"headroom < 20 %"``."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, Self

from routecast.errors import QuantityProblem
from routecast.lab.watch._day import LossAtPeak
from routecast.lab.watch._saturation import Saturation
from routecast.lab.watch._watcher import Watched
from routecast.quantity import format_pps, format_ratio, parse_rate_pps, parse_ratio, parse_waiting_frames
from routecast.quantity.did_you_mean import did_you_mean

__all__ = ["Alarm", "Verdict"]

_FORM: Final = re.compile(r"(?P<name>[^<>=]*?)\s*(?P<sign>[<>]=?|=+)\s*(?P<bound>[^<>=]*)")
_PROBABILITY: Final = "P(loss at daily peak)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a look says of an alarm, and why; what is not known neither fires nor is fine."""

    state: Literal["fires", "fine", "not known"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """A condition: ``name`` is one of :data:`ALLOWED`, ``bound`` in base units."""

    name: str
    bound: float

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a condition.

        Raises QuantityProblem: the text is none of those allowed.

        Examples
        --------
        >>> Alarm.parse("headroom < 20 %")
        Alarm(name='headroom', bound=0.2)
        """
        match = _FORM.fullmatch(text.strip())
        if match is None:
            raise QuantityProblem(text, f'"{text[:60]}" is no condition: write one such as {_EXAMPLES}')
        wanted = " ".join(match["name"].split()).lower()
        name = next((name for name in ALLOWED if name.lower() == wanted), None)
        if name is None:
            hint = did_you_mean(match["name"], ALLOWED)
            raise QuantityProblem(
                text, f'"{match["name"][:60]}" is nothing that an alarm watches: {hint}; write one such as {_EXAMPLES}'
            )
        allowed = ALLOWED[name]
        if match["sign"] != allowed.sign:
            raise QuantityProblem(
                text, f'"{text[:60]}": an alarm on {name} is written with {allowed.sign}, such as "{allowed.example}"'
            )
        try:
            return cls(name=name, bound=allowed.parse(match["bound"].strip()))
        except QuantityProblem as problem:
            raise QuantityProblem(text, f'"{text[:60]}": {problem}; such as "{allowed.example}"') from None

    def __str__(self) -> str:
        allowed = ALLOWED[self.name]
        return f"{self.name} {allowed.sign} {allowed.write(self.bound)}"

    def judge(self, watched: Watched, remembered: Saturation, loss_at_peak: LossAtPeak) -> Verdict:
        """Say what a look says; ``remembered``: the load at saturation of earlier looks, for one that showed none.

        Saturation and headroom fire only if the whole 95 % interval is beyond the bound, and are fine only if the whole
        interval is not.
        """
        if self.name == _PROBABILITY:
            if loss_at_peak.reason:
                return Verdict(state="not known", text=loss_at_peak.reason)
            state: Literal["fires", "fine"] = "fires" if loss_at_peak.ratio > self.bound else "fine"
            return Verdict(state=state, text=f"{self.name} is {format_ratio(loss_at_peak.ratio)}")
        if self.name == "loss":
            lost = sum(watched.lost.values())
            frames = f"{lost} frame{'' if lost == 1 else 's'}"
            return Verdict(state="fires" if lost > self.bound else "fine", text=f"{frames} lost during the look")
        saturation = remembered if watched.saturation.reason else watched.saturation
        if saturation.reason:
            return Verdict(state="not known", text=watched.saturation.reason or saturation.reason)
        if self.name == "saturation":
            return self._of_interval(saturation.low_pps, saturation.high_pps, format_pps)
        if not watched.rate_pps > 0.0:
            return Verdict(state="not known", text="no packet came in, so there is no rate to compare with")
        low, high = (pps / watched.rate_pps - 1.0 for pps in saturation.interval_pps)
        return self._of_interval(low, high, format_ratio)

    def _of_interval(self, low: float, high: float, write: Callable[[float], str]) -> Verdict:
        if not (math.isfinite(low) and math.isfinite(high)):
            return Verdict(state="not known", text=f"the interval of {self.name} is not known")
        between = f"{self.name} is {write(low)} to {write(high)} (95 %)"
        if high < self.bound:
            return Verdict(state="fires", text=between)
        if low >= self.bound:
            return Verdict(state="fine", text=between)
        return Verdict(state="not known", text=f"{between}, which includes {write(self.bound)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Allowed:
    """What an alarm may watch: its sign, how its bound is read and written, and an example."""

    sign: Literal["<", ">"]
    parse: Callable[[str], float]
    write: Callable[[float], str]
    example: str


def _share(text: str) -> float:
    return parse_ratio(text, zero_allowed=True, one_allowed=True, beyond_one=True)


def _probability(text: str) -> float:
    return parse_ratio(text, zero_allowed=True)


def _count(text: str) -> float:
    return float(parse_waiting_frames(f"{text} frames" if text.isascii() and text.isdigit() else text))


ALLOWED: Final[Mapping[str, _Allowed]] = {
    _PROBABILITY: _Allowed(sign=">", parse=_probability, write=format_ratio, example="P(loss at daily peak) > 1 %"),
    "headroom": _Allowed(sign="<", parse=_share, write=format_ratio, example="headroom < 20 %"),
    "saturation": _Allowed(sign="<", parse=parse_rate_pps, write=format_pps, example="saturation < 2 Mpps"),
    "loss": _Allowed(sign=">", parse=_count, write=lambda count: f"{count:.0f}", example="loss > 0"),
}
_EXAMPLES: Final = ", ".join(f'"{allowed.example}"' for allowed in ALLOWED.values())
