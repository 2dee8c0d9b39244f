"""The page for Prometheus, read by its own parser; and that what ships asks for nothing else."""

from __future__ import annotations

import configparser
import http.client
import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

import routecast.lab
from routecast.cli.run import run
from routecast.errors import EnvironmentProblem, QuantityProblem
from routecast.lab.tests.watch.fake_looks import MONDAY, look, saturation_at
from routecast.lab.watch import METRICS, Alarm, DayMemory, LatestRound, Rounds, parse_endpoint, serve

SHIPPED = Path(str(routecast.lab.__file__)).parent / "data" / "watch"
HOSTILE = 'a\\b"c\nd'


def samples(page: str) -> dict[tuple[str, ...], float]:
    """Return the values by name and labels other than those of the interface."""
    return {
        (
            sample.name,
            *(value for key, value in sample.labels.items() if key not in {"interface", "netns"}),
        ): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


def names(page: str) -> set[str]:
    return {name for name, *_ in samples(page)}


def full_page() -> str:
    """Return the page of a look of which everything is known, 2.5 s old."""
    rounds = Rounds(DayMemory("eth0", "blue"), alarms=[Alarm.parse("headroom < 20 %"), Alarm.parse("loss > 0")])
    clock = iter([10.0, 10.0, 12.5])
    latest = LatestRound(rounds, clock_s=lambda: next(clock))
    for number in range(97):
        at = MONDAY + number * timedelta(minutes=15)
        seen = rounds.add(look(1e6, saturation_at(2e6), {"interface": 2} if number < 2 else {}), at)
    latest.update(rounds.fail(EnvironmentProblem("gone"), at))
    latest.update(seen)
    next(clock)
    return latest.page()


def test_the_page_has_every_metric_with_its_value() -> None:
    values = samples(full_page())
    assert {name for name, *_ in values} == set(METRICS)
    assert values["routecast_watch_rate_packets_per_second",] == 1e6
    assert values["routecast_watch_saturation_packets_per_second",] == 2e6
    assert values["routecast_watch_saturation_low_packets_per_second",] < 2e6
    assert values["routecast_watch_headroom_ratio",] == pytest.approx(1.0)
    assert values["routecast_watch_busy_ratio",] == 0.4
    assert values["routecast_watch_looks_total",] == 97
    assert values["routecast_watch_failed_looks_total",] == 1
    assert values["routecast_watch_lost_packets_total", "interface"] == 4
    assert values["routecast_watch_look_age_seconds",] == pytest.approx(2.5)
    assert values["routecast_watch_alarm", "loss > 0"] == 0
    assert 0.0 < values["routecast_watch_loss_at_peak_probability",] < 0.01


def test_each_metric_has_its_help_and_type_before_its_samples() -> None:
    lines = full_page().splitlines()
    for name, meaning in METRICS.items():
        kind = "counter" if name.endswith("_total") else "gauge"
        at = lines.index(f"# HELP {name} {meaning}")
        assert lines[at + 1] == f"# TYPE {name} {kind}"
        assert lines[at + 2].startswith(f"{name}{{")
    assert full_page().endswith("\n")


def test_what_is_not_known_is_left_out() -> None:
    rounds = Rounds(DayMemory("eth0"), alarms=[Alarm.parse("headroom < 20 %")])
    latest = LatestRound(rounds)
    assert names(latest.page()) == {"routecast_watch_looks_total", "routecast_watch_failed_looks_total"}
    latest.update(rounds.add(look(), MONDAY))
    assert names(latest.page()) == {
        "routecast_watch_looks_total",
        "routecast_watch_failed_looks_total",
        "routecast_watch_rate_packets_per_second",
        "routecast_watch_busy_ratio",
        "routecast_watch_look_age_seconds",
    }


def test_labels_are_escaped() -> None:
    rounds = Rounds(DayMemory(HOSTILE, HOSTILE))
    latest = LatestRound(rounds)
    latest.update(rounds.add(look(lost={HOSTILE: 1}), MONDAY))
    labels = [
        sample.labels
        for family in text_string_to_metric_families(latest.page())
        for sample in family.samples
        if sample.name == "routecast_watch_lost_packets_total"
    ]
    assert labels == [{"interface": HOSTILE, "netns": HOSTILE, "place": HOSTILE}]


@contextmanager
def served(latest: LatestRound) -> Iterator[int]:
    server = serve("0", latest)
    try:
        yield server.port
    finally:
        server.close()


def test_the_page_is_served_on_this_machine_only() -> None:
    latest = LatestRound(Rounds(DayMemory("eth0")))
    with served(latest) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10.0)
        connection.request("GET", "/metrics?name=x")
        answer = connection.getresponse()
        assert answer.status == 200
        assert answer.getheader("Content-Type") == "text/plain; version=0.0.4; charset=utf-8"
        assert names(answer.read().decode()) >= {"routecast_watch_looks_total"}
        connection.request("GET", "/else")
        assert connection.getresponse().status == 404
        connection.close()


