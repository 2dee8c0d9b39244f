"""Rates of closed queueing networks.

In a closed network N customers of one class circulate among stations and delays. Their rate depends on the law of the
service times:

- any law: the asymptotic bounds ``min(N/(Z + ΣD), min m/D)`` (Denning & Buzen, The operational analysis of queueing
  network models, ACM Computing Surveys 10(3), 1978, sec. 6);
- exponential (or the same law at every visit to a first-come first-served station): mean value analysis (Reiser &
  Lavenberg, Mean-value analysis of closed multichain queuing networks, Journal of the ACM 27(2), 1980), exact;
- constant: customers that all take the same steps follow each other in a periodic pattern (a timed event graph;
  Baccelli, Cohen, Olsder & Quadrat, Synchronization and Linearity, Wiley 1992, ch. 2, where each station is visited
  once). The events are simulated, first come first served, until the rate is constant.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from heapq import heappop, heappush
from random import Random

_ROUNDS, _SETTLING = 100, 20
"""Rounds that each customer makes in all, and rounds before the rate is counted."""
_SEED = 1
_UNEVEN = 0.25
"""Outside this ratio and its inverse, of the customers to those that fill the slowest station, the bound is reached."""

Visit = tuple[int, float]
"""Number of the station (-1: a delay, where no customer queues) and service time in seconds."""


def bound_pps(path: Sequence[Visit], servers: Sequence[int], customers: int) -> float:
    """Return the greatest rate under any law of the service times, 1/s.

    Examples
    --------
    >>> bound_pps(((0, 1.0), (-1, 3.0)), (1,), 3), bound_pps(((0, 1.0), (-1, 3.0)), (1,), 5)
    (0.75, 1.0)
    """
    round_s = sum(time_s for _, time_s in path)
    demands = _demands(path, len(servers))
    station_rates = [count / demand for count, demand in zip(servers, demands, strict=True) if demand > 0.0]
    return min(customers / round_s if round_s > 0.0 else float("inf"), *station_rates, float("inf"))


def exponential_pps(path: Sequence[Visit], servers: Sequence[int], customers: int) -> float:
    """Return the rate of customers with exponential service times, 1/s, by exact mean value analysis.

    For stations of several servers it carries the distribution of their customers (Reiser & Lavenberg 1980, sec. 3).
    """
    demands = _demands(path, len(servers))
    think_s = sum(time_s for station, time_s in path if station < 0)
    queue = [0.0] * len(servers)
    # Chance of j customers at a station, for j below its number of servers.
    probability = [[1.0] + [0.0] * (count - 1) for count in servers]
    rate = 0.0
    for number in range(1, customers + 1):
        times = []
        for station, (demand, count) in enumerate(zip(demands, servers, strict=True)):
            idle = sum((count - 1 - j) * probability[station][j] for j in range(count - 1))
            times.append(demand / count * (1.0 + queue[station] + idle))
        round_s = think_s + sum(times)
        if round_s <= 0.0:
            return float("inf")
        rate = number / round_s
        for station, (demand, count) in enumerate(zip(demands, servers, strict=True)):
            queue[station] = rate * times[station]
            before = probability[station]
            after = [0.0] + [rate * demand / j * before[j - 1] for j in range(1, count)]
            busy = rate * demand + sum((count - j) * after[j] for j in range(1, count))
            after[0] = max(1.0 - busy / count, 0.0)
            probability[station] = after
    return rate


@lru_cache(maxsize=4096)
def constant_pps(
    path: tuple[Visit, ...], servers: tuple[int, ...], customers: int, gap_s: float, spread: float = 0.0
) -> float:
    """Return the rate of customers that all take the same steps in constant times, first come first served, 1/s.

    The pattern can depend on the start: the customers begin one after the other, ``gap_s`` apart. With a ``spread``
    the customers leave slow patterns and fast patterns again.

    ``gap_s``: seconds between the first customers; ``spread``: delays are uniform within this share of their mean, up
    and down; 0: constant.
    """
    bound = bound_pps(path, servers, customers)
    queueing = [station for station, _ in path if station >= 0]
    is_visited_once = len(set(queueing)) == len(queueing) and spread == 0.0
    round_s = sum(time_s for _, time_s in path)
    customers_at_knee = bound * round_s
    if customers == 1 or is_visited_once or not _UNEVEN < customers / customers_at_knee < 1.0 / _UNEVEN:
        return bound
    random = Random(_SEED)
    free_servers = list(servers)
    waiting: list[deque[int]] = [deque() for _ in servers]
    events: list[tuple[float, int, int]] = []
    for number in range(customers):
        heappush(events, (number * gap_s, number, -1))
    order, rounds = customers, 0
    measured, settled = _ROUNDS * customers, _SETTLING * customers
    began_s = now_s = 0.0
    while rounds < measured:
        now_s, _, step = heappop(events)
        station = path[step][0] if step >= 0 else -1
        if station >= 0:
            if waiting[station]:
                next_step = waiting[station].popleft()
                order += 1
                heappush(events, (now_s + path[next_step][1], order, next_step))
            else:
                free_servers[station] += 1
        if step + 1 == len(path):
            rounds += 1
            if rounds == settled:
                began_s = now_s
            step = -1
        station, time_s = path[step + 1]
        if station >= 0 and free_servers[station] == 0:
            waiting[station].append(step + 1)
            continue
        if station >= 0:
            free_servers[station] -= 1
        elif spread:
            time_s *= 1.0 + spread * (2.0 * random.random() - 1.0)
        order += 1
        heappush(events, (now_s + time_s, order, step + 1))
    return min((measured - settled) / (now_s - began_s), bound) if now_s > began_s else bound


def _demands(path: Sequence[Visit], stations: int) -> list[float]:
    demands = [0.0] * stations
    for station, time_s in path:
        if station >= 0:
            demands[station] += time_s
    return demands
