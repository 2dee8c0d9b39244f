"""Is a trial a result? Every check that the tester makes of itself and of the machine, and what a reader must know.

A reason makes a trial invalid: it says something of the tester, not of the device. A note leaves it valid.

What this process may do, and what it lacks for a task (capabilities(7)).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from routecast.errors import EnvironmentProblem
from routecast.evaluate.trial import Trial
from routecast.quantity import format_duration
from routecast.quantity.schema import field, value
from routecast.testbed._counted import Counted, Slice
from routecast.testbed._watch import MachineSnapshot
from routecast.testbed.bed import TesterPort

__all__ = [
    "BEFORE_THE_RESET",
    "FOR_NAMESPACES",
    "FOR_SENDING",
    "Limits",
    "Seen",
    "disturbances",
    "lost_to_others",
    "missing",
    "notes_of",
    "reasons_against",
    "require",
]

_NUMBERS = {"CAP_NET_ADMIN": 12, "CAP_NET_RAW": 13, "CAP_SYS_ADMIN": 21, "CAP_SYS_NICE": 23}

FOR_SENDING = ("CAP_NET_RAW", "CAP_NET_ADMIN")
"""To send and receive frames: raw sockets on interfaces.

The tester's eBPF programs need CAP_BPF and CAP_PERFMON as well; without them it uses sockets alone.
"""

FOR_NAMESPACES = (*FOR_SENDING, "CAP_SYS_ADMIN")
"""To make network namespaces as well."""


def missing(wanted: Iterable[str]) -> tuple[str, ...]:
    """Return those of the capabilities that this process does not have in effect."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    has = next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff:"))
    return tuple(name for name in wanted if not has >> _NUMBERS[name] & 1)


def require(wanted: Iterable[str], purpose: str) -> None:
    """Refuse to go on without capabilities.

    Raises EnvironmentProblem: names what is missing, and how to get it.
    """
    lacking = missing(wanted)
    if lacking:
        names = ", ".join(lacking)
        raise EnvironmentProblem(
            f"{purpose} needs {names}, which this process does not have: run it as root (sudo), "
            "or give the capabilities with setpriv or ambient capabilities of a service"
        )


# The words of what other work on the machine did to a trial: sentences are made with them, and found again by them.
_TOO_FEW, _WRONG_RATE, _LATE, _NO_ROOM = "the tester sent", "frames/s instead of", "left late", "had no room for"
_DROPPED, _MISSED = "the tester itself dropped", "the tester itself missed"
_SHARED, _STOLEN, _OTHERS, _STALLED = "share core", "the hypervisor took", "other work took", "disturbance:"
_DEVICE_LOST = "the device was ready and did not run"
BEFORE_THE_RESET = "the trial ended before the reset"
_REASONS_OF_OTHERS = (
    _TOO_FEW,
    _WRONG_RATE,
    _LATE,
    _NO_ROOM,
    _DROPPED,
    _MISSED,
    _SHARED,
    _STOLEN,
    _DEVICE_LOST,
    BEFORE_THE_RESET,
)
_NOTES_OF_OTHERS = (_LATE, _STOLEN, _OTHERS, _STALLED)


@value
class Limits:
    """Bounds beyond which a trial is no result."""

    rate_ratio: float = field("How far the rate may be from the wanted one; one frame is always allowed", default=0.001)
    # How much longer or shorter than wanted the time from the first to the last frame may be whatever its length: a
    # burst of half a millisecond is known to no more.
    edge_s: float = 20e-6
    # How much later than due a frame may leave: what was held up leaves in one burst, whose loss is the tester's.
    late_s: float = 5e-3
    late_ratio: float = field(
        "Share of frames that left late, however little, above which a note says so", default=0.01
    )
    steal_ratio: float = field("Share of the time that the hypervisor may take from a core that is used", default=0.05)
    foreign_ratio: float = field(
        "Share of the time that the device's threads may be ready while other work has their core", default=0.05
    )
    clock_step_s: float = field("Jump of the wall clock that is worth a note", default=1e-3)
    # Shortest pause in reception that is called a stall, if it is also far longer than the gap between frames.
    stall_s: float = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A trial as it was seen: what was asked, counted and read around it.

    In a trial with a reset (RFC 6201) links go down on purpose, and the commands of the reset may hold the tester up:
    that changes when frames leave, not how many of them are lost. ``beside_generator`` names who else works on the
    generator's core, and of each whether it is known to go before the generator.
    """

    slices: Sequence[Slice]
    counted: Counted
    before: MachineSnapshot
    after: MachineSnapshot
    ports: Sequence[TesterPort]
    receiving: Sequence[int]
    cores: Mapping[str, int]
    device_netns: str | None = None
    device_ports: Sequence[str] = ()
    beside_generator: Mapping[str, bool] = dataclasses.field(default_factory=dict)
    limits: Limits = dataclasses.field(default_factory=Limits)
    is_reset: bool = False

    def link_change(self, port: TesterPort, name: str) -> int:
        """Return by how much a counter of a port's interface grew."""
        key = (port.netns, port.interface)
        if key not in self.before.links or key not in self.after.links:
            return 0
        return int(getattr(self.after.links[key], name) - getattr(self.before.links[key], name))

    def device_change(self, interface: str, name: str) -> int | None:
        """Return by how much a counter of the device's interface grew; None where it is not seen."""
        key = (self.device_netns, interface)
        if self.device_netns is None or key not in self.before.links or key not in self.after.links:
            return None
        return int(getattr(self.after.links[key], name) - getattr(self.before.links[key], name))


