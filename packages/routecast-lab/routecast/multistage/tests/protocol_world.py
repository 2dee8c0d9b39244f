"""A simulated world around the protocol's machine: planes, members, hosts, attackers, switches, a process and its disk.

One seed gives one history. Time is simulated; the world ticks as the driver does (20 ms) while anything happens, and
jumps with ``Machine.pass_idle`` where nothing does. What must hold is checked at each tick, each rule with its bound; a
bound counts the time in which the process ran, so that its stalls and its downtime extend it and nothing else does.
"""

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
from routecast.multistage.protocol.neighbours import (
    BROADCASTS,
    GONE_S,
    MAX_ASKED,
    MAX_ENTRIES,
    MOVE_S,
    REACHABLE_S,
    SOLICITS_PER_S,
    UNICASTS,
    Entry,
    Networks,
)
from routecast.multistage.protocol.schedule import AUDIT_EVERY_S, PATHS_EVERY_S, PROBE_EVERY_S
from routecast.multistage.protocol.watch import (
    ANSWERS_TO_COME_BACK,
    DEAD_ROUNDS,
    PATH_CHANCE,
    PATH_ROUNDS,
    SILENT_ROUNDS,
    BalancerView,
    MemberView,
)

__all__ = ["BOUNDS_S", "Host", "Plane", "Violation", "World", "path_bound_s"]

TICK_S = 0.02
"""Interval of the driver."""
SILENCE_S, ALONE_S, HOLD_S, RETURNS = 0.05, 0.2, 0.1, 3
"""The programs' detector: defaults of a router's file."""
_SLACK_S = 0.1
"""Five ticks: frames on their way, the grid of ticks, an action's turn. A chain of timers adds a tick for each."""
_FRAMES_A_TICK = 64
_QUEUE_FRAMES = 256

BOUNDS_S = {
    "no live element": ALONE_S + SILENCE_S + _SLACK_S,
    "no live element, no traffic": (SILENT_ROUNDS + 1) * PROBE_EVERY_S + _SLACK_S,
    "no balancer works": (MISSED_CALLS + 2) * CALL_EVERY_S + _SLACK_S,
    "network cut off": 1.0 + 2 * (MISSED_CALLS + 2) * CALL_EVERY_S + _SLACK_S,
    "two tables": AUDIT_EVERY_S + _SLACK_S,
    "two balancers work": AUDIT_EVERY_S + _SLACK_S,
    "switch": 2 * PROBE_EVERY_S + _SLACK_S,
    "switch behind a wire that was cut": REACHABLE_S + 1.0 + _SLACK_S,
    "silent move": MOVE_S + (UNICASTS + 1) * TICK_S + _SLACK_S,
    "announced move": 1.0,
    "gone": GONE_S + (UNICASTS + BROADCASTS) * TICK_S + _SLACK_S,
    "unknown": 1.0 + _SLACK_S,
    "member death": (SILENT_ROUNDS + 1) * PROBE_EVERY_S + _SLACK_S,
    "balancer death": (DEAD_ROUNDS + 1) * PROBE_EVERY_S + _SLACK_S,
    "member alive": (ANSWERS_TO_COME_BACK + 1) * PROBE_EVERY_S + HOLD_S + _SLACK_S,
    "balancer alive": 2 * PROBE_EVERY_S + _SLACK_S,
    "flags": max((SILENT_ROUNDS + 1) * PROBE_EVERY_S, AUDIT_EVERY_S) + _SLACK_S,
    "flags back": AUDIT_EVERY_S + (ANSWERS_TO_COME_BACK + 1) * PROBE_EVERY_S + HOLD_S + _SLACK_S,
    "tables of neighbours": AUDIT_EVERY_S + _SLACK_S,
    "own address not defended": 1.0 + _SLACK_S,
    "not mended": 2 * AUDIT_EVERY_S + _SLACK_S,
    "drain ends early": AUDIT_EVERY_S + _SLACK_S,
    "path back": 2 * PATHS_EVERY_S + 2 * AUDIT_EVERY_S + _SLACK_S,
}
"""Longest time for which each thing that must not be may be, s of a running process."""


def path_bound_s(paths: int) -> float:
    """Return how long a member that lacks one of so many paths, and returns all frames on the others, may get flows."""
    rounds = PATH_ROUNDS
    while (1.0 / (rounds * (paths - 1) + 2)) ** rounds > PATH_CHANCE:
        rounds += 1
    return (rounds + 2) * PATHS_EVERY_S + _SLACK_S


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


