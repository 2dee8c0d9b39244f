"""``routecast power meters`` and ``power read`` as people call them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from routecast.cli.run import run
from routecast.lab.testbed.meters import find_meters


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


Routecast = Callable[..., Done]


@pytest.fixture
def routecast(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Routecast:
    """Run a command in this process."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")

    def command(*arguments: str) -> Done:
        code = run(list(arguments))
        written = capsys.readouterr()
        return Done(code, written.out, written.err)

    return command


def log_of(folder: Path, watts: float) -> Path:
    """A log whose rows lie before, within and after the next minute."""
    path = folder / "pdu.csv"
    now_s = time.time()
    path.write_text("time,watts\n" + f"{now_s - 60},{watts}\n")
    return path


def test_the_list_names_every_meter_with_its_scope_and_why_not(routecast: Routecast) -> None:
    done = routecast("power", "meters")
    assert done.returncode == 0
    for find_meter in find_meters():
        assert find_meter.name in done.stdout
        assert find_meter.is_readable or find_meter.why_not.split()[0] in done.stdout


def test_the_list_as_json_says_why_there_is_no_power_where_there_is_none(routecast: Routecast) -> None:
    document = json.loads(routecast("power", "meters", "--json").stdout)
    assert [item["name"] for item in document["meters"]] == [find_meter.name for find_meter in find_meters()]
    is_any = any(entry["is_readable"] for entry in document["meters"])
    assert (document["no_power"] is None) == is_any
    assert is_any or document["no_power"].startswith("no power here, because: rapl: ")


def test_reading_where_there_is_no_meter_leaves_with_3_and_the_reasons(routecast: Routecast) -> None:
    if any(item.is_readable for item in find_meters()):
        pytest.skip("this machine has a power meter")
    done = routecast("power", "read", "--duration", "1 s")
    assert (done.returncode, done.stdout) == (3, "")
    for find_meter in find_meters():
        assert find_meter.needs_address or f"{find_meter.name}: " in done.stderr


@pytest.mark.slow
def test_a_log_is_read_while_it_grows(
    tmp_path: Path, start: Callable[..., subprocess.Popen[str]], until: Callable[..., None]
) -> None:
    path = log_of(tmp_path, 120.0)
    reader = start(
        [
            *(sys.executable, "-m", "routecast", "power", "read", "--meter", f"csv:{path}"),
            *("--duration", "600 ms", "--interval", "100 ms", "--scope", "wall", "--json"),
        ],
        stdout=subprocess.PIPE,
    )
    with path.open("a") as file:

        def grown() -> bool:
            file.write(f"{time.time():.6f},120\n")
            file.flush()
            return reader.poll() is not None

        until(grown, "the log was read")
    document = json.loads(reader.communicate(timeout=60)[0])
    assert reader.returncode == 0
    assert (document["scope"], document["mean_w"], document["max_w"]) == ("wall", 120.0, 120.0)
    assert document["energy_j"] == pytest.approx(120.0 * document["metered_s"])


@pytest.mark.slow
def test_a_log_that_stands_still_leaves_with_3(tmp_path: Path, routecast: Routecast) -> None:
    done = routecast("power", "read", "--meter", f"csv:{log_of(tmp_path, 5.0)}", "--duration", "10 ms")
    assert done.returncode == 3
    assert "gave no reading: nothing was appended" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--meter", "rappl"), 2, 'did you mean "rapl"'),
        (("--meter", "csv:/nowhere/pdu.csv"), 3, "No such file"),
        (("--duration", "10"), 2, "has no unit"),
        (("--meter", "https://admin:hunter2@bmc/x"), 2, "ROUTECAST_POWER_PASSWORD"),
        (("--meter", "redfish:http://192.0.2.1"), 3, "in the clear"),
    ],
)
def test_what_is_wrong_is_reported_with_its_exit_code(
    arguments: tuple[str, ...], code: int, words: str, routecast: Routecast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROUTECAST_POWER_USER", "admin")
    monkeypatch.setenv("ROUTECAST_POWER_PASSWORD", "hunter2")
    done = routecast("power", "read", *arguments)
    assert done.returncode == code
    assert words in done.stderr
    assert "hunter2" not in done.stdout + done.stderr
