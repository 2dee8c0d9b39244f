"""How many cores a target needs: the least count that meets it with a probability, and what would narrow that."""

from routecast.size._answer import Count, FactAnswer, Sizing, Target
from routecast.size._measured import size

__all__ = ["Count", "FactAnswer", "Sizing", "Target", "size"]
