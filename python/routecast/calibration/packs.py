"""Packs of the accuracy board: calibrating and held-out measurements with their sources.

A pack is a TOML file in ``data/packs`` that names a table in ``data/measured`` and selects its rows::

    name = "xdp2018-inside"
    title = "…"
    citation = "…"
    file = "xdp2018.csv"
    calibrate = [{ cores = [1, 3, "largest"] }]     # any of the selectors; "largest" is the largest in the series
    held_out = [{}]                                 # of the rows that do not calibrate; {} selects all

``machine = "…"`` names a file in ``data/packs/machines`` whose entries ``[[known]]`` say what is known of some series
beside its measurements, each with its ``reason``:

* ``nic_cap_pps``: a packet rate that a card or its bus cannot exceed; ``nic_bytes_per_s``: the rate of the bus that is
  behind the cap given in the table for frames of 64 B, so that longer frames have a lower one;
* ``flows``: the number of flows that the card distinguishes;
* ``polls_ports``, ``narrow_share_ratio`` and ``narrow_cores``: see :class:`routecast.evaluate.points.Layout`;
* ``laws``: where the structure of the router excludes the others.

``testbed = true`` in it fits the series together (:func:`routecast.calibration._fit.shared_poll`). The baselines
know caps and flows, too.

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

from routecast.evaluate.points import Layout, Point, read_points

__all__ = ["DATA", "Pack", "Rows", "read_packs", "split", "table_points"]

DATA = Path(str(files("routecast") / "data"))
_CAP_FRAME_BYTES = 64.0
"""Frame size that the caps of cards in the tables were measured with."""

Selector = Mapping[str, Sequence[Any]]
Rows = dict[str, tuple[list[Point], list[Point]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """One pack: its texts, its table and its selectors. ``target`` holds the issue's limits by summary key."""

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

    def wants(self, series: str) -> bool:
        """Whether the pack uses a series of its table."""
        return any(fnmatchcase(series, each) for each in self.series) and not any(
            fnmatchcase(series, each) for each in self.without
        )

    def laws(self, series: str) -> tuple[str, ...] | None:
        """Laws that the structure of a series leaves; None: all."""
        return next((tuple(each["laws"]) for each in self._known_of(series) if "laws" in each), None)

    def flows(self, series: str) -> int | None:
        """Return the number of flows that the card can distinguish; None: enough for every core."""
        return next((int(each["flows"]) for each in self._known_of(series) if "flows" in each), None)

    def layout(self, series: str) -> Layout:
        """Layout of the work over the cores."""
        names = {field.name for field in fields(Layout)}
        known: dict[str, Any] = {}
        for each in self._known_of(series):
            known |= {name: value for name, value in each.items() if name in names}
        return Layout(**known)

    def nic_bytes_per_s(self, series: str) -> float | None:
        """Rate of the bus behind the cap of a card."""
        return next((each["nic_bytes_per_s"] for each in self._known_of(series) if "nic_bytes_per_s" in each), None)

    def nic_cap_pps(self, series: str) -> float | None:
        """Packet rate that a card or its bus cannot exceed."""
        return min(
            (float(each["nic_cap_pps"]) for each in self._known_of(series) if "nic_cap_pps" in each), default=None
        )

    def _known_of(self, series: str) -> list[Mapping[str, Any]]:
        return [each for each in self.known if any(fnmatchcase(series, pattern) for pattern in each["series"])]


def read_packs(folder: Path | None = None) -> tuple[Pack, ...]:
    """Read the shipped packs, in the order of their file names."""
    home = folder or DATA / "packs"
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
    """Read the rows of a pack's table as points, its known caps included."""
    return tuple(
        replace(
            point,
            flows=point.flows or pack.flows(point.series),
            nic_cap_pps=_nic_cap_pps(pack, point),
            layout=pack.layout(point.series),
            calibrate=False,
        )
        for point in read_points(DATA / "measured" / pack.file)
        if pack.wants(point.series)
    )


def split(pack: Pack, points: Sequence[Point]) -> Rows:
    """Return calibrating and held-out points by series."""
    rows: Rows = {}
    for name in dict.fromkeys(point.series for point in points):
        members = [point for point in points if point.series == name]
        largest = {"cores": max(p.cores for p in members), "frame_bytes": max(p.frame_bytes for p in members)}
        calibrating = [p for p in members if any(_matches(p, each, largest) for each in pack.calibrate)]
        held_out = [
            p for p in members if p not in calibrating and any(_matches(p, each, largest) for each in pack.held_out)
        ]
        wanted = {
            (column, largest.get(column) if value == "largest" else value)
            for selector in pack.calibrate
            for column, values in selector.items()
            if column != "frame_bytes"
            for value in values
        }
        there = {(column, getattr(p, column)) for p in calibrating for column, _ in wanted}
        if held_out and calibrating and wanted <= there:
            rows[name] = ([replace(p, calibrate=True) for p in calibrating], held_out)
    return rows


def _matches(point: Point, selector: Selector, largest: Mapping[str, float]) -> bool:
    def cell(column: str) -> object:
        if column == "frame_bytes" and point.frame_mix is not None:
            return point.frame_mix.name
        return getattr(point, column)

    return all(
        any(cell(column) == (largest[column] if value == "largest" else value) for value in values)
        for column, values in selector.items()
    )


def _nic_cap_pps(pack: Pack, point: Point) -> float | None:
    cap, bus = pack.nic_cap_pps(point.series), pack.nic_bytes_per_s(point.series)
    if point.nic_cap_pps:
        longer_s = (point.frame_bytes - _CAP_FRAME_BYTES) / bus if bus else 0.0
        cap = min(cap or math.inf, 1.0 / (1.0 / point.nic_cap_pps + longer_s))
    return cap
