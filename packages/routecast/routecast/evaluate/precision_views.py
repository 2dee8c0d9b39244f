"""The tables of a simulation that goes on until its figures are precise."""

from __future__ import annotations

import math

from routecast.evaluate.simulate.precision import Estimate, PreciseTrial
from routecast.quantity import format_duration, format_pps, format_ratio
from routecast.show.tables import Column, Table

__all__ = ["estimate_rows", "estimates_table", "figure_text", "left_text", "precise_facts"]


def precise_facts(trial: PreciseTrial) -> Table:
    """Return the frames and the work behind the figures, and whether they are as precise as asked."""
    missed = [estimate.precision for estimate in trial.estimates if estimate.precision and not estimate.is_reached]
    reached = "reached" if not missed else f"not reached: {', '.join(missed)}; {left_text(trial.left_s)}"
    rows = [
        ("precision", reached),
        ("intended load", format_pps(trial.intended_pps)),
        ("frames", f"{trial.offered_frames:,} offered, {trial.dropped_frames:,} dropped"),
        ("simulated", f"{format_duration(trial.simulated_s)} in {trial.batches} batches"),
        ("worked", format_duration(trial.worked_s)),
    ]
    return Table.of_facts(rows, name="precise", title=f"{trial.router}: simulated until precise")


def left_text(left_s: float) -> str:
    """Return how long the rest would take, in words."""
    if math.isnan(left_s):
        return "how long the rest takes is not known"
    return f"about {format_duration(left_s)} more at this pace"


def estimates_table(trial: PreciseTrial) -> Table:
    """Return the table of the figures with their intervals."""
    return Table.of(
        trial.estimates,
        Column[Estimate].text("figure", getter=lambda estimate: estimate.figure),
        Column[Estimate].text("value", getter=lambda estimate: figure_text(estimate, estimate.value)),
        Column[Estimate].text("95 % within +-", getter=_half_width_text),
        Column[Estimate].text("asked", getter=lambda estimate: estimate.precision),
        name="figures",
        title="Figures",
        strong=lambda estimate: bool(estimate.precision) and not estimate.is_reached,
    )


def _half_width_text(estimate: Estimate) -> str:
    if math.isnan(estimate.half_width):
        return "not known"
    share = estimate.half_width / abs(estimate.value) if estimate.value else math.nan
    relative = "" if math.isnan(share) else f" ({format_ratio(share, 2)} of it)"
    return figure_text(estimate, estimate.half_width) + relative


def figure_text(estimate: Estimate, number: float) -> str:
    """Return a number in the unit of a figure."""
    if math.isnan(number):
        return "not known"
    if estimate.figure == "loss":
        return f"{number:.4g}"
    return format_pps(number) if estimate.figure == "forwarded" else format_duration(number)


def estimate_rows(trial: PreciseTrial) -> list[dict[str, object]]:
    """Return the figures as rows of a CSV table, in base units."""
    return [
        {
            "figure": estimate.figure,
            "value": estimate.value,
            "half_width": estimate.half_width,
            "precision": estimate.precision,
            "is_reached": estimate.is_reached,
        }
        for estimate in trial.estimates
    ]
