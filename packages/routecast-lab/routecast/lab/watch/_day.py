"""What looks have learnt of the load over the day, and of the load at saturation: so much, however long they go on.

Each of the 96 quarter hours of a working day, and of a weekend's, has forgetting means and spreads (a week) of

    x = ln(mean rate of its looks),    b = ln(highest rate of a look / that mean)

one sample a day. The load at the daily peak is that of the quarter hour with the greatest mean of x + b. Its logarithm
and that of the load at saturation are taken as normal, so that with their means m and spreads s

    P(load at the daily peak > load at saturation) = Phi((m_peak - m_saturation) / hypot(s_peak, s_saturation))
"""

from __future__ import annotations

import json
import math
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Self

from routecast.errors import FileProblem, Problem, QuantityProblem
from routecast.lab.watch._saturation import Saturation
from routecast.load.series import DAY_S, TrafficSeries
from routecast.quantity import parse_ratio
from routecast.quantity.bounded_file import read_text
from routecast.quantity.whole_file import write_whole
from routecast.wings import require_part

__all__ = [
    "DailyPeak",
    "DayMemory",
    "DayProfile",
    "FullDate",
    "Growth",
    "LossAtPeak",
    "machine_identity",
    "read_memory",
    "read_profile",
]

QUARTERS: Final = 96
FORGETS_S: Final = 7.0 * DAY_S
"""After this time a sample weighs 1/e of a new one."""
GONE_S: Final = 28.0 * DAY_S
"""What was not seen for so long is not known any more."""
DAY_SPREAD: Final = 0.10
"""Spread of ln(load at the daily peak) from day to day before days have shown it; weighs as much as one of them.

That of the ten working days of the shipped series ``abilene`` (2004), in steps of five minutes.
"""
_LEAST_PPS: Final = 1.0
_NORMAL_95: Final = 1.96
_YEAR_S: Final = 365.25 * DAY_S
_MOST_YEARS: Final = 100.0
_LEAST_SHARE: Final = 0.9
_KIND: Final = "routecast watch state"
_VERSION: Final = 1
_MAX_BYTES: Final = 1_000_000
_IDENTITY_KEYS: Final = ("model name", "microcode", "CPU implementer", "CPU part", "CPU revision")


