"""The mapping of the greatest throughput: the program asked for more and more, until there is no more."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from routecast.errors import ModelProblem
from routecast.plan.mapping.infeasible import why_not
from routecast.plan.mapping.model import Mapping, MappingProblem
from routecast.plan.mapping.others import all_in_one
from routecast.plan.mapping.program import Program, Undecided
from routecast.quantity import format_pps, format_ratio

__all__ = ["Answered", "Progress", "map_processor"]

Progress = Callable[[int, int, str], None]
_EXACT = 1e-6
_LEAST_PPS = 1e-3
_SPARE = (0.1, 0.25, 0.5, 1.0)
_NEARLY = (1.0 - 1e-9, 0.97, 0.92)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The best mapping that was found.

    Parameters
    ----------
    best : Mapping
    pps : float
        What it carries at most: the least of its bounds.
    bound_pps : float
        No mapping carries more.
    programs : int
        Integer programs that were solved.
    seconds : float
    spared : tuple of Mapping
        Others as good, or nearly, by their bounds, which have threads to spare: where the bounds of engines and threads
        lie close together none of the two is reached.
    notes : tuple of str
    """

    best: Mapping
    pps: float
    bound_pps: float
    programs: int
    seconds: float
    spared: tuple[Mapping, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def gap_ratio(self) -> float:
        """By how much a better mapping could be better."""
        return max(self.bound_pps / self.pps - 1.0, 0.0)

    @property
    def is_optimal(self) -> bool:
        """Whether there is no better mapping."""
        return self.gap_ratio <= 2.0 * _EXACT


def map_processor(
    problem: MappingProblem, *, seconds: float = 60.0, progress: Progress | None = None
) -> Answered:
    """Return the mapping that carries most, and of those that do one with the fewest engines.

    The range between the best mapping known and the least rate that no mapping carries is halved until nothing is
    between; as a found mapping mostly carries more than was asked for, that takes few steps.

    Parameters
    ----------
    problem : MappingProblem
    seconds : float
        Search no longer; the answer then says how far from the best it can be.
    progress : callable or None
        Called with what is done, what there is to do, and words.

    Raises
    ------
    InfeasibleMapping
        There is none: with the reason.
    """
    began = time.monotonic()
    program = Program(problem)
    best = _begin(program, seconds)
    low, high = best.expectation().pps, _highest(problem)
    notes: list[str] = []
    target, gap = high * (1.0 - 1e-9), high / low - 1.0
    while high > low * (1.0 + _EXACT):
        left = seconds - (time.monotonic() - began)
        if progress is not None:
            halved = math.log(max(gap / max(high / low - 1.0, _EXACT), 1.0)) / math.log(
                max(gap / _EXACT, 2.0)
            )
            progress(round(100 * halved), 100, f"{format_pps(low)}, at most {format_pps(high)}")
        try:
            if left <= 0.0:
                raise Undecided
            found = program.mapping(target, left)
        except Undecided:
            notes.append(
                f"the time was over after {seconds:g} s: a better mapping could carry up to "
                f"{format_ratio(high / low - 1.0)} more; give it longer with --seconds"
            )
            break
        if found is None:
            high = target
            target = math.sqrt(low * high)
        else:
            best, low = found, max(found.expectation().pps, target)
            # What was found is often the best already.
            target = min(low * (1.0 + _EXACT), high)
        if high <= low * (1.0 + _EXACT):
            break
    best = _fewest(program, best, low, seconds - (time.monotonic() - began))
    if progress is not None:
        progress(100, 100, format_pps(low))
    return Answered(
        best=best,
        pps=best.expectation().pps,
        bound_pps=max(high, low),
        programs=program.solved,
        seconds=time.monotonic() - began,
        spared=_spared(program, low, seconds - (time.monotonic() - began)),
        notes=tuple(notes),
    )


def _begin(program: Program, seconds: float) -> Mapping:
    """Return any mapping: everything on all engines, where that fits."""
    whole = replace(all_in_one(program.problem), name="optimum")
    try:
        whole.router()
    except ModelProblem:
        pass
    else:
        return whole
    try:
        found = program.mapping(_LEAST_PPS, seconds)
    except Undecided as problem:
        raise why_not(program.problem, "no mapping was found in the time given: give it longer") from problem
    if found is None:
        raise why_not(program.problem)
    return found


def _fewest(program: Program, best: Mapping, pps: float, seconds: float) -> Mapping:
    """Return a mapping as good on as few engines as can be."""
    try:
        found = program.mapping(pps * (1.0 - 1e-9), max(seconds, 1.0))
    except Undecided:
        return best
    return best if found is None else found


def _spared(program: Program, pps: float, seconds: float) -> tuple[Mapping, ...]:
    """Return mappings with threads to spare, on as few engines as that takes."""
    began = time.monotonic()
    found: list[Mapping] = []
    for spare in _SPARE:
        for part in _NEARLY:
            left = seconds - (time.monotonic() - began)
            try:
                one = program.mapping(pps * part, left, spare=spare) if left > 0.0 else None
            except Undecided:
                return tuple(found)
            if one is not None:
                found.append(one)
                break
    return tuple(found)


def _highest(problem: MappingProblem) -> float:
    """Return a rate that no mapping exceeds: all ports full, all engines busy with nothing but the blocks."""
    lines = next(limit.pps for limit in all_in_one(problem).expectation().limits if limit.kind == "lines")
    engines = problem.processor.engines
    cycles = sum(block.cycles + block.cycles_per_byte * problem.frame_bytes for block in problem.blocks)
    busy = engines.count * engines.frequency_hz / cycles if cycles > 0.0 else math.inf
    return min(lines, busy)
