"""A first study file from a table of measured points, with its guesses marked.

A study's router has one number of cores, and its rows state how many of the cores have a flow. So a row measured with k
cores becomes a row with k flows on the router with the most cores of the table.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from routecast.errors import FileProblem, Problem
from routecast.evaluate.points import Point
from routecast.load.offered import line_rate_pps
from routecast.quantity.toml_file import toml_string

__all__ = ["study_texts"]

_LINKS_BPS = (1e9, 10e9, 25e9, 40e9, 50e9, 100e9, 200e9, 400e9, 800e9, 1600e9)
_FREE_LINK_RATIO = 1.2
"""A link that carries this many times the rate of a row does not limit it."""

_TEXT = """\
# Written by `routecast init --measurements`, of {source}. `routecast study {name}.study.toml` calibrates, predicts
# every scenario, and writes {name}/report.html. The table does not state the values marked "guess": correct them. All
# keys: docs/cli.md, `routecast schema study`.

name = {name_text}
title = {title}
question = "How many frames a second does the router forward, and how many with other cores?"

[router]
cores = {cores}  # the most that were measured
ports = {ports}
link = "{link}"{link_note}
description = ""  # the machine in words, for the report: processor, card, kernel, driver

[measurements]
calibrate = "{calibrate}"
validate = "{validate}"  # {role}

[evaluate]
with = ["solve"]  # "simulate" answers packet by packet as well, which takes longer

[[scenario]]
name = "measured"
title = "The router that was measured"
flows = {flows}
frames = {frames}

[[scenario]]
name = "other-cores"
title = "{other} cores"
cores = {other}  # {other_note}
flows = [{other}]
frames = {frames}

# [criteria]  # `routecast study` leaves with 1 when one is missed
# mean_over_held_out = 0.02
"""


def study_texts(name: str, points: Sequence[Point], *, source: str) -> dict[str, str]:
    """Return the text of a study of some points, and those of the tables that it reads, by file name.

    ``name``: of the study and of its files; ``points``: of one series; ``source``: table of the points, for comments
    and messages. Raises FileProblem: the points have mixes of frame sizes, several links or several numbers of ports,
    or rates that no link of a study carries.
    """
    rated = [point for point in points if not math.isnan(point.throughput_pps)]
    problems = list(_problems(rated))
    if problems:
        raise FileProblem(
            source, [Problem("", f"{problem}; --router writes a router file of it") for problem in problems]
        )
    rows = _rows(rated)
    calibrating = {key: row for key, row in rows.items() if any(point.calibrate for point in row)}
    ports, known_link = rated[0].ports, rated[0].link_bps
    link_bps = known_link or _free_link_bps(rows, ports)
    if link_bps is None:
        message = "the table has no link, and no link of Ethernet carries its rates: add a column link"
        raise FileProblem(source, [Problem("", message)])
    cores = max(point.cores for point in rated)
    holds_out = len(calibrating) < len(rows)
    other_cores = max((point.cores for point in points if math.isnan(point.throughput_pps)), default=2 * cores)
    tables = {f"{name}-measured.csv": _table(rows, source)}
    if holds_out:
        tables = {f"{name}-calibrate.csv": _table(calibrating, source), **tables}
    text = _TEXT.format(
        name=name,
        name_text=toml_string(name),
        source=toml_string(source),
        title=toml_string(f"{rated[0].series or name}: measured and predicted"),
        cores=cores,
        ports=ports,
        link=f"{link_bps / 1e9:.10g} Gbit/s",
        link_note="" if known_link else "  # guess: faster than what was measured needs",
        calibrate=next(iter(tables)),
        validate=f"{name}-measured.csv",
        role="its rows that do not calibrate judge the calibration"
        if holds_out
        else "to hold rows out, calibrate on a copy without them",
        flows=sorted({flows for flows, _ in rows}),
        frames=json.dumps([f"{size} B" for size in sorted({size for _, size in rows})]),
        other=other_cores,
        other_note="guess: twice as many" if len(rated) == len(points) else "the most in rows without a rate",
    )
    return {f"{name}.study.toml": text, **tables}


_Rows = Mapping[tuple[int, int], Sequence[Point]]
"""Points by flows and frame size; the points of a key are repetitions."""


def _problems(points: Sequence[Point]) -> Iterable[str]:
    if any(point.frame_mix is not None or not point.frame_bytes.is_integer() for point in points):
        yield "a study has frames of one size each, and the table has mixes of sizes or parts of a byte"
    if len({point.link_bps for point in points}) > 1:
        yield "a study has one rate for all links, and the rows have several"
    if len({point.ports for point in points}) > 1:
        yield "a study has one number of ports, and the rows have several"


def _rows(points: Iterable[Point]) -> _Rows:
    rows: dict[tuple[int, int], list[Point]] = {}
    for point in points:
        rows.setdefault((point.working_cores, int(point.frame_bytes)), []).append(point)
    return dict(sorted(rows.items()))


def _free_link_bps(rows: _Rows, ports: int) -> float | None:
    """Return the rate of the slowest usual link that limits no row; None if every usual link limits a row."""
    for link_bps in _LINKS_BPS:
        if all(
            min(flows, ports) * line_rate_pps(link_bps, size) >= _FREE_LINK_RATIO * _rate_pps(row)
            for (flows, size), row in rows.items()
        ):
            return link_bps
    return None


def _rate_pps(row: Sequence[Point]) -> float:
    return fmean(point.throughput_pps for point in row)


def _table(rows: _Rows, source: str) -> str:
    """Return the CSV text of a study's table, without empty columns."""
    shared = {True: "yes", False: "no", None: ""}
    lines = [
        {
            "flows": flows,
            "frame_bytes": size,
            "throughput_pps": f"{_rate_pps(row):.10g}",
            "nic_cap_pps": "" if row[0].nic_cap_pps is None else f"{row[0].nic_cap_pps:.10g}",
            "shared_queue": shared[row[0].layout.shared_queue],
            "queues": row[0].layout.queues or "",
            "transmit_ring": "modulo" if row[0].layout.transmits_by_modulo else "",
        }
        for (flows, size), row in rows.items()
    ]
    columns = [name for name in lines[0] if any(line[name] != "" for line in lines)]
    text = io.StringIO()
    text.write(f"# Of {toml_string(source)}: k cores as k flows, repetitions as their mean.\n")
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()
