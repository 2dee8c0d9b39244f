"""Run the procedures of a benchmark, for each stream and frame size, in the order of their dependence."""

from __future__ import annotations

import contextlib
import hashlib
import math
import platform
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, cast

from routecast.errors import ModelProblem, Problem
from routecast.evaluate.plain import plain
from routecast.lab.benchmark._compliance import compliance_of, hashes_left_out, modifiers_left_out
from routecast.lab.benchmark._confirmation import (
    CONFIRM,
    CONFIRMING,
    FLOOR_LEFT_OUT,
    confirmed_rows,
    frame_loss_at_its_worst,
    latency_at_its_worst,
    longest_at,
    search_below,
    throughput_at_its_worst,
    trials_in_doubt,
    with_floor,
)
from routecast.lab.benchmark._findings import contradictions, disturbances_of, limits_of, reasons_of
from routecast.lab.benchmark.journal import FLOOR, SUMMARY, TrialRecord, open_journal
from routecast.lab.benchmark.plan import Clock, Plan
from routecast.lab.benchmark.procedures import PROCEDURES, Procedure
from routecast.lab.benchmark.procedures.procedure import LeftOut
from routecast.lab.benchmark.procedures.throughput import ThroughputRow, confirmation_text, find_ceiling
from routecast.lab.benchmark.rig import Rig
from routecast.lab.benchmark.stage import InvalidTrial, Stage
from routecast.lab.benchmark.streams import MIN_IPV6_BYTES, Stream, mix_refused
from routecast.lab.benchmark.values import BenchmarkResult, MixFacts, NotRun, Setup
from routecast.progress import Progress
from routecast.quantity import format_pps
from routecast.version import VERSION

__all__ = ["run_benchmark"]

_NO_POWER = ("no power here", "power: ", "power is not metered")
"""Beginnings of the notes on missing watts."""

_MAX_MOVES = 4
"""Greatest number of times that latency follows a throughput that its own trials lower."""

_AT_ITS_WORST: Mapping[str, Callable[[Sequence[Any], Sequence[TrialRecord]], tuple[Any, ...]]] = {
    "throughput": throughput_at_its_worst,
    "latency": latency_at_its_worst,
    "frame_loss": frame_loss_at_its_worst,
}
"""Functions that give the rows of a stream and frame size the worst of the trials at their rates, by procedure."""

_FRAME_FORMAT = (
    "UDP echo requests over {protocols} in Ethernet II frames (RFC 2544 appendix C.2), port 7 for one pair of "
    "addresses, pseudo-random ports for several flows (RFC 4814); an 18-byte signature opens the payload: sequence "
    "number, time of sending, flow, trial"
)


@dataclass(slots=True, kw_only=True)
class _Run:
    """A benchmark run, with its rows and trials so far."""

    plan: Plan
    rig: Rig
    clock: Clock
    rows: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in PROCEDURES})
    records: list[TrialRecord] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    not_run: list[NotRun] = field(default_factory=list)
    short_of_medium: list[str] = field(default_factory=list)
    short_of_mixes: list[str] = field(default_factory=list)


