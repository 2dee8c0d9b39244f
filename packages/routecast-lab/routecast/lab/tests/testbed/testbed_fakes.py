"""Fakes of a tester, a device and a bed, with the same JSON as the real ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from hdrh.histogram import HdrHistogram

from routecast.lab.testbed._encapsulation import Encapsulation
from routecast.lab.testbed._snapshots import MachineSnapshot
from routecast.lab.testbed.bed import TesterPort
from routecast.lab.testbed.dut_host import DeviceSite, Missing
from routecast.lab.testbed.links import LinkState
from routecast.lab.testbed.placement import CoreAssignment

Change = Callable[[dict[str, Any]], None]


def port(name: str, side: int, **more: Any) -> TesterPort:
    values: dict[str, Any] = {
        "name": name,
        "interface": f"rcfake{side}",
        "netns": None,
        "mac": f"02:00:00:00:0{side + 1}:02",
        "ipv4": f"198.{18 + side}.1.2",
        "ipv6": f"2001:2:0:{0x8000 * side + 1:x}::2",
        "device_mac": f"02:00:00:00:0{side + 1}:01",
        "networks_ipv4": tuple(f"198.{18 + side}.{n}.0/24" for n in range(64, 67)),
        "networks_ipv6": (),
        "wire_bps": 10e9,
        "is_virtual": True,
        "mtu": 1500,
        **more,
    }
    return TesterPort(**values)


class FakeDevice:
    name: ClassVar[str] = "fake"
    title: ClassVar[str] = "a device that stands in"
    data_path = "process"
    reset_kinds = ("process",)

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.resets: list[str] = []

    def missing(self) -> tuple[Missing, ...]:
        return ()

    def counters(self) -> Mapping[str, int]:
        return dict(self.counts)

    def facts(self) -> Mapping[str, object]:
        return {"version": "1"}

    def restart(self, kind: str) -> None:
        self.resets.append(kind)


@dataclass
class FakeBed:
    """As much of a bed as Measure needs."""

    layer: int = 3
    encapsulation: Encapsulation = field(default_factory=Encapsulation)
    ports: tuple[TesterPort, ...] = (port("gen", 0), port("sink", 1))
    device: Any = field(default_factory=FakeDevice)
    placement: CoreAssignment = field(default_factory=lambda: CoreAssignment(tester=0, receiver=None, dut=0))
    priority: int = 0
    binding_count: int = 0
    workers: Mapping[str, bool] = field(default_factory=dict)
    site: DeviceSite = field(
        default_factory=lambda: DeviceSite(netns=None, ports=(), cpu=None, priority=0, folder=Path("/nonexistent"))
    )

    def bind_threads(self) -> None:
        self.binding_count += 1

    def bind_replaced_threads(self) -> None:
        pass

    def generator_core_workers(self) -> Mapping[str, bool]:
        return self.workers

    def device_threads(self) -> tuple[int, ...]:
        return ()

    def notes_for(self, entering: Collection[int]) -> tuple[str, ...]:
        return ()

    def facts(self) -> Mapping[str, object]:
        return {"name": "fake"}

    def tester_configuration(self, back_end: str = "auto") -> dict[str, Any]:
        return {"ports": [port.name for port in self.ports], "send": back_end}


class FakeSnapshotReader:
    """Links that stay up, of which the second receives frames; ``bend`` changes a snapshot before it is returned."""

    clock_step_s: ClassVar[float] = 0.0
    waiting_s: ClassVar[float] = 0.0
    """Time for which the device's thread waits for a core between two snapshots a second apart."""
    more: ClassVar[Callable[[int], dict[str, Any]]] = staticmethod(lambda number: {})
    """Further fields of a snapshot, by its number from 1."""
    bend: ClassVar[Callable[[dict[str, Any]], None]] = staticmethod(lambda links: None)

    def __init__(
        self, namespaces: Sequence[str | None], cores: Sequence[int], *, device_netns: str | None = None
    ) -> None:
        self.reads = 0

    def read(self, threads: Sequence[int] = (), device: Mapping[str, int] | None = None) -> MachineSnapshot:
        self.reads += 1
        links: dict[str, Any] = {
            f"rcfake{side}": {"is_up": True, "rx_frames": side * self.reads * 10**9} for side in (0, 1)
        }
        if self.reads > 1:
            FakeSnapshotReader.bend(links)
        return MachineSnapshot(
            at_s=float(self.reads),
            realtime_offset_s=FakeSnapshotReader.clock_step_s * self.reads,
            links={(None, name): link(name, **values) for name, values in links.items()},
            **{
                "cores": {},
                "threads_s": {},
                "waiting_s": {1: FakeSnapshotReader.waiting_s * self.reads},
                "device": device or {},
                **FakeSnapshotReader.more(self.reads),
            },
        )

    def close(self) -> None:
        pass


