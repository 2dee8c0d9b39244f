"""A router of many machines on this machine: made, watched, changed, and taken down.

The programs of the load balancers detect dead back-end routers without this process. This process sends frames of its
own (to routers that are dead, so that they come back; to quiet ones, so that silence is seen without traffic), spreads
what is learnt of neighbours, and lets the load balancer that stands by take over. It holds who is a member, alone: the
second half of the system puts an election in its place.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from routecast._core import MemberGate, TesterError, flow_row, flow_table
from routecast.errors import EnvironmentProblem, FileProblem, QuantityProblem
from routecast.multistage._balancer import LOOKS_EVERY_S, Balancer, Heard, NeighbourSocket, Suspects
from routecast.multistage._layout import Layout, Outside, octets
from routecast.multistage._membership import Member, Membership
from routecast.multistage._wiring import (
    add_router,
    clear_outside,
    give,
    ip,
    make_base,
    mount_pins,
    routes_digest,
    set_links,
    set_router_up,
    set_rules,
    take,
)
from routecast.multistage.prediction import CALL_EVERY_S, MISSED_CALLS
from routecast.multistage.reading import BackEndTable, MultistageFile, parse_multistage, problems_of_router
from routecast.quantity.toml_file import validated
from routecast.testbed import netns, state
from routecast.testbed.checks import FOR_NAMESPACES, require
from routecast.testbed.tester import error_text

__all__ = ["FAULTS", "Appliance"]

FAULTS = ("link", "hang")
"""Faults that can be made: interfaces go down; nothing is forwarded and nothing is said."""

_TICK_S = 0.02
_OWN_EVERY_S = 0.1
_SILENT_AFTER_S = 1.0
_ANSWERS_TO_COME_BACK = 3
_LOOKS_AGAIN_AFTER_S = 0.3
_IN_FLIGHT_S = 0.1
_LONGEST_DRAIN_S = 86_400.0
_ANNOUNCEMENTS = 3
_BETWEEN_ANNOUNCEMENTS_S = 0.002
_ANNOUNCE_EVERY_S = 1.0
_ANNOUNCE_OFTEN_FOR_S = 1.0
_FIRST_NEIGHBOURS_WITHIN_S = 2.0
_PROTOCOLS = {"icmp": 1, "tcp": 6, "udp": 17, "icmpv6": 58, "sctp": 132}


class _Watched:
    """What the frames of this process tell of a member."""

    def __init__(self) -> None:
        self.answered = 0
        self.answered_s = time.monotonic()
        self.in_a_row = 0
        self.is_silent = False
        self.differs = False


class Appliance:
    """A router of many machines, as a context that takes it down at its end.

    ``text``: of its ``*.multistage.toml``, or what was read from one; ``subject``: where the text is from, for
    messages; ``outside``: interfaces of its outside networks that are there already; without them each network gets a
    host. Such a router does not stand without its process; ``on_remark``: receives remarks for the user, line by line.
    Raises FileProblem: the text is wrong.
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
        self._is_ours = False
        self._balancers: dict[str, Balancer] = {}
        self._gates: dict[str, MemberGate] = {}
        self._watched: dict[str, _Watched] = {}
        self._suspects = Suspects(lambda element: routes_digest(self.layout.netns(element)))
        self._heard: dict[str, NeighbourSocket] = {}
        self._neighbours: dict[str, tuple[str, int]] = {}
        self._looked_for: dict[str, float] = {}
        self._membership = Membership(seed=self.file.seed, active=self.layout.balancers()[0])
        self._next = {"own": 0.0, "call": 0.0, "announce": 0.0, "counts": 0.0}
        self._announces_until_s = 0.0
        self._ends = threading.Event()
        self._thread: threading.Thread | None = None

    # Coming up and going down.

    @property
    def folder(self) -> Path:
        """Folder of its files on this machine."""
        return state.FOLDER / f"{self.name}.multistage"

    def __enter__(self) -> Self:
        """Make the router, or take over one whose process has ended.

        Raises EnvironmentProblem: a right or a program is missing, another process holds it, or the kernel refuses.
        """
        require(FOR_NAMESPACES, "a router of many machines")
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
                self._make()
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
            self._ends.set()
            if self._thread is not None and self._thread is not threading.current_thread():
                self._thread.join()
            self._let_go()

    def leave(self) -> None:
        """End this process's hold and leave the router, as after the process's death, for tests and for a restart."""
        self._ends.set()
        if self._thread is not None:
            self._thread.join()
        self._close()
        if self._bed_lock is not None:
            self._bed_lock.release()
            self._bed_lock = None

    def _close(self) -> None:
        self._suspects.wait()
        for heard in self._heard.values():
            heard.close()
        for gate in self._gates.values():
            gate.close()
        for balancer in self._balancers.values():
            balancer.close()
        self._heard, self._gates, self._balancers = {}, {}, {}

    def _let_go(self) -> None:
        if self._bed_lock is None:
            return
        self._close()
        try:
            if self._is_ours:
                state.clean(self._state)
                if self.layout.outside is not None:
                    clear_outside(self.layout)
        finally:
            self._bed_lock.release()
            self._bed_lock = None

    def _note(self) -> None:
        routers = [self.layout.netns(name) for name in self._membership.members]
        self._state.namespaces = [*self.layout.base_namespaces(), *routers]
        self._state.write()

    def _make(self) -> None:
        wanted = {*self.layout.base_namespaces(), *(self.layout.netns(table.name) for table in self.file.router)}
        there = wanted & {*netns.named()}
        if there:
            raise EnvironmentProblem(
                f"namespace {sorted(there)[0]} is there and is not ours: remove it, or give the router another name"
            )
        self._is_ours = True
        for number, table in enumerate(self.file.router):
            self._membership.members[table.name] = Member.of(table, number)
        self._state.pid_start_ticks = state.start_ticks(self._state.pid)
        self._state.folder = str(self.folder)
        self._state.mounts = [str(self.folder / "pins")]
        self._note()
        self.folder.mkdir(parents=True, exist_ok=True)
        mount_pins(self.folder / "pins")
        make_base(self.layout)
        for member in self._membership.members.values():
            add_router(self.layout, member.name, member.number)
        self._open()
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
                f"{self.name!r} stands from another file: `routecast multistage down {self.name}` takes it down first"
            )
        self._membership = Membership.read(self.folder / "membership.json")
        ours = {*self.layout.base_namespaces(), *map(self.layout.netns, self._membership.members)}
        missing = sorted(ours - {*netns.named()})
        if missing:
            raise EnvironmentProblem(
                f"{self.name!r} cannot be taken over: {', '.join(missing)} is gone; "
                f"`routecast multistage down {self.name}` takes it down"
            )
        self._is_ours = True
        # A router whose addition had only begun, or whose removal had not ended, is no member.
        for name in (set(left.namespaces) - ours) & {*netns.named()}:
            ip(None, [f"netns del {name}"])
        left.pid, left.pid_start_ticks = self._state.pid, state.start_ticks(self._state.pid)
        self._state = left
        self._note()
        self.on_remark(f"taking over {self.name!r}, whose process has ended")
        self._open()
        for name in [*self._membership.members]:
            member = self._membership.members[name]
            if not member.fault:
                self._set_up(member)
            else:
                self._set_gate(member)
        if self._membership.active not in self._balancers:
            self._membership.active = next(iter(self._balancers))
        self._activate(self._membership.active)
        for balancer in self._balancers.values():
            audit = json.loads(balancer.plane.audit())
            if audit["rows"] != audit["expected"] or audit["epoch"] != self._membership.epoch:
                self._publish()
                break
        self._find_hosts()

    def _open(self) -> None:
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
                self._heard[balancer.name] = NeighbourSocket(balancer.netns)
        except TesterError as problem:
            raise EnvironmentProblem(f"the eBPF programs cannot be used: {error_text(problem)}") from problem

    def _open_member(self, member: Member) -> None:
        place = self.layout.netns(member.name)
        pins = self.folder / "pins" / member.name
        self._gates[member.name] = MemberGate("b0", str(netns.FOLDER / place), str(pins))
        self._watched[member.name] = _Watched()
        self._heard[member.name] = NeighbourSocket(place)
        for balancer in self._balancers.values():
            known = {member["number"] for member in balancer.status()["members"]}
            if member.number not in known:
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
        """Activate one load balancer and let the others stand by."""
        for other in self._balancers.values():
            if other.name != name and self._membership.balancer_faults.get(other.name) != "hang":
                other.plane.set_role("stands_by")
        balancer = self._balancers[name]
        if self._membership.balancer_faults.get(name) != "hang":
            balancer.plane.set_role("works")
        # The data path first: it needs nothing but that the switches know where the router is. A frame of a full queue
        # is lost, and what follows starts other processes, which takes long on a busy machine.
        for _ in range(_ANNOUNCEMENTS):
            self._announce(balancer)
            time.sleep(_BETWEEN_ANNOUNCEMENTS_S)
        self._announces_until_s = time.monotonic() + _ANNOUNCE_OFTEN_FOR_S
        self._membership.active = name
        self._write()
        give(self.layout, name)
        self._announce(balancer)
        for other in self._balancers.values():
            other.forget_calls()
            if other.name != name:
                with contextlib.suppress(EnvironmentProblem):
                    take(self.layout, other.name)

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
        """Find the hosts and gateways, so that the first frame to each is forwarded at once."""
        if self.layout.outside is not None:
            self._neighbours = {**self.layout.outside.neighbours}
            self._tell(self._neighbours)
            return
        wanted = {address for wire in self.file.segment for address in (wire.host_ipv4, wire.host_ipv6) if address}
        wanted |= {route.via for route in self.file.route}
        deadline = time.monotonic() + _FIRST_NEIGHBOURS_WITHIN_S
        while wanted - self._neighbours.keys() and time.monotonic() < deadline:
            for address in wanted - self._neighbours.keys():
                self._look_for(address)
            time.sleep(_TICK_S)
            self._listen()
        for address in sorted(wanted - self._neighbours.keys()):
            self.on_remark(f"{address} does not answer")

    # What goes on while it stands.

    def _watch(self) -> None:
        due_s = time.monotonic()
        while True:
            due_s = max(due_s + _TICK_S, time.monotonic())
            if self._ends.wait(due_s - time.monotonic()):
                return
            with self._lock:
                try:
                    self._tick()
                except (EnvironmentProblem, OSError) as problem:
                    self.on_remark(f"{self.name}: {problem}")
                except TesterError as problem:
                    self.on_remark(f"{self.name}: {error_text(problem)}")

    def _is_due(self, what: str, every_s: float) -> bool:
        now = time.monotonic()
        if now < self._next[what] - _TICK_S / 2:
            return False
        self._next[what] = max(self._next[what] + every_s, now)
        return True

    def _tick(self) -> None:
        active = self._balancers[self._membership.active]
        for balancer in self._balancers.values():
            balancer.plane.beat()
        self._listen()
        if self._is_due("counts", LOOKS_EVERY_S):
            numbers = {member["number"]: member for member in active.status()["members"]}
            self._suspects.look(
                {
                    member.name: (numbers[member.number]["sent_frames"], numbers[member.number]["returned_frames"])
                    for member in self._membership.members.values()
                    if member.number in numbers and not member.fault
                }
            )
        if self._is_due("own", _OWN_EVERY_S):
            self._judge(active)
            for balancer in self._balancers.values():
                balancer.send_own([member.number for member in self._membership.members.values()])
        else:
            dead = [member["number"] for member in active.status()["members"] if member["is_dead"]]
            active.send_own(dead)
        if len(self._balancers) > 1 and self._is_due("call", CALL_EVERY_S):
            self._call(active)
        if time.monotonic() < self._announces_until_s:
            self._announce(active)  # a frame of a full queue is lost
        elif self._is_due("announce", _ANNOUNCE_EVERY_S):
            active.announce_inside([mac for mac, _ in self._neighbours.values()])

    def _judge(self, active: Balancer) -> None:
        """Remove members that do not answer this process's frames while others do; readmit recovered ones."""
        now = time.monotonic()
        members = {member["number"]: member for member in active.status()["members"]}
        for member in self._membership.members.values():
            watched, status = self._watched[member.name], members.get(member.number)
            if status is None:
                continue
            answered = status["probes_returned"] + status["returned_frames"]
            if answered != watched.answered:
                watched.answered, watched.answered_s = answered, now
                watched.in_a_row += 1
            else:
                watched.in_a_row = 0
        last = max((watched.answered_s for watched in self._watched.values()), default=now)
        for member in self._membership.members.values():
            watched, status = self._watched[member.name], members.get(member.number)
            if status is None:
                continue
            # Measured against the last answer of anybody: where this process or all stood still, nobody is to blame.
            if last - watched.answered_s > _SILENT_AFTER_S:
                watched.is_silent = True
            elif watched.in_a_row >= _ANSWERS_TO_COME_BACK:
                watched.is_silent = False
            if watched.differs != self._suspects.differs(member.name):
                watched.differs = not watched.differs
                what = (
                    "lacks or has what the others do not: its flows go to them"
                    if watched.differs
                    else "is as the others"
                )
                self.on_remark(f"{member.name} {what}")
            for balancer in self._balancers.values():
                # One that stands by learns from the one that works.
                is_silent = watched.is_silent or (balancer is not active and status["is_dead"])
                balancer.plane.set_silent(member.number, is_silent or watched.differs)

    def _call(self, active: Balancer) -> None:
        for balancer in self._balancers.values():
            if balancer is active:
                continue
            balancer.call(active)
            if max(balancer.missed) >= MISSED_CALLS and self._can_work(balancer):
                place = balancer.interfaces[balancer.missed.index(max(balancer.missed))]
                self.on_remark(f"{active.name} does not answer on {place}: {balancer.name} takes over")
                self._activate(balancer.name)
                return

    def _can_work(self, balancer: Balancer) -> bool:
        """Return whether a standby could do better: its interfaces are up, and back-end routers answer it."""
        before = sum(member["probes_returned"] for member in balancer.status()["members"])
        balancer.send_own([member.number for member in self._membership.members.values()])
        deadline = time.monotonic() + _TICK_S
        while time.monotonic() < deadline:
            if sum(member["probes_returned"] for member in balancer.status()["members"]) > before:
                return balancer.links_are_up()
            time.sleep(0.001)
        return False

    def _listen(self) -> None:
        new: dict[str, tuple[str, int]] = {}
        for element, source in [*self._heard.items()]:
            for heard in source.heard():
                if element in self._balancers:
                    self._learn(element, heard, new)
                elif heard.mac is None:
                    self._look_for(heard.address)
        self._tell(new)

    def _tell(self, new: Mapping[str, tuple[str, int]]) -> None:
        """Enter neighbours in all elements (address to MAC address and network)."""
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

    def _learn(self, element: str, heard: Heard, new: dict[str, tuple[str, int]]) -> None:
        segment = self._segment_of(heard.address)
        if element != self._membership.active or heard.mac is None or segment is None:
            return
        learned = (heard.mac, segment)
        if self._neighbours.get(heard.address) != learned:
            self._neighbours[heard.address] = new[heard.address] = learned

    def _look_for(self, address: str) -> None:
        now = time.monotonic()
        segment = self._segment_of(address)
        if segment is None or now - self._looked_for.get(address, -1.0) < _LOOKS_AGAIN_AFTER_S:
            return
        self._looked_for[address] = now
        place = self._balancers[self._membership.active].netns
        with contextlib.suppress(EnvironmentProblem):
            ip(place, [f"neighbour replace {address} dev {self.layout.port(segment)} use"])

    def _segment_of(self, address: str) -> int | None:
        wanted = ipaddress.ip_address(address)
        for s, segment in enumerate(self.file.segment):
            for text in filter(None, (segment.ipv4, segment.ipv6)):
                interface = ipaddress.ip_interface(text)
                if wanted in interface.network and wanted != interface.ip:
                    return s
        return None

    # What its operator asks for.

    def status(self) -> dict[str, Any]:
        """Return the elements with their counts since they are up."""
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
                        "state": _state_of(member, counted, now, differs=self._watched[member.name].differs),
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
                by_port[_INSIDE] = counted["inside_reasons"]
                total = {reason: sum(drops[reason] for drops in by_port.values()) for reason in by_port[_INSIDE]}
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
        """Make a fault: take an element's links down, or let it hang silently.

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
        # Without the lock: what watches the router does not wait for the fault.
        if kind == "link":
            interfaces = ["b0"] if balancer is None else balancer.interfaces
            set_links(self.layout.netns(element), interfaces, "down")

    def restore(self, element: str) -> None:
        """Undo a fault: an element that failed is set up anew, as after a restart of its machine."""
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
        for what, time_s in (("idle time", idle_s), ("deadline", deadline_s)):
            if not 0.0 < time_s <= _LONGEST_DRAIN_S:
                raise QuantityProblem("", f"{what} {time_s:g} s: above 0 and up to {_LONGEST_DRAIN_S:g} s is allowed")
        with self._lock:
            member = self._member(element)
            self._refuse_while_draining(but=element)
            self._refuse_the_last(member)
            # Both halves alike first: a row that had moved before stays where it is.
            self._publish()
            for balancer in self._balancers.values():
                balancer.plane.drain(member.number, idle_s, deadline_s)
            member.takes = False
            member.drains_until_s = time.monotonic() + deadline_s
            self._publish()

    def add(self, element: str, *, weight: float | None = None, **settings: Any) -> None:
        """Add a back-end router with the settings of a file, or give a draining one its flows again."""
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
        """Remove a back-end router: its flows go to others at once, and frames under way still arrive."""
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
            self._heard.pop(element).close()
            del self._watched[element], self._membership.members[element]
            self._write()
            ip(None, [f"netns del {self.layout.netns(element)}"])
            for pin in sorted((self.folder / "pins" / element).glob("*")):
                pin.unlink()
            (self.folder / "pins" / element).rmdir()
            self._note()

    def set_weight(self, element: str, weight: float) -> None:
        """Give a back-end router another share of the flows."""
        if not 0.0 < weight <= 1e6:
            raise QuantityProblem(str(weight), f"got weight {weight:g}: above 0 and up to 1e6 is allowed")
        with self._lock:
            self._refuse_while_draining()
            self._member(element).weight = weight
            self._publish()

    def trace(self, protocol: str, source: str, destination: str) -> dict[str, Any]:
        """Return which back-end router a flow goes to, and why.

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
        skipped = []
        for name in names:
            if states[name] in ("active", "draining"):
                break
            skipped.append(name)
        chosen = next((name for name in names if name not in skipped), None)
        because = [f"row {row} of 65536 goes to {', then '.join(names[:3])}" if names else "there is no member"]
        because += [f"{name} is {states[name]}" for name in skipped]
        if self.file.scheme != "flow_hash":
            because.append(f"the scheme is {self.file.scheme}: the flow does not decide")
        draining = [name for name, is_in in states.items() if is_in == "draining"]
        if draining:
            because.append(f"a row that {draining[0]} had, and that has frames, stays there while it drains")
        return {"row": row, "router": chosen, "order": names, "because": because}

    def audit(self) -> dict[str, Any]:
        """Return digests of the tables of each element, and whether all are as they should be."""
        with self._lock:
            balancers = {name: json.loads(running.plane.audit()) for name, running in self._balancers.items()}
            up = [member.name for member in self._membership.members.values() if member.fault != "link"]
            routers = {name: routes_digest(self.layout.netns(name)) for name in up}
        problems = []
        for name, audited in balancers.items():
            if audited["rows"] != audited["expected"]:
                problems.append(f"{name}: its table is {audited['rows']}, it should be {audited['expected']}")
            if audited["epoch"] != self._membership.epoch:
                problems.append(f"{name}: its table is of epoch {audited['epoch']}, not {self._membership.epoch}")
        for what in ("rows", "neighbours"):
            if len({audited[what] for audited in balancers.values()}) > 1:
                problems.append(f"load balancers differ in their {what}")
        if len(set(routers.values())) > 1:
            problems.append("back-end routers differ in addresses, routes or neighbours")
        return {"is_equal": not problems, "problems": problems, "balancers": balancers, "routers": routers}

    def _member(self, element: str) -> Member:
        member = self._membership.members.get(element)
        if member is None:
            there = ", ".join([*self._membership.members, *self._balancers])
            raise QuantityProblem(element, f"there is no element {element!r}; there are: {there}")
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
        # The file's own rules.
        table = validated(BackEndTable, settings, "routecast multistage add")
        if problems := [*problems_of_router("", table)]:
            raise FileProblem("routecast multistage add", problems)
        _require_programs([table])
        element = table.name
        number = self._membership.free_number()
        taken = [*self._balancers, *(table.name for table in self.file.segment)]
        if number is None or element in taken:
            why = "64 are members already" if number is None else "an element has this name"
            raise QuantityProblem(element, f"{element} cannot be added: {why}")
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
        """Wait until a new router forwards, before any flow goes to it."""
        active = self._balancers[self._membership.active]
        deadline = time.monotonic() + 1.0
        while time.monotonic() < deadline:
            active.send_own([member.number])
            time.sleep(0.002)
            members = {member["number"]: member for member in active.status()["members"]}
            if members[member.number]["probes_returned"] > 0:
                return
        raise EnvironmentProblem(f"{member.name} does not forward; `routecast multistage remove {member.name}`")


_INSIDE = "to-routers"
"""What the interface to the back-end routers is called beside the outside networks; no network has such a name."""
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
