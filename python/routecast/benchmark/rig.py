"""Rigs: where a benchmark gets its evaluator from, for each kind of test stream.

A rig is a model and the evaluator that answers for it, or a test bed with a device under test. The procedures know
neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Literal, Protocol, Self

from routecast.benchmark.outage import Outage
from routecast.benchmark.streams import Stream
from routecast.evaluate.protocol import Evaluator
from routecast.evaluate.trial import Trial
from routecast.load.offered import OfferedLoad
from routecast.quantity.schema import value
from routecast.router.model import RouterModel

__all__ = ["ModelRig", "PlainRig", "Rig", "TrialPhases", "medium_of"]


@value
class TrialPhases:
    """The waits of RFC 2544 sec. 23 in seconds: before a trial, for residual frames, until the device has settled."""

    before_s: float
    residual_s: float
    settle_s: float


class Rig(Protocol):
    """What a benchmark runs on."""

    @property
    def title(self) -> str:
        """How reports call the device."""
        ...

    @property
    def kind(self) -> Literal["measure", "simulate", "solve", "other"]:
        """Who answers."""
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
        """A text that changes with everything that decides a trial's result, the load apart."""
        ...

    def refuses(self, stream: Stream) -> str:
        """Say why this rig cannot run a stream; empty if it can."""
        ...

    def prepared(self, stream: Stream, phases: TrialPhases) -> AbstractContextManager[Evaluator]:
        """Return the evaluator for a stream, ready while the context lasts."""
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
        """Undo what the run has made."""
        ...


class _NothingToUndo:
    """A rig that makes nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave everything as it is."""


@dataclass(frozen=True, kw_only=True)
class PlainRig(_NothingToUndo):
    """Any evaluator with two ports of the same link, such as a fake in a test."""

    evaluator: Evaluator
    link: float
    title: str = "evaluator"
    kind: Literal["measure", "simulate", "solve", "other"] = "other"

    @property
    def link_bps(self) -> tuple[float, ...]:
        """Both links."""
        return (self.link, self.link)

    @property
    def medium(self) -> str:
        """The medium in words."""
        return medium_of(self.link_bps, virtual=True)

    @property
    def identity(self) -> str:
        """The evaluator's class and link: what a fake does is its own affair."""
        return f"{type(self.evaluator).__qualname__}/{self.link}"

    def refuses(self, stream: Stream) -> str:
        """Refuse packet filters."""
        return "this evaluator has no packet filter to configure" if stream.modifier else ""

    @contextmanager
    def prepared(self, stream: Stream, phases: TrialPhases) -> Iterator[Evaluator]:
        """Return the evaluator as it is."""
        yield self.evaluator

    def device(self) -> Mapping[str, object]:
        """No facts."""
        return {}

    def tester(self) -> Mapping[str, object]:
        """No facts."""
        return {}


@dataclass(frozen=True, kw_only=True)
class ModelRig(_NothingToUndo):
    """A router model, answered by the closed form or by the simulator.

    Parameters
    ----------
    model : RouterModel
    with_ : {"simulate", "solve"}
    seed : int
        Of the simulator; each trial draws its own stream from it.
    outages_s : mapping of str to float
        Resets of stated length that the model is given (RFC 6201), by kind.
    """

    model: RouterModel
    with_: Literal["simulate", "solve"]
    seed: int = 1
    outages_s: Mapping[str, float] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The model's name."""
        return f"model {self.model.name}"

    @property
    def kind(self) -> Literal["measure", "simulate", "solve", "other"]:
        """The evaluator's name."""
        return self.with_

    @property
    def link_bps(self) -> tuple[float, ...]:
        """Rate of each port's link."""
        return tuple(port.link_bps for port in self.model.ports)

    @property
    def medium(self) -> str:
        """The medium in words."""
        return medium_of(self.link_bps, virtual=True)

    @property
    def identity(self) -> str:
        """The model and all that the evaluator depends on."""
        return repr((self.model, self.with_, self.seed, sorted(self.outages_s.items())))

    def refuses(self, stream: Stream) -> str:
        """Refuse what a model does not know."""
        if stream.modifier:
            return "a model has no packet filter to configure: describe the filtering router as a model of its own"
        if stream.protocol == "IPv6":
            return "a model knows frames, not protocols: IPv6 is the same model with another service cost"
        return ""

    @contextmanager
    def prepared(self, stream: Stream, phases: TrialPhases) -> Iterator[Evaluator]:
        """Return the evaluator; a model needs no pauses."""
        if self.with_ == "solve":
            from routecast.evaluate.solve import Solve

            yield Solve(model=self.model)
        else:
            yield Outage(evaluator=_Reseeded(model=self.model, seed=self.seed), lengths_s=self.outages_s)

    def device(self) -> Mapping[str, object]:
        """Return the model as data."""
        from routecast.evaluate.plain import plain

        return {"router": self.model.name, "model": plain(self.model)}

    def tester(self) -> Mapping[str, object]:
        """Say that there is none."""
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

        # Searches overload on purpose: such a trial does not settle, and its counts are right all the same.
        seed = (self.seed * 0x9E3779B97F4A7C15 + self.trial_seed) % 2**63
        trial = Simulate(self.model, seed=seed, steady_state=False).trial(load, duration_s)
        return replace(trial, notes=())


def medium_of(link_bps: tuple[float, ...], *, virtual: bool) -> str:
    """Write the medium: ``"Ethernet, 10 Gbit/s (virtual)"``."""
    from routecast.quantity import format_bps

    rates = " and ".join(dict.fromkeys(format_bps(rate) for rate in link_bps[:2]))
    return f"Ethernet, {rates}" + (" (virtual)" if virtual else "")
