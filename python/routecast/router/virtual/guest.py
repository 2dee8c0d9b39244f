"""The guest's part of a frame's way: functions in a machine, run by its vcpu threads, by softirqs, or by polling."""

from __future__ import annotations

from dataclasses import replace

from routecast.router.model import Activation, Need, Route, ServiceCost, TaskUnit
from routecast.router.virtual.machines import Machine
from routecast.router.virtual.technology import SOFTIRQ, Technology

__all__ = ["guest_task", "interrupt_driven_tasks"]


def guest_task(
    technology: Technology, machine: Machine, name: str, vcpu: int, cost: ServiceCost, route: Route
) -> TaskUnit:
    """Return the task unit of a function on one vcpu of a machine.

    Parameters
    ----------
    technology : Technology
        Of the machine's server; its ``guest`` says what runs the function.
    machine : Machine
    name : str
        Of the task unit.
    vcpu : int
        Number of the vcpu, from 0.
    cost : ServiceCost
        All work of the machine for a frame.
    route : Route
        Where its frames go.
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
        interrupt = Activation(
            kind="interrupt", budget_frames=budget_frames, interrupt_cost_s=technology.guest_wake_s
        )
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

    All of a ring's interrupts come before any work of the function itself (receive livelock: Mogul and Ramakrishnan,
    ACM TOCS 15(3), 1997, sec. 4). Arguments as for :func:`guest_task`.
    """
    behind = guest_task(technology, machine, f"{name} behind interrupts", vcpu, cost, route)
    behind = replace(behind, queue_frames=technology.guest_backlog_frames)
    entry = guest_task(technology, machine, name, vcpu, technology.guest_interrupt, Route(to=(behind.name,)))
    whole_ring = replace(entry.activation, budget_frames=technology.guest_ring_frames)
    return replace(entry, activation=whole_ring), behind
