"""What other work on the machine did to the trials of a benchmark, and why trials were no result."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from routecast.benchmark.journal import TrialRecord
from routecast.evaluate.trial import Trial
from routecast.testbed.checks import disturbances

__all__ = ["disturbances_of", "reasons_of"]

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


def _by_kind(trials: Sequence[Trial], said: Callable[[Trial], Sequence[str]]) -> tuple[str, ...]:
    """Return sentences that differ only in their numbers once, the most frequent first, with the greatest numbers."""
    kinds: dict[str, list[str]] = {}
    for trial in trials:
        for sentence in dict.fromkeys(said(trial)):
            kinds.setdefault(_NUMBER.sub("#", sentence), []).append(sentence)
    return tuple(
        f"{len(alike)} of {len(trials)} trials, at worst: {max(alike, key=_numbers)}"
        for alike in sorted(kinds.values(), key=len, reverse=True)
    )


def _numbers(sentence: str) -> list[float]:
    """Return the numbers of a sentence from the last to the first: what it is about stands at its end."""
    return [float(number.replace(",", "").rstrip(".") or 0.0) for number in reversed(_NUMBER.findall(sentence))]