def run_benchmark(
    plan: Plan, rig: Rig, *, out: Path | None = None, on_progress: Progress | None = None, command: str = ""
) -> BenchmarkResult:
    """Run a benchmark; an interrupted run continues if it has a folder.

    Parameters
    ----------
    plan : Plan
    rig : Rig
    out : Path or None
        Folder of ``trials.parquet`` and ``benchmark.json``; None keeps everything in memory.
    on_progress : callable or None
        Called with (done, total, what) after every trial, in expected seconds.
    command : str
        The command that started the run, for the report.

    Raises
    ------
    routecast.errors.RoutecastError
        The folder cannot be written, or the rig can run no stream.
    """
    started, now = time.monotonic(), datetime.now(UTC)
    usable, refused = _usable_streams(plan, rig)
    plan = replace(plan, streams=usable)
    run = _Run(plan=plan, rig=rig, clock=Clock(plan.stages(), plan.profile, on_progress), not_run=refused)
    device: dict[str, object] = {}
    tester: dict[str, object] = {}
    with rig, open_journal(out, _run_id(plan, rig)) as journal:
        for stream in plan.streams:
            with rig.prepared(stream, plan.profile.trial) as evaluator:
                for size in plan.sizes(stream):
                    make_stage = partial(
                        Stage,
                        stream=stream,
                        frame_bytes=size,
                        evaluator=evaluator,
                        profile=plan.profile,
                        link_bps=rig.link_bps,
                        flows=plan.flows,
                        identity=rig.identity,
                        journal=journal,
                        records=run.records,
                        on_trial=lambda seconds, is_known, purpose: run.clock.trial(seconds, is_known),
                        failures=run.failures,
                    )
                    _run_size(run, stream, size, make_stage)
                device, tester = device or dict(rig.device()), tester or dict(rig.tester())
    run.not_run += modifiers_left_out(plan.streams)
    if rig.kind == "measure":
        run.not_run += hashes_left_out(plan.streams, plan.flows)
    for name in plan.procedures:
        run.not_run += PROCEDURES[name].left_out(run.rows[name], getattr(rig, "resets_not_run", {}))
    result = _result(run, device, tester)
    result = replace(
        result,
        contradictions=contradictions(result),
        notes=(*result.notes, *_failure_notes(run.failures), *filter(None, (result.shared_cores,))),
        started_utc=now.isoformat(timespec="seconds"),
        elapsed_s=time.monotonic() - started,
        command=command,
    )
    if out is not None:  # the summary comes last, because it marks the folder as complete
        result.write(out / SUMMARY)
    return result


def _run_size(run: _Run, stream: Stream, size: float, make_stage: Callable[..., Stage]) -> None:
    """Run the procedures for one stream and frame size; their stages share the greatest rate of the tester.

    The trials of latency and frame loss confirm the throughput, on which all later procedures rest.
    """
    max_pps = math.inf
    base: ThroughputRow | None = None
    procedures = run.plan.procedures_of(stream, size)
    stage: Stage | None = None
    is_confirmed = False
    for name in procedures:
        procedure = PROCEDURES[name]
        if base is not None and stage is not None and not is_confirmed and name not in CONFIRMING:
            base, is_confirmed = _confirm(run, stage, make_stage, procedures), True
            _measure_floor(run, stage, make_stage, base)
        run.clock.begin(stream, size, name)
        stage = make_stage(procedure=name, max_pps=max_pps)
        if not procedure.rests_on_throughput and math.isinf(max_pps):
            short = find_ceiling(stage)
            max_pps = stage.max_pps
            # Sec. 20 has no mixes, and the mean of drawn sizes varies, so a tester falls a little short of the medium.
            (run.short_of_mixes if stream.mix else run.short_of_medium).extend([short] if short else [])
        try:
            rows = procedure.run(stage, _throughput_pps(procedure, stage, base))
        except LeftOut as problem:
            part = f"{procedure.words}, {size:g} B, {stream.name}"
            run.not_run.append(NotRun(section=f"RFC 2544 sec. {procedure.section}", what=part, reason=str(problem)))
        else:
            run.rows[name] += rows
            if name == "throughput":
                base = _base(run.plan, rows)
        run.clock.end()
    if base is not None and stage is not None and not is_confirmed:
        _measure_floor(run, stage, make_stage, _confirm(run, stage, make_stage, procedures))
    if stage is not None:
        for name, at_its_worst in _AT_ITS_WORST.items():
            _replace_rows(run, stage, name, _with_records(at_its_worst, stage.own_records))


def _measure_floor(run: _Run, stage: Stage, make_stage: Callable[..., Stage], base: ThroughputRow) -> None:
    """Add the loss of a wire without a device at the same rate to the row of the base goal."""
    trial = stage.profile.trial
    reason = run.rig.no_floor or ("" if trial.floor else FLOOR_LEFT_OUT)

    def open_stage() -> Stage:
        return make_stage(procedure=FLOOR, max_pps=stage.max_pps, evaluator=run.rig.floor(stage.stream, trial))

    rows: list[ThroughputRow] = run.rows["throughput"]
    rows[rows.index(base)] = (
        replace(base, floor_reason=reason) if reason else with_floor(base, open_stage, stage.own_records)
    )


