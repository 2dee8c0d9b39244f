"""Checks of a trial from the counts of tester and machine, and checks of this process's capabilities.

A reason makes a trial invalid: its counts describe the tester, not the device. A note leaves the trial valid.
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
from routecast.lab.testbed._counts import Slice, TrialCounts
from routecast.lab.testbed._snapshots import MachineSnapshot
from routecast.lab.testbed.bed import TesterPort
from routecast.lab.testbed.throttling import RealTimeThrottle
from routecast.quantity import format_duration, format_ratio
from routecast.quantity.schema import field, value

__all__ = [
    "NAMESPACE_CAPABILITIES",
    "SENDING_CAPABILITIES",
    "Limits",
    "TrialRecord",
    "disturbances",
    "is_device_starved",
    "missing",
    "notes_of",
    "reasons_against",
    "require",
    "reset_reasons",
]

_CAPABILITY_BITS = {"CAP_NET_ADMIN": 12, "CAP_NET_RAW": 13, "CAP_SYS_ADMIN": 21, "CAP_SYS_NICE": 23}

SENDING_CAPABILITIES = ("CAP_NET_RAW", "CAP_NET_ADMIN")
"""Capabilities to send and receive frames; with CAP_BPF and CAP_PERFMON, the tester can also use eBPF."""

NAMESPACE_CAPABILITIES = (*SENDING_CAPABILITIES, "CAP_SYS_ADMIN")
"""Capabilities to send frames and to make network namespaces."""

# Phrases by which disturbances() recognises sentences about other work on the machine.
_TOO_FEW, _WRONG_RATE, _LATE, _NO_ROOM = "the tester sent", "frames/s instead of", "left late", "had no room for"
_DROPPED, _MISSED = "the tester itself dropped", "the tester itself missed"
_SHARED, _STOLEN, _OTHER_WORK, _STALLED = "share core", "the hypervisor took", "other work took", "disturbance:"
_DEVICE_STARVED = "the device was ready and did not run"
_ENDED_BEFORE_RESET = "the trial ended before the reset"
_NO_EFFECT, _LATE_EFFECT = "took no effect within the trial", "took effect so late that the trial ended first"
_DISTURBANCE_REASONS = (
    *(_TOO_FEW, _WRONG_RATE, _LATE, _NO_ROOM, _DROPPED, _MISSED),
    *(_SHARED, _STOLEN, _DEVICE_STARVED, _ENDED_BEFORE_RESET, _NO_EFFECT, _LATE_EFFECT),
)
_DISTURBANCE_NOTES = (_LATE, _STOLEN, _OTHER_WORK, _STALLED)


def missing(names: Iterable[str]) -> tuple[str, ...]:
    """Return the capabilities (capabilities(7)) that are not in effect in this process."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    effective = next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff:"))
    return tuple(name for name in names if not effective >> _CAPABILITY_BITS[name] & 1)


def require(names: Iterable[str], purpose: str) -> None:
    """Check capabilities.

    Raises EnvironmentProblem: some are missing; the message says which and how to get them.
    """
    if lacking := missing(names):
        raise EnvironmentProblem(
            f"{purpose} needs {', '.join(lacking)}, which this process does not have: run it as root (sudo), "
            "or give the capabilities with setpriv or ambient capabilities of a service"
        )


