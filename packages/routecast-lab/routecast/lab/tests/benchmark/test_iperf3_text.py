"""The text that iperf3 prints for people, and losses in percent in tables of trials."""

from __future__ import annotations

import math
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
    for text, words in (
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


TCP_HEAD = "[ ID] Interval           Transfer     Bitrate         Retr\n"
TCP_CLIENT = (
    "Connecting to host 10.0.0.2, port 5201\n"
    "[  5] local 10.0.0.1 port 47582 connected to 10.0.0.2 port 5201\n"
    "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd\n"
    "[  5]   0.00-1.00   sec   114 MBytes   952 Mbits/sec    3    434 KBytes       \n"
    "- - - - - - - - - - - - - - - - - - - - - - - - -\n"
    + TCP_HEAD
    + "[  5]   0.00-10.00  sec  1.10 GBytes   943 Mbits/sec    3             sender\n"
    "[  5]   0.00-10.04  sec  1.10 GBytes   941 Mbits/sec                  receiver\n\niperf Done.\n"
)
# 3.17 prints the interval lines of the server without Retr, and its own side alone.
TCP_SERVER = (
    "Server listening on 5201 (test #1)\n"
    "Accepted connection from 10.0.0.1, port 47580\n"
    "[ ID] Interval           Transfer     Bitrate\n"
    "[  5]   0.00-1.00   sec   112 MBytes   938 Mbits/sec                  \n"
    "[ ID] Interval           Transfer     Bitrate\n"
    "[  5]   0.00-10.04  sec  1.10 GBytes   941 Mbits/sec                  receiver\n"
)
TCP_REVERSE_SERVER = TCP_SERVER.replace("              receiver", "   7             sender").replace(
    "Bitrate\n", "Bitrate   Retr\n"
)
TCP_STREAMS = TCP_CLIENT.replace(
    "[  5]   0.00-10.00  sec  1.10 GBytes   943 Mbits/sec    3             sender\n",
    "[  5]   0.00-10.00  sec   562 MBytes   472 Mbits/sec    1             sender\n"
    "[  7]   0.00-10.00  sec   562 MBytes   471 Mbits/sec    2             sender\n"
    "[SUM]   0.00-10.00  sec  1.10 GBytes   943 Mbits/sec    3             sender\n",
).replace("[  5]   0.00-10.04", "[SUM]   0.00-10.04")
TCP_OLD_SERVER = TCP_SERVER.replace(
    "[  5]   0.00-10.04",
    "[  5]   0.00-10.04  sec  0.00 Bytes  0.00 bits/sec                  sender\n[  5]   0.00-10.04",
)
TCP_BYTES = TCP_CLIENT.replace("943 Mbits/sec", "112 MBytes/sec").replace("941 Mbits/sec", "0.11 GBytes/sec")
BOTH_WAYS = "".join(
    f"[{name}][{role}]   0.00-10.0{end}  sec   1.07 GBytes   {rate} Mbits/sec{resent}             {side}\n"
    for name, role, rates in (("  5", "TX-C", (920, 917)), ("  7", "RX-C", (936, 933)))
    for side, rate, end, resent in (("sender", rates[0], 0, "    0"), ("receiver", rates[1], 4, "     "))
)
TCP_BOTH_WAYS = TCP_CLIENT[: TCP_CLIENT.index(TCP_HEAD)] + TCP_HEAD.replace("[ ID]", "[ ID][Role]") + BOTH_WAYS


@pytest.mark.parametrize(
    ("text", "sent_bps", "received_bps", "resent", "flows"),
    [
        (TCP_CLIENT, 943e6, 941e6, 3, 1),
        (
            TCP_CLIENT.replace("[  5] local", "Reverse mode, remote host 10.0.0.2 is sending\n[  5] local"),
            943e6,
            941e6,
            3,
            1,
        ),
        (TCP_SERVER, None, 941e6, None, 1),
        (TCP_OLD_SERVER, None, 941e6, None, 1),
        (TCP_REVERSE_SERVER, 941e6, None, 7, 1),
        (TCP_STREAMS, 943e6, 941e6, 3, 2),
        # Bytes count in 1,024.
        (TCP_BYTES, 112 * 8 * 2.0**20, 0.11 * 8 * 2.0**30, 3, 1),
    ],
)
def test_a_tcp_test_states_payload_and_neither_frames_nor_loss(
    tmp_path: Path, text: str, sent_bps: float | None, received_bps: float | None, resent: int | None, flows: int
) -> None:
    path = tmp_path / "iperf3.log"
    path.write_text(text)
    (record,) = read_records(path)
    assert record.facts.get("sender_payload_bps") == (None if sent_bps is None else pytest.approx(sent_bps))
    assert record.facts.get("receiver_payload_bps") == (None if received_bps is None else pytest.approx(received_bps))
    assert record.facts.get("retransmissions") == resent
    assert record.flows == flows
    trial = record.trial
    assert all(math.isnan(rate) for rate in (trial.offered_pps, trial.forwarded_pps, trial.loss_ratio, trial.l2_bps))
    assert trial.duration_s == pytest.approx(10.0, abs=0.05)
    assert any("not known" in note for note in trial.notes)
    assert any("does not know" in note for note in trial.notes) == (sent_bps is None or received_bps is None)


def test_a_tcp_test_of_both_ways_is_two_trials_and_one_that_stopped_is_not_valid(tmp_path: Path) -> None:
    path = tmp_path / "iperf3.log"
    path.write_text(TCP_BOTH_WAYS)
    there, back = read_records(path)
    assert (there.facts["receiver_payload_bps"], back.facts["receiver_payload_bps"]) == (917e6, 933e6)
    assert back.title == "TCP test reverse"
    path.write_text(TCP_BOTH_WAYS.replace("TX-C", "RX-S").replace("RX-C", "TX-S"))
    assert [record.facts["sender_payload_bps"] for record in read_records(path)] == [920e6, 936e6]
    path.write_text(TCP_CLIENT + TCP_SERVER + "iperf3: interrupt - the server has terminated\n")
    assert [bool(record.trial.invalid) for record in read_records(path)] == [False, True]
