"""A test bed without a lab: tester, device under test and wires in network namespaces of this machine.

::

    rc-BED-gen       rc-BED-dut          rc-BED-sink
      g0 ─── wire ─── d0   device   d1 ─── wire ─── s0
    port 0                                       port 1
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from routecast.errors import EnvironmentProblem
from routecast.lab.testbed import _napi as napi
from routecast.lab.testbed.addresses import PortAddresses, port_addresses
from routecast.lab.testbed.bed import Bed, TesterPort
from routecast.lab.testbed.checks import NAMESPACE_CAPABILITIES, require
from routecast.lab.testbed.document import NamespacesFile
from routecast.lab.testbed.dut_host import Device, DevicePort, DeviceSite, run_command
from routecast.lab.testbed.netns import command_inside, inside
from routecast.lab.testbed.state import BedState, set_offload

__all__ = ["Namespaces", "WireEnd"]

_TESTER_MAC = ("02:00:00:00:01:02", "02:00:00:00:02:02")
_DEVICE_MAC = ("02:00:00:00:01:01", "02:00:00:00:02:01")
_TESTER_INTERFACE = ("g0", "s0")
_DEVICE_INTERFACE = ("d0", "d1")
_TAG_BYTES = 4


WireEnd = tuple[str, str, str]
"""End of a wire: namespace, interface, MAC address."""


class Namespaces(Bed):
    """The test bed of a ``kind = "namespaces"`` file; see :class:`routecast.lab.testbed.bed.Bed`."""

    def __init__(
        self, file: NamespacesFile, device: Device, *, on_remark: Callable[[str], None] = lambda _: None
    ) -> None:
        super().__init__(file, device, on_remark=on_remark)
        self._file = file
        self._bound: tuple[int, ...] = ()
        self._receiving: tuple[int, ...] = ()
        self._addresses = tuple(port_addresses(side, networks=file.networks) for side in (0, 1))
        self._gen, self._dut, self._sink = (f"rc-{file.name}-{part}" for part in ("gen", "dut", "sink"))
        self.ports = tuple(self._tester_port(side, addresses) for side, addresses in enumerate(self._addresses))

    def bind_threads(self) -> None:
        """Bind the kernel thread of the device's receiving port, and the receiver's if it has a core of its own."""
        if self.device.data_path == "kernel":
            self._bound = self._bind(self._dut, "d0", self.placement.dut)
        if self.placement.receiver is not None:
            self._receiving = self._bind(self._sink, "s0", self.placement.receiver)

    def bind_replaced_threads(self) -> None:
        """Bind the threads again if attaching or detaching an XDP program replaced them."""
        if self.device.data_path == "kernel" and self.device_threads() != self._bound:
            self.bind_threads()

    def _bind(self, netns: str, interface: str, cpu: int) -> tuple[int, ...]:
        if not napi.threads(netns, interface):
            napi.make_threaded(netns, interface)
        return napi.bind(netns, interface, cpu=cpu, priority=self.priority_on(cpu))

    def notes_for(self, entering: Collection[int]) -> tuple[str, ...]:
        """Return the notes of trials whose frames enter the device by these ports."""
        notes = super().notes_for(entering)
        if self.device.data_path == "kernel" and not self._bound:
            notes += ("the device's kernel thread could not be bound to a core: generator and device may share one",)
        if 1 in entering and self.device.data_path == "kernel":
            core = self.placement.tester
            notes += (f"frames that enter by d1 are forwarded on the generator's core {core}, not on the device's",)
        return notes

    def generator_core_workers(self) -> Mapping[str, bool]:
        """Return the other workers on the generator's core, and whether each is known to run before the generator."""
        states = {}
        if self.placement.is_shared and self.site.cpu is not None:
            is_bound = bool(self._bound) and self.device_threads() == self._bound
            states["device"] = self.priority > 0 and is_bound
        if self.placement.receiver == self.placement.tester:
            states["receiver"] = self.priority > 0 and bool(self._receiving)
        return states

    def device_threads(self) -> tuple[int, ...]:
        """Return the thread that polls the device's receiving port, if the kernel forwards."""
        threads = napi.threads(self._dut, "d0") if self.device.data_path == "kernel" else ()
        return tuple(filter(napi.is_napi_thread, threads))

    def facts(self) -> Mapping[str, object]:
        """Return the facts of the bed as plain data."""
        threads = self.device_threads() if self._site is not None else ()
        return {
            **super().facts(),
            "kind": "namespaces",
            "namespaces": [self._gen, self._dut, self._sink],
            "networks": self._file.networks,
            "ipv6": self._file.ipv6,
            "device_threads": [_scheduling(pid) for pid in threads],
        }

    def _require_capabilities(self) -> None:
        require(NAMESPACE_CAPABILITIES, "a test bed of namespaces")

    def _namespaces(self) -> tuple[str, ...]:
        return (self._gen, self._dut, self._sink)

    def _tester_port(self, side: int, addresses: PortAddresses) -> TesterPort:
        return TesterPort(
            name=("gen", "sink")[side],
            interface=_TESTER_INTERFACE[side],
            netns=(self._gen, self._sink)[side],
            mac=_TESTER_MAC[side],
            ipv4=addresses.tester_ipv4,
            ipv6=addresses.tester_ipv6 if self._file.ipv6 else "",
            device_mac=_DEVICE_MAC[side],
            networks_ipv4=addresses.networks_ipv4,
            networks_ipv6=addresses.networks_ipv6 if self._file.ipv6 else (),
            wire_bps=self._file.wire,
            is_virtual=True,
            mtu=self._file.mtu,
        )

    def _make_site(self, bed_state: BedState) -> DeviceSite:
        is_tagged = self._has_sub_interfaces
        return DeviceSite(
            netns=self._dut,
            ports=tuple(
                DevicePort(
                    interface=self._sub_interface(_DEVICE_INTERFACE[side]) if is_tagged else _DEVICE_INTERFACE[side],
                    wire=_DEVICE_INTERFACE[side] if is_tagged else "",
                    mac=_DEVICE_MAC[side],
                    ipv4=addresses.router_ipv4,
                    ipv6=addresses.router_ipv6,
                    neighbour_mac=_TESTER_MAC[side],
                    neighbour_netns=(self._gen, self._sink)[side],
                    neighbour_ipv4=addresses.tester_ipv4,
                    neighbour_ipv6=addresses.tester_ipv6,
                    networks_ipv4=addresses.networks_ipv4,
                    networks_ipv6=addresses.networks_ipv6,
                )
                for side, addresses in enumerate(self._addresses)
            ),
            cpu=self.placement.dut,
            more_cpus=self.placement.more_dut,
            priority=self.priority_on(self.placement.dut),
            shares_core=self.placement.is_shared,
            folder=self.folder,
            on_spawn=bed_state.add_process,
        )

    def _wires(self) -> tuple[tuple[WireEnd, WireEnd], ...]:
        """Return the wires: namespace, interface and MAC of both ends, the tester's first."""
        return tuple(
            (
                ((self._gen, self._sink)[side], _TESTER_INTERFACE[side], _TESTER_MAC[side]),
                (self._dut, _DEVICE_INTERFACE[side], _DEVICE_MAC[side]),
            )
            for side in (0, 1)
        )

    def _make(self, bed_state: BedState) -> None:
        _ip(None, [f"netns add {name}" for name in self._namespaces()])
        for name in self._namespaces():
            inside(name, self._silence)
        port_options = f"mtu {self._file.mtu + self._file.encapsulation.tags_bytes} numtxqueues 1 numrxqueues 1"
        lines = []
        for (near, near_name, near_mac), (far, far_name, far_mac) in self._wires():
            lines.append(
                f"link add {near_name} netns {near} address {near_mac} {port_options} "
                f"type veth peer name {far_name} netns {far} address {far_mac} {port_options}"
            )
        _ip(None, lines)
        for ends in self._wires():
            for name, interface, _ in ends:
                for offload in ("rx", "tx", "tso", "gso", "gro", *(("flags",) if self._tags else ())):
                    set_offload(name, interface, offload, on=False)
                if len(self._tags) > 1:
                    # The legacy flags do not cover service tags; without ethtool these frames count four bytes less.
                    command = command_inside(name, "ethtool", "-K", interface, "tx-vlan-stag-hw-insert", "off")
                    run_command(command, check=False)
                if name == self._dut:
                    # Frames that a program sends into a veth pair arrive only at a peer with NAPI, which GRO enables.
                    set_offload(name, interface, "gro", on=True)
        if self._has_sub_interfaces:
            try:
                _ip(self._dut, [line for interface in _DEVICE_INTERFACE for line in self._sub_interfaces(interface)])
            except EnvironmentProblem as problem:
                raise EnvironmentProblem(
                    f"{self._file.encapsulation}: {self.device.title} needs VLAN sub-interfaces, and the kernel makes "
                    f"none (module 8021q): take a device that forwards tagged frames by itself, such as xdp, bridge, "
                    f"openvswitch or testpmd ({problem})"
                ) from problem
        for side in (0, 1):
            self._configure_tester_port(side)

    @property
    def _tags(self) -> tuple[int, ...]:
        return self._file.encapsulation.vlan_ids

    @property
    def _has_sub_interfaces(self) -> bool:
        """Whether the device's addresses belong to sub-interfaces, because the kernel routes tagged frames."""
        device = self.device
        is_kernel_router = device.data_path == "kernel" and device.layer == 3
        return bool(self._tags) and is_kernel_router and not getattr(device, "keeps_tags", False)

    def _sub_interface(self, interface: str) -> str:
        """Return the sub-interface for the tags of test frames."""
        return ".".join([interface, *map(str, self._tags)])

    def _sub_interfaces(self, interface: str) -> list[str]:
        """Return the ``ip`` lines that make the sub-interfaces for VLAN tags."""
        lines = [f"link set {interface} up"]
        for number, tag in enumerate(self._tags):
            upper = ".".join([interface, *map(str, self._tags[: number + 1])])
            protocol = "802.1ad" if number + 1 < len(self._tags) else "802.1Q"
            below = ".".join([interface, *map(str, self._tags[:number])])
            mtu = self._file.mtu + _TAG_BYTES * (len(self._tags) - number - 1)
            lines.append(f"link add link {below} name {upper} mtu {mtu} type vlan protocol {protocol} id {tag}")
            lines.append(f"link set {upper} up")
        return lines

    def _silence(self) -> None:
        """Keep a new namespace from sending frames by itself; call this inside the namespace."""
        for folder in ("all", "default"):
            ipv4 = Path("/proc/sys/net/ipv4/conf") / folder
            for setting in ("rp_filter", "send_redirects", "accept_redirects"):
                (ipv4 / setting).write_text("0", encoding="utf-8")
        ipv6 = Path("/proc/sys/net/ipv6/conf/default")
        if not ipv6.is_dir():
            return  # a kernel without IPv6
        # addr_gen_mode 1: no link-local address, hence no router solicitation and no group to report.
        settings = {"accept_dad": "0", "dad_transmits": "0", "accept_ra": "0", "autoconf": "0", "addr_gen_mode": "1"}
        for setting, value in settings.items():
            (ipv6 / setting).write_text(value, encoding="utf-8")
        if not self._file.ipv6:
            for folder in ("all", "default"):
                (ipv6.parent / folder / "disable_ipv6").write_text("1", encoding="utf-8")

    def _configure_tester_port(self, side: int) -> None:
        """Set addresses, routes and neighbours of the tester's port, so that `ping` works too."""
        addresses, interface = self._addresses[side], _TESTER_INTERFACE[side]
        router = addresses.router_ipv4.partition("/")[0]
        lines = [
            "link set lo up",
            f"link set {interface} up",
            f"address add {addresses.tester_ipv4}/24 dev {interface}",
            f"neighbour add {router} lladdr {_DEVICE_MAC[side]} dev {interface} nud permanent",
            f"route add default via {router}",
        ]
        if self._file.ipv6:
            router = addresses.router_ipv6.partition("/")[0]
            lines += [
                f"address add {addresses.tester_ipv6}/64 dev {interface} nodad",
                f"neighbour add {router} lladdr {_DEVICE_MAC[side]} dev {interface} nud permanent",
                f"route add ::/0 via {router} dev {interface}",
            ]
        _ip(self.ports[side].netns, lines)


def _ip(netns: str | None, lines: list[str]) -> None:
    command = ["ip", *(["-n", netns] if netns else []), "-batch", "-"]
    run_command(command, stdin="\n".join(lines) + "\n")


def _scheduling(pid: int) -> dict[str, object]:
    """Return the actual scheduling of a kernel thread."""
    try:
        return {
            "thread": Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip(),
            "cores": sorted(os.sched_getaffinity(pid)),
            "scheduler": {os.SCHED_FIFO: "FIFO", os.SCHED_RR: "RR"}.get(os.sched_getscheduler(pid), "OTHER"),
            "priority": os.sched_getparam(pid).sched_priority,
        }
    except OSError:
        return {"thread": f"{pid} (ended)"}
