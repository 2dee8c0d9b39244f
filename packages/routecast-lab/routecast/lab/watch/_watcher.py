"""One look at a router in service: what its polls cost, and the load at which it will saturate."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from routecast.errors import EnvironmentProblem, QuantityProblem
from routecast.evaluate.plain import fields_of, plain
from routecast.lab.testbed.dut_host import run_command
from routecast.lab.testbed.netns import command_inside, inside
from routecast.lab.watch._cores import Core, cores_of, of_interface, polls_seen
from routecast.lab.watch._deferral import Deferral, NapiInstance, instances, restore
from routecast.lab.watch._looking import Counting, Look, Poller
from routecast.lab.watch._recording import LookRecord, ProbeLook
from routecast.lab.watch._saturation import FULL_PACKETS, FullPolls, Saturation

__all__ = ["ProbeStep", "Watched", "answered", "watch"]

MAX_WAIT_S: Final = 5e-3
"""Longest time for which a packet gathers while it is probed."""
PROBE_S: Final = 1.0
"""Longest time of a probe of one receive queue."""
DEFAULT_RING: Final = 256
"""Frames of a receive ring whose size is not known: that of a veth interface."""
CHECKSUM_BYTES: Final = 4
"""Octets of a frame that no driver's counter of octets has."""
_STEP_S: Final = 0.12
_LEAST_LEFT_S: Final = 0.06
_WANTED_THIRD: Final = 150
_FEWEST_EPISODES: Final = 20
_RING_SHARE: Final = 0.85
_DEVIATIONS: Final = 3.5
_SLOWEST_PPS: Final = 100.0
_FULLEST: Final = 0.5
"""Cores with less than this share of the packets of the fullest one are not probed: they do not limit first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeStep:
    """A step of a probe of an instance (None: of all): how long packets gathered, full polls after full ones."""

    napi_id: int | None
    wait_s: float
    full_polls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What a look at an interface came to.

    ``cores``: those that poll it, the fullest first; ``limits``: the name of that which is full first; ``frame_bytes``:
    mean of the frames received, with their checksum, NaN without any; ``ring_frames``: of a receive ring; ``lost``:
    frames lost during the look, by place; ``steps``: of the probe, if there was one; ``is_restored``: whether the
    settings are as before; ``own_ratio``: share of the busy time that the watch's own programs took.
    """

    interface: str
    netns: str | None
    instances: tuple[NapiInstance, ...]
    duration_s: float
    rate_pps: float
    busy_ratio: float
    packets_per_poll: float
    full_polls: int
    share_ratio: float
    own_ratio: float
    frame_bytes: float
    ring_frames: int
    lost: dict[str, int]
    saturation: Saturation
    cores: tuple[Core, ...] = ()
    limits: str = ""
    steps: tuple[ProbeStep, ...] = ()
    is_restored: bool = True
    notes: tuple[str, ...] = ()

    @property
    def headroom_ratio(self) -> float:
        """How much more load the router carries than it has now; NaN where that is not known."""
        return self.saturation.pps / self.rate_pps - 1.0 if self.rate_pps else math.nan

    @property
    def by_busy_share_pps(self) -> float:
        """What the busy share of the fullest core alone would say, too little at low loads; for comparison."""
        fullest = max(self.cores, key=lambda core: core.busy_ratio, default=None)
        return self.rate_pps / fullest.busy_ratio if fullest is not None and fullest.busy_ratio else math.nan

    def to_json(self) -> dict[str, Any]:
        """Return plain data; what is not known is null."""
        figures = {
            **fields_of(self),
            "headroom_ratio": self.headroom_ratio,
            "headroom_pps": self.saturation.pps - self.rate_pps,
            "by_busy_share_pps": self.by_busy_share_pps,
        }
        return plain(figures)


