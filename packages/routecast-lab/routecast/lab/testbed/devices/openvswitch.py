"""Open vSwitch with its user-space datapath: a database, a switch and two flows in the device's namespace."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from routecast.errors import EnvironmentProblem
from routecast.lab.testbed.devices import interfaces
from routecast.lab.testbed.devices.lifecycle import StartedDevice
from routecast.lab.testbed.devices.options import DeviceOptions, option
from routecast.lab.testbed.devices.processes import (
    Processes,
    accepts_connections,
    check_socket_path,
    make_real_time,
    threads_named,
)
from routecast.lab.testbed.dut_host import DeviceSite, Missing

__all__ = ["OpenVSwitch", "OpenVSwitchOptions"]

_BRIDGE = "rcovs0"
_PACKAGE = "openvswitch-switch"
_SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")


@dataclass(frozen=True, kw_only=True)
class OpenVSwitchOptions(DeviceOptions):
    """Options of Open vSwitch.

    The main thread serves ``af_packet`` ports. A poll-mode thread, which keeps its core busy, serves ``afxdp`` ports
    (native copy mode).
    """

    ports: str = option("af_packet", "how frames reach user space", choices=("af_packet", "afxdp"))
    flows: str = option("port", "port to port, or a learning switch", choices=("port", "normal"))


class OpenVSwitch(StartedDevice[OpenVSwitchOptions]):
    """``ovs-vswitchd`` with ``datapath_type=netdev``, which does not change frames.

    Its ``process`` reset ends the switch (not the database) and starts it again; ``link`` takes the ports down and up.
    Database, sockets and logs lie in the site's folder; the machine's own Open vSwitch is not touched.
    """

    name = "openvswitch"
    title = "Open vSwitch, user-space datapath"
    layer: ClassVar[Literal[2, 3]] = 2
    data_path: ClassVar[Literal["kernel", "process"]] = "process"
    options = OpenVSwitchOptions
    programs = tuple(
        Missing(program=program, package=_PACKAGE)
        for program in ("ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovs-ofctl")
    )

    def __init__(self, options: OpenVSwitchOptions | None = None) -> None:
        super().__init__(options)
        self._database = Processes()
        self._switch = Processes()
        self._version_text = ""
        self._switch_id = 0
        self._counts_before_start: dict[str, int] = {}
        self._thread_lines: list[str] = []

    @property
    def polls(self) -> bool:
        """Whether it polls for frames without a pause: the threads of AF_XDP ports do."""
        return self.chosen.ports == "afxdp"

    def counters(self) -> Mapping[str, int]:
        """Return the kernel's counts of the ports, and the frames that the switch did not forward.

        Raises DeviceEnded: the switch or its database has ended by itself.
        """
        self._database.check()
        self._switch.check()
        return interfaces.switch_counters(self.site, self._counts_before_start)

    def _begin(self, site: DeviceSite) -> None:
        check_socket_path(self._folder(site) / f"{_BRIDGE}.mgmt")
        self._clear_folder(site)
        self._folder(site).mkdir(parents=True)
        self._configuration += interfaces.disable_ipv6(site)
        self._configuration += interfaces.ports_up(site)
        self._counts_before_start = interfaces.interface_counters(site)
        self._start_database(site)
        self._start_switch(site)
        self._connect_ports(site)

    def _end(self, site: DeviceSite) -> None:
        self._switch.stop()
        self._database.stop()
        for tap in (_BRIDGE, "ovs-netdev"):  # they outlive their switch
            site.run("ip", "link", "delete", tap, check=False)
        interfaces.release_ports(site)
        self._clear_folder(site)

    def _reset_process(self, site: DeviceSite) -> None:
        self._switch.stop()
        self._start_switch(site)
        self._set_flows()
        self._make_real_time(site)

    def _reset_link(self, site: DeviceSite) -> None:
        interfaces.ports_down(site)
        interfaces.ports_up(site)

    def _start_database(self, site: DeviceSite) -> None:
        folder = self._folder(site)
        site.run("ovsdb-tool", "create", str(folder / "conf.db"), str(_SCHEMA))
        self._database.spawn(
            site,
            "ovsdb-server",
            "ovsdb-server",
            str(folder / "conf.db"),
            f"--remote=punix:{folder}/db.sock",
            f"--unixctl={folder}/db.ctl",
            "--no-chdir",
            "-vsyslog:off",
            environment=self._environment(site),
        )
        self._database.wait_for(lambda: accepts_connections(folder / "db.sock"), "the database of Open vSwitch")
        self._vsctl("--no-wait", "init")
        if site.cpu is not None:
            self._vsctl("--no-wait", "set", "Open_vSwitch", ".", f"other_config:pmd-cpu-mask={1 << site.cpu:#x}")

    def _start_switch(self, site: DeviceSite) -> None:
        folder = self._folder(site)
        (folder / "vs.ctl").unlink(missing_ok=True)
        process = self._switch.spawn(
            site,
            "ovs-vswitchd",
            "ovs-vswitchd",
            f"unix:{folder}/db.sock",
            f"--unixctl={folder}/vs.ctl",
            "--no-chdir",
            "-vsyslog:off",
            environment=self._environment(site),
        )
        self._switch_id = process.pid
        self._switch.wait_for(lambda: accepts_connections(folder / "vs.ctl"), "ovs-vswitchd")

    def _connect_ports(self, site: DeviceSite) -> None:
        # Secure: a frame without a matching flow is dropped, and the switch learns nothing by itself.
        command = ["add-br", _BRIDGE, "--", "set", "bridge", _BRIDGE, "datapath_type=netdev", "fail_mode=secure"]
        for number, port in enumerate(site.ports, start=1):
            command += ["--", "add-port", _BRIDGE, port.interface]
            command += ["--", "set", "interface", port.interface, f"ofport_request={number}"]
            if self.chosen.ports == "afxdp":
                command += ["type=afxdp", "options:xdp-mode=native"]
        self._vsctl(*command)
        for port in site.ports:
            error = self._vsctl("get", "interface", port.interface, "error").strip()
            if error not in {"[]", '""'}:
                raise EnvironmentProblem(f"device openvswitch: port {port.interface}: {error}")
        self._set_flows()
        self._make_real_time(site)

    def _set_flows(self) -> None:
        flows = ["in_port=1,actions=output:2", "in_port=2,actions=output:1"]
        if self.chosen.flows == "normal":
            flows = ["actions=NORMAL"]
        management = self._folder(self.site) / f"{_BRIDGE}.mgmt"
        self._switch.wait_for(lambda: accepts_connections(management), "the bridge of Open vSwitch")
        self._ofctl("del-flows", _BRIDGE)
        for flow in flows:
            self._ofctl("add-flow", _BRIDGE, flow)

    def _make_real_time(self, site: DeviceSite) -> None:
        thread_name = "pmd-" if self.chosen.ports == "afxdp" else "ovs-vswitchd"
        self._switch.wait_for(lambda: thread_name in self._thread_names(), "the forwarding thread of Open vSwitch")

        def is_forwarding_thread(name: str) -> bool:
            return name.startswith(thread_name)

        self._thread_lines = make_real_time(self._switch_id, site, is_forwarding_thread, polls=self.polls)
        self._polling_threads = threads_named(self._switch_id, is_forwarding_thread) if self.polls else ()

    def _thread_names(self) -> str:
        return "".join(path.read_text("utf-8") for path in Path(f"/proc/{self._switch_id}/task").glob("*/comm"))

    def _vsctl(self, *command: str) -> str:
        words = ("ovs-vsctl", f"--db=unix:{self._folder(self.site)}/db.sock", "--timeout=20", *command)
        if not {"get", "init"} & set(command):
            self._record_command("ovs-vsctl", *command)
        return self.site.run(*words, environment=self._environment(self.site))

    def _ofctl(self, command: str, bridge: str, *arguments: str) -> str:
        self._record_command("ovs-ofctl", command, bridge, *arguments)
        socket = f"unix:{self._folder(self.site)}/{bridge}.mgmt"
        words = ("ovs-ofctl", "--timeout=20", command, socket, *arguments)
        return self.site.run(*words, environment=self._environment(self.site))

    def _record_command(self, *command: str) -> None:
        line = " ".join(command)
        if line not in self._configuration:  # a reset repeats commands
            self._configuration.append(line)

    def _clear_folder(self, site: DeviceSite) -> None:
        shutil.rmtree(self._folder(site), ignore_errors=True)
        for program in ("ovsdb-server", "ovs-vswitchd"):
            (site.folder / f"{program}.log").unlink(missing_ok=True)

    @staticmethod
    def _folder(site: DeviceSite) -> Path:
        return site.folder / "ovs"

    @staticmethod
    def _environment(site: DeviceSite) -> dict[str, str]:
        folder = str(OpenVSwitch._folder(site))
        return {"OVS_RUNDIR": folder, "OVS_LOGDIR": folder, "OVS_DBDIR": folder, "OVS_SYSCONFDIR": folder}

    def _version(self) -> str:
        if not self._version_text:
            self._version_text = self.site.run("ovs-vswitchd", "--version").splitlines()[0].strip()
        return self._version_text

    def _more_facts(self) -> Mapping[str, object]:
        disabled = ["kernel datapath", "IPv6 of the ports", "controller"]
        return {"threads": list(self._thread_lines), "disabled": disabled}