def reasons_against(seen: Seen) -> tuple[str, ...]:
    """Return why a trial is no result; empty for a valid one."""
    return tuple(
        reason
        for check in (
            _rates,
            _lateness,
            _one_core,
            _stopped,
            _links,
            _own_drops,
            _conservation,
            _kernel_counts,
            _steal,
            _lost_to_others,
        )
        for reason in check(seen)
    )


def notes_of(seen: Seen) -> tuple[str, ...]:
    """Return what the reader of a trial must know."""
    return tuple(
        note
        for check in (_nothing, _loops, _changes, _stall, _a_little_late, _clock, _other_load, _foreign)
        for note in check(seen)
    )


def lost_to_others(trial: Trial) -> bool:
    """Whether other work kept the device from running, so that the trial says nothing of the tester either."""
    return any(_DEVICE_LOST in reason for reason in trial.invalid)


def disturbances(trial: Trial) -> tuple[str, ...]:
    """Return what a trial says that other work on the machine did to it; of the device it tells nothing then."""
    return tuple(
        sentence
        for sentences, words in ((trial.invalid, _REASONS_OF_OTHERS), (trial.notes, _NOTES_OF_OTHERS))
        for sentence in sentences
        if any(word in sentence for word in words)
    )


def _rates(seen: Seen) -> Iterator[str]:
    for part in seen.slices:
        for number, stream in enumerate(part.outcome["streams"]):
            intended, sent = int(stream["intended_frames"]), int(stream["sent_frames"])
            if intended - sent > max(1.0, seen.limits.rate_ratio * intended):
                yield (
                    f"stream {number}: {_TOO_FEW} {sent:,} of {intended:,} frames "
                    f"({_percent(1.0 - sent / intended)} too few)"
                )
                continue
            if not part.outcome["is_even"][number]:
                continue  # bursts and steps have no one rate between their first and last frame
            wanted, got = float(stream["intended_pps"]), float(stream["achieved_pps"])
            frames = part.duration_s * abs(got - wanted)  # over the slice
            allowed = max(1.0, seen.limits.edge_s * wanted)
            if sent > 2 and abs(got / wanted - 1.0) > seen.limits.rate_ratio and frames > allowed:
                yield f"stream {number}: sent {got:,.0f} {_WRONG_RATE} {wanted:,.0f}"


def _lateness(seen: Seen) -> Iterator[str]:
    for part in seen.slices:
        for number, stream in enumerate(part.outcome["streams"]):
            if float(stream["latest_s"]) > seen.limits.late_s and not seen.is_reset:
                yield f"stream {number}: {_late(stream)}"


def _one_core(seen: Seen) -> Iterator[str]:
    """Find what may be the doing of a generator that works on the device's core."""
    if not seen.beside_generator:
        return
    shared = f"generator and {' and '.join(seen.beside_generator)} {_SHARED} {seen.cores['tester']}"
    apart = "let routecast use another core (taskset, cpusets)"
    behind = [who for who, is_first in seen.beside_generator.items() if not is_first]
    if seen.is_reset and "device" in seen.beside_generator:
        yield f"{shared}: the reset had to wait for the generator, so the loss is not the device's own; {apart}"
    elif seen.counted.lost_frames and behind:
        yield (
            f"{shared}, and it is not known that the {' and the '.join(behind)} went first: "
            f"{seen.counted.lost_frames:,} frames may be lost by the generator's doing; {apart} or real-time priority"
        )
    elif any(_rates(seen)):
        yield f"{shared}, whose time has to do for all of them: offer less, or {apart}"


