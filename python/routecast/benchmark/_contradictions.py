"""What in a benchmark's result contradicts something else in it: found by arithmetic, said in a sentence each.

What other work on the machine did to the trials of a benchmark, and why trials were no result.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from routecast.benchmark.journal import TrialRecord
from routecast.benchmark.procedures.procedure import frames_per_second, percent_of
from routecast.evaluate.trial import Trial
from routecast.testbed.checks import disturbances

if TYPE_CHECKING:
    from routecast.benchmark.procedures.frame_loss import FrameLossRow
    from routecast.benchmark.procedures.recovery import RecoveryRow
    from routecast.benchmark.procedures.throughput import ThroughputRow
    from routecast.benchmark.result import BenchmarkResult

_NUMBER = re.compile(r"\d[\d,.]*")


def disturbances_of(records: Sequence[TrialRecord]) -> tuple[str, ...]:
    """Return how many trials other work disturbed, then each kind of disturbance with its worst case; empty if none.

    Only measured trials can be disturbed.
    """
    measured = [record.trial for record in records if record.trial.evaluator == "measure"]
    count = sum(bool(disturbances(trial)) for trial in measured)
    if not count:
        return ()
    valid = sum(trial.is_valid and bool(disturbances(trial)) for trial in measured)
    counted = f"{valid} of these trials are valid and count" if valid else "none of these trials counts"
    first = (
        f"other work on this machine disturbed {count} of {len(measured)} trials: rates, loss and latency may be its "
        f"doing; {counted}"
    )
    return (first, *_by_kind(measured, disturbances))


def reasons_of(records: Sequence[TrialRecord]) -> tuple[str, ...]:
    """Return why trials were invalid: each kind of reason with its worst case."""
    return _by_kind([record.trial for record in records], lambda trial: trial.invalid)


def _by_kind(trials: Sequence[Trial], describe: Callable[[Trial], Sequence[str]]) -> tuple[str, ...]:
    """Return sentences that differ only in their numbers once, the most frequent first, with the greatest numbers."""
    kinds: dict[str, list[str]] = {}
    for trial in trials:
        for sentence in dict.fromkeys(describe(trial)):
            kinds.setdefault(_NUMBER.sub("#", sentence), []).append(sentence)
    return tuple(
        f"{len(alike)} of {len(trials)} trials, at worst: {max(alike, key=_numbers)}"
        for alike in sorted(kinds.values(), key=len, reverse=True)
    )


def _numbers(sentence: str) -> list[float]:
    """Return the numbers of a sentence from the last to the first: what it is about stands at its end."""
    return [float(number.replace(",", "").rstrip(".") or 0.0) for number in reversed(_NUMBER.findall(sentence))]


class _Row(Protocol):
    """What a row of any procedure has."""

    @property
    def stream(self) -> str: ...

    @property
    def frame_bytes(self) -> float: ...


_ALIKE = 1e-9
_PACE = 1e-3
"""A tester's pace may differ so much from what it was told: a rate so far above a maximum is none."""
_SCATTER = 0.02
"""Losses of two overloads differ so much from trial to trial; a load without loss has no such excuse."""


def contradictions(result: BenchmarkResult) -> tuple[str, ...]:
    """Return each contradiction of a result as a sentence with its numbers; none if all agrees.

    Returns rates at which frame loss or latency lost more than the goal tolerates, goals out of order, rates above the
    theoretical maximum, loads that lost less than a lower one.
    """
    texts = (
        *_goals_that_lost(result),
        *_goals_out_of_order(result),
        *_above_the_maximum(result),
        *_losses_that_fall(result),
        *_overloads_that_lost_less(result),
    )
    return tuple(dict.fromkeys(texts))


def _rates(result: BenchmarkResult) -> list[ThroughputRow]:
    return [row for row in _rows(result, "throughput") if math.isfinite(row.throughput_pps)]


def _rows(result: BenchmarkResult, name: str) -> Sequence[Any]:
    answer = result.found.get(name)
    return answer.rows if answer is not None else ()


def _losses(result: BenchmarkResult) -> list[FrameLossRow]:
    return [row for row in _rows(result, "frame_loss") if row.outcome == "found" and math.isfinite(row.loss_ratio)]


def _place(row: _Row) -> str:
    return f"{row.stream}, {row.frame_bytes:g} B"


def _is_same(row: _Row, other: _Row) -> bool:
    return (row.stream, row.frame_bytes) == (other.stream, other.frame_bytes)


def _goals_that_lost(result: BenchmarkResult) -> Iterator[str]:
    """Find rates that are said to meet a goal that a trial of latency or frame loss there or below missed.

    A goal whose trials may exceed it (RFC 9971) is passed over: a single trial contradicts nothing.
    """
    witnesses: list[tuple[str, _Row, float, float]] = [
        *(("loss trial", row, row.intended_pps, row.loss_ratio) for row in _losses(result)),
        *(("latency trial", row, row.rate_pps, row.loss_ratio) for row in _rows(result, "latency")),
    ]
    passed_over = _goals_with_exceeding_trials(result)
    for row in _rates(result):
        if row.goal in passed_over:
            continue
        for what, other, rate_pps, loss_ratio in witnesses:
            is_below = rate_pps <= row.throughput_pps * (1.0 + _ALIKE)
            if not _is_same(row, other) or not is_below or not loss_ratio > row.loss_ratio:
                continue
            goal = "without loss" if row.loss_ratio == 0.0 else f"with at most {percent_of(row.loss_ratio)} loss"
            yield (
                f"{_place(row)}: {frames_per_second(row.throughput_pps)} frames/s are said to be forwarded {goal}, but "
                f"a {what} at {frames_per_second(rate_pps)} frames/s lost {percent_of(loss_ratio)}"
            )


