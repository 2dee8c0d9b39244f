"""The cores of generator, receiver and device under test.

Generator and device work on different cores, so that neither takes the other's time. The device's own core receives the
frames from the device, so that no frame is lost behind the device. On a single core they take turns: threads that wait
for frames have a higher priority than the generator, which never sleeps. So the device forwards each frame before the
generator makes the next.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from routecast.errors import EnvironmentProblem

__all__ = ["CoreAssignment", "assign_cores", "cores_of"]

_CPU_FOLDER = Path("/sys/devices/system/cpu")
_MAX_CORES = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreAssignment:
    """Cores of the generator, of the receiver (None: the device's core) and of the device (``dut``, ``more_dut``)."""

    tester: int
    receiver: int | None
    dut: int
    more_dut: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def device_cores(self) -> tuple[int, ...]:
        """All cores of the device; the first serves its receiving port."""
        return (self.dut, *self.more_dut)

    @property
    def is_shared(self) -> bool:
        """Whether generator and device are on one core."""
        return self.tester == self.dut


def assign_cores(
    tester: int | None = None, receiver: int | None = None, dut: int | None = None, *, cores: int = 1
) -> CoreAssignment:
    """Choose the cores that are None.

    The device gets the last core that shares no physical core with the generator's: interrupts and other work tend to
    use the first ones. Of its ``cores`` cores, those beyond the first avoid the generator's physical core if possible.

    Raises EnvironmentProblem: this process may not use a core of the arguments, or the device needs more cores than
    there are.
    """
    allowed = sorted(os.sched_getaffinity(0))
    for role, core in (("tester", tester), ("receiver", receiver), ("dut", dut)):
        if core is not None and core not in allowed:
            names = ", ".join(map(str, allowed))
            raise EnvironmentProblem(f"cores.{role}: core {core} cannot be used here; allowed are {names}")
    if tester is None:
        others = [core for core in allowed if core != dut] or allowed
        free = [core for core in others if core != receiver]
        if receiver in others and len(free) <= (dut is None):
            free = [receiver]  # too few: the device's own core goes first
        tester = ([core for core in free if core not in _siblings(dut)] or free)[0]
    if dut is None:
        others = [core for core in allowed if core not in {tester, receiver}]
        unshared = [core for core in others if core not in _siblings(tester)]
        dut = (unshared or others or [tester])[-1]
    spare = [core for core in allowed if core not in {tester, receiver, dut}]
    spare.sort(key=lambda core: (core in _siblings(tester), -core))
    if cores > 1 + len(spare):
        raise EnvironmentProblem(
            f"{cores} cores for the device: routecast may use {len(allowed)} cores here, and the tester needs its own; "
            f"at most {1 + len(spare)} can be the device's"
        )
    further = tuple(spare[: cores - 1])
    return CoreAssignment(
        tester=tester, receiver=receiver, dut=dut, more_dut=further, notes=_notes(tester, receiver, dut, further)
    )


def _notes(tester: int, receiver: int | None, dut: int, further: tuple[int, ...]) -> tuple[str, ...]:
    notes = [
        f"generator (core {tester}) and device (core {core}) share a physical core: each slows the other down"
        for core in (*further, dut)
        if core in _siblings(tester) and core != tester
    ]
    if tester == dut:
        notes.append(
            f"generator and device share core {dut} and take turns: rates are those of both together, lower than the "
            "device's own, and a trial whose load the core cannot both make and forward is invalid"
        )
    if tester == receiver:
        notes.append(
            f"generator and receiver share core {tester} and take turns: a trial whose load the core cannot both "
            "make and receive is invalid"
        )
    return tuple(notes)


def _siblings(core: int | None) -> frozenset[int]:
    """Return the hardware threads of a core's physical core, itself included."""
    if core is None:
        return frozenset()
    try:
        text = (_CPU_FOLDER / f"cpu{core}" / "topology" / "thread_siblings_list").read_text(encoding="utf-8")
    except OSError:
        return frozenset({core})
    return frozenset(cores_of(text))


def cores_of(text: str) -> tuple[int, ...]:
    """Read a list of cores in the kernel's form, without its malformed parts.

    Examples
    --------
    >>> cores_of("0-2,7")
    (0, 1, 2, 7)
    """
    cores: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdigit() or (last and not last.isdigit()) or int(last or first) >= _MAX_CORES:
            continue
        cores += range(int(first), int(last or first) + 1)
    return tuple(cores)
