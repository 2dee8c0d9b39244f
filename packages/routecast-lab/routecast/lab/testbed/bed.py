"""A test bed as a context: it locks the bed, removes leftovers, makes the bed and starts the device.

The end of a run, an exception, Ctrl-C and SIGTERM leave the machine as it was; after a SIGKILL, the next start of any
test bed cleans up.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import signal
import struct
import threading
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, Literal, Self

from routecast.errors import EnvironmentProblem
from routecast.lab.testbed import netns, state
from routecast.lab.testbed.document import InterfacesFile, NamespacesFile
from routecast.lab.testbed.dut_host import Device, DeviceSite
from routecast.lab.testbed.placement import CoreAssignment, assign_cores
from routecast.quantity.schema import field, value

__all__ = ["SHARE_CORES", "Bed", "IdlePolling", "TesterPort"]

SHARE_CORES = "ROUTECAST_SHARE_CORES"
"""Environment variable that allows beds to measure on the same cores, as ``--share-cores`` does for a bed."""


_CPU_DMA_LATENCY = Path("/dev/cpu_dma_latency")


class IdlePolling:
    """Keeps idle cores polling from :meth:`begin` to :meth:`end`, so that they work at once.

    A sleeping core takes microseconds to wake up, a virtual core tens of microseconds. This delays the tester's core,
    which wakes it. The kernel keeps cores awake as long as a process holds ``/dev/cpu_dma_latency`` open with a latency
    of 0 (PM QoS, Documentation/power/pm_qos_interface.rst), until the process ends.
    """

    def __init__(self, device: Path = _CPU_DMA_LATENCY) -> None:
        self._device = device
        self._open: int | None = None
        self.refused = ""
        """Why idle cores cannot poll; empty if they can."""

    def begin(self) -> None:
        """Start polling; if that is not possible, cores sleep and :attr:`refused` holds the reason."""
        if self._open is not None:
            return
        try:
            self._open = os.open(self._device, os.O_WRONLY | os.O_CLOEXEC)
            os.write(self._open, struct.pack("=i", 0))
        except OSError as problem:
            self.end()
            self.refused = f"{self._device}: {problem.strerror}"

    def end(self) -> None:
        """Let cores sleep again."""
        if self._open is not None:
            os.close(self._open)
            self._open = None

    @property
    def is_on(self) -> bool:
        """Whether idle cores poll."""
        return self._open is not None


@value
class TesterPort:
    """One port of the tester."""

    __test__ = False

    name: str
    interface: str
    netns: str | None = field("Name of the interface's namespace")
    mac: str = field("The tester's MAC address")
    ipv4: str = field("The tester's IPv4 address")
    ipv6: str = field("The tester's IPv6 address; empty if there is none")
    device_mac: str = field("MAC address of the device's port at the other end of the wire")
    networks_ipv4: tuple[str, ...] = field("Further IPv4 networks that the device routes to this port")
    networks_ipv6: tuple[str, ...] = field("Further IPv6 networks that the device routes to this port")
    wire_bps: float = field("Rate of the wire")
    is_virtual: bool = field("Whether the wire has no rate of its own, so that the tester enforces ``wire_bps``")
    mtu: int = field("Longest IP packet, in bytes")


class Bed:
    """A test bed with its device under test, as a context.

    ``on_remark`` receives remarks for the user, line by line.
    """

    def __init__(
        self,
        file: NamespacesFile | InterfacesFile,
        device: Device,
        *,
        on_remark: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.name = file.name
        self.device = device
        self.placement: CoreAssignment = assign_cores(
            file.cores.tester, file.cores.receiver, file.cores.dut, cores=getattr(device, "cores", 1)
        )
        self.priority = file.priority
        self.power = file.power
        self.encapsulation = file.encapsulation
        self.ports: tuple[TesterPort, ...] = ()
        self.on_remark = on_remark
        self.beside = ""
        """Name of a bed on the same cores that waits while this one works; empty if there is none."""
        self.share_cores = False
        """Whether this bed may measure while another bed measures on the same cores."""
        self._state: state.BedState | None = None
        self._lock: state.BedLock | None = None
        self._handlers: dict[int, Any] = {}
        self._site: DeviceSite | None = None
        self._idle = IdlePolling()
        self._wants_polling = file.idle == "poll"

    @property
    def site(self) -> DeviceSite:
        """Where the device runs.

        Raises EnvironmentProblem: the bed is not made.
        """
        if self._site is None:
            raise EnvironmentProblem(f"test bed {self.name!r} is not up: use it in a with statement")
        return self._site

    @property
    def layer(self) -> Literal[2, 3]:
        """Destination of the test frames: 3 for the device's MAC address, 2 for that of the tester's receiving port."""
        return self.device.layer

    @property
    def folder(self) -> Path:
        """Scratch folder, removed with the bed."""
        return state.FOLDER / self.name

    def __enter__(self) -> Self:
        self._require_capabilities()
        if missing := self.device.missing():
            raise EnvironmentProblem(f"device {self.device.name} needs {'; '.join(map(str, missing))}")
        self._lock = state.BedLock(self.name)
        try:
            self._remove_leftovers()
            self._refuse_busy_cores(time.time())
            self._catch_signals()
            if self._wants_polling:
                self._idle.begin()
            self._state = state.BedState(
                bed=self.name,
                pid_start_ticks=state.start_ticks(os.getpid()),
                namespaces=list(self._namespaces()),
                cores=sorted({self.placement.tester, *self.placement.device_cores}),
                beside=self.beside,
                since_s=time.time(),
                pins=[str(state.PINS / self.name)],
                folder=str(self.folder),
            )
            self._state.write()
            for text in self.neighbours():
                self.on_remark(
                    f"{text}: each disturbs the other; wait for it or take it down, or give this bed other cores "
                    "([cores] of its file)"
                )
            self.folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            self._make(self._state)
            self._site = self._make_site(self._state)
            self.device.start(self._site)
            self.bind_threads()
        except BaseException:
            self._take_down()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._take_down()

    def keep(self) -> None:
        """Keep the bed up after the end of its context, until ``routecast testbed down``."""
        assert self._state is not None
        self._state.is_kept = True
        self._state.write()

    def bind_threads(self) -> None:
        """Bind the kernel threads of the device's data path; needed after every change that replaces them."""

    def bind_replaced_threads(self) -> None:
        """Bind the threads again if attaching or detaching an XDP program replaced them."""

    def priority_on(self, core: int) -> int:
        """Return the SCHED_FIFO priority of a thread of the data path on a core.

        On the generator's core it is above that of the generator, which never sleeps and would keep the core until its
        trial ends.
        """
        return self.priority + (self.priority > 0 and core == self.placement.tester)

    def generator_core_workers(self) -> Mapping[str, bool]:
        """Return the other workers on the generator's core, and whether each is known to run before the generator."""
        return {}

    def device_threads(self) -> tuple[int, ...]:
        """Return the kernel threads of the device's data path, if the bed knows them."""
        return ()

    def begin_measuring(self) -> None:
        """Record that this bed sends trials from now on.

        Raises EnvironmentProblem: another bed measures on the same cores, which this bed may not share.
        """
        assert self._state is not None
        self._state.measuring_since_s = time.time()
        self._state.write()
        self._refuse_busy_cores(self._state.measuring_since_s)

    def neighbours(self) -> tuple[str, ...]:
        """Return a sentence for each other test bed on the same cores, in use or kept up."""
        return tuple(
            f"test bed {other.bed!r}{f' of process {other.pid}' if other.is_in_use() else ''} "
            f"{'measures' if other.is_measuring() else 'is up'} on the same cores ({other.hold})"
            for other in self._beds_on_same_cores()
        )

    def _beds_on_same_cores(self) -> list[state.BedState]:
        cores = {self.placement.tester, *self.placement.device_cores}
        return [
            other
            for name in state.beds()
            if name != self.name
            and (other := state.BedState.read(name)) is not None
            and (other.is_in_use() or other.is_kept)
            and not other.beside  # one of the two waits for the other
            and self.beside != name
            and cores & set(other.cores)
        ]

    def _refuse_busy_cores(self, since_s: float) -> None:
        if self.share_cores or os.environ.get(SHARE_CORES) == "1":
            return
        for other in self._beds_on_same_cores():
            if other.is_measuring() and other.measuring_since_s <= since_s:
                raise EnvironmentProblem(
                    f"test bed {other.bed!r} of process {other.pid} measures on the same cores ({other.hold}), and "
                    "each would disturb the other: wait for it, give this bed other cores ([cores] of its file), or "
                    f"allow it with --share-cores ({SHARE_CORES}=1 for commands without that option)"
                )

    def notes_for(self, entering: Collection[int]) -> tuple[str, ...]:
        """Return the notes of trials whose frames enter the device by these ports."""
        sleeping = (f"idle cores sleep: {self._idle.refused}",) if self._idle.refused else ()
        notes = self.placement.notes if self.site.cpu is not None else ()  # an external device has its own
        return (*notes, *sleeping, *self.neighbours())

    def has_programs(self) -> bool:
        """Whether the device has XDP programs on its ports; such programs end with this process."""
        text = self.site.run("ip", "-json", "link", "show", check=False)
        return any("xdp" in link for link in json.loads(text or "[]")) if self.site.netns else False

    def tester_configuration(self, back_end: str = "auto") -> dict[str, Any]:
        """Return the configuration of the tester."""
        cores = self.placement
        shared = cores.tester if cores.is_shared else None  # no other core: a receiving thread must run first
        return {
            "ports": [
                {
                    "name": port.name,
                    "interface": port.interface,
                    "netns": str(netns.FOLDER / port.netns) if port.netns else None,
                    "send": back_end,
                    "receive": "auto",
                }
                for port in self.ports
            ],
            "send_cpu": cores.tester,
            "receive_cpu": shared if cores.receiver is None else cores.receiver,
            "priority": self.priority,
        }

    def facts(self) -> Mapping[str, object]:
        """Return the facts of the bed as plain data."""
        return {
            "name": self.name,
            "cores": {
                "tester": self.placement.tester,
                "receiver": self.placement.receiver,
                "dut": self.placement.dut,
                **({"more_dut": list(self.placement.more_dut)} if self.placement.more_dut else {}),
            },
            "priority": self.priority,
            "encapsulation": str(self.encapsulation),
            "idle": "poll" if self._idle.is_on else self._idle.refused or "sleep",
            "kernel": platform.release(),
            "machine": platform.machine(),
            "cpu": _cpu_model(),
            "ports": [
                {
                    "name": port.name,
                    "interface": port.interface,
                    "mac": port.mac,
                    "ipv4": port.ipv4,
                    "ipv6": port.ipv6,
                    "wire_bps": port.wire_bps,
                    "wire": "kept by the tester" if port.is_virtual else "the link's own",
                    "mtu_bytes": port.mtu,
                }
                for port in self.ports
            ],
            "notes": list(self.placement.notes),
        }

    def _require_capabilities(self) -> None:
        """Check the rights that the bed needs."""

    def _namespaces(self) -> tuple[str, ...]:
        """Return the namespaces of the bed."""
        return ()

    def _make(self, bed_state: state.BedState) -> None:
        """Make the bed; record every change outside its namespaces in the state first."""

    def _make_site(self, bed_state: state.BedState) -> DeviceSite:
        """Return where the device runs."""
        raise NotImplementedError

    def _remove_leftovers(self) -> None:
        """Remove the leftovers of dead runs.

        Raises EnvironmentProblem: the bed was put up to stay.
        """
        own_state = state.BedState.read(self.name)
        if own_state is not None and own_state.is_kept:
            raise EnvironmentProblem(
                f"test bed {self.name!r} was put up to stay ({own_state.hold or 'no cores are known'}): "
                f"take it down with `routecast testbed down {self.name}`; {state.SECOND_BED_ADVICE}"
            )
        if own_state is not None:
            self.on_remark(f"removing what process {own_state.pid} left of test bed {self.name!r}")
            state.clean(own_state)
        state.clean_dead(on_remark=self.on_remark)
        leftovers = [name for name in self._namespaces() if name in netns.names()]
        if leftovers:
            self.on_remark(
                f"removing network namespaces of test bed {self.name!r} that no run recorded: {', '.join(leftovers)}"
            )
            state.clean(state.BedState(bed=self.name, namespaces=leftovers))

    def _take_down(self) -> None:
        with state.signals_ignored():
            problems = []
            if self._state is not None and not self._state.is_kept:
                try:
                    self.device.stop()
                except (EnvironmentProblem, OSError) as problem:
                    problems.append(str(problem))
                try:
                    state.clean(self._state)
                except EnvironmentProblem as problem:
                    problems.append(str(problem))
            self._state = None
            self._site = None
            self._idle.end()
            if self._lock is not None:
                self._lock.release()
                self._lock = None
            for text in problems:
                self.on_remark(text)
        self._restore_signal_handlers()

    def _catch_signals(self) -> None:
        """Turn signals that end a process into exceptions, as Python does with Ctrl-C."""
        if self._handlers or threading.current_thread() is not threading.main_thread():
            return
        for number in state.ENDING_SIGNALS:
            self._handlers[number] = signal.signal(number, _exit_on_signal)

    def _restore_signal_handlers(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._handlers = {}


def _exit_on_signal(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _cpu_model() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return ""
