"""Nineteen queues over their load: waits and losses of the simulator and of `solve` against theory.

Theory here is computed apart from the product: birth and death chains (M/M/c/K), chains embedded at departures with
arrivals counted by numerical integration (M/G/1/K; Gross et al., Fundamentals of Queueing Theory, sec. 5.1.7), chains
embedded at arrivals (D/M/1/K; sec. 5.3), Erlang B, and the textbook of D/D/1/K. A deviation is the greater of

* that of the mean wait of the frames that are served, relative to their mean time in the system;
* that of the loss, relative to the greater of the loss and 1 % of the frames.

::

    python benches/queues_by_load.py [--frames 1e8] [--json]
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import integrate, stats

from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve
from routecast.load import Arrivals, OfferedLoad
from routecast.router import Need, Port, ResourcePool, RouterModel, ServiceCost, TaskUnit
from routecast.router.model import Variation

LOADS = (0.3, 0.5, 0.8, 0.95, 1.0, 1.2, 2.0)
SERVICE_S = 1e-6
MIN_LOSS_RATIO = 0.01


@dataclass(frozen=True, kw_only=True)
class Law:
    """Service times of mean 1: name and squared coefficient of variation of the product, and their density."""

    variation: Variation
    scv: float | None = None
    density: Callable[[NDArray[np.float64]], NDArray[np.float64]] | None = None
    ends: tuple[float, float] = (math.exp(-80.0), 400.0)


def gamma(scv: float) -> Law:
    """Gamma times."""
    return Law(variation="gamma", scv=scv, density=stats.gamma(1.0 / scv, scale=scv).pdf)


def lognormal(scv: float) -> Law:
    """Lognormal times."""
    spread = math.sqrt(math.log1p(scv))
    return Law(variation="lognormal", scv=scv, density=stats.lognorm(spread, scale=math.exp(-0.5 * spread**2)).pdf)


def uniform(scv: float) -> Law:
    """Times uniform around 1."""
    half = math.sqrt(3.0 * scv)
    return Law(
        variation="uniform", scv=scv, density=stats.uniform(1.0 - half, 2.0 * half).pdf, ends=(1.0 - half, 1.0 + half)
    )


def hyperexponential(scv: float) -> Law:
    """Mixture of two exponential times with balanced means."""
    share = 0.5 * (1.0 + math.sqrt((scv - 1.0) / (scv + 1.0)))
    parts = [(share, 2.0 * share), (1.0 - share, 2.0 * (1.0 - share))]
    return Law(
        variation="hyperexponential",
        scv=scv,
        density=lambda x: sum((part * rate * np.exp(-rate * x) for part, rate in parts), np.zeros_like(x)),
    )


CONSTANT, EXPONENTIAL = Law(variation="deterministic"), Law(variation="exponential")


@dataclass(frozen=True, kw_only=True)
class Station:
    """A queue in Kendall's notation: arrivals, law of the services, servers, room for frames in all."""

    arrivals: str = "M"
    law: Law = EXPONENTIAL
    servers: int = 1
    room: int = 33

    @property
    def name(self) -> str:
        letters = {"deterministic": "D", "exponential": "M", "hyperexponential": "H2"}
        law = letters.get(self.law.variation, self.law.variation)
        scv = f" (scv {self.law.scv:g})" if self.law.scv else ""
        return f"{self.arrivals}/{law}/{self.servers}/{self.room}{scv}"

    def router(self) -> RouterModel:
        """Return the queue as a router that nothing else limits."""
        return RouterModel(
            name=self.name,
            ports=tuple(
                Port(name=name, link_bps=1e15, entry="queue", tx_ring_frames=1 << 16) for name in ("in", "out")
            ),
            tasks=(
                TaskUnit(
                    name="queue",
                    needs=(Need(pool="cpu"),),
                    service=ServiceCost(per_packet_s=SERVICE_S, variation=self.law.variation, scv=self.law.scv),
                    queue_frames=self.room - self.servers,
                    parallel=self.servers,
                ),
            ),
            pools=(ResourcePool(name="cpu", units=self.servers),),
        )

    def theory(self, load: float) -> tuple[float, float]:
        """Return the loss and the mean wait of the served frames, in service times."""
        if self.room == self.servers:
            blocked = 1.0
            for servers in range(1, self.servers + 1):
                blocked = load * self.servers * blocked / (servers + load * self.servers * blocked)
            return blocked, 0.0
        if self.law is EXPONENTIAL and self.arrivals == "M":
            return _birth_and_death(load * self.servers, self.servers, self.room)
        if self.arrivals == "D":
            return _equal_gaps(load, self.room) if self.law is CONSTANT else _d_m_1_k(load, self.room)
        return _m_g_1_k(load, self.law, self.room)