def watch(
    interface: str,
    *,
    netns: str | None = None,
    duration_s: float = 3.0,
    probe: bool = False,
    ring_frames: int | None = None,
    consent: Callable[[float], bool] | None = None,
    on_progress: Callable[[float], object] | None = None,
    on_recording: Callable[[LookRecord], object] | None = None,
) -> Watched:
    """Look at an interface of a router in service.

    Parameters
    ----------
    interface : str
        Where frames come in.
    netns : str or None
        Its network namespace.
    duration_s : float
        Of the look, s.
    probe : bool
        Whether to let packets gather afterwards, for a second at most at each receive queue that may limit, so that
        full polls follow full ones at any load. Each packet then waits :data:`MAX_WAIT_S` at most. The settings are put
        back on every exit.
    ring_frames : int or None
        Receive ring, frames; None: what ``ethtool`` says, else that of a veth interface. What gathers stays well below.
    consent : callable or None
        Asked before anything is set, with the longest time for which a packet will wait, s; None: it is given.
    on_progress : callable or None
        Called with the finished share of the look.
    on_recording : callable or None
        Called with all that the answer is made of.

    Raises
    ------
    EnvironmentProblem
        There is no such interface, a right or the kernel's type information (BTF) is missing, or, with ``probe``,
        packets gather there already.
    QuantityProblem
        The duration or the ring is not above 0.
    """
    if not duration_s > 0.0:
        raise QuantityProblem(f"{duration_s}", f"got a look of {duration_s} s: give more than 0")
    if ring_frames is not None and ring_frames < 1:
        raise QuantityProblem(f"{ring_frames}", f"got a ring of {ring_frames} frames: give 1 or more")
    notes = [f"{left}: put back what a watch that was killed had left" for left in restore()]
    queues = instances(netns, interface)
    threads = [instance.thread_pid for instance in queues if instance.thread_pid is not None]
    counting = Counting(netns, interface, threads, threads_alone=len(threads) == len(queues) > 0)
    steps: tuple[ProbeLook, ...] = ()
    is_restored = True
    ring = ring_frames or _ring_of(netns, interface)
    try:
        before, received = _lost(netns, interface), _received(netns, interface)
        look = counting.look(duration_s, on_progress)
        frames, octets = (end - begin for end, begin in zip(_received(netns, interface), received, strict=True))
        if probe:
            room = _RING_SHARE * ring
            probed, slowest_pps = _to_probe(queues, look)
            if not probed:
                notes.append(f"not probed: only {look.rate_pps:.3g} packets/s come in")
            elif consent is not None and not consent(min(MAX_WAIT_S, room / slowest_pps)):
                notes.append("not probed: no consent")
            else:
                for instance in probed:
                    steps += _gathered(counting, netns, interface, instance, look, room)
                is_restored = _settings(instances(netns, interface)) == _settings(queues)
        lost = {place: count - before.get(place, 0) for place, count in _lost(netns, interface).items()}
    finally:
        counting.close()
    recording = LookRecord(
        interface=interface,
        netns=netns,
        instances=queues,
        look=look,
        probe=steps,
        lost={place: count for place, count in lost.items() if count},
        frame_bytes=octets / frames + CHECKSUM_BYTES if frames > 0 else math.nan,
        ring_frames=ring,
        is_restored=is_restored,
        notes=tuple(notes),
    )
    if on_recording is not None:
        on_recording(recording)
    return answered(recording)


def answered(recording: LookRecord) -> Watched:
    """Return what a recording comes to: the load at saturation, and the core that limits first."""
    look = recording.look
    pollers = {part.of_poller for step in recording.probe for part in step.look.parts}
    gathered: dict[Poller, FullPolls] = {
        poller: polls_seen(step.look.records_of(poller) for step in recording.probe) for poller in pollers
    }
    names = {
        each.thread_pid: f"the thread of queue {number}"
        for number, each in enumerate(recording.instances)
        if each.thread_pid is not None
    }
    cores = cores_of(look, gathered, names)
    answer, limits, notes = of_interface(cores)
    limiting = next((core for core in cores if core.name == limits), None)
    packets, polls, empty = (
        sum(int(part.counts[key]) for part in look.parts) for key in ("packets", "polls", "empty_polls")
    )
    busy_ratio = sum(core.busy_ratio for core in cores)
    return Watched(
        interface=recording.interface,
        netns=recording.netns,
        instances=recording.instances,
        duration_s=look.duration_s,
        rate_pps=look.rate_pps,
        busy_ratio=busy_ratio,
        packets_per_poll=packets / (polls - empty) if polls > empty else math.nan,
        full_polls=sum(core.full_polls for core in cores),
        share_ratio=limiting.share_ratio if limiting is not None else math.nan,
        own_ratio=look.own_ns * 1e-9 / (busy_ratio * look.duration_s) if busy_ratio else 0.0,
        frame_bytes=recording.frame_bytes,
        ring_frames=recording.ring_frames,
        lost=recording.lost,
        saturation=answer,
        cores=cores,
        limits=limits,
        steps=tuple(
            ProbeStep(
                napi_id=step.napi_id,
                wait_s=step.wait_s,
                full_polls=len(polls_seen(step.look.records_of(poller) for poller in pollers)),
            )
            for step in recording.probe
        ),
        is_restored=recording.is_restored,
        notes=(*recording.notes, *notes),
    )


def _settings(queues: Sequence[NapiInstance]) -> list[tuple[int, int]]:
    return [instance.settings for instance in queues]


