"""Trials on a device that makes its frames itself, and trials without frames for the power of an idle device.

::

    core:  make ─► forward ─► throw away          no wire, no tester
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Self

from routecast.errors import EnvironmentProblem, ModelProblem, Problem
from routecast.evaluate.trial import Bottleneck, Resource, Trial
from routecast.lab.testbed.bed import Bed
from routecast.lab.testbed.dut_host import SelfTimed
from routecast.lab.testbed.measure import Measure
from routecast.lab.testbed.meters._meter import Metering
from routecast.load.offered import WIRE_OVERHEAD_BYTES, OfferedLoad

__all__ = ["TimedMeasure", "idle_trial", "measure_of"]


def idle_trial(measure: Measure, duration_s: float) -> Trial:
    """Send nothing for ``duration_s`` seconds and return a trial with the watts of the idle device.

    The tester is open and the device is settled, as in other trials of the evaluator.

    Raises ModelProblem: the duration is not > 0; EnvironmentProblem: the meter cannot be read.
    """
    if not (math.isfinite(duration_s) and duration_s > 0.0):
        raise ModelProblem("trial", [Problem("duration_s", f"got {duration_s}: a number of seconds > 0")])
    measure.open()
    measure.bed.bind_replaced_threads()
    with Metering(measure.meter, measure.no_power) as metered:
        begin_s = time.monotonic()
        time.sleep(duration_s)
        end_s = time.monotonic()
    trial = Trial(
        evaluator="measure",
        duration_s=duration_s,
        measured_s=duration_s,
        intended_pps=0.0,
        offered_pps=0.0,
        forwarded_pps=0.0,
        loss_ratio=math.nan,
        l1_bps=0.0,
        l2_bps=0.0,
        bottleneck=Bottleneck(name="load", kind="load", reason="nothing was sent"),
        offered_frames=0,
        forwarded_frames=0,
        dropped_frames=0,
        in_flight_frames=0,
    )
    return metered.add_power(trial, [(begin_s, end_s)])


def measure_of(bed: Bed) -> type[Measure]:
    """Return the evaluator class of a bed: TimedMeasure for a device that makes its frames itself, else Measure."""
    device = bed.device
    return TimedMeasure if isinstance(device, SelfTimed) and device.times_itself else Measure


class TimedMeasure(Measure):
    """An evaluator over a device that times itself (``driver = "null"`` of testpmd); nothing is sent.

    The device forwards frames of each size of the load as fast as it can, for that size's share of the trial. With
    the mean time per frame s, weighted by the shares of the sizes, it would forward min(r, 1/s) of an offered rate r.
    Without queues and wire there is no latency, and loss follows from the capacity alone.
    """

    def open(self) -> Self:
        """Open nothing: there is no tester."""
        return self

    @property
    def reset_kinds(self) -> tuple[str, ...]:
        """Return no kind: the effect of a reset is lost frames, and no frames are sent."""
        return ()

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        """Time the device at the load's frame sizes for ``duration_s`` seconds and return what would be forwarded.

        Raises ModelProblem: the load has steps, or frames have tags or a tunnel; FileProblem: the device cannot make
        frames of a size; EnvironmentProblem: the device fails.
        """
        if load.steps:
            message = "a device that makes its frames itself has no queue that a change of the rate could fill"
            raise ModelProblem("offered load", [Problem("steps", message)])
        if self.bed.encapsulation.title:
            message = "a device that makes its frames itself makes plain ones: leave the encapsulation out"
            raise ModelProblem("offered load", [Problem("encapsulation", message)])
        capacity_pps = 1.0 / self._seconds_per_frame(load, duration_s)
        offered = round(load.rate_pps * duration_s)
        forwarded = min(offered, math.floor(capacity_pps * duration_s))
        forwarded_pps = min(load.rate_pps, capacity_pps)
        l2_bps = 8.0 * load.frames.mean_bytes * forwarded_pps
        core = f"core {self.bed.placement.dut}"
        is_full = load.rate_pps > capacity_pps
        return Trial(
            evaluator="measure",
            duration_s=duration_s,
            measured_s=duration_s,
            intended_pps=load.rate_pps,
            offered_pps=load.rate_pps,
            forwarded_pps=forwarded_pps,
            loss_ratio=1.0 - forwarded / offered if offered else math.nan,
            l1_bps=l2_bps + 8.0 * WIRE_OVERHEAD_BYTES * forwarded_pps,
            l2_bps=l2_bps,
            bottleneck=Bottleneck(
                name=core if is_full else "load",
                kind="pool" if is_full else "load",
                reason=f"the core forwards {capacity_pps:,.0f} frames/s that it makes itself",
            ),
            resources=(
                Resource(
                    name=core,
                    kind="pool",
                    utilisation_ratio=min(load.rate_pps / capacity_pps, 1.0),
                    capacity_pps=capacity_pps,
                    margin_ratio=0.0,
                ),
            ),
            offered_frames=offered,
            forwarded_frames=forwarded,
            dropped_frames=offered - forwarded,
            in_flight_frames=0,
            notes=(
                "the device makes its frames itself: no wire, no queues, no latency; loss is 1 − capacity/load",
                *self._power_notes(),
            ),
        )

    def facts(self) -> Mapping[str, object]:
        """Return the facts of device and bed for a report."""
        return {
            "evaluator": "measure",
            "device": dict(self.bed.device.facts()),
            "bed": dict(self.bed.facts()),
            "tester": {"name": "none: the device makes its frames itself"},
            "trial": {},
        }

    def announcement(self, load: OfferedLoad) -> tuple[str, ...]:
        """Return the sentence that nothing is sent."""
        return (f"device {self.bed.device.name} makes {load.frames.name} itself: nothing is sent",)

    def _view(self, **changes: object) -> Measure:
        return self  # views change addresses, pauses and repetitions of sent frames

    def _power_notes(self) -> tuple[str, ...]:
        if self.meter is not None:
            return ("power is not metered: the device works at its capacity while it is timed, at any load",)
        return (self.no_power,) if self.no_power else ()

    def _seconds_per_frame(self, load: OfferedLoad, duration_s: float) -> float:
        device = self.bed.device
        if not isinstance(device, SelfTimed):
            raise EnvironmentProblem(f"device {device.name}: does not time itself")
        return math.fsum(
            share * device.self_timed(frame_bytes, share * duration_s).seconds_per_frame
            for frame_bytes, share in load.frames.share_by_bytes.items()
        )
