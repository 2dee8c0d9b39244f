"""The Toeplitz hash of receive-side scaling (RSS), as NICs compute it over a frame's addresses and ports.

Source: Microsoft, "RSS hashing functions" and "Verifying the RSS hash calculation" (Windows driver
documentation); the key and the test vectors there are what the tests hold this against.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import ip_address
from typing import Final

__all__ = ["MICROSOFT_KEY", "SYMMETRIC_KEY", "rss_hash", "toeplitz"]

MICROSOFT_KEY: Final = bytes.fromhex("6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa")
"""Microsoft's example key of 40 bytes; the default of many drivers."""

SYMMETRIC_KEY: Final = bytes.fromhex("6d5a" * 20)
"""The key that gives both directions of a connection the same hash (Woo and Park 2012)."""


def toeplitz(data: bytes, key: bytes = MICROSOFT_KEY) -> int:
    """Return the 32-bit Toeplitz hash of ``data``.

    Every set bit of the data, from the left, adds (modulo 2) the 32 bits of the key that start at its
    position.

    Raises
    ------
    ValueError
        The key is too short for the data: it must have 4 bytes more.
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
    """Return the hash over addresses and ports of an IPv4 or IPv6 flow.

    Addresses alone are hashed (as NICs do for fragments and other protocols) when both ports are 0.

    Examples
    --------
    >>> hex(rss_hash("66.9.149.187", "161.142.100.80", 2794, 1766))
    '0x51ccc178'
    """
    data = ip_address(source).packed + ip_address(destination).packed
    if source_port or destination_port:
        data += source_port.to_bytes(2, "big") + destination_port.to_bytes(2, "big")
    return toeplitz(data, key)


@lru_cache(maxsize=8)
def _tables(key: bytes) -> tuple[tuple[int, ...], ...]:
    """Hash of every byte value at every position: one look-up per byte instead of eight shifts."""
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
