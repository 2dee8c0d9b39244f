"""The load that a server carries with its elements: predictions, each made once, and quick upper bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from routecast.evaluate.solve.flow import flow_graph
from routecast.load.offered import line_rate_pps
from routecast.plan.placement._server_view import (
    SERVER,
    ServerView,
    entry_interface,
    exit_interface,
    function_of,
    machine_of,
    server_view,
    stages_of,
    uplink_bps,
    wire_shares,
    with_pins,
)
from routecast.plan.placement.model import ElementGroup, PinChoice, PlacementProblem, Rules, ServerGroup
from routecast.plan.placement.prediction import PlacementPrediction, predict, predict_lossless_pps
from routecast.quantity.schema import field, value
from routecast.router.model import ServiceCost
from routecast.virtual.costs import added
from routecast.virtual.machines import Cores

Pins = Mapping[str, Cores]
"""Cores of threads, by thread."""


def machine_in(thread: str) -> str:
    """Return the element of a thread in the view of a server."""
    return thread.split(" ", 1)[0]


def thread_work(view: ServerView) -> tuple[dict[str, float], list[float]]:
    """Return the work of each thread that can be pinned, and the other work of each core, s for a frame of the load."""
    graph = flow_graph(view.model, view.load)
    visits = graph.arriving(graph.share, np.ones(graph.exit + 1)).sum(axis=1)
    units = view.model.pool(SERVER).units
    threads: dict[str, float] = {}
    fixed = [0.0] * units
    for index, task in enumerate(graph.tasks):
        if not any(need.pool == SERVER for need in task.needs):
            continue
        work = float(visits[index]) * task.service.mean_s(view.load.frames.mean_bytes, batch_frames=math.inf)
        if task.thread and not task.pin:
            threads[task.thread] = threads.get(task.thread, 0.0) + work
        else:
            for core in task.pin or range(units):
                fixed[core] += work / len(task.pin or range(units))
    return threads, fixed


def pin_choices(threads: Mapping[str, float], fixed: list[float], rules: Rules) -> Iterator[tuple[PinChoice, Pins]]:
    """Yield the ways of pinning a server's threads (Li 2012, fig. 3.12); none if the rules need more cores.

    =============  =====================================================================================
    ``free``       every thread may use every core (1v2p on two cores)
    ``machines``   each machine's threads have cores of their own if there are enough, else machines share cores, the
                   heavier ones with fewer others
    ``threads``    each thread has one core (1v1p, 2v2p), the loads of the cores as even as possible
    ``alone``      the heaviest machine has a core to itself, the others share the rest (the unbalanced mapping)
    =============  =====================================================================================
    """
    cores = len(fixed)
    if not rules.shared_cores:
        if len(threads) <= cores:
            yield "threads", _pin_apart(threads, fixed)
        return
    seen: set[tuple[tuple[str, Cores], ...]] = set()
    for choice in rules.pins:
        if choice == "free":
            if rules.cores_per_thread not in (None, cores):
                continue
            pins: Pins = {}
        elif rules.cores_per_thread == cores:
            continue
        else:
            narrow = _PINS_OF[choice](threads, fixed)
            if narrow is None:
                continue
            pins = _widened(narrow, rules.cores_per_thread or 1, cores)
        key = tuple(sorted(pins.items()))
        if key not in seen:
            seen.add(key)
            yield choice, pins


def busiest_core_s(threads: Mapping[str, float], fixed: list[float], pins: Pins) -> float:
    """Return a lower bound on the time that the busiest core or thread works for a frame of the load, s."""
    load = list(fixed)
    for thread, pinned_cores in pins.items():
        if len(pinned_cores) == 1:
            load[pinned_cores[0]] += threads[thread]
    mean = (sum(fixed) + sum(threads.values())) / len(fixed)
    return max([mean, *load, *threads.values()])


def _widened(pins: Pins, width: int, cores: int) -> Pins:
    if width <= 1:
        return pins
    return {
        thread: tuple(sorted((cores_of_thread[0] + step) % cores for step in range(width)))
        for thread, cores_of_thread in pins.items()
    }


def _heaviest_first(work: Mapping[str, float]) -> list[str]:
    return sorted(work, key=lambda name: (-work[name], name))


def _pin_apart(threads: Mapping[str, float], fixed: list[float]) -> Pins:
    """Give each thread a core of its own, the heaviest the one with the least other work."""
    cores = sorted(range(len(fixed)), key=lambda core: (fixed[core], -core))
    return {thread: (core,) for thread, core in zip(_heaviest_first(threads), cores, strict=False)}


def _pin_threads(threads: Mapping[str, float], fixed: list[float]) -> Pins:
    load = list(fixed)
    pins = {}
    for thread in _heaviest_first(threads):
        core = min(range(len(load)), key=lambda number: (load[number], -number))
        load[core] += threads[thread]
        pins[thread] = (core,)
    return pins


def _by_machine(threads: Mapping[str, float]) -> dict[str, float]:
    machines: dict[str, float] = {}
    for thread, work in threads.items():
        machines[machine_in(thread)] = machines.get(machine_in(thread), 0.0) + work
    return machines


def _pin_machines(threads: Mapping[str, float], fixed: list[float]) -> Pins:
    machines = _by_machine(threads)
    if len(machines) >= len(fixed):
        return _pin_shared(threads, machines, fixed, range(len(fixed)))
    cores = sorted(range(len(fixed)), key=lambda core: (fixed[core], -core))
    cores_by_machine: dict[str, list[int]] = {name: [] for name in _heaviest_first(machines)}
    for core in cores:
        neediest = min(
            cores_by_machine,
            key=lambda name: (len(cores_by_machine[name]) / max(machines[name], 1e-30), -machines[name], name),
        )
        cores_by_machine[neediest].append(core)
    pins: dict[str, Cores] = {}
    for name, machine_cores in cores_by_machine.items():
        machine_threads = {thread: work for thread, work in threads.items() if machine_in(thread) == name}
        core_numbers = _pin_threads(machine_threads, [fixed[core] for core in machine_cores])
        pins |= {thread: (machine_cores[number],) for thread, (number,) in core_numbers.items()}
    return pins


def _pin_shared(threads: Mapping[str, float], machines: Mapping[str, float], fixed: list[float], cores: range) -> Pins:
    load = {core: fixed[core] for core in cores}
    core_of = {}
    for name in _heaviest_first(machines):
        core = min(load, key=lambda number: (load[number], -number))
        load[core] += machines[name]
        core_of[name] = core
    return {thread: (core_of[machine_in(thread)],) for thread in threads}


def _pin_alone(threads: Mapping[str, float], fixed: list[float]) -> Pins | None:
    machines = _by_machine(threads)
    if len(machines) < 2 or len(fixed) < 2:
        return None
    heaviest = _heaviest_first(machines)[0]
    last = len(fixed) - 1
    other_machines = {name: work for name, work in machines.items() if name != heaviest}
    other_threads = {thread: work for thread, work in threads.items() if machine_in(thread) != heaviest}
    pins = _pin_shared(other_threads, other_machines, fixed, range(last))
    return {**pins, **{thread: (last,) for thread in threads if thread not in other_threads}}


_PINS_OF: dict[PinChoice, Callable[[Mapping[str, float], list[float]], Pins | None]] = {
    "machines": _pin_machines,
    "threads": _pin_threads,
    "alone": _pin_alone,
}


_MARGIN = 1.0 + 1e-9


@value
class ServerCapacity:
    """The capacity of a server with given elements."""

    capacity_pps: float = field(
        "The greatest load of the whole system without overload, frames/s; infinite if no frame enters the server, "
        "0 if the rules allow no way of pinning"
    )
    choice: str = field("The best way of pinning")
    pins: Pins = field('Pins by thread, of elements ``"0"``, ``"1"``, …', default_factory=dict)


@value
class ElementWork:
    """The least work of an element on a server, s of a core for a frame of the total load."""

    total_s: float = field("Work of all threads")
    thread_s: float = field("Work of the busiest thread, which runs on one core at a time")


class ServerLoads:
    """Predictions of servers, each made once."""

    def __init__(self, problem: PlacementProblem) -> None:
        self.problem = problem
        self.predictions = 0
        self._groups = {group.name: group for group in problem.elements}
        self._hosts = {group.name: group for group in problem.servers}
        self._capacities: dict[tuple[str, tuple[tuple[str, int], ...]], ServerCapacity] = {}
        self._views: dict[tuple[str, tuple[tuple[str, int], ...]], ServerView | None] = {}
        self._predictions: dict[tuple[str, tuple[tuple[str, int], ...], float], PlacementPrediction | None] = {}
        self._cores = {group.name: _max_effective_cores(group) for group in problem.servers}
        self._work = {
            (host.name, group.name): self._least_work(host, group)
            for host in problem.servers
            for group in problem.elements
        }

    def capacity(self, host: str, group_counts: Mapping[str, int]) -> ServerCapacity:
        """Return the capacity of a server of a group with ``count`` elements by group, with the best pinning."""
        key = (host, _key(group_counts))
        if key not in self._capacities:
            self._capacities[key] = self._best_pinned(key)
        return self._capacities[key]

    def pinned_pps(self, host: str, group_counts: Mapping[str, int], choice: str) -> float:
        """Return the greatest load without overload for a way of pinning, or for the best if that is not allowed."""
        best = self.capacity(host, group_counts)
        choice, pins = self.pinning(host, group_counts, choice)
        view = self._view((host, _key(group_counts)))
        if choice == best.choice or view is None:
            return best.capacity_pps
        return predict_lossless_pps(with_pins(view.model, pins), view.load) / view.weight

    def pinning(self, host: str, group_counts: Mapping[str, int], choice: str) -> tuple[str, Pins]:
        """Return a way of pinning with its pins; the best one if ``choice`` is empty or not allowed."""
        if choice and choice in (pins := self.pins(host, group_counts)):
            return choice, pins[choice]
        best = self.capacity(host, group_counts)
        return best.choice, best.pins

    def pins(self, host: str, group_counts: Mapping[str, int]) -> dict[str, Pins]:
        """Return the pins of a server's threads by way of pinning."""
        view = self._view((host, _key(group_counts)))
        return {} if view is None else dict(pin_choices(*thread_work(view), self.problem.rules))

    def prediction(self, host: str, group_counts: Mapping[str, int], rate_pps: float) -> PlacementPrediction | None:
        """Return the prediction of a server at a load of the whole system; None if no frame enters it."""
        key = (host, _key(group_counts), rate_pps)
        if key not in self._predictions:
            view = self._view(key[:2])
            if view is None:
                self._predictions[key] = None
            else:
                self.predictions += 1
                capacity = self.capacity(host, group_counts)
                self._predictions[key] = predict(
                    with_pins(view.model, capacity.pins),
                    view.load.at(rate_pps * view.weight),
                    lossless_pps=capacity.capacity_pps * view.weight,
                )
        return self._predictions[key]

    def watts(self, host: str, group_counts: Mapping[str, int], rate_pps: float) -> float:
        """Return the power of a server that is on at a load, W."""
        group = self._hosts[host]
        prediction = self.prediction(host, group_counts, rate_pps) if group.busy_w > group.idle_w else None
        busy = 0.0 if prediction is None else prediction.used_ratio(SERVER)
        return group.idle_w + (group.busy_w - group.idle_w) * busy

    def cores(self, host: str) -> float:
        """Return the greatest number of cores without contention to which the cores of a server are equal."""
        return self._cores[host]

    def work(self, host: str, element: str) -> ElementWork:
        """Return the least work of an element on a server."""
        return self._work[host, element]

    def bound_pps(self, host: str, group_counts: Mapping[str, int]) -> float:
        """Return an upper bound on the load of a server, frames/s: cores without waits and switches, links, ports."""
        group = self._hosts[host]
        total_s, card_s = self._least_s(host, group_counts)
        thread_s = max((self._work[host, name].thread_s for name, count in group_counts.items() if count), default=0.0)
        if group.technology.backend in ("thread", "softirq"):
            thread_s = max(thread_s, card_s / max(len(set(group.interrupt_cores)), 1))
        best = self._wires_pps(group, group_counts)
        if total_s > 0.0:
            best = min(best, self._cores[host] / total_s)
        if thread_s > 0.0:
            best = min(best, 1.0 / thread_s)
        return slowed_pps(group, best, total_s, thread_s) * _MARGIN

    def busy_at_least(self, host: str, group_counts: Mapping[str, int], rate_pps: float) -> float:
        """Return a lower bound on the number of busy cores at a load, without context switches and batch costs."""
        group = self._hosts[host]
        return _busy_cores(group, rate_pps * self._least_s(host, group_counts)[0])

    def _least_s(self, host: str, group_counts: Mapping[str, int]) -> tuple[float, float]:
        """Return the least work for a frame of the load, s: of all threads, and of the softirqs of the cards."""
        group = self._hosts[host]
        arriving, local = self._wire_and_local_shares(group_counts)
        total_s = sum(count * self._work[host, name].total_s for name, count in group_counts.items())
        if group.technology.backend == "none":
            return total_s, 0.0
        card_s = self._seconds(group.technology.nic_receive) / group.speed_ratio
        switch_s = self._seconds(group.technology.switch) / group.speed_ratio
        # The elements' work includes frames from outer ports; frames from other servers are added here.
        return total_s + arriving * card_s + local * switch_s, (arriving + self._outer_share(group_counts)) * card_s

    def _wire_and_local_shares(self, group_counts: Mapping[str, int]) -> tuple[float, float]:
        """Return the shares of the load that arrive from other servers, and that pass between machines of this one."""
        arriving = local = 0.0
        for chain, share in zip(self.problem.chains, self.problem.shares, strict=True):
            stages = stages_of(self.problem, chain, share, group_counts)
            for j, stage in enumerate(stages):
                arriving += stage.count * stage.from_elsewhere
                if j + 1 < len(stages):
                    local += stage.count * stage.arrival * stage.to_each * stages[j + 1].count
        return arriving, local

    def _outer_share(self, group_counts: Mapping[str, int]) -> float:
        """Return the share of the load that arrives at outer ports."""
        return sum(
            share * group_counts.get(chain.stages[0], 0) / self._groups[chain.stages[0]].count
            for chain, share in zip(self.problem.chains, self.problem.shares, strict=True)
        )

    def _wires_pps(self, host: ServerGroup, group_counts: Mapping[str, int]) -> float:
        problem = self.problem
        frame = problem.frames.mean_bytes
        best = math.inf
        for chain, share in zip(problem.chains, problem.shares, strict=True):
            for stage in {chain.stages[0], chain.stages[-1]}:
                group = self._groups[stage]
                if group_counts.get(stage):
                    ports = group.count * group.ports
                    best = min(best, line_rate_pps(problem.outer_bps, frame) * ports / share)
        for share in wire_shares(problem, dict(group_counts)):
            if share > 1e-12:
                best = min(best, line_rate_pps(uplink_bps(problem, host), frame) / share)
        return best

    def _least_work(self, host: ServerGroup, group: ElementGroup) -> ElementWork:
        """Return the least work of an element, s for a frame of the load: free batches, the least contention."""
        problem, technology = self.problem, host.technology
        machine, server = machine_of(group, "0", SERVER), host.server(SERVER)
        contention = technology.contention
        slowdown = contention.least_factor(host.cores)
        receive, send = self._seconds(technology.receive), self._seconds(technology.send)
        threads: dict[str, float] = {}
        total = 0.0
        for chain, share in zip(problem.chains, problem.shares, strict=True):
            for number, stage in enumerate(chain.stages):
                if stage != group.name:
                    continue
                local = problem.balancing == "local" and chain.returns and 0 < number < len(chain.stages) - 1
                arrival = 0.0 if local else share / group.count * slowdown / host.speed_ratio
                name = function_of(problem, chain, number, machine, server)
                cost = machine.functions.get(name) or technology.functions.get(name, ServiceCost())
                inner = self._seconds(added(cost, technology.guest_driver))
                threads["vcpu"] = threads.get("vcpu", 0.0) + arrival * inner / group.vcpus
                total += arrival * (inner + receive + send)
                if number == 0 and technology.backend != "none":
                    total += arrival * self._seconds(technology.nic_receive)
                if technology.backend != "thread":
                    continue
                comes_back = number == len(chain.stages) - 1 and chain.returns
                cards = (entry_interface(group, comes_back=comes_back), exit_interface(group, comes_back=comes_back))
                for card, work in zip(cards, (receive, send), strict=True):
                    thread = {"interface": f"{card}", "machine": "all"}.get(technology.backend_threads)
                    if thread is not None:
                        threads[thread] = threads.get(thread, 0.0) + arrival * work
        return ElementWork(total_s=total, thread_s=max(threads.values(), default=0.0))

    def _seconds(self, cost: ServiceCost) -> float:
        return cost.mean_s(self.problem.frames.mean_bytes, batch_frames=math.inf)

    def _view(self, key: tuple[str, tuple[tuple[str, int], ...]]) -> ServerView | None:
        if key not in self._views:
            host, group_counts = key
            elements = [self._groups[name] for name, count in group_counts for _ in range(count)]
            self._views[key] = server_view(self.problem, self._hosts[host], elements)
        return self._views[key]

    def _best_pinned(self, key: tuple[str, tuple[tuple[str, int], ...]]) -> ServerCapacity:
        """Predict the ways of pinning in the order of the bound of their busiest core, and return the best."""
        view = self._view(key)
        if view is None:
            return ServerCapacity(capacity_pps=math.inf, choice="free")
        threads, fixed = thread_work(view)
        speed = self._hosts[key[0]].speed_ratio
        bounded = [
            (choice, pins, speed / max(busiest_core_s(threads, fixed, pins), 1e-30) / view.weight)
            for choice, pins in pin_choices(threads, fixed, self.problem.rules)
        ]
        best = ServerCapacity(capacity_pps=0.0, choice="none")
        for choice, pins, max_pps in sorted(bounded, key=lambda entry: -entry[2]):
            if max_pps * _MARGIN <= best.capacity_pps:
                break
            self.predictions += 1
            capacity = predict_lossless_pps(with_pins(view.model, pins), view.load) / view.weight
            if capacity > best.capacity_pps * (1.0 + 1e-9):
                best = ServerCapacity(capacity_pps=capacity, choice=choice, pins=pins)
        return best


