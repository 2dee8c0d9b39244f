"""NetPowerBench's own table of measurements (``devices/*/power_data.yml``) as rows of a table of samples.

Its keys, one below the other, are the steps of a path (devices/README.md there); at the end stand the medians of the
measurements in ``power`` and their times in ``ts``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from routecast.errors import FileProblem, Problem
from routecast.power.csv_file import CsvFile, Row
from routecast.power.netpowerbench import LARGEST_BYTES, parse_yaml
from routecast.quantity.bounded_file import read_text
from routecast.quantity.toml_file import shown

__all__ = ["read_power_data"]

_DEEPEST = 8


def read_power_data(path: str | Path) -> CsvFile:
    """Return the measurements of a file as rows with the columns device, path, n and mean_w.

    Raises
    ------
    routecast.errors.FileProblem
        It cannot be read, is no YAML, or holds no measurements; all faults with their places.
    """
    subject = str(path)
    text = read_text(Path(path), kind="NetPowerBench table of measurements", largest_bytes=LARGEST_BYTES)
    document = parse_yaml(text, subject)
    if not isinstance(document, dict):
        raise FileProblem(subject, [Problem("", "is no NetPowerBench table of measurements")])
    device = str(document.get("device", Path(path).parent.name or "device"))
    problems: list[Problem] = []
    rows: list[Row] = []
    for steps, power in _measurements({key: one for key, one in document.items() if key != "device"}, ()):
        place = "/".join(steps)
        values = power if isinstance(power, list) else []
        right = [one for one in values if isinstance(one, int | float) and math.isfinite(one) and one >= 0.0]
        if not values or len(right) < len(values):
            problems.append(Problem(place, f"got {shown(power)}: power is a list of watts, not negative"))
            continue
        mean_w = sum(right) / len(right)
        cells = {"device": device, "path": place, "n": str(len(right)), "mean_w": repr(mean_w)}
        rows.append(Row(number=len(rows) + 1, cells=cells))
    if not rows and not problems:
        problems.append(Problem("", "holds no measurements: each is a list named power"))
    if problems:
        raise FileProblem(subject, problems)
    return CsvFile(path=subject, columns=("device", "path", "n", "mean_w"), rows=tuple(rows))


def _measurements(table: Mapping[Any, Any], steps: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if "power" in table:
        yield steps, table["power"]
        return
    for key, below in table.items():
        if isinstance(below, dict) and len(steps) < _DEEPEST:
            yield from _measurements(below, (*steps, str(key)))
        else:
            yield (*steps, str(key)), below
