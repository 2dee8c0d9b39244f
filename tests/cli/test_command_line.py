"""The command line as a user meets it: exit codes, streams, messages."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from in_process import Completed, completed
from typer.main import get_command
from typer.models import OptionInfo

import routecast
from routecast.cli.app import app
from routecast.cli.run import DEFECT, INTERRUPTED, run
from routecast.errors import CriterionFailed, EnvironmentProblem, FileProblem, Problem

COMMANDS = (
    *("study", "compare", "init", "validate", "board", "solve", "simulate", "sweep", "doctor", "import", "export"),
    "schema",
)


PROGRAM = str(Path(sys.executable).with_name("routecast"))


def routecast_(arguments: Sequence[str], **variables: str) -> Completed:
    return completed(*arguments, **variables)


def test_the_version_is_printed() -> None:
    done = subprocess.run([sys.executable, "-m", "routecast", "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"routecast {routecast.__version__}\n")


def test_help_names_every_command() -> None:
    done = routecast_(["--help"])
    assert done.returncode == 0
    for command in COMMANDS:
        assert re.search(rf"\b{command}\b", done.stdout)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.slow
def test_every_command_explains_itself(command: str) -> None:
    assert routecast_([command, "--help"]).returncode == 0


def test_an_unknown_command_is_a_usage_error_on_stderr() -> None:
    done = routecast_(["simulat"])
    assert done.returncode == 2
    assert done.stdout == ""
    assert "simulate" in done.stderr


def test_an_unknown_study_suggests_the_nearest_and_shows_no_traceback() -> None:
    done = routecast_(["study", "meyer2041"])
    assert done.returncode == 2
    assert done.stdout == ""
    assert 'did you mean "meyer2014"?' in done.stderr
    assert "Traceback" not in done.stderr


def test_debug_shows_the_traceback() -> None:
    assert "Traceback" in routecast_(["--debug", "study", "meyer2041"]).stderr
    assert "Traceback" in routecast_(["study", "meyer2041", "--debug"]).stderr


def test_a_missing_file_is_a_bad_file() -> None:
    for command in ("validate", "solve", "simulate"):
        done = routecast_([command, "nowhere.toml"])
        assert (done.returncode, done.stdout) == (2, "")
        assert "nowhere.toml" in done.stderr
        assert "Traceback" not in done.stderr


def test_a_schema_is_one_json_document() -> None:
    schema = json.loads(routecast_(["schema", "study"]).stdout)
    assert schema["title"] == "Study"


def test_errors_stay_text_under_json() -> None:
    done = routecast_(["study", "nowhere", "--json"])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith('routecast: "nowhere": ')


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_its_completion(shell: str) -> None:
    done = subprocess.run(
        [PROGRAM], env={**os.environ, "_ROUTECAST_COMPLETE": f"source_{shell}"}, capture_output=True, check=True
    )
    assert b"_ROUTECAST_COMPLETE" in done.stdout


def test_completion_can_be_shown_in_a_shell() -> None:
    # More than one command, else the shell becomes what it calls, and no shell is there to be found.
    done = subprocess.run(["bash", "-c", f"{PROGRAM} --show-completion; true"], capture_output=True, check=True)
    assert b"_ROUTECAST_COMPLETE" in done.stdout


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (FileProblem("f.toml", [Problem("a.b", "is wrong")]), 2),
        (CriterionFailed("too large"), 1),
        (EnvironmentProblem("no device"), 3),
        (ImportError("no module named x"), 3),
        (FileNotFoundError(2, "No such file or directory", "f.csv"), 2),
        (PermissionError(13, "Permission denied", "/x"), 3),
        (ZeroDivisionError("division by zero"), DEFECT),
        (KeyboardInterrupt(), INTERRUPTED),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_every_kind_of_error_has_its_exit_code_and_one_line(
    error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*arguments: object) -> int:
        raise error

    monkeypatch.setattr("routecast.cli.run._command", fail)
    assert run(["study", "x"]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert err.startswith("routecast: ")


FAKE_STUDY = """
import sys, time
sys.path.insert(0, {fakes!r})
import fakes
from routecast.study.tables import run
run.fit_law = lambda study, points: fakes.PaperLaw()
run.fit_baseline = lambda study, points: fakes.PaperLaw(name="eq5")
def evaluator(task):
    time.sleep({pause})
    return fakes.FlowByFlow(task.model)
