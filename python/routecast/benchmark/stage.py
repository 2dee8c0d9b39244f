"""Stages: one procedure for one stream and frame size, and the trials that it asks for.

A stage runs every trial, keeps it in the journal, finds it there again when a killed run goes on, runs an invalid one
again, and counts what was lost.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from routecast import __version__
from routecast.benchmark.journal import Journal, TrialRecord
from routecast.benchmark.streams import Stream, load_of, quiet_after, sending_ports, theoretical_pps
from routecast.errors import DeviceEnded, EnvironmentProblem, RoutecastError
from routecast.evaluate.protocol import Evaluator, Resettable
from routecast.evaluate.trial import Trial
from routecast.load.offered import OfferedLoad, RateStep
from routecast.quantity.schema import value
from routecast.testbed.checks import disturbances

if TYPE_CHECKING:
    from routecast.benchmark.profile import Profile

__all__ = ["Counts", "InvalidTrial", "Stage", "counts_of"]

UNSENT_TOLERANCE = 1e-3
"""Share of the intended frames that may be unsent before it counts: the achieved rate is held to it."""

_HALF_A_GAP = 0.5
_AFTER_A_FAILURE_S = 1.0
_AFTER_OTHER_WORK_S = 0.2
_ATTEMPTS_OF_A_BURST = 4
_COLD = 0.5
"""Of its greatest rate, what a tester of software reaches from the first frame of a short burst on."""
_SLOWER = 0.8


class InvalidTrial(RoutecastError):
    """A trial stayed invalid after all attempts: it is no result, and neither is what rests on it."""

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
    """Frames of one trial, all ports together; a closed form's are its rates over the trial."""

    offered: int
    lost: int
    unsent: int = 0

    @property
    def loss_ratio(self) -> float:
        """Lost and unsent frames over the frames that were intended (as MLRsearch counts)."""
        whole = self.offered + self.unsent
        return (self.lost + self.unsent) / whole if whole else 0.0


def counts_of(trial: Trial, duration_s: float) -> Counts:
    """Count a trial's frames; those in flight at its end are not lost (S12)."""
    intended = trial.intended_pps * duration_s
    if trial.offered_frames is None:
        offered = trial.offered_pps * duration_s
        # A closed form's loss below capacity is a rounding error, or far less than a frame.
        lost = trial.least_loss_ratio * offered if trial.least_loss_ratio > 1e-9 else 0.0
        counted = (round(offered), round(lost))
    else:
        counted = (trial.offered_frames, trial.dropped_frames or 0)
    missing = intended - counted[0]
    unsent = round(missing) if missing > UNSENT_TOLERANCE * intended + 2.0 else 0
    return Counts(offered=counted[0], lost=counted[1], unsent=unsent)


