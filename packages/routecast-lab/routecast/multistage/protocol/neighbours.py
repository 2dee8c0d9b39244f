"""Neighbours: who has which address on which outside network, and how it is confirmed before it is believed.

An entry belongs to an outside network and an address. It is learnt from an answer to a solicitation, or from a
neighbour that asks for the router, and is confirmed again and again as in RFC 4861 (sec. 7.3, reachable, probe):

::

    asked ──answer──► reachable ──REACHABLE_S──► probe ──answer──► reachable
                          │                        └─UNICASTS unanswered─► all are asked ─BROADCASTS─► gone
                          └─another MAC claims it─► the owner is asked ──answer──► the claim is refused
                                                        └─CLAIM_S─► the entry changes

A claim from another network, of an address or MAC address of the router itself, or of a MAC address that is in use on
another network is dropped and counted.
"""

from __future__ import annotations

import heapq
import ipaddress
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from routecast.multistage.protocol.actions import (
    Action,
    Announce,
    Event,
    ForgetMac,
    RemoveNeighbour,
    SetNeighbour,
    Solicit,
)

__all__ = [
    "BROADCASTS",
    "BROADCAST_EVERY_S",
    "CLAIM_S",
    "GONE_S",
    "MAX_ASKED",
    "MAX_ENTRIES",
    "MOVE_S",
    "REACHABLE_S",
    "SOLICITS_PER_S",
    "UNICASTS",
    "UNICAST_EVERY_S",
    "Entry",
    "NeighbourTable",
    "Networks",
]

REACHABLE_S = 2.0
"""Time for which a confirmed entry is believed, s. Linux takes 15 to 45 s: a host that changes in silence is then
black for as long."""
UNICAST_EVERY_S = 0.25
UNICASTS = 3
"""Solicitations to the owner before all are asked (Linux: ``ucast_solicit``)."""
BROADCAST_EVERY_S = 0.5
BROADCASTS = 6
"""Solicitations to all before the entry goes (Linux: ``mcast_solicit`` 3, each second)."""
CLAIM_EVERY_S = 0.15
CLAIM_ASKS = 3
CLAIM_S = CLAIM_ASKS * CLAIM_EVERY_S
"""Time in which the owner of an address has to answer while another MAC address claims it, s."""
MOVE_S = REACHABLE_S + UNICASTS * UNICAST_EVERY_S
"""Longest time after which a host that changed its MAC address in silence is asked for, s."""
GONE_S = MOVE_S + BROADCASTS * BROADCAST_EVERY_S
"""Time without an answer after which an entry goes, s."""
LOOK_UP_EVERY_S = 0.3
LOOK_UPS = 3
MAX_ASKED = 256
"""Addresses of one network that are being looked up; the oldest without an answer goes first."""
MAX_ENTRIES = 4096
"""Entries of all networks together, of which each network has its part."""
SOLICITS_PER_S = 500.0
"""Solicitations a second on one network."""
_BURST = 100.0
_RESERVE = 50.0
"""Solicitations that look-ups leave for neighbours that are known, so that a flood of look-ups hides no move."""
_SOLICITS_AT_ONCE = 3
_TELLS_EVERY_S = 1.0
_DEFENDS_EVERY_S = 1.0


class Networks:
    """The outside networks of a router.

    ``interfaces``: the router's addresses with prefix lengths on each network, such as
    ``[["198.18.1.1/24", "2001:2:0:1::1/64"], …]``; ``names``: of the networks.
    """

    def __init__(self, names: Sequence[str], interfaces: Sequence[Sequence[str]]) -> None:
        self.names = tuple(names)
        parsed = [[ipaddress.ip_interface(text) for text in texts] for texts in interfaces]
        self.own = frozenset(str(item.ip) for items in parsed for item in items)
        self._spans = [
            (item.version, int(item.network.network_address), int(item.network.broadcast_address), segment)
            for segment, items in enumerate(parsed)
            for item in items
        ]

    def segment_of(self, address: str) -> int | None:
        """Return the network that a neighbour's address belongs to; None for an own, foreign or reserved address.

        Examples
        --------
        >>> networks = Networks(["left"], [["198.18.1.1/24"]])
        >>> [networks.segment_of(text) for text in ("198.18.1.2", "198.18.1.1", "198.18.1.255", "198.18.2.2", "x")]
        [0, None, None, None, None]
        """
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return None
        number, version = int(parsed), parsed.version
        for of_version, first, last, segment in self._spans:
            if version == of_version and first <= number <= last:
                # An IPv4 network's first and last addresses are nobody's (RFC 1122 sec. 3.2.1.3), save in a /31.
                is_reserved = version == 4 and last - first > 1 and number in (first, last)
                return None if is_reserved or address in self.own else segment
        return None


