"""Synthetic traffic patterns of networks on chip, in which every sending node sends 1 in total.

After sec. 6.5 of Li (2012) and table 3.2 of W. Dally and B. Towles, "Principles and Practices of Interconnection
Networks" (Morgan Kaufmann, 2004). Patterns of rows and columns move traffic between routers; the k-th node of a router
sends to the k-th node of another. A node whose target is itself sends nothing. :func:`read_matrix` reads matrices from
files.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from routecast.errors import FileProblem, Problem, RoutecastError
from routecast.noc.topology import Topology
from routecast.noc.traffic import Traffic
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean

__all__ = [
    "PATTERNS",
    "Along",
    "bit_complement",
    "centre",
    "hot_spot",
    "neighbour",
    "normal",
    "pattern",
    "read_matrix",
    "tornado",
    "transpose",
    "uniform",
]

_MAX_REPORTED = 20
# More than any fabric carries in bit/s; sums of far larger numbers overflow.
_MAX_RATE = 1e18
_MAX_NODES = 4096
_LOAD_COLUMN, _RATE_COLUMN = "load", "rate_bps"


def read_matrix(path: Path, *, nodes: int | None = None, link_rate_bps: float | None = None) -> NDArray[np.float64]:
    """Return the demand that a file states, shape (nodes, nodes), in capacities of a link at full clock.

    Three kinds of file are read:

    * ``*.npy``: a square array of numbers;
    * CSV without a header: a square of numbers, row i what node i sends to each node;
    * CSV with the header ``source,target,load`` or ``source,target,rate_bps``: node numbers from 0 on and the traffic
      from source to target; absent pairs send nothing.

    Parameters
    ----------
    path : Path
    nodes : int, optional
        Number of nodes of the topology; a square of another size and a higher node number are refused.
    link_rate_bps : float, optional
        Rate of a link at full clock. With it the numbers of the file are bit/s, without it link capacities.

    Raises
    ------
    routecast.errors.FileProblem
        Every fault with its row, column and value: not square, not the size of the topology, negative, not a number,
        an unknown node, a pair given twice, rates without a link rate.
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
    is_array = isinstance(loaded, np.ndarray)
    is_real = is_array and np.issubdtype(loaded.dtype, np.number) and not np.iscomplexobj(loaded)
    if not is_real or loaded.ndim != 2 or loaded.shape[0] != loaded.shape[1]:
        kind = f"{loaded.dtype} of shape {loaded.shape}" if is_array else "no array"
        raise FileProblem(str(path), [Problem("", f"is {kind}: give a square array of real numbers")])
    if not loaded.size:
        raise FileProblem(str(path), [Problem("", "is empty: give a square of numbers")])
    demand: NDArray[np.float64] = loaded.astype(np.float64)
    wrong = np.argwhere(~((demand >= 0) & (demand <= _MAX_RATE)))
    _raise_if_any(path, [_rate_problem(int(row), int(column), str(demand[row, column])) for row, column in wrong])
    return demand


def _from_square(path: Path, rows: list[list[str]]) -> NDArray[np.float64]:
    size = len(rows)
    if not rows:
        raise FileProblem(str(path), [Problem("", "is empty: give a square of numbers")])
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
            value = _parse_rate(cell)
            if value is None:
                problems.append(_rate_problem(i, j, cell.strip()))
            else:
                demand[i, j] = value
    _raise_if_any(path, problems)
    return demand


