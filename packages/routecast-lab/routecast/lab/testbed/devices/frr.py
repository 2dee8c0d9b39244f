"""FRR, whose daemons install routes and whose frames the kernel forwards.

The routes are static, or learnt from a BGP neighbour that announces the networks behind a port of the tester::

    the tester's namespace             the device's namespace
      bgpd (AS 64512) ──── wire ──── bgpd (AS 64513) ─► zebra ─► the kernel's forwarding table

RFC 2544 sec. 13 wants a routing update at the start of each trial, sec. 11.3 updates during the trial. Its appendix
uses RIP; BGP serves IPv4 and IPv6, and acknowledges updates. The session has no keepalives, so that only
wanted updates are on the wire.
"""

from __future__ import annotations

import json
import pwd
import shutil
import socket
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from routecast.errors import EnvironmentProblem
from routecast.evaluate.trial import Trial
from routecast.lab.testbed.conditions import Condition
from routecast.lab.testbed.devices import interfaces
from routecast.lab.testbed.devices.linux import ROUTES_TEXT, KernelRouter, SteeredOptions, abridged
from routecast.lab.testbed.devices.options import option
from routecast.lab.testbed.devices.processes import Processes, accepts_connections, check_socket_path
from routecast.lab.testbed.dut_host import DevicePort, DeviceSite, Missing

__all__ = ["DAEMONS", "USER", "BgpNeighbour", "Frr", "FrrOptions", "RoutingUpdates", "Vty", "device_bgp_lines"]

DAEMONS = Path("/usr/lib/frr")
USER = "frr"
_CRASH_LOGS = Path("/var/tmp/frr")
_NEIGHBOUR_AS, _DEVICE_AS = 64_512, 64_513  # RFC 6996: for private use
_PHANTOM_NETWORK = "192.0.2.0/24"
"""A network without test frames (RFC 5737); RFC 2544 sec. 11.3 changes the routes of such phantom networks."""

_ANSWER_TIMEOUT_S = 10.0
_ARRIVAL_TIMEOUT_S = 5.0
_NEIGHBOUR_POLL_S = 0.02
_ANSWER_END = b"\0\0\0"

_ROUTES_TIMEOUT_S = 60.0
_UPDATE_TIMEOUT_S = 10.0
_POLL_S = 0.1
_MAX_ROUTES = 5000  # staticd takes about 1.5 ms for each
# zebra keeps the routes when it ends, and after its start until staticd has had 60 s to claim them.
_RETAIN_OPTIONS = ["--retain", "--graceful_restart", "60"]
# A single transaction, since the time of line-by-line commits grows with the square of their number.
_TRANSACTION_OPTIONS = ["--tcli"]
_STATICD_PROTOCOL = "196"  # of staticd's routes in the kernel; its name is that of the kernel's own static routes
_BGP = "bgp"


