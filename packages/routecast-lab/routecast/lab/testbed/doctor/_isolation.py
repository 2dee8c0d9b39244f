"""Checks of other work on the machine and its cores: hypervisor, guests, tasks, timer, interrupts, throttles."""

from __future__ import annotations

import re

from routecast.lab.testbed.doctor._machine import ExaminedMachine, Finding, distorts, fine, missing, unseen
from routecast.lab.testbed.placement import cores_of

_CPU = "sys/devices/system/cpu"
_STEAL_RATIO = 0.001
_BUSY_RATIO = 0.05
_PRESSURE_PERCENT = 1.0
_STEAL = 7
_IDLE = (3, 4)
"""Fields of a line of /proc/stat (proc(5)): user nice system idle iowait irq softirq steal guest guest_nice; guest time
is in user time already."""


def virtualisation(machine: ExaminedMachine) -> Finding:
    """Look for a hypervisor: a guest shares the processor with other guests, which it cannot observe."""
    flags = re.search(r"^flags\s*:\s*(.*)$", machine.text("proc/cpuinfo") or "", re.MULTILINE)
    is_guest = bool(flags and "hypervisor" in flags[1].split())
    if not is_guest and not machine.exists("sys/hypervisor/type"):
        if flags is None:
            return unseen("virtualisation", "the processor reports no flags")
        return fine("virtualisation", "none")
    vendor = machine.text("sys/hypervisor/type") or machine.text("sys/class/dmi/id/sys_vendor") or "of unknown make"
    return distorts(
        "virtualisation",
        f"this is a virtual machine ({vendor})",
        "its cores are threads of the host: other guests take their time, interrupts and wake-ups exit to the host; "
        "state this with every figure",
        advice="measure on a machine of its own, or pin and reserve the virtual cores on the host",
    )


def _parse_stat(stat: str) -> dict[str, list[int]]:
    rows = (line.split() for line in stat.splitlines() if line.startswith("cpu"))
    return {row[0]: [int(cell) for cell in row[1:9]] for row in rows if all(cell.isdigit() for cell in row[1:9])}


def _shares(machine: ExaminedMachine) -> dict[str, tuple[float, float]]:
    """Return the busy and the stolen share of each line of /proc/stat over a second."""
    first, second, _ = machine.stat()
    before, after = _parse_stat(first), _parse_stat(second)
    shares = {}
    for name, row in after.items():
        spent = [b - a for a, b in zip(before.get(name, []), row, strict=False)]
        total = sum(spent)
        if len(spent) > _STEAL and total > 0 and min(spent) >= 0:
            shares[name] = (1.0 - sum(spent[i] for i in _IDLE) / total, spent[_STEAL] / total)
    return shares


def stolen_time(machine: ExaminedMachine) -> Finding:
    """Measure steal: time that the hypervisor gave to other guests while a core had work."""
    shares = _shares(machine)
    if "cpu" not in shares:
        return unseen("steal time", "no time passed between two readings of /proc/stat")
    worst = max(shares, key=lambda name: shares[name][1])
    stolen = shares[worst][1]
    if stolen <= _STEAL_RATIO:
        return fine("steal time", f"{stolen:.1%} in the last second")
    return distorts(
        "steal time",
        f"{stolen:.1%} of {worst} in the last second",
        "the host took the core away while it had work: other guests cause loss and latency",
        advice="measure at another time or on another host; routecast calls such trials invalid and repeats them",
    )


def busy_cores(machine: ExaminedMachine) -> Finding:
    """Measure other work on the cores while no trial runs."""
    shares = {name: busy for name, (busy, _) in _shares(machine).items() if name != "cpu"}
    if machine.cores:
        shares = {name: busy for name, busy in shares.items() if int(name[3:] or -1) in machine.cores}
    if not shares:
        return unseen("other work", "no time passed between two readings of /proc/stat")
    busy = {name: share for name, share in shares.items() if share > _BUSY_RATIO}
    if not busy:
        return fine("other work", f"at most {max(shares.values()):.0%} of a core")
    busiest = sorted(busy.items(), key=lambda entry: -entry[1])[:4]
    return distorts(
        "other work",
        ", ".join(f"{name} {share:.0%} busy" for name, share in busiest),
        "other tasks share cores, caches and memory with the trial",
        advice="stop them (ps -eo pcpu,psr,comm --sort=-pcpu | head), or isolate the measuring cores",
    )


