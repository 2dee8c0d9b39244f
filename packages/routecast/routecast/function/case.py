"""A case: a network function on a host under traffic, with its estimates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from routecast.errors import QuantityProblem
from routecast.function.estimate import Estimate, chosen_directions, estimate
from routecast.function.model import NetworkFunction
from routecast.function.stated import ComparedStatement, compared_statements
from routecast.hardware.model import Hardware
from routecast.load.frames import FrameMix
from routecast.load.offered import IntendedRate
from routecast.load.popularity import Popularity
from routecast.quantity.schema import field, value

__all__ = ["Case", "NamedEstimate", "parse_table_sizes"]

_TABLE = re.compile(r"(?P<name>\w+)\s*=\s*(?P<number>\d[\d_,]*(?:\.\d+)?)\s*(?P<prefix>[kKMG]i?|)", re.ASCII)
_PREFIXES = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "ki": 2**10, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


class NamedEstimate(NamedTuple):
    """An estimate with the name of its direction; ``kind`` is ``"generic"`` or ``"platform"``."""

    name: str
    kind: str
    estimate: Estimate


@value
class Case:
    """A network function on a host under traffic."""

    function: NetworkFunction
    hardware: Hardware
    direction: str | None = field("Name of one direction; None: all directions", default=None)
    frames: tuple[FrameMix, ...] = field("Frames; each mix is estimated, simulated or run separately")
    popularity: Popularity = Popularity()
    tables: Mapping[str, int] = field(
        "Entries by table; other tables have the entries of the function", default_factory=dict
    )
    cores: int = field("Cores that process frames", default=1)
    remote_ratio: float = field("Share of packets in the other socket's L3, 0..1", default=0.0)
    giga: float = field("Number of Hz in 1 GHz: 1e9, or 1024e6 as in Baldi & Sapio 2018", default=1e9)
    rate: IntendedRate | None = field("Offered rate of a simulation or a run; None: its default", default=None)
    duration_s: float | None = field("Duration of a simulation or a run; None: its default", default=None)
    seed: int = 1

    @property
    def directions(self) -> tuple[str, ...]:
        """Names of the directions, each of which runs separately.

        Raises ModelProblem: the function has no such direction.
        """
        return tuple(
            self.function.directions[number].name for number in chosen_directions(self.function, self.direction)
        )

    def estimate(self, direction: str | None, frames: FrameMix, remote_ratio: float = 0.0) -> Estimate:
        """Return the estimate of a direction, or of all directions together (None), for these frames."""
        return estimate(
            self.function,
            self.hardware,
            direction=direction,
            frame_bytes=frames,
            cores=self.cores,
            popularity=self.popularity,
            tables=self.tables,
            remote_ratio=remote_ratio,
            giga=self.giga,
        )

    def estimates(self) -> list[NamedEstimate]:
        """Return the estimates for each mix of frames: each direction, then all together, generic before platform."""
        names: list[tuple[str, str | None]] = [(name, name) for name in self.directions]
        if self.direction is None:
            names = [*names, ("together", None)] if len(names) > 1 else [(names[0][0], None)]
        kinds = {"generic": 0.0, "platform": self.remote_ratio} if self.remote_ratio else {"generic": 0.0}
        return [
            NamedEstimate(name, kind, self.estimate(direction, frames, ratio))
            for frames in self.frames
            for name, direction in names
            for kind, ratio in kinds.items()
        ]

    def stated(self) -> tuple[ComparedStatement, ...]:
        """Compare the statements of the function's source about this host with the estimates of the same cases."""
        directions = None if self.direction is None else self.directions
        return compared_statements(self.function, self.hardware, directions=directions, giga=self.giga)

    def to_json(self) -> dict[str, object]:
        """Return the case, its estimates and the stated values as plain data."""
        cpu = self.hardware.cpu
        return {
            "function": self.function.name,
            "title": self.function.title,
            "chosen_in_sight": self.function.chosen_in_sight or None,
            "hardware": {
                "name": self.hardware.name,
                "title": self.hardware.title,
                "cores": cpu.cores,
                "sockets": cpu.sockets,
                "frequency_hz": cpu.frequency_hz,
            },
            "estimates": [{"kind": named.kind, **named.estimate.to_json()} for named in self.estimates()],
            "stated": [row.to_json() for row in self.stated()],
        }


def parse_table_sizes(texts: Iterable[str]) -> dict[str, int]:
    """Read table sizes such as ``mac=2Mi``; return the entries by table.

    Raises QuantityProblem: a text is not of the form NAME=ENTRIES, or the entries are not a whole number from 1 to
    2^40.
    """
    return dict(map(_table_size, texts))


def _table_size(text: str) -> tuple[str, int]:
    match = _TABLE.fullmatch(text.strip()) if len(text) <= 200 else None
    if match is None:
        raise QuantityProblem(
            text, f'got --table {text[:60]!r}: write NAME=ENTRIES, such as "mac=2Mi" (k M G Ki Mi Gi)'
        )
    entries = float(match["number"].replace("_", "").replace(",", "")) * _PREFIXES[match["prefix"]]
    if entries != round(entries) or not 1 <= entries <= 2**40:
        raise QuantityProblem(text, f"got --table {text!r}: a table has a whole number of entries, 1 to 2^40")
    return match["name"], round(entries)
