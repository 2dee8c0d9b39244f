"""What is answered for a mapping: the optimum beside mappings that need no program, each predicted and simulated."""

from __future__ import annotations

from typing import Any

from routecast.errors import ModelProblem, TransientProblem
from routecast.evaluate.plain import plain
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve
from routecast.load.offered import OfferedLoad, line_rate_pps
from routecast.plan.mapping.loads import engine_loads, memory_loads
from routecast.plan.mapping.model import NEXT_NEIGHBOUR, Mapping
from routecast.plan.mapping.reading import MappingCase
from routecast.plan.mapping.search import Answered, Progress, all_in_one, map_processor, round_robin
from routecast.quantity.schema import field, value
from routecast.router.model import RouterModel

__all__ = ["Checked", "MappingAnswer", "answer", "checked"]

_FRAMES = 100_000
_LONGER = 3
_ALIKE = 0.005
DIFFERS = 0.05
"""A simulation farther from the prediction than this part is said to differ."""


@value
class Checked:
    """A mapping with what it forwards when all ports are full."""

    mapping: Mapping
    predicted_pps: float = field("The least of its bounds: what the integer program counts with, frames/s")
    limit: str = field("What that bound is of")
    solved_pps: float | None = field(
        "In closed form, threads waiting for each other counted in, frames/s", default=None
    )
    simulated_pps: float | None = field("Packet by packet, frames/s", default=None)
    trouble: str = field("Why the mapping does not fit the processor; empty where it does", default="")


@value
class MappingAnswer:
    """The best mapping of a router file, beside others."""

    found: Answered
    best: Checked
    others: tuple[Checked, ...] = field("As in the file, round robin, all in one")
    offered_pps: float = field("Of the trials: line rate on all ports, frames/s")
    document: dict[str, Any] = field("What the router file said")
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        mapping, pps = self.best.mapping, self.best.predicted_pps
        said = {
            "name": mapping.problem.name,
            "processor": mapping.problem.processor.name,
            "frame_bytes": mapping.problem.frame_bytes,
            "offered_pps": self.offered_pps,
            "bound_pps": self.found.bound_pps,
            "gap_ratio": self.found.gap_ratio,
            "programs": self.found.programs,
            "mappings": [_said(one) for one in (self.best, *self.others)],
            "engines": engine_loads(mapping, pps),
            "memories": memory_loads(mapping, pps),
            "notes": self.notes,
        }
        result = plain(said)
        assert isinstance(result, dict)
        return result


def answer(
    case: MappingCase, *, seconds: float = 60.0, simulate: bool = True, progress: Progress | None = None
) -> MappingAnswer:
    """Map a router, and compare what it then forwards with other mappings.

    Raises
    ------
    InfeasibleMapping
        There is no mapping.
    """
    problem = case.problem
    found = map_processor(problem, seconds=seconds, progress=progress)
    load = case.load
    full_pps = problem.processor.ports * line_rate_pps(problem.processor.link_bps, load.frames.mean_bytes)
    offered = load.at(full_pps)
    best = _reached(found, offered)
    own = (case.own,) if case.own is not None else ()
    mappings = (best, *own, round_robin(problem), all_in_one(problem))
    compared = []
    for number, mapping in enumerate(mappings):
        if progress is not None:
            progress(number, len(mappings), f"check {mapping.name}")
        compared.append(checked(mapping, offered, simulate=simulate))
    notes, first = list(found.notes), compared[0]
    if case.trouble:
        notes.append(f"as in the file it is no router: {case.trouble}")
    forwarded = first.simulated_pps or first.solved_pps or 0.0
    if abs(forwarded / first.predicted_pps - 1.0) > DIFFERS:
        notes.append(
            "less is forwarded than the bounds allow: threads of an engine wait for each other where engines and "
            "threads limit alike"
        )
    better = [one.mapping.name for one in compared[1:] if (one.simulated_pps or 0.0) > 1.01 * forwarded]
    if better:
        notes.append(f"in simulation {' and '.join(better)} forwards more")
    return MappingAnswer(
        found=found,
        best=first,
        others=tuple(compared[1:]),
        offered_pps=full_pps,
        document=case.document,
        notes=tuple(notes),
    )


def _reached(found: Answered, offered: OfferedLoad) -> Mapping:
    """Return the mapping that forwards most in closed form, on the fewest engines where several do."""
    forwarded = [
        (Solve(model=one.router()).trial(offered, 1.0).forwarded_pps, one) for one in (found.best, *found.spared)
    ]
    most = max(pps for pps, _ in forwarded)
    return min((one for pps, one in forwarded if pps >= most * (1.0 - _ALIKE)), key=lambda one: one.engines)


def checked(mapping: Mapping, offered: OfferedLoad, *, simulate: bool = True) -> Checked:
    """Return what a mapping forwards of a load: by its bounds, in closed form and packet by packet."""
    try:
        router = mapping.router()
    except ModelProblem as problem:
        return Checked(mapping=mapping, predicted_pps=0.0, limit="", trouble=problem.problems[0].message)
    expected = mapping.expectation()
    return Checked(
        mapping=mapping,
        predicted_pps=expected.pps,
        limit=expected.limit.name,
        solved_pps=Solve(model=router).trial(offered, 1.0).forwarded_pps,
        simulated_pps=_simulated(router, offered) if simulate else None,
    )


def _simulated(router: RouterModel, offered: OfferedLoad) -> float:
    """Return the forwarded rate, packet by packet, for as long as the transient asks for."""
    duration_s = _FRAMES / offered.rate_pps
    for _ in range(_LONGER):
        try:
            return Simulate(model=router, seed=1).trial(offered, duration_s).forwarded_pps
        except TransientProblem as problem:
            duration_s = 1.2 * problem.needed_s
    # Rings that fill ever more slowly: what passes while they do is the rate.
    return Simulate(model=router, seed=1, steady_state=False).trial(offered, duration_s).forwarded_pps


def _said(one: Checked) -> dict[str, Any]:
    mapping = one.mapping
    return {
        "name": mapping.name,
        "engines": mapping.engines,
        "predicted_pps": one.predicted_pps,
        "limit": one.limit,
        "solved_pps": one.solved_pps,
        "simulated_pps": one.simulated_pps,
        "trouble": one.trouble,
        "stages": [
            {
                "blocks": stage.blocks,
                "engines": stage.engines,
                "threads": stage.threads or mapping.problem.processor.engines.threads,
                "ring": None if not number else stage.link.memory or NEXT_NEIGHBOUR,
            }
            for number, stage in enumerate(mapping.stages)
        ],
        "states": {state.name: state.memory for state in mapping.states},
    }
