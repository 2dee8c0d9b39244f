"""What people ask of a router: its state, changes of its members, faults, the way of a flow, an audit."""

from __future__ import annotations

import copy
import ipaddress
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import Any

from routecast.errors import EnvironmentProblem, FileProblem, QuantityProblem
from routecast.lab._lab import flow_row, flow_table
from routecast.multistage._client import clock_text
from routecast.multistage._disk import Disk, Events, NotWritten
from routecast.multistage._elements import Elements, digest_of_lines, unpinned
from routecast.multistage._layout import Layout
from routecast.multistage._membership import MAX_MEMBERS, Member
from routecast.multistage._wiring import add_router, ip, set_links
from routecast.multistage.protocol.actions import Action, Event
from routecast.multistage.protocol.machine import Machine
from routecast.multistage.reading import BackEndTable, problems_of_router
from routecast.quantity.toml_file import validated

__all__ = ["DIRECTIONS", "FAULTS", "Requests", "require_programs"]

FAULTS = ("link", "hang")
"""Kinds of faults: the interfaces go down, or the element silently drops frames."""
DIRECTIONS = ("in", "out", "both")
"""Directions of lost frames: those that reach the element, those that it sends, or both."""
_IN_FLIGHT_S = 0.1
_MAX_DRAIN_S = 86_400.0
_PROTOCOLS = {"icmp": 1, "tcp": 6, "udp": 17, "icmpv6": 58, "sctp": 132}


