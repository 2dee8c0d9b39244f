"""``routecast power meters`` and ``power read``: the power meters of this machine and their readings."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import data, print_json, print_notes, print_table
from routecast.cli.options import AsJson

if TYPE_CHECKING:
    from routecast.lab.testbed.meters import PowerMeter, PowerReading

__all__ = ["meters", "read"]

_UPDATE_S = 0.25


def meters(*, as_json: AsJson = False) -> None:
    """List the power meters: what each covers, and whether it can be read here, or else the reason and a remedy."""
    from routecast.evaluate.plain import plain
    from routecast.lab.testbed.meters import describe_no_power, find_meters
    from routecast.lab.testbed.views import meters_table

    power_meters = find_meters()
    is_any = any(meter.is_readable for meter in power_meters)
    if as_json:
        print_json({"meters": plain(power_meters), "no_power": None if is_any else describe_no_power(power_meters)})
        return
    print_table(data(), meters_table(power_meters))
    if not is_any:
        data().print(
            "No power can be read from inside this machine; trials continue without. A meter outside is named with "
            "--power or in the test bed's file.",
            markup=False,
        )


def read(
    *,
    meter: Annotated[
        str,
        typer.Option(
            "--meter",
            metavar="METER",
            help="auto, rapl, rapl:psys, rapl:dram, perf, ipmi, redfish:URL, csv:FILE, http:URL.",
        ),
    ] = "auto",
    duration: Annotated[
        str, typer.Option("--duration", metavar="TIME", help="Duration of the readings; Ctrl-C ends them earlier.")
    ] = "10 s",
    interval: Annotated[
        str | None,
        typer.Option(
            "--interval",
            metavar="TIME",
            help="Time between samples; 0.1 s for the processor's counters, else 1 s.",
            show_default=False,
        ),
    ] = None,
    scope: Annotated[
        str | None,
        typer.Option("--scope", metavar="LABEL", help="What a file or a web address covers: pdu (default), wall."),
    ] = None,
    timeout: Annotated[str, typer.Option("--timeout", metavar="TIME", help="For each answer of a host.")] = "5 s",
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Take any certificate of a host, a forged one too.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Read a power meter for a while: mean, least and most power, energy, and each zone.

    User and password of a host come from ROUTECAST_POWER_USER and ROUTECAST_POWER_PASSWORD, a token from
    ROUTECAST_POWER_TOKEN, or both from ~/.netrc.
    """
    from routecast.errors import EnvironmentProblem
    from routecast.lab.testbed.meters import MeterSettings, choose_meter
    from routecast.quantity import parse_duration_s

    duration_s = parse_duration_s(duration)
    settings = MeterSettings.model_construct(
        interval=parse_duration_s(interval) if interval else None,
        scope=scope,
        verify_tls=not insecure,
        timeout=parse_duration_s(timeout),
    )
    chosen, no_power = choose_meter(meter, settings)
    if chosen is None:
        raise EnvironmentProblem(no_power)
    reading = _read_meter(chosen, duration_s)
    if not math.isfinite(reading.mean_w):
        reason = "; ".join(reading.notes) or "the interval is shorter than its steps: give a longer --duration"
        raise EnvironmentProblem(f"power meter {reading.meter} gave no reading: {reason}")
    if as_json:
        print_json(reading.to_json())
    else:
        _print_reading(reading)


def _read_meter(meter: PowerMeter, duration_s: float) -> PowerReading:
    """Read a meter for a duration, and show the latest power on stderr if it is a terminal."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from routecast.quantity import format_power

    console = Console(stderr=True)
    meter.start()
    start_s = time.monotonic()
    try:
        with Live(console=console, auto_refresh=False, transient=True) as line:
            while (left_s := duration_s - (time.monotonic() - start_s)) > 0.0:
                latest_w = meter.latest_w()
                if console.is_terminal and math.isfinite(latest_w):
                    text = f"{meter.name} ({meter.scope}): {format_power(latest_w)}, {left_s:.0f} s left"
                    line.update(Text(text), refresh=True)
                time.sleep(min(_UPDATE_S, left_s))
    except KeyboardInterrupt:
        pass  # The samples up to now are printed.
    except BaseException:
        meter.stop()
        raise
    return meter.stop()


def _print_reading(reading: PowerReading) -> None:
    from routecast.lab.testbed.views import reading_tables
    from routecast.quantity import format_duration

    console = data()
    for table in reading_tables(reading):
        print_table(console, table)
    notes = list(reading.notes)
    if reading.is_partial:
        notes.insert(0, f"{format_duration(reading.metered_s)} of {format_duration(reading.interval_s)} were metered")
    print_notes(console, notes)
