"""The table of the power benchmark: watts with base, idle, idle+, typical and loaded state, and the efficiency.

draft-ietf-bmwg-powerbench-02: the procedure finds the throughput without loss (RFC 2544 sec. 26.1, here with a mix of
sizes as in RFC 6985), then runs a trial for every line. Any evaluator whose trials have watts can fill the table: the
formula, the simulator, or a metered router.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from routecast.errors import CriterionFailed, EnvironmentProblem, ModelProblem, Problem
from routecast.evaluate.plain import plain
from routecast.evaluate.protocol import Described, Evaluator
from routecast.evaluate.trial import Trial, TrialPower
from routecast.lab.benchmark.search import binary_search
from routecast.lab.benchmark.settings import GoalProfile
from routecast.lab.benchmark.stage import Counts, counts_of
from routecast.lab.power.metrics import (
    CORE_LOADS,
    EER_WEIGHTS,
    METRICS,
    LoadPoint,
    energy_consumption_rate_w_per_bps,
    energy_efficiency_ratio_bit_per_j,
    proportionality_ratio,
)
from routecast.load.offered import OfferedLoad
from routecast.power.model import NO_WATTS
from routecast.quantity.schema import field, value

__all__ = ["LosslessThroughput", "PowerTable", "PowerTableSettings", "power_table"]


@value
class PowerTableRow:
    """A line of the table. A value that was not measured is NaN."""

    name: str
    state: str
    load_ratio: float = math.nan
    intended_pps: float = math.nan
    forwarded_pps: float = math.nan
    l2_bps: float = math.nan
    loss_ratio: float = math.nan
    power_w: float = math.nan
    packet_j: float = math.nan
    bit_j: float = math.nan
    port_ratios: Mapping[str, float] = field("Known utilisation of links, by name", default_factory=dict)
    not_measured: str = ""


@value
class PowerTable:
    """The finished table."""

    router: str = field("Router that was measured.")
    evaluator: str = field("Evaluator of the trials.")
    scope: str = field("Scope of the watts.")
    source: str = field("Source of the watts.")
    frames: str = field("The mix of frame sizes.")
    ports: int = field("Number of ports, all enabled and active.")
    throughput_pps: float = field("Greatest measured rate without loss, over all ports, frames/s.")
    throughput_bps: float = field("Greatest measured rate without loss, over all ports, bit/s.")
    rows: tuple[PowerTableRow, ...] = field("Base, idle, idle+, typical, loaded, and further loads of the EER.")
    load_ratios: tuple[float, ...]
    weights: tuple[float, ...]
    eer_bit_per_j: float = field("Bit/s per W over ``load_ratios`` with ``weights``.")
    eer_unweighted_bit_per_j: float = field(
        "EER with the unweighted throughput as numerator, which the draft allows if it is labelled."
    )
    ecr_w_per_bps: float = field("ECR at full load.")
    proportionality_ratio: float = field("EPI over 100.")
    stabilise_s: float
    measure_s: float
    averaging: str = field("Method of averaging the watts.")
    facts: Mapping[str, object] = field(
        "Versions and configuration, if the evaluator states them.", default_factory=dict
    )
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return plain data, with the definition of every metric."""
        result = plain(self)
        assert isinstance(result, dict)
        return {**result, "metrics": plain(dict(METRICS))}


