"""The commands of a router that is up, against a process that answers their requests from a script."""

from __future__ import annotations

import json
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from in_process import completed

from routecast.cli.console import data, print_plain_table, print_table
from routecast.lab.testbed import state
from routecast.multistage import _client
from routecast.multistage._client import event_line
from routecast.multistage._tables import audit_table, balancers_table, routers_table
from routecast.multistage.prediction import predicted_death, predicted_takeover

HEAVY = {
    *("numpy", "pydantic", "typer", "rich", "polars", "importlib.metadata"),
    *(
        "routecast._core",
        "routecast.lab._lab",
        "routecast.lab.testbed",
        "routecast.multistage.appliance",
        "routecast.multistage.reading",
    ),
    *("routecast.quantity", "routecast.evaluate", "routecast.cli.app"),
}


class Script:
    """A router whose process is a script: ``answers`` by request; ``requests`` has what was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.faults: dict[str, str] = {}
        self.states = {"br0": "active", "br1": "active", "lb0": "active", "lb1": "standby"}
        self.frames = 0
        self.answers: dict[str, Callable[..., Any]] = {"status": self.status}

    def status(self) -> dict[str, Any]:
        """Return a status in which br0 gets 12.5 frames more each ms."""
        self.frames = int(12_500 * time.monotonic())
        counts = dict.fromkeys(("deaths", "revivals", "over_the_cap", "sent_octets", "returned_octets"), 0)
        port = {"in_frames": self.frames, "out_frames": 0}
        return {
            "name": "demo",
            "time_s": self.frames / 12_500,
            "epoch": 7,
            "detector": {"silence_s": 0.05, "unanswered": 64},
            "routers": [
                {
                    "name": name,
                    "state": self.states[name],
                    "seen_unix_s": time.time(),
                    "fault": self.faults.get(name, ""),
                    "weight": 1.0,
                    "cap_pps": None,
                    "forwarding": "linux",
                    "sent_frames": self.frames,
                    "returned_frames": self.frames,
                    **counts,
                }
                for name in ("br0", "br1")
                if name in self.states
            ],
            "claims_dropped": {},
            "balancers": [
                {
                    "name": name,
                    "state": self.states[name],
                    "seen_unix_s": time.time(),
                    "fault": self.faults.get(name, ""),
                    "epoch": 7,
                    "dropped": {"no_member": 0},
                    "ports": {"left": port if name == "lb0" else dict.fromkeys(port, 0)},
                }
                for name in ("lb0", "lb1")
            ],
        }


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Script]:
    folder = tmp_path / "run" / "demo.multistage"
    folder.mkdir(parents=True)
    monkeypatch.setattr(_client, "RUN_FOLDER", folder.parent)
    served = Script(folder.parent)

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            asked = json.loads(self.rfile.readline())
            if asked["request"] != "status":
                served.requests.append((asked["request"], asked["arguments"]))
            answer = served.answers.get(asked["request"], lambda **_: None)(**asked["arguments"])
            self.wfile.write(json.dumps({"result": answer}).encode() + b"\n")

    with socketserver.ThreadingUnixStreamServer(str(folder / _client.SOCKET), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield served
        server.shutdown()


def run(*words: str, code: int = 0) -> Any:
    """Return a finished command, whose exit code is ``code``."""
    done = completed("multistage", *words)
    assert done.returncode == code, done.stderr
    return done


def document(*words: str, code: int = 0) -> dict[str, Any]:
    return dict(json.loads(run(*words, "--json", code=code).stdout))


@pytest.mark.parametrize(
    "words",
    [
        ("status", "--once", "--json", "--interval", "0.05"),
        ("trace", "udp", "198.18.1.2:1", "198.19.1.2:2"),
        ("fail", "br0"),
        ("restore", "br0", "--json"),
        ("remove", "br0"),
        ("weight", "br0", "2"),
        ("add", "br0"),
        ("events",),
    ],
    ids=lambda words: str(words[0]),
)
def test_a_command_of_a_router_that_is_up_imports_nothing_heavy(script: Script, words: tuple[str, ...]) -> None:
    script.answers |= {"events": lambda after: [], "trace": lambda **_: {"router": "br0", "because": ["its row"]}}
    code = f"""
import sys, pathlib
from routecast.multistage import _client
_client.RUN_FOLDER = pathlib.Path({str(script.folder)!r})
from routecast.cli import main
try:
    main(["multistage", *{list(words)!r}])