@dataclass(slots=True)
class Entry:
    """The entry of an address.

    ``confirmed_s``: when its owner was last heard; ``unanswered``: solicitations since then; ``claim``: MAC
    address that wants the entry, empty if none, and ``claim_asks`` how often its owner was asked since; ``due_s``: when
    something is due for it; ``is_static``: stated in the file, never asked for and never changed.
    """

    segment: int
    address: str
    mac: str
    confirmed_s: float
    due_s: float
    unanswered: int = 0
    claim: str = ""
    claim_asks: int = 0
    is_static: bool = False

    @property
    def state(self) -> str:
        """``static``, ``reachable`` or ``probe``."""
        if self.is_static:
            return "static"
        return "probe" if self.unanswered or self.claim else "reachable"


class _Bucket:
    """Solicitations that a network may still send; a token bucket."""

    def __init__(self) -> None:
        self._left, self._at_s = _BURST, 0.0

    def takes_one(self, now_s: float, reserve: float = 0.0) -> bool:
        self._left = min(self._left + (now_s - self._at_s) * SOLICITS_PER_S, _BURST)
        self._at_s = now_s
        if self._left < 1.0 + reserve:
            return False
        self._left -= 1.0
        return True


class NeighbourTable:
    """The neighbours on all outside networks.

    ``static``: MAC address of each stated neighbour; ``own_macs``: the router's own, which no neighbour has. Methods
    return actions. ``counts``: of each network, claims that were dropped, by reason.
    """

    def __init__(
        self, networks: Networks, *, own_macs: Iterable[str] = (), static: Mapping[str, str] | None = None
    ) -> None:
        self.networks = networks
        self.own_macs = frozenset(own_macs)
        self.entries: dict[str, Entry] = {}
        self.counts = [dict.fromkeys(("foreign", "own", "refused", "invalid", "full"), 0) for _ in networks.names]
        self._asked: list[OrderedDict[str, tuple[float, int]]] = [OrderedDict() for _ in networks.names]
        self._of_mac: dict[str, set[str]] = {}
        self._per_segment = [0] * len(networks.names)
        self._buckets = [_Bucket() for _ in networks.names]
        self._due: list[tuple[float, str]] = []
        self._told_s: dict[tuple[int, str], float] = {}
        self._defended_s = [float("-inf")] * len(networks.names)
        self._defence_due_s = [float("inf")] * len(networks.names)
        self._static = {}
        for address, mac in (static or {}).items():
            segment = networks.segment_of(address)
            if segment is not None:
                self._static[address] = Entry(segment, address, mac, 0.0, float("inf"), is_static=True)

    def start(self, wanted: Iterable[str], now_s: float) -> list[Action]:
        """Begin: set the stated neighbours, and look these addresses up."""
        actions: list[Action] = []
        for entry in self._static.values():
            if entry.address not in self.entries:
                actions += self._put(entry)
        for address in wanted:
            actions += self.want(address, now_s)
        return actions

    @property
    def next_s(self) -> float:
        """When something is due; infinity if nothing is."""
        return min(self._due[0][0] if self._due else float("inf"), *self._defence_due_s)

    @property
    def is_settled(self) -> bool:
        """Whether every entry is confirmed, nothing is claimed or to be defended, and no address is looked up."""
        return (
            not any(self._asked)
            and min(self._defence_due_s) == float("inf")
            and all(not entry.unanswered and not entry.claim for entry in self.entries.values())
        )

    def want(self, address: str, now_s: float) -> list[Action]:
        """Look an address up because a back-end router has packets for it; a known one is given out again."""
        segment = self.networks.segment_of(address)
        if segment is None:
            return []
        if entry := self.entries.get(address):
            return [SetNeighbour(segment, address, entry.mac)]
        look_ups = self._asked[segment]
        if address in look_ups:
            return []
        if not self._buckets[segment].takes_one(now_s, _RESERVE):
            return []
        if len(look_ups) >= MAX_ASKED:
            look_ups.popitem(last=False)
        look_ups[address] = (now_s, 1)
        self._push(now_s + LOOK_UP_EVERY_S, address)
        return [Solicit(segment, address)]

    def is_any_on(self, segment: int) -> bool:
        """Return whether a neighbour is known on a network."""
        return self._per_segment[segment] > 0

    def ask_some(self, segment: int, now_s: float) -> list[Action]:
        """Ask the neighbours of a network that were confirmed last, so that one answers if the network can be heard."""
        known = [entry for entry in self.entries.values() if entry.segment == segment]
        latest = heapq.nlargest(_SOLICITS_AT_ONCE, known, key=lambda entry: entry.confirmed_s)
        return [
            Solicit(segment, entry.address, entry.mac) for entry in latest if self._buckets[segment].takes_one(now_s)
        ]

    def hear(
        self,
        segment: int,
        address: str,
        mac: str,
        now_s: float,
        *,
        is_for_us: bool,
        is_probe: bool = False,
        since_s: float | None = None,
    ) -> list[Action]:
        """Take in an ARP frame or a message of neighbour discovery that says that ``mac`` has ``address``.

        ``is_for_us``: it answers the router or asks for it, so that an unknown neighbour becomes known; ``is_probe``:
        it only asks whether somebody has the address (RFC 5227 sec. 2.1.1, RFC 4862 sec. 5.4), and claims nothing;
        ``since_s``: when it came at the earliest, where it may have waited, for it confirms nothing later than that.
        """
        if is_probe:
            return []
        if address in self.networks.own:
            self.counts[segment]["own"] += 1
            return [
                *self._tell(segment, mac, f"{mac} claims the router's own address {address}", now_s),
                *self._defend(segment, now_s),
            ]
        if not _is_unicast(mac) or mac in self.own_macs:
            self.counts[segment]["invalid"] += 1
            return self._tell(segment, mac, f"a frame gives {address} to {mac}, which is no neighbour's", now_s)
        of_address = self.networks.segment_of(address)
        if of_address is None:
            self.counts[segment]["invalid"] += 1
            return []
        if of_address != segment:
            self.counts[segment]["foreign"] += 1
            name = self.networks.names[of_address]
            return self._tell(segment, mac, f"{mac} claims {address} of the network {name}", now_s)
        entry = self.entries.get(address)
        if entry is not None:
            return self._hear_known(entry, mac, now_s, now_s if since_s is None else since_s)
        if not is_for_us and address not in self._asked[segment]:
            return []
        if self._is_foreign_mac(mac, segment):
            self.counts[segment]["foreign"] += 1
            return self._tell(segment, mac, f"{mac} is in use on another network, and claims {address}", now_s)
        if self._per_segment[segment] >= MAX_ENTRIES // len(self.networks.names):
            self.counts[segment]["full"] += 1
            return self._tell(segment, "table", f"no room for {address}", now_s)
        self._asked[segment].pop(address, None)
        return self._put(Entry(segment, address, mac, now_s, now_s + REACHABLE_S))

    def tick(self, now_s: float) -> list[Action]:
        """Do what is due."""
        actions: list[Action] = []
        for place, due_s in enumerate(self._defence_due_s):
            if due_s <= now_s:
                actions += self._defend(place, now_s)
        while self._due and self._due[0][0] <= now_s:
            _, address = heapq.heappop(self._due)
            if entry := self.entries.get(address):
                if entry.due_s <= now_s:
                    actions += self._step(entry, now_s)
                continue
            segment = self.networks.segment_of(address)
            look_up = None if segment is None else self._asked[segment].get(address)
            if segment is not None and look_up is not None:
                actions += self._look_up_again(segment, address, *look_up, now_s)
        return actions

    def pass_idle(self, until_s: float) -> None:
        """Let time pass in which every neighbour answers: as if each solicitation had been answered at once."""
        self._due = []
        for entry in self.entries.values():
            if not entry.is_static:
                rounds = max((until_s - entry.confirmed_s) // REACHABLE_S, 0.0)
                entry.confirmed_s += rounds * REACHABLE_S
                entry.due_s = entry.confirmed_s + REACHABLE_S
                self._push(entry.due_s, entry.address)

    def _hear_known(self, entry: Entry, mac: str, now_s: float, since_s: float) -> list[Action]:
        segment, address = entry.segment, entry.address
        if mac == entry.mac:
            actions: list[Action] = []
            if entry.claim:
                self.counts[segment]["refused"] += 1
                message = f"{entry.claim} claims {address}, which {entry.mac} has and answers for"
                actions = self._tell(segment, entry.claim, message, now_s)
            if not entry.is_static:
                entry.confirmed_s, entry.unanswered, entry.claim = max(entry.confirmed_s, since_s), 0, ""
                self._schedule(entry, entry.confirmed_s + REACHABLE_S)
            return actions
        if self._is_foreign_mac(mac, segment):
            self.counts[segment]["foreign"] += 1
            return self._tell(segment, mac, f"{mac} is in use on another network, and claims {address}", now_s)
        if entry.is_static:
            self.counts[segment]["refused"] += 1
            return self._tell(segment, mac, f"{mac} claims {address}, which the file gives to {entry.mac}", now_s)
        if entry.unanswered >= UNICASTS:  # the owner does not answer any more
            return self._move(entry, mac, now_s)
        if entry.claim:
            entry.claim = mac
            return []
        entry.claim, entry.claim_asks = mac, entry.unanswered  # so often it has not answered already
        self._schedule(entry, now_s)
        return self._step(entry, now_s)

    def _step(self, entry: Entry, now_s: float) -> list[Action]:
        segment, address = entry.segment, entry.address
        if entry.claim and self._is_foreign_mac(entry.claim, segment):  # it came into use there meanwhile
            self.counts[segment]["foreign"] += 1
            entry.claim = ""
        if entry.claim:
            if entry.claim_asks >= CLAIM_ASKS:
                return self._move(entry, entry.claim, now_s)
            self._schedule(entry, now_s + CLAIM_EVERY_S)
            if not self._buckets[segment].takes_one(now_s):
                return []
            entry.claim_asks += 1
            return [Solicit(segment, address, entry.mac)]
        if not self._buckets[segment].takes_one(now_s):
            self._schedule(entry, now_s + UNICAST_EVERY_S)
            return []
        entry.unanswered += 1
        if entry.unanswered <= UNICASTS:
            self._schedule(entry, now_s + UNICAST_EVERY_S)
            return [Solicit(segment, address, entry.mac)]
        if entry.unanswered <= UNICASTS + BROADCASTS:
            self._schedule(entry, now_s + BROADCAST_EVERY_S)
            return [Solicit(segment, address)]
        return [
            RemoveNeighbour(segment, address),
            *self._drop(entry),
            Event(self.networks.names[segment], "neighbour gone", f"{address} at {entry.mac} does not answer"),
        ]

    def _look_up_again(self, segment: int, address: str, since_s: float, times: int, now_s: float) -> list[Action]:
        if times >= LOOK_UPS:
            del self._asked[segment][address]
            return []
        self._asked[segment][address] = (since_s, times + 1)
        self._push(now_s + LOOK_UP_EVERY_S, address)
        return [Solicit(segment, address)] if self._buckets[segment].takes_one(now_s, _RESERVE) else []

    def _move(self, entry: Entry, mac: str, now_s: float) -> list[Action]:
        before = entry.mac
        forgotten = self._drop(entry)
        # It is asked at once: a claim is no answer (RFC 4861 sec. 7.2.5 has such an entry stale).
        moved = Entry(entry.segment, entry.address, mac, now_s, now_s)
        name = self.networks.names[entry.segment]
        text = f"{entry.address} moved from {before} to {mac}"
        # First the new one, so that no packet finds neither.
        return [*self._put(moved), *forgotten, Event(name, "neighbour moved", text)]

    def _put(self, entry: Entry) -> list[Action]:
        self.entries[entry.address] = entry
        self._of_mac.setdefault(entry.mac, set()).add(entry.address)
        self._per_segment[entry.segment] += 1
        if not entry.is_static:
            self._push(entry.due_s, entry.address)
        return [SetNeighbour(entry.segment, entry.address, entry.mac)]

    def _drop(self, entry: Entry) -> list[Action]:
        del self.entries[entry.address]
        self._per_segment[entry.segment] -= 1
        others = self._of_mac[entry.mac]
        others.discard(entry.address)
        if others:
            return []
        del self._of_mac[entry.mac]
        return [ForgetMac(entry.mac)]

    def _is_foreign_mac(self, mac: str, segment: int) -> bool:
        return any(self.entries[address].segment != segment for address in self._of_mac.get(mac, ()))

    def _schedule(self, entry: Entry, due_s: float) -> None:
        entry.due_s = due_s
        self._push(due_s, entry.address)

    def _push(self, due_s: float, address: str) -> None:
        heapq.heappush(self._due, (due_s, address))

    def _tell(self, segment: int, whom: str, message: str, now_s: float) -> list[Action]:
        """Tell people, once a second of each claimant; the counts have all."""
        key = (segment, whom)
        if now_s - self._told_s.get(key, float("-inf")) < _TELLS_EVERY_S:
            return []
        if len(self._told_s) >= MAX_ASKED:
            self._told_s.clear()
        self._told_s[key] = now_s
        return [Event(self.networks.names[segment], "claim dropped", message)]

    def _defend(self, segment: int, now_s: float) -> list[Action]:
        """Announce the router's addresses, or do so later: a claim within a second of a defence undoes it."""
        next_s = self._defended_s[segment] + _DEFENDS_EVERY_S
        if now_s < next_s:
            self._defence_due_s[segment] = next_s
            return []
        self._defended_s[segment], self._defence_due_s[segment] = now_s, float("inf")
        return [Announce(segment)]


def _is_unicast(mac: str) -> bool:
    """Return whether a MAC address is one neighbour's: no group, and not zero.

    Examples
    --------
    >>> [_is_unicast(mac) for mac in ("02:00:00:00:00:01", "ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00")]
    [True, False, False]
    """
    return int(mac[:2], 16) & 1 == 0 and mac != "00:00:00:00:00:00"
