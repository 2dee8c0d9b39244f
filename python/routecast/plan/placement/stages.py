"""What comes to the elements of one server, and where it goes from there, as shares of the whole load.

Frames are spread evenly over the elements of a stage, so what a server gets depends on what is on it alone, not on how
the others are filled: of stage ``j`` with ``n`` elements, ``x`` of them here, each takes ``1/n`` of the chain's
frames, and of these the share that the ``x`` elements of stage ``j − 1`` here send does not cross a wire.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from routecast.plan.placement.model import Chain, PlacementProblem

__all__ = ["Stage", "role_of", "stages_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A stage of a chain as one server sees it.

    Parameters
    ----------
    group : str
    here : int
        Elements on this server.
    arrival : float
        What each of them takes, as share of the whole load.
    from_elsewhere : float
        Part of it that comes from elements on other servers.
    to_each, to_elsewhere : float
        Where a frame goes next: to each element of the next stage that is here, or to another server.
    """

    group: str
    here: int
    arrival: float
    from_elsewhere: float
    to_each: float
    to_elsewhere: float


def role_of(problem: PlacementProblem, chain: Chain, stage: int) -> str:
    """Return the name of what an element does at a stage."""
    group = problem.element(chain.stages[stage])
    is_last = stage == len(chain.stages) - 1
    return group.roles[-1] if is_last and chain.returns else group.roles[0]


def stages_of(
    problem: PlacementProblem, chain: Chain, share: float, here: Mapping[str, int]
) -> tuple[Stage, ...]:
    """Return the stages of a chain as a server with so many elements of each group sees them.

    Parameters
    ----------
    problem : PlacementProblem
    chain : Chain
    share : float
        Of the load.
    here : mapping of str to int
    """
    if problem.balancing == "local" and chain.returns:
        return _local(problem, chain, share, here)
    of = [problem.element(stage).count for stage in chain.stages]
    local = [here.get(stage, 0) for stage in chain.stages]
    last = len(of) - 1
    return tuple(
        Stage(
            group=stage,
            here=local[j],
            arrival=share / of[j],
            from_elsewhere=share / of[j] * (1.0 - local[j - 1] / of[j - 1]) if j else 0.0,
            to_each=1.0 / of[j + 1] if j < last else 0.0,
            to_elsewhere=1.0 - local[j + 1] / of[j + 1] if j < last else 0.0,
        )
        for j, stage in enumerate(chain.stages)
    )


def _local(
    problem: PlacementProblem, chain: Chain, share: float, here: Mapping[str, int]
) -> tuple[Stage, ...]:
    """Return the stages where frames stay on the server that they came to until they leave (thesis, scenario B.2).

    Frames leave by another port than they came by, all others alike; with one port in all, by that.
    """
    edge = problem.element(chain.stages[0])
    at_edge, ports = here.get(edge.name, 0), edge.ports
    all_ports = edge.count * ports
    stay = (at_edge * ports - 1) / (all_ports - 1) if all_ports > 1 else 1.0
    stay = stay if at_edge else 0.0
    last = len(chain.stages) - 1
    found = []
    for j, stage in enumerate(chain.stages):
        local = here.get(stage, 0)
        after = here.get(chain.stages[j + 1], 0) if j < last else 0
        at_end = j in (0, last)
        found.append(
            Stage(
                group=stage,
                here=local,
                arrival=share / edge.count
                if at_end
                else share * at_edge / edge.count / local
                if local
                else 0.0,
                from_elsewhere=share / edge.count * (1.0 - stay) if j == last else 0.0,
                to_each=0.0 if j == last or not after else (stay if j == last - 1 else 1.0) / after,
                to_elsewhere=1.0 - stay if j == last - 1 else 0.0,
            )
        )
    return tuple(found)
