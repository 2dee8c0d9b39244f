"""Frame sizes: fixed, the RFC 2544 set, IMIX and RFC 6985 genomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["RFC2544_FRAME_BYTES", "FrameMix"]

RFC2544_FRAME_BYTES: tuple[int, ...] = (64, 128, 256, 512, 1024, 1280, 1518)
"""RFC 2544 sec. 9.1, Ethernet, FCS included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameMix:
    """A sequence of frame sizes (RFC 6985: the genome), repeated in order or drawn at random.

    Parameters
    ----------
    name : str
        How people call it: ``"64 B"``, ``"IMIX"``.
    sequence_bytes : tuple of int
        One period of the sequence, FCS included, each >= 64.
    order : {"sequence", "random"}
        ``sequence`` repeats it as it stands; ``random`` draws each frame from it with equal chances.
    """

    name: str
    sequence_bytes: tuple[int, ...]
    order: Literal["sequence", "random"] = "sequence"

    @classmethod
    def fixed(cls, frame_bytes: int) -> FrameMix:
        """All frames of one size."""
        return cls(name=f"{frame_bytes} B", sequence_bytes=(frame_bytes,))

    @property
    def mean_bytes(self) -> float:
        """Mean frame size in bytes."""
        return sum(self.sequence_bytes) / len(self.sequence_bytes)
