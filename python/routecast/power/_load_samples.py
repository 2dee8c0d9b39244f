"""Samples of power over load, as people measure them: rows of load and watts, or a row of watts for each server."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from routecast.errors import FileProblem, Problem
from routecast.power.csv_file import UNNAMED_DEVICE, CsvFile, read_csv, watts
from routecast.quantity.schema import value

COLUMNS: Mapping[str, str] = {
    "power_w": "watts, not negative",
    "load_ratio": "load over the greatest, 0..1",
    "rate_pps": "throughput in frames per second; without load_ratio the greatest of a device counts as load 1",
    "frequency_hz": "clock of the cores; empty: not known",
    "cores": "cores that forward; empty: not known",
    "device": "what was measured; empty: one device",
}
"""Columns of a table of samples; power_w and one of load_ratio and rate_pps must be there."""

_MOST_CORES = 4096
_CORES = f"a whole number of cores, 1 to {_MOST_CORES}"
_WIDE = re.compile(r"w_(\d+(?:\.\d+)?)")
_NAMES = ("device", "server", "name")
_HINT = (
    "A row for each sample needs power_w and load_ratio or rate_pps; "
    "a row for each server needs w_0, w_10, … (watts at percent of load)"
)


@value
class LoadSample:
    """Power at one load. ``rate_pps`` is NaN and ``frequency_hz`` and ``cores`` None where they are not known."""

    load_ratio: float
    power_w: float
    rate_pps: float = math.nan
    frequency_hz: float | None = None
    cores: int | None = None


def read_load_samples(path: str | Path) -> dict[str, tuple[LoadSample, ...]]:
    """Read samples of power over load by device, in the order of the file.

    Either a row holds one sample, with the columns of :data:`COLUMNS`, or it holds a server, with watts at percents
    of its load in columns ``w_0``, ``w_10``, …, as SPECpower_ssj2008 results are tabulated.

    Raises FileProblem: every fault of the file with its row and column; missing columns beside those that are there.
    """
    file = read_csv(path, kind="table of power samples")
    wide = {column: float(match[1]) / 100.0 for column in file.columns if (match := _WIDE.fullmatch(column))}
    if wide:
        samples = _servers(file, wide)
    else:
        file.require(["power_w"], hint=_HINT)
        if "load_ratio" not in file.columns and "rate_pps" not in file.columns:
            file.require(["load_ratio"], hint=_HINT)
        samples = _rows(file)
    file.refuse_faults()
    dead = [name for name, device in samples.items() if all(sample.power_w == 0.0 for sample in device)]
    if dead:
        message = "all its samples are 0 W: what is on draws power; look at the meter"
        raise FileProblem(file.path, [Problem(name, message) for name in dead])
    return samples


def _servers(file: CsvFile, wide: Mapping[str, float]) -> dict[str, tuple[LoadSample, ...]]:
    over = [column for column, load in wide.items() if load > 1.0]
    if over:
        raise FileProblem(file.path, [Problem(f"column {over[0]}", "is no percentage of load: 0 to 100")])
    named = next((column for column in _NAMES if column in file.columns), None)
    by_server: dict[str, tuple[LoadSample, ...]] = {}
    for row in file.rows:
        name = row.text(named, f"row {row.number}") if named else f"row {row.number}"
        if name in by_server:
            name = f"{name} (row {row.number})"
        by_server[name] = tuple(
            LoadSample(load_ratio=load, power_w=watts(row, column)) for column, load in wide.items()
        )
    return by_server


def _rows(file: CsvFile) -> dict[str, tuple[LoadSample, ...]]:
    named = next((column for column in _NAMES if column in file.columns), "device")
    by_device: dict[str, list[LoadSample]] = {}
    for row in file.rows:
        load = math.nan
        if "load_ratio" in file.columns:
            load = row.number_in("load_ratio", high=1.0, what="a share of the greatest load, 0..1")
        rate = row.number_in("rate_pps") if "rate_pps" in file.columns else math.nan
        clock = row.number_in("frequency_hz", default=math.nan, low=1.0, what="a clock in Hz")
        cores = row.number_in("cores", default=math.nan, low=1.0, high=_MOST_CORES, what=_CORES)
        if not math.isnan(cores) and cores != int(cores):
            row.fault("cores", f'got "{row.text("cores")}": it must be {_CORES}')
        by_device.setdefault(row.text(named, UNNAMED_DEVICE), []).append(
            LoadSample(
                load_ratio=load,
                power_w=watts(row, "power_w"),
                rate_pps=rate,
                frequency_hz=None if math.isnan(clock) else clock,
                cores=None if math.isnan(cores) else round(cores),
            )
        )
    file.refuse_faults()
    return {name: _normalised(samples, file.path, name) for name, samples in by_device.items()}


def _normalised(samples: list[LoadSample], path: str, device: str) -> tuple[LoadSample, ...]:
    """Give samples that only know their throughput the load: the greatest of each clock and core count is 1."""
    if not math.isnan(samples[0].load_ratio):
        return tuple(samples)
    most: dict[tuple[float | None, int | None], float] = {}
    for sample in samples:
        key = sample.frequency_hz, sample.cores
        most[key] = max(most.get(key, 0.0), sample.rate_pps)
    if min(most.values()) <= 0.0:
        raise FileProblem(path, [Problem(device, "has no sample with a throughput above 0")])
    return tuple(
        replace(sample, load_ratio=sample.rate_pps / most[sample.frequency_hz, sample.cores]) for sample in samples
    )
