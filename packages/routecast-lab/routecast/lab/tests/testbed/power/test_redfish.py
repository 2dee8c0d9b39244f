"""Redfish and other web meters, against a controller on loopback."""

from __future__ import annotations

import copy
import math
import shutil
import subprocess
import threading
from pathlib import Path

import pytest
from power_fakes import Clock
from redfish_mock import ENVIRONMENT, PASSWORD, RACK, TOKEN, Mock, chassis, controller, environment, members, power

from routecast.errors import EnvironmentProblem, FileProblem
from routecast.lab.testbed.meters import HttpSource, Metering, PowerReading, RedfishSource, SampledMeter
from routecast.lab.testbed.meters._web import Credentials, masked

NOBODY = Credentials()
ADMIN = Credentials(user="admin", password=PASSWORD)


def read_once(
    mock: Mock, credentials: Credentials = NOBODY, path: str = "", timeout_s: float = 5.0
) -> dict[str, float]:
    source = RedfishSource(f"{mock.url}{path}", credentials=credentials, timeout_s=timeout_s)
    source.open()
    try:
        values = source.read()
        return {zone.name: values[zone.name] for zone in source.zones if zone.is_counted}
    finally:
        source.close()


def refusal(mock: Mock, credentials: Credentials = NOBODY, path: str = "", timeout_s: float = 5.0) -> str:
    with controller(mock), pytest.raises(EnvironmentProblem) as caught:
        read_once(mock, credentials, path, timeout_s)
    assert PASSWORD not in str(caught.value)
    assert TOKEN not in str(caught.value)
    return str(caught.value)


def test_the_older_document_tells_the_whole_and_its_parts_are_not_added() -> None:
    with controller(Mock(RACK)) as mock:
        assert read_once(mock) == {"chassis 1U": 344.0}


@pytest.mark.slow
def test_all_requests_use_one_connection() -> None:
    with controller(Mock(RACK)) as mock:
        source = RedfishSource(mock.url, credentials=NOBODY)
        source.open()
        readings = [source.read() for _ in range(5)]
        source.close()
    assert readings == 5 * [{"chassis 1U": 344.0}]
    assert len(mock.requested_paths) == 8
    assert len(mock.callers) == 1


def test_a_connection_that_the_controller_ended_is_made_anew() -> None:
    with controller(Mock(RACK, headers={"Connection": "close"})) as mock:
        assert read_once(mock) == {"chassis 1U": 344.0}
    assert len(mock.callers) == len(mock.requested_paths) == 4


def test_the_newer_document_goes_before_the_older() -> None:
    with controller(Mock(ENVIRONMENT)) as mock:
        assert read_once(mock) == {"chassis 1U": 374.0}


@pytest.mark.slow
def test_the_older_document_stands_in_where_the_newer_is_linked_but_not_there_or_empty() -> None:
    for change in ({}, {"/redfish/v1/Chassis/1U/EnvironmentMetrics": environment(None)}):
        documents = {**ENVIRONMENT, **change}
        if not change:
            del documents["/redfish/v1/Chassis/1U/EnvironmentMetrics"]
        documents["/redfish/v1/Chassis/1U/Power"] = power({"Name": "System", "PowerConsumedWatts": "69"})
        with controller(Mock(documents)) as mock:
            assert read_once(mock) == {"chassis 1U": 69.0}  # as a text: some controllers write it so


def test_one_chassis_can_be_named() -> None:
    with controller(Mock(RACK)) as mock:
        assert read_once(mock, path="/redfish/v1/Chassis/1U/") == {"chassis 1U": 344.0}
        assert "/redfish/v1/Chassis" not in mock.requested_paths


