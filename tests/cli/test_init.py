"""``routecast init``: what it writes runs as it stands, says what is a guess, and overwrites nothing."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from in_process import Completed, completed

from routecast.hardware.model import Nic
from routecast.hardware.probe_facts import clock
from routecast.router.files import read_router_and_load
from routecast.router.starting import host_start, router_text
from routecast.study.reading import read_study

FOUR = "cores,throughput (Mpps)\n1,1.78\n2,3.31\n4,6.04\n8,\n"
HELD_OUT = """cores,frame_bytes,throughput_pps,link,ports,calibrate,shared_queue
1,64,1775000,10 Gbit/s,2,true,no
1,512,1764544,10 Gbit/s,2,true,no
2,64,3313244,10 Gbit/s,2,false,no
4,64,6043452,10 Gbit/s,2,true,no
4,64,6043460,10 Gbit/s,2,true,no
"""


def begun(folder: Path, table: str, *arguments: str) -> Completed:
    (folder / "points.csv").write_text(table)
    return completed("init", "--measurements", "points.csv", *arguments, folder=folder)


@pytest.mark.parametrize("table", [FOUR, HELD_OUT])
def test_a_study_of_measurements_runs(table: str, tmp_path: Path) -> None:
    done = begun(tmp_path, table)
    assert done.returncode == 0, done.stderr
    assert "Next: routecast study points.study.toml" in done.stderr
    done = completed("study", "points.study.toml", folder=tmp_path)
    assert done.returncode == 0, done.stderr


def test_what_the_table_does_not_say_is_marked_as_a_guess(tmp_path: Path) -> None:
    begun(tmp_path, FOUR, "mine", "--out", "there")
    text = (tmp_path / "there" / "mine.study.toml").read_text()
    assert 'link = "10 Gbit/s"  # guess' in text
    study = read_study(tmp_path / "there" / "mine.study.toml").study
    assert (study.name, study.router.cores) == ("mine", 4)
    assert study.scenario[1].cores == (8,)
    begun(tmp_path, HELD_OUT, "known")
    text = (tmp_path / "known.study.toml").read_text()
    assert 'link = "10 Gbit/s"\n' in text
    assert "guess: twice as many" in text


def test_rows_that_do_not_calibrate_judge_and_repetitions_are_averaged(tmp_path: Path) -> None:
    assert begun(tmp_path, HELD_OUT, "mine").returncode == 0
    measured = (tmp_path / "mine-measured.csv").read_text().splitlines()[1:]
    assert measured == [
        *("flows,frame_bytes,throughput_pps,shared_queue", "1,64,1775000,no", "1,512,1764544,no"),
        *("2,64,3313244,no", "4,64,6043456,no"),
    ]
    assert (tmp_path / "mine-calibrate.csv").read_text().splitlines()[1:] == [
        line for line in measured if "2,64" not in line
    ]


def test_a_router_of_measurements_is_solved(tmp_path: Path) -> None:
    assert begun(tmp_path, HELD_OUT, "--router").returncode == 0
    done = completed("solve", "points.router.toml", folder=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_router_of_this_machine_is_solved_as_it_stands(tmp_path: Path) -> None:
    done = completed("init", "--from-host", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    done = completed("solve", "host.router.toml", folder=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("cards", "ports", "link_bps", "guess"),
    [
        ((), 2, 10e9, "guess: no network card reports its speed"),
        ((25e9,), 2, 25e9, "guess: only card0 reports its speed"),
        ((1e9, 25e9, 25e9), 2, 25e9, "card1, card2"),
        ((1e9,) * 4, 4, 1e9, "card0, card1, card2, card3"),
    ],
)
@pytest.mark.parametrize("frequency_hz", [None, 3.3e9])
def test_the_commonest_speed_of_the_cards_counts(
    cards: tuple[float, ...], ports: int, link_bps: float, guess: str, frequency_hz: float | None, tmp_path: Path
) -> None:
    start = host_start(
        name="host",
        cpu='a "processor"',
        cores=4,
        frequency_hz=frequency_hz,
        frequency_source="the kernel",
        cards=[Nic(name=f"card{n}", ports=1, link_bps=bps) for n, bps in enumerate(cards)],
    )
    text = router_text(start, command="routecast init --from-host")
    assert guess in text
    assert ("the system does not report the clock" in text) == (frequency_hz is None)
    (tmp_path / "host.router.toml").write_text(text)
    model, load = read_router_and_load(tmp_path / "host.router.toml")
    assert [port.link_bps for port in model.ports] == [link_bps] * ports
    assert load is not None


def test_the_clock_is_the_kernels_else_that_of_now(tmp_path: Path) -> None:
    assert clock(tmp_path, tmp_path) == (None, "")
    (tmp_path / "cpuinfo").write_text("processor\t: 0\ncpu MHz\t\t: 2596.148\n")
    assert clock(tmp_path, tmp_path)[0] == pytest.approx(2.596148e9)
    folder = tmp_path / "devices/system/cpu/cpu0/cpufreq"
    folder.mkdir(parents=True)
    (folder / "cpuinfo_max_freq").write_text("3300000\n")
    assert clock(tmp_path, tmp_path) == (3.3e9, "cpuinfo_max_freq of the kernel's cpufreq")


def answered(
    monkeypatch: pytest.MonkeyPatch, folder: Path, *answers: str, arguments: tuple[str, ...] = ()
) -> Completed:
    """Answer on what takes itself for a terminal."""
    terminal = io.StringIO("".join(f"{answer}\n" for answer in answers))
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", terminal)
    return completed("init", *arguments, folder=folder)


def test_answers_become_a_router_and_wrong_ones_are_requested_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = ("my router", "mine", "none", "0", "6", "", "fast", "25 Gbit/s", "1", "128 B", "1.5 Mpps")
    done = answered(monkeypatch, tmp_path, *answers)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "mine.router.toml: written"
    text = (tmp_path / "mine.router.toml").read_text()
    assert "666.667 ns" in text
    assert "cores = 6" in text
    assert completed("solve", "mine.router.toml", folder=tmp_path).returncode == 0


def test_defaults_are_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert answered(monkeypatch, tmp_path, *[""] * 6).returncode == 0
    assert "guess: what one core takes" in (tmp_path / "router.router.toml").read_text()
    assert completed("solve", "router.router.toml", folder=tmp_path).returncode == 0


def test_a_file_that_is_there_is_refused_before_the_first_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.router.toml").write_text("mine")
    done = answered(monkeypatch, tmp_path, arguments=("mine",))
    assert done.returncode == 2
    assert "mine.router.toml: is there already" in done.stderr
    assert "Cores" not in done.stderr


def test_the_end_of_answers_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = answered(monkeypatch, tmp_path, "mine", "4")
    assert done.returncode == 2
    assert "nothing was written" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_differs_is_kept_unless_forced(tmp_path: Path) -> None:
    begun(tmp_path, FOUR)
    study = tmp_path / "points.study.toml"
    study.write_text("mine")
    done = begun(tmp_path, FOUR)
    assert done.returncode == 2
    assert "points.study.toml: differs from what init writes: --force overwrites it" in done.stderr
    assert study.read_text() == "mine"
    assert begun(tmp_path, FOUR, "--force").returncode == 0
    assert read_study(study)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "init asks on a terminal, and stdin is none: give --measurements FILE.csv or --from-host"),
        (["--measurements", "points.csv", "--from-host"], "two sources"),
        (["--from-host", "--router"], "--router is for --measurements"),
        (["--series", "a"], "--series is for --measurements"),
        (["a/b", "--from-host"], "is no name"),
        (["--measurements", "nowhere.csv"], "nowhere.csv"),
        (["--measurements", "points.csv"], "choose one (--series)"),
        (["--measurements", "points.csv", "--series", "c"], "is no series of the table"),
        (["--measurements", "mix.csv"], "--router writes a router file of it"),
        (["--measurements", "links.csv"], "a study has one rate for all links"),
        (["--measurements", "bare.csv"], "bare.csv: column calibrate: no row calibrates"),
    ],
)
def test_what_cannot_be_is_refused_in_words(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    tables = {
        "points.csv": "cores,throughput_mpps,series\n1,1,a\n1,2,b\n",
        "mix.csv": "cores,throughput_mpps,frame\n1,1,IMIX\n",
        "links.csv": "cores,throughput_mpps,link\n1,1,10 Gbit/s\n2,2,25 Gbit/s\n",
        "bare.csv": "cores,throughput_mpps,calibrate\n1,1,false\n",
    }
    for name, text in tables.items():
        (tmp_path / name).write_text(text)
    done = completed("init", *arguments, folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in " ".join(done.stderr.split())
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(tables)


@pytest.mark.parametrize("series", ["a\N{GRINNING FACE}", "a\x7f", "a\x07\\"])
@pytest.mark.parametrize("name", ["points.csv", "a\x7f\x07\rb.csv", "a\udcffb.csv", "\N{GRINNING FACE}.csv"])
def test_any_name_of_a_file_or_a_series_makes_files_that_are_read(series: str, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(f"cores,throughput_mpps,series\n1,1.7,{series}\n2,3.2,{series}\n")
    done = completed("init", "mine", "--measurements", name, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert read_study(tmp_path / "mine.study.toml").study.title.startswith(series)
    done = completed("init", "mine", "--measurements", name, "--router", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert read_router_and_load(tmp_path / "mine.router.toml")


def test_rates_of_which_no_router_can_be_made_are_refused_in_words(tmp_path: Path) -> None:
    done = begun(tmp_path, "cores,throughput_pps\n8,1e-9\n2,\n")
    assert (done.returncode, done.stdout) == (2, "")
    assert "points.csv: its rates make a router that cannot be: service.per_packet_s: got" in done.stderr
    assert "correct the rates or their unit" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["points.csv"]


def test_answers_of_which_no_router_can_be_made_are_requested_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = ("mine", "4", "2", "1e300 bit/s", "1 bit/s", "64 B", "1e-300 pps", "1e300 pps", "1e-5 pps")
    done = answered(monkeypatch, tmp_path, *answers)
    assert done.returncode == 0, done.stderr
    output = " ".join(done.stderr.split())
    assert "got '1e300 bit/s': a link has from 1 to 1e+18 bit/s" in output
    assert "got '1e-300 pps': one core forwards from 1e-05 to 1e+12 frames/s" in output
    done = completed("solve", "mine.router.toml", folder=tmp_path)
    assert done.returncode == 0, done.stderr
