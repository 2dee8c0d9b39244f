"""A router of many machines as a device under test: between the ports of a test bed, in the bed's namespace."""

from __future__ import annotations

import platform
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Literal

from routecast.errors import EnvironmentProblem, FileProblem, Problem
from routecast.lab.testbed.devices.interfaces import interface_counters
from routecast.lab.testbed.devices.lifecycle import MACHINE_RESETS, StartedDevice
from routecast.lab.testbed.devices.options import DeviceOptions, option
from routecast.lab.testbed.dut_host import DeviceSite, Missing
from routecast.lab.testbed.tester import back_ends
from routecast.multistage._layout import Outside
from routecast.multistage._membership import MAX_MEMBERS
from routecast.multistage.appliance import FAULTS, Appliance
from routecast.multistage.reading import MultistageFile, RouteTable, SegmentTable, read_multistage
from routecast.version import VERSION

__all__ = ["MultistageDevice", "MultistageOptions"]

_MAX_CAP_PPS = 10_000_000
_BACK_WITHIN_S = 10.0
_POLLS_EVERY_S = 0.01
_MAX_NAME_LENGTH = 12


@dataclass(frozen=True, kw_only=True)
class MultistageOptions(DeviceOptions):
    """Options of a router of many machines.

    ``file``: a ``*.multistage.toml`` with the load balancers, the back-end routers and the detector; the test bed
    replaces its outside networks and routes. Without a file, ``routers``, ``balancers`` and ``cap_pps`` (emulated
    capacity of each back-end router, frames/s, 0 for none) describe the router. ``away_ms``: time between the fault and
    the repair of an element in a reset.
    """

    file: str = option("", "a *.multistage.toml, whose networks are replaced by the test bed's")
    routers: int = option(3, "back-end routers, without a file", minimum=1, maximum=MAX_MEMBERS)
    balancers: int = option(1, "load balancers, without a file", minimum=1, maximum=2)
    cap_pps: int = option(
        0,
        "highest forwarding rate of each back-end router, emulated by XDP, frames/s, without a file; 0: no cap",
        minimum=0,
        maximum=_MAX_CAP_PPS,
    )
    away_ms: int = option(
        300, "time between the fault and the repair of an element in a reset, ms", minimum=1, maximum=60_000
    )

    def __post_init__(self) -> None:
        DeviceOptions.__post_init__(self)
        if self.file and (self.routers, self.balancers, self.cap_pps) != (3, 1, 0):
            message = "sets back-end routers, load balancers and caps: leave routers, balancers and cap_pps out"
            raise FileProblem(type(self).__name__, [Problem("file", message)])


