"""Putting a router together from machines on servers: each step of a frame's way becomes a task unit of a thread.

A path is built from its end to its start, because every task unit names the next one::

    assembly = Assembly(servers)
    out = assembly.to_port(vm, interface=1, port="port 1")           # backend sends to the wire
    work = assembly.function(vm, "forward", Route(to=(out,)))        # the guest
    entry = assembly.from_wire(vm, interface=0, wire="port 0", to=work)  # softirq, backend receives
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from routecast.load.offered import WIRE_OVERHEAD_BYTES
from routecast.router.model import (
    Activation,
    Need,
    Port,
    ResourcePool,
    Route,
    RouteKind,
    RouterModel,
    ServiceCost,
    TaskUnit,
)
from routecast.router.virtual.costs import FREE, added, scaled
from routecast.router.virtual.machines import Cores, Machine, Server
from routecast.router.virtual.technology import BACKEND_SOFTIRQ, SOFTIRQ, Technology

__all__ = ["Assembly"]


def wire_task(wire: str, link_bps: float, *, label: str, to: str, queue_frames: int, tag_bytes: float) -> TaskUnit:
    """Return the task unit of one path over a wire, which a frame occupies for its bytes, preamble and gap (S1).

    ``wire``: name of the wire, and of its pool: ways of the same name share it; ``link_bps``: its rate in this
    direction; ``label``: what tells this way from the others over the wire, in the task unit's name; ``to``: task unit
    that its frames go to; ``''``: they end here, copies without a receiver; ``queue_frames``: frames of this way that
    wait for the wire; ``tag_bytes``: bytes of a VLAN tag on each frame.
    """
    return TaskUnit(
        name=f"{wire} {label}",
        needs=(Need(pool=wire),),
        service=ServiceCost(per_packet_s=8.0 * (WIRE_OVERHEAD_BYTES + tag_bytes) / link_bps, per_byte_s=8.0 / link_bps),
        queue_frames=queue_frames,
        request="frame",
        route=Route(to=(to,) if to else ()),
    )


def guest_task(
    technology: Technology, machine: Machine, name: str, vcpu: int, cost: ServiceCost, route: Route
) -> TaskUnit:
    """Return the task unit of a function on one vcpu of a machine.

    ``technology``: of the machine's server; its ``guest`` says what runs the function; ``name``: of the task unit;
    ``vcpu``: number of the vcpu, from 0; ``cost``: all work of the machine for a frame; ``route``: where its frames go.
    """
    budget_frames = technology.guest_budget_frames
    task = TaskUnit(
        name=name,
        needs=(Need(pool=machine.server),),
        service=cost,
        queue_frames=technology.guest_ring_frames,
        pin=machine.vcpu_pin(vcpu),
        weight=machine.weight,
        route=route,
    )
    thread = f"{machine.name} vcpu {vcpu}"
    if technology.guest == "polling":
        return replace(task, activation=Activation(kind="polling"), batch_frames=budget_frames, thread=thread)
    if technology.guest == "softirq":
        interrupt = Activation(kind="interrupt", budget_frames=budget_frames, interrupt_cost_s=technology.guest_wake_s)
        return replace(task, activation=interrupt, batch_frames=budget_frames, priority=SOFTIRQ)
    woken = Activation(
        kind="thread",
        budget_frames=budget_frames,
        interrupt_cost_s=technology.guest_wake_s,
        wakeup=technology.guest_wakeup,
    )
    return replace(task, activation=woken, priority=machine.vcpu_priority, thread=thread)


def interrupt_driven_tasks(
    technology: Technology, machine: Machine, name: str, vcpu: int, cost: ServiceCost, route: Route
) -> tuple[TaskUnit, TaskUnit]:
    """Return the task units of a function behind the interrupts that bring its frames, first that of the interrupts.

    All interrupts of a ring precede any work of the function (receive livelock: Mogul and Ramakrishnan, ACM TOCS 15(3),
    1997, sec. 4). Arguments as for :func:`guest_task`.
    """
    behind = guest_task(technology, machine, f"{name} behind interrupts", vcpu, cost, route)
    behind = replace(behind, queue_frames=technology.guest_backlog_frames)
    entry = guest_task(technology, machine, name, vcpu, technology.guest_interrupt, Route(to=(behind.name,)))
    whole_ring = replace(entry.activation, budget_frames=technology.guest_ring_frames)
    return replace(entry, activation=whole_ring), behind


class Cards:
    """The cards of one server in the order in which they are added; they take turns at the server's cores."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._known: dict[str, int] = {}

    def number(self, card: str) -> int:
        """Return the number of a card, from 0; a new one gets the next number."""
        return self._known.setdefault(card, len(self._known))

    def interrupt_cores(self, card: str) -> Cores:
        """Return the cores that a card's queues interrupt, beginning with the core whose turn it is."""
        cores = self._server.interrupt_cores or (0,)
        first = self.number(card)
        queues = min(self._server.technology.nic_queues, len(cores))
        return tuple(cores[(first + queue) % len(cores)] for queue in range(queues))

    def backend_cores(self) -> Cores:
        """Return the cores of the softirqs of machines' backends: those that the cards interrupt; () means all."""
        cores = tuple(sorted(self._server.interrupt_cores or (0,)))
        return () if len(cores) == self._server.cores else cores

    def switch_core(self, interface: str) -> int:
        """Return the core of the polling vSwitch that takes the frames of a machine's interface."""
        cores = self._server.switch_cores or (0,)
        return cores[self.number(interface) % len(cores)]


