"""``routecast function NAME --run``: the real function beside its estimate; ``--counts``: its instructions.

Called by :mod:`routecast.cli.function`, which has the options.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from routecast.cli.console import data, print_json, progress_bar, remark

if TYPE_CHECKING:
    from pathlib import Path

    from routecast.evaluate.trial import Trial
    from routecast.function.estimate import Estimate
    from routecast.function.model import NetworkFunction
    from routecast.hardware.model import Hardware
    from routecast.load.frames import FrameMix
    from routecast.load.offered import OfferedLoad
    from routecast.load.popularity import Popularity
    from routecast.report.tables import Table
    from routecast.testbed.in_memory import InMemory
    from routecast.testbed.instruction_counts import PacketCounts

__all__ = ["Asked", "count_function", "run_function"]

_ANY_RATE_PPS = 1e6
"""A saturated run has no rate; an offered load must have one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the command line asks to be run.

    Parameters
    ----------
    function : NetworkFunction
    hardware : Hardware
        What the estimate is for.
    directions : tuple of str
        Names of its directions, each run by itself.
    frames : tuple of FrameMix
        Each run by itself.
    popularity : Popularity
    tables : mapping of str to int
        Entries by table; the others keep the function's own.
    cores : int
    duration_s : float
        Of each run.
    rate_pps : float or None
        Offered rate; None: as fast as it goes.
    seed : int
    refine : Path or None
        The hardware's file, to be corrected by what is measured; None: left alone.
    """

    function: NetworkFunction
    hardware: Hardware
    directions: tuple[str, ...]
    frames: tuple[FrameMix, ...]
    popularity: Popularity
    tables: Mapping[str, int] = field(default_factory=dict)
    cores: int = 1
    duration_s: float = 1.0
    rate_pps: float | None = None
    seed: int = 1
    refine: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ran:
    """One run with the estimate beside it.

    Parameters
    ----------
    direction : str
    frames : FrameMix
    estimate : Estimate or None
        None where the hardware has no cost of one of the operations.
    estimated_pps : float
        Of cores and memory: card, link and bus have no part in a run in memory.
    alone_s : float
        What the lines of tables take one after the other, per packet.
    trial : Trial
    outcome : mapping
        What the core told of the run.
    """

    direction: str
    frames: FrameMix
    estimate: Estimate | None
    estimated_pps: float
    alone_s: float
    trial: Trial
    outcome: Mapping[str, Any]

    @property
    def error_ratio(self) -> float:
        """(estimated − measured) / measured rate; NaN for a paced run, whose rate is the load's."""
        if self.outcome["latency"] is not None or not self.trial.forwarded_pps:
            return math.nan
        return self.estimated_pps / self.trial.forwarded_pps - 1.0


def run_function(
    asked: Asked, estimates: Callable[[str, FrameMix], Estimate], *, as_json: bool = False
) -> None:
    """Run the real function for every direction and frame size and print it beside its estimate.

    Parameters
    ----------
    asked : Asked
    estimates : callable
        Gives the estimate of a direction at a frame size, everything else as asked.
    as_json : bool
        One JSON document instead of tables.

    Raises
    ------
    routecast.errors.ModelProblem
        The function does not run for real, or not like that.
    routecast.errors.EnvironmentProblem
        There is not the memory, or there are not the cores.
    """
    from routecast.cli.function_refine import check_refining, measured_function, refine_file

    if asked.refine is not None:
        check_refining(asked)
    cases = [(direction, frames) for direction in asked.directions for frames in asked.frames]
    ran: list[_Ran] = []
    with progress_bar(f"running {asked.function.name}") as report:
        for number, (direction, frames) in enumerate(cases):

            def heard(share: float, done: int = number) -> None:
                report(round(100.0 * (done + share)), 100 * len(cases), "")

            ran.append(_run(asked, direction, frames, estimates, heard))
    refined = None
    if asked.refine is not None:
        measured = [
            measured_function(asked, one.direction, one.frames, 1e-9 * _run_ns(one), one.outcome["pass_s"])
            for one in ran
        ]
        refined = refine_file(asked.hardware, measured, asked.refine)
    if as_json:
        document: dict[str, object] = {
            "function": asked.function.name,
            "runs": [_document(one) for one in ran],
        }
        if refined is not None:
            document["refined"] = {
                "file": str(asked.refine),
                "before_ratio": list(refined.before_ratio),
                "after_ratio": list(refined.after_ratio),
            }
        print_json(document)
        return
    _print(asked, ran)
    if refined is not None:
        before, after = (_worst(errors) for errors in (refined.before_ratio, refined.after_ratio))
        remark(
            f"{asked.refine} holds {len(refined.after_ratio)} measured functions; the estimate that is furthest off "
            f"was so by {before:.1%}, and is by {after:.1%} now"
        )


