"""An XDP forwarder: routecast's own eBPF program, looking up the kernel's routes."""

from __future__ import annotations

from dataclasses import dataclass

from routecast.testbed.devices.linux import KernelRouter, RouterOptions
from routecast.testbed.site import DeviceSite

__all__ = ["Xdp", "XdpOptions"]


@dataclass(frozen=True, kw_only=True)
class XdpOptions(RouterOptions):
    """Options of the XDP forwarder: those of every router."""


class Xdp(KernelRouter[XdpOptions]):
    """XDP on both ports: look up the kernel's forwarding table, rewrite the header, redirect to the other port.

    Frames never become socket buffers. What the table or the neighbours do not know goes to the kernel's own path. A
    veth port takes redirected frames only if the other end of its wire has an XDP program or generic receive offload.
    Its ``process`` reset detaches and attaches the programs.
    """

    name = "xdp"
    title = "XDP forwarder"
    options = XdpOptions

    def _attach(self, site: DeviceSite) -> list[str]:
        return self._ingress.attach(site, "forward", iterations=self.chosen.slowdown)

    def _reset_process(self, site: DeviceSite) -> None:
        self._ingress.close()
        self._switch_forwarding(site, on=False)
        self._switch_forwarding(site, on=True)
        self._attach(site)
