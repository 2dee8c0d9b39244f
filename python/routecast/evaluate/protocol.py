"""The one protocol: what happens at this load for this long?"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from routecast.evaluate.trial import Trial
from routecast.load.offered import OfferedLoad

__all__ = ["Evaluator"]


@runtime_checkable
class Evaluator(Protocol):
    """Anything that answers for a load: a formula, the simulator, a real router, a ten-line fake."""

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        """Answer for ``load`` during ``duration_s`` seconds."""
        ...
