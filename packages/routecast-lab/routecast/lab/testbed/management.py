"""Management queries during a trial (RFC 2544 sec. 11.2): a GET of ``sysUpTime`` each second, and an SNMP agent.

The messages are SNMPv2c (RFC 1901, RFC 3416) in the Basic Encoding Rules of ASN.1 (X.690). The agent is Net-SNMP's
``snmpd`` in the device's namespace.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
import socket
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from routecast.evaluate.trial import Trial
from routecast.lab.testbed.devices.processes import Processes
from routecast.lab.testbed.dut_host import DeviceSite, Missing
from routecast.lab.testbed.netns import inside

__all__ = ["SNMPD", "ManagementQueries", "SnmpAgent", "answered_request_id", "get_request", "is_answered"]

SNMPD = Missing(program="/usr/sbin/snmpd", package="snmpd")
_START_TIMEOUT_S = 20.0
_POLL_S = 0.1

_PORT = 161
_COMMUNITY = b"public"
_SYS_UP_TIME = bytes((0x2B, 6, 1, 2, 1, 1, 3, 0))  # 1.3.6.1.2.1.1.3.0; the first two numbers are 40 · 1 + 3
_INTEGER, _OCTETS, _NULL, _OID, _SEQUENCE, _GET, _RESPONSE = 0x02, 0x04, 0x05, 0x06, 0x30, 0xA0, 0xA2
_V2C = 1
_ATTEMPTS, _ATTEMPT_S = 4, 0.5
_ANSWER_TIMEOUT_S = 1.0
_MAX_MESSAGE_BYTES = 2048
_MAX_ID = 0x7FFF_FFFF


class SnmpAgent:
    """Answers reads of the system group at the device's addresses."""

    def __init__(self) -> None:
        self._daemon = Processes()

    def start(self, site: DeviceSite) -> None:
        """Start the agent, and return when it answers.

        Raises EnvironmentProblem: it ends, or does not answer.
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
        # By default it keeps its state in /var/lib/snmp.
        environment = {"SNMP_PERSISTENT_DIR": str(folder), "MIBS": ""}
        self._daemon.spawn(site, "snmpd", *command, environment=environment)
        # From the tester, as in a trial: inside the namespace a query would need the loopback interface.
        ready = partial(is_answered, site.ports[0].neighbour_netns, addresses[0])
        self._daemon.wait_for(ready, "the SNMP agent", timeout_s=_START_TIMEOUT_S, poll_s=_POLL_S)

    def stop(self, site: DeviceSite) -> None:
        """End the agent and remove its files; a second call does nothing."""
        self._daemon.stop()
        shutil.rmtree(self._folder(site), ignore_errors=True)
        (site.folder / "snmpd.log").unlink(missing_ok=True)

    def check(self) -> None:
        """Raise DeviceEnded if the agent has ended by itself."""
        self._daemon.check()

    @staticmethod
    def _folder(site: DeviceSite) -> Path:
        return site.folder / "snmp"


def get_request(number: int) -> bytes:
    """Return an SNMP GET of ``sysUpTime`` with a request id of 0 to 2**31 - 1.

    Examples
    --------
    >>> get_request(1).hex()
    '302602010104067075626c6963a019020101020100020100300e300c06082b060102010103000500'
    """
    variable = _tlv(_SEQUENCE, _tlv(_OID, _SYS_UP_TIME) + _tlv(_NULL, b""))
    pdu = _integer(number) + _integer(0) + _integer(0) + _tlv(_SEQUENCE, variable)
    return _tlv(_SEQUENCE, _integer(_V2C) + _tlv(_OCTETS, _COMMUNITY) + _tlv(_GET, pdu))


def answered_request_id(message: bytes) -> int | None:
    """Return the id of the request that a message answers without an error, or None."""
    try:
        tag, content, _ = _parse_element(message)
        version_tag, version, rest = _parse_element(content)
        _, _, rest = _parse_element(rest)
        pdu_tag, pdu, _ = _parse_element(rest)
        id_tag, number, rest = _parse_element(pdu)
        status_tag, status, _ = _parse_element(rest)
    except IndexError:
        return None
    if (tag, version_tag, pdu_tag, id_tag, status_tag) != (_SEQUENCE, _INTEGER, _RESPONSE, _INTEGER, _INTEGER):
        return None
    if int.from_bytes(version, "big") != _V2C or any(status):
        return None
    return int.from_bytes(number, "big", signed=True)


def is_answered(netns: str | None, address: str) -> bool:
    """Whether an SNMP agent answers queries to an address from a namespace of the tester."""
    with contextlib.closing(ManagementQueries(netns, address)) as queries:
        queries.begin()
        for _ in range(_ATTEMPTS):
            queries.each_second()
            if queries.answers_within(_ATTEMPT_S, 1):
                return True
    return False


class ManagementQueries:
    """A query each second from the tester's port in ``netns`` to the device's ``address`` (RFC 2544 sec. 11.2)."""

    def __init__(self, netns: str | None, address: str) -> None:
        self._address = address
        self._socket = inside(netns, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self._socket.setblocking(False)
        self._ids = itertools.count(time.time_ns() & 0x3FFF_FFFF)
        self._unanswered: set[int] = set()
        self._sent = self._answered = 0

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def begin(self) -> None:
        """Start the counts at zero; answers to earlier queries do not count."""
        self._sent = self._answered = 0
        self._unanswered.clear()

    def each_second(self) -> None:
        """Send a query; a query that the socket refuses counts as not sent."""
        number = next(self._ids) & _MAX_ID
        # The socket reports an ICMP message about an earlier query here.
        with contextlib.suppress(OSError):
            self._socket.sendto(get_request(number), (self._address, _PORT))
            self._unanswered.add(number)
            self._sent += 1

    def annotate(self, trial: Trial, due: int) -> Trial:
        """Note how many queries were sent and how many answered; a trial without the due queries is invalid."""
        answered = self.answers_within(_ANSWER_TIMEOUT_S, self._sent)
        note = (
            f"{self._sent:,} SNMP queries were sent to {self._address}, one each second, and the device answered "
            f"{answered:,} (RFC 2544 sec. 11.2)"
        )
        reasons = (f"the tester sent {self._sent:,} of {due:,} SNMP queries",) if self._sent < due - 1 else ()
        return replace(trial, notes=(*trial.notes, note), invalid=(*trial.invalid, *reasons))

    def answers_within(self, timeout_s: float, count: int) -> int:
        """Wait until ``count`` queries are answered, at most ``timeout_s`` seconds; return the number of answers."""
        deadline_s = time.monotonic() + timeout_s
        while True:
            with contextlib.suppress(OSError):
                while True:
                    message, (sender, *_) = self._socket.recvfrom(_MAX_MESSAGE_BYTES)
                    number = answered_request_id(message)
                    if sender == self._address and number in self._unanswered:
                        self._unanswered.discard(number)
                        self._answered += 1
            if self._answered >= count or time.monotonic() > deadline_s:
                return self._answered
            time.sleep(0.01)


def _integer(number: int) -> bytes:
    return _tlv(_INTEGER, number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True))


def _tlv(tag: int, value: bytes) -> bytes:
    assert len(value) < 0x80, "a length of one byte"
    return bytes((tag, len(value))) + value


def _parse_element(data: bytes) -> tuple[int, bytes, bytes]:
    """Return tag and value of the first BER element, and the bytes after it."""
    tag, length, start = data[0], data[1], 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(data[2:start], "big")
    if start + length > len(data):
        raise IndexError(length)
    return tag, data[start : start + length], data[start + length :]
