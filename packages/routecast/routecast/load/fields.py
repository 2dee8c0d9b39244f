"""Types of the fields of files that describe offered load."""

from __future__ import annotations

from typing import Annotated

from routecast.load.frames import FrameMix
from routecast.load.offered import IntendedRate
from routecast.quantity.fields import Parsed

__all__ = ["Frames", "LoadRate"]

Frames = Annotated[
    FrameMix, Parsed(FrameMix.parse, "B, or a mix", "64 B", "IMIX", "genome aaafg", "7x64, 4x594, 1x1518")
]
LoadRate = Annotated[
    IntendedRate, Parsed(IntendedRate.parse, "frames/s, or bit/s with gap and preamble", "14.88 Mpps", "10 Gbit/s")
]
