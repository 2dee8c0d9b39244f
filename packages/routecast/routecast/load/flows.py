"""Flows with their ports, shares of the load and hash values, and the hash of receive-side scaling (RSS)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from random import Random
from typing import Final

import numpy as np

from routecast.errors import ModelProblem, Problem

__all__ = ["MICROSOFT_KEY", "SYMMETRIC_KEY", "Flow", "FlowSet", "rss_hash", "rss_index", "toeplitz", "toeplitz_of_many"]


MICROSOFT_KEY: Final = bytes.fromhex("6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa")
"""Microsoft's example key of 40 bytes; the default of many drivers."""

SYMMETRIC_KEY: Final = bytes.fromhex("6d5a" * 20)
"""The key that gives both directions of a connection the same hash (Woo and Park 2012)."""


def toeplitz(data: bytes, key: bytes = MICROSOFT_KEY) -> int:
    """Return the 32-bit Toeplitz hash of ``data``, which NICs compute over a frame's addresses and ports for RSS.

    Every set bit of the data, from the left, adds (modulo 2) the 32 bits of the key that start at its position.

    Source: Microsoft, "RSS hashing functions" and "Verifying the RSS hash calculation" (Windows driver documentation).
    The tests use the key and the test vectors given there.

    Raises ValueError: the key does not have at least 4 bytes more than the data.
    """
    if len(key) < len(data) + 4:
        raise ValueError(f"a key of {len(key)} bytes hashes at most {len(key) - 4} bytes, got {len(data)}")
    value = 0
    for table, byte in zip(_tables(key), data, strict=False):
        value ^= table[byte]
    return value


def rss_hash(
    source: str, destination: str, source_port: int = 0, destination_port: int = 0, key: bytes = MICROSOFT_KEY
) -> int:
    """Return the RSS hash over the addresses and ports of an IPv4 or IPv6 flow.

    If both ports are 0, the hash covers only the addresses, as NICs do for fragments and other protocols.

    Examples
    --------
    >>> hex(rss_hash("66.9.149.187", "161.142.100.80", 2794, 1766))
    '0x51ccc178'
    """
    data = ip_address(source).packed + ip_address(destination).packed
    if source_port or destination_port:
        data += source_port.to_bytes(2, "big") + destination_port.to_bytes(2, "big")
    return toeplitz(data, key)


def toeplitz_of_many(inputs: Sequence[bytes], key: bytes = MICROSOFT_KEY) -> list[int]:
    """Return the Toeplitz hash of each input, as :func:`toeplitz`; 0 for an empty one."""
    tables, hashes = np.array(_tables(key), np.uint32), np.zeros(len(inputs), np.uint32)
    by_length: dict[int, list[int]] = {}
    for place, data in enumerate(inputs):
        by_length.setdefault(len(data), []).append(place)
    for length, places in by_length.items():
        if length > len(tables):
            raise ValueError(f"a key of {len(key)} bytes hashes at most {len(tables)} bytes, got {length}")
        rows = np.frombuffer(b"".join(inputs[place] for place in places), np.uint8).reshape(len(places), length)
        values = np.zeros(len(places), np.uint32)
        for position in range(length):
            values ^= tables[position][rows[:, position]]
        hashes[places] = values
    return hashes.tolist()


@lru_cache(maxsize=8)
def _tables(key: bytes) -> tuple[tuple[int, ...], ...]:
    """Return the hash of every byte value at every position: a byte takes one look-up instead of eight shifts."""
    bits = int.from_bytes(key, "big")
    length = 8 * len(key)
    tables = []
    for position in range(len(key) - 4):
        windows = [(bits >> (length - 32 - 8 * position - bit)) & 0xFFFFFFFF for bit in range(8)]
        table = []
        for byte in range(256):
            value = 0
            for bit, window in enumerate(windows):
                if byte & (0x80 >> bit):
                    value ^= window
            table.append(value)
        tables.append(tuple(table))
    return tuple(tables)


_INDIRECTION_ENTRIES = 128
_MAX_FLOWS = 1_000_000


