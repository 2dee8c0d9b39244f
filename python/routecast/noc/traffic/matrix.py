"""Traffic matrices from files: a square of numbers, or rows of source, target and how much."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from routecast.errors import FileProblem, Problem
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean

__all__ = ["read_matrix"]

_MOST_FAULTS = 20
# More than any fabric carries in bit/s; sums of far larger numbers overflow.
_LARGEST = 1e18
_MOST_NODES = 4096
_LOAD, _RATE = "load", "rate_bps"


def read_matrix(path: Path, *, nodes: int | None = None, link_rate_bps: float | None = None) -> NDArray[np.float64]:
    """Return the demand that a file states, shape (nodes, nodes), in capacities of a link at full clock.

    Three kinds of file are read:

    * ``*.npy``: a square array of numbers;
    * CSV without a header: a square of numbers, row i what node i sends to each node;
    * CSV with the header ``source,target,load`` or ``source,target,rate_bps``: node numbers from 0 on and how much goes
      from one to the other; pairs that are not there send nothing.

    Parameters
    ----------
    path : Path
    nodes : int, optional
        How many nodes the topology has; a square of another size and a node beyond are faults.
    link_rate_bps : float, optional
        What a link carries at full clock. The numbers of the file are bit/s then, and link capacities without it.

    Raises
    ------
    routecast.errors.FileProblem
        Every fault with its row, column, value and what is allowed: no square, not the size of the topology, negative,
        no number, a node that is not there, a pair named twice, rates without a link rate.
    """
    if link_rate_bps is not None and not 0 < link_rate_bps < math.inf:
        raise FileProblem(str(path), [Problem("", f"link rate {link_rate_bps:g} bit/s: a link carries more than 0")])
    if path.suffix == ".npy":
        demand = _from_npy(path)
    else:
        # Spreadsheets put a byte order mark before the first cell.
        text = read_text(path, kind="traffic matrix")
        rows = [row for row in csv.reader(io.StringIO(text)) if any(row)]
        if rows and rows[0][0].strip().lower() == "source":
            demand = _from_pairs(path, rows, nodes, has_link_rate=link_rate_bps is not None)
        else:
            demand = _from_square(path, rows)
    if nodes is not None and len(demand) != nodes:
        message = (
            f"is {len(demand)} x {len(demand)} and the topology has {nodes} nodes: give one row and one column "
            "for each node, or take a topology of that size"
        )
        raise FileProblem(str(path), [Problem("", message)])
    return demand if link_rate_bps is None else demand / link_rate_bps


def _from_npy(path: Path) -> NDArray[np.float64]:
    try:
        loaded = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as problem:
        raise FileProblem(str(path), [Problem("", f"cannot be read as a NumPy array: {problem}")]) from problem
    if not isinstance(loaded, np.ndarray) or not np.issubdtype(loaded.dtype, np.number) or loaded.ndim != 2:
        kind = f"{loaded.dtype} of shape {loaded.shape}" if isinstance(loaded, np.ndarray) else "no array"
        raise FileProblem(str(path), [Problem("", f"is {kind}: a square array of real numbers is wanted")])
    if np.iscomplexobj(loaded) or loaded.shape[0] != loaded.shape[1]:
        raise FileProblem(
            str(path),
            [Problem("", f"is {loaded.dtype} of shape {loaded.shape}: a square array of real numbers is wanted")],
        )
    if not loaded.size:
        raise FileProblem(str(path), [Problem("", "is empty: a square of numbers is wanted")])
    demand = loaded.astype(np.float64)
    wrong = np.argwhere(~((demand >= 0) & (demand <= _LARGEST)))
    _raise(path, [_fault(int(row), int(column), str(demand[row, column])) for row, column in wrong])
    return demand


def _from_square(path: Path, rows: list[list[str]]) -> NDArray[np.float64]:
    size = len(rows)
    if not rows:
        raise FileProblem(str(path), [Problem("", "is empty: a square of numbers is wanted")])
    ragged = [i for i, row in enumerate(rows) if len(row) != size]
    if ragged:
        first, rest = ragged[0], len(ragged) - 1
        others = f" (as {rest} more {'row has' if rest == 1 else 'rows have'} another number)" if rest else ""
        message = (
            f"has {len(rows[first])} numbers and the file {size} rows{others}: a matrix is square, a row and a column "
            "for each node"
        )
        raise FileProblem(str(path), [Problem(f"row {first}", message)])
    problems: list[Problem] = []
    demand = np.zeros((size, size))
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            value = _number(cell)
            if value is None:
                problems.append(_fault(i, j, cell.strip()))
            else:
                demand[i, j] = value
    _raise(path, problems)
    return demand


def _from_pairs(path: Path, rows: list[list[str]], nodes: int | None, *, has_link_rate: bool) -> NDArray[np.float64]:
    header = [cell.strip().lower() for cell in rows[0]]
    if len(header) != 3 or header[1] != "target" or header[2] not in (_LOAD, _RATE):
        wrong = next((cell for cell in header if cell not in ("source", "target", _LOAD, _RATE)), "")
        hint = f' ("{wrong}": {did_you_mean(wrong, ["target", _LOAD, _RATE])})' if wrong else ""
        message = f"has the columns {', '.join(header)}{hint}: source, target and load or rate_bps are wanted"
        raise FileProblem(str(path), [Problem("row 0", message)])
    if (header[2] == _RATE) != has_link_rate:
        message = (
            "states rates in bit/s, and no link rate is given: say what a link carries"
            if header[2] == _RATE
            else "states loads in link capacities, and a link rate is given: leave it out, or name the column rate_bps"
        )
        raise FileProblem(str(path), [Problem(f"column {header[2]}", message)])
    problems: list[Problem] = []
    stated: dict[tuple[int, int], float] = {}
    for i, row in enumerate(rows[1:], start=1):
        if len(row) != 3:
            problems.append(Problem(f"row {i}", f"has {len(row)} cells: source, target and {header[2]}"))
            continue
        pair = [_node(cell, nodes) for cell in row[:2]]
        value = _number(row[2])
        for name, cell, node in zip(header[:2], row[:2], pair, strict=True):
            if node is None:
                last = (nodes or _MOST_NODES) - 1
                message = f'got "{cell.strip()}": nodes are numbered 0 to {last}'
                problems.append(Problem(f"row {i}, column {name}", message))
        if value is None:
            problems.append(_fault(i, header[2], row[2].strip()))
        source, target = pair
        if source is None or target is None or value is None:
            continue
        if (source, target) in stated:
            problems.append(Problem(f"row {i}", f"{source} to {target} stands above already: add the two"))
        stated[source, target] = value
    if not stated and not problems:
        problems.append(Problem("", "names no pair of nodes: at least one sends to another"))
    _raise(path, problems)
    size = nodes or 1 + max(max(pair) for pair in stated)
    demand = np.zeros((size, size))
    for (source, target), value in stated.items():
        demand[source, target] = value
    return demand


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if 0 <= value <= _LARGEST else None


def _node(cell: str, nodes: int | None) -> int | None:
    text = cell.strip()
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        return None
    return int(text) if int(text) < (nodes or _MOST_NODES) else None


def _fault(row: int, column: int | str, value: str) -> Problem:
    return Problem(
        f"row {row}, column {column}",
        f'got "{value}": traffic is a finite number, not negative and at most {_LARGEST:g}; 0 where none flows',
    )


def _raise(path: Path, problems: list[Problem]) -> None:
    if len(problems) > _MOST_FAULTS:
        rest = len(problems) - _MOST_FAULTS
        problems = [*problems[:_MOST_FAULTS], Problem("", f"and {rest} faults more")]
    if problems:
        raise FileProblem(str(path), problems)
