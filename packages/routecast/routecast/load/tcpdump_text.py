"""Text of ``tcpdump -n``: times, lengths and addresses of packets, a line each.

============================  ======================================================================================
line                          length of the frame without FCS
============================  ======================================================================================
``-e``                        the ``length`` of the header of layer 2
``-v``                        header of Ethernet (14 B) and the total length of IP
UDP, ICMP, ARP                the headers before what ``length`` counts, without IP options
TCP                           the same, and the options that the line lists
============================  ======================================================================================
"""

from __future__ import annotations

import math
import re

from routecast.errors import FileProblem, Problem
from routecast.load.trace import RecordedFrames

__all__ = ["is_tcpdump_text", "tcpdump_text"]

_MAC = r"[0-9a-f]{2}(?::[0-9a-f]{2}){5}"
_TIME = r"(?P<day>\d{4}-\d\d-\d\d )?(?P<time>\d+\.\d+|\d\d:\d\d:\d\d\.\d+)"
_LINE = re.compile(rf"(?P<space>\s*){_TIME} (?:\S+ (?:In|Out) +)?(?P<rest>(?:IP6? |ARP|{_MAC} (?:\(.*?\) )?>).*)")
_LINK = re.compile(rf"{_MAC} (?:\([^)]*\) )?> (?:{_MAC}|Broadcast)[^,]*, .*?\blength (?P<length>\d+): (?P<rest>.*)")
_FLOW = re.compile(r"(?P<source>[0-9a-fA-F.:]+) > (?P<target>[0-9a-fA-F.:]+): (?P<what>.*)")
_IPV4_LENGTH = re.compile(r"IP \(.*?\blength (\d+)")
_IPV6_LENGTH = re.compile(r"IP6 \(.*?payload length: (\d+)")
_LAST_LENGTH = re.compile(r"\blength (\d+)")
_DNS_LENGTH = re.compile(r"\((\d+)\)$")
_OPTIONS = re.compile(r"options \[([^]]*)\]")
_OPTION_BYTES = {"nop": 1, "eol": 1, "mss": 4, "wscale": 3, "sackOK": 2, "TS": 10}
_ETHERNET_BYTES, _FCS_BYTES, _MIN_BYTES, _MAX_BYTES = 14, 4, 64, 65_535
_DAY_S = 86_400.0
_MAX_PROBLEMS = 20
_REMEDY = "write the list with tcpdump -tt -n -e, or give the capture itself (tcpdump -w)"


def is_tcpdump_text(text: str) -> bool:
    """Whether a text has a packet as tcpdump prints it in one of its first lines."""
    return any(_LINE.fullmatch(line) for line in text[:10_000].splitlines()[:5])


def tcpdump_text(path: str, text: str) -> RecordedFrames:
    """Read the frames that tcpdump printed; packets with the same addresses, ports and protocol are a flow.

    Raises FileProblem: a line has no length, or a time that is a gap and no instant.
    """
    times_s: list[float] = []
    sizes_bytes: list[int] = []
    flows: list[int] = []
    numbers: dict[tuple[str, str, str], int] = {}
    problems: list[Problem] = []
    is_derived = False
    days = 0
    for number, match in _packets(text):
        if match["space"] and ":" in match["time"]:
            message = f"has a time since another packet or the first one (-ttt, -ttttt): {_REMEDY}"
            raise FileProblem(path, [Problem(f"line {number}", message)])
        time_s = _time_s(match["day"], match["time"])
        if ":" in match["time"] and not match["day"]:
            days += bool(times_s) and time_s + days * _DAY_S < times_s[-1] - _DAY_S / 2.0
            time_s += days * _DAY_S
        link = _LINK.fullmatch(match["rest"])
        rest = link["rest"] if link else match["rest"]
        length = int(link["length"]) if link else _length(rest)
        is_derived |= link is None
        if length is None or not (math.isfinite(time_s) and 1 <= length <= _MAX_BYTES - _FCS_BYTES):
            problems.append(Problem(f"line {number}", f"has no length of a frame: {_REMEDY}"))
            if len(problems) == _MAX_PROBLEMS:
                break
            continue
        times_s.append(time_s)
        sizes_bytes.append(max(length + _FCS_BYTES, _MIN_BYTES))
        flows.append(numbers.setdefault(_addresses(rest), len(numbers)))
    if problems:
        raise FileProblem(path, problems)
    notes = ["text of tcpdump: the lengths are without FCS, 4 B are added, to 64 B at least"]
    if is_derived:
        notes.append(
            "lengths of frames follow from those of payloads, with headers without tags and IP options: -e states them"
        )
    notes.append(f"flows are told by addresses, ports and protocol: {len(numbers):,}; a capture has what a card hashes")
    return RecordedFrames.of(times_s, sizes_bytes, flows, notes=notes)


