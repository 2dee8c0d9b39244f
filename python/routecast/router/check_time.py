"""Whether random times and how things vary make sense: for services, wake-ups and interruptions alike."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, get_args

from routecast.quantity.did_you_mean import did_you_mean
from routecast.router.check_numbers import duration
from routecast.router.random_time import Interruptions, RandomTime, Variation

__all__ = ["MOST_INTERRUPTIONS_HZ", "MOST_QUANTILES", "check_interruptions", "check_time", "check_variation"]

MOST_INTERRUPTIONS_HZ: Final = 1e8
"""Most interruptions per second of work; what strikes more often is part of the service."""

MOST_QUANTILES: Final = 100_001
"""Longest table of quantiles."""

_SCV_RANGES: dict[str, tuple[float, float, str]] = {
    "deterministic": (0.0, 0.0, "0, or not given"),
    "exponential": (1.0, 1.0, "1, or not given"),
    "gamma": (1e-6, 1e6, "a number > 0"),
    "lognormal": (1e-6, 1e6, "a number > 0"),
    "hyperexponential": (1.0, 1e6, "a number >= 1"),
    "uniform": (1e-6, 1.0 / 3.0, "a number > 0 and at most 1/3 (at 1/3 it reaches from 0 to twice the mean)"),
}

_LAWS: Final = get_args(Variation)
Add = Callable[[str, str], None]


def check_variation(place: str, variation: str, scv: float | None, add: Add) -> None:
    """Report a law that is not known, or a squared coefficient of variation that it cannot have."""
    if variation not in _LAWS:
        add(f"{place}.variation", f'got "{variation}": {did_you_mean(str(variation), _LAWS)}')
        return
    low, high, allowed = _SCV_RANGES[variation]
    if scv is None:
        if variation == "uniform":
            add(f"{place}.scv", f"is missing: for uniform times it is {allowed}")
    elif not (math.isfinite(scv) and low <= scv <= high):
        add(f"{place}.scv", f"got {scv}: for {variation} times it is {allowed}")


def check_time(place: str, time: RandomTime, add: Add) -> None:
    """Report what is wrong with a random time: both ways of giving it, falling quantiles, negative times."""
    if not time.quantiles_s:
        duration(f"{place}.mean_s", time.mean_s, add)
        check_variation(place, time.variation, time.scv, add)
        return
    if time.mean_s or time.scv is not None or time.variation != "deterministic":
        add(place, "gives both quantiles and a mean or its variation: give one of the two")
    if len(time.quantiles_s) > MOST_QUANTILES:
        add(f"{place}.quantiles_s", f"has {len(time.quantiles_s)} entries: at most {MOST_QUANTILES}")
    for index, quantile in enumerate(time.quantiles_s):
        duration(f"{place}.quantiles_s[{index}]", quantile, add)
        if index and quantile < time.quantiles_s[index - 1]:
            add(
                f"{place}.quantiles_s[{index}]",
                f"got {quantile} after {time.quantiles_s[index - 1]}: quantiles rise, or stay the same",
            )


def check_interruptions(place: str, interruptions: Interruptions, add: Add) -> None:
    """Report interruptions that never or all the time strike, or whose duration makes no sense."""
    rate_hz = interruptions.rate_hz
    if not (math.isfinite(rate_hz) and 0.0 < rate_hz <= MOST_INTERRUPTIONS_HZ):
        allowed = f"a number > 0 and at most {MOST_INTERRUPTIONS_HZ:g}"
        add(
            f"{place}.rate_hz",
            f"got {rate_hz}: interruptions per second of work are {allowed}; where there are none, leave them out",
        )
    check_time(f"{place}.duration", interruptions.duration, add)
