"""Instants of samples: their notations, the order of day and month, and changes of the local clock."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from statistics import median_low

from routecast.errors import Problem

__all__ = ["Timeline", "local_times", "parse_time", "parse_times", "timeline"]

_COMPACT = re.compile(r"(\d{8})[-_ T]?(\d{4}(?:\d{2})?)")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?")
_DATE = re.compile(
    r"(?P<one>\d{1,2})(?P<sign>[/.-])(?P<two>\d{1,2})(?P=sign)(?P<year>\d{4}|\d{2})"
    r"(?:,?[ T]+(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.\d+)?)?\s*(?P<half>[AaPp]\.?[Mm]\.?)?)?"
)
_DAYS = ("%b %d, %Y", "%b %d %Y", "%B %d, %Y", "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d/%b/%Y")
_CLOCKS = ("%H:%M:%S", "%H:%M", "%I:%M:%S %p", "%I:%M %p", "%H:%M:%S.%f")
_WORDS = (
    *(f"{day}{sign}{clock}" for day in _DAYS for sign in (" ", ", ") for clock in _CLOCKS),
    *_DAYS,
    "%d/%b/%Y:%H:%M:%S",
    "%b %d %H:%M:%S %Y",
)
_WEEKDAY = re.compile(r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6}\.?,?\s+", re.IGNORECASE)
_ZONE = re.compile(
    r"\s*(?P<name>\b(?:UTC|GMT|Z|[ECMP][SD]T|CES?T|WES?T|EES?T|MES?Z))?\s*(?P<offset>[+-]\d{2}:?\d{2})?(?:\s*\([^()]{1,60}\))?"
    r"(?P<year>\s+\d{4})?"
)
_ZONE_HOURS = {
    "UTC": 0,
    "GMT": 0,
    "Z": 0,
    "WET": 0,
    "WEST": 1,
    "CET": 1,
    "CEST": 2,
    "MEZ": 1,
    "MESZ": 2,
    "EET": 2,
    "EEST": 3,
}
_ZONE_HOURS |= {"EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7}
"""Hours before UTC by the name of a zone; those of America are RFC 5322's, section 4.3."""
_SPAN = re.compile(r"(?P<begin>\S.*\d(?:\s*[AaPp]\.?[Mm]\.?)?)\s+(?:-|–|to)\s+\d.*")
_SINCE_1970 = ((1e11, 1.0), (1e14, 1e3), (1e17, 1e6), (1e20, 1e9))
"""Numbers below each bound are seconds, milliseconds, microseconds and nanoseconds: each reaches the year 5138."""

_HOUR = timedelta(hours=1)
_MAX_CHANGES = 400
"""Two changes a year for two centuries."""
_CLOCK_MONTHS = frozenset({3, 4, 9, 10, 11})
"""Months in which clocks change, in the north and in the south."""


def parse_time(text: str, *, is_day_first: bool = False) -> datetime:
    """Read an instant.

    ISO 8601, ``20040301-0005``, ``11/28/2026 1:05 PM`` (with ``is_day_first`` ``28/11/2026``), ``28.11.2026 13:05``,
    ``Nov 28, 2026 1:05 PM``, ``Sat, 28 Nov 2026 13:05:00 GMT``, ``28-Nov-2026 13:05``, the begin of a span such as
    ``11/28/2026 1:05 PM - 1:10 PM``, or seconds, milliseconds, microseconds or nanoseconds since 1970 (seconds since
    midnight, if small). The offset from UTC is kept for :func:`timeline`.

    Raises ValueError: the text is not a time.
    """
    compact = _COMPACT.fullmatch(text)
    if compact:
        day, clock = compact.groups()
        return datetime.strptime(day + clock, "%Y%m%d%H%M%S" if len(clock) == 6 else "%Y%m%d%H%M")
    if _NUMBER.fullmatch(text):
        return _since_1970(text)
    date = _DATE.fullmatch(text)
    if date:
        return _of_date(date, is_day_first)
    try:
        return datetime.fromisoformat(text.replace("/", "-") if "/" in text else text)
    except ValueError:
        pass
    worded = _of_words(text, is_day_first)
    if worded is not None:
        return worded
    raise ValueError(
        f'"{text[:40]}" is no time: write 2004-03-01 00:05:00, 20040301-0005, 3/1/2004 12:05 AM, or seconds since 1970'
    )


