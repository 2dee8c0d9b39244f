"""The RSS hash against Microsoft's published values ("Verifying the RSS hash calculation")."""

from __future__ import annotations

import pytest

from routecast.load.flows import MICROSOFT_KEY, SYMMETRIC_KEY, rss_hash, toeplitz

# Source address, destination address, source port, destination port, hash of addresses, hash with ports.
MICROSOFT = [
    ("66.9.149.187", "161.142.100.80", 2794, 1766, 0x323E8FC2, 0x51CCC178),
    ("199.92.111.2", "65.69.140.83", 14230, 4739, 0xD718262A, 0xC626B0EA),
    ("24.19.198.95", "12.22.207.184", 12898, 38024, 0xD2D0A5DE, 0x5C2B394A),
    ("38.27.205.30", "209.142.163.6", 48228, 2217, 0x82989176, 0xAFC7327F),
    ("153.39.163.191", "202.188.127.2", 44251, 1303, 0x5D1809C5, 0x10E828A2),
    ("3ffe:2501:200:1fff::7", "3ffe:2501:200:3::1", 2794, 1766, 0x2CC18CD5, 0x40207D3D),
    ("3ffe:501:8::260:97ff:fe40:efab", "ff02::1", 14230, 4739, 0x0F0C461C, 0xDDE51BBF),
    ("3ffe:1900:4545:3:200:f8ff:fe21:67cf", "fe80::200:f8ff:fe21:67cf", 44251, 38024, 0x4B61E985, 0x02D1FEEF),
]


@pytest.mark.parametrize(("source", "destination", "source_port", "destination_port", "addresses", "ports"), MICROSOFT)
def test_the_hash_is_microsofts(source, destination, source_port, destination_port, addresses, ports):
    assert rss_hash(source, destination) == addresses
    assert rss_hash(source, destination, source_port, destination_port) == ports


def test_the_symmetric_key_hashes_both_directions_alike():
    there = rss_hash("10.0.0.1", "10.0.0.2", 1000, 2000, SYMMETRIC_KEY)
    assert there == rss_hash("10.0.0.2", "10.0.0.1", 2000, 1000, SYMMETRIC_KEY)


def test_a_key_that_is_too_short_is_refused():
    with pytest.raises(ValueError, match="hashes at most 36 bytes"):
        toeplitz(bytes(37), MICROSOFT_KEY)
