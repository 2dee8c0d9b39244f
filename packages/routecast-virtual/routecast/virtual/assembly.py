"""Assembly of a router from machines on servers: each step of a frame's path becomes a task unit of a thread.

A path is built from its end to its start, because every task unit names the next task unit::

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
from routecast.virtual.costs import FREE, added, scaled
from routecast.virtual.machines import Cores, Machine, Server
from routecast.virtual.technology import BACKEND_SOFTIRQ, SOFTIRQ, Technology

__all__ = ["Assembly"]


def wire_task(wire: str, link_bps: float, *, label: str, to: str, queue_frames: int, tag_bytes: float) -> TaskUnit:
    """Return the task unit of one path over a wire, which a frame occupies for its bytes, preamble and gap (S1).

    ``wire``: name of the wire and of its pool, which its paths share; ``link_bps``: its rate in this direction;
    ``label``: text that distinguishes this path from others over the wire; ``to``: next task unit, ``''`` for copies
    without a receiver, which end here; ``queue_frames``: frames of this path that can wait for the wire;
    ``tag_bytes``: bytes of a VLAN tag on each frame.
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

    ``technology``: technology of the machine's server, whose ``guest`` names the runner of the function; ``name``: name
    of the task unit; ``vcpu``: number of the vcpu, from 0; ``cost``: all work of the machine for a frame; ``route``:
    route of its frames.
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
    """Return the task unit of the interrupts that bring a function's frames, and the task unit of the function.

    All interrupts of a ring precede any work of the function (receive livelock: Mogul and Ramakrishnan, ACM TOCS 15(3),
    1997, sec. 4). Arguments as for :func:`guest_task`.
    """
    behind = guest_task(technology, machine, f"{name} behind interrupts", vcpu, cost, route)
    behind = replace(behind, queue_frames=technology.guest_backlog_frames)
    entry = guest_task(technology, machine, name, vcpu, technology.guest_interrupt, Route(to=(behind.name,)))
    whole_ring = replace(entry.activation, budget_frames=technology.guest_ring_frames)
    return replace(entry, activation=whole_ring), behind


class Cards:
    """The cards of a server in the order in which they are added; they use the server's cores in turn."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._known: dict[str, int] = {}

    def number(self, card: str) -> int:
        """Return the number of a card, from 0; a new card gets the next number."""
        return self._known.setdefault(card, len(self._known))

    def interrupt_cores(self, card: str) -> Cores:
        """Return the cores that a card's queues interrupt, beginning with the core whose turn it is."""
        cores = self._server.interrupt_cores or (0,)
        first = self.number(card)
        queues = min(self._server.technology.nic_queues, len(cores))
        return tuple(cores[(first + queue) % len(cores)] for queue in range(queues))

    def backend_cores(self) -> Cores:
        """Return the cores of the backends' softirqs, which are those that the cards interrupt; () means all cores."""
        cores = tuple(sorted(self._server.interrupt_cores or (0,)))
        return () if len(cores) == self._server.cores else cores

    def switch_core(self, interface: str) -> int:
        """Return the core of the polling vSwitch that serves a machine's interface."""
        cores = self._server.switch_cores or (0,)
        return cores[self.number(interface) % len(cores)]


def softirq_task(server: Server, name: str, core: int, route: Route, *, card_share: int = 1) -> TaskUnit:
    """Return the task unit of the softirqs of one queue of a card.

    ``name``: name of the task unit; ``core``: core that the queue interrupts; ``route``: route of its frames;
    ``card_share``: number of task units that share the queue's ring and its interrupts evenly.
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

    ``technology``: technology of the machine's server, whose ``backend`` names the runner of the work; ``interface``:
    number of the machine's interface, from 0; ``name``: name of the task unit; ``cost``: all work of the backend for a
    frame; ``route``: route of its frames; ``switch_core``: core of the vSwitch that polls the interface, None where the
    backend does not poll; ``interrupt_cores``: cores of its softirqs where the machine names none; ``holds_back``:
    whether frames wait before it while the machine's ring is full; ``queue_frames``: frames that can wait for it, None
    for the number of the technology.
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
        # Softirqs without a pin would stay, above all threads, on the core that a vcpu is pinned to.
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
            Task unit that receives its frames.
        tx_ring_frames : int
            Length of its transmit ring.
        """
        self._ports.append(Port(name=name, link_bps=link_bps, tx_ring_frames=tx_ring_frames, entry=entry))

    def card(self, server: str, wire: str) -> None:
        """Assign a server's next interrupt core to the card at a wire; other cards get theirs as they are added."""
        if self.servers[server].technology.backend in {"thread", "softirq"}:
            self._cards[server].number(wire)

    def function(self, machine: Machine, function: str, route: Route, *, label: str = "") -> str:
        """Add a function of a machine; return the task unit that takes its frames.

        Parameters
        ----------
        machine : Machine
        function : str
            Function with a cost in the machine or its technology.
        route : Route
            Route of its frames.
        label : str
            Name of the function in task units; ``''``: ``function``.
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
            Number of machines that get the card's frames: each has a task unit with an equal part of the card's ring
            and of its interrupts.
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

        ``server`` and ``wire``: the card of the server at that wire; ``route``: route of its frames; ``label``: name of
        the card's work in task units, ``''`` for the name of the wire; ``card_share``: as for :meth:`from_wire`.
        """
        card_server = self.servers[server]
        cores = self._cards[server].interrupt_cores(wire)
        name = f"{label or wire} softirq"
        if len(cores) == 1:
            return self._add(softirq_task(card_server, name, cores[0], route, card_share=card_share))
        queues = tuple(
            self._add(softirq_task(card_server, f"{name} of queue {number}", core, route, card_share=card_share))
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
            Name of the task unit; ``''``: made from the names of machine and interface.
        extra : ServiceCost
            Work of the backend for a frame besides sending it.
        ring_share : int
            Number of paths out of this interface: each is a task unit with an equal part of the machine's ring.

        Returns
        -------
        str or None
            First task unit of the path.
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

        A polling vSwitch moves a frame from one machine to the other in one step.

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
            Task units that get a copy of each frame from a switch that floods.
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
            With all contradictions of the router.
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
        """Add a task unit; a task unit that several paths share is added once."""
        known = self._tasks.setdefault(task.name, task)
        assert known == task, f"two paths differ in {task.name!r}"
        return task.name
