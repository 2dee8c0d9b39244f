"""A simulated world around the protocol's machine: planes, members, hosts, attackers, switches, a process and its disk.

One seed gives one history. Time is simulated; the world ticks as the driver does (20 ms) while anything happens, and
jumps with ``Machine.pass_idle`` where nothing does. What must hold is checked at each tick, each rule with its bound; a
bound counts the time in which the process ran, so that its stalls and its downtime extend it and nothing else does.
"""

from __future__ import annotations

import heapq

from routecast.multistage.tests.protocol_checks import Checks
from routecast.multistage.tests.protocol_faults import Faults
from routecast.multistage.tests.protocol_surroundings import TICK_S, Violation

__all__ = ["World"]


class World(Faults, Checks):
    """A router with its surroundings, from one seed; ``run`` lets time pass and returns the violations.

    ``on_event``: receives lines for people.
    """

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