class MultistageDevice(StartedDevice[MultistageOptions]):
    """Linux load balancers and back-end routers that forward as one router; see ``docs/index.md`` of this package.

    A single load balancer has the test bed's ports as its interfaces. Switches connect two load balancers to the ports.
    A reset is a temporary failure of elements, whose flows the other elements take; RFC 6201 only has resets of whole
    routers.
    """

    name = "multistage"
    title = "router of many machines"
    layer: ClassVar[Literal[2, 3]] = 3
    data_path: ClassVar[Literal["kernel", "process"]] = "kernel"
    options = MultistageOptions
    programs = (Missing(program="bridge", package="iproute2"),)
    resets_not_run = MappingProxyType({**MACHINE_RESETS, "process": "the measuring process itself holds the router"})

    def __init__(self, options: MultistageOptions | None = None) -> None:
        super().__init__(options)
        self.file: MultistageFile | None = None
        self._appliance: Appliance | None = None
        self._making = threading.Lock()
        if self.chosen.file:
            try:
                self.file = read_multistage(Path(self.chosen.file))
            except FileProblem as problem:
                problems = [Problem("file", f"{self.chosen.file}: {fault}") for fault in problem.problems]
                raise FileProblem(f"device {self.name}", problems) from problem
        routers = len(self.file.router) if self.file else self.chosen.routers
        balancers = len(self.file.balancer) if self.file else self.chosen.balancers
        elements = ["router", *(["routers"] if routers > 2 else []), *(["balancer"] if balancers > 1 else [])]
        self.reset_kinds = ("system", *(f"{element}-{fault}" for element in elements for fault in FAULTS))

    @property
    def appliance(self) -> Appliance:
        """The router, while the device is started."""
        if self._appliance is None:
            raise EnvironmentProblem(f"device {self.name}: is not started")
        return self._appliance

    def missing(self) -> tuple[Missing, ...]:
        """Return the missing programs, and eBPF if this process cannot use it."""
        why = next(back_end.why_not for back_end in back_ends() if back_end.name == "xdp")
        return (*super().missing(), *([Missing(program="eBPF", why=why)] if why else []))

    def restart(self, kind: str) -> None:
        """Inject faults and repair them after ``away_ms``, or make the whole router again; return when it is back."""
        if kind == "system" or kind not in self.reset_kinds:
            with self._making:
                super().restart(kind)
            return
        elements, _, fault = kind.partition("-")
        victims = self._victims(elements)
        for name in victims:
            self.appliance.fail(name, fault)
        time.sleep(1e-3 * self.chosen.away_ms)
        for name in victims:
            self.appliance.restore(name)
        deadline = time.monotonic() + _BACK_WITHIN_S
        while not all(router["state"] == "active" for router in self.appliance.status()["routers"]):
            if time.monotonic() > deadline:
                raise EnvironmentProblem(f"device {self.name}: {', '.join(victims)} did not come back")
            time.sleep(_POLLS_EVERY_S)

    def _victims(self, elements: str) -> list[str]:
        """Return the elements that fail in a reset: the active load balancer, or the last one or two routers."""
        status = self.appliance.status()
        if elements == "balancer":
            return [balancer["name"] for balancer in status["balancers"] if balancer["state"] == "active"]
        return [router["name"] for router in status["routers"]][-1 if elements == "router" else -2 :]

    def counters(self) -> Mapping[str, int]:
        """Return the counts of the ports, and the drops of load balancers and back-end routers by reason."""
        counts = interface_counters(self.site)
        with self._making:
            status = self.appliance.status()
        drops = Counter(over_the_cap=sum(int(router["over_the_cap"]) for router in status["routers"]))
        for balancer in status["balancers"]:
            drops.update({f"balancer_{reason}": int(frames) for reason, frames in balancer["dropped"].items()})
        return {**counts, **drops, "drop": counts["drop"] + drops.total()}

    def _begin(self, site: DeviceSite) -> None:
        netns = site.netns
        assert netns is not None  # a start without a namespace is refused
        outside = Outside(
            netns=netns,
            interfaces=tuple(port.interface for port in site.ports),
            macs=tuple(port.mac for port in site.ports),
            neighbours={
                address: (port.neighbour_mac, s)
                for s, port in enumerate(site.ports)
                for address in (port.neighbour_ipv4, port.neighbour_ipv6)
                if address
            },
        )
        self._appliance = Appliance(self._file_on(site), outside=outside).__enter__()
        file = self._appliance.file
        self._configuration = [f"{balancer.name}: load balancer" for balancer in file.balancer]
        for router in file.router:
            cap = f", {router.cap:g} frames/s at most (emulated by XDP)" if router.cap else ""
            self._configuration.append(f"{router.name}: back-end router{cap}")

    def _end(self, site: DeviceSite) -> None:
        appliance, self._appliance = self._appliance, None
        if appliance is not None:
            with suppress(EnvironmentProblem):  # the bed's namespace may be gone already
                appliance.end()

    def _reset_process(self, site: DeviceSite) -> None:
        raise AssertionError("not among reset_kinds")

    def _reset_link(self, site: DeviceSite) -> None:
        raise AssertionError("not among reset_kinds")

    def _version(self) -> str:
        return f"routecast {VERSION}, Linux {platform.release()}"

    def planned(self) -> MultistageFile:
        """Return the router of the options, with two networks in place of those of a test bed."""
        segments = [
            SegmentTable(name=f"port{s}", ipv4=f"198.{18 + s}.1.1/24", host_ipv4=f"198.{18 + s}.1.2") for s in (0, 1)
        ]
        return self._file_of("planned", segments)

    def _file_on(self, site: DeviceSite) -> MultistageFile:
        """Return the router of the options between the ports of a test bed."""
        local = dict(enumerate(segment.local for segment in self.file.segment)) if self.file else {}
        segments = []
        for s, port in enumerate(site.ports):
            segment = {"name": f"port{s}", "ipv4": port.ipv4, "host_ipv4": port.neighbour_ipv4, "local": local.get(s)}
            if port.ipv6 and port.neighbour_ipv6:
                segment |= {"ipv6": port.ipv6, "host_ipv6": port.neighbour_ipv6}
            segments.append(SegmentTable.model_validate(segment))
        routes = [
            RouteTable(to=network, via=via)
            for port in site.ports
            for via, networks in ((port.neighbour_ipv4, port.networks_ipv4), (port.neighbour_ipv6, port.networks_ipv6))
            for network in networks
        ]
        return self._file_of(f"{site.folder.name[: _MAX_NAME_LENGTH - 3]}-ms", segments, routes)

    def _file_of(
        self, name: str, segments: Sequence[SegmentTable], routes: Sequence[RouteTable] = ()
    ) -> MultistageFile:
        chosen = self.chosen
        cap = {"cap": f"{chosen.cap_pps} pps"} if chosen.cap_pps else {}
        file = self.file or MultistageFile.model_validate(
            {
                "name": "options",
                "segment": segments,
                "balancer": [{"name": f"lb{n}"} for n in range(chosen.balancers)],
                "router": [{"name": f"br{n}", **cap} for n in range(chosen.routers)],
            }
        )
        return file.model_copy(update={"name": name, "segment": tuple(segments), "route": tuple(routes)})