except SystemExit as leave:
    print(leave.code, *sys.modules, sep="\\n", file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stderr.split()
    assert "0" in loaded
    assert "routecast.multistage.verbs" in loaded  # else the list is not that of the command
    assert HEAVY & set(loaded) == set()


def test_the_folder_of_routers_is_that_of_test_beds() -> None:
    assert _client.RUN_FOLDER == state.FOLDER


def test_what_is_not_plain_goes_to_the_whole_command_line(script: Script) -> None:
    assert "--deadline" in run("drain", "--help").stdout
    assert "Missing argument" in run("drain", code=2).stderr
    assert "No such option" in run("drain", "br0", "--dedline", "3 s", code=2).stderr
    assert run("weight", "br0", "two", code=2).stderr
    assert run("status", "--interval", "900", code=2).stderr
    assert script.requests == []


def test_both_readers_of_the_command_line_give_the_same_values(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("drain", "br0", "--idle=2 s", "--deadline", "3 s")
    run(*words)
    monkeypatch.setattr("routecast.cli.thin._installed_wings", lambda: iter(()))
    run(*words)
    assert script.requests == [("drain", {"element": "br0", "idle_s": 2.0, "deadline_s": 3.0})] * 2


def test_verbs_take_the_name_or_the_file_of_the_router(script: Script, tmp_path: Path) -> None:
    file = tmp_path / "mine.multistage.toml"
    file.write_text('name = "demo"\n')
    script.answers["audit"] = lambda: {"is_equal": True, "problems": [], "balancers": {}, "routers": {}}
    for which in (str(file), "demo"):
        assert document("status", which, "--interval", "0.05")["name"] == "demo"
        run("audit", which)
        run("remove", "br1", "--name", which)
    file.write_text('name = "other"\n')
    assert f"no router 'other' ({file}); there are: demo" in run("status", str(file), code=2).stderr
    assert "another router" not in run("down", "demo", "--name", str(file), code=2).stderr
    file.write_text("segment = []\n")
    assert "name: is missing" in run("down", str(file), code=2).stderr
    file.write_text("name = \n")
    assert "is no TOML" in run("down", str(file), code=2).stderr
    assert "No such file" in run("down", str(tmp_path / "absent.toml"), code=2).stderr


def test_down_takes_the_file(script: Script, tmp_path: Path) -> None:
    file = tmp_path / "mine.multistage.toml"
    file.write_text('name = "demo"\n')
    folder = script.folder / "demo.multistage"
    script.answers["down"] = lambda: folder.rename(folder.with_suffix(".gone")) and None
    assert "demo is down" in run("down", str(file)).stderr


def test_a_failure_is_predicted_waited_for_and_reported(script: Script) -> None:
    def fail(element: str, kind: str) -> None:
        script.faults[element] = kind
        threading.Timer(0.2, lambda: script.states.update({element: "dead"})).start()

    script.answers["fail"] = fail
    result = document("fail", "br0", "--kind", "hang", "--wait")
    assert (result["request"], result["element"], result["epoch"], result["state"]) == ("fail", "br0", 7, "dead")
    assert result["arguments"] == {"kind": "hang"}
    rate_pps = result["prediction"]["rate_pps"]
    assert rate_pps == pytest.approx(12_500, rel=0.02)
    death = predicted_death(rate_pps=rate_pps, silence_s=0.05, unanswered_frames=64)
    assert result["prediction"]["away_s"] == death.detection_s
    assert result["prediction"]["lost_frames"] == pytest.approx(death.lost_frames)
    assert result["wait"]["is_reached"]
    assert result["wait"]["took_s"] >= 0.2


def test_the_loss_of_a_takeover_is_predicted(script: Script) -> None:
    prediction = document("fail", "lb0")["prediction"]
    assert prediction["lost_frames"] == pytest.approx(0.22 * 12_500, rel=0.02)
    assert prediction["away_s"] == predicted_takeover(rate_pps=1.0).detection_s
    assert "standby" in document("fail", "lb1")["prediction"]["text"]


def test_a_wait_that_ends_without_the_state_exits_with_1(script: Script) -> None:
    done = run("fail", "br0", "--wait", "--timeout", "100 ms", "--json", code=1)
    assert json.loads(done.stdout)["wait"]["is_reached"] is False
    assert "br0 is not seen to fail within 0.1 s; its state is active" in done.stderr
    assert run("remove", "br0", "--wait", "--timeout", "100 ms", code=1)


def test_the_standby_takes_over_from_a_balancer_that_is_seen_to_fail(script: Script) -> None:
    def fail(element: str, kind: str) -> None:
        script.faults[element] = kind
        script.states |= {"lb0": "standby", "lb1": "active"}

    script.answers["fail"] = fail
    assert "lb0 is seen to fail after" in run("fail", "lb0", "--wait").stderr
    script.answers["restore"] = lambda element: script.faults.clear()
    assert "lb0 is back after" in run("restore", "lb0", "--wait").stderr


def test_drain_waits_until_the_router_is_drained(script: Script) -> None:
    script.answers["drain"] = lambda **_: script.states.update(br0="draining")
    threading.Timer(0.3, lambda: script.states.update(br0="drained")).start()
    result = document("drain", "br0", "--deadline", "5 s", "--wait")
    assert result["state"] == "drained"
    assert result["wait"]["timeout_s"] == 10.0


def test_weights_are_waited_for_in_the_tables_of_all_load_balancers(script: Script) -> None:
    assert run("weight", "br0", "1", "--wait")
    assert "weight 3" in run("weight", "br0", "3", "--wait", "--timeout", "50 ms", code=1).stderr


def test_direction_and_loss_are_sent_only_if_given(script: Script) -> None:
    run("fail", "br0")
    run("fail", "br0", "--direction", "in", "--loss", "20%")
    assert script.requests == [
        ("fail", {"element": "br0", "kind": "link"}),
        ("fail", {"element": "br0", "kind": "link", "direction": "in", "loss_ratio": 0.2}),
    ]
    assert "in, out or both" in run("fail", "br0", "--direction", "up", code=2).stderr
    assert "--loss" in run("fail", "br0", "--loss", "many", code=2).stderr
    text = document("fail", "br0", "--loss", "20%")["prediction"]["text"]
    assert text.startswith("it loses 20 % of its frames, 2")


def test_an_audit_repairs_on_request_and_exits_with_1_if_the_tables_differ(script: Script) -> None:
    result = {"is_equal": False, "problems": ["lb0: its table is old"], "balancers": {}, "routers": {}}
    script.answers["audit"] = lambda repair=False: {**result, "is_equal": repair}
    assert "its table is old" in run("audit", code=1).stderr
    run("audit", "--repair")
    assert script.requests == [("audit", {}), ("audit", {"repair": True})]


def test_an_audit_waits_for_an_element_that_comes_back(script: Script) -> None:
    answers = [{"is_equal": False, "problems": ["br1: dead since 12:03:04.051"], "balancers": {}, "routers": {}}]
    answers += [*answers, {**answers[0], "is_equal": True, "problems": []}]
    script.answers["audit"] = lambda: answers.pop(0)
    run("audit", "--wait")
    assert not answers
    script.answers["audit"] = lambda: {"is_equal": False, "problems": ["br1: dead"], "balancers": {}, "routers": {}}
    assert "br1: dead" in run("audit", "--wait", "--timeout", "200 ms", code=1).stderr


def _event(number: int, time_unix_s: float) -> dict[str, Any]:
    detail = "data path, 64 unanswered" if number == 1 else ""
    return {"number": number, "time_unix_s": time_unix_s, "element": "br1", "what": "dead", "detail": detail}


def test_an_event_is_a_line_with_its_local_time() -> None:
    noon = time.mktime((2026, 3, 1, 12, 3, 4, 0, 0, -1))
    assert event_line(_event(1, noon + 0.051), noon) == "br1 dead 12:03:04.051, data path, 64 unanswered"
    assert event_line(_event(2, noon + 0.9996), noon) == "br1 dead 12:03:05.000"
    assert event_line(_event(2, noon), noon + 86_400) == "br1 dead 2026-03-01 12:03:04.000"


def test_events_are_printed_since_a_time(script: Script) -> None:
    now = time.time()
    rows = [_event(1, now - 3600.0), _event(2, now - 5.0)]
    script.answers["events"] = lambda after: [row for row in rows if row["number"] > after]
    assert len(run("events").stdout.splitlines()) == 2
    for since in ("60 s", time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now - 60.0))):
        assert [row["number"] for row in json.loads(run("events", "demo", "--json", "--since", since).stdout)] == [2]
    assert "is no time" in run("events", "--since", "yesterday", code=2).stderr


