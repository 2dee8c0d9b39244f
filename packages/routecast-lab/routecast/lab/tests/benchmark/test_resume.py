"""A benchmark that was interrupted goes on where it stopped, and ends with the result that it would have had."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("polars")

from benchmark_fakes import LINK_BPS, Disturbed, Fluid, profile_with

from routecast.errors import EnvironmentProblem, FileProblem
from routecast.evaluate.trial import Trial
from routecast.lab.benchmark import BenchmarkResult, PlainRig, plan_of, run_benchmark
from routecast.lab.benchmark.journal import read_trial
from routecast.load import OfferedLoad


class Broken(Exception):
    """What ends a run in these tests."""


class Breaking(Disturbed):
    """A noisy router whose run ends at a trial; the noise depends on the number of the trial alone."""

    breaks_at = 0

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        if self.breaks_at and len(self.trials) >= self.breaks_at:
            raise Broken
        self.random.seed(f"{load.rate_pps}/{duration_s}")
        return super().trial(load, duration_s)


def run(out: Path | None, breaks_at: int = 0) -> tuple[BenchmarkResult, Breaking]:
    evaluator = Breaking(2e6, queue_frames=256)
    evaluator.breaks_at = breaks_at
    result = run_benchmark(plan_of(profile_with()), PlainRig(evaluator=evaluator, link=LINK_BPS), out=out)
    return result, evaluator


def without_clock(result: BenchmarkResult) -> dict[str, object]:
    """Return a result as JSON without its times and its number of resumed trials."""
    return replace(result, resumed_trials=0, elapsed_s=0.0, started_utc="").to_json()


@pytest.mark.parametrize("breaks_at", [1, 7, 40])
def test_a_broken_run_that_is_started_again_ends_with_the_same_result(tmp_path: Path, breaks_at: int) -> None:
    whole, undisturbed = run(None)
    with pytest.raises(Broken):
        run(tmp_path, breaks_at)
    assert (tmp_path / "trials.parquet").exists()
    assert not (tmp_path / "benchmark.json").exists()
    resumed, evaluator = run(tmp_path)
    assert resumed.resumed_trials == breaks_at
    assert len(evaluator.trials) == len(undisturbed.trials) - breaks_at
    assert without_clock(resumed) == without_clock(whole)
    # NaN is not equal to itself, so trials are compared as plain data.
    assert [r.trial.to_json() for r in resumed.trials] == [r.trial.to_json() for r in whole.trials]
    assert json.loads((tmp_path / "benchmark.json").read_text())["schema"] == "routecast-benchmark/1"


def test_a_complete_run_is_started_anew(tmp_path: Path) -> None:
    run(tmp_path)
    again, evaluator = run(tmp_path)
    assert again.resumed_trials == 0
    assert len(evaluator.trials) == len(again.trials)


def test_trials_parquet_has_a_line_for_every_trial(tmp_path: Path) -> None:
    import polars

    result, _ = run(tmp_path)
    table = polars.read_parquet(tmp_path / "trials.parquet")
    assert len(table) == len(result.trials)
    # S12, for every line.
    assert (table["offered_frames"] - table["forwarded_frames"] - table["dropped_frames"]).to_list() == [0] * len(table)
    assert set(table["procedure"].unique()) == {"throughput", "latency", "frame_loss", "back_to_back", "recovery"}
    assert read_trial(table["trial"][0]).to_json() == result.trials[0].trial.to_json()


def test_the_unfinished_trials_of_another_benchmark_are_not_mixed_in(tmp_path: Path) -> None:
    with pytest.raises(Broken):
        run(tmp_path, 5)
    other = plan_of(profile_with(latency={"repeats": 2}))
    with pytest.raises(FileProblem, match="another benchmark"):
        run_benchmark(other, PlainRig(evaluator=Fluid(2e6), link=LINK_BPS), out=tmp_path)
    # Nothing is lost by asking.
    resumed, _ = run(tmp_path)
    assert resumed.resumed_trials == 5


def test_a_folder_without_a_valid_trial_is_started_over_by_another_benchmark(tmp_path: Path) -> None:
    with pytest.raises(Broken):
        run(tmp_path, 5)
    import polars

    table = tmp_path / "trials.parquet"
    polars.read_parquet(table).with_columns(polars.lit("the link went down").alias("invalid")).write_parquet(table)
    other = plan_of(profile_with(latency={"repeats": 2}))
    result = run_benchmark(other, PlainRig(evaluator=Fluid(2e6), link=LINK_BPS), out=tmp_path)
    assert result.resumed_trials == 0
    assert len(polars.read_parquet(table)) == len(result.trials)


def test_a_file_of_trials_without_content_does_not_block_a_run(tmp_path: Path) -> None:
    (tmp_path / "trials.parts").mkdir()
    for name in ("trials.parquet", "trials.parts/000001.parquet"):
        (tmp_path / name).write_bytes(b"")
    result, _ = run(tmp_path)
    assert result.resumed_trials == 0
    assert (tmp_path / "benchmark.json").exists()


def test_a_full_disk_is_reported_and_keeps_what_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from routecast.evaluate import ledger

    written = 0
    unfinished = ledger.unfinished

    @contextmanager
    def full(path: Path) -> Iterator[Path]:
        nonlocal written
        written += 1
        if written > 3:
            raise OSError(28, "No space left on device")
        with unfinished(path) as draft:
            yield draft

    monkeypatch.setattr(ledger, "unfinished", full)
    monkeypatch.setattr(ledger, "FLUSH_EVERY_S", 0.0)
    with pytest.raises(EnvironmentProblem, match=r"No space left.*finished trials are kept"):
        run(tmp_path)
    monkeypatch.undo()
    resumed, _ = run(tmp_path)
    assert resumed.resumed_trials == 3


SLOWLY = """
import sys, time
from routecast.evaluate.ledger import Ledger
add = Ledger.add
def add_slowly(self, row):
    add(self, row)
    time.sleep(0.1)
Ledger.add = add_slowly
from routecast.cli import main
sys.exit(main())
"""
"""A benchmark of seconds, so that it is not over before a signal comes, however late that is sent."""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
@pytest.mark.slow
def test_a_run_that_is_interrupted_or_killed_goes_on(
    tmp_path: Path, number: int, code: int, start: Callable[..., subprocess.Popen[str]], until: Callable[..., None]
) -> None:
    pytest.importorskip("routecast._core", reason="the extension is not built")
    router = Path(__file__).parents[6] / "examples" / "multicore.router.toml"
    arguments = [
        *("benchmark", "rfc2544", "--evaluator", "simulate", str(router)),
        *("--out", str(tmp_path / "out"), "--json", "--procedures", "throughput,frame_loss"),
    ]
    command = [sys.executable, "-m", "routecast", *arguments]
    process = start([sys.executable, "-c", SLOWLY, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    until(lambda: any((tmp_path / "out").glob("trials.parts/*.parquet")), "a trial is kept", process)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == code, stderr
    if number == signal.SIGINT:
        assert "continues from there" in stderr
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    document = json.loads(done.stdout)
    assert document["resumed_trials"] > 0
    assert document["throughput"]["rows"]


@pytest.mark.slow
def test_the_extension_is_not_needed_for_a_fake() -> None:
    code = """
    import sys
    sys.modules["routecast._core"] = None
    from routecast.lab.benchmark import read_profile
    print(read_profile("quick").name)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "quick"