class Vty:
    """The command line of an FRR daemon at its Unix socket.

    In vtysh's protocol a command ends with a zero byte, an answer with three zero bytes and a status.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(_ANSWER_TIMEOUT_S)
            self._socket.connect(str(path))
            self.run("enable")
        except BaseException:
            self.close()
            raise

    def run(self, *commands: str) -> str:
        """Run commands and return the answer to the last one.

        Raises EnvironmentProblem: the daemon refuses a command, or does not answer.
        """
        answer = ""
        for command in commands:
            try:
                self._socket.sendall(command.encode() + b"\0")
                answer, status = self._answer()
            except OSError as problem:
                raise EnvironmentProblem(f"{self._path}: no answer to {command!r}: {problem}") from problem
            if status:
                raise EnvironmentProblem(f"{self._path}: {command!r} is refused ({status}): {answer.strip()}")
        return answer

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _answer(self) -> tuple[str, int]:
        data = b""
        while data[-4:-1] != _ANSWER_END:
            chunk = self._socket.recv(65_536)
            if not chunk:
                raise ConnectionResetError("the daemon closed the connection")
            data += chunk
        return data[:-4].decode(errors="replace"), data[-1]


class FrrDaemons(Processes):
    """FRR daemons whose configuration, sockets and process ids lie in one folder."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = Path()
        self._process_ids: list[int] = []
        self._vty: Vty | None = None

    def configure(self, folder: Path, lines: Sequence[str]) -> None:
        """Write the configuration of all daemons into a folder of their user."""
        check_socket_path(folder / "staticd.vty")
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        user = pwd.getpwnam(USER)
        shutil.chown(folder, user.pw_uid, user.pw_gid)
        (folder / "frr.conf").write_text("\n".join([*lines, ""]), encoding="utf-8")

    def start(self, site: DeviceSite, daemon: str, *options: str) -> None:
        """Start a daemon and wait until it takes commands."""
        folder = self._folder
        command = [
            *(str(DAEMONS / daemon), "-f", str(folder / "frr.conf"), "-i", str(folder / f"{daemon}.pid")),
            *("--vty_socket", str(folder), "-u", USER, "-g", USER, "-P", "0", *options),
        ]
        # Crash logs and vtysh's history go to HOME.
        process = self.spawn(site, daemon, *command, environment={"HOME": str(folder)})
        self._process_ids.append(process.pid)
        self.wait_for(partial(accepts_connections, folder / f"{daemon}.vty"), f"{daemon} in {folder}")

    def run_bgpd(self, *commands: str) -> str:
        """Run commands of ``bgpd``; raises DeviceEnded if a daemon has ended by itself."""
        self.check()
        if self._vty is None:
            self._vty = Vty(self._folder / "bgpd.vty")
        return self._vty.run(*commands)

    def stop(self, *, in_order: bool = False) -> None:
        """End the daemons and remove their crash logs; a second call does nothing."""
        if self._vty is not None:
            self._vty.close()
            self._vty = None
        super().stop(in_order=in_order)
        for number in self._process_ids:
            for folder in _CRASH_LOGS.glob(f"*.{number}"):
                shutil.rmtree(folder, ignore_errors=True)
        self._process_ids.clear()
        with suppress(OSError):  # it holds other logs, or does not exist
            _CRASH_LOGS.rmdir()


class BgpNeighbour:
    """FRR's ``bgpd`` in the namespace of a port of the tester, without a ``zebra``: it changes no route there.

    ``site`` is the device's, which records the neighbour's processes and files too; ``port`` is the device's port at
    the other end of the wire; ``ipv6`` announces the networks of IPv6 too.
    """

    def __init__(self, site: DeviceSite, port: DevicePort, *, ipv6: bool) -> None:
        folder = site.folder / f"neighbour-{port.interface}"
        self._site = replace(site, netns=port.neighbour_netns, folder=folder)
        self._port = port
        self._ipv6 = ipv6
        self._daemons = FrrDaemons()
        self.address = port.neighbour_ipv4

    @property
    def networks(self) -> tuple[str, ...]:
        """The announced networks."""
        return self._port.networks_ipv4 + (self._port.networks_ipv6 if self._ipv6 else ())

    def start(self) -> None:
        """Start the daemon, which connects to the device as soon as that listens."""
        self._daemons.configure(self._site.folder, self.configuration())
        self._daemons.start(self._site, "bgpd", "-Z")

    def stop(self) -> None:
        """End the daemon and remove its files; a second call does nothing."""
        self._daemons.stop()
        shutil.rmtree(self._site.folder, ignore_errors=True)

    def check(self) -> None:
        """Raise DeviceEnded if the daemon has ended by itself."""
        self._daemons.check()

    def announce(self) -> None:
        """Send the networks again, as a routing update to the device."""
        self._daemons.run_bgpd("clear bgp * soft out")

    def announce_phantom(self, *, is_announced: bool) -> None:
        """Announce or withdraw a network without test frames, by one update."""
        change = f"{'' if is_announced else 'no '}network {_PHANTOM_NETWORK}"
        router_commands = (f"router bgp {_NEIGHBOUR_AS}", "address-family ipv4 unicast")
        self._daemons.run_bgpd("configure terminal", *router_commands, change, "end")

    def configuration(self) -> list[str]:
        """Return the lines of the daemon's configuration."""
        device = self._port.ipv4.partition("/")[0]
        lines = [
            *("route-map to-ipv6 permit 10", f" set ipv6 next-hop global {self._port.neighbour_ipv6}"),
            *(f"router bgp {_NEIGHBOUR_AS}", f" bgp router-id {self.address}"),
            *(" no bgp ebgp-requires-policy", " no bgp network import-check", " no bgp suppress-duplicates"),
            *_session_lines(device, _DEVICE_AS),
            f" neighbor {device} disable-connected-check",  # without zebra it knows no networks of its own
            " address-family ipv4 unicast",
            *(f"  network {network}" for network in self._port.networks_ipv4),
            " exit-address-family",
        ]
        if self._ipv6:
            lines += [
                *(" address-family ipv6 unicast", f"  neighbor {device} activate"),
                f"  neighbor {device} route-map to-ipv6 out",
                *(f"  network {network}" for network in self._port.networks_ipv6),
                " exit-address-family",
            ]
        return lines


