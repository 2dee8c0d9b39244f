"""A trial in parts: one trajectory in lanes, each part of which goes on from the state with which the last one ended.

::

    state    ∅ ──► part 1 ──► state ──► part 2 ──► state ──► part 3 ──► …
    load          rate 1               rate 2               rate 3

Whatever its borders, the parts together are the trial as a whole, frame by frame. What a part leaves is kept as plain
data, so that a long trial is resumed where it was interrupted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from routecast.errors import ModelProblem, Problem
from routecast.evaluate.simulate._simulator import Simulate, trial_of
from routecast.evaluate.trial import Trial
from routecast.load.offered import OfferedLoad

__all__ = ["Part", "given_up_notes", "trial_in_parts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a trial.

    ``from_s``, ``to_s``: its borders, s since the trial began; ``trial``: its figures, as of a trial that begins with
    the frames that the last part left in the router; ``proved`` of ``seams`` between the segments that ran side by side
    are proved; ``end``: the state at the end, plain data; ``given_up``: why a graphics processor that was to run it did
    not, or not all of it.
    """

    from_s: float
    to_s: float
    trial: Trial
    seams: int
    proved: int
    end: dict[str, Any]
    given_up: tuple[str, ...] = ()


def trial_in_parts(
    simulate: Simulate, load: OfferedLoad, borders_s: Sequence[float], *, begin: dict[str, Any] | None = None
) -> Iterator[Part]:
    """Simulate a load, with its steps, between borders one after the other; yield each part when it is done.

    Parameters
    ----------
    simulate : Simulate
        The router and the seed; ``path`` is ``"lanes"``, whatever it says.
    load : OfferedLoad
        Its steps count from the beginning of the first part of all.
    borders_s : sequence of float
        Rising borders, s; the first is 0, or the end of the part whose ``end`` is ``begin``.
    begin : dict or None
        The state to go on from; None: an empty router.

    Raises
    ------
    routecast.errors.ModelProblem
        The router or the load is not of the kind that lanes run, or the borders do not rise.
    """
    if len(borders_s) < 2 or any(not from_s < to_s for from_s, to_s in pairwise(borders_s)):
        raise ModelProblem("simulation", [Problem("borders_s", "give two borders or more, each after the last")])
    simulate = replace(simulate, path="lanes", replications=1, steady_state=False, target_relative_half_width=None)
    state = begin
    for from_s, to_s in pairwise(borders_s):
        outcome = simulate.outcome_from(load, to_s - from_s, state)
        lanes, state = outcome["lanes"], outcome["lanes"].pop("end")
        frames = load.mean_pps(to_s) * to_s - (load.mean_pps(from_s) * from_s if from_s > 0.0 else 0.0)
        within = replace(load, rate_pps=frames / (to_s - from_s), steps=())
        yield Part(
            from_s=from_s,
            to_s=to_s,
            trial=trial_of(simulate.model, within, to_s - from_s, outcome),
            seams=lanes["seams"],
            proved=lanes["proved_at_once"] + lanes["repaired"],
            end=state,
            given_up=tuple(sorted(set(lanes["given_up"]))),
        )


def given_up_notes(given_up: Mapping[str, int], count: int, parts: str) -> Iterator[str]:
    """Yield a note for each reason for which a graphics processor was given up.

    Parameters
    ----------
    given_up : mapping
        How many parts a reason was given for.
    count : int
        Parts in all.
    parts : str
        What they are called.
    """
    for why, times in given_up.items():
        yield f"{times:,} of {count:,} {parts} were run by the processor, in part or whole, since {why}"
