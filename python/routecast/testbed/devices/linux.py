"""Linux IP forwarding: the kernel's own router."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, TypeVar

from routecast.errors import EnvironmentProblem, FileProblem, Problem
from routecast.testbed.devices import interfaces
from routecast.testbed.devices.ingress import IngressPrograms
from routecast.testbed.devices.lifecycle import StartedDevice
from routecast.testbed.devices.options import DeviceOptions, option
from routecast.testbed.dut_host import DeviceSite, Missing
from routecast.testbed.management import SNMPD, SnmpAgent

__all__ = [
    "LARGEST_SLOWDOWN",
    "ROUTES_TEXT",
    "SLOWDOWN_TEXT",
    "KernelRouter",
    "Linux",
    "LinuxOptions",
    "RouterOptions",
    "SteeredOptions",
    "first_and_last",
]

LARGEST_SLOWDOWN = 100_000
_MOST_CORES = 4096
_MOST_ROUTES = 65_536
_MOST_LINES = 8
SLOWDOWN_TEXT = "iterations of known work that XDP spends on each frame at the receiving port"
ROUTES_TEXT = "further routes that no test frame uses, so that the forwarding table is not empty"

_O = TypeVar("_O", bound="RouterOptions")


@dataclass(frozen=True, kw_only=True)
class RouterOptions(DeviceOptions):
    """Options of every kernel router.

    ``slowdown`` lets one machine stand in for slower hardware; an iteration takes about 2.4 ns at 2.3 GHz, and 0
    attaches no program. ``snmp`` is for the management queries of RFC 2544 sec. 11.2.
    """

    slowdown: int = option(0, SLOWDOWN_TEXT, minimum=0, maximum=LARGEST_SLOWDOWN)
    ipv6: bool = option(True, "forward IPv6 too")
    snmp: bool = option(False, "run an SNMP agent (snmpd), which answers management queries")


@dataclass(frozen=True, kw_only=True)
class SteeredOptions(RouterOptions):
    """Options of a router whose frames the kernel's network stack forwards.

    The first of ``cores`` polls the receiving port; receive packet steering (RPS) spreads the flows over all of them. A
    flow stays on one core.
    """

    cores: int = option(
        1, "cores that forward: receive packet steering spreads the flows over them", minimum=1, maximum=_MOST_CORES
    )

    def __post_init__(self) -> None:
        DeviceOptions.__post_init__(self)
        if self.cores > 1 and self.slowdown:
            message = f"is spent on the core that receives, and cannot be spread over cores = {self.cores}: use 0"
            raise FileProblem(type(self).__name__, [Problem("slowdown", message)])


@dataclass(frozen=True, kw_only=True)
class LinuxOptions(SteeredOptions):
    """Options of Linux IP forwarding; with ``ipv6`` there are as many further ``routes`` of IPv6."""

    routes: int = option(0, ROUTES_TEXT, minimum=0, maximum=_MOST_ROUTES)


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
        counts["drop"] += sum(number for place, number in ip_counts.items() if not place.endswith("_forwarded"))
        return counts | ip_counts | self._ingress.counters()

    def _begin(self, site: DeviceSite) -> None:
        self._configure(site)
        self._configuration += self._attach(site)
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
        lines = interfaces.port_lines(site, ipv6=self.chosen.ipv6) + self._routes(site)
        done = interfaces.ip_batch(site, lines)
        routes = [line for line in done if line.startswith("ip route ")]
        self._configuration += [line for line in done if not line.startswith("ip route ")]
        self._configuration += first_and_last(routes)
        interfaces.wait_until_up(site)
        if site.cpu is not None and site.more_cpus:
            self._configuration += interfaces.steer_packets(site, (site.cpu, *site.more_cpus))

    def _routes(self, site: DeviceSite) -> list[str]:
        return []

    def _attach(self, site: DeviceSite) -> list[str]:
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

    def _routes(self, site: DeviceSite) -> list[str]:
        return interfaces.extra_routes(site, self.chosen.routes, ipv6=self.chosen.ipv6)


def first_and_last(lines: list[str]) -> list[str]:
    """Return the first and last lines of a long list; a short list stays as it is."""
    if len(lines) <= _MOST_LINES:
        return lines
    half = _MOST_LINES // 2
    return [*lines[:half], f"… {len(lines) - 2 * half} more, in order", *lines[-half:]]
