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

from routecast.errors import FileProblem, ModelProblem
from routecast.load.series.reading import read_series
from routecast.load.series.shapes import mean_day

MIDNIGHT = 1_795_824_000
"""2026-11-28 00:00:00 UTC, a Saturday: 20,785 days of 86,400 s since 1970."""
STEPS = 288


def in_bps(step: int) -> int:
    """Bits/s in; a multiple of 8, so that bytes are whole."""
    return 8 * (1_000_000 + 5_000 * step)


def out_bps(step: int) -> int:
    return 8 * (400_000 + 1_000 * step)


BOTH_BPS = tuple(float(in_bps(step) + out_bps(step)) for step in range(STEPS))
IN_BPS = tuple(float(in_bps(step)) for step in range(STEPS))


def clock(step: int, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    return datetime.fromtimestamp(MIDNIGHT + 300 * step, UTC).strftime(form)


def us_clock(step: int) -> str:
    time = datetime.fromtimestamp(MIDNIGHT + 300 * step, UTC)
    half = "PM" if time.hour >= 12 else "AM"
    return f"{time.month}/{time.day}/{time.year} {time.hour % 12 or 12}:{time.minute:02d} {half}"


def mrtg() -> str:
    """mrtg-logfile(1): counters, then bytes/s in and out, their maxima; a line holds until the line before."""
    end = MIDNIGHT + 300 * STEPS
    lines = [f"{end + 12} 123456789 987654321", f"{end + 12} 9 9 9 9", f"{end} 0 0 0 0"]
    lines += [
        f"{MIDNIGHT + 300 * step} {in_bps(step) // 8} {out_bps(step) // 8} {in_bps(step)} {out_bps(step)}"
        for step in reversed(range(STEPS))
    ]
    lines += [f"{MIDNIGHT - 1800 * back} 77 77 99 99" for back in range(1, 100)]
    return "\n".join([*lines, f"{MIDNIGHT - 1800 * 99 - 7200} 1 1 1 1", "0 0 0 0 0"]) + "\n"


def rrd_fetch() -> str:
    """rrdfetch(1): names, then the end of each step and the rates; the step in progress is unknown."""
    rows = [f"{MIDNIGHT + 300 * (step + 1)}: {in_bps(step) / 8:.10e} {out_bps(step) / 8:.10e}" for step in range(STEPS)]
    return "\n".join(
        ["                     traffic_in         traffic_out", "", *rows, f"{MIDNIGHT + 300 * (STEPS + 1)}: -nan nan"]
    )


def rrd_xml(*, with_times: bool = False) -> str:
    def time(step: int) -> str:
        return f"<t>{MIDNIGHT + 300 * (step + 1)}</t>" if with_times else ""

    rows = "\n".join(
        f"<row>{time(step)}<v>{in_bps(step) / 8:.10e}</v><v>{out_bps(step) / 8:.10e}</v></row>" for step in range(STEPS)
    )
    return (
        '<?xml version="1.0" encoding="ISO-8859-1"?>\n\n<xport><meta>'
        f"<start>{MIDNIGHT + 300}</start><end>{MIDNIGHT + 300 * STEPS}</end><step>300</step><rows>{STEPS}</rows>"
        "<columns>2</columns><legend><entry>in bytes</entry><entry>out bytes</entry></legend></meta>"
        f"<data>{rows}</data></xport>"
    )


def rrd_json() -> str:
    meta = {"start": MIDNIGHT + 300, "end": MIDNIGHT + 300 * STEPS, "step": 300, "legend": ["Inbound bits", "out bits"]}
    data = [[in_bps(step), out_bps(step)] for step in range(STEPS)]
    return json.dumps({"about": "RRDtool graph JSON output", "meta": meta, "data": data})


def cacti() -> str:
    head = [
        *('"Title:","r1 - Traffic - Gi0/1"', '"Vertical Label:","bits per second"', f'"Start Date:","{clock(0)}"'),
        *(f'"End Date:","{clock(STEPS)}"', '"Step:","300"', '"Total Rows:","288"', '"Graph ID:","7"', '"Host ID:","2"'),
        *("", '"Date","Inbound","Outbound"'),
    ]
    return "\n".join([*head, *(f'"{clock(step)}","{in_bps(step)}","{out_bps(step)}"' for step in range(STEPS))])


def in_units(bps: int, step: int) -> str:
    """A rate in the units of Grafana, another one in each row."""
    forms = [
        f"{bps / 1e6!r} Mb/s",
        f"{bps / 1e3!r} kb/s",
        f"{bps / 8e3!r} kB/s",
        f"{bps / 1e9!r} Gb/s",
        f"{bps / 8e6!r} MBps",
    ]
    return forms[step % len(forms)]


def grafana_units() -> str:
    rows = (f'"{clock(step)}",{in_units(in_bps(step), step)},{in_units(out_bps(step), step)}' for step in range(STEPS))
    return "\n".join(['"Time","eth0 in","eth0 out"', *rows])


def grafana_milliseconds() -> str:
    rows = (f"{(MIDNIGHT + 300 * step) * 1000},{in_bps(step)},{out_bps(step)}" for step in range(STEPS))
    return "\n".join(['"Time","in (bits/sec)","out (bits/sec)"', *rows])


def counters(bps: Callable[[int], int]) -> list[int]:
    values = [10**12]
    for step in range(STEPS):
        values.append(values[-1] + bps(step) * 300 // 8)
    return values


def prometheus_json() -> str:
    result = []
    for name, bps in (("receive", in_bps), ("transmit", out_bps)):
        for device, factor in (("eth0", 1), ("lo", 50)):
            metric = {
                "__name__": f"node_network_{name}_bytes_total",
                "device": device,
                "instance": "r1:9100",
                "job": "n",
            }
            values = [[MIDNIGHT + 300 * at, str(value * factor)] for at, value in enumerate(counters(bps))]
            result.append({"metric": metric, "values": values})
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def counter_day() -> str:
    rows = (f"{MIDNIGHT + 300 * at},{value}" for at, value in enumerate(counters(in_bps)[:STEPS]))
    return "\n".join(["timestamp,ifHCInOctets", *rows])


def us_dates() -> str:
    return "\n".join(["Date,In (bps),Out (bps)", *(f"{us_clock(s)},{in_bps(s)},{out_bps(s)}" for s in range(STEPS))])


def netflow() -> str:
    rows = (f"{clock(s)},{in_bps(s) * 300 // 8},{in_bps(s) * 300 // 8 // 500}" for s in range(STEPS))
    return "\n".join(["start,bytes,packets", *rows])


Case = tuple[str, Callable[[], str], Sequence[float], tuple[str, ...]]
CASES: list[Case] = [
    ("mrtg.log", mrtg, BOTH_BPS, ("MRTG log", '"in" + "out"', "byte/s", "in and out")),
    ("fetch.txt", rrd_fetch, BOTH_BPS, ("rrdtool fetch", '"traffic_in" + "traffic_out"', "byte/s", "in and out")),
    ("xport.xml", rrd_xml, BOTH_BPS, ("rrdtool xport (XML)", '"in bytes" + "out bytes"', "byte/s")),
    ("times.xml", lambda: rrd_xml(with_times=True), BOTH_BPS, ("rrdtool xport (XML)", "byte/s")),
    ("xport.json", rrd_json, BOTH_BPS, ("rrdtool xport (JSON)", '"Inbound bits" + "out bits"', "in bit/s")),
    ("cacti.csv", cacti, BOTH_BPS, ("Cacti export", "bit/s", 'vertical label is "bits per second"', "in and out")),
    ("grafana.csv", grafana_units, BOTH_BPS, ('"eth0 in" + "eth0 out"', "unit of each cell", "in and out")),
    ("ms.csv", grafana_milliseconds, BOTH_BPS, ('"in (bits/sec)" + "out (bits/sec)"', "bit/s")),
    ("range.json", prometheus_json, BOTH_BPS, ("Prometheus range query", "counter of bytes", "in and out")),
    ("us.csv", us_dates, BOTH_BPS, ("month, day, year", "in and out")),
    ("flows.csv", netflow, IN_BPS, ("bytes of each interval",)),
]


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


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


DAY_STEPS_S = 300 * STEPS


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


def mutated(text: str, random_of: random.Random) -> str:
    """Change characters, cut, repeat or move lines, or put in what breaks readers."""
    lines = text.splitlines()
    kind = random_of.randrange(6)
    if kind == 0:
        return text[: random_of.randrange(len(text))]
    if kind == 1:
        at = random_of.randrange(len(text))
        return text[:at] + random_of.choice('0123456789-+.eE,;:"{}[]<>\x00\n #nü') + text[at + 1 :]
    if kind == 2:
        at = random_of.randrange(len(lines))
        return "\n".join([*lines[:at], lines[random_of.randrange(len(lines))], *lines[at:]])
    if kind == 3:
        at, other = random_of.randrange(len(lines)), random_of.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
        return "\n".join(lines)
    if kind == 4:
        at = random_of.randrange(len(text))
        return (
            text[:at]
            + random_of.choice(["1e400", "9" * 30, "nan", "-1", "null", "1e18 Gb/s", "9999-12-31"])
            + text[at:]
        )
    for _ in range(20):
        at = random_of.randrange(len(text))
        text = text[:at] + random_of.choice("0123456789") + text[at + 1 :]
    return text


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
