"""Sweeps: the same answers for any number of workers, what is finished stays, what is lost is run again."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import EnvironmentProblem, FileProblem, QuantityProblem, RoutecastError
from routecast.evaluate import ledger as ledger_module
from routecast.evaluate.executor import check_executor, chosen_executor, open_executor, stop_if_ended
from routecast.experiment import sweep as sweep_module
from routecast.experiment.model import Answer, Run
from routecast.experiment.sweep import Pace, answers_on_disk, format_remaining, open_answers, sweep
from routecast.experiment.tests.sweep import sweep_runs


class Inline(Executor):
    """Computes at once; loses what it is told to lose."""

    def __init__(self, loses: Callable[[list[Run]], bool] = lambda runs: False) -> None:
        self.loses = loses
        self.batches: list[list[Run]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.batches.append(list(args[1]))
        if self.loses(self.batches[-1]):
            future.set_exception(BrokenExecutor("lost"))
        else:
            try:
                future.set_result(fn(*args, **kwargs))
            except Exception as error:
                future.set_exception(error)
        return future


@pytest.fixture(scope="module")
def expected() -> tuple[Answer, ...]:
    return tuple(sweep_runs.waits(run) for run in sweep_runs.runs_of(300))


@pytest.mark.parametrize(("spec", "workers"), [("threads", 1), ("threads", 5), ("processes", 1), ("processes", 3)])
@pytest.mark.slow
def test_answers_depend_on_neither_the_executor_nor_the_number_of_workers(
    spec: str, workers: int, expected: tuple[Answer, ...], tmp_path: Path
) -> None:
    with open_executor(spec, workers) as executor:
        result = sweep(sweep_runs.runs_of(300), sweep_runs.waits, executor=executor, out=tmp_path)
    assert result == expected


@given(st.floats(1e-9, 1.0), st.integers(1, 60))
def test_answers_do_not_depend_on_how_runs_travel_together(batch_s: float, count: int) -> None:
    runs = sweep_runs.runs_of(count)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweep_module, "BATCH_S", batch_s)
        result = sweep(runs, sweep_runs.waits, executor=Inline())
    assert result == tuple(map(sweep_runs.waits, runs))


def test_short_runs_travel_together_and_long_ones_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(10**9))
    monkeypatch.setattr(sweep_module.time, "perf_counter", lambda: next(clock) * run_s)
    sizes = {}
    for run_s in (1e-3, 1.0):
        inline = Inline()
        sweep(sweep_runs.runs_of(1000), sweep_runs.waits, executor=inline)
        sizes[run_s] = max(map(len, inline.batches))
    assert sizes[1e-3] > 20
    assert sizes[1.0] == 1


def test_answers_come_back_from_the_folder_as_they_were(tmp_path: Path) -> None:
    runs = sweep_runs.runs_of(10)
    first = sweep(runs, sweep_runs.awkward, executor=Inline(), out=tmp_path)
    again = sweep(runs, sweep_runs.fatal_for_all, executor=Inline(), out=tmp_path)
    assert again == first == tuple(map(sweep_runs.awkward, runs))


def test_a_run_that_stands_twice_in_a_design_is_answered_once(tmp_path: Path) -> None:
    runs = sweep_runs.runs_of(6, tmp_path)
    centre = (*runs, runs[2], runs[2])
    result = sweep(centre, sweep_runs.counted, executor=Inline())
    assert sweep_runs.times_answered(runs) == [1] * 6
    assert result[6] == result[7] == result[2]


def test_more_runs_in_the_same_folder_run_only_what_is_new(tmp_path: Path) -> None:
    runs = sweep_runs.runs_of(20, tmp_path)
    for count in (8, 20):
        sweep(runs[:count], sweep_runs.counted, executor=Inline(), out=tmp_path)
    assert sweep_runs.times_answered(runs) == [1] * 20
    assert polars.read_parquet(tmp_path / "runs.parquet").height == 20


def test_an_interrupted_sweep_keeps_what_is_finished_and_goes_on_from_there(tmp_path: Path) -> None:
    def interrupt(done: int, total: int, what: str) -> None:
        if done >= 40:
            raise KeyboardInterrupt

    runs = sweep_runs.runs_of(100, tmp_path)
    with pytest.raises(KeyboardInterrupt), open_executor("threads", 2) as executor:
        sweep(runs, sweep_runs.counted, executor=executor, out=tmp_path, on_progress=interrupt)
    kept = polars.read_parquet(tmp_path / "runs.parquet").height
    assert kept >= 40
    progress: list[tuple[int, int]] = []
    with open_executor("threads", 2) as executor:
        sweep(
            runs,
            sweep_runs.counted,
            executor=executor,
            out=tmp_path,
            on_progress=lambda done, total, what: progress.append((done, total)),
        )
    assert progress[0] == (kept, 100)
    assert progress[-1] == (100, 100)
    assert progress == sorted(progress)


SLOWLY = """
from routecast.experiment.tests.sweep import sweep_runs
from pathlib import Path
from routecast.evaluate.executor import open_executor
from routecast.experiment.sweep import sweep
if __name__ == "__main__":
    with open_executor("processes", 2) as executor:
        sweep(sweep_runs.runs_of(2000), sweep_runs.slowly, executor=executor, out=Path({out!r}))
