"""Tables of samples as CSV, whose reading reports every fault with its row and column at once.

Samples of the power of network gear hold ports in use, traffic and watts, in NetPowerBench's table or plain columns.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from routecast.errors import FileProblem, Problem
from routecast.power.port import Equipped, PortsInUse
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import value

__all__ = ["COLUMNS", "UNNAMED_DEVICE", "CsvFile", "CsvRow", "PortSample", "read_csv", "read_port_samples", "watts"]

COLUMNS: Mapping[str, str] = {
    "power_w": "watts, not negative",
    "device": "what was measured; empty: one device",
    "class": "kind of port, transceiver and speed, such as QSFP/PCC/100G; empty on rows of the bare device",
    "plugged": "ports with a transceiver in them; empty: 0",
    "enabled": "ports that are switched on; empty: 0",
    "up": "ports whose link is up; empty: 0",
    "passed_bps": "bits per second, summed over ports; empty: 0",
    "passed_pps": "packets per second, summed over ports; empty: 0",
    "samples": "how many measurements the watts are the mean of; empty: 1",
}
"""Columns of a table of samples; power_w must be there."""

_MOST = 1_000_000
_MOST_PER_S = 1e18
_RDMA_LEAST_GBPS = 2.5
_RDMA_HEADER_BYTES, _IPERF_HEADER_BYTES = 58, 42
"""Headers that the generators add to a payload (NetPowerBench, model_derivation/main.py): RDMA from 2.5 Gbit/s, iperf3
below.

