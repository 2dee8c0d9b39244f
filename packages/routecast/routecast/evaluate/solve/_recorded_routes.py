"""Where recorded frames go after each task unit, all at once or followed one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from routecast.evaluate.solve._recording import Numbers
from routecast.evaluate.solve.flow import Vector
from routecast.evaluate.solve.fluid import Fluid
from routecast.load.trace import numbers_counted

__all__ = ["Routes", "routed"]

_GOLDEN_RATIO = 0.6180339887498949
"""Its multiples spread evenly over any shares."""


def routed(
    edges: Sequence[tuple[int, Vector]], frames: Numbers, flow: Numbers, stream_of_flow: Numbers
) -> list[tuple[int, Numbers]]:
    """Return the frames that go to each node after a task unit, those of divided streams in turn.

    ``edges``: the nodes, each with the share of each stream; ``frames``, ``flow``: frames in their order, and their
    flows.
    """
    present = np.flatnonzero(numbers_counted(flow))
    by_flow = [(node, fraction[stream_of_flow]) for node, fraction in edges]
    if all(((share[present] == 0.0) | (share[present] == 1.0)).all() for _, share in by_flow):
        return [
            (node, frames if len(present) and (share[present] == 1.0).all() else frames[(share == 1.0)[flow]])
            for node, share in by_flow
        ]
    # Equal shares take exact turns.
    shares = np.stack([share[flow] for _, share in by_flow])
    places = np.arange(len(frames))
    equal = len(edges) * shares.max() <= 1.0 + 1e-9
    at = (places % len(edges) + 0.5) / len(edges) if equal else (0.5 + places * _GOLDEN_RATIO) % 1.0
    chosen = np.minimum((np.cumsum(shares, axis=0) <= at).sum(axis=0), len(edges) - 1)
    return [(node, frames[chosen == number]) for number, (node, _) in enumerate(by_flow)]


class Routes:
    """The next node of each flow after each task unit; frames of divided streams go in turn."""

    def __init__(self, fluid: Fluid, stream_of_flow: Numbers) -> None:
        self.sole: list[list[int] | None] = []
        """By task unit the next node of each flow; None for those with divided streams."""
        self._shares: dict[int, list[list[tuple[int, float]]]] = {}
        self._sent = [0] * len(fluid.graph.tasks)
        streams = stream_of_flow.tolist()
        for index, edges in enumerate(fluid.graph.edges[: len(fluid.graph.tasks)]):
            if all(((share == 0.0) | (share == 1.0)).all() for _, share in edges):
                nodes = np.full(len(streams), fluid.graph.exit)
                for node, share in edges:
                    nodes[share[stream_of_flow] > 0.0] = node
                self.sole.append(nodes.tolist())
                continue
            of_stream = {
                stream: [(node, float(share[stream])) for node, share in edges if share[stream] > 0.0]
                for stream in set(streams)
            }
            self._shares[index] = [of_stream[stream] for stream in streams]
            self.sole.append(None)

    def after(self, index: int, flow: int) -> int:
        """Return the node after a task unit for the next frame of a flow."""
        sole = self.sole[index]
        return self.in_turn(index, flow) if sole is None else sole[flow]

    def in_turn(self, index: int, flow: int) -> int:
        """Return the node after a task unit with divided streams for the next frame of a flow."""
        shares, sent = self._shares[index][flow], self._sent[index]
        self._sent[index] = sent + 1
        # Equal shares take exact turns.
        if len(shares) * max(share for _, share in shares) <= 1.0 + 1e-9:
            return shares[sent % len(shares)][0]
        at, total = (0.5 + sent * _GOLDEN_RATIO) % 1.0, 0.0
        for node, share in shares:
            total += share
            if at < total:
                return node
        return shares[-1][0]
