"""The power model of a software router whose cores run at chosen frequencies (Bolla et al. 2009, eqs. 1-10)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated

from routecast.errors import ModelProblem, Problem
from routecast.power.form import PUBLISHED_FORM, Form
from routecast.power.model import SCOPE, OperatingPoint
from routecast.quantity.fields import Count, FrameRate, Frequency, Length, Number, Power
from routecast.quantity.schema import field, value

__all__ = ["CoreAtFrequency", "SoftwareRouterPower"]


@value
class CoreAtFrequency:
    """One core at one frequency: its powers Phi_idle(f) and Phi_active(f), and its throughput alone r_max(f)."""

    frequency_hz: Frequency = field('clock, such as "3 GHz"')
    idle_w: Power = field('power of an idle core, such as "20 W"')
    active_w: Power = field('power of a core that is never idle, such as "40 W"')
    max_pps: FrameRate = field('greatest throughput of one core, such as "1040 kpps"', key="max_rate")


@value
class SoftwareRouterPower:
    """Watts of a software router from throughput, frequency and forwarding cores (Bolla et al. 2009, sec. V).

    Notes
    -----
    Equation 10 is damaged in the available text: ``r = sum over c of min{l_c, (…) r_max(f_c)}`` lacks a factor.
    The paper introduces ``|C|``, the number of cores, and uses it in no other legible place; it introduces gamma as
    the gain that "must be measured for each platform", and gives gains as totals ("about 150 %" of one core for two
    Opteron cores, "near to 200 %" for the Xeon). We therefore read ``gamma / |C| · r_max(f_c)``: ``|C|`` cores
    together reach gamma times one core, in equal shares. Gains that were not measured are not extrapolated, because
    the paper gives no law for them. In eq. 9 the same share normalises the throughput of a core,
    ``x(r_c / (gamma / |C| · r_max(f_c)))``, so a core at its maximum draws its active power.
    """

    states: Annotated[tuple[CoreAtFrequency, ...], Length(1)] = field("a core at each frequency, rising", key="state")
    # At most these forward. Cores that do not forward draw Phi_idle.
    cores: Count = field("cores of the machine", default=1, ge=1, le=4096)
    gains: tuple[Number, ...] = field("measured throughput of 1, 2, … cores over that of one core", default=(1.0,))
    form: Form = field('"published", or a table', default=PUBLISHED_FORM)
    scope: str = field(SCOPE, default="server")

    def __post_init__(self) -> None:
        problems = []
        clocks = [state.frequency_hz for state in self.states]
        if not clocks or any(not a < b for a, b in pairwise(clocks)):
            problems.append(Problem("states", f"got {clocks}: give one or more states with rising frequencies"))
        for state in self.states:
            if not state.max_pps > 0.0:
                problems.append(Problem("states", f"at {state.frequency_hz:g} Hz max_pps must be above 0"))
            if not 0.0 <= state.idle_w <= state.active_w:
                problems.append(Problem("states", f"at {state.frequency_hz:g} Hz 0 <= idle_w <= active_w must hold"))
        if not self.gains or self.gains[0] != 1.0 or min(self.gains) <= 0.0:
            problems.append(Problem("gains", f"got {list(self.gains)}: the first must be 1, and all must be above 0"))
        if self.cores < len(self.gains):
            problems.append(Problem("cores", f"got {self.cores}: the gains are those of {len(self.gains)} cores"))
        if problems:
            raise ModelProblem("software router's power model", problems)

    def state(self, frequency_hz: float | None = None) -> CoreAtFrequency:
        """Return the state at a frequency; None stands for the highest.

        Raises ModelProblem: the model has no such frequency.
        """
        if frequency_hz is None:
            return self.states[-1]
        for state in self.states:
            if abs(state.frequency_hz - frequency_hz) <= 1e-6 * state.frequency_hz:
                return state
        model_clocks = ", ".join(f"{state.frequency_hz / 1e9:g} GHz" for state in self.states)
        raise ModelProblem(
            "power", [Problem("frequency_hz", f"got {frequency_hz / 1e9:g} GHz: the model has {model_clocks}")]
        )

    def share_pps(self, forwarding_cores: int, frequency_hz: float | None = None) -> float:
        """Return gamma / |C| · r_max(f): the maximum of each of ``forwarding_cores`` cores (eq. 10).

        Raises ModelProblem: the gain of this number of cores was not measured.
        """
        if not 1 <= forwarding_cores <= len(self.gains):
            allowed = f"1 to {len(self.gains)} forwarding cores; the gain of each number must be measured"
            raise ModelProblem("power", [Problem("cores", f"got {forwarding_cores}: the model allows {allowed}")])
        return self.gains[forwarding_cores - 1] / forwarding_cores * self.state(frequency_hz).max_pps

    def throughput_pps(self, loads_pps: Sequence[float], frequency_hz: float | None = None) -> float:
        """Return the throughput of cores that are offered ``loads_pps`` (eq. 10; eq. 6 for one core)."""
        max_pps_per_core = self.share_pps(len(loads_pps), frequency_hz)
        return sum(min(load, max_pps_per_core) for load in loads_pps)

    def cores_power_w(self, rates_pps: Sequence[float], frequency_hz: float | None = None) -> float:
        """Return the power with one throughput for each forwarding core (eq. 9; eq. 5 for one core)."""
        state = self.state(frequency_hz)
        max_pps_per_core = self.share_pps(len(rates_pps), frequency_hz)
        busy_cores = sum(self.form.at(min(rate / max_pps_per_core, 1.0)) for rate in rates_pps)
        return self.cores * state.idle_w + (state.active_w - state.idle_w) * busy_cores

    def power_w(self, point: OperatingPoint) -> float:
        """Return the power with the load spread equally over the forwarding cores (eqs. 9 and 10).

        Without a rate the load ratio of the point counts: a share of the maximum of its cores at its frequency. A load
        above the maximum is lost and draws no additional power (eq. 6).
        """
        forwarding_cores = len(self.gains) if point.cores is None else point.cores
        if forwarding_cores == 0 and point.rate_pps == 0.0:
            return self.cores * self.state(point.frequency_hz).idle_w
        max_pps_per_core = self.share_pps(forwarding_cores, point.frequency_hz)
        rate = point.rate_pps / forwarding_cores if point.rate_pps > 0.0 else point.load_ratio * max_pps_per_core
        return self.cores_power_w([min(rate, max_pps_per_core)] * forwarding_cores, point.frequency_hz)

    def idle_probability(self, rates_pps: Sequence[float], frequency_hz: float | None = None) -> float:
        """Return the share of time that one core is idle over a series of throughputs in equal steps (eq. 8)."""
        max_pps_per_core = self.share_pps(1, frequency_hz)
        return 1.0 - sum(self.form.at(min(rate / max_pps_per_core, 1.0)) for rate in rates_pps) / len(rates_pps)