@value
class PowerTableSettings:
    """Settings of the measurement; the draft requires a report of intervals and averaging."""

    load_ratios: tuple[float, ...] = field("Loads of the EER over the throughput without loss.", default=CORE_LOADS)
    weights: tuple[float, ...] = field("Weight of each; they sum up to 1.", default=EER_WEIGHTS)
    typical_ratio: float = field('Load of the line "typical".', default=0.3)
    stabilise_s: float = field(
        "Length of the trial before each line that stabilises the router, with its result discarded, s; 0 for a model.",
        default=0.0,
    )
    measure_s: float = field(
        "Length of the trial of each line and of the trials that decide on the throughput, s.", default=1.0
    )
    search_s: float = field("Greatest length of the first trials of the search, s.", default=0.1)
    idle_pps: float = field(
        "Rate that stands for no traffic, because an offered load is above 0, frames/s. A test bed sends nothing "
        "where less than one frame is due.",
        default=1e-3,
    )
    width_ratio: float = field("Distance of the bounds of the throughput, relative to the upper bound.", default=0.005)
    min_rate_ratio: float = field("Lowest rate of the search over its highest rate.", default=1e-3)
    base_w: float = field("Power without transceivers as measured by hand, W; NaN if unknown.", default=math.nan)
    averaging: str = field(
        "Method of averaging the watts of a line.",
        default="energy over the length of the trial, one trial for each line",
    )

    def __post_init__(self) -> None:
        problems = []
        if len(self.load_ratios) != len(self.weights):
            count = f"{len(self.weights)} weights for {len(self.load_ratios)} loads"
            problems.append(Problem("weights", f"{count}: give one weight for each load"))
        if abs(math.fsum(self.weights) - 1.0) > 1e-9:
            problems.append(Problem("weights", f"sum up to {math.fsum(self.weights):g}: they must sum up to 1"))
        for number, weight in enumerate(self.weights):
            if not weight >= 0.0:
                problems.append(Problem(f"weights[{number}]", f"is {weight:g}: it must be at least 0"))
        for number, ratio in enumerate((*self.load_ratios, self.typical_ratio)):
            if not 0.0 <= ratio <= 1.0:
                place = f"load_ratios[{number}]" if number < len(self.load_ratios) else "typical_ratio"
                problems.append(Problem(place, f"is {ratio:g}: it must be 0 to 1 of the throughput without loss"))
        for name in ("measure_s", "search_s", "idle_pps"):
            if not getattr(self, name) > 0.0:
                problems.append(Problem(name, f"is {getattr(self, name):g}: it must be above 0"))
        if self.base_w < 0.0 or math.isinf(self.base_w):
            problems.append(Problem("base_w", f"is {self.base_w:g}: it must be a number >= 0"))
        if problems:
            raise ModelProblem("power table", problems)


@value
class LosslessThroughput:
    """The greatest rate without loss of all ports together, with notes on the search.

    If no rate is without loss, ``rate_pps`` is not above 0 and ``reason`` gives the cause.
    """

    rate_pps: float
    reason: str = ""
    notes: tuple[str, ...] = ()


