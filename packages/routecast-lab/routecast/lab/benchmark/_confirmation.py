"""Confirm or lower a throughput by longer trials, and measure the loss of a wire without a device.

A search ends at the greatest rate that met its goal, often in short trials. A rate at which latency trials lose frames
is not lossless. So a loss in the trials of latency and frame loss at that rate or below lowers the rate: a new search
runs between the greatest rate that they confirm and the least rate that missed the goal.

The floor of the machine is the loss of a wire without a device at the rates of the throughput, in the same minutes.

::

    device:   generator ── wire ── device ── wire ── receiver     device and machine lose
    floor:    generator ────────── wire ──────────── receiver     only the machine loses

The trials at a rate can differ in loss. A row shows the worst of them, and names that trial.

The floor is reported beside the throughput. It changes no rate, no table of losses and no confirmation.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from routecast.errors import DeviceEnded, EnvironmentProblem
from routecast.lab.benchmark.journal import TrialRecord
from routecast.lab.benchmark.procedures.frame_loss import FrameLossRow
from routecast.lab.benchmark.procedures.latency import LatencyRow
from routecast.lab.benchmark.procedures.procedure import percent_of, plural
from routecast.lab.benchmark.procedures.throughput import GREATEST, ThroughputRow, power_of_longest
from routecast.lab.benchmark.search import binary_search, verified
from routecast.lab.benchmark.stage import Counts, InvalidTrial, Stage, counts_of
from routecast.load.offered import WIRE_OVERHEAD_BYTES
from routecast.quantity import format_pps
from routecast.quantity.schema import field, value

CONFIRMING = ("latency", "frame_loss")
"""Procedures whose trials confirm a throughput or lower it."""

CONFIRM = "confirm"
"""Purpose of a trial that repeats one with loss."""
FLOOR_LEFT_OUT = "the profile leaves it out (floor = false in [trial])"
_SEARCH_BELOW = "search below the loss"
_SAME_RATE_RATIO = 1e-9
_DECIDING_TRIALS = 3
_TRIAL_NAMES = {"latency": "latency trial", "frame_loss": "loss trial"}
_STEADY_PROCEDURES = ("throughput", *CONFIRMING)


@value
class _Witness:
    """A valid trial that confirms a rate or misses its goal."""

    record: TrialRecord
    loss_ratio: float = field("Lost and unsent over intended frames, as in a search.")

    @property
    def rate_pps(self) -> float:
        return self.record.rate_pps


def _witnesses(records: Iterable[TrialRecord]) -> list[_Witness]:
    return [
        _Witness(record=record, loss_ratio=counts_of(record.trial, record.trial.duration_s).loss_ratio)
        for record in records
        if record.procedure in CONFIRMING and record.purpose != GREATEST and record.trial.is_valid
        if not math.isnan(record.trial.known_loss_ratio)
    ]


def confirmed_rows(
    rows: Sequence[ThroughputRow],
    records: Iterable[TrialRecord],
    *,
    procedures: Sequence[str],
    exceed_ratio: Mapping[str, float] = MappingProxyType({}),
) -> tuple[ThroughputRow, ...]:
    """Return the rows of a stream and frame size with rates that the trials of latency and frame loss confirm.

    A rate is confirmed if the valid trials at each rate up to it met the row's goal: all of one or two trials, most of
    three or more (:func:`trials_in_doubt`). Otherwise it is lowered to the greatest rate of such trials below the first
    miss, or to the rate of a stricter goal if that is greater; :func:`search_below` runs more such trials.

    ``rows``: results of the searches, one for each goal; ``records``: trials of the same stream and frame size, of any
    procedure; ``procedures``: procedures of the stream and frame size; ``exceed_ratio``: by goal, the share of the
    trials at a rate that may miss it (RFC 9971), by default 0. The result is in the order of ``rows``.
    """
    witnesses = _witnesses(records)
    has_confirming = any(name in CONFIRMING for name in procedures)
    stricter_pps = math.nan
    result = list(rows)
    for index in sorted(range(len(rows)), key=lambda index: rows[index].loss_ratio):
        max_missed_ratio = exceed_ratio.get(rows[index].goal, 0.0)
        row = _confirmed(
            rows[index], witnesses, stricter_pps, max_missed_ratio=max_missed_ratio, has_confirming=has_confirming
        )
        result[index] = row
        if row.confirmed != "not run" and math.isfinite(row.throughput_pps):
            stricter_pps = max(row.throughput_pps, 0.0 if math.isnan(stricter_pps) else stricter_pps)
    return tuple(result)


def _confirmed(
    row: ThroughputRow,
    witnesses: Sequence[_Witness],
    stricter_pps: float,
    *,
    max_missed_ratio: float,
    has_confirming: bool,
) -> ThroughputRow:
    if not math.isfinite(row.throughput_pps):
        return replace(row, confirmed="not run", confirmed_reason="no rate was found")
    below = [witness for witness in witnesses if witness.rate_pps <= row.throughput_pps * (1.0 + _SAME_RATE_RATIO)]
    if not below:
        state = "at this rate or below was valid" if has_confirming else "was chosen"
        return replace(row, confirmed="not run", confirmed_reason=f"no latency or loss trial {state}")
    missed = _missed(below, row.loss_ratio, max_missed_ratio)
    if not missed:
        return replace(row, confirmed="yes", confirmed_reason=_confirmation_reason(row, below))
    return _lowered(row, below, missed, stricter_pps)


def _missed(below: Sequence[_Witness], loss_ratio: float, max_missed_ratio: float) -> list[_Witness]:
    """Return the trials that missed the goal, at rates where more trials missed it than may."""
    missed = []
    for rate_pps in sorted({witness.rate_pps for witness in below}):
        same_rate = [witness for witness in below if witness.rate_pps == rate_pps]
        lossy = [witness for witness in same_rate if witness.loss_ratio > loss_ratio]
        allowed_ratio = max(max_missed_ratio, 0.5) if len(same_rate) >= _DECIDING_TRIALS else max_missed_ratio
        missed += lossy if len(lossy) > allowed_ratio * len(same_rate) else []
    return missed


def trials_in_doubt(rows: Sequence[ThroughputRow], records: Iterable[TrialRecord]) -> Iterator[tuple[TrialRecord, int]]:
    """Yield each trial whose loss would lower a rate, with the number of repetitions until a majority decides.

    A confirmation repeats a trial before its loss counts, as a search does, because a stall of the machine is no
    result.
    """
    by_rate: dict[float, list[_Witness]] = {}
    for witness in _witnesses(records):
        by_rate.setdefault(witness.rate_pps, []).append(witness)
    for rate_pps, same_rate in sorted(by_rate.items()):
        worst = max(same_rate, key=lambda witness: witness.loss_ratio)
        is_doubtful = any(
            rate_pps <= row.throughput_pps * (1.0 + _SAME_RATE_RATIO) and worst.loss_ratio > row.loss_ratio
            for row in rows
        )
        if is_doubtful and len(same_rate) < _DECIDING_TRIALS:
            yield worst.record, _DECIDING_TRIALS - len(same_rate)


def longest_at(rate_pps: float, records: Iterable[TrialRecord]) -> TrialRecord:
    """Return the longest trial at a rate that can lower a throughput."""
    witnesses = (witness.record for witness in _witnesses(records))
    same_rate = (record for record in witnesses if math.isclose(record.rate_pps, rate_pps, rel_tol=_SAME_RATE_RATIO))
    return max(same_rate, key=lambda record: record.trial.duration_s)


def search_below(row: ThroughputRow, stage: Stage, duration_s: float) -> None:
    """Search between the rate of a lowered row and the least rate that missed its goal.

    The trials are as long as the trial that lowered the rate, because shorter trials met the goal there. Where a trial
    loses little, the majority of three decides. The rate at which the search ends is tried once more.
    """
    goal = next(candidate for candidate in stage.profile.throughput.goal if candidate.name == row.goal)
    full_length = replace(goal, initial_trial=duration_s, final_trial=duration_s, duration_sum=duration_s)
    is_met = math.isfinite(row.throughput_pps)
    min_pps = row.throughput_pps if is_met else stage.least_pps
    if row.upper_pps - min_pps <= goal.width * row.upper_pps:
        return

    def offer(per_port_pps: float, duration_s: float, purpose: str) -> Counts:
        number = purpose.partition(",")[0].removeprefix("search ")
        return counts_of(stage.trial(stage.ports * per_port_pps, duration_s, f"{_SEARCH_BELOW} {number}"), duration_s)

    result = binary_search(
        verified(
            offer,
            repeats=_DECIDING_TRIALS - 1,
            below_ratio=stage.profile.throughput.verify_below,
            enough_ratio=goal.loss_ratio,
        ),
        full_length,
        min_pps=min_pps / stage.ports,
        max_pps=row.upper_pps / stage.ports,
        misses_at_max=True,
        meets_at_min=is_met,
    )
    if result.lower_pps * stage.ports > min_pps * (1.0 + _SAME_RATE_RATIO):
        with contextlib.suppress(InvalidTrial):
            stage.trial(result.lower_pps * stage.ports, duration_s, CONFIRM)


def _confirmation_reason(row: ThroughputRow, below: Sequence[_Witness]) -> str:
    nearest_pps = max(witness.rate_pps for witness in below)
    loss = "lost nothing" if row.loss_ratio == 0.0 else f"lost at most {percent_of(row.loss_ratio)}"
    trials = plural(len(below), "trial")
    if nearest_pps >= row.throughput_pps * (1.0 - _SAME_RATE_RATIO):
        return f"{trials} of latency and loss at this rate or below {loss}"
    return f"{trials} of latency and loss below it, the fastest at {format_pps(nearest_pps)}, {loss}"


def _lowered(
    row: ThroughputRow, below: Sequence[_Witness], missed: Sequence[_Witness], stricter_pps: float
) -> ThroughputRow:
    """Return the row at the greatest confirmed rate, or without a rate if every trial missed the goal."""
    min_pps = min(witness.rate_pps for witness in missed)
    met = [witness for witness in below if witness.rate_pps < min_pps * (1.0 - _SAME_RATE_RATIO)]
    rate_pps = max((witness.rate_pps for witness in met), default=math.nan)
    if stricter_pps < min_pps and not rate_pps >= stricter_pps:
        rate_pps = stricter_pps
    # The trial at the least rate that missed the goal decides, and of several at that rate the one with most loss.
    # Trials of a search below the loss follow from an earlier decisive trial.
    candidates = [witness for witness in missed if not witness.record.purpose.startswith(_SEARCH_BELOW)] or missed
    decisive_pps = min(witness.rate_pps for witness in candidates)
    decisive = max(
        (witness for witness in candidates if witness.rate_pps <= decisive_pps * (1.0 + _SAME_RATE_RATIO)),
        key=lambda witness: witness.loss_ratio,
    )
    is_at_throughput = decisive.rate_pps >= row.throughput_pps * (1.0 - _SAME_RATE_RATIO)
    where = "at that rate" if is_at_throughput else f"at {format_pps(decisive.rate_pps)}"
    reason = f"the {_TRIAL_NAMES[decisive.record.procedure]} {where} lost {percent_of(decisive.loss_ratio)}"
    lowered = replace(
        _row_at(row, rate_pps),
        upper_pps=min_pps,
        confirmed="lowered",
        confirmed_reason=reason,
        missed_pps=decisive.rate_pps,
        missed_loss_ratio=decisive.loss_ratio,
    )
    if math.isnan(rate_pps):
        reason = f"{reason}, and no latency or loss trial below it met the goal"
        return replace(lowered, outcome="undetermined", reason=reason)
    same_rate = [witness for witness in met if witness.rate_pps >= rate_pps * (1.0 - _SAME_RATE_RATIO)]
    loss_ratio = max((witness.loss_ratio for witness in same_rate), default=0.0)
    return replace(
        lowered,
        conditional_pps=rate_pps * (1.0 - loss_ratio),
        outcome="found",
        power=power_of_longest([witness.record.trial for witness in same_rate]),
    )


def _row_at(row: ThroughputRow, rate_pps: float) -> ThroughputRow:
    """Return the row with its rates at another throughput."""
    ports = row.throughput_pps / row.per_port_pps
    return replace(
        row,
        throughput_pps=rate_pps,
        per_port_pps=rate_pps / ports,
        conditional_pps=rate_pps,
        lower_pps=rate_pps,
        l1_bps=8.0 * (row.frame_bytes + WIRE_OVERHEAD_BYTES) * rate_pps,
        l2_bps=8.0 * row.frame_bytes * rate_pps,
        power=None,
        limit="",
    )


def frame_loss_at_its_worst(rows: Sequence[FrameLossRow], records: Sequence[TrialRecord]) -> tuple[FrameLossRow, ...]:
    """Return rows of frame loss with the worst of the trials of latency and frame loss at their rates."""
    return tuple(_frame_loss_at_its_worst(row, records) for row in rows)


def _frame_loss_at_its_worst(row: FrameLossRow, records: Sequence[TrialRecord]) -> FrameLossRow:
    worst, losses = _worst_at(row.intended_pps, records, CONFIRMING)
    if row.outcome != "found" or worst is None or len(losses) == 1:
        return row
    return replace(
        row,
        offered_pps=worst.trial.offered_pps,
        forwarded_pps=worst.trial.forwarded_pps,
        loss_ratio=max(losses),
        worst_trial=_trial_name(worst),
    )


def latency_at_its_worst(rows: Sequence[LatencyRow], records: Sequence[TrialRecord]) -> tuple[LatencyRow, ...]:
    """Return rows of latency with the greatest loss of the trials of latency and frame loss at their rates."""
    return tuple(_latency_at_its_worst(row, records) for row in rows)


def _latency_at_its_worst(row: LatencyRow, records: Sequence[TrialRecord]) -> LatencyRow:
    worst, losses = _worst_at(row.rate_pps, records, CONFIRMING)
    if worst is None or len(losses) == 1:
        return row
    return replace(row, loss_ratio=max(losses), worst_trial=_trial_name(worst))


def throughput_at_its_worst(rows: Sequence[ThroughputRow], records: Sequence[TrialRecord]) -> tuple[ThroughputRow, ...]:
    """Return rows of throughput with the worst trial at their rate, if it lost more than the goal tolerates."""
    return tuple(_throughput_at_its_worst(row, records) for row in rows)


def _throughput_at_its_worst(row: ThroughputRow, records: Sequence[TrialRecord]) -> ThroughputRow:
    worst, losses = _worst_at(row.throughput_pps, records, _STEADY_PROCEDURES)
    if worst is None or max(losses) <= row.loss_ratio:
        return row
    return replace(row, worst_loss_ratio=max(losses), worst_trial=_trial_name(worst))


def _worst_at(
    rate_pps: float, records: Sequence[TrialRecord], procedures: Sequence[str]
) -> tuple[TrialRecord | None, set[float]]:
    """Return the valid trial at a rate that lost most, and the different losses of the trials there."""
    losses = {
        record.number: counts_of(record.trial, record.trial.duration_s).loss_ratio
        for record in records
        if record.procedure in procedures and record.purpose != GREATEST and record.trial.is_valid
        if math.isclose(record.rate_pps, rate_pps, rel_tol=_SAME_RATE_RATIO)
        if not math.isnan(record.trial.known_loss_ratio)
    }
    worst = max(losses, key=lambda number: losses[number], default=None)
    return next((record for record in records if record.number == worst), None), set(losses.values())


def _trial_name(record: TrialRecord) -> str:
    """Name a trial as the table of all trials lists it."""
    return f"trial {record.number} ({record.procedure.replace('_', ' ')}, {record.purpose})"


def with_floor(row: ThroughputRow, open_stage: Callable[[], Stage], records: Sequence[TrialRecord]) -> ThroughputRow:
    """Return the row with the loss of a wire without a device at its rate, and at the rate that lowered it.

    ``open_stage``: returns a stage whose evaluator is the wire without a device; ``records``: the device's trials of
    the same stream and frame size: a trial over the wire is as long as the longest of them at its rate.
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
    """Return the length of the longest steady trial at a rate, or of the longest at any rate."""
    steady = [record for record in records if record.procedure in _STEADY_PROCEDURES]
    same_rate = [record for record in steady if math.isclose(record.rate_pps, rate_pps, rel_tol=_SAME_RATE_RATIO)]
    return max(record.trial.duration_s for record in same_rate or steady)
