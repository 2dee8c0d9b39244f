"""Stages: a procedure for one stream and frame size, with its trials.

A stage runs every trial and keeps it in the journal, where an interrupted run finds it again. It runs an invalid trial
again, and counts lost frames.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from routecast.errors import DeviceEnded, EnvironmentProblem, RoutecastError
from routecast.evaluate.protocol import Evaluator, Resettable
from routecast.evaluate.trial import Trial
from routecast.lab.benchmark.journal import Journal, TrialRecord
from routecast.lab.benchmark.streams import Stream, load_of, quiet_after, sending_ports, theoretical_pps
from routecast.lab.benchmark.values import Profile
from routecast.lab.testbed.checks import disturbances
from routecast.load.offered import OfferedLoad, RateStep
from routecast.quantity.schema import value
from routecast.version import VERSION

__all__ = ["Counts", "InvalidTrial", "Stage", "counts_of", "loss_ratio_of"]

UNSENT_TOLERANCE = 1e-3
"""Greatest share of unsent frames of a trial that reached its intended rate."""

_HALF_A_GAP = 0.5
_WAIT_AFTER_FAILURE_S = 1.0
_WAIT_AFTER_OTHER_WORK_S = 0.2
_BURST_ATTEMPTS = 4
_COLD_RATE_RATIO = 0.5
"""Share of its greatest rate that a tester of software reaches from the first frame of a short burst on."""
_SLOW_DOWN_RATIO = 0.8
_OVERLOAD_LOSS_RATIO = 0.5
_LEAST_RATIO = 0.1
"""Least rate of a search over what a router forwards in an overload."""


class InvalidTrial(RoutecastError):
    """A trial stayed invalid after all attempts, so that no result can rest on it."""

    def __init__(self, reasons: tuple[str, ...], trial: Trial, attempts: int) -> None:
        super().__init__(reasons, trial, attempts)
        self.reasons = reasons
        self.trial = trial
        self.attempts = attempts

    def __str__(self) -> str:
        times = f"{self.attempts} time{'s' if self.attempts > 1 else ''}"
        return f"a trial at {self.trial.intended_pps:,.0f} frames/s was invalid {times}: {'; '.join(self.reasons)}"


@value
class Counts:
    """Frames of one trial, all ports together; a closed form's frames are its rates times the duration."""

    offered: int
    lost: int
    unsent: int = 0

    @property
    def loss_ratio(self) -> float:
        """Lost and unsent frames over the frames that were intended (as MLRsearch counts)."""
        intended = self.offered + self.unsent
        return (self.lost + self.unsent) / intended if intended else 0.0


def counts_of(trial: Trial, duration_s: float) -> Counts:
    """Count a trial's frames; frames in flight at its end are not lost (S12).

    Of a closed form as many count as lost as may be, all of them where the loss is not known: the throughput is then
    the greatest load of which no loss is known.
    """
    intended = trial.intended_pps * duration_s
    if trial.offered_frames is None:
        offered = round(trial.offered_pps * duration_s)
        loss_ratio = 1.0 if math.isnan(trial.known_loss_ratio) else trial.known_loss_ratio
        lost = round(loss_ratio * trial.offered_pps * duration_s)
    else:
        offered, lost = trial.offered_frames, trial.dropped_frames or 0
    missing = intended - offered
    unsent = round(missing) if missing > UNSENT_TOLERANCE * intended + 2.0 else 0
    return Counts(offered=offered, lost=lost, unsent=unsent)


def loss_ratio_of(trial: Trial) -> float:
    """Return the lost share of the offered frames; of a closed form 0 where it counts as none, NaN where not known."""
    return 0.0 if trial.known_loss_ratio == 0.0 else trial.loss_ratio


