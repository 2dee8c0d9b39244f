"""Mapping the blocks of a router onto a network processor: engines, memories, rings (Heller 2006, sec. 4.2.1)."""

from routecast.plan.mapping.model import Mapping, MappingProblem
from routecast.plan.mapping.search import Answered, map_processor

__all__ = ["Answered", "Mapping", "MappingProblem", "map_processor"]
