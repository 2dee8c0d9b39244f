"""A BGP neighbour of the device under test: it announces the networks behind a port of the tester.

::

    the tester's namespace             the device's namespace
      bgpd (AS 64512) ──── wire ──── bgpd (AS 64513) ─► zebra ─► the kernel's forwarding table

RFC 2544 sec. 13 wants a routing update at the start of each trial, sec. 11.3 updates during the trial. The appendix has
RIP; BGP serves IPv4 and IPv6, and its receiver acknowledges. The session has no keepalives: nothing but what is asked
for is on the wire.
"""

from __future__ import annotations

import json
import pwd
import shutil
import socket
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from routecast.errors import EnvironmentProblem
from routecast.evaluate.trial import Trial
from routecast.testbed.devices.processes import Processes, accepts, check_socket_path
from routecast.testbed.dut_host import DevicePort, DeviceSite

__all__ = ["DAEMONS", "USER", "BgpNeighbour", "RoutingUpdates", "Vty", "bgp_of_device", "remove_crash_logs"]

DAEMONS = Path("/usr/lib/frr")
USER = "frr"
_CRASH_LOGS = Path("/var/tmp/frr")
_NEIGHBOUR_AS, _DEVICE_AS = 64_512, 64_513  # RFC 6996: for private use
_PHANTOM = "192.0.2.0/24"
"""RFC 5737: no test frame has it as its destination (RFC 2544 sec. 11.3 changes the routes of phantom networks)."""

_LONGEST_ANSWER_S = 10.0
_LONGEST_ARRIVAL_S = 5.0
_POLL_S = 0.02
_END = b"\0\0\0"


class Vty:
    """The command line of an FRR daemon at its Unix socket, in vtysh's protocol.

    A command ends with a zero byte; an answer with three and a status.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(_LONGEST_ANSWER_S)
            self._socket.connect(str(path))
            self.run("enable")
        except BaseException:
            self.close()
            raise

    def run(self, *commands: str) -> str:
        """Run commands and return the answer to the last one.

        Raises
        ------
        routecast.errors.EnvironmentProblem
            The daemon refuses a command, or does not answer.
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
        while data[-4:-1] != _END:
            more = self._socket.recv(65_536)
            if not more:
                raise ConnectionResetError("the daemon closed the connection")
            data += more
        return data[:-4].decode(errors="replace"), data[-1]


