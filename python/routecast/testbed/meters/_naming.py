"""Meters by name: ``rapl``, ``perf``, ``ipmi``, ``redfish:URL``, ``csv:FILE``, ``http://…``."""

from __future__ import annotations

import urllib.parse
from pathlib import Path
from typing import Final

from routecast.errors import FileProblem, Problem
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import field, value
from routecast.testbed.meters._csv_log import CsvMeter
from routecast.testbed.meters._http_watts import HttpSource
from routecast.testbed.meters._ipmi import IpmiSource
from routecast.testbed.meters._perf import PerfSource
from routecast.testbed.meters._rapl import RAPL_INTERVAL_S, RaplSource
from routecast.testbed.meters._redfish import RedfishSource
from routecast.testbed.meters._sampled import SampledMeter, Source
from routecast.testbed.meters._web import Credentials, credentials_for
from routecast.testbed.meters.meter import PowerMeter

AUTO: Final = "auto"
"""Name of the first meter that can be read here."""

KINDS: Final = ("rapl", "perf", "ipmi", "redfish", "csv", "http")

_INTERVAL_S = 1.0


@value
class MeterSettings:
    """How a meter is read."""

    interval_s: float | None = field(
        "Time between samples; None: 0.1 s for counters of the processor, 1 s for other meters", default=None
    )
    scope: str | None = field(
        "What the figures of a file or a web address cover: ``pdu`` (default), ``wall``", default=None
    )
    verify_tls: bool = field("Whether the certificate of a host must be good", default=True)
    timeout_s: float = field("For each answer of a host", default=5.0)


def meter_of(text: str, settings: MeterSettings | None = None, *, root: Path = Path("/")) -> PowerMeter:
    """Return the meter of a name; nothing is read yet.

    ``text`` is ``rapl``, ``rapl:psys``, ``rapl:dram``, ``rapl:package+dram``, the same with ``perf``, ``ipmi``,
    ``ipmi:HOST``, ``redfish:URL``, ``csv:FILE``, ``http:URL`` or the address alone; ``root`` is the folder of the
    machine's files. Raises FileProblem: there is no such meter, or its address is malformed; EnvironmentProblem:
    credentials are incomplete, or would go over the network in the clear.
    """
    options = settings or MeterSettings()
    kind, _, rest = text.strip().partition(":")
    if kind in {"http", "https"} and rest.startswith("//"):
        kind, rest = "http", text.strip()
    if kind not in KINDS:
        raise _refused(f"got {text!r}: {did_you_mean(kind, (*KINDS, AUTO))}")
    if kind in {"redfish", "csv", "http"} and not rest:
        wanted = {"csv": "csv:FILE"}.get(kind, f"{kind}:https://HOST/…")
        raise _refused(f"got {text!r}: write {wanted}")
    if options.scope is not None and kind not in {"csv", "http"}:
        raise _refused(f"scope {options.scope!r} is given for {kind}, which knows its own: leave it out")
    interval_s = options.interval_s or (RAPL_INTERVAL_S if kind in {"rapl", "perf"} else _INTERVAL_S)
    if kind == "csv":
        return CsvMeter(Path(rest).expanduser(), scope=options.scope or "pdu", interval_s=interval_s)
    return SampledMeter(_source(kind, rest, options, root), interval_s=interval_s)


def _source(kind: str, rest: str, options: MeterSettings, root: Path) -> Source:
    if kind == "rapl":
        return RaplSource(root, covers=rest or "package")
    if kind == "perf":
        return PerfSource(root, covers=rest or "package")
    if kind == "ipmi":
        return IpmiSource(rest, credentials=credentials_for(rest) if rest else None)
    if kind == "redfish":
        return RedfishSource(rest, credentials=_login(rest), timeout_s=options.timeout_s, verify_tls=options.verify_tls)
    return HttpSource(
        rest, credentials=_login(rest), scope=options.scope, timeout_s=options.timeout_s, verify_tls=options.verify_tls
    )


def _login(url: str) -> Credentials:
    try:
        host = urllib.parse.urlsplit(url).hostname
    except ValueError:
        host = None
    return credentials_for(host) if host else Credentials()


def _refused(what: str) -> FileProblem:
    return FileProblem("power meter", [Problem("", what)])
