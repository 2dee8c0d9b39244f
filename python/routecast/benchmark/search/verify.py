"""Loss verification (ETSI GS NFV-TST009 clause 12.3.3; RFC 9004 sec. 6): a trial with a little loss is run again.

A software router on a machine with other work loses frames now and then for reasons of the machine. Where a repetition
has no loss, the loss is taken to be such a disturbance. This is binary search with loss verification where RFC 9004
asks for it, and a deviation from RFC 2544 sec. 26.1, where every loss counts.
"""

from __future__ import annotations

import math

from routecast.benchmark.search.bounds import Probe
from routecast.benchmark.stage import Counts

__all__ = ["verified"]


def verified(
    probe: Probe, *, repeats: int, below_ratio: float, enough_ratio: float = 0.0, slice_s: float = 0.0
) -> Probe:
    """Return a probe that verifies losses, and cuts long trials into slices.

    Parameters
    ----------
    probe : Probe
    repeats : int
        max(r): how often a trial with loss is run again; the one with the least loss counts.
    below_ratio : float
        z: a greater loss is taken for the router's at once.
    enough_ratio : float
        A loss of no more needs no repetition: what the strictest goal tolerates.
    slice_s : float
        Longest single trial; 0 never slices. A sliced trial's counts are the sums over its slices, each verified.
    """

    def once(load_pps: float, duration_s: float, purpose: str) -> Counts:
        best = probe(load_pps, duration_s, purpose)
        for _ in range(repeats):
            if best.loss_ratio <= enough_ratio or best.loss_ratio > below_ratio:
                break
            again = probe(load_pps, duration_s, f"{purpose}, verification")
            best = min(best, again, key=lambda counts: counts.loss_ratio)
        return best

    def sliced(load_pps: float, duration_s: float, purpose: str) -> Counts:
        pieces = max(math.ceil(duration_s / slice_s - 1e-9), 1) if slice_s > 0.0 else 1
        parts = [once(load_pps, duration_s / pieces, purpose) for _ in range(pieces)]
        return Counts(
            offered=sum(part.offered for part in parts),
            lost=sum(part.lost for part in parts),
            unsent=sum(part.unsent for part in parts),
        )

    return sliced
