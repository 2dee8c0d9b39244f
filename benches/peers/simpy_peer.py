"""The benchmark workloads on SimPy: one process per server, which is four times faster than one per frame.

``python simpy_peer.py WORKLOAD FRAMES WARMUP_US SEED`` prints one line of JSON. Time is in microseconds.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

import simpy

Steps = Generator[simpy.Event, Any, None]


@dataclass
class Tally:
    """Counts what happens between the end of the warm-up and the last arrival."""

    warmup_us: float
    arrived: int = 0
    dropped: int = 0
    left: int = 0
    left_by_last: int = 0
    last_us: float = 0.0
    sojourn_us: list[float] = field(default_factory=list)

    def arrive(self, now: float) -> None:
        self.arrived += now >= self.warmup_us

    def drop(self, now: float) -> None:
        self.dropped += now >= self.warmup_us

    def leave(self, now: float, born: float) -> None:
        self.left += now >= self.warmup_us
        if born >= self.warmup_us:
            self.sojourn_us.append(now - born)

    def last(self, now: float) -> None:
        """Close the count of departures; several generators end one after the other."""
        self.last_us, self.left_by_last = now, self.left


class Station:
    """Servers with one queue in front; a frame is the instant at which it came in."""

    def __init__(
        self,
        env: simpy.Environment,
        tally: Tally,
        service_us: Callable[[], float],
        *,
        servers: int = 1,
        room: float = float("inf"),
    ) -> None:
        self.env, self.tally, self.service_us, self.room = env, tally, service_us, room
        self.waiting: deque[tuple[float, int]] = deque()
        self.idle: list[simpy.Event] = []
        self.way: tuple[Station, ...] = ()
        for _ in range(servers):
            env.process(self.serve())

    def offer(self, born: float, step: int = 0) -> None:
        if self.idle:
            self.idle.pop().succeed((born, step))
        elif len(self.waiting) < self.room:
            self.waiting.append((born, step))
        else:
            self.tally.drop(self.env.now)

    def serve(self) -> Steps:
        while True:
            if self.waiting:
                born, step = self.waiting.popleft()
            else:
                wake = self.env.event()
                self.idle.append(wake)
                born, step = yield wake
            yield self.env.timeout(self.service_us())
            if step + 1 < len(self.way):
                self.way[step + 1].offer(born, step + 1)
            else:
                self.tally.leave(self.env.now, born)


def poisson(env: simpy.Environment, tally: Tally, station: Station, rate: float, frames: int) -> Steps:
    draw = random.expovariate
    for _ in range(frames):
        yield env.timeout(draw(rate))
        tally.arrive(env.now)
        station.offer(env.now)
    tally.last(env.now)


def w1(env: simpy.Environment, tally: Tally, frames: int) -> None:
    gap_us = 0.416667
    cores = [Station(env, tally, lambda: 1.0, room=512) for _ in range(4)]

    def port(number: int, count: int) -> Steps:
        yield env.timeout(number * gap_us / 2)
        for frame in range(count):
            tally.arrive(env.now)
            cores[(50 * number + frame % 50) % 4].offer(env.now)
            if frame + 1 < count:
                yield env.timeout(gap_us)
        tally.last(env.now)

    env.process(port(0, (frames + 1) // 2))
    env.process(port(1, frames // 2))


def w2(env: simpy.Environment, tally: Tally, frames: int) -> None:
    station = Station(env, tally, lambda: random.expovariate(1.0), room=49)
    env.process(poisson(env, tally, station, 0.9, frames))


def w3(env: simpy.Environment, tally: Tally, frames: int) -> None:
    def of(mean_us: float, servers: int = 1) -> Station:
        return Station(env, tally, lambda: random.expovariate(1.0 / mean_us), servers=servers)

    nic_in, bus, cores, nic_out = of(0.15), of(0.1), of(1.0, 4), of(0.15)
    for station in (nic_in, bus, cores, nic_out):
        station.way = (nic_in, bus, cores, bus, nic_out)
    env.process(poisson(env, tally, nic_in, 3.2, frames))


def main() -> None:
    workload, frames, warmup_us, seed = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
    random.seed(seed)
    tally = Tally(warmup_us)
    begin = time.process_time()
    env = simpy.Environment()
    {"W1": w1, "W2": w2, "W3": w3}[workload](env, tally, frames)
    env.run()
    cpu_s = time.process_time() - begin
    answer = {
        "frames": frames,
        "cpu_s": cpu_s,
        "throughput_pps": tally.left_by_last / (tally.last_us - warmup_us) * 1e6,
        "loss_ratio": tally.dropped / tally.arrived,
        "latency_mean_s": sum(tally.sojourn_us) / len(tally.sojourn_us) * 1e-6,
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
