"""Rigs, which give a benchmark the evaluator for each kind of test stream.

A rig is a model with its evaluator, or a test bed with a device under test. The procedures depend on no kind of rig.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Literal, Protocol, Self

from routecast.errors import ModelProblem, Problem
from routecast.evaluate.plain import plain
from routecast.evaluate.protocol import Evaluator
from routecast.evaluate.trial import Trial
from routecast.lab.benchmark.streams import SECTIONS, Stream
from routecast.lab.benchmark.values import TrialProfile
from routecast.load.offered import OfferedLoad
from routecast.quantity import format_bps
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import field, value
from routecast.router.model import RouterModel

__all__ = ["ModelRig", "Outage", "PlainRig", "Rig", "RigKind", "medium_of"]

RigKind = Literal["measure", "simulate", "solve", "other"]


class Rig(Protocol):
    """A device under test, or a model of one, with its tester."""

    @property
    def title(self) -> str:
        """Title of the device in reports."""
        ...

    @property
    def kind(self) -> RigKind:
        """Kind of the evaluator."""
        ...

    @property
    def link_bps(self) -> tuple[float, ...]:
        """Rate of each port's link."""
        ...

    @property
    def medium(self) -> str:
        """The medium in words."""
        ...

    @property
    def identity(self) -> str:
        """Text that changes with every condition of a trial's result except the load."""
        ...

    def refuses(self, stream: Stream) -> str:
        """Return the reason that this rig cannot run a stream; empty if it can."""
        ...

    def prepared(self, stream: Stream, phases: TrialProfile) -> AbstractContextManager[Evaluator]:
        """Return a context with the evaluator for a stream."""
        ...

    @property
    def no_floor(self) -> str:
        """Reason that no wire without a device can be measured; empty if it can."""
        ...

    def floor(self, stream: Stream, phases: TrialProfile) -> Evaluator:
        """Return the evaluator of a wire without a device for the same stream, while the stream is prepared."""
        ...

    def device(self) -> Mapping[str, object]:
        """Facts of the device under test (RFC 2544 sec. 7)."""
        ...

    def tester(self) -> Mapping[str, object]:
        """Facts of the tester."""
        ...

    def __enter__(self) -> Self:
        """Begin a run."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove everything that the run set up."""
        ...


