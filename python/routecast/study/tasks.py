"""Tasks: the trials that a study is made of, each known by a hash of everything that decides its result."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache

from routecast import __version__
from routecast.evaluate.ledger import Columns, Row
from routecast.evaluate.protocol import Evaluator
from routecast.evaluate.trial import Trial
from routecast.load.arrivals import Arrivals
from routecast.load.flows import FlowSet
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad, line_rate_pps
from routecast.router.model import RouterModel

__all__ = ["COLUMNS", "Row", "Task", "Workload", "run_task"]

COLUMNS: Columns = {
    **dict.fromkeys(("task", "law", "evaluator"), "text"),
    "cores": "whole",
    "ports": "whole",
    "link_bps": "number",
    **dict.fromkeys(("flows", "frame_bytes", "seed", "flow_seed"), "whole"),
    **dict.fromkeys(("duration_s", "intended_pps", "offered_pps", "forwarded_pps"), "number"),
    **dict.fromkeys(("loss_ratio", "l1_bps", "l2_bps"), "number"),
    **dict.fromkeys(("offered_frames", "forwarded_frames", "dropped_frames", "in_flight_frames"), "whole"),
    "latency_mean_s": "number",
    **dict.fromkeys(("bottleneck_kind", "bottleneck", "bottleneck_reason"), "text"),
}
"""Columns of ``results.parquet``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A router's size and what it is loaded with: full line rate on every port, split evenly over the flows.

    Up to as many flows as cores are crafted to fall on different cores; more are random, and the NIC's hash spreads
    them (paper 000, sec. VI-A.1).
    """

    cores: int
    ports: int
    link_bps: float
    flows: int
    frame_bytes: int

    @property
    def is_crafted(self) -> bool:
        """Whether each flow has a core of its own."""
        return self.flows <= self.cores

    @property
    def busy_cores(self) -> int:
        """Cores that have work."""
        return min(self.flows, self.cores)

    @property
    def line_rate_pps(self) -> float:
        """Frames per second that the ports with a flow can take in together."""
        return min(self.ports, self.flows) * line_rate_pps(self.link_bps, self.frame_bytes)

    def load(self, flow_seed: int) -> OfferedLoad:
        """Return the offered load; ``flow_seed`` draws the random flows."""
        return OfferedLoad(
            rate_pps=self.ports * line_rate_pps(self.link_bps, self.frame_bytes),
            frames=FrameMix.fixed(self.frame_bytes),
            flows=_flows(self.flows, self.ports, None if self.is_crafted else flow_seed),
            arrivals=Arrivals.cbr(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One trial: a law's model under a workload, answered by one evaluator."""

    law: str
    evaluator: str
    workload: Workload
    model: RouterModel
    duration_s: float
    seed: int
    flow_seed: int

    @property
    def key(self) -> str:
        """Hash of all that decides the result, the package's version included."""
        decisive = (__version__, self.law, self.evaluator, self.workload, self.model, self.duration_s)
        seed = self.seed if self.evaluator == "simulate" else None
        flow_seed = None if self.workload.is_crafted else self.flow_seed
        return hashlib.sha256(repr((*decisive, seed, flow_seed)).encode()).hexdigest()[:24]


@lru_cache
def _flows(count: int, ports: int, seed: int | None) -> FlowSet:
    """Return crafted flows, or random ones where there is a seed."""
    if seed is None:
        return FlowSet.crafted(count, ports=ports)
    return FlowSet.random(count, seed=seed, ports=ports)


def run_task(key: str, task: Task) -> Row:
    """Run one trial and return its line of the results, entered under ``key``."""
    trial = _evaluator(task).trial(task.workload.load(task.flow_seed), task.duration_s)
    return {"task": key, "law": task.law, **_workload_cells(task), **_trial_cells(trial)}


def _evaluator(task: Task) -> Evaluator:
    if task.evaluator == "solve":
        from routecast.evaluate.solve import Solve  # each study pays for the evaluators it uses

        return Solve(model=task.model)
    from routecast.evaluate.simulate import Simulate

    # Overload is asked for its throughput, which settles long before the latency of a filling queue does.
    return Simulate(task.model, seed=task.seed, steady_state=False)


def _workload_cells(task: Task) -> Row:
    load = task.workload
    return {
        "evaluator": task.evaluator,
        "cores": load.cores,
        "ports": load.ports,
        "link_bps": load.link_bps,
        "flows": load.flows,
        "frame_bytes": load.frame_bytes,
        "seed": task.seed,
        "flow_seed": task.flow_seed,
        "duration_s": task.duration_s,
    }


def _trial_cells(trial: Trial) -> Row:
    return {
        "intended_pps": trial.intended_pps,
        "offered_pps": trial.offered_pps,
        "forwarded_pps": trial.forwarded_pps,
        "loss_ratio": trial.loss_ratio,
        "l1_bps": trial.l1_bps,
        "l2_bps": trial.l2_bps,
        "offered_frames": trial.offered_frames,
        "forwarded_frames": trial.forwarded_frames,
        "dropped_frames": trial.dropped_frames,
        "in_flight_frames": trial.in_flight_frames,
        "latency_mean_s": trial.latency.mean_s if trial.latency else None,
        "bottleneck_kind": trial.bottleneck.kind,
        "bottleneck": trial.bottleneck.name,
        "bottleneck_reason": trial.bottleneck.reason,
    }
