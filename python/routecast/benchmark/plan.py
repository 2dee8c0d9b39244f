"""What a benchmark is to run: procedures, frame sizes and streams, checked and in order."""

from __future__ import annotations

from collections.abc import Sequence

from routecast.benchmark.procedures import PROCEDURES
from routecast.benchmark.profile import Profile
from routecast.benchmark.streams import FEWEST_IPV6_BYTES, Stream, stream_of
from routecast.errors import ModelProblem, Problem
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import field, value

__all__ = ["Plan", "plan_of"]


@value
class Plan:
    """What is to be run: checked, complete, in order."""

    profile: Profile
    procedures: tuple[str, ...] = field("In the RFC's order; those that others rest on are in it.")
    frame_bytes: tuple[int, ...]
    streams: tuple[Stream, ...]
    flows: int = field("Flows each way; 1 is a pair of addresses.", default=1)
    notes: tuple[str, ...] = ()

    def stages(self) -> tuple[tuple[Stream, int, str], ...]:
        """Every stage, in order."""
        return tuple(
            (stream, size, procedure)
            for stream in self.streams
            for size in self.sizes(stream)
            for procedure in self.procedures_of(stream, size)
        )

    def procedures_of(self, stream: Stream, frame_bytes: int) -> tuple[str, ...]:
        """Procedures for a stream and a frame size.

        Reset is run with the smallest frame only (sec. 26.6), and repeated bursts ask for the least time between bursts
        without loss (sec. 21), which is the throughput.
        """
        is_smallest = frame_bytes == min(self.sizes(stream))
        return tuple(
            name
            for name in self.procedures
            if (PROCEDURES[name].with_bursts if stream.burst_frames > 1 else True)
            and (is_smallest or not PROCEDURES[name].smallest_only)
        )

    def sizes(self, stream: Stream) -> tuple[int, ...]:
        """Frame sizes of a stream: with IPv6, 84 bytes stand for what is smaller (RFC 8219 sec. 5.1.1)."""
        least = FEWEST_IPV6_BYTES if stream.protocol == "IPv6" else 0
        return tuple(dict.fromkeys(max(size, least) for size in self.frame_bytes))


def plan_of(
    profile: Profile,
    *,
    procedures: Sequence[str] = (),
    frame_bytes: Sequence[int] = (),
    streams: Sequence[Stream] = (),
    search: str = "",
    flows: int = 1,
) -> Plan:
    """Return what a profile asks for, changed by what the user asks for.

    Raises
    ------
    routecast.errors.ModelProblem
        A procedure is unknown, or the number of flows is.
    """
    asked = list(procedures or profile.procedures or PROCEDURES)
    wrong = [
        Problem("procedures", f"no procedure {name!r}: {did_you_mean(name, PROCEDURES)}")
        for name in asked
        if name.replace("-", "_") not in PROCEDURES
    ]
    if flows < 1:
        wrong.append(Problem("flows", f"got {flows}: at least one flow each way"))
    if search and search not in {"mlrsearch", "binary"}:
        wrong.append(Problem("search", f"no search {search!r}: {did_you_mean(search, ('mlrsearch', 'binary'))}"))
    if wrong:
        raise ModelProblem("benchmark", wrong)
    names = {name.replace("-", "_") for name in asked}
    notes = []
    if "throughput" not in names and any(PROCEDURES[name].rests_on_throughput for name in names):
        notes.append("throughput was run as well: the procedures asked for rest on it")
        names.add("throughput")
    if search:
        profile = profile.model_copy(update={"throughput": profile.throughput.model_copy(update={"search": search})})
    return Plan(
        profile=profile,
        procedures=tuple(name for name in PROCEDURES if name in names),
        frame_bytes=tuple(dict.fromkeys(frame_bytes or profile.frames)),
        streams=tuple(dict.fromkeys(streams or map(stream_of, profile.stream))),
        flows=flows,
        notes=tuple(notes),
    )
