"""A real Dask cluster on this machine: a scheduler and two workers, each a process of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import distributed
import pytest

import routecast
from routecast.errors import EnvironmentProblem
from routecast.evaluate.executor import dask_cluster, open_executor
from routecast.experiment.answer import answer
from routecast.experiment.file import read_experiment
from routecast.experiment.runs import runs_of
from routecast.experiment.sweep import answers_on_disk, sweep
from routecast.experiment.tests.sweep import sweep_runs

STARTS_WITHIN_S = 60.0
EXAMPLE = Path(routecast.__file__).parents[3] / "examples" / "multicore_2_3.experiment.toml"


@dataclass(frozen=True)
class Cluster:
    address: str
    scheduler: subprocess.Popen[bytes]


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program of Dask's; workers find the modules beside this test."""
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def cluster_of(count: int, folder: Path) -> Iterator[Cluster]:
    """Run a scheduler and workers without nannies: one that is killed stays dead."""
    scheduler_file = folder / "scheduler.json"
    with ExitStack() as stack:
        where = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(scheduler_file))
        scheduler = stack.enter_context(started("distributed.cli.dask_scheduler", *where))
        until = time.monotonic() + STARTS_WITHIN_S
        while not scheduler_file.exists() or not scheduler_file.read_text().rstrip().endswith("}"):
            assert scheduler.poll() is None
            assert time.monotonic() < until
            time.sleep(0.02)
        address = json.loads(scheduler_file.read_text())["address"].removeprefix("tcp://")
        how = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(folder))
        for _ in range(count):
            stack.enter_context(started("distributed.cli.dask_worker", address, *how))
        if count:
            with distributed.Client(f"tcp://{address}", set_as_default=False) as client:
                client.wait_for_workers(count, timeout=STARTS_WITHIN_S)
        yield Cluster(address, scheduler)


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker_answers_what_this_process_answers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    runs = sweep_runs.runs_of(120)
    out = tmp_path / "out"
    killed: list[int] = []

    def kill_one_in_the_middle(done: int, total: int, what: str) -> None:
        if done >= total // 3 and not killed and (there := answers_on_disk(out)):
            killed.append(min(int(answer.bottleneck) for answer in there.values()))
            os.kill(killed[0], signal.SIGKILL)

    with cluster_of(2, tmp_path) as cluster:
        with monkeypatch.context() as patch:
            patch.setattr(dask_cluster, "version", sweep_runs.OtherVersionHere(os.getpid()))
            with (
                pytest.raises(EnvironmentProblem, match=r"all need routecast 99\.0, .* the scheduler has \d"),
                open_executor(f"dask://{cluster.address}"),
            ):
                pass

        with open_executor(f"dask://{cluster.address}") as executor:
            assert executor.workers == 2
            solved = runs_of(read_experiment(EXAMPLE))
            assert sweep(solved, answer, executor=executor) == tuple(map(answer, solved))
            result = sweep(runs, sweep_runs.slowly, executor=executor, out=out, on_progress=kill_one_in_the_middle)
        assert {answer.key: answer.values for answer in result} == {
            run.key: sweep_runs.waits(run).values for run in runs
        }
        assert [answer.key for answer in result] == [run.key for run in runs]
        by_worker = Counter(int(answer.bottleneck) for answer in result)
        assert len(by_worker) == 2
        assert by_worker[killed[0]] < len(runs) / 2

        # The worker that is left is killed too: what is finished stays.
        left = max(by_worker, key=lambda pid: by_worker[pid])
        gone = tmp_path / "gone"

        def kill_the_other(done: int, total: int, what: str) -> None:
            if done > 20:
                os.kill(left, signal.SIGKILL)
                hurry(monkeypatch)

        with (
            pytest.raises(EnvironmentProblem, match="all workers were lost") as caught,
            open_executor(f"dask://{cluster.address}") as executor,
        ):
            sweep(runs, sweep_runs.slowly, executor=executor, out=gone, on_progress=kill_the_other)
    assert caught.value.exit_code == 3
    assert len(answers_on_disk(gone)) > 20


