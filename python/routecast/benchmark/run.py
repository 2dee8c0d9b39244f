"""Running a benchmark: every stream, every frame size, every procedure, in the order in which they need each other."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import platform
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, cast

from routecast import __version__
from routecast.benchmark._compliance import compliance_of, hashes_left_out, modifiers_left_out
from routecast.benchmark._confirmation import (
    CONFIRM,
    CONFIRMING,
    LEFT_OUT,
    again,
    confirmed_rows,
    longest_at,
    search_below,
    with_floor,
)
from routecast.benchmark._contradictions import contradictions, disturbances_of, reasons_of
from routecast.benchmark._limits import limits_of
from routecast.benchmark.journal import FLOOR, SUMMARY, TrialRecord, open_journal
from routecast.benchmark.plan import Clock, Plan
from routecast.benchmark.procedures import PROCEDURES, Procedure
from routecast.benchmark.procedures.procedure import LeftOut, NotRun
from routecast.benchmark.procedures.throughput import ThroughputRow, find_ceiling
from routecast.benchmark.result import BenchmarkResult, MixFacts, Setup
from routecast.benchmark.rig import Rig
from routecast.benchmark.stage import InvalidTrial, Stage
from routecast.benchmark.streams import FEWEST_IPV6_BYTES, Stream, mix_refused
from routecast.errors import ModelProblem, Problem
from routecast.evaluate.plain import plain
from routecast.quantity import format_pps
from routecast.quantity.whole_file import write_whole

__all__ = ["run_benchmark"]

_NO_POWER = ("no power here", "power: ", "power is not metered")
"""How notes of trials begin that say why there are no watts."""

FRAME_FORMAT = (
    "UDP echo requests over {protocols} in Ethernet II frames (RFC 2544 appendix C.2), port 7 for one pair of "
    "addresses, pseudo-random ports for several flows (RFC 4814); an 18-byte signature opens the payload: sequence "
    "number, time of sending, flow, trial"
)


@dataclass(slots=True)
class _Rows:
    """What the stages have found so far."""

    of: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in PROCEDURES})
    not_run: list[NotRun] = field(default_factory=list)
    short_of_medium: list[str] = field(default_factory=list)
    short_of_mixes: list[str] = field(default_factory=list)


def run_benchmark(
    plan: Plan,
    rig: Rig,
    *,
    out: Path | None = None,
    report: Callable[[int, int, str], None] | None = None,
    command: str = "",
) -> BenchmarkResult:
    """Run a benchmark; with a folder, one that was interrupted goes on where it stopped.

    Parameters
    ----------
    plan : Plan
    rig : Rig
    out : Path or None
        Folder of ``trials.parquet`` and ``benchmark.json``; None keeps everything in memory.
    report : callable or None
        Told (done, total, what) after every trial, in expected seconds.
    command : str
        How the run was started, for the report.

    Raises
    ------
    routecast.errors.RoutecastError
        The folder cannot be written; or the rig cannot do what is asked.
    """
    started, now = time.monotonic(), datetime.now(UTC)
    usable, refused = _usable_streams(plan, rig)
    plan = replace(plan, streams=usable)
    clock = Clock(plan.stages(), plan.profile, report)
    rows = _Rows(not_run=refused)
    records: list[TrialRecord] = []
    failures: list[str] = []
    known = 0

    def on_trial(seconds: float, is_known: bool, purpose: str) -> None:
        nonlocal known
        known += is_known
        clock.trial(seconds, is_known)

    with rig, open_journal(out, _run_of(plan, rig)) as journal:
        device: dict[str, object] = {}
        tester: dict[str, object] = {}
        for stream in plan.streams:
            with rig.prepared(stream, plan.profile.trial) as evaluator:
                for size in plan.sizes(stream):
                    stage = partial(
                        Stage,
                        stream=stream,
                        frame_bytes=size,
                        evaluator=evaluator,
                        profile=plan.profile,
                        link_bps=rig.link_bps,
                        flows=plan.flows,
                        identity=rig.identity,
                        journal=journal,
                        records=records,
                        on_trial=on_trial,
                        failures=failures,
                    )
                    _run_size(plan, rig, stream, size, stage, rows, clock)
                device, tester = device or dict(rig.device()), tester or dict(rig.tester())
    rows.not_run += modifiers_left_out(plan.streams)
    if rig.kind == "measure":
        rows.not_run += hashes_left_out(plan.streams, plan.flows)
    for name in plan.procedures:
        rows.not_run += PROCEDURES[name].left_out(rows.of[name], getattr(rig, "resets_not_run", {}))
    result = _result(plan, rig, rows, records, device, tester)
    result = replace(
        result,
        contradictions=contradictions(result),
        resumed_trials=known,
        notes=(*result.notes, *_said(failures), *filter(None, (result.shared_cores,))),
        started_utc=now.isoformat(timespec="seconds"),
        elapsed_s=time.monotonic() - started,
        command=command,
    )
    if out is not None:
        _write(result, out)
    return result


def _run_size(
    plan: Plan, rig: Rig, stream: Stream, size: float, make: Callable[..., Stage], rows: _Rows, clock: Clock
) -> None:
    """Run the procedures for one stream and frame size, whose stages share what the tester reaches.

    What follows latency and frame loss rests on the throughput that their trials confirm.
    """
    most_pps = math.inf
    base: ThroughputRow | None = None
    procedures = plan.procedures_of(stream, size)
    stage: Stage | None = None
    is_confirmed = False
    for name in procedures:
        procedure = PROCEDURES[name]
        if base is not None and stage is not None and not is_confirmed and name not in CONFIRMING:
            base, is_confirmed = _confirm(plan, stage, procedures, rows), True
            _measure_floor(rig, stage, make, base, rows)
        clock.begin(stream, size, name)
        stage = make(procedure=name, most_pps=most_pps)
        if not procedure.rests_on_throughput and math.isinf(most_pps):
            short = find_ceiling(stage)
            most_pps = stage.most_pps
            # Sec. 20 knows no mixes; and the mean of drawn sizes varies, so the tester falls a little short by itself.
            (rows.short_of_mixes if stream.mix else rows.short_of_medium).extend([short] if short else [])
        try:
            answers = procedure.run(stage, _throughput_pps(procedure, stage, base))
        except LeftOut as reason:
            what = f"{procedure.words}, {size:g} B, {stream.name}"
            rows.not_run.append(NotRun(section=f"RFC 2544 sec. {procedure.section}", what=what, reason=str(reason)))
        else:
            rows.of[name] += answers
            if name == "throughput":
                base = _base(plan, answers)
        clock.end()
    if base is not None and stage is not None and not is_confirmed:
        _measure_floor(rig, stage, make, _confirm(plan, stage, procedures, rows), rows)


def _measure_floor(rig: Rig, stage: Stage, make: Callable[..., Stage], base: ThroughputRow, rows: _Rows) -> None:
    """Set beside the base goal's throughput what a wire without a device loses at the same rate."""
    throughput_rows: list[ThroughputRow] = rows.of["throughput"]
    trial = stage.profile.trial
    reason = rig.no_floor or ("" if trial.floor else LEFT_OUT)
    if reason:
        throughput_rows[throughput_rows.index(base)] = replace(base, floor_reason=reason)
        return
    here = (stage.stream.name, stage.frame_bytes)
    mine = [record for record in stage.records if (record.stream, record.frame_bytes) == here]

    def open_stage() -> Stage:
        return make(procedure=FLOOR, most_pps=stage.most_pps, evaluator=rig.floor(stage.stream, trial))

    throughput_rows[throughput_rows.index(base)] = with_floor(base, open_stage, mine)