def device_bgp_lines(neighbours: Sequence[BgpNeighbour], router_id: str, *, ipv6: bool) -> list[str]:
    """Return the lines of the device's configuration: it accepts all routes and announces none."""
    lines = [
        *("ip prefix-list none seq 5 deny any", "ipv6 prefix-list none seq 5 deny any"),
        *(f"router bgp {_DEVICE_AS}", f" bgp router-id {router_id}", " no bgp ebgp-requires-policy"),
    ]
    for neighbour in neighbours:
        lines += _session_lines(neighbour.address, _NEIGHBOUR_AS)
    for family in ("ipv4", *(["ipv6"] if ipv6 else [])):
        lines.append(f" address-family {family} unicast")
        for neighbour in neighbours:
            activate = [f"  neighbor {neighbour.address} activate"] if family == "ipv6" else []
            lines += [*activate, f"  neighbor {neighbour.address} prefix-list none out"]
        lines.append(" exit-address-family")
    return lines


class RoutingUpdates:
    """An update each second, which alternately announces and withdraws a phantom network (RFC 2544 sec. 11.3)."""

    def __init__(
        self, neighbour: BgpNeighbour, received: Callable[[], int], routes: Callable[[], Collection[str]]
    ) -> None:
        self._neighbour = neighbour
        self._received = received
        self._routes = routes
        self._is_announced = False
        self._sent = 0
        self._received_before = 0

    def begin(self) -> None:
        """Start the counts at zero."""
        self._sent, self._received_before = 0, self._received()

    def each_second(self) -> None:
        """Announce or withdraw the network."""
        self._is_announced = not self._is_announced
        self._neighbour.announce_phantom(is_announced=self._is_announced)
        self._sent += 1

    def annotate(self, trial: Trial, due: int) -> Trial:
        """Note how many updates were sent and how many arrived; a trial without the due updates is invalid."""
        deadline_s = time.monotonic() + _ARRIVAL_TIMEOUT_S
        while not (self._arrived_updates >= self._sent and self._table_follows) and time.monotonic() < deadline_s:
            time.sleep(_NEIGHBOUR_POLL_S)
        table_clause = "its table followed" if self._table_follows else f"its table did not follow ({_PHANTOM_NETWORK})"
        note = (
            f"{self._sent:,} routing updates were sent, one each second, and the device received "
            f"{self._arrived_updates:,}; {table_clause} (RFC 2544 sec. 11.3)"
        )
        reasons = (f"the neighbour sent {self._sent:,} of {due:,} routing updates",) if self._sent < due - 1 else ()
        return replace(trial, notes=(*trial.notes, note), invalid=(*trial.invalid, *reasons))

    @property
    def _arrived_updates(self) -> int:
        return self._received() - self._received_before

    @property
    def _table_follows(self) -> bool:
        return (_PHANTOM_NETWORK in self._routes()) == self._is_announced


def _session_lines(address: str, remote_as: int) -> list[str]:
    # No keepalives and no hold time (RFC 4271 sec. 4.2): a loaded device keeps its session.
    return [
        f" neighbor {address} remote-as {remote_as}",
        f" neighbor {address} timers 0 0",
        f" neighbor {address} timers connect 1",
        f" neighbor {address} advertisement-interval 0",
    ]


@dataclass(frozen=True, kw_only=True)
class FrrOptions(SteeredOptions):
    """Options of FRR.

    With ``ipv6`` the device has as many further IPv6 ``routes``. With ``retain`` (``--retain`` and
    ``--graceful_restart`` of ``zebra``) forwarding continues during a restart; otherwise ``zebra`` removes the routes
    as it ends. With ``routing = "bgp"`` a neighbour at each port of the tester sends an update before each trial
    (RFC 2544 sec. 13).
    """

    routes: int = option(0, ROUTES_TEXT, minimum=0, maximum=_MAX_ROUTES)
    retain: bool = option(False, "leave the routes in the kernel while zebra is restarted")
    routing: str = option(
        "static",
        "static: staticd sets the routes; bgp: the device learns them from a neighbour at each port",
        choices=("static", _BGP),
    )