class BgpNeighbour:
    """FRR's ``bgpd`` in the namespace of one port of the tester, without a ``zebra``: it changes no route there.

    Parameters
    ----------
    site : DeviceSite
        That of the device; the neighbour's processes and files are recorded with the device's.
    port : DevicePort
        The device's port that it is joined to.
    ipv6 : bool
        Announce the networks of IPv6 too.
    """

    def __init__(self, site: DeviceSite, port: DevicePort, *, ipv6: bool) -> None:
        folder = site.folder / f"neighbour-{port.interface}"
        self._site = replace(site, netns=port.neighbour_netns, folder=folder)
        self._port = port
        self._ipv6 = ipv6
        self._daemon = Processes()
        self._process_ids: list[int] = []
        self._vty: Vty | None = None
        self.address = port.neighbour_ipv4

    @property
    def networks(self) -> tuple[str, ...]:
        """The networks that it announces."""
        return self._port.networks_ipv4 + (self._port.networks_ipv6 if self._ipv6 else ())

    def start(self) -> None:
        """Start the daemon; it connects to the device as soon as that listens."""
        folder = self._site.folder
        check_socket_path(folder / "bgpd.vty")
        folder.mkdir(parents=True, exist_ok=True)
        user = pwd.getpwnam(USER)
        shutil.chown(folder, user.pw_uid, user.pw_gid)
        file = folder / "bgpd.conf"
        file.write_text("\n".join([*self.configuration(), ""]), encoding="utf-8")
        command = [
            *(str(DAEMONS / "bgpd"), "-Z", "-f", str(file), "-i", str(folder / "bgpd.pid")),
            *("--vty_socket", str(folder), "-u", USER, "-g", USER, "-P", "0"),
        ]
        process = self._daemon.spawn(self._site, "bgpd", *command, environment={"HOME": str(folder)})
        self._process_ids.append(process.pid)
        self._daemon.wait_for(partial(accepts, folder / "bgpd.vty"), "bgpd of the neighbour")
        self._vty = Vty(folder / "bgpd.vty")

    def stop(self) -> None:
        """End the daemon and remove its files; a second call does nothing."""
        if self._vty is not None:
            self._vty.close()
            self._vty = None
        self._daemon.stop()
        remove_crash_logs(self._process_ids)
        self._process_ids.clear()
        shutil.rmtree(self._site.folder, ignore_errors=True)

    def check(self) -> None:
        """Refuse to go on if the daemon has ended by itself.

        Raises
        ------
        routecast.errors.DeviceEnded
        """
        self._daemon.check()

    def announce(self) -> None:
        """Send the networks again, as a routing update to the device."""
        self._run("clear bgp * soft out")

    def announce_phantom(self, *, is_there: bool) -> None:
        """Announce or withdraw a network that no test frame uses: one update."""
        change = f"{'' if is_there else 'no '}network {_PHANTOM}"
        of_router = (f"router bgp {_NEIGHBOUR_AS}", "address-family ipv4 unicast")
        self._run("configure terminal", *of_router, change, "end")

    def configuration(self) -> list[str]:
        """Return the lines of the daemon's configuration."""
        device = self._port.ipv4.partition("/")[0]
        lines = [
            *("route-map to-ipv6 permit 10", f" set ipv6 next-hop global {self._port.neighbour_ipv6}"),
            *(f"router bgp {_NEIGHBOUR_AS}", f" bgp router-id {self.address}"),
            *(" no bgp ebgp-requires-policy", " no bgp network import-check", " no bgp suppress-duplicates"),
            *_session(device, _DEVICE_AS),
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

    def _run(self, *commands: str) -> None:
        self.check()
        assert self._vty is not None
        self._vty.run(*commands)


def bgp_of_device(neighbours: Sequence[BgpNeighbour], router_id: str, *, ipv6: bool) -> list[str]:
    """Return the lines of the device's configuration: it takes all routes of its neighbours and announces none."""
    lines = [
        *("ip prefix-list none seq 5 deny any", "ipv6 prefix-list none seq 5 deny any"),
        *(f"router bgp {_DEVICE_AS}", f" bgp router-id {router_id}", " no bgp ebgp-requires-policy"),
    ]
    for neighbour in neighbours:
        lines += _session(neighbour.address, _NEIGHBOUR_AS)
    for family in ("ipv4", *(["ipv6"] if ipv6 else [])):
        lines.append(f" address-family {family} unicast")
        for neighbour in neighbours:
            activate = [f"  neighbor {neighbour.address} activate"] if family == "ipv6" else []
            lines += [*activate, f"  neighbor {neighbour.address} prefix-list none out"]
        lines.append(" exit-address-family")
    return lines


class RoutingUpdates:
    """An update each second, which announces a phantom network and withdraws it in turn (RFC 2544 sec. 11.3)."""

    def __init__(
        self, neighbour: BgpNeighbour, received: Callable[[], int], routes: Callable[[], Collection[str]]
    ) -> None:
        self._neighbour = neighbour
        self._received = received
        self._routes = routes
        self._is_there = False
        self._sent = 0
        self._before = 0

    def begin(self) -> None:
        """Start the counts at zero."""
        self._sent, self._before = 0, self._received()

    def each_second(self) -> None:
        """Change the state."""
        self._is_there = not self._is_there
        self._neighbour.announce_phantom(is_there=self._is_there)
        self._sent += 1

    def onto(self, trial: Trial, due: int) -> Trial:
        """Add how many updates were sent and arrived; a trial without those that were due is no result."""
        until_s = time.monotonic() + _LONGEST_ARRIVAL_S
        while not (self._arrived >= self._sent and self._has_followed) and time.monotonic() < until_s:
            time.sleep(_POLL_S)
        followed = "its table followed" if self._has_followed else f"its table did not follow ({_PHANTOM})"
        note = (
            f"{self._sent:,} routing updates were sent, one each second, and the device received {self._arrived:,}; "
            f"{followed} (RFC 2544 sec. 11.3)"
        )
        few = (f"the neighbour sent {self._sent:,} of {due:,} routing updates",) if self._sent < due - 1 else ()
        return replace(trial, notes=(*trial.notes, note), invalid=(*trial.invalid, *few))

    @property
    def _arrived(self) -> int:
        return self._received() - self._before

    @property
    def _has_followed(self) -> bool:
        return (_PHANTOM in self._routes()) == self._is_there


def updates_received(vty: Vty, neighbour: str) -> int:
    """Return how many updates a device's ``bgpd`` received from a neighbour."""
    found: dict[str, Any] = json.loads(vty.run(f"show bgp neighbors {neighbour} json"))
    return int(found[neighbour]["messageStats"]["updatesRecv"])


def remove_crash_logs(process_ids: Collection[int]) -> None:
    """Remove the folders that FRR's daemons keep for the case of a crash."""
    for number in process_ids:
        for folder in _CRASH_LOGS.glob(f"*.{number}"):
            shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):  # others' logs, or no folder
        _CRASH_LOGS.rmdir()


def _session(address: str, its_as: int) -> list[str]:
    # No keepalives and no hold time (RFC 4271 sec. 4.2): a loaded device keeps its session.
    return [
        f" neighbor {address} remote-as {its_as}",
        f" neighbor {address} timers 0 0",
        f" neighbor {address} timers connect 1",
        f" neighbor {address} advertisement-interval 0",
    ]
