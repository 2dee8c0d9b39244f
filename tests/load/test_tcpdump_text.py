"""The text of tcpdump is the trace that the same capture is.

The lines are those that tcpdump 4.99 prints of five frames of 60, 1454, 146, 60 and 82 B without FCS.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from routecast.errors import FileProblem
from routecast.load.arrivals import Arrivals

SIZES_BYTES = [64, 1458, 150, 64, 86]  # with FCS
MACS = "04:04:04:04:04:04 > 02:02:02:02:02:02"
LINK = (
    f"{MACS}, ethertype IPv4 (0x0800), length 60: 10.0.0.1.1000 > 10.0.0.2.2000: UDP, length 18",
    f"{MACS}, ethertype IPv4 (0x0800), length 1454: 10.0.0.1.1000 > 10.0.0.2.80: Flags [P.], seq 1:1401, ack 0, "
    "win 100, length 1400: HTTP",
    f"{MACS}, ethertype 802.1Q (0x8100), length 146: vlan 5, p 0, ethertype IPv4 (0x0800), 10.0.0.3.1001 > "
    "10.0.0.2.53: 30840 zoneRef% [b2&3=0x7878] [30840a] [|domain]",
    "04:04:04:04:04:04 > ff:ff:ff:ff:ff:ff, ethertype ARP (0x0806), length 60: Request who-has 10.0.0.2 tell 10.0.0.1, "
    "length 46",
    f"{MACS}, ethertype IPv6 (0x86dd), length 82: 2001::1.5 > 2001::2.6: UDP, length 20",
)
PLAIN = (
    "IP 10.0.0.1.1000 > 10.0.0.2.2000: UDP, length 18",
    # 12 B of options: two of 1 B and a time stamp of 10 B (RFC 7323).
    "IP 10.0.0.1.1000 > 10.0.0.2.80: Flags [P.], seq 1:1389, ack 0, win 100, options [nop,nop,TS val 1 ecr 2], "
    "length 1388: HTTP",
    "IP 10.0.0.3.1001 > 10.0.0.2.53: 1+ A? example.org. (104)",
    "ARP, Request who-has 10.0.0.2 tell 10.0.0.1, length 46",
    "IP6 2001::1.5 > 2001::2.6: UDP, length 20",
)
VERBOSE = (
    "IP (tos 0x0, ttl 64, id 1, offset 0, flags [none], proto UDP (17), length 46)\n"
    "    10.0.0.1.1000 > 10.0.0.2.2000: UDP, length 18",
    "IP (tos 0x0, ttl 64, id 1, offset 0, flags [none], proto TCP (6), length 1440, bad cksum 0 (->6155)!)\n"
    "    10.0.0.1.1000 > 10.0.0.2.80: Flags [P.], seq 1:1401, ack 0, win 100, length 1400: HTTP",
    "IP (tos 0x0, ttl 64, id 1, offset 0, flags [none], proto UDP (17), length 132)\n"
    "    10.0.0.3.1001 > 10.0.0.2.53: 30840",
    "ARP, Ethernet (len 6), IPv4 (len 4), Request who-has 10.0.0.2 tell 10.0.0.1, length 46",
    "IP6 (hlim 64, next-header UDP (17) payload length: 28) 2001::1.5 > 2001::2.6: UDP, length 20",
)
EPOCH = [f"1700000000.00{number}000" for number in range(5)]


@pytest.mark.parametrize(
    ("times", "packets"),
    [
        (EPOCH, LINK),
        (EPOCH, PLAIN),
        (EPOCH, VERBOSE),
        ([f"22:13:20.00{number}000" for number in range(5)], LINK),
        ([f"2023-11-14 22:13:20.00{number}000" for number in range(5)], PLAIN),
        (["23:59:59.999000", "00:00:00.000000", *(f"00:00:00.00{number}000" for number in range(1, 4))], PLAIN),
    ],
)
@pytest.mark.parametrize("suffix", ["txt", "log"])
def test_the_text_of_tcpdump_is_a_trace(
    tmp_path: Path, times: list[str], packets: tuple[str, ...], suffix: str
) -> None:
    path = tmp_path / f"packets.{suffix}"
    lines = [f"{time} {packet}\n" for time, packet in zip(times, packets, strict=True)]
    path.write_text("reading from file t.pcap, link-type EN10MB (Ethernet)\n" + "".join(lines))
    trace = Arrivals.from_trace(path).trace
    assert trace is not None
    assert trace.frame_bytes.tolist() == SIZES_BYTES
    assert len(set(trace.flow.tolist())) == 5
    assert trace.time_s[-1] - trace.time_s[0] == pytest.approx(0.004, rel=1e-3)


def test_a_line_without_a_length_and_gaps_as_times_are_refused_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "packets.txt"
    for text in (
        "1700000000.0 IP 10.0.0.1.1000 > 10.0.0.2.80: tcp 1400\n",
        " 00:00:00.000000 IP 10.0.0.1.1000 > 10.0.0.2.2000: UDP, length 18\n",
    ):
        path.write_text(text)
        with pytest.raises(FileProblem, match="tcpdump -tt -n -e"):
            Arrivals.from_trace(path)
