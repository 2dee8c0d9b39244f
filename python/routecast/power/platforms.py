"""The seven machines of paper 003, with the figures that its text states and no others."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files

from routecast.quantity.fields import Count, FrameRate, Frequency, Number, Power
from routecast.quantity.schema import field, value
from routecast.quantity.toml_file import parse_toml, validated

__all__ = ["Platform", "read_platforms"]

_FILE = "bolla2009.toml"


@value
class Platform:
    """A machine of the paper; None is what its text does not state."""

    name: str = field("Its name in the paper")
    cpu: str = field("Processor, as the paper calls it")
    sockets: Count
    cores: Count
    frequency_hz: Frequency = field("Nominal, Hz")
    max_pps: FrameRate | None = field(
        "Greatest throughput of one core at that frequency, frames/s", default=None, key="max_rate"
    )
    machine_pps: FrameRate | None = field(
        "Greatest throughput of the machine, with however many cores, frames/s", default=None, key="machine_rate"
    )
    idle_zero_pps: FrameRate | None = field(
        "Throughput of one core beyond which it is never idle, frames/s", default=None, key="idle_zero_rate"
    )
    gain_of_two: Number | None = field("Throughput of two cores over that of one: gamma of eq. 10", default=None)
    least_w: Power | None = field("Lower bound of the machine's power, W", default=None, key="least_power")
    greatest_w: Power | None = field("Upper bound of the machine's power, W", default=None, key="greatest_power")
    source: str = field("Paper and section; in the file the section", key="where")


@value
class _PlatformsFile:
    source: str = field("The paper")
    platforms: tuple[Platform, ...] = field("The machines", key="platform")


def read_platforms() -> tuple[Platform, ...]:
    """Return the machines of the paper, in its order.

    Examples
    --------
    >>> [platform.gain_of_two for platform in read_platforms() if platform.gain_of_two]
    [2.0, 1.5]
    """
    text = (files("routecast") / "data" / "power" / _FILE).read_text(encoding="utf-8")
    document = validated(_PlatformsFile, parse_toml(text, _FILE), _FILE)
    return tuple(replace(one, source=f"{document.source}, {one.source}") for one in document.platforms)