def _replace_rows(
    run: _Run, stage: Stage, name: str, change: Callable[[Sequence[Any]], Sequence[Any]]
) -> Sequence[Any]:
    """Replace the rows of a procedure that belong to a stage's stream and frame size; return the new rows."""
    key = (stage.stream.name, stage.frame_bytes)
    all_rows = run.rows[name]
    indices = [index for index, row in enumerate(all_rows) if (row.stream, row.frame_bytes) == key]
    changed = change([all_rows[index] for index in indices])
    for index, row in zip(indices, changed, strict=True):
        all_rows[index] = row
    return changed


def _confirm(run: _Run, stage: Stage, make_stage: Callable[..., Stage], procedures: Sequence[str]) -> ThroughputRow:
    """Replace the throughput rows of a stage's stream and frame size by rows that the trials so far confirm.

    Where they lower the throughput, what was measured at it is measured again at the lowered rate; these trials can
    lower it further. Returns the row of the base goal.
    """
    searched: Sequence[ThroughputRow] = _replace_rows(run, stage, "throughput", lambda rows: rows)
    # The trials have the name of the procedure whose loss they repeat, but other keys in the journal.
    confirming = replace(stage, identity=f"{stage.identity}/{CONFIRM}")
    resting = [name for name in procedures if name in CONFIRMING and PROCEDURES[name].rests_on_throughput]
    base_pps = _base(run.plan, searched).throughput_pps
    for move in range(1, _MAX_MOVES + 1):
        confirmed = _confirmed(run, confirming, searched, procedures)
        base = _base(run.plan, confirmed)
        is_same = math.isclose(base.throughput_pps, base_pps, rel_tol=1e-9) or not math.isfinite(base_pps)
        if is_same or not resting:
            break
        is_last = move == _MAX_MOVES or not math.isfinite(base.throughput_pps)
        for name in resting:
            if is_last:
                reason = f"the throughput was lowered after these trials, {confirmation_text(base)}"
                _replace_rows(run, stage, name, partial(_undetermined, reason))
            else:
                moved = make_stage(procedure=name, max_pps=stage.max_pps)
                moved.identity = f"{moved.identity}/lowered {move}"
                _replace_rows(run, stage, name, partial(_measured_again, PROCEDURES[name], moved, base.throughput_pps))
        if is_last:
            break
        base_pps = base.throughput_pps
    _replace_rows(run, stage, "throughput", lambda _: confirmed)
    return base


def _undetermined(reason: str, rows: Sequence[Any]) -> list[Any]:
    return [replace(row, outcome="undetermined", reason="; ".join(filter(None, (row.reason, reason)))) for row in rows]


def _measured_again(procedure: Procedure, stage: Stage, throughput_pps: float, rows: Sequence[Any]) -> Sequence[Any]:
    """Return the rows of a procedure at another throughput, in the place of ``rows``."""
    again: Sequence[Any] = procedure.run(stage, throughput_pps)
    return again


def _with_records(
    change: Callable[[Sequence[Any], Sequence[TrialRecord]], Sequence[Any]], records: Sequence[TrialRecord]
) -> Callable[[Sequence[Any]], Sequence[Any]]:
    return lambda rows: change(rows, records)


def _confirmed(
    run: _Run, stage: Stage, searched: Sequence[ThroughputRow], procedures: Sequence[str]
) -> tuple[ThroughputRow, ...]:
    """Return the rows of a search that the trials so far and those of ``stage`` confirm."""

    def repeat_doubtful(rows: Sequence[ThroughputRow]) -> None:
        for record, more in list(trials_in_doubt(rows, stage.own_records)):
            stage.procedure = record.procedure
            for _ in range(more):
                with contextlib.suppress(InvalidTrial):
                    stage.trial(record.rate_pps, record.trial.duration_s, CONFIRM)

    exceed_ratio = {goal.name: goal.exceed_ratio for goal in run.plan.profile.throughput.goal}
    confirm = partial(confirmed_rows, searched, procedures=procedures, exceed_ratio=exceed_ratio)
    repeat_doubtful(searched)
    confirmed = confirm(stage.own_records)
    # The strictest goal first: a rate that meets it meets the others.
    for number in sorted(range(len(searched)), key=lambda number: searched[number].loss_ratio):
        if (row := confirmed[number]).confirmed == "lowered":
            missed = longest_at(row.missed_pps, stage.own_records)
            stage.procedure = missed.procedure
            search_below(row, stage, missed.trial.duration_s)
            repeat_doubtful([confirm(stage.own_records)[number]])
            confirmed = confirm(stage.own_records)
    return confirmed


