"""The seven machines of Bolla et al. 2009, with the figures that its text states."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from typing import Annotated

from routecast.quantity.fields import Count, FrameRate, Frequency, Length, Number, Power
from routecast.quantity.schema import field, value
from routecast.quantity.toml_file import parse_toml, validated

_FILE = "bolla2009.toml"


@value
class Platform:
    """A machine of the paper. A figure that the text does not state is None."""

    name: str = field("Name in the paper")
    cpu: str = field("Processor")
    sockets: Count = field("Sockets of the machine")
    cores: Count = field("Cores of the machine")
    frequency_hz: Frequency = field("Nominal clock, Hz")
    max_pps: FrameRate | None = field(
        "Greatest throughput of one core at that clock, frames/s", default=None, key="max_rate"
    )
    machine_pps: FrameRate | None = field(
        "Greatest throughput of the machine on any number of cores, frames/s", default=None, key="machine_rate"
    )
    idle_zero_pps: FrameRate | None = field(
        "Rate from which one core is never idle, frames/s", default=None, key="idle_zero_rate"
    )
    gain_of_two: Number | None = field("Throughput of two cores over that of one core: gamma of eq. 10", default=None)
    least_w: Power | None = field("Least power of the machine, W", default=None, key="least_power")
    greatest_w: Power | None = field("Greatest power of the machine, W", default=None, key="greatest_power")
    source: str = field("Section of the paper; after reading, paper and section", key="where")


@value
class _Platforms:
    source: str = field("The paper")
    platforms: Annotated[tuple[Platform, ...], Length(1)] = field("Machines of the paper", key="platform")


def read_platforms() -> tuple[Platform, ...]:
    """Return the machines of the paper, in its order.

    Examples
    --------
    >>> [platform.gain_of_two for platform in read_platforms() if platform.gain_of_two]
    [2.0, 1.5]
    """
    text = (files("routecast") / "data" / "power" / _FILE).read_text(encoding="utf-8")
    document = validated(_Platforms, parse_toml(text, _FILE), _FILE)
    return tuple(replace(platform, source=f"{document.source}, {platform.source}") for platform in document.platforms)
