"""The tables of a placement: elements with what sharing costs, mappings predicted and simulated, links."""

from __future__ import annotations

import math

from routecast.plan.placement.answer import PlacementAnswer
from routecast.plan.placement.check import LOST
from routecast.quantity import format_ratio
from routecast.report.placement.words import (
    cores_said,
    is_lossless_asked,
    mapping_said,
    pins_said,
    rate_said,
    value_said,
)
from routecast.report.tables import Cell, Column, Table, percent

__all__ = ["elements_table", "links_table", "mappings_table"]


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
    """Return the answer, the first by prediction if it is another, and the next ones; predicted and simulated."""
    goal = answer.problem.goal
    is_lossless = is_lossless_asked(answer)
    first = (answer.predicted_best,) if answer.is_by_simulation else ()
    rows: list[tuple[Cell, ...]] = []
    for one in (answer.best, *first, *answer.runners_up):
        check = one.check
        predicted_pps = one.prediction.lossless_pps if is_lossless else one.prediction.forwarded_pps
        rows.append(
            (
                mapping_said(one.placement),
                pins_said(one),
                *(() if goal.objective == "throughput" else (value_said(answer, one.value),)),
                predicted_pps / 1e3,
                check.simulated_pps / 1e3 if check else math.nan,
                check.latency_s * 1e6 if check else math.nan,
                check.simulated_pps / predicted_pps - 1.0 if check and predicted_pps > 0.0 else math.nan,
            )
        )
    rate = rate_said(answer.best.prediction.offered_pps)
    what = (
        f"Rates: the most that is carried without loss (simulated: at most {format_ratio(LOST)} lost)"
        if is_lossless
        else f"Rates: what is forwarded of {rate}"
    )
    order = "The answer, the first by prediction, and the next ones" if first else "The answer, and the next ones"
    among = f", {answer.runners_say}" if answer.runners_up else ""
    return Table(
        name="mappings",
        title="Mappings",
        caption=f"{order} by prediction{among}. {what}. Latency: simulated mean at {rate}.",
        columns=(
            Column(title="Mapping", align="left", wrap=True),
            Column(title="Threads", align="left", wrap=True),
            *(() if goal.objective == "throughput" else (Column(title="Value", align="right"),)),
            Column(title="Predicted", unit="kpps", form=".1f"),
            Column(title="Simulated", unit="kpps", form=".1f"),
            Column(title="Latency", unit="us", form=".1f"),
            Column(title="Differs", unit="%", form=percent),
        ),
        rows=tuple(rows),
        strong=frozenset({0}),
    )


def links_table(answer: PlacementAnswer) -> Table:
    """Return the links between servers, the fullest first."""
    return Table(
        name="links",
        title="Links between servers",
        caption=f"At {rate_said(answer.best.prediction.offered_pps)}; the first is the narrowest.",
        columns=(
            Column(title="Link", align="left"),
            Column(title="Used", unit="%", form=percent),
            Column(title="Full at", unit="kpps", form=".1f"),
        ),
        rows=tuple((link.name, link.used_ratio, link.capacity_pps / 1e3) for link in answer.links),
    )
