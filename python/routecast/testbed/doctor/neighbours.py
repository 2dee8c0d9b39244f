"""Checks of who else uses the machine: hypervisor, other guests, other tasks."""

from __future__ import annotations

import re

from routecast.testbed.doctor.machine import Finding, Machine, State

__all__ = ["busy_cores", "pressure", "stolen_time", "virtualisation"]

_STEAL_RATIO = 0.001
_BUSY_RATIO = 0.05
_PRESSURE_PERCENT = 1.0
_STEAL = 7
_IDLE = (3, 4)
"""Fields of a line of /proc/stat (proc(5)): user nice system idle iowait irq softirq steal guest guest_nice; guest time
is in user time already."""


def virtualisation(machine: Machine) -> Finding:
    """Look for a hypervisor: a guest shares its processor with others it does not see."""
    flags = re.search(r"^flags\s*:\s*(.*)$", machine.text("proc/cpuinfo") or "", re.MULTILINE)
    is_guest = bool(flags and "hypervisor" in flags[1].split())
    if not is_guest and not machine.exists("sys/hypervisor/type"):
        if flags is None:
            return Finding(check="virtualisation", state=State.UNSEEN, found="the processor does not say")
        return Finding(check="virtualisation", state=State.FINE, found="none")
    vendor = machine.text("sys/hypervisor/type") or machine.text("sys/class/dmi/id/sys_vendor") or "of unknown make"
    return Finding(
        check="virtualisation",
        state=State.DISTORTS,
        found=f"this is a virtual machine ({vendor})",
        effect="its cores are threads of a host: others take time, interrupts and wake-ups leave to the host; say so "
        "beside every figure",
        advice="measure on a machine of its own, or pin and reserve the virtual cores on the host",
    )


def _lines(stat: str) -> dict[str, list[int]]:
    rows = (line.split() for line in stat.splitlines() if line.startswith("cpu"))
    return {row[0]: [int(cell) for cell in row[1:9]] for row in rows if all(cell.isdigit() for cell in row[1:9])}


def _shares(machine: Machine) -> dict[str, tuple[float, float]]:
    """Return busy and stolen share of each line of /proc/stat over a second; none where nothing passed."""
    first, second, _ = machine.stat()
    before, after = _lines(first), _lines(second)
    shares = {}
    for name, row in after.items():
        spent = [b - a for a, b in zip(before.get(name, []), row, strict=False)]
        total = sum(spent)
        if len(spent) > _STEAL and total > 0 and min(spent) >= 0:
            shares[name] = (1.0 - sum(spent[i] for i in _IDLE) / total, spent[_STEAL] / total)
    return shares


def stolen_time(machine: Machine) -> Finding:
    """Measure steal: time that the hypervisor gave to others while a core had work."""
    shares = _shares(machine)
    if "cpu" not in shares:
        return Finding(
            check="steal time", state=State.UNSEEN, found="no time passed between two readings of /proc/stat"
        )
    worst = max((name for name in shares), key=lambda name: shares[name][1])
    stolen = shares[worst][1]
    if stolen <= _STEAL_RATIO:
        return Finding(check="steal time", state=State.FINE, found=f"{stolen:.1%} in the last second")
    return Finding(
        check="steal time",
        state=State.DISTORTS,
        found=f"{stolen:.1%} of {worst} in the last second",
        effect="the host took the core away while it had work: loss and latency of other guests' making",
        advice="measure at another time or on another host; routecast calls such trials invalid and repeats them",
    )


def busy_cores(machine: Machine) -> Finding:
    """Measure the work of others on the cores, while nothing is measured."""
    shares = {name: busy for name, (busy, _) in _shares(machine).items() if name != "cpu"}
    if machine.cores:
        shares = {name: busy for name, busy in shares.items() if int(name[3:] or -1) in machine.cores}
    if not shares:
        return Finding(
            check="other work", state=State.UNSEEN, found="no time passed between two readings of /proc/stat"
        )
    busy = {name: share for name, share in shares.items() if share > _BUSY_RATIO}
    if not busy:
        return Finding(check="other work", state=State.FINE, found=f"at most {max(shares.values()):.0%} of a core")
    shown = sorted(busy.items(), key=lambda entry: -entry[1])[:4]
    return Finding(
        check="other work",
        state=State.DISTORTS,
        found=", ".join(f"{name} {share:.0%} busy" for name, share in shown),
        effect="other tasks share cores, caches and memory with the trial",
        advice="stop them (ps -eo pcpu,psr,comm --sort=-pcpu | head), or isolate the measuring cores",
    )


def pressure(machine: Machine) -> Finding:
    """Read how long tasks waited for a core, as the kernel's pressure stall information counts them."""
    text = machine.text("proc/pressure/cpu")
    some = re.search(r"^some avg10=([\d.]+)", text or "", re.MULTILINE)
    if some is None:
        found = "the kernel keeps no pressure information (start it with psi=1)"
        return Finding(check="pressure", state=State.UNSEEN, found=found)
    percent = float(some[1])
    found = f"tasks waited for a core during {percent:g} % of the last 10 s"
    if percent <= _PRESSURE_PERCENT:
        return Finding(check="pressure", state=State.FINE, found=found)
    return Finding(
        check="pressure",
        state=State.DISTORTS,
        found=found,
        effect="there is more work than cores: what has no real-time priority is late",
        advice="stop other work before measuring",
    )
