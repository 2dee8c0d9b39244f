"""The procedures of RFC 2544 sec. 26, each an object in a file of its own; a new one is a new file and a line here."""

from collections.abc import Mapping

from routecast.benchmark.procedures.back_to_back import BACK_TO_BACK
from routecast.benchmark.procedures.frame_loss import FRAME_LOSS
from routecast.benchmark.procedures.latency import LATENCY
from routecast.benchmark.procedures.procedure import Procedure
from routecast.benchmark.procedures.recovery import RECOVERY
from routecast.benchmark.procedures.reset import RESET
from routecast.benchmark.procedures.throughput import THROUGHPUT

__all__ = ["PROCEDURES", "Procedure"]

PROCEDURES: Mapping[str, Procedure] = {
    one.name: one for one in (THROUGHPUT, LATENCY, FRAME_LOSS, BACK_TO_BACK, RECOVERY, RESET)
}
"""All of them by name, in the RFC's order, which is the order in which they are run."""