class Requests:
    """The requests to a router.

    ``lock`` is held by whoever drives the protocol; requests come one at a time, and hold it only for what changes.
    """

    def __init__(self, layout: Layout, disk: Disk, elements: Elements, events: Events, lock: threading.RLock) -> None:
        self._layout, self._disk, self._elements, self._events = layout, disk, elements, events
        self._machine: Machine = elements.machine
        self._lock = lock
        self._one_at_a_time = threading.RLock()

    def status(self) -> dict[str, Any]:
        """Return the elements with their counts since their start, and their states from evidence."""
        with self._lock:
            machine, now_s = self._machine, time.monotonic()
            counts = {name: balancer.status() for name, balancer in self._elements.balancers.items()}
            gates = {name: json.loads(gate.counters()) for name, gate in self._elements.gates.items()}
            epoch_s = time.time() - now_s
            by_number = [{row["number"]: row for row in counted["members"]} for counted in counts.values()]
            active = {row["number"]: row for row in counts[machine.membership.active]["members"]}
            routers = []
            for member in machine.membership.members.values():
                counted, watch = active.get(member.number, {}), machine.members[member.name]
                verdicts = sum(rows.get(member.number, {}).get("deaths", 0) for rows in by_number)
                revivals = sum(rows.get(member.number, {}).get("revivals", 0) for rows in by_number)
                routers.append(
                    {
                        "name": member.name,
                        "state": machine.state_of(member.name, now_s),
                        "seen_unix_s": watch.seen_s + epoch_s,
                        "weight": member.weight,
                        "cap_pps": member.cap_pps,
                        "forwarding": member.forwarding,
                        "fault": member.fault,
                        **{key: counted.get(key, 0) for key in _COUNTS},
                        "deaths": verdicts + watch.silences,
                        "revivals": revivals + watch.returns,
                        "over_the_cap": gates[member.name]["over_the_cap"],
                        "in_xdp": gates[member.name]["in_xdp"],
                    }
                )
            balancers = [self._balancer_row(name, counted, now_s, epoch_s) for name, counted in counts.items()]
            neighbours = machine.neighbours
            return {
                "name": self._layout.file.name,
                "time_s": now_s,
                "epoch": machine.membership.epoch,
                "detector": {
                    "silence_s": self._layout.file.detector.silence,
                    "unanswered": self._layout.file.detector.unanswered,
                },
                "balancers": balancers,
                "routers": routers,
                "neighbours": {address: entry.mac for address, entry in sorted(neighbours.entries.items())},
                "neighbour_states": {address: entry.state for address, entry in sorted(neighbours.entries.items())},
                "claims_dropped": {
                    segment.name: dict(counts_of)
                    for segment, counts_of in zip(self._layout.file.segment, neighbours.counts, strict=True)
                },
            }

    def _balancer_row(self, name: str, counted: dict[str, Any], now_s: float, epoch_s: float) -> dict[str, Any]:
        ports = {
            segment.name: counted["ports"][self._layout.port(s)] for s, segment in enumerate(self._layout.file.segment)
        }
        by_port = {port_name: port.pop("reasons") for port_name, port in ports.items()}
        by_port[_INSIDE_PORT] = counted["inside_reasons"]
        total = {reason: sum(drops[reason] for drops in by_port.values()) for reason in by_port[_INSIDE_PORT]}
        watch = self._machine.balancers[name]
        return {
            "name": name,
            "state": self._machine.state_of(name, now_s),
            "is_chosen": name == self._machine.membership.active,
            "seen_unix_s": watch.seen_s + epoch_s,
            "down": [*watch.down],
            "fault": self._machine.membership.balancer_faults.get(name, ""),
            "epoch": counted["epoch"],
            "table": counted["digest"],
            "dropped": {reason: total[reason] for reason in _DROPS},
            "dropped_by_port": {
                port_name: {reason: drops[reason] for reason in _DROPS} for port_name, drops in by_port.items()
            },
            "rerouted": total["rerouted"],
            "to_kernel": total["to_kernel"],
            "ports": ports,
        }

    def events(self, *, after: int = 0) -> list[dict[str, Any]]:
        """Return the events after a number: ``number``, ``time_unix_s``, ``element``, ``what``, ``detail``."""
        with self._lock:
            return self._events.after(after)

    def fail(
        self, element: str, kind: str = "link", *, direction: str = "both", loss_ratio: float | None = None
    ) -> None:
        """Inject a fault: take an element's links down, let it hang, or lose a share of its frames.

        ``kind`` is one of :data:`FAULTS`; with ``hang``, ``direction`` is one of :data:`DIRECTIONS` and ``loss_ratio``
        the lost share of the frames; None: all.

        Raises QuantityProblem: there is no such element, or no such fault.
        """
        ratio = _loss_of(kind, direction, loss_ratio)
        is_partial = kind == "hang" and (direction != "both" or ratio < 1.0)
        name = "loss" if is_partial else kind
        loss_in = ratio if is_partial and direction != "out" else 0.0
        loss_out = ratio if is_partial and direction != "in" else 0.0
        elements, membership = self._elements, self._machine.membership
        with self._one_at_a_time:
            with self._lock:
                balancer = elements.balancers.get(element)
                before = copy.deepcopy(membership)
                try:
                    self._record_fault(element, name, loss_in, loss_out)
                    if name == "loss" and balancer is not None:
                        elements.set_balancer_loss(element, loss_in=loss_in, loss_out=loss_out)
                except EnvironmentProblem:
                    self._machine.membership.become(before)
                    raise
                if balancer is None:
                    elements.set_loss(self._machine.changes.member(element))
                elif name == "hang":
                    balancer.plane.set_role("hangs")
                words = {"link": "links down", "hang": "hangs"}
                text = words.get(name, f"loses {ratio:.3g} of the frames, {direction}")
                elements.do([Event(element, "fault", text)])
            # The lock is free here, so that the protocol does not wait for the fault.
            if kind == "link":
                if balancer is None:
                    set_links(self._layout.netns(element), ["b0"], "down")
                else:
                    elements.set_balancer_links(element, "down")

    def _record_fault(self, element: str, name: str, loss_in: float, loss_out: float) -> None:
        membership = self._machine.membership
        if element in self._elements.balancers:
            membership.balancer_faults[element] = name
        else:
            member = self._machine.changes.member(element)
            member.fault, member.loss_in, member.loss_out = name, loss_in, loss_out
        self._disk.write_membership(membership)

    def restore(self, element: str) -> None:
        """Remove a fault: the element is set up again, as after a restart of its machine."""
        elements, membership = self._elements, self._machine.membership
        with self._one_at_a_time, self._lock:
            if element in elements.balancers:
                membership.balancer_faults.pop(element, None)
                elements.set_balancer_links(element, "up")
                elements.set_balancer_loss(element, loss_in=0.0, loss_out=0.0)
            else:
                member = self._machine.changes.member(element)
                member.fault, member.loss_in, member.loss_out = "", 0.0, 0.0
                set_links(self._layout.netns(element), ["b0"], "up")
                elements.set_up(member)
                elements.set_loss(member)
            elements.do([Event(element, "restored"), *self._machine.restored(element, time.monotonic())])
            self._disk.write_membership(membership)

    def drain(self, element: str, *, idle_s: float = 5.0, deadline_s: float = 60.0) -> None:
        """Give a back-end router no new flows; it keeps active flows until they are idle or the deadline passes."""
        for name, time_s in (("idle time", idle_s), ("deadline", deadline_s)):
            if not 0.0 < time_s <= _MAX_DRAIN_S:
                raise QuantityProblem("", f"{name} {time_s:g} s: above 0 and up to {_MAX_DRAIN_S:g} s is allowed")
        with self._one_at_a_time:
            self._change(
                lambda now_s: self._machine.changes.drain(element, idle_s=idle_s, deadline_s=deadline_s, now_s=now_s)
            )

    def add(self, element: str, *, weight: float | None = None, **settings: Any) -> None:
        """Add a back-end router with settings as in a file, or give a draining router its flows again."""
        with self._one_at_a_time:
            if element not in self._machine.membership.members:
                self._machine.changes.refuse_while_draining(time.monotonic())
                self._add_new({"name": element, "weight": weight or 1.0, **settings})
            self._change(lambda now_s: self._machine.changes.take(element, weight=weight, now_s=now_s))

    def remove(self, element: str) -> None:
        """Remove a back-end router: others get its flows at once, and frames in flight still arrive."""
        with self._one_at_a_time:
            member = self._machine.changes.member(element)
            self._change(lambda now_s: self._machine.changes.dismiss(element, now_s))
            time.sleep(_IN_FLIGHT_S)
            with self._lock:
                self._elements.close_member(member)
                self._elements.do(self._machine.changes.forget(element))
            ip(None, [f"netns del {self._layout.netns(element)}"])
            unpinned(self._disk.pins / element)
            self._disk.write_namespaces(self._machine.membership)

    def set_weight(self, element: str, weight: float) -> None:
        """Set the weight of a back-end router, and thereby its share of the flows."""
        if not 0.0 < weight <= 1e6:
            raise QuantityProblem(str(weight), f"got weight {weight:g}: above 0 and up to 1e6 is allowed")
        with self._one_at_a_time:
            self._change(lambda now_s: self._machine.changes.set_weight(element, weight, now_s))

    def _change(self, change: Callable[[float], Iterable[Action]]) -> None:
        """Make a change of the members; what cannot be written to disk is not made."""
        with self._lock:
            before = copy.deepcopy(self._machine.membership)
            try:
                self._elements.do(change(time.monotonic()))
            except NotWritten:
                self._machine.membership.become(before)
                raise

    def trace(self, protocol: str, source: str, destination: str) -> dict[str, Any]:
        """Return the back-end router of a flow, and the reasons.

        ``protocol``: ``"udp"``, ``"tcp"``, … or its number; ``source`` and ``destination``: ``ADDRESS:PORT``,
        ``[ADDRESS]:PORT`` for IPv6, or an address alone.
        """
        number = _protocol_number(protocol)
        (source, source_port), (destination, destination_port) = _endpoint(source), _endpoint(destination)
        if ipaddress.ip_address(source).version != ipaddress.ip_address(destination).version:
            raise QuantityProblem(destination, f"{source} and {destination} are of two versions of IP")
        ports = None if source_port is None or destination_port is None else (source_port, destination_port)
        with self._lock:
            row = flow_row(source, destination, number, ports, False)
            weights = self._machine.membership.weights()
            (order,) = flow_table(weights, self._machine.membership.seed, [row])
            states = {router["name"]: router["state"] for router in self.status()["routers"]}
            names = [member.name for number in order if (member := self._machine.membership.by_number(number))]
        skipped = list(takewhile(lambda name: states[name] not in ("active", "draining"), names))
        reasons = [f"row {row} of 65536 goes to {', then '.join(names[:3])}" if names else "there is no member"]
        reasons += [f"{name} is {states[name]}" for name in skipped]
        if self._layout.file.scheme != "flow_hash":
            reasons.append(f"the scheme {self._layout.file.scheme} does not choose by the flow")
        draining = [name for name, state in states.items() if state == "draining"]
        if draining:
            reasons.append(f"{draining[0]} drains and keeps its rows that have frames")
        return {"row": row, "router": next(iter(names[len(skipped) :]), None), "order": names, "because": reasons}

    def audit(self, *, repair: bool = False) -> dict[str, Any]:
        """Return digests of the tables of each element, and as problems who differs from what it should be, or is gone.

        ``repair``: mend what differs first.
        """
        with self._one_at_a_time, self._lock:
            elements, machine, now_s = self._elements, self._machine, time.monotonic()
            if repair:
                elements.do(machine.read(elements.contents(), elements.readings(), time.monotonic()))
            contents, readings = elements.contents(), elements.readings()
            problems = []
            for name, watch in machine.balancers.items():
                state = machine.state_of(name, now_s)
                if state in {"dead", "not seen"}:
                    problems.append(f"{name}: {state} since {_clock(watch.seen_s - now_s)}")
                elif (reading := readings[name]) is not None and (why := machine.audit.difference_of(name, reading)):
                    problems.append(f"{name}: {why}")
            for name, lines in contents.items():
                state = machine.state_of(name, now_s)
                if state in {"dead", "not seen"}:
                    problems.append(f"{name}: {state} since {_clock(machine.members[name].seen_s - now_s)}")
                elif lines is None:
                    problems.append(f"{name}: its tables cannot be read")
                else:
                    missing, extra = machine.audit.differences_of(lines)
                    problems += [f"{name}: lacks {line}" for line in missing]
                    problems += [f"{name}: should not have {line}" for line in extra]
                    if state == "differs":
                        problems.append(f"{name}: {self._why_it_differs(name)}")
            digests = {name: "" if lines is None else digest_of_lines(lines) for name, lines in contents.items()}
            return {"is_equal": not problems, "problems": problems, "balancers": elements.audits(), "routers": digests}

    def _why_it_differs(self, name: str) -> str:
        lacks = self._machine.members[name].lacks
        paths = ", ".join(map(self._machine.paths.name_of, sorted(lacks)))
        return f"it returns nothing {paths}" if lacks else "its tables could not be mended"

    def _add_new(self, settings: dict[str, Any]) -> None:
        table = validated(BackEndTable, settings, "routecast multistage add")
        if problems := [*problems_of_router("", table)]:
            raise FileProblem("routecast multistage add", problems)
        require_programs([table])
        element, membership = table.name, self._machine.membership
        number = membership.free_number()
        others = {*self._elements.balancers, *(segment.name for segment in self._layout.file.segment)}
        if number is None or element in others:
            reason = f"the router has {MAX_MEMBERS} members already" if number is None else "an element has this name"
            raise QuantityProblem(element, f"{element} cannot be added: {reason}")
        member = Member.of(table, number, takes=False)
        self._disk.bed.namespaces.append(self._layout.netns(element))
        self._disk.bed.write()
        add_router(self._layout, element, number)  # without the lock: it starts processes
        with self._lock:
            self._elements.open_member(member)
            self._elements.set_up(member)
            self._elements.do(self._machine.changes.admit(member, time.monotonic()))
        self._wait_for_answer(member)

    def _wait_for_answer(self, member: Member) -> None:
        """Wait until a new router forwards, before it gets flows."""
        deadline = time.monotonic() + 1.0
        while time.monotonic() < deadline:
            with self._lock:
                active = self._elements.balancers[self._machine.membership.active]
                active.send_probes([member.number])
            time.sleep(0.002)
            members = {row["number"]: row for row in active.status()["members"]}
            if members[member.number]["probes_returned"] > 0:
                return
        raise EnvironmentProblem(
            f"{member.name} does not forward: `routecast multistage remove {member.name}` removes it"
        )


