"""Candidates: every setting that a router file offers, with the router that it makes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from routecast.errors import ModelProblem, Problem
from routecast.load.frames import FrameMix
from routecast.power.operating.setting import Choices, Setting, set_up
from routecast.quantity.schema import value
from routecast.router.files import build_router
from routecast.router.model import RouterModel
from routecast.router.variants import vary

__all__ = ["Candidate", "candidates"]

_MOST = 100_000


@value
class Candidate:
    """A setting and the router that is run so."""

    setting: Setting
    model: RouterModel


def candidates(
    document: Mapping[str, Any],
    model: RouterModel,
    choices: Choices,
    *,
    subject: str = "router file",
    folder: Path | None = None,
    frames: FrameMix | None = None,
) -> tuple[Candidate, ...]:
    """Return every setting of ``choices`` that makes a router, in order: fewer cores, lower clock, deeper sleep first.

    Where polling task units hold all working cores, no core sleeps, and one setting stands for all depths of sleep.

    Parameters
    ----------
    document : mapping
        What the router file says.
    model : RouterModel
        The router that it describes.
    choices : Choices
    subject, folder
        As of :func:`routecast.router.files.parse_router`.
    frames
        As of :func:`routecast.router.files.read_router_and_load`.

    Raises
    ------
    routecast.errors.ModelProblem
        There are too many settings to enumerate, or none that makes a router.
    """
    count = len(choices.cores) * len(choices.frequencies_hz) * len(choices.sleeps) * len(choices.activations)
    if count > _MOST:
        message = f"{count:,} settings; at most {_MOST:,} are enumerated: give fewer P-states or times of lingering"
        raise ModelProblem(subject, [Problem("power", message)])
    found: list[Candidate] = []
    refused: list[Problem] = []
    for cores in choices.cores:
        base = _on_cores(document, model, choices, cores, subject=subject, folder=folder, frames=frames)
        for frequency_hz in choices.frequencies_hz:
            for activation, linger_s in choices.activations:
                for depth, sleep in enumerate(reversed(choices.sleeps)):
                    setting = Setting(
                        cores=cores, frequency_hz=frequency_hz, sleep=sleep, activation=activation, linger_s=linger_s
                    )
                    try:
                        one = set_up(base, choices.pool, setting, units=choices.units)
                    except ModelProblem as problem:
                        refused += problem.problems
                        break  # the same for every depth of sleep
                    if depth == 0 and len(choices.sleeps) > 1 and _polled_units(one, choices.pool) >= cores:
                        awake = Setting(cores=cores, frequency_hz=frequency_hz, activation=activation)
                        one = set_up(base, choices.pool, awake, units=choices.units)
                        found.append(Candidate(setting=awake, model=one))
                        break
                    found.append(Candidate(setting=setting, model=one))
    if not found:
        raise ModelProblem(subject, list(dict.fromkeys(refused)))
    return tuple(found)


def _on_cores(
    document: Mapping[str, Any],
    model: RouterModel,
    choices: Choices,
    cores: int,
    *,
    subject: str,
    folder: Path | None,
    frames: FrameMix | None,
) -> RouterModel:
    """Return the router with so many working units in its forwarding pool, and no others."""
    builder = document.get("builder")
    if builder is None and cores == choices.units:
        return model
    if builder == "multicore":
        overrides: dict[str, object] = {"cores": cores, "units": cores}
    elif builder is not None:
        overrides = {"cores": cores}
    else:
        overrides = {f"pool[{choices.pool}].units": cores}
        for number, task in enumerate(model.tasks):
            for need in task.needs:
                if need.pool == choices.pool and need.units * task.parallel > cores:
                    overrides[f"task[{number}].parallel"] = max(cores // need.units, 1)
    return build_router(vary(document, overrides, subject=subject), subject=subject, folder=folder, frames=frames)[0]


def _polled_units(model: RouterModel, pool: str) -> int:
    """Units of a pool that polling task units hold for good."""
    return sum(
        need.units * task.parallel
        for task in model.tasks
        if task.activation.kind == "polling"
        for need in task.needs
        if need.pool == pool
    )
