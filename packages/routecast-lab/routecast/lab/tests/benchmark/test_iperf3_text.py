"""The text that iperf3 prints for people, and losses in percent in tables of trials."""

from __future__ import annotations

from pathlib import Path

import pytest

from routecast.errors import FileProblem
from routecast.lab.benchmark.exchange import read_measured_table, read_records

# As iperf 3.12 prints it.
HEAD = "[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams\n"
SENDER = "[  5]   0.00-2.00   sec   610 KBytes  2.50 Mbits/sec  0.000 ms  0/625 (0%)  sender\n"
RECEIVER = "[  5]   0.00-2.00   sec   586 KBytes  2.40 Mbits/sec  0.073 ms  25/625 (4%)  receiver\n"
CLIENT = (
    "Connecting to host 127.0.0.1, port 5391\n"
    "[  5] local 127.0.0.1 port 46336 connected to 127.0.0.1 port 5391\n"
    "[ ID] Interval           Transfer     Bitrate         Total Datagrams\n"
    "[  5]   0.00-2.00   sec   610 KBytes  2.50 Mbits/sec  625  \n"
    "- - - - - - - - - - - - - - - - - - - - - - - - -\n" + HEAD + SENDER + RECEIVER + "\niperf Done.\n"
)
VERBOSE = CLIENT.replace(
    "[ ID]",
    "Starting Test: protocol: UDP, 1 streams, 1000 byte blocks, omitting 0 seconds, 2 second test, tos 0\n[ ID]",
    1,
)
SERVER = (
    "Server listening on 5391 (test #1)\n"
    "Accepted connection from 127.0.0.1, port 48710\n"
    "[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams\n" + RECEIVER
)
STREAMS = CLIENT.replace(RECEIVER, "").replace(
    SENDER,
    "".join(
        f"[{name}]   0.00-2.00   sec   610 KBytes  2.50 Mbits/sec  0.000 ms  {lost}/{total} (0%)  {side}\n"
        for name, total, loss in (("  5", 312, 12), ("  7", 313, 13), ("SUM", 625, 25))
        for side, lost in (("sender", 0), ("receiver", loss))
    ),
)


@pytest.mark.parametrize("text", [CLIENT, VERBOSE, SERVER, STREAMS])
def test_the_last_lines_of_a_udp_test_are_its_trial(tmp_path: Path, text: str) -> None:
    path = tmp_path / "iperf3.txt"
    path.write_text(text)
    (record,) = read_records(path)
    # 625 datagrams in 2 s, of which 25 were lost.
    assert record.trial.offered_pps == pytest.approx(312.5)
    assert record.trial.forwarded_pps == pytest.approx(300.0)
    assert record.trial.loss_ratio == pytest.approx(0.04)
    # 1000 B of payload, and 46 B of Ethernet, IPv4, UDP and FCS.
    assert (record.frame_bytes == 1046.0) == (text is VERBOSE)
    assert any("server" in note for note in record.trial.notes) == (text is SERVER)


def test_tests_one_after_another_are_trials_and_the_rest_is_refused_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "iperf3.txt"
    path.write_text(SERVER + SERVER)
    assert len(read_records(path)) == 2
    tcp = "[  5]   0.00-1.00   sec  2.44 GBytes  20.9 Gbits/sec   12             sender\n"
    for text, words in (
        (CLIENT.replace(SENDER + RECEIVER, tcp), "TCP.*iperf3 -u"),
        (CLIENT.replace("625  \n", "625  (omitted)\n"), "omitted its start.*--json"),
        (CLIENT.replace(SENDER + RECEIVER, ""), "--json"),
    ):
        path.write_text(text)
        with pytest.raises(FileProblem, match=words):
            read_records(path)


@pytest.mark.parametrize("head", ["loss_percent", "loss (%)", "Loss %", "loss_pct"])
def test_a_loss_in_percent_is_a_share(tmp_path: Path, head: str) -> None:
    path = tmp_path / "trials.csv"
    path.write_text(f"offered_pps,forwarded_pps,{head},frame_bytes,cores\n1e6,990000,1,64,1\n1e6,999000,0.1%,64,2\n")
    assert [record.trial.loss_ratio for record in read_records(path)] == pytest.approx([0.01, 0.001])
    assert len(read_measured_table(path).points) == 2
