"""The words and tables of a placement (thesis, sec. 3.4: which elements share a server or a core, what that costs)."""

from __future__ import annotations

import math
from collections.abc import Mapping

from routecast.plan.placement.answer import PlacementAnswer, Ranked
from routecast.plan.placement.check import Checked
from routecast.plan.placement.whole import Placement
from routecast.quantity import format_duration, format_pps, format_ratio
from routecast.report.tables import Cell, Column, Table, percent
from routecast.router.virtual.machines import Cores

__all__ = [
    "cores_said",
    "elements_table",
    "headline",
    "links_table",
    "mapping_said",
    "mappings_table",
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
        return format_pps(value)
    if objective == "servers":
        return f"{value:.0f} server{'s' if round(value) != 1 else ''}"
    return f"{value:.4g} W" if objective == "watts" else f"{value:,.10g}"


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


def headline(answer: PlacementAnswer) -> tuple[str, ...]:
    """Return the answer in a few lines."""
    problem, best, goal = answer.problem, answer.best, answer.problem.goal
    prediction = best.prediction
    lines = [f"{mapping_said(best.placement)}."]
    if goal.objective == "throughput" and goal.throughput == "lossless":
        lines.append(
            f"It carries {format_pps(best.value)} of {problem.frames.name} without loss;"
            f" of {format_pps(prediction.offered_pps)} offered it forwards {format_pps(prediction.forwarded_pps)}."
        )
    elif goal.objective == "throughput":
        lines.append(
            f"Of {format_pps(prediction.offered_pps)} of {problem.frames.name} offered it forwards"
            f" {format_pps(best.value)}; without loss it carries {format_pps(prediction.lossless_pps)}."
        )
    else:
        lines.append(
            f"It needs {value_said(answer, best.value)} for {format_pps(prediction.offered_pps)} of"
            f" {problem.frames.name}; without loss it carries {format_pps(prediction.lossless_pps)}."
        )
    if math.isfinite(prediction.latency_s):
        lines.append(
            f"Mean latency at {format_pps(prediction.offered_pps)}: {format_duration(prediction.latency_s)}."
        )
    lines.append(_bound_said(answer))
    lines.append(f"Bottleneck: {prediction.bottleneck} {prediction.reason}.")
    if answer.links:
        link = answer.links[0]
        lines.append(
            f"Fullest link: {link.name}, {format_ratio(link.used_ratio)} used; it would carry"
            f" {format_pps(link.capacity_pps)} of load."
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
            f"Next best {answer.runners_say}: {value_said(answer, second.value)}"
            f"{_less(answer, second)} with {mapping_said(second.placement)}."
        )
    lines += _check_said(best)
    lines += _better_simulated(answer)
    return tuple(lines)


def _bound_said(answer: PlacementAnswer) -> str:
    bound = value_said(answer, answer.bound)
    if answer.gap_ratio <= 1e-9:
        return f"No mapping is better: proven, {answer.bound_says}."
    return f"No mapping is better than {bound} ({100.0 * answer.gap_ratio:.2g} % off), {answer.bound_says}."


def _less(answer: PlacementAnswer, other: Ranked) -> str:
    best = answer.best.value
    if best <= 0.0 or abs(other.value / best - 1.0) < 1e-6:
        return " (as good)"
    return f" ({100.0 * (other.value / best - 1.0):+.1f} %)".replace("-", "−")


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
                f"; each alone on such a server, {format_pps(one.apart_pps)}"
                f" (sharing costs {format_ratio(max(one.cost_ratio, 0.0))})"
            )
        lines.append(
            f"{names} share {what} of {one.server}: full at {format_pps(one.carries_pps)} of load{cost}."
        )
    return lines


def _check_said(one: Ranked) -> list[str]:
    check = one.check
    if check is None:
        return []
    if check.trouble:
        return [f"Not simulated: {check.trouble}."]
    said = (
        f"Simulated at {format_pps(check.offered_pps)}: {format_pps(check.simulated_pps)} forwarded,"
        f" predicted {format_pps(check.predicted_pps)}"
    )
    if check.differs:
        return [f"{said}: they DIFFER by {format_ratio(abs(check.difference_ratio))}; trust the simulation."]
    return [f"{said} (difference {format_ratio(abs(check.difference_ratio))})."]


