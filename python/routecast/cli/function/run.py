"""``routecast function NAME --run``: the real function beside its estimate.

Called by :mod:`routecast.cli.function`, which has the options.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from routecast.cli.console import data, print_json, progress_bar, remark
from routecast.cli.function.asked import Asked, evaluator_of, load_of

if TYPE_CHECKING:
    from routecast.evaluate.trial import Trial
    from routecast.function.estimate import Estimate
    from routecast.hardware.model import Hardware
    from routecast.load.frames import FrameMix
    from routecast.report.tables import Table

__all__ = ["run_function"]


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


def run_function(asked: Asked, estimates: Callable[[str, FrameMix], Estimate], *, as_json: bool = False) -> None:
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
    from routecast.cli.function.refine import check_refining, measured_function, refine_file

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
        held = f"{len(refined.after_ratio)} measurement" + ("s" if len(refined.after_ratio) > 1 else "")
        remark(
            f"{asked.refine} holds {held}; the estimate that is furthest off "
            f"was so by {before:.1%}, and is by {after:.1%} now"
        )


def _run(
    asked: Asked,
    direction: str,
    frames: FrameMix,
    estimates: Callable[[str, FrameMix], Estimate],
    progress: Callable[[float], object],
) -> _Ran:
    evaluator = evaluator_of(asked, direction, progress)
    load = load_of(asked, direction, frames)
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
    from routecast.function.estimate import in_the_manner_of

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
    cost_s = {level.name: level.line_cycles("dependent", hz) / hz for level in hardware.levels}
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