def count_function(asked: Asked, *, as_json: bool = False) -> None:
    """Print instructions and memory accesses per packet for every direction and frame size.

    Raises
    ------
    routecast.errors.EnvironmentProblem
        valgrind is missing: the message names its package.
    routecast.errors.ModelProblem
        The function does not run for real, or not like that.
    """
    from routecast.testbed.instruction_counts import count_instructions

    cases = [(direction, frames) for direction in asked.directions for frames in asked.frames]
    counted = []
    with progress_bar(f"counting {asked.function.name} under valgrind") as report:
        for number, (direction, frames) in enumerate(cases):

            def heard(share: float, done: int = number) -> None:
                report(round(100.0 * (done + share)), 100 * len(cases), "")

            evaluator = _evaluator(asked, direction)
            counts = count_instructions(evaluator, _load(asked, direction, frames), progress=heard)
            counted.append((direction, frames, counts))
    if as_json:
        from dataclasses import asdict

        rows = [
            {
                "direction": direction,
                "frames": frames.name,
                "frame_bytes": frames.mean_bytes,
                **asdict(counts),
            }
            for direction, frames, counts in counted
        ]
        print_json({"function": asked.function.name, "counts": rows})
        return
    from routecast.cli.tables import print_table

    print_table(data(), _counts_table(asked, counted))


def _evaluator(asked: Asked, direction: str, progress: Callable[[float], object] | None = None) -> InMemory:
    import os

    from routecast.errors import EnvironmentProblem, ModelProblem, Problem
    from routecast.function.catalogue import function_names, read_function
    from routecast.testbed.in_memory import InMemory

    function = asked.function
    if not function.runs_as:
        real = ", ".join(name for name in function_names() if read_function(name).runs_as)
        what = f"is an estimate only; those that run for real are {real}"
        raise ModelProblem(f"function {function.name!r}", [Problem("runs_as", what)])
    processors = sorted(os.sched_getaffinity(0))
    if asked.cores > len(processors):
        there = f"this process may use {len(processors)}"
        raise EnvironmentProblem(f"{asked.cores} cores are asked for, {there}: ask for fewer with --cores")
    return InMemory(
        function=function.runs_as,
        direction=direction,
        tables={table.name: asked.tables.get(table.name, table.entries) for table in function.tables},
        popularity=asked.popularity,
        cores=tuple(processors[: asked.cores]),
        saturate=asked.rate_pps is None,
        seed=asked.seed,
        progress=progress,
    )


def _load(asked: Asked, direction: str, frames: FrameMix) -> OfferedLoad:
    """Return what is offered; frames that are too short for the direction's headers are as long as they must be."""
    from dataclasses import replace

    from routecast.load.offered import OfferedLoad

    least = next(one.smallest_frame_bytes for one in asked.function.directions if one.name == direction)
    frames = replace(frames, sequence_bytes=tuple(max(size, least) for size in frames.sequence_bytes))
    return OfferedLoad(rate_pps=asked.rate_pps or _ANY_RATE_PPS, frames=frames)


def _run(
    asked: Asked,
    direction: str,
    frames: FrameMix,
    estimates: Callable[[str, FrameMix], Estimate],
    progress: Callable[[float], object],
) -> _Ran:
    evaluator = _evaluator(asked, direction, progress)
    load = _load(asked, direction, frames)
    estimate = None if _without_cost(asked, direction) else estimates(direction, frames)
    outcome = evaluator.run(load, asked.duration_s, hand_loop=asked.rate_pps is None)
    return _Ran(
        direction=direction,
        frames=frames,
        estimate=estimate,
        estimated_pps=min(estimate.limit_pps("core"), estimate.limit_pps("memory")) if estimate else math.nan,
        alone_s=_alone_s(estimate, asked.hardware) if estimate else math.nan,
        trial=evaluator.trial_of(load, asked.duration_s, outcome),
        outcome=outcome,
    )


def _worst(errors: Sequence[float]) -> float:
    return max((abs(error) for error in errors), default=math.nan)


def _without_cost(asked: Asked, direction: str) -> list[str]:
    """Return the operations of a direction that the hardware does not know: there can be no estimate."""
    from routecast.function.manner import in_the_manner_of

    function = in_the_manner_of(asked.hardware, asked.function)
    steps = next(one.steps for one in function.directions if one.name == direction)
    return sorted({step.operation for step in steps} - asked.hardware.operations.keys())


