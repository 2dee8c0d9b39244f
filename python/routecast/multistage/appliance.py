"""A router of many machines on this machine: the process that makes, watches, changes and removes it.

The programs of the load balancers detect dead back-end routers without this process. This process sends probe frames,
so that dead routers return and silence shows without traffic. It distributes neighbours to all elements, lets the
standby load balancer take over, and is the only process that holds the membership.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import takewhile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from routecast._core import MemberGate, TesterError, flow_row, flow_table
from routecast.errors import EnvironmentProblem, FileProblem, QuantityProblem
from routecast.multistage._balancer import COMPARES_EVERY_S, Balancer, NeighbourSocket, RouteComparison
from routecast.multistage._layout import Layout, Outside, octets
from routecast.multistage._membership import MAX_MEMBERS, Member, Membership
from routecast.multistage._wiring import (
    add_addresses,
    add_router,
    clear_outside,
    ip,
    make_base,
    mount_pins,
    remove_addresses,
    routes_digest,
    set_links,
    set_router_up,
    set_rules,
)
from routecast.multistage.prediction import CALL_EVERY_S, MISSED_CALLS
from routecast.multistage.reading import BackEndTable, MultistageFile, parse_multistage, problems_of_router
from routecast.quantity.toml_file import validated
from routecast.testbed import netns, state
from routecast.testbed.checks import NAMESPACE_CAPABILITIES, require
from routecast.testbed.tester import error_text

__all__ = ["FAULTS", "Appliance"]

FAULTS = ("link", "hang")
"""Kinds of faults: the interfaces go down, or the element silently drops all frames."""

_TICK_S = 0.02
_PROBES_EVERY_S = 0.1
_SILENT_AFTER_S = 1.0
_ANSWERS_TO_COME_BACK = 3
_LOOKS_UP_AGAIN_AFTER_S = 0.3
_IN_FLIGHT_S = 0.1
_MAX_DRAIN_S = 86_400.0
_ANNOUNCEMENTS = 3
_BETWEEN_ANNOUNCEMENTS_S = 0.002
_ANNOUNCE_EVERY_S = 1.0
_ANNOUNCE_OFTEN_FOR_S = 1.0
_FIRST_NEIGHBOURS_WITHIN_S = 2.0
_PROTOCOLS = {"icmp": 1, "tcp": 6, "udp": 17, "icmpv6": 58, "sctp": 132}


class _ProbeState:
    """The answers of a member to the probe frames of this process, and the verdicts on it."""

    def __init__(self) -> None:
        self.answered = 0
        self.answered_s = time.monotonic()
        self.in_a_row = 0
        self.is_silent = False
        self.differs = False


class Appliance:
    """A router of many machines, as a context that takes it down at its end.

    ``text``: text or content of its ``*.multistage.toml``; ``subject``: source of the text, for messages; ``outside``:
    existing interfaces of its outside networks, with which the router ends with its process; None: each network gets a
    host; ``on_remark``: receives remarks for the user, line by line. Raises FileProblem: the text has faults.
    """

    def __init__(
        self,
        text: str | MultistageFile,
        *,
        subject: str = "multistage router",
        outside: Outside | None = None,
        on_remark: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.file = parse_multistage(text, subject=subject) if isinstance(text, str) else text
        self.layout = Layout(self.file, outside)
        self.name = self.file.name
        self.on_remark = on_remark
        self._text = text if isinstance(text, str) else ""
        self._lock = threading.RLock()
        self._bed_lock: state.BedLock | None = None
        self._state = state.BedState(bed=self.name)
        self._is_made = False
        self._balancers: dict[str, Balancer] = {}
        self._gates: dict[str, MemberGate] = {}
        self._probe_states: dict[str, _ProbeState] = {}
        self._route_comparison = RouteComparison(lambda element: routes_digest(self.layout.netns(element)))
        self._neighbour_sockets: dict[str, NeighbourSocket] = {}
        self._neighbours: dict[str, tuple[str, int]] = {}
        self._looked_up_s: dict[str, float] = {}
        self._membership = Membership(seed=self.file.seed, active=self.layout.balancers()[0])
        self._next_s = dict.fromkeys(("probe", "call", "announce", "compare"), 0.0)
        self._announces_until_s = 0.0
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def folder(self) -> Path:
        """Folder of its files on this machine."""
        return state.FOLDER / f"{self.name}.multistage"

    def __enter__(self) -> Self:
        """Make the router, or take over a router whose process has ended.

        Raises EnvironmentProblem: a privilege or a program is missing, another process holds the router, or the kernel
        refuses.
        """
        require(NAMESPACE_CAPABILITIES, "a router of many machines")
        _require_programs(self.file.router)
        self._bed_lock = state.BedLock(self.name)
        try:
            left = state.BedState.read(self.name)
            if left is not None and left.is_kept and (self.folder / "membership.json").exists():
                self._take_over(left)
            else:
                if left is not None:
                    self.on_remark(f"removing what process {left.pid} left of {self.name!r}")
                    state.clean(left)
                self._create()
        except BaseException:
            self.end()
            raise
        self._thread = threading.Thread(target=self._watch, name=f"multistage {self.name}", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the router down."""
        self.end()

    def end(self) -> None:
        """Take the router down; a second call does nothing."""
        with state.signals_ignored():
            self._stopping.set()
            if self._thread is not None and self._thread is not threading.current_thread():
                self._thread.join()
            self._release()

    def leave(self) -> None:
        """Leave the router without its process, as after the death of the process."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        self._close()
        if self._bed_lock is not None:
            self._bed_lock.release()
            self._bed_lock = None

    def _close(self) -> None:
        self._route_comparison.wait()
        handles: list[NeighbourSocket | MemberGate | Balancer] = [*self._neighbour_sockets.values()]
        for handle in [*handles, *self._gates.values(), *self._balancers.values()]:
            handle.close()
        self._neighbour_sockets, self._gates, self._balancers = {}, {}, {}

    def _release(self) -> None:
        if self._bed_lock is None:
            return
        self._close()
        try:
            if self._is_made:
                state.clean(self._state)
                if self.layout.outside is not None:
                    clear_outside(self.layout)
        finally:
            self._bed_lock.release()
            self._bed_lock = None

    def _write_state(self) -> None:
        routers = [self.layout.netns(name) for name in self._membership.members]
        self._state.namespaces = [*self.layout.base_namespaces(), *routers]
        self._state.write()

    def _create(self) -> None:
        namespaces = {*self.layout.base_namespaces(), *(self.layout.netns(table.name) for table in self.file.router)}
        existing = namespaces & {*netns.names()}
        if existing:
            raise EnvironmentProblem(
                f"namespace {sorted(existing)[0]} exists and is no router's: remove it, or give the router another name"
            )
        self._is_made = True
        for number, table in enumerate(self.file.router):
            self._membership.members[table.name] = Member.of(table, number)
        self._state.pid_start_ticks = state.start_ticks(self._state.pid)
        self._state.folder = str(self.folder)
        self._state.mounts = [str(self.folder / "pins")]
        self._write_state()
        self.folder.mkdir(parents=True, exist_ok=True)
        mount_pins(self.folder / "pins")
        make_base(self.layout)
        for member in self._membership.members.values():
            add_router(self.layout, member.name, member.number)
        self._open_programs()
        for member in self._membership.members.values():
            self._set_up(member)
        self._activate(self._membership.active)
        self._publish()
        (self.folder / "router.multistage.toml").write_text(self._text, encoding="utf-8")
        self._state.is_kept = self.layout.outside is None
        self._state.write()
        self._find_hosts()

    def _take_over(self, left: state.BedState) -> None:
        text = (self.folder / "router.multistage.toml").read_text(encoding="utf-8")
        if text != self._text:
            raise EnvironmentProblem(
                f"{self.name!r} is up from another file: take it down first, `routecast multistage down {self.name}`"
            )
        self._membership = Membership.read(self.folder / "membership.json")
        expected = {*self.layout.base_namespaces(), *map(self.layout.netns, self._membership.members)}
        missing = sorted(expected - {*netns.names()})
        if missing:
            raise EnvironmentProblem(
                f"{self.name!r} cannot be taken over: {', '.join(missing)} is gone; "
                f"`routecast multistage down {self.name}` takes it down"
            )
        self._is_made = True
        # A router whose addition or removal was not finished is not a member.
        for name in (set(left.namespaces) - expected) & {*netns.names()}:
            ip(None, [f"netns del {name}"])
        left.pid, left.pid_start_ticks = self._state.pid, state.start_ticks(self._state.pid)
        self._state = left
        self._write_state()
        self.on_remark(f"taking over {self.name!r}, whose process has ended")
        self._open_programs()
        for member in self._membership.members.values():
            (self._set_gate if member.fault else self._set_up)(member)
        if self._membership.active not in self._balancers:
            self._membership.active = next(iter(self._balancers))
        self._activate(self._membership.active)
        audits = [json.loads(balancer.plane.audit()) for balancer in self._balancers.values()]
        if any((audit["rows"], audit["epoch"]) != (audit["expected"], self._membership.epoch) for audit in audits):
            self._publish()
        self._find_hosts()

    def _open_programs(self) -> None:
        pins = self.folder / "pins"
        try:
            for number, name in enumerate(self.layout.balancers()):
                self._balancers[name] = Balancer(self.layout, number, self._membership, pins / name)
            for member in self._membership.members.values():
                self._open_member(member)
            for balancer in self._balancers.values():
                for segment in self.file.segment:
                    for address in filter(None, (segment.ipv4, segment.ipv6)):
                        balancer.plane.add_own(address.partition("/")[0])
                self._neighbour_sockets[balancer.name] = NeighbourSocket(balancer.netns)
        except TesterError as problem:
            raise EnvironmentProblem(f"the eBPF programs cannot be used: {error_text(problem)}") from problem

    def _open_member(self, member: Member) -> None:
        namespace = self.layout.netns(member.name)
        pins = self.folder / "pins" / member.name
        self._gates[member.name] = MemberGate("b0", str(netns.FOLDER / namespace), str(pins))
        self._probe_states[member.name] = _ProbeState()
        self._neighbour_sockets[member.name] = NeighbourSocket(namespace)
        for balancer in self._balancers.values():
            if member.number not in {row["number"] for row in balancer.status()["members"]}:
                balancer.plane.set_member(member.number, octets(self.layout.member_mac(member.number)))

    def _set_up(self, member: Member) -> None:
        set_router_up(self.layout, member.name, {address: mac for address, (mac, _) in self._neighbours.items()})
        if member.forwarding == "nftables":
            set_rules(self.layout.netns(member.name), member.rules)
        self._set_gate(member)

    def _set_gate(self, member: Member) -> None:
        self._gates[member.name].set(
            cap_pps=member.cap_pps,
            queue_frames=member.queue_frames,
            hangs=member.fault == "hang",
            forwards=member.forwarding == "xdp",
        )

    def _activate(self, name: str) -> None:
        """Activate a load balancer and make the other the standby."""
        for other in self._balancers.values():
            if other.name != name and self._membership.balancer_faults.get(other.name) != "hang":
                other.plane.set_role("stands_by")
        balancer = self._balancers[name]
        if self._membership.balancer_faults.get(name) != "hang":
            balancer.plane.set_role("works")
        # The data path comes first: it only needs switches that know the router's port. Announcements are repeated,
        # because a full queue loses frames. The steps after it start processes, which is slow on a busy machine.
        for _ in range(_ANNOUNCEMENTS):
            self._announce(balancer)
            time.sleep(_BETWEEN_ANNOUNCEMENTS_S)
        self._announces_until_s = time.monotonic() + _ANNOUNCE_OFTEN_FOR_S
        self._membership.active = name
        self._write()
        add_addresses(self.layout, name)
        self._announce(balancer)
        for other in self._balancers.values():
            other.forget_calls()
            if other.name != name:
                with contextlib.suppress(EnvironmentProblem):
                    remove_addresses(self.layout, other.name)

    def _announce(self, balancer: Balancer) -> None:
        balancer.announce_outside()
        balancer.announce_inside([mac for mac, _ in self._neighbours.values()])

    def _write(self) -> None:
        self._membership.write(self.folder / "membership.json")

    def _publish(self) -> None:
        self._membership.epoch += 1
        self._write()
        for balancer in self._balancers.values():
            balancer.plane.publish(self._membership.weights(), self._membership.seed, self._membership.epoch)

    def _find_hosts(self) -> None:
        """Find the hosts and gateways, so that the router forwards the first frame to each at once."""
        if self.layout.outside is not None:
            self._neighbours = {**self.layout.outside.neighbours}
            self._set_neighbours(self._neighbours)
            return
        missing = {address for wire in self.file.segment for address in (wire.host_ipv4, wire.host_ipv6) if address}
        missing |= {route.via for route in self.file.route}
        deadline = time.monotonic() + _FIRST_NEIGHBOURS_WITHIN_S
        while missing - self._neighbours.keys() and time.monotonic() < deadline:
            for address in missing - self._neighbours.keys():
                self._look_up(address)
            time.sleep(_TICK_S)
            self._read_neighbours()
        for address in sorted(missing - self._neighbours.keys()):
            self.on_remark(f"{address} does not answer")

    def _watch(self) -> None:
        due_s = time.monotonic()
        while True:
            due_s = max(due_s + _TICK_S, time.monotonic())
            if self._stopping.wait(due_s - time.monotonic()):
                return
            with self._lock:
                try:
                    self._tick()
                except (EnvironmentProblem, OSError) as problem:
                    self.on_remark(f"{self.name}: {problem}")
                except TesterError as problem:
                    self.on_remark(f"{self.name}: {error_text(problem)}")

    def _is_due(self, task: str, interval_s: float) -> bool:
        now = time.monotonic()
        if now < self._next_s[task] - _TICK_S / 2:
            return False
        self._next_s[task] = max(self._next_s[task] + interval_s, now)
        return True

    def _tick(self) -> None:
        active = self._balancers[self._membership.active]
        for balancer in self._balancers.values():
            balancer.plane.beat()
        self._read_neighbours()
        if self._is_due("compare", COMPARES_EVERY_S):
            numbers = {member["number"]: member for member in active.status()["members"]}
            self._route_comparison.compare(
                {
                    member.name: (counted["sent_frames"], counted["returned_frames"])
                    for member in self._membership.members.values()
                    if (counted := numbers.get(member.number)) and not member.fault
                }
            )
        if self._is_due("probe", _PROBES_EVERY_S):
            self._judge_members(active)
            for balancer in self._balancers.values():
                balancer.send_probes([member.number for member in self._membership.members.values()])
        else:
            active.send_probes([member["number"] for member in active.status()["members"] if member["is_dead"]])
        if len(self._balancers) > 1 and self._is_due("call", CALL_EVERY_S):
            self._call(active)
        if time.monotonic() < self._announces_until_s:
            self._announce(active)  # repeated, because a full queue loses frames
        elif self._is_due("announce", _ANNOUNCE_EVERY_S):
            active.announce_inside([mac for mac, _ in self._neighbours.values()])

    def _judge_members(self, active: Balancer) -> None:
        """Mark members silent that do not answer probes while others do, and recovered members not silent."""
        now = time.monotonic()
        counts = {counted["number"]: counted for counted in active.status()["members"]}
        judged = [
            (member, self._probe_states[member.name], counts[member.number])
            for member in self._membership.members.values()
            if member.number in counts
        ]
        for _, probes, counted in judged:
            answered = counted["probes_returned"] + counted["returned_frames"]
            if answered != probes.answered:
                probes.answered, probes.answered_s = answered, now
                probes.in_a_row += 1
            else:
                probes.in_a_row = 0
        last_s = max((probes.answered_s for probes in self._probe_states.values()), default=now)
        for member, probes, counted in judged:
            # Measured from the last answer of any member, because this process or all members may have stood still.
            if last_s - probes.answered_s > _SILENT_AFTER_S:
                probes.is_silent = True
            elif probes.in_a_row >= _ANSWERS_TO_COME_BACK:
                probes.is_silent = False
            if probes.differs != self._route_comparison.differs(member.name):
                probes.differs = not probes.differs
                state = (
                    "differs from the others in addresses, routes or neighbours: they get its flows"
                    if probes.differs
                    else "is like the others again"
                )
                self.on_remark(f"{member.name} {state}")
            for balancer in self._balancers.values():
                # A standby takes over the verdicts of the active load balancer.
                is_silent = probes.is_silent or (balancer is not active and counted["is_dead"])
                balancer.plane.set_silent(member.number, is_silent or probes.differs)

    def _call(self, active: Balancer) -> None:
        for balancer in self._balancers.values():
            if balancer is active:
                continue
            balancer.call(active)
            missed = max(balancer.missed)
            if missed >= MISSED_CALLS and self._can_take_over(balancer):
                interface = balancer.interfaces[balancer.missed.index(missed)]
                self.on_remark(f"{active.name} does not answer on {interface}: {balancer.name} takes over")
                self._activate(balancer.name)
                return

    def _can_take_over(self, balancer: Balancer) -> bool:
        """Return whether a standby can take over: its interfaces are up, and back-end routers answer it."""
        before = sum(member["probes_returned"] for member in balancer.status()["members"])
        balancer.send_probes([member.number for member in self._membership.members.values()])
        deadline = time.monotonic() + _TICK_S
        while time.monotonic() < deadline:
            if sum(member["probes_returned"] for member in balancer.status()["members"]) > before:
                return balancer.links_are_up()
            time.sleep(0.001)
        return False

    def _read_neighbours(self) -> None:
        new: dict[str, tuple[str, int]] = {}
        for element, neighbours in [*self._neighbour_sockets.items()]:
            for report in neighbours.reports():
                if report.mac is None and element not in self._balancers:
                    self._look_up(report.address)
                elif report.mac is not None and element == self._membership.active:
                    segment = self._segment_of(report.address)
                    if segment is not None and self._neighbours.get(report.address) != (report.mac, segment):
                        self._neighbours[report.address] = new[report.address] = (report.mac, segment)
        self._set_neighbours(new)

    def _set_neighbours(self, new: Mapping[str, tuple[str, int]]) -> None:
        """Set neighbours in all elements; ``new``: address to MAC address and network."""
        if not new:
            return
        lines = [f"neighbour replace {address} lladdr {mac} dev b0 nud permanent" for address, (mac, _) in new.items()]
        for member in self._membership.members.values():
            if member.fault != "link":
                ip(self.layout.netns(member.name), lines)
        for mac, segment in new.values():
            for balancer in self._balancers.values():
                balancer.plane.set_neighbour(octets(mac), self.layout.port(segment))
        self._balancers[self._membership.active].announce_inside([mac for mac, _ in new.values()])

    def _look_up(self, address: str) -> None:
        now = time.monotonic()
        segment = self._segment_of(address)
        if segment is None or now - self._looked_up_s.get(address, -1.0) < _LOOKS_UP_AGAIN_AFTER_S:
            return
        self._looked_up_s[address] = now
        with contextlib.suppress(EnvironmentProblem):
            command = f"neighbour replace {address} dev {self.layout.port(segment)} use"
            ip(self._balancers[self._membership.active].netns, [command])

    def _segment_of(self, address: str) -> int | None:
        """Return the number of the outside network of a neighbour; None for an own or other address."""
        neighbour = ipaddress.ip_address(address)
        for s, segment in enumerate(self.file.segment):
            for text in filter(None, (segment.ipv4, segment.ipv6)):
                interface = ipaddress.ip_interface(text)
                if neighbour in interface.network and neighbour != interface.ip:
                    return s
        return None

    def status(self) -> dict[str, Any]:
        """Return the elements with their counts since their start."""
        with self._lock:
            active = self._balancers[self._membership.active]
            by_number = {member["number"]: member for member in active.status()["members"]}
            now = time.monotonic()
            members = []
            for member in self._membership.members.values():
                counted = by_number.get(member.number, {})
                gate = json.loads(self._gates[member.name].counters())
                members.append(
                    {
                        "name": member.name,
                        "state": _state_of(member, counted, now, differs=self._probe_states[member.name].differs),
                        "weight": member.weight,
                        "cap_pps": member.cap_pps,
                        "forwarding": member.forwarding,
                        "fault": member.fault,
                        **{key: counted.get(key, 0) for key in _COUNTS},
                        "over_the_cap": gate["over_the_cap"],
                        "in_xdp": gate["in_xdp"],
                    }
                )
            balancers = []
            for balancer in self._balancers.values():
                counted = balancer.status()
                ports = {
                    segment.name: counted["ports"][self.layout.port(s)] for s, segment in enumerate(self.file.segment)
                }
                by_port = {name: port.pop("reasons") for name, port in ports.items()}
                by_port[_INSIDE_PORT] = counted["inside_reasons"]
                total = {reason: sum(drops[reason] for drops in by_port.values()) for reason in by_port[_INSIDE_PORT]}
                balancers.append(
                    {
                        "name": balancer.name,
                        "state": "active" if balancer is active else "standby",
                        "fault": self._membership.balancer_faults.get(balancer.name, ""),
                        "epoch": counted["epoch"],
                        "table": counted["digest"],
                        "dropped": {reason: total[reason] for reason in _DROPS},
                        "dropped_by_port": {
                            name: {reason: drops[reason] for reason in _DROPS} for name, drops in by_port.items()
                        },
                        "rerouted": total["rerouted"],
                        "to_kernel": total["to_kernel"],
                        "ports": ports,
                    }
                )
            return {
                "name": self.name,
                "time_s": now,
                "epoch": self._membership.epoch,
                "detector": {"silence_s": self.file.detector.silence, "unanswered": self.file.detector.unanswered},
                "balancers": balancers,
                "routers": members,
                "neighbours": {address: mac for address, (mac, _) in sorted(self._neighbours.items())},
            }

    def fail(self, element: str, kind: str = "link") -> None:
        """Inject a fault: take an element's links down, or let it hang.

        Raises QuantityProblem: there is no such element, or no such fault.
        """
        if kind not in FAULTS:
            raise QuantityProblem(kind, f"got {kind!r}: a fault is one of {', '.join(FAULTS)}")
        balancer = self._balancers.get(element)
        with self._lock:
            if balancer is not None:
                self._membership.balancer_faults[element] = kind
                if kind == "hang":
                    balancer.plane.set_role("hangs")
            else:
                member = self._member(element)
                member.fault = kind
                if kind == "hang":
                    self._set_gate(member)
            self._write()
        # The lock is free here, so that the watching thread does not wait for the fault.
        if kind == "link":
            interfaces = ["b0"] if balancer is None else balancer.interfaces
            set_links(self.layout.netns(element), interfaces, "down")

    def restore(self, element: str) -> None:
        """Remove a fault: the element is set up again, as after a restart of its machine."""
        with self._lock:
            if element in self._balancers:
                balancer = self._balancers[element]
                self._membership.balancer_faults.pop(element, None)
                set_links(balancer.netns, balancer.interfaces, "up")
                if element == self._membership.active:
                    self._activate(element)
                else:
                    balancer.plane.set_role("stands_by")
                    balancer.forget_calls()
            else:
                member = self._member(element)
                member.fault = ""
                set_links(self.layout.netns(element), ["b0"], "up")
                self._set_up(member)
            self._write()

    def drain(self, element: str, *, idle_s: float = 5.0, deadline_s: float = 60.0) -> None:
        """Give a back-end router no new flows; it keeps active flows until they are idle or the deadline passes."""
        for name, time_s in (("idle time", idle_s), ("deadline", deadline_s)):
            if not 0.0 < time_s <= _MAX_DRAIN_S:
                raise QuantityProblem("", f"{name} {time_s:g} s: above 0 and up to {_MAX_DRAIN_S:g} s is allowed")
        with self._lock:
            member = self._member(element)
            self._refuse_while_draining(but=element)
            self._refuse_the_last(member)
            # First both tables become equal, so that rows that moved earlier stay where they are.
            self._publish()
            for balancer in self._balancers.values():
                balancer.plane.drain(member.number, idle_s, deadline_s)
            member.takes = False
            member.drains_until_s = time.monotonic() + deadline_s
            self._publish()

    def add(self, element: str, *, weight: float | None = None, **settings: Any) -> None:
        """Add a back-end router with settings as in a file, or give a draining router its flows again."""
        with self._lock:
            self._refuse_while_draining(but=element)
            member = self._membership.members.get(element)
            if member is None:
                member = self._new_member({"name": element, "weight": weight or 1.0, **settings})
            elif member.takes:
                raise QuantityProblem(element, f"{element} is a member already")
            elif weight is not None:
                member.weight = weight
            member.takes, member.drains_until_s = True, 0.0
            self._publish()

    def remove(self, element: str) -> None:
        """Remove a back-end router: others get its flows at once, and frames in flight still arrive."""
        with self._lock:
            member = self._member(element)
            self._refuse_while_draining(but=element)
            if member.takes:
                self._refuse_the_last(member)
                member.takes = False
                self._publish()
            time.sleep(_IN_FLIGHT_S)
            for balancer in self._balancers.values():
                balancer.plane.set_member(member.number, None)
            self._gates.pop(element).close()
            self._neighbour_sockets.pop(element).close()
            del self._probe_states[element], self._membership.members[element]
            self._write()
            ip(None, [f"netns del {self.layout.netns(element)}"])
            for pin in sorted((self.folder / "pins" / element).glob("*")):
                pin.unlink()
            (self.folder / "pins" / element).rmdir()
            self._write_state()

    def set_weight(self, element: str, weight: float) -> None:
        """Set the weight of a back-end router, and thereby its share of the flows."""
        if not 0.0 < weight <= 1e6:
            raise QuantityProblem(str(weight), f"got weight {weight:g}: above 0 and up to 1e6 is allowed")
        with self._lock:
            self._refuse_while_draining()
            self._member(element).weight = weight
            self._publish()

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
            weights = self._membership.weights()
            (order,) = flow_table(weights, self._membership.seed, [row])
            states = {router["name"]: router["state"] for router in self.status()["routers"]}
            names = [member.name for number in order if (member := self._membership.by_number(number))]
        skipped = list(takewhile(lambda name: states[name] not in ("active", "draining"), names))
        reasons = [f"row {row} of 65536 goes to {', then '.join(names[:3])}" if names else "there is no member"]
        reasons += [f"{name} is {states[name]}" for name in skipped]
        if self.file.scheme != "flow_hash":
            reasons.append(f"the scheme {self.file.scheme} does not choose by the flow")
        draining = [name for name, state in states.items() if state == "draining"]
        if draining:
            reasons.append(f"{draining[0]} drains and keeps its rows that have frames")
        return {"row": row, "router": next(iter(names[len(skipped) :]), None), "order": names, "because": reasons}

    def audit(self) -> dict[str, Any]:
        """Return digests of the tables of each element, and their differences as problems."""
        with self._lock:
            balancers = {name: json.loads(balancer.plane.audit()) for name, balancer in self._balancers.items()}
            up = [member.name for member in self._membership.members.values() if member.fault != "link"]
            routers = {name: routes_digest(self.layout.netns(name)) for name in up}
        problems = []
        for name, audit in balancers.items():
            if audit["rows"] != audit["expected"]:
                problems.append(f"{name}: its table is {audit['rows']}, it should be {audit['expected']}")
            if audit["epoch"] != self._membership.epoch:
                problems.append(f"{name}: its table is of epoch {audit['epoch']}, not {self._membership.epoch}")
        for key in ("rows", "neighbours"):
            if len({audit[key] for audit in balancers.values()}) > 1:
                problems.append(f"load balancers differ in their {key}")
        if len(set(routers.values())) > 1:
            problems.append("back-end routers differ in addresses, routes or neighbours")
        return {"is_equal": not problems, "problems": problems, "balancers": balancers, "routers": routers}

    def _member(self, element: str) -> Member:
        member = self._membership.members.get(element)
        if member is None:
            elements = ", ".join([*self._membership.members, *self._balancers])
            raise QuantityProblem(element, f"there is no element {element!r}; there are: {elements}")
        return member

    def _refuse_while_draining(self, but: str = "") -> None:
        now = time.monotonic()
        for member in self._membership.members.values():
            if member.drains_until_s > now and member.name != but:
                left_s = member.drains_until_s - now
                raise QuantityProblem(
                    member.name, f"{member.name} drains for {left_s:.0f} s more: wait, or remove it first"
                )

    def _refuse_the_last(self, member: Member) -> None:
        if not [other for other in self._membership.members.values() if other.takes and other is not member]:
            raise QuantityProblem(member.name, f"{member.name} is the last back-end router that takes flows")

    def _new_member(self, settings: dict[str, Any]) -> Member:
        table = validated(BackEndTable, settings, "routecast multistage add")
        if problems := [*problems_of_router("", table)]:
            raise FileProblem("routecast multistage add", problems)
        _require_programs([table])
        element = table.name
        number = self._membership.free_number()
        if number is None or element in {*self._balancers, *(segment.name for segment in self.file.segment)}:
            reason = f"the router has {MAX_MEMBERS} members already" if number is None else "an element has this name"
            raise QuantityProblem(element, f"{element} cannot be added: {reason}")
        member = Member.of(table, number, takes=False)
        self._state.namespaces.append(self.layout.netns(element))
        self._state.write()
        add_router(self.layout, element, number)
        self._membership.members[element] = member
        self._open_member(member)
        self._set_up(member)
        self._write()
        self._wait_for_answer(member)
        return member

    def _wait_for_answer(self, member: Member) -> None:
        """Wait until a new router forwards, before it gets flows."""
        active = self._balancers[self._membership.active]
        deadline = time.monotonic() + 1.0
        while time.monotonic() < deadline:
            active.send_probes([member.number])
            time.sleep(0.002)
            members = {member["number"]: member for member in active.status()["members"]}
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
    "deaths",
    "revivals",
    "silent_s",
)


def _state_of(member: Member, counted: Mapping[str, Any], now: float, *, differs: bool) -> str:
    if differs:
        return "differs"
    if counted.get("is_dead"):
        return "dead"
    if member.takes:
        return "active"
    return "draining" if member.drains_until_s > now else "drained"


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


def _require_programs(routers: Iterable[BackEndTable]) -> None:
    if any(router.forwarding == "nftables" for router in routers) and not shutil.which("nft"):
        raise EnvironmentProblem("a back-end router with nftables needs the program nft: apt install nftables")
