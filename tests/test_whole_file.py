"""Files are whole or absent."""

from __future__ import annotations

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


def test_nothing_unfinished_is_left_beside_a_file_that_was_written(tmp_path: Path) -> None:
    write_whole(tmp_path / "summary.json", "{}\n")
    assert [file.name for file in tmp_path.iterdir()] == ["summary.json"]
