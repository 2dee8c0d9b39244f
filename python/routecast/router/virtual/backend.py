"""The backend's part of a frame's way: what moves frames between host and machine, a thread, softirqs or a vSwitch."""

from __future__ import annotations

from routecast.router.model import Activation, Need, Route, ServiceCost, TaskUnit
from routecast.router.virtual.machines import Cores, Machine
from routecast.router.virtual.technology import BACKEND_SOFTIRQ, Technology

__all__ = ["backend_task"]


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

    Parameters
    ----------
    technology : Technology
        Of the machine's server; its ``backend`` says what does the work.
    machine : Machine
    interface : int
        Number of the machine's interface, from 0.
    name : str
        Of the task unit.
    cost : ServiceCost
        All work of the backend for a frame.
    route : Route
        Where its frames go.
    switch_core : int or None
        Core of the vSwitch that polls the interface; None where the backend does not poll.
    interrupt_cores : Cores
        Cores of its softirqs, where the machine says none.
    holds_back : bool
        Whether frames wait before it while the machine's ring is full.
    queue_frames : int or None
        Frames that wait for it; None: as the technology says.
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
        activation = Activation(
            kind="thread", budget_frames=budget_frames, interrupt_cost_s=technology.backend_wake_s
        )
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
