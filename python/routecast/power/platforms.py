"""The seven machines of paper 003, with the figures that its text states and no others."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

from pydantic import Field

from routecast.quantity.fields import Count, FrameRate, Frequency, Number, Power
from routecast.quantity.file_model import FileModel
from routecast.quantity.toml_file import parse_toml, validated

__all__ = ["Platform", "read_platforms"]

_FILE = "bolla2009.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """A machine of the paper; None is what its text does not state.

    Parameters
    ----------
    name, cpu : str
        As the paper calls them.
    sockets, cores : int
    frequency_hz : float
        Nominal.
    max_pps : float or None
        Greatest throughput of one core at that frequency.
    machine_pps : float or None
        Greatest throughput of the machine, with however many cores.
    idle_zero_pps : float or None
        Throughput of one core beyond which it is never idle.
    gain_of_two : float or None
        Throughput of two cores over that of one: gamma of eq. 10.
    least_w, greatest_w : float or None
        Bounds of the machine's power.
    source : str
        Paper and section.
    """

    name: str
    cpu: str
    sockets: int
    cores: int
    frequency_hz: float
    max_pps: float | None
    machine_pps: float | None
    idle_zero_pps: float | None
    gain_of_two: float | None
    least_w: float | None
    greatest_w: float | None
    source: str


class _PlatformTable(FileModel):
    name: str
    cpu: str
    sockets: Count
    cores: Count
    frequency: Frequency
    where: str
    max_rate: FrameRate | None = None
    machine_rate: FrameRate | None = None
    idle_zero_rate: FrameRate | None = None
    gain_of_two: Number | None = None
    least_power: Power | None = None
    greatest_power: Power | None = None


class _PlatformsFile(FileModel):
    source: str
    platform: list[_PlatformTable] = Field(min_length=1)


def read_platforms() -> tuple[Platform, ...]:
    """Return the machines of the paper, in its order.

    Examples
    --------
    >>> [platform.gain_of_two for platform in read_platforms() if platform.gain_of_two]
    [2.0, 1.5]
    """
    text = (files("routecast") / "data" / "power" / _FILE).read_text(encoding="utf-8")
    document = validated(_PlatformsFile, parse_toml(text, _FILE), _FILE)
    return tuple(
        Platform(
            name=one.name,
            cpu=one.cpu,
            sockets=one.sockets,
            cores=one.cores,
            frequency_hz=one.frequency,
            max_pps=one.max_rate,
            machine_pps=one.machine_rate,
            idle_zero_pps=one.idle_zero_rate,
            gain_of_two=one.gain_of_two,
            least_w=one.least_power,
            greatest_w=one.greatest_power,
            source=f"{document.source}, {one.where}",
        )
        for one in document.platform
    )
