"""XDP programs on the ports of a device: known work per packet, or the forwarding itself."""

from __future__ import annotations

import json
import threading
from contextlib import ExitStack
from typing import Any

from routecast.errors import EnvironmentProblem
from routecast.testbed.dut_host import DeviceSite
from routecast.testbed.tester import error_text

__all__ = ["IngressPrograms"]


class IngressPrograms:
    """One XDP program on each port of a device, from :meth:`attach` to :meth:`close`.

    ::

        frame ─► port ─► XDP: work per packet ─► the kernel's path     (program "slow")
                         XDP: look up, rewrite, redirect to a port     (program "forward")
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._programs: dict[str, Any] = {}
        # A device is reset in one thread while its counters are read in another.
        self._lock = threading.Lock()

    def attach(self, site: DeviceSite, program: str, *, iterations: int) -> list[str]:
        """Attach ``program`` to every port and return a line for each.

        ``iterations`` of known work are done for each frame. Raises EnvironmentProblem: the kernel refuses the program,
        or the right to load it is missing.
        """
        from routecast import _core

        lines = []
        for port in site.ports:
            configuration = {
                "program": program,
                "interface": port.interface,
                "netns": site.netns_path,
                "iterations": iterations,
            }
            with self._lock:
                try:
                    attached = _core.attach_xdp(json.dumps(configuration))
                except _core.TesterError as problem:
                    what = f"port {port.interface} of the device needs eBPF"
                    raise EnvironmentProblem(f"{what} (program {program}): {error_text(problem)}") from problem
                self._stack.callback(attached.close)
                self._programs[port.interface] = attached
            lines.append(f"xdp {port.interface}: program {program}, {iterations} iterations of work per packet")
        return lines

    def counters(self) -> dict[str, int]:
        """Return the counts of each program: ``d0_xdp_forwarded``, …"""
        counts: dict[str, int] = {}
        with self._lock:
            for interface, program in self._programs.items():
                for name, number in json.loads(program.counters()).items():
                    counts[f"{interface}_xdp_{name}"] = number
        return counts

    def close(self) -> None:
        """Detach all programs; a second call does nothing."""
        with self._lock:
            self._programs.clear()
            self._stack.close()
