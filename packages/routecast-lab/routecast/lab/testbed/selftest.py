"""The self-test: the limits of the tester, with a wire between generator and receiver instead of a device.

::

    rc-BED-gen              rc-BED-sink
      g0 ────── wire ────── s0
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from routecast.errors import EnvironmentProblem
from routecast.evaluate.trial import Trial
from routecast.lab.testbed.devices.external import External
from routecast.lab.testbed.document import NamespacesFile
from routecast.lab.testbed.dut_host import DeviceSite
from routecast.lab.testbed.measure import Measure, Phases
from routecast.lab.testbed.namespaces import Namespaces, WireEnd
from routecast.lab.testbed.state import BedState
from routecast.load.flows import Flow, FlowSet
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad
from routecast.progress import Progress
from routecast.quantity.schema import field, value

__all__ = ["BackToBack", "SelfTest", "SelfTestCheck", "self_test"]

BACK_ENDS = ("live", "af_xdp", "af_packet")
FRAME_BYTES = (64, 512, 1518)
RATES_PPS = (1.0, 1_000.0, 100_000.0, 1_000_000.0)

_MAXIMUM_OFFERED_PPS = 20e6
_UNLIMITED_BPS = 1e12
_MAXIMUM_S = 0.4
_FLOOR_PPS = 100_000.0
_FLOOR_S = 0.4


class Wire(External):
    """The device of a self-test: a wire, which does nothing."""

    name: ClassVar[str] = "wire"
    title: ClassVar[str] = "a wire, no device"
    layer: ClassVar[Literal[2, 3]] = 2

    def facts(self) -> Mapping[str, object]:
        """Return name and title."""
        return {"name": self.name, "title": self.title}


class BackToBack(Namespaces):
    """Generator and receiver joined by one veth pair."""

    def _namespaces(self) -> tuple[str, ...]:
        return (self._gen, self._sink)

    def _wires(self) -> tuple[tuple[WireEnd, WireEnd], ...]:
        gen, sink = ((port.netns or "", port.interface, port.mac) for port in self.ports)
        return ((gen, sink),)

    def _make_site(self, bed_state: BedState) -> DeviceSite:
        return DeviceSite(netns=None, ports=(), cpu=None, priority=0, folder=self.folder)


@value
class SelfTestCheck:
    """The result of one step of a self-test."""

    name: Literal["maximum", "rate", "latency"]
    back_end: str = field("Back end that sent")
    frame_bytes: int
    where: str = field('Core of the receiver: ``"same core"`` or ``"other core"``')
    trial: Trial | None = field("Trial; None if the back end is not available (``reason``)")
    reason: str = ""

    @property
    def rate_error_ratio(self) -> float:
        """Achieved over intended rate, minus 1."""
        if self.trial is None or not self.trial.intended_pps:
            return math.nan
        return self.trial.offered_pps / self.trial.intended_pps - 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfTest:
    """The results of all steps, and the facts of the tester in the last step, which chooses its back ends itself."""

    checks: tuple[SelfTestCheck, ...]
    facts: Mapping[str, Any]


def self_test(
    file: NamespacesFile, *, on_remark: Callable[[str], None] = lambda _: None, on_progress: Progress = lambda *_: None
) -> SelfTest:
    """Measure the tester's own limits on a veth pair.

    Name, cores and priority come from ``file``. ``on_remark`` gets remarks for the user, ``on_progress`` the number of
    finished steps, of all steps, and the step. Raises EnvironmentProblem: rights or kernel features are missing.
    """
    unlimited = file.model_copy(update={"wire": _UNLIMITED_BPS, "networks": 1})
    placement = BackToBack(unlimited, Wire()).placement
    other_core = unlimited.model_copy(update={"cores": file.cores.model_copy(update={"receiver": placement.dut})})
    steps = list(_steps(two_cores=placement.dut != placement.tester))
    checks: list[SelfTestCheck] = []
    facts: Mapping[str, Any] = {}
    for where, back_end in dict.fromkeys((step.where, step.back_end) for step in steps):
        with BackToBack(other_core if where == "other core" else unlimited, Wire(), on_remark=on_remark) as bed:
            bed.begin_measuring()
            measure = Measure(bed, back_end=back_end, retries=1, phases=Phases(learning_frames=0))
            try:
                with measure:
                    for step in (step for step in steps if (step.where, step.back_end) == (where, back_end)):
                        on_progress(len(checks), len(steps), f"{back_end}, {step.frame_bytes} B")
                        checks.append(_run(measure, step))
                    facts = measure.facts()
            except EnvironmentProblem as problem:
                finished = {
                    (check.name, check.frame_bytes)
                    for check in checks
                    if (check.where, check.back_end) == (where, back_end)
                }
                checks += [
                    _check(step, None, str(problem))
                    for step in steps
                    if (step.where, step.back_end) == (where, back_end)
                    and (step.name, step.frame_bytes) not in finished
                ]
    return SelfTest(checks=tuple(checks), facts=facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    name: Literal["maximum", "rate", "latency"]
    back_end: str
    frame_bytes: int
    where: str
    rate_pps: float
    duration_s: float


def _steps(*, two_cores: bool) -> Iterator[_Step]:
    for where in ("same core", "other core") if two_cores else ("same core",):
        for back_end in BACK_ENDS:
            for size in FRAME_BYTES:
                yield _Step(
                    name="maximum",
                    back_end=back_end,
                    frame_bytes=size,
                    where=where,
                    rate_pps=_MAXIMUM_OFFERED_PPS,
                    duration_s=_MAXIMUM_S,
                )
            yield _Step(
                name="latency", back_end=back_end, frame_bytes=64, where=where, rate_pps=_FLOOR_PPS, duration_s=_FLOOR_S
            )
    for rate_pps in RATES_PPS:
        yield _Step(
            name="rate",
            back_end="auto",
            frame_bytes=64,
            where="same core",
            rate_pps=rate_pps,
            duration_s=max(2.0 / rate_pps, 0.3),
        )


def _run(measure: Measure, step: _Step) -> SelfTestCheck:
    load = OfferedLoad(
        rate_pps=step.rate_pps,
        frames=FrameMix.fixed(step.frame_bytes),
        flows=FlowSet(name="1 flow", flows=(Flow(rss_hash=0),)),
    )
    if step.name == "maximum":
        # The rate is above every limit: that the tester falls short is the result, no reason to repeat.
        measure = measure.attempted_once()
    return _check(step, measure.trial(load, step.duration_s))


def _check(step: _Step, trial: Trial | None, reason: str = "") -> SelfTestCheck:
    return SelfTestCheck(
        name=step.name,
        back_end=step.back_end,
        frame_bytes=step.frame_bytes,
        where=step.where,
        trial=trial,
        reason=reason,
    )