def _from_pairs(path: Path, rows: list[list[str]], nodes: int | None, *, has_link_rate: bool) -> NDArray[np.float64]:
    header = [cell.strip().lower() for cell in rows[0]]
    if len(header) != 3 or header[1] != "target" or header[2] not in (_LOAD_COLUMN, _RATE_COLUMN):
        wrong = next((cell for cell in header if cell not in ("source", "target", _LOAD_COLUMN, _RATE_COLUMN)), "")
        hint = f' ("{wrong}": {did_you_mean(wrong, ["target", _LOAD_COLUMN, _RATE_COLUMN])})' if wrong else ""
        message = f"has the columns {', '.join(header)}{hint}: give source, target and load or rate_bps"
        raise FileProblem(str(path), [Problem("row 0", message)])
    if (header[2] == _RATE_COLUMN) != has_link_rate:
        message = (
            "states rates in bit/s, but no link rate is given: give the rate of a link"
            if header[2] == _RATE_COLUMN
            else "states loads in link capacities, but a link rate is given: leave it out, or name the column rate_bps"
        )
        raise FileProblem(str(path), [Problem(f"column {header[2]}", message)])
    problems: list[Problem] = []
    stated: dict[tuple[int, int], float] = {}
    for i, row in enumerate(rows[1:], start=1):
        if len(row) != 3:
            problems.append(Problem(f"row {i}", f"has {len(row)} cells: source, target and {header[2]}"))
            continue
        pair = [_parse_node(cell, nodes) for cell in row[:2]]
        value = _parse_rate(row[2])
        for name, cell, node in zip(header[:2], row[:2], pair, strict=True):
            if node is None:
                last = (nodes or _MAX_NODES) - 1
                message = f'got "{cell.strip()}": nodes are numbered 0 to {last}'
                problems.append(Problem(f"row {i}, column {name}", message))
        if value is None:
            problems.append(_rate_problem(i, header[2], row[2].strip()))
        source, target = pair
        if source is None or target is None or value is None:
            continue
        if (source, target) in stated:
            problems.append(Problem(f"row {i}", f"{source} to {target} is already given above: add the two"))
        stated[source, target] = value
    if not stated and not problems:
        problems.append(Problem("", "names no pair of nodes: give at least one"))
    _raise_if_any(path, problems)
    size = nodes or 1 + max(max(pair) for pair in stated)
    demand = np.zeros((size, size))
    for (source, target), value in stated.items():
        demand[source, target] = value
    return demand


