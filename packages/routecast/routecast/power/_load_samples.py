"""Samples of power over load, from a table with one sample per row or one server per row."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from routecast.errors import FileProblem, Problem
from routecast.power.csv_file import UNNAMED_DEVICE, CsvFile, read_csv, watts
from routecast.quantity.schema import value

COLUMNS: Mapping[str, str] = {
    "power_w": "watts, not negative",
    "load_ratio": "load over the greatest load, 0..1",
    "rate_pps": "throughput in frames per second; without load_ratio the greatest throughput of a device is load 1",
    "frequency_hz": "clock of the cores, Hz; empty: unknown",
    "cores": "cores that forward; empty: unknown",
    "device": "device that was measured; empty: the only device",
}
"""Columns of a table of samples; power_w and either load_ratio or rate_pps are required."""

_MAX_CORES = 4096
_EXPECTED_CORES = f"a whole number of cores, 1 to {_MAX_CORES}"
_PERCENT_COLUMN = re.compile(r"w_(\d+(?:\.\d+)?)")
_DEVICE_COLUMNS = ("device", "server", "name")
_HINT = (
    "A row for each sample needs power_w and load_ratio or rate_pps; "
    "a row for each server needs w_0, w_10, … (watts at percent of load)"
)


@value
class LoadSample:
    """Power at one load. An unknown ``rate_pps`` is NaN; an unknown ``frequency_hz`` or ``cores`` is None."""

    load_ratio: float
    power_w: float
    rate_pps: float = math.nan
    frequency_hz: float | None = None
    cores: int | None = None


def read_load_samples(
    path: str | Path, *, rename: Mapping[str, str] = MappingProxyType({})
) -> dict[str, tuple[LoadSample, ...]]:
    """Read samples of power over load by device, in the order of the file.

    A row holds either one sample, with the columns of :data:`COLUMNS`, or one server, with watts at percents of its
    load in the columns ``w_0``, ``w_10``, …, as in tables of SPECpower_ssj2008 results. ``rename``: as in
    :func:`routecast.power.csv_file.read_csv`.

    Raises FileProblem: it lists every fault with its row and column, or the missing and the present columns.
    """
    file = read_csv(path, kind="table of power samples", rename=rename)
    wide = {column: float(match[1]) / 100.0 for column in file.columns if (match := _PERCENT_COLUMN.fullmatch(column))}
    if wide:
        samples = _server_samples(file, wide)
    else:
        file.require(["power_w"], hint=_HINT)
        if "load_ratio" not in file.columns and "rate_pps" not in file.columns:
            file.require(["load_ratio"], hint=_HINT)
        samples = _row_samples(file)
    file.refuse_faults()
    unpowered = [name for name, device in samples.items() if all(sample.power_w == 0.0 for sample in device)]
    if unpowered:
        message = "all its samples are 0 W, but a running device draws power: check the meter"
        raise FileProblem(file.path, [Problem(name, message) for name in unpowered])
    return samples


def _server_samples(file: CsvFile, wide: Mapping[str, float]) -> dict[str, tuple[LoadSample, ...]]:
    excessive = [column for column, load in wide.items() if load > 1.0]
    if excessive:
        raise FileProblem(file.path, [Problem(f"column {excessive[0]}", "is no percentage of load: 0 to 100")])
    name_column = next((column for column in _DEVICE_COLUMNS if column in file.columns), None)
    by_server: dict[str, tuple[LoadSample, ...]] = {}
    for row in file.rows:
        name = row.text(name_column, f"row {row.number}") if name_column else f"row {row.number}"
        if name in by_server:
            name = f"{name} (row {row.number})"
        by_server[name] = tuple(
            LoadSample(load_ratio=load, power_w=watts(row, column)) for column, load in wide.items()
        )
    return by_server


def _row_samples(file: CsvFile) -> dict[str, tuple[LoadSample, ...]]:
    name_column = next((column for column in _DEVICE_COLUMNS if column in file.columns), "device")
    by_device: dict[str, list[LoadSample]] = {}
    for row in file.rows:
        load = math.nan
        if "load_ratio" in file.columns:
            load = row.number_in("load_ratio", high=1.0, expected="a share of the greatest load, 0..1")
        rate = row.number_in("rate_pps") if "rate_pps" in file.columns else math.nan
        clock = row.number_in("frequency_hz", default=math.nan, low=1.0, expected="a clock in Hz")
        cores = row.number_in("cores", default=math.nan, low=1.0, high=_MAX_CORES, expected=_EXPECTED_CORES)
        if not math.isnan(cores) and cores != int(cores):
            row.fault("cores", f'got "{row.text("cores")}": it must be {_EXPECTED_CORES}')
        by_device.setdefault(row.text(name_column, UNNAMED_DEVICE), []).append(
            LoadSample(
                load_ratio=load,
                power_w=watts(row, "power_w"),
                rate_pps=rate,
                frequency_hz=None if math.isnan(clock) else clock,
                cores=None if math.isnan(cores) else round(cores),
            )
        )
    file.refuse_faults()
    return {name: _with_load_ratio(samples, file.path, name) for name, samples in by_device.items()}


def _with_load_ratio(samples: list[LoadSample], path: str, device: str) -> tuple[LoadSample, ...]:
    """Return samples with load ratios; a missing one is relative to the greatest rate at that clock and core count."""
    if not math.isnan(samples[0].load_ratio):
        return tuple(samples)
    max_pps: dict[tuple[float | None, int | None], float] = {}
    for sample in samples:
        key = sample.frequency_hz, sample.cores
        max_pps[key] = max(max_pps.get(key, 0.0), sample.rate_pps)
    if min(max_pps.values()) <= 0.0:
        raise FileProblem(path, [Problem(device, "has no sample with a throughput above 0")])
    return tuple(
        replace(sample, load_ratio=sample.rate_pps / max_pps[sample.frequency_hz, sample.cores]) for sample in samples
    )
