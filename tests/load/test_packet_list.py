"""Lists of packets, as Wireshark and tshark write them, are the traces that the same capture is."""

from __future__ import annotations

from pathlib import Path

import pytest

from routecast.errors import FileProblem
from routecast.load.arrivals import Arrivals

TIMES_S = (0.0, 0.000125, 0.0005)
WIRESHARK = '"No.","Time","Source","Destination","Protocol","Length","Info"\n' + "\n".join(
    f'"{number}","{time:.6f}","10.0.0.1","10.0.0.{1 + number}","UDP","{size}","5000 > 6000, Len={size - 42}"'
    for number, (time, size) in enumerate(zip(TIMES_S, (60, 1514, 42), strict=True), 1)
)
TSHARK = "frame.time_epoch\tframe.len\tip.src\tip.dst\r\n" + "\r\n".join(
    f"{1_795_824_000 + time:.6f}\t{size}\t10.0.0.1\t10.0.0.{number}"
    for number, (time, size) in enumerate(zip(TIMES_S, (60, 1514, 42), strict=True), 1)
)
GERMAN = "\ufefftime_us;bytes;src_ip;dst_ip\r\n" + "\r\n".join(
    f"{time * 1e6:.1f};{size};a;{number}".replace(".", ",")
    for number, (time, size) in enumerate(zip(TIMES_S, (60, 1514, 42), strict=True), 1)
)


@pytest.mark.parametrize(("name", "text"), [("w.csv", WIRESHARK), ("t.tsv", TSHARK), ("g.txt", GERMAN)])
def test_a_list_of_packets_is_a_trace(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    trace = Arrivals.from_trace(path).trace
    assert trace is not None
    assert list(trace.time_s) == pytest.approx(TIMES_S, abs=1e-6)
    # IEEE 802.3: a frame has 4 B of FCS, and 64 B at least.
    assert list(trace.frame_bytes) == [64, 1518, 64]
    assert list(trace.flow) == [0, 1, 2]
    assert any("without FCS" in note for note in trace.notes)


def test_a_list_without_addresses_is_one_flow_and_a_wrong_row_is_named(tmp_path: Path) -> None:
    path = tmp_path / "list.csv"
    path.write_text("time,frame_size\n0,64\n0.1,128\n", encoding="utf-8")
    trace = Arrivals.from_trace(path).trace
    assert trace is not None
    assert list(trace.frame_bytes) == [64, 128]
    assert any("one flow" in note for note in trace.notes)
    path.write_text("time,length\n0,64\nnever,64\n1,70000\n", encoding="utf-8")
    with pytest.raises(FileProblem, match=r"(?s)row 3.*row 4"):
        Arrivals.from_trace(path)
    path.write_text("when,what\n0,64\n", encoding="utf-8")
    with pytest.raises(FileProblem, match="tshark -T fields"):
        Arrivals.from_trace(path)
