"""Packs of the accuracy board: calibrating and held-out measurements with their sources.

A pack is a TOML file in ``data/packs`` that names a table in ``data/measured`` and selects rows of it::

    name = "xdp2018-inside"
    title = "…"
    citation = "…"
    file = "xdp2018.csv"
    calibrate = [{ cores = [1, 3, "largest"] }]     # any of the selectors; "largest" is the largest in the series
    held_out = [{}]                                 # of the rows that do not calibrate; {} selects all

``machine = "…"`` names a file in ``data/packs/machines``. Each of its entries ``[[known]]`` has facts about some
series, with their ``reason``:

* ``nic_cap_pps``: a packet rate that a card or its bus cannot exceed; ``nic_bytes_per_s``: the rate of the bus that
  causes the table's cap for frames of 64 B, so that longer frames have a lower cap;
* ``flows``: the number of flows that the card distinguishes;
* ``polls_ports``, ``narrow_share_ratio`` and ``narrow_cores``: see :class:`routecast.evaluate.points.Layout`;
* ``laws``: the laws that the structure of the router does not exclude.

``testbed = true`` in the file fits the series together (:func:`routecast.calibration.shared_poll`). The baselines
use caps and flows too.

At most four rows of a series may calibrate. A series that lacks one of them is left out.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from routecast.evaluate.point_table import read_points
from routecast.evaluate.points import Layout, Point

__all__ = ["MEASURED", "PACKS", "Pack", "Rows", "read_packs", "split", "table_points"]

MEASURED = Path(str(files("routecast") / "data" / "measured"))
"""Folder of the published tables, which ship with the core."""
PACKS = Path(str(files("routecast.replications") / "data" / "packs"))
_CAP_FRAME_BYTES = 64.0
"""Frame size at which the caps of cards in the tables were measured."""

Selector = Mapping[str, Sequence[Any]]
Rows = dict[str, tuple[list[Point], list[Point]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """A pack: its texts, its table and its selectors. ``target`` holds the limits of errors by key of the summary."""

    name: str
    title: str
    citation: str
    licence: str
    file: str
    calibrate: tuple[Selector, ...]
    held_out: tuple[Selector, ...] = ({},)
    kind: Literal["multicore", "chain"] = "multicore"
    series: tuple[str, ...] = ("*",)
    without: tuple[str, ...] = ()
    noise_ratio: float | None = None
    noise_reason: str = ""
    machine: str = ""
    testbed: bool = False
    known: tuple[Mapping[str, Any], ...] = ()
    target: Mapping[str, float] | None = None

    def uses(self, series: str) -> bool:
        """Whether the pack uses a series of its table."""
        return _matches_any(series, self.series) and not _matches_any(series, self.without)

    def laws(self, series: str) -> tuple[str, ...] | None:
        """Laws that the structure of a series' router does not exclude; None: all."""
        return next(map(tuple, self.facts(series, "laws")), None)

    def flows(self, series: str) -> int | None:
        """Return the number of flows that the card can distinguish; None: enough for every core."""
        return next(iter(self.facts(series, "flows")), None)

    def layout(self, series: str) -> Layout:
        """Layout of the work over the cores."""
        stated = {field.name: self.facts(series, field.name) for field in fields(Layout)}
        return Layout(**{name: values[-1] for name, values in stated.items() if values})

    def facts(self, series: str, key: str) -> list[Any]:
        """Return all values of a key in the known facts about a series."""
        return [facts[key] for facts in self.known if key in facts and _matches_any(series, facts["series"])]


def _matches_any(series: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(series, pattern) for pattern in patterns)


def read_packs(folder: Path | None = None) -> tuple[Pack, ...]:
    """Read the shipped packs, in the order of their file names."""
    home = folder or PACKS
    packs = []
    for path in sorted(home.glob("*.toml"), key=lambda path: int(path.name.split("-")[0])):
        data = _toml(path)
        if "machine" in data:
            data = _toml(home / "machines" / f"{data['machine']}.toml") | data
        packs.append(Pack(**data))
    return tuple(packs)


def _toml(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        data = tomllib.load(file)
    return {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}


def table_points(pack: Pack) -> tuple[Point, ...]:
    """Read the rows of a pack's table as points, with the known facts about their series."""
    return tuple(
        replace(
            point,
            flows=point.flows or pack.flows(point.series),
            nic_cap_pps=_nic_cap_pps(pack, point),
            layout=pack.layout(point.series),
            calibrate=False,
        )
        for point in read_points(MEASURED / pack.file)
        if pack.uses(point.series)
    )


def split(pack: Pack, points: Sequence[Point]) -> Rows:
    """Return calibrating and held-out points by series."""
    rows: Rows = {}
    for name in dict.fromkeys(point.series for point in points):
        members = [point for point in points if point.series == name]
        largest = {"cores": max(p.cores for p in members), "frame_bytes": max(p.frame_bytes for p in members)}
        calibrating = [p for p in members if _is_selected(p, pack.calibrate, largest)]
        held_out = [p for p in members if p not in calibrating and _is_selected(p, pack.held_out, largest)]
        required = {
            (column, largest.get(column) if value == "largest" else value)
            for selector in pack.calibrate
            for column, values in selector.items()
            if column != "frame_bytes"
            for value in values
        }
        present = {(column, getattr(p, column)) for p in calibrating for column, _ in required}
        if held_out and calibrating and required <= present:
            rows[name] = ([replace(p, calibrate=True) for p in calibrating], held_out)
    return rows


def _is_selected(point: Point, selectors: Sequence[Selector], largest: Mapping[str, float]) -> bool:
    def cell(column: str) -> object:
        if column == "frame_bytes" and point.frame_mix is not None:
            return point.frame_mix.name
        return getattr(point, column)

    return any(
        all(
            any(cell(column) == (largest[column] if value == "largest" else value) for value in values)
            for column, values in selector.items()
        )
        for selector in selectors
    )


def _nic_cap_pps(pack: Pack, point: Point) -> float | None:
    caps_pps = [float(cap_pps) for cap_pps in pack.facts(point.series, "nic_cap_pps")]
    if point.nic_cap_pps:
        bus_bytes_per_s = next(iter(pack.facts(point.series, "nic_bytes_per_s")), math.inf)
        longer_s = (point.frame_bytes - _CAP_FRAME_BYTES) / bus_bytes_per_s
        caps_pps.append(1.0 / (1.0 / point.nic_cap_pps + longer_s))
    return min(caps_pps, default=None)
