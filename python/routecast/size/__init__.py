"""The number of cores that a target needs, and the measurements that would narrow the answer."""

from routecast.size._answer import Count, FactAnswer, Sizing, Target
from routecast.size._measured import size

__all__ = ["Count", "FactAnswer", "Sizing", "Target", "size"]