def _confirm(plan: Plan, stage: Stage, procedures: Sequence[str], rows: _Rows) -> ThroughputRow:
    """Set the rows of the throughput to what the trials so far confirm; return that of the base goal."""
    here = (stage.stream.name, stage.frame_bytes)
    # The trials have the name of the procedure whose loss they follow, and keys of their own in the journal.
    stage = replace(stage, identity=f"{stage.identity}/{CONFIRM}")
    throughput: list[ThroughputRow] = rows.of["throughput"]
    places = [place for place, row in enumerate(throughput) if (row.stream, row.frame_bytes) == here]

    def mine() -> list[TrialRecord]:
        return [record for record in stage.records if (record.stream, record.frame_bytes) == here]

    def ask_again(rows: Sequence[ThroughputRow]) -> None:
        for record, more in list(again(rows, mine())):
            stage.procedure = record.procedure
            for _ in range(more):
                with contextlib.suppress(InvalidTrial):
                    stage.trial(record.rate_pps, record.trial.duration_s, CONFIRM)

    searched = [throughput[place] for place in places]
    exceed_ratio = {goal.name: goal.exceed_ratio for goal in plan.profile.throughput.goal}
    judge = partial(confirmed_rows, searched, asked=procedures, exceed_ratio=exceed_ratio)
    ask_again(searched)
    confirmed = judge(mine())
    # The strictest goal first: what meets it meets the others.
    for place in sorted(range(len(searched)), key=lambda place: searched[place].loss_ratio):
        if (row := confirmed[place]).confirmed == "lowered":
            missed = longest_at(row.missed_pps, mine())
            stage.procedure = missed.procedure
            search_below(row, stage, missed.trial.duration_s)
            confirmed = judge(mine())
            ask_again(confirmed[place : place + 1])
            confirmed = judge(mine())
    for place, row in zip(places, confirmed, strict=True):
        throughput[place] = row
    return _base(plan, confirmed)


