"""A chain of three bare namespaces, and frames through it: g0–d0 : device : d1–s0."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from routecast.lab.testbed.dut_host import DevicePort, DeviceSite
from routecast.lab.testbed.netns import process_ids

GEN_MAC, D0_MAC = "02:00:00:00:01:02", "02:00:00:00:01:01"
SINK_MAC, D1_MAC = "02:00:00:00:02:02", "02:00:00:00:02:01"
ETH_P_ALL = 3
SIGNATURE = b"RC"
_BURST = 50


@dataclass(kw_only=True)
class Chain:
    """The namespaces of one chain and where its device runs."""

    site: DeviceSite
    gen: str
    sink: str
    spawned: dict[int, str] = field(default_factory=dict)

    def forward(self, frames: list[bytes], *, reverse: bool = False, wait_s: float = 60.0) -> list[bytes]:
        """Send frames into one end and return those with our signature that come out at the other, in order.

        The sender sends bursts that fit the smallest buffer of a device, each after the arrival of the last one. The
        function ends when all frames have arrived, or when none arrives for ``wait_s`` seconds.
        """
        from_end, to_end = (self.gen, "g0"), (self.sink, "s0")
        if reverse:
            from_end, to_end = to_end, from_end
        arrived: list[bytes] = []
        with packet_socket(*to_end) as receiver, packet_socket(*from_end) as sender:
            receiver.settimeout(wait_s)
            for first in range(0, len(frames), _BURST):
                for frame in frames[first : first + _BURST]:
                    sender.send(frame)
                if not collect(receiver, arrived, min(first + _BURST, len(frames))):
                    break
        return arrived


def collect(receiver: socket.socket, arrived: list[bytes], wanted: int) -> bool:
    """Add frames with our signature to ``arrived`` until it has ``wanted``; return whether it has."""
    while len(arrived) < wanted:
        try:
            data, address = receiver.recvfrom(4096)
        except TimeoutError:
            return False
        if address[2] != socket.PACKET_OUTGOING and SIGNATURE in data:
            arrived.append(data)
    return True


@contextmanager
def chain() -> Iterator[Chain]:
    """Make the namespaces ``rc-d-PID-gen``, ``-dut`` and ``-sink``; nothing is left of them afterwards."""
    for leftover in Path("/run/netns").glob("rc-d-*"):  # of a run that was killed
        owner = leftover.name.split("-")[2]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            for process in process_ids(leftover.name):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            subprocess.run(["ip", "netns", "delete", leftover.name], capture_output=True, check=False)
    gen, dut, sink = (f"rc-d-{os.getpid()}-{part}" for part in ("gen", "dut", "sink"))
    folder = Path(tempfile.mkdtemp(prefix="rc-d-"))
    folder.chmod(0o755)
    spawned: dict[int, str] = {}
    try:
        for name in (gen, dut, sink):
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
            quiet = "for i in all default; do echo 1 > /proc/sys/net/ipv6/conf/$i/disable_ipv6; done"
            run("ip", "netns", "exec", name, "sh", "-c", quiet)
        wire(gen, "g0", GEN_MAC, dut, "d0", D0_MAC)
        wire(dut, "d1", D1_MAC, sink, "s0", SINK_MAC)
        site = DeviceSite(netns=dut, ports=PORTS, cpu=None, priority=0, folder=folder, on_spawn=spawned.__setitem__)
        yield Chain(site=site, gen=gen, sink=sink, spawned=spawned)
    finally:
        for name in (gen, dut, sink):
            for process in process_ids(name):  # of a device that was not stopped
                os.kill(process, signal.SIGKILL)
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
        shutil.rmtree(folder, ignore_errors=True)


PORTS = (
    DevicePort(
        interface="d0",
        mac=D0_MAC,
        ipv4="198.18.1.1/24",
        ipv6="2001:2:0:1::1/64",
        neighbour_mac=GEN_MAC,
        neighbour_ipv4="198.18.1.2",
        neighbour_ipv6="2001:2:0:1::2",
        networks_ipv4=("198.18.64.0/24",),
        networks_ipv6=("2001:2:0:40::/64",),
    ),
    DevicePort(
        interface="d1",
        mac=D1_MAC,
        ipv4="198.19.1.1/24",
        ipv6="2001:2:0:8001::1/64",
        neighbour_mac=SINK_MAC,
        neighbour_ipv4="198.19.1.2",
        neighbour_ipv6="2001:2:0:8001::2",
        networks_ipv4=("198.19.64.0/24",),
        networks_ipv6=("2001:2:0:8040::/64",),
    ),
)


def wire(left: str, left_end: str, left_mac: str, right: str, right_end: str, right_mac: str) -> None:
    """Join two namespaces; receive offload makes the ends take redirected frames."""
    run(
        *("ip", "link", "add", left_end, "netns", left, "address", left_mac, "type", "veth"),
        *("peer", "name", right_end, "netns", right, "address", right_mac),
    )
    for netns, end in ((left, left_end), (right, right_end)):
        run("ip", "-n", netns, "link", "set", end, "up")
        run("ip", "netns", "exec", netns, "ethtool", "-K", end, "gro", "on", "tx", "off")


def run(*command: str) -> str:
    """Run a command that must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


