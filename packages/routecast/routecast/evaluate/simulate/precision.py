"""Simulate until a figure is as precise as asked: batch means of one long trajectory, or independent replications.

::

    one trajectory   | begin |  batch 1  |  batch 2  |  …  |  batch 64  |     32 to 64 batches of equal length
                       left     └─────── pairs of two, twice as long ──┘     when 64 are there and it is not yet enough
                       out

In lanes a trajectory goes on from batch to batch with the state that the last one left
(:mod:`routecast.evaluate.simulate.parts`), so its beginning is paid once, however long it is. Routers that lanes do not
run are replicated with other seeds, each past its transient.

The interval is that of Student over the batches (Law, Simulation Modeling and Analysis, 5th ed., sec. 9.5.3), if
neighbouring batches do not resemble each other: the lag-1 correlation is tested at 10 % (von Neumann's ratio), and
batches that fail are joined in pairs. A loss is a ratio of two counts, so its variance is that of their residuals
(ibid., sec. 9.5.3 on ratio estimators). A percentile has an interval where each batch holds 20 frames beyond it.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, pairwise
from typing import Any, Final

from routecast.errors import ModelProblem, Problem, QuantityProblem, TransientProblem
from routecast.evaluate.simulate._simulator import Simulate
from routecast.evaluate.simulate.parts import given_up_notes, trial_in_parts
from routecast.evaluate.trial import Trial
from routecast.load.offered import OfferedLoad
from routecast.quantity import format_duration, format_ratio, parse_duration_s
from routecast.quantity.schema import field, value

__all__ = ["FIGURES", "Estimate", "PreciseTrial", "Precision", "Progress", "parse_precisions", "simulate_precisely"]

FIGURES: Final = ("loss", "forwarded", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "p99.999")
"""Figures that can be asked for: the loss ratio, the rate forwarded, and the mean and percentiles of the latency."""

_FEWEST, _MOST, _EACH = 32, 64, 4
"""Fewest and most batches, and after how many the figures are looked at."""
_FIRST_FRAMES = 250_000
_BEYOND_FRAMES = 20
_MAX_CORRELATION = 1.645
"""Normal quantile of a correlation of neighbouring batches that chance brings in one of twenty trials."""
_RESOLUTION, _LANES_RESOLUTION = 5e-4, 1.0 / 512.0
"""Half of the width of a bin of the histograms, relative to its value; the second of those of lanes."""
_PILOT_S = 3.0
"""Seconds of work before a precision is called out of reach."""
_PRECISION = re.compile(r"\s*(?P<name>[A-Za-z][\w.]*)\s+(?P<within>within\s+)?(?P<value>.*?)\s*")


@value
class Precision:
    """A half-width of a 95 % interval that is asked of a figure.

    Examples
    --------
    >>> [str(precision) for precision in parse_precisions("loss 1e-9, p99.99 within 2 %")]
    ['loss 1e-09', 'p99.99 within 2 %']
    """

    figure: str = field("One of FIGURES")
    half_width: float = field("In the figure's unit (a ratio, frames/s, s), or a share of it if ``is_relative``")
    is_relative: bool

    def __str__(self) -> str:
        if self.is_relative:
            return f"{self.figure} within {format_ratio(self.half_width)}"
        return f"{self.figure} {f'{self.half_width:g}' if self.figure == 'loss' else format_duration(self.half_width)}"

    def share_of(self, estimate: Estimate) -> float:
        """Return the half-width of an estimate over the one asked for; NaN where it has none."""
        wanted = self.half_width * (abs(estimate.value) if self.is_relative else 1.0)
        return estimate.half_width / wanted if wanted > 0.0 else math.nan


def parse_precisions(text: str) -> tuple[Precision, ...]:
    """Parse precisions such as ``"loss 1e-9"``, ``"p99.99 within 2 %"``, ``"mean 100 ns"``; several with commas.

    Raises
    ------
    routecast.errors.QuantityProblem
        A part is no precision, or asks for one figure twice.
    """
    precisions: list[Precision] = []
    for part in text.split(","):
        precision = _parse(part)
        if any(other.figure == precision.figure for other in precisions):
            raise QuantityProblem(text, f'"{text}": {precision.figure} has two precisions: keep the tighter one')
        precisions.append(precision)
    return tuple(precisions)


def _parse(text: str) -> Precision:
    from routecast.quantity.did_you_mean import did_you_mean

    match = _PRECISION.fullmatch(text)
    if not match:
        message = f'"{text.strip()}" is no precision: write "loss 1e-9", "p99.99 within 2 %" or "mean 100 ns"'
        raise QuantityProblem(text, message)
    name = match["name"].lower()
    if name not in FIGURES:
        message = f'"{text.strip()}": "{match["name"]}" is no figure of a trial; {did_you_mean(name, FIGURES)}'
        raise QuantityProblem(text, message)
    is_relative = match["within"] is not None
    if is_relative or name == "loss":
        number = re.fullmatch(r"(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)\s*(%?)", match["value"])
        half_width = float(number[1]) / (100.0 if number[2] else 1.0) if number else math.nan
        if not 0.0 < half_width < 1.0:
            raise QuantityProblem(text, f'"{text.strip()}": give a share above 0 and below 1, such as "2 %"')
    elif name == "forwarded":
        raise QuantityProblem(text, f'"{text.strip()}": write "forwarded within 0.1 %"')
    else:
        half_width = parse_duration_s(match["value"])
        if not half_width > 0.0:
            raise QuantityProblem(text, f'"{text.strip()}": a half-width is above 0')
    return Precision(figure=name, half_width=half_width, is_relative=is_relative)


@value
class Estimate:
    """A figure with the half-width of its 95 % interval."""

    figure: str = field("One of FIGURES")
    value: float = field("A ratio, frames/s or s; NaN where no frame tells")
    half_width: float = field("In the same unit; NaN where it is not known")
    precision: str = field("The precision that was asked for; empty where none was", default="")
    is_reached: bool = field("Whether it is as precise as asked", default=True)


@value
class PreciseTrial:
    """What a long simulation says, and how precisely."""

    router: str
    intended_pps: float
    simulated_s: float = field("Simulated time that counts, s")
    offered_frames: int
    dropped_frames: int
    batches: int = field("Batches, or replications, that the intervals are made of")
    worked_s: float = field("Time that the work took, s")
    estimates: tuple[Estimate, ...] = field("Each figure that the frames tell, in the order of FIGURES")
    is_reached: bool = field("Whether every figure is as precise as asked")
    was_interrupted: bool = field("Whether Ctrl-C ended it")
    left_s: float = field("Further work that the precision would take at this pace, s; NaN where not known")
    notes: tuple[str, ...] = ()

    def of(self, figure: str) -> Estimate:
        """Return the estimate of a figure; one of NaN where no frame tells."""
        nothing = Estimate(figure=figure, value=math.nan, half_width=math.nan, is_reached=False)
        return next((estimate for estimate in self.estimates if estimate.figure == figure), nothing)

    def to_json(self) -> dict[str, object]:
        """Return plain data."""
        from routecast.evaluate.plain import plain

        document = plain(self)
        assert isinstance(document, dict)
        return document


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a simulation is: batches so far, the estimates, and the work that is left, s (NaN: not known)."""

    batches: int
    estimates: tuple[Estimate, ...]
    left_s: float


OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """Frames of a stretch of a trajectory, or of a replication."""

    simulated_s: float
    offered: int
    dropped: int
    forwarded: int
    latency_sum_s: float
    counted: int
    hdr_base64: str

    @classmethod
    def of(cls, trial: Trial) -> _Batch:
        latency, counted = trial.latency, 0
        if latency is not None:
            from routecast import _core

            counted = sum(frames for *_, frames in _core.hdr_classes(latency.hdr_base64))
        measured_s = trial.duration_s if math.isnan(trial.measured_s) else trial.measured_s
        # Of a trial that counts after its transient only rates are known for that part.
        offered = round(trial.offered_pps * measured_s)
        return cls(
            simulated_s=measured_s,
            offered=offered,
            dropped=round(trial.loss_ratio * offered),
            forwarded=round(trial.forwarded_pps * measured_s),
            latency_sum_s=latency.mean_s * counted if latency else 0.0,
            counted=counted,
            hdr_base64=latency.hdr_base64 if latency else "",
        )

    def joined(self, other: _Batch) -> _Batch:
        return _Batch(
            simulated_s=self.simulated_s + other.simulated_s,
            offered=self.offered + other.offered,
            dropped=self.dropped + other.dropped,
            forwarded=self.forwarded + other.forwarded,
            latency_sum_s=self.latency_sum_s + other.latency_sum_s,
            counted=self.counted + other.counted,
            hdr_base64=_merged([self.hdr_base64, other.hdr_base64]),
        )