class Frr(KernelRouter[FrrOptions]):
    """``zebra`` and ``staticd`` install the routes behind the neighbours; the kernel forwards.

    ::

        frr.conf ─► staticd ─► zebra ─► the kernel's forwarding table ─► d0 ◄─► d1

    Its ``process`` reset ends both daemons and starts them again. Frames to directly connected networks are forwarded
    meanwhile; frames to routed networks are lost until the routes are back, unless ``retain`` is on. With ``routing =
    "bgp"`` the routes come from a :class:`BgpNeighbour` at each port, which outlives the resets of the device. Sockets,
    process ids and configuration are in the site's folder.
    """

    name = "frr"
    title = "FRR routes, Linux IP forwarding"
    options = FrrOptions
    programs = tuple(Missing(program=str(DAEMONS / daemon), package="frr") for daemon in ("zebra", "staticd", "bgpd"))

    def __init__(self, options: FrrOptions | None = None) -> None:
        super().__init__(options)
        self._daemons = FrrDaemons()
        self._version_text = ""
        self._neighbours: list[BgpNeighbour] = []
        self._kernel_line_count = 0

    @property
    def learns_routes(self) -> bool:
        """Whether its routes come from neighbours."""
        return self.chosen.routing == _BGP

    def announce(self) -> None:
        """Make each neighbour send a routing update, and wait until the device has the update and the routes.

        Raises EnvironmentProblem: an update does not arrive, or the kernel's table lacks a route.
        """
        received = {neighbour.address: self._updates_from(neighbour.address) for neighbour in self._neighbours}
        for neighbour in self._neighbours:
            neighbour.announce()
        deadline_s = time.monotonic() + _UPDATE_TIMEOUT_S
        while True:
            late_neighbours = [address for address, number in received.items() if self._updates_from(address) <= number]
            routeless = sorted(
                {network for neighbour in self._neighbours for network in neighbour.networks} - self._learnt_networks()
            )
            if not late_neighbours and not routeless:
                return
            if time.monotonic() > deadline_s:
                reasons = [f"no routing update of neighbour {address} arrived" for address in late_neighbours]
                if routeless:
                    reasons.append(f"{len(routeless)} networks have no route, the first is {routeless[0]}")
                message = f"device {self.name}: {'; '.join(reasons)} within {_UPDATE_TIMEOUT_S:g} s (RFC 2544 sec. 13)"
                raise EnvironmentProblem(message)
            time.sleep(_POLL_S)

    def routing_updates(self) -> Condition:
        """Return the condition of RFC 2544 sec. 11.3: the first port's neighbour sends an update each second."""
        first = self._neighbours[0]
        return RoutingUpdates(first, lambda: self._updates_from(first.address), self._learnt_networks)

    def stop(self) -> None:
        """End the device and its neighbours; a second call does nothing."""
        super().stop()
        while self._neighbours:
            self._neighbours.pop().stop()

    def counters(self) -> Mapping[str, int]:
        """Return the counts of the ports, of IP and of the XDP programs.

        Raises DeviceEnded: a daemon has ended by itself; the kernel may forward on, but its routes are not maintained.
        """
        self._daemons.check()
        for neighbour in self._neighbours:
            neighbour.check()
        return super().counters()

    def _configure(self, site: DeviceSite) -> None:
        settings = interfaces.router_settings(site, ipv6=self.chosen.ipv6)
        self._configuration += interfaces.write_settings(site, settings)
        self._configuration += self._set_ports(site)
        self._kernel_line_count = len(self._configuration)
        interfaces.wait_until_up(site)
        if self.learns_routes and not self._neighbours:
            self._start_neighbours(site)
        self._start_daemons(site)

    def _set_ports(self, site: DeviceSite) -> list[str]:
        lines = interfaces.port_lines(site, ipv6=self.chosen.ipv6)
        return interfaces.ip_batch(site, [line for line in lines if not line.startswith("route ")])

    def _start_neighbours(self, site: DeviceSite) -> None:
        for port in site.ports:
            if port.neighbour_netns is None or not port.networks_ipv4:
                needs = (
                    "a namespace of the tester and a network behind it at each port: networks >= 2 in the bed's file"
                )
                raise EnvironmentProblem(f"device {self.name}: routing = bgp needs {needs}")
            # In the list before it starts, so that a failed start is undone.
            self._neighbours.append(BgpNeighbour(site, port, ipv6=self.chosen.ipv6))
            self._neighbours[-1].start()

    def _end(self, site: DeviceSite) -> None:
        self._stop_daemons(site)
        shutil.rmtree(self._folder(site), ignore_errors=True)
        for daemon in ("zebra", "staticd", "bgpd"):
            (site.folder / f"{daemon}.log").unlink(missing_ok=True)
        super()._end(site)

    def _reset_process(self, site: DeviceSite) -> None:
        self._stop_daemons(site)
        self._start_daemons(site)

    def _reset_link(self, site: DeviceSite) -> None:
        # The daemons notice that their ports go and come; the kernel's part is set again.
        interfaces.ports_down(site)
        self._set_ports(site)
        interfaces.wait_until_up(site)
        self._wait_for_routes(site)

    def _start_daemons(self, site: DeviceSite) -> None:
        _check_enterable(site.folder)
        lines = self._route_lines(site)
        if self.learns_routes:
            router_id = site.ports[0].ipv4.partition("/")[0]
            lines += device_bgp_lines(self._neighbours, router_id, ipv6=self.chosen.ipv6)
        self._daemons.configure(self._folder(site), lines)
        self._configuration = self._configuration[: self._kernel_line_count] + abridged(lines)
        daemons = [("zebra", _RETAIN_OPTIONS if self.chosen.retain else []), ("staticd", _TRANSACTION_OPTIONS)]
        daemons += [("bgpd", [])] if self.learns_routes else []
        for daemon, options in daemons:
            self._daemons.start(site, daemon, "-z", str(self._folder(site) / "zserv.api"), *options)
        self._wait_for_routes(site)

    def _stop_daemons(self, site: DeviceSite) -> None:
        # A zebra that outlives staticd removes its routes, retained or not.
        self._daemons.stop(in_order=True)
        for path in self._folder(site).glob("*.[va][tp][yi]"):
            path.unlink(missing_ok=True)

    def _wait_for_routes(self, site: DeviceSite) -> None:
        route_count = len(self._route_lines(site))

        def are_installed() -> bool:
            routes = [site.run("ip", *family, "route", "show", "proto", _STATICD_PROTOCOL) for family in ((), ("-6",))]
            if sum(len(text.splitlines()) for text in routes) < route_count:
                return False
            return self._learnt_networks().issuperset(
                network for neighbour in self._neighbours for network in neighbour.networks
            )

        self._daemons.wait_for(are_installed, f"the kernel's {route_count} routes of FRR", timeout_s=_ROUTES_TIMEOUT_S)

    def _route_lines(self, site: DeviceSite) -> list[str]:
        lines = []
        if not self.learns_routes:
            lines = [line for line in interfaces.port_lines(site, ipv6=self.chosen.ipv6) if line.startswith("route ")]
        lines += interfaces.extra_routes(site, self.chosen.routes, ipv6=self.chosen.ipv6)
        return [_static_route(line) for line in lines]

    def _learnt_networks(self) -> set[str]:
        """Return the networks in the kernel's table that were learnt from neighbours."""
        lines = [self.site.run("ip", *family, "route", "show", "proto", _BGP) for family in ((), ("-6",))]
        return {line.split(maxsplit=1)[0] for line in "".join(lines).splitlines() if line.strip()}

    def _updates_from(self, neighbour: str) -> int:
        """Return how many updates the device received from a neighbour."""
        answer: dict[str, Any] = json.loads(self._daemons.run_bgpd(f"show bgp neighbors {neighbour} json"))
        return int(answer[neighbour]["messageStats"]["updatesRecv"])

    @staticmethod
    def _folder(site: DeviceSite) -> Path:
        return site.folder / "frr"

    def _version(self) -> str:
        if not self._version_text:
            line = self.site.run(str(DAEMONS / "zebra"), "--version").splitlines()[0]
            self._version_text = line.removeprefix("zebra version").strip()
        return f"FRR {self._version_text}, {super()._version()}"


def _static_route(line: str) -> str:
    """Return ``route replace NETWORK via GATEWAY dev INTERFACE`` in FRR's syntax."""
    words = line.split()
    network, gateway, interface = words[2], words[4], words[6]
    family = "ipv6" if ":" in network else "ip"
    return f"{family} route {network} {gateway} {interface}"


def _check_enterable(folder: Path) -> None:
    """Check that the daemons' user can enter a folder."""
    for parent in (folder, *folder.parents):
        if not parent.stat().st_mode & 0o001:
            raise EnvironmentProblem(f"{parent}: user {USER} cannot enter it; chmod o+x {parent}")