run._evaluator = evaluator
from routecast.cli import main
main(sys.argv[1:])
"""


def fake_study(arguments: Sequence[str], *, pause: float = 0.0) -> list[str]:
    fakes = str(Path(__file__).parents[1] / "study")
    return [sys.executable, "-c", FAKE_STUDY.format(fakes=fakes, pause=pause), *arguments]


@pytest.mark.slow
def test_a_study_prints_data_to_stdout_without_colour_and_leaves_with_1_for_a_missed_criterion(tmp_path: Path) -> None:
    done = subprocess.run(
        fake_study(["study", "meyer2014", "--out", str(tmp_path / "m")]),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "80"},
    )
    # The paper's law misses the study's bounds: Meyer et al. 2014, Table II, has errors up to 3.57 %.
    assert done.returncode == 1
    assert "Criterion missed: max_over_held_out" in done.stderr
    assert "\x1b[" not in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 80


@pytest.mark.slow
def test_json_of_a_study_is_its_summary(tmp_path: Path) -> None:
    done = subprocess.run(
        fake_study(["study", "meyer2014", "--json", "--out", str(tmp_path / "m")]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert json.loads(done.stdout) == json.loads((tmp_path / "m" / "summary.json").read_text())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
@pytest.mark.slow
def test_an_interrupt_stops_a_study_and_says_what_is_kept(
    tmp_path: Path, number: signal.Signals, start: Callable[..., subprocess.Popen[str]], until: Callable[..., None]
) -> None:
    out = tmp_path / "m"
    child = start(
        fake_study(["study", "meyer2014", "--out", str(out)], pause=0.05),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    until(lambda: any((out / "results.parts").glob("*.parquet")), "a trial is finished", child)
    child.send_signal(number)
    stdout, stderr = child.communicate(timeout=120)
    assert child.returncode == INTERRUPTED
    assert stdout == ""
    assert "results.parquet" in stderr
    assert "Traceback" not in stderr
    assert (out / "results.parquet").exists()
    assert not (out / "report.html").exists()


STRUCK = """
import atexit, os, sys

class Strike:
    def find_spec(self, name, path=None, target=None):
        if name == where:
            os.kill(os.getpid(), 2)

where, *sys.argv = sys.argv[1:]
sys.modules.pop(where, None)
if where == "the end":
    atexit.register(os.kill, os.getpid(), 2)
sys.meta_path.insert(0, Strike())
from routecast.cli import main
main()
"""
"""Is struck by Ctrl-C at an import, or when the interpreter ends: wherever else a hand may hit it, without a clock."""


@pytest.mark.parametrize(
    "where", ["signal", "routecast.cli.run", "traceback", "typer.main", "rich", "routecast.cli.app", "numpy", "the end"]
)
@pytest.mark.slow
def test_an_interrupt_leaves_with_130_and_one_line_wherever_it_strikes(where: str) -> None:
    router = Path(__file__).parents[2] / "examples" / "multicore.router.toml"
    done = subprocess.run(
        [sys.executable, "-c", STRUCK, where, "routecast", "solve", str(router), "--load", "1 Mpps"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (INTERRUPTED, "routecast: interrupted\n")


def test_an_error_that_an_interrupt_has_become_is_reported_as_the_interrupt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken_off(*_: object) -> int:
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            raise ImportError("of what numpy was importing") from None
        return 0

    monkeypatch.setattr("routecast.cli.run._command", broken_off)
    assert run(["study", "x"]) == INTERRUPTED
    assert capsys.readouterr().err == "routecast: interrupted\n"


def path_options(group: Any, *group_names: str) -> Iterator[tuple[str, ...]]:
    """Every option of every command that names a file or a folder, as the words that a user types."""
    for command_name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from path_options(command, *group_names, command_name)
            continue
        assert command.callback is not None
        for hint in get_type_hints(command.callback, include_extras=True).values():
            kind, *extras = get_args(hint) or (hint,)
            option = next((extra for extra in extras if isinstance(extra, OptionInfo)), None)
            if option is not None and Path in (kind, *get_args(kind)):
                # Where an option is in an annotation, typer holds its first name for a default.
                names = (option.default, *(option.param_decls or ()))
                yield (*group_names, command_name, str(names[0]))


@pytest.mark.parametrize("words", [" ".join(words) for words in path_options(get_command(app))])
def test_an_empty_path_is_a_usage_error_and_nothing_is_written(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run([*words.split(), ""]) == 2
    assert "the path is empty" in " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert not any(tmp_path.iterdir())