def _to_probe(queues: Sequence[NapiInstance], look: Look) -> tuple[tuple[NapiInstance | None, ...], float]:
    """Return the instances whose full polls are wanted, the busiest first, and the packets a second of the slowest.

    One of each core that may limit; None stands for all of an interface whose kernel lists none.
    """
    if not queues:
        rate_pps = look.rate_of(None)
        return ((None,), rate_pps) if rate_pps > _SLOWEST_PPS else ((), math.nan)
    cores = cores_of(look, {})
    by_id = {instance.id: instance for instance in queues}
    chosen: dict[int, NapiInstance] = {}
    for core in cores:
        known = [napi_id for napi_id in core.napi_ids if napi_id in by_id]
        if core.rate_pps < _FULLEST * cores[0].rate_pps or not known:
            continue
        busiest = max(known, key=look.rate_of)
        if look.rate_of(busiest) > _SLOWEST_PPS:
            chosen[busiest] = by_id[busiest]
    return tuple(chosen.values()), min((look.rate_of(napi_id) for napi_id in chosen), default=math.nan)


def _gathered(
    counting: Counting, netns: str | None, interface: str, instance: NapiInstance | None, look: Look, room: float
) -> tuple[ProbeLook, ...]:
    """Let packets gather, first 64, then as many as stay within ``room`` however unevenly they come."""
    napi_id = None if instance is None else instance.id
    steps: list[ProbeLook] = []
    full, begin_s, rate_pps = FullPolls(second_s=(), later_s=()), time.monotonic(), look.rate_of(napi_id)
    wait_s = min(MAX_WAIT_S, min(FULL_PACKETS, room) / rate_pps)
    with Deferral(netns, interface, instance, limit_s=PROBE_S + 0.5) as deferral:
        while True:
            left_s = PROBE_S - (time.monotonic() - begin_s)
            if left_s < _LEAST_LEFT_S or len(full.later_s) >= _WANTED_THIRD or len(full) >= 3 * _WANTED_THIRD:
                break
            deferral.wait(round(wait_s * 1e9))
            step = counting.look(min(_STEP_S, left_s - 0.5 * _LEAST_LEFT_S))
            steps.append(ProbeLook(napi_id=napi_id, wait_s=wait_s, look=step))
            full += polls_seen(step.records_of(poller) for poller in _pollers_of(step, napi_id))
            episodes, dispersion = _episodes(step, napi_id)
            if episodes > _FEWEST_EPISODES:
                wait_s = min(MAX_WAIT_S, _mean_within(room, dispersion) / rate_pps)
    return tuple(steps)


def _pollers_of(look: Look, napi_id: int | None) -> set[Poller]:
    return {part.of_poller for part in look.parts if napi_id in (None, part.napi_id)}


def _episodes(look: Look, napi_id: int | None) -> tuple[int, float]:
    """Return how often an instance was polled from waking to sleeping, and variance over mean of the packets, >= 1."""
    most, worst = 0, 1.0
    for part in look.parts:
        count = int(part.counts["episodes"])
        if napi_id not in (None, part.napi_id) or not count:
            continue
        mean = part.counts["episode_packets"] / count
        variance = part.counts["episode_packets_squared"] / count - mean * mean
        most, worst = max(most, count), max(worst, variance / mean if mean else 1.0)
    return most, worst


def _mean_within(room: float, dispersion: float) -> float:
    """Return the mean m of a number of packets whose m + 3.5 sqrt(dispersion m) is ``room``."""
    half = 0.5 * _DEVIATIONS * math.sqrt(dispersion)
    return (math.sqrt(half * half + room) - half) ** 2


def _ring_of(netns: str | None, interface: str) -> int:
    """Return the frames of a receive ring, as ``ethtool`` says; else those of a veth interface."""
    with suppress(EnvironmentProblem):
        text = run_command(command_inside(netns, "ethtool", "-g", interface))
        numbers = [line.split()[-1] for line in text.splitlines() if line.startswith("RX:")]
        if numbers and numbers[-1].isdigit() and int(numbers[-1]) > 0:
            return int(numbers[-1])
    return DEFAULT_RING


def _received(netns: str | None, interface: str) -> tuple[int, int]:
    """Return frames and octets that came in so far; drivers count these without the checksum."""
    for line in inside(netns, lambda: Path("/proc/thread-self/net/dev").read_text(encoding="utf-8")).splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == interface:
            octets, frames = numbers.split()[:2]
            return int(frames), int(octets)
    return 0, 0


def _lost(netns: str | None, interface: str) -> dict[str, int]:
    """Return frames lost so far, by place: at the interface, and before the stack's queues of this machine."""
    counters: dict[str, int] = {}
    for line in inside(netns, lambda: Path("/proc/thread-self/net/dev").read_text(encoding="utf-8")).splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == interface:
            words = numbers.split()
            counters["interface"] = int(words[3])
            counters["fifo"] = int(words[4])
    rows = Path("/proc/net/softnet_stat").read_text(encoding="utf-8").splitlines()
    counters["backlog"] = sum(int(row.split()[1], 16) for row in rows)
    return counters
