"""DPDK's testpmd: a poll-mode forwarder of frames from packet sockets or AF_XDP, or of frames that it makes itself."""

from __future__ import annotations

import json
import os
import shutil
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from routecast.errors import EnvironmentProblem, FileProblem, Problem
from routecast.lab.testbed.devices import interfaces
from routecast.lab.testbed.devices.lifecycle import MACHINE_RESETS, StartedDevice
from routecast.lab.testbed.devices.options import DeviceOptions, option
from routecast.lab.testbed.devices.processes import Processes, check_socket_path, make_real_time, threads_named
from routecast.lab.testbed.dut_host import DeviceSite, Missing, SelfTimedCounts

_MAX_ANSWER_BYTES = 16_384
_TIMEOUT_S = 5.0

_FCS_BYTES = 4
_MIN_FRAME_BYTES, _MAX_FRAME_BYTES = 64, 2048
_MEMORY_MB = 256
_BUFFERS = 16_384
_NO_WIRE = {"link": "driver null has no link"}
_START_TIMEOUT_S = 20.0
_WITHOUT_PROCESSOR_S = 10.0
_DROPS = ("imissed", "ierrors", "oerrors", "rx_nombuf")
_FORWARDING_THREAD = "worker-1"
_MIN_WORKING_TICKS = 2


