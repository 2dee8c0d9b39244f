"""The floor of the machine: what a wire without a device loses at the rates of the throughput, in the same minutes.

::

    device:   generator ── wire ── device ── wire ── receiver     loses, and so does the machine
    floor:    generator ────────── wire ──────────── receiver     only the machine loses

The loss of these trials stands beside the throughput. It enters no rate, no table of losses and no confirmation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from routecast.benchmark.confirmation import CONFIRMING
from routecast.benchmark.journal import TrialRecord
from routecast.benchmark.procedures.throughput import ThroughputRow
from routecast.benchmark.stage import InvalidTrial, Stage, counts_of
from routecast.errors import DeviceEnded, EnvironmentProblem

__all__ = ["LEFT_OUT", "with_floor"]

LEFT_OUT = "the profile leaves it out (floor = false in [trial])"
_ALIKE = 1e-9
_STEADY = ("throughput", *CONFIRMING)


def with_floor(row: ThroughputRow, open_stage: Callable[[], Stage], records: Sequence[TrialRecord]) -> ThroughputRow:
    """Return the row with what the wire lost at its rate, and at the rate of the loss that lowered it.

    Parameters
    ----------
    row : ThroughputRow
    open_stage : callable
        Returns a stage whose evaluator answers for the wire without a device.
    records : sequence of TrialRecord
        The device's trials of the same stream and frame size: a trial over the wire is as long as the longest at its
        rate.
    """
    if not (math.isfinite(row.throughput_pps) or math.isfinite(row.missed_pps)):
        return replace(row, floor_reason="no rate was found")
    stage = open_stage()
    reasons: list[str] = []

    def lost_ratio(rate_pps: float, purpose: str) -> float:
        if not math.isfinite(rate_pps):
            return math.nan
        try:
            trial = stage.trial(rate_pps, _length_s(rate_pps, records), purpose)
        except InvalidTrial as problem:
            reasons.append(f"over the wire without a device {problem}")
        except DeviceEnded:
            raise
        except EnvironmentProblem as problem:
            reasons.append(f"the wire without a device failed: {problem}")
        else:
            return counts_of(trial, trial.duration_s).loss_ratio
        return math.nan

    return replace(
        row,
        floor_loss_ratio=lost_ratio(row.throughput_pps, "at the throughput"),
        floor_missed_loss_ratio=lost_ratio(row.missed_pps, "at the rate of the loss that lowered it"),
        floor_reason="; ".join(dict.fromkeys(reasons)),
    )


def _length_s(rate_pps: float, records: Sequence[TrialRecord]) -> float:
    """Return the length of the longest steady trial at a rate; of all such trials where none had the rate."""
    steady = [record for record in records if record.procedure in _STEADY]
    at = [record for record in steady if math.isclose(record.rate_pps, rate_pps, rel_tol=_ALIKE)]
    return max(record.trial.duration_s for record in at or steady)
