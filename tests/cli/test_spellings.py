"""Options that take the same thing in several spellings: shares in percent, frames in singular and plural, rates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from in_process import completed
from typer.main import get_command

from routecast.cli.app import app

ROOT = Path(__file__).parents[2]
QUAD = str(ROOT / "examples" / "multicore.router.toml")
TABLE = "cores,frame,throughput_mpps,link_gbps,shared_queue\n1,64,1.0,100,no\n2,64,1.9,100,no\n4,64,3.6,100,no\n"


def options(group: Any, *names: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the spellings of every option of every command."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from options(command, *names, name)
        else:
            yield from ((" ".join((*names, name)), tuple(param.opts)) for param in command.params)


def test_frame_and_frames_are_one_option_of_every_command_that_has_either() -> None:
    spelled = {command: names for command, names in options(get_command(app)) if {"--frame", "--frames"} & {*names}}
    assert len(spelled) > 12
    assert [command for command, names in spelled.items() if {"--frame", "--frames"} - {*names}] == []


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "points.csv"
    path.write_text(TABLE)
    return str(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "percent", "number"),
    [
        ("size {} --target 3Mpps --cores 4", "--loss 0.1%", "--loss 0.001"),
        ("size {} --target 3Mpps --cores 4", "--noise 3%", "--noise 0.03"),
        ("size {} --target 3Mpps --cores 4", "--confidence 90%", "--confidence 0.9"),
        ("validate {}", "--noise 3%", "--noise 0.03"),
        ("validate {}", "--max-mean-error 150%", "--max-mean-error 1.5"),
        ("next {}", "--noise 2.5%", "--noise 0.025"),
        ("function l2_switch", "--remote 10%", "--remote 0.1"),
        (f"simulate {QUAD} --duration 10ms", "--half-width 50%", "--half-width 0.5"),
    ],
)
def test_a_share_in_percent_is_the_number(table: str, command: str, percent: str, number: str) -> None:
    words = command.format(table).split()
    in_percent, as_number = completed(*words, *percent.split()), completed(*words, *number.split())
    assert (in_percent.stdout, in_percent.returncode) == (as_number.stdout, as_number.returncode)
    assert in_percent.returncode in {0, 1}
    assert in_percent.stdout


@pytest.mark.parametrize("option", ["--loss=5", "--loss=-1%", "--noise=3", "--noise=0", "--noise=abc", "--loss=100%"])
def test_a_share_out_of_range_is_refused_by_the_name_of_its_option(table: str, option: str) -> None:
    done = completed("size", table, "--target", "3Mpps", option)
    assert done.returncode == 2
    assert f"{option.partition('=')[0]}: " in done.stderr


@pytest.mark.parametrize("rate", ["10 Gbit/s", "10 Gb/s", "10Gbps", "10G", "10gbit", "1.25 GB/s"])
def test_a_target_in_bits_has_each_usual_spelling(table: str, rate: str) -> None:
    done = completed("size", table, "--target", rate, "--frame", "1518 B", "--cores", "1..8")
    assert "10 Gbit/s of 1518 B" in done.stdout


@pytest.mark.parametrize("command", [f"solve {QUAD} --load", "size {} --target", "next {} --goal"])
def test_a_load_that_may_be_frames_or_bits_is_asked_about(table: str, command: str) -> None:
    done = completed(*command.format(table).split(), "10M")
    assert done.returncode == 2
    assert '"10 Mpps" or "10 Mbit/s"' in done.stderr


@pytest.mark.parametrize(
    "command", ["validate", "size --target 3Mpps", "next", "explore", "init new --router --measurements"]
)
def test_every_command_asks_for_the_unit_of_a_bare_table(tmp_path: Path, command: str) -> None:
    (tmp_path / "points.csv").write_text("cores,frames,throughput,link\n1,64,1.9,10\n2,64,3.7,10\n4,64,7.0,10\n")
    done = completed(*command.split(), "points.csv", folder=tmp_path)
    assert done.returncode == 2
    assert "rows 2 to 4, column throughput: which unit?" in done.stderr
    assert "rows 2 to 4, column link: which unit?" in done.stderr


def test_every_command_takes_frame_and_frames() -> None:
    def commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
        if hasattr(command, "list_commands"):
            context = command.context_class(command)
            for part in command.list_commands(context):
                yield from commands(command.get_command(context, part), f"{name} {part}")
        else:
            yield name, command

    spelled = {
        name: {option for parameter in command.params for option in parameter.opts} & {"--frame", "--frames"}
        for name, command in commands(get_command(app), "routecast")
    }
    with_frames = {name for name, options in spelled.items() if options}
    assert with_frames >= {f"routecast {name}" for name in ("solve", "simulate", "sweep", "size", "next", "explore")}
    assert [name for name in with_frames if len(spelled[name]) != 2] == []


@pytest.mark.parametrize("option", ["--frame", "--frames"])
def test_explore_starts_at_the_frames_that_are_asked_for(table: str, tmp_path: Path, option: str) -> None:
    for file in (table, QUAD):
        done = completed("explore", str(file), option, "300 B", "--out", "page.html", folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "300 B" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("head", ["frame", "frames", "frame_size", "frame_bytes"])
def test_a_column_of_frames_is_read_under_each_name(tmp_path: Path, head: str) -> None:
    (tmp_path / "trace.csv").write_text(f"time_s,{head},flow\n0,128,0\n1e-6,128,1\n2e-6,128,0\n")
    done = completed("solve", QUAD, "--arrivals", str(tmp_path / "trace.csv"))
    assert done.returncode == 0
    swept = completed("sweep", QUAD, "--vary", "frames=64,512")
    assert (swept.returncode, "512 B" in swept.stdout) == (0, True)
