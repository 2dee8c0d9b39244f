"""Stations that are not a textbook queue alone: units that several task units visit, queues in overload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from routecast.evaluate.queueing.general import ServiceMix
from routecast.evaluate.queueing.markov import MMc, Queue
from routecast.evaluate.queueing.two_moments import GIGc
from routecast.evaluate.solve.fluid import Fluid
from routecast.evaluate.solve.share import Component

__all__ = ["BehindLink", "FullQueue", "SharedQueue", "behind_link", "shared_queue"]

_NOTABLE = 0.01


def shared_queue(
    part: Component, fluid: Fluid, visits: Mapping[int, tuple[float, ServiceMix]], index: int
) -> Queue | None:
    """Take units that several task units visit in order of request as one queue of all their frames.

    With exponential service of one mean this has the product form of Jackson and BCMP (Baskett, Chandy, Muntz and
    Palacios, Journal of the ACM 22(2), 1975), exactly where every
    frame asks for itself, else up to the order in which the task units' frames are served; otherwise it
    is M/G/c with the frames of all. None where other things come in: another policy, switch costs, batches, several
    units at once.

    Parameters
    ----------
    visits : mapping
        Arrival rate and service times of each member of ``part``.
    index : int
        The member whose visit is asked for.
    """
    tasks = fluid.graph.tasks
    plain = all(
        tasks[member].activation.kind == "dedicated"
        and len(tasks[member].needs) == 1
        and units == 1
        and fluid.costs[member].batch_s == 0.0
        for member, units in part.members
    )
    if not plain or part.pool.policy.kind != "fifo" or part.pool.switch_cost_s > 0.0:
        return None
    servers = len(part.units)
    total = sum(rate for rate, _ in visits.values())
    mean_s = sum(rate * mix.mean_s for rate, mix in visits.values()) / total
    if total * mean_s >= servers * (1.0 - 1e-6):
        return None
    second = sum(rate * (1.0 + mix.squared_cv) * mix.mean_s**2 for rate, mix in visits.values()) / total
    times = [mix.mean_s for _, mix in visits.values()]
    exponential = all(mix.law == "exponential" and mix.is_one_size for _, mix in visits.values())
    product_form = exponential and max(times) <= min(times) * (1.0 + 1e-6)
    if product_form:
        waiting_s = MMc(arrival_pps=total, service_s=mean_s, servers=servers).waiting_mean_s
        in_order = all(tasks[member].request == "frame" for member, _ in part.members)
        method = "Jackson network" if in_order else "Jackson network (order of service approximated)"
    else:
        common = GIGc(
            arrival_pps=total,
            arrival_scv=1.0,
            service_s=mean_s,
            service_scv=second / mean_s**2 - 1.0,
            servers=servers,
        )
        waiting_s, method = common.waiting_mean_s, f"M/G/{servers} for shared units (approximation)"
    return SharedQueue(
        waiting_s=waiting_s, service_s=visits[index][1].mean_s, named=method, product_form=product_form
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedQueue(Queue):
    """A visit to a unit that other task units visit too."""

    waiting_s: float
    service_s: float
    named: str
    product_form: bool
    """Whether its output may be taken as Poisson, as in a Jackson network."""

    @property
    def method(self) -> str:
        """How it was computed."""
        return self.named

    @property
    def loss_ratio(self) -> float:
        """Share of the frames that find no room."""
        return 0.0

    @property
    def waiting_mean_s(self) -> float:
        """Mean waiting time."""
        return self.waiting_s

    @property
    def sojourn_mean_s(self) -> float:
        """Mean waiting and service time."""
        return self.waiting_s + self.service_s


@dataclass(frozen=True, slots=True, kw_only=True)
class FullQueue(Queue):
    """Overload: the queue is always full, the sojourn time is its length over the rate (paper 000, eq. 4)."""

    arrival_pps: float
    service_s: float
    servers: int
    capacity_frames: int

    @property
    def method(self) -> str:
        """How it was computed."""
        return "full queue, Little's law"

    @property
    def loss_ratio(self) -> float:
        """Share of the frames that find no room."""
        return 1.0 - self.servers / (self.arrival_pps * self.service_s)

    @property
    def sojourn_mean_s(self) -> float:
        """Mean waiting and service time."""
        return self.capacity_frames * self.service_s / self.servers

    @property
    def waiting_mean_s(self) -> float:
        """Mean waiting time."""
        return self.sojourn_mean_s - self.service_s


def behind_link(queue: Queue, link_wait_s: float, *, exact: bool) -> Queue:
    """Return a queue for Poisson arrivals as it is behind the link that spaces them, where that matters."""
    if queue.waiting_mean_s <= 0.0 or link_wait_s <= _NOTABLE * queue.sojourn_mean_s:
        return queue
    return BehindLink(queue=queue, link_wait_s=link_wait_s, exact=exact)


@dataclass(frozen=True, slots=True, kw_only=True)
class BehindLink(Queue):
    """A queue whose Poisson arrivals have already waited for the link that brings them.

    Constant times in series: all waits together are that for the slowest server alone (Friedman, Operations Research
    13(1), 1965; Avi-Itzhak, Management Science 11(5), 1965), so behind the link ``W - W_link`` is left. ``exact`` for
    one server that gets all frames of one link, one size, without loss; else W stays as it is, an upper approximation.
    """

    queue: Queue
    link_wait_s: float
    exact: bool

    @property
    def _spared_s(self) -> float:
        return min(self.link_wait_s, self.queue.waiting_mean_s) if self.exact else 0.0

    @property
    def method(self) -> str:
        """How it was computed."""
        if self.exact:
            return f"{self.queue.method} less the wait for the link in"
        return f"{self.queue.method} as if no link spaced the frames (approximation)"

    @property
    def loss_ratio(self) -> float:
        """As without the link."""
        return self.queue.loss_ratio

    @property
    def waiting_mean_s(self) -> float:
        """What is left of the wait."""
        return self.queue.waiting_mean_s - self._spared_s

    @property
    def sojourn_mean_s(self) -> float:
        """Waiting and service."""
        return self.queue.sojourn_mean_s - self._spared_s
