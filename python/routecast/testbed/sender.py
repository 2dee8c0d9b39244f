"""The tester of a bed while it is open: what is asked of it, what is read beside it, what the device has learnt."""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from routecast.errors import EnvironmentProblem, RoutecastError
from routecast.testbed.bed import Bed
from routecast.testbed.phases import Phases
from routecast.testbed.streams import Streams, learning_streams
from routecast.testbed.tester import Tester, notes_of, said
from routecast.testbed.watch import Reading, Watch

__all__ = ["Sender"]

_LEARNING_PPS = 5_000.0
_REMEMBERED_S = 60.0
"""How long a device is taken to know its neighbours; bridges forget after 300 s (IEEE 802.1D table 7-5)."""

_TRIAL_IDS = 128


class Sender:
    """Sends what it is asked to from the ports of a bed; an evaluator and all its views share one.

    Parameters
    ----------
    bed : Bed
        A test bed that is up.
    back_end : str
        One of :data:`~routecast.testbed.tester.BACK_ENDS`.
    tester : callable
        Opens the tester for a configuration.
    """

    def __init__(self, bed: Bed, *, back_end: str, tester: Callable[[Mapping[str, Any]], Tester]) -> None:
        self._bed = bed
        self._back_end = back_end
        self._opener = tester
        self._tester: Tester | None = None
        self._watch: Watch | None = None
        self._marks = itertools.count(1)
        self._learnt: dict[str, float] = {}

    @property
    def cores(self) -> dict[str, int]:
        """CPUs of the tester and, unless it is on the bench and has its own, of the device."""
        cores = {"tester": self._bed.placement.tester}
        if self._bed.site.cpu is not None:
            cores["dut"] = self._bed.site.cpu
        return cores

    def open(self) -> None:
        """Open the tester and what watches it; once it is open, nothing happens.

        Raises
        ------
        routecast.errors.EnvironmentProblem
            A right, an interface or a kernel feature is missing.
        """
        if self._tester is None:
            ports = self._bed.ports
            self._tester = self._opener(self._bed.tester_configuration(self._back_end))
            try:
                self._bed.settle()
                self._watch = Watch(
                    [*(port.netns for port in ports), self._bed.site.netns], list(self.cores.values())
                )
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Let go of the ports."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        if self._tester is not None:
            self._tester.close()
            self._tester = None

    def facts(self) -> Mapping[str, object]:
        """Return what the tester is made of; nothing while it is closed."""
        facts: Mapping[str, object] = json.loads(self._tester.facts()) if self._tester is not None else {}
        return facts

    def notes(self) -> tuple[str, ...]:
        """Return what the reader of a trial must know of the open tester."""
        return notes_of(self.facts())

    def ask(
        self,
        request: Mapping[str, Any],
        *,
        seed: int,
        progress: Callable[[float], object] | None = None,
    ) -> Mapping[str, Any]:
        """Return the outcome of a request, which gets the wires' rate, a seed and a mark of its own.

        Raises
        ------
        routecast.errors.EnvironmentProblem
            The tester failed.
        """
        assert self._tester is not None
        wires = [port.wire_bps for port in self._bed.ports if port.is_virtual]
        whole = {
            **request,
            "wire_bps": min(wires) if wires else None,
            "seed": seed,
            "trial_id": next(self._marks) % _TRIAL_IDS,
        }
        try:
            found: Mapping[str, Any] = json.loads(self._tester.trial(json.dumps(whole), progress))
        except RoutecastError:
            raise
        except Exception as problem:
            if type(problem).__name__ != "TesterError":
                raise
            raise EnvironmentProblem(f"the tester failed: {said(problem)}") from problem
        return found

    def learn(self, streams: Streams, phases: Phases, *, seed: int) -> None:
        """Send learning frames, unless the device has just had the same ones and no pause is to follow them."""
        frames = phases.learning_frames
        learning = learning_streams(streams, self._bed.ports, frames=frames, rate_pps=_LEARNING_PPS)
        what = json.dumps([stream["flows"] for stream in learning])
        now_s = time.monotonic()
        is_known = now_s - self._learnt.get(what, -math.inf) < _REMEMBERED_S
        if frames and not (is_known and phases.wait_before_s == 0.0):
            request = {"duration_s": frames / _LEARNING_PPS, "wait_s": 0.0, "streams": learning}
            self.ask(request, seed=seed)
            self._learnt[what] = now_s

    def forget(self) -> None:
        """Take the device to know none of its neighbours."""
        self._learnt.clear()

    def read(self) -> Reading:
        """Return what the links, the CPUs and the device have counted so far."""
        assert self._watch is not None
        return self._watch.read(self._bed.device_threads(), dict(self._bed.device.counters()))
