"""Verdicts on members, and which load balancers know them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from routecast.multistage.protocol.actions import Action, Event, SetSilent
from routecast.multistage.protocol.watch import ANSWERS_TO_COME_BACK, SILENT_ROUNDS, BalancerView, MemberWatch

if TYPE_CHECKING:
    from routecast.multistage._membership import Membership

__all__ = ["DIFFERENCES", "Verdicts"]

DIFFERENCES = 2
"""Audits in a row with differences that a repair did not mend, until a member gets no flows."""


class Verdicts:
    """The members' watches, and the verdicts that the load balancers' programs have.

    ``silent``: by load balancer and member's number, whether its program was told that the member gets no flows;
    ``is_any_dead``: whether the active load balancer's program calls a member dead.
    """

    def __init__(self, membership: Membership, balancers: Iterable[str]) -> None:
        self._membership = membership
        self._balancers = tuple(balancers)
        self.members: dict[str, MemberWatch] = {}
        self.silent: dict[tuple[str, int], bool] = {}
        self.is_any_dead = False
        self._is_blind = False

    def admit(self, name: str, number: int, now_s: float) -> None:
        """Watch a new member."""
        self.members[name] = MemberWatch(seen_s=now_s)
        for balancer in self._balancers:
            self.silent.pop((balancer, number), None)

    def is_anybody_heard(self) -> bool:
        """Return whether a member answers."""
        return any(member.missed < SILENT_ROUNDS for member in self.members.values())

    def is_all_well(self) -> bool:
        """Return whether every member answers, lacks nothing and is as it should be."""
        return not any(
            watch.missed or watch.is_silent or watch.is_dead or watch.lacks or watch.differences
            for watch in self.members.values()
        )

    def dead_numbers(self) -> tuple[int, ...]:
        """Return the numbers of the members that the active load balancer's program calls dead."""
        members = self._membership.members.items()
        return tuple(member.number for name, member in members if self.members[name].is_dead)

    def observe(self, views: Mapping[str, BalancerView]) -> Iterator[Action]:
        """Tell of verdicts of the active load balancer's program, and hand them to the others."""
        view = views.get(self._membership.active)
        if view is None:
            return
        self.is_any_dead = False
        for name, member in self._membership.members.items():
            counted, watch = view.members.get(member.number), self.members[name]
            if counted is None:
                continue
            self.is_any_dead |= counted.is_dead
            if counted.is_dead != watch.is_dead:
                watch.is_dead = counted.is_dead
                if counted.is_dead:
                    yield from self._died(name, watch, f"data path, {counted.unanswered} unanswered")
                elif not watch.is_silent:
                    yield Event(name, "alive", "its own frames come back")
                yield from self.hand_over(name, member.number)

    @staticmethod
    def _died(name: str, watch: MemberWatch, why: str) -> Iterator[Action]:
        watch.path_is_out = True
        if not (watch.is_dead and watch.is_silent):  # not the second verdict on one death
            watch.silences += watch.is_silent
            yield Event(name, "dead", why)

    def judge(self, views: Mapping[str, BalancerView], now_s: float, *, is_blind: bool) -> Iterator[Action]:
        """Judge the round of own frames that ends now; ``is_blind``: no load balancer is seen that would hear them."""
        was_blind, self._is_blind = self._is_blind, is_blind
        for name, member in self._membership.members.items():
            watch = self.members[name]
            counted = {b: view.members[member.number] for b, view in views.items() if member.number in view.members}
            watch.hear(counted, now_s)
            if is_blind:  # nobody is left who would hear it
                continue
            if was_blind and watch.missed:
                watch.missed = 0
            if not watch.is_silent and watch.missed >= SILENT_ROUNDS:
                watch.is_silent = True
                yield from self._died(name, watch, f"no answer to {watch.missed} own frames")
                yield from self.hand_over(name, member.number)
            elif watch.is_silent and watch.in_a_row >= ANSWERS_TO_COME_BACK:
                watch.is_silent = False
                watch.returns += 1
                if not watch.is_dead:
                    yield Event(name, "alive", f"answered {watch.in_a_row} own frames")
                yield from self.hand_over(name, member.number)

    def hand_over(self, name: str, number: int) -> Iterator[Action]:
        """Hand verdicts on a member to the load balancers whose programs do not know them yet."""
        watch = self.members[name]
        # One that lacks something is better than none.
        is_out = watch.is_silent or (
            self.is_partly_dead(watch)
            and any(
                other is not watch
                and self._membership.members[other_name].takes
                and not (other.is_silent or other.is_dead or self.is_partly_dead(other))
                for other_name, other in self.members.items()
            )
        )
        for balancer in self._balancers:
            # A standby has the verdicts of the active load balancer.
            wanted = is_out or (watch.is_dead and balancer != self._membership.active)
            if self.silent.get((balancer, number)) != wanted:  # none: an earlier process may have set it
                self.silent[balancer, number] = wanted
                yield SetSilent(number, wanted, balancer)

    def hand_over_all(self) -> Iterator[Action]:
        """Hand the verdicts on all members to the load balancers whose programs do not know them yet."""
        for name, member in self._membership.members.items():
            yield from self.hand_over(name, member.number)

    @staticmethod
    def is_partly_dead(watch: MemberWatch) -> bool:
        """Return whether a member lacks paths, or cannot be made as it should be."""
        return bool(watch.lacks) or watch.differences >= DIFFERENCES

    def keep(self) -> None:
        """Let the verdicts of a program that is no longer asked be those of this process."""
        for watch in self.members.values():
            watch.is_silent |= watch.is_dead and watch.in_a_row < ANSWERS_TO_COME_BACK
            watch.is_dead = False

    def forget_balancer(self, balancer: str) -> None:
        """Do not rely on the verdicts that a load balancer was given: it may have begun anew."""
        for key in [key for key in self.silent if key[0] == balancer]:
            del self.silent[key]
