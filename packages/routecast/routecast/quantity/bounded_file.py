"""Reading of files that users name, in bounded time and memory.

====================  ==========================================================================================
path                  action
====================  ==========================================================================================
a file                is read, up to the largest size that the caller allows
a pipe                is read in the same way, because shells write ``<(command)`` and ``/dev/stdin``. It is refused
                      if no process opens it for writing within a second, or if its writer is silent for a minute
a folder, a device    is refused, because ``/dev/zero`` has no end and a terminal is not a file
====================  ==========================================================================================

The size that the file system reports serves only to refuse files that are too large: files of ``/proc`` have a size of
0, and other files grow while they are read.
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

MAX_FILE_BYTES = 10_000_000
"""Largest file by default. Files that people write by hand are far smaller."""

_CHUNK_BYTES = 1 << 20
_MAX_OPEN_WAIT_S, _MAX_SILENCE_S = 1.0, 60.0
_MAX_VALUES = 20_000_000
"""Most values of a Parquet table: a few kilobytes can encode billions of equal values."""

_FLAGS = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
"""How files are opened, as far as the system knows it.

Without O_NONBLOCK, opening a pipe waits for its writer; without O_BINARY, Windows changes ends of lines.
"""


def read_text(path: Path, *, kind: str, max_file_bytes: int = MAX_FILE_BYTES) -> str:
    """Return the text of a file, without a leading byte order mark.

    ``kind`` names the expected kind of file in messages, such as ``"router file"``. Files of more than
    ``max_file_bytes`` are refused unread. Raises FileProblem as :func:`read_bytes` does, or if the text is not UTF-8.
    """
    content = read_bytes(path, kind=kind, max_file_bytes=max_file_bytes)
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as problem:
        message = f"cannot be read as text: byte {problem.start} is not UTF-8, so this is no {kind}"
        raise FileProblem(str(path), [Problem("", message)]) from problem


def read_bytes(path: Path, *, kind: str, max_file_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Return the content of a file or a pipe.

    Raises FileProblem: the path cannot be read, is neither a file nor a pipe, is too large, or the pipe stays empty.
    """
    with _os_errors_as_problems(path), _opened(path, kind, pipes=True) as file:
        is_pipe = stat.S_ISFIFO(os.fstat(file.fileno()).st_mode)
        if not is_pipe:
            _check_size(path, os.fstat(file.fileno()).st_size, kind, max_file_bytes)
        content = bytearray()
        for chunk in _pipe_chunks(file, path) if is_pipe else _file_chunks(file):
            content += chunk
            _check_size(path, len(content), kind, max_file_bytes)
        return bytes(content)


def read_parquet(path: Path, *, kind: str, max_file_bytes: int = 500_000_000) -> polars.DataFrame:
    """Return the table of a Parquet file.

    Raises FileProblem as :func:`read_bytes` does, or if the content is not Parquet or has more than 20 million values.
    """
    import polars

    content = read_bytes(path, kind=kind, max_file_bytes=max_file_bytes)
    try:
        columns = len(polars.read_parquet_schema(io.BytesIO(content)))
        max_rows = _MAX_VALUES // max(columns, 1)
        frame = polars.read_parquet(io.BytesIO(content), n_rows=max_rows + 1)
    except (polars.exceptions.PolarsError, OSError) as problem:
        message = f"cannot be read as Parquet: {problem}"
        raise FileProblem(str(path), [Problem("", message)]) from problem
    if frame.height > max_rows:
        message = f"has more than {max_rows:,} rows of {columns:,} values: no {kind}"
        raise FileProblem(str(path), [Problem("", f"{message}; name another file, or cut this one")])
    return frame


@contextmanager
def open_file(path: Path, *, kind: str, max_file_bytes: int | None = None) -> Iterator[io.FileIO]:
    """Open a file, but not a pipe, to seek in it or to read a part.

    Raises FileProblem: the path cannot be opened, is not a file, or is too large.
    """
    with _os_errors_as_problems(path):
        file = _opened(path, kind, pipes=False)
    with file:
        if max_file_bytes is not None:
            _check_size(path, os.fstat(file.fileno()).st_size, kind, max_file_bytes)
        yield file


def _opened(path: Path, kind: str, *, pipes: bool) -> io.FileIO:
    # Check before opening as well, because opening alone activates some devices.
    _check_kind(path, os.stat(path).st_mode, kind, pipes=pipes)
    file = io.FileIO(os.open(path, os.O_RDONLY | _FLAGS), closefd=True)
    try:
        _check_kind(path, os.fstat(file.fileno()).st_mode, kind, pipes=pipes)
    except BaseException:
        file.close()
        raise
    return file


def _check_kind(path: Path, mode: int, kind: str, *, pipes: bool) -> None:
    if stat.S_ISREG(mode) or (pipes and stat.S_ISFIFO(mode)):
        return
    actual = "a folder" if stat.S_ISDIR(mode) else "a pipe" if stat.S_ISFIFO(mode) else "a device"
    allowed = "a file or a pipe" if pipes else "a file"
    raise FileProblem(str(path), [Problem("", f"cannot be read: it is {actual}, no {kind}: name {allowed}")])


def _check_size(path: Path, size_bytes: int, kind: str, max_file_bytes: int) -> None:
    if size_bytes > max_file_bytes:
        message = f"has at least {size_bytes:,} bytes, larger than {max_file_bytes:,} bytes: no {kind}"
        raise FileProblem(str(path), [Problem("", f"{message}; name another file, or cut this one")])


def _file_chunks(file: io.FileIO) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK_BYTES):  # None if a read would block
        yield chunk


def _pipe_chunks(file: io.FileIO, path: Path) -> Iterator[bytes]:
    ready = select.poll()
    ready.register(file, select.POLLIN)
    has_data = has_waited = False
    while True:
        chunk = file.read(_CHUNK_BYTES)
        if chunk:
            has_data = True
            yield chunk
        elif chunk is None:  # a writer has opened the pipe but has not written yet
            if not ready.poll(1000.0 * _MAX_SILENCE_S):
                message = f"cannot be read: nothing came through this pipe for {_MAX_SILENCE_S:g} s"
                raise FileProblem(str(path), [Problem("", f"{message}; write a file first and name that")])
        elif has_data:  # every writer has closed the pipe
            return
        elif has_waited:
            message = "cannot be read: it is an empty pipe, or one that was read before; name a file"
            raise FileProblem(str(path), [Problem("", message)])
        else:
            has_waited = True
            ready.poll(1000.0 * _MAX_OPEN_WAIT_S)


@contextmanager
def _os_errors_as_problems(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise FileProblem(str(path), [Problem("", f"cannot be read: {reason}")]) from problem
