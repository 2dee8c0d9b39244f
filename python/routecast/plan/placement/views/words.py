"""The words of a placement (Li 2012, sec. 3.4: which elements share a server or a core, and what that costs)."""

from __future__ import annotations

import math
from collections.abc import Mapping

from routecast.plan.placement.answer import PlacementAnswer, Ranked
from routecast.plan.placement.check import LOST
from routecast.plan.placement.whole import Placement
from routecast.quantity import format_duration, format_pps, format_ratio
from routecast.router.virtual.machines import Cores

__all__ = [
    "cores_said",
    "decision_said",
    "figure_said",
    "headline",
    "is_lossless_asked",
    "mapping_said",
    "pins_said",
    "rate_said",
    "value_said",
]

_PINNED = {
    "free": "every thread on every core",
    "machines": "machines on cores of their own, as far as there are enough",
    "threads": "each thread on one core",
    "alone": "the heaviest machine alone on a core",
}


def value_said(answer: PlacementAnswer, value: float) -> str:
    """Write a value of the objective."""
    objective = answer.problem.goal.objective
    if objective == "throughput":
        return rate_said(value)
    if objective == "servers":
        return f"{value:.0f} server{'s' if round(value) != 1 else ''}"
    return f"{value:.4g} W" if objective == "watts" else f"{value:,.10g}"


def figure_said(answer: PlacementAnswer, one: Ranked) -> str:
    """Write what is predicted for a mapping: of throughput without loss, for all servers at once."""
    return value_said(answer, _figure(answer, one))


def _figure(answer: PlacementAnswer, one: Ranked) -> float:
    return one.prediction.lossless_pps if is_lossless_asked(answer) else one.value


def is_lossless_asked(answer: PlacementAnswer) -> bool:
    """Return whether the most throughput without loss is asked for."""
    goal = answer.problem.goal
    return goal.objective == "throughput" and goal.throughput == "lossless"


def mapping_said(placement: Placement) -> str:
    """Write which elements are on which server."""
    return "; ".join(f"{server}: {', '.join(placement.on(server))}" for server in placement.used)


def cores_said(threads: Mapping[str, Cores]) -> str:
    """Write the cores of threads.

    Examples
    --------
    >>> cores_said({"vcpu 0": (0,), "backend 0": (1,)})
    'vcpu 0 on 0, backend 0 on 1'
    >>> cores_said({"vcpu 0": ()})
    'any'
    """
    if not any(threads.values()):
        return "any"
    order = sorted(threads, key=lambda name: (not name.startswith("vcpu"), name))
    return ", ".join(f"{name} on {'+'.join(map(str, threads[name])) or 'any'}" for name in order)


def rate_said(rate_pps: float) -> str:
    """Write a rate, however small: below a frame in 1000 s it is none.

    Examples
    --------
    >>> rate_said(2e6)
    '2 Mpps'
    >>> rate_said(3e-291)
    'less than 0.001 pps'
    """
    return "less than 0.001 pps" if 0.0 < rate_pps < 1e-3 else format_pps(rate_pps)


def headline(answer: PlacementAnswer) -> tuple[str, ...]:
    """Return the answer in a few lines."""
    problem, best, goal = answer.problem, answer.best, answer.problem.goal
    prediction = best.prediction
    lines = [f"{mapping_said(best.placement)}."]
    if goal.objective == "throughput" and goal.throughput == "lossless":
        lines.append(
            f"By prediction it carries {rate_said(prediction.lossless_pps)} of {problem.frames.name} without loss;"
            f" of {rate_said(prediction.offered_pps)} offered it forwards {rate_said(prediction.forwarded_pps)}."
        )
    elif goal.objective == "throughput":
        lines.append(
            f"By prediction it forwards {rate_said(best.value)} of {rate_said(prediction.offered_pps)} of"
            f" {problem.frames.name} offered; without loss it carries {rate_said(prediction.lossless_pps)}."
        )
    else:
        lines.append(
            f"It needs {value_said(answer, best.value)} for {rate_said(prediction.offered_pps)} of"
            f" {problem.frames.name}; by prediction it carries {rate_said(prediction.lossless_pps)} without loss."
        )
    lines += [*decision_said(answer), *_check_said(answer), *_latency_said(answer), _bound_said(answer)]
    lines.append(f"Bottleneck: {prediction.bottleneck} {prediction.reason}.")
    if answer.links:
        link = answer.links[0]
        lines.append(
            f"Fullest link: {link.name}, {format_ratio(link.used_ratio)} used; it would carry"
            f" {rate_said(link.capacity_pps)} of load."
        )
    else:
        lines.append("No frame crosses a link between servers.")
    lines += _sharing_said(answer)
    ways: dict[str, list[str]] = {}
    for server, choice in best.choice.items():
        ways.setdefault(choice, []).append(server)
    lines += [f"Threads on {', '.join(servers)}: {_PINNED.get(one, one)}." for one, servers in ways.items()]
    if answer.runners_up:
        second = answer.runners_up[0]
        lines.append(
            f"Next best by prediction, {answer.runners_say}: {figure_said(answer, second)}"
            f"{_less(answer, second)} with {mapping_said(second.placement)}."
        )
    return tuple(lines)


