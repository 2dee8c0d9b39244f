"""Mapping the blocks of a router onto a network processor: engines, memories, rings (Heller 2006, sec. 4.2.1)."""

from routecast.plan.mapping.answer import MappingOptimum, map_processor
from routecast.plan.mapping.model import Mapping, MappingProblem

__all__ = ["Mapping", "MappingOptimum", "MappingProblem", "map_processor"]