def _packets(text: str) -> list[tuple[int, re.Match[str]]]:
    """Return the packets with the numbers of their first lines; ``-v`` goes on in further lines."""
    joined: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if _LINE.fullmatch(line):
            joined.append((number, line))
        elif joined and line[:1].isspace() and not line.lstrip().startswith("0x"):
            joined[-1] = (joined[-1][0], f"{joined[-1][1]} {line.strip()}")
    return [(number, match) for number, line in joined if (match := _LINE.fullmatch(line))]


def _time_s(day: str | None, time: str) -> float:
    if ":" not in time:
        return float(time)
    hours, minutes, seconds = time.split(":")
    since_midnight_s = 3600.0 * int(hours) + 60.0 * int(minutes) + float(seconds)
    if not day:
        return since_midnight_s
    from routecast.load.series.times import parse_time

    return (
        parse_time(f"{day.strip()} 00:00:00") - parse_time("1970-01-01 00:00:00")
    ).total_seconds() + since_midnight_s


def _length(rest: str) -> int | None:
    """Return the length of a frame without FCS from a line without layer 2; None where it is not known."""
    if total := _IPV4_LENGTH.match(rest):
        return _ETHERNET_BYTES + int(total[1])
    if payload := _IPV6_LENGTH.match(rest):
        return _ETHERNET_BYTES + 40 + int(payload[1])
    stated = _LAST_LENGTH.search(rest)
    if rest.startswith("ARP"):
        return _ETHERNET_BYTES + int(stated[1]) if stated else None
    headers = _ETHERNET_BYTES + (40 if rest.startswith("IP6") else 20)
    flow = _FLOW.search(rest)
    what = flow["what"] if flow else ""
    if what.startswith("Flags ") and stated:
        options = _option_bytes(what)
        return None if options is None else headers + 20 + options + int(stated[1])
    if what.startswith("UDP") and stated:
        return headers + 8 + int(stated[1])
    if what.startswith("ICMP") and stated:
        return headers + int(stated[1])
    dns = _DNS_LENGTH.search(what)
    return headers + 8 + int(dns[1]) if dns else None


def _option_bytes(what: str) -> int | None:
    """Return the bytes of the options of TCP, which fill words of 4 B; None where one is not known."""
    match = _OPTIONS.search(what)
    total = 0
    for option in match[1].split(",") if match and match[1] else ():
        name, _, values = option.strip().partition(" ")
        if name == "sack":
            total += 2 + 8 * int(values.split(" ")[0])
        elif name in _OPTION_BYTES:
            total += _OPTION_BYTES[name]
        else:
            return None
    return 4 * math.ceil(total / 4)


def _addresses(rest: str) -> tuple[str, str, str]:
    flow = _FLOW.search(rest)
    if flow is None:
        return "", "", rest.split(" ", 1)[0]
    protocol = "TCP" if flow["what"].startswith(("Flags ", "tcp ")) else flow["what"].split(",")[0].split(" ")[0]
    return flow["source"], flow["target"], protocol if protocol in {"TCP", "ICMP", "ICMP6"} else "UDP"
