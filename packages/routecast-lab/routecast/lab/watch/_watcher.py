"""One look at a router in service: what its polls cost, and the load at which it will saturate."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from routecast.errors import EnvironmentProblem, QuantityProblem
from routecast.evaluate.plain import fields_of, plain
from routecast.lab import _lab
from routecast.lab.testbed.dut_host import run_command
from routecast.lab.testbed.netns import FOLDER, command_inside, inside
from routecast.lab.watch._deferral import Deferral, NapiInstance, instances, interface_index, restore
from routecast.lab.watch._saturation import FULL_PACKETS, RECORD, FullPolls, Saturation, saturation

__all__ = ["Look", "ProbeStep", "Watched", "watch"]

MAX_WAIT_S: Final = 5e-3
"""Longest time for which a packet gathers while it is probed."""
PROBE_S: Final = 1.0
"""Longest time of a probe."""
DEFAULT_RING: Final = 256
"""Frames of a receive ring whose size is not known: that of a veth interface."""
_DRAIN_S: Final = 0.02
_STEP_S: Final = 0.12
_LEAST_LEFT_S: Final = 0.06
_WANTED_THIRD: Final = 150
_FEWEST_EPISODES: Final = 20
_RING_SHARE: Final = 0.85
_DEVIATIONS: Final = 3.5
_SLOWEST_PPS: Final = 100.0
_CALLS_OF_A_FULL_POLL: Final = 3.0
_HOST_NAMESPACE: Final = Path("/proc/self/ns/net")


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What was counted while somebody looked for a time; counts are differences.

    ``run_s`` and ``waited_s``: of the NAPI threads, on a core and for one; NaN where softirqs poll.
    """

    duration_s: float
    polls: dict[str, Any]
    full: FullPolls
    run_s: float
    waited_s: float

    @property
    def rate_pps(self) -> float:
        """Packets that were polled a second."""
        return float(self.polls["packets"]) / self.duration_s

    @property
    def busy_ratio(self) -> float:
        """Share of the time in which the polling thread, or softirqs that polled, had a core."""
        busy_s = self.run_s if math.isfinite(self.run_s) else self.polls["busy_ns"] * 1e-9
        return busy_s / self.duration_s

    @property
    def packets_per_poll(self) -> float:
        """Mean batch of the polls with a packet at least; NaN without any."""
        with_packets = self.polls["polls"] - self.polls["empty_polls"]
        return self.polls["packets"] / with_packets if with_packets else math.nan

    @property
    def share_ratio(self) -> float:
        """Share of the core that the poller had of what it wanted."""
        if math.isfinite(self.run_s) and self.run_s > 0.0:
            return self.run_s / (self.run_s + self.waited_s)
        wanted_ns = self.polls["busy_ns"] + self.polls["paused_ns"]
        return self.polls["busy_ns"] / wanted_ns if wanted_ns else 1.0

    @property
    def dispersion(self) -> float:
        """Variance over mean of the packets of an episode, at least 1."""
        count = self.polls["episodes"]
        mean = self.polls["episode_packets"] / count if count else 0.0
        return max(1.0, (self.polls["episode_packets_squared"] / count - mean * mean) / mean) if mean else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeStep:
    """A step of a probe: for how long packets gathered at most, and the full polls that followed full ones."""

    wait_s: float
    full_polls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What a look at an interface came to.

    ``lost``: frames lost during it, by place; ``steps``: of the probe, if there was one; ``is_restored``: whether the
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
    lost: dict[str, int]
    saturation: Saturation
    steps: tuple[ProbeStep, ...] = ()
    is_restored: bool = True
    notes: tuple[str, ...] = ()

    @property
    def headroom_ratio(self) -> float:
        """How much more load the router carries than it has now; NaN where that is not known."""
        return self.saturation.pps / self.rate_pps - 1.0 if self.rate_pps else math.nan

    @property
    def by_busy_share_pps(self) -> float:
        """What the busy share alone would say, which is too little at low loads; for comparison."""
        return self.rate_pps / self.busy_ratio if self.busy_ratio else math.nan

    def to_json(self) -> dict[str, Any]:
        """Return plain data; what is not known is null."""
        figures = {
            **fields_of(self),
            "headroom_ratio": self.headroom_ratio,
            "headroom_pps": self.saturation.pps - self.rate_pps,
            "by_busy_share_pps": self.by_busy_share_pps,
        }
        return plain(figures)


