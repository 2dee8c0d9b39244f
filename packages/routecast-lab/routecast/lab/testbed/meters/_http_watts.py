"""Watts from a web address: power strips, smart plugs, Kepler, Scaphandre.

The fragment of the address, after ``#``, names the value in the answer::

    http://plug/status                                       the answer is a number: 23.5
    http://plug/status#/meters/0/power                       JSON, by a pointer (RFC 6901)
    http://node:9100/metrics#pdu_outlet_watts{outlet="3"}    Prometheus text, by the metric and its labels

A metric counts watts, unless its name ends otherwise, as Prometheus names do: ``…_milliwatts``, ``…_microwatts``, and
``…_joules`` or ``…_joules_total`` for counters of energy.
"""

from __future__ import annotations

import json
import math
import re
import urllib.parse
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from routecast.errors import EnvironmentProblem
from routecast.lab.testbed.meters._meter import Zone
from routecast.lab.testbed.meters._sampled import Sample, Source
from routecast.lab.testbed.meters._web import Credentials, Web, masked

_ZONE = "power"
_SCALES: Final = {"microwatts": 1e-6, "milliwatts": 1e-3, "kilowatts": 1e3, "microjoules": 1e-6}
_LINE = re.compile(
    r"(?P<name>[A-Za-z_:][\w:]*)(?:\{(?P<labels>[^}]*)\})?\s+(?P<value>[^\s]+)(?:\s+-?\d+(?:\.\d+)?)?\s*"
)
_LABEL = re.compile(r'(?P<name>[A-Za-z_]\w*)\s*=\s*"(?P<value>(?:[^"\\]|\\.)*)"')
_SELECTOR = re.compile(r"(?P<name>[A-Za-z_:][\w:]*)(?:\{(?P<labels>.*)\})?")
_RAPL_EXPORTERS: Final = ("kepler_", "scaph_")
"""Prefixes of exporters that read RAPL."""

_MAX_LISTED_SERIES = 4


class HttpSource(Source):
    """Watts, or a counter of joules, from a web address.

    The fragment of ``url`` names the value in the answer. A token is sent as ``Authorization: Bearer``. ``scope`` is
    ``pdu`` by default, ``rapl`` for exporters that read RAPL; ``timeout_s`` limits each answer.
    """

    def __init__(
        self,
        url: str,
        *,
        credentials: Credentials,
        scope: str | None = None,
        timeout_s: float = 5.0,
        verify_tls: bool = True,
    ) -> None:
        self._fragment = urllib.parse.unquote(url.partition("#")[2])
        self.name = masked(url)
        self._web = Web(url, meter=self.name, credentials=credentials, timeout_s=timeout_s, verify_tls=verify_tls)
        metric = "" if self._fragment.startswith("/") else self._fragment.partition("{")[0]
        self._is_exporter = metric.startswith(_RAPL_EXPORTERS)
        self.scope = scope or ("rapl" if self._is_exporter else "pdu")
        base = metric.removesuffix("_total")
        self.is_gauge = not base.endswith("joules")
        self._scale = next((scale for end, scale in _SCALES.items() if base.endswith(end)), 1.0)
        self.zones: tuple[Zone, ...] = (Zone(name=_ZONE, scope=self.scope),)

    def read(self) -> Mapping[str, float]:
        """Return the value.

        Raises EnvironmentProblem: the host does not answer, or there is no number at the fragment.
        """
        body = self._web.get(self._web.path)
        text = body.decode("utf-8", errors="replace")
        try:
            if self._fragment.startswith("/") or not self._fragment:
                value = json_number(json.loads(text), self._fragment)
            else:
                value = metric_value(text, self._fragment)
        except ValueError as problem:
            message = "the answer is not a number" if isinstance(problem, json.JSONDecodeError) else str(problem)
            hint = "" if self._fragment else "; name the value with #/json/pointer or #metric_name"
            raise EnvironmentProblem(f"power meter {self.name}: {message}{hint}") from problem
        if not (math.isfinite(value) and value >= 0.0):
            raise EnvironmentProblem(f"power meter {self.name}: got {value:g}, which is not a power")
        return {_ZONE: self._scale * value}

    def power_w(self, zone: str, before: Sample, after: Sample) -> float:
        """Return the mean of two samples, or the energy between them over their time."""
        if self.is_gauge:
            return super().power_w(zone, before, after)
        rise_j = after.values[zone] - before.values[zone]
        # A counter that falls has restarted at 0, as Prometheus' rate() assumes.
        return (rise_j if rise_j >= 0.0 else after.values[zone]) / (after.at_s - before.at_s)

    def notes(self, samples: Sequence[Sample]) -> Sequence[str]:
        """Return notes on restarts of a counter and on the zones of an exporter."""
        notes = []
        values = [sample.values[_ZONE] for sample in samples]
        restarts = sum(after < before for before, after in pairwise(values))
        if restarts and not self.is_gauge:
            notes.append(f"the counter restarted {restarts} times: the energy before each restart is lost")
        if self._is_exporter:
            notes.append("an exporter reads RAPL: its documentation names the zones of this figure")
        return notes

    def close(self) -> None:
        """End the connection."""
        self._web.close()


