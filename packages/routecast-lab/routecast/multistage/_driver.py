"""The thread that drives the protocol of a router: it reads, hands on, and carries out what comes back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from routecast.errors import EnvironmentProblem
from routecast.lab._lab import TesterError
from routecast.lab.testbed.tester import error_text
from routecast.multistage._elements import Elements

__all__ = ["Driver"]

_TICK_S = 0.02


class Driver:
    """Drives the protocol every 20 ms, holding ``lock`` meanwhile; ``on_remark`` receives what went wrong."""

    def __init__(
        self, elements: Elements, lock: threading.RLock, on_remark: Callable[[str], None], *, name: str
    ) -> None:
        self._elements, self._lock, self._on_remark, self._name = elements, lock, on_remark, name
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._told = ""

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name=f"multistage {self._name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, and wait until it has ended."""
        self._stopping.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def step(self) -> None:
        """Drive the protocol once: what is seen, what is heard, what is due."""
        elements, machine = self._elements, self._elements.machine
        for balancer in elements.balancers.values():
            balancer.plane.beat()
        seen = machine.observe(elements.views(), time.monotonic())
        elements.do_what_can_be_done([*seen, *elements.hear(), *machine.tick(time.monotonic())])

    def _run(self) -> None:
        due_s = time.monotonic()
        while True:
            due_s = max(due_s + _TICK_S, time.monotonic())
            if self._stopping.wait(due_s - time.monotonic()):
                return
            with self._lock:
                try:
                    self.step()
                    self._told = ""
                except (EnvironmentProblem, OSError) as problem:
                    self._tell(str(problem))
                except TesterError as problem:
                    self._tell(error_text(problem))

    def _tell(self, problem: str) -> None:
        if problem != self._told:  # not fifty times a second
            self._told = problem
            self._on_remark(f"{self._name}: {problem}")
