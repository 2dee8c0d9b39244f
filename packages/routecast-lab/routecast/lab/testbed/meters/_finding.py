"""Power meters by name (``rapl``, ``perf``, ``ipmi``, ``redfish:URL``, …), of this machine, and of a run."""

from __future__ import annotations

import urllib.parse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from routecast.errors import EnvironmentProblem, FileProblem, Problem
from routecast.lab.testbed.document import MeterSettings, MeterTable
from routecast.lab.testbed.meters._csv_log import CsvMeter
from routecast.lab.testbed.meters._http_watts import HttpSource
from routecast.lab.testbed.meters._ipmi import IpmiSource, RunProgram, run_program
from routecast.lab.testbed.meters._meter import PowerMeter
from routecast.lab.testbed.meters._perf import PerfSource, open_event
from routecast.lab.testbed.meters._rapl import RAPL_INTERVAL_S, RaplSource
from routecast.lab.testbed.meters._redfish import RedfishSource
from routecast.lab.testbed.meters._sampled import SampledMeter, Source
from routecast.lab.testbed.meters._web import Credentials, credentials_for
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import field, value

AUTO: Final = "auto"
"""Name of the first meter that can be read here."""

_PREFIX = "power meter "
_KINDS: Final = ("rapl", "perf", "ipmi", "redfish", "csv", "http")

_INTERVAL_S = 1.0


def meter_of(text: str, settings: MeterSettings | None = None, *, root: Path = Path("/")) -> PowerMeter:
    """Return the meter of a name, without reading it.

    ``text`` is ``rapl``, ``rapl:psys``, ``rapl:dram``, ``rapl:package+dram``, the same with ``perf``, ``ipmi``,
    ``ipmi:HOST``, ``redfish:URL``, ``csv:FILE``, ``http:URL`` or the address alone; ``root`` is the folder of the
    machine's files. Raises FileProblem: there is no such meter, or its address is malformed; EnvironmentProblem:
    credentials are incomplete, or would go over the network in the clear.
    """
    settings = settings or MeterSettings()
    kind, _, address = text.strip().partition(":")
    if kind in {"http", "https"} and address.startswith("//"):
        kind, address = "http", text.strip()
    if kind not in _KINDS:
        raise _name_problem(f"got {text!r}: {did_you_mean(kind, (*_KINDS, AUTO))}")
    if kind in {"redfish", "csv", "http"} and not address:
        raise _name_problem(f"got {text!r}: write {'csv:FILE' if kind == 'csv' else f'{kind}:https://HOST/…'}")
    if settings.scope is not None and kind not in {"csv", "http"}:
        raise _name_problem(f"scope {settings.scope!r} is given for {kind}, which has its own scope: leave it out")
    interval_s = settings.interval or (RAPL_INTERVAL_S if kind in {"rapl", "perf"} else _INTERVAL_S)
    if kind == "csv":
        return CsvMeter(Path(address).expanduser(), scope=settings.scope or "pdu", interval_s=interval_s)
    return SampledMeter(_source(kind, address, settings, root), interval_s=interval_s)


def _source(kind: str, address: str, settings: MeterSettings, root: Path) -> Source:
    if kind == "rapl":
        return RaplSource(root, covers=address or "package")
    if kind == "perf":
        return PerfSource(root, covers=address or "package")
    if kind == "ipmi":
        return IpmiSource(address, credentials=credentials_for(address) if address else None)
    if kind == "redfish":
        return RedfishSource(
            address, credentials=_url_credentials(address), timeout_s=settings.timeout, verify_tls=settings.verify_tls
        )
    return HttpSource(
        address,
        credentials=_url_credentials(address),
        scope=settings.scope,
        timeout_s=settings.timeout,
        verify_tls=settings.verify_tls,
    )


def _url_credentials(url: str) -> Credentials:
    try:
        host = urllib.parse.urlsplit(url).hostname
    except ValueError:
        host = None
    return credentials_for(host) if host else Credentials()


def _name_problem(message: str) -> FileProblem:
    return FileProblem("power meter", [Problem("", message)])


@value
class MeterEntry:
    """A kind of meter on this machine."""

    name: str = field("Name as ``meter_of`` reads it")
    title: str = field("Description")
    scope: str = field("Part of the machine that its figures cover")
    is_readable: bool
    why_not: str = field("Why it cannot be read and what to do; empty if it can", default="")
    needs_address: bool = field("It is on another host or in a file, and needs an address", default=False)


