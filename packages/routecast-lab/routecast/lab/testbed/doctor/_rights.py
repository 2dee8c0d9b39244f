"""Checks of what this process may do (capabilities, namespaces, BPF) and of the programs that it needs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from routecast.lab.testbed.doctor._machine import ExaminedMachine, Finding, distorts, fine, missing, unseen

_TOOLS: Final = {"ip": "iproute2", "ethtool": "ethtool", "sysctl": "procps"}
_DEVICES: Final = {
    "bridge": "iproute2",
    "nft": "nftables",
    "ovs-vswitchd": "openvswitch-switch",
    "dpdk-testpmd": "dpdk-dev",
    "zebra": "frr",
}
_TESTERS: Final = {"trafgen": "netsniff-ng", "iperf3": "iperf3", "xdp-trafficgen": "xdp-tools", "t-rex-64": ""}

_CAPABILITIES = {
    "CAP_NET_RAW": (13, "no frame can be sent or received"),
    "CAP_NET_ADMIN": (12, "no interface can be set up, no XDP program attached"),
    "CAP_BPF": (39, "no BPF program can be loaded: the tester is four times slower through AF_PACKET"),
    "CAP_SYS_ADMIN": (21, "no network namespace can be made"),
    "CAP_SYS_NICE": (23, "no real-time priority: rates are erratic beside other work"),
}


def _programs(machine: ExaminedMachine, check: str, package_of: Mapping[str, str], effect: str) -> Finding:
    present = [program for program in package_of if machine.has_program(program)]
    absent = [program for program in package_of if program not in present]
    if not absent:
        return fine(check, ", ".join(present))
    packages = sorted({package_of[program] for program in absent if package_of[program]})
    return missing(
        check,
        f"not {', '.join(absent)}" + (f"; {', '.join(present)} are there" if present else ""),
        effect,
        remedy=f"apt install {' '.join(packages)}" if packages else "",
    )


def tools(machine: ExaminedMachine) -> Finding:
    """Look for the programs that make test beds."""
    return _programs(machine, "tools", _TOOLS, "a test bed of namespaces cannot be made, interfaces not be examined")


def devices(machine: ExaminedMachine) -> Finding:
    """Look for the programs of devices under test."""
    return _programs(machine, "devices", _DEVICES, "these devices under test cannot be started; the others can")


def other_testers(machine: ExaminedMachine) -> Finding:
    """Look for other testers, which can confirm a measurement."""
    return _programs(machine, "other testers", _TESTERS, "no comparison with them; routecast's own tester needs none")


def _effective(machine: ExaminedMachine) -> int | None:
    line = re.search(r"^CapEff:\s*([0-9a-fA-F]+)", machine.text("proc/self/status") or "", re.MULTILINE)
    return int(line[1], 16) if line else None


def capabilities(machine: ExaminedMachine) -> Finding:
    """Look for the capabilities that tester and test bed need."""
    effective = _effective(machine)
    if effective is None:
        return unseen("capabilities", "the kernel does not report them")
    lacking = {name: effect for name, (bit, effect) in _CAPABILITIES.items() if not effective >> bit & 1}
    if not lacking:
        return fine("capabilities", ", ".join(name[4:] for name in _CAPABILITIES))
    return missing("capabilities", f"not {', '.join(lacking)}", "; ".join(lacking.values()), remedy="sudo routecast …")


def namespaces(machine: ExaminedMachine) -> Finding:
    """Look for network namespaces, which a test bed without a lab needs."""
    maximum = machine.number("proc/sys/user/max_net_namespaces")
    if not machine.exists("proc/self/ns/net"):
        return missing(
            "namespaces",
            "the kernel has no network namespaces",
            "there is no test bed without a lab; real interfaces still work",
        )
    if maximum == 0:
        return missing(
            "namespaces",
            "user.max_net_namespaces is 0",
            "none can be made",
            remedy="sysctl -w user.max_net_namespaces=64",
        )
    return fine("namespaces", "network namespaces can be made")


def bpf_jit(machine: ExaminedMachine) -> Finding:
    """Check whether the kernel compiles BPF programs or interprets them."""
    enabled, harden = (
        machine.number("proc/sys/net/core/bpf_jit_enable"),
        machine.number("proc/sys/net/core/bpf_jit_harden"),
    )
    if enabled is None:
        return unseen("BPF JIT", "this process may not see net.core.bpf_jit_enable")
    if enabled == 1 and harden in (None, 0, 1):
        return fine("BPF JIT", "on")
    if enabled == 1:
        return distorts(
            "BPF JIT",
            "on, hardened for all users (bpf_jit_harden = 2)",
            "constants are blinded: BPF programs of tester and router run slower",
            remedy="sysctl -w net.core.bpf_jit_harden=0",
        )
    return distorts(
        "BPF JIT",
        "off" if enabled == 0 else f"in debugging mode ({enabled})",
        "BPF programs of tester and router run several times slower" if enabled == 0 else "each program is logged",
        remedy="sysctl -w net.core.bpf_jit_enable=1",
    )


def _mounts(machine: ExaminedMachine, kind: str) -> list[tuple[str, str]]:
    """Return the mount points of a file system and their options."""
    rows = (line.split() for line in (machine.text("proc/mounts") or "").splitlines())
    return [(row[1], row[3] if len(row) > 3 else "") for row in rows if len(row) > 2 and row[2] == kind]


def _is_private(mount_point: str, options: str) -> bool:
    """Whether a mount is the run-time state of one program or of one user: other programs do not look there."""
    owner = re.search(r"(?:^|,)[ug]id=(\d+)", options)
    return bool(mount_point.startswith(("/run/", "/var/run/", "/tmp/")) or (owner and owner[1] != "0"))


_PINS = "/sys/fs/bpf"
"""Where libbpf and libxdp keep programs; they look at no other mount."""


def bpf_file_system(machine: ExaminedMachine) -> Finding:
    """Look for the BPF file system, where programs are kept."""
    mount_points = [mount_point for mount_point, _ in _mounts(machine, "bpf")]
    if _PINS in mount_points:
        return fine("bpffs", _PINS)
    elsewhere = f"not at {_PINS}, only at {', '.join(mount_points[:3])}, which belongs to what mounted it"
    return missing(
        "bpffs",
        elsewhere if mount_points else "not mounted",
        "xdp-tools and libxdp devices cannot keep their programs",
        remedy=f"mount -t bpf bpf {_PINS}",
    )


def bpf_rights(machine: ExaminedMachine) -> Finding:
    """Check whether this process may load BPF programs."""
    effective = _effective(machine) or 0
    if effective >> 39 & 1 or effective >> 21 & 1:
        return fine("BPF rights", "this process has them")
    disabled = machine.number("proc/sys/kernel/unprivileged_bpf_disabled")
    text = "only privileged processes may load programs" if disabled else "XDP programs need CAP_BPF and CAP_NET_ADMIN"
    return missing(
        "BPF rights",
        text,
        "the tester sends and receives through AF_PACKET; XDP devices do not work",
        remedy="sudo routecast …",
    )


def back_ends(machine: ExaminedMachine) -> Finding:
    """Check which back ends of the tester this process can use; the tester uses the fastest."""
    try:
        entries = [
            (f"{entry['name']} ({entry['task']})", entry["why_not"]) for entry in json.loads(machine.back_ends() or "")
        ]
    except (ValueError, TypeError, KeyError):
        return unseen("back ends", "not recorded")
    usable = ", ".join(name for name, why_not in entries if not why_not) or "none"
    absent: dict[str, list[str]] = {}
    for name, why_not in entries:
        if why_not:
            absent.setdefault(why_not, []).append(name)
    if not absent:
        return fine("back ends", usable)
    return missing(
        "back ends",
        usable + "".join(f"; not {', '.join(names)}: {why_not}" for why_not, names in absent.items()),
        "nothing can be measured on a wire" if usable == "none" else "the tester uses the others",
        advice="run routecast as root, outside of containers that forbid bpf(2); AF_PACKET measures, but slower",
    )


def graphics(machine: ExaminedMachine) -> Finding:
    """Look for a graphics processor, which lanes of the simulator can run on; none is needed."""
    effect = "lanes of the simulator run on the processor"
    try:
        listed = json.loads(machine.graphics() or "")
        if isinstance(listed, str):
            return fine("graphics processor", f"none: {listed}", effect)
        texts = [str(entry["text"]) for entry in listed]
        is_there = any(entry["backend"] != "OpenGL" and not entry["is_software"] for entry in listed)
    except (ValueError, TypeError, KeyError):
        return unseen("graphics processor", "not recorded")
    seen = "; ".join(texts)
    return fine("graphics processor", seen if is_there else f"none ({seen})", "" if is_there else effect)


def huge_pages(machine: ExaminedMachine) -> Finding:
    """Look for huge pages, which DPDK prefers."""
    meminfo = machine.text("proc/meminfo") or ""
    counts = {key: int(value) for key, value in re.findall(r"^HugePages_(Total|Free):\s+(\d+)", meminfo, re.MULTILINE)}
    mounts = _mounts(machine, "hugetlbfs")
    mounted = any(not _is_private(*mount) for mount in mounts)
    if not counts:
        return unseen("huge pages", "the kernel lists none")
    if counts.get("Free", 0) > 0 and mounted:
        return fine("huge pages", f"{counts['Free']} of {counts['Total']} free, mounted")
    text = f"{counts.get('Free', 0)} of {counts.get('Total', 0)} free" + (
        ""
        if mounted
        else f", hugetlbfs only at {mounts[0][0]}, another program's"
        if mounts
        else ", hugetlbfs not mounted"
    )
    return missing(
        "huge pages",
        text,
        "DPDK devices run with --no-huge: more misses of the address cache, no drivers of real cards",
        remedy="sysctl -w vm.nr_hugepages=512 && mount -t hugetlbfs none /dev/hugepages",
    )
