"""The energy of a day, from a load profile and a power model or trials of a router."""

from __future__ import annotations

import bisect
import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from routecast.errors import ModelProblem, Problem
from routecast.evaluate.plain import plain
from routecast.evaluate.protocol import Evaluator
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad
from routecast.load.series import DAY_S, TrafficSeries
from routecast.power.model import NO_WATTS, OperatingPoint, PowerModel
from routecast.power.port import PortPower
from routecast.progress import Progress
from routecast.quantity import format_bps, format_ratio
from routecast.quantity.schema import field, value

__all__ = [
    "KWH_J",
    "ModelWatts",
    "PowerCurve",
    "PowerDay",
    "TrialWatts",
    "Watts",
    "WattsSource",
    "model_watts",
    "power_day",
    "router_watts",
]

KWH_J = 3.6e6
_TERABYTE_BITS = 8e12

Watts = Callable[[float], float]
"""Mean watts at a forwarded rate, bit/s."""


@value
class PowerDay:
    """Power over a day, with energy, cost and carbon."""

    step_s: float
    l2_bps: tuple[float, ...] = field("Traffic of each step")
    power_w: tuple[float, ...] = field("Mean power of each step")
    energy_j: float = field("Energy of a day: mean power times 24 h")
    mean_w: float
    peak_w: float
    least_w: float
    traffic_bits: float = field("Bits of a day")
    energy_per_terabyte_j: float = field("``energy_j`` over the traffic in TB (1e12 bytes)")
    proportional_j: float = field(
        "Energy of a day at power proportional to traffic: watts at the peak times mean over peak traffic"
    )
    cost: float | None = field("Cost in the currency of the price; None without a price")
    carbon_g: float | None = field("Mass of carbon dioxide; None without a carbon intensity")
    scope: str = field("Scope of the watts")
    source: str = field("Source of the watts")
    profile: str = field("Source of the traffic")
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return plain data: NaN becomes null."""
        result = plain(self)
        assert isinstance(result, dict)
        return {**result, "energy_kwh": self.energy_j / KWH_J}


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerCurve:
    """Watts at rising loads, with linear interpolation between them."""

    l2_bps: tuple[float, ...]
    power_w: tuple[float, ...]
    is_interpolated: bool

    @classmethod
    def through(
        cls, watts: Watts, loads_bps: Sequence[float], *, max_points: int = 20, on_progress: Progress | None = None
    ) -> PowerCurve:
        """Return the curve through all distinct loads, or through ``max_points`` equidistant ones if they are more."""
        distinct = sorted(set(loads_bps))
        is_interpolated = len(distinct) > max_points
        low_bps, high_bps = distinct[0], distinct[-1]
        if is_interpolated:
            inner_bps = (low_bps + (high_bps - low_bps) * step / (max_points - 1) for step in range(max_points - 1))
            distinct = [*inner_bps, high_bps]
        power_w: list[float] = []
        for l2_bps in distinct:
            if on_progress is not None:
                on_progress(len(power_w), len(distinct), "loads")
            power_w.append(watts(l2_bps))
        return cls(l2_bps=tuple(distinct), power_w=tuple(power_w), is_interpolated=is_interpolated)

    def at(self, l2_bps: float) -> float:
        """Return the watts at a load between the ends of the curve."""
        above = bisect.bisect_left(self.l2_bps, l2_bps)
        if above < len(self.l2_bps) and self.l2_bps[above] == l2_bps:
            return self.power_w[above]
        if not 0 < above < len(self.l2_bps):
            raise ValueError(f"{l2_bps} bit/s lies outside the curve")
        low, high = self.l2_bps[above - 1 : above + 1]
        share = (l2_bps - low) / (high - low)
        return (1.0 - share) * self.power_w[above - 1] + share * self.power_w[above]


@dataclass(slots=True, kw_only=True)
class ModelWatts:
    """Watts of a power model as a function of the load.

    ``frame_bytes``: mean frame size, for models that count packets; ``capacity_bps``: load at ratio 1.
    """

    model: PowerModel
    frame_bytes: float
    capacity_bps: float

    def __call__(self, l2_bps: float) -> float:
        """Return the watts of the model at a load, bit/s.

        Raises ModelProblem: the load is above the capacity.
        """
        if l2_bps > self.capacity_bps * (1.0 + 1e-9):
            message = f"the load of {format_bps(l2_bps)} is above the capacity of {format_bps(self.capacity_bps)}"
            raise ModelProblem("power of a day", [Problem("capacity", message)])
        return self.model.power_w(
            OperatingPoint(
                load_ratio=min(1.0, l2_bps / self.capacity_bps),
                rate_pps=l2_bps / (8.0 * self.frame_bytes),
                l2_bps=l2_bps,
            )
        )


@dataclass(slots=True, kw_only=True)
class TrialWatts:
    """Watts of a router as a function of the load, from a trial at each load.

    Frames, flows and arrivals are those of ``load``; a trace is scaled to each load and offered whole, whatever
    ``duration_s``. After the trials ``losses`` holds the loads with frame loss and their loss ratios, ``doubts`` the
    loads of which no loss is known for certain but may be, with the greatest that is possible (NaN: not known), and
    ``scope`` and ``source`` are those of the trials.
    """

    evaluator: Evaluator
    load: OfferedLoad
    duration_s: float
    idle_pps: float = 1e-3
    scope: str = ""
    source: str = ""
    losses: list[tuple[float, float]] = dataclasses.field(default_factory=list)
    doubts: list[tuple[float, float]] = dataclasses.field(default_factory=list)

    def __call__(self, l2_bps: float) -> float:
        """Return the mean watts of a trial at a load, bit/s.

        Raises ModelProblem: the trial has no watts.
        """
        rate_pps = max(self.idle_pps, l2_bps / (8.0 * self.load.frames.mean_bytes))
        load = self.load.at(rate_pps)
        trial = self.evaluator.trial(load, load.trial_s(self.duration_s))
        if trial.power is None:
            raise ModelProblem("power of a day", [Problem("power", NO_WATTS)])
        self.scope, self.source = trial.power.scope, trial.power.source
        if trial.min_loss_ratio > 1e-6:
            self.losses.append((l2_bps, trial.min_loss_ratio))
        elif trial.known_loss_ratio != 0.0:
            self.doubts.append((l2_bps, trial.known_loss_ratio))
        return trial.power.mean_w


def power_day(
    series: TrafficSeries,
    watts: Watts,
    *,
    scope: str,
    source: str,
    price_per_kwh: float | None = None,
    carbon_g_per_kwh: float | None = None,
) -> PowerDay:
    """Return the power and energy of a day with a traffic profile; the mean over its steps lasts 24 hours.

    Parameters
    ----------
    series : TrafficSeries
        One or several whole days without missing steps.
    watts : callable
        Watts at a load: a :class:`PowerCurve`'s ``at``, a :class:`ModelWatts`, a :class:`TrialWatts`.
    scope, source : str
        Scope and source of the watts.
    price_per_kwh, carbon_g_per_kwh : float or None
        Price and carbon intensity of a kWh; None leaves out the cost or the mass of carbon dioxide.

    Raises
    ------
    routecast.errors.ModelProblem
        Steps are missing, the profile has no traffic, or price or carbon intensity is negative.
    """
    missing_count = sum(math.isnan(rate) for rate in series.l2_bps)
    faults = []
    if missing_count:
        faults.append(Problem("", f"{missing_count} steps are missing: fill them, or take the mean day"))
    elif not series.peak_bps > 0.0:
        faults.append(Problem("", "has no traffic"))
    for name, amount in (("price_per_kwh", price_per_kwh), ("carbon_g_per_kwh", carbon_g_per_kwh)):
        if amount is not None and not (math.isfinite(amount) and amount >= 0.0):
            faults.append(Problem(name, f"is {amount:g}: it must be at least 0"))
    if faults:
        raise ModelProblem(series.source or "profile", faults)
    power_w = tuple(watts(rate) for rate in series.l2_bps)
    mean_w = math.fsum(power_w) / len(power_w)
    mean_bps = math.fsum(series.l2_bps) / len(series.l2_bps)
    energy_j = mean_w * DAY_S
    traffic_bits = mean_bps * DAY_S
    watts_at_peak = power_w[series.l2_bps.index(series.peak_bps)]
    kwh = energy_j / KWH_J
    return PowerDay(
        step_s=series.step_s,
        l2_bps=series.l2_bps,
        power_w=power_w,
        energy_j=energy_j,
        mean_w=mean_w,
        peak_w=max(power_w),
        least_w=min(power_w),
        traffic_bits=traffic_bits,
        energy_per_terabyte_j=energy_j * _TERABYTE_BITS / traffic_bits,
        proportional_j=watts_at_peak * mean_bps / series.peak_bps * DAY_S,
        cost=None if price_per_kwh is None else kwh * price_per_kwh,
        carbon_g=None if carbon_g_per_kwh is None else kwh * carbon_g_per_kwh,
        scope=scope,
        source=source,
        profile=series.source,
        notes=series.notes,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WattsSource:
    """Watts over load with their scope, source and notes."""

    watts: Watts
    scope: str
    source: str
    notes: tuple[str, ...]


def router_watts(
    trials: TrialWatts, loads_bps: Sequence[float], *, evaluator: str, on_progress: Progress
) -> WattsSource:
    """Return the watts of a router over the loads of a day, from one trial per load and at most 20 trials."""
    curve = PowerCurve.through(trials, loads_bps, on_progress=on_progress)
    trace = trials.load.arrivals.trace
    if trace is None:
        notes = [f"frames of {trials.load.frames.name}, {evaluator}"]
    else:
        notes = [*trace.notes, f"frames of the trace, its times scaled to each load, {evaluator}"]
    if curve.is_interpolated:
        notes.append(f"trials at {len(curve.l2_bps)} loads, straight lines between them")
    if trials.losses:
        l2_bps, ratio = max(trials.losses, key=lambda loss: loss[1])
        notes.append(
            f"the router does not carry this day: at {format_bps(l2_bps)} it loses {format_ratio(ratio)}; "
            "the watts are those of the traffic that it does carry"
        )
    if trials.doubts:
        notes.append(_note_on_doubts(trials.doubts, len(curve.l2_bps)))
    return WattsSource(watts=curve.at, scope=trials.scope, source=trials.source, notes=tuple(notes))


def _note_on_doubts(doubts: Sequence[tuple[float, float]], trials: int) -> str:
    """Return the note on loads at which the closed form does not know that nothing is lost."""
    unknown_bps = [l2_bps for l2_bps, ratio in doubts if math.isnan(ratio)]
    if unknown_bps:
        what = f"is not known at {len(unknown_bps)} of {trials} loads, from {format_bps(min(unknown_bps))} on"
    else:
        l2_bps, ratio = max(doubts, key=lambda doubt: doubt[1])
        what = f"is at most {format_ratio(ratio)}, at {format_bps(l2_bps)}"
    return f"whether the router carries this day is not known: its loss {what}; use --evaluator simulate"


def model_watts(
    model: PowerModel, frames: FrameMix, capacity_bps: float, *, file: str, capacity_source: str, ports_source: str
) -> WattsSource:
    """Return the watts of a power model; the notes name ``capacity_source`` and ``ports_source``."""
    notes = [f"the capacity at full load is {format_bps(capacity_bps)}: {capacity_source}", f"packets of {frames.name}"]
    if isinstance(model, PortPower):
        up = ", ".join(f"{equipped.up} x {name}" for name, equipped in model.equipped.items() if equipped.up)
        notes.append(f"ports that are up: {up}, as {ports_source}")
    watts = ModelWatts(model=model, frame_bytes=frames.mean_bytes, capacity_bps=capacity_bps)
    return WattsSource(watts=watts, scope=model.scope, source=f"power model {file}", notes=tuple(notes))