def power_table(
    evaluator: Evaluator,
    load: OfferedLoad,
    *,
    router: str,
    ports: int,
    max_pps: float,
    settings: PowerTableSettings | None = None,
    search: Callable[[], LosslessThroughput] | None = None,
    report: Callable[[str], None] | None = None,
) -> PowerTable:
    """Return the table of a router, from a search of the throughput and a trial for each line.

    Parameters
    ----------
    evaluator : Evaluator
        Its trials must have watts.
    load : OfferedLoad
        Frames, flows and arrivals; its rate does not matter.
    router : str
        Name of the router in the table.
    ports : int
        Number of active ports.
    max_pps : float
        Greatest rate of the search over all ports, such as the rate of the links, frames/s.
    settings : PowerTableSettings or None
    search : callable or None
        Search of the throughput; None for a binary search, which a disturbed trial would mislead.
    report : callable or None
        Called with the purpose of each trial.

    Raises
    ------
    routecast.errors.ModelProblem
        A trial has no watts, or the router loses frames at every rate.
    routecast.errors.EnvironmentProblem
        A meter gave no reading during a trial.
    routecast.errors.CriterionFailed
        A measured trial was invalid in all attempts.
    """
    settings = settings or PowerTableSettings()
    runner = _TrialRunner(evaluator=evaluator, load=load, router=router, settings=settings, report=report)
    idle = runner.trial_at("idle", settings.idle_pps)  # first, to report missing watts at once
    throughput = runner.lossless_throughput(search, ports, max_pps)
    throughput_pps = throughput.rate_pps
    idle_plus = runner.trial_at("idle+", float(ports))
    # Loads rise to full load, because the draft requires the device to carry it again without loss.
    ratios = sorted({settings.typical_ratio, 1.0, *settings.load_ratios} - {0.0})
    trials = {
        ratio: runner.trial_at(f"{100 * ratio:g} % of the throughput", ratio * throughput_pps) for ratio in ratios
    }
    trials[0.0] = idle
    measured = _Measured(
        load=load,
        settings=settings,
        throughput=throughput,
        idle_plus=idle_plus,
        idle_plus_power=runner.power_of(idle_plus),
        trials=trials,
        powers={ratio: runner.power_of(trial) for ratio, trial in trials.items()},
    )
    facts = evaluator.facts() if isinstance(evaluator, Described) else {}
    return measured.table(router=router, ports=ports, facts=facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    """What was measured for a table: the throughput, and the trials and their watts by load ratio; 0 is idle."""

    load: OfferedLoad
    settings: PowerTableSettings
    throughput: LosslessThroughput
    idle_plus: Trial
    idle_plus_power: TrialPower
    trials: Mapping[float, Trial]
    powers: Mapping[float, TrialPower]

    def table(self, *, router: str, ports: int, facts: Mapping[str, object]) -> PowerTable:
        """Return the table with the efficiency over the loads."""
        settings, full_bps, powers = self.settings, self.trials[1.0].l2_bps, self.powers
        points = self._load_points()
        max_w = max(power.mean_w for power in powers.values())
        return PowerTable(
            router=router,
            evaluator=self.trials[0.0].evaluator,
            scope=powers[0.0].scope,
            source=powers[0.0].source,
            frames=self.load.frames.name,
            ports=ports,
            throughput_pps=self.throughput.rate_pps,
            throughput_bps=full_bps,
            rows=(*self._idle_rows(), *self._loaded_rows()),
            load_ratios=settings.load_ratios,
            weights=settings.weights,
            eer_bit_per_j=energy_efficiency_ratio_bit_per_j(points),
            eer_unweighted_bit_per_j=energy_efficiency_ratio_bit_per_j(points, total_capacity_bps=full_bps),
            ecr_w_per_bps=energy_consumption_rate_w_per_bps(powers[1.0].mean_w, full_bps),
            proportionality_ratio=proportionality_ratio(powers[0.0].mean_w, max_w),
            stabilise_s=settings.stabilise_s,
            measure_s=settings.measure_s,
            averaging=settings.averaging,
            facts=facts,
            notes=_notes(self.load, settings, self.trials, self.throughput),
        )

    def _idle_rows(self) -> Iterator[PowerTableRow]:
        """Yield the lines without traffic, and with next to none."""
        yield _base_row(self.settings.base_w)
        yield _trial_row("idle", "configured, all ports up, no traffic", self.trials[0.0], self.powers[0.0], 0.0)
        ratio = self.idle_plus.intended_pps / self.throughput.rate_pps
        yield _trial_row("idle+", "1 frame/s on every active port", self.idle_plus, self.idle_plus_power, ratio)

    def _loaded_rows(self) -> Iterator[PowerTableRow]:
        """Yield the typical line, those of the further loads of the EER, rising, and that of full load."""
        typical_ratio = self.settings.typical_ratio

        def row(name: str, state: str, ratio: float) -> PowerTableRow:
            return _trial_row(name, state, self.trials[ratio], self.powers[ratio], ratio)

        yield row("typical", f"{100 * typical_ratio:g} % of the throughput", typical_ratio)
        for ratio in sorted(set(self.trials) - {0.0, typical_ratio, 1.0}):
            yield row("loaded", f"{100 * ratio:g} % of the throughput", ratio)
        yield row("loaded", "the throughput without loss", 1.0)

    def _load_points(self) -> list[LoadPoint]:
        """Return the points of the EER."""
        return [
            LoadPoint(
                weight_ratio=weight,
                l2_bps=self.trials[ratio].l2_bps if ratio > 0.0 else 0.0,
                power_w=self.powers[ratio].mean_w,
            )
            for ratio, weight in zip(self.settings.load_ratios, self.settings.weights, strict=True)
        ]


@dataclass(slots=True, kw_only=True)
class _TrialRunner:
    """Runs the trials of the table, each rate once."""

    evaluator: Evaluator
    load: OfferedLoad
    router: str
    settings: PowerTableSettings
    report: Callable[[str], None] | None
    _trials: dict[float, Trial] = dataclasses.field(default_factory=dict)

    def trial_at(self, purpose: str, rate_pps: float) -> Trial:
        if self.report:
            self.report(purpose)
        if rate_pps not in self._trials:
            offered = self.load.at(rate_pps)
            if self.settings.stabilise_s > 0.0:
                # A test bed need not repeat an invalid trial here, because the result is discarded.
                stabilise = getattr(self.evaluator, "stabilise", self.evaluator.trial)
                stabilise(offered, self.settings.stabilise_s)
            self._trials[rate_pps] = self.evaluator.trial(offered, self.settings.measure_s)
        trial = self._trials[rate_pps]
        self.power_of(trial)
        return trial

    def power_of(self, trial: Trial) -> TrialPower:
        if not trial.is_valid:
            reasons = f"at {trial.intended_pps:g} frames/s: {'; '.join(trial.invalid)}"
            if trial.evaluator == "measure":
                raise CriterionFailed(f"{self.router}: invalid after {trial.attempts} attempts: {reasons}")
            raise ModelProblem(self.router, [Problem("trial", reasons)])
        if trial.power is None and trial.evaluator == "measure":
            reason = "; ".join(note for note in trial.notes if "power" in note) or "no meter was read"
            raise EnvironmentProblem(f"{self.router}: the trial has no watts: {reason}")
        if trial.power is None:
            raise ModelProblem(self.router, [Problem("power", f"{NO_WATTS}, or measure with a power meter")])
        return trial.power

    def lossless_throughput(
        self, search: Callable[[], LosslessThroughput] | None, ports: int, max_pps: float
    ) -> LosslessThroughput:
        """Return the result of ``search``, or of a binary search without one; refuse a throughput of 0."""
        throughput = search() if search else self.search(ports, max_pps)
        if not throughput.rate_pps > 0.0:
            reason = throughput.reason or "frames are lost at every rate that was tried"
            raise ModelProblem(self.router, [Problem("throughput", f"no rate without loss was found: {reason}")])
        return throughput

    def search(self, ports: int, max_pps: float) -> LosslessThroughput:
        goal = GoalProfile(
            name="no loss",
            width=self.settings.width_ratio,
            initial_trial=min(self.settings.search_s, self.settings.measure_s),
            final_trial=self.settings.measure_s,
            duration_sum=self.settings.measure_s,
        )

        def probe(per_port_pps: float, duration_s: float, purpose: str) -> Counts:
            if self.report:
                self.report(f"throughput, {purpose}")
            return counts_of(self.evaluator.trial(self.load.at(ports * per_port_pps), duration_s), duration_s)

        bounds = binary_search(
            probe, goal, min_pps=self.settings.min_rate_ratio * max_pps / ports, max_pps=max_pps / ports
        )
        links = ("the links, not the router, limit the throughput",)
        return LosslessThroughput(
            rate_pps=ports * bounds.lower_pps, reason=bounds.reason, notes=links if bounds.outcome == "maximum" else ()
        )


def _base_row(base_w: float) -> PowerTableRow:
    state = "factory settings, no transceivers"
    if math.isnan(base_w):
        reason = "the router was not measured without its transceivers and its configuration"
        return PowerTableRow(name="base", state=state, not_measured=reason)
    return PowerTableRow(name="base", state=f"{state}; given by the user", power_w=base_w)


def _trial_row(name: str, state: str, trial: Trial, power: TrialPower, load_ratio: float) -> PowerTableRow:
    # Joules per frame mean nothing for the few frames of an idle router.
    is_without_traffic, is_idle = load_ratio == 0.0, name.startswith("idle")
    return PowerTableRow(
        name=name,
        state=state,
        load_ratio=load_ratio,
        intended_pps=trial.intended_pps,
        forwarded_pps=0.0 if is_without_traffic else trial.forwarded_pps,
        l2_bps=0.0 if is_without_traffic else trial.l2_bps,
        loss_ratio=math.nan if is_without_traffic else trial.loss_ratio,
        power_w=power.mean_w,
        packet_j=math.nan if is_idle else power.packet_j,
        bit_j=math.nan if is_idle else power.bit_j,
        port_ratios={
            resource.name: resource.utilisation_ratio for resource in trial.resources if resource.kind == "link"
        },
    )


def _notes(
    load: OfferedLoad, settings: PowerTableSettings, trials: Mapping[float, Trial], throughput: LosslessThroughput
) -> tuple[str, ...]:
    stand_in = f"an offered load is more than 0, so {settings.idle_pps:g} frames/s stand for no traffic"
    notes = [
        f"idle: {stand_in if trials[0.0].intended_pps > 0.0 else 'no frame was sent, only the meter was read'}",
        "the throughput is without any loss",
        *throughput.notes,
    ]
    if not math.isnan(settings.base_w):
        notes.append(f"base: {settings.base_w:g} W measured by hand without transceivers, as given by the user")
    full = trials[1.0]
    if full.loss_ratio > 1e-9:
        notes.append(
            f"at full load {full.loss_ratio:.2g} of the frames were lost: the router did not reach the throughput again"
        )
    if load.frames.is_fixed:
        notes.append(f"frames of {load.frames.name}: the draft asks for a mix (RFC 6985)")
    return (*notes, *dict.fromkeys(note for ratio, trial in trials.items() if ratio > 0.0 for note in trial.notes))
