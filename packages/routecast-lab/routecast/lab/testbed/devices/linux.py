"""Linux IP forwarding, and the parts that all kernel routers share: options, XDP programs at the ports, resets."""

from __future__ import annotations

import json
import platform
import threading
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from routecast.errors import EnvironmentProblem, FileProblem, Problem
from routecast.lab.testbed.devices import interfaces
from routecast.lab.testbed.devices.lifecycle import StartedDevice
from routecast.lab.testbed.devices.options import DeviceOptions, option
from routecast.lab.testbed.dut_host import DeviceSite, Missing
from routecast.lab.testbed.management import SNMPD, SnmpAgent
from routecast.lab.testbed.tester import error_text

__all__ = [
    "MAX_SLOWDOWN",
    "ROUTES_TEXT",
    "SLOWDOWN_TEXT",
    "IngressPrograms",
    "KernelRouter",
    "Linux",
    "LinuxOptions",
    "RouterOptions",
    "SteeredOptions",
    "abridged",
]

MAX_SLOWDOWN = 100_000
_MAX_CORES = 4096
_MAX_ROUTES = 65_536
_MAX_LINES = 8
SLOWDOWN_TEXT = "iterations of known work that XDP spends on each frame at the receiving port"
ROUTES_TEXT = "further routes that no test frame uses, so that the forwarding table is not empty"

_O = TypeVar("_O", bound="RouterOptions")


@dataclass(frozen=True, kw_only=True)
class RouterOptions(DeviceOptions):
    """Options of every kernel router.

    ``slowdown`` makes a machine stand in for slower hardware; an iteration takes about 2.4 ns at 2.3 GHz, and 0
    attaches no program. ``snmp`` is for the management queries of RFC 2544 sec. 11.2.
    """

    slowdown: int = option(0, SLOWDOWN_TEXT, minimum=0, maximum=MAX_SLOWDOWN)
    ipv6: bool = option(True, "forward IPv6 too")
    snmp: bool = option(False, "run an SNMP agent (snmpd), which answers management queries")


@dataclass(frozen=True, kw_only=True)
class SteeredOptions(RouterOptions):
    """Options of a router whose frames the kernel's network stack forwards.

    The first of ``cores`` polls the receiving port; receive packet steering (RPS) spreads the flows over all of them. A
    flow stays on one core.
    """

    cores: int = option(
        1, "cores that forward: receive packet steering spreads the flows over them", minimum=1, maximum=_MAX_CORES
    )

    def __post_init__(self) -> None:
        DeviceOptions.__post_init__(self)
        if self.cores > 1 and self.slowdown:
            message = f"is spent on the core that receives, and cannot be spread over cores = {self.cores}: use 0"
            raise FileProblem(type(self).__name__, [Problem("slowdown", message)])


@dataclass(frozen=True, kw_only=True)
class LinuxOptions(SteeredOptions):
    """Options of Linux IP forwarding; with ``ipv6`` the device has as many further IPv6 ``routes``."""

    routes: int = option(0, ROUTES_TEXT, minimum=0, maximum=_MAX_ROUTES)


