"""Entries that responses name (``resource[cpu]``, ``flow[3]``): whether any run has them, told before there are runs.

Which entries a trial will have follows from the router of its run: the names of its pools, task units and ports, the
number of its flows. So routers of the design are built, until each entry has been found in one of them, and no packet
is simulated. Only a wire says its entries by a trial.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from routecast.errors import Problem, RoutecastError
from routecast.experiment.answer.one_run import built
from routecast.experiment.answer.responses import SOLVED, drop_places, entries_of, is_among
from routecast.experiment.model import Experiment
from routecast.experiment.runs import documents
from routecast.quantity.did_you_mean import did_you_mean

if TYPE_CHECKING:
    from routecast.load.offered import OfferedLoad
    from routecast.router.model import RouterModel

__all__ = ["missing_entries", "only_trials_know"]

Names: TypeAlias = Mapping[str, Sequence[str]]
"""Entries of a part of a trial, each with its own entries."""

MOST_LOOKED_AT = 512
"""Combinations: of larger designs their corners, and others at equal distances."""
_PARTS = 1000
"""``MINIS`` of ``crates/sim/src/ledger.rs``: into so many parts the simulator cuts a trial."""
_WITH_INTERVAL = ("forwarded_pps", "loss_ratio", "latency.mean_s", "waiting.mean_s")
_BOUNDS = ("0", "1")
_LISTS = ("resources", "activity", "flows", "over_time")
"""Their entries are known by their place too."""


def missing_entries(experiment: Experiment) -> tuple[Problem, ...]:
    """Return the responses that name an entry which none of the runs has, with the nearest names.

    An entry that only some of the runs have is none of them; a run whose router cannot be built says so itself. What
    only a trial can tell (:func:`only_trials_know`) is not looked at.
    """
    asked = _with_entries(experiment)
    if not asked or experiment.evaluator == "measure":
        return ()
    known: dict[int, dict[str, None]] = {number: {} for number in asked}
    wrong: dict[int, tuple[str, str]] = {}
    looked_at = 0
    for document in documents(experiment, _rows(experiment)):
        try:
            names = _names(experiment, *built(document, experiment.folder))
        except RoutecastError:
            continue
        looked_at += 1
        for number in list(asked):
            part, *entries = asked[number]
            here: Sequence[str] = list(names.get(part, {}))
            for entry in entries:
                if not (is_among(entry, here) if part in _LISTS else entry in here):
                    known[number].update(dict.fromkeys(here))
                    wrong[number] = (part, entry)
                    break
                here = names[part].get(entry, ())
            else:
                del asked[number]
        if not asked:
            return ()
    where = f"any of the {looked_at:,} routers of the design" if looked_at > 1 else "the router"
    return tuple(
        Problem(
            f"response[{number}].of",
            f'{wrong[number][0]} has no entry "{wrong[number][1]}" in {where}: '
            + did_you_mean(wrong[number][1], known[number])
            + _why_not(experiment, wrong[number][0]),
        )
        for number in asked
        if looked_at
    )


def only_trials_know(experiment: Experiment) -> tuple[str, ...]:
    """Return the responses (their paths) whose entries nothing but a trial can tell: all of them on a wire."""
    if experiment.evaluator != "measure":
        return ()
    return tuple(experiment.responses[number].of for number in _with_entries(experiment))


def _with_entries(experiment: Experiment) -> dict[int, tuple[str, ...]]:
    """Return the part of a trial and the entries in it that each response names; those without entries are left out."""
    found = {number: entries_of(one.of) for number, one in enumerate(experiment.responses) if one.of not in SOLVED}
    return {number: entries for number, entries in found.items() if len(entries) > 1}


def _rows(experiment: Experiment) -> Iterator[int]:
    """Yield combinations to look at: where each factor is least and greatest, then all, or a spread of very many."""
    coded = experiment.design.coded
    corners = [
        choose(range(len(coded)), key=lambda row: coded[row][factor])
        for factor in range(len(experiment.factors))
        for choose in (min, max)
    ]
    step = max(math.ceil(len(coded) / MOST_LOOKED_AT), 1)
    yield from dict.fromkeys([*corners, *range(0, len(coded), step)])


def _names(experiment: Experiment, model: RouterModel, load: OfferedLoad) -> Mapping[str, Names]:
    if experiment.evaluator == "solve":
        return _solved(model, load, experiment.duration_s)
    is_followed = experiment.is_steadied or any(one.read_at_s is not None for one in experiment.responses)
    return _simulated(model, load, is_followed=is_followed)


def _solved(model: RouterModel, load: OfferedLoad, duration_s: float) -> Mapping[str, Names]:
    """Return what the closed form answers: it takes no longer than to foresee it."""
    from routecast.evaluate.solve import Solve

    trial = Solve(model=model).trial(load, duration_s)
    return {
        "resources": {one.name: () for one in trial.resources},
        "activity": {one.name: () for one in trial.activity},
        "queue_frames": dict.fromkeys(trial.queue_frames, ()),
        "drops_pps": dict.fromkeys(drop_places(trial), ()),
        "energy_j": {pool: tuple(states) for pool, states in trial.energy_j.items()},
    }


def _simulated(model: RouterModel, load: OfferedLoad, *, is_followed: bool) -> Mapping[str, Names]:
    """Return what the simulator may answer; a resource that nothing uses is left out of a trial."""
    from routecast.evaluate.energy import UnitStates, energy_of

    tasks = [task.name for task in model.tasks]
    places = [*tasks, *(f"{port.name} out" for port in model.ports)]
    resources = [
        *(task.thread for task in model.tasks if task.thread),
        *(pool.name for pool in model.pools),
        *(task.name for task in model.tasks if not task.needs),
        *(f"{port.name} {way}" for way in ("in", "out") for port in model.ports),
    ]
    asleep = [
        UnitStates(
            pool=pool,
            active_units=0.0,
            asleep_units=(0.0,) * len(pool.power.sleep),
            wakes_per_s=(0.0,) * len(pool.power.sleep),
        )
        for pool in model.pools
        if pool.power is not None
    ]
    return {
        "resources": dict.fromkeys(resources, ()),
        "activity": dict.fromkeys(tasks, ()),
        "queue_frames": dict.fromkeys(places, ()),
        "drops_pps": dict.fromkeys(places, ()),
        "energy_j": {pool: tuple(states) for pool, states in energy_of(asleep, 1.0).items()},
        "flows": {str(number): () for number in range(len(load.flows.flows))},
        "interval": dict.fromkeys(_WITH_INTERVAL, _BOUNDS),
        "over_time": {str(number): () for number in range(_PARTS)} if is_followed else {},
    }


def _why_not(experiment: Experiment, part: str) -> str:
    if part == "over_time" and not experiment.is_steadied:
        return "; rates over time are kept with steady = true"
    return ""
