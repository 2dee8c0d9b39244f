"""Responses: paths into a trial, checked before anything runs and read afterwards."""

from __future__ import annotations

import dataclasses
import math
import re
import types
import typing
from collections.abc import Mapping, Sequence
from functools import lru_cache

from routecast.errors import RoutecastError
from routecast.evaluate.protocol import EvaluatorKind
from routecast.evaluate.trial import Trial
from routecast.quantity import format_duration
from routecast.quantity.did_you_mean import did_you_mean

__all__ = [
    "SOLVED",
    "drop_places",
    "entries_of",
    "is_among",
    "needs_flows",
    "read_response",
    "reading_problem",
    "response_problem",
    "said_at",
]

SOLVED = ("capacity_pps", "lossless_pps")
"""What the closed form knows beside its trials: the greatest forwarding rate, and the greatest rate without loss."""

_RATES = ("forwarded_pps", "l1_bps", "l2_bps")
_NAMED = r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]"
"""An entry; its name may have brackets of its own."""
_STEP = re.compile(rf"([A-Za-z_][A-Za-z0-9_]*)((?:{_NAMED})*)(\.|$)")
_ENTRY = re.compile(_NAMED)
_SHORT = {"resource": "resources", "flow": "flows", "task": "activity", "drops": "drops_pps"}
_UNKNOWN_TO: Mapping[EvaluatorKind, tuple[str, ...]] = {
    "solve": (
        "offered_frames",
        "forwarded_frames",
        "dropped_frames",
        "in_flight_frames",
        "flows",
        "over_time",
        "duplicated_frames",
        "reordered_frames",
        "corrupted_frames",
        "delay_variation",
        "first_loss_s",
        "last_loss_s",
        "measured_s",
        "interval",
    ),
    "simulate": ("duplicated_frames", "corrupted_frames"),
    "measure": ("resources", "activity", "flows", "interval", "queue_frames", "waiting", "energy_j"),
}
"""First steps of paths that an evaluator never answers."""


def response_problem(of: str, evaluator: EvaluatorKind) -> str:
    """Say why a path is none into a trial, or none that an evaluator answers; empty where it may be read."""
    if of in SOLVED:
        if evaluator == "solve":
            return ""
        return f'"{of}" is what solve computes; {evaluator} has trials: read forwarded_pps, say, at a load above it'
    try:
        steps = _steps(of)
    except ValueError as wrong:
        return str(wrong)
    here: object = Trial
    for number, (key, entries) in enumerate(steps):
        known = _fields(here)
        if _entry_type(here) is not None:
            before = steps[number - 1][0]
            return f'"{before}" has several entries: name one: {before}[…].{key}'
        if not known:
            return f'"{steps[number - 1][0]}" has no parts, so there is no "{key}" in it'
        if key not in known:
            names = [*known, *(SOLVED if number == 0 and evaluator == "solve" else ())]
            return f'"{key}" is not known here: {did_you_mean(key, names)}'
        here = known[key]
        for entry in entries:
            inner = _entry_type(here)
            if inner is None:
                return f'"{key}" is no list: leave out [{entry}]'
            here = inner
    if _entry_type(here) is not None:
        return f'"{steps[-1][0]}" has several entries: name one: {steps[-1][0]}[…]'
    if _fields(here):
        return f"has parts: add one of {', '.join(_fields(here))}"
    if not _is_number(here):
        return "is no number"
    if steps[0][0] in _UNKNOWN_TO[evaluator]:
        return f"{evaluator} does not answer it: choose another response, or another evaluator"
    return ""


def reading_problem(of: str, evaluator: EvaluatorKind, at_s: float | None, duration_s: float) -> str:
    """Say why a rate cannot be read at an instant; empty where it can, or nobody asks."""
    if at_s is None:
        return ""
    if of not in _RATES:
        return f"only rates have a mean since the start: {', '.join(_RATES)}"
    if evaluator == "solve":
        return "solve keeps no rates over time: simulate and measure do"
    if at_s > duration_s:
        return f"is after the end of the trial: it lasts {format_duration(duration_s)}"
    return ""


def said_at(trial: Trial, of: str, at_s: float) -> float:
    """Return what one look at an instant would have said of a rate: its mean since the start of the trial.

    Parameters
    ----------
    trial : Trial
        With rates over time, none of them cut off.
    of : str
        ``"forwarded_pps"``, ``"l1_bps"`` or ``"l2_bps"``.
    at_s : float

    Raises
    ------
    routecast.errors.RoutecastError
        The trial has no rates over time.
    """
    from routecast.evaluate.steadiness import reading

    rates = [moment.forwarded_pps for moment in trial.over_time]
    if not rates:
        raise RoutecastError(f"the trial ({trial.evaluator}) has no rates over time, of which one could be read")
    so_far_pps = reading(rates, trial.duration_s / len(rates), at_s).so_far
    per_frame = read_response(trial, of) / trial.forwarded_pps if trial.forwarded_pps else 0.0
    return so_far_pps * per_frame


