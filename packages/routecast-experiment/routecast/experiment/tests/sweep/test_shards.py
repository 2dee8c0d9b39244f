"""Shards: every run is one shard's, and together they answer what the whole answers."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

import routecast
from routecast.errors import QuantityProblem, RoutecastError
from routecast.evaluate.executor import open_executor
from routecast.experiment.file import read_experiment
from routecast.experiment.model import Answer
from routecast.experiment.run import run_experiment, write_table
from routecast.experiment.sweep import Shard, join, sweep
from routecast.experiment.tests.sweep import sweep_runs

ROOT = Path(routecast.__file__).parents[3]


@given(st.integers(0, 80), st.integers(1, 100))
def test_every_run_belongs_to_one_shard_and_shards_are_of_a_size(runs: int, count: int) -> None:
    every = sweep_runs.runs_of(runs)
    shards = [Shard(number, count).of(every) for number in range(1, count + 1)]
    assert sorted(run.row for shard in shards for run in shard) == list(range(runs))
    sizes = [len(shard) for shard in shards]
    assert max(sizes) - min(sizes) <= 1


def test_runs_that_must_answer_alike_are_in_one_shard() -> None:
    runs = (*sweep_runs.runs_of(9), *sweep_runs.runs_of(3))
    shards = [Shard(number, 4).of(runs) for number in range(1, 5)]
    keys = [{run.key for run in shard} for shard in shards]
    assert sum(map(len, keys)) == len(set.union(*keys)) == 9
    assert sum(map(len, shards)) == 12


def test_no_factor_falls_in_step_with_the_shards() -> None:
    # In Yates' order the levels of factor j of a 2^6 design change every 2^j rows.
    runs = sweep_runs.runs_of(64)
    for count in (2, 4):
        for number in range(1, count + 1):
            mine = Shard(number, count).of(runs)
            for factor in range(6):
                high = sum(run.row >> factor & 1 for run in mine)
                assert 0 < high < len(mine)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0/4", "numbered from 1, 1/4 to 4/4"),
        ("5/4", "no shard 5/4"),
        ("1/0", "no shard 1/0"),
        ("2", "write I/N"),
        ("a/b", "write I/N"),
        ("-1/4", "write I/N"),
        ("", "write I/N"),
    ],
)
def test_a_shard_out_of_range_is_reported_with_the_range(text: str, message: str) -> None:
    with pytest.raises(QuantityProblem, match=message) as caught:
        Shard.parse(text)
    assert caught.value.exit_code == 2


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    """Return a folder in which shards 1 and 3 of 3 have run."""
    runs = sweep_runs.runs_of(20, tmp_path)
    for number in (1, 3):
        with open_executor("threads", 2) as executor:
            result = sweep(runs, sweep_runs.counted, executor=executor, out=tmp_path / "out", shard=Shard(number, 3))
        assert [answer.key for answer in result] == [run.key for run in Shard(number, 3).of(runs)]
    return tmp_path


def test_joining_names_what_is_missing_and_which_shard_to_start_again(sharded: Path) -> None:
    runs = sweep_runs.runs_of(20, sharded)
    lacking = Shard(2, 3).of(runs)
    with pytest.raises(RoutecastError) as caught:
        join(runs, sharded / "out")
    message = str(caught.value)
    assert f"{len(lacking)} of 20 runs are missing" in message
    assert f"row {lacking[0].row + 1} " in message
    assert "--shard 2/3;" in message


def test_shards_together_answer_what_the_whole_answers_and_nothing_twice(sharded: Path) -> None:
    runs = sweep_runs.runs_of(20, sharded)
    with open_executor("threads", 2) as executor:
        sweep(runs, sweep_runs.counted, executor=executor, out=sharded / "out", shard=Shard(2, 3))
    assert join(runs, sharded / "out") == tuple(map(sweep_runs.waits, runs))
    assert sweep_runs.times_answered(runs) == [1] * 20


def test_a_sweep_without_shard_runs_only_what_the_shards_have_not(sharded: Path) -> None:
    runs = sweep_runs.runs_of(20, sharded)
    with open_executor("threads", 2) as executor:
        result = sweep(runs, sweep_runs.counted, executor=executor, out=sharded / "out")
    assert result == tuple(map(sweep_runs.waits, runs))
    assert sweep_runs.times_answered(runs) == [1] * 20


def test_what_a_shard_was_killed_over_is_joined_from_its_parts(tmp_path: Path) -> None:
    from routecast.evaluate.ledger import Ledger
    from routecast.experiment.sweep import COLUMNS, row_of

    runs = sweep_runs.runs_of(4)
    expected: list[Answer] = []
    for number, run in enumerate(runs):
        expected.append(sweep_runs.awkward(run))
        ledger = Ledger(tmp_path, COLUMNS, table=f"runs.{number % 2 + 1}-of-2", summary=None)
        ledger.add(row_of(run, expected[-1]))
        ledger.flush()  # and killed before the table is written
    assert not list(tmp_path.glob("*.parquet"))
    assert join(runs, tmp_path) == tuple(expected)


SMALL = """
name = "small"
router = {router:?}

[design]
kind = "multilevel"

[[factor]]
name = "cores"
path = "cores"
levels = [1, 2, 3, 4]

[[factor]]
name = "frame size"
path = "load.frames"
levels = ["64 B", "256 B", "512 B", "1518 B"]

[[response]]
name = "capacity"
of = "capacity_pps"
"""


@pytest.mark.slow
def test_the_slurm_example_runs_every_shard_and_joins_them(tmp_path: Path, path_with_routecast: str) -> None:
    """The scripts of examples/slurm, run by bash as SLURM's node would run them; test_slurm.py asks SLURM itself."""
    experiment_file = tmp_path / "small.experiment.toml"
    router = ROOT / "examples" / "multicore.router.toml"
    experiment_file.write_text(SMALL.replace("{router:?}", f'"{router}"'))
    out = tmp_path / "out"

    def slurm(name: str, **allotted: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PATH": path_with_routecast, **allotted}
        return subprocess.run(
            ["bash", str(ROOT / "examples" / "slurm" / name), str(experiment_file), str(out)],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    text = (ROOT / "examples" / "slurm" / "experiment.sbatch").read_text()
    array = re.search(r"^#SBATCH --array=1-(\d+)$", text, flags=re.MULTILINE)
    assert array
    for number in range(1, int(array[1]) + 1):
        done = slurm("experiment.sbatch", SLURM_ARRAY_TASK_ID=str(number), SLURM_CPUS_PER_TASK="2")
        assert done.returncode == 0, done.stderr
    joined = slurm("join.sbatch")
    assert joined.returncode == 0, joined.stderr
    assert (out / "report.html").exists()

    whole = tmp_path / "whole.parquet"
    write_table(run_experiment(read_experiment(experiment_file), None), whole)
    joined_table, whole_table = (polars.read_parquet(path) for path in (out / "results.parquet", whole))
    assert joined_table.height == 16
    assert joined_table.equals(whole_table)