def _a_little_late(seen: Seen) -> Iterator[str]:
    for part in seen.slices:
        for number, stream in enumerate(part.outcome["streams"]):
            share = int(stream["late_frames"]) / max(int(stream["sent_frames"]), 1)
            latest_s = float(stream["latest_s"])
            is_reason = latest_s > seen.limits.late_s and not seen.is_reset
            # Few late frames can be a burst that a ring of the device does not hold: where there is loss, it is said.
            may_have_lost = seen.counted.lost_frames > 0 and latest_s > seen.limits.stall_s
            if (share > seen.limits.late_ratio or may_have_lost) and not is_reason:
                yield f"stream {number}: {_late(stream)}; what was held up followed faster than planned"


def _late(stream: Mapping[str, Any]) -> str:
    late, sent = int(stream["late_frames"]), int(stream["sent_frames"])
    return f"{late:,} of {sent:,} frames {_LATE}, the worst by {format_duration(float(stream['latest_s']))}"


def _stopped(seen: Seen) -> Iterator[str]:
    if any(part.outcome.get("stopped") for part in seen.slices):
        yield "the trial was stopped before its end"


def _links(seen: Seen) -> Iterator[str]:
    for port in seen.ports:
        key = (port.netns, port.interface)
        before, after = seen.before.links.get(key), seen.after.links.get(key)
        name = f"port {port.name} ({port.interface})"
        if before is None or after is None:
            yield f"{name}: the interface went away"
        elif not (after.is_up and after.has_carrier):
            yield f"{name}: the link is down"
        elif after.carrier_changes != before.carrier_changes and not seen.is_reset:
            yield f"{name}: the link went down and up {(after.carrier_changes - before.carrier_changes + 1) // 2} times"


def _own_drops(seen: Seen) -> Iterator[str]:
    overrun = sum(int(part.outcome["back_end"].get("overrun_frames", 0)) for part in seen.slices)
    if overrun:
        yield f"the tester's receiver {_NO_ROOM} {overrun:,} frames: give it a core of its own (receive_cpu)"
    for number in seen.receiving:
        port = seen.ports[number]
        for what, name in (
            (_DROPPED, "rx_dropped_frames"),
            (_MISSED, "rx_missed_frames"),
            ("the tester itself found errors in", "rx_errors"),
        ):
            count = seen.link_change(port, name)
            if what == _DROPPED:
                count -= seen.counted.foreign_frames  # nobody here takes them, so the kernel drops them
            if count > 0:
                yield f"port {port.name} ({port.interface}): {what} {count:,} frames"


def _conservation(seen: Seen) -> Iterator[str]:
    for number, stream in enumerate(stream for part in seen.slices for stream in part.outcome["streams"]):
        sent, received, lost = (int(stream[name]) for name in ("sent_frames", "received_frames", "lost_frames"))
        if sent != received + lost:
            yield f"stream {number}: {sent:,} sent are not {received:,} received + {lost:,} lost (S12)"


def _kernel_counts(seen: Seen) -> Iterator[str]:
    """Compare what the tester says it received with what the kernel handed to its interfaces."""
    for number in seen.receiving:
        port = seen.ports[number]
        key = (port.netns, port.interface)
        if key not in seen.before.links or key not in seen.after.links:
            continue
        kernel = seen.link_change(port, "rx_frames")
        tester = sum(
            int(stream["received_frames"]) + int(stream["duplicated_frames"])
            for part in seen.slices
            for to_port, stream in zip(part.outcome["to_ports"], part.outcome["streams"], strict=True)
            if to_port == number
        )
        if kernel < tester:
            yield f"port {port.name}: received {tester:,} frames, the kernel counted {kernel:,} at {port.interface}"


def _steal(seen: Seen) -> Iterator[str]:
    for role, number in seen.cores.items():
        share = _share(seen, number, "steal_s")
        if share > seen.limits.steal_ratio:
            yield f"core {number} ({role}): {_STOLEN} {_percent(share)} of the time"


def _lost_to_others(seen: Seen) -> Iterator[str]:
    """Find out whether the device's threads had to wait for other work on their core."""
    length_s = seen.after.at_s - seen.before.at_s
    if "device" in seen.beside_generator or length_s <= 0.0:
        return
    waited_s = sum(now_s - seen.before.waiting_s.get(pid, now_s) for pid, now_s in seen.after.waiting_s.items())
    share = min(waited_s / length_s, 1.0)
    if share > seen.limits.foreign_ratio:
        core = f"core {seen.cores['dut']} (dut): " if "dut" in seen.cores else ""
        yield f"{core}{_DEVICE_LOST} for {_percent(share)} of the time, for other work had its core"


