"""Energy counters and watts over time, as Linux, Kepler and node_exporter give them, become power models."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tool_series import RANGE_UJ, START_S, exposition, mutated, rapl, watts_at, written

from routecast.errors import FileProblem, FitProblem
from routecast.plan.series.reading import read_series
from routecast.power._energy_series import PowerOverTime, read_power_over_time
from routecast.power.csv_file import read_csv
from routecast.power.curve import LinearPower
from routecast.power.fits import fit_file, model_for


def power_of(path: Path) -> PowerOverTime:
    power = read_power_over_time(path)
    assert power is not None
    return power


@pytest.mark.parametrize(
    ("header", "extra"), [("time,energy_uj", ""), ("time,energy_uj,max_energy_range_uj", f",{RANGE_UJ}")]
)
def test_microjoules_that_wrap_are_watts_without_a_break(tmp_path: Path, header: str, extra: str) -> None:
    power = power_of(written(tmp_path, "rapl.csv", rapl(header=header, extra=extra)))
    assert [sample.power_w for sample in power.samples] == pytest.approx([80.0] * 199)
    assert not power.has_load
    assert any("wrapped 4 times" in note for note in power.notes)


def test_a_counter_that_restarts_leaves_its_interval_out(tmp_path: Path) -> None:
    rows = [f"{START_S + 60 * at},{4800 * at if at < 5 else 4800 * (at - 5)}" for at in range(10)]
    power = power_of(written(tmp_path, "restart.csv", "\n".join(["time,package_joules_total", *rows])))
    assert [sample.power_w for sample in power.samples] == pytest.approx([80.0] * 8)
    assert any("left out" in note for note in power.notes)


def test_watts_without_a_load_are_a_model_of_their_mean_and_it_is_said(tmp_path: Path) -> None:
    path = written(tmp_path, "rapl.csv", rapl())
    assert model_for(path) == "linear"
    (fit,) = fit_file(path, "linear")
    assert isinstance(fit.model, LinearPower)
    assert (fit.model.idle_w, fit.model.full_w) == pytest.approx((80.0, 80.0))
    assert fit.model.scope == "package"
    assert any("not known" in note for note in fit.notes)
    assert any("mean watts at every load" in note for note in fit.notes)
    with pytest.raises(FitProblem, match="leave out --model"):
        fit_file(path, "monotone")


@pytest.mark.parametrize("stamped", [False, True])
def test_node_exporters_energy_and_traffic_are_watts_over_load(tmp_path: Path, stamped: bool) -> None:
    path = written(tmp_path, "node.prom", exposition(kepler=False, stamped=stamped))
    (fit,) = fit_file(path, model_for(path))
    assert isinstance(fit.model, LinearPower)
    assert fit.model.idle_w == pytest.approx(60.0, abs=1.0)  # watts are rounded down to whole ones
    assert fit.model.full_w == pytest.approx(100.0, abs=1.0)
    assert any("Prometheus text format" in note for note in fit.notes)
    assert any('"node_network_receive_bytes_total' in note and "load 1" in note for note in fit.notes)


def test_keplers_idle_and_dynamic_joules_are_added(tmp_path: Path) -> None:
    path = written(tmp_path, "kepler.prom", exposition(kepler=True, stamped=True))
    (fit,) = fit_file(path, model_for(path))
    mean_w = sum(watts_at(at) for at in range(121)) / 121
    assert fit.parameters["idle_w"].value == pytest.approx(mean_w)


def test_one_scrape_has_no_power_and_the_remedy_works(tmp_path: Path) -> None:
    scrape = 'kepler_node_package_joules_total{package="0"} %d\nkepler_node_dram_joules_total{package="0"} %d\n'
    path = written(tmp_path, "one.prom", scrape % (100, 10))
    with pytest.raises(FileProblem, match="# time %s"):
        model_for(path)
    path.write_text(f"# time {START_S}\n{scrape % (100, 10)}# time {START_S + 60}\n{scrape % (4900, 610)}")
    assert [sample.power_w for sample in power_of(path).samples] == [90.0]


def test_the_whole_machine_covers_its_packages(tmp_path: Path) -> None:
    text = "time,package_joules,psys_joules\n0,0,0\n60,4800,6000\n120,9600,12000\n"
    power = power_of(written(tmp_path, "psys.csv", text))
    assert [sample.power_w for sample in power.samples] == [100.0, 100.0]
    assert power.scope == "server"


def test_a_range_query_of_joules_is_read(tmp_path: Path) -> None:
    values = [[START_S + 60 * at, str(4800 * at)] for at in range(10)]
    result = [{"metric": {"__name__": "node_rapl_package_joules_total", "index": "0"}, "values": values}]
    text = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})
    power = power_of(written(tmp_path, "range.json", text))
    assert [sample.power_w for sample in power.samples] == pytest.approx([80.0] * 9)


def test_a_profile_of_energy_names_the_command_that_fits_it(tmp_path: Path) -> None:
    for name, text in (("rapl.csv", rapl()), ("kepler.prom", exposition(kepler=True, stamped=True))):
        with pytest.raises(FileProblem, match="routecast power fit"):
            read_series(written(tmp_path, name, text))


def test_tables_of_power_samples_are_no_power_over_time(tmp_path: Path) -> None:
    for text in (
        "power_w,load_ratio\n60,0\n100,1\n",
        "server,w_0,w_100\na,60,100\n",
        "device,path,n,mean_w\nr,base,1,9\n",
    ):
        assert read_power_over_time(written(tmp_path, "table.csv", text)) is None


def test_a_unit_that_gives_megawatts_is_refused(tmp_path: Path) -> None:
    text = "time,joules\n0,0\n60,4800000000\n120,9600000000\n"
    with pytest.raises(FileProblem, match="is the unit right"):
        read_power_over_time(written(tmp_path, "wrong.csv", text))


def test_mutated_energy_files_are_possible_watts_or_a_fault_with_words(tmp_path: Path) -> None:
    originals = [rapl(), exposition(kepler=False, stamped=False), exposition(kepler=True, stamped=True)]
    random_of = random.Random(1)
    outcomes = {"read": 0, "refused": 0}
    for number in range(450):
        path = written(tmp_path, "energy.txt", mutated(originals[number % 3], random_of))
        try:
            for fit in fit_file(path, model_for(path)):
                assert all(0.0 <= parameter.value <= 1e6 for parameter in fit.parameters.values())
            outcomes["read"] += 1
        except (FileProblem, FitProblem):
            outcomes["refused"] += 1
    assert all(outcomes.values()), outcomes


def test_parts_of_the_energy_are_not_added_to_their_total(tmp_path: Path) -> None:
    names = "kepler_node_cpu_joules_total,kepler_node_cpu_active_joules_total,kepler_node_cpu_idle_joules_total"
    power = power_of(written(tmp_path, "kepler.csv", f"time,{names}\n0,0,0,0\n60,4800,1800,3000\n"))
    assert power.samples[0].power_w == 80.0
    zones = "package-0 energy_uj,core energy_uj,intel-rapl:0:1 energy_uj,dram energy_uj"
    power = power_of(written(tmp_path, "zones.csv", f"time,{zones}\n0,0,0,0,0\n60,4800e6,1800e6,60e6,600e6\n"))
    assert power.samples[0].power_w == 90.0
    with pytest.raises(FileProblem, match="kepler_node"):
        read_power_over_time(written(tmp_path, "pods.csv", "time,kepler_pod_cpu_joules_total\n0,0\n60,10\n"))


def _load_bps(minute: int) -> float:
    return 1e7 * (minute % 30 + 1)


def _power_w(minute: int) -> float:
    return 100.0 + 20.0 * _load_bps(minute) / 3e8


def _meter(rows: Callable[[int], str], title: str) -> str:
    return "\n".join([title, *map(rows, range(90))])


def _kilowatt_hours() -> str:
    energies_j = [0.0]
    for minute in range(90):
        energies_j.append(energies_j[-1] + 60.0 * _power_w(minute))
    return _meter(
        lambda at: f"{60 * at},{1234 + energies_j[at] / 3.6e6:.9f},{_load_bps(at):.0f}", "time,energy_kwh,in_bps"
    )


METERS: dict[str, Callable[[], str]] = {
    "kilowatt-hours": _kilowatt_hours,
    "a unit in each cell": lambda: _meter(
        lambda at: f'"{60 * at}","{_power_w(at):.4f} Watts","{_load_bps(at):.0f}"',
        '"Timestamp","Instantaneous power reading (Watts)","rx_bps"',
    ),
    "decimal commas": lambda: _meter(
        lambda at: f"{60 * at};{_power_w(at):.4f};{_load_bps(at) / 1e6:.1f}".replace(".", ","),
        "Zeit;Leistung (W);in Mbit/s",
    ),
    "turbostat": lambda: _meter(
        lambda at: f"{60 * at}.5\t-\t-\t{_power_w(at) - 5:.4f}\t5.0\t{_load_bps(at)}\n{60 * at}.5\t0\t0\t\t\t",
        "Time_Of_Day_Seconds\tCore\tCPU\tPkgWatt\tRAMWatt\tin_bps",
    ),
}


@pytest.mark.parametrize("name", METERS)
def test_meters_of_all_kinds_give_the_line_that_they_measured(tmp_path: Path, name: str) -> None:
    path = tmp_path / "meter.csv"
    path.write_text(METERS[name](), encoding="utf-8")
    over_time = read_power_over_time(path)
    assert over_time is not None
    assert over_time.has_load
    for sample in over_time.samples:
        assert sample.power_w == pytest.approx(100.0 + 20.0 * sample.load_ratio, rel=1e-3)


def test_samples_of_a_german_spreadsheet_are_those_of_commas(tmp_path: Path) -> None:
    path = tmp_path / "samples.csv"
    path.write_text("\ufeffload_ratio;power_w\r\n0,0;100,5\r\n1,0;120,5\r\n", encoding="utf-8")
    table = read_csv(path, kind="table of power samples")
    assert [(row.number_in("load_ratio"), row.number_in("power_w")) for row in table.rows] == [
        (0.0, 100.5),
        (1.0, 120.5),
    ]
