"""Tables for ``routecast validate``: the greatest forwarded rate by frame size, cores and flows.

The best valid trial of each set of conditions counts: the throughput of a search, or the forwarded rate in overload.
Trials of other procedures measure no throughput. A rate that the medium limits becomes a row that never calibrates,
since the link explains it. A rate that the tester limits is left out. Latencies at a known load become rows without a
rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from routecast.errors import FileProblem, Problem
from routecast.evaluate.point_table import points_text
from routecast.evaluate.points import Point, RateKind
from routecast.lab.benchmark.exchange._record import LATENCY_FACTS, LIMITS, NO_THROUGHPUT, Record
from routecast.lab.benchmark.latency_rows import latency_row

_KIND_OF_GOAL: Mapping[str, RateKind] = {"ndr": "no_loss", "mrr": "overload"}
_TIMED_GOALS = frozenset({"latency", "run", "mrr", "ndr", "pdr"})
"""Goals of trials at a load that is held, as opposed to the steps of a search, bursts and resets."""

_Conditions = tuple[str, int, float, int | None]
"""Series, cores, mean frame size, flows."""


def validate_text(
    records: Sequence[Record],
    *,
    name: str = "records",
    goal: str | None = None,
    cores: int | None = None,
    flows: int | None = None,
    link_bps: float | None = None,
    calibrate_bytes: Collection[float] = (),
    on_remark: Callable[[str], None] = lambda text: None,
) -> str:
    """Return the CSV text of a file of measured points.

    ``name``: source, for messages; ``goal``: only records with this goal (``"ndr"``, ``"mrr"``); None takes all that
    measure a throughput; ``cores``, ``flows`` and ``link_bps``: for records without them; ``calibrate_bytes``: frame
    sizes whose rows calibrate; empty: the smallest and the largest of each series that the router limits, which
    separate the cost of a frame from that of a byte; ``on_remark``: gets a line for each set of conditions that is left
    out. Raises FileProblem: no record has a throughput of the router, or the number of cores or the frame size is
    unknown.
    """
    best, at_tester = _best_records(records, name, goal, cores, flows)
    if not best and not at_tester:
        raise _no_throughput(records, name, goal)
    router_limited = {key for key, record in best.items() if record.facts.get("limit") != "medium"}
    for key in [key for key in at_tester if key not in best]:
        on_remark(f"{_describe(key)}: left out, {LIMITS['tester']}")
    for key in [key for key in best if not any(key[0] == other[0] for other in router_limited)]:
        on_remark(f"{_describe(key)}: left out, {LIMITS['medium']}, and no row of its series can calibrate")
        del best[key]
    if not best:
        message = (
            "holds no throughput of the router: its tester or its medium limited every rate; measure smaller frames, "
            "or with a faster tester"
        )
        raise FileProblem(name, [Problem("", message)])
    keys = {key for key in (*best, *at_tester) if key[2] in calibrate_bytes}
    if keys and not keys & router_limited:
        message = "cannot calibrate, for the tester or the medium limited it: give another size to --calibrate"
        raise FileProblem(name, [Problem(_describe(key), message) for key in (*best, *at_tester) if key in keys])
    points = []
    for key, record in best.items():
        title, row_cores, frame_bytes, row_flows = key
        sizes = [size for series, _, size, _ in router_limited if series == title]
        calibrates = frame_bytes in (calibrate_bytes or (min(sizes), max(sizes)))
        points.append(
            Point(
                cores=row_cores,
                frame_bytes=frame_bytes,
                throughput_pps=record.trial.forwarded_pps,
                flows=row_flows,
                link_bps=_link_bps(record, link_bps),
                ports=record.ports or 2,
                series=title,
                calibrate=calibrates and key in router_limited,
                frame_mix=record.mix,
                rate_kind=_KIND_OF_GOAL.get(record.goal, ""),
            )
        )
    return points_text([*points, *_latency_rows(records, points, goal, cores, flows, on_remark)])


def _latency_rows(
    records: Sequence[Record],
    points: Sequence[Point],
    goal: str | None,
    cores: int | None,
    flows: int | None,
    on_remark: Callable[[str], None],
) -> list[Point]:
    """Return a row for each valid trial with a latency at a known load, of series that have a rate.

    The other arguments are those of :func:`validate_text`; ``on_remark`` gets a line for each kind of latency that is
    left out.
    """
    rows: list[Point] = []
    left_out: dict[str, int] = {}
    for record in records:
        if record.trial.latency is None or record.goal not in _TIMED_GOALS or not record.trial.is_valid:
            continue
        if goal is not None and record.goal not in {goal, "latency"}:
            continue
        row_cores = record.cores or cores
        same_series = [point for point in points if point.series == record.series]
        near = [point for point in same_series if (point.cores, point.frame_bytes) == (row_cores, record.frame_bytes)]
        reason = ""
        if not same_series:
            reason = "no rate of its series is known; --series gives files one name"
        elif row_cores is None or not record.frame_bytes >= 64.0:
            reason = "its cores or frame size are not known: --cores, --frame"
        if not reason:
            known = (near or same_series)[0]
            conditions = replace(
                known,
                cores=row_cores or 1,
                frame_bytes=record.frame_bytes,
                frame_mix=record.mix,
                flows=record.flows or flows,
            )
            row = latency_row(conditions, record.trial)
            if row is None:
                reason = "the load at which it was measured is not known: --load"
            elif row.latency is not None and row.latency.load_pps > 1.01 * row.line_rate_pps:
                reason = "its load is more than the links carry"
            elif row.latency is not None:
                stated: dict[str, Any] = {
                    name: record.facts[f"latency_{name}"] for name in LATENCY_FACTS if f"latency_{name}" in record.facts
                }
                rows.append(replace(row, rate_kind=known.rate_kind, latency=replace(row.latency, **stated)))
        if reason:
            left_out[reason] = left_out.get(reason, 0) + 1
    for reason, number in left_out.items():
        on_remark(f"the latency of {number} trial{'s' if number > 1 else ''} is left out: {reason}")
    return rows


def _best_records(
    records: Sequence[Record], name: str, goal: str | None, cores: int | None, flows: int | None
) -> tuple[dict[_Conditions, Record], dict[_Conditions, None]]:
    """Return the best valid trial by conditions, and the conditions in order whose rate the tester limited.

    ``goal``, ``cores`` and ``flows``: as for :func:`validate_text`. Raises FileProblem: a trial has no cores or frame
    size.
    """
    problems: list[Problem] = []
    best: dict[_Conditions, Record] = {}
    at_tester: dict[_Conditions, None] = {}  # a set in order
    for number, record in enumerate(records, start=1):
        rate_pps = record.trial.forwarded_pps
        is_chosen = record.goal not in NO_THROUGHPUT and goal in (None, record.goal)
        if not is_chosen or not record.trial.is_valid or not rate_pps > 0.0:
            continue
        place = f"trial {number} ({record.title or record.source})"
        row_cores, row_flows = record.cores or cores, record.flows or flows
        if row_cores is None:
            problems.append(Problem(place, "does not say how many cores forwarded: give --cores"))
            continue
        if not record.frame_bytes >= 64.0:
            problems.append(Problem(place, "does not say its frame size: give --frame"))
            continue
        key = (record.series, row_cores, record.frame_bytes, row_flows)
        if record.facts.get("limit") == "tester":
            at_tester[key] = None
        elif key not in best or rate_pps > best[key].trial.forwarded_pps:
            best[key] = record
    if problems:
        raise FileProblem(name, problems)
    return best, at_tester


def _no_throughput(records: Sequence[Record], name: str, goal: str | None) -> FileProblem:
    """Return the problem of records without a throughput, with the goals that they have."""
    kind = f"valid trial with the goal {goal!r}" if goal else "valid trial that measures a throughput"
    goals = {record.goal for record in records}
    goals_text = f"goals in it: {', '.join(sorted(goals - NO_THROUGHPUT)) or 'none'}"
    if goals & NO_THROUGHPUT:
        goals_text += f"; those of {', '.join(sorted(goals & NO_THROUGHPUT))} measure no throughput"
    return FileProblem(name, [Problem("", f"has no {kind}; {goals_text}")])


def _link_bps(record: Record, given_bps: float | None) -> float | None:
    """Return the rate of a port; one that follows from the name of a card counts less than one that is given."""
    is_stated = math.isfinite(record.link_bps) and (given_bps is None or "nic" not in record.facts)
    return record.link_bps if is_stated else given_bps


def _describe(key: _Conditions) -> str:
    title, _, frame_bytes, _ = key
    return f"{title}, {frame_bytes:g} B" if title else f"{frame_bytes:g} B"
