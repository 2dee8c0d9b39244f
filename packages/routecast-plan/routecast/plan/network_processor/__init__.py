"""Routers on network processors: engines, hardware threads, memories, blocks."""

from routecast.plan.network_processor.builder import network_processor
from routecast.plan.network_processor.expectation import Expectation, ResourceLimit, expectation
from routecast.plan.network_processor.model import (
    Block,
    Engines,
    LineCard,
    Link,
    Memory,
    NetworkProcessor,
    Reference,
    Slice,
    Stage,
    State,
)
from routecast.plan.network_processor.reading import parallel, pipelined

__all__ = [
    "Block",
    "Engines",
    "Expectation",
    "LineCard",
    "Link",
    "Memory",
    "NetworkProcessor",
    "Reference",
    "ResourceLimit",
    "Slice",
    "Stage",
    "State",
    "expectation",
    "network_processor",
    "parallel",
    "pipelined",
]