def simulate_precisely(
    simulate: Simulate,
    load: OfferedLoad,
    precisions: Sequence[Precision],
    *,
    at_most_s: float = 600.0,
    on_progress: OnProgress | None = None,
) -> PreciseTrial:
    """Simulate until each figure is as precise as asked.

    Parameters
    ----------
    simulate : Simulate
        The router, the seed, and the path: ``auto`` takes lanes where the router is of their kind.
    load : OfferedLoad
        A load that does not change.
    precisions : sequence of Precision
        What is asked for; with none the figures of 32 batches are returned.
    at_most_s : float
        Longest work, s. It ends earlier where the precision would clearly take longer. Ctrl-C ends it after the batches
        that are finished.
    on_progress : callable or None
        Called after each batch.

    Raises
    ------
    routecast.errors.ModelProblem
        The load changes or is a trace, or the router cannot be simulated so.
    """
    if load.steps or load.arrivals.trace is not None:
        what = "repeats a trace" if load.arrivals.trace is not None else "changes during the trial"
        raise ModelProblem("simulation", [Problem("load", f"it {what}: a precision needs one that goes on for ever")])
    started_s = time.monotonic()
    source = _Source(simulate, load, precisions)
    batches: list[_Batch] = []
    joined = 1
    is_over = was_interrupted = False
    left_s = math.nan
    while not is_over:
        try:
            batches.append(source.next(joined))
        except KeyboardInterrupt:
            if len(batches) < 2:
                raise
            was_interrupted = True
            break
        worked_s = time.monotonic() - started_s
        is_between = len(batches) % _EACH > 0 and worked_s < at_most_s
        if is_between and len(batches) > _FEWEST:
            continue
        if len(batches) < _FEWEST and worked_s < at_most_s:
            left_s = worked_s * (_FEWEST / len(batches) - 1.0) if len(batches) > 1 else math.nan
            if on_progress is not None:
                on_progress(Progress(batches=len(batches), estimates=(), left_s=left_s))
            continue
        estimates = _estimates(batches, precisions, source.resolution)
        is_reached = all(estimate.is_reached for estimate in estimates) and len(batches) >= _FEWEST
        left_s = 0.0 if is_reached else _left_s(estimates, precisions, worked_s)
        if on_progress is not None:
            on_progress(Progress(batches=len(batches), estimates=estimates, left_s=left_s))
        is_hopeless = worked_s > _PILOT_S and worked_s + left_s > 4.0 * at_most_s
        is_over = is_reached or worked_s >= at_most_s or is_hopeless
        if len(batches) == _MOST and not is_over:
            batches, joined = [first.joined(second) for first, second in _pairs(batches)], 2 * joined
    estimates = _estimates(batches, precisions, source.resolution)
    is_reached = all(estimate.is_reached for estimate in estimates) and len(batches) >= _FEWEST
    return PreciseTrial(
        router=simulate.model.name,
        intended_pps=load.rate_pps,
        simulated_s=math.fsum(batch.simulated_s for batch in batches),
        offered_frames=sum(batch.offered for batch in batches),
        dropped_frames=sum(batch.dropped for batch in batches),
        batches=len(batches),
        worked_s=time.monotonic() - started_s,
        estimates=estimates,
        is_reached=is_reached,
        was_interrupted=was_interrupted,
        left_s=0.0 if is_reached else left_s,
        notes=(
            *source.notes,
            *given_up_notes(source.given_up, source.parts, "parts of the trajectory"),
            *_notes(batches, estimates),
        ),
    )