@pytest.mark.slow
def test_an_enclosure_holds_the_power_of_what_is_in_it_and_neighbours_add_up() -> None:
    documents = {
        "/redfish/v1/Chassis": members("box", "blade", "shelf", "empty"),
        "/redfish/v1/Chassis/box": chassis("box", EnvironmentMetrics="/e/box"),
        "/redfish/v1/Chassis/blade": chassis("blade", EnvironmentMetrics="/e/blade", within="/redfish/v1/Chassis/box"),
        "/redfish/v1/Chassis/shelf": chassis("shelf", EnvironmentMetrics="/e/shelf"),
        "/redfish/v1/Chassis/empty": chassis("empty"),
        "/e/box": environment(500),
        "/e/blade": environment(200),
        "/e/shelf": environment(100.5),
    }
    with controller(Mock(documents)) as mock:
        source = RedfishSource(mock.url, credentials=NOBODY)
        clock = Clock()
        with Metering(SampledMeter(source, interval_s=math.inf, clock=clock)) as metered:
            clock.wait(2.0)
    assert metered.reading.mean_w == pytest.approx(600.5)
    assert {zone.name: zone.is_counted for zone in metered.reading.zones} == {
        "chassis box": True,
        "chassis blade": False,
        "chassis shelf": True,
    }


def test_watts_between_samples_lie_on_a_straight_line_and_the_energy_counter_is_reported() -> None:
    documents = copy.deepcopy(ENVIRONMENT)
    path = "/redfish/v1/Chassis/1U/EnvironmentMetrics"
    clock = Clock()
    with controller(Mock(documents)) as mock:
        meter = SampledMeter(RedfishSource(mock.url, credentials=NOBODY), interval_s=math.inf, clock=clock)
        documents[path] = environment(100, 10.0)
        with Metering(meter) as metered:
            assert meter.latest_w() == 100.0
            clock.wait(10.0)
            documents[path] = environment(300, 10.0006)
            meter.sample()
            clock.wait(30.0)
    reading: PowerReading = metered.reading
    # 10 s from 100 to 300 W, 30 s at 300 W
    assert reading.energy_j == pytest.approx(10 * 200 + 30 * 300)
    assert (reading.min_w, reading.max_w, reading.scope) == (100.0, 300.0, "bmc")
    assert any("rose by 2160 J" in note for note in reading.notes)  # 0.0006 kWh


@pytest.mark.parametrize("credentials", [ADMIN, Credentials(token=TOKEN)])
def test_a_password_or_a_token_lets_in(credentials: Credentials) -> None:
    needs = "token" if credentials.token else "basic"
    with controller(Mock(RACK, needs=needs)) as mock:
        assert read_once(mock, credentials) == {"chassis 1U": 344.0}


def test_a_refused_login_is_answered_with_the_place_of_the_password() -> None:
    output = refusal(Mock(RACK, needs="basic"))
    assert "401" in output
    assert "ROUTECAST_POWER_PASSWORD" in output
    assert "not accepted" in refusal(Mock(RACK, needs="token"), ADMIN)


def test_a_chassis_that_is_not_there_is_404() -> None:
    assert "404" in refusal(Mock(RACK), path="/redfish/v1/Chassis/2U")


@pytest.mark.parametrize("control", [{"PowerConsumedWatts": None}, {}, {"PowerConsumedWatts": True}])
def test_a_chassis_without_the_field_says_what_is_missing(control: dict[str, object]) -> None:
    documents = {**RACK, "/redfish/v1/Chassis/1U/Power": power({"Name": "System", **control})}
    output = refusal(Mock(documents))
    assert "no chassis reports its power (looked at 1U)" in output


def test_a_slow_controller_is_given_up_after_the_time_limit() -> None:
    release = threading.Event()
    try:
        output = refusal(Mock(RACK, before=lambda path: release.wait(20.0)), timeout_s=0.05)
    finally:
        release.set()
    assert "did not answer within 0.05 s" in output


@pytest.mark.parametrize(
    ("raw", "words"), [(b"<html>", "not JSON"), (b"[1]", "not a Redfish resource"), (b'{"a": 1}', "no Members")]
)
def test_what_is_no_redfish_is_reported(raw: bytes, words: str) -> None:
    assert words in refusal(Mock({}, raw={"/redfish/v1/Chassis": raw}))


