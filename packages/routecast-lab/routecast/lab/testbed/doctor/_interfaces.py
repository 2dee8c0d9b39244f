"""Checks of each interface: link, driver, queues, rings, offloads, coalescing, flow control, other traffic."""

from __future__ import annotations

import re

from routecast.lab.testbed.doctor._machine import ExaminedMachine, Finding, distorts, fine, missing, unseen

_ZERO_COPY = frozenset(
    ("gve", "i40e", "ice", "igb", "igc", "ixgbe", "mlx5_core", "nfp", "stmmac", "tsnep", "virtio_net")
)
"""Drivers of Linux with AF_XDP zero copy; some need a recent kernel or firmware, so the tester tries."""

_MERGING = ("large-receive-offload", "rx-gro-list", "rx-udp-gro-forwarding")
_REPORTED = ("generic-receive-offload", "tcp-segmentation-offload", "rx-checksumming", "tx-checksumming")
_SHORT = {"large-receive-offload": "lro", "generic-receive-offload": "gro", "tcp-segmentation-offload": "tso"}
_MIN_RING_FRAMES = 256


def link(machine: ExaminedMachine, name: str) -> Finding:
    """Look at the link: it must be up, full duplex, with a rate."""
    folder, check = f"sys/class/net/{name}", f"link {name}"
    if not machine.exists(folder):
        names = ", ".join(machine.names("sys/class/net")) or "none"
        return missing(check, f"there is no such interface; there are {names}", "nothing can be measured")
    state, speed, duplex = (machine.text(f"{folder}/{part}") for part in ("operstate", "speed", "duplex"))
    if state == "down" or machine.text(f"{folder}/carrier") == "0":
        return missing(check, "down", "nothing can be measured", remedy=f"ip link set {name} up")
    rate = f"{int(speed):,} Mbit/s" if speed and speed.isdigit() and speed != "0" else "no rate of its own"
    if duplex == "half":
        return distorts(check, f"{rate}, half duplex", "both directions share the medium: throughput is about half")
    mtu = machine.text(f"{folder}/mtu") or "?"
    return fine(check, f"{rate}, MTU {mtu}")


def traffic(machine: ExaminedMachine, name: str) -> Finding:
    """Look for the default route: its interface carries other traffic and is unfit for measuring."""
    check = f"other traffic {name}"
    if name not in _default_routes(machine):
        return fine(check, "no default route")
    if name not in machine.named_interfaces:
        return fine(check, "carries the default route: leave it alone", "the tester refuses to send here")
    return distorts(
        check,
        "carries the default route",
        "other traffic and test traffic mix (RFC 6815): the tester refuses to send here",
        advice="measure on other interfaces",
    )


def _default_routes(machine: ExaminedMachine) -> set[str]:
    names = set()
    for line in (machine.text("proc/net/route") or "").splitlines()[1:]:
        words = line.split()
        if len(words) > 7 and words[1] == "00000000" and words[7] == "00000000":
            names.add(words[0])
    for line in (machine.text("proc/net/ipv6_route") or "").splitlines():
        words = line.split()
        if len(words) > 9 and words[0] == "0" * 32 and words[1] == "00" and words[9] != "lo":
            names.add(words[9])
    return names


def driver(machine: ExaminedMachine, name: str) -> Finding:
    """Look at the driver: the back ends of the tester and their speed depend on it."""
    link_target = machine.link_target(f"sys/class/net/{name}/device/driver")
    check = f"driver {name}"
    if not link_target:
        output = machine.output("ethtool", "-i", name) or ""
        match = re.search(r"^driver:\s*(\S+)", output, re.MULTILINE)
        link_target = match[1] if match else ""
    if not link_target:
        return unseen(check, "no device behind it, or ethtool is not there")
    if link_target in _ZERO_COPY:
        return fine(check, f"{link_target}, supports AF_XDP zero copy")
    if link_target == "veth":
        return fine(check, "veth: frames are handed on in memory, live frames work")
    return fine(
        check, link_target, "no AF_XDP zero copy: the tester copies every frame and sends at a third of the rate"
    )


