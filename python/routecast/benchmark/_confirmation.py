"""Whether longer trials confirm a throughput: a rate at which the latency trials lose frames is not lossless.

A search ends at the greatest rate that met its goal in trials that are often short. The trials of latency and frame
loss at that rate or below are as good a witness, so what they lost lowers the rate: to what a new search finds between
the greatest rate that they confirm and the least that missed the goal.

The floor of the machine: what a wire without a device loses at the rates of the throughput, in the same minutes.

::

    device:   generator ── wire ── device ── wire ── receiver     loses, and so does the machine
    floor:    generator ────────── wire ──────────── receiver     only the machine loses

The loss of these trials stands beside the throughput. It enters no rate, no table of losses and no confirmation.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from routecast.benchmark.journal import TrialRecord
from routecast.benchmark.procedures.procedure import percent_of, plural
from routecast.benchmark.procedures.throughput import GREATEST, ThroughputRow
from routecast.benchmark.search import binary_search, verified
from routecast.benchmark.stage import Counts, InvalidTrial, Stage, counts_of
from routecast.errors import DeviceEnded, EnvironmentProblem
from routecast.load.offered import WIRE_OVERHEAD_BYTES
from routecast.quantity import format_pps
from routecast.quantity.schema import field, value

CONFIRMING = ("latency", "frame_loss")
"""Procedures whose trials confirm a throughput or lower it."""

CONFIRM = "confirm"
"""What a trial is for that asks again about a loss."""
_SEARCH = "search below the loss"
_ALIKE = 1e-9
_DECIDING_TRIALS = 3
_NAMES = {"latency": "latency trial", "frame_loss": "loss trial"}


@value
class _Witness:
    """A valid trial that confirms a rate, or does not."""

    procedure: str
    rate_pps: float
    loss_ratio: float
    record: TrialRecord = field("The trial, with its watts.")

    @classmethod
    def of(cls, record: TrialRecord) -> _Witness:
        """Return what a trial witnesses; its loss is counted as the search counts it."""
        loss_ratio = counts_of(record.trial, record.trial.duration_s).loss_ratio
        return cls(procedure=record.procedure, rate_pps=record.rate_pps, loss_ratio=loss_ratio, record=record)


def confirmed_rows(
    rows: Sequence[ThroughputRow],
    records: Iterable[TrialRecord],
    *,
    asked: Sequence[str],
    exceed_ratio: Mapping[str, float] = MappingProxyType({}),
) -> tuple[ThroughputRow, ...]:
    """Return the rows of a stream and frame size with rates that the trials of latency and frame loss confirm.

    A rate is confirmed if the valid trials at each rate up to it met the row's goal: all of one or two, most of three
    and more (:func:`again`). Else it is lowered to the greatest rate of such trials below which none missed the goal,
    or to the rate of a stricter goal if that is more; :func:`search_below` makes more such trials.

    ``rows``: as the searches found them; one for each goal; ``records``: of the same stream and frame size; those of
    other procedures are passed over; ``asked``: procedures that were run for the stream and frame size;
    ``exceed_ratio``: by goal, what share of the trials at a rate may miss it (RFC 9971); 0 where it says nothing. The
    result is in the order of ``rows``.
    """
    witnesses = [_Witness.of(record) for record in _witnesses(records)]
    none_asked = not any(name in CONFIRMING for name in asked)
    stricter_pps = math.nan
    lowered: dict[int, ThroughputRow] = {}
    for place in sorted(range(len(rows)), key=lambda place: rows[place].loss_ratio):
        may_miss = exceed_ratio.get(rows[place].goal, 0.0)
        made = _confirmed(rows[place], witnesses, stricter_pps, may_miss=may_miss, none_asked=none_asked)
        lowered[place] = made
        if made.confirmed != "not run" and math.isfinite(made.throughput_pps):
            stricter_pps = max(made.throughput_pps, 0.0 if math.isnan(stricter_pps) else stricter_pps)
    return tuple(lowered[place] for place in range(len(rows)))


def _confirmed(
    row: ThroughputRow, witnesses: Sequence[_Witness], stricter_pps: float, *, may_miss: float, none_asked: bool
) -> ThroughputRow:
    if not math.isfinite(row.throughput_pps):
        return replace(row, confirmed="not run", confirmed_reason="no rate was found")
    below = [witness for witness in witnesses if witness.rate_pps <= row.throughput_pps * (1.0 + _ALIKE)]
    if not below:
        valid = "was asked for" if none_asked else "at this rate or below was valid"
        return replace(row, confirmed="not run", confirmed_reason=f"no latency or loss trial {valid}")
    missed = _missed(below, row.loss_ratio, may_miss)
    if not missed:
        return replace(row, confirmed="yes", confirmed_reason=_why_confirmed(row, below))
    return _lowered(row, below, missed, stricter_pps)


def _missed(below: Sequence[_Witness], loss_ratio: float, may_miss: float) -> list[_Witness]:
    """Return the trials that missed the goal at rates of which more than the tolerated share did."""
    missed = []
    for rate_pps in sorted({witness.rate_pps for witness in below}):
        at = [witness for witness in below if witness.rate_pps == rate_pps]
        over = [witness for witness in at if witness.loss_ratio > loss_ratio]
        allowed = max(may_miss, 0.5) if len(at) >= _DECIDING_TRIALS else may_miss
        missed += over if len(over) > allowed * len(at) else []
    return missed


def again(rows: Sequence[ThroughputRow], records: Iterable[TrialRecord]) -> Iterator[tuple[TrialRecord, int]]:
    """Yield each trial whose loss would lower a rate, and how many more like it are needed for most to decide.

    A search asks again before a loss counts, so a witness is asked again, too: one stall of the machine is no finding.
    """
    rated = [row for row in rows if math.isfinite(row.throughput_pps)]
    by_rate: dict[float, list[TrialRecord]] = {}
    for record in _witnesses(records):
        by_rate.setdefault(record.rate_pps, []).append(record)
    for rate_pps, some in sorted(by_rate.items()):
        lost = [_Witness.of(record).loss_ratio for record in some]
        doubts = any(rate_pps <= row.throughput_pps * (1.0 + _ALIKE) and max(lost) > row.loss_ratio for row in rated)
        if doubts and len(some) < _DECIDING_TRIALS:
            yield some[lost.index(max(lost))], _DECIDING_TRIALS - len(some)


def longest_at(rate_pps: float, records: Iterable[TrialRecord]) -> TrialRecord:
    """Return the longest trial at a rate that can lower a throughput."""
    at = (record for record in _witnesses(records) if math.isclose(record.rate_pps, rate_pps, rel_tol=_ALIKE))
    return max(at, key=lambda record: record.trial.duration_s)


def search_below(row: ThroughputRow, stage: Stage, duration_s: float) -> None:
    """Search between the rate of a lowered row and the least that missed its goal; its trials confirm, or miss again.

    The trials are as long as the one that lowered the rate: shorter ones have met the goal there already. Where a trial
    loses little, most of three decide. The rate that the search ends at is tried once more.
    """
    goal = next(candidate for candidate in stage.profile.throughput.goal if candidate.name == row.goal)
    whole = replace(goal, initial_trial=duration_s, final_trial=duration_s, duration_sum=duration_s)
    is_met = math.isfinite(row.throughput_pps)
    least_pps = row.throughput_pps if is_met else stage.profile.throughput.least * stage.theoretical_pps
    if row.upper_pps - least_pps <= goal.width * row.upper_pps:
        return

    def offer(per_port_pps: float, duration_s: float, purpose: str) -> Counts:
        number = purpose.partition(",")[0].removeprefix("search ")
        return counts_of(stage.trial(stage.ports * per_port_pps, duration_s, f"{_SEARCH} {number}"), duration_s)

    result = binary_search(
        verified(
            offer,
            repeats=_DECIDING_TRIALS - 1,
            below_ratio=stage.profile.throughput.verify_below,
            enough_ratio=goal.loss_ratio,
        ),
        whole,
        least_pps=least_pps / stage.ports,
        most_pps=row.upper_pps / stage.ports,
        fails_at_most=True,
        meets_at_least=is_met,
    )
    if result.lower_pps * stage.ports > least_pps * (1.0 + _ALIKE):
        with contextlib.suppress(InvalidTrial):
            stage.trial(result.lower_pps * stage.ports, duration_s, CONFIRM)


def _witnesses(records: Iterable[TrialRecord]) -> list[TrialRecord]:
    return [
        record
        for record in records
        if record.procedure in CONFIRMING and record.purpose != GREATEST and record.trial.is_valid
    ]


def _why_confirmed(row: ThroughputRow, below: Sequence[_Witness]) -> str:
    nearest_pps = max(witness.rate_pps for witness in below)
    loss = "lost nothing" if row.loss_ratio == 0.0 else f"lost at most {percent_of(row.loss_ratio)}"
    trials = plural(len(below), "trial")
    if nearest_pps >= row.throughput_pps * (1.0 - _ALIKE):
        return f"{trials} of latency and loss at this rate or below {loss}"
    return f"{trials} of latency and loss below it, the fastest at {format_pps(nearest_pps)}, {loss}"


def _lowered(
    row: ThroughputRow, below: Sequence[_Witness], missed: Sequence[_Witness], stricter_pps: float
) -> ThroughputRow:
    """Return the row at the greatest confirmed rate; without a rate where every trial missed the goal."""
    least_pps = min(witness.rate_pps for witness in missed)
    met = [witness for witness in below if witness.rate_pps < least_pps * (1.0 - _ALIKE)]
    rate_pps = max((witness.rate_pps for witness in met), default=math.nan)
    if stricter_pps < least_pps and not rate_pps >= stricter_pps:
        rate_pps = stricter_pps
    # The trial at the least rate that missed the goal decides; of several there the one that lost most. Trials of a
    # search below the loss follow from one that decided before.
    first = [witness for witness in missed if not witness.record.purpose.startswith(_SEARCH)] or missed
    decisive_pps = min(witness.rate_pps for witness in first)
    decisive = max(
        (witness for witness in first if witness.rate_pps <= decisive_pps * (1.0 + _ALIKE)),
        key=lambda witness: witness.loss_ratio,
    )
    is_at = decisive.rate_pps >= row.throughput_pps * (1.0 - _ALIKE)
    where = "at that rate" if is_at else f"at {format_pps(decisive.rate_pps)}"
    reason = f"the {_NAMES[decisive.procedure]} {where} lost {percent_of(decisive.loss_ratio)}"
    if math.isnan(rate_pps):
        return replace(
            _at(row, math.nan),
            upper_pps=least_pps,
            outcome="undetermined",
            confirmed="lowered",
            confirmed_reason=reason,
            missed_pps=decisive.rate_pps,
            missed_loss_ratio=decisive.loss_ratio,
            reason=f"{reason}, and no latency or loss trial below it met the goal",
        )
    at = [witness for witness in met if witness.rate_pps >= rate_pps * (1.0 - _ALIKE)]
    loss_ratio = max((witness.loss_ratio for witness in at), default=0.0)
    metered = [witness.record.trial for witness in at if witness.record.trial.power is not None]
    return replace(
        _at(row, rate_pps),
        conditional_pps=rate_pps * (1.0 - loss_ratio),
        upper_pps=least_pps,
        outcome="found",
        power=max(reversed(metered), key=lambda trial: trial.duration_s).power if metered else None,
        confirmed="lowered",
        confirmed_reason=reason,
        missed_pps=decisive.rate_pps,
        missed_loss_ratio=decisive.loss_ratio,
    )


def _at(row: ThroughputRow, rate_pps: float) -> ThroughputRow:
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


LEFT_OUT = "the profile leaves it out (floor = false in [trial])"
_STEADY = ("throughput", *CONFIRMING)


def with_floor(row: ThroughputRow, open_stage: Callable[[], Stage], records: Sequence[TrialRecord]) -> ThroughputRow:
    """Return the row with what the wire lost at its rate, and at the rate of the loss that lowered it.

    ``open_stage``: returns a stage whose evaluator answers for the wire without a device; ``records``: the device's
    trials of the same stream and frame size: a trial over the wire is as long as the longest at its rate.
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