def machine_identity(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return what the load at saturation belongs to: the kernel's release, the processor's model and microcode."""
    facts: dict[str, str] = {}
    try:
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() in _IDENTITY_KEYS:
                facts.setdefault(key.strip(), value.strip())
    except OSError:
        facts = {}
    return "; ".join([f"kernel {os.uname().release}", *(f"{key} {value}" for key, value in facts.items())])


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyPeak:
    """The load at the daily peak, packets/s; NaN with a ``reason`` if it is not known.

    ``spread``: of its logarithm on a day to come; ``mean_spread``: of the logarithm of the typical one.
    """

    pps: float = math.nan
    spread: float = math.nan
    mean_spread: float = math.nan
    source: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossAtPeak:
    """The probability that the load at the daily peak is above that at saturation; NaN with a ``reason``."""

    ratio: float = math.nan
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FullDate:
    """When the typical daily peak reaches the load at saturation, with a 95 % interval; None with a ``reason``.

    ``high`` None beside a ``day``: later than in 100 years.
    """

    day: date | None = None
    low: date | None = None
    high: date | None = None
    reason: str = ""

    def to_json(self) -> dict[str, str | None]:
        """Return plain data."""
        return {name: str(day) if day else None for name, day in self._days()} | {"reason": self.reason}

    def _days(self) -> tuple[tuple[str, date | None], ...]:
        return ("day", self.day), ("low", self.low), ("high", self.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """How the load grows: by ``ratio`` in ``per_s``, again and again."""

    ratio: float
    per_s: float

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a growth.

        Raises QuantityProblem: the text is none, or the load does not grow.

        Examples
        --------
        >>> Growth.parse("30 %/year").ratio
        0.3
        """
        share, sign, time = text.replace(" per ", "/").partition("/")
        times = {"year": _YEAR_S, "month": _YEAR_S / 12.0}
        if not sign or time.strip().lower() not in times:
            raise QuantityProblem(text, f'"{text[:60]}" is no growth: write one such as "30 %/year" or "2 %/month"')
        try:
            return cls(ratio=parse_ratio(share, beyond_one=True), per_s=times[time.strip().lower()])
        except QuantityProblem as problem:
            raise QuantityProblem(text, f"a growth is a share a year or a month, more than 0: {problem}") from None

    @property
    def log_per_s(self) -> float:
        """Growth of the logarithm of the load a second."""
        return math.log1p(self.ratio) / self.per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class DayProfile:
    """How far the daily peak is above each quarter hour, as ln(peak / rate) of each, and its spread over the days."""

    name: str
    to_peak: tuple[float, ...]
    spread: tuple[float, ...]

    @classmethod
    def of(cls, series: TrafficSeries) -> Self:
        """Learn it from the whole days of a series; its clock is taken for the local one.

        Raises FileProblem: no day is whole.
        """
        days: defaultdict[date, list[list[float]]] = defaultdict(lambda: [[] for _ in range(QUARTERS)])
        begin = series.start or datetime(2001, 1, 1)
        for number, rate_bps in enumerate(series.l2_bps):
            if not rate_bps > 0.0:
                continue
            at, quarter_s = begin + timedelta(seconds=number * series.step_s), DAY_S / QUARTERS
            for part in range(max(1, round(series.step_s / quarter_s))):
                within = at + timedelta(seconds=part * quarter_s)
                days[within.date()][_quarter_of(within)].append(rate_bps)
        whole = [
            [sum(rates) / len(rates) if rates else math.nan for rates in day]
            for day in days.values()
            if sum(map(bool, day)) >= _LEAST_SHARE * QUARTERS
        ]
        columns = [
            [math.log(max(filter(math.isfinite, day)) / day[quarter]) for day in whole if math.isfinite(day[quarter])]
            for quarter in range(QUARTERS)
        ]
        if not all(columns):
            raise FileProblem(series.source, [Problem("", "has no whole day: name a series of a day or more")])
        means = [sum(column) / len(column) for column in columns]
        squares = [sum((value - mean) ** 2 for value in column) for column, mean in zip(columns, means, strict=True)]
        return cls(
            name=series.source,
            to_peak=tuple(means),
            spread=tuple(
                math.sqrt(_predicted(square, float(len(column))))
                for square, column in zip(squares, columns, strict=True)
            ),
        )


def read_profile(name: str) -> DayProfile:
    """Read the profile of a day: a traffic series that ships, such as ``geant``, or the file of one.

    Raises FileProblem as the reader does, or if no day is whole; EnvironmentProblem: routecast-plan, which reads
    traffic series, is not installed.
    """
    return DayProfile.of(require_part("a traffic series", "plan")(name))


@dataclass(slots=True, kw_only=True)
class _QuarterHour:
    """Forgetting mean and sum of squares of x and b, and the time of the last sample."""

    weight: float = 0.0
    mean: float = 0.0
    squares: float = 0.0
    burst_mean: float = 0.0
    burst_squares: float = 0.0
    at_s: float = -math.inf

    def add(self, log_rate: float, log_burst: float, at_s: float) -> None:
        kept = _kept(self.at_s, at_s)
        before, self.weight = self.weight * kept, self.weight * kept + 1.0
        change, burst_change = log_rate - self.mean, log_burst - self.burst_mean
        self.mean += change / self.weight
        self.burst_mean += burst_change / self.weight
        self.squares = self.squares * kept + change * change * before / self.weight
        self.burst_squares = self.burst_squares * kept + burst_change * burst_change * before / self.weight
        self.at_s = max(self.at_s, at_s)

    def peak(self) -> tuple[float, float, float]:
        """Return the mean of x + b, its spread on a day to come, and that of the mean."""
        bursts = self.burst_squares / self.weight * (1.0 + 1.0 / self.weight)
        variance = _predicted(self.squares, self.weight) + bursts
        return self.mean + self.burst_mean, math.sqrt(variance), math.sqrt(variance / (self.weight + 1.0))


@dataclass(slots=True, kw_only=True)
class _Opened:
    """The quarter hour that is under way."""

    day: int
    quarter: int
    at_s: float
    looks: int = 0
    sum_pps: float = 0.0
    max_pps: float = 0.0


@dataclass(slots=True, kw_only=True)
class _Learnt:
    """Forgetting mean of ln(load at saturation), of its variance as each look states it, and their scatter."""

    weight: float = 0.0
    mean: float = 0.0
    squares: float = 0.0
    variance: float = 0.0
    at_s: float = -math.inf

    def add(self, seen: Saturation, at_s: float) -> None:
        kept = _kept(self.at_s, at_s)
        before, self.weight = self.weight * kept, self.weight * kept + 1.0
        change = math.log(seen.pps) - self.mean
        stated = (math.log(seen.high_pps / seen.low_pps) / (2.0 * _NORMAL_95)) ** 2
        self.mean += change / self.weight
        self.squares = self.squares * kept + change * change * before / self.weight
        self.variance += (stated - self.variance) / self.weight
        self.at_s = max(self.at_s, at_s)

    @property
    def spread(self) -> float:
        # What the looks have in common, such as the error of the model, no number of them takes away.
        return math.sqrt(max(self.variance, self.squares / self.weight))


class DayMemory:
    """What was learnt of an interface; times are local ones with their offset.

    ``notes``: what was forgotten when it was read. ``identity``: see :func:`machine_identity`.
    """

    def __init__(
        self, interface: str, netns: str | None = None, *, identity: str = "", profile: DayProfile | None = None
    ) -> None:
        self.interface, self.netns, self.identity, self.profile = interface, netns, identity, profile
        self.notes: list[str] = []
        self._kinds = [[_QuarterHour() for _ in range(QUARTERS)] for _ in range(2)]
        self._opened: _Opened | None = None
        self._learnt = _Learnt()
        self._rate_pps = math.nan
        self._at: datetime | None = None

    def add(self, rate_pps: float, seen: Saturation, at: datetime) -> None:
        """Learn from a look."""
        at_s, key = at.timestamp(), (at.date().toordinal(), _quarter_of(at))
        if self._opened is not None and (self._opened.day, self._opened.quarter) != key:
            self._close(self._opened)
            self._opened = None
        opened = self._opened = self._opened or _Opened(day=key[0], quarter=key[1], at_s=at_s)
        opened.looks += 1
        opened.sum_pps += rate_pps
        opened.max_pps = max(opened.max_pps, rate_pps)
        opened.at_s = at_s
        self._rate_pps, self._at = rate_pps, at
        if not seen.reason and 0.0 < seen.low_pps <= seen.pps <= seen.high_pps < math.inf:
            self._learnt.add(seen, at_s)

    def saturation(self, at: datetime) -> Saturation:
        """Return the load at saturation as all looks together show it; their errors in common stay."""
        learnt = self._learnt
        if not learnt.weight:
            return Saturation(reason="no look showed the load at saturation yet: look at a higher load, or --probe")
        if at.timestamp() - learnt.at_s > GONE_S:
            return Saturation(reason=f"no look showed the load at saturation for {GONE_S / DAY_S:g} days")
        half = _NORMAL_95 * learnt.spread
        return Saturation(
            pps=math.exp(learnt.mean), low_pps=math.exp(learnt.mean - half), high_pps=math.exp(learnt.mean + half)
        )

    def peak(self, at: datetime) -> DailyPeak:
        """Return the load at the daily peak: as the days were, or else as the profile scales the present rate."""
        seen = [self._seen(kind, at) for kind in self._kinds]
        if len(seen[0]) == QUARTERS:
            known = seen[0] + (seen[1] if len(seen[1]) == QUARTERS else [])
            mean, spread, mean_spread = max(quarter.peak() for quarter in known)
            days = "working days and weekends" if len(known) > QUARTERS else "working days; no weekend was seen whole"
            return DailyPeak(pps=math.exp(mean), spread=spread, mean_spread=mean_spread, source=days)
        if self.profile is not None and self._rate_pps > 0.0 and self._at is not None:
            quarter = _quarter_of(self._at)
            spread = self.profile.spread[quarter]
            return DailyPeak(
                pps=self._rate_pps * math.exp(self.profile.to_peak[quarter]),
                spread=spread,
                mean_spread=spread,
                source=f"the present rate, scaled by the profile {self.profile.name}",
            )
        if self.profile is not None:
            return DailyPeak(reason="no packet comes in, so the profile has nothing to scale")
        return DailyPeak(
            reason=f"{len(seen[0])} of the {QUARTERS} quarter hours of a working day were seen: keep on for a whole "
            "day with looks every 15 min or more often, or give a --profile"
        )

    def probability_of_loss_at_peak(self, at: datetime) -> LossAtPeak:
        """Return the probability that the load at the daily peak is above that at saturation."""
        peak, saturation = self.peak(at), self.saturation(at)
        if reason := peak.reason or saturation.reason:
            return LossAtPeak(reason=reason)
        deviations = math.log(peak.pps / saturation.pps) / math.hypot(peak.spread, self._learnt.spread)
        return LossAtPeak(ratio=0.5 * math.erfc(-deviations / math.sqrt(2.0)))

    def full_on(self, growth: Growth, at: datetime) -> FullDate:
        """Return the day on which the typical daily peak reaches the load at saturation."""
        peak, saturation = self.peak(at), self.saturation(at)
        if reason := peak.reason or saturation.reason:
            return FullDate(reason=reason)
        room = math.log(saturation.pps / peak.pps)
        half = _NORMAL_95 * math.hypot(peak.mean_spread, self._learnt.spread)
        low, day, high = (_day_in(left / growth.log_per_s, at) for left in (room - half, room, room + half))
        if day is None:
            return FullDate(low=low, reason=f"not within {_MOST_YEARS:g} years")
        return FullDate(day=day, low=low, high=high)

    def to_json(self) -> dict[str, Any]:
        """Return plain data, from which :meth:`of_json` reads the same."""
        return {
            "kind": _KIND,
            "version": _VERSION,
            "interface": self.interface,
            "netns": self.netns,
            "identity": self.identity,
            "saturation": list(astuple(self._learnt)) if self._learnt.weight else None,
            "opened": list(astuple(self._opened)) if self._opened else None,
            "quarters": [
                [list(astuple(quarter)) if quarter.weight else None for quarter in quarters] for quarters in self._kinds
            ],
        }

    @classmethod
    def of_json(
        cls,
        document: Any,
        interface: str,
        netns: str | None = None,
        *,
        identity: str = "",
        profile: DayProfile | None = None,
    ) -> Self:
        """Read what :meth:`to_json` wrote.

        Raises ValueError: it is damaged, or another interface's.
        """
        if not isinstance(document, dict) or document.get("kind") != _KIND:
            raise ValueError("it is no state of routecast watch")
        if document.get("version") != _VERSION:
            raise ValueError(f"its version is {document.get('version')!r}, and {_VERSION} is read")
        if (document.get("interface"), document.get("netns")) != (interface, netns):
            raise ValueError(f"it is of the interface {_place(document.get('interface'), document.get('netns'))}")
        memory = cls(interface, netns, identity=identity, profile=profile)
        quarters = document.get("quarters")
        if not (isinstance(quarters, list) and [_length(kind) for kind in quarters] == [QUARTERS, QUARTERS]):
            raise ValueError(f"it has not twice {QUARTERS} quarter hours")
        memory._kinds = [
            [_QuarterHour() if row is None else _QuarterHour(**_numbers(_QuarterHour, row)) for row in kind]
            for kind in quarters
        ]
        if (row := document.get("opened")) is not None:
            entries = _numbers(_Opened, row)
            whole = {name: int(entries[name]) for name in ("day", "quarter", "looks")}
            if not (0 <= whole["quarter"] < QUARTERS and whole["looks"] > 0 and whole["day"] > 0):
                raise ValueError("its quarter hour under way is none")
            memory._opened = _Opened(**(entries | whole))
        if (row := document.get("saturation")) is not None:
            if document.get("identity") == identity:
                memory._learnt = _Learnt(**_numbers(_Learnt, row))
            else:
                memory.notes.append(
                    "the load at saturation was forgotten, because the kernel or the processor changed: "
                    f"{document.get('identity')} then, {identity} now"
                )
        return memory

    def save(self, path: Path) -> None:
        """Write it to a file that is complete or as before.

        Raises FileProblem: it cannot be written.
        """
        try:
            write_whole(path, json.dumps(self.to_json(), allow_nan=False) + "\n")
        except OSError as problem:
            message = f"cannot be written: {problem.strerror or problem}"
            raise FileProblem(str(path), [Problem("--state", message)]) from problem

    def _seen(self, quarters: Sequence[_QuarterHour], at: datetime) -> list[_QuarterHour]:
        return [quarter for quarter in quarters if quarter.weight and at.timestamp() - quarter.at_s <= GONE_S]

    def _close(self, opened: _Opened) -> None:
        mean_pps = max(opened.sum_pps / opened.looks, _LEAST_PPS)
        burst = math.log(max(opened.max_pps, _LEAST_PPS) / mean_pps)
        is_weekend = date.fromordinal(opened.day).weekday() >= 5
        self._kinds[is_weekend][opened.quarter].add(math.log(mean_pps), burst, opened.at_s)


def read_memory(
    path: Path | None,
    interface: str,
    netns: str | None = None,
    *,
    identity: str = "",
    profile: DayProfile | None = None,
) -> DayMemory:
    """Read what was learnt from a file; without such a file, or with None, nothing is learnt yet.

    Raises FileProblem: the file is damaged, or another interface's. It stays as it is.
    """
    if path is None or not path.exists():
        return DayMemory(interface, netns, identity=identity, profile=profile)
    text = read_text(path, kind="state of routecast watch", max_file_bytes=_MAX_BYTES)
    try:
        return DayMemory.of_json(
            json.loads(text, parse_constant=_refuse), interface, netns, identity=identity, profile=profile
        )
    except (ValueError, RecursionError) as problem:
        reason = "it is no JSON" if isinstance(problem, json.JSONDecodeError) else problem
        raise FileProblem(
            str(path), [Problem("--state", f"cannot be read: {reason}; name another file, or move this one away")]
        ) from problem


def _refuse(text: str) -> float:
    raise ValueError(f"it has the number {text}")


def _numbers(kind: type[Any], row: object) -> dict[str, Any]:
    names = [field.name for field in fields(kind)]
    is_row = isinstance(row, list) and len(row) == len(names)
    if not is_row or not all(type(entry) in (int, float) and math.isfinite(entry) for entry in row):  # type: ignore[attr-defined]
        raise ValueError(f"a row of it has not {len(names)} numbers")
    entries = dict(zip(names, row, strict=True))  # type: ignore[call-overload]
    if any(entries.get(name, 1.0) <= 0.0 for name in ("weight",)) or any(
        entries.get(name, 0.0) < 0.0 for name in ("squares", "burst_squares", "variance", "sum_pps", "max_pps")
    ):
        raise ValueError("a row of it has a weight or a square below 0")
    return entries


def _length(kind: object) -> int:
    return len(kind) if isinstance(kind, list) else 0


def _place(interface: object, netns: object) -> str:
    return f"{interface} of {netns}" if netns else f"{interface}"


def _quarter_of(at: datetime) -> int:
    return at.hour * 4 + at.minute // 15


def _kept(before_s: float, at_s: float) -> float:
    """Return the weight that earlier samples keep; a clock that was set back forgets nothing."""
    return math.exp(-max(0.0, at_s - before_s) / FORGETS_S)


def _predicted(squares: float, weight: float) -> float:
    """Return the variance of a further day from the squares of ``weight`` days, beside one of :data:`DAY_SPREAD`."""
    return (DAY_SPREAD * DAY_SPREAD + squares) / max(weight, 1.0) * (1.0 + 1.0 / weight)


def _day_in(time_s: float, at: datetime) -> date | None:
    """Return the day after a time, the present one at least; None after 100 years."""
    return None if time_s > _MOST_YEARS * _YEAR_S else at.date() + timedelta(seconds=max(0.0, time_s))
