"""The hands of a router's process: its elements' programs and sockets, and how each action of the protocol is done."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from routecast.errors import EnvironmentProblem
from routecast.lab._lab import FrameLoss, MemberGate, NamespaceNetlink, TesterError
from routecast.lab.testbed import netns
from routecast.lab.testbed.tester import error_text
from routecast.multistage._balancer import Balancer
from routecast.multistage._discovery import Discovery
from routecast.multistage._disk import Disk
from routecast.multistage._layout import Layout, octets
from routecast.multistage._membership import Member
from routecast.multistage._wiring import (
    add_addresses,
    close_at_once,
    remove_addresses,
    repair_router,
    set_links,
    set_router_up,
    set_rules,
)
from routecast.multistage.protocol import actions
from routecast.multistage.protocol.audit import BalancerReading
from routecast.multistage.protocol.machine import Machine
from routecast.multistage.protocol.watch import BalancerView

__all__ = ["Elements"]

_ANNOUNCEMENTS = 3
_BETWEEN_ANNOUNCEMENTS_S = 0.002
_MAX_LOOK_UPS = 64
"""Look-ups of an element that are taken in at once; a scan waits in its socket, and is lost there."""


class Elements:
    """The open elements of a router.

    ``on_event``: receives the protocol's events.
    """

    def __init__(self, layout: Layout, disk: Disk, machine: Machine, on_event: Callable[[actions.Event], None]) -> None:
        self.layout, self.disk, self.machine = layout, disk, machine
        self.balancers: dict[str, Balancer] = {}
        self.gates: dict[str, MemberGate] = {}
        self._netlinks: dict[str, NamespaceNetlink] = {}
        self._losses: dict[str, list[FrameLoss]] = {}
        self._discovery: Discovery | None = None
        self._digests: tuple[frozenset[tuple[str, int]], str] = (frozenset(), "")
        self._on_event = on_event

    @property
    def _active(self) -> Balancer:
        return self.balancers[self.machine.membership.active]

    def open(self) -> None:
        """Open the programs of all elements, or load them; take up what an earlier process pinned.

        Raises EnvironmentProblem: the kernel refuses.
        """
        membership = self.machine.membership
        try:
            for number, name in enumerate(self.layout.balancers()):
                self.balancers[name] = Balancer(self.layout, number, membership, self.disk.pins / name)
                self._netlinks[name] = NamespaceNetlink(str(netns.FOLDER / self.layout.netns(name)))
            for member in membership.members.values():
                self.open_member(member)
            for balancer in self.balancers.values():
                for address in self.machine.settings.networks.own:
                    balancer.plane.add_own(address)
            self._discovery = Discovery(self.layout, [*self.balancers.values()])
        except TesterError as problem:
            raise EnvironmentProblem(f"the eBPF programs cannot be used: {error_text(problem)}") from problem

    def open_member(self, member: Member) -> None:
        """Open the programs of a member and tell the load balancers its number."""
        path = str(netns.FOLDER / self.layout.netns(member.name))
        self.gates[member.name] = MemberGate("b0", path, str(self.disk.pins / member.name))
        self._netlinks[member.name] = NamespaceNetlink(path)
        for balancer in self.balancers.values():
            if member.number not in {row["number"] for row in balancer.status()["members"]}:
                balancer.plane.set_member(member.number, octets(self.layout.member_mac(member.number)))
        if member.loss_out > 0.0:
            self.set_loss(member)

    def close_member(self, member: Member) -> None:
        """Close what is open of a member that is removed, and remove its programs."""
        self._clear_losses(member.name)
        for balancer in self.balancers.values():
            balancer.plane.set_member(member.number, None)
        self.gates.pop(member.name).close()
        self._netlinks.pop(member.name)

    def close(self) -> None:
        """Close everything; the programs go on as long as their pins are there."""
        losses = (loss for losses in self._losses.values() for loss in losses)
        discovery = [] if self._discovery is None else [self._discovery]
        close_at_once([*losses, *discovery, *self.gates.values(), *self.balancers.values()])
        self.balancers, self.gates, self._netlinks, self._losses, self._discovery = {}, {}, {}, {}, None

    # ------------------------------------------------------------------ what is seen

    def views(self) -> dict[str, BalancerView]:
        """Return what the load balancers have counted."""
        return {name: balancer.view() for name, balancer in self.balancers.items()}

    def hear(self) -> list[actions.Action]:
        """Hand the protocol the neighbours' frames, and the look-ups of the back-end routers."""
        table, now_s = self.machine.neighbours, time.monotonic()
        result: list[actions.Action] = []
        if self._discovery is not None:
            for balancer, segment, claim, since_s in self._discovery.claims(now_s):
                if claim.mac not in table.own_macs:
                    self.machine.takeover.hear_on(balancer, segment, now_s)
                result += table.hear(
                    segment,
                    claim.address,
                    claim.mac,
                    now_s,
                    is_for_us=claim.is_for_us,
                    is_probe=claim.is_probe,
                    since_s=since_s,
                )
        for name in self.machine.membership.members:
            for _, address in self._netlinks[name].lookups(_MAX_LOOK_UPS):
                result += table.want(address, now_s)
        return result

    # ------------------------------------------------------------------ what is done

    def do(self, wanted: Iterable[actions.Action]) -> None:
        """Carry out actions in their order, up to one that cannot be done."""
        for action in wanted:
            self._do(action)

    def do_what_can_be_done(self, wanted: Iterable[actions.Action]) -> None:
        """Carry out actions in their order; the first problem is raised when all have been tried."""
        problems: list[Exception] = []
        for action in wanted:
            try:
                self._do(action)
            except (EnvironmentProblem, TesterError, OSError) as problem:
                problems.append(problem)
        if problems:
            raise problems[0]

    def _do(self, action: actions.Action) -> None:
        machine = self.machine
        match action:
            case actions.Event():
                self._on_event(action)
            case actions.Probe(name, numbers):
                self.balancers[name].send_probes([*numbers])
            case actions.ProbePaths(name, numbers, paths):
                self.balancers[name].send_path_probes(numbers, paths)
            case actions.Call(name, other):
                self.balancers[name].call(self.balancers[other])
            case actions.Solicit(segment, address, mac):
                if self._discovery is not None:
                    self._discovery.ask(self._active, segment, address, mac)
            case actions.SetNeighbour(segment, address, mac):
                self._set_neighbour(segment, address, mac)
            case actions.RemoveNeighbour(segment, address):
                for name, netlink in self._open_netlinks():
                    interface = "b0" if name in machine.membership.members else self.layout.port(segment)
                    with contextlib.suppress(TesterError):
                        netlink.remove_neighbours(interface, [address])
            case actions.ForgetMac(mac):
                for balancer in self.balancers.values():
                    balancer.plane.set_neighbour(octets(mac), None)
            case actions.Announce(segment, is_inside_only):
                self._announce(self._active, segment, is_inside_only=is_inside_only)
            case actions.SetSilent(number, is_silent, name):
                for balancer in [self.balancers[name]] if name else self.balancers.values():
                    balancer.plane.set_silent(number, is_silent)
            case actions.Activate(name):
                self._activate(name)
            case actions.Store():
                self.disk.write_membership(machine.membership)
            case actions.Publish(name, epoch, weights):
                for balancer in [self.balancers[name]] if name else self.balancers.values():
                    balancer.plane.publish([*weights], machine.membership.seed, epoch)
            case actions.Drain(number, idle_s, deadline_s, name):
                for balancer in [self.balancers[name]] if name else self.balancers.values():
                    balancer.plane.drain(number, idle_s, deadline_s)
            case actions.Audit():
                self.do_what_can_be_done(machine.read(self.contents(), self.readings(), time.monotonic()))
            case actions.Repair(name, missing, extra):
                self._repair(name, missing, extra)
            case actions.RepairBalancer(name):
                self._repair_balancer(name)
            case _:
                raise AssertionError(f"nobody does {action}")

    def _open_netlinks(self) -> Iterable[tuple[str, NamespaceNetlink]]:
        """Return the netlink sockets of the elements that have entries of neighbours."""
        membership = self.machine.membership
        for name, netlink in self._netlinks.items():
            member = membership.members.get(name)
            if name == membership.active or (member is not None and member.fault != "link"):
                yield name, netlink

    def _set_neighbour(self, segment: int, address: str, mac: str) -> None:
        for name, netlink in self._open_netlinks():
            interface = "b0" if name in self.machine.membership.members else self.layout.port(segment)
            # What an element refuses, the next audit sees.
            with contextlib.suppress(TesterError):
                netlink.set_neighbours(interface, [(address, mac)])
        for balancer in self.balancers.values():
            balancer.plane.set_neighbour(octets(mac), self.layout.port(segment))
        self._active.announce_inside([mac])

    def _announce(self, balancer: Balancer, segment: int | None = None, *, is_inside_only: bool = False) -> None:
        if not is_inside_only:
            balancer.announce_outside(segment)
        if segment is None:
            balancer.announce_inside(sorted({entry.mac for entry in self.machine.neighbours.entries.values()}))

    def _activate(self, name: str) -> None:
        """Make a load balancer active and the others standbys."""
        faults = self.machine.membership.balancer_faults
        for other in self.balancers.values():
            if other.name != name and faults.get(other.name) != "hang":
                other.plane.set_role("stands_by")
        balancer = self.balancers[name]
        if faults.get(name) != "hang":
            balancer.plane.set_role("works")
        # The data path comes first: it only needs switches that know the router's port. Announcements are repeated,
        # because a full queue loses frames. The steps after it start processes, which is slow on a busy machine.
        for _ in range(_ANNOUNCEMENTS):
            self._announce(balancer)
            time.sleep(_BETWEEN_ANNOUNCEMENTS_S)
        self._set_kernel_up(name)
        self._announce(balancer)
        for other_name in self.balancers:
            if other_name != name:
                with contextlib.suppress(EnvironmentProblem):
                    remove_addresses(self.layout, other_name)

    def _set_kernel_up(self, name: str) -> None:
        """Give the kernel of the active load balancer the router's addresses, and the neighbours."""
        add_addresses(self.layout, name)
        for entry in self.machine.neighbours.entries.values():
            with contextlib.suppress(TesterError):
                self._netlinks[name].set_neighbours(self.layout.port(entry.segment), [(entry.address, entry.mac)])

    def _repair_balancer(self, name: str) -> None:
        balancer = self.balancers[name]
        self.do(self.machine.republication(name))
        entries = self.machine.neighbours.entries.values()
        if not self.machine.is_learning:
            for mac in {*balancer.plane.neighbours()} - {entry.mac for entry in entries}:
                balancer.plane.set_neighbour(octets(mac), None)
        for entry in entries:
            balancer.plane.set_neighbour(octets(entry.mac), self.layout.port(entry.segment))
        is_active = name == self.machine.membership.active
        if self.machine.membership.balancer_faults.get(name) != "hang":
            balancer.plane.set_role("works" if is_active else "stands_by")
        with contextlib.suppress(EnvironmentProblem):  # its links may be down
            if is_active:
                self._set_kernel_up(name)
            else:
                remove_addresses(self.layout, name)

    def _repair(self, name: str, missing: Iterable[str], extra: Iterable[str]) -> None:
        """Set a back-end router's tables right: neighbours by netlink, the rest by iproute2."""
        entries = self.machine.neighbours.entries
        wanted = [(line.split()[1], line.split()[3]) for line in missing if line.startswith("neighbour ")]
        gone = [line.split()[1] for line in extra if line.startswith("neighbour ")]
        with contextlib.suppress(TesterError):
            self._netlinks[name].remove_neighbours("b0", [address for address in gone if address not in entries])
            self._netlinks[name].set_neighbours("b0", [pair for pair in wanted if pair[0] in entries])
        others = [line for line in missing if not line.startswith("neighbour ") or line.split()[1] not in entries]
        foreign = [line for line in extra if not line.startswith("neighbour ")]
        if others or foreign:
            repair_router(self.layout, name, foreign, self.neighbours())

    def neighbours(self) -> dict[str, str]:
        """Return the MAC address of each known neighbour."""
        return {address: entry.mac for address, entry in self.machine.neighbours.entries.items()}

    def set_up(self, member: Member) -> None:
        """Set up a back-end router: addresses, routes, neighbours, rules, its cap and its faults."""
        set_router_up(self.layout, member.name, self.neighbours())
        if member.forwarding == "nftables":
            set_rules(self.layout.netns(member.name), member.rules)
        self.set_gate(member)

    def set_gate(self, member: Member) -> None:
        """Set the program in front of a back-end router."""
        self.gates[member.name].set(
            cap_pps=member.cap_pps,
            queue_frames=member.queue_frames,
            hangs=member.fault == "hang",
            forwards=member.forwarding == "xdp",
            loss=member.loss_in,
        )

    # ------------------------------------------------------------------ faults

    def set_loss(self, member: Member) -> None:
        """Lose a share of the frames to and from a back-end router, as its faults say."""
        self.set_gate(member)
        self._clear_losses(member.name)
        if member.loss_out > 0.0:
            self._lose(member.name, [(self.layout.inside_switch, f"p{member.number}")], member.loss_out)

    def set_balancer_loss(self, name: str, *, loss_in: float, loss_out: float) -> None:
        """Lose a share of the frames to and from a load balancer.

        Raises EnvironmentProblem: it has no far ends of its own to lose its frames at.
        """
        balancer = self.balancers[name]
        balancer.plane.set_loss(loss_in)
        self._clear_losses(name)
        if loss_out > 0.0:
            self._lose(name, [*self.layout.far_ends(balancer.number)], loss_out)

    def _lose(self, name: str, places: Iterable[tuple[str, str]], ratio: float) -> None:
        losses = []
        for number, (namespace, interface) in enumerate(places):
            pins = str(self.disk.pins / f"loss-{name}-{number}")
            loss = FrameLoss(interface, str(netns.FOLDER / namespace), pins)
            loss.set(ratio)
            losses.append(loss)
        self._losses[name] = losses

    def _clear_losses(self, name: str) -> None:
        for loss in self._losses.pop(name, []):
            loss.close()
        for pins in self.disk.pins.glob(f"loss-{name}-*"):
            FrameLoss.remove(str(pins))

    def set_balancer_links(self, name: str, state: str) -> None:
        """Set the interfaces of a load balancer ``up`` or ``down``."""
        set_links(self.layout.netns(name), self.balancers[name].interfaces, state)

    # ------------------------------------------------------------------ tables

    def contents(self) -> dict[str, list[str] | None]:
        """Return the lines of each back-end router's tables; None where they cannot be read."""
        result: dict[str, list[str] | None] = {}
        for name in self.machine.membership.members:
            try:
                result[name] = self._netlinks[name].contents()
            except TesterError:
                result[name] = None
        return result

    def audits(self) -> dict[str, dict[str, Any]]:
        """Return epoch and digests of each load balancer's tables."""
        return {name: json.loads(balancer.plane.audit()) for name, balancer in self.balancers.items()}

    def readings(self) -> dict[str, BalancerReading | None]:
        """Return what the protocol wants to know of each load balancer's tables."""
        result: dict[str, BalancerReading | None] = {}
        macs = self.machine.audit.known_macs()
        for name, audit in self.audits().items():
            if self.machine.membership.balancer_faults.get(name) or self.balancers[name].interfaces_down():
                result[name] = None
                continue
            result[name] = BalancerReading(
                has_its_rows=audit["rows"] == audit["expected"],
                epoch=audit["epoch"],
                macs=macs if audit["neighbours"] == self._digest_of(macs) else frozenset(),
                is_set_up=self._is_set_up(name),
            )
        return result

    def _is_set_up(self, name: str) -> bool:
        try:
            lines = self._netlinks[name].contents()
        except TesterError:
            return False
        has = {line.split()[1].partition("/")[0] for line in lines if line.startswith("address ")}
        own = self.machine.settings.networks.own
        return own <= has if name == self.machine.membership.active else not own & has

    def _digest_of(self, macs: frozenset[tuple[str, int]]) -> str:
        if self._digests[0] != macs or not self._digests[1]:
            self._digests = (macs, digest_of_macs(macs))
        return self._digests[1]


def digest_of_macs(macs: Iterable[tuple[str, int]]) -> str:
    """Return the digest that an audit of a load balancer has for neighbours and their networks (FNV-1a, 64 bits).

    Examples
    --------
    >>> digest_of_macs([])
    'cbf29ce484222325'
    """
    digest = 0xCBF29CE484222325
    for key in sorted(int.from_bytes(bytes(octets(mac)), "little") | segment << 48 for mac, segment in macs):
        for octet in key.to_bytes(8, "little"):
            digest = (digest ^ octet) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{digest:016x}"


def digest_of_lines(lines: Iterable[str]) -> str:
    """Return a short digest of the lines of a back-end router's tables."""
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16]


def unpinned(folder: Path) -> None:
    """Remove the pins of an element that is gone."""
    for pin in sorted(folder.glob("*")):
        pin.unlink()
    with contextlib.suppress(FileNotFoundError):
        folder.rmdir()
