"""FRR: routes set by a routing daemon, frames forwarded by the kernel."""

from __future__ import annotations

import pwd
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from routecast.errors import EnvironmentProblem
from routecast.testbed.devices import interfaces
from routecast.testbed.devices.linux import ROUTES_TEXT, KernelRouter, SteeredOptions, first_and_last
from routecast.testbed.devices.options import option
from routecast.testbed.devices.processes import Processes, accepts, check_socket_path
from routecast.testbed.dut_host import DeviceSite, Missing

__all__ = ["Frr", "FrrOptions"]

_DAEMONS = Path("/usr/lib/frr")
_CRASH_LOGS = Path("/var/tmp/frr")
_USER = "frr"
_LONGEST_ROUTING_S = 60.0
_POLL_S = 0.1
_ROUTE_WORDS = ("ip route ", "ipv6 route ", "… ")
_MOST_ROUTES = 5000  # staticd takes about 1.5 ms for each
# Not taken away at the end, and at the start not before staticd has had 60 s to claim them.
_RETAINING = ["--retain", "--graceful_restart", "60"]
# The file is one transaction: committed line by line, it takes time with the square of its length.
_AT_ONCE = ["--tcli"]
_PROTOCOL = "196"  # of staticd's routes in the kernel; its name is that of the kernel's own static routes


@dataclass(frozen=True, kw_only=True)
class FrrOptions(SteeredOptions):
    """Options of FRR.

    Parameters
    ----------
    routes : int
        Further static routes that no test frame uses (of IPv4, and as many of IPv6 if that is on).
    retain : bool
        Leave the routes in the kernel while ``zebra`` is being restarted (its options ``--retain`` and
        ``--graceful_restart``), so that forwarding goes on; otherwise ``zebra`` takes them away as it ends.
    """

    routes: int = option(0, ROUTES_TEXT, minimum=0, maximum=_MOST_ROUTES)
    retain: bool = option(False, "leave the routes in the kernel while zebra is restarted")


