"""Which core works for whom.

The generator and the device under test work on different cores, so that the one does not take the other's time. Frames
that the device sends are received on the device's own core, right where they are sent: none is lost behind the device.
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
            raise EnvironmentProblem(
                f"cores.{role}: core {core} cannot be used here; allowed are {_text(allowed)}"
            )
    if tester is None:
        tester = next((core for core in allowed if core != dut and core not in _siblings(dut)), None)
        tester = next((core for core in allowed if core != dut), allowed[0]) if tester is None else tester
    if dut is None:
        others = [core for core in allowed if core not in {tester, receiver}]
        apart = [core for core in others if core not in _siblings(tester)]
        dut = (apart or others or [tester])[-1]
    return Placement(tester=tester, receiver=receiver, dut=dut, notes=_notes(tester, dut))


def _notes(tester: int, dut: int) -> tuple[str, ...]:
    if tester == dut:
        return (
            f"generator and device share core {dut}: rates are those of both together, lower than the device's own",
        )
    if dut in _siblings(tester):
        return (
            f"generator (core {tester}) and device (core {dut}) share a physical core: each slows the other down",
        )
    return ()


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