Ethernet has 14, IP 20 and UDP 8 bytes; RoCEv2 has 12 more of transport and 4 of check. NetPowerBench counts no FCS and
routecast does, so with L2 bits (S1) its E_bit counts four bytes too many in each frame.
"""


@value
class PortSample:
    """The mean power of ``samples`` measurements with ports of a class in use ("" for the bare device)."""

    port_class: str
    use: PortsInUse
    power_w: float
    samples: int = 1


def read_port_samples(path: str | Path) -> dict[str, tuple[PortSample, ...]]:
    """Read samples by device, in the order of the file.

    Either plain columns (:data:`COLUMNS`), or the columns ``device, path, n, mean_w`` where ``path`` names
    NetPowerBench's experiment, as its README does: ``base`` (nothing plugged in), ``PORT/TRX/idle/K`` (K transceivers
    plugged in, all ports off), ``PORT/TRX/switch/SPEED/K`` (K ports on whose peers are off; ``port`` in newer
    files), ``PORT/TRX/trx/SPEED/K`` (K ports up), ``PORT/TRX/snake-test/SPEED/K/BYTES/GBPS`` (one stream of GBPS
    through K ports one after another, packets with BYTES of payload). In the last four every transceiver is plugged
    in: as many as any experiment of the class used. NetPowerBench's own ``power_data.yml`` is read as such a table.

    Raises FileProblem: every fault of the file with its row and column; missing columns beside those that are there.
    """
    if Path(path).suffix.lower() in {".yml", ".yaml"}:
        from routecast.power._netpowerbench import read_power_data

        file = read_power_data(path)
    else:
        file = read_csv(path, kind="table of port power samples")
    if "path" in file.columns:
        file.require(["device", "path", "mean_w"])
        samples = _netpowerbench(file)
    else:
        file.require(["power_w"], hint="Known columns: " + ", ".join(COLUMNS))
        samples = _plain(file)
    file.refuse_faults()
    return samples


def _plain(file: CsvFile) -> dict[str, tuple[PortSample, ...]]:
    by_device: dict[str, list[PortSample]] = {}
    for row in file.rows:
        ports = Equipped(**{name: _integer(row, name) for name in ("plugged", "enabled", "up")})
        bits, packets = (
            row.number_in(name, default=0.0, high=_MOST_PER_S, what="a number, 0 to 1e18")
            for name in ("passed_bps", "passed_pps")
        )
        port_class = row.text("class")
        if not port_class and (bits > 0.0 or packets > 0.0 or ports != Equipped()):
            row.fault("class", "is empty, and ports are in use: name their kind, such as QSFP/PCC/100G")
        by_device.setdefault(row.text("device", UNNAMED_DEVICE), []).append(
            PortSample(
                port_class=port_class,
                use=ports.passing(bits, packets),
                power_w=watts(row, "power_w"),
                samples=max(_integer(row, "samples", default=1), 1),
            )
        )
    return {device: tuple(samples) for device, samples in by_device.items()}


def _integer(row: CsvRow, column: str, *, default: int = 0) -> int:
    value = row.number_in(column, default=float(default), high=_MOST, what=f"a whole number, 0 to {_MOST}")
    if math.isnan(value):
        return default
    if value != int(value):
        row.fault(column, f'got "{row.text(column)}": it must be a whole number, 0 to {_MOST}')
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


_STEPS = {"idle": 4, "switch": 5, "port": 5, "trx": 5, "snake-test": 7}


def _netpowerbench(file: CsvFile) -> dict[str, tuple[PortSample, ...]]:
    by_device: dict[str, list[_Experiment]] = {}
    for row in file.rows:
        sample = _experiment(row)
        if sample is not None:
            by_device.setdefault(row.text("device", UNNAMED_DEVICE), []).append(sample)
    return {
        device: tuple(sample for experiment in experiments for sample in _samples(experiment, experiments))
        for device, experiments in by_device.items()
    }


def _experiment(row: CsvRow) -> _Experiment | None:
    steps = row.text("path").split("/")
    if steps == ["base"]:
        return _Experiment(row, "base")
    kind = steps[2] if len(steps) > 2 else ""
    if len(steps) != _STEPS.get(kind, 0):
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
        0 <= experiment.ports <= _MOST and 0.0 <= experiment.payload_bytes <= _MOST and 0.0 <= experiment.gbps <= _MOST
    ):
        row.fault("path", f'got "{row.text("path")}": ports, bytes and Gbit/s are numbers, not negative')
        return None
    return experiment


def _samples(experiment: _Experiment, all_of_device: list[_Experiment]) -> list[PortSample]:
    """Return the sample of an experiment; one with all ports off counts for every speed of its ports."""
    power = watts(experiment.row, "mean_w")
    count = max(_integer(experiment.row, "n", default=1), 1)
    if experiment.kind == "base":
        return [PortSample(port_class="", use=PortsInUse(), power_w=power, samples=count)]
    same = [other for other in all_of_device if (other.port, other.trx) == (experiment.port, experiment.trx)]
    speeds = (
        [experiment.speed] if experiment.speed else list(dict.fromkeys(other.speed for other in same if other.speed))
    )
    use = _use(experiment, plugged=max(other.ports for other in same))
    names = [f"{experiment.port}/{experiment.trx}/{speed}" for speed in speeds] or [
        f"{experiment.port}/{experiment.trx}"
    ]
    return [PortSample(port_class=name, use=use, power_w=power, samples=count) for name in names]


def _use(experiment: _Experiment, *, plugged: int) -> PortsInUse:
    if experiment.kind == "idle":
        return PortsInUse(plugged=experiment.ports)
    if experiment.kind in {"switch", "port"}:
        return PortsInUse(plugged=plugged, enabled=experiment.ports)
    passed_bps = experiment.ports * experiment.gbps * 1e9
    header = _RDMA_HEADER_BYTES if experiment.gbps >= _RDMA_LEAST_GBPS else _IPERF_HEADER_BYTES
    packet_bits = 8.0 * (experiment.payload_bytes + header)
    ports = Equipped(plugged=plugged, enabled=experiment.ports, up=experiment.ports)
    return ports.passing(passed_bps, passed_bps / packet_bits)


UNNAMED_DEVICE = "device"
"""Name of the only device of a file that names none."""


_MOST_FAULTS = 20
_MOST_W = 1e9


@dataclass(slots=True, kw_only=True)
class CsvRow:
    """A row with its number in the file (the header is 1), its cells by column, and its faults."""

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
        what: str = "a number, not negative",
    ) -> float:
        """Return a cell as a number; NaN, and a fault, where it is none or out of ``low`` to ``high``."""
        text = self.text(column)
        if not text and default is not None:
            return default
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and low <= value <= high):
            self.fault(column, f'got "{text}": it must be {what}')
            return math.nan
        return value


@dataclass(slots=True, kw_only=True)
class CsvFile:
    """The rows of a file, and its columns."""

    path: str
    columns: tuple[str, ...]
    rows: tuple[CsvRow, ...]

    def require(self, wanted: Sequence[str], *, hint: str = "") -> None:
        """Refuse the file where a column is missing.

        Raises FileProblem: it names the columns that are there.
        """
        missing = [column for column in wanted if column not in self.columns]
        if missing:
            there = ", ".join(self.columns)
            problems = [
                Problem("", f'has no column "{column}"; {did_you_mean(column, self.columns)}') for column in missing
            ]
            if len(self.columns) == 1 and any(sign in there for sign in ";\t|"):
                hint = f"Commas must stand between columns. {hint}"
            last = problems[-1].message.removesuffix("?")
            stop = "?" if last != problems[-1].message else "."
            problems[-1] = Problem("", f"{last}{stop} Columns of the file: {there}. {hint}".strip())
            raise FileProblem(self.path, problems)

    def refuse_faults(self) -> None:
        """Refuse the file where a row has a fault.

        Raises FileProblem: all faults, up to 20 of them.
        """
        problems = [problem for row in self.rows for problem in row.problems]
        if problems:
            more = len(problems) - _MOST_FAULTS
            rest = [Problem("", f"and {more} more")] if more > 0 else []
            raise FileProblem(self.path, problems[:_MOST_FAULTS] + rest)


def read_csv(path: str | Path, *, kind: str) -> CsvFile:
    """Read a CSV file with a header; empty lines and those that start with ``#`` are skipped.

    Raises FileProblem: the file cannot be read, is empty, or a row has more or fewer cells than the header.
    """
    text = read_text(Path(path), kind=kind, largest_bytes=100_000_000)
    lines = csv.reader(io.StringIO(text))
    header: tuple[str, ...] = ()
    rows, problems = [], []
    try:
        for cells in lines:
            if not any(cell.strip() for cell in cells) or cells[0].lstrip().startswith("#"):
                continue
            if not header:
                header = tuple(cell.strip() for cell in cells)
            elif len(cells) != len(header):
                message = f"has {len(cells)} cells, the header {len(header)}"
                problems.append(Problem(f"row {lines.line_num}", message))
            else:
                rows.append(CsvRow(number=lines.line_num, cells=dict(zip(header, cells, strict=True))))
    except csv.Error as error:
        raise FileProblem(str(path), [Problem(f"row {lines.line_num}", f"is no CSV: {error}")]) from error
    if not rows and not problems:
        problems.append(Problem("", f"has no rows: no {kind}"))
    if len(set(header)) < len(header):
        problems.append(Problem("row 1", "names a column twice"))
    if problems:
        raise FileProblem(str(path), problems[:_MOST_FAULTS])
    return CsvFile(path=str(path), columns=header, rows=tuple(rows))


def watts(row: CsvRow, column: str) -> float:
    """Return a cell as a power; NaN, and a fault, where it is none."""
    return row.number_in(column, high=_MOST_W, what="watts, not negative")