def find_meters(root: Path = Path("/"), *, run: RunProgram | None = None) -> tuple[MeterEntry, ...]:
    """Return every kind of meter, the preferred ones first.

    Counters of the processor come first, since they are exact over any interval. The server's controller comes next: it
    covers more, but it is slow. Meters that need an address come last.

    ``root`` is the folder of the machine's files, ``/`` for this machine; ``run`` runs a program, by default on this
    machine only.
    """
    is_live = root == Path("/")
    if run is None:
        run = run_program if is_live else _refuse_to_run
    return (
        _local_entry("RAPL through powercap", RaplSource(root)),
        _local_entry(
            "RAPL through the kernel's energy events",
            PerfSource(root, opener=open_event if is_live else _refuse_to_open),
        ),
        _local_entry("the server's controller over IPMI", IpmiSource(run=run)),
        _remote_entry("redfish:URL", "a server's controller over Redfish", "bmc", "redfish:https://CONTROLLER"),
        _remote_entry("csv:FILE", "a log that a meter's program appends to", "pdu", "csv:FILE (time, watts)"),
        _remote_entry("http:URL", "a power strip, plug or exporter", "pdu", "http://HOST/…#/json/pointer or #metric"),
    )


def describe_no_power(meters: Sequence[MeterEntry]) -> str:
    """Return why no meter of this machine can be read.

    Examples
    --------
    >>> ipmi = MeterEntry(name="ipmi", title="", scope="bmc", is_readable=False, why_not="ipmitool is missing")
    >>> describe_no_power([ipmi])
    'no power here, because: ipmi: ipmitool is missing'
    """
    reasons = [
        f"{meter.name}: {meter.why_not}" for meter in meters if not meter.needs_address and not meter.is_readable
    ]
    return f"no power here, because: {'; '.join(reasons)}"


def choose_meter(
    text: str, settings: MeterSettings | None = None, *, root: Path = Path("/")
) -> tuple[PowerMeter | None, str]:
    """Return the meter of a name, or None and the reason.

    ``"auto"`` takes the first meter that can be read; if there is none, the second value is the reason. A named meter
    is returned even if it cannot be read; its start then raises the reason.

    Raises FileProblem: there is no meter of this name.
    """
    if text != AUTO:
        return meter_of(text, settings, root=root), ""
    meters = find_meters(root)
    readable = next((meter for meter in meters if meter.is_readable), None)
    return (None, describe_no_power(meters)) if readable is None else (meter_of(readable.name, settings, root=root), "")


def _local_entry(title: str, source: Source) -> MeterEntry:
    try:
        source.open()
        try:
            source.read()
        finally:
            source.close()
    except EnvironmentProblem as problem:
        why = str(problem).removeprefix(f"{_PREFIX}{source.name}: ").removeprefix(_PREFIX)
        return MeterEntry(name=source.name, title=title, scope=source.scope, is_readable=False, why_not=why)
    return MeterEntry(name=source.name, title=title, scope=source.scope, is_readable=True)


def _remote_entry(name: str, title: str, scope: str, form: str) -> MeterEntry:
    return MeterEntry(
        name=name, title=title, scope=scope, is_readable=False, why_not=f"needs an address: {form}", needs_address=True
    )


def _refuse_to_run(command: Sequence[str], environment: object) -> str:
    del environment
    raise EnvironmentProblem(f"{_PREFIX}ipmi: {command[0]} is not run for files of another machine")


def _refuse_to_open(kind: int, number: int, cpu: int) -> int:
    del kind, number, cpu
    raise EnvironmentProblem(f"{_PREFIX}perf: counters are not opened for files of another machine")


def meter_for(table: MeterTable | None, option: str | None) -> tuple[PowerMeter | None, str]:
    """Return the meter of a run, or None and the reason (empty if no meter is wanted).

    ``table`` is ``[power]`` of the file; ``option`` of the command line replaces it, and uses the file's settings if it
    names the file's meter. ``"none"`` switches the file's meter off.

    Raises FileProblem: there is no meter of this name.
    """
    name = option or (table.meter if table is not None else "none")
    if name == "none":
        return None, ""
    return choose_meter(name, table if table is not None and name == table.meter else None)
