"""Placing functions on servers and cores, with contention (Li 2012, sec. 3.4.1, 3.4.2)."""

from routecast.plan.placement.model import Chain, ElementGroup, Goal, PlacementProblem, Rules, ServerGroup, ServerLinks

__all__ = ["Chain", "ElementGroup", "Goal", "PlacementProblem", "Rules", "ServerGroup", "ServerLinks"]
