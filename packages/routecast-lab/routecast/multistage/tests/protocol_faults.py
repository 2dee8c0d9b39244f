"""What goes wrong in the world around the protocol's machine: failures, attackers, operators, the clock."""

from __future__ import annotations

from collections.abc import Callable

from routecast.multistage.protocol.machine import Machine
from routecast.multistage.protocol.neighbours import GONE_S
from routecast.multistage.protocol.schedule import PATHS_EVERY_S
from routecast.multistage.tests.protocol_surroundings import QUEUE_FRAMES, TICK_S, Plane, Surroundings

__all__ = ["Faults"]


class Faults(Surroundings):
    """Surroundings in which faults happen, drawn in bursts or named."""

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
                if len(self.lookups) < QUEUE_FRAMES * 2:
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


_FAULTS: dict[str, Callable[[Faults], None]] = {
    **{f"member {kind}": lambda w, k=kind: w.fail_member(k) for kind in ("link", "hang", "one direction", "loss")},  # type: ignore[misc]
    "member tables": Faults.fail_routes,
    "member path": Faults.block_path,
    "member while a balancer is away": Faults.fail_member_meanwhile,
    **{f"balancer {kind}": lambda w, k=kind: w.fail_balancer(k) for kind in ("link", "hang", "gone", "cut")},  # type: ignore[misc]
    "both balancers": Faults.fail_both,
    "balancer tables": Faults.change_plane,
    "lost publish": Faults.lose_publish,
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
    "flood of look-ups": Faults.flood,
    "process killed": Faults.kill,
    "process stalls": Faults.stall,
    "clock steps": Faults.step_clock,
    "noise": Faults.make_noise,
    **{f"operator {kind}": lambda w, k=kind: w.change_members(k) for kind in ("weight", "drain", "dismiss", "take")},  # type: ignore[misc]
}
_NAMES = tuple(_FAULTS)
