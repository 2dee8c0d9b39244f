"""``routecast workload``: tables, JSON, figures, and what is refused before anything runs."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from routecast.cli.run import run

QUICK = ["--packets", "8", "--frame", "64 B"]


def test_the_list_tells_every_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["workload", "list"]) == 0
    table = capsys.readouterr().out
    assert run(["workload", "list", "--json"]) == 0
    listed = [load["name"] for load in json.loads(capsys.readouterr().out)["kernels"]]
    assert len(listed) == 13
    assert all(f"\n{name} " in table for name in listed)


@pytest.mark.slow
def test_a_kernel_is_reported_with_what_a_line_rate_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figure = tmp_path / "misses.svg"
    command = ["workload", "frag", *QUICK, "--line-rate", "10 Gbit/s", "--frequency", "1.4 GHz"]
    assert run([*command, "--figure", str(figure)]) == 0
    out = capsys.readouterr().out
    for words in ("Instruction mix", "executed at least once", "Misses per packet", "14.88 Mpps", "94.1"):
        assert words in out
    assert figure.read_text(encoding="utf-8").startswith("<svg")
    assert run([*command, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (need,) = document["required"]
    # 1.4 GHz over 10 Gbit/s / (84 B x 8 bit).
    assert need["budget"] == pytest.approx(94.08)
    assert need["instructions"] == document["sizes"][0]["instructions"]
    assert document["fit"]["per_byte"] is None
    assert document["packets"] == 6


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["rtt"], 2, "rtr"),
        (["crc", "--content", "word"], 2, "words"),
        (["crc", "--pcap", "x.pcap", "--frame", "64 B"], 2, "leave it or --pcap out"),
        (["crc", "--pcap", "x.pcap", "--content", "words"], 2, "leave it or --pcap out"),
        (["crc", "--pcap", "/nowhere/x.pcap"], 2, "No such file"),
        (["crc", "--seed", str(2**64)], 2, "--seed"),
        (["crc", "--frequency", "1 GHz"], 2, "--line-rate"),
        (["crc", "--line-rate", "10 Gbit/s", "--ipc", "0"], 2, "above 0"),
        (["crc", "--entries", "5"], 2, "crc has no table"),
        (["rtr", "--entries", "99999999"], 2, "1 to 4194304 routes"),
        (["crc", "--frame", "9000 B"], 2, "64 to 1522"),
        (["crc", "--figure", "x.png"], 2, "SVG"),
    ],
)
def test_what_cannot_be_is_refused(
    arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["workload", *arguments]) == code
    assert words in capsys.readouterr().err


def test_without_valgrind_the_second_opinion_names_the_package_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert run(["workload", "crc", "--cachegrind"]) == 3
    assert "apt install valgrind" in capsys.readouterr().err


@pytest.mark.slow
def test_work_that_no_size_changes_is_reported_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # TCP to port 80 with payloads of 0 and 400 B: the filter reads headers only.
    capture = tmp_path / "web.pcap"
    frames = []
    for number in range(24):
        payload = bytes(400 if number % 2 else 0)
        ip = struct.pack(">BBHIBBHII", 0x45, 0, 40 + len(payload), 0, 64, 6, 0, 0x0A000001, 0xC0A80101)
        tcp = struct.pack(">HHIIHHI", 1234, 80, 1, 1, 0x5002, 100, 0)
        frames.append(bytes(12) + b"\x08\x00" + ip + tcp + payload)
    capture.write_bytes(
        struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
        + b"".join(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame for frame in frames)
    )
    assert run(["workload", "tcp", "--pcap", str(capture)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "for frames of any size." in out
    assert "nan" not in out