def test_a_port_in_use_is_a_sentence() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(EnvironmentProblem, match=f"^port {port} of 127.0.0.1: Address already in use$"):
            serve(str(port), LatestRound(Rounds(DayMemory("eth0"))))


@pytest.mark.parametrize(
    "text", ["", "x", ":9464", "65536", "127.0.0.1", "127.0.0.1:", "::1:9464", "[::1]", "1:2:3", "-1"]
)
def test_what_is_no_port_is_refused(text: str) -> None:
    with pytest.raises(QuantityProblem, match="is no port"):
        parse_endpoint(text)


def test_the_dashboard_queries_only_what_the_page_has() -> None:
    dashboard = json.loads((SHIPPED / "headroom.dashboard.json").read_text(encoding="utf-8"))
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    queries += [variable["query"] for variable in dashboard["templating"]["list"]]
    queried = set(re.findall(r"routecast_\w+", " ".join(queries)))
    assert queried == set(METRICS)
    identities = [panel["id"] for panel in dashboard["panels"]]
    assert len(identities) == len(set(identities))


def unit(folder: Path) -> configparser.ConfigParser:
    parsed = configparser.ConfigParser(strict=False, interpolation=None)
    parsed.optionxform = str  # type: ignore[assignment,method-assign]
    parsed.read(folder / "routecast-watch@.service", encoding="utf-8")
    return parsed


def test_the_unit_keeps_what_it_learns_and_puts_back_what_it_left() -> None:
    service = unit(SHIPPED)["Service"]
    assert " watch %i --every 60s " in service["ExecStart"]
    assert "--state /var/lib/routecast/watch-%i.json" in service["ExecStart"]
    assert service["StateDirectory"] == "routecast"
    assert service["ExecStopPost"].endswith("routecast watch --restore")
    assert {"CAP_BPF", "CAP_PERFMON", "CAP_NET_ADMIN"} <= set(service["CapabilityBoundingSet"].split())
    (condition,) = re.findall(r'--alarm "([^"]*)"', service["ExecStart"])
    assert str(Alarm.parse(condition.replace("%%", "%"))) == "P(loss at daily peak) > 1 %"
    assert service["Environment"] == "METRICS=127.0.0.1:9464"


def test_the_files_are_written_with_the_path_of_the_program(tmp_path: Path) -> None:
    assert run(["watch", "--write-unit", str(tmp_path)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["headroom.dashboard.json", "routecast-watch@.service"]
    assert Path(unit(tmp_path)["Service"]["ExecStart"].split()[0]).is_absolute()
    (tmp_path / "headroom.dashboard.json").write_text("mine", encoding="utf-8")
    assert run(["watch", "--write-unit", str(tmp_path)]) == 2
    assert (tmp_path / "headroom.dashboard.json").read_text(encoding="utf-8") == "mine"
