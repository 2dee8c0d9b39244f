"""The addresses of a test: RFC 2544 appendix C.2.2 for IPv4, RFC 5180 sec. 8 for IPv6 (RFC 6815 sec. 3).

::

    port 0: router 198.18.1.1/24  2001:2:0:1::1/64     tester 198.18.1.2  2001:2:0:1::2     networks 198.18.x.0/24
    port 1: router 198.19.1.1/24  2001:2:0:8001::1/64  tester 198.19.1.2  2001:2:0:8001::2  networks 198.19.x.0/24
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

__all__ = ["BENCHMARKING_RANGES", "MAX_NETWORKS", "PortAddresses", "is_benchmarking_address", "port_addresses"]

BENCHMARKING_RANGES = ("198.18.0.0/15", "2001:2::/48")
"""Addresses for benchmarks alone (RFC 2544 appendix C.2.2, RFC 5180 sec. 8)."""

MAX_NETWORKS = 256
"""RFC 2544 sec. 12: destinations are spread over 256 networks."""

_FIRST_NETWORK = 64
_LINK_NETWORK = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PortAddresses:
    """Addresses at one port: the router's with prefix lengths, the tester's without, networks behind the tester."""

    router_ipv4: str
    router_ipv6: str
    tester_ipv4: str
    tester_ipv6: str
    networks_ipv4: tuple[str, ...]
    networks_ipv6: tuple[str, ...]


def port_addresses(port: int, *, networks: int = MAX_NETWORKS) -> PortAddresses:
    """Return the addresses of one of the two sides.

    ``networks`` is the number of networks on this side, 1 to 256, including that of the link. The others lie behind the
    tester's port: first 64 to 254 of appendix C.2.2, then the rest of the range, since sec. 12 needs more
    networks.

    Examples
    --------
    >>> port_addresses(1, networks=2).networks_ipv4
    ('198.19.64.0/24',)
    >>> len(port_addresses(0).networks_ipv4)
    255
    """
    if port not in {0, 1} or not 1 <= networks <= MAX_NETWORKS:
        raise ValueError(f"port {port}, {networks} networks: the ports are 0 and 1, with 1 to {MAX_NETWORKS} networks")
    second, third = 18 + port, 0x8000 * port
    order = [n % 256 for n in range(_FIRST_NETWORK, _FIRST_NETWORK + 256) if n % 256 != _LINK_NETWORK]
    return PortAddresses(
        router_ipv4=f"198.{second}.{_LINK_NETWORK}.1/24",
        router_ipv6=f"2001:2:0:{third + 1:x}::1/64",
        tester_ipv4=f"198.{second}.{_LINK_NETWORK}.2",
        tester_ipv6=f"2001:2:0:{third + 1:x}::2",
        networks_ipv4=tuple(f"198.{second}.{n}.0/24" for n in order[: networks - 1]),
        networks_ipv6=tuple(f"2001:2:0:{third + _FIRST_NETWORK + n:x}::/64" for n in range(networks - 1)),
    )


def is_benchmarking_address(address: str) -> bool:
    """Whether an address, with or without a prefix length, is in the benchmarking ranges.

    Examples
    --------
    >>> is_benchmarking_address("198.19.1.2/24"), is_benchmarking_address("10.0.0.1")
    (True, False)
    """
    interface = ipaddress.ip_interface(address).ip
    return any(interface in ipaddress.ip_network(text) for text in BENCHMARKING_RANGES)
