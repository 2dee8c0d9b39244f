"""Which core works for whom.

The generator and the device under test work on different cores, so that the one does not take the other's time. Frames
that the device sends are received on the device's own core, right where they are sent: none is lost behind the device.

Where there is one core only, they take turns on it: whatever waits for frames goes before the generator, which never
sleeps, so that each frame is forwarded before the next one is made.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from routecast.errors import EnvironmentProblem

__all__ = ["Placement", "place"]

_CPUS = Path("/sys/devices/system/cpu")


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Cores of the generator, of a receiver of its own (None: with the device), and of the device under test."""

    tester: int
    receiver: int | None
    dut: int
    notes: tuple[str, ...] = ()

    @property
    def is_shared(self) -> bool:
        """Whether generator and device are on one core."""
        return self.tester == self.dut


def place(tester: int | None = None, receiver: int | None = None, dut: int | None = None) -> Placement:
    """Choose the cores that are not given.

    The device gets the last core that shares no physical core with the generator's; interrupts and other work tend to
    the first ones.

    Raises
    ------
    routecast.errors.EnvironmentProblem
        A given core is not there, or this process may not use it.
    """
    allowed = sorted(os.sched_getaffinity(0))
    for role, core in (("tester", tester), ("receiver", receiver), ("dut", dut)):
        if core is not None and core not in allowed:
            raise EnvironmentProblem(f"cores.{role}: core {core} cannot be used here; allowed are {_text(allowed)}")
    if tester is None:
        others = [core for core in allowed if core != dut] or allowed
        free = [core for core in others if core != receiver]
        if receiver in others and len(free) <= (dut is None):
            free = [receiver]  # too few: the device needs a core of its own first
        tester = ([core for core in free if core not in _siblings(dut)] or free)[0]
    if dut is None:
        others = [core for core in allowed if core not in {tester, receiver}]
        apart = [core for core in others if core not in _siblings(tester)]
        dut = (apart or others or [tester])[-1]
    return Placement(tester=tester, receiver=receiver, dut=dut, notes=_notes(tester, receiver, dut))


def _notes(tester: int, receiver: int | None, dut: int) -> tuple[str, ...]:
    notes = []
    if tester == dut:
        notes.append(
            f"generator and device share core {dut} and take turns: rates are those of both together, lower than the "
            "device's own, and a load that the core cannot both make and forward is no result"
        )
    elif dut in _siblings(tester):
        notes.append(
            f"generator (core {tester}) and device (core {dut}) share a physical core: each slows the other down"
        )
    if tester == receiver:
        notes.append(
            f"generator and receiver share core {tester} and take turns: a load that the core cannot both make and "
            "receive is no result"
        )
    return tuple(notes)


def _siblings(core: int | None) -> frozenset[int]:
    """Return the hardware threads of the same physical core, itself included."""
    if core is None:
        return frozenset()
    try:
        text = (_CPUS / f"cpu{core}" / "topology" / "thread_siblings_list").read_text(encoding="utf-8")
    except OSError:
        return frozenset({core})
    found: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def _text(cores: list[int]) -> str:
    return ", ".join(map(str, cores))
