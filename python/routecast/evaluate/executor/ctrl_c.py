"""Ctrl-C that waits for a moment: it must not strike where a lock is taken that another thread will ask for.

``concurrent.futures`` takes locks in Python. A KeyboardInterrupt between taking one and the statement that gives it
back leaves it taken: the thread that wants it waits for ever, and so does whoever waits for the thread.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["ctrl_c_waits"]

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ctrl_c_waits() -> Iterator[Callable[[], None]]:
    """Let SIGINT, and SIGTERM and SIGHUP where a handler listens to them, strike after the block only.

    Whatever runs in the block should take less than a second. In threads other than the main one, which no signal
    interrupts, nothing happens.

    Yields
    ------
    callable
        Lets a signal strike that came; for blocks that go on for long, at a place where nothing is taken.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    came: list[tuple[int, FrameType | None]] = []
    before: dict[int, Callable[[int, FrameType | None], Any]] = {}
    is_held = True

    def note(number: int, frame: FrameType | None) -> None:
        if is_held:
            came.append((number, frame))
        else:  # this handler was not yet replaced when an earlier signal struck
            before[number](number, frame)

    def strike() -> None:
        while came:
            number, frame = came.pop(0)
            before[number](number, frame)

    try:
        for ending in _ENDING:
            handler = signal.getsignal(ending)
            if callable(handler):
                before[ending] = handler
                signal.signal(ending, note)
        yield strike
    finally:
        is_held = False
        for number, handler in before.items():
            signal.signal(number, handler)
        strike()