def _better_simulated(answer: PlacementAnswer) -> list[str]:
    """Say if the simulation puts another mapping first."""
    if answer.best.check is None or answer.problem.goal.objective != "throughput":
        return []
    simulated = [one for one in answer.runners_up if one.check and math.isfinite(one.check.simulated_pps)]
    first = max(simulated, key=_simulated_pps, default=None)
    if first is None or not _simulated_pps(first) > _simulated_pps(answer.best) * 1.01:
        return []
    return [
        f"In simulation {mapping_said(first.placement)} is better: {format_pps(_simulated_pps(first))} against"
        f" {format_pps(_simulated_pps(answer.best))}."
    ]


def _simulated_pps(one: Ranked) -> float:
    return one.check.simulated_pps if one.check else math.nan


def elements_table(answer: PlacementAnswer) -> Table:
    """Return all elements with server and cores, and what sharing costs them."""
    rows: list[tuple[Cell, ...]] = [
        (
            seat.element,
            seat.server,
            cores_said(seat.threads),
            ", ".join(seat.shares_cores) or "–",
            seat.carries_pps / 1e3,
            seat.alone_pps / 1e3,
            seat.cost_ratio,
        )
        for seat in answer.seats
    ]
    return Table(
        name="elements",
        title="Elements",
        caption=(
            "What an element takes when its server is full, beside what it would take alone there: less where others"
            " use its cores, or are full before it."
        ),
        columns=(
            Column(title="Element", align="left"),
            Column(title="Server", align="left"),
            Column(title="Cores", align="left", wrap=True, wide=True),
            Column(title="Shares cores with", align="left", wrap=True),
            Column(title="Here", unit="kpps", form=".1f"),
            Column(title="Alone", unit="kpps", form=".1f"),
            Column(title="Less", unit="%", form=percent),
        ),
        rows=tuple(rows),
    )


def mappings_table(answer: PlacementAnswer) -> Table:
    """Return the best mapping and the next ones, predicted and simulated."""
    rows: list[tuple[Cell, ...]] = []
    for one in (answer.best, *answer.runners_up):
        check = one.check or Checked(offered_pps=math.nan, predicted_pps=math.nan, simulated_pps=math.nan)
        rows.append(
            (
                mapping_said(one.placement),
                value_said(answer, one.value),
                one.prediction.lossless_pps / 1e3,
                one.prediction.forwarded_pps / 1e3,
                check.offered_pps / 1e3,
                check.simulated_pps / 1e3,
                check.difference_ratio,
            )
        )
    return Table(
        name="mappings",
        title="Mappings",
        caption=(
            f"The best, and the next best {answer.runners_say or 'mappings'}. Forwarded at"
            f" {format_pps(answer.best.prediction.offered_pps)}; simulated beside it with seeds of its own."
        ),
        columns=(
            Column(title="Mapping", align="left", wrap=True),
            Column(title="Value", align="right"),
            Column(title="Lossless", unit="kpps", form=".1f", group="predicted"),
            Column(title="Forwarded", unit="kpps", form=".1f", group="predicted"),
            Column(title="At", unit="kpps", form=".1f", group="simulated", wide=True),
            Column(title="Forwarded", unit="kpps", form=".1f", group="simulated"),
            Column(title="Differs", unit="%", form=percent, group="simulated"),
        ),
        rows=tuple(rows),
        strong=frozenset({0}),
    )


def links_table(answer: PlacementAnswer) -> Table:
    """Return the links between servers, the fullest first."""
    return Table(
        name="links",
        title="Links between servers",
        caption=f"At {format_pps(answer.best.prediction.offered_pps)}; the first is the narrowest.",
        columns=(
            Column(title="Link", align="left"),
            Column(title="Used", unit="%", form=percent),
            Column(title="Full at", unit="kpps", form=".1f"),
        ),
        rows=tuple((link.name, link.used_ratio, link.capacity_pps / 1e3) for link in answer.links),
    )
