"""A device that routecast neither starts nor configures: a box on the bench, described by its owner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import ClassVar, Literal

from routecast.testbed.devices.options import check_options, option
from routecast.testbed.dut_host import DeviceSite, Missing

__all__ = ["External", "ExternalOptions"]


@dataclass(frozen=True, kw_only=True)
class ExternalOptions:
    """What the owner says about the device; RFC 2544 sec. 7 asks for it in every report.

    ``product``: maker and model; ``version``: of its software; ``configuration``: as it stands in the device;
    ``disabled``: what was switched off for the test.
    """

    product: str = option("not given", "maker and model")
    version: str = option("not given", "version of its software")
    configuration: str = option("not given", "its configuration, as it stands in the device")
    disabled: str = option("not given", "what was switched off for the test")

    def __post_init__(self) -> None:
        check_options(type(self).__name__, self)


class External:
    """A device under test that stands there already; nothing is started, stopped, reset or counted.

    The tester addresses its frames to the device's port (``layer`` 3).
    """

    name: ClassVar[str] = "external"
    title: ClassVar[str] = "external device"
    layer: ClassVar[Literal[2, 3]] = 3
    data_path: ClassVar[Literal["kernel", "process"]] = "process"
    options: ClassVar[type[ExternalOptions]] = ExternalOptions
    reset_kinds: tuple[str, ...] = ()

    def __init__(self, options: ExternalOptions | None = None) -> None:
        self.chosen = options if options is not None else ExternalOptions()

    def missing(self) -> tuple[Missing, ...]:
        """Return that nothing is missing."""
        return ()

    def start(self, site: DeviceSite) -> None:
        """Start nothing."""

    def stop(self) -> None:
        """End nothing."""

    def restart(self, kind: str) -> None:
        """Refuse: routecast has no hand on the device.

        Raises FileProblem: always.
        """
        from routecast.errors import FileProblem, Problem

        text = f'"{kind}" is not run: routecast cannot reset a device that it did not start'
        raise FileProblem("device external", [Problem("reset", text)])

    def facts(self) -> Mapping[str, object]:
        """Return what the owner says."""
        return {
            "name": self.name,
            "title": self.title,
            **asdict(self.chosen),
            "reset_kinds": [],
            "resets_not_run": {"all": "routecast cannot reset a device that it did not start"},
        }

    def counters(self) -> Mapping[str, int]:
        """Return that nothing is counted."""
        return {}
