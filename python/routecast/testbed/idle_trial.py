"""Trials without a frame: the device is configured, its ports are up, nothing is sent, and the meter alone is read."""

from __future__ import annotations

import math
import time

from routecast.errors import ModelProblem, Problem
from routecast.evaluate.trial import Bottleneck, Trial
from routecast.testbed.measure import Measure
from routecast.testbed.meters.attaching import MeteredTrial

__all__ = ["silent_trial"]


def silent_trial(measure: Measure, duration_s: float) -> Trial:
    """Send nothing for ``duration_s`` seconds and return the watts of the idle device.

    The tester is open and the device has settled, as in any other trial of the evaluator.

    Raises
    ------
    routecast.errors.ModelProblem
        The duration is no time > 0.
    routecast.errors.EnvironmentProblem
        The meter cannot be read.
    """
    if not (math.isfinite(duration_s) and duration_s > 0.0):
        raise ModelProblem("trial", [Problem("duration_s", f"got {duration_s}: a number of seconds > 0")])
    measure.open()
    measure.bed.settle_again()
    with MeteredTrial(measure.meter, measure.no_power) as metered:
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
    return metered.onto(trial, [(begin_s, end_s)])
