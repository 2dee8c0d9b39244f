"""Checks of the processor: frequency, sleep, hardware threads, mitigations, memory nodes, clock, power meters."""

from __future__ import annotations

import re

from routecast.lab.testbed.doctor._machine import ExaminedMachine, Finding, distorts, fine, missing, unseen
from routecast.lab.testbed.meters._finding import find_meters
from routecast.lab.testbed.meters._rapl import READ_RECIPE
from routecast.lab.testbed.placement import cores_of

_RECIPE_MARK = ": run as root, or let a group read it"
_CPU = "sys/devices/system/cpu"
_MAX_WAKE_UP_US = 10
_SLOW_CLOCKS = ("hpet", "acpi_pm", "jiffies", "refined-jiffies")


def meters(machine: ExaminedMachine) -> Finding:
    """Look for a power meter: the processor's counters, the server's controller."""
    local = [meter for meter in find_meters(machine.root) if not meter.needs_address]
    readable = [meter for meter in local if meter.is_readable]
    if readable:
        return fine(
            "power",
            ", ".join(f"{meter.name} can be read ({meter.scope})" for meter in readable),
            "trials can carry watts: --power auto",
        )
    is_denied = any(READ_RECIPE in meter.why_not for meter in local)
    reasons = "; ".join(f"{meter.name}: {meter.why_not.partition(_RECIPE_MARK)[0]}" for meter in local)
    return missing(
        "power",
        f"no power here, because: {reasons}",
        "trials have no watts, and continue without",
        remedy=READ_RECIPE if is_denied else "",
        advice="" if is_denied else "name a meter outside: --power redfish:URL, csv:FILE or http:URL",
    )


def core_count(machine: ExaminedMachine) -> Finding:
    """Count the cores: generator and router need one each."""
    cores = machine.online
    if not cores:
        return unseen("cores", "the kernel does not list its cores")
    text = f"{len(cores)} online"
    if len(cores) < 2:
        return distorts("cores", text, "generator and router share it: rates are those of both together")
    return fine(
        "cores",
        text,
        "" if len(cores) > 2 else "one for the generator, one for the router, none left for anything else",
    )


def governor(machine: ExaminedMachine) -> Finding:
    """Look at the governor: the rate of a core that changes its frequency is not constant."""
    governors: dict[str, int] = {}
    for core in machine.online:
        name = machine.text(f"{_CPU}/cpu{core}/cpufreq/scaling_governor")
        if name:
            governors[name] = governors.get(name, 0) + 1
    if not governors:
        text = "the kernel does not set the frequency (cpufreq has no driver): firmware or hypervisor does"
        return unseen("governor", text, "the frequency may change unnoticed during a trial")
    text = ", ".join(f"{name} on {count} cores" for name, count in governors.items())
    if set(governors) == {"performance"}:
        return fine("governor", text)
    return distorts(
        "governor",
        text,
        "cores run slower at low load: latency rises where load falls, and short trials see the ramp",
        remedy="cpupower frequency-set -g performance",
    )


def turbo(machine: ExaminedMachine) -> Finding:
    """Look for turbo: with it the frequency depends on heat and on the load of the other cores."""
    no_turbo, boost = machine.number(f"{_CPU}/intel_pstate/no_turbo"), machine.number(f"{_CPU}/cpufreq/boost")
    effect = "the frequency depends on how many cores work and how warm they are: rates fall within minutes"
    if no_turbo == 0:
        remedy = f"echo 1 > /{_CPU}/intel_pstate/no_turbo"
        return distorts("turbo", "on", effect, remedy=remedy)
    if no_turbo is None and boost == 1:
        remedy = f"echo 0 > /{_CPU}/cpufreq/boost"
        return distorts("turbo", "on", effect, remedy=remedy)
    if no_turbo is None and boost is None:
        return unseen("turbo", "the kernel has no switch for it here", effect)
    return fine("turbo", "off")