class IngressPrograms:
    """One XDP program on each port of a device, from :meth:`attach` to :meth:`close`.

    ::

        frame ─► port ─► XDP: work per packet ─► the kernel's path     (program "slow")
                         XDP: look up, rewrite, redirect to a port     (program "forward")
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._programs: dict[str, Any] = {}
        # A device is reset in one thread while its counters are read in another.
        self._lock = threading.Lock()

    def attach(self, site: DeviceSite, program: str, *, iterations: int) -> list[str]:
        """Attach ``program`` to every port and return a line for each.

        The program spends ``iterations`` of known work on each frame. Raises EnvironmentProblem: the kernel refuses the
        program, or the right to load it is missing.
        """
        from routecast.lab._lab import TesterError, attach_xdp

        lines = []
        for port in site.ports:
            configuration = {
                "program": program,
                "interface": port.interface,
                "netns": site.netns_path,
                "iterations": iterations,
            }
            with self._lock:
                try:
                    attached = attach_xdp(json.dumps(configuration))
                except TesterError as problem:
                    message = f"port {port.interface} of the device needs eBPF"
                    raise EnvironmentProblem(f"{message} (program {program}): {error_text(problem)}") from problem
                self._stack.callback(attached.close)
                self._programs[port.interface] = attached
            lines.append(f"xdp {port.interface}: program {program}, {iterations} iterations of work per packet")
        return lines

    def counters(self) -> dict[str, int]:
        """Return the counts of each program: ``d0_xdp_forwarded``, …"""
        counts: dict[str, int] = {}
        with self._lock:
            for interface, program in self._programs.items():
                for name, number in json.loads(program.counters()).items():
                    counts[f"{interface}_xdp_{name}"] = number
        return counts

    def close(self) -> None:
        """Detach all programs; a second call does nothing."""
        with self._lock:
            self._programs.clear()
            self._stack.close()


class KernelRouter(StartedDevice[_O]):
    """A router whose addresses, neighbours and settings are the kernel's.

    Its ``process`` reset switches forwarding off and on again, since no process forwards; ``link`` takes the ports down
    and up; ``system`` removes the configuration and sets it again.
    """

    layer: ClassVar[Literal[2, 3]] = 3
    data_path: ClassVar[Literal["kernel", "process"]] = "kernel"

    def __init__(self, options: _O | None = None) -> None:
        super().__init__(options)
        self._ingress = IngressPrograms()
        self._agent = SnmpAgent()

    def missing(self) -> tuple[Missing, ...]:
        """Return the missing programs."""
        needs_agent = self.chosen.snmp and not Path(SNMPD.program).exists()
        return super().missing() + ((SNMPD,) if needs_agent else ())

    def counters(self) -> Mapping[str, int]:
        """Return the counts of the ports, of IP and of the XDP programs.

        Raises DeviceEnded: the SNMP agent has ended by itself.
        """
        self._agent.check()
        counts = interfaces.interface_counters(self.site)
        ip_counts = interfaces.ip_counters(self.site)
        counts["drop"] += sum(number for name, number in ip_counts.items() if not name.endswith("_forwarded"))
        return counts | ip_counts | self._ingress.counters()

    def _begin(self, site: DeviceSite) -> None:
        self._configure(site)
        self._configuration += self._attach_programs(site)
        if self.chosen.snmp:
            self._agent.start(site)

    def _end(self, site: DeviceSite) -> None:
        self._agent.stop(site)
        self._ingress.close()
        interfaces.clear_ports(site)
        with suppress(EnvironmentProblem):  # the namespace is gone, and its settings with it
            self._switch_forwarding(site, on=False)

    def _configure(self, site: DeviceSite) -> None:
        settings = interfaces.router_settings(site, ipv6=self.chosen.ipv6)
        self._configuration += interfaces.write_settings(site, settings)
        lines = interfaces.port_lines(site, ipv6=self.chosen.ipv6) + self._extra_route_lines(site)
        commands = interfaces.ip_batch(site, lines)
        routes = [line for line in commands if line.startswith("ip route ")]
        self._configuration += [line for line in commands if not line.startswith("ip route ")]
        self._configuration += abridged(routes)
        interfaces.wait_until_up(site)
        if site.cpu is not None and site.more_cpus:
            self._configuration += interfaces.steer_packets(site, (site.cpu, *site.more_cpus))

    def _extra_route_lines(self, site: DeviceSite) -> list[str]:
        return []

    def _attach_programs(self, site: DeviceSite) -> list[str]:
        if self.chosen.slowdown == 0:
            return []
        return self._ingress.attach(site, "slow", iterations=self.chosen.slowdown)

    def _switch_forwarding(self, site: DeviceSite, *, on: bool) -> None:
        switch = {"net/ipv4/ip_forward": int(on)}
        if self.chosen.ipv6:
            switch["net/ipv6/conf/all/forwarding"] = int(on)
        interfaces.write_settings(site, switch)

    def _reset_process(self, site: DeviceSite) -> None:
        self._switch_forwarding(site, on=False)
        self._switch_forwarding(site, on=True)

    def _reset_link(self, site: DeviceSite) -> None:
        interfaces.ports_down(site)
        self._configuration = []
        self._configure(site)

    def _version(self) -> str:
        return f"Linux {platform.release()}"

    def _more_facts(self) -> Mapping[str, object]:
        disabled = ["reverse-path filter", "ICMP redirects", "router advertisements", "IPv6 address configuration"]
        return {"disabled": disabled if self.chosen.ipv6 else [*disabled, "IPv6"]}


class Linux(KernelRouter[LinuxOptions]):
    """IPv4 and IPv6 forwarding by the kernel, in both directions."""

    name = "linux"
    title = "Linux IP forwarding"
    options = LinuxOptions

    def _extra_route_lines(self, site: DeviceSite) -> list[str]:
        return interfaces.extra_routes(site, self.chosen.routes, ipv6=self.chosen.ipv6)


def abridged(lines: list[str]) -> list[str]:
    """Return the first and last lines of a long list; a short list stays as it is."""
    if len(lines) <= _MAX_LINES:
        return lines
    half = _MAX_LINES // 2
    return [*lines[:half], f"… {len(lines) - 2 * half} more, in order", *lines[-half:]]
