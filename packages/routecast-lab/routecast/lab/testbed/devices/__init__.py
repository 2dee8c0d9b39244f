"""Devices under test by name; :class:`routecast.lab.testbed.dut_host.Device` is their protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from routecast.errors import FileProblem, Problem
from routecast.evaluate.plain import plain
from routecast.lab.testbed.devices.options import read_options
from routecast.lab.testbed.dut_host import Device
from routecast.quantity.did_you_mean import did_you_mean

__all__ = ["DEVICES", "device_entry", "make_device"]

_BUILT_IN = {
    "linux": ("linux", "Linux"),
    "bridge": ("bridge", "Bridge"),
    "xdp": ("xdp", "Xdp"),
    "nftables": ("nftables", "Nftables"),
    "openvswitch": ("openvswitch", "OpenVSwitch"),
    "testpmd": ("testpmd", "Testpmd"),
    "frr": ("frr", "Frr"),
    "external": ("external", "External"),
}


GROUP = "routecast.devices"
"""Group of the entry points by which installed packages add devices: ``name = "package.module:Class"``."""


class _Devices(Mapping[str, type[Device]]):
    """The classes of devices by name; the module of a device is loaded on access."""

    def __getitem__(self, name: str) -> type[Device]:
        device: type[Device]
        if name in _BUILT_IN:
            module, kind = _BUILT_IN[name]
            device = getattr(import_module(f"routecast.lab.testbed.devices.{module}"), kind)
        else:
            device = _installed()[name].load()
        return device

    def __iter__(self) -> Iterator[str]:
        return iter((*_BUILT_IN, *(name for name in _installed() if name not in _BUILT_IN)))

    def __len__(self) -> int:
        return len(tuple(iter(self)))


@lru_cache
def _installed() -> Mapping[str, EntryPoint]:
    """Return the devices of installed packages by name."""
    return {entry_point.name: entry_point for entry_point in entry_points(group=GROUP)}


DEVICES: Mapping[str, type[Device]] = _Devices()


def make_device(name: str, options: Mapping[str, object]) -> Device:
    """Make a device under test.

    ``options`` are those of a file or ``key=value`` texts of a command line. Raises FileProblem: there is no such
    device or option, or a value is not allowed.

    Examples
    --------
    >>> make_device("linux", {"slowdown": "200"}).chosen.slowdown
    200
    >>> make_device("linx", {})
    Traceback (most recent call last):
    routecast.errors.FileProblem: device under test: name: there is no "linx"; did you mean "linux"?
    """
    if name not in DEVICES:
        text = f'there is no "{name}"; {did_you_mean(name, DEVICES)}'
        raise FileProblem("device under test", [Problem("name", text)])
    kind = DEVICES[name]
    device: Device = kind(read_options(f"device {name}", kind.options, options))  # type: ignore[call-arg]  # a protocol does not say how its classes are made
    return device


def device_entry(device: Device) -> dict[str, object]:
    """Return name, title, layer, resets, options and missing programs of a device, as plain data."""
    options = [
        {"name": field.name, "default": field.default, "meaning": field.metadata.get("text", "")}
        for field in fields(device.options)
    ]
    facts = plain(
        {"name": device.name, "title": device.title, "layer": device.layer, "reset_kinds": device.reset_kinds}
    )
    return {**facts, "options": options, "missing": plain(device.missing())}
