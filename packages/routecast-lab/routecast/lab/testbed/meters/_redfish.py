"""A server's controller over Redfish (DMTF DSP0266): the power of its chassis.

``/redfish/v1/Chassis`` lists the chassis. Each has ``EnvironmentMetrics`` with ``PowerWatts.Reading`` (DSP2046, since
2020.4), or the older ``Power`` with ``PowerControl[].PowerConsumedWatts``, or neither.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from routecast.errors import EnvironmentProblem
from routecast.lab.testbed.meters._meter import Zone
from routecast.lab.testbed.meters._sampled import Sample, Source
from routecast.lab.testbed.meters._web import Credentials, NotFound, Web, masked

_ROOT: Final = "/redfish/v1"
_PART_WORDS: Final = ("cpu", "memory", "fan", "gpu", "accelerator", "storage", "networkingdevice", "powersupply")
"""``PhysicalContext`` or words in the name of entries of ``PowerControl`` that are a part of the chassis."""


class RedfishSource(Source):
    """Watts of the chassis of a controller.

    ``url`` is ``https://CONTROLLER``, or the address of one chassis: ``https://CONTROLLER/redfish/v1/Chassis/1``;
    ``timeout_s`` limits each answer; ``verify_tls`` requires a valid certificate.
    """

    def __init__(self, url: str, *, credentials: Credentials, timeout_s: float = 5.0, verify_tls: bool = True) -> None:
        self.name = f"redfish:{masked(url)}"
        self.scope = "bmc"
        self._web = Web(
            url,
            meter=self.name,
            credentials=credentials,
            timeout_s=timeout_s,
            verify_tls=verify_tls,
            token_as="redfish",
        )
        self._paths: dict[str, str] = {}
        self._energy_kwh: dict[str, list[float]] = {}
        self.zones: tuple[Zone, ...] = ()

    def open(self) -> None:
        """Find the chassis that report their power.

        Raises EnvironmentProblem: the controller does not answer, or no chassis reports its power.
        """
        try:
            self._find_chassis()
        except BaseException:
            self.close()
            raise

    def read(self) -> Mapping[str, float]:
        """Return the watts of each chassis.

        Raises EnvironmentProblem: the controller does not answer, or no longer reports the power.
        """
        values = {}
        for chassis, path in self._paths.items():
            document = self._document(path)
            watts = watts_of_environment(document)
            if math.isnan(watts):
                watts = watts_of_power(document)
            if math.isnan(watts):
                raise EnvironmentProblem(f"power meter {self.name}: {path} has no power in watts any more")
            values[_name(chassis)] = watts
            energy = _reading(document.get("EnergykWh"))
            if math.isfinite(energy):
                self._energy_kwh.setdefault(_name(chassis), []).append(energy)
        return values

    def notes(self, samples: Sequence[Sample]) -> Sequence[str]:
        """Return notes on the controller's own counters of energy and on a power that never changed."""
        notes = []
        for zone in self.zones:
            values = [sample.values[zone.name] for sample in samples if zone.name in sample.values]
            if len(values) > 4 and len(set(values)) == 1:
                notes.append(
                    f"{zone.name} reported {values[0]:g} W {len(values)} times: controllers update their figure "
                    "rarely, and this interval may be shorter"
                )
            energy = self._energy_kwh.get(zone.name, [])
            if len(energy) > 1 and energy[-1] > energy[0]:
                energy_j = 3.6e6 * (energy[-1] - energy[0])
                notes.append(f"the controller's own counter of {zone.name} rose by {energy_j:.4g} J meanwhile")
        return notes

    def close(self) -> None:
        """End the connection."""
        self._web.close()

    def _find_chassis(self) -> None:
        self._paths, self._energy_kwh = {}, {}
        path = self._web.path.rstrip("/")
        paths = [path] if "/Chassis/" in path else self._chassis_paths()
        enclosure_of: dict[str, str] = {}
        powerless = []
        for chassis in paths:
            document = self._document(chassis)
            if path := self._power_path(document):
                self._paths[chassis] = path
                enclosure_of[chassis] = _link(document.get("Links", {}), "ContainedBy").rstrip("/")
            else:
                powerless.append(str(document.get("Id") or chassis))
        if not self._paths:
            message = f"no chassis reports its power (looked at {', '.join(powerless) or 'none'})"
            raise EnvironmentProblem(
                f"power meter {self.name}: {message}: neither EnvironmentMetrics with PowerWatts nor Power with "
                "PowerControl[].PowerConsumedWatts"
            )
        # The power of an enclosure holds that of the chassis in it.
        self.zones = tuple(
            Zone(name=_name(chassis), scope="bmc", is_counted=enclosure_of[chassis] not in self._paths)
            for chassis in self._paths
        )

    def _chassis_paths(self) -> list[str]:
        document = self._document(f"{_ROOT}/Chassis")
        members = document.get("Members")
        if not isinstance(members, list):
            raise EnvironmentProblem(f"power meter {self.name}: {_ROOT}/Chassis lists no Members: is this Redfish?")
        return [path.rstrip("/") for member in members if (path := _link({"it": member}, "it"))]

    def _power_path(self, chassis: Mapping[str, Any]) -> str:
        """Return the path of the document with the power of a chassis; empty if there is none."""
        for name, watts in (("EnvironmentMetrics", watts_of_environment), ("Power", watts_of_power)):
            if path := _link(chassis, name):
                try:
                    document = self._document(path)
                except NotFound:
                    continue  # the link leads nowhere; the other document may exist
                if not math.isnan(watts(document)):
                    return path
        return ""

    def _document(self, path: str) -> dict[str, Any]:
        document = self._web.get_json(path)
        if not isinstance(document, dict):
            raise EnvironmentProblem(f"power meter {self.name}: {path} is not a Redfish resource")
        return document


