"""Tables of samples as CSV files, whose reader reports all faults with their rows and columns at once.

Samples of network gear hold ports in use, traffic and watts, in NetPowerBench's table or in plain columns.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from routecast.errors import FileProblem, Problem
from routecast.power.port import Equipped, PortsInUse
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import value
from routecast.quantity.table_file import csv_cells, read_table_text, rename_heads

__all__ = ["COLUMNS", "UNNAMED_DEVICE", "CsvFile", "CsvRow", "PortSample", "read_csv", "read_port_samples", "watts"]

COLUMNS: Mapping[str, str] = {
    "power_w": "watts, not negative",
    "device": "device that was measured; empty: the only device",
    "class": "kind of port, transceiver and speed, such as QSFP/PCC/100G; empty on rows of the bare device",
    "plugged": "ports with a transceiver in them; empty: 0",
    "enabled": "ports that are switched on; empty: 0",
    "up": "ports whose link is up; empty: 0",
    "passed_bps": "bits per second, summed over ports; empty: 0",
    "passed_pps": "packets per second, summed over ports; empty: 0",
    "samples": "number of measurements in the mean of the watts; empty: 1",
}
"""Columns of a table of samples; power_w is required."""

_MAX_COUNT = 1_000_000
_MAX_PER_S = 1e18
_RDMA_MIN_GBPS = 2.5
_RDMA_HEADER_BYTES, _IPERF_HEADER_BYTES = 58, 42
"""Headers that the generators add to a payload (NetPowerBench, model_derivation/main.py): RDMA from 2.5 Gbit/s on, and
iperf3 below.

