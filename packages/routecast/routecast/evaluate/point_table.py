"""Tables of measured points: CSV, Parquet or a spreadsheet with one row per point.

They have the columns of :data:`COLUMNS`, in the units that their heads or cells name; rows with ``calibrate = true``
calibrate a router, the others are predicted.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

from routecast.errors import FileProblem, Problem
from routecast.evaluate._point_columns import COLUMNS, HEAD_OF_KIND, REQUIRED, SPELLINGS
from routecast.evaluate._point_heads import plain_head, read_header
from routecast.evaluate._point_rows import RowReader
from routecast.evaluate.points import LATENCY_STATISTICS, Point, PointTable
from routecast.quantity.bounded_file import MAX_FILE_BYTES, read_parquet
from routecast.quantity.table_file import csv_cells, is_spreadsheet, read_sheet, read_table_text, rename_heads

__all__ = [
    "is_head",
    "parse_cells",
    "parse_points",
    "points_text",
    "read_cells",
    "read_points",
    "read_router_points",
    "read_table",
]


_MAX_CELLS = 2_000_000


def read_table(path: Path | str, *, rename: Mapping[str, str] = MappingProxyType({})) -> PointTable:
    """Read a table of measured points.

    Parameters
    ----------
    path : Path or str
        Parquet (``.parquet``), a spreadsheet (``.xlsx``, ``.ods``, with ``#Sheet`` where it has several), or CSV in
        UTF-8 or UTF-16 (:mod:`routecast.quantity.table_file`), where lines that start with ``#`` are skipped. The heads
        are those of :data:`COLUMNS`, in any order. A row without a rate has the throughput NaN and does not calibrate.
    rename : mapping of str to str
        Names of :data:`COLUMNS` for heads of the file that are called otherwise.

    Raises
    ------
    routecast.errors.FileProblem
        With every fault of the file and its place, e.g. ``row 7, column cores``. Row 1 is the header.
    """
    notes: list[str] = []
    table = _table(read_cells(Path(path), rename, on_note=notes.append), str(path), None)
    return PointTable(points=table.points, remarks=(*notes, *table.remarks))


def is_head(cells: Sequence[str]) -> bool:
    """Whether cells may be the heads of a table of points."""
    columns = {SPELLINGS[head][0] for cell in cells if (head := plain_head(cell)) in SPELLINGS}
    return set(REQUIRED) <= columns


def read_points(path: Path | str) -> tuple[Point, ...]:
    """Read the points of :func:`read_table`.

    Raises
    ------
    routecast.errors.FileProblem
        As :func:`read_table`.
    """
    return read_table(path).points


def read_router_points(path: Path | str, *, cores: int, link_bps: float, ports: int, series: str) -> tuple[Point, ...]:
    """Read points of one known router; each row names its flows, and columns that the router fixes may be missing.

    Every row has a rate, and no two rows have equal conditions. No row needs to calibrate, because another file may
    hold the calibrating points.

    Raises FileProblem: as :func:`read_points`, and where a row contradicts the router, has no rate or has frames of
    several sizes.
    """
    router = Point(
        cores=cores, frame_bytes=64.0, throughput_pps=math.nan, link_bps=link_bps, ports=ports, series=series
    )
    return _table(read_cells(Path(path)), str(path), router).points


def parse_points(text: str, *, name: str = "points", router: Point | None = None) -> tuple[Point, ...]:
    r"""Read measured points from CSV text; like :func:`read_points`, or for a ``router`` :func:`read_router_points`.

    Examples
    --------
    >>> points = parse_points("cores,throughput,calibrate\n1,1.7 Mpps,true\n2,3.3 Mpps,false\n4,,\n")
    >>> [(point.cores, point.throughput_pps, point.calibrate) for point in points]
    [(1, 1700000.0, True), (2, 3300000.0, False), (4, nan, False)]
    """
    return _table(csv_cells(text, name=name), name, router).points


def parse_cells(cells: Iterable[Sequence[str]], *, name: str = "points") -> PointTable:
    """Read measured points from the cells of a table as text, the heads first; like :func:`read_table`."""
    return _table(cells, name, None)


def read_cells(
    path: Path, rename: Mapping[str, str] = MappingProxyType({}), *, on_note: Callable[[str], None] = lambda text: None
) -> list[list[str]]:
    """Return the cells of a file as text, the heads first, renamed.

    ``on_note``: called with what is assumed about the file. Raises FileProblem: the file cannot be read as a table, or
    lacks a head that is to be renamed.
    """
    kind = "file of points"
    if is_spreadsheet(path):
        cells = read_sheet(path, kind=kind, is_head=lambda heads: is_head([rename.get(head, head) for head in heads]))
    elif path.suffix.lower() != ".parquet":
        cells = csv_cells(read_table_text(path, kind=kind, on_note=on_note), name=str(path))
    else:
        frame = read_parquet(path, kind=kind, max_file_bytes=MAX_FILE_BYTES)
        if frame.height * frame.width > _MAX_CELLS:
            message = f"has more than {_MAX_CELLS:,} cells: no {kind}; name another file, or cut this one"
            raise FileProblem(str(path), [Problem("", message)])
        rows = [["" if cell is None else str(cell) for cell in row] for row in frame.iter_rows()]
        cells = [list(frame.columns), *rows]
    return rename_heads(cells, rename, name=str(path))


def _table(table: Iterable[Sequence[str]], name: str, router: Point | None) -> PointTable:
    rows = [(number, cells) for number, cells in enumerate(table, start=1) if any(cell.strip() for cell in cells)]
    if not rows:
        raise FileProblem(name, [Problem("", f"is empty: the first row names columns, {', '.join(COLUMNS)}")])
    heads, problems = read_header([cell.strip() for cell in rows[0][1]], router, [cells for _, cells in rows[1:]])
    if problems:
        raise FileProblem(name, problems)
    reader = RowReader(heads=heads, router=router, problems=problems)
    points = [(number, point) for number, cells in rows[1:] if (point := reader.point(number, cells)) is not None]
    problems += reader.questions()
    problems += _table_problems(points, complete=not problems, of_router=router is not None)
    if problems:
        raise FileProblem(name, problems)
    return PointTable(points=tuple(point for _, point in points), remarks=tuple(reader.remarks()))


def _latency_cell(point: Point, *, name: str, per_unit: float | None = None, unstated: object = None) -> object:
    """Return a cell of a row's latency, in units of which a base unit has ``per_unit``; none for ``unstated``."""
    amount = None if point.latency is None else getattr(point.latency, name)
    if amount == unstated or (isinstance(amount, float) and math.isnan(amount)):
        return None
    return amount if amount is None or per_unit is None else float(f"{amount * per_unit:.12g}")


_CELL_OF_COLUMN: Final[Mapping[str, Callable[[Point], object]]] = {
    "cores": lambda point: point.cores,
    "frame_bytes": lambda point: point.frame_mix.name if point.frame_mix else point.frame_bytes,
    "throughput_pps": lambda point: "" if math.isnan(point.throughput_pps) else point.throughput_pps,
    "flows": lambda point: point.flows,
    "link_bps": lambda point: point.link_bps,
    "ports": lambda point: point.ports,
    "nic_cap_pps": lambda point: point.nic_cap_pps,
    "series": lambda point: point.series,
    "calibrate": lambda point: str(point.calibrate).lower(),
    "standard_error_ratio": lambda point: point.standard_error_ratio,
    "rate_kind": lambda point: point.rate_kind,
    "disturbed": lambda point: point.disturbed,
    **{f"latency_{name}_us": partial(_latency_cell, name=f"{name}_s", per_unit=1e6) for name in LATENCY_STATISTICS},
    "latency_load_pps": partial(_latency_cell, name="load_pps"),
    "latency_load_ratio": partial(_latency_cell, name="load_ratio"),
    "latency_load_of": partial(_latency_cell, name="load_of"),
    "latency_arrivals": partial(_latency_cell, name="arrivals"),
    "latency_samples": partial(_latency_cell, name="samples"),
    "latency_devices": partial(_latency_cell, name="devices", unstated=1),
    "latency_tester_us": partial(_latency_cell, name="tester_s", per_unit=1e6, unstated=0.0),
    "latency_resolution_us": partial(_latency_cell, name="resolution_s", per_unit=1e6, unstated=0.0),
    "latency_ring_frames": partial(_latency_cell, name="ring_frames"),
    "latency_batch_frames": partial(_latency_cell, name="batch_frames"),
}


def points_text(points: Sequence[Point], *, always: Sequence[str] = ()) -> str:
    """Return the text of a file that reads back as these points; a quantity without any value has no column.

    The head of the rates names their kind if all have the same. The columns ``always`` are there without values, too.
    """
    columns = {
        name: cell
        for name, cell in _CELL_OF_COLUMN.items()
        if name in always or any(cell(point) not in {None, ""} for point in points)
    }
    kinds = {point.rate_kind for point in points}
    head = HEAD_OF_KIND.get(kinds.pop()) if len(kinds) == 1 else None
    if head:
        columns.pop("rate_kind")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head if head and name == "throughput_pps" else name for name in columns)
    writer.writerows([cell(point) for cell in columns.values()] for point in points)
    return text.getvalue()


def _table_problems(points: Sequence[tuple[int, Point]], *, complete: bool, of_router: bool) -> list[Problem]:
    problems = []
    seen: dict[tuple[object, ...], int] = {}
    for number, point in points:
        if of_router and seen.setdefault(point.conditions, number) != number:
            problems.append(Problem(f"row {number}", f"repeats row {seen[point.conditions]}: a study has a point once"))
    if not complete:
        return problems
    if not points:
        return [*problems, Problem("", "has no row of data: give at least one measured point")]
    if of_router:
        return problems
    calibrated = {point.series for _, point in points if point.calibrate}
    rated = {point.series for _, point in points if not math.isnan(point.throughput_pps)}
    for name in dict.fromkeys(point.series for _, point in points):
        if name in calibrated:
            continue
        column, remedy = "calibrate", "set calibrate = true on at least one row of each series"
        if name not in rated:
            column, remedy = "throughput", "give the measured rate of at least one row of each series"
        location = f"series {name[:60]!r}" if name else f"column {column}"
        problems.append(Problem(location, f"no row calibrates: {remedy}"))
    return problems
