"""The reader of measured points: every fault at once, with its place, and never a traceback."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import FileProblem, RoutecastError
from routecast.evaluate._point_columns import COLUMNS
from routecast.evaluate.point_table import parse_cells, parse_points, points_text, read_points, read_table
from routecast.evaluate.points import describe_rates

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
    result = faults(HEAD + "0,64,1e6,true\n1,63,1e6,true\n1,64,nan,true\n1,64,-1,true\n1.5,64,0,perhaps\n")
    assert set(result) == {
        "row 2, column cores",
        "row 3, column frame_bytes",
        "row 4, column throughput_pps",
        "row 5, column throughput_pps",
        "row 6, column cores",
        "row 6, column throughput_pps",
        "row 6, column calibrate",
    }
    assert COLUMNS["cores"].meaning in result["row 2, column cores"]


def test_an_unknown_column_is_answered_with_the_nearest_known_one() -> None:
    assert "cores" in faults("core,frame_bytes,throughput_pps\n1,64,1\n")["row 1, column core"]


def test_missing_and_doubled_columns_are_named() -> None:
    result = faults("cores,cores\n1,1\n")
    assert "twice" in result["row 1, column cores"]
    assert "is missing" in result["row 1"]


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
    assert "set calibrate = true" in faults(text)["series 'b'"]
    assert "give the measured rate" in faults(text.replace("b,1,64,1e6", "b,1,64,"))["series 'b'"]
    assert "give the measured rate" in faults("cores,frame,throughput\n1,64,\n")["column throughput"]


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


# Two ways to say each thing, and the table in its plainest form.
PLAIN = """cores,frame_bytes,throughput_pps,link_bps,calibrate
1,64,1500000,1e10,true
2,1518,1625487.6462938883,1e10,true
4,IMIX,,1e10,false
"""  # 20 Gbit/s are 20e9/(8·1538) frames of 1518 B with gap and preamble (S1)


@pytest.mark.parametrize(
    "text",
    [
        "cores,frame,throughput,link\n1,64 B,1.5 Mpps,10 Gbit/s\n2,1518 B,20 Gbit/s,10 Gbit/s\n4,IMIX,,10 Gbit/s\n",
        "Cores,Frame size (B),Throughput,Link [Gbit/s]\n1,64,1500 kpps,10\n2,1518,2.5 GB/s,10\n4,IMIX,,10\n",
        "cores,frame_size,throughput (Mpps),link_gbps\n1,64,1.5,10\n2,1518,20 Gbit/s,10\n4,IMIX,,10\n",
        "throughput_kpps,cores,frame size,link Mbps\n1500,1,64,10000\n20 Gbit/s,2,1518,10000\n,4,imix,10000\n",
        "cores,frame,throughput_gbps,link\n1,64 B,1500 kpps,10e9\n2,1518 B,20,10e9\n4,IMIX,,10e9\n",
        "cores,frame,throughput_l1_mbps,link\n1,64 B,1008,10e9\n2,1518 B,20000,10e9\n4,IMIX,,10e9\n",
        "cores,frame,throughput L2 (Mbit/s),link\n1,64 B,768,10e9\n2,1518 B,19739.9219766,10e9\n4,IMIX,,10e9\n",
        'cores,frame,throughput,link\n1,1x64,1.5e6,10e9\n2,"1x1518",20 Gbps,10e9\n4,"7x64, 4x570, 1x1518",,10e9\n',
    ],
)
def test_every_spelling_of_a_table_gives_the_same_points(text: str) -> None:
    wanted, points = parse_points(PLAIN), parse_points(text)
    for same in ("cores", "frame_bytes", "link_bps", "calibrate"):
        assert [getattr(point, same) for point in points] == [getattr(point, same) for point in wanted], same
    rates = [point.throughput_pps for point in wanted]
    assert [point.throughput_pps for point in points] == pytest.approx(rates, rel=1e-9, nan_ok=True)


def test_parquet_gives_the_points_of_csv(tmp_path: Path) -> None:
    import polars

    table = polars.DataFrame(
        {
            "cores": [1, 2, 4],
            "frame": ["64", "1518 B", "IMIX"],
            "throughput_mpps": [1.5, 1.6, None],
            "link (Gbit/s)": [10.0, 10.0, 10.0],
            "calibrate": [True, True, None],
        }
    )
    table.write_parquet(tmp_path / "points.parquet")
    table.write_csv(tmp_path / "points.csv")
    from_parquet, from_csv = read_points(tmp_path / "points.parquet"), read_points(tmp_path / "points.csv")
    assert points_text(from_parquet) == points_text(from_csv)
    assert [point.calibrate for point in from_parquet] == [True, True, False]
    table.with_columns(cores=polars.lit(0.5)).write_parquet(tmp_path / "bad.parquet")
    with pytest.raises(FileProblem, match="row 4, column cores"):
        read_points(tmp_path / "bad.parquet")
    (tmp_path / "no.parquet").write_text("cores,throughput\n1,1e6\n")
    with pytest.raises(FileProblem, match="cannot be read as Parquet"):
        read_points(tmp_path / "no.parquet")


def test_cores_and_rates_are_enough_and_what_is_assumed_is_stated(tmp_path: Path) -> None:
    path = tmp_path / "points.csv"
    path.write_text("cores,throughput\n1,1.7 Mpps\n2,3.3 Mpps\n")
    table = read_table(path)
    assert [(point.frame_bytes, point.calibrate) for point in table.points] == [(64.0, True)] * 2
    assert [text for text in table.remarks if "64 B" in text] == list(table.remarks)
    path.write_text("cores,frame,throughput\n1,64,1 Gbit/s\n")
    (remark,) = read_table(path).remarks
    assert "gap and preamble" in remark
    path.write_text("cores,frame,throughput_l1_gbps\n1,64,1\n")
    assert read_table(path).remarks == ()


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        ("forwarding_rate_pps", "overload"),
        ("Forwarding Rate (Mpps)", "overload"),
        ("maximum_forwarding_rate_kpps", "overload"),
        ("mrr_mpps", "overload"),
        ("lossless_pps", "no_loss"),
        ("NDR (Mpps)", "no_loss"),
        ("no_loss_rate_mpps", "no_loss"),
        ("throughput_pps", ""),
        ("Throughput (Mpps)", ""),
    ],
)
def test_the_head_of_the_rates_names_their_kind(head: str, kind: str) -> None:
    number = "1.5" if "M" in head.title() and "pps" in head and "_pps" not in head else "1500000"
    number = {"kpps": "1500"}.get(head[-4:], number)
    (point,) = parse_points(f"cores,{head}\n1,{number}\n")
    assert (point.rate_kind, point.throughput_pps) == (kind, 1.5e6)
    assert parse_points(points_text([point])) == (point,)


def test_a_column_names_the_kind_of_each_rate() -> None:
    points = parse_points("cores,throughput_pps,rate_kind\n1,1e6,overload\n2,2e6,no loss\n4,4e6,NDR\n8,8e6,\n")
    assert [point.rate_kind for point in points] == ["overload", "no_loss", "no_loss", ""]
    assert parse_points(points_text(points)) == points
    (sentence,) = describe_rates(points)
    assert "mixes 1 forwarding rates" in sentence
    assert "which are meant?" in sentence


def test_of_both_kinds_of_rate_the_forwarding_rate_is_used() -> None:
    for heads in ("forwarding_rate_mpps,lossless_mpps", "lossless_mpps,forwarding_rate_mpps"):
        cells = "1.7,1.5" if heads.startswith("forwarding") else "1.5,1.7"
        table = parse_cells([["cores", *heads.split(",")], ["1", *cells.split(",")]])
        assert [(point.throughput_pps, point.rate_kind) for point in table.points] == [(1.7e6, "overload")]
        assert any("lossless_mpps is not used" in remark for remark in table.remarks)


@pytest.mark.parametrize(
    ("cell", "mark"),
    [
        ("yes", "yes"),
        ("true", "yes"),
        ("no", ""),
        ("", ""),
        ("other work took 3.5 % of core 2", "other work took 3.5 % of core 2"),
        ('"a stall of 1,5 ms; the hypervisor took 2 %"', "a stall of 1,5 ms; the hypervisor took 2 %"),
    ],
)
def test_a_disturbed_row_keeps_its_mark(cell: str, mark: str) -> None:
    head = "cores,forwarding_rate_pps,disturbed,standard_error_ratio"
    points = parse_points(f"{head}\n1,1.5e6,{cell},0.02\n2,2.9e6,,\n")
    assert (points[0].disturbed, points[0].standard_error_ratio) == (mark, 0.02)
    assert parse_points(points_text(points)) == points
    assert (
        points[0].conditions == replace(points[0], disturbed="", rate_kind="").conditions
    )  # a repetition all the same
    sentences = describe_rates(points)
    assert sentences[0] == "the rates are forwarding rates at the maximum offered load (RFC 2285)"
    assert [sentence[:24] for sentence in sentences[1:]] == (["1 of 2 rows was disturbed"[:24]] if mark else [])


def test_rows_without_a_rate_do_not_calibrate_and_are_written_so() -> None:
    points = parse_points("cores,frame,throughput\n1,64,1e6\n1,64,1.1e6\n8,64,\n")
    assert [point.calibrate for point in points] == [True, True, False]
    assert points[0].conditions == points[1].conditions  # a repetition
    assert math.isnan(points[2].throughput_pps)
    assert points_text(parse_points(points_text(points))) == points_text(points)


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("cores;frame;throughput\n1;64;1,9\n", "row 2, column throughput", "which unit?"),
        ("cores;throughput_pps\n1;1,900\n", "row 2", "decimal or a thousands separator"),
        ("cores;throughput_mpps;ports\n1;1,9;2\n2;3.8;2\n", "", "write one kind"),
        ('cores,throughput (Mpps)\n1,"1,9"\n', "row 2, column throughput (Mpps)", "decimal point"),
        ('cores,throughput\n1,"1,9 Mpps"\n', "row 2, column throughput", "decimal point"),
        ('cores,throughput\n1,"1,900 kpps"\n', "row 2, column throughput", "no commas"),
        ('cores,frame,throughput\n1,"1,518",1e6\n', "row 2, column frame", "no commas"),
        ("cores,throughput_mpps\n1,1,9\n", "row 2", "decimal comma"),
        ("cores,throughput_gbps\n1,1\n", "row 1, column throughput_gbps", "add frame_bytes"),
        ("cores,throughput\n1,1 Mpps\n2,40 Gbit/s\n", "row 3, column throughput", "add frame_bytes"),
        ("cores,troughput_mpps\n1,1\n", "row 1, column troughput_mpps", 'did you mean "throughput_mpps"?'),
        ("cores,Quota (Mpps)\n1,1\n", "row 1, column Quota (Mpps)", "throughput_pps"),
        ("cores,throughput (Mpbs)\n1,1\n", "row 1, column throughput (Mpbs)", 'did you mean "throughput_m'),
        ("cores,throughput\n1,40 apples\n", "row 2, column throughput", "a frame rate such as"),
        ("cores,throughput\n1,1.9 mpps\n", "row 2, column throughput", "'Mpps' for millions"),
        ("cores,throughput\n1,-1 Mpps\n", "row 2, column throughput", "more than 0"),
        ("cores,frame,throughput\n1,64 Mbit,1\n", "row 2, column frame", "a number of bits"),
        ("cores,throughput_mpps\n8,1775000\n", "row 2, column throughput_mpps", "no core forwards 1e+10 frames/s"),
        ("cores,throughput,link\n1,1,10 Mpps\n", "row 2, column link", "expected a bit rate"),
        ("cores,throughput_pps,throughput_mpps\n1,1,1\n", "row 1", "throughput_pps and throughput_mpps mean the same"),
        ("cores,throughput,calibrate\n1,1e6,yes\n2,,yes\n", "row 3, column calibrate", "the row has no rate"),
        ("throughput\n1\n", "row 1", "column cores is missing"),
        ("cores\n1\n", "row 1", "column throughput_pps is missing"),
        ("cores,throughput\n,1\n", "row 2, column cores", "is empty"),
        ("cores,throughput,standard_error (%)\n1,1,100\n", "row 2, column standard_error (%)", "less than 1"),
        ("cores,throughput,latency_p50_us\n1,2e6,10\n", "row 2, column latency_p50_us", "has no load"),
        ("cores,throughput,latency_load\n1,2e6,0.1\n", "row 2, column latency_load", "a load without a latency"),
        (
            "cores,throughput,latency_p50_us,latency_p99_us,latency_load\n1,2e6,10,5,0.1\n",
            "row 2, column latency_p99_us",
            "got 5 us, less than the p50 of 10 us",
        ),
        (
            "cores,lossless_pps,latency_p99_us,latency_load\n1,2e6,500,120 %\n",
            "row 2, column latency_load",
            "it was measured in overload",
        ),
        (
            "cores,throughput,latency_p99_us,latency_load\n1,2e6,20 s,0.5\n",
            "row 2, column latency_p99_us",
            "no router keeps a frame that long",
        ),
        (
            "cores,throughput,latency_p99_us,latency_load_pps\n1,2e6,20,0.5\n",
            "row 2, column latency_load_pps",
            "name the unit",
        ),
        (
            "cores,throughput,latency_p99_us,latency_load\n1,2e6,20,0.5\n2,,30,0.5\n",
            "row 3, column latency_load",
            "a share of a rate that the row has not",
        ),
        (
            "cores,lossless_pps,latency_p99_us,latency_load,latency_load_of\n1,2e6,20,0.5,overload\n",
            "row 2, column latency_load_of",
            "but the row's rate is no_loss",
        ),
        (
            "cores,throughput,latency_p50_us,latency_p99_us,latency_load,latency_tester_us\n"
            "1,2e6,20,40,0.1,4\n2,4e6,20,40,0.1,25\n",
            "row 3, column latency_tester_us",
            "no less than the p50 of 20 us, which contains it",
        ),
        (
            "cores,throughput,latency_p50_us,latency_load,latency_tester_us\n1,2e6,20,0.1,-4\n",
            "row 2, column latency_tester_us",
            'got "-4"',
        ),
        (
            "cores,throughput,latency_p50_us,latency_load,latency_resolution_us\n1,2e6,20,0.1,-1\n",
            "row 2, column latency_resolution_us",
            'got "-1"',
        ),
        (
            "cores,throughput,latency_p50_us,latency_load,latency_devices\n1,2e6,20,0.1,0\n",
            "row 2, column latency_devices",
            "a whole number >= 1",
        ),
    ],
)
def test_a_bad_table_is_answered_in_words(text: str, place: str, words: str) -> None:
    assert words in faults(text)[place]


@pytest.mark.parametrize("column", COLUMNS)
def test_every_column_is_read_under_each_of_its_names(column: str) -> None:
    for stem in (column, *COLUMNS[column].stems):
        header = [name for name in ("cores", "frame_bytes", "throughput_pps") if name != column]
        known = {"cores": "1", "frame_bytes": "64", "throughput_pps": "1e6", "transmit_ring": "own"}
        known |= {"calibrate": "true", "shared_queue": "no", "standard_error_ratio": "0.01", "nic_cap_pps": "2e6"}
        known |= {"rate_kind": "overload"}
        if column.startswith("latency_"):
            # A latency has a load, and a load a latency.
            timed = {"latency_p50_us": "20", "latency_load_pps": "5e5"}
            if column == "latency_load_ratio":
                timed = {"latency_p50_us": "20"}
            elif column in {"latency_min_us", "latency_mean_us", "latency_p95_us", "latency_p99_us", "latency_max_us"}:
                timed = {"latency_load_pps": "5e5"}
            header += [name for name in timed if name != column]
            known |= timed | {"latency_load_of": "overload", "latency_arrivals": "cbr", "latency_load_ratio": "0.5"}
        cell = {"link_bps": "10e9", "reported_l1_bps": "1e9"}.get(column, known.get(column, "1"))
        cells = ",".join([*(known[name] for name in header), cell])
        assert parse_points(f"{','.join([*header, stem])}\n{cells}\n")


@pytest.mark.parametrize(
    ("text", "place", "wanted", "unwanted"),
    [
        # Rates of one core of today's processors are 0.1 to 40 Mpps, links 100 Mbit/s to 800 Gbit/s (IEEE 802.3).
        ("cores,frame,throughput\n1,64,1.9\n2,64,3.7\n4,64,7.0\n", "rows 2 to 4, column throughput", "mpps", "kpps"),
        ("cores,throughput\n1,1900\n2,3700\n", "rows 2 and 3, column throughput", "kpps", "mpps"),
        ("cores,frame,Throughput\n1,1518,9.8\n", "row 2, column Throughput", "gbps", "throughput_mbps"),
        ("cores,frame,throughput\n1,64,1.9e6\n2,64,3.7\n4,64,7e6\n", "row 3, column throughput", "mpps", "kpps"),
        (
            "cores,frame,throughput\n1,64,2 Mpps\n8,64,790000\n",
            "row 3, column throughput",
            "throughput_pps",
            "throughput_kpps",
        ),
        ("cores,throughput_mpps,link\n1,1.9,10\n2,3.7,10\n", "rows 2 and 3, column link", "link_gbps", "link_mbps"),
        ("cores,throughput_mpps,link\n1,1.9,10000\n", "row 2, column link", "link_mbps", "link_gbps"),
        ("cores,throughput_mpps,nic_cap\n1,1.9,42\n", "row 2, column nic_cap", "nic_cap_mpps", "kpps"),
        ("cores,frame,throughput\n1,1518,9.8e9\n", "row 2, column throughput", "throughput_bps", "mpps"),
    ],
)
def test_bare_numbers_that_fit_no_base_unit_are_asked_about(text: str, place: str, wanted: str, unwanted: str) -> None:
    message = faults(text)[place]
    assert "which unit?" in message
    assert wanted in message
    assert unwanted not in message


def test_a_column_in_the_wrong_unit_is_one_question_and_no_contradiction() -> None:
    result = faults("cores,frame,throughput,link\n1,64,1.9,10\n2,64,3.7,10\n")
    assert set(result) == {"rows 2 and 3, column throughput", "rows 2 and 3, column link"}


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("cores,frame,throughput_pps\n1,64,1.9\n2,64,3.7\n", "Rows 2 and 3, column throughput_pps"),
        ("cores,frame,throughput_pps\n1,64,2e6\n8,64,790000\n", "Row 3, column throughput_pps"),
        ("cores,frame,throughput_pps,link_bps\n1,1518,8000,99e6\n", "Row 2, column link_bps"),
        ("cores,frame,throughput_pps,nic_cap_pps\n1,64,90000,99000\n", "Row 2, column nic_cap_pps"),
        ("cores,frame,throughput_bps\n1,64,1900\n", "Row 2, column throughput_bps"),
    ],
)
def test_a_head_that_names_the_base_unit_gets_a_remark_instead(tmp_path: Path, text: str, place: str) -> None:
    (tmp_path / "points.csv").write_text(text)
    assert any(remark.startswith(place) for remark in read_table(tmp_path / "points.csv").remarks)


@pytest.mark.parametrize(
    "text",
    [
        "cores,frame,throughput\n1,64,1.9 kpps\n2,64,3 pps\n",
        "cores,frame,throughput,link\n1,64,1.9 kpps,10 Mbit/s\n",
        "cores,frame,throughput_kpps\n1,64,1.9\n",
        "cores,frame,throughput,link\n1,64,100000,100e6\n",
        "cores,frame,throughput,flows\n4,64,150000,1\n",
    ],
)
def test_a_cell_or_head_with_its_unit_is_believed(tmp_path: Path, text: str) -> None:
    (tmp_path / "points.csv").write_text(text)
    assert not any("right only if" in remark for remark in read_table(tmp_path / "points.csv").remarks)


def test_a_rate_of_bits_has_each_usual_spelling_and_a_prefix_alone_is_asked_about() -> None:
    text = "cores,frame,throughput,link\n1,64 B,1.5 Mpps,{}\n"
    links = {
        parse_points(text.format(link))[0].link_bps for link in ("10G", "10 Gb/s", "10Gbps", "10gbit", "1.25 GB/s")
    }
    assert links == {10e9}
    message = faults("cores,frame,throughput\n1,64 B,10M\n")["row 2, column throughput"]
    assert '"10 Mpps" or "10 Mbit/s"' in message


@pytest.mark.parametrize(
    ("head", "cell", "pps"),
    [
        ("throughput_l1_gbps", "12.304", 1e6),  # 1518 + 20 B on the wire, IEEE 802.3
        ("L1 throughput (Gbps)", "12.304", 1e6),
        ("L2 Throughput Gbit/s", "12.144", 1e6),  # 1518 B
        ("Throughput [Gbit/s, L3]", "12", 1e6),  # 1500 B: without 14 B of header and 4 B of FCS
        ("throughput_l3_mbps", "12000", 1e6),
        ("Mpps", "1", 1e6),
        ("frames/s", "1000000", 1e6),
        ("Throughput (MB/s)", "1538", 1e6),
        ("throughput MBps", "1538", 1e6),
        ("throughput_mbytes/s", "1538", 1e6),
        ("throughput_mbps", "12304", 1e6),
        ("throughput_pps", '"1,000,000"', 1e6),
        ("throughput", '"1,000,000 pps"', 1e6),
    ],
)
def test_a_head_names_its_layer_and_unit_in_any_order(head: str, cell: str, pps: float) -> None:
    (point,) = parse_points(f'cores,frame,"{head}"\n2 cores,1518,{cell}\n')
    assert point.throughput_pps == pytest.approx(pps)
    assert point.cores == 2


@pytest.mark.parametrize(
    ("head", "says", "never"),
    [
        ("Gbit/s", "throughput_gbit/s", 'mean "link'),
        ("throughput (mb/s)", "bits or bytes", 'did you mean "throughput_mbit/s"'),
        ("link mb/s", "bits or bytes", 'did you mean "link_mbit/s"'),
    ],
)
def test_a_head_that_may_mean_another_unit_is_asked_about(head: str, says: str, never: str) -> None:
    message = faults(f"cores,frame,{head}\n1,64,1\n")[f"row 1, column {head}"]
    assert says in message
    assert never not in message


def test_a_rate_that_no_core_has_is_remarked_on_below_a_head_with_a_prefix_too(tmp_path: Path) -> None:
    path = tmp_path / "gigapackets.csv"
    path.write_text("cores,frame,throughput_mpps\n1,64,1900\n2,64,3700\n")
    (remark,) = read_table(path).remarks
    assert "1.9 Gpps a core" in remark
    assert "wrong unit" in remark


@pytest.mark.parametrize(
    "text",
    [
        "Kerne,rate_pps\n1,1.9e6\n2,3.7e6\n",
        "cores,Rate (Mpps)\n1,1.9\n2,3.7\n",
        "CPUs;Durchsatz (Mpps)\n1;1,9\n2;3,7\n",
        "cores,throughput_mpps,remark\n1,1.9,2nd try\n2,3.7,\n",
        "cores,throughput_mpps,weather,\n1,1.9,sunny,\n2,3.7,,\n",
        # Layer 2 counts 64 B of each frame, layer 1 also 20 B of gap and preamble (S1).
        "cores,frame,throughput_l2\n1,64,972.8 Mbit/s\n2,64,1.8944e9\n",
        "cores,frame,L1 throughput\n1,64,1.2768 Gbit/s\n2,64,2.4864e9\n",
    ],
)
def test_heads_in_other_words_and_columns_of_remarks_are_read(text: str) -> None:
    assert [point.throughput_pps for point in parse_points(text)] == pytest.approx([1.9e6, 3.7e6])


def test_what_is_not_read_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "remarks.csv"
    path.write_text("cores,frame,throughput_mpps,weather,comment\n1,64,1.9,sunny,3\n2,64,3.7,,\n")
    assert read_table(path).remarks == ("Columns weather and comment are not used: no column of points has that name",)


@pytest.mark.parametrize(
    ("head", "cell", "likely"),
    [
        ("calibrat", "true", "calibrat=calibrate"),
        ("speed (Mpps)", "1.9", "'speed (Mpps)=NAME'"),
        ("held_out", "yes", "held_out=NAME"),
        ("fraime", "64", "fraime=frame"),
    ],
)
def test_an_unknown_column_that_may_decide_is_refused_with_its_likely_name(head: str, cell: str, likely: str) -> None:
    message = faults(f"cores,throughput_pps,{head}\n1,1e6,{cell}\n")[f"row 1, column {head}"]
    assert message.endswith(f"ame it with --rename {likely}")


def test_the_name_of_a_missing_rate_is_suggested_with_the_unit_of_the_head() -> None:
    message = faults("cores,speed (Mpps)\n1,1.9\n")["row 1, column speed (Mpps)"]
    assert message.endswith("--rename 'speed (Mpps)=throughput_mpps'")


@pytest.mark.parametrize(
    ("layer", "cell", "unit"),
    [("l2", "1.9", "gbps"), ("l1", "950", "mbps"), ("l2", "12", "gbps"), ("l3", "9.4", "gbps")],
)
def test_a_layer_without_a_unit_is_asked_about_and_keeps_its_layer(layer: str, cell: str, unit: str) -> None:
    message = faults(f"cores,frame,throughput_{layer}\n1,1000,{cell}\n")[f"row 2, column throughput_{layer}"]
    assert f"write the head as throughput_{layer}_{unit}" in message
    assert "pps if" not in message
    assert f"throughput_{layer}_bps if they are bit/s" in message


def test_an_unknown_column_lists_at_most_five_names() -> None:
    for head in ("zzz", "Quota (Mpps)", "x", "speed", "núm"):
        message = faults(f"cores,throughput_pps,{head}\n1,1e6,1\n")[f"row 1, column {head}"]
        assert message.count('"') <= 10


HEADS = [
    "",
    HEAD,
    "cores,throughput (Gbit/s),frame,link\n",
    "cores,throughput\n",
    "Cores,Throughput L2 Mbps,frame,standard_error (%)\n",
]
cells = st.one_of(
    st.sampled_from(
        [
            *("1", "64", "1e6", "true", "", "nan", "-1", "inf", "1e400", "IMIX", "IMIX 594", "zz", '"', "0x10"),
            *(
                "1.9 Mpps",
                "40 Gbit/s",
                "64 B",
                "1e308 Gpps",
                "0 pps",
                "5 %",
                '"1,9"',
                "-0",
                "1_000",
                "9 mpps",
                "7x64+1x1518",
            ),
        ]
    ),
    st.text(max_size=12),
)


@given(st.lists(st.lists(cells, max_size=7).map(",".join), max_size=6).map("\n".join), st.sampled_from(HEADS))
def test_no_text_makes_the_reader_fail_otherwise_than_with_its_own_error(body: str, head: str) -> None:
    try:
        points = parse_points(head + body)
    except RoutecastError as problem:
        message = str(problem)
    else:
        message = f"{len(points)} points"
        assert all(point.throughput_pps > 0.0 or not point.calibrate for point in points)
        assert all(point.cores >= 1 for point in points)
        assert any(point.calibrate for point in points)
    assert message


def test_latencies_of_rows_are_read_and_written_back() -> None:
    points = parse_points(
        "cores,throughput (Mpps),latency p50 (ms),latency_p99_us,latency load (%),latency_arrivals\n"
        "1,2,0.012,20,10,cbr\n2,4,,,,\n"
    )
    latency = points[0].latency
    assert latency is not None
    assert (latency.p50_s, latency.p99_s) == pytest.approx((12e-6, 20e-6))
    assert (latency.load_ratio, latency.arrivals) == (0.1, "cbr")
    assert points[1].latency is None
    again = parse_points(points_text(points))
    assert points_text(again) == points_text(points)
    assert again[0].latency is not None
    assert again[0].latency.p99_s == pytest.approx(20e-6)


def test_the_path_of_a_latency_is_read_and_written_back() -> None:
    points = parse_points(
        "cores,throughput,latency_mean_us,latency_load,latency_devices,latency_tester (ns),latency_resolution\n"
        "1,2e6,26,0.1,2,4000,10 us\n2,4e6,26,0.1,,0,\n"
    )
    paths = [point.latency for point in points]
    assert [path and (path.devices, path.tester_s, path.resolution_s) for path in paths] == [
        (2, pytest.approx(4e-6), pytest.approx(10e-6)),
        (1, 0.0, 0.0),
    ]
    again = parse_points(points_text(points))
    assert points_text(again) == points_text(points)
    assert "latency_devices" not in points_text(points[1:])


def test_a_row_may_have_a_latency_and_no_rate() -> None:
    points = parse_points("cores,throughput,latency_p99_us,latency_load_pps\n1,2e6,,\n4,,45,3 Mpps\n")
    assert [point.calibrate for point in points] == [True, False]
    assert points[1].latency is not None
    assert points[1].latency.load_pps == 3e6
