"""The surroundings of the protocol's machine: planes, members, hosts, switches, a process and its disk."""

from __future__ import annotations

import copy
import heapq
import random
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from routecast.errors import QuantityProblem
from routecast.multistage._detection import CALL_EVERY_S, MISSED_CALLS
from routecast.multistage._membership import Member, Membership
from routecast.multistage.protocol import actions
from routecast.multistage.protocol.audit import BalancerReading
from routecast.multistage.protocol.machine import Machine, MachineSettings
from routecast.multistage.protocol.neighbours import GONE_S, MOVE_S, SOLICITS_PER_S, Entry, Networks
from routecast.multistage.protocol.schedule import PROBE_EVERY_S
from routecast.multistage.protocol.watch import BalancerView, MemberView

__all__ = ["Body", "Host", "Plane", "Surroundings", "Violation"]

TICK_S = 0.02
"""Interval of the driver."""
SILENCE_S, ALONE_S, HOLD_S, RETURNS = 0.05, 0.2, 0.1, 3
"""The programs' detector: defaults of a router's file."""
SLACK_S = 0.1
"""Five ticks: frames on their way, the grid of ticks, an action's turn. A chain of timers adds a tick for each."""
_FRAMES_A_TICK = 64
QUEUE_FRAMES = 256


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that must not be: ``seed``, simulated ``time_s``, and ``what``."""

    seed: int
    time_s: float
    what: str


@dataclass(slots=True)
class Plane:
    """A load balancer's machine and its program.

    ``fault``: empty, ``"link"`` (its links are down, which is seen), ``"hang"`` (it drops all), ``"gone"`` (cannot be
    read); ``cut``: number of an interface without a wire, -1 for none.
    """

    name: str
    members: dict[int, MemberView]
    view: BalancerView
    role: str = "stands_by"
    fault: str = ""
    cut: int = -1
    cuts: set[int] = field(default_factory=set)
    epoch: int = 0
    rows: tuple[tuple[int, float], ...] = ()
    before: tuple[tuple[int, float], ...] = ()
    silent: dict[int, bool] = field(default_factory=dict)
    macs: dict[str, int] = field(default_factory=dict)
    answers: list[int] = field(default_factory=list)
    dead_at_s: dict[int, float] = field(default_factory=dict)
    unanswered_since_s: dict[int, float] = field(default_factory=dict)
    back: dict[int, int] = field(default_factory=dict)
    drains_until_s: dict[int, float] = field(default_factory=dict)

    def is_out(self, number: int) -> bool:
        """Return whether a member gets no frames of it."""
        return self.silent.get(number, False) or self.members[number].is_dead


@dataclass(slots=True)
class Body:
    """A back-end router's machine: what is wrong with it, what it loses, what its tables hold.

    ``blocked``: a path on which it forwards nothing, whatever its tables say, -1 for none; ``is_mixed``: other paths
    lose frames meanwhile too.
    """

    name: str
    number: int
    fault: str = ""
    loss_ratio: float = 0.0
    table: dict[str, str] = field(default_factory=dict)
    routes: set[str] = field(default_factory=set)
    is_stubborn: bool = False
    blocked: int = -1
    is_mixed: bool = False

    @property
    def returns(self) -> bool:
        return self.fault not in {"link", "hang", "one direction"}


@dataclass(slots=True)
class Host:
    """A host of an outside network: its addresses, its MAC address, and since when it has that."""

    segment: int
    addresses: tuple[str, ...]
    mac: str
    is_alive: bool = True


class _Killed(Exception):
    pass


class Surroundings:
    """A router with what is around it, from one seed; ``on_event`` receives lines for people."""

    def __init__(self, seed: int, *, on_event: Callable[[float, str], None] | None = None) -> None:
        self.seed, self.rng, self.now_s = seed, random.Random(seed), 0.0
        self.on_event = on_event
        self.faults: Counter[str] = Counter()
        self.violations: list[Violation] = []
        self.running_s = 0.0
        self._since: dict[tuple[str, str], float] = {}
        self._now_bad: dict[tuple[str, str], float] = {}
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0
        self._macs = 0
        self._ticks = 0
        self._pending = 0
        rng = self.rng
        count = rng.choice((2, 2, 3))
        self.segments = count
        interfaces = [[f"198.18.{s + 1}.1/24", f"2001:2:0:{s + 1}::1/64"] for s in range(count)]
        self.networks = Networks([f"net{s}" for s in range(count)], interfaces)
        self.hosts: list[Host] = []
        for s in range(count):
            for h in range(rng.randint(1, 3)):
                v4, v6 = f"198.18.{s + 1}.{h + 2}", f"2001:2:0:{s + 1}::{h + 2:x}"
                self.hosts.append(Host(s, (v4, v6) if rng.random() < 0.4 else (v4,), self.new_mac()))
        static_host = Host(0, ("198.18.1.200",), self.new_mac())
        self.static = {static_host.addresses[0]: static_host.mac}
        self.own_macs = tuple(f"02:ff:00:00:00:{n:02x}" for n in range(count + 2))
        self.bodies = {f"br{n}": Body(f"br{n}", n) for n in range(rng.randint(3, 5))}
        self.configured = frozenset(
            [f"route 10.{s}.0.0/16 via 198.18.{s + 1}.2 dev b0" for s in range(count)]
            + ["address 198.18.1.1/24 dev b0"]
        )
        for body in self.bodies.values():
            body.routes = set(self.configured)
        self.settings = MachineSettings(
            balancers=("lb0", "lb1"),
            networks=self.networks,
            own_macs=self.own_macs,
            static=self.static,
            wanted=tuple(a for host in self.hosts for a in host.addresses),
            routes=tuple((f"10.{s}.0.0/16", f"198.18.{s + 1}.2") for s in range(count)),
            configured=self.configured,
        )
        self.planes: dict[str, Plane] = {}
        for name in self.settings.balancers:
            self.planes[name] = self._new_plane(name)
        self.switch = ["lb0"] * count
        self.disk = Membership(
            seed=seed,
            active="lb0",
            members={b.name: Member(name=b.name, number=b.number, weight=1.0) for b in self.bodies.values()},
        )
        self.traffic = True
        self.noise_ratio = 0.0
        self.late_ratio = 0.01
        self.stalled_until_s = 0.0
        self.dies_in: int | None = None
        self.inbox: list[deque[tuple[int, str, str, bool, bool]]] = [deque() for _ in range(count)]
        self.lookups: deque[str] = deque()
        self.rows_of_epoch: dict[int, tuple[tuple[int, float], ...]] = {}
        self.published = 0
        self.disturbed_s: dict[str, float] = {}
        self.announced: dict[str, float] = {}
        self._solicits = [[0.0, 0] for _ in range(count)]
        self.machine: Machine | None = None
        self.entry_before: dict[str, str] = {}
        self.touched_s: dict[str, float] = {}
        self.loses_publish = ""
        self._by_number = {body.number: body for body in self.bodies.values()}
        self._faulty = 0
        self.upset_s: dict[str, float] = {}
        self._own_claims: dict[int, float] = {}
        self._claims: set[tuple[int, str, str]] = set()
        self._returned_s: dict[int, float] = {}
        self._is_activated = False
        self._looked_s: dict[str, float] = {}
        self._seen_since_s = -1e9
        self._pairs = {p: {n: f"{p} br{n}" for n in self._by_number} for p in self.settings.balancers}
        self._next_burst_s = 5.0
        self._empty_s = [0.0] * self.segments
        self._off_s: list[float] = []
        self._takeovers_s: list[float] = []
        self.boot(is_first=True)

    # ------------------------------------------------------------------ parts

    def new_mac(self) -> str:
        """Return a MAC address that nobody had."""
        self._macs += 1
        return f"02:00:00:{self._macs >> 16 & 255:02x}:{self._macs >> 8 & 255:02x}:{self._macs & 255:02x}"

    def _new_plane(self, name: str) -> Plane:
        members = {body.number: MemberView(0) for body in self.bodies.values()}
        answers = [0] * (self.segments + 1)
        return Plane(name, members, BalancerView(members, tuple(answers), ()), answers=answers)

    def say(self, text: str) -> None:
        """Tell who listens."""
        if self.on_event is not None:
            self.on_event(self.now_s, text)

    def violate(self, what: str) -> None:
        """Note that something is that must not be."""
        self.violations.append(Violation(self.seed, round(self.now_s, 3), what))
        self.say(f"VIOLATION {what}")

    def after(self, delay_s: float, what: Callable[[], None], *, is_pending: bool = True) -> None:
        """Let something happen later; ``is_pending``: no jump over idle time before it."""
        self._number += 1
        self._pending += is_pending

        def happen() -> None:
            self._pending -= is_pending
            what()

        heapq.heappush(self._events, (self.now_s + delay_s, self._number, happen))

    def disturb(self, address: str, for_s: float = 0.0) -> None:
        """Let bounds of an address count from then: a frame about it was lost, or is late."""
        self.disturbed_s[address] = max(self.disturbed_s.get(address, -1e9), self.now_s + for_s)

    @property
    def is_up(self) -> bool:
        """Whether the process runs."""
        return self.machine is not None and self.now_s >= self.stalled_until_s

    def serving(self) -> Plane | None:
        """Return the load balancer that carries frames, if one does."""
        for plane in self.planes.values():
            if plane.role == "works" and not plane.fault:
                return plane
        return None

    def reach(self, segment: int, address: str) -> Plane | None:
        """Return the load balancer to which frames for the router's MAC address go on a network, if it takes them."""
        plane = self.planes[self.switch[segment]]
        if plane.fault or plane.cut == segment + 1 or plane.role != "works":
            self.disturb(address)
            return None
        return plane

    def _ran_s(self, since_s: float) -> float:
        """Return for how long the process has run since a time, s."""
        return self.now_s - since_s - TICK_S * (len(self._off_s) - bisect_right(self._off_s, since_s))

    @staticmethod
    def _holds(body: Body, entries: Mapping[str, Entry]) -> bool:
        table = body.table
        return len(table) == len(entries) and all(table.get(address) == entry.mac for address, entry in entries.items())

    # ------------------------------------------------------------------ the process

    def boot(self, *, is_first: bool = False) -> None:
        """Start the process, from what is on the disk."""
        self.machine = Machine(self.settings, copy.deepcopy(self.disk))
        if self.machine.membership.epoch < self.published:
            self.violate(f"epoch {self.machine.membership.epoch} after {self.published}")
        for queue in self.inbox:
            for _, address, *_ in queue:
                self.disturb(address)
            queue.clear()
        self._empty_s = [self.now_s] * self.segments
        self.lookups.clear()
        self._since.clear()
        self.entry_before.clear()
        self._own_claims.clear()
        self._is_activated = False
        for name in (*self.planes, *self.bodies):
            self.upset_s[name] = self.now_s
        try:
            if is_first:
                self.do(self.machine.changes.publish())
            self.do(self.machine.start(self.now_s))
        except _Killed:
            self.die()

    def die(self) -> None:
        """Kill the process; it is started again later."""
        self.say("process killed")
        self.machine, self.dies_in = None, None
        self.after(self.rng.choice((0.1, 0.3, 1.0, 3.0)) * (0.5 + self.rng.random()), self.boot)

    def step(self) -> None:
        """Do what the driver does at each of its ticks."""
        machine = self.machine
        assert machine is not None
        try:
            self.do(machine.observe({p.name: p.view for p in self.planes.values() if p.fault != "gone"}, self.now_s))
            table = machine.neighbours
            for segment, queue in enumerate(self.inbox):
                for _ in range(min(len(queue), _FRAMES_A_TICK)):
                    at, address, mac, is_for_us, is_probe = queue.popleft()
                    assert at == segment
                    since_s = self._empty_s[segment]
                    if mac not in self.own_macs:
                        machine.takeover.hear_on(self.switch[segment], segment, self.now_s)
                    self.do(
                        table.hear(
                            segment, address, mac, self.now_s, is_for_us=is_for_us, is_probe=is_probe, since_s=since_s
                        )
                    )
                if not queue:
                    self._empty_s[segment] = self.now_s
            for _ in range(min(len(self.lookups), _FRAMES_A_TICK)):
                self.do(table.want(self.lookups.popleft(), self.now_s))
            self.do(machine.tick(self.now_s))
        except _Killed:
            self.die()

    def verb(self, run: Callable[[Machine], Iterable[actions.Action]]) -> None:
        """Carry out what an operator asks, if the process is there and the machine allows it."""
        if self.machine is None:
            return
        if not self.is_up:
            self.after(TICK_S, lambda: self.verb(run))
            return
        try:
            self.do(run(self.machine))
        except QuantityProblem as refusal:
            self.say(f"refused: {refusal}")
        except _Killed:
            self.die()

    def do(self, wanted: Iterable[actions.Action]) -> None:
        """Carry out actions in their order; the process may be killed between any two."""
        for action in wanted:
            if self.dies_in is not None:
                self.dies_in -= 1
                if self.dies_in < 0:
                    raise _Killed
            if self._is_activated and not isinstance(action, actions.Store):
                self.violate("a takeover is not stored before anything else")
            self._is_activated = isinstance(action, actions.Activate)
            self._DO[type(action)](self, action)

    def _do_event(self, action: actions.Event) -> None:
        if action.what == "alive" and action.element in self.bodies:
            ago_s = self.running_s - self._returned_s.get(self.bodies[action.element].number, -1e9)
            if ago_s > PROBE_EVERY_S + SLACK_S:
                self.violate(f"{action.element} is called alive, which returned nothing for {ago_s:.2f} s")
        if action.what == "takes over":
            plane = self.planes[action.element]
            self._takeovers_s = [*self._takeovers_s[-2:], self.now_s]
            first_s, after_s = self._takeovers_s[0], self._ran_s(self._takeovers_s[0])
            is_upset = self.noise_ratio or max(self.upset_s[other] for other in self.planes) > first_s
            if len(self._takeovers_s) == 3 and after_s < 0.9 and not is_upset:
                self.violate(f"three takeovers in {after_s:.2f} s without a fault between them")
            is_off = bool(plane.fault) or plane.cut == 0
            if is_off and self._ran_s(self.upset_s.get(plane.name, -1e9)) > (MISSED_CALLS + 1) * CALL_EVERY_S + SLACK_S:
                self.violate(f"{plane.name} takes over, which no member hears")
        if self.on_event is not None:
            self.say(f"  {action.element} {action.what} {action.detail}")

    def _do_probe(self, action: actions.Probe) -> None:
        plane = self.planes[action.balancer]
        if plane.fault or plane.cut == 0:
            return
        bodies, rng = self._by_number, self.rng
        for number in action.numbers:
            body = bodies[number]
            if not body.returns or (body.loss_ratio and rng.random() < body.loss_ratio):
                continue
            if self.noise_ratio and rng.random() < self.noise_ratio / 4:
                # It begins anew to answer so many in a row.
                self._since.pop(("member alive", body.name), None)
                for pairs in self._pairs.values():
                    self._since.pop(("flags back", pairs[number]), None)
                continue
            self._return(plane, number)

    def _return(self, plane: Plane, number: int) -> None:
        view = plane.members[number]
        view.returned += 1
        self._returned_s[number] = self.running_s
        plane.unanswered_since_s.pop(number, None)
        if view.is_dead:
            plane.back[number] = plane.back.get(number, 0) + 1
            if plane.back[number] >= RETURNS and self.now_s - plane.dead_at_s[number] >= HOLD_S:
                view.is_dead = False

    def _do_paths(self, action: actions.ProbePaths) -> None:
        plane = self.planes[action.balancer]
        if plane.fault or plane.cut == 0:
            return
        for number in action.numbers:
            body, view = self._by_number[number], plane.members[number]
            if not body.returns or (body.loss_ratio and self.rng.random() < body.loss_ratio):
                continue
            counts = list(view.paths) + [0] * (len(action.paths) - len(view.paths))
            for path, destination in enumerate(action.paths):
                if destination and self._forwards(body, path, destination):
                    counts[path] += 1
                    view.returned += 1
                    self._returned_s[number] = self.running_s
            view.paths = tuple(counts)

    def _forwards(self, body: Body, path: int, destination: str) -> bool:
        if path == body.blocked:
            return False
        if path < 32:
            return destination in body.table
        network, via = self.settings.routes[path - 32]
        return f"route {network} via {via} dev b0" in body.routes and via in body.table

    def _do_call(self, action: actions.Call) -> None:
        plane, other = self.planes[action.balancer], self.planes[action.other]
        if plane.fault or other.fault or other.role != "works":
            return
        for place in range(self.segments + 1):
            if place in (plane.cut, other.cut) or (self.noise_ratio and self.rng.random() < self.noise_ratio / 4):
                continue
            if place == 0 or self.switch[place - 1] == other.name:
                plane.answers[place] += 1
        plane.view.answers = tuple(plane.answers)

    def _do_solicit(self, action: actions.Solicit) -> None:
        segment, address = action.segment, action.address
        budget = self._solicits[segment]
        if self.now_s - budget[0] >= 1.0:
            budget[:] = [self.now_s, 0]
        budget[1] += 1
        if budget[1] > SOLICITS_PER_S + 100:
            self.violate(f"{budget[1]} solicitations in a second")
        assert self.machine is not None
        plane = self.planes[self.machine.membership.active]
        if plane.fault or plane.cut == segment + 1 or plane.role != "works":
            self.disturb(address)
            return
        self.switch[segment] = plane.name
        for host in self.hosts:
            if (
                host.segment == segment
                and host.is_alive
                and address in host.addresses
                and action.mac in (None, host.mac)
            ):
                self.frame(segment, address, host.mac, is_for_us=True)

    def frame(self, segment: int, address: str, mac: str, *, is_for_us: bool, is_probe: bool = False) -> None:
        """Send a frame of ARP or neighbour discovery to the router, with delay, loss, doubling and lateness."""
        rng = self.rng
        if self.noise_ratio and rng.random() < self.noise_ratio:
            self.disturb(address)
            return
        delay_s = rng.random() * 0.005
        if self.noise_ratio and rng.random() < self.late_ratio * 10:
            delay_s += rng.random() * 0.4
            self.disturb(address, delay_s + 0.01)

        def arrive() -> None:
            if self.reach(segment, address) is None:
                return
            queue = self.inbox[segment]
            if self.machine is None or len(queue) >= QUEUE_FRAMES:
                self.disturb(address)
                return
            if len(queue) >= _FRAMES_A_TICK:
                self.disturb(address)
            queue.append((segment, address, mac, is_for_us, is_probe))
            if not is_probe:
                self._claims.add((segment, address, mac))
                if address in self.networks.own:
                    self._own_claims.setdefault(segment, self.now_s)

        self.after(delay_s, arrive)
        if self.noise_ratio and rng.random() < self.noise_ratio:
            self.after(delay_s + 0.01, arrive)

    def _do_set(self, action: actions.SetNeighbour) -> None:
        segment, address, mac = action.segment, action.address, action.mac
        if self.networks.segment_of(address) != segment:
            self.violate(f"entry {address} of a foreign network {segment}")
        if address not in self.static and (segment, address, mac) not in self._claims:
            self.violate(f"entry {address} {mac}, which nobody claimed on network {segment}")
        if address in self.networks.own or mac in self.own_macs:
            self.violate(f"entry {address} {mac} of the router's own")
        assert self.machine is not None
        for other in self.machine.neighbours.entries.values():
            if other.mac == mac and other.segment != segment:
                self.violate(f"entry {address} {mac}, which is in use on network {other.segment}")
        if address in self.static and mac != self.static[address]:
            self.violate(f"stated neighbour {address} changed to {mac}")
        before = self.entry_before.get(address)
        if before is not None and before != mac:
            self._replaced(address, before, f"replaced by {mac}")
        self.entry_before[address] = mac
        for body in self.bodies.values():
            if body.fault != "link" and not body.is_stubborn:
                body.table[address] = mac
        for plane in self.planes.values():
            if plane.fault != "gone":
                plane.macs[mac] = segment

    def _replaced(self, address: str, mac: str, how: str) -> None:
        last_s = max(self.disturbed_s.get(address, -1e9), self.touched_s.get(address, -1e9))
        if self.now_s - last_s < MOVE_S + GONE_S:
            return
        for host in self.hosts:
            if host.is_alive and host.mac == mac and address in host.addresses:
                self.violate(f"{address} at {mac}, which answers, was {how}")

    def _do_remove(self, action: actions.RemoveNeighbour) -> None:
        before = self.entry_before.pop(action.address, None)
        if before is not None:
            self._replaced(action.address, before, "removed")
        if action.address in self.static:
            self.violate(f"stated neighbour {action.address} removed")
        for body in self.bodies.values():
            if body.fault != "link" and not body.is_stubborn:
                body.table.pop(action.address, None)

    def _do_forget(self, action: actions.ForgetMac) -> None:
        assert self.machine is not None
        for plane in self.planes.values():
            if plane.fault != "gone":
                plane.macs.pop(action.mac, None)

    def _do_announce(self, action: actions.Announce) -> None:
        assert self.machine is not None
        plane = self.planes[self.machine.membership.active]
        if action.is_inside_only:
            return
        for segment in range(self.segments) if action.segment is None else (action.segment,):
            self._own_claims.pop(segment, None)  # also where the announcement is lost, as any frame may be
            self._since.pop(("own address not defended", f"net{segment}"), None)
            if not plane.fault and plane.role == "works" and plane.cut != segment + 1:
                self.switch[segment] = plane.name

    def _do_silent(self, action: actions.SetSilent) -> None:
        for plane in self.planes.values():
            if action.balancer in ("", plane.name) and plane.fault != "gone":
                plane.silent[action.number] = action.is_silent

    def _do_activate(self, action: actions.Activate) -> None:
        for plane in self.planes.values():
            if plane.fault != "gone":
                plane.role = "works" if plane.name == action.balancer else "stands_by"
                plane.unanswered_since_s.clear()
                plane.cuts = {plane.cut}
        self._do_announce(actions.Announce())

    def _do_store(self, action: actions.Store) -> None:
        assert self.machine is not None
        if self.machine.membership.epoch < self.disk.epoch:
            self.violate(f"epoch {self.machine.membership.epoch} stored after {self.disk.epoch}")
        self.disk = copy.deepcopy(self.machine.membership)

    def _do_publish(self, action: actions.Publish) -> None:
        for plane in self.planes.values():
            if action.balancer in ("", plane.name):
                if self.loses_publish == plane.name:
                    self.loses_publish = ""
                    continue
                self._publish(plane, action)

    def _publish(self, plane: Plane, action: actions.Publish) -> None:
        if plane.fault == "gone":
            return
        epoch, rows = action.epoch, action.weights
        if self.rows_of_epoch.setdefault(epoch, rows) != rows:
            self.violate(f"two tables of epoch {epoch}")
        machine = self.machine
        assert machine is not None
        # A repair during a drain sets the table before again, to which the rows that drain belong.
        is_before = bool(action.balancer) and epoch == machine.membership.epoch - 1 and bool(self._draining())
        if epoch < plane.epoch and not is_before:
            self.violate(f"epoch {epoch} published after {plane.epoch}")
        if self.disk.epoch < epoch:
            self.violate(f"epoch {epoch} published before it was stored")
        self.published = max(self.published, epoch)
        plane.before, plane.rows, plane.epoch = plane.rows, rows, epoch

    def _do_drain(self, action: actions.Drain) -> None:
        for plane in self.planes.values():
            if action.balancer in ("", plane.name) and plane.fault != "gone":
                plane.drains_until_s[action.number] = self.now_s + action.deadline_s

    def _draining(self) -> list[Member]:
        assert self.machine is not None
        return [member for member in self.machine.membership.members.values() if member.drains_until_s > self.now_s]

    def _do_audit(self, action: actions.Audit) -> None:
        machine = self.machine
        assert machine is not None
        routers: dict[str, list[str] | None] = {}
        for name in machine.membership.members:
            body = self.bodies[name]
            lines = [*body.routes, *(f"neighbour {a} lladdr {m} dev b0" for a, m in body.table.items())]
            routers[name] = [*lines, "link b0 down"] if body.fault == "link" else lines
        readings: dict[str, BalancerReading | None] = {}
        for plane in self.planes.values():
            readings[plane.name] = (
                None
                if plane.fault
                else BalancerReading(
                    has_its_rows=plane.rows == tuple(machine.membership.weights()),
                    epoch=plane.epoch,
                    macs=frozenset(plane.macs.items()),
                    is_set_up=(plane.role == "works") == (plane.name == machine.membership.active),
                )
            )
        self.do(machine.read(routers, readings, self.now_s))

    def _do_repair(self, action: actions.Repair) -> None:
        assert self.machine is not None
        body = self.bodies[action.member]
        if body.fault == "link" or body.is_stubborn:
            return
        for line in action.extra:
            if line.startswith("neighbour "):
                address = line.split()[1]
                if address not in self.machine.neighbours.entries:
                    body.table.pop(address, None)
                    self._replaced(address, line.split()[3], f"taken from {body.name}")
            else:
                body.routes.discard(line)
        for line in action.missing:
            if line.startswith("neighbour "):
                body.table[line.split()[1]] = line.split()[3]
            else:
                body.routes.add(line)

    def _do_repair_balancer(self, action: actions.RepairBalancer) -> None:
        assert self.machine is not None
        plane = self.planes[action.balancer]
        if plane.fault == "gone":
            return
        self.do(self.machine.republication(plane.name))
        macs = {entry.mac: entry.segment for entry in self.machine.neighbours.entries.values()}
        if not self.machine.is_learning:
            for host in self.hosts:
                if host.mac in plane.macs and host.mac not in macs:
                    for address in host.addresses:
                        self._replaced(address, host.mac, f"taken from {plane.name}")
            plane.macs = {}
        plane.macs |= macs
        is_active = plane.name == self.machine.membership.active
        plane.role = "works" if is_active else "stands_by"
        if is_active:
            self._do_announce(actions.Announce())

    _DO: ClassVar[dict[type, Callable[..., None]]] = {
        actions.Event: _do_event,
        actions.Probe: _do_probe,
        actions.ProbePaths: _do_paths,
        actions.Call: _do_call,
        actions.Solicit: _do_solicit,
        actions.SetNeighbour: _do_set,
        actions.RemoveNeighbour: _do_remove,
        actions.ForgetMac: _do_forget,
        actions.Announce: _do_announce,
        actions.SetSilent: _do_silent,
        actions.Activate: _do_activate,
        actions.Store: _do_store,
        actions.Publish: _do_publish,
        actions.Drain: _do_drain,
        actions.Audit: _do_audit,
        actions.Repair: _do_repair,
        actions.RepairBalancer: _do_repair_balancer,
    }

    def _move_planes(self) -> None:
        """Let frames flow for a tick, and the active program judge who returns none."""
        plane = self.serving()
        if plane is None or not self.traffic:
            return
        returning = 0
        silent = []
        for number, _ in plane.rows:
            body, view = self._by_number[number], plane.members[number]
            if view.is_dead:
                if self.machine is None and body.returns:
                    self._return(plane, number)
                continue
            if plane.silent.get(number, False):
                continue
            if body.returns:
                view.returned += 1
                self._returned_s[number] = self.running_s
                returning += 1
                plane.unanswered_since_s.pop(number, None)
            else:
                silent.append(number)
        for number in silent:
            since_s = plane.unanswered_since_s.setdefault(number, self.now_s)
            if self.now_s - since_s >= (SILENCE_S if returning else ALONE_S):
                plane.members[number].is_dead = True
                plane.members[number].unanswered = 64
                plane.dead_at_s[number], plane.back[number] = self.now_s, 0