def decision_said(answer: PlacementAnswer) -> list[str]:
    """Say why another mapping than the first by prediction is the answer, and whether what is asked is held."""
    goal, best, first = answer.problem.goal, answer.best, answer.predicted_best
    lines = []
    if answer.is_by_simulation:
        what = f"{mapping_said(first.placement)} ({pins_said(first)})"
        if first.placement.servers == best.placement.servers:
            what = f'the same servers with threads as "{pins_said(first)}"'
        lines.append(
            f"Simulation decides: the closed form puts {what} first, {figure_said(answer, first)} against"
            f" {figure_said(answer, best)}; simulated, {_simulated_said(answer)}."
        )
    if answer.met is not False:
        return lines
    asked = []
    if goal.objective != "throughput":
        asked.append(rate_said(answer.best.prediction.offered_pps))
    if goal.latency_s is not None:
        asked.append(f"a mean latency of {format_duration(goal.latency_s)}")
    least = ""
    if math.isfinite(answer.least_latency_s):
        least = f"; the least mean latency of them is {format_duration(answer.least_latency_s)}"
    how = f"none of the {answer.tried} best mappings by prediction holds it in simulation{least}"
    if not answer.tried:
        how = "the closed form says so"
    elif answer.tried == 1:
        how = f"the only mapping does not hold it in simulation{least}"
    lines.append(f"The target is NOT MET ({' and '.join(asked)}): {how}.")
    return lines


def _simulated_said(answer: PlacementAnswer) -> str:
    one, other = answer.best.check, answer.predicted_best.check
    goal = answer.problem.goal
    if one is None or other is None:
        return "the other is better"
    if goal.objective != "throughput" or goal.latency_s is not None:
        return (
            f"of {rate_said(one.offered_pps)} it forwards {rate_said(other.forwarded_pps)} in"
            f" {_duration_said(other.latency_s)}, this one {rate_said(one.forwarded_pps)} in"
            f" {_duration_said(one.latency_s)}"
        )
    what = "carries" if one.rate == "lossless" else "forwards"
    without = " without loss" if one.rate == "lossless" else ""
    return f"this one {what} more{without}, {rate_said(one.simulated_pps)} against {rate_said(other.simulated_pps)}"


def _duration_said(duration_s: float) -> str:
    return format_duration(duration_s) if math.isfinite(duration_s) else "unknown time"


def pins_said(one: Ranked) -> str:
    """Write the ways in which a mapping's threads are pinned."""
    return ", ".join(dict.fromkeys(one.choice.values())) or "free"


def _latency_said(answer: PlacementAnswer) -> list[str]:
    best, limit_s = answer.best, answer.problem.goal.latency_s
    said = []
    if math.isfinite(best.prediction.latency_s):
        said.append(f"predicted {format_duration(best.prediction.latency_s)}")
    if best.check is not None and math.isfinite(best.check.latency_s):
        said.append(f"simulated {format_duration(best.check.latency_s)}")
    asked = "" if limit_s is None else f"; asked for: at most {format_duration(limit_s)}"
    if not said:
        return [] if limit_s is None else [f"Mean latency: not known{asked}."]
    return [f"Mean latency at {rate_said(best.prediction.offered_pps)}: {', '.join(said)}{asked}."]


def _bound_said(answer: PlacementAnswer) -> str:
    bound = value_said(answer, answer.bound)
    only = ""
    if answer.is_by_simulation or answer.met is False:
        only = " That holds for the prediction only."
    if not math.isfinite(answer.gap_ratio):
        return "How far it is from the best by prediction is not known: nothing is proven yet."
    first = value_said(answer, answer.predicted_best.value)
    # The search takes servers one by one; what one of them does to the frames of the next is in the figure of all.
    each = "server by server, " if is_lossless_asked(answer) else ""
    than = f" than {first}" if answer.is_by_simulation or each else ""
    if answer.gap_ratio <= 1e-6:
        return f"By prediction, {each}no mapping is better{than}: proven, {answer.bound_says}.{only}"
    than = f" than {bound}; it is {first}" if each else f" than {bound}"
    return (
        f"By prediction, {each}no mapping is better{than} ({100.0 * answer.gap_ratio:.2g} % off),"
        f" {answer.bound_says}.{only}"
    )


def _less(answer: PlacementAnswer, other: Ranked) -> str:
    best, value = _figure(answer, answer.best), _figure(answer, other)
    if best <= 0.0 or abs(value / best - 1.0) < 5e-4:
        return " (as good)"
    return f" ({100.0 * (value / best - 1.0):+.1f} %)".replace("-", "−")


def _sharing_said(answer: PlacementAnswer) -> list[str]:
    """Return which elements share a server and its cores, and what that costs: the servers that are full first."""
    if not answer.sharing:
        return ["No two elements share a server."]
    lines = []
    for one in answer.sharing[:3]:
        what = "cores" if one.share_cores else "the server, no core"
        names = ", ".join(one.elements[:6]) + (", …" if len(one.elements) > 6 else "")
        cost = ""
        if math.isfinite(one.apart_pps):
            cost = (
                f"; each alone on such a server, {rate_said(one.apart_pps)}"
                f" (sharing costs {format_ratio(max(one.cost_ratio, 0.0))})"
            )
        lines.append(f"{names} share {what} of {one.server}: full at {rate_said(one.carries_pps)} of load{cost}.")
    return lines


def _check_said(answer: PlacementAnswer) -> list[str]:
    check = answer.best.check
    if check is None:
        return []
    if check.trouble:
        return [f"Not simulated: {check.trouble}."]
    predicted, simulated = rate_said(check.predicted_pps), rate_said(check.simulated_pps)
    if check.rate == "lossless":
        said = f"Simulated, it carries {simulated} without loss (at most {format_ratio(LOST)} lost)"
    else:
        said = f"Simulated, it forwards {simulated} of {rate_said(check.offered_pps)}"
    said += f"; predicted {predicted}"
    if check.differs:
        apart = f"by {format_ratio(abs(check.difference_ratio))}"
        if check.difference_ratio > 1.0:
            apart = f"by a factor of {1.0 + check.difference_ratio:.3g}"
        return [f"{said}: they DIFFER {apart}; trust the simulation."]
    return [f"{said} (difference {format_ratio(abs(check.difference_ratio))})."]