def needs_flows(of: str) -> bool:
    """Return whether a response is about single flows, which the simulator counts apart only if asked."""
    return of not in SOLVED and _steps(of)[0][0] == "flows"


def read_response(trial: Trial, of: str) -> float:
    """Read a number from a trial.

    Raises
    ------
    routecast.errors.RoutecastError
        The trial does not know it: its evaluator has no answer for this model, or there is no such entry.

    Examples
    --------
    >>> from routecast.evaluate.trial import Bottleneck, Resource
    >>> trial = Trial(
    ...     evaluator="solve", duration_s=1.0, intended_pps=2e6, offered_pps=2e6, forwarded_pps=2e6, loss_ratio=0.0,
    ...     l1_bps=1.3e9, l2_bps=1e9, bottleneck=Bottleneck(name="cpu", kind="pool", reason=""),
    ...     resources=(Resource(name="cpu", kind="pool", utilisation_ratio=0.5),),
    ... )
    >>> read_response(trial, "resource[cpu].utilisation_ratio")
    0.5
    """
    here: object = trial
    for key, entries in _steps(of):
        here = getattr(here, key, None)
        if key == "drops_pps" and len(entries) == 1 and entries[0] in drop_places(trial):
            # Trials list places that lose frames; the others lose none.
            return trial.drops_pps.get(entries[0], 0.0)
        for entry in entries:
            here = _entry(here, key, entry)
    if not isinstance(here, int | float) or not math.isfinite(here):
        notes = f" ({'; '.join(trial.notes)})" if trial.notes else ""
        raise RoutecastError(f"{trial.evaluator} does not know {of} here{notes}")
    return float(here)


def _entry(here: object, key: str, entry: str) -> object:
    if isinstance(here, Mapping):
        if entry in here:
            return here[entry]
        known = [str(one) for one in here]
    elif isinstance(here, tuple):
        known = [str(getattr(one, "name", getattr(one, "number", number))) for number, one in enumerate(here)]
        if is_among(entry, known):
            return here[known.index(entry) if entry in known else int(entry)]
    else:
        known = []
    raise RoutecastError(f'{key} has no entry "{entry}": {did_you_mean(entry, known)}')


def is_among(entry: str, names: Sequence[str]) -> bool:
    """Return whether an entry is there: by its name, or by its place in a list."""
    return entry in names or (entry.isascii() and entry.isdecimal() and int(entry) < len(names))


def drop_places(trial: Trial) -> tuple[str, ...]:
    """Return where a model can lose frames, whether it does or not: task units and outgoing links; none of a wire."""
    links = [one.name for one in trial.resources if one.kind == "link" and one.name.endswith(" out")]
    places = [*(one.name for one in trial.activity), *trial.queue_frames, *links, *trial.drops_pps]
    return () if trial.evaluator == "measure" else tuple(dict.fromkeys(places))


def entries_of(of: str) -> tuple[str, ...]:
    """Return the part of a trial that a path leads into, with the entries that it names there.

    Examples
    --------
    >>> entries_of("energy_j[cpu][active]"), entries_of("latency.p99_s")
    (('energy_j', 'cpu', 'active'), ('latency',))
    """
    key, entries = _steps(of)[0]
    return (key, *entries)


@lru_cache(maxsize=256)
def _steps(of: str) -> list[tuple[str, list[str]]]:
    steps: list[tuple[str, list[str]]] = []
    at = 0
    while at < len(of):
        found = _STEP.match(of, at)
        if not found or (found[4] == "." and found.end() == len(of)):
            raise ValueError(f'"{of}" is no path: write names and dots, entries in brackets: "latency.p99_s"')
        key = found[1]
        steps.append((_SHORT.get(key, key) if not steps else key, _ENTRY.findall(found[2])))
        at = found.end()
    if not steps:
        raise ValueError('is empty: write a path such as "l2_bps" or "latency.p99_s"')
    return steps


@lru_cache(maxsize=64)
def _fields(kind: object) -> dict[str, object]:
    """Return the parts of a dataclass and their types; none of anything else."""
    for one in _members(kind):
        if isinstance(one, type) and dataclasses.is_dataclass(one):
            hints = typing.get_type_hints(one)
            return {field.name: hints[field.name] for field in dataclasses.fields(one)}
    return {}


def _entry_type(kind: object) -> object | None:
    for one in _members(kind):
        origin, arguments = typing.get_origin(one), typing.get_args(one)
        if origin is tuple:
            return typing.cast("object", arguments[0])
        if origin is Mapping:
            return typing.cast("object", arguments[1])
    return None


def _members(kind: object) -> tuple[object, ...]:
    return typing.get_args(kind) if typing.get_origin(kind) in {typing.Union, types.UnionType} else (kind,)


def _is_number(kind: object) -> bool:
    return bool({int, float} & {one for one in _members(kind) if isinstance(one, type)})
