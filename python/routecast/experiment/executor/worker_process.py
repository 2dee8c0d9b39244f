"""One process that answers calls, at the other end of a pipe of its own.

The pools of the standard library share two pipes among all processes. One that is killed while it writes leaves half a
message there, and who reads waits for the other half for ever. Here nothing is shared: a pipe whose process is gone
has an end, which is read as such.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from threading import Thread
from typing import Any

__all__ = ["WorkerProcess"]

ENDS_WITHIN_S = 5.0
"""How long a process that has nothing to do may take to end by itself."""

_LOST = "a process ended abruptly while it was at work"


class WorkerProcess:
    """A process that is started with the object; used by one thread, but ended by any.

    It has the signal mask of the thread that starts it, even while it is still importing.
    """

    def __init__(self) -> None:
        # Spawned: a fork would copy locks that other threads hold.
        context = get_context("spawn")
        self._pipe, there = context.Pipe()
        # Python ends such processes when it ends itself, instead of waiting for them.
        self._process = context.Process(target=_answer_calls, args=(there,), daemon=True)
        try:
            self._process.start()
        except BaseException:
            self._pipe.close()
            raise
        finally:
            there.close()

    def call(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what a function returns there, or raise what it raises.

        Raises
        ------
        concurrent.futures.process.BrokenProcessPool
            The process was killed, or ended by itself.
        """
        message = ForkingPickler.dumps((fn, args, kwargs))
        try:
            self._pipe.send_bytes(message)
            answer = self._pipe.recv_bytes()
        except (EOFError, OSError) as gone:  # nothing, or half a message
            raise BrokenProcessPool(_LOST) from gone
        is_value, found, told = ForkingPickler.loads(answer)
        if is_value:
            return found
        raise found from _There(told)

    def kill(self) -> None:
        """End it, whatever it is doing, even if it is stopped."""
        self._process.kill()

    def close(self) -> None:
        """End it when it has answered; nothing of it is left."""
        self._pipe.close()
        self._process.join(ENDS_WITHIN_S)
        self._process.kill()
        self._process.join()


class _There(Exception):
    """The traceback of an error in another process, which is shown as its cause."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


def _answer_calls(pipe: Connection) -> None:
    """Answer calls until nobody can ask any more: the body of the process."""
    Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, ConnectionError):
        while True:
            _answer_one(pipe)


def _answer_one(pipe: Connection) -> None:
    answer = _answered(pipe.recv_bytes())
    try:
        message = ForkingPickler.dumps(answer)
    except Exception as error:
        is_value, found, told = answer
        what = "what it returns" if is_value else f"what it raises, {type(found).__name__}: {found},"
        message = ForkingPickler.dumps((False, TypeError(f"{what} cannot be sent: {error}"), told))
    pipe.send_bytes(message)


def _answered(message: bytes) -> tuple[bool, Any, str]:
    """Return whether a call returned a value; what it returned or raised; the traceback of what it raised."""
    try:
        fn, args, kwargs = ForkingPickler.loads(message)
        return True, fn(*args, **kwargs), ""
    except BaseException as error:
        return False, error, traceback.format_exc()


def _end_with_parent() -> None:
    """End this process when its parent is killed, though it is at work."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
