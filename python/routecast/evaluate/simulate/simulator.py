"""The simulating evaluator: what happens to each frame (semantics S3-S12).

This file turns a router model and a load into the scenario of the compiled core, and the core's outcome into a
:class:`~routecast.evaluate.trial.Trial`. The simulation itself is in ``crates/sim``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from routecast.errors import ModelProblem, Problem, TransientProblem
from routecast.evaluate.simulate.outcome import trial_of
from routecast.evaluate.simulate.scenario import run_of, scenario_of
from routecast.evaluate.trial import Trial
from routecast.load.offered import OfferedLoad
from routecast.router.check_events import check_events
from routecast.router.check_load import check_load
from routecast.router.events import Event
from routecast.router.model import RouterModel

__all__ = ["FrameFate", "Message", "Simulate", "Trace"]

_MOST_FRAMES = 50_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message between a task unit and a resource manager (paper 000, sec. IV-C.3): REQ, REP, REL or REV."""

    at_s: float
    kind: Literal["REQ", "REP", "REL", "REV"]
    task: str
    pool: str
    unit: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameFate:
    """What became of a frame: when its last bit came in, when it left or was dropped, and where (empty: forwarded)."""

    number: int
    arrival_s: float
    end_s: float
    dropped_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A small run in full: the trial, the messages and the fate of each frame."""

    trial: Trial
    messages: tuple[Message, ...]
    fates: tuple[FrameFate, ...]


@dataclass(frozen=True, slots=True)
class Simulate:
    """Evaluator ``"simulate"`` for a router model.

    Parameters
    ----------
    model : RouterModel
    seed : int
        Seed of all random streams; one seed gives one trace (S8).
    replications : int
        Independent replications, run on all cores; the intervals of one come from batch means (S10).
    path : {"auto", "recursion", "events"}
        ``auto`` uses Lindley's recursion where the model allows it and events for the rest; both give the same trace.
    target_relative_half_width : float or None
        Add replications until the 95 % half-width of the mean latency is at most this share of it.
    most_replications : int
        Where that ends.
    steady_state : bool
        Refuse a trial whose transient has not ended (default). A trial that is not refused is measured after its
        transient either way.
    per_flow : bool
        Count the frames of each flow (:attr:`~routecast.evaluate.trial.Trial.flows`), as :meth:`trace` always does.
        It slows the fastest path, frames through plain queues, by a fifth. With events it is always done.
    over_time : bool
        Keep the rates of each thousandth of the trial (:attr:`~routecast.evaluate.trial.Trial.over_time`). With events
        it is always done.
    events : tuple of Event
        What happens to the router meanwhile: task units that fail and come back, routes that change. That is a
        transient, and asked for: all of the trial counts, from the empty router on, and no steady state is required.
    on_progress : callable or None
        Called about every 50 ms with the finished share, 0..1.

    Examples
    --------
    An M/D/1 queue at load 0.5 makes a frame wait half a service time (Pollaczek and Khinchine).

    >>> from routecast.load import Arrivals, OfferedLoad
    >>> from routecast.router import ServiceCost, multicore
    >>> router = multicore(1, ServiceCost(per_packet_s=1e-6), link_bps=1e15)
    >>> load = OfferedLoad(rate_pps=0.5e6, arrivals=Arrivals.poisson())
    >>> trial = Simulate(router, seed=1).trial(load, duration_s=1.0)
    >>> round(trial.waiting.mean_s * 1e6, 1)
    0.5
    """

    model: RouterModel
    seed: int = 1
    replications: int = 1
    path: Literal["auto", "recursion", "events"] = "auto"
    target_relative_half_width: float | None = None
    most_replications: int = 64
    steady_state: bool = True
    per_flow: bool = False
    over_time: bool = False
    events: tuple[Event, ...] = ()
    on_progress: Callable[[float], object] | None = None

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        """Simulate ``load`` for ``duration_s`` seconds of the router's time.

        Raises
        ------
        routecast.errors.ModelProblem
            The load does not fit the router, or a setting is out of range.
        routecast.errors.TransientProblem
            The duration is too short to pass the transient; the error says what would do.
        """
        outcome = self._outcome(load, duration_s)
        return trial_of(self.model, load, duration_s, outcome, events=self.events)

    def trace(self, load: OfferedLoad, duration_s: float, *, message_limit: int = 100_000) -> Trace:
        """Simulate a small run and keep what happened to each frame and each resource message.

        Raises
        ------
        routecast.errors.ModelProblem
            As :meth:`trial`; the transient is not required to end.
        """
        # Messages are sent where units are managed: by events. The fates are the same either way.
        path = "events" if self.path == "auto" else self.path
        whole = replace(self, steady_state=False, replications=1, target_relative_half_width=None, path=path)
        outcome = whole._outcome(load, duration_s, keep_frames=True, message_limit=message_limit)
        tasks, pools = [task.name for task in self.model.tasks], [pool.name for pool in self.model.pools]
        nodes = [*tasks, *(f"{port.name} out" for port in self.model.ports)]
        return Trace(
            trial=trial_of(self.model, load, duration_s, outcome, events=self.events),
            messages=tuple(
                Message(
                    at_s=row["at_s"],
                    kind=row["kind"],
                    task=tasks[row["task"]],
                    pool=pools[row["pool"]],
                    unit=row["unit"],
                )
                for row in outcome["messages"]
            ),
            fates=tuple(
                FrameFate(
                    number=row["seq"],
                    arrival_s=row["arrival_ps"] * 1e-12,
                    end_s=row["end_ps"] * 1e-12,
                    dropped_at="" if row["dropped_at"] is None else nodes[row["dropped_at"]],
                )
                for row in outcome["fates"]
            ),
        )

    def _outcome(
        self, load: OfferedLoad, duration_s: float, *, keep_frames: bool = False, message_limit: int = 0
    ) -> dict[str, Any]:
        from routecast import _core  # the compiled part is loaded where it is used

        self._check(load, duration_s)
        check_events(self.model, self.events, duration_s)
        check_load(self.model, load, self.events)
        scenario = scenario_of(self.model, load)
        scenario["run"] = run_of(
            self.model,
            duration_s,
            seed=self.seed,
            path=self.path,
            keep_frames=keep_frames,
            per_flow=self.per_flow or keep_frames or bool(self.events),
            over_time=self.over_time or bool(self.events),
            message_limit=message_limit,
            steady_state=self.steady_state,
            events=self.events,
        )
        try:
            text = _core.simulate(
                json.dumps(scenario),
                replications=self.replications,
                target_relative_half_width=self.target_relative_half_width,
                most=self.most_replications,
                progress=self.on_progress,
            )
        except _core.SimulationError as error:
            kind, message, ran_s, needed_s = error.args
            if kind == "transient":
                raise TransientProblem(ran_s, needed_s, message) from None
            named = re.sub(
                r"task unit (\d+)", lambda found: f'"{self.model.tasks[int(found[1])].name}"', message
            )
            raise ModelProblem(f"router {self.model.name!r}", [Problem("", named)]) from None
        outcome: dict[str, Any] = json.loads(text)
        return outcome

    def _check(self, load: OfferedLoad, duration_s: float) -> None:
        problems = []
        if not (math.isfinite(duration_s) and 1e-9 <= duration_s <= 1e6):
            problems.append(Problem("duration_s", f"got {duration_s}: give 1e-9 to 1e6 seconds"))
        elif load.rate_pps * duration_s > _MOST_FRAMES:
            frames = load.rate_pps * duration_s
            problems.append(
                Problem(
                    "duration_s",
                    f"means {frames:.3g} frames; at most {_MOST_FRAMES:.0e} can be simulated at once",
                )
            )
        if not 0 <= self.seed < 2**64:
            problems.append(Problem("seed", f"got {self.seed}: a whole number from 0 to 2^64 − 1"))
        for name, value in (
            ("replications", self.replications),
            ("most_replications", self.most_replications),
        ):
            if not 1 <= value <= 10_000:
                problems.append(Problem(name, f"got {value}: a whole number from 1 to 10,000"))
        target = self.target_relative_half_width
        if target is not None and not 0.0 < target < 1.0:
            problems.append(Problem("target_relative_half_width", f"got {target}: a share between 0 and 1"))
        if problems:
            raise ModelProblem("simulation", problems)