def _key(group_counts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple((name, count) for name, count in group_counts.items() if count)


def _max_effective_cores(host: ServerGroup) -> float:
    """Return the greatest number of cores without contention to which the cores of a server are equal."""
    contention = host.technology.contention
    return max(busy / contention.factor(busy) for busy in range(1, host.cores + 1))


def slowed_pps(host: ServerGroup, max_pps: float, total_s: float, thread_s: float) -> float:
    """Return an upper bound on the load of a server, frames/s, whose busy cores slow each other.

    ``max_pps`` is the bound without that; ``total_s`` and ``thread_s`` are the work for a frame of the load, of all
    threads and of the busiest. The busy cores at a load slow each other by ``f``, and the busiest thread must still fit
    into one. The number of busy cores is a lower bound, and a convex ``f`` of a mean is at most the mean of ``f``, so
    this bounds any spread of the load in time.
    """
    contention = host.technology.contention
    if not contention.is_usl or contention.is_none or not math.isfinite(max_pps):
        return max_pps
    low, high = 0.0, max_pps
    for _ in range(24):
        rate_pps = 0.5 * (low + high)
        busy = _busy_cores(host, rate_pps * total_s)
        if rate_pps * thread_s * contention.factor(busy) <= 1.0:
            low = rate_pps
        else:
            high = rate_pps
    return high


def _busy_cores(host: ServerGroup, work: float) -> float:
    """Return a lower bound on the number of cores that are busy with the work of ``work`` cores without contention."""
    contention, busy = host.technology.contention, work
    if not contention.is_usl or contention.is_none:
        return min(busy, float(host.cores))
    for _ in range(8):
        busy = min(work * contention.factor(busy), float(host.cores))
    return busy
