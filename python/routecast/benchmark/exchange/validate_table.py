"""Tables for ``routecast validate``: the most that was forwarded, by frame size, cores and flows.

Of every set of conditions the best valid trial counts: the throughput of a search, or what came back under overload.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection, Sequence

from routecast.benchmark.exchange.record import Record
from routecast.errors import FileProblem, Problem

__all__ = ["validate_text"]

_HEADER = ("cores", "frame_bytes", "throughput_pps", "flows", "link_bps", "ports", "series", "calibrate")


def validate_text(
    records: Sequence[Record],
    *,
    name: str = "records",
    goal: str | None = None,
    cores: int | None = None,
    flows: int | None = None,
    link_bps: float | None = None,
    calibrate_bytes: Collection[float] = (),
) -> str:
    """Return the CSV text of a file of measured points.

    Parameters
    ----------
    records : sequence of Record
    name : str
        Of the source, for messages.
    goal : str or None
        Only records with this goal (``"ndr"``, ``"mrr"``); None takes all.
    cores, flows, link_bps : int, int, float or None
        For records that do not say them.
    calibrate_bytes : collection of float
        Frame sizes whose rows calibrate; empty: the smallest and the largest of each series, which tell the cost of a
        frame from that of a byte.

    Raises
    ------
    routecast.errors.FileProblem
        No record gives a throughput, or the number of cores or the frame size is not known.
    """
    problems: list[Problem] = []
    best: dict[tuple[str, int, float, int | None], Record] = {}
    for number, record in enumerate(records, start=1):
        rate_pps = record.trial.forwarded_pps
        wanted = record.goal == goal if goal else record.goal != "latency"
        if not wanted or not record.trial.is_valid or not rate_pps > 0.0:
            continue
        place = f"trial {number} ({record.title or record.source})"
        row_cores, row_flows = record.cores or cores, record.flows or flows
        if row_cores is None:
            problems.append(Problem(place, "does not say how many cores forwarded: give --cores"))
            continue
        if not record.frame_bytes >= 64.0:
            problems.append(Problem(place, "does not say its frame size: give --frame"))
            continue
        key = (record.title, row_cores, record.frame_bytes, row_flows)
        if key not in best or rate_pps > best[key].trial.forwarded_pps:
            best[key] = record
    if problems:
        raise FileProblem(name, problems)
    if not best:
        which = (
            f"valid trial with the goal {goal!r}" if goal else "valid trial with a rate of received frames"
        )
        goals = ", ".join(sorted({record.goal for record in records})) or "none"
        raise FileProblem(name, [Problem("", f"has no {which}; goals in it: {goals}")])
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_HEADER)
    for (title, row_cores, frame_bytes, row_flows), record in best.items():
        sizes = [size for series, _, size, _ in best if series == title]
        calibrates = (
            frame_bytes in calibrate_bytes if calibrate_bytes else frame_bytes in (min(sizes), max(sizes))
        )
        row_link = record.link_bps if math.isfinite(record.link_bps) else link_bps
        writer.writerow(
            (
                row_cores,
                repr(frame_bytes),
                repr(record.trial.forwarded_pps),
                "" if row_flows is None else row_flows,
                "" if row_link is None else repr(row_link),
                record.ports or "",
                title,
                str(calibrates).lower(),
            )
        )
    return out.getvalue()