def _base(plan: Plan, rows: Sequence[ThroughputRow]) -> ThroughputRow:
    return next(row for row in rows if row.goal == plan.profile.throughput.base.name)


def _throughput_pps(procedure: Procedure, stage: Stage, base: ThroughputRow | None) -> float:
    """Return the throughput that a procedure rests on; NaN if on none.

    Raises LeftOut: it was not found, or the procedure counts what is not counted here.
    """
    if not procedure.rests_on_throughput:
        return math.nan
    assert base is not None
    if not math.isfinite(base.throughput_pps):
        raise LeftOut(f"it rests on the throughput, which was not found: {base.reason}")
    if procedure.counts_frames and not stage.is_counting:
        raise LeftOut("it counts frames during a change, and there are no transients in closed form; use simulate")
    return base.throughput_pps


def _usable_streams(plan: Plan, rig: Rig) -> tuple[tuple[Stream, ...], list[NotRun]]:
    usable, refused = [], []
    for stream in plan.streams:
        reason = rig.refuses(stream) or _mix_refused(stream)
        if reason:
            section = (
                "RFC 6985"
                if stream.mix
                else "RFC 2544 sec. 11"
                if stream.modifier
                else "RFC 5180"
                if stream.protocol == "IPv6"
                else "RFC 2544"
            )
            refused.append(NotRun(section=section, what=f"stream {stream.name}", reason=reason))
        else:
            usable.append(stream)
    if not usable:
        raise ModelProblem("benchmark", [Problem(refusal.what, refusal.reason) for refusal in refused])
    return tuple(usable), refused


def _mix_refused(stream: Stream) -> str:
    return mix_refused(stream, FEWEST_IPV6_BYTES) if stream.protocol == "IPv6" else ""


