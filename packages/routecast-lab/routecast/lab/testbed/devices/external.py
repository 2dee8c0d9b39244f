"""An external device: its owner starts, configures and describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import ClassVar, Literal

from routecast.errors import FileProblem, Problem
from routecast.lab.testbed.devices.options import DeviceOptions, option
from routecast.lab.testbed.dut_host import DeviceSite, Missing

__all__ = ["External", "ExternalOptions"]

_NO_RESET = "routecast cannot reset a device that it did not start"


@dataclass(frozen=True, kw_only=True)
class ExternalOptions(DeviceOptions):
    """The owner's description of the device, which RFC 2544 sec. 7 wants in every report."""

    product: str = option("not given", "maker and model")
    version: str = option("not given", "version of its software")
    configuration: str = option("not given", "its configuration, as the device shows it")
    disabled: str = option("not given", "features that were switched off for the test")


class External:
    """A device under test that routecast does not start, stop or reset, and whose counters it does not read."""

    name: ClassVar[str] = "external"
    title: ClassVar[str] = "external device"
    layer: ClassVar[Literal[2, 3]] = 3
    data_path: ClassVar[Literal["kernel", "process"]] = "process"
    options: ClassVar[type[ExternalOptions]] = ExternalOptions
    reset_kinds: tuple[str, ...] = ()

    def __init__(self, options: ExternalOptions | None = None) -> None:
        self.chosen = options if options is not None else ExternalOptions()

    def missing(self) -> tuple[Missing, ...]:
        """Return no program: nothing is missing."""
        return ()

    def start(self, site: DeviceSite) -> None:
        """Do nothing: the device runs."""

    def stop(self) -> None:
        """Do nothing: the device runs on."""

    def restart(self, kind: str) -> None:
        """Raise FileProblem: routecast cannot reset the device."""
        raise FileProblem("device external", [Problem("reset", f'"{kind}" is not run: {_NO_RESET}')])

    def facts(self) -> Mapping[str, object]:
        """Return the owner's description."""
        return {
            "name": self.name,
            "title": self.title,
            **asdict(self.chosen),
            "reset_kinds": [],
            "resets_not_run": {"all": _NO_RESET},
        }

    def counters(self) -> Mapping[str, int]:
        """Return no counts."""
        return {}
