"""A file of iperf3 says what its writer can know, in every layout from 3.1 to 3.21; the rest is not known."""

from __future__ import annotations

import json
import math
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from exchange_reading import faults, read, same
from iperf3_files import Json, Way, document, events, number_of

VERSIONS = ("3.1", "3.1.7", "3.2", "3.5", "3.6", "3.7", "3.9", "3.10.1", "3.11", "3.12", "3.16", "3.17", "3.19", "3.21")
CLEAN, LOSSY, CUT = Way(lost=0), Way(lost=100), Way(lost=100, tail=200)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("streams", [1, 4])
@pytest.mark.parametrize("is_reverse", [False, True])
def test_a_client_knows_the_counts_of_both_sides(version: str, streams: int, is_reverse: bool, tmp_path: Path) -> None:
    for way in (CLEAN, LOSSY, CUT):
        ways = {"reverse" if is_reverse else "forward": way}
        (record,) = read(document(version, "client", streams=streams, **ways), tmp_path)
        trial = record.trial
        assert trial.is_valid
        assert trial.offered_frames == way.sent
        # From 3.2 to 3.10 no count has the datagrams lost at the end, and the note says so.
        hides_tail = (3, 2) <= number_of(version) < (3, 11)
        arrived = way.sent - way.lost if hides_tail else way.arrived
        assert trial.forwarded_frames == arrived
        assert trial.loss_ratio == pytest.approx(1.0 - arrived / way.sent, abs=1e-12)
        assert any("lacks the datagrams lost after the last one" in note for note in trial.notes) == (
            hides_tail or (version.startswith("3.1") and number_of(version) < (3, 2) and not way.tail)
        )


@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_that_nothing_reached_lost_everything(version: str, tmp_path: Path) -> None:
    nothing = Way(lost=0, tail=2000)
    (record,) = read(document(version, "client", forward=nothing), tmp_path)
    if number_of(version) >= (3, 11) or number_of(version) < (3, 2):
        assert record.trial.loss_ratio == 1.0


@pytest.mark.parametrize("version", VERSIONS)
def test_a_server_that_receives_does_not_know_what_was_lost_at_the_end(version: str, tmp_path: Path) -> None:
    (record,) = read(document(version, "server", forward=LOSSY), tmp_path)
    assert record.trial.loss_ratio == pytest.approx(100 / 2000)
    assert record.trial.forwarded_frames == 1900
    assert any("the sender's count is not in it" in note for note in record.trial.notes)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_server_that_sends_does_not_know_the_loss(version: str, tmp_path: Path) -> None:
    (record,) = read(document(version, "server", reverse=LOSSY), tmp_path)
    trial = record.trial
    assert trial.offered_frames == 2000
    assert math.isnan(trial.loss_ratio)
    assert math.isnan(trial.forwarded_pps)
    assert trial.forwarded_frames is None
    assert trial.reordered_frames is None
    assert any("the loss is not known" in note for note in trial.notes)


@pytest.mark.parametrize("role", ["client", "server"])
@pytest.mark.parametrize("version", [version for version in VERSIONS if number_of(version) >= (3, 7)])
def test_both_directions_of_bidir_are_trials(version: str, role: str, tmp_path: Path) -> None:
    forward, reverse = Way(sent=2000, lost=100), Way(sent=1000, lost=500)
    one, other = read(document(version, role, forward=forward, reverse=reverse), tmp_path)
    assert (one.trial.offered_frames, other.trial.offered_frames) == (2000, 1000)
    assert one.trial.loss_ratio == pytest.approx(0.05)
    if role == "client":
        assert other.trial.loss_ratio == pytest.approx(0.5)
    else:
        assert math.isnan(other.trial.loss_ratio)


def test_fewer_datagrams_than_asked_for_may_be_a_loss_that_a_server_cannot_see(tmp_path: Path) -> None:
    way = Way(lost=10, tail=1000)
    (record,) = read(document("3.21", "server", forward=way), tmp_path)
    assert math.isnan(record.trial.loss_ratio)
    assert math.isnan(record.trial.offered_pps)
    assert any("at least 10 of 1,000" in note for note in record.trial.notes)


def test_a_server_that_nothing_reached_does_not_say_that_nothing_was_lost(tmp_path: Path) -> None:
    (record,) = read(document("3.21", "server", forward=Way(lost=0, tail=2000)), tmp_path)
    assert math.isnan(record.trial.loss_ratio)
    assert record.trial.forwarded_frames == 0
    assert any("no datagram arrived: the loss is not known" in note for note in record.trial.notes)


def test_a_file_that_does_not_name_its_writer_is_told_by_the_flags_of_its_sender(tmp_path: Path) -> None:
    value = document("3.19", "server", reverse=LOSSY)
    del value["start"]["accepted_connection"]
    assert math.isnan(read(value, tmp_path)[0].trial.loss_ratio)


@pytest.mark.parametrize("full", [False, True])
def test_a_stream_of_events_is_its_document(full: bool, tmp_path: Path) -> None:
    value = document("3.18", forward=LOSSY)
    assert same(read(events(value, full=full), tmp_path)) == same(read(value, tmp_path))


