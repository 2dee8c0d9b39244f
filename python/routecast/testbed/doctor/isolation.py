"""Checks of what else may run on the measuring cores: tasks, timer, interrupts, throttles."""

from __future__ import annotations

import re

from routecast.testbed.doctor.machine import Finding, Machine, State, cores_of

__all__ = ["cgroup_limits", "interrupts", "isolated_cores", "quiet_timer", "realtime_throttling"]

_CPU = "sys/devices/system/cpu"


def _example(machine: Machine) -> str:
    cores = machine.cores or machine.online[1:] or (1,)
    if set(cores) >= set(machine.online):  # someone must do the other work
        cores = tuple(core for core in cores if core != min(cores)) or cores
    return ",".join(map(str, cores))


def isolated_cores(machine: Machine) -> Finding:
    """Look for isolated cores: ordinary tasks stay away from them."""
    isolated = cores_of(machine.text(f"{_CPU}/isolated") or "")
    wanted = machine.cores
    if isolated and set(wanted) <= set(isolated):
        return Finding(check="isolated cores", state=State.FINE, found=_list(isolated))
    found = f"only {_list(isolated)}, not {_list(tuple(set(wanted) - set(isolated)))}" if isolated else "none"
    return Finding(
        check="isolated cores",
        state=State.DISTORTS,
        found=found,
        effect="other tasks and kernel threads run on the measuring cores: stalls of 1 to 50 ms, which zero loss does "
        "not forgive; real-time priority keeps ordinary tasks away, not the kernel's",
        advice=f"start the kernel with isolcpus={_example(machine)} nohz_full={_example(machine)} "
        f"rcu_nocbs={_example(machine)}",
    )


def quiet_timer(machine: Machine) -> Finding:
    """Look for nohz_full: without it the timer interrupts every core at HZ."""
    quiet = cores_of(machine.text(f"{_CPU}/nohz_full") or "")
    if quiet and set(machine.cores) <= set(quiet):
        return Finding(check="nohz_full", state=State.FINE, found=_list(quiet))
    return Finding(
        check="nohz_full",
        state=State.DISTORTS,
        found="none" if not quiet else f"only {_list(quiet)}",
        effect="the timer interrupts each measuring core 100 to 1000 times a second for some microseconds: seen in the "
        "99.9th percentile of latency",
        advice=f"start the kernel with nohz_full={_example(machine)}",
    )


def interrupts(machine: Machine) -> Finding:
    """Look where interrupts go: those of other devices stop the measuring cores."""
    names = {machine.text(f"proc/{pid}/comm") for pid in machine.names("proc", "[0-9]*")}
    if "irqbalance" in names:
        return Finding(
            check="interrupts",
            state=State.DISTORTS,
            found="irqbalance runs",
            effect="it moves interrupts from core to core during a trial",
            remedy="systemctl stop irqbalance",
        )
    if not machine.cores:
        found = "irqbalance does not run; the measuring cores are not chosen"
        return Finding(check="interrupts", state=State.FINE, found=found)
    ours = {
        name for card in machine.interfaces for name in (card, machine.target(f"sys/class/net/{card}/device")) if name
    }
    there: list[str] = []
    seen = False
    for irq in machine.names("proc/irq", "[0-9]*"):
        text = machine.text(f"proc/irq/{irq}/effective_affinity_list") or machine.text(
            f"proc/irq/{irq}/smp_affinity_list"
        )
        if text is None:
            continue
        seen = True
        actions = [name for name in machine.names(f"proc/irq/{irq}") if machine.exists(f"proc/irq/{irq}/{name}/")]
        label = _action(machine, irq) or next(iter(actions), "")
        if set(cores_of(text)) & set(machine.cores) and not any(name in label for name in ours):
            there.append(f"{irq} ({label})" if label else irq)
    if not seen:
        return Finding(check="interrupts", state=State.UNSEEN, found="this process may not read where interrupts go")
    if not there:
        return Finding(check="interrupts", state=State.FINE, found=f"none of other devices on {_list(machine.cores)}")
    elsewhere = next((core for core in machine.online if core not in machine.cores), None)
    numbers = " ".join(entry.split()[0] for entry in there)
    move = f"for i in {numbers}; do echo {elsewhere} > /proc/irq/$i/smp_affinity_list; done"
    return Finding(
        check="interrupts",
        state=State.DISTORTS,
        found=f"{len(there)} of other devices may come to {_list(machine.cores)}: {', '.join(there[:4])}"
        + (", …" if len(there) > 4 else ""),
        effect="each stops a measuring core for some microseconds",
        remedy="" if elsewhere is None else move,
        advice="all cores measure: none is left for them" if elsewhere is None else "",
    )


