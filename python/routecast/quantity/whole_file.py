"""Atomic writing of files: a file is written under a temporary name, so that it is complete or absent."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["unfinished", "write_whole"]


@contextmanager
def unfinished(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to; the file is renamed to ``path`` when the block ends without an error."""
    draft = path.with_name(f"{path.name}.unfinished")
    yield draft
    os.replace(draft, path)


def write_whole(path: Path, text: str) -> None:
    """Write a text to a file that is complete or absent; lone surrogates, as in names of files, are escaped."""
    with unfinished(path) as draft:
        draft.write_text(text, encoding="utf-8", errors="backslashreplace")