def _nothing(seen: Seen) -> Iterator[str]:
    """Say where frames stopped when none came back."""
    counts = seen.counted
    if counts.sent_frames == 0 or counts.received_frames > 0:
        return
    places = []
    for interface in seen.device_ports:
        rx, tx = seen.device_change(interface, "rx_frames"), seen.device_change(interface, "tx_frames")
        if rx is not None:
            places.append(f"{interface} received {rx:,} and sent {tx:,}")
    where = f"; of the device, {', '.join(places)}" if places else ""
    corrupted = f"; {counts.corrupted_frames:,} came back corrupted" if counts.corrupted_frames else ""
    yield (
        f"0 of {counts.sent_frames:,} frames came back{corrupted}: check that the device forwards, its routes and "
        f"neighbours, the MAC addresses in the test bed's file, and the cables{where}"
    )


def _loops(seen: Seen) -> Iterator[str]:
    """Find frames that come to a port where none is due."""
    wrong = sum(int(part.outcome["back_end"].get("misrouted_frames", 0)) for part in seen.slices)
    if wrong:
        yield f"{wrong:,} frames arrived at another port than theirs: the device floods, loops or misroutes"
        return
    for number, port in enumerate(seen.ports):
        if number in seen.receiving:
            continue
        back = seen.link_change(port, "rx_frames")
        if back > max(10.0, 0.001 * seen.counted.sent_frames):
            yield (
                f"{back:,} frames came back to port {port.name}, which only sends: the device loops, floods or answers"
            )


def _changes(seen: Seen) -> Iterator[str]:
    counts = seen.counted
    if counts.duplicated_frames:
        yield f"the device duplicated {counts.duplicated_frames:,} frames"
    if counts.corrupted_frames and counts.received_frames:
        yield f"{counts.corrupted_frames:,} frames came back with another content than sent; they count as lost"
    if counts.reordered_frames:
        yield f"{counts.reordered_frames:,} frames were overtaken within their flow (RFC 4737)"


def _stall(seen: Seen) -> Iterator[str]:
    counts = seen.counted
    if not counts.lost_frames or not counts.received_frames or not math.isfinite(counts.longest_gap_s):
        return
    duration_s = math.fsum(part.duration_s for part in seen.slices)
    gap_s = duration_s / counts.received_frames
    if counts.longest_gap_s > max(seen.limits.stall_s, 50.0 * gap_s):
        yield (
            f"{_STALLED} nothing was received for {format_duration(counts.longest_gap_s)} from "
            f"{format_duration(counts.longest_gap_at_s)} on, so some of the loss may be a stall of the machine"
        )


def _clock(seen: Seen) -> Iterator[str]:
    step_s = seen.after.realtime_offset_s - seen.before.realtime_offset_s
    if abs(step_s) > seen.limits.clock_step_s + 1e-3 * (seen.after.at_s - seen.before.at_s):
        yield f"the wall clock was set by {step_s:+.3f} s during the trial; the tester's own clock was not"


def _other_load(seen: Seen) -> Iterator[str]:
    for role, number in seen.cores.items():
        busy, steal = _share(seen, number, "busy_s"), _share(seen, number, "steal_s")
        if 0.01 < steal <= seen.limits.steal_ratio:
            yield f"core {number} ({role}): {_STOLEN} {_percent(steal)} of the time"
        if role == "dut" and seen.after.threads_s and "device" not in seen.beside_generator:
            own_s = sum(seen.after.threads_s.values()) - sum(
                seen.before.threads_s.get(pid, 0.0) for pid in seen.after.threads_s
            )
            other = busy - own_s / max(seen.after.at_s - seen.before.at_s, 1e-9)
            if other > 0.1:
                yield f"core {number} ({role}): {_OTHERS} {_percent(min(other, 1.0))} of the time"


def _foreign(seen: Seen) -> Iterator[str]:
    if seen.counted.foreign_frames > max(10.0, 0.001 * seen.counted.sent_frames):
        yield f"{seen.counted.foreign_frames:,} frames of others arrived at the tester; they are not counted"


def _share(seen: Seen, core: int, name: str) -> float:
    before, after = seen.before.cores.get(core), seen.after.cores.get(core)
    if before is None or after is None or after.total_s <= before.total_s:
        return 0.0
    share: float = (getattr(after, name) - getattr(before, name)) / (after.total_s - before.total_s)
    return max(share, 0.0)


def _percent(share: float) -> str:
    return f"{100.0 * share:.3g} %"


def stream_ports(streams: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the receiving port of each stream."""
    return [int(stream["to_port"]) for stream in streams]