class _Source:
    """Where batches come from: parts of a trajectory in lanes, or replications with other seeds."""

    def __init__(self, simulate: Simulate, load: OfferedLoad, precisions: Sequence[Precision]) -> None:
        self.simulate, self.load = replace(simulate, replications=1, target_relative_half_width=None), load
        self.length_s = _FIRST_FRAMES / load.rate_pps
        self.notes: list[str] = []
        self.at_s = 0.0
        self.state: dict[str, Any] | None = None
        self.parts = 0
        self.given_up: Counter[str] = Counter()
        self.seeds = count(simulate.seed)
        self.is_in_lanes = simulate.path in {"auto", "lanes"} and not simulate.events
        finest = [
            str(precision)
            for precision in precisions
            if precision.figure.startswith("p") and precision.is_relative and precision.half_width <= _LANES_RESOLUTION
        ]
        if self.is_in_lanes and finest:
            width = format_ratio(2.0 * _LANES_RESOLUTION)
            why = f"lanes count times in bins of {width} of a time: too coarse for {finest[0]}"
            if simulate.path == "lanes":
                raise ModelProblem("simulation", [Problem("precision", why)])
            self.is_in_lanes = False
            self.notes.append(f"replications with other seeds, each from an empty router on: {why}")
        elif self.is_in_lanes:
            self._begin()
        elif simulate.path not in {"auto", "lanes"}:
            self.notes.append(f"replications with other seeds, each from an empty router on, by {simulate.path}")

    @property
    def resolution(self) -> float:
        """Half of the width of a bin of the times, relative to a time."""
        return _LANES_RESOLUTION if self.is_in_lanes else _RESOLUTION

    def _begin(self) -> None:
        """Simulate what is left out: the transient of a trial, and as long again, or a batch."""
        try:
            transient_s = self._transient_s()
            self._part(max(2.0 * transient_s, self.length_s))
        except ModelProblem as problem:
            if self.simulate.path == "lanes":
                raise
            self.is_in_lanes = False
            message = problem.problems[0].message
            in_short = re.search(r"in lanes \((.*)\);", message)
            why = in_short[1] if in_short else message
            self.notes.append(
                f"replications with other seeds, each from an empty router on: lanes do not run it ({why})"
            )
        else:
            self.notes.append(f"one trajectory in lanes; its first {format_duration(self.at_s)} do not count")

    def _transient_s(self) -> float:
        from routecast.evaluate.sweep import trial_past_transient

        trial = trial_past_transient(replace(self.simulate, path="lanes"), self.load, None)
        return trial.duration_s - trial.measured_s

    def _part(self, length_s: float) -> Trial:
        borders_s = (self.at_s, self.at_s + length_s)
        (part,) = trial_in_parts(self.simulate, self.load, borders_s, begin=self.state)
        self.at_s, self.state = part.to_s, part.end
        self.parts += 1
        self.given_up.update(part.given_up)
        return part.trial

    def next(self, joined: int) -> _Batch:
        """Return the next batch, of the length of ``joined`` first ones."""
        length_s = joined * self.length_s
        if self.is_in_lanes:
            return _Batch.of(self._part(length_s))
        from routecast.evaluate.sweep import trial_past_transient

        replication = replace(self.simulate, seed=next(self.seeds))
        while True:
            try:
                return _Batch.of(trial_past_transient(replication, self.load, length_s))
            except TransientProblem as problem:
                # The next ones are as long.
                length_s = max(1.5 * problem.needed_s, 2.0 * length_s)
                self.length_s = length_s / joined


def _pairs(batches: Sequence[_Batch]) -> Iterator[tuple[_Batch, _Batch]]:
    return zip(batches[::2], batches[1::2], strict=False)


def _merged(histograms: Sequence[str]) -> str:
    from routecast import _core

    known = [histogram for histogram in histograms if histogram]
    return _core.hdr_merged(known) if known else ""