def _of_words(text: str, is_day_first: bool) -> datetime | None:
    """Return a time with names of months or zones, or the begin of a span; None if the text is none."""
    span = _SPAN.fullmatch(text)
    if span and (_DATE.fullmatch(span["begin"]) or ":" in span["begin"]):
        return parse_time(span["begin"], is_day_first=is_day_first)
    plain = _WEEKDAY.sub("", text[:100], count=1) if _WEEKDAY.match(text) else text[:100]
    zone, ending = None, re.search(rf"(?<=[\d.:MmSs]){_ZONE.pattern}$", plain)
    if ending and (ending["name"] or ending["offset"]):
        plain = plain[: ending.start()].strip() + (ending["year"] or "")
        zone = timedelta(hours=_ZONE_HOURS[ending["name"] or "UTC"])
        if ending["offset"]:
            sign, digits = ending["offset"][0], ending["offset"][1:].replace(":", "")
            zone = timedelta(hours=int(digits[:2]), minutes=int(digits[2:])) * (-1 if sign == "-" else 1)
    time = _without_zone(plain, is_day_first) if zone is not None or plain != text else None
    for form in () if time else _WORDS:
        try:
            time = datetime.strptime(plain, form)
            break
        except ValueError:
            continue
    if time is None or zone is None or time.tzinfo is not None:
        return time
    return time.replace(tzinfo=timezone(zone)) if abs(zone) < timedelta(hours=24) else None


def _without_zone(text: str, is_day_first: bool) -> datetime | None:
    date = _DATE.fullmatch(text)
    if date:
        return _of_date(date, is_day_first)
    try:
        return datetime.fromisoformat(text.replace("/", "-"))
    except ValueError:
        return None


def _since_1970(text: str) -> datetime:
    number = float(text)
    per_second = next((per_second for bound, per_second in _SINCE_1970 if 0.0 <= number < bound), None)
    if per_second is None:
        raise ValueError(f'"{text[:40]}" is no time since 1970, neither in seconds nor in nanoseconds')
    return datetime(1970, 1, 1) + timedelta(seconds=number / per_second)


def _of_date(date: re.Match[str], is_day_first: bool) -> datetime:
    first, second, year = int(date["one"]), int(date["two"]), int(date["year"])
    day, month = (first, second) if is_day_first or date["sign"] == "." else (second, first)
    hour = int(date["hour"] or 0)
    if date["half"]:
        if not 1 <= hour <= 12:
            raise ValueError(f'"{date[0][:40]}" is no time: the hours before AM and PM are 1 to 12')
        hour = hour % 12 + (12 if date["half"][0] in "Pp" else 0)
    try:
        full_year = year + 2000 if year < 100 else year
        return datetime(full_year, month, day, hour, int(date["minute"] or 0), int(date["second"] or 0))
    except ValueError as problem:
        raise ValueError(f'"{date[0][:40]}" is no time: {problem}') from problem


def parse_times(texts: Sequence[str], places: Sequence[str]) -> tuple[list[datetime], list[str], list[Problem]]:
    """Return the instants of a column, notes, and the problems.

    The order of day and month follows from the whole column: from a number above 12, or else from the order in which
    the dates follow each other, or else from AM and PM, which US dates have.
    """
    dates = [date for date in map(_DATE.match, texts) if date and date["sign"] != "."]
    is_day_first, notes, problems = _order_of_dates(dates)
    times: list[datetime] = []
    for text, place in zip(texts, places, strict=True):
        try:
            times.append(parse_time(text, is_day_first=is_day_first))
        except (ValueError, OverflowError) as problem:
            problems.append(Problem(place, str(problem)))
    return times, notes, problems


def _order_of_dates(dates: Sequence[re.Match[str]]) -> tuple[bool, list[str], list[Problem]]:
    if not dates:
        return False, [], []
    day_first = any(int(date["one"]) > 12 for date in dates)
    month_first = any(int(date["two"]) > 12 for date in dates)
    example = f'"{dates[0][0][:40]}"'
    if day_first and month_first:
        return False, [], [Problem("", "some dates begin with the day, others with the month: write 2026-11-28 13:05")]
    if not (day_first or month_first):
        spans = [_total_span(dates, is_day_first=order) for order in (False, True)]
        if spans[0] != spans[1] and min(spans) <= timedelta(days=31):
            day_first, month_first = spans[1] < spans[0], spans[0] < spans[1]
        elif any(date["half"] for date in dates) or spans[0] == timedelta(0):
            month_first = True
        else:
            message = (
                f"{example} may begin with the day or the month, and no other date decides: write 2026-11-28 13:05"
            )
            return False, [], [Problem("", message)]
    order = "day, month, year" if day_first else "month, day, year"
    return day_first, [f"dates such as {example} are {order}"], []


