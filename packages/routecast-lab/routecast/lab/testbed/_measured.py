"""The Trial of a measurement, from the counts of tester, device and machine."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from routecast.evaluate.trial import Bottleneck, Moment, Resource, Trial
from routecast.lab.testbed._counts import Slice
from routecast.lab.testbed._snapshots import CoreTimes
from routecast.lab.testbed.checks import TrialRecord, notes_of, reasons_against
from routecast.lab.testbed.streams import Streams
from routecast.load.offered import WIRE_OVERHEAD_BYTES, OfferedLoad, line_rate_pps

_COUNT_BY_RATE = {"offered_pps": "sent_frames", "forwarded_pps": "received_frames", "dropped_pps": "lost_frames"}

_DROP = re.compile(r"drop|discard|error|no_route|missed|fail|too_big")
"""Names of a device's counters of lost frames by place."""

_RX_DROPPED = "_rx_dropped"
_FULL_RATIO = 0.9
_AT_LINE_RATE_RATIO = 0.995
_NOTABLE_RATIO = 0.005


def over_time_of(slices: Sequence[Slice], duration_s: float) -> tuple[Moment, ...]:
    """Return the rates during equal parts of a trial.

    An offered or lost frame counts in the part in which it was due, a forwarded frame in the part in which it arrived;
    a frame that arrives after the end of its slice counts in no part. In a trial of n slices of equal length, n parts
    of a slice become one part of the trial, so that the trial has as many parts as a slice. The result is empty if the
    tester did not count by parts: it does so on request only, and not if a slice began too late.
    """
    slices_over_time = [over_time for part in slices if (over_time := part.outcome.get("over_time")) is not None]
    if not slices_over_time or len(slices_over_time) < len(slices):
        return ()
    slice_count = len(slices_over_time)
    counts: dict[str, list[int]] = {}
    for rate, name in _COUNT_BY_RATE.items():
        parts = [int(count) for over_time in slices_over_time for count in over_time[name]]
        counts[rate] = [sum(parts[index : index + slice_count]) for index in range(0, len(parts), slice_count)]
    number = len(counts["offered_pps"])
    part_s = duration_s / number
    return tuple(
        Moment(time_s=part_s * index, **{rate: parts[index] / part_s for rate, parts in counts.items()})
        for index in range(number)
    )


def trial_of(
    load: OfferedLoad, duration_s: float, streams: Streams, record: TrialRecord, *, notes: Sequence[str] = ()
) -> Trial:
    """Return the Trial of a measurement; ``notes`` go before those of the checks."""
    counts = record.counts
    intended_pps = _mean_rate(load, duration_s, streams)
    forwarded_pps = counts.received_frames / duration_s
    offered_pps = counts.sent_frames / duration_s
    l2_bps = 8.0 * counts.received_bytes / duration_s
    resources = _resources(record, duration_s, forwarded_pps)
    return Trial(
        evaluator="measure",
        duration_s=duration_s,
        measured_s=duration_s,
        intended_pps=intended_pps,
        offered_pps=offered_pps,
        forwarded_pps=forwarded_pps,
        loss_ratio=counts.lost_frames / counts.sent_frames if counts.sent_frames else math.nan,
        l1_bps=l2_bps + 8.0 * WIRE_OVERHEAD_BYTES * forwarded_pps,
        l2_bps=l2_bps,
        bottleneck=_bottleneck(record, resources, load),
        arrivals=load.arrivals.text,
        resources=resources,
        offered_frames=counts.sent_frames,
        forwarded_frames=counts.received_frames,
        dropped_frames=counts.lost_frames,
        in_flight_frames=0,
        drops_pps=_drops(record, duration_s),
        latency=counts.latency,
        delay_variation=counts.delay_variation,
        duplicated_frames=counts.duplicated_frames,
        reordered_frames=counts.reordered_frames,
        corrupted_frames=counts.corrupted_frames,
        first_loss_s=counts.first_loss_s,
        last_loss_s=counts.last_loss_s,
        over_time=over_time_of(record.slices, duration_s),
        invalid=reasons_against(record),
        notes=tuple(dict.fromkeys((*notes, *streams.notes, *notes_of(record)))),
    )