def pressure(machine: ExaminedMachine) -> Finding:
    """Read how long tasks waited for a core, as the kernel's pressure stall information counts them."""
    text = machine.text("proc/pressure/cpu")
    some = re.search(r"^some avg10=([\d.]+)", text or "", re.MULTILINE)
    if some is None:
        return unseen("pressure", "the kernel keeps no pressure information (start it with psi=1)")
    percent = float(some[1])
    finding = f"tasks waited for a core during {percent:g} % of the last 10 s"
    if percent <= _PRESSURE_PERCENT:
        return fine("pressure", finding)
    return distorts(
        "pressure",
        finding,
        "there is more work than cores: tasks without real-time priority are late",
        advice="stop other work before measuring",
    )


def _isolation_example(machine: ExaminedMachine) -> str:
    cores = machine.cores or machine.online[1:] or (1,)
    if set(cores) >= set(machine.online):  # one core must remain for other work
        cores = tuple(core for core in cores if core != min(cores)) or cores
    return ",".join(map(str, cores))


def isolated_cores(machine: ExaminedMachine) -> Finding:
    """Look for isolated cores: ordinary tasks stay away from them."""
    isolated = cores_of(machine.text(f"{_CPU}/isolated") or "")
    cores = machine.cores
    if isolated and set(cores) <= set(isolated):
        return fine("isolated cores", _core_list(isolated))
    text = f"only {_core_list(isolated)}, not {_core_list(tuple(set(cores) - set(isolated)))}" if isolated else "none"
    return distorts(
        "isolated cores",
        text,
        "other tasks and kernel threads run on the measuring cores: stalls of 1 to 50 ms, in which a "
        "device loses frames; real-time priority keeps ordinary tasks away, but no kernel threads",
        advice=f"start the kernel with isolcpus={_isolation_example(machine)} nohz_full={_isolation_example(machine)} "
        f"rcu_nocbs={_isolation_example(machine)}",
    )


def quiet_timer(machine: ExaminedMachine) -> Finding:
    """Look for nohz_full: without it the timer interrupts every core at HZ."""
    tickless = cores_of(machine.text(f"{_CPU}/nohz_full") or "")
    if tickless and set(machine.cores) <= set(tickless):
        return fine("nohz_full", _core_list(tickless))
    return distorts(
        "nohz_full",
        "none" if not tickless else f"only {_core_list(tickless)}",
        "the timer interrupts each measuring core 100 to 1000 times a second for some microseconds: visible in "
        "the 99.9th percentile of latency",
        advice=f"start the kernel with nohz_full={_isolation_example(machine)}",
    )


def interrupts(machine: ExaminedMachine) -> Finding:
    """Look at which cores take interrupts: interrupts of other devices stop the measuring cores."""
    names = {machine.text(f"proc/{pid}/comm") for pid in machine.names("proc", "[0-9]*")}
    if "irqbalance" in names:
        return distorts(
            "interrupts",
            "irqbalance runs",
            "it moves interrupts from core to core during a trial",
            remedy="systemctl stop irqbalance",
        )
    if not machine.cores:
        return fine("interrupts", "irqbalance does not run; the measuring cores are not chosen")
    card_names = {
        name
        for card in machine.interfaces
        for name in (card, machine.link_target(f"sys/class/net/{card}/device"))
        if name
    }
    disturbing: list[str] = []
    is_readable = False
    for irq in machine.names("proc/irq", "[0-9]*"):
        text = machine.text(f"proc/irq/{irq}/effective_affinity_list") or machine.text(
            f"proc/irq/{irq}/smp_affinity_list"
        )
        if text is None:
            continue
        is_readable = True
        actions = [name for name in machine.names(f"proc/irq/{irq}") if machine.exists(f"proc/irq/{irq}/{name}/")]
        label = _interrupt_name(machine, irq) or next(iter(actions), "")
        if set(cores_of(text)) & set(machine.cores) and not any(name in label for name in card_names):
            disturbing.append(f"{irq} ({label})" if label else irq)
    if not is_readable:
        return unseen("interrupts", "this process may not read where interrupts go")
    if not disturbing:
        return fine("interrupts", f"none of other devices on {_core_list(machine.cores)}")
    elsewhere = next((core for core in machine.online if core not in machine.cores), None)
    numbers = " ".join(entry.split()[0] for entry in disturbing)
    move = f"for i in {numbers}; do echo {elsewhere} > /proc/irq/$i/smp_affinity_list; done"
    return distorts(
        "interrupts",
        f"{len(disturbing)} of other devices may come to {_core_list(machine.cores)}: {', '.join(disturbing[:4])}"
        + (", …" if len(disturbing) > 4 else ""),
        "each stops a measuring core for some microseconds",
        remedy="" if elsewhere is None else move,
        advice="all cores measure: none is left for them" if elsewhere is None else "",
    )


