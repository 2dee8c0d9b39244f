"""Atomic writing of files: a file is written under a temporary name, so that it is complete or absent."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["unfinished", "write_whole"]


@contextmanager
def unfinished(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to; the file is renamed to ``path`` when the block ends without an error.

    The file is on the disk, with its name, before this ends (fsync of both). After an error or Ctrl-C the temporary
    file is removed. A link stays and its file is replaced; pipes and devices, such as ``/dev/stdout``, are written to.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    target = path.resolve() if path.is_symlink() else path
    draft = target.with_name(f"{target.name}.unfinished")
    try:
        yield draft
        _sync(draft)
        os.replace(draft, target)
    except BaseException as problem:
        with contextlib.suppress(OSError):
            draft.unlink()
        if isinstance(problem, OSError) and problem.filename == str(draft):
            problem.filename, problem.filename2 = str(path), None
        raise
    _sync(target.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_whole(path: Path, text: str) -> None:
    """Write a text to a file that is complete or absent; lone surrogates, as in names of files, are escaped."""
    with unfinished(path) as draft:
        draft.write_text(text, encoding="utf-8", errors="backslashreplace")