def _mean_rate(load: OfferedLoad, duration_s: float, streams: Streams) -> float:
    """Return the intended load, averaged over its steps."""
    if not load.steps:
        return math.fsum(streams.intended_pps)
    edges = [(0.0, load.rate_pps), *((step.at_s, step.rate_pps) for step in load.steps if step.at_s < duration_s)]
    ends = [*(at_s for at_s, _ in edges[1:]), duration_s]
    return math.fsum((end - at_s) * rate for (at_s, rate), end in zip(edges, ends, strict=True)) / duration_s


def _drops(record: TrialRecord, duration_s: float) -> Mapping[str, float]:
    """Return the rates of lost frames by place of loss; frames in no counter of the device have an unknown place."""
    lost = record.counts.lost_frames
    drops: dict[str, float] = {}
    located = 0
    for name in record.after.device:
        if name == "drop" or not _DROP.search(name):
            continue  # "drop" is the sum
        count = record.after.device.get(name, 0) - record.before.device.get(name, 0)
        if count > 0:
            drops[name] = count / duration_s
            located += count
    if lost > located:
        drops["place unknown"] = (lost - located) / duration_s
    return drops


def _resources(record: TrialRecord, duration_s: float, forwarded_pps: float) -> tuple[Resource, ...]:
    resources = []
    core = record.cores.get("dut")
    if core is not None and record.after.threads_s:
        spent_s = sum(
            after_s - record.before.threads_s[pid]
            for pid, after_s in record.after.threads_s.items()
            if pid in record.before.threads_s
        )
        busy = min(max(spent_s / duration_s, 0.0), 1.0)
        resources.append(
            Resource(
                name=f"core {core}",
                kind="pool",
                utilisation_ratio=busy,
                capacity_pps=forwarded_pps if busy > _FULL_RATIO else math.nan,
            )
        )
    for role, core in record.cores.items():
        before, after = record.before.cores.get(core), record.after.cores.get(core)
        if role.startswith("dut ") and before and after and after.total_s > before.total_s:
            busy = min((after.busy_s - before.busy_s) / (after.total_s - before.total_s), 1.0)
            resources.append(Resource(name=f"core {core}", kind="pool", utilisation_ratio=busy))
    for number, port in enumerate(record.ports):
        for direction, frames, mean_bytes in _port_traffic(record, number):
            rate = frames / duration_s
            line = line_rate_pps(port.wire_bps, mean_bytes)
            resources.append(
                Resource(
                    name=f"port {port.name} {direction}",
                    kind="link",
                    utilisation_ratio=min(rate / line, 1.0),
                    capacity_pps=line,
                )
            )
    return tuple(resources)


def _port_traffic(record: TrialRecord, port: int) -> list[tuple[str, int, float]]:
    """Return direction, frames and mean size in bytes of the frames into and out of the device at a port."""
    traffic = []
    streams = [
        (part.outcome["ports"][number], part.outcome["to_ports"][number], stream)
        for part in record.slices
        for number, stream in enumerate(part.outcome["streams"])
    ]
    into = [stream for sender, _, stream in streams if sender == port]
    out = [stream for _, receiver, stream in streams if receiver == port]
    for direction, group, count in (("in", into, "sent_frames"), ("out", out, "received_frames")):
        frames = sum(int(stream[count]) for stream in group)
        received = sum(int(stream["received_frames"]) for stream in group)
        if frames and received:
            traffic.append((direction, frames, sum(int(stream["received_bytes"]) for stream in group) / received))
    return traffic


def _dropping_ring(record: TrialRecord) -> tuple[str, int] | None:
    """Return the device's interface whose receive ring dropped most of the lost frames, and their number; or None."""
    dropped = {}
    for interface in record.device_ports:
        counts = [record.device_change(interface, name) or 0 for name in ("rx_dropped_frames", "rx_missed_frames")]
        dropped[interface] = sum(counts)
    for name, count_after in record.after.device.items():
        if name.endswith(_RX_DROPPED):
            interface, count = name.removesuffix(_RX_DROPPED), count_after - record.before.device.get(name, 0)
            dropped[interface] = max(dropped.get(interface, 0), count)
    name = max(dropped, key=lambda interface: dropped[interface], default="")
    if not name or 2 * dropped[name] <= record.counts.lost_frames:
        return _dropping_queue(record)
    queue = _dropping_queue(record)
    return queue if queue and queue[0].startswith(f"{name}, ") else (name, dropped[name])