def sleep_states(machine: ExaminedMachine) -> Finding:
    """Look at C-states: a core in a deep C-state takes long to wake up."""
    driver = machine.text(f"{_CPU}/cpuidle/current_driver")
    states: dict[str, int] = {}
    cores = machine.cores or machine.online
    for core in cores:
        folder = f"{_CPU}/cpu{core}/cpuidle"
        for state in machine.names(folder, "state*"):
            latency_us = machine.number(f"{folder}/{state}/latency") or 0
            if machine.number(f"{folder}/{state}/disable") == 0 and latency_us > _MAX_WAKE_UP_US:
                states[machine.text(f"{folder}/{state}/name") or state] = latency_us
    if states:
        names = ", ".join(f"{name} ({latency_us} us)" for name, latency_us in states.items())
        return distorts(
            "C-states",
            f"cores may sleep in {names}",
            "waking up takes up to that long: the median latency at low load is that of the wake-up, not of the router",
            remedy=f"cpupower idle-set -D {_MAX_WAKE_UP_US}",
        )
    if driver in (None, "none"):
        text = "no cpuidle driver"
        return unseen("C-states", f"{text}: firmware or hypervisor decides")
    text = f"driver {driver}, no state with more than {_MAX_WAKE_UP_US} us to wake up"
    return fine(
        "C-states",
        text,
        "an idle virtual core exits to its host, whose wake-up time is not listed" if driver == "haltpoll" else "",
    )


def smt(machine: ExaminedMachine) -> Finding:
    """Look for SMT: two hardware threads share one core's units."""
    active = machine.number(f"{_CPU}/smt/active")
    if active is None:
        return unseen("SMT", "the kernel does not report it")
    if active == 0:
        return fine("SMT", "off, or none here")
    return distorts(
        "SMT",
        "on: two hardware threads a core",
        "work on the sibling slows a measuring core by a third or more, invisibly",
        remedy=f"echo off > /{_CPU}/smt/control",
    )


def mitigations(machine: ExaminedMachine) -> Finding:
    """List the mitigations: they cost cycles for each indirect call and entry into the kernel."""
    folder = f"{_CPU}/vulnerabilities"
    texts = {name: machine.text(f"{folder}/{name}") or "" for name in machine.names(folder)}
    if not texts:
        return unseen("mitigations", "the kernel lists none")
    active = [name for name, text in texts.items() if text.startswith("Mitigation")]
    command = re.search(r"(?:^|\s)(mitigations=\S+)", machine.text("proc/cmdline") or "")
    boot = f", started with {command[1]}" if command else ""
    names = ", ".join(active[:4]) + (f" and {len(active) - 4} more" if len(active) > 4 else "")
    finding = f"{len(active)} active ({names}){boot}" if active else f"none active{boot}"
    return fine("mitigations", finding, "part of what is measured: compare only with machines that have the same")


def numa(machine: ExaminedMachine) -> Finding:
    """Look at memory nodes: accesses to memory and cards of another node take longer."""
    nodes = machine.names("sys/devices/system/node", "node[0-9]*")
    if not nodes:
        return unseen("NUMA", "the kernel lists no memory node")
    if len(nodes) == 1:
        return fine("NUMA", "one memory node")
    node_of = {
        core: int(node.removeprefix("node"))
        for node in nodes
        for core in cores_of(machine.text(f"sys/devices/system/node/{node}/cpulist") or "")
    }
    cards = {name: machine.number(f"sys/class/net/{name}/device/numa_node") for name in machine.interfaces}
    remote_pairs = [
        f"{name} is at node {node}, core {core} at node {node_of[core]}"
        for name, node in cards.items()
        for core in machine.cores
        if node is not None and node >= 0 and core in node_of and node_of[core] != node
    ]
    if remote_pairs:
        return distorts(
            "NUMA",
            "; ".join(remote_pairs[:3]),
            "each frame crosses between processors: rates are lower than a near core's",
            advice="choose cores of the card's node in [cores] of the test bed's file",
        )
    card_nodes = ", ".join(f"{name} at node {node}" for name, node in cards.items() if node is not None and node >= 0)
    return fine("NUMA", f"{len(nodes)} memory nodes" + (f", {card_nodes}" if card_nodes else ""))


def clock_source(machine: ExaminedMachine) -> Finding:
    """Look at the clock source: each time stamp takes the time of a clock read."""
    folder = "sys/devices/system/clocksource/clocksource0"
    current = machine.text(f"{folder}/current_clocksource")
    available = (machine.text(f"{folder}/available_clocksource") or "").split()
    if current is None:
        return unseen("clock source", "the kernel does not report it")
    if current not in _SLOW_CLOCKS:
        return fine("clock source", current)
    return distorts(
        "clock source",
        current,
        "reading it takes a microsecond or more: every time stamp slows the tester and blurs latency",
        remedy=f"echo tsc > /{folder}/current_clocksource" if "tsc" in available else "",
        advice="" if "tsc" in available else "start the kernel with tsc=reliable",
    )
