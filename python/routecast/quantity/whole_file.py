"""Files that are whole or absent even if the process dies: they are first written under another name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["unfinished", "write_whole"]


@contextmanager
def unfinished(path: Path) -> Iterator[Path]:
    """Give a temporary name to write to; the file gets its own when the block ends without an error."""
    draft = path.with_name(f"{path.name}.unfinished")
    yield draft
    os.replace(draft, path)


def write_whole(path: Path, text: str) -> None:
    """Write a text to a file, which is whole or absent; lone surrogates, as in names of files, are escaped."""
    with unfinished(path) as draft:
        draft.write_text(text, encoding="utf-8", errors="backslashreplace")
