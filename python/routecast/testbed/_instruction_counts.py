"""Instructions and memory accesses per packet of a real function, as valgrind's cachegrind counts them.

PacketBench (Ramaswamy & Wolf 2003) and CommBench (Wolf & Franklin 2000) describe network functions so. A count of a
whole process holds the interpreter, the making of tables and the filling of rings; two runs that differ only in how
many packets they process differ by the packets alone::

    per packet = (count(many) − count(few)) / (many − few)

An instruction that reads a place of memory and writes it back counts as one read (cachegrind's manual, "Dr").
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping

from routecast.load.offered import OfferedLoad
from routecast.quantity.schema import field, value
from routecast.testbed._in_memory import InMemory
from routecast.testbed.cachegrind import CACHES, cachegrind_sums, refuse_no_valgrind

FEW_PACKETS = 1024
MANY_PACKETS = 4096
_CHILD = "import sys\nfrom routecast import _core\n_core.run_function(sys.argv[1])\n"


@value
class PacketCounts:
    """What one packet takes on average."""

    instructions: float = field("Executed instructions")
    reads: float = field("Executed instructions that read memory")
    writes: float = field("Executed instructions that write memory")
    packets: int = field("Over how many the counts are a mean")


def count_instructions(
    function: InMemory, load: OfferedLoad, *, progress: Callable[[float], object] | None = None
) -> PacketCounts:
    """Count what a packet of ``load`` takes; runs the function twice under cachegrind, some fifty times slower.

    Raises EnvironmentProblem: valgrind is missing, or it fails.
    """
    refuse_no_valgrind()
    few = _counts(function.request(load, 1.0, FEW_PACKETS))
    if progress is not None:
        progress(0.5)
    many = _counts(function.request(load, 1.0, MANY_PACKETS))
    if progress is not None:
        progress(1.0)
    packets = MANY_PACKETS - FEW_PACKETS
    return PacketCounts(
        instructions=(many["Ir"] - few["Ir"]) / packets,
        reads=(many["Dr"] - few["Dr"]) / packets,
        writes=(many["Dw"] - few["Dw"]) / packets,
        packets=packets,
    )


def _counts(request: Mapping[str, object]) -> dict[str, int]:
    """Return cachegrind's sums of a run, by event."""
    command = [sys.executable, "-c", _CHILD, json.dumps(request, allow_nan=False)]
    return cachegrind_sums(command, "--cache-sim=yes", *CACHES)