def _birth_and_death(offered: float, servers: int, room: int) -> tuple[float, float]:
    weights = np.cumsum([0.0, *(math.log(offered / min(n, servers)) for n in range(1, room + 1))])
    state = np.exp(weights - weights.max())
    state /= state.sum()
    loss = float(state[-1])
    waiting = float(np.maximum(np.arange(room + 1) - servers, 0) @ state)
    return loss, waiting / (offered * (1.0 - loss))


def _arrival_counts(load: float, law: Law, most: int) -> NDArray[np.float64]:
    """Return the probability of 0, 1, … Poisson arrivals during a service."""
    counts = np.arange(most)
    if law.density is None:
        return np.asarray(stats.poisson(load).pmf(counts))
    # Simpson's rule over the logarithm of the service time, where all the densities are smooth.
    logarithm = np.linspace(math.log(law.ends[0] * (1.0 + 1e-12)), math.log(law.ends[1] * (1.0 - 1e-12)), 40_001)
    times = np.exp(logarithm)
    weights = law.density(times) * times
    return np.array(
        [float(integrate.simpson(weights * stats.poisson.pmf(count, load * times), logarithm)) for count in counts]
    )


def _m_g_1_k(load: float, law: Law, room: int) -> tuple[float, float]:
    """Solve the chain of the frames left behind by departures, 0 to K - 1, as linear equations."""
    counts = _arrival_counts(load, law, room)
    moves = np.zeros((room, room))
    for left in range(room):
        first = max(left - 1, 0)
        moves[left, first : room - 1] = counts[: room - 1 - first]
        moves[left, room - 1] = 1.0 - moves[left, : room - 1].sum()
    equations = np.vstack([moves.T - np.eye(room), np.ones(room)])
    left_behind = np.linalg.lstsq(equations, np.append(np.zeros(room), 1.0), rcond=None)[0]
    loss = 1.0 - 1.0 / (left_behind[0] + load)
    # Those left behind came during the time in the system of the frame that leaves, blocked ones apart: Little's law.
    state = np.append(left_behind / (left_behind[0] + load), loss)
    in_system = float(np.arange(room + 1) @ state)
    return float(loss), in_system / (load * (1.0 - loss)) - 1.0


def _d_m_1_k(load: float, room: int) -> tuple[float, float]:
    """Solve the chain of the frames found by arrivals, 0 to K: service times are exponential, gaps 1/load."""
    served = stats.poisson(1.0 / load).pmf(np.arange(room + 1))
    moves = np.zeros((room + 1, room + 1))
    for found in range(room + 1):
        inside = min(found + 1, room)
        for left in range(1, inside + 1):
            moves[found, left] = served[inside - left]
        moves[found, 0] = 1.0 - moves[found, 1:].sum()
    equations = np.vstack([moves.T - np.eye(room + 1), np.ones(room + 1)])
    found = np.linalg.lstsq(equations, np.append(np.zeros(room + 1), 1.0), rcond=None)[0]
    loss = float(found[-1])
    return loss, float(np.arange(room) @ found[:-1]) / (1.0 - loss)


