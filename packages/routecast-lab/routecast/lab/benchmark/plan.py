"""The plan of a benchmark: its procedures, frame sizes and streams, and their expected time."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field

from routecast.errors import ModelProblem, Problem
from routecast.lab.benchmark.procedures import PROCEDURES
from routecast.lab.benchmark.streams import MIN_IPV6_BYTES, Stream, mixed, stream_of
from routecast.lab.benchmark.values import Profile, parse_frames
from routecast.progress import Progress
from routecast.quantity import format_duration
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import field, value

__all__ = ["Clock", "Plan", "expected", "plan_of"]


@value
class Plan:
    """Procedures, frame sizes and streams of a run: checked, complete, in order."""

    profile: Profile
    procedures: tuple[str, ...] = field("Procedures in the RFC's order, with those on which they rest.")
    frame_bytes: tuple[int, ...] = field("Fixed sizes.")
    streams: tuple[Stream, ...] = field("Streams with fixed sizes, if any, then those with each mix of sizes.")
    flows: int = field("Flows in each direction; 1 is a pair of addresses.", default=1)
    notes: tuple[str, ...] = ()

    def stages(self) -> tuple[tuple[Stream, float, str], ...]:
        """Return stream, frame size and procedure of every stage, in order."""
        return tuple(
            (stream, size, procedure)
            for stream in self.streams
            for size in self.sizes(stream)
            for procedure in self.procedures_of(stream, size)
        )

    def procedures_of(self, stream: Stream, frame_bytes: float) -> tuple[str, ...]:
        """Return the procedures for a stream and a frame size.

        Reset is run with the smallest frame only (sec. 26.6), or with a mix if there are no fixed sizes. A stream of
        repeated bursts gives the least time between bursts without loss (sec. 21), by its throughput alone.
        """
        is_smallest = frame_bytes == min(self.sizes(stream)) and not (stream.mix and self.frame_bytes)
        return tuple(
            name
            for name in self.procedures
            if (PROCEDURES[name].with_bursts or stream.burst_frames == 1)
            and (is_smallest or not PROCEDURES[name].smallest_only)
        )

    def sizes(self, stream: Stream) -> tuple[float, ...]:
        """Return the frame sizes of a stream, or the mean of its mix.

        With IPv6, 84 bytes replace smaller fixed sizes (RFC 8219 sec. 5.1.1).
        """
        if stream.frames is not None:
            return (stream.frames.mean_bytes,)
        least = MIN_IPV6_BYTES if stream.protocol == "IPv6" else 0
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
    """Return the plan of a profile, in which the arguments replace values.

    Sizes and mixes together replace the profile's; mixes alone leave no fixed size.

    Raises
    ------
    routecast.errors.ModelProblem
        A procedure or the search is unknown, or there is less than one flow.
    routecast.errors.QuantityProblem
        A text is no mix of frame sizes.
    """
    requested = list(procedures or profile.procedures or PROCEDURES)
    problems = [
        Problem("procedures", f"no procedure {name!r}: {did_you_mean(name, PROCEDURES)}")
        for name in requested
        if name.replace("-", "_") not in PROCEDURES
    ]
    if flows < 1:
        problems.append(Problem("flows", f"got {flows}: at least one flow each way"))
    if search and search not in {"mlrsearch", "binary"}:
        problems.append(Problem("search", f"no search {search!r}: {did_you_mean(search, ('mlrsearch', 'binary'))}"))
    if problems:
        raise ModelProblem("benchmark", problems)
    names = {name.replace("-", "_") for name in requested}
    notes = []
    if "throughput" not in names and any(PROCEDURES[name].rests_on_throughput for name in names):
        notes.append("throughput was run as well: the chosen procedures rest on it")
        names.add("throughput")
    if search:
        profile = profile.changed("throughput", search=search)
    frames = [*frame_bytes, *map(parse_frames, mixes)] or profile.frames
    sizes = tuple(dict.fromkeys(size for size in frames if isinstance(size, int)))
    mix_names = dict.fromkeys(mix for mix in frames if isinstance(mix, str))
    with_sizes = tuple(dict.fromkeys(streams or map(stream_of, profile.stream)))
    # A mix is a stream of its own, so that its rows differ from those of fixed sizes.
    with_mixes = tuple(mixed(stream, mix) for mix in mix_names for stream in with_sizes)
    notes += [f"{mix} is beyond RFC 2544, whose frames have one size at a time (sec. 9)" for mix in mix_names]
    return Plan(
        profile=profile,
        procedures=tuple(name for name in PROCEDURES if name in names),
        frame_bytes=sizes,
        streams=(*(with_sizes if sizes else ()), *with_mixes),
        flows=flows,
        notes=tuple(notes),
    )


TRIAL_OVERHEAD_S = 0.12
"""Time of a trial on the wire beside its phases, to arm the tester and to read counters."""


@value
class Expected:
    """Expected trials and seconds of one stage on the wire."""

    trials: int
    seconds: float


def expected(profile: Profile, procedure: str) -> Expected:
    """Return the expected trials of one stage, and their time with all phases.

    The trials of a search depend on the router; the estimate assumes some loss in the middle of the range.
    """
    trials, traffic_s = PROCEDURES[procedure].trials(profile)
    phases = profile.trial.before + profile.trial.residual + profile.trial.settle + TRIAL_OVERHEAD_S
    return Expected(trials=trials, seconds=traffic_s + trials * phases)


@dataclass(slots=True)
class Clock:
    """Progress of a run in expected seconds, and the remaining time.

    ``stages``: in the order of the run; ``on_progress``: called with (done, total, what) after every trial, in expected
    seconds; ``known_trials``: number of trials from an interrupted run.
    """

    stages: Sequence[tuple[Stream, float, str]]
    profile: Profile
    on_progress: Progress | None = None
    known_trials: int = 0
    _done_s: float = 0.0
    _in_stage_s: float = 0.0
    _stage_s: float = 0.0
    _known_s: float = 0.0
    _started: float = dataclass_field(default_factory=time.monotonic)
    _what: str = ""

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
        self._report()

    def trial(self, seconds: float, is_known: bool) -> None:
        """Note that a trial has ended; ``is_known`` if it comes from an interrupted run."""
        trial = self.profile.trial
        with_phases_s = seconds + trial.before + trial.residual + trial.settle + TRIAL_OVERHEAD_S
        self._in_stage_s += with_phases_s
        if is_known:
            self.known_trials += 1
            self._known_s += with_phases_s
        self._report()

    def end(self) -> None:
        """Note that the stage has ended."""
        self._done_s += self._stage_s
        self._stage_s = self._in_stage_s = 0.0
        self._report()

    @property
    def remaining_s(self) -> float:
        """Expected remaining seconds, by the pace so far; NaN before the first trial of this run."""
        done_s = self._all_done_s
        own_s = done_s - min(self._known_s, done_s)
        return (self.total_s - done_s) * (time.monotonic() - self._started) / own_s if own_s > 0.0 else math.nan

    @property
    def _all_done_s(self) -> float:
        return self._done_s + min(self._in_stage_s, self._stage_s)

    def _report(self) -> None:
        if self.on_progress is None:
            return
        remaining_s = self.remaining_s
        is_long = math.isfinite(remaining_s) and remaining_s >= 1.0
        left = f", {format_duration(round(remaining_s))} left" if is_long else ""
        self.on_progress(round(self._all_done_s), max(round(self.total_s), 1), f"{self._what}{left}")
