"""Names, MAC addresses and set-up commands of a router of many machines on this machine.

::

    rc-R-left   rc-R-outside-switch         rc-R-lb0     rc-R-inside-switch       rc-R-br0
      h0 ───────── h0 ═ s0 ═ l00 ───────── e0     i0 ───────── l0 ═ sw0 ═ p0 ──────── b0
                            l01 ─── e0 of lb1         i0 of lb1 ── l1      p1 ──────── b0 of br1

With one load balancer each host is connected to it directly, without rc-R-outside-switch. A test bed has its own ports
(:class:`Outside`) in place of hosts.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from routecast.errors import EnvironmentProblem
from routecast.multistage.reading import MultistageFile, SegmentTable

_LINK_LOCAL = "fe80::1/64"
"""Link-local address of the router on each outside network, which neighbour discovery needs."""
_INSIDE_SPARE = 100
"""Additional packet length inside, octets, because the load balancer wraps some packets (IP in IP, 20 octets)."""


@dataclass(frozen=True, slots=True)
class Wire:
    """A pair of interfaces; each end is a namespace, an interface and a MAC address, empty for any; queues per end."""

    near: tuple[str, str, str]
    far: tuple[str, str, str]
    mtu: int
    queues: int = 1


@dataclass(frozen=True, slots=True)
class Outside:
    """Existing interfaces, one for each outside network, in place of hosts.

    ``interfaces`` and ``macs`` have an entry for each network; ``neighbours`` maps the address of a neighbour to its
    MAC address and network, so that it need not answer ARP.
    """

    netns: str
    interfaces: tuple[str, ...]
    macs: tuple[str, ...]
    neighbours: Mapping[str, tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Layout:
    """The namespaces, wires and commands of a file's router on this machine."""

    file: MultistageFile
    outside: Outside | None = None

    @property
    def has_standby(self) -> bool:
        """Whether there is a standby load balancer."""
        return len(self.file.balancer) > 1

    def netns(self, element: str) -> str:
        """Return the network namespace of an element."""
        if self.outside is not None and not self.has_standby and element == self.file.balancer[0].name:
            return self.outside.netns
        return f"rc-{self.file.name}-{element}"

    @property
    def inside_switch(self) -> str:
        """Namespace of the switch between load balancers and back-end routers."""
        return self.netns("inside-switch")

    @property
    def outside_switch(self) -> str:
        """Namespace of the switches of the outside networks, which connect two load balancers."""
        return self.netns("outside-switch") if self.outside is None else self.outside.netns

    def balancers(self) -> list[str]:
        """Return the names of the load balancers."""
        return [balancer.name for balancer in self.file.balancer]

    def base_namespaces(self) -> list[str]:
        """Return all namespaces except those of the back-end routers."""
        hosts = [segment.name for segment in self.file.segment] if self.outside is None else []
        names = [
            self.inside_switch,
            *([self.outside_switch] if self.has_standby else []),
            *map(self.netns, [*self.balancers(), *hosts]),
        ]
        return [name for name in names if self.outside is None or name != self.outside.netns]

    @property
    def inside_mtu(self) -> int:
        """Longest packet towards back-end routers, octets."""
        return max(segment.mtu for segment in self.file.segment) + _INSIDE_SPARE

    def port(self, segment: int) -> str:
        """Return the interface of a load balancer on an outside network."""
        return f"e{segment}" if self.outside is None or self.has_standby else self.outside.interfaces[segment]

    def router_mac(self, segment: int) -> str:
        """Return the MAC address of the router on an outside network."""
        return f"02:52:43:00:{segment:02x}:01" if self.outside is None else self.outside.macs[segment]

    @staticmethod
    def host_mac(segment: int) -> str:
        """Return the MAC address of the host of an outside network."""
        return f"02:52:43:00:{segment:02x}:02"

    @staticmethod
    def inside_mac(balancer: int) -> str:
        """Return the MAC address of a load balancer towards the back-end routers."""
        return f"02:52:43:80:00:{balancer:02x}"

    @staticmethod
    def caller_mac(balancer: int, port: int) -> str:
        """Return the MAC address of a standby load balancer on an outside network."""
        return f"02:52:43:90:{balancer:02x}:{port:02x}"

    @staticmethod
    def member_mac(number: int) -> str:
        """Return the MAC address of a back-end router, which ends in its number."""
        return f"02:52:43:40:00:{number:02x}"

    @staticmethod
    def probe_addresses(balancer: int) -> tuple[str, str]:
        """Return source and destination of a load balancer's probe frames; back-end routers forward them back."""
        return f"100.127.255.{101 + balancer}", f"100.127.255.{1 + balancer}"

    @staticmethod
    def probe_source_ipv6(balancer: int) -> str:
        """Return the source of a load balancer's own IPv6 frames (unique local address, RFC 4193)."""
        return f"fd52:4352:4352::{101 + balancer:x}"

    def own_macs(self) -> Iterator[str]:
        """Yield the MAC addresses of the router's elements, which no neighbour has."""
        for segment in range(len(self.file.segment)):
            yield self.router_mac(segment)
            yield from (self.caller_mac(balancer, segment) for balancer in range(len(self.file.balancer)))
        yield from map(self.inside_mac, range(len(self.file.balancer)))
        yield from map(self.member_mac, range(64))

    def wires(self) -> Iterator[Wire]:
        """Yield the wires of all elements except the back-end routers."""
        queues = [balancer.queues for balancer in self.file.balancer]
        for s, segment in enumerate(self.file.segment):
            host = (self.netns(segment.name), "h0", self.host_mac(s))
            ends = [(self.netns(name), f"e{s}", self.caller_mac(n, s)) for n, name in enumerate(self.balancers())]
            if self.outside is None:
                far, count = ((self.outside_switch, f"h{s}", ""), 1) if self.has_standby else (ends[0], queues[0])
                yield Wire(host, far, segment.mtu, count)
            for n, end in enumerate(ends if self.has_standby else []):
                yield Wire(end, (self.outside_switch, f"l{s}{n}", ""), segment.mtu, queues[n])
        for n, name in enumerate(self.balancers()):
            yield Wire(
                (self.netns(name), "i0", self.inside_mac(n)),
                (self.inside_switch, f"l{n}", ""),
                self.inside_mtu,
                queues[n],
            )

    def wire_of(self, router: str, number: int) -> Wire:
        """Return the wire of a back-end router."""
        near = (self.netns(router), "b0", self.member_mac(number))
        return Wire(near, (self.inside_switch, f"p{number}", ""), self.inside_mtu)

    def bridges(self) -> Iterator[tuple[str, str, list[str]]]:
        """Yield the switches: namespace, bridge, and initial ports."""
        yield self.inside_switch, "sw0", [f"l{n}" for n in range(len(self.file.balancer))]
        if self.has_standby:
            for s in range(len(self.file.segment)):
                far = f"h{s}" if self.outside is None else self.outside.interfaces[s]
                yield self.outside_switch, f"s{s}", [far, *(f"l{s}{n}" for n in range(len(self.file.balancer)))]

    def host_commands(self, s: int, segment: SegmentTable) -> Iterator[str]:
        """Yield the commands of `ip -batch` for the host of an outside network."""
        yield "link set lo up"
        yield "link set h0 up"
        for router, host in ((segment.ipv4, segment.host_ipv4), (segment.ipv6, segment.host_ipv6)):
            if router is None or host is None:
                continue
            interface = ipaddress.ip_interface(router)
            yield f"address replace {host}/{interface.network.prefixlen} dev h0 nodad"
            yield f"route replace default via {interface.ip} dev h0"

    def standby_commands(self, balancer: int) -> Iterator[str]:
        """Yield the commands for a standby load balancer; its MAC address comes first, because a flush sends frames."""
        for s in range(len(self.file.segment)):
            yield f"link set {self.port(s)} address {self.caller_mac(balancer, s)}"
            yield f"address flush dev {self.port(s)}"

    def balancer_commands(self) -> Iterator[str]:
        """Yield the commands for the active load balancer, which answers for the router's addresses."""
        for s, segment in enumerate(self.file.segment):
            yield f"link set {self.port(s)} address {self.router_mac(s)}"
            if segment.ipv6:
                yield f"address replace {_LINK_LOCAL} dev {self.port(s)} nodad"
            for address in filter(None, (segment.ipv4, segment.ipv6)):
                yield f"address replace {address} dev {self.port(s)} nodad"
        for route in self.file.route:
            yield f"route replace {route.to} via {route.via}"

    def router_commands(self) -> Iterator[str]:
        """Yield the commands for a back-end router, which has all addresses and routes on one interface."""
        yield "link set lo up"
        yield "link set b0 up"
        for n in range(len(self.file.balancer)):
            _, destination = self.probe_addresses(n)
            yield f"route replace {destination}/32 dev b0"
            yield f"neighbour replace {destination} lladdr {self.inside_mac(n)} dev b0 nud permanent"
        for segment in self.file.segment:
            for address in filter(None, (segment.ipv4, segment.ipv6)):
                interface = ipaddress.ip_interface(address)
                source = f" src {interface.ip}" if interface.version == 4 else ""
                yield f"address replace {address} dev b0 nodad noprefixroute"
                # Locked: packets too long for this network are not forwarded, and their senders get an ICMP error.
                yield f"route replace {interface.network} dev b0{source} mtu lock {segment.mtu}"
        for route in self.file.route:
            segment = self._segment_of(route.via)
            yield f"route replace {route.to} via {route.via} dev b0 mtu lock {segment.mtu}"

    def router_lines(self) -> Iterator[str]:
        """Yield what :meth:`router_commands` sets, as the lines of ``NamespaceNetlink.contents``."""
        yield "link b0 up"
        for n in range(len(self.file.balancer)):
            _, destination = self.probe_addresses(n)
            yield f"route {destination}/32 dev b0"
            yield f"neighbour {destination} lladdr {self.inside_mac(n)} dev b0"
        for segment in self.file.segment:
            for address in filter(None, (segment.ipv4, segment.ipv6)):
                interface = ipaddress.ip_interface(address)
                source = f" src {interface.ip}" if interface.version == 4 else ""
                yield f"address {interface} dev b0"
                yield f"route {interface.network} dev b0{source} mtu lock {segment.mtu}"
        for route in self.file.route:
            network, segment = ipaddress.ip_network(route.to), self._segment_of(route.via)
            to = "default" if network.prefixlen == 0 else str(network)
            yield f"route {to} dev b0 via {ipaddress.ip_address(route.via)} mtu lock {segment.mtu}"

    def far_ends(self, balancer: int) -> Iterator[tuple[str, str]]:
        """Yield namespace and interface at the far end of each wire of a load balancer, where its frames arrive.

        Raises EnvironmentProblem: the far ends outside are not the router's own.
        """
        yield self.inside_switch, f"l{balancer}"
        for s, segment in enumerate(self.file.segment):
            if self.has_standby:
                yield self.outside_switch, f"l{s}{balancer}"
            elif self.outside is None:
                yield self.netns(segment.name), "h0"
            else:
                raise EnvironmentProblem("frames that the only load balancer sends outside cannot be lost on purpose")

    def _segment_of(self, address: str) -> SegmentTable:
        parsed = ipaddress.ip_address(address)
        for segment in self.file.segment:
            for text in filter(None, (segment.ipv4, segment.ipv6)):
                if parsed in ipaddress.ip_interface(text).network:
                    return segment
        raise AssertionError("parse_multistage checks this")


def octets(mac: str) -> list[int]:
    """Return a MAC address as its octets.

    Examples
    --------
    >>> octets("02:00:00:00:01:0a")
    [2, 0, 0, 0, 1, 10]
    """
    return list(bytes.fromhex(mac.replace(":", "")))
