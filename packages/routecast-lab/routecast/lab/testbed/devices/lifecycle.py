"""Start, stop and reset of a device under test; a start that fails leaves nothing behind."""

from __future__ import annotations

import platform
import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Literal, TypeVar

from routecast.errors import EnvironmentProblem, FileProblem, Problem
from routecast.lab.testbed.devices.processes import in_real_time
from routecast.lab.testbed.dut_host import DeviceSite, Missing
from routecast.lab.testbed.throttling import RealTimeThrottle
from routecast.quantity.did_you_mean import did_you_mean

__all__ = ["MACHINE_RESETS", "StartedDevice"]

_O = TypeVar("_O")

MACHINE_RESETS: Mapping[str, str] = MappingProxyType(
    {
        "hardware": "RFC 6201 sec. 4.1: a namespace has no routing processor or line card of its own",
        "power": "RFC 6201 sec. 4.3: a namespace has no power supply of its own",
    }
)


class StartedDevice(ABC, Generic[_O]):
    """Base of the devices that routecast starts itself in a namespace.

    A kind of device implements ``_begin``, ``_end`` and its resets. This class keeps the order: it reports missing
    programs before it touches anything, undoes a start that fails half-way, and ignores a second stop.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    layer: ClassVar[Literal[2, 3]]
    data_path: ClassVar[Literal["kernel", "process"]]
    options: ClassVar[type[Any]]
    programs: ClassVar[tuple[Missing, ...]] = ()
    reset_kinds: tuple[str, ...] = ("process", "system", "link")
    resets_not_run: Mapping[str, str] = MACHINE_RESETS

    def __init__(self, options: _O | None = None) -> None:
        self.chosen: _O = options if options is not None else self.options()
        self._site: DeviceSite | None = None
        self._configuration: list[str] = []
        self._polling_threads: tuple[int, ...] = ()

    @property
    def site(self) -> DeviceSite:
        """Where the device runs.

        Raises EnvironmentProblem: it is not started.
        """
        if self._site is None:
            raise EnvironmentProblem(f"device {self.name}: is not started")
        return self._site

    @property
    def cores(self) -> int:
        """Number of cores that forward: the option ``cores``, or 1."""
        return int(getattr(self.chosen, "cores", 1))

    @property
    def polls(self) -> bool:
        """Whether the device polls for frames without a pause, so that nothing else can run on its core."""
        return False

    def in_trial(self, duration_s: float) -> AbstractContextManager[None]:
        """Return the context of a trial: threads that poll without a pause have a real-time class in short ones.

        The kernel stops such a thread when it has run for most of a second (:class:`RealTimeThrottle`), so that between
        trials, and in longer ones, they have the ordinary class.
        """
        throttle = RealTimeThrottle.of_machine()
        is_short = throttle is not None and duration_s <= throttle.longest_trial_s
        if not is_short or self._site is None or self._site.priority <= 0:
            return nullcontext()
        return in_real_time(self._polling_threads, self._site.priority)

    def missing(self) -> tuple[Missing, ...]:
        """Return the missing programs."""
        needed = (Missing(program="ip", package="iproute2"), *self.programs)
        return tuple(entry for entry in needed if shutil.which(entry.program) is None)

    def start(self, site: DeviceSite) -> None:
        """Configure and start the device; it forwards when this returns.

        Raises EnvironmentProblem: it runs already, a program is missing, the site is this machine's own namespace or
        does not have two ports, or the start fails, which leaves nothing behind.
        """
        self._check_startable(site)
        self._site = site
        self._configuration = []
        site.folder.mkdir(parents=True, exist_ok=True)
        try:
            self._begin(site)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the device; a second call does nothing."""
        if self._site is None:
            return
        site, self._site = self._site, None
        self._end(site)

    def restart(self, kind: str) -> None:
        """Reset the device (RFC 6201) and return when it forwards again; ``kind`` is one of ``reset_kinds``.

        Raises FileProblem: the device has no such reset; EnvironmentProblem: the device does not come back, and is
        stopped.
        """
        if kind not in self.reset_kinds:
            reason = self.resets_not_run.get(kind) or did_you_mean(kind, self.reset_kinds)
            raise FileProblem(f"device {self.name}", [Problem("reset", f'"{kind}" is not run: {reason}')])
        site = self.site
        try:
            {"process": self._reset_process, "system": self._reset_system, "link": self._reset_link}[kind](site)
        except BaseException:
            self.stop()
            raise

    def facts(self) -> Mapping[str, object]:
        """Return version, exact configuration and what is disabled, as plain data (RFC 2544 sec. 7)."""
        return {
            "name": self.name,
            "title": self.title,
            "version": self._version(),
            "kernel": platform.release(),
            "options": asdict(self.chosen),  # type: ignore[call-overload]  # the options are a dataclass
            "configuration": list(self._configuration),
            "reset_kinds": list(self.reset_kinds),
            "resets_not_run": dict(self.resets_not_run),
            **self._more_facts(),
        }

    @abstractmethod
    def counters(self) -> Mapping[str, int]:
        """Return cumulative counts of frames by name: ``rx``, ``tx``, ``drop``, and drops by place."""

    @abstractmethod
    def _begin(self, site: DeviceSite) -> None: ...

    @abstractmethod
    def _end(self, site: DeviceSite) -> None: ...

    @abstractmethod
    def _reset_process(self, site: DeviceSite) -> None: ...

    def _reset_system(self, site: DeviceSite) -> None:
        """Remove the whole configuration and set it again, as a boot does."""
        self._end(site)
        self._configuration = []
        self._begin(site)

    @abstractmethod
    def _reset_link(self, site: DeviceSite) -> None: ...

    @abstractmethod
    def _version(self) -> str: ...

    def _more_facts(self) -> Mapping[str, object]:
        return {}

    def _check_startable(self, site: DeviceSite) -> None:
        if self._site is not None:
            raise EnvironmentProblem(f"device {self.name}: runs already; stop it first")
        if site.netns is None:
            raise EnvironmentProblem(
                f"device {self.name}: runs in a network namespace only, so that it cannot change how this machine "
                "forwards; use a test bed of namespaces, or the device external"
            )
        if site.shares_core and self.polls:
            raise EnvironmentProblem(
                f"device {self.name}: polls for frames without a pause, which leaves the generator no time on core "
                f"{site.cpu}; let routecast use another core (taskset, cpusets), or take a device that sleeps"
            )
        if len(site.ports) != 2:
            raise EnvironmentProblem(f"device {self.name}: needs two ports, got {len(site.ports)}")
        missing = self.missing()
        if missing:
            raise EnvironmentProblem(f"device {self.name}: " + "; ".join(f"needs {name}" for name in missing))