class _VirtualRig:
    """A rig of virtual links without a machine, which has no wire to measure and nothing to remove."""

    @property
    def link_bps(self) -> tuple[float, ...]:
        """Rate of each port's link."""
        raise NotImplementedError

    @property
    def medium(self) -> str:
        """The medium in words."""
        return medium_of(self.link_bps, virtual=True)

    @property
    def no_floor(self) -> str:
        """Reason that no floor can be measured: there is no machine."""
        return "there is no machine that loses frames: nothing is sent over a wire"

    def floor(self, stream: Stream, phases: TrialProfile) -> Evaluator:
        """Refuse."""
        raise NotImplementedError(self.no_floor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove nothing."""


@dataclass(frozen=True, kw_only=True)
class PlainRig(_VirtualRig):
    """Any evaluator with two ports of the same link, such as a fake in a test."""

    evaluator: Evaluator
    link: float
    title: str = "evaluator"
    kind: RigKind = "other"
    wire: Evaluator | None = None

    @property
    def no_floor(self) -> str:
        """Reason that no floor can be measured; empty with a ``wire``."""
        return "" if self.wire is not None else super().no_floor

    def floor(self, stream: Stream, phases: TrialProfile) -> Evaluator:
        """Return the wire."""
        return self.wire if self.wire is not None else super().floor(stream, phases)

    @property
    def link_bps(self) -> tuple[float, ...]:
        """Rates of both links."""
        return (self.link, self.link)

    @property
    def identity(self) -> str:
        """The evaluator's class and link."""
        return f"{type(self.evaluator).__qualname__}/{self.link}"

    def refuses(self, stream: Stream) -> str:
        """Refuse packet filters and frames beside the stream."""
        if stream.modifier in SECTIONS:
            return f"this evaluator sends no frames beside the test stream ({stream.modifier})"
        return "this evaluator has no packet filter to configure" if stream.modifier else ""

    @contextmanager
    def prepared(self, stream: Stream, phases: TrialProfile) -> Iterator[Evaluator]:
        """Return the evaluator as it is."""
        yield self.evaluator

    def device(self) -> Mapping[str, object]:
        """No facts."""
        return {}

    def tester(self) -> Mapping[str, object]:
        """No facts."""
        return {}


@dataclass(frozen=True, kw_only=True)
class ModelRig(_VirtualRig):
    """A router model with the closed form or the simulator as its evaluator."""

    model: RouterModel
    with_: Literal["simulate", "solve"]
    seed: int = field("Seed of the simulator, from which each trial draws its own stream.", default=1)
    outages_s: Mapping[str, float] = field("Length of the model's resets (RFC 6201), by kind.", default_factory=dict)

    @property
    def title(self) -> str:
        """The model's name."""
        return f"model {self.model.name}"

    @property
    def kind(self) -> RigKind:
        """The evaluator's name."""
        return self.with_

    @property
    def link_bps(self) -> tuple[float, ...]:
        """Rate of each port's link."""
        return tuple(port.link_bps for port in self.model.ports)

    @property
    def identity(self) -> str:
        """The model, its evaluator and their parameters."""
        return repr((self.model, self.with_, self.seed, sorted(self.outages_s.items())))

    def refuses(self, stream: Stream) -> str:
        """Refuse streams that a model cannot represent."""
        if stream.modifier in SECTIONS:
            return f"a model knows no frames beside the test stream ({stream.modifier}): run it on a test bed"
        if stream.modifier:
            return "a model has no packet filter to configure: describe the filtering router as a model of its own"
        if stream.protocol == "IPv6":
            return "a model knows frames, not protocols: IPv6 is the same model with another service cost"
        return ""

    @contextmanager
    def prepared(self, stream: Stream, phases: TrialProfile) -> Iterator[Evaluator]:
        """Return the evaluator; a model needs no pauses."""
        if self.with_ == "solve":
            from routecast.evaluate.solve import Solve

            yield Solve(model=self.model)
        else:
            yield Outage(evaluator=_Reseeded(model=self.model, seed=self.seed), lengths_s=self.outages_s)

    def device(self) -> Mapping[str, object]:
        """Return the model as data."""
        return {"router": self.model.name, "model": plain(self.model)}

    def tester(self) -> Mapping[str, object]:
        """Return that a model has no tester, and the seed."""
        facts: dict[str, object] = {"tester": "none: the load is offered to the model"}
        return facts | ({"seed": self.seed} if self.with_ == "simulate" else {})


@dataclass(slots=True)
class _Reseeded:
    """The simulator, each trial with the seed that :meth:`reseed` set for it, so that repetitions differ."""

    model: RouterModel
    seed: int
    trial_seed: int = 0

    def reseed(self, number: int) -> None:
        self.trial_seed = number

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        from routecast.evaluate.simulate import Simulate

        # Searches overload on purpose. Such a trial does not settle, but its counts are right.
        seed = (self.seed * 0x9E3779B97F4A7C15 + self.trial_seed) % 2**63
        trial = Simulate(self.model, seed=seed, steady_state=False).trial(load, duration_s)
        return replace(trial, notes=())


def medium_of(link_bps: tuple[float, ...], *, virtual: bool) -> str:
    """Write the medium: ``"Ethernet, 10 Gbit/s (virtual)"``."""
    rates = " and ".join(dict.fromkeys(format_bps(rate) for rate in link_bps[:2]))
    return f"Ethernet, {rates}" + (" (virtual)" if virtual else "")


@value
class Outage:
    """An evaluator with resets of a known length, which lets the reset procedure run on a model (RFC 6201).

    The router goes down, loses the frames that it holds, and comes up again. The procedure must measure the length,
    plus the frames that waited in the queues when the router went down, and those that arrive while it fills again.

    ::

        ── trial before ──┐ down: every frame is lost ┌── trial after, from an empty router ──
                         at_s                    at_s + length

    Raises
    ------
    routecast.errors.ModelProblem
        A length is not a finite number of seconds >= 0.
    """

    evaluator: Evaluator = field("Evaluator of the time before and after.")
    lengths_s: Mapping[str, float] = field("Seconds that the router is down, by kind of reset.")

    def __post_init__(self) -> None:
        problems = [
            Problem(kind, f"got {length}: an outage has a finite length, 0 s or more")
            for kind, length in self.lengths_s.items()
            if not (math.isfinite(length) and length >= 0.0)
        ]
        if problems:
            raise ModelProblem("outages", problems)

    @property
    def reset_kinds(self) -> tuple[str, ...]:
        """Kinds of reset that have a length."""
        return tuple(self.lengths_s)

    def reseed(self, number: int) -> None:
        """Pass a trial's number to a simulator."""
        reseed = getattr(self.evaluator, "reseed", None)
        if reseed is not None:
            reseed(number)

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        """Return the evaluator's trial."""
        return self.evaluator.trial(load, duration_s)

    def reset_trial(self, load: OfferedLoad, duration_s: float, *, kind: str, at_s: float) -> Trial:
        """Return a trial during which the router is down once.

        Raises ModelProblem: the kind is unknown, the reset is not within the trial, or the evaluator does not count
        frames.
        """
        if kind not in self.lengths_s:
            message = f"no reset {kind!r}: {did_you_mean(kind, self.lengths_s)}"
            raise ModelProblem("reset", [Problem("kind", message)])
        down_s = self.lengths_s[kind]
        if not 0.0 < at_s < at_s + down_s < duration_s:
            message = f"a reset of {down_s:g} s at {at_s:g} s is not within a trial of {duration_s:g} s"
            raise ModelProblem("reset", [Problem("at_s", message)])
        before = self.evaluator.trial(load, at_s)
        after = self.evaluator.trial(load, duration_s - at_s - down_s)
        counts = (before.offered_frames, after.offered_frames)
        if None in counts or before.in_flight_frames is None:
            message = "a reset is counted frame by frame, which a closed form does not; use simulate"
            raise ModelProblem("reset", [Problem("", message)])
        return _joined(before, after, duration_s=duration_s, at_s=at_s, down_s=down_s)


def _joined(before: Trial, after: Trial, *, duration_s: float, at_s: float, down_s: float) -> Trial:
    """Return both parts as one trial, which lost the frames inside at the reset and those of the outage."""
    # The load is steady, so the frames of the outage come at the rate of the trial before.
    missed = round((before.offered_frames or 0) / at_s * down_s)
    held = before.in_flight_frames or 0
    offered = (before.offered_frames or 0) + missed + (after.offered_frames or 0)
    forwarded = (before.forwarded_frames or 0) + (after.forwarded_frames or 0)
    dropped = (before.dropped_frames or 0) + held + missed + (after.dropped_frames or 0)
    rate_pps = offered / duration_s
    share = forwarded / duration_s / after.forwarded_pps if after.forwarded_pps > 0.0 else 0.0
    last_s = at_s + down_s + (after.last_loss_s if math.isfinite(after.last_loss_s) else 0.0)
    first_s = before.first_loss_s if math.isfinite(before.first_loss_s) else at_s - held / rate_pps
    return replace(
        after,
        duration_s=duration_s,
        measured_s=duration_s,
        offered_pps=rate_pps,
        forwarded_pps=forwarded / duration_s,
        loss_ratio=dropped / offered if offered else 0.0,
        l1_bps=after.l1_bps * share,
        l2_bps=after.l2_bps * share,
        offered_frames=offered,
        forwarded_frames=forwarded,
        dropped_frames=dropped,
        in_flight_frames=after.in_flight_frames or 0,
        drops_pps={**after.drops_pps, "outage": (missed + held) / duration_s},
        first_loss_s=first_s,
        last_loss_s=last_s,
        interval={},
        notes=(*after.notes, f"down for {down_s:g} s from {at_s:g} s on; {held:,} frames inside were lost"),
    )
