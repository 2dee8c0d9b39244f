"""Counters by core and by receive queue, as the kernel gives them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from routecast.lab.testbed import _snapshots as watch
from routecast.lab.testbed import links
from routecast.lab.testbed._snapshots import SnapshotReader
from routecast.lab.testbed.links import LinkReader


@pytest.fixture
def netns() -> Iterator[str]:
    name = f"q{os.getpid() % 100_000}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        queues_of = f"netns {name} numrxqueues 2 numtxqueues 2"
        command = f"ip link add v0 {queues_of} type veth peer name v1 {queues_of}"
        subprocess.run(command.split(), check=True)
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


@pytest.mark.wire
def test_an_interface_with_counters_by_queue_says_what_each_dropped(netns: str) -> None:
    with LinkReader(netns) as links:
        assert links.queue_drops("v0") == {0: 0, 1: 0}  # a pair that nothing crosses
        assert links.queue_drops("lo") == links.queue_drops("nowhere") == {}
    reader = SnapshotReader([netns, None], [0], device_netns=netns)
    try:
        assert reader.read().queue_drops == {(name, queue): 0 for name in ("v0", "v1") for queue in (0, 1)}
    finally:
        reader.close()


@pytest.mark.parametrize(
    ("name", "queue"),
    [
        ("rx_queue_0_drops", "0"),  # veth.c, virtio_net.c
        ("rx12_dropped", "12"),
        ("rx_3_missed", "3"),
        ("rx_queue_0_xdp_drops", None),  # what a program drops on purpose
        ("rx_queue_0_xdp_packets", None),
        ("tx_queue_0_xdp_xmit_errors", None),
        ("rx_dropped", None),  # of no queue
    ],
)
def test_counters_of_a_queues_drops_are_known_by_their_names(name: str, queue: str | None) -> None:
    result = links._DROPS.fullmatch(name)
    assert (result and result[1]) == queue


def test_interrupts_and_backlogs_are_read_by_core(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # man 5 proc_stat: user nice system idle iowait irq softirq steal, in hundredths of a second.
    # net/core/net-procfs.c, softnet_seq_show: processed, dropped, time_squeeze, ..., the 13th is the core.
    (tmp_path / "stat").write_text("cpu 1 1 1 1 1 1 1 1 0 0\ncpu1 100 0 100 500 0 50 200 50 0 0\n", encoding="utf-8")
    (tmp_path / "net").mkdir()
    row = ["00000000"] * 13
    row[0], row[1], row[2], row[12] = "000000ff", "0000000a", "00000003", "00000001"
    (tmp_path / "net" / "softnet_stat").write_text(" ".join(row) + "\n", encoding="utf-8")
    monkeypatch.setattr(watch, "Path", lambda path: tmp_path / str(path).removeprefix("/proc/"))
    (core,) = watch._core_times().values()
    ticks = watch._TICKS_PER_S
    assert (core.irq_s, core.softirq_s, core.busy_s) == (50 / ticks, 200 / ticks, 450 / ticks)
    assert (core.dropped_frames, core.squeezes) == (10, 3)
