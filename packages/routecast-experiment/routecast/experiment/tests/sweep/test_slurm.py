"""The scripts of examples/slurm in the hands of SLURM itself: what its arrays, signals and queues do to a sweep."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import polars
import pytest

import routecast
from routecast.experiment.file import read_experiment
from routecast.experiment.run import run_experiment, write_table
from routecast.experiment.sweep import Shard, answers_on_disk
from routecast.experiment.tests.sweep.slurm_cluster import Slurm, one_node

EXAMPLES = Path(routecast.__file__).parents[3] / "examples"
COMES_WITHIN_S = 60.0
INTERRUPTED = "130:0"
"""Exit code and signal, as SLURM writes them: the command ended by itself, as after Ctrl-C."""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    with one_node(tmp_path_factory.mktemp("slurm")) as cluster:
        yield cluster


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the scripts."""
    for script in (EXAMPLES / "slurm").glob("*.sbatch"):
        shutil.copy(script, tmp_path)
    return tmp_path


def await_that(comes: Callable[[], object], slurm: Slurm) -> None:
    until = time.monotonic() + COMES_WITHIN_S
    while not comes():
        assert time.monotonic() < until, slurm.said()
        time.sleep(0.02)


@pytest.mark.thorough
def test_the_commands_of_the_example_answer_what_one_process_answers(
    slurm: Slurm, folder: Path, path_with_routecast: str
) -> None:
    experiment_file = EXAMPLES / "multicore_2_3.experiment.toml"
    written = re.findall(r"^#   (.*)$", (folder / "experiment.sbatch").read_text(), flags=re.MULTILINE)
    commands = "\n".join(written).replace("FILE.experiment.toml", str(experiment_file)).replace("OUT", "out")
    stdout = slurm.command("bash", "-ec", f"{commands}\necho $job", cwd=folder, path=path_with_routecast)
    joining, job = stdout.removeprefix("Submitted batch job ").split()
    submit = ("sbatch", "--parsable", "--array=0,5", "experiment.sbatch", str(experiment_file), "other")
    beyond = slurm.command(*submit, cwd=folder, path=path_with_routecast)

    slurm.await_end(job, joining, beyond, cwd=folder)
    ended = {number: task["ExitCode"] for number, task in slurm.tasks(job, cwd=folder).items()}
    assert ended == dict.fromkeys(range(1, 5), "0:0")
    logs = {path.name: path.read_text() for path in folder.glob("*.log")}
    for number in ended:
        assert f"Shard {number}/4 is done" in logs[f"experiment.{job}_{number}.log"]
    assert "8 runs were answered before" in logs[f"join.{joining}.log"]
    assert (folder / "out" / "report.html").exists()
    write_table(run_experiment(read_experiment(experiment_file), None), folder / "whole.parquet")
    joined, whole = (polars.read_parquet(folder / name) for name in ("out/results.parquet", "whole.parquet"))
    assert joined.height == 8
    assert joined.equals(whole)

    refused = slurm.tasks(beyond, cwd=folder)
    assert {number: task["ExitCode"] for number, task in refused.items()} == {0: "2:0", 5: "2:0"}
    for number in refused:
        log = logs[f"experiment.{beyond}_{number}.log"]
        assert f"no shard {number}/4: shards are numbered from 1, 1/4 to 4/4" in log
    assert not (folder / "other").exists()


SLOW = """
name = "slow"
router = {router!r}
evaluator = "simulate"
duration = "300 ms"

[design]
kind = "full"
replications = 24

[[factor]]
name = "cores"
path = "cores"
levels = [2, 4]

[[factor]]
name = "frame size"
path = "load.frames"
levels = ["64 B", "512 B"]

[[response]]
name = "median latency"
of = "latency.p50_s"
"""


def table_of(out: Path, shard: int) -> Path:
    return out / f"runs.{shard}-of-4.parquet"


def has_finished_some(out: Path, shard: int) -> bool:
    return any(table_of(out, shard).with_suffix(".parts").glob("*.parquet"))


def mark_finished(out: Path, shard: int) -> set[str]:
    """Return the keys of what a task has finished, and mark its answers to know them again."""
    rows = polars.read_parquet(table_of(out, shard))
    rows.with_columns(bottleneck=polars.lit("marked")).write_parquet(table_of(out, shard))
    return set(rows["task"])


def marked(out: Path, shard: int) -> set[str]:
    rows = polars.read_parquet(table_of(out, shard))
    return set(rows.filter(polars.col("bottleneck") == "marked")["task"])


@pytest.mark.thorough
def test_cancelled_and_requeued_tasks_keep_what_is_finished_and_run_only_the_rest(
    slurm: Slurm, folder: Path, path_with_routecast: str
) -> None:
    file = folder / "slow.experiment.toml"
    file.write_text(SLOW.format(router=str(EXAMPLES / "multicore.router.toml")))
    out = folder / "out"

    def submit(*words: str) -> str:
        command = ("sbatch", "--parsable", *words, str(file), "out")
        return slurm.command(*command, cwd=folder, path=path_with_routecast)

    job = submit("--array=2,3", "--cpus-per-task=1", "experiment.sbatch")
    joining = submit(f"--dependency=afterany:{job}", "join.sbatch")
    for shard, end in ((2, ("scancel",)), (3, ("scontrol", "requeue"))):
        await_that(partial(has_finished_some, out, shard), slurm)
        slurm.command(*end, f"{job}_{shard}", cwd=folder)

    before: dict[int, set[str]] = {}
    for shard in (2, 3):  # at once: what was requeued starts again in five seconds
        await_that(table_of(out, shard).exists, slurm)
        before[shard] = mark_finished(out, shard)
    experiment = read_experiment(file)
    alone = {shard: run_experiment(experiment, None, shard=Shard(shard, 4)) for shard in (2, 3)}
    for shard, result in alone.items():
        assert set() < before[shard] < {run.key for run in result.runs}

    slurm.await_end(job, joining, cwd=folder)
    ended = slurm.tasks(job, cwd=folder)
    assert (ended[2]["JobState"], ended[2]["ExitCode"]) == ("CANCELLED", INTERRUPTED)
    assert (ended[3]["JobState"], ended[3]["Restarts"]) == ("COMPLETED", "1")
    assert marked(out, 3) == before[3]
    log = (folder / f"experiment.{job}_3.log").read_text()
    assert "Finished runs are in out" in log
    assert "Shard 3/4 is done: 24 runs in out" in log
    join_log = " ".join((folder / f"join.{joining}.log").read_text().split())
    assert f"{96 - 24 - len(before[2])} of 96 runs are missing" in join_log
    assert "--shard 1/4, 2/4, 4/4;" in join_log

    slurm.await_end(submit("--array=2", "experiment.sbatch"), cwd=folder)
    assert marked(out, 2) == before[2]
    expected = {answer.key: answer.values for item in alone.values() for answer in item.answers}
    assert {key: answer.values for key, answer in answers_on_disk(out).items()} == expected
