"""Checks of a machine before it measures: what is fine, what distorts, what is missing, and the command that fixes it.

Every check is a function from an :class:`ExaminedMachine` to a :class:`Finding`. It reads the machine's files and runs
its programs, and changes nothing, so that checks also work on recorded machines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from routecast.lab.testbed.doctor import _interfaces as interfaces
from routecast.lab.testbed.doctor import _isolation as isolation
from routecast.lab.testbed.doctor import _processor as processor
from routecast.lab.testbed.doctor import _rights as rights
from routecast.lab.testbed.doctor._machine import ExaminedMachine, Finding, State

__all__ = ["CHECKS", "INTERFACE_CHECKS", "ExaminedMachine", "Finding", "State", "examine"]

CHECKS: Final[dict[str, tuple[Callable[[ExaminedMachine], Finding], ...]]] = {
    "Processor": (
        *(processor.core_count, processor.governor, processor.turbo, processor.sleep_states, processor.smt),
        *(processor.mitigations, processor.numa, processor.clock_source),
    ),
    "Isolation": (
        *(isolation.isolated_cores, isolation.quiet_timer, isolation.interrupts),
        *(isolation.realtime_throttling, isolation.cgroup_limits),
    ),
    "Neighbours": (isolation.virtualisation, isolation.stolen_time, isolation.busy_cores, isolation.pressure),
    "Rights": (
        *(rights.capabilities, rights.namespaces, rights.bpf_rights, rights.back_ends),
        *(rights.bpf_jit, rights.bpf_file_system, processor.meters, rights.huge_pages),
    ),
    "Programs": (rights.tools, rights.devices, rights.other_testers, rights.graphics),
}
"""Checks of the machine, by group."""

INTERFACE_CHECKS: Final[tuple[Callable[[ExaminedMachine, str], Finding], ...]] = (
    *(interfaces.link, interfaces.traffic, interfaces.driver, interfaces.queues, interfaces.rings),
    *(interfaces.offloads, interfaces.coalescing, interfaces.flow_control),
)
"""Checks of each interface."""


def examine(machine: ExaminedMachine) -> Iterator[tuple[str, Finding]]:
    """Yield every finding with the name of its group, in the order of reports."""
    for group, checks in CHECKS.items():
        for check in checks:
            yield group, check(machine)
    for name in machine.interfaces:
        finding = interfaces.link(machine, name)
        yield f"Interface {name}", finding
        if machine.exists(f"sys/class/net/{name}"):
            for check_interface in INTERFACE_CHECKS[1:]:
                yield f"Interface {name}", check_interface(machine, name)