def test_a_redirect_is_not_followed_with_the_password() -> None:
    mock = Mock(RACK, status={"/redfish/v1/Chassis": 307}, headers={"Location": "http://elsewhere/?key=1"})
    output = refusal(mock, ADMIN)
    assert "http://elsewhere/?key=***" in output
    assert len(mock.requested_paths) == 1


def test_a_document_cannot_send_the_password_to_another_host() -> None:
    documents = {
        **RACK,
        "/redfish/v1/Chassis": {"Members": [{"@odata.id": "//elsewhere/redfish"}, {"@odata.id": "http://x/y"}]},
    }
    assert "looked at none" in refusal(Mock(documents), ADMIN)


@pytest.mark.slow
def test_a_controller_that_fails_on_the_way_leaves_a_note_and_what_was_read() -> None:
    clock = Clock()
    with controller(Mock(RACK)) as mock:
        meter = SampledMeter(RedfishSource(mock.url, credentials=NOBODY), interval_s=math.inf, clock=clock)
        with Metering(meter) as metered:
            clock.wait(5.0)
            meter.sample()
            clock.wait(1.0)
            mock.status["/redfish/v1/Chassis/1U/Power"] = 503
            meter.sample()
            clock.wait(1.0)
    reading = metered.reading
    assert (reading.mean_w, reading.metered_s, reading.interval_s) == (344.0, 5.0, 7.0)
    assert reading.is_partial
    assert any("2 of 4 readings failed" in note and "503" in note for note in reading.notes)


def test_a_controller_that_comes_back_costs_nothing_but_a_note() -> None:
    clock = Clock()
    with controller(Mock(RACK)) as mock:
        meter = SampledMeter(RedfishSource(mock.url, credentials=NOBODY), interval_s=math.inf, clock=clock)
        with Metering(meter) as metered:
            mock.status["/redfish/v1/Chassis/1U/Power"] = 503
            clock.wait(2.0)
            meter.sample()
            del mock.status["/redfish/v1/Chassis/1U/Power"]
            clock.wait(2.0)
    assert (metered.reading.metered_s, metered.reading.is_partial) == (4.0, False)
    assert "1 of 3 readings failed" in metered.reading.notes[0]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of 127.0.0.1 that nobody but itself vouches for, with its key."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make a certificate")
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-days", "2", "-subj", "/CN=bmc", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(path.with_suffix(".key")), "-out", str(path.with_suffix(".crt"))),
        ],
        check=True,
        capture_output=True,
    )
    path.write_text(path.with_suffix(".key").read_text() + path.with_suffix(".crt").read_text())
    return path


