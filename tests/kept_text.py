"""Text that tests keep beside themselves: short texts as they are, long ones compressed, none of them less exact.

A hash would not do: numbers are compared with a tolerance, and a number at the border of two roundings would change it.
``zcat FILE.txt.gz`` shows a long text, and ``git config diff.gzip.textconv "gzip -dc"`` lets git show how it changed.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

__all__ = ["LONG_BYTES", "file_of", "read_kept", "texts_in", "write_kept"]

LONG_BYTES = 8_000
"""Longer texts are compressed: a page of about 300 lines."""


def file_of(path: Path) -> Path:
    """Return the file that holds the text of ``path``: that path itself, or beside it one that is compressed."""
    compressed = path.with_name(f"{path.name}.gz")
    return compressed if compressed.exists() else path


def read_kept(path: Path) -> str:
    """Return the text of ``path``."""
    content = file_of(path).read_bytes()
    return (gzip.decompress(content) if file_of(path) != path else content).decode()


def write_kept(path: Path, text: str) -> None:
    """Keep ``text`` as ``path``; a file that holds the same text is left as it is, however it was compressed."""
    content, compressed = text.encode(), path.with_name(f"{path.name}.gz")
    is_long = len(content) > LONG_BYTES
    if file_of(path).exists() and (file_of(path) == compressed) == is_long and read_kept(path) == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    (path if is_long else compressed).unlink(missing_ok=True)
    if is_long:
        compressed.write_bytes(gzip.compress(content, mtime=0))
    else:
        path.write_bytes(content)


def texts_in(folder: Path, *suffixes: str) -> Iterator[Path]:
    """Yield the path of every text that is kept under ``folder``, without the suffix of a compressed one."""
    plain = (path.with_suffix("") if path.suffix == ".gz" else path for path in folder.rglob("*"))
    yield from sorted(path for path in plain if path.suffix in suffixes)