class DpdkTelemetry:
    """A connection to the socket ``dpdk_telemetry.v2`` (DPDK 20.05 and newer).

    Raises EnvironmentProblem: nothing listens there, or it does not answer.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(_TIMEOUT_S)
        try:
            self._socket.connect(str(path))
        except OSError as problem:
            self._socket.close()
            raise EnvironmentProblem(f"{path}: no DPDK process answers: {problem.strerror}") from problem
        self.version: str = self._receive()["version"]

    def __enter__(self) -> DpdkTelemetry:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def port_statistics(self, port: int) -> Mapping[str, int]:
        """Return the statistics of a port as DPDK names them: ``ipackets``, ``opackets``, ``imissed``, …

        Raises EnvironmentProblem: there is no such port, or the process does not answer.
        """
        command = f"/ethdev/stats,{port}"
        try:
            self._socket.send(command.encode())
            answer = self._receive().get("/ethdev/stats")
        except (OSError, ValueError) as problem:
            raise EnvironmentProblem(f"{self._path}: {command} is not answered: {problem}") from problem
        if not isinstance(answer, dict):
            raise EnvironmentProblem(f"{self._path}: there is no port {port}")
        return {name: value for name, value in answer.items() if isinstance(value, int)}

    def _receive(self) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = json.loads(self._socket.recv(_MAX_ANSWER_BYTES))
        except (OSError, ValueError) as problem:
            raise EnvironmentProblem(f"{self._path}: the DPDK process does not answer: {problem}") from problem
        return answer


@dataclass(frozen=True, kw_only=True)
class TestpmdOptions(DeviceOptions):
    """Options of testpmd.

    With ``driver = "null"`` both ports make frames and throw frames away, so that only processor time counts; trials of
    such a device need no tester. With ``copy`` the time depends on the frame size. ``forward``:
    ``io`` leaves frames alone, ``mac`` writes the addresses of the next hop, ``macswap`` swaps source and destination.
    """

    __test__ = False  # "Test" in its name is DPDK's

    driver: str = option("af_packet", "how frames reach user space", choices=("af_packet", "af_xdp", "null"))
    forward: str = option("io", "what is done to a frame", choices=("io", "mac", "macswap"))
    copy: bool = option(True, "with driver null: copy each frame in and out")
    burst: int = option(32, "frames taken at a time", minimum=1, maximum=512)


@dataclass(frozen=True, slots=True, kw_only=True)
class _PortCounts:
    """Counts of both ports; ``at_s`` is the middle of the time that reading them took."""

    at_s: float
    busy_s: float
    received: int
    forwarded: int


class Testpmd(StartedDevice[TestpmdOptions]):
    """``dpdk-testpmd`` without huge pages; its forwarding thread keeps its core busy.

    ::

        driver af_packet, af_xdp:   d0 ─► port 0 ─► forward ─► port 1 ─► d1   (and back)
        driver null:                makes ─► port 0 ─► forward ─► port 1 ─► throws away

    Frames keep their length and their TTL. Its ``process`` reset ends the process and starts it again.
    """

    __test__ = False

    name = "testpmd"
    title = "DPDK testpmd"
    layer: ClassVar[Literal[2, 3]] = 2
    data_path: ClassVar[Literal["kernel", "process"]] = "process"
    options = TestpmdOptions
    programs = (Missing(program="dpdk-testpmd", package="dpdk-dev"),)

    def __init__(self, options: TestpmdOptions | None = None) -> None:
        super().__init__(options)
        self._processes = Processes()
        self._frame_bytes = _MIN_FRAME_BYTES
        self._process_id = 0
        self._counts_before_start: dict[str, int] = {}
        self._version_text = "not started yet"
        self._thread_lines: list[str] = []
        if self.times_itself:
            self.reset_kinds = ("process", "system")
            self.resets_not_run = {**MACHINE_RESETS, **_NO_WIRE}

    @property
    def times_itself(self) -> bool:
        """Whether the device makes its frames itself: with ``driver = "null"``."""
        return self.chosen.driver == "null"

    @property
    def polls(self) -> bool:
        """Whether it polls for frames of the tester without a pause."""
        return not self.times_itself

    def self_timed(self, frame_bytes: int, duration_s: float) -> SelfTimedCounts:
        """Forward frames of one size as fast as possible for ``duration_s`` and return the counts of both ports.

        A device that other programs keep from the processor for all of ``duration_s`` is counted for longer, until it
        has forwarded frames.

        Raises FileProblem: the driver is not ``null``, or the frame size is out of 64 to 2048 bytes;
        EnvironmentProblem: the device is not started, or it forwards nothing within ten seconds more.
        """
        if not self.times_itself:
            text = f'"{self.chosen.driver}" forwards what the tester sends; only "null" times itself'
            raise FileProblem("device testpmd", [Problem("driver", text)])
        if not _MIN_FRAME_BYTES <= frame_bytes <= _MAX_FRAME_BYTES:
            text = f"{frame_bytes} is not in {_MIN_FRAME_BYTES} to {_MAX_FRAME_BYTES}"
            raise FileProblem("device testpmd", [Problem("frame_bytes", text)])
        if frame_bytes != self._frame_bytes:
            self._frame_bytes = frame_bytes
            self._reset_process(self.site)
        with self._telemetry(self.site) as telemetry:
            before = self._port_counts(telemetry)
            counts = self._counts_after(duration_s, telemetry, before)
            while not counts.has_forwarded and counts.duration_s < duration_s + _WITHOUT_PROCESSOR_S:
                counts = self._counts_after(duration_s, telemetry, before)
        if not counts.has_forwarded:
            raise EnvironmentProblem(f"device testpmd: forwarded nothing in {counts.duration_s:g} s")
        return counts

    def _counts_after(self, pause_s: float, telemetry: DpdkTelemetry, before: _PortCounts) -> SelfTimedCounts:
        """Wait for ``pause_s`` and return what was counted since ``before``."""
        time.sleep(pause_s)
        after = self._port_counts(telemetry)
        return SelfTimedCounts(
            frame_bytes=self._frame_bytes,
            duration_s=after.at_s - before.at_s,
            busy_s=after.busy_s - before.busy_s,
            received_frames=after.received - before.received,
            forwarded_frames=after.forwarded - before.forwarded,
        )

    def counters(self) -> Mapping[str, int]:
        """Return the kernel's counts of the ports and unforwarded frames; with ``driver = "null"``, DPDK's counts.

        Raises DeviceEnded: the process has ended by itself.
        """
        site = self.site
        self._processes.check()
        if not self.times_itself:
            return interfaces.switch_counters(site, self._counts_before_start)
        with self._telemetry(site) as telemetry:
            statistics = [telemetry.port_statistics(index) for index in range(len(site.ports))]
        return {
            "rx": sum(statistic["ipackets"] for statistic in statistics),
            "tx": sum(statistic["opackets"] for statistic in statistics),
            "drop": sum(statistic[name] for statistic in statistics for name in _DROPS),
        }

    def _begin(self, site: DeviceSite) -> None:
        check_socket_path(self._socket(site))
        if not self.times_itself:
            self._configuration += interfaces.disable_ipv6(site)
            interfaces.ports_up(site)
            self._counts_before_start = interfaces.interface_counters(site)
        self._start_process(site)

    def _end(self, site: DeviceSite) -> None:
        self._processes.stop()
        if not self.times_itself:
            interfaces.release_ports(site)
        shutil.rmtree(self._runtime_folder(site), ignore_errors=True)
        (site.folder / "dpdk-testpmd.log").unlink(missing_ok=True)

    def _reset_process(self, site: DeviceSite) -> None:
        self._processes.stop()
        self._start_process(site)

    def _reset_link(self, site: DeviceSite) -> None:
        interfaces.ports_down(site)
        interfaces.ports_up(site)

    def _port_counts(self, telemetry: DpdkTelemetry) -> _PortCounts:
        began_s, began_busy_s = time.monotonic(), _busy_s(self._process_id)
        statistics = [telemetry.port_statistics(port) for port in range(len(self.site.ports))]
        ended_s, ended_busy_s = time.monotonic(), _busy_s(self._process_id)
        return _PortCounts(
            at_s=(began_s + ended_s) / 2,
            busy_s=(began_busy_s + ended_busy_s) / 2,
            received=sum(statistic["ipackets"] for statistic in statistics),
            forwarded=sum(statistic["opackets"] for statistic in statistics),
        )

    def _start_process(self, site: DeviceSite) -> None:
        runtime = self._runtime_folder(site)
        shutil.rmtree(runtime, ignore_errors=True)
        runtime.mkdir(parents=True)
        command = self._command(site)
        self._configuration = [line for line in self._configuration if "dpdk-testpmd" not in line]
        self._configuration.append(" ".join(command))
        process = self._processes.spawn(site, "dpdk-testpmd", *command, environment={"RUNTIME_DIRECTORY": str(runtime)})
        self._process_id = process.pid
        self._processes.wait_for(
            lambda: self._is_forwarding(site, process.pid), "forwarding by testpmd", timeout_s=_START_TIMEOUT_S
        )
        self._thread_lines = make_real_time(process.pid, site, _is_forwarding_thread, polls=True)
        self._polling_threads = threads_named(process.pid, _is_forwarding_thread)
        with self._telemetry(site) as telemetry:
            self._version_text = telemetry.version

    def _command(self, site: DeviceSite) -> list[str]:
        devices = [f"--vdev={self._virtual_device(index, site)}" for index in range(len(site.ports))]
        peers = [f"--eth-peer={index},{port.neighbour_mac}" for index, port in enumerate(site.ports)]
        return [
            *("dpdk-testpmd", "--no-huge", "-m", str(_MEMORY_MB), "--no-pci"),
            f"--lcores={self._lcore_map(site)}",
            "--main-lcore=0",
            *devices,
            "--",
            f"--forward-mode={self.chosen.forward}",
            "--nb-cores=1",
            f"--burst={self.chosen.burst}",
            f"--total-num-mbufs={_BUFFERS}",
            "--no-mlockall",
            *(peers if self.chosen.forward == "mac" else ()),
            # Without a period it would end at the end of its empty input.
            "--stats-period=86400",
        ]

    def _virtual_device(self, index: int, site: DeviceSite) -> str:
        if self.times_itself:
            return f"net_null{index},size={self._frame_bytes - _FCS_BYTES},copy={int(self.chosen.copy)}"
        return f"net_{self.chosen.driver}{index},iface={site.ports[index].interface}"

    @staticmethod
    def _lcore_map(site: DeviceSite) -> str:
        allowed = sorted(os.sched_getaffinity(0))
        core = site.cpu if site.cpu is not None else allowed[-1]
        others = [allowed_core for allowed_core in allowed if allowed_core != core] or [core]
        return f"0@{others[0]},1@{core}"

    def _is_forwarding(self, site: DeviceSite, process_id: int) -> bool:
        """Whether the forwarding thread works: it sleeps only until its lcore is launched."""
        if not self._socket(site).exists():
            return False
        with suppress(FileNotFoundError, ProcessLookupError):
            for task in Path(f"/proc/{process_id}/task").iterdir():
                # After the name in parentheses, utime and stime are the 12th and 13th field (proc(5), stat).
                name, fields = (task / "stat").read_text(encoding="utf-8").split("(", 1)[1].rsplit(")", 1)
                if _FORWARDING_THREAD in name:  # rte-worker-1 or lcore-worker-1, by version
                    user, system = fields.split()[11:13]
                    return int(user) + int(system) >= _MIN_WORKING_TICKS
        return False

    def _telemetry(self, site: DeviceSite) -> DpdkTelemetry:
        return DpdkTelemetry(self._socket(site))

    @staticmethod
    def _runtime_folder(site: DeviceSite) -> Path:
        return site.folder / "pmd"

    @staticmethod
    def _socket(site: DeviceSite) -> Path:
        return Testpmd._runtime_folder(site) / "dpdk" / "rte" / "dpdk_telemetry.v2"

    def _version(self) -> str:
        return self._version_text

    def _more_facts(self) -> Mapping[str, object]:
        disabled = ["huge pages", "PCI devices", "IPv6 of the ports"]
        return {"threads": list(self._thread_lines), "disabled": disabled}


def _is_forwarding_thread(name: str) -> bool:
    return _FORWARDING_THREAD in name


def _busy_s(process_id: int) -> float:
    """Return the processor time of a process; all threads of testpmd but the forwarding one sleep."""
    try:
        # The clock of another process, as clock_getcpuclockid(3) makes it: CPUCLOCK_SCHED of all its threads.
        return time.clock_gettime((~process_id << 3) | 2)
    except OSError as problem:
        raise EnvironmentProblem(f"device testpmd: process {process_id}: {problem.strerror}") from problem
