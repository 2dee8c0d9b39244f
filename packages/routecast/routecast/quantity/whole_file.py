"""Atomic writing of files: a file is written under a temporary name, so that it is complete or absent."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["unfinished", "write_whole"]


@contextmanager
def unfinished(path: Path, *, is_durable: bool = False) -> Iterator[Path]:
    """Yield a temporary path to write to; the file is renamed to ``path`` when the block ends without an error.

    ``is_durable``: the file is on the disk, with its name, before this ends (fsync of both).
    """
    draft = path.with_name(f"{path.name}.unfinished")
    yield draft
    if is_durable:
        _sync(draft)
    os.replace(draft, path)
    if is_durable:
        _sync(path.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_whole(path: Path, text: str, *, is_durable: bool = False) -> None:
    """Write a text to a file that is complete or absent; lone surrogates, as in names of files, are escaped.

    ``is_durable``: as for :func:`unfinished`.
    """
    with unfinished(path, is_durable=is_durable) as draft:
        draft.write_text(text, encoding="utf-8", errors="backslashreplace")
