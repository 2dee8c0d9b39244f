"""How long a core waits for a batch of lines that were asked for together.

One line far away makes the whole batch wait for it; others that are as far arrive meanwhile, one after the other::

    all n lines in level l     n · batched(l)  =  first(l) + (n − 1) · next(l),     first(l) = dependent(l) at most
    mixed levels               Σ_l  P(l is the farthest with a line) · first(l)  +  (lines in l beyond one) · next(l)

``batched`` and ``dependent`` are what a probe measures with all lines in one level (:class:`MemoryLevel`), in batches
of n lines. A mean over the levels, Σ shares · batched, would let a tenth of the lines in DRAM cost a tenth; they cost
a whole latency to nearly every batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from routecast.hardware.model import LevelName, MemoryLevel

__all__ = ["batch_waiting_cycles"]


def batch_waiting_cycles(
    levels: Sequence[MemoryLevel],
    shares: Mapping[LevelName, float],
    *,
    lines: float,
    batch_frames: int,
    frequency_hz: float,
) -> Mapping[LevelName, float]:
    """Return the cycles that a packet waits for its lines, by the level where they are found.

    Parameters
    ----------
    levels : sequence of MemoryLevel
        The fastest first.
    shares : mapping of level to float
        Share of the lines found in each level.
    lines : float
        Lines per packet; ``batch_frames`` packets ask for one each together, and again for the next one.
    batch_frames : int
        Also of the probe.
    frequency_hz : float
        Clock of the core.

    Examples
    --------
    >>> near = MemoryLevel(name="L1", size_bytes=32768.0)
    >>> far = MemoryLevel(name="DRAM", dependent_cycles=320.0, batched_cycles=20.0)
    >>> ask = dict(lines=1.0, batch_frames=32, frequency_hz=1e9)
    >>> round(batch_waiting_cycles([near, far], {"DRAM": 1.0}, **ask)["DRAM"], 6)
    20.0
    >>> round(batch_waiting_cycles([near, far], {"L1": 0.9, "DRAM": 0.1}, **ask)["DRAM"], 2)
    10.38
    """
    rounds = max(1.0, lines)
    asked = batch_frames * lines / rounds
    waited: dict[LevelName, float] = {}
    within = 0.0
    for level in levels:
        share = shares.get(level.name, 0.0)
        nearer, within = within, min(1.0, within + share)
        if share <= 0.0 or asked <= 0.0:
            continue
        all_here = batch_frames * (level.batched_cycles + level.batched_s * frequency_hz)
        first = min(level.dependent_cycles + level.dependent_s * frequency_hz, all_here)
        following = (all_here - first) / max(batch_frames - 1, 1)
        is_farthest = within**asked - nearer**asked
        is_asked = 1.0 - (1.0 - min(share, 1.0)) ** asked
        beyond = max(asked * share - is_asked, 0.0)
        waited[level.name] = rounds * (is_farthest * first + beyond * following) / batch_frames
    return waited
