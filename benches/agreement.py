"""Whether contenders did the same work: equal throughput, loss and mean latency, as far as chance allows."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from contenders import Sample
from scipy.stats import t as student
from workloads import Theory

__all__ = ["Finding", "disagreements", "finding"]

_CONFIDENCE = 0.999
_RELATIVE = 0.003
_LOSS = 0.001


@dataclass(frozen=True, slots=True)
class Finding:
    """A figure and its standard error over the repetitions, each of which has a seed of its own."""

    value: float
    error: float


FIELDS = ("throughput_pps", "loss_ratio", "latency_mean_s")


def finding(samples: Sequence[Sample], field: str) -> Finding:
    """Return mean and standard error of a field."""
    values = [float(getattr(sample, field)) for sample in samples]
    spread = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.inf
    return Finding(statistics.fmean(values), spread)


def disagreements(theory: Theory, samples: Mapping[str, Sequence[Sample]]) -> list[str]:
    """Return in words where a contender differs from theory, or from the first contender, by more than chance.

    The tolerance is a 99.9 % interval (Student) and, for edges of finite runs (a gap of 416,667 ps for 416,666.7, the
    last frames), 0.3 % of throughput and latency or 0.001 of loss.
    """
    results = []
    first = next(iter(samples))
    errors = float(student.ppf((1.0 + _CONFIDENCE) / 2.0, len(samples[first]) - 1))
    for name, runs in samples.items():
        for field in FIELDS:
            mine, truth = finding(runs, field), float(getattr(theory, field))
            references = {theory.law: Finding(truth, 0.0)}
            if name != first:
                references[first] = finding(samples[first], field)
            for other, reference in references.items():
                floor = _LOSS if field == "loss_ratio" else _RELATIVE * truth
                allowed = floor + errors * math.hypot(mine.error, reference.error)
                if not abs(mine.value - reference.value) <= allowed:
                    figures = f"{mine.value:.6g} against {reference.value:.6g}, allowed ±{allowed:.2g}"
                    results.append(f"{name}: {field} differs from {other}: {figures}")
    return results
