"""A router of many machines on this machine: the process that makes it, drives its protocol, and takes it down.

The programs of the load balancers detect dead back-end routers without this process. What it decides, the protocol
decides (:mod:`routecast.multistage.protocol`); this module is the life cycle around it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from routecast.errors import EnvironmentProblem
from routecast.lab.testbed import netns, state
from routecast.lab.testbed.checks import NAMESPACE_CAPABILITIES, require
from routecast.multistage._client import event_line
from routecast.multistage._disk import Disk
from routecast.multistage._driver import Driver
from routecast.multistage._elements import Elements
from routecast.multistage._layout import Layout, Outside
from routecast.multistage._membership import Member, Membership
from routecast.multistage._requests import DIRECTIONS, FAULTS, Requests, require_programs
from routecast.multistage._wiring import add_router, clear_outside, ip, make_base, mount_pins
from routecast.multistage.protocol.actions import Event
from routecast.multistage.protocol.machine import Machine, MachineSettings
from routecast.multistage.protocol.neighbours import Networks
from routecast.multistage.reading import MultistageFile, parse_multistage
from routecast.quantity.whole_file import write_whole

__all__ = ["DIRECTIONS", "FAULTS", "Appliance"]

_FIRST_NEIGHBOURS_WITHIN_S = 2.0
_TICK_S = 0.02


class Appliance:
    """A router of many machines, as a context that takes it down at its end.

    ``text``: text or content of its ``*.multistage.toml``; ``subject``: source of the text, for messages; ``outside``:
    existing interfaces of its outside networks, with which the router ends with its process; None: each network gets a
    host; ``on_remark``: receives remarks and events for the user. Raises FileProblem: the text has faults.

    What people ask of a router that is up are the methods of :class:`routecast.multistage._requests.Requests`:
    ``status``, ``events``, ``fail``, ``restore``, ``drain``, ``add``, ``remove``, ``set_weight``, ``trace``, ``audit``.
    """

    def __init__(
        self,
        text: str | MultistageFile,
        *,
        subject: str = "multistage router",
        outside: Outside | None = None,
        on_remark: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.file = parse_multistage(text, subject=subject) if isinstance(text, str) else text
        self.layout = Layout(self.file, outside)
        self.name = self.file.name
        self.on_remark = on_remark
        self._text = text if isinstance(text, str) else ""
        self._disk = Disk(self.layout)
        self._events = self._disk.events()
        membership = Membership(seed=self.file.seed, active=self.layout.balancers()[0])
        self._machine = Machine(_settings_of(self.layout), membership)
        self._elements = Elements(self.layout, self._disk, self._machine, self._take_event)
        lock = threading.RLock()
        self._driver = Driver(self._elements, lock, on_remark, name=self.name)
        self._bed_lock: state.BedLock | None = None
        self._is_made = False
        requests = Requests(self.layout, self._disk, self._elements, self._events, lock)
        self.status, self.events, self.trace, self.audit = (
            requests.status,
            requests.events,
            requests.trace,
            requests.audit,
        )
        self.fail, self.restore, self.drain = requests.fail, requests.restore, requests.drain
        self.add, self.remove, self.set_weight = requests.add, requests.remove, requests.set_weight

    @property
    def folder(self) -> Path:
        """Folder of its files on this machine."""
        return self._disk.folder

    def __enter__(self) -> Self:
        """Make the router, or take over a router whose process has ended.

        Raises EnvironmentProblem: a privilege or a program is missing, another process holds the router, or the kernel
        refuses.
        """
        require(NAMESPACE_CAPABILITIES, "a router of many machines")
        require_programs(self.file.router)
        self._bed_lock = state.BedLock(self.name)
        try:
            left = self._disk.left()
            if left is not None and left.is_kept and self._disk.has_membership():
                self._take_over(left)
            else:
                if left is not None:
                    self.on_remark(f"removing what process {left.pid} left of {self.name!r}")
                    state.clean(left)
                self._create()
        except BaseException:
            self.end()
            raise
        self._driver.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the router down."""
        self.end()

    def end(self) -> None:
        """Take the router down; a second call does nothing."""
        with state.signals_ignored():
            self._driver.stop()
            if self._bed_lock is None:
                return
            self._elements.close()
            try:
                if self._is_made:
                    state.clean(self._disk.bed)
                    if self.layout.outside is not None:
                        clear_outside(self.layout)
            finally:
                self._bed_lock.release()
                self._bed_lock = None

    def leave(self) -> None:
        """Leave the router without its process, as after the death of the process."""
        self._driver.stop()
        self._elements.close()
        if self._bed_lock is not None:
            self._bed_lock.release()
            self._bed_lock = None

    def _take_event(self, event: Event) -> None:
        row = self._events.add(event.element, event.what, event.detail)
        self.on_remark(event_line(row, row["time_unix_s"]))

    def _create(self) -> None:
        membership = self._machine.membership
        namespaces = {*self.layout.base_namespaces(), *(self.layout.netns(table.name) for table in self.file.router)}
        existing = namespaces & {*netns.names()}
        if existing:
            raise EnvironmentProblem(
                f"namespace {sorted(existing)[0]} exists and is no router's: remove it, or give the router another name"
            )
        self._is_made = True
        for number, table in enumerate(self.file.router):
            membership.members[table.name] = Member.of(table, number)
        self._disk.begin()
        self._disk.write_namespaces(membership)
        self.folder.mkdir(parents=True, exist_ok=True)
        mount_pins(self._disk.pins)
        make_base(self.layout)
        for member in membership.members.values():
            add_router(self.layout, member.name, member.number)
        self._elements.open()
        for member in membership.members.values():
            self._elements.set_up(member)
        self._elements.do(self._machine.changes.publish())
        self._begin()
        write_whole(self._disk.text, self._text)
        self._disk.bed.is_kept = self.layout.outside is None
        self._disk.bed.write()

    def _take_over(self, left: state.BedState) -> None:
        if self._disk.text.read_text(encoding="utf-8") != self._text:
            raise EnvironmentProblem(
                f"{self.name!r} is up from another file: take it down first, `routecast multistage down {self.name}`"
            )
        membership = self._machine.membership
        membership.become(self._disk.read_membership())
        expected = {*self.layout.base_namespaces(), *map(self.layout.netns, membership.members)}
        missing = sorted(expected - {*netns.names()})
        if missing:
            raise EnvironmentProblem(
                f"{self.name!r} cannot be taken over: {', '.join(missing)} is gone; "
                f"`routecast multistage down {self.name}` takes it down"
            )
        self._is_made = True
        # A router whose addition or removal was not finished is not a member.
        for name in (set(left.namespaces) - expected) & {*netns.names()}:
            ip(None, [f"netns del {name}"])
        self._disk.adopt(left)
        self._disk.write_namespaces(membership)
        self.on_remark(f"taking over {self.name!r}, whose process has ended")
        self._elements.open()
        for member in membership.members.values():
            (self._elements.set_gate if member.fault else self._elements.set_up)(member)
        self._begin()

    def _begin(self) -> None:
        """Begin the protocol, and find the hosts and gateways, so that the first frame to each is forwarded at once."""
        self._elements.do(self._machine.start(time.monotonic()))
        self._driver.step()  # its audit puts right what a killed process left half done
        missing = {*self._machine.settings.wanted}
        deadline = time.monotonic() + _FIRST_NEIGHBOURS_WITHIN_S
        while missing - self._machine.neighbours.entries.keys() and time.monotonic() < deadline:
            time.sleep(_TICK_S)
            self._driver.step()
        for address in sorted(missing - self._machine.neighbours.entries.keys()):
            self.on_remark(f"{address} does not answer")


def _settings_of(layout: Layout) -> MachineSettings:
    file, outside = layout.file, layout.outside
    interfaces = [[text for text in (segment.ipv4, segment.ipv6) if text] for segment in file.segment]
    static = {table.address: table.mac for table in file.neighbour}
    if outside is not None:
        static |= {address: mac for address, (mac, _) in outside.neighbours.items()}
    hosts = [
        address for segment in file.segment for address in (segment.host_ipv4, segment.host_ipv6) if address is not None
    ]
    wanted = [] if outside is not None else [*hosts, *(route.via for route in file.route)]
    return MachineSettings(
        balancers=tuple(layout.balancers()),
        networks=Networks([segment.name for segment in file.segment], interfaces),
        own_macs=tuple(layout.own_macs()),
        static=static,
        wanted=tuple(address for address in dict.fromkeys(wanted) if address not in static),
        routes=tuple((route.to, route.via) for route in file.route),
        configured=frozenset(layout.router_lines()),
    )
