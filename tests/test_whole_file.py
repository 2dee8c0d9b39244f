"""Files are whole or absent."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from routecast.quantity.whole_file import unfinished, write_whole


def test_a_file_stays_as_it_was_where_writing_it_again_fails(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_whole(path, "first")

    def half() -> None:
        with unfinished(path) as draft:
            draft.write_text("sec", encoding="utf-8")
            raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space"):
        half()
    assert path.read_text(encoding="utf-8") == "first"


@pytest.mark.parametrize("interruption", [OSError("no space left on device"), KeyboardInterrupt()])
def test_what_is_interrupted_leaves_no_temporary_file(tmp_path: Path, interruption: BaseException) -> None:
    def half() -> None:
        with unfinished(tmp_path / "report.html") as draft:
            draft.write_text("half", encoding="utf-8")
            raise interruption

    with pytest.raises(type(interruption)):
        half()
    assert not list(tmp_path.iterdir())


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        text = pool.submit(pipe.read_text, encoding="utf-8")
        write_whole(pipe, "{}\n")
        assert text.result() == "{}\n"
    assert pipe.is_fifo()


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to(tmp_path / "report.html")
    write_whole(tmp_path / "latest", "first")
    assert (tmp_path / "latest").is_symlink()
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == "first"


def test_an_error_names_the_file_and_not_the_temporary_one(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "report.html"
    with pytest.raises(FileNotFoundError) as problem:
        write_whole(path, "")
    assert problem.value.filename == str(path)


def test_nothing_unfinished_is_left_beside_a_file_that_was_written(tmp_path: Path) -> None:
    write_whole(tmp_path / "summary.json", "{}\n")
    assert [file.name for file in tmp_path.iterdir()] == ["summary.json"]