def _interrupt_name(machine: ExaminedMachine, irq: str) -> str:
    line = re.search(rf"^\s*{irq}:\s+(?:\d+\s+)+(.*)$", machine.text("proc/interrupts") or "", re.MULTILINE)
    return line[1].split()[-1] if line and line[1].split() else ""


def realtime_throttling(machine: ExaminedMachine) -> Finding:
    """Look at the throttle of real-time threads: the kernel stops real-time threads that never sleep."""
    runtime_us, period_us = (
        machine.number("proc/sys/kernel/sched_rt_runtime_us"),
        machine.number("proc/sys/kernel/sched_rt_period_us") or 1_000_000,
    )
    if runtime_us is None:
        return unseen("RT throttling", "the kernel does not report it")
    if runtime_us < 0 or runtime_us >= period_us:
        return fine("RT throttling", "off")
    gap_ms = (period_us - runtime_us) / 1000.0
    return distorts(
        "RT throttling",
        f"{runtime_us} us of {period_us} us",
        f"the kernel stops a polling SCHED_FIFO thread for {gap_ms:g} ms each second if other tasks want its core: "
        "trials of 0.6 s may fit between two stops, longer trials lose frames",
        remedy="sysctl -w kernel.sched_rt_runtime_us=-1",
    )


def cgroup_limits(machine: ExaminedMachine) -> Finding:
    """Look at the control group: it may limit the cores or the processor time of this process."""
    allowed = re.search(r"^Cpus_allowed_list:\s*(\S+)", machine.text("proc/self/status") or "", re.MULTILINE)
    cores = cores_of(allowed[1]) if allowed else machine.online
    limits = []
    absent = [core for core in machine.online if core not in cores]
    if absent:
        limits.append(f"cores {_core_list(tuple(absent))} are not allowed")
    forbids_realtime = False
    for line in (machine.text("proc/self/cgroup") or "").splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        for group in _ancestors(path):
            if not controllers:
                for base in ("sys/fs/cgroup", "sys/fs/cgroup/unified"):
                    quota = (machine.text(f"{base}{group}/cpu.max") or "max").split()
                    if quota[0] != "max" and len(quota) > 1 and quota[0].isdigit() and quota[1].isdigit():
                        limits.append(f"{int(quota[0]) / int(quota[1]):.2g} cores' time ({group or '/'})")
            elif "cpu" in controllers.split(","):
                folder = f"sys/fs/cgroup/{controllers}{group}"
                quota_us, every_us = (
                    machine.number(f"{folder}/cpu.cfs_quota_us"),
                    machine.number(f"{folder}/cpu.cfs_period_us"),
                )
                if quota_us is not None and quota_us > 0 and every_us:
                    limits.append(f"{quota_us / every_us:.2g} cores' time ({group or '/'})")
                forbids_realtime |= machine.number(f"{folder}/cpu.rt_runtime_us") == 0
    if forbids_realtime:
        return missing(
            "control group",
            "it gives real-time threads no time",
            "generator and router run at ordinary priority: rates fall to a half or less beside other work",
            advice="run routecast outside the group, or raise its cpu.rt_runtime_us",
        )
    if not limits:
        return fine("control group", "no limit of cores or time")
    return distorts(
        "control group",
        "; ".join(dict.fromkeys(limits)),
        "processes that have used up their time stop until the next period; kernel threads go on",
        advice="run routecast outside the group, or without --cpus / CPUQuota",
    )


def _ancestors(path: str) -> list[str]:
    parts = [part for part in path.split("/") if part]
    return ["".join(f"/{part}" for part in parts[:count]) for count in range(len(parts), -1, -1)]


def _core_list(cores: tuple[int, ...]) -> str:
    return f"core{'s' if len(cores) != 1 else ''} {', '.join(map(str, sorted(cores)))}"
