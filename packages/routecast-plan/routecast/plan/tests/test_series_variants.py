"""Series as people have them: locales, encodings, notations of times, extremes beside means, and JSON of systems."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tool_series import BOTH_BPS, MIDNIGHT, STEPS, clock, counters, in_bps, out_bps

from routecast.errors import FileProblem
from routecast.load.series.numbers import with_plain_numbers
from routecast.plan.series.reading import read_series

Cells = Callable[[int], tuple[str, ...]]


def _lines(title: str, cells: Callable[[int], str], ending: str = "\n") -> str:
    return ending.join([title, *map(cells, range(STEPS))])


def _grouped(rate: float, thousands: str, decimal: str) -> str:
    return f"{rate:,.2f}".translate({ord(","): thousands, ord("."): decimal})


def _prtg() -> str:
    def row(step: int) -> str:
        span = f"{clock(step, '%m/%d/%Y %I:%M:%S %p')} - {clock(step + 1, '%I:%M:%S %p')}"
        volumes = [f"{rate(step) * 300 / 8e3:,.0f} KB" for rate in (in_bps, out_bps)]
        speeds = [f"{rate(step) / 1e3:,.0f} kbit/s" for rate in (in_bps, out_bps)]
        return f'"{span}","{volumes[0]}","{speeds[0]}","{volumes[1]}","{speeds[1]}","100 %"'

    names = ["Traffic In (volume)", "Traffic In (speed)", "Traffic Out (volume)", "Traffic Out (speed)", "Coverage"]
    head = ",".join(f'"{name}"' for name in ("Date Time", *names))
    return _lines(head, row) + '\n"Averages (of 288 values)","","9 kbit/s","","9 kbit/s","100 %"\n'


def _prtg_german() -> str:
    def row(step: int) -> str:
        cells = (f"{_grouped(rate(step) / 1e3, '.', ',')} kbit/s;{rate(step) / 8:.4f}" for rate in (in_bps, out_bps))
        return ";".join([clock(step, "%d.%m.%Y %H:%M:%S"), *cells])

    kinds = [f"Verkehr {way} ({kind})" for way in ("eingehend", "ausgehend") for kind in ("Geschwindigkeit", "RAW")]
    return "\ufeff" + _lines(";".join(["Datum Uhrzeit", *kinds]), row, "\r\n")


def _sadf() -> str:
    def row(step: int) -> str:
        rates = f"{in_bps(step) / 8192:.6f};{out_bps(step) / 8192:.6f}"
        lead = f"r1;300;{clock(step + 1)} UTC"
        return f"{lead};lo;9;9;5.0;5.0;0;0;0;0\n{lead};eth0;9;9;{rates};0;0;0;1"

    title = "# hostname;interval;timestamp;IFACE;rxpck/s;txpck/s;rxkB/s;txkB/s;rxcmp/s;txcmp/s;rxmcst/s;%ifutil"
    return _lines(title, row)


def _sar(form: str = "%H:%M:%S") -> str:
    def row(step: int) -> str:
        time = clock(step + 1, form)
        rates = f"{in_bps(step) / 8192:12.6f} {out_bps(step) / 8192:12.6f}"
        return f"{time}   lo  9.00 9.00 1.00 1.00 0 0 0 0\n{time}   eth0  9.00  9.00 {rates} 0.00 0.00 0.00 0.10"

    titles = "IFACE rxpck/s txpck/s rxkB/s txkB/s rxcmp/s txcmp/s rxmcst/s %ifutil"
    head = f"Linux 6.1.0-18 (r1)\t11/28/2026\t_x86_64_\t(4 CPU)\n\n{clock(0, form)}   {titles}"
    return _lines(head, row) + "\nAverage:   lo 1 1 1 1 0 0 0 0\n"


def _influx() -> str:
    rows = [[(MIDNIGHT + 300 * at) * 1000, in_bps(at), out_bps(at)] for at in range(STEPS)]
    series = {"name": "net", "tags": {"host": "r1"}, "columns": ["time", "in_bps", "out_bps"], "values": rows}
    return json.dumps({"results": [{"statement_id": 0, "series": [series]}]})


def _victoria() -> str:
    def line(name: str, rate: Callable[[int], int]) -> str:
        metric = {"__name__": f"node_network_{name}_bytes_total", "device": "eth0"}
        times = [(MIDNIGHT + 300 * at) * 1000 for at in range(STEPS + 1)]
        return json.dumps({"metric": metric, "values": counters(rate), "timestamps": times})

    return f"{line('receive', in_bps)}\n{line('transmit', out_bps)}\n"


def _vnstat() -> str:
    rows = [
        {
            "date": {"year": 2026, "month": 11, "day": 28},
            "time": {"hour": at // 12, "minute": at % 12 * 5},
            "rx": in_bps(at) * 300 // 8,
            "tx": out_bps(at) * 300 // 8,
        }
        for at in range(STEPS)
    ]
    interface = {"name": "eth0", "traffic": {"total": {"rx": 1, "tx": 1}, "fiveminute": rows}}
    return json.dumps({"vnstatversion": "2.9", "jsonversion": "2", "interfaces": [interface]})


def _words(form: str, zone: str = "") -> Callable[[], str]:
    return lambda: _lines(
        "Time\tInbound\tOutbound",
        lambda at: f"{clock(at, form)}{zone}\t{in_bps(at) / 1e9:.9f} Gbps\t{out_bps(at) / 1e9:.9f} Gbps",
    )


def _rates(title: str, cell: Callable[[int], str], sign: str = ",") -> Callable[[], str]:
    return lambda: _lines(title, lambda at: f"{cell(at)}{sign}{in_bps(at)}{sign}{out_bps(at)}")


VARIANTS: dict[str, tuple[Callable[[], str], str]] = {
    "PRTG, spans and volumes": (_prtg, "utf-8"),
    "PRTG, German": (_prtg_german, "utf-8"),
    "thousands in quotes": (
        lambda: _lines("time,in (bps),out (bps)", lambda at: f'{clock(at)},"{in_bps(at):,}","{out_bps(at):,}"'),
        "utf-8",
    ),
    "Swiss": (
        lambda: _lines(
            "Zeit;in kbit/s;out kbit/s",
            lambda at: ";".join(
                [clock(at, "%d.%m.%Y %H:%M"), *(_grouped(rate(at) / 1e3, "'", ".") for rate in (in_bps, out_bps))]
            ),
        ),
        "utf-8",
    ),
    "French, Windows-1252": (
        lambda: _lines(
            "Horodatage;Débit entrant kbit/s;Débit sortant kbit/s",
            lambda at: ";".join(
                [clock(at, "%d/%m/%Y %H:%M"), *(_grouped(rate(at) / 1e3, "\u00a0", ",") for rate in (in_bps, out_bps))]
            ),
            "\r\n",
        ),
        "cp1252",
    ),
    "UTF-16": (_words("%d.%m.%Y %H:%M"), "utf-16"),
    "a zone by name": (_rates("timestamp,rx_bps,tx_bps", lambda at: f"{clock(at)} UTC"), "utf-8"),
    "a script's dates": (_words("%a %b %d %Y %H:%M:%S", " GMT+0000 (Coordinated Universal Time)"), "utf-8"),
    "dates of mail": (_words("%a, %d %b %Y %H:%M:%S", " +0000"), "utf-8"),
    "dates with months": (_words("%d-%b-%Y %H:%M"), "utf-8"),
    "date and time apart": (_rates("date,time,in_bps,out_bps", lambda at: clock(at).replace(" ", ",")), "utf-8"),
    "spaces, commented titles": (
        _rates("# time  in_bps  out_bps", lambda at: str(MIDNIGHT + 300 * at), "   "),
        "utf-8",
    ),
    "means beside extremes": (
        lambda: _lines(
            "# 5-minute averages\nepoch_us,in_max_bps,in_avg_bps,out_min_bps,out_avg_bps",
            lambda at: f"{(MIDNIGHT + 300 * at) * 10**6},{3 * in_bps(at)},{in_bps(at)},1,{out_bps(at)}",
        ),
        "utf-8",
    ),
    "binary prefixes": (
        lambda: _lines(
            "time\tRX MiB/s\tTX MiB/s",
            lambda at: f"{(MIDNIGHT + 300 * at) * 10**9}\t{in_bps(at) / 2**23:.12f}\t{out_bps(at) / 2**23:.12f}",
        ),
        "utf-8",
    ),
    "sadf": (_sadf, "utf-8"),
    "sar": (_sar, "utf-8"),
    "sar, AM and PM": (lambda: _sar("%I:%M:%S %p"), "utf-8"),
    "InfluxDB's JSON": (_influx, "utf-8"),
    "VictoriaMetrics": (_victoria, "utf-8"),
    "vnStat": (_vnstat, "utf-8"),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_day_is_the_same_day_in_every_notation(tmp_path: Path, name: str) -> None:
    text, encoding = VARIANTS[name]
    path = tmp_path / "series.csv"
    path.write_bytes(text().encode(encoding))
    series = read_series(path)
    assert str(series.start) == "2026-11-28 00:00:00"
    assert series.step_s == 300.0
    assert series.l2_bps == pytest.approx(BOTH_BPS, rel=1e-6)
    assert any("Windows-1252" in note for note in series.notes) == (encoding == "cp1252")


def test_what_a_file_leaves_open_is_asked_for_and_the_remedy_works(tmp_path: Path) -> None:
    rows = [
        {"itemid": item, "clock": str(MIDNIGHT + 300 * at), "value": str(rate(at)), "ns": "1"}
        for at in range(STEPS)
        for item, rate in (("1", in_bps), ("2", out_bps))
    ]
    path = tmp_path / "history.json"
    path.write_text(json.dumps({"jsonrpc": "2.0", "result": rows}), encoding="utf-8")
    with pytest.raises(FileProblem, match=r'--column.*"item 1", "item 2"'):
        read_series(path)
    assert read_series(path, column="item 2", unit="bit/s").l2_bps == tuple(map(float, map(out_bps, range(STEPS))))

    points = [{"Timestamp": clock(at, "%Y-%m-%dT%H:%M:%SZ"), "Sum": 300.0, "Unit": "Bytes"} for at in (2, 0, 1)]
    path.write_text(json.dumps({"Label": "NetworkIn", "Datapoints": points}), encoding="utf-8")
    with pytest.raises(FileProblem, match="--unit"):
        read_series(path)
    assert read_series(path, unit="byte per step").l2_bps == (8.0, 8.0, 8.0)

    path.write_text(f"{MIDNIGHT},5\n{MIDNIGHT + 300},6\n", encoding="utf-8")
    with pytest.raises(FileProblem, match="--unit"):
        read_series(path)
    assert read_series(path, unit="bit/s").l2_bps == (5.0, 6.0)


def test_empty_rows_and_missing_readings_are_no_samples(tmp_path: Path) -> None:
    path = tmp_path / "counter.csv"
    path.write_text(
        '"time","ifHCInOctets"\r\n\r\n0,"0"\r\n300,"300"\r\n,\r\n600,null\r\n900,"1500"\r\n', encoding="utf-8"
    )
    assert read_series(path).l2_bps == (8.0, 16.0, 16.0)


@pytest.mark.parametrize(
    ("cells", "plain"),
    [
        (["1,900", "12,5"], ["1.900", "12.5"]),
        (["1,900", "1,234,567"], ["1900", "1234567"]),
        (["1,900", "1,000.5"], ["1900", "1000.5"]),
        (["1.900", "1.234,5"], ["1900", "1234.5"]),
        (["1.900", "12.5"], ["1.900", "12.5"]),
        (["1'900", "12.5 kB/s"], ["1900", "12.5 kB/s"]),
        (["1,900", "1,800"], ["1,900", "1,800"]),
        (["28.11.2026", "29.11.2026"], ["28.11.2026", "29.11.2026"]),
        (["192.168.100.200"], ["192.168.100.200"]),
    ],
)
def test_a_number_that_can_be_read_in_one_way_decides_for_its_column(cells: list[str], plain: list[str]) -> None:
    rows, note = with_plain_numbers([[cell] for cell in cells], has_commas=False)
    assert [row[0] for row in rows] == plain
    assert not note


def test_commas_in_cells_between_commas_are_between_thousands_and_it_is_said() -> None:
    rows, note = with_plain_numbers([["1,900 kbit/s"], ["800 kbit/s"]], has_commas=True)
    assert rows == [["1900 kbit/s"], ["800 kbit/s"]]
    assert "1,900" in note
