"""What must hold in the world around the protocol's machine, each rule with its bound."""

from __future__ import annotations

from routecast.multistage._detection import CALL_EVERY_S, MISSED_CALLS
from routecast.multistage._membership import Membership
from routecast.multistage.protocol.machine import Machine
from routecast.multistage.protocol.neighbours import (
    BROADCASTS,
    GONE_S,
    MAX_ASKED,
    MAX_ENTRIES,
    MOVE_S,
    REACHABLE_S,
    UNICASTS,
)
from routecast.multistage.protocol.schedule import AUDIT_EVERY_S, PATHS_EVERY_S, PROBE_EVERY_S
from routecast.multistage.protocol.watch import (
    ANSWERS_TO_COME_BACK,
    DEAD_ROUNDS,
    PATH_CHANCE,
    PATH_ROUNDS,
    SILENT_ROUNDS,
)
from routecast.multistage.tests.protocol_surroundings import (
    ALONE_S,
    HOLD_S,
    SILENCE_S,
    SLACK_S,
    TICK_S,
    Body,
    Plane,
    Surroundings,
)

__all__ = ["BOUNDS_S", "Checks", "path_bound_s"]

BOUNDS_S = {
    "no live element": ALONE_S + SILENCE_S + SLACK_S,
    "no live element, no traffic": (SILENT_ROUNDS + 1) * PROBE_EVERY_S + SLACK_S,
    "no balancer works": (MISSED_CALLS + 2) * CALL_EVERY_S + SLACK_S,
    "network cut off": 1.0 + 2 * (MISSED_CALLS + 2) * CALL_EVERY_S + SLACK_S,
    "two tables": AUDIT_EVERY_S + SLACK_S,
    "two balancers work": AUDIT_EVERY_S + SLACK_S,
    "switch": 2 * PROBE_EVERY_S + SLACK_S,
    "switch behind a wire that was cut": REACHABLE_S + 1.0 + SLACK_S,
    "silent move": MOVE_S + (UNICASTS + 1) * TICK_S + SLACK_S,
    "announced move": 1.0,
    "gone": GONE_S + (UNICASTS + BROADCASTS) * TICK_S + SLACK_S,
    "unknown": 1.0 + SLACK_S,
    "member death": (SILENT_ROUNDS + 1) * PROBE_EVERY_S + SLACK_S,
    "balancer death": (DEAD_ROUNDS + 1) * PROBE_EVERY_S + SLACK_S,
    "member alive": (ANSWERS_TO_COME_BACK + 1) * PROBE_EVERY_S + HOLD_S + SLACK_S,
    "balancer alive": 2 * PROBE_EVERY_S + SLACK_S,
    "flags": max((SILENT_ROUNDS + 1) * PROBE_EVERY_S, AUDIT_EVERY_S) + SLACK_S,
    "flags back": AUDIT_EVERY_S + (ANSWERS_TO_COME_BACK + 1) * PROBE_EVERY_S + HOLD_S + SLACK_S,
    "tables of neighbours": AUDIT_EVERY_S + SLACK_S,
    "own address not defended": 1.0 + SLACK_S,
    "not mended": 2 * AUDIT_EVERY_S + SLACK_S,
    "drain ends early": AUDIT_EVERY_S + SLACK_S,
    "path back": 2 * PATHS_EVERY_S + 2 * AUDIT_EVERY_S + SLACK_S,
}
"""Longest time for which each thing that must not be may be, s of a running process."""


def path_bound_s(paths: int) -> float:
    """Return how long a member that lacks one of so many paths, and returns all frames on the others, may get flows."""
    rounds = PATH_ROUNDS
    while (1.0 / (rounds * (paths - 1) + 2)) ** rounds > PATH_CHANCE:
        rounds += 1
    return (rounds + 2) * PATHS_EVERY_S + SLACK_S


class Checks(Surroundings):
    """Surroundings that are checked: what must not be is a violation after the time that it may last."""

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
                ends = member.number not in dict(plane.before) or until_s < member.drains_until_s - SLACK_S
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
                is_calm = self._ran_s(self.upset_s.get(other.name, -1e9)) > AUDIT_EVERY_S + SLACK_S
                is_kept = plane is not None and other is not plane and not other.fault and is_calm
                is_kept = is_kept and plane is not None and plane.name == machine.membership.active
                is_kept = is_kept and plane is not None and plane.members[number].is_dead and not other.is_out(number)
                self.must_end("verdict kept from the standby", whom, is_kept, SLACK_S)
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
            self.must_end("neighbours differ without a fault", plane.name, is_off and is_calm, SLACK_S)
        for body in self.bodies.values():
            is_off = body.fault != "link" and not body.is_stubborn and not self._holds(body, entries)
            self.must_end("tables of neighbours", body.name, is_off, BOUNDS_S["tables of neighbours"])
            is_calm = not body.fault and self._ran_s(self.upset_s.get(body.name, -1e9)) > 2 * AUDIT_EVERY_S + SLACK_S
            self.must_end("neighbours differ without a fault", body.name, is_off and is_calm, SLACK_S)
