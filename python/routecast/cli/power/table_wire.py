"""``routecast power table --testbed``: the power benchmark's table of a real router."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from routecast.cli.console import progress_bar, remark
from routecast.errors import EnvironmentProblem, QuantityProblem

if TYPE_CHECKING:
    from routecast.benchmark.power_table import PowerTable, PowerTableSettings
    from routecast.testbed.document import PowerTable as PowerTableOfFile
    from routecast.testbed.power import PowerMeter

__all__ = ["measured_table"]

_RETRIES = 4
"""How often an invalid trial is run again: as the profile "quick" has it."""

_AVERAGING = "mean of the meter over the time in which frames are sent, one trial for each line"


def measured_table(
    testbed: str,
    *,
    device: str | None,
    options: Sequence[str],
    own_network: bool,
    power: str | None,
    frame: str,
    flows: int | None,
    seed: int,
    settings: PowerTableSettings,
    duration_s: float | None,
    stabilise_s: float | None,
) -> PowerTable:
    """Return the table of the device of a test bed; without lengths those that suit the meter.

    Raises
    ------
    routecast.errors.QuantityProblem
        No meter is named, or flows cannot go both ways alike.
    routecast.errors.EnvironmentProblem
        The meter cannot be read, or the test bed cannot be put up.
    """
    from routecast.benchmark.power_wire import intervals_s, wire_power_table
    from routecast.load.flows import FlowSet
    from routecast.load.frames import FrameMix
    from routecast.load.offered import OfferedLoad
    from routecast.quantity import format_duration
    from routecast.testbed.opening import open_testbed, pairs
    from routecast.testbed.reading import read_testbed

    if flows is not None and flows % 2:
        raise QuantityProblem(str(flows), f"--flows {flows}: give an even number, half of them go each way")
    named = pairs(options)
    meter = _meter(read_testbed(testbed, device=device, options=named).power, power)
    usual_stabilise_s, usual_measure_s = intervals_s(meter.interval_s)
    chosen = replace(
        settings,
        stabilise_s=usual_stabilise_s if stabilise_s is None else stabilise_s,
        measure_s=duration_s or usual_measure_s,
        averaging=_AVERAGING,
    )
    load = OfferedLoad(rate_pps=1.0, frames=FrameMix.parse(frame), flows=FlowSet.crafted(flows or 2, ports=2))
    lengths = f"{format_duration(chosen.stabilise_s)} and {format_duration(chosen.measure_s)}"
    remark(f"{meter.name}, scope {meter.scope}: each line is stabilised and measured for {lengths}")
    with (
        progress_bar("power table") as progress,
        open_testbed(
            testbed,
            device=device,
            options=named,
            own_network=own_network,
            said=remark,
            power=power,
            seed=seed,
            retries=_RETRIES,
        ) as measure,
    ):
        return wire_power_table(measure, load, settings=chosen, report=lambda now: progress(0, 0, now))


def _meter(table: PowerTableOfFile | None, power: str | None) -> PowerMeter:
    """Return the meter of the command line or of the file, if it can be read."""
    from routecast.testbed.power import tried
    from routecast.testbed.power.of_file import meter_for

    meter, no_power = meter_for(table, power)
    if meter is not None:
        return tried(meter)
    if no_power:
        raise EnvironmentProblem(no_power)
    text = "a real router needs a power meter: give --power METER (`routecast power meters` lists them)"
    raise QuantityProblem(power or "", text)
