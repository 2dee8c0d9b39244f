"""A process of a device that ends by itself is told from one that a reset ends."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from routecast.errors import DeviceEnded
from routecast.lab.testbed.devices.processes import Processes
from routecast.lab.testbed.dut_host import DeviceSite


@pytest.fixture
def site(tmp_path: Path) -> DeviceSite:
    return DeviceSite(netns=None, ports=(), cpu=None, priority=0, folder=tmp_path)


def test_a_process_that_ends_by_itself_is_the_end_of_the_device(site: DeviceSite) -> None:
    processes = Processes()
    processes.spawn(site, "daemon", "sh", "-c", "echo no more room; exit 7").wait()
    with pytest.raises(DeviceEnded, match=r"daemon: ended by itself with .*7: no more room"):
        processes.check()
    processes.stop()


def test_a_process_that_a_reset_ends_is_not_missed(site: DeviceSite) -> None:
    processes = Processes()
    running = processes.spawn(site, "daemon", "sleep", "60")
    processes.check()
    processes.stop()
    assert running.poll() is not None
    processes.check()
    again = processes.spawn(site, "daemon", "sleep", "60")
    time.sleep(0.05)
    processes.check()
    processes.stop()
    assert again.poll() is not None