@dataclass(slots=True, kw_only=True)
class Stage:
    """One procedure for one stream and frame size.

    ``frame_bytes``: of a mix the mean; ``evaluator``: ready for the stream; ``identity``: text that changes with all
    that decides a trial, the load and its place in the run apart; ``records``: where every trial is entered, shared by
    all stages of a run; ``on_trial``: told the seconds of each finished trial, whether it comes from the journal, and
    what it was for; ``most_pps``: the greatest rate that the tester itself reaches, all ports together; the theoretical
    maximum at first; ``burst_pps``: the greatest rate at which it sends a short burst from its first frame on;
    likewise; ``failures``: what the tester said when it failed and was asked again.
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
    on_trial: Callable[[float, bool, str], None] = field(default=lambda seconds, known, purpose: None)
    most_pps: float = math.inf
    burst_pps: float = math.inf
    count: int = 0
    failures: list[str] = field(default_factory=list)

    @property
    def ports(self) -> int:
        """Ports that send."""
        return sending_ports(self.stream)

    @property
    def theoretical_pps(self) -> float:
        """Theoretical maximum of the medium, all ports (sec. 20)."""
        return theoretical_pps(self.stream, self.frame_bytes, self.link_bps)

    @property
    def maximum_pps(self) -> float:
        """Greatest rate that can be offered: the medium's, or the tester's own where that is less."""
        return min(self.theoretical_pps, self.most_pps)

    @property
    def is_counting(self) -> bool:
        """Whether the last trial was counted frame by frame, as opposed to a closed form."""
        return bool(self.records) and self.records[-1].trial.offered_frames is not None

    def load(self, rate_pps: float, *steps: RateStep) -> OfferedLoad:
        """Return the stream's load at a rate."""
        return load_of(self.stream, self.frame_bytes, rate_pps, flows=self.flows, steps=steps)

    def trial(self, rate_pps: float, duration_s: float, purpose: str, *steps: RateStep, attempts: int = 0) -> Trial:
        """Run one trial until it is valid; as often as the profile says, or ``attempts`` times.

        Raises InvalidTrial: it stayed invalid.
        """
        load = self.load(rate_pps, *steps)

        def run() -> Trial:
            return self.evaluator.trial(load, duration_s)

        return self._valid(load, duration_s, purpose, run, attempts=attempts)

    def reset_trial(self, rate_pps: float, duration_s: float, purpose: str, *, kind: str, at_s: float) -> Trial:
        """Run one trial during which the router is reset.

        Raises InvalidTrial: it stayed invalid.
        """
        evaluator = self.evaluator
        assert isinstance(evaluator, Resettable)
        load = self.load(rate_pps)

        def run() -> Trial:
            return evaluator.reset_trial(load, duration_s, kind=kind, at_s=at_s)

        return self._valid(load, duration_s, purpose, run, reset=f"{kind}@{at_s!r}")

    def burst(self, frames: int, purpose: str, *, residual_s: float, least_pps: float) -> Counts:
        """Send a burst at the maximum rate, all ports together, and count it (RFC 9004 sec. 6).

        The burst is a trial at the maximum rate for as long as it takes. The tester waits for residual frames by
        itself; a simulated trial goes on without traffic instead. A tester of software reaches its greatest rate only
        after a while: where it cannot send the burst evenly, this burst and all later ones are sent slower, down to
        ``least_pps``.

        Raises InvalidTrial: it cannot be sent at ``least_pps`` either.
        """
        if math.isinf(self.burst_pps):
            is_slower = self.most_pps < self.theoretical_pps
            self.burst_pps = max(_COLD * self.most_pps, least_pps) if is_slower else self.theoretical_pps
        while True:
            # Half a gap less than the burst, so that rounding adds no frame.
            length_s = (frames - _HALF_A_GAP * self.ports) / self.burst_pps
            try:
                if self.records and self.records[-1].trial.evaluator == "simulate":
                    quiet = quiet_after(length_s)
                    trial = self.trial(self.burst_pps, length_s + residual_s, purpose, quiet)
                else:
                    trial = self.trial(self.burst_pps, length_s, purpose, attempts=_ATTEMPTS_OF_A_BURST)
            except InvalidTrial:
                if self.burst_pps * _SLOWER < least_pps:
                    raise
                self.burst_pps *= _SLOWER
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
                time.sleep(_AFTER_OTHER_WORK_S * attempt)
        raise InvalidTrial(trial.invalid, trial, attempts)

    def _once(
        self, load: OfferedLoad, duration_s: float, purpose: str, attempt: int, run: Callable[[], Trial], reset: str
    ) -> Trial:
        self.count += 1
        key = self._key(load, duration_s, reset)
        trial = self.journal.find(key)
        is_known = trial is not None
        if trial is None:
            reseed = getattr(self.evaluator, "reseed", None)
            if reseed is not None:
                reseed(int(key[:12], 16))
            trial = self._answered(run)
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
        if not is_known:
            self.journal.add(key, record)
        self.on_trial(duration_s, is_known, purpose)
        return trial

    def _answered(self, run: Callable[[], Trial]) -> Trial:
        """Ask again where the tester itself failed, as often as for an invalid trial: other work can starve it.

        Raises DeviceEnded: the device is gone, which no further attempt mends: it is not asked again.
        """
        for _ in range(self.profile.trial.attempts - 1):
            try:
                return run()
            except DeviceEnded:
                raise
            except EnvironmentProblem as problem:
                self.failures.append(str(problem))
                time.sleep(_AFTER_A_FAILURE_S)
        return run()

    def _key(self, load: OfferedLoad, duration_s: float, reset: str) -> str:
        decisive = (__version__, self.identity, self.procedure, self.stream, self.frame_bytes, self.count)
        settings = (load.rate_pps, load.steps, len(load.flows.flows), duration_s, reset)
        return hashlib.sha256(repr((*decisive, *settings)).encode()).hexdigest()[:24]
