"""How long is simulated, how often, and from which seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from routecast.errors import ModelProblem, Problem

__all__ = ["Run"]

_MOST_CYCLES = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Phases in cycles of each plane's own clock, so that a slowed-down plane settles like a fast one.

    Attributes
    ----------
    seed
        Of all random streams: one seed, one result.
    replications
        Independent runs with other streams; their spread gives the intervals.
    warmup_cycles
        Before anything counts.
    measure_cycles
        Whose packets count.
    drain_cycles
        At most so many more, until they have arrived; sources go on meanwhile.
    batches
        Parts of the measurement, whose means give the interval of latency where there is one replication.

    Raises
    ------
    ModelProblem
        A value out of range; all of them are named.
    """

    seed: int = 1
    replications: int = 5
    warmup_cycles: int = 10_000
    measure_cycles: int = 20_000
    drain_cycles: int = 100_000
    batches: int = 20

    def __post_init__(self) -> None:
        ranges = (
            ("seed", self.seed, 0, 2**63 - 1),
            ("replications", self.replications, 1, 10_000),
            ("warmup_cycles", self.warmup_cycles, 0, _MOST_CYCLES),
            ("measure_cycles", self.measure_cycles, 1, _MOST_CYCLES),
            ("drain_cycles", self.drain_cycles, 0, _MOST_CYCLES),
            ("batches", self.batches, 1, 10_000),
        )
        problems = [
            Problem(name, f"got {value}: a whole number from {least} to {most}")
            for name, value, least, most in ranges
            if not least <= value <= most
        ]
        if problems:
            raise ModelProblem("simulation of the network on chip", problems)

    def scenario(self, replication: int) -> dict[str, Any]:
        """Return the run of ``crates/noc/src/scenario.rs``."""
        return {
            "seed": self.seed,
            "replication": replication,
            "warmup_cycles": self.warmup_cycles,
            "measure_cycles": self.measure_cycles,
            "drain_cycles": self.drain_cycles,
            "batches": self.batches,
        }
