"""What ``routecast function`` is asked to estimate: function, host, cores, traffic and sizes of tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from routecast.cli.console import remark
from routecast.errors import QuantityProblem

if TYPE_CHECKING:
    from routecast.function.estimate import Estimate
    from routecast.function.model import NetworkFunction
    from routecast.hardware.model import Hardware
    from routecast.load.frames import FrameMix
    from routecast.load.popularity import Popularity

__all__ = ["Case", "read_case"]

_PAPER_HOST = "xeon-e5-2690v2"
_TABLE = re.compile(r"(?P<name>\w+)\s*=\s*(?P<number>\d[\d_,]*(?:\.\d+)?)\s*(?P<prefix>[kKMG]i?|)", re.ASCII)
_PREFIXES = {
    "": 1,
    "k": 10**3,
    "K": 10**3,
    "M": 10**6,
    "G": 10**9,
    "ki": 2**10,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is estimated, everything but direction and frames."""

    function: NetworkFunction
    hardware: Hardware
    cores: int
    popularity: Popularity
    tables: Mapping[str, int]
    giga: float

    def estimate(self, direction: str | None, frames: FrameMix, remote_ratio: float = 0.0) -> Estimate:
        """Return the estimate of a direction, or of all, at these frames."""
        from routecast.function.estimate import estimate

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


def read_case(
    name: str,
    on: str | None,
    cores: int,
    traffic: str,
    flows: int | None,
    tables: Sequence[str],
    giga: float,
) -> Case:
    """Read what the options name; without ``--on`` it is this host, or the paper's if this one was not probed.

    Raises
    ------
    routecast.errors.RoutecastError
        A file or an option says something wrong.
    """
    from routecast.function.chain import read_chain
    from routecast.hardware.catalogue import HOST, host_file, read_hardware
    from routecast.load.popularity import Popularity

    chain = read_chain(name)
    if on is None:
        on = HOST if host_file().is_file() else _PAPER_HOST
        if on == _PAPER_HOST:
            remark(f"On {on}; to estimate this host, probe it: routecast hardware probe")
    popularity = Popularity.parse(traffic)
    return Case(
        function=chain,
        hardware=read_hardware(on),
        cores=cores,
        popularity=replace(popularity, flows=flows) if flows is not None else popularity,
        tables=dict(_table(text) for text in tables),
        giga=giga,
    )


def _table(text: str) -> tuple[str, int]:
    match = _TABLE.fullmatch(text.strip()) if len(text) <= 200 else None
    if match is None:
        raise QuantityProblem(
            text, f'got --table {text[:60]!r}: NAME=ENTRIES is wanted, such as "mac=2Mi" (k M G Ki Mi Gi)'
        )
    entries = float(match["number"].replace("_", "").replace(",", "")) * _PREFIXES[match["prefix"]]
    if entries != round(entries) or not 1 <= entries <= 2**40:
        raise QuantityProblem(text, f"got --table {text!r}: a whole number of entries, 1 to 2^40")
    return match["name"], round(entries)
