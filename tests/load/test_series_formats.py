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

from routecast.errors import FileProblem, ModelProblem, RoutecastError
from routecast.load.series import DAY_S
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
