"""Traffic series from files: units, counters, flow records, and everything that can be wrong with them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import FileProblem, QuantityProblem
from routecast.load.series._table import parse_series_unit, unit_in_name
from routecast.plan.series._grid import Piece, counter_pieces, spread
from routecast.plan.series.reading import Gaps, read_series, shipped_series

START = datetime(2004, 3, 1)


def written(folder: Path, text: str, name: str = "series.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def lines(values: Sequence[object], step_s: int = 300, header: str = "time,Mbit/s") -> str:
    rows = [f"{START + timedelta(seconds=index * step_s)},{value}" for index, value in enumerate(values)]
    return "\n".join([header, *rows]) + "\n"


def faults(path: Path, **options: object) -> str:
    with pytest.raises(FileProblem) as caught:
        read_series(path, **options)  # type: ignore[arg-type]  # options of one call
    return str(caught.value)


def test_a_rate_is_read_in_the_unit_that_the_header_states(tmp_path: Path) -> None:
    series = read_series(written(tmp_path, lines([1, 2.5, 4])))
    assert series.l2_bps == (1e6, 2.5e6, 4e6)
    assert (series.step_s, series.start, series.notes) == (300.0, START, ())


def test_bits_of_each_interval_are_divided_by_its_length(tmp_path: Path) -> None:
    path = written(tmp_path, lines([3e9, 6e9], header="Time,Traffic (in bits)"))
    assert read_series(path, unit="bit per step").l2_bps == (1e7, 2e7)
    assert read_series(path, unit="byte per step").l2_bps == (8e7, 16e7)


def test_bits_of_each_interval_stay_the_same_rate_when_another_step_is_requested(tmp_path: Path) -> None:
    path = written(tmp_path, lines([3e9, 6e9, 9e9, 3e9], header="Time,Traffic (in bits)"))
    finer = read_series(path, unit="bit per step", step=100, gaps="hold")
    assert finer.l2_bps[:6] == (1e7, 1e7, 1e7, 2e7, 2e7, 2e7)
    coarser = read_series(path, unit="bit per step", step=600, gaps="hold")
    assert coarser.l2_bps == pytest.approx((1.5e7, 2e7))


def test_a_datamarket_title_with_commas_and_an_empty_third_column_are_read(tmp_path: Path) -> None:
    unquoted = "Time,Traffic (in bits) from a, b and c\n2004-03-01 00:00:00,600,\n2004-03-01 00:05:00,900,\n"
    quoted = 'Time,"Traffic (in bits), of a, b and c",\n2004-03-01 00:00:00,600,\n2004-03-01 00:05:00,900,\n'
    for text in (unquoted, quoted):
        assert read_series(written(tmp_path, text), unit="bit per step").l2_bps == (2.0, 3.0)


def test_a_header_that_says_no_unit_is_refused_and_the_units_are_listed(tmp_path: Path) -> None:
    text = faults(written(tmp_path, lines([1, 2], header="time,Traffic (in bits)")))
    assert "gives no unit" in text
    assert '"bit per step"' in text
    assert '"Mbit/s"' in text


def test_of_several_columns_the_one_with_a_unit_counts_and_otherwise_the_user_decides(tmp_path: Path) -> None:
    sndlib = "time,total_MBITPERSEC,n_demands\n20040301-0000,2541.7,132\n20040301-0005,2501.2,131\n"
    assert read_series(written(tmp_path, sndlib)).l2_bps == pytest.approx((2541.7e6, 2501.2e6))
    two = "time,eth0_bps,eth1_bps\n20040301-0000,1,2\n20040301-0005,3,4\n"
    assert '"eth0_bps", "eth1_bps"' in faults(written(tmp_path, two))
    assert read_series(written(tmp_path, two), column="eth1_bps").l2_bps == (2.0, 4.0)
    assert read_series(written(tmp_path, two), column="3").l2_bps == (2.0, 4.0)


def test_parquet_says_the_same_as_csv(tmp_path: Path) -> None:
    frame = polars.DataFrame({"time": [START, START + timedelta(minutes=5)], "rate_bps": [1e6, 2e6]})
    frame.write_parquet(tmp_path / "series.parquet")
    frame.write_csv(tmp_path / "series.csv")
    of_parquet, of_csv = (read_series(tmp_path / f"series.{kind}") for kind in ("parquet", "csv"))
    assert of_parquet.l2_bps == of_csv.l2_bps == (1e6, 2e6)
    assert of_parquet.start == of_csv.start == START


def test_times_with_an_offset_stay_local_and_seconds_since_1970_are_known(tmp_path: Path) -> None:
    offset = "time,bit/s\n2026-03-01T07:00:00+02:00,1\n2026-03-01T07:05:00+02:00,2\n"
    assert read_series(written(tmp_path, offset)).start == datetime(2026, 3, 1, 7)
    epoch = "time,bit/s\n1078099200,1\n1078099500,2\n"
    assert read_series(written(tmp_path, epoch)).start == START


def test_every_gap_is_listed_with_its_length_and_filled_only_on_request(tmp_path: Path) -> None:
    rows = lines([1, 2, 3, 4, 5, 6]).splitlines()
    path = written(tmp_path, "\n".join([*rows[:2], *rows[4:6], *rows[6:]]))
    text = faults(path)
    assert "2004-03-01 00:05:00 to 2004-03-01 00:15:00: 2 steps missing" in text
    assert "choose what to do about gaps: hold, interpolate or drop" in text
    assert read_series(path, gaps="hold").l2_bps == (1e6, 1e6, 1e6, 4e6, 5e6, 6e6)
    filled = read_series(path, gaps="interpolate")
    assert filled.l2_bps == pytest.approx((1e6, 2e6, 3e6, 4e6, 5e6, 6e6))
    assert any("2 of 6 steps missing" in note for note in filled.notes)
    left = read_series(path, gaps="drop").l2_bps
    assert [math.isnan(rate) for rate in left] == [False, True, True, False, False, False]


def test_empty_cells_are_missing_steps_and_no_zeros(tmp_path: Path) -> None:
    path = written(tmp_path, lines([1, "", "NA", 4]))
    assert "00:05:00 to 2004-03-01 00:15:00: 2 steps missing" in faults(path)


def test_zeros_are_kept_and_reported_with_their_first_time(tmp_path: Path) -> None:
    series = read_series(written(tmp_path, lines([5, 0, 0, 6])))
    assert series.l2_bps[1] == 0.0
    assert any("2 steps with no traffic" in note and "00:05:00" in note for note in series.notes)


def test_negative_values_are_refused_with_their_lines_and_count_as_missing_on_request(tmp_path: Path) -> None:
    path = written(tmp_path, lines([1, -2, 3, -4, 5]))
    text = faults(path)
    assert "line 3" in text
    assert "line 5" in text
    assert "(--gaps): hold, interpolate or drop" in text
    series = read_series(path, gaps="interpolate")
    assert series.l2_bps == pytest.approx((1e6, 2e6, 3e6, 4e6, 5e6))
    assert any("2 negative values" in note for note in series.notes)


def test_a_sample_that_jumps_tenfold_is_named_as_a_likely_wrong_unit(tmp_path: Path) -> None:
    series = read_series(written(tmp_path, lines([5, 6, 5000, 6, 5, 5, 6, 0.005])))
    assert any("1 step above ten times" in note and "00:10:00" in note for note in series.notes)
    assert any("1 step below a tenth" in note and "00:35:00" in note for note in series.notes)


def test_a_series_of_a_few_bits_a_second_asks_for_its_unit(tmp_path: Path) -> None:
    series = read_series(written(tmp_path, lines([4838.6, 4845.1], header="t,bits")), unit="bit per step")
    assert any("is the unit right" in note for note in series.notes)


def test_samples_out_of_order_and_repeated_are_mended_and_reported(tmp_path: Path) -> None:
    rows = lines([1, 2, 3]).splitlines()
    series = read_series(written(tmp_path, "\n".join([rows[0], rows[2], rows[1], rows[3], rows[3]])))
    assert series.l2_bps == (1e6, 2e6, 3e6)
    assert any("out of order" in note for note in series.notes)
    assert any("repeated" in note for note in series.notes)


def test_two_values_for_one_time_are_refused(tmp_path: Path) -> None:
    rows = lines([1, 2, 3]).splitlines()
    text = faults(written(tmp_path, "\n".join([*rows, rows[3].replace(",3", ",7")])))
    assert "line 5" in text
    assert "remove one" in text


def test_uneven_steps_are_refused_and_averaged_when_a_step_is_given(tmp_path: Path) -> None:
    path = written(tmp_path, "time,bit/s\n0,10\n60,20\n120,30\n150,40\n180,50\n240,60\n")
    assert "uneven" in faults(path)
    series = read_series(path, step=60, gaps="hold")
    assert series.l2_bps == pytest.approx((10, 20, 35, 50, 60))


def test_a_poller_that_is_a_second_late_keeps_its_steps(tmp_path: Path) -> None:
    series = read_series(written(tmp_path, "time,bit/s\n0,1000\n300,2000\n601,3000\n900,4000\n"))
    assert series.l2_bps == (1000, 2000, 3000, 4000)
    assert any("1 sample within 5%" in note for note in series.notes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("# only a remark\n", "is empty"),
        ("time,bit/s\n", "no samples"),
        ("time,bit/s\nyesterday,1\n2004-03-01,2\n", '"yesterday" is no time'),
        ("time,bit/s\n0,many\n60,2\n", '"many" is no number'),
        ("time,bit/s\n0,inf\n60,2\n", "no finite number"),
        ("time,bit/s\n0,1\n60,2,3\n", "line 3"),
        ("time,bit/s\n1e21,1\n2e21,2\n", "nanoseconds"),
        ("time,bit/s\n0,1\n", "one sample"),
        ("time,bit/s\n2026-03-01T00:00:00Z,1\n2026-03-01 00:05:00,1\n", "offset"),
    ],
)
def test_a_file_that_is_no_series_says_why(tmp_path: Path, text: str, message: str) -> None:
    assert message in faults(written(tmp_path, text))


def test_of_many_wrong_lines_twenty_are_shown_and_all_are_counted(tmp_path: Path) -> None:
    text = faults(written(tmp_path, lines(["x"] * 50)))
    assert "and 30 more of 50" in text


def test_a_name_that_is_neither_file_nor_shipped_lists_the_shipped_ones() -> None:
    assert "abilene" in faults(Path("no-such-series"))


@pytest.mark.slow
def test_the_shipped_series_are_whole_and_say_their_source() -> None:
    shipped = shipped_series()
    assert set(shipped) == {"abilene", "geant"}
    for name, path in shipped.items():
        series = read_series(name)
        assert len(series.notes) == 1  # what the file itself says; nothing odd is found in it
        assert min(series.l2_bps) > 0.0
        assert "SNDlib 1.0" in path.read_text(encoding="utf-8")
    assert "the rates are not" in read_series("geant").notes[0]
    assert read_series("abilene").duration_s == 14 * 86_400.0


@pytest.mark.parametrize(
    ("text", "bits", "per"),
    [
        ("bit/s", 1.0, "second"),
        ("Gbit/s", 1e9, "second"),
        ("Mbps", 1e6, "second"),
        ("kB/s", 8e3, "second"),
        ("bit per step", 1.0, "step"),
        ("kbit/step", 1e3, "step"),
        ("MB per step", 8e6, "step"),
        ("octet counter32", 8.0, "counter"),
    ],
)
def test_units_of_series_are_read(text: str, bits: float, per: str) -> None:
    unit = parse_series_unit(text)
    assert (unit.bits, unit.per) == (bits, per)


@pytest.mark.parametrize("text", ["", "bits", "Mbit", "pps", "watt per step", "per step"])
def test_what_is_no_unit_of_traffic_is_refused(text: str) -> None:
    with pytest.raises(QuantityProblem, match="no unit of a traffic series"):
        parse_series_unit(text)


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("total_MBITPERSEC", 1e6),
        ("rate_bps", 1.0),
        ("Traffic (Gbit/s)", 1e9),
        ("throughput Mbps", 1e6),
        ("bytes/s", 8.0),
        ("ifHCInOctets", 8.0),
        ("Traffic (in bits)", None),
        ("n_demands", None),
        ("subscribers", None),
    ],
)
def test_a_columns_name_states_a_unit_or_none(name: str, bits: float | None) -> None:
    unit = unit_in_name(name)
    assert (unit.bits if unit else None) == bits


def test_a_counter_gives_the_rates_between_its_readings_over_a_wrap(tmp_path: Path) -> None:
    steps = [3_000_000_000, 3_900_000_000, 3_600_000_000, 2_900_000_000]
    readings = [4_000_000_000]
    for octets in steps:
        readings.append((readings[-1] + octets) % 2**32)
    path = written(tmp_path, lines(readings, step_s=600, header="time,ifInOctets"))
    series = read_series(path)
    assert series.l2_bps == pytest.approx([8 * octets / 600 for octets in steps])
    assert any("wrapped" in note for note in series.notes)


def test_a_counter_of_64_bits_that_falls_to_nothing_began_anew(tmp_path: Path) -> None:
    readings = [10**15, 10**15 + 3000, 10**15 + 6000, 500, 3500]
    path = written(tmp_path, lines(readings, header="time,ifHCInOctets"))
    assert "00:10:00 to 2004-03-01 00:15:00: 1 step missing" in faults(path)
    series = read_series(path, gaps="drop")
    assert series.l2_bps[:2] == pytest.approx((80.0, 80.0))
    assert math.isnan(series.l2_bps[2])
    assert any("began anew 1 time" in note for note in series.notes)


def test_a_reading_beyond_the_width_of_its_counter_is_refused(tmp_path: Path) -> None:
    assert "32 bits" in faults(written(tmp_path, lines([1, 2**32], header="time,ifInOctets")))


@given(st.lists(st.integers(0, 2**31), min_size=2, max_size=20), st.integers(0, 2**32 - 1))
def test_differences_of_a_counter_of_32_bits_sum_to_what_passed(octets: list[int], first: int) -> None:
    readings = [first]
    for passed in octets:
        readings.append((readings[-1] + passed) % 2**32)
    samples = [(START + timedelta(seconds=index), float(value)) for index, value in enumerate(readings)]
    pieces, notes = counter_pieces(samples, counter_bits=32, bits_per_count=8.0)
    if not any("anew" in note for note in notes):
        assert sum(piece.bits for piece in pieces) == 8.0 * sum(octets)
    else:
        assert len(pieces) < len(octets)


@given(
    st.lists(st.tuples(st.floats(0, 5000), st.floats(0, 900), st.floats(0, 1e9)), min_size=1, max_size=20),
    st.sampled_from([60.0, 100.0, 300.0]),
)
def test_spreading_flow_records_keeps_every_bit(flows: list[tuple[float, float, float]], step_s: float) -> None:
    pieces = [
        Piece(begin=START + timedelta(seconds=at), end=START + timedelta(seconds=at + lasts), bits=bits)
        for at, lasts, bits in flows
    ]
    grid = spread(pieces, step_s, complete_only=False)
    total = sum(piece.bits for piece in pieces)
    assert sum(grid.values) * grid.step_s == pytest.approx(total, rel=1e-9, abs=1e-3)


def test_flow_records_as_nfdump_writes_them_fill_the_steps_that_they_last(tmp_path: Path) -> None:
    text = (
        "ts,te,td,sa,da,ipkt,ibyt\n"
        "2004-03-01 00:00:00,2004-03-01 00:02:00,120,10.0.0.1,10.0.0.2,10,1500\n"
        "2004-03-01 00:01:30,2004-03-01 00:01:30,0,10.0.0.1,10.0.0.2,1,60\n"
        "Summary\n"
        "flows,bytes,packets,avg_bps,avg_pps,avg_bpp\n"
        "2,1560,11,104,0,141\n"
    )
    series = read_series(written(tmp_path, text))
    assert series.step_s == 60.0
    assert series.l2_bps == pytest.approx((100.0, 108.0))


def test_a_flow_that_ends_before_it_begins_is_refused(tmp_path: Path) -> None:
    text = "start,end,bytes\n100,50,10\n0,10,10\n"
    assert "before it begins" in faults(written(tmp_path, text))


def test_readings_and_rates_of_one_link_tell_the_same_story(tmp_path: Path) -> None:
    rates_bps = [1e6, 4e6, 2e6, 3e6]
    counted = [0]
    for rate in rates_bps:
        counted.append(counted[-1] + round(rate / 8 * 300))
    by_counter = read_series(written(tmp_path, lines(counted, header="time,ifHCOutOctets"), "counter.csv"))
    by_rate = read_series(written(tmp_path, lines(rates_bps, header="time,bit/s"), "rate.csv"))
    assert by_counter.l2_bps == pytest.approx(by_rate.l2_bps)
    assert all(two > item for item, two in pairwise(counted))


def test_flow_records_whose_times_span_decades_are_a_mistake(tmp_path: Path) -> None:
    text = "start,end,bytes\n0,10,10\n1700000000,1700000010,10\n"
    assert "is a time wrong" in faults(written(tmp_path, text))


CELLS = st.sampled_from(
    [
        *("", "0", "-1", "1e9", "1e400", "nan", "NA", "x", "2004-03-01", "2004-03-01 00:05:00", "20040301-0005"),
        *("300", "600", "601", "1078099200", "2004-03-01T00:00:00Z", '"a,b"', '"', "#", "9999-12-31T23:59:59-12:00"),
    ]
)
HEADERS = st.sampled_from(
    [
        "time",
        "bit/s",
        "Mbps",
        "ifHCInOctets",
        "ifInOctets",
        "start",
        "end",
        "bytes",
        "ts",
        "te",
        "ibyt",
        "",
        "(in bits)",
    ]
)


@given(
    st.lists(HEADERS, min_size=1, max_size=4),
    st.lists(st.lists(CELLS, min_size=1, max_size=4), max_size=6),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from([None, "bit per step", "octet counter32", "Mbit/s"]),
    st.sampled_from([None, 60.0, 300.0]),
    st.sampled_from(["refuse", "hold", "interpolate", "drop"]),
)
def test_whatever_a_file_holds_it_is_a_series_or_a_fault_with_words(
    tmp_path_factory: pytest.TempPathFactory,
    header: list[str],
    rows: list[list[str]],
    delimiter: str,
    unit: str | None,
    step: float | None,
    gaps: Gaps,
) -> None:
    path = tmp_path_factory.mktemp("series") / "any.csv"
    path.write_text("\n".join(delimiter.join(row) for row in [header, *rows]), encoding="utf-8")
    try:
        series = read_series(path, unit=unit, step=step, gaps=gaps)
    except FileProblem:
        return
    assert all(rate >= 0.0 or math.isnan(rate) for rate in series.l2_bps)
    assert gaps == "drop" or not any(math.isnan(rate) for rate in series.l2_bps)
