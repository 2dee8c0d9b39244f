"""Whether the costs and mechanisms of a virtualisation technique can be, with every fault at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Final, get_args

from routecast.errors import Problem
from routecast.router.check_numbers import (
    LONGEST_BYTE_S,
    LONGEST_S,
    MAX_FRAMES,
    MOST_CONTENTION,
    duration,
    known,
    not_negative,
)
from routecast.router.check_pool import check_contention, check_policy
from routecast.router.check_time import check_time, check_variation
from routecast.router.model import ServiceCost
from routecast.router.virtual.technology import Backend, BackendThreads, Guest, Technology

__all__ = ["cost_problems", "is_whole", "technology_problems"]

_MAX_QUEUES: Final = 128
_FRAMES = tuple(one.name for one in fields(Technology) if one.name.endswith("_frames"))
_TIMES = tuple(one.name for one in fields(Technology) if one.name.endswith("_s"))
_WORK = tuple(one.name for one in fields(ServiceCost) if one.name.startswith(("per_", "memory_")))
_IN_THE_GUEST = "add it to guest_driver"
_UNUSED: Final[Mapping[str, Mapping[str, str]]] = {
    "none": {"nic_receive": _IN_THE_GUEST, "nic_send": _IN_THE_GUEST, "switch": _IN_THE_GUEST},
    "thread": {"nic_send": "add it to send"},
    "softirq": {"nic_send": "add it to send"},
}
"""Costs that no task unit has, by backend, and where to put them."""

_COSTS = ("nic_receive", "nic_send", "receive", "send", "switch", "guest_driver", "guest_interrupt")


def technology_problems(place: str, technology: Technology, cores: int) -> list[Problem]:
    """Return what is wrong with a technique on a server of so many cores."""
    problems: list[Problem] = []

    def add(at: str, message: str) -> None:
        problems.append(Problem(at, message))

    for key, allowed in (("backend", Backend), ("backend_threads", BackendThreads), ("guest", Guest)):
        known(f"{place}.{key}", getattr(technology, key), get_args(allowed), add)
    if technology.backend == "thread" and technology.backend_threads == "server":
        add(
            f"{place}.backend_threads",
            'only a vSwitch that polls has threads of the server: "interface" or "machine" is wanted',
        )
    for key in _FRAMES:
        least = 0 if key == "guest_queue_frames" else 1
        if not is_whole(getattr(technology, key), least, MAX_FRAMES):
            wanted = "0 frames or more are wanted" if least == 0 else "at least 1 frame is wanted"
            add(f"{place}.{key}", f"got {getattr(technology, key)}: {wanted}")
    if not is_whole(technology.nic_queues, 1, _MAX_QUEUES):
        add(
            f"{place}.nic_queues",
            f"got {technology.nic_queues}: between 1 and {_MAX_QUEUES} queues are wanted",
        )
    for key in _TIMES:
        duration(f"{place}.{key}", getattr(technology, key), add)
    for key in _COSTS:
        _check_cost(f"{place}.{key}", getattr(technology, key), add)
    for key, instead in _UNUSED.get(technology.backend, {}).items():
        if getattr(technology, key) != ServiceCost():
            add(f"{place}.{key}", f'nobody does this work with backend "{technology.backend}": {instead}')
    for function, cost in technology.functions.items():
        _check_cost(f"{place}.functions.{function}", cost, add)
    if technology.guest_wakeup is not None:
        check_time(f"{place}.guest_wakeup", technology.guest_wakeup, add)
    check_policy(f"{place}.policy", technology.policy, add)
    check_contention(f"{place}.contention", technology.contention, cores, add)
    if not 1.0 <= technology.smp_factor <= MOST_CONTENTION:
        add(
            f"{place}.smp_factor",
            f"got {technology.smp_factor}: a finite number >= 1 is wanted, at most {MOST_CONTENTION:g}",
        )
    return problems


def cost_problems(place: str, cost: ServiceCost) -> list[Problem]:
    """Return what is wrong with the work of a step."""
    problems: list[Problem] = []
    _check_cost(place, cost, lambda at, message: problems.append(Problem(at, message)))
    return problems


def is_whole(value: object, least: int, most: int) -> bool:
    """Return whether a value is a whole number, and neither less nor more than allowed."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _check_cost(place: str, cost: ServiceCost, add: Callable[[str, str], None]) -> None:
    for name in _WORK:
        at, value = f"{place}.{name}", getattr(cost, name)
        if name.endswith("_s"):
            duration(at, value, add, most_s=LONGEST_BYTE_S if name == "per_byte_s" else LONGEST_S)
        elif not_negative(at, value, add) and value and name.endswith("_cycles"):
            add(at, "is in cycles, and servers state no frequency: give seconds on the reference machine")
    check_variation(place, cost.variation, cost.scv, add)