def test_each_test_that_a_server_appended_is_a_trial(tmp_path: Path) -> None:
    values = [document("3.18", "server", forward=Way(sent=2000, lost=lost)) for lost in (0, 20, 40)]
    whole = "\n".join(json.dumps(value, indent="\t") for value in values)
    for text in (whole, "".join(map(events, values)), "".join(events(value, full=True) for value in values)):
        losses = [record.trial.loss_ratio for record in read(text, tmp_path)]
        assert losses == pytest.approx([0.0, 0.01, 0.02])


def test_documents_of_other_tools_in_one_file_are_refused(tmp_path: Path) -> None:
    assert "a file of its own" in faults('{"a": 1}\n{"b": 2}', tmp_path)


def test_a_count_below_zero_that_is_written_without_sign_is_of_the_side_that_is_not_known(tmp_path: Path) -> None:
    # iperf 3.12 with --omit on a server: no datagrams less those omitted.
    value = document("3.12", "server", forward=LOSSY)
    value["end"]["sum_sent"]["packets"] = 2**64 - 250
    assert read(value, tmp_path)[0].trial.loss_ratio == pytest.approx(0.05)


def test_fewer_lost_than_none_are_none_with_a_note(tmp_path: Path) -> None:
    value = document("3.21", forward=CLEAN)
    value["end"]["sum"]["lost_packets"] = -2
    (record,) = read(value, tmp_path)
    assert record.trial.loss_ratio == 0.0
    assert any("came late or twice" in note for note in record.trial.notes)


def with_omit(value: Json, *, arrived: int, lost: int) -> Json:
    value["start"]["test_start"]["omit"] = 1
    value["end"]["sum"]["lost_packets"] = value["end"]["sum_received"]["lost_packets"] = lost
    value["end"]["sum_received"]["bytes"] = arrived * 1000
    return value


def test_omit_counts_no_frames_and_more_arrivals_than_sent_are_no_contradiction(tmp_path: Path) -> None:
    (record,) = read(with_omit(document("3.12", forward=CLEAN), arrived=2003, lost=0), tmp_path)
    assert record.trial.is_valid
    assert record.trial.loss_ratio == 0.0
    assert record.trial.offered_frames is None
    assert any("omit" in note for note in record.trial.notes)


def test_omit_with_losses_of_the_omitted_part_takes_the_rates(tmp_path: Path) -> None:
    (record,) = read(with_omit(document("3.12", forward=CLEAN), arrived=1900, lost=5000), tmp_path)
    assert record.trial.loss_ratio == pytest.approx(0.05)
    assert record.trial.is_valid


def test_omit_takes_the_intervals_of_the_receiver(tmp_path: Path) -> None:
    value = with_omit(document("3.12", forward=LOSSY), arrived=1900, lost=5000)
    intervals = [
        {"sum": {"lost_packets": 900, "packets": 1000, "omitted": True}},
        {"sum": {"lost_packets": 80, "packets": 1000, "omitted": False}},
        {"sum": {"lost_packets": 40, "packets": 1000, "omitted": False}},
    ]
    value["server_output_json"] = {"intervals": intervals}
    (record,) = read(value, tmp_path)
    assert record.trial.loss_ratio == pytest.approx(0.06)


def test_a_test_that_was_interrupted_is_an_invalid_trial(tmp_path: Path) -> None:
    value = document("3.21", forward=CLEAN) | {"error": "interrupt - the client has terminated"}
    value["end"]["sum_received"] |= {"bytes": 0, "packets": 0}
    (record,) = read(value, tmp_path)
    assert not record.trial.is_valid
    assert math.isnan(record.trial.loss_ratio)


@pytest.mark.parametrize("protocol", ["TCP", "SCTP"])
def test_a_stream_of_bytes_says_why_it_is_no_trial(protocol: str, tmp_path: Path) -> None:
    value = document(forward=CLEAN)
    value["start"]["test_start"]["protocol"] = protocol
    assert "no count of frames" in faults(value, tmp_path)


def written_by_iperf3(
    program: str, start: Callable[..., subprocess.Popen[str]], folder: Path, options: list[str]
) -> tuple[str, str]:
    """Send datagrams of 1000 bytes over the loopback for a second; return the files of client and server."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = ("127.0.0.1", "-p", str(free.getsockname()[1]))
    file = folder / "server.json"
    with file.open("w") as out:
        server = start([program, "-s", "-1", "-B", *place, "--json"], stdout=out, stderr=subprocess.DEVNULL)
        command = [program, "-c", *place, "-u", "-b", "2M", "-l", "1000", "-t", "1", "--json", *options]
        for _ in range(50):  # until the server listens
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
            if '"error"' not in done.stdout:
                break
            time.sleep(0.1)
        try:
            server.wait(timeout=10)
        finally:
            server.kill()
    return done.stdout, file.read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [[], ["-P", "2"], ["-R"], ["--bidir"], ["--get-server-output"], ["-O", "1"], ["-R", "-O", "1"]], ids=str
)
def test_files_of_the_installed_iperf3_say_what_their_writers_know(
    options: list[str], tmp_path: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    program = shutil.which("iperf3")
    if program is None:
        pytest.skip("needs iperf3 (Debian package iperf3)")
    client, server = written_by_iperf3(program, start, tmp_path, options)
    for record in read(client, tmp_path):
        assert 0.0 <= record.trial.loss_ratio <= 1.0
        assert record.frame_bytes == 1046.0
    for number, record in enumerate(read(server, tmp_path)):
        server_sends = "-R" in options or number == 1
        assert math.isnan(record.trial.loss_ratio) or not server_sends
        assert record.trial.notes