@value
class Limits:
    """Bounds beyond which a trial is invalid or gets a note."""

    rate_ratio: float = field("Largest error of the rate; one frame is always allowed", default=0.001)
    edge_s: float = field("Error of the time from the first to the last frame that is always allowed", default=20e-6)
    late_s: float = field(
        "Largest lateness of a frame; the tester sends delayed frames in a burst, which the device may lose",
        default=5e-3,
    )
    late_ratio: float = field("Share of frames that are late by any amount, above which there is a note", default=0.01)
    steal_ratio: float = field("Largest share of the time that the hypervisor takes from a core", default=0.05)
    foreign_ratio: float = field(
        "Largest share of the time that the device's threads are ready while other work has their core", default=0.05
    )
    clock_step_s: float = field("Step of the wall clock above which there is a note", default=1e-3)
    stall_s: float = field(
        "Shortest pause in reception that counts as a stall, if it is far longer than the gap between frames",
        default=1e-3,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRecord:
    """The counts of a trial and the snapshots of the machine before and after it.

    In a trial with a reset (RFC 6201) links go down on purpose. The commands of the reset may delay the tester, which
    changes the times of frames, not the number of lost frames. ``generator_core_workers`` has the other workers on the
    generator's core, and whether each is known to run before the generator. ``throttle`` is the limit of real-time
    threads, where generator or device has such threads.
    """

    slices: Sequence[Slice]
    counts: TrialCounts
    before: MachineSnapshot
    after: MachineSnapshot
    ports: Sequence[TesterPort]
    receiving: Sequence[int]
    cores: Mapping[str, int]
    device_netns: str | None = None
    device_ports: Sequence[str] = ()
    generator_core_workers: Mapping[str, bool] = dataclasses.field(default_factory=dict)
    limits: Limits = dataclasses.field(default_factory=Limits)
    throttle: RealTimeThrottle | None = None
    is_reset: bool = False

    def link_change(self, port: TesterPort, name: str) -> int:
        """Return the increase of a counter of a port's interface; 0 if the interface is not seen."""
        return self._change((port.netns, port.interface), name) or 0

    def device_change(self, interface: str, name: str) -> int | None:
        """Return the increase of a counter of the device's interface; None if the interface is not seen."""
        return None if self.device_netns is None else self._change((self.device_netns, interface), name)

    def _change(self, key: tuple[str | None, str], name: str) -> int | None:
        before, after = self.before.links.get(key), self.after.links.get(key)
        return None if before is None or after is None else int(getattr(after, name) - getattr(before, name))

    def streams(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Yield the outcome of each stream of each slice with its number."""
        for part in self.slices:
            yield from enumerate(part.outcome["streams"])


def reasons_against(record: TrialRecord) -> tuple[str, ...]:
    """Return the reasons why a trial is invalid; empty for a valid trial."""
    return tuple(
        reason
        for check in (
            *(_rate_errors, _lateness, _shared_core, _early_stop, _link_changes, _tester_drops),
            *(_conservation, _kernel_counts, _stolen_time, _device_starvation),
        )
        for reason in check(record)
    )


_IN_FLIGHT_S = 0.01
"""Time for which a frame that a reset loses may be under way already."""
_LEAST_REST_RATIO = 0.9
"""Least time from the effect of a reset to the end of the trial, over the time that was planned."""


def reset_reasons(trial: Trial, *, kind: str, planned_s: float, began_s: float, ended_s: float) -> tuple[str, ...]:
    """Return the reasons why a trial with a reset is invalid, beside those of any trial (RFC 6201).

    ``planned_s``, ``began_s`` and ``ended_s`` are times after the first counted frame: when the reset was due, when it
    began (infinite if it never did), and when the device was back. A reset that loses no frame is a result only if the
    device was back before the end of the trial. A loss that lasts to the end is one only if the reset had the time that
    was planned for it.
    """
    end_s = trial.duration_s
    if not began_s < end_s:
        return (_ENDED_BEFORE_RESET,)
    begin = f"the reset of the {kind} began {format_duration(max(began_s, 0.0))} after the start"
    has_lost = math.isfinite(trial.last_loss_s) and trial.last_loss_s >= began_s - _IN_FLIGHT_S
    if not has_lost:
        if ended_s <= end_s:
            return ()
        return (f"{begin} and {_NO_EFFECT} of {format_duration(end_s)}: no frame was lost before it ended",)
    effect_s = max(trial.first_loss_s, began_s)
    lasts = trial.last_loss_s > end_s - 2.0 / trial.intended_pps - 1e-3 * (end_s - planned_s)
    if lasts and end_s - effect_s < _LEAST_REST_RATIO * (end_s - planned_s):
        return (f"{begin} and {_LATE_EFFECT}: frames were lost from {format_duration(effect_s)} on to the end",)
    return ()


def notes_of(record: TrialRecord) -> tuple[str, ...]:
    """Return the notes of a trial."""
    return tuple(
        note
        for check in (
            _no_frame_back,
            _frames_to_wrong_ports,
            _altered_frames,
            _reception_stall,
            _minor_lateness,
            _clock_step,
            _other_load,
            _foreign_frames,
        )
        for note in check(record)
    )


def is_device_starved(trial: Trial) -> bool:
    """Whether other work kept the device from running."""
    return any(_DEVICE_STARVED in reason for reason in trial.invalid)


def disturbances(trial: Trial) -> tuple[str, ...]:
    """Return the reasons and notes of a trial about other work on the machine."""
    return tuple(
        sentence
        for sentences, words in ((trial.invalid, _DISTURBANCE_REASONS), (trial.notes, _DISTURBANCE_NOTES))
        for sentence in sentences
        if any(word in sentence for word in words)
    )


def _rate_errors(record: TrialRecord) -> Iterator[str]:
    for part in record.slices:
        for number, stream in enumerate(part.outcome["streams"]):
            intended, sent = int(stream["intended_frames"]), int(stream["sent_frames"])
            if intended - sent > max(1.0, record.limits.rate_ratio * intended):
                yield (
                    f"stream {number}: {_TOO_FEW} {sent:,} of {intended:,} frames "
                    f"({_percent(1.0 - sent / intended)} too few)"
                )
                continue
            if not part.outcome["is_even"][number]:
                continue  # bursts and steps have no constant rate
            intended_pps, achieved_pps = float(stream["intended_pps"]), float(stream["achieved_pps"])
            frames = part.duration_s * abs(achieved_pps - intended_pps)  # too many or too few
            allowed = max(1.0, record.limits.edge_s * intended_pps)
            if sent > 2 and abs(achieved_pps / intended_pps - 1.0) > record.limits.rate_ratio and frames > allowed:
                yield f"stream {number}: sent {achieved_pps:,.0f} {_WRONG_RATE} {intended_pps:,.0f}"


def _lateness(record: TrialRecord) -> Iterator[str]:
    for number, stream in record.streams():
        if float(stream["latest_s"]) > record.limits.late_s and not record.is_reset:
            why = _throttling(record, float(stream["latest_s"]))
            yield f"stream {number}: {_describe_lateness(stream)}" + (f"; that may be {why}" if why else "")


def _shared_core(record: TrialRecord) -> Iterator[str]:
    """Report loss and lateness that a generator on the device's core may have caused."""
    if not record.generator_core_workers:
        return
    shared = f"generator and {' and '.join(record.generator_core_workers)} {_SHARED} {record.cores['tester']}"
    advice = "let routecast use another core (taskset, cpusets)"
    unordered_workers = [worker for worker, is_first in record.generator_core_workers.items() if not is_first]
    if record.is_reset and "device" in record.generator_core_workers:
        yield f"{shared}: the reset had to wait for the generator, so the loss is not the device's own; {advice}"
    elif record.counts.lost_frames and unordered_workers:
        yield (
            f"{shared}, and it is not known that the {' and the '.join(unordered_workers)} went first: "
            f"{record.counts.lost_frames:,} frames may be lost because of the generator; {advice} or real-time priority"
        )
    elif any(_rate_errors(record)):
        yield f"{shared}, whose time does not suffice for all of them: offer less, or {advice}"


def _minor_lateness(record: TrialRecord) -> Iterator[str]:
    for number, stream in record.streams():
        share = int(stream["late_frames"]) / max(int(stream["sent_frames"]), 1)
        latest_s = float(stream["latest_s"])
        is_reason = latest_s > record.limits.late_s and not record.is_reset
        # Even a few late frames can be a burst that overflows a ring of the device.
        may_have_lost = record.counts.lost_frames > 0 and latest_s > record.limits.stall_s
        if (share > record.limits.late_ratio or may_have_lost) and not is_reason:
            yield f"stream {number}: {_describe_lateness(stream)}; the delayed frames followed faster than planned"


def _describe_lateness(stream: Mapping[str, Any]) -> str:
    late, sent = int(stream["late_frames"]), int(stream["sent_frames"])
    return f"{late:,} of {sent:,} frames {_LATE}, the worst by {format_duration(float(stream['latest_s']))}"


def _early_stop(record: TrialRecord) -> Iterator[str]:
    if any(part.outcome.get("stopped") for part in record.slices):
        yield "the trial was stopped before its end"


def _link_changes(record: TrialRecord) -> Iterator[str]:
    for port in record.ports:
        key = (port.netns, port.interface)
        before, after = record.before.links.get(key), record.after.links.get(key)
        name = f"port {port.name} ({port.interface})"
        if before is None or after is None:
            yield f"{name}: the interface went away"
        elif not (after.is_up and after.has_carrier):
            yield f"{name}: the link is down"
        elif after.carrier_changes != before.carrier_changes and not record.is_reset:
            yield f"{name}: the link went down and up {(after.carrier_changes - before.carrier_changes + 1) // 2} times"


def _tester_drops(record: TrialRecord) -> Iterator[str]:
    overrun = sum(int(part.outcome["back_end"].get("overrun_frames", 0)) for part in record.slices)
    if overrun:
        yield f"the tester's receiver {_NO_ROOM} {overrun:,} frames: give it its own core ([cores] receiver)"
    for number in record.receiving:
        port = record.ports[number]
        for sentence, name in (
            (_DROPPED, "rx_dropped_frames"),
            (_MISSED, "rx_missed_frames"),
            ("the tester itself found errors in", "rx_errors"),
        ):
            count = record.link_change(port, name)
            if sentence == _DROPPED:
                count -= record.counts.foreign_frames  # no socket takes them, so the kernel drops them
            if count > 0:
                yield f"port {port.name} ({port.interface}): {sentence} {count:,} frames"


def _conservation(record: TrialRecord) -> Iterator[str]:
    for number, stream in enumerate(stream for _, stream in record.streams()):
        sent, received, lost = (int(stream[name]) for name in ("sent_frames", "received_frames", "lost_frames"))
        if sent != received + lost:
            yield f"stream {number}: {sent:,} sent are not {received:,} received + {lost:,} lost (S12)"


def _kernel_counts(record: TrialRecord) -> Iterator[str]:
    """Compare the frames that the tester received with the kernel's count at its interfaces."""
    for number in record.receiving:
        port = record.ports[number]
        key = (port.netns, port.interface)
        if key not in record.before.links or key not in record.after.links:
            continue
        kernel = record.link_change(port, "rx_frames")
        tester = sum(
            int(stream["received_frames"]) + int(stream["duplicated_frames"])
            for part in record.slices
            for to_port, stream in zip(part.outcome["to_ports"], part.outcome["streams"], strict=True)
            if to_port == number
        )
        if kernel < tester:
            yield f"port {port.name}: received {tester:,} frames, the kernel counted {kernel:,} at {port.interface}"


def _stolen_time(record: TrialRecord) -> Iterator[str]:
    for role, number in record.cores.items():
        share = _share(record, number, "steal_s")
        if share > record.limits.steal_ratio:
            yield f"core {number} ({role}): {_STOLEN} {_percent(share)} of the time"


def _device_starvation(record: TrialRecord) -> Iterator[str]:
    """Report how long the device's threads waited for other work on their core."""
    length_s = record.after.at_s - record.before.at_s
    if "device" in record.generator_core_workers or length_s <= 0.0:
        return
    waited_s = sum(now_s - record.before.waiting_s.get(pid, now_s) for pid, now_s in record.after.waiting_s.items())
    share = min(waited_s / length_s, 1.0)
    if share > record.limits.foreign_ratio:
        core = f"core {record.cores['dut']} (dut): " if "dut" in record.cores else ""
        throttling = _throttling(record, waited_s)
        why = f" or because of {throttling}" if throttling else ""
        yield f"{core}{_DEVICE_STARVED} for {_percent(share)} of the time, because other work had its core{why}"


def _no_frame_back(record: TrialRecord) -> Iterator[str]:
    """Report where frames stopped if none came back."""
    counts = record.counts
    if counts.sent_frames == 0 or counts.received_frames > 0:
        return
    port_counts = []
    for interface in record.device_ports:
        rx, tx = record.device_change(interface, "rx_frames"), record.device_change(interface, "tx_frames")
        if rx is not None:
            port_counts.append(f"{interface} received {rx:,} and sent {tx:,}")
    device_clause = f"; of the device, {', '.join(port_counts)}" if port_counts else ""
    corrupted = f"; {counts.corrupted_frames:,} came back corrupted" if counts.corrupted_frames else ""
    yield (
        f"0 of {counts.sent_frames:,} frames came back{corrupted}: check that the device forwards, its routes and "
        f"neighbours, the MAC addresses in the test bed's file, and the cables{device_clause}"
    )


def _frames_to_wrong_ports(record: TrialRecord) -> Iterator[str]:
    """Report frames at ports to which no stream goes."""
    misrouted = sum(int(part.outcome["back_end"].get("misrouted_frames", 0)) for part in record.slices)
    if misrouted:
        yield f"{misrouted:,} frames arrived at a wrong port: the device floods, loops or misroutes"
        return
    for number, port in enumerate(record.ports):
        if number in record.receiving:
            continue
        returned = record.link_change(port, "rx_frames")
        if returned > max(10.0, 0.001 * record.counts.sent_frames):
            yield (
                f"{returned:,} frames came back to port {port.name}, which only sends: "
                "the device loops, floods or answers"
            )


def _altered_frames(record: TrialRecord) -> Iterator[str]:
    counts = record.counts
    if counts.duplicated_frames:
        yield f"the device duplicated {counts.duplicated_frames:,} frames"
    if counts.corrupted_frames and counts.received_frames:
        yield f"{counts.corrupted_frames:,} frames came back with changed content; they count as lost"
    if counts.reordered_frames:
        yield f"{counts.reordered_frames:,} frames were overtaken within their flow (RFC 4737)"


def _reception_stall(record: TrialRecord) -> Iterator[str]:
    counts = record.counts
    if not counts.received_frames or not math.isfinite(counts.longest_gap_s):
        return
    duration_s = math.fsum(part.duration_s for part in record.slices)
    gap_s = duration_s / counts.received_frames
    throttling = _throttling(record, counts.longest_gap_s)
    # Without a loss it is the frames that waited which are late: of any other stall their times tell.
    if not (counts.lost_frames or throttling) or counts.longest_gap_s <= max(record.limits.stall_s, 50.0 * gap_s):
        return
    subject = "some of the loss" if counts.lost_frames else "the latency of some frames"
    yield (
        f"{_STALLED} nothing was received for {format_duration(counts.longest_gap_s)} from "
        f"{format_duration(counts.longest_gap_at_s)} on, so {subject} may be {throttling or 'a stall of the machine'}"
    )


def _throttling(record: TrialRecord, stall_s: float) -> str:
    """Return the words for the limit of real-time threads if it explains a stall; empty otherwise."""
    throttle = record.throttle
    return throttle.text if throttle is not None and throttle.explains(stall_s) else ""


def _clock_step(record: TrialRecord) -> Iterator[str]:
    step_s = record.after.realtime_offset_s - record.before.realtime_offset_s
    if abs(step_s) > record.limits.clock_step_s + 1e-3 * (record.after.at_s - record.before.at_s):
        yield f"the wall clock was set by {step_s:+.3f} s during the trial; the tester's own clock was not"


def _other_load(record: TrialRecord) -> Iterator[str]:
    for role, number in record.cores.items():
        busy, steal = _share(record, number, "busy_s"), _share(record, number, "steal_s")
        if 0.01 < steal <= record.limits.steal_ratio:
            yield f"core {number} ({role}): {_STOLEN} {_percent(steal)} of the time"
        if role == "dut" and record.after.threads_s and "device" not in record.generator_core_workers:
            own_s = sum(record.after.threads_s.values()) - sum(
                record.before.threads_s.get(pid, 0.0) for pid in record.after.threads_s
            )
            other = busy - own_s / max(record.after.at_s - record.before.at_s, 1e-9)
            if other > 0.1:
                yield f"core {number} ({role}): {_OTHER_WORK} {_percent(min(other, 1.0))} of the time"


def _foreign_frames(record: TrialRecord) -> Iterator[str]:
    if record.counts.foreign_frames > max(10.0, 0.001 * record.counts.sent_frames):
        yield f"{record.counts.foreign_frames:,} frames of other senders arrived at the tester; they are not counted"


def _share(record: TrialRecord, core: int, name: str) -> float:
    before, after = record.before.cores.get(core), record.after.cores.get(core)
    if before is None or after is None or after.total_s <= before.total_s:
        return 0.0
    share: float = (getattr(after, name) - getattr(before, name)) / (after.total_s - before.total_s)
    return max(share, 0.0)


def _percent(share: float) -> str:
    return format_ratio(share)
