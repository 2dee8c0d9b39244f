"""A router of many machines as a device under test: between the ports of a test bed, in the bed's namespace."""

from __future__ import annotations

import platform
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Literal

from routecast import __version__
from routecast.errors import EnvironmentProblem, FileProblem, Problem
from routecast.multistage._layout import Outside
from routecast.multistage._membership import MAX_MEMBERS
from routecast.multistage.appliance import FAULTS, Appliance
from routecast.multistage.reading import MultistageFile, RouteTable, SegmentTable, read_multistage
from routecast.quantity.did_you_mean import did_you_mean
from routecast.testbed.devices.interfaces import interface_counters
from routecast.testbed.devices.lifecycle import MACHINE_RESETS, StartedDevice
from routecast.testbed.devices.options import DeviceOptions, option
from routecast.testbed.dut_host import DeviceSite, Missing
from routecast.testbed.tester import back_ends

__all__ = ["MultistageDevice", "MultistageOptions"]

_MAX_CAP_PPS = 10_000_000
_BACK_WITHIN_S = 10.0
_LOOKS_EVERY_S = 0.01
_MAX_NAME_LETTERS = 12


@dataclass(frozen=True, kw_only=True)
class MultistageOptions(DeviceOptions):
    """Options of a router of many machines.

    ``file``: a ``*.multistage.toml`` whose load balancers, back-end routers and detector are taken; its outside
    networks and routes are replaced by those of the test bed. Empty: made of the options that follow; ``routers``:
    back-end routers, without a file; ``balancers``: load balancers, without a file; ``cap_pps``: of each back-end
    router, emulated by XDP; 0 for none. Without a file; ``away_ms``: how long an element stays away in a reset.
    """

    file: str = option("", "a *.multistage.toml, whose networks are replaced by the test bed's")
    routers: int = option(3, "back-end routers, where there is no file", minimum=1, maximum=MAX_MEMBERS)
    balancers: int = option(1, "load balancers, where there is no file", minimum=1, maximum=2)
    cap_pps: int = option(
        0,
        "frames/s that each back-end router forwards at most (emulated by XDP), where there is no file; 0: no cap",
        minimum=0,
        maximum=_MAX_CAP_PPS,
    )
    away_ms: int = option(300, "how long an element stays away in a reset, ms", minimum=1, maximum=60_000)

    def __post_init__(self) -> None:
        DeviceOptions.__post_init__(self)
        others = (self.routers, self.balancers, self.cap_pps) != (3, 1, 0)
        if self.file and others:
            text = "says routers, load balancers and caps itself: leave routers, balancers and cap_pps out"
            raise FileProblem(type(self).__name__, [Problem("file", text)])