def softirq_task(server: Server, name: str, core: int, route: Route, *, card_share: int = 1) -> TaskUnit:
    """Return the task unit of the softirqs of one queue of a card.

    ``name``: of the task unit; ``core``: that the queue interrupts; ``route``: where its frames go; ``card_share``:
    task units that share the queue's ring and its interrupts evenly.
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


def backend_task(
    technology: Technology,
    machine: Machine,
    interface: int,
    name: str,
    cost: ServiceCost,
    route: Route,
    *,
    switch_core: int | None = None,
    interrupt_cores: Cores = (),
    holds_back: bool = False,
    queue_frames: int | None = None,
) -> TaskUnit:
    """Return the task unit of the backend's work on one direction of a machine's interface.

    ``technology``: of the machine's server; its ``backend`` says what does the work; ``interface``: number of the
    machine's interface, from 0; ``name``: of the task unit; ``cost``: all work of the backend for a frame; ``route``:
    where its frames go; ``switch_core``: core of the vSwitch that polls the interface; None where the backend does not
    poll; ``interrupt_cores``: cores of its softirqs, where the machine says none; ``holds_back``: whether frames wait
    before it while the machine's ring is full; ``queue_frames``: frames that wait for it; None: as the technology says.
    """
    per_machine = technology.backend_threads == "machine"
    thread = f"{machine.name} backend" if per_machine else f"{machine.name} backend {interface}"
    pin = machine.backend_pin(0 if per_machine else interface)
    priority = machine.backend_priority
    budget_frames = technology.backend_budget_frames
    if switch_core is not None:
        thread, pin, priority = f"{machine.server} vswitch on core {switch_core}", (switch_core,), 0
        activation = Activation(kind="polling")
    elif technology.backend == "softirq":
        # Softirqs that may run anywhere would camp, above all threads, on the core that a vcpu is pinned to.
        thread, pin, priority = "", pin or interrupt_cores, BACKEND_SOFTIRQ
        activation = Activation(
            kind="interrupt",
            budget_frames=budget_frames,
            interrupt_cost_s=technology.backend_wake_s,
            moderation_s=technology.backend_moderation_s,
        )
    else:
        activation = Activation(kind="thread", budget_frames=budget_frames, interrupt_cost_s=technology.backend_wake_s)
    fair_thread = activation.kind == "thread" and not priority
    return TaskUnit(
        name=name,
        needs=(Need(pool=machine.server),),
        service=cost,
        queue_frames=queue_frames or technology.queue_frames,
        activation=activation,
        batch_frames=1 if activation.kind == "thread" else budget_frames,
        priority=priority,
        weight=machine.weight if fair_thread else 1.0,
        pin=pin,
        thread=thread,
        holds_back=holds_back,
        route=route,
    )


class Assembly:
    """Task units, pools and ports of a router under construction.

    Parameters
    ----------
    servers : sequence of Server
        Each becomes a pool of cores, named as the server.
    """

    def __init__(self, servers: Sequence[Server]) -> None:
        self.servers: Mapping[str, Server] = {server.name: server for server in servers}
        self._tasks: dict[str, TaskUnit] = {}
        self._ports: list[Port] = []
        self._links: dict[str, ResourcePool] = {}
        self._cards = {server.name: Cards(server) for server in servers}

    def technology(self, machine: Machine) -> Technology:
        """Return the technology of a machine's server."""
        return self.servers[machine.server].technology

    def port(self, name: str, link_bps: float, *, entry: str, tx_ring_frames: int = 512) -> None:
        """Add an outer interface.

        Parameters
        ----------
        name : str
        link_bps : float
            Rate of its link, each direction.
        entry : str
            Task unit that its frames come in at.
        tx_ring_frames : int
            Its transmit ring.
        """
        self._ports.append(Port(name=name, link_bps=link_bps, tx_ring_frames=tx_ring_frames, entry=entry))

    def card(self, server: str, wire: str) -> None:
        """Give the card at a wire its turn at a server's interrupt cores; other cards take turns as they are added."""
        if self.servers[server].technology.backend in {"thread", "softirq"}:
            self._cards[server].number(wire)

    def function(self, machine: Machine, function: str, route: Route, *, label: str = "") -> str:
        """Add a function of a machine; return the task unit that takes its frames.

        Parameters
        ----------
        machine : Machine
        function : str
            One that the machine or its technology has a cost for.
        route : Route
            Where its frames go.
        label : str
            What to call the function in names of task units; ``''``: as it is.
        """
        technology = self.technology(machine)
        cost = machine.functions.get(function) or technology.functions[function]
        parts = [cost, technology.guest_driver]
        if technology.backend == "none":
            parts += [technology.receive, technology.send]
        name = f"{machine.name} {label or function}"
        driven = technology.guest == "thread" and function in technology.interrupt_driven
        add = self._interrupt_driven if driven else self._guest
        if machine.vcpus == 1:
            return add(machine, name, 0, added(*parts), route)
        smp = scaled(added(*parts), technology.smp_factor)
        vcpus = tuple(add(machine, f"{name} on vcpu {vcpu}", vcpu, smp, route) for vcpu in range(machine.vcpus))
        return self._add(TaskUnit(name=name, route=Route(kind="rss", to=vcpus)))

    def from_wire(self, machine: Machine, *, interface: int, wire: str, to: str, card_share: int = 1) -> str:
        """Add the path of frames from a wire into a machine; return its first task unit.

        Parameters
        ----------
        machine : Machine
        interface : int
            Of the machine, from 0.
        wire : str
            Name of the wire at the server's card.
        to : str
            Task unit in the machine that takes the frames.
        card_share : int
            Machines that the card's frames are for: those of each are a task unit, which has one part in so many of the
            card's ring and of its interrupts.
        """
        server, technology = self.servers[machine.server], self.technology(machine)
        if technology.backend == "none":
            return to
        label = f"{wire} to {machine.name}"
        if technology.backend == "polling":
            cost = added(technology.nic_receive, technology.switch, technology.receive)
            return self._backend(machine, interface, label, cost, Route(to=(to,)), holds_back=False)
        inside = self.into(machine, interface=interface, to=to)
        return self.off_wire(server.name, wire, Route(to=(inside,)), label=label, card_share=card_share)

    def off_wire(self, server: str, wire: str, route: Route, *, label: str = "", card_share: int = 1) -> str:
        """Add the work of a card's softirqs on frames from a wire; return the task unit that takes them.

        ``server`` and ``wire``: the card is the server's at that wire; ``route``: where its frames go; ``label``: what
        to call the card's work in names of task units; ``''``: as the wire; ``card_share``: as for :meth:`from_wire`.
        """
        on = self.servers[server]
        cores = self._cards[server].interrupt_cores(wire)
        name = f"{label or wire} softirq"
        if len(cores) == 1:
            return self._add(softirq_task(on, name, cores[0], route, card_share=card_share))
        queues = tuple(
            self._add(softirq_task(on, f"{name} of queue {number}", core, route, card_share=card_share))
            for number, core in enumerate(cores)
        )
        return self.spread(f"{label or wire} queues", "rss", queues)

    def spread(self, name: str, kind: RouteKind, to: Sequence[str]) -> str:
        """Add a choice among paths that takes no core's time (a card's queues); return its task unit."""
        return self._add(TaskUnit(name=name, route=Route(kind=kind, to=tuple(to))))

    def into(self, machine: Machine, *, interface: int, to: str) -> str:
        """Add the backend's work on frames for a machine; return its task unit (or the guest's, without a backend)."""
        technology = self.technology(machine)
        if technology.backend == "none":
            return to
        return self._backend(
            machine,
            interface,
            f"{machine.name} receive {interface}",
            technology.receive,
            Route(to=(to,)),
            holds_back=technology.holds_back and machine.vcpus == 1,
        )

    def to_port(
        self,
        machine: Machine,
        *,
        interface: int,
        route: Route,
        label: str = "",
        extra: ServiceCost = FREE,
        ring_share: int = 1,
    ) -> str | None:
        """Add the path of frames out of a machine to ports or wires; None where the guest itself sends them.

        Parameters
        ----------
        machine : Machine
        interface : int
            Of the machine, from 0.
        route : Route
            To the ports or wires.
        label : str
            Name of the task unit; ``''``: from those of machine and interface.
        extra : ServiceCost
            Work of the backend for a frame besides sending it.
        ring_share : int
            Paths out of this interface: each is a task unit, which has one part in so many of the
            machine's ring.

        Returns
        -------
        str or None
            The first task unit of the way.
        """
        technology = self.technology(machine)
        if technology.backend == "none":
            return None
        parts = [technology.send, extra]
        if technology.backend == "polling":  # the vSwitch itself puts frames on the wire
            parts += [technology.switch, technology.nic_send]
        return self._backend(
            machine,
            interface,
            label or f"{machine.name} send {interface}",
            added(*parts),
            route,
            queue_frames=technology.sending_frames(ring_share),
        )

    def to_machine(
        self,
        sender: Machine,
        *,
        interface: int,
        receiver: Machine,
        receiver_interface: int,
        to: str,
        extra: ServiceCost = FREE,
        ring_share: int = 1,
        copies: tuple[str, ...] = (),
    ) -> str:
        """Add the path between machines of a server through the virtual switch; return its first task unit.

        A polling vSwitch takes a frame out of one machine and puts it into the other at once.

        Parameters
        ----------
        sender, receiver : Machine
        interface, receiver_interface : int
            Of the sender, and of the receiver, from 0.
        to : str
            Task unit in the receiver that takes the frames.
        extra, ring_share
            As for :meth:`to_port`, of the sender.
        copies : tuple of str
            Task units that a switch which floods gives a copy of each frame.
        """
        technology = self.technology(sender)
        if technology.backend == "none":
            return to
        label = f"{sender.name} send {interface} to {receiver.name}"
        if technology.backend == "polling":
            cost = added(technology.send, technology.switch, technology.receive, extra)
            return self._backend(sender, interface, label, cost, Route(to=(to,), copies=copies))
        inside = self.into(receiver, interface=receiver_interface, to=to)
        return self._backend(
            sender,
            interface,
            label,
            added(technology.send, technology.switch, extra),
            Route(to=(inside,), copies=copies),
            queue_frames=technology.sending_frames(ring_share),
        )

    def wire(
        self, name: str, link_bps: float, *, to: str = "", label: str, queue_frames: int = 512, tag_bytes: float = 0.0
    ) -> str:
        """Add a link between servers that several paths share; return this path's task unit (:func:`wire_task`)."""
        self._links.setdefault(name, ResourcePool(name=name))
        return self._add(wire_task(name, link_bps, label=label, to=to, queue_frames=queue_frames, tag_bytes=tag_bytes))

    def model(self, name: str) -> RouterModel:
        """Return the router.

        Raises
        ------
        routecast.errors.ModelProblem
            The router contradicts itself; all faults at once.
        """
        used = {need.pool for task in self._tasks.values() for need in task.needs}
        pools = [server.pool() for server in self.servers.values() if server.name in used]
        return RouterModel(
            name=name,
            ports=tuple(self._ports),
            tasks=tuple(self._tasks.values()),
            pools=(*pools, *self._links.values()),
        )

    def _guest(self, machine: Machine, name: str, vcpu: int, cost: ServiceCost, route: Route) -> str:
        return self._add(guest_task(self.technology(machine), machine, name, vcpu, cost, route))

    def _interrupt_driven(self, machine: Machine, name: str, vcpu: int, cost: ServiceCost, route: Route) -> str:
        entry, behind = interrupt_driven_tasks(self.technology(machine), machine, name, vcpu, cost, route)
        self._add(behind)
        return self._add(entry)

    def _backend(
        self,
        machine: Machine,
        interface: int,
        name: str,
        cost: ServiceCost,
        route: Route,
        *,
        holds_back: bool = False,
        queue_frames: int | None = None,
    ) -> str:
        technology = self.technology(machine)
        core = None
        if technology.backend == "polling":
            core = self._cards[machine.server].switch_core(f"{machine.name} {interface}")
        return self._add(
            backend_task(
                technology,
                machine,
                interface,
                name,
                cost,
                route,
                switch_core=core,
                interrupt_cores=self._cards[machine.server].backend_cores(),
                holds_back=holds_back,
                queue_frames=queue_frames,
            )
        )

    def _add(self, task: TaskUnit) -> str:
        """Add a task unit; one that several paths share is added once."""
        known = self._tasks.setdefault(task.name, task)
        assert known == task, f"two paths differ in {task.name!r}"
        return task.name