class World:
    """A router with its surroundings, from one seed; ``run`` lets time pass and returns the violations.

    ``on_event``: receives lines for people.
    """

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
            if ago_s > PROBE_EVERY_S + _SLACK_S:
                self.violate(f"{action.element} is called alive, which returned nothing for {ago_s:.2f} s")
        if action.what == "takes over":
            plane = self.planes[action.element]
            self._takeovers_s = [*self._takeovers_s[-2:], self.now_s]
            first_s, after_s = self._takeovers_s[0], self._ran_s(self._takeovers_s[0])
            is_upset = self.noise_ratio or max(self.upset_s[other] for other in self.planes) > first_s
            if len(self._takeovers_s) == 3 and after_s < 0.9 and not is_upset:
                self.violate(f"three takeovers in {after_s:.2f} s without a fault between them")
            is_off = bool(plane.fault) or plane.cut == 0
            if (
                is_off
                and self._ran_s(self.upset_s.get(plane.name, -1e9)) > (MISSED_CALLS + 1) * CALL_EVERY_S + _SLACK_S
            ):
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
            if self.machine is None or len(queue) >= _QUEUE_FRAMES:
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
                    macs=frozenset(plane.macs),
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

    # ------------------------------------------------------------------ what happens by itself

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

    def tick(self) -> None:
        """Let one interval of the driver pass."""
        self.now_s += TICK_S
        events = self._events
        while events and events[0][0] <= self.now_s:
            heapq.heappop(events)[2]()
        self._move_planes()
        if self.is_up:
            self.running_s += TICK_S
            self.step()
        else:
            self._off_s.append(self.now_s)
        self._ticks += 1
        if self._ticks % 3 == 0 and self.is_up:
            self.check()

    def run(self, until_s: float, *, bursts: bool = True, jumps: bool = True) -> list[Violation]:
        """Let time pass until then, or until the first violation."""
        while self.now_s < until_s and not self.violations:
            if bursts and self.now_s >= self._next_burst_s:
                self._burst()
            if jumps and not self._pending and not self._faulty and not self._since and self.is_up:
                machine = self.machine
                assert machine is not None
                if machine.is_idle:
                    target_s = min(self._next_burst_s, until_s) if bursts else until_s
                    if target_s - self.now_s > 1.0:
                        self._jump(self.now_s + round((target_s - self.now_s) / TICK_S) * TICK_S)
                        continue
            self.tick()
        return self.violations

    def _jump(self, until_s: float) -> None:
        assert self.machine is not None
        self.running_s += until_s - self.now_s
        self.now_s = until_s
        self.machine.pass_idle(until_s)
        self._empty_s = [until_s] * self.segments
        for plane in self.planes.values():
            for view in plane.members.values():
                view.returned += 1
                view.paths = tuple(count + 1 for count in view.paths)
            plane.answers = [count + 1 for count in plane.answers]
            plane.view.answers = tuple(plane.answers)

    # ------------------------------------------------------------------ faults

    def _burst(self) -> None:
        rng = self.rng
        count = rng.choice((1, 2, 6, 10, 14, 18))
        span_s = rng.choice((0.5, 3.0, 10.0)) if count > 1 else 0.1
        self.say(f"burst of {count} faults within {span_s} s")
        self.traffic = rng.random() < 0.75
        for _ in range(count):
            name = rng.choice(_NAMES)
            self.after(rng.random() * span_s, lambda name=name: self.fault(name))  # type: ignore[misc]
        self._next_burst_s = self.now_s + span_s + 10.0 * count + rng.expovariate(1.0 / (46.0 * count))
        self.after(span_s + 10.0, self._operators_settle)

    def fault(self, name: str) -> None:
        """Let a fault of a kind happen now, somewhere; it ends by itself."""
        self.faults[name] += 1
        _FAULTS[name](self)

    def lasts(self, end: Callable[[], None], longest_s: float = 5.0, *, for_s: float = 0.0) -> None:
        """End a fault after a while, or after ``for_s``."""
        self._faulty += 1

        def happen() -> None:
            self._faulty -= 1
            end()

        self.after(for_s or self.rng.choice((0.03, 0.3, 1.0)) * longest_s * (0.2 + self.rng.random()), happen)

    def _begin_anew(self, name: str) -> None:
        """Let bounds of an element count from now: it may have been well between two checks."""
        self.upset_s[name] = self.now_s
        self._since = {key: since_s for key, since_s in self._since.items() if name not in key[1]}

    def fail_member(self, kind: str, *, for_s: float = 0.0) -> None:
        """Let a back-end router fail."""
        body = self.rng.choice([*self.bodies.values()])
        if body.fault or body.loss_ratio:
            return
        self.say(f"{body.name}: {kind}")
        self._begin_anew(body.name)
        if kind == "loss":
            body.loss_ratio = self.rng.choice((0.05, 0.3, 0.6))
            body.is_mixed = True
        else:
            body.fault = kind

        def end() -> None:
            if self.machine is None or self.machine.state_of(body.name, self.now_s) != "dead":
                body.is_mixed = True  # it was away for a part of a round, and not called dead
            body.fault, body.loss_ratio = "", 0.0
            self.say(f"{body.name}: well again")
            self._begin_anew(body.name)
            if self.rng.random() < 0.3:
                body.table.clear()  # it was set up anew
                body.is_mixed = True
                self.verb(lambda machine: machine.restored(body.name, self.now_s))

        self.lasts(end, for_s=for_s)

    def fail_member_meanwhile(self) -> None:
        """Let a back-end router fail shortly before a load balancer that is away is back."""
        rng = self.rng
        away_s = 0.2 + rng.random()
        self.traffic &= rng.random() < 0.5
        self.fail_balancer("gone", for_s=away_s)
        kind = rng.choice(("link", "hang", "one direction"))
        self.after(
            max(away_s - 0.8 * rng.random(), 0.0), lambda: self.fail_member(kind, for_s=1.5 + 2.0 * rng.random())
        )

    def block_path(self) -> None:
        """Let a back-end router forward nothing on one path, whatever its tables say."""
        body, rng = self.rng.choice([*self.bodies.values()]), self.rng
        if body.blocked >= 0:
            return
        is_whole = body.routes == self.configured and (
            self.machine is None or self._holds(body, self.machine.neighbours.entries)
        )
        was_away = body.is_mixed and self.now_s - self.upset_s.get(body.name, -1e9) <= PATHS_EVERY_S
        body.is_mixed = bool(body.fault or body.loss_ratio) or not is_whole or was_away
        body.blocked = rng.choice((2 * rng.randrange(self.segments), 32 + rng.randrange(self.segments)))
        self.say(f"{body.name}: path {body.blocked} blocked")
        self.upset_s[body.name] = self.now_s

        def end() -> None:
            body.blocked = -1
            self.say(f"{body.name}: no path blocked")
            self._begin_anew(body.name)

        self.lasts(end, 12.0)

    def fail_routes(self) -> None:
        """Let somebody change a back-end router's tables."""
        body, rng = self.rng.choice([*self.bodies.values()]), self.rng
        self.say(f"{body.name}: its tables are changed")
        self.upset_s[body.name] = self.now_s
        if self.machine is not None and self._holds(body, self.machine.neighbours.entries):
            self._since.pop(("tables of neighbours", body.name), None)
        body.is_mixed = True
        what = rng.randrange(4)
        if what == 0 and body.routes:
            body.routes.discard(rng.choice(sorted(body.routes)))
        elif what == 1 and body.table:
            del body.table[rng.choice(sorted(body.table))]
        elif what == 2:
            body.table["198.18.1.99"] = self.new_mac()
        elif not body.is_stubborn:
            body.routes.discard(rng.choice(sorted(body.routes)))
            body.is_stubborn = True

            def end() -> None:
                body.is_stubborn = False
                self.upset_s[body.name] = self.now_s

            self.lasts(end)

    def fail_balancer(self, kind: str, name: str = "", *, for_s: float = 0.0) -> None:
        """Let a load balancer fail."""
        plane = self.planes[name or self.rng.choice([*self.planes])]
        if plane.fault or plane.cut >= 0:
            return
        self.say(f"{plane.name}: {kind}")
        self._begin_anew(plane.name)
        # Until now one may have worked, or been about to take over, between two checks.
        self._since = {key: since_s for key, since_s in self._since.items() if key[0] != "no balancer works"}
        if kind == "cut":
            plane.cut = self.rng.randrange(self.segments + 1)
            plane.cuts.add(plane.cut)
        else:
            plane.fault = kind
            plane.view.down = ("inside",) if kind == "link" else ()

        def end() -> None:
            is_rebooted = kind == "gone" and self.rng.random() < 0.5
            self.say(f"{plane.name}: {'rebooted' if is_rebooted else 'back'}")
            self._begin_anew(plane.name)
            plane.fault, plane.cut, plane.view.down = "", -1, ()
            plane.unanswered_since_s.clear()
            if is_rebooted:
                new = self._new_plane(plane.name)
                self.planes[plane.name] = new
            if self.rng.random() < 0.5:
                self.verb(lambda machine: machine.restored(plane.name, self.now_s))

        self.lasts(end, for_s=for_s)

    def fail_both(self) -> None:
        """Let both load balancers fail."""
        for name in self.planes:
            self.fail_balancer(self.rng.choice(("link", "hang", "gone")), name)

    def change_plane(self) -> None:
        """Let somebody change a load balancer's tables."""
        plane, rng = self.planes[self.rng.choice([*self.planes])], self.rng
        self.say(f"{plane.name}: its tables are changed")
        self.upset_s[plane.name] = self.now_s
        if self.machine is not None:  # what was right until now has its whole time again
            if plane.macs.keys() == {entry.mac for entry in self.machine.neighbours.entries.values()}:
                self._since.pop(("tables of neighbours", plane.name), None)
            self._give_whole_time_to_tables(plane, self.machine)
        what = rng.randrange(3)
        if what == 0:
            plane.rows = plane.rows[1:]
        elif what == 1 and plane.macs:
            del plane.macs[rng.choice(sorted(plane.macs))]
        else:
            plane.macs[self.new_mac()] = 0

    def _give_whole_time_to_tables(self, plane: Plane, machine: Machine) -> None:
        """Let the bound of a table count from now if it is right, which no check may have seen."""
        if (plane.epoch, plane.rows) == (machine.membership.epoch, machine.changes.publication().weights):
            self._since.pop(("two tables", plane.name), None)

    def lose_publish(self) -> None:
        """Let a new table not reach one load balancer."""
        self.loses_publish = self.rng.choice([*self.planes])
        if self.machine is not None:
            self._give_whole_time_to_tables(self.planes[self.loses_publish], self.machine)
        self.change_members("weight")
        self.loses_publish = ""

    def change_host(self, kind: str, segment: int = -1) -> None:
        """Let a host change its MAC address in silence, be gone, or announce that its addresses moved.

        ``segment``: one of this network.
        """
        rng, host = self.rng, self.rng.choice([host for host in self.hosts if segment in (-1, host.segment)])
        if not host.is_alive:
            return
        moves_again = any(self.now_s - self.touched_s.get(address, -1e9) < 1.5 for address in host.addresses)
        for address in host.addresses:
            self.touched_s[address] = self.now_s
            self.announced.pop(address, None)
        if kind == "gone":
            host.is_alive = False

            def end() -> None:
                host.is_alive = True
                for address in host.addresses:
                    self.touched_s[address] = self.now_s

            self.say(f"{host.addresses[0]} at {host.mac} is gone")
            self.lasts(end, 12.0)
            return
        host.mac = self.new_mac()
        self.say(f"{host.addresses[0]} has {host.mac}, {kind}")
        if kind == "move":
            for address in host.addresses:
                if not moves_again:  # otherwise the frames may overtake each other
                    self.announced[address] = self.now_s
                self.frame(host.segment, address, host.mac, is_for_us=False)
        elif rng.random() < 0.5:  # and it goes on to ask for the router now and then
            self.after(
                rng.random() * 3.0,
                lambda: (
                    self.frame(host.segment, host.addresses[0], host.mac, is_for_us=True) if host.is_alive else None
                ),
            )

    def attack(self, kind: str) -> None:
        """Let somebody send forged frames for a while."""
        rng = self.rng
        victim = rng.choice(self.hosts)
        address, mac = rng.choice(victim.addresses), self.new_mac()
        segment = victim.segment
        is_probe = kind == "DAD probe"
        is_harmless = kind in {"wrong segment", "DAD probe"}
        is_new = is_harmless and rng.random() < 0.5
        if is_new:
            address = f"198.18.{segment + 1}.{rng.randint(50, 60)}"
        if kind == "wrong segment":
            segment = (segment + 1) % self.segments
        elif kind == "own address":
            address = rng.choice(sorted(self.networks.own))
            segment = rng.randrange(self.segments)
        elif kind == "own MAC":
            mac = rng.choice(self.own_macs)
        elif kind == "MAC of another network":
            mac = rng.choice([host.mac for host in self.hosts if host.segment != segment])
            if rng.random() < 0.5:
                address = f"198.18.{segment + 1}.{rng.randint(50, 60)}"
        elif kind == "stated neighbour":
            segment, address = 0, "198.18.1.200"
        self.say(f"attack: {kind}, {address} {mac} on {segment}")
        is_for_us = rng.random() < 0.5
        self._faulty += 1

        def send(left: int) -> None:
            if is_new:
                self.lookups.append(address)  # a back-end router has packets for it
            if self.machine is not None and not is_harmless:
                entry = self.machine.neighbours.entries.get(address)
                if entry is not None and entry.mac == mac:
                    self.disturb(address)
                elif entry is not None and entry.unanswered:
                    # Nobody answers for the address just now: then who claims it gets it, for a while.
                    self.disturb(address)
            if kind == "MAC of another network":
                # While nobody is known to have a MAC address, who claims it first has it, until it is silent.
                entries = {} if self.machine is None else self.machine.neighbours.entries
                for host in self.hosts:
                    for theirs in host.addresses:
                        entry = entries.get(theirs)
                        if host.mac == mac and (entry is None or entry.mac != mac):
                            self.disturb(theirs, GONE_S)
            is_foreign = kind == "MAC of another network"
            if kind == "right segment" or (is_foreign and not self._is_in_use_elsewhere(mac, segment)):
                self.announced.pop(address, None)  # two claim it, and whose it is cannot be known
            self.frame(segment, address, mac, is_for_us=is_for_us, is_probe=is_probe)
            if left:
                self.after(rng.random() * 0.3, lambda: send(left - 1))
            else:
                self._faulty -= 1

        send(rng.choice((0, 2, 10)))

    def _is_in_use_elsewhere(self, mac: str, segment: int) -> bool:
        """Return whether the process knows a MAC address on another network, so that a claim of it is refused."""
        entries = {} if self.machine is None else self.machine.neighbours.entries
        return any(entry.mac == mac and entry.segment != segment for entry in entries.values())

    def flood(self) -> None:
        """Let back-end routers look up many addresses that nobody has, for a while, in which hosts may move."""
        rng = self.rng
        segment, tenths = rng.randrange(self.segments), rng.choice((1, 1, 50))
        self.say(f"flood of look-ups on {segment} for {tenths / 10} s")
        if tenths > 1:
            kind = rng.choice(("move", "silent", "gone"))
            self.after(0.5 + rng.random(), lambda: self.change_host(kind, segment))

        def send(left: int) -> None:
            for _ in range(400):
                address = f"198.18.{segment + 1}.{rng.randint(10, 190)}"
                if rng.random() < 0.5:
                    address = f"2001:2:0:{segment + 1}::{rng.randint(4096, 65535):x}"
                if len(self.lookups) < _QUEUE_FRAMES * 2:
                    self.lookups.append(address)
            if left:
                self.after(0.1, lambda: send(left - 1))

        send(tenths - 1)

    def kill(self) -> None:
        """Let the process be killed after some more actions."""
        self.dies_in = self.rng.randint(0, 30)

    def stall(self) -> None:
        """Let the process get no processor."""
        stall_s = self.rng.choice((0.05, 0.2, 1.0, 3.0)) * (0.5 + self.rng.random() / 2)
        self.say(f"process stalls for {stall_s:.2f} s")
        self.stalled_until_s = max(self.stalled_until_s, self.now_s + stall_s)
        self.after(stall_s + TICK_S, lambda: None)

    def step_clock(self) -> None:
        """Let the wall clock step; nothing of the protocol reads it."""

    def make_noise(self) -> None:
        """Let frames be lost, doubled and late for a while."""
        self.noise_ratio = self.rng.choice((0.05, 0.2, 0.5))
        self.say(f"noise {self.noise_ratio}")

        def end() -> None:
            self.noise_ratio = 0.0

        self.lasts(end)

    def change_members(self, kind: str) -> None:
        """Let an operator change the members."""
        rng = self.rng
        if self.machine is None:
            return
        name = rng.choice([*self.machine.membership.members])
        self.say(f"operator: {kind} {name}")
        if kind == "weight":
            self.verb(lambda machine: machine.changes.set_weight(name, rng.choice((0.5, 1.0, 2.0, 3.0)), self.now_s))
        elif kind == "dismiss":
            self.verb(lambda machine: machine.changes.dismiss(name, self.now_s))
        elif kind == "take":
            self.verb(lambda machine: machine.changes.take(name, weight=None, now_s=self.now_s))
        else:
            self._drain(name)

    def _drain(self, name: str) -> None:
        machine, number = self.machine, self.bodies[name].number
        assert machine is not None
        had = machine.membership.members[name].takes
        epoch = machine.membership.epoch
        is_draining = machine.state_of(name, self.now_s) == "draining"
        kept = [plane for plane in self.planes.values() if not plane.fault and number in dict(plane.before)]
        idle_s, deadline_s = self.rng.choice(((1.0, 2.0), (4.0, 8.0)))
        self.verb(lambda machine: machine.changes.drain(name, idle_s=idle_s, deadline_s=deadline_s, now_s=self.now_s))
        if self.machine is machine and had and machine.membership.epoch > epoch:
            kept = [plane for plane in self.planes.values() if not plane.fault]
        elif self.machine is not machine or not is_draining:
            return
        for plane in kept:
            if number not in dict(plane.before):
                self.violate(f"{name} drains, and keeps no rows in {plane.name}")
        if self.rng.random() < 0.3:
            self.after(self.rng.random() * idle_s, self.change_plane)

    def _operators_settle(self) -> None:
        """Let operators give every member its flows again."""
        if self.machine is None:
            self.after(1.0, self._operators_settle)
            return
        for name, member in self.machine.membership.members.items():
            if not member.takes:
                self.verb(lambda machine, name=name: machine.changes.take(name, weight=None, now_s=self.now_s))  # type: ignore[misc]
                if self.machine is None or not self.machine.membership.members[name].takes:
                    self.after(1.0, self._operators_settle)
                    return

    # ------------------------------------------------------------------ what must hold

    def must_end(self, what: str, whom: str, is_so: bool, bound_s: float, not_before_s: float = -1e9) -> None:
        """Demand that something ends within a time in which the process runs.

        ``not_before_s``: a time, simulated, from which on it counts at the earliest.
        """
        if not is_so:
            return
        key = (what, whom)
        since_s = self._now_bad[key] = self._since.get(key, self.running_s)
        over_s = min(self.running_s - since_s, self._ran_s(not_before_s))
        if over_s > bound_s:
            self.violate(f"{what}: {whom}, for {over_s:.2f} s, {bound_s:.2f} s are allowed")

    def _ran_s(self, since_s: float) -> float:
        """Return for how long the process has run since a time, s."""
        return self.now_s - since_s - TICK_S * (len(self._off_s) - bisect_right(self._off_s, since_s))

    def check(self) -> None:
        """Check what must hold now."""
        self._now_bad = {}
        self._check()
        self._since = self._now_bad

    def _check(self) -> None:
        machine = self.machine
        assert machine is not None
        membership, bodies, planes = machine.membership, self._by_number, self.planes
        well = {number for number, body in bodies.items() if body.returns and not body.loss_ratio}
        dead = {number for number, body in bodies.items() if not body.returns}
        alive = [plane for plane in planes.values() if not plane.fault]
        sound = [plane for plane in alive if plane.cut < 0]
        seeing = [plane for plane in alive if plane.cut != 0]
        # When a load balancer is back, a round ends that shows it, and the members' rounds begin with the next.
        seen = [p for p in seeing if self._ran_s(self.upset_s.get(p.name, -1e9)) > 2 * PROBE_EVERY_S]
        calls = any(p.role == "works" for p in seeing)  # only such a one answers
        if not seen or not (well or (len(seen) > 1 and calls)):
            self._seen_since_s = self.now_s
        if not (well or (len(seeing) > 1 and calls)):
            self._seen_since_s = self.now_s + 2 * PROBE_EVERY_S
        self._check_forwarding(alive, sound, well, dead)
        rows = tuple(membership.weights())
        for plane in planes.values():
            is_off = not plane.fault and (plane.epoch != membership.epoch or plane.rows != rows)
            self.must_end("two tables", plane.name, is_off, BOUNDS_S["two tables"])
        working = [plane for plane in alive if plane.role == "works"]
        self.must_end("two balancers work", "", len(working) > 1, BOUNDS_S["two balancers work"])
        for name, member in membership.members.items():
            number = member.number
            state = machine.state_of(name, self.now_s)
            is_missed = number in dead and bool(seeing) and state != "dead"
            is_missed = is_missed and (bool(well) or state != "not seen")
            self.must_end("member death", name, is_missed, BOUNDS_S["member death"], self._seen_since_s)
            is_slandered = number in well and bool(seeing) and state in {"dead", "not seen"}
            self.must_end("member alive", name, is_slandered, BOUNDS_S["member alive"])
            body = bodies[number]
            if number in well and body.is_stubborn and body.routes != self.configured:
                self.must_end("not mended", name, self._gets_flows(body, alive, well), BOUNDS_S["not mended"])
            if number in well and body.blocked >= 0 and not body.is_mixed:
                paths = machine.paths.destinations()
                is_seen = self._is_path_seen(body, paths, well) and self._gets_flows(body, alive, well)
                tried = sum(map(bool, paths))
                self.must_end("path", f"{name} of {tried}", is_seen, path_bound_s(tried))
            is_whole = number in well and not body.is_stubborn and body.blocked < 0 and bool(seeing)
            self.must_end("path back", name, is_whole and state == "differs", BOUNDS_S["path back"], self._tables_s())
        for name, plane in planes.items():
            state = machine.state_of(name, self.now_s)
            others = [other for other in seeing if other is not plane]
            expected = {"dead"} if others and well else {"dead", "not seen"}
            is_missed = bool(plane.fault) and state not in expected
            self.must_end("balancer death", name, is_missed, BOUNDS_S["balancer death"])
            is_slandered = plane in sound and bool(well) and state in {"dead", "not seen"}
            self.must_end("balancer alive", name, is_slandered, BOUNDS_S["balancer alive"])
        self._check_drains(membership, alive)
        self._check_neighbours(machine, alive, well)

    def _check_drains(self, membership: Membership, alive: list[Plane]) -> None:
        """Check that a member that drains keeps its rows in every load balancer."""
        for member in self._draining():
            if member.number not in dict(self.rows_of_epoch.get(membership.epoch - 1, ())):
                continue
            for plane in alive:
                until_s = plane.drains_until_s.get(member.number, -1e9)
                ends = member.number not in dict(plane.before) or until_s < member.drains_until_s - _SLACK_S
                self.must_end("drain ends early", f"{plane.name} {member.name}", ends, BOUNDS_S["drain ends early"])

    def _gets_flows(self, body: Body, alive: list[Plane], well: set[int]) -> bool:
        """Return whether a load balancer gives a member flows though another one is wholly well."""
        machine = self.machine
        assert machine is not None
        others = {
            member.number
            for name, member in machine.membership.members.items()
            if member.number in well - {body.number} and machine.state_of(name, self.now_s) == "active"
        }
        return any(
            not plane.is_out(body.number) and any(n in others and not plane.is_out(n) for n, _ in plane.rows)
            for plane in alive
        )

    def _is_path_seen(self, body: Body, paths: tuple[str, ...], well: set[int]) -> bool:
        """Return whether own frames go on the path that is blocked, and another member's come back."""
        machine, plane, path = self.machine, self.serving(), body.blocked
        assert machine is not None
        if plane is None or plane.cut == 0 or plane.name != machine.membership.active or not paths[path]:
            return False
        return any(self._forwards(self._by_number[n], path, paths[path]) for n in well - {body.number})

    def _tables_s(self) -> float:
        """Return when a neighbour's entry changed last, so that some member may lack it still."""
        return max(self.touched_s.values(), default=-1e9)

    def _check_forwarding(self, alive: list[Plane], sound: list[Plane], well: set[int], dead: set[int]) -> None:
        machine = self.machine
        assert machine is not None
        plane = self.serving()
        is_black = plane is None and bool(sound) and bool(well)
        has_standby = any(p.name != machine.membership.active for p in sound)
        self.must_end("no balancer works", "takeover", is_black and has_standby, BOUNDS_S["no balancer works"])
        self.must_end("no balancer works", "repair", is_black and not has_standby, BOUNDS_S["two tables"])
        numbers = [number for number, _ in plane.rows] if plane is not None else []
        can = plane is not None and any(number in well for number in numbers)
        bound_s = BOUNDS_S["no live element" if self.traffic else "no live element, no traffic"]
        for other in self.planes.values():
            for number in self._by_number:
                whom = self._pairs[other.name][number]
                is_here = can and other is plane and number in numbers
                is_lost = is_here and number in dead and not other.is_out(number) and other.cut != 0
                self.must_end("no live element", whom, is_lost, bound_s, self._seen_since_s)
                if other is not plane:
                    is_late = not other.fault and number in dead and not other.is_out(number) and bool(alive)
                    self.must_end("flags", whom, is_late and other.cut != 0, BOUNDS_S["flags"], self._seen_since_s)
                is_calm = self._ran_s(self.upset_s.get(other.name, -1e9)) > AUDIT_EVERY_S + _SLACK_S
                is_kept = plane is not None and other is not plane and not other.fault and is_calm
                is_kept = is_kept and plane is not None and plane.name == machine.membership.active
                is_kept = is_kept and plane is not None and plane.members[number].is_dead and not other.is_out(number)
                self.must_end("verdict kept from the standby", whom, is_kept, _SLACK_S)
                body = self._by_number[number]
                is_flagged = not other.fault and number in well and other.cut != 0 and other.is_out(number)
                is_flagged = is_flagged and not body.is_stubborn and body.routes == self.configured and body.blocked < 0
                state = is_flagged and machine.state_of(body.name, self.now_s) != "differs"
                self.must_end("flags back", whom, state, BOUNDS_S["flags back"])
            if other is plane:
                all_out = can and other.cut != 0 and all(other.is_out(number) for number in numbers)
                self.must_end("no live element", f"{other.name} all", all_out, BOUNDS_S["flags back"])
        for segment in range(self.segments):
            is_cut = plane is not None and plane.cut == segment + 1
            is_cut = is_cut and any(other is not plane and other.role == "stands_by" for other in sound)
            is_cut = is_cut and machine.neighbours.is_any_on(segment) and bool(well)
            self.must_end("network cut off", f"net{segment}", is_cut, BOUNDS_S["network cut off"])
        for segment, name in enumerate(self.switch):
            is_wrong = plane is not None and name != plane.name and plane.cut != segment + 1 and len(alive) > 0
            is_wrong = is_wrong and plane is not None and plane.name == machine.membership.active
            is_wrong = is_wrong and any(host.is_alive for host in self.hosts if host.segment == segment)
            was_cut = plane is not None and segment + 1 in plane.cuts
            what = "switch behind a wire that was cut" if was_cut else "switch"
            self.must_end(what, f"net{segment}", is_wrong, BOUNDS_S[what])

    def _check_neighbours(self, machine: Machine, alive: list[Plane], well: set[int]) -> None:
        entries = machine.neighbours.entries
        if len(entries) > MAX_ENTRIES:
            self.violate(f"{len(entries)} entries")
        serving = self.serving()
        for host in self.hosts:
            place = host.segment
            is_heard = serving is not None and serving.cut != place + 1 and self.switch[place] == serving.name
            for address in host.addresses:
                entry = entries.get(address)
                since_s = self.disturbed_s.get(address, -1e9)
                is_off = entry is not None and entry.mac != host.mac and is_heard and host.is_alive
                is_announced = address in self.announced and since_s < self.announced[address]
                whom = address if entry is None else f"{address} at {entry.mac}"
                self.must_end("silent move", whom, is_off, BOUNDS_S["silent move"], since_s)
                self.must_end("announced move", whom, is_off and is_announced, BOUNDS_S["announced move"], since_s)
                is_gone = entry is not None and not host.is_alive and is_heard
                self.must_end("gone", whom, is_gone, BOUNDS_S["gone"], since_s)
                is_unknown = entry is None and host.is_alive and bool(well)
                if is_unknown and self.now_s - self._looked_s.get(address, -1.0) > 0.5:
                    self._looked_s[address] = self.now_s
                    self.lookups.append(address)
                is_unknown = is_unknown and is_heard and not self.lookups
                self.must_end("unknown", address, is_unknown, BOUNDS_S["unknown"], since_s)
        asked = getattr(machine.neighbours, "_asked", ())
        if any(len(addresses) > MAX_ASKED for addresses in asked):
            self.violate("more than MAX_ASKED look-ups")
        for place in range(self.segments):
            plane = self.planes[machine.membership.active]
            can = not plane.fault and plane.role == "works" and plane.cut != place + 1
            is_open = can and place in self._own_claims
            self.must_end("own address not defended", f"net{place}", is_open, BOUNDS_S["own address not defended"])
        macs = {entry.mac: entry.segment for entry in entries.values()}
        for plane in self.planes.values():
            is_off = not plane.fault and plane.macs != macs
            self.must_end("tables of neighbours", plane.name, is_off, BOUNDS_S["tables of neighbours"])
            is_calm = self._ran_s(self.upset_s.get(plane.name, -1e9)) > BOUNDS_S["tables of neighbours"]
            self.must_end("neighbours differ without a fault", plane.name, is_off and is_calm, _SLACK_S)
        for body in self.bodies.values():
            is_off = body.fault != "link" and not body.is_stubborn and not self._holds(body, entries)
            self.must_end("tables of neighbours", body.name, is_off, BOUNDS_S["tables of neighbours"])
            is_calm = not body.fault and self._ran_s(self.upset_s.get(body.name, -1e9)) > 2 * AUDIT_EVERY_S + _SLACK_S
            self.must_end("neighbours differ without a fault", body.name, is_off and is_calm, _SLACK_S)

    @staticmethod
    def _holds(body: Body, entries: Mapping[str, Entry]) -> bool:
        table = body.table
        return len(table) == len(entries) and all(table.get(address) == entry.mac for address, entry in entries.items())


