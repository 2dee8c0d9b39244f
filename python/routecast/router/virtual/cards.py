"""A server's network cards: which cores they interrupt or a vSwitch polls them from, and the softirqs' work."""

from __future__ import annotations

from routecast.router.model import Activation, Need, Route, TaskUnit
from routecast.router.virtual.machines import Cores, Server
from routecast.router.virtual.technology import SOFTIRQ

__all__ = ["Cards", "softirq_task"]


class Cards:
    """The cards of one server, in the order in which they turn up: each takes its turn at the server's cores.

    Parameters
    ----------
    server : Server
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._known: dict[str, int] = {}

    def number(self, card: str) -> int:
        """Return the number of a card, from 0; one that is new comes last."""
        return self._known.setdefault(card, len(self._known))

    def interrupt_cores(self, card: str) -> Cores:
        """Return the cores that a card's queues interrupt: the first is the card's turn, the others follow it."""
        cores = self._server.interrupt_cores or (0,)
        first = self.number(card)
        queues = min(self._server.technology.nic_queues, len(cores))
        return tuple(cores[(first + queue) % len(cores)] for queue in range(queues))

    def backend_cores(self) -> Cores:
        """Return the cores that softirqs of machines' backends run on: those that the cards interrupt, () if all."""
        cores = tuple(sorted(self._server.interrupt_cores or (0,)))
        return () if len(cores) == self._server.cores else cores

    def switch_core(self, interface: str) -> int:
        """Return the core of the polling vSwitch that takes the frames of a machine's interface."""
        cores = self._server.switch_cores or (0,)
        return cores[self.number(interface) % len(cores)]


def softirq_task(server: Server, name: str, core: int, route: Route, *, card_share: int = 1) -> TaskUnit:
    """Return the task unit of the softirqs of one queue of a card.

    Parameters
    ----------
    server : Server
    name : str
        Of the task unit.
    core : int
        That the queue interrupts.
    route : Route
        Where its frames go.
    card_share : int
        Task units that share the queue's ring and its interrupts evenly.
    """
    technology = server.technology
    return TaskUnit(
        name=name,
        needs=(Need(pool=server.name),),
        service=technology.nic_receive,
        queue_frames=max(technology.nic_ring_frames // card_share, 1),
        activation=Activation(
            kind="interrupt",
            budget_frames=technology.nic_budget_frames,
            interrupt_cost_s=technology.nic_interrupt_s,
            moderation_s=technology.nic_moderation_s * card_share,
        ),
        batch_frames=technology.nic_budget_frames,
        priority=SOFTIRQ,
        pin=(core,),
        route=route,
    )