def _base(plan: Plan, rows: Sequence[ThroughputRow]) -> ThroughputRow:
    return next(row for row in rows if row.goal == plan.profile.throughput.base.name)


def _throughput_pps(procedure: Procedure, stage: Stage, base: ThroughputRow | None) -> float:
    """Return the throughput on which a procedure rests; NaN if it needs none.

    Raises LeftOut: no throughput was found, or the procedure counts frames, which a closed form does not have.
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
        is_ipv6 = stream.protocol == "IPv6"
        reason = rig.refuses(stream) or (mix_refused(stream, MIN_IPV6_BYTES) if is_ipv6 else "")
        if reason:
            sections = {"RFC 6985": stream.mix, "RFC 2544 sec. 11": stream.modifier, "RFC 5180": is_ipv6}
            section = next((section for section, applies in sections.items() if applies), "RFC 2544")
            refused.append(NotRun(section=section, what=f"stream {stream.name}", reason=reason))
        else:
            usable.append(stream)
    if not usable:
        raise ModelProblem("benchmark", [Problem(refusal.what, refusal.reason) for refusal in refused])
    return tuple(usable), refused


def _result(run: _Run, device: dict[str, object], tester: dict[str, object]) -> BenchmarkResult:
    plan, rig, profile = run.plan, run.rig, run.plan.profile
    device_records = [record for record in run.records if record.procedure != FLOOR]
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
        frame_format=_FRAME_FORMAT.format(protocols=protocols),
        load_unit="frames per second over all sending ports together; per port where a column says so",
    )
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
            short_of_medium=run.short_of_medium,
            ran=frozenset({"13"} if getattr(rig, "sends_routing_updates", False) else ()),
        ),
        by_procedure={
            name: PROCEDURES[name].result(
                rows=tuple(rows), **PROCEDURES[name].stated(rows, profile, plan.streams, rig.medium)
            )
            for name, rows in run.rows.items()
            if rows
        },
        not_run=tuple(run.not_run),
        search_statements=tuple(
            text for name in plan.procedures for text in PROCEDURES[name].statements(profile, plan.streams)
        ),
        trials=tuple(run.records),
        resumed_trials=run.clock.known_trials,
        invalid_trials=sum(not record.trial.is_valid for record in device_records),
        invalid_reasons=reasons_of(device_records),
        limits=limits_of(device_records),
        disturbed=disturbances_of(device_records),
        versions=_versions(),
        notes=(
            *plan.notes,
            *dict.fromkeys(run.short_of_medium + run.short_of_mixes),
            *_power_notes(device_records),
            *_floor_notes(run),
        ),
    )


def _run_id(plan: Plan, rig: Rig) -> str:
    """Return a text that changes with the rig, the profile, the flows and the version of a run."""
    conditions = (VERSION, rig.identity, repr(plan.profile), plan.flows)
    return hashlib.sha256(repr(conditions).encode()).hexdigest()[:16]


def _failure_notes(failures: list[str]) -> list[str]:
    return [
        f"the tester failed {n} time{'s' if n > 1 else ''}, and the trial was run again: {text}"
        for text, n in Counter(failures).items()
    ]


def _power_notes(records: list[TrialRecord]) -> list[str]:
    """Return a note on the trials without watts, if a meter is missing or failed."""
    missing = [
        note
        for record in records
        if record.trial.power is None
        for note in record.trial.notes
        if note.startswith(_NO_POWER)
    ]
    return [f"{len(missing)} of {len(records)} trials have no watts: {missing[0]}"] if missing else []


def _floor_notes(run: _Run) -> list[str]:
    """Return the reasons that the floor of a measured machine is unknown."""
    if run.rig.kind != "measure":
        return []
    reasons: dict[str, None] = {}
    for row in run.rows["throughput"]:
        if row.floor_reason:
            where = f" at {format_pps(row.missed_pps)}" if math.isfinite(row.floor_loss_ratio) else ""
            reasons[f"the floor of the machine{where} is not known: {row.floor_reason}"] = None
    return list(reasons)


def _versions() -> dict[str, str]:
    versions = {"routecast": VERSION, "python": platform.python_version(), "kernel": platform.release()}
    for package in ("MLRsearch", "numpy", "polars"):
        with contextlib.suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions
