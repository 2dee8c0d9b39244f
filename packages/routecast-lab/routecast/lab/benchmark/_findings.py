"""Describe the disturbances, invalid trials, limits and contradictions of a run.

A contradiction is between two figures of a result.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from routecast.evaluate.trial import Bottleneck, Trial
from routecast.lab.benchmark.journal import TrialRecord
from routecast.lab.benchmark.procedures.frame_loss import FrameLossRow
from routecast.lab.benchmark.procedures.procedure import frames_per_second, percent_of
from routecast.lab.benchmark.procedures.recovery import RecoveryRow
from routecast.lab.benchmark.procedures.throughput import ThroughputRow
from routecast.lab.benchmark.values import BenchmarkResult, Limit
from routecast.lab.testbed.checks import disturbances

_NUMBER = re.compile(r"\d[\d,.]*")
_STEADY_PROCEDURES = frozenset({"throughput", "latency", "frame_loss"})
"""Procedures at a steady load, whose loss shows the bottleneck; a reset or a burst has other causes of loss."""
_SAME_RATE_RATIO = 1e-9
_RATE_TOLERANCE_RATIO = 1e-3
"""Relative deviation of a tester's rate from the intended rate: a rate within it does not exceed a maximum."""
_LOSS_SCATTER = 0.02
"""Difference of loss between two trials of the same overload; a load without loss has no scatter."""


def disturbances_of(records: Sequence[TrialRecord]) -> tuple[str, ...]:
    """Return the number of measured trials that other work disturbed, then each kind of disturbance at its worst."""
    measured = [record.trial for record in records if record.trial.evaluator == "measure"]
    disturbed = [trial for trial in measured if disturbances(trial)]
    if not disturbed:
        return ()
    valid = sum(trial.is_valid for trial in disturbed)
    counted = f"{valid} of these trials are valid and count" if valid else "none of these trials counts"
    summary = (
        f"other work on this machine disturbed {len(disturbed)} of {len(measured)} trials: rates, loss and latency may "
        f"be its doing; {counted}"
    )
    return (summary, *_by_kind(measured, disturbances))


def reasons_of(records: Sequence[TrialRecord]) -> tuple[str, ...]:
    """Return each kind of reason that trials were invalid, at its worst."""
    return _by_kind([record.trial for record in records], lambda trial: trial.invalid)


def _by_kind(trials: Sequence[Trial], describe: Callable[[Trial], Sequence[str]]) -> tuple[str, ...]:
    """Return the sentence with the greatest numbers of each kind, the most frequent kind first.

    Sentences of a kind differ only in numbers.
    """
    kinds: dict[str, list[str]] = {}
    for trial in trials:
        for sentence in dict.fromkeys(describe(trial)):
            kinds.setdefault(_NUMBER.sub("#", sentence), []).append(sentence)
    return tuple(
        f"{len(sentences)} of {len(trials)} trials, at worst: {max(sentences, key=_numbers)}"
        for sentences in sorted(kinds.values(), key=len, reverse=True)
    )


def _numbers(sentence: str) -> list[float]:
    """Return the numbers of a sentence from the last to the first, since the last number is the measured one."""
    return [float(number.replace(",", "").rstrip(".") or 0.0) for number in reversed(_NUMBER.findall(sentence))]


def limits_of(records: Sequence[TrialRecord]) -> tuple[Limit, ...]:
    """Return the bottleneck of most valid trials with loss by stream and frame size, with the reason of the last."""
    lossy: dict[tuple[str, float], list[Bottleneck]] = {}
    for record in records:
        if record.procedure in _STEADY_PROCEDURES and record.trial.is_valid and record.trial.loss_ratio > 0.0:
            lossy.setdefault((record.stream, record.frame_bytes), []).append(record.trial.bottleneck)
    limits = []
    for (stream, frame_bytes), bottlenecks in lossy.items():
        name, count = Counter(bottleneck.name for bottleneck in bottlenecks).most_common(1)[0]
        reason = next(bottleneck.reason for bottleneck in reversed(bottlenecks) if bottleneck.name == name)
        limits.append(
            Limit(
                stream=stream,
                frame_bytes=frame_bytes,
                name=name,
                reason=reason,
                trials=count,
                of_trials=len(bottlenecks),
            )
        )
    return tuple(limits)


class _Row(Protocol):
    """A row of any procedure."""

    @property
    def stream(self) -> str: ...

    @property
    def frame_bytes(self) -> float: ...


def contradictions(result: BenchmarkResult) -> tuple[str, ...]:
    """Return each contradiction of a result as a sentence with its numbers.

    Contradictions are rates at which trials of frame loss or latency lost more than the goal tolerates, stricter goals
    with greater rates, rates above the theoretical maximum, and loads that lost less than a lower load.
    """
    texts = (
        *_goals_that_lost(result),
        *_goals_out_of_order(result),
        *_above_the_maximum(result),
        *_losses_that_fall(result),
        *_overloads_that_lost_less(result),
    )
    return tuple(dict.fromkeys(texts))


def _throughput_rows(result: BenchmarkResult) -> list[ThroughputRow]:
    return [row for row in _rows(result, "throughput") if math.isfinite(row.throughput_pps)]


def _rows(result: BenchmarkResult, name: str) -> Sequence[Any]:
    answer = result.by_procedure.get(name)
    return answer.rows if answer is not None else ()


def _loss_rows(result: BenchmarkResult) -> list[FrameLossRow]:
    return [row for row in _rows(result, "frame_loss") if row.outcome == "found" and math.isfinite(row.loss_ratio)]


def _place(row: _Row) -> str:
    return f"{row.stream}, {row.frame_bytes:g} B"


def _has_same_conditions(row: _Row, other: _Row) -> bool:
    return (row.stream, row.frame_bytes) == (other.stream, other.frame_bytes)


def _goals_that_lost(result: BenchmarkResult) -> Iterator[str]:
    """Find throughputs with a trial of latency or frame loss at that rate or below that missed their goal.

    A single trial does not contradict a goal that a share of the trials may miss (RFC 9971).
    """
    trials: list[tuple[str, _Row, float, float]] = [
        *(("loss trial", row, row.intended_pps, row.loss_ratio) for row in _loss_rows(result)),
        *(("latency trial", row, row.rate_pps, row.loss_ratio) for row in _rows(result, "latency")),
    ]
    tolerant_goals = _goals_with_exceeding_trials(result)
    for row in _throughput_rows(result):
        if row.goal in tolerant_goals:
            continue
        for trial, other, rate_pps, loss_ratio in trials:
            is_below = rate_pps <= row.throughput_pps * (1.0 + _SAME_RATE_RATIO)
            if not _has_same_conditions(row, other) or not is_below or not loss_ratio > row.loss_ratio:
                continue
            goal = "without loss" if row.loss_ratio == 0.0 else f"with at most {percent_of(row.loss_ratio)} loss"
            yield (
                f"{_place(row)}: {frames_per_second(row.throughput_pps)} frames/s are reported as forwarded {goal}, "
                f"but a {trial} at {frames_per_second(rate_pps)} frames/s lost {percent_of(loss_ratio)}"
            )


def _goals_with_exceeding_trials(result: BenchmarkResult) -> set[str]:
    settings = result.profile.get("throughput")
    goals = settings.get("goal") if isinstance(settings, Mapping) else None
    return {str(goal["name"]) for goal in goals or () if goal.get("exceed_ratio")}


def _goals_out_of_order(result: BenchmarkResult) -> Iterator[str]:
    """Find goals with a lower rate than a stricter goal, or raised to the rate of a stricter goal."""
    rows = _throughput_rows(result)
    for row in rows:
        if math.isfinite(row.raised_from_pps):
            yield (
                f"{_place(row)}: the search for {row.goal} ended at {frames_per_second(row.raised_from_pps)} frames/s, "
                f"below what met a stricter goal; it was raised to {frames_per_second(row.searched_pps)} frames/s"
            )
    for strict, loose in itertools.permutations(rows, 2):
        is_out_of_order = loose.throughput_pps < strict.throughput_pps * (1.0 - _SAME_RATE_RATIO)
        if _has_same_conditions(strict, loose) and strict.loss_ratio < loose.loss_ratio and is_out_of_order:
            yield (
                f"{_place(strict)}: {frames_per_second(loose.throughput_pps)} frames/s met {loose.goal}, but "
                f"{frames_per_second(strict.throughput_pps)} frames/s met {strict.goal}, which tolerates less"
            )


def _above_the_maximum(result: BenchmarkResult) -> Iterator[str]:
    """Find rates above the theoretical maximum of the medium."""
    rates: list[tuple[str, _Row, float, float]] = [
        *(("the throughput", row, row.throughput_pps, row.theoretical_pps) for row in _throughput_rows(result)),
        *(("a loss trial", row, row.forwarded_pps, row.theoretical_pps) for row in _loss_rows(result)),
    ]
    for figure, row, rate_pps, theoretical_pps in rates:
        if rate_pps > theoretical_pps * (1.0 + _RATE_TOLERANCE_RATIO):
            yield (
                f"{_place(row)}: {figure} has {frames_per_second(rate_pps)} frames/s, but the medium carries at most "
                f"{frames_per_second(theoretical_pps)} frames/s"
            )


def _losses_that_fall(result: BenchmarkResult) -> Iterator[str]:
    """Find frame loss trials that lost less than one at a lower rate."""
    for row in _loss_rows(result):
        worst = _worst_below(result, row, row.intended_pps * (1.0 - _SAME_RATE_RATIO))
        if worst is not None and _is_less(row.loss_ratio, worst.loss_ratio):
            yield (
                f"{_place(row)}: the loss trial at {frames_per_second(row.intended_pps)} frames/s lost "
                f"{percent_of(row.loss_ratio)}, but the trial at {frames_per_second(worst.intended_pps)} frames/s lost "
                f"{percent_of(worst.loss_ratio)}"
            )


def _overloads_that_lost_less(result: BenchmarkResult) -> Iterator[str]:
    """Find overloads before a recovery that lost less than a frame loss trial at a lower rate."""
    overloads: Sequence[RecoveryRow] = _rows(result, "recovery")
    settings = result.profile.get("recovery")
    for row in overloads:
        if row.outcome == "undetermined" or not math.isfinite(row.overload_loss_ratio):
            continue
        max_loss_ratio = min(row.overload_loss_ratio * _trial_over_overload(row, settings), 1.0)
        worst = _worst_below(result, row, row.overload_pps)
        if worst is not None and _is_less(max_loss_ratio, worst.loss_ratio):
            yield (
                f"{_place(row)}: the overload of {frames_per_second(row.overload_pps)} frames/s lost "
                f"{percent_of(max_loss_ratio)} at most, but a loss trial at {frames_per_second(worst.intended_pps)} "
                f"frames/s lost {percent_of(worst.loss_ratio)}"
            )


def _worst_below(result: BenchmarkResult, row: _Row, rate_pps: float) -> FrameLossRow | None:
    """Return the frame loss trial of a row's stream and frame size that lost most at less than a rate."""
    lower = [loss for loss in _loss_rows(result) if _has_same_conditions(row, loss) and loss.intended_pps < rate_pps]
    return max(lower, key=lambda loss: loss.loss_ratio, default=None)


def _trial_over_overload(row: RecoveryRow, settings: object) -> float:
    """Return the frames of the whole trial over those of the overload, since the loss ratio counts the whole trial."""
    if not isinstance(settings, Mapping):
        return math.inf
    before_s, after_s = settings.get("overload_duration"), settings.get("recovery_duration")
    if not isinstance(before_s, int | float) or not isinstance(after_s, int | float):
        return math.inf
    return 1.0 + row.recovery_pps * after_s / (row.overload_pps * before_s)


def _is_less(loss_ratio: float, lower_rate_ratio: float) -> bool:
    return lower_rate_ratio > loss_ratio + (_LOSS_SCATTER if loss_ratio > 0.0 else 0.0)
