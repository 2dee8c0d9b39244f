"""What a line rate asks of a processor: instructions per second, and how many there may be per packet."""

from __future__ import annotations

import math
from collections.abc import Iterable

from routecast.load.offered import WIRE_OVERHEAD_BYTES
from routecast.quantity.schema import field, value
from routecast.testbed.workload.answer import Characterisation

__all__ = ["Required", "required"]


@value
class Required:
    """What frames of one size at a line rate ask for."""

    frame_bytes: float
    line_bps: float = field("Of the wire, its overhead of 20 B per frame included (S1)")
    packets_per_s: float
    instructions: float = field("Of the kernel, per packet")
    instructions_per_s: float
    # Instructions per packet that one processor has time for: frequency x instructions per cycle / packets per second;
    # NaN where no frequency is given.
    budget: float = math.nan
    processors: int | None = field("How many of them it takes, if they shared the packets without loss", default=None)


def required(
    answer: Characterisation,
    line_bps: float,
    frame_bytes: Iterable[float],
    *,
    frequency_hz: float | None = None,
    instructions_per_cycle: float = 1.0,
) -> tuple[Required, ...]:
    """Return what a line rate asks for, by frame size (Lee & John 2003, "required processing capability per packet").

    Parameters
    ----------
    line_bps : float
        Bits per second on the wire; 10 Gbit/s carries 14.88 million frames of 64 B a second.
    frequency_hz, instructions_per_cycle : float
        Of one processor. A single-issue engine that never waits executes one instruction per cycle.
    """
    rows = []
    for size in frame_bytes:
        rate = line_bps / (8.0 * (size + WIRE_OVERHEAD_BYTES))
        instructions = answer.instructions(size)
        capacity = math.nan if frequency_hz is None else frequency_hz * instructions_per_cycle
        rows.append(
            Required(
                frame_bytes=size,
                line_bps=line_bps,
                packets_per_s=rate,
                instructions=instructions,
                instructions_per_s=rate * instructions,
                budget=capacity / rate,
                processors=None if frequency_hz is None else math.ceil(rate * instructions / capacity),
            )
        )
    return tuple(rows)
