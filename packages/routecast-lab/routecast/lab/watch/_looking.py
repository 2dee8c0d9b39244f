"""What was counted of an interface while somebody looked at it: sums of the kernel, full polls, shares of cores."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from routecast.errors import EnvironmentProblem
from routecast.lab import _lab
from routecast.lab.testbed.netns import FOLDER, inside
from routecast.lab.watch._deferral import interface_index
from routecast.lab.watch._saturation import RECORD

__all__ = ["Counting", "Look", "Part", "Poller", "Records", "Thread"]

_DRAIN_S: Final = 0.1
_CHUNKS: Final = 8
_HOST_NAMESPACE: Final = Path("/proc/self/ns/net")

Records = NDArray[np.void]
"""Records of full polls, and of those that follow one, of dtype :data:`RECORD`."""
Poller = tuple[bool, int]
"""Whoever polls: whether it is a thread, and the number of the thread, or of a processor in its softirq."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What a poller did for one NAPI instance: ``poller`` is the number of a thread, or of a processor in its softirq.

    ``counts``: sums and histograms by their names in ``crates/tester/src/watch.rs``; differences over a look.
    """

    poller: int
    is_thread: bool
    napi_id: int
    counts: Mapping[str, Any]

    @property
    def of_poller(self) -> Poller:
        """Whoever polled."""
        return self.is_thread, self.poller


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """A NAPI thread during a look: how long it ran and waited for a core, s, and its only processor, if it has one."""

    run_s: float
    waited_s: float
    processor: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What was counted in ``duration_s``; ``threads`` by number; ``chunks``: packets by poller in equal parts of it.

    ``own_ns`` and ``own_runs``: time of the counting programs themselves, and how often they ran.
    """

    duration_s: float
    parts: tuple[Part, ...]
    records: Records
    threads: Mapping[int, Thread]
    chunks: tuple[Mapping[Poller, int], ...] = ()
    own_ns: int = 0
    own_runs: int = 0

    @property
    def rate_pps(self) -> float:
        """Packets that were polled a second."""
        return sum(int(part.counts["packets"]) for part in self.parts) / self.duration_s

    def rate_of(self, napi_id: int | None) -> float:
        """Return the packets a second of a NAPI instance; None: of the busiest."""
        rates: dict[int, float] = {}
        for part in self.parts:
            rates[part.napi_id] = rates.get(part.napi_id, 0.0) + part.counts["packets"] / self.duration_s
        return max(rates.values(), default=0.0) if napi_id is None else rates.get(napi_id, 0.0)

    def records_of(self, poller: Poller) -> Records:
        """Return the records of a poller."""
        is_thread, number = poller
        own: Records = self.records[self.records["poller"] == (number if is_thread else number | 1 << 32)]
        return own


class Counting:
    """The programs in the kernel, and the numbers of the threads that poll.

    ``threads_alone``: no softirq polls the interface, so what runs at each of the machine's is left out.
    """

    def __init__(
        self, netns: str | None, interface: str, threads: Sequence[int], *, threads_alone: bool = False
    ) -> None:
        index = inside(netns, lambda: interface_index(interface))
        namespace = _HOST_NAMESPACE if netns is None else FOLDER / netns
        try:
            self._watch = _lab.PollWatch(index, namespace.stat().st_ino, threads_alone)
        except _lab.TesterError as problem:
            raise EnvironmentProblem(f"polls cannot be counted: {problem.args[1]}") from problem
        self._threads = threads

    def look(self, duration_s: float, on_progress: Callable[[float], object] | None = None) -> Look:
        """Count for a time."""
        self._watch.take_records()
        before, scheduled, begin_s = self._polls(), _schedstat(self._threads), time.monotonic()
        at_chunks, records = [before], []
        while (passed_s := time.monotonic() - begin_s) < duration_s:
            time.sleep(min(_DRAIN_S, duration_s - passed_s))
            records.append(self._watch.take_records())
            if passed_s > duration_s * len(at_chunks) / _CHUNKS:
                at_chunks.append(self._polls())
            if on_progress is not None:
                on_progress(min(passed_s / duration_s, 1.0))
        after, scheduled_after = self._polls(), _schedstat(self._threads)
        lasted_s = time.monotonic() - begin_s
        records.append(self._watch.take_records())
        at_chunks.append(after)
        return Look(
            duration_s=lasted_s,
            parts=_parts(before, after),
            records=np.frombuffer(b"".join(records), dtype=RECORD),
            threads={
                pid: Thread(run_s=run_s - scheduled[pid][0], waited_s=wait_s - scheduled[pid][1], processor=_only(pid))
                for pid, (run_s, wait_s) in scheduled_after.items()
                if pid in scheduled
            },
            chunks=tuple(_packets(first, last) for first, last in pairwise(at_chunks)),
            own_ns=after["own_ns"] - before["own_ns"],
            own_runs=after["own_runs"] - before["own_runs"],
        )

    def close(self) -> None:
        """Take the programs out of the kernel."""
        self._watch.close()

    def _polls(self) -> dict[str, Any]:
        polls: dict[str, Any] = json.loads(self._watch.polls())
        polls["parts"] = {
            (part.pop("is_thread"), part.pop("poller"), part.pop("napi_id")): part for part in polls["parts"]
        }
        return polls


def _parts(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Part, ...]:
    return tuple(
        Part(
            is_thread=is_thread,
            poller=poller,
            napi_id=napi_id,
            counts=_difference(counts, before["parts"].get((is_thread, poller, napi_id))),
        )
        for (is_thread, poller, napi_id), counts in after["parts"].items()
    )


def _difference(after: Mapping[str, Any], before: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if before is None:
        return after
    return {
        name: [end - begin for end, begin in zip(count, before[name], strict=True)]
        if isinstance(count, list)
        else count - before[name]
        for name, count in after.items()
    }


def _packets(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[Poller, int]:
    packets: dict[Poller, int] = {}
    for part in _parts(before, after):
        packets[part.of_poller] = packets.get(part.of_poller, 0) + int(part.counts["packets"])
    return packets


def _schedstat(threads: Sequence[int]) -> dict[int, tuple[float, float]]:
    """Return for how long threads ran and waited for a core, s; without those that have ended."""
    times = {}
    for pid in threads:
        with suppress(OSError, ValueError):
            run_ns, wait_ns = Path(f"/proc/{pid}/schedstat").read_text(encoding="utf-8").split()[:2]
            times[pid] = (int(run_ns) * 1e-9, int(wait_ns) * 1e-9)
    return times


def _only(pid: int) -> int | None:
    """Return the processor of a thread that may run on no other."""
    with suppress(OSError):
        processors = os.sched_getaffinity(pid)
        return next(iter(processors)) if len(processors) == 1 else None
    return None