_FAULTS: dict[str, Callable[[World], None]] = {
    **{f"member {kind}": lambda w, k=kind: w.fail_member(k) for kind in ("link", "hang", "one direction", "loss")},  # type: ignore[misc]
    "member tables": World.fail_routes,
    "member path": World.block_path,
    "member while a balancer is away": World.fail_member_meanwhile,
    **{f"balancer {kind}": lambda w, k=kind: w.fail_balancer(k) for kind in ("link", "hang", "gone", "cut")},  # type: ignore[misc]
    "both balancers": World.fail_both,
    "balancer tables": World.change_plane,
    "lost publish": World.lose_publish,
    **{f"host {kind}": lambda w, k=kind: w.change_host(k) for kind in ("silent", "gone", "move")},  # type: ignore[misc]
    **{
        f"attack {kind}": lambda w, k=kind: w.attack(k)  # type: ignore[misc]
        for kind in (
            "wrong segment",
            "right segment",
            "own address",
            "own MAC",
            "MAC of another network",
            "DAD probe",
            "stated neighbour",
        )
    },
    "flood of look-ups": World.flood,
    "process killed": World.kill,
    "process stalls": World.stall,
    "clock steps": World.step_clock,
    "noise": World.make_noise,
    **{f"operator {kind}": lambda w, k=kind: w.change_members(k) for kind in ("weight", "drain", "dismiss", "take")},  # type: ignore[misc]
}
_NAMES = tuple(_FAULTS)
