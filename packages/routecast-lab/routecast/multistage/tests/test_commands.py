"""``routecast multistage``: what the commands say, and what they leave."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from in_process import completed
from prometheus_client.parser import text_string_to_metric_families

from routecast.lab.testbed import netns
from routecast.multistage._client import standing_routers, state_text, with_rates
from routecast.multistage._layout import Layout
from routecast.multistage._metrics import metrics
from routecast.multistage._tables import claims_lines
from routecast.multistage.reading import parse_multistage

Start = Callable[..., Any]


def printed(*arguments: str) -> str:
    """Return what a command prints, which succeeds."""
    done = completed("multistage", *arguments)
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


@pytest.fixture
def file(text: str, tmp_path: Path) -> Path:
    path = tmp_path / "mine.multistage.toml"
    path.write_text(text)
    return path


@pytest.mark.wire
def test_a_router_in_the_background(file: Path, text: str) -> None:
    name = parse_multistage(text).name
    options = ("--name", name)
    printed("up", str(file), "--background")
    try:
        again = completed("multistage", "up", str(file))
        assert again.returncode == 3
        assert "is in use by" in again.stderr
        status = json.loads(printed("status", "--json", "--interval", "0.1", *options))
        assert [row["name"] for row in status["routers"]] == ["br0", "br1", "br2"]
        printed("drain", "br0", "--idle", "100 ms", *options)
        printed("remove", "br0", *options)
        printed("add", "br7", "--cap", "20 kpps", "--weight", "2", *options)
        refused = completed("multistage", "fail", "br0", *options)
        assert (refused.returncode, "there is no element 'br0'" in refused.stderr) == (2, True)
        path = printed("trace", "udp", "198.18.1.2:1", "198.19.1.2:2", "--json", *options)
        assert json.loads(path)["router"] in {"br1", "br2", "br7"}
        printed("audit", str(file))
        failed = json.loads(printed("fail", "br1", "--kind", "hang", "--wait", "--json", "--name", str(file)))
        assert failed["state"] == "dead"
        assert failed["wait"]["took_s"] < 5.0
        printed("restore", "br1", "--wait", *options)
        printed("weight", "br1", "2", "--wait", *options)
        drained = completed("multistage", "drain", "br1", "--deadline", "5 s", "--wait", "--json", *options)
        assert (drained.returncode, json.loads(drained.stdout)["state"]) == (0, "drained")
    finally:
        printed("down", str(file))
    assert name not in standing_routers()
    assert not [entry for entry in netns.names() if entry.startswith(f"rc-{name}-")]


@pytest.mark.wire
def test_ctrl_c_takes_it_down_and_leaves_nothing(file: Path, text: str, start: Start) -> None:
    name = parse_multistage(text).name
    process = start(
        [sys.executable, "-m", "routecast", "multistage", "up", file, "--prometheus", "0"], stderr=subprocess.PIPE
    )
    port = ""
    while "is up" not in (line := process.stderr.readline()):
        assert line
        if result := re.search(r"127\.0\.0\.1:(\d+)", line):
            port = result[1]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
        served = page.read().decode()
    assert samples(served)["routecast_multistage_deaths_total", f"element=br1,router={name}"] == 0
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130
    assert not [entry for entry in netns.names() if entry.startswith(f"rc-{name}-")]
    assert name not in standing_routers()


@pytest.mark.wire
@pytest.mark.parametrize("moment_s", [0.5, 0.7, 0.9, 1.3])
def test_ctrl_c_leaves_nothing_however_early_and_often(file: Path, text: str, start: Start, moment_s: float) -> None:
    name = parse_multistage(text).name
    process = start(
        [sys.executable, "-m", "routecast", "multistage", "up", file],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    time.sleep(moment_s)
    while process.poll() is None:  # as a terminal does it: to the commands that it runs as well
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.01)
    assert not [entry for entry in netns.names() if entry.startswith(f"rc-{name}-")]
    assert name not in standing_routers()


def test_a_test_bed_that_is_not_up_cannot_be_queried() -> None:
    result = completed("multistage", "status", "--name", "nosuchrouter")
    assert result.returncode == 2
    assert "no router" in result.stderr


def test_a_wrong_file_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    path = tmp_path / "a.multistage.toml"
    path.write_text('name = "a"\n')
    result = completed("multistage", "up", str(path))
    assert result.returncode == 2
    assert "segment" in result.stderr


def _status(time_s: float, sent: int) -> dict[str, Any]:
    port = {"in_frames": sent, "out_frames": 0}
    router = dict.fromkeys(("sent_octets", "returned_octets", "over_the_cap", "deaths", "revivals", "seen_unix_s"), 0)
    return {
        "name": "r",
        "time_s": time_s,
        "epoch": 3,
        "routers": [{"name": "br0", "state": "active", "sent_frames": sent, "returned_frames": sent // 2, **router}],
        "balancers": [
            {
                "name": "lb0",
                "state": "active",
                "seen_unix_s": 0.0,
                "dropped": {"no_member": 7},
                "dropped_by_port": {"left": {"no_member": 7}, "to-routers": {"no_member": 0}},
                "ports": {"left": port},
            }
        ],
        "claims_dropped": {"left": {"foreign": 5, "own": 0, "refused": 2, "invalid": 0, "full": 0}},
    }


def test_rates_are_counts_over_time() -> None:
    result = with_rates(_status(10.0, 1000), _status(12.0, 3000))
    assert result["routers"][0]["in_pps"] == 1000.0
    assert result["routers"][0]["out_pps"] == 500.0
    assert result["balancers"][0]["ports"]["left"]["in_pps"] == 1000.0


def samples(text: str) -> dict[tuple[str, str], float]:
    """Return the samples of a page for Prometheus by name and labels, as its own client reads them."""
    return {
        (sample.name, ",".join(f"{label}={text}" for label, text in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_metrics_have_the_names_kinds_and_meanings_that_dashboards_use() -> None:
    kinds = {family.name: family.type for family in text_string_to_metric_families(metrics(_status(1.0, 5)))}
    counters = ("sent_frames", "sent_octets", "returned_frames", "returned_octets", "over_the_cap", "deaths")
    counters += ("revivals", "dropped_frames", "claims_dropped")
    gauges = ("up", "seen_timestamp_seconds", "epoch")
    assert kinds == {f"routecast_multistage_{name}": "counter" for name in counters} | {
        f"routecast_multistage_{name}": "gauge" for name in gauges
    }
    assert "# HELP routecast_multistage_up Whether an element takes frames." in metrics(_status(1.0, 5))


def test_metrics_name_each_element_and_reason() -> None:
    values = samples(metrics(_status(1.0, 5)))
    assert values["routecast_multistage_sent_frames_total", "element=br0,router=r"] == 5
    dropped = "element=lb0,port=left,reason=no_member,router=r"
    assert values["routecast_multistage_dropped_frames_total", dropped] == 7
    assert values["routecast_multistage_up", "element=br0,router=r,state=active"] == 1
    assert values["routecast_multistage_epoch", "router=r"] == 3
    assert min(values.values()) >= 0.0


def test_every_interface_and_address_of_a_layout_is_its_own(text: str) -> None:
    layout = Layout(parse_multistage(text))
    ends = [end for wire in layout.wires() for end in (wire.near, wire.far)]
    assert len({end[:2] for end in ends}) == len(ends)
    macs = [end[2] for end in ends if end[2]] + [layout.member_mac(number) for number in range(64)]
    assert len(set(macs)) == len(macs)


def test_claims_that_were_dropped_are_shown() -> None:
    (line,) = claims_lines(_status(10.0, 0))
    assert line.startswith("Claims dropped on left: 5 of another network, 2 while the owner answers;")


def test_who_does_not_answer_is_shown_with_the_time_of_its_last_sign() -> None:
    assert state_text({"state": "active", "seen_unix_s": 0.0}) == "active"
    assert state_text({"state": "not seen", "seen_unix_s": 86_400.0 * 365}).startswith("not seen since 197")
