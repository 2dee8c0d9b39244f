"""From what people write to a meter: ``rapl``, ``perf``, ``ipmi``, ``redfish:URL``, ``csv:FILE``, ``http://…``."""

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
"""What people write for the first meter that can be read here."""

KINDS: Final = ("rapl", "perf", "ipmi", "redfish", "csv", "http")

_INTERVALS_S: Final = {"rapl": RAPL_INTERVAL_S, "perf": RAPL_INTERVAL_S}
_OTHERS_S = 1.0


@value
class MeterSettings:
    """How a meter is asked."""

    interval_s: float | None = field(
        "Time between samples; None: 0.1 s for counters of the processor, 1 s for all others", default=None
    )
    scope: str | None = field(
        "What the figures of a file or a web address cover: ``pdu`` (default), ``wall``", default=None
    )
    verify_tls: bool = field("Whether the certificate of a host must be good", default=True)
    timeout_s: float = field("For each answer of a host", default=5.0)


def meter_of(text: str, settings: MeterSettings | None = None, *, root: Path = Path("/")) -> PowerMeter:
    """Return the meter of a name; nothing is read yet.

    ``text``: ``rapl``, ``rapl:psys``, ``rapl:dram``, ``rapl:package+dram``, the same with ``perf``, ``ipmi``,
    ``ipmi:HOST``, ``redfish:URL``, ``csv:FILE``, ``http:URL`` or the address alone; ``root``: where the machine's files
    are. Raises FileProblem: there is no such meter, or its address is none; EnvironmentProblem: credentials are missing
    a half, or would go over the network in the clear.
    """
    chosen = settings or MeterSettings()
    kind, _, rest = text.strip().partition(":")
    if kind in {"http", "https"} and rest.startswith("//"):
        kind, rest = "http", text.strip()
    if kind not in KINDS:
        raise _refused(f"got {text!r}: {did_you_mean(kind, (*KINDS, AUTO))}")
    if kind in {"redfish", "csv", "http"} and not rest:
        wanted = {"csv": "csv:FILE"}.get(kind, f"{kind}:https://HOST/…")
        raise _refused(f"got {text!r}: write {wanted}")
    if chosen.scope is not None and kind not in {"csv", "http"}:
        raise _refused(f"scope {chosen.scope!r} is given for {kind}, which knows its own: leave it out")
    interval_s = chosen.interval_s or _INTERVALS_S.get(kind, _OTHERS_S)
    if kind == "csv":
        return CsvMeter(Path(rest).expanduser(), scope=chosen.scope or "pdu", interval_s=interval_s)
    return SampledMeter(_source(kind, rest, chosen, root), interval_s=interval_s)


def _source(kind: str, rest: str, chosen: MeterSettings, root: Path) -> Source:
    if kind == "rapl":
        return RaplSource(root, covers=rest or "package")
    if kind == "perf":
        return PerfSource(root, covers=rest or "package")
    if kind == "ipmi":
        return IpmiSource(rest, credentials=credentials_for(rest) if rest else None)
    if kind == "redfish":
        return RedfishSource(rest, credentials=_login(rest), timeout_s=chosen.timeout_s, verify_tls=chosen.verify_tls)
    return HttpSource(
        rest, credentials=_login(rest), scope=chosen.scope, timeout_s=chosen.timeout_s, verify_tls=chosen.verify_tls
    )


def _login(url: str) -> Credentials:
    try:
        host = urllib.parse.urlsplit(url).hostname
    except ValueError:
        host = None
    return credentials_for(host) if host else Credentials()


def _refused(what: str) -> FileProblem:
    return FileProblem("power meter", [Problem("", what)])