class _Probe:
    """The programs in the kernel, and the numbers of the threads that poll."""

    def __init__(self, netns: str | None, interface: str, threads: Sequence[int]) -> None:
        index = inside(netns, lambda: interface_index(interface))
        namespace = _HOST_NAMESPACE if netns is None else FOLDER / netns
        try:
            self._watch = _lab.PollWatch(index, namespace.stat().st_ino)
        except _lab.TesterError as problem:
            raise EnvironmentProblem(f"polls cannot be counted: {problem.args[1]}") from problem
        self._threads = threads

    def look(self, duration_s: float, on_progress: Callable[[float], object] | None = None) -> Look:
        self._watch.take_records()
        before, (run_s, waited_s), begin_s = self._polls(), _schedstat(self._threads), time.monotonic()
        records = []
        while (passed_s := time.monotonic() - begin_s) < duration_s:
            time.sleep(min(_DRAIN_S, duration_s - passed_s))
            records.append(self._watch.take_records())
            if on_progress is not None:
                on_progress(min(passed_s / duration_s, 1.0))
        after, (run_after_s, waited_after_s) = self._polls(), _schedstat(self._threads)
        lasted_s = time.monotonic() - begin_s
        records.append(self._watch.take_records())
        full = FullPolls.of(np.frombuffer(b"".join(records), dtype=RECORD))
        return Look(
            duration_s=lasted_s,
            polls={name: _difference(after[name], count) for name, count in before.items()},
            full=full,
            run_s=run_after_s - run_s,
            waited_s=waited_after_s - waited_s,
        )

    def close(self) -> None:
        self._watch.close()

    def _polls(self) -> dict[str, Any]:
        polls: dict[str, Any] = json.loads(self._watch.polls())
        return polls


def _difference(after: Any, before: Any) -> Any:
    return (
        [end - begin for end, begin in zip(after, before, strict=True)] if isinstance(after, list) else after - before
    )


