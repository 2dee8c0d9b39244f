"""Options of commands that measure on a test bed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import typer

__all__ = ["CoresOption", "DeviceOptions", "EncapsulationOption", "PowerOption", "ShareCoresOption"]

_bed_option = partial(typer.Option, rich_help_panel="Test bed")

ShareCoresOption = Annotated[
    bool, _bed_option("--share-cores", help="Use cores on which another test bed measures: each disturbs the other.")
]

PowerOption = Annotated[
    str | None,
    _bed_option(
        "--power",
        metavar="METER",
        help="Power meter to read meanwhile, as `power meters` lists them: auto, rapl, ipmi, redfish:URL, …; none.",
    ),
]

CoresOption = Annotated[
    str | None,
    _bed_option(
        "--cores",
        metavar="N,…",
        help='Cores to give to the device, each in turn: "1,2,4"; of an external device, the number that it has.',
    ),
]


EncapsulationOption = Annotated[
    str | None,
    _bed_option(
        "--encapsulation",
        metavar="TAGS+TUNNEL",
        help="VLAN tags and tunnel of test frames: vlan:10, vlan:100.10, vxlan:42, gre, vlan:10+gre.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceOptions:
    """The device under test, and the permission to use interfaces that carry other traffic."""

    dut: Annotated[
        str | None, _bed_option("--dut", metavar="DEVICE", help="Device under test, as `testbed devices` lists them.")
    ] = None
    dut_option: Annotated[
        list[str] | None,
        _bed_option("--dut-option", metavar="KEY=VALUE", help="Option of the device; may be repeated."),
    ] = None
    encapsulation: EncapsulationOption = None
    own_network: Annotated[
        bool,
        _bed_option(
            "--i-own-this-network",
            help="Send on interfaces that have other addresses, other traffic or the default route, too.",
        ),
    ] = False
    share_cores: ShareCoresOption = False

    def values(self) -> dict[str, object]:
        """Return the values by option."""
        return {
            "--dut": self.dut,
            "--dut-option": self.dut_option,
            "--encapsulation": self.encapsulation,
            "--i-own-this-network": self.own_network,
            "--share-cores": self.share_cores,
        }

    def bed(self) -> dict[str, Any]:
        """Return the arguments of :func:`routecast.lab.testbed.opening.make_bed` and ``open_testbed``."""
        return {
            "device": self.dut,
            "options": self.settings(),
            "encapsulation": self.encapsulation,
            "own_network": self.own_network,
            "share_cores": self.share_cores,
        }

    def settings(self) -> dict[str, str]:
        """Return the options of the device by name.

        Raises QuantityProblem: an option is no KEY=VALUE.
        """
        from routecast.lab.testbed.opening import parse_device_options

        return parse_device_options(self.dut_option or [])