def queues(machine: ExaminedMachine, name: str) -> Finding:
    """Count the queues: the card spreads flows over queues, the kernel spreads queues over cores."""
    receive = len(machine.names(f"sys/class/net/{name}/queues", "rx-*"))
    send = len(machine.names(f"sys/class/net/{name}/queues", "tx-*"))
    check = f"queues {name}"
    if not receive:
        return unseen(check, "the kernel lists none")
    output = machine.output("ethtool", "-l", name) or ""
    maximum = max(
        (int(value) for value in re.findall(r"^(?:RX|Combined):\s*(\d+)", output, re.MULTILINE)), default=receive
    )
    text = f"{receive} in, {send} out" + (f", {maximum} possible" if maximum > receive else "")
    if receive == 1 < maximum:
        return distorts(
            check,
            text,
            "all flows come to one core, however many the router has",
            remedy=f"ethtool -L {name} combined {min(maximum, len(machine.online) or maximum)}",
        )
    return fine(check, text, "all flows come to one core" if receive == 1 else "")


def rings(machine: ExaminedMachine, name: str) -> Finding:
    """Look at the rings: they are the buffer that a burst fills (RFC 9004)."""
    output, check = machine.output("ethtool", "-g", name), f"rings {name}"
    sizes = re.findall(r"^(RX|TX):\s*(\d+)", output or "", re.MULTILINE)
    if len(sizes) < 4:
        return unseen(check, "neither the driver nor ethtool reports them")
    maximum, now = dict(sizes[:2]), dict(sizes[2:4])
    text = f"{now['RX']} of {maximum['RX']} in, {now['TX']} of {maximum['TX']} out"
    if int(now["RX"]) < min(_MIN_RING_FRAMES, int(maximum["RX"])):
        return distorts(
            check,
            text,
            "a stall of microseconds overflows it: loss without overload",
            remedy=f"ethtool -G {name} rx {min(int(maximum['RX']), 1024)}",
        )
    return fine(check, text, "part of the router's buffer: state it (RFC 9004)")


def offloads(machine: ExaminedMachine, name: str) -> Finding:
    """Look for offloads that merge frames: the tester cannot count merged frames."""
    output, check = machine.output("ethtool", "-k", name), f"offloads {name}"
    states = dict(re.findall(r"^([\w-]+): (on|off)", output or "", re.MULTILINE))
    if not states:
        return unseen(check, "neither the driver nor ethtool reports them")
    merging = [feature for feature in _MERGING if states.get(feature) == "on"]
    if merging:
        return distorts(
            check,
            f"{', '.join(merging)} on",
            "frames are merged on the way: counts, sizes and rates differ from those that were sent",
            remedy=f"ethtool -K {name} " + " ".join(f"{_SHORT.get(feature, feature)} off" for feature in merging),
        )
    text = ", ".join(f"{_SHORT.get(f, f)} {states[f]}" for f in _REPORTED if f in states)
    return fine(check, text)


def coalescing(machine: ExaminedMachine, name: str) -> Finding:
    """Look at interrupt coalescing: delayed interrupts add latency."""
    output, check = machine.output("ethtool", "-c", name), f"coalescing {name}"
    if output is None:
        return unseen(check, "neither the driver nor ethtool reports them")
    adaptive = re.search(r"^Adaptive RX: (\S+)", output, re.MULTILINE)
    wait = re.search(r"^rx-usecs:\s*(\d+)", output, re.MULTILINE)
    if adaptive and adaptive[1] == "on":
        return distorts(
            check,
            "adaptive",
            "the card learns how long to hold interrupts back: latency depends on earlier trials",
            remedy=f"ethtool -C {name} adaptive-rx off rx-usecs 0",
        )
    if wait and int(wait[1]) > 0:
        return fine(
            check, f"{wait[1]} us", f"an interrupt may come up to {wait[1]} us late: part of the latency, state it"
        )
    return fine(check, "none")


def flow_control(machine: ExaminedMachine, name: str) -> Finding:
    """Look at flow control: pause frames lower the rate instead of showing loss."""
    output, check = machine.output("ethtool", "-a", name), f"flow control {name}"
    states = dict(re.findall(r"^(RX|TX):\s*(on|off)", output or "", re.MULTILINE))
    if not states:
        return unseen(check, "neither the driver nor ethtool reports them")
    if "on" not in states.values():
        return fine(check, "off")
    return distorts(
        check,
        ", ".join(f"{direction.lower()} {state}" for direction, state in states.items()),
        "pause frames slow the tester down instead of showing loss: throughput is what they permit",
        remedy=f"ethtool -A {name} autoneg off rx off tx off",
    )
