"""What idle cores do while a test bed is up: sleep, as ever, or poll, so that they work at once.

A core that sleeps takes microseconds to wake up, a virtual one tens of them, and who wakes it is held up as well: the
tester's own core. The kernel keeps cores out of their sleep states for as long as a process holds
``/dev/cpu_dma_latency`` open with a latency of 0 (PM QoS, Documentation/power/pm_qos_interface.rst); it forgets that
when the process ends, however it ends.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

__all__ = ["IdlePolling"]

_DEVICE = Path("/dev/cpu_dma_latency")


class IdlePolling:
    """Keeps idle cores polling from :meth:`begin` to :meth:`end`."""

    def __init__(self, device: Path = _DEVICE) -> None:
        self._device = device
        self._open: int | None = None
        self.refused = ""
        """Why the kernel does not do it; empty if it does."""

    def begin(self) -> None:
        """Ask for it; where that is not possible, :attr:`refused` says why and cores sleep as ever."""
        if self._open is not None:
            return
        try:
            self._open = os.open(self._device, os.O_WRONLY | os.O_CLOEXEC)
            os.write(self._open, struct.pack("=i", 0))
        except OSError as problem:
            self.end()
            self.refused = f"{self._device}: {problem.strerror}"

    def end(self) -> None:
        """Let cores sleep again."""
        if self._open is not None:
            os.close(self._open)
            self._open = None

    @property
    def is_on(self) -> bool:
        """Whether idle cores poll for us."""
        return self._open is not None