def _estimates(batches: Sequence[_Batch], precisions: Sequence[Precision], resolution: float) -> tuple[Estimate, ...]:
    """Return the estimate of each figure that the frames of the batches tell."""
    whole = _merged([batch.hdr_base64 for batch in batches])
    counted = sum(batch.counted for batch in batches)
    offered = sum(batch.offered for batch in batches)
    estimates = []
    for figure in FIGURES:
        precision = next((precision for precision in precisions if precision.figure == figure), None)
        if figure == "loss":
            dropped = sum(batch.dropped for batch in batches)
            ratio = dropped / offered if offered else math.nan
            residuals = [batch.dropped - ratio * batch.offered for batch in batches]
            half_width = _half_width(residuals) * len(batches) / offered if dropped else math.nan
            estimate = Estimate(figure=figure, value=ratio, half_width=half_width)
        elif figure == "forwarded":
            rates = [batch.forwarded / batch.simulated_s for batch in batches]
            estimate = Estimate(figure=figure, value=math.fsum(rates) / len(rates), half_width=_half_width(rates))
        elif not counted:
            continue
        elif figure == "mean":
            mean_s = math.fsum(batch.latency_sum_s for batch in batches) / counted
            residuals = [batch.latency_sum_s - mean_s * batch.counted for batch in batches]
            estimate = Estimate(figure=figure, value=mean_s, half_width=_half_width(residuals) * len(batches) / counted)
        else:
            estimate = _percentile(figure, whole, counted, batches, resolution)
        if precision is not None:
            share = precision.share_of(estimate)
            estimate = replace(estimate, precision=str(precision), is_reached=share <= 1.0)
        estimates.append(estimate)
    return tuple(estimates)


def _percentile(figure: str, whole: str, counted: int, batches: Sequence[_Batch], resolution: float) -> Estimate:
    """Return the estimate of a percentile: that of all frames, with the spread of those of the batches."""
    from routecast import _core

    probability = float(figure[1:]) / 100.0
    (value_s,) = _core.hdr_quantiles_s(whole, [probability])
    rarest = min(probability, 1.0 - probability)
    fewest = min(batch.counted for batch in batches)
    if counted * rarest < _BEYOND_FRAMES:
        return Estimate(figure=figure, value=math.nan, half_width=math.nan)
    if fewest * rarest < _BEYOND_FRAMES:
        return Estimate(figure=figure, value=value_s, half_width=math.nan)
    values_s = [_core.hdr_quantiles_s(batch.hdr_base64, [probability])[0] for batch in batches]
    return Estimate(figure=figure, value=value_s, half_width=_half_width(values_s) + resolution * value_s)


def _half_width(values: Sequence[float]) -> float:
    """Return the half-width of the 95 % interval of the mean of values that come one after the other; NaN if unknown.

    Neighbours that resemble each other are joined in pairs, until they do not or fewer than 8 are left.
    """
    from scipy.special import stdtrit

    while len(values) >= 8:
        mean = math.fsum(values) / len(values)
        deviations = [number - mean for number in values]
        square = math.fsum(deviation**2 for deviation in deviations)
        if max(values) <= min(values):
            return 0.0
        ends = 0.5 * (deviations[0] ** 2 + deviations[-1] ** 2)
        together = math.fsum(this * following for this, following in pairwise(deviations))
        correlation = (together + ends) / square
        if correlation <= _MAX_CORRELATION / math.sqrt(len(values)):
            variance = square / (len(values) - 1)
            return float(stdtrit(len(values) - 1, 0.975)) * math.sqrt(variance / len(values))
        values = [0.5 * (first + second) for first, second in zip(values[::2], values[1::2], strict=False)]
    return math.nan


def _left_s(estimates: Sequence[Estimate], precisions: Sequence[Precision], worked_s: float) -> float:
    """Return the work that the precisions would take beyond that done: half-widths fall as its root; NaN if unknown."""
    shares = []
    for precision in precisions:
        estimate = next((estimate for estimate in estimates if estimate.figure == precision.figure), None)
        if estimate is not None and not estimate.is_reached:
            shares.append(precision.share_of(estimate))
    return worked_s * (max(shares) ** 2 - 1.0) if shares and all(share > 1.0 for share in shares) else math.nan


def _notes(batches: Sequence[_Batch], estimates: Sequence[Estimate]) -> Iterator[str]:
    loss = estimates[0]
    if loss.value == 0.0:
        frames = sum(batch.offered for batch in batches)
        yield (
            f"no frame of {frames:,} was lost: how rare losses are is not known, for they come in clusters; a loss of"
            " this order needs more frames"
        )
    elif math.isnan(loss.half_width):
        yield "losses of neighbouring batches resemble each other: no interval of the loss; simulate longer"
