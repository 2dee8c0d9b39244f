"""The machine of states: neighbours, membership, verdicts, takeover, epochs."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from routecast.errors import QuantityProblem
from routecast.multistage._detection import CALL_EVERY_S, MISSED_CALLS
from routecast.multistage.protocol.actions import (
    Action,
    Activate,
    Announce,
    Audit,
    Call,
    Drain,
    Event,
    Probe,
    ProbePaths,
    Publish,
    Repair,
    RepairBalancer,
    SetSilent,
    Store,
)
from routecast.multistage.protocol.neighbours import NeighbourTable, Networks
from routecast.multistage.protocol.watch import (
    ANSWERS_TO_COME_BACK,
    DEAD_ROUNDS,
    SILENT_ROUNDS,
    BalancerView,
    BalancerWatch,
    MemberWatch,
)

if TYPE_CHECKING:
    from routecast.multistage._membership import Member, Membership

__all__ = ["AUDIT_EVERY_S", "PATHS_EVERY_S", "PROBE_EVERY_S", "BalancerReading", "Machine", "MachineSettings"]

PROBE_EVERY_S = 0.1
PATHS_EVERY_S = 0.5
AUDIT_EVERY_S = 1.0
ANNOUNCE_EVERY_S = 1.0
_ANNOUNCE_OFTEN_EVERY_S = 0.02
_ANNOUNCE_OFTEN_FOR_S = 1.0
_ASKS_MEMBERS_AFTER = 2
"""Calls without an answer after which a standby asks the members whether it could take over, and the active one is to
ask neighbours on networks where it does not answer."""
_HEARD_WITHIN_S = 3 * CALL_EVERY_S
_LOOKS_AGAIN_S = 0.5
_FIRST_HOLD_S, _LONGEST_HOLD_S = 1.0, 16.0
"""Time for which a load balancer that took over for one network keeps it; doubled with each takeover back."""
_LEARNS_ROUNDS = 10
"""Rounds after the start in which unknown neighbours that elements have are looked up instead of removed."""
_DIFFERENCES = 2
"""Audits in a row with differences that a repair did not mend, until a member gets no flows."""
_TOLD_DIFFERENCES = 3
_FIRST_ROUTE_PATH = 32
_MAX_PATHS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSettings:
    """What a router's file says of its elements.

    ``balancers``: names; ``networks``: outside networks; ``own_macs``: MAC addresses of the router's elements;
    ``static``: stated neighbours; ``wanted``: addresses to look up at the start; ``routes``: network and gateway of
    each route; ``configured``: lines that the back-end routers' tables have beside their neighbours, as
    :meth:`routecast.lab._lab.NamespaceNetlink.contents` returns them.
    """

    balancers: tuple[str, ...]
    networks: Networks
    own_macs: tuple[str, ...] = ()
    static: Mapping[str, str] = field(default_factory=dict)
    wanted: tuple[str, ...] = ()
    routes: tuple[tuple[str, str], ...] = ()
    configured: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class BalancerReading:
    """The tables of a load balancer: whether its rows are those of its epoch, the epoch, and its neighbours' count.

    ``is_set_up``: whether its kernel has the addresses of its role.
    """

    has_its_rows: bool
    epoch: int
    macs: frozenset[str] | None = None
    is_set_up: bool = True


class Machine:
    """The protocol of one router.

    The caller hands in what it sees (:meth:`observe`, :meth:`read`, and the neighbours' frames and look-ups by
    :attr:`neighbours`), calls :meth:`tick` when :attr:`next_s` has come, and carries out the actions that each returns.
    """

    def __init__(self, settings: MachineSettings, membership: Membership) -> None:
        self.settings = settings
        self.membership = membership
        self.neighbours = NeighbourTable(settings.networks, own_macs=settings.own_macs, static=settings.static)
        self.members: dict[str, MemberWatch] = {}
        self.balancers = {name: BalancerWatch() for name in settings.balancers}
        self._due = dict.fromkeys(("probe", "call", "paths", "audit", "announce"), 0.0)
        self._announces_until_s = 0.0
        self._views: Mapping[str, BalancerView] = {}
        self._has_seen = self._is_blind = False
        self._silent: dict[tuple[str, int], bool] = {}
        self._paths: tuple[str, ...] = ()
        self._probes_dead = False
        self._drained: set[str] = set()
        self._heard_on: dict[tuple[str, int], float] = {}
        self._hold_s: dict[int, float] = {}
        self._hold_until_s: dict[int, float] = {}
        self._cut_off: set[tuple[str, int]] = set()
        self._now_s = 0.0
        self._learns_rounds = 0

    # ------------------------------------------------------------------ beginning

    def start(self, now_s: float) -> list[Action]:
        """Begin, or go on after an earlier process: put the table in force, take the role, look the hosts up."""
        for name in self.membership.members:
            self.members[name] = MemberWatch(seen_s=now_s)
        for watch in self.balancers.values():
            watch.seen_s = now_s
        if self.membership.active not in self.balancers:
            self.membership.active = self.settings.balancers[0]
        for key in self._due:
            self._due[key] = now_s
        self._now_s, self._learns_rounds = now_s, _LEARNS_ROUNDS
        actions = [*self._activate(self.membership.active, now_s)]
        for name, member in self.membership.members.items():
            actions += self._judged(name, member.number)
        # Whether the tables are those of the epoch, the first audit says.
        return [*actions, *self.neighbours.start(self.settings.wanted, now_s)]

    @property
    def next_s(self) -> float:
        """When :meth:`tick` has something to do next."""
        return min(*self._due.values(), self.neighbours.next_s)

    # ------------------------------------------------------------------ what is seen

    def observe(self, views: Mapping[str, BalancerView], now_s: float) -> list[Action]:
        """Take in what the load balancers have counted, as often as it is read."""
        had_seen, before = self._has_seen, self._views
        self._views, self._has_seen = views, True
        actions: list[Action] = []
        back: set[str] = set()
        for name, watch in self.balancers.items():
            view = views.get(name)
            if view is None:
                continue
            heard = {number: member.returned for number, member in view.members.items()}
            # A count that fell began anew, so it was away and back between two ticks.
            if name not in before or any(count < watch.heard.get(number, 0) for number, count in heard.items()):
                back.add(name)  # what it counted before it is back is no sign of now
                watch.heard, watch.heard_answers = heard, view.answers
                self._forget_silent(name)
                if name == self.membership.active:  # its program may have begun anew, without verdicts
                    self._keep_verdicts()
                if had_seen:  # it may have missed another deadline
                    actions += [
                        Drain(member.number, member.drain_idle_s, member.drains_until_s - now_s, name)
                        for member in self.membership.members.values()
                        if self._is_draining(member, now_s)
                    ]
            if any(count != watch.heard.get(number, 0) for number, count in heard.items()):
                watch.heard_s = watch.sign_s = now_s
            watch.heard = heard
            if view.answers != watch.heard_answers:
                watch.heard_answers = view.answers
                if any(view.answers):
                    # The active load balancer answered, and this one heard it.
                    watch.sign_s = self.balancers[self.membership.active].sign_s = now_s
            watch.down = view.down
        if back:
            for name, member in self.membership.members.items():
                actions += self._judged(name, member.number)
        actions += self._observe_deaths(views, now_s)
        return actions

    def _observe_deaths(self, views: Mapping[str, BalancerView], now_s: float) -> Iterator[Action]:
        """Tell of verdicts of the active load balancer's program, and hand them to the others."""
        view = views.get(self.membership.active)
        if view is None:
            return
        self._probes_dead = False
        for name, member in self.membership.members.items():
            counted, watch = view.members.get(member.number), self.members[name]
            if counted is None:
                continue
            self._probes_dead |= counted.is_dead
            if counted.is_dead != watch.is_dead:
                watch.is_dead = counted.is_dead
                if counted.is_dead:
                    yield from self._died(name, watch, f"data path, {counted.unanswered} unanswered")
                elif not watch.is_silent:
                    yield Event(name, "alive", "its own frames come back")
                yield from self._judged(name, member.number)

    @staticmethod
    def _died(name: str, watch: MemberWatch, why: str) -> Iterator[Action]:
        watch.path_is_out = True
        if not (watch.is_dead and watch.is_silent):  # not the second verdict on one death
            watch.silences += watch.is_silent
            yield Event(name, "dead", why)

    # ------------------------------------------------------------------ time

    def tick(self, now_s: float) -> list[Action]:
        """Do what is due."""
        self._now_s = now_s
        actions: list[Action] = []
        if self._is_due("probe", PROBE_EVERY_S, now_s):
            if self._learns_rounds:
                self._learns_rounds -= 1
                if not self._learns_rounds:  # what is unknown now goes
                    self._due["audit"] = now_s
            actions += self._judge(now_s)
            actions += self._end_drains(now_s)
            numbers = tuple(member.number for member in self.membership.members.values())
            actions += [Probe(name, numbers) for name in self.balancers]
        elif self._probes_dead:
            dead = [member.number for name, member in self.membership.members.items() if self.members[name].is_dead]
            actions.append(Probe(self.membership.active, tuple(dead)))
        if len(self.balancers) > 1 and self._is_due("call", CALL_EVERY_S, now_s):
            actions += self._call(now_s)
        if self._is_due("paths", PATHS_EVERY_S, now_s):
            actions += self._judge_paths()
        if self._is_due("audit", AUDIT_EVERY_S, now_s):
            actions.append(Audit())
        often = now_s < self._announces_until_s
        if self._is_due("announce", _ANNOUNCE_OFTEN_EVERY_S if often else ANNOUNCE_EVERY_S, now_s):
            actions.append(Announce(is_inside_only=not often))
        actions += self.neighbours.tick(now_s)
        return actions

    def _is_due(self, task: str, interval_s: float, now_s: float) -> bool:
        due_s = self._due[task]
        if now_s < due_s:
            return False
        # After a pause the next one comes a whole interval later: rounds need time for their answers.
        self._due[task] = due_s + interval_s if due_s + interval_s > now_s else now_s + interval_s
        return True

    # ------------------------------------------------------------------ verdicts on members

    def _judge(self, now_s: float) -> Iterator[Action]:
        """Judge the round of own frames that ends now."""
        if not self._has_seen:
            return
        was_blind, self._is_blind = self._is_blind, not self._is_any_balancer_seen()
        for name, member in self.membership.members.items():
            watch = self.members[name]
            views = {b: view.members[member.number] for b, view in self._views.items() if member.number in view.members}
            watch.hear(views, now_s)
            if self._is_blind:  # nobody is left who would hear it
                continue
            if was_blind and watch.missed:
                watch.missed = 0
            if not watch.is_silent and watch.missed >= SILENT_ROUNDS:
                watch.is_silent = True
                yield from self._died(name, watch, f"no answer to {watch.missed} own frames")
                yield from self._judged(name, member.number)
            elif watch.is_silent and watch.in_a_row >= ANSWERS_TO_COME_BACK:
                watch.is_silent = False
                watch.returns += 1
                if not watch.is_dead:
                    yield Event(name, "alive", f"answered {watch.in_a_row} own frames")
                yield from self._judged(name, member.number)
        yield from self._judge_balancers(now_s)

    def _judged(self, name: str, number: int) -> Iterator[Action]:
        """Hand verdicts on a member to the load balancers whose programs do not know them yet."""
        watch = self.members[name]
        # One that lacks something is better than none.
        is_out = watch.is_silent or (
            self._is_partly_dead(watch)
            and any(
                other is not watch
                and self.membership.members[other_name].takes
                and not (other.is_silent or other.is_dead or self._is_partly_dead(other))
                for other_name, other in self.members.items()
            )
        )
        for balancer in self.balancers:
            # A standby has the verdicts of the active load balancer.
            wanted = is_out or (watch.is_dead and balancer != self.membership.active)
            if self._silent.get((balancer, number)) != wanted:  # none: an earlier process may have set it
                self._silent[balancer, number] = wanted
                yield SetSilent(number, wanted, balancer)

    @staticmethod
    def _is_partly_dead(watch: MemberWatch) -> bool:
        return bool(watch.lacks) or watch.differences >= _DIFFERENCES

    # ------------------------------------------------------------------ load balancers

    def _judge_balancers(self, now_s: float) -> Iterator[Action]:
        for watch in self.balancers.values():
            if watch.sign_s > watch.seen_s:
                watch.seen_s, watch.missed = watch.sign_s, 0
            else:
                watch.missed += 1
        for name, watch in self.balancers.items():
            before, watch.state = watch.state, self._state_of_balancer(name)
            if before in {"dead", "not seen"} and watch.state == "active":
                self._announce_often(now_s)  # what it announced meanwhile nobody heard
            if before not in {watch.state, "new"}:
                yield Event(name, watch.state, self._why(watch))

    def _state_of_balancer(self, name: str) -> str:
        watch = self.balancers[name]
        if watch.down:
            return "dead"
        if watch.missed < DEAD_ROUNDS:
            return "active" if name == self.membership.active else "standby"
        # Somebody who is alive would have seen it.
        others = any(
            other is not watch and other.missed < DEAD_ROUNDS and not other.down for other in self.balancers.values()
        )
        return "dead" if others or self._is_anybody_heard() else "not seen"

    def _is_any_balancer_seen(self) -> bool:
        return any(watch.missed < DEAD_ROUNDS and not watch.down for watch in self.balancers.values())

    def _is_anybody_heard(self) -> bool:
        return any(member.missed < SILENT_ROUNDS for member in self.members.values())

    @staticmethod
    def _why(watch: BalancerWatch) -> str:
        if watch.down:
            return f"{', '.join(watch.down)} down"
        return f"no sign in {watch.missed} rounds" if watch.missed >= DEAD_ROUNDS else ""

    def _call(self, now_s: float) -> Iterator[Action]:
        active = self.membership.active
        numbers = tuple(member.number for member in self.membership.members.values())
        for name, watch in self.balancers.items():
            if name == active or (view := self._views.get(name)) is None:
                continue
            if not watch.called or len(watch.unanswered) != len(view.answers):
                watch.unanswered = [0] * len(view.answers)
            else:
                watch.unanswered = [
                    0 if now != before else missed + 1
                    for now, before, missed in zip(view.answers, watch.answers, watch.unanswered, strict=True)
                ]
            watch.answers, watch.called = view.answers, True
            missed = max(watch.unanswered, default=0)
            for place, count in enumerate(watch.unanswered):
                if not count:
                    self._hold_s.pop(place, None)
                    self._cut_off.discard((name, place))
            if missed >= MISSED_CALLS and self._can_take_over(watch, now_s):
                silent = yield from self._where_it_is_needed(name, watch, now_s)
                if silent:
                    yield Event(name, "takes over", f"{active} did not answer {missed} calls")
                    yield from self._take_over(name, now_s)
                    return
            if missed >= _ASKS_MEMBERS_AFTER:
                yield Probe(name, numbers)
            for place, count in enumerate(watch.unanswered[1:], start=1):
                if _ASKS_MEMBERS_AFTER <= count < MISSED_CALLS:
                    yield from self.neighbours.ask_some(place - 1, now_s)
            yield Call(name, active)

    def hear_on(self, balancer: str, segment: int, now_s: float) -> None:
        """Note that a load balancer got a neighbour's frame on a network."""
        self._heard_on[balancer, segment] = now_s

    def _where_it_is_needed(self, name: str, watch: BalancerWatch, now_s: float) -> Generator[Action, None, list[int]]:
        """Return the interfaces for which a standby is to take over: on which its calls have no answer.

        On a single network either of the two may be cut off. It is the standby if the active one still gets neighbours'
        frames there, and it does not matter where no neighbour is known and the standby gets no frame either.
        """
        active = self.membership.active
        silent = [place for place, missed in enumerate(watch.unanswered) if missed >= MISSED_CALLS]
        if 0 in silent:  # the members' answers say that it is not the standby
            return silent
        needed = []
        for place in silent:
            if now_s < self._hold_until_s.get(place, float("-inf")):
                continue
            if watch.unanswered[place] > MISSED_CALLS:  # the last look at it is old
                watch.unanswered[place] = 0
                continue
            heard_s = self._heard_on.get((active, place - 1), float("-inf"))
            if now_s - heard_s <= _HEARD_WITHIN_S:
                if (name, place) not in self._cut_off:
                    self._cut_off.add((name, place))
                    network = self.settings.networks.names[place - 1]
                    yield Event(name, "hears nothing", f"on {network}, where {active} hears neighbours")
                self._hold_until_s[place] = now_s + _LOOKS_AGAIN_S
                continue
            hears_s = self._heard_on.get((name, place - 1), float("-inf"))
            if self.neighbours.is_any_on(place - 1) or now_s - hears_s <= MISSED_CALLS * CALL_EVERY_S:
                needed.append(place)
        for place in needed:
            hold_s = self._hold_s[place] = min(2 * self._hold_s.get(place, _FIRST_HOLD_S / 2), _LONGEST_HOLD_S)
            self._hold_until_s[place] = now_s + hold_s
        return needed

    def _can_take_over(self, watch: BalancerWatch, now_s: float) -> bool:
        return not watch.down and now_s - watch.heard_s <= 1.5 * CALL_EVERY_S

    def _take_over(self, name: str, now_s: float) -> Iterator[Action]:
        self._keep_verdicts()  # its own program has none yet
        yield from self._activate(name, now_s)
        for member_name, member in self.membership.members.items():
            yield from self._judged(member_name, member.number)

    def _keep_verdicts(self) -> None:
        """Let the verdicts of a program that is no longer asked be those of this process."""
        for watch in self.members.values():
            watch.is_silent |= watch.is_dead and watch.in_a_row < ANSWERS_TO_COME_BACK
            watch.is_dead = False

    def _activate(self, name: str, now_s: float) -> Iterator[Action]:
        self.membership.active = name
        self._announce_often(now_s)
        for watch in self.balancers.values():
            watch.called, watch.unanswered = False, []
        # The data path comes first: it only needs switches that know the router's port.
        yield Activate(name)
        yield Store()

    def _announce_often(self, now_s: float) -> None:
        self._announces_until_s = now_s + _ANNOUNCE_OFTEN_FOR_S
        self._due["announce"] = now_s

    # ------------------------------------------------------------------ paths

    def paths(self) -> tuple[str, ...]:
        """Return the destination of own frames on each path; empty where no neighbour is known.

        A path is a network and a version of IP, and each of the first routes.
        """
        count = len(self.settings.networks.names)
        paths = [""] * min(_FIRST_ROUTE_PATH + len(self.settings.routes), _MAX_PATHS)
        for address, entry in self.neighbours.entries.items():
            place = 2 * entry.segment + (":" in address)
            if entry.segment < min(count, _FIRST_ROUTE_PATH // 2) and not paths[place]:
                paths[place] = address
        for number, (network, via) in enumerate(self.settings.routes[: _MAX_PATHS - _FIRST_ROUTE_PATH]):
            if via in self.neighbours.entries:
                first = ipaddress.ip_network(network)
                paths[_FIRST_ROUTE_PATH + number] = str(first[min(1, first.num_addresses - 1)])
        return tuple(paths)

    def name_of_path(self, path: int) -> str:
        """Return the name of a path for people."""
        if path >= _FIRST_ROUTE_PATH:
            return f"to {self.settings.routes[path - _FIRST_ROUTE_PATH][0]}"
        return f"to {self.settings.networks.names[path // 2]} (IPv{6 if path % 2 else 4})"

    def _judge_paths(self) -> Iterator[Action]:
        """Judge the round of own frames on all paths that ends now, and begin the next."""
        returned: dict[str, list[bool]] = {}
        for name, member in self.membership.members.items():
            watch = self.members[name]
            came = [False] * len(self._paths)
            counts = {
                b: view.members[member.number].paths for b, view in self._views.items() if member.number in view.members
            }
            for balancer, counted in counts.items():
                if balancer not in watch.path_counts:  # what it counted before it is back is no sign of now
                    continue
                before = watch.path_counts[balancer]
                for path in range(min(len(came), len(counted))):
                    # A count that fell to 0 began anew.
                    came[path] |= counted[path] > 0 and counted[path] != (before[path] if path < len(before) else 0)
            watch.path_counts = counts
            returned[name] = came
        is_new = False
        for name, came in returned.items():
            watch = self.members[name]
            was_out, watch.path_is_out = watch.path_is_out, watch.is_silent or watch.is_dead
            if was_out or watch.path_is_out:  # also the round in which it came back: it may have missed all frames
                watch.path_missed = []
                continue
            others = [
                any(other[path] for other_name, other in returned.items() if other_name != name)
                for path in range(len(came))
            ]
            lacks = watch.judge_paths(came, others, tuple(map(bool, self._paths)))
            if lacks != watch.lacks:
                is_new |= bool(lacks - watch.lacks)
                watch.lacks = lacks
                names = ", ".join(map(self.name_of_path, sorted(lacks)))
                yield Event(name, "partly dead" if lacks else "whole again", names and f"nothing comes back {names}")
                yield from self._judged(name, self.membership.members[name].number)
        if is_new:
            yield Audit()
        self._paths = self.paths()
        numbers = tuple(member.number for member in self.membership.members.values())
        if any(self._paths):
            # Only the active one: the switch knows the neighbours' MAC addresses behind it.
            yield ProbePaths(self.membership.active, numbers, self._paths)

    # ------------------------------------------------------------------ audit

    def expected_lines(self) -> frozenset[str]:
        """Return the lines that every back-end router's tables should have."""
        neighbours = (
            f"neighbour {address} lladdr {entry.mac} dev b0" for address, entry in self.neighbours.entries.items()
        )
        return self.settings.configured | frozenset(neighbours)

    def read(
        self, routers: Mapping[str, Iterable[str] | None], balancers: Mapping[str, BalancerReading | None], now_s: float
    ) -> list[Action]:
        """Take in the tables of all elements; None where they cannot be read."""
        self._now_s = now_s
        actions: list[Action] = []
        for name, lines in routers.items():
            if name in self.membership.members:
                actions += self._read_router(name, lines)
        for name, reading in balancers.items():
            why = "" if reading is None else self.difference_of(name, reading)
            if why:
                actions += [RepairBalancer(name), Event(name, "repaired", why)]
                self._forget_silent(name)
        for name, member in self.membership.members.items():
            actions += self._judged(name, member.number)
        return actions

    def _forget_silent(self, balancer: str) -> None:
        """Do not rely on the verdicts that a load balancer was given: it may have begun anew."""
        for key in [key for key in self._silent if key[0] == balancer]:
            del self._silent[key]

    def difference_of(self, name: str, reading: BalancerReading) -> str:
        """Return in what a load balancer's tables are not what they should be; empty if in nothing."""
        differences = []
        if not reading.has_its_rows:
            differences.append("its table has other rows than its members give")
        if reading.epoch != self.membership.epoch:
            differences.append(f"its table is of epoch {reading.epoch}, not {self.membership.epoch}")
        macs = frozenset(entry.mac for entry in self.neighbours.entries.values())
        if reading.macs is not None and reading.macs != macs and not self.is_learning:
            differences.append("its neighbours are not those that are known")
        if not reading.is_set_up:
            is_active = name == self.membership.active
            differences.append(f"its kernel {'lacks' if is_active else 'has'} the router's addresses")
        return "; ".join(differences)

    @property
    def is_learning(self) -> bool:
        """Whether the process has just begun, so that what it does not know may be right."""
        return self._learns_rounds > 0

    def differences_of(self, lines: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the lines that a back-end router's tables lack, and those that they should not have."""
        present, expected = frozenset(lines), self.expected_lines()
        return tuple(sorted(expected - present)), tuple(sorted(present - expected))

    def _read_router(self, name: str, lines: Iterable[str] | None) -> Iterator[Action]:
        watch = self.members[name]
        if lines is None:
            return
        lines = frozenset(lines)
        if "link b0 down" in lines:  # a dead machine, which verdicts are about
            return
        missing, extra = self.differences_of(lines)
        if self.is_learning:
            for line in extra:
                if line.startswith("neighbour "):
                    yield from self.neighbours.want(line.split()[1], self._now_s)
            extra = tuple(line for line in extra if not line.startswith("neighbour "))
        if missing or extra:
            watch.differences += 1
            words = [f"lacks {_some(missing)}"] if missing else []
            words += [f"should not have {_some(extra)}"] if extra else []
            if watch.differences in {1, _DIFFERENCES}:
                yield Event(name, "differs", "; ".join(words))
            yield Repair(name, missing, extra)
        elif watch.differences:
            watch.differences = 0
            yield Event(name, "repaired", "its tables are as they should be")

    # ------------------------------------------------------------------ membership

    def publish(self) -> list[Action]:
        """Put the table of the present members in force, as a new epoch."""
        self.membership.epoch += 1
        return [Store(), self.publication()]

    def publication(self, balancer: str = "") -> Publish:
        """Return the action that puts the table of the present epoch in force; ``balancer``: only in this one."""
        return Publish(balancer, self.membership.epoch, tuple(self.membership.weights()))

    def republication(self, balancer: str) -> list[Action]:
        """Return the actions that put the present epoch's table in force again in one load balancer.

        A member that drains keeps its rows: they are those of the table before, which is set again as well. The present
        table comes last, so that the next audit sees whether all this was done.
        """
        actions: list[Action] = []
        for member in self.membership.members.values():
            if not self._is_draining(member, self._now_s):
                continue
            # No other change comes while a member drains, so the epoch before is this table with the member.
            before = tuple((m.number, m.weight) for m in self.membership.members.values() if m.takes or m is member)
            left_s = member.drains_until_s - self._now_s
            actions.append(Publish(balancer, self.membership.epoch - 1, before))
            actions.append(Drain(member.number, member.drain_idle_s, left_s, balancer))
            self.members[member.name].sent_s = self._now_s
        return [*actions, self.publication(balancer)]

    def _is_draining(self, member: Member, now_s: float) -> bool:
        return not member.takes and member.drains_until_s > now_s and member.name not in self._drained

    def drain(self, name: str, *, idle_s: float, deadline_s: float, now_s: float) -> Iterator[Action]:
        """Give a member no new flows; it keeps rows until they are idle for ``idle_s`` or the deadline passes.

        Each action is to be carried out before the next is taken: the first table is put in force with the member.
        """
        member = self.member(name)
        self.refuse_while_draining(now_s, but=name)
        self._refuse_the_last(member)
        return self._drain(member, idle_s, deadline_s, now_s)

    def _drain(self, member: Member, idle_s: float, deadline_s: float, now_s: float) -> Iterator[Action]:
        if not member.takes and not self._is_draining(member, now_s):
            yield Event(member.name, "drained", "it has no rows")
            return
        had = member.takes
        if had:
            # First both tables become equal, so that rows that moved earlier stay where they are.
            yield from self.publish()
        yield Drain(member.number, idle_s, deadline_s)
        member.takes, member.drains_until_s, member.drain_idle_s = False, now_s + deadline_s, idle_s
        self.members[member.name].sent_s = now_s
        self._drained.discard(member.name)
        # Where it drains already, the table before has its rows: another publication would take them.
        yield from self.publish() if had else [Store()]
        yield Event(member.name, "drains", f"until {deadline_s:g} s from now at the latest")

    def take(self, name: str, *, weight: float | None, now_s: float) -> list[Action]:
        """Give a member flows, which is new, drained or drains."""
        member = self.member(name)
        self.refuse_while_draining(now_s, but=name)
        if member.takes:
            raise QuantityProblem(name, f"{name} is a member already")
        member.takes, member.drains_until_s = True, 0.0
        if weight is not None:
            member.weight = weight
        return [*self.publish(), Event(name, "takes flows", f"weight {member.weight:g}")]

    def admit(self, member: Member, now_s: float) -> list[Action]:
        """Take a new member in, which has no flows yet."""
        self.membership.members[member.name] = member
        self.members[member.name] = MemberWatch(seen_s=now_s)
        for balancer in self.balancers:
            self._silent.pop((balancer, member.number), None)
        return [Store(), *self._judged(member.name, member.number)]

    def dismiss(self, name: str, now_s: float) -> list[Action]:
        """Give a member's flows to others at once."""
        member = self.member(name)
        self.refuse_while_draining(now_s, but=name)
        if not member.takes:
            return []
        self._refuse_the_last(member)
        member.takes = False
        return self.publish()

    def forget(self, name: str) -> list[Action]:
        """Remove a member that has no flows."""
        del self.membership.members[name], self.members[name]
        return [Store(), Event(name, "removed")]

    def set_weight(self, name: str, weight: float, now_s: float) -> list[Action]:
        """Set the weight of a member."""
        self.refuse_while_draining(now_s)
        self.member(name).weight = weight
        return [*self.publish(), Event(name, "weighs", f"{weight:g}")]

    def member(self, name: str) -> Member:
        """Return a member.

        Raises QuantityProblem: there is none of this name.
        """
        member = self.membership.members.get(name)
        if member is None:
            elements = ", ".join([*self.membership.members, *self.balancers])
            raise QuantityProblem(name, f"there is no element {name!r}; there are: {elements}")
        return member

    def refuse_while_draining(self, now_s: float, but: str = "") -> None:
        """Raise QuantityProblem if another member drains: there are only two tables."""
        for member in self.membership.members.values():
            if member.drains_until_s > now_s and member.name != but:
                left_s = member.drains_until_s - now_s
                raise QuantityProblem(
                    member.name, f"{member.name} drains for {left_s:.0f} s more: wait, or remove it first"
                )

    def _refuse_the_last(self, member: Member) -> None:
        if not [other for other in self.membership.members.values() if other.takes and other is not member]:
            raise QuantityProblem(member.name, f"{member.name} is the last back-end router that takes flows")

    def _end_drains(self, now_s: float) -> Iterator[Action]:
        for name, member in self.membership.members.items():
            # Without a frame to it for so long, none of its rows has had one.
            is_idle = now_s - self.members[name].sent_s > member.drain_idle_s + PROBE_EVERY_S
            if member.takes or (member.drains_until_s > now_s and not is_idle):
                self._drained.discard(name)
            elif member.drains_until_s and name not in self._drained:
                self._drained.add(name)
                member.drains_until_s = min(member.drains_until_s, now_s)
                yield Store()
                yield Event(name, "drained")

    def restored(self, name: str, now_s: float) -> list[Action]:
        """Go on after an element was set up again; a load balancer's role and tables are set anew."""
        self._now_s = now_s
        if name not in self.balancers:
            return [Audit()]
        self.balancers[name].called = False
        self._forget_silent(name)
        verdicts = [
            action
            for member_name, member in self.membership.members.items()
            for action in self._judged(member_name, member.number)
        ]
        if name == self.membership.active:
            return [*self._activate(name, now_s), RepairBalancer(name), *verdicts]
        return [RepairBalancer(name), *verdicts]

    # ------------------------------------------------------------------ for people

    def state_of(self, name: str, now_s: float) -> str:
        """Return the state of a member or a load balancer in a word or two, from evidence."""
        if name in self.balancers:
            return self._state_of_balancer(name)
        member, watch = self.membership.members[name], self.members[name]
        if watch.missed >= SILENT_ROUNDS and not self._is_any_balancer_seen():
            return "not seen"
        if watch.is_dead or watch.is_silent:
            return "dead"
        if watch.lacks or watch.differences >= _DIFFERENCES:
            return "differs"
        if member.takes:
            return "active"
        return "draining" if member.drains_until_s > now_s else "drained"

    # ------------------------------------------------------------------ simulated idle time

    @property
    def is_idle(self) -> bool:
        """Whether every element is well, every neighbour is confirmed, and nothing changes until somebody does."""
        return (
            self.neighbours.is_settled
            and not any(
                watch.missed or watch.is_silent or watch.is_dead or watch.lacks or watch.differences
                for watch in self.members.values()
            )
            and not any(watch.missed or watch.down or any(watch.unanswered) for watch in self.balancers.values())
            and all(
                member.takes or not member.drains_until_s or name in self._drained
                for name, member in self.membership.members.items()
            )
        )

    def pass_idle(self, until_s: float) -> None:
        """Let time pass in which every element answers; only where :attr:`is_idle`, and as ticking would leave it."""
        rounds = self._rounds("probe", PROBE_EVERY_S, until_s)
        self._learns_rounds = max(self._learns_rounds - rounds, 0)
        for watch in self.members.values():
            watch.seen_s = until_s
            watch.in_a_row += rounds
        for balancer in self.balancers.values():
            balancer.seen_s = balancer.heard_s = balancer.sign_s = until_s
        intervals_s = {"probe": PROBE_EVERY_S, "call": CALL_EVERY_S, "paths": PATHS_EVERY_S, "audit": AUDIT_EVERY_S}
        for task, interval_s in (intervals_s | {"announce": ANNOUNCE_EVERY_S}).items():
            self._due[task] += self._rounds(task, interval_s, until_s) * interval_s
        self.neighbours.pass_idle(until_s)

    def _rounds(self, task: str, interval_s: float, until_s: float) -> int:
        return max(math.ceil((until_s - self._due[task]) / interval_s - 1e-6), 0)


def _some(lines: Sequence[str]) -> str:
    rest = len(lines) - _TOLD_DIFFERENCES
    return "; ".join(lines[:_TOLD_DIFFERENCES]) + (f" and {rest} more" if rest > 0 else "")