class MultistageDevice(StartedDevice[MultistageOptions]):
    """Load balancers and back-end routers of Linux that are one router; see ``docs/index.md`` of this package.

    With one load balancer the test bed's ports are its own; with two, switches join them. Resets are failures of
    elements that come back (RFC 6201 has resets of whole routers only): the rest of the router takes their flows.
    """

    name = "multistage"
    title = "router of many machines"
    layer: ClassVar[Literal[2, 3]] = 3
    data_path: ClassVar[Literal["kernel", "process"]] = "kernel"
    options = MultistageOptions
    programs = (Missing(program="bridge", package="iproute2"),)
    resets_not_run = MappingProxyType(
        {**MACHINE_RESETS, "process": "the process that holds it is the one that measures"}
    )

    def __init__(self, options: MultistageOptions | None = None) -> None:
        super().__init__(options)
        self.file: MultistageFile | None = None
        self._appliance: Appliance | None = None
        self._making = threading.Lock()
        if self.chosen.file:
            try:
                self.file = read_multistage(Path(self.chosen.file))
            except FileProblem as problem:
                first, *more = problem.problems
                text = f"{self.chosen.file}: {first.place + ': ' if first.place else ''}{first.message}"
                text += f"; and {len(more)} more" if more else ""
                raise FileProblem(f"device {self.name}", [Problem("file", text)]) from problem
        doubled = len(self.file.balancer) > 1 if self.file else self.chosen.balancers > 1
        routers = len(self.file.router) if self.file else self.chosen.routers
        kinds = ["system", *(f"router-{kind}" for kind in FAULTS)]
        kinds += [f"routers-{kind}" for kind in FAULTS] if routers > 2 else []
        kinds += [f"balancer-{kind}" for kind in FAULTS] if doubled else []
        self.reset_kinds = tuple(kinds)

    @property
    def appliance(self) -> Appliance:
        """The router, while the device is started."""
        if self._appliance is None:
            raise EnvironmentProblem(f"device {self.name}: is not started")
        return self._appliance

    def missing(self) -> tuple[Missing, ...]:
        """Return the missing programs, and eBPF where this process cannot use it."""
        why = next(back_end.why_not for back_end in back_ends() if back_end.name == "xdp")
        return (*super().missing(), *([Missing(program="eBPF", why=why)] if why else []))

    def restart(self, kind: str) -> None:
        """Let an element fail, stay away and come back, or make the whole router anew; return when it is back."""
        if kind not in self.reset_kinds:
            reason = self.resets_not_run.get(kind) or did_you_mean(kind, self.reset_kinds)
            raise FileProblem(f"device {self.name}", [Problem("reset", f'"{kind}" is not run: {reason}')])
        if kind == "system":
            try:
                with self._making:
                    self._reset_system(self.site)
            except BaseException:
                self.stop()
                raise
            return
        of, _, fault = kind.partition("-")
        victims = self.victims(of)
        for name in victims:
            self.appliance.fail(name, fault)
        time.sleep(1e-3 * self.chosen.away_ms)
        for name in victims:
            self.appliance.restore(name)
        deadline = time.monotonic() + _BACK_WITHIN_S
        while not all(router["state"] == "active" for router in self.appliance.status()["routers"]):
            if time.monotonic() > deadline:
                raise EnvironmentProblem(f"device {self.name}: {', '.join(victims)} did not come back")
            time.sleep(_LOOKS_EVERY_S)

    def victims(self, of: str) -> list[str]:
        """Return the elements that fail in a reset: the last back-end routers, or the active load balancer."""
        status = self.appliance.status()
        if of == "balancer":
            return [balancer["name"] for balancer in status["balancers"] if balancer["state"] == "active"]
        return [router["name"] for router in status["routers"]][-1 if of == "router" else -2 :]

    def counters(self) -> Mapping[str, int]:
        """Return the counts of the ports, and what load balancers and back-end routers dropped."""
        counts = dict(interface_counters(self.site))
        with self._making:
            status = self.appliance.status()
        dropped: dict[str, int] = {}
        for balancer in status["balancers"]:
            for reason, frames in balancer["dropped"].items():
                dropped[f"balancer_{reason}"] = dropped.get(f"balancer_{reason}", 0) + int(frames)
        dropped["over_the_cap"] = sum(int(router["over_the_cap"]) for router in status["routers"])
        counts["drop"] += sum(dropped.values())
        return counts | dropped

    def _begin(self, site: DeviceSite) -> None:
        netns = site.netns
        assert netns is not None  # a start without is refused
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
        appliance = Appliance(self.file_on(site), outside=outside)
        appliance.__enter__()
        self._appliance, file = appliance, appliance.file
        self._configuration = [
            *(f"{balancer.name}: load balancer" for balancer in file.balancer),
            *(
                f"{router.name}: back-end router"
                + (f", {router.cap:g} frames/s at most (emulated by XDP)" if router.cap else "")
                for router in file.router
            ),
        ]

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
        return f"routecast {__version__}, Linux {platform.release()}"

    def planned(self) -> MultistageFile:
        """Return the router of the options without the networks of a test bed."""
        return self._file_of(
            "planned",
            [SegmentTable(name=f"port{s}", ipv4=f"198.{18 + s}.1.1/24", host_ipv4=f"198.{18 + s}.1.2") for s in (0, 1)],
        )

    def file_on(self, site: DeviceSite) -> MultistageFile:
        """Return the router between the ports of a test bed."""
        base = self.file
        local = [segment.local for segment in base.segment] if base is not None else []
        segments = []
        for s, port in enumerate(site.ports):
            segment = {"name": f"port{s}", "ipv4": port.ipv4, "host_ipv4": port.neighbour_ipv4}
            if port.ipv6 and port.neighbour_ipv6:
                segment |= {"ipv6": port.ipv6, "host_ipv6": port.neighbour_ipv6}
            if s < len(local) and local[s]:
                segment["local"] = str(local[s])
            segments.append(SegmentTable.model_validate(segment))
        routes = [
            RouteTable.model_validate({"to": network, "via": via})
            for port in site.ports
            for via, networks in ((port.neighbour_ipv4, port.networks_ipv4), (port.neighbour_ipv6, port.networks_ipv6))
            for network in networks
        ]
        return self._file_of(f"{site.folder.name[: _MAX_NAME_LETTERS - 3]}-ms", segments, routes)

    def _file_of(
        self, name: str, segments: Sequence[SegmentTable], routes: Sequence[RouteTable] = ()
    ) -> MultistageFile:
        outside = {"name": name, "segment": tuple(segments), "route": tuple(routes)}
        if self.file is not None:
            return self.file.model_copy(update=outside)
        chosen = self.chosen
        cap = {"cap": f"{chosen.cap_pps} pps"} if chosen.cap_pps else {}
        made = MultistageFile.model_validate(
            {
                "name": "made",
                "segment": segments,
                "balancer": [{"name": f"lb{n}"} for n in range(chosen.balancers)],
                "router": [{"name": f"br{n}", **cap} for n in range(chosen.routers)],
            }
        )
        return made.model_copy(update=outside)
