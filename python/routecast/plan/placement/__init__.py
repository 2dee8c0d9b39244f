"""Placing functions on servers and cores, with contention (Li 2012, sec. 3.4.1, 3.4.2)."""

from routecast.plan.placement.model import Chain, ElementGroup, Goal, Joined, PlacementProblem, Rules, ServerGroup

__all__ = ["Chain", "ElementGroup", "Goal", "Joined", "PlacementProblem", "Rules", "ServerGroup"]