def _parse_rate(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if 0 <= value <= _MAX_RATE else None


def _parse_node(cell: str, nodes: int | None) -> int | None:
    text = cell.strip()
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        return None
    return int(text) if int(text) < (nodes or _MAX_NODES) else None


def _rate_problem(row: int, column: int | str, value: str) -> Problem:
    return Problem(
        f"row {row}, column {column}", f'got "{value}": give a finite number from 0 to {_MAX_RATE:g}, 0 for no traffic'
    )


def _raise_if_any(path: Path, problems: list[Problem]) -> None:
    if len(problems) > _MAX_REPORTED:
        rest = len(problems) - _MAX_REPORTED
        problems = [*problems[:_MAX_REPORTED], Problem("", f"and {rest} more")]
    if problems:
        raise FileProblem(str(path), problems)


class Along(StrEnum):
    """Which coordinates :func:`tornado` and :func:`neighbour` shift."""

    COLUMNS = "columns"
    BOTH = "both"


def uniform(topology: Topology, *, to_itself: bool = False) -> Traffic:
    """Return the traffic in which every node sends the same to every other.

    Parameters
    ----------
    topology : Topology
    to_itself : bool
        Whether a node draws its targets from all nodes, itself included, as BookSim 2 does; traffic to itself loads no
        link.
    """
    count = topology.node_count
    demand = np.full((count, count), 1 / (count if to_itself else count - 1))
    if not to_itself:
        np.fill_diagonal(demand, 0.0)
    return Traffic(name="uniform", demand=demand)


def normal(topology: Topology, *, permutations: int | None = None, seed: int = 1) -> Traffic:
    """Return the mean of random permutation matrices (Li 2012, secs. 6.5 and 7.4).

    Every node sends and receives 1 in total, spread unevenly. The permutations may map a node to itself, as Li's
    footnote 1 allows; that traffic is on the diagonal and loads no link.

    Parameters
    ----------
    topology : Topology
    permutations : int, optional
        Number of permutations; by default that of the nodes (Li (2012): 25 on a mesh of 5 x 5).
    seed : int
        Seed of the permutations.

    Raises
    ------
    RoutecastError
        Less than one permutation.
    """
    nodes = topology.node_count
    count = nodes if permutations is None else permutations
    if count < 1:
        msg = f"normal traffic: {count} permutations; give 1 or more (Li (2012) takes one per node, {nodes} here)"
        raise RoutecastError(msg)
    random = np.random.default_rng(seed)
    demand = np.zeros((nodes, nodes))
    for _ in range(count):
        demand[np.arange(nodes), random.permutation(nodes)] += 1 / count
    return Traffic(name="normal", demand=demand)


def transpose(topology: Topology, *, to_itself: bool = False) -> Traffic:
    """Return the traffic in which the node in row x and column y sends to the node in row y and column x.

    Parameters
    ----------
    topology : Topology
    to_itself : bool
        Whether nodes on the diagonal send to themselves, as in BookSim 2, or nothing, as in Li (2012) (sec. 6.5: x
        and y differ).

    Raises
    ------
    RoutecastError
        The numbers of rows and columns differ.
    """
    if topology.columns != topology.rows:
        msg = (
            f"transpose traffic exchanges rows and columns, and {topology.columns} x {topology.rows} routers are "
            "not a square: take as many rows as columns, or another pattern"
        )
        raise RoutecastError(msg)
    return _permuted("transpose", topology, lambda x, y: (y, x), to_itself=to_itself)


def tornado(topology: Topology, *, along: Along = Along.COLUMNS) -> Traffic:
    """Return the traffic that goes almost half a ring to the right, with wrapping.

    In k columns the node in column x sends to column (x + ceil(k/2) - 1) mod k of its row (Dally and Towles, table
    3.2), which is Li's (x + 2) mod 5 on 5 columns.

    Parameters
    ----------
    topology : Topology
    along : Along
        ``columns`` as in Li (2012); ``both`` shifts rows in the same way, as BookSim 2 does.

    Raises
    ------
    RoutecastError
        The grid is too small: every node would send to itself (fewer than 3 columns).
    """
    dx = _tornado_step(topology.columns)
    dy = _tornado_step(topology.rows) if along is Along.BOTH else 0
    if dx == 0 and dy == 0:
        msg = (
            f"tornado traffic on {topology.columns} x {topology.rows} routers: ceil(k/2) - 1 is 0, every node would "
            "send to itself; take 3 columns or more"
        )
        raise RoutecastError(msg)
    return _shifted("tornado", topology, dx, dy)


def neighbour(topology: Topology, *, along: Along = Along.COLUMNS) -> Traffic:
    """Return the traffic that goes one column to the right, with wrapping (Dally and Towles, table 3.2).

    Parameters
    ----------
    topology : Topology
    along : Along
        ``columns`` stays in the row (on a grid of one column: one row down); ``both`` goes one row down as well, as
        BookSim 2 does.
    """
    down = 1 if along is Along.BOTH or topology.columns == 1 else 0
    return _shifted("neighbour", topology, 1, down)


def bit_complement(topology: Topology) -> Traffic:
    """Return the traffic in which every node sends to the node opposite through the centre of the grid.

    The target has the complement of both coordinates, (columns - 1 - x, rows - 1 - y): router number R - 1 - r of R.
    Where R is a power of two, that is the number with all its bits inverted, which gave the pattern its name.
    """
    columns, rows = topology.columns, topology.rows
    return _permuted("bit_complement", topology, lambda x, y: (columns - 1 - x, rows - 1 - y))


def hot_spot(
    topology: Topology,
    *,
    nodes: Sequence[int] | None = None,
    weights: Sequence[float] | None = None,
    share: float = 0.6,
    to_itself: bool = False,
) -> Traffic:
    """Return the traffic in which every node sends a share to hot spots and the rest evenly to all other nodes.

    Li (2012) (sec. 6.5) sends 0.6 to one hot spot in the centre and 0.4 uniformly to any other node; the hot spot is
    one of these, so it gets 0.6 + 0.4/(N - 1) from each. A hot spot sends its share to the other hot spots; a single
    hot spot sends all its traffic uniformly.

    Parameters
    ----------
    topology : Topology
    nodes : sequence of int, optional
        The hot spots; :func:`centre` by default.
    weights : sequence of float, optional
        Division of the share among the hot spots; even by default.
    share : float
        Part of its traffic that a node sends to hot spots, 0..1.
    to_itself : bool
        Whether a node may draw itself as a hot spot and as any node. With this, a share of 1 and weights the pattern
        is that of BookSim 2.

    Raises
    ------
    RoutecastError
        An unknown node, a node named twice, weights that are not positive or not as many as nodes, a share outside
        0..1.
    """
    count = topology.node_count
    hot = [centre(topology)] if nodes is None else list(nodes)
    heat = [1.0] * len(hot) if weights is None else [float(weight) for weight in weights]
    _check_hot_spots(hot, heat, share, count)
    others = uniform(topology, to_itself=to_itself).demand
    to_hot = np.zeros((count, count))
    to_hot[:, hot] = heat
    if not to_itself:
        np.fill_diagonal(to_hot, 0.0)
    total = to_hot.sum(axis=1, keepdims=True)
    # A single hot spot has no other hot spot: it sends all its traffic uniformly.
    to_hot = np.divide(to_hot, total, out=others.copy(), where=total > 0)
    return Traffic(name="hot_spot", demand=share * to_hot + (1 - share) * others)


def centre(topology: Topology) -> int:
    """Return the first node at the router in the centre; where sizes are even, right of and below the middle."""
    router = topology.router_at(topology.columns // 2, topology.rows // 2)
    return router * topology.concentration


PATTERNS: dict[str, Callable[..., Traffic]] = {
    "uniform": uniform,
    "normal": normal,
    "transpose": transpose,
    "tornado": tornado,
    "hot_spot": hot_spot,
    "bit_complement": bit_complement,
    "neighbour": neighbour,
}


def pattern(name: str, topology: Topology, *, seed: int = 1) -> Traffic:
    """Return the pattern of a name, as defined by Li (2012).

    ``name``: one of ``PATTERNS``; ``seed``: of ``normal``, the only random pattern. Raises RoutecastError: no pattern
    has the name, or it does not fit the topology.
    """
    if name not in PATTERNS:
        msg = f'traffic pattern "{name}" is not known: {did_you_mean(name, PATTERNS)}'
        raise RoutecastError(msg)
    return PATTERNS[name](topology, seed=seed) if name == "normal" else PATTERNS[name](topology)


def _tornado_step(size: int) -> int:
    return math.ceil(size / 2) - 1


def _shifted(name: str, topology: Topology, dx: int, dy: int) -> Traffic:
    columns, rows = topology.columns, topology.rows
    return _permuted(name, topology, lambda x, y: ((x + dx) % columns, (y + dy) % rows))


def _permuted(
    name: str, topology: Topology, target: Callable[[int, int], tuple[int, int]], *, to_itself: bool = False
) -> Traffic:
    count = topology.concentration
    nodes = np.arange(count)
    demand = np.zeros((topology.node_count, topology.node_count))
    for router in range(topology.router_count):
        other = topology.router_at(*target(*topology.position(router)))
        if other != router or to_itself:
            demand[router * count + nodes, other * count + nodes] = 1.0
    return Traffic(name=name, demand=demand)


def _check_hot_spots(hot: list[int], heat: list[float], share: float, count: int) -> None:
    faults = []
    if not hot:
        faults.append("no hot spot is named: name at least one node, or leave nodes out for the centre")
    faults += [
        f"hot spot {node} is not a node: nodes are numbered 0 to {count - 1}" for node in hot if not 0 <= node < count
    ]
    faults += [f"hot spot {node} is named twice: give it more weight" for node in {*hot} if hot.count(node) > 1]
    if len(heat) != len(hot):
        faults.append(f"{len(heat)} weights for {len(hot)} hot spots: give one for each")
    faults += [f"weight {weight:g} of a hot spot: give more than 0" for weight in heat if not 0 < weight < math.inf]
    if not 0 <= share <= 1:
        faults.append(f"share {share:g} to the hot spots: it is in 0..1 (Li (2012): 0.6)")
    if faults:
        msg = "hot-spot traffic: " + "; ".join(faults)
        raise RoutecastError(msg)