_INSIDE_PORT = "to-routers"
"""Name of the interface to the back-end routers; names of outside networks have no hyphen."""
_DROPS = ("no_member", "no_room", "malformed", "unknown_neighbour")
_COUNTS = (
    "sent_frames",
    "sent_octets",
    "returned_frames",
    "returned_octets",
    "probes_sent",
    "probes_returned",
    "silent_s",
)


def _loss_of(kind: str, direction: str, loss_ratio: float | None) -> float:
    if kind not in FAULTS:
        raise QuantityProblem(kind, f"got {kind!r}: a fault is one of {', '.join(FAULTS)}")
    if direction not in DIRECTIONS:
        raise QuantityProblem(direction, f"got {direction!r}: a direction is one of {', '.join(DIRECTIONS)}")
    if kind == "link" and (direction != "both" or loss_ratio is not None):
        raise QuantityProblem(kind, "links go down for both directions: a direction or a loss needs the kind hang")
    if loss_ratio is not None and not 0.0 < loss_ratio <= 1.0:
        raise QuantityProblem(str(loss_ratio), f"got a loss of {loss_ratio:g}: above 0 and up to 1 is allowed")
    return 1.0 if loss_ratio is None else loss_ratio


def _clock(ago_s: float) -> str:
    """Return the time of day of a moment in the past."""
    now_unix_s = time.time()
    return clock_text(now_unix_s + ago_s, now_unix_s)


