"""The Linux bridge, which switches frames by their MAC addresses and does not change them."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from routecast.lab.testbed.devices import interfaces
from routecast.lab.testbed.devices.lifecycle import StartedDevice
from routecast.lab.testbed.devices.linux import MAX_SLOWDOWN, SLOWDOWN_TEXT, IngressPrograms
from routecast.lab.testbed.devices.options import DeviceOptions, option
from routecast.lab.testbed.dut_host import DeviceSite, Missing

__all__ = ["Bridge", "BridgeOptions"]

_BRIDGE = "rcbr0"


@dataclass(frozen=True, kw_only=True)
class BridgeOptions(DeviceOptions):
    """Options of the bridge; without ``learning``, the tester's addresses are static entries."""

    slowdown: int = option(0, SLOWDOWN_TEXT, minimum=0, maximum=MAX_SLOWDOWN)
    learning: bool = option(False, "learn MAC addresses and flood unknown ones; otherwise static entries only")


class Bridge(StartedDevice[BridgeOptions]):
    """A bridge without spanning tree, snooping and addresses of its own.

    Its ``process`` reset takes the bridge itself down and up, ``link`` its ports; ``system`` removes the bridge and
    makes it again.
    """

    name = "bridge"
    title = "Linux bridge"
    layer: ClassVar[Literal[2, 3]] = 2
    data_path: ClassVar[Literal["kernel", "process"]] = "kernel"
    options = BridgeOptions
    programs = (Missing(program="bridge", package="iproute2"),)

    def __init__(self, options: BridgeOptions | None = None) -> None:
        super().__init__(options)
        self._ingress = IngressPrograms()

    def counters(self) -> Mapping[str, int]:
        """Return the counts of the ports and of the XDP programs."""
        return interfaces.interface_counters(self.site) | self._ingress.counters()

    def _begin(self, site: DeviceSite) -> None:
        self._configuration += interfaces.disable_ipv6(site)
        learning = "on" if self.chosen.learning else "off"
        lines = [
            f"link add {_BRIDGE} type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
            # Before "up": a bridge that never has IPv6 sends no reports of its own.
            f"link set {_BRIDGE} addrgenmode none",
        ]
        for port in site.ports:
            lines.append(f"link set {port.interface} master {_BRIDGE}")
            lines.append(f"link set {port.interface} type bridge_slave learning {learning} flood {learning}")
            lines.append(f"link set {port.interface} up")
        self._configuration += interfaces.ip_batch(site, lines)
        self._configuration += interfaces.write_settings(site, {f"net/ipv6/conf/{_BRIDGE}/disable_ipv6": 1})
        if not self.chosen.learning:
            self._add_static_entries(site)
        self._configuration += interfaces.ip_batch(site, [f"link set {_BRIDGE} up"])
        interfaces.wait_until_up(site, bridged=True)
        if self.chosen.slowdown:
            self._configuration += self._ingress.attach(site, "slow", iterations=self.chosen.slowdown)

    def _add_static_entries(self, site: DeviceSite) -> None:
        for port in site.ports:
            command = f"bridge fdb replace {port.neighbour_mac} dev {port.interface} master static"
            site.run(*command.split())
            self._configuration.append(command)

    def _end(self, site: DeviceSite) -> None:
        self._ingress.close()
        site.run("ip", "link", "delete", _BRIDGE, check=False)
        interfaces.clear_ports(site)

    def _reset_process(self, site: DeviceSite) -> None:
        interfaces.ip_batch(site, [f"link set {_BRIDGE} down", f"link set {_BRIDGE} up"])
        interfaces.wait_until_up(site, bridged=True)

    def _reset_link(self, site: DeviceSite) -> None:
        interfaces.ports_down(site)
        interfaces.ports_up(site, bridged=True)

    def _version(self) -> str:
        return f"Linux {platform.release()}"

    def _more_facts(self) -> Mapping[str, object]:
        disabled = ["spanning tree", "multicast snooping", "IPv6 of the bridge"]
        return {"disabled": disabled if self.chosen.learning else [*disabled, "learning", "flooding"]}
