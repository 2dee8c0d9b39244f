"""What the cable between two servers carries of the load, by what is on each of them."""

from __future__ import annotations

import math

from routecast.load.offered import line_rate_pps
from routecast.plan.placement.classes import Classes
from routecast.plan.placement.columns import Column
from routecast.plan.placement.model import PlacementProblem
from routecast.plan.placement.stages import stages_of

__all__ = ["cable_pps"]


def cable_pps(problem: PlacementProblem, classes: Classes, one: Column, other: Column) -> float:
    """Return the load that fills the cable from a server with one column to a server with another."""
    hosts = classes.hosts
    here, there = classes.by_group(one.counts), classes.by_group(other.counts)
    share_pps = 0.0
    for chain, share in zip(problem.chains, problem.shares, strict=True):
        ours, theirs = (stages_of(problem, chain, share, counts) for counts in (here, there))
        for j in range(len(chain.stages) - 1):
            sent = ours[j].here * ours[j].arrival * ours[j].to_elsewhere
            taken = theirs[j + 1].here * theirs[j + 1].from_elsewhere
            if sent <= 0.0 or taken <= 0.0:
                continue
            if problem.balancing == "local" and chain.returns:
                edge = problem.element(chain.stages[0])
                others = max(edge.count * edge.ports - 1, 1)
                share_pps += share * here[edge.name] / edge.count * there[edge.name] * edge.ports / others
            else:
                share_pps += ours[j].here * ours[j].arrival * theirs[j + 1].here * ours[j].to_each
    rate_bps = problem.joined.cable_bps(hosts[one.host].group.name, hosts[other.host].group.name)
    frame = problem.frames.mean_bytes
    return line_rate_pps(rate_bps, frame) / share_pps if share_pps > 0.0 else math.inf