class Frr(KernelRouter[FrrOptions]):
    """``zebra`` and ``staticd`` install the routes behind the neighbours; the kernel forwards.

    ::

        frr.conf ─► staticd ─► zebra ─► the kernel's forwarding table ─► d0 ◄─► d1

    Its ``process`` reset ends both daemons and starts them again. What is sent to hosts of the directly connected
    networks is forwarded all the while; what is sent to the routed networks is lost until the routes are back, unless
    ``retain`` is on. Sockets, process ids and configuration lie in the site's folder.
    """

    name = "frr"
    title = "FRR routes, Linux IP forwarding"
    options = FrrOptions
    programs = tuple(Missing(program=str(_DAEMONS / daemon), package="frr") for daemon in ("zebra", "staticd"))

    def __init__(self, options: FrrOptions | None = None) -> None:
        super().__init__(options)
        self._daemons = Processes()
        self._process_ids: list[int] = []
        self._version_text = ""

    def counters(self) -> Mapping[str, int]:
        """Return the counts of the ports, of IP and of the XDP programs.

        Raises
        ------
        routecast.errors.DeviceEnded
            A daemon has ended by itself: the kernel may forward on, yet nobody keeps its routes.
        """
        self._daemons.check()
        return super().counters()

    def _configure(self, site: DeviceSite) -> None:
        settings = interfaces.router_settings(site, ipv6=self.chosen.ipv6)
        self._configuration += interfaces.write_settings(site, settings)
        lines = interfaces.port_lines(site, ipv6=self.chosen.ipv6)
        of_kernel = [line for line in lines if not line.startswith("route ")]
        self._configuration += interfaces.ip_batch(site, of_kernel)
        interfaces.wait_until_up(site)
        self._start_daemons(site)

    def _end(self, site: DeviceSite) -> None:
        self._stop_daemons(site)
        shutil.rmtree(self._folder(site), ignore_errors=True)
        for daemon in ("zebra", "staticd"):
            (site.folder / f"{daemon}.log").unlink(missing_ok=True)
        super()._end(site)

    def _reset_process(self, site: DeviceSite) -> None:
        self._stop_daemons(site)
        self._start_daemons(site)

    def _reset_link(self, site: DeviceSite) -> None:
        # The daemons see their ports go and come, as a router's do; the kernel's part is set again.
        interfaces.ports_down(site)
        lines = interfaces.port_lines(site, ipv6=self.chosen.ipv6)
        interfaces.ip_batch(site, [line for line in lines if not line.startswith("route ")])
        interfaces.wait_until_up(site)
        self._wait_for_routes(site)

    def _start_daemons(self, site: DeviceSite) -> None:
        folder = self._folder(site)
        check_socket_path(folder / "staticd.vty")
        _check_reachable(site.folder)
        folder.mkdir(parents=True, exist_ok=True)
        user = pwd.getpwnam(_USER)
        shutil.chown(folder, user.pw_uid, user.pw_gid)
        wanted = self._route_lines(site)
        file = folder / "frr.conf"
        file.write_text("\n".join([*wanted, ""]), encoding="utf-8")
        kept = [line for line in self._configuration if not line.startswith(_ROUTE_WORDS)]
        self._configuration = kept + first_and_last(wanted)
        for daemon, more in (("zebra", _RETAINING if self.chosen.retain else []), ("staticd", _AT_ONCE)):
            command = [
                str(_DAEMONS / daemon),
                *("-f", str(file), "-i", str(folder / f"{daemon}.pid"), "-z", str(folder / "zserv.api")),
                *("--vty_socket", str(folder), "-u", _USER, "-g", _USER, "-P", "0", *more),
            ]
            # A crash log, and vtysh's history, go where HOME says.
            process = self._daemons.spawn(site, daemon, *command, environment={"HOME": str(folder)})
            self._process_ids.append(process.pid)
            self._daemons.wait_for(partial(accepts, folder / f"{daemon}.vty"), daemon)
        self._wait_for_routes(site)

    def _stop_daemons(self, site: DeviceSite) -> None:
        # A zebra that outlives staticd takes its routes away, retained or not.
        self._daemons.stop(first_first=True)
        for number in self._process_ids:
            for folder in _CRASH_LOGS.glob(f"*.{number}"):
                shutil.rmtree(folder, ignore_errors=True)
        self._process_ids.clear()
        with suppress(OSError):  # others' logs, or no folder
            _CRASH_LOGS.rmdir()
        for socket in self._folder(site).glob("*.[va][tp][yi]"):
            socket.unlink(missing_ok=True)

    def _wait_for_routes(self, site: DeviceSite) -> None:
        wanted = len(self._route_lines(site))

        def are_there() -> bool:
            found = site.run("ip", "route", "show", "proto", _PROTOCOL).splitlines()
            found6 = site.run("ip", "-6", "route", "show", "proto", _PROTOCOL).splitlines()
            return len(found) + len(found6) >= wanted

        self._daemons.wait_for(are_there, f"the kernel's {wanted} routes of FRR", longest_s=_LONGEST_ROUTING_S)

    def _route_lines(self, site: DeviceSite) -> list[str]:
        lines = [line for line in interfaces.port_lines(site, ipv6=self.chosen.ipv6) if line.startswith("route ")]
        lines += interfaces.extra_routes(site, self.chosen.routes, ipv6=self.chosen.ipv6)
        return [_static_route(line) for line in lines]

    @staticmethod
    def _folder(site: DeviceSite) -> Path:
        return site.folder / "frr"

    def _version(self) -> str:
        if not self._version_text:
            said = self.site.run(str(_DAEMONS / "zebra"), "--version").splitlines()[0]
            self._version_text = said.removeprefix("zebra version").strip()
        return f"FRR {self._version_text}, {super()._version()}"


def _static_route(line: str) -> str:
    """Return FRR's words for ``route replace NETWORK via GATEWAY dev INTERFACE``."""
    words = line.split()
    network, gateway, interface = words[2], words[4], words[6]
    family = "ipv6" if ":" in network else "ip"
    return f"{family} route {network} {gateway} {interface}"


def _check_reachable(folder: Path) -> None:
    """Refuse a folder that the daemons' user cannot enter."""
    for one in (folder, *folder.parents):
        if not one.stat().st_mode & 0o001:
            raise EnvironmentProblem(f"{one}: user {_USER} cannot enter it; chmod o+x {one}")
