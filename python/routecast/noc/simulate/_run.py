"""How long is simulated, how often, and from which seed."""

from __future__ import annotations

from typing import Any

from routecast.errors import ModelProblem, Problem
from routecast.quantity.schema import field, value

_MOST_CYCLES = 10**9


@value
class SimulationPhases:
    """Phases in cycles of each plane's own clock, so that a slowed-down plane settles like a fast one.

    Raises ModelProblem: a value out of range; all of them are named.
    """

    seed: int = field("Of all random streams: one seed, one result", default=1)
    replications: int = field("Independent runs with other streams; their spread gives the intervals", default=5)
    warmup_cycles: int = field("Before anything counts, cycles", default=10_000)
    measure_cycles: int = field("Whose packets count, cycles", default=20_000)
    drain_cycles: int = field(
        "At most so many more, until they have arrived, cycles; sources go on meanwhile", default=100_000
    )
    batches: int = field(
        "Parts of the measurement, whose means give the interval of latency where there is one replication", default=20
    )

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
