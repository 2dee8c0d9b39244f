"""How a frame's work is laid out over the cores: known from the configuration, before anything is measured.

Two things bend the growth with cores before the cores get in each other's way:

* A core that polls the queues of several ports finds fewer frames in each and works in smaller batches: the cost of a
  frame grows by a share ``p`` with each further queue, ``1 + p·(queues - 1)``. One core polls every port; as many cores
  as ports poll one each, and more cores get receive queues of their own. The second core can therefore add more than
  the first.
* A part of the work that few cores can do, such as serving the one queue of a virtual machine's interface. If that is a
  share ``s`` of the work on each frame and ``m`` cores can do it, the busiest core has ``s/min(k, m) + (1-s)/k`` of the
  work, so k cores do what ``1/(s/min(k, m) + (1-s)/k)`` would.
* Transmit rings that a driver picks by ``hash % rings`` while the card picks receive rings by seven bits of the hash:
  ``1 - gcd(k, 128)/k`` of the frames leave by the ring of another core, whose lock costs a share of a frame's time.

And a queue that several cores put frames into or take them from may let them collapse (:mod:`routecast.calibrate.laws`,
``lock``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Layout"]

_HASH_ENTRIES = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Which queues cores poll, and which part of the work only few of them can do.

    Parameters
    ----------
    polls_ports : bool
        Whether cores poll receive queues that are dealt out over all of them.
    narrow_share_ratio : float
        Share of the work on each frame that at most ``narrow_cores`` cores can do, 0 to 1.
    narrow_cores : int
    transmits_by_modulo : bool
        Whether the driver picks transmit rings by the remainder of the hash.
    shared_queue : bool or None
        Whether frames pass a queue that several cores put them into or take them from, under a lock; None: not known.
    """

    polls_ports: bool = False
    narrow_share_ratio: float = 0.0
    narrow_cores: int = 1
    transmits_by_modulo: bool = False
    shared_queue: bool | None = None

    def further_queues(self, cores: int, ports: int) -> float:
        """Queues that a core polls beside its first.

        Examples
        --------
        >>> layout = Layout(polls_ports=True)
        >>> [layout.further_queues(cores, 2) for cores in (1, 2, 4)]
        [1.0, 0.0, 0.0]
        """
        return max(ports / cores, 1.0) - 1.0 if self.polls_ports else 0.0

    def foreign_ratio(self, cores: int) -> float:
        """Share of the frames that leave by the ring of another core.

        Examples
        --------
        >>> layout = Layout(transmits_by_modulo=True)
        >>> [round(layout.foreign_ratio(cores), 2) for cores in (1, 4, 3, 5, 12)]
        [0.0, 0.0, 0.67, 0.8, 0.67]
        """
        return 1.0 - math.gcd(cores, _HASH_ENTRIES) / cores if self.transmits_by_modulo else 0.0

    def useful_ratio(self, cores: int) -> float:
        """Share of the cores' time that is useful when the busiest of them limits.

        Examples
        --------
        >>> Layout(narrow_share_ratio=0.5, narrow_cores=2).useful_ratio(4)
        0.6666666666666666
        """
        crowding = max(cores / self.narrow_cores, 1.0)
        return 1.0 / (self.narrow_share_ratio * crowding + 1.0 - self.narrow_share_ratio)