def _dropping_queue(record: TrialRecord) -> tuple[str, int] | None:
    """Return the receive queue, of an interface with several, that dropped most of the lost frames; or None."""
    dropped = {
        key: count_after - record.before.queue_drops.get(key, 0)
        for key, count_after in record.after.queue_drops.items()
    }
    interfaces = [interface for interface, _ in dropped]
    for (interface, queue), count in dropped.items():
        if interfaces.count(interface) > 1 and 2 * count > record.counts.lost_frames:
            return f"{interface}, queue {queue}", count
    return None


def _dropping_backlog(record: TrialRecord) -> Bottleneck | None:
    """Return the device's core whose backlog dropped most of the lost frames; or None."""
    lost = record.counts.lost_frames
    for core, (before, after) in _device_cores(record).items():
        dropped = after.dropped_frames - before.dropped_frames
        if 2 * dropped > lost:
            reason = f"had no room for {dropped:,} of {lost:,} lost frames{_squeeze_clause(before, after)}"
            return Bottleneck(name=f"backlog of core {core}", kind="task", reason=reason)
    return None


def _interrupt_bound_core(record: TrialRecord) -> Bottleneck | None:
    """Return the device's core that spends over 90 % of its time in interrupts; or None."""
    for core, (before, after) in _device_cores(record).items():
        total_s = after.total_s - before.total_s
        softirq = (after.softirq_s - before.softirq_s) / total_s
        irq = (after.irq_s - before.irq_s) / total_s
        if softirq + irq > _FULL_RATIO:
            parts = f"softirq {softirq:.0%}" + (f", irq {irq:.0%}" if irq >= _NOTABLE_RATIO else "")
            reason = f"is busy with them ({parts} of the time) and loses frames{_squeeze_clause(before, after)}"
            return Bottleneck(name=f"core {core}, in interrupts", kind="pool", reason=reason)
    return None


def _device_cores(record: TrialRecord) -> Mapping[int, tuple[CoreTimes, CoreTimes]]:
    """Return the times of the device's cores before and after, without the generator's core."""
    tester = record.cores.get("tester")
    return {
        core: (record.before.cores[core], record.after.cores[core])
        for role, core in record.cores.items()
        if role.startswith("dut")
        and core != tester
        and core in record.before.cores
        and core in record.after.cores
        and record.after.cores[core].total_s > record.before.cores[core].total_s
    }


def _squeeze_clause(before: CoreTimes, after: CoreTimes) -> str:
    times = after.squeezes - before.squeezes
    return f"; its polling was cut short {times:,} times" if times else ""


def _bottleneck(record: TrialRecord, resources: Sequence[Resource], load: OfferedLoad) -> Bottleneck:
    counts = record.counts

    def fullest(kind: str) -> Resource | None:
        of_kind = (resource for resource in resources if resource.kind == kind)
        return max(of_kind, key=lambda resource: resource.utilisation_ratio, default=None)

    busiest, full = fullest("pool"), fullest("link")
    if full is not None and full.utilisation_ratio >= _AT_LINE_RATE_RATIO:
        return Bottleneck(name=full.name, kind="link", reason="is at its line rate")
    if counts.lost_frames == 0:
        # A thread that wakes up for every frame fills its core long before its capacity, so a busy core says nothing.
        return Bottleneck(name="offered load", kind="load", reason="is carried without loss")
    if interrupts := _interrupt_bound_core(record):
        return interrupts
    if busiest is not None and busiest.utilisation_ratio > _FULL_RATIO:
        reason = f"is busy for {busiest.utilisation_ratio:.0%} of the time and loses frames"
        return Bottleneck(name=busiest.name, kind="pool", reason=reason)
    if ring := _dropping_ring(record):
        name, dropped = ring
        busy = f", while {busiest.name} is busy for {busiest.utilisation_ratio:.0%} of the time" if busiest else ""
        reason = f"had no room for {dropped:,} of {counts.lost_frames:,} lost frames{busy}"
        return Bottleneck(name=f"receive ring of {name}", kind="task", reason=reason)
    if backlog := _dropping_backlog(record):
        return backlog
    reason = "loses frames; what limits it cannot be seen from outside"
    if busiest is not None:
        reason = f"loses frames although {busiest.name} is busy for {busiest.utilisation_ratio:.0%} of the time only"
    return Bottleneck(name="device under test", kind="load", reason=reason)