def watts_of_environment(document: Mapping[str, Any]) -> float:
    """Return the power of an ``EnvironmentMetrics`` document; NaN if it has none.

    Examples
    --------
    >>> watts_of_environment({"PowerWatts": {"Reading": 374}})
    374.0
    """
    return _reading(document.get("PowerWatts"))


def watts_of_power(document: Mapping[str, Any]) -> float:
    """Return the power of the whole chassis from a ``Power`` document; NaN if it has none.

    ``PowerControl`` lists the whole chassis first and on some machines its parts after it, so entries are never added.

    Examples
    --------
    >>> watts_of_power({"PowerControl": [{"Name": "System Input Power", "PowerConsumedWatts": 344}]})
    344.0
    """
    entries = document.get("PowerControl")
    if not isinstance(entries, list):
        return math.nan
    for entry in entries:
        if not isinstance(entry, dict):
            continue
        words = f"{entry.get('PhysicalContext') or ''} {entry.get('Name') or ''}".lower()
        watts = _number(entry.get("PowerConsumedWatts"))
        if not math.isnan(watts) and not any(part in words for part in _PART_WORDS):
            return watts
    return math.nan


def _reading(excerpt: object) -> float:
    return _number(excerpt.get("Reading")) if isinstance(excerpt, dict) else math.nan


def _number(value: object) -> float:
    """Return a number >= 0, which some controllers write as text; NaN for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return math.nan
    try:
        number = float(value)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) and number >= 0.0 else math.nan


def _link(document: Mapping[str, Any], name: str) -> str:
    entry = document.get(name) if isinstance(document, dict) else None
    path = entry.get("@odata.id") if isinstance(entry, dict) else None
    # Only paths of this host: a document may not send the password elsewhere.
    return path if isinstance(path, str) and path.startswith("/") and not path.startswith("//") else ""


def _name(path: str) -> str:
    return f"chassis {path.rpartition('/')[2]}"