def json_number(document: Any, pointer: str) -> float:
    """Return the number at a JSON pointer (RFC 6901).

    Raises ValueError: there is none; the message names the part of the pointer that exists.

    Examples
    --------
    >>> json_number({"meters": [{"power": "23.5"}]}, "/meters/0/power")
    23.5
    """
    node = document
    for number, raw in enumerate(pointer.split("/")[1:]):
        key = raw.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and key in node:
            node = node[key]
        elif isinstance(node, list) and key.isdigit() and int(key) < len(node):
            node = node[int(key)]
        else:
            reached = "/".join(pointer.split("/")[: number + 1]) or "the top"
            if isinstance(node, dict):
                content = f"has {', '.join(list(node)[:8]) or 'nothing'}"
            else:
                content = f"is a {'list of ' + str(len(node)) if isinstance(node, list) else type(node).__name__}"
            raise ValueError(f"the answer has no {pointer}: {reached} {content}")
    if isinstance(node, bool) or not isinstance(node, int | float | str):
        raise ValueError(f"{pointer or 'the answer'} is {type(node).__name__}, not a number")
    try:
        return float(node)
    except ValueError:
        raise ValueError(f"{pointer or 'the answer'} is {str(node)[:40]!r}, not a number") from None


def metric_value(text: str, selector: str) -> float:
    r"""Return the value of a metric in Prometheus' text format.

    Series are never added, since the zones in an exporter's labels contain one another.

    Raises ValueError: no metric has this name, or several series match its labels.

    Examples
    --------
    >>> metric_value('watts{outlet="1"} 20\nwatts{outlet="2"} 31.5\n', 'watts{outlet="2"}')
    31.5
    """
    selected = _SELECTOR.fullmatch(selector.strip())
    if selected is None:
        raise ValueError(f'{selector!r} is not a metric name: write #name or #name{{label="value"}}')
    labels = _labels(selected["labels"])
    values, names = [], set()
    for line in text.splitlines():
        match = _LINE.fullmatch(line.strip())
        if match is None or line.startswith("#"):
            continue
        names.add(match["name"])
        if match["name"] == selected["name"] and labels.items() <= _labels(match["labels"]).items():
            values.append((match["labels"] or "", match["value"]))
    if len(values) == 1:
        try:
            return float(values[0][1])
        except ValueError:
            raise ValueError(f"{selected['name']} is {values[0][1][:40]!r}, not a number") from None
    if values:
        series_list = ", ".join(f"{{{series}}}" for series, _ in values[:_MAX_LISTED_SERIES])
        raise ValueError(
            f"{len(values)} series match {selector}, which are not added: name one by its labels: {series_list}"
        )
    similar = sorted(name for name in names if "watt" in name or "joule" in name or "power" in name)
    hint = f"; there are {', '.join(similar[:8])}" if similar else ""
    raise ValueError(f"the answer has no metric {selector}{hint}")


def _labels(text: str | None) -> dict[str, str]:
    return {match["name"]: match["value"] for match in _LABEL.finditer(text or "")}
