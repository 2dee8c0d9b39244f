"""Flows: where each enters and leaves, its share, and the hash that receive-side scaling sees."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Flow", "FlowSet"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """One flow: RSS hash value, ingress and egress port (numbers), share of the load (relative)."""

    rss_hash: int
    ingress: int = 0
    egress: int = 1
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowSet:
    """The flows of a load. ``name`` is how people call it: ``"4 crafted flows"``, ``"100 random flows"``."""

    name: str
    flows: tuple[Flow, ...]

    @classmethod
    def crafted(cls, count: int, *, ports: int = 2) -> FlowSet:
        """Flows crafted so that RSS spreads them evenly over the cores (paper 000, sec. VI-A.1).

        Flow ``i`` has hash ``i``, enters by port ``i mod ports`` and leaves by the next one: with two ports the odd
        flows go one way, the even ones the other.
        """
        flows = tuple(
            Flow(rss_hash=i % 128, ingress=i % ports, egress=(i + 1) % ports) for i in range(count)
        )
        return cls(name=f"{count} crafted flow{'s' if count != 1 else ''}", flows=flows)