Ethernet has 14, IP 20 and UDP 8 bytes; RoCEv2 has 12 more of transport and 4 of check. NetPowerBench does not count the
FCS and routecast does (S1), so its E_bit counts four bytes too many in each frame.
"""


@value
class PortSample:
    """The mean power of ``samples`` measurements with ports of a class in use ("" for the bare device)."""

    port_class: str
    use: PortsInUse
    power_w: float
    samples: int = 1


def read_port_samples(
    path: str | Path, *, rename: Mapping[str, str] = MappingProxyType({})
) -> dict[str, tuple[PortSample, ...]]:
    """Read samples by device, in the order of the file.

    The file has either plain columns (:data:`COLUMNS`), or the columns ``device, path, n, mean_w``, where ``path``
    names an experiment as in NetPowerBench's README: ``base`` (nothing plugged in), ``PORT/TRX/idle/K`` (K transceivers
    plugged in, all ports off), ``PORT/TRX/switch/SPEED/K`` (K ports on whose peers are off; ``port`` in newer files),
    ``PORT/TRX/trx/SPEED/K`` (K ports up), ``PORT/TRX/snake-test/SPEED/K/BYTES/GBPS`` (one stream of GBPS through K
    ports one after another, packets with BYTES of payload). In ``switch``, ``port``, ``trx`` and ``snake-test`` all
    transceivers are plugged in: as many as in any experiment of the class. NetPowerBench's own ``power_data.yml`` is
    read as such a table. ``rename``: as in :func:`read_csv`.

    Raises FileProblem: it lists every fault with its row and column, or the missing and the present columns.
    """
    if Path(path).suffix.lower() in {".yml", ".yaml"}:
        from routecast.power._netpowerbench import read_power_data

        if rename:
            message = "is NetPowerBench's YAML, which has no heads to rename: leave out --rename"
            raise FileProblem(str(path), [Problem("", message)])
        file = read_power_data(path)
    else:
        file = read_csv(path, kind="table of port power samples", rename=rename)
    if "path" in file.columns:
        file.require(["device", "path", "mean_w"])
        samples = _experiment_samples(file)
    else:
        file.require(["power_w"], hint="Known columns: " + ", ".join(COLUMNS))
        samples = _plain_samples(file)
    file.refuse_faults()
    return samples


def _plain_samples(file: CsvFile) -> dict[str, tuple[PortSample, ...]]:
    by_device: dict[str, list[PortSample]] = {}
    for row in file.rows:
        ports = Equipped(**{name: _integer(row, name) for name in ("plugged", "enabled", "up")})
        bits, packets = (
            row.number_in(name, default=0.0, high=_MAX_PER_S, expected="a number, 0 to 1e18")
            for name in ("passed_bps", "passed_pps")
        )
        port_class = row.text("class")
        if not port_class and (bits > 0.0 or packets > 0.0 or ports != Equipped()):
            row.fault("class", "is empty although ports are in use: name their class, such as QSFP/PCC/100G")
        by_device.setdefault(row.text("device", UNNAMED_DEVICE), []).append(
            PortSample(
                port_class=port_class,
                use=ports.with_traffic(bits, packets),
                power_w=watts(row, "power_w"),
                samples=max(_integer(row, "samples", default=1), 1),
            )
        )
    return {device: tuple(samples) for device, samples in by_device.items()}


def _integer(row: CsvRow, column: str, *, default: int = 0) -> int:
    value = row.number_in(
        column, default=float(default), high=_MAX_COUNT, expected=f"a whole number, 0 to {_MAX_COUNT}"
    )
    if math.isnan(value):
        return default
    if value != int(value):
        row.fault(column, f'got "{row.text(column)}": it must be a whole number, 0 to {_MAX_COUNT}')
    return int(value)


@dataclass(frozen=True, slots=True)
class _Experiment:
    """The experiment that the path of a row names."""

    row: CsvRow
    kind: str
    port: str = ""
    trx: str = ""
    speed: str = ""
    ports: int = 0
    payload_bytes: float = 0.0
    gbps: float = 0.0


_PATH_STEPS = {"idle": 4, "switch": 5, "port": 5, "trx": 5, "snake-test": 7}


def _experiment_samples(file: CsvFile) -> dict[str, tuple[PortSample, ...]]:
    by_device: dict[str, list[_Experiment]] = {}
    for row in file.rows:
        sample = _parse_experiment(row)
        if sample is not None:
            by_device.setdefault(row.text("device", UNNAMED_DEVICE), []).append(sample)
    return {
        device: tuple(sample for experiment in experiments for sample in _samples_of(experiment, experiments))
        for device, experiments in by_device.items()
    }


def _parse_experiment(row: CsvRow) -> _Experiment | None:
    steps = row.text("path").split("/")
    if steps == ["base"]:
        return _Experiment(row, "base")
    kind = steps[2] if len(steps) > 2 else ""
    if len(steps) != _PATH_STEPS.get(kind, 0):
        row.fault(
            "path",
            f'got "{row.text("path")}": it must be base, PORT/TRX/idle/K, PORT/TRX/switch/SPEED/K, '
            "PORT/TRX/trx/SPEED/K or PORT/TRX/snake-test/SPEED/K/BYTES/GBPS",
        )
        return None
    try:
        if kind == "idle":
            experiment = _Experiment(row, kind, steps[0], steps[1], ports=int(steps[3]))
        else:
            traffic = (float(steps[5]), float(steps[6])) if kind == "snake-test" else (0.0, 0.0)
            experiment = _Experiment(row, kind, steps[0], steps[1], steps[3], int(steps[4]), *traffic)
    except ValueError:
        experiment = None
    if experiment is None or not (
        0 <= experiment.ports <= _MAX_COUNT
        and 0.0 <= experiment.payload_bytes <= _MAX_COUNT
        and 0.0 <= experiment.gbps <= _MAX_COUNT
    ):
        row.fault("path", f'got "{row.text("path")}": ports, bytes and Gbit/s must be numbers, not negative')
        return None
    return experiment


def _samples_of(experiment: _Experiment, device_experiments: list[_Experiment]) -> list[PortSample]:
    """Return the samples of an experiment: one, or with all ports off one for every speed of the ports."""
    power = watts(experiment.row, "mean_w")
    count = max(_integer(experiment.row, "n", default=1), 1)
    if experiment.kind == "base":
        return [PortSample(port_class="", use=PortsInUse(), power_w=power, samples=count)]
    same_ports = [other for other in device_experiments if (other.port, other.trx) == (experiment.port, experiment.trx)]
    speeds = {other.speed: None for other in same_ports if other.speed}
    use = _ports_in_use(experiment, plugged=max(other.ports for other in same_ports))
    ports = f"{experiment.port}/{experiment.trx}"
    names = [f"{ports}/{speed}" for speed in ([experiment.speed] if experiment.speed else speeds)] or [ports]
    return [PortSample(port_class=name, use=use, power_w=power, samples=count) for name in names]


def _ports_in_use(experiment: _Experiment, *, plugged: int) -> PortsInUse:
    if experiment.kind == "idle":
        return PortsInUse(plugged=experiment.ports)
    if experiment.kind in {"switch", "port"}:
        return PortsInUse(plugged=plugged, enabled=experiment.ports)
    passed_bps = experiment.ports * experiment.gbps * 1e9
    header = _RDMA_HEADER_BYTES if experiment.gbps >= _RDMA_MIN_GBPS else _IPERF_HEADER_BYTES
    packet_bits = 8.0 * (experiment.payload_bytes + header)
    ports = Equipped(plugged=plugged, enabled=experiment.ports, up=experiment.ports)
    return ports.with_traffic(passed_bps, passed_bps / packet_bits)


UNNAMED_DEVICE = "device"
"""Name of the only device of a file that gives no device names."""


_MAX_FAULTS = 20
_MAX_W = 1e9


@dataclass(slots=True, kw_only=True)
class CsvRow:
    """A row with its number in the file (the header is row 1), its cells by column, and its faults."""

    number: int
    cells: dict[str, str]
    problems: list[Problem] = field(default_factory=list)

    def fault(self, column: str, message: str) -> None:
        """Record a fault of a cell."""
        self.problems.append(Problem(f"row {self.number}, column {column}", message))

    def text(self, column: str, default: str = "") -> str:
        """Return a cell as text."""
        return self.cells.get(column, "").strip() or default

    def number_in(
        self,
        column: str,
        *,
        default: float | None = None,
        low: float = 0.0,
        high: float = math.inf,
        expected: str = "a number, not negative",
    ) -> float:
        """Return a cell as a number, or record a fault and return NaN if it is no number in ``low`` to ``high``."""
        text = self.text(column)
        if not text and default is not None:
            return default
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and low <= value <= high):
            self.fault(column, f'got "{text}": it must be {expected}')
            return math.nan
        return value


@dataclass(slots=True, kw_only=True)
class CsvFile:
    """The columns and rows of a file."""

    path: str
    columns: tuple[str, ...]
    rows: tuple[CsvRow, ...]

    def require(self, required: Sequence[str], *, hint: str = "") -> None:
        """Refuse a file that lacks a column.

        Raises FileProblem: it names the missing and the present columns.
        """
        missing = [column for column in required if column not in self.columns]
        if missing:
            present = ", ".join(self.columns)
            problems = [
                Problem("", f'has no column "{column}"; {did_you_mean(column, self.columns)}') for column in missing
            ]
            if len(self.columns) == 1 and any(sign in present for sign in ";\t|"):
                hint = f"Separate the columns by commas. {hint}"
            last = problems[-1].message.removesuffix("?")
            stop = "?" if last != problems[-1].message else "."
            problems[-1] = Problem("", f"{last}{stop} Columns of the file: {present}. {hint}".strip())
            raise FileProblem(self.path, problems)

    def refuse_faults(self) -> None:
        """Refuse a file with a fault in any row.

        Raises FileProblem: it lists the first 20 faults.
        """
        problems = [problem for row in self.rows for problem in row.problems]
        if problems:
            more = len(problems) - _MAX_FAULTS
            rest = [Problem("", f"and {more} more")] if more > 0 else []
            raise FileProblem(self.path, problems[:_MAX_FAULTS] + rest)


def read_csv(path: str | Path, *, kind: str, rename: Mapping[str, str] = MappingProxyType({})) -> CsvFile:
    """Read a CSV file with a header; empty lines and those that start with ``#`` are skipped.

    Commas, semicolons or tabs separate the cells; see :mod:`routecast.quantity.table_file`. ``rename``: names of
    columns for the heads of a table that are called otherwise. Raises FileProblem: the file cannot be read, is empty, a
    row has more or fewer cells than the header, or there is no head that is to be renamed.
    """
    text = read_table_text(Path(path), kind=kind, max_file_bytes=100_000_000)
    header: tuple[str, ...] = ()
    rows, problems = [], []
    for number, cells in enumerate(csv_cells(text, name=str(path), comments=False), start=1):
        if not any(cell.strip() for cell in cells) or cells[0].lstrip().startswith("#"):
            continue
        if not header:
            header = tuple(rename_heads([[cell.strip() for cell in cells]], rename, name=str(path))[0])
        elif len(cells) != len(header):
            message = f"has {len(cells)} cells, the header {len(header)}"
            problems.append(Problem(f"row {number}", message))
        else:
            rows.append(CsvRow(number=number, cells=dict(zip(header, cells, strict=True))))
    header, rows = _with_known_heads(header, rows)
    if not rows and not problems:
        problems.append(Problem("", f"has no rows: give a {kind}"))
    if len(set(header)) < len(header):
        problems.append(Problem("row 1", "names a column twice"))
    if problems:
        raise FileProblem(str(path), problems[:_MAX_FAULTS])
    return CsvFile(path=str(path), columns=header, rows=tuple(rows))


_PREFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
_HEADS: Mapping[str, tuple[str, float]] = {
    **{f"{stem}{unit}": ("power_w", 1.0) for stem in ("power", "power_draw") for unit in ("", "_w", "_watt", "_watts")},
    **dict.fromkeys(("w", "watt", "watts", "mean_power_w"), ("power_w", 1.0)),
    "power_kw": ("power_w", 1e3),
    **{
        f"{stem}_{unit}": ("load_ratio", 0.01)
        for stem in ("load", "utilisation", "utilization", "util")
        for unit in ("%", "percent", "pct")
    },
    **{
        f"{stem}_{prefix}pps": ("rate_pps", factor)
        for stem in ("rate", "throughput")
        for prefix, factor in _PREFIXES.items()
    },
    **{
        f"{stem}_{prefix}hz": ("frequency_hz", factor)
        for stem in ("frequency", "clock")
        for prefix, factor in _PREFIXES.items()
    },
}
"""Names and factors of columns by heads that people write, in lower case with ``_`` for spaces and brackets."""
_BARE_LOADS = frozenset({"load", "utilisation", "utilization", "util", "load_ratio"})
"""Heads of loads without a unit: shares where none is above 1, else percent, because no load is above 1."""
_BETWEEN_WORDS = re.compile(r"[\s_()\[\],]+")


def _with_known_heads(header: tuple[str, ...], rows: list[CsvRow]) -> tuple[tuple[str, ...], list[CsvRow]]:
    """Return columns under their known names, in base units; a head that two columns may mean stays as it is."""
    known: dict[str, tuple[str, float]] = {}
    for head in header:
        plain = _BETWEEN_WORDS.sub("_", head.lower().replace("%", " % ")).strip("_")
        if plain in _BARE_LOADS - {"load_ratio"}:
            numbers = [number for row in rows if (number := _percent_free(row.cells[head])) is not None]
            known[head] = ("load_ratio", 0.01 if any(number > 1.0 for number in numbers) else 1.0)
        elif head not in COLUMNS and plain in _HEADS:
            known[head] = _HEADS[plain]
    names = [known.get(head, (head, 1.0))[0] for head in header]
    known = {head: entry for head, entry in known.items() if names.count(entry[0]) == 1}
    if not known and "load_ratio" not in header:
        return header, rows
    for row in rows:
        row.cells = {
            known.get(head, (head, 1.0))[0]: _in_base_unit(cell, *known.get(head, (head, 1.0)))
            for head, cell in row.cells.items()
        }
    return tuple(known.get(head, (head, 1.0))[0] for head in header), rows


def _percent_free(cell: str) -> float | None:
    """Return a number without a unit; None for another cell."""
    try:
        return float(cell)
    except ValueError:
        return None


def _in_base_unit(cell: str, name: str, factor: float) -> str:
    """Return a cell in the base unit of its column; what is no number stays, for the faults of its row."""
    text = cell.strip()
    if name == "load_ratio" and text.endswith("%"):
        text, factor = text[:-1].strip(), 0.01
    elif name == "power_w" and text[-1:] in {"W", "w"}:
        text = text[:-1].strip()
    number = _percent_free(text)
    if number is None or (factor == 1.0 and text == cell.strip()):
        return cell
    # Percents shift their decimals: 30 % is 0.3.
    return repr(number / round(1.0 / factor) if factor < 1.0 else number * factor)


def watts(row: CsvRow, column: str) -> float:
    """Return a cell as a power, W, or record a fault and return NaN."""
    return row.number_in(column, high=_MAX_W, expected="watts, not negative")
