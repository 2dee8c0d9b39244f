"""How many cores a target needs: the least count that meets it with a probability, and what would narrow that."""

from routecast.size.answer import Count, FactAnswer, Sizing
from routecast.size.measured import size
from routecast.size.target import Target

__all__ = ["Count", "FactAnswer", "Sizing", "Target", "size"]