def test_events_are_followed_by_their_numbers(script: Script) -> None:
    asked: list[int] = []

    def events(after: int) -> list[dict[str, Any]]:
        asked.append(after)
        return [_event(after + 1, time.time())] if after < 3 else _ended()

    def _ended() -> list[dict[str, Any]]:
        raise ConnectionError

    script.answers["events"] = events
    lines = run("events", "--follow", "--json", code=3).stdout.splitlines()
    assert [json.loads(line)["number"] for line in lines] == [1, 2, 3]
    assert asked == [0, 1, 2, 3]


def test_plain_tables_are_those_of_rich(script: Script, capsys: pytest.CaptureFixture[str]) -> None:
    before = _client.send_request("demo", "status")
    script.states["br1"] = "dead"  # a row that is marked
    rates = _client.with_rates(before, _client.send_request("demo", "status"))
    audit = {"balancers": {"lb0": {"rows": "c6", "neighbours": "d3b14199", "epoch": 1}}, "routers": {"br0": "aa9e7"}}
    for table in (routers_table(rates), balancers_table(rates), audit_table(audit)):
        print_plain_table(table)
        plain = capsys.readouterr().out
        print_table(data(), table)
        rich = capsys.readouterr().out
        assert [line.rstrip() for line in plain.splitlines()] == [line.rstrip() for line in rich.splitlines()]
