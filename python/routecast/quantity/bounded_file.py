"""Reading of files that users name: it always ends, and takes bounded memory.

====================  ==========================================================================================
behind the name       what becomes of it
====================  ==========================================================================================
a file                read, up to a bound that its reader states
a pipe                read likewise: shells write ``<(command)`` and ``/dev/stdin``. One that nobody opens to write
                      is refused after a second, one whose writer is silent after a minute
a folder, a device    refused: ``/dev/zero`` has no end, and a terminal is nobody's file
====================  ==========================================================================================

The size that a file system tells is believed only where it is too large: files of ``/proc`` have a size of 0, and
others grow while they are read.
"""

from __future__ import annotations

import io
import os
import select
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from routecast.errors import FileProblem, Problem

if TYPE_CHECKING:
    import polars

__all__ = ["open_file", "read_bytes", "read_parquet", "read_text"]

LARGEST_BYTES = 10_000_000
"""What people write by hand is far smaller."""

_PIECE_BYTES = 1 << 20
_UNOPENED_S, _SILENT_S = 1.0, 60.0
_MOST_CELLS = 20_000_000
"""Values of a Parquet table: in a few kilobytes billions fit that are all the same."""


def read_text(path: Path, *, kind: str, largest_bytes: int = LARGEST_BYTES) -> str:
    """Return the text of a file, without the byte order mark that some programs begin it with.

    ``kind``: what the file should be, for messages: ``"router file"``; ``largest_bytes``: a larger file is refused
    unread. Raises FileProblem: as :func:`read_bytes`, or it is no UTF-8.
    """
    content = read_bytes(path, kind=kind, largest_bytes=largest_bytes)
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as problem:
        message = f"cannot be read as text: byte {problem.start} is no UTF-8; no {kind}"
        raise FileProblem(str(path), [Problem("", message)]) from problem


def read_bytes(path: Path, *, kind: str, largest_bytes: int = LARGEST_BYTES) -> bytes:
    """Return the content of a file or a pipe.

    Raises FileProblem: it cannot be read, is no file and no pipe, is too large, or nothing comes out of the pipe.
    """
    with _refusing(path), _opened(path, kind, pipes=True) as file:
        is_pipe = stat.S_ISFIFO(os.fstat(file.fileno()).st_mode)
        if not is_pipe:
            _check_size(path, os.fstat(file.fileno()).st_size, kind, largest_bytes)
        content = bytearray()
        for piece in _from_pipe(file, path) if is_pipe else _from_file(file):
            content += piece
            _check_size(path, len(content), kind, largest_bytes)
        return bytes(content)


def read_parquet(path: Path, *, kind: str, largest_bytes: int = 500_000_000) -> polars.DataFrame:
    """Return the table of a Parquet file.

    Raises FileProblem: as :func:`read_bytes`, or it is no Parquet, or holds more values than any such table.
    """
    import polars

    content = read_bytes(path, kind=kind, largest_bytes=largest_bytes)
    try:
        columns = len(polars.read_parquet_schema(io.BytesIO(content)))
        most = _MOST_CELLS // max(columns, 1)
        frame = polars.read_parquet(io.BytesIO(content), n_rows=most + 1)
    except (polars.exceptions.PolarsError, OSError) as problem:
        message = f"cannot be read as Parquet: {problem}"
        raise FileProblem(str(path), [Problem("", message)]) from problem
    if frame.height > most:
        message = f"has more than {most:,} rows of {columns:,} values: no {kind}"
        raise FileProblem(str(path), [Problem("", f"{message}; name another file, or cut this one")])
    return frame


@contextmanager
def open_file(path: Path, *, kind: str, largest_bytes: int | None = None) -> Iterator[io.FileIO]:
    """Open a file, but no pipe, to seek in it or to read a part.

    Raises FileProblem: it cannot be opened, is no file, or is too large.
    """
    with _refusing(path):
        file = _opened(path, kind, pipes=False)
    with file:
        if largest_bytes is not None:
            _check_size(path, os.fstat(file.fileno()).st_size, kind, largest_bytes)
        yield file


def _opened(path: Path, kind: str, *, pipes: bool) -> io.FileIO:
    # Before it is opened, too: opening alone sets some devices going.
    _check_kind(path, os.stat(path).st_mode, kind, pipes=pipes)
    # Opening a pipe waits for its writer otherwise.
    file = io.FileIO(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), closefd=True)
    try:
        _check_kind(path, os.fstat(file.fileno()).st_mode, kind, pipes=pipes)
    except BaseException:
        file.close()
        raise
    return file


def _check_kind(path: Path, mode: int, kind: str, *, pipes: bool) -> None:
    if stat.S_ISREG(mode) or (pipes and stat.S_ISFIFO(mode)):
        return
    what = "a folder" if stat.S_ISDIR(mode) else "a pipe" if stat.S_ISFIFO(mode) else "a device"
    wanted = "a file or a pipe" if pipes else "a file"
    raise FileProblem(str(path), [Problem("", f"cannot be read: it is {what}, no {kind}: name {wanted}")])


def _check_size(path: Path, size_bytes: int, kind: str, largest_bytes: int) -> None:
    if size_bytes > largest_bytes:
        message = f"has at least {size_bytes:,} bytes, larger than {largest_bytes:,} bytes: no {kind}"
        raise FileProblem(str(path), [Problem("", f"{message}; name another file, or cut this one")])


def _from_file(file: io.FileIO) -> Iterator[bytes]:
    while piece := file.read(_PIECE_BYTES):  # None where there would be something to wait for
        yield piece


def _from_pipe(file: io.FileIO, path: Path) -> Iterator[bytes]:
    ready = select.poll()
    ready.register(file, select.POLLIN)
    begun = waited = False
    while True:
        piece = file.read(_PIECE_BYTES)
        if piece:
            begun = True
            yield piece
        elif piece is None:  # it has a writer, who has not written yet
            if not ready.poll(1000.0 * _SILENT_S):
                message = f"cannot be read: nothing came through this pipe for {_SILENT_S:g} s"
                raise FileProblem(str(path), [Problem("", f"{message}; write a file first and name that")])
        elif begun:  # and every writer has closed it
            return
        elif waited:
            message = "cannot be read: it is an empty pipe, or one that was read before; name a file"
            raise FileProblem(str(path), [Problem("", message)])
        else:
            waited = True
            ready.poll(1000.0 * _UNOPENED_S)


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise FileProblem(str(path), [Problem("", f"cannot be read: {reason}")]) from problem
