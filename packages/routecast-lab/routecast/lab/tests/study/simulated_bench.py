"""A bench whose devices are simulated routers of known truth: it stands in for a test bed where none can be made."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from routecast.evaluate import Evaluator, Simulate
from routecast.evaluate.trial import Trial
from routecast.lab.study.measure import SlowedBy
from routecast.load.offered import OfferedLoad
from routecast.router import Interruptions, RandomTime, softirq

BASE_S = 0.8e-6
PER_ITERATION_S = 2e-9
WAKEUP = RandomTime(mean_s=20e-6, variation="gamma", scv=0.2)
INTERRUPTIONS = Interruptions(rate_hz=200.0, duration=RandomTime(mean_s=100e-6, variation="exponential"))


@dataclass
class SimulatedDevice:
    """A router on one core that interrupts activate; each trial has a seed of its own, as the world has."""

    iterations: float
    seed: int = field(default=0)

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        self.seed += 1
        router = softirq(
            per_packet_s=BASE_S,
            work_iterations=self.iterations,
            work_s_per_iteration=PER_ITERATION_S,
            wakeup=WAKEUP,
            interruptions=INTERRUPTIONS,
            link_bps=100e9,
        )
        return Simulate(router, seed=self.seed, steady_state=False).trial(load, duration_s)


@dataclass
class SlowTester:
    """A device behind a tester that sends no more than ``most_pps``."""

    device: SimulatedDevice
    most_pps: float

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        trial = self.device.trial(load.at(min(load.rate_pps, self.most_pps)), duration_s)
        return replace(trial, intended_pps=load.rate_pps)


class SimulatedBench:
    """Devices that know the option ``slowdown``; counts how often one was set up.

    ``most_pps``: greatest rate of the tester; ``slower``: who may slow the devices down.
    """

    def __init__(self, most_pps: float = math.inf, slower: SlowedBy = "study") -> None:
        self.set_up = 0
        self._most_pps = most_pps
        self._slower: SlowedBy = slower

    def slowed_by(self, name: str, options: Mapping[str, object]) -> SlowedBy:
        return self._slower

    @contextmanager
    def device(self, name: str, options: Mapping[str, object]) -> Iterator[Evaluator]:
        assert name == "linux", name
        self.set_up += 1
        device = SimulatedDevice(float(str(options.get("slowdown", 0))), seed=1000 * self.set_up)
        yield SlowTester(device, self._most_pps)
