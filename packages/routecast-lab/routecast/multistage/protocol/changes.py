"""Changes of the membership: which members get flows, and the epochs of their table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from routecast.errors import QuantityProblem
from routecast.multistage.protocol.actions import Action, Drain, Event, Publish, Store
from routecast.multistage.protocol.schedule import PROBE_EVERY_S
from routecast.multistage.protocol.verdicts import Verdicts

if TYPE_CHECKING:
    from routecast.multistage._membership import Member, Membership

__all__ = ["MembershipChanges"]


class MembershipChanges:
    """The changes that an operator asks for, each of which is stored before it takes effect."""

    def __init__(self, membership: Membership, verdicts: Verdicts, balancers: tuple[str, ...]) -> None:
        self.membership = membership
        self._verdicts, self._balancers = verdicts, balancers
        self._drained: set[str] = set()

    def publish(self) -> list[Action]:
        """Put the table of the present members in force, as a new epoch."""
        self.membership.epoch += 1
        return [Store(), self.publication()]

    def publication(self, balancer: str = "") -> Publish:
        """Return the action that puts the table of the present epoch in force; ``balancer``: only in this one."""
        return Publish(balancer, self.membership.epoch, tuple(self.membership.weights()))

    def republication(self, balancer: str, now_s: float) -> list[Action]:
        """Return the actions that put the present epoch's table in force again in one load balancer.

        A member that drains keeps its rows: they are those of the table before, which is set again as well. The present
        table comes last, so that the next audit sees whether all this was done.
        """
        actions: list[Action] = []
        for member in self.membership.members.values():
            if not self._is_draining(member, now_s):
                continue
            # No other change comes while a member drains, so the epoch before is this table with the member.
            before = tuple((m.number, m.weight) for m in self.membership.members.values() if m.takes or m is member)
            left_s = member.drains_until_s - now_s
            actions.append(Publish(balancer, self.membership.epoch - 1, before))
            actions.append(Drain(member.number, member.drain_idle_s, left_s, balancer))
            self._verdicts.members[member.name].sent_s = now_s
        return [*actions, self.publication(balancer)]

    def drains_again(self, balancer: str, now_s: float) -> list[Action]:
        """Return the actions that set the deadlines of draining members again in one load balancer."""
        return [
            Drain(member.number, member.drain_idle_s, member.drains_until_s - now_s, balancer)
            for member in self.membership.members.values()
            if self._is_draining(member, now_s)
        ]

    def is_settled(self) -> bool:
        """Return whether no member drains."""
        return all(
            member.takes or not member.drains_until_s or name in self._drained
            for name, member in self.membership.members.items()
        )

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
        self._verdicts.members[member.name].sent_s = now_s
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
        self._verdicts.admit(member.name, member.number, now_s)
        return [Store(), *self._verdicts.hand_over(member.name, member.number)]

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
        del self.membership.members[name], self._verdicts.members[name]
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
            elements = ", ".join([*self.membership.members, *self._balancers])
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

    def end_drains(self, now_s: float) -> Iterator[Action]:
        """End the drains whose deadline has passed, or whose rows are idle."""
        for name, member in self.membership.members.items():
            # Without a frame to it for so long, none of its rows has had one.
            is_idle = now_s - self._verdicts.members[name].sent_s > member.drain_idle_s + PROBE_EVERY_S
            if member.takes or (member.drains_until_s > now_s and not is_idle):
                self._drained.discard(name)
            elif member.drains_until_s and name not in self._drained:
                self._drained.add(name)
                member.drains_until_s = min(member.drains_until_s, now_s)
                yield Store()
                yield Event(name, "drained")
