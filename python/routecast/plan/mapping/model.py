"""What is to be mapped onto a network processor, and a mapping."""

from __future__ import annotations

from dataclasses import dataclass, field

from routecast.router.model import RouterModel
from routecast.router.network_processor import expectation, network_processor
from routecast.router.network_processor.expectation import Expectation
from routecast.router.network_processor.model import Block, Link, NetworkProcessor, Stage, State

__all__ = ["NEXT_NEIGHBOUR", "Mapping", "MappingProblem"]

NEXT_NEIGHBOUR = "next neighbour"
"""What people call a ring of registers between an engine and the next one (:attr:`Link.memory` is empty)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingProblem:
    """Blocks and states, and the processor that they are to share.

    Parameters
    ----------
    name : str
    processor : NetworkProcessor
    blocks : tuple of Block
        In the order of the way.
    states : tuple of State
        With the memory that each is in now.
    ring : Link
        Between stages: cycles, length and size of a handle; its memory is chosen.
    rings : tuple of str
        Memories that rings may be in; "" for the registers of the next engine, which join two stages of one engine
        each with neighbouring numbers.
    movable : frozenset of str
        States that may be moved to another memory.
    frame_bytes : float
        Size of the frames that throughput is maximised for.
    most_stages : int
        Stages that may share an engine, at most.
    port_queue_frames : int
        Frames that a queue manager keeps for each port; it plays no part in the mapping.
    """

    name: str
    processor: NetworkProcessor
    blocks: tuple[Block, ...]
    states: tuple[State, ...]
    ring: Link = field(default_factory=Link)
    rings: tuple[str, ...] = ("",)
    movable: frozenset[str] = frozenset()
    frame_bytes: float = 64.0
    most_stages: int = 2
    port_queue_frames: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    """Stages with engines, threads and rings, and states with memories.

    Parameters
    ----------
    name : str
        ``"optimum"``, ``"round robin"``, …
    problem : MappingProblem
    stages : tuple of Stage
        In the order of the way.
    states : tuple of State
    """

    name: str
    problem: MappingProblem
    stages: tuple[Stage, ...]
    states: tuple[State, ...]

    @property
    def engines(self) -> int:
        """Engines that it uses."""
        return len({number for stage in self.stages for number in stage.engines})

    def expectation(self) -> Expectation:
        """Return the bounds on its throughput: what engines, threads, memories and ports can carry at most."""
        return expectation(
            self.problem.processor,
            self.problem.blocks,
            self.states,
            self.stages,
            frame_bytes=self.problem.frame_bytes,
        )

    def router(self) -> RouterModel:
        """Build the router that it is.

        Raises
        ------
        routecast.errors.ModelProblem
            The mapping does not fit the processor: an engine's programs are longer than its store, a memory is too
            small, there are more threads than the hardware has.
        """
        return network_processor(
            self.problem.processor,
            self.problem.blocks,
            self.states,
            self.stages,
            frame_bytes=self.problem.frame_bytes,
            port_queue_frames=self.problem.port_queue_frames,
            name=f"{self.problem.name}, {self.name}",
        )