def _equal_gaps(load: float, room: int) -> tuple[float, float]:
    """D/D/1/K: nobody waits up to a full load; above, a frame enters when one leaves, behind K - 1 others or K - 2."""
    if load <= 1.0:
        return 0.0, 0.0
    # The room falls free at the end of a service and is taken by the next arrival, evenly spread over its gap.
    return 1.0 - 1.0 / load, room - 1 - 0.5 / load


STATIONS: Sequence[Station] = (
    Station(room=5),
    Station(room=33),
    Station(room=513),
    Station(servers=2, room=34),
    Station(servers=4, room=36),
    Station(servers=16, room=48),
    Station(law=CONSTANT, room=5),
    Station(law=CONSTANT, room=33),
    Station(law=CONSTANT, room=513),
    Station(law=gamma(0.5)),
    Station(law=gamma(4.0)),
    Station(law=uniform(0.2)),
    Station(law=lognormal(2.0)),
    Station(law=hyperexponential(4.0)),
    Station(arrivals="D", law=CONSTANT),
    Station(arrivals="D", room=5),
    Station(arrivals="D"),
    Station(servers=4, room=4),
    Station(law=CONSTANT, servers=4, room=4),
)


def deviation(loss: float, wait: float, theory: tuple[float, float]) -> float:
    """Return the deviation of a loss and a mean wait, in service times, from theory."""
    of_loss = abs(loss - theory[0]) / max(theory[0], MIN_LOSS_RATIO)
    return max(of_loss, abs(wait - theory[1]) / (theory[1] + 1.0))


def judge(case: tuple[int, float], frames: float) -> dict[str, float | str | None]:
    """Return the deviations of both evaluators for a queue and a load."""
    station, load = STATIONS[case[0]], case[1]
    arrivals = Arrivals.poisson() if station.arrivals == "M" else Arrivals.cbr()
    offered = OfferedLoad(rate_pps=load * station.servers / SERVICE_S, arrivals=arrivals)
    theory = station.theory(load)
    # A long queue near its full load forgets slowly.
    slower = min(max(1.0, station.room / 33.0) ** 2, 10.0) if 0.9 < load < 1.1 else 1.0
    simulated = Simulate(station.router(), seed=7, steady_state=False).trial(
        offered, slower * frames / offered.rate_pps
    )
    solved = Solve(station.router()).trial(offered, 1.0)
    result: dict[str, float | str | None] = {"queue": station.name, "load": load}
    result["theory_loss_ratio"], result["theory_wait"] = theory
    for name, trial in (("simulate", simulated), ("solve", solved)):
        wait_s = math.nan if trial.waiting is None else trial.waiting.mean_s
        found = deviation(trial.loss_ratio, wait_s / SERVICE_S, theory)
        result[name] = found if math.isfinite(found) else None
    return result


def main() -> None:
    """Print a table of the deviations."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=float, default=1e8)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    cases = [(number, load) for number in range(len(STATIONS)) for load in LOADS]
    with ProcessPoolExecutor(2) as processes:
        results = list(processes.map(partial(judge, frames=arguments.frames), cases))
    if arguments.json:
        print(json.dumps(results, indent=1))
        return
    for evaluator in ("simulate", "solve"):
        print(f"\n{evaluator}\n\n| queue | " + " | ".join(f"{load:g}" for load in LOADS) + " |")
        print("|---|" + "---|" * len(LOADS))
        for number, station in enumerate(STATIONS):
            row = [results[number * len(LOADS) + position][evaluator] for position in range(len(LOADS))]
            cells = ["–" if cell is None else f"{100.0 * float(cell):.2f}" for cell in row]
            print(f"| {station.name} | " + " | ".join(cells) + " |")
        known = [[float(result[evaluator] or 0.0) for result in results if result["load"] == load] for load in LOADS]
        print("| greatest | " + " | ".join(f"{100.0 * max(band):.2f}" for band in known) + " |")


if __name__ == "__main__":
    main()
