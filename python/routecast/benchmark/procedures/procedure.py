"""What a procedure of RFC 2544 is: one object that says all that others want of it, and the values that all share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, Literal

from routecast.benchmark.settings import Table
from routecast.quantity import format_duration

if TYPE_CHECKING:
    from routecast.benchmark.plan import Plan
    from routecast.benchmark.profile import Profile
    from routecast.benchmark.stage import Stage

__all__ = ["Deviation", "LeftOut", "NotRun", "Procedure", "Spread", "rfc2544", "span"]


class LeftOut(Exception):
    """A procedure cannot be run here; its text is the reason that a report gives."""


def _nothing(rows: Sequence[Any], reasons: Mapping[str, str]) -> tuple[NotRun, ...]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """A procedure of RFC 2544 sec. 26 (or what has replaced it).

    Parameters
    ----------
    name : str
        Of its table in a profile, its field in the result, in file names and commands.
    section : str
        Of RFC 2544: ``"26.1"``.
    settings : type of Table
        Its table in a profile.
    run : callable
        ``run(stage, throughput_pps)`` runs one stage and returns its rows; the throughput is NaN where it needs none.
        Raises :class:`LeftOut` where there is nothing that could be run.
    result_of : callable
        ``result_of(rows, plan, medium)`` returns all rows as one result with what the standard wants stated.
    trials : callable
        ``trials(profile)`` returns how many trials a stage is expected to take, and their seconds of traffic.
    deviations : callable
        ``deviations(profile)`` yields every way in which the profile's values differ from the standard.
    left_out : callable
        ``left_out(rows, reasons)`` lists parts that were not run; ``reasons`` are the device's own, by part.
    rests_on_throughput : bool
        Runs at the throughput, so that the throughput is run before it.
    counts_frames : bool
        Counts frames during a change, which a closed form cannot.
    smallest_only : bool
        Run with the smallest frame only.
    with_bursts : bool
        Run with streams of repeated bursts as well (sec. 21 asks for the least time between bursts without loss).
    """

    name: str
    section: str
    settings: type[Table]
    run: Callable[[Stage, float], tuple[Any, ...]]
    result_of: Callable[[Sequence[Any], Plan, str], Any]
    trials: Callable[[Profile], tuple[int, float]]
    deviations: Callable[[Profile], Iterator[Deviation]]
    left_out: Callable[[Sequence[Any], Mapping[str, str]], tuple[NotRun, ...]] = _nothing
    rests_on_throughput: bool = True
    counts_frames: bool = True
    smallest_only: bool = False
    with_bursts: bool = False

    @property
    def title(self) -> str:
        """The name in words."""
        return self.name.replace("_", " ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Repetitions of one figure: their mean, extremes and standard deviation; the raw values in order.

    The unit is that of the field which holds the spread. ``sd`` is NaN for fewer than two values.
    """

    values: tuple[float, ...]
    mean: float
    least: float
    most: float
    sd: float

    @classmethod
    def of(cls, values: tuple[float, ...]) -> Spread:
        """Summarise at least one value; none gives NaN throughout."""
        nan = float("nan")
        if not values:
            return cls(values=(), mean=nan, least=nan, most=nan, sd=nan)
        return cls(
            values=values,
            mean=fmean(values),
            least=min(values),
            most=max(values),
            sd=stdev(values) if len(values) > 1 else nan,
        )

    @property
    def repeats(self) -> int:
        """How many values there are."""
        return len(self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """One way in which a run differs from the standard.

    Parameters
    ----------
    document : str
        ``"RFC 2544"``, ``"RFC 9004"``, ``"RFC 6201"``.
    section : str
        ``"24"``.
    requirement : {"MUST", "SHOULD"}
    wanted, done : str
        What the standard asks for, and what was done instead, each as a phrase.
    """

    document: str
    section: str
    requirement: Literal["MUST", "SHOULD"]
    wanted: str
    done: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotRun:
    """Something that the standard knows and that this run left out, with the reason."""

    section: str
    what: str
    reason: str


def rfc2544(section: str, requirement: Literal["MUST", "SHOULD"], wanted: str, done: str) -> Deviation:
    """Return a deviation from RFC 2544 itself."""
    return Deviation(document="RFC 2544", section=section, requirement=requirement, wanted=wanted, done=done)


def span(seconds: float) -> str:
    """Write a time that may be none."""
    return format_duration(seconds) if seconds > 0.0 else "none"
