"""Series as monitoring tools write them, written here from the tools' documentation, and by RRDtool itself."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from tool_series import (
    BOTH_BPS,
    CASES,
    DAY_STEPS_S,
    IN_BPS,
    MIDNIGHT,
    cacti,
    clock,
    counter_day,
    counters,
    in_bps,
    mutated,
    out_bps,
    prometheus_json,
    written,
)

from routecast.errors import FileProblem, ModelProblem
from routecast.plan.series.reading import read_series
from routecast.plan.series.shapes import mean_day, whole_step_of_day


@pytest.mark.parametrize(("name", "text", "expected", "said"), CASES, ids=[case[0] for case in CASES])
def test_a_tools_file_is_read_at_once_and_it_is_said_what_it_was_taken_for(
    tmp_path: Path, name: str, text: Callable[[], str], expected: Sequence[float], said: tuple[str, ...]
) -> None:
    series = read_series(written(tmp_path, name, text()))
    assert series.step_s == 300.0
    assert series.start == datetime(2026, 11, 28)
    assert series.l2_bps == pytest.approx(expected, rel=1e-9)
    assert all(words in " | ".join(series.notes) for words in said), series.notes
    assert mean_day(series, 300.0).l2_bps == pytest.approx(expected, rel=1e-9)


def test_a_day_of_288_readings_of_a_counter_is_a_day_of_288_steps(tmp_path: Path) -> None:
    day = mean_day(read_series(written(tmp_path, "counter.csv", counter_day())), 300.0)
    assert len(day.l2_bps) == 288
    assert day.l2_bps[:287] == pytest.approx(IN_BPS[:287])
    # The last step ends at a reading that is not in the file: the mean of its neighbours around midnight.
    assert day.l2_bps[287] == pytest.approx((IN_BPS[286] + IN_BPS[0]) / 2)
    assert any("1 of 288 steps" in note and "23:55" in note for note in day.notes)


@pytest.mark.skipif(shutil.which("rrdtool") is None, reason="needs rrdtool: apt-get install rrdtool")
def test_what_rrdtool_itself_writes_is_read(tmp_path: Path) -> None:
    def rrdtool(*arguments: str) -> str:
        return subprocess.run(["rrdtool", *arguments], cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    sources = ("DS:traffic_in:COUNTER:600:0:U", "DS:traffic_out:COUNTER:600:0:U")
    rrdtool("create", "a.rrd", "--start", str(MIDNIGHT - 300), "--step", "300", *sources, "RRA:AVERAGE:0.5:1:600")
    readings = zip(counters(in_bps), counters(out_bps), strict=True)
    rrdtool("update", "a.rrd", *(f"{MIDNIGHT + 300 * at}:{one}:{two}" for at, (one, two) in enumerate(readings)))
    span = ("--start", str(MIDNIGHT), "--end", str(MIDNIGHT + DAY_STEPS_S))
    drawn = ("DEF:i=a.rrd:traffic_in:AVERAGE", "DEF:o=a.rrd:traffic_out:AVERAGE", "CDEF:b=i,8,*", "CDEF:c=o,8,*")
    legends = ("XPORT:b:In bits", "XPORT:c:Out bits")
    outputs = {
        "fetch.txt": rrdtool("fetch", "a.rrd", "AVERAGE", *span),
        "xport.xml": rrdtool("xport", *span, *drawn, *legends),
        "timed.xml": rrdtool("xport", "-t", *span, *drawn, *legends),
        "xport.json": rrdtool("xport", "--json", *span, *drawn, *legends),
        "timed.json": rrdtool("xport", "--json", "-t", *span, *drawn, *legends),
    }
    for name, text in outputs.items():
        series = read_series(written(tmp_path, name, text))
        first = round((series.start - datetime(2026, 11, 28)) / timedelta(seconds=300)) if series.start else 0
        assert first in (0, 1), name  # the step that ends at --start counts for fetch, and not for xport
        assert series.l2_bps == pytest.approx(BOTH_BPS[first : first + len(series.l2_bps)], rel=1e-6), name
        assert len(series.l2_bps) >= 287, name


def test_a_32_bit_counter_wraps_and_a_restart_is_not_a_wrap(tmp_path: Path) -> None:
    readings = [value % 2**32 for value in counters(in_bps)]
    rows = [f"{clock(at)},{value}" for at, value in enumerate(readings)]
    series = read_series(written(tmp_path, "wraps.csv", "\n".join(["time,ifInOctets", *rows])))
    assert series.l2_bps == pytest.approx(IN_BPS)
    assert any("wrapped" in note for note in series.notes)
    restarted = [value - counters(in_bps)[100] if at >= 100 else value for at, value in enumerate(counters(in_bps))]
    rows = [f"{clock(at)},{value}" for at, value in enumerate(restarted)]
    path = written(tmp_path, "restart.csv", "\n".join(["time,ifHCInOctets", *rows]))
    with pytest.raises(FileProblem, match=r"(?s)1 step missing.*--gaps"):
        read_series(path)
    held = read_series(path, gaps="interpolate")
    assert held.l2_bps[99] == pytest.approx((IN_BPS[98] + IN_BPS[100]) / 2)
    assert any("began anew" in note for note in held.notes)


def test_what_all_interfaces_receive_is_added_once(tmp_path: Path) -> None:
    header = "time,eth0 in bps,eth0 out bps,eth1 in bps,eth1 out bps"
    series = read_series(written(tmp_path, "two.csv", f"{header}\n0,1000,20000,300,4000\n300,1000,20000,300,4000\n"))
    assert series.l2_bps == (1300.0, 1300.0)
    assert any("what all interfaces receive" in note for note in series.notes)


def test_series_of_several_routers_are_asked_about(tmp_path: Path) -> None:
    document = json.loads(prometheus_json())
    document["data"]["result"][2]["metric"]["instance"] = "r2:9100"
    path = written(tmp_path, "range.json", json.dumps(document))
    with pytest.raises(FileProblem, match="name the column"):
        read_series(path)


def test_a_prometheus_series_without_a_name_or_unit_is_asked_about(tmp_path: Path) -> None:
    result = [{"metric": {"device": "eth0"}, "values": [[0, "1"], [300, "2"]]}]
    path = written(tmp_path, "rate.json", json.dumps({"status": "success", "data": {"result": result}}))
    with pytest.raises(FileProblem, match=r"gives no unit.*--unit"):
        read_series(path)
    assert read_series(path, unit="byte/s").l2_bps == (8.0, 16.0)


def test_a_cacti_export_without_a_unit_is_asked_about(tmp_path: Path) -> None:
    text = cacti().replace('"Vertical Label:","bits per second"\n', "")
    with pytest.raises(FileProblem, match=r"gives no unit.*--unit"):
        read_series(written(tmp_path, "cacti.csv", text))


def test_an_mrtg_log_of_a_few_hours_is_completed_by_its_coarser_rates(tmp_path: Path) -> None:
    end = MIDNIGHT + DAY_STEPS_S
    lines = [f"{end} 1 1", *(f"{end - 300 * back} 100 50 0 0" for back in range(72 + 1))]
    lines += [f"{end - 21_600 - 1800 * back} 200 60 0 0" for back in range(1, 36 + 1)]
    series = read_series(written(tmp_path, "short.log", "\n".join(lines) + "\n"))
    assert len(series.l2_bps) == 288
    assert series.l2_bps[0] == 8.0 * 260
    assert series.l2_bps[-1] == 8.0 * 150


@pytest.mark.parametrize(("day", "hours"), [("2026-03-29", 23), ("2026-10-25", 25)])
@pytest.mark.parametrize("has_offsets", [False, True])
def test_days_of_23_and_25_hours_keep_their_times_of_day(
    tmp_path: Path, day: str, hours: int, has_offsets: bool
) -> None:
    zone = ZoneInfo("Europe/Berlin")
    midnight = datetime.fromisoformat(day).replace(tzinfo=zone).astimezone(UTC)
    rows, by_hour = [], {}
    for step in range(hours * 12):
        local = (midnight + timedelta(minutes=5 * step)).astimezone(zone)
        text = local.isoformat() if has_offsets else local.strftime("%Y-%m-%d %H:%M:%S")
        by_hour[local.hour] = 1000.0 * (local.hour + 1)
        rows.append(f"{text},{by_hour[local.hour]}")
    series = read_series(written(tmp_path, "day.csv", "\n".join(["time,bit/s", *rows])))
    assert len(series.l2_bps) == hours * 12
    mean = mean_day(series, 3600.0)
    assert len(mean.l2_bps) == 24
    expected = [
        by_hour.get(hour, 1000.0 * (hour + 1)) for hour in range(24)
    ]  # the hour that is skipped: its neighbours
    assert mean.l2_bps == pytest.approx(expected)
    assert any(f"a day of {hours} hours" in note for note in series.notes)


@pytest.mark.parametrize(
    ("rows", "start"),
    [
        (["3/4/2026 11:55 PM,1", "3/5/2026 12:00 AM,2"], datetime(2026, 3, 4, 23, 55)),
        (["13/3/2026 23:55,1", "14/3/2026 00:00,2"], datetime(2026, 3, 13, 23, 55)),
        (["3/4/2026 23:55,1", "4/4/2026 00:00,2"], datetime(2026, 4, 3, 23, 55)),
        (["28.11.2026 23:55,1", "29.11.2026 00:00,2"], datetime(2026, 11, 28, 23, 55)),
        (["11/28/2026 1:05 PM,1", "11/28/2026 1:10 PM,2"], datetime(2026, 11, 28, 13, 5)),
    ],
)
def test_the_whole_column_decides_the_order_of_day_and_month(tmp_path: Path, rows: list[str], start: datetime) -> None:
    assert read_series(written(tmp_path, "dates.csv", "\n".join(["time,bit/s", *rows]))).start == start


def test_dates_that_nothing_decides_are_asked_about(tmp_path: Path) -> None:
    text = "time,bit/s\n1/3/2026 00:00,1\n2/3/2026 00:00,1\n4/3/2026 00:00,2\n"
    mixed = "time,bit/s\n13/3/2026 00:00,1\n3/14/2026 00:00,1\n"
    far = "time,bit/s\n1/2/2026 00:00,1\n12/11/2026 00:00,1\n"
    assert read_series(written(tmp_path, "a.csv", text), gaps="drop").start == datetime(2026, 3, 1)
    for wrong in (mixed, far):
        with pytest.raises(FileProblem, match="2026-11-28 13:05"):
            read_series(written(tmp_path, "b.csv", wrong))


def test_totals_of_a_collector_with_a_row_for_each_key_are_added(tmp_path: Path) -> None:
    rows = [
        *("stamp_inserted,ip_proto,packets,bytes", "2026-11-28 00:00:00,tcp,2,3000", "2026-11-28 00:00:00,udp,1,750"),
        *("2026-11-28 00:05:00,tcp,2,7500", "2026-11-28 00:05:00,udp,1,0"),
    ]
    assert read_series(written(tmp_path, "acct.csv", "\n".join(rows))).l2_bps == (100.0, 200.0)


MUTATIONS_PER_FORMAT = 137
"""Eleven formats: 1,507 mutations."""


@pytest.mark.parametrize(("name", "text"), [(case[0], case[1]) for case in CASES], ids=[case[0] for case in CASES])
def test_a_mutated_file_is_a_possible_series_or_a_fault_with_words(
    tmp_path: Path, name: str, text: Callable[[], str]
) -> None:
    original = text()
    random_of = random.Random(name)
    outcomes = {"read": 0, "refused": 0}
    for _ in range(MUTATIONS_PER_FORMAT):
        path = written(tmp_path, name, mutated(original, random_of))
        try:
            series = read_series(path)
            assert all(0.0 <= rate <= 1e15 for rate in series.l2_bps)
            day = mean_day(series, 300.0)
            assert all(0.0 <= rate <= 1e15 for rate in day.l2_bps)
            outcomes["read"] += 1
        except (FileProblem, ModelProblem):
            outcomes["refused"] += 1
    assert all(outcomes.values()), outcomes


def test_cells_of_a_german_spreadsheet_have_decimal_commas(tmp_path: Path) -> None:
    text = "sep=;\nZeit;in Mbit/s\n28.11.2026 00:00;1,25\n28.11.2026 00:05;1,500\n"
    assert read_series(written(tmp_path, "german.csv", text)).l2_bps == (1_250_000.0, 1_500_000.0)
    thousands = "Zeit;in Mbit/s\n28.11.2026 00:00;1,250\n28.11.2026 00:05;1,500\n"  # 1.25 or 1250?
    with pytest.raises(FileProblem, match="is no number"):
        read_series(written(tmp_path, "thousands.csv", thousands))


def test_a_direction_that_the_graph_draws_downwards_is_read_without_its_sign(tmp_path: Path) -> None:
    text = "Time,in bps,out bps\n0,1000,-500\n300,1000,-700\n"
    series = read_series(written(tmp_path, "down.csv", text))
    assert series.l2_bps == (1500.0, 1700.0)
    assert any("downwards" in note for note in series.notes)


def test_flow_records_with_durations_and_both_directions_keep_every_byte(tmp_path: Path) -> None:
    text = "firstSeen,duration,ibyt,obyt\n2026-11-28 00:00:00,120.0,1500,750\n2026-11-28 00:01:30,0.0,60,0\n"
    assert read_series(written(tmp_path, "flows.csv", text)).l2_bps == pytest.approx((150.0, 158.0))


def test_the_remedy_for_uneven_samples_works_without_a_step(tmp_path: Path) -> None:
    path = written(tmp_path, "uneven.csv", "time,bit/s\n0,10\n60,20\n120,30\n150,40\n180,50\n240,60\n")
    with pytest.raises(FileProblem, match="--gaps hold"):
        read_series(path)
    assert read_series(path, gaps="hold").l2_bps == pytest.approx((10, 20, 35, 50, 60))


@pytest.mark.parametrize(("step_s", "whole_s"), [(300.0, 300.0), (14.0, 15.0), (420.0, 432.0), (90_000.0, 86_400.0)])
def test_a_step_that_does_not_divide_a_day_becomes_the_next_that_does(step_s: float, whole_s: float) -> None:
    assert whole_step_of_day(step_s) == whole_s


def test_of_the_sources_of_an_rrd_only_bytes_in_and_out_are_traffic(tmp_path: Path) -> None:
    rows = "".join(f"{MIDNIGHT + 300 * at}: 100.0 50.0 7.0 8.0 nan\n" for at in range(1, 4))
    text = f"  INOCTETS  OUTOCTETS  INERRORS  INUCASTPKTS  INDISCARDS\n\n{rows}"
    series = read_series(written(tmp_path, "port.txt", text))
    assert series.l2_bps == (1200.0, 1200.0, 1200.0)
    named = text.replace("INOCTETS", "eth0_in").replace("OUTOCTETS", "eth0_out").replace("INERRORS", "errors_in")
    assert read_series(written(tmp_path, "named.txt", named)).l2_bps == (1200.0, 1200.0, 1200.0)


def test_a_32_bit_counter_near_its_limit_is_said_to_be_one_that_may_count_too_little(tmp_path: Path) -> None:
    # 2**32 bytes in 300 s are 114.5 Mbit/s; these readings are 80 Mbit/s.
    rows = [f"{300 * at},{3_000_000_000 * at % 2**32}" for at in range(10)]
    series = read_series(written(tmp_path, "fast.csv", "\n".join(["time,ifInOctets", *rows])))
    assert series.l2_bps == pytest.approx([8e7] * 9)
    assert any("count at most 114.5 Mbit/s" in note for note in series.notes)


Long = Callable[[], str]


def _grafana_old() -> str:
    rows = [f"{name};{clock(at, '%Y-%m-%dT%H:%M:%S+00:00')};{rate(at)}" for name, rate in RATES for at in range(288)]
    return "\ufeffsep=;\r\nSeries;Time;Value\r\n" + "\r\n".join(rows)


def _grafana_labels() -> str:
    rows = [
        f'"{MIDNIGHT * 1000 + 300_000 * at}","r1:9100","{name}","{rate(at) / 1e6} Mb/s"'
        for at in range(288)
        for name, rate in RATES
    ]
    return "\n".join(['"Time","instance","Metric","Value"', *rows])


def _influx() -> str:
    blocks = []
    for number, (name, rate) in enumerate((("in_bps", in_bps), ("out_bps", out_bps))):
        tail = "interface,r1,eth0"
        blocks += [
            "#group,false,false,true,true,false,false,true,true,true,true",
            "#datatype,string,long,dateTime:RFC3339,dateTime:RFC3339,dateTime:RFC3339,double,string,string,string,string",
            "#default,_result,,,,,,,,,",
            ",result,table,_start,_stop,_time,_value,_field,_measurement,host,ifName",
            *(
                f",,{number},2026-11-28T00:00:00Z,2026-11-29T00:00:00Z,{clock(at, '%Y-%m-%dT%H:%M:%SZ')},{rate(at)},"
                f"{name},{tail}"
                for at in range(288)
            ),
            "",
        ]
    return "\r\n".join(blocks)


def _influx_pivoted() -> str:
    head = ",result,table,_start,_stop,_time,host,in_bps,out_bps"
    rows = [f",,0,x,y,{clock(at, '%Y-%m-%dT%H:%M:%SZ')},r1,{in_bps(at)},{out_bps(at)}" for at in range(288)]
    return "\n".join([head, *rows])


def _influx_1() -> str:
    rows = [f"interface,{name},{(MIDNIGHT + 300 * at) * 10**9},{rate(at)}" for name, rate in RATES for at in range(288)]
    return "\n".join(["name,direction,time,mean_bit_per_s", *rows])


def _promtool() -> str:
    blocks = []
    for name, rate in (("receive", in_bps), ("transmit", out_bps)):
        blocks.append(f'node_network_{name}_bytes_total{{device="eth0", instance="r1:9100"}} =>')
        blocks += [f"{value} @[{MIDNIGHT + 300 * at}]" for at, value in enumerate(counters(rate))]
    return "\n".join(blocks)


def _two_values_in_a_row() -> str:
    """Ports that are polled one after the other; what both receive is added."""
    rows = [
        f"{clock(at)[:-2]}{7 * port:02d}\t{port}\t{in_bps(at) / 2e3}\t{out_bps(at) / 2e3}\tup{at // 200}"
        for at in range(288)
        for port in (1, 2)
    ]
    return "\n".join(["timestamp\tport\tin kbit/s\tout kbit/s\tstate", *rows])


RATES = (("In bps", in_bps), ("Out bps", out_bps))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (_grafana_old, BOTH_BPS),
        (_grafana_labels, BOTH_BPS),
        (_influx, BOTH_BPS),
        (_influx_pivoted, BOTH_BPS),
        (_influx_1, BOTH_BPS),
        (_promtool, BOTH_BPS),
        (_two_values_in_a_row, IN_BPS),
    ],
)
def test_series_that_share_a_column_are_told_apart(tmp_path: Path, text: Long, expected: Sequence[float]) -> None:
    series = read_series(written(tmp_path, "long.csv", text()))
    assert series.step_s == 300.0
    assert series.l2_bps == pytest.approx(expected, rel=1e-9)
    assert series.read_as.startswith("read as ")


def test_of_several_series_in_a_column_one_is_asked_for_by_name(tmp_path: Path) -> None:
    rows = [f"{clock(at)},{name},{at + 1} Mb/s" for at in range(4) for name in ("router A", "router B")]
    path = written(tmp_path, "long.csv", "\n".join(["Time,Metric,Value", *rows]))
    with pytest.raises(FileProblem, match=r'name the column.*--column.*"router A", "router B"'):
        read_series(path)
    assert read_series(path, column="router B").l2_bps == (1e6, 2e6, 3e6, 4e6)


def test_a_series_with_a_hole_has_it_although_the_other_does_not(tmp_path: Path) -> None:
    rows = [
        f"{clock(at)},{name},{at + 1}"
        for at in range(4)
        for name in ("in bps", "out bps")
        if (at, name) != (2, "in bps")
    ]
    path = written(tmp_path, "long.csv", "\n".join(["Time,Series,Value", *rows]))
    with pytest.raises(FileProblem, match="1 step missing"):
        read_series(path)
    assert read_series(path, gaps="interpolate").l2_bps == (2.0, 4.0, 6.0, 8.0)


def test_a_state_beside_the_value_makes_no_series(tmp_path: Path) -> None:
    rows = [f"{clock(at)},{'ok' if at % 2 else 'warning'},{at + 1}" for at in range(4)]
    path = written(tmp_path, "state.csv", "\n".join(["time,state,rate_bps", *rows]))
    assert read_series(path).l2_bps == (1.0, 2.0, 3.0, 4.0)


def test_the_instant_of_promtool_names_the_query_that_is_a_series(tmp_path: Path) -> None:
    path = written(tmp_path, "up.txt", 'node_network_receive_bytes_total{device="eth0"} => 1234 @[1795824000.123]\n')
    with pytest.raises(FileProblem, match="promtool query range"):
        read_series(path)