def _protocol_number(text: str) -> int:
    number = _PROTOCOLS.get(text.lower(), int(text) if text.isdecimal() else -1)
    if not 0 <= number <= 255:
        raise QuantityProblem(text, f"got protocol {text!r}: one of {', '.join(_PROTOCOLS)}, or a number up to 255")
    return number


def _endpoint(text: str) -> tuple[str, int | None]:
    """Return an address and a port.

    Examples
    --------
    >>> _endpoint("198.18.1.2:1024"), _endpoint("[2001:2::1]:7"), _endpoint("2001:2::1")
    (('198.18.1.2', 1024), ('2001:2::1', 7), ('2001:2::1', None))
    """
    address, port = text, ""
    if text.startswith("["):
        address, _, port = text[1:].partition("]:")
    elif text.count(":") == 1:
        address, _, port = text.partition(":")
    try:
        ipaddress.ip_address(address)
        number = int(port) if port else None
        if number is not None and not 0 <= number <= 0xFFFF:
            raise ValueError
    except ValueError:
        raise QuantityProblem(text, f"got {text!r}: write ADDRESS:PORT, such as 198.18.1.2:1024") from None
    return address, number


def require_programs(routers: Iterable[BackEndTable]) -> None:
    """Raise EnvironmentProblem if a program that a back-end router needs is missing."""
    if any(router.forwarding == "nftables" for router in routers) and not shutil.which("nft"):
        raise EnvironmentProblem("a back-end router with nftables needs the program nft: apt install nftables")