def _total_span(dates: Sequence[re.Match[str]], *, is_day_first: bool) -> timedelta:
    """Return the span of the calendar days; the right order of day and month makes it the shorter one."""
    days = [_of_date(date, is_day_first).date() for date in dates]
    return max(days) - min(days)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Instants that pass evenly, with the changes of the local clock.

    ``times``: naive, all by the clock of the first in time. ``changes``: pairs of the instant on that clock and by how
    much the local clock is ahead from then on.
    """

    times: list[datetime]
    changes: list[tuple[datetime, timedelta]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def timeline(times: Sequence[datetime], *, is_clock: bool) -> Timeline:
    """Return instants by one clock.

    With an offset from UTC each instant is known. Without one, a night of Sunday in which the clock returns by an hour,
    or skips one, begins or ends summer time. ``is_clock``: whether the times were written as a clock shows them, not as
    seconds since 1970.

    Raises ValueError: some times have an offset and others do not.
    """
    if not is_clock or not times:
        return Timeline(times=list(times))
    if any(time.tzinfo is not None for time in times):
        return _by_offsets(times)
    is_newest_first = sum(later < earlier for earlier, later in pairwise(times)) > len(times) // 2
    line = _by_jumps(times[::-1] if is_newest_first else times)
    return replace(line, times=line.times[::-1]) if is_newest_first else line


def _by_offsets(times: Sequence[datetime]) -> Timeline:
    local = local_times(times)
    first = min(range(len(times)), key=local.__getitem__)
    base = times[first].utcoffset() or timedelta(0)
    shift = base - (times[0].utcoffset() or timedelta(0))
    local = [time + shift for time in local]
    changes: list[tuple[datetime, timedelta]] = []
    for index in sorted(range(len(times)), key=local.__getitem__):
        ahead = (times[index].utcoffset() or timedelta(0)) - base
        if ahead != (changes[-1][1] if changes else timedelta(0)):
            changes.append((local[index], ahead))
    if len(changes) > _MAX_CHANGES:
        raise ValueError(f"the offset from UTC changes {len(changes):,} times: at most {_MAX_CHANGES} are read")
    return Timeline(times=local, changes=changes, notes=_notes(changes))


def _by_jumps(times: Sequence[datetime]) -> Timeline:
    steps = [later - earlier for earlier, later in pairwise(times)]
    step = median_low([step for step in steps if step > timedelta(0)] or [timedelta(0)])
    result = list(times[:1])
    changes: list[tuple[datetime, timedelta]] = []
    ahead = timedelta(0)
    for time, gap in zip(times[1:], steps, strict=True):
        jump = gap - step
        if timedelta(0) < step <= _HOUR and abs(abs(jump) - _HOUR) <= step / 20 and _is_night_of_change(time):
            ahead += _HOUR if jump > timedelta(0) else -_HOUR
            changes.append((time - ahead, ahead))
        result.append(time - ahead)
    return Timeline(times=result, changes=changes, notes=_notes(changes))


def _is_night_of_change(time: datetime) -> bool:
    return time.weekday() == 6 and time.hour <= 4 and time.month in _CLOCK_MONTHS


def _notes(changes: Sequence[tuple[datetime, timedelta]]) -> list[str]:
    notes, before = [], timedelta(0)
    for time, ahead in changes:
        hours = (ahead - before) / _HOUR
        notes.append(
            f"the clock {'skips' if hours > 0 else 'goes back'} {abs(hours):g} h at {time + before}: "
            f"a day of {24 - hours:g} hours"
        )
        before = ahead
    return notes[:4]


def local_times(times: Sequence[datetime]) -> list[datetime]:
    """Return naive times, all with the UTC offset of the first time.

    Raises ValueError: some times have an offset and others do not.
    """
    aware = sum(time.tzinfo is not None for time in times)
    if aware == 0:
        return list(times)
    if aware != len(times):
        raise ValueError(f"{aware} of {len(times)} times have an offset from UTC and the others do not")
    offset = times[0].utcoffset() or timedelta(0)
    return [time.astimezone(UTC).replace(tzinfo=None) + offset for time in times]