def _action(machine: Machine, irq: str) -> str:
    line = re.search(rf"^\s*{irq}:\s+(?:\d+\s+)+(.*)$", machine.text("proc/interrupts") or "", re.MULTILINE)
    return line[1].split()[-1] if line and line[1].split() else ""


def realtime_throttling(machine: Machine) -> Finding:
    """Look at the throttle of real-time threads: the kernel stops those that never sleep."""
    runtime_us, period_us = (
        machine.number("proc/sys/kernel/sched_rt_runtime_us"),
        machine.number("proc/sys/kernel/sched_rt_period_us") or 1_000_000,
    )
    if runtime_us is None:
        return Finding(check="RT throttling", state=State.UNSEEN, found="the kernel does not say")
    if runtime_us < 0 or runtime_us >= period_us:
        return Finding(check="RT throttling", state=State.FINE, found="off")
    gap_ms = (period_us - runtime_us) / 1000.0
    return Finding(
        check="RT throttling",
        state=State.DISTORTS,
        found=f"{runtime_us} us of {period_us} us",
        effect=f"a polling thread of SCHED_FIFO stands still for {gap_ms:g} ms each second where other tasks want its "
        "core: trials of 0.6 s slip through between, longer ones lose",
        remedy="sysctl -w kernel.sched_rt_runtime_us=-1",
    )


def cgroup_limits(machine: Machine) -> Finding:
    """Look at the control group: it may take cores or time away."""
    allowed = re.search(r"^Cpus_allowed_list:\s*(\S+)", machine.text("proc/self/status") or "", re.MULTILINE)
    cores = cores_of(allowed[1]) if allowed else machine.online
    limits = []
    absent = [core for core in machine.online if core not in cores]
    if absent:
        limits.append(f"cores {_list(tuple(absent))} are not allowed")
    forbids_realtime = False
    for line in (machine.text("proc/self/cgroup") or "").splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        for at in _upwards(path):
            if not controllers:
                for base in ("sys/fs/cgroup", "sys/fs/cgroup/unified"):
                    quota = (machine.text(f"{base}{at}/cpu.max") or "max").split()
                    if quota[0] != "max" and len(quota) > 1 and quota[0].isdigit() and quota[1].isdigit():
                        limits.append(f"{int(quota[0]) / int(quota[1]):.2g} cores' time ({at or '/'})")
            elif "cpu" in controllers.split(","):
                folder = f"sys/fs/cgroup/{controllers}{at}"
                quota_us, every_us = (
                    machine.number(f"{folder}/cpu.cfs_quota_us"),
                    machine.number(f"{folder}/cpu.cfs_period_us"),
                )
                if quota_us is not None and quota_us > 0 and every_us:
                    limits.append(f"{quota_us / every_us:.2g} cores' time ({at or '/'})")
                forbids_realtime |= machine.number(f"{folder}/cpu.rt_runtime_us") == 0
    if forbids_realtime:
        return Finding(
            check="control group",
            state=State.MISSING,
            found="it gives real-time threads no time",
            effect="generator and router run at ordinary priority: rates fall to a half or less beside other work",
            advice="run routecast outside the group, or raise its cpu.rt_runtime_us",
        )
    if not limits:
        return Finding(check="control group", state=State.FINE, found="no limit of cores or time")
    return Finding(
        check="control group",
        state=State.DISTORTS,
        found="; ".join(dict.fromkeys(limits)),
        effect="processes stand still until the next period when their time is used up; kernel threads do not",
        advice="run routecast outside the group, or without --cpus / CPUQuota",
    )


def _upwards(path: str) -> list[str]:
    parts = [part for part in path.split("/") if part]
    return ["".join(f"/{part}" for part in parts[:count]) for count in range(len(parts), -1, -1)]


def _list(cores: tuple[int, ...]) -> str:
    return f"core{'s' if len(cores) != 1 else ''} {', '.join(map(str, sorted(cores)))}"