def watch(
    interface: str,
    *,
    netns: str | None = None,
    duration_s: float = 3.0,
    probe: bool = False,
    ring_frames: int | None = None,
    consent: Callable[[float], bool] | None = None,
    on_progress: Callable[[float], object] | None = None,
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
        Whether to let packets gather afterwards, for a second at most, so that full polls follow full ones at any load.
        Each packet then waits :data:`MAX_WAIT_S` at most. The settings are put back on every exit.
    ring_frames : int or None
        Receive ring, frames; None: what ``ethtool`` says, else that of a veth interface. What gathers stays well below.
    consent : callable or None
        Asked before anything is set, with the longest time for which a packet will wait, s; None: it is given.
    on_progress : callable or None
        Called with the finished share of the look.

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
    counting = _Probe(netns, interface, threads)
    steps: tuple[ProbeStep, ...] = ()
    is_restored = True
    try:
        before = _lost(netns, interface)
        look = counting.look(duration_s, on_progress)
        full, source = look.full, "passive"
        room = _RING_SHARE * (ring_frames or _ring_of(netns, interface)) if probe else 0.0
        if probe and look.rate_pps <= _SLOWEST_PPS:
            notes.append(f"not probed: only {look.rate_pps:.3g} packets/s come in")
        elif probe and len(queues) > 1:
            notes.append("not probed: several receive queues, which are not told apart")
        elif probe and consent is not None and not consent(min(MAX_WAIT_S, room / look.rate_pps)):
            notes.append("not probed: no consent")
        elif probe:
            queue = queues[0] if len(queues) == 1 else None
            gathered, steps = _gathered(counting, netns, interface, queue, look, room)
            is_restored = [instance.settings for instance in instances(netns, interface)] == [
                instance.settings for instance in queues
            ]
            if len(gathered) >= len(full):
                full, source = gathered, "probe"
        lost = {place: count - before.get(place, 0) for place, count in _lost(netns, interface).items()}
    finally:
        counting.close()
    runs = look.polls["own_runs"]
    own_s = look.polls["own_ns"] * 1e-9 / runs if runs else 0.0
    if len(queues) > 1:
        notes.append(f"{len(queues)} receive queues, counted together: each has a share of what is said here")
    return Watched(
        interface=interface,
        netns=netns,
        instances=queues,
        duration_s=look.duration_s,
        rate_pps=look.rate_pps,
        busy_ratio=look.busy_ratio,
        packets_per_poll=look.packets_per_poll,
        full_polls=look.polls["full_polls"],
        share_ratio=look.share_ratio,
        own_ratio=look.polls["own_ns"] * 1e-9 / (look.busy_ratio * look.duration_s) if look.busy_ratio else 0.0,
        lost={place: count for place, count in lost.items() if count},
        saturation=_saturation(full, look, own_s, "probe" if source == "probe" else "passive", len(queues)),
        steps=steps,
        is_restored=is_restored,
        notes=tuple(notes),
    )


def _saturation(full: FullPolls, look: Look, own_s: float, source: Any, queues: int) -> Saturation:
    if queues > 1:
        return Saturation(polls=len(full), reason=f"{queues} receive queues, which are not told apart: watch one queue")
    # Some of what it waited for the core it would wait in overload, too; whether all of it is not known.
    return saturation(
        full,
        own_s=own_s,
        calls=_CALLS_OF_A_FULL_POLL,
        share_ratio=look.share_ratio,
        share_spread=-0.5 * math.log(look.share_ratio),
        source=source,
    )


def _gathered(
    counting: _Probe, netns: str | None, interface: str, instance: NapiInstance | None, look: Look, room: float
) -> tuple[FullPolls, tuple[ProbeStep, ...]]:
    """Let packets gather, first 64, then as many as stay within ``room`` however unevenly they come."""
    full, steps, begin_s = FullPolls(second_s=(), later_s=()), [], time.monotonic()
    wait_s = min(MAX_WAIT_S, min(FULL_PACKETS, room) / look.rate_pps)
    with Deferral(netns, interface, instance, limit_s=PROBE_S + 0.5) as deferral:
        while True:
            left_s = PROBE_S - (time.monotonic() - begin_s)
            if left_s < _LEAST_LEFT_S or len(full.later_s) >= _WANTED_THIRD or len(full) >= 3 * _WANTED_THIRD:
                break
            deferral.wait(round(wait_s * 1e9))
            step = counting.look(min(_STEP_S, left_s - 0.5 * _LEAST_LEFT_S))
            full += step.full
            steps.append(ProbeStep(wait_s=wait_s, full_polls=len(step.full)))
            if step.polls["episodes"] > _FEWEST_EPISODES:
                wait_s = min(MAX_WAIT_S, _mean_within(room, step.dispersion) / look.rate_pps)
    return full, tuple(steps)


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


def _schedstat(threads: Sequence[int]) -> tuple[float, float]:
    """Return for how long threads ran and waited for a core, s; NaN where there is none, or one has ended."""
    if not threads:
        return math.nan, math.nan
    sums: NDArray[np.float64] = np.zeros(2)
    for pid in threads:
        try:
            sums += [int(word) for word in Path(f"/proc/{pid}/schedstat").read_text(encoding="utf-8").split()[:2]]
        except (OSError, ValueError):
            return math.nan, math.nan
    return float(sums[0]) * 1e-9, float(sums[1]) * 1e-9


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
