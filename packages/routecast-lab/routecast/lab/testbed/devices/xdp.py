"""An XDP forwarder: an eBPF program of routecast that looks up the kernel's routes."""

from __future__ import annotations

from dataclasses import dataclass

from routecast.lab.testbed.devices.linux import KernelRouter, RouterOptions
from routecast.lab.testbed.dut_host import DeviceSite, Missing
from routecast.lab.testbed.tester import back_ends

__all__ = ["Xdp", "XdpOptions"]


@dataclass(frozen=True, kw_only=True)
class XdpOptions(RouterOptions):
    """Options of the XDP forwarder: those of every router."""


class Xdp(KernelRouter[XdpOptions]):
    """XDP on both ports: look up the kernel's forwarding table, rewrite the header, redirect to the other port.

    Frames never become socket buffers. Frames without a route or neighbour take the kernel's own path. A
    veth port takes redirected frames only if the other end of its wire has an XDP program or generic receive offload.
    Its ``process`` reset detaches and attaches the programs.
    """

    name = "xdp"
    title = "XDP forwarder"
    options = XdpOptions
    keeps_tags = True
    """Routed frames keep their VLAN tags, so that the device needs no sub-interfaces."""

    def missing(self) -> tuple[Missing, ...]:
        """Return the missing programs, and eBPF if this process cannot use it."""
        why = next(back_end.why_not for back_end in back_ends() if back_end.name == "xdp")
        return (*super().missing(), *([Missing(program="eBPF", why=why)] if why else []))

    def _attach_programs(self, site: DeviceSite) -> list[str]:
        return self._ingress.attach(site, "forward", iterations=self.chosen.slowdown)

    def _reset_process(self, site: DeviceSite) -> None:
        self._ingress.close()
        self._switch_forwarding(site, on=False)
        self._switch_forwarding(site, on=True)
        self._attach_programs(site)
