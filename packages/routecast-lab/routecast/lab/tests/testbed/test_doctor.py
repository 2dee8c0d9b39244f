"""The doctor, on machines that are files in a folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from in_process import Completed, completed

from routecast.lab.testbed.doctor import CHECKS, ExaminedMachine, Finding, State, examine
from routecast.lab.testbed.placement import cores_of

CPU = "sys/devices/system/cpu"

QUIET: Mapping[str, str] = {
    f"{CPU}/online": "0-3",
    f"{CPU}/isolated": "2-3",
    f"{CPU}/nohz_full": "2-3",
    f"{CPU}/smt/active": "0",
    f"{CPU}/intel_pstate/no_turbo": "1",
    f"{CPU}/cpuidle/current_driver": "intel_idle",
    f"{CPU}/vulnerabilities/spectre_v2": "Mitigation: Enhanced IBRS",
    **{f"{CPU}/cpu{n}/cpufreq/scaling_governor": "performance" for n in range(4)},
    **{
        f"{CPU}/cpu{n}/cpuidle/state1/{key}": value
        for n in range(4)
        for key, value in (("name", "C1"), ("latency", "2"), ("disable", "0"))
    },
    "sys/devices/system/node/node0/cpulist": "0-3",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
    "sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc hpet acpi_pm",
    "proc/cmdline": "ro isolcpus=2,3 mitigations=auto",
    "proc/cpuinfo": "flags\t\t: fpu tsc",
    "proc/stat": "cpu  100 0 100 1000 0 0 0 0 0 0\ncpu2 0 0 0 100 0 0 0 0 0 0\ncpu3 0 0 0 100 0 0 0 0 0 0",
    "proc/stat.later": "cpu  100 0 100 1400 0 0 0 0 0 0\ncpu2 0 0 0 200 0 0 0 0 0 0\ncpu3 0 0 0 200 0 0 0 0 0 0",
    "proc/pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\nfull avg10=0.00",
    "proc/self/status": "CapEff:\t000001ffffffffff\nCpus_allowed_list:\t0-3",
    "proc/self/cgroup": "0::/user.slice",
    "proc/self/ns/net": "",
    "proc/irq/24/smp_affinity_list": "0-1",
    "proc/interrupts": "  CPU0 CPU1\n  24:   1   0  PCI-MSIX  nvme0q1\n",
    "proc/mounts": "bpf /sys/fs/bpf bpf rw 0 0\nhugetlbfs /dev/hugepages hugetlbfs rw 0 0",
    "proc/meminfo": "HugePages_Total:     512\nHugePages_Free:      512",
    "proc/sys/kernel/sched_rt_runtime_us": "-1",
    "proc/sys/kernel/sched_rt_period_us": "1000000",
    "proc/sys/net/core/bpf_jit_enable": "1",
    "proc/sys/user/max_net_namespaces": "100",
    "proc/net/route": "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n"
    "eno1 00000000 01020304 0003 0 0 0 00000000 0 0 0",
    "sys/class/powercap/intel-rapl:0/name": "package-0",
    "sys/class/powercap/intel-rapl:0/energy_uj": "1",
    "sys/class/powercap/intel-rapl:0/max_energy_range_uj": "262143328850",
    "sys/class/net/eth1/device/numa_node": "0",
    "sys/class/net/eth1/operstate": "up",
    "sys/class/net/eth1/carrier": "1",
    "sys/class/net/eth1/speed": "10000",
    "sys/class/net/eth1/duplex": "full",
    "sys/class/net/eth1/mtu": "1500",
    **{f"sys/class/net/eth1/queues/{q}-{n}/x": "" for q in ("rx", "tx") for n in range(4)},
    "commands/back_ends": json.dumps(
        [{"name": n, "task": t, "why_not": None} for n, t in (("live", "send"), ("xdp", "receive"))]
    ),
    "commands/graphics": json.dumps(
        [{"text": "a card (a graphics processor; Vulkan; 1.0)", "backend": "Vulkan", "is_software": False}]
    ),
    "commands/ethtool_i_eth1": "driver: ixgbe\nversion: 6.1",
    "commands/ethtool_l_eth1": "Pre-set maximums:\nCombined:\t63\nCurrent hardware settings:\nCombined:\t4",
    "commands/ethtool_g_eth1": "Pre-set maximums:\nRX:\t4096\nTX:\t4096\nCurrent settings:\nRX:\t512\nTX:\t512",
    "commands/ethtool_k_eth1": "rx-checksumming: on\ntx-checksumming: on\ngeneric-receive-offload: on\n"
    "large-receive-offload: off [fixed]\nrx-gro-list: off",
    "commands/ethtool_c_eth1": "Adaptive RX: off  TX: off\nrx-usecs:\t0",
    "commands/ethtool_a_eth1": "Autonegotiate:\toff\nRX:\t\toff\nTX:\t\toff",
    **{
        f"usr/bin/{program}": ""
        for program in (
            *("ip", "ethtool", "sysctl", "bridge", "nft", "ovs-vswitchd", "dpdk-testpmd", "zebra"),
            *("trafgen", "iperf3", "xdp-trafficgen", "t-rex-64"),
        )
    },
}
"""A machine set up for measuring: cores 2 and 3 measure, and a cable joins eth1 to the router."""


def machine(
    folder: Path, changes: Mapping[str, str | None] | None = None, **options: tuple[int, ...] | tuple[str, ...]
) -> ExaminedMachine:
    for path, text in {**QUIET, **(changes or {})}.items():
        if text is not None:
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text + "\n", encoding="utf-8")
    cores = options.get("cores", (2, 3))
    interfaces = options.get("interfaces", ("eth1",))
    return ExaminedMachine(folder, interfaces=tuple(map(str, interfaces)), cores=tuple(map(int, cores)))


def findings(
    folder: Path, changes: Mapping[str, str | None] | None = None, **options: tuple[int, ...] | tuple[str, ...]
) -> dict[str, Finding]:
    return {finding.check: finding for _, finding in examine(machine(folder, changes, **options))}


def test_a_machine_made_for_measuring_is_fine_throughout(tmp_path: Path) -> None:
    wrong = {name: finding for name, finding in findings(tmp_path).items() if finding.state is not State.FINE}
    assert wrong == {}


# The check, the changes to the machine, and parts of the finding and of its remedy or advice.
DISTORTING: tuple[tuple[str, Mapping[str, str | None], str, str], ...] = (
    ("governor", {f"{CPU}/cpu2/cpufreq/scaling_governor": "powersave"}, "powersave on 1", "frequency-set"),
    ("turbo", {f"{CPU}/intel_pstate/no_turbo": "0"}, "on", "echo 1"),
    ("C-states", {f"{CPU}/cpu3/cpuidle/state1/latency": "133"}, "133 us", "cpupower idle-set -D 10"),
    ("SMT", {f"{CPU}/smt/active": "1"}, "two hardware threads", "echo off"),
    ("cores", {f"{CPU}/online": "0"}, "1 online", ""),
    ("clock source", {"sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet"}, "hpet", "echo tsc"),
    ("isolated cores", {f"{CPU}/isolated": "3"}, "not core 2", "isolcpus=2,3"),
    ("nohz_full", {f"{CPU}/nohz_full": ""}, "none", "nohz_full=2,3"),
    ("interrupts", {"proc/irq/24/smp_affinity_list": "0-3"}, "24 (nvme0q1)", "echo 0 > /proc/irq/$i"),
    ("interrupts", {"proc/612/comm": "irqbalance"}, "irqbalance", "systemctl stop"),
    ("RT throttling", {"proc/sys/kernel/sched_rt_runtime_us": "950000"}, "950000", "sched_rt_runtime_us=-1"),
    ("control group", {"sys/fs/cgroup/user.slice/cpu.max": "150000 100000"}, "1.5 cores", "outside the group"),
    ("control group", {"proc/self/status": "CapEff:\t000001ffffffffff\nCpus_allowed_list:\t0-1"}, "cores 2, 3", ""),
    ("virtualisation", {"proc/cpuinfo": "flags\t: fpu hypervisor"}, "virtual machine", "machine of its own"),
    (
        "steal time",
        {"proc/stat.later": "cpu  100 0 100 1300 0 0 0 100\ncpu2 0 0 0 150 0 0 0 50\ncpu3 0 0 0 200 0 0 0 0"},
        "50.0% of cpu2",
        "another time",
    ),
    (
        "other work",
        {"proc/stat.later": "cpu  200 0 100 1300 0 0 0 0\ncpu2 0 0 0 200 0 0 0 0\ncpu3 80 0 0 120 0 0 0 0"},
        "cpu3 80% busy",
        "isolate",
    ),
    ("pressure", {"proc/pressure/cpu": "some avg10=37.50 avg60=1 avg300=0 total=1"}, "37.5 %", "stop other work"),
    ("BPF JIT", {"proc/sys/net/core/bpf_jit_enable": "0"}, "off", "bpf_jit_enable=1"),
    ("BPF JIT", {"proc/sys/net/core/bpf_jit_harden": "2"}, "hardened", "bpf_jit_harden=0"),
    ("link eth1", {"sys/class/net/eth1/duplex": "half"}, "half duplex", ""),
    (
        "other traffic eth1",
        {"proc/net/route": "Iface\neth1 00000000 01020304 0003 0 0 0 00000000 0 0 0"},
        "default route",
        "other interfaces",
    ),
    ("offloads eth1", {"commands/ethtool_k_eth1": "large-receive-offload: on"}, "large-receive", "-K eth1 lro off"),
    ("coalescing eth1", {"commands/ethtool_c_eth1": "Adaptive RX: on  TX: on"}, "adaptive", "adaptive-rx off"),
    ("flow control eth1", {"commands/ethtool_a_eth1": "RX:\t\ton\nTX:\t\toff"}, "rx on", "-A eth1"),
    (
        "rings eth1",
        {"commands/ethtool_g_eth1": "RX:\t4096\nTX:\t4096\nCurrent\nRX:\t64\nTX:\t512"},
        "64 of 4096",
        "-G eth1 rx 1024",
    ),
)


@pytest.mark.parametrize(("check", "changes", "observation", "remedy"), DISTORTING)
def test_what_distorts_is_found_with_what_mends_it(
    check: str, changes: Mapping[str, str | None], observation: str, remedy: str, tmp_path: Path
) -> None:
    finding = findings(tmp_path, changes)[check]
    assert finding.state is State.DISTORTS
    assert observation in finding.observation
    assert finding.effect
    assert remedy in f"{finding.remedy} {finding.advice}"


MISSING: tuple[tuple[str, Mapping[str, str | None], str, str], ...] = (
    ("capabilities", {"proc/self/status": "CapEff:\t0000000000003000"}, "CAP_BPF, CAP_SYS_ADMIN, CAP_SYS_NICE", "sudo"),
    (
        "BPF rights",
        {"proc/self/status": "CapEff:\t0000000000003000", "proc/sys/kernel/unprivileged_bpf_disabled": "2"},
        "privileged",
        "sudo",
    ),
    (
        "back ends",
        {
            "commands/back_ends": json.dumps(
                [
                    {"name": "live", "task": "send", "why_not": "the kernel does not permit bpf(2)"},
                    {"name": "af_packet", "task": "send", "why_not": None},
                ]
            )
        },
        "af_packet (send); not live (send): the kernel does not permit bpf(2)",
        "AF_PACKET measures",
    ),
    ("namespaces", {"proc/sys/user/max_net_namespaces": "0"}, "is 0", "max_net_namespaces=64"),
    ("bpffs", {"proc/mounts": "proc /proc proc rw 0 0"}, "not mounted", "mount -t bpf"),
    (
        "bpffs",
        {"proc/mounts": "bpf /run/routecast/other.multistage/bpf bpf rw,mode=700 0 0"},
        "not at /sys/fs/bpf, only at /run/routecast/other.multistage/bpf",
        "mount -t bpf bpf /sys/fs/bpf",
    ),
    (
        "huge pages",
        {"proc/mounts": "bpf /sys/fs/bpf bpf rw 0 0\nhugetlbfs /run/hugepages/kvm hugetlbfs rw,gid=107 0 0"},
        "hugetlbfs only at /run/hugepages/kvm",
        "mount -t hugetlbfs",
    ),
    ("huge pages", {"proc/meminfo": "HugePages_Total: 0\nHugePages_Free: 0"}, "0 of 0", "nr_hugepages"),
    (
        "power",
        {"sys/class/powercap/intel-rapl:0/name": None, "proc/cpuinfo": "flags\t: fpu hypervisor"},
        "no power here, because: rapl: this is a virtual machine",
        "redfish:URL",
    ),
    ("link eth1", {"sys/class/net/eth1/operstate": "down"}, "down", "ip link set eth1 up"),
    (
        "control group",
        {"proc/self/cgroup": "4:cpu:/jail", "sys/fs/cgroup/cpu/jail/cpu.rt_runtime_us": "0"},
        "real-time",
        "rt_runtime",
    ),
)


@pytest.mark.parametrize(("check", "changes", "observation", "remedy"), MISSING)
def test_what_is_missing_is_found_with_what_brings_it(
    check: str, changes: Mapping[str, str | None], observation: str, remedy: str, tmp_path: Path
) -> None:
    finding = findings(tmp_path, changes)[check]
    assert finding.state is State.MISSING
    assert observation in finding.observation
    assert remedy in f"{finding.remedy} {finding.advice}"


def test_missing_programs_are_named_with_their_packages(tmp_path: Path) -> None:
    examined = machine(tmp_path)
    (tmp_path / "usr/bin/nft").unlink()
    (tmp_path / "usr/bin/zebra").unlink()
    finding = next(f for _, f in examine(examined) if f.check == "devices")
    assert finding.state is State.MISSING
    assert finding.remedy == "apt install frr nftables"


def test_an_interface_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    finding = findings(tmp_path, interfaces=("eth7",))["link eth7"]
    assert finding.state is State.MISSING
    assert "eth1" in finding.observation


def test_memory_nodes_apart_are_found(tmp_path: Path) -> None:
    changes = {"sys/devices/system/node/node0/cpulist": "0-1", "sys/devices/system/node/node1/cpulist": "2-3"}
    finding = findings(tmp_path, changes)["NUMA"]
    assert finding.state is State.DISTORTS
    assert "eth1 is at node 0, core 2 at node 1" in finding.observation


def test_interrupts_of_the_measured_card_itself_are_its_business(tmp_path: Path) -> None:
    changes = {"proc/irq/24/smp_affinity_list": "2", "proc/interrupts": "  24:   1   0  PCI-MSIX  eth1-TxRx-0"}
    assert findings(tmp_path, changes)["interrupts"].state is State.FINE


def test_an_empty_tree_is_not_seen_and_no_check_fails(tmp_path: Path) -> None:
    for _, finding in examine(ExaminedMachine(tmp_path)):
        assert finding.observation
        assert finding.state is not State.FINE or finding.check in ("control group", "interrupts"), finding


@pytest.mark.parametrize("junk", ["", "x", "-", "-1", "99999999999999999999", "\x00", "cpu a b\ncpu\n", "0-", ":::"])
def test_no_file_however_wrong_is_a_defect(junk: str, tmp_path: Path) -> None:
    changes = {path: junk for path in QUIET if not path.startswith("usr/bin")}
    changes |= {"proc/sys/net/core/bpf_jit_harden": junk, "sys/fs/cgroup/cpu.max": junk, "proc/net/ipv6_route": junk}
    for _, finding in examine(machine(tmp_path, changes)):
        assert isinstance(finding.state, State)


def test_lists_of_cores_are_read_as_the_kernel_writes_them() -> None:
    assert cores_of("0-2,7,9-10") == (0, 1, 2, 7, 9, 10)
    assert cores_of("") == ()


def test_every_check_has_a_name_of_its_own(tmp_path: Path) -> None:
    names = [finding.check for _, finding in examine(machine(tmp_path))]
    assert len(names) == len(set(names))
    assert len(names) == sum(map(len, CHECKS.values())) + 8


def doctor(*arguments: str) -> Completed:
    return completed("doctor", *arguments)


@pytest.mark.slow
def test_this_machine_can_be_examined_by_anybody() -> None:
    done = doctor("--json")
    assert done.returncode == 0
    assert done.stderr == ""
    document = json.loads(done.stdout)
    assert sum(document["counts"].values()) == len(document["findings"])
    assert {"group", "check", "state", "observation", "effect", "remedy", "advice"} == set(document["findings"][0])


@pytest.mark.slow
def test_strict_leaves_with_1_exactly_if_something_distorts() -> None:
    done = doctor("--strict", "--json")
    distorts = json.loads(done.stdout)["counts"]["distorts"]
    assert done.returncode == (1 if distorts else 0)


def test_the_doctor_changes_nothing(tmp_path: Path) -> None:
    examined = machine(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    list(examine(examined))
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_a_wrong_test_bed_is_a_usage_error() -> None:
    done = doctor("--testbed", "/nowhere.testbed.toml")
    assert done.returncode == 2
    assert "nowhere" in done.stderr