def rss_index(hash_value: int, queues: int, indirection: tuple[int, ...] = ()) -> int:
    """Return the queue that receive-side scaling chooses for a hash value.

    The low seven bits of the hash select an entry of the indirection table. Without a table, the entries assign the
    queues in turn: ``hash % 128 % queues``.
    """
    entry = hash_value % _INDIRECTION_ENTRIES
    return (indirection[entry % len(indirection)] if indirection else entry) % queues


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """A flow with its RSS hash value, the numbers of its ports, and its relative share of the load."""

    rss_hash: int
    ingress: int = 0
    egress: int = 1
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowSet:
    """The flows of a load; messages and pages show ``name``, such as ``"4 crafted flows"``.

    Raises
    ------
    routecast.errors.ModelProblem
        The set is empty, a weight is not > 0, or a hash or port number is negative.
    """

    name: str
    flows: tuple[Flow, ...]

    def __post_init__(self) -> None:
        problems = [] if self.flows else [Problem("flows", "there is no flow: give at least one")]
        for index, flow in enumerate(self.flows):
            if not (math.isfinite(flow.weight) and flow.weight > 0.0):
                problems.append(Problem(f"flows[{index}].weight", f"got {flow.weight}: a share is a number > 0"))
            if flow.rss_hash < 0:
                problems.append(Problem(f"flows[{index}].rss_hash", f"got {flow.rss_hash}: a hash is >= 0"))
            for side, port in (("ingress", flow.ingress), ("egress", flow.egress)):
                if port < 0:
                    problems.append(Problem(f"flows[{index}].{side}", f"got {port}: ports are numbered 0, 1, …"))
        if problems:
            raise ModelProblem(f"flow set {self.name!r}", problems)

    def __hash__(self) -> int:
        # Equal sets have equal names, so a set of a million flows hashes quickly.
        return hash((self.name, len(self.flows)))

    @classmethod
    def crafted(cls, count: int, *, ports: int = 2) -> FlowSet:
        """Flows crafted so that RSS spreads them evenly over the cores (Meyer et al. 2014, sec. VI-A.1).

        Flow ``i`` has hash ``i``, enters by port ``i mod ports`` and leaves by the next port. With two ports, odd and
        even flows have opposite directions.
        """
        _check_count(count, ports)
        flows = tuple(
            Flow(rss_hash=i % _INDIRECTION_ENTRIES, ingress=i % ports, egress=(i + 1) % ports) for i in range(count)
        )
        return cls(name=f"{count} crafted flow{'s' if count != 1 else ''}", flows=flows)

    @classmethod
    def meshed(cls, count: int, *, ports: int = 2) -> FlowSet:
        """Flows from every port to every other in turn (RFC 2285 sec. 3.3.3), in the order of RFC 2889 sec. 5.1.3.

        Port ``p`` sends to ``p + 1``, then to ``p + 2``, …, so that no two ports send to the same port at a time. With
        ``ports · (ports − 1)`` flows, or a multiple, the traffic is fully meshed.

        Examples
        --------
        >>> [(flow.ingress, flow.egress) for flow in FlowSet.meshed(6, ports=3).flows]
        [(0, 1), (1, 2), (2, 0), (0, 2), (1, 0), (2, 1)]
        """
        _check_count(count, ports)
        flows = tuple(
            Flow(
                rss_hash=i % _INDIRECTION_ENTRIES,
                ingress=i % ports,
                egress=(i + 1 + i // ports % max(ports - 1, 1)) % ports,
            )
            for i in range(count)
        )
        return cls(name=f"{count} meshed flow{'s' if count != 1 else ''}", flows=flows)

    @classmethod
    def random(cls, count: int, *, seed: int = 1, ports: int = 2, key: bytes = MICROSOFT_KEY) -> FlowSet:
        """Flows with random addresses and ports, which RSS spreads by the Toeplitz hash of these values.

        Addresses come from the benchmarking range 198.18.0.0/15, one half on each side (RFC 2544 appendix C.2.2). UDP
        ports are drawn as RFC 4814 sec. 4.5 requires: source 1024..65535, destination 1..49151. Flow ``i`` enters by
        port ``i mod ports`` and leaves by the next port.

        Parameters
        ----------
        count : int
        seed : int
            The same seed gives the same flows; a larger ``count`` appends flows.
        ports : int
        key : bytes
            The NIC's secret key, 40 bytes.

        Examples
        --------
        >>> [round(share, 2) for share in FlowSet.random(100, seed=1).share_per_core(4)]
        [0.25, 0.22, 0.29, 0.24]
        """
        _check_count(count, ports)
        stream = Random(f"flows/{seed}")
        flows = []
        for i in range(count):
            source = f"198.{18 + i % 2}.{stream.randrange(256)}.{stream.randrange(1, 255)}"
            destination = f"198.{19 - i % 2}.{stream.randrange(256)}.{stream.randrange(1, 255)}"
            value = rss_hash(source, destination, stream.randrange(1024, 65536), stream.randrange(1, 49152), key)
            flows.append(Flow(rss_hash=value, ingress=i % ports, egress=(i + 1) % ports))
        return cls(name=f"{count} random flow{'s' if count != 1 else ''}", flows=tuple(flows))

    @property
    def total_weight(self) -> float:
        """Sum of the weights of the flows."""
        return math.fsum(flow.weight for flow in self.flows)

    def share_per_core(self, cores: int, indirection: tuple[int, ...] = ()) -> tuple[float, ...]:
        """Return the share of the load that RSS gives to each of ``cores`` queues.

        Examples
        --------
        >>> FlowSet.crafted(3).share_per_core(2)
        (0.6666666666666666, 0.3333333333333333)
        """
        shares = [0.0] * cores
        for flow in self.flows:
            shares[rss_index(flow.rss_hash, cores, indirection)] += flow.weight
        return tuple(share / self.total_weight for share in shares)


def _check_count(count: int, ports: int) -> None:
    problems = []
    if not 1 <= count <= _MAX_FLOWS:
        problems.append(Problem("count", f"got {count}: allowed are 1 to {_MAX_FLOWS} flows"))
    if ports < 1:
        problems.append(Problem("ports", f"got {ports}: at least one port is needed"))
    if problems:
        raise ModelProblem("flow set", problems)
