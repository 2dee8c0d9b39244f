"""A day of traffic, and energy over time, in the formats of monitoring tools, written from the tools' documentation."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

MIDNIGHT = 1_795_824_000
"""2026-11-28 00:00:00 UTC, a Saturday: 20,785 days of 86,400 s since 1970."""
STEPS = 288
DAY_STEPS_S = 300 * STEPS


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


START_S = 1_795_824_000
RANGE_UJ = 262_143_328_850
"""``max_energy_range_uj`` of the package domain of Intel processors with units of 2**-14 J."""


def watts_at(step: int) -> int:
    """60 W without load and 100 W at full load, which is reached in step 60 and 120."""
    return 60 + 40 * (step % 61) // 60


def bytes_per_s(step: int) -> int:
    return 1_000_000 * (step % 61)


def rapl(*, header: str = "time,energy_uj", extra: str = "") -> str:
    """Readings each minute at 80 W, which wrap after 262,143 J: about every 55 minutes."""
    rows = [f"{START_S + 60 * at},{(200_000_000_000 + 80 * 60_000_000 * at) % RANGE_UJ}{extra}" for at in range(200)]
    return "\n".join([header, *rows]) + "\n"


def exposition(*, kepler: bool, stamped: bool) -> str:
    """Scrapes each minute; node_exporter dates them by node_time_seconds, or each line has its milliseconds."""
    name = "kepler_node_package_joules_total" if kepler else "node_rapl_package_joules_total"
    labels = ('{instance="n",package="0",mode="dynamic"}', '{instance="n",package="0",mode="idle"}')
    labels = labels if kepler else ('{index="0",path="/sys/class/powercap/intel-rapl:0"}', "")
    lines = [f"# HELP {name} Energy in joules", f"# TYPE {name} counter"]
    joules, octets = 5000, 10**9
    for at in range(122):
        end = f" {(START_S + 60 * at) * 1000}" if stamped else ""
        lines.append(f"{name}{labels[0]} {joules / 2 if labels[1] else joules}{end}")
        if labels[1]:
            lines.append(f"{name}{labels[1]} {joules / 2}{end}")
        lines += [f'go_gc_duration_seconds{{quantile="0"}} 1e-05{end}', f'other_total{{a="b}}",c="\\"x"}} 7{end}']
        if not kepler:
            lines.append(f'node_network_receive_bytes_total{{device="eth0"}} {octets}{end}')
        if not stamped:
            lines.append(f"node_time_seconds {START_S + 60 * at}.0")
        joules += 60 * watts_at(at)
        octets += 60 * bytes_per_s(at)
    return "\n".join(lines) + "\n"
