"""Snapshots of the machine before and after a trial: interfaces, cores, threads, clocks."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from routecast.lab.testbed.links import LinkReader, LinkState

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreTimes:
    """Times of a core since boot, in steps of 10 ms (``/proc/stat``): total, busy, and stolen by a hypervisor.

    ``irq_s`` and ``softirq_s`` are the parts of ``busy_s`` in interrupts and in softirqs, where the kernel receives
    frames. ``dropped_frames`` counts frames for which the core's backlog had no room; ``squeezes`` counts polls that
    ended before the last frame was taken (``/proc/net/softnet_stat``).
    """

    total_s: float
    busy_s: float
    steal_s: float
    irq_s: float = 0.0
    softirq_s: float = 0.0
    dropped_frames: int = 0
    squeezes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSnapshot:
    """The machine at an instant.

    ``links`` holds the interfaces by namespace and name. ``threads_s`` is the CPU time of each kernel thread of the
    device, ``waiting_s`` the time for which the thread was ready and had no core. ``queue_drops`` counts lost frames by
    the device's interface and receive queue.
    """

    at_s: float
    realtime_offset_s: float
    links: Mapping[tuple[str | None, str], LinkState]
    cores: Mapping[int, CoreTimes]
    threads_s: Mapping[int, float]
    waiting_s: Mapping[int, float] = field(default_factory=dict)
    device: Mapping[str, int] = field(default_factory=dict)
    queue_drops: Mapping[tuple[str, int], int] = field(default_factory=dict)


class SnapshotReader:
    """Takes snapshots of cores and interfaces, and of the receive queues of the interfaces in ``device_netns``."""

    def __init__(
        self, namespaces: Sequence[str | None], cores: Sequence[int], *, device_netns: str | None = None
    ) -> None:
        self._readers: dict[str | None, LinkReader] = {}
        self._cores = tuple(cores)
        self._device_netns = device_netns
        try:
            for name in dict.fromkeys(namespaces):
                self._readers[name] = LinkReader(name)
        except BaseException:
            self.close()
            raise

    def read(self, threads: Sequence[int] = (), device: Mapping[str, int] | None = None) -> MachineSnapshot:
        """Return a snapshot."""
        links = {}
        for name, reader in self._readers.items():
            links.update({(name, value.name): value for value in reader.read().values()})
        times = {pid: times_s for pid in threads if (times_s := _thread_times_s(pid)) is not None}
        return MachineSnapshot(
            at_s=time.monotonic(),
            realtime_offset_s=_realtime_offset_s(),
            links=links,
            cores={number: core for number, core in _core_times().items() if number in self._cores},
            threads_s={pid: ran_s for pid, (ran_s, _) in times.items()},
            waiting_s={pid: waited_s for pid, (_, waited_s) in times.items()},
            device=device or {},
            queue_drops={
                (interface, queue): count
                for netns, interface in links
                if netns is not None and netns == self._device_netns
                for queue, count in self._readers[netns].queue_drops(interface).items()
            },
        )

    def close(self) -> None:
        """Close the sockets, which keep their namespaces alive."""
        for reader in self._readers.values():
            reader.close()
        self._readers = {}


def _realtime_offset_s() -> float:
    """Return CLOCK_REALTIME minus CLOCK_MONOTONIC: it jumps when the clock is set."""
    before = time.clock_gettime(time.CLOCK_MONOTONIC)
    now = time.clock_gettime(time.CLOCK_REALTIME)
    after = time.clock_gettime(time.CLOCK_MONOTONIC)
    return now - 0.5 * (before + after)


def _core_times() -> dict[int, CoreTimes]:
    cores = {}
    backlogs = _backlogs()
    with contextlib.suppress(OSError):
        for line in Path("/proc/stat").read_text(encoding="utf-8").splitlines():
            name, *counts = line.split()
            if name.startswith("cpu") and name != "cpu":
                ticks = [int(count) for count in counts]
                # user nice system idle iowait irq softirq steal; guest time is part of user time.
                total, idle, steal = sum(ticks[:8]), ticks[3] + ticks[4], ticks[7]
                dropped, squeezes = backlogs.get(int(name[3:]), (0, 0))
                cores[int(name[3:])] = CoreTimes(
                    total_s=total / _TICKS_PER_S,
                    busy_s=(total - idle - steal) / _TICKS_PER_S,
                    steal_s=steal / _TICKS_PER_S,
                    irq_s=ticks[5] / _TICKS_PER_S,
                    softirq_s=ticks[6] / _TICKS_PER_S,
                    dropped_frames=dropped,
                    squeezes=squeezes,
                )
    return cores


def _backlogs() -> dict[int, tuple[int, int]]:
    """Return dropped frames and squeezed polls by core."""
    backlogs = {}
    with contextlib.suppress(OSError):
        lines = Path("/proc/net/softnet_stat").read_text(encoding="utf-8").splitlines()
        for row, line in enumerate(lines):
            counts = [int(text, 16) for text in line.split()]
            # There is a row for each core that is online, and since Linux 5.10 it names the core.
            core = counts[12] if len(counts) > 12 else row
            backlogs[core] = (counts[1], counts[2])
    return backlogs


def _thread_times_s(pid: int) -> tuple[float, float] | None:
    """Return the times for which a thread has run and has waited for a core (``/proc/PID/schedstat``)."""
    try:
        ran_ns, waited_ns, *_ = Path(f"/proc/{pid}/schedstat").read_text(encoding="utf-8").split()
        return int(ran_ns) * 1e-9, int(waited_ns) * 1e-9
    except (OSError, ValueError):
        return None
