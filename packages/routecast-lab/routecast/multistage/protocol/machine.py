"""The machine of states: neighbours, membership, verdicts, takeover, epochs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from routecast.multistage.protocol.actions import Action, Announce, Audit, Probe, RepairBalancer
from routecast.multistage.protocol.audit import BalancerReading, TableAudit
from routecast.multistage.protocol.changes import MembershipChanges
from routecast.multistage.protocol.neighbours import NeighbourTable, Networks
from routecast.multistage.protocol.path_probes import PathProbes
from routecast.multistage.protocol.schedule import Schedule
from routecast.multistage.protocol.takeover import Takeover
from routecast.multistage.protocol.verdicts import Verdicts
from routecast.multistage.protocol.watch import SILENT_ROUNDS, BalancerView, MemberWatch

if TYPE_CHECKING:
    from routecast.multistage._membership import Membership

__all__ = ["Machine", "MachineSettings"]


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


class Machine:
    """The protocol of one router.

    The caller hands in what it sees (:meth:`observe`, :meth:`read`, the neighbours' frames and look-ups by
    :attr:`neighbours`, an operator's changes by :attr:`changes`), calls :meth:`tick` when :attr:`next_s` has come, and
    carries out the actions that each returns.
    """

    def __init__(self, settings: MachineSettings, membership: Membership) -> None:
        self.settings = settings
        self._membership = membership
        self.neighbours = NeighbourTable(settings.networks, own_macs=settings.own_macs, static=settings.static)
        self.schedule = Schedule()
        self.verdicts = Verdicts(membership, settings.balancers)
        self.takeover = Takeover(settings.balancers, membership, self.neighbours, self.verdicts, self.schedule)
        self.paths = PathProbes(settings.routes, membership, self.neighbours, self.verdicts)
        self.audit = TableAudit(settings.configured, membership, self.neighbours, self.verdicts)
        self.changes = MembershipChanges(membership, self.verdicts, settings.balancers)
        self.members = self.verdicts.members
        self.balancers = self.takeover.balancers
        self._views: Mapping[str, BalancerView] = {}
        self._has_seen = False
        self._now_s = 0.0

    @property
    def membership(self) -> Membership:
        """The one membership, which all parts share: it changes in place (:meth:`Membership.become`)."""
        return self._membership

    # ------------------------------------------------------------------ beginning

    def start(self, now_s: float) -> list[Action]:
        """Begin, or go on after an earlier process: put the table in force, take the role, look the hosts up."""
        for name in self._membership.members:
            self.members[name] = MemberWatch(seen_s=now_s)
        self.takeover.start(now_s)
        self.schedule.start(now_s)
        self.audit.start()
        self._now_s = now_s
        actions = [*self.takeover.activate(self._membership.active, now_s), *self.verdicts.hand_over_all()]
        # Whether the tables are those of the epoch, the first audit says.
        return [*actions, *self.neighbours.start(self.settings.wanted, now_s)]

    @property
    def next_s(self) -> float:
        """When :meth:`tick` has something to do next."""
        return min(self.schedule.next_s, self.neighbours.next_s)

    @property
    def is_learning(self) -> bool:
        """Whether the process has just begun, so that what it does not know may be right."""
        return self.audit.is_learning

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
                self.verdicts.forget_balancer(name)
                if name == self._membership.active:  # its program may have begun anew, without verdicts
                    self.verdicts.keep()
                if had_seen:  # it may have missed another deadline
                    actions += self.changes.drains_again(name, now_s)
            if any(count != watch.heard.get(number, 0) for number, count in heard.items()):
                watch.heard_s = watch.sign_s = now_s
            watch.heard = heard
            if view.answers != watch.heard_answers:
                watch.heard_answers = view.answers
                if any(view.answers):
                    # The active load balancer answered, and this one heard it.
                    watch.sign_s = self.balancers[self._membership.active].sign_s = now_s
            watch.down = view.down
        if back:
            actions += self.verdicts.hand_over_all()
        actions += self.verdicts.observe(views)
        return actions

    def read(
        self, routers: Mapping[str, Iterable[str] | None], balancers: Mapping[str, BalancerReading | None], now_s: float
    ) -> list[Action]:
        """Take in the tables of all elements; None where they cannot be read."""
        self._now_s = now_s
        actions: list[Action] = []
        for name, lines in routers.items():
            if name in self._membership.members:
                actions += self.audit.read_router(name, lines, now_s)
        for name, reading in balancers.items():
            actions += self.audit.read_balancer(name, reading)
        return [*actions, *self.verdicts.hand_over_all()]

    # ------------------------------------------------------------------ time

    def tick(self, now_s: float) -> list[Action]:
        """Do what is due."""
        self._now_s = now_s
        actions: list[Action] = []
        if self.schedule.is_due("probe", now_s):
            if self.audit.pass_round():  # what is unknown now goes
                self.schedule.due_s["audit"] = now_s
            actions += self._judge(now_s)
            actions += self.changes.end_drains(now_s)
            numbers = tuple(member.number for member in self._membership.members.values())
            actions += [Probe(name, numbers) for name in self.balancers]
        elif self.verdicts.is_any_dead:
            actions.append(Probe(self._membership.active, self.verdicts.dead_numbers()))
        if len(self.balancers) > 1 and self.schedule.is_due("call", now_s):
            actions += self.takeover.call(self._views, now_s)
        if self.schedule.is_due("paths", now_s):
            actions += self.paths.judge(self._views)
        if self.schedule.is_due("audit", now_s):
            actions.append(Audit())
        if self.schedule.is_due("announce", now_s):
            actions.append(Announce(is_inside_only=not self.schedule.announces_often(now_s)))
        actions += self.neighbours.tick(now_s)
        return actions

    def _judge(self, now_s: float) -> Iterator[Action]:
        """Judge the round of own frames that ends now."""
        if self._has_seen:
            yield from self.verdicts.judge(self._views, now_s, is_blind=not self.takeover.is_any_seen())
            yield from self.takeover.judge(now_s)

    # ------------------------------------------------------------------ tables and roles set anew

    def republication(self, balancer: str) -> list[Action]:
        """Return the actions that put the present epoch's table in force again in one load balancer."""
        return self.changes.republication(balancer, self._now_s)

    def restored(self, name: str, now_s: float) -> list[Action]:
        """Go on after an element was set up again; a load balancer's role and tables are set anew."""
        self._now_s = now_s
        if name not in self.balancers:
            return [Audit()]
        self.balancers[name].called = False
        self.verdicts.forget_balancer(name)
        verdicts = [*self.verdicts.hand_over_all()]
        if name == self._membership.active:
            return [*self.takeover.activate(name, now_s), RepairBalancer(name), *verdicts]
        return [RepairBalancer(name), *verdicts]

    # ------------------------------------------------------------------ for people

    def state_of(self, name: str, now_s: float) -> str:
        """Return the state of a member or a load balancer in a word or two, from evidence."""
        if name in self.balancers:
            return self.takeover.state_of(name)
        member, watch = self._membership.members[name], self.members[name]
        if watch.missed >= SILENT_ROUNDS and not self.takeover.is_any_seen():
            return "not seen"
        if watch.is_dead or watch.is_silent:
            return "dead"
        if self.verdicts.is_partly_dead(watch):
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
            and self.verdicts.is_all_well()
            and self.takeover.is_all_well()
            and self.changes.is_settled()
        )

    def pass_idle(self, until_s: float) -> None:
        """Let time pass in which every element answers; only where :attr:`is_idle`, and as ticking would leave it."""
        rounds = self.schedule.pass_idle(until_s)
        self.audit.pass_rounds(rounds)
        for watch in self.members.values():
            watch.seen_s = until_s
            watch.in_a_row += rounds
        self.takeover.pass_idle(until_s)
        self.neighbours.pass_idle(until_s)