def _print(asked: Asked, ran: Sequence[_Ran]) -> None:
    from routecast.cli.tables import print_table
    from routecast.cli.trial import print_trial

    console = data()
    print_table(console, _table(asked, ran))
    missing = sorted({name for one in ran for name in _without_cost(asked, one.direction)})
    if missing:
        remark(
            f"{asked.hardware.name} gives no cost of {', '.join(missing)}, so there is no estimate: probe this host "
            "(routecast hardware probe) and leave --on out"
        )
    if asked.rate_pps is not None:
        for one in ran:
            console.print(f"{_name(asked, one.direction)}, {one.frames.name}", style="bold", markup=False)
            print_trial(console, one.trial)
        return
    for note in dict.fromkeys(note for one in ran for note in one.trial.notes):
        console.print(f"Note: {note}", markup=False, style="dim")


def _table(asked: Asked, ran: Sequence[_Ran]) -> Table:
    from routecast.report.tables import Column, Table, signed_percent

    per_core = f"{asked.cores} core" + ("s" if asked.cores > 1 else "")
    return Table(
        name="runs",
        title=f"{asked.function.title or asked.function.name}: estimate and run, {per_core}, {asked.popularity}",
        caption=(
            "Hand: the same work as one loop by hand. Alone: what the table's lines alone take if each is waited for "
            "before the next is asked for; a function below it has its misses overlap."
        ),
        columns=(
            Column(title="Direction", align="left"),
            Column(title="Frames", align="left"),
            Column(title="Estimate", unit="Mpps", form=_mega),
            Column(title="Run", unit="Mpps", form=_mega),
            Column(title="Error", unit="%", form=signed_percent),
            Column(title="Estimate", unit="ns", form=".1f"),
            Column(title="Run", unit="ns", form=".1f"),
            Column(title="Hand", unit="ns", form=".1f"),
            Column(title="Alone", unit="ns", form=".1f"),
        ),
        rows=tuple(
            (
                one.direction,
                one.frames.name,
                one.estimated_pps,
                one.trial.forwarded_pps,
                one.error_ratio,
                1e9 * asked.cores / one.estimated_pps,
                _run_ns(one),
                _hand_ns(one),
                1e9 * one.alone_s,
            )
            for one in ran
        ),
    )


def _mega(rate_pps: float) -> str:
    return f"{rate_pps / 1e6:.2f}"


def _name(asked: Asked, direction: str) -> str:
    return asked.function.name if len(asked.directions) == 1 else f"{asked.function.name} {direction}"


def _run_ns(one: _Ran) -> float:
    """Return the time of a core for a frame, as measured."""
    cores = one.outcome["per_core"]
    return 1e9 * math.fsum(core["cycles_per_packet"] / core["core_hz"] for core in cores) / len(cores)


def _hand_ns(one: _Ran) -> float:
    hand = one.outcome.get("hand_loop")
    return float(hand["ns_per_packet"]) if hand else math.nan


def _alone_s(estimate: Estimate, hardware: Hardware) -> float:
    """Return what the lines of tables take one after the other: the bound that memory's latency sets."""
    hz = hardware.cpu.frequency_hz
    cost_s = {level.name: level.dependent_s + level.dependent_cycles / hz for level in hardware.levels}
    return math.fsum(
        step.share * lines * cost_s[level]
        for step in estimate.operations
        for level, lines in step.table_lines_by_level.items()
    )


def _document(one: _Ran) -> dict[str, object]:
    return {
        "direction": one.direction,
        "frames": one.frames.name,
        "frame_bytes": one.frames.mean_bytes,
        "estimated_pps": _or_none(one.estimated_pps),
        "measured_pps": one.trial.forwarded_pps,
        "error_ratio": _or_none(one.error_ratio),
        "run_ns": _run_ns(one),
        "hand_loop_ns": _or_none(_hand_ns(one)),
        "alone_ns": _or_none(1e9 * one.alone_s),
        "estimate": one.estimate.to_json() if one.estimate else None,
        "trial": one.trial.to_json(),
        "run": dict(one.outcome),
    }


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _counts_table(asked: Asked, counted: Sequence[tuple[str, FrameMix, PacketCounts]]) -> Table:
    from routecast.report.tables import Column, Table

    return Table(
        name="counts",
        title=f"{asked.function.title or asked.function.name}: instructions and memory accesses per packet",
        caption="Counted by valgrind's cachegrind over frames in memory, the starting of the run taken off.",
        columns=(
            Column(title="Direction", align="left"),
            Column(title="Frames", align="left"),
            Column(title="Instructions", form=".1f"),
            Column(title="Reads", form=".1f"),
            Column(title="Writes", form=".1f"),
        ),
        rows=tuple(
            (direction, frames.name, counts.instructions, counts.reads, counts.writes)
            for direction, frames, counts in counted
        ),
    )