def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait shorter for what will not come; only from when on it will not, so that a slow machine is waited for."""
    for name in ("ALONE_FOR_S", "SILENT_FOR_S", "COUNTS_EVERY_S", "COUNTED_WITHIN_S"):
        monkeypatch.setattr(dask_cluster, name, 0.2)


@pytest.mark.thorough
def test_a_scheduler_that_stands_still_is_reported_and_what_is_finished_stays(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with cluster_of(1, tmp_path) as cluster:

        def stop(done: int, total: int, what: str) -> None:
            if done > 20:
                cluster.scheduler.send_signal(signal.SIGSTOP)
                hurry(monkeypatch)

        with (
            pytest.raises(EnvironmentProblem, match=r"is there but has answered nothing for 0\.2 s"),
            open_executor(f"dask://{cluster.address}") as executor,
        ):
            sweep(sweep_runs.runs_of(500), sweep_runs.slowly, executor=executor, out=out, on_progress=stop)
        assert len(answers_on_disk(out)) > 20
        # Going on, it serves the next one.
        monkeypatch.undo()
        cluster.scheduler.send_signal(signal.SIGCONT)
        with open_executor(f"dask://{cluster.address}") as executor:
            result = sweep(sweep_runs.runs_of(30), sweep_runs.waits, executor=executor)
    assert len(result) == 30


@pytest.mark.thorough
def test_a_worker_that_stands_still_is_reported_before_it_is_given_anything(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with cluster_of(1, tmp_path) as cluster:
        with distributed.Client(f"tcp://{cluster.address}", set_as_default=False) as client:
            ((_, worker),) = client.run(os.getpid).items()
        os.kill(worker, signal.SIGSTOP)
        monkeypatch.setattr(dask_cluster, "SILENT_FOR_S", 1.0)
        with (
            pytest.raises(EnvironmentProblem, match="one of its workers, answers nothing within 1 s"),
            open_executor(f"dask://{cluster.address}"),
        ):
            pass


@pytest.mark.thorough
def test_a_lost_scheduler_is_reported_and_what_is_finished_stays(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with (
        cluster_of(1, tmp_path) as cluster,
        pytest.raises(EnvironmentProblem, match="scheduler was lost") as caught,
        open_executor(f"dask://{cluster.address}") as executor,
    ):
        sweep(
            sweep_runs.runs_of(500),
            sweep_runs.slowly,
            executor=executor,
            out=out,
            on_progress=lambda done, total, what: cluster.scheduler.kill() if done > 20 else None,
        )
    assert caught.value.exit_code == 3
    assert len(answers_on_disk(out)) > 20


@pytest.mark.slow
def test_a_scheduler_without_workers_is_reported_how_to_get_some(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with cluster_of(0, tmp_path) as cluster:
        monkeypatch.setattr(dask_cluster, "WORKERS_WITHIN_S", 0.5)
        with (
            pytest.raises(EnvironmentProblem, match=rf"no workers: .*dask worker {cluster.address}"),
            open_executor(f"dask://{cluster.address}"),
        ):
            pass


@pytest.mark.slow
def test_an_address_where_nothing_listens_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as bound:  # not listening: nothing can connect
        bound.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{bound.getsockname()[1]}"
        for within_s in (0.3, 1.0, 3.0):
            monkeypatch.setattr(dask_cluster, "CONNECTS_WITHIN_S", within_s)
            with pytest.raises(EnvironmentProblem) as caught, open_executor(f"dask://{address}"):
                pass
            if "refused" in str(caught.value):
                break  # a process that slept all the while would learn of the time only
    assert re.match(f"dask://{address}: no scheduler answers .*refused", str(caught.value))
    assert caught.value.exit_code == 3


@pytest.mark.slow
def test_a_port_that_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_cluster, "CONNECTS_WITHIN_S", 0.3)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(EnvironmentProblem, match=r"nothing within 0\.3 s"), open_executor(f"dask://{address}"):
            pass


def test_without_dask_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(EnvironmentProblem, match=r"routecast\[dask\]") as caught,
        open_executor("dask://127.0.0.1:8786"),
    ):
        pass
    assert caught.value.exit_code == 3
