"""What is to be mapped onto a network processor, and a mapping."""

from __future__ import annotations

from routecast.quantity.schema import field, value
from routecast.router.model import RouterModel
from routecast.router.network_processor import expectation, network_processor
from routecast.router.network_processor.expectation import Expectation
from routecast.router.network_processor.model import Block, Link, NetworkProcessor, Stage, State

__all__ = ["NEXT_NEIGHBOUR", "Mapping", "MappingProblem"]

NEXT_NEIGHBOUR = "next neighbour"
"""What people call a ring of registers between an engine and the next one (:attr:`Link.memory` is empty)."""


@value
class MappingProblem:
    """Blocks and states, and the processor that they are to share."""

    name: str
    processor: NetworkProcessor
    blocks: tuple[Block, ...] = field("In the order of the way")
    states: tuple[State, ...] = field("With the memory that each is in now")
    ring: Link = field(
        "Between stages: cycles, length and size of a handle; its memory is chosen", default_factory=Link
    )
    rings: tuple[str, ...] = field(
        'Memories that rings may be in; "" for the registers of the next engine, which join two stages of one '
        "engine each with neighbouring numbers",
        default=("",),
    )
    movable: frozenset[str] = field("States that may be moved to another memory", default=frozenset())
    frame_bytes: float = field("Size of the frames that throughput is maximised for, B", default=64.0)
    most_stages: int = field("Stages that may share an engine, at most", default=2)
    port_queue_frames: int = field(
        "Frames that a queue manager keeps for each port; it plays no part in the mapping", default=0
    )


@value
class Mapping:
    """Stages with engines, threads and rings, and states with memories."""

    name: str = field('``"optimum"``, ``"round robin"``, …')
    problem: MappingProblem
    stages: tuple[Stage, ...] = field("In the order of the way")
    states: tuple[State, ...]

    @property
    def engines(self) -> int:
        """Engines that it uses."""
        return len({number for stage in self.stages for number in stage.engines})

    def expectation(self) -> Expectation:
        """Return the bounds on its throughput: what engines, threads, memories and ports can carry at most."""
        return expectation(
            self.problem.processor, self.problem.blocks, self.states, self.stages, frame_bytes=self.problem.frame_bytes
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