def _result(
    plan: Plan, rig: Rig, rows: _Rows, records: list[TrialRecord], device: dict[str, object], tester: dict[str, object]
) -> BenchmarkResult:
    profile = plan.profile
    of_device = [record for record in records if record.procedure != FLOOR]
    protocols = " and ".join(dict.fromkeys(stream.protocol for stream in plan.streams))
    setup = Setup(
        evaluator=rig.kind,
        device=device,
        tester=tester,
        device_title=rig.title,
        link_bps=rig.link_bps,
        medium=rig.medium,
        frame_bytes=plan.frame_bytes,
        mixes=tuple(map(MixFacts.of, dict.fromkeys(filter(None, (stream.frames for stream in plan.streams))))),
        streams=plan.streams,
        frame_format=FRAME_FORMAT.format(protocols=protocols),
        load_unit="frames per second over all sending ports together; per port where a column says so",
    )
    results = {}
    for name, mine in rows.of.items():
        if mine:
            made = PROCEDURES[name]
            results[name] = made.result(rows=tuple(mine), **made.stated(mine, plan, rig.medium))
    procedures = (PROCEDURES[name] for name in plan.procedures)
    statements = tuple(text for procedure in procedures for text in procedure.statements(profile, plan.streams))
    return BenchmarkResult(
        profile_name=profile.name,
        profile=cast("dict[str, object]", plain(profile)),
        setup=setup,
        compliance=compliance_of(
            profile,
            procedures=plan.procedures,
            frame_bytes=plan.frame_bytes,
            streams=plan.streams,
            evaluator=rig.kind,
            short_of_medium=rows.short_of_medium,
            ran=frozenset({"13"} if getattr(rig, "sends_routing_updates", False) else ()),
        ),
        found=results,
        not_run=tuple(rows.not_run),
        search_statements=statements,
        trials=tuple(records),
        invalid_trials=sum(not record.trial.is_valid for record in of_device),
        invalid_reasons=reasons_of(of_device),
        limits=limits_of(of_device),
        disturbed=disturbances_of(of_device),
        versions=_versions(),
        notes=(
            *plan.notes,
            *dict.fromkeys(rows.short_of_medium + rows.short_of_mixes),
            *_power_notes(of_device),
            *_floor_notes(rig, rows),
        ),
    )


def _run_of(plan: Plan, rig: Rig) -> str:
    """Return a text that changes with all that decides the trials of a run: rig, profile, flows, version."""
    decisive = (__version__, rig.identity, repr(plan.profile), plan.flows)
    return hashlib.sha256(repr(decisive).encode()).hexdigest()[:16]


def _said(failures: list[str]) -> list[str]:
    times = Counter(failures)
    return [
        f"the tester failed {n} time{'s' if n > 1 else ''} and was asked again: {text}" for text, n in times.items()
    ]


def _power_notes(records: list[TrialRecord]) -> list[str]:
    """Say what is wanting of the watts: no meter, or one that told nothing of some trials."""
    missing = [
        note
        for record in records
        if record.trial.power is None
        for note in record.trial.notes
        if note.startswith(_NO_POWER)
    ]
    if not missing:
        return []
    return [f"{len(missing)} of {len(records)} trials have no watts: {missing[0]}"]


def _floor_notes(rig: Rig, rows: _Rows) -> list[str]:
    """Say why the floor of the machine is not known, where a machine was measured."""
    if rig.kind != "measure":
        return []
    reasons: dict[str, None] = {}
    for row in rows.of["throughput"]:
        if row.floor_reason:
            where = f" at {format_pps(row.missed_pps)}" if math.isfinite(row.floor_loss_ratio) else ""
            reasons[f"the floor of the machine{where} is not known: {row.floor_reason}"] = None
    return list(reasons)


def _versions() -> dict[str, str]:
    versions = {"routecast": __version__, "python": platform.python_version(), "kernel": platform.release()}
    for package in ("MLRsearch", "numpy", "polars"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def _write(result: BenchmarkResult, out: Path) -> None:
    """Write the summary last and at once: where it stands, the run is complete."""
    text = json.dumps(result.to_json(), indent=2, ensure_ascii=False, allow_nan=False)
    write_whole(out / SUMMARY, text + "\n")
