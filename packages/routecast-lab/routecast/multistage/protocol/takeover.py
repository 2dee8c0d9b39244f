"""Which load balancer is the active one: its calls, its state, and when a standby takes over."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import TYPE_CHECKING

from routecast.multistage._detection import CALL_EVERY_S, MISSED_CALLS
from routecast.multistage.protocol.actions import Action, Activate, Call, Event, Probe, Store
from routecast.multistage.protocol.neighbours import NeighbourTable
from routecast.multistage.protocol.schedule import Schedule
from routecast.multistage.protocol.verdicts import Verdicts
from routecast.multistage.protocol.watch import DEAD_ROUNDS, BalancerView, BalancerWatch

if TYPE_CHECKING:
    from routecast.multistage._membership import Membership

__all__ = ["Takeover"]

_ASKS_MEMBERS_AFTER = 2
"""Calls without an answer after which a standby asks the members whether it could take over, and the active one is to
ask neighbours on networks where it does not answer."""
_HEARD_WITHIN_S = 3 * CALL_EVERY_S
_LOOKS_AGAIN_S = 0.5
_FIRST_HOLD_S, _LONGEST_HOLD_S = 1.0, 16.0
"""Time for which a load balancer that took over for one network keeps it; doubled with each takeover back."""


class Takeover:
    """The watches of the load balancers, and the takeover by a standby.

    The network at place n of the neighbours' networks is at interface n + 1; interface 0 is that to the members.
    """

    def __init__(
        self,
        balancers: tuple[str, ...],
        membership: Membership,
        neighbours: NeighbourTable,
        verdicts: Verdicts,
        schedule: Schedule,
    ) -> None:
        self.balancers = {name: BalancerWatch() for name in balancers}
        self._membership, self._neighbours = membership, neighbours
        self._verdicts, self._schedule = verdicts, schedule
        self._heard_on: dict[tuple[str, int], float] = {}
        self._hold_s: dict[int, float] = {}
        self._hold_until_s: dict[int, float] = {}
        self._cut_off: set[tuple[str, int]] = set()

    def start(self, now_s: float) -> None:
        """Begin; the first load balancer is the active one where the membership names none."""
        for watch in self.balancers.values():
            watch.seen_s = now_s
        if self._membership.active not in self.balancers:
            self._membership.active = next(iter(self.balancers))

    def is_all_well(self) -> bool:
        """Return whether every load balancer answers and has all its links."""
        return not any(watch.missed or watch.down or any(watch.unanswered) for watch in self.balancers.values())

    def pass_idle(self, until_s: float) -> None:
        """Let time pass in which every load balancer answers."""
        for watch in self.balancers.values():
            watch.seen_s = watch.heard_s = watch.sign_s = until_s

    def judge(self, now_s: float) -> Iterator[Action]:
        """Judge the load balancers in the round that ends now."""
        for watch in self.balancers.values():
            if watch.sign_s > watch.seen_s:
                watch.seen_s, watch.missed = watch.sign_s, 0
            else:
                watch.missed += 1
        for name, watch in self.balancers.items():
            before, watch.state = watch.state, self.state_of(name)
            if before in {"dead", "not seen"} and watch.state == "active":
                self._schedule.announce_often(now_s)  # what it announced meanwhile nobody heard
            if before not in {watch.state, "new"}:
                yield Event(name, watch.state, self._why(watch))

    def state_of(self, name: str) -> str:
        """Return the state of a load balancer in a word or two, from evidence."""
        watch = self.balancers[name]
        if watch.down:
            return "dead"
        if watch.missed < DEAD_ROUNDS:
            return "active" if name == self._membership.active else "standby"
        # Somebody who is alive would have seen it.
        others = any(
            other is not watch and other.missed < DEAD_ROUNDS and not other.down for other in self.balancers.values()
        )
        return "dead" if others or self._verdicts.is_anybody_heard() else "not seen"

    def is_any_seen(self) -> bool:
        """Return whether a load balancer gives signs and has all its links."""
        return any(watch.missed < DEAD_ROUNDS and not watch.down for watch in self.balancers.values())

    @staticmethod
    def _why(watch: BalancerWatch) -> str:
        if watch.down:
            return f"{', '.join(watch.down)} down"
        return f"no sign in {watch.missed} rounds" if watch.missed >= DEAD_ROUNDS else ""

    def call(self, views: Mapping[str, BalancerView], now_s: float) -> Iterator[Action]:
        """Let each standby call the active load balancer, or take over where its calls had no answer."""
        active = self._membership.active
        numbers = tuple(member.number for member in self._membership.members.values())
        for name, watch in self.balancers.items():
            if name == active or (view := views.get(name)) is None:
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
                    yield from self._neighbours.ask_some(place - 1, now_s)
            yield Call(name, active)

    def hear_on(self, balancer: str, segment: int, now_s: float) -> None:
        """Note that a load balancer got a neighbour's frame on a network."""
        self._heard_on[balancer, segment] = now_s

    def _where_it_is_needed(self, name: str, watch: BalancerWatch, now_s: float) -> Generator[Action, None, list[int]]:
        """Return the interfaces for which a standby is to take over: on which its calls have no answer.

        On a single network either of the two may be cut off. It is the standby if the active one still gets neighbours'
        frames there, and it does not matter where no neighbour is known and the standby gets no frame either.
        """
        active = self._membership.active
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
                    network = self._neighbours.networks.names[place - 1]
                    yield Event(name, "hears nothing", f"on {network}, where {active} hears neighbours")
                self._hold_until_s[place] = now_s + _LOOKS_AGAIN_S
                continue
            hears_s = self._heard_on.get((name, place - 1), float("-inf"))
            if self._neighbours.is_any_on(place - 1) or now_s - hears_s <= MISSED_CALLS * CALL_EVERY_S:
                needed.append(place)
        for place in needed:
            hold_s = self._hold_s[place] = min(2 * self._hold_s.get(place, _FIRST_HOLD_S / 2), _LONGEST_HOLD_S)
            self._hold_until_s[place] = now_s + hold_s
        return needed

    def _can_take_over(self, watch: BalancerWatch, now_s: float) -> bool:
        return not watch.down and now_s - watch.heard_s <= 1.5 * CALL_EVERY_S

    def _take_over(self, name: str, now_s: float) -> Iterator[Action]:
        self._verdicts.keep()  # its own program has none yet
        yield from self.activate(name, now_s)
        yield from self._verdicts.hand_over_all()

    def activate(self, name: str, now_s: float) -> Iterator[Action]:
        """Let a load balancer be the active one."""
        self._membership.active = name
        self._schedule.announce_often(now_s)
        for watch in self.balancers.values():
            watch.called, watch.unanswered = False, []
        # The data path comes first: it only needs switches that know the router's port.
        yield Activate(name)
        yield Store()