def packet_socket(netns: str, interface: str) -> socket.socket:
    """Open a packet socket in a namespace: a thread of its own enters it and ends."""

    def enter() -> socket.socket:
        with open(f"/run/netns/{netns}", "rb") as namespace:
            libc_setns(namespace.fileno())
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        opened.bind((interface, 0))
        return opened

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(enter).result()


def libc_setns(descriptor: int) -> None:
    """Move this thread into a network namespace (os.setns is newer than Python 3.11)."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, 0x40000000) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def udp4(
    number: int,
    *,
    source: str = "198.18.1.2",
    destination: str = "198.19.1.2",
    source_mac: str = GEN_MAC,
    destination_mac: str = D0_MAC,
    hops: int = 64,
    length: int = 60,
) -> bytes:
    """Return an IPv4/UDP frame without FCS, all checksums correct (RFC 791, RFC 768)."""
    addresses = socket.inet_aton(source) + socket.inet_aton(destination)
    payload = payload_of(number, length - 14 - 20 - 8)
    udp = udp_of(payload, addresses + struct.pack("!BBH", 0, 17, len(payload) + 8))
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), number, 0, hops, 17, 0) + addresses
    header = header[:10] + struct.pack("!H", checksum(header)) + header[12:]
    return mac(destination_mac) + mac(source_mac) + b"\x08\x00" + header + udp


def udp6(
    number: int,
    *,
    source: str = "2001:2:0:1::2",
    destination: str = "2001:2:0:8001::2",
    source_mac: str = GEN_MAC,
    destination_mac: str = D0_MAC,
    hops: int = 64,
    length: int = 80,
) -> bytes:
    """Return an IPv6/UDP frame without FCS (RFC 8200, RFC 768)."""
    addresses = b"".join(socket.inet_pton(socket.AF_INET6, address) for address in (source, destination))
    payload = payload_of(number, length - 14 - 40 - 8)
    udp = udp_of(payload, addresses + struct.pack("!IHBB", len(payload) + 8, 0, 0, 17))
    header = struct.pack("!IHBB", 6 << 28, len(udp), 17, hops) + addresses
    return mac(destination_mac) + mac(source_mac) + b"\x86\xdd" + header + udp


def payload_of(number: int, length: int) -> bytes:
    """Return our signature, a number and a pattern."""
    return (SIGNATURE + struct.pack("!I", number)).ljust(length, b"\x5a")


def udp_of(payload: bytes, pseudo_header: bytes) -> bytes:
    """Return a UDP datagram to the discard port."""
    header = struct.pack("!HHHH", 49152, 9, 8 + len(payload), 0)
    total = checksum(pseudo_header + header + payload) or 0xFFFF
    return header[:6] + struct.pack("!H", total) + payload


def checksum(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071)."""
    data += b"\x00" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def mac(text: str) -> bytes:
    """Return the six bytes of a MAC address."""
    return bytes.fromhex(text.replace(":", ""))
