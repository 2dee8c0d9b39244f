"""The protocol of all evaluators: what happens at this load during this time?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol, runtime_checkable

from routecast.evaluate.trial import Trial
from routecast.load.offered import OfferedLoad

__all__ = ["Described", "Evaluator", "EvaluatorKind", "Resettable"]

EvaluatorKind = Literal["solve", "simulate", "measure"]


@runtime_checkable
class Evaluator(Protocol):
    """Anything that can carry out a trial: a formula, the simulator, a real router, a ten-line fake."""

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        """Return the trial of ``load`` during ``duration_s`` seconds."""
        ...


@runtime_checkable
class Described(Protocol):
    """An evaluator that describes itself: versions, configuration, machine (RFC 2544 sec. 7)."""

    def facts(self) -> Mapping[str, object]:
        """Return plain data: texts, numbers, lists and mappings of them."""
        ...


@runtime_checkable
class Resettable(Protocol):
    """An evaluator whose router can be reset during a trial (RFC 6201)."""

    @property
    def reset_kinds(self) -> tuple[str, ...]:
        """Kinds of reset that make sense for this router, such as ``"process"``, ``"system"``, ``"link"``."""
        ...

    def reset_trial(self, load: OfferedLoad, duration_s: float, *, kind: str, at_s: float) -> Trial:
        """Return the trial of ``load`` during ``duration_s`` seconds with a reset ``at_s`` after its start."""
        ...
