"""Reading a recorded trace: a CSV file with one frame per line."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

from routecast.errors import FileProblem, ModelProblem, Problem
from routecast.load.arrivals import Arrivals
from routecast.quantity.bounded_file import read_text

__all__ = ["read_trace"]

_COLUMNS = ("time_s", "frame_bytes", "flow")
_SHOWN_PROBLEMS = 20
_LARGEST_BYTES = 500_000_000
"""Some twenty million frames, a gigabyte or two in memory."""


def read_trace(path: str | Path) -> Arrivals:
    """Read arrivals from a CSV file with the columns ``time_s, frame_bytes, flow``.

    Raises
    ------
    FileProblem
        The file cannot be read or a line is wrong; up to twenty wrong lines are listed.
    """
    path = Path(path)
    times_s: list[float] = []
    sizes_bytes: list[int] = []
    flows: list[int] = []
    problems: list[Problem] = []
    text = read_text(path, kind="trace", largest_bytes=_LARGEST_BYTES)
    try:
        rows = csv.reader(io.StringIO(text, newline=""))
        header = [name.strip() for name in next(rows, [])]
        if sorted(header) != sorted(_COLUMNS):
            got = ", ".join(header)[:200] or "nothing"
            raise FileProblem(
                str(path), [Problem("line 1", f"got the columns {got}: a trace has {', '.join(_COLUMNS)}")]
            )
        place = {name: header.index(name) for name in _COLUMNS}
        before_s = 0.0
        for row in rows:
            if not row:
                continue
            try:
                if len(row) != len(_COLUMNS):
                    raise ValueError(f"has {len(row)} fields")
                time_s = float(row[place["time_s"]])
                size_bytes = int(row[place["frame_bytes"]])
                flow = int(row[place["flow"]])
                if not (math.isfinite(time_s) and time_s >= before_s):
                    raise ValueError(f"time_s is {time_s}: instants are >= 0 and never go backwards")
                if not 64 <= size_bytes <= 65_535:
                    raise ValueError(f"frame_bytes is {size_bytes}: frames have 64 to 65535 bytes")
                if flow < 0:
                    raise ValueError(f"flow is {flow}: flows are numbered 0, 1, …")
            except ValueError as problem:
                problems.append(Problem(f"line {rows.line_num}", str(problem)[:200]))
                if len(problems) == _SHOWN_PROBLEMS:
                    break
                continue
            before_s = time_s
            times_s.append(time_s)
            sizes_bytes.append(size_bytes)
            flows.append(flow)
    except csv.Error as problem:
        raise FileProblem(str(path), [Problem("", f"cannot be read as CSV: {problem}")]) from problem
    if problems:
        raise FileProblem(str(path), problems)
    try:
        return Arrivals(
            kind="trace", trace_time_s=tuple(times_s), trace_frame_bytes=tuple(sizes_bytes), trace_flow=tuple(flows)
        )
    except ModelProblem as problem:
        raise FileProblem(str(path), problem.problems) from problem
