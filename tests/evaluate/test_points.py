"""The reader of measured points: every fault at once, with its place, and never a traceback."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import FileProblem, RoutecastError
from routecast.evaluate.points import COLUMNS, parse_points, read_points

HEAD = "cores,frame_bytes,throughput_pps,calibrate\n"


def faults(text: str) -> dict[str, str]:
    with pytest.raises(FileProblem) as caught:
        parse_points(text)
    pickle.loads(pickle.dumps(caught.value))
    return {problem.place: problem.message for problem in caught.value.problems}


def test_a_good_file_is_read_in_order(tmp_path: Path) -> None:
    path = tmp_path / "points.csv"
    path.write_text(
        "# measured on a Tuesday\nseries,cores,frame_bytes,throughput_pps,flows,link_bps,ports,nic_cap_pps,calibrate\n"
        "a,1,64,1.7e6,1,10e9,2,,true\na,4,IMIX,3e6,,10e9,2,23.8e6,no\n",
        encoding="utf-8",
    )
    first, second = read_points(path)
    assert (first.cores, first.flows, first.link_bps, first.calibrate) == (1, 1, 10e9, True)
    assert second.frame_mix is not None
    assert second.frame_bytes == pytest.approx((7 * 64 + 4 * 570 + 1518) / 12)
    assert (second.flows, second.nic_cap_pps, second.calibrate) == (None, 23.8e6, False)


def test_every_fault_is_reported_at_once_with_its_row_and_column() -> None:
    found = faults(HEAD + "0,64,1e6,true\n1,63,1e6,true\n1,64,nan,true\n1,64,-1,true\n1.5,64,0,perhaps\n")
    assert set(found) == {
        "row 2, column cores",
        "row 3, column frame_bytes",
        "row 4, column throughput_pps",
        "row 5, column throughput_pps",
        "row 6, column cores",
        "row 6, column throughput_pps",
        "row 6, column calibrate",
    }
    assert COLUMNS["cores"] in found["row 2, column cores"]


def test_an_unknown_column_is_answered_with_the_nearest_known_one() -> None:
    assert "cores" in faults("core,frame_bytes,throughput_pps\n1,64,1\n")["row 1, column core"]


def test_missing_and_doubled_columns_are_named() -> None:
    found = faults("cores,cores\n1,1\n")
    assert "twice" in found["row 1, column cores"]
    assert "is missing" in found["row 1"]


def test_a_rate_above_the_links_contradicts_them() -> None:
    # S1: 10 Gbit/s carries 14,880,952 frames of 64 B a second, two ports twice that.
    text = "cores,frame_bytes,throughput_pps,link_bps,calibrate\n4,64,31e6,10e9,true\n"
    assert "the links carry at most 2.97619e+07" in faults(text)["row 2, column throughput_pps"]


def test_a_rate_above_the_cap_of_the_card_contradicts_it() -> None:
    text = "cores,frame_bytes,throughput_pps,nic_cap_pps,calibrate\n4,64,31e6,20e6,true\n"
    assert "nic_cap_pps" in faults(text)["row 2, column throughput_pps"]


def test_rows_may_repeat_and_state_their_standard_error() -> None:
    text = "cores,frame_bytes,throughput_pps,calibrate,repeat,standard_error_ratio\n"
    points = parse_points(text + "1,64,1e6,true,1,0.01\n1,64,2e6,true,2,\n")
    assert points[0].conditions == points[1].conditions
    assert [point.standard_error_ratio for point in points] == [0.01, None]
    assert "standard_error_ratio" in next(iter(faults(text + "1,64,1e6,true,1,1.5\n")))


def test_a_series_without_a_calibration_row_is_named() -> None:
    assert "no row calibrates" in faults(HEAD + "1,64,1e6,false\n")["column calibrate"]
    text = "series,cores,frame_bytes,throughput_pps,calibrate\na,1,64,1e6,true\nb,1,64,1e6,\n"
    assert "no row calibrates" in faults(text)["series 'b'"]


def test_files_that_are_no_table_are_refused(tmp_path: Path) -> None:
    for content in (b"", b"\xff\xfe\x00", HEAD.encode(), b'cores,frame_bytes,throughput_pps\n"1,64,1\n'):
        path = tmp_path / "bad.csv"
        path.write_bytes(content)
        with pytest.raises(FileProblem):
            read_points(path)
    with pytest.raises(FileProblem):
        read_points(tmp_path / "absent.csv")
    with pytest.raises(FileProblem):
        read_points("nul\0byte")


cells = st.one_of(
    st.sampled_from(["1", "64", "1e6", "true", "", "nan", "-1", "inf", "1e400", "IMIX", "IMIX 594", "zz", '"', "0x10"]),
    st.text(max_size=12),
)


@given(st.lists(st.lists(cells, max_size=7).map(",".join), max_size=6).map("\n".join), st.booleans())
def test_no_text_makes_the_reader_fail_otherwise_than_with_its_own_error(body: str, with_header: bool) -> None:
    try:
        points = parse_points((HEAD if with_header else "") + body)
    except RoutecastError as problem:
        message = str(problem)
    else:
        message = f"{len(points)} points"
        assert all(point.throughput_pps > 0.0 and point.cores >= 1 for point in points)
        assert any(point.calibrate for point in points)
    assert message
