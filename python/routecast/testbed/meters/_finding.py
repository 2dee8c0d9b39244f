"""Which meters are here, in the order in which one would choose, and of each that is not, why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from routecast.errors import EnvironmentProblem
from routecast.quantity.schema import field, value
from routecast.testbed.meters._ipmi import IpmiSource, Run, run_program
from routecast.testbed.meters._naming import AUTO, MeterSettings, meter_of
from routecast.testbed.meters._perf import PerfSource, open_event
from routecast.testbed.meters._rapl import RaplSource, read_text
from routecast.testbed.meters._sampled import Source
from routecast.testbed.meters.meter import PowerMeter

_PREFIX = "power meter "


@value
class FoundMeter:
    """A kind of meter, and how it stands with it on this machine."""

    name: str = field("As one names it")
    title: str = field("What it is")
    scope: str = field("What its figures cover")
    is_readable: bool
    why_not: str = field("Why it cannot be read, with what to do; empty if it can", default="")
    needs_address: bool = field("It is elsewhere: nobody can find it without being told where", default=False)


def find_meters(
    root: Path = Path("/"),
    *,
    read: Callable[[Path], str] = read_text,
    opener: Callable[[int, int, int], int] = open_event,
    run: Run | None = None,
) -> tuple[FoundMeter, ...]:
    """Return every kind of meter, those first that one would choose first.

    Counters of the processor go first: they are exact over any interval. Then the server's controller, which sees
    more and is slow. What needs an address comes last.

    ``root``: where the machine's files are; ``/`` for this machine; ``read``, ``opener`` and ``run``: read a file of
    the tree, open a counter, run a program. Programs are run on this machine only.
    """
    if run is None:
        run = run_program if root == Path("/") else _recorded
    return (
        _tried("RAPL through powercap", RaplSource(root, read=read)),
        _tried("RAPL through the kernel's energy events", PerfSource(root, opener=opener)),
        _tried("the server's controller over IPMI", IpmiSource(run=run)),
        _elsewhere("redfish:URL", "a server's controller over Redfish", "bmc", "redfish:https://CONTROLLER"),
        _elsewhere("csv:FILE", "a log that a meter's program appends to", "pdu", "csv:FILE (time, watts)"),
        _elsewhere("http:URL", "a power strip, plug or exporter", "pdu", "http://HOST/…#/json/pointer or #metric"),
    )


def no_power(meters: Sequence[FoundMeter]) -> str:
    """Return in one text why there is no power here.

    Examples
    --------
    >>> no_power([FoundMeter(name="ipmi", title="", scope="bmc", is_readable=False, why_not="ipmitool is not there")])
    'no power here, because: ipmi: ipmitool is not there'
    """
    reasons = [
        f"{meter.name}: {meter.why_not}" for meter in meters if not meter.needs_address and not meter.is_readable
    ]
    return f"no power here, because: {'; '.join(reasons)}"


def choose_meter(
    text: str, settings: MeterSettings | None = None, *, root: Path = Path("/")
) -> tuple[PowerMeter | None, str]:
    """Return the meter that is asked for, and why there is none.

    ``"auto"`` takes the first that can be read; where there is none, runs go on without, and the second value says
    why. A meter that is asked for by name is returned whether it can be read or not: starting it says what is wrong.

    Raises FileProblem: there is no meter of this name.
    """
    if text != AUTO:
        return meter_of(text, settings, root=root), ""
    meters = find_meters(root)
    chosen = next((meter for meter in meters if meter.is_readable), None)
    return (None, no_power(meters)) if chosen is None else (meter_of(chosen.name, settings, root=root), "")


def _tried(title: str, source: Source) -> FoundMeter:
    try:
        source.open()
        try:
            source.read()
        finally:
            source.close()
    except EnvironmentProblem as problem:
        why = str(problem).removeprefix(f"{_PREFIX}{source.name}: ").removeprefix(_PREFIX)
        return FoundMeter(name=source.name, title=title, scope=source.scope, is_readable=False, why_not=why)
    return FoundMeter(name=source.name, title=title, scope=source.scope, is_readable=True)


def _elsewhere(name: str, title: str, scope: str, form: str) -> FoundMeter:
    return FoundMeter(
        name=name, title=title, scope=scope, is_readable=False, why_not=f"needs an address: {form}", needs_address=True
    )


def _recorded(command: Sequence[str], environment: object) -> str:
    del environment
    raise EnvironmentProblem(f"{_PREFIX}ipmi: {command[0]} is not run for files of another machine")