"""


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.slow
def test_a_stopped_sweep_leaves_its_answers_and_no_process(
    number: signal.Signals, tmp_path: Path, start: Callable[..., subprocess.Popen[str]], until: Callable[..., None]
) -> None:
    out = tmp_path / "out"
    script = tmp_path / "script.py"
    script.write_text(SLOWLY.format(out=str(out)))
    child = start([sys.executable, str(script)], stderr=subprocess.DEVNULL, start_new_session=True)

    def answered_by() -> set[str]:
        return {answer.bottleneck for answer in answers_on_disk(out).values()}

    until(lambda: len(answered_by()) == 2, "both workers have answered", child)
    result = answers_on_disk(out)
    if number == signal.SIGINT:  # as a terminal sends it: to all processes of the command
        os.killpg(child.pid, number)
    else:
        os.kill(child.pid, number)
    assert child.wait(timeout=120) == -number
    workers = {int(answer.bottleneck) for answer in answers_on_disk(out).values()}
    until(lambda: not any(map(is_alive, workers)), "the workers end")
    assert len(workers) == 2
    assert answers_on_disk(out).keys() >= result.keys()


@pytest.mark.slow
def test_what_a_lost_worker_had_is_run_again(tmp_path: Path) -> None:
    runs = sweep_runs.runs_of(40, tmp_path)
    with open_executor("processes", 2) as executor:
        result = sweep(runs, sweep_runs.once_fatal, executor=executor)
    assert (tmp_path / "killed").exists()
    assert result == tuple(map(sweep_runs.waits, runs))


@pytest.mark.slow
def test_a_run_that_ends_its_worker_each_time_is_named_and_all_others_are_kept(tmp_path: Path) -> None:
    runs = sweep_runs.runs_of(30)
    with (
        pytest.raises(EnvironmentProblem, match=r"2 of 30 runs .*row 4 .*row 12 ") as caught,
        open_executor("processes", 2) as executor,
    ):
        sweep(runs, sweep_runs.always_fatal, executor=executor, out=tmp_path)
    assert caught.value.exit_code == 3
    assert answers_on_disk(tmp_path).keys() == {run.key for run in runs if run.row not in (3, 11)}


def test_a_run_is_blamed_only_for_what_happens_when_it_is_alone() -> None:
    culprit = 17
    inline = Inline(loses=lambda runs: any(run.row == culprit for run in runs))
    with pytest.raises(EnvironmentProblem, match=rf"1 of 50 runs .*row {culprit + 1} "):
        sweep(sweep_runs.runs_of(50), sweep_runs.waits, executor=inline)
    lost = [batch for batch in inline.batches if inline.loses(batch)]
    assert len(lost) == 3
    assert [run.row for run in lost[-1]] == [culprit]


def test_workers_that_cannot_even_start_are_not_started_for_ever() -> None:
    inline = Inline(loses=lambda runs: True)
    with pytest.raises(EnvironmentProblem, match="before the first answer"):
        sweep(sweep_runs.runs_of(1000), sweep_runs.waits, executor=inline)
    assert len(inline.batches) < 100


@pytest.mark.slow
def test_a_script_without_a_guard_is_reported_what_is_missing(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from routecast.experiment.tests.sweep import sweep_runs\n"
        "from routecast.evaluate.executor import open_executor\n"
        "from routecast.experiment.sweep import sweep\n"
        "with open_executor('processes', 1) as executor:\n"
        "    sweep(sweep_runs.runs_of(3), sweep_runs.waits, executor=executor)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert 'if __name__ == "__main__":' in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("spec", ["threads", "processes"])
def test_an_error_that_is_no_answer_ends_the_sweep_names_the_run_and_keeps_the_rest(spec: str, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError) as caught, open_executor(spec, 1) as executor:
        sweep(sweep_runs.runs_of(10), sweep_runs.faulty, executor=executor, out=tmp_path)
    assert "row 7," in caught.value.__notes__[0]
    assert {f"{key}" for key in answers_on_disk(tmp_path)} >= {run.key for run in sweep_runs.runs_of(10)[:6]}


def test_what_the_machine_lacks_ends_the_sweep_with_its_exit_code() -> None:
    with pytest.raises(EnvironmentProblem, match="no library") as caught:
        sweep(sweep_runs.runs_of(3), sweep_runs.without_library, executor=Inline())
    assert caught.value.exit_code == 3


def test_an_answer_is_written_though_nothing_comes_after_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    now = [100.0]
    monkeypatch.setattr(sweep_module.time, "monotonic", lambda: now[0])
    run = sweep_runs.runs_of(1)[0]
    with open_answers(tmp_path, "runs") as answers:
        answers.add(run, sweep_runs.waits(run))
        answers.write_if_due()
        assert answers_on_disk(tmp_path) == {}
        now[0] += 0.3
        answers.write_if_due()
        assert answers_on_disk(tmp_path) == {run.key: sweep_runs.waits(run)}


def test_a_long_sweep_does_not_fill_its_folder_with_small_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(ledger_module, "MAX_PARTS", 5)
    monkeypatch.setattr(sweep_module, "WRITES_AFTER_S", 0.0)
    runs = sweep_runs.runs_of(23)
    most = 0
    with open_answers(tmp_path, "runs") as answers:
        for count, run in enumerate(runs, start=1):
            answers.add(run, sweep_runs.waits(run))
            answers.write_if_due()
            assert len(answers_on_disk(tmp_path)) == count
            most = max(most, len(list(tmp_path.glob("runs.parts/*.parquet"))))
    assert most < 5


def test_two_sweeps_do_not_write_one_table(tmp_path: Path) -> None:
    with open_answers(tmp_path, "runs"):
        with pytest.raises(EnvironmentProblem, match="another process"), open_answers(tmp_path, "runs"):
            pass
        with open_answers(tmp_path, "runs.1-of-2"):
            pass
    with open_answers(tmp_path, "runs"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_no_folder_and_a_table_that_is_none_are_reported(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(EnvironmentProblem, match="cannot be written"):
        sweep(sweep_runs.runs_of(1), sweep_runs.waits, executor=Inline(), out=file / "out")
    (tmp_path / "runs.parquet").write_text("no table")
    with pytest.raises(FileProblem, match="cannot be read"):
        sweep(sweep_runs.runs_of(1), sweep_runs.waits, executor=Inline(), out=tmp_path)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("thread", 'did you mean "threads"'),
        ("dask", "dask://HOST:PORT"),
        ("dask://host", "dask://HOST:PORT"),
        ("dask://host:99999", "dask://HOST:PORT"),
        ("", "known are"),
    ],
)
def test_an_executor_that_is_none_is_reported_with_what_there_is(spec: str, message: str) -> None:
    with pytest.raises(QuantityProblem, match=message) as caught:
        check_executor(spec)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("workers", [0, -3])
def test_fewer_workers_than_one_are_refused(workers: int) -> None:
    with pytest.raises(RoutecastError, match="at least one"), open_executor("threads", workers):
        pass


def test_what_is_python_goes_to_processes_and_what_leaves_python_to_threads() -> None:
    assert chosen_executor("solve", 10**4) == "processes"
    assert chosen_executor("solve", 8) == "threads"
    assert chosen_executor("simulate", 10**4) == "threads"
    assert chosen_executor("measure", 10**4) == "threads"


def test_a_simulation_in_a_thread_stops_when_its_sweep_ends() -> None:
    from routecast.evaluate.simulate import Simulate
    from routecast.load import Arrivals, OfferedLoad
    from routecast.router import ServiceCost, multicore

    router = multicore(4, ServiceCost(per_packet_s=1e-6), link_bps=1e15)
    load = OfferedLoad(rate_pps=3e6, arrivals=Arrivals.poisson())
    begun = threading.Event()
    ended: list[BaseException] = []

    def for_hours(run: Run) -> Answer:
        def listen(share: float) -> None:
            begun.set()
            stop_if_ended(share)

        try:
            Simulate(router, on_progress=listen).trial(load, 1000.0)
        except BaseException as error:
            ended.append(error)
            raise
        return sweep_runs.waits(run)

    def interrupt(done: int, total: int, what: str) -> None:
        if begun.is_set():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), open_executor("threads", 1) as executor:
        sweep(sweep_runs.runs_of(3), for_hours, executor=executor, on_progress=interrupt)
    assert [type(error) for error in ended] == [CancelledError]


def test_any_executor_of_the_standard_library_will_do(expected: tuple[Answer, ...]) -> None:
    with ThreadPoolExecutor(2) as executor:
        assert sweep(sweep_runs.runs_of(300), sweep_runs.waits, executor=executor) == expected


def test_processes_end_with_their_block() -> None:
    with open_executor("processes", 2) as executor:
        sweep(sweep_runs.runs_of(4), sweep_runs.waits, executor=executor)
    assert multiprocessing.active_children() == []


def test_the_time_left_follows_the_pace_of_the_last_minute() -> None:
    moments: Iterator[float] = iter([0.0, 100.0, 120.0, 150.0, 161.0])
    pace = Pace(lambda: next(moments))
    assert pace.remaining_s(0, 1000) is None
    assert pace.remaining_s(10, 1000) == pytest.approx(990 * 10.0)
    for done in (110, 260):
        pace.remaining_s(done, 1000)
    # From 100 s (10 done) to 161 s (315 done): 5 a second.
    assert pace.remaining_s(315, 1000) == pytest.approx(137.0)


@given(st.floats(0.0, 1e7))
def test_a_time_left_is_never_reported_as_less_than_it_is(time_s: float) -> None:
    units = {"s": 1, "min": 60, "h": 3600, "d": 86400}
    words = format_remaining(time_s).removesuffix(" left").split()
    told_s = sum(int(number) * units[unit] for number, unit in zip(words[::2], words[1::2], strict=True))
    assert time_s <= told_s <= time_s + max(1.0, 60.0 * (time_s > 59), 3600.0 * (time_s > 1.7e5))


def test_runs_that_all_failed_are_run_again_once_their_cause_may_be_gone(tmp_path: Path) -> None:
    runs = sweep_runs.runs_of(4)

    def fails(run: Run) -> Answer:
        return Answer(key=run.key, values={}, problem="the test bed is down")

    assert all(answer.problem for answer in sweep(runs, fails, executor=Inline(), out=tmp_path))
    answers = sweep(runs, sweep_runs.waits, executor=Inline(), out=tmp_path)
    assert answers == tuple(sweep_runs.waits(run) for run in runs)
    assert answers_on_disk(tmp_path) == {answer.key: answer for answer in answers}
    # Where some runs have an answer, a failure is a result like them.
    seen = sweep(runs, fails, executor=Inline(), out=tmp_path)
    assert seen == answers
