"""The control socket under malformed requests, and a router whose disk is full: one sentence, and the state whole."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from routecast.errors import EnvironmentProblem
from routecast.multistage._client import SOCKET, send_request
from routecast.multistage._control import ControlServer
from routecast.multistage._disk import Events
from routecast.multistage.appliance import Appliance

pytestmark = pytest.mark.wire


@pytest.fixture
def served(router: Appliance) -> Iterator[Appliance]:
    """The example's router with its control socket."""
    server = ControlServer(router, lambda: None)
    yield router
    server.close()


def answer_to(path: Path, data: bytes) -> bytes:
    """What the control socket says to these octets, after which the client sends no more."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as handle:
        handle.settimeout(10.0)
        handle.connect(str(path))
        with contextlib.suppress(BrokenPipeError):  # who has the answer need not read on
            handle.sendall(data)
            handle.shutdown(socket.SHUT_WR)
        with handle.makefile("rb") as answers:
            return answers.read()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"{\n",
        b"[]\n",
        b"null\n",
        b'"status"\n',
        b"\xff\xfe\x00\n",
        b'{"request": "status"',
        b'{"request": 7, "arguments": {}}\n',
        b'{"request": "status", "arguments": []}\n',
        b'{"request": "status", "arguments": {"colour": "red"}}\n',
        b'{"request": "__class__", "arguments": {}}\n',
        b'{"request": "set_weight", "arguments": {"element": ["br0"], "weight": "x"}}\n',
        b'{"request": "fail", "arguments": {"element": "br0", "kind": "hang", "loss_ratio": 7}}\n',
        b'{"request": "fail", "arguments": {"element": "br0", "kind": "hang", "direction": "up"}}\n',
        b'{"request": "fail", "arguments": {"element": "br0", "kind": "link", "loss_ratio": 0.5}}\n',
        b'{"request": "status", "arguments": ' + b"[" * 30_000 + b"\n",
        b"x" * 200_000,
    ],
    ids=range(18),
)
def test_a_malformed_request_gets_a_sentence_and_changes_nothing(served: Appliance, data: bytes) -> None:
    before = served.status()
    answer = answer_to(served.folder / SOCKET, data)
    (line,) = answer.splitlines()
    assert json.loads(line)["refused"]
    assert "\n" not in json.loads(line)["refused"]
    after = send_request(served.name, "status")
    for key in ("epoch", "neighbours"):
        assert after[key] == before[key]
    assert [row["fault"] for row in after["routers"]] == ["", "", ""]


def test_a_request_of_another_version_is_named(served: Appliance) -> None:
    with pytest.raises(EnvironmentProblem, match="has no request 'elect': it is of another version"):
        send_request(served.name, "elect")


def test_a_doubled_request_is_done_once(served: Appliance) -> None:
    epoch = served.status()["epoch"]
    request = b'{"request": "set_weight", "arguments": {"element": "br0", "weight": 3.0}}\n'
    answer_to(served.folder / SOCKET, request + request)
    assert served.status()["epoch"] == epoch + 1


def test_what_cannot_be_written_is_not_done(router: Appliance) -> None:
    """A directory in the place of the file that is written first stands for a disk that takes no more."""
    obstacle = router.folder / "membership.json.unfinished"
    before, stored = router.status(), (router.folder / "membership.json").read_text()
    obstacle.mkdir()
    try:
        for change in (
            lambda: router.set_weight("br0", 5.0),
            lambda: router.drain("br0"),
            lambda: router.remove("br0"),
        ):
            with pytest.raises(
                EnvironmentProblem, match=r"membership\.json: cannot be written: .*; the change is not made"
            ):
                change()
            after = router.status()
            assert after["epoch"] == before["epoch"]
            assert [(row["name"], row["weight"], row["state"]) for row in after["routers"]] == [
                (row["name"], row["weight"], row["state"]) for row in before["routers"]
            ]
        assert (router.folder / "membership.json").read_text() == stored
    finally:
        obstacle.rmdir()
    router.set_weight("br0", 5.0)
    assert router.status()["epoch"] == before["epoch"] + 1
    assert router.audit()["problems"] == []


def test_events_outlive_the_process_and_a_line_that_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    events = Events(path)
    events.add("br1", "dead", "data path, 64 unanswered")
    events.add("br1", "alive", "")
    with path.open("a", encoding="utf-8") as file:
        file.write('{"number": 3, "time_un')
    again = Events(path)
    assert [row["what"] for row in again.after(0)] == ["dead", "alive"]
    assert again.add("br2", "dead", "")["number"] == 3
    assert [row["element"] for row in again.after(2)] == ["br2"]
    assert [row["what"] for row in Events(path).after(0)] == ["dead", "alive", "dead"]
