"""An SNMP agent of a device under test: Net-SNMP's ``snmpd`` in the device's namespace (RFC 2544 sec. 11.2)."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

from routecast.testbed.devices.processes import Processes
from routecast.testbed.dut_host import DeviceSite, Missing
from routecast.testbed.management import is_answered

__all__ = ["SNMPD", "SnmpAgent"]

SNMPD = Missing(program="/usr/sbin/snmpd", package="snmpd")
_LONGEST_START_S = 20.0
_POLL_S = 0.1


class SnmpAgent:
    """Answers reads of the system group at the device's addresses, to whoever asks from the benchmarking networks."""

    def __init__(self) -> None:
        self._daemon = Processes()

    def start(self, site: DeviceSite) -> None:
        """Start it, and return when it answers.

        Raises
        ------
        routecast.errors.EnvironmentProblem
            It ends, or does not answer.
        """
        folder = self._folder(site)
        folder.mkdir(parents=True, exist_ok=True)
        addresses = [port.ipv4.partition("/")[0] for port in site.ports]
        file = folder / "snmpd.conf"
        lines = ["view system included .1.3.6.1.2.1.1", "rocommunity public default -V system"]
        file.write_text("\n".join([*lines, ""]), encoding="utf-8")
        command = [
            *(SNMPD.program, "-f", "-Lo", "-C", "-c", str(file), "-p", str(folder / "snmpd.pid")),
            *(f"udp:{address}:161" for address in addresses),
        ]
        # Without this it keeps its state in /var/lib/snmp.
        environment = {"SNMP_PERSISTENT_DIR": str(folder), "MIBS": ""}
        self._daemon.spawn(site, "snmpd", *command, environment=environment)
        # From outside, as in a trial: within the namespace a query would need the loopback interface.
        ready = partial(is_answered, site.ports[0].neighbour_netns, addresses[0])
        self._daemon.wait_for(ready, "the SNMP agent", longest_s=_LONGEST_START_S, poll_s=_POLL_S)

    def stop(self, site: DeviceSite) -> None:
        """End it and remove its files; a second call does nothing."""
        self._daemon.stop()
        shutil.rmtree(self._folder(site), ignore_errors=True)
        (site.folder / "snmpd.log").unlink(missing_ok=True)

    def check(self) -> None:
        """Refuse to go on if it has ended by itself.

        Raises
        ------
        routecast.errors.DeviceEnded
        """
        self._daemon.check()

    @staticmethod
    def _folder(site: DeviceSite) -> Path:
        return site.folder / "snmp"