@dataclass(slots=True, kw_only=True)
class Stage:
    """One procedure for one stream and frame size.

    ``frame_bytes``: frame size, the mean of a mix; ``evaluator``: ready for the stream; ``identity``: text that changes
    with every condition of a trial except its load and its number; ``records``: the trials of all stages of a run;
    ``on_trial(seconds, is_known, purpose)``: called after each trial; ``is_known``: the journal had it; ``max_pps``:
    the greatest rate that the tester itself reaches, all ports together; ``burst_pps``: the greatest rate at which it
    sends a short burst from its first frame on; ``failures``: messages of a tester that failed and ran a trial again.
    """

    procedure: str
    stream: Stream
    frame_bytes: float
    evaluator: Evaluator
    profile: Profile
    link_bps: tuple[float, ...]
    identity: str
    journal: Journal
    records: list[TrialRecord]
    flows: int = 1
    on_trial: Callable[[float, bool, str], None] = field(default=lambda seconds, is_known, purpose: None)
    max_pps: float = math.inf
    burst_pps: float = math.inf
    count: int = 0
    failures: list[str] = field(default_factory=list)

    @property
    def ports(self) -> int:
        """Ports that send."""
        return sending_ports(self.stream)

    @property
    def own_records(self) -> list[TrialRecord]:
        """The trials so far of this stream and frame size, of all procedures."""
        key = (self.stream.name, self.frame_bytes)
        return [record for record in self.records if (record.stream, record.frame_bytes) == key]

    @property
    def theoretical_pps(self) -> float:
        """Theoretical maximum of the medium, all ports (sec. 20)."""
        return theoretical_pps(self.stream, self.frame_bytes, self.link_bps)

    @property
    def maximum_pps(self) -> float:
        """Greatest rate that can be offered: the medium's, or the tester's own where that is less."""
        return min(self.theoretical_pps, self.max_pps)

    @property
    def least_pps(self) -> float:
        """Least rate of a search, all ports: the profile's share of the medium.

        It is less for a router that forwards less than ten times that in an overload.
        """
        overloads = [record.trial for record in self.own_records if record.trial.is_valid]
        forwarded_pps = max(
            (trial.forwarded_pps for trial in overloads if trial.loss_ratio > _OVERLOAD_LOSS_RATIO), default=0.0
        )
        least_pps = self.profile.throughput.least * self.theoretical_pps
        return min(least_pps, _LEAST_RATIO * forwarded_pps) if forwarded_pps > 0.0 else least_pps

    @property
    def is_counting(self) -> bool:
        """Whether the last trial was counted frame by frame, as opposed to a closed form."""
        return bool(self.records) and self.records[-1].trial.offered_frames is not None

    def load(self, rate_pps: float, *steps: RateStep) -> OfferedLoad:
        """Return the stream's load at a rate."""
        return load_of(self.stream, self.frame_bytes, rate_pps, flows=self.flows, steps=steps)

    def trial(self, rate_pps: float, duration_s: float, purpose: str, *steps: RateStep, attempts: int = 0) -> Trial:
        """Run one trial until it is valid; at most ``attempts`` times, by default as often as the profile says.

        Raises InvalidTrial: it stayed invalid.
        """
        load = self.load(rate_pps, *steps)
        run = partial(self.evaluator.trial, load, duration_s)
        return self._valid(load, duration_s, purpose, run, attempts=attempts)

    def reset_trial(self, rate_pps: float, duration_s: float, purpose: str, *, kind: str, at_s: float) -> Trial:
        """Run one trial during which the router is reset.

        Raises InvalidTrial: it stayed invalid.
        """
        evaluator = self.evaluator
        assert isinstance(evaluator, Resettable)
        load = self.load(rate_pps)
        run = partial(evaluator.reset_trial, load, duration_s, kind=kind, at_s=at_s)
        return self._valid(load, duration_s, purpose, run, reset=f"{kind}@{at_s!r}")

    def burst(self, frames: int, purpose: str, *, residual_s: float, min_pps: float) -> Counts:
        """Send a burst at the maximum rate, all ports together, and count it (RFC 9004 sec. 6).

        The burst is a trial at the maximum rate, as long as the burst takes. The tester waits for residual frames by
        itself; a simulated trial continues without traffic instead. A tester of software reaches its greatest rate only
        after a while: where it cannot send the burst evenly, it sends this burst and all later ones slower, down to
        ``min_pps``.

        Raises InvalidTrial: the tester cannot send the burst at ``min_pps`` either.
        """
        if math.isinf(self.burst_pps):
            is_slower = self.max_pps < self.theoretical_pps
            self.burst_pps = max(_COLD_RATE_RATIO * self.max_pps, min_pps) if is_slower else self.theoretical_pps
        while True:
            # Half a gap less than the burst, so that rounding adds no frame.
            length_s = (frames - _HALF_A_GAP * self.ports) / self.burst_pps
            try:
                if self.records and self.records[-1].trial.evaluator == "simulate":
                    quiet = quiet_after(length_s)
                    trial = self.trial(self.burst_pps, length_s + residual_s, purpose, quiet)
                else:
                    trial = self.trial(self.burst_pps, length_s, purpose, attempts=_BURST_ATTEMPTS)
            except InvalidTrial:
                if self.burst_pps * _SLOW_DOWN_RATIO < min_pps:
                    raise
                self.burst_pps *= _SLOW_DOWN_RATIO
            else:
                return Counts(offered=trial.offered_frames or 0, lost=trial.dropped_frames or 0)

    def _valid(
        self,
        load: OfferedLoad,
        duration_s: float,
        purpose: str,
        run: Callable[[], Trial],
        *,
        reset: str = "",
        attempts: int = 0,
    ) -> Trial:
        attempts = attempts or self.profile.trial.attempts
        for attempt in range(1, attempts + 1):
            trial = self._once(load, duration_s, purpose, attempt, run, reset)
            if trial.is_valid:
                return trial
            if attempt < attempts and disturbances(trial) and trial.evaluator == "measure":
                time.sleep(_WAIT_AFTER_OTHER_WORK_S * attempt)
        raise InvalidTrial(trial.invalid, trial, attempts)

    def _once(
        self, load: OfferedLoad, duration_s: float, purpose: str, attempt: int, run: Callable[[], Trial], reset: str
    ) -> Trial:
        self.count += 1
        key = self._key(load, duration_s, reset)
        trial = self.journal.find(key)
        is_resumed = trial is not None
        if trial is None:
            reseed = getattr(self.evaluator, "reseed", None)
            if reseed is not None:
                reseed(int(key[:12], 16))
            trial = self._run(run)
        record = TrialRecord(
            number=len(self.records) + 1,
            procedure=self.procedure,
            stream=self.stream.name,
            frame_bytes=self.frame_bytes,
            purpose=purpose,
            attempt=attempt,
            rate_pps=load.rate_pps,
            trial=trial,
        )
        self.records.append(record)
        if not is_resumed:
            self.journal.add(key, record)
        self.on_trial(duration_s, is_resumed, purpose)
        return trial

    def _run(self, run: Callable[[], Trial]) -> Trial:
        """Run a trial again where the tester failed, as often as an invalid trial: other work can starve the tester.

        Raises DeviceEnded at once: no further attempt mends it.
        """
        for _ in range(self.profile.trial.attempts - 1):
            try:
                return run()
            except DeviceEnded:
                raise
            except EnvironmentProblem as problem:
                self.failures.append(str(problem))
                time.sleep(_WAIT_AFTER_FAILURE_S)
        return run()

    def _key(self, load: OfferedLoad, duration_s: float, reset: str) -> str:
        conditions = (VERSION, self.identity, self.procedure, self.stream, self.frame_bytes, self.count)
        settings = (load.rate_pps, load.steps, len(load.flows.flows), duration_s, reset)
        return hashlib.sha256(repr((*conditions, *settings)).encode()).hexdigest()[:24]