def _goals_with_exceeding_trials(result: BenchmarkResult) -> set[str]:
    settings = result.profile.get("throughput")
    goals = settings.get("goal") if isinstance(settings, Mapping) else None
    return {str(goal["name"]) for goal in goals or () if goal.get("exceed_ratio")}


def _goals_out_of_order(result: BenchmarkResult) -> Iterator[str]:
    """Find goals that tolerate more and have a lower rate, or whose search ended lower and was raised."""
    rows = _rates(result)
    for row in rows:
        if math.isfinite(row.raised_from_pps):
            yield (
                f"{_place(row)}: the search for {row.goal} ended at {frames_per_second(row.raised_from_pps)} frames/s, "
                f"below what met a stricter goal; it was raised to {frames_per_second(row.searched_pps)} frames/s"
            )
    for strict, loose in itertools.permutations(rows, 2):
        is_out = loose.throughput_pps < strict.throughput_pps * (1.0 - _ALIKE)
        if _is_same(strict, loose) and strict.loss_ratio < loose.loss_ratio and is_out:
            yield (
                f"{_place(strict)}: {frames_per_second(loose.throughput_pps)} frames/s met {loose.goal}, but "
                f"{frames_per_second(strict.throughput_pps)} frames/s met {strict.goal}, which tolerates less"
            )


def _above_the_maximum(result: BenchmarkResult) -> Iterator[str]:
    """Find rates that are greater than the medium carries."""
    rates: list[tuple[str, _Row, float, float]] = [
        *(("the throughput", row, row.throughput_pps, row.theoretical_pps) for row in _rates(result)),
        *(("a loss trial", row, row.forwarded_pps, row.theoretical_pps) for row in _losses(result)),
    ]
    for what, row, rate_pps, theoretical_pps in rates:
        if rate_pps > theoretical_pps * (1.0 + _PACE):
            yield (
                f"{_place(row)}: {what} has {frames_per_second(rate_pps)} frames/s, but the medium carries at most "
                f"{frames_per_second(theoretical_pps)} frames/s"
            )


def _losses_that_fall(result: BenchmarkResult) -> Iterator[str]:
    """Find frame loss trials that lost less than one at a lower rate."""
    rows = _losses(result)
    for row in rows:
        lower = [
            lower_row
            for lower_row in rows
            if _is_same(row, lower_row) and lower_row.intended_pps < row.intended_pps * (1.0 - _ALIKE)
        ]
        worst = max(lower, key=lambda lower_row: lower_row.loss_ratio, default=None)
        if worst is not None and _is_less(row.loss_ratio, worst.loss_ratio):
            yield (
                f"{_place(row)}: the loss trial at {frames_per_second(row.intended_pps)} frames/s lost "
                f"{percent_of(row.loss_ratio)}, but the one at {frames_per_second(worst.intended_pps)} frames/s lost "
                f"{percent_of(worst.loss_ratio)}"
            )


def _overloads_that_lost_less(result: BenchmarkResult) -> Iterator[str]:
    """Find overloads before a recovery that lost less than a frame loss trial at a lower rate."""
    overloads: Sequence[RecoveryRow] = _rows(result, "recovery")
    settings = result.profile.get("recovery")
    for row in overloads:
        if row.outcome == "undetermined" or not math.isfinite(row.overload_loss_ratio):
            continue
        most_ratio = min(row.overload_loss_ratio * _whole_over_overload(row, settings), 1.0)
        lower = [loss for loss in _losses(result) if _is_same(row, loss) and loss.intended_pps < row.overload_pps]
        worst = max(lower, key=lambda lower_row: lower_row.loss_ratio, default=None)
        if worst is not None and _is_less(most_ratio, worst.loss_ratio):
            yield (
                f"{_place(row)}: the overload of {frames_per_second(row.overload_pps)} frames/s lost "
                f"{percent_of(most_ratio)} at most, but a loss trial at {frames_per_second(worst.intended_pps)} "
                f"frames/s lost {percent_of(worst.loss_ratio)}"
            )


def _whole_over_overload(row: RecoveryRow, settings: object) -> float:
    """Return the frames of the whole trial over those of the overload: its loss is over all of them."""
    if not isinstance(settings, Mapping):
        return math.inf
    before_s, after_s = settings.get("overload_duration"), settings.get("recovery_duration")
    if not isinstance(before_s, int | float) or not isinstance(after_s, int | float):
        return math.inf
    return 1.0 + row.recovery_pps * after_s / (row.overload_pps * before_s)


def _is_less(loss_ratio: float, lower_rate_ratio: float) -> bool:
    return lower_rate_ratio > loss_ratio + (_SCATTER if loss_ratio > 0.0 else 0.0)
