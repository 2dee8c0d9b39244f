"""Calls for processes, in a module of their own, which they import."""

from __future__ import annotations

import os
import signal
import struct
import sys
import threading
import time
from pathlib import Path


def dies() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def dies_half_way_through_its_answer() -> None:
    """Announce 100,000 bytes on the pipe of this process, send four of them, and die."""
    frame = sys._getframe()
    while "pipe" not in frame.f_locals:
        assert frame.f_back is not None
        frame = frame.f_back
    os.write(frame.f_locals["pipe"].fileno(), struct.pack("!i", 100_000) + b"half")
    dies()


def stops() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def waits_for(file: str, most_s: float) -> bool:
    until = time.monotonic() + most_s
    while not Path(file).exists() and time.monotonic() < until:
        time.sleep(0.01)
    return Path(file).exists()


def returns_what_cannot_be_sent() -> object:
    return threading.Lock()


def raises_what_cannot_be_sent() -> None:
    error = RuntimeError("locked")
    error.lock = threading.Lock()  # type: ignore[attr-defined]  # whatever an error may carry
    raise error


def refused() -> None:
    raise ConnectionRefusedError("no")


def blocked_signals() -> set[int]:
    return {int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())}