def link(name: str, **values: Any) -> LinkState:
    counts = ("carrier_changes", "rx_frames", "tx_frames", "rx_dropped_frames", "tx_dropped_frames", "rx_errors")
    state = {"mac": "", "mtu": 1500, "is_up": True, "has_carrier": True, "is_member": False}
    zeros = dict.fromkeys((*counts, "tx_errors", "rx_missed_frames"), 0)
    return LinkState(**{"name": name, **state, **zeros, **values})


def ten_microseconds(frames: int) -> str:
    """Return an HDR histogram of frames that all took 10 us."""
    histogram = HdrHistogram(1, 10**12, 3)
    histogram.record_value(10_000, max(frames, 1))
    return str(histogram.encode().decode())


def stream_outcome(stream: Mapping[str, Any], duration_s: float, loss_ratio: float = 0.0) -> dict[str, Any]:
    """Return the outcome of a faultless tester at a device that loses a share of the frames."""
    sent = stream.get("frames") or round(stream["rate_pps"] * duration_s)
    lost = round(loss_ratio * sent)
    size = stream["sizes"][0]["bytes"]
    distribution = {
        "count": sent - lost,
        **dict.fromkeys(("min_s", "mean_s", "p50_s", "p90_s", "p99_s", "p999_s", "max_s"), 1e-5),
        "hdr_base64": ten_microseconds(sent - lost),
    }
    return {
        "intended_frames": sent,
        "sent_frames": sent,
        "unsent_frames": 0,
        "received_frames": sent - lost,
        "lost_frames": lost,
        "duplicated_frames": 0,
        "reordered_frames": 0,
        "corrupted_frames": 0,
        "lost_runs": [[0, lost]] if lost else [],
        "lost_runs_truncated": False,
        "first_loss_s": 0.0 if lost else None,
        "last_loss_s": duration_s / 2 if lost else None,
        "longest_gap_s": 1.0 / stream["rate_pps"],
        "longest_gap_at_s": 0.0,
        "first_sent_s": 0.0,
        "last_sent_s": duration_s,
        "intended_pps": stream["rate_pps"],
        "achieved_pps": stream["rate_pps"],
        "late_frames": 0,
        "latest_s": 0.0,
        "received_bytes": size * (sent - lost),
        "latency": distribution if sent - lost else None,
        "ipdv": None,
        "flows": [],
    }


class FakeTester:
    """Answers every request; each of ``changes`` alters a counted trial, the last also all further trials.

    ``clock_s`` returns the time of the first counted frame on the monotonic clock.
    """

    def __init__(self, *changes: Change, loss_ratio: float = 0.0, clock_s: Callable[[], float] = lambda: 1.0) -> None:
        self.changes = list(changes)
        self.clock_s = clock_s
        self.loss_ratio = loss_ratio
        self.requests: list[dict[str, Any]] = []
        self.configuration: Mapping[str, Any] = {}
        self.is_closed = False

    def __call__(self, configuration: Mapping[str, Any]) -> FakeTester:
        self.configuration = configuration
        return self

    @property
    def counted(self) -> list[dict[str, Any]]:
        """The requests of frames that count, without learning frames."""
        return [request for request in self.requests if not request["streams"][0].get("frames")]

    def trial(self, request: str, on_progress: Callable[[float], object] | None = None) -> str:
        decoded = json.loads(request)
        self.requests.append(decoded)
        begin_s = self.clock_s()
        outcome: dict[str, Any] = {
            "streams": [
                stream_outcome(stream, decoded["duration_s"], self.loss_ratio) for stream in decoded["streams"]
            ],
            "foreign_frames": 0,
            "settled_s": 0.01,
            "back_end": {},
            "cpu": {"send_busy_ratio": 0.5, "send_preemptions": 0},
            "clock": {"monotonic_s": begin_s, "realtime_s": 2.0},
            "stopped": False,
        }
        if on_progress:
            on_progress(0.5)
            on_progress(1.0)
        if self.changes and not decoded["streams"][0].get("frames"):
            change = self.changes.pop(0) if len(self.changes) > 1 else self.changes[0]
            change(outcome)
        return json.dumps(outcome)

    def facts(self) -> str:
        return '{"back_end": "fake"}'

    def close(self) -> None:
        self.is_closed = True
