"""The page of sources names what of the papers is not built, each with its place and its reason."""

from __future__ import annotations

from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "sources.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("\n## What of the papers is not built\n")[2].partition("\n## ")[0]
ROWS = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in SECTION.splitlines() if line[:2] == "| "][
    1:
]


@pytest.mark.parametrize(
    "name",
    [
        # Memik et al. 2001: NetBench's nine applications; Ramaswamy & Wolf 2003: PacketBench's.
        *("CRC", "TL", "ROUTE", "DRR", "NAT", "IPCHAINS", "URL", "DH", "MD5"),
        *("branch prediction", "IPv4-radix", "IPv4-trie", "flow classification", "TSA"),
        *("DIST", "FEDERICA", "static ARP", "Click", "FPGA", "VALE", "netmap", "OpenVZ", "Migration", "SystemC"),
        *("XORP", "Quagga", "RouteBricks", "PacketShader", "TSO", "DCA", "pktgen", "Turbo Boost", "OMNeT++"),
        *("DPPD", "PROX", "OpenStack", "figs. 1 to 6", "LLTX", "jitter of PL-VINI", "crossbar", "IXP1200"),
        *("ShaRE", "Baker", "Everest", "NP-Click", "Reservation-based CPU scheduling", "figs. 7.7 to 7.10"),
    ],
)
def test_what_is_not_built_is_named(name: str) -> None:
    assert any(name in row[0] or name in row[1] for row in ROWS)


def test_each_has_a_place_in_a_paper_and_a_reason() -> None:
    assert ROWS
    for what, where, reason, nearest in ROWS:
        assert "sec" in where, what
        assert len(reason) > 20, what
        assert nearest, what
