"""Where the lines that a function touches are found: L1, L2, L3 or DRAM.

On a host whose cores wait for every line (``stalls = "added"``) the shares follow from the sizes of the tables, the
popularity of the flows and the frames in flight (:mod:`routecast.hardware.residency`). On a host described as in
Baldi & Sapio 2018 (``stalls = "separate"``) a table that fits into L1 and L2 together (288 KB on their processor,
sec. 2.2) costs no access, and every access to a larger one goes to DRAM; where the traffic's flows are said, the share
that reaches DRAM is computed as on other hosts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from routecast.function.work import LINE_BYTES, StepWork, Touch
from routecast.hardware.model import Hardware, LevelName
from routecast.hardware.residency import Stream, residency
from routecast.load.popularity import Popularity

__all__ = ["Shares", "places_of_lines"]

Shares = Mapping[str, Mapping[LevelName, float]]
"""Share of a stream's lines found in each level."""

_NEAR: tuple[LevelName, ...] = ("L1", "L2")


def places_of_lines(
    works: Sequence[tuple[float, StepWork]],
    hardware: Hardware,
    popularity: Popularity,
    flows: int | None = None,
) -> Shares:
    """Return the share of every stream's lines found in each level.

    Parameters
    ----------
    works : sequence of (float, StepWork)
        Steps with the share of packets that they are done for.
    popularity : Popularity
        Which flow a packet is of.
    flows : int or None
        How many there are where ``popularity`` does not say.
    """
    told = popularity if popularity.flows is not None else replace(popularity, flows=flows)
    streams = _streams(works, hardware, told)
    if hardware.stalls == "separate" and popularity == Popularity():
        near_bytes = sum(level.size_bytes for level in hardware.levels if level.name in _NEAR)
        return {
            one.name: {"L2" if one.kind == "table" and one.lines * LINE_BYTES <= near_bytes else "DRAM": 1.0}
            for one in streams
        }
    shares = residency(hardware.levels, streams)
    if hardware.stalls == "separate":
        return {**shares, **{one.name: {"DRAM": 1.0} for one in streams if one.kind == "frame"}}
    return shares


def _streams(
    works: Sequence[tuple[float, StepWork]], hardware: Hardware, popularity: Popularity
) -> tuple[Stream, ...]:
    accesses: dict[str, float] = {}
    distinct: dict[str, Touch] = {}
    per_flow: dict[str, float] = {}
    frame_lines = 0.0
    for share, work in works:
        for touch in work.touches:
            if touch.kind == "frame":
                frame_lines += share * touch.lines
                continue
            accesses[touch.stream] = accesses.get(touch.stream, 0.0) + share * touch.lines
            distinct.setdefault(touch.stream, touch)
            # Stations are sources and destinations: two lookups of a packet look for keys of the same flows.
            per_flow[touch.stream] = max(per_flow.get(touch.stream, 1.0), touch.at_once)
    streams = []
    for name, touch in distinct.items():
        flows = popularity.flows
        hot = None if flows is None else max(1, round(flows * per_flow[name]))
        streams.append(
            Stream(
                name=name,
                kind="table",
                accesses=accesses[name],
                lines=touch.distinct,
                popularity=replace(popularity, flows=hot),
                keys=touch.keys,
            )
        )
    if frame_lines > 0.0:
        streams.append(
            Stream(
                name="frames",
                kind="frame",
                accesses=frame_lines,
                lines=hardware.frames_in_flight * frame_lines,
                popularity=Popularity(),
            )
        )
    return tuple(streams)
