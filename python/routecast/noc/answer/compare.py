"""``noc compare``: routings, allocations, the optimum and the flits of one file, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from routecast.evaluate.plain import plain
from routecast.noc.answer.optimum import OptimumAnswer, OptimumRow, optimum_answer
from routecast.noc.answer.power import PowerAnswer, PowerRow, case_json, power_answer
from routecast.noc.answer.simulate import SimulationAnswer, simulation_answer
from routecast.noc.case import NocCase, Progress

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """Everything about one file.

    Attributes
    ----------
    power, optimum
        At the flow level.
    simulation
        Flit by flit, what the file names and what :attr:`best` is; None where the file has no ``[simulation]``.
    """

    power: PowerAnswer
    optimum: OptimumAnswer
    simulation: SimulationAnswer | None

    @property
    def case(self) -> NocCase:
        """What was asked."""
        return self.power.case

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be told of the parts."""
        flits = self.simulation.notes if self.simulation is not None else ()
        return (*self.power.notes, *self.optimum.notes, *flits)

    @property
    def highest(self) -> OptimumRow | None:
        """The optimum at the highest load that some routing carries."""
        return self.optimum.rows[-1] if self.optimum.rows else None

    @property
    def best(self) -> PowerRow | None:
        """What is recommended: the answer speaks of its power, its distance to the optimum and its latency."""
        return self.power.recommended

    @property
    def is_best_simulated(self) -> bool:
        """Whether the latency of what is recommended is known."""
        return self.best is not None and self.simulation is not None and self.best.key in self.simulation.keys

    def to_json(self) -> dict[str, Any]:
        """Return plain data, each part as its own command prints it."""
        document = {
            **case_json(self.case),
            "power": self.power.to_json()["rows"],
            "optima": self.optimum.to_json()["optima"],
            "simulation": None if self.simulation is None else self.simulation.to_json()["rows"],
            "notes": self.notes,
        }
        result = plain(document)
        assert isinstance(result, dict)
        return result


def compare(case: NocCase, *, progress: Progress | None = None) -> Comparison:
    """Answer for a file what every command would, with one pass over its parts.

    Raises
    ------
    RoutecastError
        An allocation cannot be had, or what is simulated can deadlock.
    """
    power = power_answer(case, progress=progress)
    optimum = optimum_answer(case, power=power, progress=progress, leaves_out=True)
    best = power.recommended
    also = best.key if best is not None else ""
    simulation = None if case.simulation is None else simulation_answer(case, also=also, progress=progress)
    return Comparison(power=power, optimum=optimum, simulation=simulation)
