"""``routecast simulate --fail``: the failures of a trial from the options of the command."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial

from routecast.cli.simulate import FailureOptions, Failures
from routecast.errors import QuantityProblem
from routecast.quantity import format_duration, parse_duration_s
from routecast.quantity.did_you_mean import did_you_mean
from routecast.router.model import RouterModel
from routecast.virtual.multistage.failures import (
    TAKEOVER_S,
    Absence,
    balancers,
    elements,
    events_of,
    failed,
    planned_absence,
    with_takeovers,
)
from routecast.virtual.views import phases_table

__all__ = ["absences_of", "failures_of"]

_NEVER = "never"


def failures_of(options: FailureOptions, model: RouterModel, duration_s: float) -> Failures:
    """Return the failures of a trial; load balancers of the router replace one that fails.

    Raises RoutecastError: as :func:`absences_of`, or an element is not there.
    """
    replaced = balancers(model) if len(balancers(model)) > 1 else ()
    absences = absences_of(options, duration_s, known=elements(model), replaced=replaced)
    if any(absence.element in replaced for absence in absences):
        model = with_takeovers(model)
    return Failures(model=model, events=events_of(model, absences), phases=partial(phases_table, absences=absences))


def absences_of(
    options: FailureOptions, duration_s: float, *, known: Sequence[str] = (), replaced: Collection[str] = ()
) -> tuple[Absence, ...]:
    """Return the absences of elements in a trial, of which there are some (:meth:`FailureOptions.are_any`).

    ``known`` are the router's elements, for messages; ``replaced``: load balancers that another one replaces.

    Raises RoutecastError: an option is missing, empty, given too often, or no time; or an element fails, or is
    drained, after the end of the trial.
    """
    fails, switched_off = options.fail or [], options.switch_off or []
    for option, chosen in (("--fail", fails), ("--switch-off", switched_off)):
        if not all(name.strip() for name in chosen):
            raise QuantityProblem("", f"{option} is empty: name {_element_hint(known)}")
    names = (*fails, *switched_off)
    if not options.at:
        raise QuantityProblem("", 'say when: --at TIME, e.g. --at "20 ms"')
    starts = [parse_duration_s(text) for text in _one_for_each("--at", options.at, len(names))]
    ends = [
        math.inf if text == _NEVER else parse_duration_s(text)
        for text in _one_for_each("--until", options.until or (_NEVER,), len(names))
    ]
    detection_s = parse_duration_s(options.detect) if options.detect else math.inf
    drain_s = parse_duration_s(options.drain)
    absences = []
    for number, (name, start_s, end_s) in enumerate(zip(names, starts, ends, strict=True)):
        start = format_duration(start_s)
        _require_before_end(start_s, duration_s, f'"{name}" goes down at {start}', "an earlier --at")
        if number < len(fails):
            takeover_s = TAKEOVER_S if name in replaced and not options.detect else detection_s
            absences.append(failed(name, at_s=start_s, until_s=end_s, detection_s=takeover_s))
            continue
        drains = f'"{name}" drains for {options.drain} from {start} on'
        _require_before_end(start_s + drain_s, duration_s, drains, "a shorter --drain, an earlier --at")
        absences.append(planned_absence(name, off_s=start_s, on_s=end_s, drain_s=drain_s))
    return tuple(_without_late_detection(absence, duration_s) for absence in absences)


def _require_before_end(time_s: float, duration_s: float, event: str, remedy: str) -> None:
    if time_s >= duration_s:
        end = format_duration(duration_s)
        message = f"{event}, but the trial ends at {end}: give {remedy} or a longer --duration"
        raise QuantityProblem("", message)


def _without_late_detection(absence: Absence, duration_s: float) -> Absence:
    """Return an absence without the detections after the end of the trial."""
    return replace(
        absence,
        avoided_s=absence.avoided_s if absence.avoided_s < duration_s else math.inf,
        used_s=absence.used_s if absence.used_s < duration_s else math.inf,
    )


def _element_hint(names: Sequence[str]) -> str:
    """Name some elements, or describe an element if no name is known."""
    return f"an element; {did_you_mean('', names)}" if names else "a machine or a task unit"


def _one_for_each(option: str, times: Sequence[str], count: int) -> Sequence[str]:
    """Return one time for each element; a single time counts for all."""
    if len(times) == 1:
        return [times[0]] * count
    if len(times) != count:
        message = f"{option} is given {len(times)} times for {count} elements: give it once, or once for each"
        raise QuantityProblem("", message)
    return times
