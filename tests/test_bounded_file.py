"""Reading a path that a user gives ends in bounded time, and a wrong path gives exit code 2."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import polars
import pytest

from routecast.cli.run import run
from routecast.errors import EnvironmentProblem, FileProblem
from routecast.evaluate.point_table import read_points
from routecast.lab.benchmark.exchange import read_records
from routecast.lab.testbed.meters._csv_log import CsvMeter
from routecast.load.arrivals import read_trace
from routecast.load.series.files import read_series_table
from routecast.power._netpowerbench import read_netpowerbench
from routecast.power.fits import fit_file
from routecast.quantity import bounded_file
from routecast.quantity.bounded_file import read_bytes, read_parquet, read_text
from routecast.router.files import read_router


def refusal(read: Callable[[], object]) -> str:
    with pytest.raises(FileProblem) as caught:
        read()
    return str(caught.value)


def start_writer(pipe: Path, content: bytes, *, times: int = 1) -> threading.Thread:
    """Write to a pipe in a thread, which ignores a reader that closes early."""

    def write() -> None:
        try:
            with pipe.open("wb", buffering=0) as file:
                for _ in range(times):
                    file.write(content)
        except BrokenPipeError:
            pass

    writer = threading.Thread(target=write)
    writer.start()
    return writer


@pytest.fixture
def pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A named pipe; a writer on a busy machine may come late."""
    monkeypatch.setattr(bounded_file, "_MAX_OPEN_WAIT_S", 60.0)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


READERS: list[Callable[[Path], object]] = [
    read_router,
    read_points,
    read_trace,
    read_series_table,
    read_records,
    read_netpowerbench,
    lambda path: fit_file(path, "piecewise"),
    lambda path: read_parquet(path, kind="table"),
]


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/full", "/dev/null"])
@pytest.mark.parametrize("read", READERS)
def test_a_device_is_no_file_for_any_reader(read: Callable[[Path], object], name: str) -> None:
    assert "it is a device, no" in refusal(lambda: read(Path(name)))


@pytest.mark.parametrize("read", READERS)
def test_a_pipe_that_nobody_writes_to_is_refused_by_every_reader(
    read: Callable[[Path], object], pipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_file, "_MAX_OPEN_WAIT_S", 0.01)
    assert "it is an empty pipe" in refusal(lambda: read(pipe))


@pytest.mark.parametrize(
    "command",
    [
        ("solve",),
        ("validate",),
        ("import",),
        ("power", "fit"),
        ("plan", "cluster"),
        ("plan", "placement"),
        ("plan", "mapping"),
        ("noc", "power"),
        ("hardware", "show"),
        ("experiment",),
    ],
)
def test_commands_leave_with_2_where_a_file_has_no_end(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*command, "/dev/zero"]) == 2
    assert "it is a device" in " ".join(capsys.readouterr().err.split())


def test_a_folder_is_reported_as_a_folder(tmp_path: Path) -> None:
    assert "it is a folder, no study" in refusal(lambda: read_text(tmp_path, kind="study"))


def test_a_pipe_says_what_its_writer_does(pipe: Path) -> None:
    content = b"name = 'x'\n" * 20_000  # several times what a pipe holds
    writer = start_writer(pipe, content)
    assert read_bytes(pipe, kind="study") == content
    writer.join()


def test_a_pipe_without_end_is_cut_off_at_the_bound(pipe: Path) -> None:
    writer = start_writer(pipe, b"y\n" * 10_000, times=10**9)
    assert "larger than 1,000 bytes: no study" in refusal(lambda: read_bytes(pipe, kind="study", max_file_bytes=1000))
    writer.join()


def test_a_writer_that_says_nothing_is_not_waited_for_without_end(pipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_file, "_MAX_SILENCE_S", 0.01)
    # Open for both, so that opening waits for nobody.
    descriptor = os.open(pipe, os.O_RDWR)
    try:
        assert "nothing came through this pipe" in refusal(lambda: read_bytes(pipe, kind="study"))
    finally:
        os.close(descriptor)


def test_a_size_that_the_file_system_denies_does_not_deceive(tmp_path: Path) -> None:
    assert Path("/proc/self/status").stat().st_size == 0
    assert "Pid:" in read_text(Path("/proc/self/status"), kind="status")
    assert "larger than 100 bytes" in refusal(
        lambda: read_text(Path("/proc/self/status"), kind="status", max_file_bytes=100)
    )
    with (tmp_path / "holes.toml").open("wb") as file:
        file.truncate(1 << 40)
    message = refusal(lambda: read_router(tmp_path / "holes.toml"))
    assert "has at least 1,099,511,627,776 bytes, larger than 10,000,000 bytes: no router file" in message


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "marked.toml").write_bytes(b"\xef\xbb\xbfa = 1")
    assert read_text(tmp_path / "marked.toml", kind="study") == "a = 1"


def test_a_parquet_file_whose_values_are_all_the_same_is_bounded_by_their_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    same = tmp_path / "same.parquet"
    polars.DataFrame({"a": [0] * 100_000, "b": [0] * 100_000}).write_parquet(same)
    assert same.stat().st_size < 10_000
    assert read_parquet(same, kind="table").height == 100_000
    monkeypatch.setattr(bounded_file, "_MAX_VALUES", 199_999)
    assert "has more than 99,999 rows of 2 values: no table" in refusal(lambda: read_parquet(same, kind="table"))


def test_a_log_of_watts_must_be_a_file_to_seek_in(pipe: Path) -> None:
    for path, kind in ((pipe, "a pipe"), (Path("/dev/zero"), "a device")):
        with pytest.raises(EnvironmentProblem, match=f"it is {kind}, no log of watts"):
            CsvMeter(path).start()
