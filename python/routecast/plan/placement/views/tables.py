"""The tables of a placement: elements with what sharing costs, mappings predicted and simulated, links."""

from __future__ import annotations

import math

from routecast.plan.placement.answer import PlacementAnswer
from routecast.plan.placement.check import LOST
from routecast.plan.placement.views.words import (
    cores_said,
    is_lossless_asked,
    mapping_said,
    pins_said,
    rate_said,
    value_said,
)
from routecast.quantity import format_ratio
from routecast.show.tables import Cell, Column, Table, percent

__all__ = ["elements_table", "links_table", "mappings_table"]


def elements_table(answer: PlacementAnswer) -> Table:
    """Return all elements with server and cores, and what sharing costs them."""
    return Table.of(
        answer.seats,
        Column.text("Element", "element"),
        Column.text("Server", "server"),
        Column.text("Cores", lambda seat: cores_said(seat.threads), wrap=True, wide=True),
        Column.text("Shares cores with", lambda seat: ", ".join(seat.shares_cores) or "–", wrap=True),
        Column("Here", "kpps", ".1f", lambda seat: seat.carries_pps / 1e3),
        Column("Alone", "kpps", ".1f", lambda seat: seat.alone_pps / 1e3),
        Column("Less", "%", percent, "cost_ratio"),
        name="elements",
        title="Elements",
        caption="What an element takes when its server is full, beside what it would take alone there: less where "
        "others use its cores, or are full before it.",
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
            Column.text("Mapping", wrap=True),
            Column.text("Threads", wrap=True),
            *(() if goal.objective == "throughput" else (Column("Value"),)),
            Column("Predicted", "kpps", ".1f"),
            Column("Simulated", "kpps", ".1f"),
            Column("Latency", "us", ".1f"),
            Column("Differs", "%", percent),
        ),
        rows=tuple(rows),
        strong=frozenset({0}),
    )


def links_table(answer: PlacementAnswer) -> Table:
    """Return the links between servers, the fullest first."""
    return Table.of(
        answer.links,
        Column.text("Link", "name"),
        Column("Used", "%", percent, "used_ratio"),
        Column("Full at", "kpps", ".1f", lambda link: link.capacity_pps / 1e3),
        name="links",
        title="Links between servers",
        caption=f"At {rate_said(answer.best.prediction.offered_pps)}; the first is the narrowest.",
    )