@pytest.mark.slow
def test_an_unsigned_certificate_is_refused_unless_verification_is_off_or_it_is_trusted(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with controller(Mock(RACK, needs="basic", certificate=certificate)) as mock:
        with pytest.raises(EnvironmentProblem, match="SSL_CERT_FILE, or switch the check off") as caught:
            read_once(mock, ADMIN)
        assert "not trusted" in str(caught.value)
        assert mock.requested_paths == []  # the password was not sent
        source = RedfishSource(mock.url, credentials=ADMIN, verify_tls=False)
        source.open()
        assert source.read() == {"chassis 1U": 344.0}
        source.close()
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert read_once(mock, ADMIN) == {"chassis 1U": 344.0}


def test_passwords_are_not_taken_from_addresses_nor_sent_in_the_clear() -> None:
    with pytest.raises(FileProblem, match="ROUTECAST_POWER_PASSWORD") as caught:
        RedfishSource("https://admin:hunter2@bmc", credentials=NOBODY)
    assert "hunter2" not in str(caught.value)
    with pytest.raises(EnvironmentProblem, match="in the clear: write https"):
        RedfishSource("http://192.0.2.1", credentials=ADMIN)
    assert PASSWORD not in repr(ADMIN)


@pytest.mark.parametrize("url", ["ftp://bmc", "bmc", "https://", "http://[::1", "http://host:99999999"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(FileProblem, match="write http"):
        RedfishSource(url, credentials=NOBODY)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://u:p@h:1/x", "https://h:1/x"),
        ("https://h/x?a=1&b=2#/c", "https://h/x?a=***&b=***#/c"),
        ("http://[", "…"),
    ],
)
def test_addresses_are_shown_without_what_may_be_secret(url: str, shown: str) -> None:
    assert masked(url) == shown


METRICS = b"""# HELP pdu_outlet_watts Real power.
# TYPE pdu_outlet_watts gauge
pdu_outlet_watts{outlet="1",name="a \\"b\\""} 20.5
pdu_outlet_watts{outlet="2",name="c"} 3.15e1 1700000000000
scaph_host_power_microwatts 11600000
kepler_node_cpu_joules_total{zone="package"} 1000
kepler_node_cpu_joules_total{zone="core"} 600
broken{x="1"} nonsense
below -1
"""


def http(mock: Mock, where: str, credentials: Credentials = NOBODY) -> float:
    source = HttpSource(f"{mock.url}/x{where}", credentials=credentials)
    source.open()
    try:
        return source.read()["power"]
    finally:
        source.close()


@pytest.mark.parametrize(
    ("body", "where", "watts"),
    [
        (b"23.5\n", "", 23.5),
        (b'{"meters": [{"power": 41.25}]}', "#/meters/0/power", 41.25),
        (b'{"a/b": {"~": "7"}}', "#/a~1b/~0", 7.0),
        (METRICS, '#pdu_outlet_watts{outlet="2"}', 31.5),
        (METRICS, "#scaph_host_power_microwatts", 11.6),
    ],
)
def test_web_meters_find_the_watts(body: bytes, where: str, watts: float) -> None:
    with controller(Mock({}, raw={"/x": body})) as mock:
        assert http(mock, where) == pytest.approx(watts)


@pytest.mark.parametrize(
    ("body", "where", "words"),
    [
        (b"<html>", "", "name the value with #"),
        (b'{"meters": [{"power": 1}]}', "#/meters/1/power", "/meters is a list of 1"),
        (b'{"meters": {"watt": 1}}', "#/meters/power", "/meters has watt"),
        (b'{"w": [1]}', "#/w", "is list, not a number"),
        (b'{"w": -3}', "#/w", "is not a power"),
        (b'{"w": NaN}', "#/w", "is not a power"),
        (METRICS, "#pdu_outlet_watts", "2 series match"),
        (METRICS, '#pdu_outlet_watts{outlet="3"}', "there are kepler_node_cpu_joules_total, pdu_outlet_watts"),
        (METRICS, "#broken", "'nonsense', not a number"),
        (METRICS, "#9!", "not a metric name"),
        (METRICS, "#below", "is not a power"),
    ],
)
def test_web_meters_say_what_they_found_instead(body: bytes, where: str, words: str) -> None:
    with controller(Mock({}, raw={"/x": body})) as mock, pytest.raises(EnvironmentProblem) as caught:
        http(mock, where)
    assert words in str(caught.value)


def test_a_token_of_a_web_meter_goes_as_a_bearer() -> None:
    with controller(Mock({}, raw={"/x": b"5"}, needs="bearer")) as mock:
        assert http(mock, "", Credentials(token=TOKEN)) == 5.0


def test_a_counter_of_joules_gives_watts_and_may_start_anew() -> None:
    clock = Clock()
    with controller(Mock({}, raw={"/m": METRICS})) as mock:
        where = '#kepler_node_cpu_joules_total{zone="package"}'
        source = HttpSource(f"{mock.url}/m{where}", credentials=NOBODY)
        meter = SampledMeter(source, interval_s=math.inf, clock=clock)
        with Metering(meter) as metered:
            clock.wait(10.0)
            mock.raw["/m"] = METRICS.replace(b" 1000\n", b" 1300\n")
            meter.sample()
            assert meter.latest_w() == pytest.approx(30.0)
            clock.wait(10.0)
            mock.raw["/m"] = METRICS.replace(b" 1000\n", b" 50\n")
    reading = metered.reading
    assert reading.energy_j == pytest.approx(300 + 50)
    assert reading.scope == "rapl"
    assert any("restarted 1 times" in note for note in reading.notes)
