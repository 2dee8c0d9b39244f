"""What a benchmark is to run: procedures, frame sizes and streams, checked and in order."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from routecast.benchmark.procedures import PROCEDURES
from routecast.benchmark.profile import Profile, parse_frames
from routecast.benchmark.streams import FEWEST_IPV6_BYTES, Stream, mixed, stream_of
from routecast.errors import ModelProblem, Problem
from routecast.quantity import format_duration
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import field, value

__all__ = ["Clock", "Plan", "expected", "plan_of"]


@value
class Plan:
    """What is to be run: checked, complete, in order."""

    profile: Profile
    procedures: tuple[str, ...] = field("In the RFC's order; those that others rest on are in it.")
    frame_bytes: tuple[int, ...] = field("Fixed sizes.")
    streams: tuple[Stream, ...] = field("With fixed sizes, where there are any, then with each mix of sizes.")
    flows: int = field("Flows each way; 1 is a pair of addresses.", default=1)
    notes: tuple[str, ...] = ()

    def stages(self) -> tuple[tuple[Stream, float, str], ...]:
        """Every stage, in order."""
        return tuple(
            (stream, size, procedure)
            for stream in self.streams
            for size in self.sizes(stream)
            for procedure in self.procedures_of(stream, size)
        )

    def procedures_of(self, stream: Stream, frame_bytes: float) -> tuple[str, ...]:
        """Procedures for a stream and a frame size.

        Reset is run with the smallest frame only (sec. 26.6), and with a mix where there are no fixed sizes. Repeated
        bursts ask for the least time between bursts without loss (sec. 21), which is the throughput.
        """
        is_smallest = frame_bytes == min(self.sizes(stream)) and not (stream.mix and self.frame_bytes)
        return tuple(
            name
            for name in self.procedures
            if (PROCEDURES[name].with_bursts if stream.burst_frames > 1 else True)
            and (is_smallest or not PROCEDURES[name].smallest_only)
        )

    def sizes(self, stream: Stream) -> tuple[float, ...]:
        """Frame sizes of a stream, or the mean of its mix.

        With IPv6, 84 bytes stand for fixed sizes below (RFC 8219 sec. 5.1.1).
        """
        if stream.frames is not None:
            return (stream.frames.mean_bytes,)
        least = FEWEST_IPV6_BYTES if stream.protocol == "IPv6" else 0
        return tuple(dict.fromkeys(max(size, least) for size in self.frame_bytes))


def plan_of(
    profile: Profile,
    *,
    procedures: Sequence[str] = (),
    frame_bytes: Sequence[int] = (),
    mixes: Sequence[str] = (),
    streams: Sequence[Stream] = (),
    search: str = "",
    flows: int = 1,
) -> Plan:
    """Return what a profile asks for, changed by what the user asks for.

    Sizes and mixes together replace the profile's: with mixes alone no fixed size is run.

    Raises
    ------
    routecast.errors.ModelProblem
        A procedure is unknown, or the number of flows is.
    routecast.errors.QuantityProblem
        A mix is none.
    """
    requested = list(procedures or profile.procedures or PROCEDURES)
    wrong = [
        Problem("procedures", f"no procedure {name!r}: {did_you_mean(name, PROCEDURES)}")
        for name in requested
        if name.replace("-", "_") not in PROCEDURES
    ]
    if flows < 1:
        wrong.append(Problem("flows", f"got {flows}: at least one flow each way"))
    if search and search not in {"mlrsearch", "binary"}:
        wrong.append(Problem("search", f"no search {search!r}: {did_you_mean(search, ('mlrsearch', 'binary'))}"))
    if wrong:
        raise ModelProblem("benchmark", wrong)
    names = {name.replace("-", "_") for name in requested}
    notes = []
    if "throughput" not in names and any(PROCEDURES[name].rests_on_throughput for name in names):
        notes.append("throughput was run as well: the procedures asked for rest on it")
        names.add("throughput")
    if search:
        profile = profile.changed("throughput", search=search)
    frames = [*frame_bytes, *map(parse_frames, mixes)] or profile.frames
    sizes = tuple(dict.fromkeys(size for size in frames if isinstance(size, int)))
    names_of_mixes = dict.fromkeys(mix for mix in frames if isinstance(mix, str))
    given = tuple(dict.fromkeys(streams or map(stream_of, profile.stream)))
    # A mix is a stream of its own, so that no row of it is taken for one of a fixed size.
    with_mixes = tuple(mixed(stream, mix) for mix in names_of_mixes for stream in given)
    notes += [f"{mix} is beyond RFC 2544, whose frames have one size at a time (sec. 9)" for mix in names_of_mixes]
    return Plan(
        profile=profile,
        procedures=tuple(name for name in PROCEDURES if name in names),
        frame_bytes=sizes,
        streams=(*(given if sizes else ()), *with_mixes),
        flows=flows,
        notes=tuple(notes),
    )


TRIAL_OVERHEAD_S = 0.12
"""What a trial on the wire takes beyond its phases: arming, reading counters."""


@value
class Expected:
    """Expected trials and seconds of one stage on the wire."""

    trials: int
    seconds: float


def expected(profile: Profile, procedure: str) -> Expected:
    """Return how many trials one stage is expected to take, and how long they are with their phases.

    Searches depend on what they find: their trials are those of a router with some loss in the middle of the range.
    """
    trials, traffic_s = PROCEDURES[procedure].trials(profile)
    phases = profile.trial.before + profile.trial.residual + profile.trial.settle + TRIAL_OVERHEAD_S
    return Expected(trials=trials, seconds=traffic_s + trials * phases)


@dataclass(slots=True)
class Clock:
    """Progress of a run in expected seconds, and the time that is left.

    ``stages`` are run in this order. ``report`` is told (done, total, what) after every trial, in expected seconds.
    """

    stages: Sequence[tuple[Stream, float, str]]
    profile: Profile
    report: Callable[[int, int, str], None] | None = None
    _done_s: float = 0.0
    _in_stage_s: float = 0.0
    _stage_s: float = 0.0
    _known_s: float = 0.0
    _started: float = 0.0
    _what: str = ""

    def __post_init__(self) -> None:
        self._started = time.monotonic()

    @property
    def total_s(self) -> float:
        """Expected seconds of the whole run on the wire."""
        return sum(expected(self.profile, procedure).seconds for _, _, procedure in self.stages)

    @property
    def trials(self) -> int:
        """Expected trials of the whole run."""
        return sum(expected(self.profile, procedure).trials for _, _, procedure in self.stages)

    def begin(self, stream: Stream, frame_bytes: float, procedure: str) -> None:
        """Note that a stage begins."""
        self._stage_s = expected(self.profile, procedure).seconds
        self._in_stage_s = 0.0
        self._what = f"{procedure.replace('_', ' ')}, {frame_bytes:g} B, {stream.name}"
        self._tell()

    def trial(self, seconds: float, is_known: bool) -> None:
        """Note that a trial has ended; ``is_known`` if it comes from a run before."""
        trial = self.profile.trial
        whole_s = seconds + trial.before + trial.residual + trial.settle + TRIAL_OVERHEAD_S
        self._in_stage_s += whole_s
        if is_known:
            self._known_s += whole_s
        self._tell()

    def end(self) -> None:
        """Note that the stage has ended."""
        self._done_s += self._stage_s
        self._stage_s = self._in_stage_s = 0.0
        self._tell()

    @property
    def left_s(self) -> float:
        """Seconds that are expected to be left, by the pace so far; NaN before there is one."""
        done = self._done_s + min(self._in_stage_s, self._stage_s)
        own = done - min(self._known_s, done)
        if own <= 0.0:
            return math.nan
        return (self.total_s - done) * (time.monotonic() - self._started) / own

    def _tell(self) -> None:
        if self.report is None:
            return
        done = self._done_s + min(self._in_stage_s, self._stage_s)
        left_s = self.left_s
        left = f", {format_duration(round(left_s))} left" if math.isfinite(left_s) and left_s >= 1.0 else ""
        self.report(round(done), max(round(self.total_s), 1), f"{self._what}{left}")
