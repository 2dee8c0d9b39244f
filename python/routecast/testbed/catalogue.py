"""The catalogue of devices under test: their options, and the programs that they lack on this machine."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from routecast.testbed.devices import DEVICES, make_device
from routecast.testbed.dut_host import Missing

__all__ = ["DeviceEntry", "OptionEntry", "devices"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionEntry:
    """An option of a device: its name, default and meaning."""

    name: str
    default: Any
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceEntry:
    """A device under test; ``missing`` is empty if the device can run on this machine."""

    name: str
    title: str
    layer: int
    reset_kinds: tuple[str, ...]
    options: tuple[OptionEntry, ...]
    missing: tuple[Missing, ...]


def devices() -> tuple[DeviceEntry, ...]:
    """Return all devices, in the order in which they are listed."""
    entries = []
    for device in (make_device(name, {}) for name in DEVICES):
        options = tuple(
            OptionEntry(name=field.name, default=field.default, meaning=str(field.metadata.get("text", "")))
            for field in dataclasses.fields(device.options)
        )
        entries.append(
            DeviceEntry(
                name=device.name,
                title=device.title,
                layer=device.layer,
                reset_kinds=tuple(device.reset_kinds),
                options=options,
                missing=device.missing(),
            )
        )
    return tuple(entries)
